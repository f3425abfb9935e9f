'''Expectations from a good node: the facts worth expecting, how strictly, and how bad it is where they differ.

The file is reviewed as a diff, so its order is always the same, and what a person has chosen in it stays: severities, forms that the node
still fulfils, and entries of packages, services and variables.
'''

import datetime
import fnmatch
import getpass
import json
import re
import socket
from collections.abc import Iterable

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.gate import files
from plumbline.gate.packed import compare, facts, main, reading, software
from plumbline.gate.packed.compare import DRAIN, NOTE, WARN
from plumbline.gate.packed.node import Node, natural

#: What tells kinds of nodes apart, where it can be read, and that no part that fails changes.
_OF = ('cpu.model', 'system.product')

#: Packages and services that change what a node computes or how fast, or without which no job runs there: of them those that a node has.
PACKAGES = ('libc6', 'glibc', 'slurmd', 'slurm-slurmd', 'slurm', 'openmpi-bin', 'openmpi', 'libucx0', 'ucx', 'libfabric1', 'libfabric', 'rdma-core',
            'ofed-scripts', 'mlnx-ofa_kernel', 'lustre-client', 'lustre-client-modules', 'kmod-lustre-client', 'gpfs.base', 'beegfs-client',
            'intel-microcode', 'amd64-microcode', 'microcode_ctl', 'linux-firmware', 'tuned', 'munge')
SERVICES = ('slurmd', 'munge', 'sssd', 'nslcd', 'chronyd', 'chrony', 'ntpd', 'systemd-timesyncd', 'rasdaemon', 'mcelog', 'tuned', 'irqbalance',
            'autofs', 'rdma-ndd', 'opensm', 'gpfs', 'beegfs-client', 'lnet', 'nvidia-persistenced')

#: Options of mounts that change what users see or how fast it is; the others name the node, its addresses and its sizes.
_OPTIONS = re.compile(r'(ro|hard|soft|sync|async|noatime|relatime|strictatime|nodiratime|nosuid|nodev|noexec|flock|localflock|noflock|noac|'
                      r'nolock|nobarrier|dax\S*|discard|data=\S+|vers=\S+|proto=\S+|nconnect=\S+|[rw]size=\d+|sec=\S+)$')

#: A link that no other node has: systemd names it so where nothing tells its slot, as the port of a service processor at USB.
_BY_ADDRESS = re.compile(r'net\.(en|wl|ww)x[0-9a-f]{12}$')

#: Memory that Linux tells differs between equal nodes, by what firmware and kernel keep.
_OF_MEMORY = 0.01

#: Seconds within which a file system answers that nothing is wrong with, and the shares of it that must be free.
_ANSWERS, _FREE = 2, 0.05

#: States of a service that runs.
_RUNS = ['active', 'reloading']

#: Pattern of names -> (severity, form): how it is expected, the first that fits.  ``same``: the value; ``least``: at least the value;
#: ``None``: it is of one node or of one moment, and not recorded.
_RULES: tuple[tuple[str, str | None, str], ...] = (
    ('kernel.*', WARN, 'same'), ('system.product', None, ''), ('system.*', WARN, 'same'), ('firmware.date', None, ''), ('firmware.*', WARN, 'same'),
    ('cpu.online', DRAIN, 'same'), ('cpu.sockets', DRAIN, 'same'), ('cpu.model', None, ''), ('cpu.*', WARN, 'same'), ('mitigation.*', WARN, 'same'),
    ('memory.total', DRAIN, 'about'), ('memory.swap', NOTE, 'about'), ('memory.*', WARN, 'same'),
    ('numa.memory.*', DRAIN, 'about'), ('numa.nodes', DRAIN, 'same'), ('numa.*', WARN, 'same'),
    ('dimm.*', DRAIN, 'same'), ('ecc.controllers', WARN, 'same'), ('ecc.uncorrected', DRAIN, 'none'), ('ecc.corrected', WARN, 'few'),
    ('machine_check.exceptions', DRAIN, 'none'), ('sel.entries', NOTE, 'no more'), ('sel.percent_used', NOTE, 'not full'),
    ('net.*.mtu', WARN, 'same'), ('net.*', DRAIN, 'same'), ('ib.*', DRAIN, 'same'),
    ('service.*', DRAIN, 'runs'), ('package.*', WARN, 'same'), ('time.synchronised', WARN, 'yes'), ('time.error_bound', None, ''),
    ('time.offset', WARN, 'on time'), ('limit.open_files', NOTE, 'least'), ('limit.processes', None, ''), ('limit.*', NOTE, 'same'),
    ('environment.*', WARN, 'same'), ('cgroup.*', NOTE, 'same'),
    ('mount.*.type', DRAIN, 'same'), ('mount.*.device', WARN, 'same'), ('mount.*.options', WARN, 'options'),
    ('mount.*.writable', DRAIN, 'if yes'), ('mount.*.full', DRAIN, 'no'),
    ('mount.*.answers', DRAIN, 'in time'), ('mount.*.free', WARN, 'room'), ('mount.*.free_files', WARN, 'room'))

