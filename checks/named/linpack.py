import reframe as rfm
from reframe.core.builtins import variable

from plumbline.named import hpcc as of_hpcc, hpl as of_hpl
from plumbline.named.check import NamedMpiCheck
from plumbline.rfm.variables import Amount, Whole

#: Share of the memory that the matrix takes, where nothing else is asked for.
USUAL = 0.8


class Linpack(NamedMpiCheck):
    '''A dense system of equations as large as the node's memory.'''

    LASTS = '8h'
    repeat = 3

    #: Share of the memory that the matrix takes.
    share = variable(Amount, value=USUAL, loggable=False)

    #: Order N of the matrix; 0: from the memory.
    order = variable(Whole, value=0, loggable=False)

    def options(self):
        n = self.order or of_hpl.order(self.memory_share(self.share))
        p, q = of_hpl.grid(len(self.cpus))
        self.given = f'n{n}' if self.order else f'share{self.share:g}'.replace('.', '_') if self.share != USUAL else ''
        self.problem = {'n': n, 'nb': of_hpl.BLOCK, 'p': p, 'q': q}
        self.keep(self.file, self.text.input_file(**self.problem))
        return []

    def figures(self, output, source):
        return self.text.figures(output, source, **self.problem)


@rfm.simple_test
class hpl(rfm.RunOnlyRegressionTest, Linpack):
    '''What does the High-Performance Linpack reach on all cores of a node?'''

    source = 'Petitet et al., HPL'
    subsystem = 'core'
    product, text, file = 'hpl', of_hpl, 'HPL.dat'


@rfm.simple_test
class hpcc(rfm.RunOnlyRegressionTest, Linpack):
    '''What does the HPC Challenge say of arithmetic, memory and messages of a node?'''

    source = 'Luszczek et al., HPC Challenge'
    product, text, file, leaves = 'hpcc', of_hpcc, 'hpccinf.txt', 'hpccoutf.txt'
