'''Compilers as environments: found, their flags, their code; environment errors reported once, and all of them compared.'''

import functools
import os
import re
import shutil
import subprocess

import polars as pl
import pytest

import rfm
from native import CPUS, KERNELS, QUICK, SOURCE, Build, edges_of, environment, linked, needs, output_of, team_of, x86_only
from plumbline.likwid import pin
from plumbline.model import environment_errors, records
from plumbline.mpi import environments as mpi_environments
from plumbline.mpi.families import families
from plumbline.report import environments
from plumbline.store import archive
from plumbline.system import codegen, toolchains

# --- found -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('there, pair', [
    ('clang', ('clang', '')),
    ('clang-16 flang-new-16', ('clang-16', 'flang-new-16')),
    ('clang clang-16 flang-new-16', ('clang', '')),                         # what the user's module puts there
    ('clang flang clang-16 flang-new-16', ('clang', 'flang')),
    ('clang-9 clang-16', ('clang-16', '')),                                 # 16 is newer than 9
    ('clang-19 clang-16 flang-new-16', ('clang-16', 'flang-new-16')),
    ('clang-19 flang-19 flang-new-19 clang-16 flang-new-16', ('clang-19', 'flang-19')),
    ('clang-cpp-16 clang-format-16 flang-new-16', None),
])
def test_of_several_compilers_one_is_taken(tmp_path, monkeypatch, there, pair):
    for name in there.split():
        tmp_path.joinpath(name).touch(mode=0o755)
    monkeypatch.setenv('PATH', f'{tmp_path}:/nowhere')
    found = toolchains.found()
    assert [(entry['cc'], entry['ftn']) for entry in found] == ([pair] if pair else [])
    for entry in found:
        assert ('fortran' in entry['features']) == bool(entry['ftn']) and 'openmp' in entry['features']
        assert entry['extras'] == {'openmp': 'libomp'}


def test_every_compiler_with_every_mpi_that_can_use_it():
    compilers = [{'name': 'gnu', 'cc': 'gcc', 'ftn': ''}, {'name': 'llvm', 'cc': 'clang-16', 'ftn': 'flang-new-16'}]
    found = {entry['name']: entry for entry in mpi_environments.found(compilers)}
    mpis = [name.removeprefix('gnu-') for name in found if name.startswith('gnu-')]
    if not mpis:
        pytest.skip('no MPI is there')
    assert list(found) == [f'gnu-{mpi}' for mpi in mpis] + [f'llvm-{mpi}' for mpi in mpis if mpi != 'impi']
    for name, entry in found.items():
        compiler, mpi = name.split('-')
        wraps, variables = families()[mpi].wraps, dict(entry['env_vars'])
        assert variables[wraps['c']] == {'gnu': 'gcc', 'llvm': 'clang-16'}[compiler]
        assert (wraps['fortran'] in variables) == (compiler == 'llvm')
        assert set(entry['features']) == {'mpi', mpi}


@pytest.mark.parametrize('there, found', [
    ({'mpicc.openmpi': 'OMPI_MAJOR_VERSION', 'mpicc': 'OMPI_MAJOR_VERSION'}, {'openmpi': 'mpicc.openmpi'}),
    ({'mpicc.openmpi': 'no mpi.h', 'mpicc': 'no mpi.h'}, {}),                                                       # openmpi-bin alone
    ({'mpicc.openmpi': 'OMPI_MAJOR_VERSION', 'mpicc': 'MPICH_VERSION'}, {'openmpi': 'mpicc.openmpi', 'mpich': 'mpicc'}),  # a module's
    ({'mpicc': 'MPICH_VERSION'}, {'mpich': 'mpicc'})])
