'''What is made of a burn's records: whether rates hold, who is slow, its parts together, the figures.'''

import json

import numpy as np
import pytest

from plumbline.errors import PlumblineError
from plumbline.model import burn as model, uncertainty
from plumbline.report import figures


def series(rounds, lost=0.0, noise=0.01, seed=0, correlated=0.0):
    '''(Seconds, rates) of a phase that loses a share of its rate on the way.'''
    rng = np.random.default_rng(seed)
    errors = rng.normal(0, noise, rounds)
    for i in range(1, rounds):
        errors[i] = correlated * errors[i - 1] + np.sqrt(1 - correlated**2) * errors[i]
    done = 50.0 * np.arange(1, rounds + 1)
    return done, 1000 * np.exp(np.log1p(-lost) * done / done[-1] + errors)


@pytest.mark.parametrize('rounds', [12, 13, 577])
@pytest.mark.parametrize('noise, correlated', [(0.0, 0), (0.02, 0), (0.02, 0.5)])
@pytest.mark.parametrize('lost', [0.0, 0.05, -0.03])
def test_a_drift_is_within_its_interval(rounds, noise, correlated, lost):
    inside = 0
    for seed in range(20):
        done, rates = series(rounds, lost, noise, seed, correlated)
        samples = model.drift(done, rates)
        low, high = uncertainty.median_interval(samples)
        true = (1 - lost) ** ((done[-1] - done[0]) / done[-1])
        inside += low - 1e-9 <= true <= high + 1e-9
        assert noise or np.median(samples) == pytest.approx(true)
    assert inside >= 16


def test_a_loss_of_five_per_cent_is_told_from_noise_of_two():
    for seed in range(40):
        assert uncertainty.median_interval(model.drift(*series(480, 0.05, 0.02, seed)))[1] < 1
        assert uncertainty.median_interval(model.of_start(series(480, 0.05, 0.02, seed)[1]))[1] < 1


def test_outliers_carry_no_slope_and_a_late_step_is_seen_by_the_last_tenth():
    done, rates = series(240, noise=0.005)
    rates[::9] *= 0.3
    assert np.median(model.drift(done, rates)) == pytest.approx(1, abs=0.01)
    done, rates = series(240, noise=0.005)
    rates[200:] *= 0.8
    low, high = uncertainty.median_interval(model.of_start(rates))
    assert 0.79 < low < high < 0.81 and len(model.of_start(rates)) == 24 and len(model.of_start(rates[:13])) == 6


def found_of(*rates, phase='dgemm'):
    return [{'phase': phase, 'rates': row} for row in rates]


def test_the_slow_one_is_named_among_its_fellows():
    cpu, shares = model.slowest(found_of([100, 101, 80, 99], [102, 100, 82, 20]), [4, 5, 6, 7])
    assert cpu == 7 and shares == pytest.approx([99 / 100, 20 / 100])       # by its median over the rounds
    cpu, shares = model.slowest(found_of(*[[100, 101, 80, 99]] * 3), [4, 5, 6, 7])
    assert cpu == 6 and shares == pytest.approx([0.8] * 3)
    assert model.slowest(found_of([100, 50]), [0, 1]) is None
    assert model.slowest(found_of([100, 101, 99, 50, 49, 51]), [0, 1, 2, 3, 4, 5], [[0, 1, 2], [3, 4, 5]])[1] > 0.95
    assert model.slowest(found_of([100, 101, 50, 49]), [0, 1, 2, 3], [[0, 1], [2, 3]]) is None


START = {'record': 'burn_start', 'schema': 1, 'time': 1.0, 'hostname': 'n1', 'minutes': 1, 'slice': 1, 'threads': 1, 'cpus': [0], 'phases': ['fma'],
         'memory': 0, 'cache': 1, 'dgemm': None, 'fma': None, 'done': 0, 'round': 1, 'flip': False, 'not_readable': {}}


