'''From records to judged metrics, by hand-computed numbers.'''

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from made_report import measurement
from plumbline.errors import PlumblineError
from plumbline.model import limits, metrics, records, states, verdict
from plumbline.model.result import Process, Result, Skipped
from plumbline.references import Reference
from plumbline.rfm import check, evaluation, judging, limited, narrower


def record(variant, seconds, role='kernel', traffic=40e6, **more):
    return {'kernel': 'triad' if role == 'kernel' else 'streams', 'variant': variant, 'role': role, 'group': 0,
            'size': 1000, 'threads': 1, 'level': 'memory', 'seconds': seconds, 'flops': 2e6,
            'bytes': 32e6 if role == 'kernel' else traffic,
            'traffic': traffic, **more}


def test_of_limit_is_paired_with_the_stream_of_the_highest_median_and_its_cross_check():
    group = [record('store', [0.01] * 10, 'limit', 60e6), record('plain', [0.01] * 10)]
    paired, notes = metrics.against_limit(group, lambda level, threads: [0.8] * 3)
    assert paired['plain'].value == pytest.approx(40 / 75)
    assert paired['plain'].limit == pytest.approx(7500)
    assert len(notes) == 1 and 'likwid-bench' in notes[0]
    group = [record('store', [0.01] * 10, 'limit', 60e6), record('plain', [0.01] * 10)]
    paired, notes = metrics.against_limit(group, lambda level, threads: [0.98])
    assert paired['plain'].value == pytest.approx(40 / 60) and notes == []
    group = [record('store', [0.01] * 10, 'limit', 60e6), record('load', [0.01] * 10, 'limit', 50e6),
             record('plain', [0.01] * 10)]
    paired, notes = metrics.against_limit(group, lambda level, threads: [])
    assert paired['plain'].value == pytest.approx(40 / 60)
    assert paired['plain'].limit == pytest.approx(6000)     # 60e6 bytes in 0.01 s
    assert notes == []
    steady, lucky = record('load', [0.010, 0.010, 0.010], 'limit'), record('copy_nt', [0.005, 0.011, 0.011], 'limit')
    assert limits.best([lucky, steady])['variant'] == 'load'
    assert limits.best([lucky, steady], limited._best_sample)['variant'] == 'copy_nt'   # against likwid-bench's best: a best, too
    assert limited._best_sample(lucky) == pytest.approx(8000)                             # 40e6 bytes in 0.005 s
    store = record('store', [0.01] * 10, traffic=64e6)              # 32e6 bytes, doubled by the model
    copy_nt = record('copy_nt', [0.01] * 10, traffic=32e6)
    assert limits.best([store, copy_nt])['variant'] == 'copy_nt'
    in_cache = [{**case, 'level': 'L2'} for case in (store, copy_nt)]
    assert limits.best(in_cache)['variant'] == 'store'
    assert limits.best([store]) is None


def test_bursts_that_no_median_sees_fail_where_they_are_in_every_fifth_sample():
    '''Two of ten samples of one case took four times as long, none of ten of the other: 18 of 20.'''
    cases = [record('load', [0.01] * 8 + [0.04] * 2), record('plain', [0.02] * 9 + [0.0299])]
    found = metrics.of_steady(cases)
    assert found.value == pytest.approx(0.9) and found.name == 'of_steady'
    steady = [metrics.of_steady([record('load', [0.01] * 80 + [0.04] * slow)]) for slow in (20, 21, 19)]
    pooled = evaluation.pooled([evaluation.Case(one, processes=[Process(number, 1, None)])
                                 for number, one in enumerate(steady)])
    judged = evaluation.judged(replace(pooled, reference=Reference((1.0, -0.15, 0.0)), reference_from='portable.yaml'))
    assert judged.value == pytest.approx(0.8, abs=0.005) and judged.verdict == 'FAIL', judged.reason


