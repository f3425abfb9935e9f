'''What ReFrame's hpctestlib has and ``suite.py`` has not: packs of parameters, fixtures of fixtures, figures of a hook, references that are
none, properties that are logged, what a site has to set.'''

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import deferrable, fixture, loggable, parameter, required, run_after, run_before, sanity_function, variable


class fetched(rfm.RunOnlyRegressionTest):
    local, executable, sourcesdir = True, 'echo', None

    @sanity_function
    def is_there(self):
        return sn.assert_eq(self.job.exitcode, 0)


class built(rfm.CompileOnlyRegressionTest):
    build_type = parameter(['cpu', 'cuda'])
    build_system, sourcesdir = 'CustomBuild', None
    source = fixture(fetched, scope='session')

    @run_before('compile')
    def build(self):
        self.build_system.commands = [f'test -d {self.source.stagedir}']

    @sanity_function
    def is_built(self):
        return True


class mpi_benchmark(rfm.RunOnlyRegressionTest):
    num_tasks, executable, sourcesdir = required, 'echo', None
    message_size = variable(int)
    benchmark_info = parameter([('mpi.pt2pt.standard_bw', 'bandwidth'), ('mpi.pt2pt.standard_latency', 'latency')], fmt=lambda pack: pack[0], loggable=True)
    binaries = fixture(built, scope='environment', variants={'build_type': lambda kind: kind == 'cpu'})

    @loggable
    @property
    def figure(self):
        return self.benchmark_info[1]

    @run_after('init')
    def choose(self):
        self.message_size, unit = (8, 'us') if self.figure == 'latency' else (4194304, 'MB/s')
        self.executable_opts = [str(self.message_size), '3.25']
        self.perf_variables = {self.figure: sn.make_performance_function(self._extract(), unit)}
        self.reference = {'*': {self.figure: (None, None, None, unit)}}

    @deferrable
    def _extract(self):
        return sn.extractsingle(rf'^{self.message_size}\s+(\S+)', self.stdout, 1, float)

    @sanity_function
    def has_run(self):
        return sn.assert_found(rf'^{self.message_size}', self.stdout)


@rfm.simple_test
class site_mpi(mpi_benchmark):
    valid_systems, valid_prog_environs = ['*'], ['*']
    num_tasks = 1
