'''The matrix of core-to-core latency and the cores' clocks: the program, and what is made of its numbers.'''

import itertools

import numpy as np
import pytest

from plumbline import topology
from plumbline.analysis import cores, levels
from plumbline.errors import PlumblineError

#: ns between two CPUs by what they truly share.
TRUE_NS = {'core': 11, 'L3': 26, 'numa': 95, 'socket': 105, 'node': 210}


# --- synthetic machines -----------------------------------------------------------------------------------------------

def mask(cpus):
    return hex(sum(1 << cpu for cpu in cpus))


def machine(sockets=1, caches=1, of_cache=4, threads=1, numa=1):
    '''ReFrame's processor information: sockets of ``caches`` L3 of ``of_cache`` cores each; hardware threads as Linux numbers
    them, the second ones after all cores; ``numa`` nodes in each socket.'''
    count = sockets * caches * of_cache
    together = [[core + count * thread for thread in range(threads)] for core in range(count)]

    def groups(size):
        return [mask(itertools.chain(*together[begin:begin + size])) for begin in range(0, count, size)]
    return {'topology': {
        'cores': groups(1), 'sockets': groups(caches * of_cache), 'numa_nodes': groups(caches * of_cache // numa),
        'caches': [{'type': 'L1', 'size': 2**15, 'cpusets': groups(1)}, {'type': 'L2', 'size': 2**20, 'cpusets': groups(1)},
                   {'type': 'L3', 'size': 2**25, 'cpusets': groups(of_cache)}]}}


def true_ns(processor, cpus):
    '''ns of each pair where the machine is as ``processor`` says.'''
    names, index = topology.nearest_shared(processor, cpus)
    at = np.array(index)[np.triu_indices(len(cpus), 1)]
    return np.array([TRUE_NS[names[i]] for i in at], dtype=float)


def measured(claimed, ns, cpus, samples=20, noise=0.04, seed=1):
    ''':class:`cores.Handover` of pairs that take ``ns``, shape (p,) or (samples, p).'''
    generator = np.random.default_rng(seed)
    rows = ns * np.exp(noise * generator.standard_normal((samples, np.shape(ns)[-1])))
    record = {'kernel': 'cores', 'variant': 'handover', 'cpus': list(cpus), 'seconds': [1.0] * samples,
              'cores': {'handover': [[None if np.isnan(x) else x for x in row] for row in rows]}}
    return cores.handover(record, claimed)


def healthy(seed=1, **shape):
    processor = machine(**shape)
    cpus = topology.cpu_order(processor)
    return measured(processor, true_ns(processor, cpus), cpus, seed=seed)


def clocks(found, alone=3500, all_of_them=3000, left=1.0, samples=20, looked_at=8):
    '''Clocks of the same cores; ``left`` of the additions, of each core.'''
    generator = np.random.default_rng(2)
    n = len(found.cpus)
    one = np.full((samples, n), np.nan)
    for sample, k in itertools.product(range(samples), range(min(n, looked_at))):
        one[sample, (sample * looked_at + k) % n] = alone
    all_of_them = all_of_them * (1 + 0.002 * generator.standard_normal((samples, n)))
    return cores.Clocks(found.cpus, one, all_of_them, one / one * 4, np.broadcast_to(4 * np.asarray(left), (samples, n)))


def names(said):
    return [finding.name for finding in said]


# --- levels -----------------------------------------------------------------------------------------------------------

def test_levels_are_told_apart_by_gaps_however_unequal():
    generator = np.random.default_rng(3)
    values = np.concatenate([np.full(40, 11), np.full(3000, 30), np.full(5000, 110)]) * np.exp(0.06 * generator.standard_normal((12, 8040)))
    low, high = levels.boundaries(values)
    assert 13 < low < 24 and 40 < high < 90
    assert np.bincount(levels.usual(levels.of(values, [low, high]))[0]).tolist() == [40, 3000, 5000]


@pytest.mark.parametrize('values', [
    np.full((20, 6), 30.0),
    np.geomspace(40, 75, 500)[None, :].repeat(12, axis=0),             # a mesh: near and far without a gap
    np.full((1, 1), 30.0),
    np.full((20, 1), np.nan),
])
def test_one_level(values):
    assert levels.boundaries(values).size == 0


def test_values_here_and_there_are_no_level():
    generator = np.random.default_rng(4)
    values = 30 * np.exp(0.05 * generator.standard_normal((12, 2000)))
    values[generator.integers(0, 12, 15), generator.integers(0, 2000, 15)] *= 4
    assert levels.boundaries(values).size == 0


def test_a_level_that_one_pair_is_in_for_a_while_is_one():
    values = np.full((60, 1), 30.0)
    values[40:50] = 150
    found = levels.boundaries(values)
    assert found.size == 1 and levels.usual(levels.of(values, found)) == (0, pytest.approx(50 / 60))


# --- healthy machines ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('shape, seen', [
    ({'of_cache': 2}, 1), ({'of_cache': 3}, 1), ({'of_cache': 16}, 1),
    ({'caches': 2}, 2), ({'sockets': 2, 'caches': 2, 'of_cache': 3}, 3), ({'sockets': 2, 'caches': 8, 'of_cache': 4, 'numa': 4}, 3),
])
def test_healthy_machines_have_no_findings(shape, seen):
    for seed in range(1 if shape.get('caches') == 8 else 5):
        found = healthy(seed, **shape)
        assert len(found.boundaries) + 1 == seen
        assert cores.findings(found, clocks(found), np.ones(5), machine(**shape)) == []
        assert cores.of_topology(found, clocks(found)) == 1
        assert cores.of_median(found) is None or cores.of_median(found) > 0.9


