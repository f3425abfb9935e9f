'''The terminal's tables of several systems beside each other.'''

from rich.text import Text

from plumbline.model import quantity
from plumbline.report.grid import grid


def render(found, console):
    '''Print a :class:`plumbline.comparison.systems.Comparison`.'''
    for system, (processor, sessions) in found.about.items():
        alone = f'; {quantity.several(found.alone[system], "metric")} that no other has' if found.alone[system] else ''
        console.print(f"{system}: {processor}; {quantity.several(len(sessions), 'session')} ({', '.join(sessions)}){alone}",
                      highlight=False, markup=False)
    console.print(_table(found, ['subsystem', 'metrics'], _mean_rows(found)))
    console.print(_table(found, ['check', 'metric', 'best'], _rows(found)))
    console.print('1 is the best system of a line, and 0.5 half as fast; = where the intervals of a system and of the best one overlap. In the '
                  'first table: geometric means of the metrics that all systems have. Of each system its best partition and environment count.',
                  highlight=False)


def _table(found, names, rows):
    return grid([*names, *found.systems], rows, right=('metrics', 'best', *found.systems), padding=(0, 1))


def _mean_rows(found):
    for part, (count, means) in found.means.items():
        yield part, str(count), *(_relative(means[system], system, max(means, key=means.get)) for system in found.systems)


def _rows(found):
    for row in found.rows:
        best = row.values[row.best]
        yield (row.check, row.metric, quantity.amount(best.value, row.unit),
               *(_relative(row.relative(system), system, row.best, row.as_good(system)) if system in row.values else Text('-', 'dim')
                 for system in found.systems))


def _relative(value, system, best, as_good=False):
    equal = '=' if as_good and system != best else ''
    return Text(f'{equal}{value:.2f}', 'bold' if system == best else '')
