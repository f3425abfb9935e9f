'''The terminal's tables of a system's history: the subsystems' courses, and the metrics that were asked for.'''

from rich import box
from rich.table import Table
from rich.text import Text

from plumbline.analysis import sides
from plumbline.analysis.history import lasting
from plumbline.model import changes, prediction, quantity, verdict
from plumbline.report.variance import labels
from plumbline.store import archive

#: Rows of the table of metrics; so few metrics are told session by session.
MOST_ROWS, MOST_LISTED = 40, 3

#: What stands behind a value that is not a PASS.
_MARKS = {verdict.PASS: '', verdict.NO_REFERENCE: ''}

KEY = ('scatter: between neighbouring sessions.  sees: a step to the worse in the middle of these sessions that would be found with a '
       f'probability of 95 %.  A step lasts {changes.LASTING} sessions or more; what goes away has a second step.')


def when(session):
    '''``2026-11-21 09:36``, from a session's name.'''
    return f'{session[:4]}-{session[4:6]}-{session[6:8]} {session[9:11]}:{session[11:13]}'


def losses(root, history, of=None):
    '''Of each loss that has come to stay a sentence, with what of machine and software changed when it began.

    :arg root: the archive's folder; :arg history: :class:`plumbline.analysis.history.History`; :arg of: as of :func:`lasting`.
    '''
    return [_lasting(one, _differences(root, history.system, one.before, one.begin)) for one in lasting(history, of)]


def _differences(root, system, *sessions):
    before, after = (archive.load_session(root, session, system) for session in sessions)
    return [f"{label}: {', '.join(old) or 'none'} -> {', '.join(new) or 'none'}" for label, old, new in sides.state_changes(before, after)]


def _lasting(found, differences):
    changed = f"; changed with it: {'; '.join(differences)}" if differences else ''
    return (f'{found.course.name}, {found.course.kind}: {quantity.percent(abs(found.step.change))} worse since {when(found.begin)}, '
            f'for {found.count} sessions, by chance {quantity.odds(found.step.chance)}{changed}')


def render(history, courses, prior, chosen, console):
    '''Print a history.

    :arg history: :class:`plumbline.analysis.history.History`.
    :arg courses: of its subsystems; :arg prior: of their scatter.
    :arg chosen: whether metrics were asked for, which are told then instead of the subsystems.
    :arg console: :class:`rich.console.Console`.
    '''
    for text in _heading(history):
        console.print(text, highlight=False, markup=False)
    if chosen:
        names = labels(history.metrics)
        rows = [(Text(names[key]), series) for key, series in history.metrics.items()]
        console.print(_metrics(rows[:MOST_ROWS]))
        if len(rows) > MOST_ROWS:
            console.print(f'{len(rows) - MOST_ROWS} more metrics: choose with -n and a metric', highlight=False)
        if len(rows) <= MOST_LISTED:
            console.print(_sessions(history.sessions, rows))
    else:
        console.print(_courses(courses, prior))
    console.print(KEY, highlight=False, markup=False)


def _heading(history):
    first, last = history.sessions[0], history.sessions[-1]
    yield f'{history.system}: {len(history.sessions)} sessions from {when(first)} to {when(last)}, {len(history.metrics)} metrics'
    for name, count in history.strangers.items():
        yield f'skipped: {count} sessions on another processor, {name}'
    yield from (f'skipped: {text}' for text in history.damaged)
    accepted = sorted(history.accepted)
    if accepted:
        yield f'references of {len(accepted)} sessions, from {when(accepted[0])} to {when(accepted[-1])}'


def _table(*columns):
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, justify='left' if name in columns[:1] + ('of its', 'steps') else 'right', overflow='fold')
    return table


def _steps(values, sessions, prior):
    found = changes.steps(values, prior, changes.RATE)
    return ', '.join(f'{quantity.change(one.change)} at {when(sessions[one.begin])}' for one in found) or 'none'


def _courses(courses, prior):
    table = _table('subsystem', 'of its', 'metrics', 'sessions', 'scatter', 'sees', 'last', 'steps')
    for one in sorted(courses, key=lambda one: (one.kind, one.name)):
        table.add_row(one.name, one.kind, str(one.metrics), *_numbers(one.values, prior), quantity.change(one.values[-1] - 1),
                      _steps(one.values, one.sessions, prior))
    return table


def _numbers(values, prior):
    '''Number of sessions, scatter, and the step that would be seen, as texts.'''
    found, freedom = changes.scatter(values)
    deviation, known = prediction.moderated(found, freedom, prior)
    sees = changes.sees(len(values), (known, deviation), changes.RATE)
    return str(len(values)), quantity.percent(found**0.5) if freedom else '', quantity.percent(sees) if sees else ''


def _metrics(rows):
    table = _table('test and metric', 'sessions', 'scatter', 'sees', 'first', 'last', 'steps')
    for name, one in rows:
        values, sessions = list(one.values.values()), list(one.values)
        table.add_row(name, *_numbers(values, one.prior), *(quantity.amount(value, one.unit) for value in (values[0], values[-1])),
                      _steps(values, sessions, one.prior))
    return table


def _sessions(sessions, rows):
    table = _table('session', *(name for name, _ in rows))
    for session in sessions:
        table.add_row(session, *(_value(one, session) for _, one in rows))
    return table


def _value(one, session):
    if session not in one.values:
        return ''
    ruling = one.verdicts[session]
    return f'{quantity.amount(one.values[session], one.unit)} {_MARKS.get(ruling, ruling)}'.rstrip()