def test_an_mpi_is_there_where_a_wrapper_finds_its_header(tmp_path, monkeypatch, there, found):
    for name, defined in there.items():
        rfm.script(tmp_path / name, f'echo "#define {defined} 4"')
        tmp_path.joinpath(name.replace('mpicc', 'mpirun')).touch(mode=0o755)
    monkeypatch.setenv('PATH', str(tmp_path))
    entries = mpi_environments.found([{'name': 'gnu', 'cc': 'gcc', 'ftn': ''}])
    assert {mpi: os.path.basename(entry['cc']) for entry in entries for mpi in entry['features'][1:] if mpi != 'impi'} == found


def test_the_wrappers_use_the_compiler_that_the_environment_names():
    llvm = toolchains.toolchains()['llvm'].found()
    entries = mpi_environments.found([llvm]) if llvm else []
    if not entries:
        pytest.skip('clang or an MPI is not there')
    for entry in entries:
        said = output_of(entry['cc'], '--version', env=mpi_environments.expanded(entry['env_vars'], os.environ))
        assert 'clang version' in said.splitlines()[0], entry['name']


# --- flags -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('processor', ['x86_64', 'aarch64'])
@pytest.mark.parametrize('path', sorted(SOURCE.glob('cmake/flags/*.cmake')), ids=lambda path: path.stem)
def test_every_maker_has_flags_for_both_languages(path, processor, tmp_path):
    needs('cmake')
    script = tmp_path / 'flags.cmake'
    script.write_text(f'include({path})\nmessage("C: ${{C_flags}}")\nmessage("Fortran: ${{Fortran_flags}}")\n'
                      'message("sets: ${Fortran_sets}")\n')
    said = subprocess.run(['cmake', f'-DCMAKE_SYSTEM_PROCESSOR={processor}', '-P', script], capture_output=True, text=True, timeout=20,
                          check=True).stderr
    assert re.findall(r'^(\w+): -O3', said, re.MULTILINE) == ['C', 'Fortran'], said
    # Of 64-bit Arm clang takes -mcpu=native only, and so does flang.
    native = path.stem == 'GNU', path.stem in ('LLVM', 'AOCC')
    assert ('-march=native' in said, '-mcpu=native' in said) == ((any(native), False) if processor == 'x86_64' else native)


#: Functions that the glibc has since 2.29 to 2.43, which Red Hat's 8 lacks, and standards that CMake knows since 3.21.
NEWER = re.compile(r'\b(?:gettid|tgkill|getdents64|close_range|closefrom|pidfd_\w+|strlc(?:py|at)|arc4random\w*|sig(?:abbrev|descr)_np|mallinfo2|'
                   r'(?:pthread_\w+|sem)_clock(?:wait|lock)|timespec_getres|process_m\w+)\(|C_STANDARD (?:17|23)')


def test_nothing_is_asked_of_a_system_that_the_oldest_supported_has_not():
    asked = [(path.name, NEWER.findall(path.read_text())) for pattern in ('*.[ch]', '*.cmake', 'CMakeLists.txt') for path in SOURCE.rglob(pattern)]
    assert len(asked) > 150 and not [one for one in asked if one[1]]


def test_programs_are_linked_with_threads_where_these_are_a_library_of_their_own(tmp_path):
    '''As in the glibc before 2.34.'''
    needs('cmake', 'cc')
    output_of('cmake', '-G', 'Unix Makefiles', '-S', SOURCE, '-B', tmp_path, '-DCMAKE_HAVE_LIBC_PTHREAD=OFF', '-DPLUMBLINE_FORTRAN=OFF',
              '-DPLUMBLINE_LIKWID=OFF', '-DPLUMBLINE_BLAS=OFF', '-DPLUMBLINE_OPENBLAS=OFF', '-DPLUMBLINE_FFTW=OFF', env=environment())
    links = [path.read_text() for path in tmp_path.glob('**/*-serial.dir/link.txt')]
    assert len(links) > len(KERNELS) and all('pthread' in link for link in links if '-o ' in link)


