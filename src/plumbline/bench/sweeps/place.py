'''One sweep of the benchmark: the real ``plumbline sweep`` on the virtual cluster, and what it said of each node.

Every node has all CPUs of this host, and they are measured one after the other: they are alike, and each is alone.
'''

import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plumbline.bench.common import virtual_cluster
from plumbline.bench.sweeps.faults import prepare
from plumbline.bench.verdicts import session as of_machines
from plumbline.bench.verdicts.faults import our_cpus
from plumbline.bench.verdicts.table import NULL
from plumbline.errors import PlumblineError
from plumbline.model import registry, states
from plumbline.references.files import directory, portable
from plumbline.rfm.capacity import MEASURED, TOPOLOGY
from plumbline.settings import MEASURE, ONE_BY_ONE, ROOT
from plumbline.store import archive
from plumbline.sweep import outliers, ranking

#: Nodes of the cluster.
NODES = 4

#: The quickest that tell of a core, memory with all threads, its latency, messages in shared memory.
CHECKS = r'^node_speed%threads=all|^latency%pages=huge|^pingpong%transport=shm'

#: Where they are: each ReFrame, one for each node and more, would load all 200 tests otherwise.
FILES = ('memory/node_speed.py', 'memory/latency.py', 'mpi/pingpong.py')

#: As little of each as carries a verdict: a sweep of four nodes, one after the other, takes some 70 seconds.
SETTINGS = {'node_speed.min_time': 0.2, 'pingpong.largest': 2**18, 'pingpong.processes': 1, 'latency.processes': 1, 'latency.samples': 10}

_SITE = '''\
from reframe.utility.cpuinfo import cpuinfo

from plumbline import settings
from plumbline.mpi import environments
from plumbline.system import toolchains

compilers = toolchains.found()[:1]
environments = [*compilers, *environments.found(compilers, as_root=True)[:1]]
site_configuration = settings.site(
    systems=[{{'name': 'virtual', 'hostnames': ['.*'], 'partitions': [{{
        'name': 'all', 'scheduler': 'squeue', 'launcher': 'local', 'access': ['--partition=all'],
        'environs': [environment['name'] for environment in environments], 'processor': cpuinfo(),
        'extras': {{'node': {{'allowed_cpus': {cpus}, 'cpu_quota': None, 'memory': None}}}}}}]}}],
    environments=environments)
'''


@dataclass(frozen=True)
class Sweep:
    '''A sweep that has ended.

    :attr kind: ``null`` or the name of a fault; :attr number: of its kind, from 1.
    :attr node: that had the fault; '' without one.
    :attr exit: of ``plumbline sweep``; :attr name: of the sweep.
    :attr named: the nodes that it named.
    :attr rules: what it said of :attr:`node`: causes of ``data/diagnosis.yaml``.
    :attr blamed: subsystems by which it named that node, the worst first.
    :attr losses: subsystem -> what that node had lost of it against its fellows, a share: median of its rates, times and availabilities.
    :attr started: seconds since the epoch; :attr seconds: how long it took.
    '''
    kind: str
    number: int
    node: str
    exit: int
    name: str
    named: list
    rules: list
    blamed: list
    losses: dict
    started: float
    seconds: float

    @property
    def found(self):
        return self.node in self.named

    @property
    def others(self):
        '''Nodes that were named and had no fault.'''
        return [node for node in self.named if node != self.node]

    @property
    def told(self):
        '''What came of it, for people.'''
        return f"{f' on {self.node}' * bool(self.node)}: exit code {self.exit}, named: {', '.join(self.named) or 'none'}; {self.seconds:.0f} s"

    def names_cause(self, fault):
        '''Whether the cause that it names first is the fault; of a fault without a rule, whether it blames most what the fault makes slower.'''
        named, right = (self.rules, fault.causes) if fault.causes else (self.blamed, fault.subsystems)
        return self.found and not set(named[:1]).isdisjoint(right)


def losses(frame, node):
    '''Subsystem -> the median loss of a node's rates, times and availabilities against the medians of its fellows in the same state of the
    machine; below 0: a gain.

    :arg frame: of :func:`plumbline.sweep.results.frame`.
    '''
    known = frame.filter(pl.col('value').is_finite() & (pl.col('value') > 0) & pl.col('subsystem').is_not_null())
    changes = defaultdict(list)
    for (_, _, metric, part, *_), rows in known.group_by('check', 'name', 'metric', 'subsystem', 'environ', maintain_order=True):
        better = ranking.BETTER.get(metric) if registry.is_absolute(metric) or metric == 'cpu_availability' else 0
        alike = ({row['node']: row['value'] for row in group} for _, group in states.grouped(rows.to_dicts()))
        values = next((found for found in alike if node in found), {})
        if better and len(values) >= ranking.FEWEST:
            changes[part].append(better * np.log(values.pop(node) / np.median(list(values.values()))))
    return {part: round(float(-np.expm1(np.median(found))), 4) for part, found in changes.items()}


