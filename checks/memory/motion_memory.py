import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck


@rfm.simple_test
class motion_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How fast are data filled, loaded and copied in memory, and what do stores that bypass the caches gain?'''

    source = 'anderson1997, tables 3 and 5'
    subsystem = 'memory'
    program = 'motion'
    threads = parameter(['one', 'all'], type=str)
    tags = {'health', 'acceptance'}

    def options(self):
        # One array of this working set; copy has two.
        return ['--variants', 'fill,fill_nt|,load,copy,copy_nt|', '--size', self.elements('memory', 8), '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        yield from self.limited(group)
