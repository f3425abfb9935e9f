'''The matrix transpose as a message: right results of every way to send it, the Memory-LogP split, its check and figures.'''

import os

import numpy as np
import pytest

import rfm
from made_report import measurement
from mpi_native import MPIS, any_mpi, every_mpi, mpirun, ours, refused, run_check, wrong_variants
from native import CPUS, MEASURED, QUICK, SAMPLES, SOURCE, listed, output_of, two_cpus
from plumbline.bench import datatype as bench, mpi as bench_mpi
from plumbline.errors import PlumblineError
from plumbline.mpi import memory_logp
from plumbline.mpi.families import families
from plumbline.report import figures

AWKWARD = [1, 2, 3, 16, 17, 63, 65]
WITHOUT = {'datatype', 'packed', 'blocked', 'mpi_pack', 'contiguous', 'copy', 'pack_datatype', 'pack_hand', 'pack_blocked',
           'unpack_datatype', 'unpack_hand', 'unpack_blocked'}
WITH = {'library', 'pack_library', 'unpack_library'}


# --- right results -----------------------------------------------------------------------------------------------

@every_mpi
def test_every_variant_is_right(mpi_programs, mpi):
    found = mpi_programs(mpi).measured(2, 'datatype', '--variants', 'all', '--size', listed(AWKWARD), *QUICK)
    assert found.errors == ''
    assert {record['variant'] for record in found.measurements} == WITHOUT
    assert {record['size'] for record in found.measurements} == set(AWKWARD)
    assert all(record['valid'] and record['max_error'] == 0 for record in found.measurements)
    assert {record['options']['pack_library'] for record in found.measurements} == {'absent'}
    for record in found.measurements:
        local = record['variant'] == 'copy' or record['variant'].startswith(('pack_', 'unpack_'))
        assert record['options']['messages'] == (0 if local else 2)
        assert record['bytes'] == (1 if local else 2) * 8 * record['size']**2
        assert record['working_set'] == 3 * 8 * record['size']**2


def test_the_library_is_told_how_many_entries_a_tlb_has(mpi_programs):
    build = mpi_programs(any_mpi())
    chosen = ['datatype', '--variants', 'library,pack_library', '--size', '256', '--tlb', '0,32,8192', *QUICK]
    found = build.measured(2, *chosen, LD_PRELOAD=build.library('pack')).measurements
    assert all(record['valid'] for record in found)
    assert sorted(record['options']['tlb'] for record in found) == sorted([0, 32, 8192] * 2)
    done = build.run(2, *chosen)
    assert done.code and 'libplumbline_pack is not loaded' in done.errors and not done.measurements
    # With one more entry than the matrix has pages all of its messages are the MPI's.
    for entries, told in ((513, ': 0 sends packed here, 21 passed on'), (512, ': 21 sends packed here, 0 passed on')):
        report = build.run(2, 'datatype', '--variants', 'library', '--size', '512', '--tlb', entries, *MEASURED, LD_PRELOAD=build.library('pack'),
                           PLUMBLINE_PACK_PAGE='4096', PLUMBLINE_PACK_REPORT='1').errors
        assert report.count(told) == 2, report


def test_pairs_exchange_at_once_with_and_without_the_packing_library(mpi_programs):
    found = mpi_programs(any_mpi()).measured(4, 'datatype', '--variants', 'all', '--size', 33, *SAMPLES, '--passes', 2).measurements
    assert {record['variant'] for record in found} == WITHOUT
    assert all(record['valid'] and record['ranks'] == 4 for record in found)
    build = mpi_programs(any_mpi())
    found = build.measured(2, 'datatype', '--variants', 'all', '--size', listed([*AWKWARD, 300]), *QUICK,
                           LD_PRELOAD=build.library('pack')).measurements
    assert {record['variant'] for record in found} == WITHOUT | WITH
    assert all(record['valid'] for record in found)
    assert {record['options']['pack_library'] for record in found} == {'loaded'}


# --- wrong results are found, bad input is refused ----------------------------------------------------------------

def test_a_wrong_result_is_found(mpi_broken):
    found = mpi_broken.run(2, 'datatype', '--variants', 'all', '--size', 33, *QUICK)
    wrong = {record['variant'] for record in found.measurements if not record['valid']}
    assert found.code
    assert wrong == wrong_variants('datatype')
    assert all(f'plumbline: datatype {variant}, size 33, 2 ranks: the result is wrong' in found.errors for variant in wrong)


