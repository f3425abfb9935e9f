'''What is wrong, and what to look at: each rule on a session that has its fault, and on the same one without.'''

import functools
import json

import pytest

import sample_session as sample
from plumbline import schemas
from plumbline.analysis import diagnosis, host_states, lines, subsystems
from plumbline.model import registry, verdict

CPUS = list(range(4))
DOMAINS = [{'node': 0, 'cpus': [0, 1]}, {'node': 1, 'cpus': [2, 3]}]
QUIET = {'record': 'contention', 'schema': 1, 'threads': 4, 'elapsed': 10.0, 'throttled': 0.0, 'waited': 0.1, 'stolen': 0.0}


def row(name, loss=0.0, unit='MB/s', ruling=None, reason='', value=1000.0):
    '''A metric against a recorded reference; a loss of 10 % and more is a FAIL.'''
    metric, _, subject = name.partition('.')
    better = registry.better(metric)
    measured = value * (1 - loss) ** better
    return sample.metric(name, measured, unit, ruling or ('FAIL' if loss >= 0.1 else 'PASS'), (value, -0.1, 0.1), reason, reference_from='made.yaml') | {
        'expected': json.dumps({'deviation': 0.02, 'freedom': 9.0, 'measured': dict.fromkeys('abcde', value)})}


def test_(check, *rows, detail=None, **where):
    return sample.case(check, rows, detail={'contention': [QUIET]} | (detail or {}), **where)


test_.__test__ = False


def node(one=0.0, everything=0.0, latency=0.0, cache=0.0, detail=None, beside=()):
    '''A session of memory, latency and cache, each with its loss.'''
    return [test_('triad_memory', row('bandwidth.plain', one), threads='one', detail=detail),
            test_('triad_memory', row('bandwidth.plain', everything), threads='all', detail=detail),
            test_('node_speed', row('flops.L1', cache, 'Mflop/s'), threads='one', level='L1', detail=detail),
            test_('latency', row('latency.memory.huge', latency, 'us'), threads='one', detail=detail), *beside]


def diagnose(cases):
    rows = sample.frame(*cases)
    verdicts = lines.verdict_lines(rows)
    return diagnosis.diagnose(verdicts, lines.not_measured(rows), subsystems.judge(verdicts))


def contention(**lost):
    return {'contention': [QUIET | lost]}


def machine(**state):
    return {'machine': sample.MACHINE | state}


def record(threads=4, **fields):
    return {'records': [sample.record('plain', 5_000_000, threads, 0) | fields]}


def ranks(*hosts):
    '''On CPU 0 of each host.'''
    return record(1, cpus=[0] * len(hosts)) | machine(processes=[{'host': host, 'pid': pid} for pid, host in enumerate(hosts, 100)])


def sharing(factor):
    return {'records': [sample.record('plain', 5_000_000, 4, 0) | {'probes': {'core_sharing': {side: [factor] * 24 for side in ('before', 'after')}}}]}


def additions(alone, beside, sharing=1.0):
    '''Half of the samples beside others.'''
    counts, factors = [alone] * 12 + [beside] * 12, [1.0] * 12 + [sharing] * 12
    return {'records': [sample.record('plain', 5_000_000, 4, 0) | {'probes': {
        'additions_per_cycle': {'before': counts, 'after': counts}, 'core_sharing': {'before': factors, 'after': factors}}}]}


def clock(mhz, **state):
    clock = {'before': [one * 1e6 for one in mhz], 'after': [one * 1e6 for one in mhz]}
    return machine(base_clock={'mhz': 2000, 'source': 'made up'}, **state) | {'records': [
        sample.record('plain', 5_000_000, 4, 0, samples=len(mhz)) | {'probes': {'clock': clock}}]}


def blas(threads, state=None):
    '''A DGEMM of so many threads is slow, beside others with two threads on one core.'''
    slow = sample.metric('of_fma.dgemm', 0.18, verdict='FAIL') | {'record': 0, 'state': json.dumps(state)}
    return [*node(everything=0.5, detail=sharing(1.96)), test_('peak_flops', slow, detail=record(threads, cpus=CPUS[:threads]))]


