/* One process is slow:  SLOW_RANK=2 SLOW_US=2000 LD_PRELOAD=...: it sleeps so long before it waits for messages. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int rank, (*waitall)(int, MPI_Request *, MPI_Status *) = (int (*)(int, MPI_Request *, MPI_Status *))dlsym(RTLD_NEXT, "MPI_Waitall");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == atoi(getenv("SLOW_RANK")))
        usleep((useconds_t)atoi(getenv("SLOW_US")));
    return waitall(count, requests, statuses);
}
