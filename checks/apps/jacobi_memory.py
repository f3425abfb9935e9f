import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import topology

#: Bytes of three neighbouring elements, one in each of three planes.
THREE = 24


@rfm.simple_test
class jacobi_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What does a stencil get of the memory's bandwidth, while three of its planes stay in cache?'''

    source = 'the layer condition, which anderson1997, section 3.1.3, states of three columns'
    subsystem = 'memory'
    program = 'jacobi'
    threads = parameter(['one', 'all'], type=str)
    tags = {'health', 'acceptance'}

    def box(self):
        '''(edge, planes): a cube, or longer, so that three planes take at most a quarter of a thread's cache.

        Of a mebibyte of it, in every session: a box that follows what is ours of the cache today is another problem tomorrow.
        '''
        points = self.elements('memory', 16)
        share = min(2**20, topology.last_level_share(self.current_partition.processor, self.cpus))
        edge = min(points ** (1 / 3), (share / 4 / THREE) ** 0.5)
        edge = max(0, int(edge) - 2) // 16 * 16 + 2     # the interior of a row: whole cache lines, and no padding
        return edge, -(-points // edge**2)

    def options(self):
        edge, planes = self.box()
        self.intended[edge] = 'memory'
        return ['--variants', 'plain,nt|,blocked_prefetch|', '--size', edge, '--planes', planes, '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        for name, found in self.against_limit(group).items():
            yield from metrics.of_machine(found, name)
        for record in metrics.kernels(group):
            yield metrics.flops(record, record['variant'])
