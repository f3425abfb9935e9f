'''Expectations in files: ``config/expectations/KIND.yaml``, valid by ``schemas/expectations.json``.'''

import difflib
import fnmatch
import math
import re

from plumbline import schemas, settings
from plumbline.errors import PlumblineError

#: Where they are.
FOLDER = settings.HOME / 'config/expectations'

#: Names that facts have, as patterns: another name would be expected of all nodes, and on none of them.
_NAMES = ('kernel.release', 'kernel.options', 'system.architecture', 'system.distribution', 'system.vendor', 'system.product', 'firmware.vendor',
          'firmware.version', 'firmware.date', 'cpu.model', 'cpu.microcode', 'cpu.sockets', 'cpu.online', 'cpu.isolated', 'cpu.smt', 'cpu.governor',
          'cpu.driver', 'cpu.highest_clock', 'cpu.boost', 'mitigation.*', 'memory.total', 'memory.swap', 'memory.transparent_huge_pages',
          'memory.huge_page_defrag', 'memory.huge_pages.*', 'memory.overcommit', 'memory.zone_reclaim', 'numa.nodes', 'numa.balancing',
          'numa.cpus.*', 'numa.distance.*', 'numa.memory.*', 'ecc.controllers', 'ecc.corrected', 'ecc.uncorrected', 'machine_check.exceptions',
          'dimm.count', 'dimm.sizes', 'dimm.speeds', 'sel.entries', 'sel.percent_used', 'net.*.state', 'net.*.speed', 'net.*.mtu', 'ib.*.*.state',
          'ib.*.*.physical_state', 'ib.*.*.rate', 'ib.*.*.link_layer', 'cgroup.allowed_cpus', 'cgroup.cpu_quota', 'package.*', 'service.*',
          'time.synchronised', 'time.error_bound', 'time.offset', 'limit.memlock', 'limit.open_files', 'limit.stack', 'limit.processes',
          'limit.core', 'environment.*', 'mount./*.type', 'mount./*.device', 'mount./*.options', 'mount./*.writable', 'mount./*.answers',
          'mount./*.free', 'mount./*.free_files', 'mount./*.full')

_KIND = re.compile(r'[\w-][\w.-]*')


def path_of(kind):
    '''The file of a kind of node.'''
    if not _KIND.fullmatch(kind):
        raise PlumblineError(f'{kind!r}: this is no name of a kind of node: letters, digits, ".", "_" and "-"')
    return FOLDER / f'{kind}.yaml'


def load(path):
    '''The content of a file.

    :raises PlumblineError: in one line, if it cannot be read or is not valid.
    '''
    content = schemas.read_yaml(path, 'expectations', 'record them on a good node: plumbline expectations record KIND')
    for name, wanted in content['expectations'].items():
        try:
            re.compile(wanted.get('matches', ''))
        except (re.error, OverflowError, RecursionError) as error:
            raise PlumblineError(f"{path}: {name}: matches {wanted['matches']!r} is no regular expression: {error}") from None
        low, high = wanted.get('from', -math.inf), wanted.get('to', math.inf)
        if not low <= high:     # .nan is neither
            raise PlumblineError(f'{path}: {name}: from {low} is more than to {high}')
    for name in (*content['of'], *content['expectations']):
        if not any(fnmatch.fnmatchcase(name, known) for known in _NAMES):
            near = difflib.get_close_matches(name, _NAMES, 1)
            raise PlumblineError(f"{path}: {name}: no fact is called so{f': {near[0]}?' if near else ''}")
    return content


def of_partition(system, partition):
    '''(The file of a partition's nodes, its content or None where there is none).

    :arg partition: ReFrame's; its extra ``expectations`` names the kind of its nodes, by default ``SYSTEM-PARTITION``.
    '''
    path = path_of(partition.extras.get('expectations', f'{system}-{partition.name}'))
    return path, load(path) if path.exists() else None
