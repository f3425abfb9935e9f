'''LIKWID from the outside: likwid-bench as a cross-check, likwid-pin, and what likwid-perfctr writes.

Checked with LIKWID 5.2.2.  One module per tool: :mod:`bench`, :mod:`pin`, :mod:`perfctr`.
'''
