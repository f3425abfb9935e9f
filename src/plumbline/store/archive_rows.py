'''The rows of the archive that ReFrame's run report gives; see ``archive.py`` for their columns.

Here is decided what counts as a failure when ReFrame and the metrics disagree: a failure of either
is a FAIL.
'''

import itertools
import json
import math
import re
from collections.abc import Collection, Iterator
from typing import Any

from plumbline import schemas
from plumbline.model import environment_errors, parameters, processor, records, registry, verdict
from plumbline.model.result import Measured, Result, as_given, known
from plumbline.model.uncertainty import Summary
from plumbline.scheduler import submit_errors

_MEASURED_NOTHING = 'measured nothing: the test passed without a metric'

#: What judged a metric of a test of another suite, where its own history did not.
BY_REFRAME = 'ReFrame'

_SANITY_ALONE = 'its sanity check passed, by ReFrame; it measures nothing'
_PHASES = ('time_setup', 'time_compile', 'time_run', 'time_sanity', 'time_performance')
_COPIED = ('system', 'partition', 'environ', 'result', 'fail_phase', 'fail_reason', 'time_total', *_PHASES)

#: ReFrame's options that run a whole session again and again.
REPEATED = re.compile(r'\s--(rer|dur)')
_RERUNS = re.compile(r'\s--rer\w*[= ](\d+)')

#: ReFrame's ``fail_reason`` of what ``--duration`` cut off.
_CUT_OFF = 'aborted due to RunSessionTimeout'

#: That of what ran when its session was broken off -> by what.
_BROKEN_OFF = {'aborted due to KeyboardInterrupt': 'SIGINT', 'aborted due to ForceExitError': 'SIGTERM, SIGHUP or an option that nothing has',
               'aborted due to FailureLimitError': '--maxfail'}

_OTHER_ENDS = {'xpass': 'passed although ReFrame was told to expect a failure; remove the expectation', 'abort': 'aborted before its end'}


def is_foreign(case: dict) -> bool:
    '''Whether a test case is of another suite: it has nothing of ours, not even an empty result.'''
    return 'plumbline' not in case


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
    wrong = schemas.complaint('result', payload)
    return ({}, f'result out of schema: {wrong}') if wrong else (payload, None)


def _without_nan(value: Any) -> Any:
    '''JSON has no NaN: browsers refuse a page that holds one.'''
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def metric_row(metric: Measured, left: dict) -> dict:
    '''The columns of one metric; a PASS of a number that is not finite becomes a FAIL.

    :arg left: the metric as the check left it.
    '''
    row = {'metric': metric.metric, 'name': metric.name, 'subject': metric.subject, 'subsystem': metric.subsystem,
           'value': metric.value, 'unit': metric.unit, 'samples': metric.samples, 'n': metric.n, 'spread': metric.spread,
           'reference_from': metric.reference_from, 'limit': metric.limit,
           'verdict': metric.verdict, 'reason': metric.reason, 'set_aside': known(metric.set_aside), 'sees': known(metric.sees),
           'unjudged': known(metric.unjudged), 'record': known(metric.record), 'rounds': known(metric.rounds)}
    row.update({key: json.dumps(left[key]) for key in ('state', 'states', 'recorded_states', 'processes', 'expected') if left.get(key)})
    row['interval_low'], row['interval_high'] = metric.interval or (None, None)
    row['reference'], row['lower'], row['upper'] = (metric.reference or [None] * 3)[:3]
    if metric.verdict == verdict.PASS and not math.isfinite(metric.value):
        row.update(verdict=verdict.FAIL, reason='not a finite number')
    return row


#: ReFrame's result of a performance variable that has a reference -> its verdict; of all others PASS.
_OF_REFRAME = {'fail': verdict.FAIL, 'xfail': verdict.KNOWN_ISSUE}


def _others_metrics(case: dict) -> Iterator[dict]:
    '''The metrics of a test of another suite, which leaves ReFrame's performance variables only: rows with ReFrame's verdict.'''
    values = case.get('perfvalues')
    for key, entry in values.items() if is_foreign(case) and isinstance(values, dict) else ():
        if not isinstance(entry, list) or len(entry) < 5 or not isinstance(entry[0], (int, float)) or not all(
                bound is None or isinstance(bound, (int, float)) for bound in entry[1:4]):
            continue
        value, reference, lower, upper, unit, result = [*entry, None][:6]      # an older ReFrame has no result of each
        known = reference is not None and (lower is not None or upper is not None)
        summary = Summary(float(value), 1, 0.0, (float(value),) * 2)
        ruling, reason = verdict.judge(summary, (reference, lower, upper) if known else None, math.inf, unit or '1')
        if math.isfinite(value) and not known:
            ruling = verdict.NO_REFERENCE
        elif math.isfinite(value) and result is not None:       # on the bound itself ReFrame's word counts
            ruling = _OF_REFRAME.get(result, verdict.PASS)
        if ruling == verdict.KNOWN_ISSUE:
            reason = f"known by the test's own reference (xfail): {reason}"     # its text is on ReFrame's terminal only
        yield {'metric': registry.of_other_suite(lower, upper), 'subsystem': registry.OTHER_SUITES, 'name': key.split(':')[-1],
               'value': float(value), 'unit': unit or '1', 'n': 1, 'verdict': ruling, 'reason': f'{reason}, by ReFrame' if known else reason,
               **({'reference': reference, 'lower': lower, 'upper': upper, 'reference_from': BY_REFRAME} if known else {})}


