'''Which nodes of a sweep are outliers: arithmetic by hand, confirmation on a real cluster, a truly slow node.'''

import dataclasses
import itertools
import json
import math
import re
import subprocess
import sys
import types

import numpy as np
import polars as pl
import pytest
from scipy import special
from typer.testing import CliRunner

import rfm
import sample_session as sample
from native import CPUS
from plumbline.bench.sweeps import simulation
from plumbline.cli import app, sweep as command
from plumbline.errors import PlumblineError
from plumbline.model import contention, records, subsystems, uncertainty
from plumbline.report import deviations, outliers as text, sweep_page
from plumbline.rfm import capacity as caches
from plumbline.sweep import causes, confirm, lacking, locality, outliers, peers, ranking, results, scatter, state
from plumbline.system import topology_file
from virtual import cluster_in

SWEPT = rfm.GUARDS / 'swept.py'


def table(values, name='flops', unit='Mflop/s', **more):
    '''A frame of one metric: node -> value.'''
    row = dict.fromkeys(results.COLUMNS) | {
        'system': 's', 'partition': 'p', 'environ': 'gnu', 'kind': 'alike', 'check': 'speed %threads=one', 'name': name,
        'metric': name.split('.')[0], 'unit': unit, 'error': 0.0, 'subsystem': 'core', 'noise': 'cache'} | more
    rows = [row | {'node': node, 'value': float(value)} for node, value in values.items()]
    return pl.DataFrame(rows, schema=results.COLUMNS)


def numbered(*values):
    return {f'n{i + 1}': value for i, value in enumerate(values)}


def company(nodes, noise=0.01, seed=1, **more):
    '''Metrics of the same nodes that say how those of their class scatter.'''
    drawn = 100 * np.exp(noise * np.random.default_rng(seed).standard_normal((12, len(nodes))))
    return pl.concat([table(dict(zip(nodes, row)), f'flops.company{number}', **more) for number, row in enumerate(drawn)])


def among(rows, **more):
    return pl.concat([rows, company(rows['node'].unique(maintain_order=True).to_list(), **more)])


def odd(frame):
    return set(ranking.rank(frame).outliers()['node'])


def column(rows, name):
    return dict(rows.select('node', name).iter_rows())


# --- deviation -----------------------------------------------------------------------------------------------------

def test_deviation_by_hand():
    # n1: the others' median 99, n2: 98, n3: 97, n4: 97, n5: 99 (of an even number the geometric mean of both).
    rows = ranking.rank(table(numbered(96, 98, 100, 102, 60))).rows
    assert rows['median'].to_list() == pytest.approx([99, 98, 97, 97, 99], rel=1e-3)
    assert rows['off'].to_list()[-1] == pytest.approx(-39 / 99, rel=1e-3)
    assert column(rows, 'rank') == {'n4': 1, 'n3': 2, 'n2': 3, 'n1': 4, 'n5': 5}
    # Too few metrics: the scatter is moderated by (3, 0.08).  n5: distances of the others' logarithms 0.0101 twice, 0.0299, 0.0308: 0.0202.
    mad, freedom = 1.4826 * 0.0202, 0.36 * 4
    scale = np.sqrt((3 * 0.08**2 + freedom * mad**2 * 4 / 3.1) / (3 + freedom) * (1 + np.pi / 8))
    assert rows['scale'].to_list()[-1] == pytest.approx(scale, rel=0.01)
    assert rows['deviation'].to_list()[-1] == pytest.approx(np.log(60 / 99) / scale, rel=0.01)
    assert rows['freedom'].to_list()[-1] == pytest.approx(3 + freedom)


def of_state(rows, latencies, others=()):
    '''The nodes' values were measured at these core-to-core latencies, ns; ``others`` (node, latency, value) as well.'''
    further = {node: json.dumps([{'state': {'core_to_core.0': 1e-9 * latency}, 'value': value, 'n': 9, 'spread': 0.0,
                                  'interval': [value, value]}]) for node, latency, value in others}
    return rows.with_columns(state=pl.Series([json.dumps({'core_to_core.0': 1e-9 * latency}) for latency in latencies]),
                             states=pl.Series([further.get(node) for node in rows['node']], dtype=pl.String))


def test_nodes_are_compared_within_a_state():
    values = table(numbered(100, 101, 99, 50, 51, 49, 60))
    others = company(numbered(*[1] * 7))
    assert odd(pl.concat([values, others])) == set()            # two sorts
    assert odd(pl.concat([of_state(values, [110, 112, 111, 17, 17, 18, 110]), others])) == {'n7'}


def test_a_node_that_met_the_state_of_its_peers_is_compared_there():
    values = table(numbered(100, 101, 99, 50))
    others = company(numbered(*[1] * 4))
    alone = of_state(values, [110, 112, 111, 17])
    found = ranking.rank(pl.concat([alone, others]))        # its host has placed its cores elsewhere: no peers
    assert found.outliers().is_empty() and found.apart == {'n4': ({'core_to_core.0': pytest.approx(1.7e-8)}, 1)} and found.unranked == {}
    assert findings(alone).unjudged == {'n4': ['core, rates and times']}
    told = ' '.join(text.remarks(findings(alone)))
    assert ("not ranked where fewer than 3 nodes were in their state, which is their host's doing, and earlier sweeps do not know it: "
            'n4 in 1 metric (core-to-core 17 ns);') in told
    shared = values.with_columns(state=pl.Series([json.dumps({'core_sharing': share}) for share in (1, 1, 1, 2)]))
    assert odd(pl.concat([shared, others])) == {'n4'}       # two of its threads on one core, which nobody else has: it stands out
    assert odd(pl.concat([of_state(values, [110, 112, 111, 17], [('n4', 110, 100.0)]), others])) == set()


def test_a_second_measurement_in_another_state_says_nothing():
    first = ranking.rank(among(of_state(table(numbered(100, 101, 99, 60)), [110, 112, 111, 110])))

    def second_time(latency, others=()):
        again = of_state(table({'n4': 59, 'n1': 100, 'n2': 101}), [latency, 110, 110], others)
        return confirm.confirm(first.outliers().filter(name='flops'), first, again).select('again', 'confirmed').row(0)
    assert second_time(112) == (59, True)
    assert second_time(17) == (None, None)
    assert second_time(17, [('n4', 110, 100.0)]) == (100, False)


