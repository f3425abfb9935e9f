'''What of the caches is ours: the program, the model of its curve, and the checks that use it.'''

import dataclasses
import json
import runpy
from types import SimpleNamespace

import numpy as np
import pytest
from reframe.utility.cpuinfo import cpuinfo

import rfm
from mpi_native import any_mpi
from native import CPUS, two_cpus
from plumbline.analysis import outline
from plumbline.errors import PlumblineError
from plumbline.model import capacity as model, records
from plumbline.report import table
from plumbline.rfm import capacity as caches
from plumbline.system import topology

CHECKS = rfm.REPOSITORY / 'checks/memory'
KIB, MIB = 2**10, 2**20
CLAIMS = {'L1': 32 * KIB, 'L2': MIB, 'L3': 32 * MIB}
LATENCY = {'L1': 1.3, 'L2': 5.0, 'L3': 25.0, 'memory': 110.0}
QUICK = ('--samples', 10, '--passes', 1)


def hits(size, capacity, policy):
    '''Share of the loads of a cycle through ``size`` that a cache of this capacity serves.'''
    if policy == 'lru':
        return float(size <= capacity)
    h = 1.0 if size <= capacity else 0.0
    for _ in range(200):        # random replacement: h = exp(-(1 - h) size / capacity)
        h = np.exp(-(1 - h) * size / capacity) if size > capacity else 1.0
    return h


def made(x, ours, latency=LATENCY, policy='lru', noise=0.03, rounds=12, seed=1, spikes=0.0):
    '''Latencies of made-up caches, shape (rounds, sizes).'''
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(rounds):
        row = []
        for size in x:
            left, mean = 1.0, 0.0
            for level, capacity in ours.items():
                share = left * hits(size, capacity * rng.lognormal(0, 0.02), policy)
                mean += share * latency[level]
                left -= share
            row.append((mean + left * latency['memory']) * rng.lognormal(0, noise))
        rows.append(np.array(row) * np.where(rng.random(len(x)) < spikes, 8, 1))
    return np.array(rows)


@pytest.mark.parametrize('ours', [CLAIMS, {**CLAIMS, 'L3': 4.5 * MIB}, {**CLAIMS, 'L3': 16 * MIB, 'L2': 512 * KIB}, {**CLAIMS, 'L1': 16 * KIB}])
@pytest.mark.parametrize('policy, within', [('lru', 1.2), ('random', 1.6)])
@pytest.mark.parametrize('noise, spikes', [(0.01, 0), (0.1, 0.03)])
def test_knees_of_known_caches(ours, policy, within, noise, spikes):
    x = model.sizes(CLAIMS)
    found = model.find(x, made(x, ours, policy=policy, noise=noise, spikes=spikes), CLAIMS)
    for level, size in ours.items():
        assert found[level].reason == ''
        value = np.median(found[level].samples)
        assert 1 / 1.2 < value / size < within
        assert found[level].interval[0] <= value <= found[level].interval[1]
        assert found[level].ours <= CLAIMS[level]
        if policy == 'lru':
            assert found[level].is_whole == (size == CLAIMS[level])


RAPIDS = {'L1': 48 * KIB, 'L2': 2 * MIB, 'L3': 480 * MIB}


@pytest.mark.slow
@pytest.mark.parametrize('ours', [4.5, 33, 240, 480])
@pytest.mark.parametrize('policy, within', [('lru', 1.2), ('random', 1.6)])
def test_memory_that_is_slower_the_more_of_it_is_visited(ours, policy, within):
    '''A virtual machine of a Granite Rapids: of an L3 of 480 MiB 33 were ours, memory took 155 ns at 60 MiB and 223 at 960, and a
    stretch of that was taken for the L3's plateau.'''
    x = np.array(model.sizes(RAPIDS))
    latency = made(x, {**RAPIDS, 'L3': ours * MIB}, {'L1': 1.3, 'L2': 4.3, 'L3': 40, 'memory': 155}, policy=policy)
    found = model.find(x, latency * np.maximum(1, x / (40 * MIB))**0.12, RAPIDS)
    assert 1 / 1.2 < np.median(found['L3'].samples) / (ours * MIB) < within and found['L3'].is_whole == (ours == 480)


