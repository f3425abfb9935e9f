'''How listing, generating, polling, archiving and ranking grow with nodes and checks.

The nodes are on paper: a real Slurm controller (``tests/cluster``) whose nodes are all powered down, which it never tries to
start.  What the nodes measured is a run of this machine, told by every node with noise of its own; jobs that are collected have ended as soon
as they are submitted.
'''

import contextlib
import datetime
import itertools
import json
import math
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl

from plumbline.bench.common import Figure
from plumbline.errors import PlumblineError
from plumbline.model import quantity
from plumbline.settings import REPORTS, ROOT
from plumbline.store import archive
from plumbline.sweep import driver, node as job, results, slurm, state

NODES, CHECKS = (10, 100, 1000, 10000), (1, 10, None)

#: What each step of a sweep of the most nodes may take: plan, submit, collect, rank with its page.
_SECONDS, _MEGABYTES = 60, 4000

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

_SITE = '''\
from plumbline import settings
from plumbline.mpi import environments
from plumbline.system import toolchains
from reframe.utility.cpuinfo import cpuinfo

compilers = toolchains.found()
environments = [*compilers, *environments.found(compilers, as_root=True)]
site_configuration = settings.site(
    systems=[{'name': 'paper', 'hostnames': ['.*'], 'partitions': [{
        'name': 'cpu', 'scheduler': 'squeue', 'launcher': 'local', 'access': ['--partition=paper'],
        'environs': [environment['name'] for environment in environments], 'processor': cpuinfo()}]}],
    environments=environments)
'''


@dataclass(frozen=True)
class Cost:
    '''What a command took.'''
    seconds: float
    of_cpu: float
    megabytes: float
    said: str


