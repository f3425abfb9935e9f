/* A message's stamp: when it was sent, and how long the network is to keep it.
 *
 * It travels on the shadow of the message's communicator, to the same process with the same tag, right after the message
 * was started.  Of the messages of one sender with one tag, the n-th goes to the receive that was posted n-th among those
 * that get such a message: wildcards or not, MPI's matching has that order.  So the stamps, asked for in that order, are
 * each its own message's.  Where an earlier receive is not complete yet that may have got one of them, the order is not
 * known: the message is then seen L after it was seen to be here, which is no earlier than right.
 *
 * A message may be seen `delay` after it was here.  When was it here?  Where the receiver was looking when it came, then:
 * half way between the look that did not find it and the one that did, or, where the MPI was long at work in the second one,
 * after that.  Otherwise at the time of sending plus the least time
 * that a message of its size has taken so far, but between those two looks where there were two. */
#include "message.h"

enum {
    FRESH = 2000,       /* ns between two looks: what happened in between has happened now */
    PAUSE = 5000,       /* ns without a look: the MPI may have messages that it has not looked at itself */
    QUIET = 32,         /* looks in succession that find nothing: the MPI has looked at all that is here */
};
static const ns patience = 1000000000;  /* for a stamp that alone says how long g keeps the message */

/* --- in ------------------------------------------------------------------------------------------------------------- */

static struct { ns last; int quiet; bool searched; } looks = {.last = NEVER_SEEN};

/* A look from `begin` to `now`; since when a message that was not found was not there, or NEVER_SEEN. */
static ns looked(ns begin, ns now, bool found)
{
    if (begin - looks.last > PAUSE) {
        looks.searched = false;
        looks.quiet = 0;
    } else if (found && !looks.searched) {
        looks.quiet = 0;
    } else if (++looks.quiet >= QUIET) {
        looks.searched = true;
    }
    ns before = looks.searched ? looks.last : NEVER_SEEN;
    looks.last = now;
    return before;
}

static lat_pending *ghosts;     /* the program has the message; its stamp is still to come */
static int ghost_count;

void lat_unlink(lat_pending *e, lat_pending **first, lat_pending **last)
{
    *(e->previous ? &e->previous->next : first) = e->next;
    if (e->next)
        e->next->previous = e->previous;
    else if (last)
        *last = e->previous;
    e->next = e->previous = NULL;
}

static void haunt(lat_pending *e)
{
    e->next = ghosts;
    e->previous = NULL;
    if (ghosts)
        ghosts->previous = e;
    ghosts = e;
    ghost_count++;
}

void lat_reap(bool all)
{
    if (!all && ghost_count < 16)
        return;
    for (lat_pending *e = ghosts, *next; e; e = next) {
        int done;
        next = e->next;
        PMPI_Test(&e->shadow, &done, MPI_STATUS_IGNORE);
        if (!done && all && e->kind != LAT_COLLECTIVE) {
            PMPI_Cancel(&e->shadow);
            PMPI_Wait(&e->shadow, MPI_STATUS_IGNORE);
            done = true;
        }
        if (done) {
            lat_unlink(e, &ghosts, NULL);
            ghost_count--;
            lat_free(e);
        }
    }
}

void lat_append(lat_comm *comm, lat_pending *e)
{
    static uint64_t order;
    e->order = ++order;
    if (!comm)
        return;
    e->previous = comm->last;
    e->next = NULL;
    *(comm->last ? &comm->last->next : &comm->first) = e;
    comm->last = e;
}

void lat_link(lat_pending *e)
{
    if (lat_set.stamped && e->comm && !e->comm->closed) {
        e->linked = true;
        lat_append(e->comm, e);
    }
}

/* Whether a receive that is not complete may get, or have got, a message of this source and tag. */
bool lat_suits(const lat_pending *e, int source, int tag)
{
    return !e->arrived && (e->source == MPI_ANY_SOURCE || e->source == source) && (e->tag == MPI_ANY_TAG || e->tag == tag);
}

