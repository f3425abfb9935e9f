'''Remote gets and puts: that the time is the work's.  What pipelining hides of the latency the check rma_pipeline tells.'''

from plumbline.bench import mpi
from plumbline.bench.common import Figure
from plumbline.model import limits


@mpi.of_each
def figures(each, pairs):
    '''Yield every :class:`Figure`: words of 8 bytes, for each MPI.'''
    for variant in ('get', 'put', 'send'):
        one, two = each.run('rma', '--variants', variant, '--size', 8, '--samples', 10 * pairs, '--passes', '1000,2000')
        yield Figure(f'{each.family.title}, {variant}: time of 2 P passes / time of P passes', limits.paired_ratio(two, one), 1.96, 2.04)
