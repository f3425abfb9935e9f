'''The lattice Boltzmann fluid, by threads and in slabs: right cells, right physics, its model, wrong input, its checks.'''

import ctypes
import itertools
import runpy
from types import SimpleNamespace

import numpy as np
import pytest
from reframe.core.exceptions import SkipTestError

import rfm
from native import CPUS, MEASURED, QUICK, THREADS, library, listed, output_of, refused, two_cpus

CHECKS = rfm.REPOSITORY / 'checks/apps'
RATE = 1.25


# --- right cells ---------------------------------------------------------------------------------------------------------

def test_every_step_is_right(build):
    '''One cell, its own neighbour; fewer rows than threads; rests of lines and of the buffer; flat boxes.'''
    sizes, planes = [1, 2, 3, 9, 69], [1, 4]
    found = build.measured('lbm', '--variants', 'all', '--size', listed(sizes), '--planes', listed(planes), '--threads', listed(THREADS),
                           *QUICK).measurements
    expected = itertools.product(build.runnable('lbm'), sizes, planes, THREADS)
    assert sorted((r['variant'], r['size'], r['options']['planes-used'], r['threads']) for r in found) == sorted(expected)
    assert all(r['valid'] and 0 < r['max_error'] < 2e-15 and r['tolerance'] < 1e-14 for r in found)
    assert {round(r['options']['viscosity'], 4) for r in found} == {1.0046}


class Box(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ('n', 'rows', 'planes', 'row', 'plane', 'apart')]


class Vortex(ctypes.Structure):
    _fields_ = [('a', ctypes.c_int), ('b', ctypes.c_int), ('cells', ctypes.c_size_t * 3)]


@pytest.fixture(scope='module')
def loops(programs, tmp_path_factory):
    found = library(programs, tmp_path_factory.mktemp('loops'), 'lbm', 'kernels/lbm/kernel.c', 'kernels/lbm/lattice.c')
    found.lbm_box_of.argtypes, found.lbm_box_of.restype = [ctypes.c_size_t] * 3, Box
    found.lbm_measured_viscosity.restype = ctypes.c_double
    return found


def textbook(f, velocities):
    '''A periodic box after a step; f is of shape (19, planes, rows, cells).'''
    moved = np.array([np.roll(f[q], (z, y, x), axis=(0, 1, 2)) for q, (x, y, z) in enumerate(velocities)])
    weights = np.array([(1 / 3, 1 / 18, 1 / 36)[np.abs(c).sum()] for c in velocities])[:, None, None, None]
    density = moved.sum(axis=0)
    velocity = np.einsum('qkji,qa->akji', moved, velocities) / density
    along = np.einsum('akji,qa->qkji', velocity, velocities)
    equilibrium = weights * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (velocity**2).sum(axis=0))
    return moved + RATE * (equilibrium - moved)


@pytest.mark.parametrize('name', ['fused', 'split', 'buffered'])
def test_a_step_against_numpy(loops, name):
    '''And ordinary ghosts: those that move into a box of 5 x 4 x 3 cells are all that is read.'''
    velocities = np.ctypeslib.as_array((ctypes.c_int * 57).in_dll(loops, 'lbm_velocity')).reshape(19, 3)
    assert len({tuple(c) for c in velocities}) == 19 and (np.abs(velocities).sum(axis=1) <= 2).all() and not velocities.sum(axis=0).any()
    box = loops.lbm_box_of(5, 4, 3)
    f = np.random.default_rng(19).uniform(0.02, 0.1, (19, 3, 4, 5))
    room = np.full((2, 19 * box.apart), np.nan)
    views = [np.lib.stride_tricks.as_strided(one, (19, 5, 6, 7), (8 * box.apart, 8 * box.plane, 8 * box.row, 8)) for one in room]
    views[0][:, 1:-1, 1:-1, 1:-1] = f
    for axis in range(3):
        loops.lbm_wrap(ctypes.byref(box), room[0].ctypes.data_as(ctypes.c_void_p), axis)
    getattr(loops, f'lbm_{name}')(ctypes.byref(box), ctypes.c_size_t(0), ctypes.c_size_t(12), *(one.ctypes.data_as(ctypes.c_void_p) for one in room[::-1]))
    np.testing.assert_allclose(views[1][:, 1:-1, 1:-1, 1:-1], textbook(f, velocities), rtol=0, atol=2e-15)


