'''Lines of many nodes as one: of a thousand nodes nobody reads a line each.'''

import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ClusterShell.NodeSet import NodeSet

from plumbline.analysis.lines import Line
from plumbline.model import grouping, quantity, registry

#: Of so many nodes each has lines of its own.
MOST_NODES = 16

#: Names of nodes that are told of one line, characters of Slurm's short form.
_LONGEST = 160


@dataclass(frozen=True)
class Group:
    ''':attr line: what is shown: the worst of them.
    :attr lines: what it stands for, the worst first; one where the session has few nodes.
    '''

    line: Line
    lines: Sequence[Line]

    @property
    def hosts(self):
        '''Names of the nodes, which a reader may look for.'''
        return ' '.join(dict.fromkeys(line.hostname for line in self.lines))


def gathered(verdicts: Sequence[Line]) -> list[Group]:
    '''A :class:`Group` for each metric and verdict, or for each line where there are few nodes; in the order of the lines.'''
    hosts = {line.hostname for line in verdicts}
    if len(hosts) <= MOST_NODES:
        return [Group(line, [line]) for line in verdicts]
    found = grouping.by_key(((line.verdict, line.system, line.partition, line.environ, line.display_name, line.metric,
                              '' if line.metric else line.reason), line) for line in verdicts)
    ran: dict[tuple, set[str]] = {}
    for key, its in found.items():
        ran.setdefault(key[1:5], set()).update(line.hostname for line in its)     # where the test failed it has no metric
    return [_group(its, len(ran[key[1:5]])) for key, its in found.items()]


def _badness(line):
    '''Ascending from the worst: how far a value is from its reference, or, without one, the value.'''
    if not quantity.known(line.value):
        return float('-inf')
    value = line.value / line.reference if quantity.known(line.reference) and line.reference else line.value
    return value * (registry.better(line.kind) or 1)


def _group(lines, ran):
    if len(lines) == 1:
        return Group(lines[0], lines)
    lines = sorted(lines, key=_badness)
    worst, hosts = lines[0], {line.hostname for line in lines}
    values = [line.value for line in lines if quantity.known(line.value)]
    told = f'{len(hosts)} of {ran} nodes: {_some(frozenset(hosts))}; '
    if values:
        low, middle, high = (quantity.amount(value, worst.unit, like=values[0]) for value in (min(values), statistics.median(values), max(values)))
        told += f'{low} to {high}, median {middle}; the worst, of {worst.hostname}: '
    label = worst.label.removesuffix(f' {worst.hostname}')
    return Group(replace(worst, label=label, hostname=quantity.several(len(hosts), 'node'), reason=told + worst.reason), lines)


@functools.lru_cache(maxsize=1000)       # most metrics are of the same nodes, and to fold a thousand names takes 15 ms
def _some(hosts):
    text = str(NodeSet.fromlist([host for names in hosts for host in names.split(',') if host]))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rpartition(',')[0]},..."
