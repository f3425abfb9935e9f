'''What the nodes of a sweep measured, as one table.

Columns of :func:`frame` (:data:`COLUMNS`), one row per metric, test case and node:

=============  =======================================================================================================
``system``     ReFrame's names of system, partition and environment: ``partition``, ``environ``
``node``       Slurm's name of the node
``kind``       nodes that should be alike: CPU model, CPUs, memory, e.g. ``AMD EPYC 9654, 192 CPUs, 755 GiB``; null
               where no test of the node told
``check``      the test with its parameters, as ReFrame displays it: ``triad_memory %threads=all``
``name``       the metric and what it is about, e.g. ``bandwidth.nt``; its parts: ``metric``, ``subject`` (may be null)
``value``      median of the samples, in ``unit`` (MB/s, Mflop/s, us, s, bytes, entries or 1)
``state``      core-to-core latency that the value was measured at, and ``states``, the metric at others (not of CPU time); of a metric of
               caches also ``working_set``, bytes: nodes with another one are no peers in it; all as in the archive
``error``      relative standard error of the value, by its interval, or by what the processes of all nodes differ by; null without one
``subsystem``  part of the machine, and ``noise``, the class of metrics that scatter alike (:mod:`plumbline.model.registry`)
=============  =======================================================================================================

Only the last run of each test counts (ReFrame repeats what fails).  Tests without a metric have no row here, nor have
those whose numbers prove nothing: that failed before their metrics were judged.
'''

import contextlib
import functools
import json
import os
import re
import sys
from pathlib import Path

import polars as pl

from plumbline import atomic
from plumbline.analysis.answers import some
from plumbline.analysis.lines import NOT_MEASURED
from plumbline.analysis.session import Session
from plumbline.errors import PlumblineError
from plumbline.model import grouping, processor, quantity, registry, repetitions, uncertainty, verdict
from plumbline.references import not_run, others
from plumbline.settings import REPORTS
from plumbline.store import archive
from plumbline.sweep import state
from plumbline.sweep.node import CPUS, ENDED, OUTPUT, REPORT
from plumbline.system import topology_file

#: Where sweeps, and what their nodes measured, are kept.
SWEEPS, ARCHIVE = REPORTS / 'sweeps', REPORTS / 'archive'

#: Bytes of a node's run report.
LARGEST = 2**26

#: In the folder of a node: what it has read of its own run report, and the archive that it has written.
PREPARED, OWN_ARCHIVE = 'collected.json', 'archive'

#: Of a file, from the archive's folder; and what a node says of its session, and of which type.
_ARCHIVED = re.compile(r'system=\w[\w.+-]*/date=\d{4}-\d\d-\d\d/\w[\w.+-]*\.parquet')
_FOUND = {'session': str, 'counts': dict, 'status': int, 'reason': str, 'machine': dict}

# What thousands of nodes have in common is kept once (categorical): 4 bytes of a row instead of 16 and more.
_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(('system', 'partition', 'environ', 'node', 'kind', 'check', 'name', 'metric', 'subject'), pl.Categorical()),
    'value': pl.Float64, 'unit': pl.Categorical(), 'error': pl.Float64, 'subsystem': pl.Categorical(), 'noise': pl.Categorical(),
    'state': pl.String, 'states': pl.String, 'working_set': pl.Int64}
COLUMNS = pl.Schema(_COLUMNS)

#: Until all nodes are read: what the processes of a run differ by, and how many they were.
_KEPT = pl.Schema({**_COLUMNS, 'spread': pl.Float64, 'several': pl.UInt32})

#: What is read for them, besides ``noise``, which the registry says, and ``error``; and what of it is one value of a metric on a node.
_READ = [*(name for name in _COLUMNS if name not in ('check', 'noise', 'error')), 'display_name', 'interval_low', 'interval_high', 'n', 'spread',
         'processes', 'verdict']
_ONE = ['system', 'partition', 'environ', 'node', 'display_name', 'name']

#: Files of the archive that are read at once: a node's has half a megabyte, most of it samples.
_AT_ONCE = 250

#: Memory of nodes that should be alike differs by what their firmware keeps: from one to the next at most this share, of large ones as much
#: as of one node with itself (:data:`topology_file.MOST_DIFFERS`): of 64 modules one is less than 2 %.
MEMORY_ALIKE = 0.02


def collect(sweep, node):
    '''Take what a node has measured into the archive.  It has read its run report itself, in its job, so that those of thousands of nodes
    are not read here one after the other; where it could not, that is done here.  What it lacks beside earlier sessions is known here only.

    :returns: changes of :class:`state.Node`: ``archived`` and what :data:`_FOUND` names; or None and why nothing was measured.
    '''
    folder = sweep.of(node)
    if left := _prepared(folder):
        path = ARCHIVE / left['archived']
        with contextlib.suppress(OSError):      # it is on another file system, or what is wrong there is told below
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / OWN_ARCHIVE / left['archived'], path)
            found, why = _examined(path, folder, node.name, _exit_code(folder)) if _lacks(path, sweep) else (left['found'], left['why'])
            return found and {**found, 'archived': str(path)}, why
    path = others.archived(folder / REPORT, root=ARCHIVE, largest=LARGEST)
    found, why = _examined(path, folder, node.name, _exit_code(folder))
    return found and {**found, 'archived': str(path)}, why


