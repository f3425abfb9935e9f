/* Every call that libplumbline_pack stands before, between two processes: the column type of a matrix, so that what arrives is
 * the transposed matrix.  Rank 1 receives contiguously or with the type, as the case says.  Knows nothing of the library.
 * Usage: calls [CASE], all without; `calls list` names them. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 120, ALL = N * N };
typedef double matrix[ALL];

static int rank, other;
static MPI_Datatype transposed;
static const char *at = "";
static matrix a, b, c[4];
static MPI_Status status, statuses[4];
static MPI_Request request[4];

#define CHECK(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "rank %d, %s, line %d: %s\n", rank, at, __LINE__, #condition), MPI_Abort(MPI_COMM_WORLD, 1), (void)0))

static MPI_Datatype matrix_type(void)
{
    MPI_Datatype column, type;
    MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(N, 1, sizeof(double), column, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&column);
    return type;
}

static void set(double *m, double first)
{
    for (int i = 0; i < ALL; i++)
        m[i] = first + i;
}

/* The first `n` elements of the packed form of set(m, first). */
static int is_transposed(const double *m, double first, int n)
{
    for (int k = 0; k < n; k++)
        if (m[k] != first + k % N * N + k / N)
            return 0;
    return 1;
}

/* A matrix that got the first n elements of set(m, first) transposed, by the type: as they were sent; else as set(m, old). */
static int is_straight(const double *m, double first, int n, double old)
{
    for (int k = 0; k < ALL; k++) {
        const int i = k % N * N + k / N;
        if (m[i] != (k < n ? first : old) + i)
            return 0;
    }
    return 1;
}

static int count_of(MPI_Status *s)
{
    int count;
    MPI_Get_count(s, MPI_DOUBLE, &count);
    return count;
}

static int items_of(MPI_Status *s)
{
    int count;
    MPI_Get_count(s, transposed, &count);
    return count;
}

/* --- sends --------------------------------------------------------------------------------------------------------- */

