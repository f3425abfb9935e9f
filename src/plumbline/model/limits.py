'''What a kernel reaches of the machine's own limit: ratios of samples that were taken together.

A shared machine drifts by tens of per cent between processes and within one.  Cases of one ``group`` ran interleaved (limit, a, b, limit, a, b, ...),
so sample i of each belongs to round i: their ratio survives the drift, and the median of the ratios survives the outliers.
'''

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.model import probes, records

#: Below this share of likwid-bench's best, in each of so many repeats, our limit streams are not the limit: what one repeat says may be
#: another program's doing.
CROSS_CHECK_AGREES, CROSS_CHECK_REPEATS = 0.97, 3


@dataclass(frozen=True)
class Paired:
    '''A kernel's variant against the limit, round by round.

    :attr samples: shape (n,): traffic rate of the kernel over that of the limit, per round.
    :attr value: their median; 1 means that the kernel moves its traffic as fast as the machine can.
    :attr limit: median traffic rate of the limit stream, MB/s.
    :attr record: the kernel's record.
    :attr of_parts: shape (n,): the time of the kernel's parts one after the other over its time, per round (see :func:`of_parts`);
        :obj:`None` where a part was not measured.
    :attr doubt: why the core need not be what is slow (:func:`probes.doubt_beside`), or :obj:`None`.
    '''
    samples: np.ndarray
    value: float
    limit: float
    record: dict
    of_parts: np.ndarray | None = None
    doubt: str | None = None


def traffic_is_certain(record: dict) -> bool:
    '''Whether the traffic of a record is a fact, so that a limit may rest on it.

    The write-allocate of ordinary stores is a model only: some processors leave it out when memory is saturated (Intel's SpecI2M) or whole lines are
    written (Arm), and a limit that counts it would be out of reach: the record then has ``traffic_least``.  Loads, updates of what was loaded, and
    non-temporal stores move what they name.  Records written before November 2026 tell it of memory alone, by their bytes.
    '''
    return 'traffic_least' not in record and (record['level'] != 'memory' or record['traffic'] == record['bytes'])


def unpaired(cases: Sequence[dict]) -> str | None:
    '''Why the samples of cases do not belong together round by round; :obj:`None` where they do.'''
    groups = sorted({case['group'] for case in cases})
    if len(groups) != 1:
        return f'cases of groups {groups} did not run interleaved; pass the records of one group'
    few, many = (choose(cases, key=lambda case: len(case['seconds'])) for choose in (min, max))
    if len(few['seconds']) != len(many['seconds']):
        return (f"{records.label(few)} has {len(few['seconds'])} samples, {records.label(many)} has {len(many['seconds'])}; a round is missing, run "
                'the program again')
    return None


def _same_rounds(cases: Sequence[dict]) -> None:
    if why := unpaired(cases):
        raise PlumblineError(why)


def _traffic_rate(case: dict) -> np.ndarray:
    if not case['traffic'] > 0:
        raise PlumblineError(f'{records.label(case)}: the model gives no traffic, so it has no '
                             'limit; fix the model, or report the metric flops instead')
    return records.rate(case, 'traffic')


_median_rate = functools.partial(records.median_rate, key='traffic')


def best(cases: Iterable[dict], rate: Callable[[dict], float] = _median_rate) -> dict | None:
    '''The limit: the case with the highest traffic rate of those whose traffic is certain; :obj:`None` without one.

    :arg cases: of those that :func:`mark_best` has marked, if any.
    :arg rate: function case -> its traffic rate, MB/s: the median over the samples, where nothing else is said.
    '''
    certain = list(filter(traffic_is_certain, cases))
    return max([case for case in certain if case.get('best')] or certain, key=rate, default=None)


def mark_best(measurements: Iterable[dict]) -> None:
    '''Mark the stream that is the limit in all processes of a case: the best of one process is not that of the next one where two are alike.

    Its record gets ``best``: true, in each process.

    :arg measurements: records of several processes; ``process`` is the number of each.
    '''
    streams: dict[tuple, dict[str, list[dict]]] = {}
    for record in measurements:
        if record['role'] == 'limit' and traffic_is_certain(record):
            streams.setdefault((record['group'], record['level'], record['threads']), {}).setdefault(record['variant'], []).append(record)
    for same in streams.values():
        most = max(map(len, same.values()))
        everywhere = [records for records in same.values() if len(records) == most]
        for record in max(everywhere, key=lambda records: np.median([_median_rate(record) for record in records])):
            record['best'] = True


