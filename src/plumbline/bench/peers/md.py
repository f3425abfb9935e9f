'''Molecular dynamics against MD-Bench: 32,000 Lennard-Jones atoms from the same crystal, steps of atoms per second.

Its lists reach to 2.8 and are made every 20 steps, ours to 2.9 and every 10, so that no pair is missed.
'''

import re

from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns, mean
from plumbline.errors import PlumblineError
from plumbline.model import records

#: Cells along an edge; steps of a pass of ours, and of a run of theirs.
EDGE, STEPS, THEIRS = 20, 20, 200


def ours(machine, cpus):
    measured = machine.run('md', cpus, '--variants', 'all', '--size', EDGE, '--samples', 10)
    return {'liquid': {record['variant']: STEPS * record['size'] / records.per_pass(record) for record in measured}}


def mdbench(cpus):
    '''Of each build: of its lists of atoms, of its lists of clusters.'''
    rates = {}
    for program in found.programs('mdbench'):
        text = found.run([program, *(word for axis in 'xyz' for word in (f'-n{axis}', EDGE)), '-n', THEIRS], cpus)
        rate = re.search(r'Performance: ([0-9.]+) million atom updates per second', text)
        if not rate:
            raise PlumblineError(f'{program.name} printed no line Performance with a rate')
        rates[program.name] = 1e6 * float(rate[1])
    return {'liquid': rates}


def figures(machine, cpus, pairs):
    yield from by_turns(machine, 'molecular dynamics:', cpus, lambda cpus: ours(machine, cpus), [Peer('MD-Bench', mdbench, mean)], pairs)
