import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import limits, metrics
from plumbline.rfm.check import NativeCheck


@rfm.simple_test
class spmv_cg(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How fast is the sparse matrix-vector product of CG, and what do prefetching and another storage scheme gain?'''

    source = 'anderson1997, section 3.3.3, table 7'
    subsystem = 'memory'
    program = 'spmv'
    threads = parameter(['one', 'all'], type=str)
    tags = {'upgrade', 'acceptance'}

    #: Rows of class A on two processes, as in the source, and on one.
    rows = [7000, 14000]

    def options(self):
        # 11 random nonzeros in each of the generator's vectors, as in class A: about 132 in a row.
        return ['--variants', 'all', '--size', ','.join(map(str, self.rows)), '--nonzer', 11, '--columns', 'random',
                '--threads', len(self.cpus), '--min-time', '0.005']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            plain = next(record for record in group if record['variant'] == 'plain')
            for record in group:
                subject = f"{record['variant']}.{record['size']}"
                yield metrics.flops(record, subject)
                if record is not plain:
                    yield metrics.Metric('speedup', subject, limits.paired_ratio(record, plain, 'flops'))
