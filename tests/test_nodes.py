'''MPI checks through Slurm on the virtual cluster: on one node, and over several, with proof of where the ranks were.'''

import contextlib
import itertools
import os
import re
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from reframe.core.schedulers import JobScheduler

import rfm
from mpi_native import MPIS, any_mpi, needs_mpi
from native import CPUS, two_cpus
from plumbline.errors import PlumblineError
from plumbline.mpi import placement
from plumbline.mpi.check import MpiCheck
from plumbline.mpi.families import families
from plumbline.mpi.nodes import nodes_of
from plumbline.report import figures
from plumbline.simulation import program
from virtual import batch, cluster_in

CHECKS = rfm.REPOSITORY / 'checks/mpi'
SITE = Path(__file__).with_name('cluster') / 'mpi_site.py'
SPREAD = [[cpu] for cpu in CPUS[:4]]        # a CPU of its own for each node
NODES = [f'n{i + 3}' for i in range(len(SPREAD))]


@pytest.fixture(scope='module')
def place(tmp_path_factory, mpi_programs, built_already):
    '''A workplace on a cluster whose nodes n1, n2 have two CPUs, and the others one each; the MPI programs are built already.'''
    canned = tmp_path_factory.mktemp('wrappers')
    for mpi, environment in MPIS.items():
        (canned / os.path.basename(environment['cc'])).symlink_to(mpi_programs(mpi).folder)
    with cluster_in(tmp_path_factory.mktemp('cluster'), nodes=2 + len(SPREAD), cpus=[CPUS[:2], CPUS[:2], *SPREAD],
                    extra=f"PartitionName=one Nodes=n1\nPartitionName=spread Nodes={','.join(NODES)}") as cluster:
        place = rfm.Workplace(tmp_path_factory.mktemp('place') / 'p', built_already, config=SITE, CANNED_MPI=canned,
                              CANNED_CMAKE=shutil.which('cmake'), MADE_CPUS=','.join(map(str, CPUS[:2])), **cluster.variables)
        # Builds that end between the same two looks are followed by tests that are set up together, while all nodes are idle.
        place.environment |= {'RFM_POLL_RATE_MAX': '4', 'RFM_POLL_RATE_MIN': '4'}
        place.cluster = cluster
        yield place


def run(place, name, *options, partition, environ='gnu-.*', checks=CHECKS, **environment):
    done = place.reframe('-r', '--system', f'made:{partition}', '-p', environ, '-n', name, '-S', 'processes=1', *options, checks=checks, **environment)
    assert done.report, done.out
    return [case for case in done.report['runs'][-1]['testcases'] if not case['fixture']]


def hosts(case):
    return [process['host'] for process in case['plumbline']['machine']['processes']]


# --- the checks -------------------------------------------------------------------------------------------------------

@two_cpus
def test_on_one_node_every_mpi_runs_through_slurm_and_there_is_nothing_to_pair(place):
    '''With another MPI's job on it that node is not idle.'''
    cases = run(place, '^pingpong%transport=shm|pingpong_nodes%transport=tcp|node_pairs', '-S', 'pingpong.largest=2', '--flex-alloc-nodes=all',
                partition='one', environ='gnu-(openmpi|mpich|impi)$')
    assert len(cases) == 3 * len(MPIS)
    for case in cases:
        if case['name'].startswith('pingpong '):
            rfm.assert_measured(case)
            assert hosts(case) == ['n1', 'n1']
            assert all(record['cpus'] == CPUS[:2] for record in case['plumbline']['records'])
        else:
            assert case['result'] == 'skip'
            assert case['plumbline']['skipped'][0]['reason'] == 'needs 2 nodes: made:one has 1 that can be used'


def test_on_a_local_partition_there_is_nothing_to_pair(measuring_mpi, tmp_path):
    mpi = any_mpi()
    done = measuring_mpi(tmp_path / 'local', mpi).reframe('-r', '-p', f'gnu-{mpi}$', '-n', 'pingpong_nodes|node_pairs|network_patterns', checks=CHECKS)
    assert len(done.cases()) == 3 + 5
    for name, case in done.cases().items():
        assert case['result'] == 'skip'
        needs = '2' if name.startswith('pingpong_nodes') else 'several'
        assert case['plumbline']['skipped'][0]['reason'] == f'needs {needs} nodes: localhost:default is local, this node alone'


