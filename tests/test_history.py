'''``plumbline history``: a step that lasts is found, dated and named; what goes away, chance and neighbours that are alike are not.'''

import itertools

import numpy as np
import pytest
from typer.testing import CliRunner

from made_report import MACHINE, case, measurement, metric, of_another_suite, result, write_report
from plumbline.analysis import archived, history
from plumbline.analysis.joined import joined
from plumbline.cli import app
from plumbline.comparison import sides
from plumbline.errors import PlumblineError
from plumbline.model import changes, subsystems
from plumbline.report import history_page
from plumbline.store import archive

#: What is known of the scatter of the series made here: nothing.
NOTHING = (1e-6, 0.02)

pytestmark = pytest.mark.usefixtures('fitting')


# --- steps --------------------------------------------------------------------------------------------------------------

def test_a_step_by_hand_and_a_scatter_that_does_not_count_steps():
    '''Means of 0 and -0.1, squares within 4 x 0.01^2 and 2 x 0.01^2 about them: s^2 = 6e-4 / 6 with 8 - 2 degrees of freedom.'''
    logs = np.array([0.01, -0.01, 0.01, -0.01, -0.1, -0.1, -0.09, -0.11])
    scores, shifts, freedom = changes._scores(logs, np.array([4]), (0, 0.02))
    assert freedom == 6 and shifts[0] == pytest.approx(-0.1)
    assert scores[0] == pytest.approx(-0.1 / (1e-4**0.5 * (1 / 4 + 1 / 4)**0.5))
    found = changes.step(np.exp(logs), NOTHING)
    assert (found.begin, found.change) == (4, pytest.approx(np.expm1(-0.1))) and found.chance < 1e-3
    values = np.exp([0.0, 0.02, 0.0, 0.02, 1.02, 1.0, 1.02, 1.0])
    variance, freedom = changes.scatter(values)
    assert variance == pytest.approx((6 * 0.02**2 + 1) / 7 / 2) and freedom == pytest.approx(14 / 3)
    assert changes.scatter([1.0]) == (0.0, 0)
    assert changes.step(np.ones(9), (0, 0.0)).chance == 1


@pytest.mark.slow
@pytest.mark.parametrize('size', [8, 30, 100])
@pytest.mark.parametrize('freedom', [3, 10])
def test_chance_is_what_it_says(size, freedom):
    '''As often as the level says, a level of 5 % is undercut by chance; scatters differ from series to series.'''
    chance = np.random.default_rng(1)
    deviations = 0.03 * np.sqrt(freedom / chance.chisquare(freedom, 1000))
    found = [changes.step(np.exp(chance.normal(0, one, size)), (freedom, 0.03)).chance for one in deviations]
    assert 0.02 < np.mean(np.array(found) <= 0.05) < 0.08


def test_sessions_of_fewer_metrics_or_like_their_neighbours_are_no_step():
    chance, shares = np.random.default_rng(9), np.repeat([1 / 9, 1.0], [6, 24])
    found = [changes.step(np.exp(chance.normal(0, 0.02 / np.sqrt(shares))), (3, 0.02), shares=shares).chance for _ in range(1000)]
    assert 0.02 < np.mean(np.array(found) <= 0.05) < 0.08
    chance, found = np.random.default_rng(2), []
    for _ in range(400):
        drifting = list(itertools.accumulate(chance.normal(0, 0.02, 60), lambda before, new: 0.4 * before + new))
        found.append(changes.step(np.exp(drifting), (5, 0.02)).chance)
    assert np.mean(np.array(found) < 0.01) < 0.05       # 0.25 if neighbours were taken to be independent


def test_a_step_and_its_end_are_two_and_one_odd_session_is_none():
    logs = np.random.default_rng(3).normal(0, 0.01, 40)
    logs[15:28] -= 0.08
    down, up = changes.steps(np.exp(logs), NOTHING, changes.RATE)
    assert (down.begin, up.begin) == (15, 28)
    assert down.change == pytest.approx(-0.08, abs=0.01) and up.change == pytest.approx(0.08, abs=0.01)
    logs = np.random.default_rng(4).normal(0, 0.01, 30)
    logs[-1] -= 0.5
    assert changes.steps(np.exp(logs), NOTHING, changes.RATE) == []


def test_what_the_last_session_no_longer_has_was_an_incident():
    logs = np.random.default_rng(5).normal(0, 0.01, 30)
    incident = logs + np.repeat([0.0, -1.2, 0.0], [27, 2, 1])
    assert changes.steps(np.exp(incident), NOTHING, changes.RATE) == []
    assert changes.lasting(np.exp(incident), NOTHING, 5, np.ones(30)).chance > changes.RATE
    stays = incident + np.repeat([0.0, -1.2], [29, 1])
    assert [one.begin for one in changes.steps(np.exp(stays), NOTHING, changes.RATE)] == [27]
    found = changes.lasting(np.exp(stays), NOTHING, 5, np.ones(30))
    assert found.begin == 27 and found.chance < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize('size', [30, 60, 120])
