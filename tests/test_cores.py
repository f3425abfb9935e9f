'''The matrix of core-to-core latency and the cores' clocks: the program, and what is made of its numbers.'''

import contextlib
import ctypes
import functools
import itertools
import os
import pathlib
import runpy
import subprocess
import time
from types import SimpleNamespace

import numpy as np
import pytest

import rfm
from native import CPUS, MEASURED, SOURCE, environment, output_of, two_cpus
from plumbline.analysis import cores, handovers, levels
from plumbline.errors import PlumblineError
from plumbline.model import metrics, records
from plumbline.report import figures
from plumbline.system import topology

#: ns between two CPUs by what they truly share.
TRUE_NS = {'core': 11, 'L3': 26, 'numa': 95, 'socket': 105, 'node': 210}


# --- the program ------------------------------------------------------------------------------------------------------

def rows_of(record, key):
    return np.array(record['cores'][key], dtype=float)


@two_cpus
def test_pairs_and_clocks_are_measured(build):
    found = build.measured('cores', '--variants', 'all', '--threads', 2, '--size', 10, *MEASURED).measurements
    assert [(record['variant'], record['valid'], record['max_error']) for record in found] == [
        ('handover', True, 0), ('alone', True, 0), ('clock', True, 0)]
    handover, alone, clock = found
    assert handover['options']['rounds'] == 1 and handover['options']['virtual'] in ('yes', 'no', 'not known')
    # Ten handovers there and back, three times, and one more.
    assert handover['bytes'] == 2 * 31 * 64
    assert rows_of(handover, 'handover').shape == (10, 1) and rows_of(alone, 'alone').shape == (10, 3)
    known = [values[np.isfinite(values)] for values in (rows_of(handover, 'handover'), rows_of(alone, 'alone')[:, 2])]
    assert all((values > 1).all() and (values < 1e5).all() for values in known)
    assert set(map(tuple, rows_of(alone, 'alone')[:, :2])) == {(0, 1)}
    for key, least, most in (('clock_one', 50, 1e4), ('clock_all', 50, 1e4), ('additions_one', 0.1, 20), ('additions_all', 0.1, 20)):
        assert rows_of(clock, key).shape == (10, 2)
        assert least < np.nanmedian(rows_of(clock, key)) < most or os.uname().machine not in ('x86_64', 'aarch64')


def of_shared_cpu(programs):
    '''The record of a team that is moved to one CPU as soon as it is there.'''
    running = subprocess.Popen([str(x) for x in (programs.path('cores'), '--threads', 2, '--samples', 40, '--passes', 30, '--probes', 'off')],
                               stdout=subprocess.PIPE, text=True, env=environment())
    machine = running.stdout.readline()     # the team is there
    while running.poll() is None:
        for thread in os.listdir(f'/proc/{running.pid}/task') if os.path.exists(f'/proc/{running.pid}/task') else ():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), CPUS[:1])
        time.sleep(0.02)
    found, = records.parse(machine + running.stdout.read()).measurements
    assert running.returncode == 0 and found['valid']
    return found


@two_cpus
def test_threads_that_come_to_share_a_cpu_are_not_known_and_hang_nobody(programs):
    '''It takes a tenth of a second: on a busy machine they may be moved when it is over.'''
    assert any(np.isnan(rows_of(of_shared_cpu(programs), 'handover')[1:]).any() for _ in range(5))


@pytest.mark.parametrize('program, options, told', [
    ('cores', '--threads 1', 'a cache line is handed over between cores'), ('cores-serial', '', 'of the OpenMP build'),
    pytest.param('cores', '--threads 1,2', 'at least 2', marks=two_cpus), ('cores', '--threads 100000', 'CPUs are allowed'),
    pytest.param('cores', '--threads 2 --size 2e6', 'at most 1000000', marks=two_cpus),
])
def test_what_cannot_be_run_is_one_line(programs, program, options, told):
    found = programs.run(program, *options.split())
    assert (found.code, found.text, len(found.errors.splitlines())) == (2, '', 1)
    assert found.errors.startswith('plumbline: --') and told in found.errors


