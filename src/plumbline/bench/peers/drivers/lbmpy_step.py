'''The step of src/kernels/lbm on a periodic cube by lbmpy, vectorised, with non-temporal stores or not.

Arguments: cells of an edge; seconds; CPUs; ``nontemporal`` or ``ordinary``.
'''

import sys

import numpy as np
import pystencils
from lbmpy import LBMConfig, LBMOptimisation, LBStencil, Method, Stencil, create_lb_update_rule

from .common import array, on_each, parts, print_samples

STENCIL, RATE, LINE = LBStencil(Stencil.D3Q19), 1.25, 8


def kernel(nontemporal):
    source, target = pystencils.fields('source(19), target(19): double[3D]', layout='fzyx')
    rule = create_lb_update_rule(
        lbm_config=LBMConfig(stencil=STENCIL, method=Method.SRT, relaxation_rate=RATE, compressible=True, zero_centered=False,
                             continuous_equilibrium=False, kernel_type='stream_pull_collide'),
        lbm_optimisation=LBMOptimisation(symbolic_field=source, symbolic_temporary_field=target, field_layout='fzyx'))
    wide = 'avx512f' in open('/proc/cpuinfo').read().split()
    config = pystencils.CreateKernelConfig(target=pystencils.Target.X86_AVX512 if wide else pystencils.Target.X86_AVX, ghost_layers=1)
    config.cpu.openmp.enable = True
    vectorize = config.cpu.vectorize
    vectorize.enable = vectorize.assume_inner_stride_one = True
    vectorize.use_nontemporal_stores = vectorize.assume_aligned = nontemporal
    return pystencils.create_kernel(rule, config).compile()


def expected(source, k):
    '''Of the cells of plane k what they are after the step, as textbooks have it: shape (19, rows, cells).'''
    n = source.shape[1] - 2
    f = np.stack([source[q, k - z, 1 - y:n + 1 - y, 1 - x:n + 1 - x] for q, (x, y, z) in enumerate(STENCIL)])
    density, velocities = f.sum(axis=0), np.array(list(STENCIL), dtype=float)
    velocity = np.einsum('qyx,qa->ayx', f, velocities) / density
    along, weights = np.einsum('ayx,qa->qyx', velocity, velocities), np.array([(1 / 3, 1 / 18, 1 / 36)[int(abs(c).sum())] for c in velocities])
    equilibrium = weights[:, None, None] * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (velocity**2).sum(axis=0))
    return f + RATE * (equilibrium - f)


def main(edge, seconds, cpus, stores):
    n, cpus = int(edge), [int(cpu) for cpu in cpus.split(',')]
    row = LINE * (-(-(n + 2) // LINE) | 1)      # padded as our kernel's rows, planes and populations are
    plane = LINE * ((n + 2) * row // LINE | 1)
    apart = -(-(n + 2) * plane // 512) * 512 + 3 * LINE
    room = [array(19 * apart, offset=lead) for lead in (56, 2048 + 56)]
    source, target = (np.lib.stride_tricks.as_strided(one, (19, n + 2, n + 2, n + 2), (8 * apart, 8 * plane, 8 * row, 8)) for one in room)
    weights = np.array([(1 / 3, 1 / 18, 1 / 36)[sum(map(abs, c))] for c in STENCIL])

    def touch(i):
        planes = parts(n + 2, len(cpus))[i]
        cell = np.add.outer(np.add.outer(97 * np.arange(n + 2)[planes], 31 * np.arange(n + 2)), 7 * np.arange(n + 2))
        for q in range(19):
            source[q, planes] = weights[q] * (1 + ((cell * (q + 5)) & 1023) / 8192)
            target[q, planes] = 0
        return True
    on_each(cpus, touch)
    step = kernel(stores == 'nontemporal')
    fields = {'source': source.transpose(3, 2, 1, 0), 'target': target.transpose(3, 2, 1, 0)}
    step(**fields)
    for k in (1, n // 2, n):
        if not np.allclose(target[:, k, 1:-1, 1:-1], expected(source, k), rtol=0, atol=1e-14):
            sys.exit('lbmpy: wrong result')
    print_samples(lambda: step(**fields), float(seconds))


if __name__ == '__main__':
    main(*sys.argv[1:])
