/* Nothing is seen before its time: each operation's own lower bound, from times that the processes themselves take.  Rank 0
 * writes one line for each.  All processes on one node, whose clock they share; L, o, g as the library reads them.
 *
 *     bounds        sends, probes, synchronous sends, the gap, overhead, collectives, non-blocking ones, neighbours
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 20, ROUNDS = 6, LENGTH = 100000 };

static int rank, size, tree;
static int64_t latency, overhead, gap;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t of(const char *name)
{
    const char *text = getenv(name);
    return text ? (int64_t)(atof(text) * 1000) : 0;
}

static void at_least(const char *what, int64_t seen, int64_t bound)
{
    if (seen < bound) {
        fprintf(stderr, "rank %d: %s: %lld ns too early\n", rank, what, (long long)(bound - seen));
        sleep(1);       /* launchers lose what is said just before */
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void said(const char *what)
{
    if (rank == 0)
        printf("%s\n", what);
}

static void work(int64_t duration)
{
    for (int64_t end = now() + duration; now() < end;)
        ;
}

/* Messages of their time of sending: in a burst, received one by one, by probes, and at once. */
static void bursts(void)
{
    int64_t sent[MESSAGES], got[MESSAGES];
    MPI_Request requests[MESSAGES];
    MPI_Status status;
    for (int way = 0; way < 4; way++) {
        if (rank == 0) {
            for (int i = 0; i < MESSAGES; i++) {
                work(way == 1 ? 2 * latency : 0);       /* so that one message's time is not another's */
                sent[i] = now();
                MPI_Isend(&sent[i], 1, MPI_INT64_T, 1, way, MPI_COMM_WORLD, &requests[i]);
            }
            MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        } else if (rank == 1) {
            if (way == 3)
                work(3 * latency);
            for (int i = 0, flag; i < MESSAGES && way < 2; i++) {
                if (way == 1)
                    for (flag = 0; !flag;)
                        MPI_Iprobe(MPI_ANY_SOURCE, way, MPI_COMM_WORLD, &flag, &status);
                int64_t probed = now();
                MPI_Recv(&got[i], 1, MPI_INT64_T, 0, way, MPI_COMM_WORLD, &status);
                at_least("a message", now(), got[i] + latency);
                if (way == 1)
                    at_least("a probe", probed, got[i] + latency);
            }
            if (way >= 2) {
                for (int i = 0; i < MESSAGES; i++)
                    MPI_Irecv(&got[i], 1, MPI_INT64_T, way == 2 ? 0 : MPI_ANY_SOURCE, way, MPI_COMM_WORLD, &requests[i]);
                for (int i = 0; i < MESSAGES; i++) {
                    MPI_Wait(&requests[i], &status);
                    at_least("a message of a window", now(), got[i] + latency);
                }
            }
            at_least("the last of a burst", now(), got[0] + (MESSAGES - 1) * gap + latency);
            at_least("what its receiver does", now(), got[0] + overhead);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    said("messages");
}

/* It is complete when its sender can know that it was matched. */
static void synchronous(void)
{
    static char data[LENGTH];
    int lengths[] = {0, 8, LENGTH};
    for (int i = 0; i < 3; i++)
        for (int way = 0; way < 3; way++) {
            if (rank == 0) {
                int64_t begin = now();
                MPI_Request request;
                if (way == 0) {
                    MPI_Ssend(data, lengths[i], MPI_CHAR, 1, 0, MPI_COMM_WORLD);
                } else if (way == 1) {
                    MPI_Issend(data, lengths[i], MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
                    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
                } else {
                    MPI_Ssend_init(data, lengths[i], MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
                    MPI_Start(&request);
                    for (int flag = 0; !flag;)
                        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
                    MPI_Request_free(&request);
                }
                at_least("a synchronous send", now(), begin + overhead + 2 * latency);
            } else if (rank == 1) {
                MPI_Recv(data, LENGTH, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
    MPI_Barrier(MPI_COMM_WORLD);
    said("synchronous");
}

static void overheads(void)
{
    int64_t value = 0, begin = now();
    int peer = rank ^ 1;
    if (peer < size && rank < 2)
        for (int i = 0; i < MESSAGES; i++)
            MPI_Sendrecv(&begin, 1, MPI_INT64_T, peer, 0, &value, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank < 2)
        at_least("sends and receives", now(), begin + MESSAGES * (2 * overhead + latency));
    MPI_Barrier(MPI_COMM_WORLD);
    said("overhead");
}

/* --- collectives ---------------------------------------------------------------------------------------------------- */

enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALL_LARGE,
       ALLTOALLV, REDUCE_SCATTER, SCAN, EXSCAN, COLLECTIVES };
static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv", "allgather",
                                    "allgatherv", "alltoall", "alltoall, large", "alltoallv", "reduce_scatter", "scan", "exscan"};

static char out[4096 * 8], in[4096 * 8];
static int ones[64], places[64];

static void blocking(int which, int root)
{
    MPI_Comm c = MPI_COMM_WORLD;
    switch (which) {
    case BARRIER: MPI_Barrier(c); break;
    case BCAST: MPI_Bcast(out, 8, MPI_CHAR, root, c); break;
    case REDUCE: MPI_Reduce(out, in, 8, MPI_CHAR, MPI_MAX, root, c); break;
    case ALLREDUCE: MPI_Allreduce(out, in, 8, MPI_CHAR, MPI_MAX, c); break;
    case GATHER: MPI_Gather(out, 8, MPI_CHAR, in, 8, MPI_CHAR, root, c); break;
    case GATHERV: MPI_Gatherv(out, 1, MPI_CHAR, in, ones, places, MPI_CHAR, root, c); break;
    case SCATTER: MPI_Scatter(out, 8, MPI_CHAR, in, 8, MPI_CHAR, root, c); break;
    case SCATTERV: MPI_Scatterv(out, ones, places, MPI_CHAR, in, 1, MPI_CHAR, root, c); break;
    case ALLGATHER: MPI_Allgather(out, 8, MPI_CHAR, in, 8, MPI_CHAR, c); break;
    case ALLGATHERV: MPI_Allgatherv(out, 1, MPI_CHAR, in, ones, places, MPI_CHAR, c); break;
    case ALLTOALL: MPI_Alltoall(out, 8, MPI_CHAR, in, 8, MPI_CHAR, c); break;
    case ALLTOALL_LARGE: MPI_Alltoall(out, 4096, MPI_CHAR, in, 4096, MPI_CHAR, c); break;
    case ALLTOALLV: MPI_Alltoallv(out, ones, places, MPI_CHAR, in, ones, places, MPI_CHAR, c); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_block(out, in, 8, MPI_CHAR, MPI_MAX, c); break;
    case SCAN: MPI_Scan(out, in, 8, MPI_CHAR, MPI_MAX, c); break;
    default: MPI_Exscan(out, in, 8, MPI_CHAR, MPI_MAX, c);
    }
}

static void non_blocking(int which, int root, MPI_Request *r)
{
    MPI_Comm c = MPI_COMM_WORLD;
    switch (which) {
    case BARRIER: MPI_Ibarrier(c, r); break;
    case BCAST: MPI_Ibcast(out, 8, MPI_CHAR, root, c, r); break;
    case REDUCE: MPI_Ireduce(out, in, 8, MPI_CHAR, MPI_MAX, root, c, r); break;
    case ALLREDUCE: MPI_Iallreduce(out, in, 8, MPI_CHAR, MPI_MAX, c, r); break;
    case GATHER: MPI_Igather(out, 8, MPI_CHAR, in, 8, MPI_CHAR, root, c, r); break;
    case GATHERV: MPI_Igatherv(out, 1, MPI_CHAR, in, ones, places, MPI_CHAR, root, c, r); break;
    case SCATTER: MPI_Iscatter(out, 8, MPI_CHAR, in, 8, MPI_CHAR, root, c, r); break;
    case SCATTERV: MPI_Iscatterv(out, ones, places, MPI_CHAR, in, 1, MPI_CHAR, root, c, r); break;
    case ALLGATHER: MPI_Iallgather(out, 8, MPI_CHAR, in, 8, MPI_CHAR, c, r); break;
    case ALLGATHERV: MPI_Iallgatherv(out, 1, MPI_CHAR, in, ones, places, MPI_CHAR, c, r); break;
    case ALLTOALL: MPI_Ialltoall(out, 8, MPI_CHAR, in, 8, MPI_CHAR, c, r); break;
    case ALLTOALL_LARGE: MPI_Ialltoall(out, 4096, MPI_CHAR, in, 4096, MPI_CHAR, c, r); break;
    case ALLTOALLV: MPI_Ialltoallv(out, ones, places, MPI_CHAR, in, ones, places, MPI_CHAR, c, r); break;
    case REDUCE_SCATTER: MPI_Ireduce_scatter_block(out, in, 8, MPI_CHAR, MPI_MAX, c, r); break;
    case SCAN: MPI_Iscan(out, in, 8, MPI_CHAR, MPI_MAX, c, r); break;
    default: MPI_Iexscan(out, in, 8, MPI_CHAR, MPI_MAX, c, r);
    }
}

/* Steps that this rank waits for, and the latest entry that it depends on. */
static int steps_of(int which, int root, const int64_t *entries, int64_t *latest)
{
    int steps = which == ALLTOALL_LARGE || which == ALLTOALLV ? size - 1 : which == GATHERV || which == SCATTERV ? 1 : tree;
    *latest = INT64_MIN;
    for (int i = 0; i < size; i++) {
        int depends = 1;
        if (which == BCAST || which == SCATTER || which == SCATTERV)
            depends = rank != root && i == root;
        else if (which == REDUCE || which == GATHER || which == GATHERV)
            depends = rank == root && i != root;
        else if (which == SCAN || which == EXSCAN)
            depends = i < rank;
        if (depends && entries[i] > *latest)
            *latest = entries[i];
    }
    return steps;
}

static void collectives(void)
{
    int64_t *entries = malloc((size_t)size * sizeof *entries), latest;
    for (int i = 0; i < size; i++)
        ones[i] = 1, places[i] = i;
    for (int which = 0; which < COLLECTIVES; which++)
        for (int round = 0; round < ROUNDS; round++) {
            int root = round % size;
            MPI_Barrier(MPI_COMM_WORLD);
            work((rank * 7 + round * 5) % 3 * latency);     /* early and late ones */
            int64_t begin = now();
            if (round % 2) {
                MPI_Request request;
                non_blocking(which, root, &request);
                if (round % 3 == 0)
                    work(latency);
                for (int flag = 0; !flag;)
                    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            } else {
                blocking(which, root);
            }
            int64_t end = now();
            PMPI_Allgather(&begin, 1, MPI_INT64_T, entries, 1, MPI_INT64_T, MPI_COMM_WORLD);
            int steps = steps_of(which, root, entries, &latest);
            if (latest != INT64_MIN)
                at_least(names[which], end, latest + steps * (latency > gap - 2 * overhead ? latency : gap - 2 * overhead));
        }
    free(entries);
    said("collectives");
}

static void neighbors(void)
{
    MPI_Comm line;
    MPI_Request request;
    int64_t begin, around[2] = {INT64_MIN, INT64_MIN};
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){0}, 0, &line);
    for (int round = 0; round < ROUNDS; round++) {
        work((rank + round) % 2 * 2 * latency);
        begin = now();
        if (round % 2) {
            MPI_Ineighbor_allgather(&begin, 1, MPI_INT64_T, around, 1, MPI_INT64_T, line, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Neighbor_allgather(&begin, 1, MPI_INT64_T, around, 1, MPI_INT64_T, line);
        }
        int64_t end = now();
        for (int i = 0; i < 2; i++)
            if (around[i] != INT64_MIN)
                at_least("what comes from a neighbour", end, around[i] + latency);
    }
    MPI_Comm_free(&line);
    said("neighbours");
}

int main(int argc, char **argv)
{
    latency = of("PLUMBLINE_LATENCY_US");
    overhead = of("PLUMBLINE_OVERHEAD_US");
    gap = of("PLUMBLINE_GAP_US");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (1 << tree < size)
        tree++;
    bursts();
    synchronous();
    overheads();
    collectives();
    neighbors();
    MPI_Finalize();
    return 0;
}
