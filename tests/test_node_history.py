'''Which nodes a sweep is of, and what is known of each node: selection, journal of events, history, tickets, marks.'''

import contextlib
import dataclasses
import datetime
import json
import os
import re
import threading
import time
from types import SimpleNamespace

import polars as pl
import pytest
from typer.testing import CliRunner

import sample_session as sample
from plumbline.analysis import archived, history as over_sessions
from plumbline.cli import app, nodes as command, sweep as sweep_command
from plumbline.errors import PlumblineError
from plumbline.nodes import events, history
from plumbline.references.choice import Choice
from plumbline.report import outliers as report
from plumbline.store import archive
from plumbline.sweep import allowance, confirm, driver, findings, node as job, outliers, plan, proposals, ranking, remeasure, scatter, slurm, state
from plumbline.sweep.lacking import Lack
from plumbline.sweep.selection import Limits, Selection, chosen
from plumbline.sweep.slurm import Node, Reservation, satisfies
from plumbline.system.commands import NoAnswer
from test_ranking import WHOLE, among, held_against_itself, numbered, swept, table

NODES = {name: Node(name, at, '', frozenset(features.split()), 'none') for name, at, features in (
    ('n1', 'idle', 'fast'), ('n2', 'allocated', 'fast gpu'), ('n3', 'idle', 'gpu'), ('n4', 'drained', 'fast'), ('n5', 'maint', 'slow'))}
MAINT = Reservation('maint', 'ACTIVE', 0.0, time.time() + 3600, frozenset({'n3', 'n5', 'elsewhere'}))


def names(reservation=None, known=None, **options):
    return [node.name for node in chosen(NODES, Selection(**options).checked(), reservation, lambda: known)]


# --- selection -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('options, found', [
    ({}, ['n1', 'n3', 'n2', 'n4', 'n5']), ({'nodes': 'idle'}, ['n1', 'n3']), ({'nodes': 'n[3-4,1]', 'exclude': 'n4'}, ['n1', 'n3']),
    ({'feature': 'fast'}, ['n1', 'n2', 'n4']), ({'feature': 'fast&gpu'}, ['n2']), ({'feature': 'slow|gpu', 'exclude': 'n2'}, ['n3', 'n5']),
    ({'reservation': MAINT}, ['n3', 'n5']), ({'reservation': MAINT, 'nodes': 'idle'}, ['n3', 'n5'])])
def test_options_leave_nodes(options, found):
    assert names(**options) == found


def test_slurm_reads_features_from_the_left():
    '''As tests/test_sweep_limits.py asks it.'''
    assert [satisfies('a|b&c', set(features)) for features in ('a', 'b', 'bc', 'ac')] == [False, False, True, True]


@pytest.mark.parametrize('options, said', [
    ({'feature': 'none'}, '^no node is left: 5 in the partition, 0 of them with none$'),
    ({'nodes': 'idle', 'feature': 'slow'}, r'no node is left: 5 in the partition, 1 of them with slow, 0 of them idle \(they are maint\)'),
    ({'reservation': MAINT, 'exclude': 'n[3,5]'}, r'2 of them in reservation maint, 0 of them not excluded \(n\[3,5\]\)'),
    ({'nodes': 'n4', 'random': 1}, 'n4, 0 of them in service'), ({'exclude': 'n9'}, 'n9: not in the partition'),
    ({'random': 1, 'due': 1}, '--random and --due'), ({'seed': 1}, '--seed is that of --random'), ({'feature': '[a*2]'}, r'write names with & or \|')])
def test_options_that_leave_nothing_are_said_in_a_line(options, said):
    with pytest.raises(PlumblineError, match=said):
        names(**options)


def test_a_seed_draws_the_same_nodes_again():
    many = {f'n{i}': Node(f'n{i}', 'idle', '', frozenset(), 'none') for i in range(100)}

    def drawn(order, **options):
        return {node.name for node in chosen({name: many[name] for name in order}, Selection(random=10, **options).checked(), None, None)}

    assert len(drawn(many, seed=7)) == 10 and drawn(many, seed=7) == drawn(reversed(many), seed=7) != drawn(many, seed=8)
    assert Selection(random=3).checked().seed != Selection(random=3).checked().seed
    assert set(names(random=9, seed=1)) == {'n1', 'n2', 'n3', 'n5'}         # as many as there are, and none out of service


# --- the journal ---------------------------------------------------------------------------------------------------

@pytest.fixture(autouse=True)
def journal(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, 'ask', lambda *_: '')        # it knows no node
    monkeypatch.setattr(events, 'FOLDER', tmp_path / 'nodes')
    return tmp_path / 'nodes/made.jsonl'


def measured(node, at, sweep='s1', verdict='PASS', rank='in order', **more):
    return {'node': node, 'at': float(at), 'event': 'measured', 'sweep': sweep, 'verdict': verdict, 'rank': rank, 'hours': 0.5,
            'partition': 'made:cpu', **more}


