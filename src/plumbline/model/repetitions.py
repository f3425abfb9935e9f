'''Rows of the archive beside each other: repetitions of a test in one session (``--repeat``, ``--reruns``) as one, and intervals by each other.'''

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from plumbline.model import registry, states, uncertainty, verdict

#: Of the archive.
Row = dict[str, Any]


def interval(row: Row) -> tuple[float, float]:
    '''(low, high) of a row's value; without an interval the value twice.'''
    low, high = (row['value'] if row[end] is None else row[end] for end in ('interval_low', 'interval_high'))
    return low, high


def by_each_other(rows: Sequence[Row]) -> list[Row]:
    '''The same with the intervals of what several processes measured by what the processes of all these rows differ by.'''
    counts = [len(json.loads(row['processes'] or '[]')) if row['spread'] is not None and row['value'] and row['value'] > 0 else 0 for row in rows]
    noise = [registry.of_row(row)[1] for row in rows]
    priors = uncertainty.noise_of_processes((of, row['spread'], count) for row, of, count in zip(rows, noise, counts) if count > 1)
    return [_within(row, float(uncertainty.error_between(row['spread'], count, priors[of]))) if count > 1 else row
            for row, of, count in zip(rows, noise, counts)]


def _within(row: Row, error: float) -> Row:
    low, high = row['value'] * np.exp([-uncertainty.HALF_WIDTH * error, uncertainty.HALF_WIDTH * error])
    return {**row, 'interval_low': float(low), 'interval_high': float(high)}


def one(rows: list[Row]) -> Row:
    '''Repetitions as one row: in each state of the machine the median, as in references, and that of the interval; the worst verdict.'''
    worst = max(rows, key=lambda row: verdict.SEVERITY.index(row['verdict'] or verdict.PASS))
    measured = [row for row in rows if row['value'] is not None]
    if len(rows) == 1 or not measured:
        return worst
    measured = states.of_most(measured, 'working_set')
    usual, *others = (_pooled(*group) for group in states.grouped(measured))
    low, high = usual.pop('interval')
    return {**worst, **usual, 'working_set': measured[-1]['working_set'], 'interval_low': low, 'interval_high': high,
            'state': json.dumps(usual['state']) if usual['state'] else None, 'states': json.dumps(others) if others else None}


def _pooled(state: states.State, rows: list[Row]) -> Row:
    value, low, high = (float(np.median(numbers)) for numbers in zip(*((row['value'], *interval(row)) for row in rows)))
    return {'state': state, 'value': value, 'interval': [low, high], 'n': sum(row['n'] or 0 for row in rows),
            'spread': max(row['spread'] or 0.0 for row in rows)}