@pytest.mark.slow
def test_a_node_alone_in_its_state_is_compared_by_what_earlier_sweeps_know_of_it():
    '''By 17 ns values are half of those by 110; n4 is alone there, and others have been.'''
    def kept(sweeps, ratio=0.0):
        drawn = np.exp(0.01 * np.random.default_rng(2).standard_normal((sweeps, 4))) * np.linspace(0.5, 1.5, sweeps)[:, None]       # and moods of the host
        values = [of_state(table(numbered(*row * [100, 50 * near, 100, 50 * near])), [110, 17, 111, 17])
                  for row, near in zip(drawn, itertools.cycle((1 - ratio, 1, 1 + ratio)))]
        return peers.Before(pl.concat([peers.in_states(frame).with_columns(sweep=pl.lit(str(number))) for number, frame in enumerate(values)]))

    def ranked(values, latencies, before):
        return ranking.rank(among(of_state(table(numbered(*values)), latencies)), in_states=before)
    assert ranked((100, 101, 99, 45), [110, 112, 111, 17], kept(8)).outliers()['node'].to_list() == ['n4']
    assert ranked((100, 101, 99, 45), [110, 112, 111, 17], kept(8, ratio=0.1)).outliers().is_empty()     # that differ by 10 % from sweep to sweep
    for values, latencies in (((100, 101, 99, 30), [110, 112, 111, 17]), ((100, 101, 50, 30), [110, 112, 17, 17])):
        slow = ranked(values, latencies, kept(8))
        assert slow.apart == {} and slow.outliers()['node'].to_list() == ['n4']
        row, = slow.outliers().filter(name='flops').to_dicts()
        assert (row['value'], row['peers'], row['rank']) == (30, 4, 4)
        assert row['median'] == pytest.approx(50, rel=0.02) and row['off'] == pytest.approx(-0.4, abs=0.02)       # as it is in its state
        assert ranked((*values[:3], 50), latencies, kept(8)).outliers().is_empty()
        for few in (None, kept(2)):
            assert 'n4' in ranked(values, latencies, few).apart and 'flops' not in ranked(values, latencies, few).outliers()['name']

    def again(value, latency):
        frame = of_state(table({'n4': value, 'n1': 100, 'n2': 101}), [latency, 110, 110])
        return confirm.confirm(slow.outliers().filter(name='flops'), slow, frame, kept(8)).select('again', 'confirmed').row(0)
    assert again(31, 17) == (31, True) and again(50, 17) == (50, False)
    assert again(60, 110) == (pytest.approx(30, rel=0.02), True) and again(100, 110) == (pytest.approx(50, rel=0.02), False)
    assert again(60, 300) == (None, None)       # of that state nothing is known
    told = ' '.join(text.remarks(outliers.Findings('made', {}, slow.rows, slow, slow.outliers().with_columns(confirmed=True), {}, [])))
    assert ('compared with nodes in another state of their host, since fewer than 3 were in theirs, by what earlier sweeps know of both: '
            'n3 in 1 metric (core-to-core 17 ns), n4 in 1 metric (core-to-core 17 ns)') in told
    usual = ranked((100, 101, 99, 88), [110, 112, 111, 110], None)
    frame = of_state(table({'n4': 44, 'n1': 100, 'n2': 101}), [17, 110, 110])
    for ratio, confirmed in ((0.0, True), (0.05, None)):       # twelve per cent less are nothing by a ratio that is known to eight
        rows = confirm.confirm(usual.outliers().filter(name='flops'), usual, frame, kept(8, ratio))
        assert rows.select('again', 'confirmed').row(0) == (pytest.approx(88, rel=0.02), confirmed)


def test_what_is_known_of_two_states_is_off_alike_in_all_metrics_of_a_node():
    def sweep(number, far, near, latencies):
        drawn = np.random.default_rng(number)
        return pl.concat([of_state(table(numbered(*np.exp(0.01 * drawn.standard_normal(4)) * [100, far, 100, near]), f'flops.v{one}'), latencies)
                          for one in range(8)])

    def ranked(ratio, value=46):
        kept = [sweep(number, 50 * near, 50 * near, [110, 17, 111, 17]) for number, near in enumerate((1 - ratio, 1, 1 + ratio) * 3)]
        before = peers.Before(pl.concat([peers.in_states(frame).with_columns(sweep=pl.lit(str(number))) for number, frame in enumerate(kept)]))
        return ranking.rank(sweep(9, 100, value, [110, 112, 111, 17]), in_states=before)
    assert set(ranked(0.0, 35).outliers()['node']) == {'n4'} and ranked(0.05).outliers().is_empty() and ranked(0.05).apart == {}
    unknown = ranked(0.2)
    assert unknown.apart['n4'][1] == 8 and unknown.unranked == {'n4': ['core, rates and times']}


def test_of_a_value_that_is_nothing_no_other_is_so_many_times():
    frame = of_state(table(numbered(0, 100, 100, 100)), [17, 17, 110, 110], [('n2', 110, 0.0), ('n3', 17, math.nan)])
    assert sorted(peers.in_states(frame).select('node', 'value').rows()) == [('n2', 100), ('n3', 100), ('n4', 100)]
    # A value is of all teams' states; where it was judged in two that differ in another team's, it has this one twice.
    values, latencies = table(numbered(100, 101, 99, 60)), [110, 112, 111, 110]
    rows = ranking.rank(of_state(values, latencies, [(f'n{number}', 110, 100.0) for number in range(1, 5)])).rows
    assert rows['node'].to_list() == ['n1', 'n2', 'n3', 'n4'] and rows['peers'].unique().to_list() == [4]
    assert column(rows, 'value') == {'n1': 100, 'n2': 101, 'n3': 99, 'n4': 60}


def test_the_rank_of_a_node_is_among_its_peers():
    '''Three that are slower by their state are nothing to the others.'''
    latencies = [110, 112, 111, 110, 17, 17, 18]
    rows = ranking.rank(of_state(table(numbered(100, 101, 99, 98, 150, 151, 149)), latencies)).rows
    assert column(rows, 'peers') == dict(zip(column(rows, 'rank'), [4, 4, 4, 4, 3, 3, 3]))
    assert column(rows, 'rank') == {'n1': 2, 'n2': 1, 'n3': 3, 'n4': 4, 'n5': 2, 'n6': 1, 'n7': 3}


@pytest.mark.parametrize('count', [2, 3, 4, 7, 10])
def test_median_and_mad_of_the_others(count):
    x = np.random.default_rng(count).integers(0, 6, count).astype(float)        # with ties
    centre = uncertainty.median_of_others(x)
    others = [np.delete(x, i) for i in range(count)]
    assert centre.tolist() == [np.median(rest) for rest in others]
    assert ranking.mad_of_others(x, centre).tolist() == [np.median(np.abs(rest - c)) for rest, c in zip(others, centre)]


def test_equal_values_do_not_divide_by_zero():
    assert odd(among(table(numbered(100, 100, 100, 99)), noise=0.0)) == set()        # 1 % is no loss to act on
    assert odd(among(table(numbered(100, 100, 100, 97)), noise=0.0)) == {'n4'}
    assert ranking.rank(table(numbered(0, 0, 0), 'latency')).rows.is_empty()         # no ratio
    assert odd(among(table(numbered(100, 100, 100, 0)))) == {'n4'}
    quiet = numbered(100, 100, 80, 100)
    assert odd(among(table(quiet))) == {'n3'}
    assert odd(among(table(quiet, error=0.1))) == set()
    assert ranking.rank(among(table(numbered(100, 100, 100, 100)), noise=0.0)).rows['sees'].min() > 0.0196      # as little as is acted on


@pytest.mark.parametrize('name, values', [
    ('flops', numbered(10, 10, 10, 5)), ('latency', numbered(10, 10, 10, 20)), ('cpu_availability', numbered(1, 1, 1, 0.6))])
def test_the_bad_side_depends_on_the_metric(name, values):
    found = ranking.rank(among(table(values, name)))
    assert (set(found.outliers()['node']), found.better().is_empty()) == ({'n4'}, True)
    found = ranking.rank(among(table(values | {'n4': values['n1']**2 / values['n4']}, name)))
    assert (found.outliers().is_empty(), set(found.better()['node'])) == (True, {'n4'})


#: Subsystem, metric, class of noise.
PARTS = [('core', 'flops', 'cache'), ('L1', 'flops', 'cache'), ('L2', 'bandwidth', 'cache'), ('L3', 'bandwidth', 'cache'),
         ('memory, one thread', 'bandwidth', 'memory'), ('memory, all threads', 'bandwidth', 'memory'), ('latency', 'latency', 'latency'),
         ('files', 'bandwidth', 'files'), ('CPU availability', 'cpu_availability', 'ratio')]


