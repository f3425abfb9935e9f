'''A result as the archive has it, and what of it is kept of each node: there may be a thousand.'''

import dataclasses
import functools
import json
from typing import Any

import numpy as np

from plumbline.model import probes
from plumbline.model.result import UNSET, Result, Unset

#: What of a result is drawn, and of few places; what the rest asks of a record, and of its probes.
DRAWN = ('records', 'cross_check', 'series')
_OF_RECORD = ('kernel', 'variant', 'role', 'level', 'options', 'compiler', 'flags', 'cpus', 'numa_nodes', 'huge_page_share', 'working_set')
_OF_PROBES = (probes.SHARING, probes.CLOCK, probes.ADDITIONS)


@dataclasses.dataclass(slots=True, kw_only=True)
class Outline(Result):
    '''What of a result (without metrics) is kept of each node; of its records a part.

    :attr probes: name -> (before and after each sample, of all records one after the other; where each but the first begins).
    :attr maintainers: of the test, by ReFrame.
    '''
    probes: dict | Unset = UNSET
    maintainers: list[str] | Unset = UNSET

    def __bool__(self):
        '''Whether the test left anything.'''
        return bool(self.as_json())


_KEPT = {one.name for one in dataclasses.fields(Outline)} - {*DRAWN, 'probes'}


def of(result):
    '''The :class:`Outline` of a result, a twentieth of it, for there may be a thousand nodes; parts that are equal are once in memory.'''
    kept: dict[str, Any] = {
        key: {name: _once(json.dumps(one)) for name, one in value.items()} if key == 'machine' and value else _once(json.dumps(value), key)
        for key, value in result.items() if key in _KEPT}
    found = Outline(**kept)
    records, sides = result.get('records') or (), ('before', 'after')
    found.records = [_once(json.dumps({key: _rounded(one[key]) for key in _OF_RECORD if key in one} | (
        {'least': round(one['traffic_least'] / one['traffic'], 9)} if one.get('traffic') and 'traffic_least' in one else {}))) for one in records]
    found.probes = {}
    for name in _OF_PROBES:
        told = [(one.get('probes') or {}).get(name) or dict.fromkeys(sides, ()) for one in records]
        if any(one['before'] for one in told):
            begins = _once(json.dumps(np.cumsum([len(one['before']) for one in told[:-1]]).tolist()))
            found.probes[name] = np.array([[value for one in told for value in one[side]] for side in sides], dtype=np.float32), begins
    return found


def _rounded(value):
    '''Shares of pages as they are told, which makes records equal.'''
    return {key: _rounded(one) for key, one in value.items()} if isinstance(value, dict) else round(value, 3) if isinstance(value, float) else value


@functools.lru_cache(maxsize=2**16)
def _once(text, key=''):
    found, part = json.loads(text), Outline.LISTS.get(key)
    return [part.of_json(one) for one in found] if part else found
