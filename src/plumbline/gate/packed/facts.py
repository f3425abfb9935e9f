'''All facts that can be read of a node, in groups: which processes read which.'''

import functools

from plumbline.gate.packed import hardware, software
from plumbline.gate.packed.reading import Group

#: Seconds that a group has: files of the kernel answer at once, a busy file system takes a while, a service processor longer.
AT_ONCE, A_WHILE, LONGER = 5, 10, 15

#: Name of a group: (how its facts begin, reader, seconds).
_GROUPS = {
    'kernel': (('kernel', 'system.architecture', 'system.distribution'), software.kernel, AT_ONCE),
    'processor': (('cpu', 'mitigation'), hardware.processor, AT_ONCE),
    'memory': (('memory',), hardware.memory, AT_ONCE),
    'numa': (('numa',), hardware.numa, AT_ONCE),
    'errors': (('ecc', 'machine_check'), hardware.errors, AT_ONCE),
    'firmware': (('firmware', 'system.vendor', 'system.product'), hardware.firmware, AT_ONCE),
    'modules': (('dimm',), hardware.modules, A_WHILE),
    'event log': (('sel',), hardware.event_log, LONGER),
    'links': (('net', 'ib'), hardware.links, AT_ONCE),
    'allocation': (('cgroup',), hardware.allocation, AT_ONCE),
    'packages': (('package',), software.packages, A_WHILE),
    'services': (('service',), software.services, A_WHILE),
    'time': (('time',), software.clock, AT_ONCE),
    'limits': (('limit',), software.limits, AT_ONCE),
    'environment': (('environment',), software.environment, AT_ONCE),
}


def is_of(name, prefix):
    '''Whether a fact is one of those that begin so.'''
    return name == prefix or name.startswith(prefix + '.')


def named(names, prefix):
    '''What follows a prefix in these names: ``slurmd`` of ``service.slurmd``.'''
    return [name[len(prefix) + 1:] for name in names if name.startswith(prefix + '.')]


def groups(node, names=None, patience=AT_ONCE):
    '''The groups to read.

    :arg names: of the facts that are needed; None for all.
    :arg patience: with mounts, seconds, if that is more than what answers at once has.
    '''
    chosen = [Group(name, prefixes, functools.partial(read, node), seconds) for name, (prefixes, read, seconds) in _GROUPS.items()
              if names is None or any(is_of(one, prefix) for one in names for prefix in prefixes)]
    for path in node.mounts:
        name = f'mount.{path}'
        if names is None or any(is_of(one, name) for one in names):
            chosen.append(Group(f'mount {path}', (name,), functools.partial(software.mount(path), node), max(AT_ONCE, patience)))
    return chosen
