'''STREAM (McCalpin), version 5.10 in C: its output, and whether its arrays were beyond the caches.'''

import re

from plumbline.errors import PlumblineError, WrongResult
from plumbline.model import quantity
from plumbline.named import Figure, agree, demand, number, only

#: Arrays that each kernel reads and writes.
ARRAYS = {'Copy': 2, 'Scale': 2, 'Add': 3, 'Triad': 3}

#: STREAM's own rule: each array so many times all last-level caches.
OVER_CACHES = 4


def figures(text, source='output of STREAM', *, threads, caches):
    '''The best rates of a run.

    :arg threads: how many it was to use.
    :arg caches: bytes of all last-level caches of the node.
    :raises PlumblineError: also where an array is less than four times the caches, a result is wrong, or a rate is not bytes over time.
    '''
    if wrong := re.search(r'^Failed Validation on array.*', text, re.MULTILINE):        # also where the rest is missing
        raise WrongResult(f'{source}: {wrong[0]}: the results are wrong, and no rate counts')
    only(text, r'^STREAM version \$Revision: 5\.10 \$$', 'the line "STREAM version $Revision: 5.10 $"', source)
    width = int(only(text, r'^This system uses (\d+) bytes per array element\.$', 'the size of an element', source)[1])
    size = width * int(only(text, r'^Array size = (\d+) \(elements\), Offset = \d+ \(elements\)$', 'the size of the arrays', source)[1])
    counted = only(text, r'^Number of Threads counted = (\d+)$', 'the number of threads (was it compiled with -fopenmp?)', source)[1]
    demand(int(counted), threads, 'the number of threads', source)
    only(text, r'^Solution Validates: avg error less than \S+ on all three arrays$', 'the line "Solution Validates"', source)
    if size < OVER_CACHES * caches:
        least = -(-OVER_CACHES * caches // width)
        raise PlumblineError(f'{source}: an array has {quantity.size(size)}, and the last-level caches {quantity.size(caches)}: it measures caches; '
                             f'compile it with -DSTREAM_ARRAY_SIZE={least} at least (four times the caches), and -mcmodel=medium')
    return [_figure(text, name, arrays * size, source) for name, arrays in ARRAYS.items()]


def _figure(text, name, moved, source):
    words = only(text, rf'^{name}:(?: +(\S+)){{4}}$', f'the row {name} with its four numbers', source)[0].split()[1:]
    rate, mean, least, most = (number(word, f'{name}, {column}', source) for word, column in zip(words, ('rate', 'mean', 'least', 'most')))
    if not least <= mean <= most:
        raise PlumblineError(f'{source}: {name} takes {least:g} s at least, {mean:g} on average, {most:g} at most: the output contradicts itself')
    rounding = 0.5e-6 / least + 0.05 / rate + 1e-6
    agree(rate, quantity.per_second(moved, least), rounding, (f'the rate of {name}, MB/s,', 'bytes over the least time'), source)
    return Figure('bandwidth', name.lower(), rate, 'MB/s')
