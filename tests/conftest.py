'''What all tests share.'''

import functools
import os
import pathlib

import pytest
import rfm
from mpi_native import MPIS, MpiBuild
from native import KERNELS, Build

from plumbline import toolchains


@pytest.fixture(scope='session')
def repository() -> pathlib.Path:
    '''The root of this clone.'''
    return pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope='session')
def programs(tmp_path_factory) -> Build:
    '''The native programs as users get them.'''
    return Build(tmp_path_factory.mktemp('programs'))


@pytest.fixture(scope='session')
def sanitized(tmp_path_factory) -> Build:
    '''The native programs under the address and undefined-behaviour sanitizers.'''
    return Build(tmp_path_factory.mktemp('sanitized'), '-DPLUMBLINE_SANITIZE=address,undefined', targets=KERNELS)


@pytest.fixture(scope='session')
def llvm(tmp_path_factory):
    '''The programs with threads, built with clang, and with flang where it is.'''
    found = toolchains.toolchains()['llvm'].found()
    if not found:
        pytest.skip('clang is not there')
    fortran = [f"-DCMAKE_Fortran_COMPILER={found['ftn']}"] if found['ftn'] else ['-DPLUMBLINE_FORTRAN=OFF']
    return Build(tmp_path_factory.mktemp('llvm'), f"-DCMAKE_C_COMPILER={found['cc']}", *fortran, targets=KERNELS)


@pytest.fixture(scope='session')
def built_already(tmp_path_factory):
    '''A PATH in which ``cmake`` hands out programs that these tests have built.'''
    return rfm.tools(tmp_path_factory.mktemp('path') / 'bin', scripts=[rfm.GUARDS / 'cmake'])


@pytest.fixture(scope='session')
def measuring(programs, built_already):
    '''Function (folder, variables) -> a workplace in which ReFrame runs the shipped checks for real, with the programs
    that these tests have built already.'''
    def make(folder, **environment):
        return rfm.Workplace(folder, built_already, config=rfm.REPOSITORY / 'config/localhost.py',
                             CANNED_PROGRAMS=programs.folder / 'bin', **environment)
    return make


@pytest.fixture(scope='session')
def mpi_programs(tmp_path_factory):
    '''Function (family) -> the MPI programs built with it, once; skips the test where it is not there.'''
    return functools.cache(lambda mpi: MpiBuild(tmp_path_factory.mktemp(f'mpi-{mpi}'), mpi))


@pytest.fixture(scope='session')
def measuring_mpi(mpi_programs, built_already, tmp_path_factory):
    '''Function (folder, family, variables) -> a workplace in which ReFrame runs the shipped MPI checks for real, with the
    programs that these tests have built already.'''
    canned = tmp_path_factory.mktemp('wrappers')

    def make(folder, mpi, **environment):
        link = canned / os.path.basename(MPIS[mpi]['cc']) if mpi in MPIS else None
        built = mpi_programs(mpi)
        if not link.exists():
            link.symlink_to(built.folder)
        return rfm.Workplace(folder, built_already, config=rfm.REPOSITORY / 'config/localhost.py', CANNED_MPI=canned, **environment)
    return make


@pytest.fixture(scope='session')
def mpi_sanitized(tmp_path_factory):
    '''The same under the address and undefined-behaviour sanitizers.'''
    return functools.cache(lambda mpi: MpiBuild(tmp_path_factory.mktemp(f'sanitized-{mpi}'), mpi,
                                                '-DPLUMBLINE_SANITIZE=address,undefined'))
