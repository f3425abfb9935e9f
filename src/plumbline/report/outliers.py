'''The terminal's account of a sweep: the outliers, what was not measured, what could not be ranked.'''

import json

import polars as pl
from rich.text import Text

from plumbline.analysis.answers import some
from plumbline.model import grouping, quantity, registry, states
from plumbline.model.parameters import as_words
from plumbline.model.prediction import MOST_LOSS
from plumbline.report.grid import grid
from plumbline.sweep import ranking
from plumbline.sweep.outliers import NO_PEERS
from plumbline.sweep.ranking import FEWEST
from plumbline.sweep.slurm import folded

#: Rows of a node's worst metrics; the page has them all.
MOST = 3


def render(found, console):
    '''Print :class:`plumbline.sweep.outliers.Findings`.'''
    def say(text, style=''):
        console.print(Text(text, style), soft_wrap=True)

    say(headline(found), {0: '', 1: 'bold red', 2: 'bold yellow'}[found.exit_status])
    if found.named:
        console.print(_table(found))
    causes = ((cause, node) for node in dict.fromkeys([*found.named, *found.without]) for cause in found.causes[node])
    for cause, nodes in grouping.by_key(causes).items():
        say(f'  {folded(nodes)}: {cause}')
    for text in [*unjudged(found), *sees(found), *remarks(found)]:
        say(f'  {text}')
    if found.named:
        say(f'outliers: {folded(found.named)}', 'bold')
        say('To take them out of service (not done here):')
        for line in found.drain:
            say(f'  {line}')


def headline(found):
    '''How many nodes are outliers, of how many, by how many metrics.'''
    rows = found.ranked.rows
    measured = len(found.nodes) - len(found.unmeasured)
    told = f'sweep {found.name}: {measured} of {len(found.nodes)} nodes measured'
    if rows.is_empty():
        return f'{told}; they cannot be ranked: no metric of {FEWEST} nodes of one kind or more'
    metrics = rows.select('check', 'name', 'environ').n_unique()
    ranked, divided = rows['node'].n_unique(), found.ranked.divided.height
    return (f"{told}, {ranked} ranked by {metrics} metrics: {quantity.several(len(found.named) or 'no', 'outlier')}"
            + (f"; {quantity.several(len(found.without), 'node')} without a test that peers have, or a part of one" if found.without else '')
            + (f"; {quantity.several(len(found.having_less), 'node')} with fewer CPUs or less memory than peers" if found.having_less else '')
            + (f'; {measured - ranked} could not be ranked' if ranked < measured else '')
            + (f'; by {divided} of the metrics the nodes are of two sorts' if divided else ''))


def unjudged(found):
    '''Lines: the subsystems that nodes could not be judged in.'''
    for scores, nodes in grouping.by_key(('; '.join(its), node) for node, its in found.unjudged.items()).items():
        yield f'{NO_PEERS}: {folded(nodes)}: {scores}'


def sees(found):
    '''Lines: the loss that would have been seen of a metric, and of each subsystem.'''
    seen = [table.group_by(ranking.METRIC).agg(pl.col('sees').median(), pl.col('better').first())
            for table in (found.ranked.rows, found.ranked.scores)]
    if not seen[0].is_empty():
        by = f'; sweeps before it that say how nodes scatter, too: {found.earlier}' if found.earlier else ''
        lost = pl.when(pl.col('better') == registry.LESS).then(pl.col('sees') / (1 + pl.col('sees'))).otherwise(pl.col('sees'))     # of the speed
        blind = seen[0].filter(lost > MOST_LOSS).height
        worst = (f'none of less than {quantity.percent(MOST_LOSS, 0)} in {blind} of them' if blind else
                 f"{quantity.percent(seen[0]['sees'].max())} (the worst)")
        yield f"would have seen a loss of {quantity.percent(seen[0]['sees'].median())} (median of {len(seen[0])} metrics), {worst}{by}"
    if not seen[1].is_empty():
        parts = seen[1].group_by('check').agg(pl.col('sees').median()).sort('check')
        yield 'and of a subsystem: ' + ', '.join(f'{name} {quantity.percent(share)}' for name, share in parts.iter_rows())
    new = found.ranked.newly
    if not new.is_empty():
        parts = new.group_by('check').agg(pl.col('sees').median()).sort('check')
        yield (f"of what is new since the {new['sweeps'].max()} sweeps before, by each node itself: "
               + ', '.join(f'{name} {quantity.percent(share)}' for name, share in parts.iter_rows()))


