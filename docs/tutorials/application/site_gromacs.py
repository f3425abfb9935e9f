import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import sanity_function

from plumbline.judged import Judged


@rfm.simple_test
class site_gromacs(rfm.RunOnlyRegressionTest, Judged):
    '''How many nanoseconds a day does GROMACS simulate of our users' membrane?'''

    valid_prog_environs = ['+mpi']
    modules = ['gromacs']
    executable = 'gmx_mpi'
    executable_opts = ['mdrun', '-s', 'membrane.tpr', '-nsteps', '2000']
    num_tasks, num_tasks_per_node, threads = 4, 2, 1
    repeat = 3
    LASTS = '30m'

    @sanity_function
    def energy_is_right(self):
        return sn.assert_found('Finished mdrun', self.stdout)

    def evaluate(self):
        yield self.extracted('figure_of_merit', 'ns_per_day', r'^Performance:\s+(\S+)', '1')
        yield self.elapsed()
