'''Who is told of a change, and of what: once, by a command that is started without a shell, and cannot hold up the report.'''

import concurrent.futures
import datetime
import email.policy
import json
import os
import shutil
import stat
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import rfm
import sample_session as sample
from plumbline.cli import app
from plumbline.errors import PlumblineError
from plumbline.model import verdict
from plumbline.report import Session, notify, telemetry
from plumbline.report.history import Loss
from plumbline.store import archive
from plumbline.system import site_command


def summary(rows, *more, **named):
    return telemetry.summary(Session(rows), *more, **named)


def night(number, **verdicts):
    '''A session of some metrics; a verdict of None: not in this session.'''
    rows = sample.frame(*(sample.case(name, [sample.metric('bandwidth.plain', 900.0, 'MB/s', ruling, (1000.0, -0.05, None), f'{ruling} for a reason')],
                                      threads='one', detail={'maintainers': ['hpc-support']}, session=f'2026010{number}T030405Z-sample',
                                      started=datetime.datetime(2026, 1, number, 3, 4, 5, tzinfo=datetime.timezone.utc))
                          for name, ruling in verdicts.items()))
    return summary(rows)


def told(before, summary):
    found, state = notify.changes(before, summary)
    return [(one['name'].split(' ')[0], one['was'], one['now']) for one in found], state


def test_it_is_told_once():
    quiet, state = told({}, night(1, triad='PASS', limits='PASS'))
    assert (quiet, state) == ([], {})
    first, state = told(state, night(2, triad='FAIL', limits='PASS'))
    assert first == [('triad', 'PASS', 'FAIL')]
    again, state = told(state, night(3, triad='FAIL', limits='PASS'))
    assert again == []
    # Another mode, which does not measure it, says nothing of it.
    other, state = told(state, night(4, limits='PASS'))
    assert other == [] and list(state)
    scattered, state = told(state, night(5, triad='UNSTABLE', limits='PASS'))
    assert scattered == [('triad', 'PASS', notify.NOT_JUDGED)]
    healthy, state = told(state, night(6, triad='PASS', limits='PASS'))
    assert sorted(healthy) == [('triad', 'COULD NOT BE JUDGED', 'PASS'), ('triad', 'FAIL', 'PASS')] and state == {}


def test_what_never_ran_is_healthy_again_once_it_has_run_and_a_ticket_is_no_health():
    '''A build that fails has no host; what is fixed may have no reference.'''
    def ran(*metrics, **how):
        return summary(sample.frame(sample.case('limits', [sample.metric('of_limit.x', 0.9)]), sample.case('triad', metrics, **how)))
    broken = ran(result='fail', fail_phase='compile', fail_reason='no cc', verdict='FAIL', reason='no cc', host=None)
    fixed = ran(sample.metric('bandwidth.plain', 900.0, 'MB/s', 'NO REFERENCE', None), host='n1')
    state, said = {}, []
    for one in (broken, fixed, broken):
        found, state = told(state, one)
        said += found
    assert said == [('triad', 'PASS', 'FAIL'), ('triad', 'FAIL', 'PASS'), ('triad', 'PASS', 'FAIL')]
    _, state = told({}, night(1, triad='FAIL'))
    found, state = told(state, night(2, triad='KNOWN ISSUE'))
    assert found == [('triad', 'FAIL', 'KNOWN ISSUE')] and state == {}
    changed, _ = notify.changes(notify.changes({}, night(1, triad='FAIL'))[1], night(2, triad='KNOWN ISSUE'))
    assert 'speed 1 a known issue now' in notify.text(night(2, triad='KNOWN ISSUE'), changed, 'link')


