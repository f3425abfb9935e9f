'''Programs from a Spack environment: what is shipped, what results say, and where there is a Spack, all for real.

Where there is none, a script stands in for it that "installs" canned programs; ReFrame, its Spack build system, the
base of the checks, the archive and the report are real.
'''

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import types

import polars
import pytest
from ruamel.yaml import YAML

import native
import rfm
from mpi_native import any_mpi
from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.rfm import spack

SHIPPED = rfm.REPOSITORY / 'spack-env'
PACKAGE = SHIPPED / 'repo/spack_repo/plumbline/packages/plumbline_kernels/package.py'
ENVIRONMENTS = sorted(SHIPPED.rglob('spack.yaml'))
PROGRAMS = 'a' * 32

#: ReFrame's configuration of the tests, with one more environment.
CONFIG = '''
import runpy

site_configuration = runpy.run_path({config!r})['site_configuration']
site_configuration['environments'].append({environment!r})
for partition in site_configuration['systems'][0]['partitions']:
    partition['environs'].append('spacked')
'''

#: Installs nothing, leaves a mark of each call, and knows where one spec is.
STAND_IN = '''
echo "$*" >> {marks}
[ "$3" != location ] || {{ [ "$5" = /{hash} ] && echo {prefix}; }}
'''


def node(name, target='x86_64_v3', **more):
    return {'name': name, 'version': '1.0', 'arch': {'platform': 'linux', 'platform_os': 'made1', 'target': target},
            'parameters': {'build_system': 'cmake', 'mpi': False, 'openmp': True, 'cflags': [], 'languages': ['c', 'f']},
            **more}


def lock_of(**nodes):
    return json.dumps({'concrete_specs': nodes})


LOCK = lock_of(**{'b' * 32: node('gcc', external={'path': '/usr', 'module': None}),
                  PROGRAMS: node('plumbline-kernels')})


def spack_environment(folder, lock=LOCK):
    '''A folder with a ``spack.yaml``, and a lock file unless that is None.'''
    folder.mkdir()
    (folder / 'spack.yaml').write_text('spack: {}\n')
    if lock is not None:
        (folder / 'spack.lock').write_text(lock)
    return folder


def reframe_environment(folder, *features):
    return {'name': 'spacked', 'cc': 'gcc', 'features': ['spack', 'openmp', *features],
            'extras': {'spack': {'environment': str(folder)}}}


def with_one_more(folder, config, environment):
    path = folder / 'config.py'
    path.write_text(CONFIG.format(config=str(config), environment=environment))
    return path


# --- what is shipped ----------------------------------------------------------------------------

@pytest.mark.parametrize('path', ENVIRONMENTS, ids=lambda path: str(path.parent.relative_to(SHIPPED)))
def test_environments_name_our_package_and_find_its_repository(path):
    content = YAML(typ='safe').load(path)['spack']
    assert 'plumbline-kernels' in content['specs']
    repository = path.parent / content['repos']['plumbline'].replace('$env', '.')
    assert (repository / 'repo.yaml').is_file()
    # Or Spack takes an older commit for the one that is checked out, because it is installed.
    assert content['concretizer']['reuse'] == {'exclude': ['plumbline-kernels']}


def test_the_repository_has_the_layout_of_its_spack():
    said = YAML(typ='safe').load(PACKAGE.parents[2] / 'repo.yaml')['repo']
    assert said == {'namespace': 'plumbline', 'api': 'v2.2'}
    for package in PACKAGE.parents[1].glob('*/package.py'):
        compile(package.read_text(), package, 'exec')


def said_by(package, what):
    '''The first arguments and the keywords of all calls of a name in a package of ours.'''
    tree = ast.parse((PACKAGE.parents[1] / package / 'package.py').read_text())
    return [(call.args[0].value, {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)})
            for call in ast.walk(tree) if isinstance(call, ast.Call) and getattr(call.func, 'id', '') == what]


def test_the_suite_depends_on_what_its_wheel_does():
    needed = re.search(r'^dependencies = \[(.*?)^\]', (rfm.REPOSITORY / 'pyproject.toml').read_text(), re.M | re.S)[1]
    least = {f"py-{name.replace('.', '-')}": version for name, version in re.findall(r'"([a-z0-9.-]+)>=([\d.]+)', needed)}
    asked = dict(spec.partition('@')[::2] for spec, _ in said_by('py_plumbline', 'depends_on') if spec.startswith('py-') and spec != 'py-setuptools@77:')
    assert {name: version.partition(':')[0] for name, version in asked.items()} == least
    assert asked['py-reframe-hpc'] == '4.10.0:4'        # <5


