'''likwid-bench, likwid-pin and likwid-perfctr: commands, logs and tables.'''

import os
import pathlib
import subprocess

import pytest

import native
from plumbline.errors import PlumblineError
from plumbline.likwid import bench, bench_output, perfctr, pin
from plumbline.system import topology

DATA = pathlib.Path(__file__).parent / 'data' / 'likwid'


def data(name):
    return (DATA / name).read_text()


# --- likwid-bench: commands ---

@pytest.mark.parametrize('family, isa, nontemporal, name', [
    ('load', 'avx512', False, 'load_avx512'), ('triad', 'avx512', False, 'triad_avx512_fma'),
    ('triad', 'avx512', True, 'triad_mem_avx512_fma'),
    ('stream', 'avx512', True, 'stream_mem_avx512'), ('stream', 'avx2', True, 'stream_mem_avx_fma'),
    ('copy', 'sse', True, 'copy_mem_sse'),
    ('triad', 'scalar', False, 'triad'), ('store', 'scalar', True, None),
    ('load', 'avx2', True, None)])
def test_kernel_names(family, isa, nontemporal, name):
    assert bench.kernel_name(family, isa, nontemporal) == name


def test_all_kernels_exist_in_likwid_bench():
    there = {line.split(' - ')[0] for line in data('bench_kernels.txt').splitlines()}
    named = {bench.kernel_name(family, isa, nontemporal) for family in bench.WRITE_ALLOCATE
             for isa in ('avx512', 'avx2', 'sse', 'scalar') for nontemporal in (0, 1)}
    assert len(named) > 30 and named - {None} <= there


@pytest.mark.parametrize('kernel, level, factor', [
    ('load_avx', 'memory', 1), ('store_avx512', 'memory', 2), ('copy', 'L2', 1.5), ('stream_avx_fma', 'L3', 4 / 3),
    ('triad_avx512_fma', 'memory', 1.25), ('triad_avx512_fma', 'L1', 1), ('triad_mem_avx_fma', 'memory', 1)])
def test_traffic_counts_write_allocate(kernel, level, factor):
    assert bench.traffic_factor(kernel, level) == factor
    with pytest.raises(PlumblineError, match='daxpy_avx'):
        bench.traffic_factor('daxpy_avx', 'memory')


def test_commands_of_a_health_check():
    commands = bench.bench_commands({'L2': 2**19, 'memory': 2**28}, [3, 1], 'avx2')
    assert [(c['level'], c['kernel']) for c in commands] == [
        ('L2', 'load_avx'), ('L2', 'copy_avx'), ('L2', 'triad_avx_fma'),
        ('memory', 'load_avx'), ('memory', 'copy_mem_avx'), ('memory', 'triad_mem_avx_fma')]
    # 2 threads x 150 GB/s x 0.5 s = 150 GB in sweeps of 512 KiB.
    assert [commands[0][key] for key in ('threads', 'cpus', 'size', 'iterations')] == [2, [1, 3], 2**19, 286102]


def test_commands_of_full_effort_and_of_large_sizes():
    commands = bench.bench_commands({'L1': 2**14, 'memory': 2**28}, [0], 'avx512', 'full')
    assert len(commands) == 3 * (5 + 9)
    kernels = [c['kernel'] for c in commands]
    assert kernels[:5] != kernels[0:1] * 5 and kernels[:5] == kernels[5:10]
    assert f' 0 {6 * 2**30 // 1000}kB load_sse ' in bench.script(bench.bench_commands({'memory': 6 * 2**30}, [0], 'sse'))
    with pytest.raises(PlumblineError, match="effort 'quick'"):
        bench.bench_commands({'L1': 2**14}, [0], 'sse', 'quick')


# --- likwid-bench: outputs ---

