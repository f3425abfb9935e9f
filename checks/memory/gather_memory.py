import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck

#: Index set -> (option, elements of the array for each one taken, bytes of the lines and streams that an element touches).
INDICES = {
    'uniform': ('uniform', 1, 20),      # 8 bytes each of the array and the vector, 4 of the index
    'strided': ('uniform', 8, 76),      # one element of each line
    'ms1': ('ms1', 4, 20),              # runs of one line, then a jump
    'local': ('local', 8, 76),          # random within a page
    'random': ('random', 8, 76),
}


@rfm.simple_test
class gather_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What do gather and scatter get of the memory's bandwidth, and do the processor's instructions for them, prefetches or sorted indices help?'''

    source = 'anderson1997, section 3.3.2, table 5; index sets as in Spatter'
    subsystem = 'memory'
    samples = 20
    program = 'gather'
    threads = parameter(['one', 'all'], type=str)
    indices = parameter(list(INDICES), type=str)
    tags = {'acceptance'}
    OF_A_GIB = 200      # in two directions

    def options(self):
        option, span, touched = INDICES[self.indices]
        return ['--variants', 'all', '--direction', 'gather,scatter', '--indices', option, '--span', span,
                '--size', self.elements('memory', touched), '--threads', len(self.cpus), '--limit', '--min-time', '0.005']

    def evaluate(self):
        unjudged = 'latency and TLB limit accesses at random, not bandwidth' if self.indices in ('local', 'random') else None
        group, = metrics.groups(self.measurements)
        yield from self.limited(group, lambda record: '.'.join((self.indices, record['options']['direction'], record['variant'])), unjudged)
