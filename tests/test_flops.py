'''Peak arithmetic: fused multiply-adds in registers and DGEMM: right, of the instructions that they are named after, and their
check.'''

import functools
import runpy
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import rfm
from native import CPUS, QUICK, SOURCE, needs, output_of, two_cpus, x86_only
from plumbline.model import probes
from plumbline.system import codegen, datasheet, topology

THREADS = ['1', '2', '3'][:len(CPUS)]

#: Registers of a stream on x86-64, and the numbers in each.
CHAINS = {'scalar': (12, 1), 'simd128': (12, 2), 'simd256': (12, 4), 'simd512': (24, 8)}


def test_every_variant_is_right_on_several_threads(build):
    found = build.measured('flops', '--variants', 'all', '--size', '1,31,100', '--per-thread', '--threads', ','.join(THREADS), *QUICK).measurements
    assert len(found) == 3 * len(THREADS) * len(build.runnable('flops'))
    assert all(record['valid'] and record['max_error'] == 0 for record in found)


def test_threads_that_have_not_the_same_share(programs):
    record, = programs.measured('flops', '--variants', 'plain', '--size', 100 * len(THREADS) - 1, '--threads', len(THREADS), *QUICK).measurements
    assert record['valid'] and (record['balance'] < 1) == (len(THREADS) > 1)


@two_cpus
def test_thread_counts_by_turns_have_data_of_their_own(programs):
    '''Fewer threads have larger matrices, more threads more streams.'''
    for threads in ('1,2', '2,1'):
        found = programs.measured('flops', '--variants', 'all', '--size', 60, '--threads', threads, *QUICK).measurements
        assert len(found) == 2 * len(programs.runnable('flops')) and all(record['valid'] and record['max_error'] == 0 for record in found)


@x86_only
def test_operations_are_those_of_the_instructions(programs):
    for record in programs.measured('flops', '--variants', 'all', '--size', 96, *QUICK).measurements:
        n = record['size']
        chains, width = CHAINS.get(record['variant'], (48, 1))      # plain: values
        assert record['flops'] == (2 * n**3 if record['variant'] == 'dgemm' else 4 * chains * width * n**3 / (2 * 24 * 8))
        assert record['bytes'] == 0


@functools.cache
def loops_of(path):
    return {name: codegen.innermost_loops(lines) for name, lines in
            codegen.functions(output_of('objdump', '-d', '--no-show-raw-insn', path)).items() if name.startswith('flops_')}


@x86_only
@pytest.mark.parametrize('compiler', ['programs', 'llvm'])
@pytest.mark.parametrize('variant', CHAINS)
def test_a_step_is_fused_multiply_adds_of_registers_of_the_width_and_little_else(request, compiler, variant):
    needs('objdump')
    chains, width = CHAINS[variant]
    name = {1: 'sd', 2: 'pd', 4: 'pd', 8: 'pd'}[width], {1: 'xmm', 2: 'xmm', 4: 'ymm', 8: 'zmm'}[width]
    loops = [lines for lines in loops_of(request.getfixturevalue(compiler).path('flops'))[f'flops_{variant}'] if len(lines) > chains]
    assert loops
    for loop in loops:      # several where a compiler unrolls it (Clang for Zen 3)
        fused = [line for line in loop if '\tvfmadd' in line or '\tvfnmadd' in line]
        assert len(fused) % (2 * chains) == 0 and all(name[0] in line and line.count(f'%{name[1]}') == 3 for line in fused)
        assert len(loop) <= len(fused) + 4 and not [line for line in loop if '(%' in line], 'no load, no store'


@x86_only
@pytest.mark.parametrize('compiler', ['programs', 'llvm'])
def test_plain_is_vectorised(request, compiler):
    needs('objdump')
    loops = loops_of(request.getfixturevalue(compiler).path('flops'))['flops_plain']
    assert any('pd ' in line and ('fmadd' in line or 'mul' in line) for lines in loops for line in lines)


# --- DGEMM ------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def with_blas(programs):
    if 'dgemm' not in programs.runnable('flops'):
        pytest.skip('no BLAS is there')
    return programs


#: A DGEMM that is right, with what is wrong put in.
BLAS = '''
#include <stddef.h>
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha, const double *a, const int *lda,
            const double *b, const int *ldb, const double *beta, double *c, const int *ldc, size_t l1, size_t l2)
{
    (void)ta, (void)tb, (void)l1, (void)l2;
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
            SUM sum = 0;
            for (int l = 0; l < *k; l++)
                sum += (SUM)a[i + l * *lda] * (SUM)b[l + j * *ldb];
            c[i + j * *ldc] = BETA * c[i + j * *ldc] + *alpha * (double)sum;
        }
    AFTER;
}
'''