def test_subsystems_losses_and_what_was_left_out_have_a_state():
    course = 'memory, one thread, rates and times'
    slow = sample.frame(*(sample.case(check, [sample.predicted(variant, 0.08) for variant in sample.HISTORY], threads='one') for check in ('triad_memory',)))
    found, state = notify.changes({}, summary(slow, [Loss(course, f'{course}: 5 % worse since then')], [course]))
    assert sorted(one['name'] for one in found) == [f'lasting loss: {course}', 'subsystem memory, one thread of cpu: rates and times']
    fast = sample.case('triad_memory', [sample.predicted(variant) for variant in sample.HISTORY], threads='one')
    good = sample.frame(fast)
    for others in (sample.case('gather', [sample.metric('of_limit.x', 0.9)]), [row | {'partition': 'gpu'} for row in fast]):
        other, still = notify.changes(state, summary(sample.frame(others)))
        assert other == [] and set(still) == set(state)       # another mode, or another partition, says nothing of it
    again, state = notify.changes(state, summary(good, courses=[course]))
    assert {(one['was'], one['now']) for one in again} == {('FAIL', 'PASS')} and len(again) == 2 and state == {}
    on_node = f'memory, one thread on {sample.HOST}, rates and times'       # which has no course of its own once all is well
    _, state = notify.changes({}, summary(good, [Loss(on_node, f'{on_node}: 5 % worse since then')], [on_node]))
    assert [one['now'] for one in notify.changes(state, summary(good, courses=[course]))[0]] == ['PASS']
    left_out = sample.case('cores', result='skip', detail={'skipped': [{'metric': 'all', 'reason': 'there is one CPU', 'recorded': 5}]})
    found, state = notify.changes({}, summary(sample.frame(left_out, sample.case('a', [sample.metric('of_limit.x', 0.9)]))))
    assert [(one['name'], one['now'], one['reason'].partition(';')[0]) for one in found] == [
        ('not measured: cores cpu gnu', notify.NOT_JUDGED, 'there is one CPU')]
    back = sample.frame(sample.case('cores', [sample.metric('of_base.one', 1.2)]))
    assert [one['now'] for one in notify.changes(state, summary(back))[0]] == ['PASS']
    gone = sample.case('limits', [sample.metric('of_limit.x', 0.9)], lacks=json.dumps({'tests': {'cores/sample:cpu/intel': [3, 'the one before']}}))
    further, both = notify.changes(state, summary(sample.frame(left_out, gone)))
    assert [(one['name'], one['now']) for one in further] == [('not measured: cores/sample:cpu/intel', notify.NOT_JUDGED)]
    for elsewhere in ({'environ': 'llvm'}, {'threads': 'one'}, {'partition': 'gpu'}):
        assert notify.changes(both, summary(sample.frame(sample.case('cores', [sample.metric('of_base.one', 1.2)], **elsewhere)))) == ([], both)
    again, left = notify.changes(both, summary(sample.frame(sample.case('cores', [sample.metric('of_base.one', 1.2)], environ='intel'))))
    assert [(one['name'], one['now']) for one in again] == [('not measured: cores/sample:cpu/intel', 'PASS')] and left == state
    assert notify.changes({}, summary(sample.frame(sample.skipped())))[0][0]['name'] == 'the session as a whole'


def test_a_test_whose_passes_see_nothing_and_a_disturbed_session_are_told():
    blind = sample.metric('of_limit.x', 0.9, reference=(1.0, None, 0.1))
    quiet = {'record': 'contention', 'schema': 1, 'threads': 2, 'elapsed': 5.0, 'throttled': 0, 'waited': 0.0, 'stolen': 0.0}

    def after(state, ruling, waited=0.0, partition='', **more):
        parts = sample.metric('of_parts.x', 0.6, verdict=ruling) | {'sees': 0.3}
        had = sample.metric('cpu_availability', 0.9, verdict='FAIL' if waited > 9 else 'PASS')
        found, state = notify.changes(state, summary(sample.frame(sample.case('a', [parts, blind, *more.get('metrics', ())]), sample.case(
            'node_speed', [had], detail={'contention': [quiet | {'waited': waited}]}))) | {'partition': partition})
        return [(one['name'].split(': ')[-1], one['of'], one['was'], one['now']) for one in found], state

    scattered, state = after({}, 'UNSTABLE')
    assert scattered == [('the test', 'tests', 'PASS', notify.NOT_JUDGED)]
    assert after({}, 'UNSTABLE', metrics=[sample.metric('of_parts.y', 0.9) | {'sees': 0.3}])[0] == []
    disturbed, state = after(state, 'PASS', waited=2.0)
    assert disturbed == [('the measurement', 'measurement', 'PASS', notify.NOT_JUDGED), ('the test', 'tests', notify.NOT_JUDGED, 'PASS')]
    failed, still = after(state, 'PASS', waited=9.5)
    assert failed == [('cpu_availability', 'measurement', 'PASS', 'FAIL')] and 'the measurement' in still
    assert after(state, 'PASS', waited=0.4) == ([('the measurement', 'measurement', notify.NOT_JUDGED, 'PASS')], {})
    disturbed, state = after({}, 'PASS', waited=2.0, partition='a')
    assert [one[0] for one in disturbed] == ['the measurement of a']
    assert after(state, 'PASS', partition='b') == ([], state) and after(state, 'PASS', partition='a')[1] == {}


