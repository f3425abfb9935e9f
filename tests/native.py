'''Building and calling the native programs, for the tests.'''

import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import pytest

from plumbline.model import records

SOURCE = pathlib.Path(__file__).resolve().parent.parent / 'src'

#: The kernels: each is a folder, and a program of that name.
KERNELS = sorted(path.parent.name for path in SOURCE.glob('kernels/*/CMakeLists.txt'))

#: The CPUs that a test may use.
CPUS = sorted(os.sched_getaffinity(0))

#: Numbers of threads with which a kernel is tried: one, and three where there are as many CPUs.
THREADS = [1, min(3, len(CPUS))] if len(CPUS) > 1 else [1]

#: Folder for what is compiled, of all builds of a test run; conftest.py says which.
kept = None

#: What would change how the programs run.
_FOREIGN = re.compile('OMP_|GOMP_|KMP_|LIKWID_|ASAN_|UBSAN_|LSAN_|PLUMBLINE_(LATENCY|OVERHEAD|GAP|PACK)_')

#: Options of a run that shows whether results are right: more samples, and probes beside each, would take most of its time.
SAMPLES = ['--samples', 3, '--probes', 'off']
QUICK = [*SAMPLES, '--passes', 1]

#: The same with as many samples as a measurement has.
MEASURED = ['--samples', 10, '--probes', 'off', '--passes', 1]

#: A build with sanitizers, hardly optimised: that takes less than half as long to compile.
SANITIZED = ('-DPLUMBLINE_SANITIZE=address,undefined', '-DPLUMBLINE_C_FLAGS=-O1 -march=native')

two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason='only one CPU may be used here')
x86_only = pytest.mark.skipif(os.uname().machine != 'x86_64', reason='the intrinsics are written for x86-64')


def finding(stand_in, at, *command):
    '''The command, as it runs where a path of the system's leads to a file or folder of the test's; skips where nobody may do that.'''
    if not shutil.which('unshare') or subprocess.run(['unshare', '--mount', 'mount', '--bind', stand_in, at], capture_output=True).returncode:
        pytest.skip('not allowed to mount here')
    return ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" "$1" && shift && exec "$@"', stand_in, at, *command]


def two_domains(folder):
    '''A folder that stands in for /sys/devices/system/node: a NUMA domain for each of the first two CPUs that may be used.'''
    folder.mkdir()
    for name in ('online', 'has_cpu', 'possible'):
        (folder / name).write_text('0-1\n')
    for node, cpu in enumerate(CPUS[:2]):
        (folder / f'node{node}').mkdir()
        (folder / f'node{node}/cpulist').write_text(f'{cpu}\n')
        (folder / f'node{node}/cpumap').write_text(f'{1 << int(cpu):x}\n')
    return folder


def edges_of(kernel):
    '''Sizes smaller than a vector, prime, no multiple of a block; of kernels whose size is the edge of a crystal, or of a grid, the least.'''
    return {'md': '4,5,7', 'planewave': '4,5,8'}.get(kernel, '1,2,3,5,8,17,67')


def team_of(kernel):
    '''Options for the smallest team that a kernel runs with; skips the test where there are not as many CPUs.'''
    if kernel != 'cores':
        return []
    if len(CPUS) < 2:
        pytest.skip('only one CPU may be used here')
    return ['--threads', 2]


def needs(*tools):
    '''Skip the test, by name, where a tool is not there.'''
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f'{tool} is not there')


def environment(**changes):
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
    return {**kept, 'OMP_WAIT_POLICY': 'passive', **changes}


def output_of(*command, **options):
    '''Standard output of a tool; its complaint is the failure of the test.'''
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def listed(values):
    '''A list as the programs' options take it.'''
    return ','.join(map(str, values))


def all_right(measurements):
    return all(record['valid'] and record['max_error'] == 0 for record in measurements)


def pointer(array, element=0):
    '''To an element of an array, as a loop takes it.'''
    return ctypes.c_void_p(array.ctypes.data + element * array.itemsize)


def libraries(build, program):
    '''What the program itself is linked with.'''
    needs('ldd')
    loaded = [line.split() for line in output_of('ldd', build.path(program)).splitlines()]
    return ['-lm', *(words[2] for words in loaded if len(words) == 4 and any(name in words[0] for name in ('blas', 'likwid', 'gfortran')))]


def library(programs, folder, program, *sources):
    '''A shared library, made with the flags that the records of a program state: of these files of ``src``, and of the kernel's loops in Fortran.'''
    flags = programs.measured(program, '--size', 8, *QUICK).measurements[0]['flags'].split()
    objects = [SOURCE / name for name in sources]
    if 'fortran' in programs.runnable(program):
        output_of('gfortran', '-O3', '-march=native', '-fPIC', f'-J{folder}', '-c', SOURCE / f'kernels/{program}/kernel.f90', '-o', folder / 'fortran.o')
        objects.append(folder / 'fortran.o')
    output_of('cc', *flags, '-shared', '-fPIC', '-I', SOURCE / 'harness', *objects, '-o', folder / 'loops.so', '-lm')
    return ctypes.CDLL(folder / 'loops.so')


