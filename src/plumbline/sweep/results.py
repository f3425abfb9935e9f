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
``samples``    what it is the median of
``state``      core-to-core latency that the value was measured at, and ``states``, the metric at others: as in the archive
``error``      relative standard error of the value, by its interval; null without one
``subsystem``  part of the machine, and ``noise``, the class of metrics that scatter alike (:mod:`plumbline.model.registry`)
``verdict``    PASS, FAIL, UNSTABLE or NO REFERENCE, with ``reason``
=============  =======================================================================================================

Only the last run of each test counts (ReFrame repeats what fails).  Tests without a metric have no row here, nor have
those whose numbers prove nothing: that failed before their metrics were judged.
'''

import json
from pathlib import Path

import polars as pl

from plumbline.analysis.lines import count, not_measured, verdict_lines
from plumbline.model import registry
from plumbline.model.uncertainty import HALF_WIDTH
from plumbline.settings import REPORTS
from plumbline.store import archive, former
from plumbline.sweep import state
from plumbline.sweep.node import CPUS, REPORT

#: Where sweeps, and what their nodes measured, are kept.
SWEEPS, ARCHIVE = REPORTS / 'sweeps', REPORTS / 'archive'

#: Bytes of a node's run report: the login node reads those of all.
LARGEST = 2**26

_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    'system': pl.String, 'partition': pl.String, 'environ': pl.String, 'node': pl.String, 'kind': pl.String,
    'check': pl.String, 'name': pl.String, 'metric': pl.String, 'subject': pl.String, 'value': pl.Float64,
    'unit': pl.String, 'samples': pl.List(pl.Float64), 'error': pl.Float64,
    'subsystem': pl.String, 'noise': pl.String,
    'state': pl.String, 'states': pl.String, 'verdict': pl.String, 'reason': pl.String}
COLUMNS = pl.Schema(_COLUMNS)

#: Memory of nodes that should be alike differs by what their firmware keeps: from one to the next at most this share.
MEMORY_ALIKE = 0.02


def collect(sweep, node):
    '''Archive what a node has measured.

    :returns: changes of :class:`state.Node`: ``session``, ``archived``, ``counts`` and ``machine``; or None and why
        nothing was measured.
    '''
    path = archive.archive(sweep.of(node) / REPORT, ARCHIVE, LARGEST)
    rows = pl.read_parquet(path)
    hosts = set(rows['hostname'].drop_nulls()) - {node.name}
    if hosts:
        return None, f"its results are of {', '.join(sorted(hosts))}"
    lines = verdict_lines(rows)
    if not archive.final_rows(rows)['value'].is_finite().any():
        why = next((line.reason for line in lines), 'every test was skipped')
        return None, f'nothing was measured: {why}'
    try:
        cpus = int((sweep.of(node) / CPUS).read_text())
    except (OSError, ValueError):
        return None, f'{sweep.of(node) / CPUS} does not say how many CPUs its job had: was the disk full?'
    return {'session': rows['session'][0], 'archived': str(path), 'counts': count(lines, not_measured(rows)),
            'machine': _machine(rows, cpus)}, ''


def _machine(rows, cpus):
    '''What the node says of itself in the first result that has it, and how many CPUs its job had.'''
    for text in rows['detail'].drop_nulls():
        machine = json.loads(text).get('machine')
        if machine:
            return {'model': machine.get('cpu_model') or 'CPU of unknown model', 'cpus': cpus,
                    'kib': machine.get('memory_kib') or 0}
    return {}


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
        if kib < last * (1 - MEMORY_ALIKE):
            size = kib
        sizes[model, cpus] = kib, size
        result[node.name] = f'{model}, {cpus} CPUs, {size / 2**20:.0f} GiB'
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
    files = [node.archived if Path(node.archived).exists() else archive.archive(sweep.of(node) / REPORT, ARCHIVE)
             for node in nodes]
    kind = kinds(nodes)
    named = pl.LazyFrame([(node.session, node.name, kind.get(node.name)) for node in nodes], orient='row',
                         schema=dict.fromkeys(('session', 'node', 'kind'), pl.String))
    rows = archive.final_rows(former.rows(pl.scan_parquet(files, schema=archive.SCHEMA, glob=False)))
    proved = (pl.col('result') == 'pass') | (pl.col('fail_phase') == 'performance')
    low, high = pl.col('interval_low'), pl.col('interval_high')
    measured = (rows.filter(pl.col('metric').is_not_null() & proved).join(named, on='session')
                .with_columns(error=pl.when(low > 0).then((high / low).log() / 2 / HALF_WIDTH)).collect())
    about = measured.select('check', 'metric', 'subject', 'level', 'threads', 'display_name').unique()
    about = about.with_columns(pl.DataFrame([registry.of_row(row) for row in about.iter_rows(named=True)], orient='row',
                                            schema={'subsystem': pl.String, 'noise': pl.String}))
    return (measured.join(about, on=about.columns[:6], nulls_equal=True, maintain_order='left')
            .with_columns(check=pl.col('display_name')).select(COLUMNS.names()))
