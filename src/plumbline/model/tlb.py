'''What the translation lookaside buffers (TLBs) hold, from the times of pointer chases: pure functions.

The probe (``src/kernels/chase``) visits n nodes in a random cycle, once packed line after line (``dense``) and once one
``stride`` apart (``strided``), interleaved.  Both keep n lines in the caches, so what ``strided`` takes longer is the
address translation's.  Over n that extra time is a staircase: nothing while the first-level TLB holds all translations,
then the time of a second-level hit, then that of a page walk.  The number of nodes at which a step begins is

- the number of *entries* of that level, if each node has a translation of its own (stride >= page in force);
- entries x page in force / stride, if several nodes share one.

So the stride from which on the number stays the same is the page size in force, whatever the operating system was asked
for: contiguous pages may be held as one, and nested paging of a virtual machine may split large pages.

Source: Saavedra and Smith, IEEE Trans. Computers 44 (1995) 1223, section 5; a random order instead of their sequential one, which prefetchers follow.
'''

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.model import metrics, quantity

#: Pages are huge if this share of the memory lies in huge ones.
GIVEN = 0.9

#: Smaller data than a huge page get a whole one of up to so many bytes (src/harness/pages.c).  With base pages of 64 KiB, as 64-bit Arm
#: may have them, a huge one has 512 MiB.
MOST_SPARE = 2**25

#: The steps that have a name, in their order.
LEVELS = ('L1', 'L2')

#: A step is at least this high: ln(1 + extra / load), 28 % of a first-level load, about one cycle.
LEAST_RISE = 0.25

#: ... and this many times the scatter of the points beside it.
RISE_OVER_SCATTER = 3

#: A step must shorten the distance of the points from the staircase by this (in ln x octaves).
WORTH_A_STEP = 0.5

#: Octaves of n that the first, an inner and the last tread span at least.  Second-level TLBs have four times the entries
#: of the first level and more; without the gradual rise between two treads would be a tread of its own.
TREADS = (1.0, 2.0, 0.5)

#: Points of a tread, at least.
LEAST_POINTS = 3

#: This many more nodes than entries: they share translations.
SHARED = 1.5

#: Share of a tread that may lie beyond the middle of the step beside it: more is noise, or no step.
MOST_ASTRAY = 0.1


def given(share: float | None) -> bool:
    '''Whether huge pages were given, by their share of the memory; None: nobody knows.'''
    return share is not None and share >= GIVEN


def larger_than(record: Mapping[str, Any], machine: Mapping[str, Any]) -> int | None:
    '''The size of this kernel's huge pages where the data of a record are smaller than one, and too small to be given a whole one.'''
    size = machine.get('huge_page_size', 0)
    return size if size > MOST_SPARE and record['working_set'] < size else None


def why_not_given(share: float | None, larger: int | None = None) -> dict[str, str]:
    '''Why nothing is said of huge pages: ``reason``, and ``symptom`` where it is that they were not given.

    :arg share: of the memory that lies in some; None where the kernel shows no pages, or hides them while it balances NUMA domains.
    :arg larger: what :func:`larger_than` found.
    '''
    if larger:
        return {'reason': f'the data are smaller than a huge page of this kernel, {quantity.size(larger)}'}
    if share is None:
        return {'reason': 'whether the pages are huge is not known here'}
    return {'reason': f'huge pages were asked for, and not given: {share:.2f} of the memory lies in some', 'symptom': 'no_huge_pages'}


@dataclass(frozen=True)
class Curve:
    '''Extra time over the number of nodes at one stride.

    :attr nodes: shape (n,), ascending.
    :attr extra: shape (n, rounds): time of a load with nodes a stride apart less that with as many packed lines, ns.
    :attr load: time of a first-level load, ns.
    :attr strided: shape (n, rounds): time of a load with nodes a stride apart, ns.
    '''
    nodes: np.ndarray
    extra: np.ndarray
    load: float
    strided: np.ndarray


@dataclass(frozen=True)
class Step:
    '''One level of TLB at one stride.

    :attr entries: the most nodes, of those measured, whose translations it holds.
    :attr samples: extra time of a load that misses it, ns, per round, just beyond its entries: shape (rounds,).
    '''
    entries: int
    samples: np.ndarray


def nanoseconds(record: dict) -> np.ndarray:
    '''Time of one load of a chase, per sample: shape (n,), ns.'''
    return np.asarray(record['seconds']) / (record['bytes'] / 8) * 1e9


def curves(measurements: Iterable[dict]) -> dict[int, Curve]:
    '''Stride -> :class:`Curve`, of a run of the program ``chase`` with both layouts.

    :raises PlumblineError: if a layout is missing in a group.
    '''
    points: dict[int, list[tuple]] = {}
    for group in metrics.groups(measurements):
        pair = {record['variant']: record for record in group}
        if set(pair) != {'dense', 'strided'}:
            raise PlumblineError('a probe of the TLB needs dense and strided in one group, not '
                                 f"{', '.join(sorted(pair))}: run chase with --variants all")
        dense, strided = (nanoseconds(pair[variant]) for variant in ('dense', 'strided'))
        points.setdefault(pair['strided']['options']['stride'], []).append(
            (pair['strided']['size'], strided - dense, float(np.median(dense)), strided))
    result = {}
    for stride, found_there in sorted(points.items()):
        found_there.sort(key=lambda point: point[0])
        nodes, extra, load, apart = zip(*found_there)
        result[stride] = Curve(np.array(nodes), np.array(extra), min(load), np.array(apart))
    return result


