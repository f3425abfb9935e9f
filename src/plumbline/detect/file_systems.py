'''Shared file systems that are mounted here, and where on them one may write.'''

import os
import re
from pathlib import Path

#: Types of file systems that several nodes share, as the kernel calls them.
SHARED = ('lustre', 'gpfs', 'nfs', 'nfs4', 'beegfs', 'beegfs_nodev', 'ceph', 'fuse.ceph', 'wekafs', 'panfs', 'pvfs2',
          'glusterfs', 'fuse.glusterfs', 'daos', 'fuse.daos')

#: Variables by which sites name folders for files of jobs.
_VARIABLES = re.compile('SCRATCH|WORK(DIR)?$|FAST')


def mounts(text):
    '''(folder, type) of the lines of ``/proc/mounts``.'''
    fields = [line.split() for line in text.splitlines()]
    return [(re.sub(r'\\([0-7]{3})', lambda match: chr(int(match[1], 8)), words[1]), words[2]) for words in fields if len(words) >= 3]


def _on(path, folders):
    '''The folder of those that are mounted which a path is on.'''
    parents = [os.path.realpath(path), *map(str, Path(os.path.realpath(path)).parents)]
    return min((folder for folder in folders if folder in parents), key=parents.index, default=None)


def _writable(path):
    return os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)


def _folder(mount, folders, environ):
    '''Where on a file system to write, with variables as a job has them; None where that is not known.'''
    for name, value in sorted(environ.items()):
        if _VARIABLES.search(name) and value.startswith('/') and _on(value, folders) == mount and _writable(value):
            return f'${name}'
    own = os.path.join(mount, environ.get('USER', ''))
    return f'{mount}/$USER' if environ.get('USER') and _writable(own) and _on(own, folders) == mount else None


def _name(folder, taken):
    name = re.sub('[^a-z0-9_]', '_', Path(folder).name.lower()) or 'root'
    name = name if name[0].isalpha() else f'fs_{name}'
    return name if name not in taken else f'{name}{len(taken) + 1}'


def detect(text=None, environ=None):
    '''(file systems for ``extras`` of a partition, remarks).

    :arg text: the contents of ``/proc/mounts``.
    :arg environ: the variables of the session.
    '''
    environ = os.environ if environ is None else environ
    text = Path('/proc/mounts').read_text(encoding='utf-8') if text is None else text
    found: list[dict[str, str]] = []
    remarks = []
    mounted = dict(mounts(text))      # the last on a folder hides those before it
    for folder, kind in ((folder, kind) for folder, kind in mounted.items() if kind in SHARED):
        kind = 'nfs' if kind == 'nfs4' else kind        # nodes may mount it by another version
        path = _folder(folder, mounted, environ)
        if path:
            found.append({'name': _name(folder, [entry['name'] for entry in found]), 'path': path, 'type': kind})
            remarks.append(f"{found[-1]['name']}: {kind} at {folder}")
        else:
            entry = {'name': _name(folder, ()), 'path': f'{folder}/...', 'type': kind}
            remarks.append(f'DECIDE: {kind} at {folder}: no folder of yours was found there; if it is to be measured, '
                           f"add {entry} to 'file_systems' of extras")
    if found:
        found.append({'name': 'tmp', 'path': '/tmp'})
        remarks.append('tmp: of the node')
    return found, remarks
