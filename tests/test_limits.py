'''Ratios of interleaved cases, by hand.'''

import math

import numpy as np
import pytest

import rfm
from made_report import measurement
from plumbline.errors import PlumblineError
from plumbline.model import limits, metrics


def kernel(*seconds, **changed):
    return measurement(seconds=list(seconds), **changed)


def stream(*seconds, traffic=measurement()['traffic'], **changed):
    return measurement(**{'seconds': list(seconds), 'kernel': 'streams', 'variant': 'load',
                          'role': 'limit', 'traffic': traffic, 'bytes': traffic, **changed})


def test_of_limit_by_hand():
    # traffic 1250 MB: the load stream at 2500, 1250, 5000 MB/s, the copy stream slower
    found = limits.of_limit([stream(0.5, 1.0, 0.25), stream(2, 2, 2, variant='copy'),
                             kernel(1.0, 1.25, 0.5), kernel(0.5, 1.0, 0.25, variant='nt')])
    assert found['plain'].samples.tolist() == [0.5, 0.8, 0.5]
    assert found['plain'].value == 0.5
    assert found['nt'].value == 1
    assert found['plain'].limit == 2500


@pytest.mark.parametrize('beside, told', [([3.9] * 9 + [2.0], '10 % of the samples'), ([3.9] * 10, None), (None, None)])
def test_a_kernel_beside_which_somebody_else_worked_on_the_core_is_in_doubt(beside, told):
    probes = {} if beside is None else {'probes': {'additions_per_cycle': {'before': beside, 'after': beside}}}
    found = limits.of_limit([stream(*[1.0] * 10), kernel(*[1.0] * 10, **probes)])['plain'].doubt
    assert found is None if told is None else found.endswith(told)


def test_cores_of_another_kind_are_no_neighbour():
    def probed(make, additions, cpus):
        return make(*[1.0] * 10, cpus=cpus, threads=len(cpus), variant='load', probes={'additions_per_cycle': dict.fromkeys(('before', 'after'), additions)})

    cases = [probed(make, additions, cpus) for additions, cpus in (([6.0] * 10, [0]), ([4.0] * 8 + [2.0] * 2, [0, 1])) for make in (stream, kernel)]
    doubts = [{key: found.doubt for key, found in limits.of_limit(cases, lambda case: case['threads'], kinds).items()} for kinds in ([[0], [1]], [])]
    assert [{key: doubt and doubt.split(' beside ')[1] for key, doubt in one.items()} for one in doubts] == [
        {1: None, 2: '20 % of the samples'}, {1: None, 2: '100 % of the samples'}]


def test_drift_cancels_and_all_processes_rest_on_one_stream():
    steady = limits.of_limit([stream(1, 1, 1), kernel(2, 2, 2)])['plain']
    drifting = limits.of_limit([stream(1, 3, 9), kernel(2, 6, 18)])['plain']
    assert steady.value == drifting.value == 0.5
    by_process = [[stream(1.0, variant='copy'), stream(1.1, variant='update')], [stream(1.0, variant='copy'), stream(0.9, variant='update')],
                  [stream(1.2, variant='copy'), stream(1.1, variant='update')]]
    assert [limits.best(own)['variant'] for own in by_process] == ['copy', 'update', 'update']
    limits.mark_best([*by_process[0], *by_process[1], *by_process[2], stream(0.1, variant='load')])     # which one process alone has
    assert [limits.best(own)['variant'] for own in by_process] == ['copy'] * 3     # medians 1.0 and 1.1


@pytest.mark.parametrize('cases, text', [
    ([stream(1, 1), kernel(1, 1, 1)], 'a round is missing'),
    ([stream(1, 1), kernel(1, 1, group=1)], 'did not run interleaved'),
    ([kernel(1, 1)], 'no limit stream'),
    ([stream(1, 1, threads=2), kernel(1, 1)], 'no limit stream'),
    ([stream(1, 1, level='L2'), kernel(1, 1)], 'no limit stream'),
    ([stream(1, 1)], 'no kernel'), ([], 'no kernel'),
    ([stream(1, 1), kernel(1, 1), kernel(1, 1)], 'occurs twice'),
    ([stream(1, 1), kernel(1, 1, traffic=0)], 'no traffic'),
    ([stream(1, 1, traffic=0), kernel(1, 1)], 'no traffic')])
def test_refusals(cases, text):
    with pytest.raises(PlumblineError, match=text):
        limits.of_limit(cases)


