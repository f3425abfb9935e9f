'''A check's metrics of all its processes, within the states that they met, and the choice of the one that is judged.'''

import itertools
from collections import defaultdict
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from reframe.core.exceptions import ReframeError

from plumbline.model import baselines, quantity, registry, states, uncertainty, verdict
from plumbline.model.metrics import Metric
from plumbline.model.result import UNSET, Measured, OtherState, Process
from plumbline.references import Known, Reference, bounds
from plumbline.references.peaks import possible
from plumbline.rfm import narrower

#: Of these it is said which loss would have been a FAIL.
_SEES = verdict.PASS, verdict.UNSTABLE


class NotThisProcess(Exception):
    '''A process in which nothing could be measured; ``arguments`` of ``skip_test()``, where no other has measured anything.'''

    def __init__(self, **arguments):
        super().__init__(arguments['reason'])
        self.arguments = arguments


@dataclass
class Case:
    '''A metric in one state.

    :attr metric: :class:`Metric`, with the samples of that state only.
    :attr state: dictionary name -> seconds, ``{}`` where there is nothing to tell apart, None where it is not known or there are several.
    :attr unsteady: whether the state changed too often for any of its records to have rounds enough in one.
    :attr set_aside: samples in other states, or in none.
    :attr processes: who took the samples; empty where one process took all.
    :attr reference: :class:`references.Reference` that applies in this state; None if there is none.
    :attr floor: :class:`references.Known` of any machine, of what is exact, which the reference would loosen, :func:`bounds.floor`; or None.
    :attr elsewhere: :class:`references.Known` of other states only, in whose place what lies beneath applies; None if there is none.
    :attr others: the same metric in the other states that were met often enough.
    '''
    metric: Metric
    state: dict | None = field(default_factory=dict)
    set_aside: int = 0
    reference: Reference | None = None
    reference_from: str | None = None
    floor: Known | None = None
    others: list = field(default_factory=list)
    elsewhere: Known | None = None
    unsteady: bool = False
    processes: list[Process] = field(default_factory=list)
    rounds: list | None = None

    @property
    def summary(self):
        return self._summary(self.metric.samples, self.processes)

    @property
    def sees_by(self):
        '''The same with the whole interval, which a share that has fallen has: that of one at its upper end is cut off there.'''
        return self._summary(self.metric.samples, self.processes, cut=False)

    def of_runs(self, again):
        '''The same of each run alone that has a process in this state; empty where that is one.

        :arg again: number of the first process of a second run, or of each further one; None or empty if there is none.
        '''
        if not again:
            return []
        runs, begins = defaultdict(list), np.atleast_1d(again)
        parts = np.split(np.asarray(self.metric.samples), np.cumsum([process.n for process in self.processes])[:-1])
        for part, process in zip(parts, self.processes):
            runs[int(np.digitize(process.process, begins))].append((part, process))
        return [self._summary(np.concatenate([part for part, _ in run]), [process for _, process in run])
                for _, run in sorted(runs.items()) if len(runs) > 1]

    def _summary(self, samples, processes, cut=True):
        entry = registry.find(self.metric.metric)
        expected = (self.reference and self.reference.expected) or {}
        found = uncertainty.summary(samples, [process.n for process in processes], entry.noise, expected.get('spread'))
        if not cut or entry.upper is None or not found.value <= entry.upper:
            return found
        return replace(found, interval=(found.interval[0], min(found.interval[1], entry.upper)))       # beyond, there is nothing

    @property
    def leaf(self):
        '''(reference, lower, upper) that it is judged by; None if by none.'''
        own = self.reference.leaf if self.reference and not self.metric.unjudged else None
        return bounds.tighter(own, self.floor) if own and self.floor else own

    @property
    def is_of_system(self):
        '''Whether it is what the system gives, which depends neither on the state of the machine nor on the code.'''
        return registry.find(self.metric.metric).subsystem == registry.CPU_TIME

    def tell(self, measured):
        '''Say in its :class:`Measured` what there is beside the metric itself; nothing where one process met one state.'''
        if self.metric.record is not None:
            measured.record = self.metric.record.get('index')
        measured.processes = self.processes or UNSET
        if self.state or self.state is None:
            measured.state = self.state
        if self.set_aside:
            measured.set_aside, measured.rounds = self.set_aside, self.rounds
        if self.others:
            measured.states = [_summary(case) for case in self.others]


