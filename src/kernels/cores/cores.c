/* The cores as the runtime sees them: variants, data, verification, and the matrices of all samples for the record. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"
#include "tournament.h"

enum { TOGETHER, ALONE, CLOCK };

static const pl_variant variants[] = {
    [TOGETHER] = {"handover", .loop = (pl_loop)cores_together, .about = "a cache line to and fro, all pairs of a round at once"},
    [ALONE] = {"alone", .loop = (pl_loop)cores_alone, .about = "some of these pairs, one at a time"},
    [CLOCK] = {"clock", .loop = (pl_loop)cores_clock, .about = "clock and additions per cycle: some cores alone, all at once"},
    {0},
};

static int which(const pl_case *c) { return (int)(c->variant - variants); }

enum { BATCHES = 3 };

/* A page for each thread's line: where it lies is part of the latency. */
static size_t apart(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Far beyond any handover, far below a time slice: of two threads on one CPU each waits for the other in vain. */
static const double patience = 5e-4;

/* --- data -------------------------------------------------------------------------------------------------------- */

static size_t footprint(const pl_case *c) { return (size_t)c->threads * sizeof(pl_relay); }

static size_t pairs_of(int threads) { return cores_pair(threads, threads - 1, threads); }

static void check(const pl_case *c)
{
    static int threads;
    if (threads && threads != c->threads)
        pl_fail("--threads %d,%d: the matrices are of one team: give one number of threads", threads, c->threads);
    threads = c->threads;
    if (c->threads < 2)
        pl_fail("--threads %d: a cache line is handed over between cores: give at least 2, of the OpenMP build", c->threads);
    if (c->n > 1000000)
        pl_fail("--size %zu: handovers of a batch: give at most 1000000", c->n);
}

static void *create(const pl_case *c)
{
    cores_data *d = pl_allocate(sizeof *d, "the cores");
    const size_t threads = (size_t)c->threads, pairs = pairs_of(c->threads), bytes = threads * apart();
    d->buffers = pl_buffers_create(c, 1, &bytes, NULL);
    d->threads = c->threads;
    d->length = (pl_relay_length){BATCHES, (int)c->n, patience};
    d->relay = pl_allocate(threads * sizeof *d->relay, "the cores");
    for (size_t i = 0; i < threads; i++)
        d->relay[i] = (pl_relay *)((char *)d->buffers->at[0] + i * apart());
    d->epoch = pl_allocate(threads * sizeof *d->epoch, "the cores");
    d->seconds = pl_allocate(pairs * sizeof *d->seconds, "the pairs");
    d->answered = pl_allocate(pairs * sizeof *d->answered, "the pairs");
    d->silent = pl_allocate(pairs * sizeof *d->silent, "the pairs");
    d->one = pl_allocate(threads * sizeof *d->one, "the cores");
    d->all = pl_allocate(threads * sizeof *d->all, "the cores");
    d->turn = pl_allocate(threads * sizeof *d->turn, "the cores");
    for (size_t i = 0; i < threads; i++)
        sem_init(&d->turn[i], 0, 0);
    return d;
}

static void destroy(void *data)
{
    cores_data *d = data;
    for (int i = 0; i < d->threads; i++)
        sem_destroy(&d->turn[i]);
    void *const parts[] = {d->relay, d->epoch, d->seconds, d->answered, d->silent, d->one, d->all, d->turn};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
    pl_first_buffers_destroy(d);
}

static void touch(const pl_case *c, int thread, int threads) { memset(((cores_data *)c->data)->relay[thread], 0, sizeof(pl_relay)); }

/* --- the work ---------------------------------------------------------------------------------------------------- */

static void plan(const pl_case *c, pl_plan *p) { cores_forget(c->data, p->thread); }

static void run(const pl_case *c, const pl_plan *p) { ((cores_loop *)p->loop)(c->data, p->thread); }

static pl_work work(const pl_case *c)
{
    if (which(c) == CLOCK)
        return (pl_work){.source = "additions in registers"};
    const int pairs = which(c) == TOGETHER ? (int)pairs_of(c->threads) : cores_pairs_alone(c->threads);
    return (pl_work){.load_bytes = PL_LINE * 2.0 * (double)(1 + BATCHES * c->n) * pairs, .source = "the lines that change cores"};
}

static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){"virtual", pl_is_virtual(), 0};
    found[1] = (pl_fact){"rounds", NULL, pl_tournament_rounds(c->threads)};
}

/* --- verification ------------------------------------------------------------------------------------------------ */

static void poison(const pl_case *c)
{
    cores_data *d = c->data;
    for (size_t pair = 0; pair < pairs_of(d->threads); pair++)
        d->answered[pair] = d->silent[pair] = -1;
    for (int i = 0; i < d->threads; i++) {
        atomic_store(&d->relay[i]->turn, 0);
        d->all[i] = (core_speed){NAN, NAN};
    }
}