def pure(part, *seconds, **changed):
    return stream(*seconds, variant=part, parts={part: 1e9}, traffic=1e9, **changed)


def test_of_parts_and_traffic_by_hand():
    # load at 1000 and 2000 MB/s, fill at 500: 0.5 s + 0.25 s of loads, 1 s of stores; of a core that overlaps nothing 0.25 s
    group = [pure('load', 1, 0.5), pure('fill', 2, 2, traffic_least=5e8), stream(1, 1, variant='copy'),
             kernel(3.0, 2.5, parts={'load': 5e8, 'fill': 5e8}, bytes=8e8),
             kernel(0.5, 0.5, role='core', bytes=16e8)]
    assert limits.of_limit(group[:-1])['plain'].of_parts.tolist() == [0.5, 0.5]
    assert limits.of_limit(group)['plain'].of_parts.tolist() == [1.75 / 3, 0.6]
    group = [pure('load', 1, 1), kernel(3, 3, parts={'load': 5e8, 'fill_nt': 5e8})]
    assert limits.of_limit(group)['plain'].of_parts is None
    assert limits.of_limit([pure('load', 1, 1), kernel(3, 3)])['plain'].of_parts is None     # a record of before
    found = limits.of_limit([pure('fill', 1, 1, traffic_least=5e8), pure('load', 2, 2), kernel(2, 2)])
    assert found['plain'].limit == 500
    found = limits.of_limit([stream(1, 1, traffic=2e9), kernel(1, 1, traffic=1e9, bytes=9e9)])
    assert found['plain'].value == 0.5 and found['plain'].limit == 2000
    found = limits.of_limit(
        [stream(1, 1), stream(0.5, 0.5, threads=2), kernel(1, 1), kernel(1, 1, threads=2)],
        key=lambda case: (case['variant'], case['threads']))
    assert found['plain', 1].value == 1 and found['plain', 2].value == 0.5


@pytest.mark.parametrize('level', ['L2', 'L3', 'memory'])
@pytest.mark.parametrize('share, ruling', [(1.25, 'PASS'), (1.4, 'FAIL')])
def test_a_triad_whose_write_allocates_are_left_out_is_above_the_limit(level, share, ruling):
    '''Arm's leave them out in all levels beyond L1: 32 of 40 bytes are moved.'''
    record = measurement(level=level, traffic=1.25e9, traffic_least=1e9)
    judged = rfm.by_shipped('triad_curve', ['default', 'gnu', 'one'], metrics.Metric('of_limit', f'plain.{level}', np.full(9, share), record=record))
    assert judged.verdict == ruling, judged.reason


def test_paired_ratio_and_correction_by_a_cross_check():
    a, b = kernel(1, 2, 3, bytes=1e9), kernel(2, 2, 1, bytes=2e9, variant='nt')
    assert limits.paired_ratio(a, b).tolist() == [0.5, 1, 3]
    assert limits.paired_ratio(a, b, 'bytes').tolist() == pytest.approx([1, 0.5, 1 / 6])
    with pytest.raises(PlumblineError, match='a round is missing'):
        limits.paired_ratio(a, kernel(1, 2))
    with pytest.raises(PlumblineError, match='interleaved'):
        limits.paired_ratio(a, kernel(1, 2, 3, group=4))
    with pytest.raises(PlumblineError, match='no flops'):
        limits.paired_ratio(a, kernel(1, 2, 3, flops=0), 'flops')
    assert limits.cross_check_correction([0.97]) == (1.0, None)
    assert limits.cross_check_correction([0.7, 1.2, 0.8]) == (1.0, None)
    assert limits.cross_check_correction([]) == (1.0, None)
    factor, note = limits.cross_check_correction([0.7, 0.8, 0.75])
    assert factor == 0.8
    assert "limit streams reach 0.80 of likwid-bench's best: the limit is raised" in note
    # Somebody who worked beside ours for a second made of_limit 0.52 where it is 0.92.
    factor, note = limits.cross_check_correction([0.63])
    assert factor == 1 and 'measured 1 of 3 times, and the limit is not raised' in note


@pytest.mark.parametrize('agreement', [0, -1, math.inf, math.nan])
def test_cross_check_refuses_what_is_no_ratio(agreement):
    with pytest.raises(PlumblineError, match='measure them again'):
        limits.cross_check_correction([agreement])
