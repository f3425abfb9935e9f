import reframe as rfm
from reframe.core.builtins import variable

from plumbline.model import limits, metrics
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.variables import Whole


@rfm.simple_test
class triad_simd(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How much of a cache's bandwidth needs SIMD instructions: scalar code, the compiler's and intrinsics over N in cache?

    In the source the Pentium 4 reaches its caches with 16-byte registers only, the Athlon 64 with any.  ``speedup`` is the rate over
    that of the scalar loop.
    '''

    source = 'hager2004, section 3.2, figure 3'
    subsystem = 'levels'
    samples = 30
    program = 'triad'
    threads = 'one'
    tags = {'acceptance'}

    #: Further lengths from 10 to the largest that is measured, evenly spaced in log N.
    points = variable(Whole, value=20)

    def options(self):
        in_cache = [size for level, size in self.every_level(32).items() if level != 'memory']
        return ['--variants', 'novec,plain,simd|', '--size', ','.join(map(str, in_cache)), '--sweep', f'10:{max(in_cache)}:{self.points}',
                '--threads', len(self.cpus), '--min-time', '0.002']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            scalar, *others = group
            if scalar['size'] not in self.intended:
                continue
            for record in group:
                yield metrics.bandwidth(record, f"{record['variant']}.{record['level']}")
            for record in others:
                yield metrics.Metric('speedup', f"{record['variant']}.{record['level']}", limits.paired_ratio(record, scalar, 'bytes'), record=record)
