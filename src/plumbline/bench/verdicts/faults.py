'''Faults of a machine, provoked for real and undone whatever happens: what `plumbline bench verdicts` must find.

``provoke(folder)`` of a :class:`Fault` is a context manager that gives the :class:`Launch` of what is to suffer from it.
'''

import contextlib
import ctypes
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from reframe.utility.cpuinfo import cpuinfo

from plumbline.bench.common import stand_ins
from plumbline.errors import PlumblineError
from plumbline.model import registry
from plumbline.mpi import environments
from plumbline.mpi.families import Settings, families
from plumbline.system import toolchains, topology

#: Of /usr/include/linux/prctl.h.
_PR_SET_PDEATHSIG, _PR_SET_THP_DISABLE = 1, 41
_prctl = ctypes.CDLL(None, use_errno=True).prctl

#: Bytes of the two arrays that the memory hog copies: more than any last-level cache.
HOG_BYTES = 2**29

#: Bytes up to which messages are sent at once, where the limit was lowered; MPIs come with 4 to 64 KiB.  (A higher one costs nothing here.)
EAGER = 512

_CGROUPS = Path('/sys/fs/cgroup')
_BUSY = "print('running', flush=True)\nwhile True: pass"
_HOG = (f'import numpy\na, b = numpy.zeros({HOG_BYTES // 16}), numpy.ones({HOG_BYTES // 16})\n'
        "print('running', flush=True)\nwhile True: numpy.copyto(a, b)")


class NotHere(PlumblineError):
    '''This fault cannot be provoked on this machine; the text says why.'''


@dataclass(frozen=True)
class Launch:
    '''How a program is started that is to suffer from a fault.

    :attr environment: further variables.
    :attr enter: called in the new process before the program.
    :attr before: words before the command.
    '''
    environment: dict = field(default_factory=dict)
    enter: Callable[[], object] | None = None
    before: tuple = ()

    def start(self, command, environment=None, **options):
        '''The process, in a session of its own: Ctrl-C is for us, and we end it.  It ends with us, too.'''
        def enter():
            _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if self.enter:
                self.enter()
        return subprocess.Popen([*self.before, *map(str, command)], env={**(environment or os.environ), **self.environment},
                                preexec_fn=enter, start_new_session=True, stdin=subprocess.DEVNULL, **options)


@contextlib.contextmanager
def ended(process, patience=30):
    '''A process of :meth:`Launch.start` that is ended with the context: asked first, for it has something to undo.'''
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextlib.contextmanager
def cgroup(version1, version2):
    '''A cgroup below ours; gives the function that moves the calling process there.

    :arg version1, version2: by the version of the hierarchy, (controller, dictionary file -> text).
    '''
    ours = {name: path for _, names, path in (line.split(':', 2) for line in Path('/proc/self/cgroup').read_text().splitlines())
            for name in names.split(',')}
    old = version1[0] in ours
    controller, files = version1 if old else version2
    parent = _CGROUPS / (controller if old else '') / ours.get(controller if old else '', '/').strip('/')
    group = parent / f'plumbline-{os.getpid()}-{controller}'
    for left in parent.glob(f'plumbline-*-{controller}'):       # of a benchmark that was killed
        if not Path('/proc', left.name.split('-')[1]).exists():
            _remove(left)
    try:
        if not old and controller not in (parent / 'cgroup.subtree_control').read_text().split():
            (parent / 'cgroup.subtree_control').write_text(f'+{controller}')
        group.mkdir()
    except OSError as error:
        raise NotHere(f'no cgroup with the controller {controller} can be made in {parent}: {error.strerror}') from None
    try:
        _write(group, files)
        yield lambda: (group / 'cgroup.procs').write_text('0')
    finally:
        _remove(group)


def _write(group, files):
    for name, text in files.items():
        try:
            (group / name).write_text(text)
        except OSError as error:
            raise NotHere(f'{group / name}: {error.strerror}') from None


def _remove(group):
    for _ in range(100):
        for process in (group / 'cgroup.procs').read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        with contextlib.suppress(OSError):      # the last has not gone yet
            return group.rmdir()
        time.sleep(0.05)
    raise PlumblineError(f'{group}: cannot be removed; look at its cgroup.procs')


def our_cpus():
    '''The CPUs that we may use, one of each core, in the order of the checks' threads.'''
    return topology.cpu_order(cpuinfo(), os.sched_getaffinity(0))


