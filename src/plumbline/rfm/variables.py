'''Types of the checks' variables: what ``-S CHECK.VARIABLE=VALUE`` gives them is converted, or refused in one line.'''

import sys

from reframe.utility import typecheck

from plumbline.model import result


def _refuse(text, why):
    said = next((word for word in sys.argv if word.endswith(f'={text}')), text)
    # Of its own errors ReFrame makes a warning here, leaves the check file out, and passes with what is left, or prints a stack trace.
    sys.exit(f'plumbline: -S {said}: {why}')


class _IsInt(typecheck.ConvertibleType):
    def __instancecheck__(cls, value):
        return isinstance(value, int)


class Whole(metaclass=_IsInt):
    '''An :class:`int`.  Of ``int`` itself ReFrame would print a stack trace where the text is none.'''

    @classmethod
    def __rfm_cast_str__(cls, text):
        try:
            return int(text)
        except ValueError:
            _refuse(text, f"'{text}' is no whole number")


class _IsBool(typecheck.ConvertibleType):
    def __instancecheck__(cls, value):
        return isinstance(value, bool)


class YesNo(metaclass=_IsBool):
    '''A :class:`bool`.  Of ``bool`` itself ReFrame takes every text for yes, "no" as well.'''

    @classmethod
    def __rfm_cast_str__(cls, text):
        known = {'yes': True, 'true': True, '1': True, 'no': False, 'false': False, '0': False}
        if text.lower() not in known:
            _refuse(text, f"'{text}' is neither yes nor no")
        return known[text.lower()]


class _IsDict(typecheck.ConvertibleType):
    def __instancecheck__(cls, value):
        return isinstance(value, dict)


class _Written:
    @classmethod
    def __rfm_cast_str__(cls, text):
        _refuse(text, 'this is what a check writes, and nothing that can be given; leave it out')


class Table(_Written, metaclass=_IsDict):
    '''A :class:`dict` that the check fills in, and nobody gives.'''


class _IsResult(typecheck.ConvertibleType):
    def __instancecheck__(cls, value):
        return isinstance(value, result.Result)


class TheResult(_Written, metaclass=_IsResult):
    '''The :class:`result.Result` that the check fills in, and nobody gives.'''