def code(plain, loss):
    '''The loop in one test, the same with intrinsics in another.'''
    return [*node(cache=loss, detail=record() | {'simd_width': {'plain': plain}}),
            test_('triad_scaling', row('bandwidth.simd'), threads='all', detail={'simd_width': {'simd': '512-bit'}, 'records': [
                sample.record('simd', 5_000_000, 4, 0)]})]


def messages(latency=0.0, short=0.0, middle=0.0, long=0.0, transport='shm', standard=0.0, ruling=None, halves='PASS', of_halves=0.41):
    return [test_('pingpong', row('latency.swapped.shm', latency, 'us'), row('bandwidth.swapped.1KiB.shm', short),
                  row('bandwidth.swapped.64KiB.shm', middle), row('bandwidth.swapped.1MiB.shm', long), row('bandwidth.swapped.shm', long),
                  row('bandwidth.standard.shm', standard), sample.metric('of_halves.swapped.shm', of_halves, verdict=halves), display_name='pingpong %transport=shm',
                  host='n1')]


def pairs(typical=0.0, worst=0.0, of_median='PASS'):
    '''Of two or three nodes none can be told to be slower than the others: ``of_median`` None.'''
    ranked = [sample.metric('of_median.bandwidth', 0.5, verdict=of_median)] if of_median else []
    return [test_('node_pairs', row('bandwidth.pairs', typical), row('bandwidth.worst_pair', worst), *ranked, host='n1,n2'), *messages()]


def patterns(name, value, verdict):
    return [test_('network_patterns', sample.metric(name, value, '1', verdict=verdict), host='n1,n2'), *messages()]


def files(fsync=0.0, cold=0.0, warm=0.0, cold_rate=100.0):
    return [test_('fileio_sizes', row('bandwidth.c.write_fsync', fsync), row('bandwidth.c.read_cold', cold, value=cold_rate),
                  row('bandwidth.c.read_warm', warm, value=1000.0), threads='one')]


def not_warm(referenced):
    '''Files that the page cache does not hold: a metric is left out, which has references or not.'''
    skipped = {'metric': 'bandwidth.c.read_warm', 'reason': 'only 40 % of them', 'symptom': 'not_warm', 'referenced': referenced,
               'subsystems': ['files'] * len(referenced)}
    return [test_('fileio_sizes', row('bandwidth.c.write'), threads='one', detail={'skipped': [skipped]})]


def nontemporal(loss):
    return [test_('triad_memory', row('bandwidth.plain', 0.0, value=1000.0), row('bandwidth.nt', loss, value=1250.0), threads='all')]


def ended(check, reason, symptom=None):
    return sample.case(check, result='fail', fail_phase='sanity', fail_reason=reason, verdict='FAIL', reason=f'sanity: {reason}', detail={}, symptom=symptom)


def not_measured(symptom):
    return sample.case('cores', result='skip', detail={'skipped': [{'metric': 'all', 'reason': 'made up', 'recorded': 5, 'symptom': symptom}]}, reason='made up')


NOT_MEASURED = not_measured('too_few_cpus')
WIDTHS = {'simd_width': {'plain': 'scalar'}, 'simd_width_of_references': {'plain': '512-bit'}}
CONTEXT = 'triad plain: thread 1 was placed on CPU 1 but ran on CPU 0'
SWAPPED = 'shm was asked for, but of 2e+09 bytes of messages 3e+09 went over the loopback device'

GOVERNOR = test_('expectations', sample.metric('as_expected', 1.0), detail={
    'noted': [{'about': 'expectations', 'note': 'cpu.governor is powersave, expected performance'}]})

