'''Facts of the processor, the memory, the firmware and the links: generators of :class:`Fact` and :class:`Missing` for a :class:`Node`.'''

import os
import re

from plumbline.gate.packed.node import known, of_file
from plumbline.gate.packed.reading import Fact, Missing
from plumbline.system import cgroup, dmi

_CPU = '/sys/devices/system/cpu'

#: Rows of /proc/interrupts that count machine checks: exceptions, and errors that were deferred (AMD).  src/burn/counts.c has the same, and
#: tests/test_burn.py holds it to these.
MACHINE_CHECKS = ('MCE', 'DFR')


def _distinct(node, name, pattern):
    '''What the files of all CPUs say: one text where all say the same.'''
    texts = node.texts(pattern)
    yield known(name, ', '.join(texts) if texts else None, pattern, f'{pattern} cannot be read')


def _fields(text):
    '''Key -> the distinct values that lines ``key : value`` have, in their order.'''
    found = {}       # type: dict
    for line in text.splitlines():
        key, there, value = line.partition(':')
        if there:
            found.setdefault(key.strip(), {})[value.strip()] = None
    return {key: list(values) for key, values in found.items()}


def processor(node):
    text = node.text('/proc/cpuinfo')
    if text is None:
        yield Missing('cpu', '/proc/cpuinfo cannot be read')
    else:
        fields = _fields(text)
        arm = [value for key in ('CPU implementer', 'CPU part', 'CPU variant', 'CPU revision') for value in fields.get(key, ())]
        model = fields.get('model name') or fields.get('cpu') or ([' '.join(arm)] if arm else [])
        yield known('cpu.model', ', '.join(model) if model else None, '/proc/cpuinfo')
        yield known('cpu.microcode', ', '.join(sorted(fields['microcode'])) if 'microcode' in fields else None, '/proc/cpuinfo')
    source = f'{_CPU}/cpu*/topology/physical_package_id'
    yield known('cpu.sockets', len(node.texts(source)) or None, source, f'{source} cannot be read')
    yield from of_file(node, 'cpu.online', f'{_CPU}/online')
    yield from of_file(node, 'cpu.isolated', f'{_CPU}/isolated')
    yield from of_file(node, 'cpu.smt', f'{_CPU}/smt/control')
    yield from _distinct(node, 'cpu.governor', f'{_CPU}/cpu[0-9]*/cpufreq/scaling_governor')
    yield from _distinct(node, 'cpu.driver', f'{_CPU}/cpu[0-9]*/cpufreq/scaling_driver')
    yield from _distinct(node, 'cpu.highest_clock', f'{_CPU}/cpu[0-9]*/cpufreq/scaling_max_freq')
    yield from _boost(node)
    for path in node.files(f'{_CPU}/vulnerabilities/*'):
        yield from of_file(node, f'mitigation.{os.path.basename(path)}', path)


def _boost(node):
    for path, on in ((f'{_CPU}/cpufreq/boost', '1'), (f'{_CPU}/intel_pstate/no_turbo', '0')):
        text = node.text(path)
        if text is not None:
            yield Fact('cpu.boost', 'on' if text == on else 'off', path)
            return
    yield Missing('cpu.boost', f'neither {_CPU}/cpufreq/boost nor {_CPU}/intel_pstate/no_turbo can be read')


def _kib(text):
    '''Bytes of ``123 kB``; None of what is none.'''
    found = re.match(r'(\d+) kB$', text)
    return int(found.group(1)) * 1024 if found else None


def _whole(text):
    return int(text) if text.isdecimal() else None


def _chosen(text):
    '''``always [madvise] never``: madvise.'''
    found = re.search(r'\[([^][\s]+)\]', text)
    return found.group(1) if found else text


def memory(node):
    fields = _fields(node.text('/proc/meminfo') or '')
    for name, key in (('memory.total', 'MemTotal'), ('memory.swap', 'SwapTotal')):
        size = _kib(fields.get(key, [''])[0])
        yield known(name, size, '/proc/meminfo')
    thp = '/sys/kernel/mm/transparent_hugepage'
    yield from of_file(node, 'memory.transparent_huge_pages', f'{thp}/enabled', _chosen)
    yield from of_file(node, 'memory.huge_page_defrag', f'{thp}/defrag', _chosen)
    for path in node.files('/sys/kernel/mm/hugepages/hugepages-*/nr_hugepages'):
        size = os.path.basename(os.path.dirname(path)).replace('hugepages-', '')
        yield from of_file(node, f'memory.huge_pages.{size}', path, _whole)
    yield from of_file(node, 'memory.overcommit', '/proc/sys/vm/overcommit_memory')
    yield from of_file(node, 'memory.zone_reclaim', '/proc/sys/vm/zone_reclaim_mode')


