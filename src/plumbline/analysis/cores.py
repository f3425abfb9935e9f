'''What the times of handing a cache line from core to core tell: levels, cores that are not where the topology says, slow cores.

Pure functions of :mod:`plumbline.analysis.handovers`.
'''

from dataclasses import dataclass

import numpy as np

from plumbline.analysis.handovers import of_kinds, pair, rows
from plumbline.analysis.levels import median
from plumbline.model import grouping, pairs, quantity
from plumbline.system import topology

#: Findings, by name.
MISPLACED = 'cores not where the topology says'
NOT_SHARED = 'claimed to share a cache but do not'
ONE_CORE = 'two CPUs of one core'
SLOW_CORE = 'slow core'
LOW_CLOCK = 'core of low clock'
CHANGING = 'latency changes with time'
DISTURBED = 'pairs disturb each other'
SCATTERED = 'CPUs not close together'

#: A pair is where it has been in this share of the samples.
_STAYS = 0.8

#: Two CPUs with this share of their additions per cycle, when both work, have one core between them: two hardware threads get half each.
_SHARED_CORE = 0.75

#: What is so many times as slow is slow, or disturbed.
_SLOW = 1.15


@dataclass(frozen=True)
class Finding:
    '''Something that a person should look at.

    :attr name: one of the names above; :attr text: which CPUs, by how much.
    '''
    name: str
    text: str

    def __str__(self):
        return f'{self.name}: {self.text}'


# --- slow cores -------------------------------------------------------------------------------------------------------

def _fastest(found):
    '''Of each core, the time with the partner that it is fastest with, over the median of the pairs that share the same: one that is misplaced
    is fast with its own fellows.'''
    ratio = found.typical.copy()
    for _, members in found.kinds():
        ratio[members] /= np.median(ratio[members])
    return np.fmin.reduce(found.matrix(ratio), axis=1)


def of_median(found, kinds=()):
    '''Speed of the slowest core over that of the median one of its kind; None with too few cores.'''
    fastest = [_fastest(part) for part, _ in of_kinds(kinds, found) if len(part.cpus) >= pairs.LEAST_NODES]
    return min((float(np.nanmedian(times) / np.nanmax(times)) for times in fastest), default=None)


def slow_cores(found):
    '''(position, how many times as slow) of cores that are slow to hand over to each other one, worst first.'''
    if len(found.cpus) < pairs.LEAST_NODES:
        return []
    which, ratio = pairs.slow(_fastest(found), _SLOW - 1)
    return sorted(((int(core), float(ratio[core])) for core in np.flatnonzero(which)), key=lambda item: -item[1])


# --- the topology -----------------------------------------------------------------------------------------------------

def _certain(found):
    '''Which pairs stay in their level and have no slow core.'''
    slow = [core for core, _ in slow_cores(found)]
    first, second = found.pairs
    return (found.stays >= _STAYS) & ~np.isin(first, slow) & ~np.isin(second, slow)


def agreement(found):
    '''Whether each pair lies as the topology says: not as slow as pairs that share less, nor as fast as pairs that share more,
    unless all of its kind are.

    All caches up to the last level count alike: cores that share a second-level cache need not be faster than others.

    :returns: bool, shape (p,); pairs that change their level, or have a slow core, agree.
    '''
    certain = _certain(found)
    last_cache = max((at for at, name in enumerate(found.names) if name in found.caches), default=-1)
    rank = np.where((found.shared <= last_cache) & np.isin(found.shared, [found.names.index(name) for name in found.caches]),
                    last_cache, found.shared)
    kinds = {own: (rank == own) & certain for own in sorted(set(rank[certain].tolist()))}
    level = {own: int(np.bincount(found.usual[members]).argmax()) for own, members in kinds.items()}
    wrong = np.zeros(len(rank), dtype=bool)
    for own, members in kinds.items():
        for other in kinds:
            # Of the values of the other kind, its usual level only: a tenth of them, where levels run into each other, is no proof.
            like = found.typical[kinds[other] & (found.usual == level[other])]
            if other > own:
                as_slow = (found.usual >= level[other]) & (found.typical >= np.percentile(like, 10)) & (level[own] < level[other])
                wrong |= members & (as_slow | (found.usual > level[other]))
            elif other < own:
                as_fast = (found.usual <= level[other]) & (found.typical <= np.percentile(like, 90)) & (level[own] > level[other])
                wrong |= members & (as_fast | (found.usual < level[other]))
    return ~wrong


