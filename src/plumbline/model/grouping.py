'''Values by their keys.'''

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar('Key')
Value = TypeVar('Value')


def by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    '''Key -> the values of its pairs; keys and values in the order of their coming.'''
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
