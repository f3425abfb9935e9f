'''The archive, from a true run report of ReFrame and from made-up ones.'''

import errno
import json
import os
import pathlib
import re
from xml.etree import ElementTree

import polars as pl
import pytest
from typer.testing import CliRunner

import rfm
import sample_session as sample
from made_report import MACHINE, case, metric, of_another_suite, result, write_report
from plumbline import report
from plumbline.analysis.lines import verdict_lines
from plumbline.analysis.session import Session
from plumbline.cli import app
from plumbline.errors import PlumblineError
from plumbline.store import archive

CONFIG = '''
site_configuration = {
    'systems': [{'name': 'tiny', 'hostnames': ['.*'], 'partitions': [{
        'name': 'cpu', 'scheduler': 'local', 'launcher': 'local', 'environs': ['builtin']}]}],
    'environments': [{'name': 'builtin'}],
    'general': [{'trap_job_errors': True}],
}
'''


@pytest.fixture(scope='module')
def reframe_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp('reframe')
    (folder / 'config.py').write_text(CONFIG)
    checks = pathlib.Path(__file__).with_name('tiny_checks.py')
    place = rfm.Workplace(folder, config=folder / 'config.py')
    done = place.reframe('-r', '--exec-policy=serial', '--max-retries=1', '--prefix', folder, checks=checks)
    assert done.report, done.out[-2000:]
    return place.report


@pytest.fixture(scope='module')
def rows(reframe_report, tmp_path_factory):
    root = tmp_path_factory.mktemp('archive')
    archive.archive(reframe_report, root)
    return archive.load_session(root)


def of(frame, check, run=0):
    return frame.filter(check=check, run=run).to_dicts()


@pytest.mark.slow
def test_metrics_of_a_true_report(rows):
    plain, nt = rows.filter(display_name='Good %level=memory').to_dicts()
    assert plain['check'] == 'Good' and plain['test'].startswith('Good_')
    assert plain['name'] == 'bandwidth.plain' and plain['samples'] == [2, 3, 4]
    assert (plain['reference'], plain['lower'], plain['upper']) == (3, -0.5, None)
    assert (plain['interval_low'], plain['interval_high'], plain['limit']) == (2, 4, 5)
    assert plain['verdict'] == 'PASS' and plain['level'] == 'memory'
    assert plain['result'] == 'pass' and plain['fixture'] is False and plain['hostname']
    assert plain['time_total'] > 0 and plain['timed_seconds'] == 9
    assert nt['verdict'] == 'NO REFERENCE' and nt['reference'] is None
    assert json.loads(plain['detail'])['threads'] == 'one' and nt['detail'] is None
    assert 'metrics' not in json.loads(plain['detail'])


def test_session_of_a_true_report(rows, reframe_report):
    report = json.loads(reframe_report.read_text())
    info = json.loads(rows['session_info'][0])
    assert info['version'] == '4.10.4' and '--max-retries=1' in info['cmdline']
    assert rows['session_info'].null_count() == len(rows) - 1
    assert rows['session'].n_unique() == 1 and rows['session'][0].endswith(info['uuid'][:8])
    assert rows['started'][0].timestamp() == pytest.approx(info['time_start_unix'], abs=1e-5)
    cases = {(c['unique_name'], r['run_index']) for r in report['runs'] for c in r['testcases']}
    assert set(rows.select('test', 'run').iter_rows()) == cases


@pytest.mark.parametrize('check, verdict, reason', [
    ('Silent', 'FAIL', 'measured nothing: the test passed without a metric'),
    ('Skipped', None, 'no counters here'),
    ('tiny_fixture', None, None),
    ('broken_fixture', 'FAIL', 'sanity: sanity error: no build'),
    ('OutOfSchema', 'FAIL', "result out of schema: field metrics/0: 'metric' is a required "
                            'property')])
def test_tests_without_metrics_have_one_row(rows, check, verdict, reason):
    row, = of(rows, check)
    assert row['metric'] is None
    assert (row['verdict'], row['reason']) == (verdict, reason)


def test_a_dependent_names_what_failed(rows):
    row, = of(rows, 'Dependent')
    assert row['result'] == 'fail_deps' and row['verdict'] == 'FAIL'
    assert row['reason'].startswith('not run: broken_fixture')


def test_a_failed_test_with_passing_metrics_is_a_fail(rows):
    passed, failed = of(rows, 'Insane')
    assert (passed['name'], passed['verdict']) == ('bandwidth.plain', 'PASS')
    assert (failed['metric'], failed['verdict']) == (None, 'FAIL')
    assert failed['reason'] == 'sanity: sanity error: wrong result'