@contextlib.contextmanager
def drained(place, nodes):
    for node in nodes:
        place.cluster.must(['scontrol', 'update', f'node={node}', 'state=drain', 'reason=test'])
    try:
        yield
    finally:
        for node in nodes:
            place.cluster.must(['scontrol', 'update', f'node={node}', 'state=resume'])


@two_cpus
def test_over_several_nodes_every_mpi_runs_by_its_launcher_and_by_srun(place):
    '''Of more than two the last is drained.  MPICH runs over TCP here: where its MPI_Finalize hangs, the program ends itself after 30 s.'''
    down = NODES[2:][-1:]
    with drained(place, down):
        cases = run(place, '^pingpong_nodes%transport=default|node_pairs', '-S', 'pingpong_nodes.largest=4', '-S', 'node_pairs.large=4096',
                    '--flex-alloc-nodes=all', partition='spread')     # not idle: another MPI's build runs on it
    environs = {f'gnu-{mpi}' for mpi in MPIS} | ({'gnu-mpich-srun'} if 'mpich' in MPIS else set())
    assert len(cases) == 2 * len(environs) and {case['environ'] for case in cases} == environs
    for case in cases:
        rfm.assert_measured(case)
        assert (' srun ' in f" {case['plumbline']['command']}") == case['environ'].endswith('-srun')
        assert_two_nodes(case) if case['name'].startswith('pingpong_nodes') else assert_all_but(case, down)


@two_cpus
def test_where_all_but_one_are_drained_there_is_nothing_to_pair(place):
    needs_mpi('openmpi')
    with drained(place, NODES[1:]):
        case, = run(place, 'node_pairs', '--flex-alloc-nodes=all', partition='spread', environ='gnu-openmpi$')
    assert case['result'] == 'skip'
    assert case['plumbline']['skipped'][0]['reason'].startswith('needs 2 nodes: made:spread has 1 that can be used, not n')


def assert_two_nodes(case):
    result = case['plumbline']
    assert len(set(hosts(case))) == 2
    assert [metric['name'] for metric in result['metrics']] == [f'{name}.default.nodes' for name in ('latency', 'bandwidth', 'of_halves')]
    (_, _, figure), = figures.of_check('pingpong_nodes', [rfm.detail_of('pingpong_nodes', case)])
    assert [curve.name for curve in figure.data if curve.name] == ['default']


def assert_all_but(case, down):
    result, used = case['plumbline'], [node for node in NODES if node not in down]
    assert hosts(case) == used
    left_out = [note for note in result.get('notes', ()) if 'among the nodes' in note]
    assert left_out == [f'not among the nodes, because they are down or kept back: {node}' for node in down]
    measured = [f'{kind}.{what}' for kind in ('latency', 'bandwidth') for what in ('pairs', 'worst_pair')]
    assert [metric['name'] for metric in result['metrics']] == measured
    assert [skipped['metric'] for skipped in result['skipped']] == ['of_median.latency', 'of_median.bandwidth']
    assert f'{len(used)} nodes cannot be ranked by their pairs: 4 at least' in result['skipped'][0]['reason']


PATTERNS = {'pairs': ('pair', 'matchings'), 'incast': ('oneway', 'incast'), 'alltoall': ('pair', 'alltoall')}


@pytest.fixture(scope='module')
def over_all_nodes(place, request):
    '''Cases of one run: patterns, with a folder as /sys on which a port counts errors, and an application that scales.'''
    needs_mpi('openmpi')
    simulated = None if program.missing() else request.getfixturevalue('simulated')
    counters = place.folder / 'sys/class/infiniband/mlx5_0/ports/1/counters'
    counters.mkdir(parents=True)
    (counters / 'link_error_recovery').symlink_to('/proc/self/schedstat')       # grows by what the process that reads it has used of a CPU
    given = {'network_patterns': ('large=65536', f"ports={place.folder / 'sys'}", f'network={rfm.REPOSITORY}/config/networks/example-fat-tree.yaml'),
             'app_scaling': ('edge=8', 'each=2')}
    settings = itertools.chain(*(('-S', f'{check}.{one}') for check, some in given.items() for one in ('samples=10', *some)))
    built = {'PLUMBLINE_REPORTS': simulated.parents[3]} if simulated else {}
    return run(place, f"network_patterns%pattern=({'|'.join(PATTERNS)})|app_scaling.*study=lbm_(strong|weak).*over=nodes", '--flex-alloc-nodes=all', *settings,
               '-c', rfm.REPOSITORY / 'checks/apps/app_scaling.py', partition='spread', environ='gnu-openmpi$', **built)


