'''Checks of other suites beside ours: run, archived, judged by ReFrame's references and by their own history, in the same report.'''

import polars as pl
import pytest

import rfm
from plumbline import references
from plumbline.store import archive

SUITE = rfm.REPOSITORY / 'tests/data/foreign/suite.py'
STREAM = rfm.REPOSITORY / 'docs/tutorials/stream/site_stream.py'


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    return rfm.with_stream(tmp_path_factory.mktemp('both'))


def both(place, *options, **environment):
    '''Run our check and theirs, and report: (run, report, rows of the archive).'''
    done = place.reframe('-r', '-c', SUITE, *options, checks=STREAM, **environment)
    assert done.report, done.out
    judged = place.judge()
    assert 'Traceback' not in done.out + judged.out
    return done, judged, archive.load_session(place.folder / 'reports/archive')


def verdicts(rows):
    '''(display name, metric) -> verdict, of what is no fixture.'''
    return {(row['display_name'], row['name']): row['verdict'] for row in rows.to_dicts() if not row['fixture']}


@pytest.fixture(scope='module')
def first(place):
    return both(place)


def test_reframes_own_word_counts(first):
    done, judged, rows = first
    assert {name: one['result'] for name, one in done.cases().items()} == {
        'site_stream': 'pass', 'their_stream %size=10': 'pass', 'their_stream %size=20': 'pass', 'their_application': 'pass',
        'their_mount': 'pass', 'their_driver': 'fail', 'their_dimm': 'xfail'}
    assert verdicts(rows) == {
        ('site_stream', 'bandwidth.triad'): 'NO REFERENCE', **{(f'their_stream %size={size}', name): verdict for size in (10, 20)
                                                             for name, verdict in (('copy', 'PASS'), ('latency', 'NO REFERENCE'))},
        ('their_application', 'elapsed'): 'PASS', ('their_application', 'energy'): 'PASS', ('their_application', 'steps'): 'NO REFERENCE',
        ('their_mount', None): 'PASS', ('their_driver', None): 'FAIL', ('their_dimm', 'triad'): 'KNOWN ISSUE'}
    assert judged.code == 1 and 'measured nothing' not in judged.out and 'no driver 5' in judged.out
    # "latency" is a word of ours, too; theirs tells nothing of our memory.
    assert set(rows.filter(pl.col('name') == 'latency')['metric']) == {'other'} and not rows['level'].drop_nulls().is_in(['L1', 'memory']).any()


def test_the_log_and_the_archive_have_the_same_values(place, first):
    rows = {row['name']: row['value'] for row in first[2].to_dicts()}
    log, = (place.folder / 'reports/perflogs').rglob('their_application.log')
    names, *lines = (line.split('|') for line in log.read_text().splitlines())
    logged = {entry['perf_var']: float(entry['perf_value']) for entry in (dict(zip(names, line)) for line in lines)}
    assert logged == {name: rows[name] for name in ('elapsed', 'energy', 'steps')}
    page = (place.folder / 'reports/latest/index.html').read_text()
    for text in ('site_stream', 'their_stream', 'copy', '12.5 GB/s', 'their_mount', 'it measures nothing', 'own reference (xfail)', 'no driver 5'):
        assert text in page, text
    assert place.plumbline('report', '--junit', place.folder / 'junit.xml').code == 1
    said = (place.folder / 'junit.xml').read_text()
    assert '<testcase classname="their_mount" name="the test" />' in said and 'KNOWN ISSUE: known by the test' in said


def test_their_history_becomes_references(place, first):
    accepted = place.accept('made')
    assert accepted.code == 0, accepted.out
    content = references.load(place.folder.parent / 'references/made.yaml')
    entry = content['their_stream']
    assert entry['$index'] == ['$partition', '$environ', 'size']
    copy, latency = (entry['made:cpu']['gnu']['10'][name] for name in ('copy', 'latency'))
    assert (copy[0], copy[2], copy[3]) == (12.5, None, 'GB/s') and -0.6 < copy[1] < -0.1      # a lower bound in ReFrame, and here
    assert (latency[0], latency[3]) == (3.25, 'us') and latency[1] < 0 < latency[2]             # none there: both here
    assert content['their_application']['made:cpu']['gnu']['elapsed'][1] is None
    assert 'their_application/made:cpu/gnu/energy: not a positive finite value' in accepted.out
    assert 'triad' not in content.get('their_dimm', {}) and 'known issue' in accepted.line('no reference: their_dimm')
    assert 'other suites: 6 metrics' in accepted.out
    assert place.plumbline('references', 'check').code == 0

    _, judged, rows = both(place, '-n', '^(?!their_driver)')
    assert judged.code == 0, judged.out
    steps, = rows.filter(pl.col('name') == 'steps').to_dicts()
    assert (steps['verdict'], steps['reference_from'], steps['reference']) == ('PASS', 'made.yaml', 80.0) and 0.1 < steps['sees'] < 0.7
    assert 'other suites: rates and times' in judged.out

    # Of two of these ReFrame says nothing: they have no reference there.
    _, judged, rows = both(place, '-n', '^their_(stream|application)', THEIR_SPEED='0.3')
    found = verdicts(rows)
    assert judged.code == 1 and found['their_application', 'steps'] == found['their_stream %size=10', 'latency'] == 'FAIL'
    assert found['their_stream %size=10', 'copy'] == 'FAIL' and '3.75 is below 10.00 GB/s, by ReFrame; 3.75 is below' in judged.out


def test_a_figure_that_is_no_longer_read_is_a_fail(place, first):
    '''ReFrame only warns.'''
    if not (place.folder.parent / 'references/made.yaml').exists():
        place.accept('made')
    done, judged, rows = both(place, '-n', 'their_stream', THEIR_LOSS='1')
    assert {one['result'] for one in done.cases().values()} == {'pass'}
    assert judged.code == 1 and 'not measured: latency of made.yaml: ReFrame only warns of what it cannot evaluate' in judged.out


def test_what_hpctestlib_has_is_archived_judged_and_shown(tmp_path):
    place = rfm.with_stream(tmp_path)
    for verdict in ('NO REFERENCE', 'PASS'):
        done = place.reframe('-r', '-c', SUITE.with_name('hpctestlib_style.py'), checks=STREAM)
        judged = place.judge()
        assert done.code == judged.code == 0, done.out + judged.out
        names = {figure: f'site_mpi %benchmark_info=mpi.pt2pt.standard_{name} %binaries.build_type=cpu' for figure, name in (('bandwidth', 'bw'), ('latency',) * 2)}
        assert verdicts(archive.load_session(place.folder / 'reports/archive')) == {
            ('site_stream', 'bandwidth.triad'): verdict, **{(name, figure): verdict for figure, name in names.items()}}
        page = (place.folder / 'reports/latest/index.html').read_text()
        assert 'mpi.pt2pt.standard_latency' in page and '3.25 us' in page
        if verdict != 'PASS':
            assert place.accept('made').code == 0
    entry = references.load(tmp_path / 'references/made.yaml')['site_mpi']
    assert entry['$index'] == ['$partition', '$environ', 'benchmark_info', 'binaries.build_type']
    assert entry['made:cpu']['gnu']['mpi.pt2pt.standard_bw']['cpu']['bandwidth'][3] == 'MB/s'
