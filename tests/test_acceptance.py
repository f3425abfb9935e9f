'''``plumbline acceptance``: what is signed says what was measured, what was judged, by what, and what was not.'''

import datetime
import hashlib
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import sample_session as sample
from made_report import MACHINE, case, metric, result, write_report
from plumbline import schemas
from plumbline.analysis import answers
from plumbline.analysis.session import Session
from plumbline.cli import app
from plumbline.comparison import acceptance
from plumbline.errors import PlumblineError
from plumbline.model import verdict
from plumbline.report import acceptance as documents
from plumbline.schemas import parsing
from plumbline.store import archive
from plumbline.sweep import results, state
from test_collect import collected

NAMES = '''schema: 1
site: Centre <script>
machine: Machine & Sons
supplier: S
sign:
  - {role: for the site, name: A. Nother}
'''


@pytest.fixture
def node(tmp_path):
    '''Function (number, metrics, changes of the case) -> the name of an archived session of a node.'''
    def make(number, *metrics, **changed):
        left = result(*metrics) if metrics else None
        cases = [case(plumbline=left, job_nodelist=[f'n{number}'], **changed)]
        report = write_report(tmp_path / f'{number}.json', cases, start=1.8e9 + 3600 * number, uuid=f'{number:08}-0')
        return archive.archive(report, tmp_path / 'archive').stem
    return make


def run(folder, *options):
    return CliRunner().invoke(app, ['acceptance', '--archive', str(folder / 'archive'), *map(str, options)])


PREDICTED = {'expected': {'deviation': 0.02, 'freedom': 8.0, 'measured': {f's{number}': 1000.0 for number in range(6)}}}


def test_nodes_classes_and_what_each_value_was_judged_by(tmp_path, node):
    good = node(1, metric('bandwidth.plain', 1000.0, **PREDICTED), metric('of_limit.plain', 0.9, '1', reference_from='portable.yaml'),
                metric('of_peak.memory', 0.8, '1'), metric('bandwidth.nt', 900.0, reference=None, reference_from=None, verdict='NO REFERENCE'))
    slow = node(2, metric('bandwidth.plain', 700.0, reference=[1000.0, -0.1, None], verdict='FAIL', reason='too slow', **PREDICTED))
    crashed = node(3, result='fail', fail_phase='run', fail_reason='<b>killed</b>')
    found = acceptance.read([good, slow, crashed], tmp_path / 'archive')
    assert [(one.nodes, one.worst) for one in found.sessions] == [(['n1'], 'NO REFERENCE'), (['n2'], 'FAIL'), (['n3'], 'FAIL')]
    assert {name: [group.line.hostname for group in groups] for name, _, groups in found.classes} == {'no number': ['n3'], 'speed': ['n2']}
    assert found.verdict == 'FAIL' and found.exit_status == 1 and sum(found.judged.values()) == 5
    assert {group.line.metric: acceptance.basis(group.line) for group in found.groups if group.line.hostname == 'n1'} == {
        'bandwidth.plain': 'reference of several sessions', 'of_limit.plain': "the machine's own limits", 'of_peak.memory': 'datasheet', 'bandwidth.nt': ''}
    path = archive.file_of(tmp_path / 'archive', slow)
    assert found.sessions[1].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / 'names.yaml').write_text(NAMES)
    done = run(tmp_path, good, slow, crashed, '--names', tmp_path / 'names.yaml', '--output', tmp_path / 'a.html')
    page = (tmp_path / 'a.html').read_text()
    assert done.exit_code == 1 and 'Out of bounds: software 1 of 2, speed 1 of 3, measurement 0 of 0 judged values FAIL.' in page
    assert 'Centre &lt;script&gt;' in page and '&lt;b&gt;killed' in page and '<script' not in page and 'A. Nother' in page


def test_what_was_not_judged_is_no_pass(tmp_path, node):
    '''Shares of the machine's own limits within bounds, and nothing known of its speed.'''
    node(1, metric('of_limit.plain', 0.9, '1', reference_from='portable.yaml'),
         metric('bandwidth.plain', 1.0, reference=None, reference_from=None, verdict='NO REFERENCE'))
    done = run(tmp_path, '--output', tmp_path / 'a.html')
    assert done.exit_code == 3 and 'NO REFERENCE, values judged in 1 session: software 1, speed 0, measurement 0' in done.output
    assert 'Not judged in full: software 1 of 1, speed 0 of 0, measurement 0 of 0 judged values are within bounds; not judged: speed' in (tmp_path / 'a.html').read_text()