@pytest.mark.parametrize('version, name', [('AMD clang version 16.0.3 (CLANG: AOCC_4.2.0-Build#89 2023_12_13) (based on LLVM Mirror.Version.16.0.3)',
                                            'AOCC'), ('Cray clang version 15.0.1  (66f7391d6a03cf932f321b9f6b1d8612ef5f362c)', 'Cray'),
                                           ('AMD clang version 17.0.0 (https://github.com/RadeonOpenCompute/llvm-project)', None)])
def test_compilers_made_from_llvm_are_told_by_their_version(tmp_path, version, name):
    found = toolchains.toolchains()['llvm'].found() or pytest.skip('clang is not there')
    compiler = rfm.script(tmp_path / 'cc', f'[ "$*" != --version ] || exec echo "{version}"\nexec {found["cc"]} "$@"')
    (tmp_path / 'CMakeLists.txt').write_text(
        f'cmake_minimum_required(VERSION 3.20)\nproject(probe C)\ninclude({SOURCE}/cmake/flags.cmake)\n'
        'message(NOTICE "${c_name}: ${PLUMBLINE_C_FLAGS}")\n')
    done = subprocess.run(['cmake', f'-DCMAKE_C_COMPILER={compiler}', '-S', tmp_path, '-B', tmp_path / 'build'], capture_output=True,
                          text=True, timeout=60, env=environment())
    assert re.search(rf"^{name + ' ' if name else ''}Clang [\d.]+: -O3.* -mllvm -disable-loop-idiom-all$", done.stderr, re.MULTILINE)
    assert ('-march=native' in done.stderr) == (name != 'Cray')      # there the processor is a module's


# --- the kernels with clang ------------------------------------------------------------------------------------------

@pytest.mark.parametrize('kernel', KERNELS)
def test_every_kernel_is_right_with_clang(llvm, kernel):
    found = llvm.measured(kernel, '--variants', 'all', '--size', edges_of(kernel), *QUICK, *team_of(kernel)).measurements
    assert {record['variant'] for record in found} == llvm.runnable(kernel)
    assert all(record['valid'] for record in found)
    assert {record['compiler'].split()[0] for record in found} <= {'Clang', 'LLVMFlang'}


def test_flang_builds_every_fortran_variant(llvm):
    if not toolchains.toolchains()['llvm'].found()['ftn']:
        pytest.skip('flang is not there')
    assert 'fortran' in llvm.runnable('triad') & llvm.runnable('ninepoint')
    assert {'fortran_fused', 'fortran_split2', 'fortran_split3', 'fortran_distributed'} <= llvm.runnable('fdtd')
    assert {'whole_stream', 'element_formatted'} <= llvm.runnable('fileio')


def test_flang_builds_each_nas_kernel_by_several_sets(tmp_path):
    found = toolchains.toolchains()['llvm'].found()
    if not found or not found['ftn']:
        pytest.skip('flang is not there')
    left_out = [f'{name}=-' for name in ('none', 'O2', 'O3', 'unroll', 'lto', 'veclib')]
    build = Build(tmp_path / 'build', f"-DCMAKE_C_COMPILER={found['cc']}", f"-DCMAKE_Fortran_COMPILER={found['ftn']}", '-DPLUMBLINE_LIKWID=OFF',
                  f'-DPLUMBLINE_CHANGED_SETS={";".join(left_out)}', source=SOURCE / 'nas')
    for kernel in ('mxm', 'cfft2d', 'gmtry'):
        records = build.measured(kernel, '--variants', 'all', '--samples', 10, '--passes', 1).measurements
        assert {record['variant'] for record in records} == {f'{version}_{name}' for version in ('unchanged', 'optimised') for name in ('native', 'fast')}
        assert all(record['valid'] for record in records)


@functools.cache
def functions(path):
    '''Name -> instructions, of a program.'''
    needs('objdump')
    return codegen.functions(output_of('objdump', '-d', '--no-show-raw-insn', path))


