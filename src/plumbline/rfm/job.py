'''What all jobs have in common, whatever runs them: a known end, and nobody else's binding.'''

import sys
from pathlib import Path
from typing import Any

from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError, SanityError
from reframe.core.pipeline import RegressionTestPlugin
from reframe.core.runtime import runtime

from plumbline import atomic, private, settings
from plumbline.model import quantity
from plumbline.rfm.launch import MPIRUN, SRUN
from plumbline.rfm.variables import Whole, refuse_unknown
from plumbline.scheduler import job_state

#: What the job script writes after the program, with the exit code.  With
#: ``general/trap_job_errors`` it has stopped before, at the first command that failed.
EXIT_CODE = 'plumbline: exit code'

#: Variables by which srun knows how many CPUs a task has, and gives it no more (the last: Slurm 23.11 and later).
OF_A_TASK = ('SLURM_CPUS_PER_TASK', 'SRUN_CPUS_PER_TASK', 'SLURM_EXACT', 'SLURM_TRES_PER_TASK')

#: Option by which a job is not run again, and its scheduler's names; OAR and Flux run none again that does not ask for it.
ONCE = {'--no-requeue': ('slurm', 'squeue'), '-r n': ('pbs', 'pbspro', 'torque', 'sge'), '-rn': ('lsf',)}

#: Bytes that a program may print; ReFrame's own machine reads them.  A hundred records with a thousand samples each are 3 MB.
LARGEST_OUTPUT = 2**28


def measured_partitions():
    '''``valid_systems`` of what measures: partitions without a scheduler only where there are no others.'''
    partitions = runtime().system.partitions
    chosen = [part for part in partitions if part.scheduler.registered_name != 'local' or settings.TO_BE_MEASURED in part.features]
    return [part.fullname for part in chosen] if 0 < len(chosen) < len(partitions) else ['*']


