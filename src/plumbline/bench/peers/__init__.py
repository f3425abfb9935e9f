'''Each kernel against the best of its kind: public programs and libraries for the same work, by turns, with one thread and all.

Same sizes, CPUs and huge pages, in one state of the machine.  Ours, TheBandwidthBenchmark, HPTT's driver, MKL's,
pystencils' and lbmpy's verify what they have computed; likwid-bench, Spatter and multichase verify nothing.
'''

from plumbline.bench.common import attempted, teams, threads_text
from plumbline.bench.peers import chase, cubes, md, patterns, spmv, streams, transposition

COMPARISONS = (streams, cubes, spmv, transposition, patterns, chase, md)


def figures(machine, pairs):
    '''Yield every :class:`~plumbline.bench.peers.turns.Comparison`.'''
    for comparison in COMPARISONS:
        for cpus in teams(machine):
            yield from attempted(f"peers' {comparison.__name__.rpartition('.')[2]}, {threads_text(cpus)}", comparison.figures, machine, cpus, pairs)