void lat_here(lat_pending *e, ns now, const MPI_Status *status)
{
    int cancelled = 0, count;
    e->arrived = true;
    e->arrival = now;
    if (e->orphan)
        PMPI_Request_free(&e->request);
    if (e->kind == LAT_SYNCHRONOUS)
        lat_learn_time(LAT_TIME_ACKNOWLEDGED, e->bytes, now - e->stamp.sent);
    if (e->kind != LAT_RECEIVE)
        return;
    if (e->stored)      /* the status of a probe does not tell */
        PMPI_Test_cancelled(status, &cancelled);
    if (cancelled || !lat_set.stamped) {
        e->cancelled = cancelled;
        e->known = true;
        e->stamp = (lat_stamp){now, 0};
        return;
    }
    e->source = status->MPI_SOURCE;
    e->tag = status->MPI_TAG;
    PMPI_Get_count(status, MPI_BYTE, &count);
    e->bytes = count == MPI_UNDEFINED ? INT64_MAX : count;
}

/* Asks the MPI.  Where the status matters before the program has the message, the request is completed here and the status
 * stored: MPI_Request_get_status has its faults (Intel MPI 2021 loses the status of a persistent request by it). */
static int is_complete(lat_pending *e)
{
    int done;
    if (!e->stored) {
        PMPI_Request_get_status(e->request, &done, MPI_STATUS_IGNORE);
        return done;
    }
    if (!e->completed) {
        e->error = PMPI_Test(&e->request, &done, &e->status);
        e->completed = done || e->error;
    }
    if (e->completed && e->out != MPI_REQUEST_NULL) {
        int error = PMPI_Test(&e->out, &done, MPI_STATUS_IGNORE);
        e->error = e->error ? e->error : error;
        return done || error;
    }
    return e->completed;
}

void lat_look(lat_pending *e)
{
    if (is_complete(e))
        lat_here(e, lat_now(), &e->status);
}

bool lat_order_unknown(lat_comm *comm, const lat_pending *e)
{
    for (lat_pending *q = comm->first; q && q->order < e->order; q = q->next)
        if (lat_suits(q, e->source, e->tag))
            return true;
    return false;
}

void lat_ask(lat_comm *comm, lat_pending *e)
{
    PMPI_Irecv(&e->stamp, 2, MPI_INT64_T, e->source, e->tag, comm->shadow, &e->shadow);
    e->asked = true;
}

/* The probe that has seen this message before has asked for its stamp already. */
static void take_over(lat_comm *comm, lat_pending *e)
{
    for (lat_pending *p = comm->probed; p; p = p->next)
        if (p->source == e->source && p->tag == e->tag && p->order < e->order) {
            lat_unlink(p, &comm->probed, NULL);
            if (p->arrival < e->arrival)
                e->arrival = p->arrival;
            if (p->absent > e->absent)
                e->absent = p->absent;
            if (p->asked) {
                e->carrier = p;
                e->asked = true;
            } else {
                lat_free(p);
            }
            return;
        }
}

void lat_discard(lat_pending *e)
{
    lat_pending *carrier = e->carrier;
    if (carrier) {
        e->carrier = NULL;
        if (carrier->known)
            lat_free(carrier);
        else
            haunt(carrier);
    } else if (e->asked && !e->known) {
        haunt(e);
        return;
    }
    lat_free(e);
}

static bool stamp_here(lat_pending *e)
{
    lat_pending *bearer = e->carrier ? e->carrier : e;
    int done;
    if (e->known || !e->asked)
        return e->known;
    if (!bearer->known) {
        PMPI_Test(&bearer->shadow, &done, MPI_STATUS_IGNORE);
        bearer->known = done;
    }
    if (bearer->known) {
        e->known = true;
        e->stamp = bearer->stamp;
        if (e->absent >= 0)
            lat_learn_time(LAT_TIME_MESSAGE, e->bytes, e->arrival - e->stamp.sent);
    }
    return e->known;
}

