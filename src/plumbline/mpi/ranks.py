'''How several processes are started, and on which CPUs: what all checks of MPI programs share, ours and others'.'''

import os

from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import SanityError
from reframe.core.pipeline import RegressionTestPlugin

from plumbline import settings
from plumbline.errors import PlumblineError, in_one_line
from plumbline.mpi import loopback
from plumbline.mpi.families import Settings, family_of
from plumbline.mpi.nodes import nodes_of
from plumbline.rfm.launch import EnvironmentLauncher, own_words
from plumbline.rfm.variables import Whole, WholeOrAll


class Ranks(RegressionTestPlugin):
    '''Plugin of a check that starts an MPI program: one process on each CPU that is chosen, by the environment's MPI or the scheduler.

    The check sets ``transport``, what messages go by: ``shm``, ``tcp``, or ``default``, what the MPI chooses.  It stands before the check's
    other base (:class:`plumbline.rfm.check.ProgramCheck`, :class:`plumbline.judged.Judged`).
    '''

    NEEDS = '+mpi'

    starts_ranks = True

    #: Processes on each node; ``all``: one on every CPU.
    ranks = variable(WholeOrAll, value=2, loggable=False)

    #: Nodes; 0 for those that ReFrame's ``--flex-alloc-nodes`` says: the idle ones by default, ``all``, or a number.
    nodes = variable(Whole, value=1, loggable=False)

    @run_after('init')
    def set_transport(self):
        '''What messages go by: a check's parameter ``transport`` says ``shm`` or ``tcp``; where it has none, ``default``, what the MPI chooses.
        (ReFrame takes no parameter of a name that a base class has.)'''
        if not hasattr(self, 'transport'):
            self.transport = 'default'

    @run_after('init', always_last=True)
    def refuse_other_ranks(self):
        if self.ranks != 'all' and not (isinstance(self.ranks, int) and self.ranks > 0):
            self.refuse('ranks', self.ranks, "give a number of processes, or 'all'")
        if self.nodes < 0:
            self.refuse('nodes', self.nodes, 'give a number of nodes, or 0 for those of --flex-alloc-nodes')
        if self.transport not in ('shm', 'tcp', 'default'):
            self.refuse('transport', self.transport, "give 'shm', 'tcp' or 'default'")

    @property
    def cpus(self):
        '''The CPU of each rank, in their order: node by node.'''
        return (self.all_cpus if self.ranks == 'all' else self.all_cpus[:self.ranks]) * self.nodes

    @property
    def bound(self):
        '''Whether ranks are bound to CPUs that the topology names.

        A partition with the extra ``binding: scheduler`` leaves them those that its scheduler gives, where nodes are
        shared, or differ in what they allow: each rank must then have been given one CPU of its own.
        '''
        chosen = self.current_partition.extras.get('binding', 'topology')
        if chosen not in ('topology', 'scheduler'):
            raise PlumblineError(f"extras of {self.current_partition.fullname}: binding {chosen!r}: give 'topology' or 'scheduler'")
        return chosen == 'topology'

    def launch_by(self, settings):
        '''Let the environment's MPI, or else the partition's launcher, start one process on each of :attr:`cpus`, of as many :attr:`nodes`.

        :arg settings: further :class:`families.Settings`.
        :returns: the words of the launcher, for the record.
        '''
        self.num_tasks = len(self.cpus)
        self.num_tasks_per_node = self.num_tasks // self.nodes
        self.num_cpus_per_task = 1
        cpus = self.cpus[:self.num_tasks_per_node]
        words = own_words(self.current_environ, self.current_partition)
        if words:
            self.job.launcher = EnvironmentLauncher(words)
            ours = self.family.start + (self.family.nodes if self.nodes > 1 else Settings())
            if self.bound:
                self.prerun_cmds += self.family.bind_commands(cpus, self.nodes)
            ours += self.family.bind if self.bound else self.family.unbound
        else:
            self.job.launcher.options = [option for option in self.job.launcher.options if not option.startswith('--cpu-bind')]
            ours = Settings(['--cpu-bind=map_cpu:{cpus}'] if self.bound else [])
            if self.bound:
                self.take_whole_nodes()
        settings = ours.filled(ranks=self.num_tasks, per_node=self.num_tasks_per_node, cpus=','.join(map(str, cpus))) + settings
        self.job.launcher.options += settings.options
        self.env_vars.update(settings.env)
        return [*self.job.launcher.command(self.job), *self.job.launcher.options]

    @run_after('setup')
    def choose_nodes(self):
        '''As many as are asked for; the test is skipped where there are fewer.'''
        wanted, where = (self.suspected or self).nodes, self.current_partition.fullname
        scheduler = self.current_partition.scheduler.registered_name
        if wanted == 1 or self.is_dry_run():
            self.nodes = wanted or 2
            return
        if scheduler == 'local':
            self.skip_test(f'needs {wanted or "several"} nodes: {where} is local, this node alone')
        flexible, state = self.job.sched_flex_alloc_nodes or 'idle', 'all'
        if not wanted and isinstance(flexible, int):
            wanted = flexible
        elif not wanted:
            state = flexible.lower()
        found = nodes_of(self.job, state)
        if found is None and not wanted:
            self.skip_test(f'the scheduler {scheduler} does not say which nodes there are: give their number, -S {type(self).__name__}.nodes=N')
        self.nodes = wanted or len(found.usable)
        if found is None:
            return
        if len(found.usable) < max(2, self.nodes):
            self.skip_test(f'needs {wanted or 2} nodes: {where} has {len(found.usable)} that can be used'
                           + (f' and are {state}, not {found.busy} (--flex-alloc-nodes=all waits for them)' if found.busy else '')
                           + (f', not {found.others}' if found.others else ''))
        if not wanted and found.busy:
            self.note(f'not among the nodes, because they are not {state}: {found.busy}')
        if not wanted and found.others:
            self.note(f'not among the nodes, because they are down or kept back: {found.others}')

    @run_after('setup', always_last=True)
    def choose_mpi(self):
        with in_one_line():
            self.family = family_of(self.current_environ)
        if settings.ON_NODE and not self.current_environ.extras.get('launcher'):
            self.skip_test(f"the scheduler's launcher starts nothing on the node itself: give {self.current_environ.name} the extra "
                           '`launcher`, e.g. mpirun')
        allowed = {**os.environ, **dict(self.current_environ.env_vars)}
        if os.geteuid() == 0 and not self.family.as_root.items() <= allowed.items() and own_words(self.current_environ, self.current_partition):
            self.skip_test(f'the launcher of {self.family.title} does not run as root: run ReFrame as an ordinary user, or let the site file '
                           f"say in {self.current_environ.name} that it may ({', '.join(self.family.as_root)})")
        if self.ranks != 'all' and self.ranks > len(self.all_cpus):
            self.skip_test(f'{self.ranks} ranks need as many CPUs, there are {len(self.all_cpus)}', symptom='too_few_cpus')
        if self.transport != 'default' and self.transport not in self.family.transports:
            self.skip_test(f'{self.family.title} is not known to offer {self.transport}: see data/mpi.yaml, or the extra `mpi` of the environment')

    @property
    def shares(self):
        return 'network' if self.nodes != 1 else None

    @run_before('run')
    def watch_the_loopback(self):
        self.prerun_cmds += [loopback.look()]
        self.postrun_cmds += [loopback.look()]

    def prove_transport(self, moved, of=''):
        '''Fail if the messages went another way.

        :arg moved: their bytes, at least.
        :arg of: which looks at the loopback device count.
        '''
        if self.transport == 'default':
            return      # nothing is claimed
        hosts = {process['host'] for process in self.plumbline.of_machine.get('processes', ())}
        crossed = loopback.crossed(self.output(), of)
        if crossed is None or (len(hosts) or self.nodes) != 1:
            self.note('not proved which way the messages went: the loopback was not watched, or there are several nodes')
            return
        wrong, unproved = loopback.judge(self.transport, moved, crossed)
        if wrong:
            self.plumbline.symptom = 'other_transport'
            raise SanityError(f'{wrong}: fix the transports of {self.family.title} in data/mpi.yaml, or in the extra `mpi` of the environment')
        if unproved:
            self.note(unproved)
