'''ReFrame's performance logs (``handlers_perflog``, of ReFrame 4) as run reports: what a site has measured before it had this suite.

A log has a line for each test case, or for each performance variable of one (``perflog_multiline``); its first line names the fields.  Which lines
are of one run of ReFrame it does not say.  Here a run ends where a test case comes again, and where nothing ended for half a day.
'''

import collections
import csv
import datetime
import io
import math
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import reframe.utility.sanity as sn
from reframe.core.exceptions import SanityError

from plumbline.errors import PlumblineError
from plumbline.model import grouping, parameters, quantity, verdict
from plumbline.store import archive, run_reports

#: After so long without the end of a test, what comes is of another run: seconds.
GAP = 12 * 3600

#: How ReFrame writes that there is no value.
_NOTHING = ('', 'null', 'None')
_VALUE = '_value'

#: What ReFrame says of a test case.
_RESULTS = ('pass', 'fail', 'skip', 'abort', 'xfail', 'xpass', 'fail_deps')


@dataclass
class Logs:
    '''What a folder of performance logs holds.

    :attr reports: one dictionary like ReFrame's run report for each run, oldest first.
    :attr skipped: what is in none of them, and why, a line each.
    '''
    reports: list
    skipped: list = field(default_factory=list)


def read(folder: str | Path, root: str | Path | None = None) -> Logs:
    '''All performance logs below a folder, those with older fields (``NAME.log.h0``) too.

    :arg folder: ``perflogdir``, or ``basedir`` of the handler; below it ReFrame writes ``SYSTEM/PARTITION/TEST.log``.
    :arg root: of the archive that they are for: what comes there from run reports is skipped.
    :raises PlumblineError: if there is no line that can be read.
    '''
    unreadable = []
    cases: dict[tuple, dict] = {}
    files = sorted(path for path in Path(folder).resolve().glob('**/*.log*') if re.search(r'\.log(\.h\d+)?$', path.name) and path.is_file())
    for path in files:
        try:
            for case in _cases(path):
                which = case['system'], case['partition'], case['environ'], case['name'], case['ended']
                cases.setdefault(which, case)['perfvalues'] |= case['perfvalues']       # with perflog_multiline each variable has a line
        except _Unreadable as why:
            unreadable.append(f'{path}: {why}')
    if not cases:
        raise PlumblineError(f"{folder}: no performance log of ReFrame that can be read{': ' if unreadable else ''}{'; '.join(unreadable[:1])}; "
                             'name the folder that --perflogdir or the configuration names (SYSTEM/PARTITION/TEST.log)')
    known: collections.Counter[tuple[str, int]] = collections.Counter()
    reports = []
    kept, skipped = _not_reported(cases.values(), root) if root else (cases.values(), [])
    taken = set(map(id, kept))
    for system, run in _runs(cases.values()):
        second = system, int(run[0]['ended'])
        if its := [case for case in run if id(case) in taken]:
            reports.append(_report(system, its, run[0]['ended'], known[second]))
        known[second] += 1
    return Logs(reports, unreadable + skipped)


def _not_reported(cases: Collection[dict], root: str | Path) -> tuple[Collection[dict], list[str]]:
    '''The test cases that no run report tells of, and what is skipped.  Checks of ours are judged by what run reports alone have of them.'''
    reported, skipped = archive.of_readable(archive.all_files(root), _reported)
    ours = {_check(case) for case in cases if case['verdict'] in verdict.SEVERITY}
    kept, left = [], collections.Counter[str]()
    for case in cases:
        test = case['system'], case['partition'], parameters.of_display_name(case['name'])[0]
        if any(begin <= case['ended'] <= end for begin, end in reported.get(test, ())):
            left['that the archive has from run reports'] += 1
        elif _check(case) in ours:
            left["of Plumbline's own checks: plumbline report archives them, with their run reports"] += 1
        else:
            kept.append(case)
    return kept, skipped + [f"{quantity.several(count, 'test case')} {why}" for why, count in left.items()]


def _check(case: dict) -> str:
    return case['name'].split(' ')[0]


def _reported(files: list[Path]) -> dict[tuple, list[tuple[float, float]]]:
    '''(system, partition, test) -> when the sessions that have it began and ended, to the second; those from logs do not tell how long they took.'''
    took = pl.col('session_info').drop_nulls().first().str.json_path_match('$.time_elapsed').cast(pl.Float64).over('session')
    rows = archive.scan_files(files).select('system', 'partition', 'display_name', pl.col('started').dt.epoch('s'), took=took)
    return grouping.by_key(((system, partition, test), (begin, begin + took + 1))
                           for system, partition, test, begin, took in rows.drop_nulls('took').unique().collect().iter_rows())


class _Unreadable(Exception):
    '''The text says why.'''


