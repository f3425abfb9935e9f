'''``plumbline detect``: a site file of what is there, what is not certain as a comment; topologies by a job.'''

import copy
import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from reframe.core.config import load_config

import rfm
from native import CPUS
from plumbline import detect
from plumbline.detect import file_systems, modules, mpis, slurm
from plumbline.detect.site_file import LONGEST_JOB, Entry, duration, lines, remark
from plumbline.errors import PlumblineError
from plumbline.mpi import environments
from plumbline.rfm.job import Job
from plumbline.system import commands, topology_file
from virtual import cluster_in

RECORDED = Path(__file__).with_name('data') / 'detect'
CHECKS = rfm.REPOSITORY / 'checks'

#: The command of Lmod, which the tests take out of the environment.
LMOD = os.environ.get('LMOD_CMD')

#: Commands of schedulers and module systems that this machine may have, and what would only take time.
THEIRS = {'sinfo', 'scontrol', 'sacctmgr', 'srun', 'qstat', 'pbsnodes', 'flux', 'bsub', 'oarsub', 'qconf', 'modulecmd',
          'mpicc', 'mpicc.openmpi', 'mpicc.mpich'}


@pytest.fixture(scope='module')
def bare(tmp_path_factory):
    '''A folder for PATH with gcc and without other compilers, MPIs, schedulers and module systems.'''
    there = {entry for place in os.environ['PATH'].split(':') if os.path.isdir(place) for entry in os.listdir(place)}
    others = {entry for entry in there if entry.startswith(('clang', 'flang', 'likwid'))}
    return rfm.tools(tmp_path_factory.mktemp('bare') / 'bin', without=THEIRS | others)