def drawn(generator, count, noise, losses=(), per=6):
    '''A sweep of nodes whose metrics scatter unlike, and partly together; n1 has lost the given shares of subsystems.'''
    nodes, frames = numbered(*[0] * count), []
    for part, metric, kind in PARTS:
        moods = 0.5 * noise * generator.standard_normal(count)
        for number in range(per):
            scatter = noise * np.exp(0.3 * generator.standard_normal())
            values = 100 * np.exp(moods + scatter * generator.standard_normal(count))
            values[0] *= (1 - dict(losses).get(part, 0)) ** ranking.BETTER[metric]
            frames.append(table(dict(zip(nodes, values)), f'{metric}.{number}', subsystem=part, noise=kind, check=part))
    return pl.concat(frames)


@pytest.mark.slow
@pytest.mark.parametrize('count, noise, sweeps', [(4, 0.02, 8), (4, 0.08, 8), (6, 0.02, 5), (64, 0.02, 2)])
def test_of_equal_nodes_none_is_an_outlier(count, noise, sweeps):
    generator = np.random.default_rng(count)
    found = [ranking.rank(drawn(generator, count, noise)) for _ in range(sweeps)]
    assert sum(not one.outliers().is_empty() for one in found) == 0
    assert sum(not one.divided.is_empty() for one in found) <= 1


@pytest.mark.slow
@pytest.mark.parametrize('count, noise, loss', [(4, 0.02, 0.3), (64, 0.02, 0.12), (64, 0.01, 0.05), (4, 0.01, 0.15), (64, 0.08, 0.4)])
def test_a_slow_subsystem_is_named_and_no_other_node(count, noise, loss):
    found = ranking.rank(drawn(np.random.default_rng(count), count, noise, {'memory, all threads': loss}))
    score = 'memory, all threads, rates and times'
    assert set(found.outliers()['node']) == {'n1'} and found.outliers()['check'][0] == score
    assert found.scores.filter(check=score)['sees'].median() < 1.5 * loss


@pytest.mark.slow
def test_ratios_that_a_slow_node_keeps_do_not_dilute_its_rates():
    '''Twice as many: in one score n3 would be 1.7 % low, which is too little to act on; and its ratios are in order in both measurements.'''
    fleet = simulation.Fleet(np.random.default_rng(1), 16, simulation.Noise(0.003, 0.003))
    slow, again = (fleet.sweep(0.05, node=2, part=5) for _ in range(2))
    found = ranking.rank(slow)
    assert set(found.scores['check']) == {f'{part}, {subsystems.kind(metric)}' for part, metric, _ in simulation.PARTS + simulation.RATIOS}
    asked = found.scores.filter(node='n3').with_columns(of_both=pl.lit(None, dtype=pl.Float64))
    confirmed = confirm.confirm(asked, found, again).filter(pl.col('check').cast(pl.String).str.starts_with('memory, all'))
    rates, ratios = confirmed.sort('check').to_dicts()
    assert (rates['check'], rates['odd'], ratios['odd']) == ('memory, all threads, rates and times', True, False)
    assert [rates['value'], rates['again'], ratios['value'], ratios['again']] == pytest.approx([0.95, 0.95, 1, 1], abs=0.01)
    # What ratios scatter by is nothing to rates.
    alone = ranking.rank(slow.filter(~pl.col('metric').is_in(['of_limit', 'of_parts', 'growth'])))
    few, all_of_them = (one.scores.filter(noise=subsystems.RATES)['scale'].to_list() for one in (alone, found))
    assert few == pytest.approx(all_of_them)


def test_scatter_of_earlier_sweeps_by_hand():
    '''n4 against 100, 101, 102: its scale is of (3, 0.08), of today's MAD 0.0099 and of 3 degrees with 0.02, two sweeps together.'''
    frame = table(numbered(100, 101, 102, 90))
    row, = ranking.rank(frame).scatter().filter(pl.col('name') == 'flops').to_dicts()
    earlier = pl.DataFrame([row | {'variance': 0.03**2, 'freedom': 2.0}, row | {'variance': 0.0, 'freedom': 2.5}], schema=ranking.SCATTER)
    n4 = ranking.rank(frame, earlier).rows.filter(pl.col('node') == 'n4')
    own, before = (1.4826 * np.log(101 / 100))**2 * 3 / 2.1, 0.03**2 * 2 / 4.5
    freedom = uncertainty.mad_freedom(3)
    assert n4['freedom'].item() == pytest.approx(3 + freedom + ranking.MOST_EARLIER)
    assert n4['scale'].item() == pytest.approx(np.sqrt(
        (1 + np.pi / 6) * (3 * 0.08**2 + freedom * own + 3 * before) / (6 + freedom)), rel=0.01)


@pytest.mark.slow
def test_four_nodes_see_more_after_earlier_sweeps():
    generator = np.random.default_rng(4)
    earlier = pl.concat([ranking.rank(drawn(generator, 4, 0.01)).scatter() for _ in range(5)])
    slow = [drawn(generator, 4, 0.01, {'memory, all threads': 0.05}) for _ in range(4)]
    assert sum(ranking.rank(frame).outliers().is_empty() for frame in slow) >= 3
    named = [set(ranking.rank(frame, earlier).outliers()['node']) for frame in slow]
    assert named.count({'n1'}) >= 3 and all(nodes <= {'n1'} for nodes in named)
    equal = [ranking.rank(drawn(generator, 4, 0.01), earlier) for _ in range(4)]
    assert all(found.outliers().is_empty() for found in equal)


def scored(values, sweep='', **more):
    '''Scores that nodes had: a row for each.'''
    row = {'system': 's', 'partition': 'p', 'environ': 'gnu', 'kind': 'alike', 'check': 'L2, rates and times', 'members': 6, 'sweep': sweep} | more
    return pl.DataFrame([row | {'node': node, 'value': float(value)} for node, value in values.items()])


def held_against_itself():
    '''A fleet whose nodes differ by 3 % for good; what the ranking is told of earlier sweeps; a sweep in which n3 has lost 6 % of L2.'''
    fleet = simulation.Fleet(np.random.default_rng(3), 4, simulation.Noise(0.004, 0.03))
    kept = [ranking.rank(fleet.sweep()) for _ in range(6)]
    earlier = pl.concat([one.scatter() for one in kept])
    before = pl.concat([one.scores.select(ranking.SCORES.names()).with_columns(sweep=pl.lit(str(number))) for number, one in enumerate(kept)])
    assert ranking.rank(fleet.sweep(), earlier, before).suspects().is_empty()
    return fleet, earlier, before, fleet.sweep(0.06, node=2, part=2)


