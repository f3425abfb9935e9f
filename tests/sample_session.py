'''A session that nobody measured, for the tests of what reads the archive.

The machine is made up, and says so in its names: 4 cores with 48 KiB of L1 and 1 MiB of L2 each, 16 MiB of shared L3,
30 GB/s of memory traffic for one thread and 75 GB/s for four.  The rates follow from a model of these, with a noise
from a generator of fixed seed; nothing here may be quoted.
'''

import datetime
import json

import numpy as np
import polars as pl

from plumbline.model import registry
from plumbline.model.parameters import of_display_name
from plumbline.store.archive import SCHEMA

HOST = 'synthetic-node-1'
LEVELS = {'L1': 48 * 2**10, 'L2': 2**20, 'L3': 16 * 2**20}
#: Traffic in GB/s that one thread and four threads move at most.
PEAK = {'L1': (400, 1590), 'L2': (190, 750), 'L3': (95, 330), 'memory': (30, 75)}
#: Share of the limit that a variant of the triad reaches, in cache and in memory.
SHARE = {'plain': (0.90, 0.95), 'novec': (0.32, 0.85), 'simd': (0.93, 0.95), 'nt': (0.20, 0.97), 'prefetch': (0.85, 0.94), 'preload': (0.18, 0.90)}
NONTEMPORAL = {'nt', 'preload', 'store_nt'}
#: Value of the checks' parameter ``threads`` -> number of threads.
THREADS = {'one': 1, 'all': 4}
STREAMS = ('load', 'store', 'copy', 'triad', 'store_nt')
#: Begin of a check -> what it tells of; others of the level that their metric names, or have.
TELLS_OF = {'pingpong_simulated': registry.NO_MACHINE, 'pingpong': registry.MESSAGES_SHM, 'node_pairs': registry.MESSAGES_NETWORK,
            'network_patterns': registry.MESSAGES_NETWORK, 'fileio': registry.FILES, 'latency': registry.LATENCY, 'cores': registry.CORE,
            'peak': registry.CORE, 'app': registry.APPLICATIONS}

SESSION_INFO = {'cmdline': 'reframe -C config/sample.py -c checks -R --mode daily --max-retries 1 -r', 'version': '4.10.4', 'time_elapsed': 188.4,
                'hostname': HOST, 'user': 'nobody', 'workdir': 'plumbline', 'num_cases': 11}
MACHINE = {
    'record': 'machine', 'schema': 1, 'hostname': HOST, 'cpu_model': 'Synthetic CPU (made up, nobody measured it)', 'microcode': None,
    'kernel': '6.1.0-synthetic', 'governor': None, 'huge_pages': 'always [madvise] never', 'numa_balancing': '0', 'memory_kib': 16 * 2**20,
    'allowed_cpus': [0, 1, 2, 3], 'cpu_quota': None,
    'mitigations': {'meltdown': 'Not affected', 'l1tf': 'Not affected', 'spectre_v2': 'Mitigation; Retpolines', 'spec_store_bypass': 'Vulnerable'},
    'caches': [{'level': number, 'size': size, 'line': 64, 'shared_cpus': [0, 1, 2, 3] if number == 3 else [0]}
               for number, size in enumerate(LEVELS.values(), 1)],
    'numa_nodes': [{'node': 0, 'cpus': [0, 1, 2, 3]}], 'clock_resolution': 2.5e-8}


def frame(*cases, info=SESSION_INFO):
    '''The archive's rows of one session from lists of rows made by :func:`case`.'''
    rows = [row for case_rows in cases for row in case_rows]
    if rows and info is not None:
        rows[0] = rows[0] | {'session_info': json.dumps(info)}
    return pl.DataFrame([{key: row.get(key) for key in SCHEMA} | {'subsystem': _subsystem(row)} for row in rows], schema=SCHEMA)


def _subsystem(row):
    if row.get('metric') not in registry.METRICS:
        return None
    stated = next((part for name, part in TELLS_OF.items() if row['check'].startswith(name)), None) or next(
        (part for part in (row['subject'] or '').split('.') if part in LEVELS), registry.LEVELS)
    return registry.subsystem(row['metric'], stated, row.get('level'), row.get('threads'))


