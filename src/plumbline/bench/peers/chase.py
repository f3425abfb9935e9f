'''The latency of the pointer chase against multichase's: the two should agree, nobody can be ahead.'''

from plumbline.bench.common import Figure
from plumbline.bench.peers import found
from plumbline.bench.peers.turns import Peer, by_turns, mean
from plumbline.model import records
from plumbline.system import topology

LINE = 64

#: Half seconds that a process of multichase measures; the length of ours, the same.
HALVES = 4


def ours(machine, cpus, lines):
    record, = machine.run('chase', cpus, '--variants', 'dense', '--size', lines, '--samples', 20, '--min-time', HALVES / 2 / 20)
    return {'chase': {'dense': records.rate(record)}}


def multichase(cpus, lines):
    '''MB/s of loads of 8 bytes, of the average latency; all of the memory is one cycle, in huge pages.'''
    size = lines * LINE
    return {'chase': {program.name: 8e3 / float(found.run([program, '-a', '-H', '-m', size, '-s', LINE, '-T', size, '-n', HALVES], cpus))
                      for program in found.programs('multichase')}}


def figures(machine, cpus, pairs):
    '''With one thread: latency is one's own.'''
    if len(cpus) == 1:
        lines = topology.working_set(machine.processor, 'memory', cpus, machine.memory) // LINE
        yield from by_turns(machine, 'memory: latency of', cpus, lambda cpus: ours(machine, cpus, lines),
                            [Peer('multichase', lambda cpus: multichase(cpus, lines), mean)], pairs, 0.97, 1.03, Figure)
