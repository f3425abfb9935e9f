'''How archiving, the steps of a sweep (:mod:`plumbline.bench.paper`), histories and pages grow, and how listing, generating and polling do.

The last are asked of a real Slurm controller (``tests/cluster``) whose nodes are on paper: all powered down, and it never tries to start one.
'''

import datetime
import json
import os
import re
import time
from pathlib import Path

import numpy as np
import polars as pl

from plumbline.bench import paper
from plumbline.bench.common import Figure, attempted, virtual_cluster
from plumbline.bench.paper import cost_of
from plumbline.errors import PlumblineError
from plumbline.model import quantity, registry, stamp
from plumbline.settings import REPORTS, ROOT
from plumbline.store import archive

NODES, CHECKS = (10, 100, 1000), (1, 10, None)

#: ReFrame's own way takes milliseconds for each check on each node; more of them are left out here.
_DISTRIBUTED = 2000

#: Of a history: (sessions, metrics, nodes), and what its page may take, s and MB.
HISTORIES = (((365, 300, 1), 3, 1000), ((3650, 300, 1), float('inf'), float('inf')), ((1000, 300, 10), 30, 4000))

_SLURM = '''\
MaxJobCount=20000
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=-1
PrivateData=cloud
NodeName=p[1-{nodes}] NodeAddr=127.0.0.1 Port=1 CPUs=4 State=CLOUD
PartitionName=paper Nodes=p[1-{nodes}] State=UP
'''


class _Paper:
    '''A cluster on paper, and the commands that are tried on it.'''

    def __init__(self, cluster, folder):
        self.variables, self.folder = {**cluster.variables, 'PLUMBLINE_REPORTS': str(folder / 'reports')}, folder
        self.site = paper.written_site(folder)
        self.reframe = ['reframe', '-C', self.site, '-c', ROOT / 'checks', '-R', '-l']
        self.checks = [['-n', found] for found in re.findall(r'^- .*(/[0-9a-f]{8})', self.cost(self.reframe).said, re.M)]

    def cost(self, command):
        return cost_of(command, self.folder, **self.variables)

    def selection(self, checks):
        return [word for option in self.checks[:checks] for word in option]


def _figure(what, cost):
    return Figure(f'{what}, seconds', np.array([cost.seconds]), remark=f'{cost.of_cpu:.1f} s of CPU, {cost.megabytes:.0f} MB')


def _generated(cluster, nodes):
    '''Listing and generating, with ReFrame's own ``--distribute`` and as a sweep.'''
    for checks in CHECKS:
        selected = cluster.selection(checks)
        named = f"{nodes} nodes, {len(selected) // 2} check{'s' * (checks != 1)}"
        if nodes == NODES[0]:       # it does not ask for them
            yield _figure(f'reframe -l: {named}', cluster.cost([*cluster.reframe, *selected]))
        if nodes * len(selected) // 2 <= _DISTRIBUTED:
            yield _figure(f'reframe --distribute=all -l: {named}', cluster.cost([*cluster.reframe, '--distribute=all', *selected]))
        command = ['plumbline', 'sweep', '--dry-run', '-C', cluster.site, '--partition', 'paper:cpu', '-c', ROOT / 'checks',
                   *(selected if checks else ())]
        yield _figure(f'plumbline sweep --dry-run: {named}', cluster.cost(command))


def _polled(cluster, nodes, repeats):
    '''A job for each node in the queue, held, and what it costs to look at them all.'''
    script = cluster.folder / 'job.sh'
    script.write_text('#!/bin/sh\n')
    submitted = [cluster.cost(['sbatch', '--hold', '-p', 'paper', '-o', '/dev/null', script]) for _ in range(nodes)]
    numbers = [re.findall(r'\d+', cost.said)[0] for cost in submitted]
    yield Figure(f'one sbatch, up to {nodes} jobs in the queue, seconds', np.array([cost.seconds for cost in submitted]))
    looks = [cluster.cost(['squeue', '-h', '-j', ','.join(numbers), '-o', '%i|%T|%N|%r']).seconds for _ in range(repeats)]
    yield Figure(f'one squeue for {nodes} jobs, seconds', np.array(looks))


def _archived(folder, repeats):
    '''Archiving the run report of a node, and the steps of a sweep of such nodes.'''
    runs = sorted(REPORTS.glob('reframe/*.json'), key=os.path.getmtime)
    if not runs:
        raise PlumblineError('no run of this machine to multiply; run make health first')
    seconds = []
    for _ in range(repeats):
        began = time.monotonic()
        measured = pl.read_parquet(archive.archive(runs[-1], folder / 'archive'))
        seconds.append(time.monotonic() - began)
    if measured['name'].is_null().all():
        raise PlumblineError(f'{runs[-1]} has no metric to multiply; run make health first')
    yield Figure(f'archiving the run report of a node, {runs[-1].stat().st_size / 1e6:.1f} MB, seconds', np.array(seconds))
    yield from paper.figures(folder, measured)


