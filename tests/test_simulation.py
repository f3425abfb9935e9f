'''Simulated networks: the description, what SimGrid is given, what comes out; and CG, natively and simulated.'''

import fcntl
import pathlib
import sys
import xml.etree.ElementTree as tree

import polars as pl
import pytest

import rfm
from native import MEASURED, alone_in, configure, copied, environment, make, needs
from plumbline import cli
from plumbline.bench import simulation as bench_simulation
from plumbline.cli import simulation as command
from plumbline.errors import PlumblineError
from plumbline.mpi.families import Settings
from plumbline.report import figures
from plumbline.settings import ROOT
from plumbline.simulation import network, platform_file, predict, program, study, topology

NETWORKS = ROOT / 'config' / 'networks'

BASE = '''schema: 1
source: a test
topology: {kind: switch}
latency: 2.0
bandwidth: 100
compute_rate: 50
'''


def written(folder, *changes, text=BASE):
    '''A network file: BASE, but for some lines.'''
    for line in changes:
        key = line.split(':')[0]
        kept = [one for one in text.splitlines() if not one.startswith(key + ':')]
        text = '\n'.join([*kept, line]) + '\n'
    path = folder / 'network.yaml'
    path.write_text(text)
    return path


# --- the network file ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize('change, parts', [
    ('latency: -1', ['field latency', '-1', 'in us']),
    ('latency: fast', ['field latency', "'fast'"]),
    ('hop_latency: -0.5', ['field hop_latency', '-0.5']),
    ('overhead: -3', ['field overhead', '-3']),
    ('bandwidth: 0', ['field bandwidth', 'MB/s']),
    ('copy_rate: 0', ['field copy_rate', 'MB/s']),
    ('link_bandwidth: -4', ['field link_bandwidth']),
    ('processes_per_node: 0', ['field processes_per_node']),
    ('processes_per_node: 2.5', ['field processes_per_node']),
    ('processes_per_node: 4', ['field memory', '4 processes share a node']),
    ('memory: {latency: 1}', ['field memory', 'bandwidth']),
    ('compute_rate: {cg: 0}', ['field compute_rate', 'Mflop/s']),
    ('source: ""', ['field source', 'say where']),
    ('topology: {kind: hypercube}', ['hypercube', 'switch, torus, fat-tree and dragonfly']),
    ('topology: {}', ['field topology', 'kind']),
    ('topology: {kind: torus}', ['field topology', 'dimensions']),
    ('topology: {kind: torus, dimensions: [4, 0]}', ['field topology/dimensions', '[8, 8, 4]']),
    ('topology: {kind: torus, dimensions: 7}', ['field topology/dimensions']),
    ('topology: {kind: torus, dimensions: 3, groups: 2}', ['field topology', 'groups']),
    ('topology: {kind: dragonfly, groups: 4}', ['field topology', 'nodes_per_router']),
    ('topology: {kind: fat-tree, nodes_per_leaf: 4, pod_uplinks: 2}', ['leaves_per_pod']),
    ('speed: 3', ['speed']),
    ('schema: 2', ['field schema']),
    ('latency: [', ['not YAML']),
])
def test_a_bad_network_is_one_line(tmp_path, change, parts):
    path = written(tmp_path, change)
    with pytest.raises(PlumblineError) as raised:
        network.load(path)
    said = str(raised.value)
    assert said.startswith(str(path)) and '\n' not in said
    assert all(part in said for part in parts), said


def test_what_a_network_leaves_out(tmp_path):
    found = network.load(written(tmp_path))
    assert (found.hop_latency, found.overhead, found.link_bandwidth, found.processes_per_node, found.memory) == \
        (0, 0, 100, 1, None)
    assert found.rate_of('cg') == 50
    with pytest.raises(PlumblineError, match='has no sp; there are cg'):
        network.load(written(tmp_path, 'compute_rate: {cg: 3}')).rate_of('sp')
    for name in ('latency', 'overhead', 'hop_latency'):
        with pytest.raises(PlumblineError, match='cannot be negative'):
            found.changed(**{name: -1})
    with pytest.raises(PlumblineError, match='No such file or directory; give a network file'):
        network.load(tmp_path / 'none.yaml')


