'''Sensitivity to latency: the arithmetic by hand, and the check with a real injection.'''

import numpy as np
import pytest

import rfm
from mpi_native import any_mpi, every_mpi, mpirun, run_check
from native import SAMPLES, two_cpus
from plumbline.mpi import sensitivity
from plumbline.report import figures


def record(latency, seconds, communication=0.0):
    return {'variant': 'v', 'options': {'latency': latency}, 'passes': 2, 'seconds': seconds, 'communication': [communication] * len(seconds)}


STUDY = {'v': {0: record(0, [2.0, 4.0], 0.5), 10: record(10, [2.2, 4.4]), 20: record(20, [2.4, 4.8])}}


def test_records_become_a_study_by_latency_with_slowdown_share_and_tolerance():
    assert sensitivity.studies([record(5, [1.0]), record(0, [1.0])]) == {'v': {0: record(0, [1.0]), 5: record(5, [1.0])}}
    assert sensitivity.slowdown(STUDY['v'], 20) == pytest.approx([1.2, 1.2])
    assert sensitivity.share_of_communication(STUDY['v'][0]) == pytest.approx([0.25, 0.125])
    assert sensitivity.cost_per_microsecond(STUDY['v']) == pytest.approx([0.01, 0.01])     # 10 % at 10 us
    assert sensitivity.tolerance(STUDY['v'], 0.05) == pytest.approx([5, 5])
    faster = {0: record(0, [2.0, 2.0]), 10: record(10, [1.9, 2.1])}
    assert sensitivity.tolerance(faster, 0.01) == pytest.approx([np.inf, 0.01 / 0.005])
    with pytest.raises(ValueError, match='no latency was added'):
        sensitivity.cost_per_microsecond({0: record(0, [1.0])})


# --- latency added by turns in one process -------------------------------------------------------------------------------

def with_latency(build, us=None):
    '''Words in front of a program, and variables, so that it has libplumbline_latency.'''
    return {'LD_PRELOAD': build.library('latency'), **({} if us is None else {'PLUMBLINE_LATENCY_US': us})}


@every_mpi
def test_latency_by_turns_is_never_less_than_asked_for(mpi, mpi_programs):
    build = mpi_programs(mpi)
    command = ['env', *(f'{name}={value}' for name, value in with_latency(build, 400).items()), build.path('pingpong'),
               '--size', 8, '--latency', '0,200,400', *SAMPLES, '--passes', 3]
    found = mpirun(mpi, 2, command)
    assert found.code == 0, found.errors
    for record in found.measurements:
        assert record['valid']
        per_message = min(record['seconds']) / record['passes'] / record['options']['messages']
        assert per_message >= record['options']['latency'] * 1e-6
    assert [record['options']['latency'] for record in found.measurements] == [0, 200, 400]


@pytest.mark.parametrize('words, us', [([], 400), (['--latency', '0'], 0)])
def test_without_the_option_the_librarys_variables_count(words, us, mpi_programs):
    build = mpi_programs(any_mpi())
    found = mpirun(any_mpi(), 2, ['env', 'PLUMBLINE_LATENCY_REPORT=1', *(f'{name}={value}' for name, value in with_latency(build, 400).items()),
                            build.path('pingpong'), '--size', 8, *words, *SAMPLES, '--passes', 3])
    assert found.code == 0 and f'plumbline: latency: L {us} us' in found.errors, found.errors
    record, = found.measurements
    assert min(record['seconds']) / record['passes'] / record['options']['messages'] >= us * 1e-6


@pytest.mark.parametrize('us, told', [
    (None, '--latency 5: libplumbline_latency adds nothing: set PLUMBLINE_LATENCY_US above 0 for the begin'),
    ('absent', '--latency 5: libplumbline_latency is not loaded: start with LD_PRELOAD=.../libplumbline_latency.so'),
])
def test_latency_without_what_adds_it_is_refused(us, told, mpi_programs):
    build = mpi_programs('openmpi')
    preload = [] if us == 'absent' else ['env', *(f'{name}={value}' for name, value in with_latency(build).items())]
    found = mpirun('openmpi', 2, [*preload, build.path('cg'), '--class', 'S', '--latency', '5'])
    assert found.code != 0
    assert {line for line in found.errors.splitlines() if line.startswith('plumbline: ')} == {f'plumbline: {told}'}


@two_cpus
def test_check_adds_latency_to_an_application(measuring_mpi, tmp_path):
    case, = run_check(measuring_mpi(tmp_path / 'place', 'openmpi'), 'openmpi', 'latency_sensitivity.py', 'latency_sensitivity%application=cg%part=1',
                      '-S', 'latency_sensitivity.size=--class S')
    rfm.assert_measured(case)
    result = case['plumbline']
    names = {metric['name'] for metric in result['metrics']}
    assert {'communication.cg.0us', 'communication.cg.25us', 'slowdown.cg.25us', 'flops.cg'} <= names
    assert len(names) + len(result.get('skipped', ())) == 6 + 5 + 3 + 1
    (_, _, time), (_, _, share) = figures.of_check('latency_sensitivity', [rfm.detail_of('latency_sensitivity', case)])
    assert time is not None and share is not None
