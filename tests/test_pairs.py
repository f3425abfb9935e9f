'''Messages between all pairs of nodes: the schedule, the program in every MPI, what a simulated network with a slow node shows,
and what is made of the numbers.'''

import ctypes
import itertools
import json
import re
import xml.etree.ElementTree as tree

import numpy as np
import pytest

from mpi_native import any_mpi, every_mpi, refused
from native import SAMPLES, SOURCE, needs, output_of
from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import pairs as model
from plumbline.report import figures
from plumbline.simulation import network, platform_file

MANY = 32


# --- the schedule -----------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def schedule(tmp_path_factory):
    '''The functions of ``tournament.c``.'''
    needs('cc')
    library = tmp_path_factory.mktemp('schedule') / 'schedule.so'
    output_of('cc', '-shared', '-fPIC', '-o', library, SOURCE / 'harness/tournament.c')
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize('nodes', [2, 3, 4, 5, 6, 7, 8, 63, 64, 101, 256])
def test_every_pair_meets_once_and_nobody_is_in_two_pairs(schedule, nodes):
    rounds = schedule.pl_tournament_rounds(nodes)
    assert rounds == (nodes if nodes % 2 else nodes - 1)
    met = []
    for at in range(rounds):
        partners = [schedule.pl_tournament_partner(nodes, rank, at) for rank in range(nodes)]
        resting = [rank for rank, partner in enumerate(partners) if partner == -1]
        assert len(resting) == nodes % 2
        assert all(partner != rank and partners[partner] == rank for rank, partner in enumerate(partners) if rank not in resting)
        met += [(rank, partner) for rank, partner in enumerate(partners) if rank < partner]
    assert sorted(met) == list(itertools.combinations(range(nodes), 2))


# --- the program ------------------------------------------------------------------------------------------------------

@every_mpi
def test_every_pair_is_timed_and_every_byte_arrives(mpi, mpi_programs):
    for ranks in (2, 3) if mpi == any_mpi() else (3,):
        assert_timed(mpi_programs(mpi).measured(ranks, 'pairs', '--size', '0,8,100001', *SAMPLES, '--passes', 2), ranks)


def assert_timed(found, ranks):
    assert [record['size'] for record in found.measurements] == [0, 8, 100001]
    for record in found.measurements:
        assert (record['valid'], record['max_error'], record['ranks']) == (True, 0, ranks)
        assert record['options']['rounds'] == (1 if ranks == 2 else 3) and record['options']['messages'] % (ranks - 1) == 0
        seconds, spread = model.matrices(record)
        assert seconds.shape == (ranks, ranks) and (spread[~np.eye(ranks, dtype=bool)] >= 0).all()
        # A pair's messages both ways are part of a round, and the rounds of the sample.
        messages = record['passes'] * record['options']['messages'] // (ranks - 1)
        assert np.nanmax(seconds) * messages < max(record['seconds'])
        assert 0 < record['pairs']['shortest'] <= np.nanmin(seconds) * messages * 1.001
        assert record['bytes'] == messages * (ranks - 1) * record['size']


def test_passes_by_turns_have_samples_of_their_own(mpi_programs):
    few, many = mpi_programs(any_mpi()).measured(2, 'pairs', '--size', 8, *SAMPLES, '--passes', '2,200').measurements
    for record in (few, many):
        assert np.nanmax(model.matrices(record)[0]) * record['passes'] * record['options']['messages'] < np.median(record['seconds'])


@pytest.mark.parametrize('program', ['pairs', 'pairs-once'])
def test_messages_of_others_and_too_few_are_found(mpi_broken, program):
    found = mpi_broken.run(2, program, '--size', 64, *SAMPLES, '--passes', 2)
    assert found.code == 1 and 'the result is wrong' in found.errors
    assert found.measurements[0]['valid'] is False


