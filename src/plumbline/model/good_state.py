'''Which sessions and nodes references are made of: what stands apart from the others is named, and not pooled silently.

One session stands for one state of the software and the machine; what its metrics say together is held against the other
sessions (:mod:`plumbline.model.subsystems`), what a node's metrics say one by one against the other nodes.
'''

import functools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumbline.model import grouping, prediction, registry, subsystems

#: Sessions that references are made of.
LEAST_SESSIONS, MOST_SESSIONS = subsystems.LEAST_SESSIONS, 20

#: Seconds: sessions that began nearer to each other count once.  In a row they meet the machine in the state of the hour, and say nothing of how
#: sessions differ: after five within seven minutes on a virtual machine whole subsystems were 13 to 23 % worse in the next quarter of an hour.
LEAST_APART = 3600

#: Seconds; sessions of one day do not know what days differ by.
DAY = 24 * 3600

#: The probability that a session is left out, or that some node is, though all are alike.
ODD_RATE = 0.01


@dataclass(frozen=True)
class Series:
    '''A metric in one state of the machine, in all sessions that have it.

    :attr noise: :func:`registry.noise_class`.
    :attr subsystem: :func:`registry.subsystem`; None of a metric that the registry no longer has.
    :attr values: dictionary session -> node -> value, above 0.
    '''
    name: str
    metric: str
    noise: str
    subsystem: str | None
    values: dict[str, dict[str, float]]

    @functools.cached_property
    def measured(self) -> dict[str, float]:
        '''Dictionary session -> median over its nodes.'''
        return {session: statistics.median(nodes.values()) for session, nodes in self.values.items()}

    @functools.cached_property
    def scatter(self) -> tuple[float, float]:
        '''(variance, degrees of freedom) of the logarithm of one node's value in one session.

        Of n nodes it is the variance of the sessions' values and 1 - 1/n of that between nodes of a session.  What nodes differ
        by stays from session to session, so however many these are, they tell of n - 1 differences only.
        '''
        between, freedom = prediction.variance(list(self.measured.values()))
        spare = sum(len(nodes) - 1 for nodes in self.values.values())
        if not freedom or not spare:
            return between, freedom
        logs = [np.log(list(nodes.values())) for nodes in self.values.values()]
        nodes = len(set().union(*self.values.values()))
        within = sum(np.var(part) * part.size for part in logs) / spare * (1 - 1 / np.mean([part.size for part in logs]))
        total = between + within
        return total, float(total**2 / (between**2 / freedom + within**2 / (nodes - 1))) if total else freedom

    def without(self, session: str) -> 'Series':
        return replace(self, values={name: nodes for name, nodes in self.values.items() if name != session})

    def expected(self, known: 'Known') -> prediction.Prediction:
        '''The :class:`prediction.Prediction` of one node's value in a new session.'''
        middle = float(np.exp(np.mean(np.log(list(self.measured.values())))))
        return prediction.expected(middle, self.scatter, len(self.measured), known.priors[self.noise], known.tails)


@dataclass(frozen=True)
class Known:
    '''What metrics say of each other.

    :attr priors: :attr:`Series.noise` -> (degrees of freedom, deviation).
    :attr tails: :func:`prediction.tails`.
    '''
    priors: dict[str, prediction.Prior]
    tails: float


def known(series: Sequence[Series]) -> Known:
    '''What some series say of each other.'''
    priors = _learnt(series, [one.scatter for one in series])
    return Known(priors, prediction.tails((one.measured, priors[one.noise], one.subsystem) for one in series))


def _learnt(series: Sequence[Series], scatters: Iterable[tuple[float, float]]) -> dict[str, prediction.Prior]:
    return prediction.priors(grouping.by_key((one.noise, scatter) for one, scatter in zip(series, scatters)))


def expectations(series: Sequence[Series]) -> list[prediction.Prediction]:
    '''The :class:`prediction.Prediction` of each of some series, each with one session at least.'''
    of_each_other = known(series)
    return [one.expected(of_each_other) for one in series]


@dataclass(frozen=True)
class Odd:
    '''
    :attr name: of the session or the node.
    :attr where: of a session the subsystem's rates and times, or its shares and ratios, of a node the metric that differs most.
    :attr change: relative; of a session a loss is below 0.
    :attr worst: of a session the metric that differs most of these.
    '''
    name: str
    where: str
    change: float
    worst: str = ''


