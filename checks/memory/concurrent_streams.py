import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import metrics, records, uncertainty
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Wholes

#: What is below this share of the best has given up.
SHARE = 0.8


@rfm.simple_test
class concurrent_streams(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How many streams does each thread read at once before the hardware prefetcher gives up?'''

    source = 'anderson1997, sections 3.2.1 and 3.2.3: six stream buffers'
    subsystem = 'memory'
    program = 'concurrent'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    #: Streams of each thread, ascending.
    streams = variable(Wholes, loggable=False, value=[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32])

    def options(self):
        return ['--variants', 'all', '--streams', ','.join(map(str, self.streams)),
                '--size', self.elements('memory', 8), '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        yield from self.limited(group, lambda record: f"{record['variant']}.{record['options']['streams']}")
        kernels = metrics.kernels(group)
        for variant in dict.fromkeys(record['variant'] for record in kernels):
            rates = [np.median(records.rate(record)) for record in kernels if record['variant'] == variant]
            found = uncertainty.knee(self.streams, rates, SHARE)
            if found is None:
                self.skip_metric(f'knee.{variant}', f'{self.streams[-1]} streams still reach {SHARE:g} of the best')
            else:
                yield metrics.Metric('knee', variant, np.array([float(found)]), unjudged='a property of the processor')
