import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable
from reframe.core.exceptions import SanityError

from plumbline.errors import in_one_line
from plumbline.model import metrics, pairs, records
from plumbline.model.quantity import amount, size as text_of
from plumbline.mpi import patterns as model, ports
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Amount, Size, Whole
from plumbline.simulation.patterns import Expected


@rfm.simple_test
class network_patterns(rfm.RunOnlyRegressionTest, MpiCheck):
    '''Does the network carry what its nodes send when all of them do, which node gets less than the others, and which port counts errors
    meanwhile: both halves with each other, neighbours on a ring and a grid, all in pairs by chance, all to one, all to all?

    Judged on the first day: errors of links; the worst node of random pairs and of incasts against the median one; where a network file is
    given, the rate against that of the described network.  All rates, and what they are of the rate of two nodes alone (``of_pair``: 1 where
    the network is not oversubscribed), are judged by references: a tapered network is not a broken one.
    '''

    source = 'effective bisection bandwidth: T. Hoefler, T. Schneider, A. Lumsdaine, Multistage switches are not crossbars, Cluster 2008'
    subsystem = 'messages, network'
    tags = {'acceptance'}
    program = 'patterns'
    ranks = 1
    nodes = 0
    transport = 'default'
    LASTS = '30m'

    pattern = parameter(['bisection', 'neighbour', 'pairs', 'incast', 'alltoall'], type=str)

    #: Bytes of the messages that latency is taken from, and bandwidth; 0: 1 MiB, and 64 KiB of incast and alltoall, of which many are under way.
    small, large = variable(Size, value=8, loggable=False), variable(Size, value=0, loggable=False)

    #: Pairs of nodes that are measured alone, matchings, targets of an incast, at most; 0: all of them.
    rounds = variable(Whole, value=8, loggable=False)

    #: Of the matchings; it stands in the record, and gives the same again.
    seed = variable(Whole, value=1, loggable=False)

    #: What a sample of one round takes at least, seconds.
    round_seconds = variable(Amount, value=0.002, loggable=False)

    #: A network file (``config/networks``): the same pattern is simulated on it; more nodes than ``simulated_nodes`` take too long.
    network = variable(str, value='', loggable=False)
    simulated_nodes = variable(Whole, value=64, loggable=False)

    #: Where the ports of a node count, instead of /sys.
    ports = variable(str, value='', loggable=False)

    def options(self):
        self.per_node, self.many = len(self.cpus) // self.nodes, self.pattern in ('incast', 'alltoall')
        self.size = self.large or (2**16 if self.many else 2**20)
        common = {'rounds': self.rounds, 'streams': 16 if self.many else 1, 'seed': self.seed}
        self.expected = Expected(self.network, self.simulated_nodes, per_node=self.per_node, size=self.size, **common) if self.network else None
        variants = model.variants(self.pattern, self.nodes)
        for variant in model.VARIANTS[self.pattern][len(variants):]:
            self.skip_metric(f'all of {variant}', f'{self.nodes} nodes make no grid with two and more along each dimension', [variant])
        options = {'variants': variants, 'size': [self.small, self.size], 'per-node': [self.per_node],
                   **{name: [value] for name, value in common.items()}, 'min-time': [(self.rounds or self.nodes) * self.round_seconds],
                   'nodes': model.growing(self.nodes) if self.pattern == 'alltoall' else [],
                   'used': [1, *model.growing(self.per_node)] if self.pattern == 'pairs' and self.per_node > 1 else [],
                   'ports': [self.ports] if self.ports else []}
        return [word for name, values in options.items() if values for word in (f'--{name}', ','.join(map(str, values)))]

    @run_after('sanity')
    def read_rounds_and_ports(self):
        if self.is_dry_run():
            return
        for complaint in filter(None, (pairs.too_short(record, model.rounds(record).min(), 'round') for record in self.measurements)):
            raise SanityError(f'{complaint}: give more -S network_patterns.round_seconds than {self.round_seconds:g}')
        with in_one_line():
            own = records.parse(self.output(), processes=self.processes).ports
        # An error that was counted is not gone because it did not come again.
        self.of_ports = (self.earlier.of_ports if self.earlier else []) + own
        self.counted = ports.counted(self.of_ports)
        for line in ports.notes(self.counted):
            self.note(line)

    def evaluate(self):
        small, large = (self.cases(size) for size in (self.small, self.size))
        limit = model.VARIANTS[self.pattern][0]
        for key, record in large.items():
            variant, nodes, used = key
            subject = variant + (f'.{nodes}' if nodes < self.nodes else '') + (f'.{used}ranks' if used < self.per_node else '')
            if variant == limit and nodes < self.nodes:
                continue        # it is there for the rate of those nodes
            rate = model.alone(record) if variant == limit else model.bandwidth(record)
            yield metrics.Metric('bandwidth', subject, rate)
            if not (self.many and variant == limit):        # of which several are under way
                yield metrics.Metric('latency', subject, model.latency(small[key]))
            if variant != limit:
                yield metrics.Metric('of_pair', subject, rate / model.alone(large[(limit, nodes, used)]))
                if self.expected and used == self.per_node:
                    yield from self.of_simulated(subject, variant, nodes, rate)
        for variant in model.variants(self.pattern, self.nodes)[1:]:
            yield from self.of_all_nodes(variant, large[variant, self.nodes, self.per_node])
        yield from self.of_links()

    def cases(self, size):
        '''(variant, nodes, ranks of each that take part) -> record.'''
        return {(record['variant'], record['pattern']['nodes'], record['options']['used'] or self.per_node): record
                for record in self.measurements if record['size'] == size}

    def of_simulated(self, subject, variant, nodes, rate):
        expected, reason = self.expected.of(variant, nodes, self.stagedir)
        if reason:
            self.skip_metric(f'of_simulated.{subject}', reason)
            return
        self.note(f"{subject}: simulated {amount(expected, 'MB/s')} of a node, on the first {nodes} nodes of {self.network}")
        yield metrics.Metric('of_simulated', subject, rate / expected)

    def of_all_nodes(self, variant, record):
        '''The worst matching; who is slowest; the worst node.'''
        if variant == 'matchings':
            number, rate = model.of_worst_round(record)
            yield metrics.Metric('bandwidth', 'worst_matching', rate, remark=f'matching {number} of seed {self.seed}')
        names = [process['host'] for process in self.measured_by.plumbline.of_machine['processes']]
        for line in model.told(record, names, self.per_node, text_of(self.size)):
            self.note(line)
        if variant == 'alltoall':
            return      # each waits for all others
        if self.nodes < pairs.LEAST_NODES:
            self.skip_metric(f'of_median.{variant}', f'{self.nodes} nodes cannot be ranked by their messages: {pairs.LEAST_NODES} at least')
            return
        yield metrics.Metric('of_median', variant, np.array([model.worst_over_median(record, self.per_node)]))

    def of_links(self):
        if not self.counted.ports:
            self.skip_metric('link_errors', 'no node has an InfiniBand port, or a network device with hardware, whose counters can be read')
            return
        errors = self.counted.errors
        yield metrics.Metric('link_errors', None, np.array([float(sum(errors.values()))]), remark=ports.told(errors) or None)
