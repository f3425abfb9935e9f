/* MPI_Request_get_status_any, _all and _some of MPI 4.1 in a library that has requests of its own: each is asked alone, those by the library's
 * MPI_Request_get_status, the others by the MPI.  Defined before: bool is_own(MPI_Request), whether it is one, and under way. */
#include <mpi.h>

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

/* An array of requests as this MPI's mpi.h has it: Intel MPI, and MPICH before 4.3.2, lack the const of the standard. */
typedef __typeof__(_Generic(&PMPI_Request_get_status_any,
    int (*)(int, MPI_Request *, int *, int *, MPI_Status *): (MPI_Request *)0, default: (const MPI_Request *)0)) asked;

/* Whether a request is under way; *flag: whether it is complete. */
static bool ask_one(MPI_Request request, int *flag, MPI_Status *status, int *error)
{
    int index = 0;
    const bool own = is_own(request);
    *error = own ? MPI_Request_get_status(request, flag, status) : PMPI_Request_get_status_any(1, &request, &index, flag, status);
    return own || !*flag || index != MPI_UNDEFINED;
}

int MPI_Request_get_status_any(int count, asked requests, int *index, int *flag, MPI_Status *status)
{
    bool active = false;
    *index = MPI_UNDEFINED;
    for (int i = 0, error; i < count; i++) {
        const bool on_its_way = ask_one(requests[i], flag, status, &error);
        active |= on_its_way;
        if (on_its_way && (*flag || error)) {
            *index = i;
            return error;
        }
    }
    *flag = !active;
    return active ? MPI_SUCCESS : PMPI_Request_get_status_any(0, requests, index, flag, status);
}

int MPI_Request_get_status_all(int count, asked requests, int *flag, MPI_Status *statuses)
{
    *flag = 1;
    for (int i = 0; i < count && *flag; i++) {
        MPI_Status *const status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
        const int error = is_own(requests[i]) ? MPI_Request_get_status(requests[i], flag, status)
                                              : PMPI_Request_get_status(requests[i], flag, status);
        if (error)
            return error;
    }
    return MPI_SUCCESS;
}

int MPI_Request_get_status_some(int count, asked requests, int *found, int indices[], MPI_Status *statuses)
{
    bool active = false;
    int complete = 0;
    for (int i = 0, flag, error; i < count; i++) {
        const bool on_its_way = ask_one(requests[i], &flag, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + complete, &error);
        if (error)
            return error;
        active |= on_its_way;
        if (on_its_way && flag)
            indices[complete++] = i;
    }
    *found = active ? complete : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

#endif