_FORMS = {
    'same': lambda value: {'is': value},
    'least': lambda value: {'is': value} if isinstance(value, str) else {'from': value},
    'about': lambda value: {'from': round(value * (1 - _OF_MEMORY)), 'to': round(value * (1 + _OF_MEMORY))},
    'none': lambda value: {'to': 0},
    'few': lambda value: {'to': 1000},
    'no more': lambda value: {'to': value},
    'not full': lambda value: {'to': 90},
    'runs': lambda value: {'one_of': _RUNS} if value in _RUNS else {'is': value},
    'yes': lambda value: {'is': 'yes'},
    'if yes': lambda value: {'is': 'yes'} if value == 'yes' else {},
    'no': lambda value: {'is': 'no'},
    'on time': lambda value: {'to': 0.01},
    'options': lambda value: {'holds': [one for one in value if _OPTIONS.match(one)]},
    'in time': lambda value: {'to': _ANSWERS},
    'room': lambda value: {'from': _FREE},
}

_HEAD = '''\
# What a node of the kind {kind} must have.  Recorded from a good node by `plumbline expectations record {kind}`; review each change as a diff.
#   severity  drain: no job should run on a node that differs; warn: somebody should look; note: told, and no more
#   is, one_of, from/to, holds (a list has these), matches (a regular expression): change them by hand where nodes may differ; recording again
#   keeps your severities, and your forms as long as the node fulfils them
'''


def read(packages: Iterable[str], services: Iterable[str], variables: Iterable[str], path: str) -> reading.Found:
    '''All facts of this node that can be read within a minute, with these packages, services and environment variables beside the usual ones.'''
    node = Node(path=path, packages=sorted({*PACKAGES, *packages}), services=sorted({*SERVICES, *services}), variables=sorted(variables))
    found = software.mounted(node) or {}
    node.mounts = sorted(path for path in found if software.worth_recording(path, found))
    return reading.read(facts.groups(node), 60)


def _entry(fact, before):
    '''The expectation of a fact; None where nothing is expected of it.'''
    severity, form = next(((severity, form) for pattern, severity, form in _RULES if fnmatch.fnmatchcase(fact.name, pattern)), (WARN, 'same'))
    if severity is None and fact.name not in before:
        return None
    made = _FORMS[form](fact.value) if severity else {}
    known = before.get(fact.name)
    if known:
        kept = {word: value for word, value in known.items() if word not in ('severity', 'source')}
        made = kept if compare.holds(fact.value, kept) else made or kept
        severity = known['severity']
    if not made or made.get('holds') == []:
        return None
    return {**made, 'severity': severity, 'source': fact.source}


def _not_of_others(found):
    '''Link of which nothing is expected -> why: a spare port that is down is none that others must have down.'''
    states = {name[:-len('.state')]: fact.value for name, fact in found.facts.items() if re.match(r'(net|ib)\..*\.state$', name)}
    return {link: 'named by its own address' if _BY_ADDRESS.match(link) else f'its state is {state}' for link, state in states.items()
            if _BY_ADDRESS.match(link) or state.lower() not in ('up', 'active')}


