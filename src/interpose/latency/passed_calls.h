/* The calls of passed.h: COUNTED(name, (parameters), (arguments)) where MPI 4 has one more with larger counts, ONCE where it has
 * none.  COUNT and DISPLACEMENT are the types of the family that is being made. */
#define TRANSFER(NAME, RNAME, PARAMETERS, ARGUMENTS) \
    COUNTED(NAME, PARAMETERS, ARGUMENTS)             \
    COUNTED(RNAME, (BARE PARAMETERS, MPI_Request * request), (BARE ARGUMENTS, request))
TRANSFER(Put, Rput, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
     target_disp, COUNT target_count, MPI_Datatype target_datatype, MPI_Win win), (origin_addr, origin_count,
     origin_datatype, target_rank, target_disp, target_count, target_datatype, win))
TRANSFER(Get, Rget, (void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
     COUNT target_count, MPI_Datatype target_datatype, MPI_Win win), (origin_addr, origin_count, origin_datatype,
     target_rank, target_disp, target_count, target_datatype, win))
TRANSFER(Accumulate, Raccumulate, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint
     target_disp, COUNT target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win), (origin_addr, origin_count,
     origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win))
TRANSFER(Get_accumulate, Rget_accumulate, (const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, void *result_addr, COUNT
     result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, COUNT target_count, MPI_Datatype
     target_datatype, MPI_Op op, MPI_Win win), (origin_addr, origin_count, origin_datatype, result_addr, result_count,
     result_datatype, target_rank, target_disp, target_count, target_datatype, op, win))
#undef TRANSFER
ONCE(Fetch_and_op, (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint
     target_disp, MPI_Op op, MPI_Win win), (origin_addr, result_addr, datatype, target_rank, target_disp, op, win))
ONCE(Compare_and_swap, (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype, int
     target_rank, MPI_Aint target_disp, MPI_Win win), (origin_addr, compare_addr, result_addr, datatype, target_rank,
     target_disp, win))
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
#define OF_FILE(NAME, BUFFER, LAST, ARGUMENT) \
    COUNTED(File_##NAME, (MPI_File fh, BUFFER *buf, COUNT count, MPI_Datatype datatype BARE LAST), (fh, buf, count, datatype BARE ARGUMENT))
#define AT_OFFSET(NAME, BUFFER, LAST, ARGUMENT)                                                                        \
    COUNTED(File_##NAME, (MPI_File fh, MPI_Offset offset, BUFFER * buf, COUNT count, MPI_Datatype datatype BARE LAST), \
            (fh, offset, buf, count, datatype BARE ARGUMENT))
ONCE(File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh), (comm, filename, amode, info,
     fh))
ONCE(File_close, (MPI_File *fh), (fh))
OF_FILE(read, void, (, MPI_Status *status), (, status))
OF_FILE(read_all, void, (, MPI_Status *status), (, status))
AT_OFFSET(read_at, void, (, MPI_Status *status), (, status))
AT_OFFSET(read_at_all, void, (, MPI_Status *status), (, status))
OF_FILE(read_shared, void, (, MPI_Status *status), (, status))
OF_FILE(read_ordered, void, (, MPI_Status *status), (, status))
OF_FILE(write, const void, (, MPI_Status *status), (, status))
OF_FILE(write_all, const void, (, MPI_Status *status), (, status))
AT_OFFSET(write_at, const void, (, MPI_Status *status), (, status))
AT_OFFSET(write_at_all, const void, (, MPI_Status *status), (, status))
OF_FILE(write_shared, const void, (, MPI_Status *status), (, status))
OF_FILE(write_ordered, const void, (, MPI_Status *status), (, status))
OF_FILE(iread, void, (, MPIO_Request *request), (, request))
AT_OFFSET(iread_at, void, (, MPIO_Request *request), (, request))
OF_FILE(iread_all, void, (, MPI_Request *request), (, request))
AT_OFFSET(iread_at_all, void, (, MPI_Request *request), (, request))
OF_FILE(iread_shared, void, (, MPIO_Request *request), (, request))
OF_FILE(iwrite, const void, (, MPIO_Request *request), (, request))
AT_OFFSET(iwrite_at, const void, (, MPIO_Request *request), (, request))
OF_FILE(iwrite_all, const void, (, MPI_Request *request), (, request))
AT_OFFSET(iwrite_at_all, const void, (, MPI_Request *request), (, request))
OF_FILE(iwrite_shared, const void, (, MPIO_Request *request), (, request))
ONCE(File_sync, (MPI_File fh), (fh))
OF_FILE(read_all_begin, void, (), ())
AT_OFFSET(read_at_all_begin, void, (), ())
OF_FILE(read_ordered_begin, void, (), ())
OF_FILE(write_all_begin, const void, (), ())
AT_OFFSET(write_at_all_begin, const void, (), ())
OF_FILE(write_ordered_begin, const void, (), ())
#undef OF_FILE
#undef AT_OFFSET
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
#if LAT_CALLS_OF_4
ONCE(Psend_init, (const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (buf, partitions, count, datatype, dest, tag, comm, info, request))
ONCE(Precv_init, (void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
     MPI_Info info, MPI_Request *request), (buf, partitions, count, datatype, dest, tag, comm, info, request))
ONCE(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request))
#define COLLECTIVE(NAME, INAME, PARAMETERS, ARGUMENTS, SHAPED) \
    COUNTED(NAME##_init, (BARE PARAMETERS, MPI_Info info, MPI_Request *request), (BARE ARGUMENTS, info, request))
#include "collectives.h"
#undef COLLECTIVE
#endif
#undef COUNT
#undef DISPLACEMENT
#undef ONCE
#undef COUNTED
