'''HPCG: the size from the node's memory, and the summary that it leaves in a file.'''

from plumbline.errors import PlumblineError, WrongResult
from plumbline.named import Figure, agree, demand, number, only

#: Bytes that it needs for an equation, about; HPCG counts 716 itself, and what it needs to set the problem up comes on top.
BYTES_PER_EQUATION = 1000

#: Seconds that a run must last whose result its authors list.
OFFICIAL_SECONDS = 1800

#: The parts whose results it checks, and what else stands in their names.
_PASSED = {'Spectral Convergence Tests': '', 'Departure from Symmetry': '.*/epsilon', 'Iteration Count Information': '',
           'Reproducibility Information': ''}


def edge(memory, ranks):
    '''Edge of the local grid of a process such that all fill the memory: a multiple of 8, 16 at least.

    :arg memory: bytes.
    '''
    return max(16, int((memory / ranks / BYTES_PER_EQUATION) ** (1 / 3)) // 8 * 8)


def figures(text, source='HPCG-Benchmark.txt', *, n, processes):
    '''The rating of a run.

    :arg text: the file that HPCG leaves.
    :arg n: edge of the local grid; ``processes``: how many were started.
    :raises PlumblineError: also where HPCG does not call the result valid, or solved another problem.
    '''
    for name, expected in (('Machine Summary::Distributed Processes', processes), *((f'Local Domain Dimensions::n{axis}', n) for axis in 'xyz')):
        demand(_entry(text, name, source), str(expected), name.rpartition('::')[2], source)
    for name, more in _PASSED.items():
        said = _entry(text, f'{name}{more}::Result', source)
        if said != 'PASSED':
            raise WrongResult(f'{source}: {name}: {said}: the result is wrong, and no rate counts')
    final = only(text, r'^Final Summary::HPCG result is (.*)$', 'the line "HPCG result is VALID"', source)[1]
    if not final.startswith('VALID with a GFLOP/s rating of='):
        raise WrongResult(f'{source}: HPCG result is {final.strip()}: no rate counts')
    rating = number(final.partition('=')[2], 'the rating', source)
    seconds, work, raw = (number(_entry(text, name, source), name, source) for name in (
        'Benchmark Time Summary::Total', 'Floating Point Operations Summary::Total', 'GFLOP/s Summary::Raw Total'))
    agree(raw, work / seconds / 1e9, 1e-4, ('"Raw Total", Gflop/s,', 'operations over the time'), source)
    if rating > raw * (1 + 1e-4):
        raise PlumblineError(f'{source}: the rating is {rating:g}, more than "Raw Total", {raw:g}: the output contradicts itself')
    return [Figure('flops', 'hpcg', rating, 'Gflop/s')]


def _entry(text, name, source):
    return only(text, rf'^{name}=(.*?) *$', f'"{name.rpartition("::")[2]}"', source)[1]
