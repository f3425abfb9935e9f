/* The operations under way, found by their requests. */
#include "latency.h"

#include <stdlib.h>

enum { BUCKETS = 4096 };

static lat_pending *table[BUCKETS];
static lat_pending *unused;

static lat_pending **bucket(MPI_Request request)
{
    uint64_t key = (uint64_t)(uintptr_t)request * 0x9E3779B97F4A7C15u;
    return &table[key >> 52];
}

lat_pending *lat_new(lat_kind kind, lat_comm *comm)
{
    lat_pending *e = unused;
    if (e)
        unused = e->next;
    else
        e = lat_allocate(sizeof *e);
    *e = (lat_pending){.kind = kind, .comm = comm, .request = MPI_REQUEST_NULL, .absent = NEVER_SEEN, .arrival = NEVER_SEEN,
                       .shadow = MPI_REQUEST_NULL, .out = MPI_REQUEST_NULL};
    if (comm)
        comm->users++;
    return e;
}

void lat_let_go(lat_comm *comm)
{
    if (comm->closed && comm->users == 0)
        free(comm);
}

void lat_free(lat_pending *e)
{
    if (e->comm) {
        e->comm->users--;
        lat_let_go(e->comm);
    }
    free(e->collective);
    free(e->copy);
    e->next = unused;
    unused = e;
}

void lat_enter(lat_pending *e)
{
    e->handle = e->request;
    e->chain = *bucket(e->handle);
    *bucket(e->handle) = e;
}

void lat_remove(lat_pending *e)
{
    for (lat_pending **p = bucket(e->handle); *p; p = &(*p)->chain)
        if (*p == e) {
            *p = e->chain;
            return;
        }
}

lat_pending *lat_find(MPI_Request request)
{
    for (lat_pending *e = *bucket(request); e; e = e->chain)
        if (e->handle == request)
            return e;
    return NULL;
}

/* MPIs have one handle for all operations that were complete at once: then each of them is found once in a call. */
lat_pending *lat_delayed(MPI_Request request)
{
    if (request == MPI_REQUEST_NULL)
        return NULL;
    for (lat_pending *e = *bucket(request); e; e = e->chain)
        if (e->handle == request && e->active && e->kind != LAT_SEND && !e->taken)
            return e;
    return NULL;
}
