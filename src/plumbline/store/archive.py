'''The archive: one Parquet file per session, written once, read lazily.

``ROOT/system=S/date=YYYY-MM-DD/SESSION.parquet``.  A session is one run of ReFrame; its name begins
with the start in UTC, so names sort by time.  One row per metric per test case per run.  What
became of a test case that has no metrics is a row too: nothing may vanish on the way to a report.
'''

import datetime
import glob
import io
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.model import quantity, stamp
from plumbline.model.safe_text import masked
from plumbline.store import run_reports
from plumbline.store.archive_rows import session_rows

#: Columns of a file, in order.
_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    'session': pl.String,           # START-UUID
    'started': pl.Datetime('us', 'UTC'),
    'system': pl.String,
    'partition': pl.String,
    'environ': pl.String,
    'hostname': pl.String,          # node names with commas; null if the test never ran
    'processor': pl.String,         # its name (model/processor.py); null if the test does not say
    'test': pl.String,              # ReFrame's unique name
    'check': pl.String,             # class name
    'display_name': pl.String,      # class name and parameters: the name that outlives a session
    'parameters': pl.String,        # JSON: name -> value; with a dot before the name: of ReFrame's command line
    'repetition': pl.Int64,         # of all tests (--reruns, --duration); null: they ran once
    'run': pl.Int64,                # 0, then ReFrame's retries
    'result': pl.String,            # ReFrame's: pass, fail, skip, fail_deps, abort, ...
    'fail_phase': pl.String,
    'fail_reason': pl.String,
    'fixture': pl.Boolean,
    'foreign': pl.Boolean,          # a test of another suite, or its fixture; null: of ours
    'time_total': pl.Float64,       # s, this and the next five
    'time_setup': pl.Float64,
    'time_compile': pl.Float64,
    'time_run': pl.Float64,
    'time_sanity': pl.Float64,
    'time_performance': pl.Float64,
    'timed_seconds': pl.Float64,    # s: sum of all timed samples
    'metric': pl.String,            # null: a test case without metrics
    'name': pl.String,
    'subject': pl.String,
    'subsystem': pl.String,         # the part of the machine that it tells of; null where metric is
    'value': pl.Float64,
    'unit': pl.String,
    'samples': pl.List(pl.Float64),
    'record': pl.Int64,             # which of the detail's records the samples were made from; null: not known
    'rounds': pl.List(pl.Int64),    # the round of each sample; null: all rounds of the record
    'processes': pl.String,         # JSON: samples and record of each; null: one process
    'n': pl.Int64,
    'spread': pl.Float64,
    'interval_low': pl.Float64,
    'interval_high': pl.Float64,
    'reference': pl.Float64,
    'lower': pl.Float64,            # fractions of the reference, as in ReFrame
    'upper': pl.Float64,
    'reference_from': pl.String,
    'limit': pl.Float64,            # MB/s
    'sees': pl.Float64,             # of PASS and UNSTABLE: the loss that would have been a FAIL with 95 %
    'expected': pl.String,          # JSON: what the reference predicts, and the sessions that it is from; null: no prediction
    'state': pl.String,             # JSON: core-to-core latency that the value was measured at; null: one state, or not known
    'set_aside': pl.Int64,          # samples in other states
    'states': pl.String,            # JSON: the metric in the other states that were met
    'recorded_states': pl.String,   # JSON: those of its references, where it was measured in none of these; null: it was, or has none
    'verdict': pl.String,           # null: skipped, or a fixture that passed
    'reason': pl.String,
    'unjudged': pl.String,          # why the metric must not be judged here; null: it may be
    'symptom': pl.String,           # by which the diagnosis knows why a test failed; null: no rule asks for it, or a metric
    'environment_error': pl.String,  # what of its environment does not work, where that is why the test was not run
    'level': pl.String,
    'threads': pl.String,
    'given': pl.String,             # what the command line, or a mode, gave of what is measured (result.as_given); null: nothing
    'working_set': pl.Int64,        # bytes: of a metric of caches (records.sets_in_caches): with another one it is another metric; null: of none
    'detail': pl.String,            # JSON, first row of each test case
    'session_info': pl.String,      # JSON, first row of the file: ReFrame's account of the session
    'lacks': pl.String,             # JSON, first row of the file: what the references have beside it (references.not_run); null: nothing
}
SCHEMA = pl.Schema(_COLUMNS)

#: The form of a file, which it names: a newer one has columns that mean something else, not just more of them.
FORM, _WRITTEN_AS = 1, 'plumbline.form'

#: The display name of a test case, with what was given of what it measures: with that it is another one.
CASE = pl.coalesce(pl.format('{} with {}', 'display_name', 'given'), 'display_name')

_CASE = ['session', 'system', 'partition', 'environ', 'test']

#: A DataFrame or a LazyFrame.
Frame = TypeVar('Frame', pl.DataFrame, pl.LazyFrame)

Answer = TypeVar('Answer')

#: What polars raises of a file that is damaged; of some it panics, which is no :class:`Exception`.
DAMAGE = pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError

