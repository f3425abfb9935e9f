'''From archived sessions to what references are recorded from: good sessions, and each metric's rows by test, keys and name.'''

import itertools
import json
import math
import re
from collections import defaultdict
from typing import Any

import polars as pl

from plumbline.errors import PlumblineError
from plumbline.model import baselines, contention, parameters, probes, processor, registry, verdict
from plumbline.references.peaks import impossible, possible
from plumbline.store import archive

#: A session of which a larger share of the metrics is UNSTABLE is left out.
MOST_UNSTABLE = 0.1

#: Of the sessions used as many have a metric that can be judged, at least, in whatever state of the machine.
LEAST_VALUES = 3

#: A session of which other processes, or the hypervisor, took a larger share of the threads' time is left out.
MOST_DISTURBED = 0.05

_COLUMNS = ['session', 'started', 'system', 'partition', 'environ', 'hostname', 'processor', 'test', 'check', 'display_name', 'parameters', 'run',
            'result', 'fail_phase', 'metric', 'name', 'subject', 'subsystem', 'value', 'processes', 'n', 'spread', 'interval_low', 'interval_high',
            'reference', 'lower', 'upper', 'reference_from', 'limit', 'record', 'state', 'states', 'unit', 'foreign', 'verdict', 'reason', 'unjudged',
            'level', 'threads', 'working_set', 'detail']
_CASE = ('partition', 'environ', 'test')

#: What of a record is asked for.
_OF_RECORD = ('variant', 'compiler', 'bytes', 'traffic', 'traffic_least')


def rows_of(path, pattern, names):
    '''The rows of one session's tests, each with its case's ``machine``, ``processor``, ``contention``, number of ranks, or of threads where they are
    all (``team``; else 0), what was ``given`` (JSON, or None), the lowest ``clock`` (a share of the base clock) and the records' metadata
    (``records``).

    Only the last run of a test case counts: a metric that ReFrame's retry did not confirm is none.

    :arg pattern: regular expression on the display names, as ReFrame's ``-n``.
    :arg names: :class:`plumbline.nodes.events.Names` of the system.
    '''
    rows = names.renamed(archive.final_rows(archive.load_columns(path, _COLUMNS))).filter(
        pl.col('metric').is_not_null() | pl.col('verdict').is_not_null() | pl.col('detail').is_not_null()).to_dicts()
    details = {}
    for row in rows:
        detail = json.loads(row.pop('detail') or 'null')
        if detail:
            details[tuple(row[key] for key in _CASE)] = {
                'machine': detail.get('machine') or {}, 'skipped': detail.get('skipped') or [],
                'given': json.dumps(detail['given'], sort_keys=True) if detail.get('given') else None,
                'contention': detail.get('contention') or [], 'team': _team(detail), 'simd_width': detail.get('simd_width') or {},
                'clock': _lowest_clock(detail),
                'records': [{key: record[key] for key in _OF_RECORD if key in record} for record in detail.get('records') or ()]}
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise PlumblineError(f'tests {pattern!r}: not a pattern: {error}; correct it') from None
    unknown: dict[str, Any] = {'machine': {}, 'skipped': [], 'given': None, 'contention': [], 'team': 0, 'simd_width': {}, 'clock': math.inf,
                               'records': []}
    found = [{**row, **details.get(tuple(row[key] for key in _CASE), unknown)} for row in rows if wanted.search(row['display_name'])]
    of_node = {row['hostname']: row['processor'] for row in rows if row['processor']}
    for row in found:
        row['processor'] = processor.name(row['machine']) or of_node.get(row['hostname'])       # tests of other suites do not say
    return found


def _team(detail):
    return detail.get('ranks') or detail.get('team') or (contention.team(detail.get('contention') or ()) if detail.get('threads') == 'all' else 0)


def _lowest_clock(detail):
    '''Beside any sample; infinite where that, or the base clock, is not known.'''
    base = (detail.get('machine') or {}).get('base_clock')
    clocks = [(record.get('probes') or {}).get(probes.CLOCK) or {} for record in detail.get('records') or () if base]
    lowest = min((hz for one in clocks for side in one.values() for hz in side if hz), default=math.inf)
    return lowest * 1e-6 / max(base['mhz'], base.get('nominal_mhz', 0)) if base else math.inf


