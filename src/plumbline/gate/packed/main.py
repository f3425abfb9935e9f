'''The gate itself: is this node as its expectations say?  It changes nothing, asks no scheduler, and ends in time.

Exit codes: 0 as expected, 1 warn, 2 drain, 3 unknown (these expectations are of another kind of node, nothing could be read, or the gate itself
failed).  Standard output has one line, for the scheduler's reason; --verbose and --json tell everything.
'''

import argparse
import json
import os
import signal
import socket
import time
from collections import namedtuple

from plumbline.gate.packed import compare, facts, reading
from plumbline.gate.packed.node import PATH, Node

OK, WARN, DRAIN, UNKNOWN = range(4)
WORDS = ('ok', 'warn', 'drain', 'unknown')

#: Form of the expectations that a gate holds.
SCHEMA = 1

#: Seconds for everything, by default and at most.
SECONDS, MOST_SECONDS = 20, 30

#: Characters of the line for the scheduler.
_LONGEST = 150

#: A node that has lost a socket is of its kind all the same.
SOCKETS = 'cpu.sockets'

#: Kept of the time for what comes after reading.
_TO_TELL = 0.5

#: ``code``; ``line``: for the scheduler; ``kind``: of node, or None; ``differences``; ``found``: what was read; ``looked_at``: how many.
Outcome = namedtuple('Outcome', 'code line kind differences found looked_at')


def _of_kind(entry, found):
    '''Why these expectations are not this node's; '' if they are.'''
    for name, value in entry['of'].items():
        if name == SOCKETS:
            continue
        if name not in found.facts:
            missing = found.why_missing(name)
            return f"{name} not read: {missing.why if missing else 'not there'}"
        if not compare.same(found.facts[name].value, value):
            return f'of {value}, this is {found.facts[name].value}'
    return ''


def _other_sockets(entry, found):
    '''Whether these expectations are of another number of sockets: of kinds that are alike otherwise, such a one judges only where no other does.'''
    wanted = entry['of'].get(SOCKETS, entry['expectations'].get(SOCKETS, {}).get('is'))
    return wanted is not None and SOCKETS in found.facts and found.facts[SOCKETS].value != wanted


def _line(code, texts):
    '''The texts that fit, and how many do not; nothing that a terminal would obey.'''
    line = f'plumbline gate: {WORDS[code]}: '
    for number, text in enumerate(texts):
        text = ''.join(one if one.isprintable() else '?' for one in text)
        more = f'; and {len(texts) - number} more'
        if number and len(line) + len(text) + len(more) > _LONGEST:
            return line + more
        line += ('; ' if number else '') + (text if len(text) <= _LONGEST else text[:_LONGEST] + '...')
    return line


def judge(kinds, found):
    '''Hold what was read against the first of the kinds that the node is of, those with as many sockets before others.

    :returns: :class:`Outcome`.
    '''
    if not found.facts:
        why = found.missing[0].why if found.missing else 'nothing is expected'
        return Outcome(UNKNOWN, _line(UNKNOWN, [f'nothing could be read: {why}']), None, [], found, 0)
    reasons = [(entry, _of_kind(entry, found)) for entry in sorted(kinds, key=lambda entry: _other_sockets(entry, found))]
    entry = next((entry for entry, why in reasons if not why), None)
    if entry is None:
        return Outcome(UNKNOWN, _line(UNKNOWN, [f"not a {other['kind']}: {why}" for other, why in reasons]), None, [], found, 0)
    expectations = entry['expectations']
    told = compare.differences(expectations, found)
    unread = [one for one in told if one.unread]
    if len(unread) == len(expectations):
        return Outcome(UNKNOWN, _line(UNKNOWN, [f'nothing could be read: {unread[0].text}']), entry['kind'], told, found, 0)
    worst = max((compare.SEVERITIES.index(one.severity) for one in told), default=OK)
    if worst == OK:
        notes = f', {len(told)} noted' if told else ''
        line = _line(OK, [f"{entry['kind']}, {len(expectations) - len(told)} of {len(expectations)} as expected{notes}"])
    else:
        line = _line(worst, [one.text for one in told if one.severity != compare.NOTE])
    return Outcome(worst, line, entry['kind'], told, found, len(expectations) - len(unread))


def least(kinds):
    '''Seconds that a look takes at least: one more than mounts may take to answer by these expectations.'''
    return 1 + max((wanted.get('to', 0) for entry in kinds for name, wanted in entry['expectations'].items()
                    if name.startswith('mount.') and name.endswith('.answers')), default=0)