#: Rows of a file that are written, and may be read, at once: the details of a node are some megabytes, and there may be a thousand.
ROWS = 4096

#: Of a session that is dated ahead of now.
AHEAD = 'began in the future: the clock of the host that ran ReFrame was wrong, or this one is'

#: Clocks of a site may differ by so much, seconds.
_CLOCKS = 24 * 3600


def session_name(report: dict) -> str:
    '''``20261121T093621Z-ad190cfc``: start in UTC and the first digits of ReFrame's UUID.'''
    info = report['session_info']
    return f"{stamp.of(info['time_start_unix'])}-{info['uuid'][:8]}"


def is_ahead(session: str) -> bool:
    '''Whether a session began in the future, by its name: one of the two clocks is, or was, wrong.'''
    return session > stamp.of(time.time() + _CLOCKS)


def present(files: list[Path], say: bool = False) -> list[Path]:
    '''The files of sessions that did not begin in the future; all, where there are no others.

    :arg say: a line on standard error, of those that are passed over.
    '''
    found = [path for path in files if not is_ahead(path.stem)] or files
    if say and len(found) < len(files):
        print(f'plumbline: passed over: {quantity.several(len(files) - len(found), "session")}, the last {files[-1].stem}, {AHEAD}', file=sys.stderr)
    return found


def read(*run_report_paths: str | Path, largest: int = run_reports.LARGEST_REPORT) -> pl.DataFrame:
    '''One run report of ReFrame, or those of a pipeline's jobs, as the rows of a session.

    :arg run_report_paths: JSON files that ReFrame wrote, of ``largest`` bytes each at most.
    :returns: ``polars.DataFrame`` with the columns :data:`SCHEMA`.
    :raises PlumblineError: if a report is missing, corrupt or without any test case, or if they are of several sessions.
    '''
    reports = {path: run_reports.read(path, largest) for path in run_report_paths}
    return frame_of(run_reports.together(reports) if len(reports) > 1 else next(iter(reports.values())))


def frame_of(report: dict) -> pl.DataFrame:
    '''The same of a run report that has been read.'''
    info, rows = report['session_info'], session_rows(report)
    session, started = session_name(report), datetime.datetime.fromtimestamp(info['time_start_unix'], datetime.timezone.utc)
    for row in rows:
        row.update(session=session, started=started)
    rows[0]['session_info'] = json.dumps({**info, 'cmdline': masked(info.get('cmdline') or '')})
    return pl.DataFrame([{column: row.get(column) for column in SCHEMA} for row in rows], schema=SCHEMA)


def archive(run_report_path: str | Path, root: str | Path) -> Path:
    ''':func:`read` one run report, and :func:`write` it: the same report again replaces its file by the same content.'''
    return write(read(run_report_path), root)


def write(frame: pl.DataFrame, root: str | Path) -> Path:
    '''Write one session into the archive.

    :arg frame: what :func:`read` gives.
    :raises PlumblineError: if it cannot be written; no half-written file is left.
    '''
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={_WRITTEN_AS: str(FORM)}, row_group_size=ROWS)
    first = frame.row(0, named=True)
    for what, name in (('system', first['system']), ('session', first['session'])):
        if not re.fullmatch(r'\w[\w.+-]*', name):
            raise PlumblineError(f'{name!r} is no name of a {what}, which becomes a folder: letters, digits, "_", "-", "+" and "." only')
    path = Path(root) / f"system={first['system']}" / f"date={first['started']:%Y-%m-%d}" / f"{first['session']}.parquet"
    with saying_why(f'{path}: cannot write the archive', '; make room or permit writing there, then archive the run report again'):
        return atomic.write(path, buffer.getvalue(), atomic.RESULT)


def readable(files: list[Path], whole: bool = False) -> tuple[list[Path], list[str]]:
    '''(the files that can be read, what is wrong with the others).

    :arg whole: read all that is in them, which takes long; else what they say of themselves.
    '''
    good, complaints = [], []
    for path in files:
        try:
            _read_through(path) if whole else _check(path)
            good.append(path)
        except PlumblineError as error:
            complaints.append(str(error))
    return good, complaints


def of_readable(files: list[Path], ask: Callable[[list[Path]], Answer]) -> tuple[Answer, list[str]]:
    '''(what is asked of the files that can be read, what is wrong with the others).

    :arg ask: function of their paths; a file that is damaged behind what it says of itself is left out where this fails.
    '''
    good, complaints = readable(files)
    try:
        return ask(good), complaints
    except (*DAMAGE, PlumblineError):
        good, further = readable(good, whole=True)
        if not further:
            raise
        return ask(good), complaints + further


def _read_through(path: Path) -> None:
    '''Read a file, a part at a time.'''
    first = 0
    while load_columns(path, pl.all(), first, ROWS).height == ROWS:
        first += ROWS


