'''What a core does in a cycle by the baseline of its microarchitecture: its bounds, what is not judged, a file that is wrong.'''

import itertools
import runpy
from types import SimpleNamespace

import numpy as np
import pytest
from reframe.utility import ScopedDict

import rfm
from plumbline.errors import PlumblineError
from plumbline.model import baselines, metrics, probes, processor
from plumbline.model.result import Process, Result
from plumbline.references import Known, Reference, recording
from plumbline.rfm import evaluation, in_force

METAL = {'virtual': 'no'}
ADDITIONS = {'additions_per_cycle': {'before': [3.9] * 9, 'after': [3.9] * 9}}
CLOCK = {'clock': {'before': [2e9] * 9, 'after': [2e9] * 9}}


def ruling(share, baseline, machine=METAL, unjudged=None, beside=ADDITIONS):
    '''The judged metric of a Zen 4 that does so much of its baseline.'''
    record = {'state': {}, 'set_aside': 0, 'rounds': list(range(9)), 'probes': beside}
    metric = baselines.of_baseline('made', baseline, baseline.value * share ** baseline.better * np.linspace(0.999, 1.001, 9), record, 'zen4',
                                   machine, unjudged)
    known, = in_force._by_baselines({metric.name: [evaluation.Case(metric)]}).values()
    return evaluation.judged(evaluation.choose([evaluation.Case(metric)], known))


@pytest.mark.parametrize('arch, bits, value, least', [
    ('haswell', 64, 4, 4), ('haswell', 512, 16, 16), ('cascadelake', 256, 16, 16), ('cascadelake', 512, 32, 16), ('sapphirerapids', 512, 32, 32),
    ('zen4', 512, 16, 16), ('zen5', 512, 32, 16), ('zen2', 128, 8, 8)])
def test_operations_per_cycle_are_those_of_the_units(arch, bits, value, least):
    found, reason = baselines.fma(arch, bits, 12)
    assert reason is None and (found.value, found.least, found.most) == (value, least, value)
    # 8 % for the clock on either side.
    assert found.leaf == pytest.approx((1.0, 0.92 * least / value - 1, 0.08))


@pytest.mark.parametrize('arch, level, low, high', [
    ('zen4', 'L1', 0.92 * 4 / 5, 1.08), ('zen2', 'L2', 0.92 * 13 / 16, 1.08 * 13 / 11), ('sapphirerapids', 'L1', 0.92 * 5 / 6, 1.08)])
def test_bounds_of_a_latency_are_those_of_its_cycles(arch, level, low, high):
    found, _ = baselines.latency(arch, level)
    reference, lower, upper = found.leaf
    assert (reference, 1 + lower, 1 + upper) == pytest.approx((1, low, high))
    assert found.share([found.value, 2 * found.value]).tolist() == [1, 0.5]


AMD, INTEL = 'AuthenticAMD', 'GenuineIntel'


@pytest.mark.parametrize('arch, cpuid, expected', [
    # What KVM shows of an EPYC 9004 without protection keys: archspec finds no more than a level of x86-64.
    ('x86_64_v4', (AMD, 25, 17, 1), 'zen4'), ('x86_64_v3', (AMD, 25, 1, 1), 'zen3'), ('x86_64_v3', (AMD, 23, 49, 0), 'zen2'), ('zen', (AMD, 23, 1, 2), 'zen'),
    ('x86_64_v4', (INTEL, 6, 85, 4), 'skylake_avx512'), ('x86_64_v4', (INTEL, 6, 85, 7), 'cascadelake'), ('x86_64_v4', (INTEL, 6, 85, 11), 'x86_64_v4'),
    ('x86_64_v4', (INTEL, 25, 17, 1), 'x86_64_v4'),
    # A virtual Emerald Rapids without two of its flags; a processor that is no Ice Lake, whatever its flags.
    ('icelake', (INTEL, 6, 207, 2), 'sapphirerapids'), ('icelake', (INTEL, 6, 173, 1), 'GenuineIntel family 6 model 173 stepping 1'),
    ('zen3', (AMD, 25, 17, 1), 'zen4'), ('neoverse_n1', None, 'neoverse_n1'), (None, None, None)])
def test_where_flags_are_hidden_family_and_model_tell(arch, cpuid, expected):
    assert baselines.known_as(arch, cpuid and dict(zip(('vendor', 'family', 'model', 'stepping'), cpuid))) == expected


