'''A site of a login node and three types of nodes: where tests run, how often, how long, and who starts their processes.

Listed and dry-run by the real ReFrame; Slurm's commands are canned (``guards/slurm``).
'''

import json
import re
import runpy
from types import SimpleNamespace

import pytest

import rfm
from plumbline.errors import PlumblineError
from plumbline.rfm import launch

SITE = rfm.GUARDS / 'four_partitions.py'
CHECKS = rfm.REPOSITORY / 'checks'
TRIAD = CHECKS / 'memory/triad_memory.py'
ALL = '^triad_memory%threads=all'


@pytest.fixture
def site(tmp_path):
    '''Function (variables) -> a workplace on that site's login node.'''
    return lambda **variables: workplace(tmp_path / 'place', **variables)


def workplace(folder, **variables):
    return rfm.Workplace(folder, f"{rfm.GUARDS / 'slurm'}:{rfm.os.environ['PATH']}", SITE, **variables)


def cases(done):
    '''What ``-lC`` lists: (test, partition, environment), fixtures and all, sorted.'''
    assert done.code == 0, done.out
    text = re.sub('\x1b\\[[0-9;]*m', '', done.out)
    return sorted(re.findall(r'^ *[-^]+ *(\S+).*@four:(\w+)\+(\S+)', text, re.M))


def scripts(place):
    '''(test, partition, environment) -> job script of a dry run.'''
    found = place.stage.rglob('rfm_job.sh')
    return {(re.sub('_[0-9a-f]{8}$', '', path.parent.name), path.parts[-4], path.parts[-3]): path.read_text() for path in found}


def of(found, name, environ):
    '''The script of a test, or of a fixture, on the partition rome.'''
    text, = (text for (test, *place), text in found.items() if test.startswith(name) and place == ['rome', environ])
    return text


def dry_run(place, *options, name=ALL, checks=TRIAD):
    done = place.reframe('--dry-run', '-n', name, *options, checks=checks)
    assert done.code == 0, done.out
    return scripts(place)


@pytest.fixture(scope='module')
def triad(tmp_path_factory):
    '''A dry run of the triad on all types of nodes.'''
    place = workplace(tmp_path_factory.mktemp('triad'))
    dry_run(place)
    return place


# --- where, and how often -----------------------------------------------------------------------------------------------

def test_a_fixture_runs_once_on_each_partition_and_its_tests_wait_for_no_other(site):
    done = site().reframe('-lC', '-n', ALL, checks=TRIAD)
    listed = cases(done)
    places = [(partition, environ) for partition in ('milan', 'rome', 'spr') for environ in ('gnu', 'llvm')]
    assert len(set(listed)) == 3 * len(places)
    for test in ('triad_memory', 'native_programs', 'likwid_bench'):
        assert sorted({(partition, environ) for name, partition, environ in listed if name.startswith(test)}) == places

    tests = re.split(r'^- ', re.sub('\x1b\\[[0-9;]*m', '', done.out), flags=re.M)[1:]
    assert len(tests) == 6
    for text in tests:
        assert len(set(re.findall(r'@four:(\w+)\+(\w+)', text))) == 1, text


def test_the_command_line_says_where_and_of_which_parameters(site):
    listed = cases(site().reframe('-lC', '-n', '^triad_memory', '-P', 'threads=one', '-S', 'triad_memory.valid_systems=four:rome', '-S',
                                  'triad_memory.valid_prog_environs=llvm', checks=TRIAD))
    assert {(partition, environ) for _, partition, environ in listed} == {('rome', 'llvm')}
    assert len([name for name, *_ in listed if name.startswith('triad_memory')]) == 1
    found = site().reframe('-l', '-t', '^io$', '--system=four:rome', checks=CHECKS)
    names = set(re.findall(r'^- (\w+)', re.sub('\x1b\\[[0-9;]*m', '', found.out), re.M))
    assert names == {path.stem for path in (CHECKS / 'io').glob('*.py')}
    listed = cases(site().reframe('-lC', '--mode=daily', '-p', '^llvm$', checks=CHECKS))
    assert {environ for _, _, environ in listed} == {'llvm'} and 'login' not in {partition for _, partition, _ in listed}


# --- how long, alone on its nodes, and not in a row -----------------------------------------------------------------

