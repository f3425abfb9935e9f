'''From measurement records to judged metrics: pure functions between a check and its result.'''

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.model import curves, limits, quantity, records, registry

#: A sample that took so many times the median of its case was hit by a burst of something else.
BURST = 1.5


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

    def __post_init__(self) -> None:
        registry.find(self.metric)

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
    result = defaultdict(list)
    for record in measurements:
        result[record['group']].append(record)
    return list(result.values())


def kernels(group: Iterable[dict]) -> list[dict]:
    '''The records of a group that are not limit streams.'''
    return [record for record in group if record['role'] == 'kernel']


def bandwidth(record: dict, subject: str | None, limit: float | None = None) -> Metric:
    '''Application bandwidth, MB/s.'''
    return Metric('bandwidth', subject, records.rate(record, 'bytes'), limit=limit, record=record)


def flops(record: dict, subject: str | None) -> Metric:
    '''Performance, Mflop/s.'''
    return Metric('flops', subject, records.rate(record, 'flops'), record=record)


def of_flanks(rates: Mapping[int, np.ndarray], subject: str, curve: Mapping[int, dict]) -> Iterator[Metric]:
    '''Yield the deepest dip of a curve, where it has one peak by the memory hierarchy; see :func:`curves.deepest_dip`.

    :arg rates: size -> samples.
    :arg curve: size -> record.
    '''
    if dip := curves.deepest_dip(rates):
        size, samples = dip
        yield Metric('of_flanks', subject, samples, remark=f"at {quantity.size(curve[size]['working_set'])}", record=curve[size])


def of_steady(cases: Iterable[dict]) -> Metric:
    '''The share of all samples that no burst of something else has hit: the median of a case does not see one in three.'''
    times = [np.asarray(case['seconds'], dtype=float) for case in cases]
    inside = sum(np.count_nonzero(seconds <= BURST * np.median(seconds)) for seconds in times)
    return Metric('of_steady', None, np.array([inside / sum(map(len, times))]))


def of_limit(paired: limits.Paired, subject: str | None, unjudged: str | None = None) -> Metric:
    '''What a kernel reaches of the machine's own limit.

    :arg paired: :class:`limits.Paired`.
    :arg unjudged: why it must not be judged here, or :obj:`None`.
    '''
    return Metric('of_limit', subject, paired.samples, limit=paired.limit, unjudged=unjudged, record=paired.record)


def of_machine(paired: limits.Paired, subject: str | None, unjudged: str | None = None) -> Iterator[Metric]:
    '''Yield what a kernel reaches of the limit (:func:`of_limit`) and of its parts, where they are known.'''
    yield of_limit(paired, subject, unjudged)
    if paired.of_parts is not None:
        yield Metric('of_parts', subject, paired.of_parts, unjudged=unjudged, record=paired.record)


def against_limit(group: Sequence[dict], cross_check_best: Callable[[str, int], float | None], agreement: Callable[[str, int], Sequence[float]],
                  key: Callable[[dict], Any] = limits.variant) -> tuple[dict[Any, limits.Paired], list[str]]:
    '''``of_limit`` of every kernel of a group, with the limit confirmed or raised by the cross-check.

    :arg group: records of one group, limit streams among them.
    :arg cross_check_best: function (level, threads) -> likwid-bench's best traffic rate in MB/s, or
        :obj:`None` where there is none.
    :arg agreement: function (level, threads) -> our limit streams over likwid-bench's best, the two run by turns, of each repeat.
    :returns: (paired, notes): dictionary key -> :class:`limits.Paired`, and texts for the report.
    '''
    if all(case['role'] == 'kernel' for case in group):
        return _against_the_cross_check(group, cross_check_best, key)
    paired, notes = limits.of_limit(group, key), set()
    for case in kernels(group):
        factor, note = limits.cross_check_correction(agreement(case['level'], case['threads']))
        if note:
            found = paired[key(case)]
            paired[key(case)] = replace(found, samples=found.samples * factor, value=found.value * factor, limit=found.limit / factor)
            notes.add(f"{case['level']}, {case['threads']} threads: {note}")
    return paired, sorted(notes)


def _against_the_cross_check(group: Sequence[dict], cross_check_best: Callable[[str, int], float | None],
                             key: Callable[[dict], Any]) -> tuple[dict[Any, limits.Paired], list[str]]:
    '''``of_limit`` without limit streams: by likwid-bench alone, not paired.'''
    paired = {}
    for case in group:
        best = cross_check_best(case['level'], case['threads'])
        if best is None:
            raise PlumblineError(f"limit unknown: in {case['level']} neither the limit streams nor "
                                 'likwid-bench were measured; run the program with --limit, or '
                                 'install likwid')
        samples = records.rate(case, 'traffic') / best
        paired[key(case)] = limits.Paired(samples, float(np.median(samples)), best, 'likwid-bench', case)
    return paired, ["the limit is likwid-bench's alone: no limit streams were measured"]
