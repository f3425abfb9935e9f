'''What a sweep asks Slurm: nodes, jobs, submission.  Every question has an end, and silence is told from a refusal.'''

import argparse
import datetime
import os
import re
import shlex
import shutil
import time
from dataclasses import dataclass

from ClusterShell.NodeSet import NodeSet

from plumbline.errors import PlumblineError
from plumbline.scheduler.job_state import ENDED, WAITING, names_cluster
from plumbline.scheduler.submit_errors import with_fix
from plumbline.system.commands import NoAnswer, ask, node_set

#: Slurm's commands repeat by themselves for a while what its controller does not answer; seconds.
SECONDS = 60

#: States in which a node starts no job, without the marks that Slurm appends.
_NOT_AVAILABLE = {'blocked', 'down', 'drained', 'draining', 'drng', 'error', 'fail', 'failing', 'future', 'inval', 'powered_down', 'unknown'}

#: Of these troubles a node is often free a moment later.
_PASSING = {'not responding', 'unknown'}

#: What a job has of its caller's variables; the script has the others that it needs.
HANDED_ON = 'HOME,USER,LOGNAME,LANG,LC_ALL,TZ'

# What sbatch says of a job that no later submission would change: for any node, or for this one.  All else is taken for
# temporary: a controller that is restarted, a partition that is closed, a queue that is full.
_NEVER = re.compile(
    r'invalid (partition|account|qos|user|feature|reservation|wckey|generic resource|job|cluster|time|license|option)|'
    r'unrecognized option|unable to (open file|read)|permission denied|not permitted to use|access.*denied|'
    r'not in the list of permitted|(time limit|reservation) is invalid|does not look like a batch script', re.I)
_NEVER_THIS_NODE = re.compile(r'node configuration is not available|invalid node name|nodes? .*not in partition', re.I)

#: Why a job waits that a free node would start, or that the controller has not looked at yet.
_WAITS_FOR_NODES = {'Resources', 'Priority', 'None'}


class Refused(PlumblineError):
    '''Slurm will not take this job, however often it is asked.'''


class NodeRefused(PlumblineError):
    '''The same, but for this node only.'''


@dataclass(frozen=True)
class Node:
    '''
    :attr state: as sinfo says it, e.g. ``idle``, ``down*``.
    :attr reason: why it is out of service, if it is.
    :attr hardware: what Slurm knows of its CPUs and features: nodes that differ here are not alike.
    '''
    name: str
    state: str
    hardware: str
    features: frozenset
    reason: str

    @property
    def trouble(self):
        '''Why it starts no job, in a word; empty if it may.'''
        word, = re.findall(r'\A[a-z_]*', self.state)
        return word if word in _NOT_AVAILABLE else 'not responding' if '*' in self.state else ''

    @property
    def lasting_trouble(self):
        '''The same, but for what is often over a moment later: after it was resumed, or after the controller was started.'''
        return '' if self.trouble in _PASSING else self.trouble

    @property
    def idle(self):
        return re.match(r'idle\W?$', self.state) is not None and not self.trouble

    @property
    def is_reserved(self):
        '''Free, but for a reservation that it is in, and whose jobs it would start.'''
        return re.match(r'(reserved|resv|maint)\W?$', self.state) is not None and not self.trouble


@dataclass(frozen=True)
class Reservation:
    '''
    :attr start, end: seconds since 1970.
    :attr nodes: set of names.
    '''
    name: str
    state: str
    start: float
    end: float
    nodes: frozenset


@dataclass(frozen=True)
class Job:
    '''A job of ours as squeue shows it.'''
    number: int
    name: str
    state: str
    reason: str

    @property
    def is_over(self):
        return self.state in ENDED

    @property
    def is_waiting(self):
        '''Whether it has not started.'''
        return self.state in WAITING


def _access_options(words):
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    for flags in (('-p', '--partition'), ('-C', '--constraint'), ('-w', '--nodelist'), ('-x', '--exclude')):
        parser.add_argument(*flags)
    return parser.parse_known_args(words)[0]


def of_any_partition(names):
    '''Those of these nodes that Slurm has; none where it does not answer.'''
    try:
        return set(ask(['sinfo', '--all', '--Node', '--noheader', f'--nodes={folded(names)}', '--format=%N'], SECONDS).split())
    except NoAnswer:
        return set()


def folded(names):
    '''Names of nodes in Slurm's short form, with one pair of brackets to a name, which every Slurm understands.'''
    nodes = NodeSet.fromlist(list(names))
    nodes.fold_axis = (-1,)
    return str(nodes)


def when(at):
    '''A time (s since 1970) as Slurm's commands show it: that of this host's time zone.'''
    return f'{datetime.datetime.fromtimestamp(at):%Y-%m-%d %H:%M}'


