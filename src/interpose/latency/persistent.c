/* Persistent requests; cancelling and giving back requests. */
#include "latency.h"

/* Into the table, not active yet.  Without a communicator of ours, or with no peer, it stays the MPI's own affair. */
static int initialised(int error, lat_kind kind, MPI_Comm comm, int peer, int tag, bool synchronous, int64_t bytes,
                       MPI_Request *request)
{
    if (error || !lat_set.on || peer == MPI_PROC_NULL)
        return error;
    lat_lock();
    lat_comm *c = lat_comm_of(comm);
    if (c) {
        lat_pending *e = lat_new(kind, c);
        e->persistent = e->stored = true;
        e->request = *request;
        e->posted.source = peer;
        e->posted.tag = tag;
        e->posted.synchronous = synchronous;
        e->posted.bytes = bytes;
        lat_enter(e);
    }
    lat_unlock();
    return error;
}

#define SEND_INIT(SUFFIX, COUNT, NAME, SYNCHRONOUS)                                                           \
    int MPI_##NAME##SUFFIX(const void *buf, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
                           MPI_Request *request)                                                              \
    {                                                                                                         \
        int error = PMPI_##NAME##SUFFIX(buf, count, type, dest, tag, comm, request);                          \
        return initialised(error, SYNCHRONOUS ? LAT_SYNCHRONOUS : LAT_SEND, comm, dest, tag, SYNCHRONOUS,     \
                           error ? 0 : lat_bytes(count, type), request);                                      \
    }

#define ALL_OF(SUFFIX, COUNT)                                                                                       \
    SEND_INIT(SUFFIX, COUNT, Send_init, false)                                                                      \
    SEND_INIT(SUFFIX, COUNT, Bsend_init, false)                                                                     \
    SEND_INIT(SUFFIX, COUNT, Rsend_init, false)                                                                     \
    SEND_INIT(SUFFIX, COUNT, Ssend_init, true)                                                                      \
    int MPI_Recv_init##SUFFIX(void *buf, COUNT count, MPI_Datatype type, int source, int tag, MPI_Comm comm,        \
                              MPI_Request *request)                                                                 \
    {                                                                                                               \
        return initialised(PMPI_Recv_init##SUFFIX(buf, count, type, source, tag, comm, request), LAT_RECEIVE, comm, \
                           source, tag, false, 0, request);                                                         \
    }

ALL_OF(, int)
#if MPI_VERSION >= 4
ALL_OF(_c, MPI_Count)
#endif

static int start_receive(lat_pending *e, MPI_Request *request)
{
    lat_lock();
    int error = PMPI_Start(request);
    if (!error) {
        e->source = e->posted.source;
        e->tag = e->posted.tag;
        e->active = true;
        lat_link(e);
    }
    lat_unlock();
    return error;
}

static int start_send(lat_pending *e, MPI_Request *request)
{
    lat_outgoing m;
    lat_busy(lat_set.overhead);
    lat_lock();
    lat_load(&m, e->comm, e->posted.source, e->posted.tag);
    int error = PMPI_Start(request);
    if (!error && m.stamped && e->kind == LAT_SYNCHRONOUS) {
        e->stamp = m.stamp;
        e->bytes = e->posted.bytes;
        e->active = e->known = true;
        lat_count.synchronous++;
    }
    lat_departed(&m, error);
    return error;
}

int MPI_Start(MPI_Request *request)
{
    if (!lat_set.on)
        return PMPI_Start(request);
    lat_lock();
    lat_pending *e = lat_find(*request);
    lat_unlock();
    if (!e)
        return PMPI_Start(request);
    return e->kind == LAT_RECEIVE ? start_receive(e, request) : start_send(e, request);
}

int MPI_Startall(int n, MPI_Request requests[])
{
    if (!lat_set.on)
        return PMPI_Startall(n, requests);
    for (int i = 0; i < n; i++) {
        int error = MPI_Start(&requests[i]);
        if (error)
            return error;
    }
    return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request *request)
{
    if (!lat_set.on || *request == MPI_REQUEST_NULL)
        return PMPI_Request_free(request);
    lat_lock();
    int error = MPI_SUCCESS;
    lat_pending *e = lat_find(*request);
    if (e)
        lat_remove(e);
    if (e && e->linked) {
        /* Its message is still to be matched with its stamp: the MPI may not forget it before. */
        e->orphan = e->delivered = true;
        if (e->arrived)
            PMPI_Request_free(&e->request);
        *request = MPI_REQUEST_NULL;
    } else {
        error = PMPI_Request_free(request);
        if (e && !e->arrived && e->out != MPI_REQUEST_NULL) {
            /* The other half of an exchange still sends the copy: that is freed once it is done, and is not taken back. */
            e->kind = LAT_COLLECTIVE;
            e->shadow = e->out;
            e->asked = true;
        }
        if (e)
            lat_discard(e);
    }
    lat_unlock();
    return error;
}

/* What a receive has taken back has no stamp.  A send that was taken back would leave its stamp to the next message. */
int MPI_Cancel(MPI_Request *request)
{
    if (!lat_set.stamped || !lat_set.on)
        return PMPI_Cancel(request);
    lat_lock();
    lat_pending *e = lat_find(*request);
    bool receives = e && e->kind == LAT_RECEIVE, late = receives && e->completed, allowed = receives || lat_is_generalized(*request);
    lat_unlock();
    if (late)
        return MPI_SUCCESS;     /* the message is here, although it may not be seen yet */
    if (!allowed)
        lat_fail("libplumbline_latency cannot cancel a send, or a receive from nobody (MPI_Cancel): run this program without latency and gap");
    return PMPI_Cancel(request);
}
