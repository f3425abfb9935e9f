'''The gate and its expectations: what is read of a node, how it is compared, and the file that runs where nothing of ours is.'''

import ast
import json
import os
import re
import resource
import shlex
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import rfm
from hung import hung
from plumbline import schemas
from plumbline.cli import app
from plumbline.errors import PlumblineError
from plumbline.gate import files, pack, record
from plumbline.gate.packed import compare, facts, main as gate, reading, software
from plumbline.gate.packed.node import Node

CPU = 'sys/devices/system/cpu'
NUMA = 'sys/devices/system/node'
EDAC = 'sys/devices/system/edac/mc'
PORT = 'sys/class/infiniband/mlx5_0/ports/1'
MODULE = 'Handle 0x{n:04X}\nMemory Device\n\tSize: {size}\n\tLocator: A{n}\n\tConfigured Memory Speed: {speed} MT/s\n'


def modules(*pairs):
    return '\n'.join(MODULE.format(n=n, size=size, speed=speed) for n, (size, speed) in enumerate(pairs))


#: Files of a good node of two CPUs.
GOOD = {
    'proc/sys/kernel/osrelease': '5.14.0-427', 'proc/cmdline': 'BOOT_IMAGE=x root=UUID=1 mitigations=auto', 'etc/os-release': 'PRETTY_NAME="Rocky 9"',
    'proc/cpuinfo': 'processor: 0\nmodel name: EPYC 9654\nmicrocode: 0xa1\n\nprocessor: 1\nmodel name: EPYC 9654\nmicrocode: 0xa1',
    f'{CPU}/online': '0-1', f'{CPU}/isolated': '', f'{CPU}/smt/control': 'off', f'{CPU}/cpufreq/boost': '1',
    **{f'{CPU}/cpu{n}/cpufreq/scaling_{name}': text for n in (0, 1) for name, text in (
        ('governor', 'performance'), ('driver', 'acpi-cpufreq'), ('max_freq', '3700000'))},
    **{f'{CPU}/cpu{n}/topology/physical_package_id': '0' for n in (0, 1)},
    f'{CPU}/vulnerabilities/spectre_v2': 'Mitigation: IBRS', 'proc/meminfo': 'MemTotal: 100000000 kB\nSwapTotal: 0 kB',
    'sys/kernel/mm/transparent_hugepage/enabled': 'always [madvise] never', 'sys/kernel/mm/transparent_hugepage/defrag': '[madvise] never',
    'sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '0', 'proc/sys/vm/overcommit_memory': '0', 'proc/sys/vm/zone_reclaim_mode': '0',
    f'{NUMA}/online': '0-1', 'proc/sys/kernel/numa_balancing': '0',
    **{f'{NUMA}/node{n}/{name}': text for n in (0, 1) for name, text in (
        ('cpulist', f'{n}'), ('distance', '10 32' if n == 0 else '32 10'), ('meminfo', f'Node {n} MemTotal: 50000000 kB'))},
    f'{EDAC}/mc0/ce_count': '3', f'{EDAC}/mc0/ue_count': '0', 'proc/interrupts': '  LOC: 1 2\n  MCE:  0  0  Machine check exceptions',
    'sys/class/dmi/id/bios_vendor': 'Vendor', 'sys/class/dmi/id/bios_version': '1.6', 'sys/class/dmi/id/sys_vendor': 'Maker',
    'sys/class/dmi/id/product_name': 'R1', 'sys/class/net/eth0/device/vendor': '1', 'sys/class/net/eth0/operstate': 'up',
    'sys/class/net/eth0/speed': '25000', 'sys/class/net/eth0/mtu': '9000', 'sys/class/net/lo/operstate': 'unknown',
    f'{PORT}/state': '4: ACTIVE', f'{PORT}/phys_state': '5: LinkUp', f'{PORT}/rate': '200 Gb/sec (4X HDR)', f'{PORT}/link_layer': 'InfiniBand',
    'proc/self/status': 'Cpus_allowed_list:\t0-1', 'proc/self/cgroup': '0::/system.slice\n', 'sys/fs/cgroup/cpu.max': 'max 100000',
    'proc/self/mountinfo': '20 1 8:1 / / rw,relatime - xfs /dev/sda1 rw\n21 20 0:9 / /scratch rw,noatime - nfs4 server:/scratch rw,vers=4.2,hard,addr=10.0.0.1\n'
                           '22 20 0:8 / /proc rw - proc proc rw',
    'scratch/file': 'x'}

#: Commands of it: name -> (what it prints, exit code).
COMMANDS = {
    'dpkg-query': ('slurmd 23.02 installed\nlibc6 2.36 installed', 1), 'systemctl': ('', 0), 'chronyc': ('System time     : 0.000012 seconds slow of NTP time', 0),
    'ipmitool': ('Entries          : 12\nPercent Used     : 2%', 0), 'dmidecode': (modules(('64 GB', 4800), ('64 GB', 4800)), 0)}

SERVICES = {'slurmd': 'active', 'munge': 'active'}


def made(folder, changed=None, commands=None, services=None):
    '''The groups of a node that is like the good one but for some files (None: they are not there), commands and services.'''
    rfm.laid(folder, {name: text for name, text in {**GOOD, **(changed or {})}.items() if text is not None})
    path = folder / 'commands'
    states = {**SERVICES, **(services or {})}
    answers = ''.join(f'{name}) echo {state};; ' for name, state in states.items())
    scripts = {name: f"printf '%s\\n' {shlex.quote(text)}\nexit {code}\n" for name, (text, code) in {**COMMANDS, **(commands or {})}.items() if text is not None}
    scripts['systemctl'] = f'verb=$1\nshift\nfor unit; do case $unit in {answers} *) echo inactive;; esac; done\nexit 3\n'
    for name, script in scripts.items():
        rfm.script(path / name, script)
    node = Node(root=str(folder), path=str(path), packages=['libc6', 'slurmd'], services=['munge', 'slurmd'], variables=['PLUMB_GATE'], mounts=['/', '/scratch'])
    return facts.groups(node)


def seen(*args):
    '''What is read of such a node, here: seventeen forks of a process as large as that of the tests take long.'''
    found = reading.Found()
    for one in (one for group in made(*args) for one in group.read()):
        found.add(one)
    return found


@pytest.fixture(scope='module')
def good(tmp_path_factory):
    '''Expectations recorded from the good node, which is read in processes.'''
    os.environ['PLUMB_GATE'] = 'here'
    try:
        return record.expectations('epyc', reading.read(made(tmp_path_factory.mktemp('good')), 10))
    finally:
        del os.environ['PLUMB_GATE']


@pytest.fixture(autouse=True)
def variable(monkeypatch):
    monkeypatch.setenv('PLUMB_GATE', 'here')


