'''``plumbline variance``: components of known truth are found again, and so is what a probe explains; chance explains nothing.'''

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import made_report
from plumbline.analysis import archived, groups, variance
from plumbline.cli import app
from plumbline.errors import PlumblineError
from plumbline.nodes import events
from plumbline.store import archive

# --- components ---------------------------------------------------------------------------------------------------------


def test_components_of_a_balanced_and_an_unbalanced_design_by_hand():
    '''Three groups of two: mean squares 16 between and 0.5 within, so (16 - 0.5) / 2 between.'''
    between, within = variance.components([0, 1, 4, 5, 8, 9], [0, 0, 1, 1, 2, 2])
    assert (within.variance, within.freedom) == (pytest.approx(0.5), 3)
    assert (between.variance, between.freedom) == (pytest.approx((32 - 0.5) / 2), 2)
    # Groups of 1, 2 and 3 values. Searle et al., section 3.6: the factor is (N - sum n**2 / N) / (groups - 1).
    values, group = np.array([3.0, 5, 7, 1, 2, 3]), np.array([0, 1, 1, 2, 2, 2])
    means = np.array([3, 6, 6, 2, 2, 2])
    mean_square_within = np.sum((values - means)**2) / 3
    mean_square_between = np.sum((means - values.mean())**2) / 2
    found = variance.components(values, group)
    assert found[1].variance == pytest.approx(mean_square_within)
    assert found[0].variance == pytest.approx((mean_square_between - mean_square_within) / ((6 - 14 / 6) / 2))


def design(chance, nodes, sessions, processes, samples):
    '''Labels of a nested design; each number is a function that draws how many.'''
    rows = [(n, s, p) for n in range(nodes) for s in range(sessions(chance)) for p in range(processes(chance))
            for _ in range(samples(chance))]
    return np.array(rows).T


@pytest.mark.parametrize('sessions, processes, samples', [
    (lambda _: 6, lambda _: 3, lambda _: 5),
    (lambda c: c.integers(1, 12), lambda c: c.integers(1, 5), lambda c: c.integers(1, 10))], ids=['balanced', 'unbalanced'])
def test_simulated_components_are_unbiased(sessions, processes, samples):
    chance, truth, found = np.random.default_rng(5), np.array([0.04, 0.01, 0.0225, 0.09]), []
    for _ in range(30):
        node, session, process = design(chance, 20, sessions, processes, samples)
        values = chance.normal(0, truth[3]**0.5, node.size)
        for level, labels in enumerate(([node], [node, session], [node, session, process])):
            number = np.unique(np.array(labels), axis=1, return_inverse=True)[1].ravel()
            values += chance.normal(0, truth[level]**0.5, number.max() + 1)[number]
        found.append([each.variance for each in variance.components(values, node, session, process)])
    error = np.std(found, axis=0) / 30**0.5
    assert np.all(np.abs(np.mean(found, axis=0) - truth) < 4 * error + 1e-3)


def test_a_level_of_one_is_not_measured_and_the_level_above_holds_it():
    chance = np.random.default_rng(1)
    session = np.repeat(np.arange(40), 5)
    values = chance.normal(0, 0.1, 40)[session] + chance.normal(0, 0.2, 200)
    node, sessions, process, rounds = variance.components(values, np.zeros(200, dtype=int), session, session)
    assert node.variance is None and process.variance is None and node.freedom == process.freedom == 0
    assert sessions.variance**0.5 == pytest.approx(0.1, rel=0.4) and rounds.variance**0.5 == pytest.approx(0.2, rel=0.1)
    assert [each.variance for each in variance.components([1.0], [0], [0])] == [None, None, None]
    assert variance.components([0, 10, 1, 9], [0, 0, 1, 1])[0].variance == 0


