'''Which samples were taken in the same state of the machine, by what a probe read beside them.  Pure functions.

No constant of one machine is in here: clusters are told by the gap between them, compared with their own widths.  Unlike
the states within which a metric is judged (:mod:`plumbline.model.states`, from the latency that one program met), these are of
any probe and of all sessions, whose stray readings fill the gap; and nothing depends on them but what the report says.
'''

import numpy as np

#: A gap may hold this share of the readings: a probe that was disturbed reads anything.
STRAY = 0.02

#: A cluster holds at least this share of the readings.
LEAST = 0.05

#: A gap is at least this wide, in widths of the wider of its two sides (from the 10th to the 90th percentile).
#: The tail of a normal distribution has gaps of 0.1, that of an exponential one of 0.3.
GAP = 0.5


def edges(values):
    '''Where to cut between clusters of readings.

    The widest interval that holds at most :data:`STRAY` of the readings, with at least :data:`LEAST` on each side, is a
    gap if it is :data:`GAP` as wide as its wider side; both sides are then looked at again.

    :arg values: readings, e.g. logarithms, shape (n,), no NaN.
    :returns: list of cuts, ascending; empty for one cluster.
    '''
    ordered = np.sort(values)
    return _cuts(ordered, max(5, int(np.ceil(LEAST * ordered.size))))


def _cuts(ordered, least):
    stray = max(1, int(STRAY * ordered.size))
    wide = ordered[stray:] - ordered[:-stray]
    inside = wide[least - 1:wide.size - least + 1]
    if not inside.size:
        return []
    at = least - 1 + int(np.argmax(inside))
    left, right = ordered[:at + 1], ordered[at + stray:]
    widths = [np.ptp(np.percentile(side, [10, 90])) for side in (left, right)]
    if not wide[at] > GAP * max(widths):
        return []
    return [*_cuts(left, least), (left[-1] + right[0]) / 2, *_cuts(right, least)]


def classes(readings, most=4):
    '''The class of each sample: its cluster, and within a large cluster a quantile of the mean of before and after.

    :arg readings: of a probe, before and after each sample, shape (n, 2); NaN where not known.
    :arg most: into how many classes all samples are divided; there are more if there are more clusters.
    :returns: shape (n,), numbers from 0 on, some may be left out; -1 where a reading is not known, or where the state changed from one
        cluster to another between before and after.
    '''
    logs = np.log(np.where(np.asarray(readings, dtype=float) > 0, readings, np.nan))
    labels = np.full(len(logs), -1)
    known = np.isfinite(logs).all(axis=1)
    if not known.any():
        return labels
    cluster = np.searchsorted(edges(logs[np.isfinite(logs)]), logs)
    middle = logs.mean(axis=1)
    same = known & (cluster[:, 0] == cluster[:, 1])
    first = 0
    for number in np.unique(cluster[same]):
        inside = same & (cluster[:, 0] == number)
        parts = max(1, round(most * inside.sum() / same.sum()))
        cuts = np.unique(np.quantile(middle[inside], np.arange(1, parts) / parts))
        labels[inside] = first + np.searchsorted(cuts, middle[inside])
        first += parts
    return labels