def test_output_of_one_call():
    sample = bench_output.parse_bench(data('bench_triad_2_threads.txt'))
    assert sample['kernel'] == 'triad_avx_fma'
    assert sample['threads'] == 2 and sample['hwthreads'] == [0, 1]
    # 2 x 736 elements x 4 arrays x 8 bytes, 2000 times, 2 flops per element.
    assert sample['working_set'] == 2 * 736 * 32
    assert sample['bytes'] == sample['working_set'] * 2000
    assert sample['flops'] == 2 * 736 * 2 * 2000 and sample['iterations'] == 2000
    assert sample['rate'] == pytest.approx(sample['bytes'] / sample['seconds'] / 1e6, rel=1e-5)
    assert sample['seconds'] == pytest.approx(sample['cycles'] / sample['clock'], rel=1e-5)


@pytest.mark.parametrize('old, new', [
    ('MByte/s:', 'MByte:'), ('sec\n', '\n\n'), ('Data volume (Byte):\t', 'Data volume (Byte):\t9'),
    ('Global Thread 1 running', 'Global'), ('Using 2 threads', 'Using 4 threads'),
    ('Cycles:\t\t\t', 'Cycles:\t\t\t0.'),
    ('Iterations per thread:\t', 'Iterations per thread:\tx')])
def test_garbled_output_is_refused(old, new):
    text = data('bench_triad_2_threads.txt')
    assert old in text
    with pytest.raises(PlumblineError):
        bench_output.parse_bench(text.replace(old, new))


@pytest.mark.parametrize('name, said', [
    ('bench_unknown_kernel.txt', 'Error: Unknown test case nokernel'),
    ('bench_too_small.txt', 'Error: The given vector length of 192B is too small')])
def test_likwid_benchs_own_words_are_passed_on(name, said):
    with pytest.raises(PlumblineError, match=said):
        bench_output.parse_bench(data(name))


# --- likwid-bench: the log of a cross-check ---

TRIAD = 'level=L1 threads=2 cpus=0,1 kernel=triad_avx_fma repeat=0 iterations=2000'


def log(*calls, done=None):
    text = ''.join(f'### plumbline-cross-check {header}\n{output}\n### plumbline-cross-check-end '
                   f'status={status}\n' for header, output, status in calls)
    done = len(calls) if done is None else done
    return f'from the prologue\n{text}### plumbline-cross-check-done calls={done}\n'


def triad(clock=None):
    text = data('bench_triad_2_threads.txt')
    if clock is None:
        return text
    return '\n'.join(f'Cycle Clock:\t\t{clock}' if line.startswith('Cycle Clock') else line
                     for line in text.splitlines())


def test_log_becomes_samples_by_one_clock():
    samples = bench_output.parse_cross_check(log(
        (TRIAD, triad(), 0), (TRIAD.replace('level=L1', 'level=L2'), triad(), 0)))
    assert [s['level'] for s in samples] == ['L1', 'L2']
    first, second = samples
    assert first['cpus'] == [0, 1] and first['repeat'] == 0 and first['traffic_factor'] == 1
    assert first['traffic_rate'] == first['rate']
    assert second['traffic_rate'] == pytest.approx(1.25 * first['rate'])
    again = TRIAD.replace('iterations=2000', 'iterations=3000')
    samples = bench_output.parse_cross_check(log((TRIAD, triad(), 0), (again, triad(), 0)))
    assert len(samples) == 1
    # The same cycles; the third process took its clock for half as fast, so its time for double.
    samples = bench_output.parse_cross_check(log(*((TRIAD.replace('repeat=0', f'repeat={i}'), triad(clock), 0)
                                        for i, clock in enumerate([2000, 2000, 1000]))))
    seconds = bench_output.parse_bench(triad())['seconds']
    assert [s['seconds'] for s in samples] == pytest.approx([seconds, seconds, seconds / 2])


