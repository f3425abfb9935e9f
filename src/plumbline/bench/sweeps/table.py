'''What a benchmark of the sweep found, from its folder: text that is reStructuredText as well.'''

import numpy as np

from plumbline.bench.sweeps.faults import FAULTS
from plumbline.bench.verdicts.table import NULL, days, grid, not_tried, share
from plumbline.model.grouping import by_key
from plumbline.model.quantity import several

#: The loss from which on a fault counts for precision and recall, a share.
ENOUGH = 0.2


def loss_of(fault, sweeps):
    '''(median loss, subsystem) of what suffers most of what the fault makes slower; (None, None) where nothing was measured of that.'''
    by_part = by_key((part, loss) for sweep in sweeps for part, loss in sweep.losses.items() if part in fault.subsystems)
    return max(((float(np.median(found)), part) for part, found in by_part.items()), default=(None, None))


def precision_and_recall(of_kind, quiet):
    '''Lines: of the faults that take :data:`ENOUGH` and more.

    :arg of_kind: fault -> its sweeps; :arg quiet: those without a fault.
    '''
    large = [sweep for name, sweeps in of_kind.items() if (loss_of(FAULTS[name], sweeps)[0] or 0) >= ENOUGH for sweep in sweeps]
    found, others = sum(sweep.found for sweep in large), sum(len(sweep.others) for sweep in large)
    false = sum(len(sweep.named) for sweep in quiet)
    if not large:
        return [f'No fault took {100 * ENOUGH:g} % or more.']
    named = found + others + false
    precision = f'precision {share(found, named)}' if named else 'no precision: no node is named'
    return [f'Faults that take {100 * ENOUGH:g} % and more: recall {share(found, len(large))}; {precision}, of the nodes that these sweeps and '
            'those without a fault named.']


def _row(name, sweeps):
    fault = FAULTS[name]
    loss, part = loss_of(fault, sweeps)
    return [fault.what, fault.severity, f'{round(100 * loss)} % {part}' if part else 'not a rate',
            share(sum(sweep.found for sweep in sweeps), len(sweeps)), str(sum(len(sweep.others) for sweep in sweeps)),
            str(sum(sweep.names_cause(fault) for sweep in sweeps))]


def lines(place):
    '''The lines of the table; one that says so where there is no sweep yet.'''
    sweeps = place.sessions()
    if not sweeps:
        return [f'{place.folder}: no sweep yet']
    of_kind = by_key((sweep.kind, sweep) for sweep in sweeps)
    quiet = of_kind.pop(NULL, [])
    tried = {name: of_kind[name] for name in FAULTS if name in of_kind}
    most = max(map(len, tried.values()), default=0)
    command = f'``plumbline bench sweeps --null {len(quiet)} --faults {most}``'
    found = [f'{days(sweeps)}, {command}: {several(len(sweeps), "sweep")} of {len(place.nodes)} nodes, of '
             f'{np.median([sweep.seconds for sweep in sweeps]):.0f} s; caches: {place.capacity}.', '']
    if quiet:
        false = [sweep for sweep in quiet if sweep.named]
        found += [f'Nothing changed: a node is named in {share(len(false), len(quiet))}.', '']
    if tried:
        named, total = sum(sweep.names_cause(FAULTS[name]) for name, its in tried.items() for sweep in its), sum(map(len, tried.values()))
        head = ['fault', 'severity', 'loss', 'found', 'others named', 'cause named']
        found += [*precision_and_recall(tried, quiet), f'The cause is named in {share(named, total)}.', '']
        found += grid([head, *(_row(name, its) for name, its in tried.items())])
    return found + not_tried(place, FAULTS, tried)