@pytest.mark.parametrize('package', ['py_reframe_hpc', 'py_ruptures', 'py_polars'])
def test_checksums_are_those_of_the_lock_file(package):
    (version, keywords), = said_by(package, 'version')
    entry = re.search(rf"^{package[3:].replace('_', '-')}=={re.escape(version)} .*?(?=^\S)", (rfm.REPOSITORY / 'requirements.lock').read_text(), re.M | re.S)
    assert f"sha256:{keywords['sha256']}" in entry[0]


def test_wheels_of_both_processors_are_those_of_the_lock_file():
    package = PACKAGE.parents[1] / 'py_polars_runtime_32/package.py'
    wheels = next(ast.literal_eval(node.value) for node in ast.walk(ast.parse(package.read_text())) if isinstance(node, ast.Assign))
    assert set(wheels) == {'x86_64', 'aarch64'}
    assert all(f'sha256:{checksum}' in (rfm.REPOSITORY / 'requirements.lock').read_text() for checksum in wheels.values())
    # Both default to none.
    packages = YAML(typ='safe').load(SHIPPED / 'full/spack.yaml')['spack']['packages']
    assert re.fullmatch(r'fabrics=(?!none)\S+ schedulers=slurm', packages['openmpi']['require'])
    assert packages['slurm']['buildable'] is False


def test_every_variant_switches_something(programs, mpi_programs, tmp_path):
    variants = {call.args[0].value for call in ast.walk(ast.parse(PACKAGE.read_text()))
                if isinstance(call, ast.Call) and getattr(call.func, 'id', '') == 'variant'}
    assert variants >= {'likwid', 'mpi', 'fortran', 'openmp'}
    options = set(re.findall(r'option\(PLUMBLINE_(\w+)', ''.join(path.read_text() for path in native.SOURCE.glob('cmake/*.cmake'))))
    assert variants - {'mpi'} == {name.lower() for name in options - {'STRICT'}}
    for build in (programs, mpi_programs(any_mpi())):
        native.output_of('cmake', '--install', build.folder, '--prefix', tmp_path)
    names = {path.name for path in (tmp_path / 'bin').iterdir()}
    assert names >= {*native.KERNELS, *(f'{kernel}-serial' for kernel in native.KERNELS), 'pingpong', 'datatype'}
    assert {path.name for path in (tmp_path / 'lib').iterdir()} == {'libplumbline_latency.so', 'libplumbline_pack.so'}


@native.x86_only
def test_records_state_the_flags_of_another_target(tmp_path):
    target = '-march=x86-64 -mtune=generic'
    off = [f'-DPLUMBLINE_{name}=OFF' for name in ('FORTRAN', 'LIKWID', 'OPENMP', 'OPENBLAS')]
    build = native.Build(tmp_path / 'build', f'-DPLUMBLINE_C_TARGET={target}', '-DCMAKE_BUILD_TYPE=Release',
                         '-DCMAKE_C_FLAGS=-fno-math-errno', *off, targets=['triad-serial'])
    found = build.measured('triad-serial', '--size', '1000', '--samples', '10', '--variants', 'plain')
    flags = found.kernels()[0]['flags']
    assert flags.startswith('-fno-math-errno -O3 -DNDEBUG ') and target in flags
    compiled = (build.folder / 'build.ninja', build.folder / 'kernels/triad/CMakeFiles/triad-serial.dir/flags.make')
    text, = (path.read_text() for path in compiled if path.exists())
    assert flags in text and '-march=native' not in flags + text and '-fopenmp' not in text


def test_what_is_asked_for_and_missing_is_an_error(tmp_path):
    native.needs('cmake', 'cc')
    nowhere = ['-DCMAKE_FIND_ROOT_PATH=/nowhere', '-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY']
    done = subprocess.run(['cmake', '-S', native.SOURCE, '-B', tmp_path, '-DPLUMBLINE_STRICT=ON',
                           '-DPLUMBLINE_FORTRAN=OFF', *nowhere],
                          capture_output=True, text=True, timeout=300, env=native.environment())
    assert done.returncode and 'Could not find LIKWID_LIBRARY' in done.stderr


