'''The benchmark of the verdicts: sessions in which nothing has changed, and sessions with a real fault, by turns; how many are found?'''

import contextlib
import functools
import math
import signal
import sys
import time
from collections import Counter

from plumbline import atomic
from plumbline.bench.verdicts import exchanged, rungs
from plumbline.bench.verdicts.faults import FAULTS, NotHere
from plumbline.bench.verdicts.session import REFERENCES, Place
from plumbline.bench.verdicts.table import CODES, NULL, REFERENCE, told
from plumbline.errors import PlumblineError, saying_why
from plumbline.model.good_state import LEAST_APART

#: Sessions after which there must be references.
MOST_REFERENCES = 2 * REFERENCES

#: So many sessions in a row that measure nothing end the benchmark.
MOST_FAILED = 3

__all__ = ['FAULTS', 'Place', 'plan', 'run', 'told']


def plan(null, faults, names):
    '''The kinds of the sessions in their order, references left out: what drifts hits all alike.

    :arg null: how many without a fault; :arg faults: how many of each fault.
    '''
    provoked = [name for _ in range(faults) for name in names]
    quiet = [(number / null, NULL) for number in range(null)]
    spread = [((number + 0.5) / len(provoked), name) for number, name in enumerate(provoked)]
    return [kind for _, kind in sorted([*quiet, *spread], key=lambda item: item[0])]


def to_do(place, order):
    '''Of sessions in an order those that a folder does not have: list of (kind, its number).

    :arg order: kinds.
    '''
    numbers: Counter = Counter()
    for kind in order:
        numbers[kind] += 1
        if not place.path(kind, numbers[kind]).exists():
            yield kind, numbers[kind]


def run_all(place, order, faults, tell):
    '''Run the sessions that the folder does not have yet, one line each.

    :arg order: kinds; :arg faults: name -> fault.
    :raises PlumblineError: what the last of :data:`MOST_FAILED` sessions in a row raised; others are run the next time.
    '''
    left, failed = list(to_do(place, order)), 0
    for count, (kind, number) in enumerate(left, 1):
        try:
            text, failed = _session(place, kind, number, faults), 0
        except PlumblineError as error:
            text, failed = f'{kind} {number}: {error}', failed + 1
            place.tried(f'{kind}-{number}', str(error))
            place.path(kind, number).unlink(missing_ok=True)        # measured, but without its fault
            if failed == MOST_FAILED:
                raise
        if text:
            tell(f'{count} of {len(left)}: {text}')


def _session(place, kind, number, faults):
    '''Run a session; what it was, or, once, why its fault cannot be provoked.'''
    try:
        session = place.measure_with(faults[kind], kind, number) if kind in faults else place.measure(kind, number)
    except NotHere as reason:
        known = place.not_tried().get(kind)
        place.tried(kind, str(reason))
        return '' if known == str(reason) else f'{kind} {number}: not tried: {reason}'
    place.tried(kind)
    place.tried(f'{kind}-{number}')
    return f'{kind} {number}{session.told}'


def refuse_unknown(names, faults):
    '''
    :raises PlumblineError: if one of the names is that of no fault.
    '''
    unknown = sorted(set(names) - set(faults))
    if unknown:
        raise PlumblineError(f"{unknown[0]}: no such fault; there are {', '.join(faults)}")


def run(folder, null, faults, only=(), tell=functools.partial(print, flush=True), apart=LEAST_APART, draws=0):
    '''Run the sessions that the folder does not have yet, one line each, then the table.

    :arg only: names of faults; all by default.
    :arg apart: seconds between the starts of the sessions that become references: those in a row do not know what sessions differ by.
    :arg draws: how many references the sessions are held against beside the first ones: :func:`exchanged.lines`.
    :returns: the exit code, :data:`table.CODES`.
    :raises PlumblineError: if there is no such fault, if another one runs in the folder, or if the first sessions make no references.
    '''
    refuse_unknown(only, FAULTS)
    place, order = Place(folder), plan(null, faults, only or FAULTS)
    if order:
        with terminated_as_interrupted(), alone(place.folder):
            if not place.has_references:
                _become_references(place, tell, apart)
            run_all(place, order, FAULTS, tell)
    found, targets = told(place)
    for line in found:
        tell(line)
    sessions = [session for session in place.sessions() if session.name] if draws else []
    quiet, faulty = ([one for one in sessions if (one.kind in FAULTS) == fault] for fault in (False, True))
    for line in (*exchanged.lines(place, quiet, faulty, draws), *rungs.lines(place, quiet, faulty)):
        tell(line)
    return CODES[targets]


def _become_references(place, tell, apart):
    for number in range(1, MOST_REFERENCES + 1):
        if not place.path(REFERENCE, number).exists():
            _wait(place, apart, tell)
            tell(_session(place, REFERENCE, number, FAULTS))
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


def alone(folder):
    '''Two benchmarks at once would measure each other.

    :returns: a context manager.
    :raises PlumblineError: if another one runs in the folder, or if nothing can be written there.
    '''
    with saying_why(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'lock').touch()
    return atomic.alone(folder / 'lock', f'{folder}: another benchmark runs there: wait for its end')


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
