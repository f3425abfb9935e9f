'''The page of a comparison: before and after an upgrade, one file that opens offline.'''

import operator
from collections import Counter

from plumbline.comparison import compare
from plumbline.model import quantity, registry
from plumbline.report import download, drawing
from plumbline.report.comparison import again, both, by, gathered, of_incomparable, of_part, other_verdicts, power, remark, summary
from plumbline.report.document import embedded, render

#: What became of a metric -> (verdict whose look it has, mark that survives grey-scale print).
LOOKS = {compare.FAILED: ('fail', '\u2716'), compare.SLOWER: ('fail', '\u25bc'), compare.GONE: ('fail', '\u2205'),
         compare.CHANGED: ('unstable', '\u2260'), compare.UNCLEAR: ('unstable', '\u2248'), compare.FASTER: ('pass', '\u25b2'),
         compare.NEW: ('no-reference', '+'), compare.WITHIN: ('pass', '=')}

_CAPTION = ('After over before, the weighted mean of the metrics of each subsystem; whiskers: the change that is seen with a probability of 95 %. '
            'Left of the line: worse.')

#: What the button saves, of each change.
COLUMNS = {title: operator.attrgetter(name) for title, name in {
    'change': 'kind', 'check': 'check', 'metric': 'metric', 'partition': 'partition', 'environment': 'environ', 'before': 'before', 'after': 'after',
    'unit': 'unit', 'after over before': 'ratio', 'sees': 'sees', 'by chance': 'chance', 'reason': 'reason'}.items()} | {
    'node': lambda change: both(change.nodes), 'verdict before': lambda change: change.verdicts[0],
    'verdict after': lambda change: change.verdicts[1]}


def page(found):
    '''The page's text, of a :class:`plumbline.comparison.compare.Comparison`.'''
    rows = [{'kind': change.kind, 'check': change.check, 'metric': change.metric or '(the test)', 'place': f'{change.partition} {change.environ}',
             'node': both(change.nodes), 'before': quantity.amount(change.before, change.unit),
             'after': quantity.amount(change.after, change.unit, change.before), 'by': by(change), 'sees': quantity.percent(change.sees),
             'remark': remark(change)} for change in gathered(found.changes)]
    counts = {kind: sum(change.kind == kind for change in found.changes) for kind in compare.KINDS}
    figure = {'title': 'Subsystems', 'caption': _CAPTION, 'data': embedded(_figure(found.parts))} if found.parts else None
    return render('upgrade.html.j2', figures=bool(figure), download=download.columns(found.changes, COLUMNS), found=found, rows=rows,
                  counts=counts, looks=LOOKS, drawn=figure, statement=statement(found), summary=[text.plain for text in summary(found)],
                  power=power(found), slower=list(map(of_part, found.slower)), again=again(found), others=other_verdicts(found.changes),
                  undecided=[*(f'for noise: {of_part(part)}' for part in found.undecided), *map(of_incomparable, found.incomparable)])


def statement(found):
    '''The answer, a sentence.'''
    if found.exit_status == 1:
        of_each = Counter(change.question for change in found.wrong)
        worse = [f"{question} {quantity.several(of_each[question], 'metric')}" for question in registry.EVIDENCE if of_each[question]]
        worse += [quantity.several(len(found.slower), 'subsystem')] if found.slower else []
        return f"Worse than before: {', '.join(worse)}."
    if found.exit_status == 3:
        return 'Of a part nothing can be said: for noise, or for want of anything that is comparable.'
    compared = [change.kind for change in found.changes if None not in (change.before, change.after)]
    unclear = compared.count(compare.UNCLEAR)
    return 'Nothing is worse than before by more than noise' + (f', which leaves {unclear} of {len(compared)} metrics unclear.' if unclear else '.')


def _figure(parts):
    figure = drawing.empty(90 + 30 * len(parts))
    names = [drawing.plain_text(f'{part.name} of {part.node}' if part.node else part.name) for part in parts]
    changes = [100 * part.score.change for part in parts]
    figure.add_scatter(x=changes, y=names, mode='markers', showlegend=False, marker={'size': 9, 'color': drawing.INK},
                       error_x={'type': 'data', 'array': [100 * part.sees for part in parts], 'thickness': 1.3, 'width': 5},
                       hovertemplate='%{y}: %{x:+.1f} %<extra></extra>')
    figure.add_vline(x=0, line={'color': drawing.GREY, 'width': 1})
    figure.update_xaxes(title='change (%)')
    figure.update_yaxes(autorange='reversed', showgrid=True)
    return figure
