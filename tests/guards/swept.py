'''A check of no time for sweeps.  ``SWEPT`` says what becomes of it on which node, e.g. ``n2=dies,n3=sleeps``.'''

import os
import signal
import time

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function, variable

from plumbline.rfm.job import Job

NODE = os.environ.get('SLURMD_NODENAME', '')
STORY = dict(pair.split('=') for pair in os.environ.get('SWEPT', '').split(',') if pair).get(NODE)
IS_SECOND = '/again/' in os.environ.get('PLUMBLINE_REPORTS', '')
#: As many as say how they scatter.
NAMES = ['plain', *(f'v{number}' for number in range(9))]
VALUE = {'slow': 60.0, 'recovers': 100.0 if IS_SECOND else 60.0}.get(STORY, 100.0)


@rfm.simple_test
class Swept(rfm.RunOnlyRegressionTest, Job):
    '''What becomes of a node?'''

    plumbline = variable(dict, value={}, loggable=True)
    valid_systems = ['*']
    valid_prog_environs = ['gnu']
    executable = 'false' if STORY == 'fails' else 'true'
    sourcesdir = None

    @run_before('run')
    def live_or_die(self):
        if STORY == 'dies' or (STORY == 'relapses' and IS_SECOND):
            os.kill(os.getpid(), signal.SIGKILL)
        if STORY == 'sleeps':
            time.sleep(600)

    @sanity_function
    def is_sane(self):
        return True

    @run_before('performance')
    def leave_result(self):
        if STORY == 'fails':        # ReFrame comes here all the same
            return
        self.plumbline = {'schema': 1, 'machine': {'cpu_model': 'made-up CPU', 'memory_kib': 2**20}, 'metrics': [
            {'name': f'bandwidth.{name}', 'metric': 'bandwidth', 'subject': name, 'value': value, 'unit': 'MB/s',
             'samples': [value] * 3, 'n': 3, 'spread': 0.0, 'interval': [value, value], 'reference': None,
             'reference_from': None, 'limit': None, 'verdict': 'NO REFERENCE', 'reason': 'made', 'subsystem': 'memory, all threads'}
            for name in NAMES for value in [VALUE if STORY != 'recovers' or name == 'plain' else 100.0]]}
