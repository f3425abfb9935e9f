'''Runs of the same command as samples.'''

from dataclasses import dataclass

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.imb.contradiction import ROUNDING
from plumbline.imb.layout import BENCHMARKS, Shape


@dataclass(frozen=True)
class Case:
    '''One row of a table in every run.

    :attr values: name of a column -> its numbers, shape (runs,).
    '''
    shape: Shape
    bytes: int | None
    values: dict

    @property
    def kind(self):
        '''Of the benchmark: a key of :data:`layout.HEADINGS`.'''
        return BENCHMARKS[self.shape.benchmark].kind

    @property
    def seconds(self):
        '''Time of one repetition in each run, of the slowest process where IMB shows a range, s.

        IMB prints hundredths of a microsecond, which is coarse within a node; where it prints a rate as well, the time
        is taken from whichever of the two has more digits.
        '''
        printed = next(self.values[name] for name in ('t', 't_max', 't_pure') if name in self.values)
        rate, messages = self.values.get('bandwidth'), BENCHMARKS[self.shape.benchmark].messages
        if rate is None or not self.bytes or self.kind == 'one to all':
            return printed * 1e-6
        with np.errstate(divide='ignore'):
            finer = ROUNDING / rate < ROUNDING / printed
            return np.where(finer, messages * self.bytes / rate, printed) * 1e-6


def samples(found):
    '''The same row of several runs together.

    :arg found: :class:`Output` of each run.
    :returns: list of :class:`Case`, in the order of printing.
    :raises PlumblineError: if the runs are not of one kind.
    '''
    first = [(row.shape, row.bytes) for row in found[0].rows]
    for number, output in enumerate(found, start=1):
        if [(row.shape, row.bytes) for row in output.rows] != first:
            raise PlumblineError(f'{output.program}, run {number}: its tables are not those of run 1')
    return [Case(*key, {name: np.array([row.values[name] for row in rows]) for name in rows[0].values})
            for key, rows in zip(first, zip(*(output.rows for output in found)))]
