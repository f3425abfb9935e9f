'''The HTML page of a sweep: one file that opens offline, in the style of a session's report.'''

from pathlib import Path

import polars as pl

from plumbline.model import subsystems
from plumbline.model.quantity import percent
from plumbline.report import deviations, outliers, save_file
from plumbline.report.document import embedded, render
from plumbline.sweep import ranking
from plumbline.sweep.slurm import folded

#: Rows of one node that the page shows: of a slow node nearly every metric is.
MOST = 20


def write(found, folder):
    '''Write the page of a sweep to ``folder/index.html``; its path.

    :arg found: :class:`plumbline.sweep.outliers.Findings`.
    :raises PlumblineError: if it cannot be written.
    '''
    return save_file(page(found), Path(folder) / 'index.html')


def page(found):
    '''The page's text.'''
    figures = [{'title': title, 'caption': caption, 'data': embedded(figure)} for title, caption, figure in deviations.figures(found)]
    named, rows = found.named, outliers.odd_rows(found)
    nodes = [{'node': node, 'named': node in named, 'rows': rows[node][:MOST], 'left': max(0, len(rows[node]) - MOST),
              'causes': found.causes.get(node, [])} for node in [*named, *found.unconfirmed, *found.cleared]]
    kinds = found.frame.group_by('partition', 'kind', maintain_order=True).agg(pl.col('node').unique())
    return render(
        'sweep.html.j2', figures, found=found, headline=outliers.headline(found),
        remarks=[*outliers.unjudged(found), *outliers.sees(found), *outliers.remarks(found)],
        hostlist=folded(named), nodes=nodes,
        missing=[(folded(nodes), len(nodes), reason) for reason, nodes in outliers.by_reason(found.unmeasured).items()],
        kinds=[(partition, kind or 'unknown', len(alike), folded(alike)) for partition, kind, alike in kinds.iter_rows()], drawn=figures,
        limits=ranking, metrics_rate=percent(subsystems.METRICS_RATE))