def case(check, metrics=(), *, run=0, result='pass', host=HOST, threads=None, level=None, environ='gnu', fixture=False, detail=None, timed=0.0,
         compiled=0.0, **fields):
    '''The rows of one run of one test case.'''
    parameters = ''.join(f' %{key}={value}' for key, value in (('threads', threads), ('level', level)) if value)
    common = {
        'session': '20260102T030405Z-sample', 'started': datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc), 'system': 'sample',
        'partition': 'cpu', 'environ': environ, 'hostname': host, 'check': check, 'test': f'{check}{parameters} {host}'.replace(' %', '_'),
        'display_name': check + parameters, 'run': run, 'result': result, 'fixture': fixture, 'time_setup': 0.01, 'time_compile': compiled,
        'time_run': timed * 1.25 + 0.2, 'time_sanity': 0.02, 'time_performance': 0.01, 'time_total': timed * 1.25 + compiled + 0.24,
        'timed_seconds': timed, 'level': level, 'threads': threads} | fields
    common['display_name'], its = of_display_name(common['display_name'])
    common['parameters'] = json.dumps(its)
    if detail is not None:
        detail = {
            'schema': 1, 'question': f'What does {check} ask?', 'source': 'hager2004, section 3', 'records': [], 'machine': MACHINE,
            'cross_check': None, 'cross_check_reason': None, 'skipped': [], 'notes': [], 'timed_seconds': timed,
            'command': f'build/bin/triad --threads {THREADS.get(threads, 1)} --samples 24',
            'rerun': f"reframe -C config/sample.py -c checks -R -n '{check}{parameters}' -r"} | detail
    rows = [common | row for row in metrics] or [common]
    rows[0] = rows[0] | {'detail': None if detail is None else json.dumps(detail)}
    return rows


def metric(name, value, unit='1', verdict='PASS', reference=(1.0, -0.2, 0.1), reason='', spread=0.02, limit=None, reference_from='portable.yaml'):
    '''The columns of one metric; ``reference`` None: NO REFERENCE.'''
    if reference is None:
        verdict, reference_from, reason = ('NO REFERENCE', None, 'no reference is recorded for this metric here')
    lower = {'reference': reference[0], 'lower': reference[1], 'upper': reference[2]} if reference else {}
    kind, _, subject = name.partition('.')
    return {'metric': kind, 'name': name, 'subject': subject or None, 'value': value, 'unit': unit,
            'samples': [value * (1 + spread * k) for k in (-1, -0.5, 0, 0.5, 1)], 'n': 24, 'spread': spread, 'interval_low': value * (1 - spread),
            'interval_high': value * (1 + spread), 'limit': limit, 'reference_from': reference_from, 'verdict': verdict,
            'reason': reason or f'{value:.4g} is within its bounds'} | lower


#: What five sessions measured of twelve metrics.
_GENERATOR = np.random.default_rng(7)
HISTORY = {f'v{number}': dict(zip('abcde', 1000 * np.exp(0.02 * _GENERATOR.standard_normal(5)))) for number in range(12)}


def predicted(variant, loss=0.0, ruling='PASS', name='bandwidth', unit='MB/s', deviation=None, spread=0.02):
    '''The columns of a metric whose reference predicts it from :data:`HISTORY`; with ``deviation`` of sessions that scatter so little.'''
    value = float(np.exp(np.mean(np.log(list(HISTORY[variant].values())))))
    measured = HISTORY[variant] if deviation is None else dict.fromkeys('abcde', value)
    row = metric(name + '.' + variant, value * (1 - loss), unit, ruling, (value, -0.15, None), reference_from='made.yaml', spread=spread)
    return row | {'expected': json.dumps({'deviation': deviation or 0.025, 'freedom': 9.0, 'measured': measured})}


def level_of(working_set, threads=1):
    '''Where the data lie: the first level that holds them, L1 and L2 being each core's own.'''
    for name, size in LEVELS.items():
        if working_set <= 0.9 * size * (threads if name != 'L3' else 1):
            return name
    return 'memory'


