/* Collectives.  A rank's result is seen no earlier than its steps (steps.c) after the last of those entered that it depends
 * on.  The MPI's own collective runs at its own speed; what it cannot tell, when those others entered, is exchanged on the
 * shadow communicator where it matters:
 *
 *     depends on      who                                     because
 *     all             nothing, where the call is blocking     it ends after the last has entered
 *     the root        MPI_Bcast of its entry, or Iscatterv    who comes late finds the message there
 *     all others      MPI_Reduce of the maximum, or Igatherv  the same, at the root
 *     lower ranks     MPI_Exscan of the maximum
 *     neighbours      MPI_Neighbor_allgather
 *
 * Entries go the ways of the call's own messages: those of a tree's inner ranks wait for children or parent anyway, in MPI_Gatherv and
 * MPI_Scatterv each rank has to do with the root alone.
 */
#include "collective.h"

#include <stdlib.h>

static int64_t size_of(MPI_Comm handle)
{
    lat_comm *comm = lat_look_up(handle);
    return comm ? comm->size : 0;
}

/* Numbers of neighbours; false: no topology, which the MPI will say itself. */
static bool neighbors(MPI_Comm comm, int *in, int *out)
{
    int kind, weighted, rank;
    PMPI_Topo_test(comm, &kind);
    switch (kind) {
    case MPI_CART:
        PMPI_Cartdim_get(comm, in);
        *in *= 2;
        *out = *in;
        return true;
    case MPI_GRAPH:
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, in);
        *out = *in;
        return true;
    case MPI_DIST_GRAPH:
        PMPI_Dist_graph_neighbors_count(comm, in, out, &weighted);
        return true;
    default:
        return false;
    }
}

static lat_call shaped(lat_shape shape, MPI_Comm handle, int root, int64_t bytes)
{
    lat_call c = {.shape = shape, .root = root, .bytes = bytes, .comm = lat_look_up(handle)};
    int out;
    lat_lock();
    if (c.comm && !c.comm->inter && !c.comm->closed && root < c.comm->size) {
        lat_count.collectives++;
    } else {
        c.comm = NULL;
        lat_count.foreign_collectives++;
    }
    lat_unlock();
    if (!c.comm)
        return c;
    if ((shape == LAT_GATHERV || shape == LAT_SCATTERV) && c.comm->rank == root)
        c.entries = c.comm->size;
    if (shape != LAT_NEIGHBORS)
        c.plan = lat_steps(shape, c.comm->size, root < 0 ? 0 : (c.comm->rank - root + c.comm->size) % c.comm->size, bytes);
    else if (neighbors(handle, &c.entries, &out))
        c.plan = (lat_plan){c.entries > 0, 0, out, c.entries, c.entries ? LAT_AROUND : LAT_NOBODY};
    else
        c.comm = NULL;
    if (c.plan.depends == LAT_LOWER && c.comm->rank == 0)
        c.plan = (lat_plan){0, 0, c.plan.sends, 0, LAT_NOBODY};     /* it is the lowest */
    lat_lock();
    lat_count.steps += c.plan.steps;
    lat_unlock();
    return c;
}

/* Room for entries one by one; counts and displacements, which MPI wants of each, are behind them. */
static size_t bytes_of_each(const lat_call *c) { return (size_t)c->entries * (sizeof(ns) + 2 * sizeof(int)); }

/* Between the root and each.  Not by MPI_Gatherv: Intel MPI's second one in a row waits for the root. */
static void ask_each(struct lat_collective *x, ns *each, MPI_Request *request)
{
    const lat_call *c = &x->c;
    MPI_Comm shadow = c->comm->shadow;
    int *counts = (int *)(each + c->entries), *places = counts + c->entries;
    for (int i = 0; i < c->entries; i++) {
        each[i] = x->own;
        counts[i] = 1;
        places[i] = i;
    }
    if (c->shape == LAT_SCATTERV)
        PMPI_Iscatterv(each, counts, places, MPI_INT64_T, &x->latest, 1, MPI_INT64_T, c->root, shadow, request);
    else
        PMPI_Igatherv(&x->own, 1, MPI_INT64_T, each, counts, places, MPI_INT64_T, c->root, shadow, request);
}

