'''Sets of compiler options on the NAS kernels: right results, wrong ones found by name, sets that a compiler does not take, check, figure.'''

import os
import re
import runpy
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import rfm
from mutants.catalogue import NAS
from native import QUICK, SOURCE, Build, copied, environment, needs
from plumbline.model import sources
from plumbline.report import figures
from plumbline.rfm.programs import option_programs

KERNELS = ['mxm', 'cfft2d', 'cholsky', 'btrix', 'gmtry', 'emit', 'vpenta']
LEFT_OUT = [f'{name}=-' for name in ('none', 'O3', 'native', 'unroll', 'lto', 'fast')]
TAKEN = [*LEFT_OUT, 'unknown=-O2 --no-such-option']

#: Sets by which the compiler makes something wrong: what it takes for another type, and mutants, the first of each kernel by m1, ...
NARROW = '-O1 -freal-8-real-4'
MUTANTS = {kernel: [mutant for mutant in NAS if mutant.kernel == kernel] for kernel in KERNELS}
WRONG = [f'narrow={NARROW}', *(f'm{number}=-O1 -DMUTANT={number}' for number in range(1, 1 + max(map(len, MUTANTS.values()))))]


def mutated(kernel):
    '''The file of a kernel, which MUTANT makes one of its mutants.'''
    text = (SOURCE / f'nas/{kernel}.F90').read_text()
    mutants = [f'#elif MUTANT == {number}\n{mutant.apply(text)}\n' for number, mutant in enumerate(MUTANTS[kernel], 1)]
    return f'#ifndef MUTANT\n{text}\n{"".join(mutants)}#else\n{text}\n#endif\n'


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    needs('gfortran')
    folder = tmp_path_factory.mktemp('nas')
    copied(folder / 'src', 'nas')
    for kernel in KERNELS:
        (folder / f'src/nas/{kernel}.F90').write_text(mutated(kernel))
    return folder


def build(folder, sets):
    return Build(folder / 'build', '-DPLUMBLINE_C_FLAGS=-O1 -march=native', '-DPLUMBLINE_LIKWID=OFF', '-DCMAKE_Fortran_FLAGS=-O1 -fno-inline',
                 '-DCMAKE_Fortran_COMPILER=gfortran', f'-DPLUMBLINE_CHANGED_SETS={";".join(sets)}', source=folder / 'src/nas')


@pytest.fixture(scope='module')
def right(source):
    '''The programs by the site's flags and -O2.'''
    found = build(source, TAKEN)
    shutil.copytree(found.folder / 'bin', source / 'right/bin')
    found.folder = source / 'right'
    return found


@pytest.fixture(scope='module')
def wrong(source, right):
    '''The same with sets by which results are wrong.'''
    return build(source, [*TAKEN, *WRONG])


def variants_of(kernel, *sets):
    return {f'{version}_{name}' for version in ('unchanged', 'optimised') if (kernel, version) != ('emit', 'optimised') for name in sets}


def cholsky():
    '''Operations of a system of 40 rows, 4 elements left of the diagonal at the most, three sides.'''
    rows = [min(4, i) for i in range(40)]
    factor = sum(sum(2 * (q - k) + 1 for k in range(1, q + 1)) + 2 * q + 2 for q in rows)
    return 224 * (factor + 3 * 2 * sum(2 * q + 1 for q in rows))


def btrix():
    '''Operations of 32 lines of 30 blocks.'''
    eliminate = sum(1 + (5 - r) * (1 + 2 * (5 - r) + 2 * 5 + 2) for r in range(1, 6))
    back = sum(6 + (r - 1) * (2 * 5 + 2) for r in range(1, 6))
    return 32 * (29 * (2 * 125 + 2 * 25) + 30 * (eliminate + back) + 29 * 2 * 25)


def gmtry():
    elimination = sum(1 + (200 - k) + 2 * (200 - k) ** 2 for k in range(1, 201))
    return 14 * 200 * 199 + 3 * 200 + elimination


#: Operations of a pass.
FLOPS = {'mxm': 2 * 256 * 128 * 64, 'cfft2d': 10 * (7 + 8) * 128 * 256 // 2, 'cholsky': cholsky(), 'btrix': btrix(), 'gmtry': gmtry(),
         'emit': 15 * 200 * 256 + 4 * 200 + 2 * 200 * 200, 'vpenta': 128 * (6 + 16 + 126 * 26 + 6 + 126 * 12)}


