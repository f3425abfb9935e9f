import numpy as np
import reframe as rfm

from plumbline.model import baselines, limits, metrics, probes, records
from plumbline.rfm.check import NativeCheck
from plumbline.system import datasheet, topology

#: Bits of a register of each stream; how wide the compiler makes `plain` is its choice.
BITS = {'scalar': 64, 'simd128': 128, 'simd256': 256, 'simd512': 512}

#: Chains of multiply-adds of each, at least (src/kernels/flops).
CHAINS = 12

#: Rows of each thread's matrices: three of them are more than a second-level cache holds.
ORDER = 600


@rfm.simple_test
class peak_flops(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How many operations does a core do at each SIMD width, of those that it can at its clock; what is left of them when all
    cores work; and what does the BLAS make of them?'''

    source = "hager2004, section 3.1; HPC Challenge's StarDGEMM (Luszczek et al. 2005)"
    subsystem = 'core'
    samples = 25
    program = 'flops'
    threads = 'all'
    tags = {'node', 'health', 'acceptance'}
    env_vars = dict.fromkeys(('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'BLIS_NUM_THREADS'), '1')      # each thread of ours calls it

    def options(self):
        counts = sorted({1, len(self.all_cpus)})
        return ['--variants', 'all', '--size', ORDER, '--per-thread', '--threads', ','.join(map(str, counts)), '--min-time', '0.005']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        unjudged = self.disturbed()
        most = max(record['threads'] for record in group)
        alone = {record['variant']: record for record in group if record['threads'] == 1}
        if 'dgemm' not in alone:
            self.skip_metric('flops.dgemm', 'built without BLAS: install libopenblas-openmp-dev, or another, and build again', ['dgemm'])
        else:
            self.note(f"dgemm: {alone['dgemm']['options']['library']}")
        for record in [record for record in group if self.one_by_one(record)]:
            calls = record['options']['calls_at_once']
            why = ('is built without threads, and two of ours must not call it at once: install one with them (libopenblas-openmp-dev)' if calls == 1
                   else f'takes {calls} calls at once, of {record["threads"]}: install one that is built with NUM_THREADS={record["threads"]}')
            for metric in ('flops', 'of_fma'):
                self.skip_metric(f'{metric}.dgemm.all', f'this OpenBLAS {why} and build again')
            group.remove(record)
        for record in group:
            name = f"{record['variant']}.{'one' if record['threads'] == 1 else 'all'}"
            yield metrics.flops(record, name)
            if record['variant'] in BITS:
                yield from self.of_peak(record, name, unjudged)
                if record['threads'] == 1:
                    yield from self.of_baseline(record, name, unjudged)
        for threads in sorted({1, most}):
            yield from self.of_fma([record for record in group if record['threads'] == threads])
        if most == 1:
            return self.skip_metric('efficiency.all', topology.ONE_CPU, symptom='too_few_cpus')
        stream = self.best([record for record in group if record['threads'] == most])
        yield metrics.Metric('efficiency', 'all', limits.paired_ratio(stream, alone[stream['variant']], 'flops') / most, unjudged=unjudged)

    @staticmethod
    def one_by_one(record):
        '''Whether the threads took turns: what they reach says nothing of all cores at work.'''
        return record['variant'] == 'dgemm' and record['options']['calls_at_once'] < record['threads']

    def best(self, cases):
        '''The fastest stream: not all processors are faster with wider registers.'''
        return max((case for case in cases if case['variant'] != 'dgemm'), key=lambda case: np.median(records.rate(case, 'flops')))

    def of_fma(self, cases):
        for record in cases:
            if record['variant'] == 'dgemm':
                stream = self.best(cases)
                wide = self.current_partition.processor.platform == 'x86_64' or str(self.microarchitecture).startswith('neoverse')
                scope = 'one' if record['threads'] == 1 else 'all'
                yield metrics.Metric('of_fma', f'dgemm.{scope}', limits.paired_ratio(record, stream, 'flops'), record=record,
                                     unjudged=None if wide else 'no stream is as wide as the registers may be')

    def of_baseline(self, record, name, unjudged):
        '''One core by the prediction for its microarchitecture.'''
        arch, clock = self.microarchitecture, probes.beside(record, probes.CLOCK)
        found, reason = baselines.fma(arch, BITS[record['variant']], CHAINS)
        if found and clock is None:
            reason = baselines.NO_CLOCK
        if reason:
            self.skip_metric(f'of_baseline.{name}', reason)
            return
        per_cycle = records.rate(record, 'flops') * 1e6 / np.where(np.isnan(clock), np.nanmedian(clock), clock)
        yield baselines.of_baseline(name, found, per_cycle, record, arch, self.plumbline.of_machine, unjudged)

    def of_peak(self, record, name, unjudged):
        '''Against the clock beside each sample: of scalar additions, but right after a pass of the same stream, and a processor
        that lowers its clock for wide registers does so for longer than the additions take (2.38 GHz beside simd512, 2.67
        beside simd256 were measured on a Cascade Lake).'''
        per_cycle, reason = datasheet.flops_per_cycle(self.microarchitecture, BITS[record['variant']])
        clock = probes.beside(record, probes.CLOCK)
        if not reason and clock is None:
            reason = 'peak unknown: no clock was measured beside the samples'
        if reason:
            self.skip_metric(f'of_peak.{name}', reason)
            return
        clock = np.where(np.isnan(clock), np.nanmedian(clock), clock)
        rates, peak = records.rate(record, 'flops'), per_cycle * clock * record['threads'] * 1e-6       # Mflop/s
        yield metrics.Metric('of_peak', name, rates / peak, unjudged=unjudged, record=record)
        promised, _ = datasheet.of_partition(self.current_partition, self.microarchitecture)
        if highest := ((promised or {}).get('core') or {}).get('clock'):
            yield metrics.Metric('of_datasheet', name, rates / (per_cycle * highest * 1e3 * record['threads']), unjudged=unjudged, record=record)