def healthy(*more, number=0, speed=1.0):
    '''A session that answers each question with a PASS, and has further cases.'''
    metrics = [sample.predicted(variant, 1 - speed) for variant in sample.HISTORY]
    case = sample.case('triad_memory', [*metrics, sample.metric('of_limit.plain', 0.9), sample.metric('cpu_availability', 0.99)], threads='one')
    when = datetime.datetime(2026, 1, 1 + number, tzinfo=datetime.timezone.utc)
    return sample.frame(*([row | {'session': f'{when:%Y%m%dT%H%M%SZ}-s', 'started': when} for row in rows] for rows in (case, *more)))


def test_a_skipped_test_that_has_references_is_no_pass(tmp_path):
    for recorded, said, status in ((0, 'PASS', 0), (5, 'UNSTABLE', 3)):
        gone = sample.case('cores', result='skip', detail={'skipped': [{'metric': 'all', 'reason': 'there is one CPU', 'recorded': recorded}]})
        archive.write(healthy(gone), tmp_path / 'archive')
        done = run(tmp_path, '--output', tmp_path / 'a.html')
        assert done.exit_code == status and done.output.startswith(f'sample: {said}, values judged in 1 session: software 1, speed 12, measurement 1')
    text = (tmp_path / 'a.html').read_text()
    why = 'NOT JUDGED: cores, not measured (there is one CPU; references are recorded of 5 of its metrics)'
    assert f'20260101T000000Z-s: {why}\n' in done.output and f'<b>20260101T000000Z-s:</b> {why}.' in text
    assert 'Not decided: software 0 of 1, speed 0 of 12, measurement 0 of 1 judged values could not be told for noise, 5 that have references were not measured; none FAILs.' in text


def test_a_node_whose_speed_was_not_judged_is_no_pass_by_the_others(tmp_path):
    others = [sample.metric('of_limit.plain', 0.9), sample.metric('cpu_availability', 0.99)]
    for rate, said, status in ((sample.metric('bandwidth.plain', 900.0, 'MB/s', reference=None), 'NO REFERENCE', 3),
                               (sample.predicted('v0', 0.0), 'PASS', 0)):
        of_other = sample.case('triad_memory', [rate, *others], host='n2', partition='himem', threads='one')
        archive.write(healthy(of_other), tmp_path / 'archive')
        done = run(tmp_path, '--output', tmp_path / 'a.html')
        assert done.exit_code == status and done.output.startswith(f'sample: {said}, values judged in 1 session: ')
        assert ('<td>n2</td><td>not judged: speed</td>' in (tmp_path / 'a.html').read_text()) == bool(status)


def test_a_session_that_was_broken_off_is_no_pass(tmp_path):
    archive.write(healthy(sample.case('cores', result='skip', fail_reason='aborted due to KeyboardInterrupt')), tmp_path / 'archive')
    done = run(tmp_path, '--output', tmp_path / 'a.html')
    assert done.exit_code == 2 and done.output.startswith('sample: NO REFERENCE, values judged in 1 session'), done.output
    assert '20260101T000000Z-s: BROKEN OFF by SIGINT: tests are missing, and this is not a pass\n' in done.output
    assert 'not judged: tests that are missing; broken off before its end: 20260101T000000Z-s (by SIGINT).' in (tmp_path / 'a.html').read_text()


def test_what_is_unstable_is_not_accepted(tmp_path):
    '''Nor is what a disturbed session measured.'''
    noisy = sample.case('gather', [sample.metric('of_parts.x', 0.6, verdict='UNSTABLE'), sample.metric('of_parts.y', 0.9) | {'sees': 0.3}])
    taken = {'record': 'contention', 'schema': 1, 'threads': 2, 'elapsed': 5.0, 'throttled': 0, 'waited': 2.0, 'stolen': 0.0}
    disturbed = sample.case('cores', [sample.metric('of_base.one', 1.2)], detail={'contention': [taken]})
    for number, (more, status, text) in enumerate([
            (noisy, 0, 'software 1 of 3, speed 0 of 12, measurement 0 of 1 judged values could not be told for noise; none FAILs.'),
            (disturbed, 3, 'for noise; the measurement: disturbed: The threads did not have the CPUs to themselves; none FAILs.')]):
        archive.write(rows := healthy(more, number=number), tmp_path / 'archive')
        done = run(tmp_path, '--output', tmp_path / 'a.html')
        assert (Session(rows).exit_status(), done.exit_code) == (status, 3) and done.output.startswith('sample: UNSTABLE, '), done.output
        assert text in (tmp_path / 'a.html').read_text()