@pytest.mark.parametrize('text, message', [
    (log((TRIAD, triad(), 0)).replace('### plumbline-cross-check-done calls=1', ''), 'cut off after 1'),
    (log((TRIAD, triad(), 0), done=2), 'cut off after 1'),
    (log((TRIAD, triad(), 0)).replace('### plumbline-cross-check-end', ''), 'cut off after 0'),
    (log(), 'holds no call'), ('', 'cut off after 0'),
    (log((TRIAD, triad(), 132)), 'exit status 132'),
    (log((TRIAD, data('bench_unknown_kernel.txt'), 1)), 'exit status 1.*test case nokernel'),
    (log((TRIAD, triad()[:-200], 0)), 'triad_avx_fma in L1, 2 threads: likwid-bench: '),
    (log((TRIAD.replace('triad', 'copy'), triad(), 0)), 'ran triad_avx_fma'),
    (log((TRIAD.replace('cpus=0,1', 'cpus=2,3'), triad(), 0)), r'ran on CPUs \[0, 1\] instead of'),
    (log((TRIAD.replace('triad_avx_fma', 'load_avx').replace('cpus=0,1', 'cpus=0,1,2'),
          data('bench_cpu_shared.txt'), 0)), r'ran on CPUs \[0, 1, 0\] instead of \[0, 1, 2\]')])
def test_bad_logs_are_refused(text, message):
    with pytest.raises(PlumblineError, match=message) as error:
        bench_output.parse_cross_check(text)
    assert '\n' not in str(error.value)


def test_best_of_a_level():
    samples = [{'level': 'L1', 'threads': 1, 'kernel': 'a', 'traffic_rate': 2.0, 'traffic_factor': 1},
               {'level': 'L1', 'threads': 1, 'kernel': 'b', 'traffic_rate': 3.0, 'traffic_factor': 1},
               {'level': 'L1', 'threads': 2, 'kernel': 'c', 'traffic_rate': 9.0, 'traffic_factor': 1},
               {'level': 'memory', 'threads': 1, 'kernel': 'store', 'traffic_rate': 8.0, 'traffic_factor': 2},
               {'level': 'memory', 'threads': 1, 'kernel': 'load', 'traffic_rate': 5.0, 'traffic_factor': 1}]
    assert bench_output.cross_check_best(samples, 'L1', 1)['kernel'] == 'b'
    assert bench_output.cross_check_best(samples, 'L2', 1) is None
    # The store's write-allocate is a model only, and of processors other than x86-64 beyond L1, too: their kernels are of no instruction set.
    assert bench_output.cross_check_best(samples, 'memory', 1)['kernel'] == 'load'
    for kernel, best in ('store', 'load'), ('store_sse', 'store_sse'):
        in_cache = [one | {'level': 'L2', 'kernel': kernel if one['kernel'] == 'store' else 'load'} for one in samples[3:]]
        assert bench_output.cross_check_best(in_cache, 'L2', 1)['kernel'] == best


def test_script_is_posix_and_calls_what_was_planned(tmp_path):
    # A stand-in for likwid-bench that needs 0.01 s for 100 iterations of each sweep.
    fake = tmp_path / 'likwid-bench'
    fake.write_text('#!/bin/sh\n'
                    'while [ $# -gt 1 ]; do case $1 in -t) k=$2;; -i) n=$2;; esac; shift; done\n'
                    'echo "$k $n" >> "$CALLS"\n'
                    'awk -v n=$n \'BEGIN { printf "Time:\\t\\t\\t%e sec\\nMByte/s:\\t\\t%.2f\\n", '
                    "n * 1e-4, 16384 / 1e-4 / 1e6 }'\n")
    fake.chmod(0o755)
    commands = bench.bench_commands({'L1': 2**14}, [min(os.sched_getaffinity(0))], 'sse')
    for command in commands:
        command['iterations'] = 100
    script = tmp_path / 'cross_check.sh'
    script.write_text(bench.script(commands))
    calls = tmp_path / 'calls'
    done = subprocess.run(
        ['sh', '-eu', str(script)], capture_output=True, text=True, check=True,
        env=os.environ | {'PATH': f'{tmp_path}:{os.environ["PATH"]}', 'CALLS': str(calls)})
    # 0.01 s is too short: again, for half a second; the others are right at once.
    assert calls.read_text().split('\n')[:-1] == [
        'load_sse 100', 'load_sse 5000', 'copy_sse 5000', 'triad_sse 5000']
    assert done.stdout.endswith('### plumbline-cross-check-done calls=4\n')
    assert done.stderr == ''


