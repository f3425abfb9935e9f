'''The commands ``plumbline nodes``: what is known of the nodes, what people have done with them, and a ticket's text.'''

import contextlib
import itertools
import os
import re
import socket
import time
from typing import Annotated, Literal

import typer
import typer.core

from plumbline.errors import PlumblineError, saying_why
from plumbline.gate.packed.node import natural
from plumbline.model import verdict
from plumbline.model.safe_text import shown
from plumbline.system import trust

SYSTEM = "ReFrame's name of the system (default: the one that sweeps have been run on)"


class _ShowByDefault(typer.core.TyperGroup):
    '''``plumbline nodes n3`` is ``plumbline nodes show n3``.'''

    def parse_args(self, ctx, args):
        known = {*self.commands, *self.get_help_option_names(ctx)}
        return super().parse_args(ctx, args if args and args[0] in known else ['show', *args])


app = typer.Typer(cls=_ShowByDefault,
                  help='When each node was last measured and last seen good, how often it was an outlier, and what was done with it.')

NODES = "names like 'n[1-4,7]'"


@app.command()
def show(
    nodes: Annotated[list[str] | None, typer.Argument(help=f'{NODES}; default: all that are known')] = None,
    partition: Annotated[str | None, typer.Option(help='only nodes that were swept in this one, SYSTEM:PARTITION')] = None,
    system: Annotated[str | None, typer.Option(help=SYSTEM)] = None,
):
    '''A table of the nodes; of one node all that happened to it.  `plumbline nodes` is the same.'''
    from plumbline.report import grid, nodes as report
    if partition and system and partition.partition(':')[0] != system:
        raise PlumblineError(f'--partition {partition} is none of --system {system}: give one of them')
    history = _history(partition.partition(':')[0] if partition else system)
    named = _named(nodes, history)
    names = named or sorted(history.nodes, key=natural)
    names = [name for name in names if not partition or partition in history.nodes[name].partitions]
    if not names:
        raise PlumblineError(f'no node of {partition or history.system} has been measured yet: plumbline sweep')
    for name in names:
        history.nodes[name].look_closer(lambda file: is_fail(file, history.skipped))
    report.render(history, names, grid.terminal(150))
    if len(named) == 1:
        for line in report.steps(history.nodes[names[0]]):
            print(shown(line))


@app.command()
def mark(
    nodes: Annotated[str, typer.Argument(help=NODES)],
    step: Annotated[Literal['drained', 'repaired', 'returned'], typer.Argument(help='what was done')],
    reason: Annotated[str, typer.Option(help='why, or what was replaced')],
    system: Annotated[str | None, typer.Option(help=SYSTEM)] = None,
):
    '''Write down what was done with nodes; nothing is done here.'''
    from plumbline.nodes import events
    history = _history(system)
    named = _named([nodes], history, of_slurm=True)
    events.append(history.system, [{'node': name, 'event': step, 'reason': ' '.join(reason.split()), 'by': _who()} for name in named])
    for name in named:
        print(shown(f'{name}: {step}: {reason}'))
        if step == events.RETURNED:
            node = history.of(name)
            node.look_closer(lambda file: is_fail(file, history.skipped))
            if node.doubt:
                print(shown(f'note: {name} is in doubt: {node.doubt}'))
    if step == events.REPAIRED:
        print(shown(f"next: plumbline sweep --nodes '{nodes}' --mode node, with -C and --partition: it proposes to put back what is healthy"))


@app.command()
def rename(
    pairs: Annotated[list[str], typer.Argument(help="OLD=NEW, as 'n[1-4]=m[1-4]'; all of them at once, so that nodes may exchange their names")],
    system: Annotated[str | None, typer.Option(help=SYSTEM)] = None,
):
    '''Write down that nodes have other names from now on: what was known of the old names is known of the new ones.'''
    from plumbline.nodes import events
    history, at = _history(system), time.time()
    new: dict[str, str] = {}
    for pair in pairs:
        old, _, name = pair.partition('=')
        before, after = _named(_as_written(old), history), _as_written(name)
        if not len(before) == len(after) > 0 or new.keys() & before or {*new.values()} & {*after} or any(map(str.__eq__, before, after)):
            raise PlumblineError(f'{pair}: give OLD=NEW, as many names on both sides, each once, and a new one for each')
        new |= dict(zip(before, after))
    for old, name in new.items():
        sweeps, others = ({one.sweep for one in history.of(which).measured if one.sweep} for which in (old, name))
        if name not in new and sweeps & others:
            raise PlumblineError(f'{old} and {name} were measured by one sweep: they are two nodes')
    files = _references(history.system, new)
    with contextlib.ExitStack() as undo:
        for file in files:      # first aside: nodes may exchange their names
            with saying_why(f'{file}: cannot be renamed', '; nothing is'):
                undo.callback(file.rename(file.with_suffix('.renamed')).rename, file)
        events.append(history.system, [{'at': at, 'node': name, 'event': events.RENAMED, 'was': old, 'by': _who()} for old, name in new.items()])
        undo.pop_all()
    for old, name in new.items():
        both = ', and what was known of that name is of the same node' if name in history.nodes and name not in new else ''
        print(shown(f'{old} is {name} now{both}'))
    for file, new_file in files.items():
        aside = file.with_suffix('.renamed')
        with saying_why(f'{aside}: cannot be renamed', f'; rename it to {new_file} by hand'):
            aside.rename(new_file)
        print(shown(f'{file} is {new_file.name} now'))


