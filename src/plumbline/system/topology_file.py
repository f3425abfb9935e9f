'''The topology of a partition's nodes, as the job of ``checks/site/topology.py`` has found it.

Keys of ``config/topologies/SYSTEM-PARTITION.json``: ``schema`` (1), ``node`` (which one it was), ``allowed_cpus`` (those that a job may use),
``cpu_quota`` (a cgroup's quota in CPUs, or null), ``memory`` (bytes that it may use), ``processor`` (ReFrame's processor information).
'''

import json
from collections import Counter
from pathlib import Path

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.model import quantity
from plumbline.system.topology import cpu_list

#: What the job writes before its JSON.
MARK = 'plumbline node: '

#: The memory that Linux tells differs between nodes with the same modules, by what firmware and kernel keep: at most this share, and so many
#: bytes, for of 128 modules one is less than 1 %.
MEMORY_DIFFERS, MOST_DIFFERS = 0.01, 4 * 2**30

_KEYS = {'schema', 'node', 'allowed_cpus', 'cpu_quota', 'memory', 'processor'}


def path(folder, system, partition):
    '''Where the topology of a partition's nodes is.'''
    return Path(folder) / f'{system}-{partition}.json'


def parse(text, source):
    '''The contents of a topology file.

    :raises PlumblineError: if they are something else.
    '''
    try:
        node = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlumblineError(f'{source}: not JSON: {error}; remove it and run the check `topology`') from None
    known = isinstance(node, dict) and set(node) == _KEYS and node['schema'] == 1
    if not known or not isinstance(node['processor'], dict) or 'topology' not in node['processor']:
        raise PlumblineError(f'{source}: no topology of a node; remove it and run the check `topology`')
    return node


def read(file):
    '''The topology in a file, :obj:`None` where there is none.'''
    try:
        return parse(Path(file).read_text(encoding='utf-8'), file)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise PlumblineError(f'{file}: not UTF-8 text; remove it and run the check `topology`') from None
    except OSError as error:
        raise PlumblineError(f'{file}: {error.strerror}') from None


def write(file, node):
    '''Write a topology, as a whole or not at all.'''
    with saying_why(file):
        atomic.write(file, json.dumps(node, indent=1) + '\n', 0o644)


def _facts(node):
    '''What there is to compare, as texts.'''
    processor = node['processor']
    masks = processor['topology']
    facts = {'model': processor.get('model'), 'architecture': processor.get('arch')}
    facts |= {name: f'{len(masks.get(key, ()))} {name}' for key, name in (('sockets', 'sockets'), ('numa_nodes', 'NUMA nodes'), ('cores', 'cores'))}
    facts['CPUs'] = f"{processor.get('num_cpus')} CPUs"
    caches = Counter((cache['type'], cache['size']) for cache in masks.get('caches', ()) for _ in cache['cpusets'])
    for level in {level for level, _ in caches}:
        facts[level] = ' + '.join(f'{level} {count} x {quantity.size(size)}' for (name, size), count in sorted(caches.items()) if name == level)
    facts['allowed'] = f"CPUs {cpu_list(node['allowed_cpus'])} allowed"
    facts['quota'] = 'no quota' if node['cpu_quota'] is None else f"quota of {node['cpu_quota']:g} CPUs"
    facts['numbering'] = repr(sorted((key, sorted(mask)) for key, mask in masks.items() if key != 'caches'))
    return facts


def figures(node):
    '''What can be said in numbers: name -> (value, how much nodes of a kind may differ).'''
    return {'cores': (len(node['processor']['topology']['cores']), 0), 'memory': (node['memory'], _kept_by_firmware(node) / node['memory'])}


def memory_differs(old, new):
    '''Whether a node has more or less memory than it had.'''
    return abs(new['memory'] - old['memory']) > _kept_by_firmware(old)


def _kept_by_firmware(node):
    return min(MEMORY_DIFFERS * node['memory'], MOST_DIFFERS)


def differences(old, new):
    '''What is not as it was: a list of texts, empty if nothing is.'''
    before, after = _facts(old), _facts(new)
    named = [name for name in sorted({*before, *after} - {'numbering'}) if before.get(name) != after.get(name)]
    changed = [f"{before.get(name, f'no {name}')}, now {after.get(name, f'no {name}')}" for name in named]
    if memory_differs(old, new):
        changed.append(f"memory {quantity.size(old['memory'])}, now {quantity.size(new['memory'])}")
    if not changed and before['numbering'] != after['numbering']:
        changed.append('CPUs are numbered in another way')
    return changed
