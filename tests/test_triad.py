'''The triad's checks, in a small run of the real thing.'''

import os
import runpy
from types import SimpleNamespace

import pytest

import rfm
from native import needs, x86_only
from test_topology import two_sockets

CHECKS = rfm.REPOSITORY / 'checks/memory'
NAMES = ['allocation', 'alignment', 'firsttouch', 'openmp', 'preload%threads=one', 'simd']


@pytest.fixture(scope='module')
def cases(measuring, tmp_path_factory):
    needs('gfortran')
    done = measuring(tmp_path_factory.mktemp('triad')).reframe(*rfm.small(), '-S', 'points=3', '-n', f"^triad_({'|'.join(NAMES)})", '-p', '^gnu$', checks=CHECKS)
    found = {name.split(' /')[0]: case for name, case in done.cases().items()}
    for case in found.values():
        rfm.assert_measured(case)
    return found


def values(case):
    return {metric['name']: metric['value'] for metric in case['plumbline']['metrics']}


@x86_only
def test_every_check_measures_what_its_figure_shows(cases):
    threads = len(os.sched_getaffinity(0))
    assert {name.replace(' ', '').removeprefix('triad_') for name in cases} == set(NAMES)
    found = {name: values(case) for name, case in cases.items()}
    assert {'speedup.plain.L1', 'speedup.simd.L1', 'bandwidth.novec.L1'} <= set(found['triad_simd'])
    assert {'speedup.static.L1', 'speedup.dynamic.L1', 'speedup.allocate.L1', 'bandwidth.malloc.L1'} <= set(found['triad_allocation'])
    assert {'speedup.malloc', 'speedup.shift32', 'of_limit.malloc'} <= set(found['triad_alignment'])
    assert {'speedup.preload.L1', 'speedup.preload_c.L1', 'speedup.preload_fortran.L1'} <= set(found['triad_preload %threads=one'])
    assert {'speedup.noinit', 'of_limit.parinit'} | ({'speedup.noinit.1'} if threads > 1 else set()) <= set(found['triad_firsttouch'])
    openmp = found['triad_openmp']
    assert {'latency.region.1', 'speedup.openmp.1.L1', 'speedup.openmp.1.memory'} <= set(openmp)
    # A region takes a call of the runtime at least, and a loop of ten elements no longer than a scheduler's slice.
    assert 0.001 < openmp['latency.region.1'] < 10000


def test_the_curves_are_told(cases):
    def notes(name):
        return ' '.join(cases[name]['plumbline']['notes'])
    assert 'static over malloc along N: from' in notes('triad_allocation')
    assert 'malloc along 4 lengths' in notes('triad_alignment')
    assert 'opens parallel regions itself: OpenMP binds the threads' in notes('triad_openmp')


@pytest.mark.parametrize('memory, counts', [(None, [1, 2, 4, 8, 16]), (64 * 2**30, [1, 2, 4, 8, 16]), (10 * 2**30, [1, 2, 4, 16])])
def test_the_working_sets_of_first_touch_fit_the_memory_of_the_job(memory, counts):
    '''Four NUMA domains of four cores: 8 and 16 threads have arrays, and limit streams, of their own.'''
    left_out = []
    case = SimpleNamespace(memory=memory, all_cpus=range(16), current_partition=SimpleNamespace(processor=two_sockets()),
                           skip_metric=lambda *told: left_out.extend(told[2]))
    found = runpy.run_path(str(CHECKS / 'triad_firsttouch.py'))['triad_firsttouch'].counts_that_fit(case, 2**30 * 5 // 4)
    assert found == counts and left_out == [str(n) for n in (1, 2, 4, 8, 16) if n not in counts]
