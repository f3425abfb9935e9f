'''The steps of a sweep of thousands of nodes on paper, each in a process: plan, submit, collect, rank with its page, the page alone, and with ten
sweeps before it rank again, and what is written of the nodes and told of them.

Slurm is three scripts that answer at once, so that submitting is the driver's own part of it.  What the nodes measured is a run of this machine,
told by every node with noise of its own; ten sweeps before it found the same but for noise.  The last node is worse by a fifth, and must be the one
that is named; the first lacks a metric.
'''

import contextlib
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from plumbline.bench.common import Figure, stand_ins
from plumbline.errors import PlumblineError
from plumbline.nodes import events
from plumbline.report import sweep_page
from plumbline.settings import ROOT
from plumbline.sweep import driver, node as job, outliers, proposals, ranking, results, scatter, slurm, state

NODES = (1000, 10000)

#: What each step of a sweep of the most nodes may take.
SECONDS, MEGABYTES = 60, 4000

#: What the last node has of the others' rates.
SLOW = 0.8

#: What limits each step.
_LIMITS = {
    'plan': "ReFrame's list of the checks, once",
    'submit': 'a process (of a script in place of sbatch) and a line on the disk for each node, in turn; a real sbatch and --pause come on top',
    'collect': 'some ten files of each node are looked at, in turn',
    'rank': 'the table of all metrics is read from a file of each node, and kept in memory',
    'page': 'numbers of the 40 and 8 metrics that differ most, of each node, as text',
    'rank, ten sweeps before': 'the same, and the scores that each node had before',
    'follow up, ten sweeps before': 'a line on the disk for each node; all lines of all sweeps are read'}

_SLURM = {
    'sinfo': 'cat {folder}/nodes',
    'squeue': ':',
    # The programs are built as soon as the first job has been submitted.
    'sbatch': 'for word; do case $word in --nodelist=p*) n=${{word#*=p}};; pilot) touch {folder}/sweep/p$n/built;; esac; done; echo $n'}

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

# Linux counts the memory of whoever starts a process as if it were its own: this one is small.
_WATCH = '''\
import os, sys, time
began = time.monotonic()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], 'w') as file:
    print(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, file=file)
sys.exit(os.waitstatus_to_exitcode(status))
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
    words = [str(Path(sys.executable).with_name(command[0]) if command[0] in ('reframe', 'plumbline') else command[0]), *map(str, command[1:])]
    with open(folder / 'said', 'w+') as file:
        done = subprocess.run([sys.executable, '-ISc', _WATCH, folder / 'usage', *words], env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                              stdout=file, stderr=file, check=False)
        said = Path(file.name).read_text()
    if done.returncode not in (0, 1):        # 1: a node is an outlier, or a subsystem has become worse
        raise PlumblineError(f"{' '.join(words)[:80]}: {said.strip().splitlines()[-1:]}")
    seconds, of_cpu, kib = map(float, (folder / 'usage').read_text().split())
    return Cost(seconds, of_cpu, kib / 1024, said)


def written_site(folder):
    '''The path of a site file whose partition ``paper:cpu`` is Slurm's ``paper``.'''
    path = folder / 'paper.py'
    path.write_text(_SITE)
    return path


def write_slurm(folder, nodes):
    '''Write Slurm's commands, for a sweep in ``folder/sweep``; the variables that put them first.'''
    (folder / 'nodes').write_text(''.join(f'p{number}|idle|4|1:4:1|made|none\n' for number in range(1, nodes + 1)))
    path = stand_ins(folder / 'bin', {name: text.format(folder=shlex.quote(str(folder))) for name, text in _SLURM.items()})
    return {'PATH': path, 'PLUMBLINE_REPORTS': str(folder / 'reports')}


def planned(folder, nodes):
    '''Write a sweep that has begun with nothing; its folder.'''
    plan = {'schema': 1, 'id': 'sweep', 'partition': 'paper:cpu', 'access': ['--partition=paper'], 'command': [], 'checks': 0, 'racks': None,
            'pace': {}, 'limits': {'node_hours': 10.0 * nodes}, 'nodes': {f'p{number}': 'made' for number in range(1, nodes + 1)}}
    return state.create(folder / 'sweep', plan, '').folder


def leave_measured(sweep, measured):
    '''Have the nodes of a sweep leave what one node measured, each with a noise of 1 %, as their jobs do.

    :arg sweep: folder; :arg measured: rows of the archive.
    '''
    noise, nodes, path = np.random.default_rng(1), list(state.load(sweep).nodes), Path('system=paper/date=2026-01-01')
    loss = SLOW ** measured['metric'].replace_strict(ranking.BETTER, default=0, return_dtype=pl.Int8).fill_null(0).to_numpy()
    lacking = measured['name'].drop_nulls()[-1]
    for number, name in enumerate(nodes, 1):
        factor = (1 + 0.01 * noise.standard_normal(len(measured))) * (loss if name == nodes[-1] else 1)
        told = measured.with_columns(session=pl.lit(f'session-{number}'), hostname=pl.lit(name), value=pl.col('value') * factor)
        of_node, file = sweep / name, path / f'session-{number}.parquet'
        (of_node / results.OWN_ARCHIVE / path).mkdir(parents=True)
        told.filter(pl.lit(number > 1) | pl.col('name').ne_missing(lacking)).write_parquet(of_node / results.OWN_ARCHIVE / file, compression='lz4')
        found = {'session': file.stem, 'counts': {'speed': {'PASS': 1}}, 'status': 0, 'reason': '',
                 'machine': {'model': 'made', 'cpus': 4, 'kib': 2**20}}
        (of_node / results.PREPARED).write_text(json.dumps({'archived': str(file), 'found': found, 'why': ''}))
        (of_node / job.CLAIM).parent.mkdir()
        for text, left in ((str(number), job.CLAIM), ('4', job.CPUS), ('', job.REPORT), ('0', job.ENDED)):
            (of_node / left).write_text(text)