def without(content, *names):
    '''Expectations without those that another process or machine decides.'''
    return {**content, 'expectations': {name: one for name, one in content['expectations'].items() if not name.startswith(names)}}


#: What of a recording is this machine's: its clock and its limits.
MACHINE = ('time.synchronised', 'limit.', 'mount./.free', 'mount./.full', 'system.architecture', 'mount./scratch.free')


@pytest.mark.parametrize('others', [{}, {'proc/77/comm': 'gate 0:9', 'proc/77/status': f'Uid:\t{os.getuid()}\t0\t0\t0\nSigPnd:\t0000000000000000'},
                                    {'proc/77/comm': 'gate 0:9', 'proc/77/status': f'Uid:\t{os.getuid() + 1}\t0\t0\t0\nSigPnd:\t0000000000000100'}])
def test_a_good_node_is_as_expected_whatever_other_gates_and_users_run(others, good, tmp_path):
    outcome = gate.judge([without(good, *MACHINE)], seen(tmp_path, others))
    assert (outcome.code, outcome.differences) == (gate.OK, []), outcome.line
    assert outcome.line.startswith('plumbline gate: ok: epyc, ') and outcome.looked_at > 50


#: Of a process that was killed, and has not ended.
WAITS = f'Name:\tgate 0:9\nState:\tD (disk sleep)\nUid:\t{os.getuid()}\t0\t0\t0\nSigPnd:\t0000000000000100\n'

