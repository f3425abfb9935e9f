'''What is wrong, and what to look at: the causes of ``data/diagnosis.yaml`` that a session shows.

A condition of a rule is an object with one key:

``all``, ``any``, ``not``
  of other conditions.
``failed``
  a metric that ``metric``, ``check`` and ``subsystem`` (patterns as of a shell) choose is FAIL, or UNSTABLE and less than ``unstable_below``.
``loss``
  the median loss of those metrics against recorded references, a share of the reference, is ``above`` or ``below`` a number; or what
  they have lost more than the metrics ``beside`` them of the same checks.
``ratio``
  in a test, a ``metric`` of one subject (``of``) over the same ``over`` another one is ``above`` or ``below`` a number: ``nt`` over
  ``plain``; the one of all tests that is furthest on that side.
``symptom``
  a test is FAIL, and its result has this symptom (``schemas/result.json``): ``misplaced``.
``not_measured``
  a test that has references, or a metric that has, was skipped with this symptom.
``state``
  one of :data:`host_states.STATES`: what a host was like is ``above`` or ``below`` a number, or ``matches`` a regular expression.

What is not known is neither true nor false: a rule is told only where its condition is true.
'''

import fnmatch
import functools
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plumbline import schemas
from plumbline.analysis import host_states
from plumbline.model import grouping, quantity, registry, subsystems as scores, verdict
from plumbline.model.baselines import SHIPPED

RULES = Path(__file__).parents[1] / 'data/diagnosis.yaml'

CERTAIN = 'certain'

#: No more metrics or tests are named as evidence.
_MOST_NAMED = 3

_WRONG = (verdict.FAIL, verdict.UNSTABLE)


@dataclass(frozen=True)
class Finding:
    '''A cause that a session shows.

    :attr rule: its entry in the file of rules.
    :attr hosts: where; empty where the session has one host, or where it is of all.
    :attr evidence: what shows it, texts.
    :attr explains: whether there was so much of it on one of them that it may explain a loss.
    '''
    rule: dict
    hosts: tuple
    evidence: tuple
    explains: bool = True

    @property
    def title(self):
        '''The cause, and where.'''
        return (f"{', '.join(quantity.at_most(self.hosts, 2 * _MOST_NAMED))}: " if self.hosts else '') + self.rule['says']

    @property
    def spoils(self):
        '''Whether it is a fault of the measurement itself, and not a little of one.'''
        return self.explains and bool(self.rule.get('always'))


@dataclass(frozen=True)
class Diagnosis:
    ''':attr findings: list of :class:`Finding`, certain ones first.
    :attr unexplained: what is out of bounds, or could not be judged, and no rule explains: texts.
    :attr known: number of rules.'''
    findings: list
    unexplained: list
    known: int

    def of(self, question):
        '''The findings that are evidence for a question of the registry.'''
        return [one for one in self.findings if one.rule['question'] == question]

    @property
    def none_fits(self):
        '''A sentence; '' where all that is wrong has its cause.'''
        if not self.unexplained:
            return ''
        return (f"None of the {self.known} causes that Plumbline knows fits {'the rest of ' if self.findings else ''}what is wrong: "
                f"{', '.join(self.unexplained)}. Look at what changed (plumbline compare --last 2), since when (plumbline history), and "
                'whether other nodes have it, too (plumbline rank).')


@functools.cache
def rules():
    '''The rules, valid by ``schemas/diagnosis.json``.'''
    return schemas.read_yaml(RULES, 'diagnosis')


def diagnose(lines, not_measured, session, known=None):
    '''What is wrong with a session.

    :arg lines: :func:`lines.verdict_lines`; :arg not_measured: :func:`lines.not_measured`.
    :arg session: what :func:`subsystems.judge` says of them.
    :arg known: rules; those that are shipped by default.
    :returns: :class:`Diagnosis`.
    '''
    known = rules() if known is None else known
    hosts = grouping.by_key((line.hostname, line) for line in lines)
    for one in not_measured:        # a node may have nothing else
        if one.hostname:
            hosts.setdefault(one.hostname, [])
    left_out = {host: [one for one in not_measured if one.hostname in (host, '')] for host in hosts}
    seen = {host: _Host(its, [line for name in host.split(',') if name != host for line in hosts.get(name, ())], left_out[host], session)
            for host, its in hosts.items()}
    found: dict[str, dict] = {}
    explained: dict[str, list] = defaultdict(list)
    for rule in sorted(known, key=lambda one: one['confidence'] != CERTAIN):
        for name, host in seen.items():
            if evidence := _shown(rule, host, explained[name]):
                found.setdefault(rule['name'], {})[name] = evidence
                if 'explains_if' not in rule or host.check(rule['explains_if'])[0]:
                    explained[name].append(rule)
    by_name = {rule['name']: rule for rule in known}
    findings = [_finding(by_name[name], where, sum(map(bool, hosts)) > 1, any(by_name[name] in explained[host] for host in where))
                for name, where in found.items()]
    left = dict.fromkeys(one.name for name, host in seen.items() for one in host.wrong
                         if not one.says_why and not any(one.is_of(rule) for rule in explained[name]))
    return Diagnosis(findings, quantity.at_most(list(left), 2 * _MOST_NAMED), len(known))


