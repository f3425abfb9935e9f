'''Which nodes are outliers: each metric of a node, and each of its subsystems, against the same of its peers.

Peers are the other nodes of one kind (``kind`` of :mod:`plumbline.sweep.results`) in one partition and environment.
With ``x`` the peers' values of one metric of one check::

    deviation = log(value / median(x)) / scale
    scale^2   = (1 + pi / 2n) (prior + f MAD(x)^2) / (prior's freedom + f),   n peers

MAD, the median of ``|log x - log median(x)|`` times 1.4826, is not moved by outliers among the peers, up to half of them (Hampel,
J. Am. Stat. Assoc. 69 (1974) 383).  The node itself is not among them: of four nodes one more that is disturbed would otherwise
hide it.  Of a handful of nodes two may agree by chance, and MAD with them; it is moderated by the metrics that scatter alike
(:func:`plumbline.model.prediction.learnt`), and by what the same metric scattered by in earlier sweeps, as far as the caller gives that.
The scale is never less than what the node's own interval says.

The score of a subsystem's rates and times, or of its shares and ratios, is the weighted mean of the logarithms of these metrics over their
medians, a loss below 0; it is compared with those of the peers like a metric, so that what it scatters by is measured.  Twenty metrics that
agree are no accident, though each stays within its noise; but a slow node keeps its ratios, so one score is never of both.  A node is an
outlier by an improbability that is divided among all nodes and metrics, or all nodes and scores (Holm).

Nodes differ for good, and that hides a loss from their fellows.  Where earlier sweeps have kept the scores of the nodes, each is also
held against its own (:func:`newly`): what is left of a score without the node's median score before is compared with what is left of its
peers'.  That is a suspicion, at a looser rate, and counts where the mean of two measurements is so improbable as an outlier must be, though the
second repeats much of the first.

Pure functions of a table; nothing is read or run here.
'''

from dataclasses import dataclass

import numpy as np
import polars as pl

from plumbline.model import prediction, registry, subsystems
from plumbline.model.grouping import by_key
from plumbline.model.prediction import LEAST_LOSS
from plumbline.model.uncertainty import MAD_TO_SIGMA, mad_freedom, median_of_others
from plumbline.sweep import peers
from plumbline.sweep.peers import FEWEST, METRIC, PEERS

#: A second measurement confirms from this share of the first one's distance on, which was picked because it was far out, but from
#: so many standard deviations at least, and at most: chance does not pick the same twice.
AS_FAR, CONFIRMED, CERTAIN = 0.5, 2.5, 4.0

#: Nodes of two sorts: each has this share of them at least, and the gap between them is so many times what either scatters.
SORT, APART = 1 / 3, 10.0

#: A value that is nothing beside those of its peers counts as this share of them: there is no logarithm of 0.
NOTHING = 1e-3

#: Least and most degrees of freedom of what is learnt from others: a handful of nodes cannot say how unlike metrics scatter, and of
#: 6 to 12 metrics that scatter 1.3 times apart 10 degrees named a node in 6 % of sweeps; scores scatter between that of one metric and
#: a third of it.
_METRICS, _SHARES = (1.0, 6.0), (4.0, 10.0)

#: Names with a better side.  Others say what a node is, not how fast.
BETTER = {name: entry.better for name, entry in registry.METRICS.items() if entry.better != registry.NEITHER}

#: Of a frame's rows of what kind of metrics each is, and the score that it counts in (``L2, rates and times``); null where it counts in none.
_KIND = pl.col('metric').replace_strict({name: subsystems.kind(name) for name in BETTER}, return_dtype=pl.String)
_SCORE = pl.when(pl.col('subsystem') != registry.NO_MACHINE).then(
    pl.format(subsystems.score_of('{}', '{}'), pl.col('subsystem').cast(pl.String), _KIND)).cast(pl.Categorical())

#: Degrees of freedom that earlier sweeps are worth at most: they share nodes and moods, and a metric scatters otherwise another day.
#: Where it did, by a factor that scatters by 1.35, 13 named a node in 10 % of the sweeps of 8 equal nodes, these in none of 72.
MOST_EARLIER = 3.0

#: What sweeps keep of how nodes scatter, for those after them: variance of the logarithms, with its degrees of freedom.
SCATTER = pl.Schema({**dict.fromkeys(METRIC, pl.String), 'variance': pl.Float64, 'freedom': pl.Float64})

