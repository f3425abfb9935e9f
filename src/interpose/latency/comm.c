/* Communicators.  Each one of the program has a shadow with the same processes, on which the stamps of its messages
 * travel; it is made where the program's own is made, because that is collective. */
#include "latency.h"

#include <stdlib.h>

enum { BUCKETS = 256 };

typedef struct known { MPI_Comm handle; lat_comm *comm; struct known *next; } known;
static known *table[BUCKETS];
static known last;              /* the one that was looked for last */

static known **bucket(MPI_Comm comm)
{
    uint64_t key = (uint64_t)(uintptr_t)comm * 0x9E3779B97F4A7C15u;
    return &table[key >> 56];
}

lat_comm *lat_comm_of(MPI_Comm handle)
{
    if (last.comm && last.handle == handle)
        return last.comm;
    for (known *k = *bucket(handle); k; k = k->next)
        if (k->handle == handle) {
            last = *k;
            return k->comm;
        }
    return NULL;
}

/* With the lock. */
static void add(MPI_Comm handle, MPI_Comm shadow)
{
    int inter;
    lat_comm *comm = lat_allocate(sizeof *comm);
    known *k = lat_allocate(sizeof *k);
    if (shadow != MPI_COMM_NULL)
        PMPI_Comm_set_errhandler(shadow, MPI_ERRORS_ARE_FATAL);
    comm->shadow = shadow;
    comm->missed.at = NEVER_SEEN;
    PMPI_Comm_test_inter(handle, &inter);
    PMPI_Comm_rank(handle, &comm->rank);
    comm->inter = inter;
    if (inter)
        PMPI_Comm_remote_size(handle, &comm->size);
    else
        PMPI_Comm_size(handle, &comm->size);
    *k = (known){handle, comm, *bucket(handle)};
    *bucket(handle) = k;
}

static void add_with_lock(MPI_Comm handle, MPI_Comm shadow)
{
    lat_lock();
    add(handle, shadow);
    lat_unlock();
}

lat_comm *lat_look_up(MPI_Comm handle)
{
    lat_lock();
    lat_comm *comm = lat_comm_of(handle);
    lat_unlock();
    return comm;
}

static void add_with_shadow(MPI_Comm new)
{
    MPI_Comm shadow = MPI_COMM_NULL;
    if (lat_set.shadowed)
        PMPI_Comm_dup(new, &shadow);
    add_with_lock(new, shadow);
}

/* A communicator that the program has just made from an old one: it has no attributes yet that a duplicate would have to
 * copy.  What is made from one with processes of another program has no shadow either: those may be without this library. */
static int made(int error, MPI_Comm old, MPI_Comm *new)
{
    if (!error && lat_set.on && *new != MPI_COMM_NULL && lat_look_up(old))
        add_with_shadow(*new);
    return error;
}

/* A duplicate has its original's attributes: it is the shadow that is duplicated once more, not it. */
static int duplicated(int error, MPI_Comm old, MPI_Comm *new)
{
    MPI_Comm shadow = MPI_COMM_NULL;
    if (error || !lat_set.on)
        return error;
    lat_comm *comm = lat_look_up(old);
    if (!comm)
        return error;
    if (lat_set.shadowed)
        PMPI_Comm_dup(comm->shadow, &shadow);
    add_with_lock(*new, shadow);
    return error;
}

/* The communicator goes; what is under way on it may go on.  Stamps that nobody will ask for any more stay unread. */
static lat_comm *forget(MPI_Comm handle)
{
    lat_comm *comm = NULL;
    last.comm = NULL;
    for (known **k = bucket(handle); *k; k = &(*k)->next)
        if ((*k)->handle == handle) {
            known *old = *k;
            comm = old->comm;
            *k = old->next;
            free(old);
            break;
        }
    return comm;
}

static void close_shadow(lat_comm *comm)
{
    lat_lock();
    lat_drop_lists(comm);
    MPI_Comm shadow = comm->shadow;
    comm->shadow = MPI_COMM_NULL;
    comm->closed = true;
    lat_let_go(comm);
    lat_unlock();
    if (shadow != MPI_COMM_NULL)
        PMPI_Comm_free(&shadow);
}

void lat_comm_start(void)
{
    add_with_shadow(MPI_COMM_WORLD);
    add_with_shadow(MPI_COMM_SELF);
}