def _several_cpus():
    cpus = our_cpus()
    if len(cpus) < 2:
        raise NotHere('one CPU: there is no neighbour')
    return cpus


@contextlib.contextmanager
def quota(folder, share):
    '''CPU time for so much of the CPUs.'''
    period = 100_000
    given = str(round(share * len(our_cpus()) * period))
    with cgroup(('cpu', {'cpu.cfs_period_us': str(period), 'cpu.cfs_quota_us': given}), ('cpu', {'cpu.max': f'{given} {period}'})) as enter:
        yield Launch(enter=enter)


@contextlib.contextmanager
def neighbour(folder, program, place):
    '''A program of somebody else's on one of our CPUs: the first or the last.'''
    cpu = _several_cpus()[place]
    started = Launch(enter=lambda: os.sched_setaffinity(0, {cpu})).start([sys.executable, '-c', program], stdout=subprocess.PIPE, text=True)
    with ended(started, 5):
        if started.stdout.readline() != 'running\n':
            raise NotHere('the neighbour ended at once')
        yield Launch()


@contextlib.contextmanager
def one_cpu(folder):
    cpu = _several_cpus()[0]
    yield Launch(enter=lambda: os.sched_setaffinity(0, {cpu}))


@contextlib.contextmanager
def base_pages(folder):
    state = Path('/sys/kernel/mm/transparent_hugepage/enabled')
    if not state.exists() or '[never]' in state.read_text():
        raise NotHere('this kernel gives no transparent huge pages')
    yield Launch(enter=lambda: _prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0))


@contextlib.contextmanager
def one_domain(folder):
    domains = sorted(path.name[4:] for path in Path('/sys/devices/system/node').glob('node[0-9]*'))
    if len(domains) < 2:
        raise NotHere('one NUMA domain, in which first touch changes nothing')
    if not shutil.which('numactl'):
        raise NotHere('numactl is not installed')
    yield Launch(before=('numactl', f'--membind={domains[0]}'))


def _compiler():
    found = toolchains.found()
    if not found:
        raise NotHere('there is no compiler')
    return found[0]


@contextlib.contextmanager
def flags(folder, words, needs=''):
    '''Compilers that append flags to what they are told.

    :arg needs: a feature of the CPU in /proc/cpuinfo.
    '''
    if needs and needs not in Path('/proc/cpuinfo').read_text().split():
        raise NotHere(f'this CPU has no {needs}')
    name = re.sub(r'\W', '', words)
    commands = filter(None, map(_compiler().get, ('cc', 'ftn')))
    scripts = {command: f'exec {shlex.quote(shutil.which(command))} "$@" {words}' for command in commands}
    yield Launch({'PATH': stand_ins(folder / 'commands' / name, scripts)})


@functools.cache
def mpi():
    '''The environment of the first MPI, and its family; (None, None) where there is none.'''
    found = environments.found([_compiler()], as_root=True)
    return (found[0], families()[found[0]['features'][1]]) if found else (None, None)


@contextlib.contextmanager
def messages(folder, name, settings):
    '''A launcher of MPI programs that has ideas of its own.

    :arg settings: function family -> (:class:`families.Settings` that it adds, word -> word that it puts in its place).
    '''
    environment, family = mpi()
    if not environment:
        raise NotHere('there is no MPI')
    command = environment['extras']['launcher'][0]
    if shutil.which(os.path.basename(command)) != command:
        raise NotHere(f'{family.title} is not started by a command in PATH, for which another could stand')
    added, instead = settings(family)
    swaps = ' '.join(f'[ "$word" = {shlex.quote(old)} ] && word={shlex.quote(new)};' for old, new in instead.items())
    setting = shlex.join(['env', *(f'{key}={value}' for key, value in added.env.items()), command, *added.options])
    script = f'for word; do shift; {swaps} set -- "$@" "$word"; done\nexec {setting} "$@"'
    yield Launch({'PATH': stand_ins(folder / 'commands' / name, {os.path.basename(command): script})})


def _by_tcp(family):
    shared, tcp = family.transports['shm'].options, family.transports['tcp']
    same = len(shared)
    return (Settings(tcp.options[same:], tcp.env), {old: new for old, new in zip(shared, tcp.options) if old != new})