@pytest.mark.parametrize('text, expected', [
    ('processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n\nmodel name\t: Other\n',
     'AMD EPYC [AuthenticAMD 25/17]'),
    ('processor\t: 0\nFeatures\t: fp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU part\t: 0xd40\n', '[0x41 0xd0c]'),
    ('vendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nstepping\t: unknown\n', 'AMD EPYC'), ('processor\t: 0\n', None)])
def test_a_processor_is_named_with_its_numbers(text, expected):
    assert processor.name(processor.of_cpuinfo(text)) == expected


def test_no_processor_has_two_names():
    known = [(name, given['cpuid']) for name, given in baselines.microarchitectures().items() if 'cpuid' in given]
    for vendor, family, model, stepping in itertools.product((AMD, INTEL), (6, 23, 25, 26), range(256), (0, 4, 5, 7, 8)):
        cpuid = {'vendor': vendor, 'family': family, 'model': model, 'stepping': stepping}
        assert sum(baselines._is(given, cpuid) for _, given in known) <= 1, cpuid


@pytest.mark.parametrize('call, told', [
    ((baselines.fma, 'zen99', 256, 12), 'not judged: no baseline of zen99 in microarchitectures.yaml'),
    ((baselines.fma, None, 256, 12), 'not judged: no baseline of an unknown microarchitecture in microarchitectures.yaml'),
    ((baselines.fma, 'a64fx', 128, 12), 'not judged: no latency of fused multiply-adds of a64fx in microarchitectures.yaml'),
    ((baselines.fma, 'haswell', 128, 9), 'not judged: 9 chains keep fewer than the 2 units of haswell busy'),
    ((baselines.latency, 'x86_64_v4', 'L1'), 'not judged: no baseline of x86_64_v4 in microarchitectures.yaml'),
    ((baselines.latency, 'icelake', 'L2'), 'not judged: no latency of L2 of icelake in microarchitectures.yaml')])
def test_without_a_baseline_it_says_so(call, told):
    function, *arguments = call
    assert function(*arguments) == (None, told)


FMA, LATENCY = baselines.Baseline(16, 16, 16), baselines.Baseline(4, 4, 5, better=-1)


@pytest.mark.parametrize('share, baseline, expected', [
    (0.98, FMA, 'PASS'), (1.03, FMA, 'PASS'), (0.85, FMA, 'FAIL'), (1.15, FMA, 'FAIL'),
    (0.8, LATENCY, 'PASS'), (0.67, LATENCY, 'FAIL'), (1.2, LATENCY, 'FAIL')])
def test_a_core_is_judged_by_the_bounds_of_its_baseline(share, baseline, expected):
    metric = ruling(share, baseline)
    assert (metric.verdict, metric.reference_from) == (expected, 'microarchitectures.yaml')
    assert metric.value == pytest.approx(share, rel=2e-3)


@pytest.mark.parametrize('machine, beside, told', [
    ({'virtual': 'yes'}, ADDITIONS, baselines.VIRTUAL), ({'virtual': 'not known'}, ADDITIONS, baselines.PERHAPS_VIRTUAL),
    ({}, ADDITIONS, baselines.PERHAPS_VIRTUAL), (None, {}, baselines.PERHAPS_VIRTUAL),
    (METAL, {'additions_per_cycle': {'before': [2.5] * 9, 'after': [2.7] * 9}},
     'something else works on the core: 2.6 additions per cycle beside the samples, of 4')])
@pytest.mark.parametrize('share', [0.5, 0.92, 2.0])
def test_out_of_bounds_nothing_is_judged_where_it_may_not_be_the_core(machine, beside, told, share):
    assert ruling(1.0, FMA, machine, beside=beside).verdict == 'PASS'
    metric = ruling(share, FMA, machine, beside=beside)
    assert (metric.verdict, metric.reason, metric.unjudged, metric.reference) == ('NO REFERENCE', f'not judged: {told}', told, None)


@pytest.mark.parametrize('value, reference_from, expected', [
    (0.95, 'portable.yaml', 'PASS'), (0.5, 'portable.yaml', 'NO REFERENCE'), (0.5, 'made.yaml', 'FAIL')])
def test_a_doubt_spares_what_holds_anywhere_and_no_reference_of_a_site(value, reference_from, expected):
    doubt = probes.doubt_beside(np.ones(9))
    metric = metrics.Metric('efficiency', 'all', np.full(9, value), doubt=doubt)
    found = evaluation.judged(evaluation.Case(metric, reference=Reference((1.0, -0.15, 0.1)), reference_from=reference_from))
    assert found.verdict == expected and (expected != 'NO REFERENCE' or found.reason == f'not judged: {doubt}')
    # Tests of what is judged on the first day count it.
    assert bool(rfm.judged_on_day_one({found.name: found.as_json()})) == (reference_from == 'portable.yaml')