@pytest.mark.parametrize('a, b', [(0, 1), (1, 2), (2, 0)])
def test_the_viscosity_is_of_second_order(loops, a, b):
    '''Of waves of twice as many cells the error is a quarter.'''
    errors = [abs(loops.lbm_measured_viscosity(ctypes.byref(Vortex(a, b, (n, n, n))), loops.lbm_fused) - 1) for n in (12, 24)]
    assert errors[0] < 0.02 and 3 < errors[0] / errors[1] < 5


# --- model, wrong input ----------------------------------------------------------------------------------------------------

def test_records_state_the_work(programs):
    '''16 x 16 x 4 cells: 64 rows; by hand 9 x 2 + 5 x 3 + 5 x 3 lines of the populations that stay in a row, move up and down along x.'''
    found = {r['variant']: r for r in programs.measured('lbm', '--variants', 'all', '--size', 16, '--planes', 4, '--samples', 10, '--passes', 3).measurements}
    cells, lattice, loaded = 1024, 1024 * 152, 64 * 64 * 48
    for variant, record in found.items():
        loops = 2 if variant == 'split' else 1
        assert (record['bytes'], record['flops']) == (3 * loops * 2 * lattice, 3 * 163 * cells)
        stores = {'fill_nt': lattice} if variant == 'nt' else {'fill': 2 * lattice}
        assert record['parts'] == {part: 3 * size for part, size in {
            'load' if variant == 'split' else 'load_many': loaded, **stores, **({'update': 2 * lattice} if variant == 'split' else {})}.items()}


def test_bad_input_is_refused(programs):
    refused(programs.run('lbm', '--size', '1e6'), '--size 1000000: is the edge of two lattices of 1000000 planes')


# --- in slabs --------------------------------------------------------------------------------------------------------------

def test_slabs_on_any_number_of_ranks(mpi_programs):
    '''Slabs of unequal height, of one plane; of three processes one, two and all work: each by itself is right.'''
    build = mpi_programs('openmpi')
    for ranks in (1, 3):
        working = list(range(1, ranks + 1))
        found = build.measured(ranks, 'lbm-slabs', '--variants', 'all', '--size', 9, '--planes', 4, '--working', listed(working), *QUICK).measurements
        assert [r['options']['working'] for r in found if r['variant'] == 'fused'] == working
        for record in found:
            used, options = record['options']['working'], record['options']
            assert record['valid'] and record['max_error'] < 2e-15 and abs(options['viscosity'] - 1) < 0.01
            assert (options['messages'], options['flops_declared'], record['flops']) == (2 if used > 1 else 0, 163 * 9 * 9 * 4, 163 * 9 * 9 * 4)
            # Two messages of five populations of a plane: 11 rows of 24 doubles.
            assert options['message_bytes'] == (2 * 5 * 11 * 24 * 8 if used > 1 else 0)
            assert (max(record['communication']) > 0) == (used > 1)
    weak = build.measured(2, 'lbm-slabs', '--size', 8, '--planes-each', 3, '--working', '1,2', *QUICK).measurements
    assert [(r['options']['planes-used'], r['flops'], r['valid']) for r in weak] == [(3, 163 * 192, True), (6, 163 * 384, True)]


@pytest.mark.parametrize('options, text', [('--size 2', 'more processes than planes: give a larger size, or more --planes'),
                                           ('--size 8 --working 4', '--working 4: there are 3 processes: start more, or let fewer work')])
def test_slabs_that_cannot_be(mpi_programs, options, text):
    found = mpi_programs('openmpi').run(3, 'lbm-slabs', *options.split(), *map(str, QUICK))
    assert found.code != 0 and '"measurement"' not in found.text
    line, = [line for line in found.errors.splitlines() if line.startswith('plumbline: ')]
    assert text in line