def test_an_l3_of_which_nothing_is_left_is_told_from_no_memory():
    x = np.array(model.sizes(RAPIDS))
    gone = model.find(x, made(x, {'L1': 48 * KIB, 'L2': 2 * MIB}) * np.maximum(1, x / (20 * MIB))**0.1, RAPIDS)['L3']
    assert gone.reason == 'L3 cannot be told apart from memory' and gone.ours < 3 * MIB


QEMU = {'L1': 32 * KIB, 'L2': 4 * MIB, 'L3': 16 * MIB}      # its defaults, of any processor


@pytest.mark.slow
@pytest.mark.parametrize('l3', [9, 16, 33, 100])
@pytest.mark.parametrize('policy', ['lru', 'random'])
def test_a_cache_that_is_larger_than_a_hypervisor_says(l3, policy):
    x = np.array(model.sizes(QEMU))
    latency = made(x, {'L1': 32 * KIB, 'L2': MIB, 'L3': l3 * MIB}, policy=policy) * np.maximum(1, x / (40 * MIB))**0.12
    levels = model.find(x, latency, QEMU, virtual='yes')
    assert 1 / 1.2 < np.median(levels['L3'].samples) / (l3 * MIB) < 1.5 and levels['L3'].is_larger == (l3 > 16)
    assert levels['L3'].ours <= 16 * MIB and levels['L2'].ours == pytest.approx(MIB, rel=0.3)
    ours = caches.MeasuredCaches.ours(SimpleNamespace(levels=levels, records=records.Records({'virtual': 'yes'})))
    topology_of = {'topology': {'cores': ['0x1'], 'caches': [{'type': level, 'size': size, 'cpusets': ['0x1']} for level, size in QEMU.items()]}}
    sizes, _ = topology.working_sets(topology_of, [0], ours=ours)
    assert sizes['memory'] >= 4 * l3 * MIB and sizes['L3'] <= 8 * MIB
    few = x <= 32 * MIB         # of a small machine
    less = model.find(x[few], latency[:, few], QEMU, virtual='yes')['L3']
    assert less.ours == 16 * MIB if l3 > 32 else less.ours > 0.8 * min(l3, 16) * MIB


@pytest.mark.parametrize('virtual, whole', [('no', True), ('yes', False), (None, False)])
@pytest.mark.parametrize('policy', ['lru', 'random'])
def test_a_slow_last_level_of_bare_metal_is_told_from_memory(virtual, whole, policy):
    claims = {'L1': 48 * KIB, 'L2': 2 * MIB, 'L3': 105 * MIB}
    x = model.sizes(claims)
    latency = made(x, claims, {'L1': 1.3, 'L2': 4.4, 'L3': 80, 'memory': 115}, policy=policy)
    assert model.find(x, latency, claims, virtual=virtual)['L3'].is_whole is whole


def test_the_interval_holds_what_is_true():
    x = model.sizes(CLAIMS)
    for seed in range(20):
        low, high = model.find(x, made(x, {**CLAIMS, 'L3': 4.5 * MIB}, seed=seed), CLAIMS)['L3'].interval
        assert low / 1.1 <= 4.5 * MIB <= high * 1.1


def test_a_level_that_is_gone_or_no_slower_than_the_next_is_not_told_apart():
    x = model.sizes(CLAIMS)
    gone = model.find(x, made(x, {'L1': 32 * KIB, 'L2': MIB}), CLAIMS)['L3']
    assert gone.reason == 'L3 cannot be told apart from memory' and not gone.samples.size
    assert gone.ours < 1.3 * MIB and gone.least == gone.at_most and not gone.is_whole
    slow = model.find(x, made(x, CLAIMS, {**LATENCY, 'L3': 105}), CLAIMS)['L3']
    assert slow.reason


