'''The launcher of an environment's MPI.'''

from reframe.core.launchers import JobLauncher


class EnvironmentLauncher(JobLauncher):
    '''``mpirun`` or whatever the environment's MPI is started with.

    :arg words: the command, e.g. ``['mpirun.openmpi']``; the number of processes and the binding are options.
    '''

    def __init__(self, words=()):
        super().__init__()
        self.words = list(words)

    def command(self, job):
        return self.words
