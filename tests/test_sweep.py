'''``plumbline sweep`` on a real Slurm cluster: every node once, whatever happens in between.'''

import errno
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

import rfm
from plumbline.cli import sweep as command
from plumbline.errors import PlumblineError
from plumbline.store import archive
from plumbline.sweep import driver, results, state
from virtual import cluster_in
from waiting import until

CPUS = sorted(os.sched_getaffinity(0))

CHECKS = rfm.GUARDS / 'swept.py'

#: How long to wait for anything, seconds.
PATIENT = 300

#: Slurm's sbatch, slow once: a file in the folder HANG says when, before it submits (until another one has submitted) or after.
SBATCH = '''#!/bin/sh
if [ -e "$HANG/before" ]; then mv "$HANG/before" "$HANG/late"; timeout 300 sh -c 'while [ -e "$HANG/late" ]; do sleep 0.1; done'; fi
answer=$({sbatch} "$@") || exit
rm -f "$HANG/late"
if [ -e "$HANG/after" ]; then rm "$HANG/after"; sleep 60; fi
echo "$answer"
'''


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    '''Nodes n1 to n5, n6, which is down, and n7, whose prolog lasts; it fails on those that have a file in the folder ``bad``.'''
    folder = tmp_path_factory.mktemp('cluster')
    (folder / 'bad').mkdir()
    lasts = f'[ $(hostname) != n7 ] || {{ touch {folder}/in_prolog; sleep 600; }}'
    (folder / 'prolog').write_text(f'#!/bin/sh\n{lasts}\n[ ! -e {folder}/bad/$(hostname) ]\n')
    (folder / 'prolog').chmod(0o755)
    with cluster_in(folder, nodes=7, cpus=[CPUS] * 7, absent=['n6'],
                    extra=f'PartitionName=door Nodes=ALL State=UP\nProlog={folder}/prolog') as running:
        assert running.run(['scontrol', 'update', 'nodename=n6', 'state=down', 'reason=fan broken']).returncode == 0
        yield running


class Sweeps(rfm.Workplace):
    '''Sweeps of the made-up partition on the cluster.'''

    def __init__(self, folder, running, path=None, **more):
        # Jobs of a sweep have next to nothing of the environment unless a site says so, and here it is what tells them what to do.
        more['CANNED_ACCESS'] = f"{more.get('CANNED_ACCESS', '')} --export=ALL"
        super().__init__(folder, path, CANNED_SCHEDULER='squeue', **running.variables, **more)
        self.running = running

    def command(self, *words, checks=CHECKS):
        new = () if '--resume' in words else ('-C', self.config, '--partition', 'made:cpu', '-c', checks)
        return ['sweep', *new, '--poll', '0.3s', '--pause', '0s', '--no-confirm', *words]

    def sweep(self, *words, checks=CHECKS, **environment):
        return self.plumbline(*self.command(*words, checks=checks), **environment)

    def start(self, *words):
        '''The command in the background, in a process group of its own; what it says is in :attr:`said`.'''
        with open(self.folder / 'said', 'a') as said:
            command = [sys.executable, '-c', 'from plumbline.cli import main; main()', *map(str, self.command(*words))]
            return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                    stdout=said, stderr=said, start_new_session=True)

    @property
    def said(self):
        return (self.folder / 'said').read_text()

    @property
    def sweeps(self):
        return self.folder / 'reports/sweeps'

    @property
    def only(self):
        '''The one sweep that there is, as it is on disk.'''
        plan, = self.sweeps.glob('*/sweep.json')
        return state.load(plan.parent)

    def until_queued(self, node):
        until(lambda: list(self.sweeps.glob('*/sweep.json')) and self.only.nodes[node].phase == state.QUEUED, 'a job')

    def states(self):
        return {node.name: node.state for node in self.only.nodes.values()}

    def jobs(self):
        '''Node -> its jobs of this sweep, as (submitted, ended); both texts that sort by time.'''
        found = {}
        text = self.running.run(['squeue', '-h', '-t', 'all', '-o', '%j|%V|%e']).stdout
        for name, *times in (line.split('|') for line in text.splitlines()):
            if name.startswith(self.only.prefix):
                found.setdefault(name.removeprefix(self.only.prefix), []).append(times)
        return found


