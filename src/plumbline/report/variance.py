'''What is explained of the variance: the terminal's table and a page; what stays unexplained is on top.'''

from plumbline.analysis.answers import some
from plumbline.analysis.variance import LEVELS, cv
from plumbline.model import quantity
from plumbline.report.grid import grid

#: Rows of the terminal's table, and bars of the figure; the page's table has all metrics.
MOST_ROWS, MOST_BARS = 40, 40

#: Columns of a terminal that has room for the numbers of samples; the page has them always.
WIDE = 140

#: Estimates from fewer degrees of freedom are marked: the true variance may be several times as large, or a part of it.
FEW = 10

#: Part of a bar -> (name, colour, pattern); what is unexplained stands first.
PARTS = {
    'round': ('unexplained: between samples', '#2b4a6b', ''),
    'process': ('unexplained: between processes', '#0072b2', ''),
    'session': ('unexplained: between sessions', '#e69f00', ''),
    'node': ('unexplained: between nodes', '#d55e00', ''),
    'within': ('explained by probes: between samples', '#d9d9d9', '/'),
    'between': ('explained by probes: between processes', '#f4f4f2', '\\'),
}

KEY = (f'CV in %, in brackets the share of the variance in %.  ~: from fewer than {FEW} degrees of freedom.  A dash: not measured, or not known; '
       'where a level has one member only in each of the level above, the level above holds its variance.  Of a probe: share of the variance that '
       'it explains, in %, between the samples of a process / between the means of processes.')


def worst_first(found):
    '''List of (key, analysis), the most unexplained first.'''
    return sorted(found.items(), key=lambda item: (-item[1].unexplained, item[0]))


def probes_of(found):
    '''Names of all probes that explain something of a metric, or could.'''
    return list(dict.fromkeys(name for analysis in found.values() for name in analysis.probes))


def labels(keys):
    '''Key -> text; partition and environment where there are several.'''
    several = [name for name in ('partition', 'environ') if len({getattr(key, name) for key in keys}) > 1]
    return {key: ' '.join([key.case, key.metric, *(getattr(key, name) for name in several)]) for key in keys}


def remarks(samples, found):
    '''Texts on what could not be told, and why.'''
    several = len(samples.nodes) > 1
    yield (f"{samples.system}: {quantity.several(len(samples.sessions), 'session')} from {samples.sessions[0]}"
           f"{f' to {samples.sessions[-1]}' if len(samples.sessions) > 1 else ''}, "
           f"{f'{len(samples.nodes)} nodes' if several else samples.nodes[0]}, {quantity.several(len(found), 'metric')}")
    if len(samples.sessions) == 1:
        yield 'One session: nothing is known of the variance between sessions; archive more with plumbline report.'
    if not any(analysis.probes for analysis in found.values()):
        yield ('No probes stand beside these samples: nothing can be explained.  Programs of the present version measure them; archive a new run.')
    elif samples.unknown:
        yield (f'Of {quantity.several(len(samples.unknown), "metric")} the probes are not known, because the record is not: {_few(samples.unknown)}.')
    if samples.narrowed:
        yield (f'Of {quantity.several(len(samples.narrowed), "metric")} the samples in other states were set aside and are not archived, so '
               f'what the states explain is less than it is: {_few(samples.narrowed)}.')
    if samples.of_other_sets:
        yield (f'Left out, of another working set of a cache than the last one, with which it is another metric: samples of '
               f'{_few(samples.of_other_sets)}.')
    if samples.unfit:
        yield f'Skipped, for values that have no logarithm: {_few(samples.unfit)}.'


def _few(keys):
    return some([f'{key.case} {key.metric}' for key in keys], 4)


def render(samples, found, console):
    '''Print what is known of each metric.

    :arg samples: :class:`plumbline.analysis.archived.Samples`.
    :arg found: key -> :class:`plumbline.analysis.variance.Analysis`.
    '''
    for text in remarks(samples, found):
        console.print(text, highlight=False, markup=False)
    probes, rows = probes_of(found), worst_first(found)
    if rows:
        console.print(_table(rows[:MOST_ROWS], labels(found), probes, console.width))
        console.print(KEY, highlight=False, markup=False)
    if len(rows) > MOST_ROWS:
        console.print(f'{len(rows) - MOST_ROWS} more metrics, of less unexplained variance: --output writes all to a page; '
                      '-n and --metric choose.', highlight=False)


