'''The simulator on its own: CG and SP with latency added, natively, against the simulation of the same machine.'''

from pathlib import Path

import numpy as np

from plumbline.bench import mpi
from plumbline.bench.common import Figure, attempted
from plumbline.model import quantity, records
from plumbline.mpi import pingpong, sensitivity
from plumbline.simulation import network, program

#: Latencies added, us: what each is held against, then others.
_LATENCIES = (0, 5, 25, 100)

#: The same where ranks share CPUs: with less than the first they wait for the others' work rather than for messages.
_SHARED = (100, 400)

#: Numbers of ranks; those beyond the CPUs share them.
_RANKS = (2, 4, 8)

#: Applications of the size S, as their own programs name it.
_SMALL = {'cg': ('--class', 'S', '--variants', 'halving'), 'sp': ('--size', 12, '--variants', 'transposed')}

#: Message sizes that the network's latency and bandwidth are from, bytes; the applications send 8 to 6000.
_SIZES = (8, 4096)

#: How far the simulation may be from what it simulates.
_AGREE = 0.10


def _network(each, rate):
    '''The machine as a network file describes it, from a PingPong under the same library.'''
    measured = each.run('pingpong', '--variants', 'standard', '--size', ','.join(map(str, _SIZES)), '--latency', 0, '--samples', 50,
                        '--min-time', '0.005', preload='latency', PLUMBLINE_LATENCY_US='1')
    curve = pingpong.curve(measured, 'standard')
    short, long = (quantity.microseconds(float(np.median(curve[size]))) for size in _SIZES)
    bandwidth = (_SIZES[1] - _SIZES[0]) / max(long - short, 1e-3)       # bytes per us are MB/s
    return network.Network(path='PingPong', topology={'kind': 'switch'}, latency=short, hop_latency=0, bandwidth=bandwidth,
                           link_bandwidth=bandwidth, overhead=0, processes_per_node=1, memory=None, compute_rate=rate)


def _study(each, application, ranks, latencies, samples):
    '''latency -> seconds and seconds in communication of a pass, samples; and Mflop/s of a rank without communication.'''
    measured = each.run(application, *_SMALL[application], '--latency', ','.join(map(str, latencies)), '--samples', samples,
                       '--min-time', '0.02', preload='latency', ranks=ranks, PLUMBLINE_LATENCY_US=str(max(latencies)))
    study, = sensitivity.studies(measured).values()
    passes = {latency: (records.per_pass(record), records.per_pass(record, 'communication')) for latency, record in study.items()}
    seconds, communication = passes[latencies[0]]
    return passes, quantity.per_second(study[latencies[0]]['options']['flops_declared'] / ranks, float(np.median(seconds - communication)))


def _compared(each, simulated, stage, application, ranks, samples):
    '''Yield the figures of one application on so many ranks.'''
    shared = ranks > len(each.cpus)
    base, *others = latencies = _SHARED if shared else _LATENCIES
    passes, rate = _study(each, application, ranks, latencies, samples)
    where = _network(each, rate)
    found = {latency: program.run(simulated, where.changed(latency=where.latency + latency), application, ranks, stage, 'S') for latency in latencies}
    what = f'{each.family.title}, {application} on {ranks} ranks' + f' of {len(each.cpus)} CPUs' * shared
    remark = f'{where.latency:.2f} us, {where.bandwidth:.0f} MB/s, {rate:.0f} Mflop/s'
    for latency in others:
        yield Figure(f'{what}, L = {latency} us: time that it adds to that of {base} us, simulated / natively',
                     (found[latency].seconds - found[base].seconds) / (passes[latency][0] - passes[base][0]), 1 - _AGREE, 1 + _AGREE, remark)
        if not shared:      # where they do, communication is mostly waiting for the work of others
            yield Figure(f'{what}, L = {latency} us: share of communication, simulated / natively',
                         found[latency].percent / 100 / (passes[latency][1] / passes[latency][0]), 1 - _AGREE, 1 + _AGREE, remark)


def figures(machine, pairs):
    '''Yield every :class:`Figure`, for each MPI and number of ranks.'''
    if reason := program.missing():
        yield Figure('CG and SP simulated / natively', np.array([]), remark=reason)
        return
    simulated, stage = program.build(Path(machine.place) / 'simulation'), Path(machine.place) / 'stage'
    for each in mpi.machines(machine):
        for ranks in _RANKS:
            if ranks > len(each.cpus) and isinstance(each.family.shared, str):
                yield Figure(f'{each.family.title}, {ranks} ranks', np.array([]), remark=f'{len(each.cpus)} CPUs, and {each.family.shared}')
                continue
            for application in _SMALL:
                yield from attempted(f'{each.family.title}, {application} on {ranks} ranks', _compared, each, simulated, stage, application, ranks,
                                     10 * pairs)
