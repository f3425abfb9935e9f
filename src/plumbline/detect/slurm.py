'''Slurm: partitions and kinds of nodes from ``sinfo``, the rest from ``scontrol``.

``sinfo`` with a format, not with ``--json``: Slurm 22.05's JSON has nodes without the partitions' limits, and its form
changes from version to version.
'''

import getpass
import re
import shutil
from dataclasses import dataclass, field

from ClusterShell.NodeSet import NodeSet

from plumbline.detect.site_file import SEVERAL_KINDS, Entry, Found, Partition, name_of, remark, time_limit
from plumbline.errors import PlumblineError
from plumbline.model import quantity
from plumbline.model.quantity import several
from plumbline.system.commands import NoAnswer, ask, node_set

# Partition, with * for the default; state; time limit; nodes allocated/idle/other/total; CPUs; sockets:cores:threads;
# memory (MB); features; generic resources; names.
_FORMAT = '%P|%a|%l|%F|%c|%z|%m|%f|%G|%N'


@dataclass
class Kind:
    '''Nodes of a partition with the same hardware.

    :attr other: how many of them are neither allocated nor idle.
    :attr sockets: sockets, cores of each, threads of each, with colons.
    :attr memory: MiB.
    :attr features: those that all have; ``some`` are those that any has.
    '''
    nodes: NodeSet
    other: int
    cpus: int
    sockets: str
    memory: int
    gres: str
    features: set
    some: set

    def hardware(self):
        return self.cpus, self.sockets, self.memory, self.gres

    def __iadd__(self, more):
        self.nodes = self.nodes | more.nodes
        self.other += more.other
        self.features, self.some = self.features & more.features, self.some | more.some
        return self

    def __str__(self):
        sockets, cores, threads = (int(number) for number in self.sockets.split(':'))
        parts = f"{several(sockets, 'socket')} x {several(cores, 'core')} x {several(threads, 'thread')}"
        gres = f', {self.gres}' if self.gres else ''
        return (f"{several(len(self.nodes), 'node')} {self.nodes}: {several(self.cpus, 'CPU')} ({parts}), {quantity.size(self.memory * 2**20)}{gres}")


@dataclass
class Queue:
    '''A partition as Slurm has it.'''
    name: str
    default: bool
    state: str
    limit: str
    kinds: list = field(default_factory=list)

    def add(self, kind):
        '''Racks and the like are features, too: they make no kind.'''
        for known in self.kinds:
            if known.hardware() == kind.hardware():
                known += kind
                return
        self.kinds.append(kind)

    @property
    def nodes(self):
        return NodeSet.fromlist([kind.nodes for kind in self.kinds])


def present():
    return shutil.which('sinfo') is not None


def seconds(limit):
    '''A time limit of Slurm's (``minutes``, ``hours:minutes:seconds``, ``days-hours:minutes:seconds``, ...) in seconds.

    :returns: None for no limit.
    '''
    days, dash, rest = limit.rpartition('-')
    numbers = rest.split(':')
    if not all(number.isdecimal() for number in [*numbers, *([days] if dash else [])]):
        return None
    numbers = [int(number) for number in numbers]
    if dash:
        hours, minutes, left = (*numbers, 0, 0)[:3]
    elif len(numbers) == 1:
        hours, minutes, left = 0, numbers[0], 0
    else:
        hours, minutes, left = (0, *numbers)[-3:]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + left


def queues(text):
    '''The partitions in what ``sinfo`` has printed.

    :raises NoAnswer: if that has another form.
    '''
    found: dict[str, Queue] = {}
    for line in text.splitlines():
        try:
            name, state, limit, counts, cpus, sockets, memory, features, gres, nodes = line.split('|')
            kind = Kind(node_set(nodes), int(counts.split('/')[2]), int(cpus), sockets, int(memory),
                        ','.join(_words(gres)), set(_words(features)), set(_words(features)))
        except (ValueError, IndexError, PlumblineError):
            raise NoAnswer(f'sinfo prints a line that is not understood: {line!r}') from None
        plain = name.rstrip('*')
        queue = found.setdefault(plain, Queue(plain, name.endswith('*'), state, limit))
        if kind.nodes:
            queue.add(kind)
    return list(found.values())


def _words(text):
    return [] if text in ('(null)', '') else re.split(r',(?![^(]*\))', text)


