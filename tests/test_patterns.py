'''Patterns of messages over nodes: who sends to whom, the program in every MPI, a slow node, what the ports count, a simulated network, and
what is made of the numbers.'''

import ctypes
import itertools
import json
import runpy
import types

import numpy as np
import pytest

import rfm
from made_report import measurement
from mpi_native import MPIS, any_mpi, every_mpi, refused, variables
from native import MEASURED, SAMPLES, SOURCE, output_of
from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import records
from plumbline.mpi import patterns as model, ports
from plumbline.report import figures
from plumbline.simulation import network, patterns as simulation

PATTERNS = ('pair', 'oneway', 'bisection', 'ring', 'grid2', 'grid3', 'matchings', 'incast', 'alltoall')
FEW = (*SAMPLES, '--passes', '2')


# --- who sends to whom ----------------------------------------------------------------------------------------------------

class Job(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ('rank', 'per_node', 'nodes', 'used', 'rounds', 'streams')] + [('seed', ctypes.c_long)]


class Steps(ctypes.Structure):
    _fields_ = [('count', ctypes.c_int), ('to', ctypes.POINTER(ctypes.c_int)), ('source', ctypes.POINTER(ctypes.c_int)), ('counts', ctypes.c_bool),
                ('rank', ctypes.c_int)]


@pytest.fixture(scope='module')
def messages(tmp_path_factory):
    '''Function (pattern, nodes, of a job) -> a list for each round: (sender, receiver) of all its messages, as the senders and as the
    receivers have them.'''
    mpi = any_mpi()
    library = tmp_path_factory.mktemp('traffic') / 'traffic.so'
    output_of(MPIS[mpi]['cc'], '-shared', '-fPIC', '-I', SOURCE / 'harness', '-I', SOURCE / 'mpi/pingpong', '-o', library,
              *(SOURCE / name for name in ('mpi/patterns/traffic.c', 'mpi/pingpong/exchanges.c', 'harness/tournament.c', 'harness/clock.c')), env=variables(mpi))
    code = ctypes.CDLL(str(library))

    def plan(pattern, nodes, per_node=1, used=None, rounds=0, streams=1, seed=1):
        number, found = PATTERNS.index(pattern), []
        job = Job(0, per_node, nodes, used or per_node, rounds, streams, seed)
        most = code.traffic_messages(number, ctypes.byref(job))
        for at in range(code.traffic_rounds(number, ctypes.byref(job))):
            sent, received = [], []
            for rank in range(nodes * per_node):
                to, source = (ctypes.c_int * most)(), (ctypes.c_int * most)()
                job.rank, steps = rank, Steps(0, to, source, False)
                code.traffic_plan(number, ctypes.byref(job), at, ctypes.byref(steps))
                sent += [(rank, to[i]) for i in range(steps.count) if to[i] >= 0]
                received += [(source[i], rank) for i in range(steps.count) if source[i] >= 0]
            found.append((sent, received))
        return found
    return plan


@pytest.mark.parametrize('nodes', [2, 3, 4, 5, 8, 33])
@pytest.mark.parametrize('pattern', [name for name in PATTERNS if name not in ('ring', 'grid2', 'grid3')])
def test_every_message_has_a_sender_and_a_receiver_on_another_node(messages, pattern, nodes):
    for per_node, used in ((1, 1), (3, 2)):
        for sent, received in messages(pattern, nodes, per_node, used):
            assert sorted(sent) == sorted(received) and sent
            for a, b in sent:
                assert a // per_node != b // per_node and a % per_node == b % per_node < used
    assert len(messages(pattern, nodes, rounds=1)) == 1


@pytest.mark.parametrize('nodes', [2, 5, 8, 64, 101])
def test_matchings_pair_all_nodes_and_no_pair_twice(messages, nodes):
    rounds = [sent for sent, _ in messages('matchings', nodes)]
    assert len(rounds) == nodes - 1 + nodes % 2
    for sent in rounds:
        assert len({a for a, _ in sent}) == len(sent) == nodes - nodes % 2 and all((b, a) in sent for a, b in sent)
    assert sorted(itertools.chain(*rounds)) == sorted(itertools.permutations(range(nodes), 2))


