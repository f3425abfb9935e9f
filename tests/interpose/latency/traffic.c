/* Random messages in all ways that MPI has, the same for the same seed.  Each process checks what it gets: contents, status,
 * order of posting, and with PLUMBLINE_LATENCY_US that nothing is seen before its time.  Rank 0 writes a sum over all that
 * was received, which must not depend on any library in between.
 *
 *     traffic SEED ROUNDS
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 48, TAGS = 3, RANKS = 8, LONGEST = 70000, NEVER = 99, FREED = 50 };

typedef struct { int source, to, tag, bytes, number; int64_t sent; } header;
typedef struct { header is; int in_round; } message;

static uint64_t state;          /* the same on all ranks */
static int rank, size, round_number;
static int64_t latency;         /* ns */
static uint64_t digest;

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int below(int n) { return (int)(mix(state += 0x9E3779B97F4A7C15u) % (unsigned)n); }

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#define CHECK(condition, ...)                                                              \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "rank %d, round %d, line %d: ", rank, round_number, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                                                  \
            fputc('\n', stderr);                                                           \
            sleep(1);       /* launchers lose what is said just before */                  \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                  \
        }                                                                                  \
    } while (0)

static void fill(unsigned char *buffer, header h)
{
    h.sent = now();
    for (int i = 0; i < h.bytes; i++)
        buffer[i] = (unsigned char)(i * 7 + h.number * 13 + h.tag * 31 + h.source);
    memcpy(buffer, &h, (size_t)h.bytes < sizeof h ? (size_t)h.bytes : sizeof h);
}

/* What was received, in the order of posting. */
static struct { header h; bool whole; } got[MOST];
static int got_count;

static void check(const unsigned char *buffer, const MPI_Status *status, int place)
{
    int64_t seen = now();
    int bytes;
    header h;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    got[place].whole = bytes >= (int)sizeof h;
    got[place].h = (header){.source = status->MPI_SOURCE, .tag = status->MPI_TAG, .bytes = bytes};
    got_count++;
    if (!got[place].whole)
        return;
    memcpy(&h, buffer, sizeof h);
    got[place].h = h;
    CHECK(h.to == rank && h.tag == status->MPI_TAG && h.bytes == bytes, "a message to %d of %d bytes with tag %d has status %d, %d",
          h.to, h.bytes, h.tag, bytes, status->MPI_TAG);
    for (int i = sizeof h; i < bytes; i++)
        CHECK(buffer[i] == (unsigned char)(i * 7 + h.number * 13 + h.tag * 31 + h.source), "byte %d is wrong", i);
    CHECK(seen - h.sent >= latency, "a message was seen %lld ns after it was sent", (long long)(seen - h.sent));
}

/* --- completing, in every way -------------------------------------------------------------------------------------- */

/* Whether a request is complete, and its status; of MPI 4.1 by one of four calls. */
static void asked_by(MPI_Request *one, int which, int *flag, MPI_Status *status)
{
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    int index = 0, found;
    switch (which % 4) {
    case 1:
        MPI_Request_get_status_all(1, one, flag, status);
        return;
    case 2:
        MPI_Request_get_status_any(1, one, &index, flag, status);
        CHECK(!*flag || index == 0, "MPI_Request_get_status_any calls a request under way inactive");
        return;
    case 3:
        MPI_Request_get_status_some(1, one, &found, &index, status);
        CHECK(found != MPI_UNDEFINED && index == 0, "MPI_Request_get_status_some calls a request under way inactive");
        *flag = found == 1;
        return;
    }
#endif
    MPI_Request_get_status(*one, flag, status);
}

static void finish(int n, MPI_Request requests[], MPI_Status statuses[], int way, bool receives)
{
    int left = n, flag, index, count, indices[MOST];
    MPI_Status some[MOST], one;
    switch (way) {
    case 0:
        for (int i = 0; i < n; i++)
            MPI_Wait(&requests[i], &statuses[i]);
        break;
    case 1:
        MPI_Waitall(n, requests, statuses);
        break;
    case 2:
        for (; left; left--) {
            MPI_Waitany(n, requests, &index, &one);
            CHECK(index >= 0 && index < n, "MPI_Waitany gives %d", index);
            statuses[index] = one;
        }
        MPI_Waitany(n, requests, &index, &one);
        CHECK(index == MPI_UNDEFINED, "MPI_Waitany of no request gives %d", index);
        break;
    case 3:
        for (; left; left -= count) {
            MPI_Waitsome(n, requests, &count, indices, some);
            CHECK(count > 0 && count <= left, "MPI_Waitsome gives %d", count);
            for (int i = 0; i < count; i++)
                statuses[indices[i]] = some[i];
        }
        break;
    case 4:
        for (flag = 0; !flag;)
            MPI_Testall(n, requests, &flag, statuses);
        break;
    case 5:
        while (left) {
            MPI_Testany(n, requests, &index, &flag, &one);
            if (flag) {
                CHECK(index >= 0 && index < n, "MPI_Testany gives %d", index);
                statuses[index] = one;
                left--;
            }
        }
        break;
    case 6:
        for (; left; left -= count) {
            MPI_Testsome(n, requests, &count, indices, some);
            for (int i = 0; i < count; i++)
                statuses[indices[i]] = some[i];
        }
        break;
    case 7:
        for (int i = n - 1; i >= 0; i--)
            for (flag = 0; !flag;)
                MPI_Test(&requests[i], &flag, &statuses[i]);
        break;
    default:
        for (int i = n - 1; i >= 0; i--) {
            for (flag = 0; !flag;)
                asked_by(&requests[i], i, &flag, &one);
            MPI_Wait(&requests[i], &statuses[i]);
            CHECK(!receives || one.MPI_SOURCE == statuses[i].MPI_SOURCE, "MPI_Request_get_status gives another source");
        }
    }
}

