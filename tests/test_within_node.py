'''Parts of a node against their fellows: the slow one is named, though nobody has a reference for its speed.'''

import contextlib
import functools
import runpy
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from reframe.core.exceptions import SkipTestError

import rfm
from made_report import measurement
from native import CPUS, two_cpus
from plumbline import references
from plumbline.model import uncertainty
from plumbline.model.result import Result
from plumbline.rfm import evaluation
from plumbline.system import topology

CHECK = rfm.REPOSITORY / 'checks/memory/within_node.py'
#: Takes two thirds of a CPU, a millisecond at a time: slices as long as a sample would leave the median of samples what it is.
BUSY = '''import os, time
os.sched_setaffinity(0, {%d})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print('running', flush=True)
while True:
    end = time.perf_counter() + 0.001
    while time.perf_counter() < end: pass
    time.sleep(0.0005)'''


def processor(numa=('0x3', '0xc'), caches=('0x3', '0xc')):
    return {'topology': {'cores': ['0x1', '0x2', '0x4', '0x8'], 'sockets': ['0xf'], 'numa_nodes': list(numa),
                         'caches': [{'type': 'L3', 'size': 2**20, 'cpusets': list(caches)}]}}


@pytest.mark.parametrize('kind, cpus, parts', [
    ('cores', [0, 1, 3], [[0], [1], [3]]), ('numa_domains', [0, 1, 2, 3], [[0, 1], [2, 3]]), ('caches', [0, 1, 2], [[0], [2]]),
    ('numa_domains', [0, 1], [[0, 1]]), ('sockets', [0, 1, 2, 3], [[0, 1, 2, 3]]), ('numa_domains', [], [])])
def test_parts_have_as_many_cpus(kind, cpus, parts):
    assert topology.parts(processor(), kind, cpus) == (parts, [])


@pytest.mark.parametrize('ours, domains, sockets', [
    # CPU 0 is the system's: nothing is left out.
    (range(1, 16), ([[1], [2], [4], [6], [8], [10], [12], [14]], []), ([[1, 2, 4, 6], [8, 10, 12, 14]], [])),
    # A job of 13 CPUs: its second socket has three of the four domains, which move less.
    (range(13), ([[0], [2], [4], [6], [8], [10], [12]], []), ([[0, 1, 2, 3, 4, 5, 6, 7]], [[8, 9, 10, 11, 12]]))])
def test_parts_with_a_cpu_less_are_compared(ours, domains, sockets):
    '''Two sockets, each of four domains of two CPUs.'''
    def groups(size):
        return [hex((2**size - 1) << begin) for begin in range(0, 16, size)]
    node = {'topology': {'cores': groups(1), 'sockets': groups(8), 'numa_nodes': groups(2), 'caches': []}}
    assert topology.parts(node, 'numa_domains', ours) == domains
    assert topology.parts(node, 'sockets', ours) == sockets


def test_parts_with_less_than_half_of_the_cpus_of_another_are_left_out():
    assert topology.parts(processor(numa=('0x7', '0x8')), 'numa_domains', range(4)) == ([[0, 1, 2]], [[3]])


def test_sockets_of_one_core_are_compared_as_cores():
    each, said = ['0x1', '0x2', '0x4', '0x8'], []
    info = processor(numa=['0xf'], caches=each)
    info['topology']['sockets'] = each

    def skip_test(reason, metric):
        said.append(reason)
        raise SkipTestError
    check = runpy.run_path(str(CHECK))['within_node']
    for of in ('cores', 'caches', 'sockets'):
        case = SimpleNamespace(of=of, current_partition=SimpleNamespace(processor=info), all_cpus=range(4), rounds=3, skip_test=skip_test)
        with contextlib.nullcontext() if of == 'cores' else pytest.raises(SkipTestError):
            check.choose_parts(case)
    assert said == ['each socket has one core: of=cores compares those'] * 2
    info['topology']['sockets'] = ['0xf']
    case = SimpleNamespace(of='caches', current_partition=SimpleNamespace(processor=info), all_cpus=range(4), rounds=3, skip_test=skip_test)
    check.choose_parts(case)        # an L3 for each core: its memory is reached by another way
    assert len(case.parts) == 4
    for cache in info['topology']['caches']:        # as of Arm's processors that show no L3
        cache['type'] = {'L3': 'L2'}.get(cache['type'], 'L1')
    with pytest.raises(SkipTestError):
        check.choose_parts(case)
    assert said[-1] == 'there is no L3, and each L2 is of one core: of=cores compares those'


