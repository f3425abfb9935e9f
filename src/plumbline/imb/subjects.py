'''What the metrics of an IMB check are about, as text and back: ``PingPong.4MiB.shm``.'''

import re

_UNITS = {'B': 0, 'KiB': 10, 'MiB': 20}


def short_size(length):
    '''``4MiB``: bytes as a part of a name, in the largest unit that gives a whole number.'''
    unit = next(unit for unit, power in reversed(_UNITS.items()) if (length % 2**power == 0 and length >= 2**power) or not power)
    return f'{length >> _UNITS[unit]}{unit}'


def bytes_of(short):
    '''The bytes of :func:`short_size`; None for what is none.'''
    found = re.fullmatch(r'(\d+)(B|KiB|MiB)', short)
    return int(found[1]) << _UNITS[found[2]] if found else None


def subject(case, transport, with_size=True):
    '''What a metric of a :class:`samples.Case` is about: benchmark, RMA's mode, length, transport.'''
    size = short_size(case.bytes) if with_size and case.bytes and case.kind != 'element' else ''
    return '.'.join(filter(None, (case.shape.benchmark, (case.shape.mode or '').lower(), size, transport)))


def read(text):
    '''(benchmark and mode, bytes or None) of a :func:`subject`.'''
    parts = text.split('.')[:-1]
    sizes = [size for size in map(bytes_of, parts) if size is not None]
    return ', '.join(part for part in parts if bytes_of(part) is None), sizes[0] if sizes else None
