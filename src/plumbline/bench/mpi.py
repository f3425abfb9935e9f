'''What the figures of the MPI programs share: the MPIs of this machine, the programs built with each.'''

import math
import os

from plumbline.bench.common import output_of
from plumbline.errors import PlumblineError
from plumbline.model import records
from plumbline.mpi import environments
from plumbline.mpi.families import families
from plumbline.settings import ROOT


class MpiMachine:
    '''One MPI's programs, built here.

    :attr family: see :class:`plumbline.mpi.families.Family`.
    :attr cpus: those that may be used, in the order of ranks.
    :attr memory: bytes.
    :attr imb: folder of the Intel MPI Benchmarks of this MPI, or None.
    '''

    def __init__(self, machine, environment):
        name, = set(environment['features']) & set(families())
        self.family, self.cpus, self.memory = families()[name], machine.cpus, machine.memory
        self.folder, self.launcher = f'{machine.folder}/{environment["name"]}', environment['extras']['launcher']
        self.imb = environment['extras'].get('imb')
        self.env = environments.expanded(environment['env_vars'], os.environ)
        self._call('cmake', '-S', ROOT / 'src/mpi', '-B', self.folder, f'-DCMAKE_C_COMPILER={environment["cc"]}')
        self._call('cmake', '--build', self.folder, '--parallel')

    def _call(self, *command, timeout=math.inf, **variables):
        os.makedirs(self.folder, exist_ok=True)
        return output_of(command, seconds=timeout, cwd=self.folder, env={**self.env, **variables})

    def run(self, program, *options, ranks=2, transport='shm', preload=None, **variables):
        '''The measurement records of one run; ranks that are more than the CPUs share them.

        :arg preload: name of a library of ours that stands between the program and its MPI.
        :arg variables: of the environment.
        '''
        loaded = ['env', f'LD_PRELOAD={self.folder}/lib/libplumbline_{preload}.so'] if preload else []
        bound = ['--cpus', ','.join(map(str, self.cpus[:ranks]))] if ranks <= len(self.cpus) else []
        said = self.launch(*loaded, f'{self.folder}/bin/{program}', *bound, *options, ranks=ranks, transport=transport, **variables)
        return records.parse(said).measurements

    def launch(self, *command, ranks=2, transport='shm', **variables):
        '''What a program says that runs with a rank on each of the first CPUs, or with ranks that share all of them.'''
        cpus = self.cpus[:ranks]
        shared = ranks > len(cpus)
        settings = (self.family.start + (self.family.shared if shared else self.family.bind)).filled(ranks=ranks, cpus=','.join(map(str, cpus)))
        settings += self.family.transports[transport]
        for prepare in () if shared else self.family.bind_commands(cpus):
            self._call('sh', '-c', prepare)
        return self._call(*self.launcher, *settings.options, *command, timeout=600, **settings.env, **variables)


def machines(machine):
    '''Yield an :class:`MpiMachine` for each MPI found.

    :raises PlumblineError: if there is none, or only one CPU.
    '''
    if len(machine.cpus) < 2:
        raise PlumblineError('two ranks need two CPUs')
    found = environments.found(as_root=True)
    if not found:
        raise PlumblineError('no MPI was found: install one, with its compiler wrapper mpicc')
    for environment in found:
        yield MpiMachine(machine, environment)
