"""The terminal's table and the HTML report, on a session that nobody measured (sample_session.py)."""

import base64
import gzip
import io
import json
import re
import tracemalloc
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from rich.text import Text

import sample_session as sample
from plumbline import report
from plumbline.analysis import answers, counts, diagnosis, gathered, lines, machine_state, subsystems
from plumbline.errors import PlumblineError
from plumbline.model import quantity
from plumbline.report import drawing, figures, page as pages, public, readings
from plumbline.report.figures import overview, roofline
from plumbline.report.grid import grid
from plumbline.store import archive

PROBE = "<script>alert('x')</script>"


def terminal(rows, width, **options):
    '''What the terminal shows, as lines.'''
    console = Console(record=True, width=width, file=io.StringIO(), **options)
    report.render(report.Session(rows), console)
    return console.export_text(clear=False).splitlines()


class Page(HTMLParser):
    """The page's elements; an element that is not closed in order is an error."""

    VOID = {'meta', 'br', 'link', 'img', 'input'}

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.scripts, self.rows, self.text = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == 'tbody' and 'data-verdict' in attributes:
            self.rows.append((attributes['data-verdict'], []))
        if tag == 'script':
            self.scripts.append((attributes.get('type'), []))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if 'script' in self.open:
            self.scripts[-1][1].append(data)
        elif 'style' not in self.open:
            self.text.append(data)
            if 'tbody' in self.open and self.rows:
                self.rows[-1][1].append(data)

    def embedded(self):
        """Plotly's JSON of each figure."""
        return [json.loads(''.join(parts)) for kind, parts in self.scripts if kind == 'application/json']


@pytest.fixture(scope='module')
def session():
    return sample.sample_session()


@pytest.fixture(scope='module')
def html(session, tmp_path_factory):
    path = report.write(report.Session(session), tmp_path_factory.mktemp('report'))
    assert path.name == 'index.html'
    return path.read_text(encoding='utf-8')


@pytest.fixture(scope='module')
def page(html):
    return Page(html)


def page_of(rows, folder):
    return Page(report.write(report.Session(rows), folder).read_text(encoding='utf-8'))


# --- lines -----------------------------------------------------------------------------------------------------


def test_lines_that_need_attention_come_first(session):
    order = [line.verdict for line in lines.verdict_lines(session)]
    assert order == sorted(order, key=lines.VERDICTS.index)
    assert set(order) == set(lines.VERDICTS) - {'KNOWN ISSUE'}


@pytest.mark.parametrize('cases, status', [([sample.case('a', [sample.metric('of_limit', 0.9)])], 0),
                                           ([sample.case('a', [sample.metric('of_limit', 0.9, reference=None)])], 0),
                                           ([sample.case('a', [sample.metric('of_limit', 0.9, verdict='KNOWN ISSUE')])], 0),
                                           ([sample.case('a', [sample.metric('of_limit', 0.9)]), sample.broken()], 1), ([sample.broken()], 1),
                                           ([sample.skipped(), sample.fixture()], 2), ([], 2),
                                           ([sample.case('a', [sample.metric('of_parts.nt', 0.9, verdict='UNSTABLE'),
                                                               sample.metric('of_parts', 0.9) | {'sees': 0.3}])], 0),
                                           ([sample.case('a', [sample.metric('of_parts', 0.9, verdict='UNSTABLE'),
                                                               sample.metric('of_limit', 0.9, reference=(1.0, None, 0.1))])], 3),
                                           ([sample.case('a', [sample.metric('of_limit', 0.9, verdict='UNSTABLE')]),
                                             sample.case('b', [sample.metric('of_limit', 0.9)])], 3),
                                           ([sample.case('a', [sample.metric('of_limit.nt', 0.9, verdict='UNSTABLE'), sample.metric('of_limit', 0.9) | {
                                               'sees': 0.3}], result='fail', fail_phase='performance')], 3)],
                         ids=['pass', 'no reference', 'known issue', 'one fail', 'only fail', 'nothing measured', 'no rows', 'partly unstable',
                              'unstable beside what sees nothing', 'undecided', 'partly unstable, not run again'])
def test_exit_status(cases, status):
    assert report.Session(sample.frame(*cases)).exit_status() == status


def test_only_the_last_run_counts():
    (line,) = lines.verdict_lines(sample.frame(sample.retried()))
    assert (line.verdict, line.value) == ('PASS', 0.95)
    assert line.retried == 'PASS at run 2 of 2; run 1: 0.710'
    rows = sample.frame(sample.case('a', result='fail', fail_phase='run', verdict='FAIL'), sample.case('a', [sample.metric('of_limit', 0.9)], run=1))
    (line,) = lines.verdict_lines(rows)
    assert line.retried == 'PASS at run 2 of 2; run 1: failed in run'


@pytest.mark.parametrize('phase, verdict, expected', [('cleanup', 'PASS', ['FAIL', 'PASS']), ('performance', 'PASS', ['FAIL', 'PASS']),
                                                      ('performance', 'UNSTABLE', ['UNSTABLE']), ('performance', 'FAIL', ['FAIL'])])
def test_a_test_that_reframe_calls_failed_never_looks_passed(phase, verdict, expected):
    rows = sample.frame(sample.case('a', [sample.metric('of_limit', 0.9, verdict=verdict)], result='fail', fail_phase=phase, fail_reason='disk full'))
    assert [line.verdict for line in lines.verdict_lines(rows)] == expected


def test_what_a_broken_environment_keeps_from_running_is_a_fail_where_nothing_else_says_so():
    def end(check, verdict, cause):
        return sample.case(check, result='fail', fail_phase='compile', verdict=verdict, reason=f'gnu is broken: {cause}', environment_error=cause)

    cases = end('build', 'FAIL', 'no compiler'), end('a', None, 'no compiler'), end('b', None, 'no linker')
    assert [line.check for line in lines.verdict_lines(sample.frame(*cases))] == ['build', 'b']
    assert [line.check for line in lines.verdict_lines(sample.frame(*cases[1:]))] == ['a', 'b']      # a retry went well


def test_bounds_are_absolute_and_a_failure_or_a_failed_build_is_one_line():
    rows = sample.frame(sample.case('a', [sample.metric('bandwidth.nt', 28_000, 'MB/s', reference=(30_000, -0.1, None)),
                                          sample.metric('of_limit.nt', 0.9, reference=(1.0, -0.2, 0.1))]))
    shown = [line.shown_reference for line in lines.verdict_lines(rows)]
    assert shown == ['30.0 (>=27.0)', '1.00 (0.800..1.10)']
    case = sample.case('a', [sample.metric('of_limit', 0.9), {'verdict': 'FAIL', 'reason': 'cleanup: disk full'}], result='fail',
                       fail_phase='cleanup', fail_reason='disk full')
    assert [(line.verdict, line.metric, line.reason) for line in lines.verdict_lines(sample.frame(case))] == [('FAIL', '', 'cleanup: disk full'),
        ('PASS', 'of_limit', '0.9 is within its bounds')]
    rows = sample.frame(sample.case('build_programs', fixture=True, result='fail', fail_phase='compile', fail_reason='gcc: not found'))
    (line,) = lines.verdict_lines(rows)
    assert (line.verdict, line.reason) == ('FAIL', 'compile: gcc: not found')


