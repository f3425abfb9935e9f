'''The transpose: right results of every loop, its model, its yardstick, and its checks.'''

import re
import runpy
from types import SimpleNamespace

import pytest

import rfm
from native import CPUS, QUICK, SAMPLES, THREADS, listed, needs, output_of, refused, two_cpus, x86_only

AWKWARD = [1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 24, 31, 67, 129, 136]


# --- right results -----------------------------------------------------------------------------------------------

def test_every_variant_is_right_at_every_size(build):
    found = build.measured('transpose', '--variants', 'all', '--size', listed(AWKWARD), '--threads', listed(THREADS),
                           *QUICK).measurements
    assert {record['variant'] for record in found} == build.runnable('transpose')
    assert {record['size'] for record in found} == set(AWKWARD)
    assert all(record['valid'] and record['max_error'] == 0 for record in found)


def test_every_block_is_right(build):
    '''Strips narrower and wider than the matrix, and a rest that joins the last one.'''
    variants = [name for name in build.runnable('transpose') if name.startswith('blocked')]
    found = build.measured('transpose', '--variants', listed(variants), '--size', '40,41,47,55', '--threads', listed(THREADS),
                           '--block-size', '8,16,48,1024', *QUICK).measurements
    assert len(found) == len(variants) * 4 * 4 * len(THREADS)
    assert all(record['valid'] and record['options']['block'] == record['options']['block-size'] for record in found)
    found = build.measured('transpose', '--variants', 'rows,padded,blocked', '--place', 'in', '--size', listed(AWKWARD),
                           '--threads', listed(THREADS), *SAMPLES, '--passes', '1,2').measurements
    if 'openblas' in build.runnable('transpose'):
        found += build.measured('transpose', '--variants', 'openblas', '--place', 'in,out', '--size', listed(AWKWARD),
                                *SAMPLES, '--passes', 3).measurements
    assert all(record['valid'] and record['max_error'] == 0 for record in found)
    one = [r['working_set'] for r in found if (r['variant'], r['size'], r['options']['place']) == ('rows', 8, 'in')]
    assert set(one) == {8 * 8 * 8}      # one matrix


@x86_only
def test_non_temporal_stores_where_named_and_nothing_called(programs):
    needs('objdump')
    bodies = dict(re.findall(r'^[0-9a-f]+ <((?!pl_)[\w.]+)>:\n(.*?)(?:\n\n|\Z)', output_of('objdump', '-d', '--no-show-raw-insn',
                                                                                      programs.path('transpose')), re.MULTILINE | re.DOTALL))
    for name, body in bodies.items():
        if re.match(r'transpose_(rows|columns|diagonals|blocked|in_place)', name):
            assert not re.search('call.*<mem(cpy|set|move)', body), name
            assert '_nt' in name or 'movnt' not in body, name
    streaming = {name for name, body in bodies.items() if 'movnt' in body}
    assert streaming and all(re.search(r'(lines|shifted|_nt)_(avx512|avx2)', name) for name in streaming), streaming


# --- the model ---------------------------------------------------------------------------------------------------

def parts_of(programs, place, variants, level):
    '''(variant, dimension) -> bytes of the parts of a pass, with a first-level cache of 64 lines, and in memory no more of the others.'''
    ours = {'L2': 'L1=4096', 'memory': 'L1=4096,L2=1024,L3=1024'}[level]
    found = programs.measured('transpose', '--variants', variants, '--place', place, '--size', '64,65', '--capacity', ours, *QUICK, on=CPUS[:1]).measurements
    if {record['level'] for record in found} != {level}:
        pytest.skip('the system does not tell its caches')
    return {(record['variant'], record['size']): record['parts'] for record in found}


