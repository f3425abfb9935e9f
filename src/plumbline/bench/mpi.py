'''What the figures of the MPI programs share: the MPIs of this machine, the programs built with each.'''

import functools
import os

from plumbline.bench.common import attempted, output_of
from plumbline.errors import PlumblineError
from plumbline.model import records
from plumbline.mpi import environments
from plumbline.mpi.families import families
from plumbline.settings import ROOT


class MpiMachine:
    '''One MPI's programs, built here when they are first asked for.

    :attr family: see :class:`plumbline.mpi.families.Family`.
    :attr cpus: those that may be used, in the order of ranks.
    :attr memory: bytes.
    :attr imb: folder of the Intel MPI Benchmarks of this MPI, or None.
    '''

    def __init__(self, machine, environment):
        name, = set(environment['features']) & set(families())
        self.family, self.cpus, self.memory = families()[name], machine.cpus, machine.memory
        self._place, self._cc, self.launcher = f'{machine.place}/{environment["name"]}', environment['cc'], environment['extras']['launcher']
        self.imb = environment['extras'].get('imb')
        self.env = environments.expanded(environment['env_vars'], os.environ)

    @functools.cached_property
    def folder(self):
        '''The folder of the build.'''
        output_of(['cmake', '-S', ROOT / 'src/mpi', '-B', self._place, f'-DCMAKE_C_COMPILER={self._cc}'], env=self.env)
        output_of(['cmake', '--build', self._place, '--parallel'], env=self.env)
        return self._place

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
            output_of(['sh', '-c', prepare], cwd=self.folder, env=self.env)
        return output_of([*self.launcher, *settings.options, *command], seconds=600, cwd=self.folder, env={**self.env, **settings.env, **variables})


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


def of_each(figures):
    '''Decorates a generator function (:class:`MpiMachine`, pairs) of figures: one of (machine, pairs), which yields those of each MPI found.'''
    def of_all(machine, pairs):
        for each in machines(machine):
            yield from attempted(each.family.title, figures, each, pairs)
    return of_all
