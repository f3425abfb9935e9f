/* The measuring itself: calibrate the cases of a group, run them interleaved, verify, report. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* --- one sample ------------------------------------------------------------------------------------------- */

typedef struct {
    const pl_case *c;
    long passes;
    bool every_pass;
    double *begin, *end;
} timing;

/* Of a kernel that opens a region in each pass: by the first thread alone, for all elements. */
static pl_plan whole_plan(const pl_case *c)
{
    pl_plan plan = pl_plan_of(c, 0);
    plan.part.end = c->n;
    return plan;
}

static void none(int thread, void *argument) {}

static double time_regions(const pl_case *c, long passes)
{
    const pl_plan plan = whole_plan(c);
    void (*const run)(const pl_case *, const pl_plan *) = c->kernel->run;
    pl_team(c->threads, none, NULL);    /* what a runtime takes to have so many threads at all is none of a pass */
    pl_set_region_threads(c->threads);
    const double begin = pl_now();
    for (long pass = 0; pass < passes; pass++)
        run(c, &plan);
    return pl_now() - begin;
}

static void timed_part(int thread, void *argument)
{
    const timing *t = argument;
    const pl_case *const c = t->c;
    const long passes = t->passes;
    const bool every_pass = t->every_pass;
    const pl_plan plan = pl_plan_of(c, thread);
    void (*const run)(const pl_case *, const pl_plan *) = c->kernel->run;
    pl_barrier();
    pl_marker_start(c);
    t->begin[thread] = pl_now();
    for (long pass = 0; pass < passes; pass++) {
        run(c, &plan);
        if (every_pass)
            pl_barrier();
    }
    t->end[thread] = pl_now();
    pl_marker_stop(c);
}

/* Seconds from the first thread's start to the last thread's end, on the slowest process. */
static double time_team(const pl_case *c, long passes, bool every_pass)
{
    const int threads = c->threads;
    double begin[threads], end[threads];
    timing t = {c, passes, every_pass, begin, end};
    pl_processes.barrier();
    if (c->variant->forks)
        return pl_processes.reduce_max(time_regions(c, passes));
    pl_team(threads, timed_part, &t);
    for (int i = 1; i < threads; i++) {
        if (begin[i] < begin[0])
            begin[0] = begin[i];
        if (end[i] > end[0])
            end[0] = end[i];
    }
    return pl_processes.reduce_max(end[0] - begin[0]);
}

/* A kernel that prepares its passes has each of them timed on its own. */
static double time_passes(const pl_case *c, long passes, bool every_pass)
{
    if (!c->kernel->prepare)
        return time_team(c, passes, every_pass);
    double sum = 0;
    for (long pass = 0; pass < passes; pass++) {
        c->kernel->prepare(c);
        sum += time_team(c, 1, every_pass);
    }
    return sum;
}

/* Processes that wait for each other lose whole time slices of a busy machine, and may do so in every one of a few trials:
 * more trials, for as long as they take no longer than some slices. */
enum { TRIALS = 5 };
static const double slices = 0.05;

/* A sample may be shorter than its block by this factor. */
enum { LONG_ENOUGH = 4 };

/* Of all processes: they must agree on the number of passes. */
static double clock_step(void)
{
    static double step;
    return step > 0 ? step : (step = pl_processes.reduce_max(pl_clock_resolution()));
}

/* Of a narrowed case shorter samples do: nothing of it is as noisy as memory.  Of any the clock must tell those that lengthen() leaves. */
static double block_of(const pl_measurement *m, const pl_options *o)
{
    return fmax(m->c.narrowed > 1 ? o->min_time / 4 : o->min_time, LONG_ENOUGH * PL_TICKS * clock_step());
}

/* As many passes as the block needs, and the rate of the trials: the shortest of three counts (of two where a single
 * pass is longer than the block), so that a disturbed trial cannot leave a sample too short. */
static void calibrate(pl_measurement *m, const pl_options *options)
{
    const double block = block_of(m, options);
    const bool many = pl_processes.ranks > 1;
    long passes = 1;
    for (;;) {
        double shortest = INFINITY, spent = 0;
        for (int trial = 0; trial < (many ? TRIALS : 3) && (trial < 2 || shortest < block || (many && spent < slices));
             trial++) {
            const double seconds = time_passes(&m->c, passes, options->every_pass);
            shortest = seconds < shortest ? seconds : shortest;
            spent += seconds;
        }
        m->pass_seconds = shortest / (double)passes;
        if (shortest > 0.1 * block) {
            m->passes = (long)ceil(block / m->pass_seconds);
            return;
        }
        if (passes > LONG_MAX / 16) {
            pl_tell_wrong("the passes cannot all have taken place");
            pl_fail("%s %s, size %zu: %ld passes take no longer than %g s: they cannot all have taken place: do not use this "
                    "build", m->c.kernel->name, m->c.variant->name, m->c.n, passes, shortest);
        }
        passes *= shortest > 0.01 * block ? 8 : 16;
    }
}

/* --- verification, report --------------------------------------------------------------------------------- */

