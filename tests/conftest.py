'''What all tests share.'''

import pathlib

import pytest
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