def test_what_differs_is_in_the_label():
    rows = sample.frame(*(sample.case('a', [sample.metric('of_limit', 0.9)], host=host, environ=environ) for host in ('n1', 'n2')
                          for environ in ('gnu', 'llvm')))
    assert {line.label for line in lines.verdict_lines(rows)} == {'a gnu n1', 'a gnu n2', 'a llvm n1', 'a llvm n2'}
    cases = (sample.case('gather', [sample.metric('of_limit', 0.9)], test=n, display_name=f'gather %threads={n} %indices=uniform')
             for n in ('one', 'all'))
    assert {line.label for line in lines.verdict_lines(sample.frame(*cases))} == {'gather one uniform', 'gather all uniform'}
    console = Console(file=io.StringIO(), width=80)
    console.print(grid(['[/bold]', 'n'], [['[/italic]', Text('3', 'bold')]], right=['n'], whole=['n']))
    assert '[/bold]' in console.file.getvalue() and '[/italic]' in console.file.getvalue()


@pytest.mark.parametrize('value, unit, shown', [(31_234, 'MB/s', '31.2 GB/s'), (999, 'MB/s', '999 MB/s'), (1.59e6, 'MB/s', '1.59 TB/s'),
                                                (0.93, '1', '0.930'), (1500, 'Mflop/s', '1.50 Gflop/s'), (0.05, 'us', '50.0 ns'),
                                                (3093, 'MHz', '3.09 GHz'), (None, 'MB/s', '-'), (float('nan'), 's', '-'), (0, '1', '0.000'),
                                                (1, 'TEPS', '1.00 TEPS'), (36 * 2**20, 'bytes', '36 MiB')])
def test_amounts(value, unit, shown):
    assert quantity.amount(value, unit) == shown


@pytest.mark.parametrize('value, shown', [
    (0, '0 B'), (1023, '1023 B'), (48 * 2**10, '48 KiB'), (1023 * 2**20, '1023 MiB'), (7.5 * 2**20, '7.5 MiB'), (15.255 * 2**30, '15.26 GiB'),
    (None, '-')])
def test_bytes(value, shown):
    assert quantity.size(value) == shown


@pytest.mark.parametrize('share, one, none', [
    (0.0214, '2.1 %', '2 %'), (0.994, '99.4 %', '99 %'), (0.996, '100 %', '100 %'), (1.5, '150 %', '150 %'), (553.2, '553 times', '553 times'), (70863.2, 'over 1000 times', 'over 1000 times'),
    (float('nan'), '-', '-')])
def test_shares(share, one, none):
    assert (quantity.percent(share), quantity.percent(share, 0)) == (one, none)


def test_changes_and_numbers_of_things():
    assert (quantity.change(-0.0911), quantity.change(0.3, 0)) == ('-9.1 %', '+30 %')
    assert [quantity.several(count, 'thread') for count in (0, 1, 2, '1', 'one', 'all')] == [
        '0 threads', '1 thread', '2 threads', '1 thread', 'one thread', 'all threads']


# --- terminal --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize('width', [80, 140])
def test_the_first_lines_say_what_is_wrong_and_the_order_is_the_page_s(session, width):
    slow = sample.case('latency', [sample.predicted(variant, 0.08) for variant in sample.HISTORY], threads='one', detail={'rerun': 'reframe again'})
    note = sample.case('capacity', [sample.metric('of_best.x', 0.8, reference=None)], detail={'notes': ['L3: half'], 'noted': [{'about': 'caches', 'note': 'L3: half'}]})
    rows = pl.concat([session, sample.frame(slow, note, info=None)])
    shown = terminal(rows, width)
    assert shown[1].startswith('software     FAIL          14 PASS, 1 FAIL, ') and 'strided_copy all' in shown[2]
    shown = ' '.join(' '.join(shown).split())
    text = ' '.join(' '.join(Page(pages.page(report.Session(rows))).text).split())
    told = ['software', 'speed', 'measurement', 'What is wrong, and what to look at', 'None of the', 'latency', 'worse than in 5 sessions', 'Probably worse',
            'reframe again', 'strided_copy', 'L3: half', 'needs two nodes, the partition has one']
    for where in (shown, text):
        places = [where.index(told[0])]
        for part in told[1:]:
            places.append(where.index(part, places[-1]))
    assert re.search(r'software +FAIL .*triad_memory all +bandwidth\.plain .*FAIL \d+ is outside', shown)
    assert re.search(r'software +FAIL +14 PASS, 1 FAIL, [^;]* speed +FAIL +22 PASS, 2 FAIL, [^;]*; subsystems: 1 FAIL measurement .* 10 not measured$', shown)


@pytest.mark.parametrize('chance, said', [(0.0002, 'once in 5,000'), (1e-9, 'less than once in a million'), (0.0, 'less than once in a million')])
def test_odds(chance, said):
    assert quantity.odds(chance) == said


def test_what_took_the_cpus_stands_above_what_is_slow():
    quiet = {'record': 'contention', 'schema': 1, 'threads': 2, 'elapsed': 5.0, 'throttled': 0, 'waited': 0.02, 'stolen': 0.0}
    cases = [sample.case(name, [sample.metric('of_limit.nt', 0.9)], threads='all', detail={'contention': [quiet | {'waited': waited}]})
             for name, waited in (('triad_memory', 4.0), ('limits', 0.02))]
    said = terminal(sample.frame(*cases), 120)
    text = ' '.join(' '.join(said[said.index('What is wrong, and what to look at') + 1:][:3]).split())
    assert text.startswith('The threads did not have the CPUs to themselves') and 'other processes took 20 % of the time' in text
    assert 'the least had triad_memory all' in text and '60.0 % of its time' in text
    assert 'other processes took 20 %' in pages.page(report.Session(sample.frame(*cases)))
    assert 'CPUs to themselves' not in ' '.join(terminal(sample.frame(cases[1]), 120))


