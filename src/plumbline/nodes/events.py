'''The journal of what happened to nodes: ``REPORTS/nodes/SYSTEM.jsonl``, a line of JSON for each event, never changed afterwards.

=============  =====================================================================================================================
``at``         seconds since 1970, of what a job did when it began; ``node``: Slurm's name; ``event``: one of :data:`EVENTS`
``measured``   by a ``sweep``: ``session`` of the archive, and ``again``, those of second measurements; ``verdict`` (the worst, or PASS), ``rank``
               (:data:`IN_ORDER`, :data:`OUTLIER`; null: not ranked), ``lacks`` (what peers have and it has not, in words), ``hours`` of all
               the sweep's jobs on the node so far
``failed``     a sweep's job on it, or it had none, for Slurm had the node out of service (:data:`OUT_OF_SERVICE`): ``state``, ``reason``, ``hours``
``outlier``    of a ``sweep``, or otherwise not in order: ``evidence`` (:func:`plumbline.sweep.findings.evidence`; its ``told``: what its own report
               and its peers say, as texts), ``page``
``cleared``    the node is in order by that ``sweep`` after all: it was gone on with
``proposed``   to the site by a ``sweep``: ``action`` (``drain``, ``return``), ``command``, ``how`` (``printed``, ``hook``)
``drained``    what people did, ``reason``, ``by``; and so ``repaired``, ``returned``
``renamed``    ``was`` another name, ``by``: what that one did until now is this node's (:class:`Names`)
=============  =====================================================================================================================

Several may write at once: each appends its lines by one write.  A line that says nothing of a node is skipped and named.
'''

import json
import os
import re
import time

import polars as pl

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.model import stamp
from plumbline.settings import REPORTS
from plumbline.store import archive

#: Where the journals are.
FOLDER = REPORTS / 'nodes'

MEASURED, FAILED, FOUND, CLEARED, PROPOSED = 'measured', 'failed', 'outlier', 'cleared', 'proposed'

#: What people do with a node, in this order.
DRAINED, REPAIRED, RETURNED = STEPS = 'drained', 'repaired', 'returned'

RENAMED = 'renamed'

#: What a sweep says of nodes, which it calls as they were called when it began.
OF_SWEEP = MEASURED, FAILED, FOUND, CLEARED

EVENTS = {*OF_SWEEP, PROPOSED, *STEPS, RENAMED}

#: States of a node, in Slurm's words, in which somebody, its own health check or a fault has taken it out of service.
OUT_OF_SERVICE = {'down', 'drained', 'draining', 'drng', 'error', 'fail', 'failing', 'inval', 'not responding'}

#: Of a node among its peers.
IN_ORDER, OUTLIER = 'in order', 'outlier'

_NODE, _SYSTEM = re.compile(r'\w[\w.-]*'), re.compile(r'\w[\w.-]*')

#: What a line may say besides, and of which type.
_SAID: dict[str, type | tuple[type, ...]] = {
    'partition': str, 'sweep': str, 'session': str, 'again': list, 'verdict': str, 'rank': (str, type(None)), 'lacks': str, 'hours': (int, float),
    'state': str, 'reason': str, 'evidence': dict, 'page': str, 'action': str, 'command': str, 'how': str, 'by': str}


def begun(sweep):
    '''When a sweep began, by its id, seconds since 1970; None where that does not say.'''
    at = stamp.begun(sweep)
    return None if at is None else at.timestamp()


class Names:
    '''What nodes are called now that had other names.

    :arg events: those of a journal.
    '''

    def __init__(self, events):
        changes: dict[float, dict[str, str]] = {}
        for event in events:
            # Those of one time at once: names may be exchanged.  Of a clock that was ahead they are not known to have been then.
            if event['event'] == RENAMED and not archive.is_ahead(stamp.of(event['at'])):
                changes.setdefault(event['at'], {})[event['was']] = event['node']
        self._changes = sorted(changes.items())

    def now(self, name, at, until=None):
        '''What a node is called, or was at a time ``until``, that was called so at a time; None: not known, and no other.'''
        for when, names in self._changes if at is not None else ():
            if at < when and (until is None or when <= until):
                name = names.get(name, name)
        return name

    def of(self, event):
        '''The node of an event, as it is called now.'''
        at = begun(event.get('sweep', '')) if self._changes and event['event'] in OF_SWEEP else None
        return self.now(event['node'], event['at'] if at is None else at)

    def renamed(self, rows):
        '''Rows of the archive, lazy or not, of any sessions, with nodes as they are called now.'''
        for at, names in self._changes:
            before = pl.col('session') < stamp.of(at)
            now = pl.col('hostname').str.split(',').list.eval(pl.element().replace(names)).list.join(',')       # of each of several nodes
            rows = rows.with_columns(hostname=pl.when(before).then(now).otherwise(pl.col('hostname')))
        return rows


def names(system):
    '''The :class:`Names` of the nodes of a system.

    :raises PlumblineError: if the journal is there and cannot be read.
    '''
    return Names(read(system, RENAMED)[0])


def path(system):
    '''The journal of a system.

    :raises PlumblineError: if that is no name of one.
    '''
    if not _SYSTEM.fullmatch(system):
        raise PlumblineError(f'{system!r} is no name of a system')
    return FOLDER / f'{system}.jsonl'


def append(system, events):
    '''Write events, all of them by one write.

    :arg events: list of dictionaries; ``at`` is now where it is not given.
    :raises PlumblineError: if they cannot be written; what is already there stays.
    '''
    if not events:
        return
    file, now = path(system), time.time()
    text = ''.join(json.dumps({'at': now, **event}, allow_nan=False) + '\n' for event in events).encode()
    with saying_why(file, ': what happened to the nodes is not written down'):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666 if atomic.RESULT is None else atomic.RESULT)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b'\n':     # half a line, of a full disk: ours begin a new one
                text = b'\n' + text
            written = os.write(handle, text)
            os.fsync(handle)
        finally:
            os.close(handle)
    if written < len(text):
        raise PlumblineError(f'{file}: no room for what happened to the nodes: make some, and resume the sweep, or mark the nodes again')


def read(system, only=''):
    '''(The events in the order of their lines, texts about the lines that are none).

    :arg only: lines that have this.
    :raises PlumblineError: if the journal is there and cannot be read.
    '''
    file, events, skipped = path(system), [], []
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise PlumblineError(f'{file}: {error.strerror}') from None
    for number, line in enumerate(text.split(b'\n'), 1):
        if line.strip() and only.encode() in line:
            event = _event(line)
            if event:
                events.append(event)
            else:
                skipped.append(f'{file}, line {number}: no event of a node')
    return events, skipped


def _event(line):
    '''What a line says; None if that is nothing.'''
    try:
        event = json.loads(line)
        names = [event['node'], *([event['was']] if event['event'] == RENAMED else [])]
        good = (event['event'] in EVENTS and all(map(_NODE.fullmatch, names)) and 0 <= event['at'] < 1e11 and not isinstance(event['at'], bool)
                and all(isinstance(event[key], kind) for key, kind in _SAID.items() if key in event) and 0 <= event.get('hours', 0) < 1e11)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return event if good else None


def systems():
    '''Those that have a journal, sorted.'''
    return sorted(file.stem for file in FOLDER.glob('*.jsonl'))