def test_many_threads_on_few_cpus_meet_in_pairs(tmp_path):
    here = SOURCE.parent / 'tests/native_cores.c'
    output_of('cc', '-std=gnu17', '-O2', '-Wall', '-Wextra', '-Werror', '-pthread', f'-I{SOURCE}/harness', f'-I{SOURCE}/kernels/cores', here,
              *(SOURCE / file for file in ('kernels/cores/handovers.c', 'kernels/cores/clocks.c', 'harness/handover.c', 'harness/tournament.c')),
              '-lm', '-o', tmp_path / 'many')
    assert output_of(tmp_path / 'many', timeout=300) == ''


@pytest.fixture(scope='module')
def sparse(tmp_path_factory):
    '''What is looked at sparsely, and where a pair stands.'''
    folder = tmp_path_factory.mktemp('sparse')
    (folder / 'pair.c').write_text('''
        #include "kernel.h"
        long pair(int n, int a, int b) { return (long)cores_pair(n, a, b); }
        void pl_barrier(void) {}
        double pl_hand_over(pl_relay *r, int side, uint32_t epoch, pl_relay_length l) { return 0; }
        double pl_core_clock(double seconds) { return 0; }
        double pl_core_additions(double seconds, double clock) { return 0; }
    ''')
    output_of('cc', '-shared', '-fPIC', f'-I{SOURCE}/harness', f'-I{SOURCE}/kernels/cores', folder / 'pair.c',
              SOURCE / 'kernels/cores/handovers.c', SOURCE / 'kernels/cores/clocks.c', SOURCE / 'harness/tournament.c',
              '-o', folder / 'sparse.so')
    return ctypes.CDLL(str(folder / 'sparse.so'))


