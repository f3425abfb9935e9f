'''Stencils: the nine-point kernel and how its arrays lie, the Jacobi sweep in memory.'''

from functools import partial

from plumbline.model import quantity, records
from plumbline.report import drawing
from plumbline.report.figures.common import Draw, bars, of_places, table
from plumbline.report.readings import grouped, measured, paired, quartiles

#: Of the sweep what must move of each point at least, and its operations.
_BYTES, _FLOPS = 16, 8


def jacobi(details, title, planes):
    '''Variants of the Jacobi sweep side by side, a panel for each thread count.

    Bars show what has to move at least, whatever the caches keep, so that the limit bounds them all.
    '''
    caption = (
        f'{_BYTES} bytes per point, each value read once and written once, median; whiskers: quartiles of the samples; {planes}. On the bar: the '
        f'same, and how many times as fast as plain, which ran in turn with it. Line: {drawing.LIMIT_NAME}. What a sweep loads more often, and the '
        'write-allocate of ordinary stores, keeps it below; of_limit counts both.'
    )
    yield from bars(details, title, caption=caption, kernel=lambda r: r | {'bytes': _BYTES * r['flops'] / _FLOPS})


def ninepoint(details):
    '''Table of the layouts of the nine-point kernel (anderson1997, section 3.1.3).'''
    header = ('n', 'threads', 'level', 'arrays', 'leading dimension', 'performance', 'over plain', 'quartiles')
    caption = (
        'Finite differences with two nine-point stencils, 47 flops per point, on arrays of n by n; median. Over plain: how many times as fast as '
        'with arrays one right after another, median and quartiles over the rounds, in which all ran in turn. Fortran has its arrays as plain has. '
        'On the Cray T3E-900 padding made it 2.0 times as fast: 311 instead of 156 Mflop/s with n = 513 (anderson1997, section 3.1.3).'
    )
    yield from of_places(details, 'How the arrays of a nine-point kernel lie', caption, lambda group: table(header, (
        _layout_row(record, next((r for r in members if r['variant'] == 'plain'), None))
        for _, members in sorted(grouped(measured(group, 'kernel'), lambda r: (r['size'], r['threads']))) for record in members)))


def _layout_row(record, plain):
    ratio, spread = '-', '-'
    if plain and record is not plain:
        low, middle, high = quartiles(paired(record, plain))
        ratio, spread = quantity.digits(middle), f'{quantity.digits(low)}..{quantity.digits(high)}'
    return [str(record['size']), str(record['threads']), record['level'] or '-', record['variant'],
            f"{record['options']['leading-dimension']:.0f}", quantity.amount(records.median_rate(record, 'flops'), 'Mflop/s'), ratio, spread]


FIGURES: dict[str, Draw] = {
    'jacobi_memory': partial(jacobi, title='Jacobi sweep in memory', planes='three planes of the box stay in cache'),
    'jacobi_blocking': partial(
        jacobi, title='Jacobi sweep in memory, planes larger than the cache', planes='three planes of the box do not stay in cache'
    ),
    'ninepoint_padding': ninepoint,
}
