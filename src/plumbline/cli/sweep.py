'''The command ``plumbline sweep``.'''

import itertools
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from plumbline.errors import PlumblineError
from plumbline.model.grouping import by_key
from plumbline.model.safe_text import shown
from plumbline.settings import CODE
from plumbline.system import site_command, trust

RACKS = "pattern of the nodes' names with a group for the rack, e.g. 'r(?P<rack>[0-9]+)n[0-9]+' (default: the partition's extra `racks`)"
SWITCHES = "Slurm's topology.conf: say which switch the outliers share"

_PACE = {'at_once': 100, 'pause': '0.1s', 'poll': '10s', 'patience': '1h', 'wait': '1d', 'time_limit': '1h'}


def sweep(
    configurations: Annotated[list[Path] | None, typer.Option(
        '-C', '--config-file', help="ReFrame's configuration")] = None,
    partition: Annotated[str | None, typer.Option(help='SYSTEM:PARTITION of it')] = None,
    nodes: Annotated[str, typer.Option(help="all, idle, or names like 'n[1-4,7]'")] = 'all',
    exclude: Annotated[str | None, typer.Option(help="not these, e.g. 'n[3-4]'")] = None,
    feature: Annotated[str | None, typer.Option(help="only nodes with these of Slurm's features, e.g. 'gpu&fast' or 'a|b'")] = None,
    random: Annotated[int | None, typer.Option(min=1, help='so many nodes in service, drawn by lot')] = None,
    seed: Annotated[int | None, typer.Option(min=0, help='of --random: the same nodes again (the plan has it)')] = None,
    due: Annotated[int | None, typer.Option(min=1, help='so many nodes in service: in doubt, never measured, or not for longest')] = None,
    reservation: Annotated[str | None, typer.Option(help='run in this reservation, on its nodes')] = None,
    node_hours: Annotated[float | None, typer.Option(min=0.01, help='spend no more than these, time limits of running jobs included')] = None,
    scavenge: Annotated[bool, typer.Option(
        '--scavenge', help='only idle nodes, after all others; while jobs of others wait, submit nothing, give back what has not started')] = False,
    give_running: Annotated[bool, typer.Option('--yield', help='as --scavenge, and give back what runs, too')] = False,
    checks: Annotated[list[Path] | None, typer.Option('-c', '--checks', help='files or folders of checks')] = None,
    names: Annotated[list[str] | None, typer.Option('-n', '--name', help='as of ReFrame')] = None,
    tags: Annotated[list[str] | None, typer.Option('-t', '--tag', help='as of ReFrame')] = None,
    mode: Annotated[str | None, typer.Option(help='as of ReFrame')] = None,
    reframe_options: Annotated[list[str] | None, typer.Argument(
        metavar='[-- REFRAME OPTIONS]', help="after --: more of ReFrame's options")] = None,
    resume: Annotated[str | None, typer.Option(help='go on with this sweep: run what has no result yet')] = None,
    at_once: Annotated[int | None, typer.Option(min=1, help='jobs in the queue at a time (100)')] = None,
    time_limit: Annotated[str | None, typer.Option(help='of the job of a node (1h)')] = None,
    pause: Annotated[str | None, typer.Option(help='between two submissions (0.1s)')] = None,
    poll: Annotated[str | None, typer.Option(help='between two looks at the queue (10s)')] = None,
    patience: Annotated[str | None, typer.Option(help='with a scheduler that refuses or is silent, or with others whose jobs wait (1h)')] = None,
    wait: Annotated[str | None, typer.Option(help='how long a job may wait for its start (1d)')] = None,
    confirm: Annotated[bool, typer.Option(
        help='measure outliers again, beside some nodes in order, before they are named')] = True,
    racks: Annotated[str | None, typer.Option(help=RACKS)] = None,
    switches: Annotated[Path | None, typer.Option(help=SWITCHES)] = None,
    hook: Annotated[str | None, typer.Option(help='command that is told which nodes to drain or to return to service, once; text on its standard '
                                                  'input')] = None,
    dry_run: Annotated[bool, typer.Option('--dry-run', help='say what would be done, and do nothing')] = False,
):
    '''The same checks on every node of a partition, one job for each: which are missing, which are outliers.

    Exit code: 0 all measured and none an outlier; 1 a node is missing, an outlier or has less than its peers, or its own report ends with 1, the
    second time, too; 2 nothing measured, or, nothing else being wrong, --hook failed or a file could not be written; 3 a node's own report ends with
    3, or a node could not be ranked in a whole subsystem, where three and more were measured.  Nodes that the sweep's own limits skip (--node-hours,
    --scavenge) are named, and are not missing.'''
    from plumbline.sweep import node as job, outliers, plan as plans, proposals, results, state
    from plumbline.sweep.remeasure import prepare
    from plumbline.sweep.selection import Limits, Selection
    from plumbline.sweep.slurm import Slurm
    given = {'at_once': at_once, 'time_limit': time_limit, 'pause': pause, 'poll': poll, 'patience': patience, 'wait': wait}
    given = {name: value for name, value in given.items() if value is not None}
    wanted = Selection(nodes, exclude, feature, random, seed, due)
    limits: dict[str, Any] = {'reservation': reservation, 'node_hours': node_hours, 'scavenge': scavenge or give_running,
                              'give_running': give_running}
    limits = {name: value for name, value in limits.items() if value}
    chosen = {'-c': [path.absolute() for path in checks or ()], '-n': names or (), '-t': tags or ()}
    selection = [word for flag, values in chosen.items() for value in values for word in (flag, str(value))]
    selection += [*([f'--mode={mode}'] if mode else []), *(reframe_options or ())]
    if hook:
        site_command.words('--hook', hook)
    if resume:
        if configurations or partition or selection or wanted != Selection():
            raise PlumblineError('--resume goes on with the checks and nodes of the sweep: name neither here')
        if Path(resume).name != resume:
            raise PlumblineError(f'--resume {resume}: give the id of a sweep, which is a folder in {results.SWEEPS}')
        trust.refuse(results.SWEEPS / resume)       # its job script is submitted
        work = state.load(results.SWEEPS / resume)
        named = [*itertools.pairwise(work.plan['command'])]
        trust.refuse_run(*(path for option, path in named if option == '-C'), code=(*CODE, *(path for option, path in named if option == '-c')))
        work.plan['pace'] |= given
        work.plan['limits'] = asdict(replace(work.limits, **limits))
        found = None
    else:
        if not configurations or not partition:
            raise PlumblineError('say which nodes: -C SITE_FILE --partition SYSTEM:PARTITION, or --resume ID')
        trust.refuse_run(*configurations, code=(*CODE, *chosen['-c']))      # each node runs them
        pace = {**_PACE, **given}
        made, found, known = plans.make(configurations, partition, wanted, Limits(**limits), _pace(pace).minutes, selection,
                                        lambda: _history(partition))
        made['pace'] = pace
        _tell(made, found, known)
    plan = work.plan if resume else made
    plan['hook'] = hook or plan.get('hook')
    pace = _pace({**_PACE, **plan['pace']})
    plan['racks'] = racks or plan.get('racks')
    outliers.placed(plan['nodes'], plan['racks'], switches)     # what does not fit is told before anything is measured
    if dry_run:
        return _dry_run(plan, pace, None if found else work)
    if resume:
        # Whatever became of the reservation that was given before, what has ended in it is to be collected.
        plans.usable(Slurm(plan['access']), replace(work.limits, reservation=reservation), pace.minutes)
    else:
        folder = results.SWEEPS / plan['id']
        work = state.create(folder, plan, job.script(plan['id'], folder, partition, plan['command']))
    _run(work, pace)
    again = prepare(work) if confirm else None
    if again and not all(node.measured for node in again.nodes.values()):
        _say('to be measured again: outliers, what some lack, and some that were in order')
        _run(again, pace, work.name)
    status = _end(work)
    ranked, failed = show(work.folder, racks, switches) if status != 2 else (None, False)
    status = _status(work, status, ranked and _of_ranking(ranked))
    failed |= _failed(proposals.follow_up(work, ranked))
    raise typer.Exit(status or (2 if failed else 0))