def cost_of(command, folder, **variables):
    '''What a command takes, of ReFrame, Plumbline or the system; ``folder``: for what it says.

    :raises PlumblineError: if the command fails.
    '''
    began = time.monotonic()
    words = [str(Path(sys.executable).with_name(command[0]) if command[0] in ('reframe', 'plumbline') else command[0]), *map(str, command[1:])]
    with open(folder / 'said', 'w+') as file:
        process = subprocess.Popen(words, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        said = Path(file.name).read_text()
    if process.returncode not in (0, 1):        # 1: a node is an outlier, or a subsystem has become worse
        raise PlumblineError(f"{' '.join(words)[:80]}: {said.strip().splitlines()[-1:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said)


class _Paper:
    '''A cluster on paper, and the commands that are tried on it.'''

    def __init__(self, cluster, folder):
        self.variables, self.folder = {**cluster.variables, 'PLUMBLINE_REPORTS': str(folder / 'reports')}, folder
        self.site = folder / 'paper.py'
        self.site.write_text(_SITE)
        self.reframe = ['reframe', '-C', self.site, '-c', ROOT / 'checks', '-R', '-l']
        self.checks = [['-n', found] for found in re.findall(r'^- .*(/[0-9a-f]{8})', self.cost(self.reframe).said, re.M)]

    def cost(self, command):
        return cost_of(command, self.folder, **self.variables)

    def selection(self, checks):
        return [word for option in self.checks[:checks] for word in option]


def _figure(what, cost):
    return Figure(f'{what}, seconds', np.array([cost.seconds]), remark=f'{cost.of_cpu:.1f} s of CPU, {cost.megabytes:.0f} MB')


def _judged(what, costs, nodes):
    '''Seconds and MB, with targets for the most nodes.'''
    last = nodes == NODES[-1]
    yield Figure(f'{what}, seconds', np.array([cost.seconds for cost in costs]), most=_SECONDS if last else math.inf)
    yield Figure(f'{what}, MB', np.array([cost.megabytes for cost in costs]), most=_MEGABYTES if last else math.inf)


def _generated(paper, nodes, repeats):
    '''Listing and generating, with ReFrame's own ``--distribute`` and as a sweep.'''
    for checks in CHECKS:
        selected = paper.selection(checks)
        named = f"{nodes} nodes, {len(selected) // 2} check{'s' * (checks != 1)}"
        if nodes == NODES[0]:       # it does not ask for them
            yield _figure(f'reframe -l: {named}', paper.cost([*paper.reframe, *selected]))
        if nodes * len(selected) // 2 <= _DISTRIBUTED:
            yield _figure(f'reframe --distribute=all -l: {named}', paper.cost([*paper.reframe, '--distribute=all', *selected]))
        command = ['plumbline', 'sweep', '--dry-run', '-C', paper.site, '--partition', 'paper:cpu', '-c', ROOT / 'checks',
                   *(selected if checks else ())]
        if checks != CHECKS[-1]:
            yield _figure(f'plumbline sweep --dry-run: {named}', paper.cost(command))
        else:
            costs = [paper.cost(command) for _ in range(repeats if nodes == NODES[-1] else 1)]
            yield from _judged(f'plumbline sweep --dry-run: {named}', costs, nodes)


def _polled(paper, nodes, repeats):
    '''A job for each node in the queue, held, and what it costs to look at them all.'''
    script = paper.folder / 'job.sh'
    script.write_text('#!/bin/sh\n')
    submitted = [paper.cost(['sbatch', '--hold', '-p', 'paper', '-o', '/dev/null', script]) for _ in range(nodes)]
    numbers = [re.findall(r'\d+', cost.said)[0] for cost in submitted]
    seconds = np.array([cost.seconds for cost in submitted])
    yield Figure(f'one sbatch, up to {nodes} jobs in the queue, seconds', seconds)
    most = _SECONDS if nodes == NODES[-1] else math.inf
    yield Figure(f'sbatch for {nodes} nodes, one after the other, seconds', np.array([seconds.sum()]), most=most)
    looks = [paper.cost(['squeue', '-h', '-j', ','.join(numbers), '-o', '%i|%T|%N|%r']).seconds for _ in range(repeats)]
    yield Figure(f'one squeue for {nodes} jobs, seconds', np.array(looks))


class _Ended:
    '''Slurm whose jobs have ended, and left what they measured, as soon as they are submitted.

    :arg archived: node -> its file of the archive.
    '''

    def __init__(self, archived, folder):
        self.archived, self.folder = archived, folder
        self.path = Path('system=paper/date=2026-01-01')

    def nodes(self):
        return {name: slurm.Node(name, 'idle', 'made', frozenset(), 'none') for name in self.archived}

    def jobs(self, _):
        return {}

    def submission(self, _, node, *__, **___):
        return node

    def submit(self, name):
        of_node, file = self.folder / name, self.archived[name]
        (of_node / results.OWN_ARCHIVE / self.path).mkdir(parents=True)
        os.link(file, of_node / results.OWN_ARCHIVE / self.path / file.name)
        found = {'session': file.stem, 'counts': {'PASS': 1}, 'machine': {'model': 'made', 'cpus': 4, 'kib': 2**20}}
        (of_node / results.PREPARED).write_text(json.dumps({'archived': str(self.path / file.name), 'found': found, 'why': ''}))
        for ended in (job.REPORT, job.ENDED):
            (of_node / ended).touch()
        return int(name[1:])


def collected(folder, archived):
    '''The seconds in which a driver submits and collects a sweep whose nodes need no time to measure, Slurm's not counted.'''
    plan = {'schema': 1, 'id': folder.name, 'partition': 'paper:cpu', 'access': [], 'command': [], 'checks': 0, 'racks': None, 'pace': {},
            'nodes': dict.fromkeys(archived, 'made')}
    sweep = state.create(folder, plan, '')
    sweep.begin()
    began = time.monotonic()
    with mock.patch.object(results, 'ARCHIVE', folder.parent / 'collected'):
        driver.Driver(sweep, _Ended(archived, folder), driver.Pace(100, 0, 0, 60, 60, 60), str).run()
    return time.monotonic() - began


def nodes_on_paper(measured, folder, nodes):
    '''Node -> a file of the archive: what one node measured, told by each, with a noise of 1 %.'''
    noise, archived = np.random.default_rng(1), {}
    for number in range(1, nodes + 1):
        told = measured.with_columns(session=pl.lit(f'session-{number}'), hostname=pl.lit(f'p{number}'),
                                     value=pl.col('value') * (1 + 0.01 * noise.standard_normal(len(measured))))
        archived[f'p{number}'] = folder / f'session-{number}.parquet'
        told.write_parquet(archived[f'p{number}'])
    return archived


def _ranked(paper, repeats):
    '''Archiving the run report of a node; collecting the nodes, ranking them and writing their page.'''
    runs = sorted(REPORTS.glob('reframe/*.json'), key=os.path.getmtime)
    if not runs:
        raise PlumblineError('archiving, ranking: no run of this machine to multiply; run make health first')
    seconds = []
    for _ in range(repeats):
        began = time.monotonic()
        measured = pl.read_parquet(archive.archive(runs[-1], paper.folder / 'archive'))
        seconds.append(time.monotonic() - began)
    yield Figure(f'archiving the run report of a node, {runs[-1].stat().st_size / 1e6:.1f} MB, seconds', np.array(seconds))
    archived = nodes_on_paper(measured, paper.folder, NODES[-1])
    for nodes in NODES:
        folder = paper.folder / f'sweep-{nodes}'
        seconds = collected(folder, dict(itertools.islice(archived.items(), nodes)))
        yield Figure(f'collecting {nodes} nodes, Slurm apart, seconds', np.array([seconds]), most=_SECONDS if nodes == NODES[-1] else math.inf)
        what = f'plumbline rank, with its page: {nodes} nodes, {measured["name"].drop_nulls().len()} metrics'
        yield from _judged(what, [paper.cost(['plumbline', 'rank', folder])], nodes)


def fill(root, sessions, metrics, nodes=1, step=None, samples=0):
    '''An archive on paper: sessions night after night, of tests with five metrics each, on each node, with noise.

    :arg step: (session, share): from that one on all rates are so much less; :arg samples: of each metric.
    '''
    noise, names = np.random.default_rng(1), [f'bandwidth.v{number}' for number in range(5)]
    tests = -(-metrics // len(names))
    rows = [(test, node, name) for test in range(tests) for node in range(nodes) for name in names][:metrics * nodes]
    test, node, name = zip(*rows)
    base = pl.DataFrame({
        'system': 'paper', 'partition': 'cpu', 'environ': 'gnu', 'hostname': [f'n{one:04}' for one in node], 'processor': 'made', 'run': 0,
        'test': [f'Made{one}_{which}' for one, which in zip(test, node)], 'check': [f'Made{one}' for one in test],
        'display_name': [f'Made{one} %threads=all %.nid=n{which:04}' for one, which in zip(test, node)], 'result': 'pass', 'metric': 'bandwidth',
        'name': name, 'subject': [one.partition('.')[2] for one in name], 'unit': 'MB/s', 'n': 25, 'spread': 0.02, 'level': 'memory',
        'threads': 'all', 'verdict': 'NO REFERENCE',
        'detail': [json.dumps({'command': f'made{one}', 'rerun': f'reframe -n Made{one}'}) if what == names[0] else None for one, _, what in rows]})
    for night in range(sessions):
        value = 1e4 * np.exp(noise.normal(0, 0.01) + noise.normal(0, 0.01, len(rows))) * (1 - step[1] if step and night >= step[0] else 1)
        began = datetime.datetime(2024, 1, 1, 2, tzinfo=datetime.timezone.utc) + datetime.timedelta(days=night)
        told = base.with_columns(value=value, interval_low=0.99 * value, interval_high=1.01 * value, started=began,
                                 samples=pl.Series(np.outer(value, np.ones(samples)) * (1 + 0.01 * noise.standard_normal((len(value), samples)))
                                                   if samples else [None] * len(value), dtype=pl.List(pl.Float64)),
                                 session=pl.lit(f'{began:%Y%m%dT%H%M%SZ}-{night:08}'))
        missing = [pl.lit(None, kind).alias(column) for column, kind in archive.SCHEMA.items() if column not in told.columns]
        archive.write(told.with_columns(missing).select(pl.col(column).cast(kind) for column, kind in archive.SCHEMA.items()), root)
    return root


def history(folder, sizes=HISTORIES):
    '''Yield how long, and in how much memory, the page of a history is made of archives of these sizes.'''
    for (sessions, metrics, nodes), most_seconds, most_megabytes in sizes:
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


def figures(machine, pairs):
    '''Yield every :class:`Figure`.'''
    sys.path.insert(0, str(ROOT / 'tests/cluster'))
    from cluster import Cluster
    for nodes in NODES:
        with contextlib.ExitStack() as stack:
            folder = Path(machine.place) / f'paper-{nodes}'
            cluster = stack.enter_context(Cluster(folder / 'cluster', nodes=1, extra=_SLURM.format(nodes=nodes)))
            paper = _Paper(cluster, folder)
            yield from _generated(paper, nodes, min(pairs, 3))
            yield from _polled(paper, nodes, pairs)
    yield from _ranked(paper, pairs)
    yield from history(paper.folder)
    yield from report_page(paper.folder)