@pytest.mark.parametrize('end, found', [([-0.3], 0), ([-0.5], 0), ([-0.15] * 2, 0), ([-0.3] * 2, 0), ([-0.3] * 3, 1), ([-0.06] * 5, 1),
                                        ([-0.3] * 3 + [-0.15], 1), ([-0.3] * 3 + [-0.15] * 2, 1), ([-0.3] * 6 + [-0.13], 1), ([-0.3] * 3 + [0], 0)])
def test_one_or_two_odd_sessions_are_no_loss_and_three_are_until_all_is_as_before(size, end, found):
    chance, lost = np.random.default_rng(3), 0
    for _ in range(100):
        logs = chance.normal(0, 0.02, size) + np.concatenate([np.zeros(size - len(end)), end])
        step = changes.lasting(np.exp(logs), (3, 0.02), 10, np.ones(size))
        lost += step is not None and step.change < 0 and step.chance <= changes.RATE
    assert lost >= 90 if found else lost <= 8


@pytest.mark.parametrize('node, day, losses, begin', [
    (lambda number: number if number >= 40 else number % 2, int, {range(40, 43): 0.05}, None), (int, lambda number: 0, {range(30, 40): 0.05}, None),
    (lambda number: number % 60, int, {range(50, 60): 0.05, range(110, 120): 0.05}, None), (int, int, {range(30, 40): 0.05}, 30),
    (lambda number: number % 34, int, {range(30, 40): 0.05}, 30),
    (lambda number: max(1, number - 38), int, {range(30, 40): 0.05, range(40, 43): 0.1}, 30),
    (lambda number: max(1, number - 28), int, {range(30, 60): 0.05, range(60, 70): 0.1}, 60)],
    ids=['three nodes of a rack', 'one sweep', 'a rack comes again', 'each night another node', 'few come again', 'a rack after a loss',
         'a rack that loses more'])
def test_other_nodes_are_no_loss_and_hide_none(node, day, losses, begin):
    size = 1 + max(number for numbers in losses for number in numbers)
    logs = np.random.default_rng(3).normal(0, 0.01, size)
    for numbers, loss in losses.items():
        logs[numbers] -= loss
    places = np.array([(f'n{node(number)}', str(day(number))) for number in range(size)])
    step = changes.lasting(np.exp(logs), (3, 0.01), 5, np.ones(size), places)
    lost = step is not None and step.change < 0 and step.chance <= changes.RATE
    assert (step.begin if lost else None) == begin


def test_odd_sessions_at_the_beginning_hide_no_later_loss():
    chance, begins = np.random.default_rng(3), []
    for _ in range(20):
        logs = np.concatenate([[0.3, 0.3], np.zeros(63), np.full(8, -0.06)]) + chance.normal(0, 0.02, 73)
        step = changes.lasting(np.exp(logs), (3, 0.02), 5, np.ones(73))
        begins.append(step.begin if step and step.change < 0 and step.chance <= changes.RATE else None)
    assert sum(begin is not None and 63 <= begin <= 67 for begin in begins) >= 16, begins