# --- what a lock file says ----------------------------------------------------------------------

def locked(folder, features=('spack',), extras=None):
    extras = {'spack': {'environment': str(folder)}} if extras is None else extras
    return spack.locked(types.SimpleNamespace(name='spacked', features=features, extras=extras))


def test_result_has_the_hash_and_all_concrete_specs(tmp_path):
    found = locked(spack_environment(tmp_path / 'env'))
    assert found.package == PROGRAMS
    assert found.not_installed('==> Fetching x\n==> Error: All fetchers failed\n').endswith('(the attempt said: ==> Error: All fetchers failed)')
    said = found.provenance()
    assert schemas.complaint('result', {'software': said}) is None
    assert said['spack']['lock_hash'] == hashlib.sha256(LOCK.encode()).hexdigest()
    assert said['spack']['specs'] == [
        'plumbline-kernels@1.0~mpi+openmp build_system=cmake languages=c,f os=made1 target=x86_64_v3 /aaaaaaa',
        'gcc@1.0~mpi+openmp build_system=cmake languages=c,f os=made1 target=x86_64_v3 /bbbbbbb [/usr]']


def test_a_known_target_is_named(tmp_path):
    assert 'target=zen4 ' in spack.spec_text('a' * 32, node('x', target={'name': 'zen4', 'vendor': 'AuthenticAMD'}))
    assert locked(tmp_path, features=('openmp',), extras={}) is None


@pytest.mark.parametrize('lock, told', [
    (None, 'is not installed: run "spack -e '),
    ('{"concrete', 'spack.lock cannot be read (JSONDecodeError'),
    ('{}', "spack.lock cannot be read (KeyError: 'concrete_specs')"),
    (lock_of(b=node('gcc')), 'has 0 specs of plumbline-kernels'),
    (lock_of(a=node('plumbline-kernels'), b=node('plumbline-kernels')), 'has 2 specs of plumbline-kernels'),
    (lock_of(a={**node('plumbline-kernels'), 'parameters': {'dev_path': '/home/x'}}), 'from files that may change'),
])
def test_a_lock_file_that_does_not_say_what_runs_is_refused(tmp_path, lock, told):
    with pytest.raises(PlumblineError, match=re.escape(told)):
        locked(spack_environment(tmp_path / 'env', lock))


@pytest.mark.parametrize('name, features, extras, told', [
    ('env', ['spack'], {}, "needs both the feature 'spack' and 'extras'"),
    ('env', [], None, "needs both the feature 'spack' and 'extras'"),
    ('env', ['spack'], {'spack': 'spack-env/minimal'}, "needs both the feature 'spack' and 'extras'"),
    ('absent', ['spack'], None, 'is no Spack environment (it has no spack.yaml)'),
    ('with blank', ['spack'], None, 'characters that the shell takes for its own'),
])
def test_an_environment_that_names_none_is_refused(tmp_path, name, features, extras, told):
    if name != 'absent':
        spack_environment(tmp_path / name)
    with pytest.raises(PlumblineError, match=re.escape(told)):
        locked(tmp_path / name, features, extras)


# --- through the real ReFrame, with a stand-in for Spack ---------------------------------------------

@pytest.fixture
def place(tmp_path):
    '''A workplace whose programs are "installed" by a stand-in for Spack.'''
    for name in ('triad', 'limits'):
        (tmp_path / 'prefix/bin').mkdir(parents=True, exist_ok=True)
        shutil.copy(rfm.GUARDS / 'program.py', tmp_path / 'prefix/bin' / name)
    script = rfm.script(tmp_path / 'spack', STAND_IN.format(marks=tmp_path / 'marks', hash=PROGRAMS, prefix=tmp_path / 'prefix'))
    config = with_one_more(tmp_path, rfm.GUARDS / 'config.py', reframe_environment(tmp_path / 'env'))
    return rfm.Workplace(tmp_path / 'place', rfm.tools(tmp_path / 'bin', without=rfm.LIKWID, scripts=[script]), config)


STORIES = ('-r', '-p', 'spacked', '--exec-policy=serial', '-n', 'Told.*story=(good|slow)$')


