'''libplumbline_pack: the right bytes from and to the right places, by every call, with every MPI there is.'''

import functools
import pathlib
import re
import shutil
import subprocess

import pytest

import mpi4py_suite
from mpi_native import MPIS, any_mpi, every_mpi, mpirun, needs_mpi, patient, variables
from native import SOURCE, configure, make, needs, output_of
from plumbline.mpi.families import families

HERE = pathlib.Path(__file__).parent / 'interpose/pack'

#: Messages of any size are packed here, and in tiles for a TLB of one entry.
ALL = {'PLUMBLINE_PACK_LEAST': 1, 'PLUMBLINE_PACK_TLB': 1, 'PLUMBLINE_PACK_REPORT': 1}

#: The report of one rank: messages packed and passed on, and why.
REPORT = re.compile(r'^plumbline: rank (\d+): (\d+) sends packed here, (\d+) passed on(?: \((.*?)\))?; '
                    r'(\d+) receives packed here, (\d+) passed on(?: \((.*?)\))?$', re.M)


class Library:
    '''The library, and programs linked with it or not, built with one MPI.

    :arg path: of the library; None builds one in the folder.
    '''

    def __init__(self, folder, mpi, path=None, sanitize='', source=SOURCE / 'interpose'):
        self.folder, self.mpi, self.sanitize, self.path = folder, mpi, sanitize, path or folder / 'lib/libplumbline_pack.so'
        if path:
            return
        needs('cmake')
        needs_mpi(mpi)
        flags = ['-DPLUMBLINE_C_FLAGS=-O1 -march=native'] if sanitize else []       # or the build takes too long
        configure(folder, '-S', source, f"-DCMAKE_C_COMPILER={MPIS[mpi]['cc']}", '-DPLUMBLINE_INTERPOSE=pack',
                  f'-DPLUMBLINE_SANITIZE={sanitize}', *flags, env=variables(mpi))
        make(folder, env=variables(mpi))

    def program(self, name, linked=False):
        path = self.folder / name
        if not path.exists():
            sanitizers = ['-g', f'-fsanitize={self.sanitize}', '-fno-sanitize-recover=all'] if self.sanitize \
                else []
            library = ['-Wl,--no-as-needed', self.path, f'-Wl,-rpath,{self.path.parent}'] if linked else []
            output_of(MPIS[self.mpi]['cc'], '-std=gnu17', '-O1', '-w', '-pthread', *sanitizers,
                      '-I', SOURCE / 'interpose/pack', HERE / f'{name}.c', *library, '-o', path, env=variables(self.mpi))
        return path

    def run(self, ranks, program, *arguments, **more):
        '''The library is loaded first, unless the program is linked with it.'''
        return mpirun(self.mpi, ranks, ['env', f'LD_PRELOAD={patient(self.mpi, self.path)}', program, *arguments], **more)


@pytest.fixture(scope='module')
def libraries(mpi_programs, tmp_path_factory):
    '''Function (family, sanitizers) -> :class:`Library`, with sanitizers built when first asked for.'''
    def of(mpi, sanitize=''):
        return Library(tmp_path_factory.mktemp(f'pack-{mpi}'), mpi, None if sanitize else mpi_programs(mpi).library('pack'), sanitize)
    return functools.cache(of)


@pytest.mark.alone
def test_mpi4pys_tests_pass(libraries, shared):
    mpi = any_mpi()
    library, folder = libraries(mpi), shared('mpi4py')
    mpi4py_suite.install(folder)
    found = mpi4py_suite.variables(folder, mpi, library.program('random', linked=True))
    done = library.run(2, *mpi4py_suite.command(folder), timeout=150, **found)
    mpi4py_suite.assert_passed(done.errors, 2)


def reasons(errors):
    '''What the ranks report: {rank: (sends, why not, receives, why not)}.'''
    def why(text):
        parts = (part.split(' ', 1) for part in (text or '').split(', ') if part)
        return {reason: int(n) for n, reason in parts}
    found = {}
    for rank, sends, passed, not_sent, receives, left, not_received in REPORT.findall(errors):
        found[int(rank)] = (int(sends), why(not_sent), int(receives), why(not_received))
        assert sum(why(not_sent).values()) == int(passed) and sum(why(not_received).values()) == int(left)
    return found


