'''Benchmarks known by name: real outputs read by hand, what can be wrong with each, and where they are found.'''

import pathlib
import re
import runpy
import types

import pytest
from reframe.core.exceptions import ReframeError, SanityError

import rfm
from plumbline.errors import PlumblineError
from plumbline.model import result
from plumbline.mpi import installed
from plumbline.mpi.families import families
from plumbline.named import fio, hpcc, hpcg, hpl, ior, npb, osu, stream
from plumbline.named.check import NamedCheck, NamedMpiCheck, OnFileSystem
from plumbline.rfm import file_systems

DATA = pathlib.Path(__file__).with_name('data') / 'named'

_HPL = {'n': 3520, 'nb': 80, 'p': 1, 'q': 2}

#: Name -> (file, reader, what was asked for): outputs of STREAM 5.10, HPL 2.3, HPCC 1.5.0 (with HPL 2.0), HPCG 3.1, NPB 3.4.2, OSU 5.5, IOR 4.1 and fio 3.33.
READ = {
    'stream': ('stream.txt', stream.figures, {'threads': 2, 'caches': 2**25}),
    'hpl': ('hpl.txt', hpl.figures, {'n': 1920, 'nb': 192, 'p': 1, 'q': 2}),
    'hpcc': ('hpcc.txt', hpcc.figures, _HPL),
    'hpcg': ('hpcg.txt', hpcg.figures, {'n': 16, 'processes': 2}),
    'cg': ('npb_cg_2.txt', npb.figures, {'name': 'cg', 'letter': 'S', 'processes': 2}),
    'is': ('npb_is_S.txt', npb.figures, {'name': 'is', 'letter': 'S', 'processes': 1}),
    'osu_latency': ('osu_latency.txt', osu.figures, {'name': 'osu_latency', 'most': 1024}),
    'osu_bw': ('osu_bw.txt', osu.figures, {'name': 'osu_bw', 'most': 1024}),
    'osu_allreduce': ('osu_allreduce.txt', osu.figures, {'name': 'osu_allreduce', 'most': 1024}),
    'ior': ('ior.json', ior.figures, {'processes': 2, 'block': 2**23, 'transfer': 2**20}),
    'mdtest': ('mdtest.txt', ior.of_files, {'processes': 2, 'files': 200}),
    'fio': ('fio.json', fio.figures, {'size': 2**24}),
}


def text_of(name):
    return (DATA / READ[name][0]).read_text()


def read(name, text=None, /, **asked):
    _, reader, usual = READ[name]
    return {f'{figure.metric}.{figure.subject}': (figure.value, figure.unit)
            for figure in reader(text_of(name) if text is None else text, 'out', **{**usual, **asked})}


def complaint(name, text=None, /, **asked):
    '''The error of an output; one line.'''
    with pytest.raises(PlumblineError) as raised:
        read(name, text, **asked)
    assert '\n' not in str(raised.value)
    return str(raised.value)


# --- read by hand -----------------------------------------------------------------------------------------------------

def test_what_each_program_measured():
    assert read('stream') == {'bandwidth.copy': (12508.3, 'MB/s'), 'bandwidth.scale': (10895.3, 'MB/s'), 'bandwidth.add': (9319.2, 'MB/s'),
                              'bandwidth.triad': (8980.3, 'MB/s')}
    assert read('hpl') == {'flops.hpl': (4.8264, 'Gflop/s')}
    found = read('hpcc')
    assert len(found) == 11 and found['flops.hpl'] == (13.59, 'Gflop/s') and found['figure_of_merit.million_updates'] == (pytest.approx(1.02686), '1')
    assert found['latency.random_ring'] == (0.286506, 'us') and found['bandwidth.pingpong_worst'] == (0.196296, 'GB/s')
    assert read('hpcg') == {'flops.hpcg': (0.223455, 'Gflop/s')}
    assert read('cg') == {'flops.class_S': (1311.25, 'Mflop/s')}
    assert read('is') == {'figure_of_merit.class_S': (126.97, '1')}     # ranked keys are no floating-point operations
    assert read('osu_latency')['latency.osu_latency.1KiB'] == (0.75, 'us') and len(read('osu_latency')) == 6
    assert read('osu_bw')['bandwidth.osu_bw.64B'] == (160.4, 'MB/s')
    assert list(read('osu_allreduce')) == [f'latency.osu_allreduce.{size}' for size in ('4B', '16B', '64B', '256B', '1KiB')]
    assert read('ior') == {'bandwidth.write': (123.2977, 'MiB/s'), 'bandwidth.read': (30587.4494, 'MiB/s')}
    assert read('mdtest')['figure_of_merit.create_per_s'] == (100751.958, '1')
    assert read('mdtest', re.sub(r'^(   (?:File|Tree) \w+ +)(?= \d)', r'\1:', text_of('mdtest'), flags=re.MULTILINE)) == read('mdtest')     # version 3
    assert read('fio')['bandwidth.write'][0] == pytest.approx(2**24 / 0.015) and read('fio')['figure_of_merit.randread_iops'][0] == pytest.approx(4096 / 0.062)


