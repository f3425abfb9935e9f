'''The HTML page of a sweep: one file that opens offline, in the style of a session's report.'''

from importlib import resources

import jinja2
import polars as pl
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from plumbline.model import subsystems
from plumbline.model.quantity import percent
from plumbline.report import deviations, outliers, save
from plumbline.report.page import embedded
from plumbline.sweep import ranking
from plumbline.sweep.slurm import folded

#: Rows of one node that the page shows: of a slow node nearly every metric is.
MOST = 20


def write(found, folder):
    '''Write the page of a sweep to ``folder/index.html``; its path.

    :arg found: :class:`plumbline.sweep.outliers.Findings`.
    :raises PlumblineError: if it cannot be written.
    '''
    return save(page(found), folder)


def page(found):
    '''The page's text.'''
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, '.'), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    figures = [{'title': title, 'caption': caption, 'data': embedded(figure)}
               for title, caption, figure in deviations.figures(found)]
    named, rows = found.named, outliers.odd_rows(found)
    nodes = [{'node': node, 'named': node in named, 'rows': rows[node][:MOST], 'left': max(0, len(rows[node]) - MOST),
              'causes': found.causes.get(node, [])} for node in [*named, *found.cleared]]
    return environment.get_template('sweep.html.j2').render(
        found=found, headline=outliers.headline(found), remarks=[*outliers.sees(found), *outliers.remarks(found)], hostlist=folded(named),
        nodes=nodes,
        missing=[(folded(nodes), len(nodes), reason) for reason, nodes in outliers.by_reason(found).items()],
        kinds=_kinds(found.frame), figures=figures, limits=ranking, metrics_rate=percent(subsystems.METRICS_RATE),
        style=Markup(resources.files(__package__).joinpath('page.css').read_text(encoding='utf-8')),
        plotly=Markup(get_plotlyjs()) if figures else None)


def _kinds(frame):
    '''(partition, kind, number of nodes, their names).'''
    kinds = frame.group_by('partition', 'kind', maintain_order=True).agg(pl.col('node').unique())
    return [(partition, kind or 'unknown', len(nodes), folded(nodes)) for partition, kind, nodes in kinds.iter_rows()]
