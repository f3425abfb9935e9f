/* A pattern of messages over the nodes of a simulated network:
 *     smpirun ... simulated-patterns PATTERN PER_NODE BYTES REPEATS ROUNDS STREAMS SEED
 *
 * All numbers as of the options of the program patterns.  Prints one line of JSON: what a node sends in a round (or the target of an
 * incast gets), bytes, and the seconds of each round, of the slowest process; times are simulated, the bytes are real and looked at. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../patterns/traffic.h"
#include "../pingpong/exchanges.h"

enum { AT_PATTERN = 1, AT_PER_NODE, AT_BYTES, AT_REPEATS, AT_ROUNDS, AT_STREAMS, AT_SEED, ARGUMENTS };

static long number(const char *text, long least)
{
    char *end;
    const long value = strtol(text, &end, 10);
    return *text && !*end && value >= least ? value : -1;
}

static traffic_pattern pattern_of(const char *name)
{
    int pattern = 0;
    while (pattern < TRAFFIC_PATTERNS && strcmp(traffic_names[pattern], name))
        pattern++;
    return (traffic_pattern)pattern;
}

static void refuse(int rank, const char *why)
{
    if (rank == 0)
        fprintf(stderr, "plumbline: simulated-patterns PATTERN PER_NODE BYTES REPEATS ROUNDS STREAMS SEED: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return memory;
}

int main(int argc, char **argv)
{
    traffic_job job = {0};
    int ranks;
    long value[ARGUMENTS] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const traffic_pattern pattern = argc == ARGUMENTS ? pattern_of(argv[AT_PATTERN]) : TRAFFIC_PATTERNS;
    for (int i = AT_PER_NODE; pattern < TRAFFIC_PATTERNS && i < ARGUMENTS; i++)
        if ((value[i] = number(argv[i], i != AT_ROUNDS)) < 0)
            refuse(job.rank, "a number is none, or below 1");
    if (pattern == TRAFFIC_PATTERNS)
        refuse(job.rank, "no such pattern, or not seven words");
    job.per_node = job.used = (int)value[AT_PER_NODE];
    job.nodes = ranks / job.per_node;
    job.rounds = (int)value[AT_ROUNDS];
    job.streams = (int)value[AT_STREAMS];
    job.seed = value[AT_SEED];
    if (job.nodes < 2 || ranks % job.per_node || !traffic_fits(pattern, job.nodes))
        refuse(job.rank, "too few processes for this pattern, or no whole number of nodes");

    const size_t bytes = (size_t)value[AT_BYTES];
    const int rounds = traffic_rounds(pattern, &job), most = traffic_messages(pattern, &job), slots = traffic_slots(pattern, &job, bytes);
    int *const to = room((size_t)most, sizeof *to), *const from = room((size_t)most, sizeof *from);
    traffic_steps steps = {.to = to, .from = from};
    traffic_ends ends = {.out = room(1, bytes), .in = room((size_t)slots, bytes), .bytes = bytes, .stride = bytes, .slots = slots,
                         .request = room(2 * (size_t)slots, sizeof(MPI_Request)), .verifying = true};
    double *const own = room((size_t)rounds, sizeof *own), *const slowest = room((size_t)rounds, sizeof *slowest), wrong;
    pingpong_write(ends.out, bytes, job.rank, 0);
    for (int round = 0; round < rounds; round++) {
        traffic_plan(pattern, &job, round, &steps);
        own[round] = traffic_round(&steps, &ends, value[AT_REPEATS]);
    }
    MPI_Reduce(own, slowest, rounds, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&ends.wrong, &wrong, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (job.rank == 0) {
        printf("{\"application\": \"patterns\", \"pattern\": \"%s\", \"nodes\": %d, \"wrong\": %.0f, \"bytes\": %.0f, \"seconds\": [",
               traffic_names[pattern], job.nodes, wrong, (double)value[AT_REPEATS] * most * job.used * (double)bytes);
        for (int round = 0; round < rounds; round++)
            printf("%s%.9g", round ? ", " : "", slowest[round]);
        puts("]}");
    }
    MPI_Finalize();
    return job.rank == 0 && wrong > 0;
}
