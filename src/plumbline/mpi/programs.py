'''The build of the MPI programs: once per environment, where they run.'''

import os
import shutil

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function

from plumbline.job import Job
from plumbline.mpi.launch import EnvironmentLauncher
from plumbline.settings import ROOT


class mpi_programs(rfm.RegressionTest, Job):
    '''All programs of ``src/mpi`` and the libraries of ``src/interpose``, with one environment's MPI.'''

    descr = 'MPI programs'
    valid_systems = ['*']
    valid_prog_environs = ['+mpi']
    build_system = 'CMake'
    build_locally = False
    sourcesdir = None
    time_limit = '20m'
    executable = 'build/bin/pingpong'
    executable_opts = ['--list']

    @run_before('compile')
    def configure(self):
        self.build_system.configuredir = str(ROOT / 'src/mpi')
        self.build_system.builddir = 'build'
        self.build_system.flags_from_environ = True
        self.build_system.max_concurrency = min(16, self.current_partition.processor.num_cpus or 4)
        self.build_system.config_opts = ['-G Ninja'] if shutil.which('ninja') else []

    @run_before('run')
    def start_one(self):
        '''A program of one process is started by the MPI as well: that it starts is what is asked.'''
        words = self.current_environ.extras.get('launcher')
        if words:
            self.job.launcher = EnvironmentLauncher(words)
            self.job.launcher.options = ['-np', '1']

    @sanity_function
    def programs_start(self):
        return sn.assert_found(r'^  standard ', self.stdout, 'the program does not list its variants')

    def path(self, program):
        '''Where a program lies.'''
        return os.path.join(self.stagedir, 'build/bin', program)

    def library(self, name):
        '''Where a library that stands between a program and its MPI lies, e.g. ``pack``.'''
        return os.path.join(self.stagedir, 'build/lib', f'libplumbline_{name}.so')
