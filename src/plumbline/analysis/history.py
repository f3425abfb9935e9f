'''Session after session: what each metric measured, what the metrics of a subsystem say together, and since when that is otherwise.'''

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from plumbline.analysis.archived import Key, pattern
from plumbline.errors import PlumblineError
from plumbline.model import changes, prediction, registry, states, subsystems, verdict
from plumbline.store import archive

_COLUMNS = ['session', 'partition', 'environ', 'hostname', 'test', 'run', 'check', 'display_name', 'system', 'metric', 'name', 'subject',
            'value', 'unit', 'n', 'spread', 'interval_low', 'interval_high', 'state', 'states', 'expected', 'verdict', 'level', 'threads']

#: A metric is part of its subsystem's course if it is in so many sessions, and in this share of those that ran its test since it began.
LEAST_VALUES, LEAST_PRESENT = subsystems.LEAST_SESSIONS, 0.8


@dataclass(frozen=True)
class Series:
    '''A metric in the state of the machine that most sessions met.

    :attr subsystem: None of a metric that the registry no longer has.
    :attr values: dictionary session -> median over the nodes, above 0, in order of time.
    :attr verdicts: dictionary session -> the worst.
    '''
    metric: str
    unit: str
    subsystem: str | None
    noise: str
    values: dict
    verdicts: dict = field(repr=False)

    @property
    def better(self):
        return registry.better(self.metric)

    @property
    def kind(self):
        return subsystems.kind(self.metric)

    @property
    def prior(self):
        return prediction.PRIORS[registry.kind_of(self.noise)]


@dataclass(frozen=True)
class Course:
    '''A subsystem's rates and times, or its shares and ratios, session after session.

    :attr name: of the subsystem; :attr kind: :data:`subsystems.RATES` or ``SHARES``.
    :attr metrics: their number.
    :attr sessions: names, in order of time; :attr values: shape (n,), 1 in the middle, a loss below.
    '''
    name: str
    kind: str
    metrics: int
    sessions: list
    values: np.ndarray


@dataclass(frozen=True)
class Lasting:
    '''A course that has become worse, and stays so.

    :attr step: :class:`changes.Step`; :attr begin: its session's name, :attr before: the name of the one before.
    '''
    course: Course
    step: changes.Step

    @property
    def begin(self):
        return self.course.sessions[self.step.begin]

    @property
    def before(self):
        return self.course.sessions[self.step.begin - 1]

    @property
    def count(self):
        return len(self.course.sessions) - self.step.begin


@dataclass
class History:
    '''
    :attr sessions: names, oldest first, of those with a metric.
    :attr metrics: :class:`Key` -> :class:`Series`, sorted.
    :attr accepted: the sessions that the references of the last session are from.
    :attr strangers: dictionary of what other processors sessions ran on -> how many sessions; they are left out.
    :attr damaged: what is wrong with the files that cannot be read.
    '''
    system: str
    sessions: list
    metrics: dict
    accepted: frozenset = frozenset()
    strangers: dict = field(default_factory=dict)
    damaged: list = field(default_factory=list)


def read(root, system=None, last=None, names='', metrics='', until=None):
    '''The history of a system's metrics; of sessions on its present processor.

    :arg system: ReFrame's name; by default that of the archive's last session.
    :arg last: only so many of the last sessions.
    :arg until: name of the last session that counts; by default that of the archive.
    :arg names: regular expression that is found in the display name of a test; :arg metrics: in the name of a metric.
    :raises PlumblineError: if the archive is empty.
    '''
    names, metrics = pattern(names, '-n'), pattern(metrics, '--metric')
    files = archive.sessions(root, system)
    system = files[-1].parts[-3].removeprefix('system=')
    files = [path for path in files if path.stem <= until] if until else files
    files, strangers, damaged = _of_one_processor(files[-last:] if last else files)
    rows, accepted = defaultdict(list), set()
    for path in files:
        of_session = archive.final_rows(archive.load_columns(path, _COLUMNS)).filter(pl.col('metric').is_not_null()).to_dicts()
        for row in of_session:
            if names.search(row['display_name']) and metrics.search(row['name']) and 0 < (row['value'] or 0) < float('inf'):
                rows[Key(row['partition'], row['environ'], archive.base_name(row['display_name']), row['name'])].append(row)
        if path == files[-1]:
            accepted = {name for row in of_session for name in json.loads(row['expected'] or '{}').get('measured') or ()}
    found = {key: _series(rows[key]) for key in sorted(rows)}
    known = set().union(*(series.values for series in found.values()))
    return History(system, [path.stem for path in files if path.stem in known], found, frozenset(accepted), strangers, damaged)


