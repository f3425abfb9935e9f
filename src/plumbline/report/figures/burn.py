'''A burn over its hours: rates, clock, temperatures, power, and what must not happen.'''

import itertools

import numpy as np

from plumbline.model import burn as model, quantity
from plumbline.report import drawing
from plumbline.report.figures.common import each_place
from plumbline.report.readings import GIGA

RATE = (
    "Rate of all threads over the phase's own median. A point is a round, or the median of some. A processor that begins cold gives back "
    'some of its clock within minutes; a line that goes on falling does not hold its rate.'
)
CLOCK = 'Median over the cores, right after each phase, from a chain of dependent additions: that of the widest instructions is lower on some.'


@each_place('Burn')
def burn(at, group):
    '''The series of each place.'''
    if points := [point for detail in group for point in detail.get('series') or []]:
        phases = {phase: [point for point in points if point['phase'] == phase] for phase in model.PHASES}
        phases = {phase: its for phase, its in phases.items() if its}
        rates = {phase: _series(its, lambda point, middle=np.median([one['rate'] for one in its]): point['rate'] / middle)
                 for phase, its in phases.items()}
        medians = ', '.join(f"{phase} {quantity.amount(float(np.median([point['rate'] for point in its])), its[0]['unit'])}"
                            for phase, its in phases.items())
        yield f'Rates over a burn{at}', f'{RATE} Medians: {medians}.', _lines(rates, 'rate / median', '.3f')
        clocks = {phase: _series([point for point in its if 'clock' in point], lambda point: point['clock'] * GIGA) for phase, its in phases.items()}
        yield f'Clock over a burn{at}', *_drawn(clocks, CLOCK, 'GHz', '.3f')
        points.sort(key=lambda point: point['hours'])
        yield f'Temperature over a burn{at}', *_drawn(_readings(points, 'temperature'), 'The hottest sensor of each chip.', 'degrees Celsius', '.0f')
        yield f'Power over a burn{at}', *_drawn(_readings(points, 'power'), 'By the energy counters (RAPL).', 'W', '.0f')
        yield f'What must not happen in a burn{at}', *_events(points)


def _series(points, value):
    '''(Hours, values).'''
    return [point['hours'] for point in points], [float(value(point)) for point in points]


def _readings(points, key):
    names = dict.fromkeys(name for point in points for name in point[key])
    return {name: _series([point for point in points if name in point[key]], lambda point, name=name: point[key][name]) for name in names}


def _drawn(series, caption, unit, digits):
    '''(Caption, figure); what cannot be read is not drawn.'''
    if not any(hours for hours, _ in series.values()):
        return 'Not drawn: it cannot be read on this node; the notes of the check say why.', None
    return caption, _lines(series, unit, digits)


def _events(points):
    '''(Caption, figure) of wrong results, and of the counts beside the burn.'''
    hours, wrong = _series(points, lambda point: point['errors'])
    series = {'wrong results': (hours, np.cumsum(wrong).tolist())}
    for name, text in model.COUNTS.items():
        if known := [point for point in points if point[name] is not None]:
            series[text] = _series(known, lambda point, name=name: point[name])
    unread = [text for text in model.COUNTS.values() if text not in series]
    told = f" Not readable: {'; '.join(unread)}." if unread else ''
    if not any(max(values) for _, values in series.values()):
        return f"None in {quantity.seconds(3600 * max(hours))}: {'; '.join(series)}.{told}", None
    return f'Counted since the begin.{told}', _lines(series, 'count', '.0f')


def _lines(series, unit, digits):
    figure = drawing.empty(300)
    for (name, (hours, values)), (colour, _, dash) in zip(series.items(), itertools.cycle(drawing.SERIES)):
        figure.add_scatter(x=hours, y=values, name=drawing.plain_text(name), mode='lines', line={'color': colour, 'dash': dash, 'width': 1.6},
                           hovertemplate='%{x:.2f} h: %{y:' + digits + '}<extra>' + drawing.plain_text(name) + '</extra>')
    figure.update_xaxes(title='hours')
    figure.update_yaxes(title=unit)
    return figure


FIGURES = {'burn': burn}