@pytest.mark.parametrize('odd', [[-0.55], [-0.3], [0.4], [-0.5, -0.2], [-0.55] * 3])
@pytest.mark.parametrize('size', [60, 250])
def test_a_few_odd_sessions_in_the_middle_hide_no_later_loss(odd, size):
    '''What one night was off by is no scatter of the others.'''
    chance, begins = np.random.default_rng(7), []
    for _ in range(20):
        logs = np.concatenate([np.zeros(size), np.full(12, -0.05)]) + chance.normal(0, 0.02, size + 12)
        logs[size // 2:size // 2 + len(odd)] += odd
        step = changes.lasting(np.exp(logs), (3, 0.02), 10, np.ones(logs.size))
        begins.append(step.begin if step and step.change < 0 and step.chance <= changes.RATE else None)
    assert sum(begin is not None and abs(begin - size) <= 4 for begin in begins) >= 16, begins


def test_what_is_odd_by_hand():
    logs = np.zeros(40) + np.tile([0.01, -0.01], 20)
    logs[20], logs[30:33] = -0.5, 0.3
    assert np.flatnonzero(changes._odd(logs, NOTHING)).tolist() == [20, 30, 31, 32]
    logs[5:25:3] = -0.5       # more than a tenth: so this machine is
    assert not changes._odd(logs, NOTHING).any()


def test_an_odd_session_among_others_is_no_step():
    chance = np.random.default_rng(3)
    for _ in range(20):
        logs = chance.normal(0, 0.02, 120)
        logs[60] -= 0.3
        assert changes.steps(np.exp(logs), (3, 0.02), changes.RATE) == []


def test_a_loss_that_creeps_is_found():
    '''1 % in thirty sessions, scatter 2 %.'''
    chance = np.random.default_rng(5)
    series = np.exp(chance.normal(0, 0.02, 365) - 0.01 / 30 * np.arange(365))
    first = next(size for size in range(20, 365, 5) if changes.step(series[:size], (5, 0.02), 5).chance < changes.RATE / 16)
    assert 30 < first < 200


@pytest.mark.parametrize('size', [12, 60])
def test_what_is_seen_is_found_that_often(size):
    chance, found = np.random.default_rng(6), []
    loss = changes.sees(size, (1000, 0.03), changes.RATE)
    for _ in range(300):
        values = np.exp(chance.normal(0, 0.03, size) + np.log1p(-loss) * (np.arange(size) >= size // 2))
        found.append(changes.step(values, (1000, 0.03)).chance <= changes.RATE)
    assert np.mean(found) > 0.85


@pytest.mark.parametrize('size', [0, 1, 5])
def test_too_few_sessions_say_nothing(size):
    assert changes.step(np.ones(size), NOTHING) is None and changes.steps(np.ones(size), NOTHING, 0.01) == []
    assert changes.sees(size, (5, 0.02), changes.RATE) is None


# --- from the archive ---------------------------------------------------------------------------------------------------

def fill(root, values, accepted=(), scatter=0.01, machine=lambda number: MACHINE, first=0, beside=(), node=lambda number: 'n1'):
    '''Sessions of two tests with four metrics of memory each, at so many times 1000 MB/s, and a ratio that stays.

    :arg beside: cases that each session has, too.
    '''
    chance, names = np.random.default_rng(7), []
    for number, value in enumerate(values, first):
        noise = np.exp(chance.normal(0, scatter, 9))
        cases = []
        for test in range(2):
            expected = {'expected': {'deviation': 0.02, 'freedom': 8.0, 'measured': dict.fromkeys(accepted, 1000.0)}} if accepted else {}
            metrics = [metric(f'bandwidth.v{i}', 1000 * value * noise[4 * test + i], **expected) for i in range(4)]
            metrics += [metric('of_limit.v0', 0.9 * noise[8], unit='1')]
            cases.append(case(f'Test{test} %threads=one', plumbline=result(*metrics, machine=machine(number)), job_nodelist=[node(number)]))
        report = write_report(root / 'r.json', [*cases, *beside], start=1579075200 + 86400 * number)
        names.append(archive.archive(report, root / 'archive').stem)
    return names


def run(root, *options):
    return CliRunner().invoke(app, ['history', '--archive', str(root / 'archive'), *map(str, options)], env={'COLUMNS': '200'})


STEP = [1.0] * 14 + [0.9] * 6


def test_a_loss_that_stays(tmp_path):
    newer = {**MACHINE, 'kernel': '6.2.0', 'clock_resolution': 3.3e-8}
    names = fill(tmp_path, STEP, machine=lambda number: newer if number >= 14 else MACHINE)
    found = history.read(tmp_path / 'archive')
    assert len(found.sessions) == 20 and len(found.metrics) == 10
    loss, = history.lasting(found)
    assert (loss.begin, loss.before, loss.count) == (names[14], names[13], 6)
    assert (loss.course.name, loss.course.kind) == ('memory, one thread', subsystems.RATES)
    assert loss.step.change == pytest.approx(-0.1, abs=0.01)
    done = run(tmp_path)
    assert done.exit_code == 1, done.output
    assert 'memory, one thread, rates and times: 10' in done.output and 'worse since 2020-01-29' in done.output
    assert done.output.replace('\n', ' ').rstrip().endswith('changed with it: kernel: 6.1.0 -> 6.2.0')       # and not the clock's resolution
    assert '10 metrics' in done.output.splitlines()[0]


@pytest.mark.slow
def test_sessions_of_other_tests_between_them_hide_no_loss(tmp_path):
    '''A gate runs beside the nights, a perflog was imported, a check is new: they say nothing of what they do not measure.'''
    fill(tmp_path, STEP[:-1])
    for number in range(12):
        gate = case('Gate %threads=one', plumbline=result(metric('bandwidth.v9', 500.0), machine=MACHINE))
        archive.archive(write_report(tmp_path / 'r.json', [gate], start=1579075200 + 86400 * (number + 7) + 7200), tmp_path / 'archive')
    fill(tmp_path, STEP[-1:], first=19)
    losses = history.lasting(history.read(tmp_path / 'archive'))
    assert [loss.course.metrics for loss in losses] == [8] and losses[0].step.change == pytest.approx(-0.1, abs=0.01)
    # Of a session that did not measure it nothing is said.
    gate = write_report(tmp_path / 'r.json', [gate], start=1579075200 + 86400 * 21)
    report = CliRunner().invoke(app, ['report', str(gate), '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page')])
    assert report.exit_code == 3 and 'NOT JUDGED: what made.yaml judged in ' in report.output       # which is not here
    assert 'worse since' not in report.output and run(tmp_path).exit_code == 1


@pytest.mark.slow
def test_plumbline_report_says_so_and_ends_with_1(tmp_path):
    fill(tmp_path, STEP)
    options = ['--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page')]
    done = CliRunner().invoke(app, ['report', *options], env={'COLUMNS': '160'})
    assert done.exit_code == 1 and 'FAIL: memory, one thread, rates and times' in done.output.replace('\n', ' ')
    assert 'worse since 2020-01-29' in (tmp_path / 'page/index.html').read_text()
    session = archive.sessions(tmp_path / 'archive')[15].stem       # of its own day nothing was known of what came after
    done = CliRunner().invoke(app, ['report', '--session', session, *options])
    assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_what_was_accepted_is_the_new_state(tmp_path):
    names = fill(tmp_path, [1.0] * 14)
    fill(tmp_path, [0.9] * 10, first=14)
    assert history.lasting(history.read(tmp_path / 'archive'))
    later = archive.sessions(tmp_path / 'archive')[14:19]
    fill(tmp_path, [0.9], accepted=[path.stem for path in later], first=24)
    assert history.lasting(history.read(tmp_path / 'archive')) == []
    assert run(tmp_path).exit_code == 0 and 'references of 5 sessions' in run(tmp_path).output
    assert '-10' in run(tmp_path).output, 'the step stays in the table'
    assert names[0] in run(tmp_path, 'bandwidth.v0', '-n', 'Test1').output


def test_what_was_accepted_is_so_where_a_repetition_met_another_state(tmp_path):
    names = fill(tmp_path, [1.0] * 14 + [0.9] * 10, accepted=['a'])
    repeated = [case(f'Test{test} %threads=one %.repeat_no=1', plumbline=result(*(
        metric(f'bandwidth.v{i}', 900.0, recorded_states=[{'core_to_core.0': 1e-8}]) for i in range(4)), machine=MACHINE)) for test in range(2)]
    fill(tmp_path, [0.9], accepted=names[14:19], first=24, beside=repeated)
    assert history.lasting(history.read(tmp_path / 'archive')) == []


def further(*accepted, names=range(10)):
    expected = {'expected': {'deviation': 0.02, 'freedom': 8.0, 'measured': dict.fromkeys(accepted, 500.0)}} if accepted else {}
    return case('Further %threads=one', plumbline=result(*(metric(f'bandwidth.w{name}', 500.0, **expected) for name in names), machine=MACHINE))


def test_references_of_something_else_accept_no_loss(tmp_path):
    names = fill(tmp_path, STEP)
    fill(tmp_path, [0.9], accepted=names[:5], first=20, beside=[further(*names[15:])])
    loss, = history.lasting(history.read(tmp_path / 'archive'))
    assert loss.begin == names[14] and loss.course.accepted == set(names[:5])


def test_references_of_something_else_accept_no_loss_in_another_state(tmp_path):
    names = fill(tmp_path, STEP, accepted=['a'])
    states, chance = [{'core_to_core.0': 1e-8}], np.random.default_rng(8)
    for number in (20, 21):
        cases = [case(f'Test{test} %threads=one', plumbline=result(*(
            metric(f'bandwidth.v{i}', 900.0 * np.exp(chance.normal(0, 0.01)), recorded_states=states) for i in range(4)), machine=MACHINE))
            for test in range(2)]
        report = write_report(tmp_path / 'r.json', [*cases, further(*names[15:])], start=1579075200 + 86400 * number)
        archive.archive(report, tmp_path / 'archive')
    loss, = history.lasting(history.read(tmp_path / 'archive'))
    assert loss.begin == names[14] and loss.course.accepted == {'a'}


def test_sessions_that_measure_more_than_the_nights_hide_no_loss(tmp_path):
    '''An acceptance week is of many more metrics than the nights after it, and so is a test for each upgrade.'''
    fill(tmp_path, STEP[:5], beside=[further()])
    fill(tmp_path, STEP[5:], first=5)
    nights, week = (one for one in history.courses(history.read(tmp_path / 'archive'))[0] if one.kind == subsystems.RATES)
    assert (nights.name, nights.metrics, len(nights.sessions)) == ('memory, one thread', 8, 20)
    assert (week.name, week.metrics, len(week.sessions)) == ('memory, one thread: Further', 10, 5)
    assert run(tmp_path).exit_code == 1


@pytest.mark.slow
@pytest.mark.parametrize('ended', [False, True])
def test_metrics_that_come_or_end_cut_no_course(tmp_path, ended):
    '''Most of them; nor do references that only these have accept what was lost before.'''
    names = fill(tmp_path, STEP + [0.9] * 10)
    found = history.read(tmp_path / 'archive')
    del found.metrics[next(iter(found.metrics))]
    for key, series in found.metrics.items():
        changed = key.case.startswith('Test1')
        found.accepted[key] = frozenset(names[20:25] if changed else names[:5])
        for name in (names[20:] if ended else names[:18]) if changed else ():
            del series.values[name]
    loss, = history.lasting(found)
    assert (loss.begin, loss.course.metrics, loss.course.sessions) == (names[14], 7, names)


@pytest.mark.parametrize('scatter', [0.0, 0.02])
def test_a_loss_of_metrics_that_begin_later_stays_however_long_it_has_lasted(scatter):
    '''Four metrics of eight begin after 30 sessions, and lose a tenth after five more.'''
    logs = np.random.default_rng(3).normal(0, scatter, (8, 60))
    logs[4:, 35:] -= 0.1
    logs[4:, :30] = np.nan
    values, present, _ = joined(logs, np.full(8, 1 / 8))
    levels = [np.mean(part) for part in np.split(values, [30, 35])]
    assert levels == pytest.approx([0, 0, -0.05], abs=scatter / 2 + 1e-9) and list(present[[29, 30]]) == [0.5, 1]
    # Where they have not changed their level is known from all their sessions.
    logs[4:, 35:] += 0.1
    values, _, _ = joined(logs, np.full(8, 1 / 8))
    assert abs(np.median(values[30:]) - np.median(values[:30])) <= scatter / 4


def test_a_gain_hides_no_later_loss(tmp_path):
    names = fill(tmp_path, [1.0] * 10 + [1.2] * 15 + [1.12] * 8)
    loss, = history.lasting(history.read(tmp_path / 'archive'))
    assert (loss.begin, loss.count) == (names[25], 8) and loss.step.change == pytest.approx(1.12 / 1.2 - 1, abs=0.01)


def test_an_incident_hides_no_loss_that_lasts(tmp_path):
    names = fill(tmp_path, STEP + [0.4, 0.3, 0.9])
    loss, = history.lasting(history.read(tmp_path / 'archive'))
    assert (loss.begin, loss.count) == (names[14], 9) and loss.step.change == pytest.approx(-0.1, abs=0.01)


def turns(number):
    return f'n{number % 2 + 1}'


@pytest.mark.slow
@pytest.mark.parametrize('node, values, number, losses', [
    (lambda number: 'n1' if number < 14 else 'n2', STEP, 2, []), (turns, [1.0, 0.8] * 10, 2, []),
    (turns, [0.8, 1.0] * 10 + [0.8, 0.9] * 10, 2, [('memory, one thread on n2', -0.1)]), (turns, STEP, 1, [('memory, one thread', -0.1)]),
    (lambda number: f'n{number % 8}', [0.9 if number % 8 == 2 and number >= 264 else 1.0 for number in range(320)], 2,
     [('memory, one thread on n2', -0.1)]),
    (lambda number: turns(number) if number < 30 else f'n{number}', [1.0] * 30 + [0.95] * 3, 1, []),
    (lambda number: f'n{number}', STEP, 1, [('memory, one thread', -0.1)])],
    ids=['another node', 'take turns', 'one of them loses', 'both lose', 'one of many after years', 'a rack', 'each night another node'])
def test_nodes_are_held_against_themselves(tmp_path, node, values, number, losses):
    fill(tmp_path, values, node=node)
    found = history.read(tmp_path / 'archive')
    assert [(loss.course.name, pytest.approx(loss.step.change, abs=0.01)) for loss in history.lasting(found)] == losses
    courses = [one for one in history.courses(found)[0] if one.kind == subsystems.RATES]
    assert sum(len(one.sessions) for one in courses) == len(values) and len(courses) == number


@pytest.mark.slow
@pytest.mark.parametrize('later, losses', [(2**19, 1), (2**18, 0)])
def test_another_working_set_of_a_cache_is_no_loss(tmp_path, later, losses):
    chance = np.random.default_rng(7)
    for number, value in enumerate(STEP):
        records = [measurement(level='L2', working_set=later if number >= 14 else 2**19)]
        metrics = [metric(f'bandwidth.v{i}', 1000 * value * np.exp(chance.normal(0, 0.01)), record=0) for i in range(4)]
        cached = case('Cached %threads=one', plumbline=result(*metrics, level='L2', records=records))
        archive.archive(write_report(tmp_path / 'r.json', [cached], start=1579075200 + 86400 * number), tmp_path / 'archive')
    found = history.read(tmp_path / 'archive')
    assert len(history.lasting(found)) == losses and {len(one.values) for one in found.metrics.values()} == {20 if losses else 6}
    said = "skipped: 56 values of caches with another working set than the last session's"
    assert (said in run(tmp_path).output) == (not losses) and len(found.sessions) == 20


def test_a_test_that_something_else_is_given_is_another_one(tmp_path):
    '''It is no loss, and one of its own is found; ``step`` times a given size, for good.'''
    def loss(at, step):
        for number in range(22):
            given, value = ({'largest': '64'}, 500.0) if number >= 10 else ({}, 1000.0)
            metrics = [metric(f'bandwidth.v{i}', value * (step if number >= at else 1) * (1 + 0.002 * (-1)**(number + i))) for i in range(4)]
            archive.archive(write_report(tmp_path / 'r.json', [case('Sent', plumbline=result(*metrics, level=None, given=given))],
                                         start=1579075200 + 86400 * number), tmp_path / f'{at}')
        return history.lasting(history.read(tmp_path / f'{at}'))
    assert loss(22, 1) == [] and [one.begin[:8] for one in loss(16, 0.9)] == ['20200131']
    found = archived.read(tmp_path / '22', metrics='v0').metrics
    assert {key.case: sorted(set(one.session.tolist())) for key, one in found.items()} == {
        'Sent': list(range(10)), 'Sent with largest=64': list(range(10, 22))}


def test_another_unit_is_no_loss(tmp_path):
    for number in range(20):
        value, unit = (100.0, 'GB/s') if number >= 14 else (100000.0, 'MB/s')
        stream = of_another_suite(('copy', [value * (1 + number % 2 / 100), value, -0.5, None, unit, 'pass']))
        archive.archive(write_report(tmp_path / 'r.json', [stream], start=1579075200 + 86400 * number), tmp_path / 'archive')
    found = history.read(tmp_path / 'archive')
    series, = found.metrics.values()
    assert history.lasting(found) == [] and (series.unit, len(series.values), len(found.sessions), found.other_units) == ('GB/s', 6, 20, 14)


def test_a_test_that_is_renamed_again_and_again_has_a_history(tmp_path):
    for number in range(18):
        renamed = case(f'Named{number // 6} %threads=one', plumbline=result(metric('bandwidth.v', 500.0), machine=MACHINE))
        archive.archive(write_report(tmp_path / 'r.json', [renamed], start=1.6e9 + 86400 * number), tmp_path / 'archive')
    done = run(tmp_path)
    assert done.exit_code == 0 and ' '.join(done.output.split()).count('memory, one thread: Named') == 2, done.output


def test_a_night_in_which_a_test_failed_is_no_pass_in_the_calendar(tmp_path):
    fill(tmp_path, [1.0] * 2)
    crashed = case(result='fail', fail_phase='run', fail_reason='it crashed')
    fill(tmp_path, [1.0], first=2, beside=[crashed])
    archive.archive(write_report(tmp_path / 'r.json', [crashed], start=1579075200 + 86400 * 3), tmp_path / 'archive')
    found = history.read(tmp_path / 'archive')
    assert [counts.get('software', {}).get('FAIL', 0) for counts in found.verdicts.values()] == [0, 0, 1, 1] and len(found.sessions) == 3
    days = [day for _, week in reversed(history_page._calendar(found)) for day in week]
    assert [day['verdict'] for day in days if day] == ['PASS', 'PASS', 'FAIL', 'FAIL']


@pytest.mark.slow
@pytest.mark.parametrize('values', [[1.0] * 20, [1.0] * 8 + [0.9] * 4 + [1.0] * 8, [1.0] * 14 + [1.1] * 6, [1.0] * 19 + [0.5], [1.0] * 17 + [0.3, 0.4, 1.0],
                                    [1.0] * 6], ids=['unchanged', 'went away', 'faster', 'one session', 'two sessions', 'few'])
def test_no_lasting_loss(tmp_path, values):
    fill(tmp_path, values)
    assert history.lasting(history.read(tmp_path / 'archive')) == []
    assert run(tmp_path).exit_code == 0


def test_of_metrics_that_were_named(tmp_path):
    fill(tmp_path, STEP)
    done = run(tmp_path, 'bandwidth.v[01]$', '-n', 'Test0', '--output', tmp_path / 'history.html')
    assert done.exit_code == 0 and done.output.count('at 2020-01-29') == 2
    assert 'Test1' not in done.output and 'of_limit' not in done.output
    page = (tmp_path / 'history.html').read_text()     # it is of the same opinion: they are no subsystem
    assert 'class="alarm"' not in page and 'has become worse' not in page and '<h2>Subsystems' not in page and page.count('at 2020-01-29') == 2


def test_a_session_in_which_all_failed_has_a_report(tmp_path):
    archive.archive(write_report(tmp_path / 'r.json', [case(result='fail', fail_phase='run', fail_reason='it crashed')]), tmp_path / 'archive')
    done = CliRunner().invoke(app, ['report', '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page')])
    assert done.exit_code == 1 and 'it crashed' in done.output


