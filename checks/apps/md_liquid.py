import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import metrics, records
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Size
from plumbline.system import topology

#: Steps of a pass; atoms of a cell of the crystal; bytes that a step touches of each atom (src/kernels/md).
STEPS, OF_A_CELL, BYTES = 20, 4, 700

#: Cells along an edge where one thread's caches ask for no more: 16,384 atoms.
USUAL = 16


@rfm.simple_test
class md_liquid(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How many steps of how many atoms does a molecular dynamics program do in a second, with the lists of neighbours nearly in cache?

    ``figure_of_merit`` is atoms times steps per second.
    '''

    source = 'hager2007, section 4: the class of IMD; Lennard-Jones liquid, density 0.8442'
    subsystem = 'applications'
    program = 'md'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    #: Cells of the crystal along an edge of the box; 0: as many as :meth:`edge` says.
    cells = variable(Size, value=0, loggable=False)

    def edge(self):
        '''Cells along an edge: each thread has five times what its second-level cache holds, so that its part in that cache can be told
        from the rest.'''
        cache = topology.capacity(self.current_partition.processor, 'L2', self.cpus[:1])
        atoms = len(self.cpus) * 5 * cache / BYTES
        return max(USUAL, round((atoms / OF_A_CELL) ** (1 / 3) + 0.5))

    def options(self):
        return ['--variants', 'all', '--size', self.cells or self.edge(), '--threads', len(self.cpus), '--limit', '--min-time', '0.01']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        for record in metrics.kernels(group):
            yield metrics.Metric('figure_of_merit', record['variant'], STEPS * record['size'] / records.per_pass(record), record=record)
            yield metrics.flops(record, record['variant'])
        # The branches of the other loops are learnt where so few atoms come again and again: their work in the core is not known.
        has_core = any(record['role'] == 'core' and record['variant'] == 'simd' for record in group)
        parts = self.against_limit(group)['simd'].of_parts if has_core else None
        if parts is None:
            self.skip_metric('of_parts.simd', 'no loop over vectors in this build, or all data stay in the cache of the core')
        else:
            yield metrics.Metric('of_parts', 'simd', parts)
