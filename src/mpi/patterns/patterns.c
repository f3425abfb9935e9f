/* Patterns of messages over nodes, as the runtime sees them: a pass is all rounds of a pattern. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchanges.h"
#include "ports.h"
#include "runtime.h"
#include "traffic.h"

enum { PER_NODE, NODES, USED, ROUNDS, STREAMS, SEED };
enum { PORTS };

static const pl_parameter parameters[] = {
    [PER_NODE] = {"per-node", 1, 1, "ranks of each node, which come one after the other", .by_turns = true},
    [NODES] = {"nodes", 0, 1, "nodes that take part, the first ones; 0: all", .from_zero = true},
    [USED] = {"used", 0, 1, "ranks of each of them that take part, the first ones; 0: all", .from_zero = true},
    [ROUNDS] = {"rounds", 8, 1, "pairs, matchings or targets, at most; 0: all", .from_zero = true},
    [STREAMS] = {"streams", 1, 1, "messages that are outstanding at once between two nodes that are alone", .most = 1024, .by_turns = true},
    [SEED] = {"seed", 1, 1, "of the matchings"},
    {0},
};

static const pl_string_parameter strings[] = {
    [PORTS] = {"ports", "folder whose class/infiniband and class/net count errors (default /sys)"},
    {0},
};

static traffic_pattern pattern_of(const pl_case *c);

static traffic_job job_of(const pl_case *c)
{
    const int per_node = (int)c->parameters[PER_NODE], there_are = pl_processes.ranks / per_node;
    const long nodes = c->parameters[NODES], used = c->parameters[USED];
    return (traffic_job){.rank = pl_processes.rank, .per_node = per_node, .nodes = nodes ? (int)nodes : there_are,
                         .used = used ? (int)used : per_node, .rounds = (int)c->parameters[ROUNDS],
                         .streams = (int)c->parameters[STREAMS], .seed = c->parameters[SEED]};
}

/* --- data ------------------------------------------------------------------------------------------------------ */

typedef struct {
    pl_buffers *buffers;
    traffic_ends ends;
    traffic_job job;            /* of the case that runs now, like what follows */
    int rounds;
    traffic_steps *steps;       /* of each round */
    double *last;               /* seconds of each round in the last repetition, all its passes together */
} pattern_data;

/* A line of its own for each message that is outstanding. */
static size_t stride_of(const pl_case *c) { return (c->n + PL_LINE - 1) / PL_LINE * PL_LINE; }

/* The variants of a group share them: as many as any variant needs with all nodes. */
static int slots_of(const pl_case *c)
{
    pl_case all = *c;
    all.parameters[NODES] = 0;
    const traffic_job job = job_of(&all);
    int most = 0;
    for (int pattern = 0; pattern < TRAFFIC_PATTERNS; pattern++) {
        const int slots = traffic_slots((traffic_pattern)pattern, &job, stride_of(c));
        most = slots > most ? slots : most;
    }
    return most;
}

static size_t footprint(const pl_case *c) { return c->n + (size_t)slots_of(c) * stride_of(c); }

static void *create(const pl_case *c)
{
    const int slots = slots_of(c);
    const size_t bytes[] = {c->n, (size_t)slots * stride_of(c)};
    pattern_data *d = pl_allocate(sizeof *d, "the buffers");
    ports_begin(c->text[PORTS]);
    d->buffers = pl_buffers_create(c, 2, bytes, NULL);
    d->ends = (traffic_ends){.out = d->buffers->at[0], .in = d->buffers->at[1], .bytes = c->n, .stride = stride_of(c), .slots = slots,
                             .request = pl_allocate(2 * (size_t)slots * sizeof(MPI_Request), "the requests")};
    return d;
}

static void forget_steps(pattern_data *d)
{
    for (int round = 0; round < d->rounds; round++)
        free(d->steps[round].to);
    free(d->steps);
    free(d->last);
    d->rounds = 0;
}

static void destroy(void *data)
{
    pattern_data *d = data;
    forget_steps(d);
    free(d->ends.request);
    pl_first_buffers_destroy(d);
}