def test_sessions_that_name_no_environment_are_read(tmp_path):
    '''As of a site's performance log.'''
    for number, name in enumerate((None, None, 'gnu')):
        cases = [case('Stream', plumbline=result(metric('bandwidth.v0', 1000.0)), environ=name)]
        archive.archive(write_report(tmp_path / 'r.json', cases, start=1579075200 + 86400 * number), tmp_path / 'archive')
    done = run(tmp_path, 'bandwidth')
    assert done.exit_code == 0 and '3 sessions' in done.output, done.output
    done = CliRunner().invoke(app, ['variance', '--archive', str(tmp_path / 'archive'), '--output', str(tmp_path / 'page')])
    assert done.exit_code == 0, done.exception


def test_metrics_of_several_environments_are_told_apart_and_names_are_no_markup(tmp_path):
    for number in range(3):
        cases = [case('Odd %x=[/bold]', plumbline=result(metric('bandwidth.v0', 1000.0)), environ=name) for name in ('gnu', 'clang')]
        archive.archive(write_report(tmp_path / 'r.json', cases, start=1579075200 + 86400 * number), tmp_path / 'archive')
    done = run(tmp_path, 'bandwidth')
    assert done.exit_code == 0, done.exception
    assert 'Odd %x=[/bold] bandwidth.v0 gnu' in done.output and 'Odd %x=[/bold] bandwidth.v0 clang' in done.output


