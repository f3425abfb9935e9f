'''Which nodes are out of true: each metric of a node against the same metric of its peers.

Peers are the other nodes of one kind (``kind`` of :mod:`plumbline.sweep.results`) in one partition and environment.
With ``x`` the peers' values of one metric of one check::

    deviation = (value - median(x)) / scale
    scale     = max(1.4826 MAD(x), FLOOR |median(x)|, median(spread) |median(x)|)

MAD, the median of ``|x - median(x)|``, is not moved by odd nodes among the peers, up to half of them (Hampel, J. Am.
Stat. Assoc. 69 (1974) 383); times 1.4826 it is the standard deviation of normal values.  The node itself is not among
them: of four nodes one more that is disturbed would otherwise hide it.  The floor keeps equal values from dividing by
zero and a difference that nobody would feel from being an alarm.  The last term is what the nodes' own samples scatter:
of a handful of nodes two may agree by chance, and MAD with them.

Pure functions of a table; nothing is read or run here.
'''

from dataclasses import dataclass

import numpy as np
import polars as pl

from plumbline.model import registry, states
from plumbline.statistics import MAD_TO_SIGMA

#: Fewer nodes than this cannot say which of them is odd.
FEWEST = 3

#: Processors of one model differ by a few per cent at the same power limit.
FLOOR = 0.015

#: Out of true from here on: 7.5 % at the floor.  Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993) take
#: 3.5 for one sample; a sweep has thousands of values.
THRESHOLD = 5.0

#: A second measurement confirms from here on, and from this share of the first one's distance: that was picked because
#: it was far out, and chance does not pick the same twice.
CONFIRMED, AS_FAR = 3.0, 0.5

#: Nodes of two sorts: each has this share of them at least, and no value lies between.
SORT = 1 / 3

#: Metric -> whether a high value is bad (1) or a low one (-1).  Others say what a node is, not how fast.
BAD = {name: -entry.better for name, entry in registry.METRICS.items() if entry.better != registry.NEITHER}

#: What peers have in common, and what tells one of their metrics from the others.
PEERS = ['system', 'partition', 'environ', 'kind']
METRIC = [*PEERS, 'check', 'name']


@dataclass(frozen=True)
class Ranking:
    '''Tables with the columns :data:`PEERS` and more.

    :attr rows: one for each value that was ranked: those of the frame, and ``peers`` (how many nodes have the metric,
        this one included), ``median`` and ``scale`` (in ``unit``), ``deviation``, ``off`` (value / median - 1), ``bad``
        (deviation, positive on the bad side), ``rank`` (1 is the best).
    :attr few: kinds with too few nodes to rank: ``nodes``.
    :attr divided: metrics by which no node stands out, but two sorts of nodes: ``check``, ``name``, ``gap`` between
        them (relative to the median), ``low`` and ``high`` (how many nodes).
    :attr lacking: ``node`` and the ``check`` and ``name`` that it lacks and at least half of its peers have;
        ``having``, ``peers``.
    '''
    rows: pl.DataFrame
    few: pl.DataFrame
    divided: pl.DataFrame
    lacking: pl.DataFrame

    def out_of_true(self):
        '''The rows on the bad side, the worst first.'''
        return self.rows.filter(pl.col('bad') >= THRESHOLD).sort('bad', descending=True)

    def better(self):
        '''The rows as far out on the good side: no alarm.'''
        return self.rows.filter(pl.col('bad') <= -THRESHOLD).sort('bad')


def rank(frame):
    '''Rank every metric that has a good and a bad side.

    :arg frame: as :func:`plumbline.sweep.results.frame` returns it.
    :returns: :class:`Ranking`.
    '''
    known = frame.filter(pl.col('value').is_finite() & pl.col('metric').is_in(list(BAD)))
    groups = [group for rows in known.partition_by(METRIC, maintain_order=True) for group in _by_state(rows)
              if group.height >= FEWEST]
    rows = pl.concat(map(_against_peers, groups)) if groups else _against_peers(known.clear())
    apart = pl.col('value') - pl.col('median')
    sign = pl.col('metric').replace_strict(BAD, return_dtype=pl.Float64)
    # Of a metric that is 0 on most nodes every other value is infinitely far away.
    deviation = pl.when(apart == 0).then(0.0).otherwise(apart / pl.col('scale'))
    rows = rows.with_columns(
        deviation=deviation, bad=sign * deviation, off=pl.col('value') / pl.col('median') - 1,
        rank=(sign * pl.col('value')).rank('min').over(METRIC).cast(pl.Int64))
    return Ranking(rows.drop('low'), _few(known), _divided(rows), _lacking(frame))


def _by_state(rows):
    '''One metric's rows in the states of the machine (:mod:`plumbline.model.states`) that enough nodes met; each node is in one.

    Too few nodes in a state have no peers there: they stay with the others, and so stand out.
    '''
    if rows['state'].is_null().all():
        return [rows]
    left, parts = {row['node']: row for row in rows.to_dicts()}, []
    for _, alike in states.grouped(list(left.values())):
        alike = [row for row in alike if row['node'] in left]
        if len(alike) >= FEWEST:
            parts.append(alike)
            left = {node: row for node, row in left.items() if node not in {row['node'] for row in alike}}
    parts = parts or [[]]
    parts[0] += left.values()
    return [pl.DataFrame([{**row, 'state': None, 'states': None} for row in part], schema=rows.schema, strict=False) for part in parts]


def _against_peers(rows):
    '''One metric's values with ``peers``, ``median``, ``scale`` and ``low`` (:func:`two_sorts`).'''
    x, noise = rows['value'].to_numpy(), max(FLOOR, rows['spread'].fill_null(0).median() or 0)
    centre = median_of_others(x)
    scale = np.maximum(MAD_TO_SIGMA * mad_of_others(x, centre), noise * np.abs(centre))
    return rows.with_columns(peers=pl.lit(x.size), low=pl.lit(two_sorts(x, noise)),
                             median=pl.Series(centre, dtype=pl.Float64), scale=pl.Series(scale, dtype=pl.Float64))


