'''The virtual Slurm cluster: it runs jobs on nodes with names of their own, and leaves nothing behind, however it ends.'''

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import cluster as slurm
import rfm
from plumbline.errors import PlumblineError
from plumbline.store import archive_rows
from virtual import cluster_in, needs_cluster
from waiting import until

CLUSTER = Path(__file__).with_name('cluster')
FOUR = ['n1', 'n2', 'n3', 'n4']


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    '''Four nodes; n3 has 60 % of the time of its CPUs.'''
    with cluster_in(tmp_path_factory.mktemp('cluster'), quotas={'n3': 0.6}) as running:
        yield running


def processes_of(folder):
    '''Numbers of the processes that a cluster's folder is in the command or the environment of.'''
    found, here = [], str(folder).encode()
    for process in Path('/proc').glob('[0-9]*'):
        try:
            if int(process.name) != os.getpid() and here in (process / 'cmdline').read_bytes() + (process / 'environ').read_bytes():
                found.append(int(process.name))
        except OSError:         # it has ended
            continue
    return found


def cgroups_of(number):
    '''Those of the cluster of a process; others may go while we look.'''
    return [folder for folder, *_ in os.walk('/sys/fs/cgroup') if os.path.basename(folder).startswith(f'plumbline-{number}-')]


def sleeper(cluster, seconds):
    '''A job that sleeps on node n2; returns once its process is there.'''
    cluster.must(['sbatch', '-w', 'n2', '-o', '/dev/null', '--wrap', f'exec sleep {seconds}'])
    until(lambda: sleeping(seconds))


def sleeping(seconds):
    return subprocess.run(['pgrep', '-f', f'^sleep {seconds}$'], capture_output=True, timeout=20).stdout.split()


# --- what runs on it ------------------------------------------------------------------------------------------

def test_the_slow_node_is_in_a_cgroup_with_its_quota_and_the_others_are_not(cluster):
    groups = {node: cluster.must(['srun', '-w', node, 'cat', '/proc/self/cgroup']) for node in FOUR}
    assert [node for node in FOUR if 'plumbline-' in groups[node]] == ['n3']
    name = re.search(r'plumbline-\S+', groups['n3'])[0]
    folder, = (path for path in map(Path, ('/sys/fs/cgroup/cpu', '/sys/fs/cgroup')) if (path / name).exists())
    version1 = folder / name / 'cpu.cfs_quota_us'
    quota, period = ((version1.read_text(), (folder / name / 'cpu.cfs_period_us').read_text()) if version1.exists()
                     else (folder / name / 'cpu.max').read_text().split())
    assert int(quota) / int(period) == pytest.approx(0.6 * len(cluster.cpus['n3']))


def test_a_step_has_all_cpus_of_its_node_however_many_cores_a_task_is_for(tmp_path):
    '''Slurm would give it the two hardware threads of a core for two cores.'''
    with cluster_in(tmp_path / 'cluster', nodes=1, hardware='CPUs=8 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2') as cluster:
        place = rfm.Workplace(tmp_path / 'place', CANNED_SCHEDULER='squeue', CANNED_LAUNCHER='srun', CANNED_ACCESS='--exclusive', **cluster.variables)
        case, = place.reframe('-r', '-n', 'Whole', checks=rfm.GUARDS / 'jobs.py').cases().values()
    assert case['result'] == 'pass', case['fail_reason']