def look(kinds, seconds, **further):
    '''Read what these expectations need, and judge it.

    :arg further: of :class:`Node`.
    :returns: :class:`Outcome`.
    '''
    names = {name for entry in kinds for name in (*entry['expectations'], *entry['of'])}
    packages, services, variables, mounts = (facts.named(names, group) for group in ('package', 'service', 'environment', 'mount'))
    node = Node(packages=sorted(packages), services=sorted(services), variables=sorted(variables),
                mounts=sorted({rest.rpartition('.')[0] for rest in mounts}), **further)
    return judge(kinds, reading.read(facts.groups(node, names, least(kinds)), seconds))


def document(outcome, elapsed):
    '''An outcome as JSON has it.'''
    found = outcome.found
    return {'schema': 1, 'outcome': WORDS[outcome.code], 'exit_code': outcome.code, 'line': outcome.line, 'node': socket.gethostname(),
            'kind': outcome.kind, 'seconds': round(elapsed, 3), 'looked_at': outcome.looked_at,
            'differences': [{'name': one.name, 'severity': one.severity, 'text': one.text, 'unread': one.unread} for one in outcome.differences],
            'not_read': [{'fact': one.prefix, 'why': one.why} for one in found.missing],
            'left_behind': found.left_behind, 'seconds_of_groups': found.seconds,
            'facts': {name: {'value': fact.value, 'source': fact.source} for name, fact in found.facts.items()}}


def lines(outcome, elapsed):
    '''The same for people.'''
    yield outcome.line
    for one in outcome.differences:
        yield f'{one.severity:5s} {one.text}'
    for missing in outcome.found.missing:
        if not any(facts.is_of(one.name, missing.prefix) for one in outcome.differences):
            yield f'      {missing.prefix} not read: {missing.why}'
    for name in outcome.found.left_behind:
        yield f'      {name}: its process does not end, and was left behind'
    yield f'{outcome.looked_at} facts looked at in {elapsed:.1f} s'


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        '''Exit code 2 would drain the node.'''
        end(UNKNOWN, f'plumbline gate: unknown: {message}')


def end(code, text):
    '''Print and leave, whatever else there is: no process is waited for, and no reader of our output for longer than the time allows.'''
    signal.signal(signal.SIGALRM, lambda *_: os._exit(code))
    data = text.encode('utf-8', 'replace') + b'\n'
    try:
        while data:
            data = data[os.write(1, data):]
    except OSError:     # whoever started it does not listen, or has a full disk: the exit code tells
        os._exit(code)
    os._exit(code)


def options(words):
    parser = _Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seconds', type=float, default=None, help=f'it ends after so many, at most {MOST_SECONDS}, and 1 more than mounts may take')
    parser.add_argument('--verbose', action='store_true', help='all differences, and what could not be read')
    parser.add_argument('--json', action='store_true', help='all facts with their sources, as JSON')
    parser.add_argument('--path', default=PATH, help='where commands are looked for')
    return parser.parse_args(words)


def main(held, words=None):
    '''Run the gate, and leave with its exit code.

    :arg held: what it holds, as JSON: ``schema``, ``seconds`` and ``kinds``.
    '''
    begun = time.monotonic()
    while os.open(os.devnull, os.O_RDWR) < 3:       # somebody closed the streams of this process: pipes must not take their numbers
        continue
    # Exit code 1 of an error of ours would be a warning, and 2 of a wrong option would drain the node.
    try:
        given = options(words)
        content = json.loads(held)
        if not isinstance(content, dict) or content.get('schema') != SCHEMA:
            end(UNKNOWN, f"plumbline gate: unknown: expectations of schema {content.get('schema') if isinstance(content, dict) else 'none'}, "
                         f'this gate knows {SCHEMA}: write it anew')
        # No less than mounts may take: a gate that would not look judges no node, and only the log would say so.
        seconds = max(least(content['kinds']), content['seconds'] if given.seconds is None else given.seconds)
        if not seconds <= MOST_SECONDS:
            end(UNKNOWN, f'plumbline gate: unknown: --seconds {seconds:g}: give {MOST_SECONDS} at most')
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)       # whoever starts it may ignore it, and block others: both are inherited
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        signal.signal(signal.SIGALRM, lambda *_: os._exit(UNKNOWN))
        signal.setitimer(signal.ITIMER_REAL, seconds)
        os.chdir('/')
        outcome = look(content['kinds'], seconds - _TO_TELL - (time.monotonic() - begun), path=given.path)
        elapsed = time.monotonic() - begun
        text = json.dumps(document(outcome, elapsed), indent=1) if given.json else '\n'.join(lines(outcome, elapsed)) if given.verbose \
            else outcome.line
        end(outcome.code, text)
    except Exception as error:
        end(UNKNOWN, f"plumbline gate: unknown: {type(error).__name__}: {' '.join(str(error).split())}")
