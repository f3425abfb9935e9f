'''How figures are drawn: one style, legible on a phone, in print and in grey-scale.'''

import html
import itertools
import math
import operator

import numpy as np
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb
from plotly.subplots import make_subplots

from plumbline.model import quantity, records as model
from plumbline.report.readings import GIGA, paired, quartiles, rates, series_of

INK, GREY, GRID = '#1a1a1a', '#5f5f5f', '#e2e2e2'
LIMIT, ALLOCATE = '#8c1d18', '#b8860b'
# Okabe and Ito's colours; symbols and dashes carry the same in grey-scale print.
SERIES = [
    ('#000000', 'circle', 'solid'),
    ('#0072b2', 'square', 'dash'),
    ('#e69f00', 'diamond', 'dot'),
    ('#009e73', 'triangle-up', 'dashdot'),
    ('#d55e00', 'cross', 'longdash'),
    ('#cc79a7', 'star', 'solid'),
    ('#56b4e9', 'x', 'dash'),
    ('#7f6000', 'triangle-down', 'dot'),
]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
LIMIT_NAME = 'limit: highest traffic rate of any stream'
BAR = {'color': '#c9d7e6', 'line': {'color': '#2b4a6b', 'width': 1}}


def empty(height):
    """A figure of the project's style; height in CSS pixels, width that of the page."""
    figure = go.Figure()
    _style(figure, height)
    return figure


def _style(figure, height):
    figure.update_layout(template='none', height=height, autosize=True, dragmode=False, hovermode='closest', paper_bgcolor='#ffffff',
                         plot_bgcolor='#ffffff', font={'family': FONT, 'size': 12, 'color': INK}, margin={'l': 8, 'r': 12, 't': 8, 'b': 8},
                         legend={'orientation': 'h', 'x': 0, 'xanchor': 'left', 'y': 1.02, 'yanchor': 'bottom', 'font': {'size': 12}})
    axis = {'automargin': True, 'showline': True, 'linecolor': GREY, 'linewidth': 1, 'gridcolor': GRID, 'zeroline': False, 'ticks': 'outside',
            'ticklen': 4, 'tickcolor': GREY, 'title': {'standoff': 8}, 'fixedrange': True}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)


def plain_text(text):
    '''Text for plotly, which understands some HTML.'''
    return html.escape(str(text))


def add_curves(figure, series, over=operator.itemgetter('size'), letter='N'):
    '''Median rate and quartiles for each (name, records), over the size or what else ``over`` finds in a record.'''
    add_points(figure, {name: {over(r): quartiles(rates(r)) for r in records} for name, records in series}, 'GB/s', f'{letter} = ')


def add_points(figure, curves, unit, before=''):
    '''Median of each curve, {name: {x: quartiles}}, and a band from quartile to quartile; ``before``: what stands before an x.'''
    for (name, points), (colour, symbol, dash) in zip(curves.items(), itertools.cycle(SERIES)):
        x = sorted(points)
        low, middle, high = np.array([points[at] for at in x]).T
        figure.add_scatter(x=x + x[::-1], y=np.concatenate([high, low[::-1]]), fill='toself', mode='none',
                           fillcolor='rgba({},{},{},0.14)'.format(*hex_to_rgb(colour)), hoverinfo='skip', showlegend=False, legendgroup=name)
        figure.add_scatter(x=x, y=middle, name=plain_text(name), legendgroup=name, mode='lines+markers',
                           line={'color': colour, 'dash': dash, 'width': 1.8}, marker={'symbol': symbol, 'size': 6},
                           hovertemplate=before + '%{x:,}: %{y:.3g} ' + unit + '<extra>' + plain_text(name) + '</extra>')


def log_curves(height, curves, unit, across, up, text=str):
    '''Curves as of :func:`add_points` on logarithmic axes with these titles, and a tick at each x.

    :arg text: function x -> what its tick says.
    '''
    figure = empty(height)
    add_points(figure, curves, unit)
    ticks = sorted({x for points in curves.values() for x in points})
    figure.update_xaxes(type='log', title=across, tickvals=ticks, ticktext=list(map(text, ticks)))
    log_values(figure, curves, up)
    return figure


