/* Messages: blocking and non-blocking, with a count of int and, from MPI 4 on, of MPI_Count. */
#include "latency.h"

#include <stdlib.h>

int64_t lat_bytes(int64_t count, MPI_Datatype type)
{
    MPI_Count size;
    PMPI_Type_size_x(type, &size);
    return count * (int64_t)size;
}

/* A synchronous send that was started: complete once it is known here that it was matched. */
static lat_pending *synchronous(const lat_outgoing *m, int64_t bytes, MPI_Request request)
{
    lat_pending *e = lat_new(LAT_SYNCHRONOUS, m->comm);
    e->request = request;
    e->stamp = m->stamp;
    e->bytes = bytes;
    e->active = e->known = true;
    lat_count.synchronous++;
    return e;
}

/* A receive that was posted, with the lock held.  From nobody, or of another program, nothing is added to it. */
static lat_pending *receive(MPI_Comm comm, int source, int tag, MPI_Request request)
{
    lat_comm *ours = source == MPI_PROC_NULL ? NULL : lat_comm_of(comm);
    lat_pending *e = lat_new(ours ? LAT_RECEIVE : LAT_PLAIN, ours);
    lat_count.foreign += !ours && source != MPI_PROC_NULL;
    e->request = request;
    e->source = source;
    e->tag = tag;
    e->active = e->stored = true;
    if (source == MPI_PROC_NULL) {      /* of its other calls MPICH 4.0 gives a status of somebody, or of no receive */
        PMPI_Recv(NULL, 0, MPI_BYTE, source, tag, comm, &e->status);
        e->completed = true;
    }
    lat_link(e);
    return e;
}

static bool receives_here(MPI_Comm comm)
{
    lat_lock();
    bool ours = lat_comm_of(comm);
    lat_count.foreign += !ours;
    lat_unlock();
    return ours;
}

static lat_pending *start_receive(MPI_Comm comm, int source, int tag, MPI_Request *request)
{
    lat_lock();
    int error = PMPI_Start(request);
    lat_pending *e = error ? NULL : receive(comm, source, tag, *request);
    if (e)
        lat_enter(e);
    lat_unlock();
    return e;
}

static int counted(int error)
{
    lat_lock();
    lat_count.sent += error == MPI_SUCCESS;
    lat_unlock();
    return error;
}

/* The payload is started, not sent: its stamp must not wait until the receiver has come. */
#define SEND(SUFFIX, COUNT, NAME, START)                                                                      \
    int MPI_##NAME##SUFFIX(const void *buf, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) \
    {                                                                                                         \
        lat_outgoing m;                                                                                       \
        MPI_Request request;                                                                                  \
        if (!lat_set.on || dest == MPI_PROC_NULL)                                                             \
            return PMPI_##NAME##SUFFIX(buf, count, type, dest, tag, comm);                                    \
        if (!lat_depart(&m, comm, dest, tag)) {                                                               \
            lat_unlock();                                                                                     \
            return counted(PMPI_##NAME##SUFFIX(buf, count, type, dest, tag, comm));                           \
        }                                                                                                     \
        int error = PMPI_##START##SUFFIX(buf, count, type, dest, tag, comm, &request);                        \
        lat_departed(&m, error);                                                                              \
        return error ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);                                        \
    }

#define START_SEND(SUFFIX, COUNT, START)                                                                       \
    int MPI_##START##SUFFIX(const void *buf, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
                            MPI_Request *request)                                                              \
    {                                                                                                          \
        lat_outgoing m;                                                                                        \
        if (!lat_set.on || dest == MPI_PROC_NULL)                                                              \
            return PMPI_##START##SUFFIX(buf, count, type, dest, tag, comm, request);                           \
        lat_depart(&m, comm, dest, tag);                                                                       \
        int error = PMPI_##START##SUFFIX(buf, count, type, dest, tag, comm, request);                          \
        lat_departed(&m, error);                                                                               \
        return error;                                                                                          \
    }

