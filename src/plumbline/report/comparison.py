'''The terminal's table of what changed between sessions, the worst first.'''

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rich.table import Table
from rich.text import Text

from plumbline.comparison import compare
from plumbline.model import grouping, quantity, registry, verdict
from plumbline.model.parameters import as_words
from plumbline.model.safe_text import shown
from plumbline.report.grid import grid

STYLE = {compare.FAILED: 'bold red', compare.SLOWER: 'bold red', compare.GONE: 'bold red', compare.CHANGED: 'bold yellow',
         compare.UNCLEAR: 'bold yellow', compare.FASTER: 'green', compare.NEW: 'cyan', compare.WITHIN: ''}

#: Nothing has become of the metric itself: it is judged now.
_REFERENCE_NOW = (verdict.NO_REFERENCE, verdict.PASS)

#: Told as one row for each reason, not for each metric.
_BY_REASON = (compare.GONE, compare.NEW)


def render(found, console):
    '''Print a :class:`plumbline.comparison.compare.Comparison`.'''
    nodes = sorted({name for change in found.changes for name in change.nodes if name})
    where = nodes[0] if len(nodes) == 1 else f'{len(nodes)} nodes'
    for text in (f"{found.system} ({where}): {found.after} after {', '.join(found.before)}", *summary(found), *power(found)):
        console.print(text, highlight=False, markup=False)
    for part in found.slower:
        console.print(Text(f'slower as a whole: {of_part(part)}', STYLE[compare.SLOWER]), soft_wrap=True)
    for part in found.undecided:
        error = quantity.percent(part.score.error, 0)
        console.print(Text(f'not judged, its processes scatter by {error}: {of_part(part)}', STYLE[compare.UNCLEAR]), soft_wrap=True)
    for text in map(of_incomparable, found.incomparable):
        console.print(Text(text, STYLE[compare.UNCLEAR]), soft_wrap=True)
    shown = list(gathered(change for change in found.changes if change.kind != compare.WITHIN))
    if shown:
        notes = {text: str(number) for number, text in enumerate(dict.fromkeys(filter(None, map(remark, shown))), 1)}
        console.print(_table(shown, notes, console.width))
        for text, number in notes.items():
            console.print(f'[{number}] {text}', highlight=False, markup=False)
    for text in (*again(found), *other_verdicts(found.changes)):
        console.print(text, highlight=False, markup=False)
    console.print(_state(found.state) if found.state else 'Nothing that is recorded of machine and software has changed.', highlight=False)
    for text in summary(found):
        console.print(text, highlight=False)


def of_incomparable(part):
    node, name = part
    return f"not judged, nothing of it is comparable: {name}{f' of {node}' if node else ''}"


def summary(found):
    '''Of each question how many of its metrics became what, with the terminal's colours: a line each.'''
    counts = {question: Counter(change.kind for change in found.changes if change.question == question) for question in registry.EVIDENCE}
    told = []
    for question, its in counts.items():
        text = Text(f'{question:<{len(registry.MEASUREMENT)}} ')
        for number, kind in enumerate(compare.KINDS):
            text.append(', ' if number else ' ').append(f'{its[kind]} {kind}', STYLE[kind] if its[kind] else '')
        told += [text] if its else []
    return told


def power(found):
    '''Lines: the loss that would have been seen, of a metric and of each subsystem.'''
    seen = sorted(change.sees for change in found.changes if change.sees)
    if not seen:
        return ['no loss would have been seen: no metric is comparable']
    told = [f'would have seen a loss of {quantity.percent(seen[len(seen) // 2])} (median of the metrics), {quantity.percent(seen[-1])} (the worst)']
    parts = grouping.by_key((part.name, part.sees) for part in found.parts)
    listed = '; '.join(f'{name} {quantity.percent(sorted(shares)[len(shares) // 2])}' for name, shares in sorted(parts.items()))
    more = [] if len(found.before) > 1 else ['name several sessions before, and smaller losses are seen']
    return told + ([f'and of a subsystem: {listed}'] if listed else []) + more