def test_what_may_explain_a_loss_leaves_a_session_undecided_and_a_little_of_it_does_not():
    '''The exit code and the answer on the measurement are one; two threads on one core are a state of the host, and no disturbance.'''
    contention = {'record': 'contention', 'schema': 1, 'threads': 2, 'elapsed': 5.0, 'throttled': 0, 'waited': 0.0, 'stolen': 0.0}
    sharing = {'records': [{'probes': {'core_sharing': {side: [1.96] * 24 for side in ('before', 'after')}}}]}

    def said(*metrics, machine=(), records=(), **lost):
        had = sample.metric('cpu_availability', 0.9) | {'sees': 0.2}
        session = report.Session(sample.frame(sample.case('node_speed', [had, *metrics], threads='all', level='L1', detail={
            'contention': [contention | lost], 'machine': sample.MACHINE | dict(machine), **dict(records)})))
        answer, = (one for one in session.answers if one.question == 'measurement')
        return answer.verdict, session.exit_status(), answer.text, session.not_judged()

    had = 'the threads had the CPUs for 90.0 % of the time, the least of all tests'
    why = 'The threads did not have the CPUs to themselves'
    assert said() == ('PASS', 0, had, '')
    for cause in ('waited', 'stolen'):
        assert said(**{cause: 0.6}) == ('PASS', 0, f'{had}; noticed: {why}', '')
        assert said(**{cause: 1.5}) == ('UNSTABLE', 3, f'disturbed: {why}', f'NOT JUDGED: the measurement (disturbed: {why})')
    assert said(machine={'cpu_quota': 1.9})[:2] == ('PASS', 0) and said(machine={'cpu_quota': 1.0})[:2] == ('UNSTABLE', 3)
    noisy = sample.metric('of_parts.plain', 0.6, verdict='UNSTABLE')
    assert said(noisy, records=sharing) == ('PASS', 0, f'{had}; noticed: Two of the threads were on one core', '')
    assert said(sample.metric('of_parts.plain', 0.4, verdict='FAIL'), waited=1.5)[:2] == ('UNSTABLE', 1)


@pytest.mark.parametrize('mhz, status', [([3000] * 95 + [1200] * 5, 0), ([3000] * 80 + [1200] * 20, 3), ([1200] * 100, 3)])
def test_a_clock_that_fell_now_and_then_leaves_a_session_undecided_where_it_may_explain_a_loss(mhz, status):
    session = report.Session(sample.frame(clocked('limits', mhz)))
    assert len(session.diagnosis.findings) == 1 and session.exit_status() == status


def test_a_quota_that_came_in_the_middle_of_a_session_is_named():
    '''The tests that follow are of as many threads as it lets run.'''
    quiet = {'record': 'contention', 'schema': 1, 'elapsed': 5.0, 'throttled': 0, 'waited': 0.0, 'stolen': 0.0}

    def said(*tests):
        cases = [sample.case(name, [sample.metric('of_limit.nt', 0.9)], threads=threads, detail={
            'contention': [quiet | {'threads': ran}], 'machine': sample.MACHINE | {'cpu_quota': quota}}) for name, threads, ran, quota in tests]
        return ' '.join(' '.join(terminal(sample.frame(*cases), 120)).split())

    assert "a cgroup's quota is 1.5 CPUs for 2 threads" in said(('node_speed', 'all', 2, None), ('latency', 'one', 1, 1.5), ('limits', 'all', 1, 1.5))
    for healthy in ([('limits', 'all', 2, 2.5), ('latency', 'one', 1, 2.5)], [('limits', 'all', 2, None), ('latency', 'one', 1, 1.0)]):
        assert "a cgroup's quota" not in said(*healthy)


def clocked(name, mhz, **machine):
    '''A test beside whose samples the clock was this, before and after each.'''
    clock = {'before': [one * 1e6 for one in mhz], 'after': [one * 1e6 for one in mhz]}
    return sample.case(name, [sample.metric('of_limit.nt', 0.9)], detail={
        'machine': sample.MACHINE | {'base_clock': {'mhz': 2000, 'source': 'made up'}} | machine, 'records': [{'probes': {'clock': clock}}]})


def test_a_clock_that_was_held_down_stands_above_what_is_slow():
    good, hot = clocked('triad_memory', [3000] * 90), clocked('limits', [3000] * 4 + [1200] * 6)
    said = terminal(sample.frame(good, hot), 120)
    said = ' '.join(' '.join(said[said.index('What is wrong, and what to look at') + 1:]).split())
    assert said.startswith('The processor was throttled: its clock fell now and then, and what is slow may be slow for that [certain] '), said
    assert 'below 85 % of the base clock (2000 MHz) beside 6 % of the samples, most in limits: 60 %, down to 1200 MHz' in said.replace('.0 %', ' %'), said
    # What the driver says may be lowered; without turbo it is all that there is.
    lowered = {'mhz': 1200, 'nominal_mhz': 2000, 'source': 'cpufreq'}
    assert 'base clock (2000 MHz)' in ' '.join(terminal(sample.frame(clocked('limits', [1200] * 9, base_clock=lowered | {'turbo': True})), 120))
    for healthy in ([good], [clocked('limits', [1200] * 9, base_clock=lowered | {'turbo': False})], [clocked('peak_flops', [1200] * 9)], [clocked('limits', [1200] * 9, base_clock=None)],
                    [clocked('limits', [1200] * 9, core_kinds=[[0], [1]])], [good, clocked('limits', [1200] + [3000] * 9)]):
        assert 'the clock was below' not in ' '.join(terminal(sample.frame(*healthy), 120))


@pytest.mark.parametrize('width', [64, 80, 140])
def test_no_line_is_wider_than_the_terminal(session, width):
    shown = terminal(session, width)
    long = [line for line in shown if len(line) > width and not line.startswith('  reframe ')]
    assert not long


def test_every_metric_has_its_row(session):
    shown = terminal(session, 140)
    for line in lines.verdict_lines(session):
        (row,) = (text for text in shown if text.startswith(f'{line.label} ') and f" {line.metric or '(no metric)'} " in text
                  and text.endswith(line.verdict))
        assert line.shown_value in row and line.shown_reference in row and line.shown_spread in row


def test_why_a_session_is_not_judged_is_above_all_else(tmp_path):
    rows = sample.frame(sample.case('a', [sample.metric('of_limit', 0.9)]),
                        sample.case('b', result='skip', detail={'skipped': [{'metric': 'all', 'reason': 'no MPI', 'recorded': 3}]}))
    said = 'NOT JUDGED: b, not measured (no MPI; references are recorded of 3 of its metrics)'
    shown, text = terminal(rows, 140), ' '.join(page_of(rows, tmp_path).text)
    assert said in shown[:6] and shown[-2:] == ['1 not measured', said]
    assert said in text and 'Nothing that was judged is out of bounds' not in text


