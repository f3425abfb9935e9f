import numpy as np
import reframe as rfm
from reframe.core.builtins import run_after, variable
from reframe.core.exceptions import SanityError

from plumbline.model import metrics, pairs as model
from plumbline.model.quantity import size as text_of
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Amount, Size


@rfm.simple_test
class node_pairs(rfm.RunOnlyRegressionTest, MpiCheck):
    '''Which nodes, and which links, are slower than the others: messages between all pairs of nodes, in rounds in which no node is in two pairs?'''

    tags = {'acceptance'}
    subsystem = 'messages, network'
    program = 'pairs'
    samples = 10
    processes = 1
    transport = 'default'
    ranks = 1
    nodes = 0
    LASTS = '30m'

    #: Bytes of the messages that latency and bandwidth are taken from.
    small, large = variable(Size, value=8, loggable=False), variable(Size, value=2**20, loggable=False)

    #: What a sample of one round takes at least, seconds.
    round_seconds = variable(Amount, value=0.001, loggable=False)

    def options(self):
        rounds = self.nodes - 1 + self.nodes % 2
        return ['--size', f'{self.small},{self.large}', '--min-time', rounds * self.round_seconds]

    @run_after('sanity')
    def refuse_short_samples(self):
        if self.is_dry_run():
            return
        for complaint in filter(None, (model.too_short(record, record['pairs']['shortest'], 'pair') for record in self.measurements)):
            raise SanityError(f'{complaint}: give more -S node_pairs.round_seconds than {self.round_seconds:g}')

    def evaluate(self):
        small, large = sorted(self.measurements, key=lambda record: record['size'])
        latency, bandwidth = model.latency(small), model.bandwidth(large)
        yield from self.typical_and_worst('latency', latency, np.nanmax(latency), lambda nodes: np.median(nodes) / nodes.max())
        yield from self.typical_and_worst('bandwidth', bandwidth, np.nanmin(bandwidth), lambda nodes: nodes.min() / np.median(nodes))
        if self.nodes < model.LEAST_NODES:
            return
        names = [process['host'] for process in self.measured_by.plumbline.of_machine['processes']]
        for record in (small, large):
            found = model.outliers(*model.matrices(record), len(record['seconds']))
            for line in model.told(found, names, text_of(record['size'])):
                self.note(line)

    def typical_and_worst(self, kind, values, worst, share):
        '''The median over the pairs, of which those of the senders are the samples; the worst pair; and the worst node, by its worse direction.'''
        nodes = model.of_nodes(values)
        yield metrics.Metric(kind, 'pairs', nodes[0])
        yield metrics.Metric(kind, 'worst_pair', np.array([worst]))
        if self.nodes < model.LEAST_NODES:
            self.skip_metric(f'of_median.{kind}', f'{self.nodes} nodes cannot be ranked by their pairs: {model.LEAST_NODES} at '
                             'least tell a slow node from a slow link')
        else:
            yield metrics.Metric('of_median', kind, np.array([share(nodes)]))
