'''From a reference that predicts to the session's verdict: file, metric, archive, terminal, page, exit code.'''

import io
import json
import math
import re
import types
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

import sample_session as sample
from plumbline import references, report
from plumbline.analysis import lines, subsystems
from plumbline.model import metrics, prediction, uncertainty, verdict
from plumbline.model.result import Process
from plumbline.model.subsystems import RATES, SHARES, Member, judged as of_scores, scores
from plumbline.references import Reference, bounds
from plumbline.report import page
from plumbline.rfm import evaluation

#: What references predict that were 1000 in five sessions.
EXPECTED = {'deviation': 0.02, 'freedom': 9.5, 'measured': dict.fromkeys('abcde', 1000.0)}

FILE = '''
$accepted:
  '2026-01-01T00:00:00Z': {sessions: [a, b, c, d, e, f], false_alarms: 0.005, metrics: 2, machine: {processors: []}}
Triad:
  $index: [threads]
  one:
    bandwidth.plain: [1000.0, -0.1, null, MB/s]
    bandwidth.nt: [1500.0, -0.1, null, MB/s]
    bandwidth.old: [1600.0, -0.1, null, MB/s]
$provenance:
  Triad:
    one:
      bandwidth.plain: {accepted: '2026-01-01T00:00:00Z', n: 90, compiler: gcc 12, deviation: 0.02, freedom: 9.5, sees: 0.13,
                        measured: [990.0, 1010.0, null, 1000.0, 1005.0, 995.0]}
      bandwidth.nt: {accepted: '2026-01-01T00:00:00Z', n: 90, compiler: gcc 12, deviation: 0.03, freedom: 9.5, sees: 0.15,
                     measured: [1500.0, 1500.0, 1500.0, 1500.0, 1500.0, 1500.0], state: {core_to_core.0: 3.0e-8},
                     states: [{state: {core_to_core.0: 2.0e-7}, reference: [2500.0, -0.2, null, MB/s], n: 30, deviation: 0.05,
                               freedom: 8.0, sees: 0.3, measured: [2500.0, 2500.0, 2500.0, 2500.0, 2500.0, null]}]}
'''


@pytest.fixture
def known(tmp_path):
    (tmp_path / 'made.yaml').write_text(FILE)
    from reframe.core.pipeline import RegressionTestPlugin
    test = types.new_class('Triad', (RegressionTestPlugin,))()
    test.__dict__.update(current_system=SimpleNamespace(name='made'), threads='one', prefix='/nowhere', display_name='Triad')
    return references.applying(references.write_merged(tmp_path, 'made', 'Triad', tmp_path), test)


def test_what_the_file_predicts_reaches_the_metric(known):
    plain, = known['bandwidth.plain'].references
    assert plain.leaf == (1000.0, -0.1, None) and plain.state is None
    assert plain.expected == {'deviation': 0.02, 'freedom': 9.5,
                              'measured': {'a': 990.0, 'b': 1010.0, 'd': 1000.0, 'e': 1005.0, 'f': 995.0}}
    usual, other = known['bandwidth.nt'].references
    assert usual.state == {'core_to_core.0': 3e-8} and other.leaf == (2500.0, -0.2, None)
    assert other.expected['deviation'] == 0.05 and list(other.expected['measured']) == ['a', 'b', 'c', 'd', 'e']
    assert known['bandwidth.old'].references == [Reference((1600.0, -0.1, None))]


def _judged(value, width=0.01, expected=EXPECTED, metric='bandwidth', lower=-0.1, upper=None, again=None):
    processes = [Process(number, 3, None) for number in range(3)]
    samples = np.repeat(value * np.array([1 - width, 1.0, 1 + width]), 3)
    case = evaluation.Case(metrics.Metric(metric, 'plain', samples), processes=processes, reference_from='made.yaml',
                           reference=Reference((1000.0, lower, upper), expected=expected))
    return evaluation.judged(case, again=again)


