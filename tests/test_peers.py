'''The comparison with the best of their kind, with stand-ins: what is found, how it is called, what is said.'''

import itertools
import json
import os
import pathlib
import sys

import numpy as np
import pytest
from reframe.utility.cpuinfo import cpuinfo

from native import CPUS, needs
from plumbline import bench
from plumbline.bench import peers
from plumbline.bench.common import Figure, Machine
from plumbline.bench.peers import chase, cubes, found, md, patterns, spmv, streams, transposition
from plumbline.bench.peers.drivers import common, mkl_spmv
from plumbline.bench.peers.turns import Comparison, Peer, by_turns, mean
from plumbline.errors import PlumblineError
from plumbline.model import spatter

CPU = CPUS[:1]
LIKWID = pathlib.Path(__file__).parent / 'data/likwid'


class Stand:
    '''A machine on which every sample of every variant takes a second.'''
    processor = {'arch': 'cascadelake', 'platform': 'x86_64'}
    memory = 2**34

    def __init__(self, place):
        self.place = self.folder = place

    def run(self, program, cpus, *options):
        given = {'--variants': 'made', **dict(zip(options[::2], options[1::2]))}
        lists = [str(given.get(f'--{name}', 0)).split(',') for name in ('size', 'config', 'stride', 'streams', 'passes', 'variants')]
        return [{'variant': variant.strip('|'), 'size': int(size), 'group': 0, 'passes': 1, 'seconds': [1.0] * 10, 'bytes': 1e9, 'flops': 1e9,
                 'options': {'config': int(config), 'stride': int(stride)}} for size, config, stride, _, _, variant in itertools.product(*lists)]

    def variants(self, program, start=''):
        return [f'{start}_{program}']

    def state(self, cpus):
        return {}


