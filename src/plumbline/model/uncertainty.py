'''Statistics of samples: median, its interval, and the spread.  Pure functions on arrays.

Samples of a shared machine are skewed, have outliers and drift, so nothing here assumes a normal distribution and nothing takes a mean.
'''

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plumbline.model import registry
from plumbline.model.grouping import by_key
from plumbline.model.prediction import Prior, learnt

#: IQR x this is the standard deviation if the samples are normal: 1 / (2 x 0.67449).
IQR_TO_SIGMA = 0.7413

#: The median absolute deviation x this is, too: 1 / 0.67449.
MAD_TO_SIGMA = 1.4826

#: Of so many processes one is trimmed from either end.
_TRIMMED = 5

#: The half width of an interval of 95 % is so many standard errors.
HALF_WIDTH = 1.96

#: Standard error of the median x sqrt(n) over that standard deviation: sqrt(pi / 2).
MEDIAN_ERROR = 1.2533

#: The autocorrelation is cut here: beyond, a handful of samples cannot tell it from a trend.
MAX_AUTOCORRELATION = 0.95


#: What is known of the noise between processes before any is measured: degrees of freedom, relative standard deviation; worth as
#: much as four processes.  Class of noise (:mod:`plumbline.model.registry`) -> both.  Medians of 20 processes of the triad on a
#: virtual machine scattered by 3 to 8 % (ratios) and 9 to 20 % (rates; 4 to 9 % within a state of the machine), on metal by 1 to 2 %.
PRIORS = {registry.RATIO: (3, 0.03), registry.ABSOLUTE: (3, 0.05), registry.COUNT: (0, 0.0), registry.SHARE: (3, 0.005),
          registry.DIFFERENCE: (3, 0.1)}


@dataclass(frozen=True)
class Summary:
    '''What the samples of one metric say.

    :attr value: median, in the unit of the samples, of several processes see :func:`process_interval`; NaN without samples.
    :attr n: number of samples.
    :attr spread: robust relative spread of the samples, see :func:`spread`; of several processes see :func:`spread_between`.
    :attr interval: interval of the value, see :func:`median_interval`, or :func:`process_interval` of several processes.
    '''
    value: float
    n: int
    spread: float
    interval: tuple[float, float]


def error(interval: Sequence[float] | None) -> float:
    '''Relative standard error of a positive value, on the scale of logarithms; 0 where its interval does not say.

    :arg interval: (low, high), or None.
    '''
    low, high = interval or (0.0, 0.0)
    return math.log(high / low) / 2 / HALF_WIDTH if low and 0 < low <= high < math.inf else 0.0


def spread(x: ArrayLike) -> float:
    '''Robust relative spread: ``0.7413 x IQR / |median|``.

    The quartiles are interpolated linearly.  For a normal distribution this is the coefficient of variation.

    :arg x: samples, shape (n,), any unit.
    :returns: a fraction >= 0; 0 if all samples are equal (one sample too), infinite if the median
        is 0 and the samples differ, NaN without samples or if one of them is NaN.
    '''
    x = np.asarray(x, dtype=float)
    if x.size == 0:
        return float('nan')
    if np.all(x == x[0]):
        return 0.0
    low, median, high = np.percentile(x, [25, 50, 75])
    width = IQR_TO_SIGMA * (high - low)
    if median == 0:
        return float('inf') if width > 0 else 0.0
    return float(width / abs(median))


def spread_between(medians: Sequence[float]) -> float:
    '''What processes differ by: relative standard deviation of the median of each, since three have no quartiles.

    :returns: as of :func:`spread`.
    '''
    deviation, middle = (float(np.std(medians, ddof=1)) if len(medians) > 1 else 0.0), abs(float(np.median(medians)))
    return deviation / middle if middle else math.inf if deviation else 0.0


def mad_freedom(n: float) -> float:
    '''Degrees of freedom of the variance of n normal values by their median absolute deviation.

    From the variance of its logarithm in 100 000 draws, n = 3 to 127, where they are 0.31 to 0.45 n.
    '''
    return 0.36 * n


def autocorrelation(x: ArrayLike) -> float:
    '''Lag-1 autocorrelation of the ranks of a series, cut to 0 .. 0.95.

    Ranks instead of values: one outlier of ten times the median would hide any drift, and the interval of a median depends on the order of the
    samples alone.  A negative correlation would narrow the interval; that gain is not taken.

    :arg x: samples in the order of measuring, shape (n,).
    :returns: a number in 0 .. 0.95; 0 for fewer than 3 samples and for equal ones.
    '''
    x = np.asarray(x, dtype=float)
    if x.size < 3:
        return 0.0
    _, place, equal = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(equal) - (equal - 1) / 2)[place] - (x.size + 1) / 2     # equal values share the mean of theirs
    total = np.dot(ranks, ranks)
    if total == 0:
        return 0.0
    return float(np.clip(np.dot(ranks[:-1], ranks[1:]) / total, 0.0, MAX_AUTOCORRELATION))


