'''Sets of compiler options: kernels over sets, as the source's table 8, and that table.'''

import numpy as np

from plumbline.model import quantity, records, sources
from plumbline.report import drawing
from plumbline.report.figures.common import Draw, by_place, not_drawn
from plumbline.report.readings import measured

_TABLE8, _TABLE9 = 'anderson1997-table8-nas-kernels-flags', 'anderson1997-table9-nas-kernels-optimized'

#: Slower than by the usual flags, the same, faster: they differ in grey-scale print, too.
_COLOURS = [[0.0, '#8c1d18'], [0.5, '#ffffff'], [1.0, '#0072b2']]


def _heat_map(values, columns, rows):
    '''Ratios, shape (rows, columns), coloured from a quarter to four times; NaN is grey.'''
    figure = drawing.empty(110 + 30 * len(rows))
    figure.update_layout(plot_bgcolor=drawing.GRID)
    figure.add_heatmap(
        z=np.log2(values), x=columns, y=rows, zmin=-2, zmax=2, colorscale=_COLOURS, xgap=1, ygap=1, hoverongaps=False, customdata=values,
        text=[[quantity.digits(value) if np.isfinite(value) else '' for value in row] for row in values], texttemplate='%{text}',
        hovertemplate='%{y}, %{x}: %{customdata:.2f}<extra></extra>', showscale=False,
    )
    figure.update_xaxes(type='category', showgrid=False)
    figure.update_yaxes(type='category', autorange='reversed', showgrid=False)
    return figure


def compiler_options(details):
    '''A heat map for each place, and that of table 8.'''
    for at, group in by_place(details):
        title = f'Sets of compiler options{at}'
        kernels = measured(group, 'kernel')
        rates: dict[tuple, dict[str, float]] = {}
        flags = {}
        for record in kernels:
            source, options = record['variant'].split('_')
            rates.setdefault((record['kernel'], source), {})[options] = records.median_rate(record, 'flops')
            flags[options] = record['flags'] or 'no flags'
        usual = 'site' if 'site' in flags else 'O2'
        rows = {row: sets for row, sets in rates.items() if usual in sets}
        if not rows:
            yield not_drawn(title, 'there are no records of the kernels by the usual flags')
            continue
        values = np.array([[sets.get(options, np.nan) / sets[usual] for options in flags] for sets in rows.values()])
        caption = (
            f"How many times as fast as by {'the flags of the site' if usual == 'site' else 'O2 (the environment has no fflags)'}, medians. "
            f"{kernels[0]['compiler']}: " + '; '.join(f'{name}: {text}' for name, text in flags.items())
            + '. Every result was verified. Grey: not measured.'
        )
        yield title, caption, _heat_map(values, list(flags), [' '.join(row) for row in rows])
    table = sources.table(_TABLE8)
    columns = [name for name in next(iter(table.values())) if name != 'kernel']
    values = np.array([[float(row[name]) / float(row['f90']) for name in columns] for row in table.values()])
    gains = ', '.join(f"{name} {quantity.digits(sources.ratio(_TABLE9, name, name, 'optimized', 'original'))}" for name in table)
    yield 'Sets of compiler options in 1997', (
        'How many times as fast as by the compiler without options, on a Cray T3E of 300 MHz (anderson1997, table 8). Those are the NAS '
        'kernels themselves; ours are the same mathematics, written anew, of other sizes. Sources optimised by hand gained there, each by the '
        f'best options: {gains} (table 9).'
    ), _heat_map(values, [name.replace('_', '<br>') for name in columns], list(table))


FIGURES: dict[str, Draw] = {'compiler_options': compiler_options}
