'''The job of one node: ReFrame itself runs there, with the site's configuration (``settings.ON_NODE``).'''

import os
import re
import shlex
import sys
from pathlib import Path

from plumbline import atomic
from plumbline.scheduler.schedule import not_kept
from plumbline.settings import KEPT

#: Files in the folder of a node: the run report, the job's output, the number of the job that runs there, ReFrame's
#: exit code once it has ended, and a mark that the programs are built.
REPORT, OUTPUT, CLAIM, ENDED, BUILT = 'run.json', 'job.out', 'claim/job', 'ended', 'built'

#: Number of CPUs that the job may use; the tests' records know those only that they were bound to.
CPUS = 'claim/cpus'

#: Says to a job that the others wait for its programs.
PILOT = 'pilot'

#: Variables that are set anew on the node, or that ReFrame sets for itself.
_OWN = {'PLUMBLINE_REPORTS', 'RFM_SYSTEM', 'RFM_INSTALL_PREFIX'}

_SCRIPT = '''\
#!/bin/bash -l
# Sweep {sweep}: the checks of one node.  Arguments: the node, and 'pilot' where other nodes wait for its programs.
node=$1
cd {folder}/"$node" || exit 1
# A node runs once, however often its job was submitted.
if ! mkdir claim; then
    [ -d claim ] && echo "plumbline: job $(cat claim/job) of this sweep has run on $node already"
    exit 75
fi
echo "$SLURM_JOB_ID" > claim/job
env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc > {cpus}
touch -d "@$(date +%s)" claim   # by the clock of this node, where files may have that of a server
if [ "$SLURMD_NODENAME" != "$node" ]; then
    echo "plumbline: the job for $node runs on $SLURMD_NODENAME: the partition's access options must not choose nodes"
    exit 1
fi
# An MPI that finds these would ask Slurm for processes.
for name in $(compgen -v SLURM_); do
    [ "$name" = SLURM_CONF ] || unset "$name"
done
# Set where the sweep was begun, and not kept: {left}
{variables}
export PLUMBLINE_ON_NODE={partition} PLUMBLINE_REPORTS="$PWD/reports" PLUMBLINE_BUILDS=${{PLUMBLINE_BUILDS:-{folder}/builds}}
if [ "$2" = {pilot} ]; then
    PLUMBLINE_BUILD_ONLY=1 {reframe} --report-file="$PWD/build.json" -r
    touch {built}
fi
{reframe} --report-file="$PWD/{report}" -r
status=$?
[ ! -f {report} ] || {python} -I -m plumbline.sweep.results "$node" $status
echo $status > {ended}.new && mv {ended}.new {ended}
# Tests that fail are results.
[ -f {report} ] || exit $status
'''


def reframe(partition, configurations, options):
    '''ReFrame's command line for one node, without what to do.

    :arg partition: ``SYSTEM:PARTITION``.
    :arg options: what chooses the checks.
    '''
    files = [word for path in configurations for word in ('-C', str(Path(path).absolute()))]
    return [str(Path(sys.executable).with_name('reframe')), *files, '--system', partition, '-R', *options]


def script(sweep, folder, partition, command):
    '''The job script of all nodes of a sweep.'''
    # The job begins with next to nothing of the caller's environment (slurm.HANDED_ON), and a login shell sets PATH anew.
    variables = [f'export {name}={shlex.quote(value)}' for name, value in sorted(os.environ.items()) if name in KEPT and name not in _OWN]
    return _SCRIPT.format(sweep=sweep, folder=shlex.quote(str(folder)), partition=shlex.quote(partition),
                          reframe=shlex.join(command), python=shlex.quote(sys.executable),
                          variables='\n'.join(variables), left=not_kept(), pilot=PILOT, built=BUILT, cpus=CPUS, ended=ENDED, report=REPORT)


def last_words(folder):
    '''Why a job failed: its disk is full, or the last line of ours in its output, or the last line.'''
    try:
        with open(folder / OUTPUT, 'rb') as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 20000))
            text = file.read().decode(errors='replace')
    except OSError:
        text = None
    if full := atomic.no_room(folder.parent, text or ''):
        return f'{full}, and resume the sweep'
    if text is None:
        return f'it left no output: is {folder.parent} a folder that the nodes share?'
    # How bash says it of a process.
    lines = [re.sub(r'^.*/slurm_script: line \d+: +\d+ (.*?)  +.*$', r'ReFrame: \1', line.strip()) for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search('plumbline: |ERROR: |^ReFrame: ', line)]
    return (telling or lines or ['its output is empty'])[-1]