@pytest.mark.parametrize('sees, said', [
    ([0.1, 0.3, 0.2], 'half of 3 PASS would see a loss of 20.0 %'), ([None, None], '2 of 2 PASS say only that the value is possible, and would see no loss'),
    ([None, 0.1, 0.3, 0.2], '1 of 4 PASS say only that the value is possible, and would see no loss; half of the others would see a loss of 20.0 %'),
    ([], '')])
def test_what_the_passes_can_see_is_said(sees, said):
    metrics = [sample.metric(f'of_limit.{i}', 0.9) | {'sees': one} for i, one in enumerate(sees)] or [sample.metric('bandwidth.x', 1.0, reference=None)]
    assert counts.power(lines.verdict_lines(sample.frame(sample.case('a', metrics)))) == said


def test_what_is_known_of_the_speed_is_said():
    def said(*metrics):
        return subsystems.speed(subsystems.judge(lines.verdict_lines(sample.frame(sample.case('a', list(metrics))))))

    rate, share = sample.metric('bandwidth', 900.0, reference=None), sample.metric('of_limit', 0.9)
    assert said(share) == ''
    assert said(share, rate).startswith('not judged, none of its 1 rates and times has a recorded reference')
    known = sample.metric('bandwidth.nt', 900.0, reference_from='made.yaml')
    assert said(rate, known).startswith('not judged, only 1 of its 2 rates and times has a recorded reference')
    assert said(known).startswith('judged metric by metric, not as a whole')


def test_each_question_is_answered_by_its_own_evidence():
    '''A clock within its bounds does not say that the code is good, and a triad within its parts not that the machine is fast.'''
    share, slow = sample.metric('of_parts.plain', 0.9) | {'sees': 0.3}, sample.metric('of_parts.nt', 0.4) | {'verdict': 'FAIL', 'reason': 'below'}
    rate, clock = sample.metric('bandwidth.plain', 900.0, reference=None), sample.metric('of_base.one', 1.2) | {'sees': 0.1}
    had = sample.metric('cpu_availability', 0.993)

    def said(*metrics, beside=()):
        verdicts = lines.verdict_lines(sample.frame(sample.case('a', list(metrics)), *beside))
        judged = subsystems.judge(verdicts)
        return {one.question: (one.verdict, one.text) for one in answers.answers(verdicts, judged, diagnosis.diagnose(verdicts, [], judged))}

    good = said(share, rate, clock, had)
    assert good['software'] == ('PASS', 'gets what this machine gives, as far as is judged: 1 share within bounds; '
                                'half of 1 PASS would see a loss of 30.0 %')
    assert good['speed'][0] == 'NO REFERENCE' and good['speed'][1].startswith('not judged, none of its 1 rates')
    assert good['speed'][1].endswith('; 1 comparison with datasheet, base clock, the other cores or a single reference within bounds')
    assert good['measurement'] == ('PASS', 'the threads had the CPUs for 99.3 % of the time, the least of all tests')
    bad = said(share, slow, rate, had)
    assert bad['software'][0] == 'FAIL' and bad['software'][1].startswith('1 of 2 metrics out of bounds: a')
    assert (bad['speed'][0], bad['measurement']) == ('NO REFERENCE', good['measurement'])
    shared, alone = (json.dumps({'core_to_core.0': 3e-8, 'core_sharing': factor}) for factor in (1.96, 1.0))
    assert said(share, rate | {'state': alone}, had)['measurement'] == good['measurement']
    assert said(share, rate | {'state': shared}, had)['measurement'] == (
        'PASS', good['measurement'][1] + '; two threads were on one core, now and then or always, in 1 test: a')
    others = json.dumps([{'state': json.loads(shared), 'value': 1.0, 'n': 3, 'spread': 0.1, 'interval': [0.9, 1.1]}])
    assert 'two threads were on one core' in said(rate | {'state': alone, 'states': others}, had)['measurement'][1]
    many = said(*(sample.metric(f'of_parts.{number}', 0.4) | {'verdict': 'FAIL', 'reason': 'below'} for number in range(5)))
    assert many['software'][1].endswith('of_parts.2 0.400 and 2 more')
    taken = sample.metric('of_parts.plain', 0.9, reference=None) | {'unjudged': 'the threads did not have the CPUs to themselves'}
    assert said(taken, rate)['software'] == ('NO REFERENCE', 'not judged: the threads did not have the CPUs to themselves')
    assert said(share | {'reference': None, 'verdict': 'NO REFERENCE'}, rate)['software'][1].endswith('has a reference')
    assert said() == {}
    theirs = sample.case('their_build', result='fail', foreign=True, verdict='FAIL', reason='compile: no such file'), sample.case(
        'their_stream', [sample.metric('other_more.triad', 800.0, reference=None)], foreign=True)
    assert said(share, rate, clock, had, beside=theirs) == good | {'software': (
        'PASS', good['software'][1] + '; others: 1 of 1 metrics out of bounds: their_build as a whole')}


def test_the_counts_of_a_question_are_of_its_own_evidence():
    '''Neither a share nor a foreign test makes the machine look faster, and what disturbs the measurement is no fault of the software.'''
    taken = [sample.predicted(variant, 0.1, name='cpu_availability', unit='1') for variant in sample.HISTORY]
    session = report.Session(sample.frame(
        sample.case('a', [sample.metric('of_parts.plain', 0.9), sample.metric('bandwidth.plain', 900.0, reference=None), *taken]), sample.broken(),
        sample.case('pingpong_simulated', [sample.metric('bandwidth.x', 9.0)]), sample.case('their_build', foreign=True, verdict='PASS', reason='ran')))
    zero = {'PASS': 0, 'FAIL': 0, 'UNSTABLE': 0, 'NO REFERENCE': 0}
    assert session.counts == {'software': zero | {'PASS': 1, 'FAIL': 1}, 'speed': zero | {'NO REFERENCE': 1}, 'measurement': zero | {'PASS': 12},
                              'others': zero | {'PASS': 2}}
    assert session.tallies['measurement'] == '12 PASS, 0 FAIL, 0 UNSTABLE, 0 NO REFERENCE; subsystems: 1 FAIL'
    assert [one.verdict for one in session.answers] == ['FAIL', 'NO REFERENCE', 'FAIL'] and 'CPU availability -' in session.answers[2].text