# --- what can be wrong ------------------------------------------------------------------------------------------------

WRONG = [
    ('stream', ('Solution Validates', 'Failed Validation on array a[], AvgRelAbsErr > epsilon'), 'Failed Validation on array a'),
    ('stream', ('Revision: 5.10', 'Revision: 5.9'), r'5\.10'),
    ('stream', ('Triad:           8980.3', 'Triad:           9980.3'), 'the rate of Triad, MB/s, is 9980.3, bytes over the least time say 8980'),
    ('stream', ('0.114398', '0.224398'), 'Triad takes 0.1069 s at least, 0.224398 on average, 0.124224 at most: the output contradicts itself'),
    ('mdtest', ('100751.958     100751.958     100751.958', '100751.958     100751.958     200751.958'), 'File creation: .* contradicts itself'),
    ('stream', ('0.116963', '-nan'), "Add, mean is '-nan', not a positive number"),
    ('stream', ('counted = 2', 'counted = 1'), 'the number of threads is 1, and 2 was asked for'),
    ('stream', ('Number of Threads counted = 2\n', ''), 'compiled with -fopenmp'),
    ('hpl', ('...... PASSED', '...... FAILED'), 'the residual is 3.62226342e-03, FAILED: the solution is wrong'),
    ('hpl', ('3.62226342e-03', '17.5'), 'the residual is 17.5'),
    ('hpl', ('3.62226342e-03', 'nan'), "the residual is 'nan'"),
    ('hpl', ('1 tests completed and passed', '0 tests completed and passed'), '0 tests completed and passed'),
    ('hpl', ('4.8264e+00', '5.8264e+00'), 'the rate, Gflop/s, is 5.8264, N and the time say 4.8'),
    ('hpl', ('End of Tests.', ''), 'the line "End of Tests." is missing; was the output cut off'),
    ('hpcc', ('Success=1', 'Success=0'), 'Success is 0, not 1: the result is wrong'),
    ('hpcc', ('MPIRandomAccess_ErrorsFraction=0', 'MPIRandomAccess_ErrorsFraction=0.02'), 'not between 0 and 0.01: the result is wrong'),
    ('hpcc', ('MPIFFT_maxErr=1.48122e-15', 'MPIFFT_maxErr=nan'), 'MPIFFT_maxErr is nan, not between'),
    ('hpcc', ('StarDGEMM_Gflops=17.4897\n', ''), 'StarDGEMM_Gflops is missing'),
    ('hpcc', ('HPL_Tflops=0.0135862', 'HPL_Tflops=0.0235862'), 'contradicts itself'),
    ('hpcg', ('HPCG result is VALID', 'HPCG result is INVALID'), 'HPCG result is INVALID'),
    ('hpcg', ('Spectral Convergence Tests::Result=PASSED', 'Spectral Convergence Tests::Result=FAILED'), 'Spectral Convergence Tests: FAILED'),
    ('hpcg', ('/epsilon::Result=PASSED', '/epsilon::Result=FAILED'), 'Departure from Symmetry: FAILED'),
    ('hpcg', ('rating of=0.223455', 'rating of=0.323455'), 'contradicts itself'),
    ('cg', ('Verification    =               SUCCESSFUL', 'Verification    =             UNSUCCESSFUL'), 'verification UNSUCCESSFUL: the result is wrong'),
    ('cg', (' Active processes=                        2', ' Active processes=                        1'), '"Active processes" is 1, and 2 was asked'),
    ('cg', ('floating point', 'sheep counted'), "the operation type 'sheep counted' is not one of"),
    ('osu_latency', ('256                     0.44\n', ''), "expected the row of 256 bytes with one number of two decimals, found '512"),
    ('osu_latency', ('1024                    0.75\n', ''), '10 rows instead of 11'),
    ('osu_latency', ('0.44', '0.00'), "the row of 256 bytes is '0.00', not a positive number"),
    ('osu_bw', ('Bandwidth (MB/s)', 'Bandwidth (GB/s)'), 'the heading of the column, MB/s, is missing'),
    ('ior', ('"xsizeMiB": 16.0000', '"xsizeMiB": 8.0000'), 'MiB is 8.0, and 16.0 was asked for'),
    ('ior', ('"bwMeanMIB": 123.2977', '"bwMeanMIB": 223.2977'), 'contradicts itself'),
    ('mdtest', ('2 tasks, 400 files', '2 tasks, 200 files'), 'the number of tasks and files'),
    ('mdtest', ('-- finished at', ''), 'the line "-- finished at" is missing'),
    ('fio', ('"error": 0', '"error": 5'), 'write ended with error 5'),
    ('fio', ('"total_ios": 16', '"total_ios": 15'), 'write moved 16777216 bytes by 15 operations'),
]