/* --- blocking ------------------------------------------------------------------------------------------------------- */

static ns enter(const lat_call *c)
{
    lat_busy(c->plan.sends * lat_set.overhead);
    return lat_now();
}

static void get_entries(struct lat_collective *x)
{
    const lat_call *c = &x->c;
    if (c->comm->rank == c->root && c->plan.depends == LAT_OTHERS)
        x->own = INT64_MIN;     /* a root waits for the others only */
    switch (c->shape) {
    case LAT_BCAST: case LAT_SCATTER:
        x->latest = x->own;
        PMPI_Bcast(&x->latest, 1, MPI_INT64_T, c->root, c->comm->shadow);
        break;
    case LAT_REDUCE: case LAT_GATHER:
        PMPI_Reduce(&x->own, &x->latest, 1, MPI_INT64_T, MPI_MAX, c->root, c->comm->shadow);
        break;
    case LAT_GATHERV: case LAT_SCATTERV: {
        MPI_Request request;
        ns *each = lat_allocate(bytes_of_each(c));
        ask_each(x, each, &request);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
        if (c->shape == LAT_GATHERV)
            x->latest = lat_latest(each, c->entries);
        free(each);
        break;
    }
    case LAT_SCAN:
        PMPI_Exscan(&x->own, &x->latest, 1, MPI_INT64_T, MPI_MAX, c->comm->shadow);
        break;
    case LAT_NEIGHBORS: {
        ns around[c->entries + 1];
        for (int i = 0; i < c->entries; i++)
            around[i] = INT64_MIN;      /* beyond an open border there is none */
        PMPI_Neighbor_allgather(&x->own, 1, MPI_INT64_T, around, 1, MPI_INT64_T, c->comm->shadow);
        x->latest = lat_latest(around, c->entries);
        break;
    }
    default:
        break;
    }
}

static int leave(const lat_call *c, ns own, int error)
{
    ns arrival = lat_now();
    struct lat_collective x = {.c = *c, .own = own, .latest = own};
    if (error)
        return error;
    if (c->comm->size > 1 && lat_set.stamped)
        get_entries(&x);
    if (c->plan.depends == LAT_NOBODY) {
        lat_busy(c->plan.receives * lat_set.overhead);
        return error;
    }
    ns from = arrival;
    if (c->plan.depends != LAT_ALL && lat_set.stamped) {
        if (own <= x.latest)
            lat_learn_time(LAT_TIME_COLLECTIVE + (int)c->shape, c->bytes, arrival - x.latest);
        else
            from = lat_was_here(&x, NEVER_SEEN, arrival);
    }
    ns until = from + lat_delay_of(&c->plan);
    if (until > arrival) {
        lat_lock();
        lat_count.waited += until - arrival;
        lat_unlock();
        lat_wait_until(until);
    }
    lat_busy(c->plan.receives * lat_set.overhead);
    return error;
}

/* --- non-blocking --------------------------------------------------------------------------------------------------- */

