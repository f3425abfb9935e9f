'''What all tests share.'''

import contextlib
import fcntl
import functools
import itertools
import os
import pathlib
import shutil
import tempfile
import types

import pytest
from xdist.scheduler import LoadFileScheduling

# Each process of tests has CPUs of its own, where there are two for each; before anything asks which there are.
if 'PYTEST_XDIST_WORKER' in os.environ:
    _cpus = sorted(os.sched_getaffinity(0))
    _each = len(_cpus) // int(os.environ['PYTEST_XDIST_WORKER_COUNT'])
    _first = _each * int(os.environ['PYTEST_XDIST_WORKER'].removeprefix('gw'))
    if _each > 1:
        os.sched_setaffinity(0, _cpus[_first:_first + _each])

import native
import rfm
from mpi_native import MPIS, MpiBuild, broken
from native import KERNELS, SANITIZED, Build
from plumbline import atomic
from plumbline.settings import REPORTS
from plumbline.simulation import program
from plumbline.system import toolchains

# --- several processes of tests beside each other -----------------------------------------------------------------

SHARED = pytest.StashKey[pathlib.Path]()


def pytest_configure(config):
    '''Every process of this test run knows one folder.'''
    given = getattr(config, 'workerinput', {}).get('shared')
    config.stash[SHARED] = pathlib.Path(given or tempfile.mkdtemp(prefix='plumbline-tests-'))
    native.kept = config.stash[SHARED] / 'objects'
    native.kept.mkdir(exist_ok=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput['shared'] = str(node.config.stash[SHARED])


class FilesThenAlone(LoadFileScheduling):
    '''Each file of tests goes to one process, but for the tests marked ``alone``: those of all files go to one, as the last.'''

    @functools.cached_property
    def alone(self):
        return frozenset((self.config.stash[SHARED] / 'alone').read_text().split('\n'))

    def _split_scope(self, nodeid):
        return 'alone' if nodeid in self.alone else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return FilesThenAlone(config, log) if config.getvalue('dist') == 'loadfile' else None


def pytest_unconfigure(config):
    if not hasattr(config, 'workerinput'):
        shutil.rmtree(config.stash[SHARED])


# --- layers -----------------------------------------------------------------------------------------------------------

#: What a test needs besides Python, from little to much: ``make check`` runs what is quick of the first.
LAYERS = ('unit', 'native', 'reframe', 'mpi', 'cluster', 'page')

#: Layer -> fixtures that make a test one of it, and files whose tests all are.
_FIXTURES = {'native': {'programs', 'sanitized', 'llvm', 'installed'}, 'reframe': {'measuring', 'built_already', 'stories'},
             'mpi': {'mpi_broken', 'mpi_programs', 'mpi_sanitized', 'measuring_mpi'}, 'cluster': {'cluster'}, 'page': {'browser'}}
_FILES = {'native': 'bench_verdicts compiler_options cores fdtd fileio flops gather latency lbm md motion mutants native parts planewave probes simulation spmv stencils teams transpose',
          'reframe': 'configurations guards odd_files other_suites perflogs readme redundancy reframes_ways run sites spack states toolchains traffic triad trust within_node',
          'mpi': 'damage datatype latency_injection mpi named_run pack pairs patterns pingpong rma sensitivity sp',
          'cluster': 'cluster detect gate_cluster judged nodes schedule scheduler_errors sweep', 'page': 'docs'}


def _layer(item):
    '''Also of a fixture that is named by a parameter, and of a marker.'''
    name, callspec = item.path.stem.removeprefix('test_'), getattr(item, 'callspec', None)
    used = {*item.fixturenames, *(value for value in (callspec.params.values() if callspec else ()) if isinstance(value, str))}
    return next((layer for layer in reversed(LAYERS[1:]) if name in _FILES[layer].split() or _FIXTURES[layer] & used or item.get_closest_marker(layer)), 'unit')


def pytest_collection_modifyitems(items):
    '''Files that mostly wait, for messages or a cluster, by turns with those that compute: beside each other they take less time.
    Those that need least come late: they are short, and no process waits long for the others.  What runs alone is last: no other process
    waits for a turn between two of these tests.'''
    most = {}
    for item in items:
        layer = _layer(item)
        item.add_marker(layer)
        most[item.path] = max(most.get(item.path, 0), LAYERS.index(layer))
    turns = {True: itertools.count(), False: itertools.count()}
    turn = {}
    for path in sorted(most, key=most.get, reverse=True):
        waits = LAYERS[most[path]] in ('mpi', 'cluster')
        turn[path] = most[path] == 0, next(turns[waits]), waits
    items.sort(key=lambda item: (_is_alone(item), turn[item.path]))
    if items:
        atomic.write(items[0].config.stash[SHARED] / 'alone', '\n'.join(item.nodeid for item in items if _is_alone(item)))


def _is_alone(item):
    return item.get_closest_marker('alone') is not None


def pytest_runtest_logreport(report):
    '''The seconds of each layer, in the process that tells them.'''
    layer = next((layer for layer in LAYERS if layer in report.keywords), 'unit')
    _SECONDS[layer] = _SECONDS.get(layer, 0) + report.duration


_SECONDS = {}


def pytest_terminal_summary(terminalreporter):
    told = ', '.join(f'{layer} {_SECONDS[layer]:.0f} s' for layer in LAYERS if layer in _SECONDS)
    terminalreporter.write_line(f'layers: {told}')


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    '''A test marked ``alone`` runs beside no other, nor do its fixtures: it waits for those that run, and the next wait for it.'''
    folder = item.config.stash[SHARED]
    with open(folder / 'gate', 'w') as gate, open(folder / 'tests', 'w') as tests:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(tests, fcntl.LOCK_EX if _is_alone(item) else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        return (yield)


@pytest.fixture(autouse=True)
def same_umask():
    '''Configurations close what root writes to others, for good: in the process of the tests, too.'''
    before = os.umask(0)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def clean_archive():
    '''No test leaves a session of its own in the clone's archive, where it would be this machine's newest.'''
    before = set((REPORTS / 'archive').rglob('*.parquet'))
    yield
    assert set((REPORTS / 'archive').rglob('*.parquet')) <= before, "a session of this test is in the clone's own archive"


@pytest.fixture
def fitting(monkeypatch):
    '''What is made up fits its schema (test_archive.py): to look at each session takes longer than all else.'''
    monkeypatch.setattr('plumbline.store.archive_rows.schemas', types.SimpleNamespace(complaint=lambda *_: None))


@pytest.fixture(scope='session')
def shared(request):
    '''Function (name) -> a folder that all processes of this test run share.'''
    def folder(name):
        path = request.config.stash[SHARED] / name
        path.mkdir(exist_ok=True)
        return path
    return folder


# --- what is built ------------------------------------------------------------------------------------------------

@pytest.fixture(scope='session')
def repository() -> pathlib.Path:
    '''The root of this clone.'''
    return pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope='session')
def programs(shared) -> Build:
    '''The native programs as users get them.'''
    return Build(shared('programs'))


@pytest.fixture(scope='session')
def sanitized(shared) -> Build:
    '''The native programs under the address and undefined-behaviour sanitizers.'''
    return Build(shared('sanitized'), *SANITIZED, targets=[*KERNELS, 'burn'])


@pytest.fixture(params=['programs', 'sanitized'])
def build(request) -> Build:
    '''Either of the two: a test runs with each.'''
    return request.getfixturevalue(request.param)


@pytest.fixture(scope='session')
def llvm(shared):
    '''The programs with threads, built with clang, and with flang where it is.'''
    found = toolchains.toolchains()['llvm'].found()
    if not found:
        pytest.skip('clang is not there')
    fortran = [f"-DCMAKE_Fortran_COMPILER={found['ftn']}"] if found['ftn'] else ['-DPLUMBLINE_FORTRAN=OFF']
    return Build(shared('llvm'), f"-DCMAKE_C_COMPILER={found['cc']}", *fortran, targets=KERNELS)


@pytest.fixture(scope='session')
def simulated(shared):
    '''The program that SimGrid runs; those of pairs and patterns lie beside it.  With ``parents[3]`` for its reports ReFrame finds it built.'''
    if reason := program.missing():
        pytest.skip(reason)
    return program.build(shared('simulation') / 'build')


def _canned(folder, without=()):
    real = shutil.which('objdump')
    rfm.tools(folder, without, [rfm.GUARDS / 'cmake', *([rfm.GUARDS / 'objdump'] if real else [])])
    if real:
        (folder / 'real-objdump').symlink_to(real)
    return folder


@pytest.fixture(scope='session')
def built_already(tmp_path_factory):
    '''A PATH in which ``cmake`` hands out programs that these tests have built, and ``objdump`` reads each of them once.'''
    return _canned(tmp_path_factory.mktemp('path') / 'bin')


@pytest.fixture(scope='session')
def commands(tmp_path_factory):
    '''The same without LIKWID: likwid-pin sleeps for a second before each program.'''
    return _canned(tmp_path_factory.mktemp('path') / 'bin', rfm.LIKWID)


@pytest.fixture(scope='session')
def handed_out(programs, shared):
    '''Links to the programs that checks run: each run of ReFrame copies and disassembles them all.  Of the serial ones that is one.'''
    folder, _ = shared('handed-out'), shared('handed-out.asm')
    for path in programs.folder.glob('bin/*'):
        if not path.name.endswith('-serial') or path.name == 'fileio-serial':
            with contextlib.suppress(FileExistsError):
                (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(scope='session')
def measuring(handed_out, commands):
    '''Function (folder, PATH, variables) -> a workplace in which ReFrame runs the shipped checks for real, with the programs
    that these tests have built already.'''
    def make(folder, path=commands, **environment):
        return rfm.Workplace(folder, path, config=rfm.REPOSITORY / 'config/localhost.py',
                             CANNED_PROGRAMS=handed_out, **environment)
    return make


@pytest.fixture(scope='session')
def browser():
    return shutil.which('chromium') or shutil.which('chromium-browser') or pytest.skip('chromium is not installed')


@pytest.fixture(scope='session')
def mpi_programs(shared):
    '''Function (family) -> the MPI programs built with it, once; skips the test where it is not there.'''
    return functools.cache(lambda mpi: MpiBuild(shared(f'mpi-{mpi}'), mpi))


@pytest.fixture(scope='session')
def measuring_mpi(mpi_programs, commands, tmp_path_factory):
    '''Function (folder, family, variables) -> a workplace in which ReFrame runs the shipped MPI checks for real, with the
    programs that these tests have built already.'''
    canned = tmp_path_factory.mktemp('wrappers')

    def make(folder, mpi, **environment):
        link = canned / os.path.basename(MPIS[mpi]['cc']) if mpi in MPIS else None
        built = mpi_programs(mpi)
        if not link.exists():
            link.symlink_to(built.folder)
        return rfm.Workplace(folder, commands, config=rfm.REPOSITORY / 'config/localhost.py', CANNED_MPI=canned, **environment)
    return make


@pytest.fixture(scope='session')
def mpi_broken(shared):
    '''Programs with one MPI whose results are wrong, as :data:`mpi_native.BROKEN` says.'''
    return broken(shared('broken'))


@pytest.fixture(scope='session')
def mpi_sanitized(shared):
    '''The MPI programs under the address and undefined-behaviour sanitizers, but for SP, which test_sp.py builds so without the runtime.'''
    targets = ('cg', 'datatype', 'lbm-slabs', 'md', 'pairs', 'patterns', 'pingpong', 'planewave', 'plumbline_pack', 'rma', 'triad-ranks')
    return functools.cache(lambda mpi: MpiBuild(shared(f'sanitized-{mpi}'), mpi, *SANITIZED, targets=targets))