def test_measurements_have_their_node_to_themselves(triad, site):
    assert {name: '#SBATCH --exclusive' in text for (name, partition, environ), text in scripts(triad).items() if (partition, environ) == ('rome', 'gnu')} == {
        'native_programs': True, 'likwid_bench': True, 'triad_memory': True}
    place = site(CANNED_TIME='1h')
    runs = scripts(triad), dry_run(place, '--system=four:rome'), dry_run(place, '--system=four:rome', '-S', 'triad_memory.time_limit=25m')
    assert [re.search(r'--time=(\S+)', of(found, 'triad_memory', 'gnu'))[1] for found in runs] == ['0:10:0', '1:0:0', '0:25:0']


def test_a_job_may_take_as_long_as_its_working_set_does(site):
    '''Of five processes; four caches of 256 MiB ask for 4 GiB.'''
    names = 'strided_copy', 'triad_memory', 'redundancy'

    def limits(**variables):
        found = dry_run(site(**variables), '--system=four:rome', '-p', '^gnu$', '--mode=acceptance', name=f"^({'|'.join(names)})(?!.*=all)",
                        checks=CHECKS)
        return [re.search(r'--time=(\S+)', of(found, name, 'gnu'))[1] for name in names]
    assert limits() == ['0:14:35', '0:10:0', '0:10:0']
    assert limits(CANNED_L3=2**28) == ['3:53:20', '0:40:0', '0:10:0']
    assert limits(CANNED_L3=2**29) == ['4:0:0', '1:20:0', '0:10:0']
    assert limits(CANNED_L3=2**28, CANNED_TIME='1h') == ['1:0:0'] * 3


def test_where_memory_cannot_be_measured_tests_are_skipped_and_curves_end_in_cache(site):
    '''1 GiB of L3, and 4 GiB of memory.'''
    place = site(CANNED_L3=2**28, CANNED_MEMORY=4)
    done = place.reframe('--dry-run', '-n', '^(triad_curve|motion_memory|transpose_memory).*threads=all|^app_scaling.*triad_weak.*over=node$',
                         '--system=four:rome', checks=CHECKS)
    assert done.code == 0, done.out
    found = {name.split(' ')[0]: (case['result'], {(one['metric'], one['reason'][-43:]) for one in case['plumbline']['skipped']})
             for name, case in done.cases().items()}
    why = 'hold 1 GiB; ask for 16 GiB of memory at least'[-43:]
    assert found == {'triad_curve': ('pass', {('all in memory', why)})} | dict.fromkeys(
        ('motion_memory', 'transpose_memory', 'app_scaling'), ('skip', {('all', why)}))
    assert f' --sweep 10:{2**29 // 32}:30 ' in of(scripts(place), 'triad_curve', 'gnu')


@pytest.mark.parametrize('name', ['node_speed%threads=one', 'triad_openmp', 'transpose_sizes%threads=one'])
def test_caches_without_sizes_are_said(site, name):
    done = site(CANNED_L3=0).reframe('--dry-run', '-n', f'^{name}$', '--system=four:rome', '-p', '^gnu$', checks=CHECKS)
    assert done.code and 'Reason: reframe error: the kernel does not tell the sizes of the caches' in done.out, done.out


def test_what_reframe_has_can_be_set(site):
    '''Also what we would choose ourselves.'''
    given = ['exclusive_access=no', 'env_vars=OMP_DYNAMIC:false', 'prerun_cmds=hostname', 'num_tasks_per_core=1', 'max_pending_time=3d',
             'modules=ours/1', 'keep_files=*.csv', 'maintainers=ops', 'tags=ours']
    options = [word for setting in given for word in ('-S', f'triad_memory.{setting}')]
    found = of(dry_run(site(), '--system=four:rome', '-p', '^gnu$', *options), 'triad_memory', 'gnu')
    assert '#SBATCH --exclusive' not in found
    for line in ('export OMP_DYNAMIC=false', 'hostname', '#SBATCH --ntasks-per-core=1'):
        assert re.search(f'^{line}$', found, re.M), line


def test_a_container_for_our_programs_is_refused_in_one_line(site, tmp_path):
    (tmp_path / 'contained.py').write_text("""
import reframe as rfm
from plumbline.rfm.check import NativeCheck
from reframe.core.builtins import run_after

@rfm.simple_test
class contained(rfm.RunOnlyRegressionTest, NativeCheck):
    '''Is it as fast in a container?'''
    program, threads, subsystem = 'triad', 'one', 'memory'
    container_platform = 'Singularity'

    @run_after('init')
    def choose(self):
        self.container_platform.image = 'ours.sif'

    def options(self):
        return []
""")
    done = site().reframe('--dry-run', '-n', 'contained', '--system=four:rome', '-p', '^gnu$', checks=tmp_path / 'contained.py')
    assert done.code and 'container_platform: contained runs on the node itself' in done.out and 'Traceback' not in done.out


