'''Sparse matrix times vector against MKL, on matrices of the same rows, row lengths and kinds of columns.'''

import re

import numpy as np

from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns
from plumbline.model import quantity, records
from plumbline.system import topology

DRIVER = 'mkl_spmv'

#: Nonzeros of a row, on average, of the generator as it is by default.
NONZEROS = 133

VARIANTS = ('unroll', 'stream', 'simd', 'sell', 'sell_stream', 'sell_simd')


def ours(machine, cpus, rows, band):
    return {columns: {record['variant']: records.rate(record, 'flops') for record in machine.run(
        'spmv', cpus, '--variants', ','.join(VARIANTS), '--size', rows, '--columns', columns, '--samples', 10, *options)}
        for columns, options in (('random', ()), ('banded', ('--band', band)))}


def mkl(machine, cpus, rows, band):
    '''Mflop/s, two per nonzero, of the median sample.'''
    rates = {}
    for columns in ('random', 'banded'):
        text = found.driver(machine, 'mkl', DRIVER, cpus, columns, rows, NONZEROS, band, 0.5, ','.join(map(str, cpus)))
        nonzeros = int(re.findall('nonzeros ([0-9]+)', text)[0])
        rates[columns] = {'mkl_sparse_d_mv': quantity.per_second(2 * nonzeros, np.median(found.seconds(text, DRIVER)))}
    return rates


def figures(machine, cpus, pairs):
    rows = topology.working_set(machine.processor, 'memory', cpus, machine.memory) // (12 * NONZEROS + 24)
    band = max(1, topology.capacity(machine.processor, 'L1', cpus[:1]) // 256)      # as bench/spmv.py
    yield from by_turns(machine, 'memory: spmv', cpus, lambda cpus: ours(machine, cpus, rows, band),
                        [Peer('MKL', lambda cpus: mkl(machine, cpus, rows, band))], pairs)