#: Rule -> (function of a session that has the fault, and of the same without): a list of sessions for each.
FAULTS = {
    'quota': ([lambda: node(detail=contention(throttled=8.0)), lambda: node(everything=0.3, detail=contention() | machine(cpu_quota=2.0))],
              [lambda: node(detail=machine(cpu_quota=4.0))]),
    'noisy_neighbour': ([lambda: node(everything=0.3, detail=contention(waited=5.0))], [lambda: node(detail=contention(waited=0.2))]),
    'hypervisor': ([lambda: node(everything=0.3, detail=contention(stolen=5.0))], [lambda: node(detail=contention(stolen=0.2))]),
    'oversubscription': ([lambda: node(everything=0.5, detail=record(cpus=[0, 0, 1, 1])), lambda: node(detail=ranks('n1', 'n1'))],
                         [lambda: node(detail=record(cpus=CPUS)), lambda: node(detail=ranks('n1', 'n2'))]),
    'one_core': ([lambda: node(everything=0.5, detail=sharing(1.96))],
                 [lambda: node(everything=0.5, detail=sharing(1.0)), lambda: node(detail=sharing(1.96)),
                  # Of a test that is within its bounds it explains nothing, nor what a disk does.
                  lambda: [*node(everything=0.5), test_('triad_scaling', row('bandwidth.2'), threads='all', level='L2', detail=sharing(1.96))],
                  lambda: [*node(detail=sharing(1.96)), *files(cold=0.8)]]),
    'shared_core': ([lambda: node(cache=0.5, detail=additions(3.9, 2.1))],
                    [lambda: node(cache=0.5, detail=additions(3.9, 3.8)), lambda: node(detail=additions(3.9, 2.1)), lambda: node(everything=0.5, detail=additions(3.9, 2.1)),
                     lambda: node(cache=0.5, detail=additions(3.9, 1.95, sharing=2.0)),
                     lambda: node(cache=0.5, detail=additions(5.0, 3.9) | machine(core_kinds=[[0, 1], [2, 3]]))]),     # cores of two kinds
    # A job that has a part of the node, as always, is no fault.
    'pinning': ([lambda: [*node(detail=machine(allowed_cpus=[0], cpu_quota=4.0)), NOT_MEASURED], lambda: [*node(detail=machine(allowed_cpus=[0])), NOT_MEASURED], lambda: [*node(), ended('triad_memory', CONTEXT, 'misplaced')]],
                [lambda: node(detail=machine(allowed_cpus=[0])), lambda: [*node(), NOT_MEASURED],
                 lambda: [*node(detail=machine(allowed_cpus=[0], cpu_quota=1.8)), NOT_MEASURED],       # of which we took one
                 lambda: [*node(detail=machine(allowed_cpus=[0])), not_measured('not_warm')], lambda: [*node(), ended('triad_memory', CONTEXT)]]),
    'power_saving': ([lambda: node(everything=0.3, detail=clock([1200] * 24, governor='powersave'))],
                     [lambda: node(detail=clock([2900] * 24, governor='powersave')),
                      lambda: node(everything=0.3, detail=clock([1200] * 24, governor='powersave', scaling_driver='intel_pstate'))]),
    'clock_capped': ([lambda: node(everything=0.3, detail=clock([1200] * 24, governor='performance')),
                      lambda: node(everything=0.3, detail=clock([1200] * 24, governor='powersave', scaling_driver='amd-pstate-epp'))],
                     [lambda: node(detail=clock([2900] * 24, governor='performance'))]),
    'clock_let_down': ([lambda: node(everything=0.3, detail=clock([2900] * 20 + [1200] * 4, governor='schedutil', scaling_driver='acpi-cpufreq'))],
                       [lambda: node(everything=0.3, detail=clock([2900] * 20 + [1200] * 4, governor='performance'))]),
    'clock_throttled': ([lambda: node(everything=0.3, detail=clock([2900] * 20 + [1200] * 4))], [lambda: node(detail=clock([2900] * 24))]),
    'clock_low': ([lambda: [*node(), test_('cores', sample.metric('of_base.all', 0.6, verdict='FAIL'))]],
                  [lambda: [*node(), test_('cores', sample.metric('of_base.all', 1.3))]]),
    'other_processor': ([lambda: node(detail=machine() | {'other_processors': ['Older CPU']})], [node]),
    'lost_vectorisation': ([lambda: node(one=0.3, cache=0.8, latency=0.0, everything=0.0, detail=WIDTHS)],
                           [lambda: node(detail=WIDTHS), lambda: node(cache=0.8, detail=WIDTHS | {'simd_width': {'plain': '512-bit'}})]),
    'narrow_code': ([lambda: code('128-bit', 0.8)], [lambda: code('256-bit', 0.8), lambda: code('scalar', 0.0)]),
    'blas_of_another_processor': ([lambda: [*node(), test_('peak_flops', sample.metric('of_fma.dgemm.one', 0.18, verdict='FAIL'))]],
                                  [lambda: [*node(), test_('peak_flops', sample.metric('of_fma.dgemm.one', 0.67))],
                                   lambda: [*node(), test_('peak_flops', sample.metric('of_peak.simd256.one', 0.18, verdict='FAIL'))]]),
    'nontemporal_without_effect': ([lambda: nontemporal(0.2)], [lambda: nontemporal(0.0)]),
    'no_huge_pages': ([lambda: node(latency=0.4, detail=record(huge_page_share=0.0)),
                       lambda: [*node(), ended('latency', 'huge pages were asked for, and not given: see the same with base pages; they were', 'no_huge_pages')]],
                      [lambda: node(detail=record(huge_page_share=0.0)), lambda: node(latency=0.4, detail=record(huge_page_share=0.98)),
                       lambda: node(latency=0.4, detail=record(huge_page_share=0.0, options={'pages': 'base'})),
                       # Base pages of 64 KiB: one huge page is more than the data.
                       lambda: node(latency=0.4, detail=record(huge_page_share=0.0) | machine(huge_page_size=2**29))]),
    'prefetchers_off': ([lambda: node(one=0.4, everything=0.2)], [node, lambda: node(one=0.4, everything=0.4, latency=0.4), lambda: node(one=0.4, cache=0.4)]),
    'remote_memory': ([lambda: node(one=0.3, latency=0.4, detail=record(1, cpus=[0], numa_nodes={'1': 1.0}) | machine(numa_nodes=DOMAINS))],
                      [lambda: node(one=0.3, detail=record(1, cpus=[0], numa_nodes={'0': 1.0}) | machine(numa_nodes=DOMAINS))]),
    'first_touch': ([lambda: node(everything=0.5, detail=record(cpus=CPUS, numa_nodes={'0': 1.0}) | machine(numa_nodes=DOMAINS))],
                    [lambda: node(everything=0.5, detail=record(cpus=CPUS, numa_nodes={'0': 0.5, '1': 0.5}) | machine(numa_nodes=DOMAINS)),
                     # What a check does on purpose is no fault.
                     lambda: node(everything=0.5, detail=record(cpus=CPUS, numa_nodes={'0': 1.0}, options={'init': 'noinit'}) | machine(numa_nodes=DOMAINS))]),
    'memory_module': ([lambda: [*node(everything=0.2), test_('topology', sample.metric('memory', 2e11, 'bytes', verdict='FAIL'))],
                       lambda: [*node(), ended('topology', 'node n1 is not as n2 was: memory 240 GiB, not 256 GiB; if that is right, run with', 'memory_changed')]],
                      [lambda: [*node(), test_('topology', sample.metric('memory', 2e11, 'bytes'))]]),
    'not_as_expected': ([lambda: [*node(cache=0.3, latency=0.3), ended('expectations', 'node n1 is not as expected: net.ib0.state is down, expected up (cpu.yaml)', 'not_as_expected')],
                         lambda: [*node(cache=0.3, latency=0.3), GOVERNOR]],
                        [node, lambda: [*node(), GOVERNOR], lambda: [*node(), ended('expectations', 'cpu.yaml cannot be checked on node n1: not a cpu')]]),
    'memory_channel': ([lambda: node(everything=0.15)], [node, lambda: node(one=0.15, everything=0.15), lambda: node(everything=0.15, cache=0.15)]),
    'memory_below_peak': ([lambda: [*node(), test_('limits', sample.metric('of_peak.memory', 0.5, verdict='FAIL'))]],
                          [lambda: [*node(), test_('limits', sample.metric('of_peak.memory', 0.8))],
                           lambda: [*node(detail=contention(waited=5.0)), test_('limits', sample.metric('of_peak.memory', 0.5, verdict='FAIL'))]]),
    'slow_part': ([lambda: [*node(), test_('within_node', sample.metric('of_median.memory', 0.6, verdict='FAIL', reason='the slowest has CPU 3'))]],
                  [lambda: [*node(), test_('within_node', sample.metric('of_median.memory', 0.97))]]),
    'cache_partitioned': ([lambda: [*node(), test_('triad_memory', row('bandwidth.plain', 0.3), level='L3', detail=machine(capacity={'L3': 2**22}))],
                           lambda: [*node(), test_('capacity', row('capacity.L3', 0.5, 'bytes'), level='L3')]],
                          [lambda: [*node(), test_('triad_memory', row('bandwidth.plain'), level='L3', detail=machine(capacity={'L3': 2**22}))],
                           lambda: [*node(), test_('triad_memory', row('bandwidth.plain', 0.3), level='L3', detail=machine(capacity={'L3': 2**24}))]]),
    'transport': ([lambda: [*node(), ended('pingpong', SWAPPED, 'other_transport')]], [messages, lambda: [*node(), ended('pingpong', SWAPPED)]]),
    'other_transport': ([lambda: messages(latency=0.95, middle=0.9, long=0.7)], [messages, lambda: messages(latency=0.2, middle=0.2, long=0.2)]),
    'eager_moved': ([lambda: messages(middle=0.2), lambda: messages(short=0.8), lambda: messages(short=0.8, long=-0.2)], [messages, lambda: messages(latency=0.2, middle=0.2), lambda: messages(short=0.3, long=0.4)]),
    'single_copy_moved': ([lambda: messages(long=0.4), lambda: messages(middle=0.3, long=0.4), lambda: messages(middle=0.22, long=-0.3)],
                          [messages, lambda: messages(short=0.3, long=0.4), lambda: messages(middle=0.22)]),
    'curve_collapse': ([lambda: messages(halves='FAIL'), lambda: messages(halves='UNSTABLE')], [messages, lambda: messages(halves='UNSTABLE', of_halves=0.6)]),
    'slow_link': ([lambda: pairs(of_median='FAIL'), lambda: pairs(worst=0.5), lambda: patterns('link_errors', 3.0, 'FAIL'),
                   lambda: patterns('of_median.matchings', 0.3, 'FAIL')],
                  [pairs, lambda: patterns('link_errors', 0.0, 'PASS'), lambda: pairs(typical=0.3, worst=0.3)]),
    'slow_switch': ([lambda: pairs(typical=0.3, worst=0.3), lambda: pairs(typical=0.3, worst=0.32, of_median=None)],
                    [pairs, lambda: pairs(worst=0.5), lambda: pairs(typical=0.3, worst=0.6, of_median='FAIL')]),
    'untouched_buffers': ([lambda: messages(standard=0.4)], [messages, lambda: messages(standard=0.4, short=0.76),
                          # The floor of any machine is no reference that messages could have stayed at.
                          lambda: [test_('pingpong', sample.metric('of_halves.standard.shm', 0.1, verdict='FAIL'), sample.metric('latency.swapped.shm', 0.3, 'us'),
                                         sample.metric('bandwidth.swapped.shm', 12e3, 'MB/s'))],
                          lambda: messages(standard=0.4, long=0.4, middle=0.4)]),
    'file_device': ([lambda: files(fsync=0.4, cold=0.4), lambda: files(fsync=0.73, cold=0.86, warm=0.13)], [files, lambda: files(fsync=0.4, cold=0.4, warm=0.4)]),
    'file_cache': ([lambda: files(warm=0.4), lambda: not_warm(['bandwidth.c.read_warm']), lambda: [*files(cold=-9.0), test_('fileio_modes', row('bandwidth.c.write', 0.3))]],
                   [files, lambda: files(warm=0.4, fsync=0.4), lambda: files(cold=-9.0), lambda: not_warm([])]),
}