@pytest.fixture(scope='module')
def timed_out(cluster, tmp_path_factory):
    '''A sweep of a node whose check does not end.  Its time is up at once, which Slurm sees within half a minute, while
    other tests run.'''
    place = Sweeps(tmp_path_factory.mktemp('sleeping'), cluster, SWEPT='n5=sleeps')
    process = place.start('--nodes', 'n5', '--time-limit', '1m')
    place.until_queued('n5')
    until(lambda: place.running.run(['squeue', '-hw', 'n5', '-o', '%T']).stdout == 'RUNNING\n', 'its start')
    soon = time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(time.time() + 5))       # what is past when it reads it Slurm refuses
    cluster.run(['scontrol', 'update', f"jobid={place.only.nodes['n5'].job}", f'endtime={soon}'])
    yield place, process
    os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
    process.wait()


@pytest.fixture(scope='module')
def died(cluster, tmp_path_factory):
    '''A sweep of a node that dies in its prolog, as in the gate: Slurm sees it after half a minute (SlurmdTimeout), while other tests run.'''
    place = Sweeps(tmp_path_factory.mktemp('dying'), cluster)
    process = place.start('--nodes', 'n7')
    until(lambda: (cluster.folder / 'in_prolog').exists(), 'the prolog')
    cluster.stop_node('n7')
    yield place, process
    os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
    process.wait()


def test_every_node_is_measured_once_and_no_more_than_asked_for_at_a_time(cluster, timed_out, died, built_already, tmp_path):
    place = Sweeps(tmp_path, cluster, built_already, CANNED_STAMPS=tmp_path / 'stamps')
    done = place.sweep('--nodes', 'n[1-3]', '--at-once', '2', '-n', 'Told.*good', checks=rfm.GUARDS / 'canned.py')
    assert done.code == 0, done.out
    assert re.search(r'n\[1-3\] +measured +software 1 NO REFERENCE; speed 1 NO REFERENCE$', done.out, re.M)
    assert (place.only.folder / 'n1/claim').stat().st_mtime_ns % 10**9 == 0        # set by the node's clock, in seconds
    jobs = [times for of_node in place.jobs().values() for times in of_node]
    assert len(jobs) == 3
    assert max(sum(begin <= at < end for begin, end in jobs) for at, _ in jobs) == 2
    assert set(archive.scan_files(archive.all_files(tmp_path / 'reports/archive')).collect()['hostname']) == {'n1', 'n2', 'n3'}
    found = results.frame(place.only.folder)
    assert found.schema == results.COLUMNS
    assert sorted(found.filter(pl.col('name') == 'of_limit.plain').select('node', 'value').iter_rows()) == [
        ('n1', 1.0), ('n2', 1.0), ('n3', 1.0)]
    assert set(found['kind']) == {f'made-up CPU, {len(CPUS)} CPUs, 0 GiB'}
    begun = [line.split()[2] for line in (tmp_path / 'stamps').read_text().splitlines() if line.startswith('begin')]
    assert begun.count('build') == 2                        # configured and built, for the three of them
    assert len(begun) == 2 + 3 * 3      # three processes on each


