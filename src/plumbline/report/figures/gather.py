'''Gather and scatter: index sets, variants, and the patterns of a file.'''

from functools import partial

from plumbline.report import drawing
from plumbline.report.figures.common import Draw, by_place, not_drawn, threads_text
from plumbline.report.readings import grouped, measured

_BARS = (
    'Application bandwidth, 8 bytes for each element that is moved, median; whiskers: quartiles of the samples. On the '
    'bar: bandwidth, and how many times as fast as plain, which ran in turn with it. Each panel has its own scale.'
)


def _figures(details, title, caption, figure_of, panel_of):
    '''Bars of the variants: a figure for each value of one function on a record, a panel for each of another.'''
    for at, group in by_place(details):
        drawn = [(f'{title}: {name}{at}', f'{_BARS} {caption}', drawing.bars([(head, found, None) for head, found in grouped(members, panel_of)]))
                 for name, members in grouped(measured(group, 'kernel'), figure_of)]
        yield from drawn or [not_drawn(title + at)]


def _index_set(record):
    '''What is known of the indices, in words.'''
    options = record['options']
    span = options['span']
    return {'uniform': 'stride 1' if span == 1 else f'stride {span}', 'ms1': f"runs of {options['run']} at stride 1, one element of {span}",
            'local': f"random within {options['window']} elements, one of {span}", 'random': f'random, one element of {span}'}[options['indices']]


def _direction(record):
    return f"{record['options']['direction']}, {threads_text(record['threads'])}"


def _pattern(record):
    options = record['options']
    return f"{options['name']}: {options['kernel']}, {options['count']:g} rows of {options['length']:g}"


FIGURES: dict[str, Draw] = {
    'gather_memory': partial(_figures, title='Gather and scatter in memory', figure_of=_direction, panel_of=_index_set, caption=(
        "Novec forbids vectorisation, simd uses the processor's gather and scatter instructions. After anderson1997, table 5.")),
    'gather_table5': partial(_figures, title='1000 random of 100000 elements', figure_of=_direction, panel_of=_index_set, caption=(
        'The lines of the 1000 elements stay in cache from pass to pass. After anderson1997, table 5.')),
    'gather_patterns': partial(_figures, title='Patterns', figure_of=lambda record: threads_text(record['threads']), panel_of=_pattern, caption=(
        'Patterns and bandwidth as Spatter defines them; of gs, bytes read and written count.')),
}