def test_our_streams_run_after_each_repeat_are_found_and_agree_by_turns(tmp_path):
    '''In the second repeat the machine was twice as fast; a rate of one repeat is not held against the other's.'''
    samples = [{'level': 'L1', 'threads': 1, 'kernel': 'a', 'repeat': repeat, 'traffic_rate': rate, 'traffic_factor': 1,
                'own_rate': own} for repeat, rate, own in ((0, 50, 90), (0, 100, 90), (1, 200, 190), (2, 100, 110))]
    assert bench_output.agreement(samples, 'L1', 1) == pytest.approx([0.9, 0.95, 1.1])
    assert bench_output.agreement(samples, 'L2', 1) == bench_output.agreement(None, 'L1', 1) == []
    assert bench_output.agreement([sample | {'own_rate': None} for sample in samples], 'L1', 1) == []
    commands = bench.bench_commands({'L1': 2**14, 'L2': 2**18}, [0], 'sse', 'full')
    script = bench.script(commands, {('L1', 1): 'run-ours L1', ('L2', 1): 'run-ours L2'})
    lines = [line.split()[0] if line.startswith('cross_check ') else line for line in script.splitlines()
             if line.startswith(('cross_check ', 'run-ours', 'echo "### plumbline-own'))]
    block = ['cross_check'] * 5
    assert lines == [line for level in ('L1', 'L2') for repeat in range(3) for line in (
        *block, f'echo "### plumbline-own level={level} threads=1 repeat={repeat}"', f'run-ours {level} || true')]
    text = log((TRIAD, triad(), 0)).replace('### plumbline-cross-check-done', (
        '### plumbline-own level=L1 threads=2 repeat=0\nours\n### plumbline-own level=memory threads=2 repeat=1\n'
        '### plumbline-cross-check-done'))
    assert [part[:3] for part in bench_output.own_parts(text)] == [('L1', 2, 0), ('memory', 2, 1)]
    assert bench_output.own_parts(text)[0][3].strip() == 'ours' and bench_output.own_parts(text)[1][3].strip() == ''
    assert len(bench_output.parse_cross_check(text)) == 1


# --- likwid-pin ---

def test_pin_command():
    assert pin.pin_command([4, 2]) == ['likwid-pin', '-q', '-c', '4,2']
    assert pin.pin_command([0], ['./triad', '--size', 100]) == [
        'likwid-pin', '-q', '-c', '0', './triad', '--size', '100']
    assert pin.pin_environment([4, 2]) == {'OMP_NUM_THREADS': '2', 'LIKWID_IGNORE_CPUSET': '1'}
    assert pin.omp_environment([4, 2]) == {
        'OMP_NUM_THREADS': '2', 'OMP_PLACES': '{4},{2}', 'OMP_PROC_BIND': 'close'}


@pytest.mark.parametrize('argument', ['two words', '', 'new\nline'])
def test_arguments_that_likwid_pin_would_split_are_refused(argument):
    with pytest.raises(PlumblineError, match='split or drop'):
        pin.pin_command([0], ['./program', argument])


@pytest.mark.parametrize('cpus', [[], [1, 1]])
def test_bad_cpus_are_refused(cpus):
    with pytest.raises(PlumblineError, match='cannot pin'):
        pin.pin_command(cpus)
    with pytest.raises(PlumblineError, match='cannot pin'):
        pin.omp_environment(cpus)


PLACES = '''
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
int main(void) {
    int cpus[64];
    #pragma omp parallel
    cpus[omp_get_thread_num()] = sched_getcpu();
    for (int i = 0; i < omp_get_max_threads(); i++) printf("%d ", cpus[i]);
    return 0;
}
'''


