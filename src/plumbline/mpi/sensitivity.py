'''How much an application minds latency: pure functions on runs with latency injected (anderson1997, section 5.3).

A study is a dictionary latency (us, 0 among them) -> record of the same case, the records measured by turns.
'''

import numpy as np

from plumbline.model import records


def studies(measurements):
    '''Variant -> study, from the records of a program with the option ``--latency``.'''
    found: dict[str, dict[float, dict]] = {}
    for record in measurements:
        found.setdefault(record['variant'], {})[record['options']['latency']] = record
    return {variant: dict(sorted(study.items())) for variant, study in found.items()}


def share_of_communication(record):
    '''Communication over all time, mean over the ranks: samples.'''
    return records.per_pass(record, 'communication') / records.per_pass(record)


def slowdown(study, latency):
    '''Time with this latency added over that without, paired by rounds: samples.'''
    return records.per_pass(study[latency]) / records.per_pass(study[0])


def cost_per_microsecond(study):
    '''The slowdown's slope, 1/us: least squares through (0, 1) over all latencies, a sample for each round.

    :raises ValueError: if no latency above 0 was measured.
    '''
    latencies = np.array([latency for latency in study if latency > 0], dtype=float)
    if not latencies.size:
        raise ValueError('no latency was added')
    excess = np.stack([slowdown(study, latency) - 1 for latency in study if latency > 0], axis=1)
    return excess @ latencies / (latencies @ latencies)


def tolerance(study, cost):
    '''The latency (us) whose addition costs a share of ``cost`` (0.01: 1 %): samples, infinite where none is seen to cost anything.'''
    slope = cost_per_microsecond(study)
    return np.divide(cost, slope, out=np.full(slope.shape, np.inf), where=slope > 0)