@pytest.mark.parametrize('kernel', KERNELS)
def test_every_kernel_is_right_by_every_set(right, kernel):
    found = right.measured(kernel, '--variants', 'all', *QUICK).measurements
    assert {record['variant'] for record in found} == variants_of(kernel, 'site', 'O2')
    assert {record['flags'] for record in found} == {'-O1 -fno-inline', '-O2'}
    assert {record['flops'] for record in found} == {FLOPS[kernel]}
    for record in found:
        assert record['compiler'].startswith('GNU') and record['valid'] and record['tolerance'] <= 1e-13
        # Rounding is seen: the result is compared with one that was computed in another way.
        assert (record['max_error'] > 0) == (kernel != 'mxm')


def test_a_set_that_the_compiler_does_not_take_is_told(right):
    for record in right.measured('emit', '--variants', 'all', *QUICK).measurements:
        assert re.fullmatch('-O2 --no-such-option: .*unrecognized command-line option.*--no-such-option.*', record['options']['refused.unknown'])
    refused = right.run('emit', '--variants', 'unchanged_unknown')
    assert refused.code == 2 and re.fullmatch(r'plumbline: [^\n]+no-such-option[^\n]*\n', refused.errors)


@pytest.mark.parametrize('kernel', KERNELS)
def test_wrong_results_are_found_by_name(wrong, kernel):
    found = wrong.run(kernel, '--variants', 'all', *QUICK)
    expected = variants_of(kernel, 'narrow')
    expected |= {f'{mutant.variants}_m{number}' for number, mutant in enumerate(MUTANTS[kernel], 1)}
    assert found.code == 1 and {record['variant'] for record in found.measurements if not record['valid']} == expected
    assert len(found.errors.splitlines()) == len(expected)
    assert re.search(rf'^plumbline: {kernel} unchanged_narrow, size \d+, 1 threads: the result is wrong \(error \S+\): do not use its time; '
                     f'compiled with {NARROW}$', found.errors, re.MULTILINE)


def test_every_loop_has_a_mutant():
    assert {(mutant.kernel, mutant.variants) for mutant in NAS} == {
        (kernel, version) for kernel in KERNELS for version in ('unchanged', 'optimised') if (kernel, version) != ('emit', 'optimised')}


@pytest.mark.parametrize('path', sorted(SOURCE.glob('cmake/flags/*.cmake')), ids=lambda path: path.stem)
def test_every_maker_has_sets(path, tmp_path):
    needs('cmake')
    script = tmp_path / 'sets.cmake'
    script.write_text(f'include({path})\nforeach(set IN LISTS Fortran_sets)\nmessage("${{set}}")\nendforeach()\n')
    said = subprocess.run(['cmake', '-P', script], capture_output=True, text=True, timeout=20, check=True).stderr.splitlines()
    sets = dict(line.split('=', 1) for line in said)
    assert len(sets) == len(said) >= 6 and sets['O2'] == '-O2' and sets['none'] == '' and 'site' not in sets
    assert all(re.fullmatch('[A-Za-z][A-Za-z0-9]*', name) for name in sets)


def test_sets_are_of_the_environment_and_have_names(source):
    done = subprocess.run(['cmake', '-S', source / 'src/nas', '-B', source / 'refused', '-DPLUMBLINE_CHANGED_SETS=-O2 -g'], capture_output=True,
                          text=True, timeout=60, env=environment())
    assert done.returncode and "plumbline: set of options '-O2 -g': give NAME=FLAGS" in ' '.join(done.stderr.split())
    site = SimpleNamespace(build_system=SimpleNamespace(config_opts=['-DA=1']),
                           current_environ=SimpleNamespace(extras={'option_sets': {'ours': '-O3 -march=znver4', 'fast': None}}))
    option_programs.change_sets(site)
    assert site.build_system.config_opts == ['-DA=1', "'-DPLUMBLINE_CHANGED_SETS=ours=-O3 -march=znver4;fast=-'"]


