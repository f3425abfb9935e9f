'''The lattice Boltzmann step of a cube against lbmpy.'''

from pathlib import Path

import numpy as np

from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns
from plumbline.model import quantity, records

#: Cells of an edge; operations of a cell as our loops have them.
EDGE, FLOPS = 128, 163

DRIVER = Path(__file__).parent / 'drivers/lbmpy_step.py'


def ours(machine, cpus):
    return {f'{EDGE}^3': {record['variant']: records.rate(record, 'flops') for record in machine.run(
        'lbm', cpus, '--variants', 'all', '--size', EDGE, '--samples', 10)}}


def lbmpy(machine, cpus):
    '''Mflop/s of the median sample.'''
    python, rates = found.python(machine, 'lbmpy'), {}
    for stores in ('nontemporal', 'ordinary'):
        text = found.run([python, DRIVER, EDGE, 0.5, ','.join(map(str, cpus)), stores], cpus)
        rates[stores] = quantity.per_second(FLOPS * EDGE**3, np.median(found.seconds(text, DRIVER.name)))
    return {f'{EDGE}^3': rates}


def figures(machine, cpus, pairs):
    yield from by_turns(machine, 'lbm', cpus, lambda cpus: ours(machine, cpus),
                        [Peer('lbmpy', lambda cpus: lbmpy(machine, cpus))], pairs)