@pytest.mark.parametrize('shares, ruling', [((1.0, 1.0, 1.0), 'PASS'), ((1.0, 0.98, 1.0), 'PASS'), ((0.99, 0.95, 1.0), 'PASS'), ((0.8, 0.79, 0.81), 'FAIL')])
def test_an_interval_ends_where_there_is_nothing_beyond(shares, ruling):
    '''Of few processes an interval reaches beyond 1, which no share does: that is no doubt about it.'''
    pooled = evaluation.pooled([evaluation.Case(metrics.Metric('of_steady', None, [share]), processes=[Process(n, 1, None)])
                                 for n, share in enumerate(shares)])
    judged = evaluation.judged(replace(pooled, reference=Reference((1.0, -0.15, 0.0)), reference_from='portable.yaml'))
    assert judged.verdict == ruling, judged.reason
    assert judged.interval[1] <= 1.0
    if judged.value == 1.0:     # to be seen a share must have fallen by half of the interval that it has there, which nothing cuts off
        assert judged.sees == pytest.approx(1 - 0.85 * judged.interval[0]**(1 + 1.645 / 1.96), rel=1e-3)


def test_what_all_threads_reach_together_is_not_judged_where_others_had_the_cpus():
    lost = {'record': 'contention', 'schema': 1, 'threads': 2, 'elapsed': 1.0, 'throttled': 0, 'waited': 0.05, 'stolen': 0.3}

    def said(*lost):
        result = Result(contention=list(lost))
        return check.ProgramCheck.disturbed(SimpleNamespace(plumbline=result, measured_by=SimpleNamespace(plumbline=result)))

    assert said(lost) == 'the threads had the CPUs for 0.82 of the time'
    assert said(lost | {'stolen': 0.1}) is None and said() is None
    hybrid = SimpleNamespace(plumbline=Result(machine={'core_kinds': [[0, 1], [2, 3]]}), cpus=[0, 1, 2])
    hybrid.measured_by = hybrid
    assert check.ProgramCheck.disturbed(hybrid) == 'the cores are of 2 kinds'
    hybrid.cpus = [2, 3]
    assert check.ProgramCheck.disturbed(hybrid) is None


def test_a_thread_that_ran_elsewhere_is_known_by_its_record_whatever_the_exit_code_says():
    fake = SimpleNamespace(_printed=None, program='triad', processes=1, plumbline=Result(), output=lambda: json.dumps(measurement(cpus=[1])),
                           misplaced=lambda record: records.check_placement(record, [0]))
    fake.printed = lambda: check.ProgramCheck.printed(fake)
    assert check.ProgramCheck.wrong_result(fake) is None and fake.plumbline.symptom == 'misplaced'
    said = SimpleNamespace(plumbline=Result(), is_dry_run=lambda: False, _case=tuple, wrong_result=lambda: None,
                           output=lambda stream: 'plumbline: thread 0 ran on CPU 1, asked for CPU 0: check the pinning\n')
    judging.Judging.look_for_wrong_results(said)        # its records may not be readable
    assert said.plumbline.symptom == 'misplaced'


def test_variants_and_levels_that_cannot_be_measured_are_said():
    said = []
    fake = SimpleNamespace(asked=['--size', 8, '--variants', 'plain,nt|,fill|,simd|plain'], skip_metric=lambda *one: said.append(one),
                           measurements=[{'variant': 'plain'}, {'variant': 'fill'}])
    check.ProgramCheck.say_what_does_not_run(fake)
    assert said == [('all of nt', 'it is written with instructions that this processor lacks', ['nt'])]
    with pytest.raises(PlumblineError, match='the kernel does not tell'):
        check.ProgramCheck.every_working_set(SimpleNamespace(cpus=[0], working_sets=lambda cpus: ({}, {'memory': 'the kernel does not tell'})))


def test_what_must_not_be_judged_is_no_pass_although_it_has_a_reference():
    metric = metrics.Metric('of_limit', 'parinit', [0.9] * 10, unjudged='one NUMA domain')
    result = evaluation.judged(evaluation.Case(metric, reference=Reference((1.0, -0.35, 0.1)), reference_from='portable.yaml'))
    assert result.verdict == verdict.NO_REFERENCE
    assert (result.reason, result.unjudged) == ('not judged: one NUMA domain', 'one NUMA domain')


def test_the_widths_of_the_code_of_references_are_those_of_their_variants():
    def case(variant, width):
        metric = metrics.Metric('of_limit', variant, [1.0], record={'variant': variant, 'index': 0, 'rounds': None})
        return evaluation.Case(metric, reference=Reference((1.0, -0.1, 0.1), simd_width=width))

    assert narrower.widths_of_references([case('plain', '512-bit'), case('nt', None), replace(case('simd', '256-bit'), reference=None)]) == {
        'plain': '512-bit'}