def test_patterns_by_hand_and_by_a_seed(messages):
    assert [sorted(sent) for sent, _ in messages('pair', 6)] == [[(i, i + 3), (i + 3, i)] for i in range(3)]
    assert [sent for sent, _ in messages('oneway', 7, streams=2)] == [[(i, i + 3)] * 2 for i in range(3)]
    (sent, _), = messages('bisection', 5)
    assert sorted(sent) == [(0, 2), (1, 3), (2, 0), (3, 1)]
    assert [sorted(sent) for sent, _ in messages('incast', 9, rounds=3)] == [[(i, at) for i in range(9) if i != at] for at in (0, 3, 6)]
    (sent, _), = messages('alltoall', 6)
    assert sorted(sent) == sorted(itertools.permutations(range(6), 2))
    first, again, other = (messages('matchings', 32, rounds=4, seed=seed) for seed in (7, 7, 8))
    assert first == again != other and len(first) == 4


# --- the program ------------------------------------------------------------------------------------------------------------

#: Tells how many requests were waited for at once, at most.
MOST_REQUESTS = '''
#include <mpi.h>
#include <stdio.h>
static int most;
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    most = count > most ? count : most;
    return PMPI_Waitall(count, requests, statuses);
}
int MPI_Finalize(void)
{
    fprintf(stderr, "at once: %d\\n", most);
    return PMPI_Finalize();
}
'''


@every_mpi
def test_every_pattern_is_timed_and_every_byte_arrives(mpi, mpi_programs):
    found = mpi_programs(mpi).measured(4, 'patterns', '--variants', ','.join(name for name in PATTERNS if name != 'grid3'), '--size', '8,65541', *FEW)
    # Messages of a node in a round, and rounds, of four nodes.
    expected = {'pair': (1, 2), 'oneway': (1, 2), 'bisection': (1, 1), 'ring': (2, 1), 'grid2': (4, 1), 'matchings': (1, 3), 'incast': (3, 4),
                'alltoall': (3, 1)}
    assert [record['variant'] for record in found.measurements] == 2 * list(expected)
    for record in found.measurements:
        assert (record['valid'], record['max_error'], record['ranks']) == (True, 0, 4)
        sends, rounds = expected[record['variant']]
        pattern = record['pattern']
        assert model.rounds(record).shape == (rounds, 3)
        assert pattern['bytes'] == pattern['repeats'] * sends * record['size'] and record['bytes'] == rounds * pattern['bytes']
        known = np.array([seconds is not None for seconds in pattern['seconds']])
        assert list(known) == {'oneway': [False, False, True, True]}.get(record['variant'], [True] * 4)
        assert model.rounds(record).sum(axis=0).max() < max(record['seconds'])


def test_ranks_of_a_node_send_together(mpi_programs):
    found = mpi_programs(any_mpi()).measured(4, 'patterns', '--variants', 'pair,matchings', '--per-node', '2', '--used', '1,2', '--size', '64', *FEW)
    assert [(record['variant'], record['options']['used']) for record in found.measurements] == [
        (variant, used) for used in (1, 2) for variant in ('pair', 'matchings')]
    for record in found.measurements:
        one, used = record['pattern'], record['options']['used']
        assert one['nodes'] == 2 and one['bytes'] == one['repeats'] * used * 64
        assert [seconds is None for seconds in one['seconds']] == [used == 1 and rank % 2 == 1 for rank in range(4)]


def test_cases_by_turns_have_samples_and_requests_of_their_own(mpi_programs, tmp_path):
    mpi, library = any_mpi(), tmp_path / 'most.so'
    (tmp_path / 'most.c').write_text(MOST_REQUESTS)
    output_of(MPIS[mpi]['cc'], '-shared', '-fPIC', '-o', library, tmp_path / 'most.c', env=variables(mpi))
    options = ('--variants', 'pair', '--size', '8', '--streams', '1,64', *SAMPLES, '--passes', '2,200')
    found = mpi_programs(mpi).measured(2, 'patterns', *options, LD_PRELOAD=library)
    assert [(record['options']['streams'], record['passes']) for record in found.measurements] == [(1, 2), (1, 200), (64, 2), (64, 200)]
    for record in found.measurements:
        assert (model.rounds(record) < record['seconds']).all()
    assert 'at once: 128' in found.errors       # sent and received


