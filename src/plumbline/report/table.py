'''What the terminal shows of a session, in the order of its page.

The answers stand in the first lines, then what is wrong, with its reason; nothing is told by colour alone, and no row is longer than
the console is wide.
'''

import textwrap
from collections import Counter

from rich.text import Text

from plumbline.analysis import lines, subsystems
from plumbline.analysis.gathered import gathered
from plumbline.model import quantity
from plumbline.model.safe_text import shown
from plumbline.model.subsystems import DISCOVERY_RATE

STYLE = {'FAIL': 'bold red', 'UNSTABLE': 'bold yellow', 'KNOWN ISSUE': 'yellow', 'NO REFERENCE': 'bold cyan', 'PASS': 'green',
         lines.NOT_MEASURED: 'bold cyan'}
SHORT = {'NO REFERENCE': 'NO REF', 'KNOWN ISSUE': 'KNOWN'}
RIGHT = {'value', 'limit', 'spread', 'sees'}
INDENT = '    '

#: More lines than this without a reference are counted, not listed: they would push away what is judged.
MOST_UNJUDGED = 60


def render(session, console, losses=()):
    '''Print the verdicts of one session.

    :arg session: :class:`plumbline.analysis.session.Session`.
    :arg losses: that have come to stay, each a :class:`plumbline.report.history.Loss`.
    :arg console: :class:`rich.console.Console`; its width decides between full and short forms.
    '''
    out = _Printer(console)
    verdicts = session.verdicts
    out.line(Text(_heading(session.rows)))
    out.paragraph(session.not_judged(losses), STYLE['UNSTABLE'], indent='', hanging=INDENT)
    _answers(session, out, in_full=True)
    _diagnosis(session.diagnosis, out)
    for loss in losses:
        out.paragraph(f'FAIL: {loss}', STYLE['FAIL'], indent='', hanging=INDENT)
    _subsystems(session.judged, out)
    _rerun(verdicts, session.judged, out)
    told = [group.line for group in gathered(verdicts)]
    unjudged = [line for line in told if line.verdict == 'NO REFERENCE']
    if len(unjudged) <= MOST_UNJUDGED:
        listed, unjudged = told, []
    else:
        listed = [line for line in told if line.verdict != 'NO REFERENCE']
    if listed:
        _verdicts(listed, out)
    _counted(unjudged, out)
    _caches(verdicts, out)
    _compiler_flags(verdicts, out)
    _not_measured(session.not_measured, out)
    if verdicts:
        out.line()
        _answers(session, out)      # again at the end, where a terminal is read first
        if session.not_measured:
            out.line(Text(f'{len(session.not_measured)} {lines.NOT_MEASURED}', STYLE[lines.NOT_MEASURED]))
        out.paragraph(session.not_judged(losses), STYLE['UNSTABLE'], indent='', hanging=INDENT)


class _Printer:
    '''Lines of text, cut to what the console can show.'''

    def __init__(self, console):
        self.console, self.width = console, console.width

    def line(self, text=''):
        text = text if isinstance(text, Text) else Text(text)
        encodable = Text(self._encodable(text.plain), text.style, spans=text.spans)
        self.console.print(encodable, soft_wrap=True, highlight=False)

    def paragraph(self, text, style='', indent=INDENT, hanging=''):
        '''Words wrapped to the width; every line indented, those after the first by ``hanging`` more.'''
        for number, part in enumerate(textwrap.wrap(' '.join(text.split()), self.width - len(indent) - len(hanging), break_on_hyphens=False)):
            self.line(Text(indent + hanging * (number > 0) + part, style))

    def wrapped(self, text):
        '''The same for styled words.'''
        for number, part in enumerate(text.wrap(self.console, self.width - len(INDENT))):
            part.rstrip()
            self.line(Text(INDENT * (number > 0)).append_text(part))

    def _encodable(self, text):
        encoding = self.console.encoding or 'utf-8'
        return shown(text).encode(encoding, 'replace').decode(encoding)


