'''Sparse matrix times vector against the limit of its traffic, and the ratios of anderson1997 then and now.'''

import numpy as np

from plumbline.bench.common import Figure, threads_text
from plumbline.model import limits, sources
from plumbline.system import topology

#: Variant, what it is compared with, the ratio then (Mflop/s on the Cray T3E-900, anderson1997, table 7), and what it stands for.  No
#: load goes past the caches today: `prefetch` is plain, and `stream` is `unroll`, with the lines fetched ahead.
_BYPASS, _LIBRARY = (sources.ratio('anderson1997-table7-spmv', row, 'naive', 'mflops') for row in ('cache_bypass', 'library'))
_THEN = (('prefetch', 'plain', _BYPASS, 'cache bypassed'), ('stream', 'unroll', _BYPASS, 'cache bypassed'),
         ('sell', 'plain', _LIBRARY, 'library'), ('sell_stream', 'plain', _LIBRARY, 'library'))


def _of_limit(machine, cpus, rows, pairs):
    '''The best variant's share of the limit in memory, x in the first-level cache: the medians of some runs.'''
    band = max(1, topology.capacity(machine.processor, 'L1', cpus[:1]) // 256)      # as checks/memory/spmv_memory.py
    options = ['--variants', 'unroll,stream,sell,sell_stream', '--size', rows, '--columns', 'banded', '--band', band]
    runs = [limits.of_limit(machine.run('spmv', cpus, *options, '--limit', '--samples', 25)) for _ in range(pairs)]
    shares = {variant: np.array([run[variant].value for run in runs]) for variant in runs[0]}
    best = max(shares, key=lambda variant: np.median(shares[variant]))
    return Figure(f'memory, {threads_text(cpus)}: spmv {best} / limit of its traffic', shares[best], 0.7)


def _then_and_now(machine, cpus, rows, where):
    found = {r['variant']: r for r in machine.run('spmv', cpus, '--variants', 'plain,unroll,prefetch,stream,sell,sell_stream',
                                                  '--size', rows, '--samples', 50)}
    for variant, other, then, what in _THEN:
        yield Figure(f'{where}, {threads_text(cpus)}: spmv {variant} / {other}',
                     limits.paired_ratio(found[variant], found[other], 'flops'),
                     remark=f'then {then:.2f} ({what}; anderson1997, table 7)')


def figures(machine, pairs):
    '''Yield every :class:`Figure`; the ratios then and now have no target.'''
    for cpus in (machine.cpus[:1], machine.cpus):
        rows = topology.working_set(machine.processor, 'memory', cpus, machine.memory) // (12 * 133 + 24)
        yield _of_limit(machine, cpus, rows, pairs)
        yield from _then_and_now(machine, cpus, 7000, '7000 rows')
        yield from _then_and_now(machine, cpus, rows, 'memory, random columns')
