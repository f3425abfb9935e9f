'''The time of a message, for all programs that send some.'''

from plumbline.model import records


def seconds(record):
    '''Seconds of one message, or of a pass that sends none, for every sample: shape (n,).

    The option ``messages`` of the record says how many a pass sends one after the other or in windows, ``acknowledgements``
    how many empty ones answer them.
    '''
    options = record['options']
    each = max(1, options['messages'] + options.get('acknowledgements', 0))
    return records.per_pass(record) / each
