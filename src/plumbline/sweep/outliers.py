'''What a sweep says of its nodes: which are outliers, why, what they share, and what could not be ranked.'''

import functools
import shlex
from collections import Counter
from dataclasses import dataclass, field, replace

import polars as pl

from plumbline.analysis.lines import as_words
from plumbline.model.quantity import percent
from plumbline.model.safe_text import shown
from plumbline.sweep import causes, confirm, lacking, locality, ranking, results, scatter, state
from plumbline.sweep.slurm import folded

#: Folder of the second measurement, below that of the sweep: a sweep of its own.
AGAIN = 'again'

#: Nodes that are meant to have less memory than others have at most three quarters of it: of 24 modules one is 4 %.
LEAST_BOUGHT = 0.75

#: What is said of the subsystems that a node is not ranked in.
NO_PEERS = f'not judged, since fewer than {ranking.FEWEST} nodes are peers in it'

#: What a row is about, for people: a subsystem, or a metric.
WHAT = pl.when(pl.col('name') == 'score').then('check').otherwise('metric')


@dataclass(frozen=True)
class Findings:
    '''
    :attr name: of the sweep.
    :attr nodes: node -> :class:`state.Node`.
    :attr frame: what was measured (:func:`results.frame`).
    :attr ranked: :class:`ranking.Ranking` of it.
    :attr odd: scores and rows of the outliers, the worst first; with ``again`` and ``confirmed`` (:func:`confirm.confirm`; null
        where nothing was measured again); ``since``: not against its peers, but against what the node itself was (:func:`ranking.newly`).
    :attr causes: node -> texts: what took the time of the outliers, and why else they are slow, as far as they know.
    :attr places: dictionaries node -> place, of the nodes that were measured: racks, switches.
    :attr earlier: how many sweeps before it say how nodes scatter.
    :attr lacking: node -> test -> :class:`lacking.Lack`.
    :attr rules: node -> rules of ``data/diagnosis.yaml`` that an outlier, or a node that lacks something, shows.
    :attr again: node -> :class:`state.Node` of its second measurement.
    '''
    name: str
    nodes: dict
    frame: pl.DataFrame
    ranked: ranking.Ranking
    odd: pl.DataFrame
    causes: dict
    places: list
    earlier: int = 0
    lacking: dict = field(default_factory=dict)
    rules: dict = field(default_factory=dict)
    again: dict = field(default_factory=dict)

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
        return self.odd.filter(pl.col('confirmed').fill_null(~pl.col('since')))

    @property
    def unconfirmed(self):
        '''Nodes that were worse than they had been, and of which no second measurement says all of it: neither named nor cleared.'''
        named = set(self.named)
        return [node for node in self.odd.filter(pl.col('confirmed').is_null())['node'].unique(maintain_order=True) if node not in named]

    @property
    def cleared(self):
        '''Nodes that were outliers in the first measurement and not in the second.'''
        others = {*self.named, *self.unconfirmed}
        return [node for node in self.odd['node'].unique(maintain_order=True) if node not in others]

    @property
    def without(self):
        '''Nodes that lack a test, or a part of one, that their peers have.'''
        return [node for node, tests in self.lacking.items() if any(lack.counts for lack in tests.values())]

    @property
    def shared(self):
        '''(place, its named nodes, how many nodes it has): see :func:`locality.shared`.'''
        return [found for where in self.places for found in locality.shared(where, self.named)]

    @property
    def unmeasured(self):
        '''Nodes without a result.'''
        return [node for node in self.nodes.values() if not node.measured]

    @functools.cached_property
    def having_less(self):
        '''Nodes of a kind with too few to rank that have fewer CPUs or less memory than nodes of another one with the same model and ``hardware``,
        which is what Slurm is configured with, and those of a kind that few have beside those with more, which lacks some memory modules -> what
        each has and what those have, e.g. ``724 GiB, they have 755 GiB``.'''
        kinds = results.kinds(node for node in self.nodes.values() if node.measured)
        size = Counter((self.nodes[name].hardware, kind) for name, kind in kinds.items())
        machine = {kind: self.nodes[name].machine for name, kind in kinds.items()}
        less = {}
        for (hardware, kind), few in size.items():
            more = {other: count for (where, other), count in size.items() if where == hardware and _has_less(machine[kind], machine[other])}
            is_few = few <= lacking.FEW * (few + sum(more.values()))
            theirs = [other for other, count in more.items() if count >= ranking.FEWEST
                      and (few < ranking.FEWEST or (is_few and _lacks_modules(machine[kind], machine[other])))]
            if theirs:      # of two sizes that are bought it has lost less of the smaller one
                parts = zip(kind.rsplit(', ', 2), min(theirs, key=lambda other: machine[other]['kib']).rsplit(', ', 2))
                less[hardware, kind] = ', they have '.join(', '.join(side) for side in zip(*(pair for pair in parts if pair[0] != pair[1])))
        return {name: less[key] for name, kind in kinds.items() if (key := (self.nodes[name].hardware, kind)) in less}

    @property
    def unjudged(self):
        '''Node -> the scores of subsystems that it has metrics of and is ranked in none; empty where fewer nodes were measured than can be ranked.'''
        return self.ranked.unranked if len(self.nodes) - len(self.unmeasured) >= ranking.FEWEST else {}

    @property
    def two_sorts(self):
        '''Texts: by which metric the nodes are of two sorts, though none of them stands out.'''
        return [f"{self.test(row)} {row['name']}: no node stands out, but {row['low']} and {row['high']} nodes are of two sorts, "
                f"{percent(row['gap'])} apart" for row in self.ranked.divided.iter_rows(named=True)]

    @property
    def drain(self):
        '''For each metric that is worst on some nodes the command that takes them out of service: shown, never run.'''
        worst = self._not_cleared.unique('node', keep='first', maintain_order=True).with_columns(what=WHAT)
        return [drain_command(self.name, rows['node'], metric, rows['off']) for (metric,), rows in worst.group_by('what', maintain_order=True)]

    def worst(self, node):
        '''The scores and rows by which a node is named, the worst first.'''
        return self._not_cleared.filter(pl.col('node') == node).with_columns(what=WHAT)

    @property
    def exit_status(self):
        '''1 if nodes are named, lack a test or a part of it, have less than peers, or are of two sorts; 2 if nothing could be ranked; else 0.'''
        found = self.named or self.without or self.having_less or not self.ranked.divided.is_empty()
        return 1 if found else 2 if self.ranked.rows.is_empty() else 0


