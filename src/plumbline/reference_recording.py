'''``references record``: from archived sessions to the reference file of a site.'''

import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from plumbline import archive, reference_yaml, statistics, verdict
from plumbline.errors import PlumblineError
from plumbline.model import registry, states
from plumbline.reference_files import load, lookup, portable_beside
from plumbline.reference_peaks import above_own_limit, impossible, possible

#: The least and the most that a value may deviate from its reference.
LEAST_BOUND, MOST_BOUND = 0.05, 0.5

#: Bounds are this many robust standard deviations wide: of normally distributed medians of a
#: healthy machine, 1 in 700 falls below.
SIGMAS = 3

#: Above this noise a metric gets no reference: nothing could be judged by it.
MOST_NOISE = 0.5

_MACHINE = ('cpu_model', 'kernel', 'microcode', 'governor', 'huge_pages')
_INTERVAL = ('interval_low', 'interval_high')
_CASE = ('session', 'partition', 'environ', 'test')


@dataclass
class Recorded:
    '''What :func:`record` did.

    :attr path: the file written.
    :attr sessions: the names of the sessions read, the latest last.
    :attr written: dictionary ``'Test/key/.../metric'`` -> [reference, lower, upper, unit].
    :attr skipped: list of (what, why).
    '''
    path: Path
    sessions: list[str]
    written: dict[str, list] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def base_name(display_name):
    '''A display name without what the command line added (``%.nid=n1``, ``%.repeat_no=0``).'''
    return ' %'.join(part for part in display_name.split(' %') if not part.startswith('.'))


def noise(values, spreads, intervals):
    '''Relative noise of the median of a session.

    :arg values: medians of the sessions, shape (n,), n >= 1, not 0.
    :arg spreads: the spread of the samples of each, shape (n,).
    :arg intervals: (low, high) of each.
    :returns: the larger of two fractions: the spread between sessions (of 2 or 3 sessions their
        range, of a single one the spread of its samples), and the median half width of the
        intervals.
    '''
    values = np.asarray(values, dtype=float)
    median = abs(float(np.median(values)))
    within = float(np.median([(high - low) / 2 for low, high in intervals])) / median
    if len(values) == 1:
        between = float(spreads[0])
    elif len(values) < 4:
        between = float(values.max() - values.min()) / median
    else:
        between = statistics.spread(values)
    return max(between, within)


def reference_of(metric, value, relative_noise, bounds=(-math.inf, math.inf)):
    '''The leaf to write: [reference, lower, upper, unit].

    The bound is 3 x noise, at least 0.05, at most 0.5, rounded up to two digits.  It is on the side that is worse, and on
    the other one stands what is possible; where neither side is better it is on both.

    :arg bounds: what is possible, :func:`plumbline.reference_peaks.possible`.
    '''
    value, better = float(f'{value:.4g}'), registry.better(metric)
    bound = min(MOST_BOUND, max(LEAST_BOUND, SIGMAS * relative_noise))
    bound = math.ceil(100 * bound - 1e-9) / 100
    lower, upper = _rounded_up(1 - bounds[0] / value), _rounded_up(bounds[1] / value - 1)
    if better != registry.LESS:
        lower = bound if better == registry.MORE else min(bound, lower)
    if better != registry.MORE:
        upper = bound if better == registry.LESS else min(bound, upper)
    return [value, None if lower == math.inf else -lower or 0.0, None if upper == math.inf else upper,
            registry.find(metric).unit]


def _rounded_up(share):
    '''To four digits; at least 0.  What is possible must not be cut off.'''
    if not 0 < share < math.inf:
        return max(0.0, share)
    unit = 10.0 ** (math.floor(math.log10(share)) - 3)
    return float(f'{math.ceil(share / unit - 1e-6) * unit:.4g}')


def _case(row):
    return tuple(row[key] for key in _CASE)


def _rows(archive_root, system, sessions, pattern):
    '''(rows with metrics of the last sessions that ran the tests, names of these sessions).

    Only the last run of a test case counts: a metric that ReFrame's retry did not confirm is none.
    '''
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise PlumblineError(f'tests {pattern!r}: not a pattern: {error}; mend it') from None
    frame = archive.scan(archive_root).filter(pl.col('system') == system).drop('samples')
    rows = archive.final_rows(frame).collect().sort('session', maintain_order=True).to_dicts()
    details = {_case(row): row['detail'] for row in rows if row['detail']}
    rows = [{**row, 'detail': details.get(_case(row))} for row in rows
            if row['metric'] is not None and wanted.search(row['display_name'])]
    names = sorted({row['session'] for row in rows})[-sessions:]
    if not names:
        raise PlumblineError(f'{archive_root}: no archived session of {system} has metrics of '
                             f'tests {pattern!r}; run and archive them first')
    return [row for row in rows if row['session'] in names], names


