'''What a session answers, a sentence for each of the three questions; their evidence is never mixed in one count.'''

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plumbline.analysis import counts, diagnosis, lines, subsystems
from plumbline.model import good_state, quantity, registry, stamp, verdict

#: No more are named of what is out of bounds: the list follows.
MOST_NAMED = 3

_JUDGED = (verdict.FAIL, verdict.UNSTABLE, verdict.PASS)


@dataclass(frozen=True)
class Answer:
    ''':attr question: :data:`registry.SOFTWARE`, ``SPEED`` or ``MEASUREMENT``.
    :attr verdict: the worst of its evidence; NO REFERENCE where there is none.'''

    question: str
    verdict: str
    text: str


def answers(verdicts: Sequence[lines.Line], session: subsystems.Judged, found: diagnosis.Diagnosis) -> list[Answer]:
    '''The three answers; none where nothing was measured.'''
    if not any(quantity.known(line.value) for line in verdicts):
        return []
    own = {question: [line for line in verdicts if line.question == question] for question in registry.EVIDENCE}
    software, *others = (_software(own[registry.SOFTWARE], session), _speed(own[registry.SPEED], session),
                         _measurement(own[registry.MEASUREMENT], session, found, verdicts))
    theirs = _out_of_bounds([line for line in own[registry.OTHERS] if line.verdict in _JUDGED], _lost(session, registry.OTHERS))
    return [replace(software, text=f'{software.text}; {registry.OTHERS}: {theirs}') if theirs else software, *others]


def _software(own, session):
    judged = [line for line in own if line.verdict in _JUDGED]
    unjudged = sum(line.verdict == verdict.NO_REFERENCE for line in own)
    lost = _lost(session, registry.SOFTWARE)
    if not judged:
        reasons = Counter(lines.one_line(line.unjudged) for line in own if line.unjudged)
        text = f"not judged: {reasons.most_common(1)[0][0] if reasons else 'none of its shares of what this machine gives has a reference'}"
    elif out := _out_of_bounds(judged, lost):
        text = out
    else:
        text = f"gets what this machine gives, as far as is judged: {quantity.several(len(judged), 'share')} within bounds; {counts.power(judged)}"
    return Answer(registry.SOFTWARE, _worst(judged, lost), text + (f'; {unjudged} without a reference' if unjudged and judged else ''))


def _speed(own, session):
    judged = [line for line in own if line.verdict in _JUDGED]
    lost, as_a_whole = _lost(session, registry.SPEED), subsystems.speed(session)
    ruling, text = _worst(judged, lost), _out_of_bounds(judged, lost) or as_a_whole
    alone = sum(not line.expected and quantity.known(line.sees) for line in judged)
    if ruling in (verdict.PASS, verdict.NO_REFERENCE) and alone:
        text = '; '.join(filter(None, (
            as_a_whole, f"{quantity.several(alone, 'comparison')} with datasheet, base clock, the other cores or a single reference within bounds")))
    if ruling == verdict.PASS and not any(one.sees is not None for one in session.rates):
        ruling = verdict.NO_REFERENCE       # a clock within its bounds is not yet a machine as fast as it should be
    return Answer(registry.SPEED, ruling, '; '.join(filter(None, (text or 'not judged: no rate or time was measured', _few_hours(own)))))


def _few_hours(own):
    '''That most references are of sessions of one day, which do not know what days differ by; '' where they are of several.'''
    spans = []
    for expected in {line.expected for line in own if line.expected}:
        names = json.loads(expected)['measured']
        first, last = (stamp.begun(name) for name in (min(names), max(names)))
        if first and last:
            spans.append((last - first).total_seconds())
    span = statistics.median(spans or [good_state.DAY])
    return f'references span {quantity.seconds(span)}' if span < good_state.DAY else ''


def _measurement(own, session, found, verdicts):
    judged, lost = [line for line in own if line.verdict in _JUDGED], _lost(session, registry.MEASUREMENT)
    shown = found.of(registry.MEASUREMENT)
    disturbed, noticed = (', '.join(dict.fromkeys(one.title for one in shown if one.spoils == so)) for so in (True, False))
    said = [f'disturbed: {disturbed}'] if disturbed else []
    if out := _out_of_bounds(judged, lost):
        said.append(out)
    if not said:
        had, steady = (min((line.value for line in own if line.kind == name and quantity.known(line.value)), default=None)
                       for name in ('cpu_availability', 'of_steady'))
        said += [f'the threads had the CPUs for {quantity.percent(had)} of the time, the least of all tests'] if had is not None else []
        said += [f'{quantity.percent(steady)} of the samples, the least, were free of bursts'] if steady is not None else []
    said += [f'noticed: {noticed}'] if noticed else []
    tests = list(dict.fromkeys(line.label for line in verdicts if line.on_one_core))
    if tests and not any(one.rule['name'] == 'one_core' for one in shown):
        said.append(f"two threads were on one core, now and then or always, in {quantity.several(len(tests), 'test')}: {some(tests)}")
    ruling = max(_worst(judged, lost), verdict.UNSTABLE if disturbed else verdict.PASS, key=verdict.SEVERITY.index)
    return Answer(registry.MEASUREMENT, ruling, '; '.join(said) or 'no disturbance was seen')


def _lost(session, question):
    return [one for one in session.subsystems if one.question == question and one.verdict in (verdict.FAIL, verdict.UNSTABLE)]


def _out_of_bounds(judged, lost):
    '''What is not a PASS, the subsystems first; '' where there is nothing.'''
    said = [f"{one.name} {quantity.change(one.change, 0) if one.lost else 'not judged'}" for one in lost]      # its reason says of what state, say
    for ruling, words in ((verdict.FAIL, 'out of bounds'), (verdict.UNSTABLE, 'not to be judged')):
        its = [line for line in judged if line.verdict == ruling]
        if its:
            named = some([f'{line.label} {line.metric} {line.shown_value}' if line.metric else f'{line.label} as a whole' for line in its])
            said.append(f'{len(its)} of {len(judged)} metrics {words}: {named}')
    return '; '.join(said)


def some(names, most=MOST_NAMED, by=', '):
    return by.join(names[:most]) + (f' and {len(names) - most} more' if len(names) > most else '')


def _worst(judged, lost):
    return max((one.verdict for one in (*judged, *lost)), key=verdict.SEVERITY.index, default=verdict.NO_REFERENCE)
