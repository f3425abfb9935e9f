import math

import reframe as rfm
from plumbline import limits, metrics
from plumbline.witness import LimitedCheck
from reframe.core.builtins import parameter

#: What is there to compare with, and is not judged itself.
YARDSTICKS = ('openblas', 'memcpy')


@rfm.simple_test
class transpose_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What does each way of transposing a matrix get of the memory's bandwidth?'''

    descr = 'Transpose of a matrix in memory, all variants'
    source = 'anderson1997, section 3.3.3; byna2003, section 3'
    program = 'transpose'
    threads = parameter(['one', 'all'])
    tags = {'acceptance'}

    def options(self):
        # Rows of whole cache lines, an odd number of them: powers of two are the question of transpose_sizes.
        dimension = (math.isqrt(self.working_sets(self.cpus)[0]['memory'] // 16) // 8 | 1) * 8
        self.intended[dimension] = 'memory'
        return ['--variants', 'all', '--size', dimension, '--threads', len(self.cpus), '--limit', '--block', '0.005']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        paired = self.against_limit(group)
        rows, *others = metrics.kernels(group)
        for record in [rows, *others]:
            variant = record['variant']
            found = paired[variant]
            unjudged = 'a yardstick' if variant in YARDSTICKS else None
            yield metrics.Metric('of_limit', variant, found.samples, '1', found.limit, unjudged)
            yield metrics.bandwidth(record, variant, found.limit)
        for record in others:
            yield metrics.Metric('speedup', record['variant'], limits.paired_ratio(record, rows, 'bytes'), '1')
        if all(record['variant'] != 'openblas' for record in group):
            self.skip_metric('speedup.openblas', 'built without OpenBLAS')
