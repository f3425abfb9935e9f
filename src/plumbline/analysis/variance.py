'''Where the variance of a metric comes from, and what the probes of the machine's state explain of it.

Pure functions on logarithms: a standard deviation there is a coefficient of variation (CV), and what slows a node by a tenth
adds the same whatever the metric's size.  Samples are nested: node > session > process (one run of a test case) > round.
'''

import math
from dataclasses import dataclass, field

import numpy as np

from plumbline.analysis import groups
from plumbline.model import grouping

#: From the outermost in; rounds are the samples themselves.
LEVELS = ('node', 'session', 'process', 'round')

#: Fewer degrees of freedom than this leave no share of the variance to tell of.
LEAST_FREEDOM = 4

#: Parts in which the processes are held out, one after the other.
FOLDS = 10


@dataclass(frozen=True)
class Measured:
    '''The samples of one metric, from all sessions.

    :attr values: above 0, shape (n,); :attr process: of each, a number from 0 on; none is left out.
    :attr session: of each process, a number; :attr node: the same; shape (processes,).
    :attr probes: name -> readings before and after each sample, shape (n, 2), NaN where not known.
    '''
    values: np.ndarray
    process: np.ndarray
    session: np.ndarray
    node: np.ndarray
    probes: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Component:
    '''Variance that one level adds, in squared logarithms.

    :attr variance: None: not measured, there was one group only in each of the level above, whose component then holds
        this one's.
    :attr freedom: degrees of freedom that the estimate rests on.
    '''
    variance: float | None
    freedom: int


@dataclass(frozen=True)
class Shares:
    '''What share of the variance something explains: within processes, and between their means; None where not known.'''
    within: float | None
    between: float | None


@dataclass(frozen=True)
class Analysis:
    '''What :func:`analyse` says of a metric.

    :attr counts: level -> how many of them there are.
    :attr components: level -> :class:`Component`.
    :attr probes: name -> :class:`Shares`; :attr together: those of all probes.
    '''
    counts: dict
    components: dict
    probes: dict
    together: Shares

    @property
    def total(self):
        '''Sum of the components.'''
        return sum(self.parts.values())

    @property
    def parts(self):
        '''Level -> variance, 0 where not measured.'''
        return {level: found.variance or 0.0 for level, found in self.components.items()}

    @property
    def left(self):
        '''Level -> variance that the probes leave unexplained.'''
        return {level: variance * (1 - ((self.together.within if level == 'round' else self.together.between) or 0.0))
                for level, variance in self.parts.items()}

    @property
    def unexplained(self):
        '''Sum of what is left.'''
        return sum(self.left.values())


def cv(variance):
    '''The coefficient of variation of what has this variance of its logarithms, if these are normal.'''
    return math.sqrt(math.expm1(variance))


