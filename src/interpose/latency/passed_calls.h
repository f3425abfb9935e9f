/* The calls of passed.h: COUNTED(name, (parameters), (arguments)) where MPI 4 has one more with larger counts, ONCE where it has
 * none.  COUNT and DISPLACEMENT are the types of the family that is being made. */
COUNTED(Put, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
     target_disp, COUNT target_count, MPI_Datatype target_datatype, MPI_Win win), (origin_addr, origin_count,
     origin_datatype, target_rank, target_disp, target_count, target_datatype, win))
COUNTED(Get, (void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
     COUNT target_count, MPI_Datatype target_datatype, MPI_Win win), (origin_addr, origin_count, origin_datatype,
     target_rank, target_disp, target_count, target_datatype, win))
COUNTED(Accumulate, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
     target_disp, COUNT target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win), (origin_addr, origin_count,
     origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win))
COUNTED(Get_accumulate, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, void *result_addr, COUNT
     result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, COUNT target_count, MPI_Datatype
     target_datatype, MPI_Op op, MPI_Win win), (origin_addr, origin_count, origin_datatype, result_addr, result_count,
     result_datatype, target_rank, target_disp, target_count, target_datatype, op, win))
ONCE(Fetch_and_op, (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint
     target_disp, MPI_Op op, MPI_Win win), (origin_addr, result_addr, datatype, target_rank, target_disp, op, win))
ONCE(Compare_and_swap, (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype, int
     target_rank, MPI_Aint target_disp, MPI_Win win), (origin_addr, compare_addr, result_addr, datatype, target_rank,
     target_disp, win))
COUNTED(Rput, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
     target_disp, COUNT target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request), (origin_addr,
     origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request))
COUNTED(Rget, (void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
     COUNT target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request), (origin_addr, origin_count,
     origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request))
COUNTED(Raccumulate, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
     target_disp, COUNT target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request),
     (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win,
     request))
COUNTED(Rget_accumulate, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, void *result_addr,
     COUNT result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, COUNT target_count,
     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request), (origin_addr, origin_count,
     origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, target_count, target_datatype,
     op, win, request))
ONCE(Win_fence, (int assert, MPI_Win win), (assert, win))
ONCE(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
ONCE(Win_complete, (MPI_Win win), (win))
ONCE(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
ONCE(Win_wait, (MPI_Win win), (win))
ONCE(Win_lock, (int lock_type, int rank, int assert, MPI_Win win), (lock_type, rank, assert, win))
ONCE(Win_unlock, (int rank, MPI_Win win), (rank, win))
ONCE(Win_lock_all, (int assert, MPI_Win win), (assert, win))
ONCE(Win_unlock_all, (MPI_Win win), (win))
ONCE(Win_flush, (int rank, MPI_Win win), (rank, win))
ONCE(Win_flush_all, (MPI_Win win), (win))
ONCE(File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh), (comm, filename, amode, info,
     fh))
ONCE(File_close, (MPI_File *fh), (fh))
COUNTED(File_read, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status), (fh, buf, count,
     datatype, status))
COUNTED(File_read_all, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status), (fh, buf, count,
     datatype, status))
COUNTED(File_read_at, (MPI_File fh, MPI_Offset offset, void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status),
     (fh, offset, buf, count, datatype, status))
COUNTED(File_read_at_all, (MPI_File fh, MPI_Offset offset, void * buf, COUNT count, MPI_Datatype datatype, MPI_Status
     *status), (fh, offset, buf, count, datatype, status))
COUNTED(File_read_shared, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status), (fh, buf, count,
     datatype, status))
COUNTED(File_read_ordered, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status), (fh, buf,
     count, datatype, status))
COUNTED(File_write, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status), (fh, buf, count,
     datatype, status))
COUNTED(File_write_all, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status), (fh, buf,
     count, datatype, status))
COUNTED(File_write_at, (MPI_File fh, MPI_Offset offset, const void * buf, COUNT count, MPI_Datatype datatype, MPI_Status
     *status), (fh, offset, buf, count, datatype, status))
COUNTED(File_write_at_all, (MPI_File fh, MPI_Offset offset, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Status
     *status), (fh, offset, buf, count, datatype, status))
COUNTED(File_write_shared, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status), (fh, buf,
     count, datatype, status))
COUNTED(File_write_ordered, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status), (fh,
     buf, count, datatype, status))
COUNTED(File_iread, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPIO_Request *request), (fh, buf, count,
     datatype, request))
COUNTED(File_iread_at, (MPI_File fh, MPI_Offset offset, void *buf, COUNT count, MPI_Datatype datatype, MPIO_Request
     *request), (fh, offset, buf, count, datatype, request))
COUNTED(File_iread_all, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPI_Request *request), (fh, buf, count,
     datatype, request))
COUNTED(File_iread_at_all, (MPI_File fh, MPI_Offset offset, void *buf, COUNT count, MPI_Datatype datatype, MPI_Request
     *request), (fh, offset, buf, count, datatype, request))
COUNTED(File_iread_shared, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPIO_Request *request), (fh, buf,
     count, datatype, request))
COUNTED(File_iwrite, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPIO_Request *request), (fh, buf,
     count, datatype, request))