def processors(rows):
    '''The processors that a session ran on: a set of names.'''
    return {row['processor'] for row in rows} - {None}


def unfit(rows, expected=frozenset()):
    '''Why a session is not of good state, or :obj:`None`.  What tests of other suites FAIL by is theirs alone, and so is what no hardware gives.

    :arg expected: the processors that the latest session ran on.
    '''
    rows = [row for row in rows if not row['foreign']]
    failed = [row for row in rows if row['verdict'] == verdict.FAIL and not _why_alone(row)]
    if failed:
        first = failed[0]
        more = f' (and {len(failed) - 1} more)' if len(failed) > 1 else ''
        return f"FAIL: {' '.join(filter(None, (first['display_name'], first['name'])))}: {first['reason']}{more}"
    judged = [row['verdict'] for row in rows if row['metric'] is not None]
    unstable = judged.count(verdict.UNSTABLE)
    if unstable > MOST_UNSTABLE * len(judged):
        return f'{unstable} of {len(judged)} metrics UNSTABLE'
    taken = {id(row['contention']): row['contention'] for row in rows}      # of each case once
    causes = contention.causes([one for case in taken.values() for one in case])
    for cause in (contention.OTHERS, contention.HYPERVISOR):
        if causes.get(cause, 0) > MOST_DISTURBED:
            return contention.took(cause, causes[cause])
    allowed: dict[tuple, dict[float, set]] = defaultdict(dict)
    for row in rows:
        if row['threads'] == 'all' and (team := contention.team(row['contention'])):
            allowed[row['hostname'], row['partition']].setdefault(row['machine'].get('cpu_quota') or math.inf, set()).add(team)
    for teams in allowed.values():
        if len(teams) > 1 and min(teams) < (most := max(set().union(*teams.values()))):
            return f'a cgroup allowed {min(teams):g} CPUs in the middle of it, and {most} threads ran in the rest'
    found = processors(rows)
    if found and expected and not any(itertools.starmap(processor.same, itertools.product(found, expected))):
        return f"another machine: {', '.join(sorted(found))}; the latest session ran on {', '.join(sorted(expected))}"
    return None


def _why_alone(row):
    '''What a FAIL is of that says nothing of the rest of its session: of another suite, or no hardware gives it; None of any other.'''
    if row['foreign'] or row['metric'] not in registry.METRICS or row['value'] is None:
        return row['foreign'] and row['reason']
    leaf = (row['reference'], row['lower'], row['upper']) if row['reference_from'] in baselines.SHIPPED else None
    return impossible(row['name'], row['value'], possible(row['metric'], leaf, record_of(row)), None, None, None)


def record_of(row):
    '''The metadata of the record that a row's samples are of, or :obj:`None`.'''
    if row['record'] is not None:
        return row['records'][row['record']]
    return next((record for record in row['records'] if record.get('variant') == row['subject']), None)


def _index(test, rows, *files):
    '''``$index`` of a test: as the files have it, else its parameters, and what else the rows can tell apart.'''
    for file in files:
        if test in file:
            return list(file[test]['$index'])
    columns = (key for key in ('threads', 'level') if any(row[key] is not None for row in rows))
    return list(dict.fromkeys(['$partition', '$environ', *columns, *(key for key in parameters.of_row(rows[0]) if key[0] != '.')]))


def keys_of(index, row):
    '''The key path of a row, one text per entry of ``$index``.'''
    known = known_keys(row)
    missing = [key for key in index if key not in known]
    if missing:
        raise PlumblineError(f"{row['display_name']}: $index names {missing[0]!r}, which the "
                             f"archive does not hold; correct $index of {row['check']}")
    return tuple(known[key] for key in index)


