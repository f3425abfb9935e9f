'''FDTD: loops fused and split.'''

from plumbline.report import drawing
from plumbline.report.figures.common import each_team
from plumbline.report.readings import grouped, limit_of, noted


@each_team('FDTD, loops fused and split')
def fdtd_splitting(at, detail, records):
    '''Traffic rate of each loop, a figure for each thread count and a panel for each size (anderson1997, table 4).'''
    panels, large = [], max((r['size'] for r in records if r['role'] == 'kernel'), default=0)
    for _, members in grouped(records, lambda r: r['group']):
        kernels = [r | {'bytes': r['traffic']} for r in members if r['role'] == 'kernel']
        if kernels:
            edge = kernels[0]['size']
            heading = f"{edge} x {edge} x {edge - 1}, {kernels[0]['level'] or 'level unknown'}"
            # Of the smaller size a part may stay in a cache: no limit is known for that.
            panels.append((heading, kernels, limit_of(members) if edge == large else None))
    if panels:
        yield f'FDTD, loops fused and split{at}', _caption(panels, detail), drawing.bars(panels)


def _caption(panels, detail):
    per_flop = {f"{r['traffic'] / r['flops']:.2f}" for _, kernels, _ in panels for r in kernels if r['flops']}
    return ' '.join([
        f"Traffic by the model, the same for all loops, median ({' to '.join(sorted(per_flop))} bytes per flop); whiskers: quartiles of the "
        "samples. On the bar: how many times as fast as the fused loop as written (median over the rounds, in which all ran in turn). Line: "
        f"{drawing.LIMIT_NAME}. Each panel has its own scale. After anderson1997, table 4.",
        *(f'{note[:1].upper()}{note[1:]}.' for note in noted(detail, 'splitting'))])


FIGURES = {'fdtd_splitting': fdtd_splitting}
