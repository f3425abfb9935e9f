'''Session after session: what each metric measured, what the metrics of a subsystem say together, and since when that is otherwise.'''

import itertools
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from plumbline.analysis.archived import Key, pattern
from plumbline.analysis.joined import joined
from plumbline.errors import PlumblineError
from plumbline.model import changes, grouping, prediction, processor, registry, states, subsystems, verdict
from plumbline.nodes import events
from plumbline.store import archive

#: What tells a metric from session to session, and what the last of its rows says of it.
_KEY = ['partition', 'environ', 'case', 'name']
_ABOUT = ['metric', 'unit', 'subsystem']
_COLUMNS = ['session', 'system', pl.col('partition', 'environ').fill_null(''), 'hostname', 'test', 'display_name', 'run', 'result', 'name', *_ABOUT,
            'value', 'n', 'spread', 'interval_low', 'interval_high', 'state', 'states', 'given', 'working_set', 'verdict', 'foreign']

#: Few texts in many rows.
_REPEATED = ['session', 'system', 'partition', 'environ', 'hostname', 'test', 'display_name', 'case', 'name', *_ABOUT, 'verdict']

#: What a metric says of its references; the second: there are some, of other states of the machine.
_REFERENCES = ['expected', 'recorded_states']

#: A metric is part of its subsystem's course if it is in so many sessions.
LEAST_VALUES = subsystems.LEAST_SESSIONS


@dataclass(frozen=True)
class Series:
    '''A metric in the state of the machine that most sessions met.

    :attr subsystem: None of a metric that the registry no longer has.
    :attr values: dictionary session -> median over the nodes, above 0, in order of time.
    :attr verdicts: dictionary session -> the worst.
    :attr bands: dictionary session -> (low, high): of one node the interval of its value, of several from the lowest to the highest.
    :attr nodes: dictionary session -> the node that measured it; None of several.
    '''
    metric: str
    unit: str
    subsystem: str | None
    noise: str
    values: dict
    verdicts: dict = field(repr=False)
    bands: dict = field(default_factory=dict, repr=False)
    nodes: dict = field(default_factory=dict, repr=False)

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

    :attr subsystem: which one.
    :attr name: of it, and of what tests where others of its metrics have a course of their own, and on what node where nodes differ.
    :attr kind: :data:`subsystems.RATES` or ``SHARES``.
    :attr metrics: their number.
    :attr sessions: names, in order of time; :attr values: shape (n,), 1 in the middle, a loss below; :attr shares: of each session how
        much of the metrics it has, by weight; :attr nodes: of each session its node, names; '' of several, or where it is not known.
    :attr accepted: the sessions that the references of most of its metrics are from.
    '''
    subsystem: str
    name: str
    kind: str
    metrics: int
    sessions: list
    values: np.ndarray
    shares: np.ndarray
    nodes: np.ndarray
    accepted: frozenset = frozenset()

    @property
    def title(self):
        '''For people.'''
        return f'{self.name}, {self.kind}'

    def part(self, chosen, node=''):
        '''Its part of some sessions, shape (n,) of bool; at least one.'''
        values = self.values[chosen]
        return replace(self, name=f'{self.name} on {node}' if node else self.name, sessions=list(itertools.compress(self.sessions, chosen)),
                       values=values / np.median(values), shares=self.shares[chosen], nodes=self.nodes[chosen])


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
    :attr accepted: :class:`Key` -> the sessions that its references are from, of those that have references.
    :attr strangers: dictionary of what other processors sessions ran on -> how many sessions; they are left out.
    :attr damaged: what is wrong with the files that cannot be read.
    :attr ahead: sessions that began in the future, by the clock of now: one of the two clocks is, or was, wrong.
    :attr verdicts: session -> question -> verdict -> number of metrics, and of tests that ended without one.
    :attr other_sets: how many values of caches are left out, of another working set than the last session had; :attr other_units: likewise.
    '''
    system: str
    sessions: list
    metrics: dict
    accepted: dict = field(default_factory=dict)
    strangers: dict = field(default_factory=dict)
    damaged: list = field(default_factory=list)
    ahead: list = field(default_factory=list)
    verdicts: dict = field(default_factory=dict)
    other_sets: int = 0
    other_units: int = 0