def test_caches_that_do_not_hold_each_others_lines_and_two_levels():
    x = model.sizes(CLAIMS)
    found = model.find(x, made(x, {**CLAIMS, 'L3': 33 * MIB}), CLAIMS)['L3']
    assert found.is_whole and found.ours == 32 * MIB
    claims = {'L1': 64 * KIB, 'L2': 4 * MIB}
    x = model.sizes(claims)
    found = model.find(x, made(x, claims), claims)
    assert set(found) == set(claims) and all(level.is_whole for level in found.values())


def test_a_large_cache_beside_a_last_one_that_is_hardly_larger():
    claims = {'L1': 48 * KIB, 'L2': 2 * MIB, 'L3': 4 * MIB}
    x = model.sizes(claims)
    found = model.find(x, made(x, claims), claims)
    assert found['L2'].ours == pytest.approx(2 * MIB, rel=0.2)
    x = model.sizes(CLAIMS)
    found = model.find(x, made(x, CLAIMS), CLAIMS, page=4096)
    assert found['L1'].is_whole and not found['L1'].reason
    assert 'huge pages' in found['L3'].reason and found['L3'].is_whole


def test_the_grid_stays_within_the_memory_and_no_series_falls():
    x = model.sizes(CLAIMS)
    assert x == sorted(x) and all(size % 64 == 0 for size in x) and x[0] < 32 * KIB / 2 and x[-3:] == [64 * MIB, 128 * MIB, 256 * MIB]
    few = model.sizes(CLAIMS, 256 * MIB)
    assert sum(few) <= 64 * MIB
    assert 'no size beyond' in model.find(few, made(few, CLAIMS), CLAIMS)['L3'].reason
    huge = model.sizes({**CLAIMS, 'L3': 512 * MIB})
    assert len(huge) < 55
    assert model.isotonic([1, 3, 2, 4]).tolist() == [1, 2.5, 2.5, 4]
    assert model.crossing(np.array([1., 2, 4]), np.array([0., 1, 2]), 1.5) == pytest.approx(2 * 2**0.5)


# --- the program ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('flavour', ['capacity', 'capacity-serial'])
def test_program(programs, flavour):
    threads = 1 if 'serial' in flavour else min(2, len(CPUS))
    found = programs.measured(flavour, '--size', '63,1000,20000,100000', '--threads', threads, *QUICK).measurements
    assert [record['size'] for record in found] == [63, 1000, 19968, 99840]     # of many lines, whole parts
    assert {record['group'] for record in found} == {0}, 'the sizes are not measured by turns'
    for record in found:
        assert record['working_set'] == 64 * record['size'] and record['threads'] == threads
        loads = record['bytes'] / 8
        assert loads >= 2**14 and (record['size'] > 2**14 or loads % record['size'] == 0)
    assert threads == 1 or 'core_to_core' in found[0]['probes']


def test_capacity_changes_levels_and_what_fits_a_layer(programs):
    def level(*options):
        return [r['level'] for r in programs.measured('triad', '--size', '500,5000,40000', *QUICK, *options).measurements]
    known = json.loads(programs.run('triad', '--size', 10, *QUICK, '--capacity', 'L1=8192,L3=1000000').text.splitlines()[0])
    assert known['capacity'] == {'L1': 8192, 'L3': 1000000} and known['caches'][0]['size'] > 8192
    whole, part = level(), level('--capacity', 'L1=1024,L2=1024,L3=200000')
    third = 'L3' if any(cache['level'] == 3 for cache in known['caches']) else 'memory'
    assert part == [third, third, 'memory']
    assert level('--capacity', 'L1=1e12,L2=1e12,L3=1e12') == whole      # never more than the topology says

    def block(*options):
        record, = programs.measured('jacobi', '--variants', 'blocked', '--size', 402, '--planes', 6, *QUICK, *options).measurements
        return record
    assert block('--capacity', 'L1=4096,L2=8192,L3=16384')['traffic'] != block()['traffic']


