'''Performance logs that the real ReFrame writes, of a suite that is not ours, become sessions.'''

import shutil
import time

import polars as pl
import pytest

import rfm
from made_report import case, metric, result, write_report
from plumbline.errors import PlumblineError
from plumbline.model import registry
from plumbline.references import proposal
from plumbline.store import archive, perflogs

SUITE = '''
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class their_stream(rfm.RunOnlyRegressionTest):
    size = parameter([10, 20])
    rate = variable(float, value=12.5)
    valid_systems, valid_prog_environs = ['*'], ['*']
    executable = 'echo'
    reference = {'*': {'copy': (12, -0.1, 0.1, 'GB/s')}}

    @run_before('run')
    def says(self):
        self.executable_opts = [f'copy {self.rate} latency 3.25']

    @sanity_function
    def found(self):
        return sn.assert_found('copy', self.stdout)

    @performance_function('GB/s')
    def copy(self):
        return sn.extractsingle(r'copy (\\S+)', self.stdout, 1, float)

    @performance_function('us')
    def latency(self):
        return sn.extractsingle(r'latency (\\S+)', self.stdout, 1, float)
'''

#: ReFrame's own configuration but for the log.
SITE = '''
site_configuration = {
    'systems': [{'name': 'theirs', 'hostnames': ['.*'], 'partitions': [
        {'name': 'batch', 'scheduler': 'local', 'launcher': 'local', 'environs': ['builtin']}]}],
    'environments': [{'name': 'builtin'}],
    'logging': [{
        'perflog_multiline': %(multiline)s,
        'handlers': [],
        'handlers_perflog': [{
            'type': 'filelog', 'prefix': '%%(check_system)s/%%(check_partition)s', 'level': 'info', 'basedir': '%(logs)s', 'append': True,
            'format': '%(format)s',
            'format_perfvars': '%%(check_perf_value)s|%%(check_perf_unit)s|%%(check_perf_ref)s|%%(check_perf_lower_thres)s|'
                               '%%(check_perf_upper_thres)s|',
        }]}]}
'''
IN_ONE_LINE = '%(check_result)s|%(check_job_completion_time)s|%(check_#ALL)s'
BY_VARIABLE = ('%(check_result)s|%(check_job_completion_time_unix)s|%(check_system)s|%(check_partition)s|%(check_environ)s|%(check_name)s|'
               '%(check_job_nodelist)s|%(check_perf_var)s|%(check_perf_value)s|%(check_perf_unit)s|%(check_perf_ref)s|'
               '%(check_perf_lower_thres)s|%(check_perf_upper_thres)s')


def logged(folder, form, rates=(12.5,)):
    '''A workplace in which ReFrame has run the suite, once for each rate; its logs are in ``perflogs``.'''
    place = rfm.Workplace(folder, config=folder / 'site.py')
    (folder / 'suite.py').write_text(SUITE)
    (folder / 'site.py').write_text(SITE % {'multiline': form is BY_VARIABLE, 'logs': folder / 'perflogs', 'format': form})
    for rate in rates:
        place.began = int(time.time())      # a log tells the second in which a test ended, and what ended in the same one is one
        done = place.reframe('-r', '-S', f'rate={rate}', checks=folder / 'suite.py')
        assert done.report, done.out
    return place


@pytest.mark.parametrize('form', [IN_ONE_LINE, BY_VARIABLE], ids=['in one line', 'by variable'])
def test_runs_become_sessions(tmp_path, form):
    place = logged(tmp_path, form, rates=(12.5, 12.4, 9.0))
    done = place.plumbline('import', tmp_path / 'perflogs')
    assert done.code == 0 and 'theirs: 3 sessions, ' in done.out and '12 values' in done.out
    rows = archive.scan_files(archive.all_files(place.folder / 'reports/archive')).sort('session', 'display_name', 'name').collect()
    found = rows.filter(pl.col('name') == 'copy').select('display_name', 'value', 'unit', 'reference', 'verdict', 'partition', 'environ')
    assert found.rows() == [(f'their_stream %size={size}', rate, 'GB/s', 12.0, verdict, 'batch', 'builtin')
                            for rate, verdict in ((12.5, 'PASS'), (12.4, 'PASS'), (9.0, 'FAIL')) for size in (10, 20)]
    assert set(rows.filter(pl.col('name') == 'latency')['verdict']) == {'NO REFERENCE'}
    # A metric of one of our names tells nothing of our subsystems.
    assert {registry.of_row(row) for row in rows.filter(pl.col('name') == 'latency').to_dicts()} == {('other suites',) * 2}
    table = place.plumbline('history', 'copy')
    assert table.code == 0 and '12.5 GB/s' in table.out and '9.00 GB/s' in table.out
    again = place.plumbline('import', tmp_path / 'perflogs')
    assert again.out == done.out and len(archive.sessions(place.folder / 'reports/archive')) == 3