@pytest.mark.parametrize('wrong, right', [
    ({}, True), ({'SUM': 'float'}, False), ({'BETA': '0'}, False), ({'AFTER': 'c[*m * *n - 1] += 1'}, False),
    ({'AFTER': 'c[0] += 0.5'}, False), ({'AFTER': 'c[1] = 0.0 / 0.0'}, False), ({'AFTER': '((double *)a)[3] += 1'}, False),
    ({'AFTER': 'c[1] += 1, c[2] -= 1'}, False)], ids=str)
def test_a_blas_that_is_wrong_is_found(with_blas, tmp_path, wrong, right):
    (tmp_path / 'blas.c').write_text(BLAS)
    defined = {'SUM': 'double', 'BETA': '*beta', 'AFTER': '', **wrong}
    output_of('cc', '-O1', '-shared', '-fPIC', *(f'-D{name}={text}' for name, text in defined.items()), tmp_path / 'blas.c', '-o',
              tmp_path / 'blas.so')
    found = with_blas.run('flops', '--variants', 'dgemm', '--size', 41, *QUICK, LD_PRELOAD=str(tmp_path / 'blas.so'))
    record, = found.measurements
    assert (record['valid'], found.code) == (right, 0 if right else 1)


def test_the_record_says_which_blas(with_blas, tmp_path):
    record, = with_blas.measured('flops', '--variants', 'dgemm', '--size', 20, *QUICK).measurements
    assert 'OpenBLAS' in record['options']['library'] or '/' in record['options']['library']
    plain, = with_blas.measured('flops', '--variants', 'plain', '--size', 20, *QUICK).measurements
    assert 'library' not in plain['options']
    (tmp_path / 'threads.c').write_text('''
        #include <pthread.h>
        #include <unistd.h>
        static void *wait(void *nothing) { pause(); return nothing; }
        static pthread_t thread;
        __attribute__((constructor)) static void start(void) { pthread_create(&thread, NULL, wait, NULL); }''')
    output_of('cc', '-shared', '-fPIC', '-pthread', tmp_path / 'threads.c', '-o', tmp_path / 'threads.so')
    found = with_blas.run('flops', '--variants', 'dgemm', '--size', 41, *QUICK, LD_PRELOAD=str(tmp_path / 'threads.so'))
    assert found.code == 2 and found.errors.startswith('plumbline: dgemm: the BLAS has 1 threads of its own beside ours: set OPENBLAS_')
    assert with_blas.run('flops', '--variants', 'plain', '--size', 41, *QUICK, LD_PRELOAD=str(tmp_path / 'threads.so')).code == 0


@pytest.mark.parametrize('options', [('--size', 1, '--threads', 2), ('--size', 10**6)])
def test_matrices_that_cannot_be_are_refused(programs, options):
    found = programs.run('flops', '--variants', 'plain', *options)
    assert found.code == 2 and found.errors.startswith('plumbline: --size 1') and 'give from 1 to 32768 for each thread' in found.errors


# --- the check --------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def run(measuring, tmp_path_factory):
    done = measuring(tmp_path_factory.mktemp('run')).reframe('-r', '-S', 'samples=10', '-S', 'processes=1', '-n', '^peak_flops', checks=rfm.REPOSITORY / 'checks/compute/peak_flops.py')
    assert done.report, done.out
    case, = done.cases().values()
    return case['plumbline']


@pytest.mark.alone
def test_check_measures_every_width_against_its_peak(run):
    found = {metric['name']: metric for metric in run['metrics']}
    widths = {record['variant'] for record in run['records']} - {'dgemm'}
    scopes = ['one'] + ['all'] * (len(CPUS) > 1)
    assert {f'flops.{width}.{scope}' for width in widths for scope in scopes} <= set(found)
    bits = {'scalar': 64, 'simd128': 128, 'simd256': 256, 'simd512': 512}
    arch = datasheet.host_microarchitecture()
    for name in (f'of_peak.{width}.{scope}' for width in widths & set(bits) for scope in scopes):
        per_cycle, reason = datasheet.flops_per_cycle(arch, bits[name.split('.')[1]])
        skipped = {metric['metric']: metric['reason'] for metric in run.get('skipped', ())}
        assert (name in found) == (per_cycle is not None) and skipped.get(name) == reason
        # Noise makes it less: nothing makes it much more.
        assert name not in found or found[name]['value'] < 1.1
    assert found['efficiency.all']['value'] < 1.5


def test_one_core_is_compared_neither_with_itself_nor_with_others(measuring, tmp_path):
    others = [text for name in ('memory/triad_scaling.py', 'compute/cores.py') for text in ('-c', rfm.REPOSITORY / 'checks' / name)]
    done = measuring(tmp_path).reframe(*rfm.small(), *others,
                                       checks=rfm.REPOSITORY / 'checks/compute/peak_flops.py', before=['taskset', '-c', CPUS[0]])
    cases = done.cases()
    alone = cases.pop('cores')
    assert alone['result'] == 'skip' and 'needs two CPUs' in alone['plumbline']['skipped'][0]['reason']
    for name, case in cases.items():
        assert case['plumbline']['metrics'] and 'efficiency' not in {metric['metric'] for metric in case['plumbline']['metrics']}, name
        assert {'metric': 'efficiency.all', 'reason': topology.ONE_CPU, 'symptom': 'too_few_cpus'} in case['plumbline']['skipped']