def record(variant, size, threads, group, role='kernel', samples=24, seed=0):
    '''One measurement record as the model of the synthetic machine has it; noise is common to a round of its group.'''
    working_set = 32 * size
    level = level_of(working_set, threads)
    drift = np.random.default_rng([group, seed, 1]).normal(0, 0.04, samples)
    own = np.random.default_rng([sum(map(ord, variant)), group, threads, seed]).normal(0, 0.012, samples)
    one, four = PEAK[level]
    # Neighbouring levels blend: no machine has a step.
    fill = working_set / (LEVELS.get(level, 16 * 2**20) * (threads if level in ('L1', 'L2') else 1))
    peak = (one + (four - one) * (threads - 1) / 3) * (1 - 0.12 * min(fill, 1.0) * (level != 'memory'))
    peak *= size / (size + 60 * threads**2)
    share = (dict.fromkeys(STREAMS, 0.93) | {'load': 1.0, 'store': 0.7} if role == 'limit'
             else {name: values[level == 'memory'] for name, values in SHARE.items()})
    allocate = level != 'L1' and variant not in NONTEMPORAL
    work = 32 * size
    traffic = work * (1.25 if allocate else 1) if variant != 'load' else work
    passes = max(1, int(1e9 * peak * 0.02 / work))
    seconds = passes * traffic / (peak * 1e9 * share[variant] * (1 + drift) * (1 + own))
    return {
        'record': 'measurement', 'schema': 1, 'kernel': 'triad' if role == 'kernel' else 'streams', 'variant': variant, 'isa': None, 'role': role,
        'group': group, 'size': size, 'threads': threads, 'ranks': 1, 'options': {'init': 'parinit', 'alloc': 'dynamic', 'shift': 0, 'pages': 'huge'},
        'compiler': 'gcc 12.2.0', 'flags': '-O3 -march=native -fopenmp', 'level': level, 'working_set': working_set, 'passes': passes,
        'seconds': seconds.tolist(), 'bytes': passes * work, 'flops': 2 * size * passes, 'traffic': passes * traffic,
        'traffic_source': '24 bytes loaded and 8 stored per iteration', 'valid': True, 'max_error': 0.0, 'tolerance': 0.0,
        'cpus': list(range(threads)), 'numa_nodes': {'0': 1.0}, 'page_size': 4096, 'huge_page_share': 0.98, 'clock_resolution': 2.5e-8}


def records(sizes, threads, variants=('plain',), samples=24, streams=STREAMS):
    '''Records of the triad and the limit streams: one group per size, in which all thread counts ran in turn.'''
    return [record(variant, size, n, group, role, samples) for group, size in enumerate(sizes) for n in threads
            for role, names in (('limit', streams), ('kernel', variants)) for variant in names]


def median_rate(made, what='bytes'):
    '''MB/s of a record.'''
    return float(np.median(made[what] / np.asarray(made['seconds']))) * 1e-6


