/* Wait and Test, all of them.  An operation that the MPI has complete is shown to the program once it may be seen; until
 * then its request stays as it is, complete but not given back, so that the MPI does not use it for another one.
 * Requests that are not delayed are the MPI's own affair. */
#include "latency.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 64 };

ns lat_overhead_of(const lat_pending *e)
{
    if (e->kind == LAT_RECEIVE || e->kind == LAT_MATCHED)
        return e->cancelled ? 0 : lat_set.overhead;
    return e->kind == LAT_COLLECTIVE ? lat_collective_receives(e) * lat_set.overhead : 0;
}

int lat_complete(lat_pending *e, MPI_Request *request, MPI_Status *status)
{
    ns kept = lat_visible(e) - e->arrival;
    lat_count.waited += kept > 0 ? kept : 0;
    if ((e->kind == LAT_RECEIVE || e->kind == LAT_MATCHED) && !e->cancelled)
        lat_count.received++;
    if (e->kind == LAT_DUPLICATE)
        lat_comm_duplicated(e);
    if (!e->persistent)
        lat_remove(e);
    if (!e->stored) {
        lat_release(e);
        return PMPI_Wait(request, status);
    }
    int error = e->error;
    if (status != MPI_STATUS_IGNORE)
        *status = e->status;
    if (!e->persistent) {
        if (e->request != MPI_REQUEST_NULL)
            PMPI_Request_free(&e->request);
        *request = MPI_REQUEST_NULL;
    }
    lat_release(e);
    return error;
}

int lat_await(lat_pending *e, MPI_Request *request, MPI_Status *status)
{
    lat_lock();
    for (ns left; (left = lat_left(e)) > 0;)
        lat_pass_time(e->arrived ? left : 0);
    ns overhead = lat_overhead_of(e);
    int error = lat_complete(e, request, status);
    lat_unlock();
    lat_busy(overhead);
    return error;
}

/* The requests of one call, those that are delayed apart from the others. */
typedef struct {
    int n, delayed, others;
    lat_pending **entry;            /* of each; NULL: not delayed */
    MPI_Request *rest;              /* the others, and where they were */
    int *place, *index;
    MPI_Status *statuses;           /* room for those of the others */
    lat_pending *few[FEW];
} sorted;

/* With the lock held where there are delayed ones; false: there are none, the call is the MPI's. */
static bool sort(sorted *s, int n, MPI_Request requests[])
{
    lat_lock();
    s->n = n;
    s->delayed = 0;
    s->entry = n > FEW ? lat_allocate((size_t)n * sizeof *s->entry) : s->few;
    for (int i = 0; i < n; i++)
        if ((s->entry[i] = lat_delayed(requests[i]))) {
            s->entry[i]->taken = true;
            s->delayed++;
        }
    if (!s->delayed) {
        lat_unlock();
        if (s->entry != s->few)
            free(s->entry);
        return false;
    }
    size_t others = (size_t)(s->others = n - s->delayed);
    s->rest = lat_allocate(others * sizeof *s->rest);
    s->place = lat_allocate(others * sizeof *s->place);
    s->index = lat_allocate(others * sizeof *s->index);
    s->statuses = lat_allocate(others * sizeof *s->statuses);
    for (int i = 0, k = 0; i < n; i++)
        if (!s->entry[i]) {
            s->rest[k] = requests[i];
            s->place[k++] = i;
        }
    return true;
}

static int done_with(sorted *s, MPI_Request requests[], ns overhead, int error)
{
    for (int k = 0; k < s->others; k++)
        requests[s->place[k]] = s->rest[k];
    for (int i = 0; i < s->n; i++)
        if (s->entry[i])
            s->entry[i]->taken = false;
    lat_unlock();
    free(s->rest);
    free(s->place);
    free(s->index);
    free(s->statuses);
    if (s->entry != s->few)
        free(s->entry);
    lat_busy(overhead);
    return error;
}

