'''Questions to the simulation: how much of the time is communication, and what does more latency cost.'''

import math
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plumbline.errors import PlumblineError
from plumbline.model import quantity, sources
from plumbline.simulation import program

_MOST_OVERHEAD = 1e4        # us


#: Applications of which the per cent of time in communication was published, on a Cray T3E, and the table.
_TABLES = {'cg': 'anderson1997-table12-cg-latency', 'sp': 'anderson1997-table13-sp-latency'}


def published(application):
    '''The source's table of an application.

    :returns: data frame ``processes``, ``latency`` (us), ``published`` (per cent), a row for each cell.
    :raises PlumblineError: where there is no table of it.
    '''
    if application not in _TABLES:
        raise PlumblineError(f"{application}: no table of it was published; there are {', '.join(_TABLES)}")
    return pl.DataFrame([{'processes': int(processes), 'latency': float(column.removeprefix('lat')), 'published': float(percent)}
                         for processes, row in sources.table(_TABLES[application]).items()
                         for column, percent in row.items() if column.startswith('lat')])


def source_of(application):
    '''Where the table of an application is from.'''
    source, table, *_ = _TABLES[application].split('-')
    return f"{source}, {table.replace('table', 'table ')}"


def with_latency(network, latency):
    '''A network of this latency: every message takes it.'''
    return network.changed(latency=float(latency))


def with_delay(network, latency):
    '''The source's experiment: the network stays, and each of the application's communication routines waits once a call, so that its
    effective latency is this: for a message, or for a scalar sum.  See docs/howto/latency.rst.'''
    return network.changed(delay=float(latency) - network.latency, sum_delay=float(latency) - network.latency)


def table(simulated, network, application, cells, folder, size='A', iterations=None, slower=with_latency):
    '''Per cent of time in communication for pairs of processes and latency.

    :arg cells: list of (processes, latency in us).
    :arg slower: how the network comes to a latency.
    :arg folder: for what SimGrid is given.
    :returns: data frame ``processes``, ``latency``, ``percent``, ``seconds`` (simulated), ``messages`` and ``flops`` (of a process, mean), a row
        for each cell.
    '''
    cases = [(slower(network, latency), application, processes) for processes, latency in cells]
    found = program.run_all(simulated, cases, folder, size, iterations)
    return pl.DataFrame([{'processes': one.processes, 'latency': one.latency, 'percent': one.percent, 'seconds': one.seconds,
                          'messages': one.printed['messages'], 'flops': one.printed['flops']} for one in found])


def efficiency(cells):
    '''What :func:`table` gave, with the column ``efficiency``: of each latency the speedup against the fewest processes, over how many times
    as many there are; per cent.'''
    work = pl.col('seconds') * pl.col('processes')
    return cells.with_columns(efficiency=100 * work.sort_by('processes').first().over('latency') / work)


def root(function, target, least, most, tolerance):
    '''x with function(x) = target, for a function that grows, is costly, and remembers what it has given.

    :returns: x, whose value is within ``tolerance`` of the target; ``least`` where the function is above it there already.
    :raises ValueError: where it is below the target at ``most`` still.
    '''
    from scipy import optimize  # here: importing it takes longer than most answers

    def off(x):
        difference = function(x) - target
        return 0.0 if abs(difference) <= tolerance else difference      # near enough ends the search

    if off(least) >= 0:
        return least
    low, step = least, (most - least) / 1024
    while off(min(low + step, most)) < 0:       # the target is nearly always near
        if low + step >= most:
            raise ValueError('not reached')
        low, step = low + step, 4 * step
    return optimize.brentq(off, low, min(low + step, most))


@dataclass(frozen=True)
class Calibration:
    '''What was fitted, to what.

    :attr overhead: us of the processor per message and side; the one value that is fitted.
    :attr percent: what the simulation gives with it in the cell that it was fitted to.
    :attr target: what is published there.
    '''
    overhead: float
    processes: int
    latency: float
    target: float
    percent: float


