'''Programs that run a peer's library with what our kernels have: threads on their CPUs, huge pages, parallel first touch.

They run by the Python that has the library, and no Plumbline (:func:`plumbline.bench.peers.found.driver`), print the seconds of one operation,
a sample a line, and verify all of the result.
'''
