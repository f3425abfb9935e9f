'''Statistics against hand-computed values and seeded simulations.'''

import math

import numpy as np
import pytest

from plumbline.model import registry, uncertainty


def test_spread_by_hand_of_special_and_of_normal_samples():
    # quartiles of 1 .. 5 are 2 and 4, the median is 3
    assert uncertainty.spread([5, 1, 3, 2, 4]) == pytest.approx(0.7413 * 2 / 3)
    assert uncertainty.spread([-5, -1, -3, -2, -4]) == pytest.approx(0.7413 * 2 / 3)
    assert uncertainty.spread([7.0]) == 0
    assert uncertainty.spread([0.0, 0.0]) == 0
    assert uncertainty.spread([-1, 0, 1]) == math.inf
    assert math.isnan(uncertainty.spread([]))
    assert math.isnan(uncertainty.spread([1, math.nan, 2]))
    x = np.random.default_rng(1).normal(100, 9, 20000)
    assert uncertainty.spread(x) == pytest.approx(0.09, rel=0.03)


# From tables of the sign test: the largest k with 2 P(B <= k - 1) <= 0.05
@pytest.mark.parametrize('n, k', [(5, 0), (6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6),
                                  (25, 8)])
def test_ranks(n, k):
    assert uncertainty._rank(n) == k


