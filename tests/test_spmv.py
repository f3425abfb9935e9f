'''Sparse matrix times vector: right and wrong results, the generator, Matrix Market files, the model, the checks.'''

import ctypes
import itertools

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import rfm
from native import CPUS, QUICK, SOURCE, output_of, pointer, refused

THREADS = '1,2' if len(CPUS) > 1 else '1'
MATRICES = rfm.REPOSITORY / 'tests/data/matrices'
FILES = sorted(path.name for path in MATRICES.glob('*.mtx'))


# --- right results -----------------------------------------------------------------------------------

@pytest.mark.parametrize('options', [['--size', '1,2,7,9,65,1009'], ['--size', '1,2,7,67', '--nonzer', '1,30'],
                                     ['--size', '1,5,200', '--columns', 'banded', '--band', '1,3,1000', '--nonzer', 4],
                                     ['--size', '150', '--sigma', '8,16,1024,1073741824'],
                                     ['--size', '7,150', '--distance', '1,5,1073741824', '--ahead', '1,1073741824'],
                                     ['--size', '300', '--init', 'noinit,parinit', '--sync', 'pass'],
                                     ['--size', '300', '--pages', 'base', '--limit', '--per-thread']],
                         ids=lambda options: ' '.join(map(str, options)))
def test_every_variant_is_right(build, options):
    found = build.measured('spmv', '--variants', 'all', '--threads', THREADS, *options, *QUICK).kernels()
    assert {record['variant'] for record in found} == build.runnable('spmv')
    assert all(record['valid'] and record['max_error'] == record['tolerance'] == 0 for record in found)


@pytest.mark.parametrize('name', FILES)
def test_matrices_of_files_are_right(build, name):
    options = ['--variants', 'all', '--matrix', MATRICES / name, '--threads', THREADS]
    found = build.measured('spmv', *options, *QUICK).measurements
    matrix = scipy.io.mmread(MATRICES / name).tocsr()
    matrix.sum_duplicates()
    assert {record['variant'] for record in found} == build.runnable('spmv')
    exact = not np.any(matrix.data % 1)
    for record in found:
        assert record['valid'] and record['options']['matrix'] == str(MATRICES / name)
        assert (record['size'], record['flops']) == (matrix.shape[0], 2 * matrix.nnz)
        assert (record['tolerance'] == 0) == exact and record['tolerance'] < 1e-14


def test_size_is_that_of_the_data(programs):
    record, = programs.measured('spmv', *QUICK).measurements
    assert (record['size'], record['options']['matrix']) == (14000, None)
    # CG's class A has 1853104 nonzeros
    assert record['flops'] / 2 == pytest.approx(1853104, rel=0.01)


# --- the rows by themselves, against scipy --------------------------------------------------------------

class Recipe(ctypes.Structure):
    _fields_ = [('rows', ctypes.c_size_t), ('vector', ctypes.c_size_t), ('band', ctypes.c_size_t), ('file', ctypes.c_char_p)]


class Source(ctypes.Structure):
    '''The first fields of spmv_source.'''
    _fields_ = [('recipe', Recipe), ('rows', ctypes.c_size_t), ('columns', ctypes.c_size_t),
                ('ptr', ctypes.POINTER(ctypes.c_int64)), ('longest', ctypes.c_size_t), ('exact', ctypes.c_bool),
                ('tolerance', ctypes.c_double), ('vectors', ctypes.POINTER(ctypes.c_uint32))]


