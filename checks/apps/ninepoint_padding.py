import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import limits, metrics
from plumbline.rfm.check import NativeCheck
from plumbline.system import topology

#: The source's grid, and the nearest whose columns lie a power of two apart.
SOURCE, POWER = 513, 512


@rfm.simple_test
class ninepoint_padding(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How much faster is a finite-difference kernel when its six arrays are padded, so that they do not lie on each other in the cache?'''

    source = 'anderson1997, section 3.1.3 and figure 2: 311 Mflop/s against 156'
    subsystem = 'memory'
    program = 'ninepoint'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    def options(self):
        l1 = topology.capacity(self.current_partition.processor, 'L1', self.all_cpus[:1])
        # Three columns of X and Y: with the source's n they stay in L1 (on most machines), here not.
        beyond = 2 * l1 // (2 * 3 * 8) + 1
        return ['--variants', 'all', '--size', f'{POWER},{SOURCE},{beyond}', '--threads', len(self.cpus)]

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            plain = next(record for record in group if record['variant'] == 'plain')
            for record in group:
                subject = f"{record['variant']}.n{record['size']}"
                yield metrics.flops(record, subject)
                if record['variant'] in ('aligned', 'padded', 'conflicting'):
                    yield metrics.Metric('speedup', subject, limits.paired_ratio(record, plain, 'flops'))
