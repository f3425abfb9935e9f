'''Sparse matrix times vector against the limit of its traffic, and the ratios of anderson1997 then and now.'''

from plumbline.bench.common import Figure, best_of_limit, teams, threads_text
from plumbline.model import limits, sources
from plumbline.system import topology

#: Variant, what it is compared with, the ratio then (Mflop/s on the Cray T3E-900, anderson1997, table 7), and what it stands for.  No
#: load goes past the caches today: `prefetch` is plain, and `stream` is `unroll`, with the lines fetched ahead.
_BYPASS, _LIBRARY = (sources.ratio('anderson1997-table7-spmv', row, 'naive', 'mflops') for row in ('cache_bypass', 'library'))
_THEN = (('prefetch', 'plain', _BYPASS, 'cache bypassed'), ('stream', 'unroll', _BYPASS, 'cache bypassed'),
         ('sell', 'plain', _LIBRARY, 'library'), ('sell_stream', 'plain', _LIBRARY, 'library'))


def _then_and_now(machine, cpus, rows, where):
    found = {r['variant']: r for r in machine.run('spmv', cpus, '--variants', 'plain,unroll,prefetch,stream,sell,sell_stream',
                                                  '--size', rows, '--samples', 50)}
    for variant, other, then, what in _THEN:
        yield Figure(f'{where}, {threads_text(cpus)}: spmv {variant} / {other}',
                     limits.paired_ratio(found[variant], found[other], 'flops'),
                     remark=f'then {then:.2f} ({what}; anderson1997, table 7)')


def figures(machine, pairs):
    '''Yield every :class:`Figure`; the ratios then and now have no target.'''
    for cpus in teams(machine):
        rows = topology.working_set(machine.processor, 'memory', cpus, machine.memory) // (12 * 133 + 24)
        band = max(1, topology.capacity(machine.processor, 'L1', cpus[:1]) // 256)      # x in the first-level cache, as checks/memory/spmv_memory.py
        yield best_of_limit(machine, 'spmv', cpus, ['--variants', 'unroll,stream,sell,sell_stream', '--size', rows, '--columns', 'banded',
                                                    '--band', band], pairs, 0.7)
        yield from _then_and_now(machine, cpus, 7000, '7000 rows')
        yield from _then_and_now(machine, cpus, rows, 'memory, random columns')
