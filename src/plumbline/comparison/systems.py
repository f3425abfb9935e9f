'''Several systems beside each other, each rate and time relative to the best of them, as a procurement reads it.

Source: hager2007, section 4.2, figures 7 to 11: each application on one core, one socket, one node and many, normalised to the best system;
of a system's partitions, compilers and MPIs the best counts for each value.
'''

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

import polars as pl

from plumbline.errors import PlumblineError
from plumbline.model import grouping, quantity, registry, repetitions
from plumbline.store import archive

#: (check with its parameters, metric, unit: values in another one are not comparable)
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Value:
    '''What one system reaches: medians over its sessions and nodes.

    :attr interval: of ``value``.
    :attr environ: the best of its environments, PARTITION:ENVIRON where the system has several partitions.
    '''
    value: float
    interval: tuple[float, float]
    environ: str


@dataclass(frozen=True)
class Row:
    '''One metric of all systems.

    :attr values: system -> :class:`Value`, of those that have it; two at least.
    :attr best: the system whose value is the best.
    '''
    subsystem: str
    check: str
    metric: str
    unit: str
    better: int
    values: Mapping[str, Value]

    @property
    def best(self) -> str:
        return max(self.values, key=lambda system: self.better * self.values[system].value)

    def relative(self, system: str) -> float:
        '''Its value over the best: 1 is the best, 0.5 half as fast, whichever way is better.'''
        return (self.values[system].value / self.values[self.best].value) ** self.better

    def as_good(self, system: str) -> bool:
        '''Whether its interval reaches that of the best: the order of the two is noise.'''
        (low, high), (best_low, best_high) = self.values[system].interval, self.values[self.best].interval
        return low <= best_high and best_low <= high


@dataclass(frozen=True)
class Comparison:
    '''What systems reach of the best of them.

    :attr about: system -> (processor, names of its sessions).
    :attr rows: by subsystem and check.
    :attr alone: system -> how many metrics no other has.
    '''
    about: Mapping[str, tuple[str, Sequence[str]]]
    rows: Sequence[Row]
    alone: Mapping[str, int]

    @property
    def systems(self) -> list[str]:
        return list(self.about)

    @property
    def means(self) -> dict[str, tuple[int, dict[str, float]]]:
        '''Subsystem -> (how many metrics all systems have, system -> geometric mean of its relative values).'''
        of_all = grouping.by_key((row.subsystem, row) for row in self.rows if len(row.values) == len(self.about))
        return {part: (len(rows), {system: geometric_mean(row.relative(system) for row in rows) for system in self.about})
                for part, rows in of_all.items()}

    def frame(self) -> pl.DataFrame:
        '''For further use: a row for each metric and system.'''
        return pl.DataFrame([
            {'subsystem': row.subsystem, 'check': row.check, 'metric': row.metric, 'unit': row.unit, 'system': system, 'environ': value.environ,
             'value': value.value, 'interval_low': value.interval[0], 'interval_high': value.interval[1], 'relative': row.relative(system),
             'as_good_as_the_best': row.as_good(system)} for row in self.rows for system, value in row.values.items()])


def compare(sessions: Mapping[str, Sequence[pl.DataFrame]]) -> Comparison:
    '''
    :arg sessions: system -> rows of its sessions (:func:`plumbline.comparison.sides.load`).
    :raises PlumblineError: of fewer than two systems, and where they have no metric in common.
    '''
    if len(sessions) < 2:
        raise PlumblineError(f"{', '.join(sessions) or 'nothing'}: name two systems at least; sessions of one are for plumbline compare")
    found = {system: _values(frames) for system, frames in sessions.items()}
    keys = list(dict.fromkeys(key for values in found.values() for key in values))
    shared = [key for key in keys if sum(key in values for values in found.values()) > 1]
    if not shared:
        raise PlumblineError(f"{', '.join(sessions)}: no rate or time in common; run the same checks on all of them")
    rows = []
    for key in shared:
        have = {system: values[key] for system, values in found.items() if key in values}
        about = next(iter(have.values()))[0]
        rows.append(Row(registry.of_row(about)[0] or '', *key, registry.better(about['metric']),
                        {system: value for system, (_, value) in have.items()}))
    order = list(dict.fromkeys(row.subsystem for row in rows))
    return Comparison({system: (_processor(frames), [name for frame in frames for name in frame['session'].unique()])
                       for system, frames in sessions.items()},
                      sorted(rows, key=lambda row: (order.index(row.subsystem), row.check)),
                      {system: sum(key not in shared for key in values) for system, values in found.items()})


def _processor(frames: Iterable[pl.DataFrame]) -> str:
    return ', '.join(dict.fromkeys(name for frame in frames for name in frame['processor'].drop_nulls().unique(maintain_order=True))) or 'not known'


def _values(frames: Sequence[pl.DataFrame]) -> dict[Key, tuple[dict[str, Any], Value]]:
    '''Key -> (a row of the archive, what the system reaches with its best partition and environment).'''
    measured: dict[Key, dict[tuple[str, str], list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for frame in frames:
        rows = archive.final_rows(frame.filter(~pl.col('fixture').fill_null(False))).with_columns(display_name=archive.CASE)
        kept = [row for row in rows.iter_rows(named=True) if _counts(row)]
        most = _largest(kept)
        for row in kept:
            case = row['display_name'], row['partition'], row['environ']
            measured[case[0], _all(row['name'], most.get(case)), row['unit']][case[1:]].append(row)
    found, several = {}, len({partition for places in measured.values() for partition, _ in places}) > 1
    for key, places in measured.items():
        about = next(iter(places.values()))[0]
        values = [Value(median(row['value'] for row in rows),
                        tuple(map(median, zip(*map(repetitions.interval, rows)))),
                        f'{partition}:{environ}' if several else environ) for (partition, environ), rows in places.items()]
        found[key] = about, max(values, key=lambda one: registry.better(about['metric']) * one.value)
    return found


def _counts(row: dict[str, Any]) -> bool:
    return (registry.is_absolute(row['metric']) and registry.better(row['metric']) != registry.NEITHER and quantity.known(row['value'])
            and row['value'] > 0)


#: A scaling curve names its points by how many work, and the last one, the whole node, is another number on each system.
_COUNT = re.compile(r'^(\w+)\.(\d+)$')


def _largest(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str], int]:
    '''(check, partition, environment) -> the most that work, of scaling curves.'''
    most: dict[tuple[str, str, str], int] = {}
    for row in rows:
        if match := _COUNT.match(row['name']):
            case = row['display_name'], row['partition'], row['environ']
            most[case] = max(most.get(case, 0), int(match[2]))
    return most


def _all(name: str, most: int | None) -> str:
    match = _COUNT.match(name)
    return f'{match[1]}.all' if match and most is not None and most > 1 and int(match[2]) == most else name