def effective_size(x: ArrayLike) -> float:
    '''How many independent samples a drifting series is worth: ``n (1 - r) / (1 + r)``.

    With ``r`` from :func:`autocorrelation`.  Source: the variance of the mean of an AR(1) series, e.g. Bayley and Hammersley, J. R. Statist. Soc.
    (Suppl.) 8 (1946) 184.  For a median it errs on the safe side: the signs of a series are less correlated than its values.

    :returns: a real number in (0, n].
    '''
    x = np.asarray(x)
    r = autocorrelation(x)
    return x.size * (1 - r) / (1 + r)


def _rank(n: int) -> int:
    '''The largest rank ``k`` whose interval x(k) .. x(n+1-k) covers with 95 %; 0 if none.'''
    from scipy import special  # not scipy.stats: importing that takes longer than ReFrame's own start
    return int(np.searchsorted(special.bdtr(np.arange(n), n, 0.5), (1 - 0.95) / 2, side='right'))


def median_interval(x: ArrayLike) -> tuple[float, float]:
    '''Distribution-free 95 % interval of the median, from order statistics.

    The interval ``x(k) .. x(n+1-k)`` of n independent samples covers the median with probability ``1 - 2 P(B <= k - 1)``, B binomial (n, 1/2),
    whatever their distribution; k is the largest rank for which that is at least 95 %.  Source: David and Nagaraja, Order Statistics, 3rd ed.,
    section 7.1.

    Samples of one process drift together and are worth less than they number.  So k is computed for ``m`` samples, the integer part of
    :func:`effective_size`, and the same quantile ``k / (m + 1)`` is taken from the n samples that there are.  Simulated coverage for an AR(1) series
    with coefficient 0 / 0.5 / 0.8: 24 samples 99 / 96 / 90 %, 50 samples 97 / 97 / 94 %; of 12 samples it is 98 / 93 / 83 %, because so few
    underestimate their own correlation.

    With fewer than 6 effective samples no two of them reach 95 %: the interval is then ``(min, max)``, which covers with less (5 samples: 94 %,
    3: 75 %, 1: 0).

    :arg x: samples in the order of measuring, shape (n,).
    :returns: (low, high) in the unit of ``x``; NaN twice without samples or if one is not finite.
    '''
    x = np.asarray(x, dtype=float)
    n = x.size
    if not n or not np.isfinite(x).all():
        return (float('nan'), float('nan'))
    m = int(effective_size(x) + 1e-9)
    k = _rank(m)
    rank = max(1, int(k / (m + 1) * (n + 1) + 1e-9))
    ordered = np.sort(x)
    return (float(ordered[rank - 1]), float(ordered[n - rank]))


