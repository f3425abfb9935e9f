'''The set-up: what it says on a bare machine, what it refuses to do, and what make does with it.

``bootstrap.py`` runs for real in a copy of the clone, on a PATH that has only what a test puts
there.  No test installs anything.
'''

import ast
import importlib.util
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from importlib.metadata import distributions, packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rfm

EVERYTHING = ('gcc', 'cmake', 'make', 'gfortran', 'likwid-pin', 'objdump', 'mpicc.openmpi', 'mpicc.mpich', 'smpirun',
              'dmidecode')

#: What those of EVERYTHING do that are asked.
SCRIPTS = {'cmake': 'echo cmake version 3.25.1', 'mpicc.openmpi': 'echo "#define OMPI_MAJOR_VERSION 4"',
           'mpicc.mpich': '''echo '#define MPICH_VERSION "4.0.2"' '''}


class Clone:
    '''A copy of what the set-up reads, with a PATH of its own.'''

    def __init__(self, repository, folder):
        self.root = folder / 'clone'
        self.bin = folder / 'bin'
        self.bin.mkdir()
        (self.root / 'src/setup').mkdir(parents=True)
        for name in ('pyproject.toml', 'requirements.lock', 'requirements-impi.lock', 'Makefile', '.ci/run',
                     'src/setup/bootstrap.py', 'src/setup/tools.json'):
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(repository / name, self.root / name)
        self.venv = self.root / '.venv'

    def tool(self, name, script='exit 0'):
        '''Put a command into PATH that does what the shell script says.'''
        rfm.script(self.bin / name, script)

    def machine(self, *lacking):
        '''Put everything into PATH but what is lacking.'''
        for name in EVERYTHING:
            if name not in lacking:
                self.tool(name, SCRIPTS.get(name, 'exit 0'))

        for name, header in (('openblas', 'openblas-serial/openblas_config.h'), ('fftw', 'fftw3.h')):
            if name not in lacking:
                self.library(header)

    def library(self, header):
        '''Put a header where one is looked for beside PATH.'''
        path = self.bin.parent / 'include/some-linux-gnu' / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def program(self, name, script):
        '''Put a command into .venv/bin.'''
        rfm.script(self.venv / 'bin' / name, script)

    def run(self, *command, **environment):
        return subprocess.run(
            command, cwd=self.root, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={'PATH': str(self.bin), 'HOME': str(self.root), 'LC_ALL': 'C', **environment})

    def bootstrap(self, *options):
        return self.run(sys.executable, 'src/setup/bootstrap.py', '--no-system-packages',
                        *options)

    def module(self):
        '''bootstrap.py of this clone, imported.'''
        spec = importlib.util.spec_from_file_location(
            'bootstrap_of_clone', self.root / 'src/setup/bootstrap.py')
        module = importlib.util.module_from_spec(spec)
        path = list(sys.path)
        spec.loader.exec_module(module)
        sys.path[:] = path
        return module

    def complete(self):
        '''Make an environment that passes for complete; return the module.'''
        (self.venv / 'bin').mkdir(parents=True)
        (self.venv / 'bin/python').symlink_to(os.path.realpath(sys.executable))
        module = self.module()
        module.write_stamp('3.11.2', [])
        return module


@pytest.fixture
def clone(repository, tmp_path):
    return Clone(repository, tmp_path)


@pytest.fixture
def bare(clone, monkeypatch):
    '''bootstrap.py of a clone, and no folders but those in PATH.'''
    module = clone.module()
    monkeypatch.setattr(module, 'SYSTEM_FOLDERS', '')
    monkeypatch.setattr(module, 'SYSTEM_PREFIXES', [])
    monkeypatch.setenv('PATH', str(clone.bin))
    return module


# What is missing --------------------------------------------------------------------------------

def test_bare_machine_gets_one_list(clone):
    done = clone.bootstrap()
    assert done.returncode == 1
    assert not clone.venv.exists()
    assert done.stdout.count('missing on this machine') == 1
    for name in ('C compiler', 'cmake', 'make or ninja'):
        assert f'  {name} (required): ' in done.stdout
    for name in ('gfortran', 'likwid', 'objdump'):
        assert f'  {name} (optional): ' in done.stdout
    assert 'OpenMP binding instead of likwid-pin' in done.stdout
    assert 'no `fortran` variant' in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert 'required is missing' in done.stderr