@pytest.mark.parametrize('text', ['L3', 'L3=', 'L3=many', 'L9=4096', 'L3=0', 'L2=4096,', 'L3=1.5'])
def test_bad_capacity(programs, text):
    found = programs.run('triad', '--capacity', text)
    assert found.code == 2 and found.errors.startswith('plumbline: --capacity') and found.errors.count('\n') == 1
    assert ': ' in found.errors[12:] and 'give' in found.errors


# --- working sets and the checks -----------------------------------------------------------------------------------

def test_working_sets_of_a_part():
    topology_of = {'topology': {'cores': ['0x1', '0x2'], 'caches': [
        {'type': 'L1', 'size': 32 * KIB, 'cpusets': ['0x1', '0x2']}, {'type': 'L2', 'size': MIB, 'cpusets': ['0x1', '0x2']},
        {'type': 'L3', 'size': 32 * MIB, 'cpusets': ['0x3']}]}}
    whole, _ = topology.working_sets(topology_of, [0])
    part, skipped = topology.working_sets(topology_of, [0], ours={'L3': int(4.5 * MIB)})
    assert part == {**whole, 'L3': int(2.25 * MIB)} and not skipped
    assert topology.working_sets(topology_of, [0], ours={'L3': 32 * MIB})[0] == {**whole, 'L3': 3 * MIB}
    part, skipped = topology.working_sets(topology_of, [0, 1], ours={'L3': int(4.5 * MIB)})
    assert 'L3' not in part and 'L3 cannot be isolated' in skipped['L3'] and '4.5 MiB of each L3 are ours' in skipped['L3']
    assert part['memory'] == whole['memory']


@pytest.mark.parametrize('ours, l2, l1_of_ours, l1', [(512, 96, 32, 16), (192, 96, 24, 16), (128, 96, 22, 16), (96, None, 16, 8)])
def test_what_neighbours_leave_of_a_cache_of_cores_does_not_change_its_working_set(ours, l2, l1_of_ours, l1):
    '''Of 49 sessions on a virtual EPYC 48 found 192 to 512 KiB of L2, and undisturbed 96 KiB took 3.8 to 4.3 ns in all; one found 128 KiB.'''
    topology_of = {'topology': {'cores': ['0x1'], 'caches': [
        {'type': level, 'size': size, 'cpusets': ['0x1']} for level, size in (('L1', 32 * KIB), ('L2', 512 * KIB), ('L3', 32 * MIB))]}}
    sizes, skipped = topology.working_sets(topology_of, [0], ours={'L2': ours * KIB, 'L3': 2 * MIB})
    assert sizes.get('L2') == (l2 and l2 * KIB) and ('L2' in skipped) == (l2 is None)
    assert topology.working_set(topology_of, 'L1', [0], ours={'L1': l1_of_ours * KIB}) == l1 * KIB
    assert sizes['L3'] == MIB       # others fill the last level: half of what was found


def test_a_level_that_is_gone_is_left_out_and_not_measured_in_memory():
    '''A working set of half of the claim would lie in memory, by the name of L3.'''
    x = model.sizes(CLAIMS)
    levels = model.find(x, made(x, {'L1': 32 * KIB, 'L2': MIB}), CLAIMS)
    ours = caches.MeasuredCaches.ours(SimpleNamespace(levels=levels, records=records.Records()))
    assert set(ours) == {'L3'} and ours['L3'] < 1.3 * MIB
    topology_of = {'topology': {'cores': ['0x1'], 'caches': [{'type': level, 'size': size, 'cpusets': ['0x1']} for level, size in CLAIMS.items()]}}
    sizes, skipped = topology.working_sets(topology_of, [0], ours=ours)
    assert 'L3' not in sizes and 'L3 cannot be isolated' in skipped['L3']
    assert sizes['memory'] == topology.working_sets(topology_of, [0])[0]['memory']


