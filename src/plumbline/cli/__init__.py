'''The command ``plumbline``: what ReFrame has not.  Checks are run with ReFrame itself.'''

import atexit
import gc
import io
import itertools
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from plumbline.cli import analysis, gate, nodes, references, sweep
from plumbline.errors import PlumblineError
from plumbline.model.safe_text import shown
from plumbline.settings import MODES, REPORTS, ROOT

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__)


@app.command()
def report(
    run_reports: Annotated[list[Path] | None, typer.Argument(
        help="ReFrame's run report, or those of a pipeline's jobs; without it, the archive's last session")] = None,
    session: Annotated[str | None, typer.Option(help='a session of the archive')] = None,
    destination: Annotated[Path, typer.Option(help='folder for index.html')] = REPORTS / 'latest',
    archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive',
    reframe_status: Annotated[int, typer.Option(help="ReFrame's exit code")] = 0,
    public: Annotated[bool, typer.Option('--public', help='a page without kernel, microcode, paths and commands, for others to see')] = False,
    junit: Annotated[Path | None, typer.Option(help='file for the same verdicts as JUnit XML')] = None,
    json: Annotated[Path | None, typer.Option(help='file for a summary as JSON (schemas/summary.json)')] = None,
    prometheus: Annotated[Path | None, typer.Option(help="file for node-exporter's textfile collector, e.g. .../plumbline.prom")] = None,
    notify: Annotated[str | None, typer.Option(help='command that is run where the state has changed since the last session; text on its '
                                                    'standard input')] = None,
    link: Annotated[str | None, typer.Option(help='with --notify: where people find the page; default: its path')] = None,
):
    '''Archive a run, print its verdicts, write its report; exit 1 for a FAIL or a lasting loss, 2 if
    nothing was measured or the session was broken off, 3 if a test could not be judged.'''
    from plumbline import report as pages
    from plumbline.analysis import history
    from plumbline.references import others
    from plumbline.report import grid, history as courses, notify as notices, telemetry
    from plumbline.store import archive
    if run_reports and session:
        raise PlumblineError(f'--session {session}: give a session of the archive, or run reports')
    for run_report in run_reports or ():
        if not run_report.exists():
            raise PlumblineError(f'{run_report}: nothing was measured: ReFrame writes no run report '
                                 'where no test ran, or where it was killed; see its output, and what reframe -l selects')
    if run_reports:
        session = others.archived(*run_reports, root=archive_root).stem
    told = pages.Session.stored(archive.file_of(archive_root, session), reframe_status)
    session = told.rows['session'][0]
    past = history.read(archive_root, told.rows['system'][0], until=session)
    if run_reports and (later := [path.stem for path in archive.sessions(archive_root, past.system) if path.stem[:16] > session[:16]]):
        print(f'plumbline: {len(later)} of the archive are dated after this session, the last {later[-1]}, and are not in its history: the clock was '
              'set back since, or was wrong then, or this run is older', file=sys.stderr)
    for text in past.damaged:
        print(f'plumbline: skipped: {text}', file=sys.stderr)
    known = history.courses(past)
    losses = courses.losses(archive_root, past, of=session, known=known)
    page = pages.write(told, destination, losses, public)
    if junit:
        pages.save_file(pages.junit(told, losses), junit)
    found = telemetry.summary(told, losses, [one.title for one in known[0] if one.sessions[-1] == session]) if json or prometheus or notify else {}
    if json:
        pages.save_file(telemetry.as_json(found), json)
    if prometheus:
        pages.save_file(telemetry.prometheus(found), prometheus, 0o644)
    untold = notices.failure(notify, found, archive_root, link or str(page)) if notify else ''
    console = grid.terminal()
    pages.render(told, console, losses)
    console.print(f'report: {page}', soft_wrap=True, markup=False)
    if untold:
        print(f'plumbline: {shown(untold)}', file=sys.stderr)
    raise typer.Exit(told.exit_status(losses) or (2 if untold else 0))


