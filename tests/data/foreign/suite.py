'''A suite that is not ours, with what such suites have: references in ReFrame's form and none, bases with hooks, parameters and fixtures,
tests that measure nothing, tests that fail, the old style of patterns.

``THEIR_SPEED`` is by how much everything is faster than usual; with ``THEIR_LOSS`` a figure is not printed.
'''

import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import fixture, parameter, performance_function, run_after, run_before, sanity_function, variable, xfail

SPEED = float(os.environ.get('THEIR_SPEED', '1'))


class their_build(rfm.CompileOnlyRegressionTest):
    build_system, sourcesdir = 'CustomBuild', None

    @run_before('compile')
    def say(self):
        self.build_system.commands = ['echo built > program']

    @sanity_function
    def is_built(self):
        return sn.assert_true(os.path.exists(os.path.join(self.stagedir, 'program')))


class StreamMixin(rfm.RegressionMixin):
    '''As the bases of hpctestlib and EESSI: what is measured, without where.'''
    rate = variable(float, value=12.5 * SPEED)

    @run_before('run')
    def set_output(self):
        self.executable, self.executable_opts = 'echo', [f'copy {self.rate}' + f' latency {3.25 / SPEED}' * ('THEIR_LOSS' not in os.environ)]

    @performance_function('GB/s', perf_key='copy')
    def copy_rate(self):
        return sn.extractsingle(r'copy (\S+)', self.stdout, 1, float)

    @performance_function('us')
    def latency(self):
        return sn.extractsingle(r'latency (\S+)', self.stdout, 1, float)


class Theirs(rfm.RunOnlyRegressionTest):
    valid_systems, valid_prog_environs = ['*'], ['*']
    executable, sourcesdir = 'echo', None
    executable_opts = ['works']

    @sanity_function
    def has_run(self):
        return sn.assert_found(r'\S', self.stdout)


@rfm.simple_test
class their_stream(Theirs, StreamMixin):
    size = parameter([10, 20])
    program = fixture(their_build, scope='environment')
    tags = {'stream'}
    reference = {'*': {'copy': (12.5, -0.2, None, 'GB/s')}}


@rfm.simple_test
class their_application(Theirs):
    '''Of its three figures one has an upper bound, one both and one none.'''
    tags = {'application'}
    reference = {'*': {'elapsed': (40, None, 0.5, 's'), 'energy': (-7.5, -0.01, 0.01, 'kJ')}}

    @run_after('init')
    def in_the_old_style(self):
        self.executable_opts = [f'elapsed {40 / SPEED} energy -7.5 steps {80 * SPEED}']
        self.perf_patterns = {name: sn.extractsingle(fr'{name} (\S+)', self.stdout, 1, float) for name in ('elapsed', 'energy', 'steps')}


@rfm.simple_test
class their_mount(Theirs):
    '''Measures nothing.'''
    tags = {'mount'}


@rfm.simple_test
class their_driver(Theirs):
    '''Fails its sanity, and has a figure that is never read.'''
    tags = {'driver'}

    @sanity_function
    def has_driver(self):
        return sn.assert_found('driver 5', self.stdout, msg='no driver 5')

    @performance_function('1')
    def version(self):
        return 5


@rfm.simple_test
class their_dimm(Theirs):
    '''A known issue.'''
    tags = {'dimm'}
    reference = {'*': {'triad': xfail('HPC-7: a DIMM is out', (100, -0.1, None, 'GB/s'))}}

    @performance_function('GB/s')
    def triad(self):
        return 60.0