#define SYNCHRONOUS(SUFFIX, COUNT)                                                                            \
    int MPI_Issend##SUFFIX(const void *buf, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
                           MPI_Request *request)                                                              \
    {                                                                                                         \
        lat_outgoing m;                                                                                       \
        if (!lat_set.on || dest == MPI_PROC_NULL)                                                             \
            return PMPI_Issend##SUFFIX(buf, count, type, dest, tag, comm, request);                           \
        lat_depart(&m, comm, dest, tag);                                                                      \
        int error = PMPI_Issend##SUFFIX(buf, count, type, dest, tag, comm, request);                          \
        if (!error && m.stamped)                                                                              \
            lat_enter(synchronous(&m, lat_bytes(count, type), *request));                                     \
        lat_departed(&m, error);                                                                              \
        return error;                                                                                         \
    }                                                                                                         \
    int MPI_Ssend##SUFFIX(const void *buf, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)  \
    {                                                                                                         \
        lat_outgoing m;                                                                                       \
        MPI_Request request;                                                                                  \
        if (!lat_set.on || dest == MPI_PROC_NULL)                                                             \
            return PMPI_Ssend##SUFFIX(buf, count, type, dest, tag, comm);                                     \
        if (!lat_depart(&m, comm, dest, tag)) {                                                               \
            lat_unlock();                                                                                     \
            return counted(PMPI_Ssend##SUFFIX(buf, count, type, dest, tag, comm));                            \
        }                                                                                                     \
        int error = PMPI_Issend##SUFFIX(buf, count, type, dest, tag, comm, &request);                         \
        lat_pending *e = error ? NULL : synchronous(&m, lat_bytes(count, type), request);                     \
        lat_departed(&m, error);                                                                              \
        return error ? error : lat_await(e, &request, MPI_STATUS_IGNORE);                                     \
    }

/* The program keeps the request of a receive until it may see the message, so the MPI must not give it to another operation
 * when the message is complete: it is a persistent one, of one use.  That of a call that waits is nobody else's. */
#define RECEIVE(SUFFIX, COUNT)                                                                                            \
    int MPI_Irecv##SUFFIX(void *buf, COUNT count, MPI_Datatype type, int source, int tag, MPI_Comm comm,                  \
                          MPI_Request *request)                                                                           \
    {                                                                                                                     \
        if (!lat_set.on || source == MPI_PROC_NULL || !receives_here(comm))                                               \
            return PMPI_Irecv##SUFFIX(buf, count, type, source, tag, comm, request);                                      \
        int error = PMPI_Recv_init##SUFFIX(buf, count, type, source, tag, comm, request);                                 \
        return error ? error : start_receive(comm, source, tag, request) ? MPI_SUCCESS : MPI_ERR_OTHER;                   \
    }                                                                                                                     \
    int MPI_Recv##SUFFIX(void *buf, COUNT count, MPI_Datatype type, int source, int tag, MPI_Comm comm,                   \
                         MPI_Status *status)                                                                              \
    {                                                                                                                     \
        MPI_Request request;                                                                                              \
        if (!lat_set.on || source == MPI_PROC_NULL || !receives_here(comm))                                               \
            return PMPI_Recv##SUFFIX(buf, count, type, source, tag, comm, status);                                        \
        lat_lock();                                                                                                       \
        int error = PMPI_Irecv##SUFFIX(buf, count, type, source, tag, comm, &request);                                    \
        lat_pending *e = error ? NULL : receive(comm, source, tag, request);                                              \
        lat_unlock();                                                                                                     \
        return error ? error : lat_await(e, &request, status);                                                            \
    }

/* Both halves of an exchange; without a send, the receive is taken back.  Its request is of one use and this exchange's alone: MPIs have
 * one handle for all receives from nobody. */
#define START_BOTH(SUFFIX, COUNT)                                                                                     \
    static int start_both##SUFFIX(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, int dest, int sendtag, \
                                  void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int source, int recvtag,     \
                                  MPI_Comm comm, MPI_Request *in, MPI_Request *out)                                   \
    {                                                                                                                 \
        int error = PMPI_Recv_init##SUFFIX(recvbuf, recvcount, recvtype, source, recvtag, comm, in);                  \
        if (error)                                                                                                    \
            return error;                                                                                             \
        if (!start_receive(comm, source, recvtag, in))                                                                \
            return MPI_ERR_OTHER;                                                                                     \
        error = MPI_Isend##SUFFIX(sendbuf, sendcount, sendtype, dest, sendtag, comm, out);                            \
        if (error) {                                                                                                  \
            PMPI_Cancel(in);                                                                                          \
            MPI_Wait(in, MPI_STATUS_IGNORE);                                                                          \
        }                                                                                                             \
        return error;                                                                                                 \
    }

