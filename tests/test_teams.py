'''Teams of any size: how the threads share out the work, and that nothing is left out or done twice.'''

import itertools
import subprocess

import pytest

from native import CPUS, SOURCE, Build, environment, finding, libraries, needs, output_of, two_cpus, two_domains

#: Flags with which a flavour of the programs is linked.
LINKED = {'programs': [], 'sanitized': ['-fsanitize=address,undefined']}


@pytest.fixture(scope='session')
def teams(request, tmp_path_factory):
    '''Function (flavour, program, arguments) -> lines (variant, threads, number) of native_teams.c, linked with the objects
    that the build has made of the kernel and its runtime.'''
    folder = tmp_path_factory.mktemp('teams')

    def lines(flavour, program, *arguments):
        build: Build = request.getfixturevalue(flavour)
        path = folder / f'{program}-{flavour}'
        if not path.exists():
            objects = build.folder.glob(f'kernels/*/CMakeFiles/{program}.dir/**/*.o')
            needs('cc')
            output_of('cc', '-std=gnu17', '-Wall', '-Wextra', '-Werror', '-fopenmp', *LINKED[flavour], '-I', SOURCE / 'harness',
                      SOURCE.parent / 'tests/native_teams.c', *objects, build.folder / 'libruntime.a', *libraries(build, program),
                      '-o', path)
        return [(variant, int(threads), float(number)) for variant, threads, number in
                map(str.split, output_of(path, *map(str, arguments), env=environment()).splitlines())]
    return lines


@two_cpus
def test_thread_counts_in_two_numa_domains(programs, tmp_path):
    '''Whether they share their data is asked of the threads, and threads there are within the team only.'''
    places = environment() | {'OMP_PLACES': f'{{{CPUS[0]}}},{{{CPUS[1]}}}', 'OMP_PROC_BIND': 'true'}
    done = subprocess.run(finding(two_domains(tmp_path / 'node'), '/sys/devices/system/node', programs.path('triad'), '--threads', '1,2', '--size', '100000',
                                  '--samples', '10', '--cpus', f'{CPUS[0]},{CPUS[1]}'), text=True, capture_output=True, env=places)
    assert (done.returncode, done.stderr) == (0, '') and done.stdout.count('"valid": true') == 2 and '"node": 1' in done.stdout


