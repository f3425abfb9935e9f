'''What a sweep says of its nodes: which are outliers, why, what they share, and what could not be ranked.'''

import functools
import json
import shlex
from dataclasses import dataclass

import polars as pl

from plumbline.analysis.lines import as_words
from plumbline.model import contention
from plumbline.model.safe_text import shown
from plumbline.sweep import locality, ranking, results, scatter, state
from plumbline.sweep.node import REPORT
from plumbline.sweep.slurm import folded

#: Folder of the second measurement, below that of the sweep: a sweep of its own.
AGAIN = 'again'

#: What a row is about, for people: a subsystem, or a metric.
WHAT = pl.when(pl.col('name') == 'score').then('check').otherwise('metric')


@dataclass(frozen=True)
class Findings:
    '''
    :attr name: of the sweep.
    :attr nodes: node -> :class:`state.Node`.
    :attr frame: what was measured (:func:`results.frame`).
    :attr ranked: :class:`ranking.Ranking` of it.
    :attr odd: scores and rows of the outliers, the worst first; with ``again`` and ``confirmed`` (:func:`ranking.confirm`; null
        where nothing was measured again).
    :attr causes: node -> texts: what took the time of the outliers, as far as they know.
    :attr places: dictionaries node -> place, of the nodes that were measured: racks, switches.
    :attr earlier: how many sweeps before it say how nodes scatter.
    '''
    name: str
    nodes: dict
    frame: pl.DataFrame
    ranked: ranking.Ranking
    odd: pl.DataFrame
    causes: dict
    places: list
    earlier: int = 0

    def test(self, row):
        '''A row's test as people read it, with the environment where there are several.'''
        return as_words(row['check']) + (f" ({row['environ']})" if self._several_environments else '')

    @functools.cached_property
    def _several_environments(self):
        return self.frame['environ'].n_unique() > 1

    @property
    def named(self):
        '''The outliers, the worst first: those that a second measurement has not cleared.'''
        return self._not_cleared['node'].unique(maintain_order=True).to_list()

    @property
    def _not_cleared(self):
        return self.odd.filter(pl.col('confirmed').fill_null(True))

    @property
    def cleared(self):
        '''Nodes that were outliers in the first measurement and not in the second.'''
        named = set(self.named)
        return [node for node in self.odd['node'].unique(maintain_order=True) if node not in named]

    @property
    def shared(self):
        '''(place, its named nodes, how many nodes it has): see :func:`locality.shared`.'''
        return [found for where in self.places for found in locality.shared(where, self.named)]

    @property
    def unmeasured(self):
        '''Nodes without a result.'''
        return [node for node in self.nodes.values() if not node.measured]

    @property
    def drain(self):
        '''For each metric that is worst on some nodes the command that takes them out of service: shown, never run.'''
        worst = self._not_cleared.unique('node', keep='first', maintain_order=True).with_columns(what=WHAT)
        return [shlex.join(['scontrol', 'update', f'nodename={folded(rows["node"])}', 'state=drain',
                            f'reason=plumbline {self.name}: {shown(metric)} {_range(rows["off"])} against peers'])
                for (metric,), rows in worst.group_by('what', maintain_order=True)]

    @property
    def exit_status(self):
        '''1 if nodes are named, or are of two sorts; 2 if no value could be ranked; else 0.'''
        return 1 if self.named or not self.ranked.divided.is_empty() else 2 if self.ranked.rows.is_empty() else 0


def _range(shares):
    low, high = (f'{100 * share:+.0f}' for share in (shares.min(), shares.max()))
    return f'{low} %' if low == high else f'{low} .. {high} %'


def look(folder, racks=None, switches=None):
    '''What a finished or unfinished sweep says.

    :arg folder: of the sweep.
    :arg racks: pattern of the nodes' names (:func:`locality.by_pattern`); None for that of the plan, if it has one.
    :arg switches: a ``topology.conf``, or None.
    :raises PlumblineError: if there is no such sweep, or if pattern or file do not fit.
    '''
    sweep, frame = state.load(folder), results.frame(folder)
    earlier, sweeps = scatter.before(sweep.folder)
    ranked = ranking.rank(frame, earlier)
    odd = ranked.outliers()
    again = sweep.folder / AGAIN
    odd = ranking.confirm(odd, ranked, results.frame(again) if (again / 'sweep.json').exists() else frame.clear())
    measured = {node.name for node in sweep.nodes.values() if node.measured}
    where = [{node: place for node, place in each.items() if node in measured}
             for each in placed(sweep.nodes, racks or sweep.plan.get('racks'), switches)]
    causes = {node: _causes(sweep, sweep.nodes[node]) for node in odd['node'].unique(maintain_order=True)}
    return Findings(sweep.name, sweep.nodes, frame, ranked, odd, causes, where, sweeps)


def placed(nodes, racks, switches):
    '''Where nodes are: a dictionary node -> place for each of the two that is known.

    :raises PlumblineError: if pattern or file do not fit.
    '''
    found = [locality.by_pattern(nodes, racks)] if racks else []
    return found + ([locality.by_switch(nodes, switches)] if switches else [])


def _causes(sweep, node):
    '''What the tests of a node say of the time that they did not get; each cause once, as its worst test has it.'''
    try:
        report = json.loads((sweep.of(node) / REPORT).read_text())
    except (OSError, ValueError):
        return ['its run report is gone: what took its time is not known']
    payloads = [case.get('plumbline') for run in report['runs'] for case in run['testcases']]
    lost = [payload for payload in payloads if isinstance(payload, dict) and payload.get('contention')]
    given = [(contention.time_given(payload['contention']), number) for number, payload in enumerate(lost)]
    _, worst = min((pair for pair in given if pair[0] is not None), default=(None, None))
    return [] if worst is None else contention.notes(lost[worst]['contention'], lost[worst].get('machine'))


def peers_in_order(ranked, odd, most):
    '''Nodes to measure again with the odd ones: of each group of peers with an odd node those whose worst value is
    nearest to the median.

    :arg most: how many of each group.
    '''
    suspects = odd['node'].unique().implode()
    order = (ranked.all.join(odd.select(ranking.PEERS).unique(), on=ranking.PEERS, how='semi', nulls_equal=True)
             .filter(~pl.col('node').is_in(suspects))
             .group_by(*ranking.PEERS, 'node').agg(worst=pl.col('deviation').abs().max())
             .sort('worst', 'node').group_by(ranking.PEERS, maintain_order=True).head(most))
    return order['node'].unique(maintain_order=True).to_list()
