'''What equal nodes scattered by in earlier sweeps, the scores that each node had, and what was measured in which state of the hosts: one sweep
cannot say any of it of itself.

Each sweep keeps its own (``scatter.parquet``, ``scores.parquet`` and ``states.parquet`` in its folder: :data:`ranking.SCATTER`,
:data:`ranking.SCORES`, :data:`peers.IN_STATES`); those after it read them.
'''

import io
import itertools
import json

import polars as pl

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.nodes import events
from plumbline.store import archive
from plumbline.sweep import peers, ranking

FILE, SCORES, IN_STATES = 'scatter.parquet', 'scores.parquet', 'states.parquet'

#: Sweeps of the same partition that count: before them the machine may have been another.
LATEST = 10


def keep(folder, frame, ranked):
    '''Write what the nodes of a sweep scatter by, their scores, and what they measured in states of their hosts.

    :arg frame: of :func:`plumbline.sweep.results.frame`; :arg ranked: :class:`ranking.Ranking` of it.
    :raises PlumblineError: if the folder cannot be written to.
    '''
    if not ranked.rows.is_empty():
        _write(ranked.scatter(), folder / FILE)
    if not ranked.scores.is_empty():
        _write(ranked.scores.select(ranking.SCORES.names()).cast(ranking.SCORES), folder / SCORES)
    met = peers.in_states(frame)
    if not met.is_empty():
        _write(met, folder / IN_STATES)


def _write(table, path):
    file = io.BytesIO()
    table.write_parquet(file)
    with saying_why(path, ': what its nodes scatter by is not kept for later sweeps: make room, or ask the owner of the sweep, for: '
                          f'plumbline rank {path.parent.name}'):
        atomic.write(path, file.getvalue())


def before(folder):
    '''What is known from the sweeps of its partition that began before this one: (table of :data:`ranking.SCATTER`, how many sweeps).

    :arg folder: of the sweep; names of sweeps are in the order of their begin.
    :raises PlumblineError: if a file is damaged.
    '''
    paths = _latest(folder, FILE)
    return pl.concat([_read(path, ranking.SCATTER) for path in paths]) if paths else pl.DataFrame(schema=ranking.SCATTER), len(paths)


def scores_before(folder):
    '''The scores that nodes had in these sweeps, by the names that they had when this one began: :data:`ranking.SCORES` with a column ``sweep``; None
    where there are none.'''
    return _of_nodes(folder, SCORES, ranking.SCORES)


def in_states_before(folder):
    '''What nodes measured in states of their hosts in these sweeps: :class:`peers.Before`.'''
    return peers.Before(_of_nodes(folder, IN_STATES, peers.IN_STATES))


def _of_nodes(folder, file, schema):
    partition, tables = _partition(folder), []
    names = events.names(partition.partition(':')[0]) if partition else events.Names(())
    for path in _latest(folder, file):
        table = _read(path, schema)
        then = {name: names.now(name, events.begun(path.parent.name), events.begun(folder.name)) for name in table['node'].unique()}
        tables.append(table.with_columns(pl.col('node').replace(then), sweep=pl.lit(path.parent.name)))
    return pl.concat(tables) if tables else None


def _latest(folder, name):
    own = _partition(folder)
    earlier = sorted((path for path in folder.parent.glob(f'*/{name}') if path.parent.name < folder.name), reverse=True)
    return list(itertools.islice((path for path in earlier if _partition(path.parent) == own), LATEST))


def _partition(folder):
    '''Of a sweep, ``SYSTEM:PARTITION``; None where its plan does not say.'''
    try:
        return json.loads((folder / 'sweep.json').read_bytes())['partition']
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _read(path, schema):
    try:
        return pl.read_parquet(path).select(schema.names()).cast(schema)
    except archive.DAMAGE:
        raise PlumblineError(f'{path}: not what a sweep kept of its nodes; delete it: other sweeps will do without') from None
