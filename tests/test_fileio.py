'''File I/O: right files and arrays, nothing left behind, clear errors, and the checks that use it.'''

import contextlib
import functools
import itertools
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest

import rfm
from native import QUICK, SOURCE, Build, copied, environment, listed, needs, output_of, refused
from plumbline.errors import PlumblineError
from plumbline.model.result import UNSET
from plumbline.report import figures
from plumbline.rfm import file_systems
from waiting import until

GRANULARITIES, FORMS = ('element', 'row', 'whole'), ('formatted', 'sequential', 'stream')
FORTRAN = [f'{granularity}_{form}' for form in FORMS for granularity in GRANULARITIES]


@functools.cache
def operations(folder):
    '''What can be measured there: pages of a memory file system cannot be dropped.'''
    type_of = output_of('stat', '-f', '-c', '%T', folder).strip()
    return 'write,write_fsync,read_warm' + ('' if type_of in ('tmpfs', 'ramfs') else ',read_cold')


def options_of(folder, *further):
    return ['--variants', 'all', '--operation', operations(folder), '--directory', folder, *QUICK, *further]


def is_empty(folder):
    return not list(folder.iterdir())


# --- right results ---------------------------------------------------------------------------------

@pytest.fixture
def memory(tmp_path):
    '''A folder in memory where there is such a file system: elsewhere devices take their time.'''
    if not os.access('/dev/shm', os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        yield pathlib.Path(folder)


def test_every_way_is_right(build, memory):
    '''Text is compared within its precision, bytes exactly.'''
    sizes = [1, 2, 3, 7, 12, 64, 1003, 4096]
    found = build.measured('fileio', *options_of(memory, '--size', listed(sizes))).measurements
    expected = itertools.product(build.runnable('fileio'), operations(memory).split(','), sizes)
    assert sorted((r['variant'], r['options']['operation'], r['size']) for r in found) == sorted(expected)
    assert all(r['valid'] and r['max_error'] == 0 for r in found)
    assert all(r['tolerance'] == (pytest.approx(2**-52) if 'formatted' in r['variant'] else 0) for r in found)
    assert is_empty(memory)


# 125000 = 50 x 50 x 50: 2500 rows, 1 MB
BYTES = {'c': 1000000, 'whole_stream': 1000000, 'row_stream': 1000000, 'element_stream': 1000000,
         'whole_sequential': 1000008, 'row_sequential': 1020000, 'element_sequential': 2000000,
         'whole_formatted': 3125001, 'row_formatted': 3127500, 'element_formatted': 3250000}


def test_the_model_counts_the_payload_and_shapes_are_as_cubic_as_the_size_allows(programs, memory):
    '''8 bytes per element whatever the format makes of them; the length of the files by hand.'''
    for record in programs.measured('fileio', *options_of(memory, '--size', 125000, '--operation', 'write')).measurements:
        assert (record['bytes'], record['flops'], record['traffic']) == (1000000, 0, 1000000)
        assert record['options']['shape'] == '50x50x50'
        assert record['options']['file_bytes'] == BYTES[record['variant']]
    shapes = {1: '1x1x1', 2: '2x1x1', 7: '7x1x1', 12: '3x2x2', 64: '4x4x4', 1003: '59x17x1', 2000000: '128x125x125'}
    found = programs.measured('fileio', '--size', listed(shapes), '--directory', memory, *QUICK).measurements
    assert {record['size']: record['options']['shape'] for record in found} == shapes


def test_every_way_is_right_on_a_device_and_says_where_and_what_the_page_cache_held(programs, tmp_path):
    fstype = output_of('df', '--output=fstype', tmp_path).split()[-1]
    found = programs.measured('fileio', *options_of(tmp_path, '--size', 20000, '--name', 'scratch')).measurements
    assert len(found) == len(programs.runnable('fileio')) * len(operations(tmp_path).split(',')) and is_empty(tmp_path)
    for record in found:
        stated = record['options']
        assert record['valid'] and record['max_error'] == 0
        assert (stated['path'], stated['file_system'], stated['name']) == (str(tmp_path.resolve()), fstype, 'scratch')
        assert stated['free_bytes'] > 0
        assert ('resident' in stated) == stated['operation'].startswith('read')
        if stated['operation'] == 'read_warm':
            assert stated['resident'] == 1
        if stated['operation'] == 'read_cold':
            assert 0 <= stated['resident'] <= 1


#: Of a file system that caches outside of the page cache.
SHOWS_NOTHING = '''
#include <string.h>
#include <unistd.h>
int mincore(void *at, unsigned long bytes, unsigned char *held)
{
    unsigned long page = sysconf(_SC_PAGESIZE);
    (void)at;
    memset(held, 0, (bytes + page - 1) / page);
    return 0;
}
'''


def test_of_a_cache_that_mincore_does_not_see_nothing_is_said(programs, tmp_path):
    (tmp_path / 'cache.c').write_text(SHOWS_NOTHING)
    output_of('cc', '-shared', '-fPIC', tmp_path / 'cache.c', '-o', tmp_path / 'cache.so')
    (tmp_path / 'files').mkdir()
    found = programs.measured('fileio', *options_of(tmp_path / 'files', '--size', 20000), LD_PRELOAD=str(tmp_path / 'cache.so')).measurements
    reads = [record['options'] for record in found if record['options']['operation'].startswith('read')]
    assert reads and not any('resident' in stated for stated in reads)
    said = {file_systems.FileSystemCheck.wrong_state(stated) for stated in reads}
    assert said == {'mincore() does not show here what the page cache holds'}


def test_variables_of_the_environment_are_replaced(programs, tmp_path):
    (tmp_path / 'in').mkdir()
    for text in ('$PLACE/in', '${PLACE}/in', f'{tmp_path}/$PART'):
        found = programs.measured('fileio', '--size', 8, '--directory', text, *QUICK, PLACE=str(tmp_path), PART='in')
        assert found.measurements[0]['options']['path'] == str(tmp_path / 'in')


# --- the Fortran ways against numpy ------------------------------------------------------------------

@pytest.fixture(scope='module')
def fortran(tmp_path_factory):
    '''Function (reading, granularity, form, path, array) -> Fortran's iostat, compiled by itself.'''
    needs('gfortran')
    import ctypes
    folder = tmp_path_factory.mktemp('fortran')
    output_of('gfortran', '-O2', '-shared', '-fPIC', f'-J{folder}', SOURCE / 'kernels/fileio/kernel.F90', '-o', folder / 'fortran.so')
    function = ctypes.CDLL(folder / 'fortran.so').fileio_fortran

    def call(reading, granularity, form, path, array):
        path, message = str(path).encode(), ctypes.create_string_buffer(200)
        nz, ny, nx = map(ctypes.c_size_t, array.shape)      # the first index of Fortran is the last of numpy
        return function(reading, granularity, form, path, len(path), 25 * array.size, nx, ny, nz,
                        ctypes.c_void_p(array.ctypes.data), message, 200), message.value.decode().strip()
    return call


def fortran_number(x):
    '''ES25.16E3: Python writes two digits of the exponent where they are enough.'''
    mantissa, exponent = f'{x:.16E}'.split('E')
    return f'{mantissa}E{int(exponent):+04d}'.rjust(25)


def file_of(array, granularity, form):
    '''The bytes that a file must hold.'''
    numbers = array.ravel()
    each = {'element': 1, 'row': array.shape[-1], 'whole': array.size}[granularity]
    parts = numbers.reshape(-1, each)
    if form == 'formatted':
        return ''.join(''.join(map(fortran_number, part)) + '\n' for part in parts).encode()
    if form == 'stream':
        return numbers.tobytes()
    marker = np.int32(8 * each).tobytes()
    return b''.join(marker + part.tobytes() + marker for part in parts)


@pytest.mark.parametrize('shape', [(1, 1, 1), (1, 1, 3), (2, 3, 5), (4, 4, 4)])
@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('granularity', GRANULARITIES)
def test_files_are_what_python_makes_of_the_array(fortran, tmp_path, granularity, form, shape):
    rng = np.random.default_rng(2002)
    array = rng.uniform(-1, 1, shape) * 10.0**rng.integers(-200, 200, shape)
    path, how = tmp_path / 'file', (GRANULARITIES.index(granularity), FORMS.index(form))
    path.touch()
    assert fortran(0, *how, path, array) == (0, '')
    assert path.read_bytes() == file_of(array, granularity, form)
    back = np.full(shape, np.nan)
    assert fortran(1, *how, path, back) == (0, '')
    np.testing.assert_array_equal(back, array)


def test_errors_of_fortran_come_back_with_their_text(fortran, tmp_path):
    stat, why = fortran(0, 0, 0, tmp_path / 'nowhere', np.zeros((1, 1, 1)))
    assert stat != 0 and 'No such file' in why
    (tmp_path / 'short').write_bytes(b'1234567')
    stat, why = fortran(1, 2, 2, tmp_path / 'short', np.zeros((1, 1, 1)))
    assert stat != 0 and 'End of file' in why


# --- wrong files and arrays are found ------------------------------------------------------------------

#: Variant that must be found wrong -> what to write in kernel.F90, or kernel.c, instead of what.
BROKEN = {'digits are lost': ("one = '(es25.16e3)'", "one = '(es25.14e3)'", {('element_formatted', 'write'), ('element_formatted', 'read_warm')}),
          'rows become one record': ('call write_unformatted(u, granularity,', 'call write_unformatted(u, merge(2, granularity, granularity == row),',
                                     {('row_sequential', 'write')}),
          'a read that reads nothing': ('call read_unformatted(u,', 'if (granularity <= row) call read_unformatted(u,',
                                        {('whole_sequential', 'read_warm'), ('whole_stream', 'read_warm')})}


def test_what_is_wrong_is_found(tmp_path):
    '''Each of the three in one build; a read of rows that are one record is an error of Fortran's own.'''
    needs('gfortran')
    copied(tmp_path / 'src', 'kernels/fileio')
    kernel = tmp_path / 'src/kernels/fileio/kernel.F90'
    text = kernel.read_text()
    for before, after, _ in BROKEN.values():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    kernel.write_text(text)
    build = Build(tmp_path / 'build', '-DPLUMBLINE_LIKWID=OFF', source=tmp_path / 'src', targets=['fileio-serial'])
    (tmp_path / 'files').mkdir()
    options = ['--size', 64, '--directory', tmp_path / 'files', *QUICK]
    found = build.run('fileio-serial', '--variants', ','.join(set(FORTRAN) - {'row_sequential'}), '--operation', 'write,read_warm', *options)
    rows = build.run('fileio-serial', '--variants', 'row_sequential', *options)
    assert (found.code, rows.code) == (1, 1)
    wrong = {(r['variant'], r['options']['operation']) for r in found.measurements + rows.measurements if not r['valid']}
    assert wrong == set().union(*(cases for _, _, cases in BROKEN.values()))


# --- nothing is left behind ----------------------------------------------------------------------------

def files_of(process, folder):
    '''Paths of the files of a folder that a process holds open, as /proc names them.'''
    found = []
    for entry in os.scandir(f'/proc/{process.pid}/fd'):
        with contextlib.suppress(OSError):      # closed in the meantime
            found.append(os.readlink(entry.path))
    return [path for path in found if path.startswith(str(folder.resolve()))]


def listen():
    '''A shell in the background, or nohup, lets its children ignore signals.'''
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def running(build, folder, kept):
    '''The program in the midst of its files; it ends with the test, whatever becomes of that.'''
    command = [build.path('fileio'), '--variants', 'all', '--operation', 'write,read_warm', '--size', '100000', '--directory',
               folder, '--samples', '10000', '--passes', '1', '--file', kept]
    process = subprocess.Popen(list(map(str, command)), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=listen)
    try:
        until(lambda: len(files_of(process, folder)) >= 2)
        yield process
    finally:
        process.kill()
        process.communicate()


# An unlinked file has its name for the moment before it is unlinked, in which nobody can help a program that is killed.
@pytest.mark.parametrize('kept, number', [('nameless', signal.SIGKILL), ('unlinked', signal.SIGTERM), ('named', signal.SIGTERM),
                                          ('named', signal.SIGINT), ('named', signal.SIGHUP)])
def test_a_run_that_a_signal_ends_leaves_nothing(programs, tmp_path, kept, number):
    with running(programs, tmp_path, kept) as process:
        assert not is_empty(tmp_path) if kept == 'named' else any(is_empty(tmp_path) for _ in range(1000))
        process.send_signal(number)
        process.wait(timeout=30)
    assert process.returncode == -number
    assert is_empty(tmp_path)


def test_every_way_to_keep_files_is_right(programs, tmp_path):
    ways = ['nameless', 'unlinked', 'named']
    found = programs.measured('fileio', *options_of(tmp_path, '--size', 60, '--file', listed(ways), '--operation', 'write,read_warm')).measurements
    # Where there is none without a name the next way is taken.
    assert {r['group'] for r in found} == {0, 1, 2} and all(r['valid'] and r['group'] in (0, ways.index(r['options']['kept'])) for r in found)
    assert is_empty(tmp_path)


# --- full file systems -----------------------------------------------------------------------------------

@pytest.mark.parametrize('variant, kept', [('c', 'named'), *((variant, 'nameless') for variant in ('c', *FORTRAN))])
def test_a_limit_of_the_file_size_is_a_clear_error(programs, tmp_path, variant, kept):
    '''As no room is: write() says no in the midst of the file, or, after what Fortran holds back, at its end.'''
    if variant not in programs.runnable('fileio'):
        pytest.skip('built without a Fortran compiler')
    command = [programs.path('fileio'), '--variants', variant, '--size', '20000', '--directory', tmp_path, '--file', kept, *QUICK]
    for limit in (0, 4096, 159999):
        def limited(limit=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        done = subprocess.run(list(map(str, command)), env=environment(), capture_output=True, text=True, preexec_fn=limited)
        refused(SimpleNamespace(code=done.returncode, text=done.stdout, errors=done.stderr), f'fileio {variant}, size 20000',
                'cannot write', str(tmp_path), 'File too large', 'MB are free')
        assert is_empty(tmp_path)


@pytest.fixture
def small(tmp_path):
    '''Function (script, words) -> its end, in a mount namespace of its own with a tmpfs of 4 MB at $AT.'''
    needs('unshare', 'mount')
    mount = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o size=4m tmpfs "$AT" || exit 99\n']
    if subprocess.run([*mount[:-1], mount[-1] + 'true'], env=environment(AT=str(tmp_path)), capture_output=True).returncode:
        pytest.skip('no permission to mount a small tmpfs')

    def run(script, *words):
        command = [*mount[:-1], mount[-1] + script, 'sh', *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(AT=str(tmp_path)))
        return SimpleNamespace(code=done.returncode, text=done.stdout, errors=done.stderr)
    return run


def test_too_little_room_is_refused_beforehand(programs, small):
    refused(small('exec "$@" --directory "$AT"', programs.path('fileio'), '--size', 1000000, *QUICK),
            '--size 1000000: needs 8.0 MB in ', '(tmpfs), where 4.2 MB are free', 'choose a smaller size')
    assert small('exec "$@" --directory "$AT"', programs.path('fileio'), '--size', 100000, *QUICK).code == 0


#: Somebody else takes all the room, once the program has begun to write.
FILL = '''
"$@" --directory "$AT" &
while kill -0 $! 2>/dev/null; do
    for file in /proc/$!/fd/*; do
        case $(readlink "$file") in "$AT"/*) [ "$(stat -L -c %s "$file" 2>/dev/null || echo 0)" -gt 0 ] && break 2;; esac
    done
done
while kill -0 $! 2>/dev/null; do head -c 4000000 /dev/zero >> "$AT/ballast" 2>/dev/null; done
wait $!; code=$?; rm "$AT/ballast"; ls -A "$AT"; exit $code
'''


@pytest.mark.parametrize('variant', ['c', 'row_formatted'])
def test_a_file_system_that_fills_up_is_a_clear_error(programs, small, variant):
    if variant not in programs.runnable('fileio'):
        pytest.skip('built without a Fortran compiler')
    found = small(FILL, programs.path('fileio'), '--variants', variant, '--size', 40000, '--samples', 100000, '--passes', 1)
    refused(found, 'No space left on device', '(tmpfs)', 'make room')
    assert found.text.splitlines()[1:] == []      # the machine's record, and no file


# --- refused input -------------------------------------------------------------------------------------------

@pytest.mark.parametrize('options, said', [('--directory /nowhere/at/all', 'No such file or directory'),
                                           ('--directory /etc/passwd', 'is not a folder'), ('--directory /proc/self', 'cannot make a file there'),
                                           ('--directory $NO_SUCH_VARIABLE/x', 'NO_SUCH_VARIABLE is not set'),
                                           ('--directory a$/b', 'a $ without the name'), ('--directory ${HOME', 'a $ without the name'),
                                           ('--operation append', 'give one of write, write_fsync, read_warm, read_cold'),
                                           ('--file hidden', 'give one of nameless, unlinked, named'), ('--size 1e13', 'choose a smaller size'),
                                           ('--size 8e8', 'MB')])
def test_bad_input_is_refused(programs, tmp_path, options, said):
    words = options.split()
    if words[1] == '8e8':
        needs('gfortran')
        words += ['--variants', 'whole_formatted']
        said = "Fortran's lines have at most 2147483647 characters"
    if '--directory' not in words:
        words += ['--directory', tmp_path]
    refused(programs.run('fileio', *words), words[0] if words[1] != '8e8' else '--size 800000000', said)
    assert is_empty(tmp_path)


def test_more_than_one_thread_is_refused(programs):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip('only one CPU may be used here')
    refused(programs.run('fileio', '--threads', 2), '--threads 2', 'at most 1')


def test_a_folder_that_may_not_be_written_to_is_refused(programs, tmp_path):
    if os.geteuid() == 0:
        pytest.skip('root may write anywhere')
    tmp_path.chmod(0o555)
    refused(programs.run('fileio', '--directory', tmp_path), 'cannot make a file there: Permission denied')


def test_memory_cannot_be_cold(programs):
    if 'tmpfs' not in output_of('stat', '-f', '-c', '%T', '/dev/shm'):
        pytest.skip('/dev/shm is no tmpfs here')
    refused(programs.run('fileio', '--operation', 'read_cold', '--directory', '/dev/shm'), '--operation read_cold', 'tmpfs')


# --- which file systems, and what fits ------------------------------------------------------------------------

def partition(listed):
    return SimpleNamespace(fullname='here:cpu', extras={} if listed is None else {'file_systems': listed})


def test_file_systems_of_a_partition():
    assert {name: entry['path'] for name, entry in file_systems.of_partition(partition(None)).items()} == {'stage': '.', 'shm': '/dev/shm'}
    given = [{'name': 'scratch', 'path': '/scratch/$USER', 'type': 'fuse.s3fs-2'}, {'name': 'local', 'path': '$TMPDIR'}]
    assert file_systems.of_partition(partition(given)) == {'scratch': given[0], 'local': given[1]}


@pytest.mark.parametrize('listed, said', [
    ({'scratch': '/scratch'}, 'is not understood'), (['/scratch'], 'is not understood'),
    ([{'name': 'scratch'}], 'is not understood'), ([{'name': 'a', 'path': '/a', 'size': '1T'}], 'is not understood'),
    ([{'name': 'a', 'path': '/a', 'type': 'ext2/ext3'}], "the type 'ext2/ext3' of a must be a word of /proc/mounts, .* df --output=fstype /a"),
    ([{'name': 'a', 'path': '/a', 'type': None}], 'the type None of a must be'),
    ([{'name': 'My Disk', 'path': '/a'}], 'must be a word'), ([{'name': 'a', 'path': 'b'}], 'must begin with /'),
    ([{'name': 'a', 'path': '/a'}, {'name': 'a', 'path': '/b'}], 'once'),
])
def test_an_ill_formed_list_is_refused(listed, said):
    with pytest.raises(PlumblineError, match=said) as caught:
        file_systems.of_partition(partition(listed))
    assert "extras['file_systems'] of here:cpu" in str(caught.value)


class Left(Exception):
    pass


class Fake(SimpleNamespace):
    '''What the methods of a check need of it.'''
    need_room = file_systems.FileSystemCheck.need_room
    what_fits = file_systems.FileSystemCheck.what_fits
    skip_case = file_systems.FileSystemCheck.skip_case
    worth_saying = file_systems.FileSystemCheck.worth_saying
    refuse_other_type = file_systems.FileSystemCheck.refuse_other_type
    _other_type = file_systems.FileSystemCheck._other_type
    wrong_state = staticmethod(file_systems.FileSystemCheck.wrong_state)

    def __init__(self, **given):
        super().__init__(**{'size': '1GB', 'memory': 10**11, 'seconds': 60, 'compared': ('c'), 'skipped': {}, 'file_system': 'x', 'expected_type': None} | given)

    def skip_metric(self, name, reason, words=None, symptom=None):
        self.skipped[name] = reason

    def leave(self, reason):
        raise Left(reason)

    def note(self, text):
        pass


def test_less_than_twice_the_room_and_more_than_half_of_the_memory_are_skipped_with_the_reason():
    facts = {'path': '/scratch', 'file_system': 'xfs', 'free_bytes': 3.9e9}
    said = '1GB needs 1.863 GiB of files in /scratch (xfs), and less than twice as much is free (3.632 GiB)'
    with pytest.raises(Left, match=re.escape(said)):
        Fake().need_room(facts, 2e9, 125000000)
    Fake().need_room(facts | {'free_bytes': 4.1e9}, 2e9, 125000000)
    Fake().need_room({'path': '/x', 'file_system': 'fuse'}, 2e9, 125000000)    # does not say how much is free
    facts = {'path': '/dev/shm', 'file_system': 'tmpfs', 'free_bytes': 1e12}
    with pytest.raises(Left, match='half of the memory'):
        Fake(memory=7.9e9).need_room(facts, 2e9, 125000000)
    Fake(memory=8.1e9).need_room(facts, 2e9, 125000000)
    Fake(memory=4.1e9).need_room(facts | {'file_system': 'xfs'}, 2e9, 125000000)


def seen(rate):
    return {operation: {'bytes': rate * 1e6, 'seconds': [1.0] * 10} for operation in ('write_fsync', 'read_warm')}


def test_what_would_take_too_long_is_skipped_with_the_reason():
    check, names = Fake(), ['write', 'read_warm', 'write_fsync', 'read_cold']
    assert check.what_fits(names, 1e10, seen(400), 'xfs', ['c', 'whole_stream']) == ['write', 'read_warm']
    assert set(check.skipped) == {'bandwidth.c.write_fsync', 'speedup.c.write_fsync', 'bandwidth.whole_stream.write_fsync',
                                  'bandwidth.c.read_cold', 'speedup.c.read_cold', 'bandwidth.whole_stream.read_cold'}
    assert check.skipped['bandwidth.c.read_cold'] == 'it would take about 25 s, and of 60 s 10 are left'
    assert Fake().what_fits(names, 1e10, seen(4000), 'xfs', ['c']) == names
    with pytest.raises(Left, match='no time'):
        Fake().what_fits(names, 1e13, seen(400), 'xfs', ['c'])
    assert Fake().what_fits(names, 1e10, seen(4000), 'tmpfs', ['c']) == ['write', 'read_warm']


def test_what_has_become_slow_is_measured_and_no_longer_skipped():
    '''Else the slower a file system is, the less of it is judged.'''
    check, names = Fake(), ['write', 'read_warm', 'write_fsync', 'read_cold']
    assert check.what_fits(names, 1e10, seen(100), 'xfs', ['c'], {'write_fsync'}) == ['write_fsync']
    assert {name.rpartition('.')[2] for name in check.skipped} == {'write', 'read_warm', 'read_cold'}
    with pytest.raises(PlumblineError, match='x: write_fsync would take about 1000 s at the rate of the first look, of 60 s, and references are recorded'):
        Fake().what_fits(names, 1e10, seen(10), 'xfs', ['c'], {'write_fsync'})
    with pytest.raises(PlumblineError, match='x is tmpfs, the memory itself, and references are recorded of its write_fsync: is it mounted?'):
        Fake().what_fits(names, 1e10, seen(4000), 'tmpfs', ['c'], {'write_fsync'})


@pytest.mark.parametrize('operation, resident, said', [('write', None, None), ('read_warm', 1, None), ('read_cold', 0.01, None),
                                                       ('read_cold', 0.2, '20 % of the pages stayed'), ('read_warm', 0.5, 'only 50 % of the pages'),
                                                       ('read_cold', None, 'does not show')])
def test_a_page_cache_that_is_not_as_stated_is_not_reported(operation, resident, said):
    found = {'operation': operation, 'file_system': 'xfs', 'path': '/x', 'shape': '1x1x1', 'kept': 'nameless'}
    found |= {} if resident is None else {'resident': resident}
    check, record = Fake(), {'variant': 'c', 'role': 'kernel', 'options': found}
    reported = list(check.worth_saying([record]))
    assert bool(reported) == (said is None)
    assert said is None or said in check.skipped[f'bandwidth.c.{operation}']


def test_what_stays_in_the_page_cache_is_noise_only_where_something_could_be_dropped():
    def told(**resident):
        symptoms, about = {}, {'operation': 'read_cold', 'file_system': 'xfs', 'path': '/x', 'shape': '1x1x1', 'kept': 'nameless'}
        check = Fake(compared=(), skip_metric=lambda name, reason, symptom: symptoms.update({name: symptom}))
        list(check.worth_saying([{'variant': variant, 'role': 'kernel', 'options': about | {'resident': share}} for variant, share in resident.items()]))
        return symptoms

    assert told(c=1.0) == {'bandwidth.c.read_cold': UNSET} and told(c=1.0, whole_stream=0.2) == dict.fromkeys(
        ('bandwidth.c.read_cold', 'bandwidth.whole_stream.read_cold'), UNSET)
    assert told(c=0.2, whole_stream=0.01) == {'bandwidth.c.read_cold': 'noise'}


@pytest.mark.parametrize('expected, right', [('nfs4', True), ('nfs', True), ('nfs3', False), ('nf', False), ('n.*', False)])
def test_a_job_on_a_node_with_another_file_system_than_the_first_look_measures_nothing(expected, right):
    record = {'variant': 'c', 'role': 'kernel', 'options': {'operation': 'write', 'file_system': 'nfs4', 'path': '/x', 'shape': '1x1x1', 'kept': 'named'}}
    with contextlib.nullcontext() if right else pytest.raises(PlumblineError, match=f'^x: /x is on nfs4 where {re.escape(expected)} was to be: is it mounted'):
        assert list(Fake(expected_type=expected).worth_saying([record])) == [record]


# --- the checks, for real ---------------------------------------------------------------------------------------

CHECKS = rfm.REPOSITORY / 'checks/io'
SITE = '''
import runpy
site_configuration = runpy.run_path({config!r})['site_configuration']
site_configuration['systems'][0]['partitions'][0]['extras']['file_systems'] = {listed!r}
'''


@pytest.fixture
def site(measuring, tmp_path):
    '''Function (list of file systems) -> workplace.'''
    def make(listed):
        place = measuring(tmp_path / 'place')
        place.config = tmp_path / 'localhost.py'
        place.config.write_text(SITE.format(config=str(rfm.REPOSITORY / 'config/localhost.py'), listed=listed))
        return place
    return make


def drawn(check, left):
    return list(figures.FIGURES[check]([left | {'partition': 'p', 'environ': 'e', 'hostname': 'h'}]))


def type_of(folder):
    return output_of('df', '--output=fstype', folder).split()[-1]


def assert_other_type(case, folder):
    assert case['result'] == 'fail' and f'lost: {folder.resolve()} is on {type_of(folder)} where lustre was to be: is it mounted?' in case['fail_reason']
    assert not case['plumbline'].get('metrics')


def test_the_modes_of_the_file_systems_of_a_site(site, programs, memory):
    '''One that is there, with a variable in its path, one that is not, and one whose folder is on another file system.'''
    place = site([{'name': 'scratch', 'path': '$SCRATCH', 'type': type_of(memory)}, {'name': 'gone', 'path': '/nowhere/at/all'},
                  {'name': 'lost', 'path': '$SCRATCH', 'type': 'lustre'}])
    done = place.reframe('-n', 'fileio_modes', '-S', 'fileio_modes.samples=10', '-S', 'fileio_modes.length=1000', '-S', 'processes=1', '-r',
                         checks=CHECKS, SCRATCH=str(memory))
    assert done.report, done.out
    cases = {name.split('file_system=')[1]: case for name, case in done.cases().items()}
    assert set(cases) == {'scratch', 'gone', 'lost'} and done.code == 1
    assert_other_type(cases['lost'], memory)
    assert cases['gone']['result'] == 'fail'
    assert 'gone: plumbline: --directory /nowhere/at/all: No such file or directory' in cases['gone']['fail_reason']
    assert cases['scratch']['result'] == 'pass', cases['scratch']['fail_reason']
    left = cases['scratch']['plumbline']
    assert left['level'] == '1MB on scratch'
    names = {metric['name'] for metric in left['metrics']}
    for variant, operation in itertools.product(programs.runnable('fileio'), operations(memory).split(',')):
        if operation != 'write_fsync' or 'read_cold' in operations(memory):
            assert f'bandwidth.{variant}.{operation}' in names
    assert is_empty(memory)
    if 'element_formatted' not in programs.runnable('fileio'):
        return
    assert 'speedup.whole_sequential.write' in names
    rate = next(metric['value'] for metric in left['metrics'] if metric['name'] == 'bandwidth.element_formatted.write')
    one, ten = map(float, re.search(r'element_formatted.write: at this rate 1 GB takes (\S+) s and 10 GB (\S+) s, which is an estimate',
                                    ' '.join(left['notes'])).groups())
    assert ten == pytest.approx(10 * one, rel=0.01) and 0.2 < one / (1e3 / rate) < 5       # of the first process, the rate of all
    (title, _, figure), (_, _, table) = drawn('fileio_modes', left)
    assert title.startswith('I/O modes, scratch (') and figure is not None
    assert table.header[:2] == ('mode', '2002') and [row[1] for row in table.rows] == ['1.0', '3.8', '4.3', '91.5']


def test_fio_does_not_run_on_another_file_system_than_the_one_that_was_meant(site, tmp_path):
    '''It does not say which one it is on: the job looks.'''
    scratch = tmp_path / 'scratch'
    scratch.mkdir()
    if type_of(tmp_path) in file_systems.IN_MEMORY:
        pytest.skip('temporary files are in memory here, which fio leaves out')
    place = site([{'name': 'scratch', 'path': '$SCRATCH', 'type': type_of(tmp_path)}, {'name': 'lost', 'path': '$SCRATCH', 'type': 'lustre'}])
    rfm.script(tmp_path / 'bin/fio', f'echo >> {tmp_path}/ran\ncat {rfm.REPOSITORY}/tests/data/named/fio.json')
    done = place.reframe('-n', '^fio', '-p', '^gnu$', '-S', 'repeat=2', '-S', f'fio.size={2**24}', '-r', checks=rfm.REPOSITORY / 'checks/named/fio.py',
                         SCRATCH=str(scratch), PATH=f"{tmp_path / 'bin'}:{place.environment['PATH']}")
    assert done.report, done.out
    cases = {name.split('file_system=')[1].split()[0]: case for name, case in done.cases().items()}
    assert cases['scratch']['result'] == 'pass', cases['scratch']['fail_reason']
    assert_other_type(cases['lost'], scratch)
    assert (tmp_path / 'ran').read_text() == 2 * '\n' and is_empty(scratch)


def test_sizes_in_the_default_file_systems(measuring, tmp_path):
    done = measuring(tmp_path / 'place').reframe('-n', 'fileio_sizes.*1MB', '-S', 'processes=1', '-r', checks=CHECKS / 'fileio_sizes.py')
    assert done.report, done.out
    cases = {name.split('=')[1].split()[0]: case for name, case in done.cases().items()}
    assert set(cases) == {'stage', 'shm'}
    if not os.path.isdir('/dev/shm'):
        assert cases.pop('shm')['result'] == 'skip'
    for name, case in cases.items():
        left = case['plumbline']
        assert case['result'] == 'pass', case['fail_reason']
        measured = {metric['name'] for metric in left['metrics']}
        skipped = {said['metric'] for said in left.get('skipped', ())}
        assert {'bandwidth.c.write', 'bandwidth.c.read_warm'} <= measured
        told = [note for note in left['notes'] if note.startswith(f'first look, 15.26 MiB: {name} over ')]
        assert len(told) == len(cases) - 1 and all(re.search(r'write_fsync [\d.]+, read_warm [\d.]+$', note) for note in told)
        for operation in ('write_fsync', 'read_cold'):
            assert {f'bandwidth.c.{operation}', f'all of {operation}'} & (measured | skipped)
        assert {metric['verdict'] for metric in left['metrics']} == {'NO REFERENCE'}
        (title, _, figure), = drawn('fileio_sizes', left)
        assert title.startswith(f'Whole-array I/O over size, {name} (') and figure is not None


def test_an_ill_formed_list_fails_the_check(site):
    done = site([{'name': 'scratch', 'path': 'relative'}]).reframe('-n', 'fileio_modes', '-r', checks=CHECKS)
    assert done.code == 1
    assert "extras['file_systems'] of localhost:default: the path 'relative' of scratch must begin with /" in done.out