@pytest.mark.parametrize('free, fits', [(40, True), (30, False)])
def test_slabs_of_unequal_processes_are_measured_where_their_sum_fits(mpi_programs, tmp_path, free, fits):
    '''Boxes of 32^3 cells: one process has 14.3 MB, each of two 7.7 MB.  So the first one has 22.0 MB, more than half of 40, both 29.8 MB.'''
    output_of('cc', '-shared', '-fPIC', '-o', tmp_path / 'memory.so', rfm.REPOSITORY / 'tests/interpose/hybrid.c')
    (tmp_path / '.proc.meminfo').write_text(f'MemAvailable: {free}000 kB\n')
    found = mpi_programs('openmpi').run(2, 'lbm-slabs', '--size', '32', '--working', '1,2', *map(str, QUICK),
                                        LD_PRELOAD=str(tmp_path / 'memory.so'), HYBRID=f'{tmp_path}/')
    assert (found.code == 0, len(found.measurements)) == (fits, 2 * fits)
    assert fits or '--size 32: needs 0.0 GB in all, of 0.0 GB that are free' in found.errors


# --- checks ------------------------------------------------------------------------------------------------------------------

def test_check_of_memory(measuring, programs, tmp_path):
    place = measuring(tmp_path / 'place')
    done = place.reframe(*rfm.small(), '-S', 'lbm_memory.source_edge=40', '-n', 'lbm_memory%threads=one', checks=CHECKS / 'lbm_memory.py')
    (found, left), variants = rfm.measured_of(done, 'lbm_memory'), programs.runnable('lbm')
    assert set(found) == {f'{metric}.{v}.{size}' for metric in ('of_limit', 'of_parts', 'figure_of_merit') for v in variants
                          for size in ('memory', 'source')} | {'split_over_fused.memory', 'split_over_fused.source'}
    assert rfm.judged_on_day_one(found) == {
        f'{metric}.{v}.{size}' for v in variants for size in ('memory', 'source') for metric in ('of_limit', *['of_parts'] * (v == 'nt'))}
    record = next(r for r in left['records'] if (r['variant'], r['size'], r['role']) == ('fused', 40, 'kernel'))
    assert found['figure_of_merit.fused.source']['value'] == pytest.approx(np.median(40**3 * record['passes'] / 1e6 / np.array(record['seconds'])))
    large, = {r['size'] for r in left['records'] if r['role'] == 'kernel'} - {40}
    assert large % 8 == 0 and 304 * large**3 <= 2 * rfm.LAST_LEVEL + 2**20 < 304 * (large + 8)**3


@two_cpus
@pytest.mark.parametrize('studies, size', [('triad_weak|lbm_strong|lbm_weak|cg_strong', '--class S'), ('sp_strong|md_strong', '--size 8')])
def test_check_of_scaling(measuring_mpi, tmp_path, studies, size):
    place = measuring_mpi(tmp_path / 'place', 'openmpi')
    output_of('cc', '-shared', '-fPIC', '-o', tmp_path / 'hybrid.so', rfm.REPOSITORY / 'tests/interpose/hybrid.c')
    (tmp_path / '.sys.devices.cpu_core.cpus').write_text(f'{CPUS[0]}\n')
    options = ['-r', '-p', 'gnu-openmpi', '--exec-policy=serial', *itertools.chain(*(('-S', f'app_scaling.{given}') for given in (
        'samples=10', 'processes=1', 'memory_bytes=4194304', 'edge=16', 'each=4', f'size={size}')))]
    cases = place.reframe(*options, '-n', f'app_scaling.*study=({studies})', checks=CHECKS / 'app_scaling.py',
                          LD_PRELOAD=str(tmp_path / 'hybrid.so'), HYBRID=f'{tmp_path}/').cases()
    for study in studies.split('|'):
        assert_scaling(study, {name: case for name, case in cases.items() if f'study={study}' in name})


def assert_scaling(study, cases):
    node, = (case for name, case in cases.items() if not name.partition('over=nodes')[1])
    rfm.assert_measured(node)
    found, records = rfm.metrics_of(node), node['plumbline']['records']
    counts = sorted({record['options']['working'] for record in records})
    assert counts[0] == 1 and counts[-1] in (len(CPUS), 1 << len(CPUS).bit_length() - 1)
    measured = ('flops',) if study == 'triad_weak' else ('flops', 'communication')
    assert set(found) == {f'{metric}.{count}' for metric in measured for count in counts} | {
        f'efficiency.{"all" if count == len(CPUS) else count}' for count in counts[1:]}
    assert {of['unjudged'] for name, of in found.items() if name.startswith('efficiency')} == {'the cores are of 2 kinds'}
    if study == 'triad_weak':
        assert {record['bytes'] / record['passes'] / record['size'] for record in records} == {32 * count for count in counts}
    else:
        assert found['communication.1']['value'] < found[f'communication.{counts[-1]}']['value'] < 1
    assert len({record['group'] for record in records}) == 1        # by turns
    if study.startswith('lbm'):
        planes = {record['options']['working']: record['options']['planes-used'] for record in records}
        assert planes == {count: 4 * count if study == 'lbm_weak' else 16 for count in counts}
    nodes, = (case for name, case in cases.items() if name.partition('over=nodes')[1])
    assert 'is local, this node alone' in nodes['plumbline']['skipped'][0]['reason']


