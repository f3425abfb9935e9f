"""The machine's own limits."""

import statistics

from plumbline.likwid.bench_output import agreement, cross_check_best
from plumbline.model import quantity
from plumbline.model.limits import CROSS_CHECK_AGREES
from plumbline.report import drawing
from plumbline.report.figures.common import of_places, table
from plumbline.report.readings import grouped, limit_of, measured


def limits(details):
    """The machine's limits per level, with the independent cross-check beside."""
    header = ('level', 'threads', 'own limit', 'stream', 'likwid-bench', 'its kernel', 'own / likwid-bench', 'of peak')
    caption = (
        "Own: the highest traffic rate of any limit stream, median, with its name. Beside it the best of likwid-bench, and "
        "own streams over likwid-bench where the two ran by turns: below 0.97 the limit is raised to likwid-bench's. "
        "Of peak: share of the rate that the datasheet promises."
    )
    yield from of_places(details, "The machine's own limits", caption, lambda group: table(
        header, sorted((row for detail in group for row in _limit_rows(detail)), key=lambda row: (row[0], int(row[1])))),
        'there are no records of limit streams')


def _limit_rows(detail):
    '''Cells of the table of limits: one row per level and thread count of one result.'''
    # The program of this check runs the limit streams as its kernels.
    streams = [r for r in measured([detail]) if r['role'] == 'limit' or r['kernel'] == 'streams']
    rows = []
    for (level, threads), group in grouped(streams, lambda r: (r['level'] or '-', r['threads'])):
        own, record = limit_of([r | {'role': 'limit'} for r in group])
        seen = (
            [quantity.amount(best['traffic_rate'], 'MB/s'), best['kernel'], _agreement(agreement(detail['cross_check'], level, threads))]
            if (best := cross_check_best(detail.get('cross_check'), level, threads))
            else ['not confirmed by likwid-bench', '-', '-']
        )
        rows.append([level, str(threads), drawing.gigabytes(own), record['variant'], *seen, _of_peak(detail, level)])
    return rows


def _agreement(ratios):
    if not ratios:
        return 'not compared'
    return quantity.digits(statistics.median(ratios)) + (': they disagree' if max(ratios) < CROSS_CHECK_AGREES else '')


def _of_peak(detail, level):
    """The value of the metric ``of_peak`` of a level, or 'peak unknown'."""
    return next((quantity.digits(row['value']) for row in detail.get('metrics') or []
                 if row['metric'] == 'of_peak' and row['subject'] == level and quantity.known(row['value'])), 'peak unknown')


FIGURES = {'limits': limits}