@functools.cache
def names(cases):
    return [one.rule['name'] for one in diagnose(cases()).findings]


@pytest.mark.parametrize('name', [rule['name'] for rule in diagnosis.rules()])
def test_a_cause_is_named_where_it_is_and_not_where_it_is_not(name):
    faulty, healthy = FAULTS[name]
    for cases in faulty:
        assert names(cases) == [name]
    for cases in healthy:
        assert name not in names(cases)


def test_nothing_is_told_of_a_healthy_session_and_none_fits_is_an_answer():
    for cases in (node, messages, pairs, files, lambda: nontemporal(0.0), lambda: node(detail=record() | machine(capacity={'L3': 2**22}, allowed_cpus=[0]))):
        found = diagnose(cases())
        assert (found.findings, found.none_fits) == ([], '')
    found = diagnose(node(cache=0.3, latency=0.3))
    assert found.findings == [] and found.none_fits.startswith(f'None of the {len(diagnosis.rules())} causes that Plumbline knows fits what is wrong: ')
    assert 'node_speed L1 one flops.L1' in found.none_fits and 'triad_memory' not in found.none_fits
    some = diagnose([*node(latency=0.3), *messages(middle=0.2)])
    assert [one.rule['name'] for one in some.findings] == ['eager_moved'] and 'fits the rest of what is wrong: latency' in some.none_fits


