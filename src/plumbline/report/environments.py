"""Environments compared: what each kernel gets of the best environment's value, as heat maps.

The question is which compiler, or which MPI, loses what: a cell counts as lost only where noise does not explain it, and the
widths of the compiled loops are told where they do.
"""

from dataclasses import dataclass

from plumbline.model import contention, parameters, quantity, registry
from plumbline.report import drawing
from plumbline.report.readings import grouped, limit_of
from plumbline.system import codegen

#: Rows of a heat map: more than a reader looks at hide what is lost.
MOST_ROWS = 40

#: Only metrics of speed: ratios to a limit have their own place.
COMPARED = {'bandwidth': 'Bandwidth', 'flops': 'Performance', 'time': 'Time', 'latency': 'Latency'}

LOST = [[0, '#ffffff'], [0.3, '#fbd5b5'], [1, '#d55e00']]

#: Colours do not tell losses beyond this ratio apart.
DEEPEST = 0.25


@dataclass(frozen=True)
class Cell:
    '''A value of one environment, against the best of its row.

    :attr ratio: 1 for the best; how fast this environment is otherwise, below 1.
    :attr lost: whether the difference is more than noise: the intervals of the two medians are :data:`codegen.EFFECT` apart.
        Those of ``of_limit``, where both have it: its samples are paired with what the machine gave in the same round.  Else
        those of the metric, after how much slower its process found the machine, and how long it waited for others.
    :attr width: SIMD width of the loop; None where it is not known.
    '''

    row: dict
    ratio: float
    lost: bool
    width: str | None


def figures(details):
    '''(title, caption, plotly figure) for each metric and each group of environments that have something to compare.

    :arg details: results, as of :func:`page.results`.
    '''
    for metric, title in COMPARED.items():
        rows = _rows(details, metric)
        for environs in _groups(rows):
            chosen = {label: cells for label, cells in rows.items() if set(cells) <= set(environs)}
            yield f"{title} of {', '.join(environs)}, compared", _caption(chosen, environs), _heat_map(chosen, environs)


def _rows(details, metric):
    """Row's label -> environment -> :class:`Cell`, of what several environments measured on the same host."""
    found: dict[tuple, dict[str, tuple]] = {}
    for detail in details:
        for row in detail['metrics']:
            if row['metric'] == metric and quantity.known(row['value']) and row['value'] > 0:
                key = detail['partition'], detail['hostname'], detail['test'], row['name']
                found.setdefault(key, {})[detail['environ']] = row, _width(detail, row), detail
    places = {key[:2] for key in found}
    several = {key: entries for key, entries in found.items() if len(entries) > 1}
    return {_label(key, entries, len(places) > 1): _cells(entries) for key, entries in several.items()}


def _label(key, entries, placed):
    row, _, detail = next(iter(entries.values()))
    own = (value for name, value in parameters.of_row(detail).items() if name not in parameters.OF_RUNS)
    words = [detail['check'], *own, *parameters.added(detail), row['subject'] or '']
    return ' '.join(filter(None, [*words, *(key[:2] if placed else ())]))


def _width(detail, row):
    """What was compiled: a metric's subject is a variant, a dot, and what it is about."""
    parts = (row['subject'] or '').split('.')
    return next((width for part in parts if (width := detail.get('simd_width', {}).get(part))), None)


def _cells(entries):
    more = registry.better(next(iter(entries.values()))[0]['metric']) == registry.MORE
    pick = max if more else min
    best, _, best_detail = pick(entries.values(), key=lambda entry: entry[0]['value'])
    return {
        environ: Cell(row, row['value'] / best['value'] if more else best['value'] / row['value'],
                      row is not best and _lost(row, detail, best, best_detail, more), width)
        for environ, (row, width, detail) in entries.items()
    }


def _lost(row, detail, best, best_detail, more):
    paired = [
        next((one for one in of['metrics'] if one['metric'] == 'of_limit' and one['subject'] == row['subject']), None)
        for of in (detail, best_detail)
    ]
    if all(paired):
        own, fastest = paired
        return _apart(own, fastest, True, 1)
    return _apart(row, best, more, _explained(detail, best_detail))


def _apart(row, best, more, explained):
    """Whether the intervals are further apart than an effect of the code's place and ``explained`` together."""
    bounds = [value for one in (row, best) for value in (one['interval_low'], one['interval_high'])]
    if not all(map(quantity.known, bounds)):
        return False
    low, high, best_low, best_high = bounds
    return high * codegen.EFFECT * explained < best_low if more else low > best_high * codegen.EFFECT * explained