def read(root, system=None, last=None, names='', metrics='', until=None, node=None, environment=None):
    '''The history of a system's metrics; of each partition's sessions on its present processor.

    :arg system: ReFrame's name; by default that of the archive's last session.
    :arg last: only so many of the last sessions.
    :arg until: name of the last session that counts; by default that of the archive.
    :arg names: regular expression that is found in the display name of a test; :arg metrics: in the name of a metric.
    :arg node: its name; by default all, of which the medians count; :arg environment: ReFrame's name; by default all.
    :raises PlumblineError: if the archive is empty.
    '''
    names, metrics = pattern(names, '-n'), pattern(metrics, '--metric')
    files = archive.sessions(root, system)
    system = archive.system_of(files[-1])
    files = [path for path in files if until is None or path.stem <= until][-(last or 0):]
    found, damaged = archive.of_readable(files, lambda good: _of_files(good, system, names, metrics, node, environment))
    if damaged and len(damaged) == len(files):
        raise PlumblineError(f'{root}: no session of {system} can be read: {damaged[0]}')
    return replace(found, damaged=damaged)


def _of_files(files, system, names, metrics, node, environment):
    others, strangers = _of_one_processor(files, node, called := events.names(system))
    judged = _judged(files, node, environment, called, others)
    chosen = [[text for text in judged[column].drop_nulls().unique() if wanted.search(text)]
              for column, wanted in (('display_name', names), ('name', metrics))]
    of_test = pl.col('name').is_null() & (not metrics.pattern)
    judged = judged.filter(pl.col('display_name').is_in(chosen[0]), of_test | pl.col('name').is_in(chosen[1]))
    frame = judged.filter(pl.col('metric').is_not_null(), pl.col('value') > 0, pl.col('value').is_finite())
    known = set(frame['session'].unique())
    of_unit = frame.filter(pl.col('unit').eq_missing(pl.col('unit').last().over(_KEY)))     # in another one it was another metric
    of_set = archive.of_last_set(of_unit, _KEY)
    return History(system, [path.stem for path in files if path.stem in known], _every_series(of_set), _accepted(files, frame),
                   strangers, [], [path.stem for path in files if archive.is_ahead(path.stem)], _counted(judged), of_unit.height - of_set.height,
                   frame.height - of_unit.height)


def _accepted(files, frame):
    ''':class:`Key` -> the sessions that its references are from, as the last session that measured it says; where its references are of
    other states of the machine than that one met, as the last one says that met theirs.'''
    last = {tuple(key): session for *key, session in frame.group_by(_KEY).agg(pl.col('session').last()).iter_rows()}
    asked, found = set(last.values()), {}
    of_other_states: set[tuple] = set()
    for path in (path for path in reversed(files) if path.stem in asked or of_other_states):
        rows = archive.load_columns(path, ['partition', 'environ', 'display_name', 'given', 'name', *_REFERENCES])
        rows = rows.select('partition', 'environ', archive.CASE, 'name', *_REFERENCES)
        for partition, environ, test, name, expected, _ in rows.filter(pl.any_horizontal(pl.col(_REFERENCES).is_not_null())).iter_rows():
            key = partition, environ, test, name
            if (last.get(key) == path.stem and Key(*key) not in found) or key in of_other_states:
                of_other_states.add(key)
                if expected:
                    of_other_states.discard(key)
                    found[Key(*key)] = frozenset(json.loads(expected).get('measured') or ())
    return found