def of_limit(cases: Sequence[dict], key: Callable[[dict], Any] = itemgetter('variant'), kinds: Sequence[Sequence[int]] = ()) -> dict[Any, Paired]:
    '''What each kernel's variant reaches of the machine's own limit.

    The limit is the stream (role ``limit``) of the same number of threads and the same level whose median traffic rate is the highest; one stream for
    all rounds, because the best of several per round would be biased upwards by their noise.  Per round i: ``samples[i] = (traffic_k / seconds_k[i])
    / (traffic_l / seconds_l[i])``.

    :arg cases: the measurement records of one group.
    :arg key: what names a kernel's record in the result, for groups in which a variant occurs more
        than once, e.g. ``lambda case: (case['variant'], case['threads'])``.
    :arg kinds: of cores, as of :func:`probes.beside_others`.
    :returns: dictionary key -> :class:`Paired`.
    :raises PlumblineError: for cases of several groups, unequal numbers of samples, a kernel
        without a limit stream of its threads and level, a key that occurs twice, or no traffic.
    '''
    kernels = [case for case in cases if case['role'] == 'kernel']
    if not kernels:
        raise PlumblineError('no kernel among the cases: of_limit compares kernels with limit streams; pass the records of one group')
    _same_rounds(cases)
    others = {id(case): beside for case, beside in zip(cases, probes.beside_others(cases, kinds))}
    result = {}
    for case in kernels:
        streams = [stream for stream in cases if stream['role'] == 'limit' and all(stream[k] == case[k] for k in ('threads', 'level'))]
        limit = best(streams)
        if not limit:
            raise PlumblineError(f"{records.label(case)} in {case['level']}: no limit stream with these threads and level in its group; run the "
                                 'program with its limit streams on')
        if key(case) in result:
            raise PlumblineError(f"{records.label(case)}: {key(case)} occurs twice in group {case['group']}; choose a key that tells the cases apart")
        rates = _traffic_rate(limit)
        samples = _traffic_rate(case) / rates
        core = next((one for one in cases if one['role'] == 'core' and key(one) == key(case) and one['threads'] == case['threads']), None)
        result[key(case)] = Paired(samples, float(np.median(samples)), float(np.median(rates)), case, of_parts(case, streams, core),
                                   probes.doubt_beside(others[id(case)]))
    return result


def of_parts(case: dict, streams: Sequence[dict], core: dict | None = None) -> np.ndarray | None:
    '''The time that a kernel's parts take one after the other, over the time that it takes.

    A core that overlaps nothing works first and moves its data then, and moves one kind of data after the other (the limiting
    case of the ECM model: Treibig and Hager, PPAM 2009, LNCS 6067, 615; Stengel et al., ICS 2015, 207).  All others are faster:
    what is far below 1 has lost something that is neither in the core nor in the memory.  Per round i:
    ``(core_i + sum over parts p of traffic_p / rate_p,i) / seconds_i``, with the rate of the stream that does nothing but p.

    :arg case: the kernel's record.
    :arg streams: the limit streams of its round, threads and level.
    :arg core: the record of the same loop on data that stay in cache (role ``core``); :obj:`None` where the loop has hardly any
        work but to move data.
    :returns: shape (n,), or :obj:`None` where one of its parts has no stream.
    '''
    seconds, rates = np.zeros(len(case['seconds'])), {}
    for part, traffic in case.get('parts', {}).items():
        pure = [stream for stream in streams if list(stream.get('parts', ())) == [part]]
        if not pure:
            return None
        rates[part] = _traffic_rate(max(pure, key=_median_rate))
        seconds += traffic / 1e6 / rates[part]
    if core:
        own = np.asarray(core['seconds'], dtype=float)
        if rates.get('fill_nt') is not None:     # these stores go to memory wherever the data are
            own = np.maximum(0, own - core['parts']['fill_nt'] / 1e6 / rates['fill_nt'])
        seconds += own * case['bytes'] / core['bytes']
    return seconds / np.asarray(case['seconds'], dtype=float) if seconds.any() else None


def paired_ratio(a: dict, b: dict, key: str = 'seconds') -> np.ndarray:
    '''Ratio of two interleaved cases, round by round.

    :arg a: a measurement record.
    :arg b: another one of the same group.
    :arg key: ``'seconds'`` for ``seconds_a / seconds_b``, or ``'bytes'``, ``'traffic'``, ``'flops'`` for the ratio of these rates, a over b.
    :returns: array of shape (n,).
    :raises PlumblineError: if the two are not of one group or differ in the number of samples.
    '''
    _same_rounds([a, b])
    if key == 'seconds':
        return np.asarray(a['seconds'], dtype=float) / np.asarray(b['seconds'], dtype=float)
    if not b[key] > 0:
        raise PlumblineError(f'{records.label(b)}: no {key} to divide by; choose another key')
    return records.rate(a, key) / records.rate(b, key)


def cross_check_correction(ratios: Sequence[float]) -> tuple[float, str | None]:
    '''What to multiply ``of_limit`` by where likwid-bench reaches more than our limit streams.

    The two must have run by turns: what likwid-bench reached at another time says how fast the machine was then, not how good our streams are.

    :arg ratios: best traffic rate of our limit streams over the best of likwid-bench's, same level and threads, of each repeat.
    :returns: (factor, note): the largest ratio and a text for the report where three repeats are below 0.97, else 1 and a text where
        fewer are, or :obj:`None`.  The limit in MB/s is to be divided by the factor.
    :raises PlumblineError: if a ratio is not a positive finite number.
    '''
    for ratio in ratios:
        if not (math.isfinite(ratio) and ratio > 0):
            raise PlumblineError(f'limit streams over likwid-bench is {ratio}; measure them again')
    most = max(ratios, default=1.0)
    if most >= CROSS_CHECK_AGREES:
        return 1.0, None
    said = f"by turns, limit streams reach {most:.2f} of likwid-bench's best"
    if len(ratios) < CROSS_CHECK_REPEATS:
        return 1.0, f'{said}; that was measured {len(ratios)} of {CROSS_CHECK_REPEATS} times, and the limit is not raised'
    return most, f"{said}: the limit is raised to likwid-bench's"
