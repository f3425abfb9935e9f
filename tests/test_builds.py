'''Programs that were built already are used as long as they would be built the same.'''

import json
import os
import re

import pytest

import rfm
from plumbline.rfm import build_cache


@pytest.fixture
def built(tmp_path, monkeypatch):
    '''A published build; its folder is the current one, and has a compiler and an ldconfig in PATH.'''
    (tmp_path / 'path').mkdir()
    rfm.script(tmp_path / 'path/mpicc', 'echo gcc 12')
    rfm.script(tmp_path / 'path/ldconfig', 'echo libblas.so.3')
    monkeypatch.setenv('PATH', f"{tmp_path / 'path'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    build_cache.REQUEST.write_text(json.dumps({'commands': ['make'], 'compilers': ['mpicc'], 'variables': {}, 'project': str(build_cache.ROOT / 'src')}))
    (tmp_path / 'build/bin').mkdir(parents=True)
    (tmp_path / 'build/bin/triad').write_text('built')
    build_cache.publish('cache')
    (tmp_path / 'build').rename('first')
    return tmp_path


def test_the_same_is_not_built_again(built):
    assert build_cache.fetch('cache')
    assert (built / 'build/bin/triad').read_text() == 'built'


@pytest.mark.parametrize('tool, text', [('mpicc', 'echo gcc 13'), ('mpicc', ': Open MPI 5\necho gcc 12'),
                                        ('ldconfig', 'echo libblas.so.3 libopenblas.so.0')])
def test_what_another_compiler_mpi_or_library_would_make_differ_is_built_again(built, tool, text):
    assert build_cache.fetch('cache')
    rfm.script(built / 'path' / tool, text)
    assert not build_cache.fetch('cache') and not os.path.lexists('build')       # into which --dont-restage would build


def test_the_compiler_that_a_wrapper_is_told_of_counts(built):
    '''OMPI_CC=gcc says nothing of which gcc that is.'''
    rfm.script(built / 'path/gcc-of-module', 'echo gcc 12')
    request = {'commands': ['make'], 'compilers': ['mpicc'], 'variables': {'OMPI_CC': 'gcc-of-module -m64', 'OTHER': ''}, 'project': str(build_cache.ROOT / 'src')}
    before = build_cache.description(request)
    rfm.script(built / 'path/gcc-of-module', 'echo gcc 13')
    assert build_cache.description(request) != before


def test_programs_of_another_cpu_are_not_used(built, monkeypatch):
    of_text = build_cache.cpu
    monkeypatch.setattr(build_cache, 'cpu', lambda text: of_text(re.sub(r' (sse2|fp)\b', '', text)))
    assert not build_cache.fetch('cache')


def test_a_module_may_bring_libraries(built, monkeypatch):
    monkeypatch.setenv('CMAKE_PREFIX_PATH', '/opt/openblas')
    assert not build_cache.fetch('cache')


@pytest.mark.parametrize('name', ['CFLAGS', 'LDFLAGS', 'C_INCLUDE_PATH', 'MKLROOT', 'BLA_VENDOR', 'CMAKE_LIBRARY_PATH'])
def test_flags_and_folders_of_the_shell_count(built, monkeypatch, name):
    monkeypatch.setenv(name, '-mno-avx2')
    assert not build_cache.fetch('cache')


def test_a_name_that_leads_to_another_library_counts(built):
    library = built / 'libopenblas.so.0'
    rfm.script(built / 'path/ldconfig', f'echo "libopenblas.so.0 (libc6,x86-64) => {library}"')
    keys = set()
    for build in 'openmp', 'pthread':
        library.unlink(missing_ok=True)
        library.symlink_to(build)
        keys.add(build_cache.description(json.loads(build_cache.REQUEST.read_text())))
    assert len(keys) == 2


@pytest.mark.parametrize('name', ['setup.c', 'plumbline_axpy.c', 'plumbline/kernel.c'])
def test_all_files_of_a_sites_own_project_count(built, name):
    '''In ours alone these are Python's.'''
    file, keys = built / 'theirs' / name, set()
    file.parent.mkdir(parents=True)
    for text in 'a', 'b':
        file.write_text(text)
        keys.add(build_cache.description({**json.loads(build_cache.REQUEST.read_text()), 'project': str(built / 'theirs')}))
    assert len(keys) == 2


def test_what_changed_while_it_was_built_is_not_kept(built, capsys):
    rfm.script(built / 'path/mpicc', 'echo gcc 13')
    assert not build_cache.fetch('cache')
    (built / 'first').rename('build')
    rfm.script(built / 'path/mpicc', 'echo gcc 14')
    build_cache.publish('cache')
    assert 'have changed while it was built' in capsys.readouterr().err and len(list((built / 'cache').iterdir())) == 1
    assert build_cache.DESCRIBED.exists() and not build_cache.fetch('cache')


def test_what_nobody_has_fetched_for_a_month_is_removed(built):
    old, = (built / 'cache').iterdir()
    theirs = built / 'cache/thesis'
    theirs.mkdir()
    os.utime(theirs, (1, 1))
    os.utime(old, (1, 1))
    assert build_cache.fetch('cache') and old.stat().st_mtime > 1
    os.utime(old, (1, 1))
    (built / 'build').unlink()
    (built / 'first').rename('build')
    rfm.script(built / 'path/mpicc', 'echo gcc 13')
    build_cache.DESCRIBED.unlink()
    build_cache.publish('cache')
    assert not old.exists() and theirs.exists() and len(list((built / 'cache').iterdir())) == 2
