'''The nine-point kernel and the Jacobi sweep: right results, wrong ones found, layouts, models, checks, figures.'''

import ctypes
import itertools

import numpy as np
import pytest
from reframe.utility.cpuinfo import cpuinfo

import rfm
from native import CPUS, QUICK, SAMPLES, SOURCE, THREADS, library, listed, output_of, pointer, refused, x86_only
from plumbline.bench import stencils as bench
from plumbline.report import figures
from plumbline.system import topology

CHECKS = rfm.REPOSITORY / 'checks/apps'


# --- right results -----------------------------------------------------------------------------------------------------

def test_every_layout_of_the_nine_point_kernel_and_every_jacobi_sweep_is_right(build):
    '''No point (1, 2), one point, smaller than a vector, primes, fewer columns than threads, whole cache lines.'''
    sizes = [1, 2, 3, 5, 8, 17, 64]
    found = build.measured('ninepoint', '--variants', 'all', '--size', listed(sizes), '--threads', listed(THREADS), *QUICK)
    expected = itertools.product(build.runnable('ninepoint'), sizes, THREADS)
    assert sorted((r['variant'], r['size'], r['threads']) for r in found.measurements) == sorted(expected)
    assert all(r['valid'] and (r['max_error'], r['tolerance']) == (0, 0) for r in found.measurements)
    assert not any('private_lines' in r for r in found.measurements)        # a thread reads what its neighbours write
    # Boxes without a point, flat and long ones, blocks of one row, that do not divide, larger than the box.
    sizes, planes, blocks = [1, 2, 3, 8, 10, 35], [1, 6], [1, 4]
    found = build.measured('jacobi', '--variants', 'all', '--size', listed(sizes), '--planes', listed(planes), '--block-rows',
                           listed(blocks), '--distance', 8, '--threads', listed(THREADS), *QUICK).measurements
    expected = itertools.product(build.runnable('jacobi'), sizes, planes, blocks, THREADS)
    assert sorted((r['variant'], r['size'], r['options']['planes'], r['options']['block-rows'], r['threads']) for r in found) == sorted(expected)
    assert all(r['valid'] and (r['max_error'], r['tolerance']) == (0, 0) for r in found)


@pytest.mark.parametrize('program', ['jacobi', 'ninepoint'])
def test_cubes_and_squares_are_right(programs, program):
    found = programs.measured(program, '--variants', 'all', '--size', '30,131', '--threads', listed(THREADS), '--init',
                              'noinit', '--pages', 'base', *SAMPLES, '--passes', '1,3').measurements
    assert all(r['valid'] for r in found)
    assert {r['variant'] for r in found} == programs.runnable(program)
    if program == 'jacobi':
        assert {(r['size'], r['options']['planes-used']) for r in found} == {(30, 30), (131, 131)}


# --- the loops by themselves, against numpy ------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def loops(programs, tmp_path_factory):
    return library(programs, tmp_path_factory.mktemp('loops'), 'ninepoint', 'kernels/ninepoint/kernel.c')


def nine_point(x, y):
    '''AA, DD, RX and RY of the inner points as anderson1997, section 3.1.3, has them; the first index is i.'''
    c, up, down = slice(1, -1), slice(2, None), slice(None, -2)
    rx = []
    d_i = [v[up, c] - v[down, c] for v in (x, y)]
    d_j = [v[c, up] - v[c, down] for v in (x, y)]
    a = (d_j[0]**2 + d_j[1]**2) / 4
    b = (d_i[0]**2 + d_i[1]**2) / 4
    mixed = (d_i[0] * d_j[0] + d_i[1] * d_j[1]) / 8
    for v in (x, y):
        rx.append(a * (v[up, c] - 2 * v[c, c] + v[down, c]) + b * (v[c, up] - 2 * v[c, c] + v[c, down])
                  - mixed * (v[up, up] - v[up, down] - v[down, up] + v[down, down]))
    return -b, b + a * b * 0.75, *rx


@pytest.mark.parametrize('n, ld', [(3, 3), (4, 8), (17, 17), (17, 24), (40, 41), (64, 64)])
@pytest.mark.parametrize('name', ['plain', 'fortran'])
def test_nine_point_loop_against_numpy(loops, name, n, ld):
    if not hasattr(loops, f'ninepoint_{name}'):
        pytest.skip('built without a Fortran compiler')
    rng = np.random.default_rng(1997)
    data = [rng.integers(-50, 50, (n, ld)).astype(float) for _ in range(2)]
    out = [np.full((n, ld), np.nan) for _ in range(4)]
    first, last = (1, n - 1) if n < 10 else (3, n - 2)
    getattr(loops, f'ninepoint_{name}')(*map(ctypes.c_size_t, (ld, first, last, 1, n - 1)), *map(pointer, data + out))
    for found, right in zip(out, nine_point(*(v.T[:n] for v in data))):
        expected = np.full((n, ld), np.nan)
        expected[first:last, 1:n - 1] = right.T[first - 1:last - 1]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('kernel, options, text', [('ninepoint', '--size 513,1e9', '--size 1000000000: is the edge of six square arrays'),
                                                   ('jacobi', '--size 1e6', '--size 1000000: is the edge of two boxes of 1000000 planes'),
                                                   ('jacobi', '--size 1e7 --planes 2', 'fewer --planes'), ('jacobi', '--planes 0', '--planes'),
                                                   ('jacobi', '--block-rows 0', '--block-rows'),
                                                   ('jacobi', '--distance 12', '--distance 12: must divide into whole cache lines'),
                                                   ('ninepoint', '--planes 3', '--planes')])