def _status(work, status, ranked):
    '''The exit code of a sweep: 1 and 2 go before 3, which is that of the ranking, of three nodes or more without one, or of the report of a node.'''
    from plumbline.sweep import remeasure
    first, *again = ([node.status for node in one.nodes.values() if node.measured] for one in (work, *remeasure.measured_again(work.folder)))
    return status or (1 if ranked == 1 else 3 if 3 in (ranked, *first, *itertools.chain(*again)) or (ranked == 2 and len(first) > 2) else 0)


def _of_ranking(found):
    return found.exit_status or (3 if found.unjudged else 0)


def _failed(lines):
    '''Say what a step says of itself; whether it failed, which is told: what comes after it is done nevertheless.'''
    try:
        for line in lines:
            _say(line)
    except PlumblineError as error:
        print(f'plumbline: {shown(str(error))}', file=sys.stderr)
        return True
    return False


def _history(partition):
    from plumbline.cli.nodes import is_fail
    from plumbline.nodes import history
    found = history.read(partition.partition(':')[0])
    for node in found.nodes.values():
        node.look_closer(lambda file: is_fail(file, found.skipped))
    for text in found.skipped:
        _say(f'skipped: {text}')
    return found


def rank(
    sweep: Annotated[str, typer.Argument(help='its name, or its folder')],
    racks: Annotated[str | None, typer.Option(help=RACKS)] = None,
    switches: Annotated[Path | None, typer.Option(help=SWITCHES)] = None,
):
    '''Which nodes of a sweep are outliers, again: from what they have measured.

    Exit code: 0 none is; 1 some are, have less than their peers or lack a test or a part of one, or the nodes are of two sorts;
    2 nothing could be ranked, or no file could be written to its folder; 3 a node could not be ranked in a whole subsystem.'''
    from plumbline.sweep import results
    folder = Path(sweep) if Path(sweep, 'sweep.json').exists() else results.SWEEPS / sweep
    found, failed = show(folder, racks, switches)
    raise typer.Exit(_of_ranking(found) or (2 if failed else 0))


