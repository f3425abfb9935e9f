'''Our program and its peers by turns, in processes that alternate, and what that gives.'''

from dataclasses import dataclass
from typing import Callable

import numpy as np

from plumbline.bench.common import Figure, threads_text
from plumbline.errors import PlumblineError

#: A kernel is at least so much faster than the best of its kind.
LEAST = 1.1


def mean(rates):
    '''Of rates of equal work: all of the work by all of the time.'''
    return len(rates) / np.sum(1 / np.asarray(rates))


@dataclass(frozen=True)
class Peer:
    '''Another program for the same work.

    :attr run: function (cpus) -> {case: {way: rate}}: the ways are its kernels or builds, of which the best counts.
    :attr statistic: how its rate comes from its samples; ours come from ours by the same.
    '''
    name: str
    run: Callable
    statistic: Callable = np.median


class Comparison(Figure):
    '''A figure that says BEHIND where the other one is faster.'''

    @property
    def state(self):
        return 'BEHIND' if len(self.samples) and self.value < 1 else super().state


def by_turns(what, cpus, ours, peers, pairs, least=LEAST, most=float('inf'), kind=Comparison):
    '''Yield our rate over that of each peer, case by case, the best way of either: the one with the highest median.

    Each turn runs all of them, and begins with the next one.

    :arg ours: function (cpus) -> {case: {variant: rates of the samples}}.
    :arg peers: list of :class:`Peer`.
    :arg kind: of figure: a class.
    '''
    turns, failed = [], {}
    for turn in range(pairs):
        order, found = [None, *peers], {}
        for peer in order[turn % len(order):] + order[:turn % len(order)]:
            if peer and peer.name in failed:
                continue
            try:
                found[peer] = (peer.run if peer else ours)(cpus)
            except PlumblineError as error:
                if peer is None:
                    raise
                failed[peer.name] = str(error)
        turns.append(found)
        if len(failed) == len(peers):
            break
    for peer in peers:
        if peer.name in failed:
            yield kind(f'{what}, {threads_text(cpus)}: ours / {peer.name}', np.array([]), least, most, failed[peer.name])
            continue
        for case in turns[0][peer]:
            mine = {way: np.array([peer.statistic(found[None][case][way]) for found in turns]) for way in turns[0][None][case]}
            others = {way: np.array([found[peer][case][way] for found in turns]) for way in turns[0][peer][case]}
            best, other = (max(ways, key=lambda way, of=ways: np.median(of[way])) for ways in (mine, others))
            yield kind(f'{what} {case}, {threads_text(cpus)}: {best} / {peer.name} {other}'.lstrip(), mine[best] / others[other], least, most)
