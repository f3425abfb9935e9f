'''How a Slurm job ended, where ReFrame does not know.

Its scheduler ``squeue`` takes a job for ended, and well, once squeue does not show it: also one that was cancelled or ran out of time, and any job
while Slurm does not answer.  Its scheduler ``slurm`` knows the state, but counts the exit code only, and that of a job that was cancelled is 0.
'''

import collections
import contextlib
import re
import time

from plumbline.system.commands import NoAnswer, ask

#: Slurm is given so long to answer: its controller may just be restarted.  Seconds.
PATIENCE = 60

#: States of a job that is over; each Slurm has further ones of those that are not.
ENDED = {'BOOT_FAIL', 'CANCELLED', 'COMPLETED', 'DEADLINE', 'FAILED', 'NODE_FAIL', 'OUT_OF_MEMORY', 'PREEMPTED', 'TIMEOUT'}

#: States of a job that has not started; the last ones are held.
WAITING = {'PENDING', 'REQUEUED', 'REQUEUE_FED', 'REQUEUE_HOLD', 'RESV_DEL_HOLD', 'SPECIAL_EXIT'}

#: Why a job is in a state, in words of what ``scontrol show job`` says.
_BECAUSE = {
    'CANCELLED': 'by somebody, or something, that is not this run',
    'TIMEOUT': 'its time limit is {TimeLimit}',
    'NODE_FAIL': 'a node failed under it: {NodeList}',
    'OUT_OF_MEMORY': 'it took more memory than its allocation has',
    'PREEMPTED': 'another job took its nodes',
    'COMPLETING': 'its processes do not end',
}


def _shown(number):
    '''What Slurm says of a job: dictionary; empty if it does not know it, or no longer.

    :raises NoAnswer: if it says nothing within :data:`PATIENCE`.
    '''
    end = time.monotonic() + PATIENCE
    while True:
        try:
            shown = dict(re.findall(r'(\w+)=(\S+)', ask(['scontrol', 'show', 'job', '-o', number])))
            # Over, but how it ended is not shown yet.
            if shown.get('JobState') != 'COMPLETING' or time.monotonic() > end:
                return shown
        except NoAnswer as error:
            if 'Invalid job id' in str(error):
                return {}
            if time.monotonic() > end:
                raise
        time.sleep(1)


def names_cluster(words):
    '''Whether options of sbatch send a job to another cluster, where our own may have one of the same number.'''
    return any(re.match(r'-M|--clusters?(=|\Z)', word) for word in words)


def how(job):
    '''How a job of ReFrame's schedulers ``slurm`` and ``squeue`` ended.

    :arg job: which ReFrame takes for ended.
    :returns: its exit code (None: not known), and one line that says why it proves nothing, or None.
    '''
    if job.exception:
        return 1, str(job.exception)
    if job.is_cancelling:
        return 1, f'the job was cancelled: it had not started after {job.max_pending_time:.0f} s (max_pending_time)'
    if names_cluster(word for text in (*job.sched_access, *job.options, *job.cli_options) for word in text.split()):
        return 1, f'ReFrame knows the job as {job.state}; the other cluster (-M, slurm_multi_cluster_mode) is not asked how it ended: see its output'
    try:
        shown = _shown(job.jobid)
    except NoAnswer as error:
        return 1, f'Slurm does not answer ({error}): job {job.jobid} may still run - once it answers: scancel {job.jobid}, and run again'
    state = shown.get('JobState')
    if state is None:
        return None, None
    if state not in {*ENDED, 'COMPLETING'}:
        # It would disturb what is measured next.
        with contextlib.suppress(NoAnswer):
            ask(['scancel', job.jobid])
        return 1, f'Slurm did not answer for a while, and ReFrame took the job for ended while it was {state}: cancelled - run again'
    if state not in ('COMPLETED', 'FAILED'):
        because = _BECAUSE.get(state, 'see `scontrol show job`').format_map(collections.defaultdict(lambda: 'not known', shown))
        return 1, f'the job ended as {state}: {because}'
    told = re.fullmatch(r'(\d+):(\d+)', shown.get('ExitCode', ''))
    if told is None:
        return 1, f'the job ended as {state}, and Slurm tells no exit code'
    code, signal = map(int, told.groups())
    return code or 128 * bool(signal) + signal, None
