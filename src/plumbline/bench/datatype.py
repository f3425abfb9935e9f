'''The matrix transpose as a message: with the packing library against the MPI's own datatypes and packing by hand.'''

import itertools

from plumbline.bench import mpi
from plumbline.bench.common import Figure
from plumbline.model import limits
from plumbline.mpi import messages

_SIZES = (64, 128, 256, 512, 1024, 2048, 4096)

#: From here up the library must be faster, by so much, where the MPI packs element by element.
_LARGE, _FASTER = 1024, {'openmpi': 2.0, 'mpich': 4.0}

#: Never slower than this.
_HARMLESS = 0.97

_VARIANTS = ('datatype', 'blocked', 'library', 'contiguous', 'pack_datatype', 'pack_blocked', 'pack_library', 'unpack_datatype',
             'unpack_blocked', 'unpack_library')


def _speed(of, variant, other):
    return limits.paired_ratio(of[variant], of[other], 'bytes')


def at_size(machine, size, pages, of):
    '''Figures of one size.

    :arg pages: ``base`` or ``huge``, of all but the library's own buffers.
    :arg of: variant -> record, of one group.
    '''
    where, large = f'{machine.family.title}, {size} x {size}, {pages} pages', size >= _LARGE
    yield Figure(f'{where}: library / datatype', _speed(of, 'library', 'datatype'),
                 _FASTER.get(machine.family.name, _HARMLESS) if large else _HARMLESS)
    yield Figure(f'{where}: library / blocked by hand', _speed(of, 'library', 'blocked'), 1.0 if large else float('-inf'))
    seconds = {variant: messages.seconds(of[variant]) for variant in ('contiguous', 'library')}
    yield Figure(f'{where}: library / contiguous', seconds['contiguous'] / seconds['library'], 0.5 if large else float('-inf'))
    yield Figure(f'{where}: packing in blocks / MPI_Pack', _speed(of, 'pack_blocked', 'pack_datatype'),
                 remark='then 3.8 to 5.5 with padding, from 512 x 512 up (byna2003, figure 1)')
    for action in ('pack', 'unpack'):
        yield Figure(f"{where}: library's {action} alone / MPI_{action.title()}", _speed(of, f'{action}_library', f'{action}_datatype'))
        yield Figure(f"{where}: library's {action} alone / blocked by hand", _speed(of, f'{action}_library', f'{action}_blocked'))


@mpi.of_each
def figures(each, pairs):
    '''Yield every :class:`Figure`, over shared memory; the library's settings are its own.

    On base pages, as programs get them that ask for no others, a contiguous message may take longer than one from the
    library's buffers, for which it asks huge pages: so both are measured.
    '''
    for pages, size in itertools.product(('base', 'huge'), _SIZES):
        if 2 * 3 * 8 * size**2 <= each.memory / 4:
            measured = each.run('datatype', '--variants', ','.join(_VARIANTS), '--size', size, '--pages', pages,
                                '--samples', 10 if size > 2048 else 25, '--min-time', '0.005', preload='pack')
            yield from at_size(each, size, pages, {record['variant']: record for record in measured})