@pytest.mark.parametrize('level', ['L2', 'memory'])
def test_traffic_by_hand(programs, level):
    '''8 bytes of each element in and out; lines of 64 bytes for each element against the rows once a column of n lines,
    or a diagonal of 2 n, exceeds 64 lines.  What is stored was fetched before.'''
    found, once = parts_of(programs, 'out', 'all', level), {64: 32768, 65: 33800}
    for variant, n, loaded, stored in (('rows', 64, 1, 1), ('rows', 65, 1, 8), ('padded', 65, 1, 8), ('columns', 64, 1, 1), ('columns', 65, 8, 1),
                                       ('diagonals', 64, 8, 8), ('blocked', 65, 1, 1)):
        assert found[variant, n] == {'load': loaded * once[n], 'fill': 2 * stored * once[n]}
    for variant in {'blocked_nt', 'memcpy'} & programs.runnable('transpose'):
        assert found[variant, 65] == {'load': 33800, 'fill_nt': 33800}
    # In place: read, written back; of rows half against the rows: 4.5 times.
    assert {at: parts['update'] for at, parts in parts_of(programs, 'in', 'rows,blocked', level).items()} == {
        ('rows', 64): 65536, ('rows', 65): 304200, ('blocked', 64): 65536, ('blocked', 65): 67600}


def test_a_record_states_its_traffic_its_block_and_the_library(programs):
    '''In L1 what the loop says; beyond, a line that was not read is fetched before it is written.'''
    found = {r['variant']: r for r in programs.measured('transpose', '--variants', 'all', '--size', 16, *QUICK).measurements}
    assert {(r['bytes'], r['flops'], r['traffic'], r['working_set']) for name, r in found.items() if name != 'padded'} == \
        {(4096, 0, 4096, 4096)}
    assert found['padded']['working_set'] == 2 * 16 * 24 * 8
    record, = programs.measured('transpose', *QUICK).measurements
    assert record['size'] == 1025       # the source's
    caches = programs.measured('transpose', '--size', 8, *QUICK).machine['caches'] or [{'level': 1, 'size': 32768}]
    ways = next(cache['size'] for cache in caches if cache['level'] == 1) // 4096
    variants = [name for name in ('blocked', 'blocked_nt') if name in programs.runnable('transpose')]
    found = {(r['variant'], r['size']): r['options']['block'] for r in programs.measured(
        'transpose', '--variants', listed(variants), '--size', '33,40,512', *QUICK).measurements}
    expected = {('blocked', 33): 128, ('blocked', 40): 64, ('blocked', 512): max(8, 2 ** (ways.bit_length() - 1)),
                ('blocked_nt', 33): 1024, ('blocked_nt', 40): 512, ('blocked_nt', 512): 512}
    assert found == {key: block for key, block in expected.items() if key[0] in variants}
    if 'openblas' not in programs.runnable('transpose'):
        pytest.skip('built without OpenBLAS')
    record, = programs.measured('transpose', '--variants', 'openblas', '--size', 8, *QUICK).measurements
    assert record['options']['library'].startswith('OpenBLAS ')


# --- bad input is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize('options, parts', [('--size 16777217', ['--size 16777217', 'at most 16777216']), ('--size 16777216', ['GB that are free']),
                                            ('--block-size 12', ['--block-size 12', 'multiple of 8']),
                                            ('--block-size 1032', ['--block-size 1032', '1024']), ('--block-size 0', ['--block-size 0']),
                                            ('--place beside', ['--place beside', 'out, in']),
                                            ('--variants columns --place in', ['--place in', 'columns needs a second matrix']),
                                            ('--variants blocked,memcpy --place out,in', ['--place in', 'memcpy needs a second matrix'])])
def test_bad_input_is_refused(programs, options, parts):
    refused(programs.run('transpose', *options.split()), *parts)


@two_cpus
def test_the_library_in_place_has_one_thread(programs):
    if 'openblas' not in programs.runnable('transpose'):
        pytest.skip('built without OpenBLAS')
    refused(programs.run('transpose', '--variants', 'openblas', '--place', 'in', '--threads', 2), '--threads 2: openblas in place runs with at most 1')


