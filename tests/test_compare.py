'''``plumbline compare``: what changed between sessions is named, noise is not, and what else changed is told.'''

import copy
import io
import re
import shutil

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import made_report
import rfm
from plumbline.cli import app
from plumbline.comparison import compare, sides
from plumbline.errors import PlumblineError
from plumbline.model import registry, subsystems, verdict
from plumbline.report import comparison, upgrade_page
from plumbline.store import archive
from plumbline.sweep import state

#: When the sessions began, s since 1970; each an hour after the one before.
START, HOUR = 1.8e9, 3600


def metric(name, middle, spread=0.02, n=25, seed=0, unit='MB/s', **more):
    '''A metric whose samples scatter as said, with the statistics that a check would give it.'''
    from plumbline.model import uncertainty
    samples = middle * (1 + spread * np.random.default_rng([seed, sum(map(ord, name))]).standard_normal(n))
    found = uncertainty.summary(samples)
    return made_report.metric(name, found.value, unit, samples=samples.tolist(), n=n, spread=found.spread,
                              interval=list(found.interval), **{'reference': None, 'verdict': 'NO REFERENCE', **more})


def company(seed, spread=0.02, names=('bandwidth', 'of_limit')):
    '''Metrics that say how those of their class scatter.'''
    return [metric(f'{name}.company{number}', 1000 if name == 'bandwidth' else 0.5, spread, seed=seed, unit='MB/s' if name == 'bandwidth' else '1')
            for name in names for number in range(10)]


def case(*metrics, name='Triad %threads=one', node='n1', machine=(), record=(), software=(), given=(), **more):
    '''A test case on a node, with something of its machine record, its measurement or its software changed.'''
    left = made_report.result(*metrics, machine={**made_report.MACHINE, 'hostname': node, **dict(machine)},
                              records=[made_report.measurement(**dict(record))], software=dict(software), given=dict(given))
    return made_report.case(name, left, job_nodelist=[node], **more)


class Sessions:
    '''Run reports and their archive, written one after the other.'''

    def __init__(self, folder):
        self.folder, self.count = folder, 0

    def __call__(self, *cases, path=None):
        self.count += 1
        path = path or self.folder / f'{self.count}.json'
        path.parent.mkdir(parents=True, exist_ok=True)
        return made_report.write_report(path, list(cases), start=START + HOUR * self.count, uuid=f'{self.count:08}-0000')


@pytest.fixture
def write(tmp_path):
    return Sessions(tmp_path)


def compared(*reports):
    *before, after = [sides.load(path, '') for path in reports]
    return compare.compare(before, after)


def kinds(found):
    return {change.metric: change.kind for change in found.changes if 'company' not in change.metric}


def test_sessions_are_compared_in_the_state_that_both_met(write):
    def at(latency, value, others=()):
        further = [{'state': {'core_to_core.0': 1e-9 * ns}, 'value': other, 'n': 9, 'spread': 0.02, 'interval': [other * 0.99, other * 1.01]}
                   for ns, other in others]
        return write(case(metric('bandwidth.nt', value, state={'core_to_core.0': 1e-9 * latency}, states=further), *company(write.count)))
    far, near = at(110, 1000), at(17, 500)
    assert kinds(compared(far, at(112, 1000))) == {'bandwidth.nt': 'within noise'}
    assert kinds(compared(far, at(17, 500, [(110, 1001.0)]))) == {'bandwidth.nt': 'within noise'}
    assert kinds(compared(far, at(17, 500, [(110, 600.0)]))) == {'bandwidth.nt': 'slower'}
    change, = (change for change in compared(far, near).changes if change.metric == 'bandwidth.nt')
    assert change.kind == 'unclear' and change.reason == 'measured in another state of the machine than before: core-to-core 17 ns'


@pytest.mark.parametrize('moved, incomparable', [('bandwidth', [('', 'memory, one thread, rates and times')]), ('of_limit', [])])
def test_comparable_ratios_do_not_stand_for_rates_of_which_nothing_is_known(write, moved, incomparable):
    def at(latency):
        state = {moved: {'state': {'core_to_core.0': latency}}}
        return write(case(*(metric(name, value, unit=unit, seed=write.count, **state.get(name, {}))
                            for name, value, unit in (('bandwidth', 1000, 'MB/s'), ('of_limit', 0.5, '1')))))
    found = compared(at(110e-9), at(17e-9))
    assert kinds(found)[moved] == 'unclear' and found.incomparable == incomparable and found.exit_status == (3 if incomparable else 0)
    text = 'not judged, nothing of it is comparable: memory, one thread, rates and times'
    console = Console(file=io.StringIO(), width=120)
    comparison.render(found, console)
    assert (text in console.file.getvalue()) == (text in upgrade_page.page(found)) == bool(incomparable)


def test_ratios_that_a_slower_machine_keeps_do_not_dilute_its_rates(write):
    '''Twice as many as there are rates, of which 4 % is lost.'''
    def session(rate):
        return write(case(*(metric(f'{name}.v{number}', rate if name == 'bandwidth' else 0.5, 0.005, seed=write.count,
                                   unit='MB/s' if name == 'bandwidth' else '1') for name in ('bandwidth', 'of_limit', 'of_parts') for number in range(8))))
    found = compared(*(session(rate) for rate in (1000, 1003, 998, 1001, 1002)), session(960))
    assert {part.name: part.verdict for part in found.parts} == {
        'memory, one thread, rates and times': 'FAIL', 'memory, one thread, shares and ratios': 'PASS'}
    assert found.slower[0].score.change == pytest.approx(-0.04, abs=0.005) and len(found.slower[0].score.members) == 8