typedef int send_now(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int send_begin(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
static send_now *const now[] = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
static send_begin *const begin[] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
static send_begin *const init[] = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};

static void attach(void)
{
    const int bytes = 8 * ((int)sizeof(matrix) + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(malloc((size_t)bytes), bytes);
}

static void detach(void)
{
    void *buffer;
    int bytes;
    MPI_Buffer_detach(&buffer, &bytes);
    free(buffer);
}

static void sends(void)
{
    attach();
    for (int k = 0; k < 4; k++) {
        set(a, k);
        if (rank == 1)
            MPI_Irecv(b, ALL, MPI_DOUBLE, 0, k, MPI_COMM_WORLD, request);
        MPI_Barrier(MPI_COMM_WORLD);            /* a ready send needs its receive */
        if (rank == 0)
            now[k](a, 1, transposed, 1, k, MPI_COMM_WORLD);
        else {
            MPI_Wait(request, &status);
            CHECK(is_transposed(b, k, ALL) && count_of(&status) == ALL && status.MPI_TAG == k && status.MPI_SOURCE == 0);
        }
    }
    detach();
}

static void isends(void)
{
    attach();
    for (int k = 0; k < 4; k++) {
        set(a, k);
        if (rank == 1)
            MPI_Irecv(b, ALL, MPI_DOUBLE, 0, k, MPI_COMM_WORLD, request);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            begin[k](a, 1, transposed, 1, k, MPI_COMM_WORLD, request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
        CHECK(request[0] == MPI_REQUEST_NULL);
        CHECK(rank == 0 || is_transposed(b, k, ALL));
    }
    detach();
}

enum { BUFFERED = 2 };
#if defined(OPEN_MPI)       /* 4.1 sends the data of the first start again */
enum { BUFFERED_TURNS = 1 };
#else
enum { BUFFERED_TURNS = 3 };
#endif

static void persistent_sends(void)
{
    attach();
    for (int k = 0; k < 4; k++) {
        if (rank == 0)
            init[k](a, 1, transposed, 1, k, MPI_COMM_WORLD, request);
        else
            MPI_Recv_init(b, 1, transposed, 0, k, MPI_COMM_WORLD, request);
        MPI_Wait(request, &status);             /* not started: complete, empty */
        CHECK(count_of(&status) == 0);
        for (int turn = 0; turn < (k == BUFFERED ? BUFFERED_TURNS : 3); turn++) {
            set(a, 10 * turn);
            set(b, -1);
            if (rank == 1)
                MPI_Start(request);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0)
                MPI_Start(request);
            MPI_Wait(request, &status);
            CHECK(request[0] != MPI_REQUEST_NULL);
            CHECK(rank == 0 || (is_straight(b, 10 * turn, ALL, 0) && items_of(&status) == 1));
        }
        MPI_Request_free(request);
        CHECK(request[0] == MPI_REQUEST_NULL);
    }
    detach();
}

/* --- receives ------------------------------------------------------------------------------------------------------ */

/* Whether a request is complete, by one call or, of MPI 4.1, by three by turns, of which the first that says so must be right. */
static void asked_by(MPI_Request *one, int *flag)
{
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    static int turn;
    int index = -1, none;
    MPI_Request both[] = {MPI_REQUEST_NULL, *one};
    MPI_Request_get_status_any(1, both, &none, flag, &status);
    CHECK(*flag && none == MPI_UNDEFINED);
    switch (turn++ % 3) {
    case 0:
        MPI_Request_get_status_all(2, both, flag, MPI_STATUSES_IGNORE);
        return;
    case 1:
        MPI_Request_get_status_any(2, both, &index, flag, &status);
        break;
    default:
        MPI_Request_get_status_some(2, both, flag, &index, statuses);
        CHECK(*flag != MPI_UNDEFINED);
    }
    CHECK(!*flag || index == 1);
#else
    MPI_Request_get_status(*one, flag, &status);
#endif
}

static void receives(void)
{
    MPI_Message message;
    int flag = 0, count;
    set(a, 5);
    for (int k = 0; k < 6; k++) {
        if (rank == 0) {
            MPI_Send(a, 1, transposed, 1, k, MPI_COMM_WORLD);
            continue;
        }
        set(b, -1);
        if (k == 0)
            MPI_Recv(b, 1, transposed, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (k == 1) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            CHECK(count_of(&status) == ALL && items_of(&status) == 1);
            MPI_Recv(b, 1, transposed, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (k == 2) {
            MPI_Mprobe(0, 2, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            MPI_Mrecv(b, 1, transposed, &message, &status);
        }
        if (k == 3) {
            MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            MPI_Imrecv(b, 1, transposed, &message, request);
            MPI_Wait(request, &status);
        }
        if (k == 4) {
            while (!flag)
                MPI_Iprobe(0, 4, MPI_COMM_WORLD, &flag, &status);
            MPI_Get_elements(&status, transposed, &count);
            CHECK(count == ALL);
            MPI_Recv(b, 1, transposed, 0, 4, MPI_COMM_WORLD, &status);
        }
        if (k == 5) {
            MPI_Irecv(b, 1, transposed, 0, 5, MPI_COMM_WORLD, request);
            for (flag = 0; !flag;)
                asked_by(request, &flag);
            CHECK(is_straight(b, 5, ALL, 0));   /* the data are there before the request is given up */
            set(b, -1);
            b[0] = 5;
            MPI_Wait(request, &status);
            CHECK(b[0] == 5 && b[1] == 0 && request[0] == MPI_REQUEST_NULL);    /* and are not put there again */
            set(b, 5);
        }
        CHECK(is_straight(b, 5, ALL, 0) && status.MPI_TAG == k && items_of(&status) == 1);
    }
}

/* Messages shorter than the receive allows, one that ends within a column, none at all; from and to nobody. */
static void short_messages(void)
{
    const int lengths[] = {ALL / 2, 1, N + 7, 0};
    set(a, 0);
    for (int k = 0; k < 4; k++) {
        if (rank == 0) {
            MPI_Send(a, lengths[k], MPI_DOUBLE, 1, k, MPI_COMM_WORLD);
            continue;
        }
        set(b, 1e6);
        MPI_Recv(b, 1, transposed, 0, k, MPI_COMM_WORLD, &status);
        CHECK(count_of(&status) == lengths[k]);
        CHECK(items_of(&status) == (lengths[k] ? MPI_UNDEFINED : 0));
        int elements, wrong = 0;
        MPI_Get_elements(&status, transposed, &elements);
        CHECK(elements == lengths[k]);
        for (int i = 0; i < ALL; i++)
            wrong |= b[i % N * N + i / N] != (i < lengths[k] ? i : 1e6 + i % N * N + i / N);
        CHECK(!wrong);
    }
    set(b, 3);
    MPI_Recv(b, 1, transposed, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && count_of(&status) == 0 && is_straight(b, 3, ALL, 0));
    MPI_Send(b, 1, transposed, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Isend(b, 1, transposed, MPI_PROC_NULL, 0, MPI_COMM_WORLD, request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Irecv(b, 0, transposed, other, 9, MPI_COMM_WORLD, request);
    MPI_Send(b, 0, transposed, other, 9, MPI_COMM_WORLD);
    MPI_Wait(request, &status);
    CHECK(count_of(&status) == 0);
}

static void too_long(void)
{
    int class = MPI_SUCCESS, error = MPI_SUCCESS;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (rank == 0)
        MPI_Send(a, 1, transposed, 1, 0, comm);
    else {
        MPI_Datatype half;
        MPI_Type_vector(N / 2, 1, N, MPI_DOUBLE, &half);
        MPI_Datatype type;
        MPI_Type_create_hvector(N, 1, sizeof(double), half, &type);
        MPI_Type_commit(&type);
        error = MPI_Recv(b, 1, type, 0, 0, comm, &status);
        MPI_Error_class(error, &class);
        CHECK(class == MPI_ERR_TRUNCATE);
        MPI_Type_free(&half);
        MPI_Type_free(&type);
    }
    MPI_Comm_free(&comm);
}

static void sendrecv(void)
{
    for (int k = 0; k < 4; k++) {       /* the type on neither side, on that of the send, of the receive, on both */
        set(a, rank);
        set(b, -1);
        MPI_Sendrecv(a, k & 1 ? 1 : ALL, k & 1 ? transposed : MPI_DOUBLE, other, 0, b, k & 2 ? 1 : ALL,
                     k & 2 ? transposed : MPI_DOUBLE, other, 0, MPI_COMM_WORLD, k ? &status : MPI_STATUS_IGNORE);
        CHECK(!k || count_of(&status) == ALL);
        CHECK(k == 0 || k == 3 ? is_straight(b, other, ALL, 0) : is_transposed(b, other, ALL));
    }
    MPI_Sendrecv_replace(a, 1, transposed, other, 1, other, 1, MPI_COMM_WORLD, &status);
    CHECK(is_straight(a, other, ALL, 0) && items_of(&status) == 1);
    MPI_Sendrecv_replace(a, 1, transposed, rank, 1, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(is_straight(a, other, ALL, 0));
    MPI_Sendrecv_replace(a, 1, transposed, rank ? MPI_PROC_NULL : 1, 1, rank ? 0 : MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    CHECK(is_straight(a, 1, ALL, 0) && count_of(&status) == (rank ? ALL : 0));
}

/* --- completion of several ----------------------------------------------------------------------------------------- */

static void start_four(int tagged)
{
    set(a, 7);
    for (int k = 0; k < 4; k++) {
        set(c[k], -1);
        if (rank == 0)
            MPI_Isend(a, 1, transposed, 1, tagged + k, MPI_COMM_WORLD, &request[k]);
        else                                    /* every second one contiguously */
            MPI_Irecv(c[k], k & 1 ? ALL : 1, k & 1 ? MPI_DOUBLE : transposed, 0, tagged + k, MPI_COMM_WORLD, &request[k]);
    }
}

static void check_one(int k)
{
    CHECK(request[k] == MPI_REQUEST_NULL);
    CHECK(rank == 0 || (k & 1 ? is_transposed(c[k], 7, ALL) : is_straight(c[k], 7, ALL, 0)));
}

static void several(void)
{
    int index, flag, done, indices[4];
    for (int way = 0; way < 8; way++) {
        start_four(10 * way);
        int left = 4;
        while (left > 0) {
            if (way == 0)
                MPI_Waitall(4, request, statuses), left = 0;
            else if (way == 1)
                MPI_Waitall(4, request, MPI_STATUSES_IGNORE), left = 0;
            else if (way == 2) {
                MPI_Waitany(4, request, &index, &status);
                CHECK(index >= 0 && index < 4 && (rank == 0 || (count_of(&status) == ALL && status.MPI_TAG == 20 + index)));
                check_one(index), left--;
            } else if (way == 3) {
                MPI_Waitsome(4, request, &done, indices, statuses);
                for (int k = 0; k < done; k++) {
                    CHECK(rank == 0 || statuses[k].MPI_TAG == 30 + indices[k]);
                    check_one(indices[k]);
                }
                left -= done;
            } else if (way == 4) {
                MPI_Testall(4, request, &flag, MPI_STATUSES_IGNORE);
                left = flag ? 0 : 4;
            } else if (way == 5) {
                MPI_Testany(4, request, &index, &flag, MPI_STATUS_IGNORE);
                if (flag)
                    check_one(index), left--;
            } else if (way == 6) {
                MPI_Testsome(4, request, &done, indices, MPI_STATUSES_IGNORE);
                for (int k = 0; k < done; k++)
                    check_one(indices[k]);
                left -= done;
            } else {
                MPI_Test(&request[left - 1], &flag, &status);
                left -= flag;
            }
        }
        for (int k = 0; k < 4; k++) {
            check_one(k);
            CHECK(way || rank == 0 || (statuses[k].MPI_TAG == k && count_of(&statuses[k]) == ALL));
        }
        MPI_Waitall(4, request, statuses);      /* none left: nothing to do */
        MPI_Waitany(4, request, &index, &status);
        CHECK(index == MPI_UNDEFINED);
        MPI_Waitsome(4, request, &done, indices, statuses);
        CHECK(done == MPI_UNDEFINED);
    }
}

/* More requests at once than tables on the stack hold. */
static void many(void)
{
    enum { MANY = 70 };
    static double from[MANY][30 * 30], to[MANY][30 * 30];
    MPI_Request requests[MANY];
    MPI_Datatype column, type;
    MPI_Type_vector(30, 1, 30, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(30, 1, sizeof(double), column, &type);
    MPI_Type_commit(&type);
    for (int k = 0; k < MANY; k++) {
        for (int i = 0; i < 900; i++)
            from[k][i] = k * 1000 + i;
        if (rank == 0)
            MPI_Isend(from[k], 1, type, 1, k, MPI_COMM_WORLD, &requests[k]);
        else
            MPI_Irecv(to[k], 1, type, 0, k, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    CHECK(rank == 0 || !memcmp(from, to, sizeof from));
    MPI_Type_free(&column);
    MPI_Type_free(&type);
}

static void startall(void)
{
    for (int k = 0; k < 4; k++)
        if (rank == 0)
            MPI_Send_init(c[k], 1, transposed, 1, k, MPI_COMM_WORLD, &request[k]);
        else
            MPI_Recv_init(c[k], k & 1 ? ALL : 1, k & 1 ? MPI_DOUBLE : transposed, 0, k, MPI_COMM_WORLD, &request[k]);
    for (int turn = 0; turn < 3; turn++) {
        for (int k = 0; k < 4; k++)
            set(c[k], rank == 0 ? turn : -1);
        MPI_Startall(4, request);
        MPI_Waitall(4, request, statuses);
        for (int k = 0; k < 4 && rank; k++)
            CHECK(k & 1 ? is_transposed(c[k], turn, ALL) : is_straight(c[k], turn, ALL, 0));
    }
    for (int k = 0; k < 4; k++)
        MPI_Request_free(&request[k]);
}

/* --- lifetimes ----------------------------------------------------------------------------------------------------- */

static void free_requests(void)
{
    set(a, 11);
    set(b, -1);
    if (rank == 0) {
        MPI_Isend(a, 1, transposed, 1, 0, MPI_COMM_WORLD, request);
        MPI_Request_free(request);              /* its end is known from the answer */
        CHECK(request[0] == MPI_REQUEST_NULL);
        MPI_Recv(b, 1, transposed, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(is_straight(b, 11, ALL, 0));
        MPI_Send_init(a, 1, transposed, 1, 2, MPI_COMM_WORLD, request);
        MPI_Start(request);
        MPI_Request_free(request);
        MPI_Recv(b, 1, transposed, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(b, 1, transposed, 0, 0, MPI_COMM_WORLD, request);
        MPI_Request_free(request);
        do                                      /* what came last shows that all of it is there */
            MPI_Iprobe(0, 99, MPI_COMM_WORLD, (int[]){0}, MPI_STATUS_IGNORE), MPI_Testall(0, request, (int[]){0}, statuses);
        while (((volatile double *)b)[ALL - 1] != 11 + ALL - 1);
        CHECK(is_straight(b, 11, ALL, 0));
        MPI_Send(b, 1, transposed, 0, 1, MPI_COMM_WORLD);
        MPI_Recv(b, 1, transposed, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(b, 1, transposed, 0, 3, MPI_COMM_WORLD);
    }
}

static void cancel(void)
{
    int cancelled;
    set(b, 4);
    MPI_Irecv(b, 1, transposed, other, 77, MPI_COMM_WORLD, request);
    MPI_Cancel(request);
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled && is_straight(b, 4, ALL, 0));
}

static void free_types(void)
{
    for (int turn = 0; turn < 20; turn++) {
        MPI_Datatype type = matrix_type(), copy;
        MPI_Type_dup(type, &copy);
        set(a, turn);
        set(b, -1);
        if (rank == 0)
            MPI_Isend(a, 1, type, 1, 0, MPI_COMM_WORLD, request);
        else
            MPI_Irecv(b, 1, copy, 0, 0, MPI_COMM_WORLD, request);
        MPI_Type_free(&type);
        MPI_Type_free(&copy);
        MPI_Wait(request, MPI_STATUS_IGNORE);
        CHECK(rank == 0 || is_straight(b, turn, ALL, 0));
    }
}

/* Types of calls with counts beyond int in those of others: some MPIs refuse to say of the former what they say of the latter. */
static void large_counts(void)
{
#if MPI_VERSION >= 4
    MPI_Datatype one, column, types[2];
    MPI_Type_contiguous_c(1, MPI_DOUBLE, &one);
    MPI_Type_vector(ALL / 2, 1, 2, one, &types[0]);
    MPI_Type_vector_c(ALL / 2, 1, 2, MPI_DOUBLE, &column);
    MPI_Type_dup(column, &types[1]);
    for (int k = 0; k < 2; k++) {
        MPI_Type_commit(&types[k]);
        set(a, 7);
        set(b, -1);
        MPI_Sendrecv(a, 1, types[k], other, k, b, 1, types[k], other, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(b[0] == 7 && b[1] == 0 && b[ALL - 2] == 7 + ALL - 2 && b[ALL - 1] == ALL - 2);
        MPI_Type_free(&types[k]);
    }
    MPI_Type_free(&one);
    MPI_Type_free(&column);
#endif
}

/* --- threads ------------------------------------------------------------------------------------------------------- */

static void *one_thread(void *number)
{
    const int k = *(int *)number;
    double *mine = malloc(sizeof(matrix)), *got = malloc(sizeof(matrix));
    for (int turn = 0; turn < 15; turn++) {
        MPI_Datatype type = turn % 3 ? transposed : matrix_type();
        MPI_Request both[2];
        set(mine, turn + 100 * k);
        set(got, -1);
        MPI_Irecv(got, 1, type, other, k, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(mine, 1, type, other, k, MPI_COMM_WORLD, &both[1]);
        if (turn % 2) {
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        } else {
            for (int flag = 0; !flag;)
                MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE);
        }
        CHECK(is_straight(got, turn + 100 * k, ALL, 0));
        if (turn % 3 == 0)
            MPI_Type_free(&type);
    }
    free(mine), free(got);
    return NULL;
}

static void threads(void)
{
    int provided, number[4] = {0, 1, 2, 3};
    pthread_t thread[4];
    MPI_Query_thread(&provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return;
    for (int k = 0; k < 4; k++)
        pthread_create(&thread[k], NULL, one_thread, &number[k]);
    for (int k = 0; k < 4; k++)
        pthread_join(thread[k], NULL);
}

/* ------------------------------------------------------------------------------------------------------------------- */

static const struct { const char *name; void (*run)(void); } cases[] = {
    { "sends", sends }, { "isends", isends }, { "persistent", persistent_sends }, { "receives", receives },
    { "short", short_messages }, { "too_long", too_long }, { "sendrecv", sendrecv }, { "several", several }, { "many", many },
    { "startall", startall }, { "free_requests", free_requests }, { "cancel", cancel }, { "free_types", free_types },
    { "large_counts", large_counts }, { "threads", threads },
};

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    transposed = matrix_type();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (argc < 2 || !strcmp(argv[1], cases[k].name)) {
            at = cases[k].name;
            cases[k].run();
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0)
                printf("%s\n", at);
        }
    MPI_Type_free(&transposed);
    MPI_Finalize();
    return 0;
}
