'''Several systems beside each other: what each reaches of the best.'''

import polars as pl
import pytest
from typer.testing import CliRunner

import sample_session as sample
from plumbline.cli import app
from plumbline.comparison import sides, systems
from plumbline.errors import PlumblineError


def rate(name, value, spread=0.02, unit='MB/s'):
    return sample.metric(name, value, unit, reference=None, spread=spread)


def session(*cases, processor='a processor'):
    return sample.frame(*cases).with_columns(processor=pl.lit(processor))


def triad(value, threads='all', **where):
    return sample.case('triad_memory', [rate('bandwidth.plain', value), sample.metric('of_parts.plain', 0.9)], threads=threads, **where)


def found(**frames):
    return systems.compare({name: frames_of if isinstance(frames_of, list) else [frames_of] for name, frames_of in frames.items()})


def test_each_value_is_what_it_is_of_the_best():
    old = session(triad(100.0), sample.case('latency', [rate('latency.memory.huge', 120e-3, unit='us')], threads='one'), processor='old one')
    new = session(triad(250.0), sample.case('latency', [rate('latency.memory.huge', 150e-3, unit='us')], threads='one'), processor='new one')
    both = found(old=old, new=new)
    assert {(row.check, row.metric): (row.best, row.relative('old'), row.relative('new')) for row in both.rows} == {
        ('triad_memory %threads=all', 'bandwidth.plain'): ('new', pytest.approx(0.4), 1.0),       # more is better
        ('latency %threads=one', 'latency.memory.huge'): ('old', 1.0, pytest.approx(0.8))}        # less is
    assert {name: about[0] for name, about in both.about.items()} == {'old': 'old one', 'new': 'new one'}
    old = [session(triad(90.0), triad(value, environ='clang')) for value in (100.0, 130.0, 120.0)]
    row, = found(old=old, new=session(triad(100.0))).rows
    assert (row.values['old'].value, row.values['old'].environ, row.values['new'].environ) == (120.0, 'clang', 'gnu')


def test_the_best_partition_of_a_system_counts():
    a = session(triad(100.0, partition='old'), triad(300.0, partition='new'), *(
        sample.case('app_scaling', [rate(f'flops.{count}', 10.0 * count, unit='Mflop/s') for count in counts], partition=partition)
        for partition, counts in (('old', (1, 2)), ('new', (1, 2, 4)))))
    both = found(a=a, b=session(triad(250.0), sample.case('app_scaling', [rate('flops.1', 9.0, unit='Mflop/s'), rate('flops.2', 18.0, unit='Mflop/s')])))
    row, *scaling = both.rows
    assert (row.best, row.values['a'].value, row.values['a'].environ, row.values['b'].environ) == ('a', 300.0, 'new:gnu', 'gnu')
    assert {one.metric: one.values['a'].value for one in scaling} == {'flops.1': 10.0, 'flops.all': 40.0}
    # Two CPUs and four: what both have of one and of two, and what all of each reach.
    small, large = (session(sample.case('app_scaling', [rate(f'flops.{count}', count * each, unit='Mflop/s') for count in counts]))
                    for counts, each in (((1, 2), 10.0), ((1, 2, 4), 9.0)))
    both = found(small=small, large=large)
    assert {row.metric: (row.values['small'].value, row.values['large'].value) for row in both.rows} == {
        'flops.1': (10.0, 9.0), 'flops.all': (20.0, 36.0)}
    assert both.alone == {'small': 0, 'large': 1}


def test_what_is_in_another_unit_is_not_in_common():
    a, b, c = (session(sample.case('StreamTest', [rate('bandwidth.copy', value, unit=unit)]))
               for value, unit in ((100.0, 'GB/s'), (90000.0, 'MB/s'), (45000.0, 'MB/s')))
    all_three = found(a=a, b=b, c=c)
    row, = all_three.rows
    assert (row.unit, {*row.values}, row.relative('c')) == ('MB/s', {'b', 'c'}, 0.5) and all_three.alone == {'a': 1, 'b': 0, 'c': 0}
    with pytest.raises(PlumblineError, match='no rate or time in common'):
        found(a=a, b=b)


def test_the_mean_of_a_subsystem_is_of_what_all_have():
    def of(plain, nt):
        metrics = [rate('bandwidth.plain', plain)] + ([rate('bandwidth.nt', nt)] if nt else [])
        return session(sample.case('triad_memory', metrics, threads='all'))
    both = found(a=of(100.0, 400.0), b=of(200.0, 100.0))
    assert both.means == {'memory, all threads': (2, {'a': pytest.approx(0.5**0.5), 'b': pytest.approx(0.5)})}
    three = found(a=of(100.0, 400.0), b=of(200.0, 100.0), c=of(50.0, None))
    assert three.means == {'memory, all threads': (1, {'a': 0.5, 'b': 1.0, 'c': 0.25})} and len(three.rows) == 2
    row, = found(a=session(triad(100.0)), b=session(triad(98.0)), c=session(triad(90.0))).rows
    assert (row.best, row.as_good('b'), row.as_good('c')) == ('a', True, False)
    odd = session(sample.case('triad_memory', [rate('bandwidth.plain', float('nan')), rate('bandwidth.nt', 0.0), sample.metric('of_parts.plain', 0.9)]))
    with pytest.raises(PlumblineError, match='^a, b: no rate or time in common; run the same checks on all of them$'):
        found(a=odd, b=session(triad(100.0)))
    with pytest.raises(PlumblineError, match='^a: name two systems at least'):
        found(a=odd)


def test_the_command(tmp_path, monkeypatch):
    frames = {'x': session(triad(100.0), processor='one'), 'y': session(triad(50.0), processor='other'), 'z': session(triad(99.0), processor='one')}
    monkeypatch.setattr(sides, 'load', lambda source, root: frames[source])
    done = CliRunner().invoke(app, ['systems', 'old=y', 'x', 'sample=z', '--output', str(tmp_path / 'values.csv')])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines() if 'bandwidth.plain' in line]
    assert lines == [['triad_memory', '%threads=all', 'bandwidth.plain', '99.5', 'MB/s', '0.50', '1.00']]
    rows = pl.read_csv(tmp_path / 'values.csv').rows_by_key('system', named=True, unique=True)
    assert rows['old']['relative'] == pytest.approx(50 / 99.5) and not rows['old']['as_good_as_the_best'] and rows['sample']['environ'] == 'gnu'
    done = CliRunner().invoke(app, ['systems', 'x', 'y'])
    assert done.exit_code == 2 or done.exception
    with pytest.raises(PlumblineError, match=r'^sample has several processors \(one, other\): tell its systems apart, for example old=x$'):
        sides.by_system(['x', 'y'], None)