#: A library with the functions of libplumbline_pack: what it does is in its environment.
STAND_IN = '''
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Wrong: one element less, and nothing but zeros. */
int MPI_Send(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    if (!strcmp(getenv("STAND_IN"), "right"))
        return PMPI_Send(from, count, type, to, tag, comm);
    double zeros[1000] = {0};
    int bytes;
    PMPI_Type_size(type, &bytes);
    return PMPI_Send(zeros, bytes / 8 - 1, MPI_DOUBLE, to, tag, comm);
}

int plumbline_pack(const void *user, int count, MPI_Datatype type, void *packed)
{
    int at = 0, bytes;
    if (!strcmp(getenv("STAND_IN"), "refuses"))
        return -1;
    PMPI_Type_size(type, &bytes);
    PMPI_Pack(user, count, type, packed, bytes, &at, MPI_COMM_SELF);
    return at;
}

int plumbline_unpack(const void *packed, void *user, int count, MPI_Datatype type)
{
    int at = 0, bytes;
    if (!strcmp(getenv("STAND_IN"), "refuses"))
        return -1;
    PMPI_Type_size(type, &bytes);
    PMPI_Unpack(packed, bytes, &at, user, count, type, MPI_COMM_SELF);
    return at;
}
'''


@pytest.fixture(scope='module')
def stand_in(tmp_path_factory):
    '''A shared library that stands in for libplumbline_pack.'''
    folder = tmp_path_factory.mktemp('stand-in')
    (folder / 'pack.c').write_text(STAND_IN)
    output_of(MPIS[any_mpi()]['cc'], '-shared', '-fPIC', folder / 'pack.c', '-o', folder / 'libpack.so')
    return folder / 'libpack.so'


@pytest.mark.parametrize('what, wrong', [('right', set()), ('loses an element', {'library'}),
                                         ('refuses', {'library', 'pack_library', 'unpack_library'})])
def test_the_library_is_in_its_own_variants_only(mpi_programs, stand_in, what, wrong):
    found = mpi_programs(any_mpi()).run(2, 'datatype', '--variants', 'all', '--size', 20, *QUICK, LD_PRELOAD=stand_in, STAND_IN=what)
    assert {record['variant'] for record in found.measurements} == WITHOUT | WITH, found.errors
    assert {record['variant'] for record in found.measurements if not record['valid']} == wrong
    assert bool(found.code) == bool(wrong)


def test_a_library_in_some_processes_only_is_refused(mpi_programs, stand_in):
    program = mpi_programs(any_mpi()).path('datatype')
    done = mpirun(any_mpi(), 1, ['env', f'LD_PRELOAD={stand_in}', program, ':', '-np', 1, program])
    assert done.code and not done.measurements
    assert ours(done) == ['plumbline: libplumbline_pack is loaded in 1 of 2 processes: preload it in all of them or in none']


def test_bad_input_is_refused(mpi_programs):
    refused(mpi_programs(any_mpi()), 'datatype', (2, '--size 16384', '--size 16384', 'at most 16383'),
            (2, '--variants library', '--variants library', 'not loaded', 'LD_PRELOAD'),
            (2, '--variants simd', 'datatype has no such variant', 'mpi_pack'),
            (1, '--size 8', 'datatype needs 2 processes', 'mpirun -np 2'), (3, '--size 8', 'datatype needs pairs of processes', 'even number'))


# --- the Memory-LogP split ---------------------------------------------------------------------------------------

def made(variant, microseconds, passes=4, **changed):
    '''A record whose messages, or copies, take so long.'''
    local = variant == 'copy' or ('_' in variant and variant != 'mpi_pack')
    each = passes * (1 if local else 2) * 1e-6
    return measurement(kernel='datatype', variant=variant, ranks=2, size=changed.pop('size', 1000), passes=passes,
                       seconds=[each * value for value in microseconds], bytes=8e6 * passes * (1 if local else 2),
                       options={'messages': 0 if local else 2}, **changed)


#: Microseconds of one message in each of three rounds.
GROUP = {'copy': [10, 10, 20], 'contiguous': [30, 35, 50], 'pack_datatype': [50, 55, 70], 'pack_blocked': [15, 15, 30],
         'datatype': [100, 100, 120], 'blocked': [40, 50, 70]}


