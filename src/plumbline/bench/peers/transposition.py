'''The transpose against HPTT, planned by measuring.'''

from typing import Any

import numpy as np

from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns
from plumbline.model import quantity, records

SIZES = (1025, 2048, 4096, 8192)

#: Seconds that a process of HPTT's driver measures.
SECONDS = 1


def ours(machine, cpus, sizes):
    rates: dict[int, dict[str, Any]] = {size: {} for size in sizes}
    for record in machine.run('transpose', cpus, '--variants', ','.join(machine.variants('transpose', 'blocked')),
                              '--size', ','.join(map(str, sizes)), '--samples', 10):
        rates[record['size']][record['variant']] = records.rate(record)
    return rates


def hptt(cpus, sizes):
    '''MB/s, 16 bytes per element, of the median sample.'''
    return {size: {program.name: quantity.per_second(16 * size**2, np.median(found.seconds(
        found.run([program, size, len(cpus), SECONDS], cpus), program.name))) for program in found.programs('hptt_driver')}
        for size in sizes}


def figures(machine, cpus, pairs):
    sizes = [size for size in SIZES if 16 * size**2 <= machine.memory / 4]
    yield from by_turns(machine, 'transpose', cpus, lambda cpus: ours(machine, cpus, sizes), [Peer('HPTT', lambda cpus: hptt(cpus, sizes))], pairs)