@pytest.mark.parametrize('path', sorted(NETWORKS.glob('*.yaml')), ids=lambda path: path.stem)
def test_shipped_networks_are_in_order(path):
    found = network.load(path)
    for application in program.APPLICATIONS:
        assert found.rate_of(application) > 0
    nodes = -(-1024 // found.processes_per_node)
    assert len(topology.of_network(found, nodes).switch_of) == nodes


# --- topologies ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('nodes, dimensions, sides', [
    (16, 3, [4, 2, 2]), (32, 3, [4, 4, 2]), (64, 3, [4, 4, 4]), (128, 3, [8, 4, 4]), (256, 3, [8, 8, 4]), (1024, 3, [16, 8, 8]),
    (9, 2, [3, 3]), (7, 1, [7]), (7, 2, [3, 3]), (1, 3, [1, 1, 1])])
def test_the_torus_nearest_to_a_cube(nodes, dimensions, sides):
    assert topology.nearest_cube(nodes, dimensions) == sides


def lengths(graph, start):
    '''Links on the shortest way from a switch to every other.'''
    far, edge = {start: 0}, [start]
    while edge:
        edge = [new for at in edge for a, b, _ in graph.links for old, new in ((a, b), (b, a))
                if old == at and new not in far and not far.update({new: far[at] + 1})]
    return far


def test_torus_and_fat_tree_by_hand(tmp_path):
    tapered = network.load(written(tmp_path, 'topology: {kind: fat-tree, nodes_per_leaf: 4, uplinks: 2}'))
    graph = topology.of_network(tapered, 10)
    assert graph.switch_of == ['leaf-0'] * 4 + ['leaf-1'] * 4 + ['leaf-2'] * 2
    assert graph.links == [('leaf-0', 'core', 2), ('leaf-1', 'core', 2), ('leaf-2', 'core', 2)]
    assert topology.of_network(tapered, 4).links == []
    deep = network.load(written(tmp_path, 'topology: {kind: fat-tree, nodes_per_leaf: 2, leaves_per_pod: 2}'))
    graph = topology.of_network(deep, 8)
    assert lengths(graph, 'leaf-0') == {'leaf-0': 0, 'pod-0': 1, 'leaf-1': 2, 'core': 2, 'pod-1': 3, 'leaf-2': 4, 'leaf-3': 4}
    assert {count for a, _, count in graph.links if a.startswith('pod')} == {4}
    graph = topology.of_network(network.load(written(tmp_path, 'topology: {kind: torus, dimensions: [4, 3, 2]}')), 24)
    assert len(set(graph.switch_of)) == 24 and graph.switch_of[:2] == ['switch-0-0-0', 'switch-1-0-0']
    assert len(graph.links) == 24 + 24 + 12     # two neighbours across the dimension of 2 have one link
    assert max(lengths(graph, 'switch-0-0-0').values()) == 2 + 1 + 1
    assert lengths(graph, 'switch-0-0-0')['switch-3-2-1'] == 3      # round the ends


def test_dragonfly_by_hand(tmp_path):
    given = 'topology: {kind: dragonfly, nodes_per_router: 2, routers_per_group: 3, groups: 4}'
    graph = topology.of_network(network.load(written(tmp_path, given)), 24)
    assert graph.switch_of[:7] == ['router-0-0'] * 2 + ['router-0-1'] * 2 + ['router-0-2'] * 2 + ['router-1-0']
    between = [link for link in graph.links if link[0][:8] != link[1][:8]]
    assert len(graph.links) - len(between) == 4 * 3 and len(between) == 6
    # Three links to other groups, one on each router.
    assert sorted(end for link in between for end in link[:2] if end.startswith('router-0')) == \
        ['router-0-0', 'router-0-1', 'router-0-2']
    assert max(lengths(graph, 'router-0-0').values()) <= 3


@pytest.mark.parametrize('given, most', [
    ('{kind: switch, nodes: 8}', 8), ('{kind: torus, dimensions: [2, 2, 2]}', 8), ('{kind: fat-tree, nodes_per_leaf: 4, nodes: 8}', 8),
    ('{kind: dragonfly, nodes_per_router: 1, routers_per_group: 2, groups: 4}', 8)])
