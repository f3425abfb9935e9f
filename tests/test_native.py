'''The native programs: right results, wrong results found, bad input refused, loops as written.'''

import ctypes
import itertools
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import numpy as np
import pytest

import native
import rfm
from native import CPUS, KERNELS, QUICK, SAMPLES, SOURCE, all_right, edges_of, environment, needs, output_of, refused, two_cpus, x86_only
from plumbline.model import records
from plumbline.system import cgroup
from waiting import until

THREADS = ['1', '2'] if len(CPUS) > 1 else ['1']


def cases(measurements, *keys):
    return [tuple(record[key] for key in keys) for record in measurements]


# --- right results ---------------------------------------------------------------------------------

def test_every_variant_is_right(build):
    sizes = [1, 2, 3, 7, 8, 63, 1000003]
    found = build.measured('triad', '--variants', 'all', '--size', native.listed(sizes), '--threads', ','.join(THREADS), *QUICK, '--probes', 'on').measurements
    expected = itertools.product(build.runnable('triad'), sizes, map(int, THREADS))
    assert sorted(cases(found, 'variant', 'size', 'threads')) == sorted(expected)
    assert all_right(found)


def test_no_file_uses_one_that_uses_it(programs):
    assert native.circles(programs.folder) == []


@pytest.mark.parametrize('kernel', [kernel for kernel in KERNELS if kernel != 'cores'])
def test_the_serial_build_is_right(programs, kernel):
    found = programs.measured(f'{kernel}-serial', '--variants', 'all', '--size', edges_of(kernel), *QUICK).measurements
    assert {record['variant'] for record in found} == programs.runnable(kernel)
    assert all(record['valid'] for record in found)
    assert {record['options']['threading'] for record in found} == {'serial'}


def test_every_limit_stream_is_right(build):
    found = build.measured('limits', '--variants', 'all', '--size', '1,31,32,95,1003',
                           '--threads', ','.join(THREADS), *QUICK).measurements
    assert {record['variant'] for record in found} == build.runnable('limits')
    assert all_right(found)


@pytest.mark.parametrize('options', [['--shift', '0,8,32,128,1024'], ['--shift', '8,24', '--size', native.listed([*range(1, 10), 15, 16, 17, 31, 32, 33])], ['--alloc', 'static,malloc,dynamic', '--size', '999984'],
                                     ['--alloc', 'malloc,dynamic', '--shift', '0,1344'], ['--init', 'noinit,parinit'], ['--pages', 'base'],
                                     ['--sync', 'pass', '--passes', '3'], ['--per-thread', '--limit'], ['--distance', '8', '--block-size', '8']],
                         ids=' '.join)
def test_every_way_to_lay_out_and_run_is_right(build, options):
    found = build.measured('triad', '--variants', 'all', '--size', 5000, '--threads', ','.join(THREADS),
                              *QUICK, *options).measurements
    assert all_right(found)
    given = dict(zip(options[::2], options[1::2]))
    for name in ('shift', 'alloc', 'init', 'pages', 'sync'):
        if f'--{name}' in given:
            stated = {str(record['options'][name]) for record in found}
            assert stated == set(given[f'--{name}'].split(','))
    assert {record.get('private_lines', False) for record in found} == {given.get('--sync') != 'pass'}    # a barrier's line goes from thread to thread


def test_what_runs_by_name_only_is_right(build):
    '''A parallel region for each pass, on teams that change; block preload in high-level languages; Fortran's ALLOCATE.'''
    extra = {variant.name for variant in build.variants('triad') if variant.in_build and not variant.in_all}
    assert {'openmp', 'preload_c'} <= extra
    found = build.measured('triad', '--variants', ','.join(['plain', *extra]), '--size', '1,2,3,63,1003,20011', '--block-size', '8,512',
                           '--threads', ','.join(THREADS), *SAMPLES, '--passes', 3).measurements
    assert all_right(found) and {record['variant'] for record in found} == {'plain', *extra}
    assert len(found) == 6 * 2 * len(THREADS) * (1 + len(extra))
    if 'preload_fortran' in extra:
        found = build.measured('triad', '--variants', 'all', '--alloc', 'allocate,malloc', '--size', 5003, '--threads', ','.join(THREADS),
                               *QUICK).measurements
        assert all_right(found) and {record['options']['alloc'] for record in found} == {'allocate', 'malloc'}
    else:
        refused(build.run('triad', '--alloc', 'allocate'), '--alloc allocate', 'without a Fortran compiler')


@two_cpus
def test_regions_run_where_they_are_asked_to(programs):
    '''Also after a smaller team, for which a runtime may have ended threads.'''
    places = ','.join(f'{{{cpu}}}' for cpu in CPUS[:2])
    chosen = ['--variants', 'openmp,plain', '--threads', '2,1', '--cpus', ','.join(map(str, CPUS[:2])), *QUICK]
    found = programs.measured('triad', *chosen, OMP_PLACES=places, OMP_PROC_BIND='close').measurements
    assert {tuple(record['cpus']) for record in found} == {tuple(CPUS[:2]), tuple(CPUS[:1])}
    refused(programs.run('triad', '--variants', 'openmp', '--threads', 2, OMP_THREAD_LIMIT='1'), 'OMP_THREAD_LIMIT')