def _summary(case):
    found = case.summary
    return OtherState(state=case.state, value=found.value, n=found.n, spread=found.spread, interval=list(found.interval),
                      samples=np.asarray(case.metric.samples).tolist(), rounds=case.rounds, processes=case.processes or UNSET)


def told(met):
    '''What the report says of the states that were met: a text.'''
    shares, none = met.shares()
    texts = [f'{states.text(state)} in {count} samples' for state, count in shares]
    return '; '.join(['the machine changed its state: ' + ', '.join(texts), f'{none} in between' if none else '']).rstrip('; ')


def evaluate(check, met):
    '''All metrics of a check in each state.

    :arg met: :class:`states.Found` for the records in ``check.measurements``.
    :returns: dictionary name -> list of :class:`Case`, the usual state first.
    '''
    first, *further = met.choices
    found = {name: [pooled(cases)] for name, cases in _evaluated(check, met.within(first)).items()}
    for choice in further:
        if processes := met.enough(choice):
            within = [record for record in met.within(choice) if record.get('process', 0) in processes]
            for name, cases in _evaluated(check, within, says=False).items():
                case = pooled(cases)
                if all(case.state != one.state for one in found.get(name, ())):      # two choices may differ in the state of other teams only
                    found.get(name, []).append(case)
    if check.plumbline.skipped is not UNSET:    # by the first process, and another one could measure it
        check.plumbline.skipped = [one for one in check.plumbline.skipped if one.metric not in found]
    return found


def of_processes(check):
    '''The same where nothing tells states of the machine apart: ``check.measurements`` has the number of the process in each.'''
    return {name: [pooled(cases)] for name, cases in _evaluated(check, check.measurements).items()}


def _evaluated(check, measurements, says=True):
    '''Name of a metric -> list of :class:`Case`, one of each process.  What a check says of them it says of the first that
    does not skip the test; it is skipped where no process has a metric.'''
    found: dict[str, list[Case]] = {}
    processes = [list(own) for _, own in itertools.groupby(measurements, key=lambda record: record.get('process', 0))]
    recorded, skipped, told = check.measurements, None, not says
    check.of_one_process = True
    try:
        for number, own in enumerate(processes or [[]]):
            said = replace(check.plumbline)
            try:
                for case in _evaluated_once(check, own):
                    if len(found.setdefault(case.metric.name, [])) > number:
                        raise ReframeError(f'{case.metric.name} is measured twice; the check must name its metrics apart')
                    found[case.metric.name].append(case)
            except NotThisProcess as error:
                skipped = skipped or (error.arguments, check.plumbline)
                check.plumbline = said
            else:
                check.plumbline = said if told else check.plumbline
                told = True
    finally:
        check.measurements, check.of_one_process = recorded, False
    if skipped and says and not found:
        arguments, check.plumbline = skipped
        check.skip_test(**arguments)
    return found


def _evaluated_once(check, measurements):
    check.measurements = measurements
    for metric in check.evaluate():
        cases = measurements if metric.record is None else [metric.record]
        found = list({id(case['state']): case['state'] for case in cases}.values())
        yield Case(metric, _common(found), max((case['set_aside'] for case in cases), default=0),
                   unsteady=bool(cases) and all(state is None for state in found), rounds=metric.record and metric.record['rounds'],
                   processes=[Process(measurements[0].get('process', 0) if measurements else 0, int(np.size(metric.samples)),
                                      metric.record and metric.record.get('index'))])


