'''Remote gets: that the time is the work's, and what pipelining hides of the latency.'''

from plumbline.bench import mpi
from plumbline.bench.common import Figure
from plumbline.model import limits
from plumbline.mpi import messages, rma

#: Over a network, gets that need not wait for each other must be worth it.
_FASTER = 1.2


def figures(machine, pairs):
    '''Yield every :class:`Figure`: words of 8 bytes, for each MPI.'''
    for each in mpi.machines(machine):
        title = each.family.title
        for variant in ('get', 'put', 'send'):
            one, two = each.run('rma', '--variants', variant, '--size', 8, '--samples', 10 * pairs,
                                '--passes', '1000,2000')
            yield Figure(f'{title}, {variant}: time of 2 P passes / time of P passes',
                         limits.paired_ratio(two, one), 1.96, 2.04)
        for transport in each.family.transports:
            measured = each.run('rma', '--variants', 'get,put,send', '--size', 8, '--window', '1,256',
                                '--samples', 10 * pairs, '--min-time', '0.005', transport=transport)
            curves = rma.curves(measured, 8)
            for variant, curve in curves.items():
                least = _FASTER if (variant, transport) == ('get', 'tcp') else float('-inf')
                yield Figure(f'{title}, {transport}: rate of {variant}, 256 outstanding / 1', rma.speedup(curve), least)
            first = {variant: messages.seconds(curve[1]) for variant, curve in curves.items()}
            for variant in ('put', 'send'):
                yield Figure(f'{title}, {transport}: latency of {variant} / get', first[variant] / first['get'])
