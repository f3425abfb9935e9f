import reframe as rfm
from reframe.core.builtins import variable

from plumbline.named import hpcg as text
from plumbline.named.check import NamedMpiCheck
from plumbline.rfm.variables import Whole

#: Seconds of a run, where nothing else is asked for.
USUAL = 60


@rfm.simple_test
class hpcg(rfm.RunOnlyRegressionTest, NamedMpiCheck):
    '''What does HPCG, sparse matrices with a multigrid preconditioner, reach on all cores of a node?'''

    source = 'Dongarra, Heroux and Luszczek, HPCG 3.1'
    product, level, repeat, LASTS = 'hpcg', 'memory', 3, '2h'
    leaves = 'HPCG-Benchmark*.txt'

    #: Edge of the grid of each process; 0: a quarter of the memory, as its rules ask for.
    edge = variable(Whole, value=0, loggable=False)

    #: Seconds of a run; results that its authors list take 1800 at least.
    seconds = variable(Whole, value=USUAL, loggable=False)

    def options(self):
        self.given = '.'.join(filter(None, (self.edge and f'n{self.edge}', self.seconds != USUAL and f'{self.seconds}s')))
        self.n = self.edge or text.edge(self.memory_share(0.25), len(self.cpus))
        if self.seconds < text.OFFICIAL_SECONDS:
            self.note(f'a run takes {self.seconds} s; one that its authors list takes {text.OFFICIAL_SECONDS} at least (-S hpcg.seconds=...)')
        return [f'--nx={self.n}', f'--ny={self.n}', f'--nz={self.n}', f'--rt={self.seconds}']

    def figures(self, output, source):
        return text.figures(output, source, n=self.n, processes=len(self.cpus))