def capacity(nodes):
    '''``PLUMBLINE_CAPACITY`` by what the nodes of a sweep found to be theirs of the caches: the median of each level; that of the topology,
    where most had no less.

    :arg nodes: of each, the rows of the archive.
    '''
    found = defaultdict(list)
    for rows in nodes:
        machines = (json.loads(text).get('machine') or {} for text in rows['detail'].drop_nulls())
        for level, size in next((machine['capacity'] for machine in machines if machine.get('capacity')), {}).items():
            found[level].append(size)
    return ','.join(f'{level}={statistics.median_low(sizes)}' for level, sizes in sorted(found.items()) if 2 * len(sizes) > len(nodes)) or TOPOLOGY


class Place(of_machines.Place):
    '''The folder of a benchmark, with all that its sweeps read and leave; and the cluster, in a ``with`` statement.'''
    kind = Sweep

    def __init__(self, folder):
        super().__init__(folder)
        self.commands = self.folder / 'commands'
        self.cluster: Any = None        # of the tests, which are no package
        self.nodes = [f'n{number + 1}' for number in range(NODES)]

    def __enter__(self):
        started, cpus = virtual_cluster(), our_cpus()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._references.mkdir(parents=True, exist_ok=True)
        shutil.copy(portable(directory()), self._references)
        (self.folder / 'site.py').write_text(_SITE.format(cpus=sorted(cpus)))
        for kind, node in itertools.product(('hog', 'messages'), self.nodes):     # of a benchmark that was killed
            (self.folder / kind / node).unlink(missing_ok=True)
        self._temporary = tempfile.TemporaryDirectory(prefix='plumbline-sweeps-')       # sockets have short paths
        try:
            self.cluster = started(self._temporary.name, NODES, cpus=[cpus] * NODES, favoured=True, extra=prepare(self.folder, cpus[-1])).start()
        except BaseException:
            self._temporary.cleanup()
            raise
        return self

    def __exit__(self, *_):
        self.cluster.stop()
        self._temporary.cleanup()

    def node(self, kind, number):
        '''The node that a fault is provoked on: another one each time, and the same whenever that is asked.'''
        return random.Random(f'{kind} {number}').choice(self.nodes)

    @property
    def capacity(self):
        '''``PLUMBLINE_CAPACITY`` of its sweeps: what whoever runs it says, else what the first sweep without a fault has measured.

        To measure the caches, on each node, takes half of a sweep's time; and here they are those of one host.
        '''
        kept = self.folder / 'capacity'
        return os.environ.get('PLUMBLINE_CAPACITY') or (kept.read_text() if kept.exists() else MEASURED)

    @property
    def environment(self):
        return {**super().environment, **self.cluster.variables, 'PLUMBLINE_CAPACITY': self.capacity, 'PATH': f"{self.commands}:{os.environ['PATH']}"}

    def measure_with(self, fault, kind, number):
        node = self.node(kind, number)
        with fault.provoke(self, node):
            return self.measure(kind, number, node)

    def measure(self, kind, number, node='', checks=CHECKS, options=SETTINGS, files=FILES):
        '''Sweep, and write what was found.

        :raises PlumblineError: if a node was not measured.
        '''
        started, before = time.time(), self._sweeps()
        done = subprocess.run(
            [*of_machines.PLUMBLINE, 'sweep', '-C', self.folder / 'site.py', '--partition', 'virtual:all',
             *(word for file in files for word in ('-c', ROOT / 'checks' / file)), '-n', checks, '--at-once', '1', '--poll', '0.5s', '--pause', '0s',
             '--', *MEASURE, *ONE_BY_ONE,
             *(word for setting in options.items() for word in ('-S', '{}={}'.format(*setting)))],
            env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        (self.folder / 'last-sweep.txt').write_text(done.stdout)
        new = self._sweeps() - before
        found = outliers.look(new.pop()) if new else None
        if found is None or found.unmeasured or found.frame.is_empty():
            raise PlumblineError(f'the sweep has not measured every node: see {self.folder}/last-sweep.txt')
        odd = found.odd.filter((pl.col('node') == node) & pl.col('confirmed').fill_null(True))
        blamed = odd['subsystem'].drop_nulls().unique(maintain_order=True)
        if kind == NULL and self.capacity == MEASURED and not os.environ.get('PLUMBLINE_CAPACITY'):
            (self.folder / 'capacity').write_text(capacity([archive.load_columns(one.archived, ['detail']) for one in found.nodes.values()]))
        return self.keep(Sweep(
            kind, number, node, done.returncode, found.name, list(dict.fromkeys([*found.named, *found.without])),
            [rule['name'] for rule in found.rules.get(node, ())], list(blamed), losses(found.frame, node) if node else {},
            started, round(time.time() - started, 1)))

    def _sweeps(self):
        return {path.parent for path in Path(self.folder, 'reports/sweeps').glob('*/sweep.json')}