def _time(text):
    return datetime.datetime.strptime(text, '%Y-%m-%dT%H:%M:%S').timestamp()


def _reservation(line):
    row = dict(re.findall(r'(\w+)=(\S*)', line))
    try:
        nodes = frozenset(node_set(row['Nodes'])) if row['Nodes'] != '(null)' else frozenset()
        return Reservation(row['ReservationName'], row['State'], _time(row['StartTime']), _time(row['EndTime']), nodes)
    except (KeyError, ValueError, OverflowError) as error:
        raise NoAnswer(f'scontrol shows a reservation that is not understood ({error!r}): {line}') from None


#: The name of a feature.
_FEATURE = re.compile(r'[\w.:=-]+')


def satisfies(expression, features):
    '''Whether a node has the features of an expression such as ``gpu&fast`` or ``a|b``; Slurm reads it from the left, ``a|b&c`` as ``(a|b)&c``.

    :raises PlumblineError: if it has another form.
    '''
    first, *rest = re.split('([&|])', expression)
    if not all(_FEATURE.fullmatch(name) for name in (first, *rest[1::2])):
        raise PlumblineError(f'feature {expression!r}: write names with & or |, as gpu&fast')
    found = first in features
    for operator, name in zip(rest[::2], rest[1::2]):
        found = (found and name in features) if operator == '&' else (found or name in features)
    return found


def _may_satisfy(constraint, features):
    '''The same; what has counts or brackets is left to sbatch to judge.'''
    try:
        return satisfies(constraint, features)
    except PlumblineError:
        return True


