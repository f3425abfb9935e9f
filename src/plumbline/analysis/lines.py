"""The lines of a session: one per metric of each test, the same for the terminal and for the page.

A test case may have run several times (ReFrame's retries are runs 0, 1, ...).  Its last run counts; earlier ones are told on the line.
"""

import json
import re
from dataclasses import dataclass, field

import polars as pl

from plumbline.analysis import outline
from plumbline.model import parameters, probes, quantity, registry, states, subsystems, verdict as judged
from plumbline.model.parameters import as_words
from plumbline.model.safe_text import shown

#: Verdicts in the order in which they need attention.
VERDICTS = (judged.FAIL, judged.UNSTABLE, judged.KNOWN_ISSUE, judged.NO_REFERENCE, judged.PASS)
NOT_MEASURED = 'not measured'

CASE = ('system', 'partition', 'environ', 'test')

#: Columns of the archive that no line needs.
_UNREAD = ('session', 'started', 'processor', 'rounds', 'processes', 'set_aside', 'session_info', 'lacks')


@dataclass(slots=True)      # of a thousand nodes there are 300,000
class Line:
    '''One metric with its verdict, or (``metric`` empty) one test that failed without a metric to blame.

    :attr shown_test: its name, with what ReFrame's command line added: the number of the repetition, say.
    :attr on_one_core: whether two of its threads were on one core in a state that was met; :attr apart: whether none were, in the one that is judged.
    '''

    verdict: str
    reason: str
    check: str
    test: str
    display_name: str
    label: str
    system: str
    partition: str
    environ: str
    hostname: str
    shown_test: str = ''
    level: str = ''
    threads: str = ''
    metric: str = ''
    value: float | None = None
    unit: str = ''
    reference: float | None = None
    low: float | None = None
    high: float | None = None
    reference_from: str = ''
    limit: float | None = None
    spread: float | None = None
    sees: float | None = None
    n: int | None = None
    retried: str = ''
    detail: outline.Outline = field(default_factory=outline.Outline, compare=False, repr=False)
    least: float | None = None
    expected: str | None = None
    subsystem: str | None = None
    interval: tuple | None = None
    samples: list | None = field(default=None, compare=False, repr=False)
    record: int | None = None
    registered: str = ''
    recorded_states: str = ''
    unjudged: str = ''
    on_one_core: bool = False
    apart: bool = False
    foreign: bool = False
    symptom: str = ''

    @property
    def kind(self):
        '''Its name in the registry of metrics, which of another suite's is not part of its own.'''
        return self.registered or self.metric.partition('.')[0]

    @property
    def question(self):
        '''Of :data:`registry.QUESTIONS` the one that it is evidence for, or ``registry.OTHERS``, as what passed without a number.'''
        return registry.question(self.subsystem, self.kind, self.foreign or (not self.metric and self.verdict == judged.PASS))

    @property
    def built(self):
        '''Compiler and flags of what was measured; '' where no record says.'''
        records = self.detail.records or []
        its = records[self.record:self.record + 1] if self.record is not None else [one for one in records if one['role'] == 'kernel']
        return '; '.join(dict.fromkeys(f"{one['compiler']} {one.get('flags') or ''}".strip() for one in its if one.get('compiler')))

    @property
    def case(self):
        '''What tells its test case from the others of the session: the values of ``CASE``.'''
        return self.system, self.partition, self.environ, self.test

    @property
    def shown_threads(self):
        """'1 thread', '4 threads', 'one thread', 'all threads'; '' if the test has none."""
        return quantity.several(self.threads, 'thread') if self.threads else ''

    @property
    def shown_value(self):
        return quantity.amount(self.value, self.unit)

    @property
    def shown_least(self):
        """What the value would be if no write-allocate took place; '' where the traffic has one bound only."""
        if not quantity.known(self.least):
            return ''
        return f'{quantity.amount(self.least, self.unit)} if the processor leaves write-allocates out'

    @property
    def shown_bounds(self):
        return quantity.interval(self.low, self.high, self.value, self.unit)

    @property
    def shown_reference(self):
        if not quantity.known(self.reference):
            return 'none'
        like = self.value if quantity.known(self.value) else self.reference
        factor, _ = quantity.scale(like, self.unit)
        bounds = quantity.interval(self.low, self.high, like, self.unit)
        return f'{quantity.digits(self.reference * factor)} ({bounds})' if bounds else quantity.digits(self.reference * factor)

    @property
    def shown_limit(self):
        return quantity.amount(self.limit, 'MB/s')

    @property
    def shown_spread(self):
        return quantity.percent(self.spread)

    @property
    def shown_sees(self):
        '''The loss that would have been a FAIL, of PASS and UNSTABLE.'''
        return quantity.percent(self.sees)


