import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import limits, metrics, quantity, records
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Size
from plumbline.system import topology

#: Of a cell: 19 populations in two lattices.
BYTES = 2 * 19 * 8


@rfm.simple_test
class lbm_memory(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How many cells of a lattice Boltzmann fluid (D3Q19) does memory let us update, whose 19 populations are 38 streams, and what does it
    cost to move and to collide them in loops of their own?'''

    source = 'hager2007, section 4: TRATS'
    subsystem = 'memory'
    program = 'lbm'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    #: Edge of the source's cube, in cells.
    source_edge = variable(Size, value=128)

    def options(self):
        large = int((self.elements('memory', BYTES) + 0.5) ** (1 / 3)) // 8 * 8     # a row: whole cache lines
        large += 8 * (large == self.source_edge)        # one size is one case
        self.intended[large] = 'memory'
        self.sizes = {large: 'memory', self.source_edge: 'source'}
        if self.memory and BYTES * self.source_edge**3 > topology.MEMORY_SHARE * self.memory:
            self.skip_metric('all of source', f'two lattices of {self.source_edge}^3 cells take more than a quarter of the memory',
                             ['source'])
            self.sizes = {large: 'memory'}
        return ['--variants', 'all', '--size', ','.join(map(str, self.sizes)), '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            found = {record['variant']: record for record in metrics.kernels(group)}
            size = self.sizes[found['fused']['size']]
            paired = self.against_limit(group)
            for variant, record in found.items():
                yield from metrics.of_machine(paired[variant], f'{variant}.{size}')
                # Million cell updates per second, as such codes say it.
                cells = record['size']**2 * record['options']['planes-used']
                yield metrics.Metric('figure_of_merit', f'{variant}.{size}', quantity.per_second(cells, records.per_pass(record)), record=record)
            yield metrics.Metric('split_over_fused', size, limits.paired_ratio(found['split'], found['fused'], 'flops'))