# --- what is named ------------------------------------------------------------------------------------------------------

def test_a_slowed_metric_is_named_and_noise_is_not(write):
    names = [f'bandwidth.v{i}' for i in range(20)]
    before = write(case(*(metric(name, 1000, seed=1) for name in names), metric('latency.memory', 5, seed=1, unit='us')))
    after = write(case(*(metric(name, 800 if name == 'bandwidth.v7' else 1000, seed=2) for name in names),
                       metric('latency.memory', 7, seed=2, unit='us')))
    found = compared(before, after)
    assert {name for name, kind in kinds(found).items() if kind != 'within noise'} == {'bandwidth.v7', 'latency.memory'}
    assert [change.metric for change in found.wrong] == ['latency.memory', 'bandwidth.v7']      # the worst first
    assert found.wrong[1].ratio == pytest.approx(0.8, rel=0.02)


WHERE = [('bandwidth', registry.MEMORY_ONE), ('bandwidth', registry.MEMORY_ALL), ('flops', registry.L2), ('flops', registry.L3),
         ('of_limit', registry.L1), ('latency', registry.LATENCY), ('bandwidth', registry.FILES), ('latency', registry.MESSAGES_NETWORK),
         ('flops', registry.CORE)]


def drawn(generator, sessions, noise, loss=0.0, parts=(), unlike=0.4, mood=0.5):
    '''Pairs of a machine whose metrics scatter unlike, and partly together; those of some parts lose so much at last.'''
    pairs = []
    for number, (name, subsystem) in enumerate(WHERE):
        moods = mood * noise * generator.standard_normal(sessions + 1)
        for subject in map(str, range(8)):
            scatter = noise * np.exp(unlike * generator.standard_normal())
            values = 100 * np.exp(moods + scatter * generator.standard_normal(sessions + 1))
            values[-1] *= (1 - loss * (number in parts)) ** registry.better(name)
            rows = [{'check': 'made', 'metric': name, 'subsystem': subsystem, 'side': side, 'value': value,
                     'interval_low': value * (1 - scatter), 'interval_high': value * (1 + scatter)} for side, value in enumerate(values)]
            place = {'check': 'made', 'partition': 'p', 'environ': 'e', 'metric': f'{name}.{subject}', 'nodes': ('n1', 'n1'), 'node': ''}
            pairs.append(compare._Pair(place, rows[:-1], rows[-1]))
    return pairs


def outcomes(count, sessions, *machine):
    '''How many of drawn comparisons name a metric, a subsystem, and either.'''
    generator, named = np.random.default_rng(sessions), np.zeros(3, dtype=int)
    for _ in range(count):
        changes, parts = compare.judge(drawn(generator, sessions, *machine), sessions == 1)
        metric, part = any(change.kind in compare.WRONG for change in changes), any(part.verdict == verdict.FAIL for part in parts)
        named += metric, part, metric or part
    return named / count


@pytest.mark.slow
@pytest.mark.parametrize('sessions', [1, 2, 5])
@pytest.mark.parametrize('noise', [0.02, 0.08])
def test_nothing_is_named_where_nothing_changed(sessions, noise):
    # One per cent is aimed at, and 1.7 % of 2,400 drawn comparisons named something; of 25 no more than one must.
    assert outcomes(25, sessions, noise)[2] <= 1 / 25


@pytest.mark.parametrize('sessions, noise, loss, parts, power', [
    (1, 0.02, 0.25, (0,), 0.7), (1, 0.02, 0.2, range(9), 0.95), (5, 0.02, 0.1, (0,), 0.7), (5, 0.02, 0.08, range(9), 0.9), (10, 0.02, 0.05, range(9), 0.5),
    (5, 0.08, 0.4, (0,), 0.7)])
def test_a_slower_subsystem_is_named(sessions, noise, loss, parts, power):
    assert outcomes(10, sessions, noise, loss, parts)[2] >= power


def test_it_says_what_it_would_have_seen():
    '''Of losses as large one in twenty goes unseen; here of ten, for the scatter is only estimated.'''
    generator, seen = np.random.default_rng(3), []
    for _ in range(10):
        pairs = drawn(generator, 5, 0.02, unlike=0.0, mood=0.0)
        sees = [change.sees for change in compare.judge(pairs, False)[0]]
        for pair, loss in zip(pairs[::7], sees[::7]):
            factor = 1 - loss if pair.better == registry.MORE else 1 + loss
            pair.after.update({key: pair.after[key] * factor for key in ('value', 'interval_low', 'interval_high')})
        seen += [change.kind == 'slower' for change in compare.judge(pairs, False)[0][::7]]
    assert np.mean(seen) > 0.9


def test_more_is_not_always_better(write):
    before, after = (write(case(metric('latency.memory', us, unit='us'), metric('bandwidth.nt', rate),
                                metric('tlb_entries.L1', entries, unit='entries'), *company(write.count)))
                     for us, rate, entries in ((5, 100, 64), (4, 130, 32)))
    found = compared(before, after)
    assert kinds(found) == {'latency.memory': 'faster', 'bandwidth.nt': 'faster', 'tlb_entries.L1': 'changed'} and not found.wrong


