import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck


@rfm.simple_test
class motion_levels(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How fast are data filled, loaded, updated and copied in each level, and what do non-temporal stores and software prefetch change?'''

    source = 'anderson1997, tables 3 and 5'
    subsystem = 'levels'
    program = 'motion'
    motion = parameter(['fill', 'load', 'update', 'copy'], type=str)
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    def options(self):
        bypass = [f'{self.motion}_nt|'] if self.motion in ('fill', 'copy') else []
        variants = [self.motion, *bypass, f'{self.motion}_prefetch']
        sizes = self.every_level(16 if self.motion == 'copy' else 8)
        return ['--variants', ','.join(variants), '--size', ','.join(map(str, sizes.values())),
                '--threads', len(self.cpus), '--limit', '--min-time', '0.005']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            yield from self.limited(group, lambda record: f"{record['variant']}.{record['level']}")