#: What is static in spmv.c, to be called.
SHARES = '''
#define main program
#include "spmv.c"
void shares(size_t pieces, const int64_t *ptr, size_t longest, int threads, size_t *first)
{
    spmv_source source = {.longest = longest};
    const product p = {.source = &source, .pieces = pieces, .ptr = ptr};
    for (int thread = 0; thread < threads; thread++) {
        const pl_range part = part_of(&p, thread, threads);
        first[thread] = part.begin;
        first[thread + 1] = part.end;
    }
}
'''


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    '''The kernel in a shared library.'''
    folder = tmp_path_factory.mktemp('spmv')
    (folder / 'shares.c').write_text(SHARES)
    kernel = SOURCE / 'kernels/spmv'
    own = [kernel / name for name in ('kernel.c', 'numbers.c', 'generator.c', 'matrix.c', 'matrix_market.c')]
    stated = ['-DPL_COMPILER="none"', '-DPL_FLAGS="none"']
    output_of('cc', '-std=gnu17', '-O0', *stated, '-shared', '-fPIC', '-I', SOURCE / 'harness', '-I', kernel, folder / 'shares.c', *own,
              *sorted((SOURCE / 'harness').glob('*.c')), '-o', folder / 'spmv.so', '-lm')
    loaded = ctypes.CDLL(folder / 'spmv.so')
    loaded.spmv_source_of.restype = ctypes.POINTER(Source)
    loaded.spmv_row.restype = ctypes.c_size_t
    return loaded


KEPT = []


def rows_of(library, rows=0, vector=1, band=2**30, file=None):
    '''(source, matrix in CSR): as spmv_row gives its rows, of which all variants' results are verified.'''
    recipe = Recipe(rows, vector, band, file and str(file).encode())
    KEPT.append(recipe)     # the sources are told apart by their recipes, as long as the process lives
    source = library.spmv_source_of(ctypes.byref(recipe))
    found = source.contents
    work = np.empty(2 * found.longest, np.uint64)
    column, value = np.empty(found.longest, np.int32), np.empty(found.longest)
    ptr, columns, values = [0], [], []
    for row in range(found.rows):
        n = library.spmv_row(source, ctypes.c_size_t(row), pointer(work), pointer(column), pointer(value))
        columns.append(column[:n].copy())
        values.append(value[:n].copy())
        ptr.append(ptr[-1] + n)
    assert ptr == found.ptr[:found.rows + 1]
    return source, scipy.sparse.csr_array((np.concatenate(values), np.concatenate(columns), ptr), shape=(found.rows, found.columns))


@pytest.mark.parametrize('rows, vector, band', [(1, 1, 1), (2, 2, 2), (40, 12, 40), (300, 12, 300), (300, 5, 9), (300, 10, 9)])
def test_generator_is_symmetric_positive_definite(library, rows, vector, band):
    source, matrix = rows_of(library, rows, vector, band)
    dense = matrix.toarray()
    assert matrix.has_canonical_format      # ascending columns, each once
    np.testing.assert_array_equal(dense, dense.T)
    assert np.linalg.eigvalsh(dense).min() > 1 - 1e-9
    # The definition, from the vectors themselves: A = sum of v v' + I
    places = np.array(source.contents.vectors[:rows * vector]).reshape(rows, vector)
    vectors = np.zeros((rows, rows))
    for i, own in enumerate(places):
        assert own[0] == i and len(set(own)) == vector and np.abs(own.astype(int) - i).max() <= band
        vectors[i, own] = (i * 5 + own.astype(int) * 3) // 2 % 4 + 1
    np.testing.assert_array_equal(dense, vectors.T @ vectors + np.eye(rows))
    assert np.abs(np.subtract(*dense.nonzero())).max() <= 2 * band


