'''What an acceptance document says: of the sessions that measured a machine, node by node, and against what each value was judged.'''

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plumbline.analysis import counts, gathered, history, lines, machine_state
from plumbline.analysis.session import Session
from plumbline.comparison import sides
from plumbline.model import baselines, grouping, quantity, registry, verdict
from plumbline.store import archive

#: Class of failures -> what it means; each line that is no PASS is in one.
CLASSES = {'no number': 'The test did not build, run, or compute what is right: there is nothing to judge.',
           registry.SOFTWARE: 'A share of what this machine gives is out of bounds: compiler, libraries, placement, or a setting.',
           registry.SPEED: 'A rate, a time or a clock is out of bounds: the machine itself, or how it is operated.',
           registry.MEASUREMENT: 'The measurement was disturbed: what it says of the machine is not certain.',
           registry.OTHERS: 'A test of another suite, or a simulation: by its own bounds.',
           'not decided': 'The samples spread too far to judge, or two runs contradict each other (UNSTABLE): measure again.',
           'known issue': 'Out of bounds, and marked as known in the references.'}


@dataclass(frozen=True)
class Summary:
    ''':attr name: of the session; :attr started: datetime, UTC; :attr nodes: names, sorted.
    :attr broken_off: by what, '' where it ran to its end.
    :attr sha256: of the file that all its numbers are in.
    :attr answers: list of :class:`plumbline.analysis.answers.Answer`.
    :attr not_judged: why its exit code is 2 or 3, or what broke it off, a line; '' where neither is so.
    :attr worst: :func:`worst`.
    '''

    name: str
    started: object
    nodes: list
    sha256: str
    answers: list
    broken_off: str
    not_judged: str
    worst: str


@dataclass(frozen=True)
class Acceptance:
    ''':attr groups: :class:`plumbline.analysis.gathered.Group` of each value, those that need attention first; :attr counts: :func:`counts.count`.
    :attr classes: (name, what it means, groups) of each class of :data:`CLASSES` that has any.
    :attr losses: of sessions of the archive, :class:`plumbline.analysis.history.Lasting`; of a course once.
    :attr nodes: of sweeps, those that are not in order among their peers, and those that were not measured; of sessions of several nodes, those
        that some question is not answered for: (verdict, node, why).
    :attr not_measured: (reason, list of what was not measured); :attr unmeasured: how many metrics of it have references.
    :attr machine, software: rows of :mod:`plumbline.analysis.machine_state`; :attr libraries: specs of Spack.
    :attr exit_status: as of ``plumbline report``; 3 where it is UNSTABLE or not judged in full, too.
    '''

    system: str
    sessions: list
    groups: list
    counts: dict
    classes: list
    losses: list
    nodes: list
    not_measured: list
    unmeasured: int
    machine: list
    software: list
    libraries: list
    commands: list
    exit_status: int

    @property
    def judged(self):
        '''Question -> how many values were judged.'''
        return {question: sum(its.values()) - its[verdict.NO_REFERENCE] for question, its in self.counts.items()}

    @property
    def unjudged(self):
        '''The questions that some session has no answer to.'''
        return [question for question in registry.QUESTIONS if any(question in _without_answer(session.answers) for session in self.sessions)]

    @property
    def verdict(self):
        '''The worst of the sessions and of the nodes; a PASS where every question is answered in each of them, else NO REFERENCE.'''
        return max([*(session.worst for session in self.sessions), *(ruling for ruling, *_ in self.nodes)], key=verdict.SEVERITY.index)


#: No session is better than its exit status: losses that last, what was skipped, and what is missing of one that was broken off, are in no
#: count of values.
_OF_STATUS = {1: verdict.FAIL, 2: verdict.NO_REFERENCE, 3: verdict.UNSTABLE}


def worst(rulings, said, status):
    '''The worst verdict of a session's values, answers and exit status; NO REFERENCE where a question has no
    answer, or tests are missing, and nothing is worse.'''
    found = [ruling for ruling in (verdict.FAIL, verdict.UNSTABLE, verdict.KNOWN_ISSUE) if ruling in rulings]
    found += [one.verdict for one in said] or [verdict.NO_REFERENCE]
    return max([*found, _OF_STATUS.get(status, verdict.PASS)], key=verdict.SEVERITY.index)