# --- how it ends ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGKILL])
def test_in_the_foreground_it_ends_with_its_jobs_however_it_is_ended(number, tmp_path):
    needs_cluster()
    folder, seconds = tmp_path / 'cluster', 86400 + os.getpid()
    process = subprocess.Popen([sys.executable, CLUSTER, folder, '--nodes', '2', '--slow', 'n2'], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = [process.stdout.readline() for _ in range(3)]
        assert 'A Slurm cluster of 2 nodes, n2 at 60 %' in said[0], said
        conf = re.fullmatch(r' +export SLURM_CONF=(\S+)\n', said[1])[1]
        assert Path(conf).parent == folder
        running = slurm.Cluster(folder)       # another process uses it
        sleeper(running, seconds)
    finally:
        process.send_signal(number)
        rest = process.communicate(timeout=120)[0]
    until(lambda: not processes_of(folder))
    assert not sleeping(seconds)
    assert str(folder) not in Path('/proc/mounts').read_text()
    if number != signal.SIGKILL:        # which leaves nobody to remove the empty cgroup
        assert rest.splitlines()[-1] == 'the cluster has ended' and process.returncode == 0
        assert not cgroups_of(process.pid)


def test_without_a_folder_no_file_is_left():
    needs_cluster()
    with tempfile.TemporaryDirectory() as folder:       # a short path: those of sockets must be
        process = subprocess.Popen([sys.executable, CLUSTER, '--nodes', '1', '--slow', 'n1'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, 'TMPDIR': folder})
        process.stdout.readline()
        assert os.listdir(folder)
        process.terminate()
        rest = process.communicate(timeout=120)[0]
        assert rest.splitlines()[-1] == 'the cluster has ended' and process.returncode == 0
        assert not os.listdir(folder) and folder not in Path('/proc/mounts').read_text()
    assert not cgroups_of(process.pid)


# --- where it cannot run --------------------------------------------------------------------------------------

def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(slurm, '_SYSTEM', '')
    monkeypatch.setenv('PATH', str(rfm.tools(tmp_path / 'bin', without=['slurmctld', 'munged'])))
    assert re.search('slurmctld.* not found', slurm.missing())
    with pytest.raises(PlumblineError, match='^no virtual cluster: .*munged.* not found$'):
        slurm.Cluster(tmp_path / 'cluster').start()
    assert not (tmp_path / 'cluster').exists()


def test_only_root_can_start_it_and_that_is_said(monkeypatch, tmp_path):
    needs_cluster()
    monkeypatch.setattr(os, 'geteuid', lambda: 1000)
    with pytest.raises(PlumblineError, match='^no virtual cluster: only root '):
        slurm.Cluster(tmp_path / 'cluster').start()


def test_bad_words_are_one_line(tmp_path):
    needs_cluster()
    done = subprocess.run([sys.executable, CLUSTER, tmp_path / 'cluster', '--slow', 'n9'], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and done.stderr == 'plumbline: no virtual cluster: n9 is none of its nodes n1 .. n4\n'


# --- accounting -----------------------------------------------------------------------------------------------

def test_with_a_database_reframe_asks_sacct(tmp_path):
    with cluster_in(tmp_path / 'cluster', nodes=2, database=True) as cluster:
        place = rfm.Workplace(tmp_path / 'place', CANNED_SCHEDULER='slurm', CANNED_OVERLAP=1, **cluster.variables)
        process = place.start_reframe('-r', '-n', 'Quick|Ending|Endless%by=somebody', checks=rfm.GUARDS / 'jobs.py')
        try:
            until(lambda: 'somebody' in cluster.must(['squeue', '-h', '-t', 'running', '-o', '%j']))
            cluster.must(['scancel', '--name=somebody'])
            assert process.wait(120) == 1
        finally:
            process.kill()
        # Without the numbers of jobs sacct tells of them some seconds later.
        until(lambda: set(cluster.must(['sacct', '-XnP', '-o', 'cluster,account,user']).split()) == {'plumb|root|root'})
    found = {row['display_name']: row for row in archive_rows.session_rows(rfm.json.loads(place.report.read_text()))}
    assert found['Quick']['verdict'] == 'NO REFERENCE'
    assert found['Ending %way=fails']['reason'] == 'sanity: sanity error: the job ended with exit code 3: all is lost'
    # Its exit code is 0.
    assert found['Endless %by=somebody']['reason'].startswith('sanity: sanity error: the job ended as CANCELLED: ')
    until(lambda: not processes_of(cluster.folder))
