'''Intel MPI Benchmarks (IMB-MPI1, IMB-RMA, IMB-NBC): what they print, read without losing a number.

``layout.py``
  what is known of them: benchmarks, columns with their units, and from the command line the tables and rows that a run
  owes.
``text.py``
  from their standard output to :class:`Output`; whatever is missing, unknown or contradicts itself is an error.
``contradiction.py``
  rows whose numbers cannot be right together.
``samples.py``
  several runs of the same command as samples of each row.
``check.py``, ``subjects.py``
  the base of the checks that run it, and the names of their metrics.

IMB prints for people and has no other output.  Its User Guide describes the columns; what is printed for which option
was found by running it: Intel's own 2021 binaries and builds of the public source with other MPIs (``tests/data/imb``).
'''

from plumbline.imb.samples import Case, samples
from plumbline.imb.text import Output, outputs

__all__ = ['Case', 'Output', 'outputs', 'samples']
