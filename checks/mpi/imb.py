import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.imb.check import ImbCheck
from plumbline.imb.subjects import subject
from plumbline.model import metrics
from plumbline.rfm.variables import Whole, Wholes

#: Processes, and what their messages go by.
RUNS = [('two', 'shm'), ('two', 'tcp'), ('all', 'shm'), ('all', 'tcp')]

#: What two processes do, and what all do.
MPI1 = {'two': ['PingPong', 'PingPing', 'Sendrecv', 'Exchange'], 'all': ['Allreduce', 'Bcast', 'Alltoall', 'Barrier']}
RMA = {'two': ['Unidir_put', 'Unidir_get', 'Bidir_put', 'Bidir_get', 'Put_local', 'Get_local', 'Accumulate', 'Get_accumulate',
               'Fetch_and_op', 'Compare_and_swap', 'Truly_passive_put'],
       'all': ['One_put_all', 'One_get_all', 'All_put_all', 'All_get_all', 'Put_all_local', 'Get_all_local', 'Exchange_put',
               'Exchange_get']}


class Measured(ImbCheck):
    '''What is measured of each table, and what of it becomes a metric.'''

    #: Runs of IMB, each of them a sample: 10 at least.
    runs = variable(Whole, value=12, loggable=False)

    #: Message lengths, bytes.  The shortest carries one float: for the empty messages of collectives MPI does nothing.
    lengths = variable(Wholes, value=[4**power for power in range(1, 12)], loggable=False)

    #: What a process may use for buffers, GB (IMB's ``-mem``; its own default).
    buffers = 1.0

    #: IMB's ``-iter``: how often at most, and MB after which a length is repeated less often.
    repetitions = variable(str, value='', loggable=False)

    #: ``two`` or ``all`` -> what so many processes do, of a check with a parameter ``over``: of :data:`RUNS`.
    of_processes = {}

    @run_after('init')
    def choose_benchmarks(self):
        if self.of_processes:
            processes, self.transport = self.over
            self.ranks, self.benchmarks = 2 if processes == 'two' else 'all', self.of_processes[processes]

    def iterations(self):
        '''IMB's own for two processes in shared memory, whose messages take a tenth of a microsecond, and less for the others; where all send to
        all, what more than 64 of them move grows with the square of their number.'''
        volume = max(1, round(10 * min(1.0, (64 / len(self.cpus))**2)))      # MB
        return self.repetitions or ('1000,40' if self.ranks == 2 and self.transport == 'shm' else f'200,{volume}')

    def evaluate(self):
        for case in self.measured_by.cases:
            at = subject(case, self.transport)
            single = subject(case, self.transport, with_size=False)
            if 'bandwidth' not in case.values:
                yield metrics.latency(case.seconds, at)
            elif case.bytes == min(self.fitting) or case.kind == 'element':
                yield metrics.latency(case.seconds, single)
            if 'bandwidth' in case.values and case.kind != 'element':
                yield metrics.Metric('bandwidth', at, case.values['bandwidth'])
            if 'overlap' in case.values:
                yield metrics.Metric('overlap', at, case.values['overlap'] / 100, unjudged=(
                    'IMB cuts the overlap of each run at 0 and 100 %, so that runs have no spread to judge by'))
            if 't_ovrl' in case.values and case.kind == 'passive':
                yield metrics.Metric('latency_busy_target', at, case.values['t_ovrl'])


@rfm.simple_test
class imb_mpi1(rfm.RunOnlyRegressionTest, Measured):
    '''What do the Intel MPI Benchmarks say of messages between two processes, and of collectives on all cores?'''

    suite, of_processes = 'IMB-MPI1', MPI1
    over = parameter(RUNS, fmt='.'.join)

    @run_after('init')
    def tag_shm_as_health(self):
        self.tags = {'acceptance', 'upgrade', *(['health'] if self.over == ('two', 'shm') else [])}


@rfm.simple_test
class imb_rma(rfm.RunOnlyRegressionTest, Measured):
    '''What do the Intel MPI Benchmarks say of puts, gets and atomic operations on memory of another process, one after the
    other (non-aggregate) and many at once (aggregate)?'''

    suite, of_processes = 'IMB-RMA', RMA
    tags = {'acceptance'}
    over = parameter(RUNS, fmt='.'.join)


@rfm.simple_test
class imb_nbc(rfm.RunOnlyRegressionTest, Measured):
    '''What do the Intel MPI Benchmarks say of collectives that do not block: their time alone, and how much of it a process can compute meanwhile?'''

    suite = 'IMB-NBC'
    tags = {'acceptance'}
    ranks = 'all'
    transport = parameter(['shm', 'tcp'], type=str)
    benchmarks = ['Iallgather', 'Iallgatherv', 'Iallreduce', 'Ialltoall', 'Ialltoallv', 'Ibarrier', 'Ibcast', 'Igather',
                  'Igatherv', 'Ireduce', 'Ireduce_scatter', 'Iscatter', 'Iscatterv']