def _finding(rule, where, several, explains):
    '''What of several hosts is shown is the first one's; what never ran is of none.'''
    first, evidence = next((one for one in where.items() if one[0]), next(iter(where.items())))
    return Finding(rule, tuple(filter(None, where)) if several else (),
                   tuple(f'{first}: {text}' for text in evidence) if len(where) > 1 and first else evidence, explains)


def _shown(rule, host, explained):
    '''The evidence of a rule on a host; empty where it is not shown, nothing is wrong that it explains, or something certain explains that.'''
    if not rule.get('always') and not host.wrong:
        return ()
    holds, evidence, proof = host.check(rule['when'])
    if not holds:
        return ()
    own = [one for one in host.wrong if one.is_of(rule) or one.line in proof]
    if rule['confidence'] != CERTAIN:
        own = [one for one in own if not any(one.is_of(other) for other in explained if other['confidence'] == CERTAIN)]
    if not own and not rule.get('always'):
        return ()
    for one in own:
        one.causes.append(rule)
    return tuple(dict.fromkeys(evidence))


@dataclass(eq=False)
class _Wrong:
    '''What is out of bounds, or could not be judged: a line, or a subsystem as a whole.'''
    name: str
    subsystem: str
    line: Any = None
    causes: list = field(default_factory=list)

    @property
    def says_why(self):
        '''Whether it has a reason of its own: of a test that ended with an error, or was left out, of a subsystem that was not judged.'''
        return not self.subsystem

    def is_of(self, rule):
        '''Whether a rule explains it; what has a reason of its own no slow machine does, nor two threads on one core what had cores of its own.'''
        if rule in self.causes:
            return True
        if self.says_why or ('of_one_core' in rule and getattr(self.line, 'apart', False)):
            return False
        return any(fnmatch.fnmatchcase(self.subsystem, pattern) for pattern in rule['explains'])