def _of_one_processor(files, node, names):
    '''(session, partition) of what ran on another processor than the partition, or that node of it, did last, a frame, and how many sessions ran on
    which other.'''
    rows = names.renamed(archive.scan_files(files)).filter(node is None or pl.col('hostname') == node)
    found = rows.group_by('session', pl.col('partition').fill_null('')).agg(pl.col('processor').drop_nulls().first()).collect()
    ran_on = {(session, part): name for session, part, name in found.sort('session').iter_rows()}
    present = {part: name for (_, part), name in ran_on.items() if name}
    others = {place: name for place, name in ran_on.items() if not processor.same(name, present.get(place[1]))}
    counts = Counter(name for name, _ in {(name, session) for (session, _), name in others.items()})
    return pl.LazyFrame(list(others), {'session': pl.String, 'partition': pl.String}, orient='row'), dict(counts)


def _judged(files, node, environment, names, others):
    '''The metrics of the last runs, and tests that ended without one, in order of time; ``case`` is the test with what it was given.'''
    rows = names.renamed(archive.scan_files(files).select(_COLUMNS)).filter(pl.any_horizontal(pl.col('metric', 'verdict').is_not_null()))
    rows = rows.join(others, on=['session', 'partition'], how='anti', maintain_order='left')
    for column, wanted in (('hostname', node), ('environ', environment)):
        rows = rows.filter(pl.col(column) == wanted) if wanted else rows
    rows = rows.with_columns(case=archive.CASE).drop('given')
    frame = rows.with_columns(pl.col(_REPEATED).cast(pl.Categorical)).collect(engine='streaming')
    again = frame.filter(pl.col('run') > 0)['session'].unique()
    repeated = pl.col('session').is_in(again.implode())     # to look for the last run of each test takes longer than all else
    frame = pl.concat([frame.filter(~repeated), archive.final_rows(frame.filter(repeated))]) if len(again) else frame
    return frame.drop('test', 'run', 'result', 'system').sort(pl.col('session').cast(pl.String), maintain_order=True)


def _counted(frame):
    found: dict[str, dict[str, Counter]] = {}
    alike = frame.group_by('session', 'subsystem', 'metric', pl.col('foreign').fill_null(False), 'verdict').len()
    for session, subsystem, metric, foreign, ruling, number in alike.sort('session').iter_rows():
        its = found.setdefault(session, {}).setdefault(registry.question(subsystem, metric or '', foreign), Counter())
        its[ruling or verdict.NO_REFERENCE] += number
    return found


def _every_series(frame):
    ''':class:`Key` -> :class:`Series`, sorted.'''
    about = {Key(*row[:len(_KEY)]): dict(zip(_ABOUT, row[len(_KEY):])) for row in frame.group_by(_KEY).agg(pl.col(_ABOUT).last()).iter_rows()}
    needed = [*_KEY, 'session', 'value', 'verdict', 'interval_low', 'interval_high', 'hostname']
    met = frame.group_by(_KEY).agg(pl.col('state').unique(), several=pl.col('states').is_not_null().any())
    # Only where a metric was measured in several states, or now and then in an unknown one, there is something to choose.
    choices = [several or not _of_one_state(texts) for texts, several in met.select('state', 'several').iter_rows()]
    mixed = met.filter(pl.Series(choices, dtype=pl.Boolean))
    rows = frame.select(*needed, 'state', 'states').join(mixed, on=_KEY, how='semi', nulls_equal=True).iter_rows(named=True)
    of_key = grouping.by_key((tuple(row[name] for name in _KEY), row) for row in rows)
    chosen = [tuple(row[name] for name in needed) for its in of_key.values() for row in states.grouped(its)[0][1]]
    whole = frame.select(needed).join(mixed, on=_KEY, how='anti', nulls_equal=True)
    found = dict(_of_sessions(pl.concat([whole, pl.DataFrame(chosen, whole.schema, orient='row')]), about))
    return {key: found[key] for key in sorted(found)}


def _of_one_state(texts):
    known = {text for text in texts if text not in (None, 'null', '{}')}
    return not known or (len(known) == len(texts) and states.one(known))


