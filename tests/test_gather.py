'''Gather and scatter: the loops, the index sets, the patterns of Spatter's files, the checks.'''

import ctypes
import itertools
import json
import pathlib

import numpy as np
import pytest

import rfm
from native import QUICK, SAMPLES, SOURCE, THREADS, all_right, library, listed, needs, output_of, pointer, refused, x86_only
from plumbline.errors import PlumblineError
from plumbline.model import spatter

DATA = pathlib.Path(__file__).parent / 'data/spatter'
FOLDER = SOURCE / 'kernels/gather'

#: Lines of the program gather_patterns: smaller than a vector, no multiple of it, rows that overlap, indices that occur
#: twice, dense rows that are used again and not, one row only.
PATTERNS = '''\
gather count=100 wrap=1 delta=8 pattern=0,1,2,3,4,5,6,7
gather count=13 wrap=3 delta=1 pattern=0,24,48,5,5
gather count=4 wrap=9 delta=0 pattern=7
gather count=1 wrap=1 delta=8 pattern=3,1,4,1,5,9,2,6,5,3,5,8,9,7,9,3,2,3,8
scatter count=100 wrap=1 delta=8 pattern=0,1,2,3,4,5,6,7
scatter count=13 wrap=3 delta=1 pattern=0,24,48,5,5,1,2,3,17,23,0,1,1
scatter count=57 wrap=1 delta=0 pattern=0,24,48,72,96,120,144,168,192,216
gs count=100 delta-gather=3 delta-scatter=5 pattern-gather=0,1,2,3,4,5,6,7,99,100,3 pattern-scatter=7,6,5,4,3,2,1,0,0,1,2
multigather count=9 wrap=2 delta=8 pattern=5,6,7,100 pattern-gather=0,1,2,3,3,2,1,0,0
multiscatter count=9 wrap=2 delta=8 pattern=5,6,7,100 pattern-scatter=0,1,2,3,3,2,1,0,0
scatter count=300 wrap=7 delta=3 pattern=0,24,48,72,9,90,96
scatter count=300 wrap=1 delta=1 pattern=0,8,16,24
scatter count=300 wrap=2 delta=0 pattern=5,7,5,9
'''


# --- right results ---------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def flavours(programs, sanitized):
    '''Both builds, with both programs.'''
    sanitized.make('gather_patterns')
    return {'programs': programs, 'sanitized': sanitized}


@pytest.mark.parametrize('flavour, touched, passes', [('programs', 'parinit', 1), ('sanitized', 'noinit', 2)])
def test_every_index_set_is_right_at_every_size(flavours, flavour, touched, passes):
    build, sizes = flavours[flavour], '1,2,17,1003'
    found = build.measured('gather', '--variants', 'all', '--size', sizes, '--span', '1,3', '--threads', listed(THREADS),
                           '--indices', 'uniform,random,ms1,local', '--direction', 'gather,scatter', '--run', 5,
                           '--window', 40, '--distance', 9, '--init', touched, *SAMPLES, '--passes', passes).measurements
    assert all_right(found)
    assert {record['variant'] for record in found} == build.runnable('gather')
    assert len(found) == len(build.runnable('gather')) * len(sizes.split(',')) * 2 * len(THREADS) * 4 * 2


@pytest.mark.parametrize('flavour', ['programs', 'sanitized'])
def test_every_pattern_is_right(flavours, flavour, tmp_path):
    build, file = flavours[flavour], tmp_path / 'patterns.txt'
    file.write_text(PATTERNS)
    found = build.measured('gather_patterns', '--pattern', file, '--config', '1,2,3,4,5,6,7,8,9,10,11,12,13', '--variants', 'all',
                           '--threads', listed(THREADS), '--distance', '1,64', *QUICK).measurements
    assert all_right(found)
    assert {record['variant'] for record in found} == build.runnable('gather_patterns')
    assert len(found) == 13 * len(build.runnable('gather_patterns')) * len(THREADS) * 2
    sizes = {record['options']['config']: record['size'] for record in found}
    assert sizes == dict(enumerate([800, 65, 4, 19, 800, 169, 570, 1100, 81, 81, 2100, 1200, 1200], start=1))


def test_the_serial_build_of_patterns_is_right(programs, tmp_path):
    (tmp_path / 'p').write_text(PATTERNS)
    found = programs.measured('gather_patterns-serial', '--variants', 'all', '--pattern', tmp_path / 'p', *QUICK)
    assert all_right(found.measurements)