def test_too_few_nodes(tmp_path, given, most):
    small = network.load(written(tmp_path, f'topology: {given}'))
    assert len(topology.of_network(small, most).switch_of) == most
    with pytest.raises(PlumblineError, match=f'has {most} nodes, {most + 1} are needed; give fewer'):
        topology.of_network(small, most + 1)


# --- what SimGrid is given -----------------------------------------------------------------------------------------

def test_platform_by_hand_and_several_links_as_one(tmp_path):
    where = network.load(written(tmp_path, 'topology: {kind: torus, dimensions: [4]}', 'hop_latency: 0.5',
                                 'link_bandwidth: 60', 'processes_per_node: 2', 'memory: {latency: 0.25, bandwidth: 900}'))
    zone = tree.fromstring(platform_file.platform_xml(where, 4, 50)).find('zone')
    tags = [child.tag for child in zone]
    assert tags == sorted(tags, key=['host', 'router', 'link', 'route'].index)
    assert [(host.get('id'), host.get('speed'), host.get('core')) for host in zone.iter('host')] == \
        [(f'node-{node}', '50Mf', '2') for node in range(4)]
    links = {link.get('id'): (link.get('bandwidth'), link.get('latency')) for link in zone.iter('link')}
    assert len(links) == 2 * (4 + 4)
    # To a neighbour 0.75 + 0.5 + 0.75 = 2 us, and half a microsecond more for each further switch.
    assert links['node-0_switch-0'] == links['switch-0_node-0'] == ('100MBps', '0.75us')
    assert links['switch-3_switch-0'] == links['switch-0_switch-3'] == ('60MBps', '0.5us')
    routes = {(route.get('src'), route.get('dst')): [link.get('id') for link in route] for route in zone.iter('route')}
    assert routes['node-2', 'switch-2'] == ['node-2_switch-2'] and len(routes) == len(links)
    assert platform_file.host_file(where, 5) == 'node-0\nnode-0\nnode-1\nnode-1\nnode-2\n'
    options = platform_file.settings(where.changed(overhead=1.5))
    assert {'--cfg=network/latency-factor:1', '--cfg=smpi/simulate-computation:no'} <= set(options)
    given = dict(option.removeprefix('--cfg=').split(':', 1) for option in options)
    assert float(given['network/loopback-lat']) == 0.25e-6 and float(given['network/loopback-bw']) == 900e6
    assert [float(given[f'smpi/{side}'].split(':')[1]) for side in ('os', 'ois', 'or')] == [pytest.approx(1.5e-6)] * 3
    where = network.load(written(tmp_path, 'topology: {kind: fat-tree, nodes_per_leaf: 2, uplinks: 3}'))
    links = {link.get('id'): link.get('bandwidth') for link in tree.fromstring(platform_file.platform_xml(where, 4, 1)).iter('link')}
    assert (links['node-0_leaf-0'], links['leaf-1_core']) == ('100MBps', '300MBps')


# --- questions -----------------------------------------------------------------------------------------------------


def test_published_tables_and_the_root_of_a_growing_function():
    '''As they stand in the source.'''
    for application, corner in (('cg', (5, 7, 46, 60)), ('sp', (29, 53, 61, 84))):
        cells = study.published(application)
        assert cells.height == 25 and 'anderson1997' in study.source_of(application)
        wide = cells.pivot(on='latency', index='processes', values='published')
        assert (wide[0, 1], wide[0, 5], wide[4, 1], wide[4, 5]) == corner
    with pytest.raises(PlumblineError, match='no table of it was published; there are cg, sp'):
        study.published('cg-doubling')
    for target in (0.5, 5, 60, 99):
        found = study.root(lambda x: 100 * (x + 0.1) / (x + 8), target, 0.0, 1e4, 1e-6)
        assert found == 0 if target < 2 else abs(100 * (found + 0.1) / (found + 8) - target) < 1e-6
    with pytest.raises(ValueError):
        study.root(lambda x: x / (x + 1), 2, 0.0, 1e4, 1e-6)


@pytest.mark.parametrize('text, expected', [('5', [5.0]), ('1,2.5', [1.0, 2.5]), ('+2', [3.5]), ('-0.5,+0', [1.0, 1.5])])
def test_latencies_of_the_command_line(text, expected):
    assert command.latencies_of(text, 1.5) == expected


