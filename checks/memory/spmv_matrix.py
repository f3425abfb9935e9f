import os

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.errors import PlumblineError
from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Words


@rfm.simple_test
class spmv_matrix(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How fast is the product with a matrix of the site's own?'''

    source = "anderson1997, section 3.3.3, table 7; the matrix is the site's"
    subsystem = 'memory'
    program = 'spmv'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    #: Path of a Matrix Market coordinate file, to be given as ``-S spmv_matrix.matrix=FILE``; without one the check is skipped.
    matrix = variable(Words, value='', loggable=False)

    @run_after('setup')
    def skip_without_matrix(self):
        if not self.matrix:
            self.skip_test('no matrix was given: -S spmv_matrix.matrix=FILE, a Matrix Market file', 'flops')

    def options(self):
        path = os.path.abspath(os.path.expanduser(self.matrix))
        if not os.path.isfile(path):
            raise PlumblineError(f'{path}: no such file; give a Matrix Market file as spmv_matrix.matrix')
        return ['--variants', 'all', '--matrix', path, '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        yield from self.limited(group, unjudged='how much of x stays in the caches depends on the matrix')
        for record in metrics.kernels(group):
            yield metrics.flops(record, record['variant'])