def known_keys(row):
    '''What ``$index`` may name, of a row: name -> key.'''
    known = {**parameters.of_row(row), **{key: row[key] for key in ('level', 'threads') if row[key] is not None},
             '$system': row['system'], '$environ': row['environ'], '$partition': f"{row['system']}:{row['partition']}"}
    return {name: _as_pattern(text) for name, text in known.items() if text is not None}


def _as_pattern(text):
    '''A key as ReFrame takes it, which is for a pattern, and as a site's file may have it: parameters hold what is none, and what looks like one.'''
    text = re.sub(r'[*?\[\](){}|^$\\]', '.', text)
    try:
        re.compile(text)
    except re.error:        # +mpi; what compiles is in files as it is
        return text.replace('+', '.')
    return text


def fit(known, keys):
    '''Whether what is known of a row (:func:`known_keys`) may have these keys: a test that was skipped has not all yet.'''
    return all(known.get(name, key) == key for name, key in keys.items())


def groups(rows, files, trusted=()):
    '''Rows with metrics by (test, key path, name of the metric); complains where two cases share a path.

    :arg files: contents of files of references, for ``$index``; the first that has a test counts.
    :arg trusted: names of sessions of which what FAILs counts as well.
    :returns: (dictionary path -> rows, dictionary test -> ``$index``, list of (what is left out, why)).
    '''
    by_test, found, skipped = defaultdict(list), defaultdict(list), {}
    owner: dict[tuple, str] = {}
    for row in rows:
        if row['metric'] is None:
            continue
        name = f"{row['display_name']} {row['name']}"
        if row['verdict'] == verdict.KNOWN_ISSUE:
            skipped[name] = f"known issue: {row['reason']}"
        elif row['metric'] not in registry.METRICS:
            skipped[name] = 'its metric is not in the registry'
        elif variables := parameters.varied(parameters.of_row(row)):
            skipped[name] = f"with {', '.join(variables)} of the command line (-P) it is another test"
        elif row['verdict'] == verdict.FAIL and row['session'] not in trusted and (why := _why_alone(row)):
            skipped[name] = f"FAIL in {row['session']}: {why}"
        elif row['result'] == 'pass' or row['fail_phase'] == 'performance':
            by_test[row['check']].append(row)
        else:
            skipped[f"{name} in {row['session']}"] = f"the test ended with {row['result']} in {row['fail_phase']}"
    for test, its_rows in by_test.items():
        if len({row['foreign'] for row in its_rows}) > 1:
            skipped[test] = 'of another suite, and a check of ours has the same name: no references of it'
            by_test[test] = [row for row in its_rows if not row['foreign']]
    index = {test: _index(test, its_rows, *files) for test, its_rows in by_test.items()}
    for test, its_rows in by_test.items():
        for row in its_rows:
            path = (test, *keys_of(index[test], row), row['name'])
            if owner.setdefault(path, row['display_name']) != row['display_name']:
                raise PlumblineError(f"{owner[path]} and {row['display_name']} have the same keys by $index {index[test]} of {test}: add the "
                                     f'parameter that tells them apart, or take {test} out of the file, and it is recorded with all its parameters')
            found[path].append(row)
    return found, index, list(skipped.items())


def judgeable(rows):
    '''The rows of a metric without those that must not be judged; all, where these are too many.'''
    kept = [row for row in rows if not row['unjudged']]
    return kept if len({row['session'] for row in kept}) >= LEAST_VALUES else rows


def unusable(rows):
    '''Why the rows of a metric, of what is :func:`judgeable`, give no reference, or :obj:`None`.'''
    values = [row['value'] for row in rows]
    if not all(row['n'] for row in rows) or any(value is None or math.isnan(value) for value in values):
        return 'a value is missing or not a number'
    if not all(0 < value < math.inf for value in values):
        return 'not a positive finite value'
    if unjudged := next((row['unjudged'] for row in reversed(rows) if row['unjudged']), None):
        return f'not judged: {unjudged}'
    if rows[-1]['verdict'] == verdict.FAIL and rows[-1]['reference_from'] in baselines.SHIPPED:
        return 'it fails the portable reference, and recording must not hide that'
    return None
