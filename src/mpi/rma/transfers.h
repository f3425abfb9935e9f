/* Transfers between the memories of two processes, W outstanding at once (anderson1997, figure 4): the ways.
 *
 * Of each pair the lower rank, the origin, works; for gets and puts the upper one, the target, makes no call meanwhile.
 * Message i has a place of its own in both memories. */
#ifndef RMA_TRANSFERS_H
#define RMA_TRANSFERS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum { RMA_MOST_OUTSTANDING = 1 << 16 };

typedef struct {
    unsigned char *local;       /* the origin's: gets fetch into it, puts and sends take from it */
    unsigned char *exposed;     /* the target's: in the window */
    MPI_Aint at;                /* where it begins in the window */
    MPI_Win window;
    MPI_Request *requests;      /* as many as may be outstanding */
    size_t bytes;               /* of a message */
    long messages, outstanding;
    int partner;
    bool origin;
} rma_ends;

typedef void rma_transfer(const rma_ends *, long passes);
rma_transfer rma_get, rma_rget, rma_rolling, rma_put, rma_rput, rma_send;

/* OpenSHMEM's; `exposed` lies in its symmetric heap. */
rma_transfer rma_shmem_get, rma_shmem_get_nbi, rma_shmem_put, rma_shmem_put_nbi;

/* Messages of the batch that begins with message `first`: the last one may be smaller. */
static inline long rma_batch(const rma_ends *e, long first)
{
    return e->messages - first < e->outstanding ? e->messages - first : e->outstanding;
}

#endif
