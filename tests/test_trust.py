'''Root and what others own: the attacks, each against the command that root would run.'''

import io
import json
import os
import shutil
import stat
import struct
import sys
import tempfile
from pathlib import Path

import pytest
from reframe.core.exceptions import SanityError

import made_report
import rfm
from plumbline import atomic, cli, report
from plumbline.errors import PlumblineError
from plumbline.model.safe_text import masked, shown
from plumbline.rfm import build_cache, job
from plumbline.scheduler import schedule
from plumbline.store import archive
from plumbline.sweep import node, results, slurm, state
from plumbline.system import trust

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or trust.changed_by(rfm.REPOSITORY) is not None,
                                reason="only root can make files of others, and the clone must be root's")


@pytest.fixture
def site(tmp_path, monkeypatch):
    '''A configuration of root's, and nothing in PATH but the system's.'''
    monkeypatch.setenv('PATH', '/usr/bin:/bin')
    (tmp_path / 'plan').mkdir()
    (tmp_path / 'plan/site.py').write_text('')
    return tmp_path / 'plan/site.py'


def written(site, **more):
    return schedule.write('daily', site, site.parent / 'schedule', **more)


# --- who can change a path ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('attack, told', [
    (lambda file: None, None),
    (lambda file: os.chown(file, NOBODY, 0), 'plan/site.py belongs to nobody'),
    (lambda file: os.chown(file.parent, NOBODY, 0), 'plan belongs to nobody'),
    (lambda file: file.chmod(0o666), 'plan/site.py can be written by others'),
    (lambda file: (os.chown(file, 0, NOBODY), file.chmod(0o664)), 'plan/site.py can be written by others'),
    (lambda file: file.parent.chmod(0o777), 'plan can be written by others'),
    (lambda file: file.parent.chmod(0o1777), None),
])
def test_what_others_can_change(site, attack, told):
    attack(site)
    found = trust.changed_by(site)
    assert found is None if told is None else found.endswith(told)


def test_an_access_control_list_may_let_others_write(tmp_path):
    '''Whose mask is in the bits of the group; nobody has an entry of his own.'''
    entries = [(1, 7, 2**32 - 1), (2, 7, NOBODY), (4, 5, 2**32 - 1), (16, 7, 2**32 - 1), (32, 5, 2**32 - 1)]
    tmp_path.chmod(0o775)
    assert trust.changed_by(tmp_path) is None
    try:
        os.setxattr(tmp_path, 'system.posix_acl_access', struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *one) for one in entries))
    except OSError as error:
        pytest.skip(f'no access control lists here: {error}')
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o775 and trust.changed_by(tmp_path) == f'{tmp_path} can be written by others'


def test_a_file_deep_in_a_folder_that_is_run(tmp_path):
    deep = tmp_path / 'checks/memory/triad.py'
    deep.parent.mkdir(parents=True)
    deep.touch()
    (tmp_path / 'checks/.lock').touch()
    (tmp_path / 'checks/.lock').chmod(0o666)      # uv's
    trust.refuse(whole=[tmp_path / 'checks'])
    os.chown(deep, NOBODY, 0)
    trust.refuse(tmp_path / 'checks')
    with pytest.raises(PlumblineError, match='triad.py belongs to nobody'):
        trust.refuse(whole=[tmp_path / 'checks'])


def test_a_link_that_somebody_else_can_turn(site, tmp_path):
    theirs = tmp_path / 'theirs'
    theirs.mkdir()
    (theirs / 'site.py').symlink_to(site)
    assert trust.changed_by(theirs / 'site.py') is None
    os.chown(theirs, NOBODY, 0)
    assert trust.changed_by(theirs / 'site.py').endswith('theirs belongs to nobody')
    (tmp_path / 'link').symlink_to(theirs)
    assert trust.changed_by(tmp_path / 'link/new.py').endswith('theirs belongs to nobody')


# --- schedules --------------------------------------------------------------------------------------------------------------

