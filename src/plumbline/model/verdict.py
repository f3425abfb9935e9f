'''The verdict on one metric: is the machine within bounds, out of bounds, or is that not known?

The interval of the median decides, not the median: a value 1 % below its bound with an interval of 5 % proves nothing, in either direction.
'''

import math
from collections.abc import Iterable, Mapping, Sequence

from plumbline.model.prediction import MOST_LOSS, OF_BOTH_MISSED, Prediction
from plumbline.model.quantity import number, percent
from plumbline.model.uncertainty import HALF_WIDTH, Summary

PASS = 'PASS'
NO_REFERENCE = 'NO REFERENCE'
KNOWN_ISSUE = 'KNOWN ISSUE'
UNSTABLE = 'UNSTABLE'
FAIL = 'FAIL'

#: From the best to the worst: a group of metrics has the worst verdict among them.
SEVERITY = (PASS, KNOWN_ISSUE, NO_REFERENCE, UNSTABLE, FAIL)

#: 95 % of a normal distribution are below.
_NINETY_FIVE = 1.645

#: Above this robust relative spread of its samples, a metric of a single process that is as near to its bound is not judged a PASS.
MAX_SPREAD = 0.25


def bounds(reference: Sequence) -> tuple[float, float]:
    '''Absolute bounds of a reference, as ReFrame takes them.

    ``lower`` and ``upper`` are fractions of ``ref``; where ``ref`` is 0 they are absolute (``reframe.utility.sanity.reference_bounds``).

    :arg reference: (ref, lower, upper), lower <= 0 or None, upper >= 0 or None.
    :returns: (low, high) in the unit of ``ref``; minus or plus infinity where there is no bound.
    '''
    ref, lower, upper = reference
    scale = abs(ref) if ref else 1.0
    low = -math.inf if lower is None else ref + scale * lower
    high = math.inf if upper is None else ref + scale * upper
    return low, high


def _is(low: float, high: float) -> tuple[str, str]:
    '''(what a value in bounds is, what one out of bounds is), for people.'''
    if low == -math.inf:
        return f'at most {number(high)}', f'above {number(high)}'
    if high == math.inf:
        return f'at least {number(low)}', f'below {number(low)}'
    both = f'{number(low)} .. {number(high)}'
    return f'within {both}', f'outside {both}'


def judge(summary: Summary, reference: Sequence | None, max_spread: float = MAX_SPREAD, unit: str = '1') -> tuple[str, str]:
    '''Judge one metric.

    - No samples, or a number that is not finite: FAIL, with or without a reference.
    - No reference, or one without any bound (ReFrame's ``(0, None, None)``): NO REFERENCE.
    - The whole interval outside the bounds: FAIL, however large the spread; noise does not excuse
      a value whose every plausible median is out of bounds.
    - The interval straddles a bound, or the spread is above the cap and reaches beyond one: UNSTABLE.
    - Otherwise the whole interval is inside, bounds included: PASS.

    :arg summary: has ``value``, ``n``, ``spread``, ``interval`` (:class:`uncertainty.Summary`).
    :arg reference: (ref, lower, upper[, unit]) or :obj:`None`.
    :arg max_spread: the cap on the robust relative spread.
    :arg unit: unit of the metric, for the reason; ``'1'`` for none.
    :returns: (verdict, reason); the reason is a text for people.
    '''
    low, high = summary.interval
    if nothing := _no_number(summary):
        return FAIL, nothing
    if reference is None or (reference[1] is None and reference[2] is None):
        return NO_REFERENCE, 'no reference is recorded for this metric here'
    least, most = bounds(reference[:3])
    inside, outside = _is(least, most)
    suffix = '' if unit == '1' else f' {unit}'
    if high < least or low > most:
        return FAIL, f'{number(summary.value)} is {outside}{suffix}'
    if low < least or high > most:
        return UNSTABLE, f'interval {number(low)} .. {number(high)} straddles {number(least if low < least else most)}{suffix}'
    reach = summary.spread * abs(summary.value)
    if not summary.spread <= max_spread and not (least <= summary.value - reach and summary.value + reach <= most):
        return UNSTABLE, f'spread {number(summary.spread)} above {number(max_spread)}, and {number(summary.value)} is near its bound'
    return PASS, f'{number(summary.value)} is {inside}{suffix}'


def _no_number(summary: Summary) -> str:
    if summary.n == 0:
        return 'nothing was measured: no samples'
    low, high = summary.interval
    if not all(math.isfinite(x) for x in (summary.value, low, high)):
        return f'not a finite number: {summary.value} in {low} .. {high}'
    return ''


