'''Checks whose jobs end as the test wishes: what they measure is made up, the scheduler is real.'''

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_before, sanity_function, variable

from plumbline.rfm.job import Job


class Made(rfm.RunOnlyRegressionTest, Job):
    plumbline = variable(dict, value={}, loggable=True)
    valid_systems, valid_prog_environs = ['*'], ['*']
    sourcesdir = None
    executable = 'hostname'

    @sanity_function
    def is_sane(self):
        self.plumbline = {'schema': 1, 'metrics': [{
            'name': 'bandwidth.plain', 'metric': 'bandwidth', 'subject': 'plain', 'subsystem': 'memory', 'value': 3.0, 'unit': 'MB/s', 'samples': [3.0],
            'n': 1, 'spread': 0.0, 'interval': [3.0, 3.0], 'reference': None, 'reference_from': None, 'limit': None,
            'verdict': 'NO REFERENCE', 'reason': 'made'}]}
        return True


@rfm.simple_test
class Quick(Made):
    '''A job that runs for no time.'''


@rfm.simple_test
class Asking(Made):
    '''A job that asks the scheduler for something.'''

    option = parameter(['-p nosuch', '-p closed', '-p inactive', '-p down', '-w n9', '--mem=999999G', '-p short --time=99'])

    @run_before('run')
    def ask(self):
        self.job.options += [self.option]


@rfm.simple_test
class Waiting(Made):
    '''A job whose turn does not come.'''

    max_pending_time = '3s'

    @run_before('run')
    def wait(self):
        self.job.options += ['--begin=now+1hour']


@rfm.simple_test
class Whole(Made):
    '''A job that tells how many CPUs its step has.'''

    executable, executable_opts = 'sh', ['-c', "'echo CPUs: $SLURM_CPUS_ON_NODE'"]
    num_cpus_per_task = 2

    @sanity_function
    def has_all(self):
        return sn.assert_found('CPUs: 8$', self.stdout)


@rfm.simple_test
class Ending(Made):
    '''A job that ends in a way.'''

    way = parameter({'fails': 'sh -c "echo all is lost >&2; exit 3"', 'killed': 'sh -c "kill -9 $$"'}.items(), fmt=lambda way: way[0])

    @run_before('run')
    def end(self):
        self.executable = self.way[1]


@rfm.simple_test
class Endless(Made):
    '''A job that runs until something ends it.'''

    executable = 'sleep 86399'
    time_limit = '10m'
    by = parameter(['somebody', 'limit', 'node'])

    @run_before('run')
    def name_the_job(self):
        self.job.options += [f'--job-name={self.by}']
