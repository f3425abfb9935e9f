'''What the datasheet promises: peaks of memory and caches, from a small file for each machine.

The machine file is YAML (``schemas/machine.json``)::

  schema: 1
  microarchitecture: zen4                       # optional: archspec's name; of another the file says nothing
  memory: {channels: 16, transfer_rate: 4800, bytes_per_transfer: 8, source: ...}   # MT/s; optional most: 170600, MB/s, and
                                                                                    # configured: 4400, MT/s, where that is less
  core: {clock: 3.8, clock_source: ..., load_bytes_per_cycle: 128,                  # GHz
         store_bytes_per_cycle: 64, source: ...}
  levels:                                       # optional, per core
    L2: {bytes_per_cycle: 64, source: ...}

:func:`detect` fills in what the node tells, :func:`write` writes it, a person completes it from the datasheet, :func:`load` and :func:`peaks` use it.
What is not known stays null and is said to be unknown: a peak that is too low would let a sick machine look healthy, and one that is guessed is worth
nothing.
'''

import json
import re
from collections import Counter
from pathlib import Path

from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import processor
from plumbline.model.baselines import PATH, known_as, microarchitectures
from plumbline.system.dmi import memory_slots, read_memory

SCHEMA_VERSION = 1

#: Bytes that a DDR channel moves at once: 64 bits (two halves of 32 bits on DDR5), without ECC.
DDR_BYTES_PER_TRANSFER = 8

#: Names of slots that tell the socket and the channel: 'P0 CHANNEL A', 'NODE 1 CHANNEL 0 DIMM 1',
#: 'P1_Node1_Channel2_Dimm0'; 'CPU1_DIMM_A1' and 'P2-DIMMC1'; 'DIMM_P0_A0'.
_SOCKET = r'(?P<socket>\b(?:P|CPU|PROC|NODE|SOCKET)[ _-]?\d+'
_SLOTS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in (
    _SOCKET + r'.*)CHANNEL[ _-]?(?P<channel>\d+|[A-Z](?![A-Z]))',
    _SOCKET + r')[ _-]*DIMM[ _-]?(?P<channel>[A-Z])\d',
    r'DIMM[ _-]?(?P<socket>(?:P|CPU)\d+)[ _-](?P<channel>[A-Z])\d'))

_VIRTUAL = 'inside a virtual machine'


def _where(file):
    return f'write them into {file}' if file else 'write a machine file for this system'


# --- use ---

def load(path):
    '''The contents of a machine file, valid by ``schemas/machine.json``.

    :raises PlumblineError: if it cannot be read or is not valid.
    '''
    return schemas.read_yaml(path, 'machine', 'write it with detect()')


def _memory_peak(machine):
    memory = machine.get('memory') or {}
    if memory.get('most'):
        return float(memory['most'])
    factors = [memory.get('channels'), memory.get('transfer_rate'), memory.get('bytes_per_transfer', DDR_BYTES_PER_TRANSFER)]
    # Mega-transfers per second times bytes are MB/s.
    return None if None in factors else float(factors[0] * factors[1] * factors[2])


def _bytes_per_cycle(machine, level):
    given = (machine.get('levels') or {}).get(level) or {}
    if given.get('bytes_per_cycle'):
        return given['bytes_per_cycle']
    core = machine.get('core') or {}
    parts = [core.get('load_bytes_per_cycle'), core.get('store_bytes_per_cycle')]
    return sum(parts) if level == 'L1' and None not in parts else None


def peaks(machine, cores, clock=None):
    '''What the machine could move at best, by its datasheet.

    Memory: channels x transfer rate x bytes per transfer, or ``most``, for all cores together; one core has no datasheet value.  L1: (load + store
    bytes per cycle) x clock per core.  Other levels: as the file says, per core.  All are upper bounds: no mix of loads and stores need reach the
    sum, and all cores together need not reach the clock of one.

    :arg machine: what :func:`load` or :func:`detect` returned; :obj:`None` for no file.
    :arg cores: number of cores that ``'all'`` stands for.
    :arg clock: GHz that the cores were measured at, for a file that does not know their highest: what they could have moved
        at that clock.  A clock that is too low does not show in it; the check ``cores`` measures the clock itself.
    :returns: dictionary (level, ``'one'`` or ``'all'``) -> MB/s, of what is known.
    '''
    machine = machine or {}
    result = {}
    if memory := _memory_peak(machine):
        result['memory', 'all'] = memory
    clock = (machine.get('core') or {}).get('clock') or clock
    for level in {'L1', *(machine.get('levels') or {})}:
        per_cycle = _bytes_per_cycle(machine, level)
        if clock and per_cycle:
            result[level, 'one'] = per_cycle * clock * 1e3      # bytes x GHz = 1e3 MB/s
            result[level, 'all'] = result[level, 'one'] * cores
    return result


