'''Before and after: what got slower, by how much, and is it more than noise?

A change is more than noise if the whole interval of the median after lies further from the median before than
:data:`SIGMAS` times the noise before, and than :data:`LEAST`.  The noise
of several sessions is the spread between them; of a single one, which cannot know that, the spread of its samples.
Changes are ratios: what falls to a half and what doubles are equally far off.
'''

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from plumbline import archive, statistics, verdict
from plumbline.errors import PlumblineError
from plumbline.model import registry, states
from plumbline.reference_recording import base_name
from plumbline.report import lines, state
from plumbline.sweep import state as sweeps
from plumbline.sweep.node import REPORT

#: A change that is less than this is none; above ``MOST_BOUND`` and ``MOST_NOISE`` nothing can be said.
LEAST, MOST_BOUND, MOST_NOISE = 0.05, 0.5, 0.5

#: Robust standard deviations: of normally distributed medians of a healthy machine, 1 in 700 falls below.
SIGMAS = 3

#: What became of a metric, from the worst to the best.
FAILED, SLOWER, GONE, CHANGED, UNCLEAR, FASTER, NEW, WITHIN = KINDS = (
    'failed', 'slower', 'gone', 'changed', 'unclear', 'faster', 'new', 'within noise')

#: These are out of true.
WRONG = (FAILED, SLOWER, GONE)


@dataclass(frozen=True)
class Change:
    '''What became of one metric, or (``metric`` empty) of one test.

    :attr kind: one of :data:`KINDS`; ``changed`` is beyond noise where nobody can say which way is better.
    :attr nodes: (before, after), names with commas.
    :attr before: median of the sessions before, in ``unit``; :attr after: that of the session after; None without one.
    :attr bound: the share by which it must grow to be more than noise, e.g. 0.05; None if there is nothing to compare.
    :attr verdicts: (before, after); None where there was none.
    '''
    kind: str
    check: str
    partition: str
    environ: str
    nodes: tuple[str, str]
    metric: str = ''
    before: float | None = None
    after: float | None = None
    unit: str = '1'
    bound: float | None = None
    verdicts: tuple[str | None, str | None] = (None, None)
    reason: str = ''

    @property
    def ratio(self):
        '''After over before; None where one of them is missing or 0.'''
        return self.after / self.before if self.before and self.after is not None else None

    @property
    def severity(self):
        '''For sorting, the worst first: kind, then how far beyond the bound.'''
        far = abs(math.log(self.ratio)) / math.log1p(self.bound) if self.bound and self.ratio and self.ratio > 0 else 0.0
        return KINDS.index(self.kind), -far, self.check, self.metric


@dataclass(frozen=True)
class Comparison:
    '''All that :func:`compare` found.

    :attr system: ReFrame's name.
    :attr before: names of the sessions before, the latest last; :attr after: that of the one after; of a sweep, how many.
    :attr changes: of every metric, the worst first.
    :attr state: (what, only before, only after): kernel, compiler, ... that are not the same; both lists of texts.
    '''
    system: str
    before: tuple[str, ...]
    after: str
    changes: list[Change]
    state: list[tuple[str, list[str], list[str]]] = field(default_factory=list)

    @property
    def wrong(self):
        '''The changes that are out of true.'''
        return [change for change in self.changes if change.kind in WRONG]


def _reports(source):
    '''The run reports that a path stands for; of a folder, those of a sweep's nodes.'''
    if not source.is_dir():
        return [source]
    sweep = sweeps.load(source)
    found = [sweep.of(node) / REPORT for node in sweep.nodes.values() if node.measured]
    if not found:
        raise PlumblineError(f'{source}: no node of this sweep is measured; run plumbline sweep --resume')
    return found


def load(source, archive_root):
    '''One side's rows.

    :arg source: a session of the archive, ReFrame's run report, or a folder of a sweep.
    :returns: ``polars.DataFrame`` with the archive's columns.
    :raises PlumblineError: if it is none of these.
    '''
    if Path(source).exists():
        return pl.concat(archive.read(path) for path in _reports(Path(source)))
    return archive.load_session(archive_root, str(source)).drop('date')


def last(archive_root, count, system=None):
    '''The names of the last sessions of a system, the latest last.

    :arg system: ReFrame's name; by default that of the archive's last session.
    :raises PlumblineError: if there are not as many.
    '''
    known = archive.scan(archive_root).select('session', 'system').unique().collect().sort('session')
    system = system or (known['system'][-1] if len(known) else 'any system')
    found = known.filter(pl.col('system') == system)['session'].to_list()
    if len(found) < count:
        raise PlumblineError(f"{archive_root}: {len(found)} sessions of {system}, {count} asked for; "
                             'plumbline report archives a run')
    return found[-count:]