@pytest.mark.parametrize('value, expected', [(0.7, 'PASS'), (0.5, 'NO REFERENCE'), (0.29, 'FAIL')])
def test_a_doubt_explains_no_more_than_it_can(value, expected):
    metric = metrics.Metric('of_parts', 'plain', np.full(9, value), doubt='somebody else worked there', explains=2.0)
    assert evaluation.judged(evaluation.Case(metric, reference=Reference((1.0, -0.4, None)), reference_from='portable.yaml')).verdict == expected


def test_processes_beside_somebody_else_do_not_count_where_most_had_their_core():
    cases = [evaluation.Case(metrics.Metric('of_parts', 'plain', np.full(3, value), doubt=doubt), processes=[Process(number, 3, None)])
             for number, (value, doubt) in enumerate([(0.5, 'made up'), (0.9, None), (0.9, None)])]
    found = evaluation.pooled(cases)
    assert (found.metric.value, found.metric.doubt, found.set_aside, len(found.processes)) == (pytest.approx(0.9), None, 3, 2)
    found = evaluation.pooled([cases[0], cases[0], cases[1]])
    assert (found.metric.value, found.metric.doubt, found.set_aside) == (0.5, 'made up', 0)
    cases = [evaluation.Case(metrics.Metric('of_baseline', 'made', np.array([0.5] * 3), baseline=FMA.leaf, doubt=doubt),
                             processes=[{'process': number, 'n': 3, 'record': None}]) for number, doubt in enumerate((None, 'made up'))]
    assert evaluation.pooled(cases).metric.doubt == 'made up'
    assert evaluation.pooled([cases[0], cases[0], cases[1]]).metric.doubt is None, 'most processes have none'


@pytest.mark.parametrize('unjudged, value, n', [((None, 'x', 'x'), 0.9, 3), (('x', None, None), 0.7, 6), (('x', 'x', 'x'), 0.762, 9)])
def test_processes_that_cannot_be_judged_do_not_count_beside_those_that_can(unjudged, value, n):
    cases = [evaluation.Case(metrics.Metric('efficiency', 'all', np.full(3, share), unjudged=why), processes=[Process(number, 3, None)])
             for number, (share, why) in enumerate(zip((0.9, 0.7, 0.7), unjudged))]
    found = evaluation.pooled(cases)
    assert (found.summary.value, found.summary.n, found.set_aside) == (pytest.approx(value, abs=0.001), n, 9 - n)
    assert found.metric.unjudged == (None if None in unjudged else 'x')


@pytest.mark.parametrize('share, expected', [(0.93, 'PASS'), (0.8, 'FAIL'), (1.2, 'FAIL')])
def test_recorded_references_go_before_but_what_is_impossible_stays_so(share, expected):
    metric = baselines.of_baseline('made', FMA, 16 * share * np.linspace(0.999, 1.001, 9), {'state': {}, 'probes': ADDITIONS}, 'zen4', METAL)
    found = evaluation.judged(evaluation.Case(metric, reference=Reference((0.95, -0.1, None)), reference_from='made.yaml'))
    assert (found.verdict, found.reference_from) == (expected, 'made.yaml')
    assert ('the most that any hardware gives' in found.reason) == (share > 1)


@pytest.mark.parametrize('share, expected', [(0.5, 'FAIL'), (1.0, 'PASS')])
@pytest.mark.parametrize('recorded', [{'state': {'core_sharing': 2.0}}, {'threads': [8]}])
def test_the_baseline_judges_where_what_is_recorded_does_not_apply(recorded, share, expected):
    '''As it is of another state, or of another number of threads.'''
    case = evaluation.Case(metrics.Metric('of_baseline', 'x', np.full(9, share), baseline=(1.0, -0.1, 0.1)), {'core_sharing': 1.0})
    check = SimpleNamespace(display_name='cores', reference=ScopedDict(), level=None, current_partition=SimpleNamespace(fullname='made:cpu'),
                            plumbline=Result(contention=[{'threads': 4}]))
    known = in_force.in_force(check, {case.metric.name: Known('made.yaml', [Reference((1.0, -0.05, 0.05), **recorded)])}, {case.metric.name: [case]})
    found = evaluation.judged(evaluation.choose([case], known[case.metric.name]))
    assert (found.verdict, found.reference_from) == (expected, 'microarchitectures.yaml')


