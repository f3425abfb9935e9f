'''What equal nodes scattered by in earlier sweeps: a handful of nodes of one sweep cannot say it of themselves.

Each sweep keeps its own (``scatter.parquet`` in its folder, :data:`ranking.SCATTER`); those after it read it.
'''

import io

import polars as pl

from plumbline.errors import PlumblineError
from plumbline.store import atomic
from plumbline.sweep import ranking

FILE = 'scatter.parquet'

#: Sweeps that count: before them the machine may have been another.
LATEST = 10


def keep(folder, ranked):
    '''Write what the nodes of a sweep scatter by.

    :arg ranked: :class:`ranking.Ranking`.
    '''
    if not ranked.rows.is_empty():
        file = io.BytesIO()
        ranked.scatter().write_parquet(file)
        atomic.write(folder / FILE, file.getvalue())


def before(folder):
    '''What is known from the sweeps that began before this one: (table of :data:`ranking.SCATTER`, how many sweeps).

    :arg folder: of the sweep; names of sweeps are in the order of their begin.
    :raises PlumblineError: if a file is damaged.
    '''
    paths = sorted(path for path in folder.parent.glob(f'*/{FILE}') if path.parent.name < folder.name)[-LATEST:]
    return pl.concat([_read(path) for path in paths]) if paths else pl.DataFrame(schema=ranking.SCATTER), len(paths)


def _read(path):
    try:
        return pl.read_parquet(path).select(ranking.SCATTER.names()).cast(ranking.SCATTER)
    except (pl.exceptions.PolarsError, OSError):
        raise PlumblineError(f'{path}: not what a sweep kept of its nodes; delete it: other sweeps will do without') from None
