import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import limits, metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import topology

#: Bytes of three neighbouring elements, one in each of three planes.
THREE = 24


@rfm.simple_test
class jacobi_blocking(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What does spatial blocking win where three planes of a stencil do not stay in cache?'''

    source = 'the layer condition, which anderson1997, section 3.1.3, states of three columns'
    subsystem = 'memory'
    program = 'jacobi'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    def box(self):
        '''(edge, planes): three planes take four times a thread's cache; each thread has eight.'''
        planes = 8 * len(self.cpus) + 2
        share = topology.last_level_share(self.current_partition.processor, self.cpus)
        points = self.memory_bytes / 16 / planes or 4 * share / THREE
        return int(points**0.5) // 16 * 16 + 2, planes      # the interior of a row: whole cache lines, and no padding

    def options(self):
        edge, planes = self.box()
        if self.memory and 16 * edge**2 * planes > topology.MEMORY_SHARE * self.memory:
            self.skip_test(f'two boxes of {edge} x {edge} x {planes} points take more than a quarter of the memory', 'of_limit')
        self.intended[edge] = 'memory'
        return ['--variants', 'all', '--size', edge, '--planes', planes, '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        plain = next(record for record in group if record['variant'] == 'plain')
        for name, found in self.against_limit(group).items():
            yield from metrics.of_machine(found, name)
        for record in metrics.kernels(group):
            yield metrics.flops(record, record['variant'])
            if record is not plain:
                yield metrics.Metric('speedup', record['variant'], limits.paired_ratio(record, plain, 'flops'))
