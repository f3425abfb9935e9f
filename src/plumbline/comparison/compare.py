'''Before and after: what got slower, by how much, and is it more than noise?

What each metric should measure after is predicted from the sessions before (:mod:`plumbline.model.prediction`), and a change is
named by its improbability.  One rate of false alarms holds for all metrics of a comparison, another for all subsystems, whose
scores find what agrees though each metric stays within its noise (:mod:`plumbline.model.subsystems`).

Of a single session before nothing is known of the scatter between sessions but what the comparison itself shows: how far the
changes of metrics of one class lie apart (Efron's empirical null, J. Am. Stat. Assoc. 99 (2004) 96).  What is tested is no change
at all, not the median change of the class: a machine that became slower as a whole must be found.
'''

import math
from dataclasses import dataclass, field, replace

import numpy as np

from plumbline.analysis.lines import detail_of, one_line
from plumbline.analysis.session import Session
from plumbline.comparison import sides
from plumbline.errors import PlumblineError
from plumbline.model import grouping, prediction, quantity, registry, repetitions, states, subsystems, uncertainty, verdict
from plumbline.model.prediction import LEAST_LOSS, MOST_LOSS

#: What became of a metric, from the worst to the best.
FAILED, SLOWER, GONE, CHANGED, UNCLEAR, FASTER, NEW, WITHIN = KINDS = (
    'failed', 'slower', 'gone', 'changed', 'unclear', 'faster', 'new', 'within noise')

#: These are out of bounds.
WRONG = (FAILED, SLOWER, GONE)

#: Of a single session before, degrees of freedom: with fewer nothing would be seen, and with more metrics that scatter more than
#: others of their class would be named (in 13 % of comparisons where they are 1.6 times apart).
_LEAST_FREEDOM, _MOST_FREEDOM = 3, 6


@dataclass(frozen=True)
class Change:
    '''What became of one metric, or (``metric`` empty) of one test.

    :attr kind: one of :data:`KINDS`; ``changed`` is beyond noise where nobody can say which way is better.
    :attr check: the test, with its parameters; :attr name: of its class.
    :attr nodes: (before, after), names with commas.
    :attr node: its name, of a test that ran on several at once; else ''.
    :attr before: median of the sessions before, in ``unit``, NaN where they had another one; :attr after: that after; None without one.
    :attr sees: the loss that would have been seen with a probability of 95 %, e.g. 0.05; None if there is nothing to compare.
    :attr chance: the probability of such a change, or a larger one, if nothing has changed.
    :attr verdicts: (before, after); None where there was none.
    :attr question: which it is evidence for (:func:`registry.question`).
    '''
    kind: str
    check: str
    partition: str
    environ: str
    nodes: tuple[str, str]
    metric: str = ''
    name: str = ''
    before: float | None = None
    after: float | None = None
    unit: str = '1'
    sees: float | None = None
    chance: float = 1.0
    verdicts: tuple[str | None, str | None] = (None, None)
    reason: str = ''
    question: str = registry.SOFTWARE
    node: str = ''

    @property
    def ratio(self):
        '''After over before; None where one of them is missing or 0.'''
        return self.after / self.before if quantity.known(self.before) and self.before and self.after is not None else None

    @property
    def severity(self):
        '''For sorting, the worst first: kind, then the least probable.'''
        return KINDS.index(self.kind), self.chance, self.check, self.metric


@dataclass(frozen=True)
class Part:
    '''What became of a subsystem's rates and times, or of its shares and ratios.

    :attr node: its name where there are several; else ''; :attr subsystem: of the registry; :attr of: :data:`subsystems.RATES` or ``SHARES``.
    :attr verdict: FAIL: it is slower; UNSTABLE: so it seems, but the session after was as noisy; PASS.
    :attr score: :class:`plumbline.model.subsystems.Score`.
    :attr sees: the loss that would have been seen with a probability of 95 %.
    :attr checks: names of the classes of its tests.
    '''
    node: str
    subsystem: str
    of: str
    score: subsystems.Score
    verdict: str
    sees: float
    checks: frozenset[str] = frozenset()

    @property
    def name(self):
        '''``L2, rates and times``.'''
        return subsystems.score_of(self.subsystem, self.of)

    @property
    def blind(self):
        '''Whether it passes as it would have, for noise, with hardly anything left.'''
        return self.verdict == verdict.PASS and self.sees > MOST_LOSS


