'''What is said when a scheduler refuses a job, ends it, or does not answer; most of it on a real Slurm (tests/cluster).'''

import os
import re
import signal
from types import SimpleNamespace

import pytest
import reframe.utility.osext as osext
from reframe.core.backends import getscheduler

import rfm
from plumbline import private, settings
from plumbline.errors import PlumblineError
from plumbline.scheduler import job_state, submit_errors
from plumbline.store import archive_rows
from plumbline.sweep.slurm import Slurm
from virtual import cluster_in
from waiting import until

JOBS = rfm.GUARDS / 'jobs.py'

#: Of a job that no option sends to another cluster.
HERE = {'sched_access': [], 'options': [], 'cli_options': []}

PARTITIONS = '''\
EnforcePartLimits=ANY
PartitionName=closed Nodes=ALL State=UP AllowAccounts=others
PartitionName=inactive Nodes=ALL State=INACTIVE
PartitionName=down Nodes=ALL State=DOWN
PartitionName=short Nodes=ALL State=UP MaxTime=1
'''


def workplace(folder, path=None, **variables):
    return rfm.Workplace(folder, path, CANNED_SCHEDULER='squeue', CANNED_OVERLAP=1, **variables)


def reasons(report):
    '''Display name of a check that failed -> its reason in the archive.'''
    return {row['display_name']: row['reason'] for row in archive_rows.session_rows(report) if row['verdict'] == 'FAIL'}


def written(place):
    return rfm.json.loads(place.report.read_text())


# --- jobs that Slurm ends, or does not take -------------------------------------------------------------------

@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    with cluster_in(tmp_path_factory.mktemp('cluster'), extra=PARTITIONS) as running:
        yield running


@pytest.fixture(scope='module')
def ending(cluster, tmp_path_factory):
    '''A session of three jobs: one is cancelled, one reaches its limit of time (in half a minute), one is on a node that may be lost.'''
    place = workplace(tmp_path_factory.mktemp('ending'), **cluster.variables)
    process = place.start_reframe('-r', '-n', 'Endless', checks=JOBS)
    try:
        jobs = until(lambda: len(found := running(cluster)) == 3 and found)
        cluster.must(['scancel', jobs['somebody'].number])
        cluster.must(['scontrol', 'update', f"jobid={jobs['limit'].number}", 'EndTime=now+5'])      # Slurm refuses what is past when it reads it
        yield SimpleNamespace(place=place, process=process, node=jobs['node'].node)
    finally:
        process.kill()
        process.wait()


def running(cluster):
    lines = cluster.run(['squeue', '-h', '-t', 'running', '-o', '%j %i %N']).stdout.splitlines()
    return {name: SimpleNamespace(number=number, node=node) for name, number, node in map(str.split, lines)}


@pytest.fixture(scope='module')
def building(cluster, tmp_path_factory):
    '''A session whose build does not start.'''
    place = workplace(tmp_path_factory.mktemp('building'), CANNED_ACCESS='-p down', CANNED_CPUS='1', **cluster.variables)
    process = place.start_reframe('-r', '-n', 'triad_memory', '--exec-policy=serial', checks=rfm.REPOSITORY / 'checks/memory/triad_memory.py')
    yield place, process
    process.kill()
    process.wait()


@pytest.fixture(scope='module')
def asked(cluster, ending, building, tmp_path_factory):
    '''One session of jobs that ask for what there is not, and of some that fail.'''
    place = workplace(tmp_path_factory.mktemp('asked'), **cluster.variables)
    done = place.reframe('-r', '-n', 'Asking|Ending|Waiting|Quick', checks=JOBS)
    assert done.code == 1 and 'Traceback' not in done.out
    assert done.cases()['Quick']['result'] == 'pass'
    found, judged = reasons(done.report), place.judge()
    said = ' '.join(judged.out.split())
    assert judged.code == 1 and all(' '.join(reason.split()) in said and '\n' not in reason for reason in found.values()), judged.out
    return found


