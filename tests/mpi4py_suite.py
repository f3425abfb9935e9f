'''mpi4py's own tests: 1,400 programs that know what an MPI owes them.  From the package index, by hash; nothing of it is kept.'''

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from native import alone_in

LOCK = Path(__file__).parent / 'data/mpi4py.lock'

#: Not what an MPI may refuse (sends that are taken back, spawning, sessions), nor what is no message (pickled types: half of the time).
MODULES = 'test_(p2p|cco|comm|request|grequest|msg|util_pkl5|attributes|pack|status|subclass|datatype|op)'
LEFT_OUT = ('-x', 'Cancel', '-x', 'TestDatatypePickle', '-e', 'dynproc', '-e', 'spawn')


def install(folder):
    '''mpi4py in ``folder/site`` and its tests in ``folder/test``; the test is skipped where the index does not answer.'''
    with alone_in(folder):
        if not (folder / 'test').exists():
            _install(folder)


def _install(folder):
    pip = [sys.executable, '-m', 'pip', '--disable-pip-version-check', '--no-input', '--retries', '1']
    hashed = ['--quiet', '--no-deps', '--require-hashes', '--requirement', LOCK]
    for command in ([*pip, 'install', *hashed, '--only-binary', ':all:', '--target', folder / 'site'],
                    [*pip, 'download', *hashed, '--no-binary', ':all:', '--no-build-isolation', '--dest', folder]):
        try:
            done = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=120)
        except subprocess.TimeoutExpired:
            pytest.skip('mpi4py: the package index does not answer')
        if done.returncode:
            pytest.skip(f'mpi4py: pip cannot get it: {(done.stderr.strip() or "?").splitlines()[-1]}')
    archive, = folder.glob('mpi4py-*.tar.gz')
    with tarfile.open(archive) as file:
        file.extractall(folder, filter='data')
    (folder / archive.name.removesuffix('.tar.gz') / 'test').rename(folder / 'test')


def variables(folder, family, program):
    '''What Python needs to find mpi4py, and mpi4py its MPI: of one ABI MPICH and its kin are all ``libmpi.so.12``.

    :arg program: linked with that MPI.
    '''
    found = {'PYTHONPATH': str(folder / 'site'), 'MPI4PY_MPIABI': 'openmpi' if family == 'openmpi' else 'mpich'}
    linked = re.search(r'libmpi(?:ch)?\.so\.12 => (\S+)', subprocess.run(['ldd', program], text=True, capture_output=True).stdout)
    if linked:
        (folder / family).mkdir(exist_ok=True)
        if not (folder / family / 'libmpi.so.12').exists():
            (folder / family / 'libmpi.so.12').symlink_to(linked[1])
        found['LD_LIBRARY_PATH'] = ':'.join(filter(None, (str(folder / family), os.environ.get('LD_LIBRARY_PATH'))))
    return found


def command(folder, modules=MODULES):
    return [sys.executable, '-W', 'ignore', folder / 'test/main.py', '-q', '-i', modules, *LEFT_OUT]


def assert_passed(errors, ranks, but=(), most=1000):
    '''Each rank ran more than ``most``, and says so; a line of one rank may begin in the middle of another's.

    :arg but: names of tests that may fail; those that did are returned.
    '''
    ran = [int(number) for number in re.findall(r'Ran (\d+) tests', errors)]
    assert len(ran) == ranks and min(ran) > most, errors[-3000:]
    failed = set(re.findall(r'(?:FAIL|ERROR): (\w+)', errors))
    assert failed <= set(but) and ('FAILED (' in errors) == bool(failed), errors[-3000:]
    return failed