@x86_only
@pytest.mark.parametrize('compiler', ['programs', 'llvm'])
def test_loops_stay_loops(request, compiler):
    '''Called from a loop, memcpy or memset would be what is measured.  What adds up zeroes its partial sums once in a call.'''
    build, seen = request.getfixturevalue(compiler), set()
    for kernel in ('triad', 'motion', 'strided', 'concurrent'):
        for name, lines in functions(build.path(kernel)).items():
            if re.match(rf'({kernel}|pl_(?:load|store|copy|update|triad))_', name):
                seen.add(name)
                assert not re.search('mem(?:cpy|move)' if re.search('_load|concurrent_', name) else 'mem(?:cpy|set|move)', '\n'.join(lines)), name
    assert {'motion_fill', 'motion_copy', 'strided_read_nt', 'pl_store_plain', 'pl_copy_plain', 'triad_plain', 'concurrent_plain'} <= seen


@x86_only
@pytest.mark.parametrize('compiler', ['programs', 'llvm'])
def test_what_is_not_to_be_vectorised_has_one_element_at_a_time(request, compiler):
    '''clang makes one gather instruction of eight loads side by side, which is slower here.'''
    build = request.getfixturevalue(compiler)
    scalar = {name: lines for kernel in ('gather', 'triad') for name, lines in functions(build.path(kernel)).items()
              if re.fullmatch('(triad|gather|scatter|gs|multigather|multiscatter)_novec|.*(gather|scatter|gs)_(unroll|prefetch)', name)}
    assert len(scalar) == 1 + 3 * 5
    for name, lines in scalar.items():
        vectors = [line for line in lines if re.search(r'%[yz]mm|\tv?p?(?:gather|scatter)[dq]|\tv?mov[ua]p[sd].*\(', line)]
        assert not vectors, (name, vectors[:3])
    flags = {record['variant']: record['flags'] for record in build.measured('gather', '--variants', 'plain,simd', *QUICK).measurements}
    assert [variant for variant, stated in flags.items() if '-fno-slp-vectorize' in stated] == ['plain'] * (compiler == 'llvm')


@x86_only
def test_widths_are_found_in_clangs_code(llvm):
    for kernel, scalar in (('triad', {'novec'}), ('fdtd', set())):
        text = output_of('objdump', '-d', '--no-show-raw-insn', llvm.path(kernel))
        loops = {name for name in llvm.runnable(kernel) if kernel == 'fdtd' or name in ('plain', 'novec', 'prefetch', 'fortran')}
        widths = codegen.widths_of(text, kernel, [(name, None) for name in loops])
        assert set(widths) == loops
        assert {name for name, width in widths.items() if not re.fullmatch(r'\d+-bit', width)} == scalar, widths


@pytest.mark.parametrize('by', ['likwid-pin', 'OpenMP'])
def test_threads_of_libomp_run_where_they_are_told_to(llvm, by):
    '''libomp starts no thread of its own: no skip mask.'''
    cpus = CPUS[::-1]
    command = [str(llvm.path('triad')), '--size', '100000', '--threads', str(len(cpus)), *map(str, QUICK), '--cpus', ','.join(map(str, cpus))]
    if by == 'likwid-pin':
        needs('likwid-pin')
        command, variables = pin.pin_command(cpus, command), pin.pin_environment(cpus)
    else:
        variables = pin.omp_environment(cpus)
    found = records.parse(output_of(*command, env=environment(**variables), timeout=50)).measurements
    assert [record['cpus'] for record in found] == [cpus]
    needs('ldd')
    assert 'libomp' in output_of('ldd', llvm.path('triad')) and 'libgomp' not in output_of('ldd', llvm.path('triad'))