@pytest.mark.parametrize('arguments, part', [
    (['--latency=-9'], '--latency -9: comes to -7 us; a time cannot be negative'),
    (['--latency', 'much'], "--latency much: 'much' is not a time"),
    (['--processes', '0'], "--processes 0: '0' is not a number of processes"),
    (['--processes', '4,x'], "'x' is not a number of processes"),
    (['--sensitivity'], '--sensitivity: it is that of the published table; give --published'),
    (['--published', '--latency', '+5'], "--latency: those of the published table are its source's; leave it out, or --published"),
    (['--application', 'lu'], '--application lu: there are cg, cg-doubling, sp'),
])
def test_bad_questions_are_one_line(tmp_path, monkeypatch, capsys, arguments, part):
    monkeypatch.setattr(sys, 'argv', ['plumbline', 'simulate', str(written(tmp_path)), *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.startswith('plumbline: ') and said.count('\n') == 1 and part in said


def test_without_simgrid_the_reason_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv('PATH', str(tmp_path))
    assert program.missing().startswith('smpirun and smpicc of SimGrid: not found')
    with pytest.raises(PlumblineError, match='not found; install SimGrid'):
        program.build(tmp_path)


def test_two_at_once_neither_share_a_folder_nor_build_together(tmp_path, monkeypatch):
    stages = []

    def build(*_):
        with open(tmp_path / 'build.lock') as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def table(*given):
        stages.append(pathlib.Path(given[4]))
        return pl.DataFrame([{'processes': 64, 'latency': 2.0, 'percent': 10.0}])

    for where, name, value in ((program, 'FOLDER', tmp_path), (program, 'missing', lambda: None), (program, '_must_run', build), (study, 'table', table)):
        monkeypatch.setattr(where, name, value)
    both = [command.answer(str(written(tmp_path)), 'cg', None, None, None, None, False) for _ in range(2)]
    assert all(next(one).startswith('cg of size A') for one in both)
    assert stages[0] != stages[1] and all(stage.is_dir() for stage in stages)
    assert all(list(one) for one in both) and not any(stage.exists() for stage in stages)


# --- simulated runs ------------------------------------------------------------------------------------------------

def cg(simulated, folder, processes, application='cg', text=BASE, size='S', iterations=1, **changes):
    where = network.load(written(folder, text=text)).changed(**changes)
    return program.run(simulated, where, application, processes, folder / 'stage', size, iterations)


def test_times_by_hand(simulated, tmp_path):
    '''Two processes on a grid of 1 x 2: 26 products with a message of half the vector each for the sums and none else, 53
    scalar sums; all of them exchanges in step.  A process may leave the barrier before one message earlier.'''
    found = cg(simulated, tmp_path, 2, latency=10.0, bandwidth=1e6, compute_rate=1e9)
    steps = found.printed['messages']
    assert (steps, found.printed['words']) == (26 + 53, 53)

    def is_near(seconds, step):
        return steps * step <= seconds <= 1.001 * (steps + 1) * step

    assert is_near(found.seconds, 10e-6)
    loaded = cg(simulated, tmp_path, 2, latency=10.0, overhead=3.0, bandwidth=1e6, compute_rate=1e9)
    assert is_near(loaded.seconds, 10e-6 + 2 * 3e-6)
    narrow = cg(simulated, tmp_path, 2, latency=0.0, bandwidth=10.0, compute_rate=1e9)
    assert narrow.seconds == pytest.approx(found.printed['bytes'] / 10e6, rel=0.03)     # the halves are not quite alike
    busy = cg(simulated, tmp_path, 1, compute_rate=1.0)
    assert busy.seconds == pytest.approx(busy.printed['flops'] / 1e6, rel=1e-6) and busy.communication == 0


def test_what_routines_add_by_hand(simulated, tmp_path):
    '''Two processes of CG: 26 messages and 53 scalar sums, each a call that waits once.  Of SP on 12^3 points: 144 lines along y are cut,
    each process solves 72 of them and both ways copies 72 x 5 segments of 6 words out and as many in.'''
    free = {'latency': 0.0, 'bandwidth': 1e6, 'compute_rate': 1e9}
    plain, messages, sums = (cg(simulated, tmp_path, 2, **free, **more).communication for more in ({}, {'delay': 10.0}, {'sum_delay': 10.0}))
    assert messages - plain == pytest.approx(26 * 10e-6, rel=1e-3) and sums - plain == pytest.approx(53 * 10e-6, rel=1e-3)
    plain, copied = (cg(simulated, tmp_path, 2, 'sp', **free, **more).communication for more in ({}, {'copy_rate': 1.0}))
    assert copied - plain == pytest.approx(2 * 2 * 72 * 5 * 6 * 8 * 1e-6, rel=1e-3)


def test_what_the_source_adds_and_how_good_a_prediction_is_by_hand(tmp_path):
    where = network.load(written(tmp_path))
    later = study.with_delay(where, 5)
    assert (later.latency, later.delay, later.sum_delay) == (2, 3, 3)
    with pytest.raises(PlumblineError, match='delay -1 us: a time cannot be negative'):
        study.with_delay(where, 1)
    cells = pl.DataFrame({'processes': [32, 32, 64, 64], 'latency': [1.0, 25.0, 1.0, 25.0], 'published': [5, 5, 17, 24], 'percent': [5.0, 7.0, 18.0, 32.0],
                          'fitted': [True, False, False, False], 'messages': 10, 'flops': 750.0})
    assert study.differences(cells) == (pytest.approx((2 + 1 + 8) / 3), 8)
    assert study.growth(cells) == {64: 2.0}         # 14 over 7; 32 processes are too few
    assert cells.select(study.base_line(3.0)).to_series().to_list() == pytest.approx([100 * 10 / 260, 50, 100 * 10 / 260, 50])
    # Four times the processes, half the time: an efficiency of a half.
    cells = pl.DataFrame({'processes': [256, 64, 64, 256], 'latency': [1.0, 1.0, 5.0, 5.0], 'seconds': [5.0, 10.0, 8.0, 2.0]})
    assert study.efficiency(cells)['efficiency'].to_list() == pytest.approx([50, 100, 100, 100])
    cells = pl.DataFrame({'processes': [16, 16, 32, 32], 'latency': [1.0, 5.0, 1.0, 5.0], 'percent': [5.0, 4.0, 6.0, 7.0]})
    assert study.falls(cells) == ['processes 16: 4.00 % at 5 us, 5.00 % at 1']


def test_the_same_input_gives_the_same_right_output_in_time(simulated, tmp_path):
    for application, processes in (('cg', 16), ('cg-doubling', 8), ('sp', 8)):
        first, second = (cg(simulated, tmp_path, processes, application).printed for _ in range(2))
        assert first == second
    # 15 iterations: the result is the published one, and that of one process.
    alone = cg(simulated, tmp_path, 1, iterations=15).printed
    assert alone['value'] == pytest.approx(8.5971775078648, rel=1e-12)
    for application, processes in (('cg', 8), ('cg', 16), ('cg-doubling', 4), ('cg-doubling', 8)):
        found = cg(simulated, tmp_path, processes, application, iterations=15).printed
        assert found['value'] == pytest.approx(alone['value'], rel=1e-13) and found['error'] < 1e-12
    # No work is done twice but for the sums of rows: 1400 words of every product.
    assert cg(simulated, tmp_path, 4).printed['flops'] * 4 - cg(simulated, tmp_path, 1).printed['flops'] == 26 * 1400
    with pytest.raises(PlumblineError, match='not at its end after 0.01 s'):
        program.run(simulated, network.load(written(tmp_path)), 'cg', 4, tmp_path / 'stage', 'S', time_limit=0.01)


def test_more_latency_and_more_processes_are_more_communication_and_an_overhead_is_fitted(simulated, tmp_path):
    where = network.load(written(tmp_path, 'topology: {kind: torus, dimensions: 3}'))
    for application in ('cg', 'sp'):
        cells = study.table(simulated, where, application, [(n, L) for n in (4, 8, 16) for L in (1, 5, 25)], tmp_path, 'S', 1)
        assert cells.height == 9 and not study.falls(cells)
        assert cells['percent'].is_between(0, 100, closed='none').all()
    where = network.load(written(tmp_path))
    known = study.table(simulated, where.changed(overhead=7.0), 'cg', [(4, 1)], tmp_path, 'S')['percent'][0]
    fitted = study.calibrate(simulated, study.with_latency(where, 1), 'cg', 4, known, tmp_path, 'S')
    assert fitted.overhead == pytest.approx(7.0, rel=0.01) and fitted.percent == pytest.approx(known, abs=0.005)
    with pytest.raises(PlumblineError, match='no overhead per message'):
        study.calibrate(simulated, where, 'cg', 1, 50, tmp_path, 'S')
    found = study.cost(simulated, where, 'cg', 8, where.latency + 2, tmp_path, 'S')
    assert 1 < found.after.seconds / found.before.seconds < 2 and found.after.percent > found.before.percent
    assert '+2 us: +' in found.lines[-1]


@pytest.mark.parametrize('application, processes, part', [
    ('cg', 3, 'cg on 3 processes: the grid of processes needs a power of two'),
    ('cg', 2048, 'more processes than rows'),
])
def test_the_application_refuses(simulated, tmp_path, application, processes, part):
    with pytest.raises(PlumblineError, match=part) as raised:
        cg(simulated, tmp_path, processes, application)
    assert '\n' not in str(raised.value)


def test_a_wrong_result_is_found(tmp_path):
    '''A transpose exchange with the wrong partner.'''
    needs('cmake', 'smpicc', 'smpirun')
    source, build = copied(tmp_path / 'src', 'mpi'), tmp_path / 'b'
    path = source / 'mpi/cg/cg.c'
    text = path.read_text()
    assert text.count('q[k] += diagonal[k] * p[k]') == 1
    path.write_text(text.replace('q[k] += diagonal[k] * p[k]', 'q[k] += diagonal[k] * p[k] * (s->a->rank != 1)'))
    configure(build, '-S', source / 'mpi/simulation', '-DCMAKE_C_COMPILER=smpicc', '-DPLUMBLINE_C_FLAGS=-O0', env=environment())
    make(build, 'simulated', env=environment())
    cg(build / 'bin/simulated', tmp_path, 1, iterations=15)
    with pytest.raises(PlumblineError, match='its result is wrong'):
        cg(build / 'bin/simulated', tmp_path, 4, iterations=15)


def test_a_simulation_that_changes_is_found(simulated, tmp_path, monkeypatch):
    real = study.table
    monkeypatch.setattr(study, 'table', lambda *a, **k: real(*a, **k).with_columns(pl.col('percent') + 1e-9))
    with pytest.raises(PlumblineError, match='is not deterministic'):
        study.predict(simulated, network.load(NETWORKS / 't3e.yaml'), 'cg', tmp_path, most=16)
    with pytest.raises(PlumblineError, match='begins at 16 processes; 8 is too few'):
        study.predict(simulated, network.load(NETWORKS / 't3e.yaml'), 'cg', tmp_path, most=8)


def test_natively_as_simulated_is_a_ratio_of_one(simulated, tmp_path, monkeypatch):
    '''What is measured natively is simulated here with a known network, and must be found again from its PingPong.'''
    where = network.load(written(tmp_path, 'latency: 3.0', 'bandwidth: 800', 'compute_rate: 900'))

    class Machine:
        cpus = range(5)

        def __init__(self, shared):
            self.family = type('Family', (), {'title': 'an MPI', 'shared': shared})

        def run(self, name, *options, ranks=2, **_):
            def told(variant, latency, size, seconds, communication, flops):
                return {'variant': variant, 'size': size, 'passes': 1, 'seconds': [seconds] * 3, 'communication': [communication] * 3,
                        'options': {'latency': latency, 'messages': 1, 'flops_declared': flops}}
            if name == 'pingpong':
                return [told('standard', 0, size, (3 + size / 800) * 1e-6, 0, 0) for size in (8, 4096)]
            latencies = map(int, options[options.index('--latency') + 1].split(','))
            runs = {latency: program.run(simulated, where.changed(latency=3.0 + latency), name, ranks, tmp_path / 'native', 'S') for latency in latencies}
            return [told(name, latency, 12, one.seconds, one.communication, ranks * one.printed['flops']) for latency, one in runs.items()]

    monkeypatch.setattr(bench_simulation.mpi, 'machines', lambda machine: [Machine(Settings()), Machine('who waits keeps its CPU')])
    *found, left_out = bench_simulation.figures(type('Here', (), {'place': tmp_path}), 3)
    # Two applications on 2 and on 4 ranks, three latencies, time and share; on 8, which share CPUs, the time that one adds to another.
    assert len(found) == 2 * (2 * 2 * 3 * 2) + 2 and sum('8 ranks of 5 CPUs' in one.what for one in found) == 2
    assert all(one.met and one.value == pytest.approx(1, abs=0.03) for one in found), [one.line for one in found]
    assert left_out.line == 'NOT MEASURED  an MPI, 8 ranks: 5 CPUs, and who waits keeps its CPU'


# --- the check -----------------------------------------------------------------------------------------------------

def checked(place, *options):
    done = place.reframe('-r', '-p', 'gnu', '-n', 'latency_simulated.*%application=cg', *options,
                         checks=rfm.REPOSITORY / 'checks/mpi/latency_simulated.py')
    return next(iter(done.cases().values()))


def test_the_check_predicts_and_is_drawn(simulated, tmp_path):
    place = rfm.Workplace(tmp_path / 'place', config=rfm.REPOSITORY / 'config/localhost.py', PLUMBLINE_REPORTS=simulated.parents[3])
    with alone_in(simulated.parents[1]):
        case = checked(place, '-S', 'latency_simulated.most=32')
    assert case['result'] == 'pass', case['fail_reason']
    left = case['plumbline']
    names = {metric['name']: metric for metric in left['metrics']}
    assert len(names) == 12 and names['communication_fitted.cg.16.1us']['value'] == pytest.approx(0.05, abs=5e-5)
    assert {names[name]['verdict'] for name in ('difference.cg', 'difference.cg.largest')} == {'PASS'}
    assert 0 < names['difference.cg']['value'] < names['difference.cg.largest']['value'] < 0.05
    assert any('fitted to 5 % on 16 processes at 1 us' in note for note in left['notes'])
    (_, told, table), (_, _, figure) = figures.of_check('latency_simulated', [rfm.detail_of('latency_simulated', case)])
    assert [row[0] for row in table.rows] == ['16', '32'] and table.rows[0][1] == '5.0 (5, fitted)'
    assert figure is not None and 'anderson1997' in told


def test_without_simgrid_the_check_is_skipped_or_fails_where_the_site_has_promised_it(handed_out, tmp_path):
    without = rfm.tools(tmp_path / 'bin', without=('smpirun', 'objdump'), scripts=[rfm.GUARDS / 'cmake'])
    built = {'CANNED_PROGRAMS': handed_out}
    case = checked(rfm.Workplace(tmp_path / 'here', without, rfm.REPOSITORY / 'config/localhost.py', **built))
    assert case['result'] == 'skip' and 'smpirun of SimGrid: not found' in str(case['plumbline']['skipped'])
    case = checked(rfm.Workplace(tmp_path / 'made', without, CANNED_FEATURES='simgrid', **built))
    assert case['result'] == 'fail' and 'made:cpu has the feature simgrid' in case['fail_reason']


def test_no_prediction_is_an_error():
    with pytest.raises(PlumblineError, match='has printed no prediction'):
        predict.parse('Segmentation fault')


# --- natively ------------------------------------------------------------------------------------------------------

def test_cg_natively(mpi_programs):
    '''Each rank count gives the published result; the first iteration's residual and all 15 are in max_error.'''
    build = mpi_programs('openmpi')
    few = ('--class', 'S', '--variants', 'all', *MEASURED)
    for ranks in (1, 2, 4):
        found = build.measured(ranks, 'cg', *few).measurements
        assert [record['variant'] for record in found] == ['halving', 'doubling']
        for record in found:
            assert record['valid'] and record['max_error'] < 1e-12 and record['ranks'] == ranks and record['size'] == 1400
            assert len(record['communication']) == 10
            assert all(0 < part < whole if ranks > 1 else part == 0 for part, whole in zip(record['communication'], record['seconds'], strict=True))
    refused = build.run(3, 'cg', *few)
    assert refused.code != 0 and not refused.text.count('"measurement"')
    assert [line for line in refused.errors.splitlines() if line.startswith('plumbline: ')] == \
        ['plumbline: cg on 3 processes: the grid of processes needs a power of two of them: 1, 2, 4, 8, ...']
