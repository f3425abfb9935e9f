'''What the metrics of an IMB check are about, as text and back: ``PingPong.4MiB.shm``, ``Allreduce.64.4KiB.shm`` of 64 processes.'''

from plumbline.model.quantity import bytes_of, short_size

#: Kinds of benchmarks that two processes run.
_OF_PAIRS = ('pair', 'parallel', 'element', 'passive')


def subject(case, transport, with_size=True):
    '''What a metric of a :class:`samples.Case` is about: benchmark, RMA's mode, processes of a collective, length, transport.'''
    shape = case.shape
    number = '' if case.kind in _OF_PAIRS and shape.processes == 2 else str(shape.processes)
    size = short_size(case.bytes) if with_size and case.bytes and case.kind != 'element' else ''
    return '.'.join(filter(None, (shape.benchmark, (shape.mode or '').lower(), number, size, transport)))


def read(text):
    '''(benchmark and mode, bytes or None) of a :func:`subject`.'''
    parts = [part for part in text.split('.')[:-1] if not part.isdigit()]
    sizes = [size for size in map(bytes_of, parts) if size is not None]
    return ', '.join(part for part in parts if bytes_of(part) is None), sizes[0] if sizes else None
