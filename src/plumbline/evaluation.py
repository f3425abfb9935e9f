'''A check's metrics within the states that its program met, and the choice of the one that is judged.'''

import contextlib
from dataclasses import dataclass, field

import numpy as np
from reframe.core.exceptions import ReframeError

from plumbline import statistics, verdict
from plumbline.metrics import Metric
from plumbline.model import states


@dataclass
class Case:
    '''A metric in one state.

    :attr metric: :class:`Metric`, with the samples of that state only.
    :attr state: dictionary name -> seconds, ``{}`` where there is nothing to tell apart, None where it is not known or there
        are several.
    :attr unsteady: whether the state changed too often for any of its records to have rounds enough in one.
    :attr set_aside: samples in other states, or in none.
    :attr reference: (reference, lower, upper) that applies in this state; None if there is none.
    :attr others: the same metric in the other states that were met often enough.
    '''
    metric: Metric
    state: dict | None = field(default_factory=dict)
    set_aside: int = 0
    reference: tuple | None = None
    reference_from: str | None = None
    others: list = field(default_factory=list)
    no_reference: str = ''
    unsteady: bool = False

    def result(self):
        '''What ``schemas/result.json`` has of it beside the metric itself; nothing where one state was met.'''
        result = {} if self.metric.record is None else {'record': self.metric.record.get('index')}
        if self.state or self.state is None:
            result['state'] = self.state
        if self.set_aside:
            result['set_aside'] = self.set_aside
            result['rounds'] = _rounds(self)
        if self.others:
            result['states'] = [_summary(case) for case in self.others]
        return result


def _summary(case):
    found = statistics.summary(case.metric.samples)
    return {'state': case.state, 'value': found.value, 'n': found.n, 'spread': found.spread, 'interval': list(found.interval),
            'samples': np.asarray(case.metric.samples).tolist(), 'rounds': _rounds(case)}


def _rounds(case):
    '''The round of each sample; None for those of several records.'''
    return None if case.metric.record is None else case.metric.record['rounds']


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
    recorded, found = check.measurements, {}
    try:
        for case in _evaluated(check, met.within(first)):
            if case.metric.name in found:
                raise ReframeError(f'{case.metric.name} is measured twice; the check must name its metrics apart')
            found[case.metric.name] = [case]
        for choice in filter(met.enough, further):
            with _without_words(check):
                for case in _evaluated(check, met.within(choice)):
                    found.get(case.metric.name, []).append(case)
    finally:
        check.measurements = recorded
    return found


def _evaluated(check, measurements):
    check.measurements = measurements
    for metric in check.evaluate():
        cases = measurements if metric.record is None else [metric.record]
        found = list({id(case['state']): case['state'] for case in cases}.values())
        yield Case(metric, _common(found), max((case['set_aside'] for case in cases), default=0),
                   unsteady=bool(cases) and all(state is None for state in found))


def _common(found):
    '''The state of a metric of several records: what they all know, or None if one is not known or two differ.'''
    if None in found or not all(states.same(a, b) for a in found for b in found):
        return None
    return {name: seconds for state in found for name, seconds in state.items()}


@contextlib.contextmanager
def _without_words(check):
    '''What a check says of its metrics it has said in the usual state.'''
    said = {key: list(value) if isinstance(value, list) else value for key, value in check.plumbline.items()}
    try:
        yield
    finally:
        check.plumbline = said


def choose(cases, known):
    '''The case that is judged: the usual state, unless the reference is of another one that was met.

    :arg cases: list of :class:`Case`, the usual state first.
    :arg known: what :func:`references.applying` says of this metric, or None.
    '''
    if known is None:
        return _with(cases, 0)
    reference, file, of_states = known
    if of_states is None:
        return _with(cases, 0, reference, file)
    for number, case in enumerate(cases):
        for state, leaf in of_states:
            if case.state is not None and states.same(case.state, state):
                return _with(cases, number, leaf, file)
    chosen = _with(cases, 0)
    there = ', '.join(states.text(state) for state, _ in of_states)
    chosen.no_reference = f"no reference of this state ({states.text(chosen.state)}); {file} has one of {there}"
    return chosen


def _with(cases, number, reference=None, file=None):
    chosen = cases[number]
    chosen.others = [case for case in cases if case is not chosen and np.size(case.metric.samples)]
    chosen.reference, chosen.reference_from = reference, file
    return chosen


def judged(case):
    '''The metric as it stands in a result (``schemas/result.json``).'''
    metric, reference = case.metric, None if case.metric.unjudged else case.reference
    found = statistics.summary(metric.samples)
    ruling, reason = verdict.judge(found, reference, unit=metric.unit)
    if ruling == verdict.NO_REFERENCE and metric.unjudged:
        reason = f'not judged: {metric.unjudged}'
    elif ruling == verdict.NO_REFERENCE and case.no_reference:
        reason = case.no_reference
    elif ruling == verdict.PASS and case.unsteady:
        ruling, reason = verdict.UNSTABLE, (f'fewer than {states.FEWEST_ROUNDS} rounds in one state: the core-to-core latency '
                                            'changed during the samples')
    return {
        'name': metric.name, 'metric': metric.metric, 'subject': metric.subject,
        'value': found.value, 'unit': metric.unit, 'samples': np.asarray(metric.samples).tolist(),
        'n': found.n, 'spread': found.spread, 'interval': list(found.interval),
        'reference': list(reference[:3]) if reference else None, 'reference_from': case.reference_from if reference else None,
        'limit': metric.limit, 'verdict': ruling, 'reason': reason, **case.result(),
    }