@contextlib.contextmanager
def slow_files(folder):
    '''A device that gives a fifth of what it gave before, and more in short bursts: the kernel counts over a tenth of a second, so that files
    of 1 MB do not feel it, and of 64 MB lose a third at a half and three quarters at a fifth.'''
    device = os.stat(folder).st_dev
    known = Path(f'/sys/dev/block/{os.major(device)}:{os.minor(device)}')
    if not known.exists():
        raise NotHere(f'{folder} is on no block device that could be throttled')
    if (known / 'partition').exists():
        known = known.resolve().parent
    number, rate = (known / 'dev').read_text().strip(), round(0.2 * _written(folder))
    with cgroup(('blkio', {f'blkio.throttle.{way}_bps_device': f'{number} {rate}' for way in ('read', 'write')}),
                ('io', {'io.max': f'{number} rbps={rate} wbps={rate}'})) as enter:
        yield Launch(enter=enter)


def _written(folder):
    '''Bytes per second that reach the device.'''
    path, data, count = folder / 'rate.tmp', os.urandom(2**20), 64
    try:
        began = time.perf_counter()
        with open(path, 'wb') as file:
            for _ in range(count):
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return count * len(data) / (time.perf_counter() - began)
    finally:
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Fault:
    '''A fault.

    :attr what, severity: for people.
    :attr subsystems: of the registry, that it makes slower.
    :attr causes: rules of ``data/diagnosis.yaml`` that name it; none: the subsystem that it makes slower is its name.
    :attr provoke: function folder -> context manager that gives a :class:`Launch`, or, of a fault of a node, function
        (:class:`plumbline.bench.sweeps.place.Place`, node) -> context manager; it raises :class:`NotHere` where that cannot be.
    '''
    what: str
    subsystems: tuple
    causes: tuple
    provoke: Callable
    severity: str = ''


MEMORY = (registry.MEMORY_ONE, registry.MEMORY_ALL)
_CACHES = (registry.L1, registry.L2)
ALL = (registry.CORE, *_CACHES, registry.L3, *MEMORY, registry.CPU_TIME)
_MESSAGES = (registry.MESSAGES_SHM,)

_QUOTA, _OTHERS, _CODE = ('quota',), ('noisy_neighbour',), ('lost_vectorisation', 'narrow_code')


def _eager(family):
    return family.eager.filled(value=EAGER), {}


#: Name -> :class:`Fault`.
FAULTS = {name: Fault(title, parts, named, functools.partial(provoke, **options)) for name, title, parts, named, provoke, options in (
    ('quota50', 'CPU quota of 50 %', ALL, _QUOTA, quota, {'share': 0.5}),
    ('quota80', 'CPU quota of 80 %', ALL, _QUOTA, quota, {'share': 0.8}),
    ('quota90', 'CPU quota of 90 %', ALL, _QUOTA, quota, {'share': 0.9}),
    ('hog', 'memory hog on the last core', (*MEMORY, registry.CPU_TIME), _OTHERS, neighbour, {'program': _HOG, 'place': -1}),
    ('shared', 'busy loop on the first core', ALL, _OTHERS, neighbour, {'program': _BUSY, 'place': 0}),
    ('affinity', 'one CPU for all threads', (registry.MEMORY_ALL, registry.CPU_TIME, *_MESSAGES), ('pinning',), one_cpu, {}),
    ('pages', 'huge pages off', (*MEMORY, registry.LATENCY), ('no_huge_pages',), base_pages, {}),
    ('domain', 'all pages in one NUMA domain', (registry.MEMORY_ALL,), ('remote_memory', 'first_touch'), one_domain, {}),
    ('O1', '-O1 for -O3', (*_CACHES, *MEMORY), _CODE, flags, {'words': '-O1'}),
    ('avx', 'a compiler without AVX', (*_CACHES, registry.CORE), _CODE, flags, {'words': '-mno-avx', 'needs': 'avx'}),
    ('tcp', 'MPI by TCP, not shared memory', _MESSAGES, ('transport', 'other_transport'), messages, {'name': 'tcp', 'settings': _by_tcp}),
    ('eager', 'eager limit of the MPI 512 bytes', _MESSAGES, ('eager_moved',), messages, {'name': 'eager', 'settings': _eager}),
    ('files', 'device throttled to a fifth of its rate', (registry.FILES,), ('file_device',), slow_files, {}),
)}
