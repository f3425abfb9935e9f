'''Checks that end in every way that ReFrame knows, for a true run report (test_archive.py).'''

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import fixture, parameter, performance_function, run_after, run_before, sanity_function, variable


def _metric(verdict, value=3.0):
    return {'name': 'bandwidth.plain', 'metric': 'bandwidth', 'subject': 'plain', 'value': value,
            'unit': 'MB/s', 'samples': [2.0, value, 4.0], 'n': 3, 'spread': 0.2,
            'interval': [2.0, 4.0], 'reference': [3.0, -0.5, None],
            'reference_from': 'portable.yaml', 'limit': 5.0, 'verdict': verdict, 'reason': 'made', 'subsystem': 'L1'}


class Tiny(rfm.RunOnlyRegressionTest):
    plumbline = variable(dict, value={}, loggable=True)
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'true'
    sourcesdir = None

    @sanity_function
    def is_sane(self):
        return True


class tiny_fixture(Tiny):
    pass


class broken_fixture(Tiny):
    @sanity_function
    def is_sane(self):
        return sn.assert_true(False, msg='no build')


@rfm.simple_test
class Good(Tiny):
    level = parameter(['L1', 'memory'])
    built = fixture(tiny_fixture, scope='environment')

    @run_before('performance')
    def leave_result(self):
        self.plumbline = {'schema': 1, 'level': self.level, 'threads': 'one', 'timed_seconds': 9.0,
                          'metrics': [_metric('PASS'), {**_metric('NO REFERENCE'),
                                                        'name': 'bandwidth.nt', 'subject': 'nt',
                                                        'reference': None, 'limit': None}]}


@rfm.simple_test
class Silent(Tiny):
    pass


@rfm.simple_test
class Insane(Tiny):
    @sanity_function
    def is_sane(self):
        self.plumbline = {'schema': 1, 'metrics': [_metric('PASS')]}
        return sn.assert_true(False, msg='wrong result\nin line 2')


@rfm.simple_test
class Unstable(Tiny):
    '''The median misses the reference, the interval does not: ReFrame fails, Plumbline doubts.'''
    reference = {'*': {'bandwidth.plain': (9.0, -0.1, None, 'MB/s')}}

    @run_before('performance')
    def leave_result(self):
        self.plumbline = {'schema': 1, 'metrics': [_metric('UNSTABLE')]}
        self.perf_variables = {
            'bandwidth.plain': sn.make_performance_function(sn.defer(3.0), 'MB/s')}


@rfm.simple_test
class Skipped(Tiny):
    @run_after('setup')
    def leave(self):
        self.plumbline = {'skipped': [{'metric': None, 'reason': 'no counters here'}]}
        self.skip_if(True, 'no counters here')


@rfm.simple_test
class Dependent(Tiny):
    built = fixture(broken_fixture, scope='environment')


@rfm.simple_test
class OutOfSchema(Tiny):
    @performance_function('MB/s')
    def bandwidth(self):
        self.plumbline = {'schema': 1, 'metrics': [{'name': 'bandwidth'}]}
        return 1.0
