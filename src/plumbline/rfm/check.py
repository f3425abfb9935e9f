'''The base of all checks that run our programs: build, pinning, records, limits.

A check states its question in its docstring, its parameters, its options and its metrics; all else is here and in
``judging.py``.  The hooks follow ReFrame's pipeline.
'''

from pathlib import Path

from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError

from plumbline import settings
from plumbline.errors import PlumblineError, in_one_line
from plumbline.likwid import pin
from plumbline.model import baselines, contention, limits, metrics, records, states
from plumbline.rfm import capacity, evaluation
from plumbline.rfm.judging import Judging
from plumbline.rfm.programs import native_programs
from plumbline.rfm.variables import Table, Whole
from plumbline.system import codegen, topology

#: Bytes of a line, in the models of traffic (``PL_LINE`` in src/harness).
LINE = 64

#: Processes of a case: every day, and of hardware that is to be accepted (``--mode acceptance``).
USUAL_PROCESSES, OF_ACCEPTANCE = 3, 5


class ProgramCheck(Judging):
    '''Base plugin of all checks of our own programs.

    A check sets :attr:`program`, and defines ``options()`` (list of program options) and ``evaluate()`` (yields :class:`metrics.Metric`).  What
    starts the program defines ``programs`` (its build), ``cpus`` (those asked for, in the order of the threads or ranks) and ``start()``.
    '''

    #: Name of the program to run.
    program = variable(str)

    #: Timed repetitions of every case, shared among the processes; at least 10 in each.
    samples = variable(Whole, value=25, loggable=False)

    processes = USUAL_PROCESSES

    #: Seconds that a process may take for each GiB of memory's working set, which grows with the caches: twice what most need on one thread.
    OF_A_GIB = 120

    #: What ``options()`` gave.
    asked: list = []

    #: Size -> level that its cases are meant to live in; a record that says otherwise is refused.
    intended = variable(Table, value={}, loggable=False)

    #: What its program has printed, once that has been read.
    _printed: records.Records | None = None

    @run_after('init', always_last=True)
    def refuse_a_check_without_a_program(self):
        if not hasattr(self, 'program'):
            self.refuse('program', 'none', 'name the program that it runs')

    @run_after('init')
    def measure_more_to_accept(self):
        if 'acceptance' in settings.on_command_line('--mode') and self.processes == USUAL_PROCESSES:
            self.processes = OF_ACCEPTANCE
            self.rerun_options = ['-S', f'{type(self).__name__}.processes={self.processes}']

    # --- what a check may use ------------------------------------------------------------------

    def working_set(self, level, cpus):
        '''Bytes of a level's working set for threads on these CPUs; the test is skipped where there is too little memory.

        :raises PlumblineError: if there is no such level, or it cannot be told from the one below.
        '''
        sizes, skipped = self.working_sets(cpus)
        if level in sizes:
            return sizes[level]
        processor = self.current_partition.processor
        if level == 'memory' and topology.last_level(processor):
            self.skip_test(skipped[level])
        if level not in skipped:
            topology.capacity(processor, level)     # says what there is instead
        raise PlumblineError(skipped[level])

    def elements(self, level, bytes_per_element):
        '''How many elements stay in a level for this check's threads; remembered as intended.'''
        count = self.working_set(level, self.cpus) // bytes_per_element
        self.intended[count] = level
        return count

    def every_working_set(self):
        '''Bytes for each level that can be measured with this check's threads; the others are said to be skipped.

        :raises PlumblineError: if none can be.
        '''
        sizes, skipped = self.working_sets(self.cpus)
        if not sizes:
            raise PlumblineError(next(iter(skipped.values())))
        for level, reason in skipped.items():
            self.skip_metric(f'all in {level}', reason, [level], subsystem=level)
        return sizes

    def every_level(self, bytes_per_element):
        '''The same in elements; remembered as intended.'''
        return {level: self.elements(level, bytes_per_element) for level in self.every_working_set()}

    def built(self, program):
        '''Path of a program.'''
        return self.programs.path(program)

    def takes(self):
        if 'memory' not in self.intended.values():
            return 0
        return round(self.processes * self.OF_A_GIB * self.working_sets(self.cpus)[0]['memory'] / 2**30)

    @property
    def microarchitecture(self):
        '''That of the node that the job ran on.'''
        return baselines.known_as(self.current_partition.processor.arch, self.plumbline.of_machine.get('cpuid'))

    def disturbed(self):
        '''Why what only threads that all work at once can reach must not be judged; None where all are alike, and had their CPUs to themselves.'''
        kinds = [kind for kind in self.plumbline.of_machine.get('core_kinds', ()) if not {*self.cpus}.isdisjoint(kind)]
        if len(kinds) > 1:
            return f'the cores are of {len(kinds)} kinds'
        given = contention.too_little(self.measured_by.plumbline.contention or (), contention.ENOUGH)
        return None if given is None else f'the threads had the CPUs for {given:.2f} of the time'

    # --- hooks, in the order of the pipeline ---------------------------------------------------

    @run_after('init')
    def unset_sources(self):
        '''Its program is built by a fixture; a folder ``src`` beside the check is none of its own.'''
        if self.sourcesdir == 'src':
            self.sourcesdir = None

    @run_after('setup')
    def run_on_the_node_itself(self):
        if self.container_platform.image:
            raise ReframeError(f'container_platform: {type(self).__name__} runs on the node itself, by programs that are built there; for an '
                               'application in a container write a check of your own (docs/tutorials)')

    @run_before('run')
    def launch_program(self):
        with in_one_line():
            # All processes rest on the streams that the first one found to be the fastest, in this run.
            self.prerun_cmds += ['rm -f streams.txt'] * (self.processes > 1)
            asked = self.options()
            line = topology.line_of_l1(self.current_partition.processor)
            if '--limit' in asked and line not in (None, LINE):
                self.skip_test(f'L1 has lines of {line} bytes here, and traffic is counted in lines of {LINE}')
            options = self.asked = ['--limit=streams.txt' if one == '--limit' and self.processes > 1 else one for one in asked]
            ours = topology.sizes_text(self.ours())
            self.env_vars['PLUMBLINE_AMONG'] = topology.cpu_list(self.all_cpus)      # whose kinds of cores each process tells
            command = self.start([self.built(self.program), *options, '--samples', self.samples_of_each, *self.placing(),
                                  *(['--capacity', ours] if ours else [])])
        self.describe(command)

    @property
    def samples_of_each(self):
        '''Timed repetitions of every case in each process.'''
        return max(records.MIN_SAMPLES, -(-self.samples // self.processes)) if self.processes > 1 else self.samples

    def ours(self):
        return capacity.given() or {}

    def placing(self):
        '''Options that tell the program where it is expected to run.'''
        return ['--cpus', ','.join(map(str, self.cpus))]

    def misplaced(self, record):
        '''The complaint about a thread, or rank, that did not run where it was asked to; or :obj:`None`.'''
        return records.check_placement(record, self.cpus[:record['threads'] * record['ranks']])

    def printed(self):
        '''The :class:`records.Records` of its program.'''
        self._printed = self._printed or records.parse(self.output(), f'output of {self.program}', self.processes)
        self.plumbline.machine, self.plumbline.contention = self._printed.machine, self._printed.contention
        return self._printed

    def wrong_result(self):
        try:
            found = self.printed()
        except PlumblineError:
            return records.told_wrong(self.output())
        if any(map(self.misplaced, found.measurements)):
            self.plumbline.symptom = 'misplaced'
        return records.wrong_result(found)

    @sanity_function
    def numbers_prove_something(self):
        '''Every record is complete, valid, long enough, and was taken where it was asked for.'''
        with in_one_line():
            found = self.printed()
        for text in contention.notes(found.contention, found.machine):
            self.note(text)
        if not metrics.kernels(found.measurements):
            raise SanityError(f'{self.program} measured nothing; its standard error says why')
        if found.processes != self.processes:
            raise SanityError(f'{self.program} was started {self.processes} times, and {found.processes} processes left records')
        limits.mark_best(found.measurements)
        self.measurements = self.plumbline.records = self.pooled(found.measurements)
        self.say_what_does_not_run()
        self.plumbline.timed_seconds = sum(sum(r['seconds']) for r in found.measurements)
        for record in found.measurements:
            complaints = [*records.check_worth_reporting(record)]
            complaints += filter(None, [self.misplaced(record), self._wrong_level(record)])
            if complaints:
                raise SanityError(complaints[0])
        return True

    def say_what_does_not_run(self):
        '''Of variants that were asked for where they run ("nt|").'''
        asked = str(self.asked[self.asked.index('--variants') + 1]).split(',') if '--variants' in self.asked else []
        for name in (one.removesuffix('|') for one in asked if one.endswith('|')):
            if all(record['variant'] != name for record in self.measurements):
                self.skip_metric(f'all of {name}', 'it is written with instructions that this processor lacks', [name])

    def _wrong_level(self, record):
        meant = self.intended.get(record['size'], record['level'])
        if record['role'] == 'kernel' and meant != record['level']:
            return (f"{records.label(record)} is meant for {meant}, but lives in {record['level']}: the caches of the node differ from the "
                    "partition's processor information; detect it anew")
        return None

    def evaluated(self):
        met = states.find(self.measurements, self.plumbline.of_machine)
        if met.several:
            self.note(evaluation.told(met))
        return evaluation.evaluate(self, met)


class NativeCheck(ProgramCheck):
    '''Base plugin of the checks of one process: a check sets ``threads`` (``one``, ``all``, or a parameter of both), and that of a kernel
    of the site's own the fixture ``own_programs``, which builds it.'''

    NEEDS = '+openmp'

    #: Whether the program opens parallel regions itself: a runtime may then end threads and create others, and likwid-pin counts those.
    opens_regions = False

    #: What has built our programs, and measured how much of the caches is ours.
    programs = fixture(native_programs, scope='environment')

    def ours(self):
        return self.programs.ours()

    def built(self, program):
        return getattr(self, 'own_programs', self.programs).path(program)

    @run_after('init', always_last=True)
    def refuse_other_threads(self):
        threads = getattr(self, 'threads', None)
        if threads not in ('one', 'all'):
            self.refuse('threads', threads, "give 'one', 'all', or a parameter of both")

    @property
    def cpus(self):
        '''The CPUs of this check's threads, in their order.'''
        return self.all_cpus[:1] if self.threads == 'one' else self.all_cpus

    def against_limit(self, group, key=lambda case: case['variant']):
        '''``of_limit`` of a group's kernels; see :func:`metrics.against_limit`.'''
        paired, notes = metrics.against_limit(group, self.agreement, key, self.plumbline.of_machine.get('core_kinds', ()))
        for text in notes:
            self.note(text)
        return paired

    def limited(self, group, name=lambda record: record['variant'], unjudged=None):
        '''Yield ``of_limit``, ``of_parts`` and ``bandwidth`` of every kernel of a group.

        :arg name: function record -> what the two metrics are about.
        :arg unjudged: why ``of_limit`` must not be judged here, or :obj:`None`.
        '''
        paired = self.against_limit(group, name)
        for record in metrics.kernels(group):
            subject = name(record)
            found = paired[subject]
            yield from metrics.of_machine(found, subject, unjudged)
            yield metrics.bandwidth(record, subject, found.limit)

    def agreement(self, level, threads):
        '''Our limit streams over likwid-bench's best, the two run by turns, of each repeat.

        Checks with a limit get it from their cross-check (:class:`plumbline.rfm.limited.LimitedCheck`).
        '''
        return []

    def start(self, command):
        '''Place the threads; the command as it is run.'''
        if 'likwid' in self.current_partition.features and not self.opens_regions:
            command = pin.pin_command(self.cpus, command)
            self.env_vars.update(pin.pin_environment(self.cpus))
        else:
            self.env_vars.update(pin.omp_environment(self.cpus))
            why = 'the program opens parallel regions itself' if self.opens_regions else 'likwid-pin is not on this partition'
            self.note(f'{why}: OpenMP binds the threads')
        self.plumbline.threads = self.threads
        self.run_command(command)
        return command

    def disassembly(self):
        '''What the build fixture wrote of the program's code (:mod:`plumbline.system.codegen`); empty without objdump.'''
        path = Path(self.built(self.program) + '.asm')
        return path.read_text() if path.exists() else ''

    @run_after('sanity')
    def read_simd_widths(self):
        if self.is_dry_run():
            return
        widths = codegen.widths_of(self.disassembly(), self.program, {
            (record['variant'], record['isa']) for record in metrics.kernels(self.measurements)})
        if widths:
            self.plumbline.simd_width = widths
            self.note('SIMD width: ' + ', '.join(f'{variant} {width}' for variant, width in sorted(widths.items())))
