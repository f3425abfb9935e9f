'''Intel MPI Benchmarks: real outputs read by hand, everything that can be wrong with an output, and the checks.'''

import os
import pathlib
import re
import runpy
import shutil
import types

import numpy as np
import pytest
from reframe.core.exceptions import EnvironError, ReframeError

import made_report
import rfm
from mpi_native import MPIS
from native import CPUS, needs, output_of
from plumbline import imb
from plumbline.errors import PlumblineError
from plumbline.imb import subjects
from plumbline.imb.check import _WHERE, ImbCheck
from plumbline.model import quantity
from plumbline.mpi import installed
from plumbline.mpi.families import families
from plumbline.report import figures

DATA = pathlib.Path(__file__).with_name('data') / 'imb'
#: What was asked for with -msglen, or would have given the same as -msglog.
LENGTHS = {'impi_pairs': [4, 16, 4], 'openmpi_mpi1': [0, 1, 2, 4, 8], 'openmpi_rma': [0, 4096, 8192], 'openmpi_nbc': [0, 4096, 8192]}
BROKEN = ['impi_invalid']
WHOLE = sorted(path.stem for path in DATA.glob('*.txt') if path.stem not in BROKEN)


def text_of(name):
    return (DATA / f'{name}.txt').read_text()


def read(name, text=None, **expected):
    return imb.outputs(text_of(name) if text is None else text, 'out', 1, sizes=LENGTHS.get(name, [0, 8, 16]), **expected)[0]


def complaint(name, text=None, **expected):
    '''The error of an output; one line.'''
    with pytest.raises(PlumblineError) as raised:
        read(name, text, **expected)
    assert '\n' not in str(raised.value)
    return str(raised.value)


def facts(output):
    '''All that was read, without where it stood.'''
    return [(table.shape, table.idle, [(row.bytes, row.values) for row in table.rows]) for table in output.tables]


def values(output, benchmark, processes, mode=None):
    '''The rows of a table, each the length, and the numbers in the order of the columns.'''
    table, = (table for table in output.tables if table.shape == imb.layout.Shape(benchmark, mode, processes))
    return [tuple(n for n in (row.bytes, *row.values.values()) if n is not None) for row in table.rows]


# --- read by hand ------------------------------------------------------------------------------------------------

def test_every_kind_of_table_of_mpi1():
    found = read('impi_mpi1')
    assert (found.program, found.version, len(found.tables), len(found.rows)) == ('IMB-MPI1', '2021.11', 14, 38)
    for banner in ('Intel(R) MPI Benchmarks 2019 Update 6', 'Intel (R) MPI Benchmarks 2018 Update 1'):
        assert facts(read('impi_mpi1', text_of('impi_mpi1').replace('Intel(R) MPI Benchmarks 2021.11', banner))) == facts(found)
    assert found.benchmarks == ['PingPong', 'PingPing', 'Sendrecv', 'Exchange', 'Allreduce', 'Bcast', 'Alltoall', 'Barrier']
    assert values(found, 'PingPong', 2) == [(0, 20, 3.34, 0.0), (8, 20, 2.26, 3.54), (16, 20, 2.86, 5.60)]
    assert values(found, 'Exchange', 4)[2] == (16, 20, 9.41, 11.08, 10.19, 5.77)
    assert values(found, 'Alltoall', 4)[1] == (8, 20, 7.84, 9.24, 8.38)
    assert values(found, 'Barrier', 4) == [(20, 0.55, 0.55, 0.55)]
    table = found.tables[3]
    assert list(table.columns) == ['bytes', 'repetitions', 't_min', 't_max', 't_avg', 'bandwidth']
    assert [table.idle for table in found.tables[:4]] == [2, 2, 2, 0]


