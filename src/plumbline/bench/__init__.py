'''The figures that Plumbline holds itself to: its kernels against likwid-bench's, its timing, its overhead.

Everything is compared in alternating processes or interleaved in one, as medians of ratios; nothing here is an absolute
time.  A target that is missed, or that could not be measured, is said, and the exit code is 1.
'''

import json
import tempfile

import numpy as np

from plumbline.bench import datatype, fdtd, injection, latency, motion, peers, pingpong, rma, scale, simulation, spmv, stencils, transpose, triad
from plumbline.bench.common import Figure, Machine
from plumbline.errors import PlumblineError

#: Kernel -> function(machine, pairs), which yields its :class:`Figure` objects.
FIGURES = {'chase': latency.chase_figures, 'datatype': datatype.figures, 'fdtd': fdtd.figures, 'injection': injection.figures,
           'motion': motion.figures, 'peers': peers.figures, 'pingpong': pingpong.figures, 'rma': rma.figures,
           'scale': scale.figures, 'simulation': simulation.figures, 'spmv': spmv.figures, 'stencils': stencils.figures,
           'trapezoid': latency.trapezoid_figures, 'transpose': transpose.figures, 'triad': triad.figures}


def overhead(rows):
    '''Share of the wall time of an archived session that lay inside timed loops.'''
    info = json.loads(next(text for text in rows['session_info'] if text))
    timed = rows.unique(['test', 'run'])['timed_seconds'].fill_null(0).sum()
    return Figure('timed loops / wall time of the last session', np.array([timed / info['time_elapsed']]), 0.60,
                  remark='the report shows where the rest goes')


def figures(kernels, pairs):
    '''Yield every :class:`Figure` of these kernels.'''
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        for kernel in kernels:
            try:
                yield from FIGURES[kernel](machine, pairs)
            except PlumblineError as error:     # the other kernels' figures are not lost
                yield Figure(kernel, np.array([]), remark=str(error))
