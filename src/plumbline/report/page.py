"""The HTML page of a session: one file, no requests (the page's own content policy forbids them)."""

import itertools

from plumbline.analysis import lines, machine_state, outline, subsystems
from plumbline.analysis.gathered import MOST_NODES, gathered
from plumbline.model import records
from plumbline.report import download, environments, figures
from plumbline.report.document import embedded, render
from plumbline.report.figures.common import not_drawn
from plumbline.report.figures.overview import overview
from plumbline.report.figures.roofline import roofline
from plumbline.report.readings import grouped

#: Of more lines than this those that need no attention are folded at first; they, and what else is more than this, are packed.
MOST_LINES, _FOLDED = 60, ('NO REFERENCE', 'PASS')


def page(session, losses=()):
    """The page's text.

    :arg session: :class:`plumbline.analysis.session.Session`.
    :arg losses: that have come to stay, each a :class:`plumbline.report.history.Loss`.
    """
    rows, verdicts, judged = session.rows, session.verdicts, session.judged
    details = results(session)
    small, drawn = _drawn(overview(figures.first_hosts(details))), _compared(details) + _figures(details, set(rows['check']))
    per_check, total = machine_state.time_rows(session.cases, session.info)
    groups = gathered(verdicts)
    saved, complete = download.table([line for group in groups for line in group.lines])
    firsts = itertools.accumulate((len(group.lines) for group in groups), initial=0)
    worst = len(groups) if len(groups) <= MOST_LINES else min(MOST_LINES, sum(group.line.verdict not in _FOLDED for group in groups))
    commands = subsystems.again(verdicts, judged)
    return render('page.html.j2', figures=any(item['data'] for item in small + drawn), download=saved if verdicts else None, head=_head(rows),
                  session=session.info, tallies=session.tallies, answers=session.answers, not_judged=session.not_judged(losses),
                  subsystems=judged.referenced, changed=judged.changed[: subsystems.MOST_NAMED], losses=losses, diagnosis=session.diagnosis,
                  unnamed=len(judged.changed[subsystems.MOST_NAMED :]), commands=commands[: subsystems.MOST_COMMANDS],
                  more_commands=len(commands[subsystems.MOST_COMMANDS :]), groups=list(zip(groups, firsts)), worst=worst,
                  folded=_FOLDED if len(groups) > worst else (), nodes=len({line.hostname for line in verdicts}), most_nodes=MOST_NODES,
                  complete=complete, rulings={line.verdict for line in verdicts}, unmeasured=len(session.not_measured),
                  not_measured=lines.by_reason(session.not_measured),
                  places=[name for name in ('partition', 'environ', 'hostname') if len({getattr(line, name) for line in verdicts}) > 1],
                  overview=small, drawn=drawn, per_check=per_check, total=total, machine=machine_state.machine_rows(details),
                  software=machine_state.software_rows(details, session.info), notes=machine_state.notes(details))


def results(session):
    '''The results of the last runs, with what the archive knows of each, those with a FAIL first; whole are those that are drawn.'''
    order: dict[tuple, int] = {}
    labels: dict[tuple, str] = {}
    for number, line in enumerate(session.verdicts):
        order.setdefault(line.case, number), labels.setdefault(line.case, line.label)
    details = {}
    for case, runs in sorted(session.cases.items(), key=lambda item: order.get(item[0], len(session.verdicts))):
        last, detail = runs[-1], lines.detail_of(runs[-1])
        if detail and not last[0].get('foreign'):       # whose names may be those of ours, and which leave nothing to draw
            known = {key: last[0][key] for key in ('check', 'test', 'parameters', 'repetition', 'system', 'partition', 'environ', 'hostname',
                                                   'level', 'threads')}
            details[case] = detail.as_json() | known | {'case': case, 'label': labels.get(case, last[0]['check']),
                                              'metrics': [row for row in last if row['metric'] is not None]}
    drawn = [figures.first_hosts(details.values()), *(figures.first_places(its) for _, its in grouped(details.values(), lambda one: one['check']))]
    for case, whole in session.whole({detail['case'] for its in drawn for detail in its}).items():
        details[case] |= {key: whole[key] for key in outline.DRAWN if key in whole} | {'records': records.pooled(whole.get('records') or [])}
    return list(details.values())


def _drawn(found):
    '''What the template shows of (title, caption, drawing, words...): plotly's JSON of a figure, a table, or neither.'''
    drawn = []
    for title, caption, drawing, *words in found:
        table = drawing if isinstance(drawing, figures.Table) else None
        drawn.append({'title': title, 'caption': caption, 'table': table, 'data': None if drawing is None or table else embedded(drawing),
                      'words': words})
    return drawn


def _compared(details):
    first = figures.first_hosts(details)
    others = f' Of {figures.MOST_PLACES} nodes, those with a FAIL first.' * (len(first) < len(details))
    return _drawn((*roofline(figures.first_places(details)),
                   *((title, caption + others, figure) for title, caption, figure in environments.figures(first))))


def _figures(details, ran):
    """For each check that has figures and ran: title, caption, and plotly's JSON or a table, or neither."""
    drawn = []
    for check in (check for check in figures.FIGURES if check in ran):
        own = [detail for detail in details if detail['check'] == check]
        drawn += _drawn(figures.of_check(check, own) if own else [not_drawn(check, 'this check left no result in this session')])
    return drawn


def _head(rows):
    first = rows.row(0, named=True) if not rows.is_empty() else {}
    distinct = lambda column: sorted({str(value) for value in rows[column].drop_nulls()}) if first else []
    started = first.get('started')
    return {'session': first.get('session') or 'unknown', 'started': f'{started:%Y-%m-%d %H:%M} UTC' if started else '-'} | {name: distinct(name)
        for name in ('system', 'partition', 'environ', 'hostname')}