@pytest.mark.slow
def test_a_lasting_loss_is_no_pass(tmp_path):
    '''Each night within its bounds, and 5 % worse for half of them: exit 1 of plumbline report, too.'''
    noise = np.random.default_rng(1).normal(0, 0.005, 24)
    for number, one in enumerate(noise):
        archive.write(healthy(number=number, speed=float(np.exp(one)) * (0.95 if number >= 12 else 1.0)), tmp_path / 'archive')
        if number == 11:
            assert run(tmp_path, '--output', tmp_path / 'a.html').exit_code == 0
    done = run(tmp_path, '--output', tmp_path / 'a.html')
    assert done.exit_code == 1 and done.output.startswith('sample: FAIL, values judged in 1 session: software 1, speed 12, ')
    text = (tmp_path / 'a.html').read_text()
    assert 'Out of bounds: software 0 of 1, speed 0 of 12, measurement 0 of 1 judged values FAIL; lasting loss: memory, one thread, rates and times.' in text
    assert 'memory, one thread, rates and times: 5.' in text and ' % worse since session 20260113T' in text


@pytest.mark.parametrize('counts, said, status, worst', [
    ({}, [], 2, 'NO REFERENCE'), ({'PASS': 3}, ['PASS', 'PASS', 'PASS'], 0, 'PASS'), ({'PASS': 3}, ['PASS', 'NO REFERENCE', 'PASS'], 0, 'NO REFERENCE'),
    ({'UNSTABLE': 1}, ['PASS', 'NO REFERENCE', 'PASS'], 3, 'UNSTABLE'), ({'KNOWN ISSUE': 1}, ['PASS', 'PASS', 'PASS'], 0, 'KNOWN ISSUE'),
    ({'PASS': 3}, ['PASS', 'FAIL', 'PASS'], 1, 'FAIL'), ({'PASS': 3}, ['PASS', 'PASS', 'PASS'], 3, 'UNSTABLE'),
    ({'PASS': 3}, ['PASS', 'PASS', 'PASS'], 1, 'FAIL')])
def test_the_worst_counts(counts, said, status, worst):
    given = [answers.Answer(question, ruling, '') for question, ruling in zip(('software', 'speed', 'measurement'), said)]
    assert acceptance.worst(counts, given, status) == worst
    assert set(documents.VERDICTS) == set(verdict.SEVERITY)


@pytest.mark.slow
def test_the_document_as_pdf(tmp_path, node):
    pytest.importorskip('weasyprint', reason='WeasyPrint or Pango is not there')
    node(1, metric())
    done = run(tmp_path, '--output', tmp_path / 'a.pdf')
    assert done.exit_code in (0, 3), done.exception
    assert (tmp_path / 'a.pdf').read_bytes().startswith(b'%PDF') and (tmp_path / 'a.pdf').stat().st_size > 10_000


def test_a_document_of_another_kind_is_none(tmp_path, node, monkeypatch):
    node(1, metric())
    assert str(run(tmp_path, '--output', tmp_path / 'a.txt').exception) == f'{tmp_path}/a.txt: a document is .pdf or .html'
    monkeypatch.setitem(sys.modules, 'weasyprint', None)
    node(1, metric())
    done = run(tmp_path, '--output', tmp_path / 'a.pdf')
    assert isinstance(done.exception, PlumblineError) and '\n' not in str(done.exception)
    assert "pip install 'plumbline[pdf]'" in str(done.exception) and not (tmp_path / 'a.pdf').exists()


@pytest.mark.parametrize('text, said', [('schema: 1\nsite: a\n', "'machine' is a required property"), (NAMES.replace('role', 'rol'), 'field sign/0'),
                                        ('[', 'not YAML')])