def test_the_value_decides_where_a_reference_predicts():
    # An interval that straddles the bound of 900 says nothing more: the bound knows what processes scatter by.
    assert _judged(905.0).verdict == 'PASS'
    assert _judged(905.0, expected=None).verdict == 'UNSTABLE'
    found = _judged(850.0)
    assert found.verdict == 'FAIL' and found.reason == '850 is below 900 MB/s, 15 % less than the reference'
    found = _judged(850.0, width=0.2)
    assert found.verdict == 'UNSTABLE' and 'holds the reference' in found.reason


def test_where_processes_are_known_to_agree_a_small_loss_is_one():
    '''Nobody knows of three processes whether they differ by 1 or 5 % but those who have seen them differ by 1 %.'''
    known, lower = EXPECTED | {'deviation': 0.005}, -0.03
    unknown = _judged(955.0, lower=lower, expected=known)
    assert unknown.verdict == 'UNSTABLE' and unknown.reason == '955 is below 970 MB/s, but its interval 900.9 .. 1012 holds the reference'
    assert _judged(955.0, lower=lower, expected=known | {'spread': 0.01}).verdict == 'FAIL'
    assert _judged(955.0, lower=lower, width=0.1, expected=known | {'spread': 0.01}).verdict == 'UNSTABLE'      # these do not agree
    assert _judged(1000.0, lower=lower, expected=known | {'spread': 0.01}).sees < 0.05 < _judged(1000.0, lower=lower, expected=known).sees


@pytest.mark.parametrize('first, second, ruling, told', [
    (880.0, None, 'UNSTABLE', '880 is below 900 MB/s, 12 % less than the reference: a FAIL if a second run says so, too'),
    (850.0, None, 'FAIL', '850 is below 900 MB/s, 15 % less than the reference'),       # alone as improbable as one in 200 sessions
    (880.0, 890.0, 'FAIL', '885 is below 900 MB/s, 12 % less than the reference, in both runs'),
    (880.0, 915.0, 'PASS', '897.3 is below 900 MB/s, 10 % less than the reference; but within bounds in one of two runs: 880, 915'),
    (880.0, 960.0, 'PASS', '919.1 is at least 900 MB/s; but out of bounds in one of two runs: 880, 960'),
    (940.0, 960.0, 'PASS', '949.9 is at least 900 MB/s'),
    (850.0, 940.0, 'UNSTABLE', '893.9 is below 900 MB/s, 11 % less than the reference; but within bounds in one of two runs: 850, 940'),
    (990.0, 850.0, 'UNSTABLE', '917.3 is at least 900 MB/s; but out of bounds in one of two runs: 990, 850'),     # what one proves the other cannot deny
    (504.1, 1008.0, 'UNSTABLE', '712.8 is below 900 MB/s, but its interval 465.5 .. 1092 holds the reference; but within bounds in one of two runs: 504.1, 1008')])
def test_what_is_out_of_bounds_fails_in_both_runs_or_alone_by_far(first, second, ruling, told):
    values = [first] * 3 + [second] * 3 * (second is not None)
    case = evaluation.Case(metrics.Metric('bandwidth', 'plain', np.repeat(values, 3)), processes=[Process(number, 3, None) for number in range(len(values))],
                           reference_from='made.yaml', reference=Reference((1000.0, -0.1, None), expected=EXPECTED))
    found = evaluation.judged(case, again=3 if second else None)
    assert (found.verdict, found.reason) == (ruling, told)
    assert not found.sees or found.sees >= 1 - min(values) / 1000        # no smaller loss is seen than one that was no FAIL


@pytest.mark.parametrize('values, ruling, told', [
    ((850.0, 940.0, 990.0), 'UNSTABLE', 'out of bounds in 1 of 3 runs: 850, 940, 990'),     # what one proves no further one denies
    ((850.0, 940.0, 860.0), 'FAIL', 'in 2 of 3 runs'), ((880.0, 960.0, 970.0), 'PASS', 'out of bounds in 1 of 3 runs: 880, 960, 970'),
    ((880.0, 990.0, 880.0, 990.0), 'UNSTABLE', 'in 2 of 4 runs: 880, 990, 880, 990'), ((890.0, 990.0, 970.0), 'PASS', '890, 990, 970')])
