'''Why a node is an outlier, as far as it knows: what took its time, and the rules of ``data/diagnosis.yaml``.'''

import json
from dataclasses import replace
from itertools import groupby

import polars as pl

from plumbline.analysis.answers import some
from plumbline.analysis.diagnosis import diagnose
from plumbline.analysis.lines import Line, not_measured, verdict_lines
from plumbline.analysis.subsystems import Judged, Subsystem
from plumbline.errors import PlumblineError
from plumbline.model import contention, result, subsystems, verdict
from plumbline.store import archive
from plumbline.sweep import ranking
from plumbline.sweep.node import REPORT

#: A metric is missed where this share of the nodes at most lack it, or one.  Where more do they may have other parts, or noise decides who has it.
FEW = 0.1

_UNKNOWN = 'no reason is known'


def lost_time(sweep, node):
    '''What the tests of a node say of the time that they did not get; each cause once, as its worst test has it.

    :arg sweep, node: :class:`state.Sweep` and :class:`state.Node`.
    '''
    try:
        report = json.loads((sweep.of(node) / REPORT).read_text())
    except (OSError, ValueError, RecursionError):
        return ['its run report is gone: what took its time is not known']
    payloads = [case.get('plumbline') for run in report['runs'] for case in run['testcases']]
    lost = [payload for payload in payloads if isinstance(payload, dict) and payload.get('contention')]
    given = [(contention.time_given(payload['contention']), number) for number, payload in enumerate(lost)]
    _, worst = min((pair for pair in given if pair[0] is not None), default=(None, None))
    return [] if worst is None else contention.notes(lost[worst]['contention'], lost[worst].get('machine'))


def incomplete(ranked, frame):
    '''Node -> its tests, as ReFrame displays them, of which it has no metric at all and at least half of its peers have some.'''
    test = [*ranking.PEERS, 'node', 'check']
    known = frame.lazy().filter(pl.col('value').is_finite()).select(test).unique().collect()
    missing = ranked.lacking.select(test).unique(maintain_order=True).join(known, on=test, how='anti', nulls_equal=True, maintain_order='left')
    return {node: rows['check'].to_list() for (node,), rows in missing.group_by('node', maintain_order=True)}


def partly(ranked, frame, again):
    '''Node -> its tests, as ReFrame displays them -> those of their metrics that it has not, nor in a second measurement, and all but :data:`FEW` of
    its peers have: of those that say how fast a node is, and of tests of which it has some metric.

    :arg again: the second measurement, as ``frame``; empty where there was none.
    '''
    measured = pl.col('value').is_finite()
    test, metric = [*ranking.PEERS, 'node', 'check'], [*(name for name in ranking.METRIC if name != 'kind'), 'node']
    few = pl.col('peers') - pl.col('having') <= (FEW * pl.col('peers')).clip(1)
    missing = (ranked.lacking.lazy().filter(few & pl.col('metric').is_in(list(ranking.BETTER)))
               .join(frame.lazy().filter(measured).select(test), on=test, how='semi', nulls_equal=True, maintain_order='left')
               .join(again.lazy().filter(measured).select(metric), on=metric, how='anti', nulls_equal=True, maintain_order='left')
               .select('node', 'check', 'name').unique(maintain_order=True))
    found: dict[str, dict[str, list[str]]] = {}
    for node, check, name in missing.collect().iter_rows():
        found.setdefault(node, {}).setdefault(check, []).append(name)
    return found


def of_node(node):
    '''The archive's rows of a node that was measured (:class:`state.Node`); None where they are gone.'''
    try:
        return archive.load_columns(node.archived, list(archive.SCHEMA))
    except (OSError, PlumblineError):
        return None


def diagnosed(rows, odd, tests):
    '''The causes (:class:`plumbline.analysis.diagnosis.Finding`) that a node shows.

    What is out of bounds for them is by what it is an outlier, whatever its references say; and the tests that failed or that it lacks.

    :arg rows: of :func:`of_node`.
    :arg odd: of the node, as in :class:`outliers.Findings`.
    :arg tests: of the node, as of :func:`incomplete`.
    '''
    # Recorded references, which some conditions ask for, are another question.
    named = {(row['check'], row['environ'], row['name']): f"{100 * row['off']:+.0f} % against its peers" for row in odd.iter_rows(named=True)}
    lines = []
    for line in verdict_lines(rows):
        reason = named.get((line.display_name, line.environ, line.metric))
        if line.metric:
            lines.append(replace(line, verdict=verdict.FAIL if reason else verdict.NO_REFERENCE, reason=reason or '', reference=None, expected=None))
        elif line.verdict == verdict.FAIL:
            lines.append(line)
    told = {line.display_name for line in lines if not line.metric}
    lines += [_without(rows, test) for test in tests if test not in told]
    parts = [Subsystem(name, subsystems.RATES, verdict.FAIL, '', 0, 0, 0) for name in odd.filter(pl.col('name') == 'score')['check'].unique()]
    return diagnose(lines, [], Judged(parts)).findings


def why_missing(rows, test):
    '''Why a node has no metric of a test, as the test said.'''
    return _missing(rows, test)[0]


def why_partly(rows, test, names):
    '''Which metrics of a test a node has not, and why, as the test said; empty where noise alone decided that.'''
    its = archive.final_rows(rows).filter(pl.col('display_name') == test)['detail'].drop_nulls()
    skipped = [result.Skipped.of_json(one) for text in its for one in json.loads(text).get('skipped') or ()]
    told = {name: next((one for one in skipped if one.means(name)), result.Skipped(None, _UNKNOWN)) for name in names}
    reasons = {name: one.reason for name, one in told.items() if one.symptom != 'noise'}
    return '; '.join(f'{some(list(its))}: {reason}' for reason, its in groupby(sorted(reasons, key=lambda name: reasons[name]), reasons.get))


def _missing(rows, test):
    '''(reason, symptom) of a test without metrics.'''
    failed = (line for line in verdict_lines(rows) if line.verdict == verdict.FAIL and not line.metric)
    return next(((one.reason, one.symptom) for one in [*not_measured(rows), *failed] if one.check == _check(test)), (_UNKNOWN, ''))


def _check(test):
    return test.partition(' ')[0]


def _without(rows, test):
    '''The line of a test that has failed, since its fellows' did not.'''
    system, partition, environ, host = rows.select('system', 'partition', 'environ', 'hostname').row(0)
    reason, symptom = _missing(rows, test)
    return Line(verdict.FAIL, reason, _check(test), test, test, test, system, partition, environ or '', host or '', symptom=symptom)