def test_short_forms_at_80_columns(session):
    shown = '\n'.join(terminal(session, 80))
    head, = (line for line in shown.splitlines() if line.startswith('check '))
    assert 'NO REF\n' in shown and '73.4..89.7' in shown and 'limit' not in head and ' bounds ' in head
    assert 'NO REFERENCE\n' in '\n'.join(terminal(session, 140))
    shown = ' '.join(' '.join(terminal(session, 80)).split())
    assert 'pingpong - needs two nodes, the partition has one' in shown
    assert 'triad_curve one: counters; triad_curve all: counters - hardware counters are not readable' in shown
    console = Console(record=True, width=140, file=io.StringIO(), force_terminal=True, color_system='standard')
    report.render(report.Session(session), console)
    shown = console.export_text(styles=True).splitlines()
    without = [line for line in shown if line.endswith('NO REFERENCE\x1b[0m') and 'PASS' not in line]
    assert without and not any(re.search(r'\x1b\[(\d+;)*32m', line) for line in without)
    assert any(re.search(r'\x1b\[32mPASS', line) for line in shown)


def test_what_nobody_can_judge_does_not_push_away_what_is_wrong():
    '''201 metrics without a reference, and one test that failed.'''
    many = sample.case('imb_nbc', [sample.metric(f'time.{i}', 1.0, 's', reference=None) for i in range(201)], detail={})
    shown = terminal(sample.frame(many, sample.broken('it crashed')), 120)
    assert len(shown) < 24 and any('strided_copy' in line and 'FAIL' in line for line in shown)
    assert 'No reference; the page has the values' in shown and '  imb_nbc 201' in shown
    left = [lines.NotMeasured('pingpong_nodes', 'all', 'needs 2 nodes')] * 6
    assert lines.by_reason(left) == [('needs 2 nodes', ['pingpong_nodes: all'])]


def test_a_session_without_measurements_says_so(session):
    for rows in (sample.frame(), sample.frame(sample.skipped())):
        assert 'NOTHING WAS MEASURED' in '\n'.join(terminal(rows, 80)[:3])
    rows = sample.frame(sample.broken('\x1b[2J\x07no \u2716\nTraceback\n  more'))
    console = Console(width=80, file=io.TextIOWrapper(io.BytesIO(), encoding='ascii'))
    report.render(report.Session(rows), console)
    console.file.flush()
    shown = console.file.buffer.getvalue().decode('ascii')
    assert 'no ? Traceback more' in shown and '\x1b' not in shown and '\x07' not in shown


# --- page ------------------------------------------------------------------------------------------------------


def test_every_verdict_has_its_row(session, page):
    rows = [(verdict, ' '.join(' '.join(text).split())) for verdict, text in page.rows]
    expected = lines.verdict_lines(session)
    assert len(rows) == len(expected) == 45
    for line, (verdict, text) in zip(expected, rows):
        assert verdict == line.verdict and line.verdict in text
        for part in (line.check, line.metric, line.shown_value, line.shown_reference, line.shown_limit, line.shown_spread, line.detail.rerun,
                     line.detail.command, line.detail.question, line.reason):
            assert part in text


def test_nothing_is_requested(page, html):
    (policy,) = (a['content'] for tag, a in page.elements if tag == 'meta' and 'http-equiv' in a)
    assert policy.startswith("default-src 'none';") and 'http' not in policy and 'connect-src' not in policy
    assert not [(tag, a) for tag, a in page.elements if tag in ('link', 'img', 'iframe', 'object', 'embed', 'base', 'form') or 'src' in a
                or 'srcset' in a]
    assert all(a['href'].startswith('#') for _, a in page.elements if 'href' in a)
    # plotly.js knows addresses of map servers as text; what is ours knows none.
    own = ''.join(text for kind, parts in page.scripts for text in parts if kind or 'use strict' in text[:20])
    own += re.search(r'<style>(.*?)</style>', html, re.S)[1]
    assert not re.search(r'https?:|fetch\(|XMLHttpRequest|@import|url\(|sendBeacon', own)
    packed = [''.join(parts) for kind, parts in page.scripts if kind == 'text/plain']
    unpacked = [gzip.decompress(base64.b64decode(text)).decode() for text in packed]
    assert sum('plotly.js v' in text[:500] for text in unpacked) == 1 and len(unpacked) == 2


def test_both_bounds_of_the_traffic_are_shown(tmp_path):
    certain = sample.records([5_000_000], [1])[0]
    uncertain = certain | {'traffic': 4e9, 'traffic_least': 3e9}
    metrics = [sample.metric(f'of_limit.{end}', 0.8, verdict='FAIL') | {'record': number} for number, end in enumerate(('two', 'one'))]
    rows = sample.frame(sample.case('triad_memory', metrics, detail={'records': [uncertain, certain]}))
    text = '0.600 if the processor leaves write-allocates out'
    assert [line.strip() for line in terminal(rows, 200)].count(text) == 1
    shown = report.write(report.Session(rows), tmp_path).read_text(encoding='utf-8')
    assert shown.count(f'title="{text}">0.800*</td>') == 1 and shown.count('>0.800</td>') == 1


def test_what_others_wrote_is_text(page, html):
    assert PROBE not in html
    assert any(PROBE in ''.join(text) for verdict, text in page.rows if verdict == 'FAIL')
    found = [html.index(text) for text in ('Plumbline report', 'Verdicts</h2>', 'Figures</h2>', 'Where the time went', 'State of the machine',
                                           'Software</h2>', 'Notes</h2>', 'Not measured</h2>')]
    assert found == sorted(found)


def test_a_variant_s_name_cannot_leave_its_figure(tmp_path):
    name = '</script><script>alert(1)</script>'
    records = [r | {'variant': name} if r['variant'] == 'plain' else r for r in sample.records([5_000_000], [1])]
    rows = sample.frame(sample.case('triad_memory', [sample.metric('of_limit', 0.9)], detail={'records': records}))
    page = page_of(rows, tmp_path)
    assert not any('alert(1)' in ''.join(parts)[:200] for kind, parts in page.scripts if kind is None)
    assert page.embedded()[0]['data'][0]['y'] == ['&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;']


def test_the_state_has_no_blanks(page):
    text = ' '.join(' '.join(page.text).split())
    for part in ('frequency governor not readable', 'microcode not readable', 'caches L1 48 KiB', 'gcc 12.2.0: -O3', 'ReFrame 4.10.4',
                 'NUMA balancing off', 'spectre_v2: Mitigation; Retpolines', "68.6 % of the session's 3 min 08 s were spent inside timed loops"):
        assert part in text