def test_several_writers_lose_no_event(journal):
    writers = [threading.Thread(target=lambda who=who: [events.append('made', [measured(f'n{who}', at)]) for at in range(50)]) for who in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    said, skipped = events.read('made')
    assert skipped == [] and sorted((event['node'], event['at']) for event in said) == [(f'n{who}', at) for who in range(4) for at in range(50)]


GARBAGE = ['', '{"node": "n1", "ev', '[]', '7', '{"node": "n1"}', '{"node": "../n1", "at": 1, "event": "measured"}',
           '{"node": "n1", "at": "now", "event": "drained"}', '{"node": "n1", "at": NaN, "event": "drained"}', '{"node": "n1", "at": 1, "event": "eaten"}',
           '{"node": "n1", "at": 1, "event": "measured", "hours": -1}', '{"node": "n1", "at": 1, "event": "outlier", "evidence": []}', '[' * 100000, '\x00\xff',
           '{"node": "n1", "at": 1, "event": "renamed"}', '{"node": "n1", "at": 1, "event": "renamed", "was": "../n2"}']


def test_garbage_is_named_and_skipped(journal):
    events.append('made', [measured('n1', 1)])
    with open(journal, 'a', encoding='latin-1') as file:
        file.write('\n'.join(GARBAGE))          # without an end
    events.append('made', [measured('n2', 2)])
    said, skipped = events.read('made')
    assert [event['node'] for event in said] == ['n1', 'n2'] and len(skipped) == len(GARBAGE) - 1
    assert skipped[0] == f'{journal}, line 3: no event of a node'
    shown = CliRunner().invoke(app, ['nodes'])
    assert shown.exit_code == 0 and f'skipped: {journal}, line 3: no event' in shown.stdout


def test_a_journal_without_room_is_said_and_what_is_written_later_is_whole(journal, monkeypatch):
    def full(handle, text):
        return os.pwrite(handle, text[:20], 0)

    with monkeypatch.context() as patched, pytest.raises(PlumblineError, match='no room for what happened to the nodes: make some, and resume the sweep, or mark'):
        patched.setattr(os, 'write', full)
        events.append('made', [measured('n1', 1)])
    events.append('made', [measured('n2', 2)])
    said, skipped = events.read('made')
    assert [event['node'] for event in said] == ['n2'] and skipped == [f'{journal}, line 1: no event of a node']


def test_a_journal_that_cannot_be_written_is_said(journal, tmp_path):
    (tmp_path / 'nodes').write_text('a file')
    with pytest.raises(PlumblineError, match='what happened to the nodes is not written down'):
        events.append('made', [measured('n1', 1)])
    with pytest.raises(PlumblineError, match="'../up' is no name of a system"):
        events.path('../up')


# --- what follows from it ------------------------------------------------------------------------------------------

def of(*said):
    events.append('made', list(said))
    return history.read('made', archive_root=None)


def test_nodes_in_doubt_are_due_before_those_never_measured_and_those_before_old_ones():
    known = of(measured('n1', 300), measured('n2', 100), measured('n3', 200, verdict='FAIL'), measured('n5', 400, rank='outlier'))
    assert names(known=known, due=5) == ['n3', 'n5', 'n2', 'n1'] and names(known=known, due=1) == ['n3']
    # A job that did not end is a reason as well, and so is a repair.
    known = of({'node': 'n1', 'at': 500.0, 'event': 'failed', 'state': 'timed out', 'reason': 'x', 'hours': 1.0},
               {'node': 'n2', 'at': 600.0, 'event': 'repaired', 'reason': 'DIMM'}, measured('n3', 700))
    assert names(known=known, due=3) == ['n2', 'n1', 'n5']
    assert [known.of(name).doubt for name in ('n1', 'n2', 'n3', 'n5', 'n9')] == [
        'its job timed out', 'repaired since it was measured', '', 'outlier', '']
    assert names(known=history.History('made'), due=2) == ['n1', 'n2']


def test_when_a_node_was_last_seen_good_and_how_often_it_offended():
    known = of(*(measured('n1', at, f's{at}', rank='outlier' if at % 3 == 0 else 'in order') for at in range(1, 14)),
               measured('n2', 1, verdict='UNSTABLE', rank=None), measured('n3', 1, verdict='NO REFERENCE', rank='in order'),
               measured('n4', 5, verdict='NO REFERENCE', rank=None))
    one = known.of('n1')
    assert one.offences() == (3, 10) and one.offences(2) == (1, 2) and one.last_good == 13 and one.hours == 6.5
    assert [known.of(name).last_good for name in ('n2', 'n3', 'n4')] == [None, 1, None]
    assert known.findings == 4 and known.hours == 8.0


def test_what_a_sweep_says_again_counts_once():
    known = of(measured('n1', 1, rank=None), measured('n1', 1), {'node': 'n1', 'at': 2.0, 'event': 'outlier', 'sweep': 's1', 'evidence': {}},
               {'node': 'n1', 'at': 3.0, 'event': 'cleared', 'sweep': 's1'})
    one = known.of('n1')
    assert (one.hours, len(one.measured), one.last.rank, one.findings) == (0.5, 1, 'in order', {})


def test_hours_of_a_node_that_failed_and_was_measured_later_count_once():
    failed = {'node': 'n1', 'at': 1.0, 'event': 'failed', 'sweep': 's1', 'state': 'timed out', 'reason': 'x', 'hours': 1.0}
    known = of(failed, measured('n1', 2, hours=1.1), measured('n1', 3, 's2'))
    assert known.of('n1').hours == known.hours == pytest.approx(1.6)        # what a sweep says of a node is all that it took there


def test_sessions_that_no_sweep_has_run_count_as_measurements(tmp_path):
    rows = [sample.frame(sample.case('triad', [sample.metric('of_limit.x', 0.9, verdict=ruling)], threads='one', session=name))
            for name, ruling in (('20260101T030405Z-aaaa', 'PASS'), ('20260102T030405Z-bbbb', 'FAIL'), ('20260103T030405Z-cccc', 'PASS'))]
    rows = [frame.with_columns(started=frame['started'] + datetime.timedelta(days=day)) for day, frame in enumerate(rows)]
    for frame in rows:
        archive.write(frame, tmp_path / 'archive')
    system, node = rows[0]['system'][0], rows[0]['hostname'][0]
    known = history.read(system, tmp_path / 'archive')
    assert [one.verdict for one in known.of(node).measured] == ['PASS', 'FAIL', 'PASS'] and known.of(node).hours == 0
    events.append(system, [measured(node, 1, verdict='FAIL', session='20260103T030405Z-cccc')])     # a sweep's own
    assert [one.verdict for one in history.read(system, tmp_path / 'archive').of(node).measured] == ['FAIL', 'PASS', 'FAIL']
    events.append(system, [measured(node, 1, verdict='FAIL', session='20260103T030405Z-cccc', again=['20260102T030405Z-bbbb', ['x']])])
    ahead = sample.frame(sample.case('triad', [sample.metric('of_limit.x', 0.9, verdict='PASS')], threads='one', session='20990101T000000Z-dddd'))
    archive.write(ahead, tmp_path / 'archive')
    known = history.read(system, tmp_path / 'archive')
    assert [one.verdict for one in known.of(node).measured] == ['FAIL', 'PASS']
    assert known.skipped == ['1 session from 20990101T000000Z-dddd on: in the future, by this clock or that of the host that ran it']


def test_a_test_that_failed_without_a_metric_is_a_fail_of_its_node(tmp_path):
    good = sample.case('triad', [sample.metric('of_limit.x', 0.9, verdict='PASS')], threads='one')
    for number, (ruling, word) in enumerate((('FAIL', 'FAIL'), ('PASS', 'PASS'))):     # that it ended well proves nothing
        other = sample.case('gather', result='fail', fail_phase='sanity', verdict=ruling, reason='sanity: wrong result')
        frame = sample.frame(good, other)
        archive.write(frame, tmp_path / f'{number}')
        assert history.read(frame['system'][0], tmp_path / f'{number}').of(frame['hostname'][0]).last.verdict == word


def test_a_session_that_lost_a_subsystem_as_a_whole_is_a_fail_of_its_node(tmp_path, monkeypatch):
    '''None of its metrics is one, and whose the loss of a session of several nodes is, no row says.'''
    monkeypatch.setattr(history.read, '__defaults__', (tmp_path,))
    for day, nodes in enumerate(({'n1': 0.0}, {'n1': 0.08}, {'n2': 0.08, 'n3': 0.08}), 1):
        frame = sample.frame(*(sample.case(f'triad_{node}', [sample.predicted(f'v{number}', loss) for number in range(12)], threads='all', level='memory',
                                           host=node, system='made', session=f'2026010{day}T030405Z-a') for node, loss in nodes.items()))
        archive.write(frame.with_columns(started=frame['started'] + datetime.timedelta(days=day)), tmp_path)
    of(measured('n9', 1))
    good, shown = history.read('made').of('n1').measured[0].at, CliRunner().invoke(app, ['nodes', 'show']).stdout
    assert sweep_command._history('made:cpu').of('n1').doubt == 'FAIL'       # so --due takes it first
    assert re.search(rf'^ *n1 .* FAIL +{slurm.when(good)} ', shown, re.M) and re.search('^ *n2 .* PASS ', shown, re.M) and 'in doubt: n1: FAIL\n' in shown
    assert 'note: n1 is in doubt: FAIL' in CliRunner().invoke(app, ['nodes', 'mark', 'n1', 'returned', '--reason', 'x']).stdout


# --- nodes that are renamed -----------------------------------------------------------------------------------------

def rename(*pairs):
    done = CliRunner().invoke(app, ['nodes', 'rename', *pairs])
    assert done.exit_code == 0, done.exception
    return done.stdout


def test_what_is_known_of_a_node_follows_its_name(tmp_path):
    known = of(measured('n3', 1, rank='outlier'), {'node': 'n3', 'at': 2.0, 'event': 'drained', 'reason': 'slow'}, measured('m3', 3, 's2'), measured('n4', 3))
    assert known.of('m3').doubt == '' and known.of('n3').doubt == 'outlier'
    assert rename('n3=m3') == 'n3 is m3 now, and what was known of that name is of the same node\n'
    later = time.time()
    known = of(measured('n3', later, 's3'))      # another machine has that name now
    assert [one.at for one in known.of('m3').measured] == [1, 3] and known.of('m3').done['reason'] == 'slow' and known.of('m3').offences() == (1, 2)
    assert [one.at for one in known.of('n3').measured] == [later] and known.of('n3').done is None
    assert 'was n3' in CliRunner().invoke(app, ['nodes', 'm3']).stdout
    assert rename('n3=n4', 'n4=n3') == 'n3 is n4 now\nn4 is n3 now\n'
    known = history.read('made', None)
    assert ([one.at for one in known.of('n4').measured], [one.at for one in known.of('n3').measured]) == ([later], [3])
    rename('m3=x3')
    assert known.of('m3').measured == history.read('made', None).of('x3').measured and 'm3' not in history.read('made', None).nodes


@pytest.mark.parametrize('pair, new', [('n[3,1]=m[1,2]', {'n3': 'm1', 'n1': 'm2'}), ('n1,n3=n3,n1', {'n1': 'n3', 'n3': 'n1'}), (
    'n[3,1-2],n4=r[2,1]n[10,09]', {'n3': 'r2n10', 'n1': 'r2n09', 'n2': 'r1n10', 'n4': 'r1n09'})])
def test_pairs_of_names_are_taken_as_they_are_written(pair, new):
    of(*(measured(f'n{number}', number, f's{number}') for number in (1, 2, 3, 4)))
    assert rename(pair).splitlines() == [f'{old} is {name} now' for old, name in new.items()]


def test_sessions_of_the_archive_follow_the_name_of_their_node(tmp_path):
    frame = sample.frame(sample.case('triad', [sample.metric('of_limit.x', 0.9, verdict='FAIL')], threads='one', session='20260101T030405Z-aaaa'))
    archive.write(frame, tmp_path / 'archive')
    system, old = frame['system'][0], frame['hostname'][0]
    events.append(system, [{'node': 'new', 'event': 'renamed', 'was': old}])
    known = history.read(system, tmp_path / 'archive')
    assert known.of('new').doubt == 'FAIL' and old not in known.nodes
    assert over_sessions.read(tmp_path / 'archive', system, node='new').metrics and archived.read(tmp_path / 'archive', system).nodes == ['new']
    (_, rows), = Choice(tmp_path / 'archive', system, '', (), None, (), (), 0, 'new').further
    assert {row['hostname'] for row in rows} == {'new'}
    # Each of several nodes; and of a clock that was ahead nothing is known.
    events.append(system, [{'node': 'm3', 'event': 'renamed', 'was': 'n3'}, {'node': 'm4', 'event': 'renamed', 'was': 'n4', 'at': time.time() + 9e6}])
    both = pl.concat([frame[:1]] * 2).with_columns(hostname=pl.Series(['n3,n4', None]))
    assert events.names(system).renamed(both)['hostname'].to_list() == ['m3,n4', None] and events.names(system).now('n4', 1.0) == 'n4'


def test_references_of_a_node_are_renamed_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv('PLUMBLINE_REFERENCES', str(tmp_path))
    of(measured('n3', 1), measured('n4', 2))
    for name in ('n3', 'n4'):
        (tmp_path / f'made@{name}.yaml').write_text(name)
    assert rename('n3=n4', 'n4=n3') == (f'n3 is n4 now\nn4 is n3 now\n{tmp_path}/made@n3.yaml is made@n4.yaml now\n'
                                        f'{tmp_path}/made@n4.yaml is made@n3.yaml now\n')
    assert {file.name: file.read_text() for file in tmp_path.glob('made@*')} == {'made@n3.yaml': 'n4', 'made@n4.yaml': 'n3'}
    (tmp_path / 'made@m3.yaml').write_text('other')
    before = events.read('made')
    done = CliRunner().invoke(app, ['nodes', 'rename', 'n3=m3'])
    assert str(done.exception) == f'{tmp_path}/made@n3.yaml and made@m3.yaml would be references of one node: remove one of them'
    assert events.read('made') == before


@pytest.mark.parametrize('there, said', [('made@n4.renamed', 'made@n4.yaml: cannot be renamed: Is a directory; nothing is'),
                                         ('made@n4.yaml', 'made@n3.renamed: cannot be renamed: Is a directory; rename it to {}/made@n4.yaml by hand')])
def test_references_that_cannot_be_renamed_are_said(tmp_path, monkeypatch, there, said):
    monkeypatch.setenv('PLUMBLINE_REFERENCES', str(tmp_path))
    of(measured('n3', 1), measured('n4', 2))
    for name in ('n3', 'n4'):
        (tmp_path / f'made@{name}.yaml').write_text(name)
    before = events.read('made')
    if there.endswith('.renamed'):
        (tmp_path / there).mkdir()
    else:       # meanwhile
        monkeypatch.setattr(events, 'append', lambda *_: (tmp_path / there).mkdir())
    done = CliRunner().invoke(app, ['nodes', 'rename', 'n3=n4', 'n4=n3'])
    assert str(done.exception) == f'{tmp_path}/{said.format(tmp_path)}' and events.read('made') == before
    assert not there.endswith('.renamed') or [(tmp_path / f'made@{name}.yaml').read_text() for name in ('n3', 'n4')] == ['n3', 'n4']


def test_a_sweep_that_is_gone_on_with_after_its_nodes_were_renamed_names_them_as_they_are_called_now(tmp_path):
    work, found = sweep_of(tmp_path, SLOW, '20260101T030405Z-aaaa')
    findings.record(work, found)
    rename('n[1-4]=m[1-4]')
    assert list(proposals.follow_up(work, found))[0].endswith('ticket: plumbline nodes ticket m3')
    known = history.read('made', None)
    assert set(known.nodes) == {'m1', 'm2', 'm3', 'm4'} and 'nodename=m3' in known.of('m3').proposal['command']


def test_a_node_is_not_held_against_another_machine_that_had_its_name(tmp_path):
    for number, name in enumerate(('20260101T000000Z-a', '20260102T000000Z-b')):
        folder = tmp_path / name
        folder.mkdir()
        (folder / 'sweep.json').write_text('{"partition": "made:cpu"}')
        scatter.keep(folder, SLOW, ranking.rank(SLOW))
    between = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc).timestamp()
    events.append('made', [{'node': new, 'event': 'renamed', 'was': old, 'at': between} for old, new in (('n3', 'm3'), ('n4', 'n3'))])
    scores = scatter.scores_before(tmp_path / '20260102T000000Z-b')
    raw = dict(ranking.rank(SLOW).scores.select('node', 'value').iter_rows())
    assert dict(scores.select('node', 'value').iter_rows()) == {'n1': raw['n1'], 'n2': raw['n2'], 'm3': raw['n3'], 'n3': raw['n4']}
    assert scatter.scores_before(tmp_path / '20260101T000000Z-a') is None


