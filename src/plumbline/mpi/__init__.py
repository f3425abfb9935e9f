'''MPI: which there are, how their programs are started, and the checks that run them.

===================  =========================================================================
:mod:`.families`     what differs between Open MPI, MPICH and Intel MPI (``data/mpi.yaml``)
:mod:`.environments` the MPIs of this machine as ReFrame environments
:mod:`.programs`     the build of the MPI programs, once per environment
:mod:`.check`        ``MpiCheck``: the base of all MPI checks
===================  =========================================================================
'''
