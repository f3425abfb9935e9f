import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import baselines, metrics, probes, tlb
from plumbline.rfm import capacity as caches
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.variables import Whole
from plumbline.system import datasheet

#: Bits of a register, at most: of what the microarchitecture has.
WIDEST = 512

#: Levels and pages whose latency has a baseline: half of L2 is more than a first-level TLB covers with base pages.
PREDICTED = {('L1', 'base'), ('L1', 'huge'), ('L2', 'huge')}


class chase_per_level(rfm.RunOnlyRegressionTest, NativeCheck):
    source = 'byna2003, section 3: latency and page size in the model of memory cost; anderson1997, table 1: in cycles and operations'
    subsystem = 'latency'
    program = 'chase'
    threads = 'one'
    pages = parameter(['huge', 'base'], type=str)

    def evaluate(self):
        given = [record for record in self.measurements if self.has_its_pages(record)]
        for record in self.measurements:
            if not self.has_its_pages(record):
                self.skip_metric(f"latency.{record['level']}.{self.pages}", parts=[record['level'] or self.pages], **self.why_base(record))
        of_level = {record['level']: record for record in given if record['size'] in self.intended}
        latencies = {level: tlb.nanoseconds(record) * 1e-3 for level, record in of_level.items()}
        if not latencies:
            last = self.measurements[-1]
            why = self.why_base(last)
            self.skip_test(**why | {'reason': f"{why['reason']}; see the same with base pages"}, had=last['huge_page_share'] is not None)
        levels = [*caches.claims(self.current_partition.processor, self.all_cpus[0]), 'memory']
        below = dict(zip(levels[1:], levels))
        for level, samples in latencies.items():
            lower = below.get(level)
            yield metrics.Metric('latency', f'{level}.{self.pages}', samples, record=of_level[level])
            yield from self.in_cycles(level, samples, of_level[level])
            if lower and lower not in latencies:
                self.skip_metric(f'growth.{level}.{self.pages}', f'{lower} was not measured')
            elif lower:
                yield metrics.Metric('growth', f'{level}.{self.pages}', samples / latencies[lower])
            if lower in latencies and np.median(samples) < 1.2 * np.median(latencies[lower]):
                self.note(f'{level} is hardly slower than {lower}: {lower} is smaller here than its topology says, as '
                          'where a virtual machine has a part of it')

    def in_cycles(self, level, samples, record):
        '''The latency in cycles of the clock beside it, and what one core could compute in that time with its widest registers.'''
        subject, clock = f'{level}.{self.pages}', probes.beside(record, probes.CLOCK)
        if clock is None or not np.isfinite(clock).any():
            self.skip_metric(f'cycles.{subject}', 'no clock was measured beside the samples')
            if (level, self.pages) in PREDICTED:
                self.skip_metric(f'of_baseline.{subject}', baselines.NO_CLOCK)
            return
        cycles = samples * 1e-6 * np.where(np.isnan(clock), np.nanmedian(clock), clock)
        yield metrics.Metric('cycles', subject, cycles, record=record)
        if (level, self.pages) in PREDICTED:
            yield from self.of_baseline(level, subject, cycles, record)
        if level != 'memory':
            return
        per_cycle, reason = datasheet.flops_per_cycle(self.microarchitecture, WIDEST)
        if reason:
            self.skip_metric(f'to_cover.{subject}', reason)
        else:
            yield metrics.Metric('to_cover', subject, cycles * per_cycle, record=record)

    def of_baseline(self, level, subject, cycles, record):
        arch = self.microarchitecture
        found, reason = baselines.latency(arch, level)
        if reason:
            self.skip_metric(f'of_baseline.{subject}', reason)
        else:
            yield baselines.of_baseline(subject, found, cycles, record, arch, self.plumbline.of_machine, self.disturbed())

    def why_base(self, record):
        return tlb.why_not_given(record['huge_page_share'], tlb.larger_than(record, self.plumbline.of_machine))

    def has_its_pages(self, record):
        '''Base pages are always given; huge ones if the kernel finds some.'''
        return self.pages == 'base' or tlb.given(record['huge_page_share'])


@rfm.simple_test
class latency(chase_per_level):
    '''How long does a load take that needs the result of the one before, from each level of the memory hierarchy, and how
    much of that are TLB misses (base pages) or not (huge pages)?'''

    samples = 15
    tags = {'node', 'health', 'acceptance'}

    def options(self):
        return ['--variants', 'dense', '--pages', self.pages, '--threads', 1, '--size', ','.join(map(str, self.every_level(64).values()))]


@rfm.simple_test
class latency_curve(chase_per_level):
    '''How does the load-to-use latency grow with the working set, and do the caches end where the topology says?'''

    samples = 12
    tags = {'acceptance'}

    #: Working sets between 1 KiB and what memory needs, evenly spaced in log N.
    points = variable(Whole, value=40)

    def options(self):
        sizes = self.every_level(64)
        in_cache = [str(size) for level, size in sizes.items() if level != 'memory']
        return ['--variants', 'dense', '--pages', self.pages, '--threads', 1, '--min-time', '0.002',
                '--size', ','.join(in_cache), '--sweep', f'16:{max(sizes.values())}:{self.points}']

    def evaluate(self):
        yield from super().evaluate()
        curve = {record['size']: record for record in self.measurements if self.has_its_pages(record)}
        yield from metrics.of_flanks({size: 1 / tlb.nanoseconds(record) for size, record in curve.items()}, self.pages, curve)
