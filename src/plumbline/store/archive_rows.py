'''The rows of the archive that ReFrame's run report gives; see ``archive.py`` for their columns.

Here is decided what counts as a failure when ReFrame and the metrics disagree: a failure of either
is a FAIL.
'''

import json
import math
from collections.abc import Collection, Iterator
from typing import Any

from plumbline import schemas
from plumbline.model import environment_errors, verdict
from plumbline.model.result import Measured, Result, known
from plumbline.scheduler import submit_errors
from plumbline.store import former

_MEASURED_NOTHING = 'measured nothing: the test passed without a metric'
_COPIED = ('system', 'partition', 'environ', 'result', 'fail_phase', 'fail_reason', 'time_total',
           'time_setup', 'time_compile', 'time_run', 'time_sanity', 'time_performance')
_OTHER_ENDS = {
    'xpass': 'passed although ReFrame was told to expect a failure; remove the expectation',
    'abort': 'aborted before its end',
}


def check_of(case: dict) -> str:
    '''The class name of a test case: ReFrame's display name up to the first blank.'''
    return case['name'].split(' ')[0]


def first_line(text: str | None) -> str:
    '''What a scheduler refused; else the first line of a reason, with the next one if it only announces it, blanks collapsed.'''
    if said := submit_errors.in_a_line(text or ''):
        return said
    lines = [' '.join(line.split()) for line in (text or '').splitlines() if line.strip()]
    if not lines:
        return 'ReFrame gives no reason'
    return ' '.join(lines[:2]) if lines[0].endswith(':') else lines[0]


def _nodes(case: dict, result: Result) -> str | None:
    '''Where the test ran; ReFrame's ``job_nodelist`` is a list, or a text if there was no job.'''
    nodes = case.get('job_nodelist')
    # From ReFrame's squeue scheduler, of a job that has ended before it looked: ['None'].
    if isinstance(nodes, list) and nodes not in ([], ['None']):
        return ','.join(nodes)
    return result.of_machine.get('hostname')


def _payload(case: dict) -> tuple[dict, str | None]:
    '''(payload, complaint): what the check left, ``{}`` if nothing or if it is out of schema.

    ReFrame writes ``'<undefined>'`` or null where a test did not get that far.
    '''
    payload = case.get('plumbline')
    if not isinstance(payload, dict) or not payload:
        return {}, None
    payload = former.result(payload)
    wrong = schemas.complaint('result', payload)
    return ({}, f'result out of schema: {wrong}') if wrong else (payload, None)


def _without_nan(value: Any) -> Any:
    '''JSON has no NaN: browsers refuse a page that holds one.'''
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _metric_row(metric: Measured, left: dict) -> dict:
    '''The columns of one metric; a PASS of a number that is not finite becomes a FAIL.

    :arg metric: :class:`Measured`.
    :arg left: the same as the check left it.
    '''
    row = {'metric': metric.metric, 'name': metric.name, 'subject': metric.subject, 'value': metric.value, 'unit': metric.unit,
           'samples': metric.samples, 'n': metric.n, 'spread': metric.spread, 'reference_from': metric.reference_from, 'limit': metric.limit,
           'verdict': metric.verdict, 'reason': metric.reason, 'set_aside': known(metric.set_aside), 'sees': known(metric.sees),
           'unjudged': known(metric.unjudged), 'record': known(metric.record), 'rounds': known(metric.rounds)}
    row.update({key: json.dumps(left[key]) for key in ('state', 'states', 'processes', 'expected') if left.get(key)})
    row['interval_low'], row['interval_high'] = metric.interval or (None, None)
    row['reference'], row['lower'], row['upper'] = (metric.reference or [None] * 3)[:3]
    if metric.verdict == verdict.PASS and not math.isfinite(metric.value):
        row.update(verdict=verdict.FAIL, reason='not a finite number')
    return row


def _others_metrics(case: dict) -> Iterator[dict]:
    '''The metrics of a test of another suite, which leaves ReFrame's performance variables only: rows with ReFrame's verdict.'''
    values = case.get('perfvalues')
    for key, entry in values.items() if 'plumbline' not in case and isinstance(values, dict) else ():
        if not isinstance(entry, list) or len(entry) < 5 or not isinstance(entry[0], (int, float)):
            continue
        value, reference, lower, upper, unit, result = [*entry, None][:6]      # an older ReFrame has no result of each
        known = lower is not None or upper is not None
        ruling = verdict.FAIL if result == 'fail' else verdict.PASS if known else verdict.NO_REFERENCE
        name = key.split(':')[-1]
        yield {'metric': name, 'name': name, 'level': 'application', 'value': float(value), 'unit': unit or '1', 'n': 1, 'verdict': ruling,
               'reason': 'as ReFrame judged it', **({'reference': reference, 'lower': lower, 'upper': upper, 'reference_from': 'ReFrame'}
                                                   if known else {})}


def _judged_as_failed(case: dict) -> set[str]:
    '''Metrics whose reference ReFrame found not met: entry 5 of its ``perfvalues``.'''
    values = case.get('perfvalues')
    values = values if isinstance(values, dict) else {}
    return {key.split(':')[-1] for key, entry in values.items() if entry[-1] == 'fail'}