def _cases(frame):
    '''The rows of a session's last runs, without fixtures that went well.'''
    kept = archive.final_rows(frame).filter(pl.col('metric').is_not_null() | pl.col('verdict').is_not_null()
                                            | (pl.col('result') == 'skip'))
    return [{**row, 'hostname': row['hostname'] or '', 'case': base_name(row['display_name'])}
            for row in kept.iter_rows(named=True)]


def _keyed(sessions):
    '''(key -> row) of each session.  The node belongs to the key of those tests that ran on several at once.'''
    nodes = defaultdict(set)
    for number, rows in enumerate(sessions):
        for row in rows:
            nodes[number, row['partition'], row['environ'], row['case']].add(row['hostname'])
    several = {case[1:] for case, names in nodes.items() if len(names) > 1}

    def key(row):
        case = row['partition'], row['environ'], row['case']
        return (*case, row['hostname'] if case in several else None, row['name'] or '')
    return [{key(row): row for row in rows} for rows in sessions]


def _place(before, after):
    row = after or before
    return {'check': row['case'], 'partition': row['partition'], 'environ': row['environ'], 'metric': row['name'] or '',
            'unit': row['unit'] or '1', 'nodes': tuple(side['hostname'] if side else '' for side in (before, after)),
            'verdicts': tuple(side and side['verdict'] for side in (before, after))}


def _kind(metric, ratio):
    better = registry.better(metric)
    return CHANGED if better == registry.NEITHER else FASTER if (ratio > 1) == (better == registry.MORE) else SLOWER


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


def judge(before, after):
    '''Is one metric the same after as before?

    :arg before: rows of the archive, one for each session before; all have values.
    :arg after: the row after.
    :returns: (kind, median before, bound or None, reason).
    '''
    values = [row['value'] for row in before]
    middle = statistics.summary(values).value
    if not all(map(math.isfinite, [*values, after['value']])) or min(values) <= 0:
        if after['value'] == middle:
            return WITHIN, middle, None, ''
        return UNCLEAR, middle, None, 'no ratio: the value before is 0, negative or not a number'
    found = noise(values, [row['spread'] or 0.0 for row in before], [_interval(row) for row in before])
    if found > MOST_NOISE:
        return UNCLEAR, middle, None, f'too noisy before: {found:.0%}'
    bound = max(LEAST, math.expm1(SIGMAS * found))
    least, most, (low, high) = middle / (1 + bound), middle * (1 + bound), _interval(after)
    if high < least or low > most:
        return _kind(after['metric'], after['value'] / middle), middle, bound, ''
    if not least <= after['value'] <= most:
        return UNCLEAR, middle, bound, 'partly within the noise'
    apart = not any(row_low <= high and low <= row_high for row_low, row_high in map(_interval, before))
    if apart and bound > MOST_BOUND:
        return UNCLEAR, middle, bound, f'too noisy before: {found:.0%}'
    if (after['spread'] or 0.0) > verdict.MAX_SPREAD:
        return UNCLEAR, middle, bound, f"too noisy after: {after['spread']:.0%}"
    return WITHIN, middle, bound, ''


def _in_one_state(before, after):
    '''Both sides in one state of the machine (:mod:`plumbline.model.states`): that of the row after, or another that it met.

    :returns: (rows before, row after); no rows if the two sides met no state in common.
    '''
    sessions = [states.of_row(row) for row in before]
    for row in states.of_row(after):
        alike = [next((one for one in session if states.same(one['state'], row['state'])), None) for session in sessions]
        if any(alike):
            return list(filter(None, alike)), row
    return [], after


def _interval(row):
    return tuple(row['value'] if row[key] is None else row[key] for key in ('interval_low', 'interval_high'))