def phase_of(number, done, **changes):
    clock = {'min': 2900.0, 'median': 3000.0, 'max': 3100.0, 'slowest_cpu': 0}
    return {'record': 'burn_phase', 'schema': 1, 'time': 2.0, 'round': number, 'phase': 'fma', 'elapsed': 1, 'done': done, 'seconds': 1.0,
            'unit': 'Mflop/s', 'rate': {'total': 100.0 + number % 2, 'min': 1, 'median': 1, 'max': 1, 'slowest_cpu': 0}, 'rates': [100.0],
            'clock': clock, 'temperature': {'coretemp': 60.0 + number}, 'power': {'package-0': 200.0}, 'memory_corrected': 0, 'memory_uncorrected': None,
            'machine_checks': 0, 'throttled': number, 'errors': 0, 'total_errors': 0, **changes}


def text_of(*found):
    return ''.join(json.dumps(record) + '\n' for record in found)


def test_parts_are_put_together():
    burn = model.parse(text_of(START, phase_of(1, 1), phase_of(2, 2), START, phase_of(3, 3)) + '{"cut', 'file')
    assert burn.counted('throttled') == 2 + 3 and burn.counted('memory_uncorrected') is None and burn.end is None and burn.done == 3 and burn.unended == 1


def test_an_error_of_a_phase_that_was_never_ended_counts():
    error = {'record': 'burn_error', 'schema': 1, 'time': 2.0, 'round': 2, 'phase': 'fma', 'thread': 0, 'cpu': 0, 'buffer': 'sums', 'offset': 0,
             'address': '0x10', **{name: f'0x{word:016x}' for name, word in (('expected', 1), ('seen', 3), ('bits', 2), ('again', 3))}, 'from_thread': None}
    assert model.parse(text_of(START, phase_of(1, 1), error, START, phase_of(2, 2)), 'file').total_errors == 1
    assert model.parse(text_of(START, error, phase_of(1, 1, errors=5, total_errors=5), error), 'file').total_errors == 5


def test_what_was_counted_stays_counted():
    def counted(*parts):
        return model.parse(text_of(*(record for part in parts for record in (START, *(
            phase_of(number, number, memory_uncorrected=count) for number, count in enumerate(part, 1))))), 'file').counted('memory_uncorrected')

    assert counted([3, None]) == counted([3, 0]) == counted([3], [None]) == counted([1], [2]) == 3
    assert counted([0, None]) is None and counted([0], [None]) is None and counted([None, 0]) == 0


@pytest.mark.parametrize('text, told', [
    ('', 'no record of a burn'), (text_of(phase_of(1, 1)), 'before any burn_start'), (text_of(START) + 'x\n', 'line 2: no record'),
    (text_of(START, phase_of(1, 1, seconds=-1)), 'field seconds'), (text_of(START, {**START, 'schema': 2}), 'field schema'),
    (text_of(START, phase_of(1, float('nan'))), 'line 2: no record: NaN')])
def test_what_is_no_record_is_named(text, told):
    with pytest.raises(PlumblineError, match=told):
        model.parse(text, 'file')


def test_figures():
    burn = model.parse(text_of(START, *(phase_of(number, number) for number in range(1, 1001))), 'file')
    points = model.thinned(burn)
    assert len(points) == model.MOST_POINTS and points[-1]['throttled'] == 1000 and points[-1]['hours'] == pytest.approx(1000 / 3600)
    assert points[0]['temperature'] == {'coretemp': 65.0} and points[0]['lowest_clock'] == 2900
    drawn = figures.of_check('burn', [{'check': 'burn', 'hostname': 'n1', 'series': points}])
    titles = [title for title, _, figure in drawn if figure is not None]
    assert titles == ['Rates over a burn', 'Clock over a burn', 'Temperature over a burn', 'Power over a burn', 'What must not happen in a burn']
    assert '100' in drawn[0][1] and 'errors that they could not correct' in drawn[-1][1]
    assert max(drawn[0][2].data[0].y) == pytest.approx(1, abs=0.01)
    quiet = [{**point, 'throttled': 0, 'temperature': {}} for point in points]
    drawn = {title: (caption, figure) for title, caption, figure in figures.of_check('burn', [{'check': 'burn', 'series': quiet}])}
    assert drawn['Temperature over a burn'][1] is None and drawn['What must not happen in a burn'][0].startswith('None in 16 min 40 s')
    (_, caption, figure), = figures.of_check('burn', [{'check': 'burn', 'hostname': 'n1'}])
    assert figure is None and caption == 'Not drawn: there are no records.'
