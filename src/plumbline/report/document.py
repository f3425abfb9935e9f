'''What all pages share: one file that opens offline, with its style, its figures and what it has to download.'''

import base64
import functools
import gzip
import json
from importlib import resources

import jinja2
from markupsafe import Markup

from plumbline.model import quantity

#: Verdict -> mark that survives grey-scale print.
MARKS = {'FAIL': '\u2716', 'UNSTABLE': '\u2248', 'KNOWN ISSUE': '\u2691', 'NO REFERENCE': '?', 'PASS': '\u2714', 'not measured': '\u2013'}


#: Of gzip: the next one takes three times as long for numbers, and they become 1.5 % smaller.
_LEVEL = 5


def render(template, figures=True, download=None, **values):
    '''The text of a page.

    :arg template: its file in this folder, which extends ``base.html.j2``.
    :arg figures: whether it has any: then plotly is in it.
    :arg download: what its buttons save, JSON; see ``page.js.j2``.
    '''
    return _environment().get_template(template).render(
        marks=MARKS, style=Markup(resources.files(__package__).joinpath('page.css').read_text(encoding='utf-8')),
        plotly=_plotly() if figures else None, download=packed(json.dumps(download, separators=(',', ':'))) if download else None, **values)


@functools.cache
def _environment():
    environment = jinja2.Environment(loader=jinja2.PackageLoader(__package__, '.'), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {'packed': packed, 'seconds': quantity.seconds, 'percent': quantity.percent, 'change': quantity.change,
                            'field': lambda name, line: getattr(line, name)}
    environment.tests['known'] = quantity.known
    return environment


def embedded(figure):
    '''A figure's JSON that may stand inside a script element.'''
    return Markup(figure.to_json().replace('<', '\\u003c'))


def packed(text):
    '''Text that the page's script unpacks: gzip in base64, a third of what it was.'''
    return Markup(base64.b64encode(gzip.compress(text.encode(), _LEVEL, mtime=0)).decode())


@functools.cache
def _plotly():
    from plotly.offline import get_plotlyjs  # 5 MB that no page without figures reads
    return packed(get_plotlyjs())
