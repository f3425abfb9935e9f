'''Set Plumbline up in this clone, with the standard library alone.

::

    python3 src/setup/bootstrap.py            install what is missing, then make .venv
    python3 src/setup/bootstrap.py --check    say what is missing, change nothing

The order of the work keeps a machine from being left half-way: everything is looked at before
anything is installed; system packages (root on a Debian-like system only) come before the virtual
environment where that needs one of them, and beside it elsewhere; the stamp that declares the
environment complete is written last.

The stamp holds a hash of what the environment was made from: pyproject.toml, the locks, this file,
the folder (an environment does not survive being moved) and the Python below it.  That is the
environment's own Python, not the first one in today's PATH: a session without last week's modules
must not start a rebuild.

What is looked for stands in tools.json.  This file keeps to the syntax of Python 3.6, so that
an old ``python3`` can still say what it lacks, or find a newer Python in PATH and use that.
'''

import argparse
import contextlib
import errno
import fcntl
import glob
import grp
import hashlib
import json
import os
import platform
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VENV = os.path.join(ROOT, '.venv')
STAMP = os.path.join(VENV, 'plumbline-setup.json')
LOCK = os.path.join(ROOT, 'requirements.lock')
IMPI_LOCK = os.path.join(ROOT, 'requirements-impi.lock')      # Intel MPI: compiler wrappers, libraries, its benchmarks
LOG = os.path.join(ROOT, 'reports', 'setup.log')

OLDEST_PYTHON = (3, 10)
OLDEST_CMAKE = (3, 20)

#: Often not in the PATH of ordinary users.
SYSTEM_FOLDERS = '/usr/sbin:/sbin'

#: What Debian asks before it starts a service (invoke-rc.d(8)): exit code 101 is no.
POLICY = '/usr/sbin/policy-rc.d'

#: Below them are the headers of system packages.
SYSTEM_PREFIXES = ['/usr/local', '/usr']


#: What is set up for what: a tool that the first wants the others want, too.
PURPOSES = ('health', 'acceptance', 'test')


class Tool(NamedTuple):
    '''One thing that Plumbline uses of a machine: an entry of ``tools.json``.'''

    name: str
    commands: list          # any one of them will do
    purpose: str
    without: str            # what one loses without it; empty: nothing works without it
    packages: dict          # family of distributions -> packages, where it has any
    module: str             # what modules and Spack call it; empty where they have none
    wanted_for: str = 'health'      # the first of PURPOSES that wants it
    headers: list = []      # of a library, which has no command: of itself or its headers, below a folder of include_folders()
    services: list = []     # that come with its packages, and which must not run: tests start their own
    defines: str = ''       # of an MPI, whose commands are compiler wrappers: what its mpi.h defines

    @property
    def required(self):
        return not self.without


class Finding(NamedTuple):
    '''What became of the search for one tool.'''

    tool: Tool
    problem: str            # empty: found, and it works
    path: str = ''
    installable: bool = True    # False: the distribution's own is there and will not do


#: What config/localhost.py and the checks use.  Nobody else's list has to agree with this one: a
#: tool that is there is used, whatever that file thinks of it.
with open(os.path.join(HERE, 'tools.json'), encoding='utf-8') as tools:
    TOOLS = [Tool(**entry) for entry in json.load(tools)]
PYTHON = next(tool for tool in TOOLS if tool.name == 'Python')

INSTALL = {
    'debian': 'apt-get install --no-install-recommends',
    'redhat': 'dnf install',
    'suse': 'zypper install',
}


class SetupError(Exception):
    '''A failure whose text is all that the user needs to read.'''


def say(text):
    print(text, flush=True)


# What is there ----------------------------------------------------------------------------------

def family(os_release='/etc/os-release'):
    '''The distribution's family, a key of ``INSTALL``, or empty.'''
    try:
        with open(os_release, encoding='utf-8', errors='replace') as stream:
            text = stream.read()
    except OSError:
        return ''
    names = ' '.join(re.findall(r'^ID(?:_LIKE)?="?([^"\n]*)', text, re.MULTILINE)).split()
    known = {'debian': 'debian', 'ubuntu': 'debian', 'rhel': 'redhat', 'fedora': 'redhat',
             'centos': 'redhat', 'suse': 'suse', 'sles': 'suse', 'opensuse': 'suse'}
    return next((known[name] for name in names if name in known), '')


