'''The pointer chase's timing; performance against execution rate.'''

import numpy as np

from plumbline.bench.common import Figure, teams, threads_text
from plumbline.errors import PlumblineError
from plumbline.model import limits, records, sources, tlb


def chase_figures(machine, pairs):
    '''Yield the :class:`Figure` objects of ``chase``.'''
    cpus = machine.cpus[:1]
    passes = 1000
    one, two = machine.run('chase', cpus, '--variants', 'dense', '--size', 256, '--samples', 10 * pairs, '--passes', f'{passes},{2 * passes}')
    yield Figure('time of 2 P chases / time of P chases', limits.paired_ratio(two, one), 1.98, 2.02)
    sizes = tlb.sizes(512)
    found = [machine.run('chase', cpus, '--variants', 'all', '--pages', 'base', '--stride', tlb.page_sizes()[0],
                         '--size', ','.join(map(str, sizes)), '--samples', 20, '--min-time', '0.001')
             for _ in range(max(2, pairs // 3))]
    entries = [tlb.first_level(curve) for run in found for curve in tlb.curves(run).values()]
    known = np.array([number for number in entries if number and np.isfinite(number)])
    if not known.size:
        raise PlumblineError('no run shows the entries of the first-level TLB: measure again on a quieter machine')
    yield Figure('first-level TLB: entries found, over their median', known / np.median(known), 0.8, 1.25,
                 remark=f'{np.median(known):g} entries; {len(entries) - len(known)} of {len(entries)} runs found none')


#: Speed-up and redundancy of the article's implementations 2 to 4 over its first, which evaluated f once a step.
_TABLE = 'arsc2002-redundancy'
THEN = {way: (sources.value(_TABLE, row, 'speedup'), sources.value(_TABLE, row, 'redundancy'))
        for way, row in (('shared', '2'), ('vectorised', '3'), ('restructured', '4'))}


def trapezoid_figures(machine, pairs):
    '''Yield the :class:`Figure` objects of ``trapezoid``: the ways against each other, then and now.'''
    for cpus in teams(machine):
        ways = {record['variant']: record for record in machine.run('trapezoid', cpus, '--variants', 'all', '--size', 10**6, '--samples', 3 * pairs)}
        time = {name: records.per_pass(record) for name, record in ways.items()}
        for name, (speedup, redundancy) in THEN.items():
            yield Figure(f'{threads_text(cpus)}: speed-up of {name} over original', time['original'] / time[name], 1.0,
                         remark=f'then {speedup}, redundancy {redundancy} over an original that evaluated f once a step, as only `shared` does here '
                                '(arsc2002, 1st article)')
        slower, faster = (ways[name] for name in ('vectorised', 'restructured'))
        # What looks faster by its rate is the slower program.
        yield Figure(f'{threads_text(cpus)}: execution rate of vectorised / restructured',
                     limits.paired_ratio(slower, faster, 'flops'), 0.9, remark=f"then {sources.ratio(_TABLE, '3', '4', 'mflops'):.2f} (arsc2002)")
        yield Figure(f'{threads_text(cpus)}: performance of vectorised / restructured',
                     time['restructured'] / time['vectorised'], most=0.8, remark=f"then {sources.ratio(_TABLE, '4', '3', 'cpu_s'):.3f} (arsc2002)")