def calibrate(simulated, network, application, processes, target, folder, size='A'):
    '''The overhead per message with which one cell comes out as it was measured.

    The compute rate stays that of the network file.

    :arg target: per cent of time in communication.
    :returns: :class:`Calibration`; overhead 0 where network and load imbalance alone already give more than the target.
    :raises PlumblineError: where no overhead gives so much.
    '''
    known: dict[float, float] = {}

    def percent(overhead):
        if overhead not in known:
            known[overhead] = program.run(simulated, network.changed(overhead=overhead), application, processes,
                                          Path(folder) / f'fit-{len(known)}', size).percent
        return known[overhead]

    try:
        overhead = root(percent, target, 0.0, _MOST_OVERHEAD, 0.005)
    except ValueError:
        raise PlumblineError(f'{application} on {processes} processes: no overhead per message up to {_MOST_OVERHEAD:g} us '
                             f'makes {target:g} per cent communication; look at the compute rate') from None
    return Calibration(overhead, processes, network.latency + network.delay, float(target), percent(overhead))


def predict(simulated, network, application, folder, most=None, slower=with_delay, runs=None):
    '''The published table, predicted from its first cell.

    The overhead per message is fitted to the fewest processes at the smallest latency; every other cell is a prediction.
    That cell is simulated once more with the others, and must come out as before to the last digit.

    :arg network: the source's machine.
    :arg most: leave out cells with more processes; :obj:`None` for none.
    :arg slower: how the network comes to the latency of a cell.
    :arg runs: the application to run, where it is not that of the table.
    :raises PlumblineError: where the same input has given another output.
    :returns: (:class:`Calibration`, data frame ``processes``, ``latency``, ``published``, ``percent``, ``seconds``,
        ``difference`` (points), ``fitted`` (whether this is the cell of the calibration), ``base_line`` (per cent)).
    '''
    cells = published(application)
    cells = cells.filter(pl.col('processes') <= (most or cells['processes'].max()))
    if cells.height < 2:
        raise PlumblineError(f'{application}: the published table begins at {published(application)["processes"].min()} processes; {most} is too few')
    processes, latency, target = cells.sort('processes', 'latency').row(0)
    fitted = calibrate(simulated, slower(network, latency), runs or application, processes, target, folder)
    found = beside(simulated, network.changed(overhead=fitted.overhead), cells, runs or application, folder, slower)
    again = found.filter('fitted')['percent'].item()
    if again != fitted.percent:
        raise PlumblineError(f'{application} on {processes} processes: {fitted.percent!r} % at first, then {again!r} %: the '
                             'simulation is not deterministic; do not use its numbers')
    return fitted, found


def beside(simulated, network, cells, application, folder, slower=with_delay):
    '''What is simulated beside each of the published ``cells``; as :func:`predict`, but with the overhead of ``network``.'''
    found = table(simulated, network, application, cells.select('processes', 'latency').rows(), folder, slower=slower)
    first = cells.sort('processes', 'latency').row(0)[:2]
    return cells.join(found, on=['processes', 'latency'], maintain_order='left').with_columns(
        difference=pl.col('percent') - pl.col('published'),
        fitted=(pl.col('processes') == first[0]) & (pl.col('latency') == first[1]),
        base_line=base_line(network.rate_of(application)))


def base_line(rate):
    '''Per cent, without a simulation: messages of a process x latency, over that and its flops / rate (Mflop/s).'''
    communication = pl.col('messages') * pl.col('latency')
    return 100 * communication / (communication + pl.col('flops') / rate)


def differences(predicted, value='percent'):
    '''Absolute differences of the cells that were predicted, points; the fitted one is not among them: (mean, largest).'''
    off = predicted.filter(~pl.col('fitted')).select((pl.col(value) - pl.col('published')).abs()).to_series()
    return off.mean(), off.max()


#: From how many processes on the growth is judged: with fewer it is published as 0 to 2 points, rounded to 1 and not monotone.
JUDGED_GROWTH = 64


def growth(predicted):
    '''What a table is about: by how much per cent grows from its least to its largest latency, predicted over published.

    :returns: dictionary processes -> ratio, of rows with :data:`JUDGED_GROWTH` processes and more.
    '''
    ends = predicted.sort('latency').group_by('processes', maintain_order=True).agg(
        [(pl.col(name).last() - pl.col(name).first()).alias(name) for name in ('percent', 'published')])
    return {row['processes']: row['percent'] / row['published'] for row in ends.sort('processes').iter_rows(named=True)
            if row['processes'] >= JUDGED_GROWTH}


