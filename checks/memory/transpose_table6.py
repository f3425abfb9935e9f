import reframe as rfm

from plumbline.model import limits, metrics
from plumbline.rfm.check import NativeCheck


@rfm.simple_test
class transpose_table6(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How much faster than the plain loop are a transpose past the caches, and the library's, on the source's
    matrix?'''

    source = 'anderson1997, table 6: 439/100 and 544/100 on a T3E-900'
    program = 'transpose'
    threads = 'one'
    tags = {'upgrade', 'acceptance'}

    #: The source's.
    dimension = 1025

    def options(self):
        return ['--variants', 'all', '--size', self.dimension, '--threads', len(self.cpus)]

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        rows, *others = group
        yield metrics.bandwidth(rows, 'rows')
        for record in others:
            yield metrics.bandwidth(record, record['variant'])
            yield metrics.Metric('speedup', record['variant'], limits.paired_ratio(record, rows, 'bytes'))
        if all(record['variant'] != 'openblas' for record in group):
            self.skip_metric('speedup.openblas', 'built without OpenBLAS')
