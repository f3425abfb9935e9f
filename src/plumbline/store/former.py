'''Run reports, archives and references from before words changed are read as if they had been written today.'''

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from plumbline.model import parameters, registry

if TYPE_CHECKING:
    import polars as pl

#: Keys of a result (``schemas/result.json``), and metrics: what they were called, and what they are called.
KEYS = {'witness': 'cross_check', 'witness_reason': 'cross_check_reason', 'lost': 'contention', 'compiled_to': 'simd_width'}
METRICS = {'of_time': 'cpu_availability', 'of_time.quota': 'cpu_availability.quota'}

#: What a skipped metric and a note were recognised by.
_ALL = re.compile('all (?:in|of|at) (.+)')
_NOTED = {'caches': re.compile('(?!.* all of )L[123]: .* ours'), 'parameter': re.compile(r'\w+ = \d+'),
          'splitting': re.compile('(?:source|memory) size: .*')}

#: What an environment error was, in ReFrame's ``fail_reason``.
_ENVIRONMENT_ERROR = re.compile(r'environment \S+ on \S+ is broken: (.+)')

#: Symptom -> what a test's failure was, and what was left out: no groups, for Polars and :mod:`re`.
_SYMPTOMS = {'misplaced': 'was placed on CPU .* but ran on CPU |ran on CPU .*, asked for CPU ', 'not_as_expected': 'node .* is not as expected: ',
             'memory_changed': 'node .* is not as .* was: .*memory ', 'no_huge_pages': 'huge pages were asked for, and not given: ',
             'other_transport': 'was asked for, but of .* bytes of messages .* went over the loopback device'}
_LEFT_OUT = {'too_few_cpus': 'needs? .*CPUs|one CPU|CPUs is one', 'not_warm': 'pages were in the page cache: not warm',
             'no_huge_pages': _SYMPTOMS['no_huge_pages']}

#: Begin of a check's name -> its subsystem, before checks said it themselves; the first counts.  Of others a part of a metric's subject did, or the
#: level; ``dgemm``, ``fma``, ``message``: phases of a burn.
_OF_CHECKS = {'pingpong_nodes': registry.MESSAGES_NETWORK, 'node_pairs': registry.MESSAGES_NETWORK, 'network_patterns': registry.MESSAGES_NETWORK,
              **dict.fromkeys(('pingpong', 'imb', 'rma', 'shmem', 'datatype', 'latency_sensitivity', 'osu'), registry.MESSAGES),
              'triad_preload': registry.MEMORY,
              **dict.fromkeys(('fileio', 'fio', 'ior', 'mdtest'), registry.FILES), **dict.fromkeys(('latency', 'tlb'), registry.LATENCY),
              **dict.fromkeys(('redundancy', 'cores', 'peak', 'hpl', 'compiler'), registry.CORE),
              **dict.fromkeys(('md', 'planewave', 'app'), registry.APPLICATIONS)}
_OF_SUBJECTS = {'L1': registry.L1, 'L2': registry.L2, 'L3': registry.L3, 'cache': registry.L2, 'application': registry.APPLICATIONS,
                'dgemm': registry.CORE, 'fma': registry.CORE, 'message': registry.MESSAGES_SHM}

#: Checks whose messages all go through shared memory, which no parameter says.
_IN_SHARED_MEMORY = ('pingpong_eager', 'pingpong_single_copy', 'datatype_tlb', 'latency_sensitivity', 'osu')

#: What tells a metric's subsystem.
_TELLS_SUBSYSTEM = ('metric', 'check', 'subject', 'level', 'threads', 'parameters')


def case(found: dict) -> dict:
    '''A test case of ReFrame's run report, with what is data today and stood in its ``fail_reason``.'''
    reason, left = str(found.get('fail_reason') or ''), found.get('plumbline')
    if 'environment_error' not in found and (error := _ENVIRONMENT_ERROR.search(reason)):
        found = found | {'environment_error': error[1]}
    if isinstance(left, dict) and 'symptom' not in left and (symptom := _symptom(_SYMPTOMS, reason)):
        found = found | {'plumbline': left | {'symptom': symptom}}
    return found


def _symptom(known: dict[str, str], text: str) -> str | None:
    return next((name for name, pattern in known.items() if re.search(pattern, text)), None)


def result(payload: dict) -> dict:
    '''What a check has left in ReFrame's run report, with today's names.'''
    found = {KEYS.get(key, key): value for key, value in payload.items()}
    if isinstance(found.get('metrics'), list):
        found['metrics'] = [{key: METRICS.get(value, value) if key in ('metric', 'name') and isinstance(value, str) else value
                             for key, value in metric.items()} if isinstance(metric, dict) else metric for metric in found['metrics']]
    # What is data today stood in the texts.
    if isinstance(found.get('skipped'), list):
        found['skipped'] = [_skipped(one) if isinstance(one, dict) else one for one in found['skipped']]
    if isinstance(found.get('notes'), list) and 'noted' not in found:
        noted = [{'about': about, 'note': note} for about, pattern in _NOTED.items() for note in found['notes'] if pattern.fullmatch(str(note))]
        found |= {'noted': noted} if noted else {}
    return found


