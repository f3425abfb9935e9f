'''Load-to-use latency, and what address translation adds to it.'''

from typing import Any

import numpy as np

from plumbline.model import quantity, tlb
from plumbline.report import drawing
from plumbline.report.figures.common import by_place, each_place, not_drawn, of_places, table
from plumbline.report.readings import caches_of, measured, quartiles

LINE = 64

#: ns: no translation takes less.
LEAST_SHOWN = 0.1


@each_place('Latency over the working set', 'there are no records at two or more working sets')
def latency_curve(at, group):
    '''Latency over the working set, one curve for each kind of pages.'''
    caption = (
        'Time of a load that needs the result of the one before, over the working set, both logarithmic; line: median, '
        'band: quartiles of the samples. One pointer in each line of 64 bytes, in a random cycle. '
    )
    records = measured(group)
    curves: dict[str, dict[int, Any]] = {}
    for record in records:
        pages = 'huge pages asked for' if record['options']['pages'] == 'huge' else 'base pages'
        curves.setdefault(pages, {})[record['size'] * LINE] = quartiles(tlb.nanoseconds(record))
    if any(len(points) > 1 for points in curves.values()):
        figure = drawing.empty(430)
        drawing.add_points(figure, curves, 'ns')
        caches = caches_of(group[0].get('machine') or {}, {cpu for r in records for cpu in r.get('cpus') or []})
        told = drawing.add_sizes(figure, caches, [size for points in curves.values() for size in points])
        drawing.log_bytes(figure, curves, 'working set')
        drawing.log_values(figure, curves, 'latency (ns)')
        caption += f'Vertical lines: the caches, as the system tells them ({told}).' if told else ''
        yield f'Latency over the working set{at}', caption, figure


def latency(details):
    '''Latency of each level, with huge and with base pages.'''
    caption = (
        'Median time of a dependent load. Base pages: TLB misses included. Huge pages: mostly not, unless a virtual '
        'machine splits them (see the check tlb).'
    )

    def draw(group):
        rows: dict[str, dict[str, str]] = {}
        for row in (row for detail in group for row in detail.get('metrics') or [] if row['metric'] == 'latency'):
            level, _, pages = row['subject'].partition('.')
            rows.setdefault(level, {})[pages] = quantity.amount(row['value'], row['unit'])
        return table(('level', 'huge pages', 'base pages'),
                     [[level, *(found.get(pages, 'not measured') for pages in ('huge', 'base'))] for level, found in rows.items()])
    yield from of_places(details, 'Latency of each level', caption, draw, 'no latency was measured')


def translation(details):
    '''What address translation adds, over the number of pages.'''
    caption = (
        'What a load takes longer if each pointer lies one stride from the next than if as many lie line after line, over their number; line: '
        f'median, band: quartiles of the rounds; what is below {LEAST_SHOWN} ns is drawn there. A step begins where a level of TLB holds no more '
        'translations. After Saavedra and Smith 1995.'
    )
    for at, group in by_place(details):
        for detail in group:
            records = measured([detail])
            pages = next((r['options']['pages'] for r in detail.get('records') or []), 'huge')
            title = f'Address translation, {pages} pages{at}'
            if not records:
                yield not_drawn(title, 'there are no records of the probe')
                continue
            curves = {f'stride {quantity.size(stride)}': {int(nodes): np.maximum(quartiles(extra), LEAST_SHOWN)
                                                          for nodes, extra in zip(curve.nodes, curve.extra)}
                      for stride, curve in tlb.curves(records).items()}
            figure = drawing.empty(400)
            drawing.add_points(figure, curves, 'ns')
            figure.update_xaxes(type='log', title='pointers', dtick='D2')
            drawing.log_values(figure, curves, 'extra time (ns)')
            yield title, caption, figure


FIGURES = {'latency': latency, 'latency_curve': latency_curve, 'tlb': translation}
