'''Types of the checks' variables: what ``-S CHECK.VARIABLE=VALUE`` gives them is converted, or refused in one line.'''

import sys

from reframe.utility import typecheck


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
            said = next((word for word in sys.argv if word.endswith(f'={text}')), text)
            # Of its own errors ReFrame makes a warning here, leaves the check file out, and passes with what is left.
            sys.exit(f"plumbline: -S {said}: '{text}' is no whole number")


class _IsDict(typecheck.ConvertibleType):
    def __instancecheck__(cls, value):
        return isinstance(value, dict)


class Result(metaclass=_IsDict):
    '''A :class:`dict` that the check fills in, and nobody gives.'''

    @classmethod
    def __rfm_cast_str__(cls, text):
        said = next((word for word in sys.argv if word.endswith(f'={text}')), text)
        sys.exit(f'plumbline: -S {said}: this is what a check writes, and nothing that can be given; leave it out')