@dataclass(frozen=True)
class Comparison:
    '''All that :func:`compare` found.

    :attr system: ReFrame's name.
    :attr before: names of the sessions before, the latest last; :attr after: that of the one after; of a sweep, how many.
    :attr changes: of every metric, the worst first.
    :attr state: (what, only before, only after): kernel, compiler, ... that are not the same; both lists of texts.
    :attr parts: the subsystems, the worst first.
    :attr incomparable: (node, name), as of a part, of those that both sides measured and all of which is unclear, if they are no part, or a blind
        one; not the shares and ratios of a subsystem whose rates and times are one that sees.
    '''
    system: str
    before: tuple[str, ...]
    after: str
    changes: list[Change]
    state: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    incomparable: list[tuple[str, str]] = field(default_factory=list)

    @property
    def wrong(self):
        '''The changes that are out of bounds.'''
        return [change for change in self.changes if change.kind in WRONG]

    @property
    def slower(self):
        '''The subsystems that are slower.'''
        return [part for part in self.parts if part.verdict == verdict.FAIL]

    @property
    def undecided(self):
        '''The subsystems of which it is not known, for noise, whether they are slower.'''
        return [part for part in self.parts if part.verdict == verdict.UNSTABLE]

    @property
    def exit_status(self):
        '''1: something is worse; 3: of a subsystem, or of every metric that both sides have, nothing can be said; 0.'''
        both = {change.kind for change in self.changes if change.before is not None and change.after is not None}
        return 1 if self.wrong or self.slower else 3 if self.undecided or self.incomparable or both == {UNCLEAR} else 0


def _place(before, after, node):
    row = after or before
    return {'check': row['case'], 'name': row['check'], 'partition': row['partition'], 'environ': row['environ'], 'metric': row['name'] or '',
            'unit': row['unit'] or '1', 'nodes': tuple(side['hostname'] if side else '' for side in (before, after)),
            'verdicts': tuple(side and side['verdict'] for side in (before, after)), 'node': node or '',
            'question': registry.question(row['subsystem'], row['metric'] or '', bool(row['foreign']))}


@dataclass(frozen=True)
class _Pair:
    '''A metric that is comparable.

    :attr place: of its :class:`Change`.
    :attr before: rows, one for each session before; :attr after: the row after; of one state, with values above 0.
    '''
    place: dict
    before: list
    after: dict

    @property
    def values(self):
        return [row['value'] for row in self.before]

    @property
    def better(self):
        return registry.better(self.after['metric'])

    @property
    def error(self):
        '''Standard error of the logarithm of after over before, by the intervals of both.'''
        return math.hypot(*(uncertainty.error(repetitions.interval(row)) for row in (self.before[-1], self.after)))


def expected(pairs, single):
    '''The :class:`plumbline.model.prediction.Prediction` of each pair's value after, if nothing has changed.

    :arg single: whether there is a single session before.
    '''
    classes = [registry.of_row(pair.after)[1] for pair in pairs]
    alike = grouping.by_key(zip(classes, pairs))
    if not single:
        priors = prediction.priors({name: [prediction.variance(pair.values) for pair in its] for name, its in alike.items()})
        tails = prediction.tails(({row['side']: row['value'] for row in pair.before}, priors[name], registry.of_row(pair.after)[0])
                                 for pair, name in zip(pairs, classes))
        return [prediction.predict(pair.values, priors[name], tails) for pair, name in zip(pairs, classes)]
    priors = {name: _empirical(its, prediction.PRIORS[registry.kind_of(name)]) for name, its in alike.items()}
    return [prediction.Prediction(pair.values[0], max(priors[name][1], pair.error), priors[name][0]) for pair, name in zip(pairs, classes)]