def _heading(rows):
    if rows.is_empty():
        return 'Plumbline: no rows in this session'
    row = rows.row(0, named=True)
    names = lambda column: ','.join(sorted({str(v) for v in rows[column].drop_nulls()})) or '?'
    hosts = rows['hostname'].drop_nulls().unique().sort().to_list()
    where = hosts[0] if len(hosts) == 1 else f'{len(hosts)} hosts' if hosts else 'unknown host'
    return f"{names('system')}:{names('partition')}  {where}  {row['started']:%Y-%m-%d %H:%M} UTC  {names('environ')}"


def _answers(session, out, in_full=False):
    '''A line for each question: its verdict, and how many of its own metrics and subsystems have which; ``in_full`` with the sentence.'''
    given = {one.question: one for one in session.answers}
    widths = [max(map(len, texts), default=0) for texts in (session.tallies, [one.verdict for one in session.answers])]
    for question, tally in session.tallies.items():
        ruling = given[question].verdict if question in given else ''
        text = Text(f'{question:<{widths[0]}}  ').append(f'{ruling:<{widths[1]}}', STYLE.get(ruling, '')).append(f'  {tally}')
        for name, style in STYLE.items():
            text.highlight_regex(rf'\b[1-9]\d* {name}', style)
        out.wrapped(text)
        if in_full and question in given:
            out.paragraph(f'{given[question].text}.')


def _diagnosis(found, out):
    if found.findings or found.none_fits:
        out.line(Text('What is wrong, and what to look at', 'bold'))
    for one in found.findings:
        out.paragraph(f"{one.title} [{one.rule['confidence']}]", STYLE['UNSTABLE'], indent='  ', hanging='  ')
        out.paragraph('; '.join(one.evidence))
        for what in one.rule['look']:
            out.paragraph(f'look at: {what}', hanging=INDENT)
    out.paragraph(found.none_fits, indent='  ', hanging='  ')


def _caches(verdicts, out):
    '''What of the caches is ours, where that is not all of them: working sets and levels follow it.'''
    for note in dict.fromkeys(note for line in verdicts for note in line.detail.notes_about('caches')):
        out.line(Text(f'caches: {note}', 'bold cyan'))


def _compiler_flags(verdicts, out):
    '''What the site's flags lose on the kernel where that is most: the metric that a site may do something about has no reference.'''
    worst: dict[str, lines.Line] = {}
    for line in sorted((one for one in verdicts if one.metric.startswith('of_best.') and one.value is not None), key=lambda one: one.value):
        worst.setdefault(line.environ, line)
    for environ, line in worst.items():
        out.paragraph(f'compiler flags: {environ}: {line.built} reaches {quantity.percent(line.value, 0)} of the best set of options beside it, '
                      f'{line.display_name}, {line.metric}', 'bold cyan', indent='', hanging=INDENT)


def _verdicts(verdicts, out):
    columns = _columns(verdicts, out.width)
    gap = columns.pop('gap')
    widths = {name: max(len(cell) for cell in [name, *cells]) for name, cells in columns.items()}
    row = lambda cells: gap.join(cell.rjust(widths[name]) if name in RIGHT else cell.ljust(widths[name]) for name, cell in cells.items())
    out.line(Text(row({name: name for name in columns}).rstrip(), 'underline'))
    for index, line in enumerate(verdicts):
        text = Text(row({name: cells[index] for name, cells in columns.items()}).rstrip())
        text.stylize(STYLE[line.verdict], len(text) - len(columns['verdict'][index]))
        out.line(text)
        if line.verdict in ('FAIL', 'UNSTABLE', 'KNOWN ISSUE'):
            out.paragraph(line.reason or 'no reason given')
            if line.shown_least:
                out.paragraph(line.shown_least)
        if line.retried:
            out.paragraph(line.retried)


