/* Completion: MPI completes the request, then what is due here is done before the caller knows.  Requests are taken out of
 * the table before the call, and put back where they are not complete. */
#include <stdlib.h>

#include "pack.h"

/* --- one request --------------------------------------------------------------------------------------------------- */

/* A request that was taken, after MPI's call; an error may leave it as it was. */
static void settle(pack_request *r, bool complete, MPI_Request handle, MPI_Status *status, int error)
{
    if (error != MPI_SUCCESS)
        complete = error != MPI_ERR_PENDING && (r->persistent || handle == MPI_REQUEST_NULL);
    if (complete)
        pack_complete(r, status, error);
    else
        pack_track(r);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Status own;
    pack_request *r = pack_take(*request);
    if (r && status == MPI_STATUS_IGNORE)
        status = &own;
    const int error = PMPI_Wait(request, status);
    if (r)
        settle(r, true, *request, status, error);
    pack_orphans(false);
    return error;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    MPI_Status own;
    pack_request *r = pack_take(*request);
    if (r && status == MPI_STATUS_IGNORE)
        status = &own;
    const int error = PMPI_Test(request, flag, status);
    if (r)
        settle(r, *flag, *request, status, error);
    pack_orphans(false);
    return error;
}

/* Complete, but not to be given up yet: the caller may use the data all the same. */
int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    MPI_Status own;
    pack_request *r = pack_find(request);
    if (r && status == MPI_STATUS_IGNORE)
        status = &own;
    const int error = PMPI_Request_get_status(request, flag, status);
    if (r && error == MPI_SUCCESS && *flag)
        pack_arrived(r, status, error);
    pack_orphans(false);
    return error;
}

static bool is_own(MPI_Request request)
{
    const pack_request *const r = pack_find(request);
    return r && r->active;
}

#include "get_status.h"

/* A request under way goes on without a handle; its buffer and its data stay in our care. */
int MPI_Request_free(MPI_Request *request)
{
    pack_request *r = pack_take(*request);
    if (!r)
        return PMPI_Request_free(request);
    if (r->active) {
        pack_orphan(r);
        *request = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    const int error = PMPI_Request_free(request);
    if (error == MPI_SUCCESS)
        pack_finish(r);
    else
        pack_track(r);
    return error;
}

/* --- several requests ---------------------------------------------------------------------------------------------- */

enum { FEW = 32 };
typedef struct {
    bool ours;                      /* any of them is; nothing else is there if not */
    pack_request **of;              /* NULL: not one of ours */
    MPI_Status *status;             /* the caller's, or own ones */
    pack_request *few[FEW];
    MPI_Status few_statuses[FEW];
    void *many, *many_statuses;
} group;

static void *room(size_t bytes)
{
    void *got = malloc(bytes);
    if (!got)
        interpose_fail("no memory to complete requests: %zu bytes", bytes);
    return got;
}

static void take_all(group *g, int n, const MPI_Request *requests, MPI_Status *statuses)
{
    g->ours = false;
    g->many = g->many_statuses = NULL;
    g->status = statuses;
    if (n <= 0 || !pack_any_request())
        return;
    g->of = n <= FEW ? g->few : (g->many = room((size_t)n * sizeof *g->of));
    for (int i = 0; i < n; i++)
        if ((g->of[i] = pack_take(requests[i])))
            g->ours = true;
    if (g->ours && statuses == MPI_STATUSES_IGNORE)
        g->status = n <= FEW ? g->few_statuses : (g->many_statuses = room((size_t)n * sizeof *g->status));
}

/* Request i is complete, or MPI has said so; its status is the k-th. */
static void one_of(group *g, int i, int k, const MPI_Request *requests, int error)
{
    if (!g->ours || !g->of[i])
        return;
    settle(g->of[i], true, requests[i], &g->status[k], error == MPI_ERR_IN_STATUS ? g->status[k].MPI_ERROR : error);
    g->of[i] = NULL;
}

/* Those that are left are not complete. */
static void leave(group *g, int n)
{
    for (int i = 0; g->ours && i < n; i++)
        if (g->of[i])
            pack_track(g->of[i]);
    free(g->many);
    free(g->many_statuses);
    pack_orphans(false);
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    group g;
    take_all(&g, n, requests, statuses);
    const int error = PMPI_Waitall(n, requests, g.status);
    for (int i = 0; i < n; i++)
        one_of(&g, i, i, requests, error);
    leave(&g, n);
    return error;
}

int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    group g;
    take_all(&g, n, requests, statuses);
    const int error = PMPI_Testall(n, requests, flag, g.status);
    for (int i = 0; i < n && (*flag || error != MPI_SUCCESS); i++)
        one_of(&g, i, i, requests, error);
    leave(&g, n);
    return error;
}

int MPI_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status)
{
    group g;
    take_all(&g, n, requests, status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status);
    const int error = PMPI_Waitany(n, requests, index, g.ours ? g.status : status);
    if (*index != MPI_UNDEFINED)
        one_of(&g, *index, 0, requests, error);
    leave(&g, n);
    return error;
}

int MPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    group g;
    take_all(&g, n, requests, status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status);
    const int error = PMPI_Testany(n, requests, index, flag, g.ours ? g.status : status);
    if ((*flag || error != MPI_SUCCESS) && *index != MPI_UNDEFINED)
        one_of(&g, *index, 0, requests, error);
    leave(&g, n);
    return error;
}

/* Those that `done` counts, by their indices. */
static void some_of(group *g, int n, const MPI_Request *requests, int done, const int *indices, int error)
{
    for (int k = 0; done != MPI_UNDEFINED && k < done; k++)
        one_of(g, indices[k], k, requests, error);
    leave(g, n);
}

int MPI_Waitsome(int n, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    group g;
    take_all(&g, n, requests, statuses);
    const int error = PMPI_Waitsome(n, requests, done, indices, g.status);
    some_of(&g, n, requests, *done, indices, error);
    return error;
}

int MPI_Testsome(int n, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    group g;
    take_all(&g, n, requests, statuses);
    const int error = PMPI_Testsome(n, requests, done, indices, g.status);
    some_of(&g, n, requests, *done, indices, error);
    return error;
}
