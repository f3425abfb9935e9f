'''Arrays to a file and back, in all modes and sizes.'''

from typing import Any

import numpy as np

from plumbline.model import quantity, sources
from plumbline.report import drawing
from plumbline.report.figures.common import Table, each_place
from plumbline.report.readings import grouped, measured, paired, quartiles, rates

ROWS = ('whole', 'row', 'element')
FORMS = {'stream': 'unformatted, stream', 'sequential': 'unformatted, sequential', 'formatted': 'formatted'}
OPERATIONS = {'write': 'write into the page cache', 'write_fsync': 'write, until the device has it', 'read_warm': 'read from the page cache',
              'read_cold': 'read, page cache emptied'}


def _file_system(record):
    found = record['options']
    return f"{found.get('name') or found['path']} ({found['file_system']})"


@each_place('I/O modes')
def modes(at, group):
    '''Bandwidth by granularity and format, and what the same ratios were (arsc2002, second article).'''
    records = measured(group, 'kernel')
    for name, members in grouped(records, _file_system):
        panels = [(OPERATIONS[operation], _by_form(those)) for operation, those in grouped(members, lambda r: r['options']['operation'])]
        yield f'I/O modes, {name}{at}', (
            f"An array of {members[0]['options']['shape']} doubles to a file and back, each statement moving the whole array, a row or an element: "
            'payload (8 bytes per element) over time, open and close included; median, whiskers: quartiles. The scale is logarithmic. After '
            'arsc2002, second article.'
        ), drawing.log_dots(panels)
    if records and (table := _then_and_now(records)):
        yield f'I/O modes then and now{at}', (
            'How many times as fast as writing each element formatted; in brackets the quartiles over the rounds. Then: 1 MB to /scratch of an SGI '
            'O2 (arsc2002, second article); its unformatted files were sequential. The source divides the size of the file by the time, and text '
            'takes 25 bytes for an element of 8: so the ratio of the times of the same numbers stands beside.'
        ), table


def _by_form(records):
    '''{form: {row: quartiles}}, the yardstick first.'''
    series: dict[str, dict[str, Any]] = {}
    for record in records:
        row, _, form = record['variant'].partition('_')
        name = FORMS.get(form, 'C, write() and read()')
        series.setdefault(name, {})[row if form else 'whole'] = quartiles(rates(record))
    return {name: {row: points[row] for row in ROWS if row in points} for name, points in series.items()}


def _then_and_now(records):
    then = sources.io_modes()
    writes = [r for r in records if r['options']['operation'] == 'write']
    places = {name: {r['variant']: r for r in members} for name, members in grouped(writes, _file_system)}
    places = {name: found for name, found in places.items() if set(then) <= set(found)}
    rows = [
        [mode.replace('_sequential', ', unformatted').replace('_', ', '), f"{rate / then['element_formatted']:.1f}"]
        + [text for found in places.values() for text in _ratios(found[mode], found['element_formatted'])]
        for mode, rate in then.items()
    ]
    header = ('mode', '2002', *(text for name in places for text in (f'{name}: file size over time', 'the same numbers')))
    return Table(header, rows) if places else None


def _ratios(record, slowest):
    '''By the size of the file, as the source has it, and of the same numbers.'''
    found = paired(record, slowest)
    return [
        f'{quantity.digits(middle)} ({quantity.digits(low)} to {quantity.digits(high)})'
        for low, middle, high in map(quartiles, (found * record['options']['file_bytes'] / slowest['options']['file_bytes'], found))
    ]


@each_place('Whole-array I/O over size')
def sizes(at, group):
    '''Whole-array bandwidth over the size of the file (arsc2002, second article).'''
    caption = (
        'Arrays that are written and read whole, unformatted: payload over time, open and close included, over the size; both logarithmic; line: '
        'median, band: quartiles. A cold read finds the page cache empty, but not the caches of devices and servers. After arsc2002, second article.'
    )
    for name, members in grouped(measured(group, 'kernel'), _file_system):
        wanted = 'whole_stream' if any(r['variant'] == 'whole_stream' for r in members) else 'c'
        series = grouped([r for r in members if r['variant'] == wanted], lambda r: OPERATIONS[r['options']['operation']])
        figure = drawing.empty(400)
        drawing.add_curves(figure, series)
        shown = np.concatenate([quartiles(rates(r)) for _, found in series for r in found])
        drawing.log_lengths_and_rates(figure, shown, title='elements of 8 bytes')
        yield f'Whole-array I/O over size, {name}{at}', caption, figure


FIGURES = {'fileio_modes': modes, 'fileio_sizes': sizes}