@pytest.mark.parametrize('name, change, expected', WRONG, ids=[f'{name}: {change[1] or "without " + change[0].strip()}' for name, change, _ in WRONG])
def test_a_line_that_is_wrong_is_an_error_and_no_number(name, change, expected):
    text = text_of(name)
    assert change[0] in text
    assert re.search(expected, complaint(name, text.replace(*change, 1)))


@pytest.mark.parametrize('name', READ)
def test_an_output_that_is_cut_off_anywhere_is_never_another_number(name):
    '''Cut where its last figures are and before; only behind its last line nothing is lost.'''
    text, whole = text_of(name).rstrip(), read(name)
    lines = text.splitlines(keepends=True)
    for count in range(len(lines)):
        try:
            assert read(name, ''.join(lines[:count])) == whole
        except PlumblineError:
            continue
    assert complaint(name, ''.join(lines[:len(lines) // 4])) and complaint(name, '')


@pytest.mark.parametrize('name', READ)
def test_two_outputs_at_once_are_an_error(name):
    assert complaint(name, text_of(name) * 2)


@pytest.mark.parametrize('name, asked, expected', [
    ('stream', {'caches': 2**27}, '305.2 MiB, and the last-level caches 128 MiB: it measures caches; compile it with -DSTREAM_ARRAY_SIZE=67108864'),
    ('hpcc', {'nb': 64}, r'HPL_NB \(HPCC takes sizes of its own where it does not like hpccinf.txt\) is 80, and 64 was asked for'),
    ('hpl', {'n': 4000}, r'the problem \(N, NB, P, Q\) is \(1920, 192, 1, 2\), and \(4000, 192, 1, 2\) was asked for'),
    ('hpcg', {'processes': 4}, 'Distributed Processes is 2, and 4 was asked for'),
    ('cg', {'letter': 'A'}, 'the class is S, and A was asked for'), ('is', {'name': 'ep'}, 'the line "EP Benchmark Completed" is missing'),
    ('ior', {'processes': 4}, 'what write does'), ('fio', {'size': 2**23}, 'of 8388608 bytes'),
    ('fio', {'size': 2**25}, 'write moved 16777216 bytes by 16 operations .* of 33554432 bytes'), ('osu_bw', {'most': 2048}, '11 rows instead of 12')])
def test_another_problem_than_was_asked_for_is_an_error(name, asked, expected):
    assert re.search(expected, complaint(name, **asked))


def test_npb_of_another_mpi_is_told_from_what_it_prints():
    '''MPICH's mpirun has started two processes of a program that was built with Open MPI.'''
    assert 'it ran 2 times as one process, not once as 2: it was built with another MPI' in complaint('cg', (DATA / 'npb_cg_other_mpi.txt').read_text())


@pytest.mark.parametrize('name, change, runs, left, wrong', [
    ('hpl', ('...... PASSED', '...... FAILED'), 'torn wrong', '', 'HPL, run 2: the residual is 3.62226342e-03, FAILED: '),
    ('hpl', ('...... PASSED', '...... FAILED'), 'torn right torn', '', None),
    ('hpcc', ('...... PASSED', '...... FAILED'), 'right', 'wrong', 'HPC Challenge, hpccoutf.txt: the residual is 0.0027348, FAILED: '),
    ('hpcc', ('...... PASSED', '...... FAILED'), 'right', 'right', None),
    ('stream', ('Solution Validates', 'Failed Validation on array a[]'), 'right wrong torn', '', r'STREAM, run 2: Failed Validation on array a\[\]'),
    ('hpcg', ('HPCG result is VALID', 'HPCG result is INVALID'), 'wrong torn', '', 'HPCG, run 1: HPCG result is INVALID'),
    ('cg', ('        SUCCESSFUL', '      UNSUCCESSFUL'), 'wrong', '', 'NAS Parallel Benchmarks, run 1: verification UNSUCCESSFUL')])
def test_a_wrong_result_of_any_run_counts_whatever_becomes_of_the_others(tmp_path, name, change, runs, left, wrong):
    '''The wrong one is cut off behind what says so, as that of a job which ended there.'''
    right = text_of(name)
    texts = {'right': right, 'torn': right[:len(right) // 4], 'wrong': re.sub(r'^End of .*', '', right.replace(*change), flags=re.DOTALL | re.MULTILINE)}
    if left:
        (tmp_path / 'hpccoutf.txt').write_text(texts[left])
    node = types.SimpleNamespace(
        product={'cg': 'npb'}.get(name, name), stagedir=tmp_path, leaves='hpccoutf.txt' if left else '',
        output=lambda: 'of the job\n' + ''.join(f'plumbline: run 1.5 2.5\n{texts[run]}' for run in runs.split()),
        figures=lambda text, source: READ[name][1](text, source, **READ[name][2]))
    found = NamedCheck.wrong_result(node)
    assert found is None if wrong is None else re.match(wrong, found)


def test_so_does_one_of_our_triad_beside_stream():
    check = runpy.run_path(str(rfm.REPOSITORY / 'checks/named/stream.py'))['stream']
    said = 'plumbline: run 1.5 2.5\n{"record": "wrong", "schema": 1, "why": "the result is wrong"}\n'
    assert check.wrong_result(types.SimpleNamespace(output=lambda: said)) == 'the result is wrong'


# --- sizes from the node ----------------------------------------------------------------------------------------------


def test_a_share_of_memory_that_makes_no_sense_is_an_error():
    def skip_test(reason):
        raise LookupError(reason)
    node = types.SimpleNamespace(memory=8e9, skip_test=skip_test, is_dry_run=lambda: False)
    assert NamedCheck.memory_share(node, 0.5) == 4e9
    node.nodes = 2
    assert NamedCheck.memory_share(node, 0.5) == 8e9
    with pytest.raises(PlumblineError, match='80 is no share of the memory: give 0.8 for 80 %'):
        NamedCheck.memory_share(node, 80.0)
    node.memory = None
    with pytest.raises(LookupError, match='the memory of the node is not known'):
        NamedCheck.memory_share(node, 0.8)


@pytest.mark.parametrize('benchmark, cpus, longest, iterations, seconds', [
    ('osu_alltoall', 2, 2**22, 200, 35), ('osu_alltoall', 128, 2**22, 20, 2062), ('osu_alltoall', 129, 2**21, 20, 1047),
    ('osu_alltoall', 400, 2**20, 20, 5033), ('osu_allreduce', 400, 2**22, 200, 705), ('osu_bibw', 2, 2**22, 200, 1127)])
def test_messages_of_all_to_all_fit_into_the_benchmarks_memory_and_the_jobs_time(benchmark, cpus, longest, iterations, seconds):
    check = types.SimpleNamespace(benchmark=benchmark, cpus=range(cpus), longest=2**22, iterations=0, repeat=10, note=lambda text: None)
    its = runpy.run_path(str(rfm.REPOSITORY / 'checks/named/osu.py'))['osu']
    its.shorten_messages(check)
    its.choose_iterations(check)
    assert (check.longest, check.iterations, its.takes(check)) == (longest, iterations, seconds)


def test_what_is_memory_is_no_file_system_that_is_measured_past_the_page_cache():
    left = []
    for kind in ('tmpfs', 'xfs', None):
        OnFileSystem.leave_memory(types.SimpleNamespace(expected_type=kind, leave=left.append))
    assert left == ['tmpfs is memory, and this program passes the page cache by']


def test_sizes_and_the_largest_class_that_fits():
    assert npb.choose('ft', ['S', 'A', 'C'], 15e9, 8) == 'C' and npb.choose('ft', ['S', 'A', 'C'], 1e9, 8) == 'A'       # C: 12.1 GB, A: 0.75 GB
    assert [npb.choose('lu', ['C', 'D', 'E'], 1e12, cpus) for cpus in (1, 8, 64, 512)] == ['C', 'C', 'D', 'E']
    assert npb.choose('lu', ['D'], 1e12, 8, 'D') == 'D'
    with pytest.raises(PlumblineError, match=r'lu: class D may take 2.5 h on 8 cores \(-S npb.letter=D runs it all the same\): build class C'):
        npb.choose('lu', ['D'], 1e12, 8)
    with pytest.raises(PlumblineError, match=r'ft: class D needs about 180 GiB of memory, and 15 GiB may be used: build class C'):
        npb.choose('ft', ['D'], 15 * 2**30, 8)
    with pytest.raises(PlumblineError, match='class B was asked for, and is not there: A, C are'):
        npb.choose('ft', ['A', 'C'], 1e12, 8, 'B')
    assert hpl.order(8 * 1000**2) == 960 and hpl.order(1) == 192      # 5 blocks of 192; one at least
    assert [hpl.grid(ranks) for ranks in (1, 2, 6, 7, 128)] == [(1, 1), (1, 2), (2, 3), (1, 7), (8, 16)]
    assert hpcg.edge(1.1e9, 2) == 80 and hpcg.edge(1e6, 4) == 16      # 81.9 a side
    assert osu.lengths('osu_allreduce', 64) == [4, 8, 16, 32, 64]
    assert [section.count('runtime=') for section in fio.job_file(2**30).split('[')] == [0, 0, 0, 1, 1, 1]      # globals, write, three that read it
    assert npb.KERNELS['cg'].memory('A') == 30 * 14000 * 144
    assert [npb.KERNELS['bt'].processes(cpus) for cpus in (1, 2, 4, 15, 128)] == [1, 1, 4, 9, 121]
    assert [npb.KERNELS['cg'].processes(cpus) for cpus in (1, 2, 15, 128)] == [1, 2, 8, 128]


@pytest.mark.parametrize('given, processes, files, name, seconds', [(0, 100, 10000, '', 10000), (0, 256, 3906, 'files3906', 9999),
                                                                     (10000, 256, 10000, '', 25600), (200, 2, 200, 'files200', 4)])
def test_files_of_many_processes_are_a_million_at_most_unless_more_were_asked_for(monkeypatch, given, processes, files, name, seconds):
    monkeypatch.setattr(file_systems, 'names', lambda: ['stage'])
    check = types.SimpleNamespace(files=given, cpus=range(processes), repeat=5)
    its = runpy.run_path(str(rfm.REPOSITORY / 'checks/named/ior.py'))['mdtest']
    assert (its.options(check)[:2], check.given, its.takes(check)) == (['-n', files], name, seconds)


def test_the_class_of_another_environment_is_not_that_of_this_one():
    '''Whether an earlier environment has the same program is asked once this one's is known.'''
    installed_in = {'one': ['cg.S.x', 'cg.A.x'], 'two': ['cg.S.x']}

    def look_for(names, environment):
        if names[0] not in installed_in[environment]:
            raise PlumblineError(f'{names[0]} is not there')
        return f'/opt/{environment}/{names[0]}'
    check = runpy.run_path(str(rfm.REPOSITORY / 'checks/named/npb.py'))['npb']
    node = types.SimpleNamespace(benchmark='cg', letter='', cpus=range(2), look_for=look_for, memory_share=lambda share: 1e12)
    node.binary, node.repeat, node.is_dry_run = check.find(node, 'two'), 3, lambda: False
    assert check.takes(types.SimpleNamespace(**{**vars(node), 'benchmark': 'lu', 'cpus': range(16), 'binary': '/opt/lu.D.x'})) == 13602
    assert check.find(node, 'one') == '/opt/one/cg.A.x'
    assert [one.subject for one in check.figures(node, text_of('cg'), 'out')] == ['class_S']


# --- where the processes were -----------------------------------------------------------------------------------------

@pytest.mark.parametrize('bound, nodes, places, wrong', [
    (True, 2, ['0 on a: 0', '1 on a: 1', '3 on b: 1', '2 on b: 0'], None),
    (True, 2, [' on a: 0', ' on b: 0', ' on a: 1', ' on b: 1'], None),         # a launcher that tells no ranks
    (True, 2, ['0 on a: 0', '1 on a: 1', '2 on a: 0', '3 on a: 1'],
     '4 ranks were asked for on 2 nodes, 2 on each, but ran on 1: a; rank by rank: a, a, a, a'),
    (True, 2, ['0 on a: 0', '1 on b: 0', '2 on a: 1', '3 on b: 1'], '4 ranks .* but ran on 2: a, b; rank by rank: a, b, a, b'),
    (True, 1, ['0 on a: 0', '1 on a: 0-1'],
     'the processes may use the CPUs 0, 0-1, and one each of 0, 1 was asked for: Some MPI was not told, or does not bind'),
    (True, 1, [], 'the processes may use the CPUs of which none told, and one each of 0, 1 was asked for'),
    (False, 2, ['0 on a: 5', '1 on a: 6', '2 on b: 5', '3 on b: 7'], None),
    (False, 2, ['0 on a: 5', '1 on a: 5', '2 on b: 5', '3 on b: 7'], 'the ranks 0 and 1 share CPU 5 of a'),
    (False, 2, ['0 on a: 5', '1 on a: 6', '2 on b: 5', '3 on b: 4-7'], 'rank 3 was given the CPUs 4-7 of b, not one of its own: '),
    (False, 1, ['0 on a: 5'], 'the processes may use the CPUs 5: the scheduler was to give each of 2 one')])
def test_processes_of_a_program_that_tells_nothing_are_where_they_were_asked_for(bound, nodes, places, wrong):
    lines = ['plumbline: rank ' + place.replace(': ', ': Cpus_allowed_list:\t') for place in places]
    node = types.SimpleNamespace(bound=bound, nodes=nodes, cpus=[0, 1] * nodes, family=types.SimpleNamespace(title='Some MPI'),
                                 is_dry_run=lambda: False, output=lambda: '\n'.join([*lines, '']))
    if wrong is None:
        return NamedMpiCheck.check_binding(node)
    with pytest.raises(SanityError, match=f'^{wrong}'):
        NamedMpiCheck.check_binding(node)


# --- names ------------------------------------------------------------------------------------------------------------

def lost(product, figures, recorded, processes, **usual):
    '''What is lost of what was recorded on ``recorded`` processes, where fewer run; and a metric's name.'''
    def names(count):
        node = types.SimpleNamespace(**{'numbered': True, 'nodes': 1, 'product': product, 'cpus': range(count), 'given': '', **usual},
                                     figures=figures, measurements=[{'text': '', 'process': 0}], plumbline=types.SimpleNamespace(skipped=[]))
        node.skip_metric = lambda *what: node.plumbline.skipped.append(result.Skipped(*what))
        return {metric.name for metric in NamedCheck.evaluate(node)}, node
    known = {name: types.SimpleNamespace(file='site.yaml') for name in names(recorded)[0]}
    found, node = names(processes)
    return NamedCheck._recorded_but_not(node, known, found), min(found)


@pytest.mark.parametrize('product, name', [('npb', 'cg'), ('hpcc', 'hpcc'), ('osu', 'osu_allreduce'), ('ior', 'ior')])
def test_figures_of_fewer_processes_are_not_measured_by_references_of_more(product, name):
    '''32 processes on a node of which one core of 64 has gone: each has more of the memory, and a collective has fewer steps.'''
    def figures(*_):
        return READ[name][1](text_of(name), 'out', **READ[name][2])
    assert lost(product, figures, 64, 64)[0] == {}
    gone, found = lost(product, figures, 64, 32)
    assert gone[found.replace('.32', '.64')] == 'site.yaml' and len(gone) == len(read(name))
    assert lost('osu', figures, 64, 32, numbered=False)[0] == {}      # two send to each other, however many could


def test_two_processes_and_two_nodes_have_names_of_their_own():
    '''Nobody's figures are judged by references of a whole node; what runs on one node alone says so.'''
    def figures(*_):
        return READ['hpcg'][1](text_of('hpcg'), 'out', **READ['hpcg'][2])
    assert lost('hpcg', figures, 64, 2) == ({'flops.hpcg.64': 'site.yaml'}, 'flops.hpcg.2')
    assert lost('hpcg', figures, 64, 64, nodes=2, given='1800s')[1] == 'flops.hpcg.32.2nodes.1800s'
    npb_check, osu_check = (runpy.run_path(str(rfm.REPOSITORY / f'checks/named/{name}.py'))[name] for name in ('npb', 'osu'))
    for benchmark, asked, ranks in (('cg', 64, 64), ('cg', 3, 2), ('bt', 64, 64), ('bt', 2, 1)):
        npb_check.choose_ranks(node := types.SimpleNamespace(benchmark=benchmark, nodes=1, cpus=range(asked)))
        assert node.ranks == ranks
    with pytest.raises(ReframeError, match=r'^npb.nodes=2: on several nodes '):
        npb_check.choose_ranks(types.SimpleNamespace(benchmark='cg', nodes=2, cpus=range(128)))
    for benchmark, numbered in (('osu_latency', False), ('osu_allreduce', True)):
        osu_check.choose_ranks(node := types.SimpleNamespace(benchmark=benchmark))
        assert node.numbered == numbered


def test_a_size_that_was_asked_for_stands_in_the_name_and_excuses_no_other_number_of_processes():
    def figures(*_):
        return hpl.figures(text_of('hpl'), 'out', **READ['hpl'][2])
    assert lost('hpl', figures, 64, 62, given='n1920') == ({'flops.hpl.64.n1920': 'site.yaml'}, 'flops.hpl.62.n1920')


@pytest.mark.parametrize('given', ['', 'n1920'])
def test_references_of_another_size_are_not_lost(given):
    node = types.SimpleNamespace(usual={'flops.hpl.64': '.'.join(filter(None, ('flops.hpl.64', given)))}, plumbline=types.SimpleNamespace(skipped=[]))
    node.skip_metric = lambda *what: node.plumbline.skipped.append(result.Skipped(*what))
    known = {name: types.SimpleNamespace(file='site.yaml') for name in ('flops.hpl.64.n1920', 'flops.hpl.64.n30000', 'flops.hpl.62')}
    assert NamedCheck._recorded_but_not(node, known, set(node.usual.values())) == {'flops.hpl.62': 'site.yaml'}
    assert [one.metric for one in node.plumbline.skipped] == ['flops.hpl.64.n1920', 'flops.hpl.64.n30000'][bool(given):]


# --- where they are found ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize('library, good, bad', [('libmpi_mpifh.so.40', 'openmpi', 'mpich'), ('libmpifort.so.12', 'mpich', 'openmpi')])
def test_a_fortran_program_that_needs_no_library_of_c_is_of_its_mpi_too(tmp_path, monkeypatch, library, good, bad):
    (tmp_path / 'sp.A.x').write_text('')
    (tmp_path / 'sp.A.x').chmod(0o755)
    monkeypatch.setattr(installed.subprocess, 'run', lambda *_, **__: types.SimpleNamespace(stdout=f' 0x1 (NEEDED)   Shared library: [{library}]\n'))
    environment = types.SimpleNamespace(name='some', extras={'npb': tmp_path}, env_vars={})
    where = {'extra': 'npb', 'package': 'with Spack: npb'}
    assert installed.find(['sp.A.x'], environment, families()[good], **where)
    with pytest.raises(installed.OtherMpi, match=f'was not built with {families()[bad].title}'):
        installed.find(['sp.A.x'], environment, families()[bad], **where)
