'''From measurement records to judged metrics: pure functions between a check and its result.'''

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from plumbline import limits, records
from plumbline.errors import PlumblineError


#: The metrics of which more is better, and those of which less is; of others only a person can say.
MORE_IS_BETTER = ('bandwidth', 'flops', 'rate', 'of_limit', 'of_peak', 'of_fma', 'of_time', 'of_contiguous', 'efficiency',
                  'overlap', 'of_median', 'of_topology', 'clock', 'clock_ratio', 'progress')
LESS_IS_BETTER = ('latency', 'latency_busy_target', 'overhead', 'time', 'slowdown')


@dataclass(frozen=True)
class Metric:
    '''What a check says of one thing, before it is judged.

    :attr metric: one of the project's names: bandwidth, flops, latency, time, of_limit, of_peak,
        efficiency, spread.
    :attr subject: what it is about (a variant, a level), or :obj:`None`.
    :attr samples: shape (n,), in the order of measuring; the value is their median.
    :attr unit: MB/s, Mflop/s, MHz, us, s, bytes, entries or 1.
    :attr limit: the machine's own limit that applies, MB/s, or :obj:`None`.
    :attr unjudged: why this must not be judged here, or :obj:`None`.
    :attr record: the record that the samples are of, or :obj:`None` if they are of several.
    '''
    metric: str
    subject: str | None
    samples: np.ndarray
    unit: str
    limit: float | None = None
    unjudged: str | None = None
    record: dict | None = None

    @property
    def name(self):
        return f'{self.metric}.{self.subject}' if self.subject else self.metric

    @property
    def value(self):
        return float(np.median(self.samples))


def groups(measurements):
    '''The records of each group, in the order of measuring: a list of lists.'''
    result = defaultdict(list)
    for record in measurements:
        result[record['group']].append(record)
    return list(result.values())


def kernels(group):
    '''The records of a group that are not limit streams.'''
    return [record for record in group if record['role'] == 'kernel']


def bandwidth(record, subject, limit=None):
    '''Application bandwidth, MB/s.'''
    return Metric('bandwidth', subject, records.rate(record, 'bytes'), 'MB/s', limit, record=record)


def flops(record, subject, limit=None):
    '''Performance, Mflop/s.'''
    return Metric('flops', subject, records.rate(record, 'flops'), 'Mflop/s', limit, record=record)


def of_limit(paired, subject, unjudged=None):
    '''What a kernel reaches of the machine's own limit.

    :arg paired: :class:`limits.Paired`.
    :arg unjudged: why it must not be judged here, or :obj:`None`.
    '''
    return Metric('of_limit', subject, paired.samples, '1', paired.limit, unjudged, paired.record)


def best_traffic(cases):
    '''The record with the highest median traffic rate, of those whose traffic is certain.'''
    return max(filter(limits.traffic_is_certain, cases), key=lambda case: np.median(records.rate(case, 'traffic')))


def against_limit(group, witness_best, agreement, key=limits.variant):
    '''``of_limit`` of every kernel of a group, with the limit confirmed or raised by the witness.

    :arg group: records of one group, limit streams among them.
    :arg witness_best: function (level, threads) -> likwid-bench's best traffic rate in MB/s, or
        :obj:`None` where there is none.
    :arg agreement: function (level, threads) -> our limit streams over likwid-bench's best, the two run by turns, or
        :obj:`None`.
    :returns: (paired, notes): dictionary key -> :class:`limits.Paired`, and texts for the report.
    '''
    if all(case['role'] == 'kernel' for case in group):
        return _against_the_witness(group, witness_best, key)
    paired, notes = limits.of_limit(group, key), set()
    for case in kernels(group):
        compared = agreement(case['level'], case['threads'])
        if compared is None:
            continue
        factor, note = limits.witness_correction(compared)
        if note:
            found = paired[key(case)]
            paired[key(case)] = replace(found, samples=found.samples * factor, value=found.value * factor, limit=found.limit / factor)
            notes.add(f"{case['level']}, {case['threads']} threads: {note}")
    return paired, sorted(notes)


def _against_the_witness(group, witness_best, key):
    '''``of_limit`` without limit streams: by likwid-bench alone, not paired.'''
    paired = {}
    for case in group:
        best = witness_best(case['level'], case['threads'])
        if best is None:
            raise PlumblineError(f"limit unknown: in {case['level']} neither the limit streams nor "
                                 'likwid-bench were measured; run the program with --limit, or '
                                 'install likwid')
        samples = records.rate(case, 'traffic') / best
        paired[key(case)] = limits.Paired(samples, float(np.median(samples)), best, 'likwid-bench', case)
    return paired, ["the limit is likwid-bench's alone: no limit streams were measured"]
