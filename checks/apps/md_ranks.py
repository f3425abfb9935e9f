import reframe as rfm
from reframe.core.builtins import variable

from plumbline.model import metrics, records
from plumbline.mpi import sensitivity
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Whole

#: Of a pass (src/kernels/md).
STEPS = 20


@rfm.simple_test
class md_ranks(rfm.RunOnlyRegressionTest, MpiCheck):
    '''How many steps of how many atoms does a molecular dynamics program do in a second on a three-dimensional grid of processes, and what share of
    the time is communication?'''

    source = 'hager2007, section 4: the class of IMD'
    subsystem = 'applications'
    program, ranks, transport = 'md', 'all', 'shm'
    counts_messages = False
    tags = {'acceptance'}

    #: Cells of the crystal along an edge of the box, of 4 atoms each.
    cells = variable(Whole, value=20, loggable=False)

    def options(self):
        if len(self.cpus) < 2:
            self.skip_test('one process sends no messages: there is one CPU', symptom='too_few_cpus')
        return ['--variants', 'all', '--size', self.cells]

    def evaluate(self):
        for record in self.measurements:
            yield metrics.Metric('figure_of_merit', record['variant'], STEPS * record['size'] / records.per_pass(record), record=record)
            yield metrics.Metric('communication', record['variant'], sensitivity.share_of_communication(record), record=record)