def test_another_processor_is_left_out_and_said(tmp_path):
    fill(tmp_path, [2.0] * 8 + [1.0] * 8, machine=lambda number: {**MACHINE, 'cpu_model': 'Older CPU'} if number < 8 else MACHINE,
         node=lambda number: 'n1' if number < 8 else 'n2')
    found = history.read(tmp_path / 'archive')
    assert len(found.sessions) == 8 and found.strangers == {'Older CPU': 8}
    found = history.read(tmp_path / 'archive', node='n1')      # of nodes of two kinds the last session is of one
    assert len(found.sessions) == 8 and not found.strangers
    assert archive.load_columns(archive.sessions(tmp_path / 'archive')[0], 'processor')['processor'].unique().to_list() == ['Older CPU']
    assert 'skipped: 8 sessions on another processor, Older CPU' in run(tmp_path).output


def test_a_session_of_one_partition_makes_no_stranger_of_another(tmp_path):
    '''The nights run on both, of different processors; the last session, alone on one of them, finds its loss.'''
    chance = np.random.default_rng(7)
    for number in range(21):
        cases = [case('Test %threads=one', partition=partition, plumbline=result(
            *(metric(f'bandwidth.v{i}', 1000 * (0.9 if number >= 14 and partition == 'highmem' else 1) * np.exp(chance.normal(0, 0.01)))
              for i in range(4)), machine={**MACHINE, 'cpu_model': 'Older' if number < 2 else partition}))
            for partition in (('cpu', 'highmem') if number < 20 else ('highmem',))]
        archive.archive(write_report(tmp_path / 'r.json', cases, start=1579075200 + 86400 * number), tmp_path / 'archive')
    found = history.read(tmp_path / 'archive')
    assert {key.partition for key in found.metrics} == {'cpu', 'highmem'} and len(found.sessions) == 19 and found.strangers == {'Older': 2}
    loss, = history.lasting(found)
    assert loss.course.name == 'memory, one thread of highmem' and loss.step.change == pytest.approx(-0.1, abs=0.01)