def test_unstable_is_not_made_a_fail(rows):
    row, = of(rows, 'Unstable')
    assert row['result'] == 'fail' and row['verdict'] == 'UNSTABLE'


def test_retries(rows):
    assert {row['run'] for row in rows.filter(check='Insane').to_dicts()} == {0, 1}
    assert archive.final_rows(rows).filter(check='Insane')['run'].unique().to_list() == [1]
    assert len(archive.final_rows(rows).filter(check='Good')) == 4


def test_a_second_run_that_was_skipped_clears_nothing(tmp_path):
    slow = case('Test %threads=one', result(metric(verdict='FAIL', reason='slow')), 'fail', fail_phase='performance')
    report = write_report(tmp_path / 'r.json', [slow, case('Other %threads=one', result(metric()))], [slow], [case('Test %threads=one', result='skip')])
    rows = archive.read(report)
    assert archive.final_rows(rows)['verdict'].to_list().count('FAIL') == 1
    for status in 0, 1:
        assert Session(rows, status).exit_status() == 1


def test_runs_are_repetitions_where_what_passed_ran_again(tmp_path):
    '''A mode may have the option, which no command line shows then.'''
    good, bad = (case(f'Test %threads={name}', result(metric()), end) for name, end in (('one', 'pass'), ('all', 'fail')))
    archive.archive(write_report(tmp_path / 'r.json', [good, bad], [good, {**bad, 'result': 'pass'}]), tmp_path)
    rows = archive.load_session(tmp_path)
    lines = verdict_lines(rows)
    assert set(rows['run']) == {0} and sorted(line.verdict for line in lines) == ['FAIL', *['PASS'] * 4] and not any(line.retried for line in lines)


def test_a_repetition_is_retried_before_the_next_one(tmp_path):
    '''ReFrame counts what its retry has cleared, and that explains its exit code.'''
    good, bad = (case(f'Test %threads={name}', result(metric()), end) for name, end in (('one', 'pass'), ('all', 'fail')))
    now_good = {**bad, 'result': 'pass'}
    archive.archive(write_report(tmp_path / 'r.json', [good, bad], [now_good], [good, now_good]), tmp_path)
    said = Session(archive.load_session(tmp_path), 1)
    assert [line.verdict for line in said.verdicts] == ['PASS'] * 4 and said.exit_status() == 0
    assert [line.retried.partition(';')[0] for line in said.verdicts if line.retried] == ['PASS at run 2 of 2']
    assert Session(archive.load_session(tmp_path).filter(run=0), 1).exit_status() == 1


def test_an_error_of_reframe_is_not_explained_by_what_it_tolerated():
    rows = sample.frame(sample.case('Test', [sample.metric('of_limit.a', 0.9) | {'sees': 0.1}, sample.metric('of_limit.b', 0.8, verdict='UNSTABLE')], detail={}))
    assert [Session(rows, status).exit_status() for status in (0, 1)] == [0, 2]


# --- made-up reports -----------------------------------------------------------------------------

def archived(folder, *cases, **options):
    archive.archive(write_report(folder / 'report.json', list(cases), **options), folder / 'a')
    return archive.load_session(folder / 'a').to_dicts()


def test_file_and_folders(tmp_path):
    report = write_report(tmp_path / 'r.json', [case(plumbline=result(metric()))])
    path = archive.archive(report, tmp_path / 'a')
    assert path == tmp_path / 'a/system=made/date=2027-01-15/20270115T080000Z-12345678.parquet'
    assert archive.archive(report, tmp_path / 'a') == path
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert pl.read_parquet(path, hive_partitioning=False).schema == archive.SCHEMA


@pytest.mark.parametrize('changed, reason', [
    ({'result': 'fail', 'fail_phase': 'cleanup', 'fail_reason': 'os error: disk full\nmore'},
     'cleanup: os error: disk full'),
    ({'result': 'fail', 'fail_phase': 'performance', 'fail_reason': 'performance error: \n  x'},
     'performance: performance error: x'),
    ({'result': 'fail', 'fail_phase': 'run', 'fail_reason': None},
     'run: ReFrame gives no reason'),
    ({'result': 'abort'}, 'aborted before its end'),
    ({'result': 'xpass'}, 'passed although'),
    ({'result': '<unknown>'}, "result '<unknown>'")])