def read(sources: Sequence[str], root) -> Acceptance:
    '''
    :arg sources: sessions of the archive, run reports, or folders of sweeps; none: the archive's last session.
    :raises PlumblineError: if one cannot be read, or they are of several systems.
    '''
    frames = []
    losses: list[list[history.Lasting]] = []
    nodes: list[tuple[str, str, str]] = []
    for source in sources or [archive.load_session(root)['session'][0]]:
        if Path(source).exists():
            paths = sides.reports(Path(source))
            frames += [(path, sides.load(path, root)) for path in paths]
            losses += [[] for _ in paths]
            if Path(source).is_dir():
                from plumbline.sweep import findings  # with what knows of schedulers
                nodes += findings.not_in_order(source)
        else:
            frames.append((archive.file_of(root, str(source)), frame := sides.load(source, root)))
            losses.append(history.lasting(history.read(root, frame['system'][0], until=source), of=source))
    sides.one_system([frame for _, frame in frames])
    said = [Session(frame) for _, frame in frames]
    nodes += [one for _, frame in frames for one in _unanswered(frame)]
    statuses = [its.exit_status(lost) for its, lost in zip(said, losses)]
    every = [line for one in said for line in one.verdicts]
    groups = gathered.gathered(sorted(every, key=lambda line: lines.VERDICTS.index(line.verdict)))
    sessions = [_session(path, its, lost, status) for (path, _), its, lost, status in zip(frames, said, losses, statuses)]
    not_measured = [one for its in said for one in its.not_measured]
    details = [detail for its in said for detail in _details(its.cases)]
    return Acceptance(
        frames[0][1]['system'][0], sessions, groups, counts.count(every), _classes(groups),
        list({one.course.title: one for its in losses for one in its}.values()),
        nodes, lines.by_reason(not_measured), sum(one.recorded for one in not_measured),
        machine_state.machine_rows(details), machine_state.software_rows(details, said[-1].info),
        sorted({spec for detail in details for spec in ((detail.get('software') or {}).get('spack') or {}).get('specs') or ()}),
        list(dict.fromkeys(filter(None, (its.info.get('cmdline') for its in said)))),
        _status(statuses, [*(one.worst for one in sessions), *(ruling for ruling, *_ in nodes)]))


def _status(statuses, rulings):
    '''The worst of several sessions and nodes: a FAIL, then nothing measured, then what could not be judged.'''
    found = {*statuses, *(1 if one == verdict.FAIL else 3 for one in rulings if one not in (verdict.PASS, verdict.KNOWN_ISSUE))}
    return next((status for status in (1, 2, 3) if status in found), 0)


def _without_answer(answers):
    '''The questions, sorted, that none of some answers is for.'''
    return sorted({*registry.QUESTIONS} - {one.question for one in answers if one.verdict != verdict.NO_REFERENCE})


def _unanswered(frame):
    '''(NO REFERENCE, node, why) of each of several nodes of a session that some question is not answered for: another one's answer is none of its.'''
    of_row = pl.col('hostname').str.split(',')
    hosts = sorted({host for several in frame['hostname'].drop_nulls().unique() for host in several.split(',')})
    for host in hosts if len(hosts) > 1 else ():
        said = Session(frame.filter(of_row.list.contains(host)))
        without = _without_answer(said.answers)
        if without and any(line.question in registry.QUESTIONS for line in said.verdicts):      # builds and simulations ask nothing of their node
            yield verdict.NO_REFERENCE, host, f"not judged: {', '.join(without)}"


def _session(path, said, losses, status):
    nodes = sorted({line.hostname for line in said.verdicts if line.hostname})
    return Summary(said.rows['session'][0], said.rows['started'][0], nodes, hashlib.sha256(Path(path).read_bytes()).hexdigest(), said.answers,
                   said.broken_off, said.not_judged(losses), worst({line.verdict for line in said.verdicts}, said.answers, status))


def _details(cases):
    for runs in cases.values():
        detail = lines.detail_of(runs[-1])
        if detail:
            yield detail.as_json() | {key: runs[-1][0][key] for key in ('hostname', 'environ')}


def _class(line):
    if line.verdict == verdict.KNOWN_ISSUE:
        return 'known issue'
    if not quantity.known(line.value):
        return 'no number'
    return 'not decided' if line.verdict == verdict.UNSTABLE else line.question


def _classes(groups):
    found = grouping.by_key((_class(group.line), group) for group in groups
                            if group.line.verdict in (verdict.FAIL, verdict.UNSTABLE, verdict.KNOWN_ISSUE))
    return [(name, text, found[name]) for name, text in CLASSES.items() if name in found]


def basis(line):
    '''Against what a value was judged; '' where it was not.'''
    if line.reference is None:
        return ''
    if line.kind == 'of_peak':
        return 'datasheet'
    if line.reference_from in baselines.SHIPPED:
        return 'baseline of the processor' if line.reference_from == baselines.PATH.name else "the machine's own limits"
    return 'reference of several sessions' if line.expected else f'reference in {line.reference_from}'
