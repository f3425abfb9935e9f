'''How listing, generating, polling, archiving and ranking grow with nodes and checks.

The nodes are on paper: a real Slurm controller (``tests/cluster``) whose nodes are all powered down, which it never tries to
start.  What the nodes measured is a run of this machine, told by every node with noise of its own.
'''

import contextlib
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from plumbline.bench.common import Figure
from plumbline.errors import PlumblineError
from plumbline.settings import REPORTS, ROOT
from plumbline.store import archive
from plumbline.sweep import state

NODES, CHECKS = (10, 100, 1000), (1, 10, None)

#: What a sweep of 1000 nodes may take to be listed and generated.
_SECONDS, _MEGABYTES = 60, 2000

#: ReFrame's own way takes milliseconds for each check on each node; more of them are left out here.
_DISTRIBUTED = 2000

_SLURM = '''\
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


class _Paper:
    '''A cluster on paper, and the commands that are tried on it.'''

    def __init__(self, cluster, folder):
        self.variables, self.folder = {**cluster.variables, 'PLUMBLINE_REPORTS': str(folder / 'reports')}, folder
        self.site = folder / 'paper.py'
        self.site.write_text(_SITE)
        self.reframe = ['reframe', '-C', self.site, '-c', ROOT / 'checks', '-R', '-l']
        self.checks = [['-n', found] for found in re.findall(r'^- .*(/[0-9a-f]{8})', self.cost(self.reframe).said, re.M)]

    def cost(self, command):
        '''
        :raises PlumblineError: if the command fails.
        '''
        began = time.monotonic()
        words = [str(Path(sys.executable).with_name(command[0]) if command[0] in ('reframe', 'plumbline') else command[0]),
                 *map(str, command[1:])]
        with open(self.folder / 'said', 'w+') as file:
            process = subprocess.Popen(words, env={**os.environ, **self.variables}, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - began
            said = Path(file.name).read_text()
        if process.returncode not in (0, 1):        # 1: a node is out of true
            raise PlumblineError(f"{' '.join(words)[:80]}: {said.strip().splitlines()[-1:]}")
        return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said)

    def selection(self, checks):
        return [word for option in self.checks[:checks] for word in option]


def _figure(what, cost):
    return Figure(f'{what}, seconds', np.array([cost.seconds]), remark=f'{cost.of_cpu:.1f} s of CPU, {cost.megabytes:.0f} MB')


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
        if (nodes, checks) != (NODES[-1], CHECKS[-1]):
            yield _figure(f'plumbline sweep --dry-run: {named}', paper.cost(command))
            continue
        costs = [paper.cost(command) for _ in range(repeats)]
        yield Figure(f'plumbline sweep --dry-run: {named}, seconds', np.array([cost.seconds for cost in costs]), most=_SECONDS)
        yield Figure(f'plumbline sweep --dry-run: {named}, MB', np.array([cost.megabytes for cost in costs]), most=_MEGABYTES)


def _polled(paper, nodes, repeats):
    '''A job for each node in the queue, held, and what it costs to look at them all.'''
    script = paper.folder / 'job.sh'
    script.write_text('#!/bin/sh\n')
    submitted = [paper.cost(['sbatch', '--hold', '-p', 'paper', '-o', '/dev/null', script]) for _ in range(nodes)]
    numbers = [re.findall(r'\d+', cost.said)[0] for cost in submitted]
    yield Figure(f'one sbatch, up to {nodes} jobs in the queue, seconds', np.array([cost.seconds for cost in submitted]))
    looks = [paper.cost(['squeue', '-h', '-j', ','.join(numbers), '-o', '%i|%T|%N|%r']).seconds for _ in range(repeats)]
    yield Figure(f'one squeue for {nodes} jobs, seconds', np.array(looks))


def _swept(folder, archived):
    '''The folder of a sweep whose nodes have measured.'''
    nodes = {node: 'made' for node, _ in archived}
    plan = {'schema': 1, 'id': folder.name, 'partition': 'paper:cpu', 'access': [], 'command': [], 'checks': 0, 'racks': None, 'nodes': nodes}
    sweep = state.create(folder, plan, '')
    sweep.begin()
    for node, path in archived:
        sweep.record(sweep.nodes[node], state.OVER, state=state.MEASURED, session=path.stem, archived=str(path),
                     machine={'model': 'made', 'cpus': 4, 'kib': 2**20})
    return folder


def _ranked(paper, repeats):
    '''Archiving the run report of a node; ranking nodes and writing their page.'''
    runs = sorted(REPORTS.glob('reframe/*.json'), key=os.path.getmtime)
    if not runs:
        raise PlumblineError('archiving, ranking: no run of this machine to multiply; run make health first')
    seconds = []
    for _ in range(repeats):
        began = time.monotonic()
        measured = pl.read_parquet(archive.archive(runs[-1], paper.folder / 'archive'))
        seconds.append(time.monotonic() - began)
    yield Figure(f'archiving the run report of a node, {runs[-1].stat().st_size / 1e6:.1f} MB, seconds', np.array(seconds))
    noise, archived = np.random.default_rng(1), []
    for number in range(1, NODES[-1] + 1):
        told = measured.with_columns(session=pl.lit(f'session-{number}'), hostname=pl.lit(f'p{number}'),
                                     value=pl.col('value') * (1 + 0.01 * noise.standard_normal(len(measured))))
        archived.append((f'p{number}', paper.folder / f'session-{number}.parquet'))
        told.write_parquet(archived[-1][1])
    for nodes in NODES:
        folder = _swept(paper.folder / f'sweep-{nodes}', archived[:nodes])
        yield _figure(f'plumbline rank, with its page: {nodes} nodes, {measured["name"].drop_nulls().len()} metrics',
                      paper.cost(['plumbline', 'rank', folder]))


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
