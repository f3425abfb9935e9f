'''The triad against likwid-bench's, and its timing.'''

from plumbline.bench.common import Figure, teams
from plumbline.bench.peers.streams import over_likwid
from plumbline.model import limits
from plumbline.system import topology


def linearity(machine):
    '''Time of 2 P passes over that of P, interleaved: 2 if the timed loop does nothing but the loop.'''
    passes = 20000
    one, two = machine.run('triad', machine.cpus[:1], '--variants', 'plain', '--size', 1000, '--samples', 200, '--passes', f'{passes},{2 * passes}')
    return Figure('time of 2 P passes / time of P passes', limits.paired_ratio(two, one), 1.98, 2.02)


def figures(machine, pairs):
    '''Yield every :class:`Figure`.'''
    yield linearity(machine)
    for cpus in teams(machine):
        for variant, level, least in (('nt', 'memory', 1.10), ('simd', 'L1', 0.90), ('simd', 'L2', 0.90), ('simd', 'L3', 0.90)):
            if level in topology.levels(machine.processor):
                yield from over_likwid(machine, cpus, pairs, 'triad', variant, 'triad', level, least)
