import reframe as rfm

from plumbline.model import metrics, quantity
from plumbline.rfm import capacity as caches
from plumbline.rfm.check import NativeCheck


@rfm.simple_test
class capacity(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How much of each cache is ours, as told by where the latency of a chase over growing sizes rises, and is that what the topology says?

    It reads what the fixture has measured whose result the working sets of all checks rest on.
    '''

    source = 'pointer chase over the working set; the topology as the upper bound of each level'
    subsystem = 'levels'
    program = 'capacity'
    processes = 1
    threads = 'all'
    tags = {'node', 'health', 'acceptance'}

    def options(self):
        return []

    def start(self, command):
        if not self.programs.command:
            given = caches.settings.CAPACITY != caches.MEASURED
            self.skip_test(f'PLUMBLINE_CAPACITY says {caches.settings.CAPACITY}' if given else 'the topology has no sizes of caches', 'capacity')
        self.plumbline.threads = self.threads
        self.run_command(['cat', self.programs.recorded])
        return self.programs.command

    def pooled(self, measurements):
        '''A second run reads the same again, which confirms nothing: it is judged as the first was.'''
        return measurements

    def evaluate(self):
        claimed = caches.claims(self.current_partition.processor, self.all_cpus[0])
        if reason := caches.disturbed(self.plumbline.contention):
            self.skip_test(reason, 'capacity')
        for level, found in caches.found(self.measurements, claimed, self.plumbline.of_machine).items():
            if not found.samples.size:
                self.skip_metric(f'capacity.{level}', found.reason, symptom='noise', subsystem=level)
                self.note(f'{level}: {found.reason}: at most {quantity.size(found.ours)} of {quantity.size(found.claim)} are ours', 'caches')
                continue
            low, high = map(quantity.size, found.interval)
            part = 'all' if found.is_whole or found.is_larger else f'{quantity.size(found.ours)} ({low} to {high})'
            more = f': it is larger than the topology says, {low} to {high}' if found.is_larger else ''
            self.note(f'{level}: {part} of {quantity.size(found.claim)} are ours{more}', 'caches' if more or not found.is_whole else None)
            yield metrics.Metric('capacity', level, found.samples, subsystem=level)
