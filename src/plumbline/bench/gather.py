'''Gather against the public Spatter on the same patterns, and the pair of the source.

Spatter is built outside of this tree, with OpenMP: ``PLUMBLINE_SPATTER`` names the program, else ``spatter`` in PATH is taken.
'''

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np

from plumbline import limits, metrics, spatter, topology
from plumbline.bench.common import Figure, threads_text
from plumbline.errors import PlumblineError
from plumbline.likwid import pin

STRIDES = (1, 2, 4, 8, 16, 31, 32, 64)

#: Ways to write the loop that are compared; the best at each pattern counts, and is named.
VARIANTS = ('plain', 'unroll', 'prefetch')

#: Runs of each pattern in one process, of which Spatter reports the best; so do we.
RUNS = 10

#: Indices of the random pattern: many times the lines of any first-level cache.
RANDOM_LENGTH = 2**14


def spatter_program():
    '''Path of Spatter, or :obj:`None`.'''
    return shutil.which(os.environ.get('PLUMBLINE_SPATTER', 'spatter'))


def patterns(size):
    '''(name, configuration of Spatter) of patterns whose sparse arrays have ``size`` bytes of lines that are touched.'''
    for stride in STRIDES:
        yield f'stride {stride}', {'kernel': 'Gather', 'pattern': f'UNIFORM:8:{stride}:NR',
                                   'count': size // (64 * min(stride, 8))}
    drawn = random.Random(1).sample(range(size // 8), RANDOM_LENGTH)
    yield 'random', {'kernel': 'Gather', 'pattern': drawn, 'delta': 8, 'count': size // 64 // RANDOM_LENGTH}


def spatter_rates(program, backend, cpus, file):
    '''Bandwidth of every configuration of a file by Spatter, MB/s, shape (configurations,).'''
    command = ['taskset', '-c', ','.join(map(str, cpus)), program, '-b', backend, '-r', str(RUNS), '-f', file]
    if backend == 'openmp':
        command += ['-t', str(len(cpus)), '--dense-buffers']    # the threads do not write one line in turn: its better way
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **pin.omp_environment(cpus)})
    heading = [i for i, line in enumerate(done.stdout.splitlines()) if line.startswith('config ')]
    if done.returncode or not heading:
        said = (done.stderr.strip() or done.stdout.strip() or 'nothing').splitlines()[-1]
        raise PlumblineError(f'{program} -b {backend} failed: {said}; PLUMBLINE_SPATTER must name a Spatter built with OpenMP')
    return np.array([float(line.split()[3]) for line in done.stdout.splitlines()[heading[0] + 1:] if line.strip()])


def our_rates(machine, cpus, file, count):
    '''Bandwidth in MB/s, the best of as many runs as Spatter makes; shape (variants, configurations).'''
    found = machine.run('gather_patterns', cpus, '--pattern', file, '--config', ','.join(map(str, range(1, count + 1))),
                        '--variants', ','.join(VARIANTS), '--samples', RUNS, '--passes', 1)
    return np.array([[r['bytes'] / min(r['seconds']) / 1e6 for r in found if r['variant'] == name] for name in VARIANTS])


def spatter_figures(machine, pairs, program):
    size = topology.working_set(machine.processor, 'memory', machine.cpus, machine.memory)
    names, configs = zip(*patterns(size))
    theirs, ours = (Path(machine.folder) / name for name in ('patterns.json', 'patterns.txt'))
    theirs.write_text(json.dumps(configs))
    ours.write_text(spatter.lines(spatter.read(theirs)))
    for backend, cpus in (('serial', machine.cpus[:1]), ('openmp', machine.cpus)):
        ratios = []
        for _ in range(pairs):
            rates = our_rates(machine, cpus, str(ours), len(configs))
            ratios.append(rates / spatter_rates(program, backend, cpus, str(theirs)))
        for i, name in enumerate(names):
            of_pattern = np.array(ratios)[:, :, i]
            best = int(np.argmax(np.median(of_pattern, axis=0)))
            plain = np.median(of_pattern[:, VARIANTS.index('plain')])
            yield Figure(f'memory, {threads_text(cpus)}: gather {name}, best variant / Spatter, {backend} back end',
                         of_pattern[:, best], 1.0, remark=f'{VARIANTS[best]}; plain {plain:.2f}')


def then_and_now(machine):
    '''1000 random of 100000 elements: the way that is made for it over the ordinary one (anderson1997, table 5).'''
    found = machine.run('gather', machine.cpus[:1], '--variants', 'all', '--indices', 'random', '--span', 100, '--size', 1000,
                        '--samples', 200)
    by_variant = {record['variant']: record for record in metrics.kernels(found)}
    for variant in ('simd', 'prefetch'):
        if variant in by_variant:
            yield Figure(f'gather of 1000 random of 100000: {variant} / novec',
                         limits.paired_ratio(by_variant[variant], by_variant['novec'], 'bytes'),
                         remark='then 5.75 (E-registers against cache; anderson1997, table 5)')


def figures(machine, pairs):
    '''Yield every :class:`Figure`; without a Spatter, say that there is none.'''
    yield from then_and_now(machine)
    program = spatter_program()
    if program:
        yield from spatter_figures(machine, pairs, program)
    else:
        yield Figure('gather against Spatter', np.array([]),
                     remark='spatter is not in PATH: build it, with OpenMP, or name it in PLUMBLINE_SPATTER')