def _index(test, rows, *files):
    '''``$index`` of a test: as the files have it, else what the rows can tell apart.'''
    for file in files:
        if test in file:
            return list(file[test]['$index'])
    return ['$partition', '$environ',
            *(key for key in ('threads', 'level') if any(row[key] is not None for row in rows))]


def _keys(index, row):
    '''The key path of a row, one text per entry of ``$index``.'''
    known = dict(part.split('=', 1) for part in row['display_name'].split(' %')[1:] if '=' in part)
    known.update({key: row[key] for key in ('level', 'threads') if row[key] is not None})
    known.update({'$system': row['system'], '$environ': row['environ'],
                  '$partition': f"{row['system']}:{row['partition']}"})
    missing = [key for key in index if key not in known]
    if missing:
        raise PlumblineError(f"{row['display_name']}: $index names {missing[0]!r}, which the "
                             f"archive does not hold; mend $index of {row['check']}")
    return tuple(known[key] for key in index)


def _unusable(rows):
    '''Why a metric gets no reference, or :obj:`None`.'''
    last = rows[-1]
    numbers = [row[key] for row in rows for key in ('value', *_INTERVAL, 'spread')]
    if not all(row['n'] for row in rows) or any(x is None or math.isnan(x) for x in numbers):
        return 'a value is missing or not a number'
    if not 0 < np.median([row['value'] for row in rows]) < math.inf:
        return 'not a positive finite value'
    if last['reason'].startswith('not judged'):
        return last['reason']
    if last['verdict'] == verdict.FAIL and last['reference_from'] == 'portable.yaml':
        return 'it fails the portable reference, and recording must not hide that'
    return None


def _noise_of(rows):
    return noise([row['value'] for row in rows], [row['spread'] for row in rows],
                 [tuple(row[key] for key in _INTERVAL) for row in rows])


def _machine(record):
    '''What of the machine's state changes its speed; of ``huge_pages`` the choice in force.'''
    short = {key: (record or {}).get(key) for key in _MACHINE}
    chosen = re.search(r'\[(\w+)\]', short['huge_pages'] or '')
    return {**short, 'huge_pages': chosen[1]} if chosen else short


def _provenance(rows):
    '''Where a reference comes from; machine and compiler are those of the latest session.'''
    detail = json.loads(rows[-1]['detail'] or '{}')
    measured = _record(rows[-1]) or (detail.get('records') or [{}])[0]
    return {'when': f"{rows[-1]['started']:%Y-%m-%d}",
            'sessions': len({row['session'] for row in rows}),
            'n': sum(row['n'] for row in rows),
            'spread': float(f'{_noise_of(rows):.2g}'),
            'machine': _machine(detail.get('machine')),
            'compiler': measured.get('compiler')}


def _within_states(rows, portable, peaks):
    '''(leaf, provenance, why it is skipped) of one metric: its leaf is that of the usual state, and its provenance has those
    of the others.

    :arg portable: the portable references that apply, metric -> leaf.
    '''
    (state, usual), *others = states.grouped(rows)
    leaf, unusable = _evaluate(usual, portable, peaks)
    if leaf is None:
        return None, None, unusable
    provenance = _provenance(usual)
    if state:
        provenance['state'] = state
        provenance['states'] = [
            {'state': other, 'reference': found, **{key: origin[key] for key in ('sessions', 'n', 'spread')}}
            for other, its_rows in others
            for found, origin in [(_evaluate(its_rows, portable, peaks)[0], _provenance(its_rows))] if found]
    return leaf, provenance, None


def _evaluate(rows, portable, peaks):
    '''(leaf, why it is skipped) of one metric in one state; just one is not None.'''
    unusable, first, measured = _unusable(rows), rows[0], _record(rows[-1])
    if unusable:
        return None, unusable
    value, relative = float(np.median([row['value'] for row in rows])), _noise_of(rows)
    bounds = possible(first['metric'], portable.get(first['name']), measured)
    refused = impossible(first['name'], value, bounds, peaks, first['level'], first['threads'])
    own = [row['limit'] for row in rows if row['limit'] is not None]
    if first['metric'] == 'bandwidth' and own:
        of_limit = possible('of_limit', portable.get(f"of_limit.{first['subject']}"), measured)
        refused = refused or above_own_limit(value, float(np.median(own)), of_limit[1], measured)
    if refused:
        return None, f'{refused}; the model, the measurement or the peak is wrong'
    if not relative <= MOST_NOISE:
        return None, f'noise {relative:.2f} above {MOST_NOISE}'
    return reference_of(first['metric'], value, relative, bounds), None