def _missing_of_memory(machine):
    memory = machine.get('memory') or {}
    names = {'channels': 'memory channels', 'transfer_rate': 'transfer rate', 'bytes_per_transfer': 'bytes per transfer'}
    given = {'bytes_per_transfer': DDR_BYTES_PER_TRANSFER} | memory
    missing = [name for key, name in names.items() if given.get(key) is None and not given.get('most')]
    return [(' and '.join(missing), memory.get('source'))] if missing else []


def _missing_of_cache(machine, level, clock):
    core = machine.get('core') or {}
    missing = []
    if _bytes_per_cycle(machine, level) is None:
        given = core if level == 'L1' else (machine.get('levels') or {}).get(level) or {}
        missing.append((f'bytes per cycle of {level}', given.get('source')))
    if not core.get('clock') and not clock:
        missing.append(('clock', core.get('clock_source')))
    return missing


def unknown(machine, level, scope='all', file=None, clock=None):
    '''Why the peak of a level is not known.

    :arg machine, clock: as for :func:`peaks`.
    :arg scope: ``'one'`` core or ``'all'``.
    :arg file: the machine file, for the advice.
    :returns: one line that begins with ``peak unknown:``; :obj:`None` if the peak is known.
    '''
    if machine is None:
        return f'peak unknown: this system has no machine file; {_where(file)}'
    if level == 'memory' and scope == 'one':
        return 'peak unknown: one core has no datasheet value for memory'
    missing = (_missing_of_memory(machine) if level == 'memory' else _missing_of_cache(machine, level, clock))
    if not missing:
        return None
    text = ', '.join(f'{what} not known' + (f' ({why})' if why else '') for what, why in missing)
    return f'peak unknown: {text}; {_where(file)}'


# --- detection ---

def _channel(slot):
    '''(socket, channel) of a slot as its name tells them, or :obj:`None`.'''
    for name in (slot['bank'], slot['locator']):
        for pattern in _SLOTS:
            if match := pattern.search(name):
                return match['socket'].upper(), match['channel'].upper()
    return None


def memory_from_dmi(text):
    '''The section ``memory`` of the machine file, from ``dmidecode -t memory``.

    Channels with a module are counted, where the names of the slots tell socket and channel.  A name such as ``A1`` does not: the letter is a channel
    on one board and a socket on another.  ``source`` says how many channels there are in all: on a node that lacks a module the count is too low for
    a file that is meant for all nodes of its kind, and which sockets have fewer than others.

    Modules that are configured for less than they are rated at may have a low profile in the BIOS, or a processor or a second module in their channel
    that allows no more: the tables do not tell.  The rated speed makes the peak, and ``configured`` is beside it: a memory that is too slow for
    the rated one and not for the configured one is neither a PASS nor a FAIL, until somebody has written which of them was bought.

    :returns: dictionary ``channels``, ``transfer_rate``, ``bytes_per_transfer``, ``source``, and ``configured`` where that is less.
    '''
    slots = memory_slots(text)
    modules = [slot for slot in slots if slot['populated']]
    channels = {_channel(slot) for slot in modules}
    speeds, rated = ({slot[key] for slot in modules} for key in ('speed', 'rated'))
    known = modules and None not in channels
    note = f'dmidecode: {len(modules)} modules'
    if known:
        # A channel without a module may be one whose module is broken: somebody should see it.
        there = {_channel(slot) for slot in slots} - {None}
        note += f' in {len(channels)} of {len(there)} channels'
        of_socket = Counter(socket.strip(' _-') for socket, _ in channels)
        if len({*of_socket.values()}) > 1:
            note += f" ({', '.join(f'{count} of {socket}' for socket, count in sorted(of_socket.items()))})"
    else:
        name = next((slot['locator'] for slot in modules if _channel(slot) is None), 'none')
        note += f"; a slot's name such as {name!r} does not tell its channel"
    if None in speeds:
        note += '; no configured speed'
    elif len(speeds) > 1:
        note += f'; speeds {sorted(speeds)}, the lowest counts'
    configured, most = (min(found) if found and None not in found else None for found in (speeds, rated))
    low = {'configured': configured} if configured and most and configured < most else {}
    if low:
        note += f'; configured for {configured} MT/s, the modules are rated {most}'
    return {'channels': len(channels) if known else None, 'transfer_rate': most if low else configured, **low,
            'bytes_per_transfer': DDR_BYTES_PER_TRANSFER, 'source': note}


