import reframe as rfm

from plumbline.model import limits, metrics
from plumbline.rfm.check import NativeCheck


@rfm.simple_test
class transpose_table6(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How much faster than the source's loop, which stores in order and loads with a stride (``columns``), are a transpose past the
    caches, and the library's, on the source's matrix?'''

    source = 'anderson1997, table 6: 439/100 and 544/100 on a T3E-900'
    subsystem = 'memory'
    program = 'transpose'
    threads = 'one'
    tags = {'upgrade', 'acceptance'}

    #: The source's.
    dimension = 1025

    def options(self):
        return ['--variants', 'all', '--size', self.dimension, '--threads', len(self.cpus)]

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        plain = next(record for record in group if record['variant'] == 'columns')
        for record in group:
            yield metrics.bandwidth(record, record['variant'])
            if record is not plain:
                yield metrics.Metric('speedup', record['variant'], limits.paired_ratio(record, plain, 'bytes'))
        if all(record['variant'] != 'openblas' for record in group):
            self.skip_metric('speedup.openblas', 'built without OpenBLAS', ['openblas'])
