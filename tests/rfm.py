'''Running the real ReFrame and the real ``plumbline``, in processes and folders of their own.'''

import contextlib
import datetime
import functools
import http.server
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars
import pytest
from reframe.utility.cpuinfo import cpuinfo

import preloaded
from plumbline.model import probes
from plumbline.references import Reference, files
from plumbline.report import figures
from plumbline.rfm import evaluation
from plumbline.store import archive
from plumbline.system import topology

REPOSITORY = Path(__file__).resolve().parents[1]
GUARDS = Path(__file__).with_name('guards')
#: References of the canned checks.
KNOWN = GUARDS / 'references'
LIKWID = ('likwid-bench', 'likwid-perfctr', 'likwid-pin')

_REFRAME = Path(sys.executable).with_name('reframe')
PLUMBLINE = [sys.executable, '-c', 'from plumbline.cli import main; main()']

#: Module with a ``main()``, the words that start it, and what it is called then.
_LOADED = [('reframe.frontend.cli', [str(_REFRAME)], str(_REFRAME)), ('plumbline.cli', PLUMBLINE, '-c')]
_preloaded = functools.cache(preloaded.Preloaded)

_caches = [level for level in topology.levels(cpuinfo()) if level != 'memory']
_claim = topology.capacity(cpuinfo(), _caches[-1]) if _caches else 2**23

#: Bytes of the last-level cache, for the tests: no more than what is beyond it can be touched in a moment.
LAST_LEVEL = min(_claim, max(2**23, 8 * topology.capacity(cpuinfo(), _caches[-2]))) if _caches[-1:] == ['L3'] else _claim


def capacity(**levels):
    '''A value of PLUMBLINE_CAPACITY: these bytes of levels, and no more of the last one than is touched in a moment.'''
    return ','.join(f'{level}={size}' for level, size in (({'L3': LAST_LEVEL} if _claim != LAST_LEVEL else {}) | levels).items()) or 'topology'


#: What the person who runs the tests may have set, and what would change a run.
_FOREIGN = ('RFM_', 'PLUMBLINE_', 'OMP_', 'KMP_', 'LIKWID', 'SLURM_', 'CANNED_')


@dataclass
class Done:
    '''A process that has ended.

    :attr code: its exit code.
    :attr out: standard output and standard error, in this order.
    :attr report: the run report, or :obj:`None` if there is none.
    '''
    code: int
    out: str
    report: dict | None = None

    def cases(self, run=-1):
        '''Test cases of a run that are no fixtures: display name -> entry of the run report.'''
        return {case['name']: case for case in self.report['runs'][run]['testcases'] if not case['fixture']}

    def fixtures(self):
        '''The same for the fixtures: class name -> entry.'''
        return {case['name'].split(' ')[0]: case for case in self.report['runs'][0]['testcases'] if case['fixture']}

    def line(self, text):
        '''The only line that holds this text.'''
        found = {line.strip() for line in self.out.splitlines() if text in line}
        assert len(found) == 1, f'{text!r} is in {len(found)} lines of:\n{self.out}'
        return found.pop()


def ended(words, cwd=None, environment=None):
    '''A command that has ended, as of :func:`subprocess.run` with text; ReFrame and ours are forked from a process that has loaded the libraries.'''
    words, environment = list(map(str, words)), {name: str(value) for name, value in (os.environ if environment is None else environment).items()}
    for module, start, name in _LOADED:
        if words[:len(start)] == start and preloaded.suits(environment):
            umask = int(re.search(r'Umask:\s*(\d+)', Path('/proc/self/status').read_text())[1], 8)      # os.umask is not for threads
            done = _preloaded(umask).run(module, [name, *words[len(start):]], cwd or os.getcwd(), environment, timeout=300)
            return subprocess.CompletedProcess(words, *done)
    return subprocess.run(words, cwd=cwd, text=True, timeout=300, stdin=subprocess.DEVNULL, capture_output=True, env=environment)


def ordinary_user():
    '''Words before a command that run it as another user; the test is skipped where there is none.'''
    rights = '-all,+dac_read_search'        # to read: the clone may be in a home that others cannot look into
    words = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', f'--inh-caps={rights}', f'--ambient-caps={rights}', f'--bounding-set={rights}']
    if os.geteuid() != 0 or not shutil.which('setpriv') or subprocess.run([*words, 'true'], capture_output=True).returncode:
        pytest.skip('no other user can be had here (root, setpriv)')
    return words


def small(cross_check='none'):
    '''Options of a run that shows whether checks work, not what they measure: as few samples as are accepted, and memory just
    large enough not to be a cache.

    :arg cross_check: what likwid-bench measures.
    '''
    size = 2 * LAST_LEVEL
    return ['-r', '--exec-policy=serial', '-S', 'samples=10', '-S', 'processes=1', '-S', f'memory_bytes={size + 2**20}', '-S', f'likwid_bench.levels={cross_check}']


