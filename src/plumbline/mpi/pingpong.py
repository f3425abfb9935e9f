'''What a PingPong's curve tells (hager2007, section 3.2): pure functions on times per message.

A curve is a dictionary size (bytes) -> array of seconds per message, one for each sample, in the order of measuring.
'''

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from plumbline.model import probes, result, states, uncertainty
from plumbline.mpi import messages

#: The fit for the asymptotic bandwidth takes the sizes down to this part of the largest.
_FITTED = 1 / 16

#: A step in the time per message is one if it is this part of the time, and above the noise of its neighbours.
_STEP = 0.1

#: Below this part of the bandwidth of half its size a message falls.
_FALL = 0.8

#: Bandwidths of two variants that differ by less are called equal: so much do two loops with the same calls.
_LEAST = 0.05


def cases(measurements, variant):
    '''The records of a variant of the program ``pingpong``: size -> record, ascending.'''
    return {int(record['size']): record for record in sorted(measurements, key=lambda record: record['size']) if record['variant'] == variant}


def without_handover(record):
    '''(Why the core-to-core latency beside a record is not known, the symptom): chance, only where processes of one node have tried.'''
    if probes.CORE_TO_CORE in (record.get('probes') or {}):
        return 'core-to-core latency not known: the ranks hardly ever ran at once', 'noise'
    return 'core-to-core latency not known: the ranks share no node', result.UNSET


def curve(measurements, variant):
    '''The curve of a variant, from the records of the program ``pingpong``.'''
    return {size: messages.seconds(record) for size, record in cases(measurements, variant).items()}


@dataclass(frozen=True)
class Line:
    '''Time of a message of n bytes = ``startup`` + n / ``bandwidth``, over the largest messages.

    :attr startup: seconds.
    :attr bandwidth: bytes per second, for messages of unlimited size; infinite where the time does not grow with the size.
    :attr residuals: dictionary size -> (measured - fitted) / measured.
    '''
    startup: float
    bandwidth: float
    residuals: dict

    @property
    def worst(self):
        return max(abs(residual) for residual in self.residuals.values())


def fit(found):
    '''Least squares of the relative deviations over the largest messages.

    :arg found: a curve with two sizes or more.
    :raises ValueError: with fewer.
    '''
    sizes = np.array([size for size in found if size >= max(found) * _FITTED and size > 0], dtype=float)
    if len(sizes) < 2:
        raise ValueError('a line needs two sizes')
    times = np.array([np.median(found[int(size)]) for size in sizes])
    columns = np.stack([1 / times, sizes / times], axis=1)
    (startup, per_byte), *_ = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)
    residuals = {int(size): float(1 - (startup + per_byte * size) / time) for size, time in zip(sizes, times)}
    return Line(float(startup), float(1 / per_byte) if per_byte > 0 else float('inf'), residuals)


def of_halves(found, met=MappingProxyType({})):
    '''The bandwidth of each message over that of one of half the size.

    A message can always be sent as two of half the size, so an MPI has no reason to be slower for it than what its memory is
    (Traeff, Gropp and Thakur, IEEE Trans. Parallel Distrib. Syst. 21 (2010) 698: self-consistent performance guidelines).

    :arg met: size -> the state of the machine that it was measured in, None: not known (:mod:`plumbline.model.states`).  What two sizes
        in different states differ by is the host's doing, and left out, unless nothing else is there.
    :returns: dictionary size -> samples, over the median of the half; of the sizes whose half was measured, ascending.
    '''
    pairs = [size for size in found if size and size % 2 == 0 and size // 2 in found]
    alike = [size for size in pairs if None not in (one := met.get(size, {}), half := met.get(size // 2, {})) and states.same(one, half)]
    return {size: 2 * np.median(found[size // 2]) / found[size] for size in alike or pairs}


def states_of(of_size):
    '''The state of the machine that each size was measured in, for :func:`of_halves`.

    :arg of_size: :func:`cases` of records as :meth:`plumbline.model.states.Found.within` gives them.
    '''
    return {size: record['state'] for size, record in of_size.items()}


def falls(found, ratios):
    '''The sizes at which the bandwidth falls by more than a fifth, and by more than the noise: size -> median of its ``ratios``
    (:func:`of_halves`).'''
    ratios = {size: float(np.median(ratio)) for size, ratio in ratios.items()}
    apart = {size for size in ratios if uncertainty.median_interval(found[size])[0] > 2 * uncertainty.median_interval(found[size // 2])[1]}
    return {size: ratio for size, ratio in ratios.items() if ratio < _FALL and size in apart}


def step(found, between=(64, 4 * 2**20)):
    '''Where the time per message rises by more than its growth so far: where an MPI stops to send at once (eager) and
    first asks the receiver (rendezvous).

    :arg between: sizes to look at, bytes.
    :returns: (last size before, first size after, excess): the excess is the part of the time after the step that the
        line through the two sizes before does not explain; None where no step rises above the noise.
    '''
    sizes = [size for size in found if between[0] <= size <= between[1]]
    best = None
    for one, two, three in zip(sizes, sizes[1:], sizes[2:]):
        times = [float(np.median(found[size])) for size in (one, two, three)]
        slope = max(times[1] - times[0], 0) / (two - one)
        excess = 1 - (times[1] + slope * (three - two)) / times[2]
        noise = sum(uncertainty.summary(found[size]).spread for size in (one, two, three))
        if excess > max(_STEP, noise) and (best is None or excess > best[2]):
            best = two, three, excess
    return best


def artefacts(standard, swapped):
    '''Sizes at which buffers that nobody touches look faster than the same messages with the buffers changed over, by
    more than the spread: what is measured there is a cache, not the way from one process to the other.

    :returns: dictionary size -> samples of the ratio of the bandwidths, standard over swapped, paired by rounds.
    '''
    result = {}
    for size in filter(None, standard):
        ratio = swapped[size] / standard[size]
        found = uncertainty.summary(ratio)
        if found.interval[0] > 1 + max(found.spread, _LEAST):
            result[size] = ratio
    return result
