'''What the team measures of its cores beside each sample, and the team itself: who spins, who sleeps, who may be stopped.'''

import ctypes
import itertools
import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from made_report import measurement
from mpi_native import any_mpi
from native import CPUS, SOURCE, environment, output_of, two_cpus
from plumbline.errors import PlumblineError
from plumbline.model import probes, records

QUICK = ['--samples', 10, '--min-time', '0.002']
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


def known(found, name):
    '''Of both moments; a machine that is busy with other things may leave nothing.'''
    if name not in found:
        pytest.skip(f'nothing is known of {name}: this machine is too busy')
    return found[name][~np.isnan(found[name])]


# --- what is measured ------------------------------------------------------------------------------------------------

@pytest.mark.alone
@two_cpus
def test_each_sample_has_its_probes_before_and_after(programs):
    for record in programs.measured('triad', '--threads', '2', '--limit', *QUICK).measurements:
        found = probes.features(record)
        assert {values.shape for values in found.values()} == {(10, 2)}
        assert 1e-9 < np.median(known(found, 'core_to_core.0')) < 1e-4
        assert 0.8 < np.median(known(found, 'core_sharing')) < 2.3
        assert 5e8 < np.median(known(found, 'clock')) < 1e10
        assert 0.5 < np.median(known(found, 'additions_per_cycle')) <= 9
        assert record['probes']['seconds'] > 0


@pytest.mark.alone
def test_two_threads_of_one_core_are_told(programs):
    def siblings(cpu):
        return Path(f'/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list').read_text()

    pair = next((pair for pair in itertools.combinations(CPUS, 2) if siblings(pair[0]) == siblings(pair[1])), None)
    if pair is None:
        pytest.skip('no two CPUs that may be used here are of one core')
    for record in programs.measured('triad', '--threads', '2', '--limit', *QUICK, on=pair, OMP_PROC_BIND='true', OMP_PLACES='threads').measurements:
        assert 1.6 < np.median(known(probes.features(record), 'core_sharing')) < 2.4


def test_a_thread_alone_hands_nothing_over(programs):
    record, = programs.measured('triad', *QUICK).measurements
    assert set(probes.features(record)) == {'clock', 'additions_per_cycle'}
    record, = programs.measured('triad', *QUICK, '--probes', 'off').measurements
    assert 'probes' not in record and probes.features(record) == {}


@pytest.mark.alone
@two_cpus
def test_ranks_of_a_node_hand_over_too(mpi_programs):
    mpi = any_mpi()
    found = mpi_programs(mpi).measured(2, 'pingpong', '--size', '8', '--samples', 10, '--min-time', '0.002').measurements
    for record in found:
        assert 1e-9 < np.median(known(probes.features(record), 'core_to_core.0')) < 1e-4


def test_probes_of_another_number_of_samples_are_refused(programs):
    text = programs.measured('triad', *QUICK).text
    assert '"after": [' in text
    with pytest.raises(PlumblineError, match='probes.*10 samples'):
        records.parse(text.replace('"additions_per_cycle": {"before": [', '"additions_per_cycle": {"before": [1.5, '))
    record = {'probes': {'core_to_core': {'before': [[1e-7, 2e-7], None], 'after': [[1e-7, None], [3e-7, 4e-7]]},
                         'clock': {'before': [None, None], 'after': [None, None]}, 'seconds': 0.1}}
    found = probes.features(record)
    assert set(found) == {'core_to_core.0', 'core_to_core.1'}
    np.testing.assert_array_equal(found['core_to_core.0'], [[1e-7, 1e-7], [np.nan, 3e-7]])
    np.testing.assert_array_equal(found['core_to_core.1'], [[2e-7, np.nan], [np.nan, 4e-7]])


def test_a_flicker_is_no_partner_and_a_partner_is():
    flicker = [1.0, 1.0, 1.9, 1.0, 1.0, None, 1.0, 1.6, 1.0, 1.0]
    moved = [1.0, 1.0, 1.0, 1.9, 1.95, 1.9, 1.95, 1.9, 1.95, 1.9]
    record = {'probes': {'core_sharing': {'before': flicker, 'after': [1.0] * 10}}}
    assert np.all(probes.features(record)['core_sharing'] == 1.0)
    record = {'probes': {'core_sharing': {'before': moved, 'after': moved}}}
    assert (probes.features(record)['core_sharing'] > 1.5).all(axis=1).tolist() == [False] * 3 + [True] * 7
    record = {'probes': {'core_sharing': {'before': [None], 'after': [None]}}}
    assert probes.features(record) == {}


def test_who_else_worked_on_a_core_is_told_from_a_partner():
    def record(additions, sharing=None):
        readings = {'additions_per_cycle': additions} | ({'core_sharing': sharing} if sharing else {})
        return {'probes': {name: {'before': values, 'after': values} for name, values in readings.items()}}

    alone, beside = record([3.93] * 19 + [5.0]), record([3.93] * 5 + [2.1] * 5)     # 5: a clock that was read too low
    first, second = probes.beside_others([alone, beside])
    assert first.tolist() == [False] * 20 and second.tolist() == [False] * 5 + [True] * 5
    _, partner, stranger, unknown, without = probes.beside_others([alone, record([1.97] * 2, [2.0] * 2), record([1.97] * 2, [1.0] * 2), record([None]), {}])
    assert not partner.any() and stranger.all() and unknown is None and without is None
    # Cores of another kind, alone or in a team with wider ones, do fewer additions with nobody beside them: 6 on CPUs 0 and 1, 4 on 2 and 3.
    teams = [record(values) | {'cpus': cpus} for values, cpus in (([6.0] * 10, [0]), ([4.0] * 5 + [2.0] * 5, [2]), ([4.0] * 9 + [3.0], [0, 1, 2, 3]))]
    assert [one.sum() for one in probes.beside_others(teams, [[0, 1], [2, 3]])] == [0, 5, 1]
    assert [one.sum() for one in probes.beside_others(teams)] == [0, 10, 10]