def test_outliers_among_the_rounds_are_pulled_in_and_a_second_state_is_not():
    chance = np.random.default_rng(2)
    process = np.repeat(np.arange(20), 50)
    logs = chance.normal(0, 0.02, 1000)
    calm = variance.winsorised(logs, process)
    assert np.count_nonzero(abs(calm - logs) > 1e-9) < 5 and calm.var() == pytest.approx(logs.var(), rel=0.02)
    burst = logs.copy()
    burst[::50] -= 3
    pulled = variance.winsorised(burst, process)
    assert np.count_nonzero(abs(pulled - burst) > 1e-9) >= 20 and pulled.std() < 0.03 < burst.std()
    second = logs + 0.5 * (chance.random(1000) < 0.1)
    assert variance.winsorised(second, process).std() == pytest.approx(second.std(), rel=0.02)
    logs = np.random.default_rng(2).normal(0, 0.02, 1000) - 0.7 * (process == 7)
    assert np.mean(variance.winsorised(logs, process)[process == 7]) == pytest.approx(-0.7, abs=0.02)


# --- states -------------------------------------------------------------------------------------------------------------

def test_clusters_are_told_by_the_gap_between_them_wherever_they_are():
    chance = np.random.default_rng(3)
    one, two = chance.uniform(20, 40, 260), chance.uniform(140, 200, 740)
    stray = chance.uniform(45, 130, 10)
    for scale in (1e-9, 1.0):
        cut, = groups.edges(np.log(scale * np.concatenate([two, one, stray])))
        assert 40 * scale < np.exp(cut) < 140 * scale
    assert len(groups.edges(np.concatenate([chance.normal(middle, 1, 300) for middle in (0, 10, 30)]))) == 2


@pytest.mark.parametrize('draw', ['normal', 'uniform', 'exponential'])
def test_one_cluster_is_not_cut(draw):
    cut = [len(groups.edges(getattr(np.random.default_rng(seed), draw)(size=size)))
           for seed in range(40) for size in (60, 2000)]
    assert np.mean(cut) <= 0.05


def test_what_changed_its_state_or_is_not_known_has_no_class():
    fast, slow, no = 30.0, 170.0, np.nan
    readings = np.array([[fast, fast], [slow, slow], [fast, slow], [no, slow], [fast, 0.0]] + 20 * [[fast, fast], [slow, slow]])
    labels = groups.classes(readings, most=2)
    assert labels[:5].tolist() == [0, 1, -1, -1, -1] and set(labels[5:]) == {0, 1}
    assert groups.classes(np.full((3, 2), no)).tolist() == [-1, -1, -1]
    assert set(groups.classes(np.full((30, 2), 3e9))) == {0}


# --- what is explained --------------------------------------------------------------------------------------------------

def two_states(chance, processes, rounds, share=0.74, switch=0.05):
    '''Processes whose core-to-core latency changes now and then, and explains this share of the variance; the truth.'''
    state = np.cumsum(chance.random(processes * rounds) < switch) % 2 == 0
    readings = np.exp(chance.normal(0, 0.15, (state.size, 2))) * np.where(state, 30e-9, 170e-9)[:, None]
    effect = np.where(state, 0.0, 0.3)
    noise = effect.std() * np.sqrt(1 / share - 1)
    values = np.exp(7 + effect + chance.normal(0, noise, state.size))
    process = np.repeat(np.arange(processes), rounds)
    return variance.Measured(values, process, np.arange(processes) // 4, np.zeros(processes, dtype=int),
                             {'core_to_core.0': readings, 'clock': chance.normal(3e9, 1e7, (state.size, 2))})


def test_two_states_explain_what_they_do():
    found = variance.analyse(two_states(np.random.default_rng(4), 40, 100, switch=0.2))
    assert found.probes['core_to_core'].within == pytest.approx(0.74, abs=0.03)
    assert found.probes['clock'].within < 0.02
    assert found.together.within == pytest.approx(0.74, abs=0.03)
    assert found.unexplained == pytest.approx(0.26 * found.total, rel=0.15)
    assert found.counts == {'node': 1, 'session': 10, 'process': 40, 'round': 4000}
    found = variance.analyse(two_states(np.random.default_rng(5), 60, 20, share=0.9, switch=0.01))
    assert found.probes['core_to_core'].between > 0.9 and (found.probes['clock'].between or 0) < 0.2
    assert found.left['process'] + found.left['session'] < 0.15 * (found.parts['process'] + found.parts['session'])


