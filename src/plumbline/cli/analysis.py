'''The commands ``plumbline variance``, ``plumbline history`` and ``plumbline acceptance``.'''

from pathlib import Path
from typing import Annotated

import typer

from plumbline.errors import PlumblineError
from plumbline.model.safe_text import shown
from plumbline.settings import REPORTS


def variance(names: Annotated[str, typer.Option('-n', '--name', help='only tests whose name matches this')] = '',
             metric: Annotated[str, typer.Option(help='only metrics whose name matches this')] = '',
             system: Annotated[str | None, typer.Option(help="ReFrame's name (default: that of the last session)")] = None,
             last: Annotated[int | None, typer.Option(min=1, help='only so many of the last sessions')] = None,
             output: Annotated[Path | None, typer.Option(help='HTML page to write as well, with all metrics and figures')] = None,
             archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive'):
    '''What is explained: the variance of each metric between samples, processes, sessions and nodes, and what the probes of
    the machine's state explain of it.  What stays unexplained is on top.'''
    from plumbline.analysis import archived
    from plumbline.analysis.variance import analyse
    from plumbline.report import grid, save_file, variance as reports
    samples = archived.read(archive_root, system, last, names, metric)
    found = {key: analyse(measured) for key, measured in samples.metrics.items()}
    console = grid.terminal()
    reports.render(samples, found, console)
    if output:
        console.print(f'page: {save_file(reports.page(samples, found), output)}', soft_wrap=True, highlight=False, markup=False)


def history(metric: Annotated[str, typer.Argument(help='metrics whose name matches this, instead of the subsystems')] = '',
            names: Annotated[str, typer.Option('-n', '--name', help='metrics of tests whose name matches this')] = '',
            system: Annotated[str | None, typer.Option(help="ReFrame's name (default: that of the last session)")] = None,
            last: Annotated[int | None, typer.Option(min=1, help='only so many of the last sessions')] = None,
            node: Annotated[str | None, typer.Option(help='of this node (default: the median over all)')] = None,
            environment: Annotated[str | None, typer.Option(help="ReFrame's name (default: all)")] = None,
            output: Annotated[Path | None, typer.Option(help='HTML page to write as well: trends, what changed with each step, nights')] = None,
            archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive'):
    '''Session after session: of each subsystem, or of the metrics that are named, how it scatters and since when it is otherwise;
    exit 1 if a subsystem has become worse, and stays so.'''
    from plumbline.analysis import history as archived
    from plumbline.report import grid, history as reports
    found = archived.read(archive_root, system, last, names, metric, node=node, environment=environment)
    if not found.metrics:
        where = ''.join(f' {text}' for text in (node, environment) if text)
        raise PlumblineError(f'{archive_root}: no such metric in the sessions of {found.system}{where}; see the names with plumbline report')
    known = courses, prior = archived.courses(found)
    console = grid.terminal()
    reports.render(found, courses, prior, bool(metric or names), console)
    losses = None if metric or names else reports.losses(archive_root, found, known=known)
    for loss in losses or ():
        console.print(str(loss), style='bold red', highlight=False, markup=False)
    if output:
        from plumbline.report import history_page, save_file
        page = history_page.page(archive_root, found, known, losses)
        console.print(f'page: {save_file(page, output)}', soft_wrap=True, highlight=False, markup=False)
    raise typer.Exit(1 if losses else 0)


def acceptance(
    sessions: Annotated[list[str] | None, typer.Argument(
        help="sessions of the archive, ReFrame's run reports, or folders of sweeps; without any, the archive's last session")] = None,
    names: Annotated[Path | None, typer.Option(help='YAML file: site, machine, supplier, contract, and who signs')] = None,
    output: Annotated[Path, typer.Option(help='.pdf, or .html to print with a browser')] = REPORTS / 'acceptance.pdf',
    archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive',
):
    '''The acceptance document: verdict, each node and value and what it was judged by, failures by class, method, state of the
    machine, software, and a page to sign; exit codes as of plumbline report.'''
    from plumbline import schemas
    from plumbline.comparison import acceptance as documents
    from plumbline.model import quantity
    from plumbline.report import acceptance as reports
    given = schemas.read_yaml(names, 'acceptance', 'see docs/howto/acceptance.rst') if names else None
    found = documents.read(sessions or (), archive_root)
    judged = ', '.join(f'{question} {number}' for question, number in found.judged.items())
    print(f'{found.system}: {found.verdict}, values judged in {quantity.several(len(found.sessions), "session")}: {judged}')
    for one in found.sessions:
        if one.not_judged:
            print(f'{one.name}: {shown(one.not_judged)}')
    print(f'document: {reports.write(found, given, output)}')
    raise typer.Exit(found.exit_status)