def skipped(content: dict, found: reading.Found) -> dict[str, str]:
    '''Link of which nothing is expected -> why.'''
    return {link: why for link, why in _not_of_others(found).items() if f'{link}.state' not in content['expectations']}


def _wanted(fact, asked, before):
    '''Whether a service or package is to be recorded: one that was asked for, or is there and active.'''
    return not fact.name.startswith('service.') or fact.value in _RUNS or fact.name in before or fact.name in asked


def expectations(kind: str, found: reading.Found, before: dict | None = None, asked: Iterable[str] = ()) -> dict:
    '''What is expected of nodes of a kind after a good one of them was read.

    :arg before: the file's content, where there is one.
    :arg asked: names of facts that were asked for.
    :raises PlumblineError: where nothing tells the kind of node.
    '''
    known = (before or {}).get('expectations', {})
    of = {name: found.facts[name].value for name in (before or {}).get('of', _OF) if name in found.facts and name != main.SOCKETS}
    if not of:
        raise PlumblineError(f"none of {', '.join(_OF)} can be read here: nothing tells nodes of the kind {kind} from others")
    links = _not_of_others(found)
    entries = {name: entry for name, fact in found.facts.items() if (name.rpartition('.')[0] not in links or name in known)
               and _wanted(fact, set(asked), known) and (entry := _entry(fact, known)) is not None}
    return {'schema': 1, 'kind': kind,
            'recorded': {'node': socket.gethostname(), 'when': f'{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M}',
                         'by': getpass.getuser()},
            'of': of, 'expectations': dict(sorted(entries.items(), key=lambda one: natural(one[0]))),
            'not_read': {missing.prefix: missing.why for missing in sorted(found.missing, key=lambda one: natural(one.prefix))}}


def _quoted(value):
    '''JSON that is YAML, too, which takes some characters for line ends, and refuses others.'''
    return re.sub(r'[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]', lambda one: f'\\u{ord(one[0]):04x}',
                  json.dumps(value, ensure_ascii=False))


def _flow(mapping):
    return '{' + ', '.join(f'{key}: {_quoted(value)}' for key, value in mapping.items()) + '}'


def text(content: dict) -> str:
    '''The file of expectations, one line for each.'''
    lines = [_HEAD.format(kind=content['kind']).rstrip(), 'schema: 1', f"kind: {json.dumps(content['kind'])}",
             f"recorded: {_flow(content['recorded'])}",
             '# Facts that tell this kind of node from others: expectations of another kind judge nothing.', 'of:']
    lines += [f'  {_key(name)}: {_quoted(value)}' for name, value in content['of'].items()]
    lines.append('expectations:')
    group = None
    for name, entry in content['expectations'].items():
        if name.partition('.')[0] != group:
            group = name.partition('.')[0]
            lines.append(f'  # {group}')
        lines.append(f'  {_key(name)}: {_flow(entry)}')
    if content['not_read']:
        lines += ['# Nothing is expected of what could not be read when this was recorded.', 'not_read:']
        lines += [f'  {_key(name)}: {_quoted(why)}' for name, why in content['not_read'].items()]
    return '\n'.join(lines) + '\n'


def _key(name):
    return name if re.fullmatch(r'[\w./-]+', name) else _quoted(name)


def write(path, content):
    '''Write the file, as a whole or not at all.'''
    with saying_why(path):
        atomic.write(path, text(content), 0o644, check=files.load)


def unlike(content: dict, before: dict) -> list[str]:
    '''What recording changes of a file, in words.'''
    told, was = ({name: compare.expected(name, entry) for name, entry in one['expectations'].items()} for one in (content, before))
    return [*(f'new: {name}: {told[name]}' for name in told if name not in was),
            *(f'gone: {name}, was {was[name]}' for name in was if name not in told),
            *(f'changed: {name}: {told[name]}, was {was[name]}' for name in told if name in was and told[name] != was[name])]