def test_each_missing_tool_has_a_use_and_a_command(bare):
    missing = bare.survey('test')[1:]
    for distribution, command in bare.INSTALL.items():
        text = bare.report(missing, distribution)
        entries = text.split('\n\n')[1:len(bare.TOOLS)]
        assert len(entries) == len(bare.TOOLS) - 1      # Python is there
        for entry in entries:
            assert 'needed for  ' in entry
            debians_own = distribution != 'debian' and any(f' {name} ' in entry for name in ('Prometheus', 'node-exporter'))
            assert command in entry or 'spack install likwid' in entry or 'spack install simgrid' in entry or debians_own
        assert 'module avail gcc' in text and 'spack install gcc' in text
    # On an unknown system every family's command is given.
    text = bare.report(missing, '')
    assert all(f'{command} gcc' in text for command in bare.INSTALL.values())


def test_a_library_is_known_by_its_header(bare, clone, monkeypatch, tmp_path):
    assert 'OpenBLAS' in [tool.name for tool in bare.glance('health')]
    clone.library('openblas-pthread/openblas_config.h')         # starts threads when it is loaded
    finding = next(finding for finding in bare.survey('health') if finding.tool.name == 'OpenBLAS')
    assert 'not found below' in finding.problem
    assert 'apt-get install --no-install-recommends libopenblas-openmp-dev' in bare.report([finding], 'debian')
    clone.library('openblas-serial/openblas_config.h')
    assert 'OpenBLAS' not in [tool.name for tool in bare.glance('health')]
    monkeypatch.setenv('PATH', '')
    (tmp_path / 'spack/include').mkdir(parents=True)
    (tmp_path / 'spack/include/openblas_config.h').touch()
    monkeypatch.setenv('CMAKE_PREFIX_PATH', f"/nowhere:{tmp_path / 'spack'}")
    assert 'OpenBLAS' not in [tool.name for tool in bare.glance('health')]


def test_chromium_is_asked_for_by_the_tests_only_and_other_compilers_by_acceptance(bare):
    asked = {purpose: {'LLVM', 'chromium'} & {tool.name for tool in bare.glance(purpose)} for purpose in bare.PURPOSES}
    assert asked == {'health': set(), 'acceptance': {'LLVM'}, 'test': {'LLVM', 'chromium'}}


