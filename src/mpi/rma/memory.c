#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "runtime.h"

/* A page on either side, and whole pages in all: a window is aligned as what is not exposed, and MPICH 4.0.2 finds those of
 * processes of one node in the wrong places where their lengths are no multiples of 64 bytes. */
enum { PAD = 4096, GUARD = 0xC5 };

static const char SHARED_MEMORY[] = "/dev/shm";

/* --- what the library gives ------------------------------------------------------------------------------------ */

/* Written to beyond what the file system can hold, shared memory ends the process with SIGBUS. */
void rma_check_shared(size_t bytes_exposed)
{
    struct statvfs system;
    const double needed = (double)bytes_exposed * pl_processes.on_node;
    if (pl_processes.on_node < 2 || statvfs(SHARED_MEMORY, &system))
        return;
    const double available = (double)system.f_bavail * (double)system.f_frsize;
    if (needed > available)
        pl_fail("--memory allocate: the windows of this node need %.3g GB of shared memory, of %.3g GB that are free in "
                "%s: choose a smaller --size, fewer --messages or --memory create", needed / 1e9, available / 1e9,
                SHARED_MEMORY);
}

static unsigned char *give(rma_ends *e, size_t bytes, bool symmetric)
{
    const size_t length = bytes / PAD * PAD + 3 * PAD;
    void *given;
    if (symmetric)
        return rma_shmem_allocate(length);
    MPI_Win_allocate((MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &given, &e->window);
    return given;
}

static void create_signals(rma_ends *e)
{
    uint64_t *signal;
    MPI_Win_allocate(PL_LINE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &signal, &e->signals);
    *signal = 0;
    e->signal = signal;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, e->signals);
    MPI_Win_sync(e->signals);
    pl_processes.barrier();
}

static void free_window(MPI_Win *window)
{
    MPI_Win_unlock_all(*window);
    MPI_Win_free(window);
}

static unsigned char *guard(const rma_memory *m, size_t bytes, bool above)
{
    return m->ends.exposed + (above ? (ptrdiff_t)bytes : -(ptrdiff_t)PL_LINE);
}

/* --- both ------------------------------------------------------------------------------------------------------ */

static size_t length(const rma_memory *m) { return m->buffers->bytes[0]; }

rma_memory *rma_memory_create(const pl_case *c, long messages, rma_kind kind, bool symmetric)
{
    const bool own = kind == RMA_CREATE && !symmetric;
    rma_memory *m = pl_allocate(sizeof *m, "the windows");
    rma_ends *e = &m->ends;
    *e = (rma_ends){.window = MPI_WIN_NULL, .bytes = c->n, .messages = messages,
                    .partner = pl_partner(), .origin = pl_leads(), .state = &m->state, .signals = MPI_WIN_NULL};
    const size_t bytes[] = {c->n * (size_t)messages, c->n * (size_t)messages};
    m->buffers = pl_buffers_create(c, own ? 2 : 1, bytes, NULL);
    e->local = m->buffers->at[0];
    e->requests = pl_allocate(RMA_MOST_OUTSTANDING * sizeof *e->requests, "the requests");
    if (own) {
        e->exposed = m->buffers->at[1];
        MPI_Win_create(e->exposed, (MPI_Aint)bytes[1], 1, MPI_INFO_NULL, MPI_COMM_WORLD, &e->window);
    } else {
        m->given = give(e, bytes[0], symmetric);
        e->exposed = m->given + PAD;
        e->at = PAD;
    }
    if (e->window != MPI_WIN_NULL) {
        MPI_Win_lock_all(MPI_MODE_NOCHECK, e->window);
        create_signals(e);
    }
    return m;
}

void rma_memory_destroy(void *data)
{
    rma_memory *m = data;
    if (m->ends.window != MPI_WIN_NULL) {
        free_window(&m->ends.window);
        free_window(&m->ends.signals);
    } else
        rma_shmem_free(m->given);
    free(m->ends.requests);
    pl_buffers_destroy(m->buffers);
    free(m);
}

void rma_set_guards(const rma_memory *m)
{
    pl_buffers_set_guards(m->buffers);
    for (int above = 0; m->given && above < 2; above++)
        memset(guard(m, length(m), above), GUARD, PL_LINE);
}

bool rma_guards_intact(const rma_memory *m)
{
    for (int above = 0; m->given && above < 2; above++)
        for (int i = 0; i < PL_LINE; i++)
            if (guard(m, length(m), above)[i] != GUARD)
                return false;
    return pl_buffers_guards_intact(m->buffers);
}

void rma_synchronise(const rma_memory *m)
{
    if (m->ends.window != MPI_WIN_NULL)
        MPI_Win_sync(m->ends.window);
    pl_processes.barrier();
    if (m->ends.window != MPI_WIN_NULL)
        MPI_Win_sync(m->ends.window);
}
