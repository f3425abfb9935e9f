'''The lines of a site file: what is certain, and what a person has to decide.'''

import pprint
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

import jinja2

SEVERAL_KINDS = 'DECIDE: nodes of several kinds, which one topology cannot describe'

#: Longest line of a comment, with its indentation.
WIDTH = 118


@dataclass
class Entry:
    '''A line of a dictionary of ReFrame's configuration.

    :attr key: ``None`` for a remark that has no line.
    :attr remark: a comment that stands above.
    :attr decide: the line is a comment itself, which a person may make count.
    '''
    key: str | None
    value: Any = None
    remark: str = ''
    decide: bool = False


def remark(text):
    '''A comment that belongs to no line.'''
    return Entry(None, remark=text)


@dataclass
class Partition:
    '''A partition of the site file.

    :attr name: ReFrame's name of it.
    :attr entries: its other lines, but for the environments.
    '''
    name: str
    entries: list[Entry] = field(default_factory=list)


@dataclass
class Found:
    '''What a scheduler says of its system.

    :attr system: name of the system, as it is; None where the scheduler has none.
    :attr title: the scheduler and its version, for people.
    :attr pmi: how the processes of an MPI program find each other where ``mpirun`` does not start them (``pmix``, ...).
    :attr remarks: what else there is to say of its partitions.
    :attr local: there is no scheduler.
    '''
    system: str | None
    title: str
    partitions: list[Partition]
    pmi: str | None = None
    remarks: list[str] = field(default_factory=list)
    local: bool = False


def name_of(text, taken=()):
    '''A name that ReFrame takes (letters, digits, ``_`` and ``-``, no digit first), and that is not taken.'''
    name = re.sub('[^A-Za-z0-9_-]', '_', text)
    name = name if re.match('[A-Za-z_]', name) else f'p{name}'
    free, number = name, 2
    while free in taken:
        free, number = f'{name}-{number}', number + 1
    return free


def is_name(text):
    '''Whether ReFrame takes a name as it is.'''
    return re.fullmatch('[A-Za-z_][A-Za-z0-9_-]*', text) is not None


def duration(count):
    '''Seconds as ReFrame writes them.'''
    days, rest = divmod(int(count), 86400)
    hours, rest = divmod(rest, 3600)
    parts = zip((days, hours, rest // 60, rest % 60), 'dhms')
    return ''.join(f'{number}{unit}' for number, unit in parts if number) or '0s'


#: Seconds that the longest of our jobs asks for by itself.
LONGEST_JOB = 4 * 3600


def time_limit(longest):
    '''What a site file says of the longest job of a partition: jobs ask for ``time_limit``, so only what is short is one.

    :arg longest: seconds.
    '''
    if longest < LONGEST_JOB:
        return Entry('time_limit', duration(longest), f'the longest check asks for {duration(LONGEST_JOB)}: more than a job may have')
    return remark(f'longest job: {duration(longest)}')


def _comment(text, indent):
    '''A remark as lines of comments; whatever is in it cannot end the comment.'''
    words = re.sub(r'[\x00-\x1f\x7f\ud800-\udfff]', ' ', text).split()
    return textwrap.wrap(' '.join(words), WIDTH - indent, initial_indent='# ', subsequent_indent='# ', break_long_words=False, break_on_hyphens=False)


def _item(key, value, width):
    '''Key and value of a dictionary as lines of Python.'''
    start = f'{key!r}: '
    first, *rest = pprint.pformat(value, width=width - len(start), sort_dicts=False).splitlines()
    found = [start + first, *(' ' * len(start) + line for line in rest)]
    return [*found[:-1], found[-1] + ',']


def lines(entries, indent):
    '''The entries as lines of Python, indented.'''
    result = []
    for entry in entries:
        if entry.remark:
            result += _comment(('DECIDE: ' if entry.decide else '') + entry.remark, indent)
        if entry.key is not None:
            item = _item(entry.key, entry.value, WIDTH - indent - 2)
            result += [f'# {line}' for line in item] if entry.decide else item
    return '\n'.join(' ' * indent + line for line in result)


def render(**parts):
    '''The site file from the template.'''
    environment = jinja2.Environment(loader=jinja2.PackageLoader(__package__, '.'), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
                                     undefined=jinja2.StrictUndefined)
    return environment.get_template('site_file.py.j2').render(lines=lines, **parts)
