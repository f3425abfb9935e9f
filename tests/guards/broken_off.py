'''Three checks of no time; while the job of the second one runs ReFrame gets a signal, ``CANNED_SIGNAL``, and ``CANNED_FAILS`` makes the first one a
FAIL.  What they measure is made up, ReFrame is real.'''

import os

import reframe as rfm
from reframe.core.builtins import parameter, run_before, sanity_function, variable

from plumbline.rfm.job import Job


@rfm.simple_test
class Part(rfm.RunOnlyRegressionTest, Job):
    plumbline = variable(dict, value={}, loggable=True)
    valid_systems, valid_prog_environs = ['*'], ['gnu']
    sourcesdir = None
    executable = 'true'
    tags = {'health'}
    number = parameter([1, 2, 3])

    @run_before('run')
    def end_reframe(self):
        if self.number == 2 and 'CANNED_SIGNAL' in os.environ:
            # ReFrame itself ends with a type error where a signal comes before the job is started for it.
            self.prerun_cmds = ['sleep 0.5', f"kill -s {os.environ['CANNED_SIGNAL'].removeprefix('SIG')} {os.getpid()}", 'sleep 2']

    @sanity_function
    def is_sane(self):
        self.plumbline = {'schema': 1, 'metrics': [{
            'name': 'bandwidth.plain', 'metric': 'bandwidth', 'subject': 'plain', 'subsystem': 'memory', 'value': 3.0, 'unit': 'MB/s', 'samples': [3.0],
            'n': 1, 'spread': 0.0, 'interval': [3.0, 3.0], 'reference': [3.0, -0.1, None], 'reference_from': 'made', 'limit': None,
            'verdict': 'FAIL' if self.number == 1 and 'CANNED_FAILS' in os.environ else 'PASS', 'reason': 'made'}]}
        return True