def test_what_is_skipped_is_one_metric_all_that_have_a_part_or_all():
    one, part, everything = Skipped('of_peak.L3', 'made'), Skipped('in other words', 'made', ['L2', '4MiB']), Skipped('all', 'made')
    of = {name: [skipped.means(name) for skipped in (one, part, everything)]
          for name in ('of_peak.L3', 'bandwidth.L2', 'bandwidth.PingPong.4MiB.shm', 'bandwidth.L2x')}
    assert of == {'of_peak.L3': [True, False, True], 'bandwidth.L2': [False, True, True],
                  'bandwidth.PingPong.4MiB.shm': [False, True, True], 'bandwidth.L2x': [False, False, True]}


def test_the_cause_is_named_where_the_verdict_is_bad():
    metric = metrics.Metric('cpu_availability', 'quota', [0.5], remark='a cgroup that throttles')
    bad, good = (evaluation.judged(evaluation.Case(metric, reference=Reference(reference))) for reference in ((1.0, -0.02, 0.0), (1.0, -0.6, 0.0)))
    assert (bad.verdict, bad.reason) == ('FAIL', '0.50 is outside 0.98 .. 1.00: a cgroup that throttles')
    assert (good.verdict, good.reason) == ('PASS', '0.50 is within 0.40 .. 1.00')


@pytest.mark.parametrize('value, width, variants, ruling', [
    (9540.0, '512-bit', 1, 'PASS'),     # five deviations, within the bounds of a session with hundreds of metrics
    (9540.0, '128-bit', 1, 'FAIL'), (9540.0, 'scalar', 1, 'FAIL'), (14000.0, '128-bit', 1, 'PASS'), (17000.0, '128-bit', 1, 'PASS'),
    (11500.0, '128-bit', 1, 'FAIL'), (11500.0, '128-bit', 3, 'PASS'),       # 0.45 %: of one, and of three that may seem slower
    (15750.0, '128-bit', 1, 'PASS')])
def test_a_loss_that_narrower_code_explains_is_none_by_chance(value, width, variants, ruling):
    '''One deviation is 10.3 %: with 10.9 degrees of freedom one session in a hundred is 24 % slower by chance; the last scatters by 0.1 %.'''
    metric = metrics.Metric('flops', 'L1', [value], record={'variant': 'simd', 'index': 0, 'rounds': None})
    expected = {'deviation': 0.103 if value < 15000 else 0.001, 'freedom': 10.9}
    reference = Reference((15970.0, -0.43, None), expected=expected, simd_width='512-bit')
    widths = {'simd': width, **dict.fromkeys(range(1, variants), '512-bit')}
    case = evaluation.Case(metric, reference=reference, reference_from='made.yaml')
    found = evaluation.judged(case, widths)
    assert found.verdict == ruling
    if ruling == 'FAIL':
        assert found.reason == f'{value:g}, where 15970 was the reference: the code is {width} now, and was 512-bit then'
        again = replace(case, metric=replace(metric, samples=[value, 15000.0]), processes=[Process(0, 1, None), Process(1, 1, None)])
        assert evaluation.judged(again, widths, 1).verdict == 'PASS'        # not in a second run


def test_narrower_code_explains_no_lost_cpu_time():
    metric = metrics.Metric('cpu_availability', '', [0.9], record={'variant': 'simd', 'index': 0, 'rounds': None})
    reference = Reference((1.0, -0.3, 0.0), expected={'deviation': 0.0145, 'freedom': 7.0}, simd_width='512-bit')
    assert evaluation.judged(evaluation.Case(metric, reference=reference, reference_from='made.yaml'), {'simd': '128-bit'}).verdict == 'PASS'


