'''Where an environment's IMB is.'''

import os
import re
import shutil
import subprocess

from reframe.core.environments import snapshot
from reframe.core.exceptions import ReframeError
from reframe.core.runtime import loadenv

from plumbline.errors import PlumblineError
from plumbline.mpi import environments

#: Libraries of MPI that a program may need -> families of which they can be.
_LIBRARIES = {r'libmpi\.so\.(20|40)': ('openmpi',), r'libmpi(ch)?\.so\.12|libmpich\.so': ('mpich', 'impi')}


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


def find(program, environment, family):
    '''Path of ``IMB-MPI1``, ``IMB-RMA`` or ``IMB-NBC`` for an environment.

    It is in the folder that the environment's ``extras`` call ``imb``, or on the PATH that its modules give.  One that was built with another
    MPI is not taken: it would run as so many programs of one process.

    :arg family: the environment's :class:`plumbline.mpi.families.Family`.
    :raises PlumblineError: where it is not found, with how to get it; or where ``imb`` names a folder without it.
    '''
    how = (f"install it for {family.title} (with Spack: intel-mpi-benchmarks; Intel MPI brings its own) and name the folder "
           f"of {program} as 'imb' in the extras of the environment {environment.name}")
    folder = environment.extras.get('imb')
    if folder:
        path = shutil.which(program, path=str(folder))
    else:
        path = shutil.which(program, path=search_path(environment))
    if not path:
        raise PlumblineError(f'{program} is not in {folder or "the PATH of " + environment.name}: {how}')
    known = families_of(path)
    if known and family.name not in known:
        raise PlumblineError(f'{path} was not built with {family.title}: {how}')
    return path