def _empirical(pairs, default):
    '''(degrees of freedom, relative standard deviation) of one session after another, from how far apart the changes of a
    subsystem's metrics are: one that has become slower as a whole does not count as noise.'''
    parts = grouping.by_key((registry.of_row(pair.after)[0], math.log(pair.after['value'] / pair.values[0])) for pair in pairs)
    apart = np.concatenate([np.array(changes) - np.median(changes) for changes in parts.values()])
    count = apart.size - len(parts)
    if count < prediction.LEAST_METRICS:
        return max(_LEAST_FREEDOM, default[0]), default[1] * math.sqrt(2)
    deviation = uncertainty.MAD_TO_SIGMA * float(np.median(np.abs(apart))) * math.sqrt(apart.size / count)
    return min(uncertainty.mad_freedom(count), _MOST_FREEDOM), max(deviation, prediction.LEAST_DEVIATION)


def judge(pairs, single):
    '''Are metrics the same after as before?

    :arg single: whether there is a single session before.
    :returns: list of :class:`Change`, and the :class:`Part` of each subsystem.
    '''
    predicted, rate = expected(pairs, single), subsystems.METRICS_RATE / max(1, len(pairs))
    losses, gains = ([one.chance(pair.after['value'], side * pair.better) for one, pair in zip(predicted, pairs)] for side in (1, -1))
    either = [loss if pair.better == registry.NEITHER else 2 * min(loss, gain) for pair, loss, gain in zip(pairs, losses, gains)]
    worse, better = (subsystems.holm(chances, subsystems.METRICS_RATE) for chances in (losses, gains))
    named = [loss or gain for loss, gain in zip(worse, better)]
    listed = subsystems.discoveries(either, subsystems.DISCOVERY_RATE)
    changes = [_judged(*one, rate) for one in zip(pairs, predicted, either, named, listed)]
    return changes, _parts(pairs, predicted)


def _judged(pair, predicted, chance, named, listed, rate):
    value, (low, high) = pair.after['value'], repetitions.interval(pair.after)
    far, sees = math.log(value / predicted.middle), predicted.sees(rate, rises=pair.better == registry.LESS)
    way = CHANGED if pair.better == registry.NEITHER else FASTER if far * pair.better > 0 else SLOWER
    kind, reason = WITHIN, ''
    if (named or listed) and abs(far) >= math.log1p(LEAST_LOSS):
        if named and not low <= predicted.middle <= high:
            kind = way
        else:
            kind, reason = UNCLEAR, 'its interval holds the value before' if named else f'probably {way}'
    elif predicted.sees(rate) > MOST_LOSS:
        kind, reason = UNCLEAR, f'too noisy before: no loss of less than {quantity.percent(MOST_LOSS, 0)} is seen'
    elif low <= 0 or math.log(high / low) / 2 > max(predicted.distance(rate), math.log1p(LEAST_LOSS)):
        kind, reason = UNCLEAR, 'too noisy after: its interval is wider than what must be seen'
    return Change(kind, **pair.place, before=predicted.middle, after=value, sees=sees, chance=chance, reason=reason)


def _part(row):
    '''(subsystem, rates or shares) of the :class:`Part` that a row counts in; None if in none.'''
    part = registry.of_row(row)[0] if registry.better(row['metric']) != registry.NEITHER else registry.NO_MACHINE
    return None if part in (None, registry.NO_MACHINE) else (part, subsystems.kind(row['metric']))


def _parts(pairs, predicted):
    its = grouping.by_key(((pair.place['node'], *part), (pair, one)) for pair, one in zip(pairs, predicted) if (part := _part(pair.after)))
    judged = subsystems.judged({key: [_member(pair, one) for pair, one in alike] for key, alike in its.items()})
    found = [Part(node, part, of, known.score, known.verdict, known.sees, frozenset(pair.after['check'] for pair, _ in its[node, part, of]))
             for (node, part, of), known in judged.items()]
    return sorted(found, key=lambda part: (-verdict.SEVERITY.index(part.verdict), part.score.chance))