def test_all_runs_of_a_session_are_judged_together(values, ruling, told):
    found = runs_of(values, Reference((1000.0, -0.1, None), expected=EXPECTED))
    assert found.verdict == ruling and told in found.reason


def runs_of(values, reference, metric='bandwidth'):
    '''Of runs of three processes each.'''
    case = evaluation.Case(metrics.Metric(metric, 'plain', np.repeat(values, 9)), processes=[Process(number, 3, None) for number in range(3 * len(values))],
                           reference_from='made.yaml', reference=reference)
    return evaluation.judged(case, again=list(range(3, 3 * len(values), 3)))


def test_runs_that_are_out_of_bounds_to_either_side_are_no_pass():
    found = runs_of((0.89, 1.11), Reference((1.0, -0.1, 0.1), expected=EXPECTED), 'split_over_fused')
    assert found.verdict == 'UNSTABLE' and 'out of bounds in both runs: 0.89, 1.1' in found.reason
    found = runs_of((800.0, 1000.0, 1000.0, 1000.0, 1000.0), Reference((1000.0, -0.1, None)))
    assert found.verdict == 'UNSTABLE' and found.reason.endswith('but 800 is below 900 MB/s in 1 of 5 runs')


@pytest.mark.parametrize('metric, value, width, leaf, ruling, reference, told', [
    ('of_topology', 275 / 276, 0, (1.0, -0.005, 0.0), 'FAIL', [1.0, 0.0, 0.0], '0.9964 is below 1.00, by portable.yaml'),
    ('of_topology', 1.0, 0, (1.0, -0.005, 0.0), 'PASS', [1.0, 0.0, 0.0], '1.00 is within 0.995 .. 1.00'),
    ('of_topology', 0.96, 0, (0.96, -0.05, 0.0), 'PASS', [0.96, -0.05, 0.0], '0.96 is within 0.912 .. 0.96'),       # a site has accepted that
    ('work', 1.001, 0, (1.0, -0.005, 0.005), 'FAIL', [1.0, -1e-9, 1e-9], '1.001 is outside 1.00 .. 1.00, by portable.yaml'),
    ('of_median', 0.89, 0.001, (0.93, -0.06, None), 'PASS', [0.93, -0.06, None], '0.89 is at least 0.8742'),      # that it may be no more is no floor
    ('speedup', 0.98, 0.001, (1.03, -0.06, None), 'PASS', [1.03, -0.06, None], '0.98 is at least 0.9682'),
    ('of_parts', 0.55, 0.01, (0.7, -0.25, None), 'PASS', [0.7, -0.25, None], '0.55 is at least 0.525')])
def test_no_prediction_loosens_what_is_exact_on_any_machine(metric, value, width, leaf, ruling, reference, told):
    thresholds = {'of_parts': (-0.4, None), 'of_median': (-0.1, 0), 'work': (-1e-9, 1e-9)}.get(metric, (0, None))
    any_machine = references.Known('portable.yaml', [Reference((1.0, *thresholds))])

    def judged(expected=EXPECTED, **of_metric):
        samples = np.repeat(value * np.array([1 - width, 1.0, 1 + width]), 3)
        case = evaluation.Case(metrics.Metric(metric, 'x', samples, **of_metric), processes=[Process(number, 3, None) for number in range(3)])
        chosen = evaluation.choose([case], references.Known('made.yaml', [Reference(leaf, expected=expected)], any_machine))
        found = evaluation.judged(chosen)
        assert list(chosen.leaf) == found.reference, 'ReFrame is told of the same'
        return found
    found = judged()
    assert (found.verdict, found.reason, found.reference_from) == (ruling, told, 'made.yaml') and found.reference == pytest.approx(reference)
    # What is written by hand is the site's decision; and where somebody else worked there it need not be the core's doing.
    for found in (judged(expected=None), judged(doubt='made up')):
        assert found.verdict != 'FAIL' and found.reference == list(leaf)


