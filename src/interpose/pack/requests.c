/* The requests under way whose message is packed here, by MPI's handle: a send gives its buffer back when it is complete,
 * a receive puts its data in place.
 *
 * MPI may use a handle again as soon as its request is complete, in another thread before the call that completed it has
 * returned.  So a request is out of the table while MPI is asked to complete it, and comes back if it was not. */
#include <stdatomic.h>
#include <stdlib.h>

#include "pack.h"

enum { BUCKETS = 256 };

static pack_request *table[BUCKETS], *orphans;
static atomic_int tracked, orphaned;

static pack_request **bucket_of(MPI_Request handle)
{
    return &table[((uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15u) >> 56];
}

bool pack_any_request(void)
{
    return atomic_load_explicit(&tracked, memory_order_relaxed) || atomic_load_explicit(&orphaned, memory_order_relaxed);
}

pack_request *pack_request_new(void)
{
    pack_request *r = malloc(sizeof *r);
    if (!r)
        interpose_fail("no memory for a request: %zu bytes", sizeof *r);
    return r;
}

void pack_track(pack_request *r)
{
    pack_lock();
    pack_request **bucket = bucket_of(r->handle);
    r->next = *bucket;
    *bucket = r;
    atomic_fetch_add(&tracked, 1);
    pack_unlock();
}

static pack_request **place_of(MPI_Request handle)
{
    pack_request **r = bucket_of(handle);
    while (*r && (*r)->handle != handle)
        r = &(*r)->next;
    return r;
}

static bool none_of(MPI_Request handle)
{
    return handle == MPI_REQUEST_NULL || !atomic_load_explicit(&tracked, memory_order_relaxed);
}

pack_request *pack_find(MPI_Request handle)
{
    if (none_of(handle))
        return NULL;
    pack_lock();
    pack_request *r = *place_of(handle);
    pack_unlock();
    return r;
}

pack_request *pack_take(MPI_Request handle)
{
    if (none_of(handle))
        return NULL;
    pack_lock();
    pack_request **place = place_of(handle), *r = *place;
    if (r) {
        *place = r->next;
        atomic_fetch_sub(&tracked, 1);
    }
    pack_unlock();
    return r;
}

void pack_finish(pack_request *r)
{
    pack_message_done(&r->message);
    free(r);
}

/* What a receive brought goes to its place; not if it was cancelled. */
static void scatter(pack_request *r, MPI_Status *status)
{
    int cancelled, bytes;
    PMPI_Test_cancelled(status, &cancelled);
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    if (!cancelled && bytes > 0)
        pack_scatter(&r->message, (size_t)bytes);
}

void pack_arrived(pack_request *r, MPI_Status *status, int error)
{
    if (r->side == PACK_RECEIVE && r->active && !r->scattered && error == MPI_SUCCESS)
        scatter(r, status);
    r->scattered = true;
}

void pack_complete(pack_request *r, MPI_Status *status, int error)
{
    pack_arrived(r, status, error);
    r->active = false;
    if (r->persistent)
        pack_track(r);
    else
        pack_finish(r);
}

/* A request that is complete already needs nobody to wait for it; and only those that are not are sure to have a handle
 * of their own: for what is sent at once, MPI may have one handle for all. */
void pack_begun(const pack_message *m, pack_side side, int error, MPI_Request handle)
{
    pack_request r = {.handle = handle, .message = *m, .side = side, .active = true};
    MPI_Status status;
    int complete = 0;
    if (error == MPI_SUCCESS) {
        PMPI_Request_get_status(handle, &complete, &status);
        if (!complete) {
            pack_request *kept = pack_request_new();
            *kept = r;
            pack_track(kept);
            return;
        }
        pack_arrived(&r, &status, MPI_SUCCESS);
    }
    pack_message_done(&r.message);
}

/* --- orphans ------------------------------------------------------------------------------------------------------- */

void pack_orphan(pack_request *r)
{
    pack_lock();
    r->next = orphans;
    orphans = r;
    atomic_fetch_add(&orphaned, 1);
    pack_unlock();
}

void pack_orphans(bool wait)
{
    if (!atomic_load_explicit(&orphaned, memory_order_relaxed))
        return;
    /* Nobody else sees those that are looked at. */
    pack_lock();
    pack_request *r = orphans, *next, *still = NULL;
    orphans = NULL;
    pack_unlock();
    for (; r; r = next) {
        int complete = 1;
        MPI_Status status;
        next = r->next;
        const int error = wait ? PMPI_Wait(&r->handle, &status) : PMPI_Test(&r->handle, &complete, &status);
        if (!complete) {
            r->next = still;
            still = r;
            continue;
        }
        pack_arrived(r, &status, error);
        if (r->persistent)
            PMPI_Request_free(&r->handle);
        pack_finish(r);
        atomic_fetch_sub(&orphaned, 1);
    }
    if (still) {
        pack_lock();
        pack_request **last = &still;
        while (*last)
            last = &(*last)->next;
        *last = orphans;
        orphans = still;
        pack_unlock();
    }
}