@app.command('import')
def import_perflogs(
    perflogs: Annotated[Path, typer.Argument(help="folder of ReFrame's performance logs (SYSTEM/PARTITION/TEST.log)")],
    archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive',
):
    '''What a site has measured with ReFrame before becomes history; the same logs may be read again, they have grown.'''
    from plumbline.store import archive
    from plumbline.store.perflogs import read
    logs = read(perflogs, archive_root)
    frames = [archive.frame_of(report) for report in logs.reports]
    for frame in frames:
        archive.write(frame, archive_root)
    for system in sorted({frame['system'][0] for frame in frames}):
        of_system = [frame for frame in frames if frame['system'][0] == system]
        print(f"{system}: {len(of_system)} sessions, {of_system[0]['started'][0]:%Y-%m-%d} to {of_system[-1]['started'][0]:%Y-%m-%d}, "
              f"{sum(frame['metric'].count() for frame in of_system)} values")
    for line in logs.skipped:
        print(f'skipped: {line}')


@app.command()
def compare(
    sessions: Annotated[list[str] | None, typer.Argument(
        help="sessions of the archive, ReFrame's run reports, or folders of sweeps: one or several before, the last is the one after")] = None,
    last: Annotated[int | None, typer.Option(min=2, help='the last sessions of the archive, instead of names')] = None,
    system: Annotated[str | None, typer.Option(help='with --last: of this system')] = None,
    again: Annotated[list[str] | None, typer.Option('--after', help='a further session after, of some tests perhaps: worse is only what is worse in '
                                                                    'each that measured it; may be repeated')] = None,
    output: Annotated[Path | None, typer.Option(help='HTML page to write as well')] = None,
    archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive',
):
    '''Before and after an upgrade: what got slower, by more than noise, and what else changed; exit 1 if something did.'''
    from plumbline.comparison import compare as comparing, sides
    from plumbline.report import comparison, grid
    if bool(sessions) == bool(last) or (sessions and len(sessions) < 2):
        raise PlumblineError('name at least two sessions, oldest first, or --last 2')
    if system and not last:
        raise PlumblineError(f'--system {system}: it is that of --last: give both')
    *before, after = [sides.load(source, archive_root) for source in sessions or sides.last(archive_root, last, system)]
    others = [comparing.compare(before, sides.load(source, archive_root)) for source in again or ()]
    found = comparing.confirmed(comparing.compare(before, after), others)
    console = grid.terminal()
    comparison.render(found, console)
    if output:
        from plumbline.report import save_file, upgrade_page
        console.print(f'page: {save_file(upgrade_page.page(found), output)}', soft_wrap=True, highlight=False, markup=False)
    raise typer.Exit(found.exit_status)


@app.command()
def systems(
    sessions: Annotated[list[str], typer.Argument(
        help="of each system one or several: NAME=SESSION, a session of the archive, ReFrame's run report, or the folder of a sweep; without NAME= "
             "the system's own name")],
    output: Annotated[Path | None, typer.Option(help='CSV file to write as well: all values, and what they are of the best')] = None,
    archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive',
):
    '''Several systems beside each other: each rate and time relative to the best of them, and each subsystem.'''
    from plumbline.comparison import sides, systems as beside
    from plumbline.report import grid, systems as tables
    found = beside.compare(sides.by_system(sessions, archive_root))
    console = grid.terminal()
    tables.render(found, console)
    if output:
        from plumbline import atomic
        console.print(f'values: {atomic.write(output, found.frame().write_csv())}', soft_wrap=True, highlight=False, markup=False)


@app.command(help=f'''A mode at a fixed time: write the script that runs it, and print what starts it.

    Modes and how long they take on four cores: {', '.join(f'{name} {mode.minutes} min' for name, mode in MODES.items())}.''')
def schedule(
    mode: Annotated[str, typer.Argument(help="ReFrame's --mode: " + '; '.join(
        f'{name}: {mode.about}' for name, mode in MODES.items()))],
    starter: Annotated[Literal['cron', 'systemd', 'scrontab'], typer.Option('--as', help='what starts it')],
    at: Annotated[str, typer.Option(help='time of day, HH:MM')],
    config: Annotated[Path, typer.Option('-C', '--config-file', help="ReFrame's configuration")],
    days: Annotated[str, typer.Option(help='of the week, e.g. mon,thu; default: every day')] = '',
    folder: Annotated[Path, typer.Option(help='for the script, its logs and its lock: of what has one folder, one runs at a '
                                              'time')] = REPORTS / 'schedule',
    scron: Annotated[list[str] | None, typer.Option(help='with --as scrontab: an option of sbatch for the job that runs '
                                                            'ReFrame, e.g. --scron=--partition=service')] = None,
    report: Annotated[list[str] | None, typer.Option(help='an option of `plumbline report`, e.g. --report=--prometheus=FILE')] = None,
):
    from plumbline.scheduler import schedule as schedules
    when = schedules.time_of(at, days)
    script = schedules.write(mode, config, folder, report or (), elsewhere=starter == 'scrontab')
    lines = {'cron': lambda: schedules.cron(script, when), 'systemd': lambda: schedules.systemd(script, when, mode),
             'scrontab': lambda: schedules.scrontab(script, when, scron or ())}[starter]()
    print('\n'.join(lines))