def test_of_noise_a_probe_explains_nothing():
    shares = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        process = np.repeat(np.arange(12), 24)
        logs, labels = chance.normal(0, 0.1, process.size), [groups.classes(np.exp(chance.normal(0, 0.1, (process.size, 2))))]
        shares.append((variance.within(logs, process, labels), variance.between(logs, process, labels)))
    middle, spread = np.mean(shares, axis=0), np.std(shares, axis=0)
    assert np.all(middle < 0.02) and middle[0] > -0.05 and spread[0] < 0.05
    # Random walks, of metric and probe: within each process they seem to depend on each other.
    shares = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        walks = np.cumsum(chance.normal(0, 0.02, (12, 24, 2)), axis=1).reshape(-1, 2)
        labels = [groups.classes(np.exp(np.repeat(walks[:, 1:], 2, axis=1)))]
        shares.append(max(0.0, variance.within(walks[:, 0], np.repeat(np.arange(12), 24), labels)))
    assert np.mean(shares) < 0.08


def test_too_little_says_so():
    chance = np.random.default_rng(0)
    one = two_states(chance, 1, 40)
    found = variance.analyse(one)
    assert found.probes['core_to_core'].between is None and found.components['process'].variance is None
    assert found.probes['core_to_core'].within is not None
    few = variance.analyse(two_states(chance, 3, 2))
    assert few.probes['core_to_core'] == variance.Shares(None, None) and few.unexplained == few.total
    measured = two_states(np.random.default_rng(0), 8, 10)
    constant = variance.Measured(np.full(80, 4.0), measured.process, measured.session, measured.node, measured.probes)
    found = variance.analyse(constant)
    assert found.total == found.unexplained == 0 and found.probes['core_to_core'].within is None


# --- the command, on an archive -----------------------------------------------------------------------------------------

START, HOUR = 1.8e9, 3600


def process(chance, node='n1', rounds=20, probes=True, variant='nt', metrics=None, **case):
    '''A test case whose samples depend on the core-to-core latency that was read beside them.'''
    slow = chance.random(rounds) < 0.5
    rates = 1000 * np.exp(chance.normal(0, 0.02, rounds) - 0.4 * slow)
    sides = [[None if number == 3 else [chance.uniform(20, 40) * (5 if state else 1) * 1e-9]
              for number, state in enumerate(slow)] for _ in 'ab']
    read = {'core_to_core': {'before': sides[0], 'after': sides[1]},
            'clock': {side: (3e9 * (1 + 0.01 * chance.standard_normal(rounds))).tolist() for side in ('before', 'after')},
            'seconds': 0.01}
    record = made_report.measurement(variant=variant, threads=2, seconds=(1000 / rates).tolist(), **({'probes': read} if probes else {}))
    metrics = metrics or [made_report.metric(f'bandwidth.{variant}', 1000.0, samples=rates.tolist(), n=rounds)]
    left = made_report.result(*metrics, records=[record], machine={**made_report.MACHINE, 'hostname': node})
    return made_report.case('Triad %threads=all', left, job_nodelist=[node], **case)


def archive_of(folder, sessions, of_session):
    '''Archive so many sessions; ``of_session``: function number -> runs, each a list of test cases.'''
    for number in range(sessions):
        report = made_report.write_report(folder / f'{number}.json', *of_session(number), start=START + HOUR * number,
                                          uuid=f'{number:08}-0000')
        archive.archive(report, folder / 'archive')
    return folder / 'archive'


@pytest.fixture(scope='module')
def kept(tmp_path_factory):
    '''An archive of six sessions on two nodes, with a retry in each; one metric is of two records, so of no known one.'''
    chance = np.random.default_rng(11)
    several = [made_report.metric('efficiency.2', 0.9, '1', samples=[0.9, 0.91, 0.88, 0.9] * 5, n=20)]
    return archive_of(tmp_path_factory.mktemp('kept'), 6, lambda _: [
        [process(chance, 'n1'), process(chance, 'n2'), process(chance, metrics=several) | {'name': 'Scaling', 'unique_name': 'Scaling'}],
        [process(chance, 'n1')]])