@pytest.mark.parametrize('threads', [2, 3, 8, 31, 128, 257])
def test_what_is_looked_at_sparsely_moves_on(sparse, threads):
    assert [sparse.pair(threads, a, b) for a, b in itertools.combinations(range(threads), 2)] == list(range(threads * (threads - 1) // 2))
    each, lower, upper = sparse.cores_looked_at(threads), ctypes.c_int(), ctypes.c_int()
    assert each == min(threads, 8)
    seen = [sparse.cores_looked_at_is(threads, sample, k) for sample in range(-(-threads // each)) for k in range(each)]
    assert set(seen) == set(range(threads)) and all(len(set(seen[i:i + each])) == each for i in range(0, len(seen), each))
    pairs = set()
    for sample, k in itertools.product(range(3 * threads), range(sparse.cores_pairs_alone(threads))):
        sparse.cores_pair_alone(threads, sample, k, ctypes.byref(lower), ctypes.byref(upper))
        pairs.add((lower.value, upper.value))
    assert all(0 <= a < b < threads for a, b in pairs) and len(pairs) >= min(threads * (threads - 1) // 2, 4 * threads)


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
    ''':class:`handovers.Handover` of pairs that take ``ns``, shape (p,) or (samples, p).'''
    generator = np.random.default_rng(seed)
    rows = ns * np.exp(noise * generator.standard_normal((samples, np.shape(ns)[-1])))
    record = {'kernel': 'cores', 'variant': 'handover', 'cpus': list(cpus), 'seconds': [1.0] * samples,
              'cores': {'handover': [[None if np.isnan(x) else x for x in row] for row in rows]}}
    return handovers.handover(record, claimed)


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
    return handovers.Clocks(found.cpus, one, all_of_them, one / one * 4, np.broadcast_to(4 * np.asarray(left), (samples, n)))


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


def test_values_here_and_there_are_no_level_and_a_while_of_one_pair_is():
    generator = np.random.default_rng(4)
    values = 30 * np.exp(0.05 * generator.standard_normal((12, 2000)))
    values[generator.integers(0, 12, 15), generator.integers(0, 2000, 15)] *= 4
    assert levels.boundaries(values).size == 0
    values = np.full((60, 1), 30.0)
    values[40:50] = 150
    found = levels.boundaries(values)
    assert found.size == 1 and levels.usual(levels.of(values, found)) == (0, pytest.approx(50 / 60))


# --- healthy machines ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('shape, seen', [({'of_cache': 2}, 1), ({'of_cache': 3}, 1), ({'of_cache': 16}, 1), ({'caches': 2}, 2),
                                         ({'sockets': 2, 'caches': 2, 'of_cache': 3}, 3), ({'sockets': 2, 'caches': 8, 'of_cache': 4, 'numa': 4}, 3)])
def test_healthy_machines_have_no_findings(shape, seen):
    for seed in range(1 if shape.get('caches') == 8 else 5):
        found = healthy(seed, **shape)
        assert len(found.boundaries) + 1 == seen
        assert cores.findings(found, clocks(found), np.ones(5), machine(**shape)) == []
        assert cores.of_topology(found, clocks(found)) == 1
        assert cores.of_median(found) is None or cores.of_median(found) > 0.9


def test_hardware_threads_that_the_topology_names_are_no_finding_and_kinds_are_ordered_by_what_is_shared():
    processor = machine(caches=2, threads=2)
    cpus = topology.cpu_order(processor, smt=True)
    found = measured(processor, true_ns(processor, cpus), cpus)
    assert [name for name, _ in found.kinds()] == ['core', 'L3', 'socket'] and len(found.boundaries) == 2
    left = clocks(found, left=0.5)
    assert cores.findings(found, left) == [] and cores.of_topology(found, left) == 1
    # Several NUMA nodes below one last-level cache: a node is nearer than the cache.
    processor = machine(of_cache=8, numa=2)
    assert topology.nearest_shared(processor, [0, 1, 4])[0] == ['core', 'L2', 'numa', 'L3', 'socket', 'node']
    assert topology.nearest_shared(processor, [0, 1, 4])[1] == [[-1, 2, 3], [2, -1, 3], [3, 3, -1]]
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


def test_a_core_of_low_clock_and_that_of_all_over_one():
    found = healthy(of_cache=8)
    speeds = clocks(found, all_of_them=np.where(np.arange(8) == 3, 1800, 3000))
    assert names(cores.findings(found, speeds)) == [cores.LOW_CLOCK] and 'CPU 3 has 0.60' in str(cores.findings(found, speeds)[0])
    found = healthy(of_cache=16)
    assert np.median(clocks(found).ratio) == pytest.approx(3000 / 3500, rel=0.01)


def test_cores_that_differ_by_design_are_compared_with_their_own():
    '''Eight fast cores, and eight that hand over and compute at two thirds of their speed; one of the latter is an outlier.'''
    kinds = [list(range(8)), list(range(8, 16))]
    processor = machine(of_cache=16)
    pairs = np.array(list(itertools.combinations(range(16), 2)))
    ns = true_ns(processor, range(16)) * np.choose((pairs >= 8).sum(axis=1), [1, 1.3, 1.6])
    clock = np.where(np.arange(16) < 8, 4500, 3000)
    found = measured(processor, ns, range(16))
    assert cores.LOW_CLOCK in names(cores.findings(found, clocks(found, all_of_them=clock)))
    healthy_clocks = clocks(found, all_of_them=clock)
    assert cores.findings(found, healthy_clocks, kinds=kinds) == [] and cores.of_topology(found, healthy_clocks, kinds) == 1
    assert cores.of_median(found, kinds) > 0.9 and cores.lowest_clock(found, healthy_clocks, kinds).min() > 0.9
    clock[11] = 2000
    slow = measured(processor, ns * np.where((pairs == 11).any(axis=1), 1.6, 1), range(16))
    said = cores.findings(slow, clocks(slow, all_of_them=clock), kinds=kinds)
    assert names(said) == [cores.SLOW_CORE, cores.LOW_CLOCK] and all('CPU 11' in str(finding) for finding in said)
    assert np.median(cores.lowest_clock(slow, clocks(slow, all_of_them=clock), kinds)) == pytest.approx(2 / 3, rel=0.01)


def test_a_kind_of_too_few_cores_is_not_ranked():
    found = healthy(of_cache=8)
    kinds = [[0, 1, 2], [3, 4], [5, 6], [7]]
    assert cores.of_median(found, kinds) is None and cores.lowest_clock(found, clocks(found), kinds) is None
    assert cores.of_topology(found, kinds=kinds) == 1
    assert cores.of_topology(found, kinds=[[cpu] for cpu in range(8)]) is None
    assert cores.findings(found, clocks(found), kinds=[[cpu] for cpu in range(8)]) == []


CPU = '.sys.devices.system.cpu.cpu'


def made_by(vendor, clocks, highest=None):
    said = {'.proc.cpuinfo': f'vendor_id\t: {vendor}', **{f'{CPU}{cpu}.cpufreq.cpuinfo_max_freq': clock for cpu, clock in enumerate(clocks)}}
    return said | {f'{CPU}{cpu}.acpi_cppc.highest_perf': value for cpu, value in enumerate(highest or ())}


@pytest.mark.skipif(not {0, 1} <= {*CPUS}, reason='the CPUs 0 and 1 may not both be used here')
@pytest.mark.parametrize('said, kinds', [
    ({'.sys.devices.cpu_core.cpus': '0,4095', '.sys.devices.cpu_atom.cpus': '1,4094'}, [[0], [1]]),
    ({'.sys.devices.cpu_core.cpus': '0-1', '.sys.devices.cpu_atom.cpus': '4094-4095'}, None),       # those of the other kind are not ours
    ({'.sys.devices.cpu_core.cpus': '0'}, [[0], [1]]),      # a kind with counters that are not known here
    ({f'{CPU}0.cpu_capacity': '1024', f'{CPU}1.cpu_capacity': '446'}, [[0], [1]]),
    ({f'{CPU}0.cpu_capacity': '1024', f'{CPU}1.cpu_capacity': '1015'}, None),       # sockets a bin apart
    ({f'{CPU}0.cpu_capacity': '1024'}, None),
    ({f'{CPU}0.cpu_capacity': '1024', f'{CPU}1.cpu_capacity': '1024',
      '.sys.devices.cpu_core.cpus': '0', '.sys.devices.cpu_atom.cpus': '1'}, [[0], [1]]),
    # AMD's compact cores: Zen 5 and 5c, or where acpi-cpufreq gives one clock for all by their L3; preferred cores are of one kind.
    (made_by('AuthenticAMD', ('5157895', '3306000'), ('196', '124')), [[0], [1]]),
    (made_by('AuthenticAMD', ('5881000', '5482000'), ('236', '166')), None),
    # A core that has lost its turbo is no kind of its own: boost switched off, or a processor of Intel's that says less of it.
    (made_by('AuthenticAMD', ('3700000', '2400000'), ('255', '255')), None), (made_by('AuthenticAMD', ('3700000', '2400000')), None),
    (made_by('GenuineIntel', ('3700000', '2400000'), ('37', '24')), None),
    ({f'{CPU}0.cache.index3.size': '16384K', f'{CPU}1.cache.index3.size': '8192K'}, [[0], [1]]),
    ({f'{CPU}0.cache.index3.size': '16384K', f'{CPU}1.cache.index3.size': '16384K'}, None),
    ({'.sys.devices.cpu_core.cpus': '0-3', '.proc.cpuinfo': 'CPU implementer\t: 0x41\nCPU part\t: 0xd0c'}, None), ({}, None)])
def test_kinds_of_cores_as_the_kernel_has_them(programs, tmp_path, said, kinds):
    library = tmp_path / 'hybrid.so'
    output_of('cc', '-shared', '-fPIC', '-o', library, pathlib.Path(__file__).parent / 'interpose/hybrid.c')
    for name, text in said.items():
        (tmp_path / name).write_text(text + '\n')
    found = programs.measured('triad', '--size', 1000, '--variants', 'plain', '--samples', 10, '--min-time', '0.0001', on=(0, 1),
                              LD_PRELOAD=str(library), HYBRID=f'{tmp_path}/')
    machine = records.parse(found.text, 'made').machine
    assert machine.get('core_kinds') == kinds
    alone = programs.measured('triad', '--size', 1000, '--variants', 'plain', '--samples', 10, '--min-time', '0.0001', on=(1,),
                              LD_PRELOAD=str(library), HYBRID=f'{tmp_path}/', PLUMBLINE_AMONG='0-1')
    assert records.parse(alone.text, 'made').machine.get('core_kinds') == kinds
    assert 'implementer' not in said.get('.proc.cpuinfo', '') or (machine['midr'], machine['cpu_model']) == (
        {'implementer': '0x41', 'part': '0xd0c'}, None)


# --- virtual machines -----------------------------------------------------------------------------------------------------

def test_two_states_are_told_with_their_share():
    ns = np.full((60, 1), 150.)
    ns[10:25] = 27
    found = measured(machine(of_cache=2), ns, range(2), samples=60)
    said = cores.findings(found)
    assert names(said) == [cores.CHANGING]
    assert '1 of 1 pairs that share the L3: 26.8 ns in 25 %, 151 ns in 75 %' in said[0].text and 'with 2 changes' in said[0].text
    assert cores.moving(found).all() and cores.of_topology(found) == 1


@pytest.mark.parametrize('disturbed, judged', [(1, True), (40, False)])
def test_a_pair_that_moves_among_many_does_not_leave_the_latency_unjudged(disturbed, judged):
    ns = np.full((60, 120), 27.)
    ns[10:25, :disturbed] = 150
    found = measured(machine(of_cache=16), ns, range(16), samples=60)
    latency, = runpy.run_path(rfm.REPOSITORY / 'checks/compute/cores.py')['cores'].latencies(None, found, None)
    assert cores.moving(found).sum() == disturbed and (latency.unjudged is None) is judged


def test_pairs_that_do_not_answer_are_not_known():
    ns = true_ns(machine(), range(4))
    ns[1] = np.nan
    found = measured(machine(), ns, range(4))
    assert found.usual.tolist() == [0, -1, 0, 0, 0, 0] and cores.silent(found) == pytest.approx(1 / 6)
    assert cores.findings(found) == []
    with pytest.raises(PlumblineError, match='no two of the CPUs 0-1 have handed over'):
        measured(machine(of_cache=2), np.array([np.nan]), range(2))


def test_pairs_that_disturb_each_other():
    found = healthy(of_cache=4)
    rows = [[0, 1, 20., 2, 3, 20., np.nan, np.nan, np.nan]] * 20
    ratio = cores.together_over_alone(found, {'kernel': 'cores', 'variant': 'alone', 'seconds': [1.0] * 20, 'cores': {'alone': rows}})
    assert ratio.shape == (20,) and np.median(ratio) == pytest.approx(1.3, rel=0.05)
    assert names(cores.findings(found, alone=ratio)) == [cores.DISTURBED]


# --- a job's CPUs ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('cpus, found', [(range(4), []), (range(16), []), (range(5), []),
                                         ([0, 1, 8, 9], [('sockets', 2, 1), ('NUMA nodes', 2, 1), ('last-level caches', 2, 1)]),
                                         ([0, 1, 4, 5], [('last-level caches', 2, 1)]), ([0, 16, 1, 17], [])])
def test_cpus_that_lie_apart_although_there_was_room(cpus, found):
    assert topology.scattered(machine(sockets=2, caches=2, threads=2), cpus) == found


@pytest.mark.parametrize('mhz, ruling', [(1200, 'FAIL'), (2430, 'PASS'), (3100, 'PASS')])
def test_a_processor_that_is_capped_fails_on_its_first_day(mhz, ruling):
    '''Base clock 2500 MHz; no history.'''
    judged = rfm.by_shipped('cores', ['default', 'gnu'], metrics.Metric('of_base', 'all', np.full(20, mhz / 2500)))
    assert judged.verdict == ruling, judged.reason


@pytest.mark.parametrize('mhz, kernel, turbo, ruling', [
    (1500, 1500, True, 'FAIL'),             # the kernel's base clock has fallen with a limit
    (2900, 2100, True, 'PASS'),             # a profile, SST-PP, and turbo
    (2100, 2100, False, 'NO REFERENCE'),    # a profile without turbo, or a limit
    (1500, 2100, False, 'FAIL'), (2400, 2100, False, 'PASS'),
    (2500, 2500, None, 'PASS'), (1500, 1500, None, 'PASS')])     # no turbo; not Intel's, or a virtual machine: the kernel is believed
def test_a_base_clock_that_has_fallen_is_told_and_does_not_excuse_a_processor(mhz, kernel, turbo, ruling):
    notes, base = [], {'mhz': kernel, 'source': 'cpufreq'} | ({} if turbo is None else {'nominal_mhz': 2500, 'turbo': turbo})
    check = runpy.run_path(str(rfm.REPOSITORY / 'checks/compute/cores.py'))['cores']
    case = SimpleNamespace(plumbline=SimpleNamespace(of_machine={'base_clock': base}), note=notes.append, of_fellows=lambda *_: ())
    speeds = handovers.Clocks([0, 1], *[np.full((20, 2), float(mhz))] * 4)
    metric = {one.name: one for one in check.clocks(case, None, speeds, ())}['of_base.all']
    judged = rfm.by_shipped('cores', ['default', 'gnu'], metric)
    assert judged.verdict == ruling, judged.reason
    assert ('below the processor' in ' '.join(notes)) == (turbo is not None)
    assert (judged.unjudged is not None and 'SST-PP' in judged.reason) == (ruling == 'NO REFERENCE')


@pytest.mark.parametrize('slowest, others, ruling', [
    (0.88, None, 'PASS'), (0.82, None, 'FAIL'), (0.95, 'made up', 'PASS'), (0.75, 'made up', 'NO REFERENCE'), (0.6, 'made up', 'FAIL')])
def test_a_core_of_low_clock_fails_where_nobody_else_works(slowest, others, ruling):
    clock = np.where(np.arange(8) == 3, slowest * 3000.0, 3000.0) * np.linspace(0.98, 1.02, 160).reshape(8, 20).T
    check = runpy.run_path(str(rfm.REPOSITORY / 'checks/compute/cores.py'))['cores']
    case = SimpleNamespace(plumbline=SimpleNamespace(of_machine={}), all_cpus=range(8), skip_metric=lambda *_: None)
    case.of_fellows = functools.partial(check.of_fellows, case)
    metric = {one.name: one for one in check.clocks(case, None, handovers.Clocks(list(range(8)), *[clock] * 4), (), others)}['of_median.clock']
    judged = rfm.by_shipped('cores', ['default', 'gnu'], metric)
    assert judged.verdict == ruling, judged.reason


# --- the check, and its figures ---------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def run(measuring, tmp_path_factory):
    done = measuring(tmp_path_factory.mktemp('run')).reframe(*rfm.small(), '-p', 'gnu$', '-n', '^cores$', checks=rfm.REPOSITORY / 'checks/compute/cores.py')
    assert done.report, done.out
    return done


@two_cpus
def test_the_check_measures(run):
    case = run.cases()['cores']
    rfm.assert_measured(case)
    found = rfm.metrics_of(case)
    assert {'of_topology.pairs', 'clock.one', 'clock.all', 'clock_ratio.all'} <= set(found)
    base = case['plumbline']['machine']['base_clock']
    if base:
        assert 400 < base['mhz'] < 6000
        assert found['of_base.all']['value'] == pytest.approx(found['clock.all']['value'] / base['mhz'], rel=0.02)
        assert found['of_base.all']['reference'] == [1.0, -0.1, None]
    else:
        assert 'of_base.all' in {entry['metric'] for entry in case['plumbline']['skipped']}
    assert found['clock.all']['unit'] == 'MHz' and found['clock_ratio.all']['reference'] == [1.0, -0.55, None]
    latencies = [metric for name, metric in found.items() if name.startswith('latency.core_to_core.')]
    assert latencies and all(0 < metric['value'] < 10 and metric['unit'] == 'us' for metric in latencies)
    if len(CPUS) < 4:
        assert {'of_median.latency', 'of_median.clock'} <= {entry['metric'] for entry in case['plumbline']['skipped']}


@two_cpus
def test_the_page_shows_the_matrix_the_levels_and_the_clocks(run):
    drawn = list(figures.of_check('cores', [rfm.detail_of('cores', run.cases()['cores'])]))
    assert [title for title, _, _ in drawn] == ['Core-to-core latency', 'Levels of core-to-core latency', 'Clock of each core']
    (_, _, matrix), (_, _, table), (_, _, clock) = drawn
    assert np.array(matrix.data[0].customdata).shape == (len(CPUS),) * 2 and len(table.rows) >= 1 and len(clock.data) == 2


def detail(found):
    rows = found.samples.tolist()
    record = {'kernel': 'cores', 'variant': 'handover', 'cpus': found.cpus, 'seconds': [1.0] * len(rows), 'cores': {'handover': rows}}
    return {'check': 'cores', 'hostname': 'here', 'partition': 'p', 'environ': 'gnu', 'records': [record]}


def test_two_sockets_are_two_dark_blocks():
    found = healthy(sockets=2, of_cache=8)
    (_, _, figure), (_, _, table) = figures.of_check('cores', [detail(found)])
    ns = np.array(figure.data[0].customdata, dtype=float)
    assert np.nanmax(ns[:8, :8]) < 35 < 150 < ns[:8, 8:].min() and list(figure.layout.xaxis.ticktext)[:2] == ['0', '1']
    assert [row[0] for row in table.rows] == ['1', '2'] and table.rows[0][1:] == ('26.0 ns', '46.7 %', '56')


def test_what_cannot_be_drawn_says_why():
    found = detail(healthy())
    found['records'][0]['cores']['handover'].pop()
    (_, caption, figure), = figures.of_check('cores', [found])
    assert figure is None and 'field cores/handover: not 6 numbers' in caption
    (_, caption, figure), = figures.of_check('cores', [{**found, 'records': []}])
    assert figure is None and 'there are no records' in caption