#: What has happened to a node -> (files, commands, services, severity, what is said).
DIFFERENCES = {
    'kernel': ({'proc/sys/kernel/osrelease': '5.14.0-362'}, {}, {}, 'warn', 'kernel.release is 5.14.0-362, expected 5.14.0-427'),
    'kernel options': ({'proc/cmdline': 'root=UUID=2 mitigations=off'}, {}, {}, 'warn', 'kernel.options is mitigations=off, expected mitigations=auto'),
    'distribution': ({'etc/os-release': 'PRETTY_NAME="Rocky 8"'}, {}, {}, 'warn', 'system.distribution is Rocky 8, expected Rocky 9'),
    'microcode': ({'proc/cpuinfo': GOOD['proc/cpuinfo'].replace('0xa1', '0xa0', 1)}, {}, {}, 'warn', 'cpu.microcode is 0xa0, 0xa1, expected 0xa1'),
    'a core': ({f'{CPU}/online': '0'}, {}, {}, 'drain', 'cpu.online is 0, expected 0-1'),
    'governor of one core': ({f'{CPU}/cpu1/cpufreq/scaling_governor': 'powersave'}, {}, {}, 'warn', 'cpu.governor is performance, powersave, expected performance'),
    'driver': ({f'{CPU}/cpu{n}/cpufreq/scaling_driver': 'amd-pstate' for n in (0, 1)}, {}, {}, 'warn', 'cpu.driver is amd-pstate, expected acpi-cpufreq'),
    'capped clock': ({f'{CPU}/cpu1/cpufreq/scaling_max_freq': '1500000'}, {}, {}, 'warn', 'cpu.highest_clock is 1500000, 3700000, expected 3700000'),
    'boost': ({f'{CPU}/cpufreq/boost': '0'}, {}, {}, 'warn', 'cpu.boost is off, expected on'),
    'SMT': ({f'{CPU}/smt/control': 'on'}, {}, {}, 'warn', 'cpu.smt is on, expected off'),
    'mitigations': ({f'{CPU}/vulnerabilities/spectre_v2': 'Vulnerable'}, {}, {}, 'warn', 'mitigation.spectre_v2 is Vulnerable, expected Mitigation: IBRS'),
    'memory': ({'proc/meminfo': 'MemTotal: 87500000 kB\nSwapTotal: 0 kB'}, {}, {}, 'drain', 'memory.total is 83.4 GiB, expected 94.4 GiB to 96.3 GiB'),
    'huge pages': ({'sys/kernel/mm/transparent_hugepage/enabled': 'always madvise [never]'}, {}, {}, 'warn', 'memory.transparent_huge_pages is never, expected madvise'),
    'hugetlb': ({'sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '4000'}, {}, {}, 'warn', 'memory.huge_pages.2048kB is 4000, expected 0'),
    'NUMA nodes': ({f'{NUMA}/online': '0'}, {}, {}, 'drain', 'numa.nodes is 0, expected 0-1'),
    'memory of a NUMA node': ({f'{NUMA}/node1/meminfo': 'Node 1 MemTotal: 25000000 kB'}, {}, {}, 'drain', 'numa.memory.1 is 23.8 GiB, expected 47.2 GiB to 48.2 GiB'),
    'balancing': ({'proc/sys/kernel/numa_balancing': '1'}, {}, {}, 'warn', 'numa.balancing is 1, expected 0'),
    'distance': ({f'{NUMA}/node1/distance': '12 10'}, {}, {}, 'warn', 'numa.distance.1 is 12 10, expected 32 10'),
    'corrected errors': ({f'{EDAC}/mc0/ce_count': '70000'}, {}, {}, 'warn', 'ecc.corrected is 70000, expected at most 1000'),
    'uncorrected errors': ({f'{EDAC}/mc0/ue_count': '1'}, {}, {}, 'drain', 'ecc.uncorrected is 1, expected at most 0'),
    'machine checks': ({'proc/interrupts': '  DFR:  1  1  Deferred Error APIC interrupts\n  MCE:  0  2  Machine check exceptions\n  MCP:  7  7  Machine check polls'}, {}, {}, 'drain', 'machine_check.exceptions is 4, expected at most 0'),
    'firmware': ({'sys/class/dmi/id/bios_version': '1.4'}, {}, {}, 'warn', 'firmware.version is 1.4, expected 1.6'),
    'link down': ({'sys/class/net/eth0/operstate': 'down'}, {}, {}, 'drain', 'net.eth0.state is down, expected up'),
    'link slow': ({'sys/class/net/eth0/speed': '10000'}, {}, {}, 'drain', 'net.eth0.speed is 10000, expected 25000'),
    'no link': ({name: None for name in GOOD if name.startswith('sys/class/net/eth0')}, {}, {}, 'drain', 'net.eth0.state: not there, expected up'),
    'InfiniBand down': ({f'{PORT}/state': '1: DOWN'}, {}, {}, 'drain', 'ib.mlx5_0.1.state is DOWN, expected ACTIVE'),
    'InfiniBand slow': ({f'{PORT}/rate': '100 Gb/sec (2X HDR)'}, {}, {}, 'drain', 'ib.mlx5_0.1.rate is 100 Gb/sec (2X HDR), expected 200 Gb/sec (4X HDR)'),
    'a module': ({}, {'dmidecode': (modules(('64 GB', 4800), ('No Module Installed', 0)), 0)}, {}, 'drain', 'dimm.count is 1, expected 2'),
    'a slow module': ({}, {'dmidecode': (modules(('64 GB', 4800), ('64 GB', 4400)), 0)}, {}, 'drain', 'dimm.speeds is 1 x 4400 MT/s, 1 x 4800 MT/s, expected 2 x 4800 MT/s'),
    'news in the event log': ({}, {'ipmitool': ('Entries : 13\nPercent Used : 2%', 0)}, {}, 'note', 'sel.entries is 13, expected at most 12'),
    'event log full': ({}, {'ipmitool': ('Entries : 700\nPercent Used : 97%', 0)}, {}, 'note', 'sel.percent_used is 97, expected at most 90'),
    'a package': ({}, {'dpkg-query': ('slurmd 22.05 installed\nlibc6 2.36 installed', 0)}, {}, 'warn', 'package.slurmd is 22.05, expected 23.02'),
    'no package': ({}, {'dpkg-query': ('slurmd 23.02 not-installed\nlibc6 2.36 installed', 1)}, {}, 'warn', 'package.slurmd: not there, expected 23.02'),
    'a service': ({}, {}, {'munge': 'failed'}, 'drain', 'service.munge is failed, expected active or reloading'),
    'clocks apart': ({}, {'chronyc': ('System time     : 3.200000 seconds fast of NTP time', 0)}, {}, 'warn', 'time.offset is 3.2, expected at most 0.01'),
    'not mounted': ({'proc/self/mountinfo': GOOD['proc/self/mountinfo'].splitlines()[0]}, {}, {}, 'drain', 'mount./scratch.type: not there, expected nfs4'),
    'mounted otherwise': ({'proc/self/mountinfo': GOOD['proc/self/mountinfo'].replace('server:', 'other:')}, {}, {}, 'warn', 'mount./scratch.device is other:/scratch, expected server:/scratch'),
    'stale': ({'scratch/file': None}, {}, {}, 'drain', 'mount./scratch.answers is No such file or directory, expected at most 2'),
    'read-only': ({'proc/self/mountinfo': GOOD['proc/self/mountinfo'].replace('- nfs4 server:/scratch rw', '- nfs4 server:/scratch ro')}, {}, {}, 'drain', 'mount./scratch.writable is no, expected yes'),
    'a disk that failed': ({'proc/self/mountinfo': GOOD['proc/self/mountinfo'].replace('/dev/sda1 rw', '/dev/sda1 rw,emergency_ro')}, {}, {}, 'drain', 'mount./.writable is no, expected yes'),
    'a disk that was shut down': ({'proc/self/mountinfo': GOOD['proc/self/mountinfo'].replace('/dev/sda1 rw', '/dev/sda1 rw,shutdown')}, {}, {}, 'drain', 'mount./.writable is no, expected yes'),
    'automount that fails': ({'scratch/file': None, 'proc/self/mountinfo': GOOD['proc/self/mountinfo'].replace('nfs4', 'autofs')}, {}, {}, 'drain', 'mount./scratch.answers is No such file or directory, expected at most 2'),
    'hung': ({'proc/77/comm': 'gate 0:9', 'proc/77/status': WAITS}, {}, {}, 'drain', 'mount /scratch: process 77 of an earlier gate still waits for it'),
    'clock set free': ({}, {'chronyc': ('System time     : 0.000000 seconds fast of NTP time\nLeap status     : Not synchronised', 0)}, {}, 'warn', 'time.offset not read: chronyc tracking: not synchronised'),
    'counts that cannot be read': ({f'{EDAC}/mc0/ue_count': None}, {}, {}, 'warn', 'ecc.uncorrected not read: ue_count of 1 of 1 controllers cannot be read'),
    'no packages': ({}, {'dpkg-query': ('', 1)}, {}, 'warn', 'package.slurmd not read: dpkg-query knows none of them'),
    'allowed CPUs': ({'proc/self/status': 'Cpus_allowed_list:\t1'}, {}, {}, 'note', 'cgroup.allowed_cpus is 1, expected 0-1'),
    'quota': ({'sys/fs/cgroup/cpu.max': '50000 100000'}, {}, {}, 'note', 'cgroup.cpu_quota is 0.5 CPUs, expected none'),
}


@pytest.mark.slow
@pytest.mark.parametrize('what', DIFFERENCES)
def test_a_difference_of_each_kind_is_named_with_its_severity(what, good, tmp_path):
    changed, commands, services, severity, text = DIFFERENCES[what]
    outcome = gate.judge([without(good, *MACHINE)], seen(tmp_path, changed, commands, services))
    told = {one.text: one.severity for one in outcome.differences}
    assert told.get(text) == severity, told
    assert outcome.code == compare.SEVERITIES.index(max(told.values(), key=compare.SEVERITIES.index))
    if severity != 'note':
        assert outcome.line.startswith(f'plumbline gate: {gate.WORDS[outcome.code]}: ')


@pytest.mark.parametrize('changed, milder, code', [
    ({'proc/self/mountinfo': GOOD['proc/self/mountinfo'].splitlines()[0]}, 'type', gate.DRAIN),
    ({'proc/77/comm': 'gate 0:9', 'proc/77/status': WAITS}, 'answers', gate.WARN)])
def test_a_line_that_stands_for_others_hides_none_that_is_worse(changed, milder, code, good, tmp_path):
    good['expectations'][f'mount./scratch.{milder}']['severity'] = 'note'
    assert gate.judge([without(good, *MACHINE)], seen(tmp_path, changed)).code == code


def test_a_variable_and_a_limit_that_differ_are_named(good, tmp_path, monkeypatch):
    monkeypatch.setenv('PLUMB_GATE', 'elsewhere\x1b[2J')
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (4096, before[1]))
    try:
        outcome = gate.judge([{**good, 'expectations': {'environment.PLUMB_GATE': good['expectations']['environment.PLUMB_GATE'],
                                                        'limit.core': {'is': 'unlimited', 'severity': 'drain'}}}], seen(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    assert outcome.line == 'plumbline gate: drain: limit.core is 4096, expected unlimited; environment.PLUMB_GATE is elsewhere?[2J, expected here'


def test_what_is_not_there_to_read_with_is_said_and_no_pass(good, tmp_path):
    commands = dict.fromkeys(('dmidecode', 'ipmitool', 'chronyc', 'dpkg-query'), (None, 0))
    outcome = gate.judge([without(good, *MACHINE)], seen(tmp_path, {name: None for name in GOOD if name.startswith(EDAC)}, commands))
    told = {one.text for one in outcome.differences if one.unread}
    assert {'dimm.count not read: dmidecode is not there', 'time.offset not read: chronyc is not there', 'sel.percent_used not read: ipmitool is not there',
            'package.slurmd not read: neither dpkg-query nor rpm is there',
            f'ecc.uncorrected not read: no controller in /{EDAC}: the driver is not loaded, or the machine is virtual'} <= told
    assert outcome.code == gate.WARN and not [one for one in outcome.differences if one.severity == 'drain']


def test_another_kind_of_node_is_unknown_and_the_first_that_fits_judges(good, tmp_path):
    other = {**without(good, *MACHINE), 'kind': 'xeon', 'of': {'cpu.model': 'Xeon'}}
    found = seen(tmp_path)
    outcome = gate.judge([other], found)
    assert (outcome.code, outcome.line) == (gate.UNKNOWN, 'plumbline gate: unknown: not a xeon: of Xeon, this is EPYC 9654')
    assert gate.judge([other, without(good, *MACHINE)], found).kind == 'epyc'
    untold = gate.judge([{**other, 'of': {'system.serial': '1'}}], found)
    assert untold.code == gate.UNKNOWN and 'system.serial not read' in untold.line


#: What a second socket with the second CPU changes of the good node; and its loss.
TWO_SOCKETS = {f'{CPU}/cpu1/topology/physical_package_id': '1'}
DEAD_SOCKET = {**{name: None for name in GOOD if name.startswith((f'{CPU}/cpu1/', f'{NUMA}/node1/'))}, f'{CPU}/online': '0', f'{NUMA}/online': '0',
               'proc/meminfo': 'MemTotal: 50000000 kB\nSwapTotal: 0 kB'}


@pytest.mark.parametrize('recorded_before', [False, True])
def test_a_node_that_has_lost_a_socket_is_drained(recorded_before, tmp_path):
    expected = without(record.expectations('epyc', seen(tmp_path / 'two', TWO_SOCKETS)), *MACHINE)
    if recorded_before:     # when the number of sockets told the kind
        expected = {**without(expected, 'cpu.sockets'), 'of': {**expected['of'], 'cpu.sockets': 2}}
    outcome = gate.judge([expected], seen(tmp_path / 'one', DEAD_SOCKET))
    assert outcome.code == gate.DRAIN and 'cpu.online is 0, expected 0-1' in outcome.line, outcome.line
    assert ('cpu.sockets is 1, expected 2' in {one.text for one in outcome.differences}) != recorded_before
    again = record.expectations('epyc', seen(tmp_path / 'again', TWO_SOCKETS), expected)
    assert again['of'] == {'cpu.model': 'EPYC 9654', 'system.product': 'R1'}
    assert again['expectations']['cpu.sockets'] == {'is': 2, 'severity': 'drain', 'source': f'/{CPU}/cpu*/topology/physical_package_id'}


def test_kinds_that_differ_by_their_sockets_alone_are_told_apart(good, tmp_path):
    two = without(record.expectations('two', seen(tmp_path / 'two', TWO_SOCKETS)), *MACHINE)
    one = without(good, *MACHINE)
    for kinds in ([one, two], [two, one]):
        assert gate.judge(kinds, seen(tmp_path / str(kinds.index(two)), TWO_SOCKETS)).kind == 'two'


def test_where_nothing_can_be_read_nothing_is_known(good):
    found = reading.Found()
    found.add(reading.Missing('cpu', 'gone'))
    assert gate.judge([good], found)[:2] == (gate.UNKNOWN, 'plumbline gate: unknown: nothing could be read: gone')
    expected = {f'net.eth{n}.state': {'is': 'up', 'severity': 'drain'} for n in range(20)}
    found = reading.Found()
    for n in range(20):
        found.add(reading.Fact(f'net.eth{n}.state', 'down', ''))
    line = gate.judge([{'kind': 'k', 'of': {}, 'expectations': expected}], found).line
    assert len(line) < 200 and line.endswith('; and 17 more'), line


# --- reading ----------------------------------------------------------------------------------------------------------

def group(name, read, seconds=20):
    return reading.Group(name, (name,), read, seconds)


@pytest.mark.slow
def test_a_reader_that_hangs_is_left_and_the_others_are_read(tmp_path):
    os.mkfifo(tmp_path / 'fifo')

    def hangs():
        yield reading.Fact('hung.first', 1, '')
        open(tmp_path / 'fifo').read()
    begun = time.monotonic()
    found = reading.read([group('hung', hangs, 3), group('well', lambda: iter([reading.Fact('well.a', 'x', 'here')]))], 20)
    assert time.monotonic() - begun < 10
    assert found.facts['well.a'].value == 'x' and found.facts['hung.first'].value == 1
    missing = found.why_missing('hung.second')
    assert (missing.why, missing.late) == ('no answer in 3 s', True) and found.left_behind == []


def test_errors_and_ends_of_readers_are_said(monkeypatch):
    def fails():
        raise RuntimeError('no\nsuch thing')
        yield
    found = reading.read([group('wrong', fails), group('ended', lambda: iter([os._exit(3)]))], 20)
    assert found.why_missing('wrong.x').why == 'RuntimeError: no such thing'
    assert found.why_missing('ended').why == 'the process that reads it ended'

    def refuse():
        raise BlockingIOError(11, 'Resource temporarily unavailable')
    monkeypatch.setattr(os, 'fork', refuse)
    found = reading.read([group('g', lambda: iter(()))], 1)
    assert found.why_missing('g.x').why == 'no process can be started: Resource temporarily unavailable'


def test_an_answer_that_lies_there_is_in_time_however_late_it_is_looked_for(monkeypatch):
    fork, children = os.fork, []

    def held_up():
        if children:
            os.waitid(os.P_PID, children[0], os.WEXITED | os.WNOWAIT)
            time.sleep(0.3)
        children.append(fork())
        return children[-1]
    monkeypatch.setattr(os, 'fork', held_up)
    found = reading.read([group('a', lambda: iter([reading.Fact('a.x', 1, '')]), 0.2), group('b', lambda: iter(()))], 20)
    assert (list(found.facts), found.missing) == (['a.x'], [])


# --- the file -----------------------------------------------------------------------------------------------------------

RELEASE = Path('/proc/sys/kernel/osrelease').read_text().strip()
AS_IT_IS = {'is': RELEASE, 'severity': 'drain'}
PYTHON = next(path for path in ('/usr/bin/python3', sys.executable) if os.path.exists(path))


def content_of(expectations, of=None, kind='here'):
    return {'schema': 1, 'kind': kind, 'of': of or {'system.architecture': os.uname().machine}, 'expectations': expectations}


@pytest.fixture
def elsewhere():
    '''A folder that all may read: pytest's are closed to others.'''
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def written(folder, expectations, seconds=5, name='gate', **more):
    pack.write(folder / name, [content_of(expectations, **more)], seconds, PYTHON)
    return folder / name


def run(*command, **more):
    '''A command in the root folder, without any environment.'''
    return subprocess.run([*map(str, command)], cwd='/', env={}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **more)


def test_the_command_writes_a_file_that_runs_alone_and_moved_as_anybody(elsewhere):
    user = rfm.ordinary_user() if os.geteuid() == 0 else []
    (elsewhere / 'here.yaml').write_text(record.text({**content_of({'kernel.release': AS_IT_IS}), 'recorded': {}, 'not_read': {}}))
    done = rfm.ended([*rfm.PLUMBLINE, 'gate', 'write', elsewhere / 'gate', '--expectations', elsewhere / 'here.yaml', '--python', PYTHON])
    assert done.returncode == 0 and done.stdout.startswith(f"{elsewhere / 'gate'}: here; "), done.stdout + done.stderr
    assert (elsewhere / 'gate').read_bytes().startswith(f'#!{PYTHON} -IS\n'.encode()) and stat.S_IMODE((elsewhere / 'gate').stat().st_mode) == 0o755
    (elsewhere / 'there').mkdir(mode=0o755)
    os.rename(elsewhere / 'gate', elsewhere / 'there/g')
    ran = run(*user, elsewhere / 'there/g')
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, 'plumbline gate: ok: here, 1 of 1 as expected\n', '')


@pytest.mark.parametrize('expectations, code, line', [
    ({'kernel.release': AS_IT_IS}, 0, 'ok: here, 1 of 1 as expected'),
    ({'kernel.release': {'is': '1.0', 'severity': 'note'}}, 0, 'ok: here, 0 of 1 as expected, 1 noted'),
    ({'kernel.release': {'is': '1.0', 'severity': 'warn'}}, 1, f'warn: kernel.release is {RELEASE}, expected 1.0'),
    ({'kernel.release': {'is': '1.0', 'severity': 'drain'}}, 2, f'drain: kernel.release is {RELEASE}, expected 1.0'),
    ({'kernel.release': {'one_of': ['1.0', RELEASE], 'severity': 'drain'}, 'memory.total': {'from': 1, 'severity': 'drain'},
      'system.architecture': {'matches': '[a-z]', 'severity': 'drain'}}, 0, 'ok: here, 3 of 3 as expected'),
    ({'mount./no/such.type': {'is': 'nfs', 'severity': 'drain'}, 'mount./no/such.answers': {'to': 1, 'severity': 'drain'}, 'kernel.release': AS_IT_IS},
     2, 'drain: mount./no/such.type: not there, expected nfs'),
    ({'environment.NO_SUCH': {'is': 'x', 'severity': 'warn'}, 'kernel.release': AS_IT_IS}, 1, 'warn: environment.NO_SUCH: not there, expected x')])
def test_exit_codes(expectations, code, line, tmp_path):
    ran = run(written(tmp_path, expectations))
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, f'plumbline gate: {line}\n', '')


def test_unknown_is_neither_well_nor_drained(tmp_path):
    file = written(tmp_path, {'kernel.release': AS_IT_IS}, of={'cpu.model': 'another one'})
    ran = run(file)
    assert ran.returncode == 3 and ran.stdout.startswith('plumbline gate: unknown: not a here: of another one, this is ')
    for words, said in ((['--seconds', '99'], '--seconds 99: give 30 at most'), (['--seconds', 'x'], 'invalid float'), (['--drain'], 'unrecognized arguments')):
        ran = run(file, *words)
        assert ran.returncode == 3 and said in ran.stdout and 'Traceback' not in ran.stdout + ran.stderr


@pytest.mark.parametrize('before, after, said', [
    (b'{"schema": 1, "seconds"', b'{"schema": 2, "seconds"', 'expectations of schema 2, this gate knows 1'),
    (b'{"schema": 1, "seconds"', b'["schema": 1, "seconds"', 'JSONDecodeError'),
    (b'"kinds"', b'"kings"', "KeyError: 'kinds'"),
    (b'def main(held', b'def mian(held', 'this file is damaged: ImportError')])
def test_a_file_that_is_damaged_or_of_another_form_knows_nothing(before, after, said, tmp_path):
    file = written(tmp_path, {'kernel.release': AS_IT_IS})
    data = file.read_bytes()
    assert data.count(before) == 1
    file.write_bytes(data.replace(before, after))
    ran = run(file)
    assert ran.returncode == 3 and said in ran.stdout and ran.stdout.startswith('plumbline gate: unknown: ') and not ran.stderr


def test_json_has_all_facts_with_their_sources(tmp_path):
    ran = run(written(tmp_path, {'kernel.release': {'is': '1.0', 'severity': 'warn'}, 'dimm.count': {'is': 1, 'severity': 'note'}}), '--json', '--path', tmp_path)
    told = json.loads(ran.stdout)
    assert told['exit_code'] == ran.returncode == 1 and told['facts']['kernel.release'] == {'value': RELEASE, 'source': '/proc/sys/kernel/osrelease'}
    assert told['not_read'] == [{'fact': 'dimm', 'why': 'dmidecode is not there'}] and told['kind'] == 'here'
    ran = run(written(tmp_path, {'kernel.release': AS_IT_IS, 'dimm.count': {'is': 1, 'severity': 'note'}}), '--verbose', '--path', tmp_path)
    assert ran.returncode == 0 and 'note  dimm.count not read: dmidecode is not there\n' in ran.stdout


@pytest.mark.slow
def test_it_ends_in_time_where_nobody_reads_what_it_says(tmp_path):
    file = written(tmp_path, {'environment.BIG': {'is': '', 'severity': 'note'}, 'kernel.release': {'is': '1.0', 'severity': 'drain'}})
    reader, writer = os.pipe()
    try:
        process = subprocess.Popen([file, '--json', '--seconds', '2'], env={'BIG': 'x' * 100_000}, stdout=writer)
        assert process.wait(30) == 2        # what it has found is not forgotten
    finally:
        os.close(reader)
        os.close(writer)


def test_ignored_signals_and_closed_streams_do_it_no_harm(tmp_path):
    ran = run('env', '--ignore-signal=CHLD', '--block-signal=ALRM', written(tmp_path, {'kernel.release': {'is': '1.0', 'severity': 'drain'}}))
    assert (ran.returncode, ran.stdout) == (2, f'plumbline gate: drain: kernel.release is {RELEASE}, expected 1.0\n')
    file = written(tmp_path, {'kernel.release': {'is': '1.0', 'severity': 'drain'}})
    assert run('/bin/sh', '-c', f'exec {file} <&- >&- 2>&-').returncode == 2


@pytest.mark.slow
def test_a_hung_file_system_is_named_in_time_and_holds_no_more_processes_of_later_gates(tmp_path):
    (tmp_path / 'home').mkdir()
    with hung(tmp_path / 'home') as path:
        file = written(tmp_path, {f'mount.{path}.answers': {'to': 1, 'severity': 'drain'}, f'mount.{path}.type': {'is': 'fuse', 'severity': 'drain'},
                                  f'mount.{path}.free': {'from': 0.05, 'severity': 'warn'}, 'kernel.release': AS_IT_IS}, seconds=20)
        begun = time.monotonic()
        with ThreadPoolExecutor() as pool:      # they end when nobody holds their output any more
            ran, quick = pool.map(lambda options: run(file, *options), ([], ['--seconds', '2', '--verbose']))
        assert ran.returncode == 2 and time.monotonic() - begun < 20
        assert ran.stdout == f'plumbline gate: drain: mount {path}: no answer in 5 s\n'
        assert quick.returncode == 2 and re.search(r'no answer in [01][. ]', quick.stdout), quick.stdout
        assert f'mount {path}: its process does not end, and was left behind' in quick.stdout
        begun, again = time.monotonic(), run(file)
        found = re.fullmatch(f'plumbline gate: drain: mount {path}: process ([0-9]+) of an earlier gate still waits for it\n', again.stdout)
        assert again.returncode == 2 and found and time.monotonic() - begun < 4, again.stdout
        names = list(map(Node().text, Node().files('/proc/[0-9]*/comm')))
        assert names.count(Node().text(f'/proc/{found[1]}/comm')) == 2      # of the two that began together


def test_a_mount_has_the_time_that_it_may_take(tmp_path, monkeypatch):
    expected = {'mount./home.answers': {'to': 2, 'severity': 'drain'}, 'kernel.release': AS_IT_IS}
    ran = run(written(tmp_path, expected, 3), '--seconds', '0.1')        # a script's, of which whoever wrote the gate knew nothing
    assert (ran.returncode, ran.stdout) == (2, 'plumbline gate: drain: mount./home.answers: not there, expected at most 2\n')
    with pytest.raises(PlumblineError, match='^--seconds 2.5: give 3 to 30: a second more than mounts may take to answer$'):
        written(tmp_path, expected, 2.5)

    def slow(node):
        time.sleep(0.5)
        yield reading.Fact('mount./home.answers', 0.5, '')
    monkeypatch.setattr(facts, 'AT_ONCE', 0.1)
    monkeypatch.setattr(software, 'mount', lambda path: slow)
    assert gate.look([content_of(expected)], 20).line == 'plumbline gate: ok: here, 2 of 2 as expected'


def test_it_is_of_python_3_6_and_the_standard_library():
    package = rfm.REPOSITORY / 'src/plumbline'
    paths = [path for pattern in pack._MODULES for path in package.glob(pattern)]
    assert len(paths) >= 9
    for path in paths:
        tree = ast.parse(path.read_text(), feature_version=(3, 6))
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
            assert all(name.split('.')[0] in sys.stdlib_module_names or name.startswith(('plumbline.gate.packed', 'plumbline.system')) for name in names), path


@pytest.mark.slow
@pytest.mark.parametrize('python', sorted(Path.home().glob('.pyenv/versions/*/bin/python3')) or [Path(PYTHON)], ids=lambda path: path.parts[-3])
def test_other_pythons_run_it(python, tmp_path):
    version = run(python, '-c', 'import sys; print(sys.version_info[:2] >= (3, 6))')
    if version.stdout.strip() != 'True':
        pytest.skip('older than 3.6')
    expectations = {name: {'is': 'x', 'severity': 'note'} for name in (
        'kernel.release', 'cpu.model', 'memory.total', 'numa.nodes', 'ecc.corrected', 'firmware.vendor', 'dimm.count', 'sel.entries', 'net.lo.state',
        'cgroup.cpu_quota', 'package.dpkg', 'service.none', 'time.synchronised', 'limit.memlock', 'environment.HOME', 'mount./.type', 'mount./.answers')}
    ran = run(python, '-IS', written(tmp_path, expectations), '--json')
    told = json.loads(ran.stdout)
    assert ran.returncode == 0 and told['facts']['kernel.release']['value'] == RELEASE and not ran.stderr
    assert not [one for one in told['not_read'] if 'Error' in one['why']], told['not_read']


# --- the file of expectations -----------------------------------------------------------------------------------------------

def test_a_recording_is_valid_has_its_sources_and_is_the_same_again(good, tmp_path):
    record.write(tmp_path / 'epyc.yaml', good)
    read = files.load(tmp_path / 'epyc.yaml')
    assert read == good and record.text(read) == (tmp_path / 'epyc.yaml').read_text()
    assert all(one['source'] for one in read['expectations'].values()) and read['of'] == {'cpu.model': 'EPYC 9654', 'system.product': 'R1'}
    assert read['expectations']['mount./scratch.options']['holds'] == ['hard', 'noatime', 'vers=4.2']       # not the server's address
    assert read['expectations']['mount./scratch.writable']['is'] == 'yes' and 'mount./scratch.full' not in read['expectations']
    assert 'mount./proc.type' not in read['expectations'] and 'limit.processes' not in read['expectations']


def test_all_that_can_be_read_may_be_expected(tmp_path):
    found = seen(tmp_path, {'sys/class/dmi/id/bios_date': '1', 'proc/self/mountinfo': GOOD['proc/self/mountinfo'].replace('nfs4', 'tmpfs')})
    (tmp_path / 'k.yaml').write_text(record.text({**content_of(dict.fromkeys(found.facts, AS_IT_IS)), 'recorded': {}, 'not_read': {}}))
    assert len(files.load(tmp_path / 'k.yaml')['expectations']) > 80
    assert compare.holds('0', {'is': 0}) and compare.holds(2, {'one_of': ['2']}) and compare.holds(2, {'is': 2.0})
    assert not compare.holds('0-1', {'is': 0}) and not compare.holds(['a'], {'is': 'a'})


def test_recording_expects_what_other_nodes_have(tmp_path):
    links = {f'sys/class/net/{name}/{file}': text for name, state in (('enxb03af2b6059f', 'up'), ('eth1', 'down'), ('ib0', 'unknown'))
             for file, text in (('device/vendor', '1'), ('operstate', state), ('mtu', '1500'))}
    found = seen(tmp_path, links, {}, {'munge': 'reloading'})
    content = record.expectations('epyc', found)
    assert {name for name in content['expectations'] if name.startswith('net.')} == {'net.eth0.state', 'net.eth0.speed', 'net.eth0.mtu'}
    assert record.skipped(content, found) == {'net.enxb03af2b6059f': 'named by its own address', 'net.eth1': 'its state is down', 'net.ib0': 'its state is unknown'}
    assert {content['expectations'][f'service.{name}']['one_of'] == ['active', 'reloading'] for name in ('munge', 'slurmd')} == {True}
    # Where sockets start it, it is inactive until somebody logs in, as whoever records has.
    assert not {'ssh', 'sshd'} & set(record.SERVICES)


def test_recording_again_keeps_what_a_person_has_chosen(good, tmp_path):
    before = json.loads(json.dumps(good))
    before['expectations']['kernel.release'] = {'matches': r'5\.14\.', 'severity': 'note', 'source': '/proc/sys/kernel/osrelease'}
    before['expectations']['memory.total'] = {'from': 2**37, 'severity': 'warn', 'source': '/proc/meminfo'}
    again = record.expectations('epyc', seen(tmp_path, {f'{CPU}/smt/control': 'on'}), before)
    assert again['expectations']['kernel.release'] == before['expectations']['kernel.release']
    # The node does not fulfil it: a new one, with the severity that was chosen.
    assert again['expectations']['memory.total']['from'] < 2**37 and again['expectations']['memory.total']['severity'] == 'warn'
    changes = record.unlike(again, before)
    assert 'changed: cpu.smt: on, was off' in changes and len([one for one in changes if not one.startswith('changed: mount')]) == 2, changes


def test_record_and_check_of_this_machine(elsewhere):
    plumbline = [*rfm.PLUMBLINE, 'expectations']
    file = elsewhere / 'this.yaml'
    done = rfm.ended([*plumbline, 'record', 'this', '--output', file, '--variable', 'HOME'])
    assert done.returncode == 0 and f': {file}' in done.stdout, done.stdout + done.stderr
    content = files.load(file)
    assert content['expectations']['kernel.release']['is'] == RELEASE and 'environment.HOME' in content['expectations']
    done = rfm.ended([*plumbline, 'check', file])
    assert done.returncode in (0, 1, 2) and ' facts looked at in ' in done.stdout and 'kernel.release' not in done.stdout, done.stdout + done.stderr
    content['expectations'] = {'kernel.release': {'is': '1.0', 'severity': 'drain'}}
    record.write(file, content)
    done = rfm.ended([*plumbline, 'check', file])
    assert done.returncode == 2 and f'drain kernel.release is {RELEASE}, expected 1.0' in done.stdout
    lost = rfm.ended([*plumbline, 'record', 'this', '--output', file, '--variable', 'NO_SUCH'])
    assert lost.returncode == 2 and lost.stderr == 'plumbline: environment NO_SUCH: not there on this node; nothing is written\n'


def test_recording_says_what_the_node_itself_breaks(tmp_path, monkeypatch):
    '''Else its own gate would warn of it everywhere, and nobody would know why.'''
    found = reading.Found()
    for name, value in (('cpu.model', 'a processor'), ('time.synchronised', 'no')):
        found.add(reading.Fact(name, value, 'made'))
    monkeypatch.setattr(record, 'read', lambda *_: found)
    done = CliRunner().invoke(app, ['expectations', 'record', 'made', '--output', str(tmp_path / 'made.yaml')])
    assert done.exit_code == 0, done.output
    assert [line for line in done.output.splitlines() if line.startswith('not so')] == ['not so on this node: time.synchronised is no, expected yes']


@pytest.mark.parametrize('text, said', [
    ('', 'field (top): None is not of type'), ('- a\n', 'is not of type'), ('a: [', 'not YAML'),
    ('schema: 2\nkind: k\nof: {a.b: x}\nexpectations: {a.b: {is: x, severity: drain}}\n', 'field schema: 1 was expected; 1 is what this Plumbline knows; for a file of a newer one'),
    ('schema: 1\nkind: k\nof: {a.b: x}\nexpectations: {}\n', 'field expectations:'),
    ('schema: 1\nkind: k\nof: {a.b: x}\nexpectations: {a.b: {severity: drain}}\n', 'give severity and is, one_of'),
    ('schema: 1\nkind: k\nof: {a.b: x}\nexpectations: {a.b: {is: x, severity: fatal}}\n', 'drain: no job should run there'),
    ('schema: 1\nkind: k\nof: {a.b: x}\nexpectations: {a.b: {matches: "(", severity: drain}}\n', "matches '(' is no regular expression"),
    ('schema: 1\nkind: k\nof: {cpu.model: x}\nexpectations: {memory.totl: {is: 1, severity: drain}}\n', 'k.yaml: memory.totl: no fact is called so: memory.total?'),
    ('schema: 1\nkind: k\nof: {cpu.modal: x}\nexpectations: {memory.total: {is: 1, severity: drain}}\n', 'k.yaml: cpu.modal: no fact is called so: cpu.model?'),
    ('schema: 1\nkind: k\nof: {a.b: x}\nexpectations: {a.b: {from: 3, to: 2, severity: drain}}\n', 'from 3 is more than to 2')])
def test_a_file_that_is_wrong_is_refused_in_one_line(text, said, tmp_path):
    (tmp_path / 'k.yaml').write_text(text)
    with pytest.raises(PlumblineError) as refused:
        files.load(tmp_path / 'k.yaml')
    assert said in str(refused.value) and '\n' not in str(refused.value)


def test_what_is_wrong_is_one_line_and_unknown(tmp_path):
    missing = rfm.ended([*rfm.PLUMBLINE, 'expectations', 'check', tmp_path / 'no.yaml'])
    assert missing.returncode == 3 and missing.stderr.count('\n') == 1 and 'plumbline expectations record KIND' in missing.stderr
    record.write(tmp_path / 'k.yaml', {**content_of({'kernel.release': AS_IT_IS}), 'recorded': {}, 'not_read': {}})
    record.write(tmp_path / 'm.yaml', {**content_of({'mount./.answers': {'to': 2, 'severity': 'drain'}}), 'recorded': {}, 'not_read': {}})
    short = rfm.ended([*rfm.PLUMBLINE, 'expectations', 'check', tmp_path / 'm.yaml', '--seconds', '2'])
    assert short.returncode == 3 and short.stderr == 'plumbline: --seconds 2: give 3 or more: a second more than mounts may take to answer\n'
    check = [*rfm.PLUMBLINE, 'expectations', 'check', tmp_path / 'k.yaml']
    assert rfm.ended([*check, '--seconds', 'x']).returncode == rfm.ended([*check, '--no-such-option']).returncode == 3
    for buffered in '', '1':
        with open('/dev/full', 'w') as full:
            lost = subprocess.run(list(map(str, check)), stdout=full, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, 'PYTHONUNBUFFERED': buffered})
        assert (lost.returncode, lost.stderr) == (3, 'plumbline: No space left on device: what was said or written is not whole\n')
    for words, said in ((['--python', 'python3'], 'give the absolute path'), (['--seconds', '40'], 'give 1 to 30')):
        done = rfm.ended([*rfm.PLUMBLINE, 'gate', 'write', tmp_path / 'g', '--expectations', tmp_path / 'k.yaml', *words])
        assert done.returncode == 2 and said in done.stderr and not (tmp_path / 'g').exists()
    with pytest.raises(PlumblineError, match='no name of a kind'):
        files.path_of('../k')


