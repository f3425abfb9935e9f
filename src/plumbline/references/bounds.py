'''From what is expected of a metric to the reference that is written: its bounds, and the loss that they see.'''

import math

from plumbline.model import registry, verdict
from plumbline.model.prediction import LEAST_LOSS, MOST_LOSS, OF_BOTH, Prediction
from plumbline.model.quantity import percent
from plumbline.model.subsystems import METRICS_RATE, SUSPECTS_RATE

#: No bound is narrower: below it a change is of no interest, even where it is certain.
LEAST_BOUND, LEAST_OF_COUNT = LEAST_LOSS, 0.005


def _least(metric):
    return LEAST_OF_COUNT if registry.find(metric).noise == registry.COUNT else LEAST_BOUND


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
    least, far = _least(metric), expected.distance(_of_one_side(metric, rate))
    fall, rise = (_outward(max(least, share)) for share in (-math.expm1(-far), math.expm1(far)))
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
    seen, least = expected.sees(rate, rises, OF_BOTH), _least(metric)
    if rises:
        return math.expm1(math.log1p(seen) + max(0.0, math.log1p(least) - expected.distance(rate)))
    if seen == 1:       # as far as a number can say: nothing would be seen
        return 1.0
    return -math.expm1(math.log1p(-seen) - max(0.0, -math.log1p(-least) - expected.distance(rate)))


def too_wide(metric, expected, rate):
    '''Why a metric gets no reference, or :obj:`None`.  That a time grows tenfold is a loss of 90 % as well.'''
    if expected.sees(_of_one_side(metric, rate), sure=OF_BOTH) <= MOST_LOSS:
        return None
    return f'only a loss of more than {percent(MOST_LOSS, 0)} would be seen: a session is known to {percent(expected.deviation, 0)}'