@pytest.mark.slow
def test_a_node_is_held_against_itself():
    '''None is odd among its peers.'''
    fleet, earlier, before, slow = held_against_itself()
    found = ranking.rank(slow, earlier, before)
    assert found.outliers().is_empty() and found.suspects().select('node', 'check', 'since').rows() == [('n3', 'L2, rates and times', True)]
    assert found.suspects()['off'].item() == pytest.approx(-0.06, abs=0.02)
    # From five sweeps on; of other metrics nothing is known.
    few = before.filter(pl.col('sweep') < '4')
    assert ranking.rank(slow, earlier, few).newly.is_empty() and ranking.rank(slow, earlier).suspects().is_empty()
    assert ranking.rank(slow, earlier, before.with_columns(members=pl.lit(9))).newly.is_empty()
    # Its own mean with a second measurement must be as improbable as an outlier is; that repeats 0.45 of the first one's variance.
    row, again = found.suspects(), fleet.sweep(0.06, node=2, part=2)
    assert row['of_both'].item() == pytest.approx(-np.sqrt(1.45 / 2) * special.stdtrit(row['freedom'].item(), 0.01 / found.newly.height))
    both = (row['bad'].item() + confirm.confirm(row, found, again)['again_bad'].item()) / 2
    assert [confirm.confirm(row.with_columns(of_both=pl.lit(share * both)), found, again)['confirmed'].item() for share in (0.99, 1.01)] == [True, False]
    # It counts only when confirmed.
    for again, confirmed in ((fleet.sweep(0.06, node=2, part=2), True), (fleet.sweep(), False), (slow.clear(), None)):
        rows = confirm.confirm(found.suspects(), found, again)
        assert rows['confirmed'].to_list() == [confirmed]
        told = outliers.Findings('made', {}, slow, found, rows, {}, [])
        assert [which for which, nodes in ((True, told.named), (False, told.cleared), (None, told.unconfirmed)) for _ in nodes] == [confirmed]


def test_what_a_score_scatters_by_around_its_own_median_by_hand():
    scores = ranking.rank(drawn(np.random.default_rng(1), 3, 0.01)).scores.filter(check='L2, rates and times')
    logs = {'n1': [0.01, 0.0, -0.01, 0.0, 0.0], 'n2': [1.0, 1.0, 1.02, 0.98, 1.0], 'n3': [0.0] * 5}
    before = pl.concat([scored({node: np.exp(own[sweep]) for node, own in logs.items()}, str(sweep)) for sweep in range(5)])
    row = ranking.newly(scores, before).filter(pl.col('node') == 'n3')
    assert row['median'].item() == pytest.approx(np.exp(np.median([np.log(value) - usual for value, usual in zip(scores['value'][:2], (0, 1))])), rel=1e-6)
    # Residuals of the sweeps: (1, 0, 0), 0, (-1, 2, 0), (0, -2, 0), 0 per cent: the median distances 0, 0, 1, 0, 0 per cent.
    before_all = (1.4826 * 0.01)**2 / 5 * 3 / 2.1 * (1 + np.pi / 10) * 5 / 4
    own = row['own'].item()
    prior = min(scores['freedom_of_members'].min(), 10), row['most'].item()
    expected = np.sqrt((1 + np.pi / 4) * (prior[0] * prior[1]**2 + 0.72 * own + 3 * before_all) / (prior[0] + 3.72))
    assert row['scale'].item() == pytest.approx(min(expected, row['most'].item() * np.sqrt(1 + np.pi / 4)), rel=0.02)


def whole(frame, again=None):
    '''Node -> tests that it lacks as a whole.'''
    found = lacking.look(ranking.rank(frame), frame, frame.clear() if again is None else again)
    return {node: names for node, tests in found.items() if (names := [test for test, lack in tests.items() if lack.whole])}


def test_a_node_without_a_test_of_its_peers_is_named_unless_it_has_it_when_measured_again():
    lame = pl.concat([table(numbered(1, 1, 1, 1)), table(numbered(2, 2, 2, 2), 'bandwidth'), table(numbered(5, 5, 5), 'latency', check='latency %pages=huge'),
                      table(numbered(6, 6, 6), 'latency.b')])
    assert whole(lame) == {'n4': ['latency %pages=huge']}      # of the other it has something
    assert whole(lame, table({'n4': 5}, 'latency', check='latency %pages=huge')) == {}
    elsewhere = pl.concat([table(numbered(1, 1, 1, 1)), table(numbered(5, 5, 5), 'flops.hpl.64', check='hpl', environ='gnu-openmpi')])
    assert whole(elsewhere) == whole(elsewhere, table({'n4': 1})) == {'n4': ['hpl']}        # all that there is of an environment
    assert whole(lame, table({'n4': 1})) == {'n4': ['latency %pages=huge']}
    rows = sample.frame(sample.case('latency', detail={'skipped': [{'metric': 'all', 'reason': 'huge pages were asked for, and not given: see x', 'symptom': 'no_huge_pages'}]},
                                    result='skip'))
    assert lacking.whole(rows, 'latency %pages=huge')[0] == 'huge pages were asked for, and not given: see x'
    found = causes.diagnosed(rows, ranking.rank(lame).outliers(), ['latency %pages=huge'])
    assert [one.rule['name'] for one in found] == ['no_huge_pages']
    told = findings(lame)
    told = dataclasses.replace(told, lacking={'n4': {'latency %pages=huge': lacking.Lack(True, (), False, 'not given')}}, causes={'n4': ['a cause']})
    assert (told.named, told.exit_status) == ([], 1)
    assert 'n4 has nothing of latency huge, which most of its peers have: not given' in list(text.remarks(told))
    assert '1 node without a test that peers have, or a part of one' in text.headline(told)


def test_a_difference_that_fails_the_expectations_of_a_node_is_told_and_explained():
    why = 'node n4 is not as expected: dimm.count is 7, expected 8 (made-cpu.yaml)'
    slow = pl.concat([among(table(numbered(100, 100, 100, 60)), noise=0.001), table(numbered(1, 1, 1), 'as_expected', check='expectations')])
    ranked = ranking.rank(slow)
    rows = sample.frame(sample.case('expectations', detail={}, result='fail', host='n4', verdict='FAIL', reason=why, symptom='not_as_expected'))
    assert whole(slow) == {'n4': ['expectations']} and lacking.whole(rows, 'expectations')[0] == why
    for tests in ['expectations'], []:          # of two nodes, or where half of them differ, none lacks the test
        found, = (one for one in causes.diagnosed(rows, ranked.outliers(), tests) if one.rule['name'] == 'not_as_expected')
        assert len(found.evidence) == 1 and why in found.evidence[0]


def test_sweeps_keep_how_nodes_scatter(tmp_path):
    frame = company(numbered(*[0] * 4))
    ranked = ranking.rank(frame)
    for name in ('a', 'b', 'd'):
        (tmp_path / name).mkdir()
        scatter.keep(tmp_path / name, frame, ranked)
    table_of_two, sweeps = scatter.before(tmp_path / 'c')
    assert (sweeps, table_of_two.height) == (2, 2 * ranked.scatter().height)
    assert scatter.before(tmp_path / 'a')[1] == 0
    assert scatter.scores_before(tmp_path / 'c').select(pl.col('sweep').unique().sort())['sweep'].to_list() == ['a', 'b']
    assert scatter.scores_before(tmp_path / 'a') is None
    (tmp_path / 'a' / scatter.FILE).write_text('damaged')
    with pytest.raises(PlumblineError, match=r'a/scatter.parquet: not what a sweep kept of its nodes; delete it'):
        scatter.before(tmp_path / 'c')


def test_what_a_node_is_an_outlier_by_as_a_whole_has_its_cause():
    odd = ranking.rank(drawn(np.random.default_rng(64), 64, 0.02, {'memory, all threads': 0.2})).outliers()
    for share, named in ((0.0, ['no_huge_pages']), (0.98, [])):
        records = [sample.record('plain', 5_000_000, 4, 0) | {'huge_page_share': share, 'options': {'pages': 'huge'}}]
        rows = sample.frame(sample.case('triad_memory', [sample.metric('bandwidth.plain', 1000.0, 'MB/s', reference=None)], threads='all',
                                        detail={'records': records}))
        assert [one.rule['name'] for one in causes.diagnosed(rows, odd.filter(pl.col('name') == 'score'), [])] == named