# --- the same bytes as by the type map and by plain MPI -----------------------------------------------------------

def check_random(done, types):
    assert done.code == 0, done.text + done.errors
    total, sent, overlapping, otherwise = map(int, re.search(
        r'(\d+) types: (\d+) sent, (\d+) overlap, (\d+) plain MPI packs otherwise', done.text).groups())
    assert total == types == sent + overlapping + otherwise
    assert sent > types / 2 and otherwise <= types / 100


@every_mpi
def test_random_types(libraries, mpi):
    '''Packed, unpacked, sent: ours to ours, ours to plain, plain to ours; in the gaps nothing changes.'''
    library = libraries(mpi)
    done = mpirun(mpi, 2, [library.program('random', linked=True), 1, 2000], **ALL)
    check_random(done, 2000)
    found = reasons(done.errors)
    assert found[0][0] > 700 and found[1][2] > 500        # they really were packed here


@pytest.mark.parametrize('isa', ['portable', 'avx2', 'avx512f'])
def test_random_types_with_other_instructions(libraries, isa):
    '''Where the CPU has them; with stores that bypass the caches.'''
    mpi = any_mpi()
    check_random(mpirun(mpi, 2, [libraries(mpi).program('random', linked=True), 100001, 500], **ALL, PLUMBLINE_PACK_ISA=isa, PLUMBLINE_PACK_CACHE=0), 500)


def test_sanitized(libraries):
    '''Nothing is touched that is not ours, and nothing of ours is left behind; what the MPI leaves is its own.'''
    mpi, quiet = any_mpi(), {'LSAN_OPTIONS': 'exitcode=0', 'ASAN_OPTIONS': 'detect_leaks=1'}
    library = libraries(mpi, 'address,undefined')
    done = mpirun(mpi, 2, [library.program('random', linked=True), 300001, 250], **ALL, **quiet)
    check_random(done, 250)
    assert ' in pack_' not in done.errors and ' in describe' not in done.errors, done.errors
    done = mpirun(mpi, 2, [library.program('calls', linked=True)], **ALL, **quiet)
    assert done.code == 0 and done.text.split()[-1] == 'threads', done.errors
    assert ' in pack_' not in done.errors and ' in describe' not in done.errors, done.errors


def test_a_wrong_element_is_found(tmp_path):
    '''The test of random types is one: a transpose with two rows exchanged does not pass it.'''
    mpi = any_mpi()
    shutil.copytree(SOURCE / 'interpose', tmp_path / 'src/interpose')
    shutil.copytree(SOURCE / 'cmake', tmp_path / 'src/cmake')
    tiles = tmp_path / 'src/interpose/pack/tiles.c'
    text = tiles.read_text()
    wrong = text.replace('char *to = pack_row(out, j + l)', 'char *to = pack_row(out, j + (l == 1 && wide > 2 ? 2 : l))')
    assert wrong != text
    tiles.write_text(wrong)
    library = Library(tmp_path / 'build', mpi, source=tmp_path / 'src/interpose')
    program = library.program('random', linked=True)
    done = mpirun(mpi, 2, [program, 1, 500], **ALL, PLUMBLINE_PACK_ISA='portable')
    assert done.code and 'packed bytes differ' in done.errors


# --- every call ---------------------------------------------------------------------------------------------------

CALLS = ['sends', 'isends', 'persistent', 'receives', 'short', 'too_long', 'sendrecv', 'several', 'many', 'startall', 'free_requests', 'cancel', 'free_types', 'threads']


@every_mpi
def test_every_call(libraries, mpi):
    library = libraries(mpi)
    done = library.run(2, library.program('calls'), **ALL)
    assert done.code == 0 and done.text.split() == CALLS, done.text + done.errors
    found = reasons(done.errors)
    assert found[0][0] > 150 and found[1][2] > 150


def test_buffers_are_bounded(libraries):
    '''What has no buffer is passed on; the calls are right all the same.'''
    library = libraries(any_mpi())
    done = library.run(2, library.program('calls'), **ALL, PLUMBLINE_PACK_MEMORY=0)
    assert done.code == 0 and done.text.split() == CALLS, done.text + done.errors
    found = reasons(done.errors)
    assert found[0][0] == found[1][2] == 0 and found[0][1]['no memory left'] > 150
    done = library.run(2, library.program('calls'), 'many', **ALL, PLUMBLINE_PACK_MEMORY=1)
    assert done.code == 0
    assert reasons(done.errors)[0][0] > 0


