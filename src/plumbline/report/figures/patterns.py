'''Patterns of messages over all nodes: the bandwidth of a node, beside what two nodes have alone and what the described network gives.'''

from plumbline.report import drawing
from plumbline.report.figures.common import each_place

#: Subject -> what it is.
NAMES = {'bisection': 'half with half', 'ring': 'neighbours, ring', 'grid2': 'neighbours, 2-D', 'grid3': 'neighbours, 3-D',
         'matchings': 'random pairs', 'worst_matching': 'worst of them', 'incast': 'all to one', 'alltoall': 'all to all'}
_CAPTION = (
    'MB/s of a node while all send at once: what it sends, or, of all to one, what the target gets. Line: two nodes alone in the same job; a '
    'network that is not oversubscribed reaches it. Diamond: simulated on the described network, without collisions of routes.'
)
_GROWING = (
    'Each node to all others, by the first 2, 4, 8, ... of the nodes: MB/s that a node sends, measured, and simulated on the described network.'
)


@each_place('Patterns of messages over all nodes', 'nothing was measured')
def patterns(at, group):
    '''Bars of all patterns, and the curve over the number of nodes.'''
    rows: dict[str, tuple] = {}
    curve: dict[int, tuple] = {}
    for detail in group:
        values = {(row['metric'], row['subject']): row['value'] for row in detail.get('metrics') or []}
        rows |= {name: _with_expected(values, name) for name in NAMES if ('bandwidth', name) in values}
        of_all = len({subject for _, subject in values if subject and subject.startswith('alltoall')}) > 1
        for subject in [subject for metric, subject in values if metric == 'bandwidth' and subject.startswith('alltoall')] if of_all else ():
            curve[_nodes(subject, group)] = _with_expected(values, subject)
    if rows:
        yield f'Patterns of messages over all nodes{at}', _CAPTION, _bars(rows)
        if curve:
            yield f'All to all over the number of nodes{at}', _GROWING, _curve(curve)


def _with_expected(values, subject):
    '''(measured, alone, simulated), MB/s; None where it is not known.'''
    measured = values['bandwidth', subject]
    shares = (values.get((metric, subject)) for metric in ('of_pair', 'of_simulated'))
    alone, simulated = (share and measured / share for share in shares)
    return measured, alone or values.get(('bandwidth', 'pair')), simulated


def _nodes(subject, group):
    '''How many nodes a subject is of: its number, or all.'''
    _, _, number = subject.partition('.')
    if number:
        return int(number)
    return max(record['pattern']['nodes'] for detail in group for record in detail.get('records') or [] if record['variant'] == 'alltoall')


def _bars(rows):
    names = [NAMES[name] for name in NAMES if name in rows]
    found = [rows[name] for name in NAMES if name in rows]
    figure = drawing.empty(110 + 34 * len(names))
    figure.add_bar(orientation='h', y=names, x=[measured for measured, _, _ in found], name='measured', width=0.74,
                   marker=drawing.BAR, hovertemplate='%{y}: %{x:,.0f} MB/s<extra></extra>')
    for place, name, symbol, colour in ((1, 'two nodes alone', 'line-ns-open', drawing.LIMIT), (2, 'simulated', 'diamond-open', drawing.INK)):
        known = {row: values[place] for row, values in zip(names, found) if values[place]}
        if known:
            figure.add_scatter(
                y=list(known), x=list(known.values()), mode='markers', name=name, hovertemplate='%{y}, ' + name + ': %{x:,.0f} MB/s<extra></extra>',
                marker={'symbol': symbol, 'size': 14, 'color': colour, 'line': {'width': 2}},
            )
    figure.update_xaxes(title='bandwidth of a node (MB/s)', rangemode='tozero')
    figure.update_yaxes(autorange='reversed', ticks='', showgrid=False)
    return figure


def _curve(curve):
    figure = drawing.empty(380)
    lines = {name: {nodes: (values[place],) * 3 for nodes, values in sorted(curve.items()) if values[place]}
             for place, name in ((0, 'measured'), (1, 'two nodes alone'), (2, 'simulated'))}
    drawing.add_points(figure, {name: points for name, points in lines.items() if points}, 'MB/s')
    ticks = sorted(curve)
    figure.update_xaxes(type='log', title='nodes', tickvals=ticks, ticktext=[str(tick) for tick in ticks])
    figure.update_yaxes(title='bandwidth of a node (MB/s)', rangemode='tozero')
    return figure


FIGURES = {'network_patterns': patterns}