def test_missing_data_leave_a_sentence(tmp_path):
    rows = sample.frame(sample.case('triad_curve', [sample.metric('of_limit', 0.9)], threads='one', detail={}),
                        sample.case('triad_memory', [sample.metric('of_limit', 0.9)], detail={'machine': None, 'records': None}),
                        sample.case('triad_scaling', [sample.metric('efficiency', 0.9)], detail={'records': sample.records([8000], [1])}),
                        sample.case('limits', [sample.metric('bandwidth', 9, 'MB/s')], threads='one'), info=None)
    page = page_of(rows, tmp_path)
    text = ' '.join(' '.join(page.text).split())
    assert not page.embedded() and text.count('Not drawn: ') == 4
    assert "The session's wall time is not readable" in text and 'ReFrame not readable' in text
    case = sample.case('triad_curve', threads='one', result='fail', fail_phase='run', fail_reason='killed', verdict='FAIL')
    case[0]['detail'] = '{"schema": 1}'
    assert [verdict for verdict, _ in page_of(sample.frame(case), tmp_path).rows] == ['FAIL']
    text = ' '.join(page_of(sample.frame(), tmp_path).text)
    assert 'NOTHING WAS MEASURED: this is not a pass' in text


def test_a_subsystem_that_fails_is_not_within_bounds_on_a_page_for_strangers(tmp_path):
    '''Each metric passes, and no command is shown.'''
    for loss, within in ((0.0, True), (0.08, False)):
        rows = sample.frame(sample.case('triad_memory', [sample.predicted(variant, loss) for variant in sample.HISTORY], threads='one', detail={}))
        text = report.write(report.Session(rows), tmp_path, to_strangers=True).read_text()
        assert ('Nothing that was judged is out of bounds' in text) == within and 'reframe -C' not in text


def test_the_file_replaces_the_old_one_whole(tmp_path):
    rows = sample.frame(sample.skipped())
    target = tmp_path / 'made' / 'on' / 'the way'
    report.write(report.Session(rows), target).write_text('old')
    assert report.write(report.Session(rows), target).read_text().startswith('<!doctype html>')
    assert [entry.name for entry in target.iterdir()] == ['index.html']
    (tmp_path / 'file').write_text('')
    with pytest.raises(PlumblineError, match=r'cannot write the report .*file.*: name a folder') as error:
        report.write(report.Session(sample.frame()), tmp_path / 'file' / 'sub')
    assert '\n' not in str(error.value)


# --- figures ---------------------------------------------------------------------------------------------------


def test_each_check_has_its_figures(page):
    shown = [[trace.get('name') for trace in figure['data'] if trace.get('showlegend') is not False] for figure in page.embedded()]
    curve = ['plain', 'novec', 'nt', 'prefetch', drawing.LIMIT_NAME, 'limit with write-allocate, 4/5 beyond L1']
    assert shown == [[], curve, curve, [], ['memory', 'in cache (L2)']]      # the first: the memory hierarchy


def details_of(check, *records, **detail):
    return [{'check': check, 'hostname': 'n1', 'partition': 'cpu', 'environ': 'gnu', 'level': None, 'threads': None, 'machine': sample.MACHINE,
             'metrics': [], 'records': list(records)} | detail]


def test_the_second_limit_is_four_fifths_beyond_l1():
    records = [r for group, size in enumerate((1000, 100_000))
               for r in (sample.record('load', size, 1, group, 'limit'), sample.record('plain', size, 1, group))]
    ((_, _, figure),) = figures.FIGURES['triad_curve'](details_of('triad_curve', *records))
    first, second = (np.array(trace.y, float) for trace in figure.data if trace.name and trace.name.startswith('limit'))
    assert second / first == pytest.approx([1, 0.8])
    shifts = [sample.record('plain', 5_000_000, 1, 0) | {'options': {'shift': shift}} for shift in (0, 128)]
    ((title, caption, figure),) = figures.of_check('triad_alignment', details_of('triad_alignment', *shifts))
    assert list(figure.data[0].y) == ['plain, shift 0', 'plain, shift 128'] and 'hager2007, figure 4' in caption


def test_caches_of_the_threads_used_and_ratios_by_round():
    machine = {'caches': [{'level': 1, 'size': 32, 'line': 64, 'shared_cpus': [0, 4]},
                          {'level': 3, 'size': 1000, 'line': 64, 'shared_cpus': [0, 1, 2, 3, 4, 5, 6, 7]}]}
    assert readings.caches_of(machine, [0]) == {'L1': 32, 'L3': 1000}
    assert readings.caches_of(machine, [0, 4]) == {'L1': 32, 'L3': 1000}
    assert readings.caches_of(machine, [0, 1, 2, 3]) == {'L1': 4 * 32, 'L3': 1000}
    assert readings.caches_of(machine, [0, 8, 9])['L3'] == 2000
    assert readings.caches_of({'caches': None}, [0]) == {}
    seconds = np.array([1.0, 5.0, 1.0, 5.0, 1.0])
    plain = sample.record('plain', 5_000_000, 1, 0) | {'seconds': seconds.tolist()}
    other = plain | {'variant': 'nt', 'seconds': (seconds / 1.5).tolist()}
    assert readings.paired(other, plain) == pytest.approx([1.5] * 5)
    apart = other | {'group': plain['group'] + 1, 'seconds': (seconds[::-1] / 1.5 + 1).tolist()}
    assert readings.paired(apart, plain) == pytest.approx([1 / (1 / 1.5 + 1)])      # not of one round: one ratio of medians
    ((_, _, figure),) = figures.of_check('triad_memory', details_of('triad_memory', plain, other))
    assert any('\u00d71.50' in annotation.text for annotation in figure.layout.annotations)


def test_efficiency_is_drawn_as_it_is_judged_and_limits_name_their_cross_check():
    single = sample.record('plain', 1000, 1, 0)
    rows = [sample.metric('efficiency.2', 0.9), sample.metric('efficiency.all', 0.8)]
    found = details_of('triad_scaling', single, *(single | {'threads': threads} for threads in (2, 4)), metrics=rows)
    ((_, _, figure),) = figures.FIGURES['triad_scaling'](found)
    assert list(figure.data[0].x) == [1, 2, 4] and list(figure.data[0].y) == pytest.approx([1, 0.9, 0.8])
    assert figure.data[0].name == 'in cache (L1)'
    stream = sample.record('load', 5_000_000, 1, 0, 'limit')
    rate = sample.median_rate(stream, 'traffic')
    seen = [{'level': 'memory', 'threads': 1, 'kernel': kernel, 'traffic_rate': best, 'traffic_factor': 1, 'own_rate': rate} for kernel,
            best in (('load', rate / 2), ('copy', rate / 0.9))]
    alone = [sample | {'own_rate': None} for sample in seen]
    for cross_check, cells in ((seen, ['copy', '0.900: they disagree']), (alone, ['copy', 'not compared']), (None, ['not confirmed by likwid-bench'])):
        ((_, _, table),) = figures.FIGURES['limits'](details_of('limits', stream, cross_check=cross_check))
        (row,) = table.rows
        assert set(cells) <= set(row) and row[:2] == ['memory', '1'] and row[-1] == 'peak unknown'