def _lacks(path, sweep):
    '''Say in the archive's file of a node what it lacks, which its own job does not know; whether it lacks anything.'''
    told = not_run.told(archive.load_columns(path, not_run.COLUMNS), _earlier(ARCHIVE, archive.system_of(path), sweep.folder))['lacks']
    if told[0]:
        archive.write(archive.load_columns(path, pl.all()).with_columns(told), ARCHIVE)
    return bool(told[0])


@functools.lru_cache(maxsize=1)
def _earlier(root, system, _sweep):
    '''The sessions before those of a sweep, whose nodes ask one after the other.'''
    return not_run.Earlier(root, system)


def prepare(folder, name, reframe_status):
    '''What :func:`collect` needs of a node, by its own job: the archive's file, and what is in it.

    :arg reframe_status: exit code of ReFrame.
    :raises PlumblineError: as :func:`plumbline.store.archive.archive`.
    '''
    root = Path(folder) / OWN_ARCHIVE
    path = others.archived(Path(folder) / REPORT, root=root, largest=LARGEST)
    found, why = _examined(path, Path(folder), name, reframe_status)
    atomic.write(Path(folder) / PREPARED, json.dumps({'archived': str(path.relative_to(root)), 'found': found, 'why': why}))


def _exit_code(folder):
    '''That of ReFrame in the job of a node; 0 where the job was killed before it could say.'''
    try:
        return int((folder / ENDED).read_text())
    except (OSError, ValueError):
        return 0


