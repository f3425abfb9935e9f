'''``plumbline schedule``: what it prints is run, as cron, systemd and Slurm run it.

ReFrame, the script, the lock and the report are real; the native programs are canned (``guards/program.py``).
'''

import contextlib
import fcntl
import os
import pwd
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

import rfm
from plumbline.system import trust
from virtual import batch, cluster_in

pytestmark = pytest.mark.skipif(os.geteuid() == 0 and trust.changed_by(rfm.REPOSITORY) is not None,
                                reason="root schedules nothing of a clone that is somebody else's")

#: What cron gives to a command.
BARE = {'HOME': pwd.getpwuid(os.getuid()).pw_dir, 'PATH': '/usr/bin:/bin', 'SHELL': '/bin/sh', 'LOGNAME': 'nobody'}


@pytest.fixture
def place(tmp_path, commands):
    '''A workplace in a folder whose name has all that a shell, cron or systemd could take for its own.'''
    return odd_place(tmp_path, commands)


def odd_place(tmp_path, commands):
    folder = tmp_path / '50% of "it", isn\'t'
    references = shutil.copytree(rfm.KNOWN, folder / 'references')
    (folder / 'a site.py').write_text((rfm.GUARDS / 'config.py').read_text().replace(
        'site_configuration = ', f"settings.GENERAL['check_search_path'] = ['{rfm.GUARDS}']\nsite_configuration = "))
    # ReFrame's own folders cannot have such names.
    return rfm.Workplace(folder, commands, folder / 'a site.py', PLUMBLINE_REFERENCES=references,
                         PLUMBLINE_REPORTS=tmp_path / 'reports')


def schedule(place, *options, mode='daily', starter='cron', at='02:30'):
    return place.plumbline('schedule', mode, '--as', starter, '--at', at, '-C', 'a site.py',
                           '--folder', place.folder / 'plan', *options)


def canned(place, story=None):
    '''The script of a schedule, on canned checks instead of ours; with a story, on that one alone.'''
    script, = place.folder.rglob('daily.sh')
    text = script.read_text()
    checks = f' -c {rfm.REPOSITORY}/checks '
    assert checks in text
    wanted = f"-n 'Told.*story={story}$' -p gnu" if story else ''
    text = text.replace(checks, f' -c {rfm.GUARDS}/canned.py ').replace('--mode daily', wanted or '--mode daily')
    # Written by the shell that has them set: the canned programs' variables are no variables of ours.
    script.write_text(text.replace('\ncd ', f"\nexport CANNED_MARK={shlex.quote(str(place.folder / 'mark'))}\ncd ", 1))
    return script


def cron(line):
    '''Run the command of a crontab's line as cron does: up to the first ``%`` without a backslash, whose others go.'''
    command = line.split(maxsplit=5)[5]
    command = re.split(r'(?<!\\)%', command)[0].replace(r'\%', '%')
    return subprocess.run(['/bin/sh', '-c', command], env=BARE, cwd='/', text=True, capture_output=True, timeout=300,
                          stdin=subprocess.DEVNULL)


# --- cron ---------------------------------------------------------------------------------------------------------------

def test_cron_runs_in_an_empty_environment_and_is_silent_but_for_what_nothing_judges(place, tmp_path):
    done = schedule(place)
    comment, line = done.out.splitlines()
    assert done.code == 0 and comment.startswith('# ') and line.startswith('30 2 * * * ') and len(line) < 998
    canned(place, 'good')
    ours, theirs = place.folder / 'plan/daily-20200101T000000Z.log', place.folder / 'plan/theirs/daily-theirs.log'
    theirs.parent.mkdir()
    for old in (ours, theirs):
        old.touch()
        os.utime(old, (1, 1))
    ran = cron(line)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, '', 'speed        NO REFERENCE  1 PASS, 0 FAIL, 0 UNSTABLE, 0 NO REFERENCE\n')
    assert theirs.exists() and not ours.exists()        # its own old logs go, and nobody else's
    log, = (place.folder / 'plan').glob('daily-*.log')
    assert ' PASS' in log.read_text() and (tmp_path / 'reports/latest/index.html').exists()
    assert len(list((tmp_path / 'reports/archive').rglob('*.parquet'))) == 1