def which(command):
    return shutil.which(command) or shutil.which(command, path=SYSTEM_FOLDERS)


#: Commands that run, each in a thread, and whether no other may start.
RUNNING, ENDED = set(), threading.Event()


def output_of(command, **options):
    '''``(exit code, joined output)``; a command that cannot be started exits with 127.'''
    if ENDED.is_set():
        return 130, 'interrupted'
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, universal_newlines=True, errors='replace',
                                   **options)
    except OSError as error:
        return 127, str(error)
    RUNNING.add(process)
    if ENDED.is_set():      # just now
        process.terminate()
    try:
        text, _ = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        RUNNING.discard(process)
    return process.returncode, text


@contextlib.contextmanager
def beside():
    '''A thread for what is done beside the block, which is waited for; where the block is interrupted, its commands end.'''
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            ENDED.set()
            for process in list(RUNNING):
                process.terminate()
            raise
        finally:
            pool.shutdown()
            ENDED.clear()


def first_line(text):
    return next((line.strip() for line in text.splitlines() if line.strip()), 'no message')


def dotted(version):
    return '.'.join(str(part) for part in version)


def own_python():
    '''This interpreter, by a path outside of .venv, which may be about to be replaced.'''
    inside = os.path.abspath(sys.executable).startswith(VENV + os.sep)
    return os.path.realpath(sys.executable) if inside else sys.executable


def try_python(path):
    '''``(version, '')`` of a Python that can make our environment, else ``('', why not)``.'''
    probe = ("import sys; print('%d.%d.%d' % sys.version_info[:3]); "
             'import venv, ensurepip, ssl, zlib')
    code, text = output_of([path, '-c', probe], env=clean_environment())
    match = re.search(r'^(\d+)\.(\d+)\.\d+$', text, re.MULTILINE)
    if not match:
        return '', '{} does not run: {}'.format(path, first_line(text))
    version = match.group()
    if (int(match.group(1)), int(match.group(2))) < OLDEST_PYTHON:
        return '', '{} is {}, older than {}'.format(path, version, dotted(OLDEST_PYTHON))
    if code != 0:
        reason = re.search(r'No module named .*', text)
        return '', '{} ({}) is not whole: {}'.format(path, version,
                                                     reason.group() if reason else 'no venv')
    return version, ''


def find_python(tool):
    problems = []
    for path in [own_python()] + [which('python3.%d' % minor) for minor in range(19, 9, -1)]:
        if path is None or not os.path.exists(path):
            continue
        version, problem = try_python(path)
        if version:
            return Finding(tool, '', path)
        problems.append(problem)
    if not problems:
        return Finding(tool, 'not found in PATH')
    # Debian has venv in a package of its own, but no newer Python; the others have newer ones.
    installable = 'is not whole' in problems[0] or family() != 'debian'
    return Finding(tool, problems[0], installable=installable)


def find_compiler(tool):
    '''A compiler counts if it builds an OpenMP program: without the C library's headers, or a
    package of its OpenMP library, it does not.'''
    path = next(filter(None, map(which, tool.commands)), None)
    if path is None:
        return Finding(tool, not_found(tool))
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'probe.c')
        with open(source, 'w') as stream:
            stream.write('#include <omp.h>\n#include <stdio.h>\n'
                         'int main(void) { return printf("%d", omp_get_max_threads()) < 0; }\n')
        code, text = output_of([path, '-std=c17', '-fopenmp', source,
                                '-o', os.path.join(folder, 'probe')])
    if code == 0:
        return Finding(tool, '', path)
    reason = first_line(text.replace(folder + os.sep, ''))
    return Finding(tool, '{} cannot build an OpenMP program: {}'.format(path, reason))


def find_cmake(tool):
    path = which('cmake')
    if path is None:
        return Finding(tool, not_found(tool))
    _, text = output_of([path, '--version'])
    match = re.search(r'version (\d+)\.(\d+)', text)
    if match is None:
        return Finding(tool, '{} does not run: {}'.format(path, first_line(text)), installable=False)
    version = (int(match.group(1)), int(match.group(2)))
    if version < OLDEST_CMAKE:
        return Finding(tool, '{} is {}, older than {}'.format(path, dotted(version), dotted(OLDEST_CMAKE)), installable=False)
    return Finding(tool, '', path)


