'''What handing a cache line from core to core took, and the clocks of the cores: the records of the program ``cores`` as arrays.

Times are ns, one way; clocks MHz.
'''

import functools
from dataclasses import dataclass, field

import numpy as np

from plumbline.analysis import levels
from plumbline.analysis.levels import median
from plumbline.errors import PlumblineError
from plumbline.model import records
from plumbline.system import topology


@dataclass
class Handover:
    '''The matrix and what follows from it; n cores, s samples, p = n (n - 1) / 2 pairs row by row of the upper triangle.

    :attr cpus: of the threads, shape (n,).
    :attr samples: ns, shape (s, p); NaN where one of the two was silent.
    :attr names: what two CPUs can share, nearest first (:func:`topology.nearest_shared`).
    :attr shared: of each pair, the position in ``names``, shape (p,).
    :attr boundaries: between the levels, ns.
    :attr level: of each pair in each sample, shape (s, p); -1 where not known.
    :attr usual: the level that each pair is in most often, shape (p,); :attr stays: its share of the samples.
    '''
    cpus: list
    samples: np.ndarray
    names: list
    shared: np.ndarray
    boundaries: np.ndarray = field(init=False)
    level: np.ndarray = field(init=False)
    usual: np.ndarray = field(init=False)
    stays: np.ndarray = field(init=False)

    def __post_init__(self):
        self.boundaries = levels.boundaries(self.samples)
        self.level = levels.of(self.samples, self.boundaries)
        self.usual, self.stays = levels.usual(self.level)

    @property
    def pairs(self):
        '''(first, second) positions in :attr:`cpus`, each of shape (p,).'''
        return np.triu_indices(len(self.cpus), 1)

    @functools.cached_property
    def typical(self):
        '''ns, the median over the samples, shape (p,).'''
        return median(self.samples, axis=0)

    @functools.cached_property
    def level_ns(self):
        '''The median of each level, ns.'''
        return [float(np.median(self.samples[self.level == level])) for level in range(len(self.boundaries) + 1)]

    @property
    def caches(self):
        '''The names of caches among :attr:`names`.'''
        return [name for name in self.names if name not in ('core', 'numa', 'socket', 'node')]

    def kinds(self):
        '''(name, which pairs) of what pairs have in common as their nearest, where there are such pairs that answered.'''
        for position, name in enumerate(self.names):
            members = (self.shared == position) & (self.usual >= 0)
            if members.any():
                yield name, members

    def matrix(self, values):
        '''Values of pairs as a symmetric matrix with NaN on the diagonal, shape (n, n).'''
        full = np.full((len(self.cpus),) * 2, np.nan)
        full[self.pairs] = values
        return np.where(np.isnan(full), full.T, full)


@dataclass(frozen=True)
class Clocks:
    '''Clocks of n cores in s samples, MHz: alone (some of the cores in each sample, else NaN), and while all work.

    :attr cpus: shape (n,); the others have the shape (s, n).
    '''
    cpus: list
    one: np.ndarray
    all: np.ndarray
    additions_one: np.ndarray
    additions_all: np.ndarray

    @property
    def ratio(self):
        '''Clock of all over that of one, the median over the cores of each sample, shape (s,).'''
        return median(self.all / self.one, axis=1)

    @property
    def additions_left(self):
        '''Additions per cycle while all work over those alone, of each core, shape (n,).'''
        return median(self.additions_all / self.additions_one, axis=0)

    @property
    def of_median(self):
        '''The clock of each core while all work over that of the median core, shape (n,).'''
        clock = median(self.all, axis=0)
        return clock / np.nanmedian(clock)


def of_kinds(kinds, found, speeds=None):
    '''The same of each kind of cores: what differs by design is no fault, and only cores of one kind are compared.

    :arg kinds: lists of CPUs, as the machine record has them in ``core_kinds``; empty where all are alike.
    :arg speeds: :class:`Clocks` of the same cores, or None.
    :returns: list of (:class:`Handover`, :class:`Clocks` or None), of the kinds with two cores at least that answered.
    '''
    if not kinds:
        return [(found, speeds)]
    parts = []
    for kind in kinds:
        own = np.isin(found.cpus, kind)
        first, second = found.pairs
        within = own[first] & own[second]
        cpus = [cpu for cpu, is_own in zip(found.cpus, own) if is_own]
        if np.isfinite(found.samples[:, within]).any():
            part = Handover(cpus, found.samples[:, within], found.names, found.shared[within])
            parts.append((part, speeds and Clocks(cpus, *(values[:, own] for values in (
                speeds.one, speeds.all, speeds.additions_one, speeds.additions_all)))))
    return parts


def rows(record, key, width):
    '''A key of ``cores`` as an array of shape (samples, width).'''
    values = records.numbers(record, 'cores', key)
    if values.shape != (len(record['seconds']), width) or ((values <= 0).any() and key != 'alone'):
        raise PlumblineError(f"record of {record['kernel']}, {record['variant']}: field cores/{key}: not {width} numbers above 0, or "
                             f'null, for each sample; {records.REBUILD}')
    return values


def pair(found, a, b):
    '''The position of the pair of two positions, a < b, among all pairs.'''
    n = len(found.cpus)
    return a * (2 * n - a - 1) // 2 + b - a - 1


def handover(record, processor=None):
    ''':class:`Handover` of a record of the variant ``handover``.

    :arg processor: the partition's, for what the topology says; without it no pair shares anything.
    :raises PlumblineError: where the record has no such matrix, or no two threads ever answered each other.
    '''
    cpus = record['cpus']
    samples = rows(record, 'handover', len(cpus) * (len(cpus) - 1) // 2)
    if not np.isfinite(samples).any():
        raise PlumblineError(f'no two of the CPUs {topology.cpu_list(cpus)} have handed over a cache line: they were busy with other '
                             'work, or have one CPU between them')
    names, index = topology.nearest_shared(processor, cpus) if processor else ([], np.full((len(cpus),) * 2, -1))
    return Handover(cpus, samples, names, np.array(index)[np.triu_indices(len(cpus), 1)])


def clocks(record):
    ''':class:`Clocks` of a record of the variant ``clock``.'''
    cpus = record['cpus']
    return Clocks(cpus, *(rows(record, key, len(cpus)) for key in ('clock_one', 'clock_all', 'additions_one', 'additions_all')))
