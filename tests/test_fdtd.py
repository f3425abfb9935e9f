'''FDTD: right results, what the compiler made of the loops, model, check, figure.'''

import itertools
import re

import numpy as np
import pytest

import rfm
from native import QUICK, SOURCE, THREADS, environment, libraries, listed, needs, output_of, refused, x86_only
from plumbline import bench
from plumbline.report import drawing, figures
from plumbline.system import codegen

C_LOOPS = ['fused', 'split2', 'split3']


# --- right results ---------------------------------------------------------------------------------------------------

def test_every_loop_is_right_at_every_size(build):
    '''Nothing to compute (1, 2, 3), one point, fewer planes than threads, primes, no multiple of a vector.'''
    sizes = [1, 2, 3, 4, 5, 7, 20, 37]
    found = build.measured('fdtd', '--variants', 'all', '--size', ','.join(map(str, sizes)),
                           '--threads', listed(THREADS), *QUICK).measurements
    expected = itertools.product(build.runnable('fdtd'), sizes, THREADS)
    assert sorted((r['variant'], r['size'], r['threads']) for r in found) == sorted(expected)
    assert all(r['valid'] and (r['max_error'], r['tolerance']) == (0, 0) for r in found)


def test_the_size_of_the_source_is_right(programs):
    found = programs.measured('fdtd', '--variants', 'all', '--size', 129, '--init', 'noinit', '--pages', 'base', *QUICK)
    assert all(r['valid'] for r in found.measurements)
    assert {r['working_set'] for r in found.measurements} == {6 * 4 * 129 * 129 * 128}
    names = {f'{loop}{told}' for loop in (*C_LOOPS, 'distributed') for told in ('', '_restrict')}
    runnable = programs.runnable('fdtd')
    assert {'fused', 'fused_restrict', 'fused_prefetch', 'split2', 'split2_restrict', 'split3', 'split3_restrict'} <= runnable
    compiler = programs.measured('fdtd', '--size', 5, *QUICK).measurements[0]['compiler']
    assert not compiler.startswith(('GNU', 'Clang')) or names <= runnable


# --- the loop against numpy ------------------------------------------------------------------------------------------

def updated(e, h):
    '''One pass over E = {ex, ey, ez}, shape (j, i, k), from H: the statements of the source on whole arrays.'''
    (ex, ey, ez), (hx, hy, hz) = (array.astype(np.float64) for array in e), (array.astype(np.float64) for array in h)
    n = ex.shape[1]
    j, i, k = (slice(1, n - 2),) * 3
    before = slice(0, n - 3)
    new = [array.copy() for array in (ex, ey, ez)]
    new[0][j, i, k] = 0.5 * (ex[j, i, k] + 1 * (hz[j, i, k] - hz[before, i, k] + hy[j, i, k] - hy[j, i, before]))
    new[1][j, i, k] = 0.25 * (ey[j, i, k] + 2 * (hx[j, i, before] - hx[j, i, k] + hz[j, before, k] - hz[j, i, k]))
    new[2][j, i, k] = 0.125 * (ez[j, i, k] + 4 * (hx[before, i, k] - hx[j, i, k] + hy[j, i, k] - hy[j, before, k]))
    return [array.astype(np.float32) for array in new]


@pytest.fixture(scope='module')
def passes(programs, tmp_path_factory):
    '''What many passes leave: lines (variant, passes, checksum, least and largest magnitude) of native_fdtd.c, by the loops of
    the program; and the folder with the file of fields.'''
    folder, variants = tmp_path_factory.mktemp('passes'), programs.runnable('fdtd')
    text = ['-DFDTD_C_FLAGS=""', '-DFDTD_FORTRAN_FLAGS=""', *['-DFDTD_C_DISTRIBUTED=""'] * ('distributed' in variants),
            *['-DPL_FORTRAN', '-DPL_FORTRAN_COMPILER=""'] * ('fortran_fused' in variants)]
    loops = [path for path in programs.folder.glob('kernels/fdtd/CMakeFiles/fdtd-serial.dir/*.o') if path.name != 'fdtd.c.o']
    output_of('cc', '-std=gnu17', '-O1', *text, '-I', SOURCE / 'harness', '-I', SOURCE / 'kernels/fdtd',
              rfm.REPOSITORY / 'tests/native_fdtd.c', *loops, programs.folder / 'libruntime-serial.a', *libraries(programs, 'fdtd'),
              '-o', folder / 'passes')
    lines = output_of(folder / 'passes', folder / 'fields', env=environment()).splitlines()
    return [line.split() for line in lines], folder