def test_samples_that_scatter_are_no_obstacle_where_processes_agree():
    samples = [0.5, 1.0, 2.0] * 4
    metric, of = metrics.Metric('of_limit', 'plain', samples), [Process(number, 3, number) for number in range(4)]
    one, several = (evaluation.judged(evaluation.Case(metric, reference=Reference((1.0, -0.35, 0.5)), processes=own)) for own in ([], of))
    assert one.verdict == 'UNSTABLE' and several.verdict == 'PASS' and several.processes == of
    assert several.sees == pytest.approx(1 - 0.65 * several.interval[0] ** (1 + 1.645 / 1.96))
    assert one.sees == pytest.approx(1 - 0.65 / 2 ** (1 + 1.645 / 1.96))      # from 0.5 to 2, whatever is cut off


@pytest.mark.parametrize('processes', [[], [Process(2, 60, 2)]])
def test_one_process_that_is_left_of_several_is_judged_as_one(processes):
    '''Quartiles 0.7 and 1.3 of a median of 1: a spread of 0.7413 x 0.6 = 0.4448, which reaches beyond 0.65.'''
    metric = metrics.Metric('of_limit', 'plain', [0.7, 1.0, 1.3] * 20)
    found = evaluation.judged(evaluation.Case(metric, reference=Reference((1.0, -0.35, 0.5)), processes=processes))
    assert (found.verdict, found.reason) == ('UNSTABLE', 'spread 0.4448 above 0.25, and 1.00 is near its bound')


@pytest.mark.parametrize('value', [0.5, 0.6, 0.7])
def test_an_unstable_metric_says_how_blind_it_is(value):
    '''On whatever side of its bound it is: what is farther below that than its interval is wide would have been a FAIL.'''
    metric = metrics.Metric('of_limit', 'plain', value * np.array([0.6, 0.8, 1.0, 1.25, 1.7] * 4))
    found = evaluation.judged(evaluation.Case(metric, reference=Reference((1.0, -0.4, None))))
    assert found.verdict == 'UNSTABLE' and value * (1 - found.sees) == pytest.approx(0.6 * (0.6 / 1.7) ** (0.5 * (1 + 1.645 / 1.96)))


def test_what_only_a_second_run_may_call_a_fail_says_how_blind_it_is():
    reference = Reference((1.0, -0.2, None), expected={'deviation': 0.1, 'freedom': 9.0})
    found = evaluation.judged(evaluation.Case(metrics.Metric('of_limit', 'plain', [0.79]), reference=reference, reference_from='made.yaml'))
    assert found.verdict == 'UNSTABLE' and 'if a second run' in found.reason and 0.2 < found.sees < 0.5


def test_what_one_process_could_not_measure_and_another_could_is_not_both():
    class Check:
        plumbline = Result()

        def evaluate(self):
            own, = self.measurements
            if own['process'] == 0:
                self.plumbline.skip(Skipped('latency_tolerance.cg', 'within the noise'))
            else:
                yield metrics.Metric('latency_tolerance', 'cg', np.array([25.0]))
            self.plumbline.skip(Skipped('all in L3', 'there is none'))
            yield metrics.Metric('communication', 'cg', np.array([0.2]))
    check = Check()
    check.measurements = [dict(measurement(), process=process) for process in range(3)]
    found = evaluation.evaluate(check, states.find(check.measurements))
    assert {name: len(case.processes) for name, (case,) in found.items()} == {'latency_tolerance.cg': 2, 'communication.cg': 3}
    assert [one.metric for one in check.plumbline.skipped] == ['all in L3']


# --- a curve is judged as a whole -------------------------------------------------------------------------------------

def _curve(*rates):
    return {2**power: np.array([rate, 2 * rate, 0.5 * rate]) for power, rate in enumerate(rates)}


def test_the_deepest_dip_is_held_against_the_slower_flank_where_there_is_one():
    '''8 between 20 and 16 is half of 16; 15 between 16 and 15.5 is no more than 0.97 of it.'''
    size, samples = metrics.deepest_dip(_curve(10, 20, 8, 16, 15, 15.5, 4))
    assert size == 4 and samples.tolist() == [0.5, 1, 0.25]
    assert np.median(metrics.deepest_dip(_curve(1, 5, 20, 12, 12, 6, 3))[1]) == 1        # 12 beside 12
    assert np.median(metrics.deepest_dip(_curve(1, 2, 4))[1]) == 2
    assert np.median(metrics.deepest_dip(_curve(9, 8, 2))[1]) == 4
    assert metrics.deepest_dip(_curve(1, 2)) is None
