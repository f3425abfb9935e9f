'''Sweeps within limits, on a real Slurm: reservations, features, budgets, nodes that nobody else waits for; and who offends again.'''

import json
import os
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import rfm
from plumbline.errors import PlumblineError
from plumbline.nodes import events
from plumbline.sweep import plan, slurm, state
from plumbline.sweep.slurm import satisfies
from test_sweep import CHECKS, CPUS, PATIENT, Sweeps
from virtual import cluster_in
from waiting import until


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    '''Nodes n1 to n4 with features.'''
    with cluster_in(tmp_path_factory.mktemp('cluster'), nodes=4, cpus=[CPUS] * 4,
                    extra='PartitionName=door Nodes=ALL State=UP\nPartitionName=back Nodes=ALL State=UP Hidden=YES') as running:
        for nodes, features in (('n[1-2]', 'fast'), ('n3', 'fast,gpu'), ('n4', 'gpu')):
            running.must(['scontrol', 'update', f'nodename={nodes}', f'availablefeatures={features}', f'activefeatures={features}'])
        yield running


def reserve(cluster, name, nodes, minutes='60', start='now'):
    cluster.must(['scontrol', 'create', 'reservation', f'reservationname={name}', 'users=root', f'starttime={start}', f'duration={minutes}',
                  f'nodes={nodes}', 'flags=maint,ignore_jobs'])


@pytest.fixture
def reserved(cluster):
    reserve(cluster, 'maint', 'n[2-3]')
    yield cluster
    cluster.run(['scontrol', 'delete', 'reservationname=maint'])
    cluster.wait()


def history(place):
    '''What the journal of the nodes says.'''
    return [json.loads(line) for line in (place.folder / 'reports/nodes/made.jsonl').read_text().splitlines()]


def test_what_slurm_takes_for_a_feature_is_what_we_take(cluster):
    nodes = {'n1': {'fast'}, 'n3': {'fast', 'gpu'}, 'n4': {'gpu'}}
    for expression in ('fast', 'fast&gpu', 'fast|gpu', 'fast|gpu&gpu', 'gpu&gpu|fast', 'gpu|fast&fast'):
        taken = {node for node in nodes if cluster.run(
            ['sbatch', '--test-only', '-N1', f'--nodelist={node}', f'--constraint={expression}', '--wrap=true']).returncode == 0}
        assert taken == {node for node, features in nodes.items() if satisfies(expression, features)}, expression


def test_options_choose_nodes_and_the_plan_keeps_them(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster)
    with ThreadPoolExecutor(2) as pool:
        drawn, none = pool.map(lambda words: place.sweep(*words, '--dry-run'), (
            ('--feature', 'fast', '--exclude', 'n1', '--random', '2'), ('--feature', 'gpu', '--exclude', 'n[3-4]')))
    assert '1 checks on 2 of the 4 nodes of made:cpu: n[2-3]' in drawn.out and re.search(r'again with --random 2 --seed \d+', drawn.out), drawn.out
    assert none.code == 2 and none.out == 'plumbline: no node is left: 4 in the partition, 2 of them not excluded (n[3-4]), 0 of them with gpu\n'
    assert not place.sweeps.exists()
    done = place.sweep('--feature', 'gpu', '--random', '1', '--seed', '4', '--node-hours', '3')
    assert done.code == 0, done.out
    assert place.only.plan['selection'] == {'nodes': 'all', 'exclude': None, 'feature': 'gpu', 'random': 1, 'seed': 4, 'due': None}
    measured, = history(place)
    assert (measured['event'], measured['verdict'], measured['partition']) == ('measured', 'NO REFERENCE', 'made:cpu') and 0 < measured['hours'] < 0.1
    # The other is due: it has never been measured.
    due = place.sweep('--feature', 'gpu', '--due', '1', '--dry-run')
    other, = {'n3', 'n4'} - {measured['node']}
    assert f'1 checks on 1 of the 4 nodes of made:cpu: {other}' in due.out, due.out


def test_a_sweep_in_a_reservation_is_of_its_nodes(reserved, tmp_path):
    place = Sweeps(tmp_path, reserved)
    done = place.sweep('--nodes', 'idle', '--reservation', 'maint', '--time-limit', '10m')
    assert done.code == 0, done.out
    assert place.states() == {'n2': 'measured', 'n3': 'measured'}
    elsewhere = place.sweep('--nodes', 'n1', '--reservation', 'maint', '--time-limit', '10m')
    assert elsewhere.code == 2 and 'no node is left: 4 in the partition, 2 of them in reservation maint, 0 of them among n1' in elsewhere.out