class Slurm:
    '''Slurm as the owner of a sweep sees it.

    :arg access: the partition's access options, as ReFrame's configuration has them.
    '''

    def __init__(self, access):
        try:
            self.access = [word for text in access for word in shlex.split(text)]
            self._options = _access_options(self.access)
        except (ValueError, argparse.ArgumentError) as error:
            raise PlumblineError(f'access options {access}: {error}: fix them in the site file') from None
        if names_cluster(self.access) or 'SBATCH_CLUSTERS' in os.environ:
            raise PlumblineError('a sweep asks its own cluster alone for nodes and jobs: take -M, --clusters out of the access options, and '
                                 'SBATCH_CLUSTERS out of the environment, and begin it on the other cluster')
        if not shutil.which('sbatch'):
            raise PlumblineError('sbatch is not in PATH: a sweep begins on a login node')

    def nodes(self):
        '''The nodes of the partition that its access options leave: name -> :class:`Node`, in Slurm's order.

        :raises NoAnswer: if Slurm does not answer.
        :raises PlumblineError: if there is no such partition.
        '''
        partition = self._options.partition or self._default_partition()
        text = ask(['sinfo', '--Node', '--noheader', '--exact', f'--partition={partition}', '--format=%N|%T|%c|%z|%f|%E'], SECONDS)
        found = {}
        # A reason may have lines, and so may the name of a job below.
        for name, state, cpus, sockets, features, reason in re.findall(r'^' + r'([^|\n]*)\|' * 5 + '(.*)$', text, re.M):
            words = frozenset(features.split(',')) - {'(null)'}
            found[name] = Node(name, state, f'{cpus}|{sockets}|{features}', words, re.sub('^none$', 'Slurm knows no reason', reason.strip()))
        if not found:
            known = ' '.join(sorted(set(ask(['sinfo', '--all', '--noheader', '--format=%R'], SECONDS).split())))
            raise PlumblineError(f'Slurm has no nodes in partition {partition} (it has {known or "no partition"}): '
                                 'fix the access options in the site file')
        return self._left(found)

    def _default_partition(self):
        names = ask(['sinfo', '--all', '--noheader', '--format=%P'], SECONDS).split()
        default = [name.rstrip('*') for name in names if name.endswith('*')]
        if not default:
            raise PlumblineError('Slurm has no default partition: name one in the access options of the site file')
        return default[0]

    def _left(self, found):
        listed = set(node_set(self._options.nodelist)) if self._options.nodelist else set(found)
        listed -= set(node_set(self._options.exclude)) if self._options.exclude else set()
        constraint = self._options.constraint
        return {name: node for name, node in found.items() if name in listed and (not constraint or _may_satisfy(constraint, node.features))}

    def jobs(self, prefix):
        '''The user's jobs whose name begins so, also those that have ended of late: number -> :class:`Job`.

        :raises NoAnswer: if Slurm does not answer.
        '''
        # Without --all squeue shows users no job of a partition that is hidden.
        text = ask(['squeue', '--all', '--noheader', '--states=all', f'--user={os.getuid()}', '--format=%i|%T|%r|%j'], SECONDS)
        rows = re.findall(r'^(\d+)\|(\w+)\|([^|\n]*)\|(.*)$', text, re.M)
        return {int(number): Job(int(number), name, state, reason.strip()) for number, state, reason, name in rows if name.startswith(prefix)}

    def submission(self, name, node, minutes, output, script, *arguments, options=()):
        '''The command that submits a job for one node, with more ``options`` of sbatch.'''
        # A job that Slurm starts again by itself would measure the node twice.
        return ['sbatch', '--parsable', '--nodes=1', '--exclusive', '--mem=0', '--no-requeue', f'--job-name={name}',
                f'--time={minutes}', f'--output={output}', '--open-mode=append', f'--export={HANDED_ON}', *self.access, *options,
                f'--nodelist={node}', str(script), *arguments]

    def submit(self, command):
        '''Submit; the job's number.

        :raises Refused: or :class:`NodeRefused`, for good.
        :raises NoAnswer: for now; it may have been submitted all the same.
        '''
        try:
            return int(ask(command, SECONDS).split(';')[0])
        except NoAnswer as error:
            said = re.sub(r'^.* failed: (sbatch: error: )?(Batch job submission failed: )?', '', str(error))
            kind = NodeRefused if _NEVER_THIS_NODE.search(said) else Refused if _NEVER.search(said) else NoAnswer
            raise kind(f'sbatch: {with_fix(said)}') from None
        except ValueError as error:
            raise Refused(f'sbatch does not answer with a number: {error}') from None

    def cancel(self, numbers, pending=False):
        '''Take jobs out of the queue.

        :arg pending: only those that have not started.
        '''
        ask(['scancel', *(['--state=PENDING'] if pending else []), *map(str, numbers)], SECONDS)

    def reservation(self, name):
        '''A :class:`Reservation`, or None where Slurm has none of that name.

        :raises NoAnswer: if Slurm does not answer.
        '''
        found = self._reservations(name)
        return found[0] if found else None

    def _reservations(self, *name):
        try:
            text = ask(['scontrol', '--oneliner', 'show', 'reservation', *name], SECONDS, env={**os.environ, 'SLURM_TIME_FORMAT': 'standard'})
        except NoAnswer as error:
            if 'not found' in str(error):
                return []
            raise
        return [_reservation(line) for line in text.splitlines() if line.startswith('ReservationName=')]

    def usable_reservation(self, name, minutes):
        '''The reservation that jobs of so many minutes can run in now.

        :raises PlumblineError: if there is none, or not now, or not for so long.
        '''
        found = self.reservation(name)
        if found is None:
            others = ', '.join(one.name for one in self._reservations()) or 'none'
            raise PlumblineError(f'Slurm has no reservation {name} (it has {others})')
        if found.start > time.time():
            raise PlumblineError(f'reservation {name} begins at {when(found.start)}: begin the sweep then')
        if found.state != 'ACTIVE' or found.end <= time.time():
            raise PlumblineError(f'reservation {name} is {found.state}, and ended at {when(found.end)}: extend it, or name another')
        if found.end < time.time() + 60 * minutes:
            raise PlumblineError(f'reservation {name} ends at {when(found.end)}, and a job may take {minutes} min (--time-limit): none could end '
                                 'before; extend it, or give jobs less')
        return found

    def others_waiting(self, nodes):
        '''How many jobs wait for nodes in any partition that has some of these; those of sweeps of this user are not counted.

        :raises NoAnswer: if Slurm does not answer.
        '''
        partitions = set(ask(['sinfo', '--all', '--Node', '--noheader', f'--nodes={folded(nodes)}', '--format=%R'], SECONDS).split())
        text = ask(['squeue', '--noheader', '--states=PENDING', f"--partition={','.join(sorted(partitions))}", '--format=%U|%r|%j'], SECONDS)
        rows = re.findall(r'^(\d+)\|([^|]*)\|(.*)$', text, re.M)      # a job's name may have lines
        return sum(reason.strip() in _WAITS_FOR_NODES and not (int(user) == os.getuid() and name.startswith('plumbline-'))
                   for user, reason, name in rows)

    def refuse_hidden_jobs(self):
        '''Who cannot see others' jobs cannot know that they wait.

        :raises PlumblineError: in that case.
        '''
        shown = dict(re.findall(r'^(\w+)\s*= (.*)$', ask(['scontrol', 'show', 'config'], SECONDS), re.M))
        if 'jobs' in shown.get('PrivateData', '').split(',') and os.getuid() != 0 and f'({os.getuid()})' not in shown.get('SlurmUser', ''):
            raise PlumblineError('--scavenge: Slurm shows nobody the jobs of others (PrivateData=jobs), so that it is not seen who waits: run it as '
                                 'root or as SlurmUser')
