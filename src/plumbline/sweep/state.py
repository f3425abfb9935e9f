'''What a sweep keeps on disk, so that it can go on whatever ended it: nothing is lost, and no node runs twice.

``SWEEPS/ID/sweep.json`` is the plan, written once, whole.  ``journal.jsonl`` gets a line for each thing that happens
to a node, written before the next one is begun; what a node is, is the sum of its lines.  ``NODE/`` is the node's own.

A driver that is killed between the submission of a job and its line in the journal leaves the node ``submitting``: the job is then found by its name,
or by what it left, and if it is submitted again nevertheless, the second job ends at once (``node.py``).
'''

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from plumbline import atomic, schemas
from plumbline.errors import PlumblineError, saying_why
from plumbline.model.safe_text import shown
from plumbline.sweep import node as job
from plumbline.sweep.selection import Limits

#: Phases of a node.
PHASES = WAITING, SUBMITTING, QUEUED, OVER = 'waiting', 'submitting', 'queued', 'over'

#: Of a node, which is the name of a folder and a word of shell commands.
_NAME = re.compile(r'\w[\w.-]*')

#: The state of a node whose measurements are there.  All others are reasons to run it again.
MEASURED = 'measured'

#: The state of a node that the sweep's own limits left no job for: nothing is wrong with it, and it is no missing one.
SKIPPED = 'skipped'

#: Who runs a sweep: its process and host.
DRIVER = 'driver'

#: Seconds by which the clock of a node may differ.
APART = 60

#: So many of the latest sweeps may still be run by somebody.
_LATEST = 100


@dataclass
class Node:
    '''
    :attr hardware: of :class:`slurm.Node`.
    :attr since: when the phase began, seconds since 1970.
    :attr state: once it is over: ``measured``, ``failed``, ``timed out``, ``down``, ``drained``, ...
    :attr counts: question -> verdict -> number, and of '' what was not measured.
    :attr status: exit code of the report of its session, and :attr reason: why, where no count says it.
    :attr machine: CPU model, number of CPUs, memory (KiB), as its tests say.
    :attr session: name of the session in the archive, and ``archived``: its file.
    :attr spent: job -> seconds that it had the node, of the jobs that are over.
    :attr minutes: time limit of its last job; 0: not known.
    :attr began: when its last job that is over began on the node, seconds since 1970; 0: not known.
    '''
    name: str
    hardware: str
    phase: str = WAITING
    since: float = 0.0
    job: int | None = None
    state: str = ''
    reason: str = ''
    counts: dict = field(default_factory=dict)
    status: int = 0
    machine: dict = field(default_factory=dict)
    session: str = ''
    archived: str = ''
    spent: dict = field(default_factory=dict)
    minutes: int = 0
    began: float = 0.0

    @property
    def at(self):
        '''When what is over began, seconds since 1970: its job may be collected days later.'''
        return self.began or self.since

    @property
    def measured(self):
        return self.phase == OVER and self.state == MEASURED

    @property
    def told(self):
        '''What it has measured, or why it has not.'''
        counts = [f'{question} {text}'.strip() for question, its in self.counts.items()
                  if (text := ', '.join(f'{number} {verdict}' for verdict, number in its.items() if number))]
        return '; '.join(filter(None, (*counts, self.reason)))

    @property
    def missing(self):
        '''Why it was not measured, with its state.'''
        return ': '.join(filter(None, [self.state or self.phase, self.reason]))

    @property
    def verdicts(self):
        '''Those that it has.'''
        return {verdict for its in self.counts.values() for verdict, number in its.items() if number}

    @property
    def seconds(self):
        '''For how long the jobs of the sweep had the node.'''
        return sum(self.spent.values())


#: What a line of the journal may say of a node, and of which type.
_SAID: dict[str, type | tuple[type, ...]] = {
    'phase': str, 'since': (int, float), 'job': (int, type(None)), 'state': str, 'reason': str, 'counts': dict, 'status': int, 'machine': dict,
    'session': str, 'archived': str, 'spent': dict, 'minutes': int, 'began': (int, float)}
_MACHINE = {'model': str, 'cpus': int, 'kib': int}


