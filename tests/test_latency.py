'''The pointer chase, what is read from it of the TLBs, and the checks that do so.'''

import ctypes
import os
import runpy
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from reframe.core.exceptions import SkipTestError

import rfm
from native import MEASURED, QUICK, SOURCE, finding, output_of, refused
from plumbline.errors import PlumblineError
from plumbline.model import tlb
from plumbline.report.figures import latency as figures

CHECKS = rfm.REPOSITORY / 'checks'
PROBE = runpy.run_path(str(CHECKS / 'memory/tlb.py'))['tlb']


# --- the program -------------------------------------------------------------------------------------

@pytest.mark.parametrize('pages', ['huge', 'base'])
def test_every_layout_is_right(build, pages):
    found = build.measured('chase', '--variants', 'all', '--size', '1,2,3,7,15,16,17,63,1009', '--pages', pages,
                           '--stride', '64,128,4096,4160,65536', *QUICK).measurements
    assert len(found) == 9 * 5 * 2
    assert all(record['valid'] and record['max_error'] == record['tolerance'] == 0 for record in found)


def test_model(programs):
    '''100 lines: 800 bytes are loaded, from L1.  100000 lines, 6.4 MB, are beyond any L1: 65536 loads of a pass bring 64
    bytes each.'''
    small, large = programs.measured('chase', '--size', '100,100000', *QUICK).measurements
    keys = ('level', 'working_set', 'bytes', 'traffic', 'flops')
    assert [small[key] for key in keys] == ['L1', 6400, 800, 800, 0]
    assert (large['working_set'], large['bytes'], large['traffic']) == (6400000, 524288, 4194304)


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp('chase') / 'chase.so'
    output_of('cc', '-O1', '-shared', '-fPIC', '-I', SOURCE / 'harness', SOURCE / 'kernels/chase/kernel.c', '-o', path)
    loaded = ctypes.CDLL(path)
    for name in ('chase_dense', 'chase_strided'):
        getattr(loaded, name).restype = ctypes.c_size_t
    return loaded


def cycle(library, n):
    following = (ctypes.c_uint32 * n)()
    library.chase_cycle(ctypes.c_size_t(n), following)
    return list(following)


def test_order_is_one_random_cycle(library):
    for n in (1, 2, 3, 17, 1000):
        following, at, seen = cycle(library, n), 0, set()
        while at not in seen:
            seen.add(at)
            at = following[at]
        assert (at, len(seen)) == (0, n)
    steps = np.array(cycle(library, 10000)) - np.arange(10000)
    # Of random pairs the distance is 1/3 on average; few neighbours.
    assert 0.3 < np.mean(np.abs(steps)) / 10000 < 0.37 and np.mean(np.abs(steps) == 1) < 0.002
    assert cycle(library, 1000) == cycle(library, 1000)