@pytest.mark.parametrize('program', ['patterns', 'patterns-once'])
def test_messages_of_others_and_too_few_are_found(mpi_broken, program):
    found = mpi_broken.run(3, program, '--variants', 'all', '--size', '64', *FEW)
    assert found.code == 1 and 'the result is wrong' in found.errors
    assert not [record['variant'] for record in found.measurements if record['valid']]


def test_what_cannot_be_run_is_one_line(mpi_programs):
    refused(mpi_programs(any_mpi()), 'patterns', (1, '', 'plumbline: patterns needs 2 nodes, it was started on 1: start it with mpirun -np 2'),
            (3, '--per-node 2', 'plumbline: --per-node 2: 3 processes are no whole number of nodes: start as many on each'),
            (2, '--nodes 3', 'plumbline: --nodes 3: there are 2: give 2 to 2 of them, or 0 for all'),
            (2, '--used 2', 'plumbline: --used 2: a node has 1 ranks: give as many at most, or 0 for all'),
            (2, '--size 3e9', 'plumbline: --size 3000000000: MPI counts the bytes of a message with an int: give at most 2147483647'),
            (3, '--variants grid2', 'plumbline: --variants grid2: 3 nodes are no grid of 2 dimensions: leave the variant out'))


@pytest.mark.alone
@pytest.mark.parametrize('variant', ['matchings', 'incast'])
def test_a_node_that_is_slow_is_named(variant, mpi_programs, tmp_path):
    mpi, library = any_mpi(), tmp_path / 'slow.so'
    output_of(MPIS[mpi]['cc'], '-shared', '-fPIC', '-o', library, SOURCE.parent / 'tests/interpose/slow.c', env=variables(mpi))
    found = mpi_programs(mpi).measured(5, 'patterns', '--variants', variant, '--size', '200000', *MEASURED, LD_PRELOAD=library, SLOW_RANK=2, SLOW_US=12000)
    record, = found.measurements
    slowest, *named = model.told(record, [f'n{rank}' for rank in range(5)], 1, '0.2 MB')
    assert slowest.startswith(f'{variant}, 0.2 MB: slowest is rank 2 on n2, ')
    if variant == 'matchings':      # a sender that is slow delays all targets
        assert len(named) == 1 and named[0].startswith('slow node n2, 0.2 MB: exchanges messages ')
        assert model.worst_over_median(record, 1) < 0.5


# --- ports ----------------------------------------------------------------------------------------------------------------

@pytest.fixture
def faked(tmp_path):
    '''A folder as /sys, with an InfiniBand port and three network devices.  What grows is what the process that reads it has used of a CPU.'''
    counters = tmp_path / 'class/infiniband/mlx5_0/ports/1/counters'
    counters.mkdir(parents=True)
    for name, value in (('link_downed', '3'), ('port_rcv_data', '1000'), ('VL15_dropped', 'N/A (no PMA)'),
                        ('link_error_recovery', '255'), ('local_link_integrity_errors', '14')):
        (counters / name).write_text(value + '\n')
    (counters / 'symbol_error').symlink_to('/proc/self/schedstat')
    (other := tmp_path / 'class/infiniband/mlx5_0/ports/2/counters').mkdir(parents=True)
    for name in ('symbol_error', 'port_rcv_remote_physical_errors'):
        (other / name).write_text('65535\n')
    for device in ('eth0', 'eth1', 'lo'):
        statistics = tmp_path / 'class/net' / device / 'statistics'
        statistics.mkdir(parents=True)
        (statistics / 'rx_errors').write_text('7\n')
        if device != 'lo':
            (statistics.parent / 'device').mkdir()
    (tmp_path / 'class/net/eth1/statistics/rx_dropped').symlink_to('/proc/self/schedstat')
    return tmp_path