def test_rma_in_both_modes_nbc_with_overlap_an_odd_number_of_processes_and_lengths_once_more():
    found = read('impi_rma')
    assert len(found.tables) == 26 and len(found.benchmarks) == 17
    assert values(found, 'Unidir_put', 2, 'NON-AGGREGATE')[1] == (8, 20, 3.54, 2.26)
    assert values(found, 'Unidir_put', 2, 'AGGREGATE')[1] == (8, 20, 4.35, 1.84)
    assert values(found, 'Compare_and_swap', 2, 'AGGREGATE') == [(4, 20, 0.21, 19.06)]
    assert values(found, 'Exchange_get', 2)[2] == (16, 20, 0.55, 0.69, 0.62)
    assert found.tables[-1].rows[1].values == {'repetitions': 20, 't_pure': 1.28, 't_ovrl': 2.19}
    assert {table.shape.mode for table in read('openmpi_rma').tables} == {None, 'AGGREGATE'}
    found = read('impi_nbc')
    assert len(found.tables) == 13
    assert found.tables[0].rows[1].values == {
        'repetitions': 20, 't_ovrl': 2.63, 't_pure': 1.70, 't_CPU': 1.32, 'overlap': 23.23}
    assert values(found, 'Ibarrier', 2) == [(20, 9.32, 3.46, 2.21, 0.0)]
    other = read('openmpi_nbc')
    assert values(other, 'Iallreduce_pure', 2)[1] == (4096, 30, 4.89, 5.01, 4.95)
    assert values(other, 'Ibarrier_pure', 2) == [(30, 0.37, 0.37, 0.37)]
    assert values(read('openmpi_mpi1'), 'Exchange', 3)[1] == (1, 30, 18532.54, 18855.64, 18659.28, 0.0)
    assert [row[0] for row in values(read('impi_pairs'), 'Sendrecv', 2)] == [4, 16, 4]


def test_everything_is_reported_once_in_the_words_asked_for():
    assert read('impi_pairs', benchmarks=['pingpong', 'PingPing', 'sendrecv', 'Exchange'], processes=2,
                arguments=text_of('impi_pairs').split('# IMB-MPI1 ')[1].split('\n')[0].split()).rows
    assert 'were asked for' in complaint('impi_pairs', benchmarks=['PingPong'])
    assert 'not with the arguments' in complaint('impi_pairs', arguments=['PingPong'])
    assert '8' in complaint('impi_mpi1', processes=8)


# --- an output that is not whole ---------------------------------------------------------------------------------

@pytest.mark.slow
@pytest.mark.parametrize('name', WHOLE)
def test_truncated_anywhere(name):
    '''Cut behind any line, and in the middle of any: an error, or nothing but blank lines was lost.'''
    text, whole = text_of(name), facts(read(name))
    end = len(text.rstrip())
    cuts = {at for at, character in enumerate(text) if character == '\n'}
    for at in sorted(cuts | {cut - 3 for cut in cuts if cut > 3} | {0}):
        if at >= end:
            assert facts(read(name, text[:at])) == whole
        else:
            complaint(name, text[:at])


def _without(lines, at):
    return lines[:at] + lines[at + 1:]


def _twice(lines, at):
    return lines[:at] + [lines[at]] + lines[at:]


def _glued(lines, at):
    return lines[:at] + [''.join(lines[at:at + 2])] + lines[at + 2:]


def _split(lines, at):
    middle = len(lines[at]) // 2
    return lines[:at] + [lines[at][:middle], lines[at][middle:]] + lines[at + 1:]


def _foreign(lines, at):
    return [*lines[:at], 'libfabric: something to tell', *lines[at:]]


def _changed_over(lines, at):
    return lines[:at] + lines[at:at + 2][::-1] + lines[at + 2:]


@pytest.mark.slow
@pytest.mark.parametrize('change', [_without, _twice, _glued, _split, _foreign, _changed_over])
@pytest.mark.parametrize('name', WHOLE)
def test_a_line_is_lost_doubled_glued_or_between(name, change):
    '''Whatever happens to a line: an error, or the same numbers.'''
    lines, whole = text_of(name).split('\n'), facts(read(name))
    for at in range(len(lines)):
        text = '\n'.join(change(lines, at))
        try:
            found = facts(read(name, text))
        except PlumblineError as error:
            assert '\n' not in str(error)
        else:
            assert found == whole, f'line {at + 1}: {lines[at]!r}'