def _is_explained(case: dict, metrics: list[dict]) -> bool:
    '''Whether the metrics already say why ReFrame calls the test failed.

    A FAIL does.  An UNSTABLE does where it alone made the test fail: because ReFrame, which knows
    the median only, found just these references not met, or because the base plugin says so.
    '''
    verdicts = {metric['name']: metric['verdict'] for metric in metrics}
    if verdict.FAIL in verdicts.values():
        return True
    if case['fail_phase'] != 'performance' or verdict.UNSTABLE not in verdicts.values():
        return False
    failed = _judged_as_failed(case)
    if not failed:
        return f': {verdict.UNSTABLE}: ' in (case['fail_reason'] or '')
    return all(verdicts.get(name) == verdict.UNSTABLE for name in failed)


def _failed_dependencies(case: dict, failed: Collection[str]) -> str:
    names = [dependency[0] for dependency in case.get('dependencies_actual') or ()]
    return ', '.join(name for name in names if name in failed) or 'a dependency'


def _skip_reason(result: Result) -> str:
    reasons = [skipped.reason for skipped in result.skipped or ()]
    return '; '.join(dict.fromkeys(reasons)) or 'ReFrame does not record why; see its log'


def _end_row(case: dict, result: Result, wrong: str | None, metrics: list[dict], failed: Collection[str],
             told: tuple[str | None, str] | None) -> dict | None:
    '''The row of a test case that its metrics do not give, or :obj:`None`.

    ``failed`` holds the unique names of all test cases that did not pass, for the reason of those
    that depended on them; ``told`` is the verdict and reason of a case whose environment is broken.
    '''
    end = case['result']
    if told:
        return dict(zip(('verdict', 'reason'), told))
    if end == 'skip':
        return {'verdict': None, 'reason': wrong or _skip_reason(result)} if not metrics else None
    if end == 'pass':
        if wrong:
            return {'verdict': verdict.FAIL, 'reason': wrong}
        if metrics:
            return None
        if case.get('fixture') or 'plumbline' not in case:      # a test of another suite may measure nothing
            return {'verdict': None, 'reason': None}
        return {'verdict': verdict.FAIL, 'reason': _MEASURED_NOTHING}
    if end == 'xfail':      # ReFrame's decorator: the test fails as it was told to expect
        return {'verdict': verdict.KNOWN_ISSUE, 'reason': first_line(case['fail_reason'])}
    if _is_explained(case, metrics):
        return None
    if end == 'fail_deps':
        reason = f'not run: {_failed_dependencies(case, failed)} failed'
    elif case['fail_reason'] or end == 'fail':
        reason = f"{case['fail_phase']}: {first_line(case['fail_reason'])}"
    else:
        reason = _OTHER_ENDS.get(end, f'ReFrame ended it with result {end!r}')
    return {'verdict': verdict.FAIL, 'reason': reason}


_PHASES = ('time_setup', 'time_compile', 'time_run', 'time_sanity', 'time_performance')


def _times(case: dict) -> dict[str, float]:
    '''How long the job ran, and all phases together, seconds.

    ReFrame's own ``time_run`` and ``time_total`` of a fixture last until the end of all tests that use it.
    '''
    submitted, completed = case.get('job_submit_time'), case.get('job_completion_time_unix')
    if not submitted or not completed:
        return {}
    times = {**{phase: case.get(phase) for phase in _PHASES}, 'time_run': completed - submitted}
    return {'time_run': times['time_run'], 'time_total': sum(filter(None, times.values()))}


def case_rows(case: dict, run: int, failed: Collection[str] = frozenset(), told: tuple[str | None, str] | None = None) -> list[dict]:
    '''The rows of one test case of a run report.

    :arg case: entry of ``testcases``.
    :arg run: the index of its run.
    :arg failed: unique names of the test cases that did not pass.
    :arg told: verdict and reason, where its environment is broken.
    :returns: a list of dictionaries, never empty.
    '''
    payload, wrong = _payload(case)
    result = Result.of_json(payload)
    base = {key: case.get(key) for key in _COPIED}
    base.update(test=case['unique_name'], check=check_of(case), display_name=case['name'],
                run=run, fixture=bool(case.get('fixture')), hostname=_nodes(case, result),
                processor=result.of_machine.get('cpu_model'),
                timed_seconds=known(result.timed_seconds), level=known(result.level), threads=known(result.threads),
                **_times(case))
    ends = [_metric_row(metric, left) for metric, left in zip(result.metrics or (), payload.get('metrics', ()))] or list(_others_metrics(case))
    end = _end_row(case, result, wrong, ends, failed, told)
    rows = [{**base, **row} for row in ends + ([end] if end else [])]
    detail = {key: value for key, value in payload.items() if key != 'metrics'}
    rows[0]['detail'] = json.dumps(_without_nan(detail)) if detail else None
    return rows


def session_rows(report: dict) -> list[dict]:
    '''All rows of a run report, in the order of running.'''
    failed = {case['unique_name'] for run in report['runs'] for case in run['testcases']
              if case['result'] not in ('pass', 'skip')}
    rows = []
    for number, run in enumerate(report['runs']):
        told = environment_errors.reported_once(run['testcases'])
        for case in run['testcases']:
            rows += case_rows(case, run.get('run_index', number), failed, told.get(environment_errors.key(case)))
    return rows