@pytest.mark.parametrize('pairs, said', [
    (['n9=m9'], 'n9: no sweep or session of made has measured it'), (['n1'], 'as many names on both sides'), (['n[1-2]=m1'], 'as many names on both sides'),
    (['n1=m1', 'n1=m2'], 'each once'), (['n1=m1', 'n2=m1'], 'each once'), (['n1=n1'], 'a new one for each'), (['n[1-2]=m[1,1]'], 'each once'),
    (['n1=n2'], 'n1 and n2 were measured by one sweep: they are two nodes')])
def test_a_rename_that_is_not_clear_is_refused(pairs, said):
    of(measured('n1', 1), measured('n2', 1))
    done = CliRunner().invoke(app, ['nodes', 'rename', *pairs])
    assert isinstance(done.exception, PlumblineError) and said in str(done.exception), done.exception
    rename('n1=m1')
    again = CliRunner().invoke(app, ['nodes', 'mark', 'n1', 'drained', '--reason', 'x'])
    assert str(again.exception) == 'n1: its name is m1 now'


# --- what a sweep finds, and what is proposed ----------------------------------------------------------------------

def sweep_of(tmp_path, frame, name='s1', **plan_of):
    '''A sweep whose nodes have measured, its findings, and the sweep again if it is resumed.'''
    nodes = frame['node'].unique(maintain_order=True).to_list()
    work = state.create(tmp_path / name, {'id': name, 'nodes': dict.fromkeys(nodes, ''), 'partition': 'made:cpu', 'command': [], 'access': [],
                                          'pace': {}, 'checks': 1, **plan_of}, '')
    for node in work.nodes.values():
        node.phase, node.state, node.since, node.counts, node.spent = state.OVER, state.MEASURED, time.time(), {'': {'NO REFERENCE': 3}}, {'1': 360.0}
    return work, look(work, frame)