def test_a_memory_hog_in_a_sweep_is_an_outlier():
    # The sweep of record: eight triads at 0.52 to 0.77 of the others, file writing at 0.65; each alone stayed within its noise.
    generator = np.random.default_rng(6)
    frame = drawn(generator, 4, 0.06, per=8)
    shares = dict(zip([f'bandwidth.{number}' for number in range(8)], (0.52, 0.55, 0.6, 0.62, 0.66, 0.7, 0.74, 0.77)))
    hogged = (pl.col('node') == 'n1') & (pl.col('subsystem') == 'memory, all threads')
    files = (pl.col('node') == 'n1') & (pl.col('subsystem') == 'files')
    frame = frame.with_columns(value=pl.col('value') * pl.when(hogged).then(pl.col('name').replace_strict(shares, default=1.0))
                               .when(files).then(0.65).otherwise(1.0))
    assert set(ranking.rank(frame).outliers()['node']) == {'n1'}


@pytest.mark.slow
def test_the_sweeps_of_another_partition_say_nothing(tmp_path):
    frame = company(numbered(*[0] * 4))
    ranked = ranking.rank(frame)
    for number in range(30):
        folder = tmp_path / f's{number:02}'
        folder.mkdir()
        (folder / 'sweep.json').write_text(json.dumps({'partition': ('made:cpu', 'made:gpu', 'other:cpu')[number % 3]}))
        scatter.keep(folder, frame, ranked)
    scores = scatter.scores_before(tmp_path / 's27')
    assert scores['sweep'].unique().sort().to_list() == [f's{number:02}' for number in range(0, 27, 3)] and scatter.before(tmp_path / 's27')[1] == 9
    (tmp_path / 's99').mkdir()
    (tmp_path / 's99/sweep.json').write_text('{"partition": "made:gpu"}')
    assert scatter.before(tmp_path / 's99')[1] == scatter.LATEST


@pytest.mark.parametrize('values, code', [([100] * 4, 2), ([100, 100, 60, 100], 1)])
def test_a_sweep_that_one_may_not_write_to_is_ranked_and_said_in_a_line(values, code, tmp_path, monkeypatch):
    '''Of somebody else, or on a disk that is full.'''
    (tmp_path / 's1').touch()
    monkeypatch.setattr(outliers, 'look', lambda *_: findings(among(table(numbered(*values)), noise=0.001)))
    done = CliRunner().invoke(app, ['rank', str(tmp_path / 's1')])
    assert done.exit_code == code and '4 ranked by 13 metrics' in done.stdout, done.output
    assert re.fullmatch(r'plumbline: \S+/s1/scatter.parquet: .*: what its nodes scatter by is not kept for later sweeps: make room, or .* rank s1\n', done.stderr)


def test_a_metric_that_would_see_no_loss_is_said_to_see_none():
    frame = pl.concat([table(numbered(1, 9, 80, 700), 'latency', 'us'), table(numbered(100, 101, 102, 103))])
    found = types.SimpleNamespace(ranked=ranking.rank(frame), earlier=0)
    assert re.match(r'would have seen a loss of .* \(median of 2 metrics\), none of less than 90 % in 1 of them$', next(text.sees(found)))


def test_two_nodes_and_what_has_no_bad_side_cannot_be_ranked():
    found = ranking.rank(table(numbered(100, 60)))
    assert found.rows.is_empty()
    assert found.few['nodes'].to_list() == [['n1', 'n2']]
    assert ranking.rank(table(numbered(64, 64, 1536), 'entries')).rows.is_empty()


def test_kinds_partitions_and_environments_are_ranked_apart():
    frame = pl.concat([table(numbered(100, 100, 100)), table({'m1': 50, 'm2': 50, 'm3': 50}, kind='another'),
                       table(numbered(70, 70, 70), environ='llvm'), table(numbered(20, 20, 20), partition='q')])
    assert ranking.rank(frame).outliers().is_empty()
    found = ranking.rank(among(table(numbered(100, 100, 60, 60))))
    assert set(found.outliers()['node']) == {'n3', 'n4'}
    assert found.divided.is_empty()


def test_that_most_nodes_are_slow_is_told():
    found = ranking.rank(table(numbered(100, 100, 100, 100, 60, 60, 60, 60, 60)))
    assert found.outliers().is_empty()
    assert found.divided.select('name', 'low', 'high').rows() == [('flops', 5, 4)]
    assert found.divided['gap'].to_list() == pytest.approx([40 / 60])
    for one_sort in ((100, 101, 102, 103, 104, 105), (100, 100, 100, 110), (100, 101, 99)):
        assert ranking.rank(table(numbered(*one_sort))).divided.is_empty()


def test_nodes_with_another_working_set_of_a_cache_are_no_peers():
    def sizes(size):
        return among(pl.concat([table(numbered(100, 101, 99, 100), working_set=2**19), table({'n5': 50}, working_set=size)]), noise=0.001)
    alike, found = ranking.rank(sizes(2**19)), ranking.rank(sizes(2**18))
    assert set(alike.outliers()['node']) == {'n5'} and alike.unlike == []
    assert found.outliers().is_empty() and found.unlike == ['n5'] and found.lacking.is_empty()
    assert 'not ranked in metrics of caches, with another working set than their peers: n5' in list(text.remarks(findings(sizes(2**18))))
    again = confirm.confirm(alike.outliers().filter(name='flops'), alike, sizes(2**18))
    assert again.select('again', 'confirmed').row(0) == (None, None)


def test_a_metric_that_peers_have_is_missed():
    lame = pl.concat([table(numbered(1, 1, 1, 1)), table(numbered(2, 2, 2), 'bandwidth')])
    assert ranking.rank(lame).lacking.select('node', 'name', 'having', 'peers').rows() == [('n4', 'bandwidth', 3, 4)]
    eight = numbered(*[1] * 8)

    def partly(*rows, again=None):
        frame = pl.concat(rows)
        found = lacking.look(ranking.rank(frame), frame, frame.clear() if again is None else again)
        return {node: {test: list(lack.names) for test, lack in tests.items()} for node, tests in found.items() if not all(
            lack.whole for lack in tests.values())}
    one = table(numbered(*[2] * 7), 'bandwidth')
    assert partly(table(eight), one) == {'n8': {'speed %threads=one': ['bandwidth']}}
    assert partly(table(eight), one, again=table({'n8': 2}, 'bandwidth')) == {}
    assert partly(table(eight), table(numbered(*[2] * 6), 'bandwidth')).keys() == {'n7', 'n8'}
    assert partly(table(eight), table(numbered(*[2] * 5), 'bandwidth')) == {}                       # of three nodes of eight
    assert partly(table(eight), table(numbered(*[2] * 7), 'knee')) == {}                            # it says what a node is, not how fast
    assert partly(table(numbered(*[1] * 7)), one, table({'n8': 1}, kind='another')) == {}
    assert partly(table(eight), table(numbered(*[2] * 7), check='other')) == {}                     # it has nothing of that
    # A value that is no number is none.
    assert ranking.rank(table(numbered(1, 1, 1, float('nan')))).lacking['node'].to_list() == ['n4']


def test_a_thousand_nodes():
    values = {f'n{i}': 100 + i % 7 / 10 for i in range(1000)} | {'n500': 90}
    frame = pl.concat([table(values, f'flops.{i}') for i in range(50)])
    assert odd(frame) == {'n500'}


