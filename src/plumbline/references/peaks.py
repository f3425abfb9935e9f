'''What no hardware gives: the upper bounds in force, the machine's own limit, the datasheet.

What is recorded becomes what the machine is held to: references copied from a faster machine, or
measured wrongly, are the usual way in which a suite fails for ever or passes for ever.
'''

import math

from plumbline.errors import PlumblineError
from plumbline.model import registry, verdict
from plumbline.references.files import leaves, load, lookup, origin_of, portable_beside

#: A processor may leave write-allocates out, which the traffic of a kernel counts: of a fill they are half.
MOST_ALLOCATED = 2.0


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


def possible(metric, leaf, record=None):
    '''(low, high): the bounds in force of any machine, in the metric's unit.

    :arg leaf: what ``portable.yaml`` has of it, or :obj:`None`; where it has no upper bound the registry's is in force.
    :arg record: what it was measured by, if that is known.
    '''
    low, high = verdict.bounds(leaf[:3]) if leaf else (-math.inf, math.inf)
    upper = registry.find(metric).upper
    if high < math.inf or upper is None:
        return low, high
    return low, upper * (_write_allocated(record) if metric == 'of_limit' else 1)


def _write_allocated(record):
    '''How many times the traffic of a kernel is what it moves at the least.'''
    if record is None:
        return MOST_ALLOCATED
    return record['traffic'] / record['traffic_least'] if 'traffic_least' in record else 1


def impossible(name, value, bounds, peaks, level, threads):
    '''Why no hardware gives this value, or :obj:`None`.

    :arg name: ``metric.subject`` or the metric alone.
    :arg bounds: :func:`possible`; that on the side that is worse is a demand, and says nothing here.
    '''
    metric, _, subject = name.partition('.')
    (low, high), better = bounds, registry.better(metric)
    if better != registry.LESS and value > high:
        return f'{value:.3g} is above {high:.3g}, the most that any hardware gives'
    if better != registry.MORE and value < low:
        return f'{value:.3g} is below {low:.3g}, the least that any hardware gives'
    where, peak = peak_of(peaks, subject, level, threads)
    if registry.find(metric).unit == 'MB/s' and value > peak:
        return f'{value:.0f} MB/s is above the hardware limit of {where}, {peak:.0f} MB/s'
    return None


def above_own_limit(value, limit, high, record=None):
    '''Why the machine's own limit, measured beside a bandwidth, forbids it; or :obj:`None`.

    :arg value: application bandwidth, MB/s; :arg limit: of traffic, MB/s.
    :arg high: the most that ``of_limit`` may be.
    :arg record: what both were measured by, if that is known: a blocked kernel's bytes are more than its traffic.
    '''
    most = high * limit * (max(1.0, record['bytes'] / record['traffic']) if record and record['traffic'] else 1.0)
    return f"{value:.0f} MB/s is above {most:.0f} MB/s, the most by the machine's own limit" if value > most else None


def check(path, peaks=None):
    '''Refuse a file of references whose values the hardware cannot reach, or whose unit is not that of the registry.

    :arg peaks: dictionary ``'PLACE/THREADS'`` or ``'PLACE'`` -> MB/s, PLACE being a level or the subject of a metric, THREADS the test's, e.g.
        ``{'memory/one': 31000.0, 'memory': 41600.0}``; the narrower wins.
    :raises PlumblineError: naming the first such value; also if the file is malformed.
    '''
    portable = portable_beside(path)
    content = load(path)
    for (test, *keys, name), (value, _, _, unit) in leaves(content):
        if registry.is_of_other_suite(origin_of(content, (test, *keys, name)).get('metric')):
            continue
        index = content[test]['$index']
        place, metric = dict(zip(index, keys)), name.partition('.')[0]
        known = registry.METRICS.get(metric)
        if known and unit == known.unit:
            in_force = possible(metric, lookup(portable, test, keys, index).get(name))
            reason = impossible(name, value, in_force, peaks, place.get('level'), place.get('threads'))
        else:
            reason = f'is in {unit}: {metric} is in {known.unit}' if known else 'is of a metric that is not in the registry'
        if reason:
            raise PlumblineError(f"{path}: impossible reference: {'/'.join([test, *keys, name])} {reason}; the model, the "
                                 'measurement or the peak is wrong, fix that first')
