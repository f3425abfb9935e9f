'''What a session says of each subsystem of the machine: judged by its metrics together, against the sessions of their references.

Rates and times say whether the machine is as fast as it was; shares of its own limits, whether the software gets what it gives.
They are never mixed in one score.
'''

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from plumbline.model import baselines, contention, prediction, quantity, registry, states, subsystems, uncertainty, verdict

#: No more are named: they would push away what is judged.
MOST_NAMED = 8

#: More commands that measure again would push away what follows.
MOST_COMMANDS = 12

#: Verdicts by which no reference has judged anything.
_UNJUDGED = verdict.NO_REFERENCE, verdict.KNOWN_ISSUE

#: Metrics that are told of a subsystem that has lost something.
MOST_BLAMED = 3


@dataclass(frozen=True)
class Subsystem:
    """One subsystem's rates and times, or its shares and ratios.

    :attr part: its name in the registry; :attr partition: whose metrics they are, '' where the session has only one.
    :attr verdict: as of a metric; UNSTABLE where it has references and none of its metrics could be judged, as all are of other states
        of the machine, say, or where the time that the hypervisor took explains what it lost: then that is not this machine's.
    :attr count: its metrics whose reference is from several sessions; :attr single: those that somebody gave another reference;
    :attr total: all.
    :attr change: since the sessions of the references, a loss below 0; None if not judged.
    :attr sees: the loss that would be found with a probability of 95 %; None if not judged.
    :attr lost: whether the change is no chance, whatever explains it.
    :attr rerun: commands that measure again what lost most, where it is not a PASS.
    """

    part: str
    kind: str
    verdict: str
    reason: str
    count: int
    single: int
    total: int
    change: float | None = None
    sees: float | None = None
    rerun: list = field(default_factory=list)
    partition: str = ''
    lost: bool = False

    @property
    def name(self):
        '''For people.'''
        return self.part + (f' of {self.partition}' if self.partition else '')

    @property
    def question(self):
        '''Of :data:`registry.QUESTIONS` the one that it is evidence for, or ``registry.OTHERS``.'''
        return registry.OF_PARTS.get(self.part) or (registry.SPEED if self.kind == subsystems.RATES else registry.SOFTWARE)

    def has(self, line):
        '''Whether a line's metric is one of this subsystem.'''
        return line.subsystem == self.part and self.partition in ('', line.partition)


@dataclass(frozen=True)
class Judged:
    ''':attr subsystems: list of :class:`Subsystem`, the worst first.
    :attr changed: lines whose metric has probably changed for the worse, the most certain first.'''

    subsystems: list
    changed: list = field(default_factory=list)

    @property
    def rates(self):
        '''Those that say how fast the machine is.'''
        return [one for one in self.subsystems if one.question == registry.SPEED and one.kind == subsystems.RATES]

    @property
    def referenced(self):
        '''The subsystems that are judged by several sessions, or should be.'''
        return [one for one in self.subsystems if one.count or one.verdict != verdict.NO_REFERENCE]


def judge(lines, not_measured=()):
    '''The :class:`Judged` that the lines of a report (:class:`lines.Line`) say.

    :arg not_measured: what was not measured (:class:`lines.NotMeasured`): a subsystem that has references of such metrics alone is not judged.
    '''
    groups, members = defaultdict(list), {}
    partitions = {line.partition for line in lines if line.metric}
    for line in lines:
        if line.subsystem not in (None, registry.NO_MACHINE):
            groups[line.subsystem, line.partition if len(partitions) > 1 else '', subsystems.kind(line.kind)].append(line)
            member = _member(line)
            if member:
                members[id(line)] = member
    scored = {key: [members[id(line)] for line in its if id(line) in members] for key, its in groups.items()}
    known = subsystems.judged({key: its for key, its in scored.items() if its})
    rerun = {id(members[id(line)]): line.detail.rerun or None for line in lines if id(line) in members}
    missing = defaultdict(list)
    for one in not_measured:
        for part, partition, kind in one.lost:
            key = part, partition if len(partitions) > 1 else '', kind
            if part not in (None, registry.NO_MACHINE) and all(line.verdict in _UNJUDGED for line in groups.get(key, ())):
                missing[key].append(one.reason)
    found = [_judged(key, its, known, rerun) for key, its in groups.items() if key not in missing]
    found += [Subsystem(part, kind, verdict.UNSTABLE, f"not judged: {'; '.join(dict.fromkeys(reasons))}", 0, 0, len(
        groups.get((part, partition, kind), reasons)), partition=partition) for (part, partition, kind), reasons in missing.items()]
    return Judged(sorted(found, key=lambda one: (-verdict.SEVERITY.index(one.verdict), one.change or 0, one.name)),
                  _changed([line for line in lines if id(line) in members], members))


def again(lines, session):
    '''Commands that measure again what is not a PASS: of the subsystems what lost most, then the metrics.'''
    of_metrics = [line.detail.rerun for line in lines if line.verdict in (verdict.FAIL, verdict.UNSTABLE) and line.detail.rerun]
    return list(dict.fromkeys([*(command for one in session.subsystems for command in one.rerun), *of_metrics]))


def _member(line):
    '''The line as a member of a score; None where nothing is expected of it, or it has no better side.'''
    better = registry.better(line.kind)
    if not line.expected or better == registry.NEITHER or line.verdict == verdict.KNOWN_ISSUE or not (line.value or 0) > 0:
        return None
    expected = json.loads(line.expected)
    predicted = prediction.Prediction(line.reference, expected['deviation'], expected['freedom'])
    return subsystems.Member(f'{line.label} {line.metric}', line.value, predicted, better, expected['measured'], uncertainty.error(line.interval))


