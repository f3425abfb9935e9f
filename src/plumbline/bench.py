'''The figures that Plumbline holds itself to: its kernels against likwid-bench's, its timing, its overhead.

Everything is compared in alternating processes or interleaved in one, as medians of ratios; nothing here is an absolute
time.  A target that is missed is said, and the exit code is 1.
'''

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

import numpy as np
from reframe.utility.cpuinfo import cpuinfo

from plumbline import limits, records, topology
from plumbline.errors import PlumblineError
from plumbline.likwid import bench as likwid_bench
from plumbline.likwid import pin
from plumbline.settings import ROOT


@dataclass(frozen=True)
class Figure:
    '''One figure: what, the samples of its ratio, and the range that it should lie in.'''
    what: str
    samples: np.ndarray
    least: float
    most: float = float('inf')
    remark: str = ''

    @property
    def value(self):
        return float(np.median(self.samples))

    @property
    def met(self):
        return self.least <= self.value <= self.most


class Machine:
    '''The programs, built here, and the CPUs to run them on.'''

    def __init__(self, folder):
        self.processor = cpuinfo()
        allowed, _ = topology.allowed_cpus()
        self.cpus = topology.cpu_order(self.processor, allowed)
        self.memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
        self.folder = folder
        for command in (['cmake', '-S', str(ROOT / 'src'), '-B', folder], ['cmake', '--build', folder, '--parallel']):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise PlumblineError(f"{' '.join(command)} failed: {done.stderr.strip().splitlines()[-1:]}")

    def triad(self, cpus, *options):
        '''The measurement records of one run.'''
        command = [f'{self.folder}/bin/triad', '--threads', str(len(cpus)), '--cpus', ','.join(map(str, cpus)),
                   *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, **pin.omp_environment(cpus)})
        if done.returncode:
            raise PlumblineError(f'{command[0]} failed: {done.stderr.strip()}')
        return records.parse(done.stdout).measurements

    def likwid(self, kernel, cpus, size, iterations):
        '''Application bandwidth of one run of likwid-bench, MB/s.'''
        command = ['taskset', '-c', ','.join(map(str, cpus)), 'likwid-bench', '-t', kernel,
                   '-W', f'N:{size // 1000}kB:{len(cpus)}', '-i', str(iterations)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return likwid_bench.parse_bench(done.stdout + done.stderr)['rate']


def against_likwid(machine, variant, kernel, level, cpus, pairs):
    '''A variant of the triad over likwid-bench's kernel, in alternating processes.'''
    size = topology.working_set(machine.processor, level, cpus, machine.memory)
    run = lambda: float(np.median(records.rate(machine.triad(  # noqa: E731
        cpus, '--variants', variant, '--size', size // 32, '--samples', 25)[0])))
    iterations = max(2, int(0.3 * run() * 1e6 / size))
    ratios = [run() / machine.likwid(kernel, cpus, size, iterations) for _ in range(pairs)]
    return np.array(ratios)


def likwid_figures(machine, pairs):
    if not shutil.which('likwid-bench'):
        raise PlumblineError('likwid-bench is not installed: there is nothing to compare with')
    for cpus in (machine.cpus[:1], machine.cpus):
        threads = f'{len(cpus)} threads' if len(cpus) > 1 else '1 thread'
        for variant, kernel, level, least in (
                ('nt', 'triad_mem_avx_fma', 'memory', 1.10), ('simd', 'triad_avx_fma', 'L1', 0.90),
                ('simd', 'triad_avx_fma', 'L2', 0.90), ('simd', 'triad_avx_fma', 'L3', 0.90)):
            if level not in topology.levels(machine.processor):
                continue
            ratios = against_likwid(machine, variant, kernel, level, cpus, pairs)
            yield Figure(f'{level}, {threads}: {variant} / likwid-bench {kernel}', ratios, least)


def linearity(machine):
    '''Time of 2 P passes over that of P, interleaved: 2 if the timed loop does nothing but the loop.'''
    passes = 20000
    one, two = machine.triad(machine.cpus[:1], '--variants', 'plain', '--size', 1000, '--samples', 200,
                             '--passes', f'{passes},{2 * passes}')
    return Figure('time of 2 P passes / time of P passes', limits.paired_ratio(two, one), 1.98, 2.02)


def overhead(rows):
    '''Share of the wall time of an archived session that lay inside timed loops.'''
    import json
    info = json.loads(next(text for text in rows['session_info'] if text))
    timed = rows.unique(['test', 'run'])['timed_seconds'].fill_null(0).sum()
    return Figure('timed loops / wall time of the last session', np.array([timed / info['time_elapsed']]), 0.60,
                  remark='the report shows where the rest goes')


def figures(pairs):
    '''Yield every :class:`Figure`.'''
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        yield linearity(machine)
        yield from likwid_figures(machine, pairs)