def test_the_split_by_hand_and_a_negative_part():
    found = memory_logp.split([made(variant, times) for variant, times in GROUP.items()])
    assert list(found) == ['datatype', 'blocked', 'contiguous']
    parts = {name: {part: getattr(found[name], part) * 1e6 for part in ('copy', 'network', 'packing', 'middleware', 'total')} for name in found}
    expected = {
        'datatype': {'copy': [10, 10, 20], 'network': [20, 25, 30], 'packing': [40, 45, 50], 'middleware': [30, 20, 20],
                     'total': [100, 100, 120]},
        # Packing and sending overlap: less than the parts.
        'blocked': {'copy': [10, 10, 20], 'network': [20, 25, 30], 'packing': [5, 5, 10], 'middleware': [5, 10, 10],
                    'total': [40, 50, 70]},
        'contiguous': {'copy': [10, 10, 20], 'network': [20, 25, 30], 'packing': [0, 0, 0], 'middleware': [0, 0, 0],
                       'total': [30, 35, 50]}}
    for name, of in expected.items():
        for part, values in of.items():
            np.testing.assert_allclose(parts[name][part], values, rtol=1e-12, atol=1e-9, err_msg=f'{name} {part}')
    group = [made(variant, times) for variant, times in {**GROUP, 'datatype': [60, 60, 60]}.items()]
    np.testing.assert_allclose(memory_logp.split(group)['datatype'].middleware * 1e6, [-10, -20, -40])


@pytest.mark.parametrize('without, named', [('copy', 'copy'), ('contiguous', 'contiguous'), ('pack_blocked', 'pack_blocked')])
def test_a_split_without_all_its_parts_is_refused(without, named):
    group = [made(variant, times) for variant, times in GROUP.items() if variant != without]
    with pytest.raises(PlumblineError, match=f'needs {named} in the same group'):
        memory_logp.split(group)


# --- the figures -------------------------------------------------------------------------------------------------

def test_the_split_is_drawn():
    slow = {**GROUP, 'datatype': [60, 60, 60]}
    records = [made(variant, times, size=1000 * (group + 1), group=group) for group in range(2) for variant, times in slow.items()]
    detail = {'check': 'datatype_transpose', 'transport': 'shm', 'records': records, 'partition': 'p', 'environ': 'e'}
    (title, _, _), (name, caption, drawn) = figures.of_check('datatype_transpose', [detail])
    assert title == 'Bandwidth of a matrix transpose as a message, shm'
    assert name == 'What the time of the message is made of, shm' and caption.endswith('figure 2.')
    first = {bar.name: dict(zip(bar.y, bar.x)) for bar in drawn.data[:4]}
    # Microseconds per million elements: the medians of the rounds are those of 1000 x 1000, as picoseconds.
    assert first['o: contiguous copy']['datatype'] == pytest.approx(0.010)
    assert first['L: network']['contiguous'] == pytest.approx(0.025)
    assert first['l_p: packing']['datatype'] == pytest.approx(0.045)
    assert first['l_m: middleware']['datatype'] == pytest.approx(-0.020)
    assert drawn.layout.barmode == 'relative'


def test_a_split_that_cannot_be_says_why():
    detail = {'check': 'datatype_transpose', 'records': [made('datatype', [1, 2, 3])], 'partition': 'p', 'environ': 'e'}
    drawn = figures.of_check('datatype_transpose', [detail])
    assert [figure for _, _, figure in drawn] == [None, None]
    assert 'needs contiguous, copy, pack_datatype' in drawn[1][1]
    group = [made(variant, times[:2] if variant == 'copy' else times) for variant, times in GROUP.items()]
    with pytest.raises(PlumblineError, match='a round is missing'):
        memory_logp.split(group)


# --- the bench ---------------------------------------------------------------------------------------------------

def test_the_targets():
    variants = {**{variant: [30.0] for variant in bench._VARIANTS}, 'library': [10.0], 'contiguous': [6.0]}
    of = {variant: made(variant, times) for variant, times in variants.items()}

    class Machine:
        family = families()['mpich']

    met = {figure.what: (figure.value, figure.met) for figure in bench.at_size(Machine, 1024, 'base', of)}
    assert met['MPICH, 1024 x 1024, base pages: library / datatype'] == (pytest.approx(3), False)
    assert met['MPICH, 1024 x 1024, base pages: library / contiguous'] == (pytest.approx(0.6), True)
    assert met['MPICH, 1024 x 1024, base pages: library / blocked by hand'] == (pytest.approx(3), True)
    assert all(figure.met for figure in bench.at_size(Machine, 512, 'huge', of))