# --- the loops by themselves, against numpy ----------------------------------------------------------

class Rows(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ('first', 'last', 'length', 'delta', 'delta_to', 'wrap', 'ahead', 'block')]


@pytest.fixture(scope='module')
def loops(programs, tmp_path_factory):
    return library(programs, tmp_path_factory.mktemp('loops'), 'gather', FOLDER / 'kernel.c', FOLDER / 'kernel_x86.c')


def by_hand(kind, rows, to, source, index, inner):
    '''One element after the other, as Spatter's README says.'''
    for i, j in itertools.product(range(rows.first, rows.last), range(rows.length)):
        dense = j + rows.length * (i % rows.wrap)
        sparse = (index[inner[j]] if kind.startswith('multi') else index[j]) + rows.delta * i
        if kind == 'gs':
            to[inner[j] + rows.delta_to * i] = source[sparse]
        elif kind.endswith('gather'):
            to[dense] = source[sparse]
        else:
            to[sparse] = source[dense]


def blocks_in_order(kind, index, inner, delta, delta_to):
    '''The most rows that an index may take before the next one does, of 1 to 4: no place is stored to in another order.'''
    if kind.endswith('gather'):
        return 3
    at, step = (inner, delta_to) if kind == 'gs' else (index[inner] if kind.startswith('multi') else index[:len(inner)], delta)
    return next(rows for rows in (4, 3, 2, 1) if not any(
        at[j] + step * i == at[k] + step * later for j in range(len(at)) for k in range(j)
        for i in range(rows) for later in range(i + 1, rows)))


@pytest.mark.parametrize('kind', ['gather', 'scatter', 'gs', 'multigather', 'multiscatter'])
def test_loops_against_plain_python(loops, kind):
    rng = np.random.default_rng(19972)
    isa = {'_avx512': 'avx512f', '_avx2': 'avx2'}
    has = pathlib.Path('/proc/cpuinfo').read_text().split()
    names = [f'{kind}_{name}' for name in ('plain', 'novec', 'unroll', 'prefetch', 'columns', 'simd_avx2', 'simd_avx512')]
    names = [name for name in names if hasattr(loops, name) and all(flag in has for end, flag in isa.items() if name.endswith(end))]
    assert len(names) >= 5
    for length, ahead, wrap in itertools.product([1, 3, 4, 7, 8, 9, 16, 19], [1, 8, 40], [1, 3]):
        index = rng.integers(0, 60, 64, dtype=np.int32)
        inner = rng.integers(0, 64, length, dtype=np.int32)
        rows = Rows(2, 7, length, 5, 3, wrap, ahead, blocks_in_order(kind, index, inner, 5, 3))
        source = rng.random(400)
        right = np.full(400, np.nan)
        by_hand(kind, rows, right, source, index, inner)
        for name in names:
            to = np.full(400, np.nan)
            getattr(loops, name)(ctypes.byref(rows), *map(pointer, (to, source, index, inner)))
            np.testing.assert_array_equal(to, right, f'{name}, length {length}, ahead {ahead}, wrap {wrap}')


@x86_only
def test_loops_hold_what_their_names_say(loops):
    needs('objdump')
    text = output_of('objdump', '-d', '--no-show-raw-insn', loops._name)
    seen = set()
    for function in text.split('\n\n'):
        name, _, body = function.split('<', 1)[-1].partition('>:')
        if any(f'_{variant}' in name for variant in ('novec', 'unroll', 'prefetch', 'simd')):
            seen.add(name)
            assert ('vgather' in body or 'vpgather' in body or 'vscatter' in body or 'avx2' in name) == ('_simd' in name), name
            assert ('prefetch' in body) == ('_prefetch' in name), name
        if '_simd_avx2' in name and not name.startswith('scatter'):
            assert 'gather' in body
    assert len(seen) == 25


# --- the index sets ------------------------------------------------------------------------------------