@pytest.mark.slow
@pytest.mark.parametrize('name', WHOLE)
def test_a_garbled_number(name):
    '''A letter, a point or a minus anywhere in the first row or the last, a blank within a number: always an error.'''
    lines = text_of(name).split('\n')
    rows = [number for number, line in enumerate(lines) if re.fullmatch(r'[ .\d]*\d', line)]
    for at in rows[0], rows[-1]:
        for column, character in enumerate(lines[at]):
            within = ' ' not in lines[at][column - 1:column + 2] and 0 < column < len(lines[at]) - 1
            for other in 'x.- ' if within else 'x.-':
                if other != character:
                    changed = lines[at][:column] + other + lines[at][column + 1:]
                    assert f'line {at + 1}:' in complaint(name, '\n'.join([*lines[:at], changed, *lines[at + 1:]]))


def altered(name, old, new):
    text = text_of(name)
    assert text.count(old) >= 1, old
    return complaint(name, text.replace(old, new, 1))


@pytest.mark.parametrize('name, old, new, parts', [
    ('impi_mpi1', 't[usec]', 't[msec]', ['line 42', 'PingPong', 'columns', 't[msec]']),
    ('impi_mpi1', '   Mbytes/sec', '', ['PingPong', 'expected the columns']),
    ('impi_nbc', 'overlap[%]', 'overlap[1]', ['Ibcast', 'expected the columns', 'overlap[%]']),
    ('impi_mpi1', '           16           20         2.86         5.60\n', '', ['line 45', 'PingPong', 'the row of 16 bytes']),
    ('impi_mpi1', '  2.26         3.54', '  2.26         4.54', ['line 44', 'PingPong', '4.54 Mbytes/sec do not follow']),
    ('openmpi_rma', '2006.83', '1913.86', ['Unidir_put', '1913.86 Mbytes/sec do not follow']),     # 2**20 bytes
    ('impi_mpi1', '9.41        11.08        10.19', '9.41        11.08        11.19', ['Exchange', 'not in this order']),
    ('impi_mpi1', '           20         0.44', '            0         0.44', ['Barrier', 'nothing was repeated']),
    ('impi_mpi1', '           20         0.44', '         7020         0.44', ['Barrier', '7020 repetitions', 'at most 100']),
    ('impi_nbc', '        23.23', '       123.23', ['Ibcast', 'an overlap of 123.23 %']),
    ('impi_mpi1', '         3.34', '          nan', ['PingPong', "t is 'nan'"]),
    ('impi_mpi1', '         3.34', '          inf', ['PingPong', "t is 'inf'"]),
    ('impi_mpi1', '# Alltoall\n', '# Alltomany\n', ['line 34', 'Alltomany', 'not known']),
    ('impi_mpi1', '# Bcast\n', '', ['Bcast', 'not in the list']),
    ('impi_mpi1', '# Barrier\n', '# Barrier\n# Reduce\n', ['ends without the table Reduce, 2 processes']),
    ('impi_mpi1', '# ( 2 additional', '# ( 1 additional', ['PingPong', '1 processes wait']),
    ('impi_mpi1', 'Sendrecv \n# #processes = 4', 'Sendrecv \n# #processes = 3', ['expected the table Sendrecv, 4 processes']),
    ('impi_rma', '#    MODE: AGGREGATE', '#    MODE: NON-AGGREGATE', ['expected the table Unidir_put, 2 processes, AGGREGATE']),
    ('impi_rma', '#    MODE: AGGREGATE', '#    MODE: SOME', ['Unidir_put', 'a mode']),
    ('impi_mpi1', '           20         2.86         5.60', ' time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; use "-time X"',
     ['line 45', 'PingPong', 'the row of 16 bytes', 'time-out.; Time limit']),
    ('impi_mpi1', '           20         2.86         5.60', ' out-of-mem.; needed X=   0.017 GB; use flag "-mem X"', ['PingPong', '16 out-of-mem.; needed']),
    ('impi_mpi1', 'MPI-1 part', 'MPI-7 part', ['line 2', 'MPI-7']),
    ('impi_mpi1', '# All processes entering MPI_Finalize', '', ['ends here']),
    ('impi_mpi1', '-iter 20', '-iter 2x', ['line 15', "-iter: '2x'"]),
])
def test_what_is_wrong_is_said(name, old, new, parts):
    said = altered(name, old, new)
    assert said.startswith('out') and all(part in said for part in parts), said