def variations(network, application, overhead):
    '''What a prediction rests on, each number 20 % less and more, and other readings of the source.

    :arg overhead: us, fitted.
    :yields: (name, source of the number, values as text, list of keyword arguments for :func:`predict`; with ``network`` that of a number changed and
        the overhead fitted anew, with ``overhead`` that one and none fitted).
    '''
    rate = network.rate_of(application)
    yield ('compute rate', 'another table', f'{rate:g} Mflop/s', [{'network': network.changed(compute_rate=rate * by)} for by in _BY])
    for name in ('bandwidth', 'link_bandwidth', 'copy_rate'):
        value = getattr(network, name)
        if name != 'copy_rate' or (application == 'sp' and math.isfinite(value)):
            yield name.replace('_', ' '), 'the source', f'{value:g} MB/s', [{'network': network.changed(**{name: value * by})} for by in _BY]
    yield 'overhead', 'free, fitted', f'{overhead:.2f} us', [{'overhead': overhead * by} for by in _BY]
    if application == 'cg':
        yield ('scalar sums do not wait', 'free, a reading', 'or once a call',
               [{'slower': lambda one, latency: with_delay(one, latency).changed(sum_delay=0)}])
        yield 'every step of a sum waits', 'free, a reading', 'or once a call', [{'slower': with_latency}]
        yield 'row sums by doubling', 'free, the lengths', 'or halving', [{'runs': 'cg-doubling'}]


#: By which the numbers are changed.
_BY = (0.8, 1.2)


def sensitivity(simulated, network, application, folder, overhead):
    '''How far the prediction moves with what it rests on.

    :yields: (name, source, value, list of what :func:`predict` gives for each variation).
    '''
    for name, source, value, variants in variations(network, application, overhead):
        found = []
        for changes in variants:
            if 'overhead' in changes:
                found.append(beside(simulated, network.changed(**changes), published(application), application, folder))
            else:
                found.append(predict(simulated, changes.pop('network', network), application, folder, **changes)[1])
        yield name, source, value, found


def falls(predicted):
    '''Where per cent falls although latency or processes grow: a list of lines, empty where all is monotone.'''
    found = []
    for fixed, grows, unit in (('processes', 'latency', 'us'), ('latency', 'processes', 'processes')):
        for (kept,), group in predicted.sort(grows).group_by(fixed, maintain_order=True):
            values = group['percent'].to_list()
            found += [f'{fixed} {kept:g}: {b:.2f} % at {after:g} {unit}, {a:.2f} % at {before:g}'
                      for a, b, before, after in zip(values, values[1:], group[grows], group[grows][1:])
                      if b < a]
    return found


@dataclass(frozen=True)
class Cost:
    '''What another latency costs: ``before`` and ``after`` are :class:`program.Outcome`.'''
    before: program.Outcome
    after: program.Outcome

    @property
    def lines(self):
        '''For people.'''
        def told(one):
            return (f'{one.seconds * 1e3:12.4f} ms, {one.percent:5.1f} % of it in communication  ({one.latency:g} us latency)')
        one = self.before.printed
        return [f"{self.before.application} of size {self.before.size} on {self.before.processes} processes, {one['iterations']} iterations: "
                f"{one['messages']:.0f} messages of a process, {one['bytes'] / max(one['messages'], 1):.0f} bytes in the mean",
                told(self.before), told(self.after),
                f'{self.after.latency - self.before.latency:+g} us: {quantity.change(self.after.seconds / self.before.seconds - 1, 2)} of time']


def cost(simulated, network, application, processes, latency, folder, size='A', iterations=None):
    '''What it costs when the latency is another.

    :arg latency: us.
    :returns: :class:`Cost`.
    '''
    other = network.changed(latency=latency)
    return Cost(*program.run_all(simulated, [(network, application, processes), (other, application, processes)], folder, size, iterations))
