import shlex

import reframe as rfm
from reframe.core.builtins import fixture

from plumbline.judged import measured
from plumbline.model import metrics, records
from plumbline.model.quantity import amount, percent
from plumbline.named import stream as text
from plumbline.named.check import NamedCheck
from plumbline.rfm.programs import native_programs
from plumbline.system import topology


@rfm.simple_test
class stream(rfm.RunOnlyRegressionTest, NamedCheck):
    '''What does STREAM say of the memory's bandwidth, and is it what our own triad gets beside it?'''

    source = 'McCalpin, STREAM 5.10'
    product, level, threads = 'stream', 'memory', 'all'
    programs = fixture(native_programs, scope='environment')

    def options(self):
        return []

    def around_a_run(self):
        '''Our triad, a = b + s c as well, goes before each run, with as many threads on the same cores.'''
        before, after = super().around_a_run()
        size = 3 * text.OVER_CACHES * self.caches // 8        # the least that STREAM's own three arrays must have
        ours = [self.programs.path('limits'), '--variants', 'triad', '--size', size, '--threads', len(self.cpus), '--cpus',
                ','.join(map(str, self.cpus)), '--samples', records.MIN_SAMPLES, '--min-time', 0.02, '--probes', 'off']
        return [*before, shlex.join(map(str, ours))], after

    def wrong_result(self):
        return records.told_wrong(self.output()) or super().wrong_result()

    @property
    def caches(self):
        return topology.last_level_share(self.current_partition.processor, self.cpus) * len(self.cpus)

    def figures(self, output, source):
        return text.figures(output, source, threads=len(self.cpus), caches=self.caches)

    def evaluate(self):
        run, = self.measurements
        yield from (found := list(super().evaluate()))
        ours, = metrics.kernels(records.parse(run['text'], 'our triad').measurements)
        best, own = found[-1].value, float(records.rate(ours).max())
        pages = ours['huge_page_share']
        self.note(f"first run: STREAM {amount(best, 'MB/s')}, the best of our triad beside it {amount(own, 'MB/s')}; ours has huge pages for "
                  f'{"an unknown part" if pages is None else percent(pages, 0)} of its arrays, STREAM where all programs get them (always)')
        yield measured('of_own', 'triad', best / own, '1')
