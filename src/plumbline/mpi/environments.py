'''The MPIs of a machine as ReFrame environments.

An environment of a site file for MPI checks has the features ``mpi`` and one of :func:`families.families`, ``cc`` is the
MPI's wrapper, and ``extras`` may have

- ``launcher``: the words that start a program, e.g. ``['mpirun.openmpi']``; without it the partition's launcher does;
- ``imb``: the folder of the Intel MPI Benchmarks built with this MPI.
'''

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from plumbline.mpi.families import families
from plumbline.system import toolchains

#: (family, wrapper, launcher), as distributions call them that have several.
_BY_NAME = (('openmpi', 'mpicc.openmpi', 'mpirun.openmpi'), ('mpich', 'mpicc.mpich', 'mpirun.mpich'))


def expanded(env_vars, base):
    '''The variables of a process in an environment.

    :arg env_vars: pairs of name and value, in which ``$NAME`` stands for a variable so far; :arg base: the variables outside.
    '''
    result = dict(base)
    for name, value in env_vars:
        value = re.sub(r'\$\{?(\w+)\}?', lambda match: result.get(match[1], ''), value)
        result[name] = value.rstrip(':')        # of a list that was empty before
    return result


def family_of_wrapper(wrapper):
    '''Which MPI a compiler wrapper belongs to, from its ``mpi.h``; None where it is none that we know.'''
    try:
        done = subprocess.run([wrapper, '-E', '-dM', '-include', 'mpi.h', '-x', 'c', os.devnull], text=True, timeout=20, capture_output=True)
    except (OSError, subprocess.TimeoutExpired):
        return None
    defined = {line.split()[1] for line in done.stdout.splitlines() if line.startswith('#define ')}
    # Intel MPI's defines MPICH's macros as well.
    return next((name for name in ('impi', *families()) if families()[name].header in defined), None)


def _wrapper(family, wrapper, launcher, variables=(), extras=()):
    '''What the environments of one MPI have in common, whatever compiler they tell its wrapper to use.'''
    return {'family': family, 'cc': str(wrapper), 'launcher': str(launcher), 'variables': dict(variables), 'extras': dict(extras)}


def _environment(compiler, mpi, as_root=False):
    '''The environment of a compiler and an MPI.'''
    family = families()[mpi['family']]
    wraps, allowed = family.wraps, family.as_root if as_root and os.geteuid() == 0 else {}
    variables = allowed | {wraps[language]: compiler[key] for language, key in (('c', 'cc'), ('fortran', 'ftn')) if compiler[key]}
    return {'name': f"{compiler['name']}-{mpi['family']}", 'cc': mpi['cc'], 'features': ['mpi', mpi['family']],
            'extras': {'launcher': [mpi['launcher']], **mpi['extras']},
            'env_vars': [list(pair) for pair in (mpi['variables'] | variables).items()]}


def _of_intel(root):
    '''Intel MPI as its Python packages, or its own installer, leave it below ``root``.'''
    variables = {'I_MPI_ROOT': str(root), 'PATH': f'{root}/bin:$PATH', 'LD_LIBRARY_PATH': f'{root}/lib:$LD_LIBRARY_PATH'}
    imb = {'imb': f'{root}/bin'} if (root / 'bin/IMB-MPI1').exists() else {}
    return _wrapper('impi', root / 'bin/mpicc', root / 'bin/mpirun', variables, imb)


def _intel_roots():
    '''Where Intel MPI may be: where its variables say, and where the set-up has put it.'''
    roots = [Path(path) for path in (os.environ.get('I_MPI_ROOT'), f'{sys.prefix}/impi') if path]
    return [root for root in roots if (root / 'bin/mpirun').exists() and (root / 'lib/libmpi.so.12').exists() and (root / 'include/mpi.h').exists()]


def _mpis():
    '''Family -> what the machine has of it.'''
    result = {}
    for family, wrapper, launcher in _BY_NAME:
        # Debian has wrappers without what they compile with: openmpi-bin without libopenmpi-dev.
        if shutil.which(wrapper) and shutil.which(launcher) and family_of_wrapper(wrapper) == family:
            result[family] = _wrapper(family, shutil.which(wrapper), shutil.which(launcher))
    for root in _intel_roots()[:1]:
        result['impi'] = _of_intel(root)
    if shutil.which('mpicc') and shutil.which('mpirun'):
        family = family_of_wrapper(shutil.which('mpicc'))
        if family and family not in result:     # a module's, beside the distribution's
            result[family] = _wrapper(family, shutil.which('mpicc'), shutil.which('mpirun'))
    return result


def found(compilers=None, as_root=False):
    '''Environments (dictionaries of ReFrame's configuration) of the MPIs that this machine has: one of a family and compiler.

    :arg compilers: environments as of :func:`toolchains.found`; by default the first that is there.
    :arg as_root: whether an MPI that refuses root is told not to, where root asks: for a site file to decide.
    '''
    mpis = _mpis()
    compilers = toolchains.found()[:1] if compilers is None else compilers
    return [_environment(compiler, mpis[family], as_root) for compiler in compilers
            for family in toolchains.toolchains()[compiler['name']].mpi if family in mpis]


def of_wrapper(compiler, wrapper, launcher):
    '''The environment of a compiler and the MPI of a wrapper; None where that is none that we know to go with the compiler.'''
    family = family_of_wrapper(wrapper)
    known = family in toolchains.toolchains()[compiler['name']].mpi
    return _environment(compiler, _wrapper(family, wrapper, launcher)) if known else None
