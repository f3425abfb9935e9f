'''Sessions held against references from others of them, drawn again and again.

One set of references is one draw: where its five sessions happen to be alike, all others seem odd.  How often there is a false alarm, and
how often a fault is found, is asked of many draws from the same sessions.  ReFrame's second run of what could not be judged, or is out of
bounds, is the session's own where it had one; where it had none, and no fault, what the next session without a fault measured, a minute or
two later.  That one knows less of the first run than an own one does: :func:`shared` says how much.
'''

import json
import shutil
import tempfile
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from plumbline import references
from plumbline.analysis.lines import CASE
from plumbline.analysis.session import Session
from plumbline.bench.verdicts.faults import FAULTS
from plumbline.bench.verdicts.session import SYSTEM
from plumbline.errors import PlumblineError
from plumbline.model import baselines, quantity, states, verdict
from plumbline.model.metrics import Metric
from plumbline.model.prediction import LEAST_LOSS
from plumbline.model.result import Process
from plumbline.model.subsystems import LEAST_SESSIONS
from plumbline.references import files, proposal, recording
from plumbline.rfm import evaluation
from plumbline.store import archive
from plumbline.store.archive_rows import metric_row

#: Processes of a second run have numbers from here on: more than any first run has.
_MANY = 1_000_000

#: What of a row follows from its references: the state that is judged is one of those that were met.
_JUDGED = ('value', 'n', 'spread', 'interval_low', 'interval_high', 'reference', 'lower', 'upper', 'reference_from', 'verdict', 'reason', 'sees',
           'expected', 'recorded_states')

#: Sessions that references are made of.
SIZES = (5, 10, 20)


class Again:
    '''A session that can be judged again.

    :attr rows: of the archive, dictionaries; with a metric also ``cases``, list of :class:`evaluation.Case`.
    :attr twice: case that was run twice -> number of the first process of its second run.
    '''

    def __init__(self, rows):
        self.rows = archive.final_rows(rows).to_dicts()
        twice = set(map(_case, rows.filter(pl.col('run') > 0).iter_rows(named=True)))
        self.twice = dict.fromkeys(twice, 1)        # where a run is one process
        for row in rows.filter(pl.col('run') == 0, pl.col('processes').is_not_null()).iter_rows(named=True):
            if _case(row) in twice:
                self.twice[_case(row)] = max(self.twice[_case(row)], *(1 + one['process'] for one in json.loads(row['processes'])))
        details = {_case(row): json.loads(row['detail']) for row in self.rows if row['detail']}
        for row in self.rows:
            detail = details.get(_case(row), {})
            row['records'], row['widths'] = detail.get('records') or [], detail.get('simd_width') or {}
            if row['metric'] is not None:
                row['cases'] = list(_cases(row))

    def judged(self, in_force, later=None):
        '''Its rows by other references, ``polars.DataFrame``.

        :arg in_force: test -> content of what :func:`references.write_merged` wrote of it.
        :arg later: :class:`Again` whose measurements stand for the second run of what asks for one.
        '''
        found = self._judged(in_force, {}, self.twice)
        if later is None:
            return found
        again = {case for case, rows in found.group_by(CASE) if case not in self.twice
                 and verdict.asks_again(rows['verdict'], rows['recorded_states'].is_not_null().any())}
        second = {(_case(row), row['name']): row['cases'] for row in later.rows if _case(row) in again and 'cases' in row}
        return self._judged(in_force, second, self.twice | dict.fromkeys(again, _MANY)) if again else found

    def _judged(self, in_force, second, twice):
        found = [dict(row) for row in self.rows]
        places, _, _ = recording.groups(found, [{test: content[test]} for test, content in in_force.items()])
        for (test, *keys, name), its in places.items():
            applying = references.of_keys(in_force[test], test, keys).get(name) if test in in_force else None
            for row in its:
                if applying:        # as the check itself judges
                    applying = applying.of_set(row['working_set']) or applying.beneath
                if applying or row['reference_from'] not in baselines.SHIPPED:
                    cases = _both(row['cases'], second.get((_case(row), row['name']), []))
                    measured = evaluation.judged(evaluation.choose(cases, applying), row['widths'], twice.get(_case(row)))
                    columns = metric_row(measured, measured.as_json())
                    row.update({name: columns.get(name) for name in _JUDGED})
                    if row['fail_phase'] == 'performance':
                        row.update(fail_phase=None, result='pass')
        return pl.DataFrame([{column: row[column] for column in archive.SCHEMA} for row in found], schema=archive.SCHEMA)


def _case(row):
    return tuple(row[key] for key in CASE)


def _both(first, second):
    '''The cases of two runs, by state, the one with most samples first.'''
    if not second:
        return first
    found: list[list[evaluation.Case]] = []
    for shift, cases in ((0, first), (_MANY, second)):
        for case in cases:
            processes = [replace(one, process=shift + one.process) for one in case.processes] or [Process(shift, np.size(case.metric.samples), None)]
            alike = next((group for group in found if None not in (group[0].state, case.state) and states.same(group[0].state, case.state)), None)
            if alike is None:
                found.append(alike := [])
            alike.append(replace(case, processes=processes))
    return sorted((evaluation.pooled(group) if len(group) > 1 else group[0] for group in found), key=lambda case: -np.size(case.metric.samples))


