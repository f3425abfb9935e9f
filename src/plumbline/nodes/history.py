'''What is known of each node, from the journal of events and from sessions of the archive that no sweep has run.'''

import functools
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from plumbline.errors import PlumblineError
from plumbline.model import stamp, verdict
from plumbline.model.quantity import several
from plumbline.nodes import events
from plumbline.settings import REPORTS
from plumbline.store import archive

#: Events whose time counts: what is dated in the future would be the last one until then.
_TIMED = {events.MEASURED, events.FAILED, events.REPAIRED, events.RENAMED}

#: Of so many of its last sweeps it is counted how often a node was an outlier.
LATEST = 10


@dataclass(frozen=True)
class Measurement:
    '''
    :attr at: seconds since 1970.
    :attr verdict: the worst, or PASS if there is one; :attr rank: of :mod:`events`, or None.
    :attr sweep: its id; None of a session that no sweep has run.
    :attr lacks: what its peers had and it had not, in words.
    :attr file: of a session that no sweep has run and that has references of several sessions for this node alone: its subsystems as a whole are
        no rows (:meth:`Node.look_closer`); else None.
    '''
    at: float
    verdict: str
    rank: str | None
    sweep: str | None = None
    lacks: str = ''
    file: Path | None = None

    @property
    def is_good(self):
        '''Whether something says that the node is healthy, and nothing that it is not.'''
        return not self.is_bad and (self.verdict == verdict.PASS or self.rank == events.IN_ORDER)

    @property
    def is_bad(self):
        return self.verdict == verdict.FAIL or self.rank == events.OUTLIER or bool(self.lacks)

    @property
    def word(self):
        '''The verdict for people.'''
        if self.rank == events.OUTLIER:
            return 'outlier'
        if self.lacks and self.verdict != verdict.FAIL:
            return self.lacks
        return 'in order among its peers' if self.is_good and self.verdict != verdict.PASS else self.verdict


@dataclass
class Node:
    '''
    :attr partitions: those that it was swept in.
    :attr measured: its :class:`Measurement`, in order of time.
    :attr findings: sweep -> event of the sweep that named it; :attr failed: the events of jobs that came to nothing.
    :attr steps: events of what was proposed and done, in the order of the journal; :attr renamed: those by which it got its names.
    :attr hours: node-hours of sweeps.
    '''
    name: str
    partitions: set = field(default_factory=set)
    measured: list = field(default_factory=list)
    findings: dict = field(default_factory=dict)
    failed: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    renamed: list = field(default_factory=list)
    hours: float = 0.0

    @property
    def last(self):
        '''Its last :class:`Measurement`, or None.'''
        return self.measured[-1] if self.measured else None

    @property
    def last_good(self):
        '''When it was last seen healthy; None: never.'''
        return next((one.at for one in reversed(self.measured) if one.is_good), None)

    def look_closer(self, is_fail):
        '''Make FAILs of the sessions that were one of a subsystem as a whole, as far back as says when the node was last seen good.

        :arg is_fail: function of a session's file; it takes some hundredths of a second.
        '''
        for number, one in reversed([*enumerate(self.measured)]):
            if one.file and not one.is_bad and is_fail(one.file):
                self.measured[number] = one = replace(one, verdict=verdict.FAIL)
            if one.is_good:
                return

    @property
    def done(self):
        '''What people last did with it: an event, or None.'''
        return next((event for event in reversed(self.steps) if event['event'] != events.PROPOSED), None)

    @property
    def proposal(self):
        '''What was last proposed, if nobody has done anything since: an event, or None.'''
        return self.steps[-1] if self.steps and self.steps[-1]['event'] == events.PROPOSED else None

    def offences(self, latest=LATEST):
        '''(In how many of its last sweeps it was an outlier, how many of them ranked it).'''
        ranked = [one for one in self.measured if one.sweep and one.rank][-latest:]
        return sum(one.rank == events.OUTLIER for one in ranked), len(ranked)

    @property
    def unmeasured(self):
        '''The event of the job that came to nothing, or of the state that left it none, if it has not been measured since; else None.'''
        failed = self.failed[-1] if self.failed else None
        return failed if failed and (self.last is None or failed['at'] > self.last.at) else None

    @property
    def doubt(self):
        '''Why it should be measured before others, in a few words; empty if there is no such reason.'''
        done, last, failed = self.done, self.last, self.unmeasured
        if done and done['event'] == events.REPAIRED and done['at'] > max(last.at if last else 0, failed['at'] if failed else 0):
            return 'repaired since it was measured'
        if failed:
            state = failed.get('state', 'failed')
            return f"{state}: {failed.get('reason', '')}" if state in events.OUT_OF_SERVICE else f'its job {state}'
        if last and last.is_bad:
            return last.word
        return ''

    def due(self):
        '''What nodes are sorted by that are to be measured: those in doubt, those never measured, those last measured longest ago.'''
        return (0 if self.doubt else 1 if self.last is None else 2), self.last.at if self.last else 0.0, self.name


