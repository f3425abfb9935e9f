'''The base of all checks that run our programs: build, pinning, records, references, guards.

A check states its question in its docstring, its parameters, its options and its metrics; all else
is here.  The hooks follow ReFrame's pipeline; ``DESIGN`` names the traps that the guards close.
'''

import os
import shlex
import sys

import reframe.utility.sanity as sn
from reframe.core.builtins import (fixture, run_after, run_before,
                                   sanity_function, variable)
from reframe.core.exceptions import PerformanceError, ReframeSyntaxError, SanityError
from reframe.core.runtime import runtime

from plumbline import codegen, evaluation, lost_time, metrics, records, references, topology, verdict
from plumbline.capacity import cache_capacity
from plumbline.likwid import pin
from plumbline.errors import PlumblineError, in_one_line
from plumbline.model import states
from plumbline.node import OnNode
from plumbline.programs import native_programs


#: What tests measured that did not pass, for the second try that ReFrame gives them in the same session: (unique name, partition,
#: environment) -> records.
_SUSPECTS = {}


class ProgramCheck(OnNode):
    '''Base plugin of all checks of our own programs.

    A check sets :attr:`program`, and defines ``options()`` (list of program options) and ``evaluate()`` (yields
    :class:`metrics.Metric`).  What starts the program defines ``programs`` (its build), ``cpus`` (those asked for, in the
    order of the threads or ranks) and ``start()``.
    '''

    #: Name of the program to run.
    #:
    #: :type: :class:`str`
    program = variable(str)

    #: Where the question comes from: paper, section, table or figure.
    #:
    #: :type: :class:`str`
    source = variable(str, value='', loggable=False)

    #: Timed repetitions of every case, shared among the processes; at least 10 in each.
    #:
    #: :type: :class:`int`
    #: :default: ``25``
    samples = variable(int, value=25, loggable=False)

    processes = 3

    #: The result (``schemas/result.json``); it travels to the archive in ReFrame's run report.
    plumbline = variable(dict, value={}, loggable=True)

    #: Level that cases of a size are meant to live in; a record that says otherwise is refused.
    #:
    #: :type: dictionary size -> level
    intended = variable(dict, value={}, loggable=False)

    #: The measurement records, once the program has run; none of a check that has no program of ours.
    measurements = ()

    #: Whether the test was measured before in this session: there is no further try.
    is_final = False

    # --- what a check may use ------------------------------------------------------------------

    def elements(self, level, bytes_per_element):
        '''How many elements stay in a level for this check's threads; remembered as intended.'''
        sizes, skipped = self.working_sets(self.cpus)
        if level not in sizes:
            raise PlumblineError(skipped[level])
        self.intended[sizes[level] // bytes_per_element] = level
        return sizes[level] // bytes_per_element

    def every_level(self, bytes_per_element):
        '''Elements for each level that can be measured; the others are said to be skipped.'''
        sizes, skipped = self.working_sets(self.cpus)
        for level, reason in skipped.items():
            self.skip_metric(f'all in {level}', reason)
        return {level: self.elements(level, bytes_per_element) for level in sizes}

    def skip_metric(self, metric, reason):
        '''Say that something could not be measured.'''
        self.plumbline.setdefault('skipped', []).append({'metric': metric, 'reason': reason})

    def leave_out(self, reason, metric='all', promise=None):
        '''Skip the test, and say why: ReFrame's run report does not.

        :arg metric: what could not be measured.
        :arg promise: feature of a partition by which its site says that it can be: there the test fails.
        '''
        where = self.current_partition
        if promise in where.features:
            raise SanityError(f'{reason}; {where.fullname} has the feature {promise}: mend that, or take it out of the site file')
        self.skip_metric(metric, reason)
        self.skip(reason)

    def note(self, text):
        '''A remark for the report.'''
        notes = self.plumbline.setdefault('notes', [])
        if text not in notes:
            notes.append(text)

    def disturbed(self):
        '''Why what only threads that all work at once can reach must not be judged; None where they had the CPUs to themselves.'''
        given = lost_time.too_little(self.plumbline['lost'], lost_time.GRANTED)
        return None if given is None else f'the threads had the CPUs for {given:.2f} of the time'

    # --- hooks, in the order of the pipeline ---------------------------------------------------

    @run_after('init')
    def refuse_unreadable_command_line(self):
        '''ReFrame 4.10 cannot query a results database after a session whose command line holds a
        brace.

        An exception here would be a warning: ReFrame would skip the check and pass.
        '''
        if '}' in ' '.join(sys.argv) and runtime().get_option('storage/0/enable'):
            sys.exit("plumbline: a '}' in the command line makes ReFrame's results database "
                     'unreadable; write the option without it, or disable storage')

    @run_before('run')
    def launch(self):
        with in_one_line():
            options = self.options()
            command = self.start([self.programs.path(self.program), *options, '--samples', self.samples_of_each, *self.placing()])
        self.describe(command)

    @property
    def samples_of_each(self):
        '''Timed repetitions of every case in each process.'''
        return max(records.MIN_SAMPLES, -(-self.samples // self.processes)) if self.processes > 1 else self.samples

    @run_before('run', always_last=True)
    def start_all_processes(self):
        if self.processes < 1:
            raise ReframeSyntaxError(f'processes={self.processes}: a program is started once at least')
        if self.processes > 1:
            self.prerun_cmds += [f"for process in {' '.join(map(str, range(1, self.processes + 1)))}; do"]
            self.postrun_cmds = ['done', *self.postrun_cmds]

    def placing(self):
        '''Options that tell the program where it is expected to run.'''
        return ['--cpus', ','.join(map(str, self.cpus))]

    def misplaced(self, record):
        '''The complaint about a thread, or rank, that did not run where it was asked to; or :obj:`None`.'''
        return records.check_placement(record, self.cpus[:record['threads'] * record['ranks']])

    def describe(self, command):
        '''What every result says: the question, and what was run.'''
        self.plumbline.update(
            schema=1, question=self.question(), source=self.source, level=getattr(self, 'level', None),
            command=shlex.join(map(str, command)), rerun=self._rerun())
        if hasattr(self, 'programs') and self.programs.spack:     # a simulation has no programs
            self.plumbline['software'] = self.programs.spack.provenance()

    def run_command(self, command):
        '''What ReFrame is to run: a program and its options.'''
        self.executable, self.executable_opts = command[0], [shlex.quote(str(x)) for x in command[1:]]

    def _rerun(self):
        config = runtime().site_config.sources[-1]
        environ, system = self.current_environ.name, self.current_partition.fullname
        return shlex.join(['reframe', '-C', str(config), '-c', self.prefix, '--system', system,
                           '-p', environ, '-n', f'/{self.hashcode}', '-r'])

    @sanity_function
    def numbers_prove_something(self):
        '''Every record is complete, valid, long enough, and was taken where it was asked for.'''
        with in_one_line():
            found = records.parse(self.output(), f'output of {self.program}', self.processes)
        self.plumbline.update(machine=found.machine, lost=found.lost)
        for text in lost_time.notes(found.lost, found.machine):
            self.note(text)
        if not metrics.kernels(found.measurements):
            raise SanityError(f'{self.program} measured nothing; its standard error says why')
        if found.processes != self.processes:
            raise SanityError(f'{self.program} was started {self.processes} times, and {found.processes} processes left records')
        self.measurements = self.plumbline['records'] = self._pooled(found.measurements)
        self.plumbline['timed_seconds'] = sum(sum(r['seconds']) for r in found.measurements)
        for record in found.measurements:
            complaints = [*records.check_worth_reporting(record)]
            complaints += filter(None, [self.misplaced(record), self._wrong_level(record)])
            if complaints:
                raise SanityError(complaints[0])
        return True

    def _pooled(self, measurements):
        '''What this test measured before in this session and could not pass with, and what it has measured now.

        Evidence is added to, never replaced: the last of several tries would be the one that somebody liked.
        '''
        before = _SUSPECTS.pop(self._case(), [])
        first = 1 + max((record['process'] for record in before), default=-1)
        self.is_final = bool(before)
        return before + [{**record, 'process': first + record['process']} for record in measurements]

    def _case(self):
        return self.unique_name, self.current_partition.fullname, self.current_environ.name

    def _wrong_level(self, record):
        meant = self.intended.get(record['size'], record['level'])
        if record['role'] == 'kernel' and meant != record['level']:
            return (f"{records.label(record)} is meant for {meant}, but lives in "
                    f"{record['level']}: the caches of the node differ from the partition's "
                    'processor information; detect it anew')
        return None

    @run_before('performance')
    def judge(self):
        '''The metrics with their verdicts, and ReFrame's own references and variables for them.'''
        if self.is_dry_run():
            return
        with in_one_line():
            path = references.write_merged(self.stagedir, self.current_system.name,
                                           type(self).__name__)
            known = references.applying(path, self)
            met = states.find(self.measurements)
            if met.several:
                self.note(evaluation.told(met))
            found = evaluation.evaluate(self, met)
        self.lost = self._recorded_but_not(known, set(found))
        chosen = {name: evaluation.choose(cases, known.get(name)) for name, cases in found.items()}
        judged = self.plumbline['metrics'] = [evaluation.judged(case) for case in chosen.values()]
        # ReFrame knows PASS and FAIL: it is told of no reference for what cannot be judged, or must not be.
        self.reference = {'$ref': references.narrowed(path, self, {metric['name']: (
            chosen[metric['name']].leaf if metric['verdict'] in (verdict.PASS, verdict.FAIL) else None) for metric in judged})}
        for metric in judged:
            self.perf_variables[metric['name']] = sn.make_performance_function(sn.defer(metric['value']), metric['unit'])
        if not self.is_final and {verdict.FAIL, verdict.UNSTABLE} & {metric['verdict'] for metric in judged}:
            _SUSPECTS[self._case()] = self.measurements

    def _recorded_but_not(self, known, found):
        '''Metrics that this system once measured, and of which the check does not say why they are
        gone: they would be gone from the report as well.'''
        said = {skipped['metric'] for skipped in self.plumbline.get('skipped', ())}
        return [f'{name} of {one.file}' for name, one in known.items() if one.file != 'portable.yaml' and name not in found | said
                and not any(f'all in {part}' in said for part in name.split('.'))]

    @run_after('performance', always_last=True)
    def every_metric_counts(self):
        '''ReFrame only warns of a metric that it cannot evaluate; and it knows no UNSTABLE.'''
        if self.is_dry_run():
            return
        evaluated = {key.split(':')[-1] for key in self.perfvalues}
        missing = sorted(set(self.perf_variables) - evaluated) + self.lost
        if missing or not evaluated:
            raise PerformanceError(f"not measured: {', '.join(missing) or 'any metric at all'}")
        # Of a FAIL ReFrame knows already, unless it is of a metric that has no reference.
        for ruling in (verdict.FAIL, verdict.UNSTABLE):
            named = [f"{m['name']}: {m['reason']}" for m in self.plumbline['metrics']
                     if m['verdict'] == ruling]
            tolerated = ruling == verdict.UNSTABLE and self.is_final and not verdict.is_undecided(
                m['verdict'] for m in self.plumbline['metrics'])
            if named and not tolerated:
                raise PerformanceError(f"{ruling}: {'; '.join(named)}")


class NativeCheck(ProgramCheck):
    '''Base plugin of the checks of one process: a check sets ``threads`` (``one``, ``all``, or a parameter of both).'''

    NEEDS = '+openmp'

    #: The native programs of the environment.
    programs = fixture(native_programs, scope='environment')

    #: What of its caches is ours.
    caches = fixture(cache_capacity, scope='environment')

    def ours(self):
        return self.caches.ours()

    def placing(self):
        ours = topology.sizes_text(self.ours())
        return [*super().placing(), *(['--capacity', ours] if ours else [])]

    @property
    def cpus(self):
        '''The CPUs of this check's threads, in their order.'''
        return self.all_cpus[:1] if self.threads == 'one' else self.all_cpus

    def against_limit(self, group, key=lambda case: case['variant']):
        '''``of_limit`` of a group's kernels; see :func:`metrics.against_limit`.'''
        paired, notes = metrics.against_limit(group, self.witness_best, self.agreement, key)
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

    def witness_best(self, level, threads):
        '''likwid-bench's best traffic rate, MB/s; None where it did not measure.

        Checks with a limit get it from their witness (:class:`plumbline.witness.LimitedCheck`).
        '''
        return None

    def agreement(self, level, threads):
        '''Our limit streams over likwid-bench's best, the two run by turns, of each repeat.'''
        return []

    def start(self, command):
        '''Place the threads; the command as it is run.'''
        if 'likwid' in self.current_partition.features:
            command = pin.pin_command(self.cpus, command)
            self.env_vars.update(pin.pin_environment(self.cpus))
        else:
            self.env_vars.update(pin.omp_environment(self.cpus))
            self.note('likwid-pin is not on this partition: OpenMP binds the threads')
        self.plumbline['threads'] = self.threads
        self.run_command(command)
        return command

    def disassembly(self):
        '''What the build fixture wrote of the program's code (:mod:`plumbline.codegen`); empty without objdump.'''
        path = self.programs.path(self.program) + '.asm'
        if not os.path.exists(path):
            return ''
        with open(path) as file:
            return file.read()

    @run_after('sanity')
    def look_at_the_code(self):
        if self.is_dry_run():
            return
        widths = codegen.widths_of(self.disassembly(), self.program, {
            (record['variant'], record['isa']) for record in metrics.kernels(self.measurements)})
        if widths:
            self.plumbline['compiled_to'] = widths
            self.note('compiled to: ' + ', '.join(f'{variant} {width}' for variant, width
                                                  in sorted(widths.items())))
