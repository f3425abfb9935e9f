'''What a benchmark of the verdicts found, from its folder: text that is reStructuredText as well.'''

import time
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from plumbline.analysis.lines import verdict_lines
from plumbline.analysis.session import Session
from plumbline.bench.verdicts.faults import FAULTS
from plumbline.model import grouping, registry
from plumbline.model.quantity import percent

REFERENCE, NULL = 'reference', 'null'

#: What the verdicts are held to, as it was set before anything was measured (docs/explanation/verdicts.rst): of sessions without a fault the shares
#: that may end otherwise than with exit code 0, and with a FAIL, at the most; of those with a fault that takes so much the share that may go unseen.
MOST_OTHER, MOST_FALSE = 0.05, 0.01
ENOUGH, MOST_UNSEEN = 0.2, 0.05

#: What becomes of a target, from the best to the worst, and the exit code of each.
MET, TOO_FEW, MISSED = 'met', 'too few to tell', 'MISSED'
CODES = {MET: 0, TOO_FEW: 3, MISSED: 1}


@dataclass(frozen=True)
class Seen:
    '''What a session measured and said.

    :attr values: key of a rate, a time or ``cpu_availability`` -> (value, subsystem, better).
    :attr fails: list of (kind, subsystem): what failed, ``metric``, ``cpu_availability``, ``test`` or the ``subsystem`` as a whole.
    :attr causes: the rules whose cause it shows (:mod:`plumbline.analysis.diagnosis`).
    '''
    exit: int
    values: dict
    fails: list
    causes: list

    def finds(self, fault):
        '''Whether it FAILs, and by what the fault makes slower, or names its cause: a FAIL may be of something else.'''
        return self.exit == 1 and (self.names_cause(fault) or any(subsystem in fault.subsystems for _, subsystem in self.fails))

    def names_cause(self, fault):
        '''Whether one of its causes is the fault.'''
        return not set(fault.causes).isdisjoint(self.causes)

    def names_subsystem(self, fault):
        '''Whether most that it blames is what the fault makes slower.'''
        blamed = [subsystem in fault.subsystems for _, subsystem in self.fails if subsystem]
        return sum(blamed) > len(blamed) / 2


def look(place, session):
    '''The :class:`Seen` of a session.'''
    if not session.name:
        return Seen(session.exit, {}, [], [])
    said = Session(place.rows(session))
    values, fails = {}, [('subsystem', one.name) for one in said.judged.subsystems if one.verdict == 'FAIL']
    for line in said.verdicts:
        metric, subsystem = line.metric.partition('.')[0], line.subsystem
        if line.verdict == 'FAIL':
            fails.append(('cpu_availability' if metric == 'cpu_availability' else 'metric' if metric else 'test', subsystem))
        better = registry.better(metric)
        if line.value and better and (registry.is_absolute(metric) or metric == 'cpu_availability'):
            values[line.display_name, line.environ, line.metric] = line.value, subsystem, better
    return Seen(session.exit, values, fails, [one.rule['name'] for one in said.diagnosis.findings])


def losses(seen, null):
    '''(subsystem -> the median loss of its rates and times against the medians without a fault, metric -> (its median loss, its subsystem));
    below 0: a gain.

    :arg seen, null: lists of :class:`Seen`.
    '''
    usual = grouping.by_key((key, value) for session in null for key, (value, _, _) in session.values.items())
    changes, of_one = defaultdict(list), defaultdict(list)
    for session in seen:
        for key, (value, subsystem, better) in session.values.items():
            if key in usual:
                change = better * np.log(value / np.median(usual[key]))
                changes[subsystem].append(change)
                of_one[key[-1], subsystem].append(change)
    return ({subsystem: _lost(found) for subsystem, found in changes.items()},
            {metric: (_lost(found), subsystem) for (metric, subsystem), found in of_one.items()})


def _lost(changes):
    return float(-np.expm1(np.median(changes)))


def _interval(count, total):
    '''Of a share, 95 %, by Clopper and Pearson.'''
    from scipy import special
    low = special.betaincinv(count, total - count + 1, 0.025) if count else 0.0
    return low, special.betaincinv(count + 1, total - count, 0.975) if count < total else 1.0


def share(count, total):
    '''``97 of 100 (97.0 %, 91.5 to 99.4)``.'''
    low, high = _interval(count, total)
    return f'{count} of {total} ({100 * count / total:.1f} %, {100 * low:.1f} to {100 * high:.1f})'


def becomes(wrong, total, most):
    '''What becomes of a target: missed where the interval excludes it, met where the share meets it in so many sessions that one may be wrong.

    :arg wrong: sessions, of ``total``, that are not as they should be; :arg most: the share that may be so.
    '''
    if _interval(wrong, total)[0] > most:
        return MISSED
    return MET if max(1, wrong) <= most * total else TOO_FEW


def exits(codes):
    '''``0: 7, 3: 1``: how often there was which exit code.'''
    return ', '.join(f'{code}: {count}' for code, count in sorted(Counter(codes).items()))