def pooled(cases):
    '''One metric of several processes: of those that can be judged, if any, and were in the state that most samples were in, or in no other.'''
    def fitting(state):
        return [case for case in known if states.same(case.state, state)]

    judged = [case for case in cases if not case.metric.unjudged] or cases
    certain = [case for case in judged if not case.metric.doubt]
    judged = certain if 2 * len(certain) > len(judged) else judged
    known = [case for case in judged if case.state is not None]
    chosen = max((fitting(case.state) for case in known), key=lambda same: sum(np.size(case.metric.samples) for case in same), default=judged)
    set_aside = sum(case.set_aside for case in chosen) + sum(
        case.set_aside + np.size(case.metric.samples) for case in cases if not any(case is one for one in chosen))
    first = chosen[0]
    if len(cases) == 1:
        return replace(first, processes=[])
    limits = [case.metric.limit for case in chosen if case.metric.limit is not None]
    doubts = [case.metric.doubt for case in chosen if case.metric.doubt]
    doubt = doubts[0] if doubts and 2 * len(doubts) >= len(chosen) else None      # a single one says nothing of the others
    metric = replace(first.metric, doubt=doubt, samples=np.concatenate([np.atleast_1d(case.metric.samples) for case in chosen]),
                     limit=float(np.median(limits)) if limits else None)
    rounds = None if first.rounds is None else [number for case in chosen for number in case.rounds]
    return Case(metric, first.state, set_aside, unsteady=all(case.unsteady for case in chosen), rounds=rounds,
                processes=[process for case in chosen for process in case.processes])


def _common(found):
    '''The state of a metric of several records: what they all know, or None if one is not known or two differ.'''
    if None in found or not all(states.same(a, b) for a in found for b in found):
        return None
    return {name: seconds for state in found for name, seconds in state.items()}


def choose(cases, known):
    '''The case that is judged: the usual state, unless the reference is of another one that was met.

    :arg cases: list of :class:`Case`, the usual state first.
    :arg known: :class:`references.Known` of this metric, or None.
    '''
    if known is None:
        return _with(cases, 0)
    if known.references[0].state is None or cases[0].is_of_system:
        return _with(cases, 0, known.references[0], known)
    for number, case in enumerate(cases):
        for reference in known.references:
            if case.state is not None and states.same(case.state, reference.state):
                return _with(cases, number, reference, known)
    chosen = _with(cases, 0, known.beneath.references[0], known.beneath) if known.beneath else _with(cases, 0)
    chosen.elsewhere = known
    return chosen


def _with(cases, number, reference=None, known=None):
    chosen = cases[number]
    chosen.others = [case for case in cases if case is not chosen and np.size(case.metric.samples)]
    chosen.reference, chosen.reference_from = reference, known and known.file
    chosen.floor = bounds.floor(chosen.metric.metric, reference, known.beneath) if known and not chosen.metric.doubt else None
    return chosen


def _without_doubt(case):
    '''The same, not judged where what is out of the shipped bounds need not be the core's doing; what is within them is.'''
    if case.reference_from not in baselines.SHIPPED or not (case.metric.doubt and case.leaf):
        return case
    (least, most), (low, high) = verdict.bounds(case.leaf), case.summary.interval
    value, factor = case.summary.value, case.metric.explains
    proved = (least <= low and high <= most) or value * factor < least or value > most * factor
    return case if proved else replace(case, metric=replace(case.metric, unjudged=case.metric.doubt))