def test_programs_of_an_environment_are_installed_once_and_every_result_says_which(tmp_path, place):
    folder = spack_environment(tmp_path / 'env')
    done = place.reframe(*STORIES)
    assert len(done.cases()) == 2, done.out
    assert (tmp_path / 'marks').read_text().splitlines() == [
        f'-e {folder} install --only-concrete', f'-e {folder} location -i /{PROGRAMS}']
    hashed = hashlib.sha256(LOCK.encode()).hexdigest()
    for case in done.cases().values():
        rfm.assert_measured(case)
        assert case['plumbline']['software']['spack']['lock_hash'] == hashed
    place.judge()
    assert hashed in (place.folder / 'reports/latest/index.html').read_text()
    rows, = (place.folder / 'reports/archive').rglob('*.parquet')
    details = [json.loads(text) for text in polars.read_parquet(rows)['detail'] if text]
    assert [detail['software']['spack']['specs'][0].split('~')[0] for detail in details if 'software' in detail] == ['plumbline-kernels@1.0'] * 2


@pytest.mark.parametrize('why', ['not concretised', 'no spack'])
def test_an_environment_that_is_not_installed_is_one_line(tmp_path, place, why):
    folder = spack_environment(tmp_path / 'env', None if why == 'not concretised' else LOCK)
    if why == 'no spack':
        (tmp_path / 'bin/spack').unlink()
    done = place.reframe(*STORIES)
    line = done.line('Reason: ')
    assert done.code and 'Traceback' not in done.out
    assert f'the Spack environment {folder} is not installed: run "spack -e {folder} install"' in line
    assert ('spack: command not found' in line) == (why == 'no spack')
    assert place.judge().code == 1


# --- with the real Spack --------------------------------------------------------------------------

def test_minimal_is_installed_by_spack_and_measured(tmp_path):
    '''The tree as it is, committed in a clone of its own, and installed into a folder of its own.'''
    if not shutil.which('spack'):
        pytest.skip('spack is not there')
    native.needs('git', 'mpicc.openmpi', 'mpirun.openmpi', 'likwid-pin')
    clone = tmp_path / 'clone'
    left_out = shutil.ignore_patterns('__pycache__', '*.egg-info', '.spack-env', 'spack.lock')
    for name in ('src', 'spack-env'):
        shutil.copytree(rfm.REPOSITORY / name, clone / name, symlinks=True, ignore=left_out)
    someone = ['-c', 'user.name=x', '-c', 'user.email=x@localhost']
    for words in (['init', '-q'], ['add', '-A'], [*someone, 'commit', '-qm', 'as it is']):
        native.output_of('git', '-C', clone, *words, timeout=60)
    commit = native.output_of('git', '-C', clone, 'rev-parse', 'HEAD', timeout=60).strip()
    minimal = clone / 'spack-env/minimal'
    with open(minimal / 'spack.yaml', 'a') as file:
        file.write(f'  config:\n    install_tree:\n      root: {tmp_path}/opt\n')
    for words in (['concretize'], ['install']):
        native.output_of('spack', '-e', minimal, *words, timeout=900)
    environment = reframe_environment(minimal, 'mpi', 'openmpi')
    environment['extras']['launcher'] = ['mpirun.openmpi']
    environment['env_vars'] = [['OMPI_ALLOW_RUN_AS_ROOT', '1'], ['OMPI_ALLOW_RUN_AS_ROOT_CONFIRM', '1']]
    config = with_one_more(tmp_path, rfm.REPOSITORY / 'config/localhost.py', environment)
    place = rfm.Workplace(tmp_path / 'place', config=config, HOME=os.environ['HOME'])
    done = place.reframe('-r', '-p', 'spacked', '-n', 'redundancy', '-n', 'pingpong.*shm', '-S', 'pingpong.largest=1024',
                         checks=rfm.REPOSITORY / 'checks')
    assert {name.split(' ')[0] for name in done.cases()} == {'redundancy', 'pingpong'}, done.out
    for case in done.cases().values():
        rfm.assert_measured(case)
        assert f'commit={commit} ' in case['plumbline']['software']['spack']['specs'][0]
        flags = case['plumbline']['records'][0]['flags']
        assert '-march=' in flags and 'native' not in flags
