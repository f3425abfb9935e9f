'''Benchmarks that vendors know by name, as sites install them: STREAM, HPL, HPCC, HPCG, NPB, OSU, IOR, mdtest, fio.

A module each, a pure function from what a run printed to :class:`Figure`; what is missing, changed, cut off, or contradicts what was
asked for or itself is a :class:`PlumblineError`, never a number.
'''

import math
import re
from dataclasses import dataclass

from plumbline.errors import PlumblineError

#: A number as programs print it; ``nan`` and ``inf`` are none.
NUMBER = r'[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?'


@dataclass(frozen=True)
class Figure:
    '''A number that a program printed.

    :attr metric: a name of the registry; ``subject``: what it is about.
    :attr unit: the program's own, one of those that ``judged.py`` converts.
    :attr subsystem: of :data:`registry.STATED`, where it is not the check's.
    '''
    metric: str
    subject: str
    value: float
    unit: str
    subsystem: str | None = None


def only(text, pattern, what, source):
    '''The match of a pattern that stands once in the whole lines of a text; its last one without an end may have lost some of its number.

    :arg what: what it is, for the error.
    :arg source: what to call the text.
    :raises PlumblineError: if it is not there, or several times.
    '''
    found = list(re.finditer(pattern, text[:text.rfind('\n') + 1], re.MULTILINE))
    if len(found) != 1:
        why = 'is missing; was the output cut off?' if not found else f'stands there {len(found)} times; did several programs write at once?'
        raise PlumblineError(f'{source}: {what} {why}')
    return found[0]


def number(text, what, source):
    '''A positive number.

    :raises PlumblineError: for anything else, infinities among it.
    '''
    value = float(text) if re.fullmatch(NUMBER, text) else math.nan
    if not 0 < value < math.inf:
        raise PlumblineError(f'{source}: {what} is {text!r}, not a positive number')
    return value


def demand(found, expected, what, source):
    '''Refuse what was not asked for.

    :raises PlumblineError: if the two differ.
    '''
    if found != expected:
        raise PlumblineError(f'{source}: {what} is {found}, and {expected} was asked for')


def agree(value, other, tolerance, what, source):
    '''Refuse two numbers of one output that contradict each other.

    :arg tolerance: relative, what their rounding can be.
    :arg what: what the first is, and the second, for the error.
    :raises PlumblineError: if they do.
    '''
    if abs(value - other) > tolerance * max(abs(value), abs(other)):
        raise PlumblineError(f'{source}: {what[0]} is {value:.6g}, {what[1]} say {other:.6g}: the output contradicts itself')
