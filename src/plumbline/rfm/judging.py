'''Judging, for any ReFrame test: what it measured becomes metrics with references and verdicts.

What checks of programs that are not ours (:mod:`plumbline.judged`) have in common with those of our own programs (``rfm/check.py``).
'''

import contextlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import PerformanceError, ReframeSyntaxError, SanityError
from reframe.core.runtime import runtime

from plumbline import references
from plumbline.errors import PlumblineError, WrongResult, in_one_line
from plumbline.model import baselines, parameters, processor, registry, result, verdict
from plumbline.model.safe_text import masked
from plumbline.rfm import evaluation, in_force, narrower, retries
from plumbline.rfm.node import OnNode
from plumbline.rfm.variables import TheResult, given
from plumbline.settings import NODE, ON_NODE, ROOT, on_command_line

#: The last run of each test that was judged and has not passed, for those that ReFrame gives it in the same session: (unique name, partition,
#: environment) -> the test.
_RUNS: dict[tuple[str, str, str], 'Judging'] = {}

#: Those that have passed in this session.
_PASSED: set[tuple[str, str, str]] = set()

#: The first wrong result of each test in this session, in words.
_WRONG: dict[tuple[str, str, str], str] = {}


class Judging(OnNode):
    '''Base plugin of every test that is judged: it defines ``evaluate()``, which yields :class:`metrics.Metric`, and fills
    :attr:`measurements` before the stage ``performance``.'''

    #: Where the question comes from: paper, section, table or figure.
    source = variable(str, value='', loggable=False)

    #: The part of the machine that its metrics tell of, of :data:`registry.STATED`: one of the subsystems, or ``memory`` (by the threads),
    #: ``messages`` (by the transport), ``levels`` (by ``level``, or the level of each metric's record).  A metric may have its own.
    subsystem = ''

    #: The result (``schemas/result.json``); it travels to the archive in ReFrame's run report.
    plumbline: result.Result = variable(TheResult, value=result.Result(), loggable=True)

    #: The worst verdict of its metrics, for the logs of ReFrame and for its database of results.
    verdict = variable(str, type(None), value=None, loggable=True)

    #: The measurement records, once the program has run.
    measurements: list[dict] = []

    #: ReFrame's options that the test's rerun needs to be the same.
    rerun_options: Sequence[str] = ()

    #: The run of the same test before this one in the session, with what was measured before that, and the number of this one's first
    #: process; None in the first run.
    earlier: 'Judging | None' = None
    again: int | None = None

    #: Whether ``evaluate()`` is asked of one process, beside which others may have measured what this one could not.
    of_one_process = False

    #: Why this run, of other nodes than an earlier one that was UNSTABLE, says nothing of that; empty where it does.
    doubt = ''

    # --- what a check may use ------------------------------------------------------------------

    def skip_metric(self, metric, reason, parts=(), symptom=result.UNSET, subsystem=result.UNSET):
        '''Say that something could not be measured.

        :arg parts: of names of metrics, where all that have one of them in theirs are meant: levels, variants, sizes.
        :arg symptom: by which the diagnosis knows it (``schemas/result.json``).
        :arg subsystem: that of the metrics, where they have their own.
        '''
        self.plumbline.skip(result.Skipped(metric, reason, list(parts) if parts else result.UNSET, symptom, subsystem=subsystem))

    def skip_test(self, reason, metric='all', promise=None, had=False, symptom=result.UNSET):
        '''Skip the test, and say why: ReFrame's run report does not.

        :arg metric: what could not be measured; :arg symptom: as of :meth:`skip_metric`.
        :arg promise: feature of a partition by which its site says that it can be: there the test fails.
        :arg had: whether a machine that has references of the test had then what lacks now: there the test fails, too.
        '''
        if self.of_one_process:
            raise evaluation.NotThisProcess(reason=reason, metric=metric, promise=promise, had=had, symptom=symptom)
        where = self.current_partition
        if self.suspected:
            self._keep(self.suspected, f'{reason}; the run before was {self.suspected.verdict}')
        if promise in where.features:
            raise SanityError(f'{reason}; {where.fullname} has the feature {promise}: fix that, or take it out of the site file')
        skipped = result.Skipped(metric, reason, symptom=symptom)
        self.plumbline.skip(skipped)
        with in_one_line():
            if known := self._recorded():
                skipped.recorded = len(known)
        if known and had:
            self.plumbline.symptom = symptom
            raise SanityError(f'{reason}; they were when the references of {len(known)} of its metrics were recorded')
        self.skip(reason)

    def note(self, text, about=None):
        '''A remark for the report.

        :arg about: by what a table or a figure that shows it finds it.
        '''
        self.plumbline.note(text, about)

    @property
    def measured_by(self):
        '''The run that took :attr:`measurements`, which in ``evaluate()`` are those of one process: this one or an earlier one.'''
        run = self
        while run.earlier and self.measurements and self.measurements[0]['process'] < run.again:
            run = run.earlier
        return run

    @property
    def further_runs(self):
        '''The number of the first process of each run but the first.'''
        return [*self.earlier.further_runs, self.again] if self.earlier else []

    def remember_wrong(self, complaint):
        '''Let all further runs of the test in this session fail: a wrong result is not made up for by another run.'''
        _WRONG.setdefault(self._case(), complaint)

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

    @run_after('init', always_last=True)
    def refuse_other_subsystems(self):
        if self.subsystem not in registry.STATED:
            self.refuse('subsystem', self.subsystem, f"give what it tells of: {', '.join(map(repr, registry.STATED))}")

    @run_after('init')
    def tag_what_it_measures(self):
        '''``-t io`` chooses what stands in ``checks/io``; a check's own tags say when it runs.'''
        folder = Path(self.prefix)
        if folder.parent == ROOT / 'checks':
            self.tags |= {folder.name}

    @run_after('setup')
    def refuse_other_metrics(self):
        '''ReFrame would evaluate them, and no verdict, history or report would have them.'''
        if self.perf_variables:
            raise ReframeSyntaxError(f"{', '.join(self.perf_variables)}: a performance function is not judged here: yield it from evaluate()")

    @run_before('run', always_last=True)
    def start_all_processes(self):
        before, after = self.around_a_run()
        if self.processes > 1:
            before, after = [f"for process in {' '.join(map(str, range(1, self.processes + 1)))}; do", *before], [*after, 'done']
        self.prerun_cmds += before
        self.postrun_cmds = [*after, *self.postrun_cmds]

    def around_a_run(self):
        '''Shell commands before and after each run of the program.'''
        return [], []

    def describe(self, command):
        '''What every result says: the question, and what was run.'''
        self.plumbline.schema = result.SCHEMA_VERSION
        self.plumbline.question, self.plumbline.source, self.plumbline.level = self.question(), self.source, getattr(self, 'level', None)
        self.plumbline.given = given(self) or result.UNSET
        self.plumbline.command, self.plumbline.rerun = shlex.join(map(str, command)), self._rerun()
        spack = hasattr(self, 'programs') and self.programs.spack     # a simulation has no programs
        self.plumbline.software = _surroundings(self.current_partition.local_env, self.current_environ) | (spack.provenance() if spack else {})

    def run_command(self, command):
        '''What ReFrame is to run: a program and its options.'''
        self.executable, self.executable_opts = command[0], [shlex.quote(str(x)) for x in command[1:]]

    def _rerun(self):
        config = runtime().site_config.sources[-1]
        environ, system = self.current_environ.name, self.current_partition.fullname
        which = parameters.options_of_varied(self.display_name) or ['-n', f'/{self.hashcode}']
        ours = [text for text in on_command_line('-S', '--setvar') if text.partition('=')[0].rpartition('.')[0] in ('', type(self).__name__)]
        told = {text.partition('=')[0].rpartition('.')[2] for text in ours} | {*parameters.varied(parameters.of_display_name(self.display_name)[1])}
        ours += [f'{type(self).__name__}.{name}={text}' for name, text in given(self).items() if name not in told]     # by a mode
        which += [word for text in ours for word in ('-S', masked(text))]
        return shlex.join(['reframe', '-C', str(config), '-c', self.prefix, '--system', system,
                           '-p', environ, *which, *self.rerun_options, '-r'])

    @run_before('run')
    def choose_same_nodes(self):
        '''A second run says something of the nodes of the first.'''
        if self.suspected and self.by_slurm() and (nodes := self.suspected.nodes_of_job()):
            self.job.options += [f"--nodelist={','.join(nodes)}"]

    @run_before('sanity')
    def look_for_wrong_results(self):
        '''Before the exit code ends the test.'''
        if self.is_dry_run():
            return
        if earlier := _WRONG.get(self._case()):
            raise SanityError(f'in an earlier run of this session: {earlier}')
        if ', asked for CPU ' in self.output('stderr'):       # also where the records cannot be read
            self.plumbline.symptom = 'misplaced'
        with contextlib.suppress(PlumblineError):      # what cannot be read fails where it is needed
            if wrong := self.wrong_result():
                self.remember_wrong(wrong)

    def wrong_result(self):
        '''Which result its program calls wrong; None where it calls none so.'''
        return

    def pooled(self, measurements):
        '''What this test measured before in this session and could not pass with, in however many runs, and what it has measured now.

        Evidence is added to, never replaced: the last of several tries would be the one that somebody liked.

        :raises SanityError: if that was on other nodes, and a FAIL.
        '''
        before = self.suspected
        if before is None:
            return measurements
        self.doubt = before.doubt
        if {*before.hosts()} ^ {*self.hosts()} and before.hosts() and self.hosts():
            named = next((f'{metric.name}: {metric.reason}' for metric in before.plumbline.metrics or () if metric.verdict == before.verdict), '')
            told = f"the run before, on {', '.join(before.hosts())}, was {before.verdict} ({named}); this one was on {', '.join(self.hosts())}"
            self.note(told)
            if before.verdict == verdict.FAIL:
                self._keep(before, f'{told}: run the test on those nodes again')
            self.doubt = told if before.verdict == verdict.UNSTABLE else self.doubt
            return measurements
        self.earlier, self.again = before, 1 + max(record['process'] for record in before.measurements)
        if before.earlier and before.verdict == verdict.FAIL:
            self.note('it was a FAIL in two runs, and stays one: what further runs measure is not judged')
            return before.measurements
        return before.measurements + [{**record, 'process': self.again + record['process']} for record in measurements]

    def _keep(self, before, told):
        '''Fail as the run before did, where this one says nothing of what that found.'''
        if before.verdict == verdict.FAIL:
            raise SanityError(told)
        if before.verdict == verdict.UNSTABLE:
            self.plumbline.failed_for = verdict.UNSTABLE
            raise PerformanceError(told)

    @property
    def suspected(self):
        '''The run before this one in the session, with what was measured before that, if it did not pass; or :obj:`None`, as for each of the
        repetitions that come after the retries.'''
        return None if self._is_repetition() else _RUNS.get(self._case())

    def _is_repetition(self):
        '''Whether this is no retry: ReFrame retries before it repeats, no more than so often, and nothing that has passed.'''
        return retries.are_followed() and (self._case() in _PASSED or runtime().current_run > retries.most())

    def _is_retried(self):
        '''Whether ReFrame's next run may be of what failed in this one.'''
        return not retries.are_followed() or (self._case() not in _PASSED and runtime().current_run < retries.most())

    def hosts(self):
        '''The names of the nodes that were measured: as the records have them, else as the scheduler has; empty if neither says.'''
        machine = self.plumbline.of_machine
        ranks = {rank['host'] for rank in machine.get('processes') or ()} or {machine.get('hostname')}
        return sorted(filter(None, ranks)) or self.nodes_of_job()

    def nodes_of_job(self):
        '''The names that the scheduler has of them; empty if it did not say.'''
        return [node for node in self.job.nodelist or () if node != 'None']

    def _case(self):
        return self.unique_name, self.current_partition.fullname, self.current_environ.name

    def evaluated(self):
        '''Name of a metric -> list of :class:`evaluation.Case`, one for each state of the machine.'''
        return evaluation.of_processes(self)

    @run_before('performance')
    def judge_metrics(self):
        '''The metrics with their verdicts, and ReFrame's own references and variables for them.'''
        if self.is_dry_run():
            return
        with in_one_line():
            path = references.write_merged(self.stagedir, self.current_system.name, type(self).__name__,
                                           processor=processor.name(self.plumbline.of_machine), node=self._node())
            known = references.applying(path, self)
            if set(references.of_site(self, node=self._node())) - set(self._recorded()):
                self.plumbline.other_processors = references.elsewhere(path)
            try:
                found = self.evaluated()
            except WrongResult as error:
                self.remember_wrong(str(error))
                raise
            known = in_force.in_force(self, known, found)
        self.lost = self._recorded_but_not(known, set(found))
        chosen = {name: evaluation.choose(cases, known.get(name)) for name, cases in found.items()}
        if widths := narrower.widths_of_references(chosen.values()):
            self.plumbline.simd_width_of_references = widths
        judged = self.plumbline.metrics = [evaluation.judged(case, self.plumbline.simd_width or {}, self.further_runs) for case in chosen.values()]
        for metric in judged:
            source = chosen[metric.name].metric
            metric.subsystem = self._part_of(metric.metric, source.subsystem, source.record)
        self.verdict = verdict.worst(metric.verdict for metric in judged)
        for name, file in self.lost.items() if self.verdict == verdict.FAIL else ():      # for which the test ends, and not for what is gone
            self.plumbline.skip(result.Skipped(name, f'it is gone, and {file} has it', referenced=[name]))
        self._tell_parts_of_skipped()
        # ReFrame knows the median and its bounds: it is told of no reference where these do not decide.
        self.reference = {'$ref': references.narrowed(path, self, {metric.name: (
            chosen[metric.name].leaf if _as_reframe_judges(metric) else None) for metric in judged})}
        for metric in judged:
            self.perf_variables[metric.name] = sn.make_performance_function(sn.defer(metric.value), metric.unit)
        if (self._is_retried() or self.suspected) and (not self.doubt or self.verdict == verdict.FAIL):
            _RUNS[self._case()] = self

    def _part_of(self, metric, stated=None, record=None):
        '''The subsystem of a metric.

        :arg stated: what the check says of it; :arg record: that it is of.
        '''
        level, own = getattr(self, 'level', None) or (record or {}).get('level'), self.plumbline
        return registry.subsystem(metric, stated or self.subsystem, level, own.threads or None, own.transport or None)

    def _tell_parts_of_skipped(self):
        '''The subsystem of each metric that has references and was not measured, or not judged by them.'''
        parts = {metric.name: metric.subsystem for metric in self.plumbline.metrics or ()}
        for skipped in self.plumbline.skipped or ():
            if skipped.referenced:
                found = {name: name.partition('.')[0] for name in skipped.referenced}
                skipped.subsystems = [parts.get(name) or (self._part_of(metric, skipped.subsystem) if metric in registry.METRICS else None)
                                      for name, metric in found.items()]

    def _of_other_states(self):
        '''The metrics whose references are all of states that the machine was not in.'''
        return [metric for metric in self.plumbline.metrics or () if metric.recorded_states]

    def _node(self):
        '''The name of the node that was measured, as the archive has it; None where there were several.'''
        nodes = self.nodes_of_job() or [self.plumbline.of_machine.get('hostname')]
        return nodes[0] if len(nodes) == 1 else None

    def _recorded(self):
        '''The names of the metrics that have recorded references which are in force, as far as node and processor are known.'''
        machine, here = self.plumbline.of_machine, self.current_partition.scheduler.registered_name == 'local' or ON_NODE
        if not machine and here:        # its job has not run
            machine = processor.of_cpuinfo(Path('/proc/cpuinfo').read_text(errors='replace'))
        return references.of_site(self, processor.name(machine), self._node() or (NODE if here else None))

    def _recorded_but_not(self, known, found):
        '''Metrics that this system once measured -> file of their references, of which the check does not say why they are gone.'''
        gone = {name: one.file for name, one in known.items() if one.file not in baselines.SHIPPED and name not in found}
        for skipped in self.plumbline.skipped or ():
            skipped.referenced = sorted(filter(skipped.means, gone)) or skipped.referenced
        return {name: file for name, file in gone.items() if not any(skipped.means(name) for skipped in self.plumbline.skipped or ())}

    @run_after('performance', always_last=True)
    def require_every_metric(self):
        '''ReFrame only warns of a metric that it cannot evaluate; and it knows no UNSTABLE.'''
        if self.is_dry_run():
            return
        evaluated = {key.split(':')[-1] for key in self.perfvalues}
        missing = sorted(set(self.perf_variables) - evaluated) + [f'{name} of {file}' for name, file in self.lost.items()]
        if missing or not evaluated:
            raise PerformanceError(f"not measured: {', '.join(missing) or 'any metric at all'}")
        # Of a FAIL ReFrame knows already, unless it is of a metric that has no reference.
        judged = self.plumbline.metrics or []
        for ruling in (verdict.FAIL, verdict.UNSTABLE):
            named = [f'{metric.name}: {metric.reason}' for metric in judged if metric.verdict == ruling]
            tolerated = ruling == verdict.UNSTABLE and self.again is not None and not verdict.is_undecided(
                (metric.verdict, result.known(metric.sees)) for metric in judged)
            if named and not tolerated:
                self.plumbline.failed_for = ruling
                raise PerformanceError(f"{ruling}: {'; '.join(named)}")
        if self.doubt:
            self.plumbline.failed_for = verdict.UNSTABLE
            raise PerformanceError(self.doubt)
        if (elsewhere := self._of_other_states()) and self.again is None:
            self.plumbline.failed_for = verdict.UNSTABLE
            raise PerformanceError('; '.join(f'{metric.name}: {metric.reason}' for metric in elsewhere))
        _RUNS.pop(self._case(), None)
        _PASSED.add(self._case())


def _surroundings(*environs):
    '''What the site's configuration sets for the jobs.'''
    return {'variables': [masked(f'{name}={value}') for environ in environs for name, value in environ.env_vars.items()],
            'modules': [name for environ in environs for name in environ.modules]}


def _as_reframe_judges(metric):
    low, high = verdict.bounds(metric.reference or (0.0, None, None))
    return metric.verdict == (verdict.PASS if low <= metric.value <= high else verdict.FAIL)
