import math

import reframe as rfm
from reframe.core.builtins import variable

from plumbline.model import metrics, records
from plumbline.mpi import sensitivity
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Size

#: Of a pass (src/kernels/md).
STEPS = 20

#: Cells of the crystal that a process has of each edge of the box, at least: its part is as wide as forces reach (src/kernels/md/md.h).
REACH = 2.9 / 1.68

#: Beyond this a box takes minutes.
MOST_CELLS = 80


def longest_edge(ranks):
    '''How many processes are in a row of their grid, as Open MPI makes it: factors, the largest first, go where fewest are.'''
    edges, factors = [1, 1, 1], []
    for factor in range(2, ranks + 1):
        while ranks % factor == 0:
            ranks //= factor
            factors.append(factor)
    for factor in reversed(factors):
        edges[edges.index(min(edges))] *= factor
    return max(edges)


@rfm.simple_test
class md_ranks(rfm.RunOnlyRegressionTest, MpiCheck):
    '''How many steps of how many atoms does a molecular dynamics program do in a second on a three-dimensional grid of processes, and what share of
    the time is communication?'''

    source = 'hager2007, section 4: the class of IMD'
    subsystem = 'applications'
    program, ranks, transport = 'md', 'all', 'shm'
    counts_messages = False
    tags = {'acceptance'}

    #: Cells of the crystal along an edge of the box, of 4 atoms each; more, where the processes make a long grid (52: 13 x 2 x 2).
    cells = variable(Size, value=20, loggable=False)

    def options(self):
        if len(self.cpus) < 2:
            self.skip_test('one process sends no messages: there is one CPU', symptom='too_few_cpus')
        edge = longest_edge(len(self.cpus))
        cells = max(self.cells, math.ceil(REACH * edge) + 1)
        if cells > max(self.cells, MOST_CELLS):
            self.skip_test(f'{len(self.cpus)} processes make a grid with {edge} in a row: each has too thin a part of the box; give a number of them '
                           'that is a product of small ones, -S md_ranks.ranks=N')
        if cells > self.cells:
            self.note(f'{cells} cells along an edge of the box, for a grid with {edge} processes in a row')
        return ['--variants', 'all', '--size', cells]

    def evaluate(self):
        for record in self.measurements:
            yield metrics.Metric('figure_of_merit', record['variant'], STEPS * record['size'] / records.per_pass(record), record=record)
            yield metrics.Metric('communication', record['variant'], sensitivity.share_of_communication(record), record=record)
