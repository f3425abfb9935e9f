'''The machine in small pictures, which stand above its verdicts: the roofline, the memory hierarchy, messages over their size.'''

import math

from plumbline.model import quantity
from plumbline.mpi import pingpong
from plumbline.report import drawing
from plumbline.report.figures.common import by_place
from plumbline.report.figures.pingpong import drawn
from plumbline.report.figures.roofline import LEVELS, roofline
from plumbline.report.readings import GIGA, grouped

_HIERARCHY = ('What each level gives all threads, median of its best limit stream; in the bar: what is ours of the cache, as its '
              'latency tells, of what the topology says, and the latency of a load that waits for the one before.')
_MESSAGES = 'Bytes of a message, sent back from where it came, over half the round trip; line: median, band: quartiles.'


def overview(details):
    '''(title, caption, figure, words that find its rows...) of the first place that has one: what is drawn of the others stands below.

    :arg details: the results of all checks, those with a FAIL first.
    '''
    places = list(by_place(details))
    with_flops = lambda its: dict.fromkeys(detail['check'] for detail in its if any(record.get('flops') for record in detail.get('records') or ()))
    yield from next(([(*found[-1], 'limits', *with_flops(group))]
                     for _, group in places if (found := list(roofline(group)))), [])  # most threads
    yield from next(([(f'Memory hierarchy{at}', _HIERARCHY, found, *(f'limits {level}' for level in found.data[0].y),
                       *sorted({'capacity', 'latency'} & {detail['check'] for detail in group}))]
                     for at, group in places if (found := _hierarchy(group))), [])
    for at, group in by_place([detail for detail in details if detail['check'] == 'pingpong' and detail.get('records')]):
        curves = {transport: pingpong.cases([record for detail in its for record in detail['records']], 'swapped')
                  for transport, its in grouped(group, lambda detail: detail.get('transport'))}
        curves = {transport: curve for transport, curve in curves.items() if any(curve)}        # of messages that are not empty
        if curves:
            yield f'Messages{at}', _MESSAGES, drawn(curves, height=300), 'pingpong'
        break


def _values(details, check, metric, threads=None):
    '''Subject -> value of a metric of a check.'''
    return {row['subject']: row['value'] for detail in details if detail['check'] == check and threads in (None, str(detail['threads']))
            for row in detail['metrics'] if row['metric'] == metric and quantity.known(row['value'])}


def _hierarchy(details):
    '''Bars of the levels' bandwidth on a logarithmic axis; None where the limits were not measured.'''
    limits: dict[str, float] = next((found for threads in ('all', 'one') if (found := _values(details, 'limits', 'bandwidth', threads))), {})
    levels = [level for level in LEVELS if level in limits]
    if not levels:
        return None
    ours, latency = _values(details, 'capacity', 'capacity'), _values(details, 'latency', 'latency')
    machine: dict = next((detail['machine'] for detail in details if 'caches' in (detail.get('machine') or ())), {})
    claims = {f"L{cache['level']}": cache['size'] for cache in machine.get('caches') or () if cache['size']}
    figure = drawing.empty(80 + 44 * len(levels))
    figure.add_bar(orientation='h', y=levels, x=[limits[level] * GIGA for level in levels], showlegend=False, width=0.8, marker=drawing.BAR,
                   hoverinfo='skip')
    least = min(limits[level] for level in levels) * GIGA / 20
    for level in levels:
        waits = latency.get(f'{level}.huge', latency.get(f'{level}.base'))
        told = [_of_claim(ours.get(level), claims.get(level)), quantity.amount(waits, 'us') if quantity.known(waits) else '']
        text = '<br>'.join(filter(None, [quantity.amount(limits[level], 'MB/s'), ', '.join(filter(None, told))]))
        figure.add_annotation(x=math.log10(least * 1.1), y=level, xanchor='left', showarrow=False, align='left', font={'size': 11}, text=text)
    figure.update_xaxes(type='log', range=[math.log10(least), math.log10(max(limits.values()) * GIGA * 1.3)], dtick=1, title='bandwidth (GB/s)')
    figure.update_yaxes(autorange='reversed', ticks='', showgrid=False)
    return figure


def _of_claim(ours, claim):
    '''What of a cache is ours, of what the topology says; '' of memory.'''
    if claim is None:
        return ''
    share = f'{quantity.percent(min(1.0, ours / claim), 0)} of it ours' if quantity.known(ours) else 'not measured what of it is ours'
    return f'{quantity.size(claim)}, {share}'