def test_a_fail_is_not_recorded_and_what_is_unjudged_stays_so():
    row = {'value': 0.5, 'n': 9, 'unjudged': None, 'verdict': 'FAIL', 'reference_from': 'microarchitectures.yaml'}
    assert recording.unusable([row]).startswith('it fails the portable reference')
    assert ruling(0.5, FMA, unjudged='made up').verdict == 'NO REFERENCE'


# --- the checks ---------------------------------------------------------------------------------------------------------------

def check_of(path, name, arch, said, **attributes):
    check = runpy.run_path(str(rfm.REPOSITORY / path))[name]
    case = SimpleNamespace(microarchitecture=arch, plumbline=SimpleNamespace(of_machine=METAL),
                           skip_metric=lambda metric, reason: said.append((metric, reason)), disturbed=lambda: None, **attributes)
    case.of_baseline = lambda *given: check.of_baseline(case, *given)
    return check, case


@pytest.mark.parametrize('arch, probes, expected, told', [
    ('zen4', CLOCK, [0.75], []), ('zen4', {}, [], [('of_baseline.simd256.one', baselines.NO_CLOCK)]),
    ('zen99', CLOCK, [], [('of_baseline.simd256.one', baselines.unknown('zen99'))])])
def test_peak_flops_counts_by_the_clock_beside_the_samples(arch, probes, expected, told):
    said = []
    check, case = check_of('checks/compute/peak_flops.py', 'peak_flops', arch, said)
    record = {'flops': 24e9, 'seconds': [1.0] * 9, 'threads': 1, 'variant': 'simd256', 'probes': probes}      # 24 / 2 / 16 per cycle
    found = list(check.of_baseline(case, record, 'simd256.one', None))
    assert [one.value for one in found] == pytest.approx(expected) and said == told


@pytest.mark.parametrize('arch, level, pages, probes, expected, told', [
    ('zen4', 'L1', 'base', CLOCK, [0.8], []),                 # 2.5 ns are five cycles
    ('zen4', 'L2', 'huge', CLOCK, [2.8], []),
    ('zen4', 'L2', 'base', CLOCK, [], []), ('zen4', 'L3', 'huge', CLOCK, [], []),
    ('zen99', 'L1', 'huge', CLOCK, [], [('of_baseline.L1.huge', baselines.unknown('zen99'))]),
    ('zen4', 'L1', 'huge', {}, [], [('cycles.L1.huge', 'no clock was measured beside the samples'), ('of_baseline.L1.huge', baselines.NO_CLOCK)])])
def test_latency_counts_by_the_clock_beside_the_samples(arch, level, pages, probes, expected, told):
    said = []
    check, case = check_of('checks/memory/latency.py', 'latency', arch, said, pages=pages)
    found = list(check.in_cycles(case, level, np.array([2.5e-3] * 9), {'probes': probes}))
    assert [one.value for one in found if one.metric == 'of_baseline'] == pytest.approx(expected) and said == told


# --- the file -----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('text, told', [
    ('zen4: {fma: {units: 2, bits: 256}}', "field zen4/fma: 'source' is a required property"),
    ('zen4: {fma: {units: 0, bits: 256, source: a}}', 'field zen4/fma/units: 0 is less than the minimum of 1; how many a core has'),
    ('zen4: {fma: {units: 2, least: 3, bits: 256, source: a}}', 'field zen4/fma/least: is more than units'),
    ('zen4: {latency: {L1: {cycles: 4, least: 5, most: 6, source: a}}}', 'field zen4/latency/L1: cycles lie between least and most'),
    ("zen4: {latency: {L1: {cycles: 4, least: 4, most: 5, source: ''}}}", 'field zen4/latency/L1/source: '),
    ('zen4: {latency: {L3: {}}}', "field zen4/latency: 'L3' "), ('Zen 4: {}', "field (top): 'Zen 4' does not match "),
    ('- zen4', 'field (top): '), ('zen4: {', 'not YAML: ')])
def test_a_file_that_is_wrong_has_one_line(tmp_path, text, told):
    path = tmp_path / 'made.yaml'
    path.write_text(text)
    with pytest.raises(PlumblineError) as caught:
        baselines.read(path)
    assert str(caught.value).startswith(f'{path}: {told}') and '\n' not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(PlumblineError, match='none.yaml: No such file'):
        baselines.read(tmp_path / 'none.yaml')


def test_the_machine_record_says_whether_it_is_virtual(programs):
    machine = programs.measured('triad', '--variants', 'plain', '--size', 100, '--samples', 10, '--passes', 1).machine
    assert machine['virtual'] in ('yes', 'no', 'not known')
