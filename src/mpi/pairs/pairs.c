/* PingPong over all pairs of processes, as the runtime sees it: a pass is a message from every process to every other one. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchanges.h"
#include "rounds.h"
#include "runtime.h"
#include "tournament.h"

/* --- data ------------------------------------------------------------------------------------------------------ */

typedef struct {
    pl_buffers *buffers;
    pairs_ends ends;
    int rounds;
    double *last;           /* seconds of each round in the last repetition, all its passes together */
} pairs_data;

static size_t footprint(const pl_case *c) { return 2 * c->n; }

static void *create(const pl_case *c)
{
    const size_t bytes[] = {c->n, c->n};
    pairs_data *d = pl_allocate(sizeof *d, "the buffers");
    d->buffers = pl_buffers_create(c, 2, bytes, NULL);
    d->rounds = pl_tournament_rounds(pl_processes.ranks);
    d->last = pl_allocate((size_t)d->rounds * sizeof *d->last, "the rounds");
    d->ends = (pairs_ends){.rank = pl_processes.rank, .ranks = pl_processes.ranks, .out = d->buffers->at[0],
                           .in = d->buffers->at[1], .bytes = (int)c->n};
    return d;
}

static void destroy(void *data)
{
    free(((pairs_data *)data)->last);
    pl_first_buffers_destroy(data);
}

static void touch(const pl_case *c, int thread, int threads)
{
    const pairs_data *d = c->data;
    if (thread == 0) {
        pingpong_write(d->ends.out, c->n, d->ends.rank, 0);
        memset(d->ends.in, 0, c->n);
    }
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static void check(const pl_case *c)
{
    if (pl_processes.ranks < 2)
        pl_fail("pairs needs 2 processes, it was started with %d: start it with mpirun -np 2 or more", pl_processes.ranks);
    if (c->n > INT_MAX)
        pl_fail("--size %zu: MPI counts the bytes of a message with an int: give at most %d", c->n, INT_MAX);
}

/* One way, in each round of a pass: as many short ones as make the clock and the pair's beginning together no part of them. */
static long messages_of(const pl_case *c) { return 1 + (1 << 17) / (long)(c->n + (1 << 14)); }

static void plan(const pl_case *c, pl_plan *p)
{
    pairs_data *d = c->data;
    memset(d->last, 0, (size_t)d->rounds * sizeof *d->last);
}

static void run(const pl_case *c, const pl_plan *p)
{
    pairs_data *d = c->data;
    for (int round = 0; round < d->rounds; round++)
        d->last[round] += pairs_round(&d->ends, round, messages_of(c));
}

/* That a process sends in a pass, and that it gets. */
static long all_messages(const pl_case *c) { return (pl_processes.ranks - 1) * messages_of(c); }

static pl_work work(const pl_case *c)
{
    return (pl_work){.load_bytes = (double)all_messages(c) * (double)c->n,
                     .source = "the messages that one process sends"};
}

static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){"messages", NULL, (double)all_messages(c)};
    found[1] = (pl_fact){"rounds", NULL, ((pairs_data *)c->data)->rounds};
}

/* --- verification ---------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    pairs_data *d = c->data;
    memset(d->ends.in, 0xFF, c->n);
    d->ends.verifying = true;
    d->ends.arrived = 0;
    d->ends.wrong = 0;
}

static double verify(const pl_case *c)
{
    pairs_data *d = c->data;
    d->ends.verifying = false;
    if (d->ends.arrived != all_messages(c))
        return INFINITY;
    return d->ends.wrong + pingpong_wrong_bytes(d->ends.out, c->n, d->ends.rank, (uint64_t)messages_of(c) - 1);
}

/* --- each pair ------------------------------------------------------------------------------------------------- */

/* Seconds of each round. */
static size_t numbers(const pl_case *c) { return (size_t)pl_tournament_rounds(pl_processes.ranks); }

static void sampled(const pl_case *c, int sample, double *row) { memcpy(row, ((const pairs_data *)c->data)->last, numbers(c) * sizeof *row); }

/* Of the messages from this process to each other one: seconds of one with its answer (median), and their robust relative
 * spread; returns the shortest sample, all its messages together. */
static double of_row(const pairs_data *d, const double *seconds, long messages, int samples, float *median, float *spread)
{
    double shortest = INFINITY, of_round[samples];
    for (int round = 0; round < d->rounds; round++) {
        const int partner = pl_tournament_partner(d->ends.ranks, d->ends.rank, round);
        if (partner < 0)
            continue;
        for (int i = 0; i < samples; i++)
            of_round[i] = seconds[(size_t)i * (size_t)d->rounds + (size_t)round];
        const pl_summary found = pl_summary_of(of_round, samples);
        shortest = fmin(shortest, found.least);
        median[partner] = (float)(found.median / (double)messages);
        spread[partner] = (float)found.spread;
    }
    return shortest;
}

static void write_matrix(FILE *f, const char *name, const char *format, const float *rows, int ranks)
{
    fprintf(f, "\"%s\": [", name);
    for (int i = 0; i < ranks; i++)
        for (int j = 0; j < ranks; j++) {
            fputs(j ? "," : i ? "],[" : "[", f);
            if (i == j)
                fputs("null", f);
            else
                fprintf(f, format, (double)rows[2 * ranks * i + j]);
        }
    fputs("]]", f);
}

static void further(const pl_case *c, const double *seconds, long passes, int samples, FILE *f)
{
    const pairs_data *d = c->data;
    const int ranks = d->ends.ranks;
    float *row = pl_allocate(2 * (size_t)ranks * sizeof *row, "the pairs"), *rows = NULL;
    if (f)
        rows = pl_allocate(2 * (size_t)ranks * (size_t)ranks * sizeof *rows, "all pairs");
    const double shortest = -pl_processes.reduce_max(-of_row(d, seconds, passes * messages_of(c), samples, row, row + ranks));
    MPI_Gather(row, 2 * ranks, MPI_FLOAT, rows, 2 * ranks, MPI_FLOAT, 0, MPI_COMM_WORLD);
    free(row);
    if (!f)
        return;
    fputs("\"pairs\": {", f);
    write_matrix(f, "seconds", "%.4g", rows, ranks);
    fputs(", ", f);
    write_matrix(f, "spread", "%.1g", rows + ranks, ranks);
    fprintf(f, ", \"shortest\": %.4g}", shortest);
    free(rows);
}

static const pl_variant variants[] = {
    {"oneway", .loop = (pl_loop)run, .about = "messages one way, each answered by an empty one, then the other way"},
    {0},
};

static const pl_kernel pairs = {
    .name = "pairs", .title = "messages between all pairs of processes, in rounds; --size is their bytes", .variants = variants,
    .check = check, .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .work = work,
    .verify = verify, .poison = poison, .buffers = pl_first_buffers, .destroy = destroy, .facts = facts, .from_zero = true,
    .numbers = numbers, .sampled = sampled, .further = further,
};

int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &pairs); }