def judge_expected(summary: Summary, reference: Sequence, unit: str = '1') -> tuple[str, str]:
    '''Judge one metric by what is expected of the next session, from several sessions before.

    The bounds say how far a session of an unchanged machine is off, with what its processes scatter by; so the value decides.
    Only where this session's own interval is so wide that it holds the reference is a value out of bounds no loss yet.

    :arg reference: (ref, lower, upper).
    :returns: as of :func:`judge`; never NO REFERENCE.
    '''
    if nothing := _no_number(summary):
        return FAIL, nothing
    (least, most), (low, high) = bounds(reference), summary.interval
    inside, outside = _is(least, most)
    suffix = '' if unit == '1' else f' {unit}'
    if least <= summary.value <= most:
        return PASS, f'{number(summary.value)} is {inside}{suffix}'
    if low <= reference[0] <= high:
        return UNSTABLE, f'{number(summary.value)} is {outside}{suffix}, but its interval {number(low)} .. {number(high)} holds the reference'
    change = summary.value / reference[0] - 1
    return FAIL, f"{number(summary.value)} is {outside}{suffix}, {percent(abs(change), 0)} {'less' if change < 0 else 'more'} than the reference"


def seen_of_expected(summary: Summary, reference: Sequence, expected: Mapping, rises: bool = False) -> float | None:
    '''The smallest loss since the reference that two runs would both find with a probability of 95 %: a fraction of the reference, or
    :obj:`None` as of :func:`seen_loss`.

    :arg expected: ``deviation`` and ``freedom`` of a new session's value (:class:`Prediction`); that of this session, where it is larger.
    '''
    bound = bounds(reference)[1 if rises else 0]
    if not (summary.interval[0] > 0 and 0 < bound < math.inf and reference[0] > 0):
        return None
    half = math.log(summary.interval[1] / summary.interval[0]) / 2
    unseen = Prediction(reference[0], max(expected['deviation'], half / HALF_WIDTH), expected['freedom']).distance(OF_BOTH_MISSED)
    distance = max(abs(math.log(bound / reference[0])), half) + unseen      # the interval must not hold the reference, either
    return _loss(distance, rises)


def seen_loss(summary: Summary, reference: Sequence, rises: bool = False) -> float | None:
    '''The smallest loss that would be called FAIL with a probability of 95 %, at the noise that was met.

    A value is called FAIL once its whole interval is out of bounds.  Its estimate is normal on the scale of logarithms, with
    the standard deviation that its interval says.

    :arg summary: of a metric whose interval is not beyond them.
    :arg reference: (ref, lower, upper).
    :arg rises: whether a loss raises the value, as that of a time.
    :returns: a fraction of the value: 0.3 is a fall, or a rise, by 30 %; :obj:`None` where no loss at all would be called FAIL, or none
        of less than :data:`MOST_LOSS`, or the numbers have no logarithm.
    '''
    least, most = bounds(reference)
    low, high = summary.interval
    bound = most if rises else least
    if not (low > 0 and 0 < bound < math.inf):
        return None
    half = math.log(high / low) / 2
    distance = math.log(bound / summary.value if rises else summary.value / bound) + half * (1 + _NINETY_FIVE / HALF_WIDTH)
    return _loss(distance, rises)


def _loss(distance: float, rises: bool) -> float | None:
    '''What a distance of logarithms is as a loss; :obj:`None` for more than :data:`MOST_LOSS`, and for a rise by as large a factor.'''
    if distance > -math.log(1 - MOST_LOSS):
        return None
    return math.exp(distance) - 1 if rises else 1 - math.exp(-distance)


def is_undecided(judged: Iterable[tuple[str | None, float | None]]) -> bool:
    '''Whether a test could not be judged: something is UNSTABLE, and nothing PASSes that sees a loss; of a PASS that could not have been
    another verdict nothing is known.

    :arg judged: (verdict, what it sees as of :func:`seen_loss`) of each metric.
    '''
    judged = list(judged)
    return any(ruling == UNSTABLE for ruling, _ in judged) and not any(ruling == PASS and sees is not None for ruling, sees in judged)


def asks_again(verdicts: Iterable[str | None], of_other_states: bool) -> bool:
    '''Whether a test is measured once more in the same session.

    :arg of_other_states: whether all references of one of its metrics are of states that the machine was not in: a minute later it may be.
    '''
    return of_other_states or not {FAIL, UNSTABLE}.isdisjoint(verdicts)


def worst(verdicts: Iterable[str | None]) -> str:
    '''The worst of some verdicts.

    :arg verdicts: verdicts; :obj:`None` (skipped tests) does not count.
    :returns: one of :data:`SEVERITY`; FAIL if there is nothing to judge, because a run must never pass by measuring nothing.
    '''
    return max((v for v in verdicts if v is not None), key=SEVERITY.index, default=FAIL)
