import numpy as np
import reframe as rfm
from reframe.core.builtins import fixture, parameter, run_after

from plumbline.model import limits, metrics, quantity, records
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.programs import option_programs


@rfm.simple_test
class compiler_options(rfm.RunOnlyRegressionTest, NativeCheck):
    '''What do the Fortran flags of this site lose against other sets of options of the same compiler, and which of those give a wrong result?'''

    source = 'anderson1997, section 4, tables 8 and 9: the NAS kernels'
    subsystem = 'core'
    NEEDS = '+openmp +fortran -spack'
    kernel = parameter(['mxm', 'cfft2d', 'cholsky', 'btrix', 'gmtry', 'emit', 'vpenta'], type=str)
    threads = 'one'
    tags = {'acceptance'}
    own_programs = fixture(option_programs, scope='environment')

    @run_after('init')
    def choose_program(self):
        self.program = self.kernel

    def options(self):
        return ['--variants', 'all', '--min-time', '0.005']

    def evaluate(self):
        for name, reason in self.measurements[0]['options'].items():
            if name.startswith('refused.'):
                flags = name.removeprefix('refused.')
                self.skip_metric(f'flops.{flags}', reason, [f'unchanged_{flags}', f'optimised_{flags}'])
        sources: dict = {}
        for record in self.measurements:
            source, flags = record['variant'].split('_')
            sources.setdefault(source, {})[flags] = record
            yield metrics.flops(record, record['variant'])
        best, refused = {}, self.measurements[0]['options'].get('refused.site')
        for source, sets in sources.items():
            best[source], record = max(sets.items(), key=lambda found: np.median(records.rate(found[1], 'flops')))
            site = next((sets[name] for name in ('site', *([] if refused else ['O2'])) if name in sets), None)
            if site is None:
                self.skip_metric(f'of_best.{source}', refused or 'neither the environment has fflags, nor is there the set O2, which stands for them')
                continue
            of_best = limits.paired_ratio(site, record, 'flops')
            lost = f'{quantity.percent(1 - np.median(of_best), 0)} against {best[source]} ({record["flags"]})'
            self.note(f'{self.kernel}, {source}: ' + (f"the default flags of this site ({site['flags']}) lose {lost}" if 'site' in sets else
                                                      f'the environment has no fflags; -O2, in their place, loses {lost}'))
            yield metrics.Metric('of_best', source, of_best, record=site, remark=f"the best is {best[source]}: {record['flags']}")
        if 'optimised' in sources:
            changed, unchanged = (sources[source][best[source]] for source in ('optimised', 'unchanged'))
            yield metrics.Metric('speedup', 'optimised', limits.paired_ratio(changed, unchanged, 'flops'), record=changed)