def _member(pair, predicted):
    return subsystems.Member(f"{pair.place['check']} {pair.place['metric']}", pair.after['value'], predicted, pair.better,
                             {row['side']: row['value'] for row in pair.before}, uncertainty.error(repetitions.interval(pair.after)))


def _change(rows, after, node):
    '''The :class:`Change` of one key, or a :class:`_Pair` to judge, or None if there is nothing to say.

    :arg rows: those before, oldest first; :arg after: the row after, or None.
    '''
    before = rows[-1] if rows else None
    place = _place(before, after, node)
    measured = [row for row in rows if row['value'] is not None]
    if not place['metric']:
        old, failed = (row and row['verdict'] == verdict.FAIL for row in (before, after))
        return Change(WITHIN if old else FAILED, **place, reason=after['reason'] or '') if failed else None
    if after is None:
        return Change(GONE, **place, before=measured[-1]['value']) if measured else None
    if not measured:
        return Change(NEW, **place, after=after['value'])
    if after['value'] is None:
        return Change(FAILED, **place, before=measured[-1]['value'], reason=after['reason'] or '')
    unclear = {'kind': UNCLEAR, **place, 'after': after['value']}
    same, other = sides.of_the_same(measured, after)
    if other:
        return Change(**unclear, before=same[-1]['value'] if same else np.nan, reason=f'not compared: {other}')
    alike, after = sides.in_one_state(same, after)
    if not alike:
        now = states.text(states.of_row(after)[0]['state'])
        return Change(**unclear, before=same[-1]['value'], reason=f'measured in another state of the machine than before: {now}')
    if not all(math.isfinite(row['value']) and row['value'] > 0 for row in (*alike, after)):
        kind, reason = _without_ratio(alike, after)
        return Change(kind, **place, before=alike[-1]['value'], after=after['value'], reason=reason)
    return _Pair(place, alike, after)


def _without_ratio(before, after):
    '''(kind, reason) of a metric whose values have no ratio.

    A rate that falls to 0 has lost all; not one that was nearly nothing before, such as an overlap of 2 %: its noise reaches 0.
    '''
    value, bands = after['value'], [repetitions.interval(row) for row in before]
    if value == before[-1]['value']:
        return WITHIN, ''
    if not math.isfinite(value) and math.isfinite(before[-1]['value']):
        return FAILED, 'it is not a number now'
    if value <= 0 and registry.better(after['metric']) == registry.MORE and 2 * min(low for low, _ in bands) > max(high for _, high in bands):
        return SLOWER, 'nothing is left of it'
    return UNCLEAR, 'no ratio: a value is 0, negative or not a number'


def _failed(change, after):
    '''The change; a failure where only the session after has a FAIL.'''
    if change.verdicts[1] == verdict.FAIL != change.verdicts[0] and change.kind not in WRONG:
        return replace(change, kind=FAILED, reason=after['reason'] or '')
    return change


def _why_gone(change, after):
    '''What the session after says of a metric that it lacks.'''
    wanted = change.check, change.partition, change.environ
    case = [row for row in after if (row['case'], row['partition'], row['environ']) == wanted]
    if not case:
        return 'the test did not run'
    failed = [row['reason'] for row in case if row['verdict'] == verdict.FAIL and row['reason']]
    skipped = [entry.reason for entry in detail_of(case).skipped or () if entry.means(change.metric)]
    return one_line((failed + skipped + ['the test ran without it'])[0])


def _clears(other, change):
    '''Whether what a further session says of a change for the worse is that there is none.  What is unclear there is no evidence either way: it
    says only that a metric is there, or that a FAIL is a PASS.'''
    if other.kind == UNCLEAR:
        return change.after is None or (change.kind == FAILED and other.verdicts[1] == verdict.PASS)
    return other.kind not in WRONG


