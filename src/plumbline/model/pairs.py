'''What the times of messages between all pairs of nodes tell: which nodes, and which links, are slower than the others.

Pure functions on matrices: row the sender, column the receiver, the diagonal not a number.
'''

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike

from plumbline.errors import PlumblineError
from plumbline.model import quantity, records, uncertainty

#: With fewer nodes each has fewer than three partners, and the median over them does not tell a node from a link.
LEAST_NODES = 4

#: Slow is what deviates by so many standard deviations, estimated from the median absolute deviation ...
_DEVIATIONS = 5

#: ... and by this part of the median at least: equal values do not deviate by nothing.
_LEAST_NODE, _LEAST_PAIR = 0.15, 0.3


def matrices(record: dict) -> list[np.ndarray]:
    '''(seconds, spread) of a record of the program ``pairs``: of a message with its answer, shape (ranks, ranks).

    :raises PlumblineError: where the record has no such matrices, or numbers in them that cannot be.
    '''
    found = []
    for name in ('seconds', 'spread'):
        values, ranks = records.numbers(record, 'pairs', name), record['ranks']
        others = values[~np.eye(ranks, dtype=bool)] if values.shape == (ranks, ranks) else np.array([np.nan])
        if not (np.isfinite(others).all() and (others >= 0).all() and (name == 'spread' or (others > 0).all())):
            raise PlumblineError(f"record of {record['kernel']}, size {record['size']}: field pairs/{name}: not a finite number above 0 for each "
                                 f'pair of {ranks} ranks; {records.REBUILD}')
        found.append(np.where(np.eye(ranks, dtype=bool), np.nan, values))
    return found


def too_short(record: dict, shortest: float, part: str) -> str | None:
    '''The complaint about samples of single parts that the clock cannot time, although those of all together may be long enough; or :obj:`None`.

    :arg shortest: of a part, seconds; :arg part: what it is, a ``pair`` or a ``round``.
    '''
    return None if shortest >= records.CLOCK_TICKS * record['clock_resolution'] else (
        f'{records.label(record)}: the shortest sample of a {part}, {shortest:.3g} s, is below {records.CLOCK_TICKS} x the clock resolution')


def latency(record: dict) -> np.ndarray:
    '''us of a message one way, half of it and its answer; shape (ranks, ranks).'''
    return quantity.microseconds(matrices(record)[0] / 2)


def bandwidth(record: dict) -> np.ndarray:
    '''MB/s of a message, the time of its empty answer included; shape (ranks, ranks).'''
    return quantity.per_second(record['size'], matrices(record)[0])


def of_nodes(values: np.ndarray) -> np.ndarray:
    '''For each node the median over its partners, when it sends and when it receives: a fault may be of one direction; shape (2, ranks).'''
    return np.stack([np.nanmedian(values, axis=1), np.nanmedian(values, axis=0)])


def typical(values: np.ndarray) -> float:
    '''The median node's: with few nodes a slow one is in half of all pairs.'''
    return float(np.median(of_nodes(values)))


@dataclass(frozen=True)
class Outliers:
    '''What is slow, worst first.

    :attr senders: (node, how many times as slow as the median node when it sends).
    :attr receivers: the same of nodes when they receive.
    :attr pairs: ((sender, receiver), how many times as slow as the two nodes let expect).
    '''
    senders: list[tuple[int, float]]
    receivers: list[tuple[int, float]]
    pairs: list[tuple[tuple[int, int], float]]

    @property
    def nodes(self) -> list[int]:
        '''All nodes that are slow.'''
        return sorted({node for node, _ in self.senders + self.receivers})


def slow(values: np.ndarray, least: float, noise: ArrayLike = 0.0) -> tuple[np.ndarray, np.ndarray]:
    '''(which, values over their median): those above it by more than chance, and by the part ``least`` of it.'''
    values = values / np.nanmedian(values)
    sigma = np.hypot(uncertainty.MAD_TO_SIGMA * np.nanmedian(np.abs(values - 1)), noise * values)
    with np.errstate(invalid='ignore'):
        return values - 1 > np.maximum(_DEVIATIONS * sigma, least), values


def outliers(seconds: np.ndarray, spread: np.ndarray, samples: int) -> Outliers:
    '''Nodes that send slowly, nodes that receive slowly, and pairs that are slower than their two nodes explain.

    A node's time is the median over its partners, so that a slow link does not make a slow node; a pair's time is compared with
    that of its nodes, so that a slow node does not make slow pairs.

    :arg seconds: of a message, shape (n, n); :arg spread: robust relative spread of the samples of each.
    :arg samples: how many samples each is the median of.
    :raises ValueError: with fewer than :data:`LEAST_NODES` nodes.
    '''
    if len(seconds) < LEAST_NODES:
        raise ValueError(f'{len(seconds)} nodes: at least {LEAST_NODES} are needed to tell a slow node from a slow link')
    noise = uncertainty.MEDIAN_ERROR * spread / np.sqrt(samples)
    # What disturbs a node disturbs all its pairs: their noise does not cancel.
    sends, sending = slow(np.nanmedian(seconds, axis=1), _LEAST_NODE, np.nanmedian(noise, axis=1))
    receives, receiving = slow(np.nanmedian(seconds, axis=0), _LEAST_NODE, np.nanmedian(noise, axis=0))
    factors = np.where(sends, sending, 1), np.where(receives, receiving, 1)
    # Two slow nodes: at most both delays come together.
    expected = factors[0][:, None] + factors[1][None, :] - 1
    links, ratio = slow(seconds / expected, _LEAST_PAIR, noise)
    senders, receivers = (sorted(((int(i), float(ratios[i])) for i in np.flatnonzero(which)), key=itemgetter(1), reverse=True)
                          for which, ratios in ((sends, sending), (receives, receiving)))
    pairs = sorted((((int(i), int(j)), float(ratio[i, j])) for i, j in np.argwhere(links)), key=itemgetter(1), reverse=True)
    return Outliers(senders, receivers, pairs)


def told(found: Outliers, names: Sequence[str], what: str, most: int = 10) -> list[str]:
    '''Lines that name what is slow.

    :arg names: of the nodes, by rank.
    :arg what: of which messages, e.g. ``1 MiB``.
    :arg most: of nodes and of pairs each; the others are counted.
    '''
    sending, receiving = dict(found.senders), dict(found.receivers)
    nodes = sorted(found.nodes, key=lambda node: -max(sending.get(node, 1), receiving.get(node, 1)))
    lines = []
    for node in nodes[:most]:
        ways = [f'{way} {factors[node]:.2f} times as slowly as the median node' for way, factors in
                (('sends', sending), ('receives', receiving)) if node in factors]
        lines.append(f'slow node {names[node]}, {what}: {" and ".join(ways)}')
    lines += [f'slow pair {names[i]} to {names[j]}, {what}: {ratio:.2f} times the time that its nodes let expect'
              for (i, j), ratio in found.pairs[:most]]
    for kind, count in (('nodes', len(nodes)), ('pairs', len(found.pairs))):
        if count > most:
            lines.append(f'{count - most} more slow {kind}, {what}, are in the figure')
    return lines
