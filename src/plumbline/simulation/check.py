'''The base of the checks that simulate: they measure no machine, and their numbers have no noise.'''

import os
import sys

import numpy as np
import polars as pl
from reframe.core.builtins import run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from plumbline.errors import in_one_line
from plumbline.model import metrics
from plumbline.rfm.check import ProgramCheck
from plumbline.rfm.variables import Size, Words
from plumbline.settings import ROOT
from plumbline.simulation import predict, study


class PredictionCheck(ProgramCheck):
    '''Base plugin: a check sets ``application``, of which there is a published table.'''

    subsystem = 'none'
    program = 'simulated'
    processes = 1
    NEEDS = '+openmp'       # once: the compiler is SimGrid's
    LASTS = '30m'

    #: The network file.
    network = variable(Words, value=str(ROOT / 'config/networks/t3e.yaml'), loggable=False)

    #: Cells with more processes are skipped.
    most = variable(Size, value=256, loggable=False)

    @run_before('run')
    def launch_program(self):
        '''Instead of that of a program which measures.'''
        command = [sys.executable, '-I', '-m', 'plumbline.simulation.predict', os.path.abspath(self.network), self.application, str(self.most)]
        self.run_command(command)
        self.describe(command)

    @run_before('sanity')
    def read_prediction(self):
        if self.is_dry_run():
            return
        with in_one_line():
            self.found = predict.parse(self.output())
        if reason := self.found.get('missing'):
            self.skip_test(reason, promise='simgrid')

    @sanity_function
    def numbers_prove_something(self):
        '''More latency and more processes never make less communication.'''
        if self.found['falls']:
            raise SanityError(f"not monotone: {'; '.join(self.found['falls'])}")
        self.plumbline.machine, self.plumbline.records, self.plumbline.timed_seconds = None, [], None
        return True

    def evaluate(self):
        fitted = self.found['calibration']
        self.note(f"{self.found['source']}: compute rate {self.found['compute_rate']:g} Mflop/s, overhead per message and side "
                  f"{fitted['overhead']:.2f} us, fitted to {fitted['target']:g} % on {fitted['processes']} processes at "
                  f"{fitted['latency']:g} us; all else is predicted.  Simulated: nothing of this machine is in the numbers")
        for cell in self.found['cells']:
            name = f"{self.application}.{cell['processes']}.{cell['latency']:g}us"
            kind = 'communication' if not cell['fitted'] else 'communication_fitted'
            yield metrics.Metric(kind, name, np.array([cell['percent'] / 100]), unjudged=f"published: {cell['published']:g} %")
        cells = pl.DataFrame(self.found['cells'])
        mean, largest = study.differences(cells)
        yield metrics.Metric('difference', self.application, np.array([mean / 100]))
        yield metrics.Metric('difference', f'{self.application}.largest', np.array([largest / 100]))
        if grown := study.growth(cells).values():
            yield metrics.Metric('difference', f'{self.application}.growth', np.array([max(abs(ratio - 1) for ratio in grown)]))