def test_a_second_run_in_another_state_confirms_nothing():
    found = _judged(880.0, again=3)
    assert found.verdict == 'UNSTABLE' and found.reason.endswith('a FAIL if a second run in this state of the machine says so, too')
    assert _judged(850.0, again=3).verdict == 'FAIL'
    found = _judged(1110.0, width=0.001, metric='latency', lower=None, upper=0.1)
    assert found.verdict == 'UNSTABLE' and found.reason.endswith('a FAIL if a second run says so, too')


def test_the_bounds_of_one_run():
    # 900 is 5.27 deviations of 2 % below, which 9.5 degrees of freedom give with 2.2e-4; a tenth of that is 7.26 deviations.
    value, lower, upper = bounds.of_one_run((1000.0, -0.1, None), 'bandwidth', {'deviation': 0.02, 'freedom': 9.5})
    far = stats.t.isf(stats.t.sf(-np.log(0.9) / 0.02, 9.5) / 10, 9.5)
    assert (value, upper) == (1000.0, None) and lower == pytest.approx(np.exp(-0.02 * far) - 1) and -0.14 < lower < -0.13
    assert bounds.of_one_run([1.5, None, 0.1, 'us'], 'latency', {'deviation': 0.02, 'freedom': 9.5})[2] > 0.13
    assert bounds.of_one_run((1.0, -0.02, 0.3), 'of_limit', {'deviation': 1e-4, 'freedom': 1e6}) == [1.0, -0.02, 0.3]      # improbable beyond all numbers
    # From 1000 to the bound of 900, and 2.236 times 2 % further, for two runs must see it: Student's t of 9.5, each with 97.47 %.
    summary = uncertainty.Summary(1000.0, 9, 0.0, (999.0, 1001.0))
    expected, further = {'deviation': 0.02, 'freedom': 9.5}, stats.t.ppf(math.sqrt(0.95), 9.5) * 0.02
    assert further == pytest.approx(0.0447, abs=5e-5)
    assert verdict.seen_of_expected(summary, (1000.0, -0.1, None), expected) == pytest.approx(1 - 0.9 * np.exp(-further), rel=1e-3)
    assert verdict.seen_of_expected(summary, (1000.0, None, 0.1), expected, rises=True) == pytest.approx(1.1 * np.exp(further) - 1, rel=1e-3)
    assert verdict.seen_of_expected(summary, (1000.0, None, 0.1), expected) is None
    # Processes that disagree: the interval, 0.475 to either side, must not hold the reference any more.
    wide = uncertainty.Summary(1000.0, 9, 0.5, (1000 * math.exp(-0.475), 1000 * math.exp(0.475)))
    further = stats.t.ppf(math.sqrt(0.95), 9.5) * 0.475 / 1.96
    assert verdict.seen_of_expected(wide, (1000.0, -0.1, None), expected) == pytest.approx(1 - np.exp(-0.475 - further), rel=1e-3)


@pytest.mark.parametrize('metric, value, ruling', [('of_limit', 1.05, 'PASS'), ('of_limit', 2.4, 'FAIL'), ('of_parts', 1.3, 'PASS')])
def test_what_no_hardware_gives_is_no_pass(metric, value, ruling):
    processes = [Process(number, 3, None) for number in range(3)]
    case = evaluation.Case(metrics.Metric(metric, 'plain', np.repeat(value * np.array([0.99, 1.0, 1.01]), 3)), processes=processes,
                           reference_from='made.yaml', reference=Reference((1.0, -0.1, None)))
    found = evaluation.judged(case)
    assert found.verdict == ruling and ('the most that any hardware gives' in found.reason) == (ruling == 'FAIL')
    case.reference = None
    assert evaluation.judged(case).verdict == 'NO REFERENCE'


@pytest.mark.parametrize('summary', [uncertainty.Summary(float('nan'), 3, 0.1, (1.0, 2.0)), uncertainty.Summary(1.0, 0, 0.1, (1.0, 1.0))])
def test_nothing_measured_is_no_pass(summary):
    assert verdict.judge_expected(summary, (1.0, -0.9, None))[0] == 'FAIL'


# --- the session ------------------------------------------------------------------------------------

VARIANTS = list(sample.HISTORY)


