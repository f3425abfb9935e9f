'''Data motion against likwid-bench's loops, and the ratios of anderson1997 then and now.'''

from plumbline.bench.common import Figure, teams, threads_text
from plumbline.bench.peers.streams import over_likwid
from plumbline.model import limits, sources
from plumbline.system import topology

#: Variant, likwid-bench's family of kernels, least ratio.
_AGAINST_LIKWID = (('copy_nt', 'copy', 1.0), ('fill_nt', 'store', 1.0), ('load', 'load', 0.95))

#: Variants, their ratio then (MB/s on the Cray T3E-900), and where that stands.
_TABLE3, _TABLE5 = 'anderson1997-table3-streams', 'anderson1997-table5-data-motion'
_THEN = (('copy_nt', 'copy', sources.ratio(_TABLE5, 'stride1_copy', 'stride1_copy', 'bypass', 'cached'), 'table 5'),
         ('fill_nt', 'fill', sources.ratio(_TABLE5, 'fill', 'fill', 'bypass', 'cached'), 'table 5'),
         ('load', 'fill', sources.ratio(_TABLE3, 'load', 'store', 'streams_on'), 'table 3, streams on'),
         ('load', 'copy', sources.ratio(_TABLE3, 'load', 'load_store', 'streams_on'), 'table 3, streams on'))

#: The same of strides: (variant, stride) of both.
_THEN_STRIDED = ((('read_nt', 31), ('read', 31), sources.ratio(_TABLE5, 'stride31_copy', 'stride31_copy', 'bypass', 'cached')),
                 (('read', 31), ('read', 1), sources.ratio(_TABLE5, 'stride31_copy', 'stride1_copy', 'cached')),
                 (('read_nt', 31), ('read_nt', 1), sources.ratio(_TABLE5, 'stride31_copy', 'stride1_copy', 'bypass')))


def then_and_now(machine, cpus, size):
    found = {r['variant']: r for r in machine.run(
        'motion', cpus, '--variants', 'fill,fill_nt,load,copy,copy_nt', '--size', size // 8, '--samples', 50)}
    for one, other, then, where in _THEN:
        yield Figure(f'memory, {threads_text(cpus)}: {one} / {other}',
                     limits.paired_ratio(found[one], found[other], 'bytes'),
                     remark=f'then {then:.2f} (anderson1997, {where})')
    stride = {(r['variant'], r['options']['stride']): r for r in machine.run(
        'strided', cpus, '--variants', 'read,read_nt', '--stride', '1,31', '--size', size // 8, '--samples', 50)}
    for faster, slower, then in _THEN_STRIDED:
        yield Figure(f'memory, {threads_text(cpus)}: stride {faster[1]} {faster[0]} / stride {slower[1]} {slower[0]}',
                     limits.paired_ratio(stride[faster], stride[slower], 'bytes'),
                     remark=f'then {then:.2f} (anderson1997, table 5)')


def gives_up(machine, cpus, size):
    '''Bandwidth of 16 streams over that of four: then loops lost the stream buffers beyond six streams.'''
    four, sixteen = machine.run('concurrent', cpus, '--streams', '4,16', '--size', size // 8, '--samples', 50)
    return Figure(f'memory, {threads_text(cpus)}: 16 concurrent streams / 4',
                  limits.paired_ratio(sixteen, four, 'bytes'),
                  remark='then there were six stream buffers (anderson1997, section 3.2.1)')


def figures(machine, pairs):
    '''Yield every :class:`Figure`; the ratios then and now have no target.'''
    for cpus in teams(machine):
        size = topology.working_set(machine.processor, 'memory', cpus, machine.memory)
        for variant, family, least in _AGAINST_LIKWID:
            yield from over_likwid(machine, cpus, pairs, 'motion', variant, family, 'memory', least)
        yield from then_and_now(machine, cpus, size)
        yield gives_up(machine, cpus, size)