def test_bad_input_is_refused(programs, kernel, options, text):
    refused(programs.run(kernel, *options.split()), text)


# --- layouts and models, on caches of any size -----------------------------------------------------------------------------

@pytest.fixture(scope='module')
def model(programs, tmp_path_factory):
    '''Function (kernel, variant, n, threads, level, shares of L1 L2 L3, options) -> numbers (native_stencils.c).'''
    folder = tmp_path_factory.mktemp('model')
    for kernel in ('jacobi', 'ninepoint'):
        output_of('cc', '-O1', '-std=gnu17', '-I', SOURCE / 'harness', '-I', SOURCE / 'kernels' / kernel,
                  f'-DKERNEL="{kernel}.c"', *(['-DLAYOUTS'] if kernel == 'ninepoint' else []),
                  rfm.REPOSITORY / 'tests/native_stencils.c', SOURCE / 'kernels' / kernel / 'kernel.c', SOURCE / 'harness/parts.c', '-o', folder / kernel, '-lm')

    def numbers(kernel, variant, n, threads, level, shares, *options):
        return list(map(int, output_of(folder / kernel, variant, *map(str, (n, threads, level, *shares, *options))).split()))
    return numbers


@x86_only       # the variant without Fortran
def test_the_layouts(model):
    '''anderson1997, section 3.1.3, for the padded one: leading dimension 520, and IPAD = 3576 gives these places.'''
    def places(variant, n):
        return model('ninepoint', variant, n, 1, 0, (0, 0, 0))[5:]

    ld, *begin = places('padded', 513)
    assert ld == 520 and [b % 4096 for b in begin[:-1]] == [0, 1560, 3120, 3248, 3376, 3504]
    assert (520 * 513 + 3576 + 520 * 3) % 4096 == 1560 and (520 * 513 + 3576 + 128) % 4096 == 128    # P1, P3 of the source
    assert places('padded', 512)[0] == 520 and places('padded', 2049)[0] == 2056        # 65 and 257 cache lines
    ld, *begin = places('plain', 513)
    assert ld == 513 and begin == [k * 513 * 513 for k in range(7)]
    ld, *begin = places('aligned', 513)
    assert ld == 520 and {b % 512 for b in begin[:-1]} == {0} and begin[1] == 266760 // 512 * 512 + 512
    ld, *begin = places('conflicting', 512)
    assert ld == 512 and {b % 131072 for b in begin[:-1]} == {0} and begin[1] == 2 * 131072
    assert places('conflicting', 513)[0] == 1024


def test_the_traffic_of_the_nine_point_kernel(model):
    '''n = 10: 64 points; 9216 bytes loaded, 2048 stored, 3008 flops; three columns of X and Y are 480 bytes.'''
    def fetched(threads, level, *shares):
        load, store, flops, fetched, written, *_ = model('ninepoint', 'plain', 10, threads, level, shares)
        assert (load, store, flops, written) == (9216, 2048, 3008, 0 if level == 1 else 2048)
        return fetched

    assert fetched(1, 1, 10**6, 10**6, 10**6) == 0
    assert fetched(1, 0, 0, 0, 960) == fetched(1, 3, 0, 960, 0) == fetched(1, 2, 960, 0, 0) == 16 * 10 * 10
    assert fetched(1, 0, 959, 959, 959) == fetched(1, 2, 959, 960, 960) == 16 * 10 * 24
    assert fetched(1, 0, 0, 960, 0) == 16 * 10 * 10         # no L3: what L2 keeps
    assert fetched(2, 0, 0, 0, 960) == 16 * 10 * 12         # two columns more for each thread
    assert model('ninepoint', 'plain', 2, 1, 0, (0, 0, 0))[:5] == [0, 0, 0, 0, 0]