static void touch(const pl_case *c, int thread, int threads)
{
    const pattern_data *d = c->data;
    if (thread == 0) {
        pingpong_write(d->ends.out, c->n, pl_processes.rank, 0);
        memset(d->ends.in, 0, (size_t)d->ends.slots * d->ends.stride);
    }
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static void check(const pl_case *c)
{
    const long per_node = c->parameters[PER_NODE], nodes = c->parameters[NODES], there_are = pl_processes.ranks / per_node;
    if (pl_processes.ranks % per_node)
        pl_fail("--per-node %ld: %d processes are no whole number of nodes: start as many on each", per_node, pl_processes.ranks);
    if (there_are < 2)
        pl_fail("patterns needs 2 nodes, it was started on %ld: start it with mpirun -np %ld or more", there_are, 2 * per_node);
    if (nodes == 1 || nodes > there_are)
        pl_fail("--nodes %ld: there are %ld: give 2 to %ld of them, or 0 for all", nodes, there_are, there_are);
    if (c->parameters[USED] > per_node)
        pl_fail("--used %ld: a node has %ld ranks: give as many at most, or 0 for all", c->parameters[USED], per_node);
    if (c->n > INT_MAX)
        pl_fail("--size %zu: MPI counts the bytes of a message with an int: give at most %d", c->n, INT_MAX);
    if (!traffic_fits(pattern_of(c), job_of(c).nodes))
        pl_fail("--variants %s: %d nodes are no grid of %d dimensions: leave the variant out", c->variant->name, job_of(c).nodes,
                traffic_dimensions(pattern_of(c)));
}

/* Of a round: as many of short messages as make the clock and the common beginning no part of them. */
static long repeats_of(const pl_case *c)
{
    const traffic_job job = job_of(c);
    const long once = 1 + (1 << 17) / (long)(c->n + (1 << 14)), each = traffic_messages(pattern_of(c), &job);
    return (once + each - 1) / each;
}

static void plan(const pl_case *c, pl_plan *p)
{
    pattern_data *d = c->data;
    const traffic_pattern pattern = pattern_of(c);
    forget_steps(d);
    d->job = job_of(c);
    const int rounds = traffic_rounds(pattern, &d->job), most = traffic_messages(pattern, &d->job);
    d->steps = pl_allocate((size_t)rounds * sizeof *d->steps, "the rounds");
    d->last = pl_allocate((size_t)rounds * sizeof *d->last, "the rounds");
    for (; d->rounds < rounds; d->rounds++) {
        traffic_steps *const steps = &d->steps[d->rounds];
        steps->to = pl_allocate(2 * (size_t)most * sizeof *steps->to, "the messages of a round");
        steps->from = steps->to + most;
        traffic_plan(pattern, &d->job, d->rounds, steps);
    }
}

static void run(const pl_case *c, const pl_plan *p)
{
    pattern_data *d = c->data;
    for (int round = 0; round < d->rounds; round++)
        d->last[round] += traffic_round(&d->steps[round], &d->ends, repeats_of(c));
}

/* One table: a variant is at the place of its pattern. */
static const pl_variant variants[] = {
    [TRAFFIC_PAIR] = {"pair", .loop = (pl_loop)run, .about = "two nodes alone, both ways; another pair in each round"},
    [TRAFFIC_ONEWAY] = {"oneway", .loop = (pl_loop)run, .about = "the same one way"},
    [TRAFFIC_BISECTION] = {"bisection", .loop = (pl_loop)run, .about = "each node of the first half with one of the second, both ways"},
    [TRAFFIC_RING] = {"ring", .loop = (pl_loop)run, .about = "each node with the one before and the one behind it"},
    [TRAFFIC_GRID2] = {"grid2", .loop = (pl_loop)run, .about = "each node with its neighbours on a grid of two dimensions", .by_name = true},
    [TRAFFIC_GRID3] = {"grid3", .loop = (pl_loop)run, .about = "each node with its neighbours on a grid of three dimensions", .by_name = true},
    [TRAFFIC_MATCHINGS] = {"matchings", .loop = (pl_loop)run, .about = "all nodes in pairs, both ways; other pairs in each round"},
    [TRAFFIC_INCAST] = {"incast", .loop = (pl_loop)run, .about = "all nodes to one; another one in each round"},
    [TRAFFIC_ALLTOALL] = {"alltoall", .loop = (pl_loop)run, .about = "each node to all others"},
    {0},
};

static traffic_pattern pattern_of(const pl_case *c) { return (traffic_pattern)(c->variant - variants); }

/* Of a node in a round of a pass. */
static double bytes_of(const pl_case *c)
{
    const traffic_job job = job_of(c);
    return (double)repeats_of(c) * traffic_messages(pattern_of(c), &job) * job.used * (double)c->n;
}

static pl_work work(const pl_case *c)
{
    const traffic_job job = job_of(c);
    return (pl_work){.load_bytes = traffic_rounds(pattern_of(c), &job) * bytes_of(c),
                     .source = "the messages that a node sends, or the target of an incast gets"};
}

static void facts(const pl_case *c, pl_fact *found)
{
    const traffic_job job = job_of(c);
    found[0] = (pl_fact){"messages", NULL, (double)repeats_of(c) * traffic_messages(pattern_of(c), &job) * traffic_rounds(pattern_of(c), &job)};
    found[1] = (pl_fact){"outstanding", NULL, slots_of(c)};
}

/* --- verification ---------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    pattern_data *d = c->data;
    pingpong_write(d->ends.out, c->n, pl_processes.rank, d->ends.written = 0);
    d->ends.verifying = true;
    d->ends.arrived = 0;
    d->ends.wrong = 0;
}

/* That this process gets in a pass. */
static long expected(const pl_case *c)
{
    const pattern_data *d = c->data;
    long messages = 0;
    for (int round = 0; round < d->rounds; round++)
        for (int step = 0; step < d->steps[round].count; step++)
            messages += d->steps[round].from[step] < 0 ? 0 : repeats_of(c);
    return messages;
}

static double verify(const pl_case *c)
{
    pattern_data *d = c->data;
    d->ends.verifying = false;
    if (d->ends.arrived != expected(c))
        return INFINITY;
    return d->ends.wrong + pingpong_wrong_bytes(d->ends.out, c->n, pl_processes.rank, d->ends.written);
}

/* --- each round, each rank ------------------------------------------------------------------------------------- */

/* Seconds of each round on this process; then, on rank 0, of the slowest of all. */
static size_t numbers(const pl_case *c)
{
    const traffic_job job = job_of(c);
    return 2 * (size_t)traffic_rounds(pattern_of(c), &job);
}

static void sampled(const pl_case *c, int sample, double *row)
{
    const pattern_data *d = c->data;
    memcpy(row, d->last, (size_t)d->rounds * sizeof *row);
    MPI_Reduce(d->last, row + d->rounds, d->rounds, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}

/* Seconds of one repeat on this process, and their robust relative spread: medians over the rounds that count; not a number where none does. */
static void of_rank(const pattern_data *d, const double *rows, double repeats, int samples, float found[2])
{
    double median[d->rounds], spread[d->rounds], one[samples];
    int rounds = 0;
    for (int round = 0; round < d->rounds; round++) {
        if (!d->steps[round].count || !d->steps[round].counts)
            continue;
        for (int i = 0; i < samples; i++)
            one[i] = rows[2 * i * d->rounds + round];
        const pl_summary summary = pl_summary_of(one, samples);
        median[rounds] = summary.median / repeats;
        spread[rounds++] = summary.spread;
    }
    found[0] = rounds ? (float)pl_summary_of(median, rounds).median : NAN;
    found[1] = rounds ? (float)pl_summary_of(spread, rounds).median : NAN;
}

static void write_ranks(FILE *f, const char *name, const char *format, const float *of)
{
    fprintf(f, ", \"%s\": [", name);
    for (int rank = 0; rank < pl_processes.ranks; rank++) {
        fputs(rank ? "," : "", f);
        if (isnan(of[2 * rank]))
            fputs("null", f);
        else
            fprintf(f, format, (double)of[2 * rank]);
    }
    fputc(']', f);
}

static void further(const pl_case *c, const double *rows, long passes, int samples, FILE *f)
{
    pattern_data *d = c->data;
    const double repeats = (double)passes * (double)repeats_of(c);
    float own[2], *all = NULL;
    if (f)
        all = pl_allocate(2 * (size_t)pl_processes.ranks * sizeof *all, "all ranks");
    of_rank(d, rows, repeats, samples, own);
    MPI_Gather(own, 2, MPI_FLOAT, all, 2, MPI_FLOAT, 0, MPI_COMM_WORLD);
    if (!f)
        return;
    fprintf(f, "\"pattern\": {\"nodes\": %d, \"repeats\": %.0f, \"bytes\": %.0f, \"rounds\": [", d->job.nodes, repeats, (double)passes * bytes_of(c));
    for (int round = 0; round < d->rounds; round++)
        for (int i = 0; i < samples; i++)
            fprintf(f, "%s%.9g", i ? "," : round ? "],[" : "[", rows[(2 * i + 1) * d->rounds + round]);
    fputs("]]", f);
    write_ranks(f, "seconds", "%.4g", all);
    write_ranks(f, "spread", "%.2g", all + 1);
    fputc('}', f);
    free(all);
}

static const pl_kernel patterns = {
    .name = "patterns", .title = "patterns of messages over nodes; --size is their bytes", .variants = variants, .parameters = parameters,
    .strings = strings, .check = check, .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .work = work,
    .verify = verify, .poison = poison, .buffers = pl_first_buffers, .destroy = destroy, .facts = facts, .numbers = numbers,
    .sampled = sampled, .further = further,
};

int main(int argc, char **argv)
{
    const int code = pl_mpi_main(argc, argv, &patterns);
    ports_end();
    return code;
}
