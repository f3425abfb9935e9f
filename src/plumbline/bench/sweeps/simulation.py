'''Power and false alarms of the ranking, simulated: fleets on paper with the noise of bare metal, ranked by what sweeps use.

The logarithm of a value is what all nodes have, what this node has in each sweep (``between``: nodes differ for good), and what this sweep
adds (``within``).  Of either a share (``together``) is the same for all metrics of a subsystem of a node; metrics scatter unlike, by a
factor with a logarithm of 0.3.  One node has lost a share of one subsystem, another one each time: of its rates, for beside these are as
many ratios and more, as of triads, which a slow node keeps.  Outliers are measured again as sweeps do (:mod:`plumbline.sweep.remeasure`), which
repeats a share of what the sweep adds (:data:`plumbline.model.prediction.REPEATED`).  Where now and then a value is off by much more, noise is
Student's t.
'''

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from plumbline.bench.verdicts.table import grid, share
from plumbline.model import registry, subsystems
from plumbline.model.prediction import REPEATED
from plumbline.sweep import confirm, outliers, ranking, remeasure, results

#: Subsystem, metric, class of noise of the metrics on paper.
PARTS = ((registry.CORE, 'flops', 'cache'), (registry.L1, 'flops', 'cache'), (registry.L2, 'bandwidth', 'cache'),
         (registry.L3, 'bandwidth', 'cache'), (registry.MEMORY_ONE, 'bandwidth', 'memory'), (registry.MEMORY_ALL, 'bandwidth', 'memory'),
         (registry.LATENCY, 'latency', 'latency'), (registry.FILES, 'bandwidth', 'files'), (registry.CPU_TIME, 'cpu_availability', 'ratio'))

#: What does not move with the speed of the node.
RATIOS = (*((part, metric, f'ratio of {noise}') for part, _, noise in PARTS if noise in ('cache', 'memory') for metric in ('of_limit', 'of_parts')),
          (registry.LATENCY, 'growth', 'ratio of latency'))

#: Metrics of each subsystem: as many as say of each other how they scatter (:data:`plumbline.model.prediction.LEAST_METRICS`).
METRICS = 8

#: By how much metrics scatter unlike: standard deviation of the logarithm of the factor.
UNLIKE = 0.3


@dataclass(frozen=True)
class Noise:
    '''Relative standard deviations of a value, and the share of their variance that a subsystem's metrics have together.'''
    within: float
    between: float
    together: float = 0.5

    def __str__(self):
        return f'{100 * self.within:g} % within, {100 * self.between:g} % between'


#: Bare metal: what differs from run to run, and from node to node.
METAL = (Noise(0.01, 0.01), Noise(0.02, 0.01))

#: Sizes of fleets, sweeps before, and the loss that is asked for.
NODES, HISTORIES, LOSS = (4, 16, 64), (0, 10), 0.05

#: Fleets of each size, and sweeps of each fleet with a loss; without one as many.
FLEETS, SWEEPS = 2, 10


def drawn(draw, together, shape, tails=None):
    '''What metrics are off by, with a standard deviation of 1.

    :arg together: share of the variance that the metrics of a subsystem have in common.
    :arg shape: (subsystems, metrics, ...).
    :arg tails: degrees of freedom of Student's t; None: it is normal.
    '''
    def one(shape):
        return np.sqrt(1 - 2 / tails) * draw.standard_t(tails, shape) if tails else draw.standard_normal(shape)
    common, own = one((shape[0], 1, *shape[2:])), one(shape)
    return np.sqrt(together) * common + np.sqrt(1 - together) * own


class Fleet:
    '''Nodes on paper.

    :arg draw: :class:`numpy.random.Generator`.
    :arg tails: degrees of freedom of Student's t, of which what a sweep adds is, with the standard deviation of ``noise``; None: it is normal.
    '''

    def __init__(self, draw, nodes, noise, metrics=METRICS, tails=None):
        self._draw, self._noise, self._tails = draw, noise, tails
        self.names = [f'n{number + 1}' for number in range(nodes)]
        self._shape = len(PARTS + RATIOS), metrics, nodes
        self._unlike = np.exp(UNLIKE * draw.standard_normal((*self._shape[:2], 1)))
        self._for_good = self._drawn(noise.between)
        empty = dict.fromkeys(results.COLUMNS)
        self._rows = pl.DataFrame([empty | {
            'system': 'paper', 'partition': 'cpu', 'environ': 'gnu', 'kind': 'alike', 'check': part, 'name': f'{metric}.{number}', 'metric': metric,
            'unit': '1', 'error': 0.0, 'subsystem': part, 'noise': noise_class, 'verdict': 'NO REFERENCE', 'node': node}
            for part, metric, noise_class in PARTS + RATIOS for number in range(metrics) for node in self.names], schema=results.COLUMNS)

    def _drawn(self, deviation, tails=None):
        return deviation * self._unlike * drawn(self._draw, self._noise.together, self._shape, tails)

    def sweep(self, loss=0.0, node=0, part=0):
        '''What a sweep measures (:func:`plumbline.sweep.results.frame`).

        :arg loss: share that a node has lost of a subsystem; :arg node, part: their numbers.
        '''
        self._of_sweep = self._for_good + self._drawn(np.sqrt(REPEATED) * self._noise.within, self._tails)
        return self.again(loss, node, part)

    def again(self, loss=0.0, node=0, part=0):
        '''What the second measurement of the last sweep does.'''
        logs = self._of_sweep + self._drawn(np.sqrt(1 - REPEATED) * self._noise.within, self._tails)
        logs[part, :, node] += ranking.BETTER[PARTS[part][1]] * np.log1p(-loss)
        return self._rows.with_columns(value=pl.Series(100 * np.exp(logs).ravel()))


