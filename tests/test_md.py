'''Molecular dynamics: the same motion by every variant and number of threads, its physics, the model, the check.'''

import runpy
from types import SimpleNamespace

import pytest
from reframe.core.exceptions import SkipTestError

import rfm
from mpi_native import any_mpi
from native import CPUS, QUICK, THREADS, listed, refused


@pytest.mark.parametrize('flavour, sizes', [('programs', '4,5,9'), ('sanitized', '4,5')])
def test_every_variant_is_right(request, flavour, sizes):
    build = request.getfixturevalue(flavour)
    found = build.measured('md', '--variants', 'all', '--size', sizes, '--threads', listed(THREADS), *QUICK).kernels()
    assert {record['variant'] for record in found} == build.runnable('md')
    assert {record['size'] for record in found} == {4 * int(edge)**3 for edge in sizes.split(',')}
    assert all(record['valid'] and record['max_error'] < 1 for record in found)


def test_first_touch_by_one_thread_is_right(programs):
    found = programs.measured('md', '--variants', 'all', '--size', 5, '--threads', listed(THREADS), '--init', 'noinit', *QUICK).measurements
    found += programs.measured('md-serial', '--variants', 'all', '--size', 5, *QUICK).measurements
    assert all(record['valid'] for record in found)
    assert len({record['options']['energy'] for record in found}) == 1      # the sums are in one order, whoever makes them


def test_it_is_the_liquid_that_is_known(programs):
    '''The crystal's energy is that of its shells, and of the temperature 1.44; what has melted since has kept it.

    An atom of a face-centred cubic crystal has 12, 6, 24 and 12 others at distances of sqrt(1 .. 4) times the nearest; 4 (r^-12 - r^-6), less what it
    is at the cutoff of 2.5.
    '''
    nearest = (4 / 0.8442)**(1 / 3) / 2**0.5

    def pair(r):
        return 4 * (r**-12 - r**-6)
    shells = sum(count * (pair(nearest * n**0.5) - pair(2.5)) for n, count in ((1, 12), (2, 6), (3, 24), (4, 12))) / 2
    record, = programs.measured('md', '--size', 10, *QUICK).measurements
    assert record['options']['energy'] == pytest.approx(shells + 1.5 * 1.44, abs=1e-3)
    assert abs(record['options']['energy_drift']) < 1e-4


def test_work_by_the_model(programs):
    '''21 evaluations of the forces (20 steps, and one before); of an atom 86.24 neighbours in the list, 55.25 of them nearer than the cutoff.

    A distance squared: 3 differences, 3 products, 2 sums.  A force over its distance: 1 division, 5 products, 1 difference; its sum: 3 and 3.
    '''
    record, = programs.measured('md', '--size', 6, *QUICK).measurements
    assert record['flops'] == pytest.approx(21 * 864 * (8 * 86.24 + 13 * 55.25), rel=1e-3)


@pytest.mark.parametrize('size', ['3', '401'])
def test_sizes_that_cannot_be_are_refused(programs, size):
    refused(programs.run('md', '--size', size), f'plumbline: --size {size}: cells of the crystal')


@pytest.fixture(scope='module')
def run(measuring, tmp_path_factory):
    place = measuring(tmp_path_factory.mktemp('run'))
    case, = place.reframe(*rfm.small(), '-S', 'md_liquid.cells=8', '-n', 'md_liquid.*one', checks=rfm.REPOSITORY / 'checks/apps/md_liquid.py').cases().values()
    rfm.assert_measured(case)
    return case['plumbline']


def test_check_counts_steps_of_atoms(run, programs):
    found = {metric['name']: metric for metric in run['metrics']}
    assert set(found) >= {f'figure_of_merit.{variant}' for variant in programs.runnable('md')}
    record = next(r for r in run['records'] if r['variant'] == 'full' and r['role'] == 'kernel')
    assert record['size'] == 4 * 8**3
    assert found['figure_of_merit.full']['samples'] == pytest.approx([20 * record['size'] * record['passes'] / s for s in record['seconds']])
    has_core = any(record['role'] == 'core' and record['variant'] == 'simd' for record in run['records'])
    assert ('of_parts.simd' in {entry['metric'] for entry in run.get('skipped', ())}) != has_core


# --- several processes ------------------------------------------------------------------------------------------------------------

@pytest.fixture
def kernel(mpi_programs):
    return mpi_programs(any_mpi())