@pytest.mark.parametrize('name, after, kind', [
    ('communication.cg', 1.3, 'slower'), ('redundancy.shared', 1.3, 'slower'), ('speedup.nt', 0.7, 'slower'), ('speedup.nt', 1.3, 'faster'),
    ('of_parts.nt', 0.7, 'slower'), ('work.shared', 1.3, 'changed'), ('split_over_fused.split2', 0.7, 'changed')])
def test_every_metric_has_its_direction(write, name, after, kind):
    found = compared(*(write(case(metric(name, middle, unit='1', seed=seed), *company(seed))) for seed, middle in ((1, 1.0), (2, after))))
    assert kinds(found) == {name: kind} and bool(found.wrong) == (kind == 'slower')


def test_several_sessions_before_tell_the_noise_between_them(write):
    def session(rate, seed, spread=0.02):
        return write(case(metric('bandwidth.nt', rate, spread, seed=seed), *company(seed, spread)))
    wild = [session(rate, rate) for rate in (1000, 1300, 900, 1150, 1050)]
    calm = [session(rate, rate) for rate in (1000, 1004, 998, 1001, 1002)]
    after = session(800, 9)
    assert kinds(compared(wild[0], after)) == {'bandwidth.nt': 'slower'}        # one session knows no better
    assert kinds(compared(*wild, after))['bandwidth.nt'] in ('within noise', 'unclear')
    assert kinds(compared(*calm, after)) == {'bandwidth.nt': 'slower'}
    nearly = kinds(compared(*calm, session(980, 10)))
    assert nearly in ({'bandwidth.nt': 'within noise'}, {'bandwidth.nt': 'unclear'})


def of_processes(name, value, spread=0.003, wide=0.059, seed=0):
    '''What three processes measured, with an interval as of any: of rates 5.9 %.'''
    samples = value * (1 + spread * np.random.default_rng([seed, sum(map(ord, name))]).standard_normal(3))
    return made_report.metric(name, value, n=3, samples=samples.tolist(), spread=float(np.std(samples, ddof=1) / value), reference=None, processes=[
        {'process': number, 'n': 1, 'record': 0} for number in range(3)], interval=[value * (1 - wide), value * (1 + wide)], verdict='NO REFERENCE')


def test_where_the_processes_of_all_metrics_agree_a_small_loss_is_told(write, monkeypatch):
    def session(rate):
        return write(case(*(of_processes(f'bandwidth.company{number}', 1000, seed=write.count) for number in range(10)),
                          of_processes('bandwidth.nt', rate, seed=write.count)))
    before, after = session(1000), session(950)
    assert kinds(compared(before, after)) == {'bandwidth.nt': 'slower'}
    monkeypatch.setattr(compare.sides, 'by_each_other', list)
    assert kinds(compared(before, after)) == {'bandwidth.nt': 'within noise'}


def test_a_noisy_session_is_unclear(write):
    quiet = [write(case(metric('bandwidth.nt', 1000, seed=seed), *company(seed))) for seed in range(3)]
    noisy = write(case(metric('bandwidth.nt', 1000, 0.9, seed=3), *company(3)))
    change, = (change for change in compared(*quiet, noisy).changes if change.metric == 'bandwidth.nt')
    assert change.kind == 'unclear' and 'interval' in change.reason
    assert kinds(compared(noisy, quiet[0])) == {'bandwidth.nt': 'unclear'}
    assert upgrade_page.statement(compared(noisy, quiet[0])).endswith('which leaves 1 of 21 metrics unclear.')
    assert 'too noisy before' in next(change.reason for change in compared(noisy, quiet[0]).changes if change.metric == 'bandwidth.nt')
    zero, one = (write(case(metric('overlap.x', 100), metric('difference.cg', value, n=1))) for value in (0.0, 0.5))
    assert kinds(compared(zero, one))['difference.cg'] == 'unclear'
    same = write(case(metric('overlap.x', 100), metric('difference.cg', 0.0, n=1)))
    assert kinds(compared(zero, same))['difference.cg'] == 'within noise'


def test_a_subsystem_whose_losses_noise_hides_is_not_judged(write):
    def session(rate):
        return sides.load(write(case(metric('bandwidth.write', rate, seed=write.count, subsystem=registry.FILES), *company(write.count))), '')
    before = list(map(session, (1000, 100, 3000, 300, 800)))
    found, again = (compare.compare(before, session(10)) for _ in range(2))
    assert kinds(found) == {'bandwidth.write': 'unclear'} and found.incomparable == [('', 'files, rates and times')]
    assert found.exit_status == 3 and compare.confirmed(found, [again]).exit_status == 3


@pytest.mark.parametrize('name, before, after, kind', [
    ('bandwidth.nt', 1000, 0.0, 'slower'), ('overlap.Iallreduce', 0.8, 0.0, 'slower'), ('bandwidth.nt', 1000, float('nan'), 'failed'),
    ('latency.memory', 5, float('nan'), 'failed'), ('latency.memory', 5, 0.0, 'unclear'), ('overlap.Iallreduce', None, 0.0, 'unclear')])
