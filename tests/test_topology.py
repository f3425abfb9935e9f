'''Which CPUs, how many threads, how much memory: on machines written by hand.'''

import os

import pytest

import rfm
from plumbline.errors import PlumblineError
from plumbline.system import cgroup, topology

KIB, MIB = 2**10, 2**20


def mask(cpus):
    return hex(sum(1 << cpu for cpu in cpus))


def cache(level, size, groups):
    return {'type': level, 'size': size, 'linesize': 64, 'associativity': 8,
            'num_cpus': len(groups[0]), 'cpusets': sorted(map(mask, groups))}


def machine(sockets, numa_nodes, cores, caches):
    return {'num_cpus': sum(map(len, cores)), 'num_sockets': len(sockets),
            'num_cpus_per_core': len(cores[0]),
            'topology': {'sockets': sorted(map(mask, sockets)),
                         'numa_nodes': sorted(map(mask, numa_nodes)),
                         'cores': sorted(map(mask, cores)), 'caches': caches}}


def two_sockets():
    '''2 sockets x 2 NUMA nodes x 4 cores x 2 hardware threads; an L3 of 32 MiB for each 4 cores.

    Core c is CPU c, its second thread CPU c + 16.
    '''
    cores = [[c, c + 16] for c in range(16)]
    quads = [sum(cores[i:i + 4], []) for i in range(0, 16, 4)]
    sockets = [quads[0] + quads[1], quads[2] + quads[3]]
    return machine(sockets, quads, cores, [
        cache('L3', 32 * MIB, quads), cache('L1', 32 * KIB, cores), cache('L2', 512 * KIB, cores)])


def alternating():
    '''2 sockets x 4 cores, CPU numbers alternating between them, as some firmware does; one L3 of
    24 MiB for each socket.'''
    sockets = [[0, 2, 4, 6], [1, 3, 5, 7]]
    cores = [[c] for c in range(8)]
    return machine(sockets, sockets, cores, [
        cache('L1', 48 * KIB, cores), cache('L2', 1280 * KIB, cores),
        cache('L3', 24 * MIB, sockets)])


def small_vm():
    '''2 CPUs, 1 L3 of 32 MiB.'''
    cores = [[0], [1]]
    return machine([[0, 1]], [[0, 1]], cores, [
        cache('L2', MIB, cores), cache('L1', 48 * KIB, cores), cache('L3', 32 * MIB, [[0, 1]])])


def container_host():
    '''128 CPUs in 64 cores of 1 socket; a container sees them all.'''
    cores = [[c, c + 64] for c in range(64)]
    everything = [list(range(128))]
    return machine(everything, everything, cores, [
        cache('L1', 32 * KIB, cores), cache('L2', MIB, cores),
        cache('L3', 32 * MIB, [sum(cores[i:i + 8], []) for i in range(0, 64, 8)])])


def server_with_small_l3():
    '''4 cores with 2 MiB of L2 each and 7.5 MiB of L3 for all.'''
    cores = [[c] for c in range(4)]
    return machine([[0, 1, 2, 3]], [[0, 1, 2, 3]], cores, [
        cache('L1', 48 * KIB, cores), cache('L2', 2 * MIB, cores),
        cache('L3', 7680 * KIB, [[0, 1, 2, 3]])])


def sockets_of_one_cpu(count):
    '''A virtual machine: an L3 of 16 MiB for each of its CPUs, each a socket, one NUMA domain.'''
    each = [[cpu] for cpu in range(count)]
    return machine(each, [list(range(count))], each, [cache('L1', 32 * KIB, each), cache('L2', MIB, each), cache('L3', 16 * MIB, each)])


# --- order ---