def _columns(verdicts, width):
    '''Column -> cells; shorter forms, then fewer columns, until they fit the width.'''
    full = {'check': [line.label for line in verdicts], 'metric': [line.metric or '(no metric)' for line in verdicts],
            'value': [line.shown_value for line in verdicts], 'reference': [line.shown_reference for line in verdicts],
            'limit': [line.shown_limit for line in verdicts], 'spread': [line.shown_spread for line in verdicts],
            'sees': [line.shown_sees for line in verdicts], 'verdict': [line.verdict for line in verdicts]}
    short = {'check': full['check'], 'metric': full['metric'], 'value': full['value'], 'bounds': [line.shown_bounds or 'none' for line in verdicts],
             'limit': full['limit'], 'spread': full['spread'], 'sees': full['sees'],
             'verdict': [SHORT.get(line.verdict, line.verdict) for line in verdicts]}
    without = lambda columns, *names: {name: cells for name, cells in columns.items() if name not in names}
    forms = [('  ', full), ('  ', short), (' ', short), (' ', without(short, 'limit')), (' ', without(short, 'limit', 'spread'))]
    for gap, columns in forms:
        if _total(columns, gap) <= width:
            break
    room = width - _total(columns, gap)
    for name in ('check', 'metric'):
        if room < 0:
            widest = max(map(len, columns[name]))
            columns[name] = [_shorten(cell, max(12, widest + room)) for cell in columns[name]]
            room = width - _total(columns, gap)
    return columns | {'gap': gap}


def _total(columns, gap):
    return sum(max(len(cell) for cell in [name, *cells]) for name, cells in columns.items()) + len(gap) * (len(columns) - 1)


def _shorten(text, width):
    '''Text with its middle left out, since both ends tell names apart.'''
    if len(text) <= width:
        return text
    head = (width - 2) // 2
    return f'{text[:head]}..{text[len(text) - (width - 2 - head) :]}'


def _subsystems(session, out):
    '''The subsystems that are judged, and what has probably changed.'''
    if not session.referenced:
        return
    out.line(Text('Subsystems', 'bold'))
    cells = [(f'{one.name}: {one.kind}', f'{one.count} of {one.total} metrics', quantity.change(one.change) if one.change is not None else '',
              f'sees {quantity.percent(one.sees)}' if one.sees is not None else '', one.verdict) for one in session.referenced]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for one, row in zip(session.referenced, cells):
        text = Text('  ' + '  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        text.stylize(STYLE[one.verdict], len(text) - len(one.verdict))
        out.line(text)
        if one.verdict in ('FAIL', 'UNSTABLE'):
            out.paragraph(one.reason)
    if session.changed:
        out.line(Text(f'Probably worse than before (one in {1 / DISCOVERY_RATE:.0f} of these is chance)', 'bold'))
    changed = [f'{line.label} {line.metric}: {line.shown_value}, reference {line.shown_reference}' for line in session.changed]
    for told in quantity.at_most(changed, subsystems.MOST_NAMED):
        out.paragraph(told, indent='  ', hanging='  ')


def _counted(unjudged, out):
    if not unjudged:
        return
    out.line()
    out.line(Text('No reference; the page has the values', 'bold'))
    checks = Counter(line.check for line in unjudged)
    out.paragraph(', '.join(f'{check} {number}' for check, number in checks.items()), indent='  ')


def _not_measured(not_measured, out):
    if not not_measured:
        return
    out.line()
    out.line(Text(f'Not measured ({len(not_measured)})', 'bold'))
    for reason, items in lines.by_reason(not_measured):
        out.paragraph(f"{'; '.join(items)} - {reason}", indent='  ', hanging='  ')


def _rerun(verdicts, session, out):
    commands = subsystems.again(verdicts, session)
    if commands:
        out.line(Text('To run these again', 'bold'))
    for command in commands[: subsystems.MOST_COMMANDS]:
        out.line(f'  {lines.one_line(command)}')
    if len(commands) > subsystems.MOST_COMMANDS:
        out.line(f'  and {len(commands) - subsystems.MOST_COMMANDS} more, in the details of the verdicts on the page')
    out.line()