def test_a_fail_is_said_and_keeps_its_exit_code(place):
    line = schedule(place).out.splitlines()[-1]
    canned(place, 'slow')
    ran = cron(line)
    assert ran.returncode == 1 and ran.stdout == ''
    assert 'of_limit.plain' in ran.stderr and ' FAIL' in ran.stderr and 'all that was said: ' in ran.stderr.splitlines()[-1]
    assert Path(ran.stderr.splitlines()[-1].removeprefix('all that was said: ')).exists()


def test_zero_tests_are_no_pass_and_an_old_report_counts_for_nothing(place):
    line = schedule(place).out.splitlines()[-1]
    (place.folder / 'plan/daily.json').write_text('{}')
    canned(place, 'no such story')
    ran = cron(line)
    assert ran.returncode == 2 and 'nothing was measured' in ran.stderr
    line = schedule(place).out.splitlines()[-1]
    (place.folder / 'a site.py').write_text("site_configuration = {'no such': 1}\n")
    ran = cron(line)
    assert ran.returncode == 2 and 'failed to load configuration' in ran.stderr and 'Traceback' not in ran.stderr


@contextlib.contextmanager
def another_runs(place):
    with open(place.folder / 'plan/lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_two_never_overlap(place):
    line = schedule(place).out.splitlines()[-1]
    with another_runs(place):
        ran = cron(line)
    assert ran.returncode == 75 and ran.stderr.startswith('plumbline: a scheduled run goes on still')
    assert not list(place.folder.rglob('daily-*.log'))


def test_a_file_system_without_locks_is_no_run_before(place, tmp_path):
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'bin/flock').write_text('#!/bin/sh\nexit 71\n')
    (tmp_path / 'bin/flock').chmod(0o755)
    place.environment['PATH'] = f"{tmp_path / 'bin'}:{place.environment['PATH']}"
    line = schedule(place).out.splitlines()[-1]
    canned(place, 'good')
    ran = cron(line)
    assert ran.returncode == 0 and "/lock' cannot be locked" in ran.stderr and len(list((tmp_path / 'reports/archive').rglob('*.parquet'))) == 1


def test_days_of_the_week(place):
    assert schedule(place, '--days', 'sun,Mon,saturday', at='6:05').out.splitlines()[-1].startswith('5 6 * * 1,6,0 ')


# --- systemd ------------------------------------------------------------------------------------------------------------

def test_systemd_takes_the_units_and_runs_the_script(place):
    done = schedule(place, '--days', 'mon,thu', starter='systemd')
    assert done.code == 0
    link, enable = done.out.splitlines()
    service, timer = map(Path, shlex.split(link)[2:])
    assert shlex.split(enable)[2:] == ['--now', timer.name] and 'OnCalendar=Mon,Thu *-*-* 02:30:00' in timer.read_text()
    if shutil.which('systemd-analyze'):
        verified = subprocess.run(['systemd-analyze', 'verify', service, timer], text=True, capture_output=True, timeout=60)
        assert (verified.returncode, verified.stderr) == (0, '')
    start, = re.findall(r'^ExecStart=(.*)$', service.read_text(), re.M)
    words = [word.replace('%%', '%').replace('$$', '$') for word in shlex.split(start)]
    with another_runs(place):
        ran = subprocess.run(words, env=BARE, cwd='/', text=True, capture_output=True, timeout=300)
    assert ran.returncode == 75 and ran.stderr.startswith('plumbline: a scheduled run goes on still')


# --- Slurm --------------------------------------------------------------------------------------------------------------

def test_slurm_runs_the_script_as_a_job(tmp_path, commands):
    place = odd_place(tmp_path, commands)
    with cluster_in(tmp_path / 'c', nodes=1) as slurm:
        place.environment |= slurm.variables
        done = schedule(place, '--scron=--partition=all', starter='scrontab')
        *options, line = done.out.splitlines()
        assert options == ['#SCRON --job-name=plumbline', '#SCRON --mail-type=FAIL', '#SCRON --partition=all']
        assert '\nexport RFM_SYSTEM=made\n' in (place.folder / 'plan/daily.sh').read_text()     # the node of its job is called otherwise
        script = canned(place, 'slow')
        assert f"export SLURM_CONF={slurm.variables['SLURM_CONF']}\n" in script.read_text()
        # Debian's packages lack the command scrontab; what it submits is a script of these lines.
        job = tmp_path / 'job.sh'
        job.write_text('\n'.join(['#!/bin/sh', *(option.replace('#SCRON', '#SBATCH') for option in options),
                                  line.split(maxsplit=5)[5], '']))
        assert batch(slurm, '--output', tmp_path / 'out', job) == '1:0'     # the exit code of the script is that of the job
        assert 'of_limit.plain' in (tmp_path / 'out').read_text()


