'''Flux: ``flux resource R`` (RFC 20) and ``flux config get``, both JSON.

Written from their documentation; not run here.
'''

import importlib.util
import shutil

from ClusterShell.NodeSet import NodeSet

from plumbline.detect.site_file import SEVERAL_KINDS, Entry, Found, Partition, name_of, remark
from plumbline.model.grouping import by_key
from plumbline.model.quantity import several
from plumbline.system.commands import NoAnswer, ask_json, node_set

_BINDINGS = ("DECIDE: ReFrame's scheduler needs Flux's Python bindings (`import flux`), which this Python does not "
             'have: make them visible to it, e.g. by PYTHONPATH')


def present():
    return shutil.which('flux') is not None


def _numbers(ids):
    '''The numbers of an idset, ``'0-3,8'``.'''
    return [int(number) for number in node_set(f'[{ids}]')] if ids not in (None, '') else []


def resources(answer):
    '''(host -> (cores, GPUs), property -> hosts) of a resource set of RFC 20.'''
    execution = answer['execution']
    hosts = [host for part in execution['nodelist'] for host in node_set(part)]
    # Ranks need not begin at 0: the list of nodes follows them in order.
    children = {rank: entry['children'] for entry in execution['R_lite'] for rank in _numbers(entry['rank'])}
    host_of = dict(zip(sorted(children), hosts, strict=True))
    sizes = {host_of[rank]: (len(_numbers(has.get('core'))), len(_numbers(has.get('gpu')))) for rank, has in children.items()}
    return sizes, {name: [host_of[rank] for rank in _numbers(text)] for name, text in execution.get('properties', {}).items()}


def detect():
    '''What Flux says of its resources.

    :raises NoAnswer: if its broker does not answer.
    '''
    sizes, named = resources(ask_json(['flux', 'resource', 'R']))
    configuration = ask_json(['flux', 'config', 'get'])
    queues = configuration.get('queues', {})
    policy = configuration.get('policy', {})
    default = policy.get('jobspec', {}).get('defaults', {}).get('system', {}).get('queue')
    remarks = ["written from Flux's documentation: look at everything twice"]
    if queues and default not in queues:
        raise NoAnswer(f"Flux has the queues {', '.join(queues)} and no default one, and ReFrame cannot name a queue; "
                       'set policy.jobspec.defaults.system.queue')
    remarks += [f'queue {name} skipped: ReFrame submits to the default queue only' for name in queues if name != default]
    queue = queues.get(default, {})
    hosts = [host for host in sizes if all(host in named.get(wanted, ()) for wanted in queue.get('requires', ()))]
    if not hosts:
        raise NoAnswer('Flux says that it has no nodes')
    kinds = by_key((sizes[host], host) for host in hosts)
    described = [f"{several(len(names), 'node')} {NodeSet.fromlist(names)}: {several(cores, 'core')}"
                 + (f", {several(gpus, 'GPU')}" if gpus else '') for (cores, gpus), names in kinds.items()]
    partition = Partition(name_of(default or 'default'), [
        Entry('descr', '; '.join(described)), Entry('scheduler', 'flux'), Entry('launcher', 'local')])
    if len(kinds) > 1:
        partition.entries.append(remark(f'{SEVERAL_KINDS}, and ReFrame cannot choose one'))
    if importlib.util.find_spec('flux') is None:
        partition.entries.append(remark(_BINDINGS))
    limit = {**policy, **queue.get('policy', {})}.get('limits', {}).get('duration')
    if limit not in (None, '', '0', 0):
        partition.entries.append(remark(f'longest job: {limit}'))
    largest = max(kinds, key=lambda kind: len(kinds[kind]))
    partition.entries.append(Entry('extras', {'cpus': largest[0]}, 'cores that the topology job asks for'))
    return Found(None, 'Flux', [partition], remarks=remarks)
