'''The burn: every wrong bit is found, it ends cleanly, goes on, and outlives its file system; the check.'''

import contextlib
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import time
import types

import numpy as np
import pytest

import rfm
from native import CPUS, SOURCE, Build, copied, environment, two_cpus
from plumbline.gate.packed.hardware import MACHINE_CHECKS
from plumbline.model import burn as model, records
from waiting import until

CHECK = rfm.REPOSITORY / 'checks/site/burn.py'
THREADS = min(2, len(CPUS))
PHASES = [phase for phase in model.PHASES if phase != 'message' or THREADS > 1]
#: Some rounds of tenths of a second.
QUICK = ('--threads', THREADS, '--slice', 0.05, '--memory', 2**22)


# --- the program ------------------------------------------------------------------------------------------------------

def burnt(build, *options, program='burn'):
    '''(Exit code, :class:`model.Burn`, standard error) of a burn whose records are its standard output.'''
    found = build.run(program, *options)
    lines = [line for line in found.text.splitlines(keepends=True) if '"record": "burn_' in line]
    return found.code, model.parse(''.join(lines), 'output'), found.errors


def test_phases_take_turns_on_all_threads(build, tmp_path):
    file = tmp_path / 'burn.jsonl'
    found = build.run('burn', *QUICK, '--minutes', 0.02, '--series', file)
    assert (found.code, found.errors) == (0, '')
    said, burn = records.parse(found.text), model.parse(file.read_text(), 'file')
    assert said.machine['hostname'] == socket.gethostname() and len(said.contention) == 1
    assert [record['phase'] for record in burn.phases] == (PHASES * len(burn.phases))[:len(burn.phases)]
    assert burn.starts[0]['cpus'] == CPUS[:THREADS] and burn.starts[0]['phases'] == PHASES
    for record in burn.phases:
        assert len(record['rates']) == THREADS and min(record['rates']) > 0 and record['errors'] == 0
        assert sum(record['rates']) == pytest.approx(record['rate']['total'], rel=1e-3)
        assert record['unit'] == ('Mflop/s' if record['phase'] in ('dgemm', 'fma') else 'MB/s')
        assert record['seconds'] > 0.04 and record['rate']['slowest_cpu'] in CPUS
    assert burn.end['ended'] == 'complete' and burn.end['phases'] == len(burn.phases) and burn.end['lost_records'] == 0
    assert burn.done >= 1.2 and burn.done == pytest.approx(sum(record['seconds'] for record in burn.phases), rel=0.01)


@pytest.mark.skipif(len(CPUS) < 3, reason='three threads need three CPUs')
def test_a_flipped_bit_is_found_where_a_thread_has_no_partner_at_first(programs):
    code, burn, _ = burnt(programs, *QUICK[2:], '--threads', 3, '--phases', 'message', '--minutes', 0.01, '--flip', '0:message:1')
    assert (code, burn.errors[0]['from_thread']) == (1, 0)


@pytest.mark.parametrize('phase', PHASES)
def test_a_flipped_bit_is_found(programs, phase):
    '''In the one word that it is in, by the thread that reads it.'''
    thread = THREADS - 1
    code, burn, said = burnt(programs, *QUICK, '--phases', phase, '--minutes', 0.01, '--flip', f'{thread}:{phase}:2')
    assert code == 1 and '1 of the results are wrong' in said
    error, = burn.errors
    reader = 0 if phase == 'message' else thread        # of two threads the other one reads the message
    assert (error['round'], error['phase'], error['thread'], error['cpu']) == (2, phase, reader, CPUS[reader])
    expected, seen, bits, again = (int(error[key], 16) for key in ('expected', 'seen', 'bits', 'again'))
    assert expected ^ seen == bits and bits.bit_count() == 1 and again == seen
    assert error['from_thread'] == (thread if phase == 'message' else None)
    assert [record['errors'] for record in burn.phases][:3] == [0, 1, 0] and burn.total_errors == burn.end['errors'] == 1
    assert f'CPU {CPUS[reader]} ' in model.told(error) and error['seen'] in model.told(error)