app.add_typer(references.app, name='references')
app.add_typer(gate.expectations, name='expectations')
app.add_typer(gate.gate, name='gate')
app.add_typer(nodes.app, name='nodes')


@app.command()
def bench(kernels: Annotated[list[str] | None, typer.Argument(help='only these kernels (default: all), or `verdicts`, or `sweeps`')] = None,
          pairs: Annotated[int, typer.Option(help='alternating runs of each figure', min=3)] = 7,
          archive_root: Annotated[Path, typer.Option('--archive')] = REPORTS / 'archive',
          null: Annotated[int, typer.Option(help='of `verdicts`, `sweeps`: how many in which nothing has changed', min=0)] = 100,
          faults: Annotated[int, typer.Option(help='of `verdicts`, `sweeps`: how many with each fault', min=0)] = 20,
          only: Annotated[list[str] | None, typer.Option(help='of `verdicts`, `sweeps`: this fault; may be repeated')] = None,
          apart: Annotated[float, typer.Option(help='of `verdicts`: minutes between the sessions that become references', min=0)] = 60,
          draws: Annotated[int, typer.Option(help='of `verdicts`: how often references are drawn from its sessions, and the others judged by them',
                                             min=0)] = 20,
          folder: Annotated[Path | None, typer.Option(help='of `verdicts`, `sweeps`: for all of it; what is there is not run again (default: '
                                                           'of this name, in the reports)')] = None,
          simulate: Annotated[bool, typer.Option('--simulate', help='of `verdicts`, `sweeps`: judging alone, with the noise of bare metal')] = False,
          seed: Annotated[int, typer.Option(help='of --simulate: other sessions, nodes and noise', min=0)] = 1,
          tails: Annotated[float | None, typer.Option(help="of --simulate: noise is Student's t of so many degrees of freedom", min=2.1)] = None):
    '''The figures Plumbline holds itself to: kernels against other programs' and their own limits, timing, overhead.

    `bench verdicts`: sessions with real faults, and without; how many are found, and how many alarms are false.  `bench sweeps`: the same
    of sweeps of the virtual cluster, with a fault on one node; it has no target.  Exit 1 where a target is missed or a figure cannot be measured, 3
    where too few sessions were run to tell of a target of `verdicts`.'''
    from plumbline import bench as figures
    from plumbline.bench import verdicts
    from plumbline.store import archive
    of_verdicts = folder or REPORTS / 'verdicts'
    if simulate and kernels not in (['verdicts'], ['sweeps']):
        raise PlumblineError('--simulate: it is that of `verdicts` or `sweeps`: name one of them')
    if simulate and kernels:
        from plumbline.bench.sweeps import simulation as of_sweeps
        from plumbline.bench.verdicts import simulation as of_sessions
        return print(*{'verdicts': of_sessions, 'sweeps': of_sweeps}[kernels[0]].lines(seed=seed, tails=tails), sep='\n')
    if kernels == ['verdicts']:
        raise typer.Exit(verdicts.run(of_verdicts, null, faults, only or (), apart=60 * apart, draws=draws))
    if kernels == ['sweeps']:
        from plumbline.bench import sweeps
        return sweeps.run(folder or REPORTS / 'bench-sweeps', null, faults, only or ())
    unknown = sorted(set(kernels or ()) - set(figures.FIGURES))
    if unknown:
        raise PlumblineError(f"{unknown[0]}: no such kernel; there are {', '.join(figures.FIGURES)}; and `verdicts` or `sweeps`, alone")
    overhead = [] if kernels else [figures.overhead(archive.load_session(archive_root) if archive.all_files(archive_root) else None)]
    missed = 0
    for figure in itertools.chain(overhead, figures.figures(kernels or figures.FIGURES, pairs)):
        print(figure.line, flush=True)
        missed += not figure.met
    code = verdicts.run(of_verdicts, 0, 0) if not kernels and of_verdicts.exists() else 0       # what is there of it
    raise typer.Exit(1 if missed else code)