@dataclass(frozen=True)
class NotMeasured:
    '''What was not measured, and why; ``metric`` empty: the whole test; ``recorded``: how many of its metrics should have been; ``lost``: of
    a test that was not skipped, of each of those (subsystem, partition, :func:`subsystems.kind`); ``test`` with its parameters, as people
    read it; ``hostname`` empty where none is known, as ``test``, ``partition`` and ``environ`` of what did not run.'''

    label: str
    metric: str
    reason: str
    recorded: int = 0
    check: str = ''
    lost: tuple = ()
    symptom: str = ''
    hostname: str = ''
    test: str = ''
    partition: str = ''
    environ: str = ''


def case_runs(rows, details=None):
    '''Test case -> list of its runs, first to last; each run is the list of its rows (dict).

    :arg rows: the archive's of one session; or what this gave of them before.
    :arg details: iterator of each row's ``detail``, where it is not among their columns.
    '''
    if not isinstance(rows, pl.DataFrame):
        return rows
    names = [name for name in rows.columns if name not in (*_UNREAD, 'detail')]
    cases: dict[tuple, dict[int, list[dict]]] = {}
    for detail, *cells in zip(rows['detail'] if details is None else details, *(_cells(rows[name]) for name in names)):
        row = dict(zip(names, cells), detail=detail)
        runs = cases.setdefault(tuple(row[key] or '' for key in CASE), {})
        runs.setdefault(row['run'] or 0, []).append(row)
    return {case: _that_count([runs[run] for run in sorted(runs)]) for case, runs in cases.items()}


def _that_count(runs):
    '''Without the last ones that were skipped, as :func:`plumbline.store.archive.final_rows`.'''
    ran = [number for number, run in enumerate(runs, 1) if run[0]['result'] != 'skip']
    return runs[:ran[-1]] if ran else runs


def _cells(column):
    '''The values of a column, each text once in memory.'''
    known: dict[str, str] = {}
    return [text and known.setdefault(text, text) for text in column] if column.dtype == pl.String else column.to_list()


def detail_of(run):
    '''The :func:`outline.of` what is in the result of one run of a test case, read once; empty if the test left none.'''
    row: dict = next((row for row in run if row.get('detail')), {'detail': outline.Outline()})
    if isinstance(row['detail'], str):
        row['detail'] = outline.of(json.loads(row['detail']))
    return row['detail']


def session_info(rows):
    """ReFrame's own account of the session; empty if there is none."""
    if 'session_info' not in rows.columns:
        return {}
    text = next((text for text in rows['session_info'] if text), None)
    return json.loads(text) if text else {}


def verdict_lines(rows):
    '''Lines of a session, those that need attention first; of a test that ReFrame calls failed at least one FAIL or UNSTABLE.'''
    lines, elsewhere = [], []
    reported: set[tuple] = set()
    for runs in case_runs(rows).values():
        lines += _case_lines(runs)
        last = runs[-1][0]
        environment = last['system'], last['partition'], last['environ'], last.get('environment_error')
        if _reported_elsewhere(runs):
            elsewhere.append((environment, _test(last, detail_of(runs[-1]), runs)))
        elif last['metric'] is None and last['verdict'] == 'FAIL':
            reported.add(environment)
    lines += [line for environment, line in elsewhere if environment not in reported]
    _make_labels_unique(lines)
    return sorted(lines, key=lambda line: VERDICTS.index(line.verdict))