@pytest.mark.parametrize('name, text, family', [
    ('debian', 'ID=debian\n', 'debian'),
    ('ubuntu', 'ID=ubuntu\nID_LIKE=debian\n', 'debian'),
    ('rocky', 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', 'redhat'),
    ('leap', 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', 'suse'),
    ('sles', 'ID="sles"\nID_LIKE="suse"\n', 'suse'),
    ('arch', 'ID=arch\n', ''),
])
def test_family(bare, tmp_path, name, text, family):
    (tmp_path / name).write_text('VERSION_ID="1"\n' + text)
    assert bare.family(str(tmp_path / name)) == family
    assert bare.family(str(tmp_path / 'none')) == ''


@pytest.mark.parametrize('lacking, tools, options, code, told', [
    (['gfortran', 'likwid-pin'], {}, [], 0, ['likwid (optional)', '.venv is still to be made']),
    ([], {'clang': 'echo "probe.c:1:10: fatal error: \'omp.h\' file not found" >&2; exit 1'}, ['--for', 'acceptance'], 0,
     ['LLVM (optional): ', "clang cannot build an OpenMP program: probe.c:1:10: fatal error: 'omp.h'"]),
    ([], {'gcc': 'echo "probe.c:2:10: fatal error: stdio.h: No such file" >&2; exit 1'}, [], 1,
     ['cannot build an OpenMP program: probe.c:2:10: fatal error: stdio.h']),
    ([], {'mpicc.openmpi': 'echo "fatal error: mpi.h: No such file" >&2; exit 1', 'mpicc': SCRIPTS['mpicc.mpich']}, [], 0,
     ['Open MPI (optional): no mpi.h of Open MPI for ', '/mpicc.openmpi or ', 'libopenmpi-dev', 'found  MPICH ']),
    (['mpicc.mpich'], {'mpicc': f'{SCRIPTS["mpicc.mpich"]}; echo "#define I_MPI_VERSION 2021"'}, [], 0, ['MPICH (optional)']),
    ([], {'cmake': 'echo cmake version 3.18.4'}, [], 1, ['cmake is 3.18, older than 3.20', 'install cmake'])])
def test_what_cannot_be_used_is_missing_and_optional_things_are_optional(clone, lacking, tools, options, code, told):
    clone.machine(*lacking)
    for name, script in tools.items():
        clone.tool(name, script)
    done = clone.bootstrap('--check', *options)
    assert done.returncode == code and ('(required)' in done.stdout) == bool(code)
    assert all(text in done.stdout for text in told) and 'apt-get install cmake' not in done.stdout
    assert sorted(os.listdir(clone.root)) == ['.ci', 'Makefile', 'pyproject.toml', 'requirements-impi.lock', 'requirements.lock', 'src']


def test_newer_python_in_path_is_found(bare, clone, monkeypatch):
    clone.tool('python3', 'echo 3.9.2')
    clone.tool('python3.12', 'exit 1')                  # as the stub of a version manager does
    clone.tool('python3.11', 'echo 3.11.4')
    monkeypatch.setattr(sys, 'executable', str(clone.bin / 'python3'))
    assert bare.find_python(bare.PYTHON).path == str(clone.bin / 'python3.11')
    clone.tool('python3.11', '''echo "No module named 'ensurepip'"; echo 3.11.4; exit 1''')
    assert bare.find_python(bare.PYTHON).problem.endswith('python3 is 3.9.2, older than 3.10')
    monkeypatch.setattr(sys, 'executable', str(clone.bin / 'python3.11'))
    finding = bare.find_python(bare.PYTHON)
    assert "is not whole: No module named 'ensurepip'" in finding.problem and finding.installable


# The environment --------------------------------------------------------------------------------

def test_second_call_says_one_line(clone):
    clone.machine('gfortran')
    clone.tool('mpicc.mpich', 'exit 1')
    clone.complete()
    done = clone.bootstrap()
    assert (done.returncode, done.stderr) == (0, '')
    assert len(done.stdout.splitlines()) == 1
    assert 'complete, Python 3.11.2' in done.stdout and 'not found, optional: gfortran, MPICH (' in done.stdout


def test_second_call_notices_that_a_compiler_went_away(clone):
    clone.machine('gcc')
    clone.complete()
    done = clone.bootstrap()
    assert done.returncode == 1
    assert 'C compiler (required)' in done.stdout
    assert clone.venv.exists()


@pytest.mark.parametrize('change', ['pyproject.toml', 'requirements.lock', 'requirements-impi.lock',
                                    'src/setup/bootstrap.py', 'python', 'half', 'moved'])
def test_what_is_out_of_date_is_made_anew(clone, change):
    module = clone.complete()
    assert module.read_stamp()
    if change == 'python':
        (clone.venv / 'bin/python').unlink()
        (clone.venv / 'bin/python').symlink_to('/bin/sh')
    elif change == 'half':
        (clone.venv / 'plumbline-setup.json').write_text('{"fingerprint": ')
    elif change == 'moved':
        clone.root = clone.root.rename(clone.root.with_name('elsewhere'))
        module = clone.module()
    else:
        with open(clone.root / change, 'a') as stream:
            stream.write('# a change\n')
    assert module.read_stamp() is None


def test_stamp_comes_last_and_failure_leaves_nothing(clone, bare, monkeypatch):
    clone.machine()
    steps = []

    def step(command, what, **_):
        assert not (clone.venv / 'plumbline-setup.json').exists()
        steps.append(what)
        (clone.venv / 'bin').mkdir(parents=True, exist_ok=True)
        if what == 'pip install':
            raise fails

    monkeypatch.setattr(bare, 'step', step)
    monkeypatch.setattr(signal, 'signal', lambda *_: None)
    for fails, code in ((bare.SetupError('no network'), 1), (KeyboardInterrupt(), 130),
                        (OSError(28, 'No space left on device'), 1)):
        assert bare.main(['--no-system-packages']) == code
        assert 'pip install' in steps and 'pip install of this clone' not in steps
        assert not clone.venv.exists()


def test_a_whole_environment_stays_where_no_new_one_can_be_made(clone, bare, monkeypatch):
    clone.machine()
    clone.complete()
    (clone.venv / 'theirs').touch()

    def step(command, what, **_):
        assert not (clone.venv / 'theirs').exists()
        raise bare.SetupError('no network')

    monkeypatch.setattr(bare, 'step', step)
    monkeypatch.setattr(signal, 'signal', lambda *_: None)
    with open(clone.root / 'requirements.lock', 'a') as stream:
        stream.write('# a change\n')
    for _ in range(2):      # and each night again
        assert bare.main(['--no-system-packages']) == 1
        assert (clone.venv / 'theirs').exists() and bare.read_stamp() is None and not clone.venv.with_name('.venv.former').exists()
    clone.venv.rename(clone.venv.with_name('.venv.former'))
    (clone.venv / 'lib').mkdir(parents=True)        # somebody pulled the plug meanwhile
    assert bare.main(['--no-system-packages']) == 1 and (clone.venv / 'theirs').exists() and not (clone.venv / 'lib').exists()


def test_interrupted_environment_is_made_anew(clone, bare, monkeypatch):
    clone.machine()
    (clone.venv / 'lib').mkdir(parents=True)            # no stamp: somebody pulled the plug
    python = clone.venv / 'bin/python'

    def step(command, what, **_):
        assert not (clone.venv / 'lib').exists()
        python.parent.mkdir(parents=True, exist_ok=True)
        if not python.exists():
            python.symlink_to(os.path.realpath(sys.executable))

    monkeypatch.setattr(bare, 'step', step)
    monkeypatch.setattr(signal, 'signal', lambda *_: None)
    assert bare.main(['--no-system-packages']) == 0
    assert bare.read_stamp()


@pytest.mark.parametrize('lacking, beside', [('likwid-pin', True), ('cmake', False)])
def test_packages_are_installed_beside_an_environment_that_needs_none_of_them(clone, bare, monkeypatch, lacking, beside):
    clone.machine(lacking)
    begun, found = threading.Event(), []

    def make_venv(python):
        begun.set()
        (clone.venv / 'bin').mkdir(parents=True)
        (clone.venv / 'bin/python').symlink_to(python)
        return '3.11.2'

    def install_packages(findings):
        found.append(begun.wait(30 if beside else 0.2))
        clone.tool(lacking, SCRIPTS.get(lacking, 'exit 0'))

    monkeypatch.setattr(bare, 'make_venv', make_venv)
    monkeypatch.setattr(bare, 'install_packages', install_packages)
    bare.set_up(bare.parse([]), 'debian', True)
    assert found == [beside] and bare.read_stamp()['not_had'] == []


def test_an_interruption_ends_what_runs_beside_apt_get_and_leaves_the_former_environment(clone, bare, monkeypatch):
    clone.machine('likwid-pin')
    clone.complete()
    (clone.venv / 'theirs').touch()
    begun = threading.Event()

    def install_packages(findings):
        assert begun.wait(30)
        raise KeyboardInterrupt

    step = bare.step
    monkeypatch.setattr(bare, 'step', lambda command, what, **_: (begun.set(), step(['/bin/sleep', '60'], what)))
    monkeypatch.setattr(bare, 'install_packages', install_packages)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        bare.set_up(bare.parse(['--redo']), 'debian', True)
    assert time.monotonic() - began < 30 and (clone.venv / 'theirs').exists() and not clone.venv.with_name('.venv.former').exists()


def test_failed_step_leaves_its_output(clone, bare):
    with pytest.raises(bare.SetupError, match=r'^x failed: E: no luck \[.*setup.log\]$'):
        bare.step(['/bin/sh', '-c', 'echo before; echo E: no luck >&2; exit 3'], 'x')
    log = (clone.root / 'reports/setup.log').read_text()
    assert 'before' in log and '(exit code 3)' in log


def test_root_tries_once_for_what_cannot_be_had(clone, bare):
    clone.machine('likwid-pin')
    (clone.venv / 'bin').mkdir(parents=True)
    (clone.venv / 'bin/python').symlink_to(os.path.realpath(sys.executable))
    args = bare.parse([])
    bare.write_stamp('3.11.2', [])
    assert not bare.already_done(args, installs=True)   # never tried for
    assert bare.already_done(args, installs=False)
    bare.write_stamp('3.11.2', ['likwid'])
    assert bare.already_done(args, installs=True)
    assert not bare.already_done(bare.parse(['--redo']), installs=True)


@pytest.mark.parametrize('attack, told', [
    ({'file': 'etc/slurm/slurm.conf'}, 'etc/slurm/slurm.conf'), ({'file': 'etc/pbs.conf'}, 'etc/pbs.conf'), ({'variable': 'SLURM_JOB_ID'}, 'SLURM_JOB_ID'),
    ({}, None)])
def test_a_node_of_a_cluster_is_left_as_it_is(bare, tmp_path, monkeypatch, capsys, attack, told):
    for name in ('SLURM_JOB_ID', 'PBS_JOBID', 'FLUX_JOB_ID', 'LSB_JOBID'):
        monkeypatch.delenv(name, raising=False)
    if 'file' in attack:
        (tmp_path / attack['file']).parent.mkdir(parents=True)
        (tmp_path / attack['file']).touch()
    if 'variable' in attack:
        monkeypatch.setenv(attack['variable'], '1')
    found = bare.cluster_of(str(tmp_path))
    assert found is None if told is None else found.endswith(told)
    monkeypatch.setattr(bare, 'cluster_of', lambda: found)
    monkeypatch.setattr(bare.os, 'geteuid', lambda: 0)
    monkeypatch.setattr(bare.shutil, 'which', lambda name: '/usr/bin/' + name)
    assert bare.may_install(bare.parse([]), 'debian') == (told is None)
    assert ('apt-get installs nothing without SETUPFLAGS=--install' in capsys.readouterr().out) == (told is not None)
    assert bare.may_install(bare.parse(['--install']), 'debian') and not bare.may_install(bare.parse(['--no-system-packages', '--install']), 'debian')
    assert not bare.may_install(bare.parse(['--install']), None)


@pytest.mark.slow
def test_another_set_up_is_not_waited_for_without_end(bare, clone, monkeypatch, capsys):
    monkeypatch.setattr(bare, 'LONGEST_SETUP', 1)
    with bare.only_one():
        assert stat.S_IMODE((clone.root / '.venv.lock').stat().st_mode) == 0o600      # nobody else can hold it
        with pytest.raises(bare.SetupError, match='another set-up of this clone has not ended in 0 minutes; who holds it: fuser '), bare.only_one():
            pass
    assert 'waiting for another set-up' in capsys.readouterr().out
    with bare.only_one():
        pass


def test_what_measures_nothing_installs_nothing(repository):
    makefile = (repository / 'Makefile').read_text()
    for target in ('list', 'report', 'bench'):
        recipe = makefile.split(f'\n{target}:', 1)[1].split('\n\n', 1)[0]
        assert '$(LOOK)' in recipe and '$(SETUP)' not in recipe
    assert '\nLOOK    := $(SETUP) --no-system-packages\n' in makefile


@pytest.mark.parametrize('output, reason', [
    ("WARNING: Retrying after connection broken by 'NewConnectionError()'\n"
     'ERROR: No matching distribution found for numpy==1', 'cannot be reached'),
    ('Collecting x\nERROR: Could not install packages due to an OSError: [Errno 28] No space left '
     'on device', 'disk is full'),
    ("OSError: [Errno 13] Permission denied: '/x/y'", "Permission denied: '/x/y'"),
    ('ERROR: No matching distribution found for numpy==2.4.6', 'numpy==2.4.6'),
    ('Reading lists\nE: Unable to locate package likwid\n', 'Unable to locate package likwid'),
    ('', 'printed nothing'),
])
def test_reasons_are_one_line(bare, output, reason):
    assert reason in bare.diagnose(output)
    assert '\n' not in bare.diagnose(output)


def test_missing_package_does_not_keep_the_others_away(bare, clone, tmp_path, capsys):
    log = tmp_path / 'apt.log'
    clone.tool('apt-get', f'echo "$@" >> {log}\n'
               'case "$*" in *likwid*) echo "E: Unable to locate package likwid"; exit 100;; esac')
    missing = [finding for finding in bare.survey('health')
               if finding.tool.name in ('gfortran', 'likwid', 'objdump')]
    bare.install_packages(missing)
    calls = [line.split('Timeout=20 ')[-1] for line in log.read_text().splitlines()]
    assert calls == ['update'] + ['install --no-install-recommends ' + packages for packages in (
        'gfortran likwid binutils', 'gfortran', 'likwid', 'binutils')]
    assert 'apt-get install likwid failed: E: Unable to locate' in capsys.readouterr().out


def test_no_service_of_a_package_starts(bare, clone, tmp_path, monkeypatch):
    policy, log = tmp_path / 'policy-rc.d', tmp_path / 'apt.log'
    monkeypatch.setattr(bare, 'POLICY', str(policy))
    clone.tool('apt-get', f'for name in prometheus cron; do {policy} $name start; echo "$name $?" >> {log}; done')
    clone.tool('update-rc.d', f'echo "$@" >> {log}')
    missing = [bare.Finding(tool, 'not found') for tool in bare.TOOLS if tool.name in ('Prometheus', 'gfortran')]
    bare.install_packages(missing)
    assert log.read_text().splitlines()[-3:] == ['prometheus 101', 'cron 0', 'prometheus disable']
    assert not policy.exists()
    policy.write_text('#!/bin/sh\n# of the site\n')      # stays, and counts
    bare.install_packages(missing)
    assert 'of the site' in policy.read_text()


@pytest.mark.slow
@pytest.mark.parametrize('attack, told', [
    (lambda clone: None, None), (lambda clone: os.chown(clone.root, 65534, 0), 'clone belongs to uid 65534'),
    (lambda clone: os.chown(clone.root / 'src', 65534, 0), 'src belongs to uid 65534'),
    (lambda clone: clone.venv.chmod(0o777), '.venv can be written by others'),
    (lambda clone: (os.chown(clone.venv, 0, 65534), clone.venv.chmod(0o775)), '.venv can be written by others')])
@pytest.mark.skipif(os.geteuid() != 0, reason='only root can make files of others')
def test_root_runs_nothing_of_a_clone_that_others_can_change(clone, attack, told):
    clone.machine()
    clone.complete()
    attack(clone)
    done = clone.bootstrap()
    if told is None:
        assert done.returncode == 0
    else:
        assert done.returncode == 1 and done.stderr.endswith('SETUPFLAGS=--trust-clone\n') and f'{told}: run this as its owner' in done.stderr
        assert len(done.stderr.splitlines()) == 1 and not done.stdout
        assert clone.bootstrap('--trust-clone').returncode == 0
        assert clone.run('python3', 'src/setup/bootstrap.py', PATH=os.environ['PATH'], SUDO_UID='65534').returncode == (1 if 'others' in told else 0)


def test_what_a_command_leads_to_stays(bare, clone, tmp_path, capsys):
    selections = tmp_path / 'selections'
    selections.write_text('mpi auto /usr/bin/mpicc.site\nlibblas.so.3 auto /usr/lib/blas/libblas.so.3\n')
    clone.tool('update-alternatives', f'case $1 in --get-selections) /bin/cat {selections};; *) echo "$@" >> {tmp_path}/set; esac')
    with bare.same_alternatives():
        selections.write_text('mpi auto /usr/bin/mpicc.openmpi\nlibblas.so.3 auto /usr/lib/blas/libblas.so.3\nnew auto /usr/bin/new\n')
    assert (tmp_path / 'set').read_text() == '--set mpi /usr/bin/mpicc.site\n'
    assert 'mpi stays /usr/bin/mpicc.site' in capsys.readouterr().out


def test_old_python_can_read_the_script(repository):
    ast.parse((repository / 'src/setup/bootstrap.py').read_text(), feature_version=(3, 6))


def locked(text):
    '''(name, version, marker) -> number of hashes.'''
    found = {}
    for block in re.split(r'\n(?=\w)', re.sub(r'(?m)^#.*\n', '', text).strip()):
        pin, *hashes = block.split(' \\\n    --hash=sha256:')
        assert all(re.fullmatch('[0-9a-f]{64}', one) for one in hashes), pin
        name, version, marker = re.fullmatch(r'([a-z0-9-]+)==([0-9.]+)(?: ; (.*))?', pin).groups()
        found[name, version, marker and marker.replace('python_full_version', 'python_version')] = len(hashes)
    return found


def declared(repository, group):
    project = (repository / 'pyproject.toml').read_text()
    return list(map(Requirement, re.findall('"([^"]+)"', re.search(rf'(?ms)^{group} = \[(.*?)\]$', project).group(1))))


def test_every_dependency_is_locked_once_with_its_hashes(repository):
    lock = locked((repository / 'requirements.lock').read_text())
    versions = {}
    for name, version, _ in lock:
        versions.setdefault(name, set()).add(version)
    for needed in [*declared(repository, 'dependencies'), *declared(repository, 'dev'), *declared(repository, 'pdf'), *declared(repository, 'requires')]:
        installed = versions[canonicalize_name(needed.name)]
        assert needed.specifier and (any if needed.marker else all)(needed.specifier.contains(version) for version in installed), needed
    impi = locked((repository / 'requirements-impi.lock').read_text())
    assert {name for name, _, _ in impi} == {'impi-rt', 'impi-devel'}
    assert all({**lock, **impi}.values())
    assert len({(name, marker) for name, _, marker in lock}) == len(lock)


def test_what_is_imported_is_declared(repository):
    '''A package that only another one brings along may be gone with its next version.'''
    def imported(*parts):
        files = [path for part in parts for path in (repository / part).rglob('*.py') if 'bench' not in path.parts]
        names = {top for path in files for pair in re.findall(r'(?m)^ *(?:from (\w+)[\w.]* import |import (\w+))', path.read_text()) for top in pair}
        return names - sys.stdlib_module_names - {'', 'plumbline'}

    packages = packages_distributions()
    known = {canonicalize_name(one.name) for group in ('dependencies', 'pdf') for one in declared(repository, group)}
    assert {canonicalize_name(packages[top][0]) for top in imported('src/plumbline', 'checks', 'config')} == known
    of_tests = {canonicalize_name(packages[top][0]) for top in imported('tests') & set(packages)}
    assert of_tests <= known | {canonicalize_name(one.name) for group in ('dev', 'requires') for one in declared(repository, group)}


def said_by(done):
    '''What pip says, but for what it has tried again; the test is skipped where the package index did not answer.'''
    away = 'NewConnectionError|name resolution|Max retries|Read timed out|IncompleteRead|Connection reset|HTTP error 5'
    if done.returncode and re.search(away, done.stderr) and 'DO NOT MATCH' not in done.stderr:
        pytest.skip('the package index cannot be reached')
    return re.sub(r'(?m)^WARNING: Retrying .*\n', '', done.stderr)


@pytest.mark.slow
def test_a_package_that_is_not_the_one_that_was_locked(bare, tmp_path):
    lock = tmp_path / 'lock'
    lock.write_text(f'semver==3.1.1 --hash=sha256:{64 * "0"}\n')
    command = [*bare.pip(sys.executable), *bare.LOCKED, '--target', tmp_path / 'there', '--requirement', lock]
    done = subprocess.run(command, env=bare.clean_environment(), text=True, capture_output=True)
    assert done.returncode and 'DO NOT MATCH THE HASHES' in said_by(done) and not (tmp_path / 'there/semver').exists()


@pytest.mark.native
def test_the_lock_has_files_for_64_bit_arm(repository, bare, tmp_path):
    '''Of each package that it wants there, but for those whose file here is every machine's: pip, which installs files alone, stops at the first that
    has none.'''
    everywhere = {canonicalize_name(one.name) for one in distributions() if '-none-any' in (one.read_text('WHEEL') or '')}
    blocks = re.split(r'(?m)^(?=\w)', (repository / 'requirements.lock').read_text())[1:]
    (tmp_path / 'lock').write_text(''.join(
        block for block in blocks if "platform_machine == 'x86_64'" not in block and canonicalize_name(block.partition('==')[0]) not in everywhere))
    platforms = [f'--platform=manylinux_2_{libc}_aarch64' for libc in (17, 28, 34)]
    done = subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-input', '--dry-run', '--no-deps',
                           '--target', tmp_path / 'there', *bare.LOCKED, *platforms, '--requirement', tmp_path / 'lock'], text=True, capture_output=True)
    assert (said_by(done), done.returncode) == ('', 0)