@pytest.mark.parametrize('ranks, size, grid', [(1, 6, '1x1x1'), (2, 6, '2x1x1'), (3, 6, '3x1x1'), (8, 6, '2x2x2'), (6, 9, '3x2x1')])
def test_motion_is_that_of_one_process(kernel, ranks, size, grid):
    '''Up to 1000 atoms the program compares every place with the motion by sums over all pairs; energy, forces and the number of atoms
    of all sizes.  Two processes in a row are both neighbours of each other, three are not; atoms go from one to another.'''
    found = kernel.measured(ranks, 'md', '--variants', 'all', '--size', size, *QUICK).measurements
    assert {record['options']['grid'] for record in found} == {grid}
    assert all(record['valid'] and record['max_error'] < 1 and record['size'] == 4 * size**3 for record in found)
    assert all((record['options']['migrated'] > 0) == (record['options']['messages'] > 0) == (ranks > 1) for record in found)


def test_the_first_processes_work_by_turns(kernel):
    '''A process that waits has no atoms; the share of communication is of those that work.'''
    found = kernel.measured(3, 'md', '--size', 6, '--working', '1,2,3', *QUICK).measurements
    assert [(record['options']['working'], record['options']['grid']) for record in found] == [(1, '1x1x1'), (2, '2x1x1'), (3, '3x1x1')]
    assert all(record['valid'] and record['size'] == 4 * 6**3 for record in found)
    shares = [sum(record['communication']) / sum(record['seconds']) for record in found]
    assert shares[0] == 0 and 0 < shares[1] < 1 and 0 < shares[2] < 1
    found = kernel.run(3, 'md', '--size', 4)
    assert found.code != 0 and not found.measurements
    told = 'plumbline: --size 4: on 3 x 1 x 1 processes a part of the box is 2.2 wide, and forces reach 2.9: give a larger size or fewer processes'
    assert [line for line in found.errors.splitlines() if 'plumbline' in line] == [told]


def test_checks_of_ranks_tell_the_share_of_communication(measuring_mpi, tmp_path):
    '''Of molecular dynamics and of plane waves.'''
    done = measuring_mpi(tmp_path, any_mpi()).reframe(*rfm.small(), '-S', 'md_ranks.cells=6', '-S', 'planewave_ranks.points=8', '-p', f'gnu-{any_mpi()}',
                                                      '-n', 'md_ranks|planewave_ranks', checks=rfm.REPOSITORY / 'checks/apps')
    cases = done.cases()
    for name, communication, rate in (('md_ranks', 'communication.full', 'figure_of_merit.full'), ('planewave_ranks', 'communication.plain', 'flops.plain')):
        if len(CPUS) < 2:
            assert cases[name]['result'] == 'skip' and 'one CPU' in cases[name]['fail_reason']
            continue
        rfm.assert_measured(cases[name])
        found = {metric['name']: metric['value'] for metric in cases[name]['plumbline']['metrics']}
        assert 0 < found[communication] < 1 and found[rate] > 0
        assert cases[name]['plumbline']['ranks'] == len(CPUS)


@pytest.mark.parametrize('ranks, edge, cells', [(2, 2, 20), (48, 4, 20), (52, 13, 24), (128, 8, 20), (172, 43, 76), (37, 37, 65), (432, 12, 22)])
def test_the_box_is_as_wide_as_the_grid_of_processes_needs(ranks, edge, cells):
    found = runpy.run_path(str(rfm.REPOSITORY / 'checks/apps/md_ranks.py'))
    check = SimpleNamespace(cpus=range(ranks), cells=20, note=lambda text: None)
    assert found['longest_edge'](ranks) == edge and found['md_ranks'].options(check)[-1] == cells and cells * 1.68 / edge > 2.9


def test_so_many_processes_in_a_row_are_not_measured():
    def skip_test(reason, **_):
        raise SkipTestError(reason)
    check = SimpleNamespace(cpus=range(127), cells=20, skip_test=skip_test)
    with pytest.raises(SkipTestError, match='127 processes make a grid with 127 in a row'):
        runpy.run_path(str(rfm.REPOSITORY / 'checks/apps/md_ranks.py'))['md_ranks'].options(check)


@pytest.mark.parametrize('cpus, nodes, ranks', [(2, 1, 'all'), (256, 1, 'all'), (384, 1, 256), (192, 2, 128)])
def test_a_grid_has_a_plane_for_each_of_its_processes(cpus, nodes, ranks):
    check = SimpleNamespace(all_cpus=range(cpus), cpus=range(cpus * nodes), nodes=nodes, ranks='all', note=lambda text: None)
    runpy.run_path(str(rfm.REPOSITORY / 'checks/apps/planewave_ranks.py'))['planewave_ranks'].leave_cpus_out(check)
    assert check.ranks == ranks