def not_found(tool):
    if tool.headers:
        return '{} not found below /usr, CMAKE_PREFIX_PATH or PATH'.format(os.path.basename(tool.headers[0]))
    return '{} not found in PATH'.format(' or '.join(tool.commands))


def include_folders():
    '''Where CMake looks for headers.'''
    prefixes = os.environ.get('CMAKE_PREFIX_PATH', '').split(os.pathsep)
    prefixes += [os.path.dirname(folder) for folder in os.environ.get('PATH', '').split(os.pathsep)]
    return [os.path.join(prefix, 'include') for prefix in prefixes + SYSTEM_PREFIXES if prefix]


def find_mpi(tool):
    '''An MPI counts if a wrapper finds its mpi.h: Debian has wrappers without it, and anybody's may be called mpicc.'''
    found = [path for path in map(which, tool.commands) if path]
    for path in found:
        text = output_of([path, '-E', '-dM', '-include', 'mpi.h', '-x', 'c', os.devnull])[1]
        defined = re.findall(r'^#define (\w+)', text, re.MULTILINE)
        if tool.defines in defined and 'I_MPI_VERSION' not in defined:      # Intel MPI's defines MPICH's, too
            return Finding(tool, '', path)
    return Finding(tool, 'no mpi.h of {} for {}'.format(tool.name, ' or '.join(found)) if found else not_found(tool))


def find_by_name(tool):
    if tool.defines:
        return find_mpi(tool)
    found = map(which, tool.commands)
    if tool.headers:
        found = (path for folder in include_folders() for name in tool.headers
                 for path in glob.glob(os.path.join(folder, name)))
    path = next(filter(None, found), '')
    return Finding(tool, '' if path else not_found(tool), path)


def wanted(purpose):
    return [tool for tool in TOOLS if PURPOSES.index(tool.wanted_for) <= PURPOSES.index(purpose)]


def survey(purpose):
    '''Look for everything, and try out what the set-up itself stands on.'''
    thorough = {'Python': find_python, 'C compiler': find_compiler, 'LLVM': find_compiler, 'cmake': find_cmake}
    return [thorough.get(tool.name, find_by_name)(tool) for tool in wanted(purpose)]


def glance(purpose):
    '''The tools that are not there by name: the same question, answered in a fraction of a second.'''
    # Python is what runs this.
    return [tool for tool in wanted(purpose) if tool != PYTHON and find_by_name(tool).problem]


# What to tell the user --------------------------------------------------------------------------

def install_lines(finding, distribution):
    '''Commands that would install the tool; all families' where the distribution is unknown.'''
    tool = finding.tool
    lines = ['{} {}'.format(INSTALL[name], tool.packages[name]) for name in INSTALL
             if name in tool.packages and distribution in (name, '') and finding.installable]
    if tool.module:
        lines += ['module avail ' + tool.module, 'spack install ' + tool.module]
    return lines


def report(missing, distribution):
    '''The list of what is missing: each with its use and its commands, required things first.'''
    lines = ['plumbline set-up: missing on this machine']
    for finding in sorted(missing, key=lambda finding: not finding.tool.required):
        tool = finding.tool
        kind = 'required' if tool.required else 'optional'
        lines += ['', '  {} ({}): {}'.format(tool.name, kind, finding.problem),
                  '      needed for  ' + tool.purpose]
        if tool.without:
            lines.append('      without it  ' + tool.without)
        for index, line in enumerate(install_lines(finding, distribution)):
            lines.append('      {}  {}'.format('or        ' if index else 'install   ', line))
    packages = [finding.tool.packages[distribution] for finding in missing
                if distribution in finding.tool.packages and finding.installable]
    if len(packages) > 1:
        lines += ['', '  in one go, as root:  {} {}'.format(INSTALL[distribution],
                                                           ' '.join(packages))]
    return '\n'.join(lines + [''])