def test_the_schema_knows_what_the_gate_compares():
    properties = schemas.validator('expectations').schema['$defs']['expectation']['properties']
    assert set(properties) - {'severity', 'source'} == {'is', 'one_of', 'from', 'to', 'holds', 'matches'} and properties['severity']['enum'][::-1] == list(compare.SEVERITIES)


def test_a_full_disk_of_the_node_drains_it_and_a_full_one_that_nodes_share_does_not(good, tmp_path, monkeypatch):
    monkeypatch.setattr(os, 'statvfs', lambda _: SimpleNamespace(f_blocks=100, f_bavail=0, f_files=0))
    told = {one.text: one.severity for one in gate.judge([good], seen(tmp_path)).differences if one.name.startswith('mount.')}
    assert told == {'mount./.full is yes, expected no': 'drain', **{f'mount.{path}.free is 0, expected at least 0.05': 'warn' for path in ('/', '/scratch')},
                    **{f'mount.{path}.free_files: not there, expected at least 0.05': 'warn' for path in ('/', '/scratch')}}


def test_a_mount_that_is_read_only_on_the_good_node_may_be_so(tmp_path):
    read_only = seen(tmp_path, {'proc/self/mountinfo': GOOD['proc/self/mountinfo'].replace('server:/scratch rw', 'server:/scratch ro')})
    expected = record.expectations('epyc', read_only)['expectations']
    assert 'mount./scratch.writable' not in expected and 'ro' in expected['mount./scratch.options']['holds']
    found = {path: (kind, '', []) for kind, path in (
        ('nfs4', '/home'), ('lustre', '/scratch'), ('xfs', '/'), ('tmpfs', '/tmp'), ('tmpfs', '/dev/shm'), ('proc', '/proc'), ('overlay', '/x'),
        ('tmpfs', '/run/user/0'), ('fuse', '/cvmfs'), ('autofs', '/users'), ('nfs4', '/users/a/b'))}
    assert {path for path in found if software.worth_recording(path, found)} == {'/home', '/scratch', '/', '/tmp', '/cvmfs'}