def test_what_ports_count_meanwhile_is_told(faked, mpi_programs):
    found = mpi_programs(any_mpi()).measured(2, 'patterns', '--ports', faked, '--size', '8', *FEW)
    record, = records.parse(found.text).ports
    node, = record['nodes']
    assert node['ports'].pop('mlx5_0/2') == {'symbol_error_full': 1, 'port_rcv_remote_physical_errors_full': 1}
    assert set(node['ports']) == {'mlx5_0/1', 'eth0', 'eth1'} and node['ports']['eth0'] == {}
    assert set(node['ports']['mlx5_0/1']) == {'symbol_error', 'link_error_recovery_full'} and set(node['ports']['eth1']) == {'rx_dropped'}
    known = ports.counted([record])
    host = node['host']
    assert known.ports == 3 and not known.unread and list(known.errors) == [(host, 'mlx5_0/1', name) for name in (
        'symbol_error', 'link_error_recovery_full')]
    assert ports.told(known.errors) == f"symbol_error {node['ports']['mlx5_0/1']['symbol_error']} on {host} mlx5_0/1, link_error_recovery_full 1 on {host} mlx5_0/1"
    full, waited = ports.notes(known)
    assert full == 'counters that are full count no more: clear them (perfquery -R), and measure again'
    assert waited.startswith('ports waited, or dropped packets: rx_dropped ') and waited.endswith(f' on {host} eth1')


def node(host, **counters):
    return {'host': host, 'ports': {'mlx5_0/1': counters} if counters else {}}


def of_ports(*nodes):
    record = {'record': 'ports', 'schema': 1, 'nodes': list(nodes)}
    assert schemas.complaint('record', record) is None
    return record


def test_errors_of_all_processes_are_added_and_waiting_is_no_error():
    found = ports.counted([of_ports(node('n1', port_xmit_wait=5), node('n2', link_downed=1)),
                           of_ports(node('n1', port_rcv_errors=2), node('n2', link_downed=1))])
    assert found.errors == {('n2', 'mlx5_0/1', 'link_downed'): 2, ('n1', 'mlx5_0/1', 'port_rcv_errors'): 2}
    assert list(ports.notes(found)) == ['ports waited, or dropped packets: port_xmit_wait 5 on n1 mlx5_0/1']
    found = ports.counted([of_ports(node('n1', rx_bytes=1), node('n2'), node('n3'))])
    assert found.ports == 1 and list(ports.notes(found)) == ['no port whose counters can be read: n[2-3]']
    assert ports.counted([of_ports(node('n1'))]).ports == ports.counted([]).ports == 0


@pytest.mark.parametrize('errors, words, is_one', [(1, 1, False), (2, 1, True), (100, 10**12, False), (400, 10**12, True)])
def test_a_link_may_have_the_wrong_bits_that_it_is_specified_for(errors, words, is_one):
    found = ports.counted([of_ports(node('n1', symbol_error=errors, port_rcv_data=words))])
    assert (len(found.errors), len(found.within)) == (int(is_one), int(not is_one))
    assert any(line.startswith('symbol errors within what a link is specified for') for line in ports.notes(found)) == (not is_one)


def test_an_error_of_the_first_run_is_not_gone_in_further_ones():
    look, case = runpy.run_path(str(rfm.REPOSITORY / 'checks/mpi/network_patterns.py'))['network_patterns'].read_rounds_and_ports, None
    for found in (node('n1', link_downed=1), node('n1', rx_bytes=1), node('n1', rx_bytes=1)):
        case = types.SimpleNamespace(is_dry_run=lambda: False, measurements=[], processes=1, note=print, earlier=case,
                                     output=lambda found=found: json.dumps(of_ports(found)))
        look(case)
        assert case.counted.errors == {('n1', 'mlx5_0/1', 'link_downed'): 1}


# --- a described network --------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def built(simulated):
    '''The simulated program.'''
    return simulation.built(simulated.parents[2])


