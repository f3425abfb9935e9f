import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import limits, metrics
from plumbline.mpi import memory_logp, messages
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Size
from plumbline.system.topology import MEMORY_SHARE

#: Dimensions of the matrix, and what a process holds of it: the matrix, what has come, what has been packed.
SIZES, BYTES = (64, 256, 1024, 2048, 4096), 3 * 8

#: Ways to send, and packing without a message.
SENT = ('datatype', 'packed', 'blocked', 'mpi_pack', 'library', 'contiguous')
LOCAL = ('copy', 'pack_datatype', 'pack_hand', 'pack_blocked', 'pack_library', 'unpack_datatype', 'unpack_library')

#: What is compared with what the MPI itself does.
OVER_MPI = {'blocked': 'datatype', 'library': 'datatype', 'pack_library': 'pack_datatype', 'unpack_library': 'unpack_datatype'}


@rfm.simple_test
class datatype_transpose(rfm.RunOnlyRegressionTest, MpiCheck):
    '''What does the MPI's own packing of a matrix transpose cost against packing by hand and against contiguous data, and
    how much of it does the packing library save?'''

    source = 'byna2003, sections 3, 4 and 6'
    subsystem = 'messages'
    program = 'datatype'
    preload = 'pack'
    samples = 15
    transport = parameter(['shm', 'tcp'], type=str)
    tags = {'upgrade', 'acceptance'}

    #: Entries of the first-level TLB, as the check ``tlb`` finds them; 0: the packing library's own cautious number.
    tlb_entries = variable(Size, value=0, loggable=False)

    def options(self):
        if self.tlb_entries:
            self.env_vars['PLUMBLINE_PACK_TLB'] = self.tlb_entries
        room = self.memory_bytes or (MEMORY_SHARE * self.memory if self.memory else np.inf)
        sizes = [size for size in SIZES if len(self.cpus) * BYTES * size**2 <= room]
        for size in sorted(set(SIZES) - set(sizes)):
            self.skip_metric(f'all of {size} x {size}', 'the matrices would need more than their share of the memory', [str(size)])
        self.note('base pages, as programs get them that ask for no others; the packing library asks huge ones for its own '
                  f"buffers, and decides by {self.tlb_entries or 'its own number of'} entries of the TLB")
        return ['--variants', ','.join(SENT + LOCAL), '--size', ','.join(map(str, sizes or SIZES[:1])), '--pages', 'base', '--min-time', '0.005']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            of, subject = {record['variant']: record for record in group}, f"{group[0]['size']}.{self.transport}"
            contiguous = messages.seconds(of['contiguous'])
            for variant in SENT:
                yield metrics.bandwidth(of[variant], f'{variant}.{subject}')
            for variant in ('datatype', 'blocked', 'library'):
                yield metrics.Metric('of_contiguous', f'{variant}.{subject}', contiguous / messages.seconds(of[variant]))
            for variant, own in OVER_MPI.items():
                yield metrics.Metric('speedup', f'{variant}.{subject}', limits.paired_ratio(of[variant], of[own], 'bytes'))
            yield from self.parts(group, of, subject)

    def parts(self, group, of, subject):
        '''What a message's time is made of (Memory-LogP): copying (o), with the packing (o + l_p), with the network (o + L), and by
        ``of_parts`` what the middleware makes of the three together.'''
        for variant in ('copy', 'contiguous', *dict.fromkeys(memory_logp.PACKING.values())):
            yield metrics.latency(messages.seconds(of[variant]), f'{variant}.{subject}', of[variant])
        for variant, parts in memory_logp.split(group).items():
            if variant != 'contiguous':     # by definition
                yield metrics.Metric('of_parts', f'{variant}.{subject}', 1 - parts.middleware / parts.total, record=of[variant])


@rfm.simple_test
class datatype_tlb(rfm.RunOnlyRegressionTest, MpiCheck):
    '''Does it matter which number of TLB entries (T_p) the packing library is told: the height of its blocks, 16, 32 and 64 rows, and
    from the matrix's pages on, whether it packs at all?

    ``speedup`` is the bandwidth over that with its own number.
    '''

    source = 'byna2003, sections 5.2 and 5.3'
    subsystem = 'messages'
    program = 'datatype'
    preload = 'pack'
    samples = 30
    transport = 'shm'
    tags = {'acceptance'}

    #: Entries whose half is 16 and 64 rows, and more than the pages of a column of either matrix.
    ENTRIES = (32, 128, 8192)

    #: Dimensions of the matrices.
    SIZES = (1024, 2048)

    def options(self):
        sizes = [size for size in self.SIZES if len(self.cpus) * BYTES * size**2 <= (self.memory or np.inf) * MEMORY_SHARE]
        return ['--variants', 'pack_library,library', '--size', ','.join(map(str, sizes or SIZES[:1])), '--pages', 'base',
                '--tlb', ','.join(map(str, (0, *self.ENTRIES))), '--min-time', '0.005']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            own = {record['variant']: record for record in group if not record['options']['tlb']}
            for record in group:
                variant, entries = record['variant'], record['options']['tlb']
                if entries:
                    yield metrics.Metric('speedup', f"{variant}.tlb{entries}.{record['size']}",
                                         limits.paired_ratio(record, own[variant], 'bytes'), record=record)
                else:
                    yield metrics.bandwidth(record, f"{variant}.{record['size']}")