def test_a_schedule_of_a_configuration_that_is_somebody_elses(site):
    os.chown(site, NOBODY, 0)
    with pytest.raises(PlumblineError, match=r'root runs nothing that others can change: .*site.py belongs to nobody; give it'):
        written(site)
    assert not (site.parent / 'schedule').exists()


@pytest.mark.parametrize('entry, told', [('{}/bin', 'belongs to nobody'), ('.', "the relative entry '.'"), ('', "the relative entry ''"),
                                         ('bin', "the relative entry 'bin'")])
def test_the_path_of_whoever_calls(site, tmp_path, monkeypatch, entry, told):
    (tmp_path / 'bin').mkdir()
    os.chown(tmp_path / 'bin', NOBODY, 0)
    monkeypatch.setenv('PATH', f"{entry.format(tmp_path)}:{os.environ['PATH']}")
    with pytest.raises(PlumblineError, match=told):
        written(site)


def test_the_script_keeps_no_secrets_and_is_roots_alone(site, monkeypatch):
    for name in [name for name in os.environ if name.startswith(('RFM_', 'PLUMBLINE_'))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv('RFM_HTTPJSON_URL', 'https://host/?token=secret')
    monkeypatch.setenv('PLUMBLINE_X;id', '1')
    monkeypatch.setenv('LD_PRELOAD_LATER', '/home/u/x.so')
    monkeypatch.setenv('RFM_SYSTEM', 'mine')
    (site.parent / 'schedule').mkdir(mode=0o755)
    text = written(site).read_text()
    assert 'secret' not in text and ';id' not in text and 'x.so' not in text and 'export RFM_SYSTEM=mine\n' in text
    assert '# Set where that was written, and not kept: PLUMBLINE_X?id RFM_HTTPJSON_URL\n' in text
    assert stat.S_IMODE((site.parent / 'schedule').stat().st_mode) == stat.S_IMODE((site.parent / 'schedule/daily.sh').stat().st_mode) == 0o700


def test_a_folder_that_is_a_link_elsewhere(site, tmp_path):
    (tmp_path / 'elsewhere').mkdir(mode=0o755)
    (site.parent / 'schedule').symlink_to(tmp_path / 'elsewhere')
    with pytest.raises(PlumblineError, match='schedule: cannot be written, or made ours alone'):
        written(site)
    assert stat.S_IMODE((tmp_path / 'elsewhere').stat().st_mode) == 0o755


@pytest.mark.parametrize('option', ['--partition=a\n30 2 * * * id', 'partition', '--comment=\x1b[2J'])
def test_a_line_end_in_an_option_is_no_line_of_the_scrontab(site, option):
    with pytest.raises(PlumblineError, match='give one option of sbatch, in one line'):
        schedule.scrontab(written(site), schedule.time_of('02:30'), [option])


# --- what whoever calls has set -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize('name', ['LD_PRELOAD', 'LD_AUDIT', 'LD_LIBRARY_PATH', 'BASH_ENV', 'PYTHONPATH'])
def test_a_variable_that_makes_jobs_run_what_others_wrote(tmp_path, monkeypatch, name):
    (tmp_path / 'theirs.so').touch()
    monkeypatch.setenv(name, f'/usr/lib/libc.so:{tmp_path}/theirs.so')
    trust.refuse_environment()
    os.chown(tmp_path / 'theirs.so', NOBODY, 0)
    with pytest.raises(PlumblineError, match=f'{name}=.*: root runs nothing .*theirs.so belongs to nobody.*; or unset {name}'):
        trust.refuse_environment()


def test_reframe_as_root_with_a_library_of_somebody_else(tmp_path):
    (tmp_path / 'profile').touch()
    os.chown(tmp_path / 'profile', NOBODY, 0)
    done = rfm.Workplace(tmp_path).reframe('-l', BASH_ENV=tmp_path / 'profile')
    assert done.code == 1 and 'profile belongs to nobody' in done.out and 'Traceback' not in done.out


def measured(tmp_path, before=()):
    '''What ReFrame and a report leave of a check, and that both end well.

    :arg before: words before the commands.
    '''
    commands = rfm.tools(tmp_path / 'path', without=rfm.LIKWID, scripts=[rfm.GUARDS / 'cmake'])
    place = rfm.Workplace(tmp_path / 'place', commands, PLUMBLINE_REFERENCES=rfm.KNOWN, CANNED_MARK=tmp_path / 'mark')
    os.chown(place.folder, NOBODY if before else 0, -1)
    for command in (place.reframe_command('-n', 'Told%story=good', '-r', '--exec-policy=serial'),
                    [*rfm.PLUMBLINE, 'report', '--public', place.report],
                    [*rfm.PLUMBLINE, 'schedule', 'daily', '--as', 'cron', '--at', '02:30', '-C', place.config]):
        done = place.run([*before, *command])
        assert done.code == 0, done.out
    written = [path for path in place.folder.rglob('*') if path.is_file()]
    assert {path.suffix for path in written} >= {'.html', '.parquet', '.json', '.log', '.sh'}
    return written


def test_results_of_root_are_roots(tmp_path):
    assert not [path for path in measured(tmp_path) if path.stat().st_mode & stat.S_IRWXO]


def test_an_ordinary_user_and_a_clone_that_is_roots():
    with tempfile.TemporaryDirectory() as folder:       # pytest's are closed to others, and gcc asks whether it may look without that right
        os.chmod(folder, 0o755)
        assert {path.stat().st_uid for path in measured(Path(folder), rfm.ordinary_user())} == {NOBODY}
    assert trust.changed_by(rfm.REPOSITORY) is None and not [path for path in (rfm.REPOSITORY / 'config').rglob('*') if path.stat().st_uid]


# --- sweeps and builds ----------------------------------------------------------------------------------------------------

def test_a_sweep_is_named_by_its_id_and_not_somebody_elses(tmp_path):
    place = rfm.Workplace(tmp_path, PLUMBLINE_REPORTS=tmp_path / 'reports')
    done = place.plumbline('sweep', '--resume', tmp_path / 'theirs')
    assert done.code == 2 and 'give the id of a sweep' in done.out and len(done.out.splitlines()) == 1
    folder = tmp_path / 'reports/sweeps/20260101T000000Z-beef'
    folder.mkdir(parents=True)
    (folder / 'sweep.json').write_text('{}')
    os.chown(folder, NOBODY, 0)
    done = rfm.Workplace(tmp_path, PLUMBLINE_REPORTS=tmp_path / 'reports').plumbline('sweep', '--resume', folder.name)
    assert done.code == 2 and 'root runs nothing that others can change' in done.out and len(done.out.splitlines()) == 1


def test_a_sweep_of_a_configuration_that_is_somebody_elses(site):
    place = rfm.Workplace(site.parent.parent / 'place')
    os.chown(site, NOBODY, 0)
    state.create(place.folder / 'reports/sweeps/s', {**PLAN, 'command': ['reframe', '-C', str(site), '-n', 'x']}, 'job')
    for words in ('-C', site, '--partition', 'made:cpu'), ('--resume', 's'):
        done = place.plumbline('sweep', *words)
        assert done.code == 2 and 'site.py belongs to nobody' in done.out and len(done.out.splitlines()) == 1, done.out
    os.chown(site, 0, 0)
    (site.parent / 'theirs.py').touch()
    os.chown(site.parent / 'theirs.py', NOBODY, 0)
    done = place.plumbline('sweep', '-C', site, '--partition', 'made:cpu', '-c', site.parent / 'theirs.py')
    assert done.code == 2 and 'theirs.py belongs to nobody' in done.out and len(done.out.splitlines()) == 1, done.out
    done = place.plumbline('sweep', '-C', place.config, '--partition', 'made:cpu', PATH=f'bin:{os.environ["PATH"]}')
    assert done.code == 2 and "PATH has the relative entry 'bin'" in done.out and len(done.out.splitlines()) == 1


def test_a_build_that_somebody_else_left(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    build_cache.REQUEST.write_text(f'{{"commands": ["make"], "compilers": [], "variables": {{}}, "project": "{rfm.REPOSITORY}/src"}}')
    (tmp_path / 'build/bin').mkdir(parents=True)
    build_cache.publish('cache')
    shutil.rmtree('build')
    os.chown('cache', NOBODY, 0)
    assert not build_cache.fetch('cache') and not os.path.exists('build')
    assert 'root would run it' in capsys.readouterr().err
    os.chown('cache', 0, 0)
    assert build_cache.fetch('cache')


# --- files ----------------------------------------------------------------------------------------------------------------

def test_a_link_is_replaced_and_not_followed(tmp_path):
    secret = tmp_path / 'secret'
    secret.write_text('root only')
    secret.chmod(0o600)
    (tmp_path / 'page.html').symlink_to(secret)
    atomic.write(tmp_path / 'page.html', 'page', 0o644)
    assert (secret.read_text(), stat.S_IMODE(secret.stat().st_mode)) == ('root only', 0o600)
    assert not (tmp_path / 'page.html').is_symlink() and (tmp_path / 'page.html').read_text() == 'page'


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    '''As root could do with /dev/stdout and /dev/null.'''
    os.mkfifo(tmp_path / 'pipe')
    (tmp_path / 'link').symlink_to('pipe')
    for name in ('pipe', 'link'):
        with pytest.raises(OSError, match='it is no file, and would be replaced by one'):
            atomic.write(tmp_path / name, 'page')
    assert (tmp_path / 'link').is_symlink() and stat.S_ISFIFO((tmp_path / 'pipe').stat().st_mode)


def test_what_is_wrong_leaves_the_file_as_it_was(tmp_path):
    def refuse(_):
        raise ValueError
    atomic.write(tmp_path / 'file', 'before')
    with pytest.raises(ValueError):
        atomic.write(tmp_path / 'file', 'after', check=refuse)
    assert (tmp_path / 'file').read_text() == 'before' and os.listdir(tmp_path) == ['file']


# --- text on its way to a terminal ----------------------------------------------------------------------------------------

@pytest.mark.parametrize('text, seen', [
    ('a\x1b[31mred\x1b[0m b', 'ared b'), ('\x1b]0;title\x07x', 'x'), ('\x1b]52;c;aWQ=\x1b\\y', 'y'), ('\x1b]8;;http://h\x1b\\z', 'z'),
    ('\x1bc', ''), ('\x1b', ''), ('\x9b31m', '?31m'), ('a\x08\x00b', 'a??b'), ('a\r\nb\tc', 'a\nb\tc'), ('Größe 4 µs', 'Größe 4 µs')])
def test_a_terminal_obeys_no_text_of_a_job(text, seen):
    assert shown(text) == seen


def test_an_error_of_ours_shows_what_a_file_is_called(tmp_path):
    name = tmp_path / 'x\x1b]0;title\x07.json'
    done = rfm.Workplace(tmp_path).plumbline('report', name)
    assert done.code == 2 and '\x1b' not in done.out and 'x.json' in done.out


def test_no_comparison_obeys_or_tells_what_a_failed_test_said(tmp_path):
    good = made_report.case('Triad\x1b[2J %threads=one', made_report.result(made_report.metric()))
    failed = {**good, 'plumbline': {}, 'result': 'fail', 'fail_phase': 'sanity', 'fail_reason': 'error: \x1b]0;x\x1b\\ https://me:pw@host/'}
    paths = [made_report.write_report(tmp_path / f'{number}.json', [one, made_report.case('Other', made_report.result(made_report.metric()))],
                                      uuid=f'{number}2345678-0000') for number, one in enumerate((good, failed))]
    done = rfm.Workplace(tmp_path).plumbline('compare', *paths, '--output', tmp_path / 'page.html')
    assert done.code == 1 and 'https://***@host/' in done.out
    assert '\x1b' not in done.out and 'pw@' not in done.out + (tmp_path / 'page.html').read_text()


def test_a_terminal_that_lacks_a_character_is_no_error(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
    monkeypatch.setattr(sys, 'stdout', out)
    monkeypatch.setattr(cli, 'app', lambda: print('a, b \u2026'))
    with pytest.raises(SystemExit):
        cli.main()
    assert out.buffer.getvalue() == b'a, b ?\n'


@pytest.mark.parametrize('text, seen', [
    ('git clone https://me:pw@host/x', 'git clone https://***@host/x'), ('https://token@host and http://host/a@b', 'https://***@host and http://host/a@b'),
    ('https://host/?token=abc&n=1', 'https://host/?token=***&n=1'), ('-S x.api_key=abc -n y', '-S x.api_key=*** -n y'),
    ('--password abc', '--password ***'), ('RFM_TOKEN="a b"', 'RFM_TOKEN="*** b"'), ('{"Password": "x"}', '{"Password": "***"}'),
    ('5 tokens of 3', '5 tokens of 3'), ('the secret is out', 'the secret is out')])
def test_what_only_its_writer_may_know(text, seen):
    assert masked(text) == seen and shown(text) == seen


@pytest.fixture
def page(tmp_path):
    result = made_report.result(made_report.metric(reason='see /home/u1/run/out.txt'), command='/home/u1/bin/triad --size 1', rerun='reframe -C /home/u1/c.py',
                                notes=['/proj/x1/log says so, 3 GB/s and 1/s, ~/a/b.txt'],
                                machine={**made_report.MACHINE, 'kernel': '6.1.77-x', 'microcode': '0x2b0077', 'mitigations': {'meltdown': 'PTI77'}})
    path = made_report.write_report(tmp_path / 'run.json', [made_report.case(plumbline=result)])
    left = json.loads(path.read_text())
    left['session_info'] |= {'cmdline': 'reframe -S x.token=s3cr3t -C /home/u1/c.py', 'workdir': '/home/u1', 'user': 'u1'}
    path.write_text(json.dumps(left))
    rows = archive.read(path)
    return lambda **how: report.write(report.Session(rows), tmp_path / 'page', **how).read_text()


def test_a_page_masks_what_only_its_writer_may_know(page):
    text = page()
    assert 's3cr3t' not in text and '-S x.token=***' in text and '6.1.77-x' in text and '/home/u1/bin/triad' in text
    text = page(to_strangers=True)
    assert not [word for word in ('6.1.77-x', '0x2b0077', 'PTI77', 'u1', 'proj', 's3cr3t', 'run again', 'microcode', 'mitigations') if word in text]
    assert 'see out.txt' in text and 'log says so, 3 GB/s and 1/s, b.txt' in text and 'bandwidth.plain' in text


# --- what is too large ------------------------------------------------------------------------------------------------------

def test_a_run_report_that_is_too_large(sweep):
    (sweep / 'n1').mkdir()
    with open(sweep / 'n1' / node.REPORT, 'wb') as file:
        file.truncate(results.LARGEST + 1)
    with pytest.raises(PlumblineError, match='run.json: a run report of 64 MiB, and at most 64 MiB are read: look at'):
        results.collect(state.load(sweep), state.Node('n1', 'h'))


def test_a_program_that_never_stops_printing(tmp_path, monkeypatch):
    monkeypatch.setattr(job, 'LARGEST_OUTPUT', 4)
    (tmp_path / 'out').write_text('12345')
    test = type('Test', (), {'stagedir': str(tmp_path), 'job': type('', (), {'stdout': 'out'})})()
    with pytest.raises(SanityError, match='5 B were printed, and at most 4 B are read'):
        job.Job.output(test)


# --- a sweep on disk that somebody, or a full disk, has written -------------------------------------------------------------

PLAN = {'id': 's', 'nodes': {'n1': 'h', 'n2': 'h'}, 'partition': 'made:cpu', 'command': ['true'], 'access': [], 'pace': {}, 'checks': 1}


@pytest.fixture
def sweep(tmp_path):
    state.create(tmp_path / 's', PLAN, 'job')
    return tmp_path / 's'


@pytest.mark.parametrize('line', ['garbage', '\0\0\0', '[]', '{"node": "n9", "phase": "over"}', '{"node": "n1", "phase": "ovre"}',
                                  '{"node": "n1", "phase": "over", "folder": "/etc"}', '{"phase": "over"}',
                                  '{"node": "n1", "phase": "over", "archived": 5}', '{"node": "n1", "phase": "over", "counts": "x"}', '[' * 10**5,
                                  '{"node": "n1", "phase": "over", "counts": {"speed": {"PASS": "x"}}}', '{"node": "n1", "phase": "over", "machine": {"model": "m"}}',
                                  '{"node": "n1", "phase": "over", "machine": 5}'],
                         ids=lambda line: line[:60])
def test_a_line_of_the_journal_that_no_sweep_wrote(sweep, line):
    good = '{"node": "n1", "phase": "over", "state": "measured", "since": 1.0}'
    (sweep / 'journal.jsonl').write_text(f'{good}\n')
    assert state.load(sweep).nodes['n1'].measured
    (sweep / 'journal.jsonl').write_text(f'{good}\n{line}\n')
    with pytest.raises(PlumblineError, match='journal.jsonl, line 2: nothing that a sweep wrote of one of its nodes; remove that line'):
        state.load(sweep)


@pytest.mark.parametrize('plan, told', [({}, 'no plan of a sweep'), ([], 'no plan of a sweep'), ({**PLAN, 'nodes': ['n1']}, 'no plan'),
                                        ({**PLAN, 'nodes': {'n2': {'x': 1}}}, "field nodes/n2: {'x': 1} is not of type 'string'"),
                                        ({**PLAN, 'pace': {'poll': 5}}, "field pace/poll: 5 is not of type 'string': begin a new one"),
                                        ({**PLAN, 'nodes': {'n$(id)1': 'h'}}, r"'n\$\(id\)1' is no name of a node"),
                                        ({**PLAN, 'nodes': {'../../x': 'h'}}, "'../../x' is no name of a node")])
def test_a_plan_that_is_none(sweep, plan, told):
    (sweep / 'sweep.json').write_text(json.dumps(plan))
    with pytest.raises(PlumblineError, match=told):
        state.load(sweep)


@pytest.mark.parametrize('archived', ['', '/etc/passwd'])
def test_an_archived_session_that_is_gone_or_none(sweep, archived):
    line = {'node': 'n1', 'phase': 'over', 'state': 'measured', 'session': 's', 'archived': archived}
    (sweep / 'journal.jsonl').write_text(f'{json.dumps(line)}\n')
    with pytest.raises(PlumblineError, match='cannot read the (run report|archive): '):
        results.frame(sweep)


def test_a_job_has_the_variables_that_it_needs_and_no_secrets(sweep, monkeypatch):
    monkeypatch.setenv('RFM_HTTPJSON_URL', 'https://host/?token=secret')
    monkeypatch.setenv('PLUMBLINE_REFERENCES', '/references')
    text = node.script('s', sweep, 'made:cpu', ['reframe'])
    assert 'secret' not in text and 'export PLUMBLINE_REFERENCES=/references\n' in text and ' RFM_HTTPJSON_URL' in text
    assert stat.S_IMODE((sweep / 'job.sh').stat().st_mode) == 0o700
    monkeypatch.setenv('LD_PRELOAD_LATER', '/home/u/x.so')
    command = slurm.Slurm(['--partition=p']).submission('s-n1', 'n1', 5, 'out', 'job.sh')
    assert '--export=HOME,USER,LOGNAME,LANG,LC_ALL,TZ' in command
    text = node.script('s', sweep, 'made:cpu', ['reframe'])
    assert text.startswith('#!/bin/bash -l\n') and 'export PATH=' in text and 'x.so' not in text
