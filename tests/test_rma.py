'''Remote gets: right results of every way, whatever is outstanding; what their curves tell; their checks and figures.'''

import re
import subprocess

import numpy as np
import pytest

import native
import rfm
from made_report import measurement
from mpi_native import MPIS, any_mpi, every_mpi, needs_mpi, ours, refused, run_check, variables, wrong_variants
from native import listed, output_of, two_cpus
from plumbline.bench import mpi as bench_mpi, rma as bench
from plumbline.mpi import messages, rma
from plumbline.mpi.families import families
from plumbline.report import figures

WAYS = {'get', 'rget', 'rolling', 'get_busy', 'get_rewritten', 'put', 'put_busy', 'rput', 'send'}
SHMEM = {'shmem_get', 'shmem_get_nbi', 'shmem_put', 'shmem_put_nbi'}
QUICK = [*native.QUICK, '--compute', 20]


def with_shmem(mpi_programs):
    '''The programs of an MPI that has OpenSHMEM.'''
    for mpi in MPIS:
        if mpi_programs(mpi).path('rma-shmem').exists():
            return mpi_programs(mpi)
    pytest.skip('no MPI with OpenSHMEM is there')


def over(mpi, transport):
    '''What chooses a transport, as keywords of ``MpiBuild.run``.'''
    settings = families()[mpi].transports[transport]
    return {'options': settings.options, **settings.env}


# --- right results -----------------------------------------------------------------------------------------------

