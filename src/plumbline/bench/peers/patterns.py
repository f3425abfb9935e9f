'''Gather and scatter against Spatter, on the same patterns.'''

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns
from plumbline.errors import PlumblineError
from plumbline.model import records, spatter
from plumbline.system import topology

STRIDES = (1, 2, 4, 8, 16, 31, 32, 64)

#: Runs of each pattern in one process, of which Spatter reports the best; so do we.
RUNS = 10

#: Indices of the random pattern: many times the lines of any first-level cache.
RANDOM_LENGTH = 2**14

#: Kernel, stride, delta and count of the patterns of 16 indices that LULESH has (Spatter's standard suite, app-traces).
LULESH = (('Scatter', 24, 0, 577806), ('Gather', 8, 1, 231198), ('Scatter', 8, 1, 167805), ('Scatter', 24, 8, 128002),
          ('Gather', 24, 4, 96360), ('Gather', 24, 8, 96360), ('Scatter', 24, 1, 88011), ('Gather', 1, 8, 76794),
          ('Gather', 1, 41, 76794), ('Gather', 1, 1, 76794), ('Gather', 24, 1, 72270))


def patterns(size):
    '''(name, configuration of Spatter): LULESH's, and gathers of sparse arrays with ``size`` bytes of lines that are touched.'''
    for stride in STRIDES:
        yield f'gather stride {stride}', {'kernel': 'Gather', 'pattern': f'UNIFORM:8:{stride}:NR', 'count': size // (64 * min(stride, 8))}
    drawn = random.Random(1).sample(range(size // 8), RANDOM_LENGTH)
    yield 'gather random', {'kernel': 'Gather', 'pattern': drawn, 'delta': 8, 'count': size // 64 // RANDOM_LENGTH}
    for kernel, stride, delta, count in LULESH:
        yield f'LULESH {kernel.lower()} stride {stride} delta {delta}', {
            'kernel': kernel, 'pattern': [stride * i for i in range(16)], 'delta': delta, 'count': count}


def spatter_rates(program, cpus, file):
    '''Bandwidth of every configuration of a file by Spatter, MB/s, shape (configurations,).'''
    command = [program, '-b', 'serial' if len(cpus) == 1 else 'openmp', '-r', RUNS, '-f', file]
    if len(cpus) > 1:
        command += ['-t', len(cpus), '--dense-buffers']    # the threads do not write one line in turn: its better way
    lines = found.run(command, cpus).splitlines()
    heading = [i for i, line in enumerate(lines) if line.startswith('config ')]
    if not heading:
        raise PlumblineError(f'{program}: no table of configurations; give a Spatter of version 2, built with OpenMP')
    return np.array([float(line.split()[3]) for line in lines[heading[0] + 1:] if line.strip()])


def our_rates(machine, cpus, file, names):
    rates: dict[str, dict[str, Any]] = {name: {} for name in names}
    for record in machine.run('gather_patterns', cpus, '--pattern', file, '--config', ','.join(map(str, range(1, len(names) + 1))),
                              '--variants', ','.join(machine.variants('gather_patterns')), '--samples', RUNS, '--passes', 1):
        rates[names[record['options']['config'] - 1]][record['variant']] = records.rate(record)
    return rates


def figures(machine, cpus, pairs):
    size = topology.working_set(machine.processor, 'memory', machine.cpus, machine.memory)
    names, configs = zip(*patterns(size))
    theirs, ours = (Path(machine.folder) / name for name in ('patterns.json', 'patterns.txt'))
    theirs.write_text(json.dumps(configs))
    ours.write_text(spatter.lines(spatter.read(theirs)))

    def run(cpus):
        rates = {program.name: spatter_rates(program, cpus, theirs) for program in found.programs('spatter')}
        return {name: {way: found[i] for way, found in rates.items()} for i, name in enumerate(names)}
    yield from by_turns(machine, '', cpus, lambda cpus: our_rates(machine, cpus, ours, names), [Peer('Spatter', run, np.max)], pairs)