@pytest.fixture
def here(bare, tmp_path, monkeypatch):
    '''A folder for stand-ins, before that PATH in this process.'''
    folder = tmp_path / 'commands'
    folder.mkdir()
    monkeypatch.setenv('PATH', f'{folder}:{bare}')
    for name in ('MODULEPATH', 'LMOD_CMD', 'LOADEDMODULES', 'I_MPI_ROOT', 'SLURM_CONF'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(environments, 'found', lambda compilers: [])
    monkeypatch.setattr(file_systems, 'detect', lambda: ([], []))
    return folder


def understood(text, tmp_path):
    '''(system, partitions by name, environments by name) that ReFrame reads; it refuses what is out of its schema.'''
    file = tmp_path / 'site.py'
    file.write_text(text)
    name = re.search("'name': '(.*?)'", text)[1]
    config = load_config(str(file))
    config.validate()
    config.select_subconfig(name, ignore_resolve_errors=True)
    system = next(one for one in config['systems'] if one['name'] == name)
    return system, *({one['name']: one for one in some} for some in (system['partitions'], config['environments']))


def remarks(text, start):
    '''The comments between a line that begins so and the end of its dictionary, joined.'''
    after = text[text.index(start):]
    return ' '.join(re.findall('^ *# ?(.*)$', after[:after.index('\n            },')], re.MULTILINE))


# --- a real Slurm -----------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def nodes(tmp_path_factory):
    '''Two nodes, which may use the last two CPUs of this host.'''
    with cluster_in(tmp_path_factory.mktemp('cluster'), nodes=2, cpus=[CPUS[-2:]] * 2) as running:
        yield running


@pytest.fixture(scope='module')
def site(nodes, handed_out, built_already, tmp_path_factory):
    '''A place on that cluster's "login node", its configuration as detected; the programs are built already.'''
    folder = tmp_path_factory.mktemp('site')
    place = rfm.Workplace(folder, built_already, folder / 'plumb.py', CANNED_PROGRAMS=handed_out,
                          PLUMBLINE_TOPOLOGIES=folder / 'topologies', **nodes.variables)
    said = place.plumbline('detect', '--output', place.config)
    assert said.code == 0, said.out
    with place.config.open('a') as file:        # here no job is in the queue late
        file.write('\nfrom reframe.core.schedulers.slurm import SqueueJobScheduler\nSqueueJobScheduler.SQUEUE_DELAY = 0.2\n')
    return place


def topology_job(place, *options, checks=CHECKS / 'site'):
    return place.reframe('-r', '-t', 'topology', '--warn-as-error', *options, checks=checks)


def topology_file_of(place):
    return place.folder / 'topologies/plumb-all.json'


@pytest.fixture(scope='module')
def looked_at(site):
    '''The same after the topology job, which is its first result.'''
    done = topology_job(site, checks=CHECKS)
    assert done.code == 0, done.out
    return site, done, json.loads(topology_file_of(site).read_text())


def test_a_new_site_measures_after_no_line_by_hand_and_one_job(looked_at, nodes):
    place, _, found = looked_at
    assert place.config.read_text().count('# DECIDE: ') <= 2      # and none of them has to be decided
    assert found['node'] in nodes.nodes and found['allowed_cpus'] == CPUS[-2:] and found['memory'] > 0
    # Serial, and with OpenMP on all CPUs that a job may use.
    ran = place.reframe(*rfm.small(), '-n', 'latency%pages=base', '-n', 'triad_memory%threads=all', '-p', '^gnu$', checks=CHECKS / 'memory')
    cases = ran.cases()
    assert len(cases) == 2, ran.out
    used = set()
    for case in cases.values():
        rfm.assert_measured(case)
        assert case['plumbline']['machine']['hostname'] in nodes.nodes
        used |= {cpu for record in case['plumbline']['records'] for cpu in record['cpus']}
    assert used and used <= set(CPUS[-2:])
    assert re.search(r'triad_memory all +(n[12] +)?bandwidth', place.judge().out)


def test_without_a_topology_a_check_says_what_to_do(site, tmp_path):
    done = site.reframe('--dry-run', '-n', 'latency%pages=base', '-p', '^gnu$', checks=CHECKS / 'memory/latency.py',
                        PLUMBLINE_TOPOLOGIES=str(tmp_path))
    assert done.code == 1 and 'the topology of this partition is not known; let a job detect it: `reframe' in done.out
    assert '-t topology`' in done.out and 'Traceback' not in done.out


def test_the_topology_is_in_the_report_and_holds_for_every_node(looked_at, nodes):
    place, first, found = looked_at
    verdicts = [('cores', 'NO REFERENCE'), ('memory', 'NO REFERENCE')], 2 * [('cores', 'PASS'), ('memory', 'PASS')]
    for done, expected in zip((first, topology_job(place, '--distribute=all')), verdicts):
        assert done.code == 0, done.out
        place.report.write_text(json.dumps(done.report))
        judged = place.judge()
        assert 'None' not in judged.out.splitlines()[0]
        assert judged.code == 0 and sorted(re.findall('^topology .*(cores|memory) .* (PASS|NO REFERENCE)$', judged.out,
                                                      re.MULTILINE)) == sorted(expected), judged.out
    cases = done.report['runs'][0]['testcases']
    assert {case['plumbline']['machine']['hostname'] for case in cases} == set(nodes.nodes)


def test_a_node_that_changed_fails_by_name_of_what_changed(looked_at):
    place, _, found = looked_at
    file = topology_file_of(place)
    other = {**copy.deepcopy(found), 'memory': 2 * found['memory'], 'node': 'n9'}
    cache = other['processor']['topology']['caches'][0]
    cache['size'] *= 2
    file.write_text(json.dumps(other))
    done = topology_job(place)
    assert done.code == 1
    why = done.line('Reason: ')
    said = re.search('node n[12] is not as n9 was: (.*); if that is right, run with -S topology.replace=yes', why)[1]
    assert [text.split()[0] for text in said.split('; ')] == [cache['type'], 'memory']
    assert json.loads(file.read_text()) == other
    assert topology_job(place, '-S', 'topology.replace=yes').code == 0
    assert json.loads(file.read_text())['memory'] == found['memory']


def test_a_file_that_is_no_topology_is_one_line(looked_at, tmp_path):
    (tmp_path / 'plumb-all.json').write_text('{"schema": 1')
    done = looked_at[0].reframe('-l', PLUMBLINE_TOPOLOGIES=str(tmp_path))
    assert done.code != 0 and done.out.count('\n') <= 2
    assert re.match(r'plumbline: .*plumb-all.json: not JSON.*; remove it', done.out)


def test_a_controller_that_is_gone_is_one_line(nodes, tmp_path, monkeypatch):
    monkeypatch.setenv('SLURM_CONF', str(tmp_path / 'none.conf'))
    monkeypatch.setattr(commands, 'SECONDS', 2)
    with pytest.raises(PlumblineError, match='^Slurm is here but does not answer: sinfo .*--scheduler local$'):
        detect.site_file()


# --- schedulers that are not here -------------------------------------------------------------------------------------

@pytest.fixture
def great_slurm(here):
    '''A large Slurm.'''
    rfm.script(here / 'sinfo', f'[ "$1" = --version ] && echo slurm 23.11.4 || cat {RECORDED}/sinfo.txt')
    rfm.script(here / 'scontrol', f'cat {RECORDED}/scontrol.txt')
    rfm.script(here / 'sacctmgr', 'printf "proj1\\nproj2\\nproj1\\n"')
    rfm.script(here / 'srun', 'false')
    return here


def test_a_large_slurm(great_slurm, tmp_path):
    name, text = detect.site_file()
    system, found, _ = understood(text, tmp_path)
    assert name == system['name'] == 'great_cluster'
    assert list(found) == ['cpu', 'gpu_a100', 'mixed', 'quick']
    assert {(one['scheduler'], one['launcher']) for one in found.values()} == {('slurm', 'srun')}
    assert found['cpu']['access'] == ['--partition=cpu', '--exclusive', '--mem=0'] and 'time_limit' not in found['cpu']
    assert 'longest job: 2d' in text
    assert found['cpu']['descr'] == '100 nodes c[001-100]: 256 CPUs (2 sockets x 64 cores x 2 threads), 502.9 GiB'
    assert found['gpu_a100']['access'][0] == '--partition=gpu.a100'
    assert found['mixed']['access'][-1] == '--constraint=icelake' and 'time_limit' not in found['mixed']
    assert 'partition debug (time limit 30:00) has the same nodes as cpu: skipped' in text
    assert 'partition old is inact: skipped' in text and 'partition empty has no nodes: skipped' in text
    for of, said in {'cpu': 'features of its nodes: rack1, rack2, zen4', 'gpu_a100': "'--gres=gpu:a100:4'",
                     'mixed': 'several kinds', 'quick': 'are in mixed as well'}.items():
        assert said in remarks(text, f"'name': '{of}'")
    assert '1 of its 100 nodes cannot run jobs now' in remarks(text, "'name': 'cpu'")
    assert 'DECIDE: jobs belong to an account (yours: proj1, proj2)' in text
    assert 'more than a job may have' in remarks(text, "'name': 'quick'")


def test_suggested_lines_are_lines(great_slurm, tmp_path):
    '''Whoever takes away a # has a site that ReFrame takes.'''
    text = detect.site_file()[1]
    suggested = re.sub(r"^( +)# (?=')", r'\1', text, flags=re.MULTILINE)
    assert suggested != text
    assert understood(suggested, tmp_path)[1]['gpu_a100']['access'][-1] == '--gres=gpu:a100:4'


def test_pbs(here, tmp_path):
    rfm.script(here / 'qstat', f'[ "$*" = "-Q -f -F json" ] && cat {RECORDED}/pbs_queues.json')
    rfm.script(here / 'pbsnodes', f'[ "$*" = "-a -F json" ] && cat {RECORDED}/pbs_nodes.json')
    name, text = detect.site_file()
    system, found, _ = understood(text, tmp_path)
    assert name == 'pbs01' and list(found) == ['workq', 'gpu']
    assert found['workq']['descr'] == '3 nodes cn[01-03]: 64 CPUs, 251 GiB'
    assert 'longest job: 1d' in text and 'time_limit' not in found['workq']
    assert found['gpu']['descr'] == '1 node gn01: 128 CPUs, 503 GiB, 4 GPUs'
    assert found['gpu']['access'] == ['-q gpu', '-l place=scatter:exclhost']
    assert {name: one['extras']['cpus'] for name, one in found.items()} == {'workq': 64, 'gpu': 128}
    assert '1 of its 3 nodes are down' in text and 'cpu_type' in remarks(text, "'name': 'workq'")
    for left in ('short skipped: it has the same nodes as workq', 'gpuq skipped: jobs come',
                 'repair skipped: it is for other users', 'stopped skipped: it is not enabled'):
        assert left in text


def test_flux(here, tmp_path):
    rfm.script(here / 'flux', f'case "$*" in "resource R") cat {RECORDED}/flux_resources.json;; '
                           f'"config get") cat {RECORDED}/flux_config.json;; *) exit 1;; esac')
    name, text = detect.site_file(name='tioga')
    _, found, _ = understood(text, tmp_path)
    assert list(found) == ['batch'] and found['batch']['scheduler'] == 'flux'
    assert found['batch']['descr'] == '8 nodes tioga[10-17]: 48 cores, 4 GPUs'
    assert found['batch']['extras'] == {'cpus': 48}
    assert 'queue debug skipped' in text and 'longest job: 8h' in text
    rfm.script(here / 'flux', f'[ "$*" = "resource R" ] && cat {RECORDED}/flux_resources.json || echo \'{{"queues": {{"debug": {{}}}}}}\'')
    with pytest.raises(PlumblineError, match='^Flux is here but does not answer: Flux has the queues debug and no default one, .*; set policy'):
        detect.site_file()


def test_no_scheduler_is_said(here, tmp_path):
    _, text = detect.site_file(name='alone')
    assert 'DECIDE: no scheduler was found' in text
    _, found, _ = understood(text, tmp_path)
    assert found['default']['scheduler'] == 'local' and found['default']['processor']['topology']['cores']
    rfm.script(here / 'bsub', 'true')
    assert 'DECIDE: LSF is here, which is not known to `plumbline detect`' in detect.site_file(name='alone')[1]


@pytest.mark.parametrize('script, said', [
    ('sleep 30', 'sinfo --noheader --exact does not answer within 1 s'),
    ('echo "slurm_load_partitions: Unable to contact slurm controller" >&2; exit 1', 'failed: slurm_load_partitions'),
    ('echo what?', "sinfo prints a line that is not understood: 'what\\?'"),
])
def test_a_slurm_that_does_not_answer(here, monkeypatch, script, said):
    if script.startswith('sleep'):
        monkeypatch.setattr(commands, 'SECONDS', 1)
    rfm.script(here / 'sinfo', script)
    with pytest.raises(PlumblineError, match=f'^Slurm is here but does not answer: .*{said}.*--scheduler local$'):
        detect.site_file()
    assert detect.site_file(name='alone', scheduler='local')[0] == 'alone'


@pytest.mark.parametrize('queues, nodes, said', [
    ('pbs_queues.json', '/dev/null', 'does not print JSON'), ('/dev/null', 'pbs_nodes.json', 'does not print JSON'),
    ('flux_config.json', 'pbs_nodes.json', 'has 0 queues')])
def test_a_pbs_that_does_not_answer(here, queues, nodes, said):
    rfm.script(here / 'qstat', f'cat {RECORDED / queues}')
    rfm.script(here / 'pbsnodes', f'cat {RECORDED / nodes}')
    with pytest.raises(PlumblineError, match=f'^PBS is here but does not answer: .*{said}'):
        detect.site_file()


def test_the_second_scheduler_is_said(great_slurm):
    rfm.script(great_slurm / 'flux', 'false')
    assert 'DECIDE: Flux is here as well' in detect.site_file()[1]
    with pytest.raises(PlumblineError, match='PBS was asked for'):
        detect.site_file(scheduler='pbs')


def test_no_check_of_a_mode_asks_for_longer_than_the_longest_job():
    lasts = {path: int(minutes) for folder in ('checks', 'src/plumbline') for path in (rfm.REPOSITORY / folder).rglob('*.py')
             for minutes in re.findall(r"LASTS = '(\d+)m'", path.read_text())}
    assert len(lasts) > 5 and LONGEST_JOB == Job.AT_MOST >= 60 * max(lasts.values())


@pytest.mark.parametrize('limit, seconds, text', [
    ('30', 1800, '30m'), ('10:00', 600, '10m'), ('1:02:03', 3723, '1h2m3s'), ('2-00:00:00', 172800, '2d'),
    ('1-12', 129600, '1d12h'), ('infinite', None, None), ('n/a', None, None)])
def test_time_limits_of_slurm(limit, seconds, text):
    assert slurm.seconds(limit) == seconds
    assert seconds is None or duration(seconds) == text


# --- the command itself -----------------------------------------------------------------------------------------------

@pytest.fixture
def command(bare, tmp_path):
    '''`plumbline detect` on a machine without schedulers.'''
    return rfm.Workplace(tmp_path / 'place', bare)


def test_a_site_file_is_never_overwritten(command):
    file = command.folder / 'site.py'
    file.write_text('decided\n')
    done = command.plumbline('detect', '--output', file)
    assert done.code == 2 and re.fullmatch(r'plumbline: .*site.py is there already and stays as it is.*\n', done.out)
    assert file.read_text() == 'decided\n'


def test_bad_input_is_one_line_and_no_file(command):
    for options, said in ((['--name', '1st'], "'1st' is no name for ReFrame.*for example p1st"),
                          (['--scheduler', 'slurm'], 'Slurm was asked for, but its commands are not in PATH'),
                          (['--scheduler', 'cron'], "'cron' is no scheduler .*: slurm, pbs, flux, local")):
        done = command.plumbline('detect', '--output', 'site.py', *options)
        assert done.code == 2 and re.fullmatch(f'plumbline: .*{said}.*\n', done.out), done.out
    assert not (command.folder / 'site.py').exists()
    (command.folder / 'file').write_text('')
    done = command.plumbline('detect', '--output', 'file/site.py')
    assert done.code == 2 and re.fullmatch(r'plumbline: file/site.py: .*\n', done.out)


# --- modules ----------------------------------------------------------------------------------------------------------

def module_tree(folder, suffix=''):
    '''Module files: gcc 11 and 12, one that does not load, below gcc 12 an Open MPI, and both as one module.'''
    for name, bins, more in (('core/gcc/11.1', ['gcc11'], ()), ('core/gcc/12.2', ['gcc12'], ['deeper']),
                             ('deeper/openmpi/4.1', ['mpi'], ()), ('core/foss/2026', ['both', 'mpi2'], ())):
        file = folder / f'{name}{suffix}'
        file.parent.mkdir(parents=True, exist_ok=True)
        pairs = [*(('PATH', folder / bin_) for bin_ in bins), *(('MODULEPATH', folder / place) for place in more)]
        file.write_text(''.join(f'prepend_path("{name}", "{path}")\n' for name, path in pairs) if suffix else
                        '#%Module1.0\n' + ''.join(f'prepend-path {name} {path}\n' for name, path in pairs))
    for bin_ in ('gcc11', 'gcc12', 'both', 'mpi', 'mpi2'):
        (folder / bin_).mkdir()
        links = {'mpicc': 'mpicc.openmpi', 'mpirun': 'mpirun.openmpi'} if 'mpi' in bin_ else {'gcc': 'gcc'}
        for name, target in links.items():
            target = shutil.which(target, path='/usr/bin:' + os.environ['PATH']) or '/bin/false'
            (folder / bin_ / name).symlink_to(target)
    broken = folder / f'core/llvm/1{suffix}'
    broken.parent.mkdir()
    broken.write_text('error("no licence")\n' if suffix else '#%Module1.0\nputs stderr {no licence}\nexit 1\n')
    return folder


def assert_modules(text, tmp_path, kind):
    system, _, known = understood(text, tmp_path)
    assert system['modules_system'] == kind
    compilers = {name: one['modules'] for name, one in known.items() if one.get('modules') and 'mpi' not in one['features']}
    assert sorted(compilers) == ['gnu', 'gnu-2'] and sorted(compilers.values()) == [['foss/2026'], ['gcc/12.2']]
    assert 'of gcc there are also gcc/11.1' in text and 'module llvm does not load: ' in text
    if shutil.which('mpicc.openmpi', path='/usr/bin'):
        several = [one for one in known.values() if 'openmpi' in one.get('features', ())]
        assert sorted(one['modules'] for one in several) == [['foss/2026'], ['gcc/12.2', 'openmpi/4.1']]
        assert {(one['cc'], *one['extras']['launcher']) for one in several} == {('mpicc', 'mpirun')}


def test_mpis_by_the_names_that_distributions_give_their_modules():
    family = os.uname().machine
    there = [f'mpi/openmpi-{family}', f'mpi/mpich-{family}', 'mpi/mpich-other', 'gnu-openmpi/4.1.6', 'mpich/4.1', 'hdf5/openmpi', 'hpcx-debug']
    assert modules.wanted(there, modules.MPIS) == [*there[:2], 'gnu-openmpi', 'mpich']


def test_compilers_and_mpis_of_environment_modules(here, tmp_path, monkeypatch):
    modulecmd = shutil.which('modulecmd', path=os.environ['PATH'] + ':/usr/bin')
    if not modulecmd:
        pytest.skip('environment-modules is not there')
    (here / 'modulecmd').symlink_to(modulecmd)
    monkeypatch.setenv('MODULEPATH', str(module_tree(tmp_path / 'modules') / 'core'))
    assert_modules(detect.site_file('made', 'local')[1], tmp_path, 'envmod')


def test_compilers_and_mpis_of_lmod(here, tmp_path, monkeypatch):
    if not LMOD:
        pytest.skip('Lmod is not there: LMOD_CMD names none')
    monkeypatch.setenv('LMOD_CMD', LMOD)
    monkeypatch.setenv('MODULEPATH', str(module_tree(tmp_path / 'modules', '.lua') / 'core'))
    assert_modules(detect.site_file('made', 'local')[1], tmp_path, 'lmod')


def test_module_systems_that_cannot_be_read_are_said(here, monkeypatch):
    monkeypatch.setenv('LMOD_CMD', '/nowhere/lmod')
    assert 'the module system cannot be read: ' in detect.site_file('made', 'local')[1]
    monkeypatch.delenv('LMOD_CMD')
    monkeypatch.setenv('MODULEPATH', '/nowhere')
    assert 'neither LMOD_CMD nor modulecmd is there' in detect.site_file('made', 'local')[1]


# --- MPIs and file systems --------------------------------------------------------------------------------------------

def test_srun_starts_an_mpi_that_knows_what_slurm_offers(here):
    rfm.script(here / 'ompi_info', 'echo mca:pmix:ext3x:version:"mca:2.1.0"')
    openmpi, mpich = ({'name': f'gnu-{family}', 'features': ['mpi', family],
                       'extras': {'launcher': ['mpirun'], 'imb': '/imb'}}
                      for family in ('openmpi', 'mpich'))
    assert mpis.with_launcher(openmpi, None) == (openmpi, '')
    assert mpis.with_launcher(openmpi, 'pmix_v4')[0]['extras'] == {'imb': '/imb'}
    kept, remark = mpis.with_launcher(mpich, 'pmix_v4')
    assert kept == mpich and 'pmix_v4' in remark
    rfm.script(here / 'ompi_info', 'echo mca:pmix:isolated:version:"mca:2.1.0"')
    assert mpis.with_launcher(openmpi, 'pmix')[0] == openmpi


def test_file_systems_that_nodes_share(tmp_path):
    for folder in ('scratch/me', 'home', 'odd place'):
        (tmp_path / folder).mkdir(parents=True)
    mounts = (f'/dev/vda / ext4 rw 0 0\nmds@o2ib:/fs {tmp_path}/scratch lustre rw 0 0\n'
              f'nas:/home {tmp_path}/home nfs4 rw 0 0\nfs {tmp_path}/odd\\040place beegfs rw 0 0\n')
    variables = {'USER': 'me', 'WORKDIR': f'{tmp_path}/odd place', 'HOME': f'{tmp_path}/home'}
    found, said = file_systems.detect(mounts, variables)
    assert found == [{'name': 'scratch', 'path': f'{tmp_path}/scratch/$USER', 'type': 'lustre'},
                     {'name': 'odd_place', 'path': '$WORKDIR', 'type': 'beegfs'}, {'name': 'tmp', 'path': '/tmp'}]
    assert f'DECIDE: nfs at {tmp_path}/home' in ' '.join(said) and "'type': 'nfs'}" in ' '.join(said) and 'lustre' in said[0]
    assert file_systems.detect('/dev/vda / ext4 rw 0 0\n', {'USER': 'me'}) == ([], [])
    # What is mounted last hides what is below.
    inner = f'fs {tmp_path}/scratch/me beegfs rw 0 0\ntmpfs {tmp_path}/home tmpfs rw 0 0\n'
    found, said = file_systems.detect(mounts + inner, variables | {'SCRATCH': f'{tmp_path}/scratch/me/'})
    assert found[1:-1] == [{'name': 'me', 'path': '$SCRATCH', 'type': 'beegfs'}] and f'lustre at {tmp_path}/scratch:' in said[0] and len(said) == 4


def test_file_systems_that_hang_are_named_and_the_others_are_found(tmp_path, monkeypatch):
    for folder in ('scratch/me', 'home/me'):
        (tmp_path / folder).mkdir(parents=True)
    real = os.path.isdir
    monkeypatch.setattr(file_systems, 'SECONDS', 2)
    monkeypatch.setattr(os.path, 'isdir', lambda path: time.sleep(60) if '/home' in str(path) else real(path))
    mounts = f'nas:/home {tmp_path}/home nfs4 rw 0 0\nmds@o2ib:/fs {tmp_path}/scratch lustre rw 0 0\n'
    begun = time.monotonic()
    found, said = file_systems.detect(mounts, {'USER': 'me'})
    assert [one['name'] for one in found] == ['scratch', 'tmp'] and time.monotonic() - begun < 20
    assert f'DECIDE: nfs at {tmp_path}/home: no answer in 2 s; ' in said[0]


def test_mounts_whose_names_are_no_text_are_told(tmp_path, monkeypatch):
    raw = os.fsencode(tmp_path) + b'/gr\xf6\xdfe'
    os.makedirs(raw + b'/me')
    (tmp_path / 'mounts').write_bytes(b'nas:/x ' + raw + b' nfs rw 0 0\nnas:/y /y\xf6 nfs rw 0 0\n')
    monkeypatch.setattr(file_systems, 'Path', lambda path: Path(tmp_path / 'mounts' if path == '/proc/mounts' else path))
    (entry, _), remarks = file_systems.detect(environ={'USER': 'me'})
    assert os.fsencode(entry['path']) == raw + b'/$USER' and len(remarks) == 3
    lines([Entry('file_systems', [entry]), *map(remark, remarks)], 0).encode('utf-8')


# --- topology files ---------------------------------------------------------------------------------------------------

def test_equal_nodes_differ_in_nothing_that_counts():
    from plumbline.detect.node import found
    one, other = found(), found()
    other['node'], other['memory'] = 'another', int(one['memory'] * 0.995)
    other['processor']['topology']['caches'].reverse()
    assert topology_file.differences(one, other) == []
    other['memory'], other['cpu_quota'], other['allowed_cpus'] = one['memory'] // 2, 1.5, [0, 1, 2, 7]
    said = ' '.join(topology_file.differences(one, other))
    assert 'now quota of 1.5 CPUs' in said and 'now CPUs 0-2,7 allowed' in said and 'memory' in said


def test_a_topology_that_is_given_counts_more(tmp_path, monkeypatch):
    from plumbline import settings
    from plumbline.detect.node import found
    monkeypatch.setattr(settings, 'TOPOLOGIES', tmp_path)
    topology_file.write(topology_file.path(tmp_path, 's', 'p'), found())

    def partition(**given):
        made = settings.site([{'name': 's', 'hostnames': ['.*'], 'partitions': [
            {'name': 'p', 'scheduler': 'slurm', 'launcher': 'srun', 'environs': [], **given}]}], [])
        return made['systems'][0]['partitions'][0]
    assert partition(extras={'a': 1})['extras']['a'] == 1
    assert partition()['extras']['node']['allowed_cpus'] == CPUS and partition()['processor']['num_cpus']
    assert partition(processor={'num_cpus': 3})['processor'] == {'num_cpus': 3}
    assert 'processor' not in partition(scheduler='local')


def test_a_topology_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(PlumblineError, match='^.*file/s-p.json: '):
        topology_file.write(tmp_path / 'file/s-p.json', {})