def not_measured(rows):
    '''List of :class:`NotMeasured`: skipped tests, and metrics that a test said it could not measure.'''
    found = []
    for runs in case_runs(rows).values():
        last = runs[-1]
        row, detail = last[0], detail_of(last)
        of = _identity(row, detail)
        its = {'test': as_words(of['shown_test']), **{name: of[name] for name in ('label', 'check', 'partition', 'environ', 'hostname')}}
        unsaid = row['result'] == 'skip' and row['metric'] is None and (not detail.skipped or row['fail_reason'])      # or it was cut off
        if unsaid or (_reported_elsewhere(runs) and not row['fixture']):
            found.append(NotMeasured(metric='', reason=_reason(row), **its))
        for skipped in detail.skipped or ():
            recorded, names = skipped.recorded or 0, skipped.referenced or ()
            known = recorded or len(names)
            reason = (skipped.reason or 'no reason given') + f'; references are recorded of {known} of its metrics' * bool(known)
            found.append(NotMeasured(metric=skipped.metric or '', reason=reason, recorded=recorded, lost=tuple(_lost(row, skipped)),
                                     symptom=skipped.symptom or '', **its))
    return found


def not_run(tests):
    '''The same of tests that have references and did not run (:mod:`plumbline.references.not_run`).'''
    return [NotMeasured(label, '', (f'it was skipped, and the same command measured it in {session};' if any(skipped) else
                                    f'it did not run, and the same command ran it in {session}: is its environment still found, its partition still '
                                    'configured?') + f' references are recorded of {number} of its metrics', number, label.partition('/')[0])
            for label, (number, session, *skipped) in tests.items()]


def _lost(row, skipped):
    for name, part in zip(skipped.referenced or (), skipped.subsystems or ()):
        if part:
            yield part, row['partition'] or '', subsystems.kind(name.partition('.')[0])


def by_reason(not_measured):
    """Not-measured things gathered by reason: list of (reason, list of 'label: metric, metric')."""
    gathered: dict[str, dict[str, list]] = {}
    for item in not_measured:
        gathered.setdefault(item.reason, {}).setdefault(item.label, []).append(item.metric)
    return [(reason, [f"{label}: {', '.join(filter(None, dict.fromkeys(metrics)))}" if any(metrics) else label for label, metrics in labels.items()])
            for reason, labels in gathered.items()]


def one_line(text):
    '''Text without control characters and line ends.'''
    return re.sub(r'\s+', ' ', shown(str(text or ''))).strip()


def _reported_elsewhere(runs):
    '''Whether a test failed for a reason that has its FAIL elsewhere (``environment_errors.reported_once``): its environment.'''
    row = runs[-1][0]
    return row['metric'] is None and row['verdict'] is None and bool(row['reason']) and row['result'] not in ('pass', 'skip')


def _case_lines(runs):
    last = runs[-1]
    first, detail = last[0], detail_of(last)
    lines = [_line(row, detail, runs) for row in last if row['metric'] is not None]
    # The archive gives a test that its metrics do not explain a row of its own.
    ends = [row for row in last if row['metric'] is None and row['verdict'] in ('FAIL', 'UNSTABLE', judged.KNOWN_ISSUE, judged.PASS)]
    blamed = any(line.verdict == 'FAIL' or (line.verdict == judged.KNOWN_ISSUE and first['result'] == 'xfail') for line in lines) or (
        first['fail_phase'] == 'performance' and any(line.verdict == 'UNSTABLE' or line.recorded_states for line in lines))
    if not ends and not blamed and first['result'] not in ('pass', 'skip') and not _reported_elsewhere(runs):
        ends = [first | {'reason': None, 'metric': None, 'verdict': None if first['verdict'] == judged.PASS else first['verdict']}]
    return lines + [_test(row, detail, runs) for row in ends]


def _identity(row, detail):
    name = row['display_name'] or row['check']
    return {'check': row['check'], 'test': row['test'], 'display_name': name, 'shown_test': ' '.join([name, *parameters.added(row)]),
            'label': _label(row), 'system': row['system'] or '', 'partition': row['partition'] or '', 'environ': row['environ'] or '',
            'hostname': row['hostname'] or '', 'level': _text(row['level']), 'threads': _text(row['threads']), 'detail': detail,
            'foreign': bool(row.get('foreign'))}


