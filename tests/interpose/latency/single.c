/* One thing that a library between program and MPI has to be asked about.
 *
 *     single cancel | session | unseen | passed | nothing | errors | threads | generalized | nobody | apart
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MPI_ERR_TRUNCATE must come out of the call that gets the message, and the next message must be right. */
static int errors(int rank)
{
    char text[8] = "";
    MPI_Request request;
    int code = MPI_SUCCESS, class = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int way = 0; way < 3; way++) {
        if (rank == 0) {
            MPI_Send("too long", 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Send("right", 6, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            if (way == 0) {
                code = MPI_Recv(text, 2, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Status status;
                MPI_Irecv(text, 2, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
                code = way == 1 ? MPI_Wait(&request, MPI_STATUS_IGNORE) : MPI_Waitall(1, &request, &status);
                if (way == 2 && code == MPI_ERR_IN_STATUS)
                    code = status.MPI_ERROR;
            }
            MPI_Error_class(code, &class);
            MPI_Recv(text, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (class != MPI_ERR_TRUNCATE || strcmp(text, "right"))
                return fprintf(stderr, "way %d: class %d, then '%s'\n", way, class, text);
        }
    }
    return 0;
}

/* Without its send an exchange takes its receive back: what comes then is for the next one. */
static int exchanges_with_nobody(int rank, int size)
{
    char text[8] = "", other[8] = "";
    int codes[2] = {MPI_ERR_RANK, MPI_ERR_RANK};
    if (rank == 1) {
        codes[0] = MPI_Sendrecv(text, 1, MPI_CHAR, size, 0, other, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#if MPI_VERSION >= 4
        MPI_Request request;
        codes[1] = MPI_Isendrecv(text, 1, MPI_CHAR, size, 0, other, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
#endif
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send("right", 6, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    else if (rank == 1)
        MPI_Recv(text, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return codes[0] == MPI_SUCCESS || codes[1] == MPI_SUCCESS || (rank == 1 && strcmp(text, "right"));
}

/* A duplicate that is complete later, where several threads may call. */
static int duplicates(int rank, int size)
{
    MPI_Comm later;
    MPI_Request request;
    int got = -1;
    MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0, later, MPI_STATUS_IGNORE);
    MPI_Comm_free(&later);
    return got != (rank + size - 1) % size;
}

static int released;

static int query(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 7);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    released += *(int *)state;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    released += complete ? 100 : *(int *)state;
    return MPI_SUCCESS;
}

/* A request of the program's own, which may be taken back. */
static int generalized(void)
{
    int one = 1, bytes = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Grequest_start(query, release, cancel, &one, &request);
    MPI_Cancel(&request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    return bytes != 7 || released != 2;
}

#if MPI_VERSION >= 4
/* Of what is complete at once an MPI may have one request for all: each exchange with nobody ends with its own send all the same, as a
 * receive from nobody.  One whose request is given back meanwhile is sent all the same. */
static int nobody(int rank)
{
    enum { LENGTH = 1 << 22 };
    static char out[2][LENGTH], in[LENGTH];
    int from = 0, to = 0, done, count[2] = {0, 0};
    MPI_Request request[2];
    MPI_Status status[2];
    for (int i = 0; i < 5; i++) {
        MPI_Isendrecv(&from, 1, MPI_INT, MPI_PROC_NULL, 0, &to, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, request);
        do
            MPI_Test(request, &done, MPI_STATUS_IGNORE);
        while (!done);
    }
    if (rank == 0) {
        MPI_Isendrecv_replace(in, LENGTH, MPI_BYTE, 1, 2, MPI_PROC_NULL, 0, MPI_COMM_WORLD, request);
        MPI_Request_free(request);
        char *other = malloc(LENGTH);       /* where the copy was, if it is not there any more */
        if (other)
            memset(other, -1, LENGTH);
        for (int i = 0; i < 2; i++)
            MPI_Isendrecv(out[i], LENGTH, MPI_BYTE, 1, i, &to, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request[i]);
        MPI_Waitall(2, request, status);
        memset(out, -1, sizeof out);
        free(other);
        for (int i = 0; i < 2; i++) {
            MPI_Get_count(&status[i], MPI_BYTE, &count[i]);
            if (status[i].MPI_SOURCE != MPI_PROC_NULL || status[i].MPI_TAG != MPI_ANY_TAG || count[i] != 0)
                return fprintf(stderr, "exchange %d: source %d, tag %d, %d bytes\n", i, status[i].MPI_SOURCE, status[i].MPI_TAG, count[i]);
        }
    } else if (rank == 1) {
        for (int k = 1; k < 4; k++) {
            int i = k % 3;
            MPI_Recv(in, LENGTH, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (in[0] || in[LENGTH - 1])
                return fprintf(stderr, "exchange %d: what was sent has changed meanwhile\n", i);
            usleep(200000);
        }
    }
    return 0;
}
#endif

/* Where each rank has to do with the root alone, it does not wait for a third one that is late. */
static int apart(int rank)
{
    static const char *const names[] = {"gatherv", "scatterv", "iscatterv"};
    int out[4] = {0}, in[4], ones[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3};
    MPI_Request request;
    int failed = 0;
    for (int way = 0; way < 3; way++) {
        int late = way == 0 ? 3 : 2;        /* of a tree's two ranks below the root, the one that is waited for */
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == late)
            usleep(1000000);
        double begin = MPI_Wtime();
        if (way == 0) {
            MPI_Gatherv(out, 1, MPI_INT, in, ones, places, MPI_INT, 0, MPI_COMM_WORLD);
        } else if (way == 1) {
            MPI_Scatterv(out, ones, places, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD);
        } else {
            MPI_Iscatterv(out, ones, places, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (rank == 5 - late && MPI_Wtime() - begin > 0.5)
            failed = fprintf(stderr, "%s: rank %d was in it for %g s\n", names[way], rank, MPI_Wtime() - begin);
    }
    return failed;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "nothing";
    int rank, size, value = 0, failed = 0;
    if (!strcmp(what, "session")) {
#if MPI_VERSION >= 4
        MPI_Session session;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Session_finalize(&session);
#else
        puts("no sessions in this MPI");
#endif
        return 0;
    }
    if (!strcmp(what, "unseen")) {      /* as the Fortran bindings of some MPIs do it */
        PMPI_Init(&argc, &argv);
        PMPI_Finalize();
        return 0;
    }
    if (!strcmp(what, "threads"))
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &value);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(what, "cancel")) {
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (!strcmp(what, "passed")) {
        static _Alignas(4096) int target[1024];     /* in MPICH 4.0 a window elsewhere is not always where it should be */
        MPI_Win window;
        MPI_Win_create(target, sizeof target, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
    } else if (!strcmp(what, "threads")) {
        failed = duplicates(rank, size);
    } else if (!strcmp(what, "generalized")) {
        failed = generalized();
    } else if (!strcmp(what, "apart")) {
        failed = apart(rank);
#if MPI_VERSION >= 4
    } else if (!strcmp(what, "nobody")) {
        failed = nobody(rank);
#endif
    } else if (!strcmp(what, "errors")) {
        failed = errors(rank) || exchanges_with_nobody(rank, size);
    }
    MPI_Finalize();
    return failed ? 3 : 0;
}