def _clusters(found, members):
    '''Positions of the cores that are in these pairs, as far as pairs connect them: a list of ascending lists.'''
    place = np.arange(len(found.cpus))
    first, second = (side[members] for side in found.pairs)
    while (place[first] != place[second]).any():
        low = np.minimum(place[first], place[second])
        np.minimum.at(place, first, low)
        np.minimum.at(place, second, low)
    return list(grouping.by_key((at, core) for core, at in enumerate(place)).values())


def _cpus(found, positions):
    return topology.cpu_list(sorted(found.cpus[at] for at in positions))


def _ns(value):
    return quantity.amount(1e-3 * value, 'us')


def misplaced(found, most=6):
    '''What contradicts the topology, as a list of at most one :class:`Finding`.'''
    wrong = ~agreement(found)
    if not wrong.any():
        return []
    first, second = (side[wrong] for side in found.pairs)
    worst = np.bincount(np.concatenate([first, second]), minlength=len(found.cpus))
    cores = [int(core) for core in np.argsort(-worst, kind='stable') if worst[core] >= 0.5 * worst.max()]
    told = []
    for at in np.flatnonzero(wrong)[:most]:
        a, b = (side[at] for side in found.pairs)
        told.append(f'{found.cpus[a]} and {found.cpus[b]}, which share the {found.names[found.shared[at]]}, take {_ns(found.typical[at])}')
    more = f', and {wrong.sum() - most} more' if wrong.sum() > most else ''
    return [Finding(MISPLACED, f'{wrong.sum()} of {len(wrong)} pairs are slower than pairs that share less, or faster than pairs that '
                               f'share more, most of them with CPUs {_cpus(found, cores)}: {"; ".join(told)}{more}')]


def not_shared(found):
    '''Caches of the topology whose CPUs fall into groups between which they hand over more slowly: a list of :class:`Finding`.'''
    certain, said = _certain(found), []
    for name, members in found.kinds():
        seen = np.unique(found.usual[members & certain])
        if name not in found.caches or len(seen) < 2:
            continue
        near, far = (members & certain & which for which in (found.usual == seen[0], found.usual > seen[0]))
        apart = set(np.concatenate([side[far] for side in found.pairs]).tolist())
        groups = [group for group in _clusters(found, near) if apart & set(group)]
        if len(found.cpus) >= pairs.LEAST_NODES:
            groups = [group for group in groups if len(group) > 1]      # one alone may be slow for other reasons
        if len(groups) > 1:
            shown = ', '.join(_cpus(found, group) for group in groups[:8]) + (', ...' if len(groups) > 8 else '')
            said.append(Finding(NOT_SHARED, f'{name}: {_ns(np.median(found.typical[near]))} within CPUs {shown}, and '
                                            f'{_ns(np.median(found.typical[far]))} between them'))
    return said


def of_one_core(found, speeds=None):
    '''Which pairs are claimed to be cores of their own, and look like two hardware threads of one: bool, shape (p,).

    They hand over faster than all others, each with one other only, and get fewer additions per cycle when both work.  Where
    additions are not known, fewer than half of the CPUs must be of such pairs: all may be, of caches with two cores each.

    :arg speeds: :class:`Clocks` of the same cores, or None.
    '''
    candidates = (found.usual == 0) & (found.stays >= _STAYS)
    if 'core' in found.names:
        candidates &= found.shared != found.names.index('core')
    first, second = found.pairs
    partners = np.bincount(np.concatenate([first[candidates], second[candidates]]), minlength=len(found.cpus))
    candidates &= (partners[first] == 1) & (partners[second] == 1)
    left = speeds.additions_left if speeds else np.full(len(found.cpus), np.nan)
    both = np.maximum(left[first], left[second])
    return candidates & np.where(np.isfinite(both), both <= _SHARED_CORE, 4 * candidates.sum() < len(found.cpus))


def one_core(found, speeds=None):
    '''Two hardware threads of one core that are claimed to be two cores: a list of :class:`Finding`.'''
    said = []
    for a, b, took in zip(*(values[of_one_core(found, speeds)] for values in (*found.pairs, found.typical))):
        left = speeds.additions_left[[a, b]] if speeds else [np.nan]
        why = (f'they have {left[0]:.2f} and {left[1]:.2f} of their additions per cycle when all work' if np.isfinite(left).all() else
               f'others take {_ns(found.level_ns[1])} and more')
        said.append(Finding(ONE_CORE, f'{found.cpus[a]} and {found.cpus[b]} take {_ns(took)}; {why}'))
    return said


