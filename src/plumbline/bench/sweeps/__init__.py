'''The benchmark of the sweep: sweeps of the virtual cluster without a fault, and with one on one node, by turns; which nodes are named?'''

import functools

from plumbline.bench import verdicts
from plumbline.bench.sweeps import simulation
from plumbline.bench.sweeps.faults import FAULTS, NotHere
from plumbline.bench.sweeps.place import Place
from plumbline.bench.sweeps.table import NULL, lines
from plumbline.errors import PlumblineError

#: Sweeps without a fault that come first: what they keep is what later ones know of the nodes, as it is on any machine after a while.
FIRST = 5

__all__ = ['FAULTS', 'Place', 'lines', 'plan', 'run', 'simulated']


def plan(null, faults, names):
    '''The kinds of the sweeps in their order.

    :arg null: how many without a fault; :arg faults: how many of each fault.
    '''
    return [NULL] * min(FIRST, null) + verdicts.plan(max(0, null - FIRST), faults, names)


def run(folder, null, faults, only=(), tell=functools.partial(print, flush=True)):
    '''Run the sweeps that the folder does not have yet, one line each, then the table.

    :arg only: names of faults; all by default.
    :raises PlumblineError: if there is no such fault, no cluster can be started, or a sweep has not measured all nodes.
    '''
    unknown = sorted(set(only) - set(FAULTS))
    if unknown:
        raise PlumblineError(f"{unknown[0]}: no such fault; there are {', '.join(FAULTS)}")
    place, numbers, todo = Place(folder), dict.fromkeys([NULL, *FAULTS], 0), []
    for kind in plan(null, faults, only or FAULTS):
        numbers[kind] += 1
        if not place.path(kind, numbers[kind]).exists():
            todo.append((kind, numbers[kind]))
    if todo:
        with verdicts.terminated_as_interrupted(), place:
            for count, (kind, number) in enumerate(todo, 1):
                tell(f'{count} of {len(todo)}: {_sweep(place, kind, number)}')
    for line in lines(place):
        tell(line)


def simulated(tell=functools.partial(print, flush=True)):
    '''The table of :mod:`plumbline.bench.sweeps.simulation`.'''
    for line in simulation.lines():
        tell(line)


def _sweep(place, kind, number):
    '''Sweep once; what came of it, for people.'''
    node = place.node(kind, number) if kind in FAULTS else ''
    try:
        if not node:
            sweep = place.measure(kind, number)
        else:
            with FAULTS[kind].provoke(place, node):
                sweep = place.measure(kind, number, node)
            place.tried(kind)
    except NotHere as reason:
        place.tried(kind, str(reason))
        return f'{kind} {number}: not tried: {reason}'
    where = f' on {node}' if node else ''
    return f"{kind} {number}{where}: exit code {sweep.exit}, named: {', '.join(sweep.named) or 'none'}; {sweep.seconds:.0f} s"
