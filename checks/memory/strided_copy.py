import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Wholes


@rfm.simple_test
class strided_copy(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What is left of the memory's bandwidth when a copy reads or writes every k-th element only?'''

    source = 'anderson1997, section 3.3.2, figure 3 and table 5'
    subsystem = 'memory'
    samples = 10
    program = 'strided'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}
    OF_A_GIB = 700      # of five variants and twenty strides

    #: Strides in elements: the source's 1 to 64 with its 31, and powers of two to 4096.
    strides = variable(Wholes, loggable=False, value=[1, 2, 3, 4, 6, 8, 12, 16, 24, 31, 32, 48, 63, 64, 128, 256, 512, 1024, 2048, 4096])

    def options(self):
        # The strided array alone is the working set: from pass to pass none of its lines may stay in cache.
        return ['--variants', 'all', '--stride', ','.join(map(str, self.strides)),
                '--size', self.elements('memory', 8), '--threads', len(self.cpus), '--limit', '--min-time', '0.005']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        yield from self.limited(group, lambda record: f"{record['variant']}.{record['options']['stride']}")
