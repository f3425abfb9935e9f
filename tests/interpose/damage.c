/* Damages messages behind a program's back: its verification must find it.
 *
 *     DAMAGE=drop|byte:PERIOD:WHICH   of every PERIOD messages that a process gets, number WHICH (from 0) is not delivered, or
 *                                     has its last byte wrong.  What is empty, and a put of a single word, is not counted.
 *
 * Preloaded; also before calls of PMPI_..., which are the same functions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, PENDING = 1 << 16 };

static long counted;
static struct {
    MPI_Request request;
    unsigned char *last;
} pending[PENDING];     /* receives whose last byte will be wrong */
static int waiting;

static void *original(const char *name) { return dlsym(RTLD_NEXT, name); }

typedef enum { AS_IT_IS, DROPPED, WRONG } damage;

static damage next(int count, MPI_Datatype type, int *bytes)
{
    static char kind[8];
    static long period, which;
    if (!period && sscanf(getenv("DAMAGE"), "%7[a-z]:%ld:%ld", kind, &period, &which) != 3)
        abort();
    MPI_Type_size(type, bytes);
    *bytes *= count;
    if (*bytes == 0 || counted++ % period != which)
        return AS_IT_IS;
    return strcmp(kind, "drop") ? WRONG : DROPPED;
}

static void *elsewhere(int bytes)
{
    void *memory = malloc((size_t)bytes);       /* never freed: it may be received into later */
    if (!memory)
        abort();
    return memory;
}

/* --- two-sided ------------------------------------------------------------------------------------------------- */

int PMPI_Recv(void *into, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    int bytes, (*recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *) = original("PMPI_Recv");
    const damage done = next(count, type, &bytes);
    const int code = recv(done == DROPPED ? elsewhere(bytes) : into, count, type, from, tag, comm, status);
    if (done == WRONG)
        ((unsigned char *)into)[bytes - 1] ^= 0xFF;
    return code;
}
int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *) __attribute__((alias("PMPI_Recv")));

int MPI_Sendrecv(const void *from, int n, MPI_Datatype sent, int to, int tag, void *into, int count, MPI_Datatype type, int source,
                 int expected, MPI_Comm comm, MPI_Status *status)
{
    int bytes;
    const damage done = next(count, type, &bytes);
    const int code = PMPI_Sendrecv(from, n, sent, to, tag, done == DROPPED ? elsewhere(bytes) : into, count, type, source,
                                   expected, comm, status);
    if (done == WRONG)
        ((unsigned char *)into)[bytes - 1] ^= 0xFF;
    return code;
}

int MPI_Irecv(void *into, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    int bytes;
    const damage done = next(count, type, &bytes);
    const int code = PMPI_Irecv(done == DROPPED ? elsewhere(bytes) : into, count, type, from, tag, comm, request);
    if (done == WRONG && waiting < PENDING) {
        pending[waiting].request = *request;
        pending[waiting++].last = (unsigned char *)into + bytes - 1;
    }
    return code;
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    unsigned char *arrived[PENDING];
    int wrong = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < waiting; k++)
            if (pending[k].request == requests[i]) {
                arrived[wrong++] = pending[k].last;
                pending[k--] = pending[--waiting];
            }
    const int code = PMPI_Waitall(count, requests, statuses);
    while (wrong > 0)
        *arrived[--wrong] ^= 0xFF;
    return code;
}

/* --- one-sided: all but the last byte -------------------------------------------------------------------------- */

static int shortened(int bytes, MPI_Datatype type)
{
    const damage done = next(bytes, type, &bytes);
    return done == DROPPED ? 0 : done == WRONG ? bytes - 1 : bytes;
}

int MPI_Get(void *into, int n, MPI_Datatype type, int rank, MPI_Aint at, int count, MPI_Datatype there, MPI_Win window)
{
    n = count = shortened(count, there);
    return PMPI_Get(into, n, type, rank, at, count, there, window);
}

int MPI_Rget(void *into, int n, MPI_Datatype type, int rank, MPI_Aint at, int count, MPI_Datatype there, MPI_Win window,
             MPI_Request *request)
{
    n = count = shortened(count, there);
    return PMPI_Rget(into, n, type, rank, at, count, there, window, request);
}

int MPI_Put(const void *from, int n, MPI_Datatype type, int rank, MPI_Aint at, int count, MPI_Datatype there, MPI_Win window)
{
    if (count > WORD)
        n = count = shortened(count, there);
    return PMPI_Put(from, n, type, rank, at, count, there, window);
}

int MPI_Rput(const void *from, int n, MPI_Datatype type, int rank, MPI_Aint at, int count, MPI_Datatype there, MPI_Win window,
             MPI_Request *request)
{
    n = count = shortened(count, there);
    return PMPI_Rput(from, n, type, rank, at, count, there, window, request);
}