def test_nodes_that_are_missing_are_named_and_run_again(cluster, tmp_path):
    '''Drained, down, one on which ReFrame dies, one whose prolog fails, and one whose test fails before it has measured.'''
    place = Sweeps(tmp_path, cluster, SWEPT='n2=dies,n4=fails')
    cluster.run(['scontrol', 'update', 'nodename=n1', 'state=drain', 'reason=loose | cable'])
    (cluster.folder / 'bad/n3').touch()
    done = place.sweep('--nodes', 'n[1-4,6]')
    (cluster.folder / 'bad/n3').unlink()
    cluster.run(['scontrol', 'update', 'nodename=n[1,3]', 'state=resume'])
    assert done.code == 2, done.out
    assert place.states() == {'n1': 'drained', 'n2': 'failed', 'n3': 'failed', 'n4': 'failed', 'n6': 'down'}
    assert re.search(r'n1 +drained +loose \| cable', done.out)
    assert re.search(r'n6 +down +fan broken', done.out)
    assert re.search(r'n2 +failed +job FAILED: ReFrame: Killed', done.out)
    assert re.search(r'n3 +failed +job CANCELLED; the node is drain(ed|ing): Prolog error', done.out), done.out
    known = place.plumbline('nodes').out
    assert all(f'in doubt: {doubt}\n' in known for doubt in (
        'n[2-3]: its job failed', 'n4: FAIL', 'n1: drained: loose | cable', 'n6: down: fan broken')), known
    marked, unknown = (place.plumbline('nodes', 'mark', name, 'drained', '--reason', 'x') for name in ('n5', 'n55'))
    assert (marked.code, unknown.code) == (0, 2) and 'n55: no sweep or session of made has measured it, and Slurm does not know it here' in unknown.out
    assert re.search(r'n4 +failed +nothing was measured: sanity', done.out)
    done = place.sweep('--resume', place.only.name, SWEPT='n4=dies')
    assert done.code == 1, done.out
    assert place.states() == {'n1': 'measured', 'n2': 'measured', 'n3': 'measured', 'n4': 'failed', 'n6': 'down'}
    assert {node: len(jobs) for node, jobs in place.jobs().items()} == {'n1': 1, 'n2': 2, 'n3': 2, 'n4': 2}
    assert 'Killed' in (place.only.folder / 'n2.1/job.out').read_text()     # what was left is kept


def test_a_closed_partition_and_a_controller_that_is_restarted_are_waited_for(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster, CANNED_ACCESS='--partition=door')
    cluster.run(['scontrol', 'update', 'partitionname=door', 'state=inactive'])
    process = place.start('--nodes', 'n[1-2]', '--patience', '200s')
    until(lambda: 'trying again for 200 s' in place.said, 'a refusal')
    cluster.run(['scontrol', 'update', 'partitionname=door', 'state=up'])
    place.until_queued('n1')
    cluster.stop_controller()
    until(lambda: 'sbatch: ' in place.said and 'squeue' in place.said, 'silence')
    cluster.start_controller()
    assert process.wait(PATIENT) == 0, place.said
    for said in ('not available', 'Slurm takes jobs again', 'Slurm answers again'):
        assert said in place.said
    assert {node: len(jobs) for node, jobs in place.jobs().items()} == {'n1': 1, 'n2': 1}


def test_what_is_refused_for_good_or_for_too_long_is_not_tried_again(cluster, tmp_path):
    cluster.run(['scontrol', 'update', 'partitionname=door', 'state=inactive'])
    closed = Sweeps(tmp_path / 'closed', cluster, CANNED_ACCESS='--partition=door')
    never = Sweeps(tmp_path / 'never', cluster, CANNED_ACCESS='--reservation=nobodys')
    with ThreadPoolExecutor(2) as pool:
        closed, never = pool.map(lambda place, patience: place.sweep('--nodes', 'n1', '--patience', patience),
                                 (closed, never), ('1s', '1d'))
    cluster.run(['scontrol', 'update', 'partitionname=door', 'state=up'])
    assert closed.code == 2 and re.search(r'n1 +not submitted +sbatch: .*not available', closed.out)
    assert never.code == 2 and re.search(r'n1 +not submitted +sbatch: .*reservation is invalid', never.out)


