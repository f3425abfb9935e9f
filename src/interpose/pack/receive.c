/* Receives: into a buffer of the same length as the message may have, and from there to where the datatype says.  The
 * status is MPI's own: its count is one of bytes, whatever the datatype. */
#include "pack.h"

/* What blocking calls do with the message that came. */
static void take(const pack_message *m, const MPI_Status *status, int error)
{
    int bytes;
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    if (error == MPI_SUCCESS && bytes > 0)
        pack_scatter(m, (size_t)bytes);
}

int MPI_Recv(void *user, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    pack_message m;
    MPI_Status own;
    if (!pack_wanted(&m, PACK_RECEIVE, user, count, type, from))
        return PMPI_Recv(user, count, type, from, tag, comm, status);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    const int error = PMPI_Recv(m.buffer->at, m.bytes, MPI_PACKED, from, tag, comm, status);
    take(&m, status, error);
    pack_message_done(&m);
    return error;
}

int MPI_Mrecv(void *user, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    pack_message m;
    MPI_Status own;
    if (!pack_wanted(&m, PACK_RECEIVE, user, count, type, *message == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : 0))
        return PMPI_Mrecv(user, count, type, message, status);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    const int error = PMPI_Mrecv(m.buffer->at, m.bytes, MPI_PACKED, message, status);
    take(&m, status, error);
    pack_message_done(&m);
    return error;
}

int MPI_Irecv(void *user, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    pack_message m;
    if (!pack_wanted(&m, PACK_RECEIVE, user, count, type, from))
        return PMPI_Irecv(user, count, type, from, tag, comm, request);
    const int error = PMPI_Irecv(m.buffer->at, m.bytes, MPI_PACKED, from, tag, comm, request);
    pack_begun(&m, PACK_RECEIVE, error, *request);
    return error;
}

int MPI_Imrecv(void *user, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    pack_message m;
    if (!pack_wanted(&m, PACK_RECEIVE, user, count, type, *message == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : 0))
        return PMPI_Imrecv(user, count, type, message, request);
    const int error = PMPI_Imrecv(m.buffer->at, m.bytes, MPI_PACKED, message, request);
    pack_begun(&m, PACK_RECEIVE, error, *request);
    return error;
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    pack_message sent, received;
    MPI_Status own;
    const bool send = pack_wanted(&sent, PACK_SEND, out, out_count, out_type, to);
    const bool receive = pack_wanted(&received, PACK_RECEIVE, in, in_count, in_type, from);
    if (send) {
        pack_gather(&sent);
        out = sent.buffer->at;
        out_count = sent.bytes;
        out_type = MPI_PACKED;
    }
    if (receive) {
        in = received.buffer->at;
        in_count = received.bytes;
        in_type = MPI_PACKED;
        status = status == MPI_STATUS_IGNORE ? &own : status;
    }
    const int error = PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
    if (receive) {
        take(&received, status, error);
        pack_message_done(&received);
    }
    if (send)
        pack_message_done(&sent);
    return error;
}

/* One buffer for what goes and what comes, which need not be as long: where the source is MPI_PROC_NULL nothing comes. */
int MPI_Sendrecv_replace(void *user, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag, MPI_Comm comm,
                         MPI_Status *status)
{
    pack_message m;
    MPI_Status own;
    if (!pack_wanted(&m, PACK_SEND, user, count, type, to == MPI_PROC_NULL ? from : to))
        return PMPI_Sendrecv_replace(user, count, type, to, out_tag, from, in_tag, comm, status);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    pack_gather(&m);
    const int error = PMPI_Sendrecv_replace(m.buffer->at, m.bytes, MPI_PACKED, to, out_tag, from, in_tag, comm, status);
    take(&m, status, error);
    pack_message_done(&m);
    return error;
}
