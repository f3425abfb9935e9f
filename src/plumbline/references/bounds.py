'''From what is expected of a metric to the reference that is written: its bounds, and the loss that they see.'''

import math

from plumbline.model import registry, tlb, verdict
from plumbline.model.prediction import LEAST_LOSS, MOST_LOSS, OF_BOTH_MISSED, Prediction
from plumbline.model.quantity import percent
from plumbline.model.subsystems import METRICS_RATE, SUSPECTS_RATE

#: No bound is narrower: below it a change is of no interest, even where it is certain.
LEAST_BOUND, LEAST_OF_COUNT = LEAST_LOSS, 0.005

#: How much worse a metric may be in one state of a virtual machine's host than in another: of threads, and of ranks, whose messages differ more.
#: (Measured: 1.3 to 2.3; messages up to 64 KiB and latencies 2.0 to 3.6, of 1 MiB 5.9 to 7.1, with Intel MPI 12.  docs/howto/verdicts.rst)
STATES_DIFFER, OF_RANKS = 2.6, 8.0

#: What sessions that agree have in common is theirs but for rounding.
_ROUNDED = 1e-6


def _entries_beside(value):
    sizes = tlb.sizes(max(8, int(4 * value)))
    return (max((size for size in sizes if size < value * (1 - _ROUNDED)), default=value / 2),
            min(size for size in sizes if size > value * (1 + _ROUNDED)))


def _powers_beside(value):
    return value / 2, 2 * value


#: What is read off a grid -> function(value) that gives the points beside it: sessions that agree know it no better.  A reach is entries times a
#: page, and as far apart as pages are.
_BESIDE = {'tlb_entries': _entries_beside, 'tlb_reach': _powers_beside, 'page_in_force': _powers_beside}


def _least(metric, middle, value):
    '''How far the bounds are from a value at the least, below and above: shares of it, as it is written.'''
    if metric in _BESIDE:
        below, above = _BESIDE[metric](middle)
        return 1 - below / value, above / value - 1
    least = LEAST_OF_COUNT if registry.find(metric).noise == registry.COUNT else LEAST_BOUND
    return least, least


def _of_one_side(metric, rate):
    return rate / 2 if registry.better(metric) == registry.NEITHER else rate


def leaf(metric, expected, rate, possible=(-math.inf, math.inf), unit=None):
    '''The leaf to write: [reference, lower, upper, unit].

    The bound is on the side that is worse, and on the other one stands what is possible; where neither side is better it is on both.

    :arg expected: :class:`plumbline.model.prediction.Prediction`.
    :arg rate: the probability that a value is out of bounds though nothing has changed.
    :arg possible: :func:`plumbline.references.peaks.possible`.
    :arg unit: by default the registry's.
    '''
    value, better = float(f'{expected.middle:.4g}'), registry.better(metric)
    far = expected.distance(_of_one_side(metric, rate))
    fall, rise = (_outward(max(least, share)) for least, share in zip(_least(metric, expected.middle, value), (-math.expm1(-far), math.expm1(far))))
    lower, upper = _rounded_up(1 - possible[0] / value), _rounded_up(possible[1] / value - 1)
    if better != registry.LESS:
        lower = fall if better == registry.MORE else min(fall, lower)
    if better != registry.MORE:
        upper = rise if better == registry.LESS else min(rise, upper)
    return [value, None if lower == math.inf else -lower or 0.0, None if upper == math.inf else upper, unit or registry.find(metric).unit]


def of_one_run(leaf, metric, expected):
    '''The leaf with the bounds of a value that nobody measures again: so far out as is improbable alone.

    :arg expected: dictionary ``deviation``, ``freedom``.
    '''
    value, lower, upper, *unit = leaf
    predicted, better = Prediction(value, expected['deviation'], expected['freedom']), registry.better(metric)
    low, high = verdict.bounds(leaf[:3])

    def further(bound, side):
        return predicted.distance(predicted.chance(bound, side) * METRICS_RATE / SUSPECTS_RATE)

    if better != registry.LESS and 0 < low < value and math.isfinite(far := further(low, registry.MORE)):
        lower = min(lower, math.expm1(-far))
    if better != registry.MORE and value < high < math.inf and math.isfinite(far := further(high, registry.LESS)):
        upper = max(upper, math.expm1(far))
    return [value, lower, upper, *unit]


def of_another_state(leaf, better, factor):
    '''The leaf with the bound of a state that nobody has met before, on the side that is worse: so much further out.'''
    value, (low, high) = leaf[0], verdict.bounds(leaf[:3])
    return (value, low / factor / value - 1 if better == registry.MORE else None, high * factor / value - 1 if better == registry.LESS else None)


def floor(metric, reference, beneath):
    '''What is exact on any machine (:class:`references.Known` of a count), where a prediction from sessions would loosen it; else None.

    Only what scatters can have less in a healthy session than in those that were recorded: a pair of CPUs lies as the topology says, or does not.
    '''
    if not (beneath and reference.expected and registry.find(metric).noise == registry.COUNT):
        return None
    low, high = verdict.bounds(beneath.references[0].leaf)
    return beneath if low <= reference.leaf[0] <= high else None


def tighter(leaf, beneath):
    '''The leaf with bounds that are no looser than those of :func:`floor`.'''
    value, (low, high), (least, most) = leaf[0], verdict.bounds(leaf), verdict.bounds(beneath.references[0].leaf)
    return value, leaf[1] if low >= least else least / value - 1, leaf[2] if high <= most else most / value - 1


def missed(beneath, summary, unit):
    '''As of :func:`verdict.judge` by :func:`floor`, of a value beyond it; None of one within.'''
    leaf = beneath.references[0].leaf
    low, high = verdict.bounds(leaf)
    if low <= summary.value <= high:
        return None
    ruling, reason = verdict.judge(summary, leaf, unit=unit)
    return ruling, f'{reason}, by {beneath.file}'


def _outward(share):
    '''To three decimals, and never narrower.'''
    return math.ceil(1000 * share - 1e-9) / 1000


def _rounded_up(share):
    '''To four digits; at least 0.  What is possible must not be cut off.'''
    if not 0 < share < math.inf:
        return max(0.0, share)
    unit = 10.0 ** (math.floor(math.log10(share)) - 3)
    return float(f'{math.ceil(share / unit - 1e-6) * unit:.4g}')


def sees(metric, expected, rate):
    '''The smallest loss that is seen with a probability of 95 %: a share of the value, by which a time rises and a rate falls.'''
    rate, rises = _of_one_side(metric, rate), registry.better(metric) == registry.LESS
    seen, (fall, rise) = expected.sees(rate, rises, OF_BOTH_MISSED), _least(metric, expected.middle, expected.middle)
    if rises:
        return math.expm1(math.log1p(seen) + max(0.0, math.log1p(rise) - expected.distance(rate)))
    if seen == 1:       # as far as a number can say: nothing would be seen
        return 1.0
    return -math.expm1(math.log1p(-seen) - max(0.0, -math.log1p(-fall) - expected.distance(rate)))


def too_wide(metric, expected, rate):
    '''Why a metric gets no reference, or :obj:`None`.  That a time grows tenfold is a loss of 90 % as well.'''
    if expected.sees(_of_one_side(metric, rate), missed=OF_BOTH_MISSED) <= MOST_LOSS:
        return None
    return f'only a loss of more than {percent(MOST_LOSS, 0)} would be seen: a session is known to {percent(expected.deviation, 0)}'
