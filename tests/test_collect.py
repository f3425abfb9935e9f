'''What a node of a sweep has read of its own run report, in its job: taken as it is where that is whole, read anew where it is not.'''

import json
from pathlib import Path

import pytest

import made_report
from plumbline.sweep import node, results, state

PLAN = {'id': 's', 'nodes': {'n1': 'h'}, 'partition': 'made:cpu', 'command': [], 'access': [], 'pace': {}, 'checks': 1}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    '''The folder of a node that has measured, and what collects it.'''
    monkeypatch.setattr(results, 'ARCHIVE', tmp_path / 'archive')
    state.create(tmp_path / 's', PLAN, 'job')
    folder = tmp_path / 's/n1'
    (folder / 'claim').mkdir(parents=True)
    (folder / node.CPUS).write_text('4\n')
    made_report.write_report(folder / node.REPORT, [made_report.case(plumbline=made_report.result(made_report.metric(value=7.0)))])
    return folder, lambda: results.collect(state.load(tmp_path / 's'), state.Node('n1', 'h'))


def test_what_a_node_has_read_itself_is_not_read_again(measured, monkeypatch):
    folder, collect = measured
    by_driver, why = collect()
    assert why == '' and by_driver['counts']['PASS'] == 1 and by_driver['machine']['cpus'] == 4
    Path(by_driver['archived']).unlink()
    results.prepare(folder, 'n1')
    assert len(list(folder.rglob('*.parquet'))) == 1
    monkeypatch.setattr(results, '_examined', None)
    assert collect() == (by_driver, '') and Path(by_driver['archived']).exists() and not list(folder.rglob('*.parquet'))


def test_a_driver_that_was_killed_before_it_said_so_collects_again(measured):
    folder, collect = measured
    results.prepare(folder, 'n1')
    assert collect() == collect()


@pytest.mark.parametrize('spoil', [
    lambda left: left.update(archived='../../etc/x.parquet'), lambda left: left.update(archived=7), lambda left: left['found'].pop('machine'),
    lambda left: left['found'].update(counts=[]), lambda left: left.pop('found'), lambda left: left.update(found=[1]),
    lambda left: left.update(found=None, why=3), lambda left: left.update(archived=left['archived'].replace('date=', 'date=9'))])
def test_what_a_node_left_and_cannot_be_is_read_anew(measured, spoil):
    folder, collect = measured
    expected = collect()
    results.prepare(folder, 'n1')
    left = json.loads((folder / results.PREPARED).read_text())
    spoil(left)
    (folder / results.PREPARED).write_text(json.dumps(left))
    assert collect() == expected


@pytest.mark.parametrize('name', ['*.parquet', results.PREPARED])
def test_what_a_full_disk_has_cut_off_is_read_anew(measured, name):
    folder, collect = measured
    expected = collect()
    results.prepare(folder, 'n1')
    path = next(folder.rglob(name))
    path.write_bytes(path.read_bytes()[:20])
    assert collect() == expected


def test_why_a_node_measured_nothing_is_handed_on_and_its_session_is_archived(measured):
    folder, collect = measured
    made_report.write_report(folder / node.REPORT, [made_report.case(result='skip', plumbline={})])
    results.prepare(folder, 'n1')
    found, why = collect()
    assert found is None and why.startswith('nothing was measured') and len(list(results.ARCHIVE.rglob('*.parquet'))) == 1


def test_the_job_says_why_it_could_not_and_the_driver_meets_it_again(measured, monkeypatch, capsys):
    folder, collect = measured
    (folder / node.REPORT).write_text('{')
    monkeypatch.chdir(folder)
    monkeypatch.setattr('sys.argv', ['results', 'n1'])
    results.main()
    assert 'run.json: the run report is not JSON' in capsys.readouterr().err
    with pytest.raises(results.PlumblineError, match='the run report is not JSON'):
        collect()
