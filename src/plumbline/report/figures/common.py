'''What the figures of several kernels share.'''

import functools
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
    '''(text that says where, result, records) for each thread count of each result.'''
    for detail in details:
        records = measured([detail])
        for threads in sorted({r['threads'] for r in records}) or [detail.get('threads')]:
            yield f', {threads_text(threads)}{where(detail, details)}', detail, [r for r in records if r['threads'] == threads]


def by_place(details):
    '''(text that says where, results) for each partition, environment and host.'''
    places = grouped(details, place)
    differs = _differs(at for at, _ in places)
    return [(_told(at, differs), group) for at, group in places]


def by_transport(details):
    '''(text that says where, transport, records) of each place and transport.'''
    for at, group in by_place(details):
        for transport, members in grouped(group, lambda detail: detail.get('transport')):
            yield at, transport, [record for detail in members for record in detail.get('records') or []]


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


def of_places(details, title, caption, draw, why='there are no records of the kernel'):
    '''The figure of each place.

    :arg draw: function (results of a place) -> what is drawn; None where there is nothing to draw, for the reason ``why``.
    '''
    for at, group in by_place(details):
        drawn = draw(group)
        yield not_drawn(title + at, why) if drawn is None else (title + at, caption, drawn)


def each_place(title, why='there are no records', split=by_place):
    '''Decorator of a function (text that says where, results of that place) that yields its figures: where it yields none, the reason ``why``.

    :arg split: function results -> (text that says where, what of them is there...).
    '''
    def decorated(draw):
        @functools.wraps(draw)
        def figures(details):
            for at, *its in split(details):
                yield from list(draw(at, *its)) or [not_drawn(title + at, why)]
        return figures
    return decorated


#: The same of a function (text, result, records) for each thread count.
each_team = functools.partial(each_place, why='there are no records of the kernel', split=by_threads)


def table(header, rows):
    '''A :class:`Table`; None without a row.'''
    rows = list(rows)
    return Table(header, rows) if rows else None


def bars(details, title, source='', caption=None, kernel=lambda record: record):
    '''Variants, or options of one variant, side by side: a panel for each level and thread count.

    :arg title: what is compared.
    :arg source: the figure or table that shows the same elsewhere.
    :arg caption: instead of the one that names the source.
    :arg kernel: function (record of a kernel) -> the record that is drawn.
    '''
    caption = caption or (
        'Application bandwidth, median; whiskers: quartiles of the samples. On the bar: bandwidth, and how many times as fast as the first (median '
        f'over the rounds, in which all ran in turn). Line: {drawing.LIMIT_NAME}. Each panel has its own scale. After {source}.'
    )

    def draw(group):
        groups = sorted(grouped(measured(group), lambda r: (r['level'] or '', r['threads'])), key=lambda item: item[0])
        panels = [(f"{level or 'level unknown'}, {threads_text(threads)}", kernels, limit_of(members)) for (level, threads), members in groups
                  if (kernels := [kernel(r) for r in members if r['role'] == 'kernel'])]
        return drawing.bars(panels) if panels else None
    yield from of_places(details, title, caption, draw)