#: What the output of apt-get, venv or pip says -> what it means and what helps.  The first match
#: counts: pip that finds no network goes on to say that it found no such package.
DIAGNOSES = (
    (r'No space left on device|Disk quota exceeded',
     'the disk is full or the quota is used up'),
    (r'CERTIFICATE_VERIFY_FAILED|SSLCertVerificationError',
     'the certificate of the package index is not trusted: name the file with the certificates '
     'of your site in PIP_CERT'),
    (r'connection broken by|NewConnectionError|ProxyError|Network is unreachable|name resolution'
     r'|Name or service not known|Connection refused|timed out|Max retries exceeded',
     'the package index cannot be reached: set https_proxy or PIP_INDEX_URL, or run this where '
     'there is a network'),
    (r'Permission denied|Read-only file system|Operation not permitted',
     'no permission to write ({line})'),
    (r'No matching distribution found for',
     'the package index does not have what is pinned for this Python and processor ({line})'),
)


def diagnose(output):
    '''The reason for a failed step in one line, from all that it printed.'''
    for pattern, meaning in DIAGNOSES:
        match = re.search(pattern, output)
        if match:
            start = output.rfind('\n', 0, match.start()) + 1
            return meaning.format(line=first_line(output[start:])[:200])
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(('ERROR:', 'E:', 'error:'))]
    return (errors or lines or ['it printed nothing'])[-1][:300]


# Steps ------------------------------------------------------------------------------------------

def clean_environment(**more):
    '''The environment without what would send an installation elsewhere than into .venv.'''
    away = ('PYTHONPATH', 'PYTHONHOME', 'PYTHONUSERBASE', 'VIRTUAL_ENV',
            'PIP_TARGET', 'PIP_PREFIX', 'PIP_ROOT')
    kept = {name: value for name, value in os.environ.items() if name not in away}
    kept.update(PIP_USER='0', PIP_REQUIRE_VIRTUALENV='0', **more)
    return kept


def step(command, what, **environment):
    '''Run one command of the set-up quietly; raise SetupError with its reason if it fails.'''
    code, text = output_of(command, env=clean_environment(**environment), cwd=ROOT)
    if code == 0:
        return
    where = ''
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(LOG), exist_ok=True)
        with open(LOG, 'a', encoding='utf-8') as stream:
            stream.write('$ {}\n{}\n(exit code {})\n'.format(' '.join(command), text, code))
        where = ' [all of it: {}]'.format(os.path.relpath(LOG, ROOT))
    raise SetupError('{} failed: {}{}'.format(what, diagnose(text), where))


def alternatives():
    '''What each name of Debian's alternatives leads to, such as ``mpicc`` and ``libblas.so.3``: name -> path.'''
    code, text = output_of(['update-alternatives', '--get-selections'])
    lines = [line.split() for line in text.splitlines()] if code == 0 else []
    return {words[0]: words[2] for words in lines if len(words) == 3}


@contextlib.contextmanager
def same_alternatives():
    '''Names that led somewhere before lead there afterwards, whatever packages would rather have.'''
    before = alternatives()
    try:
        yield
    finally:
        after = alternatives()
        for name in sorted(name for name in before if after.get(name, before[name]) != before[name]):
            say('plumbline set-up: {} stays {}'.format(name, before[name]))
            try:
                step(['update-alternatives', '--set', name, before[name]], 'update-alternatives')
            except SetupError as error:
                say('plumbline set-up: {}'.format(error))


@contextlib.contextmanager
def nothing_started(services):
    '''No service of these names starts when its package is installed, and none with the machine.'''
    own = bool(services) and not os.path.lexists(POLICY)        # a container mostly has one, which lets nothing start
    if own:
        with open(POLICY, 'w', encoding='utf-8') as stream:
            stream.write('#!/bin/sh\ncase $1 in {}) exit 101;; esac\n'.format('|'.join(services)))
        os.chmod(POLICY, 0o755)
    try:
        yield
    finally:
        if own:
            os.unlink(POLICY)
        for name in services:
            # Nothing to disable: its package could not be had.
            output_of(['update-rc.d', name, 'disable'], env=clean_environment())


