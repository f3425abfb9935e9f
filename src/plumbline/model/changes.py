'''Since when: a step in what session after session measured, that lasts.

The level before and the level after are both unknown, and so is the scatter: of every session from which the new level may date,
the two means are compared, and the largest difference counts (Hawkins, Qiu and Kang, J. Qual. Technol. 35 (2003) 355).  What is
compared with does not creep along, so a loss of a little every week is found as soon as it sums up.
'''

import functools
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from plumbline.model import prediction, registry, subsystems
from plumbline.model.prediction import Prior

#: Sessions of a new level: what goes away sooner is an incident of its session, not a step.
LASTING = 3

#: Of all sessions so many at most are odd.
MOST_ODD = 0.1

#: What is so many times as probable by the level before as by the new one, and so many times the scatter off from it at most, is back.
_BACK, _MOST_OFF = 20, 3.0

#: The correlation of neighbouring sessions, at most: beyond, what there is is a drift.
MOST_MEMORY = 0.6

#: The probability that some series of an unchanged machine shows a step, at each session.
RATE = 0.002

#: The probability that some node differs from the others, by all its sessions, though all are alike.
NODES_RATE = 0.01


@dataclass(frozen=True)
class Step:
    '''
    :attr begin: index of the first session of the new level.
    :attr change: relative: -0.05 is 5 % less than before.
    :attr chance: the probability of a step as large, anywhere and to either side, if nothing has changed.
    '''
    begin: int
    change: float
    chance: float


def scatter(values: ArrayLike) -> tuple[float, float]:
    '''(variance of the logarithms between neighbours, degrees of freedom): steps do not count in it.

    Von Neumann, Ann. Math. Stat. 12 (1941) 367: it is worth two thirds of the freedom of a variance.

    :arg values: shape (n,), above 0, in order of time.
    '''
    between = np.diff(np.log(np.asarray(values, dtype=float)))
    return (float(np.mean(between**2)) / 2, 2 * between.size / 3) if between.size else (0.0, 0)


def step(values: ArrayLike, prior: Prior, before: int = LASTING, shares: ArrayLike | None = None) -> Step | None:
    '''The :class:`Step` that is least probable by chance; :obj:`None` of a series that is too short for one.

    :arg values: shape (n,), above 0, in order of time.
    :arg prior: (degrees of freedom, relative standard deviation) of one value, :func:`prediction.learnt`.
    :arg before: the level before has so many sessions at least.
    :arg shares: shape (n,), above 0: of how much each value is the mean, so that its variance is one over it; by default all alike.
    '''
    logs = np.log(np.asarray(values, dtype=float))
    splits = _splits(logs.size, before)
    return _step(logs, splits, prior, shares) if splits.size else None


def lasting(values: np.ndarray, prior: Prior, before: int, shares: np.ndarray, places: np.ndarray | None = None) -> Step | None:
    '''As :func:`step`; where that is a certain gain, the loss that follows it: what was gained is the level that is lost then.

    The gain must have lasted :data:`subsystems.LEAST_SESSIONS` sessions.  A certain loss that the last session no longer has, or that fewer
    than :data:`LASTING` sessions have, was an incident, and its sessions count no more; nor do fewer than that at the beginning that stand apart,
    nor :func:`_odd` ones between, nor those of which nodes explain a step (:func:`_elsewhere`).

    :arg places: shape (n, 2): the name of each session's node, '' of several or where it is not known, and its day.
    '''
    places = np.full((values.size, 2), '') if places is None else places
    kept = np.flatnonzero(~_odd(np.log(values), prior))
    found = _lasting(values[kept], prior, before, shares[kept], places[kept])
    return found and replace(found, begin=int(kept[found.begin]))


def _odd(logs: np.ndarray, prior: Prior) -> np.ndarray:
    '''Which sessions, :data:`LASTING` in a row at most, are of a level that is not between those before and after it: by what they are off, all
    others would seem to scatter.  None, where they are more than :data:`MOST_ODD` of all: so this machine is.  Nor is a loss that but eases in
    the last sessions, fewer than :data:`LASTING`.'''
    from ruptures import KernelCPD
    kept, most = np.arange(logs.size), int(MOST_ODD * logs.size)
    while kept.size > 2 * LASTING and logs.size - kept.size <= most:
        its = logs[kept]
        between = float(np.median(np.diff(its)**2)) / 0.455        # of normal differences the median of the squares is that of their variance
        deviation = max(prediction.moderated(between / 2, its.size / 3, prior)[0], prediction.LEAST_DEVIATION)
        cuts = [0, *KernelCPD(kernel='linear', min_size=1).fit(its).predict(pen=3 * np.log(its.size) * deviation**2)]
        levels = [float(np.mean(its[begin:end])) for begin, end in itertools.pairwise(cuts)]
        odd = [np.arange(begin, end) for begin, end, before, level, after in zip(cuts[1:], cuts[2:], levels, levels[1:], levels[2:])
               if end - begin <= LASTING and not min(before, after) <= level <= max(before, after)
               and (level > after or its.size - end >= LASTING or _back(after, before, level, deviation**2))]
        if not odd:
            return ~np.isin(np.arange(logs.size), kept)
        kept = np.delete(kept, np.concatenate(odd))
    return np.zeros(logs.size, dtype=bool)


