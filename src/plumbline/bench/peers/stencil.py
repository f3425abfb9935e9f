'''The Jacobi sweep of a cube against pystencils.'''

import itertools
from pathlib import Path

import numpy as np

from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns
from plumbline.model import quantity, records

EDGE = 300

DRIVER = Path(__file__).parent / 'drivers/pystencils_jacobi.py'

#: Rows of a tile of pystencils' loops; 0: none.
TILES = (0, 16)


def ours(machine, cpus):
    return {f'{EDGE}^3': {record['variant']: records.rate(record, 'flops') for record in machine.run(
        'jacobi', cpus, '--variants', 'all', '--size', EDGE, '--samples', 10)}}


def pystencils(machine, cpus):
    '''Mflop/s, 8 per inner point, of the median sample.'''
    python, rates = found.python(machine, 'pystencils'), {}
    for stores, tile in itertools.product(('nontemporal', 'ordinary'), TILES):
        text = found.run([python, DRIVER, EDGE, 0.5, ','.join(map(str, cpus)), stores, tile], cpus)
        rate = quantity.per_second(8 * (EDGE - 2)**3, np.median(found.seconds(text, DRIVER.name)))
        rates[f'{stores}, tiles of {tile}' if tile else stores] = rate
    return {f'{EDGE}^3': rates}


def figures(machine, cpus, pairs):
    yield from by_turns(machine, 'jacobi', cpus, lambda cpus: ours(machine, cpus),
                        [Peer('pystencils', lambda cpus: pystencils(machine, cpus))], pairs)