def look(work, frame):
    ranked = ranking.rank(frame)
    odd = confirm.confirm(ranked.outliers(), ranked, frame.clear())
    return outliers.Findings(work.name, work.nodes, frame, ranked, odd, {node: ["a cgroup's quota is 0.6 CPUs"] for node in odd['node']}, [{}])


SLOW = among(table(numbered(100, 100, 60, 100)), noise=0.001)
GOOD = among(table(numbered(100, 100, 100, 100)), noise=0.001)


def test_a_finding_is_written_down_and_proposed_once(tmp_path, journal):
    work, found = sweep_of(tmp_path, SLOW)
    said = list(proposals.follow_up(work, found))
    assert said == ['n3: an outlier in 1 of its last 1 sweep, never seen good; ticket: plumbline nodes ticket n3']
    before = journal.read_text()
    assert list(proposals.follow_up(work, found)) == said and journal.read_text() == before      # the sweep is resumed
    known = history.read('made', None)
    assert known.of('n3').doubt == 'outlier' and known.of('n1').last.word == 'in order among its peers' and known.hours == pytest.approx(0.4)
    assert [(one['event'], one['action'], one['how']) for one in known.of('n3').steps] == [('proposed', 'drain', 'printed')]
    list(proposals.follow_up(*[sweep_of(tmp_path, SLOW, 's2')[0], look(work, SLOW)]))
    assert len(history.read('made', None).of('n3').steps) == 1 and history.read('made', None).of('n3').offences() == (2, 2)


def test_a_finding_that_does_not_stand_is_taken_back(tmp_path):
    work, found = sweep_of(tmp_path, SLOW)
    findings.record(work, found)
    findings.record(work, look(work, GOOD))
    one = history.read('made', None).of('n3')
    assert one.findings == {} and one.last.is_good and one.hours == pytest.approx(0.1)


def test_a_ticket_has_the_evidence(tmp_path):
    work, found = sweep_of(tmp_path, SLOW)
    list(proposals.follow_up(work, found))
    text = CliRunner().invoke(app, ['nodes', 'ticket', 'n3']).stdout
    for said in ('Node n3 of made is an outlier among its peers', "speed %threads=one flops: 60.0 Mflop/s, its peers' median 100 Mflop/s (-40.0 %), rank 4 of 4",
                 "cause, as far as the node tells it: a cgroup's quota is 0.6 CPUs", 'an outlier in 1 of its last 1 sweep',
                 f'page: {work.folder}/index.html', "scontrol update nodename=n3 state=drain 'reason=plumbline s1: "):
        assert said in text, text
    none = CliRunner().invoke(app, ['nodes', 'ticket', 'n1'])
    assert isinstance(none.exception, PlumblineError) and 'nothing to write a ticket of' in str(none.exception)


def test_a_node_whose_own_report_has_a_fail_gets_a_ticket_and_one_of_many_none_to_drain_it(tmp_path):
    work, found = sweep_of(tmp_path, GOOD)
    node = work.nodes['n2']
    node.status, node.counts, node.reason = 1, {'software': {'FAIL': 1, 'PASS': 20}}, 'FAIL: expectations: dimm.count is 7, expected 8'
    (said,), text = proposals.follow_up(work, found), 'software 1 FAIL, 20 PASS; FAIL: expectations: dimm.count is 7, expected 8'
    assert said == f'n2: its own report: {text}; ticket: plumbline nodes ticket n2'
    known = history.read('made', None)
    assert known.findings == len(known.of('n2').findings) == 1 and known.of('n2').proposal['action'] == 'drain'
    ticket = CliRunner().invoke(app, ['nodes', 'ticket', 'n2']).stdout
    assert 'Node n2 of made is not in order' in ticket and f"state=drain 'reason=plumbline s1: its own report: {text}'" in ticket
    work, found = sweep_of(tmp_path, GOOD, 's2', hook='false')
    for node in work.nodes.values():
        node.status, node.reason = 1, 'FAIL as a whole: memory'
    assert [line.partition(':')[0] for line in proposals.follow_up(work, found)] == ['n[1-4]', '4 of 4 nodes are not in order though no outliers']


def test_evidence_that_somebody_has_changed_breaks_nothing(tmp_path):
    for evidence in ({}, {'rows': 3, 'told': 7}, {'rows': [{'what': 1}, 7, {'name': 'score', 'metrics': 7}]}, {'rows': [{'what': 'x', 'check': 'c', 'off': -0.1, 'value': 1.0, 'unit': '1', 'median': 'm'}]}):
        known = of({'node': 'n1', 'at': 1.0, 'event': 'outlier', 'sweep': 's', 'evidence': evidence})
        assert 'state=drain' in proposals.of_outlier('made', known.of('n1')).ticket
        assert findings.changed_since(evidence, GOOD, 'n1') == ([], [], [])


@pytest.mark.slow
def test_a_node_is_drained_repaired_measured_and_put_back(tmp_path):
    work, found = sweep_of(tmp_path, SLOW)
    list(proposals.follow_up(work, found))
    run = CliRunner()
    assert 'n3: drained: slow memory' in run.invoke(app, ['nodes', 'mark', 'n3', 'drained', '--reason', 'slow memory']).stdout
    assert 'next: plumbline sweep --nodes' in run.invoke(app, ['nodes', 'mark', 'n3', 'repaired', '--reason', 'DIMM 4 replaced']).stdout
    assert history.read('made', None).of('n3').doubt == 'repaired since it was measured'
    # Alone: it cannot be ranked, and is compared with what it was and its peers were.
    still, found = sweep_of(tmp_path, SLOW.filter(pl.col('node') == 'n3'), 's2')
    said = list(proposals.follow_up(still, found))
    assert len(said) == 1 and 'not to be put back: still off: speed %threads=one flops 60.0 Mflop/s (was 60.0 Mflop/s, its peers 100 Mflop/s)' in said[0]
    good, found = sweep_of(tmp_path, GOOD.filter(pl.col('node') == 'n3'), 's3')
    said = list(proposals.follow_up(good, found))
    assert 'healthy again: no FAIL; ' in said[0] and said[1] == '  to put it back (not done here): scontrol update nodename=n3 state=resume'
    shown = run.invoke(app, ['nodes', 'n3']).stdout
    for line in ('sweep s1: outlier', 'drained by ', 'DIMM 4 replaced', 'proposed to return by sweep s3'):
        assert line in shown.replace('measured by sweep', 'sweep'), shown
    assert 'returned: in service' in run.invoke(app, ['nodes', 'mark', 'n3', 'returned', '--reason', 'in service']).stdout
    # It offends again: that is proposed anew.
    again, found = sweep_of(tmp_path, SLOW, 's4')
    assert 'an outlier in 2 of its last 2 sweeps' in list(proposals.follow_up(again, found))[0]
    assert [one.get('action') or one['event'] for one in history.read('made', None).of('n3').steps] == [
        'drain', 'drained', 'repaired', 'return', 'returned', 'drain']