#: Of sweeps of equal nodes so many at most measure some of them again, since a node seems to be worse than it was; and so many name one for it,
#: by the mean of both measurements.
SUSPECTS_RATE, WORSE_RATE = 0.3, 0.01

#: What sweeps keep of the scores of nodes, for those after them: ``check`` as of :attr:`Ranking.scores`.
SCORES = pl.Schema({**dict.fromkeys([*PEERS, 'check', 'node'], pl.String), 'members': pl.Int64, 'value': pl.Float64})

_RANKED: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys([*METRIC, 'node', 'metric', 'subject', 'unit', 'subsystem', 'score', 'noise'], pl.Categorical()), 'better': pl.Int8,
    **dict.fromkeys(('value', 'there', 'median', 'gap', 'within', 'change', 'whole', 'scale', 'usual',
                     'deviation', 'off', 'bad', 'freedom', 'sees', 'error'), pl.Float64),
    'state': pl.String, **dict.fromkeys(('working_set', 'peers', 'low', 'rank'), pl.Int64), **dict.fromkeys(('odd', 'outlier_better'), pl.Boolean)}


@dataclass(frozen=True)
class Ranking:
    '''Tables with the columns :data:`PEERS` and more.

    :attr rows: one for each value that was ranked: those of the frame, ``score`` (which it counts in: ``L2, rates and times``), ``there`` (what it
        is in the state of its peers over what it is in its own: :func:`peers.groups`), ``peers`` (how many nodes have the metric, this one
        included), ``median`` (of the others, in ``unit``, in this state), ``scale`` (relative), ``deviation``, ``off`` (value / median - 1),
        ``bad`` (deviation, positive on the bad side), ``freedom``, ``sees`` (the loss that would have been seen with 95 %), ``odd`` (an
        outlier), ``outlier_better`` (on the good side), ``rank`` (1 is the best).
    :attr scores: the same of the subsystems: ``check`` is which (``L2, rates and times``), ``name`` is ``score``, ``members`` how many metrics;
        ``value`` is 1 for a node like the median one, less for a worse one.
    :attr newly: scores against those that the same nodes had in earlier sweeps: columns as of the scores, ``sweeps`` (how many), and ``of_both``
        (what the mean of ``bad`` and of that of a second measurement must be); ``median`` is what the node would have.
    :attr few: kinds with too few nodes to rank: ``nodes``.
    :attr divided: metrics by which no node stands out, but two sorts of nodes: ``check``, ``name``, ``gap`` between
        them (relative to the median), ``low`` and ``high`` (how many nodes).
    :attr lacking: ``node`` and the ``check`` and ``name`` that it lacks and at least half of its peers have;
        ``metric``, ``having``, ``peers``.
    :attr unlike: nodes that are not ranked in a metric of caches, since too few have the same working set: their names.
    :attr apart: node -> (state, how many metrics): those that it is not ranked in, since too few nodes were in that state of the host.
    :attr unranked: node -> the scores of which it has metrics and is ranked in none, for want of peers; not the shares and ratios of a subsystem
        whose rates and times are ranked.
    '''
    rows: pl.DataFrame
    scores: pl.DataFrame
    few: pl.DataFrame
    divided: pl.DataFrame
    lacking: pl.DataFrame
    newly: pl.DataFrame
    unlike: list
    apart: dict
    unranked: dict

    def of_all(self, some):
        '''Scores and rows in one table.

        :arg some: function of the LazyFrame of either, which leaves what is needed of it: of ten thousand nodes the rows have a gigabyte.
        '''
        return pl.concat([some(table.lazy()).collect() for table in (self.scores, self.rows)], how='diagonal_relaxed')

    def outliers(self):
        '''Scores and rows of the outliers, the worst first.'''
        return (self.of_all(lambda table: table.filter('odd')).sort('bad', descending=True)
                .with_columns(since=pl.lit(False), of_both=pl.lit(None, dtype=pl.Float64)))

    def suspects(self):
        '''Scores that are worse than the same node's were, of those that are no outliers anyway; the worst first.'''
        known = self.scores.filter('odd')
        return (self.newly.filter('odd').join(known, on=[*METRIC, 'node'], how='anti', nulls_equal=True).sort('bad', descending=True)
                .with_columns(since=pl.lit(True)))

    def scatter(self):
        '''What the nodes scatter by, metric by metric and score by score (:data:`SCATTER`), of this sweep alone.'''
        if self.rows.is_empty():
            return pl.DataFrame(schema=SCATTER)
        nodes = self.of_all(lambda table: table.group_by(METRIC, maintain_order=True).agg(variance=pl.col('whole').median(), nodes=pl.len()))
        return nodes.with_columns(freedom=pl.Series(map(mad_freedom, nodes['nodes']), dtype=pl.Float64)).select(SCATTER.names()).cast(SCATTER)

    def better(self):
        '''Those as far out on the good side: no alarm.'''
        return self.of_all(lambda table: table.filter('outlier_better')).sort('bad')