def _confirmed(case, runs, again):
    '''What is out of the bounds of a prediction is a FAIL where most of the runs alone are, of two both, and before the second where one so far
    out proves it.  What one so far out proves, or two of several say, no further run makes a PASS.

    :arg runs, again: :meth:`Case.of_runs`.
    :returns: as of :func:`verdict.judge_expected`.
    '''
    leaf, unit, found = case.reference.leaf, case.metric.unit, case.summary
    ruling, reason = verdict.judge_expected(found, leaf, unit)
    if not found.n or not np.isfinite(found.value):
        return ruling, reason
    far = bounds.of_one_run(leaf, case.metric.metric, case.reference.expected)
    if not runs:
        if ruling != verdict.FAIL or verdict.judge_expected(found, far, unit)[0] == verdict.FAIL:
            return ruling, reason
        return verdict.UNSTABLE, f"{reason}: a FAIL if a second run{' in this state of the machine' if again else ''} says so, too"
    alone = [verdict.judge_expected(run, leaf, unit) for run in runs]
    rulings = [one for one, _ in alone]
    out, within = rulings.count(verdict.FAIL), rulings.count(verdict.PASS)
    if 2 * out > len(runs) and ruling != verdict.PASS:
        why = reason if ruling == verdict.FAIL else next(told for one, told in reversed(alone) if one == verdict.FAIL)
        return verdict.FAIL, f'{why}, {_in_runs(out, runs)}'
    if not within and ruling != verdict.PASS:
        return next(one for one in alone if one[0] == verdict.UNSTABLE)
    if within < len(runs):
        where = f'out of bounds {_in_runs(len(runs) - within, runs)}' if ruling == verdict.PASS else f'within bounds {_in_runs(within, runs)}'
        reason += f"; but {where}: {', '.join(quantity.number(run.value) for run in runs)}"
    proved = any(verdict.judge_expected(run, far, unit)[0] == verdict.FAIL for run in runs)
    return verdict.UNSTABLE if proved or len(runs) - within > 1 else verdict.PASS, reason


def _in_runs(number, runs):
    if len(runs) == 2:
        return 'in both runs' if number == 2 else 'in one of two runs'
    return f'in {number} of {len(runs)} runs'


