"""Figures of the report: check -> function on its results -> (title, caption, figure).

``FIGURES`` is the registry; each kernel has a module with its own part of it.  A function gets the results of one check's test cases, each the result
object of ``schemas/result.json`` with the keys of the archive's row added (``check``, ``hostname``, ``partition``, ``environ``, ``level``,
``threads``), and ``metrics``, the rows of the archive.  It gives plotly figures, or tables; what cannot be drawn is None, and its caption says why.
"""

import importlib

from plumbline.report.figures.common import Draw, Table, place

__all__ = ['FIGURES', 'MOST_PLACES', 'Table', 'first_hosts', 'first_places', 'of_check']

#: Places (partition, environment, host) that a check is drawn for: more than a reader looks at hides the odd one.
MOST_PLACES = 8

_MODULES = ('burn cores datatype fdtd fileio gather imb latency limits motion options pairs patterns pingpong rma sensitivity simulation spmv '
            'redundancy stencils transpose triad')

#: Check class -> what draws it.
FIGURES: dict[str, Draw] = {check: draw for name in _MODULES.split() for check, draw in importlib.import_module(f'{__name__}.{name}').FIGURES.items()}


def first_places(details):
    '''The results of the first places, which are drawn, so those that matter most come first.'''
    places = list(dict.fromkeys(map(place, details)))[:MOST_PLACES]
    return [detail for detail in details if place(detail) in places]


def first_hosts(details):
    '''The results of as many hosts, of which the machine is drawn and environments are compared.'''
    hosts = list(dict.fromkeys(detail['hostname'] for detail in details))[:MOST_PLACES]
    return [detail for detail in details if detail['hostname'] in hosts]


def of_check(check, details):
    '''List of (title, caption, figure) of one check, of its :func:`first_places`.'''
    places = set(map(place, details))
    drawn = list(FIGURES[check](first_places(details)))
    if len(places) > MOST_PLACES:
        caption = (
            f'Not drawn for {len(places) - MOST_PLACES} of {len(places)} places (those with a FAIL come first): '
            'all values stand in the table of verdicts.'
        )
        drawn.append((check, caption, None))
    return drawn