# --- the check ------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def checked(built_already, tmp_path):
    '''Function (expectations or None) -> (the workplace, the test case) of the check ``expectations`` with such a file.'''
    def run_check(expectations, of=None, extras=None):
        config = tmp_path / 'site.py'
        config.write_text((rfm.GUARDS / 'config.py').read_text().replace("'name': 'cpu',", f"'name': 'cpu', 'extras': {extras or {}},"))
        place = rfm.Workplace(tmp_path / 'place', built_already, config, PLUMBLINE_HOME=tmp_path / 'home')
        if expectations:
            record.write(tmp_path / 'home/config/expectations/made-cpu.yaml', {**content_of(expectations, of, 'made-cpu'), 'recorded': {}, 'not_read': {}})
        done = place.reframe('-r', '-n', 'expectations', checks=rfm.REPOSITORY / 'checks/site')
        case, = done.cases().values()
        return place, case
    return run_check


def test_a_node_that_is_as_expected_passes_and_what_differs_a_little_is_noted(checked):
    _, case = checked({'kernel.release': AS_IT_IS, 'system.architecture': {'is': 'cray', 'severity': 'warn'}})
    assert case['result'] == 'pass', case['fail_reason']
    metric, = case['plumbline']['metrics']
    assert (metric['name'], metric['value'], metric['verdict']) == ('as_expected', 1.0, 'PASS')
    assert [one['note'] for one in case['plumbline']['noted']] == case['plumbline']['notes'] == [f'system.architecture is {os.uname().machine}, expected cray']


