'''The base of all checks that run a program of several processes.'''

from reframe.core.builtins import fixture, run_after, run_before, variable
from reframe.core.exceptions import SanityError

from plumbline import records
from plumbline.check import ProgramCheck
from plumbline.errors import PlumblineError, in_one_line
from plumbline.mpi import loopback
from plumbline.mpi.families import Settings, family_of, obituary
from plumbline.mpi.launch import EnvironmentLauncher
from plumbline.mpi.programs import mpi_programs

class MpiJob:
    '''What starts processes: launcher, binding, transport.  For plugins of tests and fixtures that are ``Job``\\ s.'''

    def launch_by(self, settings):
        '''Let the environment's MPI, or else the partition's launcher, start one process on each of :attr:`cpus`.

        :arg settings: further :class:`families.Settings`.
        :returns: the words of the launcher, for the record.
        '''
        ranks, cpus = len(self.cpus), ','.join(map(str, self.cpus))
        self.num_tasks = self.num_tasks_per_node = ranks
        self.num_cpus_per_task = 1
        words = self.current_environ.extras.get('launcher')
        if words:
            self.job.launcher = EnvironmentLauncher(words)
            self.prerun_cmds += self.family.bind_commands(self.cpus)
            settings = (self.family.start + self.family.bind).filled(ranks=ranks, cpus=cpus) + settings
        else:
            settings = Settings([f'--cpu-bind=map_cpu:{cpus}']) + settings
            self.job.launcher.options = [option for option in self.job.launcher.options
                                         if not option.startswith('--cpu-bind')]
        self.job.launcher.options += settings.options
        self.env_vars.update(settings.env)
        return [*self.job.launcher.command(self.job), *self.job.launcher.options]


class MpiCheck(MpiJob, ProgramCheck):
    '''Base plugin of the MPI checks.

    A check sets :attr:`program`, ``ranks`` (a number, or ``all``), ``transport`` (``shm``, ``tcp``, or a parameter of
    both), and defines ``options()`` and ``evaluate()``.
    '''

    #: The MPI programs of the environment.
    programs = fixture(mpi_programs, scope='environment')

    #: Processes; ``all``: one on every CPU.
    ranks = variable(int, str, value=2, loggable=False)

    #: A library of ours that the program loads first (``pack``, ``latency``); empty for none.
    preload = variable(str, value='', loggable=False)

    #: Whether ``bytes`` of its records are bytes of messages, all of which cross the transport.
    counts_messages = True

    @run_after('init')
    def needs_mpi(self):
        self.valid_prog_environs = ['+mpi']

    @property
    def cpus(self):
        '''The CPU of each rank, in their order.'''
        return self.all_cpus if self.ranks == 'all' else self.all_cpus[:int(self.ranks)]

    @run_after('setup', always_last=True)
    def choose_mpi(self):
        with in_one_line():
            self.family = family_of(self.current_environ)
        if self.ranks != 'all' and int(self.ranks) > len(self.all_cpus):
            self.leave_out(f'{self.ranks} ranks need as many CPUs, there are {len(self.all_cpus)}')
        if self.transport not in self.family.transports:
            self.leave_out(f'{self.family.title} is not known to offer {self.transport}: see data/mpi.yaml')

    def settings(self):
        '''Further :class:`families.Settings` for the launch.'''
        return Settings()

    def start(self, command):
        '''Place the ranks; the command as it is run.'''
        launcher = self.launch_by(self.family.transports[self.transport] + self.settings())
        if self.preload:
            command = ['env', f'LD_PRELOAD={self.programs.library(self.preload)}', *command]
        self.plumbline.update(ranks=len(self.cpus), transport=self.transport)
        self.run_command(command)
        return [*(f'{name}={value}' for name, value in self.env_vars.items()), *launcher, *command]

    @run_before('run')
    def watch_the_loopback(self):
        self.prerun_cmds += [loopback.look()]
        self.postrun_cmds += [loopback.look()]

    @run_after('sanity')
    def transport_was_used(self):
        '''A label is a claim: that the messages went by TCP, or that they did not, is looked at.'''
        if not self.is_dry_run() and self.counts_messages:
            self.prove_transport(sum(record['bytes'] * len(record['seconds']) for record in self.measurements
                                     if record['options'].get('messages') != 0))

    def prove_transport(self, moved, of=''):
        '''Fail if the messages went another way.

        :arg moved: their bytes, at least.
        :arg of: which looks at the loopback device count.
        '''
        hosts = {process['host'] for process in self.plumbline['machine'].get('processes', ())}
        crossed = loopback.crossed(self.output(), of)
        if crossed is None or len(hosts) != 1:
            self.note('not proved which way the messages went: the loopback was not watched, or there are several nodes')
            return
        wrong, unproved = loopback.judge(self.transport, moved, crossed)
        if wrong:
            raise SanityError(f'{wrong}: mend the transports of {self.family.title} in data/mpi.yaml')
        if unproved:
            self.note(unproved)

    def cause(self):
        '''Which rank died, and of what.'''
        said = self.output('stderr') + self.output()
        try:
            machine = records.parse(self.output()).machine or {}
        except PlumblineError:      # a process that dies may leave half a line
            machine = {}
        return obituary(self.family.deaths(said, machine.get('processes')))
