'''Reading with an end: each group of facts is read by a process of its own, which is left behind where it does not answer in time.

A process that waits for a hung file system cannot be killed until the file system answers.  So nobody waits for it: the parent touches no
file system but that of its own file, and reads pipes with a time limit.  As long as one waits, later gates start no second one (``software.py``).
'''

import json
import os
import select
import signal
import time
from collections import namedtuple

#: ``name``; ``prefixes`` of the facts that it yields; ``read``: a generator of :class:`Fact` and :class:`Missing`; ``seconds``: its time.
Group = namedtuple('Group', 'name prefixes read seconds')

#: A fact: what it is called, its value (text, number, or list of texts), and where it was read.
Fact = namedtuple('Fact', 'name value source')

_Missing = namedtuple('_Missing', 'prefix why late')


class Missing(_Missing):
    '''Facts whose names begin so could not be read, and why; ``late``: their group was asked, now or by an earlier gate, and did not answer.'''
    __slots__ = ()

    def __new__(cls, prefix, why, late=False):
        return super().__new__(cls, prefix, why, late)


#: A child that its parent no longer looks after (it was killed) ends by itself this long after its time.
_AFTERWARDS = 5


class Found:
    '''What was read of a node.

    :attr facts: dictionary name -> :class:`Fact`; :attr missing: list of :class:`Missing`; :attr seconds: dictionary group -> how long it
        took; :attr left_behind: names of groups whose processes did not end when they were killed.
    '''

    def __init__(self):
        self.facts, self.missing, self.seconds, self.left_behind = {}, [], {}, []

    def add(self, one):
        if isinstance(one, Fact):
            self.facts[one.name] = one
        else:
            self.missing.append(one)

    def why_missing(self, name):
        '''The :class:`Missing` of a fact, or None: then its group was read, and the node has no such thing.'''
        return next((one for one in self.missing if name == one.prefix or name.startswith(one.prefix + '.')), None)


class _Running:
    def __init__(self, group, end):
        self.group, self.data = group, b''
        reader, writer = os.pipe()
        try:
            self.process = os.fork()
        except OSError:
            os.close(reader)
            os.close(writer)
            raise
        self.begun = time.monotonic()       # a fork may be slow
        self.late = min(self.begun + group.seconds, end)
        if self.process == 0:
            _in_child(group, writer, self.late)
        os.close(writer)
        self.pipe = reader

    def kill(self):
        os.close(self.pipe)
        for kill in (os.killpg, os.kill):       # it may not have come to make its group
            try:
                kill(self.process, signal.SIGKILL)
            except OSError:     # it has ended
                continue


def _in_child(group, writer, late):
    '''Read a group and write what is found, a line of JSON for each; never returns.'''
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(0.1, late - time.monotonic()) + _AFTERWARDS)
        os.setsid()
        # Whoever reads our output waits until nobody holds it any more.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        for number in map(int, os.listdir('/proc/self/fd')):
            if number > 2 and number != writer:
                try:
                    os.close(number)
                except OSError:     # that of the listing
                    continue
        try:
            for one in group.read():
                _tell(writer, one)
        except Exception as error:      # an error of ours is a fact that could not be read, and says which
            for prefix in group.prefixes:
                _tell(writer, Missing(prefix, f"{type(error).__name__}: {' '.join(str(error).split())}"))
        _tell(writer, None)
    finally:
        os._exit(0)


def _tell(writer, one):
    kind = 'end' if one is None else 'fact' if isinstance(one, Fact) else 'missing'
    line = json.dumps([kind, *(one or ())]).encode() + b'\n'
    while line:
        line = line[os.write(writer, line):]


def _said(running, found, why):
    '''Take what a group has said; ``why`` it said no more, where it was not its end.'''
    ended, late = False, time.monotonic() >= running.late
    for line in running.data.split(b'\n')[:-1]:
        kind, *fields = json.loads(line.decode())
        ended = ended or kind == 'end'
        if kind != 'end':
            found.add((Fact if kind == 'fact' else Missing)(*fields))
    if not ended:
        for prefix in running.group.prefixes:
            found.add(Missing(prefix, why, late))
    found.seconds[running.group.name] = round(time.monotonic() - running.begun, 3)


def _unended(killed):
    '''Names of the groups whose processes do not end, although they were killed: those that wait for a hung file system.'''
    end = time.monotonic() + 0.2
    left = list(killed)
    while left and time.monotonic() < end:
        left = [one for one in left if os.waitpid(one.process, os.WNOHANG) == (0, 0)]
        time.sleep(0.002)
    return [one.group.name for one in left]


def read(groups, seconds):
    '''Read all groups beside each other.

    :arg seconds: how long all of it may take.
    :returns: :class:`Found`, in no more than that and a quarter of a second.
    '''
    end = time.monotonic() + seconds
    found, running, started = Found(), {}, []
    for group in groups:
        try:
            one = _Running(group, end)
        except OSError as error:
            for prefix in group.prefixes:
                found.add(Missing(prefix, f'no process can be started: {error.strerror}'))
            continue
        running[one.pipe] = one
        started.append(one)
    while running:
        now = time.monotonic()
        ready = select.select(list(running), [], [], max(0, min(one.late for one in running.values()) - now))[0]
        for pipe in ready:
            data = os.read(pipe, 1 << 16)
            running[pipe].data += data
            if not data:
                one = running.pop(pipe)
                _said(one, found, 'the process that reads it ended')
                one.kill()
        # Where this process was held up, the answer may have lain there in time.
        for one in [one for one in running.values() if one.late <= now and one.pipe not in ready]:
            del running[one.pipe]
            _said(one, found, f'no answer in {one.late - one.begun:.2g} s')
            one.kill()
    found.left_behind = _unended(started)
    return found
