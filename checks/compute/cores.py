import numpy as np
import reframe as rfm
from reframe.core.builtins import run_after, variable

from plumbline.analysis import cores as model, handovers, levels
from plumbline.model import baselines, metrics, quantity
from plumbline.model.pairs import LEAST_NODES
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.node import allocation
from plumbline.rfm.variables import YesNo
from plumbline.system.topology import BESIDE_OTHERS, cpu_list, cpu_order, too_few

#: Numbers in the matrices of all samples together: more pairs have fewer samples, ten at least.
MOST_NUMBERS = 100_000

#: Share of the pairs of a kind that may change their level: one core that others disturb does not speak for all.
MOST_MOVING = 0.1

#: Share of the base clock that a processor holds at least (``of_base`` in ``config/references/portable.yaml``).
HELD = 0.9


@rfm.simple_test
class cores(rfm.RunOnlyRegressionTest, NativeCheck):
    '''Are the cores where the topology says, as told by the time that a cache line takes from each to each; is one of them slower
    than the others; what is left of one core's clock when all of them work; and is that the clock that the processor promises?'''

    source = 'cache line handed to and fro; dependent additions'
    subsystem = 'core'
    samples = 40
    processes = 1       # a matrix is one measurement
    program = 'cores'
    threads = 'all'
    tags = {'node', 'health', 'acceptance'}

    #: Also the second hardware threads of the cores, if there are any and they may be used.
    hardware_threads = variable(YesNo, value=False, loggable=False)

    @run_after('setup')
    def choose_threads(self):
        if self.hardware_threads and self.quota is None:
            self.all_cpus = cpu_order(self.current_partition.processor, allocation(self.current_partition)[0], smt=True)
            self.num_cpus_per_task = len(self.all_cpus)
        if len(self.all_cpus) < 2:
            self.skip_test('needs two CPUs, which hand over a cache line: there is one', symptom='too_few_cpus')

    def options(self):
        count = len(self.all_cpus)
        self.samples = max(10, min(self.samples, 2 * MOST_NUMBERS // (count * (count - 1))))
        variants = ['handover', *(['alone'] if count >= LEAST_NODES else []), 'clock']
        return ['--variants', ','.join(variants), '--threads', count, '--pages', 'base', '--probes', 'off', '--min-time', '0.005']

    def evaluate(self):
        of = {record['variant']: record for record in self.measurements}
        found = handovers.handover(of['handover'], self.current_partition.processor)
        speeds = handovers.clocks(of['clock'])
        together = model.together_over_alone(found, of['alone']) if 'alone' in of else None
        kinds = self.plumbline.of_machine.get('core_kinds', ())
        if kinds:
            self.note(f"cores of {len(kinds)} kinds, each compared with its own: CPUs {'; '.join(map(cpu_list, kinds))}")
        for finding in model.findings(found, speeds, together, self.current_partition.processor, kinds):
            self.note(str(finding))
        if model.silent(found) > 0.05:
            self.note(f'{quantity.percent(model.silent(found), 0)} of the handovers had no answer: other work had the CPUs')
        unjudged = baselines.virtual(of['handover']['options'])      # neither places nor distances of the cores are the machine's
        yield from self.latencies(found, unjudged)
        if together is not None and len(together):
            yield metrics.Metric('slowdown', 'together', together)
        as_claimed = model.of_topology(found, speeds, kinds)
        if as_claimed is None:
            self.skip_metric('of_topology.pairs', 'no two cores are of one kind')
        else:
            yield metrics.Metric('of_topology', 'pairs', np.array([as_claimed]), unjudged=unjudged)
        yield from self.of_fellows('latency', model.of_median(found, kinds), unjudged)
        yield from self.clocks(found, speeds, kinds, unjudged or too_few(self.current_partition.processor, self.all_cpus))

    def latencies(self, found, unjudged):
        '''Of the pairs of each kind, in the level that they were in most often.'''
        for name, members in found.kinds():
            values = found.samples[:, members]
            values = np.array([np.nanmedian(row) for row in values if np.isfinite(row).any()])
            index = levels.of(values, found.boundaries)
            changed = 'its level changed between samples' if model.moving(found)[members].mean() > MOST_MOVING else None
            yield metrics.Metric('latency', f'core_to_core.{name}', values[index == np.bincount(index).argmax()] * 1e-3, unjudged=unjudged or changed)

    def of_fellows(self, what, samples, unjudged=None, others=None):
        if samples is None:
            self.skip_metric(f'of_median.{what}', f'{len(self.all_cpus)} cores cannot be ranked: {LEAST_NODES} of a kind at least')
        else:
            doubt = others if np.median(samples) >= BESIDE_OTHERS else None
            yield metrics.Metric('of_median', what, np.atleast_1d(samples), unjudged=unjudged, doubt=doubt)

    def clocks(self, found, speeds, kinds, others=None):
        if not np.isfinite(speeds.all).any():
            for metric in ('clock.one', 'clock.all', 'clock_ratio.all', 'of_median.clock', 'of_base.one', 'of_base.all'):
                self.skip_metric(metric, 'the chain of additions is not written for this instruction set')
            return
        typical = {'one': np.nanmedian(speeds.one, axis=1), 'all': np.median(speeds.all, axis=1)}
        for subject, mhz in typical.items():
            yield metrics.Metric('clock', subject, mhz)
        yield metrics.Metric('clock_ratio', 'all', speeds.ratio)
        yield from self.of_fellows('clock', model.lowest_clock(found, speeds, kinds), None, others)
        base = self.plumbline.of_machine.get('base_clock')
        if not base or kinds:
            why = 'cores of several kinds have several' if kinds else 'neither the kernel nor a time-stamp counter says it'
            for subject in typical:
                self.skip_metric(f'of_base.{subject}', f'base clock not known: {why}')
            return
        self.note(f"base clock: {base['mhz']:.0f} MHz ({base['source']})")
        lowered, nominal = None, base.get('nominal_mhz', base['mhz'])
        if 'nominal_mhz' in base:
            lowered = (f"the base clock that the kernel says is {quantity.percent(1 - base['mhz'] / nominal)} below the processor's nominal one, "
                       f'{nominal:.0f} MHz by its time-stamp counter: a limit of power or heat has lowered it, or a profile (SST-PP) was chosen')
            self.note(f'{lowered}; of_base is of the nominal one')
        for subject, mhz in typical.items():
            # With turbo a profile keeps no processor below the nominal clock; without it the clock of the profile is all that there is.
            by_profile = lowered and not base['turbo'] and np.nanmedian(mhz) >= HELD * base['mhz']
            yield metrics.Metric('of_base', subject, mhz / nominal, doubt=lowered if by_profile else None)