def test_what_is_inferred_gives_way_to_what_is_certain_of_the_same():
    both = node(everything=0.15, detail=contention(waited=5.0))
    assert [one.rule['name'] for one in diagnose(both).findings] == ['noisy_neighbour']
    # What takes 5 % of the time is told, and explains no loss of 15 %.
    little = diagnose(node(everything=0.15, detail=contention(waited=2.0)))
    assert [one.rule['name'] for one in little.findings] == ['noisy_neighbour', 'memory_channel']
    assert diagnose(node(latency=0.3, detail=contention(waited=2.0))).none_fits
    # What was not measured has its own reason.
    assert [one.rule['name'] for one in diagnose([*both, *not_warm(['bandwidth.c.read_warm'])]).findings] == ['noisy_neighbour', 'file_cache']
    apart = [*node(everything=0.15), ended('pingpong', SWAPPED, 'other_transport')]
    assert sorted(one.rule['name'] for one in diagnose(apart).findings) == ['memory_channel', 'transport']


@pytest.mark.parametrize('threads, state, also', [(1, None, True), (2, None, False), (2, {'core_sharing': 1.96}, False), (2, {'core_sharing': 1.0}, True)])
def test_two_threads_on_one_core_explain_nothing_that_had_cores_of_its_own(threads, state, also):
    told = [one.rule['name'] for one in diagnose(blas(threads, state)).findings]
    assert told == ['one_core', *['blas_of_another_processor'] * also]


