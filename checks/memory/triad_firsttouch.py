import reframe as rfm

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck


@rfm.simple_test
class triad_firsttouch(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What is lost when thread 0 touches all pages first, instead of each thread its own?'''

    source = 'hager2004, section 4, table 2'
    program = 'triad'
    threads = 'all'
    tags = {'upgrade', 'acceptance'}

    def options(self):
        return ['--variants', 'plain', '--init', 'parinit,noinit', '--size', self.elements('memory', 32),
                '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        nodes = self.current_partition.processor.num_numa_nodes
        unjudged = None if nodes and nodes > 1 else 'one NUMA domain, in which first touch changes nothing'
        group, = metrics.groups(self.measurements)
        yield from self.limited(group, lambda record: record['options']['init'], unjudged)
