import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.model import metrics
from plumbline.model.uncertainty import summary
from plumbline.mpi import sensitivity
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Words

#: Latencies of the source, us, and none.
LATENCIES = (0, 1, 2, 5, 10, 25)

#: Shares of the time whose price in latency is asked for.
COSTS = (0.01, 0.02, 0.05)


@rfm.simple_test
class latency_sensitivity(rfm.RunOnlyRegressionTest, MpiCheck):
    '''What would more latency cost: how much of the time do conjugate gradients and an implicit solver spend in
    communication, and how much slower do they get, when libplumbline_latency adds 1 to 25 us to every message?'''

    source = 'anderson1997, section 5.3, tables 12 and 13; latency as in Martin et al. 1997'
    subsystem = 'messages'
    application = parameter(['cg', 'sp'], type=str)

    #: Of the CPUs, one in so many has a rank: the source has tables over the number of processes.
    part = parameter([1, 2, 4], type=int)
    transport = 'shm'
    preload = 'latency'
    samples = 25
    tags = {'acceptance'}
    counts_messages = False

    #: Further options of the program, such as a smaller class for a quick look.
    size = variable(Words, value='', loggable=False)

    @run_after('init')
    def choose_program(self):
        self.program = self.application

    @run_after('setup')
    def fit_ranks_to_cpus(self):
        '''Both applications cut their data for powers of two.'''
        self.ranks = (1 << (len(self.all_cpus).bit_length() - 1)) // self.part
        if self.ranks < 2:
            self.skip_test(f'an application of one rank sends no messages: one in {self.part} of {len(self.all_cpus)} CPUs is one',
                           symptom='too_few_cpus')

    def options(self):
        self.env_vars['PLUMBLINE_LATENCY_US'] = max(LATENCIES)
        return [*self.size.split(), '--latency', ','.join(map(str, LATENCIES))]

    def evaluate(self):
        study, = sensitivity.studies(self.measurements).values()
        for latency, record in study.items():
            yield metrics.Metric('communication', f'{self.program}.{latency}us', sensitivity.share_of_communication(record), record=record)
            if not latency:
                yield metrics.flops(record, self.program, 'applications')
            else:
                yield metrics.Metric('slowdown', f'{self.program}.{latency}us', sensitivity.slowdown(study, latency))
        for cost in COSTS:
            yield from self.price(cost, study)

    def price(self, cost, study):
        '''The latency that costs this much; where the noise is larger than any cost that is not known.'''
        name, found = f'{self.program}.{round(100 * cost)}percent', sensitivity.tolerance(study, cost)
        if np.isfinite(summary(found).interval).all():
            yield metrics.Metric('latency_tolerance', name, found)
        else:
            self.skip_metric(f'latency_tolerance.{name}', f'up to {max(study)} us added cost less than the noise of the runs', symptom='noise')
