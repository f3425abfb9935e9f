'''The benchmark of the sweep: sweeps of the virtual cluster without a fault, and with one on one node, by turns; which nodes are named?'''

import functools

from plumbline.bench import verdicts
from plumbline.bench.sweeps.faults import FAULTS
from plumbline.bench.sweeps.place import Place
from plumbline.bench.sweeps.table import NULL, lines

#: Sweeps without a fault that come first: what they keep is what later ones know of the nodes, as it is on any machine after a while.
FIRST = 5

__all__ = ['FAULTS', 'Place', 'lines', 'plan', 'run']


def plan(null, faults, names):
    '''The kinds of the sweeps in their order.

    :arg null: how many without a fault; :arg faults: how many of each fault.
    '''
    return [NULL] * min(FIRST, null) + verdicts.plan(max(0, null - FIRST), faults, names)


def run(folder, null, faults, only=(), tell=functools.partial(print, flush=True)):
    '''Run the sweeps that the folder does not have yet, one line each, then the table.

    :arg only: names of faults; all by default.
    :raises PlumblineError: if there is no such fault, another one runs in the folder, no cluster can be started, or sweep after sweep has not
        measured all nodes.
    '''
    verdicts.refuse_unknown(only, FAULTS)
    place, order = Place(folder), plan(null, faults, only or FAULTS)
    if any(verdicts.to_do(place, order)):
        with verdicts.terminated_as_interrupted(), verdicts.alone(place.folder), place:
            verdicts.run_all(place, order, FAULTS, tell)
    for line in lines(place):
        tell(line)