# --- environment errors ----------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def broken_run(commands, tmp_path_factory):
    '''(run, report) of two canned checks in environments of which one works.'''
    folder = tmp_path_factory.mktemp('broken')
    modules = {'CANNED_MODULES': '1', 'MODULEPATH': '/usr/share/modules/modulefiles'} if shutil.which('modulecmd') else {}
    place = rfm.Workplace(folder / 'place', commands, rfm.GUARDS / 'environments.py', **modules)
    done = place.reframe('-r', '--exec-policy=serial', '--max-retries=1', '-n', 'OtherMetric|AllThreads')
    assert done.report, done.out
    return done, place.judge()


@pytest.mark.parametrize('name, cause', [('missing', "clang-99: command not found in the job's PATH"),
                                         ('serial', 'cc-without-openmp cannot build an OpenMP program: /usr/bin/ld: cannot find -lomp'),
                                         ('fortran', 'false cannot compile Fortran: it says nothing'),
                                         ('sourced', "ERROR: Unable to locate a modulefile for 'nosuch/2.3'"),
                                         ('module', "nosuch/1.2 does not load: Unable to locate a modulefile for 'nosuch/1.2'")])
def test_an_environment_error_is_reported_once(broken_run, name, cause):
    if name in ('sourced', 'module') and not shutil.which('modulecmd'):
        pytest.skip('environment-modules is not there')
    _, judged = broken_run
    verdicts, not_measured = ' '.join(judged.out.split()).split('Not measured')
    sentence = f'environment error: {name} on made:cpu: '
    assert judged.code == 1
    assert verdicts.count(sentence) == 1
    said = verdicts.split(sentence)[1].split(' FAIL at run')[0]
    assert cause in said and said.endswith(': 2 checks not run')
    assert f'OtherMetric; AllThreads - {sentence}' in not_measured


def test_the_other_environments_run(broken_run):
    done, judged = broken_run
    passed = {(case['name'].split()[0], case['environ']) for case in done.report['runs'][0]['testcases'] if case['result'] == 'pass'}
    assert passed == {(name, 'gnu') for name in ('native_programs', 'OtherMetric', 'AllThreads')}
    assert re.search(r'^software .* 0 PASS, [345] FAIL, ', judged.out, re.MULTILINE)


@pytest.mark.parametrize('said, modules, cause', [
    ('Lmod has detected the following error: The following module(s) are unknown: "gcc/99"\n', ['gcc/99'],
     'gcc/99 does not load: The following module(s) are unknown: "gcc/99"'),
    ('rfm_build.sh: line 11: module: command not found\n', ['gcc/99', 'x'], 'gcc/99, x does not load: module: command not found'),
    ('[3/9] Building\nkernel.c:7:1: error: no such thing\nninja: build stopped.\n', [], 'kernel.c:7:1: error: no such thing'),
    ("[9/9] Linking\n/usr/bin/ld: a.o: in function `f':\nb.f90: multiple definition of `f'; a.o: here\nclang: error: linker command failed\n", [],
     "b.f90: multiple definition of `f'; a.o: here"),
    ('CMake Error at CMakeLists.txt:2 (project):\n  No CMAKE_C_COMPILER could be found.\n', [], 'No CMAKE_C_COMPILER could be found.'),
    ('a\nlast words\n\n', [], 'last words'), ('', [], 'its build wrote nothing'),
])
def test_the_cause_names_the_thing(said, modules, cause):
    assert environment_errors.cause(said, modules) == cause


def failed(name, end='fail_deps', environ='e', reason=None, needs=(), fixture=False, **left):
    return left | {'unique_name': name, 'system': 's', 'partition': 'p', 'environ': environ, 'result': end, 'fail_reason': reason, 'fixture': fixture,
            'dependencies_actual': [[need, 's:p', environ] for need in needs]}