class Sweep:
    '''A sweep on disk.  :func:`create` or :func:`load` it.

    :attr left: how many nodes are not over.
    '''

    def __init__(self, folder, plan):
        self.folder, self.plan = Path(folder), plan
        wrong = [name for name in plan['nodes'] if not _NAME.fullmatch(name)]
        if wrong:
            raise PlumblineError(f'{wrong[0]!r} is no name of a node')
        self.nodes = {name: Node(name, hardware) for name, hardware in plan['nodes'].items()}
        self.left = len(self.nodes)
        self._journal: BinaryIO | None = None

    @property
    def name(self):
        return self.plan['id']

    @property
    def prefix(self):
        '''How the names of its jobs begin.'''
        return f'plumbline-{self.name}-'

    @property
    def limits(self):
        '''The :class:`selection.Limits` of its plan.'''
        try:
            return Limits(**self.plan.get('limits', {}))
        except TypeError as error:
            raise PlumblineError(f'{self.folder}/sweep.json: limits: {error}') from None

    def job_name(self, node):
        return f'{self.prefix}{node.name}'

    @property
    def seconds(self):
        '''For how long its jobs had nodes.'''
        return sum(node.seconds for node in self.nodes.values())

    @property
    def script(self):
        '''The script of its jobs.'''
        return self.folder / 'job.sh'

    def of(self, node):
        '''The folder of a node.'''
        return self.folder / node.name

    def within(self, *phases):
        '''The nodes in one of these phases.'''
        return [node for node in self.nodes.values() if node.phase in phases]

    def claimed(self, node):
        '''The number of the job that runs on a node, or has run there; None if it is not known.'''
        claim = self.of(node) / job.CLAIM
        text = claim.read_text(errors='replace').strip() if claim.exists() else ''
        return int(text) if text.isascii() and text.isdigit() else None     # a full disk leaves it empty

    def wrong_clock(self, node):
        '''What to say where the clock of a node is not that of the file system, or its job began by it before the sweep or after now.'''
        claim = self.of(node) / job.CLAIM
        try:
            clock, written, begun = (path.stat().st_mtime for path in (claim.parent, claim, self.script))
        except OSError:
            return ''
        off = max(abs(clock - written), begun - clock, clock - time.time())
        return f'its clock is off by {off:.0f} s' if off > APART else ''

    def times(self, node, minutes):
        '''``began`` and ``spent`` of a node whose job is over: that had the node from its claim to its end, or now, at most its time limit,
        or so many minutes where that is not known.'''
        claim, ended = (self.of(node) / name for name in (job.CLAIM, job.ENDED))
        if node.job is None or self.claimed(node) != node.job:
            return {'began': 0.0, 'spent': node.spent}
        began, spent = min(claim.stat().st_mtime, time.time()), node.spent
        if ended.exists() or str(node.job) not in spent:        # one that left no end was over when that was first seen
            end = ended.stat().st_mtime if ended.exists() else time.time()
            spent = {**spent, str(node.job): min(max(0.0, end - began), 60.0 * (node.minutes or minutes))}
        return {'began': began, 'spent': spent}

    def begin(self):
        '''Be the only one that drives this sweep, until the process ends.

        :returns: False where the file system has no locks, so that nobody knows of another one.
        :raises PlumblineError: if somebody else does, or if the journal cannot be written.
        '''
        path, locked = self.folder / 'journal.jsonl', True
        with saying_why(path, ': make room, or have the owner of the sweep go on with it'):
            self._journal = journal = open(path, 'a+b')
        for again in (True, True, True, False):
            try:
                fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    locked = False      # as Lustre mounted without -o flock
                    break
                if not again:
                    raise PlumblineError(f'sweep {self.name} is being run by another process ({self.driver}); wait for it, or end it') from None
                time.sleep(0.2)     # another sweep may just look whether this one is being run
        with contextlib.suppress(OSError):     # of a full disk the journal tells
            (self.folder / DRIVER).write_text(f'process {os.getpid()} on {socket.gethostname()}')
        self._replay(cut=True)
        return locked

    @property
    def driver(self):
        '''Who runs this sweep, or last did, for people.'''
        try:
            return shown((self.folder / DRIVER).read_text(errors='replace')[:200])
        except OSError:
            return 'it is not known which'

    def beside(self):
        '''Other sweeps of the partition that somebody runs now.'''
        found = []
        for journal in sorted(self.folder.parent.glob('*/journal.jsonl'))[-_LATEST:]:
            try:
                with open(journal, 'rb') as file:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if journal.parent != self.folder:
                    found.append(load(journal.parent))
            except OSError:
                continue        # its owner's alone
        return [other for other in found if other.plan['partition'] == self.plan['partition']]

    def _replay(self, cut=False):
        path = self.folder / 'journal.jsonl'
        text = path.read_bytes() if path.exists() else b''
        whole = text.rfind(b'\n') + 1
        if cut and whole < len(text):       # half a line: whoever wrote it was killed
            os.truncate(path, whole)
        for number, line in enumerate(text[:whole].splitlines(), 1):
            try:
                entry = json.loads(line)
                node = self.nodes[entry.pop('node')]
                told = [*entry.items(), *(('since', seconds) for seconds in entry.get('spent', {}).values()),
                        *(('status', number) for its in entry.get('counts', {}).values() for number in its.values())]
                machine = {key: type(value) for key, value in entry.get('machine', {}).items()}
                if entry['phase'] not in PHASES or machine not in ({}, _MACHINE) or not all(
                        isinstance(value, _SAID[key]) and (not isinstance(value, (int, float)) or 0 <= value < 1e11) for key, value in told):
                    raise ValueError
            except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
                raise PlumblineError(f'{path}, line {number}: nothing that a sweep wrote of one of its nodes; remove that line: what it said '
                                     'is done again, or found by its job') from None
            for key, value in entry.items():
                setattr(node, key, value)
        self.left = sum(node.phase != OVER for node in self.nodes.values())

    def record(self, node, phase, **changes):
        '''Say on disk what became of a node, then in memory.

        The end of this process loses no line.  A host that loses its power keeps what came before the last submission or :meth:`sync`:
        what is lost after it is found again by the names of the jobs, and by what they left.
        '''
        assert self._journal is not None, 'begin() comes first'
        changes |= {'phase': phase, 'since': time.time()}
        self._journal.write(json.dumps({'node': node.name, **changes}).encode() + b'\n')
        self._journal.flush()
        if phase == SUBMITTING:
            self.sync()
        self.left += (phase != OVER) - (node.phase != OVER)
        for key, value in changes.items():
            setattr(node, key, value)

    def sync(self):
        '''Have the journal on the disk.'''
        assert self._journal is not None, 'begin() comes first'
        os.fsync(self._journal.fileno())