def test_a_sweep_whose_driver_is_killed_goes_on_and_runs_no_node_twice(cluster, tmp_path):
    script = tmp_path / 'sbatch'
    script.write_text(SBATCH.format(sbatch=shutil.which('sbatch')))
    script.chmod(0o755)
    place = Sweeps(tmp_path, cluster, rfm.tools(tmp_path / 'bin', scripts=[script]), HANG=tmp_path)

    # The first job is submitted, and nobody knows its number.
    (tmp_path / 'after').touch()
    process = place.start('--nodes', 'n[1-2]', '--at-once', '1')
    until(lambda: not (tmp_path / 'after').exists() and place.jobs(), 'a submission')
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert place.only.nodes['n1'].phase == state.SUBMITTING
    with open(place.only.folder / 'journal.jsonl', 'a') as journal:
        journal.write('{"node": "n2", "pha')        # killed while it wrote

    # The second job will be submitted only after the command that asked for it was killed.
    (tmp_path / 'before').touch()
    process = place.start('--resume', place.only.name)
    until(lambda: not (tmp_path / 'before').exists(), 'a submission')
    process.kill()
    process.wait()
    done = place.sweep('--resume', place.only.name)
    assert done.code == 0, done.out
    assert place.states() == {'n1': 'measured', 'n2': 'measured'}
    output = place.only.folder / 'n2/job.out'
    until(lambda: 'of this sweep has run on n2 already' in output.read_text(), 'the late job')
    assert {node: len(jobs) for node, jobs in place.jobs().items()} == {'n1': 1, 'n2': 2}
    ends = [path.read_text().count('] Finished on') for path in sorted(place.only.folder.glob('*/job.out'))]
    assert ends == [2, 1]       # of ReFrame: n1 has built as well


def test_an_interrupted_sweep_says_what_goes_on(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster, SWEPT='n1=sleeps')
    process = place.start('--nodes', 'n1')
    place.until_queued('n1')
    refused = place.sweep('--resume', place.only.name)
    assert refused.code == 2 and 'is being run by another process' in refused.out
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENT) == 2
    number, = re.findall(r'1 job left in the queue; to end what was begun: scancel (\d+)', place.said)
    assert f'plumbline sweep --resume {place.only.name}' in place.said
    cluster.run(['scancel', number])
    until(lambda: cluster.run(['squeue', '-h', '-t', 'all', '-j', number, '-o', '%T']).stdout == 'CANCELLED\n', 'its end')
    done = place.sweep('--resume', place.only.name, SWEPT='')
    assert done.code == 0, done.out


#: What is wrong -> words of the command, what else is changed, what is said.
WRONG = {
    'no such partition': (['--partition', 'made:gpu'], {}, 'no partition made:gpu in the configuration'),
    'no such Slurm partition': ([], {'CANNED_ACCESS': '-pnone'}, 'Slurm has no nodes in partition none (it has'),
    'no such node': (['--nodes', 'n[1-9]'], {}, 'n8, n9: not in the partition'),
    'no form of nodes': (['--nodes', 'n[1-'], {}, 'names no nodes'),
    'no test': (['-n', 'NoSuchTest'], {}, 'no check of this selection runs in partition made:cpu'),
    'no such option': (['--', '--no-such-option'], {}, 'ReFrame refuses the selection'),
    'no duration': (['--wait', 'long'], {}, "'long' is not a duration: write 30m, 1h30m or 90s"),
    'no Slurm': ([], {'SLURM_CONF': '/dev/null'}, 'sinfo'),
    'no such sweep': (['--resume', '20260101T000000Z-beef'], {}, 'no sweep (there are none)'),
}


def test_what_cannot_be_swept_is_said_in_a_line(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster)
    with ThreadPoolExecutor(len(CPUS)) as pool:
        ended = pool.map(lambda wrong: place.sweep(*wrong[0], **wrong[1]), WRONG.values())
        for done, (what, (_, _, said)) in zip(ended, WRONG.items()):
            lines = done.out.splitlines()
            assert done.code == 2 and lines[-1].startswith('plumbline: ') and said in lines[-1], (what, done.out)
            assert len(lines) <= 3 and 'Traceback' not in done.out
    assert not place.sweeps.exists()