# --- the check and its figure ----------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def done(right, wrong, handed_out, built_already, tmp_path_factory):
    '''A run of the check: of MXM the programs with wrong sets.'''
    canned = tmp_path_factory.mktemp('canned')
    for path in (*handed_out.iterdir(), *right.folder.glob('bin/*')):
        os.symlink(wrong.path('mxm') if path.name == 'mxm' else path, canned / path.name)
    os.symlink(f'{handed_out}.asm', f'{canned}.asm')        # disassembled already
    place = rfm.Workplace(tmp_path_factory.mktemp('run'), built_already, config=rfm.REPOSITORY / 'config/localhost.py', CANNED_PROGRAMS=canned)
    names = [word for kernel in ('mxm', 'emit', 'vpenta') for word in ('-n', f'compiler_options%kernel={kernel}')]
    found = place.reframe(*rfm.small(), '-p', '^gnu$', *names, checks=rfm.REPOSITORY / 'checks/compute')
    assert found.report, found.out
    told = place.judge()
    return SimpleNamespace(cases=found.cases(), told=told)


def test_the_check_measures_every_set_and_says_what_the_flags_of_the_site_lose(done):
    for kernel, versions in (('emit', ['unchanged']), ('vpenta', ['unchanged', 'optimised'])):
        case = done.cases[f'compiler_options %kernel={kernel}']
        rfm.assert_measured(case)
        told = case['plumbline']
        names = {metric['name'] for metric in told['metrics']}
        assert names == {f'flops.{name}' for name in variants_of(kernel, 'site', 'O2')} | {f'of_best.{name}' for name in versions} | (
            {'speedup.optimised'} if len(versions) > 1 else set())
        assert all(0 < metric['value'] < 1.5 for metric in told['metrics'] if metric['metric'] == 'of_best')     # of a machine that may be busy
        for version in versions:
            note, = (note for note in told['notes'] if note.startswith(f'{kernel}, {version}: '))
            assert re.search(r'the default flags of this site \(-O1 -fno-inline\) lose -?\d+ % against (site|O2) \(-O\S.*\)$', note)
        skipped, = told['skipped']
        assert skipped['metric'] == 'flops.unknown' and 'unrecognized command-line option' in skipped['reason']
    text = ' '.join(done.told.out.split())
    assert re.search(r'compiler flags: gnu: GNU \S+ -O1 -fno-inline reaches \d+ % of the best set of options beside it, compiler_options '
                     r'%kernel=(emit|vpenta), of_best\.\w+', text)


def test_flags_of_the_environment_that_cannot_be_measured_are_not_judged_by_others():
    refused, skipped = "-O3 -Wl,x: 'linker' input unused", []
    record = {'variant': 'unchanged_O2', 'options': {'refused.site': refused}, 'flops': 1e9, 'seconds': [1.0] * 9, 'threads': 1, 'flags': '-O2'}
    case = SimpleNamespace(measurements=[record], kernel='emit', skip_metric=lambda *told: skipped.append(told), note=print)
    check = runpy.run_path(str(rfm.REPOSITORY / 'checks/compute/compiler_options.py'))['compiler_options']
    assert [metric.metric for metric in check.evaluate(case)] == ['flops']
    assert skipped == [('flops.site', refused, ['unchanged_site', 'optimised_site']), ('of_best.unchanged', refused)]


def test_a_wrong_result_fails_by_name(done):
    case = done.cases['compiler_options %kernel=mxm']
    assert case['result'] == 'fail' and not case['plumbline'].get('metrics')
    assert re.search(r'mxm \w+, size \d+, 1 threads: the result is wrong \(error .*compiled with -O1', case['fail_reason'])


def test_a_heat_map_beside_that_of_the_source(done):
    details = [rfm.detail_of('compiler_options', done.cases[f'compiler_options %kernel={kernel}']) for kernel in ('emit', 'vpenta')]
    (_, caption, now), (_, before, then) = figures.of_check('compiler_options', details)
    assert list(now.data[0].y) == ['emit unchanged', 'vpenta unchanged', 'vpenta optimised'] and list(now.data[0].x) == ['site', 'O2']
    assert np.array(now.data[0].z)[:, 0].tolist() == [0, 0, 0]
    assert 'flags of the site' in caption and 'site: -O1 -fno-inline; O2: -O2' in caption
    table = 'anderson1997-table8-nas-kernels-flags'
    emit = list(then.data[0].y).index('EMIT')
    assert 2 ** np.array(then.data[0].z)[emit, -1] == pytest.approx(sources.value(table, 'EMIT', 'O3_unroll2_pipeline2_apad_lmfastv') / 61.5)
    assert 'VPENTA 3.36' in before and 'EMIT 1.00' in before
