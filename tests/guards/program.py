#!/usr/bin/env python3
'''Stands in for a native program: prints records as the story says, without measuring anything.  ``CANNED_WAITED`` is the share of the
time that it waited for its CPUs, in a first run and in a second.

The triad moves 10 GB/s of application bytes, 12.5 GB/s of traffic, as fast as the limit stream.
'''

import argparse
import json
import os
import sys
import time
from pathlib import Path

MACHINE = {
    'record': 'machine', 'schema': 1, 'hostname': 'made', 'cpu_model': 'made-up CPU',
    'microcode': None, 'kernel': '0', 'governor': None, 'huge_pages': None,
    'numa_balancing': None, 'mitigations': None, 'memory_kib': 1024, 'allowed_cpus': None,
    'cpu_quota': None, 'caches': None, 'numa_nodes': None, 'clock_resolution': 1e-8}


def stamp(what):
    '''Leave the time in a file, for those who ask what overlapped.'''
    if 'CANNED_STAMPS' in os.environ:
        with open(os.environ['CANNED_STAMPS'], 'a') as file:
            file.write(f'{what} {time.time():.6f} {Path.cwd().name}\n')


def is_first_time():
    mark = Path(os.environ['CANNED_MARK'])
    first = not mark.exists()
    mark.touch()
    return first


def number_of_this_process():
    number = len(list(Path().glob('process-*')))
    Path(f'process-{number}').touch()
    return number


def contention(share):
    return {'record': 'contention', 'schema': 1, 'threads': 1, 'elapsed': 10.0, 'throttled': 0.0, 'waited': 10.0 * float(share), 'stolen': 0.0}


def record(options, variant, role, factor=1.0, noise=(0.01, -0.01)):
    '''A measurement that takes ``factor`` times as long as it should, with this noise over and over.

    Its option ``environment`` is what the program sees of the environment it was given.
    '''
    cpus = [int(cpu) for cpu in options.cpus.split(',')]
    return {'record': 'measurement', 'schema': 1, 'kernel': 'triad', 'variant': variant,
            'isa': None, 'role': role, 'group': 0, 'size': int(options.size), 'threads': len(cpus),
            'ranks': 1, 'options': {'environment': os.environ.get('OMP_NUM_THREADS')},
            'compiler': 'made 1', 'flags': '-O9', 'level': 'memory',
            'working_set': 32 * int(options.size), 'passes': 1,
            'seconds': [0.01 * factor * (1 + noise[i % len(noise)])
                        for i in range(options.samples)],
            'bytes': 1e8, 'flops': 6.25e6, 'traffic': 1.25e8, 'traffic_source': 'made up',
            'valid': True, 'max_error': 0.0, 'tolerance': 0.0, 'cpus': cpus, 'numa_nodes': {'0': 1.0},
            'page_size': 4096, 'huge_page_share': None, 'clock_resolution': 1e-8}


#: story -> (factor of the triad, of each process where they differ; what is changed in its record).
STORIES = {
    'slow': ((2.0,), {}),
    'impossible': ((0.8,), {}),
    'noisy': ((0.6, 1.0, 1.8), {}),
    'wavering': ((0.97, 1.0, 1.2), {}),
    'invalid': ((1.0,), {'valid': False, 'max_error': 0.25}),
    'flipped': ((1.0,), {'valid': False, 'max_error': 0.25}),
    'elsewhere': ((0.9,), {'cpus': [4095]}),
    'level': ((1.0,), {'level': 'L3'}),
    'endless': ((1.0,), {'seconds': [float('nan')] * 25}),
    'short': ((1.0,), {'seconds': [1e-6] * 25}),
    'few': ((1.0,), {'seconds': [0.01] * 9}),
    'timeless': ((1.0,), {'seconds': [0.0] * 25}),
}


#: story -> what is said on standard error, and the exit code.
ENDS = {'crash': ('a made-up crash', 3), 'flipped': ('triad plain, size 1, 1 threads: the result is wrong (error 0.25): do not use its time', 1)}

#: story -> state of each sample, over and over: (latency before, after) in ns, and how many times as long it takes.
FAR, NEAR, CHANGED = (110, 110, 1.0), (17, 17, 2.0), (110, 17, 1.5)
STATES = {'far': [FAR], 'near': [NEAR], 'mostly_far': [FAR, FAR, NEAR], 'mostly_near': [NEAR, NEAR, FAR],
          'flicker': [CHANGED, CHANGED, CHANGED, FAR, NEAR]}


def in_states(record, pattern):
    '''A record whose samples were taken in these states of the machine.'''
    met = [pattern[i % len(pattern)] for i in range(len(record['seconds']))]
    latency = {side: [[1e-9 * (state[place] + 0.1 * (i % 3))] for i, state in enumerate(met)]
               for place, side in enumerate(('before', 'after'))}
    return {**record, 'seconds': [seconds * state[2] for seconds, state in zip(record['seconds'], met)],
            'probes': {'core_to_core': latency, 'seconds': 0.001}}


def main():
    if '--list' in sys.argv:
        print('triad: made up\n  plain          -        nothing at all')
        return 0
    parser = argparse.ArgumentParser()
    for option in ('--story', '--size', '--cpus', '--capacity'):
        parser.add_argument(option)
    parser.add_argument('--samples', type=int)
    options, _ = parser.parse_known_args()
    story = options.story or 'good'
    stamp('begin')
    process = number_of_this_process()
    if 'CANNED_STAMPS' in os.environ:
        time.sleep(0.3)
    if story.startswith('once '):
        story = story.removeprefix('once ') if is_first_time() else 'good'
    speed, changed = STORIES.get(story, ((1.0,), {}))
    found = []
    *_, options.size = sizes = options.size.split(',')
    if sizes[1:]:
        found = [{**record(options, 'plain', 'kernel'), 'size': int(sizes[0]), 'level': 'L1'}]
    found += [{**record(options, 'load', 'limit'), 'bytes': 1.25e8}, {**record(options, 'plain', 'kernel', speed[process % len(speed)]), **changed}]
    if story in STATES:
        found = [in_states(one, STATES[story]) for one in found]
    lines = [json.dumps(MACHINE), *map(json.dumps, found)]
    if story == 'missing':
        lines.pop()
    if story == 'truncated':
        lines[-1] = lines[-1].partition('"passes"')[0]
    if 'CANNED_WAITED' in os.environ:
        lines.append(json.dumps(contention(os.environ['CANNED_WAITED'].split()['_retry' in Path.cwd().name])))
    print('' if story == 'silent' else '\n'.join(lines))
    stamp('end')
    said, code = ENDS.get(story, ('', 0))
    if said:
        print(f'plumbline: {said}', file=sys.stderr)
    return code


sys.exit(main())
