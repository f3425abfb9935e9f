'''What the figures of several kernels share.'''

from collections.abc import Callable, Iterator
from typing import NamedTuple

from plumbline.model import quantity
from plumbline.report import drawing
from plumbline.report.readings import grouped, limit_of, measured

#: What draws a check: results -> (title, caption, figure, :class:`Table` or None) of each figure.
Draw = Callable[[list[dict]], Iterator[tuple]]


class Table(NamedTuple):
    '''What reads better than a figure: text cells, the first column names the row.'''

    header: tuple
    rows: list


def by_threads(details):
    '''(result, threads, records) for each thread count of each result.'''
    for detail in details:
        records = measured([detail])
        if not records:
            yield detail, detail.get('threads'), []
        for threads in sorted({r['threads'] for r in records}):
            yield detail, threads, [r for r in records if r['threads'] == threads]


def by_place(details):
    '''(text that says where, results) for each partition, environment and host.'''
    places: dict[tuple, list[dict]] = {}
    for detail in details:
        places.setdefault(place(detail), []).append(detail)
    differs = _differs(places)
    for at, group in places.items():
        yield _told(at, differs), group


def place(detail):
    return detail.get('partition'), detail.get('environ'), detail.get('hostname')


def where(detail, details):
    """', environ, host': what tells this result from the others of its check."""
    return _told(place(detail), _differs(map(place, details)))


def _differs(places):
    return [len(set(filter(None, column))) > 1 for column in zip(*places)]


def _told(at, differs):
    return ''.join(f', {own}' for own, differ in zip(at, differs) if differ and own)


def threads_text(threads):
    return quantity.several(threads, 'thread') if threads else 'threads unknown'


def not_drawn(title, why='there are no records of the kernel'):
    '''What stands in the place of a figure: (title, why, None).'''
    return title, f'Not drawn: {why}.', None


def bars(details, title, source='', caption=None, kernel=lambda record: record):
    '''Variants, or options of one variant, side by side: a panel for each level and thread count.

    :arg title: what is compared.
    :arg source: the figure or table that shows the same elsewhere.
    :arg caption: instead of the one that names the source.
    :arg kernel: function (record of a kernel) -> the record that is drawn.
    '''
    caption = caption or (
        'Application bandwidth, median; whiskers: quartiles of the samples. On the bar: bandwidth, and how many times '
        'as fast as the first (median over the rounds, in which all ran in turn). Line: '
        f'{drawing.LIMIT_NAME}. Each panel has its own scale. After {source}.'
    )
    for at, group in by_place(details):
        panels = []
        for (level, threads), members in grouped(measured(group), lambda r: (r['level'] or '', r['threads'])):
            kernels = [kernel(r) for r in members if r['role'] == 'kernel']
            if kernels:
                panels.append(((level, threads), kernels, limit_of(members)))
        drawn = [(f"{level or 'level unknown'}, {threads_text(threads)}", kernels, limit)
                 for (level, threads), kernels, limit in sorted(panels, key=lambda panel: panel[0])]
        yield (title + at, caption, drawing.bars(drawn)) if drawn else not_drawn(title + at)
