import reframe as rfm
from reframe.core.builtins import parameter

from plumbline.simulation.check import PredictionCheck


@rfm.simple_test
class latency_simulated(rfm.RunOnlyRegressionTest, PredictionCheck):
    '''Does the simulation of CG and SP on a torus of 16 to 256 processes know what share of the time the source measured in
    communication, from one of its numbers: may a site ask it about networks that it has not bought yet?'''

    source = 'anderson1997, section 5.3, tables 12 and 13'
    tags = {'acceptance'}
    application = parameter(['cg', 'sp'], type=str, loggable=True)
