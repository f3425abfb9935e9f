'''What a message's time is made of, by the Memory-LogP model: pure functions.

A message of data that do not lie together takes o + l_p + l_m + L (byna2003, section 4, after Cameron and Sun 2003):

- o: copying as many contiguous bytes,
- l_p: what collecting the data takes longer than that copy,
- L: what a contiguous message takes longer than that copy: the network,
- l_m: all the rest, the middleware's: further copies, waiting for each other.  Where an MPI packs one part while the
  one before is on its way, it takes less time than its parts, and l_m is negative: it is a difference, and is left as it is.

Each is a difference of times that were measured by turns (the program ``datatype``), taken round by round.
'''

from dataclasses import dataclass

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.model import metrics, records
from plumbline.mpi import messages

#: A way of sending -> the same packing without a message.
PACKING = {'datatype': 'pack_datatype', 'packed': 'pack_hand', 'blocked': 'pack_blocked', 'mpi_pack': 'pack_datatype', 'library': 'pack_library'}


@dataclass(frozen=True)
class Split:
    '''The parts of a message's time: arrays of shape (rounds,), seconds.'''
    copy: np.ndarray            # o
    packing: np.ndarray         # l_p
    middleware: np.ndarray      # l_m
    network: np.ndarray         # L

    @property
    def total(self):
        '''The time of the message itself, which is their sum.'''
        return self.copy + self.packing + self.middleware + self.network


def split(group):
    '''The parts of the time of every way of sending in a group.

    :arg group: the records of one group of ``datatype``, which were measured by turns: ``contiguous``, ``copy``, and of each
        way of sending also its packing alone (:data:`PACKING`).
    :returns: dictionary variant -> :class:`Split`, ``contiguous`` (o + L alone, by definition) last.
    :raises PlumblineError: if something to subtract is missing, or was not measured in the same rounds.
    '''
    seconds = {record['variant']: messages.seconds(record) for record in metrics.kernels(group)}
    sent = [variant for variant in PACKING if variant in seconds]
    missing = {'contiguous', 'copy', *(PACKING[variant] for variant in sent)} - set(seconds)
    if missing:
        raise PlumblineError(f"the split of a message's time needs {', '.join(sorted(missing))} in the same group: run datatype with --variants all")
    rounds = {len(found) for found in seconds.values()}
    if len(rounds) != 1:
        raise PlumblineError(f'{records.label(group[0])}: a round is missing (there are {sorted(rounds)} samples); run the program again')
    copy = seconds['copy']
    network = seconds['contiguous'] - copy
    found = {}
    for variant in sent:
        packing = seconds[PACKING[variant]] - copy
        found[variant] = Split(copy, packing, seconds[variant] - (copy + packing + network), network)
    nothing = np.zeros_like(copy)
    return found | {'contiguous': Split(copy, nothing, nothing, network)}
