import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.model import contention, metrics
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.node import allocation
from plumbline.rfm.variables import Amount
from plumbline.system import topology

#: A sample that takes so many times the median is reported.
LATE = 1.25


@rfm.simple_test
class node_speed(rfm.RunOnlyRegressionTest, NativeCheck):
    '''Is this node as fast as its peers, and does the speed last?

    Samples are long: those of a few milliseconds do not see a processor that runs at full speed for 60 ms of every
    100 ms.  The CPUs are all that the node has, not those that a quota leaves, so that peers do the same.
    '''

    source = 'hager2004, table 2, over time'
    subsystem = 'levels'
    samples = 10
    processes = 1       # one long look: a node that slows down does so after a while
    program = 'triad'
    threads = parameter(['one', 'all'], type=str)
    tags = {'node', 'health', 'acceptance'}

    #: Length of a sample, seconds.
    min_time = variable(Amount, value=0.4, loggable=False)

    @run_after('setup')
    def use_every_cpu(self):
        self.all_cpus = topology.cpu_order(self.current_partition.processor, allocation(self.current_partition)[0])
        self.num_cpus_per_task = len(self.all_cpus)
        if self.threads == 'all' and len(self.all_cpus) == 1:
            self.skip_test('the node has one CPU: the case of one thread says all', symptom='too_few_cpus')

    def options(self):
        sizes = [self.elements(level, 32) for level in ('L1', 'memory')]
        # As long on a node with a quota as on its peers: what runs at full speed first is slowed down later.
        share = min(1, (self.quota or len(self.cpus)) / len(self.cpus))
        return ['--variants', 'plain', '--size', ','.join(map(str, sizes)), '--threads', len(self.cpus), '--min-time', self.min_time * share]

    def evaluate(self):
        for record in metrics.kernels(self.measurements):
            yield (metrics.flops if record['level'] == 'L1' else metrics.bandwidth)(record, record['level'])
            seconds = np.array(record['seconds'])
            late = np.count_nonzero(seconds > LATE * np.median(seconds))
            if late:
                self.note(f"{record['level']}: {late} of {len(seconds)} samples took {LATE:g} times the median or more")
        found = self.measured_by.plumbline.contention
        given = contention.time_given(found)
        if given is None:
            self.skip_metric('cpu_availability', 'this kernel does not tell how long a process waited for a CPU')
        else:
            why = '; '.join(contention.notes(found, self.plumbline.machine)) or None
            yield metrics.Metric('cpu_availability', None, np.array([given]), remark=why)
            left = contention.time_left_by_quota(found)
            if left is None:
                self.skip_metric('cpu_availability.quota', 'no cgroup tells how long it kept the threads from running')
            else:
                yield metrics.Metric('cpu_availability', 'quota', np.array([left]), remark=why)