def add_limits(figure, points):
    """The machine's limit, and what is left of it by the write-allocate; see :func:`readings.limit_curve`."""
    if not points:
        return
    sizes, best, allocate = zip(*points)
    figure.add_scatter(x=sizes, y=best, name=LIMIT_NAME, mode='lines', line={'color': LIMIT, 'width': 2.5},
                       hovertemplate='N = %{x:,}: %{y:.3g} GB/s<extra>limit</extra>')
    if any(value is not None for value in allocate):
        figure.add_scatter(x=sizes, y=allocate, name='limit with write-allocate, 4/5 beyond L1', mode='lines',
                           line={'color': ALLOCATE, 'width': 2.5, 'dash': '6px,3px'},
                           hovertemplate='N = %{x:,}: %{y:.3g} GB/s<extra>limit with write-allocate</extra>')


def log_lengths_and_rates(figure, values, title='loop length N (elements)'):
    '''Logarithmic axes of loop length, or what else the title says, and GB/s; ``values``: the rates that must be in sight.'''
    figure.update_xaxes(type='log', title=title, dtick=1, tickformat='~s', minor={'ticks': 'outside', 'ticklen': 3})
    _log_axis(figure, values, 'bandwidth (GB/s)')


def _log_axis(figure, values, title):
    low, high = math.log10(min(values)) - 0.06, math.log10(max(values)) + 0.14  # above: names of the caches
    ticks = [digit * 10.0**decade for decade in range(math.floor(low), math.ceil(high)) for digit in (1, 2, 5)]
    figure.update_yaxes(type='log', title=title, range=[low, high], tickvals=ticks, ticktext=[f'{tick:g}' for tick in ticks])


def efficiency(curves):
    '''Efficiency over threads of each (name, {threads: quartiles}).'''
    figure = empty(360)
    most = max(threads for _, points in curves for threads in points)
    for (name, points), (colour, symbol, dash) in zip(curves, itertools.cycle(SERIES)):
        low, middle, high = (np.array([points[n][k] for n in sorted(points)]) for k in range(3))
        figure.add_scatter(x=sorted(points), y=middle, name=plain_text(name), mode='lines+markers',
                           line={'color': colour, 'dash': dash, 'width': 1.8}, marker={'symbol': symbol, 'size': 9},
                           error_y=_whiskers(low, middle, high), hovertemplate='%{x} threads: %{y:.3f}<extra>' + plain_text(name) + '</extra>')
    figure.add_hline(y=1, line={'color': GREY, 'dash': 'dot', 'width': 1})
    ticks = list(range(1, most + 1)) if most <= 16 else None
    figure.update_xaxes(title='threads', range=[0.5, most + 0.5], tickformat='d', tickvals=ticks)
    figure.update_yaxes(title='efficiency', rangemode='tozero')
    return figure


def _stacked(heights, top):
    '''Panels above each other, each of as many rows as ``heights`` says; top margin in pixels.'''
    row, between, below = 34, 52, 52     # the latter two: the ticks' labels, and the next panel's heading or the axis's title
    area = row * sum(heights) + between * (len(heights) - 1)
    spacing = between / area if len(heights) > 1 else 0
    figure = make_subplots(rows=len(heights), cols=1, row_heights=heights, vertical_spacing=spacing)
    _style(figure, top + area + below)
    figure.update_layout(margin={'t': top, 'b': below})
    return figure


def bars(panels):
    '''Rates side by side, one panel for each (heading, kernel records, limit as by :func:`readings.limit_of`).'''
    heights = [len(series_of(kernels)) for _, kernels, _ in panels]
    figure = _stacked(heights, top=26)
    for row, panel in enumerate(panels, 1):
        _add_bars(figure, {'row': row, 'col': 1}, *panel)
    figure.update_xaxes(title='bandwidth (GB/s)', row=len(panels), col=1)
    return figure


