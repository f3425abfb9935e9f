/* Cases and their data: which are measured together, what they share, what cannot be measured here. */
#include <stdlib.h>

#include "internal.h"

/* --- data sets -------------------------------------------------------------------------------------------- */

static bool same_data(const pl_case *a, const pl_case *b)
{
    for (int i = 0; a->kernel->parameters && a->kernel->parameters[i].name; i++) {
        const pl_parameter *const p = &a->kernel->parameters[i];
        if ((p->of_data || p->by_turns) && a->parameters[i] != b->parameters[i])
            return false;
    }
    return a->kernel == b->kernel && a->variant->layout == b->variant->layout && a->n == b->n && a->init == b->init &&
           a->alloc == b->alloc && a->pages == b->pages && a->shift == b->shift &&
           (a->threads == b->threads || ((a->init == PL_NOINIT || pl_on_one_node(a->threads > b->threads ? a->threads : b->threads)) &&
                                         a->kernel->footprint(a) == b->kernel->footprint(b)));     /* what each thread has may be its own */
}

static void touch_part(int thread, void *argument)
{
    const pl_case *c = argument;
    c->kernel->touch(c, thread, c->threads);
}

void pl_touch(const pl_case *c)
{
    if (c->init == PL_NOINIT)
        c->kernel->touch(c, 0, 1);
    else
        pl_team(c->threads, touch_part, (void *)c);
}

/* Cases that differ in variant only share their data; static arrays exist once. */
static void check_data(const pl_group *g)
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
    /* What all processes of this node need, whose parts may differ; on several nodes each counts as much as this one. */
    const double available = (double)pl_memory_available();
    const double here = pl_processes.on_node == pl_processes.ranks ? pl_processes.reduce_sum((double)needed) : (double)needed * pl_processes.on_node;
    if (needed && here > 0.9 * available)
        pl_fail("--size %zu: needs %.1f GB in all, of %.1f GB that are free: choose a smaller size or fewer cases at once",
                g->m[g->count - 1].c.n, here / 1e9, available / 1e9);
}

void pl_give_data(pl_group *g)
{
    for (int i = 0; i < g->count; i++) {
        pl_case *c = &g->m[i].c;
        for (int j = 0; j < i && !c->data; j++)
            if (same_data(c, &g->m[j].c))
                c->data = g->m[j].c.data;
        if (c->data)
            continue;
        c->data = c->kernel->create(c);
        pl_touch(c);
    }
}

void pl_take_data(pl_group *g)
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

static void add(pl_group *g, pl_case c, bool is_limit, size_t passes, int number, const pl_options *options)
{
    if (g->count == g->room) {
        g->room = g->room ? 2 * g->room : 32;
        g->m = pl_grow(g->m, (size_t)g->room * sizeof *g->m, "the list of cases");
    }
    pl_measurement *m = &g->m[g->count++];
    *m = (pl_measurement){.c = c, .is_limit = is_limit, .group = number, .samples = options->samples,
                         .passes = (long)passes};
    m->working_set = c.kernel->footprint(&m->c);
    m->seconds = pl_allocate((size_t)options->samples * sizeof *m->seconds, "the samples");
    m->communication = pl_allocate((size_t)options->samples * sizeof *m->communication, "the samples");
    if (c.kernel->numbers)
        m->kept = pl_allocate((size_t)options->samples * c.kernel->numbers(&m->c) * sizeof *m->kept, "the samples");
    for (int moment = 0; moment < PL_MOMENTS; moment++)
        m->probes[moment] = pl_allocate((size_t)options->samples * sizeof *m->probes[moment], "the samples");
    m->cpus = pl_allocate((size_t)(c.threads * pl_processes.ranks) * sizeof *m->cpus, "the list of CPUs");
}

/* The case once more, narrowed to a quarter of the second-level cache, or of the first: a stencil reads rows beside its own.  What it
 * takes is the part of the time that is not spent on data from memory. */
static void add_core(pl_group *g, pl_case c, int number, const pl_options *options)
{
    const size_t level2 = pl_cache_share(&c, 2), cache = level2 ? level2 : pl_cache_share(&c, 1);
    const size_t share = c.kernel->footprint(&c) / (size_t)c.threads;
    enum { LEAST = 16 };    /* below that the data are in a cache anyway */
    if (!c.kernel->narrows || !cache || share / (cache / 4) < LEAST)
        return;
    c.narrowed = (int)(share / (cache / 4));
    add(g, c, false, 0, number, options);
}

