'''A session that was broken off is no pass: one line says what became of it, by ``make health`` and by ``plumbline report``.'''

import re

import pytest

import rfm

pytestmark = pytest.mark.reframe


@pytest.fixture
def place(tmp_path):
    return rfm.Workplace(tmp_path / 'place')


def make_health(place, **environment):
    '''``make health`` of three checks.'''
    if not (rfm.REPOSITORY / '.venv/bin/plumbline').exists():
        pytest.skip('there is no .venv, which make uses')
    checks = rfm.GUARDS / 'broken_off.py'
    return place.run(['make', '-C', rfm.REPOSITORY, 'health', 'SETUP=true', f'RUNS={place.folder}',
                      f'REFRAME=.venv/bin/reframe -C {place.config} -c {checks}'], **environment)


@pytest.mark.parametrize('number, others, code', [('SIGINT', {}, 2), ('SIGTERM', {}, 2), ('SIGTERM', {'CANNED_FAILS': '1'}, 1)])
def test_what_an_interruption_keeps_from_being_measured_is_no_fail(place, number, others, code):
    '''Nothing is wrong with the machine; but tests are missing, and those that were still to run are in no run report.'''
    done = make_health(place, CANNED_SIGNAL=number, **others)
    assert done.code == 2 and re.search(rf'health\] Error {code}$', done.out, re.MULTILINE), done.out
    assert re.search(rf'Part +bandwidth.plain .* {"FAIL" if others else "PASS"}\n', done.out), done.out
    assert f'BROKEN OFF by {number}' in done.out and '1 not measured' in done.out and 'the session was broken off by SIG' in done.out


def test_of_a_session_that_is_killed_nothing_is_left_of_the_one_before(place):
    assert make_health(place).code == 0
    done = make_health(place, CANNED_SIGNAL='SIGKILL')
    assert re.search(r'health\] Error 2$', done.out, re.MULTILINE) and 'PASS' not in done.out and 'no test ran, or where it was killed' in done.line('plumbline: ')


def test_a_run_report_that_ends_in_the_middle_is_no_session(place):
    done = place.reframe('--mode=daily', '-r', '--exec-policy=serial', checks=rfm.GUARDS / 'broken_off.py')
    text = place.report.read_text()
    for share in (0, 0.3, 0.6, 0.9, 0.999):
        place.report.write_text(text[:int(share * len(text))])
        judged = place.plumbline('report', place.report)
        assert judged.code == 2 and 'the run report is not JSON' in judged.out and len(judged.out.splitlines()) == 1
    assert done.code == 0 and not list((place.folder / 'reports').glob('archive/*/*/*.parquet'))