def test_sizes_may_be_per_thread(programs):
    found = programs.measured('triad', '--per-thread', '--size', 1000, '--threads', ','.join(THREADS), *QUICK)
    assert all(record['size'] == 1000 * record['threads'] for record in found.measurements)


# --- what they find out about where they run ---------------------------------------------------------

HARNESS = ['pages.c', 'cgroup.c', 'clock.c', 'error.c', 'processes.c', 'results.c', 'topology.c', 'threads.c', 'parts.c', 'base_clock.c']


@pytest.fixture(scope='module')
def loops(programs, tmp_path_factory):
    '''What the programs find out about where they run, as functions.'''
    return native.library(programs, tmp_path_factory.mktemp('loops'), 'triad', *(f'harness/{name}' for name in (*HARNESS, 'streams.c', 'streams_x86.c')))


def test_limit_streams_do_what_they_say_and_touch_nothing_beside(loops):
    '''Against numpy: what a stream writes beyond its part the programs do not see, since it is what the next one writes there.'''
    needs('nm')
    rng, margin = np.random.default_rng(20042), 16
    has = {'avx512': 'avx512f', 'avx2': 'avx2'}
    flags = pathlib.Path('/proc/cpuinfo').read_text().split()
    names = re.findall(r'\bT (pl_(?:load|store|update|copy|triad)_\w+)$', output_of('nm', '-D', loops._name), re.MULTILINE)
    assert {f'pl_{kind}_plain' for kind in ('load', 'store', 'update', 'copy', 'triad')} <= set(names)
    for name, lines in itertools.product(names, range(10)):
        if (isa := has.get(name.rsplit('_', 1)[1])) and isa not in flags:
            continue
        room = rng.integers(-1000, 1000, (4, 8 * 9 + 2 * margin + 8)).astype(float)
        arrays = [row[-row.ctypes.data % 64 // 8:][:8 * 9 + 2 * margin] for row in room]
        expected, part = [array.copy() for array in arrays], slice(margin, margin + 8 * lines)
        a, b, c, d = (array[part].copy() for array in arrays)
        loop = getattr(loops, name)
        loop.restype = ctypes.c_double
        result = loop(ctypes.c_size_t(lines), *(ctypes.c_void_p(array.ctypes.data + 8 * margin) for array in arrays))
        written = {'load': {}, 'store': dict.fromkeys(range(4), 1), 'update': dict(enumerate((-a, -b, -c, -d))), 'copy': {2: a, 3: b}, 'triad': {0: b + c * d}}
        for number, values in written[name.split('_')[1]].items():
            expected[number][part] = values
        assert result == (sum(x.sum() for x in (a, b, c, d)) if '_load_' in name else 0), name
        for array, right in zip(arrays, expected):
            np.testing.assert_array_equal(array, right, f'{name}, {lines} lines')


def test_novec_is_kept_from_vectors_under_nvc():
    '''Which calls itself GNU C, and does nothing of the attribute.'''
    loops = output_of('cc', '-E', '-U__clang__', '-D__NVCOMPILER', '-I', SOURCE / 'harness', SOURCE / 'kernels/triad/kernel.c')
    assert loops.count('#pragma loop novector') == 1 and 'no-tree-vectorize' not in loops


def test_level_of_many_cpus_is_found_at_once(loops):
    '''The caches of a CPU are read once: a node may have hundreds, and a curve hundreds of cases.'''
    cpus = (ctypes.c_int * 1024)(*itertools.islice(itertools.cycle(CPUS), 1024))
    begin = time.process_time()
    for _ in range(100):
        loops.pl_level_of(ctypes.c_size_t(10**12), cpus, 1024, 1)
    assert time.process_time() - begin < 0.5


class Cpus(ctypes.Structure):
    _fields_ = [('count', ctypes.c_int), ('cpu', ctypes.POINTER(ctypes.c_int))]


#: A kernel of 6000 CPUs, of which 3 and the last two may be used.
LARGE = '''
#include <errno.h>
#include <string.h>
int affinity_of_a_large_machine(int process, unsigned long bytes, void *set)
{
    (void)process;
    if (bytes < 6016 / 8)
        return errno = EINVAL, -1;
    memset(set, 0, bytes);
    ((unsigned char *)set)[0] = 8;
    ((unsigned char *)set)[749] = 0xC0;
    return 0;
}
'''


def test_machines_of_more_than_1024_cpus(loops, tmp_path, monkeypatch):
    (tmp_path / 'large.c').write_text(LARGE)
    output_of('cc', '-std=gnu17', '-shared', '-fPIC', '-Dsched_getaffinity=affinity_of_a_large_machine', '-I', SOURCE / 'harness',
              *(SOURCE / 'harness' / name for name in HARNESS), tmp_path / 'large.c', '-o', tmp_path / 'large.so', '-lm')
    large = ctypes.CDLL(tmp_path / 'large.so')
    large.pl_allowed_cpus.restype = large.pl_parse_cpulist.restype = Cpus
    monkeypatch.setenv('LIKWID_PIN', '5999,2000-2001')
    for _ in range(2):
        allowed = large.pl_allowed_cpus()
        assert allowed.cpu[:allowed.count] == [3, 2000, 2001, 5998, 5999]
    listed = large.pl_parse_cpulist(b'0-4095,65535,65536', None)
    assert listed.cpu[:listed.count] == [*range(4096), 65535]
    assert large.pl_level_of(ctypes.c_size_t(10**12), (ctypes.c_int * 3)(-1, 5999, 65535), 3, 1) == 0


@pytest.mark.parametrize('bound, together', [
    ([[0], [1], [2], [3]], 2), ([[0, 1], [1, 0]], 2), ([[0, 2]], 0), ([[2], [3], [1]], 2), ([[0], [1, 2]], 1),
    ([[0], [9]], 1),        # of no node
])
def test_threads_of_one_numa_node_may_share_their_data(loops, bound, together):
    '''Nodes of the CPUs 0 and 1, 2 and 3: wherever a thread of one node touches a page first, it lies there.'''
    def lists(of):
        return (Cpus * len(of))(*(Cpus(len(cpus), (ctypes.c_int * len(cpus))(*cpus)) for cpus in of))
    assert loops.pl_count_together(lists(bound), len(bound), lists([[0, 1], [2, 3]]), 2) == together


@pytest.mark.parametrize('ranks', [1, 2, 3])
def test_ranks_on_a_cpu_share_its_caches(loops, programs, ranks):
    caches = [cache for cache in programs.measured('triad', '--size', 8, *QUICK, on=CPUS[:1]).machine['caches'] if cache['level'] <= 3]
    cpus = (ctypes.c_int * 3)(*[CPUS[0]] * 3)
    for cache, beyond in zip(caches, [cache['level'] for cache in caches[1:]] + [0]):
        fits = cache['size'] // ranks
        assert loops.pl_level_of(ctypes.c_size_t(fits), cpus, 1, ranks) == cache['level']
        assert loops.pl_level_of(ctypes.c_size_t(fits + 1), cpus, 1, ranks) == beyond


GROUPS = {'none': ({}, (0, math.inf)), 'own group': ({'proc/self/cgroup': '0::/slurm/job_1', 'sys/fs/cgroup/slurm/job_1/cpu.max': '150000 100000',
                                                      'sys/fs/cgroup/slurm/job_1/memory.max': '1073741824'}, (1.5, 2**30)),
          'a parent is tighter': ({'proc/self/cgroup': '0::/slurm/job_1/step_0', 'sys/fs/cgroup/slurm/cpu.max': '50000 100000',
                                   'sys/fs/cgroup/slurm/job_1/cpu.max': '150000 100000', 'sys/fs/cgroup/slurm/job_1/memory.max': 'max',
                                   'sys/fs/cgroup/slurm/memory.max': '4096'}, (0.5, 4096)),
          'no limit': ({'proc/self/cgroup': '0::/', 'sys/fs/cgroup/cpu.max': 'max 100000'}, (0, math.inf)),
          'version 1': ({'proc/self/cgroup': '5:cpu,cpuacct:/a\n4:cpuset:/b\n3:memory:/c\n0::/d', 'sys/fs/cgroup/cpu/a/cpu.cfs_quota_us': '25000',
                         'sys/fs/cgroup/cpu/a/cpu.cfs_period_us': '100000', 'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1',
                         'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000', 'sys/fs/cgroup/memory/c/memory.limit_in_bytes': '8192'}, (0.25, 8192)),
          'version 1, mounted as cpu,cpuacct alone': ({'proc/self/cgroup': '5:cpu,cpuacct:/a', 'sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us': '25000',
                                                       'sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us': '100000'}, (0.25, math.inf)),
          'charged': ({'proc/self/cgroup': '0::/job/step', 'sys/fs/cgroup/job/step/memory.max': '8192', 'sys/fs/cgroup/job/step/memory.current': '1024',
                       'sys/fs/cgroup/job/memory.max': '16384', 'sys/fs/cgroup/job/memory.current': '14336',
                       'sys/fs/cgroup/job/memory.stat': 'anon 10240\nactive_file 1024\ninactive_file 3072'}, (0, 16384 - (14336 - 4096))),
          'charged, version 1': ({'proc/self/cgroup': '3:memory:/c', 'sys/fs/cgroup/memory/c/memory.limit_in_bytes': '8192',
                                  'sys/fs/cgroup/memory/c/memory.usage_in_bytes': '8000',
                                  'sys/fs/cgroup/memory/c/memory.stat': 'active_file 1\ntotal_active_file 500\ntotal_inactive_file 1500'}, (0, 2192)),
          'all charged': ({'proc/self/cgroup': '0::/', 'sys/fs/cgroup/memory.max': '4096', 'sys/fs/cgroup/memory.current': '8192'}, (0, 0)),
          'container': ({'proc/self/cgroup': '0::/host/path/of/container', 'sys/fs/cgroup/cpu.max': '200000 100000'}, (2, math.inf)),
          'garbage': ({'proc/self/cgroup': '0::', 'sys/fs/cgroup/cpu.max': ''}, (0, math.inf))}


@pytest.mark.parametrize('case', GROUPS)
def test_limits_of_control_groups(loops, tmp_path, case):
    files, (quota, memory) = GROUPS[case]
    rfm.laid(tmp_path, {name: text + '\n' for name, text in files.items()})
    loops.pl_cpu_quota.restype = loops.pl_memory_left.restype = ctypes.c_double
    root = str(tmp_path).encode()
    assert (loops.pl_cpu_quota(root), loops.pl_memory_left(root)) == (quota, memory)
    assert ((cgroup.cpu_quota(tmp_path) or 0) == quota)       # Python reads the same


def test_there_is_no_limit_where_lines_have_another_length(programs, tmp_path):
    library = tmp_path / 'files.so'
    output_of('cc', '-shared', '-fPIC', '-o', library, pathlib.Path(__file__).parent / 'interpose/hybrid.c')
    (tmp_path / f'.sys.devices.system.cpu.cpu{CPUS[0]}.cache.index0.coherency_line_size').write_text('256\n')
    made = {'LD_PRELOAD': str(library), 'HYBRID': f'{tmp_path}/'}
    refused(programs.run('triad', '--limit', *QUICK, **made), '--limit: L1 has lines of 256 bytes here, and traffic is counted in lines of 64')
    assert programs.measured('triad', '--size', 8, *QUICK, **made).machine['caches'][0]['line'] == 256


def test_no_huge_page_of_half_a_gigabyte_has_data_of_two_nodes(programs, tmp_path):
    '''As on 64-bit Arm with base pages of 64 KiB.'''
    if len(CPUS) < 2:
        pytest.skip('one CPU is on one node')
    library = tmp_path / 'files.so'
    output_of('cc', '-shared', '-fPIC', '-o', library, pathlib.Path(__file__).parent / 'interpose/hybrid.c')
    made = {'LD_PRELOAD': str(library), 'HYBRID': f'{tmp_path}/', 'OMP_PROC_BIND': 'true', 'OMP_PLACES': f'{{{CPUS[0]}}},{{{CPUS[1]}}}'}
    node = '.sys.devices.system.node.'
    rfm.laid(tmp_path, {f'{node}has_cpu': '0-1\n', f'{node}node0.cpulist': f'{CPUS[0]}\n', f'{node}node1.cpulist': f'{CPUS[1]}\n'})
    for size, of_all in ((2**21, 'huge'), (2**29, 'base')):
        (tmp_path / '.sys.kernel.mm.transparent_hugepage.hpage_pmd_size').write_text(f'{size}\n')
        found = programs.measured('triad', '--size', 8000, '--threads', '1,2', *QUICK, **made).measurements
        assert {(record['threads'], record['options']['pages']) for record in found} == {(1, 'huge'), (2, of_all)}


@pytest.mark.parametrize('files, later, seconds', [
    ({}, {}, math.nan),
    # The parent has 50 minutes from the past, and one second more in the end.
    ({'proc/self/cgroup': '0::/job/step', 'sys/fs/cgroup/job/cpu.stat': 'usage_usec 9\nthrottled_usec 3000000000',
      'sys/fs/cgroup/job/step/cpu.stat': 'usage_usec 9\nthrottled_usec 500000'},
     {'sys/fs/cgroup/job/cpu.stat': 'throttled_usec 3001000000', 'sys/fs/cgroup/job/step/cpu.stat': 'throttled_usec 20500000'}, 20),
    ({'proc/self/cgroup': '5:cpu,cpuacct:/a\n0::/', 'sys/fs/cgroup/cpu/a/cpu.stat': 'nr_throttled 3\nthrottled_time 750000000'},
     {'sys/fs/cgroup/cpu/a/cpu.stat': 'nr_throttled 4\nthrottled_time 1000000000'}, 0.25)])
def test_throttled_time_of_control_groups(loops, tmp_path, files, later, seconds):
    loops.pl_throttled.restype = ctypes.c_double
    for told, expected in ((files, 0 * seconds), (later, seconds)):
        rfm.laid(tmp_path, {name: text + '\n' for name, text in told.items()})
        assert loops.pl_throttled(str(tmp_path).encode()) == pytest.approx(expected, nan_ok=True)


class Base(ctypes.Structure):
    _fields_ = [('clock', ctypes.c_double), ('source', ctypes.c_char_p), ('nominal', ctypes.c_double), ('turbo', ctypes.c_bool)]


FREQUENCY, NOMINAL, NO_TURBO = 'cpu3/cpufreq/base_frequency', 'cpu3/acpi_cppc/nominal_freq', 'intel_pstate/no_turbo'


@pytest.mark.parametrize('files, counter, expected', [
    ({FREQUENCY: '2400000'}, 0, (2400e6, b'cpufreq', 0, False)), ({NOMINAL: '2450'}, 0, (2450e6, b'ACPI CPPC', 0, False)),
    ({FREQUENCY: '2100000'}, 2095e6, (2100e6, b'cpufreq', 0, False)),
    ({FREQUENCY: '1500000', NOMINAL: '2450', NO_TURBO: '0'}, 2400e6, (1500e6, b'cpufreq', 2400e6, True)),
    ({FREQUENCY: '2100000', NO_TURBO: '1'}, 2400e6, (2100e6, b'cpufreq', 2400e6, False)),
    ({FREQUENCY: '2100000'}, 2400e6, (2100e6, b'cpufreq', 2400e6, False)),
    ({FREQUENCY: '2800000', NO_TURBO: '1'}, 2400e6, (2800e6, b'cpufreq', 0, False)),        # a core that SST-BF prefers
    ({FREQUENCY: '1500000', NO_TURBO: '0'}, 0, (1500e6, b'cpufreq', 0, False)),             # AMD, Arm, a virtual machine
    ({NOMINAL: '2100'}, 2400e6, (2100e6, b'ACPI CPPC', 0, False)),
    ({FREQUENCY: '0'}, 2400e6, (2400e6, b'time-stamp counter', 0, False))])
def test_a_base_clock_that_falls_is_told_beside_the_nominal_one(loops, tmp_path, files, counter, expected):
    if expected[1] == b'time-stamp counter' and os.uname().machine != 'x86_64':
        pytest.skip('no time-stamp counter')
    rfm.laid(tmp_path / 'sys/devices/system/cpu', {name: text + '\n' for name, text in files.items()})
    loops.pl_base_clock.restype = Base
    found = loops.pl_base_clock(str(tmp_path).encode(), 3, ctypes.c_double(counter))
    assert (found.clock, found.source, found.nominal, found.turbo) == expected


DMI = 'sys/class/dmi/id/modalias'


@pytest.mark.parametrize('files, expected', [
    ({}, b'not known'), ({DMI: 'dmi:bvnHPE:svnHPE:pnProLiantRL300Gen11:'}, b'no'), ({DMI: 'dmi:bvnEDKII:svnQEMU:pnKVMVirtualMachine:'}, b'yes'),
    ({DMI: 'dmi:svnAmazonEC2:pnc7g.xlarge:'}, b'yes'), ({DMI: 'dmi:svnAmazonEC2:pnc7g.metal:'}, b'no'),
    ({DMI: 'dmi:svnMicrosoftCorporation:pnVirtualMachine:'}, b'yes'), ({'proc/device-tree/hypervisor/compatible': 'linux,kvm'}, b'yes'),
    ({'sys/hypervisor/type': 'xen', DMI: 'dmi:svnHPE:'}, b'yes')])
def test_a_hypervisor_is_known_by_what_linux_shows(loops, tmp_path, files, expected):
    rfm.laid(tmp_path, files)
    loops.pl_shown_virtual.restype = ctypes.c_char_p
    assert loops.pl_shown_virtual(str(tmp_path).encode()) == expected


def test_arrays_are_placed_and_guarded(tmp_path):
    needs('cc')
    source = pathlib.Path(__file__).with_name('native_arrays.c')
    harness = [SOURCE / 'harness' / name for name in (*HARNESS, 'arrays.c')]
    output_of('cc', '-O1', '-g', '-Wall', '-Wextra', '-fsanitize=address,undefined', '-fno-sanitize-recover=all',
              '-I', SOURCE / 'harness', source, *harness, '-o', tmp_path / 'arrays', '-lm')
    output_of(tmp_path / 'arrays', env=environment())


# --- placement ---------------------------------------------------------------------------------------

@two_cpus
def test_placement_as_asked_or_not(programs):
    first, second = CPUS[:2]
    places = {'OMP_PLACES': f'{{{second}}},{{{first}}}', 'OMP_PROC_BIND': 'close'}
    options = ['--threads', 2, '--size', 1000, *QUICK]
    swapped = programs.run('triad', '--cpus', f'{first},{second}', *options, **places)
    record, = swapped.measurements
    assert swapped.code == 1
    assert record['cpus'] == [second, first]
    assert f'thread 0 ran on CPU {second}, asked for CPU {first}' in swapped.errors
    assert f'thread 1 ran on CPU {first}, asked for CPU {second}' in swapped.errors
    complaint = records.check_placement(record, [first, second])
    assert f'thread 0 was placed on CPU {first} but ran on CPU {second}' in complaint
    record, = programs.measured('triad', '--cpus', f'{second},{first}', *options, **places).measurements
    assert records.check_placement(record, [second, first]) is None


# --- bad input ---------------------------------------------------------------------------------------

@pytest.mark.parametrize('options', ['--variants fast', '--variants ,', '--variants plain,,nt', '--variants all,plain', '--size 0', '--size -5',
                                     '--size 1.5', '--size 1e13', '--size 1e16', '--size ,', '--size 1,,2', '--size inf', '--size 1e15 --per-thread',
                                     '--threads 0', '--threads 1,1', '--threads 4294967297', '--threads one', '--threads 2', '--cpus ', '--cpus 0,x',
                                     '--cpus 0-', '--cpus 0,', '--cpus -1', '--cpus 1-0', '--cpus 0-99999999999', '--cpus 1023', '--block-size 100',
                                     '--distance 0', '--distance 1152921504606846976', '--shift 3', '--shift 1e15', '--alloc static --size 999985',
                                     '--shift 2048 --alloc static', '--shift 0,8 --alloc malloc', '--alloc heap', '--samples 3',
                                     '--samples 2 --passes 1', '--samples 4294967310', '--passes 0', '--min-time 1e-9', '--min-time nan', '--min-time 0.01s', '--min-time ',
                                     '--min-time 61', '--sweep 10:5:3', '--sweep abc', '--sweep 1:10', '--sweep 1:10:1', '--sweep 1:10:3:4',
                                     '--sweep 1:1e9:1e9', '--init twice', '--init ,', '--pages ,', '--pages small', '--sync ,', '--fast', '--table=5',
                                     '-xy', '--size', 'stray', '--size 8 stray', '-'])
def test_bad_input_is_refused(programs, options):
    words = options.split(' ')
    done = programs.run('triad', *words, on=CPUS[:1])
    refused(done, 'stray' if 'stray' in words else words[0].split('=')[0])
    assert done.text == ''


@two_cpus
def test_cpus_outside_the_affinity_mask_are_refused(programs):
    refused(programs.run('triad', '--cpus', CPUS[1], on=CPUS[:1]), f'--cpus {CPUS[1]}', 'affinity')


@two_cpus
def test_more_threads_than_the_runtime_gives_are_refused(programs):
    refused(programs.run('triad', '--threads', 2, OMP_THREAD_LIMIT='1'), 'OMP_THREAD_LIMIT')
    assert programs.run('triad', '--threads', 2, *QUICK, OMP_DYNAMIC='true').code == 0


def test_threads_in_the_serial_build_are_refused(programs):
    refused(programs.run('triad-serial', '--threads', 2), '--threads 2', 'serial')


@pytest.mark.parametrize('program', ['limits', 'triad'])
def test_the_usual_variant_is_the_first_that_runs_here(programs, program):
    usual = {record['variant'] for record in programs.measured(program, *QUICK).measurements}
    assert usual == {next(variant.name for variant in programs.variants(program) if variant.runs)}


@pytest.mark.parametrize('options', ['--alloc static', '--alloc malloc', '--shift 8'])
def test_options_that_a_kernel_does_not_have_are_refused(programs, options):
    for kernel in ('limits', 'fdtd', 'fileio', 'chase', 'motion', 'spmv', 'jacobi', 'transpose'):
        refused(programs.run(kernel, *options.split()), options.split()[0])


# --- the work is done, and nothing else --------------------------------------------------------------

def test_twice_the_passes_take_twice_the_time(programs):
    '''A loose guard that a busy machine passes: samples shorter than a slice of the scheduler, and the best of up to
    eight interleaved trials.  Work that a compiler removed would give 1; non-temporal stores to a few lines have two
    speeds, hence 3.  ``plumbline bench`` holds the tight guard.'''
    shortest, ratios = {}, {}
    for trial in range(8):
        for record in programs.measured('triad', '--variants', 'all', '--size', 1000, '--samples', 30,
                                        '--passes', '2000,4000').measurements:
            case = record['variant'], record['passes']
            shortest[case] = min(shortest.get(case, math.inf), *record['seconds'])
        ratios = {variant: shortest[variant, 4000] / shortest[variant, 2000] for variant, _ in shortest}
        if trial > 0 and all(1.5 < ratio < 3 for ratio in ratios.values()):
            return
    pytest.fail(f'time of twice the passes over time of the passes: {ratios}')


@pytest.fixture(scope='module')
def assembly(programs):
    '''The instructions of each function of the triad program, one text each.'''
    needs('objdump')
    if 'GNU' not in programs.measured('triad', '--size', 8, *QUICK).measurements[0]['compiler']:
        pytest.skip('what is expected of the instructions is written for gcc')
    text = output_of('objdump', '-d', '--no-show-raw-insn', programs.path('triad'))
    return dict(re.findall(r'^[0-9a-f]+ <([\w.]+)>:\n(.*?)(?:\n\n|\Z)', text, re.MULTILINE | re.DOTALL))


PACKED = re.compile(r'\tv?(?:fn?m(?:add|sub)\w*|mul|add)pd\b')
SCALAR = re.compile(r'\tv?(?:fn?m(?:add|sub)\w*|mul|add)sd\b')


@x86_only
def test_plain_is_vectorised_and_novec_is_not(assembly):
    assert PACKED.search(assembly['triad_plain'])
    assert SCALAR.search(assembly['triad_novec'])
    assert not PACKED.search(assembly['triad_novec'])
    assert not re.search('[yz]mm', assembly['triad_novec'])


@x86_only
def test_regions_non_temporal_stores_and_prefetches_where_named(assembly):
    assert 'GOMP_parallel' in assembly['triad_openmp'] and 'GOMP_parallel' not in assembly['triad_plain']
    stores = {name: bool(re.search(r'\tv?movntpd\b', text)) for name, text in assembly.items()}
    named = {name for name in assembly if re.match(r'(triad|pl_(store|copy|triad))_nt_', name)}
    assert len(named) == 9
    # preload may have nt inlined
    assert {name for name, found in stores.items() if found and 'preload' not in name} == named
    assert {name for name, text in assembly.items() if '\tprefetch' in text} == {'triad_prefetch'}


@x86_only
def test_loops_call_nothing(assembly):
    loops = [name for name in assembly
             if re.fullmatch(r'triad_(plain|novec|prefetch|fortran|simd\w+|nt\w+)|pl_(load|store|copy|triad)_\w+', name)]
    assert {'triad_plain', 'triad_nt_sse2', 'pl_copy_plain', 'pl_store_plain', 'pl_store_avx2'} <= set(loops)
    calling = [name for name in loops if re.search(r'\tcall|\tjmp +[0-9a-f]+ <(?!' + name + r'\+)', assembly[name])]
    assert not calling


# --- records -----------------------------------------------------------------------------------------

def test_groups_are_complete(programs):
    found = programs.measured('triad', '--variants', 'plain,novec', '--size', '1000,2000', '--limit',
                              '--threads', ','.join(THREADS), '--samples', 12, '--min-time', '0.0002')
    for group, threads in itertools.product((0, 1), map(int, THREADS)):
        mine = [r for r in found.measurements if (r['group'], r['threads']) == (group, threads)]
        limits = [r for r in mine if r['role'] == 'limit']
        assert [r['role'] for r in mine] == ['limit'] * len(limits) + ['kernel'] * 2
        assert {len(r['seconds']) for r in mine} == {12}
        assert {r['working_set'] for r in mine} == {32000 * (group + 1)}
        # The fastest of loads and of stores, of which the triad consists, and the fastest of all, which may be one of them.
        assert len({r['variant'] for r in limits}) == len(limits) <= 3
        assert {part for r in limits if len(r['parts']) == 1 for part in r['parts']} >= {'load', 'fill'}
    assert all_right(found.measurements)
    for record in found.measurements:
        moved = 2 if record['variant'].startswith('update') else 1      # loaded and stored
        assert record['bytes'] == moved * record['passes'] * record['working_set']
        allocate = record['level'] != 'L1' and '_nt' not in record['variant']
        if record['role'] == 'kernel':
            assert record['traffic'] == record['bytes'] * (1.25 if allocate else 1)


def test_later_processes_measure_the_streams_of_the_first(programs, tmp_path):
    def streams(*more):
        found = programs.measured('triad', '--size', '1000,2000', f'--limit={tmp_path / "chosen"}', *more, *QUICK)
        return [(r['group'], r['threads'], r['variant']) for r in found.limits()]

    first = streams()
    assert [tuple(line.split()) for line in (tmp_path / 'chosen').read_text().splitlines()] == [tuple(map(str, one)) for one in first]
    assert [streams() for _ in range(3)] == [first] * 3
    (tmp_path / 'chosen').write_text('0 1 load\n')       # of the second size nobody has chosen
    assert [one[1:] for one in streams() if one[0] == 0] == [(1, 'load')]
    found = programs.run('triad', '--size', 8, f'--limit={tmp_path}/none/chosen', *QUICK)
    assert found.code and 'No such file or directory: name a file that can be written' in found.errors


@two_cpus
def test_threads_that_share_data_count_the_same_work(programs):
    '''A working set of one line: the limit streams of two threads work on what those of one do.'''
    found = programs.measured('triad', '--size', 1, '--limit', '--threads', '1,2', *QUICK)
    moved = {r['variant']: set() for r in found.limits()}
    for r in found.limits():
        assert r['working_set'] == 256
        moved[r['variant']].add(r['bytes'] / r['passes'])
    assert all(found == ({512} if name.startswith('update') else {256}) for name, found in moved.items())


def test_levels_follow_the_caches(programs):
    caches = {c['level']: c for c in programs.measured('triad', '--size', 8, *QUICK).machine['caches']}
    if 1 not in caches:
        pytest.skip('the system does not tell its caches')
    names = [f'L{level}' for level in sorted(caches) if level <= 3] + ['memory']
    expected = {}
    for level, inside, outside in zip(sorted(caches), names, names[1:]):
        fits = caches[level]['size'] // 32
        if fits < 1e7:      # what takes no time
            expected |= {fits: inside, fits + 1: outside}
    found = programs.measured('triad', '--size', ','.join(map(str, expected)), *QUICK, on=CPUS[:1]).measurements
    assert {r['size']: r['level'] for r in found} == expected


@two_cpus
def test_two_threads_have_the_caches_of_both(programs):
    first, *_ = programs.measured('triad', '--size', 8, *QUICK).machine['caches'] or [None]
    if not first or first['level'] != 1 or CPUS[1] in first['shared_cpus']:
        pytest.skip('the two CPUs have no first-level cache each, or the system does not tell')
    places = {'OMP_PLACES': f'{{{CPUS[0]}}},{{{CPUS[1]}}}', 'OMP_PROC_BIND': 'close'}
    fits = 2 * first['size'] // 32
    found = programs.measured('triad', '--threads', '1,2', '--size', f'{fits},{fits + 1}', *QUICK, **places)
    assert cases(found.measurements, 'threads', 'level') == [(1, 'L2'), (2, 'L1'), (1, 'L2'), (2, 'L2')]


def test_the_machine_comes_first_and_tables_do_not_disturb(programs):
    found = programs.run('triad', '--variants', 'all', '--size', '1000,2000', '--limit', '--table', '--samples', 10,
                         '--min-time', '0.0001')
    lines = found.text.splitlines()
    assert found.code == 0
    assert lines[0].startswith('{"record": "machine"')
    assert set(CPUS) == set(found.machine['allowed_cpus']) and {'governor', 'scaling_driver'} <= set(found.machine)
    assert len(found.kernels()) == 2 * len(programs.runnable('triad'))
    assert sum(line.startswith('kernel ') for line in lines) == 2
    assert sum(line.endswith(' yes') for line in lines) == len(found.measurements)
    assert lines[1].startswith('{"record"') and lines[2].startswith('kernel ')


def test_sweep_is_even_in_log_n(programs):
    found = programs.measured('triad', '--sweep', '10:100000:9', *QUICK).measurements
    assert [r['size'] for r in found] == [round(10 ** (1 + k / 2)) for k in range(9)]
    found = programs.measured('triad', '--sweep', '7:123456:12', *QUICK).measurements
    sizes = np.array([r['size'] for r in found])
    assert (sizes[0], sizes[-1], len(sizes)) == (7, 123456, 12)
    step = (123456 / 7) ** (1 / 11)
    assert np.abs(sizes - 7 * step ** np.arange(12)).max() <= 0.5
    found = programs.measured('triad', '--sweep', '1:4:20', *QUICK).measurements
    assert [r['size'] for r in found] == [1, 2, 3, 4]
    for record in programs.measured('triad', '--variants', 'plain,nt', '--size', 1000, '--limit', '--samples', 10,
                                    '--min-time', '0.002').measurements:
        assert np.median(record['seconds']) > 0.25 * 0.002       # what is shorter is measured again with more passes
        assert records.check_worth_reporting(record) == []


def test_a_terminated_program_leaves_nothing(programs, tmp_path):
    shared = pathlib.Path('/dev/shm')
    before = set(os.listdir(shared)) if shared.exists() else set()
    process = subprocess.Popen([programs.path('triad'), '--size', '1000,2000', '--samples', '10', '--min-time', '0.1'],
                               stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment())
    lines = [process.stdout.readline(), process.stdout.readline()]
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=50)
    assert process.returncode == -signal.SIGTERM
    assert len(records.parse(''.join(lines) + rest).measurements) == 1
    assert os.listdir(tmp_path) == []
    left = set(os.listdir(shared)) - before if shared.exists() else set()
    until(lambda: not left or left.isdisjoint(os.listdir(shared)), f'{left} gone')       # as what tests beside this one had there


def test_an_error_is_written_in_one_piece(programs):
    '''What an MPI or a launcher writes at the same time would come in between.'''
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, its:
        ours.settimeout(10)
        done = subprocess.run([programs.path('triad'), '--no-such-option'], stderr=its, stdout=subprocess.DEVNULL, timeout=30)
        said = ours.recv(10000).decode()
    assert done.returncode == 2
    assert said.startswith('plumbline: ') and said.endswith('\n') and '--no-such-option' in said