def _line(row, detail, runs):
    low, high = judged.bounds((row['reference'], row['lower'], row['upper'])) if quantity.known(row['reference']) else (None, None)
    verdict = row['verdict'] if row['verdict'] in VERDICTS else 'NO REFERENCE'
    return Line(verdict=verdict, reason=one_line(row['reason']), **_identity(row, detail), metric=row['name'] or row['metric'], value=row['value'],
                unit=row['unit'] or '1', reference=row['reference'], low=low, high=high, reference_from=row['reference_from'] or '',
                limit=row['limit'], spread=row['spread'], sees=row.get('sees'), n=row['n'],
                retried=_retried(verdict, runs, row['name'] or row['metric']), least=_least(row, detail), expected=row.get('expected'),
                subsystem=registry.of_row(row)[0], interval=(row['interval_low'], row['interval_high']) if row.get('interval_low') is not None
                else None, samples=row.get('samples'), record=row.get('record'), registered=row['metric'] or '',
                recorded_states=row.get('recorded_states') or '', unjudged=row.get('unjudged') or '',
                on_one_core=_on_one_core(row), apart=_apart(row, detail))


def _on_one_core(row):
    '''Whether two of the threads were on one core in some state that it was measured in.'''
    texts = (row.get('state'), row.get('states'))
    return any(probes.SHARING in (text or '') for text in texts) and any(states.on_one_core(one['state']) for one in states.of_row(row))


def _apart(row, detail):
    record = row.get('record')
    alone = record is not None and any(len(one['cpus']) == 1 for one in (detail.records or [])[record:record + 1])
    return alone or (probes.SHARING in (row.get('state') or '') and not states.on_one_core(states.of_row(row)[0]['state']))


def _least(row, detail):
    '''``of_limit`` by the least traffic of its record (``traffic_least``); None where there is no other than the one it is by.'''
    if row['metric'] != 'of_limit' or row['record'] is None or not quantity.known(row['value']):
        return None
    record = detail.records[row['record']]
    return row['value'] * record['least'] if 'least' in record else None


def _test(row, detail, runs):
    '''The line of a whole test: of one that failed, unless the archive says otherwise.'''
    ruling = row['verdict'] if row['verdict'] in (judged.KNOWN_ISSUE, judged.PASS, judged.UNSTABLE) else judged.FAIL
    return Line(verdict=ruling, reason=_reason(row), **_identity(row, detail), retried=_retried(ruling, runs, ''), symptom=row.get('symptom') or '')


def _retried(verdict, runs, metric):
    if len(runs) < 2:
        return ''
    told = [f'run {number}: {_earlier(run, metric)}' for number, run in enumerate(runs[:-1], 1)]
    return f'{verdict} at run {len(runs)} of {len(runs)}; ' + ', '.join(told)


def _earlier(run, metric):
    for row in run:
        if metric and (row['name'] or row['metric']) == metric and quantity.known(row['value']):
            return quantity.amount(row['value'], row['unit'])
    if run[0]['result'] == 'fail_deps':
        return 'not run'
    return f"failed in {run[0]['fail_phase']}" if run[0]['fail_phase'] else run[0]['result'] or 'no value'


def _reason(row):
    if row['reason']:
        return one_line(row['reason'])
    return ': '.join(filter(None, [row['fail_phase'], one_line(row['fail_reason']) or 'no reason given']))


def _text(value):
    return '' if value is None else str(value)


def _label(row):
    threads = _text(row['threads'])
    level = _text(row['level'])
    return ' '.join(filter(None, [row['check'], level, f'{threads}t' if threads.isdigit() else threads]))


def _make_labels_unique(lines):
    """Labels become unique by what differs: the test's display name, then environment, partition and host."""
    tests: dict[str, set[str]] = {}
    for line in lines:
        tests.setdefault(line.label, set()).add(line.test)
    where = [name for name in ('environ', 'partition', 'hostname')
             if len({getattr(line, name) for line in lines if line.metric or getattr(line, name)}) > 1]
    for line in lines:
        words = as_words(line.shown_test) if len(tests[line.label]) > 1 else line.label
        line.label = ' '.join(filter(None, [words, *(getattr(line, name) for name in where)]))