def set_aside(folder):
    '''Keep what an earlier attempt has left, under another name.'''
    number = 1
    while (earlier := folder.with_name(f'{folder.name}.{number}')).exists():
        number += 1
    folder.rename(earlier)


def create(folder, plan, script):
    '''A new sweep, on disk.

    :arg script: of its jobs.
    '''
    with saying_why(folder, ': PLUMBLINE_REPORTS names another folder'):
        folder.mkdir(parents=True)
        atomic.write(folder / 'job.sh', script, 0o700)      # it has variables of whoever began the sweep
        atomic.write(folder / 'sweep.json', json.dumps(plan, indent=1))
    return Sweep(folder, plan)


def load(folder):
    '''A sweep as it is on disk, for reading.

    :raises PlumblineError: if there is none.
    '''
    folder = Path(folder)
    try:
        plan = json.loads((folder / 'sweep.json').read_text())
        if wrong := schemas.complaint('sweep', plan):
            raise PlumblineError(f'{folder}/sweep.json is no plan of a sweep: {wrong}: begin a new one')
        sweep = Sweep(folder, plan)
    except (OSError, ValueError, RecursionError):
        others = sorted(path.parent.name for path in folder.parent.glob('*/sweep.json'))
        raise PlumblineError(f"{folder}: no sweep (there are {', '.join(others[-3:]) or 'none'})") from None
    sweep._replay()
    return sweep