# --- what is packed -----------------------------------------------------------------------------------------------

@every_mpi
def test_what_is_packed_and_why_not_is_told_where_that_is_asked_for(libraries, mpi):
    library = libraries(mpi)
    done = library.run(1, library.program('reasons'), PLUMBLINE_PACK_REPORT=1, PLUMBLINE_PACK_PAGE=4096, PLUMBLINE_PACK_TLB=64)
    assert reasons(done.errors)[0][:2] == (1, {
        'small': 1, 'contiguous': 1, 'in order': 1, 'R_p below T_p': 1, 'long blocks': 1,
        'elements of several lengths': 1, 'type not understood': 1})
    silent = library.run(1, library.program('reasons'))
    assert silent.code == 0 and 'plumbline' not in silent.text + silent.errors


@pytest.mark.parametrize('rows, step, page, tlb, packed', [
    (128, 4096, 4096, 128, True), (128, 4096, 4096, 129, False),        # R_p = 128: a page each
    (128, 4096, 8192, 64, True), (128, 4096, 8192, 65, False),          # two on a page
    (128, 3000, 8192, 64, True), (128, 3000, 8192, 65, False),          # two whole strides
    (300, 1024, 4096, 75, True), (300, 1024, 4096, 76, False),
])
def test_pages_against_entries_of_the_tlb(libraries, rows, step, page, tlb, packed):
    '''R_p by hand: n / floor(P_s / S), or n blocks' pages (byna2003, section 5.2); packed from R_p = T_p on.'''
    library = libraries(any_mpi())
    done = library.run(1, library.program('reasons'), rows, step, PLUMBLINE_PACK_REPORT=1, PLUMBLINE_PACK_PAGE=page, PLUMBLINE_PACK_TLB=tlb)
    assert reasons(done.errors)[0][:2] == ((1, {}) if packed else (0, {'R_p below T_p': 1}))


# --- bad input ----------------------------------------------------------------------------------------------------

def the_line(done):
    '''The one thing that is said, by as many processes as the launcher lets speak.'''
    said = set(re.findall('plumbline: .*', done.errors))
    assert done.code == 2 and len(said) == 1, (done.code, done.errors)
    return said.pop()


@pytest.mark.parametrize('name, value, part', [
    ('PAGE', '4095', 'not a power of two'), ('PAGE', '100', 'a whole number from 512'), ('PAGE', '4k', 'a whole'),
    ('TLB', '0', 'a whole number from 1'), ('TLB', '-1', 'a whole number'), ('LEAST', '', 'a whole number'),
    ('MEMORY', '1e3', 'a whole number'), ('CACHE', '99999999999999999999', 'a whole number'),
    ('REPORT', 'yes', 'a whole number from 0 to 1'), ('ISA', 'sse9', 'none of portable, avx2, avx512f'),
])
def test_bad_settings_are_refused(libraries, name, value, part):
    library = libraries(any_mpi())
    line = the_line(library.run(1, library.program('reasons'), **{f'PLUMBLINE_PACK_{name}': value}))
    assert line.startswith(f'plumbline: PLUMBLINE_PACK_{name}={value}: ') and part in line


@every_mpi
def test_the_library_of_another_mpi(libraries, mpi):
    needs_mpi(mpi)
    others = [other for other in sorted(MPIS) if other != mpi]
    if not others:
        pytest.skip('no other MPI is there')
    program = libraries(mpi).program('reasons')
    for other in others:
        done = mpirun(mpi, 2, ['env', f'LD_PRELOAD={libraries(other).path}', program])
        assert the_line(done) == (f'plumbline: libplumbline_pack was built for {families()[other].title}, this program '
                                  f'runs with {families()[mpi].title}: preload the library built with its mpicc')


def test_a_program_without_mpi_is_left_alone(libraries):
    mpi = any_mpi()
    done = subprocess.run(['true'], capture_output=True, text=True, timeout=20, env=variables(mpi, LD_PRELOAD=libraries(mpi).path))
    assert (done.returncode, done.stderr) == (0, '')
