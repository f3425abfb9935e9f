'''The benchmark of the sweep: faults are on one node and gone after, sweeps are run once, the table counts rightly, paper nodes are named.'''

import contextlib
import json
import re
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest

import rfm
from native import needs
from plumbline.bench import common, sweeps, verdicts
from plumbline.bench.sweeps import faults, place as places, simulation, table
from plumbline.bench.sweeps.faults import FAULTS, NotHere
from plumbline.bench.verdicts import faults as of_machines
from plumbline.errors import PlumblineError
from plumbline.model import registry
from plumbline.model.quantity import several
from plumbline.sweep import node as job
from virtual import needs_cluster

NOISE = simulation.Noise(0.01, 0.01)


def test_quiet_sweeps_come_first_and_then_take_turns():
    assert sweeps.plan(7, 1, ['a', 'b']) == ['null'] * 5 + ['null', 'a', 'null', 'b']
    assert sweeps.plan(3, 1, ['a']) == ['null'] * 3 + ['a'] and sweeps.plan(0, 2, ['a', 'b']) == ['a', 'b', 'a', 'b']


def made(kind, number=1, node='', named=(), **more):
    return places.Sweep(kind, number, node, bool(named), 'made', list(named), **{
        'rules': [], 'blamed': [], 'losses': {}, 'started': 1.8e9 + number, 'seconds': 60.0} | more)


@pytest.fixture
def no_cluster(monkeypatch):
    '''Sweeps that measure nothing; a list of them.'''
    run = []

    def measure(self, kind, number, node=''):
        run.append((kind, number, node))
        self.path(kind, number).parent.mkdir(parents=True, exist_ok=True)
        self.path(kind, number).write_text(json.dumps(asdict(made(kind, number, node))))
        return made(kind, number, node)
    monkeypatch.setattr(places.Place, 'measure', measure)
    monkeypatch.setattr(places.Place, '__enter__', lambda self: self)
    monkeypatch.setattr(places.Place, '__exit__', lambda *_: None)
    return run


def fault(provoke=lambda place, node: contextlib.nullcontext(), causes=('quota',)):
    return faults.Fault('made', (registry.CORE,), causes, provoke, '9 %')


def test_what_was_run_is_not_run_again(tmp_path, no_cluster, monkeypatch):
    monkeypatch.setitem(FAULTS, 'quota60', fault())
    sweeps.run(tmp_path, 1, 1, ['quota60'], lambda text: None)
    (first, second) = no_cluster
    assert first == ('null', 1, '') and second[:2] == ('quota60', 1) and second[2] in ('n1', 'n2', 'n3', 'n4')
    sweeps.run(tmp_path, 2, 2, ['quota60'], lambda text: None)
    assert [one[:2] for one in no_cluster[2:]] == [('null', 2), ('quota60', 2)]
    place = places.Place(tmp_path)
    assert len({place.node('quota60', number) for number in range(20)}) > 2 and place.node('quota60', 1) == second[2]


def test_what_cannot_be_provoked_is_told(tmp_path, no_cluster, monkeypatch):
    @contextlib.contextmanager
    def absent(place, node):
        raise NotHere('no such thing')
        yield
    monkeypatch.setitem(FAULTS, 'pages', fault(absent))
    told = []
    sweeps.run(tmp_path, 1, 1, ['pages'], told.append)
    assert told[1] == '2 of 2: pages 1: not tried: no such thing' and told[-1] == 'made: not tried: no such thing'
    for benchmark, first in ((sweeps, 'quota95'), (verdicts, 'quota50')):
        with pytest.raises(PlumblineError, match=f'cat: no such fault; there are {first}'):
            benchmark.run(tmp_path, 0, 1, ['cat'])
    assert sweeps.lines(places.Place(tmp_path / 'none')) == [f'{tmp_path}/none: no sweep yet']


def test_a_sweep_that_fails_is_told_and_run_the_next_time(tmp_path, no_cluster, monkeypatch):
    measure, told = places.Place.measure, []

    def failing(self, kind, number, node=''):
        if number in bad:
            raise PlumblineError('a node is missing')
        return measure(self, kind, number, node)
    monkeypatch.setattr(places.Place, 'measure', failing)
    bad = {2, 3}
    sweeps.run(tmp_path, 5, 0, tell=told.append)
    assert told[1] == '2 of 5: null 2: a node is missing' and told[-1] == 'null-3: failed: a node is missing' and [one[1] for one in no_cluster] == [1, 4, 5]
    assert '3 sweeps of 4 nodes' in told[5] and any(line.startswith('Nothing changed: a node is named in 0 of 3') for line in told)
    bad = set()
    sweeps.run(tmp_path, 5, 0, tell=told.append)
    assert [one[1] for one in no_cluster[3:]] == [2, 3] and 'failed' not in told[-1]
    bad = {6, 7, 8, 9}
    with pytest.raises(PlumblineError, match='a node is missing'):
        sweeps.run(tmp_path, 10, 0, tell=told.append)
    assert told[-1] == '2 of 5: null 7: a node is missing'


