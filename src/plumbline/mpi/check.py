'''The base of all checks that run a program of several processes.'''

from reframe.core.builtins import fixture, run_after, variable

from plumbline.mpi import placement
from plumbline.mpi.families import Settings, obituary
from plumbline.mpi.programs import mpi_programs
from plumbline.mpi.ranks import Ranks
from plumbline.rfm.check import ProgramCheck
from plumbline.rfm.variables import Words


class MpiCheck(Ranks, ProgramCheck):
    '''Base plugin of the MPI checks.

    A check sets :attr:`program`, ``ranks`` (a number, or ``all``), ``transport`` (``shm``, ``tcp``, ``default``: what
    the MPI chooses, or a parameter of them), and defines ``options()`` and ``evaluate()``.
    '''

    #: The MPI programs of the environment.
    programs = fixture(mpi_programs, scope='environment')

    #: A library of ours that the program loads first (``pack``, ``latency``); empty for none.
    preload = variable(Words, value='', loggable=False)

    #: Whether ``bytes`` of its records are bytes of messages, all of which cross the transport.
    counts_messages = True

    def placing(self):
        return super().placing() if self.bound else []

    def misplaced(self, record):
        processes = self.plumbline.of_machine.get('processes', ())
        wrong = placement.wrong_nodes(processes, self.nodes)
        return wrong or (super().misplaced(record) if self.bound else placement.wrong_cpus(processes, record['cpus']))

    def settings(self):
        '''Further :class:`families.Settings` for the launch.'''
        return Settings()

    def start(self, command):
        '''Place the ranks; the command as it is run.'''
        launcher = self.launch_by(self.family.transports.get(self.transport, Settings()) + self.settings())
        if self.preload:
            command = ['env', f'LD_PRELOAD={self.programs.library(self.preload)}', *command]
        self.plumbline.ranks, self.plumbline.transport = len(self.cpus), self.transport
        self.run_command(command)
        return [*(f'{name}={value}' for name, value in self.env_vars.items()), *launcher, *command]

    @run_after('sanity')
    def check_transport(self):
        '''A label is a claim: that the messages went by TCP, or that they did not, is looked at.'''
        if not self.is_dry_run() and self.counts_messages:
            self.prove_transport(sum(record['bytes'] * len(record['seconds']) for record in self.measurements
                                     if record['process'] >= (self.again or 0) and record['options'].get('messages') != 0))

    def cause(self):
        '''Which rank died, and of what.'''
        # A process that dies may leave half a line: then there is no machine record.
        return obituary(self.family.deaths(self.output('stderr') + self.output(), self.plumbline.of_machine.get('processes')))
