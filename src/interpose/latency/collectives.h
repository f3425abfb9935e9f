/* The collectives, each once: COLLECTIVE(name, name of the non-blocking one, (parameters), (arguments), plan), where the
 * plan is made from COUNT and DISPLACEMENT, the types of the family of calls that is being made.
 *
 * shaped(shape, comm, root, bytes): root -1 where there is none.  AND_NEIGHBORS: the same of all and of the neighbours alone. */
#define AND_NEIGHBORS(NAME, LOWER, PARAMETERS, ARGUMENTS, SHAPED) \
    COLLECTIVE(NAME, I##LOWER, PARAMETERS, ARGUMENTS, SHAPED)     \
    COLLECTIVE(Neighbor_##LOWER, Ineighbor_##LOWER, PARAMETERS, ARGUMENTS, shaped(LAT_NEIGHBORS, comm, -1, 0))
COLLECTIVE(Bcast, Ibcast,
           (void *buffer, COUNT count, MPI_Datatype datatype, int root, MPI_Comm comm),
           (buffer, count, datatype, root, comm),
           shaped(LAT_BCAST, comm, root, lat_bytes(count, datatype)))
COLLECTIVE(Reduce, Ireduce,
           (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm),
           (sendbuf, recvbuf, count, datatype, op, root, comm),
           shaped(LAT_REDUCE, comm, root, lat_bytes(count, datatype)))
COLLECTIVE(Allreduce, Iallreduce,
           (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, datatype, op, comm),
           shaped(LAT_ALLREDUCE, comm, -1, lat_bytes(count, datatype)))
COLLECTIVE(Gather, Igather,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
           shaped(LAT_GATHER, comm, root, 0))
COLLECTIVE(Gatherv, Igatherv,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[],
            const DISPLACEMENT displs[], MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm),
           shaped(LAT_GATHERV, comm, root, 0))
COLLECTIVE(Scatter, Iscatter,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
           shaped(LAT_SCATTER, comm, root, 0))
COLLECTIVE(Scatterv, Iscatterv,
           (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT displs[], MPI_Datatype sendtype, void *recvbuf,
            COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm),
           shaped(LAT_SCATTERV, comm, root, 0))
AND_NEIGHBORS(Allgather, allgather,
              (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
               MPI_Datatype recvtype, MPI_Comm comm),
              (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
              shaped(LAT_ALLGATHER, comm, -1, lat_bytes(recvcount, recvtype) * size_of(comm)))
AND_NEIGHBORS(Allgatherv, allgatherv,
              (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[],
               const DISPLACEMENT displs[], MPI_Datatype recvtype, MPI_Comm comm),
              (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
              shaped(LAT_ALLGATHER, comm, -1, lat_bytes(TOTAL(recvcounts, size_of(comm)), recvtype)))
AND_NEIGHBORS(Alltoall, alltoall,
              (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
               MPI_Datatype recvtype, MPI_Comm comm),
              (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
              shaped(LAT_ALLTOALL, comm, -1, lat_bytes(recvcount, recvtype)))
AND_NEIGHBORS(Alltoallv, alltoallv,
              (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], MPI_Datatype sendtype, void *recvbuf,
               const COUNT recvcounts[], const DISPLACEMENT rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
              (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
              shaped(LAT_ALLTOALLV, comm, -1, 0))
COLLECTIVE(Alltoallw, Ialltoallw,
           (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], const MPI_Datatype sendtypes[],
            void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT rdispls[], const MPI_Datatype recvtypes[],
            MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
           shaped(LAT_ALLTOALLV, comm, -1, 0))
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void *sendbuf, void *recvbuf, const COUNT recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, recvcounts, datatype, op, comm),
           shaped(LAT_REDUCE_SCATTER, comm, -1, 0))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
           (const void *sendbuf, void *recvbuf, COUNT recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, recvcount, datatype, op, comm),
           shaped(LAT_REDUCE_SCATTER, comm, -1, 0))
COLLECTIVE(Scan, Iscan,
           (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, datatype, op, comm),
           shaped(LAT_SCAN, comm, -1, 0))
COLLECTIVE(Exscan, Iexscan,
           (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, datatype, op, comm),
           shaped(LAT_SCAN, comm, -1, 0))
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
           (const void *sendbuf, const COUNT sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
            void *recvbuf, const COUNT recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
            MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
           shaped(LAT_NEIGHBORS, comm, -1, 0))
#undef AND_NEIGHBORS
