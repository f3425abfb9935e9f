import numpy as np
import reframe as rfm
from reframe.core.builtins import variable

from plumbline.model import limits, metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Whole

#: Elements that a kernel may use of the program's static arrays (src/harness/arrays.c).
STATIC_MAX = 10**6 - 16


@rfm.simple_test
class triad_allocation(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What do four arrays of a fixed length of 10^6 (8,000,000 bytes apart, whatever N is) lose or win in cache against those that malloc
    or Fortran's ALLOCATE gives, and against arrays of just the length needed that begin at pages?

    In the source static arrays lose 30 % by their distance.  ``speedup`` is each way's rate over malloc's.
    '''

    source = 'hager2004, section 3.1, figure 2'
    subsystem = 'levels'
    program = 'triad'
    threads = 'one'
    tags = {'acceptance'}

    #: Further lengths from 100 to the largest that is measured, evenly spaced in log N.
    points = variable(Whole, value=12)

    def options(self):
        in_cache = {level: size for level, size in self.every_level(32).items() if level != 'memory'}
        for level in [level for level, size in in_cache.items() if size > STATIC_MAX]:
            self.skip_metric(f'all in {level}', f'static arrays hold {STATIC_MAX} elements', [level], subsystem=level)
            del in_cache[level]
        ways = ['malloc', 'dynamic', 'static']
        if 'fortran' in self.current_environ.features:
            ways.append('allocate')
        else:
            self.skip_metric('all of allocate', 'this environment has no Fortran compiler', ['allocate'])
        return ['--variants', 'plain', '--alloc', ','.join(ways), '--size', ','.join(map(str, in_cache.values())),
                '--sweep', f'100:{max(in_cache.values())}:{self.points}', '--threads', len(self.cpus), '--limit', '--min-time', '0.005',
                '--pages', 'base']      # as malloc gives them

    def evaluate(self):
        worst = {}
        for group in metrics.groups(self.measurements):
            ways = {record['options']['alloc']: record for record in metrics.kernels(group)}
            ratios = {way: limits.paired_ratio(record, ways['malloc'], 'bytes') for way, record in ways.items() if way != 'malloc'}
            for way, ratio in ratios.items():
                worst.setdefault(way, []).append((float(np.median(ratio)), ways[way]['size']))
            if ways['malloc']['size'] in self.intended:
                yield from self.limited(group, lambda record: f"{record['options']['alloc']}.{record['level']}")
                for way, ratio in ratios.items():
                    yield metrics.Metric('speedup', f"{way}.{ways[way]['level']}", ratio, record=ways[way])
        for way, found in worst.items():
            (low, least), (high, most) = min(found), max(found)
            self.note(f'{way} over malloc along N: from {low:.2f} (N = {least}) to {high:.2f} (N = {most})')