#: Checks whose captions say more exactly why nothing is drawn.
WHY = {'pingpong_nodes': 'there are no records.', **dict.fromkeys(('jacobi_memory', 'jacobi_blocking', 'ninepoint_padding'), 'there are no records of the kernel.')}


@pytest.mark.parametrize('check', sorted(set(figures.FIGURES) - {'rma_target', 'transpose_memory'}))      # which then have no table
def test_of_a_check_without_records_the_caption_says_why_nothing_is_drawn(check):
    skipped, = details_of(check)
    del skipped['records']
    for detail in (skipped, *details_of(check)):
        captions = [caption for _, caption, figure in figures.of_check(check, [detail]) if figure is None]
        assert captions and all(re.match(f'Not drawn: {WHY.get(check, ".")}', caption) for caption in captions)


def test_more_places_than_a_reader_looks_at():
    details = [details_of('triad_memory', sample.record('plain', 5_000_000, 1, 0), hostname=f'n{n}')[0] for n in range(10)]
    drawn = figures.of_check('triad_memory', details)
    assert sum(figure is not None for _, _, figure in drawn) == figures.MOST_PLACES
    assert drawn[-1][1].startswith('Not drawn for 2 of 10 places')


@pytest.fixture
def many(tmp_path, monkeypatch):
    '''(rows, the session in its file, which is read five rows at a time) of twelve nodes; the last is slow.'''
    monkeypatch.setattr(archive, 'ROWS', 5)
    probes = {name: {side: [1.0] * 24 for side in ('before', 'after')} for name in ('core_to_core', 'core_sharing', 'clock', 'additions_per_cycle')}
    rows = sample.frame(*(sample.case(
        check, [sample.metric(f'of_limit.{variant}', 0.9, verdict='FAIL' if (check, number) == ('triad_alignment', 11) else 'PASS') for variant in ('plain', 'nt')],
        host=f'n{number}', detail={'records': [record | {'probes': probes} for record in sample.records([5_000_000], [1], ('plain', 'nt'))]})
        for number in range(12) for check in ('triad_memory', 'triad_alignment')))
    return rows, report.Session.stored(archive.write(rows, tmp_path))


@pytest.mark.slow
def test_what_is_drawn_of_many_nodes_is_read_again(many):
    rows, stored = many
    for change in (lambda rows: rows, public):
        page = pages.page(stored.seen(change))
        assert page == pages.page(report.Session(change(rows)))
    places = [set(re.findall(r'<h3>[^<]*, (n\d+)</h3>', page[page.index(start):])) for start in ('id="figures"',)]
    assert places == [{'n11', *(f'n{number}' for number in range(8))}]


def test_of_many_nodes_little_is_in_memory(many):
    def kept(make):
        tracemalloc.start()
        found = make()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found and size

    rows, stored = many
    whole = kept(lambda: [json.loads(detail) for detail in rows['detail'] if detail])
    assert kept(lambda: stored.verdicts) < 0.3 * whole


@pytest.mark.slow
@pytest.mark.parametrize('verdict', ['PASS', 'FAIL'])
def test_a_page_of_one_node_is_small_whatever_the_number_of_its_metrics(session, verdict):
    '''A line is some hundred bytes, with its 25 samples; the page has all figures.'''
    noise = np.random.default_rng(3)

    def size(count):
        metrics = [sample.metric(f'of_limit.v{number}', value, verdict=verdict, spread=spread) | {'samples': (value * noise.uniform(0.9, 1.1, 25)).tolist()}
                   for number, (value, spread) in enumerate(noise.uniform(0.1, 0.9, (count, 2)))]
        cases = [sample.case(f'check{first}', metrics[first:first + 5], threads='all', detail={}) for first in range(0, count, 5)]
        return len(pages.page(report.Session(pl.concat([session, sample.frame(*cases)]))).encode())

    small, large = size(100), size(500)
    assert (large - small) / 400 < 350 and large < 2.65e6


def test_lines_of_many_nodes_are_one(tmp_path):
    '''Twenty nodes, two of them slow: one line of FAIL, with both names and the worst, and one of PASS.'''
    def node(number):
        slow = number in (3, 17)
        value = 800.0 + number if slow else 1000.0 + number
        return sample.case('triad_memory', [sample.metric('bandwidth.plain', value, 'MB/s', 'FAIL' if slow else 'PASS', (1000.0, -0.1, None), reason='why')],
                           host=f'n{number}', detail={})
    verdicts = lines.verdict_lines(sample.frame(*map(node, range(20))))
    failed, passed = gathered.gathered(verdicts)
    assert (failed.line.verdict, failed.line.value, failed.line.hostname, failed.line.label) == ('FAIL', 803.0, '2 nodes', 'triad_memory')
    assert failed.line.reason == '2 of 20 nodes: n[3,17]; 803 MB/s to 817 MB/s, median 810 MB/s; the worst, of n3: why'
    assert failed.hosts == 'n3 n17' and len(passed.lines) == 18 and passed.line.value == 1000.0
    assert [group.line for group in gathered.gathered(verdicts[:16])] == verdicts[:16]
    shown = terminal(sample.frame(*map(node, range(20))), 200)
    assert sum('FAIL' in line and 'triad_memory' in line for line in shown) == 1


def test_of_nodes_on_which_a_test_failed_all_that_ran_it_are_told():
    cases = [sample.case('a', [] if number < 3 else [sample.metric('bandwidth.plain', 1000.0, 'MB/s')], host=f'n{number}', **(
        {'result': 'fail', 'fail_phase': 'run', 'fail_reason': 'ended', 'verdict': 'FAIL'} if number < 3 else {})) for number in range(20)]
    failed, passed = gathered.gathered(lines.verdict_lines(sample.frame(*cases)))
    assert failed.line.reason == '3 of 20 nodes: n[0-2]; run: ended' and passed.line.reason.startswith('17 of 20 nodes: n[3-19]; ')
    cases = [sample.case('a', result='fail', fail_phase='run', fail_reason='ended', host=f'n{number}', display_name=f'a %x=1 %.nid=n{number}',
                         verdict='FAIL', test=f'a_n{number}') for number in range(20)]
    verdicts = lines.verdict_lines(sample.frame(*cases))
    group, = gathered.gathered(verdicts)
    assert verdicts[7].label == 'a 1 n7' and group.line.label == 'a 1'
    assert group.line.reason == '20 of 20 nodes: n[0-19]; run: ended'