@two_cpus
def test_patterns_over_all_nodes_and_a_link_that_counts_errors(place, over_all_nodes):
    cases = [case for case in over_all_nodes if case['name'].startswith('network_patterns')]
    assert len(cases) == len(PATTERNS)
    for case in cases:
        rfm.assert_measured(case)
        assert hosts(case) == NODES
        assert_pattern(case, re.search(r'pattern=(\w+)', case['name'])[1])
    drawn = list(figures.of_check('network_patterns', [rfm.detail_of('network_patterns', case) for case in cases]))
    assert drawn[0][0] == 'Patterns of messages over all nodes' and len(drawn[0][2].data[0].x) == len(PATTERNS) + 1
    assert 'One node or link is slower than the others' in place.judge().out


def assert_pattern(case, pattern):
    result, (limit, variant) = case['plumbline'], PATTERNS[pattern]
    found = {metric['name']: metric for metric in result['metrics']}
    assert {f'bandwidth.{variant}', f'latency.{variant}', f'of_pair.{variant}', f'bandwidth.{limit}'} <= set(found)
    assert ('bandwidth.worst_matching' in found) == (pattern == 'pairs')
    assert found['link_errors']['verdict'] == 'FAIL' and all(f'on {host} mlx5_0/1' in found['link_errors']['reason'] for host in NODES)
    if not program.missing():
        assert found[f'of_simulated.{variant}']['value'] > 0 and any('simulated' in note for note in result['notes'])
    if len(NODES) < 4 and pattern != 'alltoall':
        unranked = next(skipped['reason'] for skipped in result['skipped'] if skipped['metric'] == f'of_median.{variant}')
        assert f'{len(NODES)} nodes cannot be ranked' in unranked


@two_cpus
@pytest.mark.parametrize('study', ['lbm_strong', 'lbm_weak'])
def test_an_application_scales_from_one_node_to_all(over_all_nodes, study):
    case, = (case for case in over_all_nodes if f'study={study} ' in case['name'])
    rfm.assert_measured(case)
    assert hosts(case) == NODES
    metrics = {metric['name'] for metric in case['plumbline']['metrics']}
    assert {'flops.1', f'flops.{len(NODES)}', f'communication.{len(NODES)}', 'efficiency.all'} <= metrics
    assert {record['options']['planes-used'] for record in case['plumbline']['records']} == (
        {8} if study == 'lbm_strong' else {2 * record['options']['working'] for record in case['plumbline']['records']})


@two_cpus
def test_busy_nodes_are_not_waited_for(place):
    '''All nodes of a production machine are never free at once.'''
    needs_mpi('openmpi')
    job = place.cluster.must(['sbatch', '--parsable', '-p', 'spread', '-w', NODES[0], '-o', '/dev/null', '--wrap=sleep 300']).strip()
    try:
        case, = run(place, 'node_pairs', partition='spread', environ='gnu-openmpi$')
    finally:
        place.cluster.must(['scancel', job])
    if len(NODES) < 3:
        assert (f'needs 2 nodes: made:spread has {len(NODES) - 1} that can be used and are idle, not {NODES[0]} '
                '(--flex-alloc-nodes=all waits for them)') in case['plumbline']['skipped'][0]['reason']
    else:
        assert NODES[0] not in hosts(case) and f'because they are not idle: {NODES[0]}' in str(case['plumbline']['notes'])


@two_cpus
def test_ranks_that_are_both_on_one_of_two_nodes_fail_the_check(place):
    needs_mpi('openmpi')
    check = place.folder / 'wrong.py'
    check.write_text((CHECKS / 'pingpong.py').read_text() + '''

from plumbline.mpi import families
families.families()['openmpi'].unbound.options[:] = ['--map-by', 'ppr:2:node:OVERSUBSCRIBE', '--bind-to', 'none']
''')
    case, = run(place, 'pingpong_nodes%transport=tcp', '-S', 'pingpong_nodes.largest=2', partition='spread', environ='gnu-openmpi$', checks=check)
    assert (case['result'], case['fail_phase']) == ('fail', 'sanity')
    assert re.search(r'2 ranks were asked for on 2 nodes, 1 on each, but ran on 1: n\d; rank by rank: (n\d), \1', case['fail_reason'])
    assert 'Threads or ranks shared a CPU' in place.judge().out


