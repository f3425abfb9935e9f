import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import metrics
from plumbline.mpi import pingpong as model
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Whole


@rfm.simple_test
class pingpong_nodes(rfm.RunOnlyRegressionTest, MpiCheck):
    '''What are latency and bandwidth between two nodes, over the network that the MPI chooses and over TCP?'''

    source = 'hager2007, section 3.2, figures 5 and 6'
    tags = {'acceptance', 'health'}
    program = 'pingpong'
    samples = 10
    ranks = 1
    nodes = 2
    transport = parameter(['default', 'tcp'], type=str)

    #: The largest message, bytes; the sizes are 0 and the powers of four up to it.
    largest = variable(Whole, value=4 * 2**20)

    def options(self):
        sizes = [0, *(4**power for power in range(self.largest.bit_length() // 2 + 1) if 4**power <= self.largest)]
        return ['--variants', 'standard', '--size', ','.join(map(str, sizes)), '--min-time', '0.005']

    def evaluate(self):
        found, of_size = (read(self.measurements, 'standard') for read in (model.curve, model.cases))
        subject, least, most = f'{self.transport}.nodes', min(found), max(found)
        yield metrics.Metric('latency', subject, found[least] * 1e6, record=of_size[least])
        yield metrics.Metric('bandwidth', subject, most / found[most] / 1e6, record=of_size[most])