void lat_settle(lat_comm *comm)
{
    for (lat_pending *e = comm->first, *next; e; e = next) {
        next = e->next;
        if (!e->arrived)
            continue;
        if (!e->cancelled) {
            if (lat_order_unknown(comm, e))
                continue;
            take_over(comm, e);
            if (!e->asked)
                lat_ask(comm, e);
        }
        lat_unlink(e, &comm->first, &comm->last);
        e->linked = false;
        if (e->delivered)
            lat_discard(e);
    }
    lat_reap(false);
}

void lat_poll(lat_pending *e)
{
    int done;
    if (e->kind == LAT_DUPLICATE && !e->known) {
        PMPI_Test(&e->shadow, &done, MPI_STATUS_IGNORE);
        e->known = done;
    }
    ns begin = lat_now();
    done = is_complete(e);
    ns now = lat_now(), absent = looked(begin, now, done);
    if (!done) {
        if (absent >= 0)
            e->absent = absent;
        return;
    }
    e->watched = e->absent >= 0 && begin - e->absent < FRESH;
    lat_here(e, now, &e->status);
    if (!e->linked)
        return;
    for (lat_pending *q = e->comm->first; q && q->order < e->order; q = q->next)
        if (lat_suits(q, e->source, e->tag))
            lat_look(q);
    lat_settle(e->comm);
}

static ns was_here(const lat_pending *e)
{
    ns earliest = e->stamp.sent > e->absent ? e->stamp.sent : e->absent;
    ns least_taken = lat_least_time(LAT_TIME_MESSAGE, e->bytes), expected = e->stamp.sent + least_taken;
    if (e->watched && e->arrival - e->absent < FRESH)
        return earliest < e->arrival ? earliest + (e->arrival - earliest) / 2 : e->arrival;
    if (e->watched || (e->absent >= 0 && !least_taken))
        return e->arrival;      /* the MPI has worked on it all the time between the two looks */
    if (expected < earliest)
        expected = earliest;
    return expected < e->arrival ? expected : e->arrival;
}

ns lat_visible(lat_pending *e)
{
    if (!e->arrived)
        return NOT_YET;
    switch (e->kind) {
    case LAT_RECEIVE:
        if (stamp_here(e))
            return was_here(e) + e->stamp.delay;
        return e->arrival + lat_set.latency + (e->asked && lat_set.gap ? patience : 0);
    case LAT_SYNCHRONOUS: {
        /* It was matched no earlier than it could be seen, and that has to be known here. */
        ns matched = e->stamp.sent + e->stamp.delay + lat_least_time(LAT_TIME_ACKNOWLEDGED, e->bytes);
        return (matched > e->arrival ? matched : e->arrival) + lat_set.latency;
    }
    case LAT_COLLECTIVE:
        return lat_collective_visible(e);
    case LAT_DUPLICATE:
        return e->known ? e->arrival : NOT_YET;
    default:
        return e->arrival;
    }
}

ns lat_left(lat_pending *e)
{
    if (!e->arrived || e->kind == LAT_DUPLICATE)
        lat_poll(e);
    ns at = lat_visible(e);
    return at == NOT_YET ? NOT_YET : at - lat_now();
}

void lat_release(lat_pending *e)
{
    if (e->persistent) {
        /* The request lives on; what is still under way of this use of it goes its own way. */
        lat_pending *again = lat_new(e->kind, e->comm);
        again->persistent = again->stored = true;
        again->request = e->request;
        again->posted = e->posted;
        lat_remove(e);
        lat_enter(again);
    }
    e->delivered = true;
    if (e->kind == LAT_RECEIVE && !e->cancelled && !e->known)
        lat_count.unstamped++;
    if (e->linked && (e->cancelled || e->comm->closed)) {
        lat_unlink(e, &e->comm->first, &e->comm->last);
        e->linked = false;
    }
    if (!e->linked)
        lat_discard(e);
}

ns lat_probe_missed(ns begin) { return looked(begin, lat_now(), false); }
