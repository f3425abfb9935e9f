import numpy as np
import reframe as rfm
from reframe.core.builtins import variable

from plumbline.model import limits, metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Whole, Wholes


def way(record):
    '''``malloc``, or ``shift32``.'''
    options = record['options']
    return f"shift{options['shift']}" if options['alloc'] == 'dynamic' else options['alloc']


@rfm.simple_test
class triad_alignment(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''Does the memory bandwidth depend on how the four arrays lie to each other, and then on their length?

    Arrays that begin at 4 KiB and are shifted against each other, and such as malloc gives them, which the source's figure has as the
    erratic curve.  ``speedup`` is each way's rate over that of the arrays that all begin at 4 KiB.
    '''

    source = 'hager2007, section 3.1, figure 4'
    subsystem = 'memory'
    program = 'triad'
    threads = 'all'
    tags = {'acceptance'}
    OF_A_GIB = 300      # of seven lengths

    #: Bytes by which each array is shifted against the one before; the source has 0, 32 and 128.
    shifts = variable(Wholes, value=[0, 32, 128, 1024], loggable=False)

    #: Further lengths up to 1.1 times the first, none a multiple of a page.
    points = variable(Whole, value=6)

    def options(self):
        first = self.elements('memory', 32)
        sizes = [first, *(int(first * (1 + 0.1 * i / self.points)) // 8 * 8 + 8 * i + 1 for i in range(1, self.points + 1))]
        return ['--variants', 'plain', '--alloc', 'dynamic,malloc', '--shift', ','.join(map(str, self.shifts)),
                '--size', ','.join(map(str, sizes)), '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        along = {}
        for group in metrics.groups(self.measurements):
            ways = {way(record): record for record in metrics.kernels(group)}
            for name, record in ways.items():
                rates = limits.paired_ratio(record, limits.best(group), 'bytes')
                along.setdefault(name, {})[record['size']] = float(np.median(rates))
            if record['size'] not in self.intended:
                continue
            yield from self.limited(group, way)
            aligned = ways.get('shift0')
            for name, record in ways.items():
                if aligned and record is not aligned:
                    yield metrics.Metric('speedup', name, limits.paired_ratio(record, aligned, 'bytes'), record=record)
        for name, found in along.items():
            least, most = min(found, key=found.get), max(found, key=found.get)
            self.note(f'{name} along {len(found)} lengths: from {found[least]:.2f} (N = {least}) to {found[most]:.2f} (N = {most}) of the '
                      "limit stream's bytes")