def test_a_reservation_that_cannot_be_used_is_said_before_anything_is_submitted(reserved, tmp_path):
    reserve(reserved, 'later', 'n1', start='now+1hour')
    place = Sweeps(tmp_path, reserved)
    try:
        with ThreadPoolExecutor(len(CPUS)) as pool:
            missing, later, short = pool.map(lambda words: place.sweep('--reservation', *words), (('none',), ('later',), ('maint', '--time-limit', '2h')))
    finally:
        reserved.must(['scontrol', 'delete', 'reservationname=later'])
    assert re.search(r'^plumbline: Slurm has no reservation none \(it has (maint, later|later, maint)\)$', missing.out, re.M), missing.out
    assert 'plumbline: reservation later begins at' in later.out and 'and a job may take 120 min (--time-limit)' in short.out, later.out + short.out
    assert [done.code for done in (missing, later, short)] == [2, 2, 2] and not place.sweeps.exists()


def test_a_reservation_that_ends_in_the_middle_loses_nothing(reserved, tmp_path):
    place = Sweeps(tmp_path, reserved, SWEPT='n2=sleeps')
    process = place.start('--nodes', 'n[2-3]', '--reservation', 'maint', '--at-once', '1', '--time-limit', '10m')
    place.until_queued('n2')
    until(lambda: place.running.run(['squeue', '-hw', 'n2', '-o', '%T']).stdout == 'RUNNING\n', 'its start')
    reserved.must(['scontrol', 'update', 'reservationname=maint', 'duration=5'])
    until(lambda: 'n3: not submitted: reservation maint ends at' in place.said, 'its end')
    assert 'before a job of 10 min could end' in place.said
    reserved.must(['scontrol', 'update', 'reservationname=maint', 'endtime=now+5seconds'])
    assert process.wait(PATIENT) == 2, place.said
    assert place.states()['n2'] == 'interrupted' and re.search(r'n2 +interrupted +reservation maint .* while its job ran', place.said), place.said
    until(lambda: reserved.run(['scontrol', 'show', 'reservation', 'maint']).returncode, 'that Slurm has forgotten it')
    refused, gone = (place.sweep('--resume', place.only.name, *words) for words in (('--reservation', 'maint'), ()))
    assert refused.code == gone.code == 2 and 'Slurm has no reservation maint' in refused.out
    assert re.search(r'n\[2-3\] +not submitted +reservation maint is gone', gone.out), gone.out
    reserve(reserved, 'maint', 'n[2-3]')
    done = place.sweep('--resume', place.only.name, SWEPT='')
    assert done.code == 0 and place.states() == {'n2': 'measured', 'n3': 'measured'}, done.out


def test_what_has_ended_in_a_reservation_that_is_gone_is_collected(reserved, tmp_path):
    place = Sweeps(tmp_path, reserved)
    process = place.start('--nodes', 'n[2-3]', '--reservation', 'maint', '--at-once', '1', '--time-limit', '10m')
    place.until_queued('n2')
    process.kill()
    process.wait()
    until(lambda: not reserved.run(['squeue', '-h']).stdout, 'its end')
    reserved.must(['scontrol', 'delete', 'reservationname=maint'])
    done = place.sweep('--resume', place.only.name)
    assert done.code == 1 and place.states() == {'n2': 'measured', 'n3': 'not submitted'}, done.out


def test_a_budget_ends_a_sweep_and_says_what_it_left_out(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster)
    # What the first job takes leaves no whole minute for a second one.
    done = place.sweep('--nodes', 'n[1-3]', '--time-limit', '1m', '--node-hours', '0.0167')
    assert done.code == 0, done.out
    states = place.states()
    assert states == {'n1': 'measured', 'n2': 'skipped', 'n3': 'skipped'}
    assert re.search(r'n\S*3\S* +skipped +0.0\d of 0.0167 node-hours are spent, and a job may take 1 min', done.out), done.out
    assert 'what the limits of this sweep skip is not missing; to go on: plumbline sweep --resume' in done.out
    done = place.sweep('--resume', place.only.name, '--node-hours', '1')
    assert done.code == 0 and set(place.states().values()) == {'measured'}, done.out
    assert {event['node'] for event in history(place)} == {'n1', 'n2', 'n3'}


def blocked(cluster, nodes):
    '''A job of somebody else's that all nodes are not enough for, as long as one of these is busy.'''
    return cluster.must(['sbatch', '--parsable', '-p', 'door', '-N', str(nodes), '--exclusive', '-o', '/dev/null', '--wrap=sleep 1']).strip()


