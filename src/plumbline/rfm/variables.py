'''Types of the checks' variables: what ``-S CHECK.VARIABLE=VALUE`` gives them is converted, or refused in one line.'''

import functools
import itertools
import math
import re
import sys
from pathlib import Path
from typing import Any

from reframe.core.exceptions import ForceExitError
from reframe.core.pipeline import RegressionTest
from reframe.utility import typecheck

from plumbline.model import result
from plumbline.settings import ROOT, on_command_line


def _refuse(text, why):
    said = next((word for word in sys.argv if word.endswith(f'={text}')), text)
    # Of its own errors ReFrame makes a warning here, leaves the check file out, and passes with what is left, or prints a stack trace.
    sys.exit(f'plumbline: -S {said}: {why}')


def _tests(base=RegressionTest):
    return {base, *(test for child in base.__subclasses__() for test in _tests(child))}


def _is_ours(test):
    files = itertools.chain((ROOT / 'checks').rglob('*.py'), Path(__file__).parents[1].rglob('*.py'))
    return any(re.search(rf'^class {re.escape(test)}\(', path.read_text(), re.MULTILINE) for path in files)


@functools.cache
def refuse_unknown():
    '''End the run where the command line gives a variable that nothing has: ReFrame warns, or says nothing where no test has that name.

    Only when all tests are loaded is it known which variables there are.  One of ours that is not loaded this time is no mistake.
    '''
    for given in on_command_line('-S', '--setvar'):
        test, _, variable = given.partition('=')[0].rpartition('.')
        named = [cls for cls in _tests() if test.partition('.')[0] in ('', cls.__name__)]
        if not named and not _is_ours(test.partition('.')[0]):
            raise ForceExitError(f"-S {given}: no test is called '{test}'; reframe -l lists their names")
        if named and '.' not in test and not any(variable in cls.var_space for cls in named):
            raise ForceExitError(f"-S {given}: {test or 'no test'} has {'no' if test else 'a'} variable '{variable}'")


class _Chosen:
    '''What the command line, or a mode, gave of what is measured; what a check says itself is none.'''


class _Size(_Chosen, int):
    pass


class _Sizes(_Chosen, list):
    pass


class _Words(_Chosen, str):
    pass


def given(test):
    '''What the command line, or a mode, gave a test of what is measured (:class:`Size`, :class:`Wholes`, :class:`Words`): variable -> text.'''
    return {name: ','.join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in vars(test).items() if isinstance(value, _Chosen) and name in type(test).var_space}


class _Kind(typecheck.ConvertibleType):
    kinds: Any

    def __instancecheck__(cls, value):
        return isinstance(value, cls.kinds)


class _Given(metaclass=_Kind):
    convert: Any
    wrong: str

    @classmethod
    def __rfm_cast_str__(cls, text):
        try:
            return cls.convert(text)
        except (KeyError, ValueError):
            _refuse(text, f"'{text}' {cls.wrong}")


def _whole(text):
    if (value := int(text)) < 0:
        raise ValueError
    return value


class Whole(_Given):
    '''An :class:`int`, 0 and more.  Of ``int`` itself ReFrame would print a stack trace where the text is none.'''
    kinds, wrong, convert = int, 'is no whole number of 0 and more', staticmethod(_whole)


class Size(Whole):
    '''The same of what is measured: references that were recorded with another value judge none of its values.'''
    convert = staticmethod(lambda text: _Size(_whole(text)))


class Words(_Given):
    '''A :class:`str` that says what is measured, as :class:`Size` does: a file, options of a program.'''
    kinds, convert = str, _Words


class Wholes(_Given):
    '''A :class:`list` of :class:`int`, 0 and more, that says what is measured.'''
    kinds, wrong = list, 'is no list of whole numbers, such as 1,2,4'
    convert = staticmethod(lambda text: _Sizes(_whole(part) for part in text.split(',')))


class WholeOrAll(_Given):
    '''An :class:`int`, 0 and more, or the text ``all``.'''
    kinds, wrong, convert = (int, str), "is neither a whole number nor 'all'", staticmethod(lambda text: text if text == 'all' else _whole(text))


class Amount(_Given):
    '''A :class:`float` above 0.'''
    kinds, wrong = (int, float), 'is no number above 0'

    @staticmethod
    def convert(text):
        if not 0 < (value := float(text)) < math.inf:
            raise ValueError
        return value


class YesNo(_Given):
    '''A :class:`bool`.  Of ``bool`` itself ReFrame takes every text for yes, "no" as well.'''
    kinds, wrong, known = bool, 'is neither yes nor no', {'yes': True, 'true': True, '1': True, 'no': False, 'false': False, '0': False}
    convert = staticmethod(lambda text: YesNo.known[text.lower()])


class _Written(metaclass=_Kind):
    @classmethod
    def __rfm_cast_str__(cls, text):
        _refuse(text, 'this is what a check writes, and nothing that can be given; leave it out')


class Table(_Written):
    '''A :class:`dict` that the check fills in, and nobody gives.'''
    kinds = dict


class TheResult(_Written):
    '''The :class:`result.Result` that the check fills in, and nobody gives.'''
    kinds = result.Result
