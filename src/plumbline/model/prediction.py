'''What the next session of the same machine will measure: an expectation with its uncertainty, from the sessions before.

Values are taken on the scale of logarithms, so that a half and a double are equally far off.  The scatter of a handful of
sessions is hardly known; it is moderated by that of the metrics which scatter alike (Smyth, Stat. Appl. Genet. Mol. Biol. 3
(2004), article 3), and a Student distribution says how far off the next session may be.  How heavy its tails are is asked of the
sessions, too, for a neighbour who works for some minutes strikes one of them and not the next.
'''

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from plumbline.model import registry

#: Degrees of freedom and relative standard deviation of what is known of a scatter.
Prior = tuple[float, float]

#: What is known of the scatter between sessions before any is measured.  Values of 20 processes each, fifty minutes apart on one virtual
#: machine, differed by up to 8 % (ratios) and 16 % (rates).
PRIORS: dict[str, Prior] = {registry.RATIO: (3, 0.04), registry.ABSOLUTE: (3, 0.08), registry.COUNT: (1, 0.002),
                           registry.SHARE: (3, 0.02), registry.DIFFERENCE: (3, 0.16)}

#: Metrics of one session are measured on one machine and share its moods: however many scatter alike, they do not tell more of it.
MOST_FREEDOM = 10.0

#: Degrees of freedom that tails are looked for among, and how sure they are not heavier.  (Where nobody looked, a value as bad as one in
#: 10,000 came 33 to 70 times as often when sessions of a virtual machine were held against five others.)
_TAILS, _SURE = np.array([3.0, 4, 5, 6, 8, 10, 14, 20]), 0.95

#: Metrics of a subsystem count as so many in a session: they share its moods.
_ALIKE = 3

#: As few metrics say nothing of each other.
LEAST_METRICS = 8

#: Below this scatter two sessions are equal to what is printed of them.
LEAST_DEVIATION = 1e-4

#: Less than this is nothing that anybody would act on, even where it is certain; what would see only more than that sees nothing.
LEAST_LOSS, MOST_LOSS = 0.02, 0.9

#: Student's t of so many degrees of freedom is normal.
NORMAL = 1e6

#: What is seen with a probability of 95 % is missed with this one; and so is one of two, where each is missed with the second.
MISSED, OF_BOTH_MISSED = 0.05, 0.0253

#: The share of the variance of a measurement that a second one soon after may repeat: the most that was measured (docs/explanation/verdicts.rst).
REPEATED = 0.45


@dataclass(frozen=True)
class Prediction:
    '''What a new session's value will be, if nothing has changed.

    :attr middle: the value expected, in its unit; above 0.
    :attr deviation: relative standard deviation of a new session's value, with what is not known of :attr:`middle`.
    :attr freedom: degrees of freedom of it.
    '''
    middle: float
    deviation: float
    freedom: float

    def distance(self, rate: float) -> float:
        '''How far on one side a new value is with this probability at most, on the scale of logarithms.'''
        from scipy import special
        return float(-special.stdtrit(self.freedom, rate) * self.deviation)

    def chance(self, value: float, better: int) -> float:
        '''The probability that a new value is as bad as this one, or worse: a number in (0, 1].

        :arg better: :data:`registry.MORE`, ``LESS``, or ``NEITHER``: then to either side.
        '''
        from scipy import special  # scipy.stats says the same a hundred times slower
        far = np.log(value / self.middle) / self.deviation
        if better == registry.NEITHER:
            return float(2 * special.stdtr(self.freedom, -abs(far)))
        return float(special.stdtr(self.freedom, better * far))

    def sees(self, rate: float, rises: bool = False, missed: float = MISSED) -> float:
        '''The smallest loss that is told from nothing with a probability of 95 %, at this rate of false alarms.

        :arg missed: :data:`OF_BOTH_MISSED` where two sessions must tell it.
        :returns: a fraction of the value: 0.3 is a fall (or a rise) by 30 %.
        '''
        far = self.distance(rate) + self.distance(missed)
        return float(np.expm1(far) if rises else -np.expm1(-far))


def variance(values: ArrayLike) -> tuple[float, float]:
    '''(variance of the logarithms, degrees of freedom) of one metric's sessions; (0, 0) of a single one.

    :arg values: shape (n,), above 0.
    '''
    logs = np.log(np.asarray(values, dtype=float))
    return (float(np.var(logs, ddof=1)), logs.size - 1) if logs.size > 1 else (0.0, 0)