# --- measured again ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('again, confirmed', [
    (numbered(100, 100, 60), True), (numbered(100, 100, 100), False),
    (numbered(50, 50, 30), True), (numbered(50, 50, 50), False),     # all are slower by now: that is no alarm
    (numbered(100, 100, 99), False), (numbered(100, 100, 85), True),   # out again, not half as far: nothing, or certain all the same
    (numbered(100, 60, 60), False),                                  # beside a peer that is as slow by now
    ({'n3': 60}, None), (numbered(100, 100), None)])                 # nobody to compare with; not measured again
def test_a_second_measurement_confirms(again, confirmed):
    first = ranking.rank(among(table(numbered(100, 100, 60, 100))))
    rows = confirm.confirm(first.outliers().filter(pl.col('name') == 'flops'), first, table(again))
    assert rows.select('node', 'confirmed').rows() == [('n3', confirmed)]


def test_a_share_that_is_nothing_decides_no_subsystem():
    '''Overlap may be 0 in one measurement: n6, a third slower in all else, is not cleared by that, nor a healthy node named.'''
    def measured(slow, overlap):
        rows = [table(numbered(*[0.9] * 5, 0.9 * slow), f'of_limit.v{number}', '1') for number in range(10)]
        rows = pl.concat(rows + [table(numbered(*values), f'overlap.v{number}', '1') for number, values in enumerate(overlap)])
        return rows.with_columns(value=pl.col('value') * np.exp(0.01 * np.random.default_rng(len(overlap)).standard_normal(rows.height)))

    def again(first, second):
        found = ranking.rank(first)
        asked = found.scores.filter(node='n6').with_columns(of_both=pl.lit(None, dtype=pl.Float64))
        return confirm.confirm(asked, found, second).select('again', 'confirmed').row(0)
    value, confirmed = again(measured(0.7, [[0.2] * 5 + [0.0]]), measured(0.7, [[0.2] * 5 + [0.01]]))
    assert confirmed and 0.4 < value < 0.9
    others = [[0.2] * number + [0.0] + [0.2] * (5 - number) for number in range(4)]
    assert not again(measured(0.95, others), measured(1.0, [[0.2] * 6] * 4))[1]


@pytest.mark.parametrize('loss, confirmed', [(0.3, True), (0.0, False)])
def test_a_subsystem_is_confirmed_by_its_metrics(loss, confirmed):
    generator = np.random.default_rng(5)
    first = ranking.rank(drawn(generator, 4, 0.02, {'L2': 0.3}))
    again = drawn(generator, 4, 0.02, {'L2': loss})
    rows = confirm.confirm(first.outliers(), first, again).filter(pl.col('name') == 'score')
    assert rows.select('node', 'check', 'confirmed').rows() == [('n1', 'L2, rates and times', confirmed)]
    assert rows['again'][0] == pytest.approx(1 - loss, rel=0.05)


def test_those_are_measured_again_that_are_nearest_to_the_median():
    others = table({'m1': 1, 'm2': 1, 'm3': 1}, kind='another')
    found = ranking.rank(pl.concat([table(numbered(104, 100, 40, 99, 100)), others, company(numbered(*[1] * 5), noise=0.0)]))
    assert outliers.peers_in_order(found, found.outliers()['node'].unique().to_list(), 2) == ['n2', 'n5']


# --- racks and switches -----------------------------------------------------------------------------------------

RACKS = {f'r{rack}n{node}': f'rack {rack}' for rack in range(1, 5) for node in range(1, 11)}


def test_a_rack_is_read_from_the_name():
    assert locality.by_pattern(RACKS, r'r(?P<rack>\d+)n\d+') == RACKS
    assert locality.by_pattern(['a1', 'x'], '(.)1') == {'a1': 'rack a'}


@pytest.mark.parametrize('pattern, complaint', [
    ('r(', 'not a regular expression'), (r'r\d+', 'has no group'), ('q(.)', 'fits no node')])
def test_patterns_are_refused(pattern, complaint):
    with pytest.raises(PlumblineError, match=complaint):
        locality.by_pattern(RACKS, pattern)


def test_a_switch_is_read_from_topology_conf(tmp_path):
    file = tmp_path / 'topology.conf'
    file.write_text('# leaves\nSwitchName=s1 Nodes=n[1-2]\nswitchname=s2 \\\n  nodes=n3,n4 # two\n'
                    'SwitchName=core Switches=s[1-2]\n')
    assert locality.by_switch(['n1', 'n3', 'n9'], file) == {'n1': 'switch s1', 'n3': 'switch s2'}
    with pytest.raises(PlumblineError, match='names none of the nodes n9'):
        locality.by_switch(['n9'], file)
    with pytest.raises(PlumblineError, match='no.conf: cannot be read'):
        locality.by_switch(['n1'], tmp_path / 'no.conf')


@pytest.mark.parametrize('odd, shared', [
    (['r1n1', 'r1n2', 'r1n3', 'r1n4'], [('rack 1', ['r1n1', 'r1n2', 'r1n3', 'r1n4'], 10)]),
    (['r1n1', 'r1n2'], []), (['r1n1', 'r2n1', 'r3n1'], []), ([], [])])
def test_what_odd_nodes_share(odd, shared):
    assert locality.shared(RACKS, odd) == shared


# --- lost time ----------------------------------------------------------------------------------------------------

CONTENTION = {'record': 'contention', 'schema': 1, 'threads': 2, 'elapsed': 10.0, 'throttled': 6.0, 'waited': 7.0, 'stolen': 0.5}


@pytest.mark.parametrize('most, told', [(5.0, 0.498), (0.01, 0.0), (0.1, 0.008), (None, 0.0)])
def test_a_stray_process_beside_one_thread_of_many_holds_up_all(most, told):
    '''A static team waits for its slowest thread; one that waits for a tick is nothing.'''
    lost = CONTENTION | {'threads': 128, 'throttled': 0, 'stolen': 0, 'waited': 0.0, 'waited_most': most}
    assert contention.time_given([lost]) == pytest.approx(1 - told)
    assert bool(contention.notes([lost], None)) is bool(caches.disturbed([lost])) is (told > 0.02)
    assert contention.time_given([lost] * 2) == pytest.approx(1 - told)
    quota = CONTENTION | {'throttled': 10.0, 'waited': 10.0, 'waited_most': 6.0}       # of one CPU, unequally
    assert contention.causes([quota])[contention.OTHERS] == 0


def test_causes_of_lost_time_and_what_the_kernel_does_not_tell():
    assert contention.time_given([CONTENTION | {'waited': None}]) is None
    assert contention.time_given([]) is None
    assert contention.notes([CONTENTION | {'throttled': 0, 'waited': 0, 'stolen': None}], None) == []
    # Of 2 x 10 s; what waits because of the quota does not wait because of others.
    assert contention.causes([CONTENTION]) == pytest.approx(
        {'a cgroup that throttles': 0.3, 'other processes': 0.05, 'the hypervisor': 0.025})
    assert contention.time_given([CONTENTION]) == pytest.approx(0.625)
    assert contention.time_left_by_quota([CONTENTION]) == pytest.approx(0.7)
    assert contention.time_left_by_quota([CONTENTION | {'throttled': None}]) is None
    assert contention.notes([CONTENTION], {'cpu_quota': 1.2}) == [
        "a cgroup's quota is 1.2 CPUs for 2 threads", 'a cgroup that throttles took 30 % of the time of the threads',
        'other processes took 5 % of the time of a thread', 'the hypervisor took 2 % of the time of the threads']


