'''What the next session will measure, and what a subsystem's metrics say together: hand-computed, and false alarms counted.'''

import numpy as np
import pytest
from scipy import stats

from plumbline.model import prediction, registry, subsystems


def test_predictions_by_hand():
    found = prediction.predict([100.0] * 5, (4, 0.03))
    # (4 x 0.03^2 + 4 x 0) / 8, and the mean of five is not known better than that.
    assert found.middle == pytest.approx(100.0)
    assert found.deviation == pytest.approx(0.03 * np.sqrt(4 / 8) * np.sqrt(1.2))
    assert found.freedom == 8
    assert [prediction.predict([100.0] * 5, (4, 0.03), heaviest).freedom for heaviest in (3.0, 6.0, 20.0)] == [3, 6, 8]
    found = prediction.predict([100.0, 121.0], (0, 0.0))
    assert found.middle == pytest.approx(110.0)
    assert found.deviation == pytest.approx(np.log(1.21) / np.sqrt(2) * np.sqrt(1.5))
    assert found.freedom == 1
    found = prediction.Prediction(100.0, 0.02, 10)
    assert found.chance(90.0, registry.MORE) == pytest.approx(stats.t.cdf(np.log(0.9) / 0.02, 10))
    assert found.chance(110.0, registry.MORE) > 0.99
    assert found.chance(110.0, registry.LESS) < 0.001
    assert found.chance(90.0, registry.NEITHER) == pytest.approx(2 * found.chance(90.0, registry.MORE))
    found = prediction.Prediction(100.0, 0.02, 10)
    assert found.chance(100.0 * np.exp(-found.distance(0.01)), registry.MORE) == pytest.approx(0.01)
    found = prediction.Prediction(100.0, 0.02, 1000)
    far = (2.330 + 1.645) * 0.02        # t of 1000 degrees of freedom, 1 %; normal, 95 %
    assert found.sees(0.01) == pytest.approx(1 - np.exp(-far), rel=1e-3)
    assert found.sees(0.01, rises=True) == pytest.approx(np.exp(far) - 1, rel=1e-3)


def test_metrics_that_scatter_alike_or_unlike_say_so():
    generator = np.random.default_rng(1)
    values = np.exp(0.05 * generator.standard_normal((400, 5)))
    freedom, deviation = prediction.learnt([prediction.variance(row) for row in values], (3, 0.5))
    assert deviation == pytest.approx(0.05, rel=0.05)
    assert freedom == prediction.MOST_FREEDOM
    generator = np.random.default_rng(2)
    scale = np.exp(generator.standard_normal(400))[:, None]
    values = np.exp(0.02 * scale * generator.standard_normal((400, 5)))
    freedom, _ = prediction.learnt([prediction.variance(row) for row in values], (3, 0.5))
    assert freedom < 4
    # Variances drawn from the model that is fitted: 4 degrees of freedom, 0.03.
    generator = np.random.default_rng(3)
    true = 4 * 0.03**2 / generator.chisquare(4, 20000)
    found = true * generator.chisquare(4, 20000) / 4
    freedom, deviation = prediction.learnt([(variance, 4) for variance in found], (1, 1.0))
    assert freedom == pytest.approx(4, rel=0.1)
    assert deviation == pytest.approx(0.03, rel=0.03)


def sessions_of(generator, metrics=60, sessions=5, struck=0.0):
    '''Metrics of six subsystems; in so many sessions of each somebody takes 5 to 15 % of it.'''
    values = np.exp(0.02 * generator.standard_normal((metrics, sessions)))
    return values * np.where(generator.random(values.shape) < struck, generator.uniform(0.85, 0.95, values.shape), 1.0)


def tails_of(values):
    prior = prediction.learnt([prediction.variance(row) for row in values], (3, 0.08))
    return prior, prediction.tails(({str(number): value for number, value in enumerate(row)}, prior, metric % 6)
                                   for metric, row in enumerate(values))


def test_a_session_that_is_struck_now_and_then_is_less_of_a_surprise():
    '''Of 3,000 values of machines of which one in 20 is struck: one in a thousand as far off is asked for.'''
    generator, chances = np.random.default_rng(5), {'asked': [], 'not asked': []}
    for _ in range(50):
        values = sessions_of(generator, sessions=6, struck=0.05)
        prior, heaviest = tails_of(values[:, :5])
        for how, tails in (('asked', heaviest), ('not asked', np.inf)):
            chances[how] += [prediction.predict(row[:5], prior, tails).chance(row[5], registry.MORE) for row in values]
    often = {how: np.mean(np.array(found) < 0.001) / 0.001 for how, found in chances.items()}
    assert often['not asked'] > 15 and often['asked'] < often['not asked'] / 2, often
    generator = np.random.default_rng(4)
    quiet, struck = ([tails_of(sessions_of(generator, struck=share))[1] for _ in range(15)] for share in (0.0, 0.05))
    assert np.percentile(quiet, 10) >= 5 and np.percentile(struck, 90) <= 4
    assert prediction.tails([]) == prediction.tails([({'a': 1.0, 'b': 1.1}, (3, 0.05), 'L1')]) == 3       # two do not say
    assert prediction.learnt([(0.01, 4)] * 7, (3, 0.5)) == (3, 0.5)