@pytest.mark.parametrize('option, most', [('20', 100), ('20,40', 100), ('300,40', 300), ('20,40,30', 30), ('20,40,500', 500)])
def test_how_often_imb_repeats_at_most(option, most):
    assert imb.layout.Asked(['IMB-RMA', '-iter', option], []).most_repetitions == most


def test_several_runs_in_one_text():
    pairs, job = text_of('impi_pairs'), 'echo of a job\n'
    found = imb.outputs(job + pairs + job + pairs + job, 'out', 2, sizes=[4, 16, 4])
    assert facts(found[0]) == facts(found[1]) == facts(read('impi_pairs'))
    with pytest.raises(PlumblineError, match='2 outputs of IMB instead of 3'):
        imb.outputs(pairs + pairs, 'out', 3, sizes=[4, 16, 4])
    with pytest.raises(PlumblineError, match='0 outputs of IMB instead of one at least'):
        imb.outputs(job)
    headless = pairs[pairs.index('# Date'):]
    with pytest.raises(PlumblineError, match='belongs to no run'):
        imb.outputs(pairs + headless, 'out', 1, sizes=[4, 16, 4])
    with pytest.raises(PlumblineError, match='Exchange: .*ends here'):
        imb.outputs(pairs[:-60] + pairs, 'out', 2, sizes=[4, 16, 4])
    assert 'IMB says: Benchmark PingPong invalid for 1 processes' in complaint('impi_invalid')


# --- samples -----------------------------------------------------------------------------------------------------

def test_runs_are_samples_if_they_are_enough_of_a_program_that_is_known():
    text = text_of('impi_mpi1')
    other = text.replace('         2.26         3.54', '         2.00         4.00')
    cases = {(case.shape.benchmark, case.shape.processes, case.bytes): case
             for case in imb.samples([read('impi_mpi1'), read('impi_mpi1', other)])}
    assert len(cases) == 38
    case = cases['PingPong', 2, 8]
    np.testing.assert_array_equal(case.values['t'], [2.26, 2.00])
    np.testing.assert_allclose(case.seconds, [8 / 3.54e6, 2e-6])             # 3.54 has more digits than 2.26
    np.testing.assert_allclose(cases['PingPong', 2, 0].seconds, [3.34e-6] * 2)
    np.testing.assert_allclose(cases['Allreduce', 4, 8].seconds, [0.90e-6] * 2)
    np.testing.assert_allclose(cases['Barrier', 2, None].seconds, [0.45e-6] * 2)
    with pytest.raises(PlumblineError, match='run 2: its tables are not those of run 1'):
        imb.samples([read('impi_mpi1'), read('openmpi_mpi1')])
    assert {name: len(suite) for name, suite in imb.layout.SUITES.items()} == {'IMB-MPI1': 23, 'IMB-RMA': 19, 'IMB-NBC': 26}
    with pytest.raises(PlumblineError, match='9 runs of IMB are as many samples: 10 at least are needed'):
        ImbCheck.start(types.SimpleNamespace(runs=9), [])


@pytest.mark.parametrize('length, text', [(0, '0B'), (4, '4B'), (1024, '1KiB'), (1025, '1025B'), (2**22, '4MiB'), (3 * 2**20, '3MiB'), (2**30, '1024MiB')])
def test_sizes_in_names(length, text):
    assert (quantity.short_size(length), quantity.bytes_of(text)) == (text, length)
    assert subjects.read(f'Unidir_put.aggregate.{text}.shm') == ('Unidir_put, aggregate', length)
    assert subjects.read('Barrier.64.shm') == subjects.read('Barrier.shm') == ('Barrier', None)
    assert subjects.read(f'Allreduce.64.{text}.shm') == ('Allreduce', length)


