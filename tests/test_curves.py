'''A curve is judged as a whole, by hand-computed numbers.'''

import numpy as np

from plumbline.model import metrics


def of(*rates):
    return {2**power: np.array([rate, 2 * rate, 0.5 * rate]) for power, rate in enumerate(rates)}


def test_the_deepest_dip_is_held_against_the_slower_flank_where_there_is_one():
    '''8 between 20 and 16 is half of 16; 15 between 16 and 15.5 is no more than 0.97 of it.'''
    size, samples = metrics.deepest_dip(of(10, 20, 8, 16, 15, 15.5, 4))
    assert size == 4 and samples.tolist() == [0.5, 1, 0.25]
    assert np.median(metrics.deepest_dip(of(1, 5, 20, 12, 12, 6, 3))[1]) == 1        # 12 beside 12
    assert np.median(metrics.deepest_dip(of(1, 2, 4))[1]) == 2
    assert np.median(metrics.deepest_dip(of(9, 8, 2))[1]) == 4
    assert metrics.deepest_dip(of(1, 2)) is None
