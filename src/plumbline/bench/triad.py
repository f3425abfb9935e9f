'''The triad against likwid-bench's, and its timing.'''

from plumbline.bench.common import Figure, over_likwid, threads_text
from plumbline.model import limits
from plumbline.system import topology


def likwid_figures(machine, pairs):
    for cpus in (machine.cpus[:1], machine.cpus):
        for variant, kernel, level, least in (
                ('nt', 'triad_mem_avx_fma', 'memory', 1.10), ('simd', 'triad_avx_fma', 'L1', 0.90),
                ('simd', 'triad_avx_fma', 'L2', 0.90), ('simd', 'triad_avx_fma', 'L3', 0.90)):
            if level not in topology.levels(machine.processor):
                continue
            size = topology.working_set(machine.processor, level, cpus, machine.memory)
            ratios = over_likwid(machine, 'triad', ['--variants', variant, '--size', size // 32], kernel, size, cpus, pairs)
            yield Figure(f'{level}, {threads_text(cpus)}: triad {variant} / likwid-bench {kernel}', ratios, least)


def linearity(machine):
    '''Time of 2 P passes over that of P, interleaved: 2 if the timed loop does nothing but the loop.'''
    passes = 20000
    one, two = machine.run('triad', machine.cpus[:1], '--variants', 'plain', '--size', 1000, '--samples', 200, '--passes', f'{passes},{2 * passes}')
    return Figure('time of 2 P passes / time of P passes', limits.paired_ratio(two, one), 1.98, 2.02)


def figures(machine, pairs):
    '''Yield every :class:`Figure`.'''
    yield linearity(machine)
    yield from likwid_figures(machine, pairs)