def test_one_thread_per_core_socket_by_socket():
    assert topology.cpu_order(two_sockets()) == list(range(16))
    assert topology.cpu_order(alternating()) == [0, 2, 4, 6, 1, 3, 5, 7]
    assert topology.cpu_order(small_vm()) == [0, 1]

    class Processor:
        info = small_vm()
    assert topology.cpu_order(Processor()) == [0, 1]
    assert topology.cpu_order(two_sockets(), smt=True) == list(range(32))
    cores = [[c] for c in range(8)]
    interleaved = machine([list(range(8))], [list(range(8))], cores, [
        cache('L3', 8 * MIB, [[0, 2, 4, 6], [1, 3, 5, 7]])])
    assert topology.cpu_order(interleaved) == [0, 2, 4, 6, 1, 3, 5, 7]
    numa = alternating()
    numa['topology']['numa_nodes'].append('0x0')
    assert topology.cpu_order(numa) == [0, 2, 4, 6, 1, 3, 5, 7]


def test_affinity_is_obeyed():
    # A container with 2 of 128 CPUs, which are the two threads of one core: one core, not two.
    assert topology.cpu_order(container_host(), {5, 69}) == [5]
    assert topology.cpu_order(container_host(), {5, 69}, smt=True) == [5, 69]
    # Only the second threads are allowed: they are the cores' only ones then.
    assert topology.cpu_order(container_host(), {70, 71}) == [70, 71]


@pytest.mark.parametrize('processor', [{}, {'num_cpus': 4}, {'topology': {}}, None])
def test_unknown_topology_says_how_to_give_it(processor):
    with pytest.raises(PlumblineError, match='--detect-host-topology') as error:
        topology.cpu_order(processor)
    assert '\n' not in str(error.value)


def test_topology_of_another_machine_is_refused():
    with pytest.raises(PlumblineError, match=r'allowed CPUs 40-41 .* another machine'):
        topology.cpu_order(small_vm(), {40, 41})


# --- numbers of threads ---

@pytest.mark.parametrize('processor, counts', [
    (two_sockets(), [1, 2, 4, 8, 16]), (alternating(), [1, 2, 4, 8]), (small_vm(), [1, 2]),
    (container_host(), [1, 2, 4, 8, 16, 32, 64])])
def test_thread_counts(processor, counts):
    assert topology.thread_counts(topology.cpu_order(processor), processor) == counts


def test_thread_counts_stop_at_full_sockets_and_of_a_socket_for_each_cpu_are_powers_of_two():
    twelve = machine([list(range(6)), list(range(6, 12)), [12, 13, 14]], [list(range(15))],
                     [[c] for c in range(15)], [])
    order = topology.cpu_order(twelve)
    assert topology.thread_counts(order, twelve) == [1, 2, 4, 6, 12, 15]
    assert topology.thread_counts(order[:1], twelve) == [1]
    assert topology.thread_counts(order[5:], twelve) == [1, 2, 4, 7, 10]
    with pytest.raises(PlumblineError, match='no CPU'):
        topology.thread_counts([], twelve)
    many = sockets_of_one_cpu(12)
    assert topology.thread_counts(topology.cpu_order(many), many) == [1, 2, 4, 8, 12]
    assert topology.has_sockets_of_one_core(many) and not topology.has_sockets_of_one_core(sockets_of_one_cpu(1))
    assert not any(map(topology.has_sockets_of_one_core, (two_sockets(), small_vm())))


# --- working sets ---