def test_collectives_of_fewer_processes_have_another_name():
    def names(processes):
        return [subjects.subject(imb.Case(imb.layout.Shape(benchmark, mode, processes), 4096, {}), 'shm')
                for benchmark, mode in (('Allreduce', None), ('Ibcast', None), ('One_put_all', None), ('PingPong', None), ('Sendrecv', None))]
    assert names(64)[:3] == ['Allreduce.64.4KiB.shm', 'Ibcast.64.4KiB.shm', 'One_put_all.64.4KiB.shm'] and not {*names(64)} & {*names(32)}
    assert names(2)[0] == 'Allreduce.2.4KiB.shm' and names(2)[3:] == ['PingPong.4KiB.shm', 'Sendrecv.4KiB.shm']
    with pytest.raises(ReframeError, match='SimpleNamespace.nodes=2: the names of its metrics are of one node'):
        ImbCheck.find_imb(types.SimpleNamespace(nodes=2))


# --- where it is found -------------------------------------------------------------------------------------------

def an_environment(path='', **extras):
    return types.SimpleNamespace(name='gnu-some', extras=extras, env_vars={'PATH': f'{path}:$PATH'})


def test_imb_is_found_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', '/nowhere')
    for folder in ('extra', 'path'):
        (tmp_path / folder).mkdir()
        shutil.copy('/bin/true', tmp_path / folder / 'IMB-NBC')
    family = families()['openmpi']
    assert installed.find(['IMB-NBC'], an_environment(tmp_path / 'path'), family, **_WHERE) == str(tmp_path / 'path/IMB-NBC')
    assert installed.find(['IMB-NBC'], an_environment(tmp_path / 'path', imb=tmp_path / 'extra'), family, **_WHERE) == str(tmp_path / 'extra/IMB-NBC')
    with pytest.raises(PlumblineError) as raised:
        installed.find(['IMB-RMA'], an_environment(tmp_path / 'path', imb=tmp_path / 'extra'), family, **_WHERE)
    assert all(part in str(raised.value) for part in ('IMB-RMA is not in', 'Open MPI', 'intel-mpi-benchmarks', "'imb'", 'gnu-some'))
    with pytest.raises(PlumblineError, match='not in the PATH of gnu-some'):
        installed.find(['IMB-RMA'], an_environment(tmp_path / 'path'), family, **_WHERE)


def test_imb_of_a_module_is_found(tmp_path, monkeypatch):
    '''The module puts it on the PATH; afterwards nothing of it is left.'''
    shutil.copy('/bin/true', tmp_path / 'IMB-NBC')
    environment = an_environment()
    environment.modules = ['imb/2021']
    monkeypatch.setattr(installed, 'loadenv', lambda _: monkeypatch.setenv('PATH', f"{tmp_path}:{os.environ['PATH']}"))
    before = os.environ['PATH']
    assert installed.find(['IMB-NBC'], environment, families()['openmpi'], **_WHERE) == str(tmp_path / 'IMB-NBC')
    assert os.environ['PATH'] == before

    def broken(_):
        raise EnvironError('Unable to locate a modulefile')
    monkeypatch.setattr(installed, 'loadenv', broken)
    with pytest.raises(PlumblineError, match='the modules of gnu-some cannot be loaded here: Unable to locate'):
        installed.find(['IMB-NBC'], environment, families()['openmpi'], **_WHERE)


@pytest.mark.parametrize('library, good, bad', [('libmpi.so.40', 'openmpi', 'mpich'), ('libmpi.so.12', 'impi', 'openmpi'),
                                                ('libmpich.so.12', 'mpich', 'openmpi')])
def test_imb_of_another_mpi_is_not_taken(tmp_path, library, good, bad):
    needs('cc', 'readelf')
    output_of('cc', '-shared', '-o', tmp_path / library, '-x', 'c', '/dev/null', f'-Wl,-soname,{library}')
    (tmp_path / 'main.c').write_text('int main(void) { return 0; }')
    output_of('cc', tmp_path / 'main.c', '-Wl,--no-as-needed', tmp_path / library, '-o', tmp_path / 'IMB-MPI1')
    assert installed.find(['IMB-MPI1'], an_environment(imb=tmp_path), families()[good], **_WHERE)
    with pytest.raises(PlumblineError, match=f'was not built with {families()[bad].title}'):
        installed.find(['IMB-MPI1'], an_environment(imb=tmp_path), families()[bad], **_WHERE)