def _of_sessions(frame, about):
    '''(:class:`Key`, :class:`Series`) of each metric: of a session the median over the nodes, the worst verdict and the band.'''
    one = pl.len() == 1
    severity = pl.col('verdict').replace_strict(dict(zip(verdict.SEVERITY, range(len(verdict.SEVERITY)))), default=None, return_dtype=pl.Int64)
    rulings = pl.col('verdict').replace_strict(dict(enumerate(verdict.SEVERITY)), default=verdict.FAIL, return_dtype=pl.String)
    sessions = frame.group_by(*_KEY, 'session').agg(
        pl.col('value').median(), severity.max().alias('verdict'), node=pl.when(pl.col('hostname').n_unique() == 1).then(pl.col('hostname').first()),
        low=pl.when(one).then(pl.coalesce('interval_low', 'value').first()).otherwise(pl.col('value').min()),
        high=pl.when(one).then(pl.coalesce('interval_high', 'value').first()).otherwise(pl.col('value').max()))
    columns = ['session', 'value', 'verdict', 'low', 'high', 'node']
    for *names, when, values, verdicts, low, high, nodes in sessions.with_columns(rulings).sort('session').group_by(_KEY).agg(columns).iter_rows():
        row = about[key := Key(*names)]
        subsystem, noise = registry.of_row(row)
        yield key, Series(row['metric'], row['unit'] or '1', subsystem, noise, dict(zip(when, values)), dict(zip(when, verdicts)),
                          dict(zip(when, zip(low, high))), dict(zip(when, nodes)))


def courses(history):
    '''The :class:`Course` of each subsystem, and what their scatters say of each other: (list, prior of :mod:`changes`).

    The weighted mean of the logarithms of its metrics over their medians; weights as those of a subsystem's score.  Metrics that other
    sessions measure have a course of their own: of an acceptance week and the nights after it, say.  So has a node that certainly differs
    from the others, where nodes take turns, always or by a loss of its own: that a session ran elsewhere is no loss.
    '''
    groups, alike = defaultdict(list), defaultdict(list)
    several = len({key.partition for key in history.metrics}) > 1
    for key, series in history.metrics.items():
        if series.better != registry.NEITHER and series.subsystem not in (None, registry.NO_MACHINE) and len(series.values) >= LEAST_VALUES:
            groups[series.subsystem + (f' of {key.partition}' if several else ''), series.kind].append(key)
            alike[series.noise].append(changes.scatter(list(series.values.values())))
    priors = prediction.priors(alike)
    together = [(name, kind, keys) for (of_all, kind), of_group in groups.items() for name, keys in _together(of_all, of_group, history.metrics)]
    found = [course for one in together for course in _of_nodes(changes.RATE / len(together), _course(*one, history, priors))]
    prior = prediction.learnt(prediction.scattering(changes.scatter(one.values) for one in found), prediction.PRIORS[registry.RATIO])
    return found, prior


def _together(name, keys, metrics):
    '''(name of a course, its keys): metrics that most of the sessions of either have, since both were there; what has most values first.'''
    groups: list[list[Key]] = []
    for key in sorted(keys, key=lambda one: -len(metrics[one].values)):
        group = next((group for group in groups if _in_common(metrics[group[0]].values, metrics[key].values) >= 0.5), None)
        groups.append([key]) if group is None else group.append(key)
    groups.sort(key=lambda group: -sum(len(metrics[key].values) for key in group))
    names: dict[str, list] = {}
    for group in groups:
        tests = list(dict.fromkeys(key.case.split(' ')[0] for key in group))
        named = f"{name}: {', '.join(tests[:2])}{' …' if len(tests) > 2 else ''}" if names else name
        again = [f'{named} ({number})' for number in range(2, len(groups) + 1)]
        names[next(one for one in (named, *again) if one not in names)] = group
    return names.items()