def test_what_shares_more_than_nodes_runs_one_after_the_other(site):
    place = site()
    found = dry_run(place, '--system=four:rome', name='^(pingpong_nodes|fileio_sizes|pingpong%)', checks=CHECKS)
    waits = {name: set(re.findall(r'--(?:job-name=(plumbline-\S+)|dependency=(\w+))', text)) for (name, *_), text in found.items()}
    assert waits['pingpong_nodes'] == {('plumbline-network', ''), ('', 'singleton')} and not waits['pingpong']
    assert all(re.match('plumbline-files-', text[0]) or text[1] == 'singleton' for text in waits['fileio_sizes']) and waits['fileio_sizes']


@pytest.mark.parametrize('scheduler, policy, more', [
    ('slurm', False, {}), ('squeue', False, {}), ('pbs', True, {}), ('local', True, {}), ('slurm', True, {'CANNED_SHARED': 'yes'})])
def test_modes_wait_for_each_test_only_where_tests_would_meet(monkeypatch, scheduler, policy, more):
    for name, value in {'CANNED_SCHEDULER': scheduler, **more}.items():
        monkeypatch.setenv(name, value)
    found = [mode for mode in runpy.run_path(str(SITE))['site_configuration']['modes'] if mode['name'] == 'daily']
    chosen = next((mode for mode in found if mode.get('target_systems') == ['four']), found[0])       # as ReFrame does
    assert ('--exec-policy=serial' in chosen['options']) == policy


def test_reframe_takes_the_mode_of_the_system(site):
    done = site().reframe('--mode=daily', '--show-config=modes/@daily/options', checks=TRIAD)
    assert done.code == 0 and '--exec-policy=serial' not in done.out, done.out


ONE_OF_A_CHAIN = '''
from plumbline import settings
environments = [{{'name': name, 'features': [name], 'cc': 'of-{name}'}} for name in {environments}]
site_configuration = settings.site([{{'name': '{name}', 'hostnames': ['.*'], 'partitions': [{{
    'name': 'p', 'scheduler': 'pbs', 'launcher': 'local', 'environs': {environments}}}]}}], environments, modes=[{{'name': 'ours', 'options': ['-t {name}']}}])
'''


def test_modes_and_environments_of_a_chain_are_each_files_own(tmp_path):
    '''By the modes of a machine without an MPI no check of MPI would run on the other one.'''
    files = []
    for name, environments in ('a', ['gnu', 'gnu-openmpi']), ('b', ['gnu']):
        files.append(tmp_path / f'{name}.py')
        files[-1].write_text(ONE_OF_A_CHAIN.format(name=name, environments=environments))
    for chain in files, files[::-1]:
        place = rfm.Workplace(tmp_path / chain[0].stem, config=chain[0])
        found = [json.loads(place.reframe('-C', chain[1], '--system=a', f'--show-config={what}', checks=TRIAD).out)
                 for what in ('modes/@daily/options', 'modes/@ours/options', 'environments/@gnu/cc')]
        assert r"-p '^(gnu|gnu\-openmpi)$'" in found[0] and found[1:] == [['-t a'], 'of-a']


# --- who starts the processes ------------------------------------------------------------------------------------------

STARTED = {'srun': r'^env .* srun .*--cpu-bind=map_cpu:0,1 .*/pingpong ', 'mpirun': r'^mpirun -np 2 --rankfile ranks.txt .*/pingpong '}