/* --- one round of messages between any of a communicator's processes ------------------------------------------------ */

static void start_send(const message *m, void *buffer, int way, MPI_Comm comm, MPI_Request *request, bool *persistent)
{
    *persistent = false;
    switch (way) {
    case 0:
        MPI_Issend(buffer, m->is.bytes, MPI_BYTE, m->is.to, m->is.tag, comm, request);
        break;
    case 1:
        MPI_Ibsend(buffer, m->is.bytes, MPI_BYTE, m->is.to, m->is.tag, comm, request);
        break;
    case 2:
        MPI_Bsend(buffer, m->is.bytes, MPI_BYTE, m->is.to, m->is.tag, comm);
        *request = MPI_REQUEST_NULL;
        break;
    case 3: case 4:
        (way == 3 ? MPI_Send_init : MPI_Ssend_init)(buffer, m->is.bytes, MPI_BYTE, m->is.to, m->is.tag, comm, request);
        MPI_Start(request);
        *persistent = true;
        break;
    default:
        MPI_Isend(buffer, m->is.bytes, MPI_BYTE, m->is.to, m->is.tag, comm, request);
    }
}

/* Gets one message by a call that waits for it. */
static void receive(unsigned char *buffer, int source, int tag, int way, MPI_Comm comm, MPI_Status *status)
{
    MPI_Message handle;
    MPI_Status probed;
    MPI_Request request;
    int flag = 0, bytes;
    switch (way) {
    case 0:
        MPI_Probe(source, tag, comm, &probed);
        break;
    case 1:
        while (!flag)
            MPI_Iprobe(source, tag, comm, &flag, &probed);
        break;
    case 2:
        MPI_Mprobe(source, tag, comm, &handle, &probed);
        MPI_Mrecv(buffer, LONGEST, MPI_BYTE, &handle, status);
        return;
    case 3:
        while (!flag)
            MPI_Improbe(source, tag, comm, &flag, &handle, &probed);
        MPI_Imrecv(buffer, LONGEST, MPI_BYTE, &handle, &request);
        MPI_Wait(&request, status);
        return;
    default:
        MPI_Recv(buffer, LONGEST, MPI_BYTE, source, tag, comm, status);
        return;
    }
    MPI_Get_count(&probed, MPI_BYTE, &bytes);
    MPI_Recv(buffer, bytes, MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, comm, status);
}

/* Whether every message of this round has come, each stream in its order. */
static void settle(const message *plan, int n)
{
    int next[RANKS][TAGS] = {{0}}, of_me = 0;
    for (int i = 0; i < n; i++)
        of_me += plan[i].is.to == rank;
    CHECK(got_count == of_me, "%d of %d messages came", got_count, of_me);
    for (int i = 0; i < of_me; i++) {
        header h = got[i].h;
        CHECK(h.tag >= 0 && h.tag < TAGS, "tag %d", h.tag);
        int *expected = &next[h.source][h.tag], of_stream = 0;
        for (int k = 0; k < n; k++)
            of_stream += plan[k].is.to == rank && plan[k].is.source == h.source && plan[k].is.tag == h.tag;
        CHECK(*expected < of_stream, "more than %d messages with tag %d from %d", of_stream, h.tag, h.source);
        if (got[i].whole)
            CHECK(h.number == *expected, "message %d of its stream came as number %d", h.number, *expected);
        for (int k = 0; k < n; k++)
            if (plan[k].is.to == rank && plan[k].is.source == h.source && plan[k].is.tag == h.tag && plan[k].is.number == *expected)
                CHECK(plan[k].is.bytes == h.bytes, "%d bytes instead of %d", h.bytes, plan[k].is.bytes);
        digest += mix((uint64_t)(((h.source * 64 + rank) * 8 + h.tag) * 64 + *expected) * 100003 + (uint64_t)h.bytes);
        (*expected)++;
    }
}

