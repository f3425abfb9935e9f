'''The Jacobi sweep against the limit of its traffic, and what padding the nine-point kernel gains, then and now.'''

import numpy as np

from plumbline.bench.common import Figure, teams, threads_text
from plumbline.model import limits, records
from plumbline.system import topology

#: Share of the limit that the best variant of the sweep must reach in memory.
_TARGET = 0.75

#: anderson1997, section 3.1.3: 156 Mflop/s as declared, 311 padded.
_THEN = 311 / 156


def jacobi_figures(machine, cpus, pairs):
    '''``of_limit`` of the fastest variant, a sample of each process; and what blocking gains where planes do not stay.'''
    # The edge of a cube whose two copies are a working set in memory; rows of whole cache lines.
    size = topology.working_set(machine.processor, 'memory', cpus, machine.memory)
    edge = int((size / 16) ** (1 / 3)) // 16 * 16 + 2
    runs = [machine.run('jacobi', cpus, '--variants', 'all', '--size', edge, '--samples', 25, '--limit') for _ in range(pairs)]
    shares = [limits.of_limit(found) for found in runs]
    median = {name: np.array([found[name].value for found in shares]) for name in shares[0]}
    times = {name: np.median([np.median(records.per_pass(r)) for found in runs for r in found if r['variant'] == name]) for name in median}
    fastest = min(times, key=times.__getitem__)
    yield Figure(f'memory, {threads_text(cpus)}: jacobi, limit of its traffic, {fastest}', median[fastest], _TARGET,
                 remark='the fastest; of limit: ' + ', '.join(f'{name} {np.median(median[name]):.2f}' for name in median))
    # Three planes are four times the cache of a thread.
    share = topology.last_level_share(machine.processor, cpus)
    edge = int((4 * share / 24) ** 0.5) // 16 * 16 + 2
    flat = {r['variant']: r for r in machine.run('jacobi', cpus, '--variants', 'all', '--size', edge, '--planes', 8 * len(cpus) + 2, '--samples', 25)}
    for name, other in (('blocked', 'plain'), ('blocked_prefetch', 'prefetch')):
        if name in flat:
            yield Figure(f'memory, {threads_text(cpus)}: jacobi of large planes, {name} / {other}',
                         limits.paired_ratio(flat[name], flat[other], 'flops'))


def padding(machine, cpus):
    '''Then padded columns and arrays were twice as fast, on a grid of 513 x 513.'''
    found = {(r['variant'], r['size']): r for r in machine.run('ninepoint', cpus, '--variants', 'all', '--size', '512,513', '--samples', 50)}
    for size in (513, 512):
        for name in ('padded', 'aligned', 'conflicting'):
            then = f'then {_THEN:.2f} (anderson1997, section 3.1.3)' if (name, size) == ('padded', 513) else 'not in the source'
            yield Figure(f'n = {size}, {threads_text(cpus)}: ninepoint {name} / plain',
                         limits.paired_ratio(found[name, size], found['plain', size], 'flops'), remark=then)


def figures(machine, pairs):
    '''Yield every :class:`Figure`; the ratios then and now have no target.'''
    for cpus in teams(machine):
        yield from jacobi_figures(machine, cpus, pairs)
        yield from padding(machine, cpus)
