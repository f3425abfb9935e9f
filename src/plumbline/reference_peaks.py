'''Refusing references that the hardware cannot reach.

What is recorded becomes what the machine is held to: references copied from a faster machine, or
measured wrongly, are the usual way in which a suite fails for ever or passes for ever.
'''

import json
import math

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.limits import IMPOSSIBLE_OF_LIMIT
from plumbline.reference_files import load, tests as entries_of

#: Metrics that are fractions of what the machine can do at best.
FRACTIONS = ('of_limit', 'of_peak')


def peak_of(peaks, subject, level, threads):
    '''The first peak that applies, the narrowest first.

    :arg peaks: dictionary ``'PLACE/THREADS'`` or ``'PLACE'`` -> MB/s, or :obj:`None`.
    :arg subject: its parts between dots are places, too: ``nt.memory`` is in memory.
    :returns: (where, MB/s); (None, infinity) if none applies.
    '''
    places = [place for place in (subject, *(subject or '').split('.'), level) if place]
    for where in [f'{place}/{threads}' for place in places if threads] + places:
        if where in (peaks or {}):
            return where, peaks[where]
    return None, math.inf


def impossible(name, value, unit, peaks, level, threads):
    '''Why no hardware gives this value, or :obj:`None`.

    :arg name: ``metric.subject`` or the metric alone.
    '''
    metric, _, subject = name.partition('.')
    if metric in FRACTIONS and value > IMPOSSIBLE_OF_LIMIT:
        return f'{value:.3g} is above {IMPOSSIBLE_OF_LIMIT} of what the machine can do'
    where, peak = peak_of(peaks, subject, level, threads)
    if unit == 'MB/s' and value > peak:
        return f'{value:.0f} MB/s is above the hardware limit of {where}, {peak:.0f} MB/s'
    return None


def _reuse(row):
    '''How often a kernel uses what it loads once: application bytes over traffic, at least 1.

    A blocked kernel's application bandwidth may pass the traffic limit by this much.
    '''
    records = json.loads(row['detail'] or '{}').get('records', ())
    return max([1.0, *(record['bytes'] / record['traffic'] for record in records
                       if record.get('variant') == row['subject'] and record.get('traffic'))])


def above_own_limit(rows, value):
    '''Why the machine's own limit, measured beside the value, forbids it; or :obj:`None`.

    :arg rows: the archive's rows of one metric, with ``unit``, ``limit``, ``subject``, ``detail``.
    :arg value: their median, in the unit of the rows.
    '''
    own = [row['limit'] for row in rows if row['limit'] is not None]
    if rows[0]['unit'] != 'MB/s' or not own:
        return None
    most = IMPOSSIBLE_OF_LIMIT * float(np.median(own)) * _reuse(rows[-1])
    if value <= most:
        return None
    return (f"{value:.0f} MB/s is above {most:.0f} MB/s, {IMPOSSIBLE_OF_LIMIT} x the machine's own "
            'limit')


def refuse(wrong, what):
    '''Raise for a list of complaints, naming the first.'''
    if wrong:
        more = f' (and {len(wrong) - 1} more)' if len(wrong) > 1 else ''
        raise PlumblineError(f'{what}: {wrong[0]}{more}; the model, the measurement or the peak is '
                             'wrong, mend that first')


def _walk(node, keys=()):
    for key, child in node.items():
        if isinstance(child, dict):
            yield from _walk(child, (*keys, key))
        elif key != '$index':
            yield keys, key, child


def check(path, peaks=None):
    '''Refuse a file of references whose values the hardware cannot reach.

    :arg peaks: dictionary ``'PLACE/THREADS'`` or ``'PLACE'`` -> MB/s, PLACE being a level or the
        subject of a metric, THREADS the test's, e.g. ``{'memory/one': 31000.0, 'memory':
        41600.0}``; the narrower wins.
    :raises PlumblineError: naming the first such value; also if the file is malformed.
    '''
    wrong = []
    for test, entry in entries_of(load(path)).items():
        for keys, name, (value, _, _, unit) in _walk(entry):
            place = dict(zip(entry['$index'], keys))
            reason = impossible(name, value, unit, peaks, place.get('level'),
                                place.get('threads'))
            if reason:
                wrong.append(f"{'/'.join([test, *keys, name])} {reason}")
    refuse(wrong, f'{path}: impossible reference')