def test_what_cannot_be_run_is_one_line(mpi_programs):
    refused(mpi_programs(any_mpi()), 'pairs', (1, '', 'plumbline: pairs needs 2 processes, it was started with 1: start it with mpirun -np 2'),
            (2, '--size 3e9', 'plumbline: --size 3000000000: MPI counts the bytes of a message with an int: give at most 2147483647'))


# --- a network of which one node, or one link, is slow ------------------------------------------------------------------

@pytest.fixture(scope='module')
def simulate(simulated, tmp_path_factory):
    '''Function (what to do to the platform) -> seconds of 1 MiB between 32 simulated nodes on one switch, 5 GB/s each.'''
    folder, built = tmp_path_factory.mktemp('simulated'), simulated.with_name('simulated-pairs')
    path = folder / 'network.yaml'
    path.write_text('schema: 1\nsource: made\ntopology: {kind: switch}\nlatency: 1.0\nbandwidth: 5000\noverhead: 0.2\ncompute_rate: 1\n')
    described = network.load(path)
    (folder / 'hosts.txt').write_text(platform_file.host_file(described, MANY))

    def run(spoil, size=2**18):
        root = tree.fromstring(platform_file.platform_xml(described, MANY, 1).split('simgrid.dtd">\n')[1])
        spoil(root[0])
        (folder / 'platform.xml').write_text('<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
                                             + tree.tostring(root, encoding='unicode'))
        printed = output_of('smpirun', '-no-privatize', '-np', str(MANY), '-platform', folder / 'platform.xml', '-hostfile',
                            folder / 'hosts.txt', *platform_file.settings(described), '--log=root.thresh:error', built, str(size), '1',
                            timeout=300)
        found = json.loads(next(line for line in printed.splitlines() if line.startswith('{"application"')))
        assert found['wrong'] == 0
        seconds = np.array(found['seconds'])
        np.fill_diagonal(seconds, np.nan)
        return seconds
    return run


def slow_link(zone, name, factor):
    '''A link gets so much slower.'''
    link, = (link for link in zone.iter('link') if link.get('id') == name)
    link.set('bandwidth', f"{float(link.get('bandwidth').removesuffix('MBps')) / factor:g}MBps")


def judged(seconds):
    return model.outliers(seconds, 0 * seconds, 10)


def test_a_healthy_simulated_network_has_no_outliers(simulate):
    seconds = simulate(lambda zone: None)
    assert np.nanmax(seconds) < 1.2 * np.nanmin(seconds)
    assert judged(seconds) == model.Outliers([], [], [])
    # Node 17 is slow, node 28 receives slowly, and 3 reaches 9 by a detour.

    def spoil(zone):
        for name, factor in (('node-17_switch', 2), ('switch_node-17', 2), ('switch_node-28', 1.5)):
            slow_link(zone, name, factor)
        tree.SubElement(zone, 'link', id='detour', bandwidth='1000MBps', latency='1us')
        route = tree.SubElement(zone, 'route', src='node-3', dst='node-9', symmetrical='NO')
        tree.SubElement(route, 'link_ctn', id='detour')
        zone[:] = sorted(zone, key=lambda child: ['host', 'router', 'link', 'route'].index(child.tag))
    found = judged(simulate(spoil))
    assert [node for node, _ in found.senders] == [17] and sorted(node for node, _ in found.receivers) == [17, 28]
    assert [pair for pair, _ in found.pairs] == [(3, 9)]
    assert found.senders[0][1] == pytest.approx(1.95, abs=0.1)


# --- the model --------------------------------------------------------------------------------------------------------

def made(nodes, slow=(), receives=(), links=(), noise=0.0, seed=1):
    '''Times with a slow node, a node that receives slowly, and slow links: (…, factor) each.'''
    rng = np.random.default_rng(seed)
    seconds = 1e-4 * (1 + noise * np.abs(rng.standard_normal((nodes, nodes))))
    for node, factor in slow:
        seconds[node, :] *= factor
        seconds[:, node] *= factor
    for node, factor in receives:
        seconds[:, node] *= factor
    for a, b, factor in links:
        seconds[a, b] *= factor
    np.fill_diagonal(seconds, np.nan)
    return seconds