@pytest.mark.parametrize('stride', [64, 4096, 4160, 16384, 131072, 2**21])
def test_strided_nodes_spread_over_the_sets(library, stride):
    place = np.array([library.chase_strided(ctypes.c_size_t(i), ctypes.c_size_t(stride)) for i in range(4096)])
    assert (place // stride == np.arange(4096)).all() and not (place % 64).any()
    for sets, most in ((64, 2), (1024, 2)):     # of L1, of L2
        if stride % 4096 == 0:
            for nodes in (sets, 4 * sets):
                assert np.bincount(place[:nodes] // 64 % sets).max() <= most * nodes // sets


@pytest.mark.parametrize('options, told', [('--stride 100', 'multiple of 64'), ('--stride 0', 'from 1'),
                                           ('--size 5000000000', 'at most 4294967295 lines'),
                                           ('--variants strided --size 4000000000 --stride 4096', 'its pages need 16384.0 GB')])
def test_bad_input_is_refused(programs, options, told):
    refused(programs.run('chase', *options.split()), told)


# --- from times to entries ---------------------------------------------------------------------------

ROUNDS = 20


def staircase(levels, most=16384, width=0.0, noise=0.02, load=1.0, seed=1, factor=1.0):
    '''A curve with steps at ``levels``: list of (entries, extra ns beyond); ``width`` octaves wide, with walks that go on
    to rise beyond the last one where ``factor`` says so (per octave).'''
    rng = np.random.default_rng(seed)
    nodes = np.array(tlb.sizes(most))
    extra = np.zeros(len(nodes))
    below = 0.0
    for entries, height in levels:
        octaves = np.log2(nodes / entries)
        share = (octaves > 0) * 1.0 if width == 0 else np.clip(octaves / width + 0.5, 0, 1)
        extra += share * (height - below)
        below = height
    extra *= np.where(nodes > levels[-1][0], factor ** np.log2(nodes / levels[-1][0]), 1) if levels else 1
    times = extra[:, None] + noise * rng.standard_normal((len(nodes), ROUNDS))
    times += 30 * (rng.random(times.shape) < 0.05)      # a twentieth of the rounds is disturbed
    return tlb.Curve(nodes, times, load, times + load)


@pytest.mark.parametrize('entries', [12, 16, 32, 48, 64, 72, 96, 128, 160])
@pytest.mark.parametrize('second', [1024, 1536, 2048, 4096])
def test_sharp_steps_are_found_exactly(entries, second):
    first_step, second_step = tlb.steps(staircase([(entries, 1.7), (second, 12.0)], seed=entries + second))
    assert (first_step.entries, second_step.entries) == (entries, second)
    assert np.median(first_step.samples) == pytest.approx(1.7, abs=0.1)
    assert np.median(second_step.samples) == pytest.approx(12.0, abs=0.1)


def test_gradual_steps_are_found_half_way():
    '''The second level's sets fill up one by one, and walks go on to rise as the page table leaves the caches.'''
    for seed in range(5):
        first_step, second_step = tlb.steps(staircase([(64, 2.0), (1536, 15.0)], width=1.0, noise=0.1, factor=1.5, seed=seed))
        assert 56 <= first_step.entries <= 72 and 1024 <= second_step.entries <= 2048


@pytest.mark.parametrize('levels', [[], [(64, 0.1)]], ids=['none', 'less than a cycle'])
def test_no_step_is_found_where_there_is_none(levels):
    for seed in range(10):
        assert tlb.steps(staircase(levels, noise=0.3, seed=seed)) == []


def test_noise_is_no_step_and_few_points_are_none():
    '''Heights that jump up and down beyond the first level: entries of the second must not be made up.'''
    curve = staircase([(96, 1.7)], most=2048)
    beyond = np.flatnonzero(curve.nodes > 512)
    curve.extra[beyond] += np.resize([1.0, 5.0, 2.0, 0.5, 4.0, 0.0], len(beyond))[:, None]
    assert [step.entries for step in tlb.steps(curve)] == [96]
    assert [step.entries for step in tlb.steps(staircase([(64, 3.0)], most=512))] == [64]
    few = staircase([(4, 3.0)], most=6)
    assert tlb.steps(few) == [] and tlb.first_level(few) is None


def probe_of(page, force, entries=64, second=1536, most=16384, strides=(1, 4, 16), seed=7):
    '''Curves of pages of which each translation covers ``force`` bytes.'''
    curves = {}
    for part in strides:
        stride = int(page * part)
        shared = max(1.0, force / stride)
        levels = [(entries * shared, 1.7), (second * shared, 12.0)]
        curves[stride] = staircase([level for level in levels if level[0] < most / 2], most, seed=seed + stride)
    return curves


@pytest.mark.parametrize('page, force, strides, most', [
    (4096, 4096, (1, 4, 16), 16384),
    (4096, 16384, (1, 4, 16), 16384),                  # four contiguous pages in one entry
    (65536, 65536, (1, 4, 16), 16384),
    (2**21, 2**21, (1 / 512, 1 / 16, 1), 2048),
    (2**21, 4096, (1 / 512, 1 / 16, 1), 2048),         # split by nested paging
    (2**21, 32768, (1 / 512, 1 / 16, 1), 2048),
])
def test_page_in_force(page, force, strides, most):
    document, levels = tlb.found(probe_of(page, force, strides=strides, most=most))
    assert (document['in_force'], document['in_force_reason']) == (force, None)
    assert (document['levels']['L1']['entries'], document['levels']['L1']['reach']) == (64, 64 * force)
    if most > 2 * 1536:
        assert document['levels']['L2']['reach'] == 1536 * force and document['reasons'] == {}
    else:
        assert document['levels']['L2'] is None and 'with up to 2048 nodes' in document['reasons']['L2']
        assert levels['L2'] == []


def test_page_in_force_is_not_guessed():
    curves = probe_of(4096, 4096)
    curves[65536] = staircase([], noise=1.0)
    document, _ = tlb.found(curves)
    assert document['in_force'] is None and 'stride of 65536' in document['in_force_reason']
    assert document['levels']['L1'] is None or document['levels']['L1']['reach'] is None
    # All 2048 nodes fit 4096 bytes apart, 64 do 2^20 apart: somewhere between.
    curves = {4096: staircase([], most=2048), 2**20: staircase([(64, 1.7)], most=2048)}
    assert tlb.page_in_force(curves) == (None, 'one translation covers between 131072 and 1048576 bytes: other strides would tell')
    curves = probe_of(4096, 4096)
    curves[4096] = staircase([(1536, 12.0)])        # noise has hidden the first step
    assert tlb.found(curves)[0]['in_force_reason'] == 'the steps at strides of 4096 and 65536 bytes contradict each other'
    # At small strides something is there, and no step: whether pages are split cannot be told.
    curves = probe_of(2**21, 2**21, strides=(1 / 512, 1), most=2048)
    curves[4096].extra[:] += np.resize([0.0, 3.0], len(curves[4096].nodes))[:, None]
    assert tlb.page_in_force(curves)[0] is None


def test_hidden_at_most_strides_is_not_found():
    curves = probe_of(4096, 4096)
    for stride in (4096, 16384):
        curves[stride] = staircase([(64, 1.7)])
    document, _ = tlb.found(curves)
    assert document['levels']['L2'] is None and document['reasons']['L2'].startswith('2 of 3 strides show no step')


def test_layouts_must_come_in_pairs(programs):
    found = programs.measured('chase', '--size', '8,16', *QUICK).measurements
    with pytest.raises(PlumblineError, match='dense and strided in one group'):
        tlb.curves(found)
    found, = programs.measured('chase-serial', '--size', 200003, '--passes', 3, '--samples', 10).measurements
    assert found['valid'] and found['bytes'] == 3 * 65536 * 8


def test_curves_of_a_run(programs):
    found = programs.measured('chase', '--variants', 'all', '--size', '8,64', '--stride', '128,4096', *MEASURED).measurements
    curves = tlb.curves(found)
    assert list(curves) == [128, 4096]
    for curve in curves.values():
        assert curve.nodes.tolist() == [8, 64] and curve.extra.shape == (2, 10)
    dense, strided = found[:2]
    assert curves[128].extra[0, 3] == pytest.approx((strided['seconds'][3] - dense['seconds'][3]) / 8 * 1e9)


def test_sizes_hold_the_usual_entries_and_pages_are_this_nodes(tmp_path):
    found = tlb.sizes(16384)
    assert {32, 48, 64, 72, 96, 128, 160, 512, 1024, 1280, 1536, 2048, 3072, 4096} <= set(found)
    assert found == sorted(set(found)) and found[0] == 4 and found[-1] == 16384 and tlb.sizes(100)[-1] == 96
    assert tlb.page_sizes(tmp_path) == (os.sysconf('SC_PAGE_SIZE'), None)
    folder = tmp_path / 'sys/kernel/mm/transparent_hugepage'
    folder.mkdir(parents=True)
    (folder / 'hpage_pmd_size').write_text('2097152\n')
    assert tlb.page_sizes(tmp_path) == (os.sysconf('SC_PAGE_SIZE'), 2097152)


@pytest.mark.parametrize('pages, memory, reason', [
    ((4096, None), 2**40, 'this kernel has no transparent huge pages; see the same with base pages'),
    ((65536, 2**29), 2**38, 'of 256 GiB no more than 128 pages of 512 MiB are touched, so far apart: too few to see a TLB')])
def test_a_machine_whose_tlbs_cannot_be_seen_is_skipped(monkeypatch, pages, memory, reason):
    monkeypatch.setattr(tlb, 'page_sizes', lambda: pages)
    said = []

    def skip_test(why, metric):
        said.append((why, metric))
        raise SkipTestError
    with pytest.raises(SkipTestError):
        PROBE.options(SimpleNamespace(pages='huge', most_pages=0, memory=memory, skip_test=skip_test))
    assert said == [(reason, 'tlb_entries')]


def test_more_pages_than_there_is_memory_for_are_refused(monkeypatch):
    monkeypatch.setattr(tlb, 'page_sizes', lambda: (4096, 2**21))
    with pytest.raises(PlumblineError, match='most_pages=64: of .* no more than 32 pages of 2 MiB are touched, so far apart: give no more'):
        PROBE.options(SimpleNamespace(pages='huge', most_pages=64, memory=2**28))


# --- the checks --------------------------------------------------------------------------------------

def small():
    return [*rfm.small(), '-S', 'tlb.most_pages=64', '-S', 'latency_curve.points=6']


@pytest.fixture(scope='module')
def run(measuring, tmp_path_factory):
    place = measuring(tmp_path_factory.mktemp('run'))
    done = place.reframe(*small(), '-n', '^(latency( |%)|(latency_curve|tlb).*base)', checks=CHECKS / 'memory')
    assert done.report, done.out
    return place, done


def skipped_of(case):
    return {entry['metric'] for entry in case['plumbline'].get('skipped', ())}


def huge_pages_are_given():
    path = '/sys/kernel/mm/transparent_hugepage/enabled'
    return os.path.exists(path) and '[never]' not in open(path).read()


def test_checks_measure_or_say_why(run):
    _, done = run
    assert set(done.cases()) == {'latency %pages=huge', 'latency %pages=base', 'latency_curve %pages=base', 'tlb %pages=base'}
    for name, case in done.cases().items():
        # On a noisy machine a metric may miss its reference; nothing else may go wrong.
        assert case['result'] in ('pass', 'skip') or case['fail_phase'] == 'performance', case['fail_reason']
        if name.endswith('huge') and not huge_pages_are_given():
            assert case['result'] == 'skip'
            continue
        found = rfm.metrics_of(case)
        if not name.startswith('tlb'):
            pages = name.rpartition('=')[2]
            assert {f'latency.L1.{pages}', f'latency.memory.{pages}', f'growth.L2.{pages}'} <= set(found)
            assert 0 < found[f'latency.L1.{pages}']['value'] < 0.1 and found[f'latency.L1.{pages}']['unit'] == 'us'
            # A load takes three to six cycles on what there is; the rest is for clocks that change and cores that are shared.
            assert 1 < found[f'cycles.L1.{pages}']['value'] < 30 and f'cycles.memory.{pages}' in found
            assert (f'to_cover.memory.{pages}' in found) != (f'to_cover.memory.{pages}' in skipped_of(case))


def test_growth_is_over_the_level_below_and_no_other(measuring, tmp_path):
    '''Where L2 cannot be told from L1, L3 is not compared with L1.'''
    place = measuring(tmp_path, PLUMBLINE_CAPACITY=rfm.capacity(L2=20480))
    done = place.reframe(*small(), '-n', '^latency( |%).*base', checks=CHECKS / 'memory/latency.py')
    case, = done.cases().values()
    found, above = rfm.metrics_of(case), 'L3' if 'latency.L3.base' in rfm.metrics_of(case) else 'memory'
    assert 'latency.L2.base' not in found and not any(name in found for name in ('growth.L2.base', f'growth.{above}.base'))
    said = {entry['metric']: entry['reason'] for entry in case['plumbline']['skipped']}
    assert said[f'growth.{above}.base'] == 'L2 was not measured'


def test_probe_says_what_it_found_or_why_not(run):
    case = run[1].cases()['tlb %pages=base']
    text = f"{os.sysconf('SC_PAGE_SIZE') // 1024}KiB"
    found, skipped = rfm.metrics_of(case), skipped_of(case)
    assert f'latency.apart.{text}' in found and (f'page_in_force.{text}' in found) != (f'page_in_force.{text}' in skipped)
    for level in ('L1', 'L2'):
        name, miss = f'tlb_entries.{level}.{text}', f'latency.{level}_miss.{text}'
        assert ({name, miss} <= set(found) and found[name]['unit'] == 'entries') or {name, miss} <= skipped
    # As of 64-bit Arm with base pages of 64 KiB; 32 MiB, with pages of 16, are worth it.
    small = {'working_set': 2**28, 'huge_page_share': 0.0}
    assert tlb.larger_than(small, {'huge_page_size': 2**29}) == 2**29
    assert [tlb.larger_than(small | {'working_set': size}, {'huge_page_size': page}) for size, page in ((2**29, 2**29), (2**14, 2**25), (2**14, 2**21))] == [None] * 3
    assert tlb.larger_than(small, {}) is None


def test_the_kernel_says_how_large_a_huge_page_is(programs, tmp_path):
    (tmp_path / 'size').write_text(f'{2**25}\n')
    done = subprocess.run(finding(tmp_path / 'size', '/sys/kernel/mm/transparent_hugepage/hpage_pmd_size', programs.path('chase'), '--variants', 'strided',
                                  '--pages', 'huge', '--size', '100000', '--stride', str(2**26)), text=True, capture_output=True)
    assert 'its pages need 3355.4 GB' in done.stderr


#: Runs a command without transparent huge pages: prctl(PR_SET_THP_DISABLE).
WITHOUT_HUGE_PAGES = [sys.executable, '-c', 'import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); ' 'os.execv(sys.argv[1], sys.argv[1:])']


def test_huge_pages_that_were_not_given_are_said(measuring, tmp_path):
    done = measuring(tmp_path).reframe(*small(), '-n', '^(latency|tlb)( |%).*huge', checks=CHECKS / 'memory', before=WITHOUT_HUGE_PAGES)
    cases = done.cases()
    assert set(cases) == {'latency %pages=huge', 'tlb %pages=huge'}, done.out
    for case in cases.values():
        assert case['result'] == 'skip' and 'metrics' not in {k for k, v in case['plumbline'].items() if v}
        # The words by which a sweep knows the cause (no_huge_pages of data/diagnosis.yaml), of a node that lacks the test.
        assert case['plumbline']['skipped'][0]['reason'].startswith('huge pages were asked for, and not given')


def test_huge_pages_that_the_references_had_and_the_machine_has_no_longer_are_a_fail(measuring, tmp_path):
    place, huge = measuring(tmp_path, PLUMBLINE_REFERENCES=tmp_path / 'references'), ['-r', *small(), '-n', '^latency( |%).*huge']
    (tmp_path / 'references').mkdir()
    shutil.copy(rfm.REPOSITORY / 'config/references/portable.yaml', tmp_path / 'references')
    with_them = place.reframe(*huge, checks=CHECKS / 'memory/latency.py')
    place.judge()
    if with_them.cases()['latency %pages=huge']['result'] == 'skip':
        pytest.skip('this machine gives no huge pages')
    assert place.accept('localhost').code == 0
    without = place.reframe(*huge, checks=CHECKS / 'memory/latency.py', before=WITHOUT_HUGE_PAGES)
    reason = without.cases()['latency %pages=huge']['fail_reason']
    assert without.code == 1 and 'huge pages were asked for, and not given' in reason and 'they were when the references of' in reason
    said = place.judge()
    assert said.code == 1 and 'huge pages were asked for' in said.out


def test_where_nobody_knows_whether_pages_are_huge_the_probe_says_so(monkeypatch):
    '''A kernel without smaps_rollup.'''
    class LeftOut(Exception):
        pass

    def skip_test(reason, metric, had):
        raise LeftOut(reason)
    monkeypatch.setattr(tlb, 'curves', lambda measurements: {})
    case = SimpleNamespace(measurements=[], pages='huge', share_of_huge_pages=lambda: None, skip_test=skip_test)
    with pytest.raises(LeftOut, match='whether the pages are huge is not known here'):
        list(PROBE.evaluate(case))
    assert [tlb.given(share) for share in (None, 0.89, 0.9)] == [False, False, True]


@pytest.mark.parametrize('check', ['latency', 'latency_curve', 'tlb'])
def test_figures(run, check):
    mine = [rfm.detail_of(check, case) for name, case in run[1].cases().items() if name.split()[0] == check and case['result'] != 'skip']
    drawn = list(figures.FIGURES[check](mine))
    assert drawn and all(figure is not None and caption for _, caption, figure in drawn)