@pytest.mark.slow
def test_the_cluster_is_found_without_a_change_of_the_path():
    code = ('import sys; before = [*sys.path]; from plumbline.bench.common import virtual_cluster\n'
            'assert virtual_cluster().__name__ == "Cluster" and sys.path == before')
    subprocess.run([sys.executable, '-I', '-c', code], check=True)


def test_without_a_clone_there_is_no_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(common, 'ROOT', tmp_path)
    with pytest.raises(PlumblineError, match=f'^the virtual cluster needs a clone of the repository: there is no {tmp_path}/tests/cluster$'):
        sweeps.run(tmp_path / 'bench', 1, 0)


def test_the_caches_are_measured_once(tmp_path, monkeypatch):
    monkeypatch.delenv('PLUMBLINE_CAPACITY', raising=False)

    def node(*capacities):
        return pl.DataFrame({'detail': [None, '{}', *(json.dumps({'machine': {'capacity': one}}) for one in capacities)]})
    nodes = [node({}, {'L2': 98304, 'L3': 2**22}), node({'L2': 2**18, 'L3': 2**23}), node({'L2': 2**18, 'L3': 2**24}), node()]
    assert places.capacity(nodes) == 'L2=262144,L3=8388608' and places.capacity(nodes[:1] + nodes[3:]) == places.capacity([]) == 'topology'
    place = places.Place(tmp_path)
    assert place.capacity == 'measured'
    (tmp_path / 'capacity').write_text('L2=262144')
    assert place.capacity == 'L2=262144'
    monkeypatch.setenv('PLUMBLINE_CAPACITY', 'measured')
    assert place.capacity == 'measured'


@pytest.mark.parametrize('given, expected', [({}, '/a b/builds'), ({'PLUMBLINE_BUILDS': '/c d'}, '/c d')])
def test_sweeps_may_share_builds(given, expected):
    script = job.script('made', Path('/a b'), 's:p', ['reframe'])
    line, = (line for line in script.splitlines() if 'PLUMBLINE_BUILDS' in line)
    done = subprocess.run(['bash', '-c', f'{line}; printf %s "$PLUMBLINE_BUILDS"'], env=given, capture_output=True, text=True)
    assert done.stdout == expected


# --- the table -----------------------------------------------------------------------------------------------------

def test_losses_of_a_node_are_against_its_fellows():
    frame = simulation.Fleet(simulation.np.random.default_rng(1), 4, simulation.Noise(0.0, 0.0)).sweep(0.25, node=2, part=4)
    assert places.losses(frame, 'n3')[registry.MEMORY_ONE] == 0.25 and places.losses(frame, 'n3')[registry.L1] == 0
    assert places.losses(frame, 'n1')[registry.MEMORY_ONE] == 0        # the median of 75, 100, 100
    apart = frame.with_columns(state=pl.when(subsystem=registry.CPU_TIME).then(None).when(node='n4').then(pl.lit('{"core_to_core.0": 1.5e-7}'))
                               .otherwise(pl.lit('{"core_to_core.0": 4e-8}')))
    assert places.losses(apart, 'n1')[registry.MEMORY_ONE] == pytest.approx(-1 / 7, abs=1e-4)     # of n2 and n3: 100 and 75, n4 is in another state
    assert places.losses(apart, 'n4') == {registry.CPU_TIME: 0}     # which has no state
    late = simulation.Fleet(simulation.np.random.default_rng(1), 4, simulation.Noise(0.0, 0.0)).sweep(0.5, node=0, part=6)
    assert places.losses(late, 'n1')[registry.LATENCY] == 0.5          # twice as long


def test_the_table_counts_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(table, 'FAULTS', {'big': fault(), 'small': fault(causes=())})
    place = places.Place(tmp_path)
    found = [made('null', 1), made('null', 2, named=['n2']), made('null', 3), made('null', 4),
             made('big', 5, 'n1', ['n1'], rules=['quota'], losses={registry.CORE: 0.2, registry.L1: 0.9}),
             made('big', 6, 'n4', ['n4', 'n2'], rules=['hypervisor', 'quota'], losses={registry.CORE: 0.3}),
             made('big', 7, 'n3', losses={registry.CORE: 0.4}, rules=['quota']),
             made('small', 8, 'n3', ['n3'], blamed=[registry.CORE], losses={registry.CORE: 0.05}),
             made('small', 9, 'n3', ['n3'], blamed=[registry.L1], losses={registry.CORE: 0.05})]
    monkeypatch.setattr(places.Place, 'sessions', lambda self: found)
    text = sweeps.lines(place)
    assert text[0] == '2027-01-15, ``plumbline bench sweeps --null 4 --faults 3``: 9 sweeps of 4 nodes, of 60 s; caches: measured.'
    assert 'Nothing changed: a node is named in 1 of 4 (25.0 %, 0.6 to 80.6).' in text
    # The second cause that is named counts for nothing.  Named: n1 and n4 rightly, n2 wrongly twice.  The small one is none of those from 20 % on.
    line, = (one for one in text if one.startswith('Faults that take 20 %'))
    assert 'recall 2 of 3 (66.7 %, 9.4 to 99.2); precision 2 of 4 (50.0 %' in line
    assert any(one.startswith('The cause is named in 2 of 5') for one in text)
    rows = [one.split('  ') for one in text if one.startswith('made')]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells == [['made', '9 %', '30 % core', '2 of 3 (66.7 %, 9.4 to 99.2)', '1', '1'],
                     ['made', '9 %', '5 % core', '2 of 2 (100.0 %, 15.8 to 100.0)', '0', '1']]