def _session(loss, took=(), **changed):
    '''Eight checks of memory, with a loss, and the same metrics of L1 and L2, without.'''
    parts = [('triad_memory', 'memory', loss), ('triad_one', 'L1', 0.0), ('triad_two', 'L2', 0.0), ('latency', None, 0.0)]
    return sample.frame(*(sample.case(check, [sample.predicted(variant, lost, **changed) for variant in VARIANTS], threads='all', level=level,
                                      detail={'metrics': [], 'contention': list(took)}) for check, level, lost in parts))


def _terminal(rows, width=120):
    console = Console(width=width, file=io.StringIO())
    report.render(report.Session(rows), console)
    return console.file.getvalue()


def test_twelve_metrics_that_agree_fail_though_each_passes():
    rows = _session(0.08)
    found = subsystems.judge(lines.verdict_lines(rows))
    ruling = {one.name: one.verdict for one in found.subsystems}
    assert ruling == {'memory, all threads': 'FAIL', 'L1': 'PASS', 'L2': 'PASS', 'latency': 'PASS'}
    assert found.subsystems[0].change == pytest.approx(-0.08) and len(found.changed) >= 10
    assert report.Session(rows).exit_status() == 1
    told = _terminal(rows)
    assert told.splitlines()[-2] == 'speed        FAIL          48 PASS, 0 FAIL, 0 UNSTABLE, 0 NO REFERENCE; subsystems: 1 FAIL, 3 PASS'
    assert any('memory, all threads: rates and times' in line and line.endswith('FAIL') for line in told.splitlines()[:12])
    assert 'memory, all threads: rates and times' in told and '8.0 % worse than in 5 sessions' in told
    # The metrics that are blamed are all of one test; what PASSes is not to be run again.
    assert told[told.index('To run these again'):].splitlines()[1] == "  reframe -C config/sample.py -c checks -R -n 'triad_memory %threads=all %level=memory' -r"
    assert told.count('  reframe ') == 1
    assert 'Probably worse than before' in told and 'and 4 more' in told
    assert '8.0 % worse than in 5 sessions' in page.page(report.Session(rows)) and 'and 4 more' in page.page(report.Session(rows))


@pytest.mark.parametrize('loss, key, share, status', [
    (0.08, 'stolen', 0.03, 3), (0.08, 'stolen', 0.01, 1), (0.08, 'waited', 0.3, 1), (0.08, 'throttled', 0.3, 1),
    (0.3, 'stolen', 0.03, 1), (0.6, 'stolen', 0.4, 3)])
def test_what_the_hypervisor_takes_is_not_this_machines(loss, key, share, status):
    '''Other processes and quotas are somebody's of this machine: those can be sent away.  Two threads that lose 3 % each explain 6 %.'''
    lost = {'record': 'contention', 'schema': 1, 'threads': 2, 'elapsed': 5.0, 'throttled': 0.0, 'waited': 0.0, 'stolen': 0.0}
    lost |= {'waited': 10 * share} if key == 'throttled' else {}
    rows = _session(loss, took=[lost | {key: 10 * share}])
    assert report.Session(rows).exit_status() == status
    told = ' '.join(_terminal(rows).split())
    assert ('not judged: the hypervisor took 3 % of the time of its tests, which explains a loss of 6 %, so it may not be this machine that is '
            '8.0 % worse' in told) == (status == 3 and loss == 0.08)
    # Of a tenth of the time nobody knows what it would have been without: the measurement is not judged.
    assert report.Session(_session(0.0, took=[lost | {key: 10 * share}])).exit_status() == (3 if share > 0.1 else 0)


@pytest.mark.parametrize('error, ruling', [(0.14, 'FAIL'), (0.5, 'UNSTABLE')])
def test_noise_of_a_session_explains_no_loss_of_many_times_as_much(error, ruling):
    '''Though sessions are far off now and then (Student's t of three degrees of freedom): a loss of 72 % is nine times what its processes scatter by.'''
    def member(value, error=0.01):
        return Member('x', value, prediction.Prediction(1.0, 0.05, 3.0), 1, dict.fromkeys('abcde', 1.0), error)
    found = of_scores({'L1': [member(0.28, error)], **{str(number): [member(1.0)] for number in range(14)}})
    assert found['L1'].verdict == ruling and found['0'].verdict == 'PASS' and (found['L1'].sees < 0.72) == (ruling == 'FAIL')