def _of_one_processor(files):
    '''The sessions of the processor that the last one ran on, how many ran on which other, and what cannot be read.'''
    ran_on, damaged = {}, []
    for path in files:
        try:
            ran_on[path] = archive.processor(path)
        except PlumblineError as error:
            damaged.append(str(error))
    present = next((name for name in reversed(ran_on.values()) if name), None)
    strangers: dict[str, int] = defaultdict(int)
    for name in ran_on.values():
        if name not in (present, None):
            strangers[name] += 1
    return [path for path, name in ran_on.items() if name in (present, None)], dict(strangers), damaged


def _series(rows):
    rows = states.grouped(rows)[0][1]
    by_session = defaultdict(list)
    for row in rows:
        by_session[row['session']].append(row)
    subsystem, noise = registry.of_row(rows[-1])
    return Series(rows[-1]['metric'], rows[-1]['unit'] or '1', subsystem, noise,
                  {session: float(np.median([row['value'] for row in its])) for session, its in by_session.items()},
                  {session: verdict.worst(row['verdict'] for row in its) for session, its in by_session.items()})


def courses(history):
    '''The :class:`Course` of each subsystem, and what their scatters say of each other: (list, prior of :mod:`changes`).

    The weighted mean of the logarithms of its metrics over their medians; weights as those of a subsystem's score.
    '''
    groups, alike, ran = defaultdict(list), defaultdict(list), defaultdict(set)
    for key, series in history.metrics.items():
        ran[replace(key, metric='')].update(series.values)
    several = len({key.partition for key in history.metrics}) > 1
    for key, series in history.metrics.items():
        if series.better == registry.NEITHER or series.subsystem in (None, registry.NO_MACHINE):
            continue
        since = sum(session >= min(series.values) for session in ran[replace(key, metric='')])
        if len(series.values) >= max(LEAST_VALUES, LEAST_PRESENT * since):
            groups[series.subsystem + (f' of {key.partition}' if several else ''), series.kind].append(series)
            alike[series.noise].append(changes.scatter(list(series.values.values())))
    priors = prediction.priors(alike)
    found = [_course(*key, its, history.sessions, priors) for key, its in groups.items()]
    prior = prediction.learnt([changes.scatter(one.values) for one in found], prediction.PRIORS[registry.RATIO])
    return found, prior


def _course(name, kind, series, sessions, priors):
    deviations = [prediction.moderated(*changes.scatter(list(one.values.values())), priors[one.noise])[0] for one in series]
    weights = subsystems.weights(deviations)
    logs = np.array([[one.better * np.log(one.values.get(session, np.nan)) for session in sessions] for one in series])
    logs -= np.nanmedian(logs, axis=1, keepdims=True)
    present = np.dot(weights, np.isfinite(logs))
    inside = present >= 0.5
    scores = np.dot(weights, np.nan_to_num(logs))[inside] / present[inside]
    return Course(name, kind, len(series), [one for one, kept in zip(sessions, inside) if kept], np.exp(scores))


def lasting(history, of=None):
    '''The losses that have come to stay since the references were accepted, or since the archive began: list of :class:`Lasting`.

    One rate of false alarms, :data:`changes.RATE`, for all courses.

    :arg of: name of a session: only courses that end with it; by default all, whichever tests the last session ran.
    '''
    found, (freedom, deviation) = courses(history)
    judged = []
    for course in found:
        accepted = [number for number, name in enumerate(course.sessions) if name in history.accepted] or [0]
        first, before = accepted[0], max(subsystems.LEAST_SESSIONS, accepted[-1] + 1 - accepted[0])
        since = replace(course, sessions=course.sessions[first:], values=course.values[first:])
        step = changes.step(since.values, (freedom, deviation), before)
        if step and of in (None, since.sessions[-1]):
            judged.append(Lasting(since, step))
    certain = subsystems.holm([one.step.chance for one in judged], changes.RATE)
    losses = [one for one, holds in zip(judged, certain) if holds and one.step.change <= -prediction.LEAST_LOSS]
    return sorted(losses, key=lambda one: one.step.chance)
