'''Asking other programs, with an end, and the names of nodes that they answer with.'''

import json
import math
import re
import subprocess

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from plumbline.errors import PlumblineError

#: A scheduler that takes longer to answer does not answer.
SECONDS = 20

#: Of one range of nodes: the names of many more would fill the memory.
_MOST_NODES = 10**6


class NoAnswer(PlumblineError):
    '''A program that is there did not say what it was asked.'''


def ask(command, seconds=None, named=3, **more):
    '''Standard output of a command.

    :arg seconds: how long it may take; None for :data:`SECONDS`, infinite for no end.
    :arg named: of how many of its words a complaint makes its name; None for all.
    :raises NoAnswer: if it is not there, takes longer or ends with another exit code than 0; with our last complaint, or its last words.
    '''
    words, seconds = list(map(str, command)), seconds or SECONDS
    name = ' '.join(words[:named])
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds if math.isfinite(seconds) else None,
                              encoding='utf-8', errors='replace', **more)
    except subprocess.TimeoutExpired:
        raise NoAnswer(f'{name} does not answer within {seconds} s') from None
    except OSError as error:
        raise NoAnswer(f'{name}: {error.strerror}') from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f'exit code {done.returncode}').splitlines()
        raise NoAnswer(f"{name} failed: {([line for line in said if line.startswith('plumbline: ')] or said)[-1].strip()}")
    return done.stdout


def ask_json(command, **more):
    '''The same of a command that prints a JSON object.

    :raises NoAnswer: also if it does not.
    '''
    text = ask(command, **more)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoAnswer(f"{' '.join(command)} does not print JSON: {error}") from None
    if not isinstance(answer, dict):
        raise NoAnswer(f"{' '.join(command)} prints no JSON object")
    return answer


def node_set(text):
    '''Nodes in Slurm's short form, e.g. ``n[1-4,7]``.  What ClusterShell takes for its own groups and patterns (``@all``, ``n*``) is none.

    :raises PlumblineError: if it has another form.
    '''
    try:
        ranges = re.findall(r'(\d+)-(\d+)', ' '.join(re.findall(r'\[[^]]*', text)))
        if any(int(last) - int(first) >= _MOST_NODES for first, last in ranges):
            raise ValueError(f'more than {_MOST_NODES}')
        return NodeSet(text, resolver=RESOLVER_NOGROUP)
    except (NodeSetException, ValueError, TypeError) as error:
        raise PlumblineError(f"{text!r} names no nodes ({error}): write them like 'n[1-4,7]'") from None