static void exchange(MPI_Comm comm)
{
    static unsigned char in[MOST][LONGEST], out[MOST][LONGEST];
    message plan[MOST];
    MPI_Request incoming[MOST], outgoing[MOST];
    MPI_Status statuses[MOST];
    int n = 1 + below(MOST), numbers[RANKS][RANKS][TAGS] = {{{0}}}, ways[MOST], incoming_count = 0, outgoing_count = 0, mine = 0;
    bool persistent[MOST], persistent_receives = false;
    static const int lengths[] = {0, 8, 40, 1000, 5000, LONGEST};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < n; i++) {
        header *h = &plan[i].is;
        *h = (header){.source = below(size), .to = below(size), .tag = below(TAGS)};
        h->bytes = lengths[below(6)];
        h->number = numbers[h->source][h->to][h->tag]++;
        ways[i] = below(9);
    }
    int wildcards = below(3), ahead = below(3), receive_way = below(9), send_way = below(9), late = below(4) == 0;
    int receive_ways[MOST];
    for (int i = 0; i < n; i++)
        receive_ways[i] = below(9);
    got_count = 0;

    /* Receives that are posted before, of an envelope that this many of the messages to come fit. */
    int place = 0;
    for (int i = 0; i < n; i++) {
        const header *h = &plan[i].is;
        if (h->to != rank)
            continue;
        mine++;
        if (ahead == 0 || (ahead == 1 && i % 2))
            continue;
        int source = wildcards ? MPI_ANY_SOURCE : h->source, tag = wildcards == 2 ? MPI_ANY_TAG : h->tag;
        if (ways[i] % 3 == 0) {
            MPI_Recv_init(in[place], LONGEST, MPI_BYTE, source, tag, comm, &incoming[incoming_count]);
            MPI_Startall(1, &incoming[incoming_count++]);
            persistent_receives = true;
        } else {
            MPI_Irecv(in[place], LONGEST, MPI_BYTE, source, tag, comm, &incoming[incoming_count++]);
        }
        place++;
    }
    for (int i = 0; i < n; i++)
        if (plan[i].is.source == rank) {
            fill(out[outgoing_count], plan[i].is);
            start_send(&plan[i], out[outgoing_count], ways[i], comm, &outgoing[outgoing_count], &persistent[outgoing_count]);
            outgoing_count++;
        }
    if (late)
        for (int64_t until = now() + 200000; now() < until;)
            ;
    if (ahead == 2 || wildcards == 0) {
        for (int i = 0, k = 0; i < n; i++) {
            const header *h = &plan[i].is;
            if (h->to != rank || ahead == 2 || (ahead == 1 && !(i % 2)))
                continue;
            receive(in[place + k], h->source, h->tag, receive_ways[i], comm, &statuses[0]);
            check(in[place + k], &statuses[0], place + k);
            k++;
        }
    } else {
        for (int k = place; k < mine; k++) {
            int source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG;
            receive(in[k], source, tag, receive_ways[k], comm, &statuses[0]);
            check(in[k], &statuses[0], k);
        }
    }
    /* Intel MPI's own MPI_Request_get_status loses the status of a persistent request. */
    finish(incoming_count, incoming, statuses, receive_way == 8 && persistent_receives ? 7 : receive_way, true);
    for (int i = 0; i < incoming_count; i++) {
        check(in[i], &statuses[i], i);
        if (incoming[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&incoming[i]);
    }
    int active = 0;
    for (int i = 0; i < outgoing_count; i++)
        active += outgoing[i] != MPI_REQUEST_NULL;
    finish(outgoing_count, outgoing, statuses, active < outgoing_count ? 1 : send_way, false);
    for (int i = 0; i < outgoing_count; i++)
        if (outgoing[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&outgoing[i]);
    settle(plan, n);
}

static void barrier(void)
{
    MPI_Request request;
    int flag = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

/* --- calls that send and wait at once; what never comes; what nobody waits for ---------------------------------------- */

static void ring(MPI_Comm comm)
{
    unsigned char out[1000], in[1000];
    MPI_Status status;
    MPI_Request request;
    int bytes = below(2) ? 1000 : 64;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    header h = {rank, right, 1, bytes, 5, 0};
    fill(out, h);
    MPI_Sendrecv(out, bytes, MPI_BYTE, right, 1, in, sizeof in, MPI_BYTE, left, 1, comm, &status);
    check(in, &status, 0);
    fill(out, h);
    MPI_Sendrecv_replace(out, bytes, MPI_BYTE, right, 1, left, 1, comm, &status);
    check(out, &status, 0);
#if MPI_VERSION >= 4
    fill(out, h);
    MPI_Isendrecv(out, bytes, MPI_BYTE, right, 1, in, sizeof in, MPI_BYTE, left, 1, comm, &request);
    MPI_Wait(&request, &status);
    check(in, &status, 0);
    fill(out, h);
    MPI_Isendrecv_replace(out, bytes, MPI_BYTE, right, 1, left, 1, comm, &request);
    MPI_Wait(&request, &status);
    check(out, &status, 0);
#endif
    digest += mix(got[0].h.bytes + got[0].h.source);
    fill(out, h);
    MPI_Irecv(in, sizeof in, MPI_BYTE, left, MPI_ANY_TAG, comm, &request);
    MPI_Sendrecv(out, bytes, MPI_BYTE, right, 1, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, comm, &status);
    MPI_Wait(&request, &status);
    check(in, &status, 0);
    barrier();
    MPI_Isend(out, bytes, MPI_BYTE, right, 1, comm, &request);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, in, sizeof in, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
    check(in, &status, 0);
    MPI_Wait(&request, &status);
    barrier();
    if (size > 1 && rank < 2) {
        h = (header){rank, 1 - rank, 2, bytes, 0, 0};
        for (int turn = 0; turn < 2; turn++)
            for (int way = 0; way < 4; way++) {
                if (rank == turn) {
                    fill(out, h);
                    if (way == 0)
                        MPI_Send(out, bytes, MPI_BYTE, 1 - rank, 2, comm);
                    else if (way == 1)
                        MPI_Ssend(out, bytes, MPI_BYTE, 1 - rank, 2, comm);
                    else if (way == 2)
                        MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 2, comm);
                    else
                        MPI_Bsend(out, bytes, MPI_BYTE, 1 - rank, 2, comm);
                } else if (way != 2) {
                    MPI_Recv(in, sizeof in, MPI_BYTE, 1 - rank, 2, comm, &status);
                    check(in, &status, 0);
                }
            }
    }
}

static void odd_ones(MPI_Comm comm)
{
    static unsigned char freed[64], in[64], out[2][64];
    MPI_Request request, sends[2];
    MPI_Status status;
    int flag;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Irecv(in, sizeof in, MPI_BYTE, MPI_ANY_SOURCE, NEVER, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag, "a receive that was cancelled is not");

    /* The first of two messages of one stream goes to a receive that nobody waits for. */
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Irecv(freed, sizeof freed, MPI_BYTE, left, FREED, comm, &request);
    MPI_Request_free(&request);
    for (int i = 0; i < 2; i++) {
        fill(out[i], (header){rank, right, FREED, sizeof out[i], i, 0});
        MPI_Isend(out[i], sizeof out[i], MPI_BYTE, right, FREED, comm, &sends[i]);
    }
    MPI_Recv(in, sizeof in, MPI_BYTE, left, FREED, comm, &status);
    check(in, &status, 0);
    CHECK(got[0].h.number == 1, "the second message is number %d", got[0].h.number);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    const char *text = getenv("PLUMBLINE_LATENCY_US");
    latency = text ? (int64_t)(atof(text) * 1000) : 0;
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 20;
    MPI_Init(&argc, &argv);
    MPI_Comm comms[5] = {MPI_COMM_WORLD}, inter;
    int world_rank, world_size, length;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    char *attached = malloc(64u << 20);
    MPI_Buffer_attach(attached, 64 << 20);
    for (round_number = 0; round_number < rounds; round_number++) {
        MPI_Request request;
        MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[1]);
        MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, (int[]){1}, 1, &comms[2]);
        MPI_Comm_idup(comms[1], &comms[3], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_dup(comms[2], &comms[4]);
        for (int i = 0; i < 5; i++) {
            exchange(comms[below(5)]);
            barrier();      /* a wildcard must not get what belongs to the next exchange */
        }
        ring(comms[below(5)]);
        barrier();
        odd_ones(comms[below(5)]);
        barrier();
        for (int i = 1; i < 5; i++)
            MPI_Comm_free(&comms[i]);
    }
    if (world_size > 1) {
        MPI_Comm half, both;
        MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 7, &inter);
        MPI_Comm_rank(half, &rank);
        if (rank == 0) {
            unsigned char out[64], in[64];
            MPI_Status status;
            fill(out, (header){rank, 0, 1, 64, 0, 0});
            MPI_Sendrecv(out, 64, MPI_BYTE, 0, 1, in, 64, MPI_BYTE, 0, 1, inter, &status);
            check(in, &status, 0);
        }
        MPI_Intercomm_merge(inter, world_rank % 2, &both);
        ring(both);
        MPI_Comm_free(&both);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    uint64_t all;
    MPI_Reduce(&digest, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Buffer_detach(&attached, &length);
    free(attached);
    if (world_rank == 0)
        printf("received %016llx\n", (unsigned long long)all);
    MPI_Finalize();
    return 0;
}