def again(found):
    '''What measures again that which is said to be worse: one session may be an accident of its hour.'''
    names = sorted({shown(change.name) for change in found.wrong}.union(*(part.checks for part in (*found.slower, *found.undecided))))
    return [f"to confirm it, measure again, and name that session with --after, too: reframe ... -n '^({'|'.join(names)})' -r"] if names else []


def of_part(part):
    '''What became of a subsystem, with the metric that changed most.'''
    worst, where = part.score.members[0], f' of {part.node}' if part.node else ''
    return (f'{part.name}{where} {quantity.change(part.score.change)} over {len(part.score.members)} metrics, '
            f'most {worst.name} {quantity.change(worst.value / worst.expected.middle - 1)}')


def gathered(changes):
    '''The changes; those that are told by reason, as one each.'''
    keys = lambda number, one: (one.kind, one.partition, one.environ, one.nodes, one.reason) if one.kind in _BY_REASON else number
    for several in grouping.by_key((keys(number, change), change) for number, change in enumerate(changes)).values():
        names, first = dict.fromkeys(change.name for change in several), several[0]
        yield first if len(several) == 1 else replace(
            first, check=', '.join(names), metric=f'{len(several)} metrics', before=None, after=None, verdicts=(None, None))


def _table(changes, notes, width):
    columns: dict[str, Callable[[compare.Change], Any]] = {
        'change': lambda change: Text(change.kind, STYLE[change.kind]), 'check': lambda change: as_words(change.check),
        'metric': lambda change: change.metric or '(the test)'}
    columns |= {name: operator.attrgetter(name) for name in ('partition', 'environ') if len({getattr(change, name) for change in changes}) > 1}
    if len({name for change in changes for name in change.nodes if name}) > 1:
        columns['node'] = lambda change: both(change.nodes)
    columns |= {'before': lambda change: quantity.amount(change.before, change.unit),
                'after': lambda change: quantity.amount(change.after, change.unit, change.before), 'by': by,
                'sees': lambda change: quantity.percent(change.sees), 'note': lambda change: notes.get(remark(change), '')}
    numbers = ('before', 'after', 'by', 'sees', 'note')
    rows = [[show(change) for show in columns.values()] for change in changes]
    widest = {name: max(len(name), *(len(cell) for cell in cells)) for name, *cells in zip(columns, *rows)}
    widest['check'] = max(len(word) for change in changes for word in as_words(change.check).split())
    whole = sum(widest.values()) + len(widest) + 1 <= width      # else names are folded: no number is cut off
    return grid(columns, rows, right=numbers, whole={*columns} - {'check'} if whole else numbers, padding=0)


def both(texts):
    '''One text where both are the same, or only one is there.'''
    before, after = texts
    return f'{before} -> {after}' if before and after and before != after else after or before or ''


def by(change):
    '''How far after is from before, as text.'''
    return '-' if change.ratio is None else quantity.change(change.ratio - 1)


def remark(change):
    '''What else is to be said of a change.'''
    before, after = change.verdicts
    other = before and after and before != after and change.verdicts != _REFERENCE_NOW
    return '; '.join(filter(None, [f'{before} -> {after}' if other else '', change.reason]))


def other_verdicts(changes):
    '''Lines on the verdicts that changed although the metric did not by more than noise, and on how many are judged since.'''
    told = grouping.by_key((change.verdicts, f'{as_words(change.check)} {change.metric}') for change in changes
                           if change.kind == compare.WITHIN and None not in change.verdicts and len(set(change.verdicts)) > 1)
    told.pop(_REFERENCE_NOW, None)
    judged = sum(change.verdicts == _REFERENCE_NOW for change in changes)
    return [f"{' -> '.join(verdicts)}, within noise: {', '.join(metrics)}" for verdicts, metrics in told.items()] + (
        [f"{quantity.several(judged, 'metric')} that had no reference before {'PASS' if judged > 1 else 'PASSes'} now"] if judged else [])


def _state(differing):
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for label, before, after in differing:
        for number, text in enumerate([f'- {text}' for text in before] + [f'+ {text}' for text in after]):
            table.add_row(Text('' if number else label), Text(text))
    told = Table.grid()
    told.add_row(Text('What else is not the same (- before, + after):', 'bold'))
    told.add_row(table)
    return told
