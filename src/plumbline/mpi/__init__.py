'''MPI: which there are, how their programs are built, and the checks that run them.

====================  =========================================================================
:mod:`.families`      what differs between Open MPI, MPICH and Intel MPI (``data/mpi.yaml``)
:mod:`.environments`  the MPIs of this machine as ReFrame environments
:mod:`.programs`      the build of the MPI programs, once per environment
:mod:`.check`         ``MpiCheck``: the base of all MPI checks
:mod:`.loopback`      the proof which way the messages went
:mod:`.messages`      the time of a message, from the record of any program that sends some
:mod:`.pingpong`      what a PingPong's curve tells; likewise :mod:`.rma`, :mod:`.memory_logp`, :mod:`.sensitivity`
====================  =========================================================================
'''