def test_a_node_that_is_not_fails_and_the_report_names_the_difference(checked):
    place, case = checked({'kernel.release': {'is': '1.0', 'severity': 'drain'}})
    assert case['result'] == 'fail' and f'is not as expected: kernel.release is {RELEASE}, expected 1.0 (made-cpu.yaml)' in case['fail_reason']
    said = place.judge()
    text = ' '.join(said.out.split())
    assert said.code == 1 and 'The node is not as a node of its kind must be' in text and f'kernel.release is {RELEASE}, expected 1.0' in text


def test_what_is_worth_a_drain_and_could_not_be_read_is_no_pass(checked):
    unread = {'is': '1', 'severity': 'drain'}
    place, case = checked({'kernel.release': AS_IT_IS, 'package.plumbline-none': unread, 'environment.HOME': {**unread, 'severity': 'note'}})
    assert [metric['verdict'] for metric in case['plumbline']['metrics']] == ['NO REFERENCE'] and 'plumbline-none' not in str(case['plumbline']['notes'])
    said = place.judge()
    text = ' '.join(said.out.split())
    assert said.code == 3 and 'NOT JUDGED: expectations' in text and 'package.plumbline-none not read: ' in text, said.out
    assert 'run as root, or record what this user can read: plumbline expectations record made-cpu' in text