def made(*measurements, **given):
    '''(the check, a case of it on a node of four cores).'''
    check = runpy.run_path(str(CHECK))['within_node']
    case = SimpleNamespace(measurements=measurements, current_partition=SimpleNamespace(processor=processor()), **{'all_cpus': range(4), **given})
    case.in_level, case.others = functools.partial(check.in_level, case), functools.partial(check.others, case)
    return check, case


@pytest.mark.parametrize('virtual, cpus, share, told', [
    ('yes', 4, 0.8, 'neighbours on the host may'), ('not known', 4, 0.8, 'neighbours on the host may'), ('yes', 4, 0.5, None), ('no', 4, 0.8, None),
    ('no', 2, 0.8, "others, since 2 of the node's 4 cores may be used, may"), ('no', 2, 0.5, None), ('no', 3, 0.8, None)])
def test_others_may_take_some_of_the_bandwidth(virtual, cpus, share, told):
    check, case = made(measurement(process=0), measurement(process=0, cpus=[1]), parts=[[0], [1]], of='sockets', all_cpus=range(cpus),
                       by_round={('memory', 0): np.array([1 / share, share])}, plumbline=Result(machine={'virtual': virtual}))
    found = next(check.evaluate(case))
    assert found.samples == [share] and found.doubt == (told and f'{told} have taken that much')


@pytest.mark.parametrize('of, kinds, share, ruling', [('cores', [], 0.75, 'NO REFERENCE'), ('cores', [], 0.95, 'PASS'), ('cores', [], 0.4, 'FAIL'),
                                                      ('cores', [[0, 1]], 0.75, 'FAIL'), ('sockets', [], 0.75, 'FAIL')])
def test_who_works_on_the_other_hardware_thread_slows_a_core(of, kinds, share, ruling):
    '''Cores of several kinds do additions each in its own way, and what the memory gives is no core's.'''
    level, bounds = ('L2', 'cores') if of == 'cores' else ('memory', '.*')
    own = [measurement(process=0, level=level, cpus=[cpu], seconds=[0.5] * 10, probes={'additions_per_cycle': {
        'before': [count] * 10, 'after': [count] * 10}}) for cpu, count in ((0, 3.9), (1, 2.1))]
    check, case = made(*own, parts=[[0], [1]], of=of, by_round={(level, 0): np.array([1.0, share])},
                       plumbline=Result(machine={'virtual': 'no', 'core_kinds': kinds}))
    floors = references.load(rfm.REPOSITORY / 'config/references/portable.yaml')['within_node']['.*']['.*'][bounds]
    found = evaluation.Case(next(check.evaluate(case)), reference=references.Reference(tuple(floors[f'of_median.{level}'][:3])),
                            reference_from='portable.yaml')
    assert evaluation.judged(found).verdict == ruling


@pytest.mark.parametrize('number, share', [(0, 0.82), (1, 0.8), (2, 0.79)])
def test_the_part_that_is_slow_in_most_rounds_is_judged_in_all(number, share):
    '''Sixteen cores of a virtual machine had a slowest of 0.68, 0.86 and 0.87 in three rounds, each time another one.'''
    shares = {0: np.array([1.0, 0.68, 0.82]), 1: np.array([0.75, 1.0, 0.8]), 2: np.array([1.0, 0.98, 0.79])}
    by_round = {(level, at): own if level == 'L2' else own[::-1] for level in ('L1', 'L2') for at, own in shares.items()}
    check, case = made(*(measurement(process=number, level=level) for level in ('L1', 'L2')), parts=[[0], [1], [2]], of='cores', by_round=by_round,
                       plumbline=Result(machine={}))
    first, bandwidth, second, _ = check.evaluate(case)
    assert (first.name, first.samples, first.remark) == ('of_median.L1', [share], 'the slowest has CPU 0')
    assert (second.name, second.samples, second.remark) == ('of_median.L2', [share], 'the slowest has CPU 2')
    assert (bandwidth.name, bandwidth.value) == ('bandwidth.L1', 2000)