def _add_bars(figure, at, heading, kernels, limit):
    records = [(name, found[-1]) for name, found in series_of(kernels)]
    names = [plain_text(name) for name, _ in records]
    texts = [_bar_text(record, records[0][1]) for _, record in records]
    low, middle, high = np.array([quartiles(rates(record)) for _, record in records]).T
    most = max([*high, limit[0] if limit else 0])
    figure.add_bar(**at, orientation='h', y=names, x=middle, showlegend=False, width=0.74, marker=BAR,
                   error_x=_whiskers(low, middle, high) | {'color': INK}, hoverinfo='skip')
    for number, text in enumerate(texts):
        # A short bar has no room for its text before the whisker, on a phone.
        x, shift = (0, 4) if low[number] > 0.45 * most else (high[number], 8)
        figure.add_annotation(**at, x=x, y=names[number], text=text, showarrow=False, xanchor='left', xshift=shift)
    figure.update_yaxes(**at, autorange='reversed', ticks='', showgrid=False)
    figure.update_xaxes(**at, range=[0, 1.04 * most])
    _add_heading(figure, at, heading)
    if limit:
        figure.add_vline(**at, x=limit[0], line={'color': LIMIT, 'width': 2})
        figure.add_annotation(**at, **_ABOVE, x=limit[0], xanchor='right', text=f'limit {gigabytes(limit[0])}', font={'color': LIMIT})


_ABOVE = {'yref': 'y domain', 'y': 1, 'yanchor': 'bottom', 'showarrow': False}


def _add_heading(figure, at, heading):
    figure.add_annotation(**at, **_ABOVE, xref='x domain', x=0, xanchor='left', text=f'<b>{plain_text(heading)}</b>')


def _bar_text(record, first):
    '''Rate of a record, and its ratio to the first of the panel.'''
    ratio = '' if record is first else f', \u00d7{np.median(paired(record, first)):.2f}'
    return quantity.amount(model.median_rate(record), 'MB/s') + ratio


def _whiskers(low, middle, high):
    return {'type': 'data', 'array': high - middle, 'arrayminus': middle - low, 'width': 5, 'thickness': 1.3}


def log_dots(panels):
    '''Rates over decades: a panel for each (heading, {series: {row: quartiles in GB/s}}), rows in the order of their coming.'''
    rows = {heading: list(dict.fromkeys(row for points in series.values() for row in points)) for heading, series in panels}
    heights = [len(found) for found in rows.values()]
    figure = _stacked(heights, top=46)
    looks = dict(zip(dict.fromkeys(name for _, series in panels for name in series), itertools.cycle(SERIES)))
    everything = [rate for _, series in panels for points in series.values() for three in points.values() for rate in three]
    shown = set()
    for number, (heading, series) in enumerate(panels, 1):
        at = {'row': number, 'col': 1}
        for name, points in series.items():
            colour, symbol, _ = looks[name]
            low, middle, high = np.array(list(points.values())).T
            figure.add_scatter(**at, x=middle, y=[plain_text(row) for row in points], name=plain_text(name), legendgroup=name,
                               showlegend=name not in shown, mode='markers', marker={'color': colour, 'symbol': symbol, 'size': 10},
                               error_x=_whiskers(low, middle, high), hovertemplate='%{y}: %{x:.3g} GB/s<extra>' + plain_text(name) + '</extra>')
            shown.add(name)
        figure.update_yaxes(**at, categoryorder='array', categoryarray=list(map(plain_text, rows[heading]))[::-1], ticks='')
        _add_heading(figure, at, heading)
    figure.update_xaxes(type='log', range=[math.log10(min(everything)) - 0.2, math.log10(max(everything)) + 0.2], dtick=1)
    figure.update_xaxes(title='bandwidth (GB/s)', row=len(panels), col=1)
    figure.update_layout(legend={'y': 1 + 30 / figure.layout.height})
    return figure