def files_of(checks, options):
    '''Of a folder of our checks the files with those that ``-n`` may name: to load all takes ReFrame seconds.'''
    named = {word for option, value in itertools.pairwise(options) if option == '-n' for word in re.findall(r'[a-z]\w{2,}', value)}
    if not named or not (Path(checks) / 'x.py').is_relative_to(REPOSITORY / 'checks') or not Path(checks).is_dir():
        return [checks]
    return [path for path in sorted(Path(checks).rglob('*.py')) if any(
        word in name or name in word for name in re.findall(r'(?m)^class (\w+)', path.read_text()) for word in named)] or [checks]


def assert_measured(case):
    '''A test case went well.  On a busy machine a metric may miss its reference; nothing else may go wrong.'''
    assert case['result'] == 'pass' or case['fail_phase'] == 'performance', case['fail_reason']


def metrics_of(case):
    '''Name -> metric of a test case.'''
    return {metric['name']: metric for metric in case['plumbline']['metrics']}


def measured_of(done, name):
    '''(Metrics by their names, result) of the test case of a run whose name begins so, and that went well.'''
    case = next(case for key, case in done.cases().items() if key.startswith(name))
    assert_measured(case)
    return metrics_of(case), case['plumbline']


def judged_on_day_one(found, metric=''):
    '''Names of metrics, that begin so, which the shipped references judge, or would: on a shared host somebody may have worked beside a core.'''
    beside = probes.doubt_beside(np.ones(1)).partition(' beside ')[0]
    return {name for name, of in found.items() if name.startswith(metric)
            and (of.get('reference_from') == 'portable.yaml' or of.get('unjudged', '').startswith(beside))}


def by_shipped(check, keys, metric):
    '''A metric as the shipped references judge it.

    :arg keys: those of the references of that check, from the partition on.
    '''
    bounds = files.lookup(files.load(REPOSITORY / 'config/references/portable.yaml'), check, keys)[metric.name]
    return evaluation.judged(evaluation.Case(metric, reference=Reference(tuple(bounds[:3])), reference_from='portable.yaml'))


def detail_of(check, case):
    '''What the report's figures get of a check's test case.'''
    return {**case['plumbline'], 'check': check, 'hostname': 'here', 'partition': 'p', 'environ': 'gnu'}


def assert_drawn(check, case, source=''):
    '''The report has figures of a check's test case, each with a sentence that names where the measurement is from.'''
    name = check.split()[0]
    drawn = figures.of_check(name, [detail_of(name, case)])
    assert drawn and all(figure is not None and text.endswith('.') and source in text for _, text, figure in drawn)


def installed(folder, package):
    '''A folder for PYTHONPATH into which pip has installed a package, without what it needs; the test is skipped where it cannot.'''
    try:
        done = subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-input', '--retries', '1',
                               '--no-deps', '--target', str(folder), package], text=True, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip(f'{package}: the package index does not answer')
    if done.returncode:
        pytest.skip(f'{package}: pip cannot install it: {done.stderr.strip().splitlines()[-1]}')
    return folder


@contextlib.contextmanager
def small_disk(folder, size):
    '''A file system of so much at ``folder``; the test is skipped where none can be mounted.'''
    folder.mkdir(parents=True)
    if os.geteuid() or subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs', folder], capture_output=True).returncode:
        pytest.skip('a small file system cannot be mounted here: that takes root')
    try:
        yield folder
    finally:
        subprocess.run(['umount', '-l', folder], check=True)


@contextlib.contextmanager
def listener():
    '''An HTTP server: its port, and the bodies of what was posted to it, each with its ``headers``.'''
    got = []

    class Posted(bytes):
        headers = None

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(Posted(self.rfile.read(int(self.headers['Content-Length']))))
            got[-1].headers = self.headers
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, got
        server.shutdown()


def tools(folder, without=(), scripts=()):
    '''A folder for PATH that holds what PATH holds, but for some commands.

    :arg without: names of commands that are not there.
    :arg scripts: paths of scripts that stand in for the commands of their names.
    :returns: the folder.
    '''
    folder.mkdir()
    instead = {path.name: path for path in scripts}
    for place in os.environ['PATH'].split(':'):
        for entry in os.scandir(place) if os.path.isdir(place) else ():
            if entry.name not in {*without, *instead} and not os.path.lexists(folder / entry.name):
                os.symlink(entry.path, folder / entry.name)
    for name, path in instead.items():
        os.symlink(path, folder / name)
    return folder


def script(path, text):
    '''A command that runs this script of the shell, instead of what is there; its path.'''
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(f'#!/bin/sh\n{text}\n')
    path.chmod(0o755)
    return path


