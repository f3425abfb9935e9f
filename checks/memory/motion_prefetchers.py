
import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, run_before, variable

from plumbline.likwid import features
from plumbline.model import metrics, records
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.variables import Whole


@rfm.simple_test
class motion_prefetchers(rfm.RunOnlyRegressionTest, NativeCheck):
    '''What do the hardware prefetchers gain, and does software prefetch replace them?'''

    source = 'anderson1997, section 3.2.2, table 3: streams on and off'
    subsystem = 'memory'
    samples = 10
    program = 'motion'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    #: How often the program runs with them on and off, in turn.
    rounds = variable(Whole, value=5, loggable=False)

    def options(self):
        return ['--variants', 'fill,load,load_prefetch,copy,copy_prefetch', '--size', self.elements('memory', 8), '--threads', len(self.cpus)]

    @run_before('run', always_last=True)
    def switch_prefetchers(self):
        if 'likwid' not in self.current_partition.features:
            self.skip_test('likwid is not on this partition', 'speedup')
        self.write_file('prefetchers.sh', features.script(self.cpus, self.rounds))
        self.executable_opts = ['prefetchers.sh', self.executable, *self.executable_opts]
        self.executable = 'sh'

    @run_before('sanity')
    def skip_without_switches(self):
        reason = None if self.is_dry_run() else features.unavailable_reason(self.output())
        if reason:
            self.skip_test(reason, 'speedup')

    def evaluate(self):
        variants = dict.fromkeys(record['variant'] for record in self.measurements)
        for variant in variants:
            cases = {state: [record for record in self.measurements if record['variant'] == variant
                             and record['options']['prefetchers'] == state] for state in ('on', 'off')}
            for state, runs in cases.items():
                rates = np.concatenate([records.rate(record) for record in runs])
                yield metrics.Metric('bandwidth', f'{variant}.{state}', rates)
            on, off = ([np.median(records.rate(record)) for record in runs] for runs in cases.values())
            yield metrics.Metric('speedup', variant, np.array(on) / np.array(off), unjudged='a property of the processor')
