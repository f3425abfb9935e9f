'''Run reports, archives and references from before words changed are read as if they had been written today.'''

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

#: Keys of a result (``schemas/result.json``), and metrics: what they were called, and what they are called.
KEYS = {'witness': 'cross_check', 'witness_reason': 'cross_check_reason', 'lost': 'contention', 'compiled_to': 'simd_width'}
METRICS = {'of_time': 'cpu_availability', 'of_time.quota': 'cpu_availability.quota'}

#: What a skipped metric and a note were recognised by.
_ALL = re.compile('all (?:in|of|at) (.+)')
_NOTED = {'caches': re.compile('(?!.* all of )L[123]: .* ours'), 'parameter': re.compile(r'\w+ = \d+'),
          'splitting': re.compile('(?:source|memory) size: .*')}


def result(payload: dict) -> dict:
    '''What a check has left in ReFrame's run report, with today's names.'''
    found = {KEYS.get(key, key): value for key, value in payload.items()}
    if isinstance(found.get('metrics'), list):
        found['metrics'] = [{key: METRICS.get(value, value) if key in ('metric', 'name') and isinstance(value, str) else value
                             for key, value in metric.items()} if isinstance(metric, dict) else metric for metric in found['metrics']]
    # What is data today stood in the texts.
    if isinstance(found.get('skipped'), list):
        found['skipped'] = [one | {'parts': [said[1]]} if isinstance(one, dict) and 'parts' not in one and (
            said := _ALL.fullmatch(str(one.get('metric')))) else one for one in found['skipped']]
    if isinstance(found.get('notes'), list) and 'noted' not in found:
        noted = [{'about': about, 'note': note} for about, pattern in _NOTED.items() for note in found['notes'] if pattern.fullmatch(str(note))]
        found |= {'noted': noted} if noted else {}
    return found


def rows(frame: pl.LazyFrame) -> pl.LazyFrame:
    '''A LazyFrame of the archive with today's names; in JSON a key is what no text can be: quoted, and before a colon.'''
    import polars as pl  # checks that judge by references have no need of it
    old, new = ([f'"{key}": ' for key in keys] for keys in (KEYS, KEYS.values()))
    return frame.with_columns(pl.col('metric', 'name').replace(METRICS), pl.col('detail').str.replace_many(old, new),
                              pl.coalesce('unjudged', pl.col('reason').str.extract('^not judged: (.+)')))


def references(node: Any) -> Any:
    '''The content of a file of references with today's names, whatever the depth that they stand at.'''
    return {METRICS.get(key, key): references(child) for key, child in node.items()} if isinstance(node, dict) else node