def remarks(found):
    '''What else there is to say, a text each.'''
    ranked = found.ranked
    for place, nodes, size in found.shared:
        yield f'{place}: {len(nodes)} of its {size} nodes are outliers ({folded(nodes)}): look at what they share'
    if found.cleared:
        yield f'outliers at first, not when measured again: {folded(found.cleared)}'
    if found.unconfirmed:
        yield f'worse than before, and not measured again, or not comparably: {folded(found.unconfirmed)}'
    for node, text in found.having_less.items():
        yield (f'{node} has less than the nodes that are alike by the configuration of Slurm: {text}: look for a part that has failed; where it is '
               'meant to have less, give it a feature of its own there')
    for row in ranked.few.iter_rows(named=True):
        yield (f"cannot rank {folded(row['nodes'])} ({row['partition']}, {row['environ']}): {len(row['nodes'])} of the "
               f"kind {row['kind']}, {FEWEST} are needed")
    if ranked.unlike:
        yield f'not ranked in metrics of caches, with another working set than their peers: {folded(ranked.unlike)}'
    elsewhere = ranked.rows.filter(pl.col('there') != 1).group_by('node').agg(pl.len(), pl.col('state').first()).sort(pl.col('node').cast(pl.String))
    if not elsewhere.is_empty():
        told = (f"{node} in {quantity.several(count, 'metric')} ({states.text(json.loads(state))})" for node, count, state in elsewhere.iter_rows())
        yield (f'compared with nodes in another state of their host, since fewer than {FEWEST} were in theirs, by what earlier sweeps know of both: '
               f"{', '.join(told)}")
    if ranked.apart:
        told = (f"{node} in {quantity.several(count, 'metric')} ({states.text(state)})" for node, (state, count) in sorted(ranked.apart.items()))
        yield (f"not ranked where fewer than {FEWEST} nodes were in their state, which is their host's doing, and earlier sweeps do not know it: "
               f"{', '.join(told)}; where a node is alone in each sweep, ask for cores that are placed like those of the others")
    yield from found.two_sorts
    for node, tests in found.lacking.items():
        for test, lack in tests.items():
            yield f'{node} {lack.told(test)}'
    for (node, check), missing in ranked.lacking.group_by('node', 'check', maintain_order=True):
        if check in found.lacking.get(node, ()):
            continue
        names = missing['name'].to_list()
        yield (f"{node} lacks {some(names, MOST)} of {as_words(check)}, which {missing['having'].max()} of "
               f"{missing['peers'][0]} nodes have")
    better = ranked.better()
    if not better.is_empty():
        yield f"better than their peers, no alarm: {folded(better['node'].unique())}"
    for reason, nodes in by_reason(node for node in (*found.nodes.values(), *found.again.values()) if node.measured and node.status).items():
        yield f'not in order by its own report: {folded(nodes)}: {reason}'
    for reason, nodes in by_reason(found.unmeasured).items():
        yield f'not measured: {folded(nodes)}: {reason}'
    for reason, nodes in by_reason(node for node in found.again.values() if not node.measured).items():
        yield f'not measured again: {folded(nodes)}: {reason}'


def by_reason(nodes):
    '''Why nodes were not measured, or what their own reports say -> their names.'''
    return grouping.by_key((node.told if node.measured else node.missing, node.name) for node in nodes)


def odd_rows(found):
    '''Node -> its scores and rows as text, column -> cell; the worst node and the worst row first.'''
    return grouping.by_key((row['node'], _cells(found, row)) for row in found.odd.iter_rows(named=True))


def _cells(found, row):
    again = {None: '', True: 'yes: ', False: 'no: '}[row['confirmed']]
    score = row['name'] == 'score'
    return {'check': row['check'] + ', against itself' * row['since'] if score else found.test(row),
            'metric': f"{row['members']} metrics" if score else row['name'],
            'value': quantity.amount(row['value'], row['unit']),
            "peers' median": quantity.amount(row['median'], row['unit'], row['value']),
            'off': quantity.change(row['off']), 'deviation': f"{row['deviation']:+.1f}",
            'rank': f"{row['rank']} of {row['peers']}",
            'confirmed': again + quantity.amount(row['again'], row['unit'], row['value'])}


def _table(found):
    rows, lines = odd_rows(found), []
    columns = next(iter(rows.values()))[0]
    for node in found.named:
        lines += [('' if number else node, *row.values()) for number, row in enumerate(rows[node][:MOST])]
        lines += [('', f'and {len(rows[node]) - MOST} more metrics')] if len(rows[node]) > MOST else []
    return grid(['node', *columns], lines, right={*columns} - {'check', 'metric'}, padding=(0, 1, 0, 0))