def leave_history(sweep):
    '''Have ten sweeps before this one, which was ranked, leave what sweeps keep: their nodes' scores, with a noise of 0.3 %, and the journal.'''
    noise, scores, partition = np.random.default_rng(1), pl.read_parquet(sweep / scatter.SCORES), state.load(sweep).plan['partition']
    for number in range(scatter.LATEST):
        earlier = sweep.with_name(f'earlier-{number}')
        earlier.mkdir()
        for name in ('sweep.json', scatter.FILE):
            shutil.copy(sweep / name, earlier)
        scores.with_columns(pl.col('value') + pl.Series(0.003 * noise.standard_normal(scores.height))).write_parquet(earlier / scatter.SCORES)
        events.append(partition.partition(':')[0], [
            {'at': time.time() - 86400 * (scatter.LATEST - number), 'node': name, 'event': events.MEASURED, 'partition': partition,
             'sweep': earlier.name, 'session': f'{earlier.name}-{name}', 'again': [], 'verdict': 'PASS', 'rank': events.IN_ORDER, 'lacks': '',
             'hours': 0.1} for name in scores['node'].unique()])


class _AllSubmitted(Exception):
    pass


class _Queue(slurm.Slurm):
    '''Slurm that is asked for jobs until all nodes of a sweep have one.'''

    def __init__(self, sweep):
        super().__init__(sweep.plan['access'])
        self._sweep = sweep

    def jobs(self, prefix):
        if all(node.phase == state.QUEUED for node in self._sweep.nodes.values()):
            raise _AllSubmitted
        return super().jobs(prefix)


def step(name, folder):
    '''One step of a sweep on paper; the seconds that it takes without Python's begin are printed.

    :arg name: ``submit``, ``collect``, ``page``, ``history`` (:func:`leave_history`) or ``follow up``; :arg folder: of the sweep.
    '''
    if name in ('page', 'follow up'):
        found = outliers.look(folder)
        began = time.monotonic()
        if name == 'page':
            sweep_page.write(found, folder)
        else:
            list(proposals.follow_up(state.load(folder), found))
    elif name == 'history':
        began = time.monotonic()
        leave_history(Path(folder))
    else:
        sweep = state.load(folder)
        sweep.begin()
        asked = _Queue(sweep) if name == 'submit' else slurm.Slurm(sweep.plan['access'])
        began = time.monotonic()
        with contextlib.suppress(_AllSubmitted):
            driver.Driver(sweep, asked, driver.Pace(len(sweep.nodes), 0, 0, 60, 86400, 60), str).run()
    print(time.monotonic() - began)


def steps(folder, nodes, measured):
    '''Yield (step, :class:`Cost`) of a sweep of so many nodes.

    :arg measured: what one node measured, rows of the archive.
    :raises PlumblineError: also if another node is named than the last.
    '''
    variables = write_slurm(folder, nodes)

    def cost(*command):
        return cost_of(command, folder, **variables)

    def alone(name):
        took = cost(sys.executable, '-c', f'from plumbline.bench import paper; paper.step({name!r}, {str(sweep)!r})')
        return name, Cost(float(took.said.split()[-1]), took.of_cpu, took.megabytes, took.said)

    yield 'plan', cost('plumbline', 'sweep', '--dry-run', '-C', written_site(folder), '--partition', 'paper:cpu', '-c', ROOT / 'checks')
    sweep = planned(folder, nodes)
    yield alone('submit')
    leave_measured(sweep, measured)
    yield alone('collect')

    def ranked():
        took = cost('plumbline', 'rank', sweep)
        if f'\noutliers: p{nodes}\n' not in took.said:
            raise PlumblineError(f'plumbline rank does not name p{nodes}, or not alone: {took.said[:500]}')
        return took

    yield 'rank', ranked()
    yield alone('page')
    alone('history')
    yield 'rank, ten sweeps before', ranked()
    yield 'follow up, ten sweeps before', alone('follow up')[1]


def figures(folder, measured):
    '''Yield seconds and memory of each step, with targets for the most nodes.'''
    metrics = measured['name'].drop_nulls().len()
    for nodes in NODES:
        place = folder / f'steps-{nodes}'
        place.mkdir(parents=True)
        for name, cost in steps(place, nodes, measured):
            most = nodes == NODES[-1]
            what = f"{'rank, with its page' if name == 'rank' else name}: {nodes} nodes, {metrics} metrics"
            yield Figure(f'{what}, seconds', np.array([cost.seconds]), most=SECONDS if most else math.inf,
                         remark=f'{cost.of_cpu:.1f} s of CPU; limit: {_LIMITS[name]}')
            yield Figure(f'{what}, MB', np.array([cost.megabytes]), most=MEGABYTES if most else math.inf)
