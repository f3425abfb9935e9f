'''Made-up run reports and records for the tests of what reads them; nothing here was measured.'''

import json

from plumbline.model import registry

MACHINE = {
    'record': 'machine', 'schema': 1, 'hostname': 'n1', 'cpu_model': 'Made-up CPU',
    'microcode': None, 'kernel': '6.1.0', 'governor': None, 'huge_pages': 'always [madvise] never',
    'numa_balancing': '0', 'mitigations': {'meltdown': 'Not affected'}, 'memory_kib': 1024,
    'allowed_cpus': [0, 1], 'cpu_quota': None,
    'caches': [{'level': 1, 'size': 32768, 'line': 64, 'shared_cpus': [0]}],
    'numa_nodes': [{'node': 0, 'cpus': [0, 1]}], 'clock_resolution': 2.5e-8,
}

MEASUREMENT = {
    'record': 'measurement', 'schema': 1, 'kernel': 'triad', 'variant': 'plain', 'isa': None,
    'role': 'kernel', 'group': 0, 'size': 1000, 'threads': 1, 'ranks': 1, 'options': {},
    'compiler': 'gcc 12.2.0', 'flags': '-O3', 'level': 'memory', 'working_set': 32000,
    'passes': 10, 'seconds': [0.5] * 10, 'bytes': 1e9, 'flops': 6e7, 'traffic': 1.25e9,
    'traffic_source': 'write-allocate', 'valid': True, 'max_error': 0.0, 'tolerance': 0.0, 'cpus': [0],
    'numa_nodes': {'0': 1.0}, 'page_size': 4096, 'huge_page_share': None,
    'clock_resolution': 2.5e-8,
}

#: References that hold anywhere, of a test that nobody has.
PORTABLE = '''
Triad:
  $index: [$partition, $environ, threads]
  .*:
    .*:
      one:
        of_limit.plain: [1.0, -0.2, 0.1, '1']
        of_limit.nt: [1.0, -0.3, 0.1, '1']
      .*:
        of_limit.plain: [1.0, -0.4, 0.1, '1']
    clang.*:
      one:
        never: [1.0, -0.1, null, '1']
'''


def measurement(**changed):
    '''A measurement record.'''
    return {**MEASUREMENT, **changed}


def metric(name='bandwidth.plain', value=1000.0, unit='MB/s', **changed):
    '''A judged metric as a check leaves it.'''
    kind, _, subject = name.partition('.')
    part = next((part for part in subject.split('.') if part in ('L1', 'L2', 'L3')), registry.MEMORY)
    return {'name': name, 'metric': kind, 'subject': subject or None, 'value': value,
            'unit': unit, 'samples': [value] * 10, 'n': 10, 'spread': 0.01,
            'interval': [0.99 * value, 1.01 * value], 'reference': [value, -0.1, None],
            'reference_from': 'made.yaml', 'limit': None, 'verdict': 'PASS', 'reason': 'within',
            'subsystem': registry.subsystem(kind, part, threads='one') if kind in registry.METRICS else part, **changed}


def result(*metrics, **changed):
    '''What a check leaves in its variable ``plumbline``.'''
    return {'schema': 1, 'question': 'Is it?', 'threads': 'one', 'level': 'memory',
            'metrics': list(metrics), 'records': [MEASUREMENT], 'machine': MACHINE,
            'timed_seconds': 5.0, **changed}


def case(name='Triad %threads=one', plumbline=None, result='pass', **changed):
    '''A test case of a run report, with the keys that the archive reads.'''
    return {'name': name, 'unique_name': name.replace(' %', '_'), 'system': 'made',
            'partition': 'cpu', 'environ': 'gnu', 'result': result, 'fail_phase': None,
            'fail_reason': None, 'fixture': False, 'job_nodelist': ['n1'], 'perfvalues': {},
            'time_total': 1.5, 'plumbline': {} if plumbline is None else plumbline, **changed}


def of_another_suite(*values, name='StreamTest', **changed):
    '''A test case with ReFrame's performance variables and nothing of ours.

    :arg values: (name, [value, reference, lower, upper, unit, ReFrame's result]) of each.
    '''
    failed = any(entry[-1] == 'fail' for _, entry in values)
    found = {**case(name, result='fail' if failed else 'pass'), 'fail_phase': 'performance' if failed else None,
             'perfvalues': {f'made:cpu:{variable}': entry for variable, entry in values}, **changed}
    del found['plumbline']
    return found


def write_report(path, *runs, start=1.8e9, uuid='12345678-0000', cmdline='reframe -r'):
    '''Write a run report of some runs, each a list of test cases.'''
    report = {'session_info': {'uuid': uuid, 'time_start_unix': start, 'hostname': 'login',
                               'version': '4.10.4', 'cmdline': cmdline, 'time_elapsed': 2.0},
              'runs': [{'run_index': i, 'testcases': run} for i, run in enumerate(runs)],
              'restored_cases': []}
    path.write_text(json.dumps(report))
    return path
