'''The one exception that Plumbline raises on purpose, and how ReFrame is told of it.'''

import contextlib


class PlumblineError(Exception):
    '''Something is wrong that a person can fix.

    The message is one line that says what is wrong, where, and how to fix it.  Commands print it
    and exit with a status other than 0; they never show a traceback for it.
    '''

    def __str__(self):
        '''One line, whatever of it was read from somewhere.'''
        return ' '.join(super().__str__().splitlines())


class WrongResult(PlumblineError):
    '''What a program computed is wrong: no further run of its test in the same session makes up for that.'''


@contextlib.contextmanager
def in_one_line():
    '''Our errors as ReFrame's: it prints those in one line, and a stack trace for all others.'''
    try:
        yield
    except PlumblineError as error:
        from reframe.core.exceptions import ReframeError
        raise ReframeError(str(error)) from None


@contextlib.contextmanager
def saying_why(what, cure=''):
    '''What the system refuses (a full disk, no permission) as an error of ours: what could not be done, the system's reason, and what helps.'''
    try:
        yield
    except OSError as error:
        raise PlumblineError(f'{what}: {error.strerror}{cure}') from None