def winsorised(logs, process):
    '''Pull outliers in: rounds that are far from the median of their process.

    The deviations from the process' median, of all processes together, end at ``q05 - w / 2`` and ``q95 + w / 2`` with
    ``w = q95 - q05``.  Of a normal distribution, whose ends are then at 3.3 standard deviations, this takes 0.2 % of the
    variance; a second state in which 5 % of the samples are stays whole.  Processes, sessions and nodes that are outliers
    stay as they are: they are what is looked for.
    '''
    size = np.bincount(process)
    ordered, first = logs[np.lexsort((logs, process))], np.cumsum(size) - size
    middle = ((ordered[first + (size - 1) // 2] + ordered[first + size // 2]) / 2)[process]
    off = logs - middle
    low, high = np.quantile(off, [0.05, 0.95])
    width = high - low
    if not width > 0:
        return logs
    return middle + np.clip(off, low - width / 2, high + width / 2)


def components(values, *levels):
    '''Variance components of an unbalanced nested design, by the analysis of variance (method of moments).

    With ``y = mean + a(1) + ... + a(L) + e`` and groups g of n(g) samples at level l (0: all of the N samples), let
    ``T(l) = sum over g of (sum of y in g)**2 / n(g)``.  Then ``E T(l) = N mean**2 + sum over m of k(l, m) s(m)**2`` with
    ``k(l, m) = N`` for m <= l and ``sum over h of level m of n(h)**2 / n(group of level l that h is in)`` beyond; so
    ``E [T(l) - T(l-1)]`` holds ``s(l)**2`` and those of the levels within it only, and they follow one after the other
    from the innermost.  Estimates below 0 become 0.  A level that has one group in each of the level above cannot be
    told from that: not measured.  Sources: Searle, Casella and McCulloch, Variance Components (1992), chapter 3, for one level;
    Gower, Biometrics 18 (1962) 537, and Gates and Shiue, Technometrics 4 (1962) 529, for nested ones.

    :arg values: shape (n,).
    :arg levels: the group of each value at each level, outermost first, numbers, shape (n,).
    :returns: list of :class:`Component`, of each level and of the values within the innermost.
    '''
    values = np.asarray(values, dtype=float) - np.mean(values)
    ids = [np.zeros(values.size, dtype=int)]
    for level in levels:
        pairs = ids[-1] * (np.max(level) + 1) + np.asarray(level)
        ids.append(np.unique(pairs, return_inverse=True)[1])
    ids.append(np.arange(values.size))
    sizes = [np.bincount(each) for each in ids]
    freedom = np.diff([len(size) for size in sizes])
    sums = [np.sum(np.bincount(each, weights=values)**2 / size) for each, size in zip(ids, sizes)]

    def factor(outer, inner):
        if inner <= outer:
            return values.size
        # The sum over groups h of n(h)**2 / n(g) is one over the samples of n(h) / n(g).
        return np.sum(sizes[inner][ids[inner]] / sizes[outer][ids[outer]])

    found = [None] * len(freedom)
    for level in range(len(freedom), 0, -1):
        if not freedom[level - 1]:
            continue
        inner = [m for m in range(level + 1, len(ids)) if found[m - 1] is not None]
        rest = sum(found[m - 1] * (factor(level, m) - factor(level - 1, m)) for m in inner)
        found[level - 1] = (sums[level] - sums[level - 1] - rest) / (factor(level, level) - factor(level - 1, level))
    return [Component(None if variance is None else max(0.0, float(variance)), int(number))
            for variance, number in zip(found, freedom)]


def explained(values, base, design, freedom, folds):
    '''Share of the variance that a linear model explains: the smaller of two estimates, so that chance explains nothing.

    * adjusted: ``1 - (RSS / degrees of freedom) / (RSS of the base / its degrees of freedom)``.  For classes it is
      epsilon squared (Kelley, PNAS 21 (1935) 554): of noise it is 0 on average.
    * held out: the same sums of squares, where each fold is predicted by the model of the others.  What drifts in a process
      seems to explain whatever else drifts there; another process does not bear it out.

    :arg values: shape (n,); :arg base: what is known without the model, shape (n, any); :arg design: what the model adds.
    :arg freedom: n less what was taken from the values before.
    :arg folds: the fold of each value, shape (n,).
    :returns: at most 1; may be below 0; None if there are too few values, folds or no variance.
    '''
    columns = np.column_stack([base, design, values - values.mean()])
    numbers = _numbered(folds)
    # All that follows are sums of squares and products of the columns, of each fold: small matrices.
    squares = np.array([part.T @ part for part in (columns[numbers == fold] for fold in range(numbers.max() + 1))])
    few, many = base.shape[1], columns.shape[1] - 1
    least, most = (_fit(squares.sum(axis=0), used) for used in (few, many))
    if freedom - most.rank < LEAST_FREEDOM or len(squares) < 2 or not least.left > 1e-12 * freedom:
        return None
    if most.rank == least.rank:
        return 0.0
    adjusted = 1 - (most.left / (freedom - most.rank)) / (least.left / (freedom - least.rank))
    return float(min(adjusted, 1 - _held_out(squares, many) / _held_out(squares, few)))


@dataclass(frozen=True)
class _Fit:
    factors: np.ndarray
    rank: int
    left: float


def _fit(squares, used):
    '''Least squares of the last column by the first ``used`` ones, from the matrix of sums of squares and products.'''
    sizes, axes = np.linalg.eigh(squares[:used, :used])
    axes, sizes = axes[:, kept := sizes > 1e-10 * sizes.max(initial=0)], sizes[kept]
    factors = axes @ (axes.T @ squares[:used, -1] / sizes)
    return _Fit(factors, len(sizes), float(squares[-1, -1] - factors @ squares[:used, -1]))


def _held_out(squares, used):
    '''Sum of squares of what is wrong, each fold predicted by the others.'''
    every, wrong = squares.sum(axis=0), 0.0
    for fold in squares:
        factors = _fit(every - fold, used).factors
        wrong += fold[-1, -1] - 2 * factors @ fold[:used, -1] + factors @ fold[:used, :used] @ factors
    return wrong


def _dummies(labels):
    '''A column for each class but the first.'''
    return (labels[:, None] == np.unique(labels)[None, 1:]).astype(float)


def _numbered(labels):
    '''Labels from 0 on as numbers without holes.'''
    return (np.cumsum(np.bincount(labels) > 0) - 1)[labels]


def _centred(columns, group):
    '''Less the mean of its group, each column of shape (n, any).'''
    size = np.bincount(group)
    means = [np.bincount(group, weights=column) / np.maximum(size, 1) for column in columns.T]
    return columns - np.array(means).T.reshape(-1, columns.shape[1])[group]


def within(logs, process, labels):
    '''What classes of samples explain within processes (:func:`explained`).

    :arg labels: list of arrays of shape (n,), classes by one probe each.
    '''
    design = np.hstack([_dummies(each) for each in labels])
    numbers = _numbered(process)
    count = numbers.max() + 1
    # Of one process fifths are held out, each about its own mean.
    parts = numbers if count > 1 else np.arange(logs.size) * 5 // logs.size
    values = _centred(np.column_stack([logs, design]), parts)
    return explained(values[:, 0], design[:, :0], values[:, 1:], logs.size - parts.max() - 1, parts % FOLDS)


def between(logs, process, labels):
    '''What they explain between processes: the mean of each by the share of its samples in each class.'''
    numbers = _numbered(process)
    size = np.bincount(numbers)
    design = np.hstack([_dummies(each) for each in labels])
    means = np.column_stack([np.bincount(numbers, weights=column) / size for column in (logs, *design.T)])
    return explained(means[:, 0], np.ones((size.size, 1)), means[:, 1:], size.size, np.arange(size.size) % FOLDS)


def _known_shares(logs, process, fine, coarse):
    '''Shares of one probe, of the samples whose state is known and did not change.'''
    known = np.all([labels >= 0 for labels in fine], axis=0)
    if not known.any():
        return Shares(None, None)
    return _shares(logs[known], process[known], [labels[known] for labels in fine], [labels[known] for labels in coarse])


def _shares(logs, process, fine, coarse):
    found = within(logs, process, fine), between(logs, process, coarse)
    return Shares(*(None if share is None else max(0.0, share) for share in found))


def analyse(measured):
    '''The :class:`Analysis` of a :class:`Measured`: components of a metric and what explains them.'''
    process = measured.process
    logs = winsorised(np.log(measured.values), process)
    session, node = measured.session[process], measured.node[process]
    found = dict(zip(LEVELS, components(logs, node, session, process)))
    many = len(measured.session)
    # With few processes a model of few parts: five for each.
    coarse = min(4, 1 + many // 5)
    # The rounds of one probe (``core_to_core.0``, ``.1``, ...) belong together.
    named = grouping.by_key((name.split('.')[0], readings) for name, readings in sorted(measured.probes.items()))
    fine, rough = ({name: [groups.classes(each, most) for each in rounds] for name, rounds in named.items()}
                   for most in (4, coarse))
    shares = {name: _known_shares(logs, process, fine[name], rough[name]) for name in named}
    every = list(shares.values())
    if len(named) > 1:      # what is not known, or changed, is a class of its own here
        every.append(_shares(logs, process, sum(fine.values(), []), sum(rough.values(), [])))
    together = Shares(*(max((value for value in side if value is not None), default=None)
                        for side in ([each.within for each in every], [each.between for each in every])))
    counts = {'node': len(np.unique(measured.node)), 'session': len(np.unique(measured.session)), 'process': many, 'round': logs.size}
    return Analysis(counts, found, shares, together)
