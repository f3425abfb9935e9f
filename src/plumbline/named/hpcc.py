'''HPC Challenge (HPCC): its input, which is HPL's and more, and the summary of its output file.'''

import re

from plumbline.errors import PlumblineError, WrongResult
from plumbline.named import NUMBER, Figure, agree, demand, hpl, number, only

#: Key of the summary -> (metric, subject, unit), and the subsystem where that is one of its own.
_FIGURES = {
    'StarDGEMM_Gflops': ('flops', 'dgemm', 'Gflop/s', 'core'),
    'StarSTREAM_Copy': ('bandwidth', 'stream_copy', 'GB/s'),
    'StarSTREAM_Triad': ('bandwidth', 'stream_triad', 'GB/s'),
    'PTRANS_GBs': ('bandwidth', 'ptrans', 'GB/s'),
    'MPIFFT_Gflops': ('flops', 'fft', 'Gflop/s'),
    'MaxPingPongLatency_usec': ('latency', 'pingpong_worst', 'us'),
    'MinPingPongBandwidth_GBytes': ('bandwidth', 'pingpong_worst', 'GB/s'),
    'RandomlyOrderedRingLatency_usec': ('latency', 'random_ring', 'us'),
    'RandomlyOrderedRingBandwidth_GBytes': ('bandwidth', 'random_ring', 'GB/s'),
}

#: Of RandomAccess: 10^9 updates a second, told as 10^6.
_UPDATES = 'MPIRandomAccess_GUPs'

#: Updates of RandomAccess that may be lost, by its own rule: 1 %.
_LOST_UPDATES = 0.01

#: Largest error of the transform and residual of the transpose that count as right; HPCC's own thresholds.
_RIGHT = {'MPIFFT_maxErr': 1e-10, 'PTRANS_residual': 16.0, 'MPIRandomAccess_ErrorsFraction': _LOST_UPDATES}


def input_file(n, nb, p, q):
    '''The text of ``hpccinf.txt``: PTRANS has HPL's sizes, and none besides.'''
    return hpl.input_file(n, nb, p, q).replace('6            device', '8            device') + (
        '##### This line (no. 32) is ignored (it serves as a separator). ######\n0            Number of additional problem sizes for '
        'PTRANS\n1000         values of N\n0            number of additional blocking sizes for PTRANS\n64           values of NB\n')


def figures(text, source='hpccoutf.txt', *, n, nb, p, q):
    '''What a run measured, HPL among it.

    :arg text: the output file.
    :raises PlumblineError: also where a part says that its result is wrong, or HPCC did not take the input file and solved another problem.
    '''
    hpl.refuse_wrong(text, source)
    only(text, r'^End of HPC Challenge tests\.$', 'the line "End of HPC Challenge tests."', source)
    summary = dict(re.findall(r'^(\w+)=(\S+)$', _section(text, 'Summary', source), re.MULTILINE))
    for name, asked in (('HPL_N', n), ('HPL_NB', nb), ('HPL_nprow', p), ('HPL_npcol', q), ('CommWorldProcs', p * q)):
        demand(_value(summary, name, source), str(asked), f'{name} (HPCC takes sizes of its own where it does not like hpccinf.txt)', source)
    linpack, = hpl.figures(_section(text, 'HPL', source), source, n=n, nb=nb, p=p, q=q)
    if _value(summary, 'Success', source) != '1':
        raise WrongResult(f"{source}: Success is {summary['Success']}, not 1: the result is wrong, and no rate counts")
    for name, most in _RIGHT.items():
        if not re.fullmatch(NUMBER, _value(summary, name, source)) or not 0 <= float(summary[name]) <= most:
            raise WrongResult(f'{source}: {name} is {summary[name]}, not between 0 and {most:g}: the result is wrong, and no rate counts')
    told = number(_value(summary, 'HPL_Tflops', source), 'HPL_Tflops', source)
    agree(1e3 * told, linpack.value, 1e-3, ('HPL_Tflops, in Gflop/s,', 'the lines of HPL'), source)
    found = [Figure(metric, subject, number(_value(summary, name, source), name, source), *more)
             for name, (metric, subject, *more) in _FIGURES.items()]
    return [linpack, *found, Figure('figure_of_merit', 'million_updates', 1e3 * number(_value(summary, _UPDATES, source), _UPDATES, source), '1')]


def _section(text, name, source):
    begin, end = (only(text, rf'^{word} of {name} section\.$', f'the line "{word} of {name} section."', source) for word in ('Begin', 'End'))
    return text[begin.end():end.start()]


def _value(summary, name, source):
    if name not in summary:
        raise PlumblineError(f'{source}: {name} is missing in the summary')
    return summary[name]
