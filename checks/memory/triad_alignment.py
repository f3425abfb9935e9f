import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import variable

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck


@rfm.simple_test
class triad_alignment(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''Does the memory bandwidth depend on how the four arrays lie to each other?'''

    source = 'hager2007, section 3.1, figure 4'
    program = 'triad'
    threads = 'all'
    tags = {'acceptance'}

    #: Bytes by which each array is shifted against the one before; the source has 0, 32 and 128.
    shifts = variable(typ.List[int], value=[0, 32, 128, 1024], loggable=False)

    def options(self):
        return ['--variants', 'plain', '--shift', ','.join(map(str, self.shifts)),
                '--size', self.elements('memory', 32), '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        yield from self.limited(group, lambda record: f"shift{record['options']['shift']}")
