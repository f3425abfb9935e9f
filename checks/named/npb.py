from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable
from reframe.core.exceptions import ReframeError

from plumbline.errors import PlumblineError
from plumbline.mpi.installed import OtherMpi
from plumbline.named import npb as text
from plumbline.named.check import NamedMpiCheck


def _class_of(program):
    return Path(program).name.split('.')[1]


@rfm.simple_test
class npb(rfm.RunOnlyRegressionTest, NamedMpiCheck):
    '''What does a process do in each of the NAS Parallel Benchmarks, on all cores that its algorithm takes?'''

    source = 'anderson1997, table 11 and figure 5'
    product, repeat, LASTS = 'npb', 3, '2h'
    benchmark = parameter(list(text.KERNELS), type=str)

    #: Class of the problem; empty: the largest that is installed, fits a half of the memory, and takes no longer than LONGEST.
    letter = variable(str, value='', loggable=False)

    @run_after('setup')
    def choose_ranks(self):
        if self.nodes != 1:
            raise ReframeError(f'npb.nodes={self.nodes}: on several nodes its processes would be no power of two, or no square: take it away')
        self.ranks = text.KERNELS[self.benchmark].processes(len(self.cpus))

    def find(self, environment):
        there, why = {}, {}
        for letter in reversed(text.CLASSES):
            try:
                there[letter] = self.look_for([f'{self.benchmark}.{letter}.{what}' for what in ('x', len(self.cpus))], environment)
            except PlumblineError as error:
                why[letter] = error
        if not there:
            raise next((error for error in why.values() if isinstance(error, OtherMpi)), why['C'])
        return there[text.choose(self.benchmark, list(there), self.memory_share(0.5), len(self.cpus), self.letter or None)]

    def options(self):
        return []

    def _recorded_but_not(self, known, found):
        for name in sorted(name for name in known if '.class_' in name and name not in found):
            self.skip_metric(name, f'class {_class_of(self.binary)} was run')
        return super()._recorded_but_not(known, found)

    def takes(self):
        return 0 if self.is_dry_run() else round(self.repeat * text.KERNELS[self.benchmark].seconds(_class_of(self.binary), len(self.cpus)))

    def figures(self, output, source):
        return text.figures(output, source, name=self.benchmark, letter=_class_of(self.binary), processes=len(self.cpus))
