'''Our program and its peers by turns, in processes that alternate, and what that gives.'''

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumbline.bench.common import Figure, threads_text
from plumbline.errors import PlumblineError
from plumbline.model import states

#: A kernel is at least so much faster than the best of its kind.
LEAST = 1.1


def mean(rates):
    '''Of rates of equal work: all of the work by all of the time.'''
    return len(rates) / np.sum(1 / np.asarray(rates))


@dataclass(frozen=True)
class Peer:
    '''Another program for the same work.

    :attr run: function (cpus) -> {case: {way: rate}}: the ways are its kernels or builds, of which the best counts.
    :attr statistic: how its rate comes from its samples, and ours from ours: by the median, unless it prints something else alone.
    '''
    name: str
    run: Callable
    statistic: Callable = np.median


class Comparison(Figure):
    '''A figure that says BEHIND where the other one is faster.'''

    @property
    def state(self):
        return 'BEHIND' if len(self.samples) and self.value < 1 else super().state


def by_turns(machine, what, cpus, ours, peers, pairs, least=LEAST, most=float('inf'), kind=Comparison):
    '''Yield our rate over that of each peer, case by case, the best way of either: the one with the highest median.

    Each turn runs all of them, and begins with the next one.  A turn counts where the machine was in one state, the one that most
    turns were in; others are repeated, as many as ``pairs``.

    :arg ours: function (cpus) -> {case: {variant: rates of the samples}}.
    :arg peers: list of :class:`Peer`.
    :arg kind: of figure: a class.
    '''
    turns: list[dict] = []
    kept: list[dict] = []
    failed: dict[str, str] = {}
    while len(kept) < pairs and len(turns) < 2 * pairs and len(failed) < len(peers):
        turns.append(_turn(machine, cpus, ours, peers, len(turns), failed))
        kept = _in_one_state(turns)
    moved = [f'{len(turns) - len(kept)} of {len(turns)} turns were in other states'] * (len(kept) < len(turns))
    for peer in peers:
        if peer.name in failed or not kept:
            yield kind(f'{what}, {threads_text(cpus)}: ours / {peer.name}', np.array([]), least, most, failed.get(peer.name, *moved))
            continue
        told = [f'{peer.statistic.__name__} of either, for {peer.name} tells no median'] * (peer.statistic is not np.median)
        for case in kept[0][peer]:
            mine = {way: np.array([peer.statistic(found[None][case][way]) for found in kept]) for way in kept[0][None][case]}
            others = {way: np.array([found[peer][case][way] for found in kept]) for way in kept[0][peer][case]}
            best, other = (max(ways.items(), key=lambda way: np.median(way[1]))[0] for ways in (mine, others))
            yield kind(f"{f'{what} {case}'.strip()}, {threads_text(cpus)}: {best} / {peer.name} {other}", mine[best] / others[other], least, most,
                       ', '.join([*told, *moved]))


def _turn(machine, cpus, ours, peers, number, failed):
    '''(what each of them found, the machine's state before, between and after them).

    :arg failed: names of the peers that have failed -> why; more are added.
    '''
    order, found, seen = [None, *peers], {}, [machine.state(cpus)]
    for peer in order[number % len(order):] + order[:number % len(order)]:
        if peer and peer.name in failed:
            continue
        try:
            found[peer] = (peer.run if peer else ours)(cpus)
        except PlumblineError as error:
            if peer is None:
                raise
            failed[peer.name] = str(error)
        seen.append(machine.state(cpus))
    return found, seen


def _in_one_state(turns):
    '''What was found in the turns in which the machine was in one state, the one that most of them were in.'''
    steady = [(found, seen[0]) for found, seen in turns if all(states.same(seen[0], state) for state in seen)]
    return max(([found for found, state in steady if states.same(state, chosen)] for _, chosen in steady), key=len, default=[])
