'''The page of a system's history: what became worse and what changed with it, nights as a calendar, each metric's trend.'''

import datetime
import itertools
import json
from collections import Counter

import numpy as np
import polars as pl

from plumbline.analysis import counts
from plumbline.model import changes, grouping, quantity, registry, stamp, verdict
from plumbline.report.document import MARKS, packed, render
from plumbline.report.history import KEY, differences, heading, numbers, when
from plumbline.report.variance import labels

#: More values than these would make a page too large to open: neighbouring sessions become one point.
MOST_POINTS = 250_000

#: Steps whose sessions are looked into for what changed with them: the most improbable first.
MOST_STEPS = 40


def page(root, history, known, losses):
    '''The page's text.

    :arg root: the archive's folder; :arg history: :class:`plumbline.analysis.history.History`.
    :arg known: what :func:`plumbline.analysis.history.courses` says of it.
    :arg losses: that have come to stay, each a :class:`plumbline.report.history.Loss`; None where metrics were named: they are no subsystem.
    '''
    courses, prior = known if losses is not None else ([], None)
    names = labels(history.metrics)
    together = -(-sum(len(one.values) for one in history.metrics.values()) // MOST_POINTS)
    number = {session: index for index, session in enumerate(history.sessions)}
    drawn, found = [], []
    for course in sorted(courses, key=lambda one: (one.kind, one.name)):
        steps = changes.steps(course.values, prior, changes.RATE)
        found += [(one.chance, course.sessions[one.begin - 1], course.sessions[one.begin], course.name, course.kind, one.change) for one in steps]
        values = dict(zip(course.sessions, course.values))
        drawn.append(_row(f'{course.name}: {course.kind}', 'of usual', values, {}, steps, prior, together, number)
                     | {'last': quantity.change(course.values[-1] - 1), 'metrics': course.metrics})
    metrics = []
    for key, series in history.metrics.items():
        steps = changes.steps(list(series.values.values()), series.prior, changes.RATE)
        sessions = list(series.values)
        found += [(one.chance, sessions[one.begin - 1], sessions[one.begin], names[key], '', one.change) for one in steps]
        metrics.append(_row(names[key], series.unit, series.values, series.bands, steps, series.prior, together, number)
                       | {'last': quantity.amount(series.values[sessions[-1]], series.unit), 'verdict': series.verdicts[sessions[-1]]})
    trends = {'sessions': list(map(when, history.sessions)), 'trends': _rounded([row.pop('trend') for row in drawn + metrics])}
    return render(
        'history.html.j2', figures=True, packed_trends=packed(json.dumps(trends, separators=(',', ':'))), history=history,
        heading=list(heading(history)), losses=losses,
        courses=drawn, metrics=metrics, steps=_steps(root, history, found), weeks=_calendar(history), together=together, key=KEY)


def _row(name, unit, values, bands, steps, prior, together, number):
    '''A line of a table and the trend that it opens.'''
    sessions, (count, scatter, sees) = list(values), numbers(list(values.values()), prior)
    return {'name': name, 'count': count, 'scatter': scatter, 'sees': sees,
            'steps': [f'{quantity.change(one.change)} at {when(sessions[one.begin])}' for one in steps],
            'trend': _trend(unit, values, bands, [one.begin for one in steps], together, number)}


def _trend(unit, values, bands, steps, together, number):
    '''What the page draws: points of ``together`` sessions, the band, and the level of each stretch between steps.'''
    numbers, middle = np.array([number[session] for session in values]), np.array(list(values.values()))
    factor, shown = quantity.scale(float(np.median(middle)), unit)
    ends = [0, *steps, len(middle)]
    levels = [[int(numbers[begin]), int(numbers[end - 1]), float(f'{factor * np.median(middle[begin:end]):.5g}')]
              for begin, end in itertools.pairwise(ends)]
    drawn = {'y': _points(factor * middle, together, np.median)}
    if bands:
        low, high = np.array([bands[session] for session in values]).T
        drawn |= {'low': _points(factor * low, together, np.min), 'high': _points(factor * high, together, np.max)}
    return {'unit': shown or 'ratio', 'x': numbers[::together].tolist(), **drawn, 'levels': levels}


def _points(values, together, gathered):
    '''Of so many neighbours each one value.'''
    return values if together == 1 else np.array([gathered(values[begin:begin + together]) for begin in range(0, len(values), together)])


def _rounded(trends):
    '''The trends with five digits of what is drawn: all at once, for a call of polars takes longer than the values of a metric.'''
    drawn = [(trend, name) for trend in trends for name in ('y', 'low', 'high') if name in trend]
    rounded = iter(pl.Series(np.concatenate([trend[name] for trend, name in drawn])).round_sig_figs(5).to_list())
    for trend, name in drawn:
        trend[name] = list(itertools.islice(rounded, len(trend[name])))
    return trends


def _steps(root, history, found):
    '''Of each session with which something became otherwise: when, what, and what of machine and software changed; the latest first.'''
    together = grouping.by_key(((before, begin), (name, kind, quantity.change(change))) for _, before, begin, name, kind, change in sorted(found))
    looked_into = list(together)[:MOST_STEPS]
    changed = {pair: differences(root, history.system, *pair) for pair in looked_into}
    return [{'when': when(pair[1]), 'what': together[pair], 'changed': changed.get(pair)}
            for pair in sorted(together, key=lambda pair: pair[1], reverse=True)]


def _calendar(history):
    '''Weeks, the latest first: (Monday, [day or None] * 7); a day has its date, its worst verdict, and what its sessions judged.'''
    weeks: dict[datetime.date, list] = {}
    days = ((begun.date(), session) for session in history.verdicts if (begun := stamp.begun(session)))
    for day, sessions in grouping.by_key(days).items():
        tallies: dict[str, Counter] = {question: Counter() for question in registry.EVIDENCE}
        for session in sessions:
            for question, its in history.verdicts[session].items():
                tallies[question] += its
        worst = max((ruling for its in tallies.values() for ruling in its), key=verdict.SEVERITY.index, default=verdict.NO_REFERENCE)
        told = '; '.join(f'{question} {counts.those(its)}' for question, its in tallies.items() if its)
        monday = day - datetime.timedelta(days=day.weekday())
        weeks.setdefault(monday, [None] * 7)[day.weekday()] = {
            'day': day, 'mark': MARKS[worst], 'verdict': worst, 'told': f"{day}: {quantity.several(len(sessions), 'session')}; {told}"}
    return sorted(weeks.items(), reverse=True)
