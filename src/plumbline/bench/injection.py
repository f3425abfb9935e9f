'''Injected latency, overhead and gap: that what is added is what was asked for.'''

import numpy as np

from plumbline.bench import mpi
from plumbline.bench.common import Figure
from plumbline.model.quantity import microseconds
from plumbline.mpi import messages, pingpong

#: Latencies that are asked for, us.
_LATENCIES = (5, 10, 25, 50, 100)

#: How far what is added may be from what was asked for.
_EXACT = 0.05

#: Messages outstanding at once, and the latency of which they must pay one, not as many.
_WINDOW, _LONG = 64, 100


def _message_us(each, **variables):
    '''Median time of a message of 8 bytes, us.'''
    measured = each.run('pingpong', '--size', 8, '--samples', 10, '--min-time', '0.02', preload='latency', **variables)
    return microseconds(float(np.median(pingpong.curve(measured, 'standard')[8])))


def _window_us(each, **variables):
    '''Median time of a window of messages and the answer to it, us.'''
    record, = each.run('rma', '--variants', 'send', '--size', 8, '--window', _WINDOW, '--messages', _WINDOW, '--samples', 10,
                       '--min-time', '0.02', preload='latency', **variables)
    return microseconds(float(np.median(messages.seconds(record)))) * (_WINDOW + record['options']['acknowledgements'])


@mpi.of_each
def figures(each, pairs):
    '''Yield every :class:`Figure`, for each MPI.'''
    title = each.family.title
    measured = each.run('pingpong', '--size', 8, '--latency', ','.join(map(str, (0, *_LATENCIES))), '--samples', 10 * pairs,
                        '--min-time', '0.01', preload='latency', PLUMBLINE_LATENCY_US=str(max(_LATENCIES)))
    times = {record['options']['latency']: messages.seconds(record) for record in measured}
    for latency in _LATENCIES:
        yield Figure(f'{title}: half round trip grows by L = {latency} us, over L', microseconds(times[latency] - times[0]) / latency,
                     1 - _EXACT, 1 + _EXACT)
    # Messages and their answer: two of L, whatever the number of messages.
    runs = [(_window_us(each), _window_us(each, PLUMBLINE_LATENCY_US=str(_LONG))) for _ in range(pairs)]
    yield Figure(f'{title}: {_WINDOW} messages outstanding and an answer, L = {_LONG} us: added, over L',
                 np.array([(added - plain) / _LONG for plain, added in runs]), 1.9, 2.3)
    runs = [(_message_us(each), _message_us(each, PLUMBLINE_OVERHEAD_US='5')) for _ in range(pairs)]
    yield Figure(f'{title}: half round trip grows by o = 5 us on either side, over o',
                 np.array([(added - plain) / 5 for plain, added in runs]), 1.9, 2.15)
