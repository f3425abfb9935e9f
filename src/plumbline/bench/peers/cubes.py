'''The Jacobi sweep and the lattice Boltzmann step of a cube against pystencils and lbmpy, which generate theirs.'''

import itertools
from typing import NamedTuple

import numpy as np

from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns
from plumbline.model import quantity, records

_STORES = ('nontemporal', 'ordinary')


class Cube(NamedTuple):
    '''
    :attr edge: points or cells; :attr flops: of all of them, as our loops have them.
    :attr ways: of the driver: stores, and rows of a tile of its loops (0: none) where it has such.
    '''
    library: str
    driver: str
    edge: int
    flops: int
    ways: tuple


#: Our program -> :class:`Cube`.
CUBES = {'jacobi': Cube('pystencils', 'pystencils_jacobi', 300, 8 * 298**3, tuple(itertools.product(_STORES, (0, 16)))),
         'lbm': Cube('lbmpy', 'lbmpy_step', 128, 163 * 128**3, tuple((stores,) for stores in _STORES))}


def ours(machine, cpus, program):
    edge = CUBES[program].edge
    return {f'{edge}^3': {record['variant']: records.rate(record, 'flops') for record in machine.run(
        program, cpus, '--variants', 'all', '--size', edge, '--samples', 10)}}


def theirs(machine, cpus, cube):
    '''Mflop/s of the median sample.'''
    rates = {}
    for stores, *tiles in cube.ways:
        text = found.driver(machine, cube.library, cube.driver, cpus, cube.edge, 0.5, ','.join(map(str, cpus)), stores, *tiles)
        rates[stores + ''.join(f', tiles of {rows}' for rows in tiles if rows)] = quantity.per_second(
            cube.flops, np.median(found.seconds(text, cube.driver)))
    return {f'{cube.edge}^3': rates}


def figures(machine, cpus, pairs):
    for program, cube in CUBES.items():
        yield from by_turns(machine, program, cpus, lambda cpus, program=program: ours(machine, cpus, program),
                            [Peer(cube.library, lambda cpus, cube=cube: theirs(machine, cpus, cube))], pairs)
