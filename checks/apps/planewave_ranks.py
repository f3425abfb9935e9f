import reframe as rfm
from reframe.core.builtins import run_after, variable

from plumbline.model import limits, metrics
from plumbline.mpi import sensitivity
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Size

#: Points along an edge of the largest grid (src/kernels/planewave), of which each process has a plane.
MOST_RANKS = 256


@rfm.simple_test
class planewave_ranks(rfm.RunOnlyRegressionTest, MpiCheck):
    '''What is left of a plane-wave code when its grid is cut into slabs: which share of the time are the all-to-all exchanges of its transforms
    and the sums of its products?'''

    source = 'hager2007, section 4: the class of EXX and Oak3D'
    subsystem = 'applications'
    program, ranks, transport = 'planewave', 'all', 'shm'
    counts_messages = False
    tags = {'acceptance'}
    env_vars = dict.fromkeys(('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'BLIS_NUM_THREADS'), '1')      # each rank calls it

    #: Points along an edge of the grid, a plane for each rank at least; 0: 24, or as many as there are ranks.
    points = variable(Size, value=0, loggable=False)

    @run_after('setup')
    def leave_cpus_out(self):
        if self.ranks == 'all' and len(self.cpus) > MOST_RANKS:
            self.ranks = MOST_RANKS // self.nodes
            self.note(f'{self.ranks} of {len(self.all_cpus)} cores take part: the grid has {MOST_RANKS} planes at most')

    def options(self):
        if len(self.cpus) < 2:
            self.skip_test('one process sends no messages: there is one CPU', symptom='too_few_cpus')
        return ['--variants', 'all', '--size', self.points or max(24, len(self.cpus))]

    def evaluate(self):
        found = {record['variant']: record for record in self.measurements}
        for variant, record in found.items():
            yield metrics.flops(record, variant)
            yield metrics.Metric('communication', variant, sensitivity.share_of_communication(record), record=record)
        if 'fftw' in found:
            yield metrics.Metric('speedup', 'fftw', limits.paired_ratio(found['fftw'], found['plain'], 'flops'))
            return
        for metric in ('flops.fftw', 'communication.fftw', 'speedup.fftw'):
            self.skip_metric(metric, 'built without FFTW, or without BLAS: install libfftw3-dev and libopenblas-openmp-dev, or others, and build '
                             'again')