def test_a_dry_run_shows_nodes_and_job_and_submits_nothing(cluster, tmp_path):
    '''Idle nodes that have what the partition's access options ask for.'''
    cluster.run(['scontrol', 'update', 'nodename=n[1-3]', 'availablefeatures=fast', 'activefeatures=fast'])
    cluster.run(['scontrol', 'update', 'nodename=n2', 'state=drain', 'reason=made up'])
    place = Sweeps(tmp_path, cluster, CANNED_ACCESS='--partition=door -Cfast')
    with ThreadPoolExecutor(2) as pool:
        idle, every = pool.map(lambda wanted: place.sweep('--nodes', wanted, '--dry-run'), ('idle', 'all'))
    cluster.run(['scontrol', 'update', 'nodename=n2', 'state=resume'])
    assert '1 checks on 2 of the 3 nodes of made:cpu: n[1,3]' in idle.out and 'not asked for: n2, drained' in idle.out
    assert '1 checks on 3 of the 3 nodes of made:cpu: n[1-3]' in every.out and 'n2: drained: made up' in every.out
    assert re.search('^sbatch .*--partition=door -Cfast --export=ALL --nodelist=n1 .*/job.sh n1 pilot$', idle.out, re.M)
    assert '2 jobs, 100 at a time' in idle.out and (idle.code, every.code) == (0, 0)
    assert not place.sweeps.exists()


def test_a_job_that_does_not_end_is_named(cluster, timed_out):
    place, process = timed_out
    assert process.wait(PATIENT) == 2, place.said
    assert re.search(r'n5 +timed out +not ready after 1 min', place.said)


def test_a_node_that_dies_in_its_prolog_is_named_and_in_doubt(died):
    place, process = died
    assert process.wait(PATIENT) == 2, place.said
    assert re.search(r'n7 +failed +job NODE_FAIL; the node is down: Not responding', place.said), place.said
    assert 'in doubt: n7: its job failed\n' in place.plumbline('nodes').out


def test_a_disk_that_is_full_is_named_and_with_room_the_sweep_goes_on(built_already, tmp_path):
    # The nodes see what was mounted before.
    with rfm.small_disk(tmp_path / 'reports', '120k') as reports, cluster_in(tmp_path, nodes=2, cpus=[CPUS] * 2) as running:
        place = Sweeps(tmp_path, running, built_already)
        done = place.sweep('--nodes', 'n[1-2]', '--patience', '3s', '-n', 'Told.*good', checks=rfm.GUARDS / 'canned.py')
        assert done.code == 2
        assert len(re.findall(r'n\d: failed: job (?:FAILED|vanished): no space left for .*: make room, and resume the sweep', done.out)) == 2, done.out
        subprocess.run(['mount', '-o', 'remount,size=64m', reports], check=True)
        done = place.sweep('--resume', place.only.name)
        assert (done.code, place.states()) == (0, {'n1': 'measured', 'n2': 'measured'}), done.out


@pytest.mark.parametrize('error, said', [
    (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), '/made: No space left on device'),      # of the journal
    (PlumblineError('Slurm has no nodes in partition cpu'), '^Slurm has no nodes in partition cpu')])       # as a controller with another configuration
def test_whatever_ends_a_driver_is_a_line_that_says_how_to_go_on(error, said, tmp_path, monkeypatch, capsys):
    def end(self):
        raise error

    monkeypatch.setattr(driver.Driver, 'run', end)
    with pytest.raises(PlumblineError, match=f'{said}; to go on: plumbline sweep --resume made$'):
        command._run(state.create(tmp_path / 'made', PLAN, ''), None)
    assert 'no job of this sweep is left in the queue' in capsys.readouterr().out


PLAN = {'id': 'made', 'nodes': {'n1': ''}, 'partition': 'made:cpu', 'command': [], 'access': [], 'pace': {}, 'checks': 1}


def test_a_journal_that_cannot_be_opened_is_said_in_a_line(tmp_path):
    '''Here a folder stands for another account's file, which root may open.'''
    work = state.create(tmp_path / 'made', PLAN, '')
    (work.folder / 'journal.jsonl').mkdir()
    with pytest.raises(PlumblineError, match=r'made/journal.jsonl: Is a directory: make room, or have the owner of the sweep go on with it$'):
        work.begin()


def test_a_file_system_without_locks_takes_a_sweep_and_that_is_said(tmp_path, monkeypatch, capsys):
    def none(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, 'flock', none)
    monkeypatch.setattr(driver.Driver, 'run', lambda self: None)
    work = state.create(tmp_path / 'made', PLAN, '')
    command._run(work, None)
    work.record(work.nodes['n1'], state.OVER, state=state.MEASURED)
    assert 'has no locks' in capsys.readouterr().out and state.load(work.folder).nodes['n1'].measured