def show(folder, racks, switches):
    '''Print the outliers of a sweep, keep what later sweeps need of it and write its page; (what was found, whether a file could not be written).'''
    from plumbline.report import grid, outliers as report, sweep_page
    from plumbline.sweep import outliers, scatter
    found = outliers.look(folder, racks, switches)
    report.render(found, grid.terminal())

    def written():
        scatter.keep(Path(folder), found.frame, found.ranked)
        yield f'report: {sweep_page.write(found, folder)}'
    return found, _failed(written())


def _pace(told):
    from plumbline.sweep.driver import Pace
    from plumbline.sweep.plan import seconds
    pause, poll, patience, wait = (seconds(told[name]) for name in ('pause', 'poll', 'patience', 'wait'))
    return Pace(told['at_once'], pause, poll, patience, wait, max(1, round(seconds(told['time_limit']) / 60 + 0.49)))


def _say(line):
    print(shown(line), flush=True)


def _tell(plan, found, known):
    from plumbline.sweep.slurm import folded
    _say(f"{plan['checks']} checks on {len(found)} of the {len(known)} nodes of {plan['partition']}: {folded(plan['nodes'])}")
    if plan['selection']['random']:
        _say(f"drawn by lot: the same again with --random {plan['selection']['random']} --seed {plan['selection']['seed']}")
    for node_state, names in sorted(by_key((known[name].state, name) for name in known.keys() - plan['nodes'].keys()).items()):
        _say(f'not asked for: {folded(names)}, {node_state}')


