'''Repetitions of a test in one session (``--repeat``, ``--reruns``), as one.'''

import json
from typing import Any

import numpy as np

from plumbline.model import states, verdict

#: Of the archive.
Row = dict[str, Any]


def interval(row: Row) -> tuple[float, float]:
    '''(low, high) of a row's value; without an interval the value twice.'''
    low, high = (row['value'] if row[end] is None else row[end] for end in ('interval_low', 'interval_high'))
    return low, high


def one(rows: list[Row]) -> Row:
    '''Repetitions as one row: in each state of the machine the median, as in references, and that of the interval; the worst verdict.'''
    worst = max(rows, key=lambda row: verdict.SEVERITY.index(row['verdict'] or verdict.PASS))
    measured = [row for row in rows if row['value'] is not None]
    if len(rows) == 1 or not measured:
        return worst
    measured = states.of_one_set(measured)
    usual, *others = (_pooled(*group) for group in states.grouped(measured))
    low, high = usual.pop('interval')
    return {**worst, **usual, 'working_set': measured[-1]['working_set'], 'interval_low': low, 'interval_high': high,
            'state': json.dumps(usual['state']) if usual['state'] else None, 'states': json.dumps(others) if others else None}


def _pooled(state: states.State, rows: list[Row]) -> Row:
    value, low, high = (float(np.median(numbers)) for numbers in zip(*((row['value'], *interval(row)) for row in rows)))
    return {'state': state, 'value': value, 'interval': [low, high], 'n': sum(row['n'] or 0 for row in rows),
            'spread': max(row['spread'] or 0.0 for row in rows)}