def judged(case, widths=MappingProxyType({}), again=None):
    '''The metric as it stands in a result: :class:`Measured`.

    :arg widths: variant -> width of its code.
    :arg again: as of :meth:`Case.of_runs`.
    '''
    case = _without_doubt(case)
    metric, reference, found = case.metric, case.leaf, case.summary
    expected = case.reference.expected if reference else None
    rises, runs = registry.better(metric.metric) == registry.LESS, case.of_runs(again)
    if expected:
        ruling, reason = _confirmed(case, runs, again)
        if ruling == verdict.PASS and (lost := narrower.lost(case, widths, runs)):
            ruling, reason = verdict.FAIL, lost
        if case.floor and ruling != verdict.FAIL:
            ruling, reason = bounds.missed(case.floor, found, metric.unit) or (ruling, reason)
        sees = verdict.seen_of_expected(case.sees_by, case.reference.leaf, expected, rises) if ruling in _SEES else None
        if sees is not None:        # nor does it see what one of its runs has lost
            sees = max([sees, *((run.value / reference[0] - 1) * (1 if rises else -1) for run in runs)])
    else:
        # What several processes differ by is in their interval; of one alone only the spread of its samples warns.
        ruling, reason = verdict.judge(found, reference, np.inf if len(case.processes) > 1 else verdict.MAX_SPREAD, metric.unit)
        alone = [verdict.judge(run, reference, np.inf, metric.unit) for run in runs]
        if ruling == verdict.PASS and (out := [told for one, told in alone if one == verdict.FAIL]):
            ruling, reason = verdict.UNSTABLE, f'{reason}; but {out[0]} {_in_runs(len(out), runs)}'
        sees = verdict.seen_loss(case.sees_by, reference, rises) if ruling in _SEES else None
    if ruling == verdict.NO_REFERENCE and metric.unjudged:
        reason = f'not judged: {metric.unjudged}'
        if beyond := _beyond(case):     # the site has judged it: that it cannot be judged today is no silence
            ruling, reason = verdict.UNSTABLE, f'{reason}; {beyond}'
    elif case.elsewhere and ruling in (verdict.NO_REFERENCE, verdict.PASS) and (worse := _worse_than_all(case, runs)):
        ruling, reason = verdict.UNSTABLE, f'{_of_other_states(case)}; {worse}'
    elif ruling == verdict.NO_REFERENCE and case.elsewhere:
        reason = _of_other_states(case)
    elif ruling == verdict.PASS and case.unsteady:
        ruling, reason = verdict.UNSTABLE, 'too few rounds in one state: the core-to-core latency changed during the samples'
    demand = expected and registry.better(metric.metric) != registry.MORE        # its upper bound says what is slow, not what cannot be
    most = possible(metric.metric, None if demand else reference, metric.record)[1]
    if metric.baseline and not metric.doubt:
        most = min(most, verdict.bounds(metric.baseline)[1])        # of recorded references, too
    if found.interval[0] > most and ruling != verdict.FAIL:
        reason = f'{quantity.number(found.value)} is above {quantity.number(most)}, the most that any hardware gives: model or measurement is wrong'
        ruling, sees = (verdict.FAIL if reference else ruling), None
    if ticket := reference and case.reference.known_issue:
        if ruling in (verdict.FAIL, verdict.UNSTABLE) and np.isfinite(found.value):     # that nothing was measured is no known issue
            ruling, reason, sees = verdict.KNOWN_ISSUE, f'{ticket}: {reason}', None
        elif ruling == verdict.PASS:
            reason += f'; the known issue is gone, take its $xfail away: {ticket}'
    if metric.remark and (ruling in (verdict.FAIL, verdict.UNSTABLE) or metric.unjudged):
        reason += f': {metric.remark}'
    state = states.text(case.state)
    if ruling in (verdict.FAIL, verdict.UNSTABLE) and states.is_the_hosts(case.state) and not case.is_of_system and state not in reason:
        reason += f'; in the state {state}'
    measured = Measured(
        name=metric.name, metric=metric.metric, subject=metric.subject,
        subsystem=registry.subsystem(metric.metric, metric.subsystem or registry.LEVELS, (metric.record or {}).get('level')),      # or the check says
        value=found.value, unit=metric.unit, samples=np.asarray(metric.samples).tolist(), n=found.n, spread=found.spread,
        interval=list(found.interval), reference=list(reference[:3]) if reference else None,
        reference_from=case.reference_from if reference else None, limit=metric.limit, verdict=ruling, reason=reason,
        sees=UNSET if sees is None else sees, expected=expected or UNSET, unjudged=metric.unjudged or UNSET)
    if not metric.unjudged and case.elsewhere and not all(one.known_issue for one in case.elsewhere.references):
        measured.recorded_states = [one.state for one in case.elsewhere.references if one.state]
    case.tell(measured)
    return measured


def _beyond(case):
    '''How a metric that is not judged is out of the bounds that the site has recorded; '' where it is not.'''
    if not case.reference or case.reference.known_issue or case.reference_from in baselines.SHIPPED:
        return ''
    judge = verdict.judge_expected if case.reference.expected else verdict.judge
    ruling, reason = judge(case.summary, case.reference.leaf, unit=case.metric.unit)
    return '' if ruling == verdict.PASS else reason


def _of_other_states(case):
    there = states.texts(one.state for one in case.elsewhere.references)
    return f'no reference of this state ({states.text(case.state)}); {case.elsewhere.file} has one of {there}'


def _worse_than_all(case, runs):
    '''How a metric, in each run, is worse than the bounds of every state that has a reference, by more than states differ; '' where it is not.'''
    references, metric = case.elsewhere.references, case.metric
    better, factor = registry.better(metric.metric), bounds.STATES_DIFFER if (metric.record or {}).get('ranks') == 1 else bounds.OF_RANKS
    leaves = sorted((bounds.of_another_state(one.leaf, better, factor) for one in references), key=lambda leaf: better * leaf[0])
    found = [verdict.judge_expected(run, leaf, metric.unit) for leaf in leaves for run in (case.summary, *runs)]
    if any(one.known_issue for one in references) or any(ruling != verdict.FAIL for ruling, _ in found):
        return ''
    return f'more than {factor:g} times beyond the bounds of each: {found[0][1]}'
