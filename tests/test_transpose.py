'''The transpose: right results of every loop, its model, its yardstick, and its checks.'''

import ctypes
import itertools
import re

import numpy as np
import pytest

import rfm
from native import CPUS, QUICK, SOURCE, Build, copied, library, listed, needs, output_of, refused, x86_only

THREADS = f'1,{min(3, len(CPUS))}' if len(CPUS) > 1 else '1'
AWKWARD = [1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 24, 31, 67, 129, 136]
FOLDER = SOURCE / 'kernels/transpose'


# --- right results -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize('flavour', ['programs', 'sanitized'])
def test_every_variant_is_right_at_every_size(request, flavour):
    build = request.getfixturevalue(flavour)
    found = build.measured('transpose', '--variants', 'all', '--size', listed(AWKWARD), '--threads', THREADS,
                           *QUICK).measurements
    assert {record['variant'] for record in found} == build.runnable('transpose')
    assert {record['size'] for record in found} == set(AWKWARD)
    assert all(record['valid'] and record['max_error'] == 0 for record in found)


@pytest.mark.parametrize('flavour', ['programs', 'sanitized'])
def test_every_block_is_right(request, flavour):
    '''Strips narrower and wider than the matrix, and a rest that joins the last one.'''
    build = request.getfixturevalue(flavour)
    variants = [name for name in build.runnable('transpose') if name.startswith('blocked')]
    found = build.measured('transpose', '--variants', listed(variants), '--size', '40,41,47,55', '--threads', THREADS,
                           '--block-size', '8,16,48,1024', *QUICK).measurements
    assert len(found) == len(variants) * 4 * 4 * len(THREADS.split(','))
    assert all(record['valid'] and record['options']['block'] == record['options']['block-size'] for record in found)


@pytest.mark.parametrize('flavour', ['programs', 'sanitized'])
def test_in_place_is_right_whatever_the_number_of_passes(request, flavour):
    build = request.getfixturevalue(flavour)
    found = build.measured('transpose', '--variants', 'rows,padded,blocked', '--place', 'in', '--size', listed(AWKWARD),
                           '--threads', THREADS, '--samples', 10, '--passes', '1,2').measurements
    if 'openblas' in build.runnable('transpose'):
        found += build.measured('transpose', '--variants', 'openblas', '--place', 'in,out', '--size', listed(AWKWARD),
                                '--samples', 10, '--passes', 3).measurements
    assert all(record['valid'] and record['max_error'] == 0 for record in found)
    one = [r['working_set'] for r in found if (r['variant'], r['size'], r['options']['place']) == ('rows', 8, 'in')]
    assert set(one) == {8 * 8 * 8}      # one matrix


@pytest.fixture(scope='module')
def loops(programs, tmp_path_factory):
    return library(programs, tmp_path_factory.mktemp('loops'), 'transpose', FOLDER / 'kernel.c', FOLDER / 'kernel_x86.c')


class Band(ctypes.Structure):
    _fields_ = [('begin', ctypes.c_size_t), ('end', ctypes.c_size_t)]