class _Host:
    '''The lines of a host, and what they say of its state; of several hosts at once also those of each alone, for what must not have lost.'''

    def __init__(self, lines, of_each, not_measured, session):
        self.lines, self.of_each, self.lost_tests = lines, of_each, [one for one in not_measured if one.recorded or one.lost]
        self.tests = list({line.case: line for line in lines}.values())
        self.wrong = [_Wrong(f'{line.label} {line.metric}'.strip(), line.subsystem or '', line) for line in lines if line.verdict in _WRONG]
        parts = [one for one in session.subsystems if one.verdict in _WRONG and one.kind == scores.RATES and any(map(one.has, lines))]
        self.wrong += [_Wrong(f'{one.name} as a whole', one.part if one.lost else '') for one in parts]
        self.wrong += [_Wrong(f'{one.label} was not measured', '', one) for one in self.lost_tests]
        cases = {line.case for line in lines if line.verdict in _WRONG or any(one.lost and one.has(line) for one in parts)}
        self.suspects = [line for line in self.tests if line.case in cases]
        self._states: dict[str, tuple] = {}

    def check(self, condition):
        '''(True, False or None where it is not known; evidence; the lines that say so themselves).'''
        (kind, what), = condition.items()
        return getattr(self, f'_{kind}')(what)

    def _all(self, conditions):
        found = [self.check(one) for one in conditions]
        holds = False if any(one[0] is False for one in found) else None if any(one[0] is None for one in found) else True
        return holds, [text for one in found for text in one[1]], [line for one in found for line in one[2]]

    def _any(self, conditions):
        found = [self.check(one) for one in conditions]
        true = [one for one in found if one[0]]
        holds = True if true else None if any(one[0] is None for one in found) else False
        return holds, [text for one in true for text in one[1]], [line for one in true for line in one[2]]

    def _not(self, condition):
        holds = self.check(condition)[0]
        return None if holds is None else not holds, [], []

    def _chosen(self, what):
        its = (*self.lines, *self.of_each) if 'below' in what else self.lines
        ours = [line for line in its if line.metric and line.subsystem != registry.OTHER_SUITES]
        return [line for line in ours if fnmatch.fnmatchcase(line.metric, what.get('metric', '*'))
                and fnmatch.fnmatchcase(line.check, what.get('check', '*')) and fnmatch.fnmatchcase(line.subsystem or '', what.get('subsystem', '*'))]

    def _failed(self, what):
        judged = [line for line in self._chosen(what) if line.verdict in (*_WRONG, verdict.PASS)]
        most = what.get('unstable_below', -np.inf)
        wrong = [line for line in judged if line.verdict == verdict.FAIL or
                 (line.verdict == verdict.UNSTABLE and quantity.known(line.value) and line.value < most)]
        return bool(wrong) if judged else None, [_named(wrong, lambda line: line.reason)] if wrong else [], wrong

    def _loss(self, what):
        median, said = self._median_loss(what)
        if median is None or 'beside' not in what:
            return (None, [], []) if median is None else (_beyond(median, what), [said], [])
        beside, other = self._median_loss({**what, 'metric': what['beside']})
        return (None, [], []) if beside is None else (_beyond(1 - (1 - median) / (1 - beside), what), [said, other], [])

    def _median_loss(self, what):
        '''(the median, the same for people); None twice where nothing has a reference.'''
        losses = [loss for line in self._chosen(what) if (loss := _loss_of(line)) is not None]
        if not losses:
            return None, None
        median, about = float(np.median(losses)), what.get('subsystem', '').replace('*', '…')
        named = f"{about} {what['metric'].lstrip('*.')}".strip() if 'beside' in what else about or what['metric'].replace('*', '…')
        return median, f"{named}: {_lost(median)} ({quantity.several(len(losses), 'metric')})"

    def _ratio(self, what):
        pairs = []
        for line in self.lines:
            kind, *parts = line.metric.split('.')
            if kind == what['metric'] and what['of'] in parts and quantity.known(line.value):
                other = '.'.join([kind, *(what['over'] if part == what['of'] else part for part in parts)])
                pairs += [(line.value / two.value, line.label) for two in self.lines
                          if two.case == line.case and two.metric == other and quantity.known(two.value) and two.value > 0]
        if not pairs:
            return None, [], []
        ratio, label = (max if 'above' in what else min)(pairs)
        return _beyond(ratio, what), [f"{label}: {what['of']} is {ratio:.2f} times as fast as {what['over']}"], []

    def _symptom(self, name):
        lines = [line for line in self.lines if line.verdict == verdict.FAIL and line.symptom == name]
        return bool(lines), [_named(lines, lambda line: line.reason)] if lines else [], lines

    def _not_measured(self, name):
        its = [one for one in self.lost_tests if one.symptom == name]
        return bool(its), [f'{one.label}: {one.reason}' for one in its[:_MOST_NAMED]], its

    def _state(self, what):
        name = what['name']
        if name not in self._states:
            self._states[name] = host_states.STATES[name](self.suspects if name in host_states.OF_A_TEST else self.tests)
        value, text = self._states[name]
        if value is None:
            return None, [], []
        holds = bool(re.search(what['matches'], value)) if 'matches' in what else _beyond(value, what)
        return holds, [text] if holds else [], []


def _beyond(value, what):
    return value > what['above'] if 'above' in what else value < what['below']


def _lost(loss):
    if abs(loss) < 0.005:
        return 'as in the references'
    return f"{quantity.percent(abs(loss), 0)} {'worse' if loss >= 0 else 'better'} than the references"


def _loss_of(line):
    '''The share that a rate or a time has lost against its recorded reference, below 0 of a gain; None where there is none: a floor that
    holds on any machine is none.'''
    better = registry.better(line.kind)
    known = line.expected or (registry.is_absolute(line.kind) and line.reference_from not in SHIPPED)
    if not (known and better and line.reference and quantity.known(line.value) and line.value > 0):
        return None
    return 1 - (line.value / line.reference) ** better


def _named(lines, text):
    return '; '.join(quantity.at_most([f'{line.label} {line.metric}'.strip() + f': {text(line)}' for line in lines], _MOST_NAMED))