@pytest.fixture(scope='module')
def places(tmp_path_factory):
    program = tmp_path_factory.mktemp('places') / 'places'
    subprocess.run(['gcc', '-fopenmp', '-x', 'c', '-', '-o', str(program)], input=PLACES, text=True,
                   check=True)
    return str(program)


def where(command, environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(('OMP_', 'LIKWID_'))}
    done = subprocess.run(command, capture_output=True, text=True, check=True,
                          env=clean | environment)
    return [int(cpu) for cpu in done.stdout.split()]


@pytest.mark.native
def test_live_likwid_pin_takes_cpu_numbers_in_a_cpuset(places):
    native.needs('likwid-pin', 'taskset')
    cpu = max(os.sched_getaffinity(0))
    command = ['taskset', '-c', str(cpu), *pin.pin_command([cpu], [places])]
    assert where(command, pin.pin_environment([cpu])) == [cpu]


# --- likwid-perfctr ---

def test_tables_and_volume_of_an_intel_processor():
    parsed = perfctr.parse_perfctr_csv(data('by_hand_icx_mem.csv'))
    assert list(parsed) == ['triad', 'copy'] and list(parsed['triad']) == ['MEM']
    triad_region = parsed['triad']['MEM']
    assert triad_region['seconds'] == {0: 0.125, 1: 0.125}
    assert parsed['copy']['MEM']['calls'] == {0: 4, 1: 4}
    assert triad_region['events']['INSTR_RETIRED_ANY:FIXC0'] == {0: 3e8, 1: 2.9e8}
    assert triad_region['events']['CAS_COUNT_WR:MBOX7C1'] == {0: 2.5e6, 1: 0}
    assert len(triad_region['events']) == 20 and len(triad_region['metrics']) == 10
    assert triad_region['metrics']['Memory bandwidth [MBytes/s]'] == {0: 40960, 1: 0}
    # 8 channels x (7.5 + 2.5) million lines of 64 bytes.
    assert perfctr.memory_volume_bytes(parsed, 'triad') == pytest.approx(8 * 10e6 * 64)
    assert perfctr.memory_volume_bytes(parsed, 'copy') == pytest.approx(8 * 3.75e6 * 64)


def test_halves_and_sockets_of_zen3_add_up():
    both = perfctr.parse_perfctr_csv(data('by_hand_zen3_mem1.csv') + data('by_hand_zen3_mem2.csv'))
    # 8 channels x (1.0 + 0.5) million lines of 64 bytes on the two sockets.
    assert perfctr.memory_volume_bytes(both, 'triad') == pytest.approx(8 * 1.5e6 * 64)
    assert both['triad']['MEM1']['metrics']['Clock [MHz]'] == {0: 3500, 64: None}
    half = perfctr.parse_perfctr_csv(data('by_hand_zen3_mem1.csv'))
    with pytest.raises(PlumblineError, match='MEM1 did not count all'):
        perfctr.memory_volume_bytes(half, 'triad')


@pytest.mark.parametrize('old, new, message', [
    ('7500000,0', 'many,0', "'many' is not a number"),
    ('Group 1 Raw,MEM,20', 'Group one,MEM,20', 'cannot read'), ('TABLE,Region triad,', 'TABLE,', 'cannot read'),
    ('Metric,HWThread 0,HWThread 1', 'Metric,HWThread,x', 'cannot read'),
    ('Event,Counter', 'Event', 'no heading Event,Counter')])
def test_garbled_tables_are_refused(old, new, message):
    text = data('by_hand_icx_mem.csv')
    assert old in text
    with pytest.raises(PlumblineError, match=message):
        perfctr.parse_perfctr_csv(text.replace(old, new))


def test_a_region_that_is_not_there_is_named():
    with pytest.raises(PlumblineError, match="no region 'stream' .* 'triad', 'copy'"):
        perfctr.memory_volume_bytes(perfctr.parse_perfctr_csv(data('by_hand_icx_mem.csv')), 'stream')