@pytest.mark.parametrize('of, told', [
    ('cores', 'CPU 2; below the floor, too: CPU 5 (0.60), CPU 0 (0.80)'),
    ('numa_domains', 'CPU 2 of NUMA domain 12; below the floor, too: CPU 5 of NUMA domain 15 (0.60), CPU 0 of NUMA domain 10 (0.80)')])
def test_all_that_are_below_the_floor_are_named(of, told):
    usual = np.array([0.8, 1.0, 0.5, np.nan, 1.0, 0.6])
    machine = {'numa_nodes': [{'node': 10 + cpu, 'cpus': [cpu]} for cpu in range(6)]}
    check, case = made(measurement(process=0), parts=[[cpu] for cpu in range(6)], of=of, by_round={('memory', 0): usual},
                       plumbline=Result(machine=machine))
    assert next(check.evaluate(case)).remark == f'the slowest has {told}'
    floors = references.load(rfm.REPOSITORY / 'config/references/portable.yaml')['within_node']['.*']['.*']
    levels, _, floor = runpy.run_path(str(CHECK))['PARTS'][of]
    assert {name: expected + lower for name, (expected, lower, *_) in floors.get(of, floors['.*']).items()} == {
        f'of_median.{level}': pytest.approx(floor) for level in levels}


def test_each_is_compared_with_the_others():
    '''Of two the other one; 70 against the median of 100, 101 and 98.'''
    assert (np.array([70.0, 100.0]) / uncertainty.median_of_others([70.0, 100.0])).tolist() == [0.7, 100 / 70]
    assert 70 / uncertainty.median_of_others([70.0, 100.0, 101.0, 98.0])[0] == 0.7


@pytest.mark.parametrize('kinds, shares', [
    ([], [2.0, 2.0, 0.25, 0.5]), ([[0, 1], [2, 3]], [1.0, 1.0, 0.5, 2.0]), ([[0, 1, 2], [3]], [1.6, 1.6, 0.25, np.nan])])
def test_slow_cores_of_another_kind_are_no_outliers(kinds, shares):
    np.testing.assert_allclose(uncertainty.of_fellows(np.array([100.0, 100.0, 25.0, 50.0]), range(4), kinds), shares)


@pytest.fixture
def apart(handed_out, commands, tmp_path):
    '''A workplace on a machine whose every CPU is said to be a NUMA domain.'''
    return rfm.Workplace(tmp_path, commands, CANNED_PROGRAMS=handed_out, CANNED_DOMAINS='yes')


@two_cpus
@pytest.mark.alone
def test_the_slow_domain_is_named(apart):
    cpu = CPUS[-1]
    for _ in range(3):      # three processes may scatter by so much that they say nothing, and the other CPU may lose as much to the host
        with subprocess.Popen([sys.executable, '-c', BUSY % cpu], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as busy:
            if not busy.stdout.readline():
                pytest.skip(f'no CPU can be taken from another process here: {busy.stderr.read().splitlines()[-1]}')
            try:
                done = apart.reframe('-n', 'numa_domains', *rfm.small(), checks=CHECK)
            finally:
                busy.kill()     # else nobody would
        case, = done.cases().values()
        rfm.assert_measured(case)
        worst, bandwidth = case['plumbline']['metrics']
        if worst['verdict'] == 'FAIL':
            break
    assert worst['name'] == 'of_median.memory' and worst['value'] < 0.8 and worst['verdict'] == 'FAIL', worst
    assert f'the slowest has CPU {cpu}' in worst['reason']
    assert bandwidth['name'] == 'bandwidth.memory' and bandwidth['value'] > 100
    records = case['plumbline']['records']
    assert {tuple(record['cpus']) for record in records} == {(cpu,) for cpu in CPUS}
    assert {record['process'] for record in records} == {0, 1, 2}


def test_of_one_there_is_nothing_to_compare(handed_out, commands, tmp_path):
    place = rfm.Workplace(tmp_path, commands, CANNED_PROGRAMS=handed_out)
    for case in place.reframe('-n', 'numa_domains|caches', *rfm.small(), checks=CHECK).cases().values():
        assert case['result'] == 'skip'
        assert 'cannot be compared: 2 at least' in case['plumbline']['skipped'][0]['reason']
