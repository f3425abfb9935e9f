'''No shipped check and no shipped configuration rots: ReFrame lists and dry-runs every check on every configuration.

What a configuration needs of its site is canned: Slurm's commands (``guards/slurm``) and those of the module systems
(``guards/modules``).  A dry run asks no scheduler for anything.
'''

import ast
import functools
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import rfm
from mpi_native import MPIS
from plumbline import settings

CHECKS = rfm.REPOSITORY / 'checks'
SITES = rfm.REPOSITORY / 'config/sites'
CONFIGURATIONS = [rfm.REPOSITORY / 'config/localhost.py', *sorted(SITES.glob('*.py'))]

#: These are run by name, before any mode.
ON_REQUEST = {'topology'}

#: It lasts for hours, and is in no mode.
BY_TAG = {'burn'}

#: A dry run of a test case takes ReFrame a tenth of a second.  One compiler and one MPI are enough, and of each check all
#: variants on one machine.
ENVIRONMENTS = f"^gnu(-openmpi|-{next(iter(MPIS), 'openmpi')})?$"       # the examples' and this machine's
ALL_VARIANTS = 'example-pbs.py'


def shipped(folder):
    '''Names of all classes in a folder that are tests.'''
    return {node.name for path in folder.rglob('*.py') for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef)
            and any('simple_test' in ast.unparse(decorator) for decorator in node.decorator_list)}


def plain(text):
    return re.sub('\x1b\\[[0-9;]*m', '', text)


def systems_of(config):
    '''Names of the systems of a configuration.'''
    return [system['name'] for system in settings_of(config)['systems']]


def settings_of(config):
    '''What a configuration gives to ReFrame.'''
    return dict(zip(CONFIGURATIONS, _settings()))[config]


@functools.cache
def _settings():
    '''Of all configurations, read by one process.'''
    code = 'import json, runpy, sys; print(json.dumps([runpy.run_path(path)["site_configuration"] for path in sys.argv[1:]]))'
    done = subprocess.run([sys.executable, '-c', code, *CONFIGURATIONS], text=True, timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def workplace(folder, config, **environment):
    '''Where ReFrame runs with a configuration and all that it needs of a site.'''
    return rfm.Workplace(folder, f"{rfm.GUARDS / 'slurm'}:{rfm.GUARDS / 'modules'}:{rfm.os.environ['PATH']}", config,
                         LMOD_CMD=rfm.GUARDS / 'modules/lmod', PLUMBLINE_CAPACITY='topology', **environment)


@dataclass
class Look:
    '''What ReFrame makes of the checks on one system of a configuration.

    :attr listed: names of the checks listed; :attr set_up: of those that a dry run took to its end.
    :attr complaints: one line each.
    :attr stage: ReFrame's stage folder.
    '''
    listed: set
    set_up: set
    complaints: list
    stage: Path


def look(folder, config, system, checks=CHECKS):
    '''List and dry-run all checks on a system: :class:`Look`.'''
    place = workplace(folder, config)
    where, complaints = f'{Path(config).name}, {system}', []

    def names(what, pattern, *options):
        done = place.reframe(f'--system={system}', '--warn-as-error', *options, checks=checks)
        said = [line for line in plain(done.out).splitlines() if re.search(r'\bERROR\b|WARNING|\bFAIL \]|Reason:', line)]
        if done.code or said:
            complaints.append(f'{where}: {what}: exit code {done.code}: {said[:1] or plain(done.out)[-500:]}')
        return set(re.findall(pattern, plain(done.out), re.M))

    listed, set_up = names('listing', r'^- (\w+)', '-l'), set()
    if not listed:
        complaints.append(f'{where}: no test at all')
    if not complaints:      # a dry run would complain of the same; not by a mode, on which -p has no effect
        set_up = names('dry run', r'^\[ DRY +\] (\w+) ', '-p', ENVIRONMENTS, '--dry-run', *(
            f'-n{name}@0' for name in listed if Path(config).name != ALL_VARIANTS))
    return Look(listed, set_up, complaints, place.stage)


def unselected(looks, checks=CHECKS):
    '''Names of the checks that no configuration selects.'''
    assert shipped(checks)
    return shipped(checks) - set().union(*(one.listed for one in looks))


@pytest.fixture(scope='module')
def looks(tmp_path_factory):
    '''(file name, system) -> :class:`Look` of the shipped checks.'''
    places = [(config, system) for config in CONFIGURATIONS for system in systems_of(config)]
    folders = [tmp_path_factory.mktemp(system) for _, system in places]     # pytest's are not made for threads
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda folder, place: look(folder, *place), folders, places)
        return {(config.name, system): one for (config, system), one in zip(places, found)}