@pytest.mark.parametrize('option, reason', [
    ('-p nosuch', r'sbatch: invalid partition specified: nosuch.* - fix the partition in .access. of the site file; `sinfo -s`'),
    ('-p closed', r'sbatch: Invalid account or account/partition combination specified - name an account \(-A\)'),
    ('-p inactive', r'sbatch: Required partition not available \(inactive or drain\) - the administrators have closed'),
    ('-p down', r'cancelled, since it would not start: PartitionDown - the administrators have closed'),
    ('-p short --time=99', r'sbatch: Requested time limit is invalid .* - the partition\'s time limit is shorter'),
    ('-w n9', r'sbatch: Invalid node name specified - `sinfo -N` names'),
    ('--mem=999999G', r'sbatch: Memory specification .*node configuration is not available - no node of the partition is like that'),
])
def test_what_slurm_refuses_is_one_line_with_its_fix(option, reason, asked):
    assert re.fullmatch(f'run: {reason}.*', asked[f'Asking %option={option}'])


@pytest.mark.parametrize('way, reason', [
    ('fails', 'the job ended with exit code 3: all is lost'),
    ('killed', 'the job ended with exit code 137: its standard error is empty'),
])
def test_squeue_tells_no_exit_code_but_slurm_does(way, reason, asked):
    assert asked[f'Ending %way={way}'] == f'sanity: sanity error: {reason}'


def test_a_job_whose_turn_does_not_come_is_cancelled(asked):
    assert asked['Waiting'] == 'sanity: sanity error: the job was cancelled: it had not started after 3 s (max_pending_time)'


def test_a_build_that_does_not_start_is_no_broken_environment(building):
    place, process = building
    assert process.wait(120) == 1
    built, = (reason for name, reason in reasons(written(place)).items() if name.startswith('native_programs'))
    assert built.startswith('compile_wait: cancelled, since it would not start: PartitionDown - ')


# --- a Slurm that does not answer -----------------------------------------------------------------------------

@pytest.fixture(scope='module')
def silent(tmp_path_factory):
    '''A cluster to stop the controller of; after 3 s without an answer its commands complain.'''
    with cluster_in(tmp_path_factory.mktemp('silent'), nodes=1, extra='MessageTimeout=3') as running:
        yield running


def to_controller(cluster, number):
    cluster._processes['slurmctld'].send_signal(number)


def test_a_controller_that_hangs(silent, tmp_path):
    '''It takes no job, and a job that ReFrame takes for ended meanwhile is no pass, and does not run on.'''
    first, second = (workplace(tmp_path / name, PLUMBLINE_LOG_LEVEL='debug', **silent.variables) for name in ('first', 'second'))
    process = first.start_reframe('-r', '-n', 'Endless%by=limit', checks=JOBS)
    try:
        until(lambda: running(silent))
        to_controller(silent, signal.SIGSTOP)
        refused_one = second.reframe('-r', '-n', 'Quick', checks=JOBS)
        log = first.folder / 'reports/reframe/reframe.log'
        until(lambda: 'Entering stage: sanity' in log.read_text())
        to_controller(silent, signal.SIGCONT)
        assert process.wait(120) == 1
    finally:
        to_controller(silent, signal.SIGCONT)
        process.kill()
        process.wait()
    assert refused_one.code == 1 and 'Traceback' not in refused_one.out
    assert re.fullmatch('run: sbatch: Socket timed out .* - Slurm does not answer, and may take the job all the same: .*',
                        reasons(refused_one.report)['Quick'])
    assert reasons(written(first)) == {'Endless %by=limit': (
        'sanity: sanity error: Slurm did not answer for a while, and ReFrame took the job for ended while it was RUNNING: '
        'cancelled - run again')}
    until(lambda: not running(silent))


