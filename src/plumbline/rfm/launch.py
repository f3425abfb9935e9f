'''What starts the processes of an MPI program.'''

from reframe.core.launchers import JobLauncher

from plumbline.errors import PlumblineError

#: ReFrame's launchers by Slurm itself, and those by the MPI's own command.
SRUN = ('srun', 'srunalloc')
MPIRUN = {'mpirun': 'mpirun', 'mpirun-openmpi': 'mpirun', 'mpirun-intelmpi': 'mpirun', 'mpiexec': 'mpiexec'}


class EnvironmentLauncher(JobLauncher):
    '''``mpirun`` or whatever the environment's MPI is started with.

    :arg words: the command, e.g. ``['mpirun.openmpi']``; the number of processes and the binding are options.
    '''

    def __init__(self, words=()):
        super().__init__()
        self.words = list(words)

    def command(self, job):
        return self.words


def own_words(environ, partition):
    '''The command of the MPI that starts its programs: the environment's extra ``launcher``, or the partition's launcher.

    :returns: a list of words; None where Slurm starts them.
    :raises PlumblineError: if it is a launcher that we cannot tell where each process is to run.
    '''
    if words := environ.extras.get('launcher'):
        return words
    name = partition.launcher_type.registered_name
    if name in SRUN:
        return None
    if name not in MPIRUN:
        raise PlumblineError(f'{partition.fullname} starts programs by {name}, which cannot be told the CPU of each process: give {environ.name} '
                             f"the extra `launcher`, e.g. ['mpirun'], or the partition one of {', '.join((*SRUN, *MPIRUN))}")
    return [MPIRUN[name]]
