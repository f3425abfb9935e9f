'''Where a program is that a site has installed, and with which MPI it was built.'''

import os
import re
import shutil
import subprocess
from pathlib import Path

from reframe.core.environments import snapshot
from reframe.core.exceptions import ReframeError
from reframe.core.runtime import loadenv

from plumbline.errors import PlumblineError
from plumbline.mpi import environments

#: Libraries of MPI that a program may need, that of Fortran alone for instance -> families of which they can be.
_LIBRARIES = {r'libmpi(?:_\w+)?\.so\.(?:20|40)': ('openmpi',), r'libmpi(?:ch|fort|chfort)?\.so\.12|libmpich\.so': ('mpich', 'impi')}


class OtherMpi(PlumblineError):
    '''A program is there, and was built with another MPI.'''


def search_path(environment):
    '''The PATH that commands of a ReFrame environment see, its modules loaded.

    :raises PlumblineError: if one of them cannot be loaded here.
    '''
    if not getattr(environment, 'modules', ()):
        return environments.expanded(dict(environment.env_vars).items(), os.environ).get('PATH', '')
    before = snapshot()
    try:
        loadenv(environment)
        return os.environ.get('PATH', '')
    except ReframeError as error:
        raise PlumblineError(f'the modules of {environment.name} cannot be loaded here: {str(error).splitlines()[0]}') from None
    finally:
        before.restore()


def families_of(program):
    '''The families of MPI that a program can be of, from the libraries that it needs; None where that cannot be told.'''
    try:
        needed = subprocess.run(['readelf', '-d', program], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    for pattern, families in _LIBRARIES.items():
        if re.search(rf'\(NEEDED\).*\[({pattern})', needed):
            return families
    return None


def folders(environment, extra, below=()):
    '''Where programs of an environment are, as a PATH: in the folder that its ``extras`` name, or where its modules say.

    :arg extra: entry of the environment's ``extras`` that names the folder.
    :arg below: folders below that one where they may be as well.
    '''
    folder = environment.extras.get(extra)
    return os.pathsep.join(map(str, (folder, *(Path(folder) / part for part in below)))) if folder else search_path(environment)


def find(names, environment, family=None, *, extra, package, where=None, title=None):
    '''Path of a program for an environment.

    One that was built with another MPI is not taken: it would run as so many programs of one process.

    :arg names: what it may be called, the usual name first.
    :arg family: the environment's :class:`plumbline.mpi.families.Family`; None for a program without MPI.
    :arg extra: entry of the environment's ``extras`` that names its folder.
    :arg package: where to get it, e.g. ``with Spack: hpcg``.
    :arg where: what :func:`folders` gave; without it, it is asked.
    :arg title: what it is called in errors, by default the usual name: programs of one title that are missing have one reason.
    :raises PlumblineError: where it is not found, with how to get it; or where the extra names a folder without it; :class:`OtherMpi`.
    '''
    title = title or names[0]
    how = (f"install it{f' for {family.title}' if family else ''} ({package}) and name the folder of {title} as '{extra}' in the extras of the "
           f'environment {environment.name}')
    where = folders(environment, extra) if where is None else where
    path = next(filter(None, (shutil.which(name, path=where) for name in names)), None)
    if not path:
        raise PlumblineError(f'{title} is not in {environment.extras.get(extra) or "the PATH of " + environment.name}: {how}')
    known = families_of(path) if family else None
    if known and family.name not in known:
        raise OtherMpi(f'{title} in {os.path.dirname(path)} was not built with {family.title}: {how}')
    return path