def _has_less(machine, other):
    return machine['model'] == other['model'] and (machine['cpus'] < other['cpus'] or results.has_less(machine['kib'], other['kib']))


def _lacks_modules(machine, other):
    '''Whether it is memory alone that it has less of, and by less than what nodes are bought with less of.'''
    return machine['cpus'] == other['cpus'] and machine['kib'] > LEAST_BOUGHT * other['kib']


def drain_command(sweep, nodes, what, off=None):
    '''The command that takes nodes out of service, as a shell has it.

    :arg what: a subsystem or a metric, or why else; :arg off: how far they are off their peers, a column of shares.
    '''
    return shlex.join(['scontrol', 'update', f'nodename={folded(nodes)}', 'state=drain',
                       f'reason=plumbline {sweep}: {shown(what)}' + ('' if off is None else f' {_range(off)} against peers')])


def _range(shares):
    low, high = (f'{100 * share:+.0f}' for share in (shares.min(), shares.max()))
    return f'{low} %' if low == high else f'{low} .. {high} %'


def look(folder, racks=None, switches=None):
    '''What a finished or unfinished sweep says.

    :arg racks: pattern of the nodes' names (:func:`locality.by_pattern`); None for that of the plan, if it has one.
    :arg switches: a ``topology.conf``, or None.
    :raises PlumblineError: if there is no such sweep, or if pattern or file do not fit.
    '''
    sweep, frame = state.load(folder), results.frame(folder)
    earlier, sweeps = scatter.before(sweep.folder)
    in_states = scatter.in_states_before(sweep.folder)
    ranked = ranking.rank(frame, earlier, scatter.scores_before(sweep.folder), in_states)
    odd = pl.concat([ranked.outliers(), ranked.suspects()], how='diagonal_relaxed')
    folder = sweep.folder / AGAIN
    again = state.load(folder).nodes if (folder / 'sweep.json').exists() else {}
    measured_again = results.frame(folder) if again else frame.clear()
    odd = confirm.confirm(odd, ranked, measured_again, in_states)
    measured = {node.name for node in sweep.nodes.values() if node.measured}
    where = [{node: place for node, place in each.items() if node in measured}
             for each in placed(sweep.nodes, racks or sweep.plan.get('racks'), switches)]
    texts, rules, missing = {}, {}, lacking.look(ranked, frame, measured_again)
    lacks: dict[str, dict[str, lacking.Lack]] = {}
    for name in dict.fromkeys([*odd['node'], *missing]):
        its, tests, rows = odd.filter(pl.col('node') == name), missing.get(name, {}), causes.of_node(sweep.nodes[name])
        found = [] if rows is None else causes.diagnosed(rows, its, [test for test, lack in tests.items() if lack.whole])
        rules[name] = [one.rule for one in found]
        took = ['what it measured is gone: what took its time is not known'] if rows is None else causes.lost_time(rows)
        # What took time is told of all its tests already.
        texts[name] = [*took, *(f"{one.rule['says']}: {'; '.join(one.evidence)}" for one in found if not one.rule.get('always'))]
        for test, lack in tests.items():
            if reason := lacking.why(rows, test, lack):
                lacks.setdefault(name, {})[test] = replace(lack, why=reason)
    return Findings(sweep.name, sweep.nodes, frame, ranked, odd, texts, where, sweeps, lacks, rules, again)


def placed(nodes, racks, switches):
    '''Where nodes are: a dictionary node -> place for each of the two that is known.

    :raises PlumblineError: if pattern or file do not fit.
    '''
    found = [locality.by_pattern(nodes, racks)] if racks else []
    return found + ([locality.by_switch(nodes, switches)] if switches else [])


def peers_in_order(ranked, suspects, most):
    '''Nodes to measure again with suspects: of each group of peers with one of them those whose worst value is nearest to the median.

    :arg suspects: names of nodes; :arg most: how many of each group.
    '''
    deviations = ranked.of_all(lambda table: table.select(*ranking.PEERS, 'node', 'deviation'))
    suspected = pl.col('node').is_in(suspects)
    order = (deviations.filter(~suspected).join(deviations.filter(suspected), on=ranking.PEERS, how='semi', nulls_equal=True)
             .group_by(*ranking.PEERS, 'node').agg(worst=pl.col('deviation').abs().max())
             .sort('worst', 'node').group_by(ranking.PEERS, maintain_order=True).head(most))
    return order['node'].unique(maintain_order=True).to_list()
