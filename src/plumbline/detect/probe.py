'''Compilers and MPIs in PATH with some modules loaded, as JSON: ``python -m plumbline.detect.probe KIND [MODULE ...]``.

A process of its own, because a module changes the environment of the process that loads it.  Keys: ``version`` (of the module system), ``available``
(modules then), ``loaded`` (those that were not loaded before), ``compilers`` (environments of ReFrame's configuration), ``paths`` (command -> path),
``mpicc`` (its path, or null), ``mpi`` (name of compilers -> environment with that mpicc, or null); or ``error``.
'''

import json
import os
import shutil
import sys

from reframe.core.exceptions import ReframeError
from reframe.core.modules import ModulesSystem

from plumbline.mpi import environments
from plumbline.system import toolchains


def _reason(error):
    '''What the module system said of an error, in one line.'''
    said = getattr(error.__cause__, 'stderr', '') or str(error)
    lines = [' '.join(line.split()) for line in said.splitlines() if line.strip()]
    return next((line for line in lines if 'error' in line.lower()), (lines or ['it does not say why'])[-1])


def _in_path():
    compilers = toolchains.found()
    mpicc = shutil.which('mpicc')
    mpi = {one['name']: environments.of_wrapper(one, 'mpicc', 'mpirun') for one in compilers} if mpicc else {}
    paths = {one['cc']: shutil.which(one['cc']) for one in compilers}
    return {'compilers': compilers, 'paths': paths, 'mpicc': mpicc, 'mpi': mpi}


def _loaded():
    return [name for name in os.environ.get('LOADEDMODULES', '').split(':') if name]


def look(kind, modules):
    try:
        system = ModulesSystem.create(kind)
        before = _loaded()
        for module in modules:
            system.load_module(module)
        # environment-modules marks those that are loaded.
        available = [str(module).split()[0] for module in system.available_modules('')]
    except ReframeError as error:
        return {'error': _reason(error)}
    return {'version': str(system), 'available': available, 'loaded': [name for name in _loaded() if name not in before], **_in_path()}


if __name__ == '__main__':
    print(json.dumps(look(sys.argv[1], sys.argv[2:])))