def test_a_controller_that_is_down(silent, tmp_path, monkeypatch):
    monkeypatch.setattr(job_state, 'PATIENCE', 0)
    monkeypatch.setenv('SLURM_CONF', silent.variables['SLURM_CONF'])
    silent.stop_controller()
    place = workplace(tmp_path, **silent.variables)
    done = place.reframe('-r', '-n', 'Quick', checks=JOBS)
    assert done.code == 1 and 'Traceback' not in done.out
    assert re.fullmatch('run: sbatch: Unable to contact slurm controller .* - Slurm does not answer: see `scontrol ping`.*',
                        reasons(done.report)['Quick'])
    code, why = job_state.how(SimpleNamespace(jobid='7', is_cancelling=False, exception=None, **HERE))
    assert code == 1 and re.match(r'Slurm does not answer \(scontrol show job failed: .*\): job 7 may still run - once', why)


# --- what does not need a Slurm -------------------------------------------------------------------------------

def test_sbatch_not_in_path_and_a_partition_that_the_site_file_does_not_have(tmp_path):
    place = workplace(tmp_path / 'place', rfm.tools(tmp_path / 'bin', without=['sbatch']))
    done = place.reframe('-r', '-n', 'Quick', checks=JOBS)
    assert done.code == 1 and 'Traceback' not in done.out
    assert reasons(done.report) == {'Quick': "run: sbatch is not in PATH: run on a login node, or load the scheduler's module first"}
    done = workplace(tmp_path).reframe('-r', '--system', 'made:nosuchpart', checks=JOBS)
    assert done.code == 1 and done.report is None
    assert 'could not find a configuration entry' in done.line('made:nosuchpart')

    def rates(scheduler):
        made = settings.site([{'name': 'made', 'hostnames': ['.*'], 'partitions': [{'name': 'p', 'scheduler': scheduler, 'environs': []}]}], [])
        return [made['general'][-1][key] for key in ('poll_rate_max', 'poll_rate_min')]
    assert rates('squeue') == [1, 0.2] and rates('local') == [10, 10]


def test_a_job_whose_exit_code_the_scheduler_does_not_keep_has_not_failed(tmp_path):
    '''Torque, or PBS without a history: once the job is over qstat does not know it.'''
    here = tmp_path / 'bin'
    rfm.script(here / 'qsub', 'grep -qx "#PBS -r n" "$5" || exit; bash "$5" > "$2" 2> "$4"; echo 7.made')       # it is not run again elsewhere
    rfm.script(here / 'qstat', 'exit 153')
    done = workplace(tmp_path / 'place', f"{here}:{os.environ['PATH']}").reframe('-r', '-n', 'Quick|Ending.*fails', checks=JOBS, CANNED_SCHEDULER='torque')
    assert done.cases()['Quick']['result'] == 'pass', done.out
    assert reasons(done.report) == {'Ending %way=fails': 'sanity: sanity error: the job ended with exit code 1: all is lost'}


def test_a_job_of_pbs_whose_output_never_comes_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(osext, 'run_command', lambda command: SimpleNamespace(returncode=153, stdout=''))
    job = getscheduler('torque').make_job(None, name='job', workdir=str(tmp_path))
    job._jobid = '7'

    def is_over():
        getscheduler('torque').poll(SimpleNamespace(log=print, _query_exit_code=lambda job: None), job, None)
        return job.completed
    assert not is_over()
    monkeypatch.setattr(private, '_DELIVERED', -1)
    assert is_over() and job.exitcode is None


