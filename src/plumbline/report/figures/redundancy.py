'''Execution rate against performance.'''

import numpy as np

from plumbline.model import quantity, records, sources
from plumbline.report import drawing
from plumbline.report.figures.common import Table, each_place
from plumbline.report.readings import GIGA, measured, quartiles, rates


@each_place('Performance and execution rate', 'there are no records of the original or of the restructured way')
def redundancy(at, group):
    '''Performance and execution rate side by side (arsc2002, first article).'''
    caption = (
        'Left: performance, the speed-up over the original (median over the rounds, in which all ran in turn; whiskers: '
        'quartiles). Right: execution rate. The two rank the ways alike only where the work is the same: relative '
        'execution rate = speed-up x redundancy. After arsc2002, first article.'
    )
    header = ('way', 'operations a step', 'time', 'speed-up', 'rate', 'relative rate', 'redundancy')
    ways = measured(group)
    first, least = (next((r for r in ways if r['variant'] == variant), None) for variant in ('original', 'restructured'))
    if first and least:
        names = [r['variant'] for r in ways]
        speedups = [quartiles(records.per_pass(first) / records.per_pass(r)) for r in ways]
        flops = [quartiles(rates(r, 'flops')) for r in ways]
        panels = ('performance (speed-up)', speedups), ('execution rate (Gflop/s)', flops)
        yield f'Performance and execution rate{at}', caption, drawing.side_by_side(names, *panels)
        rows = [
            [r['variant'], quantity.digits(_work(r) / r['size']), quantity.amount(float(np.median(records.per_pass(r))), 's'),
             quantity.digits(speedup[1]), quantity.amount(rate[1] / GIGA, 'Mflop/s'), quantity.digits(speedup[1] * _work(r) / _work(first)),
             quantity.digits(_work(r) / _work(least))]
            for r, speedup, rate in zip(ways, speedups, flops)
        ]
        told = (
            'Operations counted by running the same source with operations that count. Redundancy: work over that of the '
            f"restructured way. In 2002 the four had speed-ups of {_then('speedup')} and redundancies of {_then('redundancy')} over the original, "
            'which evaluated f once a step; here it evaluates it twice, as the vectorised way does, and their redundancies are equal.'
        )
        yield f'Performance and execution rate{at}: the figures', told, Table(header, rows)


def _then(column):
    return ', '.join(f"{sources.value('arsc2002-redundancy', str(number), column):g}" for number in range(1, 5))


def _work(record):
    return records.per_pass(record, 'flops')


FIGURES = {'redundancy': redundancy}