@pytest.mark.parametrize('launcher', ['srun', 'mpirun'])
def test_a_launcher_gets_options_that_it_knows(site, launcher):
    place = site(CANNED_LAUNCHER=launcher, OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
    found = dry_run(place, '--system=four:rome', '-c', CHECKS / 'mpi/pingpong.py', name=f'^pingpong%transport=shm|{ALL}')
    text = of(found, 'pingpong', 'gnu-openmpi')
    assert re.search(STARTED[launcher], text, re.M), text
    assert launcher == 'srun' or '--cpu-bind' not in text
    alone = of(found, 'triad_memory', 'gnu')
    assert re.search(r'^env .* srun .*--cpu-bind=none .*likwid-pin ' if launcher == 'srun' else '^likwid-pin ', alone, re.M), alone


def test_another_launcher_is_refused_in_one_line(site):
    done = site(CANNED_LAUNCHER='ibrun').reframe('--dry-run', '-n', '^pingpong%transport=shm', '--system=four:rome', checks=CHECKS / 'mpi/pingpong.py')
    assert done.code == 1 and 'Traceback' not in done.out
    assert ('four:rome starts programs by ibrun, which cannot be told the CPU of each process: give gnu-openmpi the extra `launcher`' in done.out)


LAUNCHERS = ('alps', 'clush', 'ibrun', 'local', 'lrun', 'lrun-gpu', 'mpiexec', 'mpirun', 'mpirun-intelmpi', 'mpirun-openmpi', 'pdsh', 'srun',
             'srunalloc', 'ssh', 'upcrun', 'upcxx-run')


def test_every_launcher_of_reframe_is_known_or_refused():
    def partition(name):
        return SimpleNamespace(fullname='four:rome', launcher_type=SimpleNamespace(registered_name=name))
    environ = SimpleNamespace(name='gnu-openmpi', extras={})
    known, refused = {}, set()
    for name in LAUNCHERS:
        try:
            known[name] = launch.own_words(environ, partition(name))
        except PlumblineError:
            refused.add(name)
    assert known == {'srun': None, 'srunalloc': None, 'mpirun': ['mpirun'], 'mpirun-openmpi': ['mpirun'],
                     'mpirun-intelmpi': ['mpirun'], 'mpiexec': ['mpiexec']}
    assert refused == {*LAUNCHERS} - {*known}
    environ.extras['launcher'] = ['jsrun']
    assert launch.own_words(environ, partition('lrun')) == ['jsrun']


# --- the build ----------------------------------------------------------------------------------------------------------

def test_the_build_asks_for_the_cpus_that_it_uses(triad):
    text = next(triad.stage.rglob('rome/gnu/native_programs*/rfm_build.sh')).read_text()
    jobs = int(re.search(r'-j *(\d+)', text)[1])
    assert f'#SBATCH --cpus-per-task={jobs}' in text
    assert '$(command -v ninja' in text


# --- what a site adds to its configuration ------------------------------------------------------------------------------

def test_a_sites_own_settings_go_through(tmp_path):
    """Its log, its storage, its modes, in ReFrame's own form."""
    code = '''
import json, sys
from plumbline import settings
part = {'name': 'p', 'scheduler': 'local', 'launcher': 'local', 'environs': ['gnu'], 'extras': {'machine': 'config/machines/m.yaml'}}
print(json.dumps(settings.site(
    [{'name': 'a', 'hostnames': ['.*'], 'partitions': [part]}], [{'name': 'gnu'}], storage=[{'enable': True}],
    logging=[{'handlers_perflog': [{'type': 'graylog'}]}, {'level': 'debug', 'target_systems': ['b']}],
    modes=[{'name': 'daily', 'options': ['-t x']}, {'name': 'ours', 'options': ['-t y']}],
    general=[{'timestamp_dirs': '%F', 'check_search_recursive': False}])))
'''
    place = rfm.Workplace(tmp_path / 'place')
    found = json.loads(place.run([rfm.sys.executable, '-c', code]).out)
    assert [handler['type'] for handler in found['logging'][0]['handlers_perflog']] == ['filelog', 'graylog']
    assert found['logging'][0]['perflog_multiline'] and found['logging'][1]['level'] == 'debug'
    modes = {mode['name']: mode['options'] for mode in found['modes']}
    assert (modes['daily'], modes['ours']) == (['-t x'], ['-t y']) and 'acceptance' in modes
    assert found['general'][0]['timestamp_dirs'] == '%F' and found['general'][0]['check_search_recursive'] is False
    assert found['storage'] == [{'enable': True}] and found['general'][0]['trap_job_errors']
    # Of a relative path each job of a sweep would find another file, or none.
    assert found['systems'][0]['partitions'][0]['extras'] == {'machine': str(rfm.REPOSITORY / 'config/machines/m.yaml')}


def test_a_failure_names_whom_to_ask(site):
    for given, named in ((), 'the Plumbline developers'), (('-S', 'maintainers=hpc-support'), 'hpc-support'):
        done = site().reframe('--describe', '-n', '^limits.*one', *given, '--system=four:rome', checks=CHECKS / 'memory/limits.py')
        described = json.loads(done.out[done.out.index('['):])
        assert done.code == 0 and [one['maintainers'] for one in described if one['maintainers']][0] == [named]
