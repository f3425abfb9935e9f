'''What a node of a sweep has read of its own run report, in its job: taken as it is where that is whole, read anew where it is not.'''

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import made_report
import sample_session as sample
from plumbline import report
from plumbline.cli import sweep as command
from plumbline.errors import PlumblineError
from plumbline.nodes import events, history
from plumbline.report import outliers as terminal, sweep_page
from plumbline.store import archive
from plumbline.sweep import findings, lacking, node, outliers, remeasure, results, state

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
    assert why == '' and sum(its.get('PASS', 0) for its in by_driver['counts'].values()) == 1 and by_driver['machine']['cpus'] == 4
    Path(by_driver['archived']).unlink()
    results.prepare(folder, 'n1', 0)
    assert len(list(folder.rglob('*.parquet'))) == 1
    monkeypatch.setattr(results, '_examined', None)
    assert collect() == (by_driver, '') and Path(by_driver['archived']).exists() and not list(folder.rglob('*.parquet'))


def test_a_node_whose_command_is_not_known_is_collected(measured):
    folder, collect = measured
    report = json.loads((folder / node.REPORT).read_text())
    report['session_info']['cmdline'] = ''
    (folder / node.REPORT).write_text(json.dumps(report))
    results.prepare(folder, 'n1', 0)
    assert collect()[1] == ''


def test_a_driver_that_was_killed_before_it_said_so_collects_again(measured):
    folder, collect = measured
    results.prepare(folder, 'n1', 0)
    assert collect() == collect()


@pytest.mark.parametrize('in_job', [True, False])
def test_an_archive_that_cannot_be_written_fails_the_node_alone_and_nothing_is_lost(measured, tmp_path, in_job):
    folder, collect = measured
    if in_job:
        results.prepare(folder, 'n1', 0)
    (tmp_path / 'archive').write_text('no folder')
    with pytest.raises(PlumblineError, match='cannot write the archive: .*make room'):
        collect()
    (tmp_path / 'archive').unlink()
    assert collect()[0]['machine']['cpus'] == 4


def test_what_a_node_s_job_cannot_write_is_a_line(measured, monkeypatch, capsys):
    monkeypatch.chdir(measured[0])
    monkeypatch.setattr('sys.argv', ['results', 'n1', '0'])
    (measured[0] / results.PREPARED).mkdir()
    results.main()
    assert capsys.readouterr().err.startswith('plumbline: [Errno 21] Is a directory')


def _slower(loss):
    '''Twelve metrics, each within the bounds of its references.'''
    expected = {'deviation': 0.025, 'freedom': 9.0}
    return [made_report.case(plumbline=made_report.result(*(
        made_report.metric(f'bandwidth.{name}', 1000 * (1 - loss), expected=expected | {'measured': measured}, reference=[1000, -0.15, None])
        for name, measured in sample.HISTORY.items())))]


@pytest.mark.parametrize('cases, status, told', [
    (_slower(0.0), 0, 'speed 12 PASS'), (_slower(0.1), 1, 'speed 12 PASS; FAIL as a whole: memory, one thread, rates and times'),
    ([*_slower(0.0), made_report.case('Expected', {}, 'fail', fail_phase='sanity', fail_reason='dimm.count is 7, expected 8')], 1,
     'software 1 FAIL; speed 12 PASS; FAIL: Expected: sanity: dimm.count is 7, expected 8'),
    ([*_slower(0.0), made_report.case('Pingpong', made_report.result(skipped=[{'metric': 'all', 'reason': 'no MPI', 'recorded': 3}], records=[]), 'skip')],
     3, 'speed 12 PASS; 1 not measured; NOT JUDGED: Pingpong memory one, not measured (no MPI; references are recorded of 3 of its metrics)')])