@pytest.mark.alone
def test_check_compares_dgemm_with_the_fastest_stream(run, with_blas):
    found = {metric['name']: metric for metric in run['metrics']}
    records = {record['variant']: record for record in run['records'] if record['threads'] == 1}
    rates = {name: record['flops'] / np.array(record['seconds']) for name, record in records.items()}
    fastest = max(set(rates) - {'dgemm'}, key=lambda name: np.median(rates[name]))
    assert found['of_fma.dgemm.one']['value'] == pytest.approx(np.median(rates['dgemm'] / rates[fastest]), rel=0.2)     # samples in another state are set aside
    assert 0.15 < found['of_fma.dgemm.one']['value'] < 1.1
    assert any(note.startswith('dgemm: ') for note in run['notes'])
    # An OpenBLAS without threads must not be called by several at once: they take turns, and that is no rate of all cores.
    turns = any(record['options'].get('calls_at_once', 2) < record['threads'] for record in run['records'])
    assert ('flops.dgemm.all' in found) == (len(CPUS) > 1 and not turns)
    assert ('flops.dgemm.all' in {metric['metric'] for metric in run.get('skipped', ())}) == (len(CPUS) > 1 and turns)


@two_cpus
@pytest.mark.alone
def test_calls_of_dgemm_that_take_turns_take_no_other_metric_away(with_blas, measuring, tmp_path):
    (tmp_path / 'serial.c').write_text('int openblas_get_parallel(void) { return 0; }\n')
    subprocess.run(['gcc', '-shared', '-fPIC', 'serial.c', '-o', 'serial.so'], cwd=tmp_path, check=True)
    case, = measuring(tmp_path, LD_PRELOAD=tmp_path / 'serial.so').reframe(*rfm.small(), checks=rfm.REPOSITORY / 'checks/compute/peak_flops.py').cases().values()
    names = {metric['name'] for metric in case['plumbline']['metrics']}
    assert 'efficiency.all' in names and 'of_fma.dgemm.one' in names and 'flops.dgemm.all' not in names


@pytest.mark.parametrize('config, parallel, calls', [('USE_OPENMP Zen MAX_THREADS=64', 2, 128), ('Zen MAX_THREADS=4', 1, 50), ('SINGLE_THREADED', 0, 1),
                                                     ('SINGLE_THREADED MAX_THREADS=64', 0, 1), ('OpenBLAS 0.2', 2, 192), (None, None, 192)])
def test_how_many_threads_an_openblas_serves_at_once(tmp_path, config, parallel, calls):
    library = '' if config is None else (f'char *openblas_get_config(void) {{ return "{config}"; }}\n'
                                         f'int openblas_get_parallel(void) {{ return {parallel}; }}\n')
    (tmp_path / 'asked.c').write_text(f'''#include "{SOURCE}/harness/openblas.h"
        {library}int main(void) {{ const int most = openblas_calls_at_once(); return most < 192 ? most : 192; }}''')
    subprocess.run(['gcc', '-Wall', '-Werror', 'asked.c', '-o', 'asked'], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / 'asked']).returncode == calls


@two_cpus
def test_dgemm_is_right_whenever_threads_call_it_at_once(with_blas):
    for _ in range(15):
        assert with_blas.run('flops', '--variants', 'dgemm', '--size', 1200, '--threads', 2, '--samples', 10, '--min-time', '0.002').code == 0


def test_what_the_datasheet_promises_is_a_metric_of_its_own(monkeypatch):
    check = runpy.run_path(str(rfm.REPOSITORY / 'checks/compute/peak_flops.py'))['peak_flops']
    skipped = []
    case = SimpleNamespace(microarchitecture='zen4', current_partition=None, skip_metric=lambda *said: skipped.append(said))
    record = {'flops': 96e9, 'seconds': [1.0] * 3, 'threads': 2, 'variant': 'simd256', 'probes': {}}
    monkeypatch.setattr(datasheet, 'flops_per_cycle', lambda arch, bits: (16, None))
    monkeypatch.setattr(probes, 'beside', lambda record, probe: np.array([3.5e9] * 3))
    for promised, expected in (({'core': {'clock': 4.0}}, {'of_peak': 96 / 112, 'of_datasheet': 96 / 128}), (None, {'of_peak': 96 / 112})):
        monkeypatch.setattr(datasheet, 'of_partition', lambda partition, arch, promised=promised: (promised, None))
        found = {one.metric: one.samples[0] for one in check.of_peak(case, record, 'simd256.all', None)}
        assert found == pytest.approx(expected) and not skipped