def test_a_file_of_names_that_is_wrong(tmp_path, node, text, said):
    node(1, metric())
    (tmp_path / 'names.yaml').write_text(text)
    done = run(tmp_path, '--names', tmp_path / 'names.yaml', '--output', tmp_path / 'a.html')
    assert isinstance(done.exception, PlumblineError) and said in str(done.exception)


def test_sessions_of_two_systems(tmp_path, node):
    names = [node(1, metric()), node(2, metric(), system='other')]
    done = run(tmp_path, *names, '--output', tmp_path / 'a.html')
    assert 'sessions of several systems: made, other' in str(done.exception)


def test_the_names_in_the_documentation_are_right(repository):
    text = (repository / 'docs/howto/acceptance.rst').read_text()
    block = text.partition('.. code-block:: yaml\n\n')[2].partition('\n\n')[0]
    given = parsing.parse('\n'.join(line[4:] for line in block.splitlines()))
    assert schemas.complaint('acceptance', given) is None


def test_a_sweep_is_not_accepted_without_its_nodes(tmp_path, monkeypatch):
    monkeypatch.setattr(results, 'ARCHIVE', tmp_path / 'archive')
    plan = {'id': 'acc', 'nodes': dict.fromkeys(['n1', 'n2', 'n3', 'n4'], ''), 'partition': 'batch', 'command': [], 'access': [], 'pace': {}, 'checks': 1}
    sweep = state.create(tmp_path / 'acc', plan, '')
    sweep.begin()
    for number, name in enumerate(('n1', 'n2')):
        (sweep.folder / name).mkdir(exist_ok=True)
        metrics = [metric('bandwidth.plain', 1000.0, **PREDICTED), metric('of_limit.plain', 0.9, '1', reference_from='portable.yaml'),
                   metric('cpu_availability', 0.99, '1', reference=[1.0, -0.3, 0], reference_from='portable.yaml')]
        write_report(sweep.folder / name / 'run.json', [case(job_nodelist=[name], plumbline=result(*metrics))], start=1.8e9 + number, uuid=f'{number:08}-0')
        sweep.record(sweep.nodes[name], state.OVER, state=state.MEASURED)

    def said():
        done = run(tmp_path, sweep.folder, '--output', tmp_path / 'a.html')
        return done.exit_code, (tmp_path / 'a.html').read_text()

    sweep.record(sweep.nodes['n3'], state.OVER, state='down', reason='not responding')
    code, page = said()
    assert code == 3 and 'Not judged in full' in page and 'not measured: down: not responding' in page and 'n4' in page
    sweep.record(sweep.nodes['n4'], state.OVER, state='failed', reason='it crashed')
    code, page = said()
    assert code == 1 and 'nodes not in order, not measured, or not judged: n3, n4' in page and 'not measured: failed: it crashed' in page


@pytest.mark.parametrize('rates, other, status, node, why', [
    ((100, 100, 100, 60, 60, 60, 60), {}, 1, 'nodes of two sorts', 'flops.x: no node stands out, but 4 and 3 nodes are of two sorts, 66.7 % apart'),
    ((100, 100, 100, 100), {'cpu_model': 'Another CPU'}, 3, 'n0', 'not judged, since fewer than 3 nodes are peers in it: ')])
def test_what_the_ranking_of_a_sweep_cannot_clear_is_not_accepted(tmp_path, monkeypatch, rates, other, status, node, why):
    monkeypatch.setattr(results, 'ARCHIVE', tmp_path / 'archive')
    passed = [metric('bandwidth.plain', 1000.0, **PREDICTED), metric('of_limit.plain', 0.9, '1', reference_from='portable.yaml'),
              metric('cpu_availability', 0.99, '1', reference=[1.0, -0.3, 0], reference_from='portable.yaml')]
    unjudged = {'unit': 'Mflop/s', 'reference': None, 'reference_from': '', 'verdict': 'NO REFERENCE'}
    work, _ = collected(tmp_path / 's', {f'n{number}': [case(plumbline=result(
        *passed, metric('flops.x', rate, **unjudged), machine=MACHINE | (other if not number else {})))] for number, rate in enumerate(rates)})
    found = acceptance.read([str(work.folder)], tmp_path / 'archive')
    assert found.exit_status == status and [(name, why in told) for _, name, told in found.nodes] == [(node, True)]
