'''PBS Professional and OpenPBS: ``qstat`` and ``pbsnodes`` with JSON.

Written from their documentation and from published output; not run here.
'''

import getpass
import re
import shutil

from ClusterShell.NodeSet import NodeSet

from plumbline.detect.site_file import SEVERAL_KINDS, Entry, Found, Partition, name_of, remark, time_limit
from plumbline.model.grouping import by_key
from plumbline.model.quantity import memory, several
from plumbline.system.commands import NoAnswer, ask_json

_DOWN = {'down', 'offline', 'state-unknown'}

#: Of a vnode's resources those that every one has, that count, or that name the place: they make no kind.
_NO_KIND = re.compile('(arch|host|vnode|Qlist|mem|vmem|ncpus|ngpus|tier[0-9]|switch|rack|hbmem)$')

_UNITS = {'b': 1, 'kb': 2**10, 'mb': 2**20, 'gb': 2**30, 'tb': 2**40}


def present():
    return shutil.which('pbsnodes') is not None and shutil.which('qstat') is not None


def size(text):
    '''A size of PBS's (``131900292kb``) in bytes; 0 where it is none.'''
    match = re.fullmatch(r'(\d+)([kmgt]?b)', str(text).lower())
    return int(match[1]) * _UNITS[match[2]] if match else 0


def _resources(node):
    return node.get('resources_available', {})


def _kind(node):
    '''What makes nodes alike, as text.'''
    has = _resources(node)
    gpus = f", {several(int(has['ngpus']), 'GPU')}" if int(has.get('ngpus', 0) or 0) else ''
    return f"{several(int(has.get('ncpus', 0)), 'CPU')}, {memory(size(has.get('mem')))}{gpus}"


def _nodes_of(queue, name, nodes):
    '''Names of the nodes that jobs of an execution queue may run on.'''
    wanted = str(queue.get('default_chunk', {}).get('Qlist', ''))

    def takes(node):
        listed = [word for word in str(_resources(node).get('Qlist', '')).split(',') if word]
        if node.get('queue'):
            return node['queue'] == name
        return wanted in listed if wanted else not listed or name in listed
    return [vnode for vnode, node in nodes.items() if takes(node)]


def _refused(queue):
    '''Why a job cannot be submitted to a queue; empty if it can.'''
    users = [word.partition('@')[0].lstrip('+') for word in str(queue.get('acl_users', '')).split(',')]
    if queue.get('enabled') != 'True' or queue.get('started') != 'True':
        return 'it is not enabled and started'
    if queue.get('from_route_only') == 'True':
        return 'jobs come to it from other queues only'
    if queue.get('acl_user_enable') == 'True' and getpass.getuser() not in users:
        return 'it is for other users (acl_users)'
    return ''


def _reached(name, queues, nodes):
    '''Names of the nodes that a job reaches through a queue, itself or by the queues that it routes to.'''
    queue = queues[name]
    if queue.get('queue_type') != 'Route':
        return _nodes_of(queue, name, nodes)
    targets = [target.strip() for target in str(queue.get('route_destinations', '')).split(',')]
    return [vnode for target in targets if queues.get(target, {}).get('queue_type') == 'Execution'
            for vnode in _nodes_of(queues[target], target, nodes)]


def _partition(name, queue, vnodes, nodes):
    kinds = by_key((_kind(nodes[vnode]), vnode) for vnode in vnodes)
    described = [f"{several(len(names), 'node')} {NodeSet.fromlist(names)}: {kind}" for kind, names in kinds.items()]
    largest = max(kinds, key=lambda kind: len(kinds[kind]))
    cpus = int(_resources(nodes[kinds[largest][0]]).get('ncpus', 0))
    partition = Partition(name, [Entry('descr', '; '.join(described)), Entry('scheduler', 'pbs'), Entry('launcher', 'local')])
    lines = partition.entries
    down = sum(not _DOWN.isdisjoint(nodes[vnode].get('state', '').split(',')) for vnode in vnodes)
    if down:
        lines.append(remark(f"{down} of its {several(len(vnodes), 'node')} are down or offline now"))
    if len(kinds) > 1:
        lines.append(remark(f"{SEVERAL_KINDS}; make a partition of each, by a resource in access, e.g. 'ngpus=4'"))
    own = sorted({key for vnode in vnodes for key in _resources(nodes[vnode]) if not _NO_KIND.match(key)})
    if own:
        lines.append(remark(f"resources by which a job can choose its nodes: {', '.join(own)}"))
    lines.append(Entry('access', [f'-q {queue}', '-l place=scatter:exclhost']))
    return partition, cpus


def _time_limit(queue):
    '''The longest job, seconds; None for no limit.'''
    found = re.fullmatch(r'(\d+):(\d+):(\d+)', str(queue.get('resources_max', {}).get('walltime', '')))
    return sum(int(count) * seconds for count, seconds in zip(found.groups(), (3600, 60, 1))) if found else None


def detect():
    '''What PBS says of its queues.

    :raises NoAnswer: if its server does not answer, or not in JSON.
    '''
    answer = ask_json(['qstat', '-Q', '-f', '-F', 'json'])
    queues = answer.get('Queue', {})
    nodes = ask_json(['pbsnodes', '-a', '-F', 'json']).get('nodes', {})
    if not queues or not nodes:
        raise NoAnswer(f'PBS says that it has {len(queues)} queues and {len(nodes)} nodes')
    partitions: list[Partition] = []
    seen: dict[str, str] = {}
    remarks = [
        "this was written from PBS's documentation: look at everything twice",
        "DECIDE: where jobs belong to a project, add '-A NAME' to each access"]
    for name, queue in queues.items():
        why, vnodes = _refused(queue), sorted(_reached(name, queues, nodes))
        if not why and not vnodes:
            why = 'it has no nodes'
        if not why and str(vnodes) in seen:
            why = f'it has the same nodes as {seen[str(vnodes)]}'
        if why:
            remarks.append(f'queue {name} skipped: {why}')
            continue
        seen[str(vnodes)] = name
        partition, cpus = _partition(name_of(name, [known.name for known in partitions]), name, vnodes, nodes)
        limit = _time_limit(queue)
        partition.entries += [time_limit(limit)] if limit else []
        partition.entries += [Entry('extras', {'cpus': cpus}, 'CPUs that the topology job asks for')] if cpus else []
        partitions.append(partition)
    server = answer.get('pbs_server', '').partition('.')[0]
    return Found(server or None, f"PBS {answer.get('pbs_version', '')}".strip(), partitions, remarks=remarks)
