'''What all tests share.'''

import pathlib

import pytest
import rfm
from native import KERNELS, Build


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
def measuring(programs, tmp_path_factory):
    '''Function (folder, variables) -> a workplace in which ReFrame runs the shipped checks for real, with the programs
    that these tests have built already.'''
    path = rfm.tools(tmp_path_factory.mktemp('path') / 'bin', scripts=[rfm.GUARDS / 'cmake'])

    def make(folder, **environment):
        return rfm.Workplace(folder, path, config=rfm.REPOSITORY / 'config/localhost.py',
                             CANNED_PROGRAMS=programs.folder / 'bin', **environment)
    return make
