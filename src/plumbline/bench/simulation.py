'''The simulator on its own: CG and SP with latency added, natively, against the simulation of the same machine.'''

import math
from pathlib import Path

import numpy as np

from plumbline.bench import mpi
from plumbline.bench.common import Figure
from plumbline.mpi import pingpong, sensitivity
from plumbline.simulation import network, program

#: Latencies added, us: what they cost is a large part of the time of the small sizes.
_LATENCIES = (25, 100)

#: Applications of the size S, as their own programs name it.
_SMALL = {'cg': ('--class', 'S', '--variants', 'halving'), 'sp': ('--size', 12, '--variants', 'transposed')}

#: Message sizes that the network's latency and bandwidth are from, bytes; the applications send 8 to 6000.
_SIZES = (8, 4096)

#: How far the simulation may be from what it simulates.
_AGREE = 0.10


def _network(each, rate):
    '''The machine as a network file describes it, from a PingPong under the same library.'''
    measured = each.run('pingpong', '--variants', 'standard', '--size', ','.join(map(str, _SIZES)), '--latency', 0, '--samples', 50,
                        '--min-time', '0.005', preload='latency', PLUMBLINE_LATENCY_US=str(max(_LATENCIES)))
    curve = pingpong.curve(measured, 'standard')
    short, long = (float(np.median(curve[size])) * 1e6 for size in _SIZES)
    bandwidth = (_SIZES[1] - _SIZES[0]) / max(long - short, 1e-3)       # bytes per us are MB/s
    return network.Network(path='PingPong', source='', topology={'kind': 'switch'}, latency=short, hop_latency=0, bandwidth=bandwidth,
                           link_bandwidth=bandwidth, overhead=0, processes_per_node=1, memory=None, compute_rate=rate)


def _study(each, application, ranks, pairs):
    '''latency -> seconds and seconds in communication of a pass, samples; and Mflop/s of a rank without communication.'''
    records = each.run(application, *_SMALL[application], '--latency', ','.join(map(str, (0, *_LATENCIES))), '--samples', 10 * pairs,
                       '--min-time', '0.02', preload='latency', ranks=ranks, PLUMBLINE_LATENCY_US=str(max(_LATENCIES)))
    study, = sensitivity.studies(records).values()
    passes = {latency: (np.array(record['seconds']) / record['passes'], np.array(record['communication']) / record['passes'])
              for latency, record in study.items()}
    seconds, communication = passes[0]
    return passes, study[0]['options']['flops_declared'] / ranks / float(np.median(seconds - communication)) / 1e6


def figures(machine, pairs):
    '''Yield every :class:`Figure`, for each MPI and 2, 4, 8, ... ranks, as many as there are CPUs.'''
    if reason := program.missing():
        yield Figure('CG and SP simulated / natively', np.array([]), remark=reason)
        return
    simulated, stage = program.build(Path(machine.place) / 'simulation'), Path(machine.place) / 'stage'
    for each in mpi.machines(machine):
        for ranks in (2 ** k for k in range(1, int(math.log2(len(machine.cpus))) + 1)):
            for application in _SMALL:
                passes, rate = _study(each, application, ranks, pairs)
                where = _network(each, rate)
                found = {latency: program.run(simulated, where.changed(latency=where.latency + latency), application, ranks, stage, 'S')
                         for latency in passes}
                what = f'{each.family.title}, {application} on {ranks} ranks'
                remark = f'{where.latency:.2f} us, {where.bandwidth:.0f} MB/s, {rate:.0f} Mflop/s'
                for latency in _LATENCIES:
                    yield Figure(f'{what}, L = {latency} us: time that L adds, simulated / natively',
                                 (found[latency].seconds - found[0].seconds) / (passes[latency][0] - passes[0][0]), 1 - _AGREE, 1 + _AGREE, remark)
                    share = passes[latency][1] / passes[latency][0]
                    yield Figure(f'{what}, L = {latency} us: share of communication, simulated / natively',
                                 found[latency].percent / 100 / share, 1 - _AGREE, 1 + _AGREE, remark)