# make -------------------------------------------------------------------------------------------

@pytest.fixture
def make(clone):
    '''Run make in a clone whose set-up is done and whose programs are scripts.'''
    path = os.pathsep.join([str(clone.bin), os.environ['PATH']])

    def run(*command, **environment):
        return clone.run(*command, PATH=path, PYTHON='true', **environment)
    return run


def test_health_reports_even_if_checks_failed(clone, make):
    stale = clone.root / 'reports/reframe/health.json'
    stale.parent.mkdir(parents=True)
    stale.write_text('yesterday')
    clone.program('reframe', 'echo "reframe $*"; exit 1')
    clone.program('plumbline', 'echo "plumbline $*"; test -e "$2" || exit 3')
    done = make('make', 'health', PYTHONPATH='/elsewhere')
    assert 'reframe -C config/localhost.py -c checks -R --mode daily' in done.stdout
    assert 'plumbline report reports/reframe/health.json' in done.stdout
    assert done.returncode == 2                         # make's own code for a failed recipe
    assert not stale.exists()

    elsewhere = clone.root / 'my reports'       # of a clone that is somebody else's
    done = make('make', 'health', PLUMBLINE_REPORTS=str(elsewhere))
    assert f'--report-file {elsewhere}/reframe/health.json' in done.stdout and f'plumbline report {elsewhere}/reframe/health.json' in done.stdout

    assert f'--report-file {clone.root}/out/reframe/health.json' in make('make', 'health', PLUMBLINE_REPORTS='out').stdout

    clone.program('reframe', 'echo new > reports/reframe/health.json; exit 1')
    assert make('make', 'health').returncode == 0       # the report's word counts


