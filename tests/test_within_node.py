'''Parts of a node against their fellows: the slow one is named, though nobody has a reference for its speed.'''

import runpy
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import rfm
from native import CPUS, two_cpus
from plumbline.model import uncertainty
from plumbline.model.result import Result
from plumbline.system import topology

CHECK = rfm.REPOSITORY / 'checks/memory/within_node.py'
BUSY = "import os\nos.sched_setaffinity(0, {%d})\nprint('running', flush=True)\nwhile True: pass"


def processor(numa=('0x3', '0xc'), caches=('0x3', '0xc')):
    return {'topology': {'cores': ['0x1', '0x2', '0x4', '0x8'], 'sockets': ['0xf'], 'numa_nodes': list(numa),
                         'caches': [{'type': 'L3', 'size': 2**20, 'cpusets': list(caches)}]}}


@pytest.mark.parametrize('kind, cpus, parts', [
    ('cores', [0, 1, 3], [[0], [1], [3]]), ('numa_domains', [0, 1, 2, 3], [[0, 1], [2, 3]]), ('caches', [0, 1, 2], [[0, 1]]),
    ('numa_domains', [0, 1], [[0, 1]]), ('sockets', [0, 1, 2, 3], [[0, 1, 2, 3]]), ('numa_domains', [], [])])
def test_parts_have_as_many_cpus(kind, cpus, parts):
    assert topology.parts(processor(), kind, cpus) == parts


def test_each_is_compared_with_the_others():
    '''Of two the other one; 70 against the median of 100, 101 and 98.'''
    assert (np.array([70.0, 100.0]) / uncertainty.median_of_others([70.0, 100.0])).tolist() == [0.7, 100 / 70]
    assert 70 / uncertainty.median_of_others([70.0, 100.0, 101.0, 98.0])[0] == 0.7


@pytest.mark.parametrize('kinds, shares', [
    ([], [2.0, 2.0, 0.25, 0.5]), ([[0, 1], [2, 3]], [1.0, 1.0, 0.5, 2.0]), ([[0, 1, 2], [3]], [1.6, 1.6, 0.25, np.nan])])
def test_slow_cores_of_another_kind_are_no_outliers(kinds, shares):
    check = runpy.run_path(str(CHECK))['within_node']
    case = SimpleNamespace(plumbline=Result(machine={'core_kinds': kinds}), parts=[[0], [1], [2], [3]])
    np.testing.assert_allclose(check.of_fellows(case, np.array([100.0, 100.0, 25.0, 50.0])), shares)


@pytest.fixture
def apart(programs, built_already, tmp_path):
    '''A workplace on a machine whose every CPU is said to be a NUMA domain.'''
    return rfm.Workplace(tmp_path, built_already, CANNED_PROGRAMS=programs.folder / 'bin', CANNED_DOMAINS='yes')


@two_cpus
@pytest.mark.alone
def test_the_slow_domain_is_named(apart):
    cpu = CPUS[-1]
    for _ in range(3):      # three processes may scatter by so much that they say nothing
        with subprocess.Popen([sys.executable, '-c', BUSY % cpu], stdout=subprocess.PIPE) as busy:
            busy.stdout.readline()
            try:
                done = apart.reframe('-n', 'numa_domains', *rfm.small(), checks=CHECK)
            finally:
                busy.kill()
        case, = done.cases().values()
        rfm.assert_measured(case)
        worst, bandwidth = case['plumbline']['metrics']
        if worst['verdict'] != 'UNSTABLE':
            break
    assert worst['name'] == 'of_median.memory' and worst['value'] < 0.8 and worst['verdict'] == 'FAIL', worst
    assert f'the slowest has CPU {cpu}' in worst['reason']
    assert bandwidth['name'] == 'bandwidth.memory' and bandwidth['value'] > 100
    records = case['plumbline']['records']
    assert {tuple(record['cpus']) for record in records} == {(cpu,) for cpu in CPUS}
    assert {record['process'] for record in records} == {0, 1, 2}


def test_of_one_there_is_nothing_to_compare(programs, built_already, tmp_path):
    place = rfm.Workplace(tmp_path, built_already, CANNED_PROGRAMS=programs.folder / 'bin')
    for case in place.reframe('-n', 'numa_domains|caches', *rfm.small(), checks=CHECK).cases().values():
        assert case['result'] == 'skip'
        assert 'cannot be compared: 2 at least' in case['plumbline']['skipped'][0]['reason']
