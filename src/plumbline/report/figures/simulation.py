'''Simulated applications: per cent of time in communication, published and predicted, cell by cell.'''

import re

from plumbline.report import drawing
from plumbline.report.figures.common import Table, not_drawn, where
from plumbline.simulation import study

_CELL = re.compile(r'(?P<application>[\w-]+)\.(?P<processes>\d+)\.(?P<latency>[\d.]+)us')
_CAPTION = (
    'Per cent of the time in communication routines: predicted (published, difference in points). One cell is fitted: the '
    'overhead per message, on top of what the source calls effective latency (anderson1997, section 5.3). Free are, too, the rates of the '
    "processors (CG: table 7's library; SP: table 11's, scaled by 300/450), CG's exchanges, and that the source's latency is added once a call "
    'of a communication routine. How far the result moves with each: docs/howto/latency.rst.'
)
_CURVES = (
    'Per cent of the time in communication routines over the latency of the network: lines are predicted, one for each '
    'number of processes; crosses are the published values (anderson1997, section 5.3).'
)


def simulated(details):
    '''A table and a figure for each application.'''
    for detail in details:
        cells = _cells(detail.get('metrics') or [])
        name = (detail.get('metrics') or [{}])[0].get('subject', '').split('.')[0].upper()
        title = f'{name} simulated' + where(detail, details)
        if not cells:
            yield not_drawn(f"{detail['check']}{where(detail, details)}", 'nothing was simulated')
            continue
        yield f'{title}: published and predicted', _CAPTION, _table(cells)
        yield f'{title}: communication over latency', _CURVES, _figure(cells)


def _cells(rows):
    '''{processes: {latency: (predicted, published, fitted)}}; per cent.'''
    found: dict[int, dict[float, tuple]] = {}
    for row in rows:
        cell = _CELL.fullmatch(row['subject'] or '')
        if cell and row['metric'].startswith('communication'):
            processes, latency = int(cell['processes']), float(cell['latency'])
            known = {(row['processes'], row['latency']): row['published'] for row in study.published(cell['application']).iter_rows(named=True)}
            found.setdefault(processes, {})[latency] = (100 * row['value'], known[processes, latency], row['metric'].endswith('fitted'))
    return found


def _table(cells):
    latencies = sorted({latency for line in cells.values() for latency in line})
    rows = []
    for processes, line in sorted(cells.items()):
        told = []
        for predicted, published, fitted in (line[latency] for latency in latencies):
            told.append(f'{predicted:.1f} ({published:g}, ' + ('fitted)' if fitted else f'{predicted - published:+.1f})'))
        rows.append([str(processes), *told])
    return Table(('processes', *(f'{latency:g} us' for latency in latencies)), rows)


def _figure(cells):
    figure = drawing.empty(430)
    lines = {f'{n} processes': {latency: (cell[0],) * 3 for latency, cell in line.items()} for n, line in sorted(cells.items())}
    drawing.add_points(figure, lines, '%')
    for (processes, line), (colour, _, _) in zip(sorted(cells.items()), drawing.SERIES):
        figure.add_scatter(x=list(line), y=[published for _, published, _ in line.values()], mode='markers',
                           marker={'symbol': 'x-thin', 'size': 9, 'line': {'color': colour, 'width': 2}}, showlegend=False,
                           hovertemplate='published, %{x:g} us: %{y:g} %<extra>' + f'{processes} processes</extra>')
    ticks = sorted({latency for line in cells.values() for latency in line})
    figure.update_xaxes(type='log', title='latency (us)', tickvals=ticks, ticktext=[f'{tick:g}' for tick in ticks])
    figure.update_yaxes(title='time in communication (%)', range=[0, 100])
    return figure


FIGURES = {'latency_simulated': simulated}