def median_of_others(x):
    '''For each value the median of all others; shape (n,), n not 1.'''
    x = np.asarray(x, dtype=float)
    ordered, position = np.sort(x), np.empty(x.size, dtype=int)
    position[np.argsort(x, kind='stable')] = np.arange(x.size)

    def of_others(k):
        return ordered[np.where(k < position, k, k + 1)]

    return (of_others((x.size - 2) // 2) + of_others((x.size - 1) // 2)) / 2


def mad_of_others(x, centre):
    '''For each value ``median(|others - centre|)``.

    :arg x: shape (n,).
    :arg centre: :func:`median_of_others` of it; there are three different ones at most.
    '''
    x, result = np.asarray(x, dtype=float), np.empty(len(x))
    for value in np.unique(centre):
        result[centre == value] = median_of_others(np.abs(x - value))[centre == value]
    return result


def two_sorts(x, noise):
    '''How many nodes belong to the lower of two sorts; 0 if there is one sort only.

    The widest gap between neighbouring values that leaves :data:`SORT` of them on either side must be
    :data:`THRESHOLD` times as wide as the values of each side scatter (1.4826 MAD), and as the noise.

    :arg noise: relative to the median.
    '''
    x = np.sort(x)
    least = max(2, int(np.ceil(SORT * x.size)))
    if x.size < 2 * least:
        return 0
    cuts = np.arange(least, x.size - least + 1)
    cut = int(cuts[np.argmax(x[cuts] - x[cuts - 1])])
    within = [MAD_TO_SIGMA * np.median(np.abs(side - np.median(side))) for side in (x[:cut], x[cut:])]
    return cut if x[cut] - x[cut - 1] >= THRESHOLD * max(*within, noise * abs(np.median(x))) > 0 else 0


def _few(known):
    return (known.group_by(PEERS, maintain_order=True).agg(nodes=pl.col('node').unique().sort())
            .filter(pl.col('nodes').list.len() < FEWEST))


def _divided(rows):
    value, cut = pl.col('value').sort(), pl.col('low').first()
    none_stands_out = (pl.col('bad').max() < THRESHOLD).over(METRIC)
    return rows.filter(none_stands_out & (pl.col('low') > 0)).group_by(METRIC, maintain_order=True).agg(
        gap=(value.get(cut) - value.get(cut - 1)) / pl.col('value').median().abs(), low=cut, high=pl.len() - cut)


def _lacking(frame):
    '''Nodes without a metric that at least half of their peers have.'''
    nodes = frame.select(*PEERS, 'node').unique()
    of_kind = nodes.group_by(PEERS).agg(peers=pl.len())
    having = (frame.filter(pl.col('value').is_finite()).group_by(METRIC, maintain_order=True)
              .agg(having=pl.col('node').n_unique(), those=pl.col('node').unique()))
    usual = having.join(of_kind, on=PEERS, nulls_equal=True).filter(
        (pl.col('peers') >= FEWEST) & (2 * pl.col('having') >= pl.col('peers')) & (pl.col('having') < pl.col('peers')))
    missing = usual.join(nodes, on=PEERS, nulls_equal=True).filter(~pl.col('node').is_in(pl.col('those')))
    return missing.select(*PEERS, 'node', 'check', 'name', 'having', 'peers').sort('node', 'check', 'name')


def confirm(found, ranking, again):
    '''What a second measurement says of the rows that were out of true.

    Nodes that were in order are measured again with them, and tell how far the machine, or whatever it shares, has
    drifted between the two, and how evenly: with ``r = second / first`` of each of them::

        deviation = (second / median(r) - median) / max(scale, 1.4826 MAD(r) |median|)

    with median and scale of the first measurement.  It confirms from :data:`CONFIRMED` on, if ``second / median(r)`` is
    at least :data:`AS_FAR` as far from the median as the first value was.

    :arg found: rows of :meth:`Ranking.out_of_true`.
    :arg ranking: the first measurement.
    :arg again: the second one, a frame of these nodes and of nodes that were in order.
    :returns: ``found`` with the columns ``again`` (the second value; null if there is none), ``again_bad`` (its
        deviation, positive on the bad side) and ``confirmed`` (null if it was not measured again, or if no node that
        was in order was).
    '''
    # Not by kind: of a few nodes it may be written differently.
    metric = [column for column in METRIC if column != 'kind']
    second = again.filter(pl.col('value').is_finite()).select(*metric, 'node', again='value')
    peers = (ranking.rows.join(second, on=[*metric, 'node']).join(found, on=[*metric, 'node'], how='anti')
             .with_columns(ratio=pl.col('again') / pl.col('value')))
    ratio = pl.col('ratio')
    drift = peers.group_by(metric).agg(drift=ratio.median(), noise=MAD_TO_SIGMA * (ratio - ratio.median()).abs().median())
    sign = pl.col('metric').replace_strict(BAD, return_dtype=pl.Float64)
    far = sign * (pl.col('again') / pl.col('drift') - pl.col('median'))
    scale = pl.max_horizontal('scale', pl.col('noise') * pl.col('median').abs())
    return (found.join(second, on=[*metric, 'node'], how='left').join(drift, on=metric, how='left')
            .with_columns(again_bad=far / scale)
            .with_columns(confirmed=(pl.col('again_bad') >= CONFIRMED)
                          & (far >= AS_FAR * sign * (pl.col('value') - pl.col('median'))))
            .drop('drift', 'noise').sort('bad', descending=True))