def test_a_sweep_says_of_a_node_what_the_node_s_own_report_says(measured, monkeypatch, tmp_path, capsys, cases, status, told):
    folder, collect = measured
    monkeypatch.setattr(events, 'FOLDER', tmp_path / 'nodes')
    made_report.write_report(folder / node.REPORT, cases)
    results.prepare(folder, 'n1', 0)
    work = state.load(folder.parent)
    work.begin()
    work.record(work.nodes['n1'], state.OVER, state=state.MEASURED, **collect()[0])
    ended = command._status(work, command._end(work), 0)
    assert ended == status == report.Session(archive.load_session(results.ARCHIVE)).exit_status()
    assert f'n1  measured        {told}\n' in capsys.readouterr().out
    found = outliers.look(work.folder)
    page = sweep_page.page(found)
    assert (f'not in order by its own report: n1: {told}' in page) == bool(status)
    findings.record(work, found)
    assert history.read('made', None).of('n1').last.verdict == ('FAIL' if status == 1 else 'PASS')


@pytest.mark.parametrize('in_job', [True, False])
def test_a_node_whose_reframe_failed_for_no_verdict_is_missing(measured, monkeypatch, in_job):
    folder, collect = measured
    (folder / node.ENDED).write_text('1\n')
    if in_job:
        monkeypatch.chdir(folder)
        monkeypatch.setattr('sys.argv', ['results', 'n1', '1'])
        results.main()
        monkeypatch.setattr(results, '_examined', None)
    assert collect() == (None, f'ReFrame ended with exit code 1, and no verdict says why: see its output in {folder / node.OUTPUT}')


def test_what_the_verdicts_explain_needs_no_other_reason(measured):
    folder, collect = measured
    (folder / node.ENDED).write_text('1\n')
    failed = made_report.metric(value=7.0, reference=[10.0, -0.1, None], verdict='FAIL')
    made_report.write_report(folder / node.REPORT, [made_report.case(result='fail', fail_phase='performance', plumbline=made_report.result(failed))])
    assert collect()[0]['status'] == 1


@pytest.mark.parametrize('ruling, status', [('PASS', None), ('FAIL', 1)])
def test_a_node_whose_session_was_broken_off_is_missing_unless_it_failed(measured, ruling, status):
    folder, collect = measured
    (folder / node.ENDED).write_text('1\n')
    cases = [made_report.case(plumbline=made_report.result(made_report.metric(verdict=ruling))),
             made_report.case('Test', result='abort', fail_phase='run', fail_reason='aborted due to ForceExitError')]
    made_report.write_report(folder / node.REPORT, cases)
    found, why = collect()
    assert (found and found['status'], why.startswith('BROKEN OFF by SIGTERM')) == (status, status is None)


def swept(folder, without=(), operations=('write', 'write_fsync')):
    '''A sweep of eight nodes on disk; those ``without`` could not measure the last operation.'''
    work = state.create(folder, PLAN | {'nodes': {f'n{number}': 'h' for number in range(1, 9)}}, 'job')
    work.begin()
    for number, one in enumerate(work.nodes.values()):
        (work.of(one) / 'claim').mkdir(parents=True)
        (work.of(one) / node.CPUS).write_text('4\n')
        its = operations[:-1] if one.name in without else operations
        told = made_report.result(*(made_report.metric(f'bandwidth.c.{operation}', reference=None, verdict='NO REFERENCE') for operation in its))
        if one.name in without:
            told['skipped'] = [{'metric': 'speedup.c.write_fsync', 'reason': 'of another metric'},
                               {'metric': 'all of it', 'parts': ['write_fsync'], 'reason': 'slow'}]
        told['machine'] = told['machine'] | {'hostname': one.name}
        made_report.write_report(work.of(one) / node.REPORT, [made_report.case('Files', told, job_nodelist=[one.name])],
                                 start=1.8e9 + 1000 * len(folder.parts), uuid=f'{number:08}-0000')
        work.record(one, state.OVER, state=state.MEASURED, **results.collect(work, one)[0])
    return work


