'''From measurement records to judged metrics: pure functions between a check and its result.'''

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.model import grouping, limits, quantity, records, registry

#: A sample that took so many times the median of its case was hit by a burst of something else.
BURST = 1.5

#: What a thread loses at most to another one on its core (a preloading triad: 28 GB/s beside 3.9 additions per cycle, 14 beside 2 to 3; two
#: CPUs of a virtual EPYC 25/17, November 2026).
TWO_ON_A_CORE = 2.0


@dataclass(frozen=True)
class Metric:
    '''What a check says of one thing, before it is judged.

    :attr metric: one of the names of :mod:`plumbline.model.registry`, which knows its unit; no other is taken.
    :attr subject: what it is about (a variant, a level), or :obj:`None`.
    :attr samples: shape (n,), in the order of measuring; the value is their median.
    :attr limit: the machine's own limit that applies, MB/s, or :obj:`None`.
    :attr unjudged: why this must not be judged here, or :obj:`None`.
    :attr remark: what explains it where it is bad, or :obj:`None`.
    :attr record: the record that the samples are of, or :obj:`None` if they are of several.
    :attr baseline: (reference, lower, upper) that it is judged by where no reference is recorded, or :obj:`None`.
    :attr doubt: why a value out of those bounds proves nothing, or :obj:`None`.
    :attr explains: ... unless it is out of them by more than this factor.
    :attr subsystem: of :data:`registry.STATED`, where neither the registry nor the check says of which part of the machine it is, or :obj:`None`.
    '''
    metric: str
    subject: str | None
    samples: np.ndarray
    _: KW_ONLY
    limit: float | None = None
    unjudged: str | None = None
    remark: str | None = None
    record: dict | None = None
    baseline: tuple | None = None
    doubt: str | None = None
    explains: float = math.inf
    subsystem: str | None = None

    def __post_init__(self) -> None:
        registry.find(self.metric)
        if self.subsystem not in (None, *registry.STATED):
            raise PlumblineError(f"metric {self.name!r}: subsystem {self.subsystem!r} is none; give one of {', '.join(registry.STATED)}")

    @property
    def unit(self) -> str:
        return registry.find(self.metric).unit

    @property
    def name(self) -> str:
        return f'{self.metric}.{self.subject}' if self.subject else self.metric

    @property
    def value(self) -> float:
        return float(np.median(self.samples))


def groups(measurements: Iterable[dict]) -> list[list[dict]]:
    '''The records of each group, in the order of measuring: a list of lists.'''
    return list(grouping.by_key((record['group'], record) for record in measurements).values())


def kernels(group: Iterable[dict]) -> list[dict]:
    '''The records of a group that are not limit streams.'''
    return [record for record in group if record['role'] == 'kernel']


def bandwidth(record: dict, subject: str | None, limit: float | None = None) -> Metric:
    '''Application bandwidth, MB/s.'''
    return Metric('bandwidth', subject, records.rate(record, 'bytes'), limit=limit, record=record)


def flops(record: dict, subject: str | None, subsystem: str | None = None) -> Metric:
    '''Performance, Mflop/s.'''
    return Metric('flops', subject, records.rate(record, 'flops'), record=record, subsystem=subsystem)


def latency(seconds: np.ndarray, subject: str | None, record: dict | None = None) -> Metric:
    '''Time of one access, message or call, us.'''
    return Metric('latency', subject, quantity.microseconds(seconds), record=record)


def deepest_dip(rates: Mapping[int, np.ndarray]) -> tuple[int, np.ndarray] | None:
    '''Where a curve falls and rises again.

    A rate rises while starting counts, and falls from one level of the memory hierarchy to the next: it has one peak, and what is
    larger is no faster beyond it.  Each size is held against the best smaller and the best larger one, the slower of the two.

    :arg rates: size -> samples, in the order of measuring.
    :returns: (size, its samples over that rate: from 1 on there is no dip), or None of fewer than three sizes.
    '''
    sizes = sorted(rates)
    if len(sizes) < 3:
        return None
    medians = np.array([np.median(rates[size]) for size in sizes])
    before, after = np.maximum.accumulate(medians)[:-2], np.maximum.accumulate(medians[::-1])[::-1][2:]
    flanks = np.minimum(before, after)
    at = int(np.argmin(medians[1:-1] / flanks))
    return sizes[at + 1], np.asarray(rates[sizes[at + 1]]) / flanks[at]


def of_flanks(rates: Mapping[int, np.ndarray], subject: str, curve: Mapping[int, dict], subsystem: str | None = None) -> Iterator[Metric]:
    '''Yield the deepest dip of a curve, where it has one peak by the memory hierarchy; see :func:`deepest_dip`.

    :arg rates: size -> samples.
    :arg curve: size -> record.
    :arg subsystem: as of :class:`Metric`: the size is not always one of the same level.
    '''
    if dip := deepest_dip(rates):
        size, samples = dip
        yield Metric('of_flanks', subject, samples, remark=f"at {quantity.size(curve[size]['working_set'])}", record=curve[size],
                     subsystem=subsystem)


def of_steady(cases: Iterable[dict]) -> Metric:
    '''The share of all samples that no burst of something else has hit: the median of a case does not see one in three.'''
    times = [np.asarray(case['seconds'], dtype=float) for case in cases]
    inside = sum(np.count_nonzero(seconds <= BURST * np.median(seconds)) for seconds in times)
    return Metric('of_steady', None, np.array([inside / sum(map(len, times))]))


def of_machine(paired: limits.Paired, subject: str | None, unjudged: str | None = None) -> Iterator[Metric]:
    '''Yield what a kernel reaches of the machine's own limit and of its parts, where they are known.

    :arg unjudged: why it must not be judged here, or :obj:`None`.
    '''
    yield Metric('of_limit', subject, paired.samples, limit=paired.limit, unjudged=unjudged, record=paired.record)
    if paired.of_parts is not None:
        # Loads that the core itself must have under way, one for each line, are half as fast with half of its buffers; its pure streams are not.
        yield Metric('of_parts', subject, paired.of_parts, unjudged=unjudged, record=paired.record, doubt=paired.doubt, explains=TWO_ON_A_CORE)


def against_limit(group: Sequence[dict], agreement: Callable[[str, int], Sequence[float]],
                  key: Callable[[dict], Any] = itemgetter('variant'),
                  kinds: Sequence[Sequence[int]] = ()) -> tuple[dict[Any, limits.Paired], list[str]]:
    '''``of_limit`` of every kernel of a group, with the limit confirmed or raised by the cross-check.

    :arg group: records of one group, limit streams among them.
    :arg agreement: function (level, threads) -> our limit streams over likwid-bench's best, the two run by turns, of each repeat.
    :arg kinds: of cores, as of :func:`probes.beside_others`.
    :returns: (paired, notes): dictionary key -> :class:`limits.Paired`, and texts for the report.
    '''
    paired, notes = limits.of_limit(group, key, kinds), set()
    for case in kernels(group):
        factor, note = limits.cross_check_correction(agreement(case['level'], case['threads']))
        if note:
            found = paired[key(case)]
            paired[key(case)] = replace(found, samples=found.samples * factor, value=found.value * factor, limit=found.limit / factor)
            notes.add(f"{case['level']}, {case['threads']} threads: {note}")
    return paired, sorted(notes)
