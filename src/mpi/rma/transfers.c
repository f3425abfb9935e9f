#include "transfers.h"

#include "plumbline.h"

enum { TAG = 1, ACKNOWLEDGE, WRITTEN, FETCHED, DONE, BLOCK = 32 };

static unsigned char *local_of(const rma_ends *e, long message) { return e->local + (size_t)message * e->bytes; }

static MPI_Aint remote_of(const rma_ends *e, long message) { return e->at + (MPI_Aint)((size_t)message * e->bytes); }

/* W gets, then all of them are waited for. */
void rma_get(const rma_ends *e)
{
    const int bytes = (int)e->bytes;
    for (long first = 0, count; first < e->messages; first += count) {
        count = rma_batch(e, first);
        for (long i = first; i < first + count; i++)
            MPI_Get(local_of(e, i), bytes, MPI_BYTE, e->partner, remote_of(e, i), bytes, MPI_BYTE, e->window);
        MPI_Win_flush(e->partner, e->window);
    }
}

static void start_gets(const rma_ends *e, long first, long count, MPI_Request *requests)
{
    const int bytes = (int)e->bytes;
    for (long i = 0; i < count; i++)
        MPI_Rget(local_of(e, first + i), bytes, MPI_BYTE, e->partner, remote_of(e, first + i), bytes, MPI_BYTE, e->window,
                 &requests[i]);
}

void rma_rget(const rma_ends *e)
{
    for (long first = 0, count; first < e->messages; first += count) {
        count = rma_batch(e, first);
        start_gets(e, first, count, e->requests);
        MPI_Waitall((int)count, e->requests, MPI_STATUSES_IGNORE);
    }
}

/* The largest part of W that divides it, up to the source's 32. */
static long block_of(long outstanding)
{
    long block = outstanding < BLOCK ? outstanding : BLOCK;
    while (outstanding % block)
        block--;
    return block;
}

/* As the source does it with more than 32 registers: once W gets are under way, the oldest of them, a block, are waited
 * for and as many started in their stead, so that the others stay outstanding meanwhile. */
void rma_rolling(const rma_ends *e)
{
    const long slots = e->outstanding, block = block_of(slots);
    long started = 0;
    for (long done = 0, count; done < e->messages; done += count) {
        while (started < e->messages && started + block <= done + slots) {
            count = e->messages - started < block ? e->messages - started : block;
            start_gets(e, started, count, e->requests + started % slots);
            started += count;
        }
        count = e->messages - done < block ? e->messages - done : block;
        MPI_Waitall((int)count, e->requests + done % slots, MPI_STATUSES_IGNORE);
    }
}

/* W puts, then all of them are waited for until they are done in the target's memory. */
void rma_put(const rma_ends *e)
{
    const int bytes = (int)e->bytes;
    for (long first = 0, count; first < e->messages; first += count) {
        count = rma_batch(e, first);
        for (long i = first; i < first + count; i++)
            MPI_Put(local_of(e, i), bytes, MPI_BYTE, e->partner, remote_of(e, i), bytes, MPI_BYTE, e->window);
        MPI_Win_flush(e->partner, e->window);
    }
}

/* A request of MPI_Rput is done when its origin buffer may be used again: only the flush at the end of a pass says that
 * the data are there. */
void rma_rput(const rma_ends *e)
{
    const int bytes = (int)e->bytes;
    for (long first = 0, count; first < e->messages; first += count) {
        count = rma_batch(e, first);
        for (long i = 0; i < count; i++)
            MPI_Rput(local_of(e, first + i), bytes, MPI_BYTE, e->partner, remote_of(e, first + i), bytes, MPI_BYTE,
                     e->window, &e->requests[i]);
        MPI_Waitall((int)count, e->requests, MPI_STATUSES_IGNORE);
    }
    MPI_Win_flush(e->partner, e->window);
}

/* W messages, which the target answers with an empty one: no more than W are under way.  With W = 1 a ping-pong. */
void rma_send(const rma_ends *e)
{
    const int bytes = (int)e->bytes;
    for (long first = 0, count; first < e->messages; first += count) {
        count = rma_batch(e, first);
        for (long i = 0; i < count; i++)
            if (e->origin)
                MPI_Isend(local_of(e, first + i), bytes, MPI_BYTE, e->partner, TAG, MPI_COMM_WORLD, &e->requests[i]);
            else
                MPI_Irecv(e->exposed + (size_t)(first + i) * e->bytes, bytes, MPI_BYTE, e->partner, TAG, MPI_COMM_WORLD,
                          &e->requests[i]);
        MPI_Waitall((int)count, e->requests, MPI_STATUSES_IGNORE);
        if (e->origin)
            MPI_Recv(NULL, 0, MPI_BYTE, e->partner, ACKNOWLEDGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, e->partner, ACKNOWLEDGE, MPI_COMM_WORLD);
    }
}

void rma_tell_target(const rma_ends *e)
{
    if (e->origin)
        MPI_Send(NULL, 0, MPI_BYTE, e->partner, DONE, MPI_COMM_WORLD);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, e->partner, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (e->window != MPI_WIN_NULL)
        MPI_Win_sync(e->window);
}

/* --- what the target does meanwhile ---------------------------------------------------------------------------- */

void rma_timed(const rma_ends *e, rma_transfer *transfer)
{
    const double began = pl_now();
    if (e->origin || transfer == rma_send)
        transfer(e);
    if (e->origin)
        e->state->seconds += pl_now() - began;
}

static void compute(const rma_ends *e)
{
    uint64_t bits = 0;
    const double end = pl_now() + e->computes;
    while (*e->signal < e->state->busy_passes && pl_now() < end)
        for (int i = 0; i < 1000; i++)
            bits = pl_random_bits(bits);
    __asm__ volatile("" : : "r"(bits));
}

/* The target computes until the origin is done: with transfers that need nothing of it, it hears of that at once.  The origin does
 * not wait for it, and may be some passes ahead. */
static void while_target_computes(const rma_ends *e, rma_transfer *transfer)
{
    int there;
    e->state->busy_passes++;
    if (e->origin) {
        rma_timed(e, transfer);
        MPI_Put(&e->state->busy_passes, sizeof(uint64_t), MPI_BYTE, e->partner, 0, sizeof(uint64_t), MPI_BYTE, e->signals);
        MPI_Win_flush(e->partner, e->signals);
    } else
        while (compute(e), *e->signal < e->state->busy_passes) {
            MPI_Iprobe(e->partner, TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            MPI_Win_sync(e->signals);
        }
}

void rma_get_busy(const rma_ends *e) { while_target_computes(e, rma_get); }
void rma_put_busy(const rma_ends *e) { while_target_computes(e, rma_put); }

static void rewrite(const rma_ends *e)
{
    const unsigned char change = (unsigned char)(rma_change(e->state->written) ^ rma_change(e->state->written - 1));
    for (size_t i = 0; i < e->bytes * (size_t)e->messages; i++)
        e->exposed[i] ^= change;
}

/* In shared memory gets of what nobody writes read the origin's own cache: here the target's has the lines. */
void rma_get_rewritten(const rma_ends *e)
{
    e->state->written++;
    if (e->origin) {
        MPI_Recv(NULL, 0, MPI_BYTE, e->partner, WRITTEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_sync(e->window);
        rma_timed(e, rma_get);
        MPI_Send(NULL, 0, MPI_BYTE, e->partner, FETCHED, MPI_COMM_WORLD);
    } else {
        rewrite(e);
        MPI_Win_sync(e->window);
        MPI_Send(NULL, 0, MPI_BYTE, e->partner, WRITTEN, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, e->partner, FETCHED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}