def test_a_subsystem_that_was_not_judged_needs_no_cause():
    unjudged = [sample.metric(f'latency.memory.{number}', 900.0, 'us', reference=None) | {'recorded_states': json.dumps([{'core_to_core.0': 1e-7}])}
                for number in range(2)]
    found = diagnose([test_('latency', row('latency.memory.huge', 0.0, 'us'), *unjudged), *files(cold=0.8)])
    assert found.findings and not found.none_fits


def test_a_subsystem_is_explained_whatever_other_partitions_there_are():
    '''Each metric within its bounds, and together 8 % worse.'''
    slow = test_('latency', *(row(f'latency.memory.{number}', 0.08, 'us') for number in range(8)), detail=record(huge_page_share=0.0))
    for others in ([], [test_('latency', row('latency.memory.0', 0.0, 'us'), partition='gpu', host='n2')], [test_('fileio', row('bandwidth.c'), partition='gpu')]):
        found = diagnose([slow, *others])
        assert [one.rule['name'] for one in found.findings] == ['no_huge_pages'] and not found.none_fits
    found = diagnose([test_('latency', *(row(f'latency.memory.{number}', 0.08, 'us') for number in range(8))),
                      test_('fileio', row('bandwidth.c'), partition='gpu', host='n2')])
    assert found.unexplained == ['latency of cpu as a whole']