def _check(path: Path) -> None:
    '''Is this a file of a session that this Plumbline can read?

    :raises PlumblineError: if it is not.
    '''
    try:
        written = pl.read_parquet_metadata(path).get(_WRITTEN_AS, str(FORM))
        schema = pl.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema()
    except DAMAGE as error:
        raise damaged(path, error) from None
    if not written.isdigit() or int(written) > FORM:
        raise PlumblineError(f'{path}: written by a newer Plumbline (form {written} of the archive, this one reads {FORM}): update this one; '
                             'nothing is lost')
    other = [name for name, kind in schema.items() if name in SCHEMA and kind not in (SCHEMA[name], pl.Null)]
    if other:
        raise PlumblineError(f'{path}: column {other[0]} is {schema[other[0]]}, and {SCHEMA[other[0]]} is read: written by another Plumbline, or '
                             'changed since; archive its run report again')
    if 'subsystem' not in schema:        # nothing could be judged as a whole, or diagnosed: all would be well
        raise PlumblineError(f'{path}: has no column subsystem, as an older Plumbline wrote it, which this one does not read: move it away')


def all_files(root: str | Path, system: str = '*') -> list[Path]:
    '''The files of the archive, oldest first.'''
    return sorted((path for path in Path(root).glob(f'system={system}/date=*/*.parquet') if not path.is_dir()), key=lambda path: path.name)


def scan_files(files: list[Path]) -> pl.LazyFrame:
    '''The columns :data:`SCHEMA` of some sessions' files, lazily; see :func:`readable` first.'''
    return _scanned(files) if files else pl.LazyFrame(schema=SCHEMA)


def _scanned(files: str | Path | list[Path]) -> pl.LazyFrame:
    return pl.scan_parquet(files, schema=SCHEMA, glob=False, hive_partitioning=False, missing_columns='insert', extra_columns='ignore')


def system_of(path: Path) -> str:
    '''ReFrame's name of the system that a file of the archive is of.'''
    return path.parts[-3].removeprefix('system=')


def sessions(root: str | Path, system: str | None = None) -> list[Path]:
    '''The files of a system's sessions, oldest first, one at least.

    :arg system: ReFrame's name; by default that of the archive's last session that did not begin in the future.
    :raises PlumblineError: if nothing of this system is archived.
    '''
    files = all_files(root)
    system = system or (system_of(present(files)[-1]) if files else None)
    found = [path for path in files if system_of(path) == system]
    if not found:
        raise PlumblineError(f"{root}: no session {f'of {system}' if system else 'at all'} in the archive; "
                             'plumbline report archives a run')
    return found


def load_columns(path: str | Path, columns: Any, first: int = 0, count: int | None = None) -> pl.DataFrame:
    '''Some columns of one session's file; null where it is older than a column.

    :arg first, count: of these rows only.
    :raises PlumblineError: if the file cannot be read.
    '''
    _check(Path(path))
    try:
        return _scanned(path).slice(first, count).select(columns).collect()
    except DAMAGE as error:
        raise damaged(path, error) from None


def damaged(what: object, error: BaseException) -> PlumblineError:
    first = str(error).splitlines()[0]
    return PlumblineError(f'{what}: cannot read the archive: {first}; move the damaged file '
                          'away and archive its run report again')


def file_of(root: str | Path, session: str | None = None, system: str | None = None) -> Path:
    '''The file of a session.

    :arg session: its name; the latest by default, of those that did not begin in the future.
    :arg system: look at the sessions of this system only.
    :raises PlumblineError: if there is none.
    '''
    files = all_files(root, glob.escape(system) if system else '*')
    path = next((path for path in reversed(files if session else present(files, say=True)) if session in (None, path.stem)), None)
    if path is None:
        latest = f'the latest is {files[-1].stem}' if files else 'it is empty'
        raise PlumblineError(f"{root}: no session {session or 'at all'} in the archive ({latest}); archive a run report first")
    return path


def load_session(root: str | Path, session: str | None = None) -> pl.DataFrame:
    '''All rows of one session, in order of running; the latest by default.

    :raises PlumblineError: if there is no such session, or if its file cannot be read.
    '''
    return load_columns(file_of(root, session), pl.all())


def of_last_set(frame: pl.DataFrame, metric: list[str]) -> pl.DataFrame:
    '''Without the rows of a metric that are of another working set of caches than its last one has: with that it was another metric.

    :arg frame: of several sessions, in order of time; :arg metric: the columns that name a metric.
    '''
    of_caches, size = frame.filter(pl.col('working_set').is_not_null()), pl.col('working_set')
    others = of_caches.filter(size != size.last().over(metric))
    keys = [*metric, 'session', 'working_set']
    return frame.join(others, on=keys, how='anti', nulls_equal=True, maintain_order='left') if others.height else frame


def final_rows(frame: Frame) -> Frame:
    '''The rows of the last run of each test case: what counts.  A second run that was skipped clears nothing: the first does.

    :arg frame: a DataFrame or LazyFrame of the archive; it may hold several sessions.
    '''
    ran = pl.when(pl.col('result') != 'skip').then('run').max().over(_CASE)
    return frame.filter(pl.col('run') == pl.coalesce(ran, pl.col('run').max().over(_CASE)))