void lat_comm_stop(void)
{
    for (int i = 0; i < BUCKETS; i++)
        while (table[i]) {
            lat_comm *comm = forget(table[i]->handle);
            lat_drop_lists(comm);
            free(comm);         /* shadows go with MPI_Finalize: freeing is collective, and orders may differ */
        }
}

/* --- the wrapped calls ---------------------------------------------------------------------------------------------- */

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *new) { return duplicated(PMPI_Comm_dup(comm, new), comm, new); }

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new)
{
    return duplicated(PMPI_Comm_dup_with_info(comm, info, new), comm, new);
}

static int duplicating(int error, MPI_Comm comm, MPI_Comm *new, MPI_Request *request)
{
    if (error || !lat_set.on)
        return error;
    lat_lock();
    lat_comm *old = lat_comm_of(comm);
    if (old) {
        lat_pending *e = lat_new(LAT_DUPLICATE, old);
        e->request = *request;
        e->made = new;
        e->made_shadow = MPI_COMM_NULL;
        e->active = e->asked = true;
        if (lat_set.shadowed)
            PMPI_Comm_idup(old->shadow, &e->made_shadow, &e->shadow);
        lat_enter(e);
    }
    lat_unlock();
    return error;
}

void lat_comm_duplicated(lat_pending *e) { add(*e->made, e->made_shadow); }

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *new, MPI_Request *request)
{
    return duplicating(PMPI_Comm_idup(comm, new, request), comm, new, request);
}

#if LAT_CALLS_OF_4
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new, MPI_Request *request)
{
    return duplicating(PMPI_Comm_idup_with_info(comm, info, new, request), comm, new, request);
}
#endif

#define MADE(NAME, OLD, PARAMETERS, ARGUMENTS)                   \
    int MPI_##NAME(BARE PARAMETERS, MPI_Comm *new)               \
    {                                                            \
        return made(PMPI_##NAME(BARE ARGUMENTS, new), OLD, new); \
    }
MADE(Comm_create, comm, (MPI_Comm comm, MPI_Group group), (comm, group))
MADE(Comm_create_group, comm, (MPI_Comm comm, MPI_Group group, int tag), (comm, group, tag))
MADE(Comm_split, comm, (MPI_Comm comm, int color, int key), (comm, color, key))
MADE(Comm_split_type, comm, (MPI_Comm comm, int type, int key, MPI_Info info), (comm, type, key, info))
MADE(Cart_create, old, (MPI_Comm old, int ndims, const int dims[], const int periods[], int reorder), (old, ndims, dims, periods, reorder))
MADE(Cart_sub, comm, (MPI_Comm comm, const int remain_dims[]), (comm, remain_dims))
MADE(Graph_create, old, (MPI_Comm old, int nnodes, const int index[], const int edges[], int reorder), (old, nnodes, index, edges, reorder))
MADE(Dist_graph_create, old,
     (MPI_Comm old, int n, const int nodes[], const int degrees[], const int targets[], const int weights[], MPI_Info info, int reorder),
     (old, n, nodes, degrees, targets, weights, info, reorder))
MADE(Dist_graph_create_adjacent, old,
     (MPI_Comm old, int indegree, const int sources[], const int sourceweights[], int outdegree, const int destinations[],
      const int destweights[], MPI_Info info, int reorder),
     (old, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder))
MADE(Intercomm_merge, comm, (MPI_Comm comm, int high), (comm, high))

int MPI_Intercomm_create(MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag, MPI_Comm *new)
{
    int rank, error = PMPI_Intercomm_create(local, local_leader, peer, remote_leader, tag, new);
    if (error || !lat_set.on || *new == MPI_COMM_NULL)
        return error;
    PMPI_Comm_rank(local, &rank);
    int ours = rank == local_leader && lat_look_up(peer);       /* only the leaders know the peer */
    PMPI_Bcast(&ours, 1, MPI_INT, local_leader, local);
    return ours ? made(error, local, new) : error;
}

static int ended(MPI_Comm *comm, int (*end)(MPI_Comm *))
{
    if (!lat_set.on)
        return end(comm);
    lat_lock();
    lat_comm *old = forget(*comm);
    lat_unlock();
    int error = end(comm);
    if (old)
        close_shadow(old);
    return error;
}

int MPI_Comm_free(MPI_Comm *comm) { return ended(comm, PMPI_Comm_free); }

int MPI_Comm_disconnect(MPI_Comm *comm) { return ended(comm, PMPI_Comm_disconnect); }
