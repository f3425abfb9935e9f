"""The HTML page of a session: one file, no requests (the page's own content policy forbids them)."""

from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from plumbline.analysis import disturbances, lines, machine_state, subsystems
from plumbline.model import quantity, records
from plumbline.report import environments, figures
from plumbline.report.figures.roofline import roofline

#: Verdict -> mark that survives grey-scale print.
MARKS = {'FAIL': '\u2716', 'UNSTABLE': '\u2248', 'KNOWN ISSUE': '\u2691', 'NO REFERENCE': '?', 'PASS': '\u2714', lines.NOT_MEASURED: '\u2013'}


def page(rows, losses=()):
    """The page's text.

    :arg rows: the archive's rows of one session (polars).
    :arg losses: that have come to stay, texts.
    """
    verdicts, left_out = lines.verdict_lines(rows), lines.not_measured(rows)
    session, judged = lines.session_info(rows), subsystems.judge(verdicts)
    details = results(rows, verdicts)
    drawn = _compared(details) + _figures(details, set(rows['check']))
    per_check, total = machine_state.time_rows(rows, session)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, '.'), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        'seconds': quantity.seconds,
        'percent': quantity.percent,
        'field': lambda name, line: getattr(line, name),
    }
    environment.tests['known'] = quantity.known
    return environment.get_template('page.html.j2').render(
        head=_head(rows),
        session=session,
        counts=lines.count(verdicts, left_out),
        about=[text for text in (lines.power(verdicts), subsystems.speed(judged)) if text],
        subsystems=[one for one in judged.subsystems if one.count],
        changed=judged.changed[: subsystems.MOST_NAMED],
        unnamed=len(judged.changed[subsystems.MOST_NAMED :]),
        losses=losses,
        warnings=disturbances.warnings(verdicts),
        marks=MARKS,
        verdicts=verdicts,
        measured=any(quantity.known(line.value) for line in verdicts),
        left_out=lines.by_reason(left_out),
        places=[
            name for name in ('partition', 'environ', 'hostname') if len({getattr(line, name) for line in verdicts}) > 1
        ],
        figures=drawn,
        per_check=per_check,
        total=total,
        machine=machine_state.machine_rows(details),
        software=machine_state.software_rows(details, session),
        notes=machine_state.notes(details),
        style=Markup(resources.files(__package__).joinpath('page.css').read_text(encoding='utf-8')),
        plotly=Markup(get_plotlyjs()) if any(item['data'] for item in drawn) else None,
    )


def results(rows, verdicts):
    '''The results of the last runs, with what the archive knows of each: those with a FAIL first.'''
    order: dict[tuple, int] = {}
    labels: dict[tuple, str] = {}
    for number, line in enumerate(verdicts):
        order.setdefault(line.case, number), labels.setdefault(line.case, line.label)
    found = []
    for case, runs in lines.case_runs(rows).items():
        last = runs[-1]
        detail = lines.detail_of(last)
        if detail.get('records'):
            detail['records'] = records.pooled(detail['records'])
        if detail:
            known = {
                key: last[0][key]
                for key in (
                    'check',
                    'test',
                    'display_name',
                    'system',
                    'partition',
                    'environ',
                    'hostname',
                    'level',
                    'threads',
                )
            }
            found.append(
                (
                    order.get(case, len(verdicts)),
                    detail
                    | known
                    | {
                        'label': labels.get(case, last[0]['check']),
                        'metrics': [row for row in last if row['metric'] is not None],
                    },
                )
            )
    return [detail for _, detail in sorted(found, key=lambda item: item[0])]


def _compared(details):
    return [
        {'title': title, 'caption': caption, 'table': None, 'data': embedded(figure)}
        for title, caption, figure in (*roofline(details), *environments.figures(details))
    ]


def _figures(details, ran):
    """For each check that has figures and ran: title, caption, and plotly's JSON or a table, or neither."""
    drawn: list[dict[str, Any]] = []
    for check in (check for check in figures.FIGURES if check in ran):
        own = [detail for detail in details if detail['check'] == check]
        if not own:
            drawn.append(
                {
                    'title': check,
                    'caption': 'Not drawn: this check left no result in this session.',
                    'data': None,
                    'table': None,
                }
            )
            continue
        for title, caption, drawing in figures.of_check(check, own):
            table = drawing if isinstance(drawing, figures.Table) else None
            drawn.append(
                {
                    'title': title,
                    'caption': caption,
                    'table': table,
                    'data': None if drawing is None or table else embedded(drawing),
                }
            )
    return drawn


def embedded(figure):
    """A figure's JSON that may stand inside a script element."""
    return Markup(figure.to_json().replace('<', '\\u003c'))


def _head(rows):
    first = rows.row(0, named=True) if not rows.is_empty() else {}
    distinct = lambda column: sorted({str(value) for value in rows[column].drop_nulls()}) if first else []
    started = first.get('started')
    return {
        'session': first.get('session') or 'unknown',
        'started': f'{started:%Y-%m-%d %H:%M} UTC' if started else '-',
    } | {name: distinct(name) for name in ('system', 'partition', 'environ', 'hostname')}
