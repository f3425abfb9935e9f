'''PingPong: that ours is IMB's where it claims to be, and what buffers that nobody touches make of the bandwidth.'''

import numpy as np

from plumbline import imb
from plumbline.bench import mpi
from plumbline.bench.common import Figure, attempted
from plumbline.model import limits
from plumbline.model.quantity import size as text_of
from plumbline.mpi import pingpong

#: Messages: eager, in cache, in memory; bytes.  IMB prints too few digits of the time of an empty one.
_SIZES = (256, 2048, 131072, 4 * 2**20)

#: Ours and IMB's agree if the median of their ratio over alternating runs is within this of 1.
_AGREE = 0.10


def _ours(each, transport):
    '''Mean seconds per message of each size, as IMB measures and prints.'''
    measured = each.run('pingpong', '--variants', 'standard', '--size', ','.join(map(str, _SIZES)), '--samples', 10, '--min-time',
                        '0.01', transport=transport)
    return {size: float(np.mean(times)) for size, times in pingpong.curve(measured, 'standard').items()}


def _theirs(each, transport):
    with open(f'{each.folder}/lengths.txt', 'w', encoding='ascii') as file:
        file.writelines(f'{size}\n' for size in _SIZES)
    said = each.launch(f'{each.imb}/IMB-MPI1', '-msglen', 'lengths.txt', '-time', '0.2', '-iter', '100000', 'PingPong', transport=transport)
    return {case.bytes: float(case.seconds[0]) for case in imb.samples(imb.outputs(said, runs=1, sizes=_SIZES))}


def _over_imb(each, transport, pairs):
    runs = [(_ours(each, transport), _theirs(each, transport)) for _ in range(pairs)]
    for size in _SIZES:
        yield Figure(f'{each.family.title}, {transport}, {text_of(size)}: time of standard / of IMB-MPI1 PingPong',
                     np.array([ours[size] / theirs[size] for ours, theirs in runs]), 1 - _AGREE, 1 + _AGREE,
                     'mean of either, for IMB tells no median')


@mpi.of_each
def figures(each, pairs):
    '''Yield every :class:`Figure`, for each MPI.'''
    title = each.family.title
    one, two = each.run('pingpong', '--size', 1024, '--samples', 10 * pairs, '--passes', '5000,10000')
    yield Figure(f'{title}: time of 2 P passes / time of P passes', limits.paired_ratio(two, one), 1.96, 2.04)
    measured = each.run('pingpong', '--variants', 'standard,swapped', '--size', '131072,4194304', '--samples', 5 * pairs)
    curves = {variant: pingpong.curve(measured, variant) for variant in ('standard', 'swapped')}
    for size, times in curves['standard'].items():
        yield Figure(f'{title}, shm, {text_of(size)}: bandwidth of untouched buffers / of buffers changed over', curves['swapped'][size] / times)
    if not each.imb:
        yield Figure(f'{title}: standard / IMB', np.array([]), remark='no Intel MPI Benchmarks of this MPI')
        return
    for transport in each.family.transports:
        yield from attempted(f'{title}, {transport}: standard / IMB', _over_imb, each, transport, pairs)
