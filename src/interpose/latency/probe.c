/* Probes: a message that may not be seen yet is not there. */
#include "latency.h"

/* With the lock held: whether the message that PMPI_Iprobe would tell of may be seen, and what is left of its time. */
static int probe(int source, int tag, MPI_Comm handle, int *flag, MPI_Status *status, lat_pending **seen, ns *left)
{
    MPI_Status found = {0};     /* MPIs leave parts of it as they are */
    lat_comm *comm = lat_comm_of(handle);
    *seen = NULL;
    *left = 0;
    ns begin = lat_now();
    int error = PMPI_Iprobe(source, tag, handle, flag, &found);
    if (error)
        return error;
    if (*flag && comm && lat_set.stamped && !comm->closed && found.MPI_SOURCE != MPI_PROC_NULL) {
        bool same = comm->missed.source == source && comm->missed.tag == tag;
        *seen = lat_probed(comm, &found, same ? comm->missed.at : NEVER_SEEN);
        *left = lat_visible(*seen) - lat_now();
        *flag = *left <= 0;
    } else if (!*flag && comm) {
        ns absent = lat_probe_missed(begin);
        if (absent >= 0 || comm->missed.source != source || comm->missed.tag != tag) {
            comm->missed.source = source;
            comm->missed.tag = tag;
            comm->missed.at = absent;
        }
    }
    if (*flag && status != MPI_STATUS_IGNORE)
        *status = found;
    return MPI_SUCCESS;
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    lat_pending *seen;
    ns left;
    if (!lat_set.on || source == MPI_PROC_NULL)
        return PMPI_Iprobe(source, tag, comm, flag, status);
    lat_lock();
    int error = probe(source, tag, comm, flag, status, &seen, &left);
    lat_unlock();
    return error;
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    lat_pending *seen;
    ns left;
    int flag, error;
    if (!lat_set.on || source == MPI_PROC_NULL)
        return PMPI_Probe(source, tag, comm, status);
    lat_lock();
    while (error = probe(source, tag, comm, &flag, status, &seen, &left), !flag && !error)
        lat_pass_time(left);
    lat_unlock();
    return error;
}

/* With the lock held: the message is matched only when it may be seen, so that until then any receive may get it. */
static int match(int source, int tag, MPI_Comm handle, int *flag, MPI_Message *message, MPI_Status *status, ns *left)
{
    MPI_Status found = {0};
    lat_pending *seen;
    int error = probe(source, tag, handle, flag, &found, &seen, left);
    if (error || !*flag)
        return error;
    error = PMPI_Improbe(found.MPI_SOURCE, found.MPI_TAG, handle, flag, message, status);
    if (!error && *flag && seen)
        lat_take_probed(seen->comm, seen);
    return error;
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    ns left;
    if (!lat_set.on || source == MPI_PROC_NULL)
        return PMPI_Improbe(source, tag, comm, flag, message, status);
    lat_lock();
    int error = match(source, tag, comm, flag, message, status, &left);
    lat_unlock();
    return error;
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    ns left;
    int flag, error;
    if (!lat_set.on || source == MPI_PROC_NULL)
        return PMPI_Mprobe(source, tag, comm, message, status);
    lat_lock();
    while (error = match(source, tag, comm, &flag, message, status, &left), !flag && !error)
        lat_pass_time(left);
    lat_unlock();
    return error;
}

/* What was matched may be seen already: only o is due. */
static void matched(MPI_Request *request)
{
    lat_lock();
    lat_pending *e = lat_new(LAT_MATCHED, NULL);
    e->request = *request;
    e->active = true;
    lat_enter(e);
    lat_unlock();
}

#define RECEIVE_MATCHED(SUFFIX, COUNT)                                                                            \
    int MPI_Imrecv##SUFFIX(void *buf, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request) \
    {                                                                                                             \
        bool real = *message != MPI_MESSAGE_NO_PROC;                                                              \
        int error = PMPI_Imrecv##SUFFIX(buf, count, type, message, request);                                      \
        if (lat_set.on && real && !error)                                                                         \
            matched(request);                                                                                     \
        return error;                                                                                             \
    }                                                                                                             \
    int MPI_Mrecv##SUFFIX(void *buf, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)    \
    {                                                                                                             \
        bool real = *message != MPI_MESSAGE_NO_PROC;                                                              \
        int error = PMPI_Mrecv##SUFFIX(buf, count, type, message, status);                                        \
        if (lat_set.on && real && !error) {                                                                       \
            lat_lock();                                                                                           \
            lat_count.received++;                                                                                 \
            lat_unlock();                                                                                         \
            lat_busy(lat_set.overhead);                                                                           \
        }                                                                                                         \
        return error;                                                                                             \
    }

RECEIVE_MATCHED(, int)
#if MPI_VERSION >= 4
RECEIVE_MATCHED(_c, MPI_Count)
#endif
