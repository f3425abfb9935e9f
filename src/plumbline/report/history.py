'''The terminal's tables of a system's history: the subsystems' courses, and the metrics that were asked for.'''

import functools
from dataclasses import dataclass

from plumbline.analysis.history import LEAST_VALUES, lasting
from plumbline.analysis.session import Session
from plumbline.comparison import sides
from plumbline.model import changes, prediction, quantity, stamp, verdict
from plumbline.report.grid import grid
from plumbline.report.variance import labels
from plumbline.store import archive

#: Rows of the table of metrics; so few metrics are told session by session.
MOST_ROWS, MOST_LISTED = 40, 3

#: What stands behind a value that is not a PASS.
_MARKS = {verdict.PASS: '', verdict.NO_REFERENCE: ''}

KEY = ('scatter: between neighbouring sessions.  sees: a step to the worse in the middle of these sessions that would be found with a '
       f'probability of 95 %.  A step lasts {changes.LASTING} sessions or more; what goes away has a second step.')


def when(session):
    '''``2026-11-21 09:36``, by a session's name.'''
    begun = stamp.begun(session)
    return f'{begun:%Y-%m-%d %H:%M}' if begun else session


@dataclass(frozen=True)
class Loss:
    '''A loss that has come to stay.

    :attr name: of its course; :attr told: how much, since when.
    :attr changed: what of machine and software changed when it began, texts.
    '''
    name: str
    told: str
    changed: tuple = ()

    @property
    def text(self):
        '''A sentence.'''
        return self.told + (f"; changed with it: {'; '.join(self.changed)}" if self.changed else '')

    def __str__(self):
        return self.text


def losses(root, history, of=None, known=None):
    '''The :class:`Loss` of each course that has become worse and stays so, with what of machine and software changed when it began.

    :arg root: the archive's folder; :arg history: :class:`plumbline.analysis.history.History`; :arg of, known: as of :func:`lasting`.
    '''
    return [Loss(one.course.title, _lasting(one), differences(root, history.system, one.before, one.begin)) for one in lasting(history, of, known)]


@functools.lru_cache(maxsize=32)        # what is lost at once is told of each subsystem
def differences(root, system, *sessions):
    '''What of machine and software is not the same in two sessions: texts.'''
    before, after = ([Session.stored(archive.file_of(root, session, system))] for session in sessions)
    return tuple(f"{label}: {', '.join(old) or 'none'} -> {', '.join(new) or 'none'}" for label, old, new in sides.state_changes(before, after))


def _lasting(found):
    return (f'{found.course.title}: {quantity.percent(abs(found.step.change))} worse since {when(found.begin)}, '
            f'for {found.count} sessions, by chance {quantity.odds(found.step.chance)}')


def render(history, courses, prior, chosen, console):
    '''Print a :class:`plumbline.analysis.history.History`.

    :arg courses: of its subsystems; :arg prior: of their scatter.
    :arg chosen: whether metrics were asked for, which are told then instead of the subsystems.
    '''
    for text in heading(history):
        console.print(text, highlight=False, markup=False)
    if chosen:
        names = labels(history.metrics)
        rows = [(names[key], series) for key, series in history.metrics.items()]
        console.print(_metrics(rows[:MOST_ROWS]))
        if len(rows) > MOST_ROWS:
            console.print(f'{len(rows) - MOST_ROWS} more metrics: choose with -n and a metric', highlight=False)
        if len(rows) <= MOST_LISTED:
            console.print(_sessions(history.sessions, rows))
    elif courses:
        console.print(_courses(courses, prior))
    else:
        console.print(f'no subsystem has a course yet: none of its metrics is in {LEAST_VALUES} sessions', highlight=False, markup=False)
    console.print(KEY, highlight=False, markup=False)


def heading(history):
    '''Yield what the history is of, and what of the archive is not in it.'''
    first, last = history.sessions[0], history.sessions[-1]
    count = quantity.several(len(history.sessions), 'session')
    yield f'{history.system}: {count} from {when(first)} to {when(last)}, {len(history.metrics)} metrics'
    for name, count in history.strangers.items():
        yield f'skipped: {count} sessions on another processor, {name}'
    yield from (f'skipped: {text}' for text in history.damaged)
    if history.other_units:
        yield f"skipped: {quantity.several(history.other_units, 'value')} in another unit than the last session's"
    if history.other_sets:
        yield f"skipped: {quantity.several(history.other_sets, 'value')} of caches with another working set than the last session's"
    if history.ahead:
        which = f'session {history.ahead[0]}' if len(history.ahead) == 1 else f'{len(history.ahead)} sessions from {history.ahead[0]} on'
        yield f'{which} {archive.AHEAD}; by that date it counts'
    accepted = sorted(set().union(*history.accepted.values()))
    if accepted:
        yield f'references of {len(accepted)} sessions, from {when(accepted[0])} to {when(accepted[-1])}'


def _table(columns, rows):
    return grid(columns, rows, right={*columns[1:]} - {'of its', 'steps'})


def _steps(values, sessions, prior):
    found = changes.steps(values, prior, changes.RATE)
    return ', '.join(f'{quantity.change(one.change)} at {when(sessions[one.begin])}' for one in found) or 'none'


def _courses(courses, prior):
    return _table(('subsystem', 'of its', 'metrics', 'sessions', 'scatter', 'sees', 'last', 'steps'), (
        (one.name, one.kind, str(one.metrics), *numbers(one.values, prior), quantity.change(one.values[-1] - 1),
         _steps(one.values, one.sessions, prior)) for one in sorted(courses, key=lambda one: (one.kind, one.name))))


def numbers(values, prior):
    '''Number of sessions, scatter, and the step that would be seen, as texts.'''
    found, freedom = changes.scatter(values)
    deviation, known = prediction.moderated(found, freedom, prior)
    sees = changes.sees(len(values), (known, deviation), changes.RATE)
    return str(len(values)), quantity.percent(found**0.5) if freedom else '', quantity.percent(sees) if sees else ''


def _metrics(rows):
    courses = [(name, one, list(one.values.values())) for name, one in rows]
    return _table(('test and metric', 'sessions', 'scatter', 'sees', 'first', 'last', 'steps'), (
        (name, *numbers(values, one.prior), *(quantity.amount(value, one.unit) for value in (values[0], values[-1])),
         _steps(values, list(one.values), one.prior)) for name, one, values in courses))


def _sessions(sessions, rows):
    return _table(('session', *(name for name, _ in rows)), ((session, *(_value(one, session) for _, one in rows)) for session in sessions))


def _value(one, session):
    if session not in one.values:
        return ''
    ruling = one.verdicts[session]
    return f'{quantity.amount(one.values[session], one.unit)} {_MARKS.get(ruling, ruling)}'.rstrip()
