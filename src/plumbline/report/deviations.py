'''Figures of a sweep: how far every node is from its peers, and the worst metrics drawn out.'''

import numpy as np
import polars as pl

from plumbline.gate.packed.node import natural
from plumbline.report import drawing
from plumbline.sweep.ranking import METRIC

#: Rows of the heat map, and of the strips: more than a reader looks at hide what is there.
MOST_ROWS, MOST_STRIPS = 40, 8

#: Colours do not tell deviations beyond this apart.
FARTHEST = 10.0

#: Better, none, worse; worse is dark in grey-scale print.  Nothing measured: the colour of the ground.
SCALE = [[0, '#9ecae1'], [0.25, '#f2f7fa'], [0.5, '#ffffff'], [0.75, '#f6c9a0'], [1, '#8c1d18']]
GROUND = '#bdbdbd'

_STRIPS = ('Each point is a node: its value against the median of its peers. Red diamonds: outliers. Slow nodes are on the left of bandwidths and '
           'rates, and on the right of latencies and times.')


def figures(found):
    '''(title, caption, plotly figure) for each group of peers.

    :arg found: :class:`plumbline.sweep.outliers.Findings`.
    '''
    rows, named = found.ranked.rows.lazy().select(*METRIC, 'node', 'bad', 'off'), set(found.named)
    known = rows.select(METRIC).unique(maintain_order=True).collect()
    known = known.with_columns(shown=pl.Series([f"{found.test(row)} {row['name']}" for row in known.iter_rows(named=True)], dtype=pl.Categorical()))
    for (_, partition, kind), those in known.group_by('system', 'partition', 'kind', maintain_order=True):
        of = f"partition {partition}, {kind or 'kind unknown'}"
        group = rows.join(those.lazy(), on=METRIC, nulls_equal=True).select('shown', 'node', 'bad', 'off').collect()
        nodes = sorted(group['node'].unique(), key=natural)
        odd = [node for node in nodes if node in named]
        yield f'Every node against its peers: {of}', _heat_caption(group, nodes), _heat_map(group, nodes, odd)
        yield f'The metrics that differ most: {of}', _STRIPS, _strips(group, nodes, odd)


def _worst_first(group, most):
    return (group.group_by('shown').agg(worst=pl.col('bad').max()).sort('worst', 'shown', descending=[True, False]).head(most)['shown'].to_list())


def _heat_caption(group, nodes):
    metrics = group['shown'].n_unique()
    told = (f'{len(nodes)} nodes by {metrics} metrics. Colour: deviation from the median of the peers in robust standard deviations, dark red '
            f'{FARTHEST:g} or more on the bad side, blue on the good one; grey: not measured. Triangles: outliers.')
    return told + (f' The {MOST_ROWS} metrics that differ most.' if metrics > MOST_ROWS else '')


def _matrix(group, nodes, names, column):
    '''Values of shape (names, nodes); NaN where there is none.'''
    matrix = np.full((len(names), len(nodes)), np.nan, dtype=np.float32)
    rows = group.filter(pl.col('shown').is_in(names))
    at = [rows[key].cast(pl.Enum(keys)).to_physical().to_numpy() for key, keys in (('shown', names), ('node', nodes))]
    matrix[tuple(at)] = rows[column].to_numpy()
    return matrix


def _heat_map(group, nodes, odd):
    names = _worst_first(group, MOST_ROWS)
    figure = drawing.empty(110 + 20 * len(names))
    figure.add_heatmap(
        x=nodes, y=[drawing.plain_text(name) for name in names],
        z=np.clip(_matrix(group, nodes, names, 'bad'), -FARTHEST, FARTHEST),
        zmin=-FARTHEST, zmax=FARTHEST, colorscale=SCALE, xgap=1 if len(nodes) <= 60 else 0, ygap=1,
        colorbar={'title': {'text': 'worse', 'side': 'right'}, 'thickness': 10, 'tickvals': [-FARTHEST, 0, FARTHEST]},
        hovertemplate='%{x}, %{y}: %{z:.1f}<extra></extra>')
    for node in odd:
        figure.add_annotation(x=node, y=1, yref='y domain', yanchor='bottom', showarrow=False, text='\u25bc',
                              hovertext=node, font={'color': drawing.LIMIT, 'size': 10})
    figure.update_layout(plot_bgcolor=GROUND, margin={'t': 30})
    figure.update_yaxes(autorange='reversed', ticks='', showgrid=False)
    figure.update_xaxes(type='category', categoryarray=nodes, range=[-0.5, len(nodes) - 0.5], showgrid=False, title='node')
    return figure


def _strips(group, nodes, odd):
    names = _worst_first(group, MOST_STRIPS)
    off = 100 * _matrix(group, nodes, names, 'off')
    # Side by side where they would hide each other: the golden section spreads neighbours.
    aside = (np.arange(len(nodes)) * 0.618 % 1 - 0.5) * 0.6
    is_odd = np.isin(nodes, odd)
    figure = drawing.empty(110 + 44 * len(names))
    for those, look in ((~is_odd, {'color': drawing.GREY, 'size': 5, 'opacity': 0.5}),
                        (is_odd, {'color': drawing.LIMIT, 'size': 9, 'symbol': 'diamond'})):
        x, y = off[:, those], np.arange(len(names))[:, None] + aside[None, those]
        who = np.broadcast_to(np.array(nodes)[those], x.shape)
        figure.add_scatter(
            x=x.ravel(), y=y.ravel().astype(np.float32), mode='markers', marker=look, customdata=who.ravel().tolist(),
            showlegend=False, hovertemplate='%{customdata}: %{x:+.1f} %<extra></extra>')
    figure.add_vline(x=0, line={'color': drawing.INK, 'width': 1})
    figure.update_xaxes(title="off the peers' median (%)")
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=[drawing.plain_text(name) for name in names],
                        range=[len(names) - 0.5, -0.5], ticks='', showgrid=False)
    return figure
