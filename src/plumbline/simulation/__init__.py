'''Applications on networks that are not there: SimGrid's SMPI runs our own sources on a described network.

:mod:`.network` reads the description, :mod:`.topology` makes a graph of it, :mod:`.platform_file` writes that for SimGrid,
:mod:`.program` builds and runs the simulated program, :mod:`.study` asks it questions: per cent of time in communication
over processes and latency, and what more latency costs.
'''
