'''The parts of a kernel's time, by the real programs: which traffic it has, the streams of it, its work in the core.'''

import pytest

from native import two_cpus
from plumbline.model import limits

QUICK = ['--samples', 10, '--min-time', 0.001, '--probes', 'off']


def parts_of(record):
    '''Bytes of traffic of a pass.'''
    return {name: bytes / record['passes'] for name, bytes in record['parts'].items()}


def cores(found):
    return [record for record in found.measurements if record['role'] == 'core']


@pytest.mark.parametrize('program, variant, expected', [
    ('triad', 'plain', {'load': 24, 'fill': 16}), ('triad', 'nt', {'load': 24, 'fill_nt': 8}),
    ('motion', 'load', {'load': 8}), ('motion', 'fill', {'fill': 16}), ('motion', 'update', {'update': 16})])
def test_parts_by_hand(programs, program, variant, expected):
    n = 2**17       # beyond L1, where a store that misses loads its line first
    if variant not in programs.runnable(program):
        pytest.skip(f'no {variant} on this CPU')
    record, = programs.measured(program, '--variants', variant, '--size', n, '--threads', 1, *QUICK).kernels()
    assert parts_of(record) == {name: bytes * n for name, bytes in expected.items()}
    assert sum(record['parts'].values()) == record['traffic']


def test_the_streams_that_a_kernel_consists_of_run_beside_it(programs):
    found = programs.measured('triad', '--variants', 'plain,novec', '--size', 2**19, '--threads', 1, '--limit', *QUICK)
    pure = {part for stream in found.limits() for part in stream['parts'] if len(stream['parts']) == 1}
    assert pure >= {'load', 'fill'}
    assert len(found.limits()) <= 3         # and what is fastest of all, but no more
    assert all((paired.of_parts > 0).all() for paired in limits.of_limit(found.measurements).values())


def test_the_part_in_the_core_is_the_same_loop_on_a_part_of_the_data(programs):
    found = programs.measured('jacobi', '--variants', 'plain', '--size', 210, '--threads', 1, '--limit', *QUICK)
    kernel, = found.kernels()
    core, = cores(found)
    assert core['variant'] == 'plain' and core['group'] == kernel['group'] and core['valid']
    assert core['working_set'] < kernel['working_set'] / 16 and core['level'] in ('L1', 'L2')
    fewer = kernel['bytes'] / kernel['passes'] / (core['bytes'] / core['passes'])
    assert fewer == pytest.approx(kernel['working_set'] / core['working_set'], rel=0.01)
    # A pass of it takes less than one of the whole by about as much.
    whole, part = (min(record['seconds']) / record['passes'] for record in (kernel, core))
    assert part < whole / fewer * 4 and part > whole / fewer / 40
    without = [record for record in found.measurements if record['role'] != 'core']
    more, less = (limits.of_limit(records)['plain'].of_parts for records in (found.measurements, without))
    assert (more > less).all()


@pytest.mark.parametrize('threads', [1, pytest.param(2, marks=two_cpus)])
def test_a_core_says_the_work_that_it_did(programs, threads):
    '''Two whole rows of the lattice for each thread: a quarter of the cache, 64 KiB, would have 2.8 of 56 cells.'''
    found = programs.measured('lbm', '--variants', 'fused', '--size', 56, '--threads', threads, '--capacity', 'L2=262144', '--limit', *QUICK)
    kernel, = found.kernels()
    core, = cores(found)
    rows = core['bytes'] / core['passes'] / (304 * 56)
    assert rows == pytest.approx(2 * threads, abs=1e-4)
    assert core['working_set'] / kernel['working_set'] == pytest.approx(rows / 56**2, rel=1e-3)
    for what in ('flops', 'traffic'):
        assert core[what] / core['bytes'] == pytest.approx(kernel[what] / kernel['bytes'], rel=1e-3)


@pytest.mark.parametrize('program, size', [('jacobi', 210), ('fdtd', 129)])
def test_the_traffic_of_a_core_is_that_of_its_rows(programs, program, size):
    '''From memory each point comes once; where less stays in the cache below, no less.'''
    found = programs.measured(program, '--size', size, '--threads', 1, '--limit', '--capacity', 'L2=262144', *QUICK)
    kernel, = found.kernels()
    core, = cores(found)
    assert core['parts']['load'] / core['bytes'] >= 0.99 * kernel['parts']['load'] / kernel['bytes']


def test_the_core_of_a_matrix_whose_first_row_is_long(programs, tmp_path):
    '''It has as many nonzeros as 2000 others, and is among those of the core; a row counts as two more.'''
    rows, of_a_row = 20000, 10
    with open(tmp_path / 'matrix.mtx', 'w') as stream:
        stream.write(f'%%MatrixMarket matrix coordinate real general\n{rows} {rows} {rows + of_a_row * (rows - 1)}\n')
        stream.writelines(f'1 {j + 1} 1\n' for j in range(rows))
        stream.writelines(f'{i + 1} {(i + 1999 * j) % rows + 1} 1\n' for i in range(1, rows) for j in range(of_a_row))
    found = programs.measured('spmv', '--matrix', tmp_path / 'matrix.mtx', '--variants', 'plain', '--limit', '--capacity', 'L2=262144', *QUICK)
    core, = cores(found)
    assert 0.8 * 2 * rows < core['flops'] / core['passes'] < 1.5 * 2 * rows


@two_cpus
def test_data_in_cache_have_no_part_in_the_core(programs):
    found = programs.measured('jacobi', '--variants', 'plain', '--size', 34, '--threads', '1,2', '--limit', *QUICK)
    assert {record['role'] for record in found.measurements} == {'kernel', 'limit'}
