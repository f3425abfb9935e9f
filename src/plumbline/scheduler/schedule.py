'''A mode at a fixed time: the script that runs it, and what cron, systemd or Slurm's scrontab need to start it.

The script holds what a scheduled run has not: the place, the variables and PATH of the shell that wrote it, a lock, a log.  It calls ReFrame and
``plumbline report`` as a person would, is silent while all is healthy, and says on standard error what is not, or is not judged, which cron sends by
mail.
'''

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.settings import CODE, HOME, KEPT, MODES, ROOT
from plumbline.system import trust

#: How variables begin whose names the script tells where it does not keep them.
_OURS = ('PLUMBLINE_', 'RFM_')

#: How long logs stay.
KEEP_DAYS = 60

DAYS = ('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun')

_SCRIPT = '''\
#!/bin/bash -l
# Plumbline's mode {mode}: {about}; about {minutes} minutes on four cores.
# A login shell, so that the commands of modules are there.  Written by: {command}
# Set where that was written, and not kept: {left}
# Exit code: 0 healthy, 1 a verdict is FAIL, 2 nothing was measured, 3 something could not be judged, 75 the run before has not ended.
unset "${{!SLURM_@}}"       # of the job of scrontab: srun would take them for options
umask 027
{exports}
cd {home} || exit 2
mkdir -p {folder} || exit 2
lock={lock}
exec 9>> "$lock" || exit 2
flock -n -E 75 9
case $? in
    0) ;;
    75) echo "plumbline: a scheduled run goes on still, this one is skipped; who holds it: fuser '$lock'" >&2
        exit 75 ;;
    *) echo "plumbline: '$lock' cannot be locked (Lustre: mount it with -o flock): see that no two runs are at once" >&2 ;;
esac
log={folder}/{mode}-$(date -u +%Y%m%dT%H%M%SZ).log
report={folder}/{mode}.json
find {folder} -maxdepth 1 -type f -name {logs} -mtime +{keep} -delete
rm -f "$report"
{reframe} -C {config} -c {checks} -R --mode {mode}{system} --report-file "$report" -r > "$log" 2>&1
ended=$?
verdicts=$({plumbline} report "$report" --reframe-status $ended{options} 2>&1)
status=$?
printf '%s\\n' "$verdicts" >> "$log"
[ $status -ne 2 ] || tail -n 20 "$log" >&2
[ $status -eq 0 ] || printf '%s\\n' "$verdicts" "all that was said: $log" >&2
[ $status -ne 0 ] || printf '%s\\n' "$verdicts" | grep -E '^(software|speed) +NO REFERENCE' | sort -u >&2      # silence would be a pass
exit $status
'''

_SERVICE = '''\
[Unit]
Description=Plumbline, mode {mode}: {about}
# Notification of a FAIL, once there is such a unit:
# OnFailure=notify@%n.service

[Service]
Type=oneshot
{user}ExecStart=/bin/bash -l {script}
'''

_TIMER = '''\
[Unit]
Description=Plumbline, mode {mode}, at its time

[Timer]
OnCalendar={calendar}

[Install]
WantedBy=timers.target
'''


@dataclass(frozen=True)
class Time:
    '''When: the hour, the minute, and the days of the week (numbers from Monday = 0; all of them: every day).'''
    hour: int
    minute: int
    days: tuple[int, ...]

    @property
    def cron(self):
        '''The five fields of cron.'''
        days = '*' if len(self.days) == len(DAYS) else ','.join(str((day + 1) % 7) for day in self.days)
        return f'{self.minute} {self.hour} * * {days}'

    @property
    def systemd(self):
        '''systemd's calendar expression.'''
        days = '' if len(self.days) == len(DAYS) else ','.join(DAYS[day].capitalize() for day in self.days) + ' '
        return f'{days}*-*-* {self.hour:02}:{self.minute:02}:00'


def time_of(at, days=''):
    '''When to run.

    :arg at: ``HH:MM``.
    :arg days: names of days with commas, e.g. ``mon,thu``; empty for every day.
    :raises PlumblineError: if they cannot be read.
    '''
    found = re.fullmatch(r'([01]?\d|2[0-3]):([0-5]\d)', at)
    if not found:
        raise PlumblineError(f'--at {at}: not a time of day; write hours and minutes, e.g. --at 02:30')
    names = [name.strip().lower()[:3] for name in days.split(',')] if days else list(DAYS)
    if not set(names) <= set(DAYS):
        raise PlumblineError(f'--days {days}: not days of the week; write e.g. --days mon,thu')
    return Time(int(found[1]), int(found[2]), tuple(sorted({DAYS.index(name) for name in names})))