def _table(rows, labels, probes, width):
    shown = [name for name in header(probes) if width >= WIDE or name != 'samples']
    titles = [name.replace('_', '\n', 1).replace('_', ' ') for name in shown]
    numbers = ((labels[key], dict(zip(header(probes), cells(analysis, probes)))) for key, analysis in rows)
    cells_of = ((label, *map(its.get, shown)) for label, its in numbers)
    return grid(['test and metric', *titles], cells_of, right=titles, whole=titles, padding=(0, 1, 0, 0))


def header(probes):
    '''Names of the columns behind the metric's.'''
    return ['unexplained', 'samples', 'total', *reversed(LEVELS), *probes]


def cells(analysis, probes):
    '''Their texts for one metric.'''
    counts = '/'.join(str(analysis.counts[level]) for level in reversed(LEVELS))
    return [_percent(analysis.unexplained), counts, _percent(analysis.total),
            *(_component(analysis, level) for level in reversed(LEVELS)), *(_shares(analysis.probes.get(name)) for name in probes)]


def _percent(variance):
    percent = 100 * cv(variance)
    return quantity.digits(percent) if percent >= 0.005 else '0'


def _component(analysis, level):
    component = analysis.components[level]
    if component.variance is None:
        return '-'
    share = component.variance / analysis.total if analysis.total else 0.0
    return f"{'~' if component.freedom < FEW else ''}{_percent(component.variance)} ({100 * share:.0f})"


def _shares(shares):
    if shares is None:
        return '-'
    return ' / '.join('-' if share is None else f'{100 * share:.0f}' for share in (shares.within, shares.between))


def figure(rows, labels):
    '''A bar for each metric: its CV, divided as its variance is.'''
    from plumbline.report import drawing  # plotly is not loaded for the terminal's table
    drawn = drawing.empty(120 + 24 * len(rows))
    names = [drawing.plain_text(labels[key]) for key, _ in rows]
    for part, (name, colour, pattern) in PARTS.items():
        drawn.add_bar(
            orientation='h', y=names, x=[100 * cv(analysis.total) * _share(analysis, part) for _, analysis in rows], name=name,
            customdata=[100 * _share(analysis, part) for _, analysis in rows],
            marker={'color': colour, 'line': {'color': drawing.INK, 'width': 0.5},
                    'pattern': {'shape': pattern, 'fillmode': 'overlay', 'fgcolor': drawing.GREY}},
            hovertemplate='%{y}: %{customdata:.0f} % of the variance<extra>' + name + '</extra>')
    drawn.update_layout(barmode='stack', legend={'traceorder': 'normal'})
    drawn.update_xaxes(title='coefficient of variation (%), divided as the variance is', rangemode='tozero')
    drawn.update_yaxes(autorange='reversed', ticks='', showgrid=False)
    return drawn


def _share(analysis, part):
    '''What share of the variance a part of the bar stands for.'''
    if not analysis.total:
        return 0.0
    if part in LEVELS:
        return analysis.left[part] / analysis.total
    gone = {level: analysis.parts[level] - analysis.left[level] for level in LEVELS}
    return (gone['round'] if part == 'within' else sum(gone.values()) - gone['round']) / analysis.total


def page(samples, found):
    '''The page's text; one file that opens offline.'''
    from plumbline.report.document import embedded, render
    rows, names, probes = worst_first(found), labels(found), probes_of(found)
    return render('variance.html.j2', figures=bool(rows), remarks=list(remarks(samples, found)), key=KEY, header=header(probes),
                  system=samples.system, rows=[(names[key], cells(analysis, probes)) for key, analysis in rows],
                  most=MOST_BARS, bars=embedded(figure(rows[:MOST_BARS], names)) if rows else None)