def command(root, *options):
    done = CliRunner().invoke(app, ['variance', '--archive', str(root), *options])
    if isinstance(done.exception, PlumblineError):
        return 2, str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_the_archive_gives_samples_processes_sessions_and_nodes(kept):
    read = archived.read(kept, names='Triad')
    (key, measured), = read.metrics.items()
    assert (key.case, key.metric) == ('Triad %threads=all', 'bandwidth.nt')
    found = variance.analyse(measured)
    assert found.counts == {'node': 2, 'session': 6, 'process': 18, 'round': 360}
    assert found.probes['core_to_core'].within > 0.9 and found.probes['clock'].within < 0.1
    assert all(component.variance is not None for component in found.components.values())
    code, told = command(kept)
    assert code == 0 and 'made: 6 sessions from 2027' in told and '2 nodes' in told
    table = told[told.index('unexplained'):]
    assert 0 < table.index('bandwidth.nt') < table.index('efficiency.2')
    assert '20.6' in table and '99 / 99' in table
    assert 'the probes are not known, because the record is not: Scaling efficiency.2' in told


def test_the_page_opens_offline_and_holds_every_metric(kept, tmp_path):
    code, told = command(kept, '--output', str(tmp_path / 'new' / 'page.html'))
    text = (tmp_path / 'new' / 'page.html').read_text()
    assert code == 0 and 'page.html' in told
    assert "default-src 'none'" in text and text.count('<div class="plot">') == 1
    assert all(part in text for part in ('bandwidth.nt', '360/18/6/2', 'efficiency.2', '120/6/6/1', 'core to core'))
    data = json.loads(text.split('<script type="application/json">')[1].split('</script>')[0])['data']
    lengths = {bar['name']: bar['x'] for bar in data}
    assert sum(map(sum, zip(*list(lengths.values())))) > 0


@pytest.mark.parametrize('options, code, told', [
    (['--last', '1'], 0, 'One session: nothing is known of the variance between sessions'), (['--metric', 'bandwidth', '-n', 'Triad'], 0, '1 metric'),
    (['-n', 'NoSuchTest'], 2, 'no samples in 6 sessions of made'), (['--metric', '('], 2, 'not a regular expression'),
    (['--system', 'other'], 2, 'no session of other in the archive')])
def test_a_part_of_the_archive_or_nothing(kept, options, code, told):
    found, out = command(kept, *options)
    assert found == code and told in out and (not code or '\n' not in out.strip())


def test_another_working_set_of_a_cache_is_another_metric(tmp_path):
    def of_session(number):
        case = process(np.random.default_rng(number))
        case['plumbline']['level'] = 'L2'
        case['plumbline']['metrics'][0]['record'] = 0
        case['plumbline']['records'][0] |= {'level': 'L2', 'working_set': 2**18 if number == 1 else 2**17}
        return [[case]]
    root = archive_of(tmp_path, 4, of_session)
    measured, = archived.read(root).metrics.values()
    assert measured.session.tolist() == [0, 2, 3]
    code, told = command(root)
    assert code == 0 and 'with which it is another metric: samples of Triad %threads=all bandwidth.nt.' in ' '.join(told.split())


def test_without_probes_the_components_are_told_and_why_nothing_is_explained(tmp_path):
    chance = np.random.default_rng(12)
    root = archive_of(tmp_path, 2, lambda _: [[process(chance, probes=False)]])
    code, told = command(root)
    assert code == 0 and 'No probes stand beside these samples' in told and 'Triad' in told