# Each case is some fifty barriers: on a busy machine they take longer than the messages, so there are few.
@every_mpi
@pytest.mark.parametrize('sizes, windows, memory', [([0, 1, 13], [48], 'allocate'), ([13], [1, 256], 'create')])
def test_every_way_is_right_whatever_is_outstanding(mpi_programs, mpi, sizes, windows, memory):
    found = mpi_programs(mpi).measured(2, 'rma', '--variants', 'all', '--size', listed(sizes), '--window', listed(windows),
                                       '--memory', memory, *QUICK)
    assert found.errors == ''
    records = found.measurements
    assert len(records) == len(WAYS) * len(sizes) * len(windows)
    assert {record['variant'] for record in records} == WAYS
    for record in records:
        options, size = record['options'], record['size']
        assert record['valid'] and record['max_error'] == 0, record
        assert (record['bytes'], record['working_set'], options['messages']) == (256 * size, 2 * 256 * size, 256)
        assert options['acknowledgements'] == (-(-256 // options['window']) if record['variant'] == 'send' else 0)
    assert len({record['group'] for record in records}) == len(sizes)      # all windows are interleaved


def loopback():
    '''Bytes that the loopback device has received.'''
    with open('/proc/net/dev', encoding='utf-8') as file:
        return next(int(line.split()[1]) for line in file if line.split()[0] == 'lo:')


@every_mpi
def test_over_tcp_it_is_right_and_goes_on_while_the_target_waits(mpi_programs, mpi):
    needs_mpi(mpi)
    before, ways = loopback(), ['get', 'get_rewritten', 'put', 'put_busy', 'rget', 'rolling', 'rput', 'send']
    options = ['--variants', listed(ways), '--size', 1000000, '--window', 4, '--messages', 8, *QUICK]
    for _ in range(5):
        try:
            found = mpi_programs(mpi).measured(2, 'rma', *options, timeout=20 if mpi == 'mpich' else 120, **over(mpi, 'tcp'))
            break
        except subprocess.TimeoutExpired:
            # MPICH 4.0 on UCX's TCP: one process in some tens waits for ever in MPI_Finalize, all being measured.
            if mpi != 'mpich':
                raise
    else:
        pytest.fail('no run over TCP came to its end')
    assert [record['variant'] for record in found.measurements] == ways
    assert all(record['valid'] for record in found.measurements)
    assert loopback() - before >= sum(record['bytes'] * len(record['seconds']) for record in found.measurements)


@every_mpi
def test_a_last_batch_may_be_smaller_and_pairs_work_at_once(mpi_programs, mpi):
    found = mpi_programs(mpi).measured(4, 'rma', '--variants', 'all', '--size', '5,100003', '--window', '7,40', '--messages',
                                       101, *native.SAMPLES, '--passes', 2, '--compute', 20).measurements
    assert len(found) == len(WAYS) * 2 * 2
    assert all(record['valid'] and record['ranks'] == 4 for record in found)


def test_a_target_that_computes_is_waited_for_where_it_has_to_help(mpi_programs):
    '''In shared memory a window of Open MPI is the origin's to read, of MPICH 4.0 it is not; over TCP somebody has to read the request.'''
    build, pause = mpi_programs('openmpi'), 0.03
    options = ['--variants', 'get_busy,put_busy', '--size', 8, '--messages', 1, '--compute', int(1e6 * pause), *native.MEASURED]
    for record in build.measured(2, 'rma', *options, **over('openmpi', 'shm')).measurements:
        assert min(rma.seconds(record)) < pause / 4        # beside other work a wake-up takes milliseconds
    for record in build.measured(2, 'rma', *options, **over('openmpi', 'tcp')).measurements:
        assert np.median(rma.seconds(record)) > pause / 4


def test_openshmem_is_right(mpi_programs):
    build = with_shmem(mpi_programs)
    found = build.measured(2, 'rma-shmem', '--variants', 'all', '--size', '0,1,13', '--window', 33, *QUICK)
    assert found.errors == ''
    assert {record['variant'] for record in found.measurements} == WAYS | SHMEM
    assert all(record['valid'] and record['max_error'] == 0 for record in found.measurements)


# --- wrong results are found, bad input is refused ----------------------------------------------------------------

def test_old_data_are_found(mpi_broken):
    found = mpi_broken.run(2, 'rma-stale', '--variants', 'all', '--size', 8, '--window', 16, '--memory', 'allocate,create', *QUICK)
    assert {record['variant'] for record in found.measurements if not record['valid']} == {'get_rewritten'}
    # Every byte of each message is an old one.
    assert {record['max_error'] for record in found.measurements if not record['valid']} == {8 * 256}


#: An MPI whose puts take place no sooner than they must.
LATE = '''
#include <mpi.h>
static struct { const void *from; int bytes, to; MPI_Aint at; MPI_Win window; } put[1 << 16];
static int puts;
int MPI_Put(const void *from, int bytes, MPI_Datatype type, int to, MPI_Aint at, int count, MPI_Datatype other, MPI_Win window)
{
    put[puts].from = from, put[puts].bytes = bytes, put[puts].to = to, put[puts].at = at, put[puts++].window = window;
    return MPI_SUCCESS;
}
int MPI_Rput(const void *from, int bytes, MPI_Datatype type, int to, MPI_Aint at, int count, MPI_Datatype other, MPI_Win window,
             MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPI_Put(from, bytes, type, to, at, count, other, window);
}
int MPI_Win_flush(int rank, MPI_Win window)
{
    int left = 0;
    for (int i = 0; i < puts; i++)
        if (put[i].window == window)
            PMPI_Put(put[i].from, put[i].bytes, MPI_BYTE, put[i].to, put[i].at, put[i].bytes, MPI_BYTE, window);
        else
            put[left++] = put[i];
    puts = left;
    return PMPI_Win_flush(rank, window);
}
'''


def test_puts_are_waited_for(mpi_programs, mpi_broken, tmp_path):
    mpi, late = any_mpi(), tmp_path / 'late.so'
    (tmp_path / 'late.c').write_text(LATE)
    output_of(MPIS[mpi]['cc'], '-shared', '-fPIC', '-o', late, tmp_path / 'late.c', env=variables(mpi))
    options = '--variants', 'put,put_busy,rput', '--size', 8, '--window', '7,256', *QUICK
    assert all(record['valid'] for record in mpi_programs(mpi).measured(2, 'rma', *options, LD_PRELOAD=late).measurements)
    found = mpi_broken.run(2, 'rma-unflushed', *options, LD_PRELOAD=late)
    assert found.code and not any(record['valid'] for record in found.measurements)
    found = mpi_broken.run(2, 'rma', '--variants', 'all', '--size', 8, '--window', 16, *QUICK)
    wrong = {record['variant'] for record in found.measurements if not record['valid']}
    assert found.code and wrong == wrong_variants('rma')
    assert all(f'plumbline: rma {way}, size 8, 2 ranks: the result is wrong' in found.errors for way in wrong)


def test_bad_input_is_refused(mpi_programs):
    refused(mpi_programs(any_mpi()), 'rma', (1, '', 'rma needs 2 processes', 'mpirun -np 2'), (3, '', 'rma needs pairs of processes', 'even number'),
            (2, '--window 0', '--window 0', 'from 1 to 65536'), (2, '--window 1,1', '--window: 1 stands there twice'),
            (2, '--window 8,257', '--window 257', 'more than the 256 messages', '--messages 257'),
            (2, '--window 8,64 --messages 128,16', '--window 64', 'more than the 16 messages'),
            (2, '--messages 16777217', '--messages 16777217', '16777216'), (2, '--memory shared', '--memory shared', 'allocate, create'),
            (2, '--size 2147483648', '--size 2147483648', 'at most 2147483647'),
            (2, '--size 1e9 --messages 16777216 --memory create', '--size 1000000000', 'GB that are free'),
            (2, '--variants shmem_get', '--variants shmem_get', 'not in this build', 'rma-shmem'),
            (2, '--variants fetch', 'rma has no such variant', 'rolling'), (2, '--threads 2', '--threads 2'))


@every_mpi
def test_a_window_beyond_memory_is_refused_by_every_mpi(mpi_programs, mpi):
    refused(mpi_programs(mpi), 'rma', (2, '--size 1e9 --messages 16777216', 'of shared memory, of ', '--memory create'))


def test_shared_memory_that_is_too_small_is_refused(mpi_programs, tmp_path):
    '''As in a container, where /dev/shm has 64 MB: a write beyond it would end the processes with SIGBUS.'''
    (tmp_path / 'small.c').write_text('''
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <string.h>
        #include <sys/statvfs.h>
        int statvfs(const char *path, struct statvfs *s)
        {
            const int error = ((int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs"))(path, s);
            if (!strcmp(path, "/dev/shm"))
                s->f_bavail = (1 << 26) / s->f_frsize;
            return error;
        }
    ''')
    output_of('cc', '-shared', '-fPIC', tmp_path / 'small.c', '-o', tmp_path / 'small.so', '-ldl')
    program = mpi_programs(any_mpi())
    few = [*native.QUICK, '--messages', 16]
    done = program.run(2, 'rma', '--size', '8,3000000', *few, LD_PRELOAD=tmp_path / 'small.so', timeout=120)
    assert done.code and not done.measurements
    assert ours(done) == ['plumbline: --memory allocate: the windows of this node need 0.096 GB of shared memory, of 0.0671 GB '
                          'that are free in /dev/shm: choose a smaller --size, fewer --messages or --memory create']
    program.measured(2, 'rma', '--size', 8, '--memory', 'create', *few, LD_PRELOAD=tmp_path / 'small.so')


def test_a_symmetric_heap_that_is_too_small_is_refused(mpi_programs):
    done = with_shmem(mpi_programs).run(2, 'rma-shmem', '--variants', 'shmem_get', '--size', '1e6', '--messages', 64, *QUICK,
                                        SHMEM_SYMMETRIC_HEAP_SIZE='16M', SHMEM_SYMMETRIC_SIZE='16M', timeout=120)
    assert done.code and not done.measurements
    assert len({line.removeprefix('plumbline: rank 1: ').removeprefix('plumbline: ') for line in ours(done)}) == 1
    assert "in OpenSHMEM's symmetric heap: choose a smaller --size or set SHMEM_SYMMETRIC_SIZE (" in ours(done)[0]


# --- what the curves tell ------------------------------------------------------------------------------------------

def made(variant, window, microseconds, size=8, messages=256, spent=(), **changed):
    '''A record whose messages take so long.

    :arg spent: microseconds of a transfer by the clock of the origin, one of two ranks.
    '''
    answers = messages // window if variant == 'send' else 0
    return measurement(kernel='rma', variant=variant, ranks=2, size=size, passes=10, bytes=10.0 * messages * size,
                       seconds=[10e-6 * messages * each for each in microseconds],
                       options={'window': window, 'messages': messages, 'memory': changed.pop('memory', 'allocate'),
                                'acknowledgements': answers},
                       communication=[10e-6 * messages * each / 2 for each in spent], **changed)


def test_curves_and_what_the_target_does_by_hand():
    measured = [made('get', 16, [2, 4]), made('get', 1, [10, 10]), made('send', 1, [6, 6]), made('get', 1, [70, 70], size=64)]
    found = rma.curves(measured, 8)
    assert {variant: list(curve) for variant, curve in found.items()} == {'get': [1, 16], 'send': [1]}
    assert rma.speedup(found['get']) == pytest.approx([5, 2.5])
    assert messages.seconds(found['get'][1]) == pytest.approx([10e-6] * 2)
    # A message and its answer: the time of one of the two.
    assert messages.seconds(found['send'][1]) == pytest.approx([3e-6] * 2)
    assert messages.seconds(made('send', 256, [257, 257])) == pytest.approx([256e-6] * 2)
    ways = {way: made(way, 1, [0, 0], spent=spent) for way, spent in (('get', [2, 4]), ('get_busy', [4, 40]), ('get_rewritten', [3, 6]))}
    assert rma.seconds(ways['get']) == pytest.approx([2e-6, 4e-6])
    assert rma.progress(ways, 'get') == pytest.approx([0.5, 0.1])
    assert rma.slowdown_rewritten(ways) == pytest.approx([1.5, 1.5])


@pytest.mark.parametrize('times, half', [
    ({1: 8, 2: 4, 4: 2, 8: 1, 16: 1}, 4),       # half of the best at 4, exactly
    ({1: 16, 4: 4, 16: 1}, 8),                  # between 4 and 16
    ({1: 1, 2: 1.5, 4: 3}, 1),                  # nothing to hide: the first is the best, later dips do not count
    ({1: 1.9, 2: 1, 4: 1}, 1),
    ({1: 8, 2: 1.5, 4: 8, 8: 1}, 6.3496),       # the last rise to the half before the best
])
def test_half_window(times, half):
    curve = rma.curves([made('get', window, [time] * 3) for window, time in times.items()], 8)['get']
    assert rma.half_window(curve) == pytest.approx(half, rel=1e-4)


def test_every_variant_has_its_line_in_the_table(mpi_programs):
    listing = mpi_programs(any_mpi()).run(2, 'rma', '--list').text
    assert {line.split()[0] for line in listing.splitlines()[1:] if line.startswith('  ')} == set(rma.WAYS) == WAYS | SHMEM


# --- figures -----------------------------------------------------------------------------------------------------

def detail(records, **changed):
    return {'check': 'rma_pipeline', 'hostname': 'here', 'partition': 'p', 'environ': 'gnu', 'transport': 'shm', 'records': records, **changed}


def test_figures_and_the_table():
    words = [made(way, window, [time] * 3) for way in ('get', 'send') for window, time in ((1, 4), (256, 1))]
    blocks = [made(way, window, [100] * 3, size=65536) for way in ('get', 'send') for window in (1, 256)]
    (title, caption, figure), (name, _, table) = figures.of_check('rma_pipeline', [detail(words + blocks)])
    assert title == 'Transfers by messages outstanding, shm, allocate' and 'anderson1997, figure 4' in caption
    curve = next(trace for trace in figure.data if trace.name == 'get')
    assert list(curve.x) == [1, 256] and np.allclose(curve.y, [2, 8])
    assert name == 'Latency and bandwidth of get, put and send'
    assert table.rows[0] == ['get', 'shm, allocate', '4.00 us', 'until the data are here', '655 MB/s', '4.00 (256)', '16.0']
    assert table.rows[1][:3] == ['send', 'shm, allocate', '2.00 us']
    assert [row[:1] + row[2:3] + row[4:5] for row in table.rows[2:]] == [
        ['T3E, sma (shmem)', '1 us', '350 MB/s'], ['T3E, MPI', '14 us', '260 MB/s'], ['T3E, PVM', '11 us', '150 MB/s']]


def test_table_of_what_the_target_does():
    records = [made(way, 1, [1] * 3, spent=[spent] * 3) for way, spent in (
        ('get', 2), ('get_busy', 1000), ('get_rewritten', 3), ('put', 4), ('put_busy', 4))]
    (_, caption, table), = figures.of_check('rma_target', [detail(records)])
    assert 'near 0 where they wait' in caption
    assert table.rows == [['get', 'shm, allocate', '2.00 us', '1.00 ms', '0.002', '3.00 us', '1.50'],
                          ['put', 'shm, allocate', '4.00 us', '4.00 us', '1.00', '', '']]
    assert figures.of_check('rma_target', [detail([])]) == []
    words = [made('get', window, [1] * 3) for window in (1, 16)]
    details = [detail(words), detail([dict(record, options={**record['options'], 'memory': 'create'}) for record in words]),
               detail(words, environ='other', transport='tcp'), detail([], environ='third')]
    titles = {title: figure for title, _, figure in figures.of_check('rma_pipeline', details)}
    assert set(titles) == {*(f'Transfers by messages outstanding, {over}' for over in (
        'shm, allocate, gnu', 'shm, create, gnu', 'tcp, allocate, other', 'shm, third')), 'Latency and bandwidth of get, put and send'}
    assert [title for title, figure in titles.items() if figure is None] == ['Transfers by messages outstanding, shm, third']


# --- the checks --------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def checked(mpi_programs, measuring_mpi, tmp_path_factory):
    '''One run of every check, with few messages outstanding, by an MPI that has OpenSHMEM where one is there: check -> its test case.'''
    mpi = next((mpi for mpi in MPIS if mpi_programs(mpi).path('rma-shmem').exists()), None) or any_mpi()
    cases = run_check(measuring_mpi(tmp_path_factory.mktemp('checked'), mpi), mpi, 'rma_pipeline.py',
                      'rma_pipeline.*tcp.*allocate|rma_array.*shm|rma_target.*shm.*allocate|shmem_pipeline.*shm',
                      '-S', 'rma_pipeline.windows=1,16', '-S', 'rma_pipeline.ways=get,send', '-S', 'rma_array.words=1024',
                      '-S', 'rma_array.windows=1,32,4096', '-S', 'shmem_pipeline.windows=1,16', '-S', 'shmem_pipeline.ways=get,shmem_get_nbi')
    assert len(cases) == 4
    return {case['name'].split()[0]: case for case in cases}


def names_of(case):
    rfm.assert_measured(case)
    return {metric['name'] for metric in case['plumbline']['metrics']}


@two_cpus
def test_check_measures_what_it_asks(checked):
    assert names_of(checked['rma_pipeline']) == {
        f'{metric}.{way}.tcp' for way in ('get', 'send') for metric in ('latency', 'bandwidth', 'speedup', 'half_window')}
    drawn = figures.of_check('rma_pipeline', [rfm.detail_of('rma_pipeline', checked['rma_pipeline'])])
    assert len(drawn) == 2 and all(figure is not None for _, _, figure in drawn)


@two_cpus
def test_check_of_an_array_of_words(checked):
    assert names_of(checked['rma_array']) == {
        f'{metric}.shm' for way in ('get', 'rolling')
        for metric in (f'bandwidth.{way}.w1', f'bandwidth.{way}.w32', f'speedup.{way}', f'half_window.{way}')}


@two_cpus
def test_check_of_the_target(checked):
    assert names_of(checked['rma_target']) == {
        'latency.get.shm', 'latency.get_rewritten.shm', 'latency.put.shm', 'latency_busy_target.get.shm', 'progress.get.shm',
        'latency_busy_target.put.shm', 'progress.put.shm', 'slowdown.get_rewritten.shm'}
    (_, _, table), = figures.of_check('rma_target', [rfm.detail_of('rma_target', checked['rma_target'])])
    assert [row[0] for row in table.rows] == ['get', 'put']


def test_checks_ask_for_every_way(repository):
    '''What the tests above leave out to be quick.'''
    text = (repository / 'checks/mpi/rma_pipeline.py').read_text()
    for way in WAYS | SHMEM:
        assert f"'{way}'" in text


@two_cpus
def test_check_of_openshmem(mpi_programs, checked, measuring_mpi, tmp_path):
    mpi = with_shmem(mpi_programs).mpi
    assert {'latency.get.shm', 'latency.shmem_get_nbi.shm'} <= names_of(checked['shmem_pipeline'])
    if mpi == 'openmpi':    # without a transport that OpenSHMEM can use
        place = measuring_mpi(tmp_path / 'place', mpi)
        cases = run_check(place, mpi, 'rma_pipeline.py', 'shmem_pipeline.*shm', OMPI_MCA_spml='^ucx')
        assert [case['result'] for case in cases] == ['skip']
        assert re.search('all - OpenSHMEM does not start here: .*spml', place.judge().out, re.IGNORECASE)


@two_cpus
def test_check_of_openshmem_where_there_is_none(mpi_programs, measuring_mpi, tmp_path):
    without = [mpi for mpi in MPIS if not mpi_programs(mpi).path('rma-shmem').exists()]
    if not without:
        pytest.skip('every MPI here has OpenSHMEM')
    place = measuring_mpi(tmp_path / 'place', without[0])
    cases = run_check(place, without[0], 'rma_pipeline.py', 'shmem_pipeline.*shm')
    assert [case['result'] for case in cases] == ['skip']
    assert f'all - the MPI of gnu-{without[0]} has no OpenSHMEM' in place.judge().out


# --- the figures that Plumbline holds itself to --------------------------------------------------------------------

class Faked:
    '''An MPI whose messages take 4 us.'''
    family = families()['openmpi']

    def run(self, program, *options):
        return [dict(made('get', 1, [4 * n] * 10), passes=n) for n in (1, 2)]


def test_bench_figures(monkeypatch):
    broken = type('Broken', (), {'family': families()['mpich'], 'run': lambda *_, **__: bench_mpi.output_of(['false'])})
    monkeypatch.setattr(bench_mpi, 'machines', lambda _: [broken(), Faked()])
    missing, *measured = bench.figures(None, 3)
    assert missing.line == 'NOT MEASURED  MPICH: false failed: exit code 1'
    found = {figure.what: figure.value for figure in measured}
    assert found == {f'Open MPI, {way}: time of 2 P passes / time of P passes': pytest.approx(2) for way in ('get', 'put', 'send')}