def test_a_value_of_which_nothing_is_left_is_worse(write, name, before, after, kind):
    befores = [write(case(metric(name, before or 0.01 * (1 + seed), seed=seed), *company(seed))) for seed in range(3)]
    found = compared(*befores, write(case(metric(name, 1.0) | {'value': after, 'interval': [after, after]}, *company(9))))
    assert kinds(found) == {name: kind} and found.exit_status == (kind != 'unclear')


# --- verdicts, gone and new ---------------------------------------------------------------------------------------------

def test_gone_metrics_say_why(write):
    before = write(case(metric('bandwidth.nt', 100), metric('bandwidth.plain', 100), metric('of_peak.L1', 0.5), metric('speedup.nt.L3', 2)),
                   case(metric('bandwidth.x', 3), name='Other'), case(metric('latency.L1', 3), name='Third'))
    left = case(metric('bandwidth.nt', 100), metric('bandwidth.new', 1))
    left['plumbline']['skipped'] = [{'metric': 'all in L2', 'reason': 'too small', 'parts': ['L2']}, {'metric': 'of_peak.L1', 'reason': 'peak unknown'},
                                    {'metric': 'all in L3', 'reason': 'no L3', 'parts': ['L3']}]
    after = write(left, case(name='Third', result='fail', fail_phase='sanity', fail_reason='the job ended with exit code 1'))
    found = compared(before, after)
    assert kinds(found) | {'': None} == {'bandwidth.nt': 'within noise', 'bandwidth.plain': 'gone', 'of_peak.L1': 'gone', 'speedup.nt.L3': 'gone',
                                         'bandwidth.x': 'gone', 'latency.L1': 'gone', 'bandwidth.new': 'new', '': None}
    reasons = {change.metric: change.reason for change in found.changes if change.kind == 'gone'}
    assert reasons == {'bandwidth.plain': 'the test ran without it', 'of_peak.L1': 'peak unknown', 'speedup.nt.L3': 'no L3',
                       'bandwidth.x': 'the test did not run', 'latency.L1': 'sanity: the job ended with exit code 1'}
    assert [change.check for change in found.changes if change.kind == 'failed'] == ['Third']


def test_verdicts_that_changed_but_for_retries(write):
    before = write(case(metric('bandwidth.a', 100, verdict='PASS', reference=[100, -0.1, None]),
                        metric('bandwidth.b', 100, verdict='FAIL', reference=[200, -0.1, None])))
    after = write(case(metric('bandwidth.a', 98, verdict='FAIL', reference=[100, -0.01, None], reason='below'),
                       metric('bandwidth.b', 99, verdict='FAIL', reference=[200, -0.1, None])))
    found = compared(before, after)
    assert kinds(found) == {'bandwidth.a': 'failed', 'bandwidth.b': 'within noise'}
    assert found.wrong[0].verdicts == ('PASS', 'FAIL') and found.wrong[0].reason == 'below'
    slow, good = case(metric('bandwidth.a', 10), result='fail', fail_phase='performance'), case(metric('bandwidth.a', 100))
    before = write(good)
    after = made_report.write_report(write.folder / 'r.json', [copy.deepcopy(slow)], [copy.deepcopy(good)], uuid='abcdefab-0')
    assert kinds(compared(before, after)) == {'bandwidth.a': 'within noise'}


def repeated(write, *values, **changed):
    '''A session of ``--repeat``: a case for each value, and one of company.'''
    cases = [case(metric('bandwidth.nt', value, seed=number, **{key: value for key, value in changed.items() if values[number] < 900}),
                  name=f'Triad %threads=one %.repeat_no={number}') for number, value in enumerate(values)]
    return write(*cases, case(*company(write.count), name='Company %threads=one'))


def test_of_repetitions_each_counts_and_not_the_last_alone(write):
    good = repeated(write, 1000)
    slower = compared(good, repeated(write, 500, 500, 1000))
    change, = slower.wrong
    assert (change.kind, change.check) == ('slower', 'Triad %threads=one') and change.after == pytest.approx(500, rel=0.02) and slower.exit_status == 1
    failed = compared(good, repeated(write, 500, 1001, 1000, verdict='FAIL', reason='below'))
    change, = failed.wrong
    assert (change.kind, change.reason) == ('failed', 'below') and change.after == pytest.approx(1000, rel=0.02) and failed.exit_status == 1
    assert kinds(compared(good, repeated(write, 1001, 995, 600))) == {'bandwidth.nt': 'within noise'}
    assert kinds(compared(repeated(write, 1000, 1001, 999), repeated(write, 700, 701, 699))) == {'bandwidth.nt': 'slower'}


def test_repetitions_are_pooled_on_any_node_and_in_each_state_of_the_machine(write):
    def on(*nodes):
        return write(*(case(metric('bandwidth.nt', 1000), unique_name=f'Triad_{number}', node=node,      # as ReFrame's report has them
                            display_name=f'Triad %threads=one %.repeat_no={number}')
                       for number, node in enumerate(nodes)), case(*company(write.count), name='Company %threads=one'))
    assert kinds(compared(on('n1', 'n2'), on('n2', 'n3'))) == {'bandwidth.nt': 'within noise'}

    def at(*met):
        return write(*(case(metric('bandwidth.nt', value, state={'core_to_core.0': 1e-9 * ns}), name=f'Triad %threads=one %.repeat_no={number}')
                       for number, (ns, value) in enumerate(met)), case(*company(write.count), name='Company %threads=one'))
    before = at((110, 1000))
    assert kinds(compared(before, at((111, 1001), (17, 500), (17, 501)))) == {'bandwidth.nt': 'within noise'}
    assert kinds(compared(before, at((111, 600), (17, 500), (17, 501)))) == {'bandwidth.nt': 'slower'}