def test_scavenging_gives_back_what_others_wait_for(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster, SWEPT='n1=sleeps')
    assert ' --nice=1000000 ' in place.sweep('--scavenge', '--dry-run').out
    process = place.start('--scavenge', '--nodes', 'n[1-2]', '--at-once', '1')
    place.until_queued('n1')
    until(lambda: cluster.run(['squeue', '-hw', 'n1', '-o', '%T']).stdout == 'RUNNING\n', 'its start')
    other = blocked(cluster, 4)
    until(lambda: 'jobs of others that wait for nodes: 1; nothing is submitted' in place.said, 'the other job')
    assert place.only.nodes['n1'].phase == state.QUEUED       # it runs, and may end
    cluster.must(['scancel', other])
    until(lambda: 'no other job waits: the sweep goes on' in place.said, 'that it goes on')
    cluster.must(['scancel', str(place.only.nodes['n1'].job)])
    assert process.wait(PATIENT) == 1, place.said
    assert place.states() == {'n1': 'cancelled', 'n2': 'measured'}


def test_scavenging_can_give_back_running_jobs_and_ends_after_its_patience(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster, SWEPT='n1=sleeps')
    hold = cluster.must(['sbatch', '--parsable', '-p', 'door', '-w', 'n4', '--exclusive', '-o', '/dev/null', '--wrap=sleep 300']).strip()
    until(lambda: cluster.run(['squeue', '-hw', 'n4', '-o', '%T']).stdout == 'RUNNING\n', 'its start')       # until then it waits for a node
    process = place.start('--yield', '--nodes', 'n[1-2]', '--at-once', '1', '--patience', '4s')
    place.until_queued('n1')
    until(lambda: cluster.run(['squeue', '-hw', 'n1', '-o', '%T']).stdout == 'RUNNING\n', 'its start')
    other = blocked(cluster, 4)
    assert process.wait(PATIENT) == 2, place.said
    assert 'jobs of others that wait for nodes: 1; nothing is submitted; given back: n1' in place.said
    assert place.states() == {'n1': 'skipped', 'n2': 'skipped'}
    assert 'jobs of others wait, for more than 4 s' in place.said
    cluster.must(['scancel', other, hold])
    cluster.wait()
    done = place.sweep('--resume', place.only.name, SWEPT='')
    assert done.code == 0 and place.states() == {'n1': 'measured', 'n2': 'measured'}, done.out


def test_who_cannot_see_the_jobs_of_others_scavenges_nothing(cluster, monkeypatch):
    monkeypatch.setenv('SLURM_CONF', cluster.variables['SLURM_CONF'])
    found = slurm.Slurm(['-p', 'all'])
    found.refuse_hidden_jobs()
    monkeypatch.setattr(slurm, 'ask', lambda *_: 'PrivateData             = jobs,usage\nSlurmUser               = slurm(64030)\n')
    monkeypatch.setattr(slurm.os, 'getuid', lambda: 1000)
    with pytest.raises(PlumblineError, match='--scavenge: Slurm shows nobody the jobs of others'):
        found.refuse_hidden_jobs()
    monkeypatch.setattr(slurm.os, 'getuid', lambda: 64030)
    found.refuse_hidden_jobs()


def test_jobs_of_a_hidden_partition_and_lines_in_names_and_reasons(cluster, monkeypatch):
    monkeypatch.setenv('SLURM_CONF', cluster.variables['SLURM_CONF'])
    asked, ask = [], slurm.ask
    monkeypatch.setattr(slurm, 'ask', lambda command, *more: asked.append(command) or ask(command, *more))
    cluster.must(['scontrol', 'update', 'nodename=n4', 'state=drain', 'reason=fan\nbroken'])
    ours, other = (cluster.must(['sbatch', '--parsable', '--hold', f'--partition={partition}', f'--job-name={name}', '--wrap=true']).strip()
                   for partition, name in (('back', 'plumbline-made-n1'), ('door', 'a\nb\nc')))
    try:
        found = slurm.Slurm(['-p', 'back'])
        assert [(job.number, job.name, job.state) for job in found.jobs('plumbline-made-').values()] == [(int(ours), 'plumbline-made-n1', 'PENDING')]
        assert all('--all' in command for command in asked)         # root is shown what is hidden anyway, others are not
        nodes = found.nodes()
        assert list(nodes) == ['n1', 'n2', 'n3', 'n4'] and nodes['n4'].reason.startswith('fan')
    finally:
        cluster.must(['scancel', ours, other])
        cluster.must(['scontrol', 'update', 'nodename=n4', 'state=resume'])
        cluster.wait()


