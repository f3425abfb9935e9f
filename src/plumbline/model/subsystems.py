'''Subsystem scores: twenty metrics that agree are no accident, though each stays within its noise.

The score of a subsystem is the weighted mean of the logarithms of its metrics over their references, a loss below 0.  What it
scatters by is not computed from its metrics, which share the machine's moods, but measured: the same score of each session that
the references are from.  One rate of false alarms holds for all subsystems of a session (Holm, Scand. J. Stat. 6 (1979) 65), one
of false discoveries for the list of its metrics (Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995) 289).
'''

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from plumbline.model import prediction, registry, verdict

#: Of a session on an unchanged machine: the probability that some metric is FAIL by its recorded reference; that some subsystem is.
#: With that of a loss that lasts (:data:`changes.RATE`) they are one in a hundred.
METRICS_RATE, SUBSYSTEMS_RATE = 0.005, 0.003

#: Of one run of its tests: that some metric is out of its bounds.  It is a FAIL if a second run alone is out of them, too; without one if it
#: is so far off as :data:`METRICS_RATE` says.  Two runs of a healthy machine: docs/explanation/verdicts.rst.
SUSPECTS_RATE = 0.05

#: The share of those listed as changed that are not.
DISCOVERY_RATE = 0.05

#: What is believed of the scatter of a score before any is known: degrees of freedom, and a share of the most that it can be.
_TOGETHER = 1, 1.0

#: What a score is of, never both: rates and times say whether the machine is as fast as it was; shares of its own limits, whether the
#: software gets what it gives.
RATES, SHARES = 'rates and times', 'shares and ratios'

#: What tells subsystems apart: a name, or more.
Key = TypeVar('Key', bound=Hashable)

#: Sessions that a scatter is measured from, and the share of them that each metric has.
LEAST_SESSIONS, LEAST_PRESENT = 5, 0.8


@dataclass(frozen=True)
class Member:
    '''A metric with a recorded reference, as its subsystem takes it.

    :attr name: for people.
    :attr value: what the session measured, above 0.
    :attr expected: :class:`prediction.Prediction`.
    :attr better: of its name in the registry; what has no better side is no member of a score.
    :attr measured: dictionary session -> value, of the sessions that the reference is from.
    :attr error: relative standard error of the value, by this session's own processes.
    '''
    name: str
    value: float
    expected: prediction.Prediction
    better: int
    measured: dict
    error: float = 0.0

    @property
    def change(self) -> float:
        '''On the scale of logarithms; a loss is below 0.'''
        return self.better * float(np.log(self.value / self.expected.middle))

    def history(self, sessions: Iterable[str]) -> np.ndarray:
        return self.better * np.log(np.array([self.measured.get(session, np.nan) for session in sessions]) / self.expected.middle)


@dataclass(frozen=True)
class Score:
    '''What a subsystem's metrics say together.

    :attr change: relative, a loss below 0: -0.05 is 5 % less, or 5 % longer.
    :attr expected: :class:`prediction.Prediction` of ``1 + change``, its middle 1.
    :attr members: list of :class:`Member`, the worst first.
    :attr chance: the probability of such a loss, or a larger one, if nothing has changed.
    :attr error: relative standard error of the change, as if what disturbed this session disturbed all its metrics together.
    '''
    change: float
    expected: prediction.Prediction
    members: list
    chance: float
    error: float = 0.0

    def in_noise(self) -> 'Score':
        '''The score as if sessions differed by this one's own noise alone.  That has no tails: the interval of a few processes is as wide as it is
        for being of a few.'''
        expected = prediction.Prediction(1.0, max(self.error, prediction.LEAST_DEVIATION), prediction.NORMAL)
        return replace(self, expected=expected, chance=expected.chance(1 + self.change, registry.MORE))


def kind(metric: str) -> str:
    ''':data:`RATES` or :data:`SHARES`.'''
    return RATES if registry.is_absolute(metric) else SHARES


def score_of(part: str, its_kind: str) -> str:
    '''The name of the score of a subsystem's metrics of a kind: ``L2, rates and times``.'''
    return f'{part}, {its_kind}'


def weights(deviations: ArrayLike) -> np.ndarray:
    '''One over the variance, as far as one metric does not outweigh all others: at most that of the median; shape (n,), sum 1.'''
    deviations = np.asarray(deviations, dtype=float)
    limited = np.minimum(deviations**-2.0, np.median(deviations)**-2.0)
    return limited / limited.sum()


def scores(parts: Mapping[Key, Sequence[Member]]) -> dict[Key, Score]:
    '''The :class:`Score` of each subsystem.

    :arg parts: of each one member at least, all with a better side.
    '''
    weighted = {name: _Weighted(members) for name, members in parts.items()}
    scatters = [found.groups[0].scatter for found in weighted.values()]
    prior = prediction.learnt(prediction.scattering(scatter for scatter in scatters if scatter), _TOGETHER)
    return {name: found.score(prior) for name, found in weighted.items()}