@pytest.mark.parametrize('nodes', [4, 5, 8, 16, 300])
@pytest.mark.parametrize('noise', [0, 0.02])
def test_a_slow_node_is_no_slow_links_and_a_slow_link_is_no_slow_node(nodes, noise):
    slow, links = [(1, 2.0)], [(0, 3, 3.0)]
    for its, of in ([(slow, ()), ((), links)] if nodes != 300 else []) + [(slow, links)] * (nodes >= 8):
        found = judged(made(nodes, slow=its, links=of, noise=noise))
        assert found.nodes == [node for node, _ in its] and [pair for pair, _ in found.pairs] == [(a, b) for a, b, _ in of]
        assert not its or nodes < 8 or found.senders[0][1] == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize('nodes', [4, 30, 200])
def test_equal_or_slightly_different_nodes_have_no_outliers(nodes):
    for seed in range(20):
        for noise in (0, 0.03):
            assert judged(made(nodes, noise=noise, seed=seed)) == model.Outliers([], [], [])


@pytest.mark.parametrize('slow, links', [([(4, 2.0), (9, 1.5)], []), ([(4, 2.0)], [(4, 7, 2.5)])])
def test_two_slow_nodes_are_no_pair_and_a_slow_link_of_a_slow_node_is_named_as_well(slow, links):
    found = judged(made(20, slow=slow, links=links))
    assert found.nodes == [node for node, _ in found.senders] == [node for node, _ in slow]
    assert [pair for pair, _ in found.pairs] == [(a, b) for a, b, _ in links]


def test_a_pair_or_a_node_whose_samples_scatter_is_no_outlier():
    seconds, spread = made(20, links=[(2, 3, 1.6)]), np.zeros((20, 20))
    assert len(model.outliers(seconds, spread, 10).pairs) == 1
    spread[2, 3] = 0.5
    assert model.outliers(seconds, spread, 10).pairs == []
    seconds, spread = made(20, slow=[(4, 1.4)]), np.full((20, 20), 0.02)
    assert model.outliers(seconds, spread, 10).nodes == [4]
    spread[4, :] = spread[:, 4] = 2
    assert model.outliers(seconds, spread, 10).nodes == []


def test_what_is_slow_is_told_by_name_and_counted_beyond_ten():
    names = [f'n{i + 1}' for i in range(40)]
    found = judged(made(40, slow=[(3, 2.0)], receives=[(7, 1.5)], links=[(0, i, 4.0) for i in range(20, 32)]))
    lines = model.told(found, names, '1 MiB')
    assert re.fullmatch(r'slow node n4, 1 MiB: sends 2.00 times as slowly as the median node and receives 2.00 .*', lines[0])
    assert re.fullmatch(r'slow node n8, 1 MiB: receives 1.50 times as slowly as the median node', lines[1])
    assert lines[2] == 'slow pair n1 to n21, 1 MiB: 4.00 times the time that its nodes let expect'
    assert lines[-1] == '2 more slow pairs, 1 MiB, are in the figure' and len(lines) == 2 + 10 + 1
    with pytest.raises(ValueError, match='3 nodes: at least 4'):
        judged(made(3))


# --- records, report --------------------------------------------------------------------------------------------------

def record(seconds, size=2**20, **changed):
    '''A made-up record with such times.'''
    from made_report import measurement
    rows = [[None if np.isnan(value) else float(value) for value in row] for row in seconds]
    return measurement(kernel='pairs', variant='oneway', size=size, ranks=len(rows), **{'pairs': {
        'seconds': rows, 'spread': [[None if value is None else 0.01 for value in row] for row in rows], 'shortest': 1e-3}, **changed})


def test_latency_is_half_of_message_and_answer_and_bandwidth_their_time():
    found = record(made(4), size=10**6)
    assert schemas.complaint('record', found) is None
    assert model.latency(found)[0, 1] == pytest.approx(50) and model.bandwidth(found)[2, 3] == pytest.approx(1e4)
    assert np.isnan(model.latency(found)[1, 1])
    assert model.of_nodes(model.latency(found)) == pytest.approx(np.full((2, 4), 50))


