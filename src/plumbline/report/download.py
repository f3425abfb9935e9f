'''What a page's buttons save: how each number was obtained, and its samples.'''

#: More samples would make a page too large to open; those that need attention come first, and the archive has them all.
MOST_SAMPLES = 120_000

#: Digits of a number that is saved.
_DIGITS = 7

COLUMNS = {
    'verdict': lambda line: line.verdict, 'check': lambda line: line.shown_test, 'metric': lambda line: line.metric,
    'partition': lambda line: line.partition, 'environment': lambda line: line.environ, 'node': lambda line: line.hostname,
    'value': lambda line: line.value, 'unit': lambda line: line.unit, 'interval low': lambda line: line.interval and line.interval[0],
    'interval high': lambda line: line.interval and line.interval[1], 'samples': lambda line: line.n, 'spread': lambda line: line.spread,
    'reference': lambda line: line.reference, 'lowest': lambda line: line.low, 'highest': lambda line: line.high,
    'reference from': lambda line: line.reference_from, 'compiler': lambda line: line.built,
    'program': lambda line: line.detail.command or None, 'again': lambda line: line.detail.rerun or None,
}


def columns(rows, values):
    '''What ``page.js.j2`` saves: ``columns`` holds for each of ``names`` a number or null for each row; where ``texts`` has the name, it is
    an index of that list.

    :arg values: name -> function of a row.
    '''
    columns = {name: [value(row) for row in rows] for name, value in values.items()}
    texts = {}
    for name, cells in columns.items():
        if any(isinstance(cell, str) for cell in cells):
            texts[name] = list(dict.fromkeys(cell for cell in cells if cell is not None))
            number = {text: index for index, text in enumerate(texts[name])}
            columns[name] = [None if cell is None else number[cell] for cell in cells]
        else:
            columns[name] = list(map(_short, cells))
    return {'names': list(columns), 'texts': texts, 'columns': columns}


def table(lines):
    '''(the :func:`columns` of a session's lines with ``samples``, whether all are in it).'''
    samples, room = [], MOST_SAMPLES
    for line in lines:
        room -= len(line.samples or ())
        samples.append([_short(value) for value in line.samples] if line.samples and room >= 0 else None)
    return columns(lines, COLUMNS) | {'samples': samples}, room >= 0


def _short(value):
    '''With so many digits as are worth their place; JSON has neither NaN nor infinity.'''
    if not isinstance(value, float):
        return value
    return float(f'{value:.{_DIGITS}g}') if abs(value) < float('inf') else None