def odd_session(series: Sequence[Series], trusted: Iterable[str] = ()) -> Odd | None:
    '''The session that is least like the others, or :obj:`None` if none stands apart.

    Subsystem scores of each against all others, to either side; Holm's procedure over the subsystems of each, at its part of the rate.

    :arg trusted: names of sessions that are not suspected.
    '''
    told = [one for one in series if registry.better(one.metric) != registry.NEITHER and one.subsystem != registry.NO_MACHINE]
    apart = []
    sessions = sorted(set().union(*(one.values for one in told)) - set(trusted))
    for session in sessions:
        scores = _scores(told, session)
        chances = [score.expected.chance(1 + score.change, registry.NEITHER) for score in scores.values()]
        apart += [(chance, Odd(session, part, score.change, score.members[0 if score.change < 0 else -1].name))
                  for (part, score), chance, holds in zip(scores.items(), chances, subsystems.holm(chances, ODD_RATE / len(sessions))) if holds]
    return min(apart, key=lambda one: one[0])[1] if apart else None


def _scores(series: Sequence[Series], session: str) -> dict[str, subsystems.Score]:
    '''The scores of one session; of a subsystem's rates and times, and of its shares and ratios, by those that most have the same other sessions.'''
    pairs = [(one, one.without(session)) for one in series if session in one.values and len(one.values) > 1]
    alike: dict[tuple[str, frozenset[str]], list[subsystems.Member]] = defaultdict(list)
    for (one, others), expected in zip(pairs, expectations([others for _, others in pairs])):
        alike[subsystems.score_of(one.subsystem or '', subsystems.kind(one.metric)), frozenset(others.values)].append(subsystems.Member(
            one.name, one.measured[session], expected, registry.better(one.metric), others.measured))
    parts = {part: members for (part, _), members in sorted(alike.items(), key=lambda found: len(found[1]))}
    return subsystems.scores(parts) if parts else {}


def odd_nodes(series: Sequence[Series]) -> list[Odd]:
    '''Nodes whose difference from the others is certainly larger than what the metric scatters by between sessions.

    In one session, or where nodes take turns from session to session.

    :returns: list of :class:`Odd`, of each node the metric that differs most; where two nodes differ, both: which of them is right is not known.
    '''
    from scipy import special
    apart = [(one, *its) for one in series for its in _differences(one)]
    scatters = [prediction.variance(np.exp(logs)) for _, _, logs, *_ in apart]
    of_nodes, of_sessions = (_learnt([one for one, *_ in apart], known) for known in (scatters, [session for *_, session in apart]))
    found = []
    for (one, node, logs, count, session), scatter in zip(apart, scatters):
        harmless = max(prediction.LEAST_LOSS, prediction.moderated(*session, of_sessions[one.noise])[0])
        deviation, freedom = prediction.moderated(*scatter, of_nodes[one.noise])
        far = (abs(logs.mean()) - harmless) / (deviation / np.sqrt(count))
        found.append((float(min(1.0, 2 * special.stdtr(freedom, -far))), Odd(node, one.name, float(np.expm1(logs.mean())))))
    certain = subsystems.holm([chance for chance, _ in found], ODD_RATE)
    worst: dict[str, Odd] = {}
    for odd in sorted((odd for (_, odd), holds in zip(found, certain) if holds), key=lambda odd: -abs(odd.change)):
        worst.setdefault(odd.name, odd)
    return list(worst.values())


def _differences(one: Series) -> Iterator[tuple[str, np.ndarray, float, tuple[float, float]]]:
    '''(node, logarithms of its values over those of the others, as how many independent ones their mean is known, scatter between sessions)
    of each node that has two: over the median of all nodes of its session, of two over the other one; where it is in no two sessions with
    others, as nodes take turns, over the same of what each measured in its own.'''
    turns = {node: np.log([of[node] for of in one.values.values() if node in of]) for node in sorted(set().union(*one.values.values()))}
    whole = [(of, statistics.median(of.values())) for of in one.values.values() if len(of) >= min(3, len(turns)) > 1]
    total = sum(map(len, turns.values()))
    within = float(sum(np.var(logs) * len(logs) for logs in turns.values())) / max(1, total - len(turns)), float(total - len(turns))
    for node, own in turns.items():
        its = [(of[node], of[next(iter(of.keys() - {node}))] if len(turns) == 2 else middle) for of, middle in whole if node in of]
        if len(its) > 1:
            logs = np.array([math.log(value / of_others) for value, of_others in its])
            yield node, logs, len(its), prediction.variance(list(one.measured.values()))
        elif len(own) > 1 and len(turns) > 1:
            others = statistics.median(float(logs.mean()) for name, logs in turns.items() if len(turns) > 2 or name != node)
            yield node, own - others, len(own) * (1 - len(own) / total), within
