'''How much of each cache is ours: where the latency of a pointer chase over growing sizes leaves the plateau of a level.

A virtual machine is told of a whole last-level cache and has a part of it, or as much as its neighbours leave; another hardware
thread of a core takes its share of L1 and L2.  What the topology claims of a level is therefore an upper bound, but for the last level
of a virtual machine, of which some hypervisors claim the same of all processors.  Each level is looked for below its claim (that
one, beyond it, too) and beyond that of the level below:

- Its plateau and the next are the two constants that fit what is measured there best (least squares, in logarithms), from the last
  level to the first; they are two if they are :data:`APART`, or without a hypervisor :data:`APART_ON_METAL`.  Behind one the latency
  of memory itself grows by a third and more with the size, since more and more page walks miss: it has a stretch as flat as a cache's
  within the claim.
- Its capacity is where the latency is half way to the next plateau, in logarithms.  A cache that forgets the line that was used the
  longest ago loses all at once when a cycle of loads outgrows it.  One that forgets a random line of C still has a share h of n
  lines, h = exp(-(1 - h) n / C), which is half way at about 1.3 C.

Where the levels do not hold each other's lines (non-inclusive), what is found of one includes the level below: it is the
size up to which data come from this level or a nearer one.
'''

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from plumbline.model import uncertainty

#: Two plateaus are two if their latencies are this factor apart: most levels of processors in use are by 2 and more, and memory of 1 GiB
#: took 1.34 times as long as of 60 MiB in a virtual machine whose host had small pages.
APART, APART_ON_METAL = 1.5, 1.25

#: Points of a plateau, at least.
_FEWEST = 2

#: A level's plateau begins beyond so many claims of the level below, and ends before so many of its own (a level below whose lines it
#: does not hold adds to it).  Where so much of a claim is not beyond the level below, the two are hardly apart.
_BEYOND, _BELOW = 1.4, 0.85

#: Without huge pages sizes beyond so many pages say nothing: the first TLB of processors in use has at least so many entries.
_FEWEST_TLB_ENTRIES = 16

#: Sizes of a grid: so many in each power of two, of caches beyond ``_LARGE`` bytes fewer.
_PER_OCTAVE, _PER_OCTAVE_LARGE, _LARGE = 3, 2, 64 * 2**20

#: Bytes that sizes reach at least, a factor of two apart beyond two claims: a cache of a virtual machine may be larger than its claim.
_REACH = 256 * 2**20

_LINE = 64


@dataclass(frozen=True)
class Level:
    '''What was found of the caches of one level.

    :attr claim: size of one of them by the topology, bytes.
    :attr samples: where the latency leaves the plateau, bytes, one of each round; empty if it is not told apart.
    :attr interval: (low, high), bytes: of the median over the rounds, and no narrower than the grid.
    :attr reason: why it is not told apart, or what else is to be said; empty if nothing is.
    :attr at_most: bytes that it does not exceed as far as is known: the claim, or where what lies beyond is reached already.
    '''
    claim: int
    samples: np.ndarray
    interval: tuple
    reason: str
    at_most: float

    @property
    def ours(self) -> int:
        '''Bytes that may be counted on: of each of these caches, never more than the claim.'''
        value = float(np.median(self.samples)) if self.samples.size else self.at_most
        return int(min(self.claim, value))

    @property
    def is_larger(self) -> bool:
        '''Whether more is there than the topology says.'''
        return self.samples.size > 0 and self.interval[0] > _BEYOND * self.claim

    @property
    def there(self) -> int:
        '''Bytes that are ours, or that may be there where these are more than the claim.'''
        return int(self.interval[1]) if self.is_larger else self.ours

    @property
    def least(self) -> float:
        '''Bytes that are certainly there: the start of the interval; of a level that is not told apart, what it cannot exceed.'''
        return self.interval[0] if self.samples.size else self.at_most

    @property
    def is_whole(self) -> bool:
        '''Whether all of the claim is ours, as far as the measurement tells.'''
        return self.ours >= self.claim or (self.samples.size > 0 and self.interval[1] >= self.claim)


