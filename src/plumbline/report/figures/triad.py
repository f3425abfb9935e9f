'''The vector triad.'''

from functools import partial

from plumbline.report import drawing
from plumbline.report.figures.common import Draw, bars, each_team, of_places
from plumbline.report.readings import caches_of, efficiencies, limit_curve, quartiles, rates, series_of


@each_team('Vector triad over loop length', why='there are no records at two or more loop lengths')
def triad_curve(at, detail, records):
    '''Bandwidth over loop length, one figure per thread count (hager2004, figures 1 and 2).'''
    kernels = [r for r in records if r['role'] == 'kernel']
    if len({r['size'] for r in kernels}) > 1:
        figure = drawing.empty(430)
        drawing.add_curves(figure, series_of(kernels))
        limit = limit_curve(records)
        drawing.add_limits(figure, limit)
        caches = caches_of(detail.get('machine') or {}, {cpu for r in kernels for cpu in r.get('cpus') or []})
        told = drawing.add_sizes(figure, caches, [r['size'] for r in kernels], each=32)      # four arrays
        shown = [rate for r in kernels for rate in quartiles(rates(r))] + [rate for _, rate, _ in limit]
        drawing.log_lengths_and_rates(figure, shown)
        yield f'Vector triad over loop length{at}', _curve_caption(told, limit), figure


def _curve_caption(caches, limit):
    sentences = [
        'Application bandwidth (32 bytes per iteration) of A=B+C*D over the loop length, both logarithmic; line: '
        'median, band: quartiles of the samples.',
        f'Vertical lines: there the four arrays fill the caches of the threads ({caches}).' if caches else '',
        "Limits: the machine's own, measured in the same rounds; the lower one counts the write-allocate of the stores."
        if limit
        else 'No limit streams were measured, so no limit is drawn.',
        'After hager2004, figures 1 and 2.',
    ]
    return ' '.join(filter(None, sentences))


def triad_scaling(details):
    '''Parallel efficiency in cache and in memory over the number of threads (hager2004, section 4).'''
    caption = (
        'Rate of n threads over n times the rate of one, paired by round; whiskers: quartiles. In cache, per clock cycle, a healthy node '
        'stays near 1; in memory it falls as the threads share the bandwidth. After hager2004, section 4 and table 2.'
    )
    draw = lambda group: drawing.efficiency(curves) if (curves := efficiencies(group)) else None
    yield from of_places(details, 'Efficiency over threads', caption, draw, 'there are no records of one thread and of several')


FIGURES: dict[str, Draw] = {
    'triad_curve': triad_curve, 'triad_memory': partial(bars, title='Variants of the vector triad in memory', source='hager2004, figure 4'),
    'triad_scaling': triad_scaling,
    'triad_allocation': partial(bars, title='Vector triad with dynamic and static arrays', source='hager2004, figure 2'),
    'triad_alignment': partial(bars, title='Vector triad with shifted arrays', source='hager2007, figure 4'),
    'triad_firsttouch': partial(bars, title='Vector triad after parallel and serial first touch', source='hager2004, table 2'),
}