def fill(root, sessions, metrics, nodes=1, samples=0):
    '''An archive on paper: sessions night after night, of tests with five metrics each, on each node, with noise.

    :arg samples: of each metric.
    '''
    noise, names = np.random.default_rng(1), [f'bandwidth.v{number}' for number in range(5)]
    tests = -(-metrics // len(names))
    rows = [(test, node, name) for test in range(tests) for node in range(nodes) for name in names][:metrics * nodes]
    test, node, name = zip(*rows)
    base = pl.DataFrame({
        'system': 'paper', 'partition': 'cpu', 'environ': 'gnu', 'hostname': [f'n{one:04}' for one in node], 'processor': 'made', 'run': 0,
        'test': [f'Made{one}_{which}' for one, which in zip(test, node)], 'check': [f'Made{one}' for one in test],
        'display_name': [f'Made{one} %threads=all' for one in test], 'parameters': '{"threads": "all"}', 'result': 'pass', 'metric': 'bandwidth',
        'name': name, 'subject': [one.partition('.')[2] for one in name], 'subsystem': registry.MEMORY_ALL,
        'unit': 'MB/s', 'n': 25, 'spread': 0.02, 'level': 'memory', 'threads': 'all', 'verdict': 'NO REFERENCE',
        'detail': [json.dumps({'command': f'made{one}', 'rerun': f'reframe -n Made{one}'}) if what == names[0] else None for one, _, what in rows]})
    for night in range(sessions):
        value = 1e4 * np.exp(noise.normal(0, 0.01) + noise.normal(0, 0.01, len(rows)))
        began = datetime.datetime(2024, 1, 1, 2, tzinfo=datetime.timezone.utc) + datetime.timedelta(days=night)
        told = base.with_columns(value=value, interval_low=0.99 * value, interval_high=1.01 * value, started=began,
                                 samples=pl.Series(np.outer(value, np.ones(samples)) * (1 + 0.01 * noise.standard_normal((len(value), samples)))
                                                   if samples else [None] * len(value), dtype=pl.List(pl.Float64)),
                                 session=pl.lit(f'{stamp.of(began.timestamp())}-{night:08}'))
        missing = [pl.lit(None, kind).alias(column) for column, kind in archive.SCHEMA.items() if column not in told.columns]
        archive.write(told.with_columns(missing).select(pl.col(column).cast(kind) for column, kind in archive.SCHEMA.items()), root)
    return root


def history(folder):
    '''Yield how long, and in how much memory, the page of a history is made of archives of :data:`HISTORIES`.'''
    for (sessions, metrics, nodes), most_seconds, most_megabytes in HISTORIES:
        root = fill(folder / f'{sessions}-{metrics}-{nodes}', sessions, metrics, nodes)
        cost = cost_of(['plumbline', 'history', '--archive', root, '--output', folder / 'history.html'], folder)
        what = f'plumbline history, with its page: {sessions} sessions x {metrics} metrics x {quantity.several(nodes, "node")}'
        yield Figure(f'{what}, seconds', np.array([cost.seconds]), most=most_seconds)
        yield Figure(f'{what}, MB', np.array([cost.megabytes]), most=most_megabytes)
        yield Figure(f'{what}, MB of the page', np.array([(folder / 'history.html').stat().st_size / 1e6]), most=15)


def report_page(folder, nodes=1000, metrics=300):
    '''Yield how large the page of a session on so many nodes is, and what it takes.'''
    root = fill(folder / 'many', 1, metrics, nodes, samples=25)
    cost = cost_of(['plumbline', 'report', '--archive', root, '--destination', folder / 'page'], folder)
    what = f'plumbline report: {metrics} metrics of {quantity.several(nodes, "node")}'
    yield _figure(what, cost)
    yield Figure(f'{what}, MB of the page', np.array([(folder / 'page/index.html').stat().st_size / 1e6]), most=15)


def _on_cluster(place, pairs):
    virtual = virtual_cluster()
    for nodes in NODES:
        folder = place / f'paper-{nodes}'
        with virtual(folder / 'cluster', nodes=1, extra=_SLURM.format(nodes=nodes)) as started:
            cluster = _Paper(started, folder)
            yield from _generated(cluster, nodes)
            yield from _polled(cluster, nodes, pairs)


def figures(machine, pairs):
    '''Yield every :class:`Figure`.'''
    place = Path(machine.place)
    yield from attempted('archiving, ranking', _archived, place, pairs)
    yield from attempted('plumbline history', history, place)
    yield from attempted('plumbline report', report_page, place)
    yield from attempted('listing, generating, polling', _on_cluster, place, pairs)