def test_programs_see_the_environment_first_and_the_set_up_the_path_without_it(clone, make):
    clone.program('plumbline', 'echo "PATH=$PATH PYTHONPATH=$PYTHONPATH MAKEFLAGS=$MAKEFLAGS."')
    done = make('make', '-k', 'bench', PYTHONPATH='/elsewhere')
    assert f'PATH={clone.venv}/bin:' in done.stdout
    assert 'PYTHONPATH= MAKEFLAGS=.' in done.stdout
    clone.program('plumbline', 'exit 0')
    clone.tool('setup-python', 'echo "setup PATH=$PATH $*"')
    done = make('make', 'bench', 'PYTHON=setup-python')
    assert f'setup PATH={clone.bin}:' in done.stdout
    assert 'src/setup/bootstrap.py' in done.stdout


@pytest.mark.parametrize('code', [0, 5])
def test_ci_fails_when_pytest_does(clone, make, code):
    clone.program('python', f'echo "pytest $*"; exit {code}')
    done = make('bash', '.ci/run')
    assert 'pytest -m pytest -q -n ' in done.stdout
    assert (done.returncode == 0) == (code == 0)


def test_make_alone_prints_help(make):
    done = make('make')
    assert done.returncode == 0
    for target in ('health', 'acceptance', 'test', 'bench', 'list', 'report', 'clean', 'distclean'):
        assert f'make {target} ' in done.stdout