def test_a_job_that_was_preempted_is_not_waited_for(tmp_path):
    '''With accounting; ReFrame takes it for one that Slurm will run again.'''
    slurm = {'sbatch': 'echo Submitted batch job 7', 'sacct': 'echo "7|PREEMPTED|0:0|Unknown|made1"', 'squeue': 'exit 0',
             'scontrol': 'case "$2" in hostname) echo made1 ;; *) echo JobState=PREEMPTED ExitCode=0:0 ;; esac'}
    for name, said in slurm.items():
        rfm.script(tmp_path / 'bin' / name, said)
    place = workplace(tmp_path / 'place', f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    done = place.reframe('-r', '-n', 'Quick', checks=JOBS, CANNED_SCHEDULER='slurm')
    assert reasons(done.report) == {'Quick': 'sanity: sanity error: the job ended as PREEMPTED: another job took its nodes'}


@pytest.mark.parametrize('where', [{'sched_access': ['-M far']}, {'options': ['--clusters=far,near']}, {'cli_options': ['-Mfar']}])
def test_our_own_cluster_is_not_asked_of_a_job_on_another_one(where, monkeypatch):
    monkeypatch.setattr(job_state, 'ask', lambda command: pytest.fail('asked'))
    job = SimpleNamespace(jobid='7', is_cancelling=False, exception=None, state='CANCELLED', **HERE | where)
    code, why = job_state.how(job)
    assert code == 1 and why.startswith('ReFrame knows the job as CANCELLED; the other cluster')
    access = [text for texts in where.values() for text in texts]
    with pytest.raises(PlumblineError, match='a sweep asks its own cluster alone'):
        Slurm(access)


def test_a_constraint_on_clusters_names_none(monkeypatch):
    monkeypatch.setattr(job_state, 'ask', lambda command: 'JobState=COMPLETED ExitCode=3:0')
    job = SimpleNamespace(jobid='7', is_cancelling=False, exception=None, **HERE | {'options': ['--cluster-constraint=!far']})
    assert job_state.how(job) == (3, None)


@pytest.mark.parametrize('scheduler, counts', [('squeue', False), ('flux', False), ('torque', False), ('pbs', False), ('lsf', False),
                                               ('slurm', True), ('pbspro', True), ('local', True)])
def test_exit_codes_count_for_other_suites_where_the_scheduler_tells_them(scheduler, counts):
    made = settings.site([{'name': 'made', 'hostnames': ['.*'], 'partitions': [{'name': 'p', 'scheduler': scheduler, 'environs': []}]}], [])
    assert made['general'][-1]['trap_job_errors'] is counts


@pytest.mark.parametrize('reason, said', [
    ("spawned process error: command 'sbatch x.sh' timed out after 60s:\n--- stdout ---\n--- stdout ---\n--- stderr ---\n--- stderr ---",
     'sbatch: timed out after 60s - Slurm does not answer, and may take the job all the same: see `scontrol ping`, .*'),
    ("spawned process error: command 'qsub x.sh' failed with exit code 9:\n--- stderr ---\nqsub: Strange\n--- stderr ---", 'qsub: qsub: Strange'),
    ("job blocked error: [jobid=2] job cancelled because it was blocked due to reason: Job's account not known, so it can't use this "
     'partition (closed allows other)', r"cancelled, since it would not start: Job's account not known, so it can't .* - name an account.*"),
    ('sanity error: a wrong number', None),
    ("file not found error: [Errno 2] No such file or directory: 'result.txt'", None),
])
def test_the_account_of_a_failed_submission_in_a_line(reason, said):
    found = submit_errors.in_a_line(reason)
    assert found == said or re.fullmatch(said, found)


# --- at last, since Slurm looks at limits of time twice a minute ----------------------------------------------

def test_a_job_that_slurm_ends_names_its_state(cluster, ending):
    cluster.stop_node(ending.node)
    cluster.must(['scontrol', 'update', f'node={ending.node}', 'state=down', 'reason=lost'])
    assert ending.process.wait(120) == 1
    found = reasons(written(ending.place))
    for by, why in {'somebody': 'CANCELLED: by somebody, or something, that is not this run',
                    'limit': r'TIMEOUT: its time limit is 00:\d\d:\d\d',
                    'node': f'NODE_FAIL: a node failed under it: {ending.node}'}.items():
        assert re.fullmatch(f'sanity: sanity error: the job ended as {why}', found[f'Endless %by={by}'])