class _Weighted:
    '''The metrics of one subsystem with their weights.

    :attr groups: list of :class:`_Group`, what weighs most first.
    '''

    def __init__(self, members: Sequence[Member]) -> None:
        deviations = np.array([member.expected.deviation for member in members])
        self.members, self.weights = members, weights(deviations)
        self.groups = [_Group([members[number] for number in numbers], self.weights[numbers], deviations[numbers], sessions)
                       for numbers, sessions in _alike([frozenset(member.measured) for member in members], self.weights)]

    def score(self, prior: prediction.Prior) -> Score:
        change = float(np.dot(self.weights, [member.change for member in self.members]))
        known = [group.share(prior) for group in self.groups]
        deviation = sum(its for its, _ in known)      # as if the groups moved together: no session tells
        freedom = (deviation / sum(its / np.sqrt(its_freedom) for its, its_freedom in known))**2
        freedom = min(freedom, max(member.expected.freedom for member in self.members))     # its tails are theirs
        expected = prediction.Prediction(1.0, deviation, freedom)
        worst = sorted(self.members, key=lambda member: member.change / member.expected.deviation)
        error = float(np.dot(self.weights, [member.error for member in self.members]))
        return Score(float(np.expm1(change)), expected, worst, expected.chance(float(np.exp(change)), registry.MORE), error)


class _Group:
    '''Metrics of a subsystem that most sessions of their references have in common, or those that are left.

    :attr most: what they add to the relative standard deviation of the score if all moved together: the most that it can be.
    :attr scatter: (variance of their mean over these sessions, relative to the most; degrees of freedom); None where they have too few.
    '''

    def __init__(self, members: Sequence[Member], weights: np.ndarray, deviations: np.ndarray, sessions: Sequence[str]) -> None:
        self.most, self.scatter = float(np.dot(weights, deviations)), None
        self._freedom = min(member.expected.freedom for member in members)
        if sessions:
            logs = np.array([member.history(sessions) for member in members])
            found = np.dot(weights, np.nan_to_num(logs)) / np.dot(weights * deviations, np.isfinite(logs))
            self.scatter = float(np.var(found, ddof=1)) * (1 + 1 / len(found)), len(found) - 1

    def share(self, prior: prediction.Prior) -> tuple[float, float]:
        '''(what they add to the deviation of the score, degrees of freedom).'''
        if self.scatter is None:
            return self.most, self._freedom
        share, freedom = prediction.moderated(*self.scatter, prior)
        return self.most * min(1.0, share), freedom


def _alike(has: Sequence[frozenset], weights: np.ndarray) -> Iterable[tuple[list[int], list[str]]]:
    '''(numbers of metrics, sessions that most of them have; none where these are too few) until no metric is left, what weighs most first.

    One metric that lacks a session, or whose reference was accepted another day, must not hide what the others say together.

    :arg has: of each metric the sessions of its reference.
    '''
    left = list(range(len(has)))

    def those(sessions: frozenset) -> list[int]:
        return [number for number in left if len(has[number] & sessions) >= LEAST_PRESENT * len(sessions)]

    while left:
        known = {has[number] for number in left}
        choices = [sessions for sessions in {frozenset.intersection(*known), *known} if len(sessions) >= LEAST_SESSIONS]
        if not choices:
            yield left, []
            break
        sessions = max(choices, key=lambda its: (round(float(weights[those(its)].sum()), 9), len(its), sorted(its)))
        chosen = those(sessions)
        yield chosen, sorted(sessions)
        left = sorted({*left} - {*chosen})


@dataclass(frozen=True)
class Judgement:
    ''':attr verdict: FAIL: something was lost; UNSTABLE: it seems so, but the session was as noisy; PASS.
    :attr sees: the loss that would have been seen with a probability of 95 %.
    :attr bound: relative: a change below it is improbable whatever the other subsystems say.'''
    score: Score
    verdict: str
    sees: float
    bound: float


def judged(parts: Mapping[Key, Sequence[Member]]) -> dict[Key, Judgement]:
    '''The :class:`Judgement` of each subsystem.

    A metric that is UNSTABLE counts like any other: to leave it out would leave out the slowest of a noisy session.
    '''
    found = list(scores(parts).values())
    noisy = [score.in_noise() for score in found]
    rulings = [verdict.PASS if not lost else verdict.FAIL if certain else verdict.UNSTABLE for lost, certain in zip(_lost(found), _lost(noisy))]
    rate = SUBSYSTEMS_RATE / max(1, len(found))
    return {name: _judgement(score, ruling, (score.expected, own.expected), rate) for name, score, own, ruling in zip(parts, found, noisy, rulings)}


def _judgement(score: Score, ruling: str, expected: Sequence[prediction.Prediction], rate: float) -> Judgement:
    far = max(np.log1p(prediction.LEAST_LOSS), *(one.distance(rate) for one in expected))
    further = max(one.distance(prediction.MISSED) for one in expected)
    return Judgement(score, ruling, float(-np.expm1(-far - further)), float(np.expm1(-far)))


def _lost(scores: Sequence[Score]) -> list[bool]:
    improbable = holm([score.chance for score in scores], SUBSYSTEMS_RATE)
    return [lost and np.log1p(score.change) <= -np.log1p(prediction.LEAST_LOSS) for score, lost in zip(scores, improbable)]


def holm(chances: Sequence[float], rate: float) -> list[bool]:
    '''Which of several are too improbable, at one rate of false alarms for all: list of bool.'''
    order, found = np.argsort(chances), [False] * len(chances)
    for rank, number in enumerate(order):
        if chances[number] > rate / (len(chances) - rank):
            break
        found[number] = True
    return found


def discoveries(chances: ArrayLike, rate: float) -> list[bool]:
    '''Which of several are listed, where this share of those listed may be wrong: list of bool.'''
    chances = np.asarray(chances, dtype=float)
    order = np.argsort(chances)
    below = np.flatnonzero(chances[order] <= rate * np.arange(1, chances.size + 1) / max(1, chances.size))
    most = chances[order[below[-1]]] if below.size else -1.0
    return (chances <= most).tolist()