def test_checks_that_fail_for_other_reasons_keep_their_own():
    told = environment_errors.reported_once([
        failed('build', 'fail', fixture=True, environment_error='no compiler'), failed('cross_check', needs=['build'], fixture=True),
        failed('check', needs=['build', 'cross_check']), failed('through', needs=['cross_check']), failed('other', needs=['elsewhere']),
        failed('wrong', 'fail', reason='sanity error: 2 is not 3'), failed('check', 'pass', environ='good')])
    assert {key[0]: verdict for key, (verdict, *_) in told.items()} == {'build': 'FAIL', 'cross_check': None, 'check': None, 'through': None}
    assert told['build', 's:p', 'e'][1] == 'environment error: e on s:p: no compiler: 2 checks not run'
    assert environment_errors.reported_once([failed('other', needs=['elsewhere'])]) == {}


# --- environments compared -------------------------------------------------------------------------------------------

def compared(environ, *rows, check='triad_memory', host='n1', simd_width=()):
    return {'check': check, 'test': check, 'parameters': '{"threads": "all"}', 'repetition': None, 'partition': 'p', 'hostname': host,
            'environ': environ, 'simd_width': dict(simd_width), 'metrics': list(rows)}


def row(subject, value, spread=0.01, name='bandwidth'):
    return {'metric': name, 'name': f'{name}.{subject}', 'subject': subject, 'value': value, 'unit': 's' if name == 'time' else 'MB/s',
            'spread': spread, 'interval_low': value * (1 - spread), 'interval_high': value * (1 + spread)}


def limit(rate):
    '''A limit stream of so many GB/s.'''
    return {'records': [{'role': 'limit', 'level': 'memory', 'threads': 1, 'bytes': 1e9, 'traffic': 1e9, 'seconds': [1 / rate] * 3}]}


def waited(share):
    return {'contention': [{'threads': 1, 'elapsed': 10.0, 'throttled': 0.0, 'waited': 10 * share, 'stolen': 0.0}]}


def only(details):
    (title, caption, figure), = environments.figures(details)
    return title, caption, figure.data[0]


def test_what_a_compiler_loses_is_at_the_top_and_says_why():
    title, caption, drawn = only([
        compared('gnu', row('plain', 100), row('fused.memory', 35), simd_width={'fused': 'scalar'}),
        compared('llvm', row('plain', 97), row('fused.memory', 100), simd_width={'fused': '512-bit'})])
    assert title == 'Bandwidth of gnu, llvm, compared'
    assert list(drawn.x) == ['gnu', 'llvm'] and list(drawn.y) == ['triad_memory all fused.memory', 'triad_memory all plain']
    assert list(drawn.text) == [['<b>0.35</b>', '1'], ['1', '(0.97)']]
    assert drawn.z[0][0] > 0 and drawn.z[0][1] == drawn.z[1][0] == drawn.z[1][1] == 0
    assert drawn.customdata[0][0] == '35.0 MB/s, spread 1.0 %; SIMD width: scalar'
    assert 'gnu is slower in 1 of 2. llvm is slower in 0 of 2.' in caption
    assert 'triad_memory all fused.memory (gnu: scalar, llvm: 512-bit, 0.35)' in caption


