'''Questions to the simulation: how much of the time is communication, and what does more latency cost.'''

import functools
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from ruamel.yaml import YAML

from plumbline.errors import PlumblineError
from plumbline.simulation import program

_PUBLISHED = Path(__file__).parent.parent / 'data' / 'latency_sensitivity.yaml'

_MOST_OVERHEAD = 1e4        # us


@functools.cache
def _all_published():
    return YAML(typ='safe', pure=True).load(_PUBLISHED.read_text(encoding='utf-8'))


def published(application):
    '''The source's table of an application.

    :returns: data frame ``processes``, ``latency`` (us), ``published`` (per cent), a row for each cell.
    :raises PlumblineError: where there is no table of it.
    '''
    tables = _all_published()
    if application not in tables:
        raise PlumblineError(f"{application}: no table of it was published; there are {', '.join(sorted(tables))}")
    table = tables[application]
    return pl.DataFrame([{'processes': processes, 'latency': float(latency), 'published': float(percent)}
                         for processes, row in table['percent'].items()
                         for latency, percent in zip(table['latencies'], row, strict=True)])


def source_of(application):
    '''Where the table of an application is from.'''
    return _all_published()[application]['source']


def table(simulated, network, application, cells, folder, size='A', iterations=None, side_by_side=None):
    '''Per cent of time in communication for pairs of processes and latency.

    :arg simulated: the program.
    :arg cells: list of (processes, latency in us).
    :arg folder: for what SimGrid is given.
    :returns: data frame ``processes``, ``latency``, ``percent``, ``seconds`` (simulated), a row for each cell.
    '''
    cases = [(network.changed(latency=float(latency)), application, processes) for processes, latency in cells]
    found = program.run_all(simulated, cases, folder, size, iterations, side_by_side)
    return pl.DataFrame([{'processes': one.processes, 'latency': one.latency, 'percent': one.percent, 'seconds': one.seconds}
                         for one in found])


def wide(cells, value='percent'):
    '''A table to read: processes down, latencies across.'''
    return cells.pivot(on='latency', index='processes', values=value)


def root(function, target, least, most, tolerance):
    '''x with function(x) = target, for a function that grows and is costly.

    :returns: x, whose value is within ``tolerance`` of the target; ``least`` where the function is above it there already.
    :raises ValueError: where it is below the target at ``most`` still.
    '''
    from scipy import optimize  # here: importing it takes longer than most answers

    @functools.cache
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


def calibrate(simulated, network, application, processes, latency, target, folder, size='A', iterations=None):
    '''The overhead per message with which one cell comes out as it was measured.

    The compute rate stays that of the network file.

    :arg target: per cent of time in communication.
    :returns: :class:`Calibration`; overhead 0 where network and load imbalance alone already give more than the target.
    :raises PlumblineError: where no overhead gives so much.
    '''
    network = network.changed(latency=float(latency))
    known: dict[float, float] = {}

    def percent(overhead):
        if overhead not in known:
            known[overhead] = program.run(simulated, network.changed(overhead=overhead), application, processes,
                                          Path(folder) / f'fit-{len(known)}', size, iterations).percent
        return known[overhead]

    try:
        overhead = root(percent, target, 0.0, _MOST_OVERHEAD, 0.005)
    except ValueError:
        raise PlumblineError(f'{application} on {processes} processes: no overhead per message up to {_MOST_OVERHEAD:g} us '
                             f'makes {target:g} per cent communication; look at the compute rate') from None
    return Calibration(overhead, processes, float(latency), float(target), percent(overhead))


def predict(simulated, network, application, folder, most=None, side_by_side=None):
    '''The published table, predicted from its first cell.

    The overhead per message is fitted to the fewest processes at the smallest latency; every other cell is a prediction.
    That cell is simulated once more with the others, and must come out as before to the last digit.

    :arg network: the source's machine.
    :arg most: leave out cells with more processes; :obj:`None` for none.
    :raises PlumblineError: where the same input has given another output.
    :returns: (:class:`Calibration`, data frame ``processes``, ``latency``, ``published``, ``percent``, ``seconds``,
        ``difference`` (points), ``fitted`` (whether this is the cell of the calibration)).
    '''
    cells = published(application)
    cells = cells.filter(pl.col('processes') <= (most or cells['processes'].max()))
    if cells.height < 2:
        raise PlumblineError(f'{application}: the published table begins at {published(application)["processes"].min()} '
                             f'processes; {most} is too few')
    processes, latency, target = cells.sort('processes', 'latency').row(0)
    fitted = calibrate(simulated, network, application, processes, latency, target, folder)
    found = table(simulated, network.changed(overhead=fitted.overhead), application,
                  cells.select('processes', 'latency').rows(), folder, side_by_side=side_by_side)
    first = (pl.col('processes') == processes) & (pl.col('latency') == latency)
    again = found.filter(first)['percent'].item()
    if again != fitted.percent:
        raise PlumblineError(f'{application} on {processes} processes: {fitted.percent!r} % at first, then {again!r} %: the '
                             'simulation is not deterministic; do not use its numbers')
    return fitted, cells.join(found, on=['processes', 'latency'], maintain_order='left').with_columns(
        difference=pl.col('percent') - pl.col('published'), fitted=first)


def mean_difference(predicted):
    '''Mean absolute difference of the cells that were predicted, points; the fitted one is not among them.'''
    return predicted.filter(~pl.col('fitted'))['difference'].abs().mean()


def falls(predicted, within=0.0):
    '''Where per cent falls although latency or processes grow: a list of lines, empty where all is monotone.

    :arg within: points by which it may.
    '''
    found = []
    for fixed, grows, unit in (('processes', 'latency', 'us'), ('latency', 'processes', 'processes')):
        for (kept,), group in predicted.sort(grows).group_by(fixed, maintain_order=True):
            values = group['percent'].to_list()
            found += [f'{fixed} {kept:g}: {b:.2f} % at {after:g} {unit}, {a:.2f} % at {before:g}'
                      for a, b, before, after in zip(values, values[1:], group[grows], group[grows][1:])
                      if b < a - within]
    return found


@dataclass(frozen=True)
class Cost:
    '''What another latency costs: ``before`` and ``after`` are :class:`program.Outcome`.'''
    before: program.Outcome
    after: program.Outcome

    @property
    def slowdown(self):
        '''Time after over time before.'''
        return self.after.seconds / self.before.seconds

    @property
    def lines(self):
        '''For people.'''
        def told(one):
            return (f'{one.seconds * 1e3:12.4f} ms, {one.percent:5.1f} % of it in communication  '
                    f'({one.latency:g} us latency)')
        one = self.before.printed
        return [f"{self.before.application} of size {self.before.size} on {self.before.processes} processes, "
                f"{one['iterations']} iterations: {one['messages']:.0f} messages of a process, "
                f"{one['bytes'] / max(one['messages'], 1):.0f} bytes in the mean",
                told(self.before), told(self.after),
                f'{self.after.latency - self.before.latency:+g} us: {100 * (self.slowdown - 1):+.2f} % of time']


def cost(simulated, network, application, processes, latency, folder, size='A', iterations=None):
    '''What it costs when the latency is another.

    :arg latency: us.
    :returns: :class:`Cost`.
    '''
    other = network.changed(latency=latency)
    return Cost(*program.run_all(simulated, [(network, application, processes), (other, application, processes)], folder, size,
                                 iterations))
