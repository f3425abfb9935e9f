'''``plumbline references``: what would be recorded, recording it, checking what is recorded.'''

import statistics
from pathlib import Path
from typing import Annotated

import typer

from plumbline.errors import PlumblineError
from plumbline.model.good_state import DAY, LEAST_APART, LEAST_SESSIONS, MOST_SESSIONS
from plumbline.model.grouping import by_key
from plumbline.model.quantity import change, percent, seconds, several
from plumbline.settings import REPORTS

app = typer.Typer(no_args_is_help=True, help='References: propose, accept and check them.')

#: Lines of a list.
MOST_LINES = 20

System = Annotated[str, typer.Argument(help="ReFrame's name of the system")]
Sessions = Annotated[int, typer.Option(
    '--sessions', min=LEAST_SESSIONS, max=MOST_SESSIONS, help='how many of the last sessions of good state, at most')]
Tests = Annotated[str, typer.Option(help='only checks whose name matches this')]
Output = Annotated[Path | None, typer.Option(help='the file of references (default config/references/SYSTEM.yaml)')]
Machine = Annotated[Path | None, typer.Option('--machine', help='datasheet values: what no reference may exceed')]
Cores = Annotated[int | None, typer.Option(help='cores of the node, for the peaks of caches with all of them (none without)', min=1)]
Archive = Annotated[Path, typer.Option('--archive')]
Trusted = Annotated[list[str] | None, typer.Option(
    '--with', help='a session (or how its name begins) that is used although it failed, was unstable or is odd; several: again')]
Apart = Annotated[float, typer.Option(min=0, help='minutes: sessions that began nearer to each other count once')]
Node = Annotated[str | None, typer.Option(
    help="references of this node alone, for one that differs from its fellows for good: SYSTEM@NODE.yaml, which goes before the system's")]
Nodes = Annotated[list[str] | None, typer.Option('--with-node', help='a node that is used although it differs; several: again')]


def _peaks(machine_file, cores):
    from plumbline.system import datasheet
    known = datasheet.peaks(datasheet.load(machine_file), cores or 1) if machine_file else {}
    return {f'{level}/{threads}': rate for (level, threads), rate in known.items() if cores or threads == 'one' or level == 'memory'}


def _add(name, text, writes):
    def command(system: System, sessions: Sessions = MOST_SESSIONS, tests: Tests = '', output: Output = None,
                machine_file: Machine = None, cores: Cores = None, archive_root: Archive = REPORTS / 'archive', trusted: Trusted = None,
                nodes: Nodes = None, apart: Apart = LEAST_APART / 60, node: Node = None):
        from plumbline import references
        from plumbline.references import proposal
        found = proposal.propose(archive_root, system, output or references.directory() / references.file_of(system, node), sessions, tests,
                                 _peaks(machine_file, cores), trusted or (), nodes or (), 60 * apart, node)
        print('\n'.join(lines(found)))
        if not writes:
            return print('nothing is written; plumbline references accept, with the same options, writes it')
        wrote = proposal.accept(found)
        print(f"{len(found.written)} references from {len(found.sessions)} sessions{'' if wrote else ', as they stand there'}: {found.path}")
    app.command(name, help=text)(command)


_add('propose', 'What the last sessions of good state would change in the references of a system, and how they would have fared.', False)
_add('accept', 'Propose, and write it; review it as a diff.', True)


@app.command()
def check(
    files: Annotated[list[Path] | None, typer.Argument(help='files of references (default: all of config/references)')] = None,
    machine_file: Machine = None, cores: Cores = None,
):
    '''Refuse files of references that are malformed or that no hardware could reach.'''
    from plumbline import references
    files = files or sorted(references.directory().glob('*.yaml'))
    if not files:
        raise PlumblineError(f'{references.directory()}: no file of references; record some')
    for path in files:
        references.check(path, _peaks(machine_file, cores))
        print(f'{path}: in order')


def lines(found):
    '''A :class:`proposal.Proposal` for people: list of lines.'''
    return [*_sessions(found), *_few([f'no reference: {what}: {why}' for what, why in found.skipped], 'of them'),
            *_changes(found), *_of_noise(found), *_fared(found)]


def _few(told, rest):
    return told[:MOST_LINES] + ([f'  ... and {len(told) - MOST_LINES} more {rest}'] if len(told) > MOST_LINES else [])


def _sessions(found):
    yield f"sessions used ({len(found.sessions)}): {', '.join(found.sessions)}"
    if found.seconds < DAY:
        yield f'they span {seconds(found.seconds)}: what differs from day to day is not in them, and may FAIL later'
    yield from _few([f'skipped: {name}: {why}; --with {name} uses it' for name, why in found.excluded], 'sessions')
    yield from _few([f'skipped: node {odd.name} differs by {change(odd.change, 0)}: {odd.where}; --with-node {odd.name} uses it'
                     for odd in found.nodes], 'nodes')


def _changes(found):
    yield (f'references: {len(found.new)} new, {len(found.changed)} changed, {len(found.unchanged)} unchanged, '
           f'{len(found.vanishing)} vanishing')
    if found.staying:
        yield f"  {several(len(found.staying), 'recorded reference')} of skipped metrics: left as in the file"
    changed = []
    for place in found.changed:
        (value, *_, unit), (old, *_), origin = found.written[place][0], found.before[place], found.written[place][1]
        share = f' ({change(value / old - 1)})' if old > 0 else ''
        changed.append(f"  changed: {'/'.join(place)}: {old:g} -> {value:g}{'' if unit == '1' else f' {unit}'}{share}, "
                       f"sees {percent(origin['sees'], 0)}")
    yield from _few(changed, 'changed')
    yield from _few([f"  vanishing: {'/'.join(place)}: {found.before[place][0]:g}" for place in found.vanishing], 'vanishing')


def _of_noise(found):
    seen = by_key((found.noise[place], origin['sees']) for place, (_, origin) in found.written.items())
    yield (f"a run of an unchanged machine has a metric out of bounds with a chance of {percent(found.accepted['false_alarms'])}, divided among "
           f"{found.accepted['metrics']} metrics; a loss is seen, in two runs, with one of 95 %:")
    for noise, losses in sorted(seen.items()):
        freedom, deviation = found.known.priors[noise]
        yield (f'  {noise}: {len(losses)} metrics, {percent(deviation)} between sessions ({freedom:.2g} degrees of freedom), '
               f'sees {percent(statistics.median(losses), 0)} (from {percent(min(losses), 0)} to {percent(max(losses), 0)})')


def _fared(found):
    failing = {session: by for session, by in found.failing.items() if by}
    how = 'in sample: too few to leave each out of its own references' if found.in_sample else 'each left out of its own references'
    expected = len(found.sessions) * found.accepted['false_alarms']
    yield f'of these {len(found.sessions)} sessions {len(failing)} have a metric out of bounds, {expected:.2g} expected ({how})'
    for session, by in failing.items():
        place, value, leaf = max(by, key=lambda one: abs(one[1] / one[2][0] - 1))
        yield f"  {session}: {len(by)}, the farthest {'/'.join(place)}: {value:g}, {change(value / leaf[0] - 1, 0)} of {leaf[0]:g}"