def of_topology(found, speeds=None, kinds=()):
    '''The share of pairs, of cores of one kind, that lie as the topology says; None where each core is of a kind of its own.'''
    agree = [agreement(part) & ~of_one_core(part, own) for part, own in of_kinds(kinds, found, speeds)]
    return float(np.mean(np.concatenate(agree))) if agree else None


def moving(found):
    '''Which pairs were in several levels, for two samples at least, as inside a virtual machine: bool, shape (p,).'''
    return (found.usual >= 0) & ((1 - found.stays) * (found.level >= 0).sum(axis=0) > 1.5)


def changing(found):
    '''What was in several levels during the run: a list of :class:`Finding`.'''
    said = []
    for name, members in found.kinds():
        pairs_moving = members & moving(found)
        if not pairs_moving.any():
            continue
        index = found.level[:, pairs_moving]
        shares = [(level, (index == level).sum() / max((index >= 0).sum(), 1)) for level in range(len(found.boundaries) + 1)]
        changes = np.count_nonzero(np.diff(index, axis=0) * ((index[1:] >= 0) & (index[:-1] >= 0)), axis=0)
        met = ', '.join(f'{_ns(found.level_ns[level])} in {quantity.percent(share, 0)}' for level, share in shares if share > 0)
        said.append(Finding(CHANGING, f'{pairs_moving.sum()} of {members.sum()} pairs that share the {name}: {met} of the samples, with '
                                       f'{np.median(changes):.0f} changes in {len(found.samples)} samples (median pair)'))
    return said


def silent(found):
    '''The share of samples in which a pair did not answer.'''
    return float(np.mean(~np.isfinite(found.samples)))


# --- pairs alone ------------------------------------------------------------------------------------------------------

def together_over_alone(found, record):
    '''How many times as long a pair takes among all pairs of a round as alone: the median over the pairs of each sample, shape (s,).

    :arg record: of the variant ``alone``.
    '''
    width = len(record['cores']['alone'][0])
    alone = rows(record, 'alone', width).reshape(len(record['seconds']), -1, 3)
    ratios = []
    for sample, row in zip(found.samples, alone):
        row = row[np.isfinite(row).all(axis=1)]
        at = [pair(found, int(a), int(b)) for a, b, _ in row]
        ratio = sample[at] / row[:, 2]
        if np.isfinite(ratio).any():
            ratios.append(np.nanmedian(ratio))
    return np.array(ratios)


# --- clocks -----------------------------------------------------------------------------------------------------------

def lowest_clock(found, speeds, kinds=()):
    '''The clock of the slowest core while all work over that of the median one of its kind in each sample; None with too few cores.'''
    shares = [own.all[:, np.argmin(own.of_median)] / median(own.all, axis=1) for _, own in of_kinds(kinds, found, speeds)
              if len(own.cpus) >= pairs.LEAST_NODES]
    return min(shares, key=np.median, default=None)


def low_clocks(found):
    '''Cores whose clock is lower than their fellows': a list of :class:`Finding`.'''
    ratio = found.of_median
    low = [at for at in np.argsort(ratio) if ratio[at] < 1 / _SLOW] if len(ratio) >= pairs.LEAST_NODES else []
    return [Finding(LOW_CLOCK, f"CPU {found.cpus[at]} has {ratio[at]:.2f} of the median core's clock while all work") for at in low]


# --- all together -----------------------------------------------------------------------------------------------------

def findings(found, speeds=None, alone=None, processor=None, kinds=()):
    '''All that a person should look at, the worst first.

    :arg speeds: :class:`Clocks`; :arg alone: as :func:`together_over_alone` gives it; :arg processor: for :data:`SCATTERED`; :arg kinds: as
        :func:`of_kinds` takes them.
    '''
    said = []
    for part, own in of_kinds(kinds, found, speeds):
        said += misplaced(part) + not_shared(part) + one_core(part, own)
        said += [Finding(SLOW_CORE, f'CPU {part.cpus[core]} takes {factor:.2f} times as long as the median core')
                 for core, factor in slow_cores(part)]
        said += low_clocks(own) if own else []
        said += changing(part)
    if alone is not None and len(alone) and not 1 / _SLOW < np.median(alone) < _SLOW:
        said.append(Finding(DISTURBED, f'among all pairs of a round a handover takes {np.median(alone):.2f} times as long as alone'))
    if processor is not None:
        said += [Finding(SCATTERED, f'{len(found.cpus)} CPUs lie on {used} {name}, and {needed} would have room for them')
                 for name, used, needed in topology.scattered(processor, found.cpus)]
    return said
