'''A file system that takes each request and never answers: FUSE.  ``python hung.py PATH``, as root, mounts it there, says so, and stays.

Whoever asks it waits in the kernel, killed or not, until this process has ended.
'''

import contextlib
import ctypes
import os
import struct
import subprocess
import sys

#: The request that the kernel makes when it mounts, and an answer: version 7.12, what is read ahead, two limits, what is written at once.
INIT, ANSWER = 26, struct.pack('<4I2H2I32x', 7, 12, 65536, 0, 12, 9, 65536, 1)


@contextlib.contextmanager
def hung(path, *inside):
    '''Such a file system at this path; ``inside``: words of the command by which another command sees what a node has mounted.'''
    import pytest
    if os.geteuid() != 0 or not os.path.exists('/dev/fuse'):
        pytest.skip('a file system that hangs needs root and /dev/fuse')
    process = subprocess.Popen([*inside, sys.executable, __file__, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        if (said := process.stdout.readline()) != 'mounted\n':
            pytest.skip(f'no file system can be made to hang here: {said.strip()}')
        yield path
    finally:
        process.kill()
        process.communicate()
        subprocess.run([*inside, 'umount', '--lazy', path], capture_output=True, timeout=20)


def main(path):
    device = os.open('/dev/fuse', os.O_RDWR)
    options = f'fd={device},rootmode=40000,user_id=0,group_id=0'
    if ctypes.CDLL(None, use_errno=True).mount(b'nobody', path.encode(), b'fuse', 0, options.encode()):
        sys.exit(f'not mounted: {os.strerror(ctypes.get_errno())}')
    while request := os.read(device, 1 << 20):
        _, operation, number = struct.unpack_from('<2IQ', request)
        if operation == INIT:
            os.write(device, struct.pack('<IiQ', 16 + len(ANSWER), 0, number) + ANSWER)
            print('mounted', flush=True)


if __name__ == '__main__':
    main(sys.argv[1])
