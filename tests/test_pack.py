'''libplumbline_pack: the right bytes from and to the right places, by every call, with every MPI there is.'''

import functools
import itertools
import pathlib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import mpi4py_suite
from mpi_native import MPIS, any_mpi, every_mpi, mpirun, patient, variables
from native import SOURCE, output_of
from plumbline.mpi.families import families

HERE, PACK = pathlib.Path(__file__).parent / 'interpose/pack', SOURCE / 'interpose/pack'

#: Messages of any size are packed here, and in tiles for a TLB of one entry.
ALL = {'PLUMBLINE_PACK_LEAST': 1, 'PLUMBLINE_PACK_TLB': 1, 'PLUMBLINE_PACK_REPORT': 1}

#: The report of one rank: messages packed and passed on, and why.
REPORT = re.compile(r'^plumbline: rank (\d+): (\d+) sends packed here, (\d+) passed on(?: \((.*?)\))?; '
                    r'(\d+) receives packed here, (\d+) passed on(?: \((.*?)\))?$', re.M)


class Library:
    '''The library as it was built with one MPI, and programs linked with it or not.'''

    def __init__(self, folder, mpi, path, *flags):
        self.folder, self.mpi, self.path, self.flags = folder, mpi, path, flags

    def program(self, name, linked=False):
        path = self.folder / name
        if not path.exists():
            library = ['-Wl,--no-as-needed', self.path, f'-Wl,-rpath,{self.path.parent}'] if linked else []
            output_of(MPIS[self.mpi]['cc'], '-std=gnu17', '-O1', '-w', '-pthread', *self.flags,
                      '-I', PACK, HERE / f'{name}.c', *library, '-o', path, env=variables(self.mpi))
        return path

    def run(self, ranks, program, *arguments, **more):
        '''The library is loaded first, unless the program is linked with it.'''
        return mpirun(self.mpi, ranks, ['env', f'LD_PRELOAD={patient(self.mpi, self.path)}', program, *arguments], **more)


@pytest.fixture(scope='module')
def libraries(mpi_programs, mpi_sanitized, tmp_path_factory):
    '''Function (family, whether with sanitizers) -> :class:`Library`.'''
    def of(mpi, sanitized=False):
        build, flags = (mpi_sanitized, ['-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']) if sanitized else (mpi_programs, [])
        return Library(tmp_path_factory.mktemp(f'pack-{mpi}'), mpi, build(mpi).library('pack'), *flags)
    return functools.cache(of)


@pytest.mark.parametrize('mpi', list(MPIS)[:2])
def test_mpi4pys_tests_pass(libraries, shared, mpi):
    '''Of what passes through the library: messages from one to one, and requests of any kind.'''
    library, folder = libraries(mpi), shared('mpi4py')
    mpi4py_suite.install(folder)
    found = mpi4py_suite.variables(folder, mpi, library.program('random', linked=True))
    done = library.run(2, *mpi4py_suite.command(folder, 'test_(p2p|cco_nb|request|grequest|msg|util_pkl5|pack|subclass)'), timeout=400, **found)
    mpi4py_suite.assert_passed(done.errors, 2, most=300)


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
    library = libraries(mpi, True)
    done = mpirun(mpi, 2, [library.program('random', linked=True), 300001, 250], **ALL, **quiet)
    check_random(done, 250)
    assert ' in pack_' not in done.errors and ' in describe' not in done.errors, done.errors
    done = mpirun(mpi, 2, [library.program('calls', linked=True)], **ALL, **quiet)
    assert done.code == 0 and done.text.split()[-1] == 'threads', done.errors
    assert ' in pack_' not in done.errors and ' in describe' not in done.errors, done.errors


def test_a_wrong_element_is_found(mpi_programs, tmp_path):
    '''The test of random types is one: a transpose with two rows exchanged does not pass it.'''
    mpi, text = any_mpi(), (PACK / 'tiles.c').read_text()
    wrong = text.replace('char *to = pack_row(out, j + l)', 'char *to = pack_row(out, j + (l == 1 && wide > 2 ? 2 : l))')
    assert wrong != text
    (tmp_path / 'other.c').write_text(wrong)
    objects = [path for path in mpi_programs(mpi).folder.glob('interpose/pack/**/*.o') if path.name != 'tiles.c.o']
    output_of(MPIS[mpi]['cc'], '-std=gnu17', '-O1', '-w', '-shared', '-fPIC', '-pthread', '-I', PACK, '-I', PACK.parent / 'common',
              tmp_path / 'other.c', *objects, '-ldl', '-lm', '-o', tmp_path / 'pack.so', env=variables(mpi))
    program = Library(tmp_path, mpi, tmp_path / 'pack.so').program('random', linked=True)
    done = mpirun(mpi, 2, [program, 1, 500], **ALL, PLUMBLINE_PACK_ISA='portable')
    assert done.code and 'packed bytes differ' in done.errors


# --- every call ---------------------------------------------------------------------------------------------------

CALLS = ['sends', 'isends', 'persistent', 'receives', 'short', 'too_long', 'sendrecv', 'several', 'many', 'startall', 'free_requests', 'cancel', 'free_types', 'large_counts', 'threads']


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

def test_what_is_wrong_is_told_in_one_line(libraries):
    '''By as many processes as the launcher lets speak; several at once: who refuses waits a second for the others.'''
    first = any_mpi()
    cases = [(first, {f'PLUMBLINE_PACK_{name}': value, 'LD_PRELOAD': libraries(first).path}, f'plumbline: PLUMBLINE_PACK_{name}={value}: {told}')
             for name, value, told in (
        ('PAGE', '4095', 'not a power of two'), ('PAGE', '100', 'not a whole number from 512'), ('PAGE', '4k', 'not a whole'),
        ('TLB', '0', 'not a whole number from 1'), ('TLB', '-1', 'not a whole number'), ('LEAST', '', 'not a whole number'),
        ('MEMORY', '1e3', 'not a whole number'), ('CACHE', '99999999999999999999', 'not a whole number'),
        ('REPORT', 'yes', 'not a whole number from 0 to 1'), ('ISA', 'sse9', 'none of portable, avx2, avx512f'))]
    cases += [(mpi, {'LD_PRELOAD': libraries(other).path},
               f'plumbline: libplumbline_pack was built for {families()[other].title}, this program runs with {families()[mpi].title}: '
               'preload the library built with its mpicc') for mpi, other in itertools.permutations(MPIS, 2)]
    programs = {mpi: libraries(mpi).program('reasons') for mpi in MPIS}
    with ThreadPoolExecutor(6) as pool:
        ended = pool.map(lambda case: mpirun(case[0], 2, ['env', *(f'{name}={value}' for name, value in case[1].items()), programs[case[0]]]), cases)
        for (_, given, told), done in zip(cases, ended):
            said = set(re.findall('plumbline: .*', done.errors))
            assert done.code == 2 and len(said) == 1 and said.pop().startswith(told), (given, done.errors)


def test_a_program_without_mpi_is_left_alone(libraries):
    mpi = any_mpi()
    done = subprocess.run(['true'], capture_output=True, text=True, timeout=60, env=variables(mpi, LD_PRELOAD=libraries(mpi).path))
    assert (done.returncode, done.stderr) == (0, '')