def _read(root, path):
    try:
        return (Path(root) / path).read_text().strip()
    except OSError:
        return ''


def _detect_memory(virtual, dmi):
    unknown_memory = {'channels': None, 'transfer_rate': None, 'bytes_per_transfer': DDR_BYTES_PER_TRANSFER}
    if virtual:
        return unknown_memory | {'source': f'{_VIRTUAL} DMI does not describe real modules'}
    text, reason = dmi if dmi is not None else read_memory()
    return memory_from_dmi(text) if text is not None else unknown_memory | {'source': reason}


def _detect_clock(root, virtual):
    '''(GHz or :obj:`None`, source or reason).

    /proc/cpuinfo is not asked: it gives the clock of the moment, and in a virtual machine that of
    the time stamp counter; both are below what a core reaches.
    '''
    if virtual:
        return None, f'{_VIRTUAL} the highest clock of the core cannot be seen'
    policies = sorted((Path(root) / 'sys/devices/system/cpu').glob('cpu[0-9]*/cpufreq'))
    highest = max((int(text) for p in policies if (text := _read(p, 'cpuinfo_max_freq')).isdigit()), default=None)
    if highest is None:
        return None, 'no cpuinfo_max_freq: the kernel has no cpufreq driver for this processor'
    # acpi-cpufreq names the highest P-state, and only sometimes the boost clock above it.
    states = [int(khz) for p in policies for khz in _read(p, 'scaling_available_frequencies').split()]
    driver = _read(policies[0], 'scaling_driver')
    boost = _read(root, 'sys/devices/system/cpu/cpufreq/boost')
    if driver == 'acpi-cpufreq' and boost == '1' and highest <= max(states, default=highest):
        return None, f'acpi-cpufreq gives {highest / 1e6:g} GHz without the boost that is on'
    return highest / 1e6, f'cpuinfo_max_freq ({driver})'


def _source(arch, given):
    return f"{arch}: {given['source']}" if given.get('source') else f"microarchitecture {arch or 'unknown'} is not in {PATH.name}"


def flops_per_cycle(arch, bits):
    '''What one core does at most with fused multiply-adds of a width, in double precision.

    :arg arch: archspec's name of the microarchitecture.
    :arg bits: of the vectors; 64 for scalars.
    :returns: (operations per cycle, :obj:`None`), or (:obj:`None`, why it is not known).
    '''
    known = microarchitectures().get(arch, {}).get('fma', {})
    return (2 * known['units'] * min(bits, known['bits']) / 64, None) if known else (None, f'peak unknown: {_source(arch, known)}')


def _detect_core(root, virtual, arch):
    clock, clock_source = _detect_clock(root, virtual)
    known = microarchitectures().get(arch, {})
    return {'clock': clock, 'clock_source': clock_source, 'load_bytes_per_cycle': known.get('load'),
            'store_bytes_per_cycle': known.get('store'), 'source': _source(arch, known)}


def host_microarchitecture(root='/'):
    '''That of this node's processor: archspec's name, which is the ``arch`` of ReFrame's processor information, unless a hypervisor hides
    what archspec goes by.'''
    import archspec.cpu  # here, because it is needed on the node to be described only
    return known_as(archspec.cpu.host().name, processor.of_cpuinfo(_read(root, 'proc/cpuinfo')).get('cpuid'))


