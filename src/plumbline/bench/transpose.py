'''The transpose against OpenBLAS and memcpy, its evenness over the dimension, and the ratios of the sources then and now.'''

import numpy as np

from plumbline.bench.common import Figure, attempted, teams, threads_text
from plumbline.model import limits, records, sources

_BLOCKED = ('blocked', 'blocked_simd', 'blocked_nt')

#: Powers of two, their neighbours, and what is awkward.
_IN_CACHE = (*range(1, 18), 20, 25, 31, 32, 33, 48, 55, 63, 64, 65, 99, 100, 127, 128, 129, 181, 200, 255, 256, 257, 300, 333,
             384, 511, 512, 513, 700, 1000, 1023, 1024, 1025)
_BEYOND = (1500, 2047, 2048, 2049, 3000, 4095, 4096, 4097, 8191, 8192, 8193)

#: What is compared at 1025 with `columns`, which is the source's loop (it stores in order, and loads with a stride), its ratio then
#: (MB/s on the Cray T3E-900, anderson1997, table 6), and what stood for it.  The source changed one directive; no such loop is left.
_THEN = tuple((variant, sources.ratio('anderson1997-table6-transpose', row, 'naive', 'mb_per_s'), what) for variant, row, what in (
    ('blocked_nt', 'cache_bypass', 'cache bypassed by a directive; here blocks, SIMD and non-temporal stores'), ('openblas', 'library', 'library')))


def _speed(record, other):
    return limits.paired_ratio(record, other, 'bytes')


def _by_size(machine, cpus, variants, sizes, *options):
    found: dict[int, dict[str, dict]] = {}
    for record in machine.run('transpose', cpus, '--variants', ','.join(variants), '--size', ','.join(map(str, sizes)), *options):
        found.setdefault(record['size'], {})[record['variant']] = record
    return found


def against_openblas(machine, cpus, sizes, where):
    '''Yield the size at which the best variant is the least ahead of the library.

    The least of so many would be that which something disturbed: each is measured in three processes.
    '''
    speeds: dict[int, dict[str, list[float]]] = {size: {variant: [] for variant in _BLOCKED} for size in sizes}
    for _ in range(3):
        for size, of in _by_size(machine, cpus, (*_BLOCKED, 'openblas'), sizes, '--samples', 15, '--min-time', '0.002').items():
            for variant, found in speeds[size].items():
                found.extend(_speed(of[variant], of['openblas']))
    best = {}
    for size, of in speeds.items():
        variant = max(of, key=lambda name: np.median(of[name]))
        best[size] = variant, np.array(of[variant])
    size = min(best, key=lambda size: np.median(best[size][1]))
    variant, ratios = best[size]
    yield Figure(f'{where}, {threads_text(cpus)}: transpose best / OpenBLAS, least of {len(best)} dimensions', ratios, 1.0,
                 remark=f'there {variant} of {size} x {size}')


def against_memcpy(machine, cpus, size):
    of = _by_size(machine, cpus, ('blocked_nt', 'memcpy'), [size], '--samples', 25)[size]
    return Figure(f'{size} x {size}, {threads_text(cpus)}: transpose blocked_nt / memcpy', _speed(of['blocked_nt'], of['memcpy']),
                  0.8 if len(cpus) == 1 else -np.inf, remark='memcpy as the C library has it')


def at_power_of_two(machine, cpus, pairs):
    '''Bandwidth at 4096 over that at 4097, best variant, in alternation.'''
    ratios = []
    for _ in range(pairs):
        of = _by_size(machine, cpus, ('blocked_nt',), (4096, 4097), '--samples', 15)
        power, beside = (np.median(records.rate(of[size]['blocked_nt'])) for size in (4096, 4097))
        ratios.append(power / beside)
    return Figure(f'{threads_text(cpus)}: transpose blocked_nt 4096 / 4097', np.array(ratios), 1 / 1.1)


def over_columns(machine, cpus, variant, then, what):
    of = _by_size(machine, cpus, ('columns', variant), [1025], '--samples', 50)[1025]
    yield Figure(f'1025 x 1025, {threads_text(cpus)}: transpose {variant} / columns', _speed(of[variant], of['columns']),
                 remark=f'then {then:.2f} ({what}; anderson1997, table 6)')


def over_rows(machine, cpus):
    of = _by_size(machine, cpus, ('rows', 'padded', 'blocked_nt'), [4096], '--samples', 10)[4096]
    for variant in ('padded', 'blocked_nt'):
        yield Figure(f'4096 x 4096, {threads_text(cpus)}: transpose {variant} / rows', _speed(of[variant], of['rows']),
                     remark='not in the source: byna2003, figure 1, pads and blocks packing in one process')


def figures(machine, pairs):
    '''Yield every :class:`Figure`, those against OpenBLAS where it is there; the ratios then and now have no target.'''
    beyond = [size for size in _BEYOND if 16 * size**2 <= machine.memory / 4]
    for cpus in teams(machine):
        for sizes, where in ((_IN_CACHE, 'up to 1025'), (beyond, 'beyond')):
            yield from attempted(f'{where}, {threads_text(cpus)}: transpose best / OpenBLAS', against_openblas, machine, cpus, sizes, where)
        yield from (against_memcpy(machine, cpus, size) for size in (4096, 8192) if size in beyond)
        yield at_power_of_two(machine, cpus, pairs)
        for then in _THEN:
            yield from attempted(f'1025 x 1025, {threads_text(cpus)}: transpose {then[0]} / columns', over_columns, machine, cpus, *then)
        yield from over_rows(machine, cpus)