def test_programs_tell_what_time_they_lost(programs):
    '''Beside a neighbour on the CPU of one of their threads.'''
    with subprocess.Popen(['taskset', '-c', str(CPUS[-1]), sys.executable, '-c', 'print(flush=True)\nwhile True: pass'], stdout=subprocess.PIPE) as neighbour:
        try:
            neighbour.stdout.readline()
            done = programs.run('triad', '--size', 1000, '--samples', 10, '--min-time', 0.1, '--threads', len(CPUS[-2:]), on=CPUS[-2:], OMP_PROC_BIND='true')
        finally:
            neighbour.kill()
    lost, = records.parse(done.text).contention
    assert lost['threads'] == len(CPUS[-2:]) and lost['elapsed'] > 0.5 and 0.1 * lost['elapsed'] < lost['waited_most'] < lost['elapsed']
    assert lost['waited_most'] <= lost['waited'] and contention.time_given([lost]) < 0.9
    assert any(note.startswith('other processes took') for note in contention.notes([lost], None))


@pytest.mark.skipif(len(CPUS) < 4, reason='fewer than four CPUs')
def test_programs_tell_what_time_threads_lost_that_have_ended(programs):
    '''GCC's runtime ends those that a region of fewer threads does not need: a neighbour beside the last of four is seen all the same.'''
    with subprocess.Popen(['taskset', '-c', str(CPUS[3]), sys.executable, '-c', 'print(flush=True)\nwhile True: pass'], stdout=subprocess.PIPE) as neighbour:
        try:
            neighbour.stdout.readline()
            done = programs.run('triad', '--variants', 'plain,openmp', '--size', 100000, '--samples', 10, '--threads', '1,2,4', on=CPUS[:4],
                                OMP_PROC_BIND='true', OMP_PLACES=','.join(f'{{{cpu}}}' for cpu in CPUS[:4]))
        finally:
            neighbour.kill()
    lost, = records.parse(done.text).contention
    assert lost['waited_most'] > 0.1 * lost['elapsed']


# --- the page ----------------------------------------------------------------------------------------------------

def findings(frame, **more):
    nodes = {name: state.Node(name, 'h', phase=state.OVER, state='measured') for name in frame['node'].unique()}
    ranked = ranking.rank(frame)
    odd = confirm.confirm(ranked.outliers(), ranked, frame.clear())
    causes = {node: ['a <cause>'] for node in odd['node']}
    return outliers.Findings('made', nodes | more, frame, ranked, odd, causes, [{}])


def test_what_cannot_be_ranked_is_no_pass():
    two = findings(table(numbered(100, 60)))
    assert (two.named, two.exit_status) == ([], 2)
    assert 'cannot be ranked: no metric of 3 nodes of one kind or more' in text.headline(two)
    assert 'cannot rank n[1-2] (p, gnu): 2 of the kind alike, 3 are needed' in list(text.remarks(two)) and two.unjudged == {}
    divided = findings(table(numbered(100, 100, 100, 60, 60, 60, 60)))
    assert (divided.named, divided.exit_status) == ([], 1)
    assert text.headline(divided).endswith('no outliers; by 1 of the metrics the nodes are of two sorts')
    told = 'speed one flops: no node stands out, but 4 and 3 nodes are of two sorts, 66.7 % apart'
    assert told in list(text.remarks(divided))


def test_a_node_of_a_kind_of_its_own_is_not_passed_over(tmp_path, monkeypatch):
    '''One with a memory module less is of another kind.'''
    found = findings(pl.concat([table(numbered(100, 100, 100)), table({'n4': 90}, kind='less memory'), table({'n4': 0.0}, 'latency', subsystem='L1')]))
    monkeypatch.setattr(outliers, 'look', lambda *_: found)
    done = CliRunner().invoke(app, ['rank', str(tmp_path)])
    assert done.exit_code == 3 and 'not judged, since fewer than 3 nodes are peers in it: n4: core, rates and times\n' in done.stdout, done.output
    page = (tmp_path / 'index.html').read_text()
    assert '<li>not judged, since fewer than 3 nodes are peers in it: n4: core, rates and times</li>' in page and '<p class="alarm">sweep made: ' in page
    assert 'None, as far as nodes could be judged.' in page
    assert text.headline(found).endswith('3 ranked by 1 metrics: no outliers; 1 could not be ranked')
    assert 'cannot rank n4 (p, gnu): 1 of the kind less memory, 3 are needed' in list(text.remarks(found))


def test_processors_of_one_name_are_of_several_kinds():
    '''Hypervisors call several generations by one name.'''
    def node(name, model):
        machine = {'cpu_model': 'AMD EPYC', 'cpuid': {'vendor': 'AuthenticAMD', 'family': 25, 'model': model, 'stepping': 1}, 'memory_kib': 2**24}
        return types.SimpleNamespace(name=name, machine=results._machine(pl.DataFrame({'detail': [json.dumps({'machine': machine})]}), 2))
    found = results.kinds([node('n1', 1), node('n2', 17)])
    assert found == {'n1': 'AMD EPYC [AuthenticAMD 25/1], 2 CPUs, 16 GiB', 'n2': 'AMD EPYC [AuthenticAMD 25/17], 2 CPUs, 16 GiB'}


def swept(hardware='192|2:48:2|epyc', **sizes):
    '''Nodes as a sweep has them: node -> CPU model, CPUs, GiB.'''
    return {name: state.Node(name, hardware, phase=state.OVER, state='measured', machine={'model': model, 'cpus': cpus, 'kib': int(gib * 2**20)})
            for name, (model, cpus, gib) in sizes.items()}


WHOLE = swept(**{f'n{number}': ('EPYC', 192, 755 - number / 10) for number in range(1, 8)})


@pytest.mark.slow
@pytest.mark.parametrize('one, said', [
    (('EPYC', 192, 724), '724 GiB, they have 755 GiB'), (('EPYC', 96, 377), '96 CPUs, 377 GiB, they have 192 CPUs, 755 GiB'),
    (('EPYC', 191, 755), '191 CPUs, they have 192 CPUs'),
    (('EPYC', 192, 1511), None), (('EPYC', 200, 754), None), (('Xeon', 96, 377), None)])       # more, or another kind
def test_a_node_that_has_lost_a_part_is_no_kind_of_its_own(one, said):
    found = findings(table(dict.fromkeys(WHOLE, 100)), **WHOLE, **swept(n8=one))
    assert found.having_less == ({'n8': said} if said else {}) and found.exit_status == (1 if said else 0)
    assert (f'n8 has less than the nodes that are alike by the configuration of Slurm: {said}: look' in '\n'.join(text.remarks(found))) == bool(said)
    assert ('no outliers; 1 node with fewer CPUs or less memory than peers; 1 could not be ranked' in sweep_page.page(found)) == bool(said)


@pytest.mark.parametrize('others', [
    swept('192|2:48:2|thin', n8=('EPYC', 192, 724)),                                            # Slurm knows of it
    swept(n8=('EPYC', 192, 377), n9=('EPYC', 192, 377), m1=('EPYC', 192, 377))])                # enough to be ranked among themselves
def test_nodes_that_are_meant_to_have_less_are_no_alarm(others):
    assert findings(table(dict.fromkeys(WHOLE, 100)), **WHOLE, **others).having_less == {}


@pytest.mark.slow
@pytest.mark.parametrize('gib, less, more', [
    (724, True, None), (566, False, None),      # of 24 modules one; what is bought with a quarter less
    (724, True, ('EPYC', 192, 377)), (724, True, ('EPYC 2', 192, 755))])        # beside more nodes with less memory, of another model
