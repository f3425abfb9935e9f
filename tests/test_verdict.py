'''Every state of the verdict, and each edge of it.'''

import math
from types import SimpleNamespace

import pytest
from reframe.core.exceptions import PerformanceError

from plumbline.model import quantity, verdict
from plumbline.model.result import UNSET, Result
from plumbline.model.uncertainty import Summary, summary
from plumbline.rfm.judging import Judging

REFERENCE = (1.0, -0.2, 0.1)        # 0.80 .. 1.10


def judged(value, low, high, spread=0.02, n=24, reference=REFERENCE, **changed):
    return verdict.judge(Summary(value, n, spread, (low, high)), reference, **changed)


@pytest.mark.parametrize('value, low, high, spread, expected, reason', [
    (0.93, 0.92, 0.94, 0.02, 'PASS', '0.93 is within 0.80 .. 1.10'),
    (0.80, 0.80, 0.80, 0.00, 'PASS', '0.80 is within 0.80 .. 1.10'),
    (0.95, 0.80, 1.10, 0.25, 'PASS', '0.95 is within 0.80 .. 1.10'),
    (0.70, 0.69, 0.71, 0.02, 'FAIL', '0.70 is outside 0.80 .. 1.10'),
    (0.70, 0.60, 0.79, 0.90, 'FAIL', '0.70 is outside 0.80 .. 1.10'),
    (1.30, 1.20, 1.40, 0.02, 'FAIL', '1.30 is outside 0.80 .. 1.10'),
    (0.81, 0.78, 0.84, 0.02, 'UNSTABLE', 'interval 0.78 .. 0.84 straddles 0.80'),
    (0.79, 0.78, 0.84, 0.02, 'UNSTABLE', 'interval 0.78 .. 0.84 straddles 0.80'),
    (1.09, 1.05, 1.15, 0.02, 'UNSTABLE', 'interval 1.05 .. 1.15 straddles 1.10'),
    (0.70, 0.60, 0.80, 0.02, 'UNSTABLE', 'interval 0.60 .. 0.80 straddles 0.80'),
    (1.20, 1.10, 1.30, 0.02, 'UNSTABLE', 'interval 1.10 .. 1.30 straddles 1.10'),
    (0.93, 0.92, 0.94, 0.31, 'UNSTABLE', 'spread 0.31 above 0.25, and 0.93 is near its bound'),
    (0.93, 0.92, 0.94, math.inf, 'UNSTABLE', 'spread inf above 0.25, and 0.93 is near its bound'),
    (0.93, 0.92, 0.94, math.nan, 'UNSTABLE', 'spread nan above 0.25, and 0.93 is near its bound'),
    (math.nan, math.nan, math.nan, 0.02, 'FAIL', 'not a finite number: nan in nan .. nan'),
    (math.inf, 1.0, math.inf, 0.02, 'FAIL', 'not a finite number: inf in 1.0 .. inf')])
def test_states(value, low, high, spread, expected, reason):
    assert judged(value, low, high, spread) == (expected, reason)


@pytest.mark.parametrize('reference', [None, REFERENCE, (0, None, None)])
def test_no_samples_is_a_fail(reference):
    assert verdict.judge(summary([]), reference)[0] == 'FAIL'
    assert judged(0.93, 0.92, 0.94, n=0, reference=reference)[0] == 'FAIL'
    assert judged(math.nan, 0.92, 0.94, reference=reference)[0] == 'FAIL'


@pytest.mark.parametrize('reference', [None, (0, None, None), (5.0, None, None)])
def test_no_reference(reference):
    assert judged(0.93, 0.92, 0.94, reference=reference)[0] == 'NO REFERENCE'


def test_one_sided_and_absolute_bounds():
    fast = judged(31200, 31100, 31300, reference=(30000, -0.1, None, 'MB/s'))
    assert fast == ('PASS', '31200 is at least 27000')
    assert judged(3, 2.9, 3.1, reference=(2.0, None, 0.1))[0] == 'FAIL'
    small = judged(0.4, 0.3, 0.5, reference=(0, None, 0.6))
    assert small == ('PASS', '0.40 is at most 0.60')
    assert judged(0.7, 0.65, 0.8, reference=(0, None, 0.6))[0] == 'FAIL'
    assert judged(2.0, 1.9, 2.1, 0.31, reference=(1.0, -0.4, None))[0] == 'PASS'        # 1.38 is still above 0.6
    assert judged(2.0, 1.9, 2.1, 0.31, reference=(1.0, -0.4, 1.5))[0] == 'UNSTABLE'     # 2.62 is not below 2.5


