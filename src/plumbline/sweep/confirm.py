'''What a second measurement says of the outliers of a sweep: a pure function of both, as the ranking is.'''

import json

import polars as pl

from plumbline.model import states
from plumbline.model.uncertainty import MAD_TO_SIGMA, mad_freedom
from plumbline.sweep.peers import METRIC, Before
from plumbline.sweep.ranking import AS_FAR, CERTAIN, CONFIRMED, NOTHING, mean


def confirm(found, ranking, again, before=None):
    '''What a second measurement says of the outliers.

    Nodes that were in order are measured again with them, and tell how far the machine, or whatever it shares, has
    drifted between the two, and how evenly: with ``r = log(second / first)`` of each of these n::

        deviation = (log(second) - median(r) - log(median)) / max(scale, scatter)
        scatter^2 = (freedom scale^2 + f MAD(r)^2) / (freedom + f),   f of n values

    with median, scale and freedom of the first measurement: the MAD of a handful is now and then several times what they scatter by.
    A value of another state is as far from that as what is known of the two; where it could confirm nothing for that, it says nothing.
    It confirms from :data:`AS_FAR` of the first one's deviation on, :data:`CONFIRMED` at least and :data:`CERTAIN` at most, a suspect where the mean
    of both is ``of_both`` as well.  The second score of a subsystem is the first and the weighted mean of what its metrics have changed by.

    :arg found: rows of :meth:`Ranking.outliers` and :meth:`Ranking.suspects`.
    :arg ranking: the first measurement.
    :arg again: the second one, a frame of these nodes and of nodes that were in order.
    :arg before: what was measured in states of the hosts in earlier sweeps (:class:`peers.Before`); None: not known.
    :returns: ``found`` with the columns ``again`` (the second value; null if there is none), ``again_bad`` (its
        deviation, positive on the bad side) and ``confirmed`` (null if it was not measured again, or if no node that
        was in order was).
    '''
    # Not by kind: of a few nodes it may be written differently.
    metric = [column for column in METRIC if column != 'kind']
    first = ranking.rows.select(*metric, 'node', 'working_set', 'kind', first='state')
    alike = again.drop('kind').join(first, on=[*metric, 'node', 'working_set'], nulls_equal=True)      # with another set it is another metric
    alike = _in_its_state(alike.with_columns(unsure=pl.lit(0.0)), before or Before())
    second = alike.filter(pl.col('value').is_finite()).select(*metric, 'node', 'unsure', again='value')
    second = pl.concat([second, _second_scores(ranking, second, metric)], how='vertical_relaxed')
    ratio = pl.col('ratio')
    peers = (ranking.of_all(lambda table: table.join(second.lazy(), on=[*metric, 'node'])).join(found, on=[*metric, 'node'], how='anti')
             .with_columns(ratio=_log('again') - _log('value')))
    drift = peers.group_by(metric).agg(drift=ratio.median(), known=mad_freedom(1) * pl.len(),
                                       uneven=MAD_TO_SIGMA * (ratio - ratio.median()).abs().median())
    far = -pl.col('better') * (_log('again') - pl.col('drift'))
    first, own = pl.col('freedom'), pl.col('known')
    scatter = ((first * pl.col('scale')**2 + own * pl.col('uneven')**2) / (first + own)).sqrt()
    least = pl.max_horizontal((AS_FAR * pl.col('bad')).clip(CONFIRMED, CERTAIN), 2 * pl.col('of_both') - pl.col('bad'))
    blind = (pl.col('unsure') > 0) & (pl.col('bad') * pl.col('scale') < least * pl.col('unsure'))
    return (found.join(second, on=[*metric, 'node'], how='left').join(drift, on=metric, how='left')
            .with_columns(again_bad=pl.when(~blind).then(far / pl.max_horizontal('scale', scatter, 'unsure')))
            .with_columns(confirmed=pl.col('again_bad') >= least)
            .drop('drift', 'uneven', 'known', 'unsure').sort('bad', descending=True))


def _log(column):
    '''Logarithm of a value over the median of the peers; one that is nothing beside them has one, too.'''
    return (pl.col(column) / pl.col('median')).clip(NOTHING).log()


def _in_its_state(rows, before):
    '''Each value as it is in the state of its first measurement: if it met that again, or if earlier sweeps know what the metric is in either.

    Another one confirms nothing, and clears nobody.
    '''
    if rows['first'].is_null().all():
        return rows
    found = []
    for row in rows.to_dicts():
        first, met = json.loads(row['first'] or '{}'), states.of_row(row)
        one = next((one for one in met if states.same(first, one['state'])), met[0])
        there, unsure = before.ratio(row, first, one['state'])
        if there:
            found.append({**one, 'value': one['value'] * there, 'state': None, 'unsure': unsure})
    return pl.DataFrame(found, schema=rows.schema, strict=False)


def _second_scores(ranking, second, metric):
    weight = pl.col('usual')**-2
    change = pl.col('better') * (_log('again') - _log('value'))
    part = [column for column in metric if column not in ('check', 'name')] + ['check', 'node']
    moved = (ranking.rows.join(second, on=[*metric, 'node']).drop('check').rename({'score': 'check'})
             .with_columns(weight=pl.min_horizontal(weight, weight.median().over(part)), moved=change)
             .group_by(part).agg(moved=mean('moved'), unsure=mean('unsure')))
    return ranking.scores.join(moved, on=part).select(*metric, 'node', 'unsure', again=pl.col('value') * pl.col('moved').exp())
