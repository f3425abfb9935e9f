'''What the sources measured: their tables as they were published (``data/sources``), so that no number of theirs is typed twice.'''

import csv
import functools
from importlib import resources


@functools.cache
def table(name: str) -> dict[str, dict[str, str]]:
    '''A table: key of a row (its first cell) -> dictionary column -> text.

    :arg name: of its file without the ending, for example ``anderson1997-table7-spmv``; its first line names the source and the units.
    '''
    text = resources.files('plumbline').joinpath(f'data/sources/{name}.csv').read_text(encoding='utf-8')
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith('#'))
    return {next(iter(row.values())): row for row in rows}


def value(name: str, row: str, column: str) -> float:
    '''A number of a table.'''
    return float(table(name)[row][column])


def io_modes() -> dict[str, float]:
    '''MB/s of file, 1 MB written to /scratch of an SGI O2 (arsc2002, second article), by our names of the modes; its unformatted files
    were sequential.'''
    return {f'{ours}_{form}': value('arsc2002-io-modes', row, column) for ours, row in (('element', 'element'), ('whole', 'array'))
            for form, column in (('formatted', 'formatted'), ('sequential', 'unformatted'))}


def ratio(name: str, one: str, other: str, *columns: str) -> float:
    '''A number over another.

    :arg one, other: rows.
    :arg columns: that of both, or that of each.
    '''
    return value(name, one, columns[0]) / value(name, other, columns[-1])