def rank(frame, earlier=None, before=None, in_states=None):
    '''Rank every metric that has a good and a bad side.

    :arg frame: as :func:`plumbline.sweep.results.frame` returns it.
    :arg earlier: what the nodes scattered by in other sweeps (:data:`SCATTER`), one row or several of a metric; None: not known.
    :arg before: the scores that nodes had in other sweeps (:data:`SCORES`), with a column ``sweep``; None: not known.
    :arg in_states: what was measured in states of the hosts in other sweeps (:class:`peers.Before`); None: not known.
    :returns: :class:`Ranking`.
    '''
    known = frame.filter(pl.col('value').is_finite() & pl.col('metric').is_in(list(BETTER)))
    known = known.with_columns(better=pl.col('metric').replace_strict(BETTER, return_dtype=pl.Int8), score=_SCORE)
    few, unlike, (groups, alone) = _few(known), _unlike(known), peers.groups(known, in_states or peers.Before())
    known_scatter, measured = _pooled(earlier), _scores_of(known)
    del known       # the parts are copies
    rows = _judged(groups, subsystems.METRICS_RATE, lambda noise, _: prediction.PRIORS[registry.kind_of(noise)], known_scatter)
    scores = _judged(_scores(rows), subsystems.SUBSYSTEMS_RATE, _of_members, known_scatter)
    apart = {node: (states[0], len(states)) for node, states in by_key((row['node'], row['state']) for row in alone).items()}
    ranked = {(node, one) for node, part, score in _scores_of(rows) for one in (score, subsystems.score_of(part, subsystems.SHARES))}
    unranked = by_key((node, score) for node, _, score in measured if (node, score) not in ranked)
    return Ranking(rows, scores, few, _divided(rows), _lacking(frame), newly(scores, before), unlike, apart, unranked)


def _scores_of(rows):
    '''(node, subsystem, score) for each score that a node has a metric of, above 0.'''
    return rows.lazy().filter(pl.col('value') > 0).select('node', 'subsystem', 'score').drop_nulls().unique(maintain_order=True).collect().rows()


def _of_members(_, scores):
    '''What is believed of the scatter of scores where too few subsystems say: that their metrics move together.'''
    return min(*(table['freedom_of_members'].min() for table in scores), prediction.MOST_FREEDOM), 1.0


