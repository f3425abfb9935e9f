import math

import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import topology


@rfm.simple_test
class transpose_sizes(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''Is a matrix whose dimension is a power of two transposed more slowly than its neighbours, and is it still so
    without lines that wait in a cache?'''

    source = 'anderson1997, section 3.3.3; byna2003, sections 3 and 6'
    subsystem = 'levels'
    samples = 15
    program = 'transpose'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}
    OF_A_GIB = 400      # of three sizes

    def options(self):
        for level, power in self.powers():
            self.intended.update((power + beside, level) for beside in (-1, 0, 1))
        return ['--variants', 'rows,columns,padded,blocked,blocked_simd|,blocked_nt|',
                '--size', ','.join(map(str, self.intended)), '--threads', len(self.cpus), '--limit', '--min-time', '0.003']

    def powers(self):
        '''(level, power of two): the largest in a cache, if its neighbours are more than the cache below holds, and for memory, where the plain
        loops are slow, the smallest.'''
        processor = self.current_partition.processor
        levels = topology.levels(processor)
        below = dict(zip(levels[1:], levels))
        for level, size in self.every_working_set().items():
            if level != 'memory':
                power = 2**(math.isqrt(size // 16).bit_length() - 1)
                lower = below.get(level)
                if lower and 16 * (power - 1)**2 <= topology.capacity(processor, lower, self.cpus):
                    self.skip_metric(f'all in {level}', f'{power} is the largest power of two whose matrices fit, and {lower} may hold them',
                                     [level], subsystem=level)
                else:
                    yield level, power
            else:
                caches = topology.last_level_share(processor, self.cpus) * len(self.cpus)
                power = 2**math.ceil(math.log2((self.memory_bytes or 2 * caches) / 16) / 2)
                if self.memory and 16 * power**2 > topology.MEMORY_SHARE * self.memory:
                    self.skip_metric('all in memory', f'two matrices of {power} x {power} take more than a quarter of the memory', [level],
                                     subsystem=level)
                else:
                    yield level, power

    def evaluate(self):
        found = {}
        for group in metrics.groups(self.measurements):
            paired = self.against_limit(group)
            for record in metrics.kernels(group):
                found[record['size'], record['variant']] = record, paired[record['variant']]
        for power in list(self.intended)[1::3]:
            for variant in dict.fromkeys(variant for _, variant in found):
                yield from self.of_power(variant, *(found[power + beside, variant] for beside in (0, -1, 1)))

    def of_power(self, variant, at, below, above):
        '''Metrics of a power of two; the three were not interleaved: each is taken by its own limit first.'''
        record, paired = at
        subject = f"{variant}.{record['level']}"
        beside = np.mean([paired.value for _, paired in (below, above)])
        yield from metrics.of_machine(paired, subject)
        yield metrics.bandwidth(record, subject, paired.limit)
        yield metrics.Metric('power_of_two', subject, paired.samples / beside, subsystem=record['level'])