def _lasting(values: np.ndarray, prior: Prior, before: int, shares: np.ndarray, places: np.ndarray) -> Step | None:
    found, logs = step(values, prior, before, shares), np.log(values)
    out = _incident(logs, found, prior, shares[-1]) if found and found.change < 0 else None
    if found and found.chance <= RATE and out is None:
        out = _elsewhere(logs, found, prior, shares, places)
        if found.change > 0 or out is not None:
            since = slice(found.begin, None)
            later = _lasting(values[since], prior, subsystems.LEAST_SESSIONS, shares[since], places[since])
            if later and later.change < 0 and (out is None or later.chance <= RATE):
                return replace(later, begin=found.begin + later.begin)
    if out is None:
        return found
    kept = np.flatnonzero(~out)
    later = _lasting(values[kept], prior, before, shares[kept], places[kept])
    return later and replace(later, begin=int(kept[later.begin]))


def _elsewhere(logs: np.ndarray, found: Step, prior: Prior, shares: np.ndarray, places: np.ndarray) -> np.ndarray | None:
    '''Which sessions since a step are left out, for other nodes explain it as well as time does; None where they do not.

    They do not where nodes with sessions before and since have it, each against itself; nor, unless these gainsay it, where it is certain by how
    nodes scatter that ran on one side alone, :data:`LASTING` at least, the new ones on as many days: in a sweep the nodes of a rack run at once.
    '''
    from scipy import special
    since, known, days = np.arange(logs.size) >= found.begin, places[:, 0] != '', places[:, 1]
    if not ((known & since).any() and (known & ~since).any()):
        return None
    which = np.unique(places[:, 0], return_inverse=True)[1]

    def of_nodes(values: np.ndarray) -> np.ndarray:
        return np.bincount(which, shares * values) / np.bincount(which, shares)
    moved, own = since - of_nodes(since)[which], logs - of_nodes(logs)[which]
    weight = max(float(shares @ moved**2), 1e-9)
    shift, sign = float(shares @ (moved * own)) / weight, np.sign(found.change)
    freedom = prior[0] + max(0, logs.size - int(which.max()) - 2)
    deviation = np.sqrt((prior[0] * prior[1]**2 + shares @ (own - shift * moved)**2) / freedom)
    error = max(float(deviation), prediction.LEAST_DEVIATION) / np.sqrt(weight)
    of_time, against = (special.stdtr(freedom, sign * off / error) <= NODES_RATE for off in (-shift, shift - np.log1p(found.change)))
    old, new = np.bincount(which, since) == 0, np.bincount(which, ~since) == 0
    certain = of_time or (np.unique(days[new[which]]).size >= LASTING and apart(of_nodes(logs)[old], of_nodes(logs)[new]) <= NODES_RATE)
    if certain and not (against and new.any()):
        return None
    return since & new[which] if new.any() else since


def _levels(logs: np.ndarray, begin: int) -> tuple[float, float]:
    '''The level before a step, and the new one as the sessions but the last have it.'''
    return float(np.mean(logs[:begin])), float(np.median(logs[begin:-1]))


def _back(value: float, old: float, new: float, variance: float) -> bool:
    '''Whether a value is rather of the level before a step than of the new one, or of one on the way to it; of losses within the scatter nobody
    can tell.'''
    off = value - old
    return bool((value - new)**2 - off**2 > 2 * variance * np.log(_BACK) and off * np.sign(new - old) <= _MOST_OFF * np.sqrt(variance))


def _is_back(logs: np.ndarray, begin: int, prior: Prior, share: float = 1.0) -> bool:
    '''Whether the last session is.'''
    old, new = _levels(logs, begin)
    deviation, _ = prediction.moderated(float(np.var(logs[:begin], ddof=min(1, begin - 1))), begin - 1, prior)
    return _back(float(logs[-1]), old, new, deviation**2 / share)


