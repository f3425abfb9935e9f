'''A wheel, installed where no clone is: its checks run in a folder of the site's own, as an ordinary user.'''

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import rfm
from native import output_of


def needed_by(distribution, found):
    '''Name -> distribution of all that one says it needs, and that those need.'''
    for needed in map(Requirement, distribution.requires or ()):
        if needed.name not in found and (not needed.marker or needed.marker.evaluate({'extra': ''})):
            found[needed.name] = metadata.distribution(needed.name)
            needed_by(found[needed.name], found)
    return found


@pytest.fixture(scope='module')
def installed():
    '''A virtual environment with the wheel, and of ours the packages that it declares: pip takes 40 s and 550 MB for them, and the package index.'''
    with tempfile.TemporaryDirectory() as folder:       # pytest's are closed to others
        os.chmod(folder, 0o755)
        clone, venv = Path(folder, 'clone'), Path(folder, 'venv')
        shutil.copytree(rfm.REPOSITORY, clone, ignore=shutil.ignore_patterns(
            '.git', '.venv', '.*_cache', 'reports', 'build', '*.egg-info', '__pycache__', 'tests'))
        pip = [sys.executable, '-m', 'pip', '--disable-pip-version-check']
        output_of(*pip, 'wheel', '--quiet', '--no-deps', '--no-build-isolation', '--wheel-dir', folder, clone)
        shutil.rmtree(clone)
        output_of(sys.executable, '-m', 'venv', '--without-pip', venv)
        wheel, = Path(folder).glob('*.whl')
        output_of(*pip, '--python', venv / 'bin/python', 'install', '--quiet', '--no-deps', '--no-index', wheel)
        site, = venv.glob('lib/python*/site-packages')
        own, = site.glob('plumbline-*.dist-info')
        for needed in needed_by(metadata.Distribution.at(own), {}).values():
            for name in {file.parts[0] for file in needed.files} - {'..', '__pycache__'}:
                if not (site / name).exists():      # parts of a namespace lie in one folder
                    (site / name).symlink_to(needed.locate_file(name))
        (venv / 'bin/reframe').write_text(f'#!{venv}/bin/python\nfrom reframe.frontend.cli import main\nmain()\n')
        (venv / 'bin/reframe').chmod(0o755)
        yield venv


def test_a_wheel_brings_what_its_checks_need_and_nothing_of_the_clone(installed):
    share = Path(output_of(installed / 'bin/plumbline', 'path', 'checks').strip()).parent
    assert share.is_relative_to(installed)
    for part in ('checks/memory/triad_memory.py', 'config/localhost.py', 'config/references/portable.yaml'):
        assert (share / part).is_file(), part
    native, brought = ({path.relative_to(root / 'src') for path in root.glob('src/**/*') if path.is_file()} for root in (rfm.REPOSITORY, share))
    assert brought == {path for path in native if path.parts[0] not in ('plumbline', 'plumbline.egg-info', 'setup') and '__pycache__' not in path.parts}
    assert not [path for path in share.rglob('*') if path.name in ('plumbline', 'setup', 'localhost.yaml')]
    there = 'import importlib.util; print([bool(importlib.util.find_spec(name)) for name in ("reframe", "pytest")])'
    assert output_of(installed / 'bin/python', '-c', there).strip() == '[True, False]'       # what is not declared is not found


def test_its_checks_run_in_a_folder_of_the_sites_own(installed):
    user, uid = (rfm.ordinary_user(), 65534) if os.geteuid() == 0 else ([], os.geteuid())
    source, = installed.glob('lib/python*/site-packages/plumbline/share/src')
    for program in (source / 'burn', *source.glob('kernels/*')):
        if program.name not in ('triad', 'cores', 'chase'):     # what this check needs
            shutil.rmtree(program)
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, uid, -1)
        environment = {'PATH': f"{installed}/bin:{os.environ['PATH']}", 'HOME': folder, 'TMPDIR': folder, 'PLUMBLINE_HOME': f'{folder}/site',
                       'PLUMBLINE_CAPACITY': rfm.capacity()}
        here = {'cwd': folder, 'env': environment}
        checks, config = (output_of(*user, 'plumbline', 'path', what, **here).strip() for what in ('checks', 'config'))
        ran = subprocess.run([*user, 'reframe', '-C', f'{config}/localhost.py', '-c', f'{checks}/compute/cores.py', '-R', '-n', '^cores', '-p', '^gnu$', '-S', 'samples=10',
                        '-S', 'processes=1', '-S', 'likwid_bench.levels=none', '--report-file', 'run.json', '-r'], text=True, capture_output=True, **here)
        told = subprocess.run([*user, 'plumbline', 'report', 'run.json'], text=True, capture_output=True, **here)
        assert 'of_base.one' in told.stdout and told.returncode in (0, 1, 3), ran.stdout + ran.stderr + told.stdout + told.stderr
        written = {str(path.relative_to(folder)) for path in Path(folder).rglob('*')}
        assert {f'site/{path}' for path in ('config/machines/localhost.yaml', 'reports/archive/system=localhost', 'reports/latest/index.html')} <= written
        assert {path.stat().st_uid for path in Path(folder).rglob('*') if not path.is_symlink()} == {uid}
