import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import metrics, records
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Whole, YesNo


@rfm.simple_test
class triad_curve(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How does the triad's bandwidth fall from cache level to cache level, and what do non-temporal stores change?'''

    source = 'hager2004, section 3, figures 1, 2 and 6'
    subsystem = 'levels'
    samples = 30
    program = 'triad'
    threads = parameter(['one', 'all'], type=str)
    tags = {'health', 'acceptance'}

    #: Lengths between 10 and what memory needs, evenly spaced in log N.
    points = variable(Whole, value=30)

    #: Without memory, of which a length costs as much time as all that are in cache, the curve ends in the last cache.
    into_memory = variable(YesNo, value=True, loggable=False)

    def options(self):
        levels = self.every_level(32)
        in_cache = [size for level, size in levels.items() if level != 'memory']
        longest = max(levels.values() if self.into_memory else in_cache, default=levels.get('memory'))
        return ['--variants', 'plain,nt|', '--size', ','.join(map(str, in_cache)), '--sweep', f'10:{longest}:{self.points}',
                '--threads', len(self.cpus), '--limit', '--min-time', '0.002']

    def evaluate(self):
        curve = {}
        for group in metrics.groups(self.measurements):
            if metrics.kernels(group)[0]['size'] in self.intended:
                yield from self.limited(group, lambda record: f"{record['variant']}.{record['level']}")
            curve |= {record['size']: record for record in metrics.kernels(group) if record['variant'] == 'plain'}
        if self.threads == 'one':       # of all threads the short ones scatter with the barrier
            yield from metrics.of_flanks({size: records.rate(record, 'bytes') for size, record in curve.items()}, 'plain', curve, 'memory')