def install_packages(findings):
    '''Install by apt-get; a package that cannot be had must not keep the others away.'''
    packages = ' '.join(finding.tool.packages['debian'] for finding in findings).split()
    say('plumbline set-up: apt-get installs ' + ' '.join(packages))
    # Another apt-get is waited for, a mirror that swallows packets is not.
    apt = ['apt-get', '-q', '-y', '-o', 'DPkg::Lock::Timeout=60',
           '-o', 'Acquire::http::Timeout=20', '-o', 'Acquire::https::Timeout=20']
    quiet = {'DEBIAN_FRONTEND': 'noninteractive', 'LC_ALL': 'C'}
    with contextlib.suppress(SetupError):  # old lists may still do
        step(apt + ['update'], 'apt-get update', **quiet)
    apt += ['install', '--no-install-recommends']
    with nothing_started([name for finding in findings for name in finding.tool.services]):
        try:
            step(apt + packages, 'apt-get install', **quiet)
        except SetupError:
            for finding in findings:
                try:
                    step(apt + finding.tool.packages['debian'].split(),
                         'apt-get install ' + finding.tool.name, **quiet)
                except SetupError as error:
                    say('plumbline set-up: {}'.format(error))


def fingerprint(python):
    '''What .venv is made from as one hash; ``python`` is the real path of its interpreter.'''
    digest = hashlib.sha256('{}\0{}\0'.format(ROOT, python).encode())
    for path in (os.path.join(ROOT, 'pyproject.toml'), LOCK, IMPI_LOCK, os.path.abspath(__file__)):
        with open(path, 'rb') as stream:
            digest.update(hashlib.sha256(stream.read()).digest())
    return digest.hexdigest()


def read_stamp():
    '''The stamp of an environment that is complete and up to date, else None.'''
    try:
        with open(STAMP, encoding='utf-8') as stream:
            stamp = json.load(stream)
        python = os.path.join(VENV, 'bin', 'python')
        valid = (os.access(python, os.X_OK) and os.path.realpath(python) == stamp['python']
                 and stamp['fingerprint'] == fingerprint(stamp['python']))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stamp if valid else None


def write_stamp(version, not_had):
    '''Declare .venv complete; ``not_had`` names the tools that apt-get could not provide.'''
    python = os.path.realpath(os.path.join(VENV, 'bin', 'python'))
    stamp = {'fingerprint': fingerprint(python), 'python': python, 'version': version,
             'not_had': sorted(not_had)}
    with open(STAMP + '.new', 'w', encoding='utf-8') as stream:
        json.dump(stamp, stream, indent=1)
    os.replace(STAMP + '.new', STAMP)


def remove_venv():
    with contextlib.suppress(FileNotFoundError):
        os.unlink(STAMP)  # first: what an interruption leaves must not look complete
    if os.path.islink(VENV) or os.path.isfile(VENV):
        os.unlink(VENV)
    elif os.path.isdir(VENV):
        shutil.rmtree(VENV)


#: Nothing but the files that the lock has hashes of, whatever index there is; and no program of a package runs to build it.
LOCKED = ['--require-hashes', '--only-binary', ':all:']


def pip(python):
    return [python, '-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check']


def add_intel_mpi(python):
    '''Intel MPI, which pip has, in a folder of its own: its mpicc and mpirun must not be the first in PATH.'''
    if platform.system() != 'Linux' or platform.machine() != 'x86_64' or cluster_of():    # a site has its own
        return
    say('plumbline set-up: pip installs Intel MPI below .venv/impi')
    own = ['--ignore-installed', '--no-warn-conflicts', '--prefix', os.path.join(VENV, 'impi')]     # whatever another pip is about to install
    try:
        step(pip(python) + LOCKED + own + ['--requirement', IMPI_LOCK], 'pip install of Intel MPI')
    except SetupError as error:
        say('plumbline set-up: {}: no environment gnu-impi'.format(error))


def make_venv(python):
    '''Make .venv anew; return the version of its Python.  A failure leaves the former one, whose stamp is of what it was made from, or none.'''
    former = VENV + '.former'
    if os.path.exists(STAMP) and not os.path.islink(VENV):
        shutil.rmtree(former, ignore_errors=True)
        os.rename(VENV, former)
    remove_venv()       # a half one; beside it the former one may lie still
    inside = os.path.join(VENV, 'bin', 'python')
    try:
        say('plumbline set-up: .venv with ' + python)
        # Two steps, because venv keeps the reasons of ensurepip to itself.
        step([python, '-m', 'venv', '--without-pip', VENV], 'making .venv')
        step([inside, '-m', 'ensurepip', '--default-pip'], 'making .venv')
        with beside() as other:
            intel = other.submit(add_intel_mpi, inside)
            say('plumbline set-up: pip installs the packages of requirements.lock (about a minute)')
            step(pip(inside) + LOCKED + ['--requirement', LOCK], 'pip install')
            step(pip(inside) + ['--no-deps', '--no-build-isolation', '--editable', '.'], 'pip install of this clone')
            intel.result()
        version, problem = try_python(inside)
        if problem:
            raise SetupError(problem)
        shutil.rmtree(former, ignore_errors=True)
        return version
    except BaseException:
        with contextlib.suppress(OSError):
            remove_venv()
            if os.path.isdir(former):
                os.rename(former, VENV)
        raise


