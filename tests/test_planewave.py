'''Plane waves: the same numbers by our loops and the libraries, awkward sizes, the model, the check.'''

import math
import re

import pytest

import rfm
from mpi_native import any_mpi
from native import QUICK, THREADS, listed
from plumbline.model.records import pooled


@pytest.fixture(autouse=True)
def blas_without_threads(monkeypatch):
    monkeypatch.setenv('OPENBLAS_NUM_THREADS', '1')


@pytest.mark.parametrize('options', [['--size', '4,5,7,12', '--bands', '1,2,5,32'], ['--size', 6, '--init', 'noinit'], ['--size', 8, '--pages', 'base']],
                         ids=lambda options: ' '.join(map(str, options)))
def test_every_variant_is_right(build, options):
    found = build.measured('planewave', '--variants', 'all', '--threads', listed(THREADS), *options, *QUICK).measurements
    assert {record['variant'] for record in found} == build.runnable('planewave')
    assert all(record['valid'] and record['max_error'] < record['tolerance'] < 1e-12 for record in found)
    plans = '[0-9a-f]{8}' if 'whole' in build.runnable('planewave') else 'none'
    assert all(re.fullmatch(plans, record['options']['plans']) for record in found)


def test_processes_with_other_plans_have_the_same_cases(programs):
    one, = programs.measured('planewave', '--size', 4, '--variants', 'plain', *QUICK).measurements
    joined, = pooled([{**one, 'process': process, 'options': {**one['options'], 'plans': plans}} for process, plans in enumerate(['1', '2'])])
    assert joined['seconds'] == 2 * one['seconds']


def test_work_by_the_model(programs):
    '''Of 3 bands of 8^3 = 2^9 points: two transforms of 5 N log2 N and the Laplacian's 2 N, and 9 products of 8 N.'''
    build = programs
    found = {r['variant']: r['flops'] for r in build.measured('planewave', '--variants', 'all', '--size', 8, '--bands', 3, *QUICK).measurements}
    right = {'fft': 3 * (2 * 5 * 512 * 9 + 2 * 512), 'product': 9 * 8 * 512}
    right |= dict.fromkeys(('plain', 'whole'), sum(right.values()))
    assert found == {variant: right[variant] for variant in found}


@pytest.mark.parametrize('options, told', [(['--size', 3], '--size 3: points along an edge of the grid: give from 4 to 256'),
                                           (['--size', 4, '--bands', 33],
                                            '--bands 33: a grid of 4 points along an edge has waves for 32: give fewer, or a larger size')])
def test_bad_input_is_refused_by_one_line(programs, options, told):
    found = programs.run('planewave', *options)
    assert (found.code, found.text, found.errors) == (2, '', f'plumbline: {told}\n')


@pytest.fixture
def run(measuring, tmp_path):
    def once(**environment):
        place = measuring(tmp_path / 'place', **environment)
        case, = place.reframe(*rfm.small(), '-S', 'planewave_bands.points=8', '-n', 'planewave_bands.*one',
                              checks=rfm.REPOSITORY / 'checks/apps/planewave_bands.py').cases().values()
        rfm.assert_measured(case)
        return case['plumbline']
    return once


def test_parts_of_the_whole_are_told(run, programs):
    left = run()
    found = {metric['name']: metric for metric in left['metrics']}
    if 'whole' not in programs.runnable('planewave'):
        assert {entry['metric'] for entry in left['skipped']} >= {'flops.whole', 'of_parts.whole'}
        assert all('built without FFTW' in entry['reason'] for entry in left['skipped'])
        return
    assert set(found) == {*(f'flops.{v}' for v in ('plain', 'whole', 'fft', 'product')), 'of_parts.whole', 'speedup.whole'}
    seconds = {r['variant']: [s / r['passes'] for s in r['seconds']] for r in left['records']}
    assert found['of_parts.whole']['samples'] == pytest.approx(
        [(fft + product) / whole for fft, product, whole in zip(seconds['fft'], seconds['product'], seconds['whole'])])
    assert 'of_parts.whole' in rfm.judged_on_day_one(found) and math.isfinite(found['speedup.whole']['value'])


# --- several processes ------------------------------------------------------------------------------------------------------------

@pytest.fixture
def kernel(mpi_programs):
    return mpi_programs(any_mpi())


@pytest.mark.parametrize('ranks, size', [(1, 5), (2, 9), (3, 8), (5, 5)])
def test_slabs_have_the_laplacians_and_products_of_the_waves(kernel, ranks, size):
    '''Of each band an exchange there and back with every other rank, of whole complex numbers: a rank's planes of all others' rows.'''
    found = kernel.measured(ranks, 'planewave', '--variants', 'all', '--size', size, '--bands', 4, *QUICK).measurements
    planes = [size // ranks + (rank < size % ranks) for rank in range(ranks)]
    sent = sum(4 * 2 * 16 * size * own * (size - own) for own in planes) / ranks
    for record in found:
        assert record['valid'] and record['max_error'] < record['tolerance'] < 1e-12
        assert (record['options']['messages'], record['options']['message_bytes']) == (8 * (ranks - 1), pytest.approx(sent))


def test_more_ranks_than_planes_are_refused(kernel):
    found = kernel.run(5, 'planewave', '--size', 4)
    assert found.code != 0 and not found.measurements
    told = 'plumbline: --size 4: 5 processes share out as many planes of the grid: give a larger size or fewer processes'
    assert [line for line in found.errors.splitlines() if 'plumbline' in line] == [told]