def detect(root='/', arch=None, dmi=None):
    '''What the node itself tells of its peaks; what it does not tell is null, with the reason.

    :arg root: the root of the file system, for tests.
    :arg arch: archspec's name of the microarchitecture; :obj:`None` to ask archspec.
    :arg dmi: (output of ``dmidecode -t memory`` or :obj:`None`, why it is not there); :obj:`None` to run dmidecode, which needs root.
    :returns: contents of a machine file.
    '''
    flags, arch = re.search(r'^flags\s*:(.*)$', _read(root, 'proc/cpuinfo'), re.MULTILINE), arch or host_microarchitecture(root)
    virtual, known = flags is not None and 'hypervisor' in flags[1].split(), microarchitectures().get(arch, {}).get('L2')
    return {'schema': SCHEMA_VERSION, **({'microarchitecture': arch} if arch else {}), 'memory': _detect_memory(virtual, dmi),
            'core': _detect_core(root, virtual, arch), **({'levels': {'L2': {**known, 'source': _source(arch, known)}}} if known else {})}


# --- writing ---

_HINTS = {
    'channels': 'memory channels of the whole node that have a module',
    'transfer_rate': 'MT/s', 'bytes_per_transfer': 'of one channel',
    'configured': 'MT/s: as it was found; keep what was bought as transfer_rate, and remove this line',
    'clock': 'GHz, the highest that a core reaches',
    'load_bytes_per_cycle': 'L1, one core', 'store_bytes_per_cycle': 'L1, one core'}

_HEAD = '''\
# What the datasheet of this machine promises; see plumbline.system.datasheet.  null: not known.
# Complete it, and say in `source` where a value is from.
'''

_TAIL = '''\
# Optional: bytes per cycle of one core in other levels, loads and stores, write-allocate counted.
# levels:
#   L2: {bytes_per_cycle: 64, source: the manual and its section}
'''


def to_yaml(machine):
    '''The text of a machine file, with a comment where a value is still to be found.'''
    lines = [_HEAD + f"schema: {machine['schema']}"]
    if 'microarchitecture' in machine:
        lines.append(f"microarchitecture: {json.dumps(machine['microarchitecture'])}")
    for section in ('memory', 'core'):
        lines.append(f'{section}:')
        for key, value in machine[section].items():
            comment = f'  # {_HINTS[key]}' if key in _HINTS else ''
            if value is None:
                comment += '; not known'
            # JSON's scalars are YAML's, and a quoted text needs no thought about its colons.
            lines.append(f'  {key}: {json.dumps(value, ensure_ascii=False)}{comment}')
    if 'levels' not in machine:
        return '\n'.join(lines) + '\n' + _TAIL
    lines.append('levels:  # bytes per cycle of one core, loads and stores, write-allocate counted')
    lines += [f'  {level}: {json.dumps(given, ensure_ascii=False)}' for level, given in machine['levels'].items()]
    return '\n'.join(lines) + '\n'


def write(path, detected):
    '''Write a machine file; an existing one, which a person may have completed, is not touched.

    :arg detected: what :func:`detect` returned.
    :raises PlumblineError: if the file exists or cannot be written.
    '''
    try:
        with open(path, 'x', encoding='utf-8') as file:
            file.write(to_yaml(detected))
    except FileExistsError:
        raise PlumblineError(f'{path} exists; remove it, or write another file and compare') from None
    except OSError as error:
        raise PlumblineError(f'{path}: {error.strerror}; choose a folder that you may write') from None


# --- in ReFrame's configuration ---

def local_file(path):
    '''Path of this node's machine file, for a partition's ``extras['machine']``; written by detection if it does not exist yet.'''
    path = Path(path)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, detect())
    return str(path)


def of_partition(partition, arch=None):
    '''(machine file's contents, its path) of a ReFrame partition, from ``extras['machine']``.

    That is a path, or the contents themselves in the site file; (None, None) if there is neither.

    :arg arch: the microarchitecture of the node that was measured: contents that name another have no values but the reason, for a disk
        that several machines share, or that moved to another one, has the file of the first.
    '''
    given = partition.extras.get('machine')
    machine, file = (load(given), given) if isinstance(given, str) else (given, None)
    written_for = (machine or {}).get('microarchitecture', arch)
    if arch and written_for != arch:
        reason = f'written for {written_for}, and this is {arch}: remove the file, or name another'
        machine = {'schema': SCHEMA_VERSION, 'memory': {'channels': None, 'transfer_rate': None, 'source': reason},
                   'core': {'clock': None, 'clock_source': reason, 'load_bytes_per_cycle': None, 'store_bytes_per_cycle': None, 'source': reason}}
    return machine, file