def test_the_record_is_known_by_its_index_or_by_its_only_name():
    row = {'record': None, 'subject': 'nt', 'samples': [1.0] * 4}
    records = [made_report.measurement(variant='nt', seconds=[0.5] * 4), made_report.measurement(variant='nt', role='limit', seconds=[0.5] * 4)]
    assert archived.record_of(row, records) is records[0]
    assert archived.record_of({**row, 'record': 1}, records) is records[1]
    assert archived.record_of(row, records + records) is None            # two of this name
    assert archived.record_of({**row, 'samples': [1.0]}, records) is None     # not sample by sample
    assert archived.record_of({**row, 'samples': [1.0]}, records, np.array([3])) is records[0]
    assert archived.record_of({**row, 'samples': [1.0]}, records, np.array([4])) is None
    assert archived.record_of({**row, 'record': 7}, records) is None
    other = {'state': {}, 'value': 9, 'n': 2, 'samples': [9.0, 8.0], 'rounds': [1, 2]}
    row = {'samples': [5.0, 6.0, 7.0], 'rounds': [0, 3, 4], 'states': json.dumps([other, other]), 'processes': None, 'record': 7}
    (record, samples, rounds), = archived.of_processes(row)
    assert (record, samples.tolist(), rounds.tolist()) == (7, [5, 9, 8, 6, 7], [0, 1, 2, 3, 4])
    plain = {'samples': [5.0, 6.0], 'rounds': None, 'states': json.dumps([{'value': 9}]), 'processes': None, 'record': None}
    (_, samples, rounds), = archived.of_processes(plain)
    assert samples.tolist() == [5, 6] and rounds is None
    of = [{'process': 0, 'n': 2, 'record': 1}, {'process': 2, 'n': 1, 'record': 5}]
    other = {'samples': [8.0, 9.0], 'rounds': [1, 1], 'processes': [{'process': 1, 'n': 1, 'record': 3}, {'process': 2, 'n': 1, 'record': 5}]}
    row = {'samples': [1.0, 2.0, 3.0], 'rounds': [0, 1, 0], 'states': json.dumps([other]), 'processes': json.dumps(of), 'record': 1}
    found = [(record, samples.tolist(), rounds.tolist()) for record, samples, rounds in archived.of_processes(row)]
    assert found == [(1, [1, 2], [0, 1]), (3, [8], [1]), (5, [3, 9], [0, 1])]


def test_values_without_a_logarithm_are_left_out_and_named(tmp_path):
    chance = np.random.default_rng(14)
    fits = made_report.metric('bandwidth.nt', 5.0, samples=[4.0, 5.0, 6.0], n=3)
    zero = made_report.metric('overlap.nt', 0.0, '1', samples=[0.0, 0.1], n=2)
    none = made_report.metric('bandwidth.gone', float('nan'), samples=None, n=0, verdict='FAIL')
    root = archive_of(tmp_path, 2, lambda _: [[process(chance, metrics=[fits, zero, none])]])
    code, told = command(root)
    assert code == 0 and 'Skipped, for values that have no logarithm: Triad %threads=all overlap.nt' in told
    assert 'gone' not in told


@pytest.mark.parametrize('sessions, case, code, told', [
    (0, None, 2, 'no session at all in the archive; plumbline report archives a run'),
    (1, made_report.case(result='fail', fail_phase='sanity', fail_reason='ended early'), 2, 'no samples in 1 sessions of made'),
    (2, made_report.case('Odd %x=[/bold]', made_report.result(made_report.metric('bandwidth.nt', samples=[1.0, 2.0, 3.0], n=3))), 0, 'Odd %x=[/bold]')])
def test_what_measured_nothing_is_no_sample_and_no_name_is_markup(tmp_path, sessions, case, code, told):
    found, out = command(archive_of(tmp_path, sessions, lambda _: [[case]]))
    assert found == code and told in out


def test_one_session_is_in_memory_at_a_time(kept, monkeypatch):
    '''The records are parsed of one session's rows, when their turn has come.'''
    seen, load = [], archive.load_columns
    monkeypatch.setattr(archive, 'load_columns', lambda path, columns: seen.append(path) or load(path, columns))
    every = archived.pattern('', '')
    rows = (row for path in archive.sessions(kept) for row in archived._rows(path, every, every, events.Names([])))
    next(rows)
    assert len(seen) == 1