@pytest.mark.parametrize('was, now, found', [({}, {'largest': '4096'}, 'unclear'), ({'largest': '4096'}, {}, 'unclear'), ({'largest': '64'},) * 2 + ('slower',)])
def test_what_something_else_was_given_of_is_another_metric(write, was, now, found):
    def of(value, given):
        return write(case(metric('bandwidth.nt', value, seed=write.count), given=given), case(*company(write.count), name='Company %threads=one'))
    change, = (one for one in compared(of(1000, was), of(500, now)).changes if one.metric == 'bandwidth.nt')
    told = [', '.join(f'{name}={size}' for name, size in given.items()) or 'what is measured usually' for given in (now, was)]
    assert change.kind == found
    assert (change.reason == f'not compared: not the same as before: {told[0]}, and {told[1]} before') == (found == 'unclear')


def test_another_working_set_of_a_cache_is_another_metric(write):
    '''Also of what is made of several caches, and among repetitions.'''
    def of_cache(*met):
        others = [metric(f'bandwidth.company{number}.L2', 1000, seed=write.count, record=0) for number in range(10)]
        cases = [case(metric('bandwidth.nt.L2', value, record=0), metric('growth.L3', 4000 / value, unit='1'), *others,
                      record={'level': 'L2', 'working_set': size}, name=f'Triad %threads=one %.repeat_no={number}') for number, (size, value) in enumerate(met)]
        return write(*cases, case(*company(write.count), name='Company %threads=one'))
    usual, smaller = (2**19, 1000), (2**18, 500)
    before = of_cache(usual)
    assert kinds(compared(before, of_cache((2**19, 500))))['bandwidth.nt.L2'] == 'slower'
    found = compared(before, of_cache(smaller))
    assert kinds(found) == {'bandwidth.nt.L2': 'unclear', 'growth.L3': 'unclear'} and found.exit_status == 3
    assert found.incomparable == [('', 'L2, rates and times'), ('', 'latency, shares and ratios')]      # of which nothing is known
    assert compare.confirmed(found, [compared(before, of_cache(usual))]).exit_status == 0
    assert compare.confirmed(found, [compared(before, of_cache(smaller))]).exit_status == 3
    assert {change.reason for change in found.changes if change.kind == 'unclear'} == {
        'not compared: another working set than before: 256 KiB, and 512 KiB before'}
    for sessions in ((before, of_cache(smaller), of_cache(usual)), (before, of_cache(smaller, usual, usual))):
        change, = (one for one in compared(*sessions).changes if one.metric == 'bandwidth.nt.L2')
        assert [change.before, change.after] == pytest.approx([1000, 1000], rel=0.02) and 'not compared' not in change.reason


@pytest.mark.parametrize('before, after', [((100.0, 'GB/s'), (50000.0, 'MB/s')), ((50000.0, 'MB/s'), (100.0, 'GB/s'))])
def test_a_metric_in_another_unit_is_not_compared(write, capsys, before, after):
    def session(value, unit):
        return write(made_report.of_another_suite(('copy', [value, 0.9 * value, -0.5, None, unit, 'pass'])))
    found = compared(session(*before), session(*after))
    change, = found.changes
    assert (change.kind, change.ratio, found.exit_status) == ('unclear', None, 3)
    assert change.reason == f'not compared: another unit than before: {after[1]}, and {before[1]} before'
    comparison.render(found, Console(width=120))
    assert 'nan' not in capsys.readouterr().out
    change, = compared(session(*after), session(*before), session(*after)).changes
    assert (change.kind, change.before, change.ratio) == ('within noise', pytest.approx(after[0]), pytest.approx(1))


def test_a_variable_of_the_command_line_makes_another_test(write):
    '''ReFrame's -P.'''
    def sizes(**values):
        return write(*(case(metric('bandwidth.nt', value), name=f'Triad %threads=one %.size={size}') for size, value in values.items()),
                     case(*company(write.count), name='Company %threads=one'))
    change, = compared(sizes(small=1000, large=500), sizes(small=1000, large=300)).wrong
    assert (change.kind, change.check, change.before) == ('slower', 'Triad %threads=one %.size=large', pytest.approx(500, rel=0.02))


# --- nodes --------------------------------------------------------------------------------------------------------------

def sweep(write, name, rates, **changed):
    '''A sweep: nodes with run reports, and one that was down.'''
    rates = {f'n{number}': rate for number, rate in enumerate(rates, 1)}
    plan = {'id': name, 'nodes': dict.fromkeys([*rates, 'down'], ''), 'partition': 'batch', 'command': [], 'access': [], 'pace': {}, 'checks': 1}
    made = state.create(write.folder / name, plan, '')
    made.begin()
    for node, rate in rates.items():
        write(case(metric('bandwidth.memory', rate, seed=write.count), *company(write.count), node=node, **changed.get(node, {})),
              path=made.folder / node / 'run.json')
        made.record(made.nodes[node], state.OVER, state=state.MEASURED)
    return made.folder


