import reframe as rfm
from plumbline.imb.check import ImbCheck
from reframe.core.builtins import parameter, run_after

#: Processes, and what their messages go by.
RUNS = [('two', 'shm'), ('two', 'tcp'), ('all', 'shm'), ('all', 'tcp')]

#: What two processes do, and what all do.
MPI1 = {'two': ['PingPong', 'PingPing', 'Sendrecv', 'Exchange'], 'all': ['Allreduce', 'Bcast', 'Alltoall', 'Barrier']}
RMA = {'two': ['Unidir_put', 'Unidir_get', 'Bidir_put', 'Bidir_get', 'Put_local', 'Get_local', 'Accumulate', 'Get_accumulate',
               'Fetch_and_op', 'Compare_and_swap', 'Truly_passive_put'],
       'all': ['One_put_all', 'One_get_all', 'All_put_all', 'All_get_all', 'Put_all_local', 'Get_all_local', 'Exchange_put',
               'Exchange_get']}


@rfm.simple_test
class imb_mpi1(rfm.RunOnlyRegressionTest, ImbCheck):
    '''What do the Intel MPI Benchmarks say of messages between two processes, and of collectives on all cores?'''

    suite = 'IMB-MPI1'
    over = parameter(RUNS, fmt='.'.join)

    @run_after('init')
    def choose(self):
        self.run_with(*self.over, MPI1)
        self.tags = {'acceptance', 'upgrade', *(['health'] if self.over == ('two', 'shm') else [])}


@rfm.simple_test
class imb_rma(rfm.RunOnlyRegressionTest, ImbCheck):
    '''What do the Intel MPI Benchmarks say of puts, gets and atomic operations on memory of another process, one after the
    other (non-aggregate) and many at once (aggregate)?'''

    suite = 'IMB-RMA'
    tags = {'acceptance'}
    over = parameter(RUNS, fmt='.'.join)

    @run_after('init')
    def choose(self):
        self.run_with(*self.over, RMA)


@rfm.simple_test
class imb_nbc(rfm.RunOnlyRegressionTest, ImbCheck):
    '''What do the Intel MPI Benchmarks say of collectives that do not block: their time alone, and how much of it a process
    can compute meanwhile?'''

    suite = 'IMB-NBC'
    tags = {'acceptance'}
    ranks = 'all'
    transport = parameter(['shm', 'tcp'], type=str)
    benchmarks = ['Iallgather', 'Iallgatherv', 'Iallreduce', 'Ialltoall', 'Ialltoallv', 'Ibarrier', 'Ibcast', 'Igather',
                  'Igatherv', 'Ireduce', 'Ireduce_scatter', 'Iscatter', 'Iscatterv']
