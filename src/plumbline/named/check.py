'''The base of the checks of benchmarks that vendors know by name (``checks/named``).'''

import re
import shlex
from pathlib import Path

from reframe.core.builtins import run_after, run_before
from reframe.core.exceptions import SanityError

from plumbline import settings
from plumbline.errors import PlumblineError, WrongResult, in_one_line
from plumbline.judged import Judged, measured
from plumbline.mpi import installed, placement
from plumbline.mpi.families import Settings, family_of, obituary
from plumbline.mpi.ranks import Ranks
from plumbline.named.products import PRODUCTS
from plumbline.rfm import file_systems

#: What each process of a launch tells: its rank, where the launcher says it, its node and its CPUs.  One line at once, lest those of others mix.
_TELL_PLACE = ("sh -c 'echo \"plumbline: rank ${OMPI_COMM_WORLD_RANK-${PMI_RANK-$SLURM_PROCID}} on $(uname -n): "
               "$(grep Cpus_allowed_list /proc/self/status)\"'")
_PLACE = re.compile(r'^plumbline: rank (\d*) on (\S+): Cpus_allowed_list:\s+(\S+)$', re.MULTILINE)


class NamedCheck(Judged):
    '''Plugin of a check of a program that the site has installed, without MPI.

    A check sets :attr:`product`, and defines ``options()`` (list of words; it writes input files by :meth:`keep`) and ``figures(text, source)``,
    which reads what a run printed (:mod:`plumbline.named`).  Command line and input files stay in the result, so that the vendor can run the same.
    '''

    NEEDS = '+openmp'

    #: Names of metrics at their usual size -> at this run's; of the last evaluation.
    usual: dict[str, str]

    #: Key of :data:`PRODUCTS`.
    product = ''

    #: The file that it writes its results to; empty where it prints them.
    leaves = ''

    #: What the command line chose instead of the usual work, a word for the names of metrics; empty where it chose nothing.
    given = ''

    #: Whether they have the number of processes on a node: a figure of one beside others, or of all, may be better where fewer run.
    numbered = False

    def keep(self, name, text):
        '''Write an input file, and keep its text in the result.'''
        self.write_file(name, text)
        self.plumbline.inputs = {**(self.plumbline.inputs or {}), name: text}

    def names(self):
        '''What the program may be called.'''
        return PRODUCTS[self.product].names

    def find(self, environment):
        '''Its path in an environment.'''
        return self.look_for(self.names(), environment)

    def look_for(self, names, environment):
        '''Path of a program that is called one of these names.

        :raises PlumblineError: as :func:`plumbline.mpi.installed.find`.
        '''
        known = PRODUCTS[self.product]
        family = family_of(environment) if self.NEEDS == '+mpi' else None
        if environment.name not in self.folders:        # modules take their time
            self.folders[environment.name] = installed.folders(environment, self.product, known.below)
        return installed.find(names, environment, family, extra=self.product, package=known.package, where=self.folders[environment.name],
                              title=known.title)

    @run_after('init')
    def unset_sources(self):
        self.folders = {}
        if self.sourcesdir == 'src':
            self.sourcesdir = None

    @run_after('setup', always_last=True)
    def find_program(self):
        if self.is_dry_run():
            self.binary = PRODUCTS[self.product].names[0] if PRODUCTS[self.product].names else self.product
            return
        try:
            self.binary = self.find(self.current_environ)
        except PlumblineError as error:
            self.skip_test(str(error))
        if same := self._found_before():
            self.skip_test(f'{self.binary} is measured in the environment {same}: it is the same program')

    def _found_before(self):
        '''An environment of the partition, before this one, in which the same program is measured; None where there is none.'''
        if settings.on_command_line('-p', '--prgenv'):
            return None
        for environment in self.current_partition.environs:
            if environment.name == self.current_environ.name:
                return None
            try:
                if self.NEEDS.lstrip('+') in environment.features and self.find(environment) == self.binary:
                    return environment.name
            except PlumblineError:
                continue
        return None

    def memory_share(self, share):
        '''Bytes: a share of the memory that may be used, of all nodes.'''
        if not 0 < share <= 1:
            raise PlumblineError(f'{share:g} is no share of the memory: give 0.8 for 80 %')
        if self.memory is None and not self.is_dry_run():
            self.skip_test('the memory of the node is not known: let its topology be detected (plumbline detect), or give a size with -S')
        return share * (self.memory or 2**30) * (getattr(self, 'nodes', 1) or 1)

    @run_before('run')
    def place_processes(self):
        with in_one_line():
            self.run_command([self.binary, *map(str, self.options())])
        super().place_processes()

    def around_a_run(self):
        before, after = super().around_a_run()
        return ([*before, f'rm -f {self.leaves}'], [f'cat {self.leaves}', *after]) if self.leaves else (before, after)

    def wrong_result(self):
        '''Of any run, also where another one, or the job, came to no good end.'''
        _, *runs = self.output().split('plumbline: run ')      # as each begins in around_a_run()
        left = Path(self.stagedir).glob(self.leaves) if self.leaves else ()     # of a run that failed the job prints no file
        for name, text in [*((f'run {number}', text) for number, text in enumerate(runs, 1)),
                           *((path.name, path.read_text(encoding='utf-8', errors='replace')) for path in left)]:
            try:
                list(self.figures(text, f'{PRODUCTS[self.product].title}, {name}'))
            except WrongResult as error:
                return str(error)
            except PlumblineError:
                continue        # what cannot be read fails where it is needed
        return None

    def evaluate(self):
        run, = self.measurements
        self.usual = {}
        number, given = '', self.given
        if self.numbered:
            number = str(len(self.cpus) // self.nodes)
            given = '.'.join(filter(None, (self.nodes != 1 and f'{self.nodes}nodes', given)))
        for figure in self.figures(run['text'], f"{PRODUCTS[self.product].title}, run {run['process'] + 1}"):
            usual = '.'.join(filter(None, (figure.subject, number)))
            own = '.'.join(filter(None, (usual, given)))
            self.usual[f'{figure.metric}.{usual}'] = f'{figure.metric}.{own}'
            if given:
                self.skip_metric(f'{figure.metric}.{usual}', f'{given} was asked for')
            yield measured(figure.metric, own, figure.value, figure.unit, figure.subsystem)

    def _recorded_but_not(self, known, found):
        '''Without what is of another size than this run's: it stands behind the usual name, where nothing else does.'''
        for usual, own in self.usual.items():
            behind = {name for name in {*known, *found} if name.startswith(f'{usual}.')} - {own}
            if not behind & {*found}:
                for name in sorted(behind):
                    self.skip_metric(name, 'it is of another size than this run')
        return Judged._recorded_but_not(self, known, found)


class NamedMpiCheck(Ranks, NamedCheck):
    '''The same of an MPI program: one process on each core, one thread each, started by the environment's MPI.

    Such programs do not say where their processes ran.  Before the first run each process of a launch of the same kind says on which node
    it is, and which CPUs it may use.
    '''

    ranks, transport, numbered = 'all', 'default', True

    @run_before('run')
    def place_processes(self):
        with in_one_line():
            command = [self.binary, *map(str, self.options())]
            launcher = self.launch_by(self.family.transports.get(self.transport, Settings()))
        if self.bound and (lines := self.family.rank_lines(self.cpus[:self.num_tasks_per_node], self.nodes)):     # the job writes it
            self.plumbline.inputs = {**(self.plumbline.inputs or {}), self.family.rank_file['name']: '\n'.join([*lines, ''])}
        self.env_vars.update({'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1', 'MKL_NUM_THREADS': '1'})
        self.prerun_cmds += [f'{self.job.launcher.run_command(self.job)} {_TELL_PLACE}']
        self.plumbline.ranks, self.plumbline.transport = len(self.cpus), self.transport
        self.run_command(command)
        self.describe([*(f'{name}={value}' for name, value in self.env_vars.items()), *launcher, *command])

    def cause(self):
        '''Which rank died, or the program's first words: the last ones of the standard error are the launcher's.'''
        said = [line.strip() for line in self.output('stderr').splitlines() if line.strip(' -=')]
        return obituary(self.family.deaths('\n'.join(said), None)) or ' '.join(said[:2]) or None

    @run_after('sanity')
    def check_binding(self):
        if self.is_dry_run():
            return
        found = sorted(_PLACE.findall(self.output()), key=lambda one: (int(one[0] or 0), one[1]))
        cpus = [one for *_, one in found]
        told = f"the processes may use the CPUs {', '.join(cpus) or 'of which none told'}"
        if self.bound and sorted(cpus) != sorted(map(str, self.cpus)):
            raise SanityError(f"{told}, and one each of {', '.join(map(str, self.cpus))} was asked for: {self.family.title} was not told, or "
                              'does not bind')
        if len(cpus) != len(self.cpus):
            raise SanityError(f'{told}: the scheduler was to give each of {len(self.cpus)} one')
        processes = [{'host': host, 'cpus': one} for _, host, one in found]
        wrong = placement.wrong_nodes(processes, self.nodes) or placement.wrong_cpus(processes, [one if one.isdigit() else None for one in cpus])
        if wrong:
            raise SanityError(wrong)


class OnFileSystem(file_systems.OneFileSystem):
    '''What a check adds that measures a file system, one of :func:`on_devices`.

    It stands before the check's other base.  The job makes a folder of its own there, ``$folder`` in options and input files, and removes
    it however it ends.
    '''

    executable_opts: list[str]      # ReFrame's

    @run_after('setup')
    def leave_memory(self):
        if self.expected_type in file_systems.IN_MEMORY:
            self.leave(f'{self.expected_type} is memory, and this program passes the page cache by')

    @run_before('run')
    def make_folder(self):
        # Variables in the path are those of the job.  The name must be new: others, or a job of another node, may have made theirs there.
        # No export of what a command prints: its exit code would be lost, and the folder be the root.
        why = shlex.quote(f"plumbline: {self.file_system}: no folder for the test's files can be made in {self.path}:")
        make = f'set -u; {{ cd "{self.path}" && mktemp -d "$PWD/plumbline-XXXXXX"; }} 2>&1'
        self.prerun_cmds += [f'folder=$({make}) || {{ echo {why} "$folder" >&2; exit 1; }}', 'export folder', 'trap \'rm -rf "$folder"\' EXIT',
                             *self.end_on_other_type()]
        self.executable_opts = [word.replace("'", '"') if '$folder' in word else word for word in self.executable_opts]


def on_devices():
    '''The file systems of all partitions, for a test's parameter, but for what is memory: these programs pass the page cache by.'''
    return [name for name in file_systems.names() if name != 'shm']
