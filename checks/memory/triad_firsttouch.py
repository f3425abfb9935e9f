import reframe as rfm

from plumbline.model import limits, metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import topology


@rfm.simple_test
class triad_firsttouch(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What is lost when thread 0 touches all pages first, instead of each thread its own, with 1, 2, 4, ... threads and with all?

    ``speedup`` is the rate after the first touch by thread 0 over that after each thread's own.
    '''

    source = 'hager2004, section 4, table 2'
    subsystem = 'memory'
    program = 'triad'
    threads = 'all'
    tags = {'upgrade', 'acceptance'}

    def options(self):
        #: Numbers of threads, ascending.
        self.counts = topology.thread_counts(self.all_cpus, self.current_partition.processor)
        return ['--variants', 'plain', '--init', 'parinit,noinit', '--size', self.elements('memory', 32),
                '--threads', ','.join(map(str, self.counts)), '--limit']

    def evaluate(self):
        nodes = self.current_partition.processor.num_numa_nodes
        unjudged = None if nodes and nodes > 1 else 'one NUMA domain, in which first touch changes nothing'
        group, = metrics.groups(self.measurements)
        found = {(record['options']['init'], record['threads']): record for record in metrics.kernels(group)}
        for threads in self.counts:
            alone = [record for record in group if record['threads'] == threads]
            yield from self.limited(alone, self.subject, unjudged)
            late, own = found['noinit', threads], found['parinit', threads]
            yield metrics.Metric('speedup', self.subject(late), limits.paired_ratio(late, own, 'bytes'), record=late, unjudged=unjudged)

    def subject(self, record):
        '''``noinit`` with all threads, ``noinit.4`` with four.'''
        init = record['options']['init']
        return init if record['threads'] == len(self.all_cpus) else f"{init}.{record['threads']}"
