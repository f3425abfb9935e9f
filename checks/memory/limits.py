import math

import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import baselines, limits as model, metrics, probes, records
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import datasheet, topology

#: MB/s of the peak for each core, of which a core surely draws 0.6, the floor of portable.yaml.  One core of a Xeon Max reads 12.6 GB/s, so that
#: all together need not have more than 0.43 of its HBM, 29 GB/s a core (McCalpin, IXPUG workshop at ISC 2023).
A_CORE_DRAWS = 20_000


@rfm.simple_test
class limits(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What is the most that each level of the memory hierarchy gives, and is that what the datasheet promises?'''

    source = 'hager2004, section 3.1: limits from the hardware, write-allocate counted as traffic'
    subsystem = 'levels'
    samples = 30
    program = 'limits'
    threads = parameter(['one', 'all'], type=str)
    tags = {'node', 'health', 'acceptance'}

    def options(self):
        sizes = self.every_level(8)
        # One stream as the kernel: of the others the program keeps the best ones, and the rest would only take time.
        return ['--variants', 'load', '--limit', '--size', ','.join(map(str, sizes.values())), '--threads', len(self.cpus), '--min-time', '0.005']

    def evaluate(self):
        promised, file = datasheet.of_partition(self.current_partition, self.microarchitecture)
        for group in metrics.groups(self.measurements):
            best = model.best(group)
            level, rates = best['level'], records.rate(best, 'traffic')
            factor, note = model.cross_check_correction(self.agreement(level, best['threads']))
            self.note(f"{level}: the limit is {best['variant']}")
            if note:
                self.note(f"{level}, {best['threads']} threads: {note}")
            yield metrics.Metric('bandwidth', level, rates, limit=np.median(rates) / factor, record=best)
            clock = None if level == 'memory' else self.measured_clock(best)
            peak = datasheet.peaks(promised, len(self.all_cpus), clock).get((level, self.threads))
            if peak:
                about = self.of_memory(promised['memory'], file, peak, np.median(rates) / peak) if level == 'memory' else {}
                yield metrics.Metric('of_peak', level, rates / peak, limit=peak, record=best, **about)
            else:
                self.skip_metric(f'of_peak.{level}', datasheet.unknown(promised, level, self.threads, file, clock), subsystem=level)

        yield metrics.of_steady(self.measurements)

    def of_memory(self, memory, file, peak, share):
        '''Why these cores need not draw what all channels give, or why it proves nothing, and what to do where no cores of this machine do.'''
        ours = len(self.all_cpus)
        self.note(f"the peak of memory: {memory.get('source')}")
        doubt, explains, file = baselines.virtual(self.plumbline.of_machine), math.inf, file or 'the machine file'
        if not doubt and peak > A_CORE_DRAWS * ours:
            doubt = f'{ours} cores need not draw {peak * 1e-3:.0f} GB/s; what they are known to draw is `most` of `memory` in {file}'
        elif not doubt and memory.get('configured') and not memory.get('most'):
            explains = memory['transfer_rate'] / memory['configured']
            doubt = (f"the memory is configured for {memory['configured']} MT/s, and its modules are rated {memory['transfer_rate']}; "
                     f'write what was bought as `transfer_rate` of `memory` into {file}')
        return {'unjudged': topology.too_few(self.current_partition.processor, self.all_cpus),
                'doubt': doubt if share < 1 else None, 'explains': explains,      # beyond its peak the file is wrong
                'remark': f"the peak: {memory.get('source')}; if its processors draw less than the channels give, write that as `most` of "
                          f'`memory` into {file}'}

    def measured_clock(self, record):
        '''GHz of the slowest core beside the samples; None where it is not known.'''
        clocks = probes.beside(record, probes.CLOCK)
        if clocks is None or not np.isfinite(clocks).any():
            return None
        low, middle, high = np.nanquantile(clocks, [0.05, 0.5, 0.95]) / 1e9
        self.note(f"{record['level']}: the cores' clock was {middle:.2f} GHz, 5th to 95th percentile {low:.2f} .. {high:.2f}")
        return float(middle)
