'''NAS Parallel Benchmarks, their MPI versions 3.3 and 3.4: what a class needs of memory and processes, and the output.'''

import math
import re
from dataclasses import dataclass

from plumbline.errors import PlumblineError, WrongResult
from plumbline.model import quantity
from plumbline.named import Figure, agree, demand, number, only

#: Small to large; S and W are for trying whether it works.
CLASSES = 'SWABCDE'

#: Seconds of a run, at most, where its class is not asked for: three take four hours, which is what a job may ask for by itself.
LONGEST = 4800

#: Operation type -> (metric, unit).
_RATES = {'floating point': ('flops', 'Mflop/s'), 'keys ranked': ('figure_of_merit', '1'), 'Random numbers generated': ('figure_of_merit', '1')}


@dataclass(frozen=True)
class Kernel:
    '''A benchmark.

    :attr points: class -> grid points, rows or keys (NAS-95-020, NPB 3.4's ``setparams``).
    :attr each: bytes of memory for each, of all processes together.
    :attr work: operations of the classes C, D and E by the program's own count, 10^9; the smaller ones take minutes.
    :attr rate: of them in a second at least, of a process beside others.
    :attr squares: whether it takes square numbers of processes, powers of two otherwise.
    '''
    points: tuple
    each: float
    work: tuple
    rate: float
    squares: bool = False

    def memory(self, letter):
        '''Bytes that a class needs, about.'''
        return self.each * self.points[CLASSES.index(letter)]

    def seconds(self, letter, processes):
        '''That a run takes, at most.'''
        return dict(zip('CDE', self.work)).get(letter, 0) / self.rate / processes

    def processes(self, cpus):
        '''The largest number of processes that it takes, no more than CPUs.'''
        return math.isqrt(cpus)**2 if self.squares else 1 << (cpus.bit_length() - 1)


def _cubes(*edges):
    return tuple(edge**3 for edge in edges)


#: Nonzeros of CG: rows x (nonzeros of a row + 1)^2.
_NONZEROS = tuple(rows * (nonzeros + 1)**2 for rows, nonzeros in (
    (1400, 7), (7000, 8), (14000, 11), (75000, 13), (150000, 15), (1500000, 21), (9000000, 26)))

#: Name -> :class:`Kernel`.  Bytes: resident memory of class A of NPB 3.4.2 on one process, less the 16 MB of MPI, rounded up.
KERNELS = {
    'ep': Kernel((1,) * 7, 2e6, (8.6, 137, 2199), 0.025),       # tables of random numbers: next to nothing, whatever the class
    'mg': Kernel(_cubes(32, 128, 256, 256, 512, 1024, 2048), 46, (156, 3114, 24910), 0.35),
    'cg': Kernel(_NONZEROS, 30, (143, 3643, 33089), 0.1),
    'ft': Kernel((64**3, 128 * 128 * 32, 256 * 256 * 128, 512 * 256 * 256, 512**3, 2048 * 1024 * 1024, 4096 * 2048 * 2048), 90,
                 (396, 8964, 78410), 0.25),
    'is': Kernel((2**16, 2**20, 2**23, 2**25, 2**27, 2**31, 2**35), 25, (1.34, 21.5, 344), 0.01),
    'lu': Kernel(_cubes(12, 33, 64, 102, 162, 408, 1020), 260, (2039, 39898, 628475), 0.55),
    'sp': Kernel(_cubes(12, 36, 64, 102, 162, 408, 1020), 350, (1450, 29536, 465120), 0.35, squares=True),
    'bt': Kernel(_cubes(12, 24, 64, 102, 162, 408, 1020), 500, (2866, 58336, 918348), 0.8, squares=True),
}


def choose(name, there, memory, processes, letter=None):
    '''The class to run: the largest of those that are there and fit.

    :arg there: classes of which the program was found.
    :arg memory: bytes that may be used.
    :arg letter: the class that was asked for, however long it takes, or :obj:`None`.
    :raises PlumblineError: if it is not there, or none fits.
    '''
    if letter and letter not in there:
        raise PlumblineError(f"{name}: class {letter} was asked for, and is not there: {', '.join(there)} are")

    def too_much(one):
        needed, seconds = KERNELS[name].memory(one), KERNELS[name].seconds(one, processes)
        if needed > memory:
            return f'needs about {quantity.size(needed)} of memory, and {quantity.size(memory)} may be used'
        return '' if letter or seconds <= LONGEST else (
            f'may take {seconds / 3600:.1f} h on {quantity.several(processes, "core")} (-S npb.letter={one} runs it all the same)')

    wanted = [letter] if letter else there
    if fits := [one for one in wanted if not too_much(one)]:
        return max(fits, key=CLASSES.index)
    least = min(wanted, key=CLASSES.index)
    smaller = [one for one in CLASSES if not too_much(one)][-1:]
    raise PlumblineError(f'{name}: class {least} {too_much(least)}' + (f': build class {smaller[0]}' if smaller else ''))


def figures(text, source='output of NPB', *, name, letter, processes):
    '''The rate of a process in a run.

    :arg name: a key of :data:`KERNELS`; ``letter``: the class; ``processes``: how many were started.
    :raises PlumblineError: also where the benchmark does not say that its result was right.
    '''
    alone = len(re.findall(r'^ Total processes = +1$', text, re.MULTILINE))
    if alone > 1 and processes > 1:
        raise PlumblineError(f'{source}: it ran {alone} times as one process, not once as {processes}: it was built with another MPI than the '
                             "environment's")
    only(text, rf'^ {name.upper()} Benchmark Completed\.?$', f'the line "{name.upper()} Benchmark Completed"', source)
    demand(_entry(text, 'Class', source), letter, 'the class', source)
    verified = _entry(text, 'Verification', source)
    if verified != 'SUCCESSFUL':
        raise WrongResult(f'{source}: verification {verified}: the result is wrong, and no rate counts')
    for entry in ('Total processes', 'Active processes|Compiled procs '):
        demand(_entry(text, entry, source), str(processes), f'"{entry.split("|")[0]}"', source)
    number(_entry(text, 'Time in seconds', source), 'the time (a class that takes longer can be measured)', source)
    total, each = (number(_entry(text, entry, source), entry, source) for entry in ('Mop/s total', 'Mop/s/process'))
    agree(total, each * processes, 0.005 / each + 0.005 / total + 1e-6, ('Mop/s total', 'those of a process'), source)
    operation = _entry(text, 'Operation type', source)
    if operation not in _RATES:
        raise PlumblineError(f'{source}: the operation type {operation!r} is not one of {", ".join(_RATES)}')
    metric, unit = _RATES[operation]
    return [Figure(metric, f'class_{letter}', each, unit)]


def _entry(text, name, source):
    return only(text, rf'^ (?:{name}) *= *(\S.*?) *$', f'"{name.split("|")[0]}"', source)[1]
