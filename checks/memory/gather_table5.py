import reframe as rfm

from plumbline.model import metrics
from plumbline.rfm.check import NativeCheck


@rfm.simple_test
class gather_table5(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How fast are 1000 elements at random places of 100000 gathered and scattered, when their lines are in cache?'''

    source = 'anderson1997, section 3.3.2, table 5'
    subsystem = 'memory'
    samples = 100
    program = 'gather'
    threads = 'one'
    tags = {'upgrade', 'acceptance'}

    def options(self):
        return ['--variants', 'all', '--direction', 'gather,scatter', '--indices', 'random', '--span', 100, '--size', 1000,
                '--threads', len(self.cpus), '--min-time', '0.005']

    def evaluate(self):
        for record in self.measurements:
            yield metrics.bandwidth(record, f"{record['options']['direction']}.{record['variant']}")
