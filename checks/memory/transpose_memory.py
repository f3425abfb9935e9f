import math

import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import limits, metrics
from plumbline.rfm.limited import LimitedCheck

#: What is there to compare with, and is not judged itself.
YARDSTICKS = ('openblas', 'memcpy')

#: Into another matrix, or into the same.
VARIANTS = {'out': 'all', 'in': 'rows,padded,blocked'}


@rfm.simple_test
class transpose_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What does each way of transposing a matrix get of the memory's bandwidth?'''

    source = 'anderson1997, section 3.3.3; byna2003, section 3'
    subsystem = 'memory'
    program = 'transpose'
    threads = parameter(['one', 'all'], type=str)
    place = parameter(['out', 'in'], type=str)
    tags = {'acceptance'}

    def options(self):
        # Rows of whole cache lines, an odd number of them: powers of two are the question of transpose_sizes.
        matrices = {'out': 2, 'in': 1}[self.place]
        dimension = (math.isqrt(self.working_set('memory', self.cpus) // (8 * matrices)) // 8 | 1) * 8
        self.intended[dimension] = 'memory'
        return ['--place', self.place, '--variants', VARIANTS[self.place], '--size', dimension, '--threads', len(self.cpus),
                '--limit', '--min-time', '0.005']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        paired = self.against_limit(group)
        rows, *others = metrics.kernels(group)
        for record in [rows, *others]:
            variant = record['variant']
            found = paired[variant]
            unjudged = 'a yardstick' if variant in YARDSTICKS else None
            yield from metrics.of_machine(found, f'{self.place}.{variant}', unjudged)
            yield metrics.bandwidth(record, f'{self.place}.{variant}', found.limit)
        for record in others:
            yield metrics.Metric('speedup', f"{self.place}.{record['variant']}", limits.paired_ratio(record, rows, 'bytes'))
        if self.place == 'out' and all(record['variant'] != 'openblas' for record in group):
            self.skip_metric('speedup.out.openblas', 'built without OpenBLAS', ['openblas'])