def sizes(claims: Mapping[str, int], available: float | None = None) -> list[int]:
    '''Sizes to chase through: a geometric grid from half of the smallest cache to twice the largest, and a few up to :data:`_REACH`.

    :arg claims: level -> bytes, nearest first.
    :arg available: memory that may be used, bytes: the grid has all of its sizes at once and takes no more than a quarter.
    :returns: ascending list of bytes, whole lines.
    '''
    first, last = min(claims.values()), max(claims.values())
    size, grid = first / 4, []
    while size < 1.3 * last:
        grid.append(size)
        size *= 2 ** (1 / (_PER_OCTAVE if size < _LARGE else _PER_OCTAVE_LARGE))
    grid += [1.5 * last, 2 * last]
    while grid[-1] < _REACH:
        grid.append(2 * grid[-1])
    total = list(itertools.accumulate(grid))
    return [int(size) // _LINE * _LINE for size, so_far in zip(grid, total) if available is None or so_far <= available / 4]


def isotonic(y: ArrayLike) -> np.ndarray:
    '''The non-decreasing series nearest to y in the sense of least squares.'''
    from scipy import optimize  # here: importing it takes long, and few measure caches
    return np.asarray(optimize.isotonic_regression(y).x)


def curve(row: ArrayLike) -> np.ndarray:
    '''One round's latencies, shape (s,), each the median of it and its neighbours, as a series that does not fall, in logarithms.'''
    y = np.log(row)
    padded = np.concatenate([y[:1], y, y[-1:]])
    return isotonic(np.median(np.stack([padded[:-2], y, padded[2:]]), axis=0))


def crossing(x: np.ndarray, y: np.ndarray, threshold: float) -> float:
    '''Size at which a non-decreasing series reaches a threshold, between points in log size; infinite if it does not.'''
    above = np.flatnonzero(y >= threshold)
    if not above.size:
        return math.inf
    i = above[0]
    if i == 0:
        return float(x[0])
    part = (threshold - y[i - 1]) / (y[i] - y[i - 1])
    return float(x[i - 1] * (x[i] / x[i - 1]) ** part)


def _step(y: np.ndarray, first: int, last: int) -> int | None:
    '''Where a series is best taken for two plateaus, by least squares: the index of the second's first point; None if it is too short.

    :arg first, last: the least and the greatest index that it may be.
    '''
    def misfit(k: int) -> float:
        return float(np.var(y[:k]) * k + np.var(y[k:]) * (y.size - k))
    return min(range(max(first, _FEWEST), min(last, y.size - _FEWEST) + 1), key=misfit, default=None)


def _heights(y: np.ndarray, step: int | None) -> tuple[float, float]:
    return (float(np.median(y[:step])), float(np.median(y[step:]))) if step else (math.nan, math.nan)


def _plateaus(x: np.ndarray, y: np.ndarray, claims: Mapping[str, int], apart: float) -> dict[str, float | None]:
    '''Log latency of each level and of memory, None where it has none of its own.'''
    names, end = list(claims), x.size
    found: dict[str, float | None] = {}
    beyond = 'memory'
    for lower, level in reversed(list(zip([None, *names], names))):
        low = _BEYOND * claims[lower] if lower else 0
        if lower and low >= _BELOW * claims[level]:     # hardly larger than the level below, by the topology
            low = claims[lower]
        start = int(np.searchsorted(x, low, 'right'))
        high = x[-1] if end == x.size and x[-1] > 2 * claims[level] else _BEYOND * claims[level]
        part, last = y[start:end], int(np.searchsorted(x, high, 'right')) - start
        step = _step(part, 0, last)
        # The first may be the end of the level below, which loses its lines one by one; without a hypervisor memory has no further steps.
        while apart < APART and step and (further := _step(part[step:], 0, last - step)) and (
                np.diff(_heights(part[step:], further))[0] > math.log(apart)):
            step += further
        own, above = _heights(part, step)
        found[level] = None
        if above - own > math.log(apart):
            found[level] = own
            found.setdefault(beyond, above)
            beyond, end = level, start + (step or 0)
    found.setdefault('memory', float(np.median(y[x >= _BEYOND * claims[names[-1]]])))
    return found


def find(x: ArrayLike, latency: ArrayLike, claims: Mapping[str, int], page: int | None = None, virtual: str | None = None) -> dict[str, Level]:
    '''What is ours of each level.

    :arg x: sizes, ascending bytes, shape (s,).
    :arg latency: of a load, any unit, shape (r, s): r rounds.
    :arg claims: level -> bytes of one cache, nearest first, by the topology.
    :arg page: bytes, where huge pages were not given: a size beyond the TLB's reach is then no size of a cache.
    :arg virtual: whether a hypervisor is there, as machine records say it: ``yes``, ``no``; else it is not known.
    '''
    x, names = np.asarray(x, dtype=float), list(claims)
    if virtual != 'yes':
        x = x[x <= 2 * claims[names[-1]]]
    if not x.size or x[-1] < _BEYOND * claims[names[-1]]:
        return {level: _unknown(claims[level], f'no size beyond {_BEYOND:g} x {names[-1]} was measured') for level in names}
    rounds = np.array([curve(row) for row in np.asarray(latency, dtype=float)[:, :x.size]])
    typical = isotonic(np.median(rounds, axis=0))
    plateaus = _plateaus(x, typical, claims, APART_ON_METAL if virtual == 'no' else APART)
    found = {}
    for number, level in enumerate(names):
        beyond, above = next((name, height) for name in [*names[number + 1:], 'memory'] if (height := plateaus[name]) is not None)
        own = plateaus[level]
        if own is None and beyond == 'memory' and virtual == 'yes' and x[-1] < _REACH // _LINE * _LINE:
            found[level] = _unknown(claims[level], f'{level} cannot be told apart from memory, which may begin beyond all that was measured')
            continue
        if own is None:
            below = next((height for name in reversed(names[:number]) if (height := plateaus[name]) is not None), typical[0])
            edge = crossing(x, typical, (below + above) / 2)
            found[level] = Level(claims[level], np.array([]), (math.nan, math.nan),
                                 f'{level} cannot be told apart from {beyond}', min(edge, claims[level]))
            continue
        threshold = (own + above) / 2
        samples = np.array([crossing(x, row, threshold) for row in rounds])
        samples = np.minimum(samples, x[-1])
        found[level] = Level(claims[level], samples, _interval(x, typical, threshold, samples), '', float(claims[level]))
        if page and np.median(samples) > _FEWEST_TLB_ENTRIES * page:
            found[level] = _unknown(claims[level], "huge pages were not given: the end of a TLB's reach looks like that of a cache")
    return found


def _unknown(claim: int, reason: str) -> Level:
    return Level(claim, np.array([]), (math.nan, math.nan), reason, float(claim))


def _interval(x: np.ndarray, typical: np.ndarray, threshold: float, samples: np.ndarray) -> tuple[float, float]:
    '''Of the median over the rounds, and of the two sizes between which the latency rises.'''
    low, high = uncertainty.median_interval(samples)
    above = np.flatnonzero(typical >= threshold)
    i = int(above[0]) if above.size else x.size - 1
    ends = [low, high, x[max(i - 1, 0)], x[i]]
    return float(np.nanmin(ends)), float(np.nanmax(ends))