#: Seconds that another set-up of this clone is waited for.
LONGEST_SETUP = 1800


@contextlib.contextmanager
def only_one():
    '''Let one set-up at a time work in this clone, where the file system has locks.'''
    # Whoever can open it can hold it.
    handle = os.open(os.path.join(ROOT, '.venv.lock'), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.fchmod(handle, 0o600)
        for second in range(LONGEST_SETUP):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    break       # a file system without locks
            if second == 0:
                say('plumbline set-up: waiting for another set-up of this clone')
            time.sleep(1)
        else:
            raise SetupError('another set-up of this clone has not ended in {} minutes; who holds it: fuser {}/.venv.lock'.format(
                LONGEST_SETUP // 60, ROOT))
        yield
    finally:
        os.close(handle)


# The command ------------------------------------------------------------------------------------

def cluster_of(system='/'):
    '''What says that this machine is part of a cluster, whose software is not ours to change; None for nothing.'''
    found = [name for name in ('SLURM_JOB_ID', 'PBS_JOBID', 'FLUX_JOB_ID', 'LSB_JOBID') if name in os.environ]
    files = ('etc/slurm/slurm.conf', 'etc/slurm-llnl/slurm.conf', 'etc/pbs.conf', 'etc/flux/system', 'run/slurm/conf')
    found += [os.path.join(system, path) for path in files if os.path.exists(os.path.join(system, path))]
    return found[0] if found else None


def has_list(path):
    '''Whether a file has an access control list: the bits of its group are then what that may give to anybody.'''
    try:
        return 'system.posix_acl_access' in os.listxattr(path, follow_symlinks=False)
    except OSError:
        return False


def own_group(uid):
    '''The number of a user's own group, in which nobody else is; 0 where there is none.'''
    try:
        user = pwd.getpwuid(uid)
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return 0
    return group.gr_gid if group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name} else 0


def refuse_others_clone():
    '''As root: run nothing of a clone that others can change, unless it is the clone of whoever called sudo.

    :raises SetupError: that says what others can change.
    '''
    trusted, groups = (0, int(os.environ.get('SUDO_UID', '0'))), (0, own_group(int(os.environ.get('SUDO_UID', '0'))))
    for path in [ROOT] + [os.path.join(ROOT, name) for name in ('Makefile', 'src', 'checks', 'config', '.venv')]:
        if not os.path.lexists(path):
            continue
        found = os.lstat(path)
        shared = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and (found.st_gid not in groups or has_list(path)))
        if found.st_uid not in trusted or (shared and not stat.S_ISLNK(found.st_mode)):
            who = 'can be written by others' if found.st_uid in trusted else 'belongs to uid {}'.format(found.st_uid)
            raise SetupError("root runs nothing that others can change, and {} {}: run this as its owner, make a clone of root's own, "
                             'or, if they may, SETUPFLAGS=--trust-clone'.format(path, who))


def may_install(args, distribution):
    '''Whether apt-get installs what is missing: as root, on a machine that is nobody's cluster.'''
    if (args.no_system_packages or os.geteuid() != 0 or distribution != 'debian' or shutil.which('apt-get') is None):
        return False
    cluster = cluster_of()
    if cluster and not args.install:
        say('plumbline set-up: this machine is part of a cluster ({}): apt-get installs nothing without SETUPFLAGS=--install'.format(cluster))
        return False
    return True


def already_done(args, installs):
    '''Whether nothing is left to do; if so, say it in one line.'''
    stamp = read_stamp()
    if stamp is None or args.redo:
        return False
    missing = glance(args.purpose)
    names = [tool.name for tool in missing]
    if any(tool.required for tool in missing):
        return False
    if installs and not set(names) <= set(stamp['not_had']):
        return False
    hint = '; not found, optional: {} (what that costs: --check)'.format(', '.join(names))
    say('plumbline set-up: complete, Python {}{}'.format(stamp['version'], hint if names else ''))
    return True


def check(args, distribution, installs):
    findings = survey(args.purpose)
    for finding in findings:
        if not finding.problem:
            say('found  {:<19} {}'.format(finding.tool.name, finding.path))
    missing = [finding for finding in findings if finding.problem]
    if missing:
        say('\n' + report(missing, distribution))
        if installs:
            say('plumbline set-up: as root, without --check, apt-get installs what it has of these')
    say('plumbline set-up: .venv is ' + ('complete' if read_stamp() else 'still to be made'))
    return 1 if any(finding.tool.required for finding in missing) else 0


def lacks_something_required(findings):
    return any(finding.problem and finding.tool.required for finding in findings)


def environment(findings, redo):
    '''Make .venv where there is none of today; the version of its Python.'''
    stamp = read_stamp()
    if stamp and not redo:
        return stamp['version']
    return make_venv(next(finding.path for finding in findings if finding.tool == PYTHON))


def set_up(args, distribution, installs):
    with contextlib.suppress(OSError):
        os.unlink(LOG)      # of the last time
    findings, made = survey(args.purpose), None
    fixable = [finding for finding in findings if finding.problem and finding.installable and 'debian' in finding.tool.packages]
    hopeless = [finding for finding in findings if finding.problem and finding.tool.required and finding not in fixable]
    with beside() as other:
        if installs and fixable and not hopeless:
            # pip and apt-get keep a core each busy.
            made = None if lacks_something_required(findings) else other.submit(environment, findings, args.redo)
            with same_alternatives():
                install_packages(fixable)
            findings = survey(args.purpose)
        missing = [finding for finding in findings if finding.problem]
        if missing:
            say(report(missing, distribution))
        if lacks_something_required(findings):
            raise SetupError('something required is missing: see the list')
        version = made.result() if made else environment(findings, args.redo)
    write_stamp(version, [finding.tool.name for finding in missing] if installs else [])
    say('plumbline set-up: complete, Python ' + version)


def parse(argv):
    parser = argparse.ArgumentParser(
        prog='bootstrap.py', description='Set Plumbline up in this clone: system packages (root '
        'on a Debian-like system only), then .venv with the pinned Python packages.')
    parser.add_argument('--check', action='store_true',
                        help='say what is found and what is missing; change nothing')
    parser.add_argument('--for', dest='purpose', choices=PURPOSES, default='health',
                        help='acceptance: also other compilers; test: also what only the tests use')
    parser.add_argument('--no-system-packages', action='store_true',
                        help='install no system packages, even as root; use what PATH has')
    parser.add_argument('--install', action='store_true',
                        help='as root, install system packages on a node of a cluster as well')
    parser.add_argument('--trust-clone', action='store_true',
                        help='as root, in a clone that others can change')
    parser.add_argument('--redo', action='store_true',
                        help='make .venv anew, and try for missing packages again')
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)      # which raises KeyboardInterrupt
    try:
        if os.geteuid() == 0 and not args.trust_clone:
            refuse_others_clone()
        distribution = family()
        installs = may_install(args, distribution)
        if args.check:
            return check(args, distribution, installs)
        if already_done(args, installs):
            return 0
        for folder in (ROOT, os.path.join(ROOT, 'src')):
            if not os.access(folder, os.W_OK | os.X_OK):
                raise SetupError('cannot write in {} (no permission, or a read-only file system)'
                                 .format(folder))
        with only_one():
            if not already_done(args, installs):  # the set-up that was waited for may have done it
                set_up(args, distribution, installs)
        return 0
    except SetupError as error:
        message = str(error)
    except KeyboardInterrupt:
        print('plumbline set-up: interrupted; run it again to start afresh', file=sys.stderr)
        return 130
    except OSError as error:
        message = '{}: {}'.format(error.filename or 'input/output', error.strerror or error)
    print('plumbline set-up: error: ' + message, file=sys.stderr)
    return 1


if __name__ == '__main__':
    sys.exit(main())