def test_the_layer_condition(model):
    '''n = 10: 512 points in rows of 192 bytes, padding counted; a row of three planes takes 1152 bytes of cache.'''
    def fetched(variant, threads, level, shares, planes=10, block=4):
        load, store, flops, fetched, written, _ = model('jacobi', variant, 10, threads, level, shares, planes, block)
        points = 64 * (planes - 2)
        assert (load, store, flops, written) == (56 * points, 8 * points, 8 * points, 0 if level == 1 else 8 * points)
        return fetched

    big = 10**9
    assert fetched('plain', 1, 1, (big, big, big)) == 0
    one = 192 * (8 * 10 + 2 * 8)        # every row once: ten of each plane, eight of the planes at the ends
    assert fetched('plain', 1, 0, (0, 0, 11520)) == fetched('plain', 1, 3, (0, 11520, 0)) == one
    three = 192 * 8 * (3 * 8 + 2)
    assert fetched('plain', 1, 0, (0, 0, 11519)) == fetched('plain', 1, 0, (0, 0, 1152)) == three
    assert fetched('plain', 1, 0, (0, 0, 1151)) == fetched('plain', 1, 2, (0, big, big)) == 192 * 8 * 5 * 8
    assert fetched('plain', 2, 0, (0, 0, 11520)) == 2 * 192 * (4 * 10 + 2 * 8)
    assert fetched('plain', 1, 0, (0, 0, 11520), planes=3) == 192 * (10 + 16)
    # Two blocks of four rows: two rows more for the second, unless all planes of a block stay.
    assert fetched('blocked', 1, 0, (0, 0, 6912)) == 192 * (8 * 12 + 2 * 8)
    assert fetched('blocked', 1, 0, (0, 0, 6911)) == three
    assert fetched('blocked', 1, 0, (0, 0, 46080)) == one
    for n, threads, planes in ((2, 1, 0), (10, 2, 1), (10, 2, 2)):     # nothing to compute: each element is touched once all the same
        assert model('jacobi', 'plain', n, threads, 0, (0, 0, 0), planes, 0)[:5] == [0, 0, 0, 0, 0]


@pytest.mark.parametrize('shares, block', [
    ((0, 6912, 0), 4), ((0, 10368, 10**9), 7), ((0, 10**9, 0), 8),     # what L2 holds, two rows less; at most all
    ((0, 6911, 9216), 6), ((0, 0, 6912), 4),                           # what L3 holds
    ((0, 0, 3456), 1), ((0, 0, 0), 1),
])
def test_the_rows_of_a_block(model, shares, block):
    assert model('jacobi', 'blocked', 10, 1, 0, shares, 0, 0)[-1] == block
    assert model('jacobi', 'blocked', 10, 1, 0, shares, 0, 3)[-1] == 3
    assert model('jacobi', 'plain', 10, 1, 0, shares, 0, 3)[-1] == 8


def test_records_state_the_work(programs):
    record, = programs.measured('ninepoint', '--size', 10, '--samples', 10, '--passes', 3).measurements
    assert (record['bytes'], record['flops'], record['options']['leading-dimension']) == (3 * 11264, 3 * 3008, 10)
    record, = programs.measured('jacobi', '--size', 10, '--planes', 5, '--samples', 10, '--passes', 3).measurements
    assert (record['bytes'], record['flops'], record['options']['planes-used']) == (3 * 192 * 64, 3 * 192 * 8, 5)
    # Two caches of 8 MiB, four CPUs each.
    processor = {'topology': {'caches': [
        {'type': 'L2', 'size': 2**20, 'cpusets': [hex(1 << cpu) for cpu in range(8)]},
        {'type': 'L3', 'size': 2**23, 'cpusets': ['0x0f', '0xf0']}]}}
    shares = [topology.last_level_share(processor, cpus) for cpus in ([0], [0, 4], [0, 1], range(8))]
    assert shares == [2**23, 2**23, 2**22, 2**21]


# --- checks and figures ----------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def run(measuring, tmp_path_factory):
    '''One run of the checks, as small as they accept, and what is said of it: (run, report, page).'''
    place = measuring(tmp_path_factory.mktemp('run') / 'place')
    done = place.reframe(*rfm.small(), '-n', 'jacobi_memory%threads=one|jacobi_blocking%threads=all|' 'ninepoint_padding%threads=one', checks=CHECKS)
    assert done.report, done.out
    return done, place.judge(), (place.folder / 'reports/latest/index.html').read_text()


def test_padding_is_measured_as_data(run, programs):
    found, left = rfm.measured_of(run[0], 'ninepoint_padding')
    l1 = topology.capacity(cpuinfo(), 'L1', [0])
    sizes = {record['size'] for record in left['records']}
    assert {512, 513} < sizes and 6 * 8 * max(sizes) > 2 * l1
    variants = programs.runnable('ninepoint')
    assert set(found) == ({f'flops.{v}.n{n}' for v in variants for n in sizes}
                          | {f'speedup.{v}.n{n}' for v in ('aligned', 'padded', 'conflicting') for n in sizes})
    assert {metric['verdict'] for metric in found.values()} == {'NO REFERENCE'}