@app.command()
def simulate(
    network: Annotated[Path, typer.Argument(help='network file, such as those in config/networks')],
    application: Annotated[str, typer.Option(help='cg, cg-doubling or sp')] = 'cg',
    processes: Annotated[str | None, typer.Option(help='how many (default: 64); several: a table')] = None,
    latency: Annotated[str | None, typer.Option(
        help="us, or +us for so much more than the network's; several: a table")] = None,
    size: Annotated[str | None, typer.Option(help='S or A (default: A)')] = None,
    iterations: Annotated[int | None, typer.Option(help='of the application', min=1)] = None,
    published: Annotated[bool, typer.Option(help="the source's table, predicted cell by cell")] = False,
    sensitivity: Annotated[bool, typer.Option(help='with --published: how far that moves with each number it rests on; half an hour')] = False,
):
    '''What would more latency cost?  CG or SP on a network that is described in a file, with SimGrid.'''
    from plumbline.cli import simulation as command
    for line in command.answer(network, application, processes, latency, size, iterations, published, sensitivity):
        print(line, flush=True)


@app.command()
def detect(
    output: Annotated[Path | None, typer.Option(help='file to write (default config/sites/NAME.py)')] = None,
    name: Annotated[str | None, typer.Option(
        help="ReFrame's name of the system (default: the scheduler's, or the host's)")] = None,
    scheduler: Annotated[str | None, typer.Option(help='slurm, pbs, flux or local (default: the first that is there)')] = None,
):
    '''Write the site file of the system whose login node this is.  What is not certain is a comment to decide on.

    Nothing is submitted, changed or downloaded, and no file is overwritten.'''
    from plumbline import detect as detection
    detection.refuse_existing(output)
    name, text = detection.site_file(name, scheduler)
    output = output or detection.default_output(name)
    detection.write(text, output)
    for line in detection.next_steps(output, text):
        print(line)


@app.command()
def path(what: Annotated[Literal['checks', 'config', 'src'], typer.Argument(help='which of what Plumbline brings')]):
    '''Where the checks, site files or sources are: `reframe -C "$(plumbline path config)/localhost.py" -c "$(plumbline path checks)" -R -l`.'''
    print(ROOT / what)


app.command()(analysis.acceptance)
app.command()(analysis.variance)
app.command()(analysis.history)
app.command()(sweep.sweep)
app.command()(sweep.rank)


def main():
    '''Errors are one line each on standard error, and exit code 2; that is never 0 where standard output could not be written.

    A reader that has gone, as of ``| head``, is no error: nobody reads the rest, and the command goes on, to its own exit code.'''
    # Of the values of 365 sessions Python would look for cycles for 0.1 s while they are read, and for 0.3 s when it ends.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    status: int | str | None = 2
    errors: list[Exception] = []
    for stream in (sys.stdout, sys.stderr):     # of what a terminal cannot show a question mark is seen
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='replace')
            for name in ('write', 'flush'):
                setattr(stream, name, _whoever_reads(stream, name))
    try:
        app()
    except SystemExit as ended:
        status = ended.code
    except (PlumblineError, OSError) as error:
        errors.append(error)
        status = getattr(error, 'exit_code', status)
    try:
        sys.stdout.flush()
    except OSError as error:
        _to_nobody(sys.stdout)      # what Python has not written yet it would try to write once more when it ends
        status = status or 2
        errors.append(error)
    for said in dict.fromkeys(map(_in_words, errors)):
        print(f'plumbline: {shown(said)}', file=sys.stderr)
    sys.exit(status)


def _whoever_reads(stream, name):
    '''Its method, for which a reader that has gone is no error.'''
    say = getattr(stream, name)

    def said(*given):
        try:
            return say(*given)
        except BrokenPipeError:
            _to_nobody(stream)
            return say(*given)
    return said


def _to_nobody(stream):
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _in_words(error: Exception) -> str:
    '''Of what was being written, standard output among it, the system names no file.'''
    if isinstance(error, OSError) and not error.filename:
        return f'{error.strerror}: what was said or written is not whole'
    return str(error)