def test_sweeps_are_compared_node_by_node_and_one_job_may_land_on_another(write):
    before = sweep(write, 'before', [100, 200, 100])
    after = sweep(write, 'after', [100, 200, 70], n2={'machine': {'kernel': '6.5.0'}})
    found = compared(before, after)
    assert [(change.kind, change.nodes) for change in found.wrong] == [('slower', ('n3', 'n3'))] and len(found.changes) == 63
    assert [entry for entry in found.state if entry[0] == 'kernel'] == [('kernel', [], ['6.5.0 (n2)'])]
    found = compared(write(case(metric('bandwidth.a', 100), *company(1), node='n1')), write(case(metric('bandwidth.a', 70), *company(2), node='n4')))
    assert [(change.kind, change.nodes) for change in found.wrong] == [('slower', ('n1', 'n4'))]


# --- what else changed --------------------------------------------------------------------------------------------------

def test_kernel_compiler_and_mpi_are_told(write):
    before = write(case(metric('bandwidth.a', 100), record={'options': {'mpi': 'Open MPI v4.1.4'}}))
    machine = {'kernel': '6.5.0', 'microcode': '0x2b', 'mitigations': {'meltdown': 'PTI'}, 'huge_pages': 'always [never]'}
    after = write(case(metric('bandwidth.a', 100), machine=machine,
                       record={'compiler': 'gcc 13.2.0', 'flags': '-O2', 'options': {'mpi': 'Open MPI v5.0.1'}}))
    found = {label: (old, new) for label, old, new in compared(before, after).state}
    assert found == {'kernel': (['6.1.0'], ['6.5.0']), 'microcode': (['not readable'], ['0x2b']),
                     'transparent huge pages': (['always [madvise] never'], ['always [never]']),
                     'mitigations': (['not affected: meltdown'], ['meltdown: PTI']),
                     'compiler and flags': (['gcc 12.2.0: -O3'], ['gcc 13.2.0: -O2']),
                     'MPI library': (['Open MPI v4.1.4'], ['Open MPI v5.0.1'])}


# --- the command --------------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def place(tmp_path_factory):
    '''A workplace whose archive has three sessions, the last one slower and of another kernel.'''
    folder = tmp_path_factory.mktemp('compare')
    write, place = Sessions(folder), rfm.Workplace(folder / 'place')
    for rate, kernel in ((1000, '6.1.0'), (1010, '6.1.0'), (700, '6.5.0')):
        cases = [case(metric(f'bandwidth.{name}', rate if name == 'nt' else 500, seed=rate), *company(rate, names=['bandwidth']),
                      machine={'kernel': kernel}, name=f'{check} %threads=all')
                 for check, name in (('triad_memory', 'nt'), ('triad_curve', 'plain'))]
        archive.archive(write(*cases), place.folder / 'reports/archive')
    return place


def names(place):
    return sorted(path.stem for path in place.folder.rglob('*.parquet'))


@pytest.mark.slow
def test_the_table_names_what_is_slower_first_and_what_else_changed(place):
    done = place.plumbline('compare', *names(place)[1:])
    assert done.code == 1 and 'Traceback' not in done.out
    head = done.out.splitlines()
    assert head[0] == f'made (n1): {names(place)[2]} after {names(place)[1]}'
    assert head[1] == 'speed        0 failed, 1 slower, 0 gone, 0 changed, 0 unclear, 0 faster, 0 new, 21 within noise' == head[-1]
    assert re.match(r'would have seen a loss of \d\.\d % \(median of the metrics\), \d+\.\d % \(the worst\)', head[2])
    assert re.match(r'and of a subsystem: memory, one thread, rates and times \d\.\d %', head[3])
    row, = (line for line in head if line.startswith(' slower '))
    assert 'triad_memory' in row and 'bandwidth.nt' in row and '1.01 GB/s' in row and '0.699 GB/s' in row and '-30.6 %' in row
    assert 'bandwidth.plain' not in done.out
    assert '- 6.1.0' in done.out and '+ 6.5.0' in done.out
    assert all(len(line.rstrip()) <= 120 for line in head)
    assert "to confirm it, measure again, and name that session with --after, too: reframe ... -n '^(triad_memory" in done.out


@pytest.mark.slow
@pytest.mark.parametrize('rates, code', [((705,), 1), ((1005,), 0), ((705, 1005), 0), ((705, 695), 1)])
def test_worse_is_what_is_worse_in_each_session_after_that_measured_it(place, tmp_path, rates, code):
    '''The further ones measured the one test that was worse.'''
    further = [made_report.write_report(tmp_path / f'{rate}.json', [
        case(metric('bandwidth.nt', rate, seed=rate), *company(rate, names=['bandwidth']), name='triad_memory %threads=all')],
        start=START + 9 * HOUR + rate, uuid=f'{rate:08}-9999') for rate in rates]
    done = place.plumbline('compare', *names(place)[1:], *(word for path in further for word in ('--after', path)))
    assert done.code == code and 'Traceback' not in done.out and ', 0 gone, ' in done.out
    assert ('slower but not in' in done.out) == (code == 0) and (' 1 slower' in done.out) == (code == 1)


