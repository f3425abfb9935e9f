'''OSU micro-benchmarks, point-to-point and collective, versions 5 to 7.'''

import re
from dataclasses import dataclass

from plumbline.errors import PlumblineError
from plumbline.model.quantity import short_size
from plumbline.named import Figure, number, only


@dataclass(frozen=True)
class Program:
    '''One of the benchmarks.

    :attr title: as its output has it; ``metric``: what it measures.
    :attr ranks: how many take part, or ``all``; ``least``: the shortest message, bytes.
    '''
    title: str
    metric: str
    ranks: int | str = 2
    least: int = 1

    @property
    def unit(self):
        return 'us' if self.metric == 'latency' else 'MB/s'


PROGRAMS = {
    'osu_latency': Program('OSU MPI Latency Test', 'latency'),
    'osu_bw': Program('OSU MPI Bandwidth Test', 'bandwidth'),
    'osu_bibw': Program('OSU MPI Bi-Directional Bandwidth Test', 'bandwidth'),
    'osu_allreduce': Program('OSU MPI Allreduce Latency Test', 'latency', 'all', 4),
    'osu_alltoall': Program('OSU MPI All-to-All Personalized Exchange Latency Test', 'latency', 'all'),
}

_COLUMNS = {'latency': r'(?:Avg )?Latency ?\(us\)', 'bandwidth': r'Bandwidth \(MB/s\)'}


def lengths(name, most):
    '''The message lengths that a program goes through, bytes: powers of two.

    :arg most: the longest.
    '''
    least = PROGRAMS[name].least
    return [2**power for power in range(least.bit_length() - 1, most.bit_length())]


def figures(text, source='output of OSU', *, name, most, told=4):
    '''The numbers of a run.

    :arg name: a key of :data:`PROGRAMS`.
    :arg most: the longest message that was asked for, bytes.
    :arg told: of the rows, which are all looked at, those of its powers are figures.
    :raises PlumblineError: also for a row that is missing, out of its turn or one too many.
    '''
    program = PROGRAMS[name]
    only(text, rf'^# {re.escape(program.title)}(?: v\S+)?\s*$', f'the title "{program.title}"', source)
    heading = only(text, rf'^# Size +{_COLUMNS[program.metric]}\s*$', f'the heading of the column, {program.unit},', source)
    rows = [line.split() for line in text[heading.end():].splitlines() if re.match(r'\s*\d', line)]
    due = lengths(name, most)
    for row, length in zip(rows, due):
        if len(row) != 2 or row[0] != str(length) or not re.fullmatch(r'\S+\.\d\d', row[1]):       # one digit: it was cut off
            raise PlumblineError(f'{source}: expected the row of {length} bytes with one number of two decimals, found {" ".join(row)!r}')
    if len(rows) != len(due):
        raise PlumblineError(f'{source}: {len(rows)} rows instead of {len(due)}, {due[0]} to {due[-1]} bytes; was the output cut off?')
    values = [number(row[1], f'the row of {row[0]} bytes', source) for row in rows]
    chosen = [power for power in due if (power.bit_length() - 1) % (told.bit_length() - 1) == 0]
    return [Figure(program.metric, f'{name}.{short_size(length)}', value, program.unit) for length, value in zip(due, values) if length in chosen]