def laid(folder, files):
    '''The folder, with files in it: path -> text.'''
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def with_stream(folder, **variables):
    '''A workplace on this machine that has STREAM and GROMACS in its PATH; its references are in ``folder/references``.'''
    for part in ('bin', 'references'):
        (folder / part).mkdir()
    for name in ('stream', 'gmx_mpi'):
        (folder / 'bin' / name).symlink_to(GUARDS / name)
    return Workplace(folder / 'place', f"{folder / 'bin'}:{os.environ['PATH']}", PLUMBLINE_REFERENCES=folder / 'references', **variables)


class Workplace:
    '''A folder with the reports of its own runs.

    :arg folder: made if it is not there.
    :arg path: the folder of commands (:func:`tools`); PATH as it is by default.
    :arg config: ReFrame's configuration.
    :arg environment: further variables of all processes.
    '''

    def __init__(self, folder, path=None, config=GUARDS / 'config.py', **environment):
        self.folder, self.config = folder, config
        folder.mkdir(parents=True, exist_ok=True)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
        # ReFrame leaves a log in TMPDIR.  No test waits for its next look; a batch system is not asked as often as a process.
        rate = '10' if 'SLURM_CONF' in environment else '50'
        self.environment |= {'HOME': str(folder), 'TMPDIR': str(folder), 'PLUMBLINE_REPORTS': str(folder / 'reports'),
                             'RFM_POLL_RATE_MAX': rate, 'RFM_POLL_RATE_MIN': rate}
        # Seconds that only the tests of the capacity need.  Made-up machines have caches of their own, true programs those of this one.
        made_up = GUARDS in config.parents and 'CANNED_PROGRAMS' not in environment
        self.environment |= {'PLUMBLINE_CAPACITY': 'topology' if made_up else capacity()}
        self.environment |= {'PATH': str(path)} if path else {}
        self.environment |= {key: str(value) for key, value in environment.items()}
        self.report, self.began = folder / 'run.json', 0

    @property
    def stage(self):
        return self.folder / 'reports/reframe/stage'

    def run(self, command, **environment):
        done = ended(command, self.folder, {**self.environment, **environment})
        return Done(done.returncode, done.stdout + done.stderr)

    def reframe(self, *options, checks=GUARDS / 'canned.py', before=(), **environment):
        '''``reframe -C CONFIG -c CHECKS OPTIONS``.

        :arg before: what to write in front of the command, e.g. ``taskset -c 0``.
        '''
        self.report.unlink(missing_ok=True)
        self._in_a_second_of_its_own()
        done = self.run([*before, *self.reframe_command(*options, checks=checks)], **environment)
        if self.report.exists():
            done.report = json.loads(self.report.read_text())
            self.began = int(done.report['session_info']['time_start_unix'])
        return done

    def _in_a_second_of_its_own(self):
        '''Names of sessions are sorted by the second in which they began; those of one second come in any order.'''
        while int(time.time()) == self.began:
            time.sleep(0.02)

    def start_reframe(self, *options, checks):
        '''The same in the background; the process.'''
        return subprocess.Popen(list(map(str, self.reframe_command(*options, checks=checks))), cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)

    def reframe_command(self, *options, checks=GUARDS / 'canned.py'):
        # The shipped checks are tested with gcc; test_toolchains.py is there for the other compilers.
        with_gcc = ['-p', '^gnu'] if self.config.name == 'localhost.py' and '-p' not in options else []
        files = [word for path in files_of(checks, options) for word in ('-c', path)]
        return [_REFRAME, '-C', self.config, *files, '-R', '--report-file', self.report, *with_gcc, *options]

    def plumbline(self, *arguments, **environment):
        return self.run([*PLUMBLINE, *arguments], **environment)

    def judge(self):
        '''``plumbline report`` of the last run.'''
        return self.plumbline('report', self.report)

    def accept(self, system, *options, **environment):
        '''``plumbline references accept`` of the last session that was judged, as if it had been measured five times.'''
        used = five_times(archive.sessions(self.folder / 'reports/archive', system)[-1])
        return self.plumbline('references', 'accept', system, *used, *options, **environment)


def five_times(path):
    '''Archive a session as if it had been measured five times; the options of ``plumbline references accept`` that use these.'''
    rows, names = polars.read_parquet(path), [path.stem]
    for seconds in range(1, 5):
        started = rows['started'][0] - datetime.timedelta(seconds=seconds)
        names.append(f"{started:%Y%m%dT%H%M%SZ}-{path.stem.partition('-')[2]}")
        rows.with_columns(session=polars.lit(names[-1])).write_parquet(path.with_name(f'{names[-1]}.parquet'))
    return ['--sessions', '5', *(option for name in names for option in ('--with', name))]