def refused(outcome, *parts):
    '''A program has refused what it was given, in one line with these words.'''
    assert outcome.code == 2 and '"measurement"' not in outcome.text
    assert re.fullmatch(r'plumbline: [^\n]+\n', outcome.errors), outcome.errors
    for part in parts:
        assert part in outcome.errors


def circles(folder):
    '''Files of a target that use each other, in a circle: a list of lists, empty where they lie in layers.

    :arg folder: of a build.
    '''
    found = []
    for target in sorted(folder.glob('**/CMakeFiles/*.dir')):
        defined, used = {}, {path: set() for path in map(str, target.rglob('*.o'))}
        for line in output_of('nm', '--extern-only', '--print-file-name', *used).splitlines() if used else ():
            path, kind, name = line.partition(':')[0], *line.split()[-2:]
            if kind == 'U':
                used[path].add(name)
            elif kind != 'w':
                defined[name] = path
        below = {path: {defined[name] for name in names if defined.get(name, path) != path} for path, names in used.items()}
        try:
            TopologicalSorter(below).prepare()
        except CycleError as error:
            found.append(error.args[1])
    return found


def copied(folder, *parts):
    '''A copy of what programs are built from, to be broken: what all need of ``src``, and these folders of it.'''
    for part in ('cmake', 'harness', *parts):
        shutil.copytree(SOURCE / part, folder / part)
    shutil.copy(SOURCE / 'CMakeLists.txt', folder)
    return folder


def linked(folder, *programs):
    '''A new folder with links to these programs: a build of ReFrame's copies and disassembles all that it is handed.'''
    folder.mkdir()
    for path in programs:
        (folder / path.name).symlink_to(path)
    return folder


@contextlib.contextmanager
def alone_in(folder):
    '''Keep other processes of this test run from building in a folder.  Whoever comes second finds everything built.'''
    with open(f'{folder}.lock', 'w') as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def configure(folder, *options, env):
    '''``cmake`` for a build folder.'''
    ninja = ['-G', 'Ninja'] if shutil.which('ninja') else []
    once = [f'-DCMAKE_C_COMPILER_LAUNCHER=bash;{SOURCE.parent}/tests/once.sh;{kept}'] if kept and shutil.which('bash') else []
    output_of('cmake', *ninja, *once, *options, '-B', folder, env=env)


def make(folder, *targets, env):
    '''Build all targets of a folder, or some.'''
    chosen = ['--target', *targets] if targets else []
    output_of('cmake', '--build', folder, '--parallel', str(len(CPUS)), *chosen, env=env)


def configure_and_make(folder, *options, targets, env):
    '''Both, once: what the same options have built in this test run is left as it is.'''
    done, asked = folder / 'asked', '\n'.join(map(str, (*options, *targets)))
    with alone_in(folder):
        if not done.exists() or done.read_text() != asked:
            done.unlink(missing_ok=True)
            configure(folder, *options, env=env)
            make(folder, *targets, env=env)
            done.write_text(asked)


@dataclass
class Outcome:
    '''How a program ended.'''
    code: int
    text: str
    errors: str

    @property
    def machine(self):
        return records.parse(self.text).machine

    @property
    def measurements(self):
        return records.parse(self.text).measurements

    def kernels(self):
        return [r for r in self.measurements if r['role'] == 'kernel']

    def limits(self):
        return [r for r in self.measurements if r['role'] == 'limit']


@dataclass
class Variant:
    '''A line of ``--list``.'''
    name: str
    isa: str
    in_build: bool
    on_cpu: bool
    in_all: bool

    @property
    def runs(self):
        '''With ``--variants all``.'''
        return self.in_build and self.on_cpu and self.in_all


class Build:
    '''A build folder of ``src/``, or of a copy of it.'''

    def __init__(self, folder, *options, source=SOURCE, targets=()):
        needs('cmake', 'cc')
        self.folder = folder
        configure_and_make(folder, *options, '-S', source, targets=targets, env=environment())

    def make(self, *targets):
        with alone_in(self.folder):
            make(self.folder, *targets, env=environment())

    def path(self, program):
        return self.folder / 'bin' / program

    def run(self, program, *arguments, on=None, **variables):
        '''Call a program; with ``on``, on these CPUs only.'''
        command = [str(part) for part in (self.path(program), *arguments)]
        if on is not None:
            needs('taskset')
            command = ['taskset', '-c', ','.join(map(str, on)), *command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment(**variables))
        return Outcome(done.returncode, done.stdout, done.stderr)

    def measured(self, program, *arguments, **options):
        '''Call a program that must end well and say nothing but records.'''
        found = self.run(program, *arguments, **options)
        assert (found.code, found.errors) == (0, '')
        assert found.measurements
        return found

    def variants(self, program):
        lines = self.run(program, '--list').text.splitlines()[1:]
        found = [re.fullmatch(r'  (\S+) +(\S+) +(.*)', line).groups() for line in lines]
        return [Variant(name, isa, '[not in this build]' not in about, '[not on this CPU]' not in about, '[not of all]' not in about)
                for name, isa, about in found]

    def runnable(self, program):
        return {variant.name for variant in self.variants(program) if variant.runs}