@pytest.mark.parametrize('nodes', [['n1'], ['n2'], []])
def test_a_test_that_fails_in_one_session_after_only_is_not_worse(write, nodes):
    def session(*triad):
        return sides.load(write(case(*company(write.count), name='Other %threads=one'), *triad), '')
    before, again = (session(case(metric('bandwidth.nt', 1000, seed=number))) for number in range(2))
    broken = made_report.case(result='fail', fail_phase='compile', fail_reason='no cc', job_nodelist=nodes)
    failed = [session(broken) for _ in range(2)]
    found = compare.compare([before], failed[0])
    assert [change.kind for change in found.wrong] == ['failed', 'gone']
    assert compare.confirmed(found, [compare.compare([before], again)]).wrong == []
    assert compare.confirmed(found, [compare.compare([before], failed[1])]).wrong == found.wrong
    with pytest.raises(PlumblineError, match='compared with itself'):
        compare.confirmed(found, [found])


def test_a_test_that_fails_on_one_of_several_nodes_is_not_cleared_by_the_others(write):
    def session(*more):
        return sides.load(write(*(case(metric('bandwidth.nt', 1000, seed=write.count), node=node, unique_name=node) for node in ('n1', 'n2')), *more), '')
    before, again = session(), session()
    after = session(made_report.case(result='fail', fail_phase='sanity', fail_reason='wrong results', job_nodelist=['n3'], unique_name='n3'))
    found = compare.confirmed(compare.compare([before], after), [compare.compare([before], again)])
    assert [(change.kind, change.nodes) for change in found.wrong] == [('failed', ('', 'n3'))]


@pytest.mark.slow
@pytest.mark.parametrize('unclear', [
    {'state': {'core_to_core.0': 17e-9}}, {'spread': 0.9}, {'record': 0, 'size': 2**18}])
def test_a_session_in_which_it_is_unclear_does_not_clear_what_is_worse(write, unclear):
    '''In another state of the host, in noise, or with another working set of the cache.'''
    def session(rate, size=2**19, spread=0.02, verdict='NO REFERENCE', **more):
        more = {'state': {'core_to_core.0': 110e-9}, 'record': 0} | more
        reference = [1000, -0.1, None] if verdict != 'NO REFERENCE' else None
        others = [metric(f'bandwidth.company{number}.L2', 1000, seed=write.count) for number in range(10)]
        left = [metric('bandwidth.nt.L2', rate, spread, seed=write.count, verdict=verdict, reference=reference, **more)] if rate else []
        return sides.load(write(case(*left, metric('of_limit.nt.L2', 0.5, seed=write.count, unit='1'), record={'level': 'L2', 'working_set': size}),
                                case(*others, name='Company %threads=one')), '')
    before = session(1000)

    def confirmed(after, *others):
        found = compare.confirmed(compare.compare([before], after), [compare.compare([before], other) for other in others])
        return kinds(found)['bandwidth.nt.L2'], found.exit_status
    slow, doubt = session(600), session(990, **unclear)
    assert kinds(compare.compare([before], doubt))['bandwidth.nt.L2'] == 'unclear'
    assert confirmed(slow) == confirmed(slow, doubt) == confirmed(slow, doubt, session(610)) == ('slower', 1)
    assert confirmed(slow, doubt, session(1000)) == ('unclear', 0)
    # It is there, and no more than that, or a PASS.
    assert confirmed(session(None)) == ('gone', 1) and confirmed(session(None), doubt)[0] == 'unclear'
    failed, passed = session(995, verdict='FAIL'), session(990, **unclear, verdict='PASS')
    assert confirmed(failed, doubt) == ('failed', 1) and confirmed(failed, passed) == ('unclear', 0)
    assert confirmed(slow, passed) == ('slower', 1)


@pytest.mark.parametrize('rulings, status', [('F', 1), ('FU', 1), ('FF', 1), ('FP', 0), ('FUP', 0), ('UP', 0), ('UF', 3), ('UU', 3)])
def test_a_subsystem_whose_second_session_was_too_noisy_is_not_cleared(rulings, status):
    named = {'F': verdict.FAIL, 'U': verdict.UNSTABLE, 'P': verdict.PASS}
    first, *others = [compare.Comparison('made', ('a',), str(number), [], parts=[compare.Part('', 'L1', subsystems.RATES, None, named[one], 0.1)])
                      for number, one in enumerate(rulings)]
    assert compare.confirmed(first, others).exit_status == status


def test_without_a_change_it_exits_with_0(place):
    done = place.plumbline('compare', *names(place)[:2])
    assert done.code == 0 and 'Nothing that is recorded of machine and software has changed.' in done.out


def test_what_only_one_session_asked_is_no_change_of_the_machine(write):
    other = case(metric('latency.a', 1.0, unit='us'), name='Latency %threads=one', record={'flags': '-O1'}, machine={'kernel': '9.9.9'})
    before = write(case(metric('bandwidth.a', 100)), other)
    after = write(case(metric('bandwidth.a', 100), machine={'kernel': '6.5.0'}))
    assert compared(before, after).state == [('kernel', [made_report.MACHINE['kernel']], ['6.5.0'])]
    before, after = (write(case(metric('bandwidth.a', 100), software={'modules': ['gcc/13'], 'variables': [f'UCX_TLS={transports}']}))
                     for transports in ('all', 'tcp'))
    assert compared(before, after).state == [('modules and variables', ['UCX_TLS=all'], ['UCX_TLS=tcp'])]