def _in_common(one, other):
    '''Of the sessions that have either, since both began, the share that has both.'''
    if one.keys() == other.keys():
        return 1.0
    since = max(min(one), min(other))
    first, second = ({session for session in sessions if session >= since} for sessions in (one, other))
    return len(first & second) / len(first | second)


def _course(name, kind, keys, history, priors):
    '''The :class:`Course` of some metrics.'''
    series = [history.metrics[key] for key in keys]
    deviations = [prediction.moderated(*changes.scatter(list(one.values.values())), priors[one.noise])[0] for one in series]
    weights = subsystems.weights(deviations)
    sessions = [one for one in history.sessions if any(one in its.values for its in series)]
    logs = np.array([[one.better * np.log(one.values.get(session, np.nan)) for session in sessions] for one in series])
    values, present, inside = joined(logs, weights)
    accepted = _accepted_of_most(keys, weights, np.isfinite(logs), sessions, history.accepted)
    met = [{its.nodes.get(session) for its in series if session in its.values} for session in sessions]
    nodes = np.array([(its.pop() if len(its) == 1 else '') or '' for its in met])
    return Course(series[0].subsystem, name, kind, len(series), sessions, np.exp(values), present / present.max(), nodes, accepted).part(inside)


def _of_nodes(rate, course):
    '''The course of each node that certainly differs from the rest, the most certain first, and that of the rest; a list.

    :arg rate: as of :func:`changes.nodes_apart`.
    '''
    first = int(np.argmax([name in course.accepted for name in course.sessions]))
    apart = changes.nodes_apart(course.values, course.shares, course.nodes, first, rate)
    left = ~np.isin(course.nodes, apart)
    its = {*course.nodes[left]}
    return [*(course.part(course.nodes == node, node) for node in apart), course.part(left, its.pop() if apart and len(its) == 1 else '')]


def _accepted_of_most(keys, weights, there, sessions, accepted):
    '''The sessions that the references of most of these metrics are from, by weight, as far as they are still measured.

    What began in the later half of the time before them knows of no loss before that, so it accepts none.

    :arg there: shape (metrics, sessions), whether it was measured; :arg accepted: :attr:`History.accepted`.
    '''
    def of_most(voters):
        votes = Counter[str]()
        for voter in voters:
            votes.update(dict.fromkeys(accepted[keys[voter]], weights[voter]))
        return frozenset(session for session, weight in votes.items() if weight >= weights[voters].sum() / 2) or frozenset(votes)

    voters = [number for number, key in enumerate(keys) if accepted.get(key) and there[number, -LEAST_VALUES:].any()]
    found = of_most(voters)
    begin = next((number for number, session in enumerate(sessions) if session in found), 0)
    return of_most([number for number in voters if there[number, :begin // 2 + 1].any()] or voters)


def lasting(history, of=None, known=None):
    '''The losses that have come to stay since the references were accepted, or since the archive began: list of :class:`Lasting`.

    One rate of false alarms, :data:`changes.RATE`, for all courses.

    :arg of: name of a session: only courses that end with it; by default all, whichever tests the last session ran.
    :arg known: what :func:`courses` says of it, where that is known already.
    '''
    found, (freedom, deviation) = known or courses(history)
    judged = []
    for course in found:
        accepted = [number for number, name in enumerate(course.sessions) if name in course.accepted] or [0]
        first, before = accepted[0], max(subsystems.LEAST_SESSIONS, accepted[-1] + 1 - accepted[0])
        since = course.part(np.arange(len(course.sessions)) >= first)
        places = np.column_stack([since.nodes, [name.partition('T')[0] for name in since.sessions]])
        step = changes.lasting(since.values, (freedom, deviation), before, since.shares, places)
        if step and of in (None, since.sessions[-1]):
            judged.append(Lasting(since, step))
    certain = subsystems.holm([one.step.chance for one in judged], changes.RATE)
    losses = [one for one, holds in zip(judged, certain) if holds and one.step.change <= -prediction.LEAST_LOSS]
    return sorted(losses, key=lambda one: one.step.chance)
