'''How much CPU time and memory the cgroups of this process give it.

The standard library alone, and Python 3.6: the gate carries this file to nodes (:mod:`plumbline.gate.pack`).
'''

import os
from pathlib import Path


def _paths(root):
    '''Yield (controllers, path) of the process, from ``/proc/self/cgroup``.'''
    try:
        lines = (root / 'proc/self/cgroup').read_text(errors='surrogateescape').splitlines()
    except OSError:
        return
    for _, controllers, path in (line.split(':', 2) for line in lines if line.count(':') > 1):
        yield controllers.split(','), path.lstrip('/')


def _upwards(mount, path):
    '''The folder of a cgroup and of all its parents.  A cgroup namespace shows paths that do not
    exist below the mount; the parents that do exist still count.
    '''
    folder = mount / path
    return [folder, *(parent for parent in folder.parents if parent == mount or mount in parent.parents)]


def _numbers(path):
    '''The whole numbers in a file, or none where it cannot be read or says ``max``.'''
    try:
        return [int(word) for word in path.read_text().split()]
    except (OSError, ValueError):
        return []


def _quotas_v2(folder):
    numbers = _numbers(folder / 'cpu.max')
    return [numbers[0] / numbers[1]] if len(numbers) == 2 and numbers[1] else []


def _quotas_v1(folder):
    quota = _numbers(folder / 'cpu.cfs_quota_us')
    period = _numbers(folder / 'cpu.cfs_period_us')
    return [quota[0] / period[0]] if quota and period and quota[0] > 0 < period[0] else []


def _limits(root, controller, of_v1, of_v2):
    '''The limits of the process's cgroup and of all its parents, in version 1 and 2.'''
    root = Path(root)
    mount = root / 'sys/fs/cgroup'
    found = []
    for controllers, path in _paths(root):
        if controllers == ['']:
            tops, of = (mount, mount / 'unified'), of_v2
        elif controller in controllers:
            tops, of = (mount / controller, mount / ','.join(controllers)), of_v1
        else:
            continue
        found += [limit for top in tops for folder in _upwards(top, path) for limit in of(folder)]
    return found


def cpu_quota(root='/'):
    '''How much CPU time the cgroups of this process give it.

    Reads ``cpu.max`` (version 2) and ``cpu.cfs_quota_us`` (version 1) of the process's cgroup and of all its parents; the smallest counts.

    :arg root: the root of the file system, for tests.
    :returns: CPUs, for example 1.5; :obj:`None` if there is no quota.
    '''
    return min(_limits(root, 'cpu', _quotas_v1, _quotas_v2), default=None)


def memory(root='/'):
    '''How much memory this process may use on this node.

    Reads ``memory.max`` (version 2) and ``memory.limit_in_bytes`` (version 1), which is larger than any memory where there is no limit.  What is in
    use, of the node or of a cgroup, is not taken off: sizes that follow from it are the same in every run, and programs refuse what is not free.

    :arg root: the root of the file system, for tests of the limits.
    :returns: bytes: what the node has, or less if a cgroup gives less.
    '''
    limits = _limits(root, 'memory', lambda folder: _numbers(folder / 'memory.limit_in_bytes'), lambda folder: _numbers(folder / 'memory.max'))
    return min([os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'), *limits])


def allowed_cpus():
    '''What this process may use on this node: (set of CPU numbers, quota in CPUs or :obj:`None`).'''
    return os.sched_getaffinity(0), cpu_quota()