def test_a_wrong_factor_is_set_right_so_that_it_is_counted_once(programs, tmp_path):
    '''The bit is flipped from outside, in the matrix A that lies before C, whose place an error says.'''
    with Running(programs, tmp_path / 'burn.jsonl', '--phases', 'dgemm', '--flip', '0:dgemm:1') as running:
        running.wait_for('"burn_phase"', 2)
        error, = model.parse(running.read(), 'file').errors
        burner = subprocess.check_output(['pgrep', '-P', str(running.process.pid)], text=True).strip()
        with open(f'/proc/{burner}/mem', 'r+b', buffering=0) as memory:
            place = memory.seek(int(error['address'], 16) - error['offset'] - 2 * 8 * 240**2 + 8 * 240 + 2)
            byte, = memory.read(1)
            memory.seek(place)
            memory.write(bytes([byte ^ 16]))
        running.wait_for('"burn_phase"', running.read().count('"burn_phase"') + 4)
        _, burn, _ = running.end()
    assert [error['buffer'] for error in burn.errors[:3]] == ['dgemm C', 'dgemm A', 'dgemm C']      # the flip; then the cause, and what it spoils
    wrong = [record['errors'] for record in burn.phases if record['errors']]
    assert wrong[0] == 1 and len(wrong) == 2 and 1 < wrong[1] <= 1 + 240 and burn.phases[-1]['errors'] == 0, wrong      # and a row of C


#: File -> (what is right in it, what is wrong): each spoils a phase.
MUTANTS = {
    'dgemm.c': ('k < BURN_ORDER; k++)\n                for (size_t r', 'k + 1 < BURN_ORDER; k++)\n                for (size_t r'),
    'dgemm_loops.h': ('k < BURN_ORDER; k++', 'k + 1 < BURN_ORDER; k++'),
    'fma.c': ('.loop(STEPS, t->stream)', '.loop(STEPS - 1, t->stream)'),
    'pattern.c': ('i < BLOCK; i++, value += step)\n        to[i]', 'i + 1 < BLOCK; i++, value += step)\n        to[i]'),
    'message.c': ('i < WORDS; i++, value += step)\n            own[i]', 'i + 1 < WORDS; i++, value += step)\n            own[i]'),
}


@two_cpus
@pytest.mark.native
def test_work_that_is_not_done_is_found(tmp_path):
    '''The last column of a product, the last step, the last word: in each phase, whatever makes it so.'''
    source = copied(tmp_path / 'src', 'burn', 'kernels/flops')
    for file, (right, wrong) in MUTANTS.items():
        path = source / 'burn' / file
        assert right in path.read_text(), file
        path.write_text(path.read_text().replace(right, wrong))
    build = Build(tmp_path / 'build', '-DPLUMBLINE_FORTRAN=OFF', '-DPLUMBLINE_LIKWID=OFF', source=source, targets=['burn'])
    code, burn, _ = burnt(build, *QUICK, '--minutes', 0.03)
    assert code == 1 and {record['phase']: record['errors'] > 0 for record in burn.phases} == dict.fromkeys(PHASES, True)
    told = {(error['phase'], error['thread']) for error in burn.errors}
    assert told == {(phase, thread) for phase in PHASES for thread in range(THREADS)}
    assert len(burn.errors) < burn.total_errors     # the first ones of each thread are told


def test_one_thread_has_no_messages(programs):
    code, burn, said = burnt(programs, '--slice', 0.02, '--memory', 2**20, '--minutes', 0.002, program='burn-serial')
    assert (code, said) == (0, '') and burn.starts[0]['phases'] == list(model.PHASES[:-1])


@pytest.mark.parametrize('options, told', [
    ('--minutes 0', 'give minutes'), ('--phases dgemm,gemm', 'give one of dgemm, fma'), ('--threads 100000', 'CPUs are allowed'),
    ('--threads 1 --phases message', 'at least 2 threads'), ('--cpus 1023', 'outside the affinity mask'), ('--memory 1e15', 'available here'),
    ('--memory 1000', 'have less than'), ('--flip 0:dgemm', 'THREAD:PHASE:ROUND'), ('--threads 1 --flip 1:fma:1', 'no such thread'),
    ('--resume', 'of which burn'), ('--series /nowhere/burn.jsonl', 'No such file or directory'), ('--resume --series /nowhere', 'No such file'),
    ('--resume --series /dev/full', 'is no file'), ('--minutes 1 more', 'not an option'), ('--sizes 3', 'unknown option')])
def test_what_cannot_be_burnt_is_one_line(programs, options, told):
    found = programs.run('burn', *options.split())
    assert (found.code, found.text, len(found.errors.splitlines())) == (2, '', 1)
    assert found.errors.startswith('plumbline: --') or 'not an option' in told or 'unknown' in told
    assert told in found.errors


