'''Sparse matrix times vector.'''

from functools import partial

import numpy as np

from plumbline.model import quantity, records, sources
from plumbline.report import drawing
from plumbline.report.figures.common import Draw, of_places, table, threads_text
from plumbline.report.readings import grouped, limit_of, measured, paired


def spmv_cg(details):
    '''Mflop/s of each variant at the sizes of the source (anderson1997, table 7).'''
    header = ('rows', 'threads', 'level', 'variant', 'performance', 'times plain')
    caption = (
        'Performance at 2 flops per nonzero, median; times plain: median over the rounds, in which all ran in turn. '
        f"After anderson1997, table 7: there {_then('naive')} Mflop/s by ordinary loops, {_then('cache_bypass')} with the cache bypassed, "
        f"{_then('library')} by library, of 7000 rows. No load goes past the caches today: `stream` is `unroll` with the lines fetched ahead."
    )
    yield from of_places(details, "Sparse matrix-vector product of CG's class A", caption, lambda group: table(
        header, sorted((row for detail in group for row in _rows(detail)), key=lambda row: (int(row[0]), int(row[1])))))


def _then(method):
    return f"{sources.value('anderson1997-table7-spmv', method, 'mflops'):g}"


def _rows(detail):
    for (size, threads), kernels in grouped(measured([detail], 'kernel'), lambda r: (r['size'], r['threads'])):
        for record in kernels:
            rate = quantity.amount(records.median_rate(record, 'flops'), 'Mflop/s')
            ratio = quantity.digits(float(np.median(paired(record, kernels[0]))))
            yield str(size), str(threads), record['level'] or '-', record['variant'], rate, ratio


def variants(details, title):
    '''Application bandwidth of the variants: a panel for each matrix and thread count.'''
    caption = (
        'Application bandwidth (12 bytes per nonzero, 24 per row), median; per row: nonzeros; whiskers: quartiles of the samples. On the bar: '
        'bandwidth, and how many times as fast as the first (median over the rounds, in which all ran in turn). Line: '
        f'{drawing.LIMIT_NAME}. Each panel has its own scale. After anderson1997, section 3.3.3 and table 7.'
    )

    def draw(group):
        panels = sorted((panel for detail in group for panel in _panels(detail)), key=lambda panel: panel[0])
        return drawing.bars(panels) if panels else None
    yield from of_places(details, title, caption, draw)


def _panels(detail):
    '''(heading, kernel records, limit) of each matrix and thread count of one result.'''
    for (_, threads), kernels in grouped(measured([detail], 'kernel'), lambda r: (r['group'], r['threads'])):
        first = kernels[0]
        members = [r for r in detail['records'] if (r['group'], r['threads']) == (first['group'], threads)]
        nonzeros = records.per_pass(first, 'flops') / 2 / first['size']
        columns = '' if first['options'].get('matrix') else f"{first['options']['columns']}, "
        heading = f"{columns}{nonzeros:.3g} per row, {first['level']}, {threads_text(threads)}"
        yield heading, kernels, limit_of(members)


FIGURES: dict[str, Draw] = {'spmv_cg': spmv_cg, 'spmv_memory': partial(variants, title='Sparse matrix-vector product beyond the caches'),
                            'spmv_matrix': partial(variants, title="Sparse matrix-vector product, the site's matrix")}