@pytest.mark.slow
def test_a_node_that_the_gate_has_drained_is_in_doubt_has_a_ticket_and_is_put_back(tmp_path):
    why = 'plumbline gate: drain: dimm.count is 7, expected 8'

    def met(name):
        work, _ = sweep_of(tmp_path, GOOD, name)
        node = work.nodes['n3']
        node.state, node.reason, node.counts, node.spent = 'drained', why, {}, {}
        assert list(proposals.follow_up(work, look(work, GOOD.filter(pl.col('node') != 'n3')))) == []
        return history.read('made', None)

    run = CliRunner()
    known = met('s1')
    assert known.of('n3').doubt == f'drained: {why}' and names(known=known, due=1) == ['n3']
    assert len(met('s2').of('n3').failed) == 1      # it is so still
    ticket = run.invoke(app, ['nodes', 'ticket', 'n3']).stdout
    assert 'Node n3 of made is not in order\n\ndrained 20' in ticket and f': {why}\n' in ticket and 'state=drain' not in ticket
    assert 'once it is repaired: plumbline nodes mark n3 repaired' in ticket
    run.invoke(app, ['nodes', 'mark', 'n3', 'repaired', '--reason', 'DIMM 4 reseated'])
    assert history.read('made', None).of('n3').doubt == 'repaired since it was measured'
    assert 'healthy again: no FAIL; in order among its peers' in next(iter(proposals.follow_up(*sweep_of(tmp_path, GOOD, 's3'))))
    assert history.read('made', None).of('n3').doubt == '' and 'nothing to write a ticket of' in str(run.invoke(app, ['nodes', 'ticket', 'n3']).exception)
    # Another finding, long after it was well again, is no ticket of the former one; of an outlier both are.
    findings.record(*sweep_of(tmp_path, SLOW, 's4'))
    met('s5')
    both = run.invoke(app, ['nodes', 'ticket', 'n3']).stdout
    assert 'is an outlier among its peers' in both and f': {why}\n' in both
    findings.record(*sweep_of(tmp_path, GOOD, 's6'))
    met('s7')
    assert 'is not in order' in run.invoke(app, ['nodes', 'ticket', 'n3']).stdout


def test_a_node_that_slurm_knows_can_be_marked_before_any_sweep(monkeypatch):
    monkeypatch.setattr(slurm, 'ask', lambda command, *_: 'n7\n' if '--nodes=n7' in command else '')
    assert CliRunner().invoke(app, ['nodes', 'mark', 'n7', 'drained', '--reason', 'x', '--system', 'made']).stdout == 'n7: drained: x\n'
    assert history.read('made', None).of('n7').done['reason'] == 'x'


def test_a_node_that_lacks_what_its_peers_have_is_not_seen_good_and_not_put_back(tmp_path):
    whole, less = table(dict.fromkeys(WHOLE, 100)), table({'n8': 100}, kind='less')

    def told(frame, gib, name, **lacks):
        work, found = sweep_of(tmp_path, frame, name)
        for node in work.nodes.values():
            node.hardware, node.machine, node.counts = '192', swept(x=('EPYC', 192, gib if node.name == 'n8' else 755))['x'].machine, {'': {'PASS': 3}}
        said = list(proposals.follow_up(work, dataclasses.replace(found, lacking=lacks)))
        return said, history.read('made', None)

    def mark():
        CliRunner().invoke(app, ['nodes', 'mark', 'n8', 'repaired', '--reason', 'DIMM 4 reseated'])

    of(measured('n8', 1), {'node': 'n8', 'at': 2.0, 'event': 'repaired', 'reason': 'DIMM 4 reseated'})
    (*tickets, said), known = told(pl.concat([whole, less]), 724, 's2', n2={'latency %pages=huge': Lack(True, (), False, 'not given')})
    assert [line.partition(':')[0] for line in tickets] == ['n2', 'n8'] and tickets[0].endswith('not given; ticket: plumbline nodes ticket n2')
    assert said.endswith(': not to be put back: less than its peers: 724 GiB, they have 755 GiB')
    assert [(known.of(name).last_good, known.of(name).doubt) for name in ('n2', 'n8')] == [
        (None, 'nothing of latency huge: not given'), (1, 'less than its peers: 724 GiB, they have 755 GiB')]
    assert known.of('n1').last.is_good and known.findings == 2 and names(known=known, due=1) == ['n2']
    mark()      # and measured alone nobody knows what it should have
    (said,), _ = told(less, 724, 's3')
    assert said.endswith('not known whether it is healthy: beside peers it had less than its peers: 724 GiB, they have 755 GiB; measure it with two peers '
                         'or more of its kind')
    (said, *_), known = told(table(dict.fromkeys([*WHOLE, 'n8'], 100)), 755, 's4')
    assert 'healthy again: no FAIL; in order among its peers' in said and known.of('n8').doubt == ''


@pytest.fixture
def repaired(tmp_path):
    '''Node n3 was an outlier of sweep s1, and was repaired.'''
    work, found = sweep_of(tmp_path, SLOW)
    list(proposals.follow_up(work, found))
    CliRunner().invoke(app, ['nodes', 'mark', 'n3', 'repaired', '--reason', 'fan'])


NOT_AGAIN = r'not known whether it is healthy: not measured again: speed %threads=one flops\b.*; run these checks on it$'


@pytest.mark.slow
@pytest.mark.parametrize('frame, said', [
    (table({'n3': 100}, 'latency', 'us'), NOT_AGAIN), (table({'n3': float('nan')}), NOT_AGAIN),
    (among(table(numbered(100, 100, 100, 100), 'flops.other'), noise=0.001), NOT_AGAIN),       # in order among its peers, by other metrics
    (table({'n3': 0}), r'not to be put back: still off: speed %threads=one flops 0.000 Mflop/s \(was 60.0 Mflop/s, its peers 100 Mflop/s\);')])
@pytest.mark.parametrize('verdict', ['PASS', 'NO REFERENCE'])
def test_a_repaired_node_is_not_put_back_by_what_else_it_measured(repaired, tmp_path, frame, said, verdict):
    work, found = sweep_of(tmp_path, frame, 's2')
    work.nodes['n3'].counts = {'': {verdict: 3}}
    told, = proposals.follow_up(work, found)
    assert re.search(said, told), told


@pytest.mark.slow
def test_a_node_that_was_found_by_a_subsystem_as_a_whole_is_put_back_once_that_is_well(tmp_path):
    '''Each of its metrics is within its noise.'''
    fleet, earlier, before, slow = held_against_itself()
    ranked = ranking.rank(slow, earlier, before)
    odd = confirm.confirm(ranked.suspects(), ranked, fleet.sweep(0.06, node=2, part=2))
    work, found = sweep_of(tmp_path, slow)
    list(proposals.follow_up(work, dataclasses.replace(found, ranked=ranked, odd=odd, causes={})))
    CliRunner().invoke(app, ['nodes', 'mark', 'n3', 'repaired', '--reason', 'fan'])
    for name, frame, said in (('s2', slow, 'not to be put back: still off: L2, rates and times 0.9'), ('s3', fleet.sweep(), 'healthy again: no FAIL; L2, rates')):
        told = next(iter(proposals.follow_up(*sweep_of(tmp_path, frame.filter(node='n3'), name))))
        assert said in told


@pytest.mark.parametrize('speed, which', [(100, 0), (60, 1), (None, 2)])
def test_a_journal_without_the_score_of_then_goes_by_its_metrics(speed, which):
    row = {'check': 'speed %threads=one', 'name': 'flops', 'environ': 'gnu', 'unit': 'Mflop/s', 'value': 60.0, 'median': 100.0, 'bad': 8.0, 'scale': 0.02,
           'better': 1}
    frame = table(numbered(100) if speed is None else {'n3': speed})
    told = findings.changed_since({'rows': [{**row, 'check': 'core, rates and times', 'name': 'score', 'metrics': [row]}]}, frame, 'n3')
    assert [len(its) for its in told] == [int(number == which) for number in range(3)]