def test_a_session_that_could_not_be_judged_is_told_where_nothing_else_says_so():
    good, none = sample.metric('of_limit.x', 0.9), sample.metric('of_limit.x', 0.9, reference=None)
    elsewhere = sample.case('b', [none], detail={'other_processors': ['Older CPU']})
    scattered = sample.case('c', [sample.metric('of_limit.x', 0.9, verdict='UNSTABLE')])
    found, state = notify.changes({}, summary(sample.frame(sample.case('a', [good]), elsewhere)))
    assert [(one['name'], one['of'], one['now'], one['reason']) for one in found] == [
        ('the session', 'session', notify.NOT_JUDGED,
         "NOT JUDGED: what has references of another processor (Older CPU): accept this one's, with --node where a partition has both")]
    further, state = told(state, summary(sample.frame(sample.case('a', [good]), elsewhere, scattered)))
    assert further == [('c', 'PASS', notify.NOT_JUDGED)] and 'the session' in state
    assert told(state, summary(sample.frame(sample.case('a', [good]), sample.case('c', [good]))))[1] == {}

    def cut(ruling):
        return summary(sample.frame(sample.case('a', [sample.metric('of_limit.x', 0.9, verdict=ruling)]),
                                    sample.case('b', result='skip', fail_reason='aborted due to KeyboardInterrupt')))

    found, state = notify.changes({}, cut('PASS'))
    assert [(one['name'], one['reason'].partition(':')[0]) for one in found] == [('the session as a whole', 'BROKEN OFF by SIGINT')]
    failed, state = told(state, cut('FAIL'))
    assert failed == [('a', 'PASS', 'FAIL')] and 'the session as a whole' in state
    # A night that measured something takes it back, whatever it FAILs by: the next that measures nothing is told.
    standing = sample.case('a', [sample.metric('of_limit.x', 0.9, verdict='FAIL')])
    assert told(state, summary(sample.frame(standing)))[0] == [('the', notify.NOT_JUDGED, 'PASS')]