@pytest.mark.parametrize('before, now, known', [
    ({'cpuid': {'vendor': 'A', 'family': 23, 'model': 49}}, {'cpuid': {'vendor': 'A', 'family': 25, 'model': 17}}, False),
    ({}, {'cpuid': {'vendor': 'A', 'family': 25, 'model': 17}}, True),       # written before that was told
    ({'cpu_model': None, 'midr': {'implementer': '0x41', 'part': '0xd0c'}}, {'cpu_model': None, 'midr': {'implementer': '0x41', 'part': '0xd40'}}, False),
    ({'cpu_model': None}, {'cpu_model': None, 'midr': {'implementer': '0x41', 'part': '0xd0c'}}, True)])
def test_processors_of_one_name_are_told_apart_by_their_numbers(tmp_path, before, now, known):
    fill(tmp_path, [2.0, 1.0], machine=lambda number: MACHINE | (now if number else before))
    assert (len(history.read(tmp_path / 'archive').sessions) == 2) == known


def test_a_damaged_session_is_named_and_the_others_are_told(tmp_path):
    fill(tmp_path, STEP)
    archive.sessions(tmp_path / 'archive')[3].write_bytes(b'garbage')
    done = run(tmp_path)
    assert done.exit_code == 1 and 'worse since 2020-01-29' in done.output and 'cannot read the archive' in done.output
    assert len(history.read(tmp_path / 'archive').sessions) == 19
    options = ['--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page')]
    assert 'worse since 2020-01-29' in CliRunner().invoke(app, ['report', *options]).output


