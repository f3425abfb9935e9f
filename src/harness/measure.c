/* The measuring itself: build the cases of a group, calibrate, run them interleaved, verify, report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct {
    int count, room;
    pl_measurement *m;
} group;

/* --- one sample ------------------------------------------------------------------------------------------- */

typedef struct {
    const pl_case *c;
    long passes;
    bool every_pass;
    double *begin, *end;
} timing;

static void timed_part(int thread, void *argument)
{
    const timing *t = argument;
    pl_meet();
    pl_marker_start(t->c);
    t->begin[thread] = pl_now();
    if (t->every_pass)
        for (long pass = 0; pass < t->passes; pass++) {
            t->c->kernel->run(t->c, thread, 1);
            pl_meet();
        }
    else
        t->c->kernel->run(t->c, thread, t->passes);
    t->end[thread] = pl_now();
    pl_marker_stop(t->c);
}

/* Seconds from the first thread's start to the last thread's end. */
static double time_team(const pl_case *c, long passes, bool every_pass)
{
    double begin[c->threads], end[c->threads];
    timing t = {c, passes, every_pass, begin, end};
    pl_team(c->threads, timed_part, &t);
    for (int i = 1; i < c->threads; i++) {
        if (begin[i] < begin[0])
            begin[0] = begin[i];
        if (end[i] > end[0])
            end[0] = end[i];
    }
    return end[0] - begin[0];
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

/* As many passes as the block needs, and the rate of the trials: the shortest of three counts (of two where a single
 * pass is longer than the block), so that a disturbed trial cannot leave a sample too short. */
static void calibrate(pl_measurement *m, const pl_options *options)
{
    long passes = 1;
    for (;;) {
        double shortest = INFINITY;
        for (int trial = 0; trial < 3 && (trial < 2 || shortest < options->block); trial++) {
            const double seconds = time_passes(&m->c, passes, options->every_pass);
            shortest = seconds < shortest ? seconds : shortest;
        }
        m->pass_seconds = shortest / (double)passes;
        if (shortest > 0.1 * options->block) {
            m->passes = (long)ceil(options->block / m->pass_seconds);
            return;
        }
        passes *= shortest > 0.01 * options->block ? 8 : 16;
    }
}

/* --- data sets -------------------------------------------------------------------------------------------- */

static bool same_data(const pl_case *a, const pl_case *b)
{
    for (int i = 0; a->kernel->tuning && a->kernel->tuning[i].name; i++)
        if (a->kernel->tuning[i].of_data && a->tuning[i] != b->tuning[i])
            return false;
    return a->kernel == b->kernel && a->variant->layout == b->variant->layout && a->n == b->n && a->init == b->init &&
           a->alloc == b->alloc && a->pages == b->pages && a->shift == b->shift &&
           (a->threads == b->threads || pl_numa_node_count() == 1);
}

static void touch_part(int thread, void *argument)
{
    const pl_case *c = argument;
    c->kernel->touch(c, thread, c->threads);
}

static void touch_all(const pl_case *c)
{
    if (c->init == PL_NOINIT)
        c->kernel->touch(c, 0, 1);
    else
        pl_team(c->threads, touch_part, (void *)c);
}

/* Cases that differ in variant only share their data; static arrays exist once. */
static void check_data(const group *g)
{
    size_t needed = 0;
    const pl_measurement *uses_static = NULL;
    for (int i = 0; i < g->count; i++) {
        const pl_case *c = &g->m[i].c;
        bool shared = false;
        for (int j = 0; j < i && !shared; j++)
            shared = same_data(c, &g->m[j].c);
        needed += shared ? 0 : g->m[i].working_set;
        if (c->alloc == PL_STATIC) {
            if (uses_static && !same_data(c, &uses_static->c))
                pl_fail("--alloc static: these arrays exist once in a program: give one shift, one initialisation and, where "
                        "there are NUMA nodes, one number of threads");
            uses_static = &g->m[i];
        }
    }
    const size_t available = pl_memory_available();
    if (needed > available / 10 * 9)
        pl_fail("--size %zu: needs %.1f GB in all, of %.1f GB that are free: choose a smaller size or fewer cases at once",
                g->m[g->count - 1].c.n, (double)needed / 1e9, (double)available / 1e9);
}

static void give_data(group *g)
{
    for (int i = 0; i < g->count; i++) {
        pl_case *c = &g->m[i].c;
        for (int j = 0; j < i && !c->data; j++)
            if (same_data(c, &g->m[j].c))
                c->data = g->m[j].c.data;
        if (c->data)
            continue;
        c->data = c->kernel->create(c);
        if (!c->data)
            pl_fail("no memory for %s with %zu elements: choose a smaller size", c->kernel->name, c->n);
        touch_all(c);
    }
}

static void take_data(group *g)
{
    for (int i = 0; i < g->count; i++) {
        void *data = g->m[i].c.data;
        if (!data)
            continue;
        for (int j = i + 1; j < g->count; j++)
            if (g->m[j].c.data == data)
                g->m[j].c.data = NULL;
        g->m[i].c.kernel->destroy(data);
        g->m[i].c.data = NULL;
    }
}

/* --- the cases of a group --------------------------------------------------------------------------------- */

static void add(group *g, pl_case c, bool is_limit, size_t passes, int number, const pl_options *options)
{
    if (g->count == g->room) {
        g->room = g->room ? 2 * g->room : 32;
        g->m = realloc(g->m, (size_t)g->room * sizeof *g->m);
        if (!g->m)
            pl_fail("no memory for the list of cases");
    }
    pl_measurement *m = &g->m[g->count++];
    *m = (pl_measurement){.c = c, .is_limit = is_limit, .group = number, .samples = options->samples,
                         .passes = (long)passes};
    m->working_set = c.kernel->footprint(&m->c);
    m->seconds = pl_allocate((size_t)options->samples * sizeof *m->seconds, "the samples");
    m->cpus = pl_allocate((size_t)c.threads * sizeof *m->cpus, "the list of CPUs");
}

/* The limit streams of a thread count, on a working set of the same size as the kernel's. */
static void add_limits(group *g, const pl_case *like, size_t working_set, int number, const pl_options *options)
{
    for (const pl_variant *v = pl_streams.variants; v->name; v++) {
        pl_case c = *like;
        c.kernel = &pl_streams;
        c.variant = v;
        c.n = working_set / sizeof(double) / 4 * 4;
        c.init = PL_PARINIT;
        c.alloc = PL_DYNAMIC;
        c.shift = 0;
        c.data = NULL;
        if (v->loop && pl_cpu_has(v->isa))
            add(g, c, true, 0, number, options);
    }
}

static void clear(group *g)
{
    for (int i = 0; i < g->count; i++) {
        free(g->m[i].seconds);
        free(g->m[i].cpus);
    }
    g->count = 0;
}

/* The next combination of the values of the kernel's options whose data do, or do not, differ with them; `at` are the
 * positions in their lists.  False after the last one. */
static bool next_tuning(const pl_kernel *kernel, const pl_options *o, bool of_data, int *at)
{
    for (int i = 0; kernel->tuning && kernel->tuning[i].name; i++) {
        if (kernel->tuning[i].of_data != of_data)
            continue;
        if (++at[i] < o->tuning[i].count)
            return true;
        at[i] = 0;
    }
    return false;
}

static void set_tuning(pl_case *c, const pl_options *o, const int *at)
{
    for (int i = 0; c->kernel->tuning && c->kernel->tuning[i].name; i++)
        c->tuning[i] = o->tuning[i].value[at[i]];
}

/* All cases of one size and one choice of the options that the data differ with. */
static void build(group *g, const pl_kernel *kernel, const pl_options *o, size_t size, int number, int *at)
{
    for (int t = 0; t < o->threads.count; t++) {
        pl_case c = {.kernel = kernel, .threads = o->threads.value[t], .pages = o->pages, .text = o->text};
        c.n = o->per_thread ? size * (size_t)c.threads : size;
        c.variant = o->variants.value[0];
        set_tuning(&c, o, at);
        if (kernel->elements)
            c.n = kernel->elements(&c);
        if (kernel->check)
            kernel->check(&c);
        if (o->limit)
            add_limits(g, &c, kernel->footprint(&c), number, o);
        do {
            set_tuning(&c, o, at);
            for (int i = 0; i < o->inits.count; i++)
                for (int a = 0; a < o->allocs.count; a++)
                    for (int s = 0; s < o->shifts.count; s++)
                        for (int v = 0; v < o->variants.count; v++)
                            for (int p = 0; p < o->passes.count; p++) {
                                c.init = o->inits.value[i];
                                c.alloc = o->allocs.value[a];
                                c.shift = o->shifts.value[s];
                                c.variant = o->variants.value[v];
                                if (kernel->check)
                                    kernel->check(&c);
                                add(g, c, false, o->passes.value[p], number, o);
                            }
        } while (next_tuning(kernel, o, false, at));
    }
}

/* --- verification, report --------------------------------------------------------------------------------- */

static void single_pass(int thread, void *argument)
{
    const pl_case *c = argument;
    c->kernel->run(c, thread, 1);
}

static void verify(pl_measurement *m)
{
    pl_case *c = &m->c;
    c->kernel->poison(c);
    if (c->kernel->prepare)
        c->kernel->prepare(c);
    pl_team(c->threads, single_pass, c);
    m->max_error = c->kernel->verify(c);
    m->tolerance = c->kernel->tolerance ? c->kernel->tolerance(c) : 0;
    m->valid = m->max_error <= m->tolerance;    /* not a number is not */
}

static void look_at_threads(pl_measurement *m)
{
    pl_where_threads_run(m->c.threads, m->cpus);
    m->c.level = pl_level_of(m->working_set, m->cpus, m->c.threads);
    m->work = m->c.kernel->work(&m->c);     /* traffic depends on the level */
}

static void look_at_pages(pl_measurement *m)
{
    size_t bytes = 0;
    const void *buffer = m->c.kernel->where(&m->c, &bytes);
    m->pages = pl_look_at_pages(buffer, bytes);
}

/* --- the best limit streams ------------------------------------------------------------------------------- */

enum { KEPT = 3 };

/* In memory only loads, updates and non-temporal stores move what the model says for certain: some processors leave out
 * the write-allocate when memory is saturated (Intel's SpecI2M), and a limit that counts it would be out of reach. */
static bool traffic_is_certain(const pl_measurement *m)
{
    return m->c.level != 0 || m->c.variant->nontemporal || m->work.store_bytes == m->work.updated_bytes;
}

/* Of all streams of a thread count keep the few that come nearest to the limit: the rest would only take time from
 * the rounds. */
static void keep_best_streams(group *g, const pl_options *o)
{
    for (int t = 0; t < o->threads.count; t++) {
        double rate[64];
        int stream[64], streams = 0, kept = 0;
        for (int i = 0; i < g->count; i++)
            if (g->m[i].is_limit && g->m[i].c.threads == o->threads.value[t] && streams < 64) {
                stream[streams] = i;
                rate[streams++] = traffic_is_certain(&g->m[i]) ? pl_traffic(&g->m[i]) / g->m[i].pass_seconds : 0;
            }
        for (; kept < KEPT && kept < streams; kept++) {
            int best = 0;
            for (int s = 1; s < streams; s++)
                if (rate[s] > rate[best])
                    best = s;
            if (rate[best] <= 0)
                break;
            rate[best] = -1;
        }
        for (int s = 0; s < streams; s++)
            if (rate[s] >= 0)
                g->m[stream[s]].dropped = true;
    }
}

/* Complaints on standard error: what a record shows to machines, for people. */
static bool is_wrong(const pl_measurement *m, const pl_options *o)
{
    bool wrong = false;
    if (!m->valid) {
        fprintf(stderr, "plumbline: %s %s, size %zu, %d threads: the result is wrong (error %g): do not use its time\n",
                m->c.kernel->name, m->c.variant->name, m->c.n, m->c.threads, m->max_error);
        wrong = true;
    }
    for (int i = 0; i < m->c.threads && i < o->cpus.count; i++)
        if (m->cpus[i] != o->cpus.value[i]) {
            fprintf(stderr, "plumbline: thread %d ran on CPU %d, asked for CPU %d: check the pinning\n", i, m->cpus[i],
                    o->cpus.value[i]);
            wrong = true;
        }
    return wrong;
}

static int run_group(group *g, const pl_options *o)
{
    bool wrong = false, heading = true;
    give_data(g);
    for (int i = 0; i < g->count; i++) {
        if (!g->m[i].passes)
            calibrate(&g->m[i], o);
        look_at_threads(&g->m[i]);
    }
    if (o->limit)
        keep_best_streams(g, o);
    for (int round = 0; round < o->samples; round++)
        for (int i = 0; i < g->count; i++) {
            pl_measurement *m = &g->m[i];
            if (m->dropped)
                continue;
            /* The case before has had the caches: one pass untimed brings this one's data back. */
            if (m->c.level != 0 && !m->c.kernel->prepare)
                time_passes(&m->c, 1, o->every_pass);
            m->seconds[round] = time_passes(&m->c, m->passes, o->every_pass);
        }
    for (int i = 0; i < g->count; i++) {
        if (g->m[i].dropped)
            continue;
        look_at_threads(&g->m[i]);
        look_at_pages(&g->m[i]);
        verify(&g->m[i]);
        pl_write_record(&g->m[i], o);
        if (o->table)
            pl_write_table(&g->m[i], heading);
        heading = false;
        fflush(stdout);
        wrong |= is_wrong(&g->m[i], o);
    }
    take_data(g);
    clear(g);
    return wrong;
}

/* Everything that may be refused is refused here, before the first record. */
void pl_prepare(const pl_kernel *kernel, const pl_options *o)
{
    group g = {0};
    int most = 1;
    for (int t = 0; t < o->threads.count; t++)
        most = o->threads.value[t] > most ? o->threads.value[t] : most;
    pl_team_open(most);
    for (int s = 0; s < o->sizes.count; s++) {
        int at[PL_MAX_TUNING] = {0};
        do {
            build(&g, kernel, o, o->sizes.value[s], s, at);
            check_data(&g);
            clear(&g);
        } while (next_tuning(kernel, o, true, at));
    }
    free(g.m);
}

/* 0, or 1 if a result is wrong or a thread ran elsewhere than asked: the records are written all the same. */
int pl_measure(const pl_kernel *kernel, const pl_options *o)
{
    group g = {0};
    int wrong = 0, number = 0;
    for (int s = 0; s < o->sizes.count; s++) {
        int at[PL_MAX_TUNING] = {0};
        do {
            build(&g, kernel, o, o->sizes.value[s], number++, at);
            wrong |= run_group(&g, o);
        } while (next_tuning(kernel, o, true, at));
    }
    free(g.m);
    return wrong;
}
