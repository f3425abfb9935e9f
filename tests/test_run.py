'''One real health run of small sizes: the real programs, the real LIKWID, to the page.  (A real build: ``test_package.py``.)'''

import re
import shutil

import polars as pl
import pytest

import rfm
from chromium import PHONE, Chromium
from plumbline.store import archive

CHECKS = rfm.REPOSITORY / 'checks'
SELECTED = 'triad_memory|triad_curve%threads=one|limits%threads=one'


@pytest.fixture(scope='module')
def place(measuring, built_already, tmp_path_factory):
    folder = tmp_path_factory.mktemp('run')
    shutil.copytree(rfm.REPOSITORY / 'config/references', folder / 'references')
    (folder / 'references/localhost.yaml').unlink(missing_ok=True)
    return measuring(folder, built_already, PLUMBLINE_REFERENCES=folder / 'references')


@pytest.fixture(scope='module')
def first(place):
    '''(run, what is said of it).'''
    done = place.reframe(*rfm.small('L1'), '-t', 'health', '-S', 'triad_curve.points=8', '-S', 'triad_curve.into_memory=no', '-n', SELECTED,
                         checks=CHECKS / 'memory')
    assert done.report, done.out
    judged = place.judge()
    shutil.copy(place.folder / 'reports/latest/index.html', place.folder / 'first.html')
    return done, judged


def metrics_of(done):
    '''(check, threads, name) -> metric of a run.'''
    return {(name.split()[0], case['plumbline']['threads'], metric['name']): metric
            for name, case in done.cases().items() for metric in case['plumbline']['metrics']}


def test_everything_selected_was_measured(first):
    done, judged = first
    assert len(done.cases()) == 4
    for case in done.cases().values():
        rfm.assert_measured(case)
        left = case['plumbline']
        assert left['machine'] and left['timed_seconds'] > 0
        for record in left['records']:
            assert len(record['seconds']) == 10 and record['valid']
            assert record['cpus'] == left['records'][0]['cpus']
    curve = next(case['plumbline'] for name, case in done.cases().items() if name.startswith('triad_curve'))
    levels = {record['level'] for record in curve['records']}
    assert 'memory' not in levels and 'L2' in levels, [(r['kernel'], r['size'], r['level'], r.get('working_set'), r.get('bytes')) for r in curve['records']]
    assert {'of_limit.plain', 'bandwidth.nt'} <= {name for _, _, name in metrics_of(done)}
    assert judged.code in (0, 1, 3), judged.out
    assert 'Traceback' not in done.out + judged.out
    assert (judged.code == 1) == (' FAIL\n' in judged.out)


def test_likwid_pins_and_confirms(first):
    if not shutil.which('likwid-pin'):
        pytest.skip('LIKWID is not installed')
    cases = first[0].cases()
    all_threads = cases['triad_memory %threads=all']['plumbline']['records'][0]['threads']
    for case in cases.values():
        left = case['plumbline']
        assert left['command'].startswith('likwid-pin -q -c ')
        assert left['cross_check_reason'] is None
        assert {sample['level'] for sample in left['cross_check']} == {'L1'}
        assert {sample['threads'] for sample in left['cross_check']} == {1, all_threads}
        assert all(sample['own_rate'] > 0 for sample in left['cross_check'])
    notes = cases['triad_memory %threads=one']['plumbline']['notes']
    assert any('memory, 1 threads: not confirmed by likwid-bench' in note for note in notes)


def test_archive_holds_the_run(place, first):
    rows = archive.load_session(place.folder / 'reports/archive')
    measured = rows.filter(pl.col('metric').is_not_null())
    assert len(measured) == len(metrics_of(first[0]))
    # The machine may change its state in between: such samples are set aside, and counted.  One share is of all samples.
    for row in measured.filter(pl.col('metric') != 'of_steady').select('samples', 'set_aside').iter_rows(named=True):
        assert 10 - (row['set_aside'] or 0) <= len(row['samples']) <= 10
    assert set(rows.filter(pl.col('fixture'))['check']) == {'native_programs', 'likwid_bench'}


def test_reference_above_what_was_possible_is_left_out_alone(place, first):
    machine = place.folder / 'machine.yaml'
    machine.write_text('schema: 1\ncore: {clock: 0.001, clock_source: made, source: made,\n'
                       '       load_bytes_per_cycle: 1, store_bytes_per_cycle: 1}\n')
    done = place.accept('localhost', '--tests', '^limits', '--machine', machine, '--output', place.folder / 'left.yaml')
    assert done.code == 0, done.out
    assert re.search('no reference: limits/.*/bandwidth.L1: .* is above the hardware limit of L1/one, 2 MB/s; ', done.out)
    assert 'bandwidth.L1' not in (place.folder / 'left.yaml').read_text()


# --- the page -----------------------------------------------------------------------------------

def test_page_in_a_browser(place, first, browser):
    '''No error of a script, figures drawn, nothing wider than the window of a phone.'''
    opened = Chromium(browser, place.folder / 'chromium')
    opened.open(place.folder / 'first.html', PHONE)
    opened.js('document.querySelectorAll("details").forEach(section => section.open = true)')
    opened.drawn()
    assert opened.js('document.querySelectorAll(".main-svg").length') >= 2 and opened.js('document.documentElement.scrollWidth') <= PHONE
    assert opened.said == []
    opened.close()
