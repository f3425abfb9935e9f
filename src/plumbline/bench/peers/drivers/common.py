'''What the drivers share; nothing but NumPy is imported.'''

import mmap
import os
import threading
import time

import numpy as np

#: A sample lasts this long at least, seconds; fewer samples than this give no usable median.
SAMPLE, SAMPLES = 0.01, 10


def parts(n, count):
    '''``count`` slices of 0 .. n-1, about equal.'''
    return [slice(n * i // count, n * (i + 1) // count) for i in range(count)]


def on_each(cpus, work):
    '''The results of ``work(i)`` by thread i on ``cpus[i]``.'''
    found = [None] * len(cpus)

    def run(i):
        os.sched_setaffinity(0, {cpus[i]})      # of this thread
        found[i] = work(i)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(cpus))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if any(part is None for part in found):
        raise SystemExit('a thread failed: see above')
    return found


def array(count, dtype=float, offset=0):
    '''Elements in transparent huge pages, not touched yet; the first one ``offset`` bytes beyond a page's begin.'''
    room = mmap.mmap(-1, count * np.dtype(dtype).itemsize + offset + 4096)
    room.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(room, dtype, count, offset)


def print_samples(operation, seconds):
    '''Time it for so long, after it has run once.'''
    def lasts(passes):
        begin = time.perf_counter()
        for _ in range(passes):
            operation()
        return time.perf_counter() - begin
    passes = 1
    while lasts(passes) < SAMPLE:
        passes *= 2
    found: list[float] = []
    end = time.perf_counter() + seconds
    while len(found) < SAMPLES or time.perf_counter() < end:
        found.append(lasts(passes) / passes)
    print('\n'.join(f'{sample:.9g}' for sample in found))