def _row(name, seen, null):
    fault = FAULTS[name]
    found = [session for session in seen if session.finds(fault)]
    of_subsystems, of_metrics = losses(seen, null)
    lost = {subsystem: loss for subsystem, loss in of_subsystems.items() if subsystem in fault.subsystems}
    most = {metric: loss for metric, (loss, subsystem) in of_metrics.items() if subsystem in fault.subsystems}
    enough = max([*lost.values(), *most.values()], default=0.0) >= ENOUGH
    target = becomes(len(seen) - len(found), len(seen), MOST_UNSEEN) if enough else '-'
    by = Counter(kind for session in found for kind in {kind for kind, _ in session.fails})
    blamed = ', '.join(f'{kind} {count}' for kind, count in by.most_common()) or '-'
    named = [sum(session.names_cause(fault) for session in seen), sum(session.names_subsystem(fault) for session in found)]
    return [fault.what, _most(lost), _most(most), f'{len(found)} of {len(seen)}', target, exits(session.exit for session in seen), blamed,
            *map(str, named)]


def _most(lost):
    worst = max(lost, key=lost.__getitem__, default=None)
    return f'{round(100 * lost[worst])} % {worst}' if worst else 'not known'


def grid(rows):
    '''A simple table of reStructuredText; the first row is its head.'''
    widths = [max(map(len, column)) for column in zip(*rows)]
    ruler = '  '.join('=' * width for width in widths)
    lines = ['  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return [ruler, lines[0], ruler, *lines[1:], ruler]


def told(place):
    '''(The lines of the table, one that says so where there is no session yet; what becomes of its targets together, a key of :data:`CODES`).'''
    sessions = place.sessions()
    if not sessions:
        return [f'{place.folder}: no session yet'], TOO_FEW
    of_kind = defaultdict(list, grouping.by_key((session.kind, look(place, session)) for session in sessions))
    tried = {name: of_kind[name] for name in FAULTS if name in of_kind}
    null = of_kind[REFERENCE] + of_kind[NULL]
    found, codes = [*_head(place, sessions, of_kind), ''], [session.exit for session in of_kind[NULL]]
    if codes:
        found += [f'Nothing changed: exit code 0 in {share(codes.count(0), len(codes))}; false FAIL in {share(codes.count(1), len(codes))}; exit '
                  f'codes {exits(codes)}; a cause is named in {share(sum(bool(session.causes) for session in of_kind[NULL]), len(codes))}.', '']
    rows = [_row(name, seen, null) for name, seen in tried.items()]
    if rows:
        found += grid([['fault', 'loss', 'most of a metric', 'found', 'target', 'exit codes', 'by', 'cause named', 'subsystem named'], *rows])
    targets = _targets(codes, [row[4] for row in rows if row[4] in CODES])
    told_of = '; '.join(f'{what}: {one}' for what, one in targets.items())
    return [*found, *not_tried(place, FAULTS, tried), '', f'Targets: {told_of}.'], _worst(targets.values())


def _targets(codes, of_faults):
    '''Target -> what becomes of it.

    :arg codes: exit codes without a fault; :arg of_faults: what becomes of each fault that takes enough.
    '''
    return {f'exit code 0 in {percent(1 - MOST_OTHER, 0)} of the sessions without a fault': becomes(
                len(codes) - codes.count(0), len(codes), MOST_OTHER),
            f'a false FAIL in {percent(MOST_FALSE, 0)} of them at most': becomes(codes.count(1), len(codes), MOST_FALSE),
            f'each fault that takes {percent(ENOUGH, 0)} and more found in {percent(1 - MOST_UNSEEN, 0)}': _worst(of_faults)}


def _worst(targets):
    return max(targets, key=list(CODES).index, default=TOO_FEW)


def not_tried(place, faults, tried):
    '''Lines: the faults that could not be provoked, and the sessions that failed, and why.'''
    return [f'{faults[name].what}: not tried: {reason}' if name in faults else f'{name}: failed: {reason}'
            for name, reason in place.not_tried().items() if name not in tried]


def days(sessions):
    '''The days (UTC) of the first and the last of sessions.'''
    return ' to '.join(dict.fromkeys(time.strftime('%Y-%m-%d', time.gmtime(session.started)) for session in (sessions[0], sessions[-1])))


def _head(place, sessions, of_kind):
    machine: dict = next(filter(None, (_machine(place, session) for session in sessions if session.name)), {})
    faults = max((len(seen) for kind, seen in of_kind.items() if kind in FAULTS), default=0)
    return [f"{days(sessions)}, {machine.get('cpu_model')}, {len(machine.get('allowed_cpus', ()))} CPUs, Linux {machine.get('kernel')}:",
            f'``plumbline bench verdicts --null {len(of_kind[NULL])} --faults {faults}``, sessions of '
            f'{np.median([session.seconds for session in sessions]):.0f} s, references from {len(of_kind[REFERENCE])}.']


def _machine(place, session):
    '''The machine record of the test that might use most CPUs.'''
    found = [line.detail.machine for line in verdict_lines(place.rows(session)) if line.detail.machine]
    return max(found, key=lambda machine: len(machine['allowed_cpus']), default=None)