def _change(rows, after):
    '''The :class:`Change` of one key.

    :arg rows: those before, oldest first; :arg after: the row after, or None.
    '''
    before = rows[-1] if rows else None
    place = _place(before, after)
    measured = [row for row in rows if row['value'] is not None]
    if after and not place['metric']:
        failed = after['verdict'] == verdict.FAIL
        old = before and before['verdict'] == verdict.FAIL
        return Change(WITHIN if old else FAILED, **place, reason=after['reason'] or '') if failed else None
    if not place['metric']:
        return None             # failed before, and does no longer
    if after is None:
        return Change(GONE, **place, before=measured[-1]['value']) if measured else None
    if not measured:
        return Change(NEW, **place, after=after['value'])
    if after['value'] is None:
        return Change(FAILED, **place, before=measured[-1]['value'], reason=after['reason'] or '')
    alike, after = _in_one_state(measured, after)
    if not alike:
        now = states.text(states.of_row(after)[0]['state'])
        return Change(UNCLEAR, **place, before=measured[-1]['value'], after=after['value'],
                      reason=f'measured in another state of the machine than before: {now}')
    kind, middle, bound, reason = judge(alike, after)
    if place['verdicts'][1] == verdict.FAIL != place['verdicts'][0] and kind not in WRONG:
        kind, reason = FAILED, after['reason'] or ''
    return Change(kind, **place, before=middle, after=after['value'], bound=bound, reason=reason)


def _why_gone(change, after):
    '''What the session after says of a metric that it lacks.'''
    wanted = change.check, change.partition, change.environ
    case = [row for row in after if (row['case'], row['partition'], row['environ']) == wanted]
    if not case:
        return 'the test did not run'
    failed = [row['reason'] for row in case if row['verdict'] == verdict.FAIL and row['reason']]
    skipped = [entry['reason'] for row in case for entry in json.loads(row['detail'] or '{}').get('skipped') or ()
               if entry['metric'] in (change.metric, 'all', None) or str(entry['metric']).startswith('all ')]
    return (failed + skipped + ['the test ran without it'])[0]


def _told(frame):
    '''What state and software a side tells: label -> text -> the nodes that it was told of.'''
    told = defaultdict(lambda: defaultdict(set))
    for session in frame.partition_by('session', maintain_order=True):      # of a sweep: a node each
        runs = [runs[-1] for runs in lines.case_runs(session).values()]
        details = [{**lines.detail_of(run), **{key: run[0][key] for key in ('hostname', 'environ')}} for run in runs]
        nodes = {detail['hostname'] for detail in details if detail['hostname']}
        for label, values in [*state.machine_rows(details), *state.software_rows(details, lines.session_info(session))]:
            for text, _ in values:
                told[label][text] |= nodes
    return told


def state_changes(before, after):
    '''What of machine and software is not the same: list of (label, only before, only after).

    :arg before: the rows of the last session before; :arg after: those after.
    '''
    old, new = _told(before), _told(after)

    def only(label, one, other):
        everywhere = set().union(*one[label].values())
        return [text if nodes == everywhere else f"{text} ({', '.join(sorted(nodes))})"
                for text, nodes in one[label].items() if text not in other[label]]
    differing = [(label, only(label, old, new), only(label, new, old)) for label in dict.fromkeys([*old, *new])]
    return [entry for entry in differing if entry[1] or entry[2]]


def compare(before, after):
    '''Compare sessions.

    :arg before: rows (archive's columns) of the sessions before, oldest first, at least one; :arg after: those after.
    :returns: :class:`Comparison`.
    :raises PlumblineError: if they are of different systems, one of them is there twice, or nothing is in both.
    '''
    systems = {system for frame in (*before, after) for system in frame['system'].unique()}
    if len(systems) != 1:
        raise PlumblineError(f"sessions of several systems: {', '.join(sorted(systems))}; compare those of one")
    sessions = [sorted(frame['session'].unique()) for frame in (*before, after)]
    names = [one[0] if len(one) == 1 else f'{len(one)} sessions from {one[0]} on' for one in sessions]
    if len(set().union(*sessions)) < sum(map(len, sessions)):
        raise PlumblineError('a session is compared with itself; name different ones, oldest first')
    rows = [_cases(frame) for frame in (*before, after)]
    *old, new = _keyed(rows)
    changes = []
    for key in dict.fromkeys(key for session in (*old, new) for key in session):
        change = _change([session[key] for session in old if key in session], new.get(key))
        if change and change.kind == GONE:
            change = Change(**{**vars(change), 'reason': _why_gone(change, rows[-1])})
        changes += [change] if change else []
    if all(change.before is None or change.after is None for change in changes):
        raise PlumblineError('nothing is comparable: no metric was measured before and after; compare runs of one mode')
    return Comparison(systems.pop(), tuple(names[:-1]), names[-1], sorted(changes, key=lambda change: change.severity),
                      state_changes(before[-1], after))
