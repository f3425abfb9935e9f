'''What a curve of rates over sizes tells as a whole.'''

from collections.abc import Mapping

import numpy as np


def deepest_dip(rates: Mapping[int, np.ndarray]) -> tuple[int, np.ndarray] | None:
    '''Where a curve falls and rises again.

    A rate rises while starting counts, and falls from one level of the memory hierarchy to the next: it has one peak, and what is
    larger is no faster beyond it.  Each size is held against the best smaller and the best larger one, the slower of the two.

    :arg rates: size -> samples, in the order of measuring.
    :returns: (size, its samples over that rate: from 1 on there is no dip), or None of fewer than three sizes.
    '''
    sizes = sorted(rates)
    if len(sizes) < 3:
        return None
    medians = np.array([np.median(rates[size]) for size in sizes])
    before, after = np.maximum.accumulate(medians)[:-2], np.maximum.accumulate(medians[::-1])[::-1][2:]
    flanks = np.minimum(before, after)
    at = int(np.argmin(medians[1:-1] / flanks))
    return sizes[at + 1], np.asarray(rates[sizes[at + 1]]) / flanks[at]
