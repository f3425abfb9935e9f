'''Compilers in PATH.'''

import shutil

from plumbline.system import toolchains
from plumbline.system.commands import NoAnswer, ask


def in_path():
    '''Of each compiler that is known (``data/toolchains.yaml``) an environment and a remark that says what it is.'''
    return [(environment, _version(environment['cc'])) for environment in toolchains.found()]


def _version(command):
    try:
        said = ask([command, '--version']).strip().splitlines()[:1]
    except NoAnswer as error:
        return f'DECIDE: leave it out? {error}'
    return f"{shutil.which(command)}: {' '.join(said)}"
