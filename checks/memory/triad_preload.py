import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import limits, metrics
from plumbline.rfm.limited import LimitedCheck

#: Of its part of a cache what a thread's block of B, C and D takes, and the bytes of an element of the three.
SHARE, BYTES = 0.5, 24


@rfm.simple_test
class triad_preload(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''Is block preload worth it, for which cache must the block be, and does a high-level language get as much of it as intrinsics?

    In the source an Athlon 64 wants blocks of its L1, a Pentium 4 of its L2.  ``speedup`` is the rate over that of the same loop
    without preload: of ``nt`` (intrinsics), of ``plain`` (C), of ``fortran``; with blocks of half of a thread's part of L1, of L2.
    '''

    source = 'hager2004, section 3.2, figure 4'
    subsystem = 'memory'
    program = 'triad'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}

    #: Variant -> the same without preload.
    WAYS = {'preload': 'nt', 'preload_c': 'plain', 'preload_fortran': 'fortran'}

    #: Those with the intrinsics of x86-64.
    OF_X86 = ('nt', 'preload')

    def options(self):
        ways = dict(self.WAYS)
        if 'fortran' not in self.current_environ.features:
            self.skip_metric('all of preload_fortran', 'this environment has no Fortran compiler', ['preload_fortran'])
            del ways['preload_fortran']
        sizes, skipped = self.working_sets(self.cpus)
        for level in ('L1', 'L2'):
            if level in skipped:
                self.skip_metric(f'all in {level}', skipped[level], [level])
        each = {level: sizes[level] // len(self.cpus) for level in ('L1', 'L2') if level in sizes}
        if not each:
            self.skip_test('neither an L1 nor an L2 is known, for which blocks could be made', 'speedup')
        #: Elements of a block -> the cache that it is for.
        self.blocks = {}
        for level, bytes_of_level in each.items():
            self.blocks.setdefault(max(8, int(bytes_of_level * SHARE / BYTES) // 8 * 8), level)
        asked = [way + '|' * (way in self.OF_X86) for way in (*ways.values(), *ways)]
        return ['--variants', ','.join(asked), '--block-size', ','.join(map(str, self.blocks)),
                '--size', self.elements('memory', 32), '--threads', len(self.cpus), '--limit']

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        kernels = metrics.kernels(group)
        for variant, without in self.WAYS.items():
            for record in kernels:
                if record['variant'] == variant:
                    block = record['options']['block-size']
                    base = next(one for one in kernels if one['variant'] == without and one['options']['block-size'] == block)
                    yield metrics.Metric('speedup', f'{variant}.{self.blocks[block]}', limits.paired_ratio(record, base, 'bytes'), record=record)
                    yield metrics.bandwidth(record, f'{variant}.{self.blocks[block]}')