def _incident(logs: np.ndarray, found: Step, prior: Prior, share: float) -> np.ndarray | None:
    '''Which sessions are of a level, that before a step or of a certain one that after it, which does not last; None where both do.'''
    begin = found.begin
    after, nearer = np.arange(logs.size) >= begin, _nearer(logs, begin)
    if found.chance <= RATE and _is_back(logs, begin, prior, share):
        return after & _nearer(logs, begin, _levels(logs, begin)[1])
    if found.chance <= RATE and np.count_nonzero(nearer[begin:]) < LASTING:
        return after & nearer
    return ~after & ~nearer if np.count_nonzero(~nearer[:begin]) < LASTING else None


def _nearer(logs: np.ndarray, begin: int, new: float | None = None) -> np.ndarray:
    '''Which sessions are nearer to the level after a step, by default the mean, than to that before it: one far off moves a mean of three.'''
    return np.abs(logs - (np.mean(logs[begin:]) if new is None else new)) < np.abs(logs - np.mean(logs[:begin]))


def _lasts(logs: np.ndarray, begin: int) -> bool:
    '''Whether :data:`LASTING` sessions of each level are nearer to it than to the other one.'''
    nearer = _nearer(logs, begin)
    return bool(min(np.count_nonzero(nearer[begin:]), np.count_nonzero(~nearer[:begin])) >= LASTING)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    '''The probability that two nodes differ by so much by chance; 1 where that is of no interest, or one has too few sessions.

    :arg one, other: logarithms of what their sessions measured.
    '''
    from scipy import special
    if min(one.size, other.size) < LASTING:
        return 1.0
    (score,), (shift,), freedom = _scores(np.concatenate([one, other]), np.array([one.size]), (0.0, 0.0))
    return float(2 * special.stdtr(freedom, -abs(score))) if abs(shift) >= np.log1p(prediction.LEAST_LOSS) else 1.0


def nodes_apart(values: np.ndarray, shares: np.ndarray, nodes: np.ndarray, first: int, rate: float) -> list[str]:
    '''The nodes that certainly differ from all others, the most certain first: by all their sessions, or by a loss that lasts and that the others
    do not have, however long all were alike before.

    :arg values, shares: as of :func:`lasting`.
    :arg nodes: of each session, shape (n,), names; '' of several.
    :arg first: index of the session since which losses are looked for.
    :arg rate: the probability that some node has such a loss though all are alike.
    '''
    left, found = np.full(nodes.size, True), list[str]()
    while True:
        names = sorted({*nodes[left].tolist()} - {''})
        masks = ((left & (nodes == name), left & (nodes != name)) for name in names)
        chance, node = min(((_alike(values, shares, *its, first, rate), name) for its, name in zip(masks, names)), default=(math.inf, ''))
        if chance * max(1, len(names)) > 1:
            return found
        found.append(node)
        left &= nodes != node


def _alike(values: np.ndarray, shares: np.ndarray, own: np.ndarray, rest: np.ndarray, first: int, rate: float) -> float:
    '''The probability that a node differs by so much by chance, over that at which it is certain.'''
    logs, number = np.log(values), np.arange(values.size)
    always = apart(logs[own], logs[rest]) / NODES_RATE
    judged = own & (number >= first)
    step = lasting(values[judged], prediction.PRIORS[registry.RATIO], subsystems.LEAST_SESSIONS, shares[judged])
    if step is None or step.change > -prediction.LEAST_LOSS:
        return always
    since = number >= np.flatnonzero(judged)[step.begin]
    return min(always, step.chance / rate) if apart(logs[own & since], logs[rest & since]) <= NODES_RATE else always


def _splits(size: int, before: int = LASTING) -> np.ndarray:
    '''Where a series of so many values may have a step; empty if it is too short for one.'''
    return np.arange(max(1, before), size - LASTING + 1)


def _step(logs: np.ndarray, splits: np.ndarray, prior: Prior, shares: ArrayLike | None = None) -> Step:
    from scipy import special
    scores, shifts, freedom = _scores(logs, splits, prior, shares)
    worst = int(np.argmax(np.abs(scores)))
    scores = scores / _memory(logs, splits[worst])
    # Of a Student distribution the normal score: how scores next to each other depend on each other is known of these.
    normal = -special.ndtri(max(special.stdtr(freedom, -abs(scores[worst])), 1e-300))
    seen = np.cumsum(np.ones(logs.size) if shares is None else shares)
    return Step(int(splits[worst]), float(np.expm1(shifts[worst])), min(1.0, 2 * _exceeds(normal, seen[splits - 1] / seen[-1])))