@pytest.mark.parametrize('name, reason', [
    ('perfctr_no_msr.txt', 'Unsupported Processor'),
    ('perfctr_no_daemon.txt', 'Unsupported Processor'),
    ('perfctr_groups_none.txt', 'No groups defined for nil'),
    ('by_hand_icx_mem.csv', None)])
def test_why_counters_cannot_be_read(name, reason):
    assert perfctr.unavailable_reason(data(name)) == reason


def test_missing_permission_is_the_reason_on_a_known_processor():
    text = '\n'.join(line for line in data('perfctr_no_msr.txt').splitlines()
                     if 'Unsupported' not in line)
    assert perfctr.unavailable_reason(text) == (
        'Cannot access MSR device file /dev/cpu/0/msr: No such file or directory.')
    with pytest.raises(PlumblineError, match='no table: Unsupported Processor'):
        perfctr.parse_perfctr_csv(data('perfctr_no_daemon.txt'))


def test_groups():
    groups = perfctr.parse_groups(data('by_hand_groups.txt'))
    assert groups == ['BRANCH', 'L3', 'MEM', 'MEM_DP']
    assert perfctr.parse_groups(data('perfctr_groups_none.txt')) == []
    assert perfctr.group_for('ICX', groups) == ('MEM',)
    assert perfctr.group_for('zen3', ['L3', 'MEM1', 'MEM2']) == ('MEM1', 'MEM2')
    with pytest.raises(PlumblineError, match='MEM1 and MEM2 of LIKWID count the memory channels of zen3, not those of zen4'):
        perfctr.group_for('zen4', ['L3', 'MEM1', 'MEM2'])
    assert perfctr.group_for('x', ['L3', 'MEM_DP']) == ('MEM_DP',)
    with pytest.raises(PlumblineError, match='on neoverse_n1 the event .* counts instructions'):
        perfctr.group_for('neoverse_n1', groups)
    with pytest.raises(PlumblineError, match='no group for memory on ivybridge'):
        perfctr.group_for('ivybridge', ['BRANCH', 'L3', 'FLOPS_DP'])


@pytest.mark.parametrize('script, why', [
    ('#!/no/such/lua', 'No such file or directory'), ('#!/bin/sh\necho "module lua is not loaded" >&2; exit 1', 'module lua is not loaded'), ('#!/bin/sh', '')])
def test_a_likwid_pin_that_does_not_run_is_not_used(script, why, tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', str(tmp_path))
    assert pin.found() == (None, '')
    (tmp_path / 'likwid-pin').write_text(f'{script}\n')
    (tmp_path / 'likwid-pin').chmod(0o755)
    path = str(tmp_path / 'likwid-pin')
    assert pin.found() == ((None, f'{path} does not run: {why}') if why else (path, ''))


@pytest.mark.native
def test_live_counters_or_the_reason_why_not():
    native.needs('likwid-perfctr')
    done = subprocess.run(['likwid-perfctr', '-M', '0', '-O', '-g', 'MEM', '-C',
                           topology.cpu_list([min(os.sched_getaffinity(0))]), 'true'],
                          capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode:
        assert perfctr.unavailable_reason(text)
    else:
        assert perfctr.parse_perfctr_csv(text)


def test_a_region_is_entered_for_samples_only(programs, tmp_path):
    '''Its calls are of the same work each: traffic is taken from them by their number.'''
    if 'liblikwid' not in native.output_of('ldd', programs.path('triad')):
        pytest.skip('built without LIKWID')
    library = tmp_path / 'markers.so'
    native.output_of('cc', '-shared', '-fPIC', '-o', library, pathlib.Path(__file__).parent / 'interpose/markers.c')
    found = programs.run('triad', '--variants', 'plain', '--size', 2**21, '--samples', 10, '--passes', 4, LD_PRELOAD=str(library),
                         LIKWID_FILEPATH=str(tmp_path / 'counts'))
    record, = found.measurements
    warmed = 10 if record['level'] != 'memory' else 0      # data that stay in a cache are brought back before each
    assert found.errors.splitlines() == ['left triad-plain-2097152-1'] * (10 + warmed)