def scattering(variances: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    '''Those of some (variance, degrees of freedom) that are above nothing; all, where none is.

    A score that never varies, as that of the topology, says nothing of others, and so far from them it would let none of them say anything.
    '''
    known = list(variances)
    return [one for one in known if one[0] > LEAST_DEVIATION**2] or known


def learnt(variances: Iterable[tuple[float, float]], default: Prior) -> Prior:
    '''What metrics that scatter alike say of each other's scatter: (degrees of freedom, relative standard deviation).

    The moments of the logarithms of the variances, as Smyth has them (section 6.2).

    :arg variances: list of (variance, degrees of freedom), one of each metric.
    :arg default: what is taken where they are too few, a value of :data:`PRIORS`.
    '''
    from scipy import special
    known = [(max(found, LEAST_DEVIATION**2), freedom) for found, freedom in variances if freedom > 0]
    if len(known) < LEAST_METRICS:
        return default
    found, freedom = np.array(known, dtype=float).T
    half = freedom / 2
    logs = np.log(found) - special.digamma(half) + np.log(half)
    left = np.var(logs, ddof=1) - np.mean(special.polygamma(1, half))
    prior = min(MOST_FREEDOM, 2 * _trigamma_inverse(left)) if left > 0 else MOST_FREEDOM
    return prior, float(np.exp((np.mean(logs) + special.digamma(prior / 2) - np.log(prior / 2)) / 2))


def priors(scatters: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, Prior]:
    '''What is known of the scatter of each class: by its metrics, where these are too few by all of their kind.

    :arg scatters: dictionary :func:`registry.noise_class` -> list of (variance, degrees of freedom).
    '''
    of_kind: dict[str, list[tuple[float, float]]] = {}
    for noise, found in scatters.items():
        of_kind.setdefault(registry.kind_of(noise), []).extend(found)
    broad = {kind: learnt(found, PRIORS[kind]) for kind, found in of_kind.items()}
    return {noise: learnt(found, broad[registry.kind_of(noise)]) for noise, found in scatters.items()}


def _trigamma_inverse(y: float) -> float:
    '''x > 0 with trigamma(x) = y (Newton's method; Smyth, appendix).'''
    from scipy import special
    x = 0.5 + 1 / y
    for _ in range(50):
        value = special.polygamma(1, x)
        step = value * (1 - value / y) / special.polygamma(2, x)
        x += step
        if -step / x < 1e-8:
            break
    return float(x)


def moderated(found: float, freedom: float, prior: Prior) -> tuple[float, float]:
    '''(relative standard deviation, degrees of freedom) of a variance and what is known beside it.'''
    total = prior[0] + freedom
    return max(LEAST_DEVIATION, float(np.sqrt((prior[0] * prior[1]**2 + freedom * found) / total))), total


def tails(metrics: Iterable[tuple[Mapping[str, float], Prior, Hashable]]) -> float:
    '''Degrees of freedom by which sessions are as far off as they are, from each of them held against the others: few where a neighbour
    disturbs one now and then.

    :arg metrics: (session -> value, prior, what shares a session's moods) of each.
    :returns: one of a few numbers from 3 on, the least that is not improbable.
    '''
    from scipy import special
    found, moods = [], []
    for values, prior, alike in metrics:
        logs = np.log(np.array(list(values.values()), dtype=float))
        rest = logs.size - 1
        if rest < 2:
            continue
        others = (logs.sum() - logs) / rest
        squares = np.sum((logs - logs.mean())**2) - (logs - others)**2 * rest / (rest + 1)
        variances = (prior[0] * prior[1]**2 + np.maximum(squares, 0.0)) / (prior[0] + rest - 1)
        far = (logs - others) / np.sqrt(np.maximum(variances, LEAST_DEVIATION**2) * (1 + 1 / rest))
        found += [(one, prior[0] + rest - 1) for one in far]
        moods += [(session, alike) for session in values]
    if not found:
        return float(_TAILS[0])
    far, freedom = np.array(found).T
    counts = Counter(moods)
    weights = np.array([min(1.0, _ALIKE / counts[mood]) for mood in moods])
    freedom = np.minimum(freedom, _TAILS[:, np.newaxis])
    likely = (special.gammaln((freedom + 1) / 2) - special.gammaln(freedom / 2) - np.log(freedom) / 2
              - (freedom + 1) / 2 * np.log1p(far**2 / freedom)) @ weights
    shares = np.exp(likely - likely.max())
    return float(_TAILS[np.searchsorted(np.cumsum(shares / shares.sum()), 1 - _SURE)])


def predict(values: ArrayLike, prior: Prior, heaviest: float = np.inf) -> Prediction:
    '''The :class:`Prediction` of a metric's next session.

    :arg values: what the sessions measured, shape (n,), n >= 1, above 0.
    :arg prior: (degrees of freedom, relative standard deviation), from :func:`learnt` or of :data:`PRIORS`.
    :arg heaviest: :func:`tails`.
    '''
    logs = np.log(np.asarray(values, dtype=float))
    return expected(float(np.exp(np.mean(logs))), variance(values), logs.size, prior, heaviest)


def expected(middle: float, scatter: tuple[float, float], sessions: int, prior: Prior, heaviest: float) -> Prediction:
    '''The same from the mean of so many sessions and their :func:`variance`.'''
    deviation, freedom = moderated(*scatter, prior)
    return Prediction(middle, deviation * float(np.sqrt(1 + 1 / sessions)), min(freedom, heaviest))
