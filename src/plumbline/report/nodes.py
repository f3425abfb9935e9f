'''The terminal's table of what is known of each node.'''

from rich.text import Text

from plumbline.model.grouping import by_key
from plumbline.model.quantity import several
from plumbline.nodes import events
from plumbline.report.grid import grid
from plumbline.sweep.slurm import folded, when


def render(history, names, console):
    '''Print what is known (:class:`plumbline.nodes.history.History`) of these nodes, in the order of the rows; of one that may be nothing.'''
    def say(text):
        console.print(Text(text), soft_wrap=True)

    nodes = [history.of(name) for name in names]
    columns = ('node', 'measured', 'verdict', 'seen good', 'outlier', 'node-hours', 'since then')
    console.print(grid(columns, map(_cells, nodes), right=('outlier', 'node-hours')))
    for doubt, those in by_key((node.doubt, node.name) for node in nodes if node.doubt).items():
        say(f'in doubt: {folded(those)}: {doubt}')
    if history.sweeps:
        each = f'{history.hours / history.findings:.2f} node-hours per finding' if history.findings else 'no finding'
        say(f"{several(history.sweeps, 'sweep')}, {history.hours:.2f} node-hours, {several(history.findings, 'finding')}: {each}")
    for text in history.skipped:
        say(f'skipped: {text}')


def _cells(node):
    count, sweeps = node.offences()
    verdict = node.last.word if node.last else ''
    return (node.name, when(node.last.at) if node.last else 'never', verdict, when(node.last_good) if node.last_good else 'never',
            f'{count} of {sweeps}' if sweeps else '', f'{node.hours:.2f}' if node.hours else '', _step(node))


def _step(node):
    '''What was last proposed or done, and when.'''
    if not node.steps:
        return ''
    step = node.steps[-1]
    if step['event'] == events.PROPOSED:
        return f"proposed {when(step['at'])}: {step.get('action', '?')}"
    return f"{step['event']} {when(step['at'])}: {step.get('reason', '')}"


def steps(node):
    '''Yield all that is known of one node, in the order of time, a line each.'''
    lines = [(one.at, f"measured{f' by sweep {one.sweep}' if one.sweep else ''}: {one.word}") for one in node.measured]
    lines += [(one['at'], f"sweep {one.get('sweep', '?')}: {one.get('state', 'failed')}: {one.get('reason', '')}") for one in node.failed]
    lines += [(one['at'], f"renamed by {one.get('by', '?')}: was {one['was']}") for one in node.renamed]
    for one in node.steps:
        what = f"proposed to {one.get('action', '?')} by sweep {one.get('sweep', '?')} ({one.get('how', '?')})"
        done = f"{one['event']} by {one.get('by', '?')}: {one.get('reason', '')}"
        lines.append((one['at'], what if one['event'] == events.PROPOSED else done))
    for at, text in sorted(lines):
        yield f'{when(at)}  {text}'
