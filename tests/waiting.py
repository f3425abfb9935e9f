'''Waiting for what other processes do.'''

import time


def until(happened, what='what was waited for', seconds=120):
    '''What the function returns, once that is true; a failure after so many seconds.'''
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < end, f'never: {what}'
        time.sleep(0.03)
    return found
