'''From measurement records to what the figures show: rates in GB/s, paired ratios, limits, efficiencies.

A record is one of ``schemas/record.json``; records of one ``group`` were interleaved, sample i of each in round i.
'''

import numpy as np

from plumbline.model import grouping, limits, records as model

#: From MB/s, Mflop/s and MHz to the units of the axes.
GIGA = 1e-3


def rates(record, key='bytes'):
    '''GB/s of each sample, or Gflop/s; ``key`` as of :func:`plumbline.model.records.rate`.'''
    return model.rate(record, key) * GIGA


def measured(details, role=None):
    '''The records of some results that have samples; of one role, if it is given.'''
    return [record for detail in details for record in detail.get('records') or [] if record.get('seconds') and role in (None, record['role'])]


def quartiles(values):
    '''(lower quartile, median, upper quartile).'''
    return np.quantile(values, [0.25, 0.5, 0.75])


def paired(record, other):
    '''Rate of a record over the rate of another, per round; without pairs, one ratio of medians.'''
    if limits.unpaired([record, other]):
        return np.array([model.median_rate(record) / model.median_rate(other)])
    return limits.paired_ratio(record, other, 'bytes')


def limit_of(records):
    '''(rate in GB/s, record) of the limit (:func:`plumbline.model.limits.best`); None without one.'''
    best = limits.best(record for record in records if record['role'] == 'limit')
    return best and (model.median_rate(best, 'traffic') * GIGA, best)


def noted(detail, about):
    '''The notes of a result that are about something.'''
    return [told['note'] for told in detail.get('noted') or () if told['about'] == about]


def caches_of(machine, cpus):
    '''Cache name -> bytes that these CPUs have of it: size times the number of caches that they reach.

    The machine record lists the caches of one CPU; the others are taken to be shared in the same pattern.
    '''
    totals: dict[str, int] = {}
    for cache in machine.get('caches') or []:
        if cache['size']:
            reached = {_cache_number(cpu, sorted(cache['shared_cpus'])) for cpu in cpus}
            totals.setdefault(f"L{cache['level']}", cache['size'] * max(1, len(reached)))
    return dict(sorted(totals.items()))


def _cache_number(cpu, shared):
    '''Which cache a CPU uses if one is shared by these: 0-3 gives blocks of four, 0,64 pairs at a distance of 64.'''
    if not shared:
        return cpu
    width = next((i for i, other in enumerate(shared) if other != shared[0] + i), len(shared))
    distance = shared[width] - shared[0] if width < len(shared) else None
    place = cpu - shared[0]
    return (place % distance if distance else place) // width


def series_of(kernels):
    '''(name, records) of each variant, told apart by the options that differ; plain first.'''
    options = [r.get('options') or {} for r in kernels]
    differing = [key for key in ('init', 'alloc', 'shift', 'pages') if len({str(o.get(key)) for o in options}) > 1]
    series: dict[str, list[dict]] = {}
    for record, option in zip(kernels, options):
        name = ', '.join([record['variant']] + [f'{key} {option[key]}' if key == 'shift' else str(option[key]) for key in differing if key in option])
        series.setdefault(name, []).append(record)
    return sorted(series.items(), key=lambda item: not item[0].startswith('plain'))


def limit_curve(records):
    '''Sorted (size of the kernel, limit in GB/s, limit with write-allocate or None) of each group.'''
    points = []
    for _, members in grouped(records, lambda r: r['group']):
        best = limit_of(members)
        plain = next((r for r in members if r['role'] == 'kernel' and r['variant'] == 'plain'), None)
        if best:
            points += [
                (size, best[0], best[0] * plain['bytes'] / plain['traffic'] if plain else None)
                for size in {r['size'] for r in members if r['role'] == 'kernel'}
            ]
    return sorted(points, key=lambda point: point[0])


def efficiencies(details):
    '''(name, {threads: quartiles of the efficiency}) of each level: the metric that is judged, and 1 of one thread.'''
    curves = []
    for detail in details:
        records = [r for r in detail.get('records') or [] if r['role'] == 'kernel']
        single = next((r for r in records if r['threads'] == 1), None)
        of_all = max((r['threads'] for r in records), default=1)
        points = {
            of_all if row['subject'] == 'all' else int(row['subject']): quartiles(np.asarray(row['samples']))
            for row in detail['metrics']
            if row['metric'] == 'efficiency' and row['subject']
        }
        if single and points and of_all > 1:
            level = single['level']
            curves.append(('memory' if level == 'memory' else f'in cache ({level})', {1: (1.0, 1.0, 1.0)} | points))
    return curves


def grouped(items, key):
    '''(key, items) in the order of their first item; the items need not be sorted.'''
    return grouping.by_key((key(item), item) for item in items).items()
