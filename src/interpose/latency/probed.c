/* Messages that a probe has seen: their stamps are asked for before anybody has received them.  And the end of all lists. */
#include "message.h"

lat_pending *lat_probed(lat_comm *comm, const MPI_Status *status, ns absent)
{
    lat_pending *found = NULL;
    for (lat_pending *q = comm->first; q; q = q->next)
        if (lat_suits(q, status->MPI_SOURCE, status->MPI_TAG))
            lat_look(q);
    lat_settle(comm);
    for (lat_pending *p = comm->probed; p; p = p->next)
        if (p->source == status->MPI_SOURCE && p->tag == status->MPI_TAG)
            found = p;
    /* A receive that was posted after the probe and is not complete has got that message: this is another one. */
    for (lat_pending *q = comm->first; q && found; q = q->next)
        if (q->order > found->order && lat_suits(q, found->source, found->tag))
            found = NULL;
    if (!found) {
        found = lat_new(LAT_RECEIVE, comm);
        lat_append(NULL, found);
        lat_here(found, lat_now(), status);
        found->absent = absent;
        lat_pending **end = &comm->probed;
        while (*end) {
            found->previous = *end;
            end = &(*end)->next;
        }
        *end = found;
    }
    if (!found->asked && !lat_order_unknown(comm, found))
        lat_ask(comm, found);
    return found;
}

void lat_take_probed(lat_comm *comm, lat_pending *p)
{
    lat_unlink(p, &comm->probed, NULL);
    p->delivered = true;
    if (p->asked) {
        lat_discard(p);
    } else {
        p->linked = true;
        lat_append(comm, p);
        lat_settle(comm);
    }
}

void lat_drop_lists(lat_comm *comm)
{
    comm->users++;      /* not to go before the lists are gone */
    for (lat_pending *e = comm->first, *next; e; e = next) {
        next = e->next;
        lat_unlink(e, &comm->first, &comm->last);
        e->linked = false;
        if (e->orphan && !e->arrived)
            PMPI_Request_free(&e->request);
        if (e->delivered)
            lat_free(e);
    }
    for (lat_pending *p = comm->probed, *next; p; p = next) {
        next = p->next;
        lat_unlink(p, &comm->probed, NULL);
        lat_discard(p);
    }
    comm->users--;
}