def test_every_other_end_is_a_fail(tmp_path, changed, reason):
    rows = archived(tmp_path, case(plumbline=result(metric()), **changed))
    assert [row['verdict'] for row in rows] == ['PASS', 'FAIL']
    assert reason in rows[1]['reason']


def cut_off(by, phase='run', *metrics):
    return case(plumbline=result(*metrics), result='abort', fail_phase=phase, fail_reason=f'aborted due to {by}')


@pytest.mark.parametrize('runs, code, lines', [
    ([[case(plumbline=result(metric())), cut_off('KeyboardInterrupt')]], 2, 1),
    ([[case(plumbline=result(metric(verdict='FAIL')), result='fail', fail_phase='performance', fail_reason='x'), cut_off('ForceExitError')]], 1, 1),
    ([[case(plumbline=result(metric(verdict='UNSTABLE'))), cut_off('ForceExitError')]], 2, 1),
    # A second run clears nothing of the first where it was broken off.
    ([[case(plumbline=result(metric(verdict='FAIL')), result='fail', fail_phase='performance', fail_reason='x')], [cut_off('ForceExitError')]], 1, 1),
    ([[cut_off('KeyboardInterrupt', 'cleanup', metric())]], 2, 1),      # it had passed
    ([[case(plumbline=result(metric())), cut_off('RunSessionTimeout')]], 2, 1),
    ([[case(plumbline=result(metric()))], [cut_off('RunSessionTimeout')]], 0, 1),       # a further repetition
    ([[case(plumbline=result(metric())), cut_off('AssertionError')]], 1, 2)])       # an error of its program
def test_what_broke_the_session_off_is_not_measured(tmp_path, runs, code, lines):
    for run in runs:
        for number, one in enumerate(run):
            one |= {'unique_name': f'Test_{number}', 'name': f'Test %number={number}'}
    archive.archive(write_report(tmp_path / 'r.json', *runs), tmp_path / 'a')
    for status in (0, int(code != 0)):
        said = Session(archive.load_session(tmp_path / 'a'), status)
        assert (said.exit_status(), len(said.verdicts), said.unexplained) == (code, lines, False)
    junit = ElementTree.fromstring(report.junit(said))
    assert [one.get('type') for one in junit.iterfind(".//testcase[@classname='exit code of plumbline report']/error")] == (
        [f'BROKEN OFF by {said.broken_off}'] if code == 2 else [])


def failed_in_performance(reason, *metrics, **more):
    return case(plumbline=result(*metrics) | more, result='fail', fail_phase='performance',
                fail_reason=f'performance error: {reason}')


def test_what_explains_a_failure(tmp_path):
    fails, unstable = metric(verdict='FAIL'), metric('bandwidth.nt', verdict='UNSTABLE')
    explained = failed_in_performance('UNSTABLE: bandwidth.nt: spread', unstable, failed_for='UNSTABLE')
    assert [r['verdict'] for r in archived(tmp_path, explained)] == ['UNSTABLE']
    assert len(archived(tmp_path, failed_in_performance('x', fails, unstable))) == 2
    other = failed_in_performance('not measured: bandwidth.c', unstable)
    assert [r['verdict'] for r in archived(tmp_path, other)] == ['UNSTABLE', 'FAIL']
    other['perfvalues'] = {'made:cpu:bandwidth.c': [1, 2, -0.1, None, 'MB/s', 'fail']}
    assert [r['verdict'] for r in archived(tmp_path, other)] == ['UNSTABLE', 'FAIL']


def test_tests_of_another_suite_keep_what_reframe_says_of_them(tmp_path):
    rows = archived(tmp_path, of_another_suite(
        ('Triad', [21000.0, 25000.0, -0.05, None, 'MB/s', 'fail']), ('Copy', [24000.0, 25000.0, -0.05, None, 'MB/s', 'pass']),
        ('steps', [12, 0, None, None, 'ns/day', 'pass'])))
    assert [(row['name'], row['metric'], row['value'], row['unit'], row['verdict'], row['foreign']) for row in rows] == [
        ('Triad', 'other_more', 21000.0, 'MB/s', 'FAIL', True), ('Copy', 'other_more', 24000.0, 'MB/s', 'PASS', True),
        ('steps', 'other', 12.0, 'ns/day', 'NO REFERENCE', True)]
    assert rows[0]['reason'] == '21000 is below 23750 MB/s, by ReFrame'
    assert [(row['reference'], row['lower'], row['upper']) for row in rows] == [(25000.0, -0.05, None)] * 2 + [(None,) * 3]
    row, = archived(tmp_path, of_another_suite())
    assert (row['metric'], row['verdict'], row['reason']) == (None, 'PASS', 'its sanity check passed, by ReFrame; it measures nothing')


