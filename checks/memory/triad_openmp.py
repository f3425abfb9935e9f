import numpy as np
import reframe as rfm
from reframe.core.builtins import variable

from plumbline.model import limits, metrics, records
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.variables import Whole
from plumbline.system import topology


@rfm.simple_test
class triad_openmp(rfm.RunOnlyRegressionTest, NativeCheck):
    '''What does OpenMP cost: a parallel loop inside the loop over the repetitions, on one thread and on more, against the loop without
    a directive, over N?

    ``latency`` is the time of a pass over ten elements, which is that of opening and closing the region.  ``speedup`` is the rate over
    that of the serial loop of the same N: of ``openmp.1`` what the directive costs by itself, of more threads what is left of them.
    '''

    source = 'hager2004, section 4, figure 6'
    subsystem = 'memory'
    samples = 30
    program = 'triad'
    threads = 'all'
    opens_regions = True
    tags = {'acceptance'}

    #: Further lengths between the shortest and what memory needs, evenly spaced in log N.
    points = variable(Whole, value=16)

    #: The shortest loop, as the source has it.
    SHORTEST = 10

    def options(self):
        #: Length -> the level in which the arrays live that all threads have a part of.
        self.lengths = {size // 32: level for level, size in self.every_working_set().items()}
        counts = topology.thread_counts(self.all_cpus, self.current_partition.processor)
        return ['--variants', 'plain,openmp', '--threads', ','.join(map(str, counts)), '--size', ','.join(map(str, self.lengths)),
                '--sweep', f'{self.SHORTEST}:{max(self.lengths)}:{self.points}', '--min-time', '0.002']

    def evaluate(self):
        gains = []
        for group in metrics.groups(self.measurements):
            serial = next(record for record in group if record['variant'] == 'plain' and record['threads'] == 1)
            n, regions = serial['size'], {record['threads']: record for record in group if record['variant'] == 'openmp'}
            gains.append((n, float(np.median(limits.paired_ratio(regions[max(regions)], serial, 'bytes')))))
            for threads, record in regions.items():
                if n == self.SHORTEST:
                    yield metrics.latency(records.per_pass(record), f'region.{threads}', record)
                elif n in self.lengths:
                    yield metrics.Metric('speedup', f'openmp.{threads}.{self.lengths[n]}', limits.paired_ratio(record, serial, 'bytes'),
                                         record=record, unjudged=self.disturbed() if threads > 1 else None, subsystem=self.lengths[n])
        if len(self.all_cpus) == 1:
            self.note('one CPU: what more threads win or lose is not measured')
            return
        slower = [n for n, gain in sorted(gains) if gain <= 1]
        faster = [n for n, gain in sorted(gains) if gain > 1 and n > max(slower, default=0)]
        self.note(f'{len(self.all_cpus)} threads are ' + (f'faster than the serial loop from N = {faster[0]} on' if faster else 'never faster')
                  + (f', not yet at N = {max(slower)}' if slower and faster else ''))