def numa(node):
    base = '/sys/devices/system/node'
    yield from of_file(node, 'numa.nodes', f'{base}/online')
    yield from of_file(node, 'numa.balancing', '/proc/sys/kernel/numa_balancing')
    for path in node.files(f'{base}/node[0-9]*'):
        number = os.path.basename(path)[len('node'):]
        yield from of_file(node, f'numa.cpus.{number}', f'{path}/cpulist')
        yield from of_file(node, f'numa.distance.{number}', f'{path}/distance')
        total = re.search(r'MemTotal:\s+(\d+ kB)', node.text(f'{path}/meminfo') or '')
        yield known(f'numa.memory.{number}', total and _kib(total.group(1)), f'{path}/meminfo', f'{path}/meminfo cannot be read')


def errors(node):
    '''Counts since the start of the system.'''
    base = '/sys/devices/system/edac/mc'
    controllers = node.files(f'{base}/mc[0-9]*')
    if controllers:
        yield Fact('ecc.controllers', len(controllers), base)
        for name, file in (('ecc.corrected', 'ce_count'), ('ecc.uncorrected', 'ue_count')):
            counts = node.numbers(f'{base}/mc[0-9]*/{file}')
            unread = len(controllers) - len(counts)
            why = f'{file} of {unread} of {len(controllers)} controllers cannot be read'
            yield known(name, None if unread else sum(counts), f'{base}/mc*/{file}', why)
    else:
        yield Missing('ecc', f'no controller in {base}: the driver is not loaded, or the machine is virtual')
    rows = re.findall(r'^\s*(?:%s):((?:[ \t]+\d+)+)' % '|'.join(MACHINE_CHECKS), node.text('/proc/interrupts') or '', re.MULTILINE)
    count = sum(int(number) for row in rows for number in row.split()) if rows else None
    yield known('machine_check.exceptions', count, '/proc/interrupts', '/proc/interrupts has no row ' + ' or '.join(MACHINE_CHECKS))


def firmware(node):
    base = '/sys/class/dmi/id'
    for name, file in (('firmware.vendor', 'bios_vendor'), ('firmware.version', 'bios_version'), ('firmware.date', 'bios_date'),
                       ('system.vendor', 'sys_vendor'), ('system.product', 'product_name')):
        yield from of_file(node, name, f'{base}/{file}')


def _counted(texts):
    '''``8 x 64 GB, 1 x 32 GB``.'''
    return ', '.join(f'{texts.count(text)} x {text}' for text in sorted(set(texts)))


def modules(node):
    command = node.command('dmidecode')
    text, why = dmi.read_memory(command) if command else (None, 'dmidecode is not there')
    if text is None:
        yield Missing('dimm', why)
        return
    slots = [slot for slot in dmi.memory_slots(text) if slot['populated']]
    yield Fact('dimm.count', len(slots), 'dmidecode -t memory')
    yield Fact('dimm.sizes', _counted([slot['size'] for slot in slots]), 'dmidecode -t memory')
    yield Fact('dimm.speeds', _counted([f"{slot['speed']} MT/s" if slot['speed'] else 'unknown' for slot in slots]), 'dmidecode -t memory')


def event_log(node):
    said, missing = node.ask('sel', 'ipmitool', 'sel', 'info')
    if missing:
        yield missing
        return
    fields = _fields(said)
    for name, key in (('sel.entries', 'Entries'), ('sel.percent_used', 'Percent Used')):
        number = re.match(r'\d+', fields.get(key, [''])[0])
        yield known(name, number and int(number.group()), 'ipmitool sel info', f'ipmitool sel info does not say {key}')


def links(node):
    for path in node.files('/sys/class/net/*'):
        name = os.path.basename(path)
        if not os.path.exists(node.at(f'{path}/device')) and not os.path.exists(node.at(f'{path}/bonding')):
            continue        # of software alone
        yield from of_file(node, f'net.{name}.state', f'{path}/operstate')
        speed = re.match(r'[1-9]\d*$', node.text(f'{path}/speed') or '')      # of a link that is down, or virtual, there is none
        yield known(f'net.{name}.speed', speed and int(speed.group()), f'{path}/speed')
        yield from of_file(node, f'net.{name}.mtu', f'{path}/mtu', _whole)
    for path in node.files('/sys/class/infiniband/*/ports/*'):
        device, port = path.split('/')[-3], path.split('/')[-1]
        name = f'ib.{device}.{port}'
        for key, file in (('state', 'state'), ('physical_state', 'phys_state')):
            yield from of_file(node, f'{name}.{key}', f'{path}/{file}', lambda text: text.partition(':')[2].strip() or text)
        yield from of_file(node, f'{name}.rate', f'{path}/rate')
        yield from of_file(node, f'{name}.link_layer', f'{path}/link_layer')


def allocation(node):
    '''What this process may use: of a health check that is what slurmd may use.'''
    yield known('cgroup.allowed_cpus', _fields(node.text('/proc/self/status') or '').get('Cpus_allowed_list', [None])[0], '/proc/self/status')
    quota = cgroup.cpu_quota(node.root)
    yield Fact('cgroup.cpu_quota', 'none' if quota is None else f'{quota:g} CPUs', '/sys/fs/cgroup')
