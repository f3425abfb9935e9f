'''A file system that never answers: FUSE with nobody behind it.  ``python hung.py PATH``, as root, mounts it there, says so, and stays.'''

import ctypes
import os
import signal
import sys


def main(path):
    device = os.open('/dev/fuse', os.O_RDWR)
    options = f'fd={device},rootmode=40000,user_id=0,group_id=0'
    if ctypes.CDLL(None, use_errno=True).mount(b'nobody', path.encode(), b'fuse', 0, options.encode()):
        sys.exit(f'not mounted: {os.strerror(ctypes.get_errno())}')
    print('mounted', flush=True)
    signal.pause()


if __name__ == '__main__':
    main(sys.argv[1])
