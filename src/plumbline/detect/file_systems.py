'''Shared file systems that are mounted here, and where on them one may write.'''

import functools
import os
import re
from pathlib import Path

from plumbline.gate.packed.reading import Fact, Group, read

#: Types of file systems that several nodes share, as the kernel calls them.
SHARED = ('lustre', 'gpfs', 'nfs', 'nfs4', 'beegfs', 'beegfs_nodev', 'ceph', 'fuse.ceph', 'wekafs', 'panfs', 'pvfs2',
          'glusterfs', 'fuse.glusterfs', 'daos', 'fuse.daos')

#: Seconds that a file system has to say what a path is.
SECONDS = 5.0

#: Variables by which sites name folders for files of jobs.
_VARIABLES = re.compile('SCRATCH|WORK(DIR)?$|FAST')


def mounts(text):
    '''(folder, type) of the lines of ``/proc/mounts``.'''
    fields = [line.split() for line in text.splitlines()]
    return [(re.sub(r'\\([0-7]{3})', lambda match: chr(int(match[1], 8)), words[1]), words[2]) for words in fields if len(words) >= 3]


def _on(path, folders):
    '''The folder of those that are mounted which a path without links is on.'''
    parents = [path, *map(str, Path(path).parents)]
    return min((folder for folder in folders if folder in parents), key=parents.index, default=None)


def _look(path):
    real = os.path.realpath(path)
    yield Fact(path, real if os.path.isdir(real) and os.access(real, os.W_OK | os.X_OK) else '', path)


def _writable(paths):
    '''(Path -> the same without links, '' where one may not write into it; path -> why nobody knows): of a file system that hangs, too.'''
    found = read([Group(path, (path,), functools.partial(_look, path), SECONDS) for path in dict.fromkeys(paths)], SECONDS)
    return {name: fact.value for name, fact in found.facts.items()}, {missing.prefix: missing.why for missing in found.missing}


def _name(folder, taken):
    name = re.sub('[^a-z0-9_]', '_', Path(folder).name.lower()) or 'root'
    name = name if name[0].isalpha() else f'fs_{name}'
    return name if name not in taken else f'{name}{len(taken) + 1}'


def detect(text=None, environ=None):
    '''(file systems for ``extras`` of a partition, remarks).

    :arg text: the contents of ``/proc/mounts``.
    '''
    environ = os.environ if environ is None else environ
    text = Path('/proc/mounts').read_text(encoding='utf-8', errors='surrogateescape') if text is None else text
    found: list[dict[str, str]] = []
    remarks = []
    mounted = dict(mounts(text))      # the last on a folder hides those before it
    shared = {folder: kind for folder, kind in mounted.items() if kind in SHARED}
    # Where on a file system to write, with variables as a job has them.
    variables = {f'${name}': value for name, value in sorted(environ.items()) if _VARIABLES.search(name) and value.startswith('/')}
    own = {folder: os.path.join(folder, environ['USER']) for folder in shared} if environ.get('USER') else {}
    writable, silent = _writable([*variables.values(), *own.values()]) if shared else ({}, {})
    for folder, kind in shared.items():
        kind = 'nfs' if kind == 'nfs4' else kind        # nodes may mount it by another version
        places = variables | {f'{folder}/$USER': own.get(folder, '')}
        path = next((name for name, path in places.items() if writable.get(path) and _on(writable[path], mounted) == folder), None)
        if path:
            found.append({'name': _name(folder, [entry['name'] for entry in found]), 'path': path, 'type': kind})
            remarks.append(f"{found[-1]['name']}: {kind} at {folder}")
        else:
            entry = {'name': _name(folder, ()), 'path': f'{folder}/...', 'type': kind}
            why = silent.get(own.get(folder)) or 'no folder of yours was found there'
            remarks.append(f"DECIDE: {kind} at {folder}: {why}; if it is to be measured, add {entry} to 'file_systems' of extras")
    if found:
        found.append({'name': 'tmp', 'path': '/tmp'})
        remarks.append('tmp: of the node')
    return found, remarks