@pytest.mark.parametrize('rounds, ours', [
    ([19.0, 24.7, 19.0, 18.1, 11.6, 11.0, 11.1, 20.2], 16),       # a virtual machine's: half of the claim, 16 MiB, took 121 ns, as much as memory
    ([30.9, 33.0, 31.2, 40.1, 32.3, 31.9, 35.0, 33.8], None), ([22.0, 24.0, 22.5, 23.0, 21.0, 22.0, 23.5, 24.0], None),
    ([33.0, 34.0, 11.0, 33.5, 34.2, 32.8, 33.1, 35.0], None)])      # one disturbed round
def test_working_sets_fit_into_what_may_be_ours(rounds, ours):
    samples = np.array(rounds) * MIB
    level = model.Level(32 * MIB, samples, (samples.min(), samples.max()), '', 32 * MIB)
    levels = {'L2': dataclasses.replace(level, claim=MIB, at_most=MIB), 'L3': level}
    on_metal, virtual = (caches.MeasuredCaches.ours(SimpleNamespace(levels=levels, records=records.Records({'virtual': answer})))
                         for answer in ('no', 'yes'))
    assert on_metal == ({} if ours is None else {'L3': ours * MIB})
    assert virtual == {'L3': (ours or (32 if np.median(rounds) >= 32 else 16)) * MIB}


@pytest.mark.parametrize('kib', [192, 256, 384, 512, None])
def test_working_sets_of_a_virtual_machine_are_the_same_whatever_its_neighbours_leave(kib):
    '''Of an L2 of 512 KiB 256 took 4.1 to 7.3 ns while others were on the same cores, 96 KiB 3.9 to 4.2.'''
    claims = {'L1': 32 * KIB, 'L2': 512 * KIB, 'L3': 32 * MIB}
    levels = {level: model.Level(size, np.full(8, float(size)), (size, size), '', size) for level, size in
              (claims | {'L2': (kib or 0) * KIB}).items()}
    levels = {level: dataclasses.replace(found, claim=claims[level]) for level, found in levels.items()} if kib else {}
    ours = caches.MeasuredCaches.ours(SimpleNamespace(levels=levels, records=records.Records({'virtual': 'yes'}), claimed=claims))
    topology_of = {'topology': {'cores': ['0x1'], 'caches': [{'type': level, 'size': size, 'cpusets': ['0x1']} for level, size in claims.items()]}}
    sizes, skipped = topology.working_sets(topology_of, [0], ours=ours)
    assert not skipped and (sizes['L1'], sizes['L2'], sizes['L3']) == (16 * KIB, 96 * KIB, 1.5 * MIB)


@pytest.mark.parametrize('text, found', [('measured', None), ('topology', {}), ('L2=524288,L3=4718592', {'L2': 524288, 'L3': 4718592})])
def test_setting(text, found):
    assert caches.given(text) == found


@pytest.mark.parametrize('text', ['', 'L3', 'L4=10000', 'L3=4.5M', 'L3=12', 'no'])
def test_bad_setting(text):
    with pytest.raises(PlumblineError, match='PLUMBLINE_CAPACITY=.*: give measured, topology, or'):
        caches.given(text)


