import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import limits, metrics, probes
from plumbline.rfm.check import NativeCheck
from plumbline.system import topology


@rfm.simple_test
class triad_scaling(rfm.RunOnlyRegressionTest, NativeCheck):
    '''Do the cores add up: are n threads n times as fast as one, in their own caches and in memory?

    In their caches per clock cycle: one core alone runs at a higher clock than all together, which is as it should be, and has a
    metric of its own (``cores``).
    '''

    source = 'hager2004, section 4, table 2 and figure 6; hager2007, section 3.1'
    subsystem = 'levels'
    samples = 60
    program = 'triad'
    threads = 'all'
    level = parameter(['cache', 'memory'], type=str)
    tags = {'health', 'acceptance'}

    def options(self):
        counts = topology.thread_counts(self.all_cpus, self.current_partition.processor)
        return ['--variants', 'simd|plain', '--threads', ','.join(map(str, counts)), *self.size()]

    def size(self):
        '''In cache each thread has its own part of a cache that no other core shares.'''
        if self.level == 'memory':
            return ['--size', self.elements('memory', 32)]
        processor = self.current_partition.processor
        private = topology.private_level(processor)
        if private is None:
            self.skip_test('by the topology several cores share each cache', 'efficiency.all')
        each = topology.working_set(processor, private, self.all_cpus[:1], ours=self.ours()) // 32
        for threads in range(1, len(self.all_cpus) + 1):
            self.intended[each * threads] = private
        return ['--size', each, '--per-thread']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        single = next(record for record in group if record['threads'] == 1)
        if len(group) == 1:
            self.skip_metric('efficiency.all', topology.ONE_CPU, symptom='too_few_cpus')
        for record in group:
            n = record['threads']
            yield metrics.bandwidth(record, f'{n}')
            if n > 1:
                ratio = limits.paired_ratio(record, single, 'bytes') / n
                factor, unjudged = probes.clock_ratio(single, record) if self.level == 'cache' else (1.0, None)
                yield metrics.Metric('efficiency', 'all' if n == len(self.all_cpus) else f'{n}', ratio * factor,
                                     unjudged=unjudged or self.disturbed(), doubt=self.shared(record) if self.level == 'cache' else None)

    def shared(self, record):
        '''Why the threads need not be what is slow; None where nobody else worked on their cores.'''
        others = probes.beside_others(self.measurements, self.plumbline.of_machine.get('core_kinds', ()))
        return probes.doubt_beside(others[self.measurements.index(record)])