def test_a_session_that_lacks_a_subsystem_says_nothing_of_it(tmp_path):
    fill(tmp_path, STEP)
    only = case('Test9 %threads=one', plumbline=result(metric('of_limit.v0', 0.9, unit='1')))
    archive.archive(write_report(tmp_path / 'r.json', [only], start=1.9e9), tmp_path / 'archive')
    found = history.read(tmp_path / 'archive')
    assert history.lasting(found, of=found.sessions[-1]) == [] and len(history.lasting(found)) == 1


@pytest.mark.parametrize('options, said', [(['nothing'], 'no such metric in the sessions of made'), (['('], 'not a regular expression'),
                                           (['--system', 'other'], 'no session of other')])
def test_what_cannot_be_told(tmp_path, options, said):
    fill(tmp_path, [1.0] * 3)
    done = run(tmp_path, *options)
    assert isinstance(done.exception, PlumblineError) and said in str(done.exception)


# --- the page -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_names_what_changed_with_a_step_and_says_nothing_of_two_sessions(tmp_path):
    fill(tmp_path, STEP[:2])
    assert 'no subsystem has a course yet: none of its metrics is in 5 sessions' in run(tmp_path, '--output', tmp_path / 'history.html').output
    page = (tmp_path / 'history.html').read_text()
    assert 'Too few sessions to say whether a subsystem has become worse.' in page and 'No subsystem has become worse' not in page
    newer = {**MACHINE, 'kernel': '6.2.0'}
    fill(tmp_path, STEP, machine=lambda number: newer if number >= 14 else MACHINE)
    done = run(tmp_path, '--output', tmp_path / 'history.html')
    page = (tmp_path / 'history.html').read_text()
    assert done.exit_code == 1 and 'kernel: 6.1.0 -&gt; 6.2.0' in page
    assert page.count('aria-label="2020-01-') == 17 and 'title="2020-01-29: 1 session; software 2 PASS; speed 8 PASS"' in page


