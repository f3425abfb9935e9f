/* How much of the caches is there: a pointer chase over many sizes by turns, each when its lines have been visited before, in the
 * order of the chase itself, until that gets no faster.
 *
 * So each load of a sample needs the line that was used the longest ago, and the distance is the size: latency rises where a
 * cache ends, whatever stood in it before.  Once is not enough: caches that guess which lines will be used again (Jaleel et
 * al., ISCA 2010) let new lines in one visit after the other.  What is timed is a small part of the cycle, another one in
 * each pass.  The visits begin at the chase's own pace, since of a cache that others use, too, a fast program holds more than a
 * slow one: lines that are not used for long are taken from it.  The end of a long one is fast, by several chains at once.
 * One thread chases.  The others are there for the probes: the state of the machine is that of the whole team. */
#include <math.h>
#include <stdlib.h>

#include "kernel.h"

static const pl_variant variants[] = {
    {"resident", .loop = (pl_loop)chase_follow, .about = "all lines visited in order before each pass"},
    {0},
};

/* A pass has so many loads at least, of few lines (which are near) more.  Of more lines than it has loads it is one or more of the
 * parts of the cycle, of others whole rounds, an odd number: half of them does not end where they begin. */
enum { LOADS = 1 << 14, FEW_LINES = 1 << 11, LOADS_OF_FEW_LINES = 1 << 16, PARTS = 256, CHAINS = 16 };

/* Visits before a pass: as many as make them faster, these at least where the lines could be in a cache; else one. */
enum { FEWEST_VISITS = 3, MOST_VISITS = 20 };
static const double faster = 0.97;      /* ... than the one before the last one */
static const double slowly = 4e-3;      /* seconds of a visit at the chase's own pace */

typedef struct {
    void *part[PARTS];  /* where each begins */
    int timed, next;    /* how many of them are a pass; the first of the pass */
} tour;

static bool in_parts(size_t n) { return n > LOADS; }

static size_t elements(const pl_case *c) { return in_parts(c->n) ? c->n / PARTS * PARTS : c->n; }

static size_t footprint(const pl_case *c) { return c->n * PL_LINE; }

static void check(const pl_case *c)
{
    if (c->n > UINT32_MAX)
        pl_fail("--size %zu: a chase has at most %u lines: choose a smaller size", c->n, UINT32_MAX);
}

static int timed_parts(size_t n) { return (int)((LOADS - 1) / (n / PARTS) + 1); }

static size_t loads_of(size_t n)
{
    const size_t least = n > FEW_LINES ? LOADS : LOADS_OF_FEW_LINES;
    return in_parts(n) ? (size_t)timed_parts(n) * (n / PARTS) : (((least - 1) / n + 1) | 1) * n;
}

static void *create(const pl_case *c)
{
    chase_chain *x = chase_create(c, PL_LINE, chase_dense, c->n * PL_LINE, 0, loads_of(c->n));
    if (x && in_parts(x->n)) {
        tour *t = x->further = pl_allocate(sizeof *t, "the parts of the chase");
        t->timed = timed_parts(x->n);
    }
    return x;
}

/* Any order will do, so the permutation is the order: where each part begins is known without following the chase. */
static void touch(const pl_case *c, int thread, int threads)
{
    chase_chain *x = c->data;
    if (thread > 0)
        return;
    uint32_t *order = pl_allocate(x->n * sizeof *order, "the order of the chase");
    chase_cycle(x->n, order);
    for (size_t i = 0; i < x->n; i++)
        *chase_node(x, order[i]) = chase_node(x, order[i + 1 < x->n ? i + 1 : 0]);
    tour *t = x->further;
    for (size_t part = 0; t && part < PARTS; part++)
        t->part[part] = chase_node(x, order[part * (x->n / PARTS)]);
    x->end = chase_node(x, order[0]);
    free(order);
}

/* The parts from `first` to the last one, CHAINS at once; chains that end too early begin a little later instead. */
static void visit(const tour *t, int first, size_t loads_of_part)
{
    const int parts = (PARTS - first + CHAINS - 1) / CHAINS;
    void *at[CHAINS];
    for (int k = 0; k < CHAINS; k++) {
        const int begin = PARTS - (CHAINS - k) * parts;
        at[k] = t->part[(t->next + (begin > first ? begin : first)) % PARTS];
    }
    for (size_t load = 0; load < (size_t)parts * loads_of_part; load++)
        for (int k = 0; k < CHAINS; k++)
            at[k] = *(void **)at[k];
    for (int k = 0; k < CHAINS; k++)
        __asm__ volatile("" : : "r"(at[k]));
}

/* All lines, those of the next pass first; seconds. */
static double go_round(chase_chain *x, chase_loop *follow)
{
    const tour *t = x->further;
    const double begin = pl_now();
    if (!t) {
        x->end = follow(x->end, x->n);
        return pl_now() - begin;
    }
    int part = 0;
    for (x->end = t->part[t->next]; part < PARTS && (part < t->timed || pl_now() - begin < slowly); part++)
        x->end = follow(x->end, x->n / PARTS);
    if (part < PARTS)
        visit(t, part, x->n / PARTS);
    x->end = t->part[t->next];
    return pl_now() - begin;
}

static size_t largest_cache(const pl_case *c)
{
    pl_case alone = *c;
    alone.threads = 1;
    size_t largest = pl_is_virtual()[0] == 'y' ? (size_t)256 << 20 : 0;     /* the topology may say too little there */
    for (int level = 1; level <= 3; level++)
        largest = pl_cache_share(&alone, level) > largest ? pl_cache_share(&alone, level) : largest;
    return largest;
}

static void prepare(const pl_case *c)
{
    chase_chain *x = c->data;
    chase_loop *const follow = (chase_loop *)c->variant->loop;
    const int fewest = footprint(c) > largest_cache(c) ? 1 : FEWEST_VISITS;
    tour *t = x->further;
    double last = INFINITY, before = INFINITY;
    if (t)
        t->next = (t->next + t->timed) % PARTS;
    for (int visits = 1; visits <= MOST_VISITS; visits++) {
        const double seconds = go_round(x, follow);
        if (visits >= fewest && (fewest == 1 || seconds > faster * before))
            break;
        before = last;
        last = seconds;
    }
}

static const pl_kernel capacity = {
    .name = "capacity", .title = "a chase over many sizes by turns: where the caches end", .variants = variants, .check = check,
    .elements = elements, .footprint = footprint, .create = create, .touch = touch, .run = chase_run, .work = chase_work,
    .verify = chase_verify, .poison = chase_poison, .buffers = pl_first_buffers,
    .destroy = chase_destroy, .prepare = prepare, .sizes_by_turns = true,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &capacity); }