def test_hosts_are_told_apart_and_of_many_some_are_named():
    cases = [sample.case('triad_memory', [row('bandwidth.plain', loss)], threads='all', host=host, detail=contention(waited=waited))
             for host, loss, waited in (('n1', 0.0, 0.0), ('n2', 0.3, 5.0))]
    finding, = diagnose(cases).findings
    assert finding.title == 'n2: The threads did not have the CPUs to themselves' and finding.evidence[0].startswith('other processes took 12 %')
    cases = [sample.case('triad_memory', [row('bandwidth.plain')], threads='all', host=f'n{number}', detail=contention(waited=5.0)) for number in range(9)]
    finding, = diagnose(cases).findings
    assert finding.title.startswith('n0, n1, n2, n3, n4, n5, and 3 more: The threads') and len(finding.hosts) == 9
    assert finding.evidence[0].startswith('n0: other processes')


def test_what_could_not_be_judged_is_explained_as_well_and_no_proof():
    cases = [test_('triad_memory', row('bandwidth.plain', ruling=verdict.UNSTABLE), threads='all', detail=contention(waited=5.0))]
    found = diagnose(cases)
    assert [one.rule['name'] for one in found.findings] == ['noisy_neighbour'] and not found.none_fits
    cases = [*node(latency=0.3), test_('cores', sample.metric('of_base.all', 0.9, verdict=verdict.UNSTABLE))]
    assert diagnose(cases).findings == []


def test_evidence_has_the_numbers():
    text, = ('; '.join(one.evidence) for one in diagnose(FAULTS['lost_vectorisation'][0][0]()).findings)
    assert text.endswith(', plain: the code is scalar, that of the references was 512-bit'), text
    text, = ('; '.join(one.evidence) for one in diagnose(FAULTS['first_touch'][0][0]()).findings)
    assert text.endswith('plain: 50 % of the pages lay in another NUMA domain than its threads'), text
    text, = ('; '.join(one.evidence) for one in diagnose(FAULTS['memory_channel'][0][0]()).findings)
    assert text.startswith('memory, all threads: 15 % worse than the references (1 metric); memory, one thread: as in the references'), text


@pytest.mark.parametrize('change, said', [
    ({'when': {'eval': '1'}}, 'field 0/when'), ({'when': {'state': {'name': 'cat', 'above': 1}}}, 'field 0/when/state/name'),
    ({'when': {'loss': {'metric': 'a'}}}, 'field 0/when/loss'), ({'confidence': 'sure'}, 'field 0/confidence'), ({'look': []}, 'field 0/look')])
def test_a_rule_that_is_not_one_is_refused(change, said):
    assert schemas.complaint('diagnosis', diagnosis.rules()) is None
    assert schemas.complaint('diagnosis', [diagnosis.rules()[0] | change]).startswith(said)


def test_the_schema_names_the_states_that_there_are():
    schema = schemas.validator('diagnosis').schema
    assert set(schema['$defs']['condition']['properties']['state']['properties']['name']['enum']) == set(host_states.STATES)
    assert set(FAULTS) == {rule['name'] for rule in diagnosis.rules()}


def test_what_differs_from_expectations_stands_beside_what_is_slow_and_explains_nothing():
    found = diagnose([*node(cache=0.3, latency=0.3), GOVERNOR])
    finding, = found.findings
    assert finding.evidence == ('cpu.governor is powersave, expected performance',) and 'node_speed L1 one flops.L1' in found.none_fits


def test_what_one_node_left_out_is_no_cause_on_the_others_and_what_never_ran_is_of_no_node():
    def fileio(host, *skipped):
        return sample.case('fileio', [row('bandwidth.write')], host=host, detail={'skipped': list(skipped)})
    lost = {'metric': 'bandwidth.read_warm', 'reason': 'it was not read from the cache', 'symptom': 'not_warm', 'referenced': ['bandwidth.read_warm'],
            'subsystems': ['files']}
    never = sample.case('gather', result='fail', fail_phase='compile', fail_reason='no cc', host=None, verdict='FAIL', reason='no cc')
    finding, = (one for one in diagnose([fileio('n1', lost), fileio('n2'), fileio('n3'), never]).findings if one.rule['name'] == 'file_cache')
    assert finding.hosts == ('n1',) and finding.title.startswith('n1: The cache of a file system')
