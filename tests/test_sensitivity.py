'''Sensitivity to latency: the arithmetic by hand, and the check with a real injection.'''

import numpy as np
import pytest

from plumbline.mpi import sensitivity


def record(latency, seconds, communication=0.0):
    return {'variant': 'v', 'options': {'latency': latency}, 'passes': 2, 'seconds': seconds,
            'communication': [communication] * len(seconds)}


STUDY = {'v': {0: record(0, [2.0, 4.0], 0.5), 10: record(10, [2.2, 4.4]), 20: record(20, [2.4, 4.8])}}


def test_records_become_a_study_by_latency():
    assert sensitivity.studies([record(5, [1.0]), record(0, [1.0])]) == {'v': {0: record(0, [1.0]), 5: record(5, [1.0])}}


def test_slowdown_is_paired_by_rounds():
    assert sensitivity.slowdown(STUDY['v'], 20) == pytest.approx([1.2, 1.2])


def test_share_of_communication():
    assert sensitivity.share_of_communication(STUDY['v'][0]) == pytest.approx([0.25, 0.125])


def test_tolerance_is_the_latency_that_costs_so_much():
    assert sensitivity.cost_per_microsecond(STUDY['v']) == pytest.approx([0.01, 0.01])     # 10 % at 10 us
    assert sensitivity.tolerance(STUDY['v'], 0.05) == pytest.approx([5, 5])


def test_nothing_lost_tolerates_everything():
    faster = {0: record(0, [2.0, 2.0]), 10: record(10, [1.9, 2.1])}
    assert sensitivity.tolerance(faster, 0.01) == pytest.approx([np.inf, 0.01 / 0.005])
    with pytest.raises(ValueError, match='no latency was added'):
        sensitivity.cost_per_microsecond({0: record(0, [1.0])})