def test_cores_that_reach_no_last_level():
    '''Those of a laptop that save the most power, in a cpuset of their own.'''
    laptop = {'topology': {'cores': ['0x1', '0x2'], 'caches': [
        {'type': 'L1', 'size': 32 * KIB, 'cpusets': ['0x1', '0x2']}, {'type': 'L2', 'size': 2 * MIB, 'cpusets': ['0x1', '0x2']},
        {'type': 'L3', 'size': 24 * MIB, 'cpusets': ['0x1']}]}}
    assert caches.claims(laptop, 1) == {'L1': 32 * KIB, 'L2': 2 * MIB} and caches.claims(laptop, 0)['L3'] == 24 * MIB
    assert topology.levels(laptop, 1) == ['L1', 'L2', 'memory']
    lost = {'threads': 2, 'elapsed': 10.0, 'throttled': 0.0, 'waited': 8.0, 'stolen': 0.0}
    assert '60 %' in caches.disturbed([lost])
    assert not caches.disturbed([{**lost, 'waited': 1.0}]) and not caches.disturbed([{**lost, 'waited': None}])


def test_the_terminal_says_what_is_ours():
    noted = [{'about': 'caches', 'note': 'L3: 4.5 MiB (4 MiB to 5 MiB) of 32 MiB are ours'}]
    lines = [SimpleNamespace(check='capacity', detail=outline.of({'notes': ['L2: all of 1 MiB are ours'], 'noted': noted}))] * 2
    said = []
    table._caches(lines, SimpleNamespace(line=lambda text: said.append(text.plain)))
    assert said == ['caches: L3: 4.5 MiB (4 MiB to 5 MiB) of 32 MiB are ours']


def options_of(case):
    words = case['plumbline']['command'].split()
    return {word: words[i + 1] for i, word in enumerate(words[:-1]) if word.startswith('--')}


def test_what_is_given_goes_to_the_programs(measuring, tmp_path):
    done = measuring(tmp_path, PLUMBLINE_CAPACITY=rfm.capacity(L1=16384)).reframe('-n', 'limits.*one', *rfm.small(), checks=CHECKS / 'limits.py')
    case, = done.cases().values()
    rfm.assert_measured(case)
    assert 'L1=16384' in options_of(case)['--capacity'].split(',')
    assert case['plumbline']['machine']['capacity']['L1'] == 16384
    assert [r['working_set'] for r in case['plumbline']['records'] if r['level'] == 'L1'][0] <= 8192


@two_cpus
def test_what_is_given_goes_to_mpi_programs_too(measuring_mpi, tmp_path):
    mpi = any_mpi()
    done = measuring_mpi(tmp_path, mpi, PLUMBLINE_CAPACITY=rfm.capacity(L1=16384)).reframe(
        '-r', '-p', f'gnu-{mpi}$', '-n', 'pingpong%transport=shm', '-S', 'processes=1', '-S', 'pingpong.largest=32768',
        checks=rfm.REPOSITORY / 'checks/mpi/pingpong.py')
    case, = done.cases().values()
    rfm.assert_measured(case)
    assert 'L1=16384' in options_of(case)['--capacity'].split(',')
    assert {record['level'] for record in case['plumbline']['records'] if record['size'] == 16384}.isdisjoint({'L1'})


@two_cpus
@pytest.mark.alone
def test_one_measurement_for_all(measuring, tmp_path):
    '''The check reads what the fixture has measured.'''
    done = measuring(tmp_path, PLUMBLINE_CAPACITY='measured').reframe(*rfm.small(), checks=CHECKS / 'capacity.py')
    case, = done.cases().values()
    if case['result'] == 'skip':
        reason = case['plumbline']['skipped'][0]['reason']
        assert 'others had the CPUs' in reason or topology.levels(cpuinfo()) == ['memory'], reason
        pytest.skip(reason)
    rfm.assert_measured(case)
    names = {metric['name'] for metric in case['plumbline']['metrics']}
    assert 'capacity.L1' in names | {s['metric'] for s in case['plumbline'].get('skipped', ())}
    assert any('ours' in note for note in case['plumbline']['notes'])


def test_a_second_run_that_reads_the_same_is_none():
    check, again = runpy.run_path(str(rfm.REPOSITORY / 'checks/memory/capacity.py'))['capacity'], [{'process': 0}]
    assert check.pooled(SimpleNamespace(), again) is again