def test_loops_agree_bit_for_bit_with_numpy_and_after_many_passes(passes):
    sums = {}
    for variant, count, checksum, _, _ in passes[0]:
        sums.setdefault(int(count), {})[variant] = checksum
    assert set(sums) == {1, 2, 10, 1000}
    for found in sums.values():
        assert len(found) >= 6 and len(set(found.values())) == 1
    assert len({next(iter(found.values())) for found in sums.values()}) == 4
    # They would take longer than the numbers of a real field, or the same whatever the loop.
    assert all(0.01 < float(least) <= float(largest) < 1e4 for _, _, _, least, largest in passes[0])
    n = 37
    before, after = np.fromfile(passes[1] / 'fields', dtype=np.float32).reshape(2, 6, n - 1, n, n)
    for expected, found in zip([*updated(before[:3], before[3:]), *before[3:]], after):
        np.testing.assert_array_equal(found, expected)
    assert all((found[1:n - 2, 1:n - 2, 1:n - 2] != old[1:n - 2, 1:n - 2, 1:n - 2]).all() for old, found in zip(before[:3], after[:3]))


# --- bad input -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('options, reason', [('--size 100001', 'is the edge of a cube of points: give at most 100000; 129 is the source'),
                                             ('--size 1e15', 'is the edge of a cube'), ('--size 5,100001', '--size 100001'),
                                             ('', '--size 1000000: is the edge'), ('--size 100000', 'needs 23999760.0 GB in all')])
def test_bad_input_is_refused(programs, options, reason):
    refused(programs.run('fdtd', *options.split()), reason)


# --- model and flags -------------------------------------------------------------------------------------------------

def test_work_and_traffic_of_a_pass(programs):
    '''n = 5: 2 x 2 x 2 points of 18 flops, 15 loads, 3 stores.'''
    for record in programs.measured('fdtd', '--variants', 'all', '--size', 5, *QUICK).measurements:
        assert (record['flops'], record['bytes']) == (8 * 18, 8 * 18 * 4)
        assert record['traffic'] == record['bytes'] or record['level'] != 'L1'
    for record in programs.measured('fdtd', '--size', '1,2,3', *QUICK).measurements:
        assert (record['flops'], record['bytes'], record['traffic']) == (0, 0, 0)
    # Rows of 129 floats, that is of 516 bytes: 126 x 126 of each of EX, EY, EZ read and written; of HX one plane more, of
    # HY one row more in each plane, of HZ both; for each further thread the plane before its first.
    rows = 2 * 3 * 126 * 126 + 127 * 126 + 126 * 127 + (126 * 127 + 126)
    for threads in THREADS:
        record, = programs.measured('fdtd', '--size', 129, '--threads', threads, *QUICK).measurements
        if record['level'] == 'L1' or 'do not stay' in record['traffic_source']:
            pytest.skip('six planes of 66564 bytes do not stay in half of the caches here, or all of them in the first')
        assert record['traffic'] == 516 * (rows + (threads - 1) * 2 * 126)
    assert record['traffic_source'].startswith('model: six planes stay')


def test_each_variant_states_its_flags(programs):
    found = programs.measured('fdtd', '--variants', 'all', '--size', 5, *QUICK).measurements
    flags = {record['variant']: record['flags'] for record in found}
    assert len({flags[f'{loop}{told}'] for loop in C_LOOPS for told in ('', '_restrict')}) == 1
    if '-fno-tree-loop-distribution' not in flags['fused']:
        pytest.skip('what is expected of the flags is written for gcc')
    for fused, distributed in (('fused', 'distributed'), ('fused_restrict', 'distributed_restrict'), ('fortran_fused', 'fortran_distributed')):
        if fused in flags:
            assert flags[distributed] == flags[fused].replace('-fno-tree-loop-distribution', '-ftree-loop-distribution')
    if 'fortran_fused' in flags:
        assert flags['fortran_fused'] == flags['fortran_split2'] == flags['fortran_split3'] != flags['fused']


@pytest.fixture(scope='module')
def code(programs):
    needs('objdump')
    if not programs.measured('fdtd', '--size', 5, *QUICK).measurements[0]['compiler'].startswith('GNU'):
        pytest.skip('what is expected of the instructions is written for gcc')
    return output_of('objdump', '-d', '--no-show-raw-insn', programs.path('fdtd'))


@x86_only
def test_loops_told_of_no_overlap_are_vectorised(code, programs):
    widths = codegen.widths_of(code, 'fdtd', [(name, None) for name in programs.runnable('fdtd')])
    assert set(widths) == programs.runnable('fdtd')
    for name, width in widths.items():
        if name.startswith('fortran') or name.endswith('restrict'):
            assert width in ('128-bit', '256-bit', '512-bit'), name


@x86_only
def test_same_code_is_told_from_other_code(code):
    assert codegen.same_code(code, 'fdtd_fused_restrict', 'fdtd_split3_restrict') is False
    assert codegen.same_code(code, 'fdtd_fused', 'fdtd_fused')


