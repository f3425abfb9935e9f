'''FDTD against the limit of its traffic, and the ratios of anderson1997 then and now.'''

from plumbline.bench.common import Figure, best_of_limit, teams, threads_text
from plumbline.model import limits, sources
from plumbline.system import topology

#: Loop, what the compiler may assume, the two variants, and their ratio then (Mflop/s on the Cray T3E-900, table 4).
_BY_HAND, _BY_COMPILER = (sources.ratio('anderson1997-table4-fdtd', row, 'fused', 'mflops') for row in ('manual_split_exey_ez', 'compiler_split'))
_THEN = (('split2 / fused as written', 'split2', 'fused', _BY_HAND),
         ('split2 / fused, restrict', 'split2_restrict', 'fused_restrict', _BY_HAND),
         ('split2 / fused, Fortran', 'fortran_split2', 'fortran_fused', _BY_HAND),
         ('split3 / fused as written', 'split3', 'fused', None),
         ('split3 / fused, restrict', 'split3_restrict', 'fused_restrict', None),
         ('split3 / fused, Fortran', 'fortran_split3', 'fortran_fused', None),
         ('split by the compiler / fused, restrict', 'distributed_restrict', 'fused_restrict', _BY_COMPILER),
         ('split by the compiler / fused, Fortran', 'fortran_distributed', 'fortran_fused', _BY_COMPILER))


def then_and_now(machine, cpus, edge):
    found = {r['variant']: r for r in machine.run('fdtd', cpus, '--variants', 'all', '--size', edge, '--samples', 50)}
    for what, split, fused, then in _THEN:
        if split in found and fused in found:
            yield Figure(f'{edge} x {edge} x {edge - 1}, {threads_text(cpus)}: fdtd {what}',
                         limits.paired_ratio(found[split], found[fused], 'flops'),
                         remark=f'then {then:.2f} (anderson1997, table 4)' if then else '')


def figures(machine, pairs):
    '''Yield every :class:`Figure`; the ratios then and now have no target.'''
    for cpus in teams(machine):
        points = topology.working_set(machine.processor, 'memory', cpus, machine.memory) // 24
        edge = 16 * (int(points ** (1 / 3)) // 16 + 1 | 1)      # as in checks/apps/fdtd_splitting.py
        options = ['--variants', 'fused_restrict,fused_prefetch,split2_restrict,split3_restrict', '--size', edge]
        yield best_of_limit(machine, 'fdtd', cpus, options, pairs, 0.75)
        for size in (129, edge):
            yield from then_and_now(machine, cpus, size)