# --- on paper --------------------------------------------------------------------------------------------------------

@pytest.mark.slow
def test_the_simulation_is_the_same_again_and_finds_what_is_large():
    options = {'histories': (0, 5), 'fleets': 1, 'sweeps': 1, 'metrics': 8}
    found, again = (simulation.run(4, NOISE, loss=0.4, **options) for _ in range(2))
    for history, counts in found.items():
        assert (counts.found, counts.losses, counts.others, counts.alarms) == (1, 1, 0, 0)
        assert counts.precision == 1 and counts.kept == counts.promised == 1
        assert again[history].sees == pytest.approx(counts.sees)
    other = simulation.run(4, NOISE, loss=0.4, seed=2, **options | {'histories': (0,)})
    assert other[0].sees != pytest.approx(found[0].sees)


def test_noise_with_tails_has_the_same_deviation():
    logs = {tails: simulation.np.log(simulation.Fleet(simulation.np.random.default_rng(1), 200, simulation.Noise(0.01, 0.0), tails=tails)
                                     .sweep()['value'].to_numpy() / 100) for tails in (None, 3)}
    for values in logs.values():
        assert values.std() == pytest.approx(0.01 * simulation.np.exp(simulation.UNLIKE**2), rel=0.15)
    assert abs(logs[3]).max() > 2 * abs(logs[None]).max()


def test_a_second_measurement_repeats_a_part_of_what_the_sweep_was_off_by():
    fleet = simulation.Fleet(simulation.np.random.default_rng(1), 200, simulation.Noise(0.01, 0.0))
    first, again, next_sweep = (simulation.np.log(frame['value'].to_numpy()) for frame in (fleet.sweep(), fleet.again(), fleet.sweep()))
    assert simulation.np.corrcoef([first, again, next_sweep])[0, 1:] == pytest.approx([simulation.REPEATED, 0], abs=0.05)


@pytest.mark.slow
def test_what_a_node_has_lost_since_is_found_though_its_peers_differ_as_much():
    '''Nodes differ by 3 % for good and scatter by 0.5 %: a loss of 5 % is nothing among them, and much for the node.'''
    found = simulation.run(6, simulation.Noise(0.005, 0.03), histories=(0, 6), fleets=1, sweeps=2)
    assert found[0].found == 0 and found[6].found == 2 and found[6].others == found[6].alarms == 0


@pytest.mark.slow
def test_the_table_of_the_simulation_is_told():
    text = simulation.lines((NOISE,), (4,), histories=(0,), fleets=1, sweeps=2, metrics=2)
    assert text[0] == 'Simulated: one node has lost 5 % of one of 9 subsystems.' and text[5].startswith('1 % within, 1 % between  4      0')


# --- on a cluster ------------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    '''A benchmark's place, with three nodes.'''
    needs_cluster()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, 'NODES', 3)
        folder = tmp_path_factory.mktemp('sweeps')
        for kind in ('hog', 'messages'):        # what a benchmark that was killed has left in force
            (folder / kind).mkdir()
            (folder / kind / 'n2').write_text('0.5')
        with places.Place(folder) as place:
            assert not [*folder.glob('*/n2')]
            yield place


def on(place, node, command):
    '''What a job on a node prints, once all of it has ended.  (``sbatch --wait`` looks every two seconds.)'''
    said = place.cluster.must(['srun', '-w', node, 'sh', '-c', command])
    place.cluster.wait()        # a slurmd that ends before its job is done with leaves it so for a minute
    return said