/* The longest time that one of them has to wait yet; <= 0: all may be seen. */
static ns longest(sorted *s, bool *looking)
{
    ns most = 0;
    *looking = false;
    for (int i = 0; i < s->n; i++)
        if (s->entry[i]) {
            ns left = lat_left(s->entry[i]);
            most = left > most ? left : most;
            *looking |= left == NOT_YET;
        }
    return most;
}

static MPI_Status *status_of(MPI_Status statuses[], int i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* Delivers one; its status says what became of it. */
static int deliver(sorted *s, int i, MPI_Request requests[], MPI_Status *status, ns *overhead)
{
    *overhead += lat_overhead_of(s->entry[i]);
    int error = lat_complete(s->entry[i], &requests[i], status);
    s->entry[i] = NULL;
    if (status != MPI_STATUS_IGNORE)
        status->MPI_ERROR = error;
    return error;
}

static int deliver_all(sorted *s, MPI_Request requests[], MPI_Status statuses[], int error_of_others, ns *overhead)
{
    bool wrong = error_of_others != MPI_SUCCESS;
    for (int k = 0; k < s->others; k++)
        if (statuses != MPI_STATUSES_IGNORE) {
            statuses[s->place[k]] = s->statuses[k];
            if (error_of_others != MPI_ERR_IN_STATUS)
                statuses[s->place[k]].MPI_ERROR = error_of_others;
        }
    for (int i = 0; i < s->n; i++)
        if (s->entry[i])
            wrong |= deliver(s, i, requests, status_of(statuses, i), overhead) != MPI_SUCCESS;
    return wrong ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    sorted s;
    bool looking;
    ns overhead = 0;
    if (!lat_set.on || !sort(&s, n, requests))
        return PMPI_Waitall(n, requests, statuses);
    for (ns left; (left = longest(&s, &looking)) > 0;)
        lat_pass_time(looking ? 0 : left);
    lat_unlock();
    int error = PMPI_Waitall(s.others, s.rest, s.statuses);
    lat_lock();
    error = deliver_all(&s, requests, statuses, error, &overhead);
    return done_with(&s, requests, overhead, error);
}

int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    sorted s;
    bool looking;
    ns overhead = 0;
    if (!lat_set.on || !sort(&s, n, requests))
        return PMPI_Testall(n, requests, flag, statuses);
    int error = MPI_SUCCESS;
    *flag = 0;
    if (longest(&s, &looking) <= 0) {
        *flag = 1;
        if (s.others)
            error = PMPI_Testall(s.others, s.rest, flag, s.statuses);
        if (*flag)
            error = deliver_all(&s, requests, statuses, error, &overhead);
    } else if (!looking) {
        lat_progress();
    }
    return done_with(&s, requests, overhead, error);
}

/* One that may be seen, the first of those that are delayed or else one of the others.  *flag as MPI_Testany. */
static int one_of(sorted *s, MPI_Request requests[], int *index, int *flag, MPI_Status *status, ns *overhead, ns *soonest)
{
    *soonest = NOT_YET;
    for (int i = 0; i < s->n; i++)
        if (s->entry[i]) {
            ns left = lat_left(s->entry[i]);
            if (left <= 0) {
                *flag = 1;
                *index = i;
                lat_pending *e = s->entry[i];
                s->entry[i] = NULL;
                *overhead += lat_overhead_of(e);
                return lat_complete(e, &requests[i], status);
            }
            *soonest = left < *soonest ? left : *soonest;
        }
    *flag = 0;
    if (!s->others)
        return MPI_SUCCESS;
    int k, error = PMPI_Testany(s->others, s->rest, &k, flag, status);
    if (*flag && k == MPI_UNDEFINED)
        *flag = 0;      /* they are none at all */
    if (*flag)
        *index = s->place[k];
    return error;
}

int MPI_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status)
{
    sorted s;
    ns overhead = 0, soonest;
    int flag, error;
    if (!lat_set.on || !sort(&s, n, requests))
        return PMPI_Waitany(n, requests, index, status);
    while (error = one_of(&s, requests, index, &flag, status, &overhead, &soonest), !flag && !error)
        lat_pass_time(soonest == NOT_YET ? 0 : soonest);
    return done_with(&s, requests, overhead, error);
}

int MPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    sorted s;
    ns overhead = 0, soonest;
    if (!lat_set.on || !sort(&s, n, requests))
        return PMPI_Testany(n, requests, index, flag, status);
    *index = MPI_UNDEFINED;
    int error = one_of(&s, requests, index, flag, status, &overhead, &soonest);
    return done_with(&s, requests, overhead, error);
}

static int some_of(sorted *s, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[], ns *overhead,
                   ns *soonest)
{
    int error = MPI_SUCCESS, others = 0;
    *count = 0;
    *soonest = NOT_YET;
    if (s->others)
        error = PMPI_Testsome(s->others, s->rest, &others, s->index, s->statuses);
    for (int k = 0; k < others; k++) {      /* not MPI_UNDEFINED, which is negative */
        if (statuses != MPI_STATUSES_IGNORE) {
            statuses[*count] = s->statuses[k];
            if (error != MPI_ERR_IN_STATUS)
                statuses[*count].MPI_ERROR = error;
        }
        indices[(*count)++] = s->place[s->index[k]];
    }
    bool wrong = error != MPI_SUCCESS;
    for (int i = 0; i < s->n; i++)
        if (s->entry[i]) {
            ns left = lat_left(s->entry[i]);
            if (left <= 0) {
                wrong |= deliver(s, i, requests, status_of(statuses, *count), overhead) != MPI_SUCCESS;
                indices[(*count)++] = i;
            } else {
                *soonest = left < *soonest ? left : *soonest;
            }
        }
    return wrong ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int MPI_Waitsome(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[])
{
    sorted s;
    ns overhead = 0, soonest;
    int error;
    if (!lat_set.on || !sort(&s, n, requests))
        return PMPI_Waitsome(n, requests, count, indices, statuses);
    while (error = some_of(&s, requests, count, indices, statuses, &overhead, &soonest), !*count && !error)
        lat_pass_time(soonest == NOT_YET ? 0 : soonest);
    return done_with(&s, requests, overhead, error);
}

int MPI_Testsome(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[])
{
    sorted s;
    ns overhead = 0, soonest;
    if (!lat_set.on || !sort(&s, n, requests))
        return PMPI_Testsome(n, requests, count, indices, statuses);
    int error = some_of(&s, requests, count, indices, statuses, &overhead, &soonest);
    return done_with(&s, requests, overhead, error);
}

static lat_pending *delayed(MPI_Request request)
{
    lat_lock();
    lat_pending *e = lat_delayed(request);
    lat_unlock();
    return e;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    lat_pending *e = lat_set.on ? delayed(*request) : NULL;
    return e ? lat_await(e, request, status) : PMPI_Wait(request, status);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    lat_pending *e = lat_set.on ? delayed(*request) : NULL;
    if (!e)
        return PMPI_Test(request, flag, status);
    lat_lock();
    ns overhead = 0;
    int error = MPI_SUCCESS;
    *flag = lat_left(e) <= 0;
    if (*flag) {
        overhead = lat_overhead_of(e);
        error = lat_complete(e, request, status);
    } else if (e->arrived) {
        lat_progress();     /* programs call MPI_Test for that, too */
    }
    lat_unlock();
    lat_busy(overhead);
    return error;
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    lat_pending *e = lat_set.on ? delayed(request) : NULL;
    if (!e)
        return PMPI_Request_get_status(request, flag, status);
    lat_lock();
    *flag = lat_left(e) <= 0;
    bool stored = *flag && e->stored;
    if (stored && status != MPI_STATUS_IGNORE)
        *status = e->status;
    lat_unlock();
    return *flag && !stored ? PMPI_Request_get_status(request, flag, status) : MPI_SUCCESS;
}

static bool is_own(MPI_Request request) { return lat_set.on && delayed(request); }

#include "get_status.h"
