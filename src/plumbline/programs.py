'''The builds of our programs: once per environment, where they run.'''

import os
import shutil

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function

from plumbline.job import Job
from plumbline.settings import ROOT


class built_programs(rfm.RegressionTest, Job):
    '''All programs of one of our CMake projects.

    Built on the partition, not on the login node: the flags say ``-march=native``.  Not a
    compile-only test: ReFrame 4.10.4 fails those where ``trap_job_errors`` is set, and a program
    that was built but cannot start is found here, not in every check.
    '''

    valid_systems = ['*']
    build_system = 'CMake'
    build_locally = False
    sourcesdir = None
    time_limit = '20m'
    executable_opts = ['--list']

    #: Folder of the project, and a variant of :attr:`executable` that its list must show.
    project, listed = None, None

    @run_before('compile')
    def configure(self):
        self.build_system.configuredir = str(ROOT / self.project)
        self.build_system.builddir = 'build'
        self.build_system.flags_from_environ = True
        self.build_system.max_concurrency = min(16, self.current_partition.processor.num_cpus or 4)
        self.build_system.config_opts = ['-G Ninja'] if shutil.which('ninja') else []

    @sanity_function
    def programs_start(self):
        return sn.assert_found(rf'^  {self.listed} ', self.stdout, 'the program does not list its variants')

    def path(self, program):
        '''Path of a program, for the tests that use this fixture.'''
        return os.path.join(self.stagedir, 'build', 'bin', program)


class native_programs(built_programs):
    '''All programs of ``src/`` with one environment's compilers.'''

    descr = 'Native programs'
    valid_prog_environs = ['*']
    executable = 'build/bin/triad'
    project, listed = 'src', 'plain'

    @run_before('compile')
    def keep_the_code(self):
        if 'fortran' not in self.current_environ.features:
            self.build_system.config_opts += ['-DPLUMBLINE_FORTRAN=OFF']
        # What the compiler made of the loops is read from the programs, not assumed.
        self.postbuild_cmds = [
            'for p in build/bin/*; do objdump -d --no-show-raw-insn $p > $p.asm || rm -f $p.asm; done'
        ]