def test_jacobi_is_judged_in_memory(run, programs):
    found, left = rfm.measured_of(run[0], 'jacobi_memory')
    variants = {'plain', 'nt', 'blocked_prefetch'}
    assert set(found) == {f'{metric}.{v}' for metric in ('of_limit', 'of_parts', 'flops') for v in variants}
    assert rfm.judged_on_day_one(found, 'of_parts') == {'of_parts.plain', 'of_parts.blocked_prefetch'}
    kernels = [record for record in left['records'] if record['role'] == 'kernel']
    assert {record['level'] for record in kernels} == {'memory'}
    assert {record['traffic_source'].partition(': 1 load')[0] for record in kernels} == {'model: three planes stay in the cache below'}
    edge, = {record['size'] for record in kernels}
    assert edge % 16 == 2 and 3 * 8 * edge**2 <= topology.last_level_share(cpuinfo(), [0]) / 4


def test_jacobis_box_does_not_follow_what_is_ours_of_the_cache_today_and_planes_that_are_too_large_are_skipped(measuring, tmp_path):
    '''Sessions with 2, 4 and 36 MiB of L3 had edges of 98, 146 and 242, and rates that differed by 13 %.'''
    place = measuring(tmp_path, PLUMBLINE_CAPACITY=f'L3={2**20 + 2**19}')
    done = place.reframe(*rfm.small(), '-S', f'jacobi_blocking.memory_bytes={10**15}', '-n', 'jacobi_(memory|blocking)%threads=one', checks=CHECKS)
    case, too_large = (done.cases()[f'jacobi_{name} %threads=one'] for name in ('memory', 'blocking'))
    assert too_large['result'] == 'skip' and 'x 10 points take more than a quarter of the memory' in str(too_large['plumbline']['skipped'])
    rfm.assert_measured(case)
    share = min(2**20, topology.last_level_share(cpuinfo(), [0]))
    edge, = {record['size'] for record in case['plumbline']['records'] if record['role'] == 'kernel'}
    assert edge == int((share / 4 / 24)**0.5 - 2) // 16 * 16 + 2


def test_blocking_is_measured_against_plain(run, programs):
    found, left = rfm.measured_of(run[0], 'jacobi_blocking')
    variants = programs.runnable('jacobi')
    assert set(found) == ({f'{metric}.{v}' for metric in ('of_limit', 'of_parts', 'flops') for v in variants}
                          | {f'speedup.{v}' for v in variants - {'plain'}})
    assert rfm.judged_on_day_one(found) == {f'of_limit.{v}' for v in variants} | {f'of_parts.{v}' for v in variants - {'nt', 'blocked_nt'}}
    kernels = [record for record in left['records'] if record['role'] == 'kernel']
    assert {record['options']['planes'] for record in kernels} == {8 * kernels[0]['threads'] + 2}
    _, judged, page = run
    assert 'Traceback' not in judged.out
    for title in ('How the arrays of a nine-point kernel lie', 'Jacobi sweep in memory', 'Jacobi sweep in memory, planes larger than the cache'):
        assert title in page
    assert 'Not drawn' not in page and '311 instead of' in page


def test_table_of_the_layouts(programs):
    records = programs.measured('ninepoint', '--variants', 'plain,padded', '--size', '20,9', *QUICK).measurements
    (_, _, table), = figures.of_check('ninepoint_padding', [{'records': records}])
    assert [row[:5] for row in table.rows] == [['9', '1', 'L1', 'plain', '9'], ['9', '1', 'L1', 'padded', '24'],
                                               ['20', '1', 'L1', 'plain', '20'], ['20', '1', 'L1', 'padded', '24']]
    assert [row[6] == '-' for row in table.rows] == [True, False, True, False]


class Small:
    '''A machine whose programs run on next to nothing.'''

    def __init__(self, programs):
        self.programs, self.processor, self.cpus, self.memory = programs, cpuinfo(), CPUS[:2], 2**40

    def run(self, program, cpus, *options):
        options = list(map(str, options))
        options[options.index('--samples') + 1] = '10'
        if program == 'jacobi':
            options[options.index('--size') + 1] = '20'
        return self.programs.measured(program, '--threads', len(cpus), *options, '--passes', 1, '--probes', 'off').measurements


def test_figures_of_the_bench(programs):
    found = list(bench.figures(Small(programs), 2))
    texts = [figure.what for figure in found]
    assert len(set(texts)) == len(texts)
    assert any('ninepoint padded / plain' in text and 'n = 513' in text for text in texts)
    fastest = [figure for figure in found if 'limit of its traffic' in figure.what]
    assert len(fastest) == len({1, min(2, len(CPUS))}) and all(len(f.samples) == 2 and f.least == 0.75 for f in fastest)
