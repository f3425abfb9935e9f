'''The sweep of src/kernels/jacobi on a cube by pystencils, vectorised, its loops tiled or not, with non-temporal stores or not.

Arguments: points of an edge, boundary included; seconds; CPUs; ``nontemporal`` or ``ordinary``; rows of a tile, 0: none.
'''

import sys

import numpy as np
import pystencils

from .common import array, on_each, parts, print_samples


def kernel(nontemporal, tile):
    source, target = pystencils.fields('source, target: double[3D]', layout='numpy')
    config = pystencils.CreateKernelConfig(target=pystencils.Target.CurrentCPU)
    config.cpu.openmp.enable = True
    vectorize = config.cpu.vectorize
    vectorize.enable = vectorize.assume_inner_stride_one = True
    vectorize.use_nontemporal_stores = vectorize.assume_aligned = nontemporal
    if tile:
        config.cpu.loop_blocking = (None, tile, None)
    around = sum(source[tuple(step if axis == k else 0 for axis in range(3))] for k in range(3) for step in (-1, 1))
    return pystencils.create_kernel([pystencils.Assignment(target[0, 0, 0], 0.25 * source[0, 0, 0] + 0.125 * around)], config).compile()


def main(edge, seconds, cpus, stores, tile):
    n, cpus = int(edge), [int(cpu) for cpu in cpus.split(',')]
    row = n // 8 * 8 + 8 + (0 if n // 8 % 2 == 0 else 8)      # an odd number of lines, as our kernel's
    source, target = (array(n * n * row, offset=lead).reshape(n, n, row)[:, :, :n] for lead in (56, 2048 + 56))

    def touch(i):
        planes = parts(n, len(cpus))[i]
        k, j, i = (np.arange(n) for _ in range(3))
        source[planes] = (5 * i ^ (3 * j)[:, None] ^ (7 * k[planes])[:, None, None]) & 1023
        target[planes] = 0
        return True
    on_each(cpus, touch)
    sweep = kernel(stores == 'nontemporal', int(tile))
    sweep(source=source, target=target)
    inner = source[1:-1, 1:-1]
    expected = 0.25 * inner[:, :, 1:-1] + 0.125 * (
        (inner[:, :, :-2] + inner[:, :, 2:]) + (source[1:-1, :-2, 1:-1] + source[1:-1, 2:, 1:-1])
        + (source[:-2, 1:-1, 1:-1] + source[2:, 1:-1, 1:-1]))
    if not np.array_equal(target[1:-1, 1:-1, 1:-1], expected):
        sys.exit('pystencils: wrong result')
    print_samples(lambda: sweep(source=source, target=target), float(seconds))


if __name__ == '__main__':
    main(*sys.argv[1:])