@pytest.fixture
def receiver(tmp_path):
    '''A command, and the file into which it writes what it was given.'''
    program, got = tmp_path / 'who is; told', tmp_path / 'got.json'
    program.write_text(f'#!{sys.executable}\nimport json, os, sys\nnotice = json.load(open(os.environ["PLUMBLINE_NOTICE"]))\n'
                       f'json.dump([sys.argv[1:], sys.stdin.read(), notice], open({str(got)!r}, "w"))\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program, got


def test_the_command_gets_words_text_and_json(tmp_path, receiver):
    program, got = receiver
    command = f"'{program}' -s '$(touch x) *' ops@example.org"
    assert notify.tell(command, night(1, triad='FAIL'), tmp_path, 'https://example.org/r')
    words, text, notice = json.loads(got.read_text())
    assert words == ['-s', '$(touch x) *', 'ops@example.org']
    first, _, change = text.splitlines()[:3]
    assert first == 'Plumbline, sample: speed 1 FAIL (session 20260101T030405Z-sample), https://example.org/r'
    assert change.startswith('PASS -> FAIL: triad one cpu gnu synthetic-node-1: bandwidth.plain: FAIL for a reason') and change.endswith(
        '; maintainers: hpc-support')
    assert notice['link'] == 'https://example.org/r' and notice['changes'][0]['now'] == verdict.FAIL and notice['summary']['exit_status'] == 1
    got.unlink()
    assert not notify.tell(command, night(1, triad='FAIL'), tmp_path, 'l') and not notify.tell(command, night(2, triad='FAIL'), tmp_path, 'l')
    assert not got.exists()
    # A report of an old session tells nothing.
    assert notify.tell(command, night(3, triad='PASS'), tmp_path, 'l') and not notify.tell(command, night(2, triad='FAIL'), tmp_path, 'l')


def test_sessions_at_the_same_time_are_all_told(tmp_path):
    '''A burn is over after the night that began after it; two partitions' reports come in any order, or at once.'''
    burn = night(1, burn='FAIL') | {'seconds': 28 * 3600.0}
    long, short = (night(3, **{name: 'FAIL'}) | {'session': f'20260103T030405Z-{name}', 'seconds': seconds} for name, seconds in (('a', 200.0), ('b', 20.0)))
    assert not notify.tell('true', night(2, triad='PASS'), tmp_path, 'l') and notify.tell('true', burn, tmp_path, 'l')
    assert notify.tell('true', long, tmp_path, 'l') and notify.tell('true', short, tmp_path, 'l')
    good = night(3, a='PASS', b='PASS')
    assert notify.tell('true', good, tmp_path, 'l')
    assert not any(notify.tell('true', one, tmp_path, 'l') for one in (burn, long, short, good))
    (tmp_path / 'notified-sample.json').unlink()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert all(pool.map(lambda one: notify.tell("sh -c 'sleep 0.5'", one, tmp_path, 'l'), (long, short)))
    assert len(json.loads((tmp_path / 'notified-sample.json').read_text())['wrong']) == 2


def test_a_session_of_a_wrong_clock_keeps_nobody_from_being_told(tmp_path, receiver):
    ahead = night(1, triad='PASS') | {'session': '20960101T000000Z-sample', 'started': 3976214400.0}
    assert not notify.tell('true', ahead, tmp_path, 'l')
    assert notify.tell(f"'{receiver[0]}'", night(2, triad='FAIL'), tmp_path, 'l') and 'PASS -> FAIL: triad' in receiver[1].read_text()
    assert not notify.tell('true', night(3, triad='FAIL'), tmp_path, 'l')
    # What it found is the state all the same.
    assert notify.tell('true', ahead, tmp_path, 'l') and not notify.tell('true', night(4, triad='PASS'), tmp_path, 'l')


@pytest.mark.slow
@pytest.mark.parametrize('command, said', [
    ("sh -c 'echo no route >&2; exit 3'", r'--notify sh: ended with 3: no route; the next session tells the same again'),
    ("sh -c 'sleep 600 & sleep 600'", r'--notify sh: not ended after 1 s, and was killed'), ('/no/such', r'--notify /no/such: cannot be started: No such'),
    ('"', 'No closing quotation: write a command'), ('  ', 'no command: name the program')])
def test_a_command_that_fails_is_named_and_tried_again(command, said, tmp_path, receiver):
    began = time.monotonic()
    with pytest.raises(PlumblineError, match=said):
        notify.tell(command, night(1, triad='FAIL'), tmp_path, 'link', patience=1 if 'sleep' in command else 60)
    assert time.monotonic() - began < 20
    assert notify.tell(f"'{receiver[0]}'", night(2, triad='FAIL'), tmp_path, 'link')        # nobody knows of it yet


@pytest.mark.skipif(os.geteuid() != 0, reason='root alone refuses')
def test_root_runs_nothing_that_others_can_change(tmp_path, receiver):
    receiver[0].chmod(0o777)
    with pytest.raises(PlumblineError, match='root runs nothing that others can change: .* can be written by others'):
        notify.tell(f"'{receiver[0]}'", night(1, triad='FAIL'), tmp_path, 'link')
    assert not receiver[1].exists()


def test_a_command_that_reads_nothing_is_no_failure(tmp_path):
    assert notify.tell('true', night(1, **{f'check{number}': 'FAIL' for number in range(300)}), tmp_path, 'link')


@pytest.mark.parametrize('state', ['{', '[]', '{"told": {"a": "b"}, "wrong": {}}', '{"session": "a", "wrong": []}', '{"session": "a", "wrong": {"x": 1}}',
                                   '{"session": "a", "wrong": {"x": {"state": "FAIL", "reason": "slow"}}}',
                                   '{"session": "a", "wrong": {"x": {"state": 1, "reason": "slow", "maintainers": []}}}'])
def test_a_state_that_cannot_be_read_is_said(tmp_path, state):
    (tmp_path / 'notified-sample.json').write_text(state)
    with pytest.raises(PlumblineError, match='notified-sample.json: not readable as the last state .*; remove it'):
        notify.tell('true', night(1, triad='FAIL'), tmp_path, 'link')


def test_the_report_keeps_its_exit_code_and_says_that_nobody_was_told(tmp_path, receiver):
    def report(command, *cases):
        archive.write(sample.frame(*cases), tmp_path / 'archive')
        return CliRunner().invoke(app, ['report', '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page'), '--notify', command])

    bad, good = (sample.case('a', [sample.metric('of_limit.x', 0.9, verdict=ruling)], session=f'2026010{number}T000000Z-s')
                 for number, ruling in ((1, 'FAIL'), (2, 'PASS')))
    assert report(f"'{receiver[0]}'", bad).exit_code == 1
    failed = report('false', good)
    assert failed.exit_code == 2 and 'plumbline: --notify false: ended with 1: it said nothing' in failed.stderr
    assert report(f"'{receiver[0]}'", good).exit_code == 0 and 'FAIL -> PASS' in receiver[1].read_text()