def _explained(detail, best_detail):
    '''How many times slower a process may have been for reasons that are not its own.'''
    paces, best_paces = _paces(detail), _paces(best_detail)
    slower = [best_paces[key] / paces[key] for key in paces if key in best_paces]
    given = contention.time_given(detail.get('contention') or [])
    return max([1, *slower, 1 if given is None else 1 / max(given, 1e-3)])


def _paces(detail):
    '''(level, threads) -> rate of the best limit stream that ran in the same process.'''
    records = [record for record in detail.get('records') or [] if record['role'] == 'limit' and record['seconds']]
    streams = grouped(records, lambda record: (record['level'], record['threads']))
    return {key: best[0] for key, members in streams if (best := limit_of(members))}


def _groups(rows):
    '''Lists of environments that are compared with each other, in the order of their coming.'''
    groups: list[list[str]] = []
    for cells in rows.values():
        touched = [group for group in groups if set(group) & set(cells)]
        groups = [group for group in groups if group not in touched]
        groups.append(list(dict.fromkeys([name for group in touched for name in group] + list(cells))))
    return groups


def _heat_map(rows, environs):
    # What is lost first, the worst at the top.
    depth = lambda item: min((cell.ratio for cell in item[1].values() if cell.lost), default=2)
    shown = dict(sorted(rows.items(), key=depth)[:MOST_ROWS])
    table = [[cells.get(environ) for environ in environs] for cells in shown.values()]
    of_each = lambda function: [[function(cell) for cell in line] for line in table]
    names = [drawing.plain_text(label) for label in shown]
    figure = drawing.empty(110 + 24 * len(shown))
    figure.add_heatmap(x=[drawing.plain_text(environ) for environ in environs], y=names,
                       z=of_each(lambda cell: None if cell is None else round(1 - max(cell.ratio, DEEPEST), 3) if cell.lost else 0), zmin=0,
                       zmax=1 - DEEPEST, colorscale=LOST, showscale=False, xgap=2, ygap=2, text=of_each(_text), texttemplate='%{text}',
                       customdata=of_each(_hover), hovertemplate='%{y}<br>%{x}: %{customdata}<extra></extra>', hoverongaps=False)
    figure.update_yaxes(autorange='reversed', ticks='', showgrid=False, showline=False)
    figure.update_xaxes(side='top', ticks='', showgrid=False, showline=False)
    return figure


def _text(cell):
    if cell is None:
        return ''
    return f'<b>{cell.ratio:.2f}</b>' if cell.lost else '1' if cell.ratio == 1 else f'({cell.ratio:.2f})'


def _hover(cell):
    if cell is None:
        return ''
    row = cell.row
    width = f'; SIMD width: {cell.width}' if cell.width else ''
    value, spread = quantity.amount(row['value'], row['unit']), quantity.percent(row['spread'])
    return drawing.plain_text(f'{value}, spread {spread}{width}')


def _caption(rows, environs):
    text = (
        'How fast each environment is, the fastest of a row being 1. Bold on colour: slower by more than noise. That is by more than '
        f"{codegen.EFFECT:g} times between the intervals of the medians, of what was reached of the machine's own limit where that was measured in "
        'the same process, else after the time that the process had to wait for others. In brackets: within noise. '
    )
    for environ in environs:
        cells = [row[environ] for row in rows.values() if environ in row]
        text += f'{environ} is slower in {sum(cell.lost for cell in cells)} of {len(cells)}. '
    if found := _vectorised_less(rows):
        text += f"Smaller SIMD width where it is slower: {'; '.join(found)}. "
    if len(rows) > MOST_ROWS:
        text += f'Not drawn: {len(rows) - MOST_ROWS} of {len(rows)} rows, those that lose least.'
    return text.strip()


def _vectorised_less(rows):
    found = []
    for label, cells in rows.items():
        best = max(cells, key=lambda environ: cells[environ].ratio)
        found += [
            f'{label} ({environ}: {cell.width}, {best}: {cells[best].width}, {cell.ratio:.2f})'
            for environ, cell in cells.items()
            if cell.lost and cell.width and cells[best].width and codegen.bits(cell.width) < codegen.bits(cells[best].width)
        ]
    return found
