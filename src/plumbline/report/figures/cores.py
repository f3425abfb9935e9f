'''Core-to-core latency: a cell for each pair of CPUs; the levels that were met; the clock of each core.'''

import math

import numpy as np

from plumbline.analysis import handovers, levels
from plumbline.errors import PlumblineError
from plumbline.model import quantity
from plumbline.report import drawing
from plumbline.report.figures.common import Table, each_place, not_drawn
from plumbline.report.figures.matrix import heat_map, width
from plumbline.report.readings import GIGA


@each_place('Core-to-core latency')
def cores(at, group):
    '''A heat map, the levels as a table, and the clocks.'''
    records = {record['variant']: record for detail in group for record in detail.get('records') or []}
    if 'handover' not in records:
        return
    try:
        found = handovers.handover(records['handover'])
        speeds = handovers.clocks(records['clock']) if 'clock' in records else None
    except PlumblineError as error:
        yield not_drawn(f'Core-to-core latency{at}', str(error))
        return
    yield f'Core-to-core latency{at}', _caption(found), _heat_map(found)
    yield f'Levels of core-to-core latency{at}', (
        "Told apart by gaps between the values of all pairs in all samples. More than one level in a pair's own samples: the cores, or what they "
        'share, changed while they were measured, as inside a virtual machine.'
    ), Table(('level', 'latency', 'samples of all pairs', 'pairs that are in it most often'), list(_rows(found)))
    if speeds and np.isfinite(speeds.all).any():
        yield f'Clock of each core{at}', (
            'From a chain of dependent additions. Alone: all other cores sleep. While all work: additions in registers on each. Median; whiskers: '
            'quartiles of the samples.'
        ), _clocks(speeds)


def _caption(found):
    blocks = width(len(found.cpus))
    return (
        'Time to hand a cache line from one CPU to the other, one way: the least of three batches, mean over the passes of a sample, '
        f'median of {len(found.samples)} samples; all pairs of a round at once. CPUs in the order of the topology: what shares a '
        'cache stands together. Grey: no answer.'
        + (f' Each cell is the slowest pair of {blocks} x {blocks} neighbours.' if blocks > 1 else '')
    )


def _heat_map(found):
    matrix = found.matrix(found.typical)
    low = math.floor(math.log2(np.nanmin(matrix)))
    return heat_map(matrix, [str(cpu) for cpu in found.cpus], ('CPU', 'CPU'), 'ns', low=low)


def _rows(found):
    for level, ns in enumerate(found.level_ns):
        share = (found.level == level).sum() / (found.level >= 0).sum()
        yield str(level + 1), quantity.amount(ns * 1e-3, 'us'), quantity.percent(share), f'{(found.usual == level).sum()}'


def _clocks(speeds):
    figure = drawing.empty(320)
    for (name, clock), (colour, symbol, _) in zip((('alone', speeds.one), ('while all work', speeds.all)), drawing.SERIES):
        low, middle, high = (levels.median(clock, axis=0, share=share) * GIGA for share in (25, 50, 75))
        figure.add_scatter(
            x=list(range(len(speeds.cpus))), y=middle, name=name, mode='markers', marker={'color': colour, 'symbol': symbol, 'size': 7},
            error_y={'type': 'data', 'array': high - middle, 'arrayminus': middle - low, 'thickness': 1, 'width': 2},
            customdata=speeds.cpus, hovertemplate='CPU %{customdata}: %{y:.2f} GHz<extra>' + name + '</extra>',
        )
    step = math.ceil(len(speeds.cpus) / 24)
    shown = list(range(0, len(speeds.cpus), step))
    figure.update_xaxes(title='CPU', tickvals=shown, ticktext=[str(speeds.cpus[i]) for i in shown])
    figure.update_yaxes(title='GHz', rangemode='tozero')
    return figure


FIGURES = {'cores': cores}
