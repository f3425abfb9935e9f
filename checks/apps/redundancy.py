import numpy as np
import reframe as rfm

from plumbline.model import limits, metrics, records
from plumbline.rfm.check import NativeCheck

#: Operations of each way for n steps on one thread, by hand.  One evaluation of f has 5: 2 for its argument, 3 for
#: 4 / (1 + x x); 31 add up the partial sums of the vectorised ways (src/kernels/trapezoid/kernel.c).
OPERATIONS = {
    'original': lambda n: (2 * 5 + 4) * n,
    'shared': lambda n: (5 + 4) * n + 5,
    'vectorised': lambda n: (2 * 5 + 4) * n + 31,
    'restructured': lambda n: (5 + 1) * (n - 1) + 31 + 2 * 5 + 4,
}


@rfm.simple_test
class redundancy(rfm.RunOnlyRegressionTest, NativeCheck):
    '''Is the faster execution rate the faster program?  Relative execution rate = speed-up x redundancy.'''

    source = 'arsc2002, first article, equation 1'
    subsystem = 'core'
    program = 'trapezoid'
    threads = 'one'
    tags = {'upgrade', 'acceptance'}

    #: Steps of the integral; the source has 50e6.  There are no data: one size is like another.
    steps = 10**6

    def options(self):
        return ['--variants', 'all', '--size', self.steps, '--threads', 1]

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        ways = {record['variant']: record for record in group}
        work, time = ({name: records.per_pass(record, key) for name, record in ways.items()} for key in ('flops', 'seconds'))
        first, least = 'original', 'restructured'
        for name, record in ways.items():
            yield metrics.flops(record, name)
            yield metrics.Metric('work', name, np.array([work[name] / OPERATIONS[name](record['size'])]))
            yield metrics.Metric('redundancy', name, np.array([work[name] / work[least]]))
            if name != first:
                speedup = time[first] / time[name]
                relative_rate = limits.paired_ratio(record, ways[first], 'flops')
                yield metrics.Metric('speedup', name, speedup)
                yield metrics.Metric('rate', name, relative_rate)
                yield metrics.Metric('equation', name, relative_rate / (speedup * work[name] / work[first]))
        yield metrics.Metric('speedup', 'restructured_over_vectorised', time['vectorised'] / time['restructured'])