# --- the checks --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('l2, powers', [(2**19, {'L1': 32, 'L2': 64, 'L3': 256, 'memory': 4096}), (2**20, {'L1': 32, 'L2': 64, 'memory': 4096})])
def test_a_power_of_two_that_the_cache_below_may_hold_is_left_out(l2, powers):
    '''Of 1 MiB of L2 an L3 of 3 MiB has no square matrix of a power of two: 256 by 256 has 1 MiB, 512 by 512 has 4.'''
    caches = [{'type': level, 'size': size, 'cpusets': ['0x1']} for level, size in (('L1', 2**15), ('L2', l2), ('L3', 2**25))]
    sizes, skipped = {'L1': 2**14, 'L2': 3 * 2**15, 'L3': 3 * l2, 'memory': 2**28}, []
    processor = {'topology': {'cores': ['0x1'], 'numa_nodes': ['0x1'], 'sockets': ['0x1'], 'caches': caches}}
    case = SimpleNamespace(every_working_set=lambda: sizes, current_partition=SimpleNamespace(processor=processor), cpus=[0], memory_bytes=2**28,
                           memory=2**30, skip_metric=lambda *told, **_: skipped.append(told))
    check = runpy.run_path(str(rfm.REPOSITORY / 'checks/memory/transpose_sizes.py'))['transpose_sizes']
    assert dict(check.powers(case)) == powers
    del sizes['L2']     # one that cannot be isolated holds matrices, too
    assert dict(check.powers(case)) == {level: power for level, power in powers.items() if level != 'L2'}
    assert skipped[:1] == [('all in L3', '256 is the largest power of two whose matrices fit, and L2 may hold them', ['L3'])] * ('L3' not in powers)
    case.memory = 2**30 - 1
    assert 'memory' not in dict(check.powers(case)) and skipped[-1][1] == 'two matrices of 4096 x 4096 take more than a quarter of the memory'


@pytest.fixture(scope='module')
def measured(measuring, tmp_path_factory):
    '''One run of each check on one thread, memory just large enough not to be a cache: name -> test case.'''
    place = measuring(tmp_path_factory.mktemp('transpose') / 'place')
    done = place.reframe(*rfm.small(), '-n', 'transpose_(memory|sizes).*%threads=one|transpose_table6',
                         checks=rfm.REPOSITORY / 'checks/memory')
    assert done.report, done.out
    return {name.replace(' %threads=one', ''): case for name, case in done.cases().items()}


@pytest.mark.parametrize('check, expected', [
    ('transpose_memory %place=out', {f'{metric}.out.{what}' for metric, what in (
        ('of_limit', 'blocked_nt'), ('bandwidth', 'rows'), ('speedup', 'memcpy'), ('speedup', 'openblas'), ('speedup', 'padded'))}),
    ('transpose_memory %place=in', {'of_limit.in.rows', 'bandwidth.in.blocked', 'speedup.in.padded', 'speedup.in.blocked'}),
    ('transpose_sizes', {f'{metric}.{variant}.memory' for metric in ('of_limit', 'bandwidth', 'power_of_two')
                         for variant in ('rows', 'blocked', 'blocked_nt')}),
    ('transpose_table6', {'bandwidth.rows', 'speedup.blocked_nt', 'speedup.openblas', 'speedup.rows', 'bandwidth.columns'}),
])
@x86_only
def test_checks_measure_what_they_ask(measured, check, expected):
    case = measured[check]
    rfm.assert_measured(case)
    left = case['plumbline']
    names = {metric['name'] for metric in left['metrics']}
    assert expected <= names | {skipped['metric'] for skipped in left.get('skipped', [])}
    assert not {'speedup.out.rows', 'speedup.in.rows', 'speedup.columns', 'power_of_two.rows'} & names
    if check == 'transpose_memory %place=out':
        assert {m['verdict'] for m in left['metrics'] if m['subject'] in ('out.memcpy', 'out.openblas')} == {'NO REFERENCE'}
    rfm.assert_drawn(check, case, 'anderson1997')