def test_a_session_of_sanity_checks_alone_is_a_pass(tmp_path):
    path = write_report(tmp_path / 'r.json', [of_another_suite()])
    done = CliRunner().invoke(app, ['report', str(path), '--archive', str(tmp_path / 'a'), '--destination', str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert 'this is not a pass' not in done.output.lower() + (tmp_path / 'index.html').read_text()
    gone = json.dumps({'references': ['made.yaml', 'the session before']})
    assert Session(archive.load_session(tmp_path / 'a').with_columns(lacks=pl.lit(gone))).exit_status() == 3


@pytest.mark.parametrize('entry, metric, verdict', [
    ([50.0, 40, None, 0.5, 's', 'pass'], 'other_less', 'PASS'), ([50.0, 40, -0.1, 0.1, 's', 'fail'], 'other', 'FAIL'),
    ([0.5, 0, -1, 1, 'V', 'pass'], 'other', 'PASS'), ([float('nan'), 0, None, None, 's', 'pass'], 'other', 'FAIL'),
    ([float('inf'), 40, -0.1, None, 's', 'pass'], 'other_more', 'FAIL')])
def test_which_way_is_better_say_the_thresholds(tmp_path, entry, metric, verdict):
    rows = archived(tmp_path, of_another_suite(('figure', entry)))
    assert (rows[0]['metric'], rows[0]['verdict']) == (metric, verdict)


def test_a_known_issue_of_another_suite_is_one_line(tmp_path):
    row, = archived(tmp_path, {**of_another_suite(('triad', [60.0, 100, -0.1, None, 'GB/s', 'xfail'])), 'result': 'xfail', 'fail_phase': 'performance',
                               'fail_reason': None})
    assert (row['name'], row['verdict']) == ('triad', 'KNOWN ISSUE') and '(xfail): 60.00 is below 90.00 GB/s, by ReFrame' in row['reason']
    assert len(verdict_lines(archive.load_session(tmp_path / 'a'))) == 1


def test_performance_values_of_an_older_reframe_or_of_none(tmp_path):
    def old(value, **changed):
        return of_another_suite(('Triad', [value, 25000.0, -0.05, None, 'MB/s']), ('cut', [1.0]), ('odd', 'text'), ('none', [None, 1, 0, 0, 's']),
                                ('bounds', [1.0, 2.0, 'low', None, 's', 'pass']), **changed)
    row, = archived(tmp_path, old(24000.0))
    assert (row['name'], row['value'], row['verdict']) == ('Triad', 24000.0, 'PASS')
    failed, *_ = archived(tmp_path, old(21000.0, result='fail', fail_phase='performance', fail_reason='Triad is too low'))
    assert failed['verdict'] == 'FAIL' and '21000 is below 23750 MB/s' in failed['reason']


@pytest.mark.slow
def test_another_suite_has_a_report_and_a_history(tmp_path):
    for number, value in enumerate([100.0] * 8 + [80.0] * 4):
        path = write_report(tmp_path / 'r.json', [of_another_suite(('steps', [value + number % 2, 100, -0.5, None, 'ns/day', 'pass']))],
                            start=1.8e9 + 86400 * number)
        done = CliRunner().invoke(app, ['report', str(path), '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page')])
        assert done.exit_code == (1 if number >= 10 else 0), done.output
    assert 'other suites' in done.output        # from the third of the new level on: that lasts
    done = CliRunner().invoke(app, ['history', 'steps', '--archive', str(tmp_path / 'archive')], env={'COLUMNS': '160'})
    assert done.exit_code == 0 and '81.0 ns/day' in done.output and '-19' in done.output


@pytest.mark.parametrize('payload', [{}, None, '<undefined>', []])
def test_a_test_that_left_nothing(tmp_path, payload):
    row, = archived(tmp_path, {**case(), 'plumbline': payload, 'job_nodelist': '<undefined>'})
    assert row['verdict'] == 'FAIL' and row['detail'] is None and row['hostname'] is None


def test_skip_without_a_reason(tmp_path):
    row, = archived(tmp_path, case(result='skip'))
    assert row['verdict'] is None and 'see its log' in row['reason']


@pytest.mark.parametrize('changed', [{'n': 0}, {'value': None}, {'reference': None}])
def test_an_impossible_pass_is_a_fail(tmp_path, changed):
    row, = archived(tmp_path, case(plumbline=result({**metric(), **changed})))
    assert row['verdict'] == 'FAIL' and 'a PASS needs' in row['reason']


def test_nan_is_a_fail_and_leaves_the_json(tmp_path):
    plumbline = result(metric(value=float('nan')), cross_check={'best': float('inf')})
    row, = archived(tmp_path, case(plumbline=plumbline))
    assert (row['verdict'], row['reason']) == ('FAIL', 'not a finite number')
    assert json.loads(row['detail'], parse_constant=pytest.fail)['cross_check'] == {'best': None}


def test_nodes(tmp_path):
    one, two = archived(tmp_path, case(plumbline=result(metric()), job_nodelist='<undefined>'),
                        case('B', result(metric()), job_nodelist=['n1', 'n2']))
    assert (one['hostname'], two['hostname']) == (MACHINE['hostname'], 'n1,n2')


@pytest.mark.parametrize('text, message', [
    ('', 'not JSON'), ('{"session_info": {', 'not JSON'), ('[]', 'not a run report'),
    ('{"runs": []}', 'session_info'), ('{"session_info": {"uuid": "1"}, "runs": []}', 'not a run')])
def test_corrupt_reports(tmp_path, text, message):
    (tmp_path / 'r.json').write_text(text)
    with pytest.raises(PlumblineError, match=message) as error:
        archive.archive(tmp_path / 'r.json', tmp_path / 'a')
    assert 'r.json' in str(error.value) and '\n' not in str(error.value)
    assert not (tmp_path / 'a').exists()


@pytest.mark.parametrize('option', ['--dry-run', '--skip-sanity-check'])
def test_what_was_not_run_or_not_looked_at_is_no_pass(tmp_path, option):
    report = write_report(tmp_path / 'r.json', [of_another_suite(('copy', [12.5, None, None, None, 'GB/s', 'pass']))], cmdline=f'reframe -r {option}')
    with pytest.raises(PlumblineError, match=f'r.json: by {option} its session proves nothing: run ReFrame without it'):
        archive.archive(report, tmp_path / 'a')


def test_missing_empty_and_mixed_reports(tmp_path):
    with pytest.raises(PlumblineError, match='No such file'):
        archive.archive(tmp_path / 'no.json', tmp_path)
    with pytest.raises(PlumblineError, match='no test ran'):
        archived(tmp_path)
    with pytest.raises(PlumblineError, match='several systems'):
        archived(tmp_path, case(), case(system='other'))


def test_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(PlumblineError, match='No space left.*make room') as error:
        archived(tmp_path, case())
    assert '\n' not in str(error.value)
    assert [p for p in (tmp_path / 'a').rglob('*') if p.is_file()] == []


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / 'a').write_text('a file')
    with pytest.raises(PlumblineError, match='cannot write the archive'):
        archived(tmp_path, case())