@pytest.mark.slow
@pytest.mark.parametrize('without, again, named', [
    (['n8'], None, set()), (['n8'], ['n8'], {'n8'}), (['n8'], [], set()),       # measured again
    (['n7', 'n8'], ['n7', 'n8'], {'n7', 'n8'}), (['n7', 'n8'], ['n7'], {'n7'}),
    (['n8'], ['n6', 'n7', 'n8'], set()),                                        # who has it changes
    (['n6', 'n7', 'n8'], None, set())])                                         # more than a quarter of the nodes
def test_nodes_that_lack_a_part_of_a_test_are_named_if_they_lack_it_again(tmp_path, monkeypatch, without, again, named):
    monkeypatch.setattr(results, 'ARCHIVE', tmp_path / 'archive')
    monkeypatch.setattr(events, 'FOLDER', tmp_path / 'nodes')
    work = swept(tmp_path / 's', without)
    second = remeasure.prepare(work)
    assert (second and set(second.nodes)) == (None if len(without) == 3 else {*without, *(f'n{number}' for number in range(1, 7))})
    if again is not None:
        shutil.rmtree(second.folder)
        swept(second.folder, again)
    found = outliers.look(work.folder)
    assert set(found.lacking) == (named if again is not None else set(without) if second else set())
    assert (set(found.without), found.named, found.exit_status) == (named, [], 1 if named else 0)
    remark = 'n8 lacks a part of Files, which most of its peers have: bandwidth.c.write_fsync: slow'
    assert (remark + ' (not measured again)' in list(terminal.remarks(found))) == bool(second and again is None)
    if 'n8' in named:
        assert found.lacking['n8'] == {'Files': lacking.Lack(False, ('bandwidth.c.write_fsync',), True, 'bandwidth.c.write_fsync: slow')}
        assert remark in list(terminal.remarks(found))
        assert f"{'2 nodes' if 'n7' in named else '1 node'} without a test that peers have, or a part of one" in terminal.headline(found)
        findings.record(work, found)
        assert 'not all of Files: bandwidth.c.write_fsync: slow' in history.read('made', None).of('n8').doubt


@pytest.mark.parametrize('ahead, told', [(0, ''), (-86400, 'its clock is off by 86'), (3600, 'its clock is off by 3')])
def test_a_node_whose_clock_is_wrong_is_told(measured, ahead, told):
    '''Clients set the times of files on some file systems.'''
    folder, _ = measured
    (folder / node.CLAIM).write_text('7\n')
    for name in ('claim', node.CLAIM) if ahead > 0 else ('claim',):
        os.utime(folder / name, (time.time() + ahead,) * 2)
    work, one = state.load(folder.parent), state.Node('n1', 'h', job=7)
    said = work.wrong_clock(one)
    assert said.startswith(told) and bool(said) == bool(told) and work.times(one, 5)['began'] <= time.time()


@pytest.mark.parametrize('spoil', [
    lambda left: left.update(archived='../../etc/x.parquet'), lambda left: left.update(archived=7), lambda left: left['found'].pop('machine'),
    lambda left: left['found'].update(counts=[]), lambda left: left['found'].update(counts={'PASS': 3}),
    lambda left: left.pop('found'), lambda left: left.update(found=[1]),
    lambda left: left.update(found=None, why=3), lambda left: left.update(archived=left['archived'].replace('date=', 'date=9'))])
def test_what_a_node_left_and_cannot_be_is_read_anew(measured, spoil):
    folder, collect = measured
    expected = collect()
    results.prepare(folder, 'n1', 0)
    left = json.loads((folder / results.PREPARED).read_text())
    spoil(left)
    (folder / results.PREPARED).write_text(json.dumps(left))
    assert collect() == expected


@pytest.mark.parametrize('text', ['', 'four'])
def test_a_node_without_its_number_of_cpus_is_not_taken_for_another_kind(measured, text):
    folder, collect = measured
    (folder / node.CPUS).write_text(text)
    assert collect() == (None, f'{folder / node.CPUS} does not say how many CPUs its job had: was the disk full?')