@pytest.mark.parametrize('told, memory, expected', [(2**28, 2**40, 2**30), (2**32, 2**40, 2**32), (2**28, 2**32, 2**29)])
def test_arrays_outgrow_the_cache_that_a_hypervisor_does_not_tell(told, memory, expected):
    check = runpy.run_path(str(CHECKS / 'app_scaling.py'))['app_scaling']
    case = SimpleNamespace(counts=lambda: [1, 2], application='triad', all_cpus=[0, 1], memory_bytes=0, memory=memory,
                           working_set=lambda level, cpus: told)
    assert check.options(case)[1] == expected // 32


@pytest.mark.parametrize('edge, sizes', [(120, '120,128'), (128, '136,128')])
def test_a_box_for_memory_is_not_the_sources(edge, sizes):
    check = runpy.run_path(str(CHECKS / 'lbm_memory.py'))['lbm_memory']
    case = SimpleNamespace(elements=lambda level, cell: edge**3, intended={}, source_edge=128, memory=None, cpus=[0], skip_metric=lambda *of: said.extend(of[2]))
    said = []
    assert check.options(case)[3] == sizes and [*case.sizes.values()] == ['memory', 'source']
    case.memory = 2**30
    assert check.options(case)[3] == sizes.split(',')[0] and said == ['source']      # by which references of it are known


@pytest.mark.parametrize('kind, edge, cores, counts, memory, needed', [
    ('strong', 1024, 2, [1, 2], 2**40, '608 GiB'), ('weak', 128, 192, [192 * 2**i for i in range(8)], 2**38, '228 GiB')])
def test_boxes_that_are_too_large_are_not_measured(kind, edge, cores, counts, memory, needed):
    '''Of 128 nodes the first holds planes of eight boxes, the last of one.'''
    def skip_test(reason):
        raise SkipTestError(reason)
    case = SimpleNamespace(counts=lambda: counts, application='lbm', kind=kind, edge=edge, each=32, all_cpus=range(cores), memory=memory, skip_test=skip_test)
    with pytest.raises(SkipTestError, match=f'boxes for .* take {needed} of the first node, more than a quarter of its memory'):
        runpy.run_path(str(CHECKS / 'app_scaling.py'))['app_scaling'].options(case)


@pytest.mark.parametrize('program, few', [('cg', '--class S'), ('sp', '--size 8'), ('triad-ranks', '--size 1001')])
def test_some_of_the_processes_work_by_turns(mpi_programs, program, few):
    found = mpi_programs('openmpi').measured(3, program, *few.split(), '--working', '1,2', *map(str, MEASURED)).measurements
    assert [(r['options']['working'], r['group'], r['ranks'], r['valid']) for r in found] == [(1, 0, 3, True), (2, 0, 3, True)]
    if program == 'triad-ranks':
        assert [record['bytes'] for record in found] == [32 * 1001, 2 * 32 * 1001]
    else:
        assert sum(found[0]['communication']) < sum(found[1]['communication']) and found[0]['flops'] == found[1]['flops']


@pytest.mark.parametrize('study, size, most', [
    ('md_strong', '--size 32', 4096), ('cg_strong', '--class A', 8192), ('sp_strong', '--size 64', 32768), ('lbm_strong', '', 128)])
def test_no_more_ranks_than_a_problem_is_cut_for(study, size, most):
    case = SimpleNamespace(study=study, application=study.partition('_')[0], all_cpus=range(128), cpus=range(512 * 128), edge=128, over='nodes', nodes=512,
                           size=size)
    assert max(runpy.run_path(str(CHECKS / 'app_scaling.py'))['app_scaling'].counts(case)) == most
