'''What pipelining makes of a remote access (anderson1997, figure 4): pure functions on the records of ``rma``.

A curve is a dictionary W (messages outstanding at once) -> record, ascending; all of them ran interleaved.
'''

from plumbline.model import limits, records, uncertainty

#: Ways that are compared in a table, with what their latency is the time of.
WAYS = {
    'get': 'until the data are here', 'rget': 'until the data are here', 'rolling': 'until the data are here',
    'get_busy': 'until the data are here', 'get_rewritten': 'until the data are here',
    'put': 'until the data are there, and known to be', 'put_busy': 'until the data are there, and known to be',
    'rput': 'until the buffer may be used again',
    'send': 'half of a message and its answer',
    'shmem_get': 'until the data are here', 'shmem_get_nbi': 'until the data are here',
    'shmem_put': 'until the data are there, and known to be', 'shmem_put_nbi': 'until the data are there, and known to be',
}


def outstanding(record):
    '''W.'''
    return record['options']['window']


def seconds(record):
    '''Seconds of one transfer, for every sample: of the origins, half of the ranks, whatever else a pass has to do.'''
    return 2 * records.per_pass(record, 'communication') / record['options']['messages']


#: Below this a transfer waits for the target: with a target that computes much longer than a transfer takes, the progress of an
#: MPI that needs the target's calls is near 0, and of one that does not near 1.
SERVED = 0.5


def progress(ways, way):
    '''What is left of the rate of transfers where the target computes: 1 where they need nothing of it; a sample for each round.

    :arg ways: dictionary variant -> record, run interleaved; among them ``way`` and its twin whose target computes.
    '''
    return seconds(ways[way]) / seconds(ways[f'{way}_busy'])


def slowdown_rewritten(ways):
    '''Time of a get of what the target has just written, over one of what nobody writes; a sample for each round.'''
    return seconds(ways['get_rewritten']) / seconds(ways['get'])


def curves(measurements, size):
    '''Variant -> curve, of one size of messages (bytes).'''
    found: dict[str, dict[int, dict]] = {}
    for record in sorted(measurements, key=outstanding):
        if record['size'] == size:
            found.setdefault(record['variant'], {})[outstanding(record)] = record
    return found


def speedup(curve):
    '''How many times as many messages a second pass with the largest W as with the smallest: one sample per round.'''
    return limits.paired_ratio(curve[max(curve)], curve[min(curve)], 'bytes')


def half_window(curve):
    '''The W from which on a curve has half of its best rate, between two measured ones interpolated in the logarithms;
    the smallest W if that has it already.'''
    windows = list(curve)
    rates = [records.median_rate(record) for record in curve.values()]
    half = max(rates) / 2
    below = [i for i, rate in enumerate(rates[:rates.index(max(rates))]) if rate < half]
    if not below:
        return float(windows[0])
    at = below[-1]
    return uncertainty.between(half, windows[at:at + 2], rates[at:at + 2])