/* Pairs that did not meet once, and lines whose turns are not all that there were to be. */
static double wrong_pairs(const cores_data *d)
{
    const uint64_t turns = 2 * (1 + (uint64_t)d->length.batches * (uint64_t)d->length.handovers);
    double wrong = 0;
    for (int lower = 0; lower < d->threads; lower++) {
        bool silent = false, used = false;
        for (int upper = lower + 1; upper < d->threads; upper++) {
            const size_t pair = cores_pair(d->threads, lower, upper);
            wrong += d->answered[pair] + d->silent[pair] != 1;
            silent |= d->silent[pair];
            used = true;
        }
        wrong += used && !silent && (uint32_t)atomic_load(&d->relay[lower]->turn) != turns;
    }
    return wrong;
}

static double verify(const pl_case *c)
{
    const cores_data *d = c->data;
    double wrong = 0;
    if (which(c) == TOGETHER)
        return wrong_pairs(d);
    if (which(c) == CLOCK)
        for (int i = 0; i < d->threads; i++)
            wrong += !(d->all[i].clock > 0);
    for (int k = 0, lower, upper; which(c) == ALONE && k < cores_pairs_alone(d->threads); k++) {
        cores_pair_alone(d->threads, d->sample, k, &lower, &upper);
        const size_t pair = cores_pair(d->threads, lower, upper);
        wrong += d->answered[pair] + d->silent[pair] < 1;
    }
    return wrong;
}

/* --- the record -------------------------------------------------------------------------------------------------- */

/* How many numbers a sample has. */
static size_t numbers(const pl_case *c)
{
    return which(c) == TOGETHER ? pairs_of(c->threads) : which(c) == ALONE ? 3 * (size_t)cores_pairs_alone(c->threads)
                                                                           : 4 * (size_t)c->threads;
}

static double nanoseconds(const cores_data *d, size_t pair)
{
    return d->answered[pair] ? d->seconds[pair] / (double)d->answered[pair] * 1e9 : NAN;
}

static void sampled(const pl_case *c, int sample, double *row)
{
    cores_data *d = c->data;
    const int me = which(c);
    if (me == TOGETHER)
        for (size_t pair = 0; pair < pairs_of(d->threads); pair++)
            row[pair] = nanoseconds(d, pair);
    else if (me == ALONE)
        for (int k = 0, lower, upper; k < cores_pairs_alone(d->threads); k++) {
            cores_pair_alone(d->threads, d->sample, k, &lower, &upper);
            row[3 * k] = lower;
            row[3 * k + 1] = upper;
            row[3 * k + 2] = nanoseconds(d, cores_pair(d->threads, lower, upper));
        }
    else
        for (int i = 0; i < d->threads; i++) {
            row[i] = d->one[i].clock / 1e6;
            row[d->threads + i] = d->all[i].clock / 1e6;
            row[2 * d->threads + i] = d->one[i].additions;
            row[3 * d->threads + i] = d->all[i].additions;
        }
    d->sample = sample + 1;
}

/* Columns `begin` to `begin + count` of all samples. */
static void write_rows(FILE *f, const char *name, const double *kept, size_t width, size_t begin, size_t count, int samples)
{
    fprintf(f, "\"%s\": [", name);
    for (int sample = 0; sample < samples; sample++) {
        fputs(sample ? ",[" : "[", f);
        for (size_t i = begin; i < begin + count; i++) {
            const double value = kept[(size_t)sample * width + i];
            fprintf(f, isfinite(value) ? "%s%.4g" : "%snull", i > begin ? "," : "", value);
        }
        fputs("]", f);
    }
    fputs("]", f);
}

static void further(const pl_case *c, const double *rows, long passes, int samples, FILE *f)
{
    static const char *const of_clock[] = {"clock_one", "clock_all", "additions_one", "additions_all"};
    const size_t width = numbers(c), threads = (size_t)c->threads;
    fputs("\"cores\": {", f);
    if (which(c) != CLOCK)
        write_rows(f, which(c) == TOGETHER ? "handover" : "alone", rows, width, 0, width, samples);
    for (size_t i = 0; which(c) == CLOCK && i < 4; i++) {
        fputs(i ? ", " : "", f);
        write_rows(f, of_clock[i], rows, width, i * threads, threads, samples);
    }
    fputs("}", f);
}

static const pl_kernel cores = {
    .name = "cores", .title = "a cache line handed from core to core, and the cores' clock; --size is the handovers of a batch",
    .variants = variants, .usual_size = 500, .check = check, .footprint = footprint, .create = create, .touch = touch,
    .plan = plan, .run = run, .work = work, .verify = verify, .poison = poison, .buffers = pl_first_buffers, .destroy = destroy, .facts = facts,
    .numbers = numbers, .sampled = sampled, .further = further,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &cores); }