def test_empty_archive(tmp_path):
    for root in (tmp_path, tmp_path / 'none'):
        assert archive.all_files(root) == []
        with pytest.raises(PlumblineError, match='it is empty'):
            archive.load_session(root)


def test_several_sessions(tmp_path):
    root = tmp_path / 'a'
    for start, system in ((1579075200, 'made'), (1579075200 + 86400, 'made'), (1.5e9, 'other')):
        report = write_report(tmp_path / 'r.json', [case(system=system)], start=start)
        archive.archive(report, root)
    assert [path.parent.name for path in archive.sessions(root, 'made')] == ['date=2020-01-15', 'date=2020-01-16']
    assert archive.scan_files(archive.all_files(root)).collect().schema == archive.load_session(root).schema == archive.SCHEMA
    first, latest = '20200115T080000Z-12345678', '20200116T080000Z-12345678'
    assert archive.load_session(root)['session'].to_list() == [latest]
    assert archive.load_session(root, first)['session'].to_list() == [first]
    with pytest.raises(PlumblineError, match='no session 2019.*latest is 20200116'):
        archive.load_session(root, '2019')


def test_files_of_an_older_schema_are_read(tmp_path):
    path = archive.archive(write_report(tmp_path / 'r.json', [case()]), tmp_path / 'a')
    pl.read_parquet(path, hive_partitioning=False).drop('limit').with_columns(
        later=pl.lit(1)).write_parquet(path)
    assert archive.load_session(tmp_path / 'a').schema == archive.SCHEMA


