'''Each kernel against the best of its kind: public programs and libraries for the same work, by turns, with one thread and all.

Same sizes, CPUs and huge pages, in one state of the machine.  Ours, TheBandwidthBenchmark, HPTT's driver, MKL's,
pystencils' and lbmpy's verify what they have computed; likwid-bench, Spatter and multichase verify nothing.
'''

import numpy as np

from plumbline.bench.common import Figure, threads_text
from plumbline.bench.peers import chase, cubes, md, patterns, spmv, streams, transposition
from plumbline.errors import PlumblineError

COMPARISONS = (streams, cubes, spmv, transposition, patterns, chase, md)


def figures(machine, pairs):
    '''Yield every :class:`~plumbline.bench.peers.turns.Comparison`.'''
    teams = [machine.cpus[:1], machine.cpus] if len(machine.cpus) > 1 else [machine.cpus]
    for comparison in COMPARISONS:
        for cpus in teams:
            try:
                yield from comparison.figures(machine, cpus, pairs)
            except PlumblineError as error:     # the other kernels' figures are not lost
                yield Figure(f"peers' {comparison.__name__.rpartition('.')[2]}, {threads_text(cpus)}", np.array([]), remark=str(error))