# --- placement --------------------------------------------------------------------------------------------------------

@two_cpus
def test_ranks_are_bound_in_their_order_on_each_of_two_nodes(place):
    '''As the checks bind where all nodes are alike: two ranks on each node, the second CPU first; with every MPI.'''
    cpus, job = CPUS[1::-1], place.folder / 'bind.sh'
    told = 'echo "${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $(hostname) $(taskset -cp $$)"'
    script = ['#!/bin/bash']
    for mpi, environment in MPIS.items():
        family = families()[mpi]
        settings = (family.start + family.nodes + family.bind).filled(ranks=4, per_node=2, cpus=','.join(map(str, cpus)))
        exports = [f'export {name}="{value}"' for name, value in [*environment['env_vars'], *settings.env.items()]]
        start = shlex.join([*environment['extras']['launcher'], *settings.options, 'sh', '-c', told])
        script += ['(', *exports, *family.bind_commands(cpus, nodes=2), f'{start} | sed "s/^/{mpi} /"', ')']
    job.write_text('\n'.join([*script, '']))
    assert batch(place.cluster, '-w', 'n1,n2', '--ntasks=4', '--ntasks-per-node=2', '-D', place.folder, '-o', 'bound', job) == '0:0'
    found = sorted(line.split() for line in (place.folder / 'bound').read_text().splitlines()
                   if not line.startswith('srun: '))       # Job step creation temporarily disabled, retrying; Step created
    assert [(line[0], line[1], line[2], line[-1]) for line in found] == [
        (mpi, str(rank), host, str(cpu)) for mpi in sorted(MPIS)
        for rank, (host, cpu) in enumerate(itertools.product(('n1', 'n2'), cpus))]


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


def test_an_unknown_binding_is_told_and_nodes_that_no_scheduler_lists_are_so_many_as_are_asked_for():
    partition = SimpleNamespace(fullname='site:cpu', extras={'binding': 'none'})
    with pytest.raises(PlumblineError, match="extras of site:cpu: binding 'none': give 'topology' or 'scheduler'"):
        MpiCheck.bound.fget(SimpleNamespace(current_partition=partition))

    def allnodes():
        raise NotImplementedError
    job = SimpleNamespace(scheduler=SimpleNamespace(allnodes=allnodes, filternodes=list), sched_flex_alloc_nodes=3)
    assert nodes_of(job) is None
    partition.scheduler = SimpleNamespace(registered_name='pbs')
    check = SimpleNamespace(nodes=0, suspected=None, current_partition=partition, job=job, is_dry_run=lambda: False)
    MpiCheck.choose_nodes(check)        # --flex-alloc-nodes=3
    assert check.nodes == 3


def test_a_node_at_the_end_of_our_last_job_counts_as_idle():
    '''Else a test is left out because the one before it has just ended there.'''
    class Node:
        def __init__(self, name, *states):
            self.name, self.states = name, set(states)

        def in_statex(self, state):
            return self.states == {state.upper()}

    nodes = [Node('n1', 'IDLE'), Node('n2', 'IDLE', 'COMPLETING'), Node('n3', 'COMPLETING'), Node('n4', 'MIXED', 'COMPLETING'),
             Node('n5', 'ALLOCATED'), Node('n6', 'DRAIN', 'IDLE'), Node('n7', 'IDLE', 'RESERVED', 'MAINTENANCE'), Node('n8', 'IDLE', 'DYNAMIC_NORM'),
             Node('n9', 'IDLE', 'MAINTENANCE'), Node('n10', 'ALLOCATED', 'COMPLETING')]
    scheduler = SimpleNamespace(allnodes=lambda: nodes, filternodes=lambda _, found: found)
    scheduler.filternodes_by_state = lambda found, state: JobScheduler.filternodes_by_state(scheduler, found, state)
    found = nodes_of(SimpleNamespace(scheduler=scheduler), 'idle')
    assert (str(found.usable), str(found.busy), str(found.others)) == ('n[1-3,7-8]', 'n[4-5,10]', 'n[6,9]')
