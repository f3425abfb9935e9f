import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import metrics, quantity
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import topology

#: What the rows of the generator's matrices hold: --nonzer m gives m * (m + 1) + 1 nonzeros.
NONZER = {'banded': 11, 'random': 11, 'sparse': 2}


@rfm.simple_test
class spmv_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What does the sparse matrix-vector product get of the memory's bandwidth, when x stays in the first-level cache
    (banded), and when it does not (random; sparse: 7 nonzeros in a row)?'''

    source = 'anderson1997, section 3.3.3, table 7; beyond the caches'
    subsystem = 'memory'
    program = 'spmv'
    threads = parameter(['one', 'all'], type=str)
    columns = parameter(list(NONZER), type=str)
    tags = {'acceptance'}
    OF_A_GIB = 500      # of sparse rows

    def options(self):
        nonzer = NONZER[self.columns]
        # 12 bytes per nonzero; 24 per row: pointer, y, x
        rows = self.elements('memory', 12 * (nonzer * (nonzer + 1) + 1) + 24)
        options = ['--variants', 'all', '--size', rows, '--nonzer', nonzer, '--threads', len(self.cpus), '--limit']
        return options + (['--columns', 'banded', '--band', self.band()] if self.columns == 'banded' else [])

    def band(self):
        '''A row reaches twice this to either side: 32 bytes of x for each, an eighth of the first-level cache.'''
        return max(1, topology.capacity(self.current_partition.processor, 'L1', self.cpus[:1]) // 256)

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        size = quantity.size(8 * metrics.kernels(group)[0]['size'])
        unjudged = None if self.columns == 'banded' else f'the model counts the {size} of x once, but they do not stay in the first-level cache'
        yield from self.limited(group, self.subject, unjudged)
        for record in metrics.kernels(group):
            yield metrics.flops(record, self.subject(record))

    def subject(self, record):
        return f"{record['variant']}.{self.columns}"
