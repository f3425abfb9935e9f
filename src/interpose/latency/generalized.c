/* Generalized requests are the program's own: nothing is added to them.  They are known until they are freed, because a request
 * that nothing is known of is a send's, which cannot be taken back (MPI_Cancel). */
#include "latency.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct generalized {
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *release;
    MPI_Grequest_cancel_function *cancel;
    void *state;
    MPI_Request request;
    struct generalized *next;
} generalized;
static generalized *all;
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;     /* the MPI calls release() with the library's own lock, and without */

static int query(void *state, MPI_Status *status) { return ((generalized *)state)->query(((generalized *)state)->state, status); }

static int cancel(void *state, int complete) { return ((generalized *)state)->cancel(((generalized *)state)->state, complete); }

static int release(void *state)
{
    generalized *g = state;
    const int error = g->release(g->state);
    pthread_mutex_lock(&list);
    for (generalized **p = &all; *p; p = &(*p)->next)
        if (*p == g) {
            *p = g->next;
            break;
        }
    pthread_mutex_unlock(&list);
    free(g);
    return error;
}

bool lat_is_generalized(MPI_Request request)
{
    pthread_mutex_lock(&list);
    generalized *g = all;
    while (g && g->request != request)
        g = g->next;
    pthread_mutex_unlock(&list);
    return g;
}

int MPI_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                       MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request)
{
    if (!lat_set.on)
        return PMPI_Grequest_start(query_fn, free_fn, cancel_fn, extra_state, request);
    generalized *g = lat_allocate(sizeof *g);
    *g = (generalized){query_fn, free_fn, cancel_fn, extra_state, MPI_REQUEST_NULL, NULL};
    const int error = PMPI_Grequest_start(query, release, cancel, g, request);
    if (error) {
        free(g);
        return error;
    }
    pthread_mutex_lock(&list);
    g->request = *request;
    g->next = all;
    all = g;
    pthread_mutex_unlock(&list);
    return error;
}
