'''``plumbline expectations``: what a node must have, recorded and checked.  ``plumbline gate``: the file that checks it on nodes.'''

import time
from pathlib import Path
from typing import Annotated, cast

import typer
from typer.core import TyperCommand

from plumbline.errors import PlumblineError
from plumbline.gate.packed.main import MOST_SECONDS, SECONDS, UNKNOWN
from plumbline.gate.packed.node import PATH

expectations = typer.Typer(no_args_is_help=True, help='What a node of a kind must have: record it on a good node, check a node.')
gate = typer.Typer(no_args_is_help=True, help='One file that checks expectations on a node, for prolog, epilog and HealthCheckProgram.')

Commands = Annotated[str, typer.Option('--path', help='where commands (dmidecode, ipmitool, ...) are looked for')]


@expectations.command()
def record(
    kind: Annotated[str, typer.Argument(help='name of this kind of node; of the nodes that ReFrame knows as a partition: SYSTEM-PARTITION')],
    output: Annotated[Path | None, typer.Option(help='file to write (default config/expectations/KIND.yaml)')] = None,
    package: Annotated[list[str] | None, typer.Option(help='a package to record beside the usual ones; may be repeated')] = None,
    service: Annotated[list[str] | None, typer.Option(help='likewise a service of systemd')] = None,
    variable: Annotated[list[str] | None, typer.Option(help='likewise a variable of the environment')] = None,
    path: Commands = PATH,
):
    '''Record what this node, a good one, has.  Where the file exists, severities and fitting forms of it stay; review it as a diff.'''
    from plumbline.gate import files, record as recording
    from plumbline.gate.packed import compare, facts
    file = output or files.path_of(kind)
    files.path_of(kind)
    before = files.load(file) if file.exists() else None
    if before and before['kind'] != kind:
        raise PlumblineError(f"{file}: of the kind {before['kind']}; give --output for {kind}")
    asked = {'package': package or (), 'service': service or (), 'environment': variable or ()}
    names = {group: {*given, *facts.named((before or {}).get('expectations', ()), group)} for group, given in asked.items()}
    found = recording.read(names['package'], names['service'], names['environment'], path)
    lost = [f'{group} {name}' for group, given in asked.items() for name in given if f'{group}.{name}' not in found.facts]
    if lost:
        why = found.why_missing(lost[0].replace(' ', '.', 1))
        raise PlumblineError(f"{lost[0]}: {f'not read: {why.why}' if why else 'not there on this node'}; nothing is written")
    content = recording.expectations(kind, found, before, {f'{group}.{name}' for group, given in asked.items() for name in given})
    changes = recording.unlike(content, before) if before else []
    recording.write(file, content)
    for line in changes:
        print(line)
    for prefix, why in content['not_read'].items():
        print(f'not read: {prefix}: {why}')
    for link, why in recording.skipped(content, found).items():
        print(f'skipped: {link}: {why}')
    for one in compare.differences(content['expectations'], found):
        print(f'not so on this node: {one.text}')
    print(f"{len(content['expectations'])} expectations{f', {len(changes)} changes' if before else ''}: {file}")


#: Of click, which newer versions of typer have inside.
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


class _Check(TyperCommand):
    '''Exit code 2, of all other wrong options, says drain here.'''

    def make_context(self, *args, **more):
        try:
            return super().make_context(*args, **more)
        except _UsageError as error:
            error.exit_code = UNKNOWN       # type: ignore[attr-defined]
            raise


@expectations.command(cls=_Check)
def check(
    file: Annotated[Path, typer.Argument(help='file of expectations')],
    path: Commands = PATH,
    seconds: Annotated[float, typer.Option(help='how long reading may take')] = 60,
):
    '''Check this node; exit 0: as expected, 1: warn, 2: drain, 3: unknown (another kind of node, nothing could be read, the file is wrong).'''
    from plumbline.gate import files
    from plumbline.gate.packed import main
    code = UNKNOWN
    try:
        content = files.load(file)
        if not seconds >= main.least([content]):
            raise PlumblineError(f'--seconds {seconds:g}: give {main.least([content]):g} or more: a second more than mounts may take to answer')
        begun = time.monotonic()
        outcome = main.look([content], seconds, path=path)
        code = outcome.code
        print('\n'.join(main.lines(outcome, time.monotonic() - begun)), flush=True)
    except (PlumblineError, OSError) as error:
        error.exit_code = code or UNKNOWN       # type: ignore[union-attr]
        raise
    raise typer.Exit(code)


@gate.command()
def write(
    file: Annotated[Path, typer.Argument(help='file to write, for a local disk of each node')],
    expected: Annotated[list[Path], typer.Option('--expectations', help='file of expectations; several: one for each kind of node, and each node '
                                                                       'is held against the first that is of its kind')],
    seconds: Annotated[float, typer.Option(help=f'the gate ends after so many, {MOST_SECONDS} at most')] = SECONDS,
    python: Annotated[str, typer.Option(help='Python on the nodes, 3.6 or newer')] = '/usr/bin/python3',
):
    '''Write the gate: one executable file with the expectations in it, which needs nothing but Python on the node.'''
    from plumbline.gate import files, pack
    kinds = [files.load(one) for one in expected]
    pack.write(file, kinds, seconds, python)
    print(f"{file}: {', '.join(one['kind'] for one in kinds)}; try it on a node: {file} --verbose")