/* What ends an exchange frees the copy that is sent. */
#define EXCHANGE(SUFFIX, COUNT, NAME, LAST, END)                                                                         \
    int MPI_##NAME##SUFFIX(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, int dest, int sendtag,           \
                           void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int source, int recvtag,               \
                           MPI_Comm comm, LAST *last)                                                                    \
    {                                                                                                                    \
        MPI_Request in, out;                                                                                             \
        if (!lat_set.on)                                                                                                 \
            return PMPI_##NAME##SUFFIX(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,        \
                                       source, recvtag, comm, last);                                                     \
        int error = start_both##SUFFIX(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,        \
                                       source, recvtag, comm, &in, &out);                                                \
        return error ? error : END(in, out, NULL, last);                                                                 \
    }                                                                                                                    \
    int MPI_##NAME##_replace##SUFFIX(void *buf, COUNT count, MPI_Datatype type, int dest, int sendtag, int source,       \
                                     int recvtag, MPI_Comm comm, LAST *last)                                             \
    {                                                                                                                    \
        MPI_Request in, out;                                                                                             \
        COUNT bytes = 0, packed = 0;                                                                                     \
        if (!lat_set.on)                                                                                                 \
            return PMPI_##NAME##_replace##SUFFIX(buf, count, type, dest, sendtag, source, recvtag, comm, last);          \
        int error = PMPI_Pack_size##SUFFIX(count, type, comm, &bytes);                                                   \
        if (error)                                                                                                       \
            return error;                                                                                                \
        void *copy = lat_allocate((size_t)bytes);                                                                        \
        error = PMPI_Pack##SUFFIX(buf, count, type, copy, bytes, &packed, comm);                                         \
        if (!error)                                                                                                      \
            error = start_both##SUFFIX(copy, packed, MPI_PACKED, dest, sendtag, buf, count, type, source, recvtag, comm, \
                                       &in, &out);                                                                       \
        if (!error)                                                                                                      \
            return END(in, out, copy, last);                                                                             \
        free(copy);                                                                                                      \
        return error;                                                                                                    \
    }

static int await_both(MPI_Request in, MPI_Request out, void *copy, MPI_Status *status)
{
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): start_both() has started them */
    int error = MPI_Wait(&in, status), error_out = MPI_Wait(&out, MPI_STATUS_IGNORE);
    free(copy);
    return error ? error : error_out;
}

#define ALL_OF(SUFFIX, COUNT)          \
    SEND(SUFFIX, COUNT, Send, Isend)   \
    SEND(SUFFIX, COUNT, Rsend, Irsend) \
    SEND(SUFFIX, COUNT, Bsend, Ibsend) \
    START_SEND(SUFFIX, COUNT, Isend)   \
    START_SEND(SUFFIX, COUNT, Irsend)  \
    START_SEND(SUFFIX, COUNT, Ibsend)  \
    SYNCHRONOUS(SUFFIX, COUNT)         \
    RECEIVE(SUFFIX, COUNT)             \
    START_BOTH(SUFFIX, COUNT)          \
    EXCHANGE(SUFFIX, COUNT, Sendrecv, MPI_Status, await_both)

ALL_OF(, int)   /* NOLINT(clang-analyzer-optin.mpi.MPI-Checker): what ends an exchange waits for both */

#if MPI_VERSION >= 4
ALL_OF(_c, MPI_Count)   /* NOLINT(clang-analyzer-optin.mpi.MPI-Checker) */
#endif

#if LAT_CALLS_OF_4
/* One request for both halves: that of the receive, complete when the send is, too. */
static int join(MPI_Request in, MPI_Request out, void *copy, MPI_Request *request)
{
    lat_lock();
    lat_pending *e = lat_find(*request = in);
    e->out = out;
    e->copy = copy;
    lat_unlock();
    return MPI_SUCCESS;
}

EXCHANGE(, int, Isendrecv, MPI_Request, join)   /* NOLINT(clang-analyzer-optin.mpi.MPI-Checker): who waits for one waits for both */
#endif
#if MPI_VERSION >= 4
EXCHANGE(_c, MPI_Count, Isendrecv, MPI_Request, join)   /* NOLINT(clang-analyzer-optin.mpi.MPI-Checker) */
#endif