def _dry_run(plan, pace, work):
    import shlex

    from plumbline.sweep import node as job, results, state
    from plumbline.sweep.slurm import Slurm
    work = work or state.Sweep(results.SWEEPS / plan['id'], plan)
    slurm = Slurm(plan['access'])
    known = slurm.nodes()
    left = [node for node in work.nodes.values() if not node.measured]
    for node in left:
        now = known.get(node.name)
        if now is None or now.trouble:
            _say(f'{node.name}: {now.trouble}: {now.reason}' if now else f'{node.name}: gone')
    _say(f'{len(left)} jobs, {pace.at_once} at a time, as:')
    first = left[0] if left else next(iter(work.nodes.values()))
    _say(shlex.join(slurm.submission(work.job_name(first), first.name, pace.minutes, work.of(first) / job.OUTPUT,
                                     work.script, first.name, job.PILOT, options=work.limits.options)))
    _say(job.script(work.name, work.folder, plan['partition'], plan['command']))


def _run(work, pace, name=None):
    '''
    :arg name: what to resume, if that is not the sweep itself.
    '''
    from plumbline.sweep.driver import Driver
    from plumbline.sweep.slurm import Slurm

    def stop(number, _):
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    if not work.begin():
        _say(f'note: the file system of {work.folder} has no locks (Lustre: mount it with -o flock): see that nobody else runs this sweep')
    _say(f'sweep {work.name} in {work.folder}')
    for other in work.beside() if name is None else ():
        _say(_beside(work, other))
    resumed = f'plumbline sweep --resume {name or work.name}'
    try:
        Driver(work, Slurm(work.plan['access']), pace, _say).run()
    except KeyboardInterrupt:
        _say(_left_behind(work))
        raise PlumblineError(f'interrupted; to go on: {resumed}') from None
    except (PlumblineError, OSError) as error:       # OSError: a full disk takes no line of the journal
        _say(_left_behind(work))
        why = f'{work.folder}: {error.strerror}' if isinstance(error, OSError) else error
        raise PlumblineError(f'{why}; to go on: {resumed}') from None


def _beside(work, other):
    from plumbline.sweep.slurm import folded
    from plumbline.sweep.state import OVER
    both = [name for name in work.nodes if name in other.nodes and other.nodes[name].phase != OVER]
    where = f'on {folded(both)} too: each job has its node for itself, and the later one waits' if both else 'on none of these nodes'
    return f'note: sweep {other.name} of this partition is being run ({other.driver}), {where}'


def _left_behind(work):
    from plumbline.model.quantity import several
    from plumbline.sweep.state import QUEUED
    numbers = [node.job for node in work.within(QUEUED)]
    if not numbers:
        return 'no job of this sweep is left in the queue'
    return f"{several(len(numbers), 'job')} left in the queue; to end what was begun: scancel {' '.join(map(str, numbers))}"


def _end(work):
    '''Print what became of the nodes; the exit code, to which what they met when they were measured again counts, too.'''
    from plumbline.sweep import findings, outliers, remeasure
    from plumbline.sweep.slurm import folded
    from plumbline.sweep.state import MEASURED, SKIPPED
    nodes = list(work.nodes.values())
    measured = [node for node in nodes if node.measured]
    _say(f'\n{len(measured)} of {len(nodes)} nodes measured')
    told = by_key(((node.state == MEASURED, node.state, node.told), node.name) for node in nodes)
    width = max(len(folded(names)) for names in told.values())
    for (_, node_state, text), names in sorted(told.items()):
        _say(f'{folded(names):<{width}}  {node_state:<14}  {text}')
    if not measured:
        _say('NOTHING WAS MEASURED: this is not a pass')
        return 2
    again = remeasure.measured_again(work.folder)
    failed = any(node.status == 1 for one in (work, *again) for node in one.nodes.values() if node.measured)
    missing = [node for node in nodes if not node.measured and node.state != SKIPPED]
    missing += [node for one in again if one.folder.name == outliers.AGAIN for node in one.nodes.values() if findings.is_lost(node)]
    if missing:
        _say(f'missing nodes are no pass; to run them again: plumbline sweep --resume {work.name}')
    elif len(measured) < len(nodes):
        _say(f'what the limits of this sweep skip is not missing; to go on: plumbline sweep --resume {work.name}, with other limits')
    return 1 if failed or missing else 0
