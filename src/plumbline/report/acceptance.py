'''The acceptance document: HTML for paper, and as PDF by WeasyPrint where that is.'''

from importlib import metadata
from pathlib import Path

from plumbline.analysis import counts
from plumbline.analysis.answers import some
from plumbline.comparison.acceptance import basis
from plumbline.errors import PlumblineError
from plumbline.model import registry, verdict
from plumbline.report import save_file
from plumbline.report.document import render

VERDICTS = {
    verdict.FAIL: 'Out of bounds: {those} judged values FAIL{lasting}{nodes}{broken}.',
    verdict.UNSTABLE: 'Not decided: {those} judged values could not be told for noise{unmeasured}{uncertain}; none FAILs{nodes}{broken}.',
    verdict.KNOWN_ISSUE: 'Within bounds but for known issues: {those} judged values{nodes}.',
    verdict.NO_REFERENCE: 'Not judged in full: {passed} judged values are within bounds; not judged: {unjudged}{nodes}{broken}.',
    verdict.PASS: 'Within bounds: {passed} judged values PASS.',
}


def write(found, names, path):
    '''Write the document to a file whose name ends with ``.pdf`` or ``.html``; its path.

    :arg found: :class:`plumbline.comparison.acceptance.Acceptance`.
    :arg names: what the site's file says (``schemas/acceptance.json``); None: lines to fill in.
    :raises PlumblineError: if it cannot be written, or WeasyPrint or its libraries are missing.
    '''
    path = Path(path)
    if path.suffix not in ('.html', '.pdf'):
        raise PlumblineError(f'{path}: a document is .pdf or .html')
    made = text(found, names)
    return save_file(_pdf(made) if path.suffix == '.pdf' else made, path)


def text(found, names):
    '''The document's HTML.'''
    titles = ', '.join(dict.fromkeys(one.course.title for one in found.losses))
    uncertain = [one.text for session in found.sessions for one in session.answers
                 if (one.question, one.verdict) == (registry.MEASUREMENT, verdict.UNSTABLE)]
    of_each = {ruling: ', '.join(f'{question} {its.get(ruling, 0)} of {found.judged[question]}' for question, its in found.counts.items())
               for ruling in (found.verdict, verdict.PASS)}
    broken = [f'{session.name} (by {session.broken_off})' for session in found.sessions if session.broken_off]
    unjudged = ', '.join(found.unjudged) or ('tests that are missing' if broken else 'some nodes')
    parts = {'those': of_each[found.verdict], 'passed': of_each[verdict.PASS], 'unjudged': unjudged,
             'nodes': f'; nodes not in order, not measured, or not judged: {some([node for _, node, _ in found.nodes])}' if found.nodes else '',
             'lasting': f'; lasting loss: {titles}' if titles else '',
             'broken': f'; broken off before its end: {some(broken)}' if broken else '',
             'uncertain': f'; the measurement: {some(list(dict.fromkeys(uncertain)), 1)}' if uncertain else '',
             'unmeasured': f', {found.unmeasured} that have references were not measured' if found.unmeasured else ''}
    return render('acceptance.html.j2', figures=False, found=found, names=names or {}, basis=basis, version=metadata.version('plumbline'),
                  statement=VERDICTS[found.verdict].format(**parts),
                  tallies={question: counts.in_words(its) for question, its in found.counts.items()})


def _pdf(html):
    try:
        from weasyprint import HTML
        from weasyprint.urls import URLFetcher
    except (ImportError, OSError) as error:     # OSError: Pango, which it loads
        what = ' '.join(str(error).split())[:120]
        raise PlumblineError(f"no PDF without WeasyPrint and Pango ({what}): pip install 'plumbline[pdf]', and apt-get install libpango-1.0-0 "
                             'libpangoft2-1.0-0 (dnf, zypper: pango); or write --output NAME.html, which any browser prints') from None
    return HTML(string=html, url_fetcher=URLFetcher(allowed_protocols=())).write_pdf()