def confirmed(found, others):
    '''The comparison, in which is worse only what is worse after in each further session that can say so.

    :arg others: the :class:`Comparison` of each of these with the same sessions before.
    :raises PlumblineError: if one of them is there twice.
    '''
    if len({one.after for one in (found, *others)}) <= len(others):
        raise PlumblineError('a session is compared with itself; name another one with --after')
    for other in others:
        told = [change for change in other.changes if change.after is not None or change.kind == FAILED]       # else its test did not run
        tests = [replace(change, kind=WITHIN, metric='') for change in told]
        said = {_key(change): change for change in (*tests, *told)}
        rulings = {(part.node, part.name): part.verdict for part in other.parts if part.verdict != verdict.UNSTABLE and not part.blind}
        changes = [replace(change, kind=UNCLEAR, reason=f'{change.kind} but not in {other.after}')
                   if change.kind in WRONG and _clears(said.get(_key(change), change), change) else change for change in found.changes]
        parts = [replace(part, verdict=min(part.verdict, rulings.get((part.node, part.name), part.verdict), key=verdict.SEVERITY.index))
                 for part in found.parts]
        found = replace(found, after=f'{found.after} and {other.after}', changes=sorted(changes, key=lambda change: change.severity), parts=parts,
                        incomparable=[key for key in found.incomparable if rulings.get(key) != verdict.PASS])
    return found


def _key(change):
    before = change.nodes[0] if change.metric else ''       # a test that did not run has no row before, nor need it have a node
    return change.check, change.partition, change.environ, before or change.node, change.metric


def _is_usual(key, before):
    '''Whether the sessions before measure something, of which the one after should have it: the last does, or half of them.'''
    return key in before[-1] or 2 * sum(key in session for session in before) >= len(before)


def compare(before, after):
    '''Compare sessions.

    :arg before: rows (archive's columns) of the sessions before, oldest first, at least one; :arg after: those after.
    :returns: :class:`Comparison`.
    :raises PlumblineError: if they are of different systems, one of them is there twice, or nothing is in both.
    '''
    system = sides.one_system((*before, after))
    sessions = [sorted(frame['session'].unique()) for frame in (*before, after)]
    names = [one[0] if len(one) == 1 else f'{len(one)} sessions from {one[0]} on' for one in sessions]
    if len(set().union(*sessions)) < sum(map(len, sessions)):
        raise PlumblineError('a session is compared with itself; name different ones, oldest first')
    rows = [sides.cases(side, frame) for side, frame in enumerate((*before, after))]
    *old, new = sides.keyed(rows)
    keys = dict.fromkeys(key for session in (*old, new) for key in session if key in new or _is_usual(key, old))
    found = {key: _change([session[key] for session in old if key in session], new.get(key), key[3]) for key in keys}
    pairs = {key: one for key, one in found.items() if isinstance(one, _Pair)}
    judged, parts = judge(sides.by_each_other(pairs.values()), len(old) == 1)
    found |= zip(pairs, judged)
    kinds = grouping.by_key(((key[3] or '', _part(new[key])), change.kind) for key, change in found.items()
                            if change and change.before is not None and change.after is not None)
    known = {(part.node, (part.subsystem, of)) for part in parts if not part.blind for of in (part.of, subsystems.SHARES)}
    incomparable = [(node, subsystems.score_of(*part)) for (node, part), its in kinds.items()
                    if part and set(its) == {UNCLEAR} and (node, part) not in known]
    changes = [_failed(replace(change, reason=_why_gone(change, rows[-1])) if change.kind == GONE else change, new.get(key))
               for key, change in found.items() if change]
    if all(change.before is None or change.after is None for change in changes):
        raise PlumblineError('nothing is comparable: no metric was measured before and after; compare runs of one mode')
    states_of = [list(map(Session, one.partition_by('session', maintain_order=True))) for one in (before[-1], after)]
    return Comparison(system, tuple(names[:-1]), names[-1], sorted(changes, key=lambda change: change.severity),
                      sides.state_changes(*states_of), parts, incomparable)
