'''Why a node is an outlier, as far as it knows: what took its time, and the rules of ``data/diagnosis.yaml``.'''

import json
from dataclasses import replace

import polars as pl

from plumbline.analysis.diagnosis import diagnose
from plumbline.analysis.lines import Line, verdict_lines
from plumbline.analysis.subsystems import Judged, Subsystem
from plumbline.errors import PlumblineError
from plumbline.model import contention, quantity, subsystems, verdict
from plumbline.store import archive
from plumbline.sweep import lacking


def lost_time(rows):
    '''What the tests of a node say of the time that they did not get; each cause once, as its worst test has it.

    :arg rows: of :func:`of_node`.
    '''
    lost = [payload for text in rows['detail'].drop_nulls() if (payload := json.loads(text)).get('contention')]
    given = [(contention.time_given(payload['contention']), number) for number, payload in enumerate(lost)]
    _, worst = min((pair for pair in given if pair[0] is not None), default=(None, None))
    return [] if worst is None else contention.notes(lost[worst]['contention'], lost[worst].get('machine'))


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
    :arg tests: that the node lacks as a whole.
    '''
    # Recorded references, which some conditions ask for, are another question.
    named = {(row['check'], row['environ'], row['name']): f"{quantity.change(row['off'], 0)} against its peers" for row in odd.iter_rows(named=True)}
    lines = []
    for line in verdict_lines(rows):
        reason = named.get((line.display_name, line.environ, line.metric))
        if line.metric:
            lines.append(replace(line, verdict=verdict.FAIL if reason else verdict.NO_REFERENCE, reason=reason or '', reference=None, expected=None))
        elif line.verdict == verdict.FAIL:
            lines.append(line)
    told = {line.display_name for line in lines if not line.metric}
    lines += [_without(rows, test) for test in tests if test not in told]
    scores = odd.filter(pl.col('name') == 'score')['subsystem'].unique(maintain_order=True)
    parts = [Subsystem(name, subsystems.RATES, verdict.FAIL, '', 0, 0, 0, lost=True) for name in scores]
    return diagnose(lines, [], Judged(parts)).findings


def _without(rows, test):
    '''The line of a test that has failed, since its fellows' did not.'''
    system, partition, environ, host = rows.select('system', 'partition', 'environ', 'hostname').row(0)
    reason, symptom = lacking.whole(rows, test)
    return Line(verdict.FAIL, reason, test.partition(' ')[0], test, test, test, system, partition, environ or '', host or '', symptom=symptom)