# --- the command --------------------------------------------------------------------------------------------------------

def test_the_script_says_what_it_is(place, tmp_path):
    place.environment['RFM_SYSTEM'] = 'made:cpu'
    schedule(place)
    script = place.folder / 'plan/daily.sh'
    assert script.stat().st_mode & stat.S_IXUSR
    text = script.read_text()
    assert ' --mode daily --system made:cpu ' in text and 'about 8 minutes' in text and f"export PLUMBLINE_REPORTS={tmp_path / 'reports'}\n" in text
    subprocess.run(['bash', '-n', script], check=True, timeout=60)


def test_help_tells_the_modes_and_how_long_they_take(place):
    said = ' '.join(place.plumbline('schedule', '--help', COLUMNS='200').out.split())
    for told in ('node 3 min', 'screen 15 min', 'daily', 'upgrade', 'acceptance', 'vet one node'):
        assert told in said


@pytest.mark.parametrize('mode, options, complaint', [
    ('nightly', {}, 'nightly: no such mode; there are node, screen, daily, upgrade, acceptance'),
    ('daily', {'at': '25:00'}, '--at 25:00: not a time of day'),
    ('daily', {'options': ['--days', 'mon,someday']}, '--days mon,someday: not days of the week'),
    ('daily', {'options': ['-C', 'none.py']}, 'none.py: no such configuration'),
    ('daily', {'options': ['--folder', '/proc/none']}, 'cannot be written'),
    ('daily', {'options': ['--folder', '$HOME']}, 'rename the folder'),
])
def test_what_cannot_be_scheduled_is_one_line(place, mode, options, complaint):
    done = schedule(place, *options.pop('options', ()), mode=mode, **options)
    assert done.code == 2 and done.out.startswith('plumbline: ') and complaint in done.out and len(done.out.splitlines()) == 1
    assert not list(place.folder.rglob('*.sh'))


def test_the_script_of_another_configuration_stays(place):
    assert schedule(place).code == schedule(place).code == 0
    before = (place.folder / 'plan/daily.sh').read_text()
    (place.folder / 'other.py').write_text((place.folder / 'a site.py').read_text())
    done = schedule(place, '-C', 'other.py')
    assert done.code == 2 and 'daily.sh: is of another configuration than ' in done.out and len(done.out.splitlines()) == 1
    assert (place.folder / 'plan/daily.sh').read_text() == before


@pytest.mark.skipif(os.geteuid() != 0, reason='others than root may run what they like')
def test_root_runs_no_configuration_of_others_to_find_its_system(place):
    site, mark = place.folder / 'a site.py', place.folder / 'mark'
    site.write_text(f"open({str(mark)!r}, 'w')\n" + site.read_text())
    os.chown(site, 65534, 65534)
    done = schedule(place, starter='scrontab')
    assert done.code == 2 and 'root runs nothing that others can change' in done.out and not mark.exists(), done.out


def test_scrontab_is_told_of_a_system_of_this_host(place):
    with open(place.folder / 'a site.py', 'a') as site:
        site.write("print('welcome')\n")
    assert schedule(place, starter='scrontab').code == 0 and '\nexport RFM_SYSTEM=made\n' in (place.folder / 'plan/daily.sh').read_text()
    place.environment['CANNED_HOSTNAMES'] = 'elsewhere'
    done = schedule(place, starter='scrontab')
    assert done.code == 2 and 'no system of this configuration matches the host' in done.out and len(done.out.splitlines()) == 1, done.out


def test_an_option_of_two_lines_and_a_variable_s_name_are_no_commands_of_the_script(place):
    done = schedule(place, '--scron=--partition=a\n30 2 * * * touch here', starter='scrontab')
    assert done.code == 2 and done.out.startswith("plumbline: --scron '--partition=a") and len(done.out.splitlines()) == 1
    place.environment['PLUMBLINE_X;\ntouch here'] = '1'
    assert schedule(place).code == 0
    assert re.search(r'^# Set where .* PLUMBLINE_X\?\?touch\?here', (place.folder / 'plan/daily.sh').read_text(), re.MULTILINE)