def test_two_sweeps_at_once_know_of_each_other(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster, SWEPT='n1=sleeps')
    process = place.start('--nodes', 'n1')
    place.until_queued('n1')
    first = place.only
    second = place.start('--nodes', 'n[1-2]')
    until(lambda: re.search(rf'^note: sweep {first.name} of this partition is being run \(process {process.pid} on \S+\), on n1 too: each job has its '
                            'node for itself, and the later one waits$', place.said, re.M), 'the note')
    cluster.must(['scancel', str(first.nodes['n1'].job)])
    assert process.wait(PATIENT) == 2
    until(lambda: (cluster.run(['squeue', '-hw', 'n1', '-o', '%T']).stdout == 'RUNNING\n'), 'the second')
    cluster.must(['scancel', '-n', cluster.must(['squeue', '-hw', 'n1', '-o', '%j']).strip()])
    assert second.wait(PATIENT) == 1, place.said


def test_who_offends_again_is_known(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster, SWEPT='n2=slow')
    for _ in range(2):
        done = place.sweep('--nodes', 'n[1-3]')
        assert done.code == 1, done.out
        assert done.line('outliers: ') == 'outliers: n2'
        time.sleep(1)       # names of sweeps are in the order of their begin
    assert 'n2: an outlier in 2 of its last 2 sweeps, never seen good; ticket: plumbline nodes ticket n2' in done.out
    assert [event['how'] for event in history(place) if event['event'] == events.PROPOSED] == ['printed']
    table = place.plumbline('nodes')
    assert table.code == 0 and re.search(r'^ ?n2 .* outlier .* 2 of 2 ', table.out, re.M) and 'in doubt: n2: outlier' in table.out, table.out
    assert re.search(r'2 sweeps, 0.\d\d node-hours, 2 findings: 0.\d\d node-hours per finding', table.out), table.out
    assert "bandwidth.plain: 60.0 MB/s, its peers' median 100 MB/s (-40.0 %)" in place.plumbline('nodes', 'ticket', 'n2').out
    place.plumbline('nodes', 'mark', 'n2', 'repaired', '--reason', 'new DIMM')
    done = place.sweep('--due', '1', SWEPT='')
    assert 'on 1 of the 4 nodes of made:cpu: n2' in done.out and 'n2, repaired at' in done.out, done.out
    assert 'to put it back (not done here): scontrol update nodename=n2 state=resume' in done.out


@pytest.mark.parametrize('scheduler, said', [
    ('pbs', r"has the scheduler pbs: a sweep needs Slurm \(slurm or squeue\), and ReFrame's --distribute lists no nodes of pbs either: submit a "
            r'job for each node by hand \(qsub -l select=1:host=NODE\)'),
    ('torque', 'qsub -l nodes=NODE'), ('flux', r'flux batch -N1 --requires=host:NODE'), ('local', r'Slurm \(slurm or squeue\)$')])
def test_other_schedulers_are_refused_with_what_to_do_instead(scheduler, said, tmp_path):
    site = tmp_path / 'site.py'
    site.write_text(f'''site_configuration = {{
        'systems': [{{'name': 'made', 'hostnames': ['.*'], 'partitions': [{{'name': 'cpu', 'scheduler': '{scheduler}', 'launcher': 'local',
                                                                          'environs': ['gnu']}}]}}],
        'environments': [{{'name': 'gnu', 'cc': 'gcc'}}]}}''')
    before = dict(os.environ)
    with pytest.raises(PlumblineError, match=said):
        plan.partition([site], 'made:cpu')
    assert os.environ == before


@pytest.mark.parametrize('scheduler', ['pbs', 'torque', 'flux'])
def test_reframe_lists_no_nodes_of_these_schedulers(scheduler):
    '''What docs/howto/nodes.rst says; the day it fails, a sweep can be had there.'''
    import inspect

    from reframe.core.schedulers import flux, pbs
    kind = {'pbs': pbs.PbsJobScheduler, 'torque': pbs.TorqueJobScheduler, 'flux': flux.FluxJobScheduler}[scheduler]
    assert 'does not support node listing' in inspect.getsource(kind.allnodes)


def test_resuming_chooses_no_other_nodes(tmp_path):
    done = rfm.Workplace(tmp_path).plumbline('sweep', '--resume', 'x', '--due', '3')
    assert done.code == 2 and '--resume goes on with the checks and nodes of the sweep: name neither here' in done.out


def test_on_a_node_of_any_scheduler_the_checks_run_by_hand(tmp_path):
    '''As docs/howto/nodes.rst says of PBS and Flux.'''
    place = rfm.Workplace(tmp_path, CANNED_SCHEDULER='pbs', PLUMBLINE_ON_NODE='made:cpu')
    done = place.reframe('-r', '--system', 'made:cpu', checks=CHECKS)
    assert done.code == 0, done.out
    assert place.judge().code in (0, 3)
    shown = place.plumbline('nodes', 'show', '--system', 'made')
    assert shown.code == 0 and re.search(rf'^ ?{socket.gethostname()} .* NO REFERENCE +never', shown.out, re.M), shown.out
