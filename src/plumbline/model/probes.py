'''What the team measured of its cores beside every sample: core-to-core latency, whether two of them are one, clock, additions per cycle.

The key ``probes`` of a measurement record (``schemas/record.json``); records written before November 2026 have none.
'''

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from plumbline.model.grouping import by_key
from plumbline.model.quantity import percent

#: Latency of handing a cache line from core to core, seconds: of neighbours (round 0), of pairs of pairs, ...
CORE_TO_CORE = 'core_to_core'

#: Divisions of a core while its partner in the team only waits, over those while it divides, too, the most of any pair: 2 where both are
#: hardware threads of one core, whose divider is one; 1 where they are not, even if somebody else works on the other one.  (Additions do not
#: tell: a thread that waits in a loop takes half of a core's dispatch on some processors, as one that works does.)
SHARING = 'core_sharing'

#: From this reading of it on two threads were on one core.
ON_ONE_CORE = 1.4

#: Hz, of the slowest core: from a chain of dependent additions.
CLOCK = 'clock'

#: From independent chains, the least of any core: fewer where another hardware thread of the core works.
ADDITIONS = 'additions_per_cycle'

#: With fewer additions per cycle than this share of what a core can, something else works on it.
OWN = 0.9

#: Of the samples a part that moves the median little.
FEW = 0.1

#: Of the readings of a session the part that is at most what a core can: the highest few are a clock that was read too low.
_NEARLY_ALL = 90


def _both(probe: dict) -> np.ndarray:
    '''Shape (samples, 2, rounds): before and after; NaN where not known.'''
    sides = [rows if isinstance(rows, np.ndarray) else [value if value is not None else np.nan for value in _flat(rows)]
             for rows in (probe['before'], probe['after'])]
    return np.stack([np.array(values, dtype=float).reshape(len(probe['before']), -1) for values in sides], axis=1)


def _flat(rows: list) -> Iterator[float | None]:
    '''Rows of equal length; a row that is null has that length, too.'''
    rounds = next((len(row) for row in rows if isinstance(row, list)), 1)
    for row in rows:
        yield from row if isinstance(row, list) else [row] * rounds


#: Readings of :data:`SHARING` of which the median counts: what works on the other hardware thread for microseconds, between the two halves of
#: a reading, looks like a partner; a hypervisor moves a core for a tenth of a second at least.
_OF_SHARING = 5


def _without_flicker(values: np.ndarray) -> np.ndarray:
    '''Shape (n, 2), each reading the median of those around it.'''
    flat = np.pad(values.ravel(), _OF_SHARING // 2, mode='edge')
    windows = np.lib.stride_tricks.sliding_window_view(flat, _OF_SHARING)
    known = np.isfinite(windows).any(axis=1)
    medians = np.full(windows.shape[0], np.nan)
    medians[known] = np.nanmedian(windows[known], axis=1)
    return medians.reshape(values.shape)


def features(record: dict) -> dict[str, np.ndarray]:
    '''What the probes say of each sample.

    :arg record: a measurement record.
    :returns: dictionary name -> array of shape (n, 2), before and after each of the n samples; NaN where it is not
        known.  The latency has a name for each round: ``core_to_core.0`` is of neighbours.  Empty without probes.
    '''
    found = {}
    for name, probe in (record.get('probes') or {}).items():
        if not isinstance(probe, dict):
            continue
        values = _both(probe)
        if np.isnan(values).all():
            continue
        if name == SHARING:
            values = _without_flicker(values[:, :, 0])[:, :, np.newaxis]
        for number in range(values.shape[2]):
            found[f'{name}.{number}' if name == CORE_TO_CORE else name] = values[:, :, number]
    return found


def beside(record: dict, name: str) -> np.ndarray | None:
    '''One probe beside each sample: the mean of before and after.

    :returns: shape (n,); NaN where neither is known, or None where nothing is.
    '''
    own = name.partition('.')[0]
    found = features({'probes': {own: (record.get('probes') or {}).get(own)}}).get(name)
    if found is None:
        return None
    known = np.where(np.isnan(found), found[:, ::-1], found)        # one of the two where the other is not known
    return known.mean(axis=1)


def beside_others(records: Iterable[dict], kinds: Sequence[Sequence[int]] = ()) -> list[np.ndarray | None]:
    '''Of each record, whether somebody else worked on the other hardware thread of a core, beside each sample.

    :arg records: those of teams on the same kinds of cores say together how many additions a core of our own does.
    :arg kinds: CPUs of each kind of core (``core_kinds`` of the machine record); empty where all are alike.
    :returns: arrays of bool, shape (n,); None where it is not known.  Where that never ended, and where two of our own were on one core, False.
    '''
    found = [(beside(record, ADDITIONS), beside(record, SHARING), tuple(not {*kind}.isdisjoint(record.get('cpus') or ()) for kind in kinds))
             for record in records]
    known = by_key((team, additions[np.isfinite(additions)]) for additions, _, team in found if additions is not None)
    least = {team: OWN * np.percentile(values, _NEARLY_ALL) for team, its in known.items() if (values := np.concatenate(its)).size}
    return [None if additions is None or not np.isfinite(additions).any()
            else (additions < least[team]) & ~(np.zeros(additions.size, dtype=bool) if ours is None else ours > ON_ONE_CORE)
            for additions, ours, team in found]


def doubt_beside(others: np.ndarray | None) -> str | None:
    '''Why a core need not be what is slow; None where nobody else worked on it, or where that is not known.

    :arg others: of :func:`beside_others`.
    '''
    if others is None or others.mean() < FEW:
        return None
    return f'somebody else worked on the other hardware thread of a core beside {percent(others.mean(), 0)} of the samples'


def clock_ratio(a: dict, b: dict) -> tuple[float, str | None]:
    '''(clock after the samples of one record over that after those of another, why it is not known).

    After them: cores that slept while fewer threads ran begin at their base clock (2.59 GHz before, 3.24 after samples of 10 ms).

    :arg a, b: measurement records.
    :returns: (ratio, None), or (1.0, a text).
    '''
    clocks = [found[CLOCK][:, 1] for record in (a, b) if CLOCK in (found := features(record)) and np.isfinite(found[CLOCK][:, 1]).any()]
    if len(clocks) < 2:
        return 1.0, 'the clock beside the samples is not known, and that of all cores may be lower than that of one'
    one, other = (float(np.nanmedian(clock)) for clock in clocks)
    return one / other, None


def _rounds(probe: Any) -> set[int]:
    sides = (probe['before'], probe['after']) if isinstance(probe, dict) else ()
    return {len(row) for side in sides for row in side if isinstance(row, list)}


def complaint(record: dict) -> str | None:
    '''What is wrong with the probes of a record that the schema allows; None if nothing.'''
    samples = len(record.get('seconds', ()))
    for name, probe in (record.get('probes') or {}).items():
        if isinstance(probe, dict) and {len(probe['before']), len(probe['after'])} != {samples}:
            return f"field probes.{name}: {len(probe['before'])} before and {len(probe['after'])} after for {samples} samples"
        if len(rounds := _rounds(probe)) > 1:
            return f'field probes.{name}: {sorted(rounds)} numbers for a sample; every sample has the same rounds'
    return None