def _references(system, new):
    '''The files of renamed nodes' own references: path -> new path.

    :raises PlumblineError: if a new one is there already, and stays.
    '''
    from plumbline import references
    folder = references.directory()
    files = {file: folder / references.file_of(system, name) for old, name in new.items()
             if (file := folder / references.file_of(system, old)).exists()}
    if both := [(old, file) for old, file in files.items() if file.exists() and file not in files]:
        raise PlumblineError(f'{both[0][0]} and {both[0][1].name} would be references of one node: remove one of them')
    return files


@app.command()
def ticket(node: Annotated[str, typer.Argument(help='its name')], system: Annotated[str | None, typer.Option(help=SYSTEM)] = None):
    '''The text of a ticket for the last finding of a node: subsystem, metrics, peers, cause, how often, and what is proposed.'''
    from plumbline.sweep import proposals
    history = _history(system)
    known = history.of(_named([node], history)[0])
    if not known.findings and not known.unmeasured:
        raise PlumblineError(f'{node}: no sweep of {history.system} has found anything wrong with it: there is nothing to write a ticket of')
    print(proposals.of_outlier(history.system, known).ticket, end='')


def _as_written(text):
    '''Names of nodes in the order in which they are written; a set of ClusterShell's is sorted.

    :raises PlumblineError: if it names none, or one twice.
    '''
    from plumbline.system.commands import node_set
    found: list[str] = []
    for word in re.findall(r'(?:\[[^]]*\]|[^,[])+', text):
        parts = re.split(r'\[([^]]*)\]', word)      # every second one stood in brackets
        its = [[name for one in part.split(',') for name in node_set(f'[{one}]')] if number % 2 else [part] for number, part in enumerate(parts)]
        found += map(''.join, itertools.product(*its))
    if sorted(found) != sorted(node_set(text)):
        raise PlumblineError(f"{text!r}: write names like 'n[1-4,7]', each once")
    return found


def is_fail(file, skipped):
    '''Whether a session was a FAIL of a subsystem as a whole.

    :arg skipped: list of texts, to which is added why it cannot be read.
    '''
    import polars as pl

    from plumbline.analysis.session import Session
    from plumbline.store import archive

    def has_lost(session):
        return any(one.verdict == verdict.FAIL for one in session.judged.subsystems)

    try:
        # Without what the tests left it takes a tenth, and finds no less: that only says what explains a loss.
        rows = archive.load_columns(file, pl.exclude('detail', 'record')).with_columns(
            pl.lit(None, archive.SCHEMA[name]).alias(name) for name in ('detail', 'record'))
        return has_lost(Session(rows)) and has_lost(Session.stored(file))
    except PlumblineError as error:
        skipped.append(str(error))
        return False


def _named(texts, history=None, of_slurm=False):
    '''Names of nodes.

    :arg of_slurm: whether it is enough that Slurm knows them.
    :raises PlumblineError: where nothing is known of one, if a history is given.
    '''
    from plumbline.sweep.slurm import of_any_partition
    from plumbline.system.commands import node_set
    named = [name for text in texts or () for name in node_set(text)]
    unknown = [name for name in named if history and name not in history.nodes]
    slurms = of_any_partition(unknown) if unknown and of_slurm else set()
    if unknown := [name for name in unknown if name not in slurms]:
        now = history.names.now(unknown[0], 0)
        nor = ', and Slurm does not know it here' if of_slurm else ''
        why = f'its name is {now} now' if now != unknown[0] else f'no sweep or session of {history.system} has measured it{nor}; is the name right?'
        raise PlumblineError(f"{', '.join(unknown)}: {why}")
    return named


def _history(system):
    from plumbline.nodes import events, history
    known = events.systems()
    if not system and len(known) != 1:
        raise PlumblineError(f"name a system with --system: {', '.join(known)} have journals of nodes" if known else
                             f'no sweep has written a journal of nodes in {events.FOLDER} yet: plumbline sweep, or name a system with --system')
    return history.read(system or known[0])


def _who():
    return f'{trust.user(os.getuid())}@{socket.gethostname()}'