def test_a_page_for_strangers_has_neither_facts_of_the_node_nor_homes(tmp_path):
    fact = 'kernel.release is 5.14.0-1, expected 5.14.0-2'
    record = sample.record('plain', 5_000_000, 4, 0) | {'flags': '-O3 -I/home/alice/proj/include -L/home/alice/lib'}
    rows = sample.frame(
        sample.case('triad_memory', [sample.metric('bandwidth.plain', 700.0, 'MB/s', 'FAIL', (1000.0, -0.1, None), 'cc:/home/alice/x says no')],
                    detail={'records': [record], 'notes': [fact, 'PATH is /usr/bin:/home/alice/bin'], 'noted': [{'about': 'expectations', 'note': fact}],
                            'software': {'modules': ['gcc/13'], 'variables': ['LICENSE=27000@alice.example.org']}}),
        sample.case('expectations', result='fail', fail_phase='sanity', fail_reason=f'node n1 is not as expected: {fact} (made.yaml)', verdict='FAIL',
                    reason=f'sanity: node n1 is not as expected: {fact} (made.yaml)', detail={}))
    page = report.write(report.Session(rows), tmp_path, to_strangers=True).read_text()
    assert 'alice' not in page and '5.14.0' not in page and 'sanity: ' not in page and 'withheld' in page and '-Iinclude -Llib' in page and 'module gcc/13' in page


# --- state -----------------------------------------------------------------------------------------------------


def test_the_odd_host_is_named_and_no_picture_of_the_machine_is_hidden():
    machines = [{'hostname': host, 'machine': sample.MACHINE | {'kernel': kernel}} for host, kernel in (('n1', '6.1'), ('n2', '6.1'), ('n3', '5.9'))]
    rows = dict(machine_state.machine_rows(machines))
    assert rows['kernel'] == [('5.9', '1 of 3 hosts: n3'), ('6.1', '2 of 3 hosts: n1, n2')]
    assert rows['microcode'] == [('not readable', '')]
    # The first place has messages alone; the limits of another are drawn.
    details = pages.results(report.Session(sample.frame(sample.case('pingpong', environ='openmpi', detail={}), sample.limits('all'))))
    assert [title for title, *_ in overview.overview(details)] == ['Memory hierarchy, gnu']


def test_a_result_is_read_once_and_its_page_leaves_it_as_it_is(session):
    told = report.Session(session)
    records = {id(line.detail): list(line.detail.records) for line in told.verdicts if line.detail.records}
    pages.page(told)
    assert records and all(line.detail.records == records[id(line.detail)] for line in told.verdicts if line.detail.records)
    read = [lines.detail_of(runs[-1]) for runs in told.cases.values()]
    assert {id(line.detail) for line in told.verdicts if line.detail} <= set(map(id, read))


def test_time_is_summed_over_all_runs_and_each_note_stands_once(session):
    per_check, total = machine_state.time_rows(lines.case_runs(session), sample.SESSION_INFO)
    checks = {row['check']: row for row in per_check}
    assert checks['triad_firsttouch']['runs'] == 2 and checks['triad_firsttouch']['timed'] == pytest.approx(8.1)
    assert checks['build_programs (fixture)']['build'] == pytest.approx(21.3)
    assert total['share'] == pytest.approx(total['timed'] / 188.4)
    details = [{'label': label, 'notes': ['the clock is coarse', 'no likwid'], 'cross_check': None, 'cross_check_reason': 'no likwid'}
               for label in ('a', 'b')]
    assert machine_state.notes(details) == [('the clock is coarse', ['a', 'b']), ('no likwid', ['a', 'b'])]


def test_the_roofline_has_roofs_and_the_fastest_variant_of_each_kernel():
    def of(kernel, variant, seconds, flops, traffic, level='memory', role='kernel'):
        return {'kernel': kernel, 'variant': variant, 'role': role, 'threads': 1, 'level': level, 'seconds': [seconds] * 3, 'flops': flops,
                'traffic': traffic, 'traffic_source': 'load_nt', 'bytes': traffic}
    records = [of('flops', 'simd256', 1.0, 50e9, 0, 'L1'), of('flops', 'dgemm', 1.0, 40e9, 0, 'L2'), of('streams', 'load', 1.0, 0, 20e9, role='limit'),
               of('triad', 'plain', 2.0, 2e9, 16e9), of('triad', 'nt', 1.0, 2e9, 16e9), of('motion', 'copy', 1.0, 0, 16e9)]
    place = {'check': 'x', 'hostname': 'n', 'partition': 'p', 'environ': 'gnu', 'metrics': []}
    (title, _, figure), = roofline.roofline([place | {'records': records}])
    assert title == 'Roofline, 1 thread'
    traces = {trace.name: trace for trace in figure.data}
    assert set(traces) == {'memory: 20.0 GB/s', 'peak: 50.0 Gflop/s', 'DGEMM: 40.0 Gflop/s', 'triad'}
    assert (traces['memory: 20.0 GB/s'].x[1], traces['memory: 20.0 GB/s'].y[1]) == (2.5, 50)
    assert (list(traces['triad'].x), list(traces['triad'].y), list(traces['triad'].text)) == ([0.125], [2.0], ['triad nt in memory'])
    assert list(roofline.roofline([place | {'records': records[3:]}])) == []
    # Of 33 KiB that are called L2 nearly all lies in L1; the check of the limits takes sizes well inside of each level.
    mixed = of('streams', 'triad', 1.0, 0, 340e9, 'L2', 'limit')
    own = place | {'check': 'limits', 'records': [of('streams', 'load', 1.0, 0, 230e9, 'L2')],
                   'metrics': [{'metric': 'bandwidth', 'subject': 'L2', 'value': 230e3}]}
    (_, _, figure), = roofline.roofline([place | {'records': [*records, mixed]}, own])
    assert {trace.name for trace in figure.data if trace.name.startswith(('L', 'm'))} == {'L2: 230 GB/s'}


@pytest.mark.parametrize('latencies, told', [((4e-8, 1.5e-7), 'several states (core-to-core 40 ns, core-to-core 150 ns)'), ((4e-8, 4.1e-8), '')])
def test_the_roofline_says_where_a_point_may_be_of_another_state_than_its_roof(latencies, told):
    peak = {'kernel': 'flops', 'variant': 'simd256', 'role': 'kernel', 'threads': 2, 'level': 'L1', 'seconds': [1.0], 'flops': 5e10, 'traffic': 0}
    metrics = [{'metric': 'flops', 'subject': 'a', 'value': 1.0, 'state': json.dumps({'core_to_core.0': seconds})} for seconds in latencies]
    (_, caption, _), = roofline.roofline([{'check': 'x', 'hostname': 'n', 'partition': 'p', 'environ': 'gnu', 'metrics': metrics, 'records': [peak]}])
    assert told in caption and caption.endswith('its roof.' if told else 'All rates are medians.')
