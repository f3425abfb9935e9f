'''Triad and copy in memory against TheBandwidthBenchmark and likwid-bench; any stream, in any level, against likwid-bench's.'''

import re
from typing import Any

import numpy as np

from plumbline.bench.common import Figure, attempted, threads_text
from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns, mean
from plumbline.errors import PlumblineError
from plumbline.likwid import bench as likwid_bench
from plumbline.model import records
from plumbline.system import topology

#: likwid-bench's family of kernels -> our program, its variants, TheBandwidthBenchmark's row.
STREAMS = {'triad': ('triad', ('nt', 'prefetch', 'simd', 'plain'), 'STriad'), 'copy': ('motion', ('copy_nt', 'copy_prefetch', 'copy'), 'Copy')}

#: Bytes per element of all arrays.
ELEMENT = {'load': 8, 'store': 8, 'copy': 16, 'triad': 32}

#: Passes of one process of ours and of TheBandwidthBenchmark, which reports the best.
PASSES = 20


def ours(machine, cpus, elements):
    '''Of the variants that run here, at least the last.'''
    return {family: {record['variant']: records.rate(record) for record in machine.run(
        program, cpus, '--variants', '|,'.join(variants), '--size', elements, '--samples', PASSES, '--passes', 1)}
        for family, (program, variants, _) in STREAMS.items()}


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


def _isas(machine):
    return likwid_bench.isas(machine.processor['arch'], machine.processor['platform'])


def likwid(machine, cpus, elements, rate):
    '''MB/s of the kernels of the two widest instruction sets, non-temporal stores or ordinary ones.

    :arg rate: about what they reach.
    '''
    rates = {}
    for family in STREAMS:
        kernels = {likwid_bench.kernel_name(family, isa, nontemporal=nontemporal) for isa in _isas(machine)[:2] for nontemporal in (True, False)}
        rates[family] = {kernel: machine.likwid(kernel, cpus, ELEMENT[family] * elements, rate) for kernel in sorted(filter(None, kernels))}
    return rates


def over_likwid(machine, cpus, pairs, program, variant, family, level, least):
    '''Yield a variant over likwid-bench's kernel that is as wide as the processor, with non-temporal stores where the variant has them.

    :arg family: of likwid-bench's kernels; :arg level: whose working set both have.
    '''
    what = f'{level}: {program} {variant}'

    def measured():
        isa, size = _isas(machine)[0], topology.working_set(machine.processor, level, cpus, machine.memory)
        kernel = likwid_bench.kernel_name(family, isa, nontemporal=variant.endswith('nt'))
        if not kernel:
            raise PlumblineError(f'likwid-bench has no {family} of that kind for {isa} code')

        def rates(cpus):
            record, = machine.run(program, cpus, '--variants', variant, '--size', size // ELEMENT[family], '--samples', 25)
            return {'': {variant: records.rate(record)}}
        rate = mean(rates(cpus)[''][variant])
        peer = Peer('likwid-bench', lambda cpus: {'': {kernel: machine.likwid(kernel, cpus, size, rate)}}, mean)
        return by_turns(machine, what, cpus, rates, [peer], pairs, least, kind=Figure)
    yield from attempted(f'{what}, {threads_text(cpus)}: ours / likwid-bench', measured)


def figures(machine, cpus, pairs):
    elements = topology.working_set(machine.processor, 'memory', cpus, machine.memory) // 16 // (8 * len(cpus)) * 8 * len(cpus)
    first = ours(machine, cpus, elements)
    rate = np.median(first['triad']['plain'])
    yield from by_turns(machine, 'memory', cpus, lambda cpus: ours(machine, cpus, elements), [
        Peer('TheBandwidthBenchmark', lambda cpus: bandwidth_benchmark(cpus, elements), np.max),
        Peer('likwid-bench', lambda cpus: likwid(machine, cpus, elements, rate), mean)], pairs)
