'''The command ``plumbline variance``.'''

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from plumbline.settings import REPORTS


def variance(
    names: Annotated[str, typer.Option('-n', '--name', help='only tests whose name matches this')] = '',
    metric: Annotated[str, typer.Option(help='only metrics whose name matches this')] = '',
    system: Annotated[Optional[str], typer.Option(help="ReFrame's name (default: that of the last session)")] = None,
    last: Annotated[Optional[int], typer.Option(min=1, help='only so many of the last sessions')] = None,
    output: Annotated[Optional[Path], typer.Option(help='HTML page to write as well, with all metrics and figures')] = None,
    archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive',
):
    '''What is explained: the variance of each metric between samples, processes, sessions and nodes, and what the probes of
    the machine's state explain of it.  What stays unexplained is on top.'''
    from rich.console import Console
    from plumbline.analysis import archived
    from plumbline.analysis.variance import analyse
    from plumbline.report import variance as reports
    samples = archived.read(archive_root, system, last, names, metric)
    found = {key: analyse(measured) for key, measured in samples.metrics.items()}
    console = Console(width=None if sys.stdout.isatty() else 120)
    reports.render(samples, found, console)
    if output:
        console.print(f'page: {reports.write(samples, found, output)}', soft_wrap=True, highlight=False)