def _scores(logs: np.ndarray, splits: np.ndarray, prior: Prior, shares: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray, float]:
    '''(Student's t, difference of the means) of each split, and the degrees of freedom.'''
    weights = np.ones(logs.size) if shares is None else np.asarray(shares, dtype=float)
    counts, sums, squares = np.cumsum([weights, weights * logs, weights * logs**2], axis=1)
    before, after = counts[splits - 1], counts[-1] - counts[splits - 1]
    first, second = sums[splits - 1] / before, (sums[-1] - sums[splits - 1]) / after
    within = np.maximum(0, squares[-1] - before * first**2 - after * second**2)
    freedom = prior[0] + logs.size - 2
    deviation = np.sqrt((prior[0] * prior[1]**2 + within) / freedom)
    error = np.maximum(deviation, prediction.LEAST_DEVIATION) * np.sqrt(1 / before + 1 / after)
    return (second - first) / error, second - first, freedom


def _memory(logs: np.ndarray, split: int) -> float:
    '''What the error of a mean is larger by, because a session is like the one before it; 1 if it is not.'''
    residuals = np.concatenate([part - part.mean() for part in (logs[:split], logs[split:])])
    total = np.sum(residuals**2)
    if not total:
        return 1.0
    lagged = np.sum(residuals[1:] * residuals[:-1]) / total
    known = min(MOST_MEMORY, max(0.0, lagged + (1 + 4 * lagged) / logs.size))       # Kendall, Biometrika 41 (1954) 403
    return float(np.sqrt((1 + known) / (1 - known)))


def _exceeds(height: float, seen: np.ndarray) -> float:
    '''The probability that the largest normal score of all splits exceeds a height (Siegmund, Sequential Analysis (1985), chapter 9).

    Between neighbours it falls off as that of a Brownian bridge; the last factor is that of splits which lie apart.

    :arg seen: of each split the share of the series that lies before it, ascending.
    '''
    from scipy import special
    rate = np.diff(seen) / (2 * seen * (1 - seen))[1:]
    density = np.exp(-height**2 / 2) / np.sqrt(2 * np.pi)
    between = height * density * rate * np.exp(-0.583 * height * np.sqrt(2 * rate))
    return float(min(0.5, special.ndtr(-height) + np.sum(between)))


def steps(values: ArrayLike, prior: Prior, rate: float) -> list[Step]:
    '''All steps of a series, in order of time.

    Levels are fitted to the whole series (optimal partitioning, Killick et al., J. Am. Stat. Assoc. 107 (2012) 1590), more than there
    are; then the step that is most probable by chance is taken back, until none is left that is.

    :arg rate: the probability that a step is found in a series without one.
    :returns: list of :class:`Step`; each change is that between the levels on its two sides.
    '''
    values = np.asarray(values, dtype=float)
    if values.size < 2 * LASTING:
        return []
    from ruptures import KernelCPD
    deviation, _ = prediction.moderated(*scatter(values), prior)
    penalty = deviation**2 * np.log(values.size)
    chances, cuts = [], [0, *KernelCPD(kernel='linear', min_size=LASTING).fit(np.log(values)).predict(pen=penalty)]
    while len(cuts) > 2:
        parts = [np.log(values[begin:end]) for begin, end in zip(cuts, cuts[2:])]
        chances = [_step(part, _splits(part.size), prior).chance if _lasts(part, cut - begin) else 1.0
                   for part, begin, cut in zip(parts, cuts, cuts[1:])]
        if max(chances) <= rate:
            break
        del cuts[1 + int(np.argmax(chances))]
    if len(cuts) > 2 and _is_back(np.log(values[cuts[-3]:]), cuts[-2] - cuts[-3], prior):
        del cuts[-2]
    levels = [float(np.mean(np.log(values[begin:end]))) for begin, end in itertools.pairwise(cuts)]
    return [Step(begin, float(np.expm1(after - before)), chance) for begin, before, after, chance in zip(cuts[1:-1], levels, levels[1:], chances)]


def sees(size: int, prior: Prior, rate: float) -> float | None:
    '''The smallest lasting loss that is found with a probability of 95 %, where a series of so many sessions divides best; None of
    a series that is too short.

    :arg prior: what is known of the scatter at the end, (degrees of freedom, relative standard deviation).
    '''
    from scipy import special
    splits = _splits(size, LASTING)
    if not splits.size:
        return None
    height = _height(size, rate)
    score = -special.stdtrit(prior[0], special.ndtr(-height))
    best = float(np.min(np.sqrt(1 / splits + 1 / (size - splits))))
    return float(-np.expm1(-(score - special.stdtrit(prior[0], prediction.MISSED)) * prior[1] * best))


@functools.cache
def _height(size: int, rate: float) -> float:
    '''The normal score that some split of a series of so many sessions exceeds at this rate, if nothing has changed.'''
    from scipy import optimize
    splits = _splits(size, LASTING)
    return optimize.brentq(lambda one: 2 * _exceeds(one, splits / size) - rate, 1.0, 12.0)