def test_runs_of_the_same_second_are_two_sessions(tmp_path):
    made_log(tmp_path / 'perflogs/theirs/batch/Stream.log', *(
        f'pass|{ended}|Stream|copy|{rate}|GB/s' for ended, rate in ((1.8e9, 12.5), (1.8e9 + 0.4, 12.4), (1.8e9 + 5, 12.3))))
    place = rfm.Workplace(tmp_path / 'place')
    for _ in range(2):
        assert 'theirs: 3 sessions, ' in place.plumbline('import', tmp_path / 'perflogs').out
        found = archive.scan_files(archive.all_files(place.folder / 'reports/archive')).filter(pl.col('name') == 'copy').sort('session').collect()
        assert found['value'].to_list() == [12.5, 12.4, 12.3]


def test_a_failure_that_the_test_expects_is_a_known_issue_and_no_more(tmp_path):
    bounds = '|12|-0.1|0.1'
    made_log(tmp_path / 'perflogs/theirs/batch/Stream.log', f'xfail|1800000000|Stream|copy|9|GB/s{bounds}', f'xfail|1800000000|Stream|add|12|GB/s{bounds}',
             more='|perf_ref|perf_lower_thres|perf_upper_thres')
    place = rfm.Workplace(tmp_path / 'place')
    assert 'theirs: 1 sessions, ' in place.plumbline('import', tmp_path / 'perflogs').out
    found = archive.scan_files(archive.all_files(place.folder / 'reports/archive')).sort('name').collect()
    assert found.select('name', 'verdict').rows() == [('add', 'PASS'), ('copy', 'KNOWN ISSUE')]


@pytest.mark.parametrize('later, ruling, why', [(2, 'null', 'that the archive has from run reports'), (60, 'PASS', "of Plumbline's own checks: ")])
def test_what_run_reports_tell_of_is_no_second_session(tmp_path, later, ruling, why):
    place, nights = rfm.Workplace(tmp_path / 'place'), [1.7e9 + 86400 * number for number in range(5)]
    root, ours = place.folder / 'reports/archive', case(plumbline=result(metric()))
    reported = [archive.archive(write_report(tmp_path / 'r.json', [ours], start=start), root) for start in nights]     # each took two seconds
    made_log(tmp_path / 'logs/made/cpu/Triad.log', *(
        f'pass|{start + later:.0f}|Triad %threads=one|bandwidth.plain|1000|MB/s|{ruling}' for start in nights), more='|verdict')
    done = place.plumbline('import', tmp_path / 'logs')
    assert done.code == 0 and done.out.startswith(f'skipped: 5 test cases {why}') and archive.sessions(root) == reported
    made_log(tmp_path / 'logs/made/cpu/Stream.log', 'pass|1750000000|Stream|copy|12.5|GB/s')
    assert 'made: 1 sessions, ' in place.plumbline('import', tmp_path / 'logs').out
    assert proposal.propose(root, 'made', tmp_path / 'made.yaml').excluded == []


def test_a_run_is_named_by_the_tests_of_it_that_are_left_out_too(tmp_path):
    '''So it has one name, whether those were in the archive when it was read or not.'''
    root = tmp_path / 'archive'
    made_log(tmp_path / 'logs/made/cpu/Triad.log', 'pass|1700000002|Triad %threads=one|bandwidth.plain|1000|MB/s')
    made_log(tmp_path / 'logs/made/cpu/Stream.log', 'pass|1700007200|Stream|copy|12.5|GB/s')
    before, = perflogs.read(tmp_path / 'logs', root).reports
    archive.archive(write_report(tmp_path / 'r.json', [case(plumbline=result(metric()))], start=1700000000), root)
    after, = perflogs.read(tmp_path / 'logs', root).reports
    assert [len(one['runs'][0]['testcases']) for one in (before, after)] == [2, 1] and before['session_info'] == after['session_info']


def made_log(path, *lines, more=''):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('\n'.join([f'result|job_completion_time_unix|name|perf_var|perf_value|perf_unit{more}', *lines]) + '\n')


def test_a_line_that_was_cut_costs_no_other(tmp_path):
    lines = [f'pass|{1.8e9 + 86400 * number:.0f}|Stream|copy|12.{number}|GB/s' for number in range(9)]
    lines[3:5] = [lines[3][:-9] + lines[4]]
    made_log(tmp_path / 'theirs/batch/Stream.log', *lines)
    logs = perflogs.read(tmp_path)
    assert len(logs.reports) == 7
    assert logs.skipped == [f'{tmp_path}/theirs/batch/Stream.log: line 5 has 10 fields, its first line names 6; so it is with 1 of 8 lines']