@pytest.mark.parametrize('disk, said', [([70], 'not to be put back: still off: disk bandwidth 70.0 MB/s'), ([100], 'healthy again'),
                                        ([], 'not known whether it is healthy: not measured again: disk bandwidth')])
def test_a_second_fault_that_is_not_repaired_keeps_a_node_from_being_put_back(tmp_path, disk, said):
    '''A ticket tells the worst rows alone, which are of the first.'''
    def measured_as(speed, *disks):
        return pl.concat([*(table(numbered(100, 100, speed, 100), f'flops.{name}') for name in 'abc'),
                          *(table(numbered(100, 100, each, 100), 'bandwidth', 'MB/s', check='disk', subsystem='files') for each in disks)])
    list(proposals.follow_up(*sweep_of(tmp_path, among(measured_as(40, 70), noise=0.001))))
    ticket = CliRunner().invoke(app, ['nodes', 'ticket', 'n3']).stdout
    assert 'disk' not in ticket and 'more rows on the page' in ticket, ticket
    CliRunner().invoke(app, ['nodes', 'mark', 'n3', 'repaired', '--reason', 'DIMM 4 replaced'])
    told = next(iter(proposals.follow_up(*sweep_of(tmp_path, measured_as(100, *disk).filter(node='n3'), 's2'))))
    assert said in told


@pytest.mark.parametrize('met, code, doubt, said', [
    ({'status': 1, 'counts': {'software': {'FAIL': 1}}}, 1, 'FAIL', 'not in order by its own report: n3: software 1 FAIL'),
    ({'state': 'failed', 'reason': 'job FAILED: Killed'}, 1, 'its job failed', 'not measured again: n3: failed: job FAILED: Killed'),
    ({'state': 'down', 'reason': 'no answer'}, 1, 'down: no answer', 'not measured again: n3: down: no answer'),
    ({'state': 'cancelled', 'reason': 'job PREEMPTED'}, 0, '', 'not measured again: n3: cancelled: job PREEMPTED')])
def test_what_a_node_meets_when_it_is_measured_again_counts(repaired, tmp_path, monkeypatch, met, code, doubt, said):
    '''It is suspected to be worse than it was, and in order among its peers.'''
    work, found = sweep_of(tmp_path, GOOD, 's2')
    suspect = found.ranked.scores.filter(node='n3').with_columns(since=pl.lit(True), confirmed=pl.lit(None, pl.Boolean))
    found = dataclasses.replace(found, odd=suspect)
    monkeypatch.setattr(outliers, 'look', lambda folder: found)
    again = remeasure.prepare(work)
    again.begin()
    for node in again.nodes.values():
        again.record(node, state.OVER, **{'state': state.MEASURED, **(met if node.name == 'n3' else {})})
    found = dataclasses.replace(found, again=again.nodes)
    assert sweep_command._end(work) == code
    told, known = list(proposals.follow_up(work, found))[-1 if code else 0], history.read('made', None).of('n3')
    assert (f'not to be put back: {doubt}' if code else 'healthy again') in told and known.doubt == doubt and known.last.rank is None
    remarks = list(report.remarks(found))
    assert said in remarks and 'worse than before, and not measured again, or not comparably: n3' in remarks
    assert [why for ruling, name, why in findings.not_in_order(work.folder) if name == 'n3' and 'again' in why] == (
        ['its own report, measured again: software 1 FAIL'] if doubt == 'FAIL' else [said.replace('n3: ', '')] * code)
    # What a sweep that is gone on with has measured counts.
    again.record(again.nodes['n3'], state.OVER, state=state.MEASURED, status=3, counts={'software': {'PASS': 1}}, reason='')
    findings.record(work, found)
    assert history.read('made', None).of('n3').unmeasured is None and sweep_command._status(work, 0, 0) == 3


def test_a_repaired_node_whose_evidence_cannot_be_compared_is_put_back_among_peers(tmp_path):
    of(measured('n3', 1), {'node': 'n3', 'at': 2.0, 'event': 'repaired', 'reason': 'fan'})
    alone, found = sweep_of(tmp_path, GOOD.filter(pl.col('node') == 'n3'), 's2')
    told, = proposals.follow_up(alone, found)
    assert 'no metric was judged; measure it with two peers or more of its kind' in told
    assert 'healthy again: no FAIL; in order among its peers' in next(iter(proposals.follow_up(*[sweep_of(tmp_path, GOOD, 's3')[0], look(alone, GOOD)])))


@pytest.mark.parametrize('hours, said, skipped', [
    (20, r'not to be put back: FAIL$', 0),              # clocks may differ by so much
    (40 * 24, r'not to be put back: FAIL$', 1)])
def test_a_measurement_by_a_clock_that_was_ahead_puts_no_node_back(repaired, tmp_path, hours, said, skipped):
    events.append('made', [measured('n3', time.time() + 3600 * hours, 's0')])
    work, found = sweep_of(tmp_path, GOOD, 's2')
    work.nodes['n3'].status = 1
    told = [line for line in proposals.follow_up(work, found) if ', repaired at' in line]
    assert len(told) == 1 and re.search(said, told[0]), told
    known = history.read('made', None)
    assert len(known.skipped) == skipped and all('1 event from that of n3 on: in the future' in text for text in known.skipped)
    assert not skipped or known.of('n3').doubt == 'FAIL'


def test_a_sweep_that_measured_in_the_future_itself_puts_no_node_back(repaired, tmp_path):
    work, found = sweep_of(tmp_path, GOOD, 's2')
    work.nodes['n3'].since += 40 * 86400
    told, = proposals.follow_up(work, found)
    assert told.endswith('this sweep measured it in the future, by this clock or that of its host; measure it again')


def test_what_a_job_from_before_the_repair_measured_says_nothing(repaired, tmp_path):
    '''It was collected by --resume after it.'''
    work, found = sweep_of(tmp_path, GOOD, 's2')
    before = history.read('made', None).of('n3')
    work.nodes['n3'].began = (before.last.at + before.done['at']) / 2
    assert list(proposals.follow_up(work, found)) == []
    known = history.read('made', None).of('n3')
    assert known.last.at == work.nodes['n3'].began and known.doubt == 'repaired since it was measured'


def test_the_site_s_command_is_told_once_and_again_if_it_failed(tmp_path):
    got = tmp_path / 'got'
    script = tmp_path / 'hook'
    script.write_text(f'#!/bin/sh\ncat > {got}.txt\ncp "$PLUMBLINE_NOTICE" {got}.json\n')
    script.chmod(0o755)
    work, found = sweep_of(tmp_path, SLOW, hook='false')
    with pytest.raises(PlumblineError, match='--hook false: ended with 1: it said nothing; the next sweep proposes the same again'):
        list(proposals.follow_up(work, found))
    work.plan['hook'] = f"'{script}'"
    assert list(proposals.follow_up(work, found))[-1] == 'told by --hook: n3'
    notice = json.loads((tmp_path / 'got.json').read_text())
    assert [(one['node'], one['action']) for one in notice['proposals']] == [('n3', 'drain')] and notice['system'] == 'made'
    assert (tmp_path / 'got.txt').read_text() == notice['proposals'][0]['ticket']
    assert 'told' not in list(proposals.follow_up(work, found))[-1]


