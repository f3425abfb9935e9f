'''The compilers of a machine as ReFrame environments, read from ``data/toolchains.yaml``.

Their features say what they can do (``openmp``, ``fortran``), their ``extras`` what differs: ``openmp``, the OpenMP runtime.
With the machine's MPIs they make further ones (:mod:`mpi.environments`).
'''

import functools
import os
import re
import shutil
from dataclasses import dataclass

from plumbline.schemas.parsing import shipped


@dataclass(frozen=True)
class Toolchain:
    '''Compilers of one maker: an entry of ``data/toolchains.yaml``, which says what the attributes are.'''
    name: str
    c: str
    fortran: list
    openmp: str
    mpi: list

    def found(self):
        '''Its compilers in PATH as an environment, :obj:`None` where there is no C compiler.

        Of several the one without a version in its name, which is the user's choice; else the newest that has a Fortran compiler.
        '''
        pairs = [(cc, ftn) for version in self._versions() for cc, ftn in [self._pair(version)] if cc]
        if not pairs:
            return None
        cc, ftn = next((pair for pair in pairs if pair[1] or pair[0] == self.c.format(version='')), pairs[0])
        return {'name': self.name, 'cc': cc, 'ftn': ftn or '', 'features': ['openmp', *(['fortran'] if ftn else [])],
                'extras': {'openmp': self.openmp}}

    def _pair(self, version):
        names = [name.format(version=version) for name in (self.c, *self.fortran)]
        cc, *ftn = (name if shutil.which(name) else None for name in names)
        return cc, next(filter(None, ftn), None)

    def _versions(self):
        '''``''`` first, then those of the commands in PATH, the newest first.'''
        pattern = re.compile(self.c.replace('{version}', r'-(\d+)'))
        folders = [path for path in os.environ.get('PATH', '').split(os.pathsep) if os.path.isdir(path)]
        found = [pattern.fullmatch(name) for folder in folders for name in os.listdir(folder)]
        numbers = {int(number) for match in found if match for number in match.groups()}
        return ['', *(f'-{number}' for number in sorted(numbers, reverse=True))]


@functools.cache
def toolchains():
    '''Name -> :class:`Toolchain`.'''
    return {name: Toolchain(name, **known) for name, known in shipped('toolchains').items()}


def found():
    '''Environments (dictionaries of ReFrame's configuration) of the compilers that this machine has.'''
    return [environment for toolchain in toolchains().values() if (environment := toolchain.found())]