# --- figures -----------------------------------------------------------------------------------------------------

def test_figures_by_mode_and_tables_of_what_has_no_size():
    rows = [made_report.metric(f'bandwidth.{name}.{mode}.{size}.tcp', 10.0)
            for name in ('Unidir_put', 'Unidir_get', 'Bidir_put', 'Bidir_get', 'Put_local', 'Get_local', 'Accumulate', 'Get_accumulate')
            for mode in ('aggregate', 'non-aggregate') for size in ('4B', '1KiB')]
    rows += [made_report.metric('latency.Fetch_and_op.aggregate.tcp', 0.5, 'us'), made_report.metric('latency.Ibarrier.tcp', 3.0, 'us'),
             made_report.metric('overlap.Ibcast.4B.tcp', 0.25, '1'), made_report.metric('overlap.Ibarrier.tcp', 0.0, '1')]
    detail = {**made_report.result(*rows, ranks=2, transport='tcp'), 'check': 'imb_rma'}
    drawn = {title: figure for title, _, figure in figures.of_check('imb_rma', [detail])}
    assert list(drawn) == ['Bandwidth by IMB (1), 2 processes, tcp', 'Bandwidth by IMB (2), 2 processes, tcp',
                           'Latency by IMB, 2 processes, tcp', 'Overlap by IMB, 2 processes, tcp']
    first, second, latency, overlap = drawn.values()
    assert {trace.name for trace in first.data if trace.name} == {row['subject'].split('.')[0] + ', non-aggregate' for row in rows[:32]}
    assert all(trace.name.endswith(', aggregate') for trace in second.data if trace.name)
    assert latency.rows == [['Fetch_and_op, aggregate', '500 ns'], ['Ibarrier', '3.00 us']]
    assert overlap.header == ('benchmark', '4 B', 'without size')
    assert overlap.rows == [['Ibcast', '25.0 %', ''], ['Ibarrier', '', '0.0 %']]
    (title, caption, figure), = figures.of_check('imb_rma', [{**detail, 'metrics': []}])
    assert figure is None and caption == 'Not drawn: nothing was measured.'


# --- the checks --------------------------------------------------------------------------------------------------

TINY = ['-r', '--exec-policy=serial', '-n', 'imb_mpi1.*over=two.shm', '-S', 'imb_mpi1.lengths=4,65536',
        '-S', 'imb_mpi1.runs=10', '-p']


@pytest.fixture(scope='module')
def with_imb():
    '''The family of MPI for which IMB is there.'''
    for mpi, environment in MPIS.items():
        if environment['extras'].get('imb'):
            return mpi
    pytest.skip('IMB is not there for any MPI: install the packages impi-rt and impi-devel')


@pytest.fixture
def imb_place(measuring_mpi, with_imb, tmp_path):
    if len(CPUS) < 2:
        pytest.skip('only one CPU may be used here')
    return measuring_mpi(tmp_path / 'place', with_imb)


def test_the_check_runs_imb(imb_place, with_imb):
    done = imb_place.reframe(*TINY, f'gnu-{with_imb}', '-S', 'imb_mpi1.repetitions=20,1', checks=rfm.REPOSITORY / 'checks/mpi/imb.py')
    assert done.report, done.out
    case, = done.cases().values()
    rfm.assert_measured(case)
    left = case['plumbline']
    pairs = ('PingPong', 'PingPing', 'Sendrecv', 'Exchange')
    assert {metric['name'] for metric in left['metrics']} == {
        *(f'latency.{name}.shm' for name in pairs),
        *(f'bandwidth.{name}.{size}.shm' for name in pairs for size in ('4B', '64KiB'))}
    assert all(metric['n'] == 10 for metric in left['metrics'])
    assert (left['ranks'], left['transport']) == (2, 'shm')
    assert 'IMB-MPI1 -npmin 2 -msglen lengths' in left['command']
    drawn = figures.of_check('imb_mpi1', [rfm.detail_of('imb_mpi1', case)])
    assert [title.split(' by IMB')[0] for title, _, _ in drawn] == ['Bandwidth', 'Latency']
    assert all(figure is not None for _, _, figure in drawn)