def newly(scores, before):
    '''Scores against those that the same nodes had before: a table as :attr:`Ranking.newly`.

    Of nodes that were measured by as many metrics in :data:`subsystems.LEAST_SESSIONS` earlier sweeps.  With ``b`` the median of the
    logarithms of h scores of a node, ``log(score) - b`` is ranked among its peers'; it scatters by ``(1 + pi / 2h) h / (h - 1)`` times
    the variance that the h had around ``b``.
    '''
    from scipy import special
    test = [*PEERS, 'check', 'members']
    nothing = scores.clear().with_columns(sweeps=pl.lit(0), of_both=pl.lit(0.0))
    if scores.is_empty() or before is None:
        return nothing
    logs = before.cast({name: scores.schema[name] for name in (*test, 'node')}).filter(pl.col('value') > 0).with_columns(log=pl.col('value').log())
    usual = logs.group_by(*test, 'node').agg(before=pl.col('log').median(), sweeps=pl.len()).filter(pl.col('sweeps') >= subsystems.LEAST_SESSIONS)
    rows = scores.join(usual, on=[*test, 'node'], nulls_equal=True, maintain_order='left').with_columns(pl.col('value') / pl.col('before').exp())
    groups = [group for group in rows.partition_by([*PEERS, 'check'], maintain_order=True) if group.height >= FEWEST]
    if not groups:
        return nothing
    left, h, n = pl.col('left'), pl.col('sweeps').median(), pl.len()
    around = logs.join(usual, on=[*test, 'node'], nulls_equal=True).with_columns(left=pl.col('log') - pl.col('before'))
    scatter = around.group_by(*test, 'sweep').agg(
        variance=(MAD_TO_SIGMA * (left - left.median()).abs().median())**2 * _small(n) * (1 + np.pi / 2 / h) * h / (h - 1),
        freedom=mad_freedom(1) * n, nodes=n).filter(pl.col('nodes') >= FEWEST).with_columns(name=pl.lit('score'))
    ranked = _judged(groups, SUSPECTS_RATE, _of_members, _pooled(scatter))
    freedom, scale, of_mean = ranked['freedom'].to_numpy(), ranked['scale'].to_numpy(), np.sqrt((1 + prediction.REPEATED) / 2)
    of_both = -of_mean * special.stdtrit(freedom, WORSE_RATE / ranked.height)
    sees = -np.expm1(-(np.maximum(of_both * scale, np.log1p(LEAST_LOSS)) - of_mean * special.stdtrit(freedom, prediction.OF_BOTH_MISSED) * scale))
    return ranked.with_columns(value=pl.col('value') * pl.col('before').exp(), median=pl.col('median') * pl.col('before').exp(),
                               of_both=of_both, sees=pl.max_horizontal('sees', pl.lit(pl.Series(sees))))


def _pooled(earlier):
    '''Metric -> (variance, degrees of freedom) of all earlier sweeps.

    However many there were, they do not count for more than :data:`MOST_EARLIER`.
    '''
    if earlier is None:
        return {}
    freedom = pl.col('freedom')
    rows = earlier.filter(freedom > 0).group_by(METRIC).agg(
        variance=(pl.col('variance') * freedom).sum() / freedom.sum(), freedom=freedom.sum().clip(upper_bound=MOST_EARLIER))
    return {tuple(key): found for *key, found in zip(*(rows[name] for name in METRIC), zip(rows['variance'], rows['freedom']))}


def _judged(groups, rate, default, earlier):
    '''What peers say of each value; a table.

    :arg groups: tables, each of one metric of nodes in one state; those of one ``noise`` scatter alike, scores relative to the column ``most``,
        and at most like it.
    :arg rate: of false alarms, for all values.
    :arg default: function of the class and its tables: what is believed of a scatter where too few metrics say.
    :arg earlier: of :func:`_pooled`.
    '''
    if not groups:
        return pl.DataFrame(schema=_RANKED)
    alike = by_key((group['noise'][0], _against_peers(group)) for group in groups)
    rows = pl.concat([_moderated(tables, default(noise, tables), earlier) for noise, tables in alike.items()])
    count, better = rows.height, pl.col('better')
    deviation = (pl.col('x') - (pl.col('median') * pl.col('there')).log()) / pl.col('scale')
    rows = rows.with_columns(deviation=deviation, bad=-better * deviation, off=pl.col('value') / pl.col('median') - 1)
    bad, freedom, scale = (rows[name].to_numpy() for name in ('bad', 'freedom', 'scale'))
    from scipy import special
    odd, good = ((side * bad * scale >= np.log1p(LEAST_LOSS)) & subsystems.holm(special.stdtr(freedom, -side * bad), rate) for side in (1, -1))
    least = np.maximum(-special.stdtrit(freedom, rate / count) * scale, np.log1p(LEAST_LOSS))
    far = least - special.stdtrit(freedom, prediction.OF_BOTH_MISSED) * scale
    sees = np.where(rows['better'].to_numpy() == registry.LESS, np.expm1(far), -np.expm1(-far))
    return rows.with_columns(sees=sees, odd=odd, outlier_better=good)


