'''A result as the archive has it, and what of it is kept of each node: there may be a thousand.'''

import functools
import json

import numpy as np

from plumbline.model import probes
from plumbline.store import former

#: What of a result is drawn, and of few places; what the rest asks of a record, and of its probes.
DRAWN = ('records', 'cross_check', 'series')
_OF_RECORD = ('kernel', 'variant', 'role', 'level', 'options', 'compiler', 'flags', 'cpus', 'numa_nodes', 'huge_page_share', 'working_set')
_OF_PROBES = (probes.SHARING, probes.CLOCK, probes.ADDITIONS)


def read(detail):
    '''A result (without metrics), from the archive's JSON.'''
    return former.result(json.loads(detail))


def of(result):
    '''A result without what is only drawn, a twentieth of it, for there may be a thousand nodes; parts that are equal are once in memory.

    Its ``probes``: name -> (before and after each sample, of all records one after the other; where each but the first begins).
    '''
    found = {key: {name: _once(json.dumps(one)) for name, one in value.items()} if key == 'machine' and value else _once(json.dumps(value))
             for key, value in result.items() if key not in DRAWN}
    records, sides = result.get('records') or (), ('before', 'after')
    found['records'] = [_once(json.dumps({key: _rounded(one[key]) for key in _OF_RECORD if key in one} | (
        {'least': round(one['traffic_least'] / one['traffic'], 9)} if one.get('traffic') and 'traffic_least' in one else {}))) for one in records]
    found['probes'] = {}
    for name in _OF_PROBES:
        told = [(one.get('probes') or {}).get(name) or dict.fromkeys(sides, ()) for one in records]
        if any(one['before'] for one in told):
            begins = _once(json.dumps(np.cumsum([len(one['before']) for one in told[:-1]]).tolist()))
            found['probes'][name] = np.array([[value for one in told for value in one[side]] for side in sides], dtype=np.float32), begins
    return found


def _rounded(value):
    '''Shares of pages as they are told, which makes records equal.'''
    return {key: _rounded(one) for key, one in value.items()} if isinstance(value, dict) else round(value, 3) if isinstance(value, float) else value


@functools.lru_cache(maxsize=2**16)
def _once(text):
    return json.loads(text)
