'''Facts of the system's software: kernel, packages, services, time, limits, environment and mounts, likewise.'''

import ctypes
import os
import re
import resource
import signal
import time

from plumbline.gate.packed.node import known, of_file
from plumbline.gate.packed.reading import Fact, Missing

#: Of the kernel's command line, what differs from node to node.
_OF_THE_NODE = ('BOOT_IMAGE=', 'root=', 'initrd=', 'resume=', 'ip=', 'BOOTIF=', 'rd.')
_OF_THE_START = {'ro', 'rw', 'quiet', 'splash'}

#: File systems without files of anybody's: of the kernel, and of containers.
_OF_THE_KERNEL = {'autofs', 'binfmt_misc', 'bpf', 'cgroup', 'cgroup2', 'configfs', 'debugfs', 'devpts', 'devtmpfs', 'efivarfs', 'fusectl',
                  'hugetlbfs', 'mqueue', 'nsfs', 'overlay', 'proc', 'pstore', 'ramfs', 'rpc_pipefs', 'securityfs', 'selinuxfs', 'squashfs',
                  'sysfs', 'tracefs'}


#: Options of a mount that takes no data, by intent or after an error of its disk: newer kernels leave ``rw`` beside the last two.
_READ_ONLY = {'ro', 'emergency_ro', 'shutdown'}


def kernel(node):
    yield from of_file(node, 'kernel.release', '/proc/sys/kernel/osrelease')
    yield from of_file(node, 'kernel.options', '/proc/cmdline', lambda line: [
        word for word in line.split() if not (word.startswith(_OF_THE_NODE) or word in _OF_THE_START)])
    yield Fact('system.architecture', os.uname().machine, 'uname')
    name = re.search(r'^PRETTY_NAME="?(.*?)"?$', node.text('/etc/os-release') or '', re.MULTILINE)
    yield known('system.distribution', name and name.group(1), '/etc/os-release')


def packages(node):
    '''Versions of those that are asked for; dpkg's and rpm's databases are asked through their own commands.'''
    if not node.packages:
        return
    for command, words in (('dpkg-query', ['-W', '-f=${Package} ${Version} ${db:Status-Status}\\n']),
                           ('rpm', ['-q', '--qf', '%{NAME} %{VERSION}-%{RELEASE} installed\\n'])):
        if node.command(command) is None:
            continue
        # Both fail where one of the packages is not installed, and tell of the others.
        said, missing = node.ask('package', command, *words, *node.packages, codes=(0, *range(1, 100)))
        if missing:
            yield missing
            return
        found = {}   # type: dict
        for name, version, state in (line.split() for line in said.splitlines() if len(line.split()) == 3):
            if state == 'installed' and name in node.packages:
                found.setdefault(name, []).append(version)
        if not found:
            yield Missing('package', f'{command} knows none of them')
        for name, versions in found.items():
            yield Fact(f'package.{name}', ', '.join(sorted(set(versions))), command)
        return
    yield Missing('package', 'neither dpkg-query nor rpm is there')


#: What a service is for a moment, as after the node has booted, and the seconds that it is waited for.
_CHANGING, _STARTS = {'activating', 'deactivating', 'refreshing'}, (0.5, 1.5)

#: Seconds after which what starts hangs; systemd's own limit is 90.
_LONGEST_START = 300


def services(node):
    if not node.services:
        return
    for wait in (*_STARTS, None):
        # 3 and 4: some are not active, some are not there; 1: there is no systemd to ask.
        said, missing = node.ask('service', 'systemctl', 'is-active', *node.services, codes=(0, 3, 4))
        states = said.splitlines() if said else []
        if missing or len(states) != len(node.services):
            yield missing or Missing('service', f"systemctl: {states[-1] if states else 'it says nothing'}")
            return
        if wait is None or not _CHANGING.intersection(states):
            break
        time.sleep(wait)
    for name, state in zip(node.services, states):
        source = f'systemctl is-active {name}'
        if state in _CHANGING:      # what fails and is started again says so, too, and what hangs
            said, _ = node.ask('service', 'systemctl', 'show', '--property=SubState,StateChangeTimestampMonotonic', name)
            since = re.search(r'Monotonic=([0-9]+)', said or '')
            hangs = since and time.clock_gettime(time.CLOCK_MONOTONIC) - 1e-6 * int(since.group(1)) > _LONGEST_START
            yield Fact(f'service.{name}', 'failing', source) if hangs or 'auto-restart' in (said or '') else Missing(f'service.{name}', f'is {state}')
        else:
            yield Fact(f'service.{name}', state, source)


class _Timex(ctypes.Structure):
    '''struct timex of Linux on 64 bits (adjtimex(2)).'''
    _fields_ = [('modes', ctypes.c_uint), ('offset', ctypes.c_long), ('freq', ctypes.c_long), ('maxerror', ctypes.c_long),
                ('esterror', ctypes.c_long), ('status', ctypes.c_int), ('rest', ctypes.c_char * 512)]


_STA_UNSYNC = 0x40


def clock(node):
    '''What the kernel knows of its clock; the offset from the sources of time knows chrony alone.'''
    told = _Timex(modes=0)
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(told)) < 0:
        yield Missing('time', f'adjtimex: {os.strerror(ctypes.get_errno())}')
    else:
        yield Fact('time.synchronised', 'no' if told.status & _STA_UNSYNC else 'yes', 'adjtimex')
        yield Fact('time.error_bound', told.maxerror * 1e-6, 'adjtimex')
    said, missing = node.ask('time.offset', 'chronyc', '-n', 'tracking')
    if missing:
        yield missing
        return
    offset = re.search(r'System time\s*:\s*(\d+\.?\d*) seconds', said)
    if 'Not synchronised' in said:      # which calls the offset 0
        yield Missing('time.offset', 'chronyc tracking: not synchronised')
    else:
        yield known('time.offset', offset and float(offset.group(1)), 'chronyc tracking')


