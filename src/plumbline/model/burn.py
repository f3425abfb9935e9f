'''A burn: its records, whether its rates hold, and who is slow.

The records (``schemas/burn.json``) are lines of a file that may have been broken off, and gone on with, more than once: each part begins
with a ``burn_start``.
'''

import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import records, uncertainty

#: The phases, in the order of a round.
PHASES = ('dgemm', 'fma', 'memory', 'cache', 'message')

#: Rounds that say something of a drift: of fewer no two of the ratios, nor of the slopes, bound an interval of 95 %.
LEAST_ROUNDS = 12

#: Blocks of rounds that a slope is taken over, at most.
BLOCKS = 24

#: Threads that can be ranked: of two it is not known which is the slow one.
LEAST_THREADS = 3

#: What of the counts beside the burn must not rise, and what each is.
COUNTS = {'memory_corrected': 'errors that the memory controllers corrected', 'memory_uncorrected': 'errors that they could not correct',
          'machine_checks': 'machine checks', 'throttled': 'throttling of a core or a socket for its heat'}

#: Where a record begins: half of one may stand before it in its line, where a node or a file server failed.
_BEGIN = re.compile(r'(?=\{"record": "burn_)')

#: What only an error has, at its begin and at its end.
_OF_ERROR = re.compile(r'"record": "burn_error"|"from_thread": ')

#: Points of each series that a report keeps.
MOST_POINTS = 200


@dataclass
class Burn:
    '''What the file of a burn says.

    :attr starts: the ``burn_start`` of each part; at least one.
    :attr phases: the ``burn_phase`` records, in the order of time; ``part`` is the number of the part, from 0.
    :attr errors: the ``burn_error`` records: the first ones of each thread and phase of a round.
    :attr end: the ``burn_end`` of the last part, or None: it was killed, or its file system never came back.
    :attr unended: how many parts before the last one have none.
    :attr torn: numbers of the lines that have half a record; :attr torn_errors: how many of these were of errors.
    :attr unaccounted: the torn lines behind which no record of their part says how many errors there were until then.
    '''
    starts: list[dict] = field(default_factory=list)
    phases: list[dict] = field(default_factory=list)
    errors: list[dict] = field(default_factory=list)
    end: dict | None = None
    unended: int = 0
    torn: list[int] = field(default_factory=list)
    torn_errors: int = 0
    unaccounted: list[int] = field(default_factory=list)

    @property
    def total_errors(self) -> int:
        '''Words that were wrong, in all parts; those told included whose phase was never ended, for the node went down.'''
        said = [record['total_errors'] for record in self.phases] + ([self.end['errors']] if self.end else [])
        return max([*said, len(self.errors) + self.torn_errors])

    @property
    def done(self) -> float:
        '''Seconds in phases, in all parts.'''
        return max([record['done'] for record in self.phases] + ([self.end['done']] if self.end else []), default=0.0)

    def of(self, phase: str) -> list[dict]:
        '''The records of a phase.'''
        return [record for record in self.phases if record['phase'] == phase]

    def counted(self, name: str) -> int | None:
        '''How often one of :data:`COUNTS` was counted, in all parts; None where it was never, and could not be read at the end of a part.'''
        last = {record['part']: record[name] for record in self.phases}
        most: dict[int, int] = {}       # somebody may have set it to 0 meanwhile
        for record in self.phases:
            most[record['part']] = max(most.get(record['part'], 0), record[name] or 0)
        return sum(most.values()) or (None if not last or None in last.values() else 0)


def parse(text: str, source: str) -> Burn:
    '''Read the records of a burn.

    :arg text: lines; any may be torn, where the node or its file server failed.
    :raises PlumblineError: naming the line, for a whole record that is none of ours; if there is no ``burn_start`` before the others.
    '''
    burn, waiting = Burn(), list[int]()       # waiting: torn lines that no count of errors has followed yet
    for number, line in enumerate(text.split('\n'), start=1):
        found, torn = _read(line, f'{source}, line {number}')
        for record in found:
            kind = record['record']
            if kind == 'burn_start':
                burn.unended += bool(burn.starts and not burn.end)
                burn.starts.append(record)
                burn.end = None
                burn.unaccounted += waiting
                waiting = []
            elif not burn.starts:
                raise PlumblineError(f'{source}, line {number}: a {kind} before any burn_start: give the whole file that --series wrote')
            elif kind == 'burn_error':
                burn.errors.append(record)
            else:
                waiting = []
                if kind == 'burn_phase':
                    burn.phases.append({**record, 'part': len(burn.starts) - 1})
                else:
                    burn.end = record
        if torn:
            burn.torn.append(number)
            burn.torn_errors += sum(_OF_ERROR.search(piece) is not None for piece in torn)
            waiting.append(number)
    if not burn.starts:
        raise PlumblineError(f'{source}: no record of a burn: give the file that --series wrote')
    burn.unaccounted += waiting
    return burn


def _read(line: str, where: str) -> tuple[list[dict], list[str]]:
    '''The records of a line, and what is left of others: one record and nothing, as a rule.'''
    found, torn = [], []
    for piece in filter(None, _BEGIN.split(line)):
        try:
            record = json.loads(piece, parse_constant=records.refuse_number)
        except (json.JSONDecodeError, RecursionError):
            torn.append(piece)
            continue
        except ValueError as error:
            raise PlumblineError(f'{where}: no record: {error}') from None
        if wrong := schemas.complaint('burn', record):
            raise PlumblineError(f'{where}: {wrong}')
        found.append(record)
    return found, torn