def test_what_an_older_plumbline_wrote_is_no_pass(tmp_path):
    '''A file without subsystems in one line, a result without them or with other words as a FAIL.'''
    older = metric()
    del older['subsystem']
    for left in (result(older), result(metric(), witness=None)):
        row, = archived(tmp_path, case(plumbline=left))
        assert row['verdict'] == 'FAIL' and row['reason'].startswith('result out of schema: ')
    path, = archive.sessions(tmp_path / 'a')
    pl.read_parquet(path, hive_partitioning=False).drop('subsystem').write_parquet(path)
    assert archive.readable([path]) == ([], [f'{path}: has no column subsystem, as an older Plumbline wrote it, which this one does not read: move it away'])


def test_time_of_a_fixture_is_that_of_its_job(tmp_path):
    # ReFrame lets time_run of a fixture last until the end of the tests that use it: 300 s here.
    fixture = case('Fixture', fixture=True, job_submit_time=100.0, job_completion_time_unix=140.0,
                   time_setup=1.0, time_compile=2.0, time_run=300.0, time_sanity=0.5,
                   time_performance=None, time_total=310.0)
    archive.archive(write_report(tmp_path / 'r.json', [fixture]), tmp_path / 'archive')
    row, = archive.load_session(tmp_path / 'archive').to_dicts()
    assert row['time_run'] == 40.0
    assert row['time_total'] == 43.5


# --- the jobs of a pipeline ---------------------------------------------------------------------------------------------

def test_reports_of_a_pipelines_jobs_end_in_one_verdict(tmp_path):
    '''Each job of ``reframe --ci-generate`` leaves a report of its own test, and repeats what it restored of its dependencies.'''
    built = case('programs', fixture=True, job_completion_time_unix=10.0)
    good = case('good', result(metric('bandwidth.a')))
    bad = case('bad', result(metric('bandwidth.b', verdict='FAIL', reason='too slow')), result='fail', fail_phase='performance',
               fail_reason='too slow')
    paths = [write_report(tmp_path / f'{number}.json', cases, start=1.8e9 - number)
             for number, cases in enumerate(([built], [built, good], [built, bad]))]
    done = CliRunner().invoke(app, ['report', *map(str, paths), '--archive', str(tmp_path / 'a'), '--destination', str(tmp_path / 'page')])
    assert done.exit_code == 1 and re.search('speed .* 1 PASS, 1 FAIL', done.output)
    path, = archive.sessions(tmp_path / 'a')
    rows = archive.load_session(tmp_path / 'a')
    assert rows['check'].to_list() == ['programs', 'good', 'bad'] and rows['started'][0].timestamp() == 1.8e9 - 2
    again = case('good', result(metric('bandwidth.a')), job_completion_time_unix=99.0)
    paths.append(write_report(tmp_path / 'again.json', [again], start=1.8e9))
    done = CliRunner().invoke(app, ['report', *map(str, paths), '--archive', str(tmp_path / 'a')])
    assert isinstance(done.exception, PlumblineError) and 'good was run, and in' in str(done.exception)


def test_an_archive_of_a_newer_plumbline_is_named_and_the_rest_is_read(tmp_path, monkeypatch):
    for number, form in enumerate((1, 2)):
        monkeypatch.setattr(archive, 'FORM', form)
        path = archive.archive(write_report(tmp_path / 'r.json', [case(plumbline=result(metric()))],
                                                        start=1.8e9 + 3600 * number), tmp_path / 'archive')
    monkeypatch.setattr(archive, 'FORM', 1)
    with pytest.raises(PlumblineError, match=r'written by a newer Plumbline \(form 2 of the archive, this one reads 1\)') as error:
        archive.load_session(tmp_path / 'archive')
    assert '\n' not in str(error.value)
    good, wrong = archive.readable(archive.sessions(tmp_path / 'archive'))
    assert len(good) == 1 and str(path) in wrong[0]


def test_a_column_of_another_kind_is_named(tmp_path):
    path = archive.archive(write_report(tmp_path / 'r.json', [case(plumbline=result(metric()))]),
                           tmp_path / 'archive')
    pl.read_parquet(path, hive_partitioning=False).with_columns(pl.col('value').cast(pl.String)).write_parquet(path)
    with pytest.raises(PlumblineError, match='column value is String, and Float64 is read'):
        archive.load_session(tmp_path / 'archive')