def test_one_node_and_one_environment(tmp_path):
    for number in range(4):
        cases = [case('Test %threads=one', plumbline=result(metric('bandwidth.v0', 1000.0 * (1 + node)), machine=MACHINE), environ=environ,
                      unique_name=f'Test_{environ}_{node}', job_nodelist=[f'n{node}']) for node in range(3) for environ in ('gnu', 'llvm')]
        archive.archive(write_report(tmp_path / 'r.json', cases, start=1579075200 + 86400 * number), tmp_path / 'archive')
    found = history.read(tmp_path / 'archive')
    assert {key.environ for key in found.metrics} == {'gnu', 'llvm'}
    for series in found.metrics.values():
        assert set(series.values.values()) == {2000.0} and set(series.bands.values()) == {(1000.0, 3000.0)}
    (key, series), = history.read(tmp_path / 'archive', node='n2', environment='llvm').metrics.items()
    assert key.environ == 'llvm' and set(series.values.values()) == {3000.0} and set(series.bands.values()) == {(2970.0, 3030.0)}
    done = run(tmp_path, '--node', 'n9')
    assert isinstance(done.exception, PlumblineError) and 'no such metric in the sessions of made n9' in str(done.exception)


def test_a_session_of_a_clock_that_was_wrong_is_not_the_last(tmp_path):
    *names, ahead = (archive.archive(write_report(tmp_path / 'r.json', [case('Test0 %threads=one', plumbline=result(metric()))], start=start),
                                     tmp_path / 'archive').stem for start in (1.70e9, 1.71e9, 9e9))
    done = CliRunner().invoke(app, ['report', '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page')])
    assert f'plumbline: passed over: 1 session, the last {ahead}, began in the future' in done.output and names[-1] in (
        tmp_path / 'page/index.html').read_text()
    assert sides.last(tmp_path / 'archive', 2) == names and archive.file_of(tmp_path / 'archive', ahead).stem == ahead
    done = CliRunner().invoke(app, ['report', str(write_report(tmp_path / 'r.json', [case('Test0 %threads=one', plumbline=result(metric()))], start=1.69e9)),
                                    '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page')])
    assert f'3 of the archive are dated after this session, the last {ahead}' in done.output


def test_a_session_of_a_clock_that_was_wrong_is_named_and_counts(tmp_path):
    cases = [case('Test0 %threads=one', plumbline=result(metric('bandwidth.v0', 1000.0), machine=MACHINE))]
    *_, ahead = (archive.archive(write_report(tmp_path / 'r.json', cases, start=start), tmp_path / 'archive').stem for start in (1.70e9, 1.71e9, 9e9))
    assert f'session {ahead} began in the future' in run(tmp_path).output
    assert len(history.read(tmp_path / 'archive').sessions) == 3
    archive.archive(write_report(tmp_path / 'r.json', cases, start=9.1e9), tmp_path / 'archive')
    assert f'2 sessions from {ahead} on began in the future' in run(tmp_path).output
