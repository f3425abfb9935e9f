'''Which values are peers: those of nodes of one kind in one state of their hosts (:mod:`plumbline.model.states`).

A hypervisor moves cores, and of a few nodes one may be alone in its state in each sweep.  By what earlier sweeps measured in both states it is
then compared with nodes in another one.
'''

import json
import math
import statistics

import polars as pl

from plumbline.model import states
from plumbline.model.grouping import by_key

#: Fewer nodes than this cannot say which of them is odd.
FEWEST = 3

#: What peers have in common, and what tells one of their metrics from the others; of caches their working set does, too.
PEERS = ['system', 'partition', 'environ', 'kind']
METRIC = [*PEERS, 'check', 'name']
_SETS = [*METRIC, 'working_set']

#: Sweeps that met two states, at least, to say what a metric is in one over what it is in the other.
_FEWEST_SWEEPS = 3

#: What a metric is in one state over what it is in another is not known where the next sweep's may be so far from that of sweeps before.
_MOST_UNSURE = 0.1

#: Nodes of a metric that a sweep keeps, at most: ten sweeps of them are a thousand peers.
_KEPT = 100

#: What sweeps keep for those after them.
IN_STATES = pl.Schema({**dict.fromkeys(METRIC, pl.String), 'working_set': pl.Int64, 'node': pl.String, 'state': pl.String, 'value': pl.Float64})


def groups(known, before):
    '''Values that have peers, and those that have none.

    Fewer than :data:`FEWEST` nodes in a state have no peers there.  Where it is the host's doing they join those of another state, as far as it is
    known what their metric is there; others stay with the rest, and so stand out.

    :arg known: frame of :func:`plumbline.sweep.results.frame`.
    :arg before: :class:`Before`.
    :returns: (list of tables with ``there``, what a value is in the state of its peers over what it is in its own; list of dictionaries
        with ``state`` a dictionary).
    '''
    alone: list[dict] = []
    found = [part for rows in known.partition_by(_SETS, maintain_order=True) for part in _by_state(rows, before, alone)]
    return [part for part in found if part.height >= FEWEST and part['value'].median() > 0], alone


def _by_state(rows, before, alone):
    '''One metric's rows in the states of the machine that enough nodes met; each node is in one.

    :arg alone: those without peers are added.
    '''
    if rows['state'].is_null().all() or (rows['states'].is_null().all() and states.one(rows['state'].drop_nulls())):
        return [rows.drop('states').with_columns(there=pl.lit(1.0))]
    known = rows.to_dicts()
    left, parts, met = {row['node']: row for row in known}, [], states.grouped(known)
    for state, alike in met:
        alike = [{**row, 'there': 1.0} for row in alike if row['node'] in left]
        if len(alike) >= FEWEST:
            parts.append((state, alike))
            for row in alike:
                left.pop(row['node'])
    usual, first = parts[0] if parts else (met[0][0], [])
    rest: list[dict] = []
    joining: list[dict] = []
    for row in left.values():
        state = json.loads(row['state'] or '{}')
        there, error = before.ratio(row, usual, state) if states.is_the_hosts(state) else (1.0, 0.0)
        (joining if there else rest).append({**row, 'state': state, 'there': there, 'error': math.hypot(row['error'] or 0.0, error)})
    if len(first) + len(joining) < FEWEST:
        rest, joining = rest + [row for row in joining if states.is_the_hosts(row['state'])], []
    alone += rest
    return [_table(part, rows.schema) for part in [first + joining, *(part for _, part in parts[1:])]]


def _table(rows, schema):
    '''Rows whose ``state`` is a dictionary as a table.'''
    columns = {**{name: kind for name, kind in schema.items() if name != 'states'}, 'there': pl.Float64}
    return pl.DataFrame([{**row, 'state': json.dumps(row['state'])} for row in rows], schema=columns, strict=False)


def in_states(frame):
    '''What nodes measured in states of their hosts (:data:`IN_STATES`), for later sweeps.'''
    rows = frame.filter(pl.col('state').is_not_null()).filter(pl.int_range(pl.len()).over(_SETS) < _KEPT)
    met = (one for row in rows.to_dicts() for one in states.of_row(row) if states.is_the_hosts(one['state']) and (one['value'] or 0) > 0)
    return pl.DataFrame([{**{name: row[name] for name in IN_STATES}, 'state': json.dumps(row['state'])} for row in met], schema=IN_STATES)


class Before:
    '''What earlier sweeps kept.

    :arg kept: :data:`IN_STATES` with a column ``sweep``; None: nothing.
    '''

    def __init__(self, kept=None):
        rows = () if kept is None else kept.iter_rows(named=True)
        self._met = by_key((tuple(row[name] for name in _SETS), (row['sweep'], row['value'], json.loads(row['state']))) for row in rows)

    def ratio(self, row, state, other):
        '''What a row's metric is in a state over what it is in another one, and how far the next sweep's may be from that, relative.

        The median of the sweeps that met both, and the standard deviation that they have at most (with 95 %); None and 0 where too few did, or
        they do not agree.
        '''
        if states.same(state, other):
            return 1.0, 0.0
        met = self._met.get(tuple(row[name] for name in _SETS), ())
        here, there = (by_key((sweep, value) for sweep, value, found in met if states.same(found, each)) for each in (state, other))
        ratios = [statistics.median(here[sweep]) / statistics.median(there[sweep]) for sweep in here.keys() & there.keys()]
        if (n := len(ratios)) < _FEWEST_SWEEPS:
            return None, 0.0
        from scipy import special
        most = statistics.variance(map(math.log, ratios)) * (n - 1) / (2 * special.gammaincinv((n - 1) / 2, 0.05))
        error = math.sqrt(most * (1 + math.pi / 2 / n))
        return (statistics.median(ratios), error) if error <= _MOST_UNSURE else (None, 0.0)
