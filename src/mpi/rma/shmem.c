/* OpenSHMEM, where the MPI has it; without RMA_SHMEM there are no variants that come here. */
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "runtime.h"

#ifdef RMA_SHMEM
#include <shmem.h>

enum { MIB = 1 << 20 };

static const char OF_OPEN_MPI[] = "SHMEM_SYMMETRIC_HEAP_SIZE";  /* its name for the standard's SHMEM_SYMMETRIC_SIZE */

static size_t expected;     /* bytes of the largest case */
static bool started;

static unsigned char *remote_of(const rma_ends *e, long message) { return e->exposed + (size_t)message * e->bytes; }
static unsigned char *local_of(const rma_ends *e, long message) { return e->local + (size_t)message * e->bytes; }

void rma_shmem_get(const rma_ends *e)
{
    for (long i = 0; i < e->messages; i++)
        shmem_getmem(local_of(e, i), remote_of(e, i), e->bytes, e->partner);
}

void rma_shmem_get_nbi(const rma_ends *e)
{
    for (long first = 0, count; first < e->messages; first += count) {
        count = rma_batch(e, first);
        for (long i = first; i < first + count; i++)
            shmem_getmem_nbi(local_of(e, i), remote_of(e, i), e->bytes, e->partner);
        shmem_quiet();
    }
}

void rma_shmem_put(const rma_ends *e)
{
    for (long first = 0, count; first < e->messages; first += count) {
        count = rma_batch(e, first);
        for (long i = first; i < first + count; i++)
            shmem_putmem(remote_of(e, i), local_of(e, i), e->bytes, e->partner);
        shmem_quiet();
    }
}

void rma_shmem_put_nbi(const rma_ends *e)
{
    for (long first = 0, count; first < e->messages; first += count) {
        count = rma_batch(e, first);
        for (long i = first; i < first + count; i++)
            shmem_putmem_nbi(remote_of(e, i), local_of(e, i), e->bytes, e->partner);
        shmem_quiet();
    }
}

/* Open MPI 4.1 with UCX ends with a segmentation fault when it frees memory after it has unloaded the component that
 * wants to hear of it; UCX then hears of it by itself.  What the user has set stays. */
void rma_shmem_configure(void) { setenv("OMPI_MCA_opal_common_ucx_opal_mem_hooks", "0", 0); }

void rma_shmem_expect(size_t bytes) { expected = bytes > expected ? bytes : expected; }

/* It finalises MPI as well, which the runtime's own finalisation, later, regards. */
static void finish(void)
{
    int done;
    MPI_Finalized(&done);
    if (!done)
        shmem_finalize();
}

/* The heap has one length for all cases, and an allocator that may round up to a power of two. */
static void start(void)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", 4 * expected + 64 * (size_t)MIB);
    if (!getenv("SHMEM_SYMMETRIC_SIZE"))
        setenv(OF_OPEN_MPI, text, 0);
    setenv("SHMEM_SYMMETRIC_SIZE", text, 0);
    shmem_init();       /* ends the process where it fails */
    atexit(finish);
    started = true;
    if (shmem_my_pe() != pl_processes.rank || shmem_n_pes() != pl_processes.ranks)
        pl_fail("OpenSHMEM calls this process %d of %d, MPI %d of %d: start it with the launcher of that MPI",
                shmem_my_pe(), shmem_n_pes(), pl_processes.rank, pl_processes.ranks);
}

unsigned char *rma_shmem_allocate(size_t bytes)
{
    if (!started)
        start();
    unsigned char *memory = shmem_malloc(bytes);
    if (!memory)
        pl_fail("no %zu bytes in OpenSHMEM's symmetric heap: choose a smaller --size or set SHMEM_SYMMETRIC_SIZE (Open MPI: "
                "%s)", bytes, OF_OPEN_MPI);
    return memory;
}

void rma_shmem_free(void *memory) { shmem_free(memory); }

#else

void rma_shmem_configure(void) {}
void rma_shmem_expect(size_t bytes) {}
unsigned char *rma_shmem_allocate(size_t bytes) { pl_fail("%zu bytes: built without OpenSHMEM", bytes); }
void rma_shmem_free(void *memory) {}

#endif