def test_the_loss_that_would_be_seen_decides_a_test():
    # 1.0 in 0.9 .. 1/0.9 over 0.5: a FAIL once exp(0.105) of it is below 0.5, and 0.95 of the time once 1.645 / 1.96 of 0.105 more is
    seen = verdict.seen_loss(Summary(1.0, 30, 0.1, (0.9, 1 / 0.9)), (1.0, -0.5, None))
    assert seen == pytest.approx(1 - 0.5 * 0.9 ** (1 + 1.645 / 1.96))
    risen = verdict.seen_loss(Summary(1.0, 30, 0.1, (0.9, 1 / 0.9)), (1.0, None, 1.0), rises=True)
    assert risen == pytest.approx(2 / 0.9 ** (1 + 1.645 / 1.96) - 1)
    assert verdict.seen_loss(Summary(0.0, 30, 0.1, (-0.1, 0.1)), (1.0, -2, None)) is None
    assert verdict.seen_loss(Summary(1.0, 30, 0.1, (0.9, 1.1)), (1.0, None, 0.5)) is None      # what is impossible is no loss
    # What would see less than a tenth of it, or ten times as much, sees nothing.
    noisy = Summary(1.0, 30, 0.9, (0.4, 2.5))
    assert verdict.seen_loss(noisy, (1.0, -0.4, None)) < 0.9 and verdict.seen_loss(noisy, (1.0, -0.8, None)) is None
    assert verdict.seen_loss(noisy, (1.0, None, 0.5), rises=True) > 1 and verdict.seen_loss(noisy, (1.0, None, 3.0), rises=True) is None
    # of_limit has an upper bound only: it PASSes whatever was lost.
    assert verdict.is_undecided([('UNSTABLE', 0.3), ('NO REFERENCE', None)]) and verdict.is_undecided([('UNSTABLE', 0.3), ('PASS', None)])
    assert not verdict.is_undecided([('UNSTABLE', 0.3), ('PASS', 0.2)]) and not verdict.is_undecided([('UNSTABLE', 0.3), ('PASS', 0.0)])
    assert not verdict.is_undecided([('NO REFERENCE', None)]) and not verdict.is_undecided([('PASS', None)] * 2)


def test_a_second_run_tolerates_what_is_unstable_only_beside_a_pass_that_sees_a_loss():
    def ends(sees):
        metrics = [SimpleNamespace(name='of_parts.plain', verdict=verdict.UNSTABLE, reason='straddles', sees=0.3),
                   SimpleNamespace(name='of_limit.plain', verdict=verdict.PASS, reason='at most', sees=sees)]
        fake = SimpleNamespace(is_dry_run=lambda: False, perfvalues={'a:of_parts.plain': 1}, perf_variables={}, lost={}, again=3, doubt='',
                               plumbline=Result(metrics=metrics), _of_other_states=list, _case=tuple)
        Judging.require_every_metric(fake)

    ends(0.2)
    with pytest.raises(PerformanceError, match='UNSTABLE: of_parts.plain: straddles'):
        ends(UNSET)


def test_cap_on_the_spread():
    assert judged(0.93, 0.92, 0.94, 0.31, max_spread=0.4)[0] == 'PASS'


@pytest.mark.parametrize('reference', [
    (2.0, -0.1, 0.2), (-2.0, -0.1, 0.2), (0, -0.3, 0.4), (5, None, 0.1), (5, -0.1, None)])
def test_bounds_are_those_of_reframe(reference):
    from reframe.utility.sanity import reference_bounds
    assert verdict.bounds(reference) == pytest.approx(reference_bounds(*reference))


@pytest.mark.parametrize('x, text', [
    (0.8, '0.80'), (0.7984, '0.7984'), (1.1, '1.10'), (0.0005, '0.0005'), (31234.5, '31234'),
    (123.456, '123.5'), (0, '0'), (12, '12.00')])
def test_numbers(x, text):
    assert quantity.number(x) == text


def test_the_worst_and_the_unit_in_its_reason():
    assert verdict.worst(['PASS', 'NO REFERENCE', 'PASS']) == 'NO REFERENCE'
    assert verdict.worst(['NO REFERENCE', 'UNSTABLE']) == 'UNSTABLE'
    assert verdict.worst(['PASS', 'FAIL', 'UNSTABLE', None]) == 'FAIL'
    assert verdict.worst(['PASS', None]) == 'PASS'
    assert verdict.worst([]) == verdict.worst([None]) == 'FAIL'
    assert verdict.judge(summary([50000.0] * 10), (80000, -0.1, None), unit='MB/s') == (
        verdict.FAIL, '50000 is below 72000 MB/s')
    assert verdict.judge(summary([90000.0] * 10), (80000, -0.1, None), unit='MB/s') == (
        verdict.PASS, '90000 is at least 72000 MB/s')
