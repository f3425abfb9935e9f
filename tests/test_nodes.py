'''MPI checks through Slurm on the virtual cluster: on one node, and over several, with proof of where the ranks were.'''

import os
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import rfm
from mpi_native import MPIS, any_mpi, every_mpi, needs_mpi
from native import CPUS, two_cpus

from plumbline.errors import PlumblineError
from plumbline.mpi import placement
from plumbline.mpi.check import MpiJob
from plumbline.mpi.families import families
from plumbline.mpi.nodes import nodes_of
from plumbline.report import figures

HERE = Path(__file__).with_name('cluster')
sys.path.insert(0, str(HERE))
import cluster as virtual       # noqa: E402

CHECKS = rfm.REPOSITORY / 'checks/mpi'
SPREAD = [[cpu] for cpu in CPUS[:4]]        # a CPU of its own for each node
NODES = [f'n{i + 3}' for i in range(len(SPREAD))]


@pytest.fixture(scope='module')
def place(tmp_path_factory, mpi_programs, built_already):
    '''A workplace on a cluster whose nodes n1, n2 have two CPUs, and the others one each; the MPI programs are built already.'''
    if virtual.missing():
        pytest.skip(f'no virtual cluster: {virtual.missing()}')
    canned = tmp_path_factory.mktemp('wrappers')
    for mpi, environment in MPIS.items():
        (canned / os.path.basename(environment['cc'])).symlink_to(mpi_programs(mpi).folder)
    with virtual.Cluster(tmp_path_factory.mktemp('cluster'), nodes=2 + len(SPREAD), cpus=[CPUS[:2], CPUS[:2], *SPREAD],
                         extra=f"PartitionName=one Nodes=n1\nPartitionName=spread Nodes={','.join(NODES)}") as cluster:
        place = rfm.Workplace(tmp_path_factory.mktemp('place') / 'p', built_already, config=HERE / 'mpi_site.py', CANNED_MPI=canned,
                              MADE_CPUS=','.join(map(str, CPUS[:2])), **cluster.variables)
        place.cluster = cluster
        yield place


def run(place, name, *options, partition, environ='gnu-.*', checks=CHECKS):
    done = place.reframe('-r', '--system', f'made:{partition}', '-p', environ, '-n', name, *options, checks=checks)
    assert done.report, done.out
    return done, [case for case in done.report['runs'][-1]['testcases'] if not case['fixture']]


def hosts(case):
    return [process['host'] for process in case['plumbline']['machine']['processes']]


# --- the checks -------------------------------------------------------------------------------------------------------

@two_cpus
def test_on_one_node_every_mpi_runs_through_slurm(place):
    _, cases = run(place, '^pingpong%transport=shm', '-S', 'pingpong.largest=16', partition='one', environ='gnu-(openmpi|mpich|impi)$')
    assert {case['environ'] for case in cases} == {f'gnu-{mpi}' for mpi in MPIS}
    for case in cases:
        rfm.assert_measured(case)
        assert hosts(case) == ['n1', 'n1']
        assert all(record['cpus'] == CPUS[:2] for record in case['plumbline']['records'])


@two_cpus
def test_over_two_nodes_every_mpi_runs_by_its_launcher_and_by_srun(place):
    '''MPICH runs over TCP here: where its MPI_Finalize hangs, the program ends itself after 30 s.'''
    _, cases = run(place, '^pingpong_nodes%transport=default', '-S', 'pingpong_nodes.largest=4', partition='spread')
    assert {case['environ'] for case in cases} == {f'gnu-{mpi}' for mpi in MPIS} | ({'gnu-mpich-srun'} if 'mpich' in MPIS else set())
    for case in cases:
        rfm.assert_measured(case)
        assert len(set(hosts(case))) == 2
        result = case['plumbline']
        assert [metric['name'] for metric in result['metrics']] == ['latency.default.nodes', 'bandwidth.default.nodes']
        assert (' srun ' in f" {result['command']}") == case['environ'].endswith('-srun')
        (_, _, figure), = figures.of_check('pingpong_nodes', [rfm.detail_of('pingpong_nodes', case)])
        assert [curve.name for curve in figure.data if curve.name] == ['default']


@two_cpus
def test_ranks_that_are_not_on_two_nodes_fail_the_check_and_nodes_that_are_down_are_named(place):
    '''One session with two checks: of pairs of all nodes but one that is drained; and of ranks that are both put on one node.'''
    needs_mpi('openmpi')
    last = NODES[-1]
    check = place.folder / 'wrong.py'
    check.write_text((CHECKS / 'pingpong_nodes.py').read_text() + """

from plumbline.mpi import families
families.families()['openmpi'].unbound.options[:] = ['--map-by', 'ppr:2:node:OVERSUBSCRIBE', '--bind-to', 'none']
""")
    place.cluster.must(['scontrol', 'update', f'node={last}', 'state=drain', 'reason=test'])
    try:
        _, (wrong,) = run(place, 'pingpong_nodes%transport=tcp', '-S', 'pingpong_nodes.largest=4', partition='spread',
                          environ='gnu-openmpi$', checks=check)
        _, (pairs,) = run(place, '^node_pairs', '-S', 'node_pairs.large=4096', partition='spread', environ='gnu-openmpi$')
    finally:
        place.cluster.must(['scontrol', 'update', f'node={last}', 'state=resume'])
    if len(SPREAD) == 2:
        for case in (wrong, pairs):
            assert case['result'] == 'skip'
            assert f'needs 2 nodes: made:spread has 1 that can be used, not {last}' in str(case['plumbline']['skipped'])
        return
    assert (wrong['result'], wrong['fail_phase']) == ('fail', 'sanity')
    assert re.search(r'2 ranks were asked for on 2 nodes, 1 on each, but ran on 1: n\d; rank by rank: (n\d), \1', wrong['fail_reason'])
    rfm.assert_measured(pairs)
    assert hosts(pairs) == NODES[:-1]
    result = pairs['plumbline']
    assert f'not among the nodes, because they are down or kept back: {last}' in result['notes']
    assert [metric['name'] for metric in result['metrics']] == [
        f'{kind}.{what}' for kind in ('latency', 'bandwidth') for what in ('pairs', 'worst_pair')]
    assert ['of_median.latency', 'of_median.bandwidth'] == [skipped['metric'] for skipped in result['skipped']]
    assert '3 nodes cannot be ranked by their pairs: 4 at least' in result['skipped'][0]['reason']