@pytest.mark.slow
def test_the_site_s_command_is_told_what_was_only_printed(tmp_path):
    work, found = sweep_of(tmp_path, SLOW)
    good = GOOD.filter(pl.col('node') == 'n3')

    def told(frame, **plan_of):
        sweep, found = sweep_of(tmp_path, frame, f's{time.monotonic_ns()}', **plan_of)
        return [line for line in proposals.follow_up(sweep, found) if 'told' in line]

    hook = {'hook': 'true'}
    assert [told(SLOW), told(SLOW, **hook), told(SLOW, **hook), told(SLOW), told(SLOW, **hook)] == [[], ['told by --hook: n3'], [], [], []]
    CliRunner().invoke(app, ['nodes', 'mark', 'n3', 'repaired', '--reason', 'fan'])
    assert [told(good), told(good, **hook), told(good, **hook)] == [[], ['told by --hook: n3'], []]
    assert [(one.get('action'), one.get('how')) for one in history.read('made', None).of('n3').steps] == [
        ('drain', 'printed'), ('drain', 'hook'), (None, None), ('return', 'printed'), ('return', 'hook')]
    CliRunner().invoke(app, ['nodes', 'mark', 'n3', 'drained', '--reason', 'slow'])
    assert told(SLOW, **hook) == []


@pytest.mark.parametrize('words, said', [
    (['mark', 'n7', 'drained', '--reason', 'x'], 'n7: no sweep or session of made has measured it, and Slurm does not know it here; is the name right'),
    (['mark', 'n[', 'drained', '--reason', 'x'], 'names no nodes'), (['n7'], 'n7: no sweep or session of made'),
    (['--system', 'other', '--partition', 'made:cpu'], 'is none of --system other'), (['--partition', 'made:gpu'], 'no node of made:gpu')])
def test_a_wrong_name_is_said_in_a_line(words, said):
    events.append('made', [measured('n1', 1)])
    done = CliRunner().invoke(app, ['nodes', *words])
    assert isinstance(done.exception, PlumblineError) and said in str(done.exception), done.output


def test_without_a_journal_or_with_two_a_system_is_asked_for():
    with pytest.raises(PlumblineError, match='no sweep has written a journal of nodes'):
        command._history(None)
    for system in ('made', 'other'):
        events.append(system, [measured('n10', 1), measured('n9', 1)])
    with pytest.raises(PlumblineError, match='name a system with --system: made, other'):
        command._history(None)
    done = CliRunner().invoke(app, ['nodes', 'show', '--system', 'other'])
    assert done.exit_code == 0 and done.stdout.index('n9') < done.stdout.index('n10')


# --- limits --------------------------------------------------------------------------------------------------------

def kept(tmp_path, limits, minutes=60, spent=0.0):
    work = state.create(tmp_path / 'limited', {'id': 'limited', 'nodes': dict.fromkeys(('n1', 'n2', 'n3'), ''), 'partition': 'made:cpu', 'command': [],
                                               'access': [], 'pace': {}, 'checks': 1, 'limits': limits, 'spent': spent}, '')
    said = []
    return work, allowance.Allowance(work, SimpleNamespace(), SimpleNamespace(minutes=minutes, patience=10), said.append)


def test_a_budget_counts_what_jobs_may_take_until_they_have_ended(tmp_path):
    work, limits = kept(tmp_path, {'node_hours': 2.5}, spent=360.0)
    one, two, _ = work.nodes.values()
    assert limits.spare() == 2 and limits.look({}) == ([], False) and limits.over is None
    one.phase, one.job = state.QUEUED, 1
    assert limits.spare() == 1
    two.phase, two.job = state.QUEUED, 2
    assert limits.spare() == 0
    two.phase = state.SUBMITTING        # nobody knows whether it has a job
    assert limits.spare() == 0
    limits.look({})
    assert limits.over is None              # those may end early
    one.phase = two.phase = state.OVER
    one.spent = {'1': 3000.0}
    two.spent = {'2': 1800.0}
    limits.look({})
    assert limits.over is None and limits.spare() == 1
    two.spent = {'2': 3600.0}
    limits.look({})
    assert limits.over == ('skipped', '1.93 of 2.5 node-hours are spent, and a job may take 60 min')


def test_a_job_in_the_queue_may_take_its_own_limit(tmp_path):
    work, limits = kept(tmp_path, {'node_hours': 1.5}, minutes=5)
    one, two, _ = work.nodes.values()
    one.phase, one.job, one.minutes = state.QUEUED, 1, 60       # by a driver that was told another limit
    assert limits.spare() == 6
    two.phase, two.minutes = state.SUBMITTING, 1                # it has that job, or gets another one
    assert limits.spare() == 5


def test_second_measurements_count_those_that_were_set_aside_as_well(tmp_path, monkeypatch):
    work, found = sweep_of(tmp_path, SLOW, limits={'node_hours': 1.0})
    monkeypatch.setattr(outliers, 'look', lambda folder: found)

    def spare():
        return allowance.Allowance(work, SimpleNamespace(), SimpleNamespace(minutes=1, patience=10), print).spare()

    again = remeasure.prepare(work)
    assert again.plan['spent'] == 4 * 360 and spare() == 60 - 24
    again.begin()
    again.record(again.nodes['n3'], state.OVER, state=state.MEASURED, spent={'7': 720.0})
    assert spare() == 60 - 24 - 12
    again.record(again.nodes['n1'], state.SUBMITTING, minutes=5)        # whoever drove it was interrupted
    assert spare() == 60 - 24 - 12 - 5
    again.record(again.nodes['n1'], state.OVER, state='cancelled')
    again = remeasure.prepare(work)
    assert again.plan['spent'] == 4 * 360 and again.nodes['n3'].seconds == 720       # its own it counts itself
    found = look(work, among(table(numbered(100, 100, 60, 100, 50, 100)), noise=0.001))
    work.plan['nodes'] |= {'n5': '', 'n6': ''}
    again = remeasure.prepare(work)
    assert set(again.nodes) >= {'n3', 'n5'} and again.plan['spent'] == 4 * 360 + 720 and spare() == 60 - 24 - 12
    again.begin()
    again.record(again.nodes['n3'], state.QUEUED, spent={'9': 360.0}, status=1, counts={'': {'FAIL': 1}})
    findings.record(work, found)
    assert history.read('made', None).of('n3').last.verdict == 'FAIL'
    assert history.read('made', None).of('n3').hours == pytest.approx((360 + 720 + 360) / 3600, abs=1e-4)


def test_jobs_of_a_second_measurement_count_as_long_as_they_run_and_end_where_it_is_set_aside(tmp_path, monkeypatch):
    work, found = sweep_of(tmp_path, SLOW, limits={'node_hours': 1.0})
    monkeypatch.setattr(outliers, 'look', lambda folder: found)
    again = remeasure.prepare(work)
    again.begin()
    again.record(again.nodes['n3'], state.QUEUED, job=7, minutes=15)
    for name, at in ((job.CLAIM, 1000), (job.ENDED, 1180)):
        file = again.of(again.nodes['n3']) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('7')
        os.utime(file, (at, at))
    runs = {7: SimpleNamespace(name=again.job_name(again.nodes['n3']), state='RUNNING', is_over=False)}

    def spare(jobs):
        limits = allowance.Allowance(work, SimpleNamespace(), SimpleNamespace(minutes=1, patience=10), print)
        limits.look(jobs)
        return limits.spare()

    assert (spare(runs), spare({})) == (60 - 24 - 15, 60 - 24 - 3)
    again._journal.close()      # whoever drove it has ended
    cancelled = []
    monkeypatch.setattr(remeasure, 'Slurm', lambda access: SimpleNamespace(jobs=lambda prefix: runs, cancel=cancelled.append))
    found = look(work, among(table(numbered(100, 100, 60, 100, 50, 100)), noise=0.001))
    work.plan['nodes'] |= {'n5': '', 'n6': ''}
    new = remeasure.prepare(work)
    before = state.load(work.folder / 'again.1').nodes['n3']
    assert cancelled == [[7]] and (before.phase, before.state, before.spent) == (state.OVER, 'cancelled', {'7': 180.0})
    # That job may still be ending when the new one's are looked for by their names.
    assert new.job_name(new.nodes['n3']) != runs[7].name and new.plan['spent'] == 4 * 360 + 180 and spare(runs) == 60 - 24 - 3