def test_hardware_threads_that_the_topology_names_are_no_finding():
    processor = machine(caches=2, threads=2)
    cpus = topology.cpu_order(processor, smt=True)
    found = measured(processor, true_ns(processor, cpus), cpus)
    assert [name for name, _ in found.kinds()] == ['core', 'L3', 'socket'] and len(found.boundaries) == 2
    left = clocks(found, left=0.5)
    assert cores.findings(found, left) == [] and cores.of_topology(found, left) == 1


def test_kinds_are_ordered_by_what_the_machine_shares():
    '''Several NUMA nodes below one last-level cache: a node is nearer than the cache.'''
    processor = machine(of_cache=8, numa=2)
    assert topology.nearest_shared(processor, [0, 1, 4])[0] == ['core', 'L2', 'numa', 'L3', 'socket', 'node']
    assert topology.nearest_shared(processor, [0, 1, 4])[1] == [[-1, 2, 3], [2, -1, 3], [3, 3, -1]]


def test_a_second_level_cache_of_several_cores_may_be_as_slow_as_the_last_one():
    processor = machine(of_cache=8)
    processor['topology']['caches'][1]['cpusets'] = [hex(0xF), hex(0xF0)]
    cpus = range(8)
    ns = np.array([50. if a // 4 == b // 4 else 33. for a, b in itertools.combinations(cpus, 2)])
    assert cores.of_topology(measured(processor, ns, cpus)) == 1


# --- faults -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('numbers', [[0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11], [6, 1, 2, 3, 4, 5, 0, 7, 8, 9, 10, 11]])
def test_cores_that_the_firmware_numbers_otherwise_are_found(numbers):
    '''All even ones on one socket; two of them exchanged.'''
    processor = machine(sockets=2, of_cache=6)
    true = true_ns(processor, numbers)
    found = measured(processor, true, range(12))
    said = cores.findings(found, clocks(found))
    assert names(said) == [cores.MISPLACED] or names(said) == [cores.MISPLACED, cores.NOT_SHARED]
    assert cores.of_topology(found) < 0.9
    if numbers[0] == 6:
        assert 'most of them with CPUs 0,6' in str(said[0])


def test_sockets_where_one_is_claimed():
    '''A wrong setting of nodes per socket: what is claimed to be one cache is two.'''
    real, claimed = machine(caches=2, of_cache=4), machine(of_cache=8)
    found = measured(claimed, true_ns(real, range(8)), range(8))
    said = cores.findings(found)
    assert names(said) == [cores.NOT_SHARED] and 'L3' in said[0].text and '0-3, 4-7' in said[0].text


def test_three_cores_of_which_one_does_not_share_the_cache():
    found = measured(machine(of_cache=3), np.array([26., 110., 110.]), range(3))
    assert names(cores.findings(found)) == [cores.NOT_SHARED]


@pytest.mark.parametrize('known', [True, False])
def test_two_cpus_of_one_core_that_are_claimed_to_be_two(known):
    ns = true_ns(machine(of_cache=8), range(8))
    ns[list(itertools.combinations(range(8), 2)).index((2, 5))] = 11
    found = measured(machine(of_cache=8), ns, range(8))
    speeds = clocks(found, left=[0.5 if cpu in (2, 5) else 1 for cpu in range(8)] if known else np.nan)
    said = cores.findings(found, speeds)
    assert names(said) == [cores.ONE_CORE] and '2 and 5' in said[0].text and cores.of_topology(found, speeds) == pytest.approx(27 / 28)
    # Whoever is near but has all its additions is not on the same core.
    assert cores.of_topology(found, clocks(found)) == 1 if known else True


def test_two_cpus_and_no_other_are_told_by_their_additions():
    found = measured(machine(of_cache=2), np.array([12.]), range(2))
    assert names(cores.findings(found, clocks(found, left=0.52))) == [cores.ONE_CORE]
    assert cores.findings(found, clocks(found)) == []


@pytest.mark.parametrize('shape', [{'of_cache': 4}, {'sockets': 2, 'of_cache': 2}, {'sockets': 2, 'caches': 2}, {'caches': 4, 'of_cache': 8}])
def test_one_slow_core_is_the_only_finding(shape):
    processor = machine(**shape)
    cpus = topology.cpu_order(processor)
    pairs = np.array(list(itertools.combinations(cpus, 2)))
    ns = true_ns(processor, cpus) * np.where((pairs == 1).any(axis=1), 1.6, 1)
    found = measured(processor, ns, cpus)
    said = cores.findings(found)
    assert names(said) == [cores.SLOW_CORE] and said[0].text.startswith('CPU 1 takes 1.')
    assert 0.55 < cores.of_median(found) < 0.72 and cores.of_topology(found) == 1


def test_a_core_of_low_clock():
    found = healthy(of_cache=8)
    speeds = clocks(found, all_of_them=np.where(np.arange(8) == 3, 1800, 3000))
    assert names(cores.findings(found, speeds)) == [cores.LOW_CLOCK] and 'CPU 3 has 0.60' in str(cores.findings(found, speeds)[0])


def test_clock_of_all_over_one():
    found = healthy(of_cache=16)
    assert np.median(clocks(found).ratio) == pytest.approx(3000 / 3500, rel=0.01)


# --- virtual machines -----------------------------------------------------------------------------------------------------

def test_two_states_are_told_with_their_share():
    ns = np.full((60, 1), 150.)
    ns[10:25] = 27
    found = measured(machine(of_cache=2), ns, range(2), samples=60)
    said = cores.findings(found)
    assert names(said) == [cores.CHANGING]
    assert '1 of 1 pairs that share the L3: 26.8 ns in 25 %, 151 ns in 75 %' in said[0].text and 'with 2 changes' in said[0].text
    assert cores.moving(found).all() and cores.of_topology(found) == 1


def test_pairs_that_do_not_answer_are_not_known():
    ns = true_ns(machine(), range(4))
    ns[1] = np.nan
    found = measured(machine(), ns, range(4))
    assert found.usual.tolist() == [0, -1, 0, 0, 0, 0] and cores.silent(found) == pytest.approx(1 / 6)
    assert cores.findings(found) == []


def test_nobody_answers():
    with pytest.raises(PlumblineError, match='no two of the CPUs 0-1 have handed over'):
        measured(machine(of_cache=2), np.array([np.nan]), range(2))


def test_pairs_that_disturb_each_other():
    found = healthy(of_cache=4)
    rows = [[0, 1, 20., 2, 3, 20., np.nan, np.nan, np.nan]] * 20
    ratio = cores.together_over_alone(found, {'kernel': 'cores', 'variant': 'alone', 'seconds': [1.0] * 20, 'cores': {'alone': rows}})
    assert ratio.shape == (20,) and np.median(ratio) == pytest.approx(1.3, rel=0.05)
    assert names(cores.findings(found, alone=ratio)) == [cores.DISTURBED]


# --- a job's CPUs ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('cpus, found', [
    (range(4), []), (range(16), []), (range(5), []),
    ([0, 1, 8, 9], [('sockets', 2, 1), ('NUMA nodes', 2, 1), ('last-level caches', 2, 1)]),
    ([0, 1, 4, 5], [('last-level caches', 2, 1)]),
    ([0, 16, 1, 17], []),
])
def test_cpus_that_lie_apart_although_there_was_room(cpus, found):
    assert topology.scattered(machine(sockets=2, caches=2, threads=2), cpus) == found
