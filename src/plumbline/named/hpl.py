'''HPL, the High-Performance Linpack: its input from the node, and its output.'''

import math
import re

from plumbline.errors import PlumblineError, WrongResult
from plumbline.named import NUMBER, Figure, agree, demand, number, only

#: Rows and columns of a block.  Of 128 to 256, which suit today's BLAS.
BLOCK = 192

#: The scaled residual below which HPL says PASSED, as in the file that comes with it.
THRESHOLD = 16.0

_RESIDUAL = r'^\|\|Ax-b\|\|_oo/\(eps\S* *(\S+) \.+ (\w+)$'

_INPUT = '''\
HPLinpack benchmark input file
written by Plumbline
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n} Ns
1            # of NBs
{nb} NBs
1            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p} Ps
{q} Qs
{threshold} threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
'''


def order(memory):
    '''The order N of a matrix of doubles that fills the memory: whole blocks, one at least.

    :arg memory: bytes.
    '''
    return max(1, int(math.sqrt(memory / 8)) // BLOCK) * BLOCK


def grid(ranks):
    '''(P, Q): as square as the number of processes allows, P no more than Q.'''
    rows = next(rows for rows in range(math.isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


def input_file(n, nb, p, q):
    '''The text of ``HPL.dat``.'''
    return _INPUT.format(n=n, nb=nb, p=p, q=q, threshold=THRESHOLD)


def figures(text, source='output of HPL', *, n, nb, p, q):
    '''The rate of a run.

    :arg n, nb, p, q: what the input file asked for.
    :raises PlumblineError: also where a residual is not below the threshold, or another problem was solved.
    '''
    refuse_wrong(text, source)
    row = only(text, rf'^(W[RC]\w+) +(\d+) +(\d+) +(\d+) +(\d+) +({NUMBER}) +({NUMBER})\s*$', 'the row of the result', source)
    demand(tuple(map(int, row.groups()[1:5])), (n, nb, p, q), 'the problem (N, NB, P, Q)', source)
    seconds, gflops = number(row[6], 'the time', source), number(row[7], 'the rate', source)
    only(text, _RESIDUAL, 'the residual', source)
    _all_passed(text, source)
    work = (2 / 3 * n**3 + 3 / 2 * n**2) / 1e9
    rounding = 0.5 * 10**-_decimals(row[6]) / seconds + 0.5 * _last_digit(row[7]) / gflops + 1e-3
    agree(gflops, work / seconds, rounding, ('the rate, Gflop/s,', 'N and the time'), source)
    return [Figure('flops', 'hpl', gflops, 'Gflop/s')]


def refuse_wrong(text, source):
    '''Refuse a wrong solution, also of a run that came to no end.

    :raises WrongResult: if there is one.
    '''
    for residual, said in re.findall(_RESIDUAL, text[:text.rfind('\n') + 1], re.MULTILINE):
        if said != 'PASSED' or not number(residual, 'the residual', source) < THRESHOLD:
            raise WrongResult(f'{source}: the residual is {residual}, {said}: the solution is wrong, and no rate counts')


def _all_passed(text, source):
    for count, what in ((1, 'completed and passed residual checks,'), (0, 'completed and failed residual checks,'),
                        (0, 'skipped because of illegal input values.')):
        told = int(only(text, rf'^ +(\d+) tests {re.escape(what)}$', f'the line "tests {what[:-1]}"', source)[1])
        if told != count:
            raise PlumblineError(f'{source}: {told} tests {what[:-1]}')
    only(text, r'^End of Tests\.$', 'the line "End of Tests."', source)


def _decimals(word):
    return len(word.partition('.')[2])


def _last_digit(word):
    '''What the last digit of a number in exponential form stands for.'''
    mantissa, _, exponent = word.lower().partition('e')
    return 10.0 ** (int(exponent or 0) - _decimals(mantissa))