@pytest.fixture
def simulate(built, tmp_path):
    '''Function (topology, pattern) -> MB/s of each of 16 nodes of 5 GB/s.'''

    def run(topology, variant, nodes=16):
        path = tmp_path / 'network.yaml'
        path.write_text(f'schema: 1\nsource: made\ntopology: {topology}\nlatency: 1.0\nbandwidth: 5000\noverhead: 0.2\ncompute_rate: 1\n')
        return simulation.bandwidth(built, network.load(path), variant, nodes, 1, 2**18, tmp_path / 'run', rounds=8, streams=4, seed=1)
    return run


@pytest.mark.parametrize('variant', ['pair', 'oneway', 'grid2', 'grid3', 'matchings'])
def test_a_full_network_gives_each_node_its_link(simulate, variant):
    assert 4700 < simulate('{kind: switch}', variant) <= 5000


@pytest.mark.parametrize('variant, share', [('bisection', 0.5), ('ring', 1), ('matchings', 0.5), ('incast', 1), ('alltoall', 0.63)])
def test_a_tapered_network_gives_what_its_links_have(simulate, variant, share):
    '''Four nodes on a leaf, two links upwards: 12 of 15 messages of an all-to-all go there, in steps of which some do not.'''
    assert simulate('{kind: fat-tree, nodes_per_leaf: 4, uplinks: 2}', variant) == pytest.approx(5000 * share, rel=0.05)


def test_a_network_with_too_few_nodes_is_one_line(simulate):
    with pytest.raises(PlumblineError, match='the switch has 8 nodes, 16 are needed'):
        simulate('{kind: switch, nodes: 8}', 'ring')
    with pytest.raises(PlumblineError, match='too few processes for this pattern'):
        simulate('{kind: switch}', 'grid2', nodes=7)


def test_what_cannot_be_simulated_says_why(built, tmp_path, monkeypatch):
    monkeypatch.setattr(simulation, 'built', lambda: built)
    path = tmp_path / 'network.yaml'
    with pytest.raises(PlumblineError, match='network.yaml: No such file'):
        simulation.Expected(path, 8)
    path.write_text('schema: 1\nsource: made\ntopology: {kind: switch, nodes: 4}\nlatency: 1.0\nbandwidth: 5000\ncompute_rate: 1\n')
    expected = simulation.Expected(path, 8, per_node=1, size=64, rounds=1, streams=1, seed=1)
    assert expected.of('ring', 9, tmp_path) == (None, '9 nodes take long to simulate: -S network_patterns.simulated_nodes=9 does it')
    rate, reason = expected.of('ring', 5, tmp_path)
    assert rate is None and 'the switch has 4 nodes, 5 are needed' in reason and expected.of('ring', 4, tmp_path)[0] > 0


# --- the model --------------------------------------------------------------------------------------------------------------

def record(variant='matchings', rounds=((1.0,) * 10,), of_ranks=(1.0, 1.0, 1.0, 1.0), spread=0.01, size=2**20, **changed):
    found = measurement(kernel='patterns', variant=variant, size=size, ranks=len(of_ranks), pattern={
        'nodes': changed.pop('nodes', len(of_ranks)), 'repeats': 10, 'bytes': 1e9, 'rounds': [list(row) for row in rounds],
        'seconds': list(of_ranks), 'spread': [None if seconds is None else spread for seconds in of_ranks]}, **changed)
    assert schemas.complaint('record', found) is None
    return found


@pytest.mark.parametrize('nodes, grids', [(2, 0), (3, 0), (4, 1), (6, 1), (7, 0), (8, 2), (9, 1), (12, 2), (1000, 2), (997, 0)])
def test_a_grid_needs_two_nodes_along_each_dimension(nodes, grids):
    asked, said = model.VARIANTS['neighbour'], []
    case = types.SimpleNamespace(pattern='neighbour', nodes=nodes, cpus=range(nodes), small=8, large=0, rounds=8, seed=1, round_seconds=0.002, network='',
                                 ports='', skip_metric=lambda metric, reason, parts: said.extend(parts))
    words = runpy.run_path(str(rfm.REPOSITORY / 'checks/mpi/network_patterns.py'))['network_patterns'].options(case)
    assert words[1].split(',') == [*asked[:2 + grids]] and said == [*asked[2 + grids:]]


