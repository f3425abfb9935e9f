'''Triad and copy in memory against TheBandwidthBenchmark and likwid-bench.'''

import re
from typing import Any

import numpy as np

from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns, mean
from plumbline.errors import PlumblineError
from plumbline.likwid import bench as likwid_bench
from plumbline.model import records
from plumbline.system import topology

#: likwid-bench's family of kernels -> our program, its variants, bytes per element, TheBandwidthBenchmark's row.
STREAMS = {'triad': ('triad', ('nt', 'prefetch', 'simd', 'plain'), 32, 'STriad'),
           'copy': ('motion', ('copy_nt', 'copy_prefetch', 'copy'), 16, 'Copy')}

#: Passes of one process of ours and of TheBandwidthBenchmark, which reports the best.
PASSES = 20

#: Seconds that a process of likwid-bench measures.
SECONDS = 0.3


def ours(machine, cpus, elements):
    return {family: {record['variant']: records.rate(record) for record in machine.run(
        program, cpus, '--variants', ','.join(variants), '--size', elements, '--samples', PASSES, '--passes', 1)}
        for family, (program, variants, *_) in STREAMS.items()}


def bandwidth_benchmark(cpus, elements):
    '''MB/s of all builds that there are: of gcc's and other compilers', with and without its intrinsics.'''
    rates: dict[str, dict[str, Any]] = {family: {} for family in STREAMS}
    for program in found.programs('bwbench'):
        text = found.run([program, '-s', elements, '-n', PASSES], cpus)
        if 'Solution Validates' not in text:
            raise PlumblineError(f'{program}: its solution does not validate')
        for family, (*_, row) in STREAMS.items():
            printed = re.search(rf'^{row} +([0-9.]+)', text, re.MULTILINE)
            if not printed:
                raise PlumblineError(f'{program} printed no line {row} with a rate; give the current version of TheBandwidthBenchmark')
            rates[family][program.name] = 1e3 * float(printed[1])
    return rates


def likwid(machine, cpus, elements, rate):
    '''MB/s of the kernels of the two widest instruction sets, non-temporal stores or ordinary ones.

    :arg rate: about what they reach.
    '''
    isas = likwid_bench.isas(machine.processor['arch'], machine.processor['platform'])[:2]
    rates = {}
    for family, (_, _, element, _) in STREAMS.items():
        kernels = {likwid_bench.kernel_name(family, isa, nontemporal=nontemporal) for isa in isas for nontemporal in (True, False)}
        size = element * elements
        rates[family] = {kernel: machine.likwid(kernel, cpus, size, max(2, int(SECONDS * rate * 1e6 / size)))
                       for kernel in sorted(filter(None, kernels))}
    return rates


def figures(machine, cpus, pairs):
    elements = topology.working_set(machine.processor, 'memory', cpus, machine.memory) // 16 // (8 * len(cpus)) * 8 * len(cpus)
    first = ours(machine, cpus, elements)
    rate = np.median(first['triad']['plain'])
    yield from by_turns(machine, 'memory', cpus, lambda cpus: ours(machine, cpus, elements), [
        Peer('TheBandwidthBenchmark', lambda cpus: bandwidth_benchmark(cpus, elements), np.max),
        Peer('likwid-bench', lambda cpus: likwid(machine, cpus, elements, rate), mean)], pairs)