class Job(RegressionTestPlugin):
    '''Plugin of every test and fixture that runs a job.'''

    # ReFrame's, which it gives to every test when it makes its class.
    time_limit: Any
    max_pending_time: Any
    maintainers: list[str]
    executable: str
    executable_opts: list[str]
    prerun_cmds: list[str]
    postrun_cmds: list[str]
    reference: Any
    sourcesdir: str | None

    #: Whether others run what it builds.
    builds = False

    #: Whether it measures, and wants its node to itself.
    measures = True

    #: Whether it starts several processes, and binds each itself (:class:`plumbline.mpi.ranks.Ranks`).
    starts_ranks = False

    #: The environments that the test is for (``valid_prog_environs``), unless its class or the command line says.
    NEEDS = '*'

    #: Its ``time_limit``, where neither its partition nor the command line has one; more, up to ``AT_MOST``, where :meth:`takes` says so.
    LASTS, AT_MOST = '10m', 4 * 3600

    #: How many times the program is started, one process after the other.  What differs from process to process (pages, the
    #: place of the stack, the state of the machine) is more than what differs within one, so no number of rounds in one process
    #: tells how sure a value is.  Of a fixture, and of a program that is one measurement in itself, one.
    processes = variable(Whole, value=1, loggable=False)

    @run_after('init')
    def choose_partitions(self):
        '''A plugin cannot give values to a test's own variables in its body.  What a fixture was given (one partition, one
        environment), what its class says and what the command line says stays.'''
        if not hasattr(self, 'valid_systems'):
            self.valid_systems = measured_partitions()
        if not hasattr(self, 'valid_prog_environs'):
            self.valid_prog_environs = [self.NEEDS]

    @run_after('init')
    def refuse_to_measure_nothing(self):
        for name in ('samples', 'processes', 'repeat'):
            if isinstance(number := getattr(self, name, None), int) and number < 1:
                self.refuse(name, number, 'give a number of 1 and more')

    @run_after('setup')
    def refuse_unknown_variables(self):
        refuse_unknown()

    @run_before('run', always_last=True)
    def set_time_limit(self):
        '''When it is known how much memory the program sweeps through.'''
        if self.time_limit is None and self.current_partition.time_limit is None:
            self.time_limit = self.LASTS
            self.time_limit = max(self.time_limit, min(self.AT_MOST, self.takes()))

    def takes(self):
        '''Seconds that the job may take by what is known of its machine; 0 where that makes no difference.'''
        return 0

    @run_after('setup')
    def reserve_node(self):
        '''What somebody else runs on the node would be measured as well.  A partition whose scheduler refuses that has the extra
        ``exclusive: False``; ``-S exclusive_access=no`` is ReFrame's own default, and seen in the command line alone.'''
        said = any('exclusive_access=' in word for word in sys.argv)
        if self.measures and not said and self.current_partition.extras.get('exclusive', True):
            self.exclusive_access = True

    @run_after('init')
    def describe_question(self):
        '''ReFrame's detailed listing (``-L``) shows the question.'''
        self.descr = self.question()

    @run_after('init')
    def set_pending_timeout(self):
        if self.max_pending_time is None:
            self.max_pending_time = settings.MAX_PENDING_TIME

    @run_after('setup')
    def set_pending_timeout_of_build(self):
        if self.build_job:
            self.build_job.max_pending_time = self.max_pending_time

    @run_after('setup')
    def skip_measurements(self):
        '''The first node of a sweep builds for the others before it measures.'''
        if settings.BUILD_ONLY and not self.builds:
            self.skip('PLUMBLINE_BUILD_ONLY is set')

    @run_after('run')
    def set_node(self):
        if settings.ON_NODE:
            private.set_nodes(self.job, [settings.NODE])

    @run_before('run')
    def switch_off_binding(self):
        '''likwid-pin, OpenMP or taskset bind, within all CPUs of the task; ranks are bound by who starts them.'''
        if self.num_tasks not in (None, 1) or self.starts_ranks:
            return
        launcher = self.current_partition.launcher_type.registered_name
        if launcher in SRUN:
            self.job.launcher.options += ['--cpu-bind=none']
            self.take_whole_nodes()
        elif launcher in MPIRUN:        # it is the MPI's, which a program without MPI need not have
            self.job.launcher = getlauncher('local')()

    def take_whole_nodes(self):
        '''Let srun give all CPUs of the job.  Told how many a task has, by an option or by a variable that sbatch sets, Slurm gives that many
        hardware threads, of whichever cores, and binds to none of those that it is told.'''
        launcher = self.job.launcher
        launcher.use_cpus_per_task = False
        theirs = [launcher.modifier, *launcher.modifier_options] if launcher.modifier else []
        launcher.modifier, launcher.modifier_options = 'env', [*(f'-u {name}' for name in OF_A_TASK), *theirs]

    @run_before('run')
    def echo_exit_code(self):
        '''From some schedulers ReFrame learns no exit code, and takes that for a failure.'''
        if self.current_partition.scheduler.registered_name not in settings.TELL_EXIT_CODE:
            self.postrun_cmds += [f'echo {EXIT_CODE} $?']

    @run_before('run')
    def stop_at_first_error(self):
        '''As ``trap_job_errors`` of our settings does, which another suite's configuration need not have.'''
        if not runtime().get_option('general/0/trap_job_errors'):
            self.prerun_cmds.insert(0, "trap 'exit $?' ERR")

    @run_before('run')
    def forbid_requeue(self):
        '''A job whose node fails has failed.  Slurm and PBS would run it again, on another node, without a word.'''
        scheduler = self.current_partition.scheduler.registered_name
        self.job.options += [option for option, its in ONCE.items() if scheduler in its]

    @run_after('init')
    def name_maintainers(self):
        '''Whom ReFrame tells to ask where one of our tests fails; a site gives its own with ``-S maintainers=hpc-support``.'''
        if Path(self.prefix).is_relative_to(settings.ROOT / 'checks'):
            self.maintainers = self.maintainers or ['the Plumbline developers']

    def refuse(self, attribute, value, cure):
        '''End before anything runs: of an error here ReFrame would make a warning, leave the check file out, and pass with what is left.'''
        sys.exit(f'plumbline: {self.prefix}: {type(self).__name__}.{attribute} is {value!r}: {cure}')

    def write_file(self, name, text):
        '''Write a file into the folder that the job starts in.'''
        path = Path(self.stagedir, name)
        try:
            path.write_text(text, encoding='utf-8')
        except OSError as error:
            raise ReframeError(f'{path}: cannot be written: {error.strerror}; make room there, or name another folder with -s') from None

    @property
    def shares(self):
        '''What of the machine the test shares with tests on other nodes, in one word; None where its nodes are all it uses.'''
        return None

    @run_before('run')
    def serialize_jobs(self):
        '''Tests that share something run one after the other, also where ReFrame has many in the queue.'''
        if self.by_slurm() and self.shares:
            self.job.options += [f'--job-name=plumbline-{self.shares}', '--dependency=singleton']

    def by_slurm(self):
        '''Whether the jobs of this partition are Slurm's.'''
        return self.current_partition.scheduler.registered_name in ('slurm', 'squeue')

    @run_before('sanity', always_last=True)
    def check_exit_code(self):
        '''A job that failed says why in its standard error; ReFrame names the code only.

        Last, so that a check can skip itself because of what its job said.
        '''
        if self.is_dry_run():
            return
        if self.job.exitcode is None and f'{EXIT_CODE} 0' in self.output().splitlines():
            private.set_exit_code(self.job, 0)
        elif self.by_slurm() and (self.job.exitcode is None or self.job.state not in ('COMPLETED', 'FAILED')):
            code, why = job_state.how(self.job)
            private.set_exit_code(self.job, code)
            if why:
                raise SanityError(why)
        if self.job.exitcode is None:
            private.set_exit_code(self.job, 1)
        if self.job.exitcode:
            said = [line for line in self.output('stderr').splitlines() if line.strip()]
            ours = [line for line in said if line.startswith('plumbline: ')]
            told = (ours or [atomic.no_room(self.stagedir)])[-1] or (said or [self._silence()])[-1]
            why = self.cause() or told.strip()
            raise SanityError(f'the job ended with exit code {self.job.exitcode}: {why}')

    def _silence(self):
        '''What there is to say of an empty standard error.'''
        there = Path(self.stagedir, self.job.stderr).exists()
        return 'its standard error is empty' if there else 'it left no standard error, as where its node has failed'

    def cause(self):
        '''Why the job failed, where that can be read elsewhere than in the last line of its standard error.'''
        return

    def question(self):
        '''What the test asks: its docstring, which a copy that ReFrame makes for ``--distribute`` has not.'''
        return ' '.join(next((known.__doc__ for known in type(self).__mro__ if known.__doc__), '').split())

    def output(self, stream='stdout', job=None):
        '''What the job, or another of the test's jobs, wrote to ``stdout`` or ``stderr``; nothing if it did not start.'''
        path = Path(self.stagedir, getattr(job or self.job, stream))
        if not path.exists():
            return ''
        if (size := path.stat().st_size) > LARGEST_OUTPUT:
            raise SanityError(f'{path}: {quantity.size(size)} were printed, and at most {quantity.size(LARGEST_OUTPUT)} are read: look at its '
                              'first lines')
        return path.read_text(encoding='utf-8', errors='replace')
