/* The two memories of a process: its local buffer and what it exposes. */
#ifndef RMA_MEMORY_H
#define RMA_MEMORY_H

#include "plumbline.h"
#include "transfers.h"

typedef enum { RMA_ALLOCATE, RMA_CREATE } rma_kind;     /* exposed by MPI_Win_allocate, or our own by MPI_Win_create */

typedef struct {
    pl_buffers *buffers;        /* the local one; and, unless the library gives it, the exposed one */
    unsigned char *given;       /* the library's memory; NULL: our own */
    rma_ends ends;
    rma_state state;
} rma_memory;

/* Of the case's length, in a window of its kind, or in OpenSHMEM's symmetric heap.  All processes call these. */
rma_memory *rma_memory_create(const pl_case *, long messages, rma_kind, bool symmetric);
void rma_memory_destroy(void *);

void rma_set_guards(const rma_memory *);
bool rma_guards_intact(const rma_memory *);

/* What this process has stored is in the window; what others have put there may be read. */
void rma_synchronise(const rma_memory *);

/* Fails where the memory that processes of one node share is too small for what they expose. */
void rma_check_shared(size_t bytes_exposed);

/* OpenSHMEM: configured before MPI begins, started with its first memory. */
void rma_shmem_configure(void);
void rma_shmem_expect(size_t bytes);    /* the most that any case will ask for */
unsigned char *rma_shmem_allocate(size_t bytes);
void rma_shmem_free(void *);

#endif