/* The limit streams of a thread count, on a working set of the same size as the kernel's. */
static void add_limits(pl_group *g, const pl_case *like, size_t working_set, int number, const pl_options *options)
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

static void clear(pl_group *g)
{
    for (int i = 0; i < g->count; i++) {
        free(g->m[i].seconds);
        free(g->m[i].communication);
        free(g->m[i].kept);
        free(g->m[i].further);
        free(g->m[i].probes[PL_BEFORE]);
        free(g->m[i].probes[PL_AFTER]);
        free(g->m[i].cpus);
    }
    g->count = 0;
}

/* The next combination of the values of the kernel's options whose data do, or do not, differ with them; `at` are the
 * positions in their lists.  False after the last one. */
static bool next_parameters(const pl_kernel *kernel, const pl_options *o, bool of_data, int *at)
{
    for (int i = 0; kernel->parameters && kernel->parameters[i].name; i++) {
        if (kernel->parameters[i].of_data != of_data)
            continue;
        if (++at[i] < o->parameters[i].count)
            return true;
        at[i] = 0;
    }
    return false;
}

static void set_parameters(pl_case *c, const pl_options *o, const int *at)
{
    for (int i = 0; c->kernel->parameters && c->kernel->parameters[i].name; i++)
        c->parameters[i] = o->parameters[i].value[at[i]];
}

/* All cases of one size and one choice of the options that the data differ with. */
static void build(pl_group *g, const pl_kernel *kernel, const pl_options *o, size_t size, int number, int *at)
{
    for (int t = 0; t < o->threads.count; t++) {
        const int threads = o->threads.value[t];
        pl_case c = {.kernel = kernel, .threads = threads, .pages = pl_pages_for(o->pages, threads), .text = o->strings};
        c.n = o->per_thread ? size * (size_t)c.threads : size;
        c.variant = o->variants.value[0];
        set_parameters(&c, o, at);
        if (kernel->elements)
            c.n = kernel->elements(&c);
        if (kernel->check)
            kernel->check(&c);
        if (o->limit)
            add_limits(g, &c, kernel->footprint(&c), number, o);
        do {
            set_parameters(&c, o, at);
            for (int i = 0; i < o->inits.count; i++)
                for (int a = 0; a < o->allocs.count; a++)
                    for (int s = 0; s < (o->allocs.value[a] == PL_DYNAMIC ? o->shifts.count : 1); s++)    /* others lie where they lie */
                        for (int v = 0; v < o->variants.count; v++)
                            for (int p = 0; p < o->passes.count; p++) {
                                c.init = o->inits.value[i];
                                c.alloc = o->allocs.value[a];
                                c.shift = c.alloc == PL_DYNAMIC ? o->shifts.value[s] : 0;
                                c.variant = o->variants.value[v];
                                if (kernel->check)
                                    kernel->check(&c);
                                add(g, c, false, o->passes.value[p], number, o);
                                if (o->limit)
                                    add_core(g, c, number, o);
                            }
        } while (next_parameters(kernel, o, false, at));
    }
}

void pl_each_group(const pl_kernel *kernel, const pl_options *o, void (*use)(pl_group *, const pl_options *, void *),
                   void *argument)
{
    pl_group g = {0};
    int number = 0;
    for (int s = 0; s < o->sizes.count; s++) {
        int at[PL_MAX_PARAMETERS] = {0};
        do {
            build(&g, kernel, o, o->sizes.value[s], number++, at);
            if (kernel->sizes_by_turns && s + 1 < o->sizes.count) {
                number--;
                break;
            }
            use(&g, o, argument);
            clear(&g);
        } while (next_parameters(kernel, o, true, at));
    }
    free(g.m);
}

static void check_group(pl_group *g, const pl_options *o, void *argument) { check_data(g); }

int pl_most_threads(const pl_options *o)
{
    int most = 1;
    for (int t = 0; t < o->threads.count; t++)
        most = o->threads.value[t] > most ? o->threads.value[t] : most;
    return most;
}

/* Everything that may be refused is refused here, before the first record. */
void pl_prepare(const pl_kernel *kernel, const pl_options *o)
{
    pl_each_group(kernel, o, check_group, NULL);
}