def _against_peers(rows):
    '''One metric's values with ``peers``, ``median``, ``low``, ``gap``, ``within`` (:func:`two_sorts`), ``change`` (a loss below 0, against
    the median of all), ``own`` and ``whole`` (variance of the others, and of all).'''
    raw = (rows['value'] * rows['there']).to_numpy()
    x = np.log(np.maximum(raw, NOTHING * np.median(raw)))
    centre = median_of_others(x)
    low, gap, within = two_sorts(x)
    of_all = MAD_TO_SIGMA * np.median(np.abs(x - np.median(x)))
    return rows.with_columns(
        x=x, peers=pl.lit(x.size), rank=pl.Series(-rows['better'].to_numpy() * x).rank('min').cast(pl.Int64),
        median=np.exp(centre) / rows['there'].to_numpy(), change=rows['better'].to_numpy() * (x - np.median(x)),
        own=(MAD_TO_SIGMA * mad_of_others(x, centre))**2 * _small(x.size - 1), whole=pl.lit(of_all**2 * _small(x.size)),
        low=pl.lit(low), gap=pl.lit(gap), within=pl.lit(within))


def _small(n):
    '''The MAD of few values is too small: by this its square is corrected, to 10 % from n = 3 on.'''
    return n / (n - 0.9)


def _moderated(tables, default, earlier):
    '''Metrics that scatter alike, with ``scale`` and ``freedom`` of each value, and ``usual``, the scale of any node.'''
    of_scores = 'most' in tables[0].columns
    most = [table['most'][0] if of_scores else 1.0 for table in tables]
    before = [earlier.get(tuple(table[name][0] for name in METRIC), (0.0, 0.0)) for table in tables]

    def pooled(variance, freedom, known):
        return (freedom * variance + known[0] * known[1]) / (freedom + known[1]), freedom + known[1]
    scatters = [pooled(table['whole'][0], mad_freedom(table.height), known) for table, known in zip(tables, before)]
    freedom, deviation = prediction.learnt([(variance / each**2, own) for (variance, own), each in zip(scatters, most)], default)
    least, highest = _SHARES if of_scores else _METRICS
    few = sum(own for _, own in scatters) / 3        # a handful of metrics of a handful of nodes
    highest = highest if tables[0].height <= subsystems.LEAST_SESSIONS and least > 1 else min(highest, few)
    # What is not learnt from these few, but known of others, keeps its degrees of freedom.
    freedom, found = freedom if (freedom, deviation) == default else max(least, min(freedom, highest)), []
    for table, each, known, (whole, all_freedom) in zip(tables, most, before, scatters):
        own, own_freedom = pooled(table['own'].to_numpy(), mad_freedom(table.height - 1), known)
        wider, alike = 1 + np.pi / 2 / (table.height - 1), freedom * (deviation * each)**2

        def scale(variance, spare, wider=wider, alike=alike):
            return np.maximum(prediction.LEAST_DEVIATION, np.sqrt(wider * (alike + spare * variance) / (freedom + spare)))
        error = table['error'].fill_null(0).fill_nan(0).to_numpy()
        cap = each * np.sqrt(wider) if of_scores else np.inf
        too_few = all_freedom <= mad_freedom(subsystems.LEAST_SESSIONS)
        floor = cap / 2 if of_scores and too_few else 0.0     # too few to believe less
        found.append(table.with_columns(
            scale=np.maximum(np.clip(scale(own, own_freedom), floor, cap), error), freedom=pl.lit(freedom + own_freedom),
            usual=pl.lit(float(scale(whole, all_freedom)))))
    return pl.concat(found)


def mean(column):
    '''Of the metrics of a score, by the column ``weight``.'''
    return (pl.col('weight') * pl.col(column)).sum() / pl.col('weight').sum()


def _scores(rows):
    '''Tables of the scores, ready to be compared.  Weights are one over the variance, as far as one metric does not
    outweigh all others: a weight is at most that of the median.'''
    part, weight, text = [*PEERS, 'subsystem', 'score'], pl.col('usual')**-2, rows.schema['name']
    # What is known of two states is off alike in all metrics of a node.
    unsure = pl.when(pl.col('there') != 1).then(pl.col('error').fill_null(0)).otherwise(0.0)
    known = rows.select(*part, 'node', 'metric', 'change', 'usual', 'freedom', unsure=unsure).drop_nulls('score')
    if known.is_empty():
        return []
    known = known.with_columns(weight=pl.min_horizontal(weight, weight.median().over(part)))
    scores = known.group_by(*part, 'node', maintain_order=True).agg(
        value=mean('change').exp(), spread_of_all=mean('usual'), error=mean('unsure'), members=pl.len(), freedom_of_members=pl.col('freedom').min(),
        noise=_KIND.first().cast(text))
    scores = scores.with_columns(
        check='score', name=pl.lit('score', text), metric=pl.lit('score', text), unit=pl.lit('1', text),
        better=pl.lit(1, dtype=pl.Int8), there=pl.lit(1.0), most=pl.col('spread_of_all').median().over(part)).drop('spread_of_all')
    return [group for group in scores.partition_by(part, maintain_order=True) if group.height >= FEWEST]


