'''The build of the MPI programs.'''

import os

from reframe.core.builtins import run_before

from plumbline.errors import in_one_line
from plumbline.rfm.launch import EnvironmentLauncher, own_words
from plumbline.rfm.programs import built_programs


class mpi_programs(built_programs):
    '''All programs of ``src/mpi`` and the libraries of ``src/interpose``, with one environment's MPI.'''

    valid_prog_environs = ['+mpi']
    executable = 'build/bin/pingpong'
    project, listed = 'src/mpi', 'standard'

    @run_before('run')
    def start_one_process(self):
        '''A program of one process is started by the MPI as well: that it starts is what is asked.'''
        with in_one_line():
            words = own_words(self.current_environ, self.current_partition)
        if words:
            self.job.launcher = EnvironmentLauncher(words)
            self.job.launcher.options = ['-np', '1']

    def library(self, name):
        '''Where a library that stands between a program and its MPI lies, e.g. ``pack``.'''
        return os.path.join(self.stagedir, 'build/lib', f'libplumbline_{name}.so')