def _record(row):
    '''The measurement record that a row's samples are of, or :obj:`None`.'''
    records = json.loads(row['detail'] or '{}').get('records') or ()
    if row['record'] is not None:
        return records[row['record']]
    return next((record for record in records if record.get('variant') == row['subject']), None)


def _groups(rows, files, skipped):
    '''Rows by (test, key path, name of the metric); complains where two cases share a path.'''
    by_test, groups, owner = defaultdict(list), defaultdict(list), {}
    for row in rows:
        if row['metric'] not in registry.METRICS:
            skipped.append((f"{row['display_name']} {row['name']} in {row['session']}", 'its metric is not in the registry'))
        elif row['result'] == 'pass' or row['fail_phase'] == 'performance':
            by_test[row['check']].append(row)
        else:
            skipped.append((f"{row['display_name']} {row['name']} in {row['session']}",
                            f"the test ended with {row['result']} in {row['fail_phase']}"))
    for test, its_rows in by_test.items():
        index = _index(test, its_rows, *files)
        for row in its_rows:
            path = (test, *_keys(index, row), row['name'])
            case = base_name(row['display_name'])
            if owner.setdefault(path, case) != case:
                raise PlumblineError(f'{owner[path]} and {case} have the same keys by $index '
                                     f'{index} of {test}; add the parameter that tells them apart')
            groups[path].append(row)
    return groups, {test: _index(test, rows, *files) for test, rows in by_test.items()}


def record(archive_root, system, out_path, sessions=5, tests='', peaks=None):
    '''Write what a site measured as its references.

    Only the last run of each test case counts, and only if it passed sanity.  Values that were
    judged UNSTABLE, or FAIL by the site's own references, count too: a changed machine needs new
    ones just when the old ones fail.  A FAIL by ``portable.yaml`` is not recorded away.  What is
    too noisy, or above what the hardware can do, is not recorded but listed.  Each node of a session
    counts as one value.  Entries of other tests, and comments, stay.

    :arg archive_root: the archive's folder.
    :arg system: ReFrame's name of the system.
    :arg out_path: the site's file, e.g. ``config/references/SYSTEM.yaml``; ``portable.yaml``
        beside it, or else that of the references in force, is consulted for ``$index``.
    :arg sessions: how many of the last sessions that ran the tests are read.
    :arg tests: regular expression on the display names, as ReFrame's ``-n``; all by default.
    :arg peaks: see :func:`plumbline.reference_peaks.check`.
    :returns: :class:`Recorded`.
    :raises PlumblineError: if nothing was measured, or if the file is malformed or cannot be written.
    '''
    path = Path(out_path)
    if path.name == 'portable.yaml' or sessions < 1:
        raise PlumblineError(f'{path}: references are recorded from at least one session into the '
                             "site's own file; portable.yaml is written by hand")
    rows, names = _rows(archive_root, system, sessions, tests)
    portable, result, leaves = portable_beside(path), Recorded(path, names), []
    groups, index = _groups(rows, (load(path) if path.exists() else {}, portable), result.skipped)
    for place, its_rows in sorted(groups.items()):
        (test, *keys, _), where = place, '/'.join(place)
        leaf, provenance, unusable = _within_states(its_rows, lookup(portable, test, keys, index[test]), peaks)
        if unusable:
            result.skipped.append((where, unusable))
        else:
            result.written[where] = leaf
            leaves.append((place, leaf, provenance))
    if not leaves:
        raise PlumblineError(f'{path}: nothing to record, all {len(result.skipped)} metrics were '
                             f'skipped, the first because: {result.skipped[0][1]}')
    reference_yaml.edit_file(path, lambda content: _enter(content, leaves, index))
    return result


def _enter(content, leaves, index):
    '''Put the leaves and their provenance into the content of a file.'''
    for (test, *keys, name), leaf, provenance in leaves:
        entry = reference_yaml.child_of(content, test)
        if '$index' not in entry:
            reference_yaml.put(entry, '$index', reference_yaml.flow(index[test]))
        origin = reference_yaml.child_of(
            reference_yaml.child_of(content, '$provenance'), test)
        for key in keys:
            entry = reference_yaml.child_of(entry, key)
            origin = reference_yaml.child_of(origin, key)
        reference_yaml.put(entry, name, reference_yaml.flow(leaf))
        reference_yaml.put(origin, name, reference_yaml.flow(provenance))
