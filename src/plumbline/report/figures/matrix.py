'''A heat map of each with each: nodes, cores.'''

import math

import numpy as np

from plumbline.model import quantity
from plumbline.report import drawing

#: More than this in a row are drawn in blocks of neighbours, the largest value of each.
MOST_CELLS = 400

#: More names than this at an axis run into each other.
MOST_NAMES = 24

#: Light to dark, so that it survives grey-scale print; of :func:`heat_map`'s range from -1 on, the first quarter is what is usual.
COLOURS = [[0.0, '#ffffff'], [0.25, '#fdd9b5'], [0.5, '#e8742a'], [0.75, '#8c1d18'], [1.0, '#1a0504']]


def width(members):
    '''Members in a row of a block.'''
    return math.ceil(members / MOST_CELLS)


def _in_blocks(values):
    '''The largest of each block of neighbours.'''
    side, members = width(len(values)), len(values)
    if side == 1:
        return values
    edge = -members % side
    padded = np.pad(np.nan_to_num(values), (0, edge)).reshape((members + edge) // side, side, -1, side)
    largest = padded.max(axis=(1, 3))
    return np.where(largest > 0, largest, np.nan)


def _ticks(names, marked):
    '''(positions, names) that find room: those that are marked, and others between them, evenly.'''
    marked = marked[:MOST_NAMES]
    step = math.ceil(len(names) / MOST_NAMES)
    others = [i for i in range(0, len(names), step) if all(abs(i - other) >= 0.9 * step for other in marked)]
    shown = sorted({*marked, *others})
    text = [f'<b>{drawing.plain_text(names[i])}</b>' if i in marked else drawing.plain_text(names[i]) for i in shown]
    return [i // width(len(names)) for i in shown], text


def heat_map(values, names, axes, unit, marked=(), low=-1):
    '''Values, shape (n, n), on a logarithmic scale of colours; NaN is grey.

    :arg names: of the members; :arg marked: positions of those whose names are never left out.
    :arg axes: what a column and what a row is; :arg unit: of the scale, and behind a value, for example ``times the median``.
    :arg low: log2 of the value that is white.
    '''
    figure = drawing.empty(560)
    figure.update_layout(plot_bgcolor=drawing.GRID)  # of the diagonal
    values = _in_blocks(values).astype(np.float32)
    depth = np.log2(values)
    top = max(low + 3.0, math.ceil(float(np.nanmax(depth))))
    powers = np.arange(low, top + 1, max(1, (top - low) // 6))
    labels = [drawing.plain_text(name) for name in names[:: width(len(names))]]
    few, many = len(values) <= 10, len(values) > 64
    figure.add_heatmap(z=np.round(depth, 3), customdata=np.round(values, 3), x=list(range(len(values))), y=list(range(len(values))), zmin=low,
                       zmax=top, colorscale=COLOURS, xgap=0 if many else 1, ygap=0 if many else 1, hoverongaps=False,
                       text=[[quantity.digits(value) for value in row] for row in values] if few else None, texttemplate='%{text}' if few else None,
                       hovertext=None if many else [[f'{a} to {b}' for b in labels] for a in labels],
                       hovertemplate=('row %{y}, column %{x}' if many else '%{hovertext}') + ': %{customdata:.2f} ' + unit + '<extra></extra>',
                       colorbar={'title': {'text': unit}, 'tickvals': powers, 'ticktext': [f'{2.0**p:g}' for p in powers]})
    positions, text = _ticks(names, list(marked))
    column, row = axes
    figure.update_xaxes(title=column, tickvals=positions, ticktext=text, tickangle=-60, showgrid=False, constrain='domain')
    figure.update_yaxes(title=row, tickvals=positions, ticktext=text, autorange='reversed', showgrid=False, scaleanchor='x', constrain='domain')
    return figure
