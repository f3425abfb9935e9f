import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck


@rfm.simple_test
class triad_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What does each way of writing the vector triad get of the memory's bandwidth?'''

    source = 'hager2004, section 3.2, figure 4'
    subsystem = 'memory'
    samples = 30
    program = 'triad'
    threads = parameter(['one', 'all'], type=str)
    tags = {'node', 'health', 'acceptance'}

    def options(self):
        return ['--variants', 'all', '--size', self.elements('memory', 32), '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        if all(record['variant'] != 'fortran' for record in group):
            self.skip_metric('of_limit.fortran', 'this environment has no Fortran compiler', ['fortran'])
        yield from self.limited(group)