def write(mode, config, folder, options=(), elsewhere=False):
    '''Write the script of a mode.

    :arg folder: where the script, its logs and its lock are; one folder, one run at a time.
    :arg options: further ones of ``plumbline report``.
    :arg elsewhere: whether it runs on a host that may be called otherwise than this one: the script says of which system this one is.
    :returns: the script's path.
    :raises PlumblineError: if there is no such mode or configuration, if ReFrame cannot take a path, if the folder cannot be written to, or has
        the script of another configuration, or if it were root's, and somebody else could change what it runs.
    '''
    if mode not in MODES:
        raise PlumblineError(f"{mode}: no such mode; there are {', '.join(MODES)}")
    config, folder = Path(config).absolute(), Path(folder).absolute()
    if not config.is_file():
        raise PlumblineError(f'{config}: no such configuration; name the site file, e.g. -C config/sites/mycluster.py')
    for path in (config, folder, HOME, ROOT):
        if set('$\n') & set(str(path)):
            raise PlumblineError(f'{str(path)!r}: ReFrame replaces what follows a $, and a line is one line; rename the folder or file')
    for option in options:
        if not re.fullmatch(r'--[^\x00-\x1f\x7f]+', option):
            raise PlumblineError(f'--report {option!r}: give one option of plumbline report, in one line')
    trust.refuse_run(config, folder, code=CODE)
    kept = {name: os.environ[name] for name in sorted(KEPT) if name in os.environ}
    if elsewhere and 'RFM_SYSTEM' not in kept:
        kept['RFM_SYSTEM'] = _system_of(config)
    system = kept.get('RFM_SYSTEM', '')
    commands = {name: shlex.quote(str(Path(sys.executable).with_name(name))) for name in ('reframe', 'plumbline')}
    quoted = {'home': HOME, 'checks': ROOT / 'checks', 'folder': folder, 'lock': folder / 'lock', 'config': config, 'logs': f'{mode}-*.log'}
    script = _SCRIPT.format(mode=mode, about=MODES[mode].about, minutes=MODES[mode].minutes, keep=KEEP_DAYS,
                            command=shlex.join(['plumbline', *sys.argv[1:]]).replace('\n', ' '),
                            exports='\n'.join(f'export {name}={shlex.quote(value)}' for name, value in kept.items()),
                            options=''.join(f' {shlex.quote(option)}' for option in options),
                            system=f' --system {shlex.quote(system)}' if ':' in system else '',   # for references/not_run.py another command
                            left=not_kept(),
                            **commands, **{name: shlex.quote(str(value)) for name, value in quoted.items()})
    _keep_to_ourselves(folder)
    path = folder / f'{mode}.sh'
    if path.exists() and f' -C {shlex.quote(str(config))} ' not in path.read_text(errors='replace'):
        raise PlumblineError(f'{path}: is of another configuration than {config}; --folder names another folder, or remove it')
    return _put(path, script, 0o700)


def not_kept():
    '''The variables of ours and of ReFrame's that are set here and that no script holds, as text: a URL may hold a token.'''
    left = sorted(name for name in os.environ if name.startswith(_OURS) and name not in KEPT)
    return ' '.join(re.sub(r'\W', '?', name) for name in left) or 'none'


def _system_of(config):
    '''ReFrame's name of the system that this host is of, by a site file.

    :raises PlumblineError: if no system of it is this host's.
    '''
    command = [str(Path(sys.executable).with_name('reframe')), '-C', str(config), '--show-config=systems/0/name']
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    said = (done.stdout + done.stderr).strip()
    try:
        return str(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, IndexError):
        why = said.partition('plumbline: ')[2] or f'{config}: ReFrame cannot read it: {said[-200:]}'
        raise PlumblineError(' '.join(why.split())) from None


def _keep_to_ourselves(folder):
    '''The folder is its owner's alone: whoever can open the lock can hold it, and logs have command lines in them.'''
    with saying_why(f'{folder}: cannot be written, or made ours alone', '; --folder names another folder'):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.fchmod(handle, 0o700)
        finally:
            os.close(handle)


def _put(path, text, permissions=0o644):
    with saying_why(f'{path}: cannot be written', '; --folder names another folder'):
        return atomic.write(path, text, permissions)


def cron(script, when):
    '''The lines of a crontab; cron takes an unquoted ``%`` for the end of the command.'''
    command = shlex.quote(str(script)).replace('%', r'\%')
    return ['# Mail goes to MAILTO when a verdict is FAIL, or nothing was measured.', f'{when.cron} {command}']


def scrontab(script, when, options=()):
    '''The lines of Slurm's scrontab: the script as a job, which submits those of the checks.

    :arg options: of sbatch for that job, e.g. ``--partition=service``.
    :raises PlumblineError: if an option is none, or more than one line.
    '''
    for option in options:
        if not re.fullmatch(r'-[^\x00-\x1f\x7f]+', option):
            raise PlumblineError(f'--scron {option!r}: give one option of sbatch, in one line')
    return [*(f'#SCRON {option}' for option in ('--job-name=plumbline', '--mail-type=FAIL', *options)), f'{when.cron} {shlex.quote(str(script))}']


def systemd(script, when, mode):
    '''Write service and timer beside the script; the commands, which are root's, that install them: what they start runs as who wrote them.'''
    for_unit = str(script).replace('\\', '\\\\').replace('%', '%%').replace('"', '\\"').replace('$', '$$')
    unit = script.parent / f'plumbline-{mode}'
    _put(unit.with_suffix('.service'), _SERVICE.format(
        mode=mode, about=MODES[mode].about, script=f'"{for_unit}"', user=f'User={os.geteuid()}\n' if os.geteuid() else ''))
    _put(unit.with_suffix('.timer'), _TIMER.format(mode=mode, calendar=when.systemd))
    paths = ' '.join(shlex.quote(f'{unit}{suffix}') for suffix in ('.service', '.timer'))
    return [f'systemctl link {paths}', f'systemctl enable --now plumbline-{mode}.timer']