def test_rates_nodes_and_their_numbers_by_hand():
    found = record(rounds=[[1.0] * 10, [4.0] * 10, [1.0] * 10])
    assert model.bandwidth(found) == pytest.approx([3e9 / 6 / 1e6] * 10) and model.latency(found) == pytest.approx([0.2e6] * 10)
    assert model.alone(found) == pytest.approx([1000] * 10)     # one bad pair is not the others
    number, rate = model.of_worst_round(found)
    assert number == 2 and rate == pytest.approx([250] * 10)
    found = record(of_ranks=(1.0, 2.0, 1.0, 1.0, None, 3.0, None, None))
    seconds, spread = model.of_nodes(found, 2)
    assert list(seconds[:3]) == [2, 1, 3] and np.isnan(seconds[3]) and spread[0] == 0.01
    assert model.worst_over_median(found, 2) == pytest.approx(2 / 3)
    assert [model.growing(nodes) for nodes in (1, 2, 3, 8, 100)] == [[1], [2], [2, 3], [2, 4, 8], [2, 4, 8, 16, 32, 64, 100]]


def test_nodes_are_named_where_their_time_is_their_own():
    names = [f'n{i + 1}' for i in range(6)]
    slow = (1.0, 1.0, 2.0, 1.0, 1.01, 0.99)
    assert list(model.told(record('matchings', of_ranks=slow), names, 1, '1 MiB'))[1:] == [
        'slow node n3, 1 MiB: exchanges messages 2.00 times as slowly as the median node']
    bisection, = model.told(record('bisection', of_ranks=slow), names, 1, '1 MiB')
    assert bisection == 'bisection, 1 MiB: slowest is rank 2 on n3 or its partner on n6, 2.00 times the median'
    assert len(list(model.told(record('incast', of_ranks=(1.0, 1.1, 1.0, 1.0, 1.0, 1.0)), names, 1, '1 MiB'))) == 1
    assert len(list(model.told(record('matchings', of_ranks=slow, spread=0.9), names, 1, '1 MiB'))) == 1     # it may be chance


@pytest.mark.parametrize('rounds', [[], [[1.0], [1.0, 2.0]], [[0.0] * 10], [['x'] * 10], [[None] * 10]])
def test_rounds_that_cannot_be_are_refused(rounds):
    found = record()
    found['pattern']['rounds'] = rounds
    with pytest.raises(PlumblineError, match='field pattern/rounds: not a number of seconds above 0'):
        model.rounds(found)


# --- check, report --------------------------------------------------------------------------------------------------------

def drawn(**values):
    '''Figures of a check's results: name -> value, ``__`` for a point.'''
    metrics = [{'metric': name.partition('__')[0], 'subject': name.partition('__')[2].replace('__', '.'), 'value': value}
               for name, value in values.items()]
    detail = {'check': 'network_patterns', 'partition': 'p', 'environ': 'gnu-openmpi', 'hostname': 'n1', 'metrics': metrics,
              'records': [record('alltoall', of_ranks=(1.0,) * 8)]}
    return list(figures.of_check('network_patterns', [detail]))


def test_bars_have_what_two_nodes_have_alone_and_what_is_simulated():
    (title, caption, figure), (_, _, curve) = drawn(
        bandwidth__bisection=500.0, of_pair__bisection=0.5, of_simulated__bisection=0.8, bandwidth__alltoall=600.0, of_simulated__alltoall=0.75,
        bandwidth__alltoall__2=900.0, of_simulated__alltoall__2=0.9, bandwidth__pair=1000.0)
    assert title == 'Patterns of messages over all nodes' and 'two nodes alone' in caption
    measured, alone, simulated = figure.data
    assert list(measured.x) == [500, 600] and list(alone.x) == [1000, 1000] and list(simulated.x) == pytest.approx([625, 800])
    assert [list(line.x) for line in curve.data if line.name][:1] == [[2, 8]]
    (_, caption, figure), = drawn()
    assert figure is None and caption == 'Not drawn: nothing was measured.'