def _skipped(one: dict) -> dict:
    told = {'parts': [said[1]] if (said := _ALL.fullmatch(str(one.get('metric')))) else None, 'symptom': _symptom(_LEFT_OUT, str(one.get('reason')))}
    return {key: value for key, value in told.items() if value} | one


def _taken_apart(display_name: str) -> dict[str, str | None]:
    '''What stood in a display name and has columns of its own; without these the name stays as it is.'''
    name, its = parameters.of_display_name(display_name)
    return {'display_name': name, 'repetition': its.pop('.repeat_no', None), 'parameters': json.dumps(its)}


def subsystem(row: Mapping[str, Any]) -> str | None:
    '''The subsystem of a metric whose row does not have it; None of a name that the registry no longer has.'''
    if row['metric'] not in registry.METRICS:
        return None
    check, parts = row['check'], (row.get('subject') or '').split('.')
    stated = next((part for name, part in _OF_CHECKS.items() if check == name or check.startswith(f'{name}_')), registry.LEVELS)
    if check.endswith('_simulated'):
        stated = registry.NO_MACHINE
    elif stated == registry.MESSAGES and row['metric'] == 'flops':
        stated = registry.APPLICATIONS
    elif stated == registry.LEVELS:
        stated = next((_OF_SUBJECTS[part] for part in parts if part in _OF_SUBJECTS), stated)
    transport = 'shm' if 'shm' in parts or check in _IN_SHARED_MEMORY else parameters.of_row(row).get('transport')
    return registry.subsystem(row['metric'], stated, row.get('level'), row.get('threads'), transport)


def subsystems(row: Mapping[str, Any], names: Iterable[str]) -> list[str | None]:
    '''The subsystem of metrics of a test, by their names.

    :arg row: one of the test's.
    '''
    parts = (name.partition('.') for name in names)
    return [subsystem({**row, 'metric': METRICS.get(metric, metric), 'subject': subject}) for metric, _, subject in parts]


def _told_subsystems(found: pl.Series) -> pl.Series:
    '''The subsystem of each of some rows.'''
    import polars as pl
    frame = found.struct.unnest()
    missing = frame.filter(pl.col('subsystem').is_null() & pl.col('metric').is_not_null()).select(_TELLS_SUBSYSTEM).unique()
    if missing.is_empty():
        return frame['subsystem']
    told = missing.with_columns(_told=pl.Series(map(subsystem, missing.iter_rows(named=True)), dtype=pl.String))
    return frame.join(told, on=_TELLS_SUBSYSTEM, how='left', nulls_equal=True, maintain_order='left').select(
        pl.coalesce('subsystem', '_told')).to_series()


def rows(frame: pl.LazyFrame) -> pl.LazyFrame:
    '''A LazyFrame of the archive with today's names; in JSON a key is what no text can be: quoted, and before a colon.'''
    import polars as pl  # checks that judge by references have no need of it
    old, new = ([f'"{key}": ' for key in keys] for keys in (KEYS, KEYS.values()))
    failed = pl.col('reason').is_not_null() & pl.col('metric').is_null() & (pl.col('result') == 'fail')
    symptoms = [pl.when(failed & pl.col('reason').str.contains(pattern)).then(pl.lit(name)) for name, pattern in _SYMPTOMS.items()]
    kind = pl.Struct(dict.fromkeys(('display_name', 'repetition', 'parameters'), pl.String))

    def taken_apart(names: pl.Series) -> pl.Series:
        few = names.drop_nulls().unique()
        told = pl.DataFrame({'name': few, 'told': pl.Series([_taken_apart(name) for name in few], dtype=kind)})
        return names.alias('name').to_frame().join(told, on='name', how='left', maintain_order='left')['told']
    part = pl.col('_told').struct.field
    frame = frame.with_columns(_told=pl.col('display_name').map_batches(taken_apart, kind, is_elementwise=True)).with_columns(
        part('display_name'), pl.coalesce('parameters', part('parameters')),
        pl.coalesce('repetition', part('repetition').cast(pl.Int64, strict=False))).drop('_told')
    frame = frame.with_columns(pl.col('metric', 'name').replace(METRICS), pl.col('detail').str.replace_many(old, new),
                              pl.coalesce('unjudged', pl.col('reason').str.extract('^not judged: (.+)')), pl.coalesce('symptom', *symptoms))
    return frame.with_columns(subsystem=pl.struct('subsystem', *_TELLS_SUBSYSTEM).map_batches(_told_subsystems, pl.String, is_elementwise=True))


def references(node: Any) -> Any:
    '''The content of a file of references with today's names, whatever the depth that they stand at.'''
    return {METRICS.get(key, key): references(child) for key, child in node.items()} if isinstance(node, dict) else node
