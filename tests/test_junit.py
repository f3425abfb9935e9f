'''The verdicts as JUnit XML: red where plumbline report does not end with 0.'''

import json
from xml.etree import ElementTree as xml

import pytest
from typer.testing import CliRunner

import sample_session as sample
from made_report import case, metric, result, write_report
from plumbline import report
from plumbline.cli import app
from plumbline.report.history import Loss

PASS, FAIL = sample.metric('of_limit.plain', 0.9), sample.metric('of_limit.nt', 0.1, verdict='FAIL', reason='0.10 is below 0.80')
UNSTABLE, NONE = sample.metric('of_limit.x', 0.8, verdict='UNSTABLE', reason='straddles'), sample.metric('bandwidth.plain', 900.0, 'MB/s', reference=None)
DISTURBED = {'record': 'contention', 'schema': 1, 'threads': 2, 'elapsed': 5.0, 'throttled': 0, 'waited': 2.0, 'stolen': 0.0}
NOISY = [sample.predicted(variant, 0.3, 'UNSTABLE', spread=0.5) for variant in sample.HISTORY]


def suites(*cases, losses=()):
    rows = sample.frame(*cases)
    return xml.fromstring(report.junit(report.Session(rows), losses).encode()), report.Session(rows).exit_status(losses)


@pytest.mark.parametrize('cases, losses', [
    ([sample.case('a', [PASS, NONE])], ()), ([sample.case('a', [PASS, UNSTABLE])], ()), ([sample.case('a', [FAIL, PASS])], ()),
    ([sample.case('a', [PASS | {'sees': 0.3}, UNSTABLE])], ()), ([sample.case('a', [PASS], detail={'contention': [DISTURBED]})], ()),
    ([sample.case('a', [UNSTABLE, NONE])], ()), ([sample.case('a', [PASS]), sample.case('b', NOISY, threads='all', level='memory')], ()),
    ([sample.case('a', [sample.predicted(variant, 0.1) for variant in sample.HISTORY], level='memory')], ()),
    ([sample.case('a', [PASS])], [Loss('memory, rates and times', 'memory: 9 % worse since 2026-01-01')]), ([sample.case('a', result='skip', detail={})], ()),
    ([sample.case('a', [PASS]), sample.case('b', result='skip', detail={'skipped': [{'metric': 'all', 'reason': 'no MPI', 'recorded': 3}]})], ())])
def test_it_is_red_where_the_exit_code_is_not_0(cases, losses):
    found, status = suites(*cases, losses=losses)
    red = {element.get('type') for name in ('failure', 'error') for element in found.iter(name)}
    assert bool(red) == (status != 0)
    last = found.findall('testsuite')[-1]
    assert last.get('name') == 'the session' and last.get('tests') == str(len(last.findall('testcase')))
    assert [one.get('name') for one in last[0]][:3] == ['software', 'speed', 'measurement']
    assert {int(one.get('failures')) + int(one.get('errors')) > 0 for one in found} & {True} == ({True} if status else set())


def test_verdicts_and_values_are_told_apart():
    found, _ = suites(sample.case('triad_memory', [PASS, UNSTABLE, NONE], threads='all', level='memory'))
    cases = {one.get('name'): one for one in found[0]}
    assert found[0].get('name') == 'triad_memory memory all' and found[0].get('skipped') == '2'
    assert cases['of_limit.plain'].find('system-out').text == 'PASS: 0.900 (spread 2.0 %), expected 1.00 (0.800..1.10)'
    assert [cases[name].find('skipped').get('type') for name in ('of_limit.x', 'bandwidth.plain')] == ['UNSTABLE', 'NO REFERENCE']


@pytest.mark.parametrize('metrics, detail, names', [
    ([PASS | {'sees': 0.3}, UNSTABLE], {}, []), ([PASS, UNSTABLE], {}, ['the test', '20260102T030405Z-sample']),
    ([PASS], {'contention': [DISTURBED]}, ['20260102T030405Z-sample'])])
def test_what_is_not_judged_is_an_error(metrics, detail, names):
    found, status = suites(sample.case('a', metrics, detail=detail))
    errors = [one for one in found.iter('testcase') if one.find('error') is not None]
    assert [one.get('name') for one in errors] == names and status == (3 if names else 0)
    assert {one.find('error').get('type') for one in errors} <= {'NOT JUDGED'}
    if detail:
        assert errors[0].find('error').get('message') == 'NOT JUDGED: the measurement (disturbed: The threads did not have the CPUs to themselves)'


def test_an_end_of_reframe_that_no_verdict_explains_is_in_every_output(tmp_path):
    path = write_report(tmp_path / 'r.json', [case('Test %threads=one', plumbline=result(metric()))])
    files = {name: tmp_path / name for name in ('junit', 'json', 'prometheus')}
    done = CliRunner().invoke(app, ['report', str(path), '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path), '--reframe-status', '1',
                                    *(f'--{name}={file}' for name, file in files.items())])
    said = 'REFRAME FAILED: its exit code is 1, and no verdict says why'
    assert done.exit_code == 2 and done.stdout.count(said) == 2
    page = (tmp_path / 'index.html').read_text()
    assert said in page and 'Nothing that was judged is out of bounds' not in page
    error, = xml.parse(files['junit']).getroot().iter('error')
    assert error.get('type') == 'REFRAME FAILED' and json.loads(files['json'].read_text())['exit_status'] == 2
    assert 'plumbline_session_exit_status{system="made"} 2\n' in files['prometheus'].read_text()
    other = metric(verdict='NO REFERENCE', reference=None, reference_from=None, recorded_states=[{'core_to_core.0': 1e-8}])
    end = {'result': 'fail', 'fail_phase': 'performance', 'fail_reason': 'no reference of this state'}
    path = write_report(tmp_path / 'r.json', [case('Test %threads=one', plumbline=result(other, failed_for='UNSTABLE'), **end)])
    done = CliRunner().invoke(app, ['report', str(path), '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path), '--reframe-status', '1'])
    assert done.exit_code == 3, done.output


def test_the_command_writes_it_whatever_stands_in_names(tmp_path):
    hostile = metric('bandwidth.v0', 1000.0, verdict='FAIL', reason='a\x00\x1b[31mb & <c>')
    cases = [case('Test %threads=one', plumbline=result(hostile))]
    path = write_report(tmp_path / 'r.json', cases)
    done = CliRunner().invoke(app, ['report', str(path), '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path), '--junit', str(tmp_path / 'out/j.xml')])
    root = xml.parse(tmp_path / 'out/j.xml').getroot()
    assert done.exit_code == 1 and root.find('.//failure').get('message') == 'FAIL: a?b & <c>'


def test_that_nothing_was_judged_is_no_success():
    '''No reference of anything, or only of another processor: the exit code is 0, and 3.'''
    found, status = suites(sample.case('a', [NONE]))
    assert status == 0 and found[-1][-1].find('skipped').get('type') == 'NO REFERENCE'
    found, status = suites(sample.case('a', [PASS]), sample.case('b', [NONE], detail={'other_processors': ['Older CPU']}))
    assert status == 3 and found[-1][-1].find('error').get('message') == (
        "NOT JUDGED: what has references of another processor (Older CPU): accept this one's, with --node where a partition has both")
    own = [PASS | {'reference_from': 'made.yaml'}, NONE]        # some are of this one
    assert suites(sample.case('b', own, detail={'other_processors': ['Older CPU']}))[1] == 0