# --- does it hold? ----------------------------------------------------------------------------------------------------

def blocks(values: ArrayLike, count: int = BLOCKS) -> np.ndarray:
    '''Medians of ``count`` parts of a series that are equally long; the series itself, if it is no longer.'''
    values = np.asarray(values, dtype=float)
    return values if values.size <= count else np.array([np.median(part) for part in np.array_split(values, count)])


def drift(done: Sequence[float], rates: Sequence[float]) -> np.ndarray:
    '''What is left of a rate at the end, by the slope of its logarithm: 1 if it holds, 0.95 if it lost 5 % on the way.

    Theil's incomplete method (Proc. Kon. Ned. Akad. Wet. 53 (1950) 386): of n blocks of rounds each of the first half is paired with the one
    n / 2 later, so that the slopes are independent, and the interval of their median needs no distribution.  One outlier, or some, do not
    carry it, unlike a straight line of least squares.

    :arg done: seconds, rising, shape (n,); :arg rates: above 0, shape (n,).
    :returns: shape (m,), one for each pair of blocks, in their order; their median is the estimate.
    '''
    x, y = blocks(done), blocks(np.log(rates))
    half = x.size // 2
    later = slice(x.size - half, None)
    slopes = (y[later] - y[:half]) / (x[later] - x[:half])
    return np.exp(slopes * (done[-1] - done[0]))


def of_start(rates: Sequence[float]) -> np.ndarray:
    '''The last tenth of a series over the first one, round by round: shape (m,), six at least.'''
    tenth = max(LEAST_ROUNDS // 2, len(rates) // 10)
    return np.asarray(rates[-tenth:], dtype=float) / np.asarray(rates[:tenth], dtype=float)


# --- who is slow? -----------------------------------------------------------------------------------------------------

def slowest(found: Sequence[dict], cpus: Sequence[int], kinds: Sequence[Sequence[int]] = ()) -> tuple[int, np.ndarray] | None:
    '''The thread that is slowest against the others of its kind of cores, by its median over the rounds of a third of the time, if there are
    enough: one that became slow in the last of it, too.

    :arg found: records of one phase; :arg cpus, kinds: as of :func:`uncertainty.of_fellows`.
    :returns: (CPU, its rate over the median of its fellows in each round of that third), or None with fewer than :data:`LEAST_THREADS` of a kind.
    '''
    shares = uncertainty.of_fellows(np.array([record['rates'] for record in found], dtype=float), cpus, kinds, LEAST_THREADS)
    if np.isnan(shares).all():
        return None
    parts = np.array_split(shares, 3 if len(shares) >= 3 * LEAST_ROUNDS else 1)
    medians = np.array([np.median(part, axis=0) for part in parts])
    part, worst = divmod(int(np.nanargmin(medians)), len(cpus))
    return cpus[worst], parts[part][:, worst]


# --- for a report -----------------------------------------------------------------------------------------------------

def thinned(burn: Burn) -> list[dict]:
    '''The time series of each phase for a figure: at most :data:`MOST_POINTS` points, each of some rounds one after the other.

    A point has ``phase``, ``unit``, ``hours`` (done, at its end), ``rate`` (median of the totals), ``clock`` (median of the medians, MHz) and
    ``lowest_clock``, the highest of each ``temperature`` and the median of each ``power``, ``errors`` (sum), and the counts at its end.
    '''
    of_phases = [(found, np.linspace(0, len(found), min(MOST_POINTS, len(found)) + 1).astype(int)) for found in map(burn.of, PHASES) if found]
    return [_point(found[begin:end]) for found, edges in of_phases for begin, end in itertools.pairwise(edges)]


def _point(part: list[dict]) -> dict:
    last, clocks = part[-1], [record['clock'] for record in part if record['clock']]
    point = {'phase': last['phase'], 'unit': last['unit'], 'hours': last['done'] / 3600,
             'rate': float(np.median([record['rate']['total'] for record in part])), 'errors': sum(record['errors'] for record in part)}
    if clocks:
        point |= {'clock': float(np.median([clock['median'] for clock in clocks])), 'lowest_clock': min(clock['min'] for clock in clocks)}
    return point | {'temperature': _of_each(part, 'temperature', max), 'power': _of_each(part, 'power', lambda x: float(np.median(x))),
                    **{name: last[name] for name in COUNTS}}


def _of_each(part: list[dict], key: str, of: Callable[[list[float]], float]) -> dict[str, float]:
    names = dict.fromkeys(name for record in part for name in record[key])
    return {name: of([record[key][name] for record in part if name in record[key]]) for name in names}


def told(error: dict) -> str:
    '''An error, for people.'''
    what = (f"{error['seen']} instead of {error['expected']}" if error['seen'] else
            f"the bits {error['bits']} were wrong, and right when they were read again")
    sender = '' if error['from_thread'] is None else f", written by thread {error['from_thread']}"
    return (f"round {error['round']}, {error['phase']}: CPU {error['cpu']} (thread {error['thread']}) found {what} at byte {error['offset']} of "
            f"{error['buffer']}{sender}")
