'''What the figures of all kernels share: the figure, and the machine that it is measured on.'''

import functools
import importlib.util
import math
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from reframe.utility.cpuinfo import cpuinfo

from plumbline.errors import PlumblineError
from plumbline.likwid import bench_output, pin
from plumbline.model import limits, probes, quantity, records, states
from plumbline.settings import ROOT
from plumbline.system import cgroup, commands, topology

#: Environment in which other programs' large arrays are in transparent huge pages, as ours (glibc 2.35 and later).
HUGE_PAGES = {'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1'}

#: Seconds that a process of likwid-bench measures.
_SECONDS = 0.3

#: Standard output of a command, which may take as long as it does.
output_of = functools.partial(commands.ask, seconds=math.inf, named=None)


@dataclass(frozen=True)
class Figure:
    '''One figure: what, the samples of its ratio, and the range that it should lie in, if it has a target.  No samples: not measured, and why.'''
    what: str
    samples: np.ndarray
    least: float = float('-inf')
    most: float = float('inf')
    remark: str = ''

    @property
    def value(self):
        return float(np.median(self.samples))

    @property
    def met(self):
        return bool(len(self.samples)) and self.least <= self.value <= self.most

    @property
    def state(self):
        if math.isinf(self.least) and math.isinf(self.most):
            return 'no target'
        return 'met' if self.met else 'MISSED'

    @property
    def line(self):
        '''For people: median and quartiles, and what was asked for.'''
        if not len(self.samples):
            return f'NOT MEASURED  {self.what}: {self.remark}'
        low, high = np.quantile(self.samples, [0.25, 0.75])
        wanted = [f'{word} {bound:g}' for word, bound in (('at least', self.least), ('at most', self.most)) if math.isfinite(bound)]
        told = ', '.join([f'{self.value:.3f} ({low:.3f} .. {high:.3f}, {len(self.samples)} samples)', *wanted, *filter(None, [self.remark])])
        return f'{self.state:<12}  {self.what}: {told}'


class Machine:
    '''The programs, built here when they are first asked for, and the CPUs to run them on.

    :attr place: the folder that all is built in, and that has room for more.
    '''

    def __init__(self, place):
        self.processor = cpuinfo()
        allowed, _ = cgroup.allowed_cpus()
        self.cpus = topology.cpu_order(self.processor, allowed)
        self.memory = cgroup.memory()
        self.place = place

    @functools.cached_property
    def folder(self):
        '''The folder of the build.'''
        output_of(['cmake', '-S', ROOT / 'src', '-B', self.place])
        output_of(['cmake', '--build', self.place, '--parallel'])
        return self.place

    def run(self, program, cpus, *options):
        '''The measurement records of one run of a native program.'''
        command = [f'{self.folder}/bin/{program}', '--threads', len(cpus), '--cpus', ','.join(map(str, cpus)), *options]
        return records.parse(output_of(command, env={**os.environ, **pin.omp_environment(cpus)})).measurements

    def state(self, cpus):
        '''The state that the machine is in (:mod:`plumbline.model.states`); of one thread none is known.'''
        record, = self.run('motion', cpus, '--variants', 'copy', '--size', 1000 * len(cpus), '--samples', 10, '--passes', 1)
        return {name: float(np.nanmedian(values)) for name, values in probes.features(record).items()
                if name.startswith(states.DEFINED_BY) and np.isfinite(values).any()}

    def variants(self, program, start=''):
        '''Names of a program's variants that begin so and run here.'''
        listed = output_of([f'{self.folder}/bin/{program}', '--list']).splitlines()
        return list(dict.fromkeys(line.split()[0] for line in listed if line.startswith(f'  {start}')
                                  and not line.endswith((' [not in this build]', ' [not on this CPU]'))))

    def likwid(self, kernel, cpus, size, rate):
        '''Application bandwidth of one run of likwid-bench, MB/s, a mean: the bytes of all its passes by their time.

        :arg rate: about what it reaches: it runs for :data:`_SECONDS`.
        :raises PlumblineError: also where it ran on other CPUs.
        '''
        if not shutil.which('likwid-bench'):
            raise PlumblineError('likwid-bench is not installed: there is nothing to compare with')
        amount = f'{size}B' if size < 2**31 else f'{size // 1000}kB'      # it reads the number as a 32-bit integer
        command = ['taskset', '-c', ','.join(map(str, cpus)), 'likwid-bench', '-t', kernel,
                   '-W', f'N:{amount}:{len(cpus)}', '-i', str(max(2, int(_SECONDS * rate * 1e6 / size)))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **HUGE_PAGES})
        found = bench_output.parse_bench(done.stdout + done.stderr)
        if sorted(found['hwthreads']) != sorted(cpus):
            raise PlumblineError(f"likwid-bench ran on CPUs {found['hwthreads']} instead of {cpus}: a topology file of LIKWID or "
                                 'LIKWID_IGNORE_CPUSET may be in the way')
        return found['rate']


def attempted(what, figures, *arguments):
    '''Yield the figures of a generator function; what cannot be measured is told with the reason, and the others' figures are not lost.'''
    try:
        yield from figures(*arguments)
    except PlumblineError as error:
        yield Figure(what, np.array([]), remark=str(error))


def teams(machine):
    '''The CPUs of one thread, and of all.'''
    return [machine.cpus[:1], machine.cpus][:len(machine.cpus)]


def best_of_limit(machine, program, cpus, options, pairs, least):
    '''The best variant's share of the limit of its traffic, in memory: the medians of some runs.'''
    runs = [limits.of_limit(machine.run(program, cpus, *options, '--limit', '--samples', 25)) for _ in range(pairs)]
    shares = {variant: np.array([run[variant].value for run in runs]) for variant in runs[0]}
    best = max(shares, key=lambda variant: np.median(shares[variant]))
    return Figure(f'memory, {threads_text(cpus)}: {program} {best} / limit of its traffic', shares[best], least)


def threads_text(cpus):
    return quantity.several(len(cpus), 'thread')


def stand_ins(folder, scripts):
    '''A PATH with scripts in front of it.

    :arg scripts: name of a command -> its script.
    '''
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts.items():
        (folder / name).write_text(f'#!/bin/sh\n{text}\n')
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def virtual_cluster():
    '''The class of the virtual cluster, which is one of the tests' and in no package.

    :raises PlumblineError: where there are no tests.
    '''
    folder = ROOT / 'tests/cluster'
    if not folder.exists():
        raise PlumblineError(f'the virtual cluster needs a clone of the repository: there is no {folder}')
    for name in ('database', 'cluster'):        # which imports the one before
        if name not in sys.modules:
            spec: Any = importlib.util.spec_from_file_location(name, folder / f'{name}.py')
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
    return sys.modules['cluster'].Cluster