class Crowded:
    '''A Slurm whose jobs do not start before they are taken out of the queue, for somebody waits as soon as one is there; the second one is the last.'''

    def __init__(self):
        self.queue, self.cancelled, self.asked = {}, [], 0

    def jobs(self, prefix):
        self.asked += 1
        if self.asked > 9:
            raise driver.GaveUp('it comes to no end')
        return dict(self.queue)

    def nodes(self):
        return {name: dataclasses.replace(NODES['n1'], name=name) for name in ('n1', 'n2', 'n3')}

    def reservation(self, name):
        if self.queue and name == 'gone':
            self.queue[7] = dataclasses.replace(self.queue[7], state='RESV_DEL_HOLD')
            return None
        return dataclasses.replace(MAINT, end=time.time() + (30 if self.queue else 90) * 60)

    def others_waiting(self, nodes):
        return sum(not found.is_over for found in self.queue.values())

    def submission(self, name, *words, **options):
        return name

    def submit(self, name):
        if self.queue:
            raise driver.GaveUp('again')
        self.queue[7] = slurm.Job(7, name, 'PENDING', 'Priority')
        return 7

    def cancel(self, numbers, pending=False):
        self.cancelled.append((numbers, pending))
        self.queue[7] = dataclasses.replace(self.queue[7], state='CANCELLED')


@pytest.mark.parametrize('limits, told, ended', [
    ({'scavenge': True}, ['jobs of others that wait for nodes: 1; nothing is submitted; given back: n1', 'no other job waits: the sweep goes on'], 'again'),
    ({'reservation': 'maint'}, ['n1: not submitted: reservation maint ends at'], None),
    ({'reservation': 'gone'}, ['n1: not submitted: reservation gone is gone'], None)])
def test_a_job_that_has_not_started_is_given_back_and_its_node_waits_again(tmp_path, limits, told, ended):
    work, found = kept(tmp_path, limits)[0], Crowded()
    work.begin()
    said, pace = [], driver.Pace(1, 0, 0, 100, 100, 60)
    with pytest.raises(driver.GaveUp, match=ended) if ended else contextlib.nullcontext():
        driver.Driver(work, found, pace, said.append).run()
    assert found.cancelled == [([7], True)]     # if it starts meanwhile, it is left
    assert all(any(text in line for line in said) for text in told), said
    assert [node.state for node in work.nodes.values()] == (['', '', ''] if ended else ['not submitted'] * 3)
    assert ended is None or [node.phase for node in work.nodes.values()] == [state.SUBMITTING, state.WAITING, state.WAITING]


class OnPaper:
    '''A Slurm whose jobs run until they are taken out of the queue.'''

    def __init__(self):
        self.queue, self.known = {}, {'n1': NODES['n1']}

    def jobs(self, prefix):
        if self.queue:
            raise driver.GaveUp('what is submitted is in the queue')
        return self.queue

    def nodes(self):
        return self.known

    def submission(self, name, *words, **options):
        return name

    def submit(self, name):
        self.queue[7] = SimpleNamespace(name=name, state='RUNNING', is_over=False)
        return 7


def test_a_job_is_counted_by_its_own_limit_and_at_its_own_time(tmp_path):
    work = state.create(tmp_path / 's', {'id': 's', 'nodes': {'n1': ''}, 'partition': 'made:cpu', 'command': [], 'access': [], 'pace': {}, 'checks': 1}, '')
    work.begin()
    slurm, said, folder, pace = OnPaper(), [], work.of(work.nodes['n1']), driver.Pace(1, 0, 0, 0, 0, 60)
    with pytest.raises(driver.GaveUp):
        driver.Driver(work, slurm, pace, said.append).run()
    slurm.queue, slurm.known = {}, {}       # it took 50 minutes of its hour, and nobody looks before the next day
    began = time.time() - 86400
    for name, at in ((job.CLAIM, began), (job.ENDED, began + 3000)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text('7')
        os.utime(folder / name, (at, at))
    resumed = driver.Driver(work, slurm, driver.Pace(1, 0, 0, 0, 0, 5), said.append)
    resumed.run()
    known = state.load(tmp_path / 's').nodes['n1']
    assert known.state == 'gone' and known.spent == {'7': pytest.approx(3000)} and known.at == pytest.approx(began)
    # A job that was ended from outside has had the node until it was seen: that is not counted on.
    (folder / job.ENDED).unlink()
    resumed.over(work.nodes['n1'], state.SKIPPED, 'no hours are left')
    assert work.nodes['n1'].spent == {'7': pytest.approx(3000)}


def test_a_job_that_was_preempted_says_nothing_of_its_node(tmp_path, journal):
    class Preempting(OnPaper):
        def jobs(self, prefix):
            return {7: slurm.Job(7, '', 'PREEMPTED', 'None')} if self.queue else {}

    work = state.create(tmp_path / 's', {'id': 's', 'nodes': {'n1': ''}, 'partition': 'made:cpu', 'command': [], 'access': [], 'pace': {}, 'checks': 1}, '')
    work.begin()
    driver.Driver(work, Preempting(), driver.Pace(1, 0, 0, 0, 0, 60), print).run()
    findings.record(work)
    assert work.nodes['n1'].missing == 'cancelled: job PREEMPTED' and not journal.exists()


@pytest.mark.parametrize('away, ends', [(3500, False), (3700, True)])
def test_a_controller_that_is_away_for_an_hour_ends_a_sweep_that_says_how_it_goes_on(tmp_path, monkeypatch, capsys, away, ends):
    now, asked = [0.0], []

    class Away(OnPaper):
        def jobs(self, prefix):
            asked.append(now[0])
            if 0 < now[0] < away:
                raise NoAnswer('squeue: Unable to contact slurm controller')
            return {7: SimpleNamespace(name='', state='RUNNING', is_over=False)} if now[0] < away else {}

    monkeypatch.setattr(driver, 'time', SimpleNamespace(monotonic=lambda: now[0], time=time.time, sleep=lambda seconds: now.__setitem__(0, now[0] + seconds)))
    monkeypatch.setattr(slurm, 'Slurm', lambda access: Away())
    work = state.create(tmp_path / 's', {'id': 's', 'nodes': {'n1': ''}, 'partition': 'made:cpu', 'command': [], 'access': [], 'pace': {}, 'checks': 1}, '')
    pace = driver.Pace(1, 0, 10, 3600, 86400, 60)
    if ends:
        with pytest.raises(PlumblineError, match='^squeue: Unable to contact slurm controller, for more than 3600 s; to go on: plumbline sweep --resume s$'):
            sweep_command._run(work, pace)
        assert 3600 < now[0] < 3700 and len(asked) < 100 and '1 job left in the queue; to end what was begun: scancel 7' in capsys.readouterr().out
    else:
        sweep_command._run(work, pace)
        assert 'Slurm answers again' in capsys.readouterr().out and work.nodes['n1'].phase == state.OVER


def test_limits_that_leave_no_job_are_said_before_anything_is_submitted(tmp_path):
    with pytest.raises(PlumblineError, match='--node-hours 0.5 are less than one job may take'):
        plan.usable(None, Limits(node_hours=0.5), 60)
    with pytest.raises(PlumblineError, match='sweep.json: limits: .*nonsense'):
        kept(tmp_path, {'nonsense': 1})
