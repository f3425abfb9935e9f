'''Rows whose numbers contradict each other: one that was garbled, or of an IMB that counts otherwise.'''

import math

#: A time or a rate is printed with this error.
ROUNDING = 0.005

#: What the error of a printed number may be, with that of computing it.
_SLACK = 1.2 * ROUNDING


def contradiction(known, processes, length, values):
    '''What cannot be in the numbers of a row, or :obj:`None`.

    :arg values: name of a column -> number.

    Times and rates are rounded to two decimals each; Mbytes/sec is the bytes of the slowest process's messages in its
    time.  Old versions of IMB mean 2**20 bytes by Mbytes: they are found out here.
    '''
    if values['repetitions'] < 1:
        return 'nothing was repeated'
    if 't_min' in values and not (values['t_min'] <= values['t_avg'] + 2 * ROUNDING and values['t_avg'] <= values['t_max'] + 2 * ROUNDING):
        return f"t_min {values['t_min']}, t_avg {values['t_avg']}, t_max {values['t_max']} are not in this order"
    if values.get('overlap', 0) > 100:
        return f"an overlap of {values['overlap']} %"
    if 'bandwidth' not in values:
        return None
    rate = values['bandwidth']
    time = values.get('t', values.get('t_max'))
    factors = {1, max(1, processes - 1)} if known.kind == 'one to all' else {known.messages}
    # The lowest and the highest rate in MB/s, for bytes in us that are rounded.
    possible = [(factor * length / (time + _SLACK), factor * length / (time - _SLACK) if time > _SLACK else math.inf) for factor in factors]
    if not any(low - _SLACK <= rate <= high + _SLACK for low, high in possible):
        told = ', '.join(f'{name} {value}' for name, value in {'bytes': length, **values}.items())
        return f'{rate} Mbytes/sec do not follow from the other numbers of the row ({told})'
    return None
