'''Reading the records that native programs print, and refusing those that prove nothing.

A record is one JSON object on a line of its own; ``README.rst`` names its keys and
``schemas/record.json`` their types.  Nothing here repairs a record: a line that cannot be read is
an error, because a row that silently goes missing looks like a test that passed.
'''

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import probes, quantity, registry

#: The version of the record schema that this module reads.
SCHEMA_VERSION = 1

#: A sample must last this many times the resolution of the clock: the clock's error is then 0.1 %.
CLOCK_TICKS = 1000

#: Fewer samples than this give no usable interval of the median.
MIN_SAMPLES = 10

#: Places in the names of metrics, and of tests, that are caches.
_IN_CACHE = {'L1', 'L2', 'L3', 'cache'}

_MARK = '{"record":'
REBUILD = 'build the programs and the Python package from the same checkout'


class NotFinite(ValueError):
    '''A number that is none; its argument is how it is written.'''

    def __str__(self) -> str:
        return f'{self.args[0]} is not a finite number'


@dataclass
class Records:
    '''What one program said.

    :attr machine: the machine record, of the first process, or :obj:`None` if the program printed none.
    :attr measurements: the measurement records in the order of printing; may be empty, and it is
        the caller's duty not to take that for a success.  ``process`` is the number of the process that printed it, from 0.
    :attr processes: how many there were: each begins with its machine record.
    :attr contention: what the system took of the program's time; one record of each program whose output
        this is.
    :attr ports: what the ports of the nodes counted, of programs that say so; one record of each process.
    :attr wrong: why a program ended whose results cannot be right.
    '''
    machine: dict | None = None
    measurements: list[dict] = field(default_factory=list)
    contention: list[dict] = field(default_factory=list)
    ports: list[dict] = field(default_factory=list)
    wrong: list[dict] = field(default_factory=list)
    processes: int = 0


def refuse_number(text: str) -> NoReturn:
    raise NotFinite(text)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else refuse_number(text)


def _field_before(line: str, position: int) -> str:
    '''The last key that stands before ``position``: where the parser was when it gave up.'''
    keys = re.findall(r'"(\w+)"\s*:', line[:position])
    return keys[-1] if keys else '(none)'