def _cases(row):
    '''The metric in each state that the session met, the one that was judged first.'''
    record = recording.record_of(row) if row['record'] is not None else None
    first = {'samples': row['samples'], 'processes': json.loads(row['processes'] or '[]'), 'state': json.loads(row['state'] or '{}')}
    for one in (first, *json.loads(row['states'] or '[]')):
        metric = Metric(row['metric'], row['subject'], np.asarray(one['samples'], dtype=float), limit=row['limit'], unjudged=row['unjudged'],
                        record=record)
        yield evaluation.Case(metric, one['state'], processes=[Process(**each) for each in one.get('processes') or ()])


def references_of(place, names):
    '''The references that these sessions make, as :meth:`Again.judged` takes them; None where one of them is refused.'''
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path, = place.archive.glob(f'*/*/{name}.parquet')
            link = Path(folder, path.relative_to(place.folder))
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
        shutil.copy(place.portable, folder)
        site = Path(folder, f'{SYSTEM}.yaml')
        try:
            proposal.accept(proposal.propose(Path(folder, 'archive'), SYSTEM, site, apart=0))
        except PlumblineError:
            return None
        tests = {**files.tests(files.load(site)), **files.tests(files.load(Path(folder, baselines.PORTABLE)))}
        merged = {test: references.load(references.write_merged(_made(Path(folder, test)), SYSTEM, test, folder)) for test in tests}
        return {test: content for test, content in merged.items() if test in content}


def _made(folder):
    folder.mkdir()
    return folder


def count(place, quiet, faulty, size, draws, chance):
    '''(exit codes of those without a fault, a counter for each draw that was not refused; kind of session with a fault -> exit codes; the
    losses that the PASSes of those without a fault would have seen).

    :arg quiet: sessions without a fault, oldest first; :arg faulty: others.
    :arg size: sessions that make the references; :arg chance: ``numpy.random.Generator``.
    '''
    again = {session.name: Again(place.rows(session)) for session in (*quiet, *faulty)}
    of_quiet: list[Counter] = []
    found: dict[str, Counter] = defaultdict(Counter)
    seen: list[float] = []
    for _ in range(draws):
        drawn = {quiet[number].name for number in chance.choice(len(quiet), size, replace=False)}
        in_force = references_of(place, drawn)
        if in_force is None:
            continue
        of_quiet.append(Counter())
        left = [again[session.name] for session in quiet if session.name not in drawn]
        for number, one in enumerate(left):
            frame = one.judged(in_force, left[(number + 1) % len(left)])
            of_quiet[-1][Session(frame).exit_status()] += 1
            seen.extend(frame.filter(verdict=verdict.PASS)['sees'].drop_nulls())
        for session in faulty:
            found[session.kind][Session(again[session.name].judged(in_force)).exit_status()] += 1
    return of_quiet, found, seen


def shared(sessions):
    '''How far off a second run is, and the next session, of what the first run was off by: (two shares, values, sessions), or None.

    0: it knows nothing of the first run; 1: it repeats that.  Slopes of least squares, of logarithms less the mean of the other sessions and
    over their scatter: that a test ran twice because it was far off the first time does not bend them.

    :arg sessions: those without a fault, :class:`Again`, oldest first.
    '''
    tables = [{(_case(row), row['name']): row['cases'][0] for row in one.rows if 'cases' in row and (row['value'] or 0) > 0} for one in sessions]
    found, which = [], set()
    for number, (one, own, later) in enumerate(zip(sessions, tables, tables[1:])):
        for key in own.keys() & later.keys():
            runs, state = own[key].of_runs(one.twice.get(key[0])), own[key].state
            usual = np.array([table[key].summary.value for other, table in enumerate(tables)
                              if other not in (number, number + 1) and key in table and states.same(table[key].state, state)])
            if runs and states.same(later[key].state, state) and usual.size >= LEAST_SESSIONS and min(run.value for run in runs) > 0:
                logs = np.log([run.value for run in (later[key].summary, *runs)])
                found.append((logs - np.log(usual).mean()) / max(np.log(usual).std(ddof=1), LEAST_LOSS))
                which.add(number)
    if not found:
        return None
    after, first, second = np.transpose(found)
    return *(float(first @ other / (first @ first)) for other in (second, after)), len(found), len(which)


def lines(place, quiet, faulty, draws):
    '''What is told of it, a line for each number of sessions, and one of second runs.

    :arg quiet, faulty: lists of :class:`session.Session` that measured something.
    '''
    if draws and (found := shared([Again(place.rows(session)) for session in quiet])):
        second, after, values, count_of = found
        yield (f'Of what a run was off by, its second run was off by {quantity.percent(second, 0)}, the next session by '
               f'{quantity.percent(after, 0)} ({values} values in {quantity.several(count_of, "session")}).')
    for size in SIZES:
        if draws and 2 * size <= len(quiet):        # as many at least are left
            each, found, seen = count(place, quiet, faulty, size, draws, np.random.default_rng(size))
            if not each:
                yield f'References from {size} of them: none of {draws} draws was of good state.'
                continue
            total = sum(codes.total() for codes in each)
            shares = ', '.join(f'{code} in {100 * sum(codes[code] for codes in each) / total:.1f} %' for code in (0, 1, 3))
            worst = max(codes[1] / codes.total() for codes in each)
            missed = ', '.join(f'{FAULTS[kind].what} {exits[1]} of {sum(exits.values())}' for kind, exits in found.items()
                               if exits[1] < sum(exits.values())) or 'none'
            yield (f'References from {size} of them, drawn {len(each)} times: of {total} judgements without a fault exit code {shares} (1 of one '
                   f'draw: at most in {100 * worst:.1f} %); half of the PASSes would see a loss of {quantity.percent(np.median(seen), 0)}; '
                   f'faults not always found: {missed}.')
