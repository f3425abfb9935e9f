'''Reports of one archived session: a table in the terminal, and one HTML file that opens offline.'''

from dataclasses import replace
from pathlib import Path

from plumbline import atomic
from plumbline.analysis.session import Session
from plumbline.errors import saying_why
from plumbline.report.junit import junit
from plumbline.report.public import public
from plumbline.report.table import render

__all__ = ['Session', 'junit', 'render', 'write']


def write(session, destination, losses=(), to_strangers=False):
    '''Write the report of one session to ``destination/index.html``.

    :arg losses: that have come to stay, each a :class:`plumbline.report.history.Loss`.
    :arg to_strangers: without what :mod:`public` takes out.
    :returns: the path of the file.
    :raises PlumblineError: if the folder cannot be written to.
    '''
    from plumbline.report.page import page  # plotly and jinja2 are not loaded for the terminal's table

    if to_strangers:
        session, losses = session.seen(public), [replace(loss, changed=()) for loss in losses]
    return save_file(page(session, losses), Path(destination) / 'index.html')


def save_file(text, path, mode=atomic.RESULT):
    '''Write a page, to a temporary name first: a reader never sees half of it.

    :returns: the path.
    :raises PlumblineError: if it cannot be written.
    '''
    with saying_why(f'cannot write the report {path}', ': name a folder that you may write to'):
        return atomic.write(path, text, mode)