# --- the shipped ones ---------------------------------------------------------------------------------------------------

def test_shipped_machines_load_and_set_up_and_select_every_check(looks):
    assert set(looks) >= {('localhost.py', 'localhost'), ('virtual.py', 'virtual'), ('example-slurm.py', 'example-slurm'),
                          ('example-pbs.py', 'example-pbs')}
    assert not [complaint for one in looks.values() for complaint in one.complaints]
    assert not unselected(looks.values())
    for where, one in looks.items():
        assert one.listed <= one.set_up, where      # and fixtures


def test_two_kinds_of_nodes_get_sizes_of_their_own(looks):
    stage = looks['example-slurm.py', 'example-slurm'].stage
    scripts = {path.parts[-4]: path.read_text() for path in stage.rglob('triad_memory*/rfm_job.sh')}
    assert set(scripts) == {'cpu', 'himem'}
    assert all('module load gcc/13.2' in text and f'--partition={name}' in text for name, text in scripts.items())
    sizes = {name: int(re.search(r'--size (\d+)', text)[1]) for name, text in scripts.items()}
    assert sizes == {'cpu': 4 * 64 * 2**20 // 32, 'himem': 4 * 120 * 2**20 // 32}


def test_every_mode_has_tests(tmp_path):
    def listed(mode):
        place = workplace(tmp_path / mode, rfm.REPOSITORY / 'config/localhost.py')
        return place.reframe(f'--mode={mode}', '-L', checks=CHECKS)
    with ThreadPoolExecutor(4) as pool:
        done = dict(zip(settings.MODES, pool.map(listed, settings.MODES)))
    names = {mode: set(re.findall(r'^- (\w+)', plain(one.out), re.M)) for mode, one in done.items()}
    assert all(one.code == 0 for one in done.values()) and all(names.values())
    assert names['daily'] < names['upgrade'] < names['acceptance'] == shipped(CHECKS) - ON_REQUEST - BY_TAG - shipped(CHECKS / 'named')
    assert names['node'] < names['screen'] > names['daily'] and {'tlb', 'fileio_modes', 'pingpong'} <= names['screen']
    assert {'limits', 'triad_memory', 'latency'} <= names['node'] and not names['node'] & shipped(CHECKS / 'mpi')
    # One compiler says what a node is worth.
    assert set(re.findall(r'\+([\w-]+) ', plain(done['node'].out))) == {'gnu'}


def test_environments_that_stand_for_all():
    system = {'name': 's', 'partitions': [{'name': 'a', 'environs': ['gnu', 'llvm', 'gnu-openmpi', 'llvm-openmpi', 'gnu-mpich']},
                                          {'name': 'b', 'environs': ['cray', 'of-another-file']}]}
    features = {'gnu': ['openmp', 'fortran'], 'llvm': ['openmp'], 'gnu-openmpi': ['mpi', 'openmpi'],
                'llvm-openmpi': ['mpi', 'openmpi'], 'gnu-mpich': ['mpi', 'mpich'], 'cray': ['openmp']}
    environments = [{'name': name, 'features': having} for name, having in features.items()]
    assert settings.representative(system, environments) == ['gnu', 'gnu-openmpi', 'gnu-mpich', 'cray', 'of-another-file']
    # Another system's, or another partition's, of that name.
    further = [{'name': 'llvm', 'features': ['openmp', 'offload'], 'target_systems': [where]} for where in ('t', 's:b')]
    assert 'llvm' not in settings.representative(system, [*environments, *further])
    further[0]['target_systems'] = ['s:a']
    assert 'llvm' in settings.representative(system, [*further, *environments])
    # ReFrame 4.10.4 refuses features that begin with a digit.
    for config in CONFIGURATIONS:
        found = settings_of(config)
        named = [*found['environments'], *(partition for system in found['systems'] for partition in system['partitions'])]
        assert not [name for one in named for name in (*one.get('features', ()), *one.get('extras', ())) if not re.fullmatch(r'[A-Za-z_]\w*', name)], config


# --- the guards, each triggered -----------------------------------------------------------------------------------------

NOWHERE = '''import reframe as rfm


@rfm.simple_test
class Nowhere(rfm.RunOnlyRegressionTest):
    valid_systems, valid_prog_environs = ['no-such-system'], ['*']
'''

ANYWHERE = NOWHERE.replace('no-such-system', '*').replace('Nowhere', 'Anywhere') + '''\
    tags = {'acceptance'}
    executable, sourcesdir = 'true', None
'''


@pytest.fixture
def few(tmp_path):
    '''Function (file name -> text) -> a folder of checks.'''
    def make(**files):
        folder = tmp_path / 'few'
        folder.mkdir()
        for name, text in files.items():
            (folder / f'{name}.py').write_text(text)
        return folder
    return make


def slurm_with(folder, old, new):
    '''A copy of the Slurm example in which something is changed.'''
    text = (SITES / 'example-slurm.py').read_text()
    assert old in text
    (folder / 'site.py').write_text(text.replace(old, new, 1))
    return folder / 'site.py'


def test_a_file_that_does_not_load_is_found(tmp_path, few):
    checks = few(anywhere=ANYWHERE, broken='import reframe as rfm\nrfm.no_such_thing\n')
    found = look(tmp_path, SITES / 'example-pbs.py', 'example-pbs', checks)
    assert len(found.complaints) == 2 and 'skipping test file' in found.complaints[0]
    assert 'no test at all' in found.complaints[1]      # a warning is an error: ReFrame alone would list the other one


def test_a_check_that_nobody_selects_and_one_that_cannot_be_set_up_are_found(tmp_path, few):
    late = ANYWHERE + '\n    @run_before("run")\n    def fail(self):\n        raise ValueError("never set up")\n'
    checks = few(nowhere=NOWHERE, late='from reframe.core.builtins import run_before\n' + late)
    found = look(tmp_path, SITES / 'example-pbs.py', 'example-pbs', checks)
    assert found.listed == {'Anywhere'} and len(found.complaints) == 1 and 'dry run: exit code 1' in found.complaints[0]
    assert unselected([found], checks) == {'Nowhere'}


def test_a_configuration_that_reframe_rejects_is_found(tmp_path, few):
    found = look(tmp_path, slurm_with(tmp_path, "['gnu', 'aocc',", "['gnu', 'oacc',"), 'example-slurm', few(anywhere=ANYWHERE))
    assert found.complaints and 'exit code 1' in found.complaints[0] and 'ERROR' in found.complaints[0]


def test_zero_tests_are_found(tmp_path, few):
    found = look(tmp_path, slurm_with(tmp_path, "'environs': environs", "'environs': []"), 'example-slurm', few(anywhere=ANYWHERE))
    assert not found.listed and 'no test at all' in found.complaints[-1]


# --- versions of ReFrame ------------------------------------------------------------------------------------------------

def claimed():
    '''The oldest ReFrame of pyproject.toml, and that of the set-up.'''
    oldest, = re.findall(r'"reframe-hpc>=([\d.]+),', (rfm.REPOSITORY / 'pyproject.toml').read_text())
    return oldest, *re.findall(r'(?m)^reframe-hpc==([\d.]+)', (rfm.REPOSITORY / 'requirements.lock').read_text())


@pytest.fixture(scope='module')
def oldest(tmp_path_factory):
    '''PYTHONPATH on which the oldest ReFrame is that we claim to support.'''
    return rfm.installed(tmp_path_factory.mktemp('oldest'), f'reframe-hpc=={claimed()[0]}')


def test_the_newest_is_the_one_installed():
    done = subprocess.run([rfm.sys.executable, '-m', 'pip', 'freeze'], text=True, capture_output=True, timeout=60)
    assert f'reframe-hpc=={claimed()[1]}' in done.stdout.splitlines()
    assert f'\nreframe-hpc=={claimed()[1]} \\\n' in (rfm.REPOSITORY / 'requirements.lock').read_text()


def test_the_oldest_lists_and_sets_up(tmp_path, oldest):
    place = workplace(tmp_path, rfm.REPOSITORY / 'config/localhost.py', PYTHONPATH=oldest)
    assert place.reframe('--version').out.strip() == claimed()[0]
    done = place.reframe('--mode=node', '--exec-policy=async', '--dry-run', checks=CHECKS)
    assert done.code == 0, done.out
    listing = place.reframe('--warn-as-error', '-l', checks=CHECKS)
    assert listing.code == 0 and set(re.findall(r'^- (\w+)', plain(listing.out), re.M)) == shipped(CHECKS) - ON_REQUEST


def test_the_oldest_measures_and_judges(tmp_path, commands, oldest):
    place = rfm.Workplace(tmp_path / 'place', commands, PYTHONPATH=oldest, PLUMBLINE_REFERENCES=rfm.KNOWN,
                          CANNED_MARK=tmp_path / 'mark')
    done = place.reframe('-r', '--exec-policy=serial', '-n', 'Told.*story=(good|slow|crash|silent)$')
    results = {name.rpartition('=')[2]: case['result'] for name, case in done.cases().items()}
    assert results == {'good': 'pass', 'slow': 'fail', 'crash': 'fail', 'silent': 'fail'}
    assert done.report['session_info']['version'] == claimed()[0]
    judged = place.judge()
    assert judged.code == 1 and 'Traceback' not in judged.out and ' FAIL\n' in judged.out