static void ask_for_entries(lat_pending *e, struct lat_collective *x)
{
    const lat_call *c = &x->c;
    MPI_Comm shadow = c->comm->shadow;
    if (c->comm->rank == c->root && c->plan.depends == LAT_OTHERS)
        x->own = INT64_MIN;
    x->latest = x->own;
    switch (c->shape) {
    case LAT_BCAST: case LAT_SCATTER:
        PMPI_Ibcast(&x->latest, 1, MPI_INT64_T, c->root, shadow, &e->shadow);
        break;
    case LAT_REDUCE: case LAT_GATHER:
        PMPI_Ireduce(&x->own, &x->latest, 1, MPI_INT64_T, MPI_MAX, c->root, shadow, &e->shadow);
        break;
    case LAT_GATHERV: case LAT_SCATTERV:
        ask_each(x, x->each, &e->shadow);
        break;
    case LAT_SCAN:
        PMPI_Iexscan(&x->own, &x->latest, 1, MPI_INT64_T, MPI_MAX, shadow, &e->shadow);
        break;
    case LAT_NEIGHBORS:
        for (int i = 0; i < c->entries; i++)
            x->each[i] = INT64_MIN;
        PMPI_Ineighbor_allgather(&x->own, 1, MPI_INT64_T, x->each, 1, MPI_INT64_T, shadow, &e->shadow);
        break;
    default:
        PMPI_Iallreduce(&x->own, &x->latest, 1, MPI_INT64_T, MPI_MAX, shadow, &e->shadow);
        break;
    }
    e->asked = true;
}

static int start(const lat_call *c, ns own, int error, MPI_Request *request)
{
    if (error || c->comm->size == 1)
        return error;
    lat_lock();
    lat_pending *e = lat_new(LAT_COLLECTIVE, c->comm);
    struct lat_collective *x = lat_allocate(sizeof *x + bytes_of_each(c));
    *x = (struct lat_collective){.c = *c, .own = own, .latest = own};
    e->collective = x;
    e->request = *request;
    e->active = true;
    if (lat_set.stamped)
        ask_for_entries(e, x);
    else
        e->known = true;
    lat_enter(e);
    lat_reap(false);        /* stamps of earlier ones: a program need not receive anything else */
    lat_unlock();
    return error;
}

/* --- the wrapped calls ---------------------------------------------------------------------------------------------- */

static int64_t total_int(const int counts[], int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

#define BLOCKING(NAME, PARAMETERS, ARGUMENTS, SHAPED) \
    int MPI_##NAME PARAMETERS                         \
    {                                                 \
        lat_call c;                                   \
        if (!lat_set.on || !(c = SHAPED).comm)        \
            return PMPI_##NAME ARGUMENTS;             \
        ns own = enter(&c);                           \
        return leave(&c, own, PMPI_##NAME ARGUMENTS); \
    }
#define NON_BLOCKING(NAME, PARAMETERS, ARGUMENTS, SHAPED)                     \
    int MPI_##NAME(BARE PARAMETERS, MPI_Request *request)                     \
    {                                                                         \
        lat_call c;                                                           \
        if (!lat_set.on || !(c = SHAPED).comm)                                \
            return PMPI_##NAME(BARE ARGUMENTS, request);                      \
        ns own = enter(&c);                                                   \
        return start(&c, own, PMPI_##NAME(BARE ARGUMENTS, request), request); \
    }

BLOCKING(Barrier, (MPI_Comm comm), (comm), shaped(LAT_BARRIER, comm, -1, 0))
NON_BLOCKING(Ibarrier, (MPI_Comm comm), (comm), shaped(LAT_BARRIER, comm, -1, 0))

#define COUNT int
#define DISPLACEMENT int
#define TOTAL total_int
#define COLLECTIVE(NAME, INAME, PARAMETERS, ARGUMENTS, SHAPED) \
    BLOCKING(NAME, PARAMETERS, ARGUMENTS, SHAPED)              \
    NON_BLOCKING(INAME, PARAMETERS, ARGUMENTS, SHAPED)
#include "collectives.h"

#if MPI_VERSION >= 4
static int64_t total_count(const MPI_Count counts[], int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

#undef COUNT
#undef DISPLACEMENT
#undef TOTAL
#undef COLLECTIVE
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define TOTAL total_count
#define COLLECTIVE(NAME, INAME, PARAMETERS, ARGUMENTS, SHAPED) \
    BLOCKING(NAME##_c, PARAMETERS, ARGUMENTS, SHAPED)          \
    NON_BLOCKING(INAME##_c, PARAMETERS, ARGUMENTS, SHAPED)
#include "collectives.h"
#endif