def _stolen(lines):
    """(share of these tests' time that the hypervisor took, what it explains at most); 0 where it is not worth telling.

    Threads that meet at barriers wait as long as any of them is stolen: of n independent ones a share of 1 - (1 - share)^n.
    """
    found = [one for line in {line.case: line for line in lines}.values() for one in line.detail.contention or ()]
    share = min(1.0, contention.causes(found).get(contention.HYPERVISOR, 0.0))
    return (share, 1 - (1 - share)**contention.team(found)) if share >= contention.WORTH_TELLING else (0.0, 0.0)


def _judged(key, lines, known, rerun):
    (part, partition, kind), found = key, known.get(key)
    single = sum(not line.expected and line.reference is not None and line.reference_from not in baselines.SHIPPED for line in lines)
    counts: dict[str, Any] = {'count': sum(bool(line.expected) for line in lines), 'single': single, 'total': len(lines), 'partition': partition}
    of_other_states = [line for line in lines if line.recorded_states]
    there = states.texts(state for line in of_other_states for state in json.loads(line.recorded_states))
    by_rates = kind == subsystems.SHARES and (part, partition, subsystems.RATES) in known       # what the software loses, they lose, too
    if found is None and of_other_states and not single:
        told = f'its references are of another state of the machine ({there})'
        if by_rates:
            return Subsystem(part, kind, verdict.NO_REFERENCE, f'{told}; left to its rates and times', **counts)
        again = [line.detail.rerun for line in of_other_states if line.detail.rerun]
        return Subsystem(part, kind, verdict.UNSTABLE, f'not judged: {told}', **counts, rerun=list(dict.fromkeys(again))[:MOST_BLAMED])
    if found is None:
        return Subsystem(part, kind, verdict.NO_REFERENCE, 'none of its metrics has a reference from several sessions', **counts)
    score, ruling, (stolen, explained) = found.score, found.verdict, _stolen(lines)
    sessions = len({session for member in score.members for session in member.measured})
    told = f"{quantity.percent(abs(score.change))} {'worse' if score.change < 0 else 'better'} than in {sessions} sessions"
    if ruling != verdict.PASS:
        told += f', by chance {quantity.odds(score.chance)}; most of it: ' + ', '.join(
            f'{member.name} {quantity.change(member.value / member.expected.middle - 1, 0)}' for member in score.members[:MOST_BLAMED])
    if ruling == verdict.PASS and all(line.verdict == verdict.UNSTABLE for line in lines if line.expected):
        ruling, told = verdict.UNSTABLE, f'none of its metrics could be judged; together they are {told}'
    elif ruling == verdict.UNSTABLE:
        told = f'not judged: its processes scatter by {quantity.percent(score.error, 0)}, as much as explains that it is {told}'
    elif ruling == verdict.FAIL and explained and score.change >= (1 + found.bound) * (1 - explained) - 1:
        ruling = verdict.UNSTABLE
        told = (f'not judged: {contention.HYPERVISOR} took {quantity.percent(stolen, 0)} of the time of its tests, which explains a loss of '
                f'{quantity.percent(explained, 0)}, so it may not be this machine that is {told}')
    elif ruling == verdict.PASS and len(of_other_states) >= counts['count']:
        told = f'of {len(of_other_states)} of its metrics the references are of another state of the machine ({there}); the others are {told}'
        ruling, told = (ruling, f'{told}; left to its rates and times') if by_rates else (verdict.UNSTABLE, f'not judged: {told}')
    again = [] if ruling == verdict.PASS else [rerun[id(member)] for member in score.members[:MOST_BLAMED] if rerun[id(member)]]
    return Subsystem(part, kind, ruling, told, **counts, change=score.change, sees=found.sees, rerun=list(dict.fromkeys(again)),
                     lost=found.verdict != verdict.PASS)


def _changed(lines, members):
    found = [members[id(line)] for line in lines]
    chances = [member.expected.chance(member.value, member.better) for member in found]
    listed = subsystems.discoveries(chances, subsystems.DISCOVERY_RATE)
    return [line for _, _, line in sorted((chance, number, line) for number, (chance, line, is_listed)
                                          in enumerate(zip(chances, lines, listed)) if is_listed)]


def speed(session):
    """What the verdicts say of the machine's speed, in one line: shares of its own limits say nothing of it."""
    of_rates = session.rates
    judged = [one for one in of_rates if one.sees is not None]
    if not of_rates:
        return ''
    how = 'record references of good sessions: plumbline references accept'
    if not judged:
        single, total = sum(one.single for one in of_rates), sum(one.total for one in of_rates)
        if single == total:
            return (f'judged metric by metric, not as a whole: the references of its {total} rates and times are of one '
                    f'session, or written by hand; {how}')
        some = f'only {single}' if single else 'none'
        have = 'have' if single > 1 else 'has'
        return f'not judged, {some} of its {total} rates and times {have} a recorded reference; {how}'
    least, most = min(one.sees for one in judged), max(one.sees for one in judged)
    text = (f'judged in {len(judged)} of {len(of_rates)} subsystems; losses of {quantity.percent(least, 0)} to '
            f'{quantity.percent(most, 0)} would be seen')
    missing = [one.name for one in of_rates if one.sees is None]
    return text + (f"; not judged: {', '.join(missing)}; {how}" if missing else '')
