'''Statistics against hand-computed values and seeded simulations.'''

import math

import numpy as np
import pytest

from plumbline import statistics


def test_spread_by_hand():
    # quartiles of 1 .. 5 are 2 and 4, the median is 3
    assert statistics.spread([5, 1, 3, 2, 4]) == pytest.approx(0.7413 * 2 / 3)
    assert statistics.spread([-5, -1, -3, -2, -4]) == pytest.approx(0.7413 * 2 / 3)


def test_spread_of_special_samples():
    assert statistics.spread([7.0]) == 0
    assert statistics.spread([0.0, 0.0]) == 0
    assert statistics.spread([-1, 0, 1]) == math.inf
    assert math.isnan(statistics.spread([]))
    assert math.isnan(statistics.spread([1, math.nan, 2]))


def test_spread_is_the_coefficient_of_variation_of_normal_samples():
    x = np.random.default_rng(1).normal(100, 9, 20000)
    assert statistics.spread(x) == pytest.approx(0.09, rel=0.03)


# From tables of the sign test: the largest k with 2 P(B <= k - 1) <= 0.05
@pytest.mark.parametrize('n, k', [(5, 0), (6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6),
                                  (25, 8)])
def test_ranks(n, k):
    assert statistics._rank(n, 0.95) == k


def alternating(n):
    '''1 .. n in an order without positive autocorrelation.'''
    low, high = np.arange(1, n // 2 + 1), np.arange(n // 2 + 1, n + 1)
    order = np.empty(n)
    order[::2], order[1::2] = high, low
    return order


def test_interval_of_independent_samples():
    x = alternating(20)
    assert statistics.autocorrelation(x) == 0
    assert statistics.median_interval(x) == (6, 15)
    assert statistics.median_interval(alternating(6)) == (1, 6)
    assert statistics.median_interval(x, level=0.99) == (4, 17)


@pytest.mark.parametrize('x', [[3.0], [2, 1], [4, 2, 3, 1, 5]])
def test_few_samples_give_their_range(x):
    assert statistics.median_interval(x) == (min(x), max(x))


def test_no_samples_and_nan():
    assert all(map(math.isnan, statistics.median_interval([])))
    assert all(map(math.isnan, statistics.median_interval([1, math.nan, 3])))


def test_equal_samples():
    assert statistics.median_interval([2.0] * 24) == (2, 2)


def test_autocorrelation_by_hand():
    # ranks of 1, 2, 3, 4 less their mean: -1.5, -0.5, 0.5, 1.5; products 0.75 - 0.25 + 0.75
    assert statistics.autocorrelation([10, 20, 30, 4000]) == pytest.approx(1.25 / 5)
    assert statistics.effective_size([10, 20, 30, 4000]) == pytest.approx(4 * 0.75 / 1.25)
    assert statistics.autocorrelation([1, 2]) == 0
    assert statistics.autocorrelation([5, 5, 5]) == 0
    assert statistics.autocorrelation(np.arange(1000)) == 0.95


def test_drift_widens_the_interval():
    drifting = np.arange(24.0)
    low, high = statistics.median_interval(drifting)
    naive_low, naive_high = statistics.median_interval(alternating(24) - 1)
    assert low < naive_low and high > naive_high


def series(generator, n, phi):
    '''AR(1) with coefficient ``phi``, median 0, in its steady state.'''
    x = generator.standard_normal(n)
    x[0] /= math.sqrt(1 - phi ** 2)
    for i in range(1, n):
        x[i] += phi * x[i - 1]
    return x


def naive_interval(x):
    k, ordered = statistics._rank(len(x), 0.95), np.sort(x)
    return ordered[k - 1], ordered[-k]


def coverage(interval, n, phi, repeats=600):
    generator = np.random.default_rng(2)
    hits = 0
    for _ in range(repeats):
        low, high = interval(series(generator, n, phi))
        hits += low <= 0 <= high
    return hits / repeats


def test_coverage_of_independent_samples():
    assert 0.94 <= coverage(statistics.median_interval, 50, 0) <= 0.99


@pytest.mark.parametrize('n, phi', [(24, 0.6), (50, 0.8)])
def test_coverage_of_drifting_samples(n, phi):
    assert coverage(statistics.median_interval, n, phi) >= 0.90
    assert coverage(naive_interval, n, phi) < 0.85


def test_summary():
    found = statistics.summary([3, 1, 2])
    assert found == statistics.Summary(2.0, 3, pytest.approx(0.7413 * 1 / 2), (1.0, 3.0))
    assert statistics.summary([]).n == 0 and math.isnan(statistics.summary([]).value)