def test_bands_against_numpy(loops, programs):
    '''A band of B and nothing else is written, wherever B begins and however far apart its rows are.'''
    names = ['columns', 'blocked']
    for variant in programs.variants('transpose'):
        if variant.runs and variant.isa != '-':
            names.append(variant.name.removesuffix('_avx2') + '_' + variant.isa.removesuffix('f'))
    rng = np.random.default_rng(1025)
    shapes = [(n, ld) for n in (1, 5, 8, 16, 19, 31) for ld in {n, n + 3, (n + 7) // 8 * 8}]
    for name, (n, ld), offset, band in itertools.product(names, shapes, (0, 1, 5), (Band(0, 100), Band(8, 17), Band(8, 8))):
        band = Band(min(band.begin, n), min(band.end, n))
        a, room = rng.random((n, ld)), np.full(n * ld + 16, np.nan)
        first = -room.ctypes.data % 64 // 8 + offset
        room = room if first + n * ld <= room.size else np.full(n * ld + 32, np.nan)
        first = -room.ctypes.data % 64 // 8 + offset
        right = room.copy()
        right[first:first + n * ld].reshape(n, ld)[band.begin:band.end, :n] = a[:, band.begin:band.end].T[:, :n]
        getattr(loops, f'transpose_{name}')(
            ctypes.c_size_t(n), ctypes.c_size_t(ld), ctypes.c_void_p(a.ctypes.data),
            ctypes.c_void_p(room.ctypes.data + 8 * first), band, ctypes.c_size_t(16))
        np.testing.assert_array_equal(room, right, f'{name}, n {n}, ld {ld}, offset {offset}, {band.begin}..{band.end}')


@x86_only
def test_non_temporal_stores_where_named_and_nothing_called(loops):
    needs('objdump')
    bodies = dict(re.findall(r'^[0-9a-f]+ <([\w.]+)>:\n(.*?)(?:\n\n|\Z)', output_of('objdump', '-d', '--no-show-raw-insn',
                                                                               loops._name), re.MULTILINE | re.DOTALL))
    for name, body in bodies.items():
        if re.match(r'transpose_(rows|columns|diagonals|blocked|in_place)', name):
            assert not re.search('call.*<mem(cpy|set|move)', body), name
            assert '_nt' in name or 'movnt' not in body, name
    streaming = {name for name, body in bodies.items() if 'movnt' in body}
    assert streaming and all(re.search(r'(lines|shifted|_nt)_(avx512|avx2)', name) for name in streaming), streaming


# --- the model ---------------------------------------------------------------------------------------------------

#: The model with a first-level cache of 64 lines, and less of the third level than that for each of many threads.
MODEL = '''
#define pl_cache_share small_share
#define main unused
#include "transpose.c"
#undef main
size_t small_share(const pl_case *c, int level) { return (void)c, level == 1 ? 4096 : level == 3 ? 1024 : 0; }
int main(void)
{
    for (const pl_variant *v = variants; v->name; v++)
        for (long place = OUT; place <= IN; place++)
            for (int level = 0; level < 3; level++)
                for (size_t n = 64; n < 66; n++) {
                    const pl_case c = {.kernel = &transpose, .variant = v, .n = n, .threads = 1, .parameters = {place, 0}, .level = level};
                    const pl_work w = work(&c);
                    printf("%s %ld %d %zu %g %g %g %g %g\\n", v->name, place, level, n, w.load_bytes, w.store_bytes, w.fetched_bytes,
                           w.written_bytes, w.updated_bytes);
                }
    return 0;
}
'''


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    '''(variant, place, level, n) -> bytes of pl_work.'''
    folder = tmp_path_factory.mktemp('model')
    (folder / 'model.c').write_text('#include <stdio.h>\n' + MODEL)
    output_of('cc', '-std=gnu17', '-DPL_COMPILER=""', '-DPL_FLAGS=""', '-I', SOURCE / 'harness', '-I', FOLDER, folder / 'model.c',
              *(SOURCE / 'harness').glob('*.c'), FOLDER / 'kernel.c', FOLDER / 'kernel_x86.c', '-mavx512f', '-lm', '-o', folder / 'model')
    lines = (line.split() for line in output_of(folder / 'model').splitlines())
    return {(name, int(place), int(level), int(n)): tuple(map(float, bytes)) for name, place, level, n, *bytes in lines}


@x86_only
def test_work_by_hand(model):
    '''8 bytes of each element in and out; lines of 64 bytes for each element against the rows once a column of n lines,
    or a diagonal of 2 n, exceeds 64 lines.'''
    square = {64: 8 * 64**2, 65: 8 * 65**2}
    assert (square[64], square[65]) == (32768, 33800)
    for (name, place, level, n), (load, store, *_) in model.items():
        assert load == store == square[n]
    for name, n, found in (('rows', 64, (32768, 32768, 0)), ('rows', 65, (33800, 8 * 33800, 0)), ('padded', 65, (33800, 270400, 0)),
                           ('columns', 64, (32768, 32768, 0)), ('columns', 65, (270400, 33800, 0)),
                           ('diagonals', 64, (262144, 262144, 0)), ('blocked', 65, (33800, 33800, 0)),
                           ('blocked_nt', 65, (33800, 33800, 0)), ('memcpy', 65, (33800, 33800, 0))):
        assert model[name, 0, 2, n][2:] == found, (name, n)
    assert model['columns', 0, 0, 64][2:] == (32768, 32768, 0)             # in memory, by L1: it holds more than the L3
    assert model['blocked', 1, 2, 65][2:] == (33800, 0, 33800)              # in place: read, written back
    assert model['rows', 1, 2, 64][2:] == (32768, 0, 32768)
    assert model['rows', 1, 2, 65][2:] == (152100, 0, 152100)               # half of it against the rows: 4.5 times
    assert all(found[2:] == (0, 0, 0) for (_, _, level, _), found in model.items() if level == 1)
    # Memory: the last cache below it is the only one there is.
    assert model['rows', 0, 0, 65] == model['rows', 0, 2, 65]


def test_traffic_of_a_record(programs):
    '''In L1 what the loop says; beyond, a line that was not read is fetched before it is written.'''
    found = {r['variant']: r for r in programs.measured('transpose', '--variants', 'all', '--size', 16, *QUICK).measurements}
    assert {(r['bytes'], r['flops'], r['traffic'], r['working_set']) for name, r in found.items() if name != 'padded'} == \
        {(4096, 0, 4096, 4096)}
    assert found['padded']['working_set'] == 2 * 16 * 24 * 8
    record, = programs.measured('transpose', *QUICK).measurements
    assert record['size'] == 1025       # the source's


def test_the_block_is_in_the_record(programs):
    caches = programs.measured('transpose', '--size', 8, *QUICK).machine['caches'] or [{'level': 1, 'size': 32768}]
    ways = next(cache['size'] for cache in caches if cache['level'] == 1) // 4096
    variants = [name for name in ('blocked', 'blocked_nt') if name in programs.runnable('transpose')]
    found = {(r['variant'], r['size']): r['options']['block'] for r in programs.measured(
        'transpose', '--variants', listed(variants), '--size', '33,40,512', *QUICK).measurements}
    expected = {('blocked', 33): 128, ('blocked', 40): 64, ('blocked', 512): max(8, 2 ** (ways.bit_length() - 1)),
                ('blocked_nt', 33): 1024, ('blocked_nt', 40): 512, ('blocked_nt', 512): 512}
    assert found == {key: block for key, block in expected.items() if key[0] in variants}


# --- bad input is refused ------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def with_threads(tmp_path_factory):
    '''A build with an OpenBLAS that has threads of its own.'''
    folder = tmp_path_factory.mktemp('with_threads')
    copied(folder / 'src', 'kernels/transpose')
    (folder / 'cblas.h').write_text(
        'enum { CblasRowMajor, CblasTrans, OPENBLAS_THREAD = 1 };\nint openblas_get_parallel(void);\n'
        'void cblas_domatcopy(int, int, int, int, double, const double *, int, double *, int);\n')
    (folder / 'openblas.c').write_text(
        '#include "cblas.h"\nint openblas_get_parallel(void) { return OPENBLAS_THREAD; }\n'
        'void cblas_domatcopy(int o, int t, int n, int m, double x, const double *a, int lda, double *b, int ldb)\n'
        '{ b[1] = 3; }\n')
    output_of('cc', '-shared', '-fPIC', folder / 'openblas.c', '-o', folder / 'libopenblas.so')
    return Build(folder / 'build', '-DPLUMBLINE_FORTRAN=OFF', f'-DOPENBLAS_LIBRARY={folder}/libopenblas.so',
                 f'-DOPENBLAS_INCLUDE={folder}', source=folder / 'src', targets=['transpose'])


def test_a_library_with_threads_is_not_used(with_threads):
    named = {variant.name: variant for variant in with_threads.variants('transpose')}
    assert not named['openblas'].in_build
    done = with_threads.run('transpose', '--variants', 'openblas')
    assert done.code == 2 and 'not in this build: built without OpenBLAS, or it has threads of its own' in done.errors


def test_the_library_is_named_in_the_record(programs):
    if 'openblas' not in programs.runnable('transpose'):
        pytest.skip('built without OpenBLAS')
    record, = programs.measured('transpose', '--variants', 'openblas', '--size', 8, *QUICK).measurements
    assert record['options']['library'].startswith('OpenBLAS ')


@pytest.mark.parametrize('options, parts', [('--size 16777217', ['--size 16777217', 'at most 16777216']), ('--size 16777216', ['GB that are free']),
                                            ('--size 0', ['--size 0']), ('--block-size 12', ['--block-size 12', 'multiple of 8']),
                                            ('--block-size 1032', ['--block-size 1032', '1024']), ('--block-size 0', ['--block-size 0']),
                                            ('--place beside', ['--place beside', 'out, in']),
                                            ('--variants columns --place in', ['--place in', 'columns needs a second matrix']),
                                            ('--variants blocked,memcpy --place out,in', ['--place in', 'memcpy needs a second matrix']),
                                            ('--variants nt', ['transpose has no such variant', 'blocked_nt']),
                                            ('--shift 8', ['transpose has no arrays that can be shifted']),
                                            ('--alloc static', ['transpose has no static arrays'])])
def test_bad_input_is_refused(programs, options, parts):
    refused(programs.run('transpose', *options.split()), *parts)


@pytest.mark.skipif(len(CPUS) < 2, reason='only one CPU may be used here')
def test_the_library_in_place_has_one_thread(programs):
    if 'openblas' not in programs.runnable('transpose'):
        pytest.skip('built without OpenBLAS')
    refused(programs.run('transpose', '--variants', 'openblas', '--place', 'in', '--threads', 2), '--threads 2: openblas in place runs with at most 1')


# --- the checks --------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def measured(measuring, tmp_path_factory):
    '''One run of each check on one thread, memory just large enough not to be a cache: name -> test case.'''
    place = measuring(tmp_path_factory.mktemp('transpose') / 'place')
    done = place.reframe(*rfm.small(), '-n', 'transpose_(memory|sizes).*%threads=one|transpose_table6',
                         checks=rfm.REPOSITORY / 'checks/memory')
    assert done.report, done.out
    return {name.replace(' %threads=one', ''): case for name, case in done.cases().items()}


@pytest.mark.parametrize('check, expected', [
    ('transpose_memory %place=out', {f'{metric}.out.{what}' for metric, what in (
        ('of_limit', 'blocked_nt'), ('bandwidth', 'rows'), ('speedup', 'memcpy'), ('speedup', 'openblas'), ('speedup', 'padded'))}),
    ('transpose_memory %place=in', {'of_limit.in.rows', 'bandwidth.in.blocked', 'speedup.in.padded', 'speedup.in.blocked'}),
    ('transpose_sizes', {f'{metric}.{variant}.memory' for metric in ('of_limit', 'bandwidth', 'power_of_two')
                         for variant in ('rows', 'blocked', 'blocked_nt')}),
    ('transpose_table6', {'bandwidth.rows', 'speedup.blocked_nt', 'speedup.openblas', 'speedup.rows', 'bandwidth.columns'}),
])
@x86_only
def test_checks_measure_what_they_ask(measured, check, expected):
    case = measured[check]
    rfm.assert_measured(case)
    left = case['plumbline']
    names = {metric['name'] for metric in left['metrics']}
    assert expected <= names | {skipped['metric'] for skipped in left.get('skipped', [])}
    assert not {'speedup.out.rows', 'speedup.in.rows', 'speedup.columns', 'power_of_two.rows'} & names
    if check == 'transpose_memory %place=out':
        assert {m['verdict'] for m in left['metrics'] if m['subject'] in ('out.memcpy', 'out.openblas')} == {'NO REFERENCE'}
    rfm.assert_drawn(check, case, 'anderson1997')