def test_a_verdict_that_changed_within_noise_is_told(write, capsys):
    before, after = (write(case(metric('bandwidth.a', 100, verdict=verdict, reference=[100, -0.1, None])))
                     for verdict in ('PASS', 'UNSTABLE'))
    comparison.render(compared(before, after), Console(width=120))
    assert 'PASS -> UNSTABLE, within noise: Triad one bandwidth.a\n' in capsys.readouterr().out
    # Also where the environments differ, and a test's parameters are long.
    before, after = (write(*(case(*(metric(f'overhead.standard_{name}.shm', 100, spread, verdict=verdict, reference=[100, -0.1, None], seed=name)
                                    for name in range(3)), name=f'triad_scaling_{number} %level=cache %threads=all', environ=f'gnu-openmpi-{number}')
                             for number in range(2)))
                     for verdict, spread in (('NO REFERENCE', 0.9), ('PASS', 0.1)))
    comparison.render(compared(before, after), Console(width=120))
    shown = capsys.readouterr().out
    assert len(re.findall(r'^ unclear triad_scaling_\d *(?:cache|) +overhead.standard_\d.shm gnu-openmpi-\d .* 1 $', shown, re.M)) == 6
    assert shown.count('too noisy before') == 1 and re.search(r'^\[1\] too noisy before', shown, re.M)
    assert '\n6 metrics that had no reference before PASS now\n' in shown and 'NO REFERENCE' not in shown


def test_the_last_sessions(place):
    assert place.plumbline('compare', '--last', '2').out == place.plumbline('compare', *names(place)[1:]).out
    done = place.plumbline('compare', '--last', 3)
    assert f"after {', '.join(names(place)[:2])}" in done.out and 'guessed' not in done.out


@pytest.mark.parametrize('having, kind', [((0,), None), ((3,), 'gone'), ((0, 1), 'gone')])
def test_what_one_of_the_sessions_before_measured_for_once_is_not_gone(write, having, kind):
    before = [write(case(metric('bandwidth.nt', 1000, seed=number), *company(number)), *([case(metric('bandwidth.imb', 100), name='Imb')] * (number in having)))
              for number in range(4)]
    found = compared(*before, write(case(metric('bandwidth.nt', 1000, seed=9), *company(9))))
    assert kinds(found).get('bandwidth.imb') == kind and found.exit_status == (1 if kind else 0)


def test_many_gone_metrics_are_one_row(write, tmp_path):
    gone = [case(metric('bandwidth.a', 1), metric('bandwidth.b', 1), name=f'gone_{i} %threads={threads}')
            for i in range(3) for threads in ('one', 'all')]
    done = rfm.Workplace(tmp_path / 'place').plumbline('compare', write(case(metric('bandwidth.a', 100)), *gone),
                                                        write(case(metric('bandwidth.a', 100))))
    rows = [line for line in done.out.splitlines() if line.startswith(' gone')]
    assert done.code == 1 and len(rows) == 1 and '12 metrics' in rows[0] and rows[0].endswith(' 1 ')
    assert '[1] the test did not run\n' in done.out


@pytest.mark.parametrize('arguments, complaint', [
    ([], 'name at least two sessions'), (['one'], 'name at least two sessions'), (['a', 'b', '--last', '2'], 'name at least two'),
    (['--last', '4'], '3 sessions of made, 4 asked for'), (['--last', '2', '--system', 'x'], 'no session of x in the archive'),
    (['nothing', 'at all'], 'no session nothing in the archive'), (['{0}', '{0}'], 'compared with itself'),
    (['{0}', 'empty'], 'empty: no sweep'), (['{0}', 'broken.json'], 'the run report is not JSON'),
    (['{0}', 'elsewhere.json'], 'sessions of several systems: made, other'), (['{0}', 'apart.json'], 'nothing is comparable')])
def test_bad_input_is_one_line(place, monkeypatch, arguments, complaint):
    folder = place.folder
    shutil.rmtree(folder / 'empty', ignore_errors=True)
    (folder / 'empty').mkdir()
    (folder / 'broken.json').write_text('{"runs": [')
    made_report.write_report(folder / 'elsewhere.json', [{**case(metric('bandwidth.nt', 1)), 'system': 'other'}], uuid='eeeeeeee-1')
    made_report.write_report(folder / 'apart.json', [case(metric('bandwidth.other', 1), name='Apart')], uuid='ffffffff-1')
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ['compare', '--archive', str(folder / 'reports/archive'),
                                    *(text.format(names(place)[0]) for text in arguments)])
    assert isinstance(done.exception, PlumblineError) and complaint in str(done.exception)
    assert '\n' not in str(done.exception) and not done.output


def test_what_noise_hides_is_not_called_equal():
    def changes(*kinds):
        return [compare.Change(kind, 'triad', 'bandwidth.plain', 'default', 'gnu', ('n1', 'n1'), before=1.0, after=1.0) for kind in kinds]

    def status(*kinds, parts=()):
        return compare.Comparison('made', ('a',), 'b', changes(*kinds), parts=[compare.Part('', 'L1', subsystems.RATES, None, ruling, 0.1)
                                                                                  for ruling in parts]).exit_status

    assert status(compare.UNCLEAR, compare.UNCLEAR) == 3 and status(compare.UNCLEAR, compare.WITHIN) == 0
    assert status(compare.WITHIN, parts=[verdict.UNSTABLE]) == 3 and status(compare.UNCLEAR, parts=[verdict.FAIL]) == 1
    assert status() == 0