def test_levels_are_those_that_exist():
    assert topology.levels(two_sockets()) == ['L1', 'L2', 'L3', 'memory']
    assert topology.levels(machine([[0]], [[0]], [[0]], [])) == ['memory']
    four = small_vm()
    four['topology']['caches'].append(cache('L4', 128 * MIB, [[0, 1]]))
    assert topology.levels(four) == ['L1', 'L2', 'L3', 'memory']
    assert topology.working_sets(four, [0], 2**36)[0] == {'L1': 24 * KIB, 'L2': MIB // 2, 'L3': 16 * MIB, 'memory': 512 * MIB}


def without_hardware_threads():
    '''Two cores for each L3 of 32 MiB, booted with nosmt: ReFrame counts the CPUs that are offline among those of a core and a cache.'''
    cores = [[0], [1], [2], [3]]
    booted = machine([[0, 1, 2, 3]], [[0, 1, 2, 3]], cores, [
        cache('L1', 32 * KIB, cores), cache('L2', 512 * KIB, cores), cache('L3', 32 * MIB, [[0, 1], [2, 3]])])
    booted['num_cpus_per_core'] = 2
    return booted


def all_shared():
    return machine([[0, 1]], [[0, 1]], [[0], [1]], [cache('L1', 32 * KIB, [[0, 1]]), cache('L2', MIB, [[0, 1]])])


@pytest.mark.parametrize('processor, level', [(two_sockets(), 'L2'), (without_hardware_threads(), 'L2'), (sockets_of_one_cpu(4), 'L2'),
                                              (machine([[0]], [[0]], [[0]], [cache('L1', 32 * KIB, [[0]])]), 'L1'), (all_shared(), None)])
def test_the_largest_cache_of_one_core(processor, level):
    assert topology.private_level(processor) == level
    with pytest.raises(PlumblineError, match='does not tell the sizes of the caches'):
        topology.private_level(machine([[0]], [[0]], [[0]], []))


@pytest.mark.parametrize('level, cpus, size', [
    ('L1', [0], 16 * KIB), ('L1', [0, 1, 2, 3], 64 * KIB), ('L1', [0, 16], 16 * KIB),
    ('L2', [0], 256 * KIB), ('L2', range(16), 4 * MIB),
    ('L3', [0], 16 * MIB), ('L3', [0, 3], 16 * MIB), ('L3', [0, 4], 32 * MIB),
    ('L3', range(16), 64 * MIB),
    ('memory', [0], 512 * MIB), ('memory', range(16), 512 * MIB)])
def test_working_sets_count_each_cache_once(level, cpus, size):
    assert topology.working_set(two_sockets(), level, cpus) == size


@pytest.mark.parametrize('ours, size', [(None, 1920), (400, 1600), (24, 480), (4, 480)])
def test_memory_is_larger_than_what_is_ours_and_no_smaller_than_what_may_be(ours, size):
    '''A virtual machine of two cores, with 480 MiB of cache, most of which is somebody else's.'''
    large = machine([[0, 1]], [[0, 1]], [[0], [1]], [{'type': 'L3', 'size': 480 * MIB, 'cpusets': ['0x3']}])
    assert topology.working_set(large, 'memory', [0], ours=ours and {'L3': ours * MIB}) == size * MIB
    if ours == 4:       # in little memory
        assert topology.working_set(large, 'memory', [0], 400 * MIB, {'L3': 4 * MIB}) == 50 * MIB


@pytest.mark.parametrize('threads, ours, size', [(1, 32, 300), (2, 32, 300), (4, 32, 512), (16, 32, 1200), (16, None, 1200), (16, 2, 300)])
def test_a_team_holds_more_of_a_cache_than_the_one_thread_that_measured_it(threads, ours, size):
    '''16 cores with 300 MiB: one thread held 32 of it, and what 16 streamed through 300 MiB was not memory's.'''
    cpus = list(range(16))
    large = machine([cpus], [cpus], [[cpu] for cpu in cpus], [{'type': 'L3', 'size': 300 * MIB, 'cpusets': ['0xffff']}])
    assert topology.working_set(large, 'memory', cpus[:threads], ours=ours and {'L3': ours * MIB}) == size * MIB


@pytest.mark.parametrize('caches', [[], [{'type': 'L1', 'size': 0, 'cpusets': ['0x1']}]])
def test_a_topology_without_sizes_of_caches_is_said(caches):
    '''As of a virtual machine for 64-bit Arm, whose kernel knows that there is an L1, and no more.'''
    bare = machine([[0]], [[0]], [[0]], caches)
    with pytest.raises(PlumblineError, match='does not tell the sizes of the caches.* give `processor` of the partition'):
        topology.working_set(bare, 'memory', [0])
    assert topology.levels(bare) == ['memory'] and 'does not tell the sizes' in topology.working_sets(bare, [0])[1]['memory']


def test_memory_is_long_enough_and_capped_at_an_eighth():
    assert topology.working_set(server_with_small_l3(), 'memory', [0]) == 256 * MIB
    # Four times 32 MiB are 128 MiB, 256 MiB are wanted, 100 MiB are an eighth.
    assert topology.working_set(small_vm(), 'memory', [0], 800 * MIB) == 100 * MIB
    assert topology.working_set(small_vm(), 'memory', [0], 4096 * MIB) == 256 * MIB
    with pytest.raises(PlumblineError, match='an eighth of it is 63 MiB.*hold 32 MiB.*512 MiB'):
        topology.working_set(small_vm(), 'memory', [0], 504 * MIB)


def test_what_memory_is_asked_for_is_enough_for_what_a_test_holds():
    '''triad_alignment: five sets of arrays and the limit streams, each up to 1.1 times the working set; src/harness/cases.c refuses more than 0.9.'''
    one = machine([[0]], [[0]], [[0]], [cache('L3', 256 * MIB, [[0]])])
    assert 6.6 * topology.working_set(one, 'memory', [0], 4 * 2**30) < 0.9 * 4 * 2**30
    with pytest.raises(PlumblineError, match='ask for 4 GiB of memory at least'):
        topology.working_set(one, 'memory', [0], 4 * 2**30 - 8)


def test_a_level_that_is_unknown_or_cannot_be_isolated_is_said():
    # One core: half of 7.5 MiB is 3.75 MiB, twice its L2 is 4 MiB.
    with pytest.raises(PlumblineError, match='L3 cannot be isolated.*3.75 MiB.*2 x L2 .2 MiB'):
        topology.working_set(server_with_small_l3(), 'L3', [0])
    sizes, skipped = topology.working_sets(server_with_small_l3(), [0, 1], 2**36)
    assert sizes == {'L1': 48 * KIB, 'L2': 2 * MIB, 'memory': 256 * MIB}
    assert list(skipped) == ['L3'] and skipped['L3'].startswith('L3 cannot be isolated')
    # 8 cores with 1 MiB of L2 share 32 MiB of L3: exactly twice.
    assert topology.working_set(container_host(), 'L3', range(8)) == 16 * MIB
    with pytest.raises(PlumblineError, match='no caches L4 .* L1, L2, L3'):
        topology.working_set(small_vm(), 'L4', [0])
    with pytest.raises(PlumblineError, match='CPUs 7 reach no L1'):
        topology.working_set(small_vm(), 'L1', [7])


# --- what is allowed; of quotas also test_native.py, by which C and Python read the same ---

def test_cpu_list():
    assert topology.cpu_list({3, 0, 1, 2, 8}) == '0-3,8'
    assert topology.cpu_list([]) == ''


@pytest.mark.parametrize('files, limit', [
    ({'proc/self/cgroup': '0::/job/step\n', 'sys/fs/cgroup/job/step/memory.max': 'max\n', 'sys/fs/cgroup/job/memory.max': '4194304\n'}, 4 * MIB),
    ({'proc/self/cgroup': '5:memory:/docker/7\n0::/\n', 'sys/fs/cgroup/memory/memory.limit_in_bytes': '8388608\n'}, 8 * MIB),
    ({'proc/self/cgroup': '5:memory:/\n', 'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n'}, None), ({}, None)])
def test_memory_is_what_the_cgroup_leaves_of_the_nodes(tmp_path, files, limit):
    assert cgroup.memory(rfm.laid(tmp_path, files)) == (limit or os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'))


@pytest.mark.parametrize('files', [
    {}, {'proc/self/cgroup': '0::/\n'},
    {'proc/self/cgroup': '1:cpu:/\n', 'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
     'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n'}])
def test_no_quota(tmp_path, files):
    assert cgroup.cpu_quota(rfm.laid(tmp_path, files)) is None
