import itertools

import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.model import limits, metrics
from plumbline.rfm.limited import LimitedCheck
from plumbline.system import codegen

#: What the compiler may assume of the arrays -> the variant of a loop.
TOLD = {'as_written': '{}', 'restrict': '{}_restrict', 'fortran': 'fortran_{}'}


@rfm.simple_test
class fdtd_splitting(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''Does a loop over six field arrays gain by being split, and if so: were its streams too many, or could the compiler
    not rule out that the arrays overlap?'''

    source = 'anderson1997, section 3.2.3, table 4'
    subsystem = 'memory'
    program = 'fdtd'
    samples = 40
    threads = parameter(['one', 'all'], type=str)
    tags = {'upgrade', 'acceptance'}

    def options(self):
        # The edge n of arrays of n x n x (n - 1).  Rows of whole cache lines, an odd number of them, so that rows do not
        # fall on the same sets of a cache.
        large = 16 * (int(self.elements('memory', 24) ** (1 / 3)) // 16 + 1 | 1)
        self.intended[large] = 'memory'
        self.sizes = {129: 'source', large: 'memory'}
        return ['--variants', 'all', '--size', ','.join(map(str, self.sizes)), '--threads', len(self.cpus), '--limit', '--min-time', '0.005']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            found = {record['variant']: record for record in metrics.kernels(group)}
            size = self.sizes[next(iter(found.values()))['size']]
            # Of the source's size a part stays in a large cache: no limit is known for that.
            paired = self.against_limit(group) if size == 'memory' else {}
            for variant, record in found.items():
                yield metrics.flops(record, f'{variant}.{size}')
                if paired:
                    yield from metrics.of_machine(paired[variant], f'{variant}.{size}')
            ratios = {}
            for (told, name), loop in itertools.product(TOLD.items(), ('fused', 'split2', 'split3', 'distributed')):
                variant, fused = name.format(loop), name.format('fused')
                if variant not in found:
                    for metric in (f'flops.{variant}', f'of_limit.{variant}', f'of_parts.{variant}', f'split_over_fused.{loop}.{told}'):
                        self.skip_metric(f'{metric}.{size}', f'{variant} is not in this build')
                elif loop != 'fused':
                    ratios[loop, told] = limits.paired_ratio(found[variant], found[fused], 'flops')
                    yield metrics.Metric('split_over_fused', f'{loop}.{told}.{size}', ratios[loop, told], record=found[variant])
            self.say_why(size, ratios['split3', 'as_written'], ratios['split3', 'restrict'])

    def say_why(self, size, as_written, told):
        code = self.disassembly()
        loops = ('fused', 'fused_restrict', 'split3_restrict')
        widths = codegen.widths_of(code, 'fdtd', [(loop, None) for loop in loops])
        self.note(f'{size} size: {codegen.why_split(as_written, told, widths)}', 'splitting')
        for variant in TOLD.values():
            fused, distributed = variant.format('fused'), variant.format('distributed')
            if codegen.same_code(code, f'fdtd_{fused}', f'fdtd_{distributed}'):
                self.note(f'{distributed}: asked to split the loop, the compiler left it as it is')
