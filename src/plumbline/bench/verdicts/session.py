'''One session of the benchmark: a real ReFrame run of some of the health checks, and the `plumbline report` that a user gets.'''

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from plumbline import atomic
from plumbline.bench.verdicts.faults import Launch, ended, mpi
from plumbline.model import baselines
from plumbline.references.files import directory, portable
from plumbline.settings import MEASURE, ONE_BY_ONE, ROOT
from plumbline.store import archive
from plumbline.system import toolchains

#: The quickest that tell of L1, a core's largest cache, memory with one thread and all, its latency, files, messages in shared memory.
CHECKS = (r'^(node_speed|triad_scaling)%|^latency%pages=huge|^pingpong%transport=shm|'
          r'^fileio_sizes(?=.*%file_system=stage(%|$))(?=.*%size=64MB(%|$))')

#: As little of each as carries a verdict.  (With 10 samples the efficiency of two cores in their caches straddled its floor in 3 of 11 sessions.)
SETTINGS = {'likwid_bench.levels': 'none', 'node_speed.min_time': 0.2, 'pingpong.largest': 2**21,
            'triad_scaling.samples': 30, 'latency.samples': 10, 'fileio_sizes.samples': 5}

SYSTEM = 'localhost'

#: Sessions that become the references.
REFERENCES = 5

#: What writes references from the sessions so far.
_ACCEPT = ('references', 'accept', SYSTEM)

PLUMBLINE = (sys.executable, '-c', 'from plumbline.cli import main; main()')


@dataclass(frozen=True)
class Session:
    '''A session that has ended.

    :attr kind: ``reference``, ``null`` or the name of a fault.
    :attr number: of its kind, from 1.
    :attr exit: of `plumbline report`.
    :attr name: in the archive; None where nothing was measured.
    :attr started: seconds since the epoch.
    :attr seconds: how long it took.
    :attr said: what `plumbline report` printed.
    '''
    kind: str
    number: int
    exit: int
    name: str | None
    started: float
    seconds: float
    said: str

    @property
    def told(self):
        '''What it was, for people.'''
        return f': exit code {self.exit}, {self.seconds:.0f} s'


class Place:
    '''The folder of a benchmark, with all that its sessions read and leave: nothing goes into the user's reports.

    :attr kind: class of its sessions.
    '''
    kind: type = Session

    def __init__(self, folder):
        self.folder = Path(folder).absolute()
        self.archive, self.report = self.folder / 'archive', self.folder / 'run.json'
        self._faulty = self.folder / 'faulty'
        self._references = self.folder / 'references'

    @property
    def portable(self):
        '''The portable references that its sessions were judged by.'''
        return self._references / baselines.PORTABLE

    def path(self, kind, number):
        return self.folder / 'sessions' / f'{kind}-{number:03}.json'

    def sessions(self):
        '''All sessions, oldest first.'''
        found = [self.kind(**json.loads(path.read_text())) for path in self.folder.glob('sessions/*.json')]
        return sorted(found, key=lambda session: session.started)

    def tried(self, fault, not_because=''):
        '''Remember why a fault could not be provoked, or that it could.'''
        path = self.folder / 'not_tried' / fault
        path.unlink(missing_ok=True)
        if not_because:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(not_because)

    def not_tried(self):
        '''Fault -> why it could not be provoked.'''
        return {path.name: path.read_text() for path in sorted(self.folder.glob('not_tried/*'))}

    @property
    def environment(self):
        foreign = ('PLUMBLINE_', 'RFM_')
        return {**{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
                'PLUMBLINE_REPORTS': str(self.folder / 'reports'), 'PLUMBLINE_BUILDS': str(self.folder / 'builds'),
                'PLUMBLINE_REFERENCES': str(self._references)}

    @property
    def has_references(self):
        return (self._references / f'{SYSTEM}.yaml').exists()

    def accept(self, apart):
        '''Make references of the sessions so far, those that began so many seconds apart.

        :returns: the complaint where they are not good enough, or :obj:`None`.
        '''
        done = self._plumbline(*_ACCEPT, '--apart', apart / 60, '--archive', self.archive, '--output', self._references / f'{SYSTEM}.yaml')
        return done.stdout.strip() if done.returncode else None

    def measure_with(self, fault, kind, number):
        '''The same with a fault (:class:`plumbline.bench.verdicts.faults.Fault`).'''
        self.folder.mkdir(parents=True, exist_ok=True)
        with fault.provoke(self.folder) as launch:
            session = self.measure(kind, number, launch)
            if session.name:
                self._set_aside(session)
        return session

    def _set_aside(self, session):
        '''The history of this machine knows no fault but what a session itself finds: others' losses would last, or have gone.'''
        path = self._file(session)
        aside = self._faulty / path.relative_to(self.archive)
        aside.parent.mkdir(parents=True, exist_ok=True)
        path.rename(aside)

    def _file(self, session):
        path, = (path for folder in (self.archive, self._faulty) for path in folder.glob(f'*/*/{session.name}.parquet'))
        return path

    def keep(self, session):
        '''Write what a session was; it.'''
        atomic.write(self.path(session.kind, session.number), json.dumps(asdict(session), indent=1))
        return session

    def measure(self, kind, number, launch=Launch(), checks=CHECKS):
        '''Run a session, and write what it was.'''
        started = time.time()
        self._references.mkdir(parents=True, exist_ok=True)
        shutil.copy(portable(directory()), self._references)
        code = self._reframe(launch, checks)
        done = self._plumbline('report', self.report, '--archive', self.archive, '--destination', self.folder / 'page', '--reframe-status', code)
        return self.keep(Session(kind, number, done.returncode, self._archived(), started, round(time.time() - started, 1), done.stdout))

    def rows(self, session):
        '''The archive's rows of a session that was measured.'''
        return archive.load_columns(self._file(session), list(archive.SCHEMA))

    def _archived(self):
        if not self.report.exists():
            return None
        name = archive.session_name(json.loads(self.report.read_text()))
        return name if any(self.archive.glob(f'*/*/{name}.parquet')) else None

    def _reframe(self, launch, checks):
        self.report.unlink(missing_ok=True)
        environs = [_name(toolchains.found()[:1]), _name([mpi()[0]])]
        command = [Path(sys.executable).with_name('reframe'), '-C', ROOT / 'config/localhost.py', '-c', ROOT / 'checks', '-R',
                   '-p', f"^({'|'.join(filter(None, environs))})$", '-n', checks, *MEASURE, *ONE_BY_ONE,
                   *(f'--setvar={name}={value}' for name, value in SETTINGS.items()), '--report-file', self.report, '-r']
        with open(self.folder / 'reframe.log', 'w', encoding='utf-8') as log, \
             ended(launch.start(command, self.environment, stdout=log, stderr=log, cwd=self.folder)) as process:
            return process.wait()

    def _plumbline(self, *words):
        return subprocess.run([*PLUMBLINE, *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def _name(environments):
    return environments[0]['name'] if environments and environments[0] else None
