/* Sends.  What is packed here travels as MPI_PACKED: the bytes are those of the plain send, and any receive of the same
 * type signature matches it (MPI 3.1, section 4.2), whether or not the receiver has this library. */
#include "pack.h"

typedef int send_now(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int send_begin(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static int now(send_now *send, const void *user, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    pack_message m;
    if (!pack_wanted(&m, PACK_SEND, user, count, type, to))
        return send(user, count, type, to, tag, comm);
    pack_gather(&m);
    const int error = send(m.buffer->at, m.bytes, MPI_PACKED, to, tag, comm);
    pack_message_done(&m);
    return error;
}

static int begin(send_begin *send, const void *user, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    pack_message m;
    if (!pack_wanted(&m, PACK_SEND, user, count, type, to))
        return send(user, count, type, to, tag, comm, request);
    pack_gather(&m);
    const int error = send(m.buffer->at, m.bytes, MPI_PACKED, to, tag, comm, request);
    pack_begun(&m, PACK_SEND, error, *request);
    return error;
}

#define NOW(name)                                                                                  \
    int MPI_##name(const void *user, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) \
    {                                                                                              \
        return now(PMPI_##name, user, count, type, to, tag, comm);                                 \
    }
NOW(Send)
NOW(Ssend)
NOW(Rsend)
NOW(Bsend)

#define BEGIN(name)                                                                                                      \
    int MPI_##name(const void *user, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) \
    {                                                                                                                    \
        return begin(PMPI_##name, user, count, type, to, tag, comm, request);                                            \
    }
BEGIN(Isend)
BEGIN(Issend)
BEGIN(Irsend)
BEGIN(Ibsend)