def sizes(most: int) -> list[int]:
    '''Numbers of nodes to measure: eight in an octave up to 512, four above, so that the usual numbers of entries
    (2^k, 1.25, 1.5, 1.75 x 2^k) are among them.

    :returns: ascending list from 4 to at most ``most``: the first level of some processors has 16 entries (A64FX), and its tread an octave.
    '''
    result = set()
    octave = 4
    while octave <= most:
        parts = 8 if octave < 512 else 4
        result |= {octave + octave * k // parts for k in range(parts)}
        octave *= 2
    return sorted(n for n in result if n <= most)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return values[order][np.searchsorted(total, total[-1] / 2)]


class _Tread:
    '''A level stretch through some points: its height, their distance from it in all, and their median distance.'''

    def __init__(self, y: np.ndarray, weights: np.ndarray) -> None:
        self.y, self.weights = y, weights
        self.height = _weighted_median(y, weights)
        away = np.abs(y - self.height)
        self.misfit, self.scatter = float(np.dot(away, weights)), float(_weighted_median(away, weights))


class _Staircases:
    '''Staircases through the same points.'''

    def __init__(self, nodes: np.ndarray, y: np.ndarray) -> None:
        # The width of each point on the axis of octaves.
        self.octaves, self.y, self.weights = np.log2(nodes), y, np.gradient(np.log2(nodes))
        self.known: dict[tuple[int, int], _Tread] = {}

    def tread(self, i: int, j: int) -> _Tread:
        '''The tread through points i .. j - 1.'''
        if (i, j) not in self.known:
            self.known[i, j] = _Tread(self.y[i:j], self.weights[i:j])
        return self.known[i, j]

    def misfit(self, cuts: Sequence[int]) -> float:
        '''Misfit of the staircase with steps before the points ``cuts``; infinite if it is none.'''
        ends = [0, *cuts, len(self.y)]
        shortest = [TREADS[0], *[TREADS[1]] * (len(cuts) - 1), TREADS[2]] if cuts else [0]
        below, misfit = None, 0.0
        for i, j, least in zip(ends, ends[1:], shortest):
            if j - i < LEAST_POINTS or self.octaves[j - 1] - self.octaves[i] < least - 1e-9:
                return math.inf
            tread = self.tread(i, j)
            if below and not self.is_step(below, tread):
                return math.inf
            below, misfit = tread, misfit + tread.misfit
        return misfit

    @staticmethod
    def is_step(below: _Tread, above: _Tread) -> bool:
        rise, middle = above.height - below.height, (above.height + below.height) / 2
        astray = [np.dot(wrong, tread.weights) / tread.weights.sum() for tread, wrong in ((below, below.y > middle), (above, above.y < middle))]
        least = max(LEAST_RISE, RISE_OVER_SCATTER * max(below.scatter, above.scatter))
        return rise >= least and max(astray) <= MOST_ASTRAY


def _height(curve: Curve) -> np.ndarray:
    '''y of :func:`steps`: shape (n,).

    Of the rounds the lower quartile: what shares the TLB for a while (the other hardware thread of the core, a hypervisor)
    takes entries, and never adds any.
    '''
    return np.log1p(np.maximum(np.quantile(curve.extra, 0.25, axis=1), 0) / curve.load)


def steps(curve: Curve) -> list[Step]:
    '''The levels of TLB that a curve shows.

    With y = ln(1 + extra / load), the staircase of at most two steps is sought that minimises the sum of the points' distances (weighted by their
    width in octaves of n, so that no part of the axis counts more) plus :data:`WORTH_A_STEP` for each step.  Absolute distances leave outliers
    without weight, and put a gradual rise's step where y is half-way, as it is if replacement is not strictly the least recently used.  In the
    logarithm a walk of 30 ns does not outweigh a second-level hit of 2 ns.  What is not a rise by :data:`LEAST_RISE` and by :data:`RISE_OVER_SCATTER`
    times the scatter, or is crossed by more than :data:`MOST_ASTRAY`, is no step.

    :returns: list of up to two :class:`Step`, the first level first.
    '''
    if len(curve.nodes) < 2 * LEAST_POINTS:
        return []
    y = _height(curve)
    staircases, n = _Staircases(curve.nodes, y), len(y)
    candidates = [(), *((i,) for i in range(1, n)), *((i, j) for i in range(1, n) for j in range(i + 1, n))]
    best = min(candidates, key=lambda cuts: staircases.misfit(cuts) + WORTH_A_STEP * len(cuts))
    ends = [0, *best, n]
    found_there = []
    for begin, cut, end in zip(ends, ends[1:], ends[2:]):
        onset = _onset(curve.nodes, y, begin, cut, end)
        octave = slice(onset, min(_octave_end(curve.nodes, onset), end))
        found_there.append(Step(int(curve.nodes[onset - 1]), np.median(curve.extra[octave], axis=0)))
    return found_there


def _octave_end(nodes: np.ndarray, first: int) -> int:
    '''The index behind the points from ``first`` to twice its number of nodes.'''
    return max(first + LEAST_POINTS, int(np.searchsorted(nodes, 2 * nodes[first], side='right')))


def _onset(nodes: np.ndarray, y: np.ndarray, begin: int, cut: int, end: int) -> int:
    '''Where a step begins that may go on to rise: walks take the longer the less of the page table is in the caches.

    The upper tread is taken as high as it is in the first octave; the step is put where the distances from the two treads are least.
    '''
    low, high = np.median(y[begin:cut]), np.median(y[cut:min(_octave_end(nodes, cut), end)])
    away_low, away_high = np.abs(y[begin:end] - low), np.abs(y[begin:end] - high)
    misfits = [away_low[:i].sum() + away_high[i:].sum() for i in range(1, end - begin)]
    return begin + 1 + int(np.argmin(misfits))


def first_level(curve: Curve) -> float | None:
    '''How many nodes the first level's translations suffice for.

    :returns: the entries of the first step; infinity where there is none because all nodes fit; :obj:`None` where it cannot be told.
    '''
    found_there = steps(curve)
    if found_there:
        return found_there[0].entries
    most = curve.nodes >= curve.nodes[-1] / 2
    return math.inf if np.median(_height(curve)[most]) < LEAST_RISE else None


def page_in_force(curves_by_stride: Mapping[int, Curve]) -> tuple[int | None, str | None]:
    '''The page size that translations cover, from the first level's steps at several strides.

    :returns: (bytes, reason): a power of two and :obj:`None`, or :obj:`None` and why it is not known.
    '''
    nodes = {stride: first_level(curve) for stride, curve in curves_by_stride.items()}
    widest, covered = max(nodes), 0.0
    own = nodes[widest]
    for stride in sorted(nodes):
        here = nodes[stride]
        if here is None or own is None or own == math.inf:
            return None, f'no step of the first level at a stride of {stride if here is None else widest} bytes'
        if here == math.inf:
            covered = stride * int(curves_by_stride[stride].nodes[-1]) / own
        elif here < SHARED * own and 0 < covered < stride / 2:
            return None, f'one translation covers between {covered:.0f} and {stride} bytes: other strides would tell'
        else:
            page = 2**round(math.log2(stride * max(1.0, here / own)))
            return (page, None) if page <= widest else (None, f'the steps at strides of {stride} and {widest} bytes contradict each other')
    raise AssertionError('the widest stride tells')


def found(measured: Mapping[int, Curve]) -> tuple[dict[str, Any], dict[str, list[Step]]]:
    '''What a run shows of one page size.

    ``in_force`` (bytes that one translation covers, or None with ``in_force_reason``); ``levels``: for ``L1`` and ``L2`` either None, with
    the reason in ``reasons``, or ``entries`` and ``reach`` (bytes: entries x in force, or None).

    Every stride at which each node has a translation of its own tells the entries; the median of them counts.

    :arg measured: what :func:`curves` gave; the widest stride is the page or more.
    :returns: (document, dictionary level -> list of :class:`Step`, one for each stride that shows it).
    '''
    in_force, reason = page_in_force(measured)
    document: dict[str, Any] = {'in_force': in_force, 'in_force_reason': reason, 'levels': {}, 'reasons': {}}
    own = [curve for stride, curve in measured.items() if stride >= (in_force or max(measured))]
    seen = [steps(curve) for curve in own]
    levels = {}
    for number, level in enumerate(LEVELS):
        levels[level] = sorted((s[number] for s in seen if len(s) > number), key=lambda step: step.entries)
        document['levels'][level] = None
        # Noise may hide a level at one stride; at most of them, it is not known.
        if 2 * len(levels[level]) <= len(own):
            document['reasons'][level] = (
                f'{len(own) - len(levels[level])} of {len(own)} strides show no step that stands out of the noise, with '
                f'up to {max(curve.nodes[-1] for curve in own)} nodes')
            levels[level] = []
            continue
        step = levels[level][(len(levels[level]) - 1) // 2]
        document['levels'][level] = {'entries': step.entries, 'reach': in_force and step.entries * in_force}
    return document, levels


def page_sizes(root: str | Path = '/') -> tuple[int, int | None]:
    '''(base page, huge page) of this node, bytes; the huge one that the kernel gives transparently, :obj:`None` where there is none.'''
    try:
        text = Path(root, 'sys/kernel/mm/transparent_hugepage/hpage_pmd_size').read_text()
    except OSError:
        return os.sysconf('SC_PAGE_SIZE'), None
    return os.sysconf('SC_PAGE_SIZE'), int(text)