@pytest.fixture
def stand(tmp_path, monkeypatch):
    '''Function (name, lines of a shell script) -> a peer in PLUMBLINE_PEERS; it leaves its arguments in the file ``called``.'''
    needs('taskset')
    monkeypatch.setenv('PLUMBLINE_PEERS', str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def make(name, *lines):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('\n'.join(['#!/bin/sh', f'echo "$@" >> {tmp_path}/called', *lines, '']))
        path.chmod(0o755)
        return path
    return make


def called(folder):
    return (folder / 'called').read_text().splitlines()


# --- finding -----------------------------------------------------------------------------------------------------

def test_all_builds_of_a_peer_are_found_where_the_first_is(stand, tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', f'{tmp_path / "other"}:{os.environ["PATH"]}')
    stand('other/spatter')
    assert [path.name for path in found.programs('spatter')] == ['spatter']
    stand('spatter-gcc'), stand('spatter-clang')
    (tmp_path / 'spatter-notes').write_text('no program')
    assert [path.name for path in found.programs('spatter')] == ['spatter-clang', 'spatter-gcc']


@pytest.mark.parametrize('name', found.SOURCES)
def test_a_peer_that_is_not_there_is_said_with_how_to_get_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv('PLUMBLINE_PEERS', str(tmp_path))
    monkeypatch.setenv('PATH', '')
    with pytest.raises(PlumblineError, match=rf'^{name} is not in PLUMBLINE_PEERS nor in PATH: build .*github.com/'):
        found.programs(name)


@pytest.mark.slow
def test_the_python_of_a_library(stand, tmp_path, monkeypatch):
    python = stand('mkl/bin/python')
    assert found.python(Stand(tmp_path), 'mkl') == python
    monkeypatch.setitem(found.PACKAGES, 'none', ('/no/such/package.whl',))
    with pytest.raises(PlumblineError, match='^none could not be installed: .*virtual environment PLUMBLINE_PEERS/none$'):
        found.python(Stand(tmp_path), 'none')


def test_a_peer_runs_on_its_cpus_in_huge_pages_and_its_failure_is_one_line(stand):
    peer = stand('peer', 'taskset -pc $$', 'echo $OMP_NUM_THREADS $OMP_PLACES $GLIBC_TUNABLES', 'echo no licence >&2; exit $1')
    text = found.run([peer, 0], CPU)
    assert text.splitlines()[0].endswith(f': {CPU[0]}')
    assert text.splitlines()[1] == f'1 {{{CPU[0]}}} glibc.malloc.hugetlb=1'
    with pytest.raises(PlumblineError, match=r'peer 3 failed: no licence$'):
        found.run([peer, 3], CPU)


@pytest.mark.parametrize('text', ['', 'ready', '0.5\n0'])
def test_samples_that_are_none(text):
    with pytest.raises(PlumblineError, match='^hptt printed no samples, seconds a line'):
        found.seconds(text, 'hptt')


def test_variants_that_run_here(stand, tmp_path):
    stand('bin/made', "printf '  nt avx512f wide [not on this CPU]\\n  nt avx2 wide\\n  ntt - as nt [not in this build]\\n  ntl - late [not of all]\\n  simd - x\\n'")
    machine = Machine(tmp_path)
    machine.folder = tmp_path
    assert machine.variants('made', 'nt') == ['nt', 'ntl']


# --- by turns ----------------------------------------------------------------------------------------------------


def test_by_turns_the_best_way_of_either_side_counts_and_a_peer_that_fails_is_said():
    def failing(cpus):
        raise PlumblineError('it is not there')
    ours = {'case': {'plain': [2.0]}}
    failed, measured = by_turns(Stand('.'), 'memory', CPU, lambda cpus: ours, [Peer('one', failing), Peer('other', lambda cpus: {'case': {'a': 1}})], 3)
    assert failed.line == 'NOT MEASURED  memory, 1 thread: ours / one: it is not there'
    assert measured.line.startswith('met ') and not failed.met
    order = []

    def of(name, ways):
        def run(cpus):
            order.append(name)
            return {'case': {way: next(rates) for way, rates in ways.items()}}
        return run
    ours = of('ours', {'plain': iter([[1.0], [9.0], [1.0]]), 'nt': iter([[4.0, 4.0], [2.0, 8.0], [6.0, 6.0]])})
    one = Peer('one', of('one', {'a': iter([2.0, 2.0, 2.0]), 'b': iter([4.0, 4.0, 4.0])}), mean)
    other = Peer('other', of('other', {'c': iter([5.0, 5.0, 5.0])}), np.max)
    first, second = by_turns(Stand('.'), 'memory', CPU, ours, [one, other], 3)
    assert order == ['ours', 'one', 'other', 'one', 'other', 'ours', 'other', 'ours', 'one']
    assert first.what == 'memory case, 1 thread: nt / one b' and first.samples == pytest.approx([1, 0.8, 1.5])
    assert second.what == 'memory case, 1 thread: nt / other c' and second.samples == pytest.approx([0.8, 1.6, 1.2])


def test_turns_in_another_state_do_not_count(tmp_path):
    class Moving(Stand):
        latencies = iter([1.0, 1.0, 1.1, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])

        def state(self, cpus):
            return {'core_to_core.0': next(self.latencies)}
    rates = iter([1.0, 0.1, 0.2, 3.0, 5.0])
    figure, = by_turns(Moving(tmp_path), 'memory', CPU, lambda cpus: {'case': {'plain': [next(rates)]}}, [Peer('one', lambda cpus: {'case': {'a': 1.0}})], 3)
    assert figure.samples.tolist() == [1.0, 3.0, 5.0] and figure.line.endswith(', 2 of 5 turns were in other states')


def test_a_machine_that_is_never_in_one_state_is_said(tmp_path):
    class Moving(Stand):
        latency = 1.0

        def state(self, cpus):
            self.latency *= 2
            return {'core_to_core.0': self.latency}
    figure, = by_turns(Moving(tmp_path), 'memory', CPU, lambda cpus: {'case': {'plain': [1.0]}}, [Peer('one', lambda cpus: {'case': {'a': 1.0}})], 3)
    assert figure.line == 'NOT MEASURED  memory, 1 thread: ours / one: 6 of 6 turns were in other states'


def test_the_state_of_a_machine_is_the_latency_between_its_cores(programs):
    machine = Machine('.')
    machine.folder = programs.folder
    assert machine.state(machine.cpus[:1]) == {}
    if len(machine.cpus) > 1:
        state = machine.state(machine.cpus)
        assert 'core_to_core.0' in state and all(1e-9 < latency < 1e-4 for name, latency in state.items() if name != 'core_sharing')


@pytest.mark.parametrize('value, word', [(1.2, 'met'), (1.05, 'MISSED'), (0.99, 'BEHIND')])
def test_the_words_of_a_comparison(value, word):
    figure = Comparison('a / b', np.full(3, value), 1.1)
    assert figure.line.split()[0] == word and figure.met == (word == 'met')


# --- each of them ------------------------------------------------------------------------------------------------

def test_the_bandwidth_benchmark(stand, tmp_path):
    stand('bwbench-GCC', 'echo Solution Validates', "printf 'Triad  99.0 1 1\\nCopy     12.50  -  0.1\\nSTriad   16.25   1.2 0.1\\n'")
    assert streams.bandwidth_benchmark(CPU, 4096) == {'triad': {'bwbench-GCC': 16250}, 'copy': {'bwbench-GCC': 12500}}
    assert called(tmp_path) == ['-s 4096 -n 20']
    stand('bwbench-GCC', 'echo Failed Validation on array a')
    with pytest.raises(PlumblineError, match='does not validate'):
        streams.bandwidth_benchmark(CPU, 4096)
    stand('bwbench-GCC', 'echo Solution Validates')
    with pytest.raises(PlumblineError, match='bwbench-GCC printed no line STriad with a rate'):
        streams.bandwidth_benchmark(CPU, 4096)


class Likwid(Stand):
    '''Its samples are three, of which one lasts longer: 1000 MB/s by their median, 500 all together, as likwid-bench counts.'''

    def likwid(self, kernel, cpus, size, rate):
        return 500

    def run(self, program, cpus, *options):
        return [{**record, 'seconds': [1.0, 1.0, 4.0]} for record in super().run(program, cpus, *options)]


def test_likwid_bench(tmp_path, monkeypatch):
    rates = streams.likwid(Likwid(tmp_path), CPU, 10**6, 1000)
    assert sorted(rates['triad']) == ['triad_avx512_fma', 'triad_avx_fma', 'triad_mem_avx512_fma', 'triad_mem_avx_fma']
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(PlumblineError, match='likwid-bench is not installed'):
        Machine(tmp_path).likwid('triad', CPU, 10**6, 2)


def test_likwid_bench_runs_as_long_as_it_should_and_where(stand, tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
    stand('taskset', 'shift 2; exec "$@"')
    stand('likwid-bench', f'cat {LIKWID}/bench_triad_2_threads.txt')
    assert Machine(tmp_path).likwid('triad_avx_fma', [1, 0], 48000, 500) == 557625.37
    assert called(tmp_path)[1] == '-t triad_avx_fma -W N:48000B:2 -i 3125'
    with pytest.raises(PlumblineError, match=r'^likwid-bench ran on CPUs \[0, 1\] instead of \[0, 2\]: '):
        Machine(tmp_path).likwid('triad_avx_fma', [0, 2], 3 * 2**30, 500)
    assert called(tmp_path)[3].endswith(' -W N:3221225kB:2 -i 2')


@pytest.mark.parametrize('arch, platform, variant, told', [
    ('cascadelake', 'x86_64', 'nt', 'nt / likwid-bench triad_mem_avx512_fma: 1.000 (1.000 .. 1.000, 3 samples), at least 0.9, mean of either, '
                                    'for likwid-bench tells no median'),
    ('zen2', 'x86_64', 'simd', 'simd / likwid-bench triad_avx_fma: 1.000 ('),
    ('neoverse_n1', 'aarch64', 'nt', 'ours / likwid-bench: likwid-bench has no triad of that kind for scalar code')])
def test_a_stream_is_compared_with_likwids_of_the_same_width_by_the_same_statistic(tmp_path, monkeypatch, arch, platform, variant, told):
    machine = Likwid(tmp_path)
    machine.processor = {'arch': arch, 'platform': platform}
    monkeypatch.setattr(streams.topology, 'working_set', lambda *_: 3200)
    figure, = streams.over_likwid(machine, CPU, 3, 'triad', variant, 'triad', 'memory', 0.9)
    assert figure.line.partition('  memory: ')[2].startswith(f'triad {variant}, 1 thread: {told}')


@pytest.mark.parametrize('kernel, measured, why', [
    ('triad', 1, 'likwid-bench is not installed'), ('motion', 8, 'likwid-bench is not installed'), ('transpose', 6, 'built without OpenBLAS')])
def test_a_peer_that_is_not_there_takes_no_other_figure_away(tmp_path, monkeypatch, kernel, measured, why):
    class Here(Stand):
        cpus, processor, likwid = CPU, cpuinfo(), Machine.likwid

        def run(self, program, cpus, *options):
            if 'openblas' in options[1]:
                raise PlumblineError('built without OpenBLAS')
            return super().run(program, cpus, *options)
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.setattr(streams.topology, 'working_set', lambda *_: 2**20)
    found = list(bench.FIGURES[kernel](Here(tmp_path), 3))
    missing = [figure for figure in found if not len(figure.samples)]
    assert len(found) - len(missing) == measured and len(missing) > 1 and all(why in figure.line for figure in missing)
    assert len({figure.line for figure in found}) == len(found)


def test_hptt_pystencils_and_lbmpy(stand, tmp_path):
    stand('hptt_driver', 'echo 0.5; echo 2; echo 1')
    one, other = (figure for figure in transposition.figures(Stand(tmp_path), CPU, 1) if figure.what.split()[1] in ('1025,', '8192,'))
    assert called(tmp_path)[0] == '1025 1 1'
    assert one.samples == pytest.approx([1e9 / (16 * 1025**2)]) and other.samples == pytest.approx([1e9 / (16 * 8192**2)])
    for library in ('pystencils', 'lbmpy'):
        stand(f'{library}/bin/python', 'echo 0.5; echo 2; echo 1')
    figures = list(cubes.figures(Stand(tmp_path), CPU, 1))
    assert [float(figure.samples[0]) for figure in figures] == pytest.approx([1e9 / (8 * 298**3), 1e9 / (163 * 128**3)])
    assert {f'-m drivers.pystencils_jacobi 300 0.5 {CPU[0]} nontemporal 16', f'-m drivers.lbmpy_step 128 0.5 {CPU[0]} nontemporal'} <= {*called(tmp_path)}


def test_mkl_and_multichase(stand, tmp_path):
    stand('mkl/bin/python', 'echo nonzeros 1000000; echo 0.5; echo 2; echo 1')
    assert spmv.mkl(Stand(tmp_path), CPU, 5000, 128) == {kind: {'mkl_sparse_d_mv': 2} for kind in ('random', 'banded')}
    assert called(tmp_path)[1] == f'-m drivers.{spmv.DRIVER} banded 5000 133 128 0.5 {CPU[0]}'
    stand('multichase', "echo '  80.0'")
    assert chase.multichase(CPU, 1024) == {'chase': {'multichase': 100}}
    assert called(tmp_path)[2:] == ['-a -H -m 65536 -s 64 -T 65536 -n 4']


def test_md_bench(stand, tmp_path):
    stand('mdbench-vl', "echo 'Performance: 1.59 million atom updates per second'")
    assert md.mdbench(CPU) == {'liquid': {'mdbench-vl': 1.59e6}}
    assert called(tmp_path) == ['-nx 20 -ny 20 -nz 20 -n 200']
    figure, = md.figures(Likwid(tmp_path), CPU, 1)      # atoms: as many as its edge has cells
    assert figure.value == pytest.approx(200 / 1.59e6) and 'mean of either, for MD-Bench tells no median' in figure.line
    stand('mdbench-vl', 'echo usage')
    with pytest.raises(PlumblineError, match='mdbench-vl printed no line Performance'):
        md.mdbench(CPU)


def test_spatter(stand, tmp_path):
    program = stand('spatter', "printf 'config  bytes  time(s)  bw(MB/s)\\n0 64 1e-6 64\\n1 128 1e-6 128.5\\n\\n'")
    assert patterns.spatter_rates(program, CPU, 'p.json').tolist() == [64, 128.5]
    assert called(tmp_path) == ['-b serial -r 10 -f p.json']
    if len(CPUS) > 1:
        patterns.spatter_rates(program, CPUS[:2], 'p.json')
        assert called(tmp_path)[1] == '-b openmp -r 10 -f p.json -t 2 --dense-buffers'
    with pytest.raises(PlumblineError, match='no table of configurations'):
        patterns.spatter_rates(stand('spatter', 'echo usage'), CPU, 'p.json')


def test_patterns_of_the_comparison(tmp_path):
    size = 2**28
    names, configs = zip(*patterns.patterns(size))
    (tmp_path / 'p.json').write_text(json.dumps(configs))
    assert len(set(names)) == len(names) and names[0] == 'gather stride 1' and 'LULESH scatter stride 24 delta 0' in names
    for name, config in zip(names, spatter.read(tmp_path / 'p.json')):
        first = np.array(config.patterns['pattern'])
        lines = sum(len(np.unique((first + config.numbers['delta'] * i) // 8)) for i in range(4)) / 4 * config.numbers['count']
        assert name.startswith('LULESH') or lines * 64 == pytest.approx(size, rel=0.02), name
    rates = patterns.our_rates(Stand(tmp_path), CPU, 'p.txt', ['a', 'b'])
    assert rates.keys() == {'a', 'b'} and len(rates['b']) == 1


def test_one_thread_and_all(monkeypatch):
    class Any:
        @staticmethod
        def figures(machine, cpus, pairs):
            yield Figure(str(len(cpus)), np.array([]))
    monkeypatch.setattr(peers, 'COMPARISONS', (Any,))
    for cpus, teams in (([0, 1, 2], ['1', '3']), ([5], ['1'])):
        machine = type('Machine', (), {'cpus': cpus})
        assert [figure.what for figure in bench.FIGURES['peers'](machine, 3)] == teams


def test_a_program_of_ours_that_fails_loses_no_other_figures(monkeypatch):
    class Failing:
        __name__ = 'plumbline.bench.peers.failing'

        @staticmethod
        def figures(machine, cpus, pairs):
            raise PlumblineError('triad failed: no memory')
            yield

    class Any:
        @staticmethod
        def figures(machine, cpus, pairs):
            yield Figure('another', np.array([1.0]))
    monkeypatch.setattr(peers, 'COMPARISONS', (Failing(), Any))
    failed, other = bench.FIGURES['peers'](type('Machine', (), {'cpus': [0]}), 3)
    assert failed.line == "NOT MEASURED  peers' failing, 1 thread: triad failed: no memory" and other.what == 'another'


# --- the drivers: on NumPy alone, without their libraries ---------------------------------------------------------

def test_what_the_drivers_share(monkeypatch, capsys):
    cpus, mine = CPUS[:2], os.sched_getaffinity(0)
    assert common.on_each(cpus, lambda i: os.sched_getaffinity(0)) == [{cpu} for cpu in cpus] and os.sched_getaffinity(0) == mine
    assert common.parts(5, 2) == [slice(0, 2), slice(2, 5)]
    a = common.array(1000, offset=56)
    assert a.ctypes.data % 4096 == 56 and not a.any() and a.size == 1000
    monkeypatch.setattr(common, 'SAMPLE', 1e-5)
    common.print_samples(lambda: sum(range(100)), 0)
    assert len(found.seconds(capsys.readouterr().out, 'it')) >= 10
    n = mkl_spmv.lengths_of_rows(20000, 133)
    random, banded = (mkl_spmv.columns_of(kind, 20000, 10, n[100:200], 100) for kind in ('random', 'banded'))
    row = np.repeat(np.arange(100, 200), n[100:200])
    assert n.mean() == pytest.approx(133, rel=0.02) and random.mean() / 20000 == pytest.approx(0.5, abs=0.02)
    assert abs(banded - row).max() == 20 and (np.diff(banded)[np.diff(row) == 0] >= 0).all()


def test_a_driver_runs_where_there_is_no_plumbline(tmp_path, monkeypatch):
    monkeypatch.setattr(found, 'python', lambda machine, library: sys.executable)
    with pytest.raises(PlumblineError, match='^.*python.* -m drivers.mkl_spmv .* failed: .*(libmkl_rt|IndexError: list index out of range)'):
        found.driver(None, 'mkl', 'mkl_spmv', CPU, 'random', 2000, 133, 10, 0.5, CPU[0])