def mad_of_others(x, centre):
    '''For each value ``median(|others - centre|)``.

    :arg x: shape (n,).
    :arg centre: :func:`plumbline.model.uncertainty.median_of_others` of it; there are three different ones at most.
    '''
    x, result = np.asarray(x, dtype=float), np.empty(len(x))
    for value in np.unique(centre):
        result[centre == value] = median_of_others(np.abs(x - value))[centre == value]
    return result


def two_sorts(x):
    '''(how many nodes belong to the lower of two sorts, the gap between them, the variance within): where values are furthest apart
    with at least :data:`SORT` of them, and three, on either side; zeros for fewer.

    :arg x: logarithms, shape (n,).
    '''
    x = np.sort(x)
    least = max(3, int(np.ceil(SORT * x.size)))
    if x.size < 2 * least:
        return 0, 0.0, 0.0
    cuts = np.arange(least, x.size - least + 1)
    cut = int(cuts[np.argmax(x[cuts] - x[cuts - 1])])
    within = sum(np.sum((side - side.mean())**2) for side in (x[:cut], x[cut:])) / (x.size - 2)
    return cut, float(x[cut] - x[cut - 1]), float(within)


def _few(known):
    return (known.group_by(PEERS, maintain_order=True).agg(nodes=pl.col('node').unique().sort())
            .filter(pl.col('nodes').list.len() < FEWEST))


def _unlike(known):
    of_caches = known.filter(pl.col('working_set').is_not_null())
    few = of_caches.filter(pl.len().over(METRIC) >= FEWEST, pl.len().over([*METRIC, 'working_set']) < FEWEST)
    return few['node'].unique().sort().to_list()


def _divided(rows):
    '''Metrics with a gap that is :data:`APART` times as wide as they, and the metrics that scatter alike, scatter on either side.'''
    sorts, found = [*METRIC, 'low', 'gap'], []
    metrics = rows.select('noise', *sorts, 'within', 'peers').unique(sorts, maintain_order=True)
    for alike in metrics.partition_by('noise', maintain_order=True):
        _, usual = prediction.learnt([(variance, peers - 2) for variance, peers in alike.select('within', 'peers').iter_rows()
                                      if variance > 0], (0, 0.0))
        least = pl.max_horizontal(pl.col('within').sqrt(), pl.lit(usual))
        found.append(alike.filter((pl.col('low') > 0) & (pl.col('gap') >= APART * least) & (pl.col('gap') >= np.log1p(LEAST_LOSS))))
    apart = rows.join(pl.concat([metrics.clear(), *found]), on=sorts, how='semi', nulls_equal=True)
    value, cut = (pl.col('value') * pl.col('there')).sort(), pl.col('low').first()
    return apart.filter(~pl.col('odd').any().over(METRIC)).group_by(METRIC, maintain_order=True).agg(
        gap=(value.get(cut) - value.get(cut - 1)) / value.median().abs(), low=cut, high=pl.len() - cut)


def _lacking(frame):
    '''Nodes without a metric that at least half of their peers have.'''
    alike = [column for column in PEERS if column != 'environ']     # a node may lack all of an environment
    nodes = frame.select(*alike, 'node').unique()
    of_kind = nodes.group_by(alike).agg(peers=pl.len())
    measured = frame.lazy().filter(pl.col('value').is_finite()).select(*METRIC, 'metric', 'node').unique().collect()
    having = measured.group_by(*METRIC, 'metric').agg(having=pl.len())
    usual = having.join(of_kind, on=alike, nulls_equal=True).filter(
        (pl.col('peers') >= FEWEST) & (2 * pl.col('having') >= pl.col('peers')) & (pl.col('having') < pl.col('peers')))
    missing = usual.join(nodes, on=alike, nulls_equal=True).join(measured, on=[*METRIC, 'node'], how='anti', nulls_equal=True)
    return missing.select(*PEERS, 'node', 'check', 'name', 'metric', 'having', 'peers').sort('node', 'check', 'name', 'environ')