def curve(threads):
    '''The check triad_curve; ``threads``: one or all.'''
    sizes = np.unique(np.logspace(1.7, 6.9, 28).astype(int) // 8 * 8).tolist()
    made = records(sizes, [THREADS[threads]], ('plain', 'novec', 'nt', 'prefetch'), 12)
    rows = [metric(f'bandwidth.{level}', max(median_rate(r) for r in made if r['role'] == 'kernel' and r['level'] == level), 'MB/s', reference=None,
                   limit=PEAK[level][threads == 'all'] * 1e3) for level in PEAK]
    return case('triad_curve', rows, threads=threads, timed=31.0, detail={
        'records': made, 'question': 'At which loop length does the bandwidth of the vector triad fall?',
        'skipped': [{'metric': 'counters', 'reason': 'hardware counters are not readable here (no MSR device)'}]})


def memory(threads, verdicts):
    '''The check triad_memory; ``verdicts``: variant -> verdict, where it is not PASS.'''
    made = records([5_000_000], [THREADS[threads]], tuple(SHARE))
    limit = PEAK['memory'][threads == 'all'] * 1e3
    rows = []
    for r in (r for r in made if r['role'] == 'kernel'):
        verdict, rate = verdicts.get(r['variant'], 'PASS'), median_rate(r)
        expected = rate / (0.7 if verdict == 'FAIL' else 1)
        reason = {'FAIL': f'{rate:.0f} is outside {0.9 * expected:.0f} .. {1.1 * expected:.0f}',
                  'UNSTABLE': 'spread 0.31 above 0.25'}.get(verdict, '')
        rows.append(metric(f"bandwidth.{r['variant']}", rate, 'MB/s', verdict, (expected, -0.1, 0.1), reason, limit=limit,
                           reference_from='sample.yaml', spread=0.31 if verdict == 'UNSTABLE' else 0.04))
        rows.append(metric(f"of_limit.{r['variant']}", median_rate(r, 'traffic') / limit, limit=limit))
    failed = ({'result': 'fail', 'fail_phase': 'performance', 'fail_reason': 'performance error: see the verdicts'}
              if any(verdict == 'FAIL' for verdict in verdicts.values()) else {})
    return case('triad_memory', rows, threads=threads, timed=11.5, **failed, detail={
        'records': made, 'source': 'hager2004, figure 4', 'question': 'Which way to write the triad is the fastest in memory?'})


def limits(threads, cross_check=True):
    '''The check limits in all levels; its program runs the streams as kernels.'''
    n = THREADS[threads]
    sizes = {'L1': 1000 * n, 'L2': 16_000 * n, 'L3': 120_000, 'memory': 5_000_000}
    made = [record(stream, size, n, group, 'limit') | {'role': 'kernel'} for group, size in enumerate(sizes.values()) for stream in STREAMS]
    best = {r['level']: median_rate(r, 'traffic') for r in made if r['variant'] == 'load'}
    seen = [{'level': level, 'threads': n, 'kernel': 'load_avx512', 'traffic_factor': 1.0, 'traffic_rate': rate / (0.96 if level == 'L2' else 1.01),
             'own_rate': rate} for level, rate in best.items()]
    rows = [metric(f'bandwidth.{level}', rate, 'MB/s', reference=None, limit=rate) for level, rate in best.items()]
    unknown = 'peak unknown: this system has no machine file'
    if threads == 'all':
        rows.append(metric('of_peak.memory', 0.83, reference=(1.0, -0.25, 0.05), limit=90_000))
    return case('limits', rows, threads=threads, timed=7.1, detail={
        'records': made, 'cross_check': seen if cross_check else None,
        'cross_check_reason': None if cross_check else 'not confirmed by likwid-bench: it is not on this partition',
        'skipped': [{'metric': f'of_peak.{level}', 'reason': unknown} for level in PEAK if (threads, level) != ('all', 'memory')],
        'notes': ["L2, 4 threads: limit streams reach 0.96 of likwid-bench's best"] if cross_check and threads == 'all' else []})


def scaling():
    '''The check triad_scaling: in L2 and in memory, one to four threads.'''
    rows = [('cache', 20_000, metric('efficiency.2', 0.98, reference=(1.0, -0.1, 0.1))),
            ('memory', 5_000_000, metric('efficiency.all', 0.62, reference=None))]
    return [row for level, size, found in rows for row in case(
        'triad_scaling', [found], threads='all', level=level, timed=11.0, detail={'records': records([size], [1, 2, 3, 4], ('plain', 'nt'))})]


def retried():
    '''A test whose first run failed and whose second passed.'''
    low = metric('of_limit.parinit', 0.71, verdict='FAIL', reason='0.71 is outside 0.80 .. 1.10')
    return (case('triad_firsttouch', [low], threads='all', result='fail', fail_phase='performance', timed=4.0, detail={})
            + case('triad_firsttouch', [metric('of_limit.parinit', 0.95)], threads='all', run=1, timed=4.1, detail={}))


def broken(reason="the program ended with status 1: <script>alert('x')</script>"):
    '''A test that failed before it had a metric.'''
    return case('strided_copy', threads='all', result='fail', fail_phase='sanity', fail_reason=reason, verdict='FAIL',
                reason=f'sanity: {reason}', detail={})


def skipped():
    '''A test that was not run.'''
    return case('pingpong', result='skip', reason='needs two nodes, the partition has one')


def fixture():
    '''The build.'''
    return case('build_programs', fixture=True, compiled=21.3)


def sample_session():
    '''A session with everything in it: all verdicts, a retry, a skip, a failure without metrics, all figures.'''
    return frame(fixture(), limits('one'), limits('all'), curve('one'), curve('all'), memory('one', {'nt': 'UNSTABLE'}),
                 memory('all', {'plain': 'FAIL', 'novec': 'FAIL'}), scaling(), retried(), broken(), skipped())
