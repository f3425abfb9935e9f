'''The verdicts of a session as JUnit XML, for continuous integration: red where, and only where, ``plumbline report`` does not end with 0.

ReFrame's own ``--report-junit`` knows neither subsystems nor losses that last, and nothing of UNSTABLE and NO REFERENCE.
'''

from xml.etree import ElementTree as xml

from plumbline.model import grouping, verdict
from plumbline.model.safe_text import shown

#: Verdict -> element below a test case: a metric that is UNSTABLE among others that PASS is no failure of the session.
_ELEMENTS = {verdict.FAIL: 'failure', verdict.UNSTABLE: 'skipped', verdict.NO_REFERENCE: 'skipped', verdict.KNOWN_ISSUE: 'skipped'}


def junit(session, losses=()):
    '''The document, a text.

    :arg session: :class:`plumbline.analysis.session.Session`.
    :arg losses: that have come to stay, each a :class:`plumbline.report.history.Loss`.
    '''
    root = xml.Element('testsuites', name='plumbline')
    started = session.rows['started'][0]

    def suite(name, host=''):
        return xml.SubElement(root, 'testsuite', name=_text(name), hostname=_text(host), timestamp=started.isoformat(timespec='seconds'))

    for its in grouping.by_key((line.case, line) for line in session.verdicts).values():
        within = suite(its[0].label, its[0].hostname)
        for line in its:
            case = _case(within, its[0].label, line.metric or 'the test', line.verdict, line.reason)
            if line.metric:
                xml.SubElement(case, 'system-out').text = _text(_value(line))
        if verdict.is_undecided((line.verdict, line.sees) for line in its):
            _case(within, its[0].label, 'the test', 'NOT JUDGED', 'something is UNSTABLE, and nothing PASSes that sees a loss', 'error')
    within = suite('not measured')
    for one in session.not_measured:
        _case(within, one.label, one.metric or 'all', 'not measured', one.reason, 'error' if one.recorded else 'skipped')
    within = suite('subsystems')
    for one in session.judged.subsystems:
        _case(within, one.name, one.kind, one.verdict, one.reason, 'error' if one.verdict == verdict.UNSTABLE else None)
    within = suite('the session')
    ruled, properties = {one.question: f'{one.verdict}: ' for one in session.answers}, xml.SubElement(within, 'properties')
    told = {question: ruled.get(question, '') + tally for question, tally in session.tallies.items()}
    for question, text in told.items():
        xml.SubElement(properties, 'property', name=question, value=_text(text))
    for loss in losses:
        _case(within, 'losses that last', loss.name, verdict.FAIL, loss.text)
    status, (end, _, why) = session.exit_status(losses), session.not_judged(losses).partition(': ')
    element, ruling = {0: (None, verdict.PASS), 1: ('failure', verdict.FAIL)}.get(status, ('error', end))
    if not element and session.answers and all(one.verdict == verdict.NO_REFERENCE for one in session.answers):
        element, ruling = 'skipped', verdict.NO_REFERENCE      # nothing was judged, which is no success either
    _case(within, 'exit code of plumbline report', session.rows['session'][0], ruling,
          why if status > 1 else '; '.join(map(' '.join, told.items())), element)
    for one in root:
        counts = {name: str(len(one.findall(f'testcase/{name}'))) for name in ('failure', 'error', 'skipped')}
        one.attrib.update(tests=str(len(one.findall('testcase'))), failures=counts['failure'], errors=counts['error'], skipped=counts['skipped'])
    xml.indent(root)
    return xml.tostring(root, encoding='unicode', xml_declaration=True) + '\n'


def _case(suite, classname, name, ruling, reason, element=None):
    case = xml.SubElement(suite, 'testcase', classname=_text(classname), name=_text(name))
    element = element or _ELEMENTS.get(ruling)
    if element:
        xml.SubElement(case, element, type=_text(ruling), message=_text(f'{ruling}: {reason}'))
    return case


def _value(line):
    bounds = f', expected {line.shown_reference}' if line.reference is not None else ''
    sees = f', sees a loss of {line.shown_sees}' if line.sees else ''
    return f'{line.verdict}: {line.shown_value} (spread {line.shown_spread}){bounds}{sees}'


def _text(text):
    '''What XML can hold: no control characters, no half of a pair.'''
    return shown(str(text or '')).encode('utf-8', 'replace').decode()