def test_a_quota_is_on_one_node_and_gone_after(cluster):
    quota = r"cat /sys/fs/cgroup/cpu$(awk -F: '$2 ~ /(^|,)cpu(,|$)/ {print $3}' /proc/self/cgroup)/cpu.cfs_quota_us 2> /dev/null"
    if not on(cluster, 'n1', quota + ' || true').strip():
        pytest.skip('no cgroups of version 1')
    share = 0.6 * len(of_machines.our_cpus()) * 100000
    with FAULTS['quota60'].provoke(cluster, 'n2'):
        assert (int(on(cluster, 'n2', quota)), int(on(cluster, 'n1', quota))) == (share, -1)
    assert int(on(cluster, 'n2', quota)) == -1


def test_a_hog_runs_beside_the_jobs_of_one_node(cluster):
    hogs = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[h]og.py' || true"      # of its own: a node sees no other's processes
    with FAULTS['hog10'].provoke(cluster, 'n3'):
        assert on(cluster, 'n1', hogs).strip() == '0'
        assert int(on(cluster, 'n3', hogs)) >= 1
    assert on(cluster, 'n3', hogs).strip() == '0'
    with pytest.raises(PlumblineError, match='the memory hog was to run on n3 and did not'), FAULTS['hog10'].provoke(cluster, 'n3'):
        pass


def test_a_node_without_huge_pages(cluster):
    enabled = 'grep -h THP_enabled /proc/self/status || true'
    if not on(cluster, 'n1', enabled):
        pytest.skip('this kernel does not tell')
    try:
        with FAULTS['pages'].provoke(cluster, 'n1'):
            assert (on(cluster, 'n1', enabled).split()[1], on(cluster, 'n2', enabled).split()[1]) == ('0', '1')
    except NotHere as reason:
        pytest.skip(str(reason))
    assert on(cluster, 'n1', enabled).split()[1] == '1'


def test_the_launcher_of_one_node_is_slow(cluster, monkeypatch):
    needs('cmake')
    launcher = cluster.folder / 'mpirun.made'
    launcher.write_text('#!/bin/sh\necho "$LD_PRELOAD $PLUMBLINE_LATENCY_US $*"\n')
    launcher.chmod(0o755)
    environment = {'cc': 'cc', 'env_vars': [], 'extras': {'launcher': [str(launcher)]}}
    monkeypatch.setattr(of_machines, 'mpi', lambda: (environment, None))
    monkeypatch.setattr(of_machines, 'our_cpus', lambda: [0, 1])
    library = cluster.folder / 'messages/build/lib/libplumbline_latency.so'
    library.parent.mkdir(parents=True)
    library.touch()
    command = f'{cluster.commands}/mpirun.made -np 2'
    with FAULTS['messages2us'].provoke(cluster, 'n2'):
        assert on(cluster, 'n2', command) .endswith(f'{library} 2 -np 2\n')
        assert on(cluster, 'n1', command) == '  -np 2\n'
    assert on(cluster, 'n2', command) == '  -np 2\n'


def test_a_real_sweep_names_the_node_with_a_quota(cluster, handed_out, commands, monkeypatch):
    monkeypatch.setenv('PATH', str(commands))
    monkeypatch.setenv('PLUMBLINE_CAPACITY', rfm.capacity())
    monkeypatch.setenv('CANNED_PROGRAMS', str(handed_out))      # jobs get all of the environment here
    site = cluster.folder / 'site.py'
    site.write_text(site.read_text().replace(
        "'--partition=all'", "'--partition=all', '--export=ALL'").replace(
        'settings.site(', "settings.site(general=[{'poll_rate_max': 10, 'poll_rate_min': 10}], "))
    # The time that it does not get is seen whatever else the machine does; rates may need a quiet one.
    availability = r'^ n2 +CPU availability, |^ n2 .* cpu_availability |^ +(node_speed all +cpu_availability |CPU availability, )'
    with FAULTS['quota40'].provoke(cluster, 'n2'):
        began = time.time()
        for number in (1, 2, 3):        # of two peers one may get as little of a busy host as the node
            sweep = cluster.measure('quota40', number, 'n2', '^node_speed%threads=all$',
                                    {'node_speed.min_time': 0.1, 'node_speed.memory_bytes': 2**27}, ['memory/node_speed.py'])
            told = rfm.Done(sweep.exit, (cluster.folder / 'last-sweep.txt').read_text())
            if 'n2' in sweep.named and re.search(availability, told.out, re.M):
                break
    assert cluster.sessions()[-1] == sweep and len(cluster.sessions()) == number and sweep.started >= began - 1
    assert 'n2' in sweep.named and sweep.exit == 1 and 'quota' in sweep.rules
    assert registry.CPU_TIME in sweep.blamed and not any(', rates' in part or ', shares' in part for part in sweep.blamed)
    assert '3 of 3 nodes measured' in told.out and 'n2' in told.line('outliers: ')
    assert re.search(availability, told.out, re.M), told.out
    cpus = len(of_machines.our_cpus())
    assert told.line("a cgroup's quota") == f"n2: a cgroup's quota is {0.4 * cpus:g} CPUs for {several(cpus, 'thread')}"