def permuted(i, n, seed):
    '''The permutation of gather.c, written anew.'''
    bits = (n - 1).bit_length()
    mask, half = 2**bits - 1, max(1, (bits + 1) // 2)
    while True:
        for step in range(3):
            i = (i * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03 + step) & mask
            i ^= i >> half
        if i < n:
            return i


def index_set(indices, n, span, run=8, window=512, seed=1):
    each = max(1, window // span)
    return np.array({'uniform': lambda: [i * span for i in range(n)], 'random': lambda: [permuted(i, n * span, seed) for i in range(n)],
                     'ms1': lambda: [i // run * run * span + i % run for i in range(n)],
                     'local': lambda: [i // each * each * span + permuted(i % each, min(each, n - i // each * each) * span, seed + i // each)
                                       for i in range(n)]}[indices]())


@pytest.mark.parametrize('indices', ['uniform', 'random', 'ms1', 'local'])
@pytest.mark.parametrize('n, span', [(1, 1), (1000, 1), (1000, 7), (4096, 8)])
def test_index_sets(indices, n, span):
    found = index_set(indices, n, span)
    assert len(set(found)) == n and found.min() >= 0 and found.max() < n * span
    if indices == 'random' and n > 1:
        # A random order: steps forward and backward alike, no neighbours but by chance
        steps = np.diff(found)
        assert 0.4 < (steps > 0).mean() < 0.6 and (np.abs(steps) == 1).mean() < 0.02
        assert abs(found.mean() / (n * span) - 0.5) < 0.05
    if indices == 'local' and n > 1:
        assert np.abs(np.diff(found)).max() < 1024


def accessed_lines(sequence, below):
    '''Accesses that are not fewer than ``below`` accesses after the last one to their line.'''
    last, lines = {}, 0
    for now, line in enumerate(np.asarray(sequence) // 8):
        lines += line not in last or now - last[line] >= below
        last[line] = now
    return lines


def lines_below(outcome, record):
    '''Lines of the cache below the level of a record of one thread.'''
    level = {'L1': 1, 'L2': 2, 'L3': 3, 'memory': 4}[record['level']]
    return max((cache['level'], cache['size']) for cache in outcome.machine['caches'] if cache['level'] < level)[1] // 64


@pytest.mark.parametrize('indices, span', [('random', 8), ('local', 8), ('ms1', 3), ('uniform', 8)])
def test_traffic_is_that_of_the_counted_lines(programs, indices, span):
    n = 60000
    found = programs.measured('gather', '--indices', indices, '--size', n, '--span', span, '--direction', 'gather,scatter', *QUICK)
    gathered, scattered = found.measurements
    lines = accessed_lines(index_set(indices, n, span), lines_below(found, gathered))
    assert gathered['level'] != 'L1' and (gathered['bytes'], scattered['bytes']) == (8 * n, 8 * n)
    assert gathered['traffic'] == 64 * lines + 4 * n + 2 * 8 * n
    assert scattered['traffic'] == 2 * 64 * lines + 12 * n


def test_traffic_by_hand(programs):
    '''Stride 8: each element has a line of its own: 64 + 4 + 16 bytes, or 128 + 12.  Stride 1, 100003 elements: 12501 lines.
    In L1: 8 + 4 + 8.'''
    def traffic(*options):
        found = programs.measured('gather', '--direction', 'gather,scatter', *options, *QUICK)
        return [record['traffic'] for record in found.measurements]

    assert traffic('--size', 60000, '--span', 8) == [60000 * 84, 60000 * 140]
    assert traffic('--size', 100003) == [12501 * 64 + 100003 * 20, 12501 * 128 + 100003 * 12]
    assert traffic('--size', 500) == [500 * 20, 500 * 20]


def test_traffic_of_patterns_by_hand(programs, tmp_path):
    '''Rows of 8 lines each; a gs of 12500 rows of one line, read and written; a pattern that walks by one element: 100001
    rows, 12501 lines; in L1, 8 bytes read, 8 written and two indices; dense rows that are used once: 16 bytes more per element
    where they are too large for the cache below.'''
    (tmp_path / 'p').write_text(
        f"gather count=5000 wrap=1 delta=64 pattern={','.join(str(8 * j) for j in range(8))}\n"
        f"scatter count=5000 wrap=1 delta=64 pattern={','.join(str(8 * j) for j in range(8))}\n"
        'gs count=12500 delta-gather=8 delta-scatter=8 pattern-gather=0,1,2,3 pattern-scatter=3,2,1,0\n'
        'gather count=100001 wrap=1 delta=1 pattern=0,1\n'
        'multiscatter count=9 wrap=1 delta=8 pattern=0,8,16 pattern-scatter=2,0\n'
        'gather count=20000 wrap=20000 delta=8 pattern=0,1,2,3\n')
    found = programs.measured('gather_patterns', '--pattern', tmp_path / 'p', '--config', '1,2,3,4,5,6', *QUICK)
    dense = found.measurements[-1]
    moved = 16 * 80000 if 64 * lines_below(found, dense) < 8 * 80000 else 0
    assert [(r['bytes'], r['traffic']) for r in found.measurements] == [
        (8 * 40000, 64 * 40000), (8 * 40000, 128 * 40000), (16 * 50000, 12500 * 192), (8 * 200002, 64 * 12501),
        (8 * 18, 18 * (8 + 8 + 8)), (8 * 80000, 64 * 20000 + moved)]
    assert [r['options']['kernel'] for r in found.measurements] == ['gather', 'scatter', 'gs', 'gather', 'multiscatter', 'gather']


# --- Spatter's files -------------------------------------------------------------------------------------

@pytest.mark.parametrize('text, indices, delta', [
    ('UNIFORM:8:4', [0, 4, 8, 12, 16, 20, 24, 28], 8),      # of the README, and version 2.1 with -v 3
    ('UNIFORM:8:4:NR', [0, 4, 8, 12, 16, 20, 24, 28], 32),
    ('UNIFORM:4:2:3', [0, 2, 4, 6], 3),
    ('MS1:8:4:32', [0, 1, 2, 3, 35, 36, 37, 38], 8),
    ('MS1:8:2,3:20', [0, 1, 21, 41, 42, 43, 44, 45], 8),
    ('MS1:8:2,3:20,22', [0, 1, 21, 43, 44, 45, 46, 47], 8),
    ('MS1:8:0,4:32', [31, 32, 33, 34, 66, 67, 68, 69], 8),
    ('LAPLACIAN:1:1:100', [0, 1, 2], 1),
    ('LAPLACIAN:2:1:100', [0, 99, 100, 101, 200], 1),
    ('LAPLACIAN:2:2:100', [0, 100, 198, 199, 200, 201, 202, 300, 400], 1),
    ('LAPLACIAN:3:1:100', [0, 9900, 9999, 10000, 10001, 10100, 20000], 1),
    ('LAPLACIAN:3:2:10', [0, 100, 180, 190, 198, 199, 200, 201, 202, 210, 220, 300, 400], 1),
    ('1,2,4,8', [1, 2, 4, 8], 8),
    ([5, 3, 5], [5, 3, 5], 8),
])
def test_patterns_as_spatter_expands_them(text, indices, delta):
    config, = spatter.parse(json.dumps([{'pattern': text}]))
    assert config.patterns == {'pattern': indices}
    assert config.numbers == {'count': 1024, 'wrap': 1, 'delta': delta}     # its defaults
    assert (config.kernel, config.length) == ('gather', len(indices))


def test_a_file_its_lines_and_names(programs, tmp_path):
    configs = spatter.read(DATA / 'small.json')
    assert [config.name for config in configs] == ['stride_3', 'scatter-2', 'stencil', 'gs-4', 'multigather-5', 'multiscatter-6']
    assert configs[2].patterns == {'pattern': [0, 29, 30, 31]}
    assert configs[4].patterns == {'pattern': [0, 1, 21, 22, 23, 13, 14, 15], 'pattern-gather': [7, 0, 7, 3, 2]}
    (tmp_path / 'p').write_text(spatter.lines(configs))
    found = programs.measured('gather_patterns', '--pattern', tmp_path / 'p', '--config', '1,2,3,4,5,6', '--variants', 'all',
                              '--threads', listed(THREADS), *QUICK).measurements
    assert all_right(found)
    for record in found:
        config = configs[record['options']['config'] - 1]
        assert (record['options']['name'], record['options']['kernel']) == (config.name, config.kernel)
        moved = config.length * config.numbers['count']      # of gs they are read and written
        assert (record['bytes'], record['size']) == (8 * moved * (2 if config.kernel == 'gs' else 1), moved)
        assert record['working_set'] <= config.memory(record['threads']) + 192 * record['threads']
    configs = spatter.parse('[{"name": "x-3", "pattern": [1]}, {"name": "x", "pattern": [1]}, {"name": "x", "pattern": [1]}]')
    assert [config.name for config in configs] == ['x-3', 'x', 'x-3-3']


@pytest.mark.parametrize('text, complaint', [
    ('', 'malformed JSON'), ('[{"pattern": [0, 1}]', 'line 1: malformed JSON'),
    ('[{"pattern": [0]},\n{"kernel"}]', 'line 2: malformed'), ('{}', 'an array of configurations'), ('[]', 'at least one'),
    ('[3]', 'must be an object'), ('[' * 100000, 'nested too deeply'),
    ('[{"pattern": [0], "count": NaN}]', 'NaN is not a finite number'),
    ('[{"pattern": [0], "pattern": [1]}]', "the key 'pattern' stands there twice"),
    ([{}], "gather needs the key 'pattern'"), ([{'kernel': 'GS', 'pattern': [1]}], "gs needs the key 'pattern-gather'"),
    ([{'kernel': 'Stream', 'pattern': [1]}], "kernel 'Stream' is not supported"),
    ([{'kernel': 3, 'pattern': [1]}], 'kernel 3 is not supported'),
    ([{'pattern': [1], 'length': 8}], "the key 'length' is not supported"),
    ([{'pattern': 'RANDOM:8'}], "the pattern 'RANDOM:8' is not supported"),
    ([{'pattern': '-1,2'}], 'is not supported'), ([{'pattern': '1,2x'}], "'2x' must be a whole number"),
    ([{'pattern': {}}], 'is no pattern'), ([{'pattern': []}], 'is empty'), ([{'pattern': ''}], 'is not supported'),
    ([{'pattern': [0, -1]}], 'index -1 must be'), ([{'pattern': [2**31]}], f'index {2**31} must be'),
    ([{'pattern': [1.5]}], 'index 1.5'), ([{'pattern': [True]}], 'index True'), ([{'pattern': ['1']}], "index '1'"),
    ([{'pattern': [1], 'count': 0}], 'count 0 must be a whole number from 1'), ([{'pattern': [1], 'count': '5'}], "count '5'"),
    ([{'pattern': [1], 'delta': -8}], 'delta -8'), ([{'pattern': [1], 'wrap': 0}], 'wrap 0'),
    ([{'pattern': [1], 'delta': 2**60}], 'delta'), ([{'pattern': [1], 'nruns': 0}], 'nruns 0'),
    ([{'pattern': [1, 2], 'pattern-size': 3}], 'pattern-size 3 is more than its 2'),
    ([{'pattern': [1], 'name': 7}], 'name 7'),
    ([{'pattern': 'UNIFORM:8'}], 'must be UNIFORM:'),
    ([{'pattern': 'UNIFORM:8:0'}], "stride: '0' must be a whole number, at least 1"),
    ([{'pattern': 'UNIFORM:0:1'}], "length: '0'"), ([{'pattern': 'UNIFORM:8:1:0'}], "delta: '0'"),
    ([{'pattern': 'UNIFORM:8:1,2'}], 'one number'),
    ([{'pattern': f'UNIFORM:{10**12}:1'}], 'at most 16777216'), ([{'pattern': 'UNIFORM:8:1000000000'}], 'index 3000000000'),
    ([{'pattern': 'MS1:8:4'}], 'must be MS1:'), ([{'pattern': 'MS1:8:2,3:1,2,3'}], '2 gap locations and 3 gaps'),
    ([{'pattern': 'MS1:8:3,2:9'}], 'must ascend'), ([{'pattern': 'MS1:8:8:9'}], 'below its length 8'),
    ([{'pattern': 'MS1:8:0:0'}], 'index -1'), ([{'pattern': 'MS1:8:x:1'}], "'x' must be"),
    ([{'pattern': 'LAPLACIAN:2:1'}], 'must be LAPLACIAN:'), ([{'pattern': 'LAPLACIAN:0:1:9'}], "dimension: '0'"),
    ([{'pattern': 'LAPLACIAN:99:1:9'}], 'beyond the largest index'), ([{'pattern': 'LAPLACIAN:9:1:99'}], 'index'),
    ([{'kernel': 'GS', 'pattern-gather': [1, 2], 'pattern-scatter': [1]}], 'give both as many'),
    ([{'kernel': 'MultiGather', 'pattern': [1, 2], 'pattern-gather': [2]}], 'pattern-gather: index 2 is outside'),
    ([{'kernel': 'MultiScatter', 'pattern': [1, 2], 'pattern-scatter': [9]}], 'pattern-scatter: index 9 is outside'),
])
def test_wrong_files_are_one_line(text, complaint):
    with pytest.raises(PlumblineError) as error:
        spatter.parse(text if isinstance(text, str) else json.dumps(text), 'site.json')
    assert complaint in str(error.value) and '\n' not in str(error.value)
    assert str(error.value).startswith('site.json')
    if isinstance(text, list) and text:
        assert str(error.value).startswith('site.json, configuration 1')


def test_files_that_cannot_be_read_and_more_memory_than_there_is(tmp_path):
    (tmp_path / 'binary').write_bytes(b'\xff\xfe\x00')
    for path, complaint in ((tmp_path / 'none', 'No such file'), (tmp_path, 'directory'), (tmp_path / 'binary', 'no text file')):
        with pytest.raises(PlumblineError, match=complaint):
            spatter.read(path)
    file = tmp_path / 'large.json'
    file.write_text('[{"pattern": [0]}, {"pattern": [0, 7], "delta": 1000, "count": 1000001}]')
    assert spatter.read(file)[1].memory() == 8 * (7 + 10**9 + 1 + 2) + 8
    with pytest.raises(PlumblineError, match='configuration 2: needs 7.451 GiB, and there are 7.357 GiB'):
        spatter.read(file, memory=7.9e9)


# --- bad input of the programs ---------------------------------------------------------------------------

@pytest.mark.parametrize('options, parts', [('--span 0', ['--span 0', 'whole number from 1']),
                                            ('--indices sorted', ['--indices sorted', 'uniform, random, ms1, local']),
                                            ('--direction both', ['--direction both']), ('--size 3e9', ['--size 3000000000', '32-bit indices']),
                                            ('--size 1e9 --span 3', ['--span 3', '32-bit indices']), ('--run 0', ['--run 0']),
                                            ('--window -1', ['--window -1']), ('--seed x', ['--seed x']), ('--distance 0', ['--distance 0']),
                                            ('--pattern x', ['--pattern'])])
def test_bad_input_of_gather_is_refused(programs, options, parts):
    refused(programs.run('gather', *options.split()), *parts)


@pytest.mark.parametrize('line, complaint', [
    ('', "no kernel ''"), ('[{"kernel": "Gather"}]', 'not JSON'), ('stream count=1', "no kernel 'stream'"),
    ('gather', 'gather needs count'), ('gather count=1 wrap=1 delta=1', 'gather needs pattern'),
    ('gather count=1 wrap=1 delta=1 pattern=', "pattern: '' is not a whole number"),
    ('gather count=1 wrap=1 delta=1 pattern=0,,1', "pattern: ''"), ('gather count=1 wrap=1 delta=1 pattern=0,1x', "'1x'"),
    ('gather count=1 wrap=1 delta=1 pattern=0,-1', "'-1' is not a whole number from 0"),
    ('gather count=1 wrap=1 delta=1 pattern=2147483648', 'from 0 to 2147483647'),
    ('gather count=1 wrap=1 delta=1 pattern=99999999999999999999', 'from 0 to 2147483647'),
    ('gather count=0 wrap=1 delta=1 pattern=0', "count: '0'"), ('gather count=1 wrap=0 delta=1 pattern=0', "wrap: '0'"),
    ('gather count=1 count=1 wrap=1 delta=1 pattern=0', 'count stands there twice'),
    ('gather count=1  wrap=1 delta=1 pattern=0', "'' is nothing that gather has"),
    ('gather count=1 wrap=1 delta=1 pattern=0 pattern-gather=1', "'pattern-gather' is nothing that gather has"),
    ('gather count=1 wrap=1 delta=1 pattern', "'pattern' is nothing"),
    ('gather count=9 wrap=1 delta=1000000000000000 pattern=0', 'beyond all memory'),
    ('gather count=900000000000000 wrap=1 delta=0 pattern=0,1', 'more elements than can be counted'),
    ('gather count=900000 wrap=900000000000 delta=0 pattern=0,1', None),
    ('gather count=1000000 wrap=1 delta=1000000000 pattern=0', 'GB that are free'),
    ('gs count=1 delta-gather=1 delta-scatter=1 pattern-gather=0,1 pattern-scatter=0', 'give as many to both'),
    ('multigather count=1 wrap=1 delta=1 pattern=0,1 pattern-gather=2', 'pattern-gather: index 2 is outside the pattern'),
    ('multiscatter count=1 wrap=1 delta=1 pattern=0,1 pattern-scatter=0,7', 'pattern-scatter: index 7 is outside'),
])
def test_bad_lines_are_refused(programs, tmp_path, line, complaint):
    file = tmp_path / 'patterns.txt'
    file.write_text(f'gather count=1 wrap=1 delta=1 pattern=0\n{line}\n')
    done = programs.run('gather_patterns', '--pattern', file, '--config', '1,2', *QUICK)
    if complaint:
        refused(done, 'line 2: ', complaint)
    else:
        assert done.code == 0      # more rows than there are need no room


def test_bad_options_of_patterns_are_refused(programs, tmp_path):
    file = tmp_path / 'patterns.txt'
    file.write_text('gather count=1 wrap=1 delta=1 pattern=0\n')
    refused(programs.run('gather_patterns'), '--pattern is missing')
    refused(programs.run('gather_patterns', '--pattern', tmp_path / 'none'), 'No such file')
    refused(programs.run('gather_patterns', '--pattern', tmp_path), 'irectory')
    refused(programs.run('gather_patterns', '--pattern', file, '--config', 2), '--config 2', 'has 1 patterns')
    refused(programs.run('gather_patterns', '--pattern', file, '--config', 0), '--config 0')
    refused(programs.run('gather_patterns', '--pattern', file, '--size', 5), '--size', 'leave it out')
    file.write_text('')
    refused(programs.run('gather_patterns', '--pattern', file), 'is empty')
    file.write_bytes(b'gather count=1\0\n')
    refused(programs.run('gather_patterns', '--pattern', file), 'line 1: holds a byte 0')


# --- the checks --------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def place(measuring, tmp_path_factory):
    return measuring(tmp_path_factory.mktemp('gather') / 'place')


#: Of a row of the first, 64 elements, one is new: 8 of 512 bytes.
NEAR = [{'name': name, 'kernel': 'Gather', 'pattern': pattern, 'delta': delta, 'count': count, 'wrap': 1}
        for name, pattern, delta, count in (('near', 'UNIFORM:64:1', 1, 200_000), ('far', 'UNIFORM:8:8', 64, 20_000))]


@pytest.fixture(scope='module')
def measured(place):
    '''One run of each check: name -> test case.'''
    file = place.folder / 'patterns.json'
    file.write_text(json.dumps([*json.loads((DATA / 'small.json').read_text()), *NEAR]))
    done = place.reframe(*rfm.small(), '-S', f'gather_patterns.pattern_file={file}', '-n',
                         'gather_table5|gather_memory.*threads=one.*indices=strided|gather_patterns.*threads=one',
                         checks=rfm.REPOSITORY / 'checks/memory')
    assert done.report, done.out
    return done.cases()


@pytest.mark.parametrize('check, expected', [
    ('gather_table5', {'bandwidth.gather.plain', 'bandwidth.scatter.sorted'}),
    ('gather_memory %threads=one %indices=strided', {'of_limit.strided.gather.unroll', 'bandwidth.strided.scatter.plain'}),
    ('gather_patterns %threads=one', {'of_limit.stride_3.plain', 'bandwidth.scatter-2.unroll', 'bandwidth.gs-4.prefetch',
                                      'of_limit.multigather-5.plain', 'bandwidth.multiscatter-6.columns'}),
])
def test_checks_measure_what_they_ask(measured, check, expected):
    case = measured[check]
    rfm.assert_measured(case)
    left = case['plumbline']
    judged = {metric['name']: metric for metric in left['metrics']}
    assert expected <= set(judged)
    assert all(record['valid'] for record in left['records'])
    if 'strided' in check:
        assert 'of_limit.strided.gather.unroll' in rfm.judged_on_day_one(judged)
    rfm.assert_drawn(check, case)


def test_the_limit_of_a_level_says_nothing_of_a_pattern_that_lives_nearer(measured):
    left = measured['gather_patterns %threads=one']['plumbline']
    names = {metric['name'] for metric in left['metrics']}
    assert {'bandwidth.near.plain', 'of_limit.far.plain'} <= names and 'of_limit.near.plain' not in names
    reason, = {one['reason'] for one in left['skipped'] if one['metric'] == 'of_limit.near.plain'}
    assert reason.startswith('of the bytes that the pattern moves 1.6 % come from ') and 'it lives nearer' in reason