def alternating(n):
    '''1 .. n in an order without positive autocorrelation.'''
    low, high = np.arange(1, n // 2 + 1), np.arange(n // 2 + 1, n + 1)
    order = np.empty(n)
    order[::2], order[1::2] = high, low
    return order


@pytest.mark.parametrize('x', [[3.0], [2, 1], [4, 2, 3, 1, 5]])
def test_few_samples_give_their_range(x):
    assert uncertainty.median_interval(x) == (min(x), max(x))


def test_no_samples_nan_and_equal_samples():
    assert all(map(math.isnan, uncertainty.median_interval([])))
    assert all(map(math.isnan, uncertainty.median_interval([1, math.nan, 3])))
    assert math.isnan(uncertainty.summary([3.0] * 9 + [math.inf], [1] * 10).interval[0])     # the median alone would not show it
    assert uncertainty.median_interval([2.0] * 24) == (2, 2)


def test_autocorrelation_intervals_and_drift_by_hand():
    # ranks of 1, 2, 3, 4 less their mean: -1.5, -0.5, 0.5, 1.5; products 0.75 - 0.25 + 0.75
    assert uncertainty.autocorrelation([10, 20, 30, 4000]) == pytest.approx(1.25 / 5)
    assert uncertainty.effective_size([10, 20, 30, 4000]) == pytest.approx(4 * 0.75 / 1.25)
    assert uncertainty.autocorrelation([1, 2]) == 0
    assert uncertainty.autocorrelation([5, 5, 5]) == 0
    assert uncertainty.autocorrelation(np.arange(1000)) == 0.95
    drifting = np.arange(24.0)
    low, high = uncertainty.median_interval(drifting)
    naive_low, naive_high = uncertainty.median_interval(alternating(24) - 1)
    assert low < naive_low and high > naive_high
    x = alternating(20)
    assert uncertainty.autocorrelation(x) == 0
    assert uncertainty.median_interval(x) == (6, 15)
    assert uncertainty.median_interval(alternating(6)) == (1, 6)


def series(generator, n, phi):
    '''AR(1) with coefficient ``phi``, median 0, in its steady state.'''
    x = generator.standard_normal(n)
    x[0] /= math.sqrt(1 - phi ** 2)
    for i in range(1, n):
        x[i] += phi * x[i - 1]
    return x


def naive_interval(x):
    k, ordered = uncertainty._rank(len(x)), np.sort(x)
    return ordered[k - 1], ordered[-k]


def coverage(interval, n, phi, repeats=600):
    generator = np.random.default_rng(2)
    hits = 0
    for _ in range(repeats):
        low, high = interval(series(generator, n, phi))
        hits += low <= 0 <= high
    return hits / repeats


def test_coverage_of_independent_samples():
    assert 0.94 <= coverage(uncertainty.median_interval, 50, 0) <= 0.99


@pytest.mark.parametrize('n, phi', [(24, 0.6), (50, 0.8)])
def test_coverage_of_drifting_samples(n, phi):
    assert coverage(uncertainty.median_interval, n, phi) >= 0.90
    assert coverage(naive_interval, n, phi) < 0.85


def test_summary():
    found = uncertainty.summary([3, 1, 2])
    assert found == uncertainty.Summary(2.0, 3, pytest.approx(0.7413 * 1 / 2), (1.0, 3.0))
    assert uncertainty.summary([]).n == 0 and math.isnan(uncertainty.summary([]).value)
    found = uncertainty.summary([1, 1, 9, 2, 2, 2, 3, 3, 3], processes=[3, 3, 3])
    assert found.n == 9 and (found.value, found.interval) == uncertainty.process_interval([1, 2, 3])
    assert found.spread == 0.5        # and not that of the samples
    assert uncertainty.summary([0, 0, 1], [1, 1, 1], 'share').spread == math.inf and uncertainty.summary([0, 0], [1, 1], 'share').spread == 0
    assert uncertainty.summary([1, 2, 3], processes=[3]) == uncertainty.summary([1, 2, 3])


@pytest.mark.parametrize('counts, value', [([2, 2, 2], 2), ([10, 10, 10], 10), ([64, 64, 64], 64), ([9, 10, 10, 10, 12], 10)])
def test_a_count_scatters_by_nothing(counts, value):
    '''By nothing at all: bounds of 0 hold it.'''
    found = uncertainty.summary(counts, [1] * len(counts), 'count')
    assert (found.value, found.interval) == (value, (value, value))


def test_processes_by_hand():
    # logs 0, 0, 0.1: mean 0.1 / 3, squares 0.02 / 3; with a prior of 3 degrees and 0.03: (3 x 0.0009 + 0.02 / 3) / 5, Student's t of 5: 2.5706
    value, (low, high) = uncertainty.process_interval(np.exp([0.1, 0, 0]))
    half = 2.5706 * math.sqrt((0.0027 + 0.02 / 3) / 5 / 3)
    assert (value, low, high) == pytest.approx(tuple(np.exp([0.1 / 3, 0.1 / 3 - half, 0.1 / 3 + half])), rel=1e-4)
    # on the scale of the values where one of them has no logarithm
    assert uncertainty.process_interval([0.0, 0.0, 0.1], prior=(3, 0))[0] == pytest.approx(0.1 / 3)
    steady, wild = uncertainty.process_interval([1.0] * 5), uncertainty.process_interval([1.0] * 4 + [9.0])
    assert steady == wild and steady[0] == 1
    _, (low, high) = uncertainty.process_interval([1.0, 1.0, 9.0])      # of three nobody knows which is the wild one
    assert low < 1 and high > 5


def test_the_error_by_what_processes_differ_by_is_that_of_the_interval():
    # Deviation 0.1 of three; with a prior of 3 degrees and 0.05: (3 x 0.0025 + 2 x 0.01) / 5, Student's t of 5: 2.5706
    half = 2.5706 * math.sqrt((0.0075 + 0.02) / 5 / 3)
    found = uncertainty.error_between([0.1, 0.1], [3, 3], (3, 0.05))
    assert found == pytest.approx([half / 1.96] * 2, rel=1e-4)
    assert found[0] == pytest.approx(uncertainty.error(uncertainty.process_interval(np.exp([0.1, 0, -0.1]), (3, 0.05))[1]))
    # Of five the three in the middle count.
    assert uncertainty.error_between([0.0], [5], (3, 0.05)) == pytest.approx([2.5706 * math.sqrt(0.0075 / 5 / 3) / 1.96], rel=1e-4)


def test_many_runs_tell_what_processes_differ_by():
    assert uncertainty.noise_of_processes([('memory', 0.001, 3)] * 3) == {'memory': uncertainty.PRIORS[registry.ABSOLUTE]}      # three do not
    chance = np.random.default_rng(1)
    runs = [('memory', uncertainty.spread_between(np.exp(0.01 * chance.standard_normal(3)).tolist()), 3) for _ in range(200)]
    (freedom, deviation), = uncertainty.noise_of_processes(runs).values()
    assert freedom > 3 and deviation == pytest.approx(0.01, rel=0.15)


@pytest.mark.parametrize('usual, half', [(None, 2.5706 * math.sqrt(0.0075 / 5 / 3)), (0.01, 2.5706 * math.sqrt(0.0003 / 5 / 3))])
def test_what_earlier_sessions_say_of_processes_goes_before_what_is_known_of_any(usual, half):
    found = uncertainty.summary([2.0, 2.0, 2.0], [1, 1, 1], registry.ABSOLUTE, usual)
    assert found.interval == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)), rel=1e-4)
    assert uncertainty.summary([2.0], None, registry.ABSOLUTE, usual) == uncertainty.summary([2.0], None, registry.ABSOLUTE)     # nobody knows of one


@pytest.mark.parametrize('processes', [3, 6])
@pytest.mark.parametrize('noise, least', [(0.02, 0.98), (0.03, 0.94), (0.06, 0.88)])
def test_coverage_of_processes(processes, noise, least):
    chance = np.random.default_rng(3)
    ends = [uncertainty.process_interval(np.exp(noise * chance.standard_normal(processes)))[1] for _ in range(400)]
    assert np.mean([low <= 1 <= high for low, high in ends]) >= least


@pytest.mark.parametrize('noise, deviation', [(registry.RATIO, 0.03), (registry.ABSOLUTE, 0.05), (registry.SHARE, 0.005), (registry.DIFFERENCE, 0.1)])
def test_a_single_number_has_the_noise_that_such_numbers_have(noise, deviation):
    '''Three degrees of freedom: 95 % of Student's t lie within 3.182 of its deviations.'''
    found = uncertainty.summary([0.8], noise=noise)
    assert (found.value, found.n) == (0.8, 1)
    assert found.interval == pytest.approx((0.8 * math.exp(-3.182 * deviation), 0.8 * math.exp(3.182 * deviation)), rel=1e-3)


def test_a_single_count_is_certain():
    assert uncertainty.summary([4.0], noise=registry.COUNT).interval == (4.0, 4.0)