def _judged_as_failed(case: dict) -> set[str]:
    '''Metrics whose reference ReFrame found not met: entry 5 of its ``perfvalues``.'''
    values = case.get('perfvalues')
    values = values if isinstance(values, dict) else {}
    return {key.split(':')[-1] for key, entry in values.items() if entry[-1] == 'fail'}


def _is_explained(case: dict, result: Result, metrics: list[dict]) -> bool:
    '''Whether the metrics already say why ReFrame calls the test failed.

    A FAIL does.  An UNSTABLE, or a state that no reference is of, does where it alone made the test fail: because ReFrame, which knows
    the median only, found just these references not met, or because the base plugin made it fail for that.
    '''
    verdicts = {metric['name']: metric['verdict'] for metric in metrics}
    if verdict.FAIL in verdicts.values():
        return True
    of_other_states = any(metric.get('recorded_states') for metric in metrics)
    if case['fail_phase'] != 'performance' or not (of_other_states or verdict.UNSTABLE in verdicts.values()):
        return False
    failed = _judged_as_failed(case)
    if not failed:
        return result.failed_for == verdict.UNSTABLE
    return all(verdicts.get(name) == verdict.UNSTABLE for name in failed)


def _skip_reason(case: dict, result: Result) -> str:
    reasons = [skipped.reason for skipped in result.skipped or ()]
    if case['fail_reason'] == _CUT_OFF:
        reasons.append('the time of --duration was over before its end')
    elif cause := _BROKEN_OFF.get(case['fail_reason']):
        reasons.append(f'the session was broken off by {cause}: what had not begun is in no run report')
    return '; '.join(dict.fromkeys(reasons)) or 'ReFrame does not record why; see its log'


def _end_row(case: dict, result: Result, wrong: str | None, metrics: list[dict], failed: Collection[str],
             told: tuple[str | None, str, str] | None) -> dict | None:
    '''The row of a test case that its metrics do not give, or :obj:`None`.

    ``failed`` holds the unique names of all test cases that did not pass, for the reason of those
    that depended on them; ``told`` is the verdict, the reason and the cause of a case that failed for an environment error.
    '''
    end = case['result']
    if told:
        return dict(zip(('verdict', 'reason', 'environment_error'), told))
    if end == 'skip':
        return {'verdict': None, 'reason': wrong or _skip_reason(case, result)} if not metrics else None
    if end == 'pass':
        if wrong:
            return {'verdict': verdict.FAIL, 'reason': wrong}
        if metrics:
            return None
        if case.get('fixture'):
            return {'verdict': None, 'reason': None}
        if is_foreign(case):
            return {'verdict': verdict.PASS, 'reason': _SANITY_ALONE}
        return {'verdict': verdict.FAIL, 'reason': _MEASURED_NOTHING}
    if end == 'xfail' and any(metric['verdict'] == verdict.KNOWN_ISSUE for metric in metrics):
        return None
    if end == 'xfail':      # ReFrame's decorator: the test fails as it was told to expect
        return {'verdict': verdict.KNOWN_ISSUE, 'reason': first_line(case['fail_reason'])}
    if _is_explained(case, result, metrics):
        return None
    if end == 'fail_deps':
        names = [name for name, *_ in case.get('dependencies_actual') or () if name in failed]
        reason = f"not run: {', '.join(names) or 'a dependency'} failed"
    elif case['fail_reason'] or end == 'fail':
        reason = f"{case['fail_phase']}: {first_line(case['fail_reason'])}"
    else:
        reason = _OTHER_ENDS.get(end, f'ReFrame ended it with result {end!r}')
    doubted = result.failed_for == verdict.UNSTABLE and not _judged_as_failed(case)     # by a first run that this one says nothing of
    return {'verdict': verdict.UNSTABLE if doubted else verdict.FAIL, 'reason': reason}


def _times(case: dict) -> dict[str, float]:
    '''How long the job ran, and all phases together, seconds.

    ReFrame's own ``time_run`` and ``time_total`` of a fixture last until the end of all tests that use it.
    '''
    submitted, completed = case.get('job_submit_time'), case.get('job_completion_time_unix')
    if not submitted or not completed:
        return {}
    times = {**{phase: case.get(phase) for phase in _PHASES}, 'time_run': completed - submitted}
    return {'time_run': times['time_run'], 'time_total': sum(filter(None, times.values()))}


def _ours(cases: list[dict]) -> set[str]:
    '''The unique names of our test cases, and of those that they need: a fixture that builds leaves nothing of ours.'''
    found = {case['unique_name'] for case in cases if not is_foreign(case)}
    needs = {case['unique_name']: {dependency[0] for dependency in case.get('dependencies_actual') or ()} for case in cases}
    while further := {name for known in found for name in needs.get(known, ())} - found:
        found |= further
    return found


