'''The builds of our programs: once per environment, where they run, by CMake or in a Spack environment.'''

import contextlib
import json
import os
import shlex
import sys
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function, variable
from reframe.core.exceptions import BuildError

from plumbline import atomic, settings
from plumbline.errors import PlumblineError
from plumbline.model import environment_errors
from plumbline.rfm import build_cache, spack
from plumbline.rfm.capacity import MeasuredCaches
from plumbline.rfm.job import EXIT_CODE, Job
from plumbline.rfm.node import cores_of
from plumbline.scheduler import job_state
from plumbline.settings import ROOT

#: Files that are compiled at a time, where there are as many cores.
MOST_COMPILERS = 16


class built_programs(rfm.RegressionTest, Job, special=True):      # type: ignore[call-arg]  # of ReFrame's metaclass
    '''All programs of one of our CMake projects.

    Built on the partition, not on the login node: the flags say ``-march=native``.  Not a compile-only test: ReFrame 4.10.4 fails those where
    ``trap_job_errors`` is set, and a program that was built but cannot start is found here, not in every check.
    '''

    valid_systems = ['*']
    build_system: Any = 'CMake'      # of the name ReFrame makes the object
    build_locally = False
    sourcesdir = None
    LASTS = '20m'
    executable_opts = ['--list']
    builds, measures = True, False

    #: Folder of the project, of ours below the root, and a variant of :attr:`executable` that its list must show.
    project: str
    listed: str

    #: What of the environment does not work, where the build failed for that (:mod:`plumbline.model.environment_errors`).
    environment_error = variable(str, type(None), value=None, loggable=True)

    #: Whether there are Fortran files among them.
    fortran = False

    @run_before('compile')
    def configure_build(self):
        try:
            #: The :class:`plumbline.rfm.spack.Locked` that has the programs; None where CMake builds them.
            self.spack = spack.locked(self.current_environ)
        except PlumblineError as error:
            raise self._build_error(str(error)) from None
        if self.spack:
            self.build_system = 'Spack'
            self.build_system.environment = str(self.spack.folder)
            # What is locked, and nothing that Spack would choose now.
            self.build_system.install_opts = ['--only-concrete']
            self.postbuild_cmds = self.spack.commands()
            return
        project = ROOT / self.project
        self.build_system.configuredir = str(project)
        self.build_system.builddir = 'build'
        self.build_system.flags_from_environ = True
        try:
            cores = len(cores_of(self.current_partition)[0])
        except PlumblineError:      # the topology is not known: that the checks say
            cores = 1
        self.build_system.max_concurrency = min(MOST_COMPILERS, cores)
        self.build_job.num_cpus_per_task = self.build_system.max_concurrency
        # Looked for where it is built; the login node may have what the nodes have not.
        self.build_system.config_opts = ['$(command -v ninja > /dev/null && echo -G Ninja)']
        if not project.is_relative_to(ROOT / 'src'):
            self.build_system.config_opts += [f"-DPLUMBLINE={ROOT / 'src'}"]
        self.prebuild_cmds = [self._try_compilers()]

    def _try_compilers(self):
        '''CMake says in forty lines what is wrong with a compiler; this in one.'''
        environ = self.current_environ
        tried = ['openmp' if 'openmp' in environ.features else 'c', environ.cc or 'cc']
        if self.fortran and 'fortran' in environ.features:
            tried += ['fortran', environ.ftn or 'f95']
        flags = {'CFLAGS': [*environ.cppflags, *environ.cflags], 'FFLAGS': environ.fflags, 'LDFLAGS': environ.ldflags}
        return shlex.join(['env', *(f"{name}={' '.join(words)}" for name, words in flags.items() if words),
                           'sh', str(ROOT / 'src/cmake/try_compilers.sh'), *tried])

    @run_before('compile', always_last=True)
    def report_end_of_build(self):
        self.postbuild_cmds += [f'echo {EXIT_CODE} 0']

    @run_before('compile', always_last=True)
    def build_once(self):
        '''Nodes of a sweep that are alike use what one of them has built, and ``make health`` what an earlier one has.'''
        if not settings.BUILDS or self.spack:
            return
        environ = self.current_environ
        request = {'commands': self.build_system.emit_build_commands(environ),
                   'compilers': [name for name in (environ.cc, environ.cxx, environ.ftn) if name],
                   'variables': dict(environ.env_vars), 'project': str(ROOT / self.project)}
        self.write_file(build_cache.REQUEST, json.dumps(request))
        fetch, publish = (shlex.join([sys.executable, '-I', '-m', 'plumbline.rfm.build_cache', verb, settings.BUILDS])
                          for verb in ('fetch', 'publish'))
        self.prebuild_cmds += [f'{fetch} && echo {EXIT_CODE} 0 && exit']
        self.postbuild_cmds += [f'{publish} || echo plumbline: the next ones have to build for themselves >&2']

    def compile_wait(self):
        '''ReFrame says no more of a build that failed than its exit code, and of one of ``squeue`` not even that.'''
        with contextlib.suppress(BuildError):
            super().compile_wait()
            if self.is_dry_run() or f'{EXIT_CODE} 0' in self.output(job=self.build_job).splitlines():
                return
        why = job_state.how(self.build_job)[1] if self.by_slurm() else None
        said = self.output('stderr', self.build_job) + self.output(job=self.build_job)
        if why := why or atomic.no_room(self.stagedir, said):
            raise BuildError(why)
        raise self._build_error(self.spack.not_installed(said) if self.spack else environment_errors.cause(said, self.current_environ.modules))

    def _build_error(self, cause):
        self.environment_error = cause
        return BuildError(environment_errors.sentence(self.current_environ.name, self.current_partition.fullname, cause))

    @sanity_function
    def programs_start(self):
        return sn.assert_found(rf'^  {self.listed} ', self.stdout, 'the program does not list its variants')

    def path(self, program):
        '''Path of a program, for the tests that use this fixture.'''
        return os.path.join(self.stagedir, 'build', 'bin', program)


class kernel_programs(built_programs):
    '''Programs of one process, with one environment's compilers; a site's own project is a class of its own (``docs/tutorials``).'''

    valid_prog_environs = ['*']
    fortran = True

    @run_before('compile')
    def keep_disassembly(self):
        if not self.spack and 'fortran' not in self.current_environ.features:
            self.build_system.config_opts += ['-DPLUMBLINE_FORTRAN=OFF']
        # What the compiler made of the loops is read from the programs, not assumed.
        self.postbuild_cmds += ['for p in build/bin/*; do objdump -d --no-show-raw-insn $p > $p.asm || rm -f $p.asm; done']


class native_programs(kernel_programs, MeasuredCaches):
    '''All programs of ``src/`` with one environment's compilers, and what of the caches is ours, by one of them.'''

    executable = 'build/bin/triad'
    project, listed = 'src', 'plain'
    measures = True


class option_programs(kernel_programs):
    '''The NAS kernels, once for each set of options (``src/cmake/flags``), the environment's own ``fflags`` as the set ``site``.  Its extra
    ``option_sets``, name -> flags, adds and replaces sets; None leaves one out.'''

    executable = 'build/bin/mxm'
    project, listed = 'src/nas', r'unchanged_\w+'

    @run_before('compile')
    def change_sets(self):
        if changed := self.current_environ.extras.get('option_sets'):
            told = ';'.join(f"{name}={'-' if flags is None else flags}" for name, flags in changed.items())
            self.build_system.config_opts += [shlex.quote(f'-DPLUMBLINE_CHANGED_SETS={told}')]