@pytest.mark.parametrize('touched, said', [(100, '1 1.000 1'), (60, '1 1.000 1'), (40, '0 0.000 1')])
def test_pages_that_the_kernel_does_not_show_are_not_known(programs, tmp_path, touched, said):
    needs('cc')
    output_of('cc', '-std=gnu17', '-Wall', '-Wextra', '-Werror', '-fopenmp', '-I', SOURCE / 'harness', SOURCE.parent / 'tests/native_pages.c',
              programs.folder / 'libruntime.a', *libraries(programs, 'triad'), '-o', tmp_path / 'pages')
    assert output_of(tmp_path / 'pages', str(2**26), str(2**26 * touched // 100)).strip() == said


#: Program, sizes, options: odd ones, fewer rows than threads, nothing to compute.
SHARED = [
    ('fdtd', [3, 4, 5, 20], [[]]),
    ('ninepoint', [2, 3, 5, 17, 40], [[]]),
    ('jacobi', [2, 3, 10, 35], [['planes=6'], ['planes=0', 'block-rows=4']]),
    ('transpose', [1, 7, 9, 16, 67], [[], ['block-size=8']]),
    ('spmv', [1, 20, 300], [[]]),
    ('strided', [1, 500], [['stride=1'], ['stride=31']]),
    ('triad', [1, 200], [[]]),
]


@pytest.mark.parametrize('flavour', LINKED)
@pytest.mark.parametrize('program, sizes, choices', SHARED, ids=lambda value: value if isinstance(value, str) else '')
def test_every_team_does_all_of_the_work(teams, flavour, program, sizes, choices):
    for size, options in itertools.product(sizes, choices):
        found = teams(flavour, program, 'run', 'all', size, 40, *options)
        assert {threads for _, threads, _ in found} == set(range(1, 41))
        assert not [line for line in found if not line[2] <= 1e-13], (size, options)


@pytest.mark.parametrize('flavour', LINKED)
@pytest.mark.parametrize('variant', ['rows', 'padded', 'blocked'])
def test_every_team_transposes_in_place(teams, flavour, variant):
    for size in (1, 7, 9, 16, 67):
        assert {error for *_, error in teams(flavour, 'transpose', 'run', variant, size, 40, 'place=1')} == {0}


@pytest.mark.parametrize('program, variant, size, options', [
    ('fdtd', 'fused', 129, []),                         # 126 planes
    ('jacobi', 'plain', 130, []),
    ('ninepoint', 'plain', 512, []), ('ninepoint', 'plain', 513, []), ('ninepoint', 'plain', 1366, []),
    ('transpose', 'rows', 1025, []), ('transpose', 'diagonals', 1025, []), ('transpose', 'rows', 1025, ['place=1']),
    ('spmv', 'plain', 14000, []),
    ('strided', 'read', 10**6, ['stride=31']), ('strided', 'read', 10**6, ['stride=4096']),
    ('triad', 'plain', 10**5, []),
], ids=lambda value: value if isinstance(value, str) else '_'.join(map(str, value)) if isinstance(value, list) else str(value))
def test_every_team_is_busy(teams, program, variant, size, options):
    '''Mean work of a thread over the largest, at the sizes that the checks choose whatever the machine, or smaller ones.'''
    found = teams('programs', program, 'balance', variant, size, 256, *options)
    assert len(found) == 256 and found[0][2] == 1
    assert min(balance for *_, balance in found) >= 0.97


@pytest.fixture(scope='module')
def counting(programs, tmp_path_factory):
    '''Runs the kernel that counts its passes.'''
    needs('cc')
    program = tmp_path_factory.mktemp('counting') / 'counting'
    output_of('cc', '-std=gnu17', '-Wall', '-Wextra', '-Werror', '-fopenmp', '-I', SOURCE / 'harness', SOURCE.parent / 'tests/native_passes.c',
              programs.folder / 'libruntime.a', *libraries(programs, 'triad'), '-o', program)
    return lambda *options: subprocess.run([program, '--samples', '10', '--size', '100', *options], capture_output=True, text=True, env=environment())


@pytest.mark.parametrize('sync', ['block', 'pass'])
def test_every_thread_does_every_pass(counting, sync):
    for chosen in (['--passes', '7'], ['--min-time', '0.001']):
        done = counting('--threads', str(len(CPUS)), '--sync', sync, *chosen)
        assert (done.returncode, done.stderr) == (0, '')
        assert '"valid": true' in done.stdout


@pytest.mark.parametrize('asked, ran, said', [
    ('elsewhere|plain', 1, ''), ('elsewhere|,plain|', 1, ''), ('elsewhere', 0, 'this CPU has no none: leave the variant out'),
    ('elsewhere|', 0, '--variants elsewhere|: none of them runs here'), ('elswhere|plain', 0, 'has no such variant')])
def test_a_variant_of_other_processors_is_left_out_where_that_is_asked_for(counting, asked, ran, said):
    done = counting('--variants', asked, '--threads', '1')
    assert done.stdout.count('"variant": "plain"') == ran and (done.returncode == 0) == (ran > 0) and said in done.stderr


def test_what_cannot_be_divided_is_told(teams):
    '''Chunks of eight rows: 219 of them, on 200 threads.'''
    balance = {threads: number for _, threads, number in teams('programs', 'spmv', 'balance', 'sell', 1752, 200)}
    assert balance[1] == 1 and balance[200] < 0.6
    assert min(balance for *_, balance in teams('programs', 'spmv', 'balance', 'sell', 14000, 112)) >= 0.95
