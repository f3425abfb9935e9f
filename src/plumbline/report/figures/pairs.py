'''Messages between all pairs of nodes: a cell for each, row the sender, column the receiver.'''

from plumbline.errors import PlumblineError
from plumbline.model import pairs as model, quantity
from plumbline.report.figures.common import Table, by_place, not_drawn
from plumbline.report.figures.matrix import heat_map, width


def pairs(details):
    '''A heat map for each size of message, and the slow nodes and pairs by name.'''
    rows, ranked = [], False
    for at, group in by_place(details):
        records = sorted((r for detail in group for r in detail.get('records') or []), key=lambda r: r['size'])
        if not records:
            yield not_drawn(f'Messages between all pairs of nodes{at}', 'there are no records')
        for record in records:
            names = [process['host'] for process in group[0]['machine']['processes']]
            size = quantity.size(record['size'])
            title = f'Messages of {size} between all pairs of {len(names)} nodes{at}'
            try:
                seconds, spread = model.matrices(record)
            except PlumblineError as error:
                yield not_drawn(title, str(error))
                continue
            slow = None
            if len(names) >= model.LEAST_NODES:
                slow, ranked = model.outliers(seconds, spread, len(record['seconds'])), True
                rows += _rows(f'{size}{at}', slow, names)
            yield title, _caption(record, seconds, slow), heat_map(
                seconds / model.typical(seconds), names, ('receives', 'sends'), 'times the median', slow.nodes if slow else ())
    if ranked:
        yield 'Nodes and links that are slow', (
            'A node: the median of its times over its partners against that of the other nodes, for sending and receiving. A link: '
            'the time between two nodes against what the two let expect, so that a slow node is not many slow links.'
        ), Table(('message', 'slow', 'when it', 'times as slow as expected'), rows or [('all', 'none', '-', '-')])


def _caption(record, seconds, slow):
    if slow is None:
        ranked = f' With fewer than {model.LEAST_NODES} nodes a slow node cannot be told from a slow link.'
    else:
        ranked = ' A slow node is a dark row where it sends and a dark column where it receives, a slow link a dark cell.'
    blocks = width(len(seconds))
    return (
        "Row: the sender, column: the receiver. Colour: time of a message and its empty answer over that of the median node, "
        f"{quantity.amount(model.typical(seconds), 's')}; median of {len(record['seconds'])} samples each, all pairs of a round at once."
        + ranked
        + (f' Each cell is the slowest pair of {blocks} x {blocks} neighbours.' if blocks > 1 else '')
    )


def _rows(what, slow, names):
    for nodes, way in ((slow.senders, 'sends'), (slow.receivers, 'receives')):
        for node, factor in nodes:
            yield what, f'node {names[node]}', way, quantity.digits(factor)
    for (i, j), factor in slow.pairs[:20]:
        yield what, f'link {names[i]} to {names[j]}', 'is used', quantity.digits(factor)
    if len(slow.pairs) > 20:
        yield what, f'{len(slow.pairs) - 20} more links', 'are used', '-'


FIGURES = {'node_pairs': pairs}