#: Stands in for IMB: only one of its processes prints.
FAKE = '''
[ "${{PMI_RANK:-${{OMPI_COMM_WORLD_RANK:-0}}}}" = 0 ] || exit 0
sed "s|^# IMB-MPI1 .*|# IMB-MPI1 $*|" {data} | head -n {lines}
'''

#: Site settings in which every MPI has that one.
CONFIG = '''
import runpy
site_configuration = runpy.run_path({shipped!r})['site_configuration']
for environment in site_configuration['environments']:
    if 'mpi' in environment['features']:
        environment['extras']['imb'] = {folder!r}
'''


def faked(place, folder, data, lines=999):
    '''Let every MPI have that one; where ``data`` is None, it is not there.'''
    fake, config = folder / 'fake/IMB-MPI1', folder / 'config.py'
    fake.parent.mkdir()
    if data:
        rfm.script(fake, FAKE.format(data=data, lines=lines))
    config.write_text(CONFIG.format(shipped=str(place.config), folder=str(fake.parent)))
    place.config = config


def test_each_run_has_its_own_tables(imb_place, with_imb, tmp_path):
    once = re.sub(r'(\n +16 .*)\n +4 .*', r'\1', text_of('impi_pairs'))      # each length
    for name, row in (('slow', '0.26        15.16'), ('fast', '0.13        30.32')):
        (tmp_path / name).write_text(once.replace('0.13        30.32', row))
    (tmp_path / 'portable.yaml').write_text('imb_mpi1:\n  $index: [$partition]\n  .*:\n    latency.PingPong.shm: [0.13, -0.2, 0.2, us]\n')
    faked(imb_place, tmp_path, f'$(case $PWD in *_retry*) echo {tmp_path}/fast ;; *) echo {tmp_path}/slow ;; esac)')
    done = imb_place.reframe(*TINY, f'gnu-{with_imb}', '--max-retries=1', '-S', 'imb_mpi1.lengths=4,16', checks=rfm.REPOSITORY / 'checks/mpi/imb.py',
                             PLUMBLINE_REFERENCES=str(tmp_path))
    case, = done.cases().values()
    rfm.assert_measured(case)
    metric, = (metric for metric in case['plumbline']['metrics'] if metric['name'] == 'latency.PingPong.shm')
    slow, fast = 4 / 15.16, 4 / 30.32
    first = sum(sample == pytest.approx(slow) for sample in metric['samples'])
    second = len(metric['samples']) - first
    assert metric['samples'] == pytest.approx([slow] * first + [fast] * second)
    assert first == second == 10 or (metric['set_aside'] and max(first, second) <= 10)     # the machine changed its state meanwhile


@pytest.mark.parametrize('lines, lengths, reason', [(46, '4,16,4', 'PingPing: '), (0, '4', 'not in')])
def test_a_run_that_is_not_whole_fails(imb_place, with_imb, tmp_path, lines, lengths, reason):
    faked(imb_place, tmp_path, lines and DATA / 'impi_pairs.txt', lines)
    done = imb_place.reframe(*TINY, f'gnu-{with_imb}', '-S', f'imb_mpi1.lengths={lengths}', checks=rfm.REPOSITORY / 'checks/mpi/imb.py')
    case, = done.cases().values()
    if lines:
        assert case['result'] == 'fail' and case['fail_phase'] != 'performance', case['fail_reason']
        assert reason in case['fail_reason'] and 'Traceback' not in done.out, case['fail_reason']
    else:
        assert case['result'] == 'skip' and reason in done.out


@pytest.mark.parametrize('ranks, transport, cpus, told', [(2, 'shm', 2, '1000,40'), ('all', 'shm', 64, '200,10'), ('all', 'tcp', 128, '200,2'), ('all', 'shm', 400, '200,1')])
def test_what_many_send_to_all_is_repeated_less_often(ranks, transport, cpus, told):
    check = types.SimpleNamespace(repetitions='', ranks=ranks, transport=transport, cpus=range(cpus))
    assert runpy.run_path(str(rfm.REPOSITORY / 'checks/mpi/imb.py'))['imb_mpi1'].iterations(check) == told