/* Outside LIKWID's markers: a region's calls are of samples, which all do the same work. */
static void unmarked_pass(int thread, void *argument)
{
    const pl_case *c = argument;
    const pl_plan plan = pl_plan_of(c, thread);
    pl_barrier();
    c->kernel->run(c, &plan);
}

typedef struct { const pl_case *c; double *worst; } verification;

static void verified_part(int thread, void *argument)
{
    const verification *v = argument;
    v->worst[thread] = v->c->kernel->verify_part(v->c, thread);
}

static double worst_of_team(const pl_case *c)
{
    double of[c->threads], worst = pl_guards_intact(c) ? 0 : INFINITY;
    if (c->kernel->verify)
        worst = pl_worse(worst, c->kernel->verify(c));
    if (!c->kernel->verify_part)
        return worst;
    pl_team(c->threads, verified_part, &(verification){c, of});
    for (int thread = 0; thread < c->threads; thread++)
        worst = pl_worse(worst, of[thread]);
    return worst;
}

static void verify(pl_measurement *m)
{
    const pl_case *c = &m->c;
    if (c->kernel->refresh)
        pl_touch(c);
    if (c->kernel->poison)
        c->kernel->poison(c);
    pl_set_guards(c);
    if (c->kernel->prepare)
        c->kernel->prepare(c);
    if (c->variant->forks)
        time_regions(c, 1);
    else
        pl_team(c->threads, unmarked_pass, (void *)c);
    m->max_error = pl_processes.reduce_max(worst_of_team(c));
    m->tolerance = c->kernel->tolerance ? c->kernel->tolerance(c) : 0;
    m->valid = m->max_error <= m->tolerance;    /* not a number is not */
}

static void look_at_threads(pl_measurement *m)
{
    const int threads = m->c.threads, ranks = pl_processes.ranks;
    int here[threads], all[ranks], node[ranks], beside[ranks * threads], count = 1;
    pl_where_threads_run(threads, here);
    for (int i = 0; i < threads; i++) {
        pl_processes.allgather(here[i], all);
        for (int rank = 0; rank < ranks; rank++)
            m->cpus[rank * threads + i] = all[rank];
    }
    pl_processes.allgather(pl_processes.node, node);
    memcpy(beside, here, sizeof here);
    for (int rank = 0; rank < ranks; rank++)
        if (rank != pl_processes.rank && node[rank] == pl_processes.node)
            memcpy(beside + threads * count++, m->cpus + rank * threads, sizeof here);
    /* Nodes and working sets may differ, but what follows from the level, the farthest, is done by all or none. */
    enum { MEMORY = 4 };
    const size_t largest = (size_t)pl_processes.reduce_max((double)m->working_set);
    const int level = pl_level_of(largest, beside, threads, count);
    m->c.level = (int)pl_processes.reduce_max(level ? level : MEMORY) % MEMORY;
    if (m->c.narrowed > 1)
        m->c.level = pl_cache_share(&m->c, 2) ? 2 : 1;
    pl_case whole = m->c;
    whole.narrowed = 0;
    m->work = m->c.kernel->work(&whole);    /* traffic depends on the level */
    if (m->c.narrowed > 1) {
        const double done = pl_narrowed_to(&m->c);
        double *const amounts[] = {&m->work.load_bytes, &m->work.store_bytes, &m->work.flops, &m->work.fetched_bytes,
                                   &m->work.written_bytes, &m->work.updated_bytes};
        for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
            *amounts[i] *= done;
        m->working_set = (size_t)(done * (double)m->c.kernel->footprint(&whole));
    }
}

static void look_at_pages(pl_measurement *m)
{
    size_t bytes = 0;
    const void *buffer = pl_extent(&m->c, &bytes);
    m->pages = pl_look_at_pages(buffer, bytes);
}

/* Complaints on standard error: what a record shows to machines, for people. */
static bool is_wrong(const pl_measurement *m, const pl_options *o)
{
    const bool writes = pl_processes.rank == 0;
    bool wrong = false;
    if (!m->valid) {
        if (writes)
            fprintf(stderr, "plumbline: %s %s, size %zu, %d %s: the result is wrong (error %g): do not use its time%s%s\n",
                    m->c.kernel->name, m->c.variant->name, m->c.n, m->c.threads * pl_processes.ranks,
                    pl_processes.ranks > 1 ? "ranks" : "threads", m->max_error, m->c.variant->flags ? "; compiled with " : "",
                    m->c.variant->flags ? m->c.variant->flags : "");
        wrong = true;
    }
    for (int i = 0; i < m->c.threads * pl_processes.ranks && i < o->cpus.count; i++)
        if (m->cpus[i] != o->cpus.value[i]) {
            if (writes)
                fprintf(stderr, "plumbline: %s %d ran on CPU %d, asked for CPU %d: check the pinning\n",
                        pl_processes.ranks > 1 ? "rank" : "thread", i, m->cpus[i], o->cpus.value[i]);
            wrong = true;
        }
    return wrong;
}

