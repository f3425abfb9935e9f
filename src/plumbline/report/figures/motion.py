'''Data motion: fill, load, update, copy; strided copy; concurrent streams.'''

import numpy as np

from plumbline.model import quantity, records
from plumbline.report import drawing
from plumbline.report.figures.common import by_threads, each_place, not_drawn, of_places, table, threads_text
from plumbline.report.readings import grouped, limit_of, measured, quartiles, rates


@each_place('Data motion', 'there are no records of the kernel')
def motion(at, group):
    '''Each motion and its variants side by side, a panel for each level and thread count.'''
    caption = (
        'Application bandwidth, median; whiskers: quartiles of the samples. On the bar: bandwidth, and how many times as fast as the first of its '
        f'panel, which ran in turn with it. Line: {drawing.LIMIT_NAME} whose traffic is certain. Each panel has its own scale. After anderson1997, '
        'tables 3 and 5.'
    )
    for name, panels in grouped(_panels(group), lambda panel: panel[0]):
        panels = [panel for _, _, panel in sorted(panels, key=lambda found: found[1])]
        yield f'Data motion: {name}{at}', caption, drawing.bars(panels)


def _panels(details):
    '''(motion, (level, threads), panel of drawing.bars) of some results.'''
    for detail in details:
        for (level, threads), members in grouped(measured([detail]), lambda r: (r['level'] or '', r['threads'])):
            kernels = [r for r in members if r['role'] == 'kernel']
            for name, own in grouped(kernels, lambda r: r['variant'].split('_')[0]):
                heading = f"{level or 'level unknown'}, {threads_text(threads)}"
                yield name, (level, threads), (heading, own, limit_of(members))


def _curves(details, title, option, caption, letter, axis):
    """Bandwidth of every variant over one option of the program's; a figure for each thread count."""
    for at, _, measurements in by_threads(details):
        kernels = [r for r in measurements if r['role'] == 'kernel']
        values = sorted({r['options'][option] for r in kernels})
        if len(values) < 2:
            yield not_drawn(title + at, f'there are no records at two or more values of {option}')
            continue
        figure = drawing.empty(400)
        drawing.add_curves(figure, grouped(kernels, lambda r: r['variant']), lambda r: r['options'][option], letter)
        limit = limit_of(measurements)
        if limit:
            drawing.add_limits(figure, [(value, limit[0], None) for value in (values[0], values[-1])])
        axis(figure, values, [rate for r in kernels for rate in quartiles(rates(r))] + ([limit[0]] if limit else []))
        yield title + at, caption, figure


def strided_copy(details):
    '''Bandwidth over the stride (anderson1997, figure 3).'''

    def axis(figure, strides, shown):
        drawing.log_lengths_and_rates(figure, shown, 'stride k (elements)')
        powers = [k for k in strides if k & (k - 1) == 0]
        figure.update_xaxes(tickvals=powers, ticktext=[str(k) for k in powers])

    caption = (
        "Application bandwidth (16 bytes per element) of y(1:n)=x(1:n*k:k), read, and of x(1:n*k:k)=y(1:n), write, over "
        "the stride k; line: median, band: quartiles of the samples. x is beyond the caches, and from k = 8 on a line of "
        "it gives one element only. Limit: the machine's own traffic rate. After anderson1997, figure 3."
    )
    yield from _curves(details, 'Strided copy', 'stride', caption, 'k', axis)


def concurrent_streams(details):
    '''Bandwidth over the number of streams.'''

    def axis(figure, streams, _):
        figure.update_xaxes(title='streams of each thread', tickvals=streams)
        figure.update_yaxes(title='bandwidth (GB/s)', rangemode='tozero')

    caption = (
        'Bandwidth of a sum over an array that each thread reads as s streams, a line of each in turn; line: median, band: quartiles of the samples. '
        "Where it falls, the hardware prefetcher has given up. Limit: the machine's own traffic rate. After anderson1997, sections 3.2.1 and 3.2.3."
    )
    yield from _curves(details, 'Concurrent read streams', 'streams', caption, 's', axis)


def motion_prefetchers(details):
    '''Table of the bandwidths with the hardware prefetchers on and off (anderson1997, table 3).'''
    header = ('variant', 'threads', 'prefetchers on', 'prefetchers off', 'on / off')
    caption = (
        'Application bandwidth with the hardware prefetchers as they were and switched off, median over the runs, which '
        'took turns; their ratio, median and range. After anderson1997, table 3.'
    )
    yield from of_places(details, 'Data motion with and without hardware prefetchers', caption, lambda group: table(
        header, (row for detail in group for row in _switched_rows(detail))), 'the prefetchers were not switched')


def _switched_rows(detail):
    for (variant, threads), members in grouped(measured([detail]), lambda r: (r['variant'], r['threads'])):
        on, off = (np.array([records.median_rate(r) for r in members if r['options'].get('prefetchers') == state]) for state in ('on', 'off'))
        if on.size and on.size == off.size:
            gain = on / off
            told = f'{quantity.digits(np.median(gain))} ({quantity.digits(min(gain))} .. {quantity.digits(max(gain))})'
            yield [variant, str(threads), *(quantity.amount(np.median(side), 'MB/s') for side in (on, off)), told]


FIGURES = {'motion_memory': motion, 'motion_levels': motion, 'strided_copy': strided_copy, 'concurrent_streams': concurrent_streams,
           'motion_prefetchers': motion_prefetchers}
