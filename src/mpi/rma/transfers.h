/* Transfers between the memories of two processes, W outstanding at once (anderson1997, figure 4): the ways.
 *
 * Of each pair the lower rank, the origin, works.  For gets and puts the upper one, the target, has nothing to do: it waits in
 * the MPI for the end of the pass, or computes meanwhile without a call (busy), or writes anew what is fetched (rewritten).
 * Message i has a place of its own in both memories. */
#ifndef RMA_TRANSFERS_H
#define RMA_TRANSFERS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RMA_MOST_OUTSTANDING = 1 << 16 };

/* What goes on from run to run; the same in both processes of a pair, but for the seconds. */
typedef struct {
    double seconds;             /* that the origin has spent in transfers */
    uint64_t busy_passes;         /* of a target that computes */
    uint64_t written;           /* how often the exposed memory has been rewritten */
    bool verifying;             /* what arrives is looked at as soon as a pass is done */
    double wrong;               /* bytes of it */
} rma_state;

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
    rma_state *state;
    MPI_Win signals;                    /* of a word each, in which the origin tells the target the number of its last pass */
    const volatile uint64_t *signal;    /* the own one */
    double computes;                    /* seconds that a busy target computes between two calls of the MPI */
} rma_ends;

typedef void rma_transfer(const rma_ends *);      /* a pass */
rma_transfer rma_get, rma_rget, rma_rolling, rma_put, rma_rput, rma_send;

/* These add to state->seconds what the transfers alone have taken. */
rma_transfer rma_get_busy, rma_get_rewritten, rma_put_busy;
void rma_timed(const rma_ends *, rma_transfer *);

/* The target hears that a pass is done by a message: unlike a barrier, it waits for nothing that the pass has not waited for. */
void rma_tell_target(const rma_ends *);

/* What the exposed memory differs by from its first values: in every byte, from one time to any of the next 255. */
static inline uint64_t rma_change(uint64_t written) { return (written & 0xFF) * 0x0101010101010101u; }

/* OpenSHMEM's; `exposed` lies in its symmetric heap. */
rma_transfer rma_shmem_get, rma_shmem_get_nbi, rma_shmem_put, rma_shmem_put_nbi;

/* Messages of the batch that begins with message `first`: the last one may be smaller. */
static inline long rma_batch(const rma_ends *e, long first)
{
    return e->messages - first < e->outstanding ? e->messages - first : e->outstanding;
}

#endif
