import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import limits as model, metrics, probes, records
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import datasheet, topology

#: Memory is saturated before all cores of a node work; with fewer than this share of them a socket's memory may be missing.
ENOUGH_CORES = 0.75


@rfm.simple_test
class limits(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What is the most that each level of the memory hierarchy gives, and is that what the datasheet promises?'''

    source = 'hager2004, section 3.1: limits from the hardware, write-allocate counted as traffic'
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
                yield metrics.Metric('of_peak', level, rates / peak, limit=peak, record=best, **(self.of_memory(file) if level == 'memory' else {}))
            else:
                self.skip_metric(f'of_peak.{level}', datasheet.unknown(promised, level, self.threads, file, clock))

        yield metrics.of_steady(self.measurements)

    def of_memory(self, file):
        '''Why these cores need not draw what all channels give, and what to do where no cores of this machine do.'''
        ours, cores = len(self.all_cpus), len(topology.cpu_order(self.current_partition.processor))
        return {'unjudged': f"{ours} of the node's {cores} cores may be used" if ours < ENOUGH_CORES * cores else None,
                'remark': f"if its processors draw less than the channels give, write that as `most` of `memory` into {file or 'the machine file'}"}

    def measured_clock(self, record):
        '''GHz of the slowest core beside the samples; None where it is not known.'''
        clocks = probes.beside(record, probes.CLOCK)
        if clocks is None or not np.isfinite(clocks).any():
            return None
        low, middle, high = np.nanquantile(clocks, [0.05, 0.5, 0.95]) / 1e9
        self.note(f"{record['level']}: the cores' clock was {middle:.2f} GHz, 5th to 95th percentile {low:.2f} .. {high:.2f}")
        return float(middle)