def _without_copies(found):
    '''(partitions, remarks): of those with the same nodes one, Slurm's default if it is among them.'''
    kept: dict[str, Queue] = {}
    remarks = []
    for queue in sorted(found, key=lambda queue: not queue.default):
        if queue.state != 'up' or not queue.kinds:
            why = 'has no nodes' if queue.state == 'up' else f'is {queue.state}'
            remarks.append(f'partition {queue.name} {why}: skipped')
            continue
        same = kept.setdefault(str(queue.nodes), queue)
        if same is not queue:
            remarks.append(f'partition {queue.name} (time limit {queue.limit}) has the same nodes as {same.name}: skipped')
    return list(kept.values()), remarks


def _access(queue):
    '''Lines of the access: one kind, or what tells the largest from the others.'''
    access = [f'--partition={queue.name}', '--exclusive', '--mem=0']      # all of it: where a job has less by default, its node seems smaller
    kinds = sorted(queue.kinds, key=lambda kind: -len(kind.nodes))
    if len(kinds) == 1:
        yield Entry('access', access)
    else:
        own = kinds[0].features - set().union(*(kind.some for kind in kinds[1:]))
        yield remark(f"{SEVERAL_KINDS}; name one kind, or make a partition of each: {'; '.join(map(str, kinds))}")
        if own:
            yield Entry('access', [*access, f'--constraint={min(own)}'])
        else:
            yield Entry('access', access)
            yield Entry('access', [*access, '--constraint=FEATURE'], 'with a feature that only one kind has', True)
    features = set().union(*(kind.some for kind in kinds))
    if features:
        yield remark(f"features of its nodes: {', '.join(sorted(features))}")
    if any(kind.gres for kind in kinds):
        resources = sorted({kind.gres for kind in kinds if kind.gres})
        yield Entry('access', [*access, f"--gres={resources[0].split('(')[0]}"],
                    f"its nodes have {', '.join(resources)}; does a job have to ask for them?", True)


def _partition(queue, name, scheduler, supersets):
    partition = Partition(name, [
        Entry('descr', '; '.join(map(str, queue.kinds))), Entry('scheduler', scheduler),
        Entry('launcher', 'srun' if shutil.which('srun') else 'local')])
    lines = partition.entries
    other = sum(kind.other for kind in queue.kinds)
    if other:
        lines.append(remark(f"{other} of its {several(len(queue.nodes), 'node')} cannot run jobs now (down, drained, ...): `sinfo -R` says why"))
    if supersets:
        lines.append(remark(f"DECIDE: all of its nodes are in {', '.join(supersets)} as well; leave one out, or they are measured twice"))
    lines += _access(queue)
    limit = seconds(queue.limit)
    if limit is not None:
        lines.append(time_limit(limit))
    return partition


def _accounts(configuration):
    '''Remarks on accounts, if Slurm asks for one.'''
    enforced = configuration.get('AccountingStorageEnforce', '').split(',')
    if not {'associations', 'limits', 'qos', 'safe', 'all'} & set(enforced):
        return []
    try:
        text = ask(['sacctmgr', '--noheader', '--parsable2', 'show', 'associations', 'where', f'user={getpass.getuser()}', 'format=account'])
        known = sorted(set(text.split()))
    except NoAnswer:
        known = []
    yours = f" (yours: {', '.join(known)})" if known else ''
    return [f"DECIDE: jobs belong to an account{yours}: add '--account=NAME' to each access if it is not your default"]


def detect():
    '''What Slurm says of its partitions.

    :raises NoAnswer: if its controller does not answer.
    '''
    everything = queues(ask(['sinfo', '--noheader', '--exact', f'--format={_FORMAT}']))
    configuration = dict(re.findall(r'^ *(\w+) *= *(.*\S)', ask(['scontrol', 'show', 'config']), re.MULTILINE))
    version = ask(['sinfo', '--version']).split()[-1]
    known, remarks = _without_copies(everything)
    # Without accounting there is no sacct, which ReFrame's scheduler of the name slurm asks.
    scheduler = 'slurm' if configuration.get('AccountingStorageType', '').endswith('slurmdbd') else 'squeue'
    partitions = []
    names: list[str] = []
    for queue in known:
        names.append(name_of(queue.name, names))
        supersets = [other.name for other in known if other is not queue and queue.nodes < other.nodes]
        partitions.append(_partition(queue, names[-1], scheduler, supersets))
    pmi = configuration.get('MpiDefault', 'none')
    return Found(configuration.get('ClusterName'), f'Slurm {version}', partitions, None if pmi == 'none' else pmi, _accounts(configuration) + remarks)
