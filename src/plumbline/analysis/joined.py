'''The metrics of a subsystem become one course, though some of them began later than others, and some ended before.'''

import numpy as np

from plumbline.model import changes, subsystems

#: By chance metrics that begin later seem to have changed since at this rate: a change that they have must not be taken for their level, and
#: where they have none the level is that of all their sessions, of which five alone know it badly.
_CHANGED = 0.1


def joined(logs, weights):
    '''(weighted mean of the metrics in each session, weight of those that it has, whether these are half of what was measured in its time).

    What began later has the level that the course has where it begins, and what ended is missed in no session after it, so that a
    loss, before that or after, stays in the course.

    :arg logs: shape (metrics, sessions), NaN where there is none; at least one in each session, and of each metric.
    '''
    there, numbers = np.isfinite(logs), np.arange(logs.shape[1])
    first, last = there.argmax(axis=1), numbers[-1] - there[:, ::-1].argmax(axis=1)
    total, present = np.zeros(numbers.size), np.zeros(numbers.size)
    begun, until = 0, numbers.size
    for metric in np.lexsort((-there.sum(axis=1), first)):
        course = total / np.where(present > 0, present, 1)
        if first[metric] > begun:
            begun = first[metric]
            until = _changed(np.where(present > 0, logs[first == begun] - course, np.nan))
        common = there[metric] & (present > 0)
        level = common & (numbers < until) if (common & (numbers < until)).any() else common if common.any() else there[metric]
        total += weights[metric] * np.nan_to_num(logs[metric] - np.median((logs[metric] - course)[level]))
        present += weights[metric] * there[metric]
    ended = np.where(last + subsystems.LEAST_SESSIONS < numbers.size, last, numbers.size)
    measured = np.dot(weights, (numbers >= first[:, None]) & (numbers <= ended[:, None]))
    return total / present, present, present >= measured / 2


def _changed(own):
    '''The session from which on metrics that begin together have changed against the course, most probably; the number of sessions if they have not.

    :arg own: shape (metrics, sessions), what they are off from the course; NaN where one of the two is not there.
    '''
    own = own[np.isfinite(own).any(axis=1)]
    common = np.flatnonzero(np.isfinite(own).any(axis=0))
    if not common.size:
        return own.shape[1]
    off = np.nanmean((own - np.nanmedian(own, axis=1, keepdims=True))[:, common], axis=0)
    step = changes.step(np.exp(off), (0, 0.0), subsystems.LEAST_SESSIONS)
    return common[step.begin] if step and step.chance <= _CHANGED else own.shape[1]