@dataclass
class History:
    '''
    :attr nodes: name -> :class:`Node`.
    :attr skipped: what of the journal and the archive could not be read, as texts.
    :attr sweeps: how many; :attr names: of its nodes before (:class:`events.Names`).
    '''
    system: str
    nodes: dict = field(default_factory=dict)
    skipped: list = field(default_factory=list)
    sweeps: int = 0
    names: events.Names = field(default_factory=lambda: events.Names(()))

    def of(self, name):
        '''What is known of a node, which may be nothing.'''
        return self.nodes.get(name) or Node(name)

    @property
    def hours(self):
        '''Node-hours of all sweeps.'''
        return sum(node.hours for node in self.nodes.values())

    @property
    def findings(self):
        '''How often a node was an outlier, had a FAIL, or lacked something, in a sweep.'''
        return sum(one.is_bad for node in self.nodes.values() for one in node.measured if one.sweep)


def read(system, archive_root=REPORTS / 'archive'):
    '''The history of a system's nodes.

    :arg archive_root: the archive, whose sessions count as measurements; None: without them.
    :raises PlumblineError: if the journal cannot be read.
    '''
    said, skipped = events.read(system)
    history = History(system, skipped=skipped)
    if ahead := [event for event in said if _is_ahead(event)]:
        skipped.append(f"{several(len(ahead), 'event')} from that of {ahead[0]['node']} on: in the future, by this clock or that of the host that "
                       'wrote it; measure again, and mark again what was repaired or renamed')
        said = [event for event in said if not _is_ahead(event)]
    history.names = names = events.Names(said)
    # A sweep that was gone on with says of a node again what it said before: the last line counts.
    measured: dict[tuple, dict] = {}
    failed: dict[tuple, dict] = {}
    hours, known = {}, set()
    for event in said:
        name = names.of(event)
        node = history.nodes.setdefault(name, Node(name))
        if 'partition' in event:
            node.partitions.add(event['partition'])
        kind, key = event['event'], (name, event.get('sweep'), event['at'])
        if kind in (events.MEASURED, events.FAILED):
            hours[key[:2]] = event.get('hours', 0.0)        # of all jobs of the sweep on that node so far
        if kind == events.MEASURED:
            measured[key] = event
            failed = {one: its for one, its in failed.items() if one[:2] != key[:2]}
            known |= {event.get('session'), *map(str, event.get('again', ()))}
        elif kind == events.FAILED:
            failed[key] = event
        elif kind == events.FOUND:
            node.findings[event.get('sweep')] = event
        elif kind == events.CLEARED:
            node.findings.pop(event.get('sweep'), None)
        else:
            (node.renamed if kind == events.RENAMED else node.steps).append(event)
    for name, sweep, at in measured:
        event, node = measured[name, sweep, at], history.nodes[name]
        node.measured.append(Measurement(at, event.get('verdict', verdict.NO_REFERENCE), event.get('rank'), sweep, event.get('lacks', '')))
    for (name, _, _), event in failed.items():
        history.nodes[name].failed.append(event)
    for (name, _), spent in hours.items():
        history.nodes[name].hours += spent
    history.sweeps = len({sweep for _, sweep in hours})
    for name, one in _of_archive(system, archive_root, known, history) if archive_root else ():
        history.nodes.setdefault(name, Node(name)).measured.append(one)
    for node in history.nodes.values():
        node.measured.sort(key=lambda one: one.at)
        node.failed.sort(key=lambda event: event['at'])
    return history


def _is_ahead(event):
    '''As :func:`archive.is_ahead`.'''
    return event['event'] in _TIMED and archive.is_ahead(stamp.of(event['at']))


def _of_archive(system, root, known, history):
    '''(Node, :class:`Measurement`) of the sessions of an archive that are none of these; metrics of several nodes are no single node's.'''
    try:
        files = [file for file in archive.sessions(root, system) if file.stem not in known]
    except PlumblineError:
        return []       # there is no archive yet, or none of this system
    if ahead := [file.stem for file in files if archive.is_ahead(file.stem)]:
        history.skipped.append(f"{several(len(ahead), 'session')} from {ahead[0]} on: in the future, by this clock or that of the host that ran it")
    found, damaged = archive.of_readable([file for file in files if not archive.is_ahead(file.stem)],
                                         functools.partial(_of_files, names=history.names))
    history.skipped += damaged
    judged = {file.stem: file for file in files}
    return [(name, Measurement(started.timestamp(), worst(verdicts), None, file=judged[session] if whole else None))
            for session, name, started, verdicts, whole in found.iter_rows()]


def _of_files(files, names):
    '''For each session and node, when it began, which verdicts it had, and whether its subsystems are judged, and of this node alone; that a test
    without a metric ended well proves nothing.'''
    one_node = pl.col('hostname').is_not_null() & ~pl.col('hostname').str.contains(',', literal=True)
    proves = pl.col('metric').is_not_null() | (pl.col('verdict') == verdict.FAIL)
    rows = archive.final_rows(archive.scan_files(files)).filter(pl.col('verdict').is_not_null() & proves)
    grouped = names.renamed(rows).group_by('session', 'hostname')
    judged = pl.col('expected').is_not_null().any()
    found = grouped.agg(pl.col('started').first(), pl.col('verdict').unique(), judged=judged).collect(engine='streaming')
    return found.with_columns(judged=pl.col('judged') & (pl.col('judged').sum().over('session') == 1)).filter(one_node)


def worst(verdicts):
    '''The one verdict of many: FAIL, PASS if there is one, UNSTABLE, or NO REFERENCE.'''
    return next((one for one in (verdict.FAIL, verdict.PASS, verdict.UNSTABLE) if one in verdicts), verdict.NO_REFERENCE)
