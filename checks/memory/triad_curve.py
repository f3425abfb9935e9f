import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Whole


@rfm.simple_test
class triad_curve(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How does the triad's bandwidth fall from cache level to cache level, and what do
    non-temporal stores change?'''

    source = 'hager2004, section 3, figures 1, 2 and 6'
    samples = 30
    program = 'triad'
    threads = parameter(['one', 'all'], type=str)
    tags = {'health', 'acceptance'}

    #: Lengths between 10 and what memory needs, evenly spaced in log N.
    points = variable(Whole, value=30)

    def options(self):
        levels = self.every_level(32)
        in_cache = [str(size) for level, size in levels.items() if level != 'memory']
        return ['--variants', 'plain,nt', '--size', ','.join(in_cache),
                '--sweep', f"10:{levels['memory']}:{self.points}",
                '--threads', len(self.cpus), '--limit', '--min-time', '0.002']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            if metrics.kernels(group)[0]['size'] in self.intended:
                yield from self.limited(group, lambda record: f"{record['variant']}.{record['level']}")