COUNTED(File_iwrite_at, (MPI_File fh, MPI_Offset offset, const void *buf, COUNT count, MPI_Datatype datatype, MPIO_Request
     *request), (fh, offset, buf, count, datatype, request))
COUNTED(File_iwrite_all, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Request *request), (fh, buf,
     count, datatype, request))
COUNTED(File_iwrite_at_all, (MPI_File fh, MPI_Offset offset, const void *buf, COUNT count, MPI_Datatype datatype,
     MPI_Request *request), (fh, offset, buf, count, datatype, request))
COUNTED(File_iwrite_shared, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPIO_Request *request), (fh,
     buf, count, datatype, request))
ONCE(File_sync, (MPI_File fh), (fh))
COUNTED(File_read_all_begin, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype), (fh, buf, count, datatype))
COUNTED(File_read_at_all_begin, (MPI_File fh, MPI_Offset offset, void *buf, COUNT count, MPI_Datatype datatype), (fh,
     offset, buf, count, datatype))
COUNTED(File_read_ordered_begin, (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype), (fh, buf, count, datatype))
COUNTED(File_write_all_begin, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype), (fh, buf, count,
     datatype))
COUNTED(File_write_at_all_begin, (MPI_File fh, MPI_Offset offset, const void *buf, COUNT count, MPI_Datatype datatype), (fh,
     offset, buf, count, datatype))
COUNTED(File_write_ordered_begin, (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype), (fh, buf, count,
     datatype))
ONCE(Comm_spawn, (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm
     *intercomm, int array_of_errcodes[]), (command, argv, maxprocs, info, root, comm, intercomm, array_of_errcodes))
ONCE(Comm_spawn_multiple, (int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[],
     const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[]), (count,
     array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root, comm, intercomm, array_of_errcodes))
ONCE(Comm_accept, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm), (port_name, info,
     root, comm, newcomm))
ONCE(Comm_connect, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm), (port_name, info,
     root, comm, newcomm))
ONCE(Comm_join, (int fd, MPI_Comm *intercomm), (fd, intercomm))
#if MPI_VERSION >= 4
ONCE(Psend_init, (const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (buf, partitions, count, datatype, dest, tag, comm, info, request))
ONCE(Precv_init, (void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (buf, partitions, count, datatype, dest, tag, comm, info, request))
ONCE(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request))
COUNTED(Bcast_init, (void *buffer, COUNT count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info, MPI_Request
     *request), (buffer, count, datatype, root, comm, info, request))
COUNTED(Gather_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
     MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype,
     recvbuf, recvcount, recvtype, root, comm, info, request))
COUNTED(Gatherv_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[],
     const DISPLACEMENT displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, info, request))
COUNTED(Scatter_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
     MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype,
     recvbuf, recvcount, recvtype, root, comm, info, request))
COUNTED(Scatterv_init, (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT displs[], MPI_Datatype sendtype,
     void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, info, request))
COUNTED(Allgather_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
     recvcount, recvtype, comm, info, request))
COUNTED(Allgatherv_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT
     recvcounts[], const DISPLACEMENT displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, info, request))
COUNTED(Alltoall_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount,
     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
     recvcount, recvtype, comm, info, request))
COUNTED(Alltoallv_init, (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], MPI_Datatype sendtype,
     void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info
     info, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
     info, request))
COUNTED(Alltoallw_init, (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], const MPI_Datatype
     sendtypes[], void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT rdispls[], const MPI_Datatype recvtypes[],
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
     rdispls, recvtypes, comm, info, request))
COUNTED(Reduce_init, (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm
     comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, root, comm, info, request))
COUNTED(Allreduce_init, (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request))
COUNTED(Reduce_scatter_init, (const void *sendbuf, void *recvbuf, const COUNT recvcounts[], MPI_Datatype datatype, MPI_Op
     op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, recvcounts, datatype, op, comm, info,
     request))
COUNTED(Reduce_scatter_block_init, (const void *sendbuf, void *recvbuf, COUNT recvcount, MPI_Datatype datatype, MPI_Op op,
     MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, recvcount, datatype, op, comm, info, request))
COUNTED(Scan_init, (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request))
COUNTED(Exscan_init, (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request))
COUNTED(Neighbor_allgather_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT
     recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype,
     recvbuf, recvcount, recvtype, comm, info, request))
COUNTED(Neighbor_allgatherv_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT
     recvcounts[], const DISPLACEMENT displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, info, request))
COUNTED(Neighbor_alltoall_init, (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT
     recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype,
     recvbuf, recvcount, recvtype, comm, info, request))
COUNTED(Neighbor_alltoallv_init, (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], MPI_Datatype
     sendtype, void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
     comm, info, request))
COUNTED(Neighbor_alltoallw_init, (const void *sendbuf, const COUNT sendcounts[], const MPI_Aint sdispls[], const
     MPI_Datatype sendtypes[], void *recvbuf, const COUNT recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype
     recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
     recvcounts, rdispls, recvtypes, comm, info, request))
#endif
#undef COUNT
#undef DISPLACEMENT
#undef ONCE
#undef COUNTED
