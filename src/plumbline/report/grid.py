'''The terminal, and a table of it.'''

import sys

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plumbline.model.safe_text import shown


def terminal(columns=120):
    '''Standard output; as wide as it is, or of so many columns where nobody looks.'''
    return Console(width=None if sys.stdout.isatty() else columns)


def grid(columns, rows, right=(), whole=(), padding=(0, 2, 0, 0)):
    '''A rich table of texts: nothing of a name, which a suite or a system may choose, is taken for markup, or obeyed.

    :arg columns: names; :arg rows: of cells, a text or a :class:`rich.text.Text` each.
    :arg right: names of the columns that hold numbers; :arg whole: of those that are never folded.
    '''
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=padding)
    as_text = lambda cell: cell if isinstance(cell, Text) else Text(shown(cell))
    for name in columns:
        table.add_column(as_text(name), overflow='fold', justify='right' if name in right else 'left', no_wrap=name in whole)
    for row in rows:
        table.add_row(*map(as_text, row))
    return table
