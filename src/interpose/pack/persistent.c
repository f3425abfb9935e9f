/* Persistent requests: they keep their buffer until they are freed.  A send is packed each time it is started. */
#include <stdlib.h>

#include "pack.h"

typedef int send_init(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void keep(const pack_message *m, pack_request *r, pack_side side, int error, MPI_Request handle)
{
    *r = (pack_request){.handle = handle, .message = *m, .side = side, .persistent = true};
    if (error == MPI_SUCCESS)
        pack_track(r);
    else {
        pack_message_done(&r->message);
        free(r);
    }
}

static int init(send_init *send, const void *user, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    pack_message m;
    if (!pack_wanted(&m, PACK_SEND, user, count, type, to))
        return send(user, count, type, to, tag, comm, request);
    pack_request *r = pack_request_new();
    const int error = send(m.buffer->at, m.bytes, MPI_PACKED, to, tag, comm, request);
    keep(&m, r, PACK_SEND, error, *request);
    return error;
}

#define INIT(name)                                                                                                       \
    int MPI_##name(const void *user, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) \
    {                                                                                                                    \
        return init(PMPI_##name, user, count, type, to, tag, comm, request);                                             \
    }
INIT(Send_init)
INIT(Ssend_init)
INIT(Rsend_init)
INIT(Bsend_init)

int MPI_Recv_init(void *user, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    pack_message m;
    if (!pack_wanted(&m, PACK_RECEIVE, user, count, type, from))
        return PMPI_Recv_init(user, count, type, from, tag, comm, request);
    pack_request *r = pack_request_new();
    const int error = PMPI_Recv_init(m.buffer->at, m.bytes, MPI_PACKED, from, tag, comm, request);
    keep(&m, r, PACK_RECEIVE, error, *request);
    return error;
}

static void prepare(pack_request *r)
{
    if (!r)
        return;
    if (r->side == PACK_SEND)
        pack_gather(&r->message);
    r->scattered = false;
    r->active = true;
}

int MPI_Start(MPI_Request *request)
{
    prepare(pack_find(*request));
    return PMPI_Start(request);
}

int MPI_Startall(int n, MPI_Request requests[])
{
    for (int i = 0; i < n; i++)
        prepare(pack_find(requests[i]));
    return PMPI_Startall(n, requests);
}
