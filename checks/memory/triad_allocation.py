import reframe as rfm

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck

#: Elements of the program's static arrays (src/harness/arrays.c).
STATIC_MAX = 2**21


@rfm.simple_test
class triad_allocation(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''Do arrays of a fixed maximum length, at fixed distances, lose bandwidth in cache?'''

    source = 'hager2004, section 3.1, figure 2'
    program = 'triad'
    threads = 'one'
    tags = {'acceptance'}

    def options(self):
        in_cache = {level: size for level, size in self.every_level(32).items() if level != 'memory'}
        for level in [level for level, size in in_cache.items() if size > STATIC_MAX]:
            self.skip_metric(f'all in {level}', f'static arrays hold {STATIC_MAX} elements')
            del in_cache[level]
        return ['--variants', 'plain', '--alloc', 'dynamic,static', '--size', ','.join(map(str, in_cache.values())),
                '--threads', len(self.cpus), '--limit', '--min-time', '0.005']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            yield from self.limited(group, lambda record: f"{record['options']['alloc']}.{record['level']}")