def _read(line: str) -> dict:
    '''Parse one line; NaN and infinities are refused although Python's JSON takes them.

    :raises ValueError: with the field and the reason.
    '''
    try:
        return json.loads(line, parse_constant=refuse_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        where = _field_before(line, error.pos)
        kind = 'truncated' if error.pos >= len(line.rstrip()) else 'malformed'
        raise ValueError(f'{kind} record after field {where!r} (column {error.colno}: '
                         f'{error.msg}); did the program end early, or several write at once?') from None
    except RecursionError:
        raise ValueError('lists within lists without end') from None
    except NotFinite as error:
        where = _field_before(line, line.find(error.args[0]))
        raise ValueError(f'field {where!r}: {error}; the kernel must print finite numbers') from None


def _check(record: dict) -> str | None:
    '''The complaint about a parsed record, or :obj:`None`.'''
    version = record.get('schema')
    if version != SCHEMA_VERSION:
        return f"field 'schema': version {version!r} is not known, this reads {SCHEMA_VERSION}; {REBUILD}"
    wrong = schemas.complaint('record', record) or probes.complaint(record)
    return wrong and f'{wrong}; {REBUILD}'


def parse(text: str, source: str = 'output', processes: int = 1) -> Records:
    '''Read all records of a program's standard output.

    :arg text: the output; lines that do not begin with ``{"record":`` are for people.
    :arg source: what to call the text in errors, e.g. a file name.
    :arg processes: how many processes wrote it at most, one after the other.
    :raises PlumblineError: naming line and field, for a malformed or truncated line, an unknown
        schema version, a record outside the schema (NaN and infinities are), a record that does
        not begin its line, or more machine records than processes.
    '''
    records = Records()
    lines = text.split('\n')
    for number, line in enumerate(lines, start=1):
        where = f'{source}, line {number}'
        if not line.startswith(_MARK):
            # Ranks that write at once glue lines together; the last line may be cut in its mark
            if _MARK in line or (number == len(lines) and line and _MARK.startswith(line)):
                raise PlumblineError(f'{where}: a record does not begin its line or is cut off; '
                                     'let one process print, and whole lines only')
            continue
        try:
            record = _read(line)
        except ValueError as error:
            raise PlumblineError(f'{where}: {error}') from None
        wrong = _check(record)
        if wrong:
            raise PlumblineError(f'{where}: {wrong}')
        if record['record'] == 'measurement':
            records.measurements.append({**record, 'process': max(0, records.processes - 1)})
        elif record['record'] in ('contention', 'ports', 'wrong'):
            getattr(records, record['record']).append(record)
        elif records.processes < processes:
            records.machine = records.machine or record
            records.processes += 1
        else:
            raise PlumblineError(f'{where}: a machine record of one process more than the {processes} that were started; '
                                 'give each program an output of its own')
    return records


def pooled(measurements: list[dict]) -> list[dict]:
    '''The records of several processes as if one had taken all samples, for pictures and tables of records.

    Samples of a group still belong together round by round.  All processes ran the same cases in the same order, whatever each of them chose
    (FFTW's plans), so of those alike in all else the first is the first one's case everywhere.  A case that not all have is left out; a limit
    stream is the same case whatever its instructions, if it moves the same kinds of data.

    :returns: records whose ``seconds`` (and ``communication``) are those of one process after the other, as long as with the
        first one's number of passes; those of a single process as they are.
    '''
    processes = {record.get('process', 0) for record in measurements}
    if len(processes) < 2:
        return measurements
    cases: dict[tuple, dict[int, dict]] = {}
    seen: Counter = Counter()
    for record in measurements:
        process, name = record.get('process', 0), tuple(record.get('parts', ())) if record['role'] == 'limit' else record['variant']
        case = (record['role'], record['kernel'], name, *(record[key] for key in ('group', 'size', 'threads', 'ranks')))
        seen[process, case] += 1
        cases.setdefault((*case, seen[process, case]), {})[process] = record
    return [_joined(list(own.values())) for own in cases.values() if own.keys() == processes]


def _joined(own: list[dict]) -> dict:
    first = own[0]
    joined = {key: [seconds * first['passes'] / record['passes'] for record in own for seconds in record[key]]
              for key in ('seconds', 'communication') if key in first}
    left = {key: value for key, value in first.items() if key not in ('process', 'probes')}
    return {**left, **joined, 'valid': all(record['valid'] for record in own)}


def sets_in_caches(metrics: Iterable[tuple[str, str | None, dict | None]], level: str | None) -> list[int | None]:
    '''Of each metric of a test which says that it is of a cache the working set, bytes: with another one it would be another metric.  Of one made
    of several records all those of its test, added up, since any other one changes it; of ``growth`` that of its level and of the one below.

    That of memory, which grows with what the caches may hold, and of a curve, whose sizes are chosen by what they say, is not part of a metric,
    and what the system gives (``cpu_availability``) depends on none; those have :obj:`None`.

    :arg metrics: (name in the registry, subject, record that it is of, or its metadata, or None) of each; :arg level: of the test.
    '''
    metrics = list(metrics)
    sets = [record['working_set'] if record and 'working_set' in record and not _IN_CACHE.isdisjoint([*(subject or '').split('.'), level]) else None
            for _, subject, record in metrics]
    found, own = sorted({size for size in sets if size}), {subject: size for (_, subject, _), size in zip(metrics, sets) if size}

    def of_several(name: str, subject: str | None) -> int | None:
        its = own.get(subject, 0)       # memory has none
        below = [size for size in found if size < (its or math.inf)][-1:]
        return sum([its, *below] if name == 'growth' else found) or None
    return [of_several(name, subject) if record is None and name in registry.METRICS and registry.METRICS[name].subsystem != registry.CPU_TIME
            else size for (name, subject, record), size in zip(metrics, sets)]


def rate(record: dict, key: str = 'bytes') -> np.ndarray:
    '''The rate of every sample.

    :arg key: ``'bytes'`` (application) or ``'traffic'`` (model) in MB/s, 1 MB = 1e6 bytes; with
        ``'flops'`` the unit is Mflop/s.
    :returns: array of shape (n,): ``record[key] / seconds / 1e6``.
    '''
    return quantity.per_second(record[key], np.asarray(record['seconds'], dtype=float))


def median_rate(record: dict, key: str = 'bytes') -> float:
    '''The median of :func:`rate`.'''
    return float(np.median(rate(record, key)))


def per_pass(record: dict, key: str = 'seconds') -> Any:
    '''What one pass takes (``seconds``, ``communication``: of every sample, shape (n,)) or does (``bytes``, ``flops``, ``traffic``: a number).'''
    return np.asarray(record[key], dtype=float) / record['passes']


def numbers(record: dict, part: str, key: str) -> np.ndarray:
    '''A matrix of a record, NaN for null; empty where it is missing, or has rows of different lengths.'''
    try:
        return np.array(record[part][key], dtype=float)
    except (KeyError, TypeError, ValueError):
        return np.empty(0)


def label(record: dict) -> str:
    '''A short name of the case for messages: kernel, variant, size and threads or ranks.'''
    many = f"ranks {record['ranks']}" if record['ranks'] > 1 else f"threads {record['threads']}"
    return f"{record['kernel']}.{record['variant']} size {record['size']:g} {many}"


def check_worth_reporting(record: dict) -> list[str]:
    '''The complaints about a measurement that is not worth a number in a report, one text each.'''
    complaints = []
    seconds = record['seconds']
    resolution = record['clock_resolution']
    if resolution is None:
        complaints.append('the resolution of the clock is unknown')
    elif min(seconds) < CLOCK_TICKS * resolution:
        complaints.append(f'the shortest sample of {min(seconds):.3g} s is below {CLOCK_TICKS} x '
                          f'the clock resolution of {resolution:.3g} s: more passes are needed')
    if len(seconds) < MIN_SAMPLES:
        complaints.append(f'{len(seconds)} samples are fewer than {MIN_SAMPLES}')
    if record['valid'] is not True:
        complaints.append('the result is wrong: it differs from the independent reference')
    error = record['max_error']
    if error is None or not math.isfinite(error):
        complaints.append('the error against the reference result is not a finite number')
    elif record['valid'] is True and error > record['tolerance']:
        complaints.append(f"the program calls its result right, but its error of {error:.3g} is above "
                          f"the {record['tolerance']:.3g} that it allows")
    return [f'{label(record)}: {complaint}' for complaint in complaints]


def wrong_result(found: Records) -> str | None:
    '''The complaint about the first result that is wrong, or that the program could not get at all for that; :obj:`None` without one.'''
    for record in found.measurements:
        if record['valid'] is not True or record['max_error'] is None or record['max_error'] > record['tolerance']:
            return check_worth_reporting(record)[-1]
    return next((record['why'] for record in found.wrong), None)


def told_wrong(text: str) -> str | None:
    '''The same of an output that cannot be read as a whole, for its program ended in the middle of a line: of each record that can be, also
    behind the beginning of another one.'''
    found = Records()
    for line in re.split(r'\n|(?=\{"record": )', text):
        with contextlib.suppress(PlumblineError):
            one = parse(line)
            found.measurements += one.measurements
            found.wrong += one.wrong
    return wrong_result(found)


def check_placement(record: dict, expected_cpus: Iterable[int]) -> str | None:
    '''The complaint about the first thread, or rank, that ended elsewhere than it was asked to run; or :obj:`None`.'''
    found, expected = record['cpus'], list(expected_cpus)
    what = 'rank' if record['ranks'] > 1 else 'thread'
    if len(found) != len(expected):
        return f'{label(record)}: {len(found)} {what}s reported where they ran, {len(expected)} were placed'
    for number, (want, got) in enumerate(zip(expected, found)):
        if want != got:
            return f'{label(record)}: {what} {number} was placed on CPU {want} but ran on CPU {got}'
    return None