@pytest.mark.parametrize('slow, fast, text', [
    ([row('x', 80, spread=0.3)], [row('x', 100, spread=0.3)], '(0.80)'),                    # intervals that touch
    ([row('x', 93)], [row('x', 100)], '(0.93)'),                                            # less than what counts as an effect
    ([row('x', 80), limit(8)], [row('x', 100), limit(10)], '(0.80)'),                       # the machine was slower, too
    ([row('x', 60), limit(8)], [row('x', 100), limit(10)], '<b>0.60</b>'),
    ([row('x', 50), waited(0.5)], [row('x', 100), waited(0)], '(0.50)'),                    # half of the time others ran
    ([row('x', 40), waited(0.5)], [row('x', 100)], '<b>0.40</b>'),
    ([row('x', 50), row('x', 0.8, name='of_limit')], [row('x', 100), row('x', 0.8, name='of_limit')], '(0.50)'),     # paired: no loss
    ([row('x', 90), row('x', 0.4, name='of_limit')], [row('x', 100), row('x', 0.8, name='of_limit')], '<b>0.90</b>'),
    ([row('x', 2.0, name='time')], [row('x', 1.0, name='time')], '<b>0.50</b>'),            # less is better
    ([{**row('x', 50), 'interval_low': None}], [row('x', 100)], '(0.50)'),                  # one sample has no interval
])
def test_noise_is_not_shouted_as_loss(slow, fast, text):
    made = []
    for environ, parts in (('slow', slow), ('fast', fast)):
        rows = [part for part in parts if 'metric' in part]
        made.append(compared(environ, *rows) | {key: value for part in parts if 'metric' not in part for key, value in part.items()})
    _, caption, drawn = only(made)
    assert list(drawn.text) == [[text, '1']]
    assert f"slow is slower in {int('<b>' in text)} of 1." in caption


def test_only_what_ran_on_the_same_host_is_compared_compilers_and_mpis_apart_and_many_rows_are_cut():
    assert not list(environments.figures([compared('gnu', row('x', 1)), compared('llvm', row('x', 2), host='n2')]))
    assert not list(environments.figures([compared('gnu', row('x', 1))]))
    _, _, drawn = only([compared(name, row('x', 1), host=host) for name in ('gnu', 'llvm') for host in ('n1', 'n2')])
    assert list(drawn.y) == ['triad_memory all x p n1', 'triad_memory all x p n2']
    mpis = [compared(f'gnu-{mpi}', row('x', 1), check='pingpong') for mpi in ('openmpi', 'mpich')]
    third = [compared(name, row('y', 1)) for name in ('gnu', 'intel')]
    found = list(environments.figures([*mpis, compared('gnu', row('x', 1)), compared('llvm', row('x', 1)), *third]))
    assert [title for title, _, _ in found] == ['Bandwidth of gnu-openmpi, gnu-mpich, compared', 'Bandwidth of gnu, llvm, intel, compared']
    assert list(found[1][2].data[0].text) == [['1', '1', ''], ['1', '', '1']]
    many = [row(f'v{i}', 100 - i) for i in range(60)]
    _, caption, drawn = only([compared('gnu', *many), compared('llvm', *(row(f'v{i}', 100) for i in range(60)))])
    assert len(drawn.y) == environments.MOST_ROWS and drawn.y[0].endswith(' v59')
    assert 'Not drawn: 20 of 60 rows, those that lose least.' in caption


def test_a_real_run_with_two_compilers_is_compared(measuring, llvm, tmp_path):
    place = measuring(tmp_path / 'place', CANNED_CLANG=linked(tmp_path / 'clang', llvm.path('triad'), llvm.path('trapezoid')))
    done = place.reframe('-r', '-p', '^(gnu|llvm)$', '--exec-policy=serial', '-n', 'redundancy', '-S', 'redundancy.samples=10', '-S', 'processes=1',
                         checks=rfm.REPOSITORY / 'checks/apps/redundancy.py')
    assert done.report, done.out
    for case in done.report['runs'][-1]['testcases']:
        rfm.assert_measured(case)
    judged = place.judge()
    assert judged.code in (0, 1, 3), judged.out
    page = (place.folder / 'reports/latest/index.html').read_text()
    assert re.search('<h3>(Performance|Time) of (gnu, llvm|llvm, gnu), compared</h3>', page), judged.out
    rows = archive.load_session(place.folder / 'reports/archive').filter(pl.col('detail').is_not_null(), ~pl.col('fixture'))
    compilers = {row['environ']: re.search(r'"compiler": "(\w+)', row['detail'])[1] for row in rows.iter_rows(named=True)}
    assert compilers == {'gnu': 'GNU', 'llvm': 'Clang'}
    assert all('"simd_width": {' in text for text in rows['detail'])