# --- the check and its figure ----------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def case(measuring, tmp_path_factory):
    '''The result of the check on one thread, in memory just large enough not to be a cache.'''
    done = measuring(tmp_path_factory.mktemp('fdtd')).reframe(
        *rfm.small(), '-n', 'fdtd_splitting%threads=one', checks=rfm.REPOSITORY / 'checks/apps/fdtd_splitting.py')
    assert done.report, done.out
    found, = done.cases().values()
    rfm.assert_measured(found)
    return found['plumbline']


def test_the_check_measures_every_loop_at_both_sizes_and_says_why(case, programs):
    loops = programs.runnable('fdtd')
    names = {metric['name'] for metric in case['metrics']}
    splits = {name for name in loops if 'fused' not in name}
    assert len(splits) == len([name for name in names if re.fullmatch(r'split_over_fused\..*\.source', name)])
    assert {f'flops.{loop}.{size}' for loop in loops for size in ('source', 'memory')} <= names
    assert {f'of_limit.{loop}.memory' for loop in loops} == {name for name in names if name.startswith('of_limit')}
    assert {'split_over_fused.split3.as_written.source', 'split_over_fused.split2.restrict.memory'} <= names
    judged = {metric['name'] for metric in case['metrics'] if metric['reference']}
    assert {'of_limit.fused_restrict.memory', 'of_limit.split3_restrict.memory'} <= judged
    assert not any('.as_written.' in name or name == 'of_limit.fused.memory' for name in judged)
    whys = [note for note in case['notes'] if re.match('(source|memory) size: ', note)]
    assert len(whys) == 2
    for note in whys:
        assert re.match(r'\w+ size: (undecided|no gain|lost to aliasing|too many streams|not vectorised)', note), note
        assert re.search(r'split is \d+\.\d\d x as fast as fused as written, \d+\.\d\d x with restrict', note)
    assert any(note.startswith('SIMD width: ') and 'fused_restrict' in note for note in case['notes'])


def test_a_figure_for_each_thread_count(case):
    detail = case | {'check': 'fdtd_splitting', 'hostname': 'here', 'partition': 'p', 'environ': 'e'}
    (title, caption, figure), = figures.of_check('fdtd_splitting', [detail])
    assert title == 'FDTD, loops fused and split, 1 thread'
    assert 'Source size: ' in caption and 'bytes per flop' in caption
    assert len([trace for trace in figure.data if trace.type == 'bar']) == 2
    texts = [annotation.text for annotation in figure.layout.annotations]
    assert any('129 x 129 x 128' in text for text in texts)
    assert sum(text.startswith('limit ') for text in texts) == 1        # of the larger size only
    kernels = [r for r in case['records'] if r['role'] == 'kernel' and r['size'] == 129]
    assert drawing.gigabytes(np.median(kernels[0]['traffic'] / np.array(kernels[0]['seconds']) * 1e-9)) in texts
    missing = {skipped['metric'] for skipped in case.get('skipped', ())}
    measured = {metric['name'] for metric in case['metrics']}
    names = [f'{name}.{size}' for size in ('source', 'memory') for name in ('flops.fortran_split2', 'split_over_fused.split2.fortran')]
    assert all((name in missing) != (name in measured) for name in names)


# --- bench -----------------------------------------------------------------------------------------------------------

class Told:
    '''A machine that answers with records of made-up times: fused takes 2 s as written and 1 s told, all else 1 s.'''
    processor, cpus, memory = {'topology': {'caches': [{'type': 'L3', 'size': 2**25, 'cpusets': ['0x1']}]}}, [0], 2**33

    def run(self, program, cpus, *options):
        options = dict(zip(options[::2], options[1::2]))
        names = ['fused', 'split2', 'fused_restrict', 'split2_restrict', 'split3_restrict'] \
            if options['--variants'] == 'all' else options['--variants'].split(',')
        common = {'kernel': program, 'group': 0, 'size': options['--size'], 'threads': len(cpus), 'level': 'memory'}
        load = {'variant': 'load', 'role': 'limit', 'flops': 0, 'traffic': 2.5e6, 'bytes': 2.5e6, 'seconds': [1.0] * 3}
        return [common | load] + [
            common | {'variant': name, 'role': 'kernel', 'flops': 1e6, 'traffic': 2e6, 'bytes': 4e6,
                      'seconds': [2.0 if name == 'fused' else 1.0] * 3} for name in names]


def test_figures_of_the_bench():
    found = {figure.what: figure for figure in bench.FIGURES['fdtd'](Told(), 3)}
    best = found['memory, 1 thread: fdtd fused_restrict / limit of its traffic']
    assert (best.value, best.least, len(best.samples)) == (0.8, 0.75, 3)
    as_written = found['129 x 129 x 128, 1 thread: fdtd split2 / fused as written']
    assert as_written.value == 2 and 'then 1.89' in as_written.remark
    assert found['129 x 129 x 128, 1 thread: fdtd split2 / fused, restrict'].value == 1
    assert not any('Fortran' in what for what in found)