def case_rows(case: dict, run: int, failed: Collection[str] = frozenset(), told: tuple[str | None, str, str] | None = None,
              ours: Collection[str] = frozenset()) -> list[dict]:
    '''The rows of one test case of a run report.

    :arg case: entry of ``testcases``.
    :arg failed: unique names of the test cases that did not pass.
    :arg told: verdict, reason and cause, where it failed for an environment error.
    :arg ours: unique names of what is not of another suite.
    :returns: a list of dictionaries, never empty.
    '''
    payload, wrong = _payload(case)
    result = Result.of_json(payload)
    base = {key: case.get(key) for key in _COPIED}
    display_name, its = parameters.of_display_name(case.get('display_name') or case['name'])
    # The class name is ReFrame's display name up to the first blank.
    base.update(test=case['unique_name'], check=case['name'].split(' ')[0], display_name=display_name, parameters=json.dumps(its), run=run,
                fixture=bool(case.get('fixture')), foreign=None if case['unique_name'] in ours else True, hostname=_nodes(case, result),
                processor=processor.name(result.of_machine),
                timed_seconds=known(result.timed_seconds), level=known(result.level), threads=known(result.threads),
                given=as_given(own) if (own := known(result.given)) else None,
                **_times(case))
    measured = result.metrics or ()
    its_records: dict[int | None, dict] = dict(enumerate(result.records or ()))
    sets = records.sets_in_caches(
        ((metric.metric, metric.subject, its_records.get(known(metric.record))) for metric in measured), known(result.level))
    ends = [{**metric_row(metric, left), 'working_set': size} for metric, left, size in zip(measured, payload.get('metrics', ()), sets)]
    ends = ends or list(_others_metrics(case))
    end = _end_row(case, result, wrong, ends, failed, told)
    rows = [{**base, **row} for row in ends + ([end | {'symptom': known(result.symptom)}] if end else [])]
    detail = {key: value for key, value in payload.items() if key != 'metrics'}
    if case.get('maintainers') and (detail or is_foreign(case)) and isinstance(case['maintainers'], list):
        detail['maintainers'] = [str(name) for name in case['maintainers']]
    rows[0]['detail'] = json.dumps(_without_nan(detail)) if detail else None
    return rows


def broken_off(row: dict) -> str:
    '''By what a session was broken off before all its tests had run once, as one of its rows tells; '' where that does not.'''
    cut_off = (row['result'], row['fail_reason']) == ('skip', _CUT_OFF) and not row['run'] and not row['repetition']
    return '--duration' if cut_off else _BROKEN_OFF.get(row['fail_reason'], '')


def _result(case: dict) -> str:
    '''ReFrame's result; what the end of the session cut off was skipped, or had passed if only its files were still to be removed.'''
    if case['result'] == 'abort' and case['fail_reason'] in (_CUT_OFF, *_BROKEN_OFF):
        return 'pass' if case['fail_phase'] == 'cleanup' else 'skip'
    return case['result']


def _is_repeated(report: dict) -> bool:
    '''Whether its runs are repetitions (``--reruns``, ``--duration``), of which each counts, and not retries of what failed.'''
    runs = [{environment_errors.key(case): case['result'] for case in run['testcases']} for run in report['runs']]
    passed_again = (before[case] in ('pass', 'skip', 'xfail') for before, after in itertools.pairwise(runs) for case in after if case in before)
    return len(runs) > 1 and (bool(REPEATED.search(report['session_info'].get('cmdline') or '')) or any(passed_again))


def _is_retry(run: list[dict], before: list[dict]) -> bool:
    '''Whether a run is of what failed in the one before, and that was not all: ReFrame retries before it repeats.'''
    cases, failed = ({environment_errors.key(case) for case in its} for its in (
        run, [case for case in before if case['result'] not in ('pass', 'skip', 'xfail')]))
    return cases <= failed and len(failed) < len(before)


def session_rows(report: dict) -> list[dict]:
    '''All rows of a run report, in the order of running; repetitions are cases of one run, as those of ``--repeat`` are.'''
    runs = [[{**case, 'result': _result(case)} for case in run['testcases']] for run in report['runs']]
    failed = {case['unique_name'] for run in runs for case in run if case['result'] not in ('pass', 'skip')}
    rows, ours, repeated = [], _ours([case for run in runs for case in run]), _is_repeated(report)
    repetition, retry = -1, 0
    reruns = _RERUNS.search(report['session_info'].get('cmdline') or '')
    retries = len(runs) - 1 - int(reruns[1]) if reruns else 0
    for number, run in enumerate(runs):
        retry = retry + 1 if number and (number <= retries or _is_retry(run, runs[number - 1])) else 0
        repetition += not retry
        told = environment_errors.reported_once(run)
        for case in run:
            its = case_rows(case, report['runs'][number].get('run_index', number), failed, told.get(environment_errors.key(case)), ours)
            for row in its if repeated else ():
                row.update(run=retry, test=f"{row['test']}_{repetition}", repetition=repetition)
            rows += its
    return rows
