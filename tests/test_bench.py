'''What `plumbline bench` says of a figure, and that one kernel's failure does not lose the others' figures.'''

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import sample_session as sample
from made_report import case, metric, result, write_report
from plumbline import bench
from plumbline.bench import paper, pingpong, scale
from plumbline.bench.common import Figure
from plumbline.cli import app
from plumbline.errors import PlumblineError
from plumbline.store import archive
from plumbline.sweep import results, state

SAMPLES = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize('figure, line', [
    (Figure('a / b', SAMPLES, 2.5), 'met           a / b: 3.000 (2.000 .. 4.000, 5 samples), at least 2.5'),
    (Figure('a / b', SAMPLES, 3.5, remark='then 4'), 'MISSED        a / b: 3.000 (2.000 .. 4.000, 5 samples), at least 3.5, then 4'),
    (Figure('a / b', SAMPLES, most=2), 'MISSED        a / b: 3.000 (2.000 .. 4.000, 5 samples), at most 2'),
    (Figure('a / b', SAMPLES), 'no target     a / b: 3.000 (2.000 .. 4.000, 5 samples)'),
    (Figure('a / b', np.array([]), remark='b is not there'), 'NOT MEASURED  a / b: b is not there'),
])
def test_the_line_of_a_figure(figure, line):
    assert figure.line == line
    assert figure.met == (not line.startswith(('MISSED', 'NOT')))


def test_what_cannot_be_measured_is_said_and_the_others_are_measured(monkeypatch):
    def failing(machine, pairs):
        raise PlumblineError('no library to compare with')

    def measured(machine, pairs):
        yield Figure('a / b', SAMPLES, 1)

    monkeypatch.setattr(bench, 'Machine', lambda folder: None)
    monkeypatch.setattr(bench, 'FIGURES', {'one': failing, 'other': measured})
    done = CliRunner().invoke(app, ['bench', 'one', 'other'])
    assert done.exit_code == 1
    assert done.output.splitlines()[0] == 'NOT MEASURED  one: no library to compare with'
    assert done.output.splitlines()[1].startswith('met           a / b')
    assert CliRunner().invoke(app, ['bench', 'other']).exit_code == 0
    assert str(CliRunner().invoke(app, ['bench', 'other', 'triads']).exception) == (
        'triads: no such kernel; there are one, other; and `verdicts` or `sweeps`, alone')
    assert str(CliRunner().invoke(app, ['bench', 'other', '--simulate']).exception) == (
        '--simulate: it is that of `verdicts` or `sweeps`: name one of them')


def test_the_share_of_timed_loops_is_of_every_environment_or_said_to_be_unknown():
    times = {'time_run': 10.0, 'timed_seconds': 4.0}
    rows = sample.frame(*(sample.case('pingpong', [sample.metric('of_limit.x', 0.9)], environ=mpi) for mpi in ('gnu-openmpi', 'gnu-mpich')))
    assert bench.overhead(rows.with_columns(**{name: pl.lit(value) for name, value in times.items()})).value == pytest.approx(0.4)
    assert bench.overhead(None).line.startswith('NOT MEASURED  timed loops')


def test_a_run_without_a_metric_is_not_multiplied(monkeypatch, tmp_path):
    monkeypatch.setattr(scale, 'REPORTS', tmp_path)
    (tmp_path / 'reframe').mkdir()
    path = write_report(tmp_path / 'reframe/run-report-0.json', [case(result='fail', fail_reason='no compiler')])
    for name in ('history', 'report_page', '_on_cluster'):
        monkeypatch.setattr(scale, name, lambda *_, name=name: [Figure(name, SAMPLES)])
    archiving, *others = scale.figures(type('Here', (), {'place': tmp_path}), 1)
    assert archiving.line == f'NOT MEASURED  archiving, ranking: {path} has no metric to multiply; run make health first'
    assert [figure.what for figure in others] == ['history', 'report_page', '_on_cluster']


def test_a_pingpong_is_compared_with_the_mean_that_imb_prints():
    record = {'variant': 'standard', 'size': 256, 'passes': 1, 'seconds': [1.0, 1.0, 4.0], 'options': {'messages': 1}}
    assert pingpong._ours(type('Each', (), {'run': lambda *_, **__: [record]})(), 'shm') == {256: 2}


@pytest.fixture
def measured(tmp_path):
    '''What one node measured: a dozen metrics of the core.'''
    metrics = [metric(f'bandwidth.v{number}', 1000.0 + number) for number in range(10, 22)]
    return pl.read_parquet(archive.archive(write_report(tmp_path / 'report.json', [case(plumbline=result(*metrics))]), tmp_path / 'archive'))


