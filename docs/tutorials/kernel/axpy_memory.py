from pathlib import Path

import reframe as rfm
from reframe.core.builtins import fixture

from plumbline.model import metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.programs import kernel_programs


class site_programs(kernel_programs):
    project, executable, listed = Path(__file__).resolve().parent, 'build/bin/axpy', 'plain'


@rfm.simple_test
class axpy_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What does our own loop get of the memory's bandwidth?'''

    program, threads, subsystem = 'axpy', 'all', 'memory'
    own_programs = fixture(site_programs, scope='environment')

    def options(self):
        return ['--variants', 'all', '--size', self.elements('memory', 24), '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        yield from self.limited(group)
