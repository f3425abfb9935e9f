/* Messages on their way out: o, g, and the stamp that goes with each. */
#include "latency.h"

static const ns patience = 1000000000;  /* for a stamp that nobody has received, in the end */

/* Stamps on their way, the oldest first. */
typedef struct slot { lat_stamp stamp; MPI_Request request; struct slot *next; } slot;
static slot *oldest, **newest = &oldest, *free_slots;

static slot *get_slot(void)
{
    for (int done = 1; oldest && done;) {
        PMPI_Test(&oldest->request, &done, MPI_STATUS_IGNORE);
        if (!done)
            break;
        slot *s = oldest;
        if (!(oldest = s->next))
            newest = &oldest;
        s->next = free_slots;
        free_slots = s;
    }
    slot *s = free_slots;
    if (s)
        free_slots = s->next;
    else
        s = lat_allocate(sizeof *s);
    s->next = NULL;
    *newest = s;
    newest = &s->next;
    return s;
}

/* The network takes one message of this process after the other, g apart; the process does not wait for it. */
static lat_stamp inject(void)
{
    static ns free_at;
    ns now = lat_now(), at = now > free_at ? now : free_at;
    free_at = at + lat_set.gap;
    lat_count.queued += at - now;
    return (lat_stamp){now, at - now + lat_set.latency};
}

bool lat_depart(lat_outgoing *m, MPI_Comm comm, int to, int tag)
{
    lat_busy(lat_set.overhead);
    lat_lock();
    return lat_load(m, lat_comm_of(comm), to, tag);
}

bool lat_load(lat_outgoing *m, lat_comm *comm, int to, int tag)
{
    *m = (lat_outgoing){.comm = comm, .to = to, .tag = tag};
    if (!m->comm)
        lat_count.foreign++;
    m->stamped = m->comm && lat_set.stamped && !m->comm->closed;
    if (m->stamped)
        m->stamp = inject();
    return m->stamped;
}

void lat_departed(lat_outgoing *m, int error)
{
    if (!error) {
        lat_count.sent++;
        if (m->stamped) {
            slot *s = get_slot();
            s->stamp = m->stamp;
            PMPI_Isend(&s->stamp, 2, MPI_INT64_T, m->to, m->tag, m->comm->shadow, &s->request);
        }
    }
    lat_unlock();
}

void lat_outgoing_stop(void)
{
    for (slot *s = oldest; s; s = s->next) {
        int done = 0;
        for (ns end = lat_now() + patience; !done && lat_now() < end;)
            PMPI_Test(&s->request, &done, MPI_STATUS_IGNORE);
        if (!done)
            PMPI_Request_free(&s->request);    /* its message was never received */
    }
}