@dataclass
class Counts:
    '''What sweeps of one kind found.

    :attr losses: with a loss; of these :attr:`found` named the node, :attr:`others` is how many others they named.
    :attr quiet: without; of these :attr:`alarms` named some node, :attr:`false` is how many nodes.
    :attr sees: the loss of the slow node's subsystem that each would have seen with 95 %, by its own account.
    :attr promised: sweeps with a loss that is larger than that; of these :attr:`kept` named the node.
    '''
    losses: int = 0
    found: int = 0
    others: int = 0
    quiet: int = 0
    alarms: int = 0
    false: int = 0
    promised: int = 0
    kept: int = 0
    sees: list = field(default_factory=list)

    @property
    def precision(self):
        '''Of the nodes named, those that have lost something; there are as many sweeps with a loss as without.  None: none is named.'''
        named = self.found + self.others + self.false
        return self.found / named if named else None


def _named(fleet, earlier, lost):
    '''(Names of nodes, the :class:`ranking.Ranking`).

    :arg earlier: list of :class:`ranking.Ranking` of the sweeps before.
    '''
    first = ranking.rank(fleet.sweep(**lost), *_kept(earlier))
    odd = pl.concat([first.outliers(), first.suspects()], how='diagonal_relaxed')
    if odd.is_empty():
        return set(), first
    suspects = odd['node'].unique().to_list()
    nodes = [*suspects, *outliers.peers_in_order(first, suspects, remeasure.PEERS)]
    again = confirm.confirm(odd, first, fleet.again(**lost).filter(pl.col('node').is_in(nodes)))
    return set(again.filter(pl.col('confirmed').fill_null(~pl.col('since')))['node']), first


def _kept(earlier):
    '''What sweeps keep for those after them (:mod:`plumbline.sweep.scatter`).'''
    if not earlier:
        return None, None
    return (pl.concat([one.scatter() for one in earlier]),
            pl.concat([one.scores.select(ranking.SCORES.names()).with_columns(sweep=pl.lit(str(number))) for number, one in enumerate(earlier)]))


def run(nodes, noise, loss=LOSS, histories=HISTORIES, fleets=FLEETS, sweeps=SWEEPS, metrics=METRICS, seed=1, tails=None):
    '''Number of sweeps before -> :class:`Counts`.  The same seed gives the same.'''
    found = {history: Counts() for history in histories}
    for number in range(fleets):
        draw = np.random.default_rng([seed, nodes, number])
        fleet = Fleet(draw, nodes, noise, metrics, tails)
        before = [ranking.rank(fleet.sweep()) for _ in range(max(histories))]
        for _ in range(sweeps):
            lost = {'loss': loss, 'node': int(draw.integers(nodes)), 'part': int(draw.integers(len(PARTS)))}
            for history, counts in found.items():
                _count(counts, fleet, before[len(before) - history:], lost)
    return found


def _count(counts, fleet, earlier, lost):
    slow, (part, metric, _) = fleet.names[lost['node']], PARTS[lost['part']]
    score = subsystems.score_of(part, subsystems.kind(metric))
    named, ranked = _named(fleet, earlier, lost)
    quiet, _ = _named(fleet, earlier, {})
    sees = pl.concat([ranked.scores, ranked.newly], how='diagonal_relaxed').filter(node=slow, check=score)['sees'].min()
    counts.losses += 1
    counts.found += slow in named
    counts.others += len(named - {slow})
    counts.quiet += 1
    counts.alarms += bool(quiet)
    counts.false += len(quiet)
    counts.sees.append(sees)
    counts.promised += sees <= lost['loss']
    counts.kept += sees <= lost['loss'] and slow in named


def lines(noises=METAL, nodes=NODES, **options):
    '''Lines of the table: one row for each noise, size of the fleet and number of sweeps before.'''
    rows = [['noise', 'nodes', 'sweeps before', 'found', 'precision', 'quiet: none named', 'would see', 'and did']]
    loss = options.get('loss', LOSS)
    for noise in noises:
        for size in nodes:
            for history, counts in run(size, noise, **options).items():
                precision = '-' if counts.precision is None else f'{counts.precision:.3f}'
                rows.append([str(noise), str(size), str(history), share(counts.found, counts.losses), precision,
                             f'{counts.quiet - counts.alarms} of {counts.quiet}', f'{100 * np.median(counts.sees):.1f} %',
                             f'{counts.kept} of {counts.promised}'])
    return [f'Simulated: one node has lost {100 * loss:g} % of one of {len(PARTS)} subsystems.', '', *grid(rows)]