@pytest.mark.parametrize('turned', [False, True])
def test_a_node_that_only_receives_or_only_sends_slowly_is_the_worst(turned):
    seconds = made(16, receives=[(3, 5.0)])
    found = record(seconds.T if turned else seconds)
    for nodes in model.of_nodes(model.bandwidth(found)), 1 / model.of_nodes(model.latency(found)):
        assert nodes.min() / np.median(nodes) == pytest.approx(0.2)


@pytest.mark.parametrize('spoil', [
    lambda pairs: pairs['seconds'].pop(), lambda pairs: pairs['seconds'][1].pop(),
    lambda pairs: pairs['seconds'][1].__setitem__(0, None), lambda pairs: pairs['seconds'][1].__setitem__(0, 0),
    lambda pairs: pairs['spread'][2].__setitem__(0, -1), lambda pairs: pairs['spread'][2].__setitem__(0, 'x'),
])
def test_a_matrix_that_cannot_be_is_refused(spoil):
    found = record(made(4))
    spoil(found['pairs'])
    with pytest.raises(PlumblineError, match='field pairs/(seconds|spread): not a finite number .* 4 ranks'):
        model.matrices(found)


def test_a_pair_that_the_clock_cannot_time_is_told():
    found = record(made(4), clock_resolution=2e-8)
    assert model.too_short(found, 2e-5, 'pair') is None
    assert model.too_short(found, 1.9e-5, 'pair') == ('pairs.oneway size 1.04858e+06 ranks 4: the shortest sample of a pair, 1.9e-05 s, is below '
                                                     '1000 x the clock resolution')


def drawn(seconds, **more):
    names = [f'n{i + 1}' for i in range(len(seconds))]
    detail = {'check': 'node_pairs', 'partition': 'p', 'environ': 'gnu-openmpi', 'hostname': 'n1', 'records': [record(seconds)],
              'machine': {'processes': [{'host': name, 'pid': 1} for name in names]}, **more}
    return list(figures.of_check('node_pairs', [detail]))


@pytest.mark.parametrize('nodes, cells', [(2, 2), (4, 4), (256, 256), (401, 201), (1000, 334)])
def test_heat_map_has_a_cell_for_each_pair_or_the_slowest_of_a_block(nodes, cells):
    seconds = made(nodes, links=[(0, 1, 5.0)])
    (title, caption, figure), *table = drawn(seconds)
    assert title == f'Messages of 1 MiB between all pairs of {nodes} nodes'
    ratios = np.array(figure.data[0].customdata, dtype=float)
    assert ratios.shape == (cells, cells)
    assert ('Each cell is the slowest pair' in caption) == (cells < nodes)
    if nodes >= 4:
        assert np.nanmax(ratios) == pytest.approx(5, rel=1e-4)
        assert table[0][2].rows == [('1 MiB', 'link n1 to n2', 'is used', '5.00')]
    else:
        assert table == [] and 'cannot be told' in caption
    assert len(figure.layout.xaxis.tickvals) <= 30


def test_slow_node_is_marked_at_the_axes_and_in_the_table():
    (_, _, figure), (_, _, table) = drawn(made(256, slow=[(200, 2.0)]))
    assert '<b>n201</b>' in figure.layout.xaxis.ticktext and '<b>n201</b>' in figure.layout.yaxis.ticktext
    assert [row[:3] for row in table.rows] == [('1 MiB', 'node n201', 'sends'), ('1 MiB', 'node n201', 'receives')]
    (_, caption, figure), = drawn(made(4), records=[])
    assert figure is None and caption == 'Not drawn: there are no records.'
    broken = record(made(4))
    broken['pairs']['seconds'].pop()
    (_, caption, figure), = drawn(made(4), records=[broken])
    assert figure is None and caption.startswith('Not drawn: record of pairs')