def stacked_bars(panels, parts, unit):
    '''Parts of a whole: a panel for each (heading, {bar: {part: value}}, {bar: quartiles of the whole}), parts below 0 to the left.

    :arg parts: part -> (name, colour, pattern), in the order of stacking.
    '''
    figure = _stacked([len(bars) for _, bars, _ in panels], top=72)
    figure.update_layout(barmode='relative', legend={'y': 1 + 28 / figure.layout.height})
    for number, (heading, bars, wholes) in enumerate(panels, 1):
        at, names = {'row': number, 'col': 1}, list(map(plain_text, bars))
        for part, (name, colour, pattern) in parts.items():
            figure.add_bar(**at, orientation='h', y=names, x=[values[part] for values in bars.values()], name=plain_text(name), legendgroup=part,
                           showlegend=number == 1, width=0.74,
                           marker={'color': colour, 'line': {'color': INK, 'width': 0.5}, 'pattern': {'shape': pattern, 'fillmode': 'overlay'}},
                           hovertemplate='%{y}: %{x:.3g} ' + unit + '<extra>' + plain_text(name) + '</extra>')
        low, middle, high = np.array([wholes[bar] for bar in bars]).T
        figure.add_scatter(**at, x=middle, y=names, name='the whole, as measured', legendgroup='whole', showlegend=number == 1, mode='markers',
                           marker={'color': INK, 'symbol': 'diamond', 'size': 8, 'line': {'color': '#ffffff', 'width': 1}},
                           error_x=_whiskers(low, middle, high) | {'color': INK}, hovertemplate='%{y}: %{x:.3g} ' + unit + '<extra></extra>')
        figure.update_yaxes(**at, autorange='reversed', ticks='', showgrid=False)
        figure.update_xaxes(**at, zeroline=True, zerolinecolor=INK, zerolinewidth=1)
        _add_heading(figure, at, heading)
    figure.update_xaxes(title=unit, row=len(panels), col=1)
    return figure


def gigabytes(rate):
    '''A rate in GB/s as text, in the unit that suits it.'''
    return quantity.amount(rate / GIGA, 'MB/s')


def add_sizes(figure, caches, among, each=1):
    '''A line at the size of each cache that lies among the sizes drawn, which count so many bytes each; returns them as text.'''
    told = []
    for name, size in caches.items():
        if min(among) <= size / each <= max(among):
            figure.add_vline(x=size / each, line={'color': GREY, 'width': 1, 'dash': 'dot'})
            figure.add_annotation(x=math.log10(size / each), y=1, yref='paper', yanchor='top', xanchor='left', text=name, showarrow=False,
                                  font={'color': GREY}, bgcolor='rgba(255,255,255,0.8)', borderpad=1)
            told.append(f'{name} {quantity.size(size)}')
    return ', '.join(told)


def log_bytes(figure, curves, title):
    '''A logarithmic axis of bytes, for curves as of :func:`add_points`.'''
    sizes = [size for points in curves.values() for size in points]
    ticks = [4**k for k in range(5, 24) if min(sizes) / 2 <= 4**k <= 2 * max(sizes)]
    figure.update_xaxes(type='log', title=title, tickvals=ticks, ticktext=[quantity.size(tick) for tick in ticks], tickangle=-45)


def log_values(figure, curves, title):
    '''A logarithmic axis of the values of curves as of :func:`add_points`.'''
    _log_axis(figure, [value for points in curves.values() for three in points.values() for value in three], title)


def side_by_side(names, *panels):
    '''Bars of the same names in panels beside each other, each (heading, quartiles of each name).'''
    figure = make_subplots(rows=1, cols=len(panels), shared_yaxes=True, horizontal_spacing=0.08)
    _style(figure, 110 + 34 * len(names))
    for col, (heading, values) in enumerate(panels, 1):
        low, middle, high = np.array(values).T
        figure.add_bar(row=1, col=col, orientation='h', y=list(map(plain_text, names)), x=middle, showlegend=False, width=0.74, marker=BAR,
                       error_x=_whiskers(low, middle, high) | {'color': INK}, hovertemplate='%{y}: %{x:.3g}<extra></extra>', textposition='inside',
                       text=[quantity.digits(value) for value in middle], insidetextanchor='start', textangle=0, textfont={'color': INK})
        figure.update_xaxes(title=plain_text(heading), rangemode='tozero', row=1, col=col)
        figure.update_yaxes(autorange='reversed', ticks='', showgrid=False, row=1, col=col)
    return figure