def limits(node):
    '''Soft limits of this process: of a health check those of slurmd's scripts.'''
    for name, which in (('memlock', resource.RLIMIT_MEMLOCK), ('open_files', resource.RLIMIT_NOFILE), ('stack', resource.RLIMIT_STACK),
                        ('processes', resource.RLIMIT_NPROC), ('core', resource.RLIMIT_CORE)):
        soft = resource.getrlimit(which)[0]
        yield Fact(f'limit.{name}', 'unlimited' if soft == resource.RLIM_INFINITY else soft, 'getrlimit')


def environment(node):
    for name in node.variables:
        if name in os.environ:
            yield Fact(f'environment.{name}', os.environ[name], 'environment')


def _unescaped(text):
    return re.sub(r'\\([0-7]{3})', lambda found: chr(int(found.group(1), 8)), text)


def mounted(node):
    '''Path -> (type, what is mounted, options, number of the device) of what is on top there; None where it is not known.'''
    text = node.text('/proc/self/mountinfo')
    if text is None:
        return None
    found = {}       # type: dict
    for line in text.splitlines():
        before, there, after = line.partition(' - ')
        words, kind = before.split(), after.split()
        if there and len(words) > 5 and len(kind) > 2:
            given = {*words[5].split(','), *kind[2].split(',')}
            options = sorted(given - {'rw', 'ro'}) + ['ro' if given & _READ_ONLY else 'rw']
            found[_unescaped(words[4])] = kind[0], _unescaped(kind[1]), options, words[2]
    return found


def worth_recording(path, found):
    '''Whether a mount of :func:`mounted` is one of those that a node must have.'''
    kind = found[path][0]
    above = [os.path.dirname(path)]
    while above[-1] not in ('/', ''):
        above.append(os.path.dirname(above[-1]))
    return not (kind in _OF_THE_KERNEL or path.startswith(('/run/', '/var/lib/docker/', '/var/lib/containers/', '/snap/', '/proc/', '/sys/'))
                or (kind == 'tmpfs' and path.startswith(('/run', '/dev')))
                or any(found.get(one, ('',))[0] == 'autofs' for one in above))       # somebody's, who happens to be there


def _first_entry(path):
    try:
        with os.scandir(path) as entries:
            next(entries, None)
    except PermissionError:     # it has answered: this is a folder of others
        return


def _waits_before(node, device):
    '''Number of a process of an earlier gate that waits in the kernel for the same file system, though it was killed; else None, and this
    process has the name by which a later gate finds it.'''
    name = f'gate {device}'[:15]        # of a process; the kernel keeps so much of it
    for file in node.files('/proc/[0-9]*/comm'):
        if node.text(file) == name:
            told = dict(re.findall(r'^(Uid|SigPnd):\s*(\w+)', node.text(os.path.dirname(file) + '/status') or '', re.MULTILINE))
            if told.get('Uid') == str(os.getuid()) and int(told.get('SigPnd', '0'), 16) >> signal.SIGKILL - 1 & 1:
                return os.path.basename(os.path.dirname(file))
    try:
        with open(node.at('/proc/self/comm'), 'w') as own:
            own.write(name)
    except OSError:     # then each gate asks anew
        pass
    return None


def mount(path):
    '''The reader of a mount: a process of its own, since a hung file system holds it for good.'''
    name = f'mount.{path}'

    def read(node):
        found = mounted(node)
        if found is None:
            yield Missing(name, '/proc/self/mountinfo cannot be read')
            return
        asked = set()    # type: set
        try:
            while path in found and found[path][3] not in asked:
                asked.add(found[path][3])
                process = _waits_before(node, found[path][3])
                if process:     # one more would wait as long, and be no wiser
                    yield Missing(name, f'process {process} of an earlier gate still waits for it', True)
                    return
                if found[path][0] == 'autofs':
                    os.statvfs(node.at(path))       # mounts it, as another device
                    found = mounted(node) or found
            if path not in found:
                return
            for what, value in zip(('type', 'device', 'options'), found[path]):
                yield Fact(f'{name}.{what}', value, '/proc/self/mountinfo')
            yield Fact(f'{name}.writable', 'no' if 'ro' in found[path][2] else 'yes', '/proc/self/mountinfo')
            begun = time.monotonic()
            room = os.statvfs(node.at(path))
            os.stat(node.at(path))
            _first_entry(node.at(path))
        except PermissionError as error:        # of a user, who may not look
            yield Missing(name, error.strerror)
            return
        except OSError as error:        # a stale handle, a server that is gone
            yield Fact(f'{name}.answers', error.strerror, 'statvfs, stat and the first entry')
            return
        yield Fact(f'{name}.answers', round(time.monotonic() - begun, 6), 'statvfs, stat and the first entry')
        if room.f_blocks:
            yield Fact(f'{name}.free', round(room.f_bavail / room.f_blocks, 4), 'statvfs')
            if found[path][0] == 'tmpfs' or found[path][1].startswith('/dev/'):     # a full one that nodes share would drain them all
                yield Fact(f'{name}.full', 'no' if room.f_bavail else 'yes', 'statvfs')
        if room.f_files:
            yield Fact(f'{name}.free_files', round(room.f_favail / room.f_files, 4), 'statvfs')
    return read