def test_without_expectations_the_check_is_skipped_unless_the_site_names_them(checked):
    place, case = checked(None, extras={'expectations': 'cpu.yaml'})
    said = place.judge()
    skipped, = case['plumbline']['skipped']
    assert skipped['recorded'] == 1 and said.code == 2      # beside what is measured it is 3, as in the test above
    assert "/cpu.yaml.yaml is not there; the extra 'expectations' names a kind of node" in ' '.join(said.out.split()), said.out
    _, case = checked(None)
    assert case['result'] == 'skip'
    skipped, = case['plumbline']['skipped']
    assert skipped['reason'].endswith('/config/expectations/made-cpu.yaml is not there; on a good node: plumbline expectations record made-cpu')


def test_expectations_of_another_kind_of_node_are_no_pass(checked):
    _, case = checked({'kernel.release': AS_IT_IS}, of={'cpu.model': 'another one'})
    assert case['result'] == 'fail' and 'made-cpu.yaml cannot be checked on node' in case['fail_reason'] and 'not a made-cpu: of another one' in case['fail_reason']


@pytest.mark.parametrize('states, fact, missing', [
    (('activating', 'activating', 'active'), 'active', None), (('deactivating', 'inactive'), 'inactive', None),
    (('activating',), None, 'is activating'), (('activating', 'activating', 'activating', 'StateChangeTimestampMonotonic=1'), 'failing', None),
    (('activating', 'activating', 'activating', 'SubState=auto-restart'), 'failing', None)])
def test_a_service_that_starts_is_waited_for_and_drains_nothing(monkeypatch, states, fact, missing):
    left = list(states)
    monkeypatch.setattr(software, '_STARTS', (0, 0))
    node = SimpleNamespace(services=['tuned'], ask=lambda *words, codes=(0,): (left.pop(0) if len(left) > 1 else left[0], None))
    one, = software.services(node)
    assert one.prefix == 'service.tuned' and one.why == missing if missing else (one.name, one.value) == ('service.tuned', fact)