def test_with_one_node_there_is_nothing_to_pair(place, measuring_mpi, tmp_path):
    mpi = any_mpi()
    local = measuring_mpi(tmp_path / 'local', mpi)
    for where, options, reason in (
            (place, ('--system', 'made:one'), 'nodes: made:one has 1 that can be used'),
            (local, (), 'nodes: localhost:default is local, this node alone')):
        done = where.reframe('-r', *options, '-p', f'gnu-{mpi}$', '-n', 'pingpong_nodes|node_pairs', checks=CHECKS)
        cases = done.cases()
        assert len(cases) == 3 and {case['result'] for case in cases.values()} == {'skip'}
        assert all(reason in case['plumbline']['skipped'][0]['reason'] for case in cases.values())


# --- placement --------------------------------------------------------------------------------------------------------

@two_cpus
@every_mpi
def test_ranks_are_bound_in_their_order_on_each_of_two_nodes(mpi, place):
    '''As the checks bind where all nodes are alike: two ranks on each node, the second CPU first.'''
    needs_mpi(mpi)
    family, cpus, folder = families()[mpi], CPUS[1::-1], place.folder / f'bound-{mpi}'
    settings = (family.start + family.nodes + family.bind).filled(ranks=4, per_node=2, cpus=','.join(map(str, cpus)))
    told = 'echo "${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $(hostname) $(taskset -cp $$)"'
    script = [f'export {name}="{value}"' for name, value in [*MPIS[mpi]['env_vars'], *settings.env.items()]]
    script += [*family.bind_commands(cpus, nodes=2), shlex.join([*MPIS[mpi]['extras']['launcher'], *settings.options, 'sh', '-c', told])]
    folder.mkdir()
    (folder / 'job').write_text('\n'.join(['#!/bin/bash', *script]))
    place.cluster.must(['sbatch', '-W', '-w', 'n1,n2', '--ntasks=4', '--ntasks-per-node=2', '-D', folder, '-o', 'out', 'job'])
    found = sorted(line.split() for line in (folder / 'out').read_text().splitlines())
    assert [(line[0], line[1], line[-1]) for line in found] == [
        ('0', 'n1', str(cpus[0])), ('1', 'n1', str(cpus[1])), ('2', 'n2', str(cpus[0])), ('3', 'n2', str(cpus[1]))]


def processes(*places):
    return [{'host': host, 'pid': 1, 'cpus': cpus} for host, cpus in places]


@pytest.mark.parametrize('nodes, places, wrong', [
    (2, [('a', '0'), ('b', '0')], None),
    (2, [('a', '0'), ('a', '1'), ('b', '0'), ('b', '1')], None),
    (1, [('a', '0'), ('a', '1')], None),
    (2, [('a', '0'), ('a', '1')], '2 ranks were asked for on 2 nodes, 1 on each, but ran on 1: a; rank by rank: a, a'),
    (1, [('a', '0'), ('b', '0')], '2 ranks were asked for on 1 node, 2 on each, but ran on 2: a, b; rank by rank: a, b'),
    (2, [('a', '0'), ('b', '1'), ('a', '0'), ('b', '1')], '4 ranks were asked for on 2 nodes, 2 on each, but ran on 2: '
     'a, b; rank by rank: a, b, a, b'),
    (3, [('a', '0'), ('b', '0')], '2 ranks were asked for on 3 nodes, 0 on each, but ran on 2: a, b; rank by rank: a, b'),
])
def test_ranks_elsewhere_are_told(nodes, places, wrong):
    assert placement.wrong_nodes(processes(*places), nodes) == wrong


@pytest.mark.parametrize('places, cpus, wrong', [
    ([('a', '2'), ('b', '2')], [2, 2], None),
    ([('a', '0-3'), ('b', '2')], [1, 2], 'rank 0 was given the CPUs 0-3 of a, not one of its own: let the scheduler bind each task, '
     "or take `binding` out of the partition's extras"),
    ([('a', '2'), ('a', '2')], [2, 2], 'the ranks 0 and 1 share CPU 2 of a'),
])
def test_where_the_scheduler_binds_each_rank_has_a_cpu_of_its_own(places, cpus, wrong):
    assert placement.wrong_cpus(processes(*places), cpus) == wrong


def test_an_unknown_binding_is_told():
    partition = SimpleNamespace(fullname='site:cpu', extras={'binding': 'none'})
    with pytest.raises(PlumblineError, match="extras of site:cpu: binding 'none': give 'topology' or 'scheduler'"):
        MpiJob.bound.fget(SimpleNamespace(current_partition=partition))


def test_a_scheduler_that_lists_no_nodes_says_nothing():
    def allnodes():
        raise NotImplementedError
    assert nodes_of(SimpleNamespace(scheduler=SimpleNamespace(allnodes=allnodes, filternodes=list))) is None
