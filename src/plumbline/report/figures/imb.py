'''Intel MPI Benchmarks: time and bandwidth over the size of the message.'''

from typing import Any

import numpy as np

from plumbline.imb.subjects import read
from plumbline.model import quantity, registry
from plumbline.report import drawing
from plumbline.report.figures.common import Table, not_drawn, where
from plumbline.report.readings import quartiles

#: Curves that a reader can tell apart.
MOST_CURVES = len(drawing.SERIES)

#: What is drawn on a logarithmic axis is at least this, us or MB/s: IMB rounds to hundredths.
LEAST = 0.01

_RUNS = 'line: median of the runs of IMB, band: their quartiles'
_UNTOUCHED = ('IMB never touches its buffers: where a cache is shared, this is more than a message that is used would get (hager2007, section 3.2).')
#: Metric -> (what it is called, caption).
KINDS = {'bandwidth': ('Bandwidth', f'Mbytes/sec as IMB counts them; {_RUNS}. {_UNTOUCHED}'),
         'latency': ('Time', f'Time of one repetition, of the slowest process; {_RUNS}.')}


def imb(details):
    '''A figure of bandwidths and one of times, where IMB prints those, and a table of what has no size.'''
    for detail in details:
        processes = f"{detail['ranks']} processes" if detail.get('ranks') else ''
        at = ', '.join(filter(None, (processes, detail.get('transport')))) + where(detail, details)
        rows = [row for row in detail.get('metrics') or [] if row.get('samples')]
        if not rows:
            yield not_drawn(f"{detail['check']}, {at}", 'nothing was measured')
        for metric in KINDS:
            yield from _figures(metric, rows, at)
        yield from _tables(rows, at)


def _figures(metric, rows, at):
    (name, caption), unit = KINDS[metric], registry.find(metric).unit
    curves: dict[str, dict[int, Any]] = {}
    for row in rows:
        what, size = read(row['subject'])
        if row['metric'] == metric and size:
            curves.setdefault(what, {})[size] = np.maximum(quartiles(row['samples']), LEAST)
    curves = {what: points for what, points in curves.items() if len(points) > 1}
    names = sorted(curves, key=lambda what: what.endswith(', aggregate'))  # a mode in a figure
    for begin in range(0, len(names), MOST_CURVES):
        drawn = {what: curves[what] for what in names[begin : begin + MOST_CURVES]}
        figure = drawing.log_curves(430, drawn, unit, 'message', f'{name.lower()} ({unit})', quantity.size)
        figure.update_xaxes(tickangle=-45)
        part = f' ({begin // MOST_CURVES + 1})' if len(names) > MOST_CURVES else ''
        yield f'{name} by IMB{part}, {at}', caption, figure


def _tables(rows, at):
    single = [row for row in rows if row['metric'] == 'latency' and not read(row['subject'])[1]]
    if single:
        table = Table(('benchmark', 'time'), [[read(row['subject'])[0], quantity.amount(row['value'], row['unit'])] for row in single])
        yield f'Latency by IMB, {at}', 'Median of the runs; of messages of 4 bytes where there are messages.', table
    overlaps: dict[str, dict[int | None, str]] = {}
    for row in rows:
        if row['metric'] == 'overlap':
            what, size = read(row['subject'])
            overlaps.setdefault(what, {})[size] = quantity.percent(row['value'])
    sizes = sorted({size for found in overlaps.values() for size in found if size})
    if overlaps:
        header = ('benchmark', *map(quantity.size, sizes), 'without size')
        cells = [[what, *(found.get(size, '') for size in (*sizes, None))] for what, found in overlaps.items()]
        caption = 'How much of the time of a collective a process can compute meanwhile, as IMB counts it: median of the runs.'
        yield f'Overlap by IMB, {at}', caption, Table(header, cells)


FIGURES = {'imb_mpi1': imb, 'imb_rma': imb, 'imb_nbc': imb}