def test_generator_is_random_and_reproducible(library):
    _, matrix = rows_of(library, 7000, 12, 7000)
    assert matrix.nnz / 7000 == pytest.approx(133, rel=0.02)
    spread = np.bincount(matrix.indices // 700)
    assert spread.min() > 0.9 * spread.max()
    _, again = rows_of(library, 7000, 12, 7000)
    assert (matrix != again).nnz == 0


@pytest.mark.parametrize('name', FILES)
def test_files_against_scipy(library, name):
    _, matrix = rows_of(library, file=MATRICES / name)
    assert matrix.has_canonical_format
    np.testing.assert_array_equal(matrix.toarray(), scipy.io.mmread(MATRICES / name).toarray())


def test_threads_share_the_nonzeros(library):
    rows = [[5] * 100, np.random.default_rng(1997).integers(0, 300, 1000), [0] * 10, [10**6] + [1] * 50, [3]]
    for lengths, threads in itertools.product(rows, (1, 2, 3, 8)):
        ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        first = np.zeros(threads + 1, np.uint64)
        library.shares(ctypes.c_size_t(len(lengths)), pointer(ptr), ctypes.c_size_t(max(lengths)), threads, pointer(first))
        first = first.astype(int)
        assert (first[0], first[-1]) == (0, len(lengths)) and np.all(np.diff(first) >= 0)
        worth = [np.sum(np.array(lengths[a:b]) + 2) for a, b in itertools.pairwise(first)]
        assert max(worth) <= sum(worth) / threads + max(lengths) + 3


# --- what is refused -------------------------------------------------------------------------------------

@pytest.mark.parametrize('options, part', [(['--size', '2147483648'], 'column indices have 32 bits'), (['--size', '2e9'], 'GB that are free'),
                                           (['--nonzer', 0], 'from 1 to 100'), (['--nonzer', 101], 'from 1 to 100'),
                                           (['--columns', 'near'], 'give one of random, banded'), (['--band', 5], '--band 5: is of --columns banded'),
                                           (['--sigma', 12], 'multiple of 8'),
                                           (['--matrix', 'no/such.mtx'], 'no/such.mtx: No such file'), (['--matrix', '/tmp'], '/tmp: not a file'),
                                           (['--matrix', MATRICES / 'integer.mtx', '--size', 12], '--size 12: --matrix'),
                                           (['--matrix', MATRICES / 'integer.mtx', '--nonzer', 5], '--nonzer: is of the generator'),
                                           (['--matrix', MATRICES / 'integer.mtx', '--columns', 'banded'], '--columns: is of the generator')],
                         ids=str)
def test_bad_options_are_refused(sanitized, options, part):
    refused(sanitized.run('spmv', *options, *QUICK), part)


REAL = '%%MatrixMarket matrix coordinate real general\n'
LOWER = '%%MatrixMarket matrix coordinate real symmetric\n'


@pytest.mark.parametrize('text, part', [('', 'is empty'), ('3 3 1\n1 1 1\n', 'line 1: does not begin with %%MatrixMarket'),
                                        (b'\x1f\x8b\x08\x00packed', 'is compressed: unpack it with gunzip'),
                                        (b'%%MatrixMarket matrix\x00', 'line 1: holds a byte 0'),
                                        ('%%MatrixMarket vector coordinate real general\n', 'line 1: object vector is not supported'),
                                        ('%%MatrixMarket matrix array real general\n', 'line 1: format array is not supported'),
                                        ('%%MatrixMarket matrix coordinate complex general\n', 'line 1: field complex is not supported'),
                                        ('%%MatrixMarket matrix coordinate real hermitian\n', 'line 1: symmetry hermitian is not supported'),
                                        ('%%MatrixMarket matrix coordinate real\n', 'line 1: symmetry (missing) is not supported'),
                                        ('%%MatrixMarket matrix coordinate real general more\n', 'line 1: more does not belong to the header'),
                                        ('%%MatrixMarket matrix coordinate pattern skew-symmetric\n', 'line 1: a skew-symmetric pattern'),
                                        (REAL, 'ends before the line of sizes'), (REAL + '% only\n\n', 'ends before the line of sizes'),
                                        (REAL + '3 3\n', 'line 2: the number of entries is missing'),
                                        (REAL + '3 3 1 1\n', 'line 2: three sizes are expected'),
                                        (REAL + '0 3 1\n', 'line 2: the number of rows is 0'),
                                        (REAL + '3 -3 1\n', 'line 2: the number of columns is -3'),
                                        (REAL + '3 3 0\n', 'line 2: the number of entries is 0'),
                                        (REAL + '3000000000 3 1\n', 'line 2: the number of rows is 3000000000, outside 1 .. 2147483647'),
                                        (REAL + '99999999999999999999 3 1\n', 'line 2: the number of rows is 99999999999999999999, outside'),
                                        (REAL + '3 3.5 1\n', 'line 2: the number of columns is missing or not a whole number'),
                                        (REAL + '2 2 5\n', 'line 2: 5 entries are more than 2 x 2 elements'),
                                        (REAL + '2000000000 2000000000 1000000000000\n', 'GB that are free'),
                                        (LOWER + '2 3 1\n', 'line 2: a symmetric matrix has as many rows as columns, not 2 and 3'),
                                        (REAL + '% comment\n3 3 1\n4 1 1\n', 'line 4: the row is 4, outside 1 .. 3'),
                                        (REAL + '3 3 1\n1 0 1\n', 'line 3: the column is 0, outside 1 .. 3'),
                                        (REAL + '3 3 1\n1 1\n', 'line 3: the value is missing'),
                                        (REAL + '3 3 1\n1 1 x\n', 'line 3: the value is missing or not a number'),
                                        (REAL + '3 3 1\n1 1 1.0D3\n', 'line 3: the value is missing or not a number'),
                                        (REAL + '3 3 1\n1 1 nan\n', 'line 3: the value is not a finite number'),
                                        (REAL + '3 3 1\n1 1 1e999\n', 'line 3: the value is not a finite number'),
                                        (REAL + '3 3 1\n1 1 1 1\n', 'line 3: something follows the entry'),
                                        (REAL + '3 3 1\none 1 1\n', 'line 3: the row is missing'),
                                        (REAL + '3 3 2\n1 1 1\n', 'ends in line 3, after 1 of the 2 entries'),
                                        (REAL + '3 3 1\n1 1 1\n\n2 2 1\n', 'line 5: more entries than the 1'),
                                        (REAL + '1 2 2\n1 1 1e308\n1 2 1e308\n', 'the elements of row 1 are too large'),
                                        (REAL.replace('real', 'integer') + '1 1 1\n1 1 1.5\n', 'line 3: the value is missing or not a whole number'),
                                        (REAL.replace('real', 'integer') + '1 1 1\n1 1 9007199254740993\n',
                                         'line 3: the value is 9007199254740993, outside'),
                                        (REAL.replace('real', 'pattern') + '1 1 1\n1 1 1.5\n', 'line 3: something follows the entry'),
                                        (LOWER + '2 2 1\n1 2 1\n', 'line 3: (1, 2) is above the diagonal'),
                                        (LOWER.replace('sy', 'skew-sy', 1) + '2 2 1\n1 1 1\n', 'line 3: (1, 1) is on the diagonal')])
def test_bad_files_are_refused(sanitized, tmp_path, text, part):
    path = tmp_path / 'bad.mtx'
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(sanitized.run('spmv', '--matrix', path, *QUICK, ASAN_OPTIONS='detect_leaks=0'), str(path), part)


# --- the model -----------------------------------------------------------------------------------------------

def test_model_against_numbers_by_hand_beyond_the_first_level_and_sorted(programs):
    '''general.mtx: 4 rows, 3 columns, 5 elements; the longest rows have 2, so one chunk of 8 x 2 slots.'''
    found = programs.measured('spmv', '--variants', 'plain,stream,sell', '--matrix', MATRICES / 'general.mtx', *QUICK)
    if {record['level'] for record in found.measurements} != {'L1'}:
        pytest.skip('the system does not tell its caches')
    for record in found.measurements:
        # 12 x 5 elements + 8 x 5 pointers + 8 x 3 of x + 8 x 4 of y
        assert (record['bytes'], record['flops']) == (60 + 40 + 24 + 32, 10)
        # SELL: 12 x 16 slots + 8 x 2 pointers + 4 x 4 of the order + 24 + 32; in L1 stores do not allocate
        sell = record['variant'] == 'sell'
        assert record['traffic'] == (192 + 16 + 16 + 24 + 32 if sell else 156)
        assert record['working_set'] == record['traffic']
    record, = programs.measured('spmv', '--size', 14000, *QUICK).measurements
    nonzeros = record['flops'] / 2
    assert record['bytes'] == 12 * nonzeros + 8 * 14001 + 8 * 14000 + 8 * 14000
    assert record['traffic'] == record['bytes'] + (0 if record['level'] == 'L1' else 8 * 14000)
    found = programs.measured('spmv', '--variants', 'plain,sell', '--size', 2000, '--sigma', '8,1024', *QUICK).measurements
    plain, unsorted, _, sorted_rows = (record['working_set'] for record in found)
    assert plain < sorted_rows < 1.1 * plain < 1.2 * plain < unsorted


# --- the checks ------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def run(measuring, tmp_path_factory):
    '''(run, report) of the checks at sizes as small as memory allows.'''
    place = measuring(tmp_path_factory.mktemp('checks'))
    matrix = scipy.sparse.random_array((3000, 2000), density=0.01, rng=np.random.default_rng(7))
    scipy.io.mmwrite(place.folder / 'site.mtx', matrix)
    done = place.reframe(*rfm.small(), '-S', f'spmv_matrix.matrix={place.folder / "site.mtx"}', '-n',
                         'spmv_cg%threads=one|spmv_memory%threads=one%columns=banded|'
                         'spmv_memory%threads=one%columns=sparse|spmv_matrix%threads=one',
                         checks=rfm.REPOSITORY / 'checks/memory')
    assert done.report, done.out
    return done, place.judge(), (place.folder / 'reports/latest/index.html').read_text()


def test_cg_is_measured_at_the_sizes_of_the_source(run, programs):
    found, left = rfm.measured_of(run[0], 'spmv_cg')
    variants = programs.runnable('spmv')
    assert set(found) == ({f'flops.{v}.{n}' for v in variants for n in (7000, 14000)}
                          | {f'speedup.{v}.{n}' for v in variants - {'plain'} for n in (7000, 14000)})
    assert {record['options']['columns'] for record in left['records']} == {'random'}


def test_memory_is_judged_where_x_stays_in_cache(run, programs):
    for columns in ('banded', 'sparse'):
        found, left = rfm.measured_of(run[0], f'spmv_memory %threads=one %columns={columns}')
        assert set(found) == {f'{metric}.{v}.{columns}' for metric in ('of_limit', 'of_parts', 'bandwidth', 'flops')
                              for v in programs.runnable('spmv')}
        kernels = [record for record in left['records'] if record['role'] == 'kernel']
        assert {record['level'] for record in kernels} == {'memory'}
        judged = found[f'of_parts.sell_stream.{columns}']
        if columns == 'banded':
            assert judged['name'] in rfm.judged_on_day_one(found)
            assert {record['options']['columns'] for record in kernels} == {'banded'}
        else:
            assert judged['verdict'] == 'NO REFERENCE' and 'the model counts' in judged['reason']


def test_a_matrix_of_the_site(run):
    found, left = rfm.measured_of(run[0], 'spmv_matrix')
    assert {'of_limit.plain', 'flops.sell', 'bandwidth.stream'} <= set(found)
    assert found['of_limit.plain']['verdict'] == 'NO REFERENCE'
    assert {record['size'] for record in left['records'] if record['role'] == 'kernel'} == {3000}
    _, judged, page = run
    assert 'Traceback' not in judged.out
    assert 'Sparse matrix-vector product of CG' in page and 'banded, ' in page and 'sparse matrix-vector' in page.lower()
    assert 'Not drawn' not in page


def test_without_a_matrix_the_check_is_skipped_with_the_reason(measuring, tmp_path):
    place = measuring(tmp_path / 'place')
    quick = ['-S', 'likwid_bench.levels=none', '-n', 'spmv_matrix%threads=one']
    case, = place.reframe('-r', *quick, checks=rfm.REPOSITORY / 'checks/memory/spmv_matrix.py').cases().values()
    assert case['result'] == 'skip' and 'no matrix was given: -S spmv_matrix.matrix=FILE' in str(case['plumbline']['skipped'])
    missing = place.reframe('-r', '-S', 'spmv_matrix.matrix=no/such.mtx', *quick, checks=rfm.REPOSITORY / 'checks/memory/spmv_matrix.py')
    case, = missing.cases().values()
    assert case['result'] == 'fail' and 'no such file' in case['fail_reason']
