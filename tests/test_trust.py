'''Root and what others own: the attacks, each against the command that root would run.'''

import json
import os
import shutil
import stat

import pytest
import rfm

from plumbline import atomic, builds, schedule, trust
from plumbline.errors import PlumblineError
from plumbline.shown import shown
from plumbline.sweep import node as job
from plumbline.sweep import state

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or trust.changed_by(rfm.REPOSITORY) is not None,
                                reason='only root can make files of others, and the clone must be root\'s')


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


def test_a_file_deep_in_a_folder_that_is_run(tmp_path):
    deep = tmp_path / 'checks/memory/triad.py'
    deep.parent.mkdir(parents=True)
    deep.touch()
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


# --- sweeps and builds ----------------------------------------------------------------------------------------------------

def test_a_sweep_is_named_by_its_id(tmp_path):
    place = rfm.Workplace(tmp_path, PLUMBLINE_REPORTS=tmp_path / 'reports')
    done = place.plumbline('sweep', '--resume', tmp_path / 'theirs')
    assert done.code == 2 and 'give the id of a sweep' in done.out and len(done.out.splitlines()) == 1


def test_a_sweep_that_is_somebody_elses(tmp_path):
    folder = tmp_path / 'reports/sweeps/20260101T000000Z-beef'
    folder.mkdir(parents=True)
    (folder / 'sweep.json').write_text('{}')
    os.chown(folder, NOBODY, 0)
    done = rfm.Workplace(tmp_path, PLUMBLINE_REPORTS=tmp_path / 'reports').plumbline('sweep', '--resume', folder.name)
    assert done.code == 2 and 'root runs nothing that others can change' in done.out and len(done.out.splitlines()) == 1


def test_a_build_that_somebody_else_left(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    builds.REQUEST.write_text(f'{{"commands": ["make"], "compilers": [], "variables": {{}}, "project": "{rfm.REPOSITORY}/src"}}')
    (tmp_path / 'build/bin').mkdir(parents=True)
    builds.publish('cache')
    shutil.rmtree('build')
    os.chown('cache', NOBODY, 0)
    assert not builds.fetch('cache') and not os.path.exists('build')
    assert 'root would run it' in capsys.readouterr().err
    os.chown('cache', 0, 0)
    assert builds.fetch('cache')


# --- files ----------------------------------------------------------------------------------------------------------------

def test_a_link_is_replaced_and_not_followed(tmp_path):
    secret = tmp_path / 'secret'
    secret.write_text('root only')
    secret.chmod(0o600)
    (tmp_path / 'page.html').symlink_to(secret)
    atomic.write(tmp_path / 'page.html', 'page', 0o644)
    assert (secret.read_text(), stat.S_IMODE(secret.stat().st_mode)) == ('root only', 0o600)
    assert not (tmp_path / 'page.html').is_symlink() and (tmp_path / 'page.html').read_text() == 'page'


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


# --- a sweep on disk that somebody, or a full disk, has written -------------------------------------------------------------

PLAN = {'id': 's', 'nodes': {'n1': 'h', 'n2': 'h'}, 'partition': 'made:cpu', 'command': ['true'], 'access': [], 'pace': {}, 'checks': 1}


@pytest.fixture
def sweep(tmp_path):
    state.create(tmp_path / 's', PLAN, 'job')
    return tmp_path / 's'


@pytest.mark.parametrize('line', ['garbage', '\0\0\0', '[]', '{"node": "n9", "phase": "over"}', '{"node": "n1", "phase": "ovre"}',
                                  '{"node": "n1", "phase": "over", "folder": "/etc"}', '{"phase": "over"}'])
def test_a_line_of_the_journal_that_no_sweep_wrote(sweep, line):
    good = '{"node": "n1", "phase": "over", "state": "measured", "since": 1.0}'
    (sweep / 'journal.jsonl').write_text(f'{good}\n')
    assert state.load(sweep).nodes['n1'].measured
    (sweep / 'journal.jsonl').write_text(f'{good}\n{line}\n')
    with pytest.raises(PlumblineError, match='journal.jsonl, line 2: nothing that a sweep wrote of one of its nodes; remove that line'):
        state.load(sweep)


@pytest.mark.parametrize('plan, told', [({}, 'no plan of a sweep'), ([], 'no plan of a sweep'), ({**PLAN, 'nodes': ['n1']}, 'no plan'),
                                        ({**PLAN, 'nodes': {'n$(id)1': 'h'}}, r"'n\$\(id\)1' is no name of a node"),
                                        ({**PLAN, 'nodes': {'../../x': 'h'}}, "'../../x' is no name of a node")])
def test_a_plan_that_is_none(sweep, plan, told):
    (sweep / 'sweep.json').write_text(json.dumps(plan))
    with pytest.raises(PlumblineError, match=told):
        state.load(sweep)


def test_the_job_script_holds_no_secrets(sweep, monkeypatch):
    monkeypatch.setenv('RFM_HTTPJSON_URL', 'https://host/?token=secret')
    monkeypatch.setenv('PLUMBLINE_REFERENCES', '/references')
    text = job.script('s', sweep, 'made:cpu', ['reframe'])
    assert 'secret' not in text and 'export PLUMBLINE_REFERENCES=/references\n' in text
    assert stat.S_IMODE((sweep / 'job.sh').stat().st_mode) == 0o700
