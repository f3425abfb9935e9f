'''What a node has not measured of what its peers have: whole tests, and parts of them.

As an outlier it is measured again, and what it has then it does not lack.  Of a part, noise may decide who has it: it counts where few nodes lack it,
where the test does not say that it was noise, and where nodes that were measured twice have it twice or never.
'''

import json
from dataclasses import dataclass
from itertools import groupby

import polars as pl

from plumbline.analysis.answers import some
from plumbline.analysis.lines import as_words, not_measured, verdict_lines
from plumbline.model import result, verdict
from plumbline.store import archive
from plumbline.sweep import ranking

#: A part of a test is missed where this share of the nodes at most lack it, or two.
FEW = 0.25

#: A part that more nodes than this share, or one, have in one of two measurements is had by chance.
CHANGING = 0.1

_UNKNOWN, _GONE = 'no reason is known', 'what it measured is gone'

# Of a few nodes, the kind may be written differently; and of an environment, a node may lack all.
_PLACE = [column for column in ranking.PEERS if column != 'kind']
_NODE = [*(column for column in _PLACE if column != 'environ'), 'node']


@dataclass(frozen=True)
class Lack:
    '''A test that a node has not, or of which it has a part only.

    :attr whole: it has nothing of it; else :attr names are what is missing.
    :attr again: it was measured again.
    :attr why: as the test said.
    '''
    whole: bool
    names: tuple[str, ...]
    again: bool
    why: str = ''

    @property
    def counts(self):
        '''Whether the node is named for it.'''
        return self.whole or self.again

    def told(self, test):
        '''For people, who see the name of the node before it.'''
        what = 'has nothing' if self.whole else 'lacks a part'
        return f"{what} of {as_words(test)}, which most of its peers have: {self.why}{'' if self.counts else ' (not measured again)'}"


def look(ranked, frame, again):
    '''Node -> its tests, as ReFrame displays them -> :class:`Lack`, without reasons.

    :arg ranked: :class:`ranking.Ranking` of ``frame``.
    :arg again: the second measurement, as ``frame``; empty where there was none.
    '''
    # Only metrics that say how fast a node is: others it may have or not for what it is.
    first, second = (_measured(table) for table in (frame, again))
    test, metric, twice = [*_PLACE, 'node', 'check'], [*_PLACE, 'check', 'name', 'node'], second.select(_NODE).unique()
    missing = ranked.lacking.join(first.select(test).unique().with_columns(part=True), on=test, how='left', nulls_equal=True, maintain_order='left')
    missing = (missing.with_columns(whole=pl.col('part').is_null())
               .join(twice.with_columns(again=True), on=_NODE, how='left', nulls_equal=True, maintain_order='left'))
    few = pl.col('peers') - pl.col('having') <= (FEW * pl.col('peers')).clip(2)
    whole = missing.filter('whole').join(second, on=test, how='anti', nulls_equal=True, maintain_order='left')
    parts = (missing.filter(~pl.col('whole') & few & pl.col('metric').is_in(list(ranking.BETTER)))
             .join(second, on=metric, how='anti', nulls_equal=True, maintain_order='left')
             .join(_changing(first, second, twice), on=metric[:-1], how='anti', nulls_equal=True, maintain_order='left'))
    found: dict[str, dict[str, Lack]] = {}
    for (node, check, is_whole), rows in pl.concat([whole, parts]).group_by('node', 'check', 'whole', maintain_order=True):
        found.setdefault(node, {})[check] = Lack(is_whole, tuple(rows['name'].unique(maintain_order=True)), rows['again'].any())
    return found


def _measured(frame):
    return frame.filter(pl.col('value').is_finite()).select(*_PLACE, 'check', 'name', 'node').unique()


def _changing(first, second, twice):
    '''The metrics that too many of the nodes that were measured twice have once.'''
    metric, place = [*_PLACE, 'check', 'name'], _NODE[:-1]
    both = [table.join(twice, on=_NODE, how='semi', nulls_equal=True) for table in (first, second)]
    once = pl.concat([one.join(other, on=[*metric, 'node'], how='anti', nulls_equal=True) for one, other in (both, both[::-1])])
    nodes = twice.group_by(place).agg(nodes=pl.len())
    return (once.group_by(metric).agg(changed=pl.len()).join(nodes, on=place, nulls_equal=True)
            .filter(pl.col('changed') > (CHANGING * pl.col('nodes')).clip(1)).select(metric))


def why(rows, test, lack):
    '''Why a node lacks a test or a part of it, as the test said; '' where noise alone decided that.

    :arg rows: of :func:`causes.of_node`; None where they are gone.
    '''
    if rows is None:
        return _GONE if lack.whole else f'{some(list(lack.names))}: {_GONE}'
    return whole(rows, test)[0] if lack.whole else _partly(rows, test, lack.names)


def whole(rows, test):
    '''(reason, symptom) of a test without metrics.'''
    failed = (line for line in verdict_lines(rows) if line.verdict == verdict.FAIL and not line.metric)
    return next(((one.reason, one.symptom) for one in [*not_measured(rows), *failed] if one.check == test.partition(' ')[0]), (_UNKNOWN, ''))


def _partly(rows, test, names):
    its = archive.final_rows(rows).filter(pl.col('display_name') == test)['detail'].drop_nulls()
    skipped = [result.Skipped.of_json(one) for text in its for one in json.loads(text).get('skipped') or ()]
    told = {name: next((one for one in skipped if one.means(name)), result.Skipped(None, _UNKNOWN)) for name in names}
    reasons = {name: one.reason for name, one in told.items() if one.symptom != 'noise'}
    return '; '.join(f'{some(list(its))}: {reason}' for reason, its in groupby(sorted(reasons, key=lambda name: reasons[name]), reasons.get))
