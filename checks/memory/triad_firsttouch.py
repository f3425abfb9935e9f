import reframe as rfm

from plumbline.model import limits, metrics
from plumbline.model.quantity import percent, size
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import topology

#: Share of the memory that all working sets take together, at most; the programs refuse nine tenths of what is free.
ROOM = 0.8


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
        elements = self.elements('memory', 32)
        #: Numbers of threads, ascending.
        self.counts = self.counts_that_fit(32 * elements)
        return ['--variants', 'plain', '--init', 'parinit,noinit', '--size', elements, '--threads', ','.join(map(str, self.counts)), '--limit']

    def counts_that_fit(self, each):
        '''Numbers of threads whose working sets, of so many bytes, are in memory together: arrays that thread 0 touched are the same for all, and
        those of its own and of the limit streams for all within one NUMA domain; any further number has two of its own.'''
        processor = self.current_partition.processor
        counts = topology.thread_counts(self.all_cpus, processor)
        further = [n for n in counts if sum(map(len, topology.parts(processor, 'numa_domains', self.all_cpus[:n]))) > 1]
        room = (ROOM * self.memory / each - 3) // 2 if self.memory else len(further)
        left_out = further[:-1][:max(0, len(further) - int(room))]
        for threads in left_out:
            self.skip_metric(f'all of {threads} threads', f'{2 * len(further) + 3} working sets of {size(each)} are more than {percent(ROOM, 0)} of '
                             f'{size(self.memory)}, all the memory there is', [f'{threads}'])
        return [n for n in counts if n not in left_out]

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