# --- a partner that is silent ----------------------------------------------------------------------------------------

class Length(ctypes.Structure):
    _fields_ = [('batches', ctypes.c_int), ('handovers', ctypes.c_int), ('patience', ctypes.c_double)]


def test_the_clock_of_all_cores_is_lower_than_that_of_one():
    def at(*clocks):
        return {'clock': {'before': [2.6e9] * len(clocks), 'after': [1e9 * clock for clock in clocks]}}      # before, some were asleep
    alone, together = (measurement(probes=at(*clocks), seconds=[0.1] * 3) for clocks in ((3.8, 3.9, 4.0), (2.6, 2.6, 0.9)))
    assert probes.clock_ratio(alone, together) == (pytest.approx(1.5), None)
    ratio, why = probes.clock_ratio(alone, measurement())
    assert ratio == 1.0 and 'not known' in why


@pytest.fixture(scope='module')
def handover(tmp_path_factory):
    '''Function (relay, side, epoch, length) of the harness.'''
    library = tmp_path_factory.mktemp('handover') / 'handover.so'
    output_of('cc', '-O2', '-shared', '-fPIC', f'-I{SOURCE}/harness', SOURCE / 'harness/handover.c', SOURCE / 'harness/clock.c',
              '-o', library)
    functions = ctypes.CDLL(library)
    function = functions.pl_hand_over
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, Length]
    functions.pl_relay_rest.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_double]
    functions.pl_relay_call.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    return functions


@pytest.mark.parametrize('members, rounds', [(1, 0), (2, 1), (3, 2), (1024, 10), (1025, 10), (1 << 20, 10)])
def test_a_large_team_has_no_more_rounds_than_a_record_has_room_for(handover, members, rounds):
    assert handover.pl_relay_rounds(members) == rounds


@pytest.mark.parametrize('side', [0, 1])
def test_a_partner_that_never_comes_is_not_waited_for(handover, side):
    line, begin = ctypes.create_string_buffer(256), time.monotonic()
    assert np.isnan(handover.pl_hand_over(line, side, 1, Length(4, 10, 0.01)))
    assert time.monotonic() - begin < 5


@two_cpus
def test_two_sides_agree(handover):
    line, found = ctypes.create_string_buffer(256), [None, None]
    for epoch in (1, 2):
        sides = [threading.Thread(target=lambda side=side: found.__setitem__(side, handover.pl_hand_over(line, side, epoch, Length(8, 100, 2))))
                 for side in (0, 1)]
        for side in sides:
            side.start()
        for side in sides:
            side.join()
        assert 1e-9 < found[0] < 1e-3 and 0.5 < found[0] / found[1] < 2


def test_a_side_rests_until_it_is_called_and_not_for_ever(handover):
    line, begin, woken = ctypes.create_string_buffer(256), time.monotonic(), []

    def rest():
        handover.pl_relay_rest(line, 7, 20.0)
        woken.append(time.monotonic() - begin)
    resting = threading.Thread(target=rest)
    resting.start()
    time.sleep(0.3)
    handover.pl_relay_call(line, 7)
    resting.join()
    assert 0.3 <= woken[0] < 10
    handover.pl_relay_rest(line, 8, 0.05)       # the call was another epoch's


def _stop_for(tid, seconds):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_SEIZE, tid, None, None):
        pytest.skip('threads may not be traced here')
    libc.ptrace(PTRACE_INTERRUPT, tid, None, None)
    os.waitpid(tid, WALL)
    time.sleep(seconds)
    libc.ptrace(PTRACE_DETACH, tid, None, None)


@two_cpus
def test_a_thread_that_is_stopped_hangs_nobody(programs):
    '''As a debugger does, or a quota that is used up.'''
    command = [programs.path('triad'), '--threads', '2', '--samples', '60', '--min-time', '0.01']
    running = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment())
    while len(threads := sorted(map(int, os.listdir(f'/proc/{running.pid}/task')))) < 2:
        time.sleep(0.001)
    for _ in range(5):
        time.sleep(0.05)
        _stop_for(threads[1], 0.05)
    text, _ = running.communicate(timeout=50)
    assert running.returncode == 0
    record, = records.parse(text).measurements
    assert len(record['seconds']) == 60


# --- the team --------------------------------------------------------------------------------------------------------

def _cpus_used(programs, threads):
    '''CPUs that a program kept busy.'''
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    programs.measured('triad', '--threads', threads, '--size', '1000', '--samples', 20, '--min-time', '0.03', OMP_WAIT_POLICY='active')
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begin
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / seconds


@two_cpus
@pytest.mark.alone
@pytest.mark.parametrize('flavour', ['programs', 'llvm'])
def test_a_case_of_one_thread_runs_beside_idle_cores(request, flavour):
    '''Whatever the OpenMP runtime does with threads that wait: half of the time two work, half of it one.'''
    assert _cpus_used(request.getfixturevalue(flavour), '1,2') < 1.75


def test_a_signal_ends_a_team_that_waits(programs):
    running = subprocess.Popen([str(programs.path('triad')), '--threads', '1', '--samples', '1000', '--min-time', '0.05'],
                               stdout=subprocess.DEVNULL, env=environment())
    time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=20) == -signal.SIGTERM
