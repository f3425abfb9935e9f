import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.model import limits, metrics, quantity
from plumbline.mpi.check import MpiCheck
from plumbline.mpi.sensitivity import share_of_communication
from plumbline.rfm.variables import Size, Words
from plumbline.system import topology

#: Application -> program, and options of those whose size is fixed: by the NAS benchmarks, or 131,072 atoms.
APPLICATIONS = {'triad': ('triad-ranks', ''), 'lbm': ('lbm-slabs', ''), 'cg': ('cg', '--class A'), 'sp': ('sp', '--size 64'),
                'md': ('md', '--size 32')}

#: Ranks, at most: beyond, forces reach further than into the next part of the box, the matrix has no row, and the grid no two points, for each.
MOST = {'md': 4096, 'cg': 14000, 'sp': 32**3}

#: Bytes of a rank's arrays: twice the L3 of any processor in use, of which a hypervisor may tell less, and nobody has measured what is ours.
LEAST = 2**30

#: Of a cell of the lattice Boltzmann fluid: 19 populations in two lattices.
BYTES = 2 * 19 * 8


@rfm.simple_test
class app_scaling(rfm.RunOnlyRegressionTest, MpiCheck):
    '''How far do a lattice Boltzmann fluid, conjugate gradients, an implicit solver, molecular dynamics, and the vector triad, which
    sends nothing, scale: from one core over the first socket to the whole node, filled in that order, and from one node to all, with one
    problem for all ranks (strong) or as much for each (weak)?'''

    source = 'hager2007, section 3.1, and section 4.2, figures 7 to 10'
    subsystem = 'applications'
    study = parameter(['triad_weak', 'lbm_strong', 'lbm_weak', 'cg_strong', 'sp_strong', 'md_strong'], type=str)
    over = parameter(['node', 'nodes'], type=str)
    ranks = 'all'
    transport = 'default'
    counts_messages = False
    tags = {'acceptance'}

    #: Cells along an edge of the fluid's box, the source's; planes of cells for each rank of the weak kind.
    edge, each = variable(Size, value=128), variable(Size, value=32)

    #: Options of a NAS benchmark, such as a smaller class for a quick look, or of the molecular dynamics (``--size CELLS``).
    size = variable(Words, value='', loggable=False)

    @run_after('init')
    def choose_program_and_nodes(self):
        self.application, self.kind = self.study.split('_')
        self.program, fixed = APPLICATIONS[self.application]
        self.size = self.size or fixed
        self.nodes = 1 if self.over == 'node' else 0

    def counts(self):
        '''Ranks that work, by turns: the NAS benchmarks and the box of atoms are cut for powers of two, the fluid's box has a plane for each.'''
        node, most = len(self.all_cpus), self.edge if self.study == 'lbm_strong' else len(self.cpus)
        counts = topology.thread_counts(self.all_cpus, self.current_partition.processor) if self.over == 'node' else [
            node * n for n in sorted({2**i for i in range(self.nodes.bit_length())} | {self.nodes})]
        most = min(most, MOST.get(self.application, most))
        return [n for n in counts if n <= most and (self.size == '' or n & (n - 1) == 0)]

    def options(self):
        counts = self.counts()
        if len(counts) < 2:
            self.skip_test(topology.ONE_CPU if len(self.cpus) == 1 else f'of {len(self.cpus)} ranks in all, {self.study} runs on {counts} alone',
                           symptom='too_few_cpus')
        working = ['--working', ','.join(map(str, counts))]
        if self.application == 'triad':
            # Each rank's arrays are in memory though it works alone.
            alone = self.memory_bytes or max(LEAST, self.working_set('memory', self.all_cpus[:1]))
            most = topology.MEMORY_SHARE * (self.memory or float('inf'))
            return ['--size', int(min(alone, most / len(self.all_cpus)) // 32), *working]
        if self.application != 'lbm':
            return [*self.size.split(), *working]
        # All boxes are in memory at once, and the first node's ranks work in each of them.
        planes = [(self.each * count if self.kind == 'weak' else self.edge) * min(1, len(self.all_cpus) / count) for count in counts]
        needed = BYTES * self.edge**2 * sum(planes)
        if self.memory and needed > topology.MEMORY_SHARE * self.memory:
            self.skip_test(f'boxes for {counts} ranks take {quantity.size(needed)} of the first node, more than a quarter of its memory')
        return ['--size', self.edge, *(['--planes-each', self.each] if self.kind == 'weak' else []), *working]

    def evaluate(self):
        found = {record['options']['working']: record for record in self.measurements}
        first = found[min(found)]
        for count, record in sorted(found.items()):
            yield metrics.flops(record, f'{count}')
            if 'communication' in record:
                yield metrics.Metric('communication', f'{count}', share_of_communication(record), record=record)
            if record is not first:
                ratio = limits.paired_ratio(record, first, 'flops') * min(found) / count
                yield metrics.Metric('efficiency', 'all' if count == len(self.cpus) else f'{count}', ratio, unjudged=self.disturbed())