def test_a_loss_that_nobody_would_act_on_is_no_fail():
    '''A certain one: of counts, say, that never scatter.'''
    rows = _session(0.015, deviation=0.0002, spread=0.0002)
    found = subsystems.judge(lines.verdict_lines(rows)).subsystems
    assert found[0].change == pytest.approx(-0.015) and 0.0196 < found[0].sees < 0.021
    assert report.Session(rows).exit_status() == 0 and report.Session(_session(0.03, deviation=0.0002, spread=0.0002)).exit_status() == 1
    rows = _session(0.0)
    assert report.Session(rows).exit_status() == 0
    told = _terminal(rows)
    assert re.search('speed +PASS .*\n    judged in 4 of 4 subsystems', told) and 'Probably worse' not in told
    assert report.Session(_session(-0.2)).exit_status() == 0
    rows = sample.frame(sample.case('latency', [sample.predicted(variant, -0.1, name='latency', unit='us') for variant in VARIANTS]))
    assert report.Session(rows).exit_status() == 1


@pytest.mark.parametrize('sessions', ['fghij', 'bcde'])
def test_a_metric_of_other_sessions_hides_no_loss_of_its_subsystem(sessions):
    '''One whose reference was accepted another day, and one that lacks a session.'''
    other = sample.predicted('v0', 0.08) | {'name': 'bandwidth.other', 'subject': 'other'}
    expected = json.loads(other['expected'])
    other['expected'] = json.dumps(expected | {'measured': dict(zip(sessions, expected['measured'].values()))})
    metrics = [sample.predicted(variant, 0.08) for variant in VARIANTS]
    alone, beside = (subsystems.judge(lines.verdict_lines(sample.frame(sample.case('triad_memory', its, threads='all')))).subsystems[0]
                     for its in (metrics, [*metrics, other]))
    assert beside.verdict == alone.verdict == 'FAIL' and beside.sees == pytest.approx(alone.sees, abs=0.01)


def test_of_metrics_with_hardly_any_session_in_common_it_is_not_believed_that_they_scatter_apart():
    known = [Member(name, 0.9, prediction.Prediction(1.0, 0.02, 6.0), 1, dict.fromkeys(its, 1.0)) for name, its in (('a', 'abcd'), ('b', 'efgh'))]
    score = scores({'': known})['']
    assert (score.expected.deviation, score.expected.freedom) == pytest.approx((0.02, 6.0))
    rates = [sample.predicted(variant, 0.08) for variant in VARIANTS]
    shares = [sample.predicted(variant, name='of_limit', unit='1') for variant in VARIANTS]
    found = subsystems.judge(lines.verdict_lines(sample.frame(sample.case('triad_memory', rates + shares, threads='all'))))
    assert {one.kind: one.verdict for one in found.subsystems} == {RATES: 'FAIL', SHARES: 'PASS'}
    rows = sample.frame(sample.case('triad_memory', [sample.metric('bandwidth.x', 1.0, reference=None), sample.metric('of_limit.x', 1.0)]))
    assert 'Subsystems' not in _terminal(rows) and report.Session(rows).exit_status() == 0


def test_a_subsystem_that_could_not_be_judged_is_not_a_pass():
    rows = sample.frame(sample.case('latency', [sample.predicted('v0', ruling='UNSTABLE'), sample.metric('of_limit.x', 1.0)]))
    assert report.Session(rows).exit_status() == 3
    assert 'none of its metrics could be judged' in _terminal(rows)