def test_a_log_is_of_the_folders_that_it_is_in(tmp_path, monkeypatch):
    made_log(tmp_path / 'theirs/batch/Stream.log', 'pass|1800000000|Stream|copy|12.5|GB/s')
    monkeypatch.chdir(tmp_path / 'theirs/batch')
    case, = perflogs.read('.').reports[0]['runs'][0]['testcases']
    assert (case['system'], case['partition']) == ('theirs', 'batch')


@pytest.mark.parametrize('ended', [1800000000000, 17 * 10**15])
def test_a_line_with_a_time_in_milliseconds_costs_no_other(tmp_path, ended):
    made_log(tmp_path / 'theirs/batch/Stream.log', *(f'pass|{at}|Stream|copy|12.5|GB/s' for at in (1800000000, ended, 1800100000, 1800200000)))
    found = perflogs.read(tmp_path)
    assert len(found.reports) == 3 and f'_unix, {ended}, is no time in seconds since 1970; so it is with 1 of 4 lines' in str(found.skipped)
    made_log(tmp_path / 'alone/theirs/batch/Stream.log', f'pass|{ended}|Stream|copy|12.5|GB/s')
    with pytest.raises(PlumblineError, match=f'no performance log .*: .*{ended}, is no time in seconds since 1970; so it is with 1 of 1 line'):
        perflogs.read(tmp_path / 'alone')


def test_what_cannot_be_read_is_named(tmp_path):
    place = logged(tmp_path, IN_ONE_LINE)
    folder = tmp_path / 'perflogs/theirs/batch'
    log, = folder.glob('*.log')
    (folder / 'old.log').write_text('2019-11-23T03:01:35|reframe 2.21|Stream on theirs:batch using builtin|copy=12.5|ref=12\n')
    (folder / 'empty.log').touch()
    shutil.copy(log, folder / f'{log.name}.h0')
    with open(log, 'a') as stream:
        stream.write('pass|2026-11-')       # the disk was full
    done = place.plumbline('import', tmp_path / 'perflogs')
    assert done.code == 0 and '4 values' in done.out
    assert 'its first line does not name the fields (a log of ReFrame 3?)' in done.line('old.log')
    assert 'its first line does not name the fields' in done.line('empty.log')
    assert 'line 4 has 2 fields, its first line names' in done.line(f'{log.name}: ')


def test_no_log_at_all_is_an_error(tmp_path):
    place = rfm.Workplace(tmp_path / 'place')
    for folder in (tmp_path / 'nowhere', tmp_path):
        done = place.plumbline('import', folder)
        assert done.code == 2 and done.out.count('\n') == 1
        assert 'no performance log of ReFrame that can be read; name the folder' in done.out


def test_a_test_that_ends_half_a_day_later_is_of_another_run(tmp_path):
    folder = tmp_path / 'logs/theirs/batch'
    folder.mkdir(parents=True)
    lines = ['result|job_completion_time_unix|name|environ|copy_value|copy_unit|copy_ref|copy_lower_thres|copy_upper_thres']
    lines += [f'pass|{1.7e9 + 3600 * hours}|{name}|gnu|1.5|GB/s|null|null|null' for hours, name in ((0, 'a'), (11, 'b'), (23.5, 'c'), (24, 'a'))]
    lines += ['fail|null|d|gnu|null|GB/s|null|null|null']       # it did not run
    (folder / 'a.log').write_text('\n'.join(lines) + '\n')
    place = rfm.Workplace(tmp_path / 'place')
    assert '2 sessions' in place.plumbline('import', tmp_path / 'logs').line('theirs: ')
    rows = archive.scan_files(archive.all_files(place.folder / 'reports/archive')).sort('session', 'display_name').select('session', 'display_name').collect()
    assert rows.group_by('session', maintain_order=True).agg('display_name')['display_name'].to_list() == [['a', 'b'], ['a', 'c']]


@pytest.mark.parametrize('system', ['../../../escaped', 'a/b', '', '.'])
def test_a_name_from_a_log_is_no_path(tmp_path, system):
    folder = tmp_path / 'logs/theirs/batch'
    folder.mkdir(parents=True)
    (folder / 'a.log').write_text(f'result|job_completion_time_unix|system|name|copy_value\npass|1.7e9|{system}|a|1.5\n')
    place = rfm.Workplace(tmp_path / 'place')
    done = place.plumbline('import', tmp_path / 'logs')
    if system:
        assert done.code == 2 and f'{system!r} is no name of a system' in done.out
    else:
        assert 'theirs: 1 sessions' in done.out     # the folder has its name
    assert {path.name for path in tmp_path.rglob('system=*')} <= {'system=theirs'}
