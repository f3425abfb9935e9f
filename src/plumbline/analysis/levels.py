'''Levels of a quantity, told apart by gaps: pure functions on arrays, without constants of any machine.'''

import numpy as np

#: Between two levels lies a gap: the upper end of it is so many times the lower one ...
GAP = 1.25

#: ... and no more values are in it than this share of those on its either side.
IN_THE_GAP = 0.02

#: A level is where at least one series has been for this share of its values, and for so many of them.
_LEAST_SHARE, _LEAST = 0.1, 3


def median(values, axis, share=50):
    '''The median, or another percentile, of what is known; NaN, without a warning, where nothing is.'''
    known = np.isfinite(values).any(axis=axis)
    return np.where(known, np.nanpercentile(np.where(np.expand_dims(known, axis), values, 0), share, axis=axis), np.nan)


def _gaps(x, least):
    '''(lower end, upper end) of the gaps of ascending logarithms, those that overlap as one.'''
    count = len(x)
    found: list[list] = []
    upper = np.searchsorted(x, x + np.log(GAP))
    below, above = np.arange(1, count + 1), count - upper
    inside = upper - below
    for i in np.flatnonzero((below >= least) & (above >= least) & (inside <= IN_THE_GAP * np.minimum(below, above))):
        if found and i < found[-1][1]:
            found[-1][1] = upper[i]
        else:
            found.append([i, upper[i]])
    return found


def _boundaries(x, least):
    '''The middle of the widest distance within each gap.'''
    for first, last in _gaps(x, least):
        at = first + np.argmax(np.diff(x[first:last + 1]))
        yield np.exp((x[at] + x[at + 1]) / 2)


def boundaries(values):
    '''Where one level ends and the next one begins.

    :arg values: above 0, shape (samples, series); NaN where not known.  A series may change its level from sample to sample.
    :returns: ascending array, empty for one level.
    '''
    values = np.atleast_2d(values)
    known = values[np.isfinite(values)]
    # Of a series that has fewer samples than this every one counts.
    least = min(_LEAST, len(values))
    found = list(_boundaries(np.sort(np.log(known)), least))
    needed = np.maximum(least, _LEAST_SHARE * np.isfinite(values).sum(axis=0))
    while found:
        index = of(values, found)
        supported = [((index == level).sum(axis=0) >= needed).any() for level in range(len(found) + 1)]
        if all(supported):
            break
        # Values here and there, of no series in particular, belong to their neighbours.
        found.pop(max(supported.index(False) - 1, 0))
    return np.array(found)


def of(values, found):
    '''The level of each value, from 0; -1 where the value is not known.'''
    values = np.asarray(values, dtype=float)
    return np.where(np.isfinite(values), np.searchsorted(found, np.nan_to_num(values)), -1)


def usual(index):
    '''The level that each series is in most often, the lower of two; and the share of its known samples in it.

    :arg index: shape (samples, series), as :func:`of` gives it.
    :returns: (level, share), each of shape (series,); -1 and 0 for a series of which nothing is known.
    '''
    counts = np.stack([(index == level).sum(axis=0) for level in range(max(index.max(initial=-1) + 1, 1))])
    known = counts.sum(axis=0)
    return np.where(known, counts.argmax(axis=0), -1), np.divide(counts.max(axis=0), known, out=np.zeros(known.shape), where=known > 0)