def test_a_subsystem_whose_references_are_of_other_states_is_not_a_pass():
    '''Where other metrics of it, or its rates, were met in a state that has references, these judge it.'''
    elsewhere = sample.metric('latency.v0', 1e-6, 'us', reference=None) | {'recorded_states': '[{"core_to_core.0": 3.6e-8}]'}
    rows = sample.frame(sample.case('latency', [elsewhere]), sample.case('triad_memory', [sample.predicted('v1')]))
    assert report.Session(rows).exit_status() == 3
    told = _terminal(rows)
    assert 'not judged: its references are of another state of the machine (core-to-core 36 ns)' in told and 'None of the' not in told
    share = elsewhere | {'metric': 'of_limit', 'name': 'of_limit.v0', 'unit': '1'}
    judged_share = sample.predicted('v2', name='of_limit', unit='1')
    # As many in another state as are judged: a loss may be there; of ratios it would show in the rates, too.
    for others, status in (([elsewhere, share], 3), ([share], 0), ([share, judged_share], 0), ([elsewhere, share, judged_share], 3)):
        rows = sample.frame(sample.case('latency', [*others, sample.predicted('v1', name='latency', unit='us')]))
        assert report.Session(rows).exit_status() == status
        # "+2 %" would read as the reason that it is not judged.
        assert not status or any(one.text.startswith('latency not judged') for one in report.Session(rows).answers)
    two = [sample.predicted(name, name='latency', unit='us') for name in ('v1', 'v2')]
    assert report.Session(sample.frame(sample.case('latency', [elsewhere, *two]))).exit_status() == 0


@pytest.mark.parametrize('recorded, status', [({}, 0), ({'recorded': 2}, 3)])
def test_a_test_that_was_skipped_though_it_has_references_is_not_a_pass(recorded, status):
    gone = sample.case('fileio_modes', result='skip', detail={'skipped': [{'metric': 'all', 'reason': 'no room', **recorded}]})
    assert report.Session(sample.frame(sample.case('triad_memory', [sample.predicted('v0')]), gone)).exit_status() == status


OF_L3 = sample.predicted('v2', name='bandwidth') | {'subject': 'L3', 'name': 'bandwidth.L3.v2'}


@pytest.mark.parametrize('others, status', [([], 3), ([OF_L3], 0), ([OF_L3 | {'verdict': 'KNOWN ISSUE'}], 3)])
def test_a_subsystem_of_which_nothing_was_measured_though_it_has_references_is_not_a_pass(others, status):
    detail = {'skipped': [{'metric': 'all in L3', 'reason': 'L3 cannot be isolated', 'parts': ['L3'], 'referenced': ['bandwidth.L3', 'gone.L3'],
                           'subsystems': ['L3', None]}]}
    rows = sample.frame(sample.case('limits', [sample.predicted('v0')], threads='all', detail=detail), sample.case('triad_curve', others, threads='all'))
    said = report.Session(rows)
    assert said.exit_status() == status and (['L3'] if status else []) == [one.part for one in said.judged.subsystems if one.verdict == 'UNSTABLE']
    assert ('not judged: L3 cannot be isolated; references are recorded of 2 of its metrics' in ' '.join(_terminal(rows).split())) == bool(status)


def _noisy(lost, slow, spread):
    '''Twelve metrics, the last of which are slow by so much and UNSTABLE; the spread is that of all.'''
    metrics = [sample.predicted(variant, lost if number < slow else 0.0, 'UNSTABLE' if number < slow else 'PASS', spread=spread)
               for number, variant in enumerate(VARIANTS)]
    metrics = [one | ({'sees': 0.1} if one['verdict'] == 'PASS' else {}) for one in metrics]
    return sample.frame(sample.case('triad_memory', metrics, threads='all', level='memory'))


@pytest.mark.parametrize('slow', [1, 11, 12])
@pytest.mark.parametrize('spread, status, told', [(0.05, 1, 'worse than in 5 sessions'), (0.5, 3, 'scatter by 28 %')])
def test_what_is_slow_and_noisy_is_not_left_out_of_its_subsystem(slow, spread, status, told):
    found, = subsystems.judge(lines.verdict_lines(rows := _noisy(0.3, slow, spread))).subsystems
    assert found.change == pytest.approx(0.7**(slow / len(VARIANTS)) - 1, abs=0.03)
    if slow > 1:
        assert report.Session(rows).exit_status() == status and told in found.reason
    else:
        assert (found.verdict, report.Session(rows).exit_status()) == ('PASS', 0)