def test_few_nodes_that_lack_a_module_are_no_kind_of_their_own_and_those_of_a_larger_share_are(gib, less, more):
    whole = swept(**{f'n{number}': ('EPYC', 192, 755) for number in range(1, 13)}, **{f'o{number}': more for number in range(20) if more})
    for lost, told in ((3, less), (6, False)):
        other = swept(**{f'm{number}': ('EPYC', 192, gib) for number in range(lost)})
        assert set(findings(table(dict.fromkeys([*whole, *other], 100)), **whole, **other).having_less) == (set(other) if told else set())


def test_nodes_are_drained_by_what_is_worst_on_them():
    slow = pl.concat([table(numbered(*[100] * 8, 60, 50), 'flops'), table(numbered(*[10] * 7, 30, 10, 10), 'latency')])
    assert findings(slow).drain == [
        "scontrol update nodename=n8 state=drain 'reason=plumbline made: latency +200 % against peers'",
        "scontrol update 'nodename=n[9-10]' state=drain 'reason=plumbline made: flops -50 .. -40 % against peers'"]
    gib = 2**20     # KiB
    assert results.has_less(63 * 64 * gib, 64 * 64 * gib) and not results.has_less(64 * 64 * gib - 3 * gib, 64 * 64 * gib)
    assert results.has_less(31 * gib, 32 * gib) and not results.has_less(31.5 * gib, 32 * gib)
    node = {'memory': 128 * 128 * 2**30}
    assert topology_file.memory_differs(node, {'memory': 127 * 128 * 2**30}) and not topology_file.memory_differs(node, node)
    assert findings(table(numbered(100, 100)), n1=WHOLE['n1'], n2=WHOLE['n2'], **swept(n8=('EPYC', 192, 724))).having_less == {}


def test_the_page_opens_offline_and_escapes(tmp_path):
    down = state.Node('n5', 'h', phase=state.OVER, state='down', reason='<b>fan</b>')
    found = findings(among(table(numbered(100, 100, 60, 100)), noise=0.001), n5=down)
    page = sweep_page.write(found, tmp_path).read_text()
    assert "default-src 'none'" in page and '<b>fan' not in page and '<cause>' not in page
    assert 'scontrol update nodename=n3 state=drain &#39;reason=plumbline made: flops -40 % against peers&#39;' in page
    for data in re.findall(r'<script type="application/json">(.*?)</script>', page, re.S):
        json.loads(data)
    assert text.headline(found) == 'sweep made: 4 of 5 nodes measured, 4 ranked by 13 metrics: 1 outlier'


def test_the_map_has_each_node_in_its_column_and_nothing_where_nothing_was_measured():
    found = findings(pl.concat([table(numbered(100, 100, 60, 100, 101)), table(numbered(5, 5, 5, 15), 'latency'), table(numbered(1, 1), 'entries')]))
    (_, caption, heat), (_, _, strips) = deviations.figures(found)
    assert caption.startswith('5 nodes by 2 metrics') and list(heat.data[0].x) == ['n1', 'n2', 'n3', 'n4', 'n5']
    rows = {name.rpartition(' ')[2]: row for name, row in zip(heat.data[0].y, heat.data[0].z)}
    bad = {name: column(found.ranked.rows.filter(pl.col('name') == name), 'bad') for name in rows}
    assert set(rows) == {'flops', 'latency'} and math.isnan(rows['latency'][4])
    assert all(rows[name][int(node[1:]) - 1] == pytest.approx(np.clip(value, -10, 10)) for name in rows for node, value in bad[name].items())
    drawn_off = {(node, round(float(off), 3)) for part in strips.data for node, off in zip(part.customdata, part.x) if not math.isnan(off)}
    assert drawn_off == {(node, round(float(np.float32(100 * off)), 3)) for node, off in found.ranked.rows.select('node', 'off').iter_rows()}


# --- on a cluster ------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    with cluster_in(tmp_path_factory.mktemp('cluster')) as running:     # four nodes
        yield running


class Sweeps(rfm.Workplace):
    '''Sweeps of the made-up check; ``story`` says of which nodes it is slow.'''

    def __init__(self, folder, running, story=''):
        super().__init__(folder, CANNED_SCHEDULER='squeue', CANNED_ACCESS='--export=ALL', SWEPT=story, **running.variables)

    def sweep(self, *words):
        return self.plumbline('sweep', '-C', self.config, '--partition', 'made:cpu', '-c', SWEPT, '--poll', '0.3s',
                              '--pause', '0s', *words)

    @property
    def folder_of_sweep(self):
        folder, = (self.folder / 'reports/sweeps').iterdir()
        return folder


def test_equal_nodes_are_in_true(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster)
    done = place.sweep()
    assert done.code == 0, done.out
    assert '4 of 4 nodes measured, 4 ranked by 10 metrics: no outliers' in done.out
    assert not (place.folder_of_sweep / 'again').exists() and 'sweeps before it' not in done.out
    assert place.sweep().line('would have seen').endswith('sweeps before it that say how nodes scatter, too: 1')


def test_a_node_is_named_once_it_was_slow_twice(cluster, tmp_path):
    place = Sweeps(tmp_path, cluster, 'n1=relapses,n2=recovers,n4=slow')
    done = place.sweep('--racks', r'n([0-9])')
    assert done.code == 1, done.out
    assert done.line('outliers: ') == 'outliers: n4'
    assert done.line('at first') == 'outliers at first, not when measured again: n2'
    assert done.line('not measured again').startswith('not measured again: n1: failed: job FAILED: ReFrame: Killed')
    assert re.search(r'^ n4 +Swept +bandwidth.plain +60.0 MB/s +\d+ MB/s .* yes: 60.0 MB/s', done.out, re.M)
    known = place.plumbline('nodes').out
    assert re.search(r'^ ?n4 .* outlier +never +1 of 1 ', known, re.M) and all(f'in doubt: {doubt}\n' in known for doubt in ('n1: its job failed', 'n4: outlier')), known
    name = place.folder_of_sweep.name
    again = place.plumbline('rank', name)
    assert (again.code, again.line('outliers: ')) == (1, 'outliers: n4')
    assert 'scontrol update nodename=n4 state=drain' in (place.folder_of_sweep / 'index.html').read_text()
    refused = place.plumbline('rank', name, '--racks', 'n(')
    assert refused.code == 2 and refused.out.startswith("plumbline: racks 'n(': not a regular expression")
    assert re.match('plumbline: .*: no sweep', place.plumbline('rank', 'none').out)
    # Before anything is measured.
    assert 'plumbline: no.conf: cannot be read as a topology.conf' in place.sweep('--switches', 'no.conf').out
    assert len(list((place.folder / 'reports/sweeps').iterdir())) == 1


@pytest.mark.parametrize('own, status, ranked, expected', [
    ([0] * 4, 0, 0, 0), ([0] * 4, 0, 1, 1), ([0, 0, 0, 3], 0, 0, 3), ([0, 0, 0, 3], 0, 1, 1), ([0, 3], 1, 0, 1), ([0] * 3, 0, 2, 3),
    ([0] * 2, 0, 2, 0), ([], 2, None, 2), ([0] * 4, 0, 3, 3), ([0] * 4, 1, 3, 1)])
def test_a_sweep_that_could_judge_nothing_does_not_end_with_0(tmp_path, own, status, ranked, expected):
    nodes = {f'n{number}': state.Node(f'n{number}', '', state.OVER, state=state.MEASURED, status=one) for number, one in enumerate(own)}
    nodes['down'] = state.Node('down', '', state.OVER, state='down', status=3)
    assert command._status(types.SimpleNamespace(nodes=nodes, folder=tmp_path), status, ranked) == expected