def _prepared(folder):
    '''What the node's job has left, if that is all of it and can be read; None otherwise.'''
    try:
        left = json.loads((folder / PREPARED).read_text())
        found = left['found'] or {key: kind() for key, kind in _FOUND.items()}
        good = (_ARCHIVED.fullmatch(left['archived']) and archive.readable([folder / OWN_ARCHIVE / left['archived']])[0]
                and isinstance(left['why'], str) and {key: type(value) for key, value in found.items()} == _FOUND
                and all(isinstance(its, dict) for its in found['counts'].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return left if good else None


def _examined(path, folder, name, reframe_status):
    '''What :func:`collect` returns of a node's file of the archive, but for its name.

    :arg folder: of the node; :arg reframe_status: exit code of ReFrame.
    '''
    session = Session(rows := pl.read_parquet(path), reframe_status)
    hosts = set(rows['hostname'].drop_nulls()) - {name}
    if hosts:
        return None, f"its results are of {', '.join(sorted(hosts))}"
    if not archive.final_rows(rows)['value'].is_finite().any():
        why = next((line.reason for line in session.verdicts), 'every test was skipped')
        return None, f'nothing was measured: {why}'
    if session.unexplained:
        return None, f'ReFrame ended with exit code {reframe_status}, and no verdict says why: see its output in {folder / OUTPUT}'
    if session.exit_status() == 2:
        return None, session.not_judged()
    try:
        cpus = int((folder / CPUS).read_text())
    except (OSError, ValueError):
        return None, f'{folder / CPUS} does not say how many CPUs its job had: was the disk full?'
    whole = [f'{one.name}, {one.kind}' for one in session.judged.subsystems if one.verdict == verdict.FAIL]
    # Without values: nodes that an upgrade slows alike are told in one line.
    failed = [f'{one.label} {one.metric}' if one.metric else f'{one.label}: {one.reason}' for one in session.verdicts if one.verdict == verdict.FAIL]
    reasons = [f"FAIL as a whole: {'; '.join(whole)}" if whole else '', f'FAIL: {some(failed)}' if failed else '']
    reason = '; '.join(filter(None, reasons)) or session.not_judged()
    return {'session': rows['session'][0], 'counts': {**session.counts, '': {NOT_MEASURED: len(session.not_measured)}},
            'status': session.exit_status(), 'reason': reason, 'machine': _machine(rows, cpus)}, ''


def _machine(rows, cpus):
    '''What the node says of itself in the first result that has it, and how many CPUs its job had.'''
    for text in rows['detail'].drop_nulls():
        machine = json.loads(text).get('machine')
        if machine and 'memory_kib' in machine:     # some tests tell a part of it only
            return {'model': processor.name(machine) or 'CPU of unknown model', 'cpus': cpus,
                    'kib': machine.get('memory_kib') or 0}
    return {}


def has_less(kib, other):
    '''Whether a node has less memory than another one, and not only by what firmware keeps.'''
    return other - kib > min(MEMORY_ALIKE * other, topology_file.MOST_DIFFERS / 1024)


def kinds(nodes):
    '''Node name -> kind, from what the nodes say of themselves (``machine``).  Of nodes that say nothing there is none.

    Memory sizes that follow each other closely are one size: that of the largest of them.
    '''
    known = sorted((node for node in nodes if node.machine), key=lambda node: -node.machine['kib'])
    result = {}
    sizes: dict[tuple[str, int], tuple[int, int]] = {}      # the one seen last, and the largest
    for node in known:
        model, cpus, kib = (node.machine[key] for key in ('model', 'cpus', 'kib'))
        last, size = sizes.get((model, cpus), (kib, kib))
        if has_less(kib, last):
            size = kib
        sizes[model, cpus] = kib, size
        result[node.name] = f'{model}, {cpus} CPUs, {quantity.memory(1024 * size)}'
    return result


def frame(folder):
    '''What the nodes of a sweep measured (:data:`COLUMNS`).

    :arg folder: the sweep's folder; the sweep may be going on.
    :raises PlumblineError: if there is no such sweep, or if what a node measured is gone.
    '''
    sweep = state.load(folder)
    nodes = [node for node in sweep.nodes.values() if node.measured]
    if not nodes:
        return pl.DataFrame(schema=COLUMNS)
    files = [node.archived if Path(node.archived).is_file() else others.archived(sweep.of(node) / REPORT, root=ARCHIVE)
             for node in nodes]
    kind = kinds(nodes)
    named = pl.LazyFrame([(node.session, node.name, kind.get(node.name)) for node in nodes], orient='row',
                         schema=dict.fromkeys(('session', 'node', 'kind'), pl.String))
    try:
        measured = pl.concat([_measured(files[first:first + _AT_ONCE], named) for first in range(0, len(files), _AT_ONCE)])
    except archive.DAMAGE as error:
        which = archive.readable(list(map(Path, files)), whole=True)[1]
        raise PlumblineError(which[0]) if which else archive.damaged(f'sweep {sweep.name}', error) from None
    return _by_each_other(measured).select(COLUMNS.names())


def _by_each_other(measured):
    '''The same with the errors of what several processes measured by what those of all nodes differ by, and not by what processes do anywhere.'''
    several = (pl.col('several') > 1) & pl.col('spread').is_finite().fill_null(False)
    told = measured.filter(several)
    if told.is_empty():
        return measured
    noise, spread, count = told.select(pl.col('noise').cast(pl.String), 'spread', 'several')
    priors = uncertainty.noise_of_processes(zip(noise, spread, count))
    freedom, deviation = zip(*map(priors.__getitem__, noise))
    errors = uncertainty.error_between(spread, count, (freedom, deviation))
    return pl.concat([measured.filter(~several), told.with_columns(error=errors)])


def _measured(files, named):
    '''The metrics in files of the archive that prove something (:data:`COLUMNS`).'''
    rows = archive.final_rows(archive.scan_files(files))
    proved = (pl.col('result') == 'pass') | (pl.col('fail_phase') == 'performance')
    low, high = pl.col('interval_low'), pl.col('interval_high')
    measured = rows.filter(pl.col('metric').is_not_null() & proved).join(named, on='session', maintain_order='left').select(_READ).collect()
    repeated = measured.select(_ONE).is_duplicated()
    if repeated.any():      # or a node would be its own peer
        alike = grouping.by_key((tuple(row[name] for name in _ONE), row) for row in measured.filter(repeated).iter_rows(named=True))
        measured = pl.concat([measured.filter(~repeated), pl.DataFrame([repetitions.one(rows) for rows in alike.values()], measured.schema)])
    measured = measured.with_columns(error=pl.when(low > 0).then((high / low).log() / 2 / uncertainty.HALF_WIDTH),
                                     several=pl.col('processes').str.count_matches('"process"', literal=True).fill_null(1))
    about = measured.select('metric', 'subsystem').unique()
    about = about.with_columns(noise=pl.Series([registry.of_row(row)[1] for row in about.iter_rows(named=True)], dtype=pl.String))
    # The share of time that a thread gets is the same wherever the host has its cores.
    placed = pl.when(pl.col('subsystem').ne_missing(registry.CPU_TIME))
    return (measured.join(about, on=about.columns[:2], nulls_equal=True, maintain_order='left')
            .with_columns(check=pl.col('display_name'), state=placed.then('state'), states=placed.then('states'))
            .select(_KEPT.names()).cast(_KEPT))


def main():
    '''``python -m plumbline.sweep.results NODE STATUS``, in the folder of the node, at the end of its job; ``STATUS`` is ReFrame's exit code.'''
    try:
        prepare(Path.cwd(), sys.argv[1], int(sys.argv[2]))
    except (PlumblineError, OSError) as error:     # a full disk; the driver meets it again, and tells
        print(f'plumbline: {error}', file=sys.stderr)


if __name__ == '__main__':
    main()
