'''The roofline of a place (Williams, Waterman, Patterson, CACM 52 (2009) 65): what its streams and its arithmetic allow, and each kernel.'''

import json

from plumbline.model import quantity, records as model, states
from plumbline.report import drawing
from plumbline.report.figures.common import by_place, threads_text
from plumbline.report.readings import GIGA, grouped, limit_of, measured

LEVELS = ('L1', 'L2', 'L3', 'memory')

CAPTION = (
    'Slanted: the best limit stream of each level; flat: the fastest stream of fused multiply-adds, and DGEMM where it was measured. A '
    'point is the fastest variant of a kernel in a level, by the operations and the traffic of its model; what is below both roofs is slow '
    'for another reason: latency, instructions, dependences. All rates are medians.'
)


def roofline(details):
    '''(title, caption, figure) of one thread and of all, for each place in which ``peak_flops`` ran.

    :arg details: the results of all checks.
    '''
    for at, group in by_place(details):
        records = measured(group)
        peaks = [record for record in records if record['kernel'] == 'flops']
        for threads in sorted({record['threads'] for record in peaks}):
            ours = [record for record in records if record['threads'] == threads]
            caption = CAPTION + _of_states(group, threads)
            yield f'Roofline, {threads_text(threads)}{at}', caption, _figure(ours, _roofs(group, threads) or _of_streams(ours))


def _of_states(details, threads):
    '''Where a hypervisor moves cores, a point below its roof may be no slow kernel.'''
    met = [row['state'] for detail in details if any(record['threads'] == threads for record in detail.get('records') or [])
           for row in detail['metrics'] if row.get('state')]
    told = states.texts(map(json.loads, met)) if threads > 1 and not states.one(met) else ''
    return f' The machine was in several states ({told}), and a point may be of another one than its roof.' if told else ''


def _roofs(details, threads):
    '''Level -> GB/s, as the check ``limits`` has it: a curve has sizes just above a cache, most of which still lies in it.'''
    return {row['subject']: row['value'] * GIGA for detail in details if detail['check'] == 'limits'
            and any(record['threads'] == threads for record in detail.get('records') or [])
            for row in detail['metrics'] if row['metric'] == 'bandwidth' and quantity.known(row['value'])}


def _of_streams(records):
    found = {level: limit_of([record for record in records if record['level'] == level]) for level in LEVELS}
    return {level: limit[0] for level, limit in found.items() if limit}


def _rate(record):
    '''Gflop/s, median.'''
    return model.median_rate(record, 'flops') * GIGA


def _figure(records, roofs):
    flat = {record['variant']: _rate(record) for record in records if record['kernel'] == 'flops'}
    dgemm = flat.pop('dgemm', None)
    peak = max(flat.values())
    points = list(_points(records))
    left = min([intensity for intensity, *_ in points], default=0.05) / 2
    right = max([peak / limit for limit in roofs.values()] + [intensity for intensity, *_ in points], default=10) * 4
    figure = drawing.empty(420)
    for level, dash in zip(LEVELS, ('dot', 'dashdot', 'dash', 'solid')):
        if level in roofs:
            limit = roofs[level]
            figure.add_scatter(x=[left, peak / limit], y=[left * limit, peak], mode='lines', name=f'{level}: {drawing.gigabytes(limit)}',
                               line={'color': drawing.LIMIT, 'dash': dash, 'width': 1.5}, hoverinfo='name')
    for name, rate, dash in (('peak', peak, 'solid'), ('DGEMM', dgemm, 'dot')):
        if rate:
            figure.add_scatter(x=[left, right], y=[rate, rate], mode='lines', name=f'{name}: {quantity.digits(rate)} Gflop/s',
                               line={'color': drawing.ALLOCATE, 'dash': dash, 'width': 1.5}, hoverinfo='name')
    for (kernel, its), (colour, symbol, _) in zip(grouped(points, lambda point: point[2]), drawing.SERIES * (len(points) + 1)):
        figure.add_scatter(x=[point[0] for point in its], y=[point[1] for point in its], mode='markers', name=drawing.plain_text(kernel),
                           marker={'color': colour, 'symbol': symbol, 'size': 9}, text=[drawing.plain_text(point[3]) for point in its],
                           hovertemplate='%{text}: %{y:.3g} Gflop/s at %{x:.3g} flop/byte<extra></extra>')
    figure.update_xaxes(type='log', title_text='flop per byte of traffic')
    figure.update_yaxes(type='log', title_text='Gflop/s')
    return figure


def _points(records):
    '''(flop per byte, Gflop/s, kernel, 'kernel variant in level') of the fastest variant of each kernel in each level.'''
    counted = [record for record in records if record['role'] == 'kernel' and record['kernel'] not in ('flops', 'streams') and record.get('flops')
               and record.get('traffic') and record['level']]
    for (kernel, level), its in grouped(counted, lambda record: (record['kernel'], record['level'])):
        best = max(its, key=_rate)
        yield best['flops'] / best['traffic'], _rate(best), kernel, f"{kernel} {best['variant']} in {level}"
