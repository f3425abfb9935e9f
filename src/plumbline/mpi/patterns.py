'''What patterns of messages over nodes tell (the program ``patterns``): pure functions on its records.

A pattern has rounds: pairs of nodes one after the other, matchings, targets of an incast, or a single one.  A sample of a round is the time of
its slowest process.
'''

import math

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.model import quantity, records
from plumbline.model.pairs import LEAST_NODES, slow

#: What a check of a pattern measures: what two nodes reach alone, and what all reach at once.
VARIANTS = {'bisection': ('pair', 'bisection'), 'neighbour': ('pair', 'ring', 'grid2', 'grid3'), 'pairs': ('pair', 'matchings'),
            'incast': ('oneway', 'incast'), 'alltoall': ('pair', 'alltoall')}

#: The variants in which the time of a node is its own: in each other one it is, too, that of the one partner that it has.
OF_ONE_NODE = ('matchings', 'incast')

_GRIDS = {'grid2': 2, 'grid3': 3}


def variants(pattern, nodes):
    '''The variants of a pattern that so many nodes can do: a grid needs two nodes and more along each dimension.'''
    return [name for name in VARIANTS[pattern] if _prime_factors(nodes) >= _GRIDS.get(name, 1)]


def _prime_factors(number):
    found, factor = 0, 2
    while factor * factor <= number:
        found, number, factor = (found + 1, number // factor, factor) if number % factor == 0 else (found, number, factor + 1)
    return found + (number > 1)


def growing(nodes):
    '''Numbers of nodes: 2, 4, 8, ... and all.'''
    return [*(2**power for power in range(1, nodes.bit_length()) if 2**power < nodes), nodes]


def rounds(record):
    '''Seconds of the slowest process in each round and sample: shape (rounds, samples).

    :raises PlumblineError: where the record has no such matrix, or numbers in it that cannot be.
    '''
    found = records.numbers(record, 'pattern', 'rounds')
    if found.ndim != 2 or not found.size or not (np.isfinite(found) & (found > 0)).all():
        raise PlumblineError(f'{records.label(record)}: field pattern/rounds: not a number of seconds above 0 for each round and sample; '
                             f'{records.REBUILD}')
    return found


def bandwidth(record):
    '''MB/s of a node in all rounds together, of each sample: what it sends, or, of an incast, what its target gets.'''
    found = rounds(record)
    return quantity.per_second(len(found) * record['pattern']['bytes'], found.sum(axis=0))


def of_worst_round(record):
    '''The same of the slowest round, by the medians: (its number from 1, samples).'''
    found = rounds(record)
    worst = int(np.argmax(np.median(found, axis=1)))
    return worst + 1, quantity.per_second(record['pattern']['bytes'], found[worst])


def alone(record):
    '''MB/s of the median one of the pairs that were measured alone: one bad link does not change it.'''
    return quantity.per_second(record['pattern']['bytes'], np.median(rounds(record), axis=0))


def latency(record):
    '''us of the messages of a pattern, all of a node's together: mean over the rounds, of each sample.'''
    return quantity.microseconds(rounds(record).mean(axis=0) / record['pattern']['repeats'])


def of_nodes(record, per_node):
    '''(seconds of one repeat, robust relative spread) of each node, its slowest rank's: shape (nodes,); NaN for one that has no time of its own.'''
    seconds, spread = (np.array(record['pattern'][key], dtype=float).reshape(-1, per_node) for key in ('seconds', 'spread'))
    known = ~np.isnan(seconds).all(axis=1)
    found = np.full((2, len(seconds)), np.nan)
    slowest = np.nanargmax(seconds[known], axis=1)
    found[:, known] = seconds[known, slowest], np.take_along_axis(spread[known], slowest[:, None], 1)[:, 0]
    return found


def worst_over_median(record, per_node):
    '''Rate of the slowest node over that of the median one.'''
    seconds, _ = of_nodes(record, per_node)
    return float(np.nanmedian(seconds) / np.nanmax(seconds))


def told(record, names, per_node, what, most=10):
    '''Lines that name the slowest rank, and the nodes that are slower than the others.

    :arg names: of the ranks' nodes, by rank; :arg what: of which messages, e.g. ``1 MiB``; :arg most: nodes; more are counted.
    '''
    variant = record['variant']
    of_ranks = np.array(record['pattern']['seconds'], dtype=float)
    rank, seconds = int(np.nanargmax(of_ranks)), np.nanmax(of_ranks)
    partner = _partner(record, rank, per_node, names)
    yield (f'{variant}, {what}: slowest is rank {rank} on {names[rank]}{partner}, {seconds / np.nanmedian(of_ranks):.2f} times the median')
    nodes, spread = of_nodes(record, per_node)
    if variant not in OF_ONE_NODE or np.isfinite(nodes).sum() < LEAST_NODES:
        return
    # Rounds are few, but each sample is of all of them.
    which, ratio = slow(nodes, 0.15, np.nan_to_num(spread) / math.sqrt(len(record['seconds'])))
    found = sorted(np.flatnonzero(which), key=lambda node: -ratio[node])
    way = 'receives from all others' if variant == 'incast' else 'exchanges messages'
    for node in found[:most]:
        yield f'slow node {names[node * per_node]}, {what}: {way} {ratio[node]:.2f} times as slowly as the median node'
    if len(found) > most:
        yield f'{len(found) - most} more slow nodes, {what}, are in the figure'


def _partner(record, rank, per_node, names):
    '''Whom the slowest rank of a bisection waited for, if it is not slow itself.'''
    half = record['pattern']['nodes'] // 2 * per_node
    return f' or its partner on {names[(rank + half) % (2 * half)]}' if record['variant'] == 'bisection' else ''
