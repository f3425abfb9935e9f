'''The figures that Plumbline holds itself to: its kernels against likwid-bench's, its timing, its overhead.

Everything is compared in alternating processes or interleaved in one, as medians of ratios; nothing here is an absolute
time.  A target that is missed, or that could not be measured, is said, and the exit code is 1.
'''

import tempfile

import numpy as np

from plumbline.analysis import machine_state
from plumbline.analysis.session import Session
from plumbline.bench import datatype, fdtd, injection, latency, motion, peers, pingpong, rma, scale, simulation, spmv, stencils, transpose, triad
from plumbline.bench.common import Figure, Machine, attempted

#: Kernel -> function(machine, pairs), which yields its :class:`Figure` objects.
FIGURES = {'chase': latency.chase_figures, 'datatype': datatype.figures, 'fdtd': fdtd.figures, 'injection': injection.figures,
           'motion': motion.figures, 'peers': peers.figures, 'pingpong': pingpong.figures, 'rma': rma.figures,
           'scale': scale.figures, 'simulation': simulation.figures, 'spmv': spmv.figures, 'stencils': stencils.figures,
           'trapezoid': latency.trapezoid_figures, 'transpose': transpose.figures, 'triad': triad.figures}


def overhead(rows):
    '''Share of the time of an archived session's tests, without builds, that lay inside timed loops; without a target, for what is proved of
    each value, its pages, its threads, its result, takes time, too.  None: of no session.'''
    told = None if rows is None else Session(rows)
    total = machine_state.time_rows(told.cases, told.info)[1] if told else {'run': 0}
    return Figure("timed loops / time of the last session's tests", np.array([total['timed'] / total['run']] if total['run'] else []),
                  remark='the report shows where the rest goes' if total['run'] else 'no session that says how long it took: run make health')


def figures(kernels, pairs):
    '''Yield every :class:`Figure` of these kernels.'''
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        for kernel in kernels:
            yield from attempted(kernel, FIGURES[kernel], machine, pairs)