def process_interval(values: ArrayLike, prior: tuple[float, float] = PRIORS[registry.RATIO]) -> tuple[float, tuple[float, float]]:
    '''Value of a metric, and its 95 % interval, from what each process measured.

    Mean and variance are robust from five processes on: a fifth of the values is trimmed from either end, and winsorised for the
    variance (Yuen, Biometrika 61 (1974) 165).  The variance of so few is hardly known; it is moderated by what is known of such
    values anyway, ``(d0 s0^2 + d s^2) / (d0 + d)`` with as many degrees of freedom (Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004),
    article 3).  Where all are above 0 the scale is that of logarithms.

    :arg values: shape (n,), n >= 1: the median of each process.
    :arg prior: (d0, s0), s0 relative to the value.
    :returns: (value, (low, high)).
    '''
    values = np.sort(np.asarray(values, dtype=float))
    logarithmic, base = bool((values > 0).all()), values[values.size // 2]
    scaled = np.log(values / base) if logarithmic else values - base        # of equal ones exactly 0: so a count may have bounds of 0
    trimmed = scaled.size // _TRIMMED
    kept = scaled[trimmed:scaled.size - trimmed]
    middle = float(np.mean(kept))
    squares = float(np.sum((np.clip(scaled, kept[0], kept[-1]) - np.mean(np.clip(scaled, kept[0], kept[-1])))**2))
    value = float(base * np.exp(middle) if logarithmic else base + middle)
    half = _half_width(squares, kept.size, (prior[0], prior[1] * (1 if logarithmic else abs(value))))
    ends = np.array([-half, half])
    low, high = (value * np.exp(ends) if logarithmic else value + ends).tolist()
    return value, (low, high)


def _half_width(squares: Any, count: Any, prior: tuple[Any, Any]) -> Any:
    from scipy import special
    freedom, deviation = prior
    known = freedom + count - 1
    return special.stdtrit(known, 0.975) * np.sqrt((freedom * deviation**2 + squares) / known / count)


def noise_of_processes(known: Iterable[tuple[str, float, int]]) -> dict[str, Prior]:
    '''What is known of the noise between processes of each class (:func:`registry.noise_class`), from the runs of many metrics or on many nodes;
    of few what :data:`PRIORS` has.

    :arg known: (class, :func:`spread_between`, processes) of each run of several processes.
    '''
    of_class = by_key((noise, (spread**2, count - 1)) for noise, spread, count in known)
    return {noise: learnt(its, PRIORS[registry.kind_of(noise)]) for noise, its in of_class.items()}


def error_between(spread: ArrayLike, processes: ArrayLike, prior: tuple[ArrayLike, ArrayLike]) -> np.ndarray:
    '''Relative standard errors of values by what their processes differ by, as :func:`process_interval` would have them with another prior.

    :arg spread: of each :func:`spread_between`; :arg processes: how many it had, at least two.
    '''
    kept = np.asarray(processes) - 2 * (np.asarray(processes) // _TRIMMED)
    return _half_width((kept - 1) * np.square(np.asarray(spread)), kept, (np.asarray(prior[0]), np.asarray(prior[1]))) / HALF_WIDTH


def summary(x: ArrayLike, processes: Sequence[int] | None = None, noise: str = registry.RATIO, usual: float | None = None) -> Summary:
    '''Value, number, spread and interval of samples in the order of measuring.

    A single number says nothing of its own noise, which is not none: it has the interval of what is known of such numbers anyway.

    :arg processes: how many of the samples each process took; :obj:`None`: one took all.
    :arg noise: class of noise, a key of :data:`PRIORS`.
    :arg usual: what processes differ by (:func:`spread_between`), where earlier sessions tell; that takes the place of what is known of the class.
    :returns: :class:`Summary`; without samples value, spread and interval are NaN.
    '''
    x = np.asarray(x, dtype=float)
    several = processes if processes is not None and len(processes) > 1 else None
    if np.isfinite(x).all() and (several is not None or (x.size == 1 and noise != registry.COUNT)):
        parts = [x] if several is None else np.split(x, np.cumsum(several)[:-1])
        medians = [np.median(part) for part in parts]
        freedom, deviation = PRIORS[noise]
        value, interval = process_interval(medians, (freedom, deviation if usual is None or several is None else usual))
        return Summary(value, int(x.size), spread_between(medians), interval)
    value = float(np.median(x)) if x.size else float('nan')
    return Summary(value, int(x.size), spread(x), median_interval(x))


def between(level: float, x: Sequence[float], y: Sequence[float]) -> float:
    '''Where a curve passes a level between two points, on the straight line in the logarithms.

    :arg x: two numbers above 0; :arg y: the curve there, rising, above 0.
    :returns: x at which y is ``level``.
    '''
    return float(np.exp(np.interp(np.log(level), np.log(y), np.log(x))))


def knee(x: ArrayLike, y: ArrayLike, share: float) -> float | None:
    '''Where a curve has fallen for good: the first ``x`` beyond its maximum from which on ``y`` stays below ``share`` of it.

    :arg x: ascending, shape (n,); :arg y: shape (n,).
    :returns: an element of ``x``; :obj:`None` if the last ``y`` is not below.
    '''
    x, y = np.asarray(x), np.asarray(y, dtype=float)
    above = np.flatnonzero(~(y < share * y.max()))[-1]
    return x[above + 1].item() if above + 1 < x.size else None


def of_fellows(rates: np.ndarray, cpus: Sequence[int], kinds: Sequence[Sequence[int]], least: int = 2) -> np.ndarray:
    '''Rates of cores, along the last axis, over the median of the others of their kind; NaN of those of a kind with fewer than ``least``.

    :arg cpus: of each core; :arg kinds: CPUs of each kind of cores, where they differ by design.
    '''
    kind_of = np.array([next((number for number, kind in enumerate(kinds) if cpu in kind), -1) for cpu in cpus])
    shares = np.full(rates.shape, np.nan)
    for same in (kind_of == kind for kind in set(kind_of.tolist())):
        if np.count_nonzero(same) >= least:
            shares[..., same] = rates[..., same] / np.apply_along_axis(median_of_others, -1, rates[..., same])
    return shares


def median_of_others(x: ArrayLike) -> np.ndarray:
    '''For each value the median of all others; shape (n,), n not 1.'''
    x = np.asarray(x, dtype=float)
    ordered, position = np.sort(x), np.empty(x.size, dtype=int)
    position[np.argsort(x, kind='stable')] = np.arange(x.size)

    def of_others(k: int) -> np.ndarray:
        return ordered[np.where(k < position, k, k + 1)]

    return (of_others((x.size - 2) // 2) + of_others((x.size - 1) // 2)) / 2