def test_a_sweep_on_paper_is_collected_and_read_a_few_files_at_a_time(tmp_path, monkeypatch, measured):
    for name, value in paper.write_slurm(tmp_path, 5).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(results, 'ARCHIVE', tmp_path / 'collected')
    sweep = paper.planned(tmp_path, 5)
    paper.step('submit', sweep)
    queued = state.load(sweep)
    assert [(node.phase, node.job) for node in queued.nodes.values()] == [(state.QUEUED, number) for number in range(1, 6)] and queued.left == 5
    paper.leave_measured(sweep, measured)
    paper.step('collect', sweep)
    assert all(node.measured for node in state.load(sweep).nodes.values()) and state.load(sweep).left == 0
    monkeypatch.setattr(results, '_AT_ONCE', 2)
    frame = results.frame(sweep).sort('name', 'node')
    assert frame['node'].to_list() == (11 * ['p1', 'p2', 'p3', 'p4', 'p5'] + ['p2', 'p3', 'p4', 'p5']) and frame['kind'].unique().to_list() == ['made, 4 CPUs, 1 GiB']
    told = pl.concat(map(pl.read_parquet, (tmp_path / 'collected').rglob('*.parquet'))).sort('name', 'hostname')
    assert frame['value'].to_list() == told['value'].to_list() and frame['error'][0] == pytest.approx(0.01 / 1.96, rel=0.3)
    damaged = next((tmp_path / 'collected').rglob('session-4.parquet'))
    damaged.write_bytes(damaged.read_bytes()[:1000])
    with pytest.raises(PlumblineError, match=f'^{damaged}: cannot read the archive: '):
        results.frame(sweep)


def test_the_share_of_time_is_compared_whatever_the_state_of_the_host(tmp_path, measured):
    '''A node that is alone in its state has peers in it.'''
    placed = pl.lit('{"core_to_core.0": 3e-08}')
    time = measured.tail(1).with_columns(name=pl.lit('cpu_availability'), metric=pl.lit('cpu_availability'), subsystem=pl.lit('CPU availability'))
    pl.concat([measured, time]).with_columns(state=placed, states=placed).write_parquet(tmp_path / 'rows.parquet')
    rows = results._measured([tmp_path / 'rows.parquet'], measured.lazy().select('session', node=pl.lit('n1'), kind=pl.lit('alike')).unique())
    assert rows.filter(pl.col('state').is_null() & pl.col('states').is_null())['name'].to_list() == ['cpu_availability'] and rows.height == 13


@pytest.mark.slow
def test_the_memory_of_a_command_is_not_that_of_whoever_starts_it(tmp_path):
    mine = np.ones(2 * 10**7)        # 160 MB
    assert paper.cost_of(['plumbline', '--help'], tmp_path).megabytes < mine.nbytes / 1e6
    with pytest.raises(PlumblineError, match='No such option'):
        paper.cost_of(['plumbline', 'rank', '--none'], tmp_path)


@pytest.mark.reframe
def test_each_step_of_a_sweep_on_paper_is_measured_and_the_slow_node_is_named(tmp_path, monkeypatch, measured):
    costs = dict(paper.steps(tmp_path, 5, measured))
    assert list(costs) == ['plan', 'submit', 'collect', 'rank', 'page', 'rank, ten sweeps before', 'follow up, ten sweeps before'] and costs.keys() <= paper._LIMITS.keys()
    assert all(cost.seconds > 0 and cost.of_cpu > 0 and cost.megabytes > 20 for cost in costs.values())
    assert all(': bandwidth.v21: no reason is known' in costs[name].said for name in costs if 'rank' in name) and '5 jobs, 100 at a time' in costs['plan'].said
    assert (tmp_path / 'sweep/index.html').exists()
    assert 'sweeps before it that say how nodes scatter, too: 10' in costs['rank, ten sweeps before'].said and 'before it' not in costs['rank'].said
    assert len((tmp_path / 'reports/nodes/paper.jsonl').read_text().splitlines()) == 10 * 5 + 5 + 1 + 1       # measured; the outlier, the lacking one
    cost_of = paper.cost_of     # the plan is the same again
    monkeypatch.setattr(paper, 'cost_of', lambda words, *rest, **more: costs['plan'] if '--dry-run' in words else cost_of(words, *rest, **more))
    monkeypatch.setattr(paper, 'SLOW', 1.0)
    (tmp_path / 'equal').mkdir()
    with pytest.raises(PlumblineError, match='plumbline rank does not name p5, or not alone: sweep sweep: 5 of 5 nodes measured'):
        dict(paper.steps(tmp_path / 'equal', 5, measured))