# --- it ends, and goes on ---------------------------------------------------------------------------------------------

class Running:
    '''A burn of an hour in the background.'''

    def __init__(self, programs, file, *options):
        self.file = file
        self.process = subprocess.Popen([str(x) for x in (programs.path('burn'), *QUICK, '--minutes', 60, '--series', file, *options)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def read(self):
        return self.file.read_text() if self.file.exists() else ''

    def wait_for(self, text, count=1):
        for _ in range(2400):
            if self.read().count(text) >= count:
                return
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.05)
        pytest.fail(f'{text!r} did not come: {self.read()[-2000:]}')

    def end(self, number=signal.SIGTERM):
        '''(Exit code, :class:`model.Burn`, standard error).'''
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, model.parse(self.read(), 'file'), said


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_a_last_record(programs, tmp_path, number):
    with Running(programs, tmp_path / 'burn.jsonl', '--slice', 30) as running:      # in the midst of a phase
        running.wait_for('burn_start')
        begin = time.monotonic()
        code, burn, said = running.end(number)
    assert code == 128 + number and burn.end['ended'] == f'signal {number.value}' and time.monotonic() - begin < 25
    assert 'of 60 minutes, with 0 errors; --resume goes on with it' in said


def test_it_goes_on_where_it_was_broken_off(programs, tmp_path):
    file = tmp_path / 'burn.jsonl'
    first = programs.run('burn', *QUICK, '--minutes', 0.01, '--series', file, '--flip', '0:fma:1')
    assert first.code == 1
    assert '--resume goes on with it; or give another name' in programs.run('burn', *QUICK, '--series', file).errors
    before = model.parse(file.read_text(), 'first')
    with file.open('a') as stream:
        stream.write('{"record": "burn_phase", "schema": 1, "time": 17')      # the node failed there
    assert programs.run('burn', *QUICK, '--minutes', 0.02, '--series', file, '--resume').code == 1      # what was wrong stays wrong
    burn = model.parse(file.read_text(), 'both')
    assert len(burn.starts) == 2 and burn.starts[1]['done'] == pytest.approx(before.done, abs=0.01) and burn.total_errors == 1
    assert 1.2 <= burn.done < 2 and np.all(np.diff([record['done'] for record in burn.phases]) > 0)
    rounds = [record['round'] for record in burn.phases]
    assert rounds == sorted(rounds) and burn.starts[1]['round'] == before.phases[-1]['round'] + 1
    # All is done: nothing is added but that.
    assert programs.run('burn', *QUICK, '--minutes', 0.02, '--series', file, '--resume').code == 1
    assert len(model.parse(file.read_text(), 'all').phases) == len(burn.phases)
    torn = tmp_path / 'torn.jsonl'      # half of a phase before a phase in the midst, half of an error at the end
    of_first = file.read_text().partition('{"record": "burn_end"')[0]      # that may have fewer phases on a busy machine
    first, second, *others = [line for line in of_first.splitlines(keepends=True) if '"burn_error"' not in line][:8]
    torn.write_text(first + second[:137] + second.replace('"total_errors": 1', '"total_errors": 0') + ''.join(others).replace(
        '"total_errors": 1', '"total_errors": 0') + '{"record": "burn_error", "schema"')
    before = model.parse(torn.read_text(), 'torn')
    assert programs.run('burn', *QUICK, '--minutes', before.done / 60 + 0.005, '--series', torn, '--resume').code == 1
    burn = model.parse(torn.read_text(), 'torn')
    assert (burn.torn, burn.total_errors, burn.starts[1]['done']) == ([2], 1, before.done)
    if THREADS > 1:
        assert f'is of {THREADS} threads, and these are 1' in programs.run('burn', '--threads', 1, '--series', file, '--resume').errors
    file.write_text(file.read_text().replace(f'"hostname": "{socket.gethostname()}"', '"hostname": "another"'))
    assert 'is of the node another' in programs.run('burn', *QUICK, '--series', file, '--resume').errors


@pytest.fixture
def small_disk(tmp_path):
    '''A file system of a MiB.'''
    with rfm.small_disk(tmp_path / 'disk', '1m') as folder:
        yield folder


def test_records_wait_for_a_full_file_system(programs, small_disk):
    '''None is lost, none is cut, and the burn goes on meanwhile.'''
    with Running(programs, small_disk / 'burn.jsonl') as running:
        running.wait_for('burn_phase')
        with contextlib.suppress(OSError):      # the burn takes room meanwhile
            (small_disk / 'filler').write_bytes(bytes(2**20))
        written = None
        while written != (written := running.read().count('"burn_phase"')):        # until a record finds no room
            time.sleep(1.5)
        assert running.process.poll() is None
        (small_disk / 'filler').unlink()
        running.wait_for('"burn_phase"', written + 10)
        code, burn, said = running.end()
    assert code == 143 and 'could not be written' not in said
    assert burn.end['lost_records'] == 0 and burn.end['most_waiting'] > 5 and burn.end['write_error'] == 'No space left on device'
    assert len(burn.phases) == burn.end['phases'] and np.all(np.diff([record['done'] for record in burn.phases]) > 0)


def test_records_that_never_find_room_are_counted_and_nobody_waits_for_a_file_that_hangs(programs):
    '''The burn comes to its end, and says how many they were.'''
    with open('/dev/full', 'w') as full:
        command = [programs.path('burn'), *QUICK, '--minutes', 0.02, '--keep', 5000]
        done = subprocess.run([str(x) for x in command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=50, env=environment())
    lost, = (int(line.split()[2]) for line in done.stderr.splitlines() if line.endswith('not be written to standard output: No space left on device'))
    assert done.returncode == 3 and lost > 5
    # A pipe that is full and that nobody reads, as a file system whose server is gone.
    command = [programs.path('burn'), *QUICK, '--slice', 0.005, '--minutes', 0.05]
    with subprocess.Popen([str(x) for x in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, pipesize=16384, text=True, env=environment()) as running:
        code = running.wait(timeout=40)
        said, complaint = running.stdout.read(), running.stderr.read()
    assert code == 3 and 'could not be written to standard output: it does not answer' in complaint and said.count('"burn_phase"') > 2


# --- what is read beside it -------------------------------------------------------------------------------------------

def made_up(root, **values):
    '''Files of /sys and /proc.'''
    cpu = 'sys/devices/system/cpu/cpu{}/thermal_throttle'
    files = {'sys/class/hwmon/hwmon0/name': 'coretemp', 'sys/class/hwmon/hwmon0/temp1_input': 71500, 'sys/class/hwmon/hwmon0/temp2_input': 65000,
             'sys/class/hwmon/hwmon1/name': 'coretemp', 'sys/class/hwmon/hwmon1/temp1_input': 255000, 'sys/class/hwmon/hwmon1/temp3_input': 60000,
             'sys/class/powercap/intel-rapl:0/name': 'package-0', 'sys/class/powercap/intel-rapl:0/energy_uj': values.get('energy', 900_000_000),
             'sys/class/powercap/intel-rapl:0/max_energy_range_uj': 1_000_000_000, 'sys/class/powercap/intel-rapl:0:0/name': 'dram',
             'sys/class/powercap/intel-rapl:0:0/energy_uj': 5, 'sys/class/powercap/intel-rapl:0:0/max_energy_range_uj': 1000,
             'sys/devices/system/edac/mc/mc0/ce_count': values.get('corrected', 3), 'sys/devices/system/edac/mc/mc0/ue_count': 0,
             'proc/interrupts': ''.join(f" {row}: {values.get('checks', 1)} 0 as it is called\n" for row in (0, 'THR', *MACHINE_CHECKS, 'MCP')),
             **{f'{cpu.format(number)}/core_throttle_count': values.get('throttled', 10) for number in CPUS},
             **{f'{cpu.format(number)}/package_throttle_count': values.get('sockets', {}).get(number, 2) for number in CPUS}}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f'{text}\n')


def test_sensors_and_counts_are_read_beside_it(programs, tmp_path):
    made_up(tmp_path / 'root', sockets={CPUS[0]: 50})       # of another socket, before the burn
    with Running(programs, tmp_path / 'burn.jsonl', '--sensors', tmp_path / 'root') as running:
        running.wait_for('burn_phase')
        made_up(tmp_path / 'root', corrected=5, checks=2, throttled=11, energy=100_000_000, sockets={CPUS[0]: 50, CPUS[-1]: 20})
        for energy in (900, 100, 900, 100):      # in one step, within a phase
            running.wait_for('"burn_phase"', running.read().count('"burn_phase"') + 3)
            (tmp_path / 'energy').write_text(f'{energy}000000\n')
            (tmp_path / 'energy').replace(tmp_path / 'root/sys/class/powercap/intel-rapl:0/energy_uj')
        running.wait_for('"burn_phase"', running.read().count('"burn_phase"') + 3)
        _, burn, _ = running.end()
    assert burn.starts[0]['not_readable'] == {}
    first, last = burn.phases[0], burn.phases[-1]
    assert first['temperature'] == {'coretemp': 71.5, 'coretemp.2': 60.0} and set(first['power']) == {'package-0', 'package-0.dram'}
    assert [first[name] for name in model.COUNTS] == [0, 0, 0, 0]
    assert [last[name] for name in model.COUNTS] == [2, 0, len(MACHINE_CHECKS), len(CPUS) + 18]
    # The counter went on by 800, and round, from 900 by 1000 to 100.
    used = {round(record['power']['package-0'] * record['seconds'], -1) for record in burn.phases if 'package-0' in record['power']}
    assert 200 in used and used <= {0, 200, 800}


def test_what_cannot_be_read_says_why(programs, tmp_path):
    (tmp_path / 'sys/class/powercap/intel-rapl:0/energy_uj').mkdir(parents=True)
    _, burn, _ = burnt(programs, *QUICK, '--minutes', 0.002, '--sensors', tmp_path)
    told = burn.starts[0]['not_readable']
    assert set(told) == {'temperature', 'power', *model.COUNTS} and 'energy_uj: Is a directory' in told['power']
    assert burn.phases[0]['temperature'] == {} and burn.phases[0]['throttled'] is None and burn.counted('throttled') is None


# --- the check --------------------------------------------------------------------------------------------------------

def options(minutes, *further):
    return ['-n', '^burn$', '-r', '-S', f'burn.minutes={minutes}', '-S', 'burn.slice=0.05', '-S', f'burn.memory_bytes={2**22}', *further]


def test_a_burn_through_reframe(measuring, tmp_path):
    '''Whatever the machine does meanwhile to its rates, what was counted is judged.'''
    place = measuring(tmp_path)
    done = place.reframe(*options(0.1), checks=CHECK)
    case, = done.cases().values()
    rfm.assert_measured(case)
    left = case['plumbline']
    found = {metric['name']: metric for metric in left['metrics']}
    assert (found['burn_errors']['value'], found['burn_errors']['verdict']) == (0, 'PASS')
    rounds = {phase: [point['phase'] for point in left['series']].count(phase) for phase in PHASES}
    for phase, count in rounds.items():     # a busy machine has fewer
        assert count and ({f'drift.{phase}', f'of_start.{phase}'} <= set(found)) == (count >= model.LEAST_ROUNDS)
    assert {'flops.dgemm', 'flops.fma', 'bandwidth.memory', 'bandwidth.cache'} <= set(found)
    skipped = {one['metric']: one['reason'] for one in left.get('skipped', [])}
    unread = [name for name in model.COUNTS if name not in found]
    assert all('not readable' in skipped[name] for name in unread)
    assert {found[name]['verdict'] for name in ('throttled', 'machine_checks', 'memory_uncorrected') if name in found} <= {'PASS'}
    place.judge()
    page = place.folder / 'reports/latest/index.html'
    assert 'Rates over a burn' in page.read_text()


def test_a_flipped_bit_fails_the_check(measuring, tmp_path):
    done = measuring(tmp_path).reframe(*options(0.01, '-S', f'burn.flip={THREADS - 1}:memory:1'), '--max-retries=1', checks=CHECK)
    case, = done.cases().values()      # of the second run, which has the first one's, too
    assert done.code == 1 and case['result'] == 'fail'
    errors = next(metric for metric in case['plumbline']['metrics'] if metric['name'] == 'burn_errors')
    assert (errors['value'], errors['verdict']) == (2, 'FAIL') and 'memory: CPU' in errors['reason']
    assert 'self-test: a bit was flipped on purpose (--flip)' in case['plumbline']['notes']


def process_of(file):
    '''The number of the burn that writes this file.'''
    for entry in os.listdir('/proc'):
        try:
            if entry.isdigit() and os.readlink(f'/proc/{entry}/cwd') == str(file.parent) and os.readlink(f'/proc/{entry}/exe').endswith('/burn'):
                return int(entry)
        except OSError:     # it has ended, or is somebody else's
            continue
    return pytest.fail(f'no burn runs in {file.parent}')


def test_a_burn_that_is_ended_says_so_and_goes_on_through_reframe(measuring, tmp_path):
    '''By a signal, as a scheduler does it; its records lie where ReFrame then empties the folder.'''
    place = measuring(tmp_path)
    running = place.start_reframe(*options(10), checks=CHECK)
    try:
        files = until(lambda: [file for file in place.stage.rglob('burn.jsonl') if file.read_text().count('burn_phase') > 2])
        os.kill(process_of(files[0]), signal.SIGTERM)
        assert running.wait(timeout=120) == 1
    finally:
        running.kill()
    case, = rfm.Done(1, '', json.loads(place.report.read_text())).cases().values()
    assert case['result'] == 'fail' and f'signal 15; go on with -S burn.resume={files[0]}' in case['fail_reason']
    before = model.parse(files[0].read_text(), 'stage')
    assert before.phases and before.end['errors'] == 0
    case, = place.reframe(*options(before.done / 60 + 0.01, '-S', f'burn.resume={files[0].parent}'), checks=CHECK).cases().values()
    rfm.assert_measured(case)
    assert '--resume' in case['plumbline']['command'] and case['plumbline']['timed_seconds'] >= before.done + 0.6


def test_cores_that_compute_otherwise_than_each_other_are_remembered():
    case = types.SimpleNamespace(written=lambda: '', stagedir='/nowhere', output=lambda: '{"record": "wrong", "schema": 1, "why": "not the same product"}\n')
    assert 'pl_tell_wrong("two cores do not get the same product")' in (SOURCE / 'burn/run.c').read_text()
    assert runpy.run_path(str(CHECK))['burn'].wrong_result(case) == 'not the same product'


def test_wrong_results_of_a_burn_whose_node_went_down_count_in_the_next_run(programs, tmp_path):
    '''Of the records alone, whole lines and cut off: nobody asks a job that ran into its limit for its exit code.'''
    phase = PHASES[0]
    found = programs.run('burn', *QUICK, '--phases', phase, '--minutes', 0.01, '--flip', f'0:{phase}:1')
    text = ''.join(line for line in found.text.splitlines(keepends=True) if '"record": "burn_' in line)
    told = text.index('"record": "burn_error"')
    burn = runpy.run_path(str(CHECK))['burn']

    def of(series):
        (tmp_path / 'burn.jsonl').write_bytes(series)
        case = types.SimpleNamespace(stagedir=str(tmp_path), minutes=0.01, output=lambda: '')
        case.written, case.broken_off = types.MethodType(burn.written, case), types.MethodType(burn.broken_off, case)
        return burn.wrong_result(case)
    assert of(text[:text.rindex('\n', 0, told) + 1].encode()) is None
    without_end = text[:text.index('{"record": "burn_end"')].encode()
    assert of(without_end) == '1 wrong results of a burn' and of(b'\xff\n' + without_end) == '1 wrong results of a burn'
    assert of(text.encode()) is None        # its metric burn_errors FAILs


@pytest.mark.slow
def test_each_partition_burns_in_its_first_environment(tmp_path):
    config = tmp_path / 'two.py'
    config.write_text('''
from plumbline import settings
site_configuration = settings.site(
    [{'name': 'two', 'hostnames': ['.*'], 'partitions': [{'name': name, 'scheduler': 'local', 'launcher': 'local', 'environs': names}
                                                         for name, names in (('a', ['one']), ('b', ['other', 'one']))]}],
    [{'name': name, 'cc': 'gcc', 'features': ['openmp']} for name in ('one', 'other')])
''')
    done = rfm.Workplace(tmp_path / 'place', config=config).reframe('-n', '^burn$', '--dry-run', checks=CHECK)
    assert sorted(re.findall(r'(SKIP|OK).*\] .*burn /\w+ @two:(\w+)\+(\w+)', done.out)) == [('OK', 'a', 'one'), ('OK', 'b', 'other'), ('SKIP', 'b', 'one')]


@pytest.mark.slow
@pytest.mark.parametrize('option, told', [
    ('burn.resume=/nowhere', 'No such file or directory; give burn.jsonl of the burn, or its folder'),
    (f'burn.resume={CHECK}', 'no record')])
def test_what_the_check_refuses_is_one_line(tmp_path, option, told):
    place = rfm.Workplace(tmp_path, config=rfm.REPOSITORY / 'config/localhost.py')
    done = place.reframe('-n', '^burn$', '-l', '-S', option, checks=CHECK)
    assert done.code and told in done.line('plumbline: ') and 'Traceback' not in done.out