@two_cpus
def test_the_bench_runs_the_program(mpi_programs, tmp_path, monkeypatch):
    mpi = any_mpi()
    place = tmp_path / MPIS[mpi]['name']
    place.symlink_to(mpi_programs(mpi).folder)
    rfm.script(tmp_path / 'cmake', f'echo "$@" >> {tmp_path}/built')      # another name of the folder would build it all again
    monkeypatch.setenv('PATH', f"{tmp_path}:{os.environ['PATH']}")

    class Machine:
        cpus, memory, place = CPUS, 2**30, tmp_path

    monkeypatch.setattr(bench_mpi.environments, 'found', lambda **how: [MPIS[mpi]])
    monkeypatch.setattr(bench, '_SIZES', (16, 2**14))       # the second has no room
    found = list(bench.figures(Machine, 1))
    assert len(found) == 2 * 8 and all(len(figure.samples) == 25 for figure in found)
    assert {figure.what.split(', ')[2].split(':')[0] for figure in found} == {'base pages', 'huge pages'}
    with pytest.raises(PlumblineError, match='failed: plumbline: --size 16384: '):
        bench_mpi.MpiMachine(Machine, MPIS[mpi]).run('datatype', '--size', 16384)
    assert (tmp_path / 'built').read_text().splitlines() == 2 * [
        f"-S {SOURCE / 'mpi'} -B {place} -DCMAKE_C_COMPILER={MPIS[mpi]['cc']}", f'--build {place} --parallel']


def test_a_bench_without_an_mpi_says_so(monkeypatch):
    class Machine:
        cpus = [0, 1]

    monkeypatch.setattr(bench_mpi.environments, 'found', lambda **how: [])
    with pytest.raises(PlumblineError, match='no MPI was found'):
        list(bench_mpi.machines(Machine))


# --- the check ---------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def checked(measuring_mpi, tmp_path_factory):
    '''One run of both checks, that of the TLB with small matrices: check -> its test case.'''
    mpi, folder = any_mpi(), tmp_path_factory.mktemp('checked')
    check = folder / 'small.py'
    check.write_text((rfm.REPOSITORY / 'checks/mpi/datatype_transpose.py').read_text().replace('SIZES = (1024, 2048)', 'SIZES = (128, 256)'))
    # By TCP, where the bytes of the messages are counted: those of what is packed without a message are none of them.
    cases = run_check(measuring_mpi(folder / 'place', mpi), mpi, check, 'datatype_transpose.*transport=tcp|datatype_tlb',
                      '-S', 'datatype_transpose.memory_bytes=200000')
    return {case['name'].split()[0]: case for case in cases}


@two_cpus
def test_the_check_measures_what_it_asks(checked):
    case = checked['datatype_transpose']
    rfm.assert_measured(case)
    left = case['plumbline']
    names = {metric['name'] for metric in left['metrics']}
    assert {'bandwidth.datatype.64.tcp', 'bandwidth.contiguous.64.tcp', 'of_contiguous.library.64.tcp', 'speedup.library.64.tcp',
            'speedup.blocked.64.tcp', 'speedup.pack_library.64.tcp', 'speedup.unpack_library.64.tcp', 'of_parts.library.64.tcp',
            'of_parts.datatype.64.tcp', 'latency.copy.64.tcp', 'latency.pack_hand.64.tcp', 'latency.contiguous.64.tcp'} <= names
    assert not {name for name in names if not name.endswith('.64.tcp')}
    assert {'all of 256 x 256', 'all of 4096 x 4096'} <= {skipped['metric'] for skipped in left['skipped']}
    _, (_, _, drawn) = figures.of_check('datatype_transpose', [rfm.detail_of('datatype_transpose', case)])
    assert drawn is not None
    value = {metric['name']: np.array(metric['samples']) for metric in left['metrics']}
    parts = value['latency.pack_datatype.64.tcp'] + value['latency.contiguous.64.tcp'] - value['latency.copy.64.tcp']
    whole = 64**2 * 8 / value['bandwidth.datatype.64.tcp']      # us of a message
    np.testing.assert_allclose(parts / whole, value['of_parts.datatype.64.tcp'], rtol=1e-6)


@two_cpus
def test_the_number_of_tlb_entries_is_compared_by_turns(checked):
    rfm.assert_measured(checked['datatype_tlb'])
    names = {metric['name'] for metric in checked['datatype_tlb']['plumbline']['metrics']}
    assert {'speedup.library.tlb32.128', 'speedup.library.tlb8192.256', 'speedup.pack_library.tlb128.256', 'bandwidth.library.128'} <= names