@pytest.mark.parametrize('name', ['*.parquet', results.PREPARED])
def test_what_a_full_disk_has_cut_off_is_read_anew(measured, name):
    folder, collect = measured
    expected = collect()
    results.prepare(folder, 'n1', 0)
    path = next(folder.rglob(name))
    path.write_bytes(path.read_bytes()[:20])
    assert collect() == expected


def test_why_a_node_measured_nothing_is_handed_on_and_its_session_is_archived(measured):
    folder, collect = measured
    made_report.write_report(folder / node.REPORT, [made_report.case(result='skip', plumbline={})])
    results.prepare(folder, 'n1', 0)
    found, why = collect()
    assert found is None and why.startswith('nothing was measured') and len(list(results.ARCHIVE.rglob('*.parquet'))) == 1


def test_the_job_says_why_it_could_not_and_the_driver_meets_it_again(measured, monkeypatch, capsys):
    folder, collect = measured
    (folder / node.REPORT).write_text('{')
    monkeypatch.chdir(folder)
    monkeypatch.setattr('sys.argv', ['results', 'n1', '0'])
    results.main()
    assert 'run.json: the run report is not JSON' in capsys.readouterr().err
    with pytest.raises(results.PlumblineError, match='the run report is not JSON'):
        collect()


def collected(folder, cases_of):
    '''A sweep that has collected the nodes of a dictionary name -> test cases, and the files of the archive.'''
    state.create(folder, PLAN | {'id': folder.name, 'nodes': dict.fromkeys(cases_of, 'h')}, 'job')
    work, files = state.load(folder), []
    work.begin()
    for name, cases in cases_of.items():
        (folder / name / 'claim').mkdir(parents=True)
        (folder / name / node.CPUS).write_text('4\n')
        made_report.write_report(folder / name / node.REPORT, [case | {'job_nodelist': [name]} for case in cases], uuid=f'{name}345678-0')
        told, why = results.collect(work, work.nodes[name])
        assert why == ''
        work.record(work.nodes[name], state.OVER, state=state.MEASURED, **told)
        files.append(Path(told['archived']))
    return work, files


def test_the_errors_of_nodes_are_by_what_the_processes_of_all_differ_by(measured, tmp_path):
    '''The intervals say 5.9 %, as of any three processes; one node's processes do differ, and one measured once.'''
    def of(spread):
        processes = {'processes': [{'process': number, 'n': 1, 'record': 0} for number in range(3)]} if spread else {}
        return made_report.case('Triad', made_report.result(made_report.metric(
            value=100.0, spread=spread or 0.0, interval=[100 * np.exp(-0.059), 100 * np.exp(0.059)], **processes)))
    spreads = {f'n{number}': 0.003 for number in range(1, 12)} | {'n12': 0.1, 'n13': None}
    work, _ = collected(tmp_path / 't', {name: [of(spread)] for name, spread in spreads.items()})
    found = dict(results.frame(work.folder).select(pl.col('node').cast(pl.String), 'error').rows())
    assert found.pop('n13') == pytest.approx(0.059 / 1.96)
    assert found.pop('n12') > 0.02 and all(0.001 < error < 0.01 for error in found.values()) and len(found) == 11


def test_repetitions_of_a_test_are_one_value_of_a_node(measured, tmp_path):
    '''Else it were its own peer.  Columns of a newer Plumbline are passed over.'''
    def of(number, value):
        return made_report.case(f'Triad %.repeat_no={number}', made_report.result(made_report.metric(value=value)), unique_name=f'Triad_{number}')
    values = {'n1': (7.0, 9.0, 8.0), 'n2': (5.0,)}
    work, files = collected(tmp_path / 't', {name: list(map(of, range(3), its)) for name, its in values.items()})
    for path in files:
        pl.read_parquet(path).with_columns(novel=pl.lit(1)).write_parquet(path, metadata=pl.read_parquet_metadata(path))
    rows = results.frame(work.folder).select('node', 'check', 'name', 'value', 'state', 'states').rows()
    assert rows == [('n2', 'Triad', 'bandwidth.plain', 5.0, None, None), ('n1', 'Triad', 'bandwidth.plain', 8.0, None, None)]
