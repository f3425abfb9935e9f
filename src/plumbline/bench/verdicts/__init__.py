'''The benchmark of the verdicts: sessions in which nothing has changed, and sessions with a real fault, by turns; how many are found?'''

import contextlib
import functools
import math
import signal
import sys
import time

from plumbline.bench.verdicts import exchanged
from plumbline.bench.verdicts.faults import FAULTS, NotHere
from plumbline.bench.verdicts.session import REFERENCES, Place
from plumbline.bench.verdicts.table import NULL, REFERENCE, lines
from plumbline.errors import PlumblineError
from plumbline.model.good_state import LEAST_APART

#: Sessions after which there must be references.
MOST_REFERENCES = 2 * REFERENCES

__all__ = ['FAULTS', 'Place', 'lines', 'plan', 'run']


def plan(null, faults, names):
    '''The kinds of the sessions in their order, references left out: what drifts hits all alike.

    :arg null: how many without a fault; :arg faults: how many of each fault.
    '''
    provoked = [name for _ in range(faults) for name in names]
    quiet = [(number / null, NULL) for number in range(null)]
    spread = [((number + 0.5) / len(provoked), name) for number, name in enumerate(provoked)]
    return [kind for _, kind in sorted([*quiet, *spread], key=lambda item: item[0])]


def run(folder, null, faults, only=(), tell=functools.partial(print, flush=True), apart=LEAST_APART, draws=0):
    '''Run the sessions that the folder does not have yet, one line each, then the table.

    :arg only: names of faults; all by default.
    :arg apart: seconds between the starts of the sessions that become references: those in a row do not know what sessions differ by.
    :arg draws: how many references the sessions are held against beside the first ones: :func:`exchanged.lines`.
    :raises PlumblineError: if there is no such fault, or if the first sessions make no references.
    '''
    unknown = sorted(set(only) - set(FAULTS))
    if unknown:
        raise PlumblineError(f"{unknown[0]}: no such fault; there are {', '.join(FAULTS)}")
    place, order = Place(folder), plan(null, faults, only or FAULTS)
    numbers: dict[str, int] = {}
    with terminated_as_interrupted():
        if order and not place.has_references:
            _become_references(place, tell, apart)
        for count, kind in enumerate(order, 1):
            numbers[kind] = numbers.get(kind, 0) + 1
            _unless_there(place, kind, numbers[kind], lambda text, count=count: tell(f'{count} of {len(order)}: {text}'))
    for line in lines(place):
        tell(line)
    sessions = place.sessions() if draws else []
    for line in exchanged.lines(place, [one for one in sessions if one.kind not in FAULTS], [one for one in sessions if one.kind in FAULTS], draws):
        tell(line)


def _become_references(place, tell, apart):
    for number in range(1, MOST_REFERENCES + 1):
        if not place.path(REFERENCE, number).exists():
            _wait(place, apart, tell)
        _unless_there(place, REFERENCE, number, tell)
        refused = place.accept(apart) if number >= REFERENCES else None
        if place.has_references:
            return
    raise PlumblineError(f'{place.folder}: {number} sessions make no references: {refused}')


def _wait(place, apart, tell):
    last = max((session.started for session in place.sessions() if session.kind == REFERENCE), default=-math.inf)
    left = last + apart - time.time() if apart else 0
    if left > 0:
        tell(f'sessions that become references begin {apart / 60:.0f} minutes apart: the next one in {left / 60:.0f}')
        time.sleep(left + 5)        # ReFrame's own start, which counts, is a little later than ours


def _unless_there(place, kind, number, tell):
    '''Run a session unless it was run before; say what it was.'''
    if place.path(kind, number).exists():
        return None
    try:
        if kind not in FAULTS:
            session = place.measure(kind, number)
        else:
            place.folder.mkdir(parents=True, exist_ok=True)
            with FAULTS[kind].provoke(place.folder) as launch:
                session = place.measure(kind, number, launch)
            place.tried(kind)
    except NotHere as reason:
        place.tried(kind, str(reason))
        return tell(f'{kind} {number}: not tried: {reason}') if number == 1 else None
    tell(f'{kind} {number}: exit code {session.exit}, {session.seconds:.0f} s')


@contextlib.contextmanager
def terminated_as_interrupted():
    '''SIGTERM and SIGHUP undo what was provoked, as Ctrl-C does.'''
    signals = signal.SIGTERM, signal.SIGHUP
    before = [signal.signal(number, lambda number, _: sys.exit(128 + number)) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before):
            signal.signal(number, handler)