def _cases(path: Path) -> Iterator[dict]:
    '''The test cases of a log, in its order: dictionaries as in a run report, with ``ended``, seconds since 1970.

    :raises _Unreadable: of lines that were cut, after all others.
    '''
    try:
        with open(path, encoding='utf-8', errors='replace', newline='') as stream:
            first = stream.readline().rstrip('\r\n')
            delimiter = re.search(r'\W', first)
            names = first.split(delimiter[0]) if delimiter else []
            if delimiter is None or not ({'result', 'perf_var'} & set(names) or any(name.endswith(_VALUE) for name in names)):
                raise _Unreadable('its first line does not name the fields (a log of ReFrame 3?)')
            rest = stream.read()
            lines = list(csv.reader(io.StringIO(rest, newline=''), delimiter=delimiter[0], quoting=csv.QUOTE_NONE))
    except OSError as error:
        raise _Unreadable(error.strerror) from None
    except (csv.Error, ValueError) as error:        # the delimiter may be none
        raise _Unreadable(str(error)) from None
    if lines and len(lines[-1]) == len(names) and not rest.endswith(('\n', '\r')):
        lines[-1].pop()     # it may have lost some of its last field
    whole = [values for values in lines if len(values) == len(names)]
    odd = []
    for values in whole if 2 * len(whole) >= len(lines) else ():
        row = {name: None if value in _NOTHING else value for name, value in zip(names, values)}
        try:
            if (case := _case(row, path)) is not None:
                yield case
        except _Unreadable as reason:
            odd.append(reason)
    if odd:
        raise _Unreadable(f'{odd[0]}; so it is with {len(odd)} of {quantity.several(len(lines), "line")}')
    if len(whole) < len(lines):
        number, values = next((number, values) for number, values in enumerate(lines, 2) if len(values) != len(names))
        raise _Unreadable(f'line {number} has {len(values)} fields, its first line names {len(names)}; so it is with '
                          f'{len(lines) - len(whole)} of {quantity.several(len(lines), "line")}')


def _case(row: dict[str, str | None], path: Path) -> dict | None:
    '''One line as a test case; None if it does not say when the test ended: it did not run.'''
    ended, nodes = _ended(row), row.get('job_nodelist')
    name = row.get('display_name') or row.get('name') or row.get('unique_name') or path.name.partition('.log')[0]
    if ended is None:
        return None
    if row.get('result') not in (None, *_RESULTS):
        raise _Unreadable(f"its result, {row['result']!r}, is none of ReFrame's")
    folders = path.parts[1:-1]
    if len(folders) < 2 and not (row.get('system') and row.get('partition')):
        raise _Unreadable('it names no system and partition, and neither do two folders that it is in')
    case = {'name': name, 'unique_name': row.get('unique_name') or name, 'result': row.get('result') or 'pass', 'ended': ended,
            'system': row.get('system') or folders[-2], 'partition': row.get('partition') or folders[-1],
            'environ': row.get('environ') or '', 'job_nodelist': nodes.split(',') if nodes else None,
            'fail_phase': row.get('fail_phase'), 'fail_reason': row.get('fail_reason'), 'perfvalues': dict(_values(row)),
            'verdict': row.get('verdict')}
    if case['result'] == 'fail' and not case['fail_reason']:
        case.update(fail_phase=case['fail_phase'] or 'performance or earlier', fail_reason='its log does not say why')
    return case


def _ended(row: dict[str, str | None]) -> float | None:
    seconds = _number(row.get('job_completion_time_unix'))
    if not seconds:
        try:
            # Without its zone the time is that of the machine; these logs were written here.
            seconds = datetime.datetime.fromisoformat(row.get('job_completion_time') or '').timestamp()
        except (ValueError, OverflowError):
            return None
    if not 0 < seconds <= run_reports.LATEST:
        raise _Unreadable(f'its job_completion_time_unix, {seconds:.0f}, is no time in seconds since 1970')
    return seconds


def _values(row: dict[str, str | None]) -> Iterator[tuple[str, list]]:
    '''The performance variables of a line, as in a run report: name -> [value, reference, lower, upper, unit, result].'''
    variable = row.get('perf_var')
    named = [(variable, 'perf')] if variable else [(key.removesuffix(_VALUE),) * 2 for key in row if key.endswith(_VALUE)]
    for name, prefix in named:
        value, reference, lower, upper = (_number(row.get(f'{prefix}_{what}')) for what in ('value', 'ref', 'lower_thres', 'upper_thres'))
        if value is not None:
            yield name, [value, reference, lower, upper, row.get(f'{prefix}_unit'), _result(row, value, reference, lower, upper)]


def _result(row: dict[str, str | None], value: float, reference: float | None, lower: float | None, upper: float | None) -> str:
    '''What ReFrame says of a value; the log has it of the whole test only, which is ``xfail`` where all that is out of bounds is expected to be.'''
    if reference is None:
        return 'pass'
    try:
        sn.evaluate(sn.assert_reference(value, reference, lower, upper))
    except SanityError:
        return 'xfail' if row.get('result') == 'xfail' else 'fail'
    return 'pass'


def _number(text: str | None) -> float | None:
    try:
        number = float(text or '')
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _runs(cases: Iterable[dict]) -> Iterator[tuple[str, list[dict]]]:
    '''Pairs (system, test cases), oldest run first.'''
    last: dict[str, dict] = {}
    for case in sorted(cases, key=lambda case: case['ended']):
        run = last.get(case['system'])
        which = (case['partition'], case['environ'], case['name'])
        if run is None or which in run['tests'] or case['ended'] - run['cases'][-1]['ended'] > GAP:
            if run is not None:
                yield case['system'], run['cases']
            run = last[case['system']] = {'tests': set(), 'cases': []}
        run['tests'].add(which)
        run['cases'].append(case)
    for system, run in last.items():
        yield system, run['cases']


def _report(system: str, cases: list[dict], began: float, earlier: int) -> dict:
    '''A run of a system has the same name whenever its logs are read again.

    :arg began: when its first test case ended, of those that are left out, too.
    :arg earlier: how many began in the same second: the name of a session has no more of the time.
    '''
    uuid = (zlib.crc32(system.encode()) + earlier) % 2**32
    return {'session_info': {'uuid': f'{uuid:08x}', 'time_start_unix': began}, 'runs': [{'testcases': cases}]}
