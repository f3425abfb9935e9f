'''Programs that several nodes, or runs, share: built once for each kind of node, never run on another kind.

The job script of a build asks ``python -m plumbline.rfm.build_cache fetch CACHE`` before it compiles, and calls ``publish CACHE`` after.  Both read
:data:`REQUEST` in the current folder: what would be built.  A build lies in ``CACHE/KEY``, and the key is a hash of all that makes programs what they
are: sources, commands, the compilers as they are on this node, its operating system and libraries, and its CPU with all features, since the flags say
``-march=native``.  What nobody has fetched for a month is removed.
'''

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from plumbline.settings import ROOT
from plumbline.system import trust

#: JSON: ``commands`` (the build), ``compilers`` (commands in PATH), ``variables`` (of the environment; an MPI's wrapper is told
#: its compiler by one), ``project`` (its folder).
REQUEST = Path('build-request.json')

#: JSON, beside it: the description of what ``fetch`` did not find, and what is built then is of.
DESCRIBED = Path('build-described.json')

#: Where compilers, linkers and CMake look for more than the system has, and what they do besides what they are told; a module sets them.
_FOLDERS = ('CPATH', 'C_INCLUDE_PATH', 'LIBRARY_PATH', 'LD_LIBRARY_PATH', 'LD_RUN_PATH', 'COMPILER_PATH', 'GCC_EXEC_PREFIX', 'CMAKE_PREFIX_PATH',
            'CMAKE_LIBRARY_PATH', 'CMAKE_INCLUDE_PATH', 'CMAKE_TOOLCHAIN_FILE', 'CMAKE_BUILD_TYPE', 'PKG_CONFIG_PATH', 'MKLROOT', 'BLAS_ROOT',
            'BLA_VENDOR', 'CFLAGS', 'FFLAGS', 'LDFLAGS')

#: Names of builds, and of those that are being copied: what else lies in the folder is somebody's.
_OURS = re.compile(r'[0-9a-f]{24}|\.new-.*')

#: After so many seconds a build that nobody has fetched is removed.
_UNUSED = 30 * 86400

#: What a build leaves that is used.
_PARTS = ('bin', 'lib')

#: Lines of /proc/cpuinfo that say what instructions a CPU has and how a compiler tunes for it: x86, ARM, POWER, RISC-V.
_TELLING = {'vendor_id', 'cpu family', 'model', 'model name', 'flags', 'CPU implementer', 'CPU architecture',
            'CPU variant', 'CPU part', 'Features', 'cpu', 'isa', 'uarch'}


def cpu(cpuinfo):
    '''The kinds of CPU that a text of /proc/cpuinfo tells of: sorted list of texts.'''
    kinds = set()
    for block in cpuinfo.split('\n\n'):
        pairs = [[part.strip() for part in line.split(':', 1)] for line in block.splitlines() if ':' in line]
        kinds.add('\n'.join(f'{name}: {value}' for name, value in pairs if name in _TELLING))
    return sorted(kinds - {''})


def _sources(project):
    '''Hash of everything that is compiled: below ``src``, and of a project elsewhere.'''
    digest, source = hashlib.sha256(), ROOT / 'src'
    for folder in (source, *([] if Path(project).is_relative_to(source) else [Path(project)])):
        for path in sorted(folder.rglob('*')):
            part = path.relative_to(folder)
            if path.is_file() and not (folder == source and part.parts[0].startswith(('plumbline', 'setup'))):     # Python's
                digest.update(f'{part}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n'.encode())
    return digest.hexdigest()


def _compiler(command):
    '''Where a compiler is and what it says of itself; an MPI's wrapper says only what its compiler is.'''
    path = shutil.which(command)
    if path is None:
        return f'{command}: not there'
    done = subprocess.run([path, '--version'], capture_output=True, text=True, errors='replace', timeout=60, stdin=subprocess.DEVNULL)
    content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return f'{os.path.realpath(path)}, {content}: {done.stdout}{done.stderr}'


def _libraries():
    '''What the linker knows, and where else is looked: CMake takes optional libraries from there.'''
    ldconfig = shutil.which('ldconfig') or shutil.which('ldconfig', path='/usr/sbin:/sbin')
    told = subprocess.run([ldconfig, '-p'], capture_output=True, timeout=60, stdin=subprocess.DEVNULL).stdout if ldconfig else b''
    # Debian's alternatives lead the same name to another library.
    behind = b'\n'.join(map(os.path.realpath, re.findall(b'=> (.*)', told)))
    return [hashlib.sha256(told + behind).hexdigest(), *(os.environ.get(name, '') for name in _FOLDERS)]


def description(request):
    '''All that the programs of a :data:`REQUEST` depend on, as text.'''
    release = Path('/etc/os-release')
    told = [value.split()[0] for value in request['variables'].values() if value.strip()]
    return json.dumps({'sources': _sources(request['project']), 'commands': request['commands'], 'variables': request['variables'],
                       'compilers': [_compiler(command) for command in dict.fromkeys([*request['compilers'], *filter(shutil.which, told)])],
                       'system': [release.read_text() if release.exists() else '', os.uname().machine],
                       'libraries': _libraries(),
                       'cpu': cpu(Path('/proc/cpuinfo').read_text())}, indent=1)


def _folder(cache, text):
    return Path(cache) / hashlib.sha256(text.encode()).hexdigest()[:24]


def fetch(cache):
    '''Link ``build`` to what was built already; whether there was any.'''
    if os.path.islink('build'):       # --dont-restage left it: a compiler would write into the cache
        os.unlink('build')
    text = description(json.loads(REQUEST.read_text()))
    DESCRIBED.write_text(text)
    found = _folder(cache, text)
    if not found.is_dir():
        return False
    if os.geteuid() == 0 and (why := trust.changed_by(found)):
        print(f'plumbline: not used, since others can change it, and root would run it: {why}', file=sys.stderr)
        return False
    os.symlink(found, 'build')
    with contextlib.suppress(OSError):      # somebody else's
        os.utime(found)
    print(f'plumbline: built already: {found}')
    return True


def publish(cache):
    '''Let other nodes have what was built.  What appears in the cache is whole, and of the sources and compilers that it is called by.'''
    text = description(json.loads(REQUEST.read_text()))
    if DESCRIBED.exists() and DESCRIBED.read_text() != text:
        print('plumbline: not kept for other runs: sources, compilers or libraries have changed while it was built', file=sys.stderr)
        return
    Path(cache).mkdir(parents=True, exist_ok=True)
    copy = Path(tempfile.mkdtemp(dir=cache, prefix='.new-'))
    try:
        copy.chmod(0o755)
        (copy / 'description.json').write_text(text)
        for part in _PARTS:
            if Path('build', part).is_dir():
                shutil.copytree(Path('build', part), copy / part, symlinks=True)
        target = _folder(cache, text)
        try:
            os.rename(copy, target)
        except OSError:
            if not target.is_dir():     # else another node of this kind was first
                raise
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    for old in Path(cache).iterdir():
        with contextlib.suppress(FileNotFoundError):    # another one removes it
            if _OURS.fullmatch(old.name) and time.time() - old.stat().st_mtime > _UNUSED:
                shutil.rmtree(old, ignore_errors=True)


def main(verb, cache):
    '''Exit code 0 where ``fetch`` found programs.'''
    if verb == 'fetch':
        return 0 if fetch(cache) else 1
    publish(cache)
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