@pytest.mark.parametrize('sessions', [5, 10, 20])
def test_false_alarms_of_new_sessions_are_as_rare_as_asked_for(sessions):
    '''60 machines of 40 metrics whose scatter is drawn anew.'''
    generator, rate, alarms = np.random.default_rng(sessions), 0.01, 0
    for _ in range(60):
        scatter = 0.03 * np.exp(0.5 * generator.standard_normal((40, 1)))
        values = np.exp(scatter * generator.standard_normal((40, sessions + 1)))
        prior = prediction.learnt([prediction.variance(row[:-1]) for row in values], (3, 0.5))
        alarms += sum(prediction.predict(row[:-1], prior).chance(row[-1], registry.MORE) < rate for row in values)
    assert 0.4 * rate < alarms / (60 * 40) < 1.5 * rate


# --- subsystems ------------------------------------------------------------------------------------

SESSIONS = [f's{number}' for number in range(5)]


def _member(value, measured, better=registry.MORE, deviation=0.05, sessions=SESSIONS, name='x'):
    middle = float(np.exp(np.mean(np.log(measured))))
    return subsystems.Member(name, value, prediction.Prediction(middle, deviation, 8), better, dict(zip(sessions, measured)))


def _score(members):
    return subsystems.scores({'part': members})['part']


def test_a_score_is_the_weighted_mean_by_hand_of_rates_and_times():
    found = _score([_member(90.0, [100.0] * 5, deviation=0.05), _member(100.0, [100.0] * 5, deviation=0.1),
                              _member(80.0, [100.0] * 5, deviation=0.05)])
    # Weights 400, 100, 400 of 900.
    assert np.log1p(found.change) == pytest.approx((4 * np.log(0.9) + 4 * np.log(0.8)) / 9)
    found = _score([_member(50.0, [100.0] * 5, deviation=0.0001)] + [_member(100.0, [100.0] * 5)] * 2)
    assert np.log1p(found.change) == pytest.approx(np.log(0.5) / 3)
    found = _score([_member(110.0, [100.0] * 5, registry.LESS), _member(100 / 1.1, [100.0] * 5, registry.MORE)])
    assert found.change == pytest.approx(1 / 1.1 - 1)


def test_metrics_that_agree_are_no_accident_and_those_that_move_together_are_one():
    generator = np.random.default_rng(4)
    measured = 100 * np.exp(0.05 * generator.standard_normal((20, 5)))
    parts = {number: [_member(92.0 if number == 0 else 100.0, row) for row in np.roll(measured, number, axis=1) * (1 + number / 100)]
             for number in range(10)}
    assert all(member.expected.chance(member.value, registry.MORE) > 0.02 for member in parts[0])
    assert subsystems.scores(parts)[0].chance < 0.001
    moods = 100 * np.exp(0.05 * np.array([1.2, -1.1, 0.4, 0.9, -1.4]))
    together = _score([_member(92.0, moods) for _ in range(20)])
    alone = _score([_member(92.0, moods)])
    assert together.chance == pytest.approx(alone.chance)
    assert together.chance > 0.05
    members = [_member(92.0, [100.0] * 5, sessions=[f'{letter}{number}' for number in range(5)]) for letter in 'ab']
    assert _score(members).expected.deviation == pytest.approx(_score(members[:1]).expected.deviation)


@pytest.mark.slow
def test_false_alarms_of_subsystems_on_a_machine_with_moods():
    '''12 subsystems of 15 metrics, half of whose variance is the mood of the session.'''
    generator, alarms, count = np.random.default_rng(5), 0, 80
    for _ in range(count):
        moods = 0.04 * generator.standard_normal((12, 1, 6))
        values = np.exp(moods + 0.04 * generator.standard_normal((12, 15, 6)))
        prior = prediction.learnt([prediction.variance(row[:-1]) for part in values for row in part], (3, 0.5))
        found = subsystems.scores({number: [
            subsystems.Member('x', row[-1], prediction.predict(row[:-1], prior), registry.MORE, dict(zip(SESSIONS, row)))
            for row in part] for number, part in enumerate(values)})
        alarms += any(subsystems.holm([score.chance for score in found.values()], 0.01))
    assert alarms / count < 0.025


def test_a_score_that_never_varies_says_nothing_of_the_others():
    generator = np.random.default_rng(6)
    parts = {number: [_member(100.0, 100 * np.exp(0.05 * row)) for row in generator.standard_normal((12, 5))] for number in range(17)}
    alone, beside = subsystems.scores(parts), subsystems.scores({**parts, 'topology': [_member(1.0, [1.0] * 5, deviation=0.001)]})
    assert all(beside[number].expected == one.expected for number, one in alone.items())
    assert beside['topology'].expected.deviation <= 0.001 and prediction.scattering([(0.0, 4)]) == [(0.0, 4)]


def test_holm_and_discoveries_by_hand():
    # 0.05 / 4 = 0.0125, / 3 = 0.0167, / 2 = 0.025
    assert subsystems.holm([0.2, 0.001, 0.03, 0.013], 0.05) == [False, True, False, True]
    assert subsystems.holm([0.013, 0.014, 0.9, 0.9], 0.05) == [False] * 4
    # 0.05 x (1 .. 4) / 4 = 0.0125, 0.025, 0.0375, 0.05
    assert subsystems.discoveries([0.037, 0.02, 0.9, 0.03], 0.05) == [True, True, False, True]
    assert subsystems.discoveries([0.2, 0.3], 0.05) == [False, False]
    assert subsystems.discoveries([], 0.05) == []