@pytest.fixture
def script(tmp_path):
    '''Function (name) -> a shipped script where a site has copied it to, as a word of a command.'''
    return lambda name: f"'{shutil.copy(rfm.REPOSITORY / 'config/notify' / name, tmp_path)}'"


def test_the_shipped_mail_has_the_first_line_as_its_subject(tmp_path, script, monkeypatch):
    got = tmp_path / 'mail'
    rfm.script(tmp_path / 'sendmail', f'echo "$@" > {tmp_path}/words; cat > {got}')
    monkeypatch.setenv('PATH', f"{tmp_path}:{os.environ['PATH']}")
    assert notify.tell(f"{script('mail.py')} ops@example.org hpc@example.org", night(1, triad='FAIL', größe='FAIL'), tmp_path, 'https://example.org/r')
    mail = email.message_from_bytes(got.read_bytes(), policy=email.policy.default)
    assert (mail['To'], mail['Subject']) == ('ops@example.org, hpc@example.org',
                                             'Plumbline, sample: speed 2 FAIL (session 20260101T030405Z-sample), https://example.org/r')
    assert 'PASS -> FAIL: triad' in mail.get_content() and 'größe' in mail.get_content() and (tmp_path / 'words').read_text() == '-t -i\n'
    with pytest.raises(PlumblineError, match='--notify .*mail.py: ended with 1: name those who are to have it; the next session'):
        notify.tell(script('mail.py'), night(2, triad='PASS'), tmp_path, 'link')


@pytest.mark.slow
def test_the_shipped_chat_and_ticket_are_posted(tmp_path, script):
    secret = tmp_path / 'secret'
    with rfm.listener() as (port, got):
        address = f'http://127.0.0.1:{port}/hooks/1'
        secret.write_text(f'{address}\n')
        chat = f"{script('chat.py')} '{secret}'"
        assert notify.tell(chat, night(1, **{'<!channel>': 'FAIL'}), tmp_path, 'link')
        text = json.loads(got.pop())['text']
        assert 'Plumbline, sample: speed 1 FAIL' in text and 'PASS -> FAIL: &lt;!channel>' in text
        secret.write_text('a token\n')
        (tmp_path / 'notified-sample.json').unlink()
        ticket = f"{script('ticket.py')} {address} '{secret}'"
        assert notify.tell(ticket, night(1, triad='FAIL'), tmp_path, 'link')
        issue = json.loads(got[0])
        assert issue['title'] == 'Plumbline, sample: speed 1 FAIL (session 20260101T030405Z-sample), link' and issue['body'] == issue['description']
        assert 'PASS -> FAIL: triad' in issue['body'] and got.pop().headers['Authorization'] == 'Bearer a token'
        assert notify.tell(ticket, night(2, triad='PASS'), tmp_path, 'link') and got == []
        for action in 'return', 'drain':
            site_command.run('--hook', ticket, f'node n3: {action}', {'proposals': [{'action': action}]}, 'later')
        assert [json.loads(one)['title'] for one in got] == ['node n3: drain']
    for command, said in ((chat, "secret: unknown url type: 'a token'"), (ticket, f'{address} {secret}: .*refused'), (script('chat.py'), 'name the file')):
        with pytest.raises(PlumblineError, match=f'--notify .*: ended with 1: .*{said}'):
            notify.tell(command, night(3, triad='FAIL'), tmp_path, 'link')


def test_the_script_of_a_schedule_hands_it_on(tmp_path):
    config = tmp_path / 'site.py'
    config.write_text('')
    words = ['schedule', 'daily', '--as', 'cron', '--at', '02:30', '-C', str(config), '--folder', str(tmp_path / 'plan'),
             '--report', "--notify=mail -s 'it is slow' ops", '--report=--link=https://example.org']
    done = CliRunner().invoke(app, words)
    if done.exit_code == 2 and 'root' in str(done.exception):
        pytest.skip("root schedules nothing of a clone that is somebody else's")
    script = (tmp_path / 'plan/daily.sh').read_text()
    line, = (line for line in script.splitlines() if ' report "$report" ' in line)
    shown = subprocess.run(['bash', '-c', 'ended=0; report=r; ' + line.partition('$(')[2].replace(line.partition('$(')[2].split()[0], 'printf "%s\\n"', 1)
                            .rpartition(' 2>&1')[0]], text=True, capture_output=True).stdout
    assert shown.splitlines() == ['report', 'r', '--reframe-status', '0', "--notify=mail -s 'it is slow' ops", '--link=https://example.org']