/* One repetition of a case, and the mean over the processes of what they spent in communication meanwhile. */
static void sample(pl_measurement *m, int round, bool every_pass)
{
    double (*const communication)(const pl_case *) = m->c.kernel->communication;
    if (communication)
        communication(&m->c);
    pl_probe(m, PL_BEFORE, round);
    m->seconds[round] = time_passes(&m->c, m->passes, every_pass);
    pl_probe(m, PL_AFTER, round);
    pl_note_waiting(m->c.threads);
    if (communication)
        m->communication[round] = pl_processes.reduce_sum(communication(&m->c)) / pl_processes.ranks;
    if (m->c.kernel->sampled)
        m->c.kernel->sampled(&m->c, round, m->kept ? m->kept + (size_t)round * m->c.kernel->numbers(&m->c) : NULL);
}

static void write_further(pl_measurement *m)
{
    size_t length;
    FILE *const f = pl_processes.rank ? NULL : open_memstream(&m->further, &length);
    if (!f && pl_processes.rank == 0)
        pl_fail("no memory for the record of %s", m->c.kernel->name);
    m->c.kernel->further(&m->c, m->kept, m->passes, m->samples, f);
    if (f)
        fclose(f);
}

enum { MOST_CORRECTIONS = 5 };

/* A calibration that was disturbed for its whole time leaves samples far too short, as where processes that wait for each
 * other share a CPU with somebody else's.  Whether there are more passes now. */
static bool lengthen(pl_measurement *m, double seconds, double block)
{
    if (seconds > block / LONG_ENOUGH)
        return false;
    m->passes = (long)ceil((double)m->passes * block / seconds);
    return true;
}

/* The case before has had the caches: one pass untimed brings this one's data back. */
static void warm(const pl_measurement *m, const pl_options *o)
{
    if (m->c.level != 0 && !m->c.kernel->prepare)
        time_passes(&m->c, 1, o->every_pass);
}

/* Streams are compared as they are measured, by turns: one that had the machine to itself while it was calibrated was taken for the
 * fastest, and had half of the rate afterwards. */
static void compare_streams(pl_group *g, const pl_options *o)
{
    enum { ROUNDS = 3 };
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < g->count; i++)
            if (g->m[i].is_limit) {
                warm(&g->m[i], o);
                g->m[i].seconds[round] = time_passes(&g->m[i].c, g->m[i].passes, o->every_pass);
            }
    for (int i = 0; i < g->count; i++)
        if (g->m[i].is_limit) {
            const double *s = g->m[i].seconds, median = fmax(fmin(s[0], s[1]), fmin(fmax(s[0], s[1]), s[2]));
            g->m[i].pass_seconds = median / (double)g->m[i].passes;
        }
}

static void run_group(pl_group *g, const pl_options *o, void *argument)
{
    int *const wrong = argument;
    bool heading = true;
    pl_give_data(g);
    const bool chosen = o->limit && pl_read_choice(g, o);
    for (int i = 0; i < g->count; i++) {
        if (g->m[i].dropped)
            continue;
        if (!g->m[i].passes) {
            calibrate(&g->m[i], o);
            g->m[i].calibrated = true;
        }
        look_at_threads(&g->m[i]);
    }
    if (o->limit && !chosen) {
        compare_streams(g, o);
        pl_choose_streams(g, o);
    }
    for (int round = 0, again = 0; round < o->samples; round++) {
        bool too_short = false;
        for (int i = 0; i < g->count; i++) {
            pl_measurement *m = &g->m[i];
            if (m->dropped)
                continue;
            warm(m, o);
            sample(m, round, o->every_pass);
            too_short |= m->calibrated && again < MOST_CORRECTIONS && lengthen(m, m->seconds[round], block_of(m, o));
        }
        if (too_short) {
            again++;
            round = -1;
        }
    }
    for (int i = 0; i < g->count; i++) {
        if (g->m[i].dropped)
            continue;
        look_at_threads(&g->m[i]);
        if (g->m[i].c.narrowed > 1) {   /* the same loop as the case before, which is verified whole */
            g->m[i].valid = g->m[i - 1].valid;
            g->m[i].max_error = g->m[i - 1].max_error;
            g->m[i].tolerance = g->m[i - 1].tolerance;
        } else
            verify(&g->m[i]);
        look_at_pages(&g->m[i]);    /* all were just visited: NUMA balancing hides those that wait */
        if (g->m[i].c.kernel->further)
            write_further(&g->m[i]);
        pl_gather_probes(&g->m[i]);
        if (pl_processes.rank == 0) {
            pl_write_record(&g->m[i], o);
            if (o->table)
                pl_write_table(&g->m[i], heading);
            heading = false;
            fflush(stdout);
        }
        *wrong |= is_wrong(&g->m[i], o);
    }
    pl_take_data(g);
}

/* 0, or 1 if a result is wrong or a thread ran elsewhere than asked: the records are written all the same. */
int pl_measure(const pl_kernel *kernel, const pl_options *o)
{
    int wrong = 0;
    pl_each_group(kernel, o, run_group, &wrong);
    return wrong;
}
