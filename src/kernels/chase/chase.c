/* The pointer chase as the runtime sees it: its layouts, its data, its model, its verification. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel.h"

enum { DENSE, STRIDED };

static const pl_variant variants[] = {
    {"dense", .layout = DENSE, .loop = (pl_loop)chase_follow, .about = "one pointer per line, line after line"},
    {"strided", .layout = STRIDED, .loop = (pl_loop)chase_follow, .about = "as many lines, --stride bytes apart"},
    {0},
};

static const pl_tuning tuning[] = {
    [CHASE_STRIDE] = {"stride", 4096, PL_LINE, "bytes between the nodes of strided", .of_data = true},
    {0},
};

/* A pass is one round of all lines, or as many loads as this: further passes go on from there. */
enum { LOADS_OF_A_PASS = 1 << 16 };

/* Chains that verification follows at once. */
enum { CHAINS = 16 };

typedef struct {
    pl_buffers *buffers;
    char *nodes;
    size_t n, stride;
    size_t (*offset)(size_t i, size_t stride);
    void *begin, *middle, *end;     /* of the last pass */
} chain;

static size_t bytes_of(const pl_case *c)
{
    return c->n * (c->variant->layout == STRIDED ? (size_t)c->tuning[CHASE_STRIDE] : PL_LINE);
}

static size_t loads_of(const pl_case *c) { return c->n < LOADS_OF_A_PASS ? c->n : LOADS_OF_A_PASS; }

/* What the chase keeps in the caches: a line of each node, however far apart. */
static size_t footprint(const pl_case *c) { return c->n * PL_LINE; }

/* Each node touches a page of its own at most. */
static void check(const pl_case *c)
{
    const size_t stride = (size_t)c->tuning[CHASE_STRIDE];
    const size_t page = c->pages == PL_HUGE ? 2 << 20 : (size_t)sysconf(_SC_PAGESIZE);
    const double needed = (double)c->n * (double)(stride < page ? stride : page);
    const double available = (double)pl_memory_available();
    if (c->n > UINT32_MAX)
        pl_fail("--size %zu: a chase has at most %u lines: choose a smaller size", c->n, UINT32_MAX);
    if (c->variant->layout == STRIDED && needed > 0.9 * available)
        pl_fail("--size %zu: with --stride %zu its pages need %.1f GB, of %.1f GB that are free: choose a smaller size or "
                "stride", c->n, stride, needed / 1e9, available / 1e9);
}

static void *create(const pl_case *c)
{
    chain *x = pl_allocate(sizeof *x, "the chase");
    x->n = c->n;
    x->stride = (size_t)c->tuning[CHASE_STRIDE];
    x->offset = c->variant->layout == STRIDED ? chase_strided : chase_dense;
    /* Node 0 of strided lies at a multiple of the stride, as far as that is a power of two. */
    const size_t bytes = bytes_of(c), shift = c->variant->layout == STRIDED && x->stride > 4096 ? x->stride - 4096 : 0;
    x->buffers = pl_buffers_create(c, 1, &bytes, &shift);
    if (!x->buffers) {
        free(x);
        return NULL;
    }
    x->nodes = x->buffers->at[0];
    return x;
}

static void destroy(void *data)
{
    chain *x = data;
    if (x)
        pl_buffers_destroy(x->buffers);
    free(x);
}

static void **node(const chain *x, size_t i) { return (void **)(x->nodes + x->offset(i, x->stride)); }

static void touch(const pl_case *c, int thread, int threads)
{
    chain *x = c->data;
    (void)thread, (void)threads;    /* one: see most_threads */
    uint32_t *next = pl_allocate(x->n * sizeof *next, "the order of the chase");
    chase_cycle(x->n, next);
    for (size_t i = 0; i < x->n; i++)
        *node(x, i) = node(x, next[i]);
    free(next);
    x->begin = x->middle = x->end = node(x, 0);
}

/* In two halves: a pass ends where it began, and would do so as well if it did not take place. */
static void run(const pl_case *c, const pl_plan *p)
{
    chain *x = c->data;
    chase_loop *const follow = (chase_loop *)p->loop;
    const size_t loads = loads_of(c);
    x->begin = x->end;
    x->middle = follow(x->begin, loads / 2);
    x->end = follow(x->middle, loads - loads / 2);
}

static pl_work work(const pl_case *c)
{
    const double loads = (double)loads_of(c);
    return (pl_work){.load_bytes = 8 * loads, .fetched_bytes = (c->level == 1 ? 8 : PL_LINE) * loads,
                     .source = "one load of 8 bytes per line; beyond L1 a line of 64 bytes is fetched for each"};
}

static void poison(const pl_case *c)
{
    chain *x = c->data;
    x->end = x->end ? x->end : node(x, 0);
    x->middle = NULL;
    pl_buffers_set_guards(x->buffers);
}

/* Number of the node at an address; n if there is none. */
static size_t number_of(const chain *x, const void *p)
{
    const size_t offset = (size_t)((const char *)p - x->nodes);
    const size_t i = offset / (x->offset == chase_strided ? x->stride : PL_LINE);
    return i < x->n && x->offset(i, x->stride) == offset ? i : x->n;
}

/* Follows the pointers from several starts at once, each until it comes to a start: true if all of them together visit
 * every node once, and the starts themselves form one cycle. */
static bool is_one_cycle(const chain *x)
{
    const size_t chains = x->n < CHAINS ? x->n : CHAINS;
    size_t at[CHAINS], next_start[CHAINS] = {0}, visited = 0, running = chains;
    unsigned char *seen = pl_allocate(x->n, "the visits of the chase");
    enum { VISITED = 1, START = 2 };
    bool right = true;
    for (size_t k = 0; k < chains; k++) {
        at[k] = k * x->n / chains;
        seen[at[k]] = START;
        next_start[k] = chains;
    }
    while (right && running)
        for (size_t k = 0; k < chains; k++) {
            if (next_start[k] < chains)
                continue;
            if (seen[at[k]] & VISITED) {
                right = false;
                break;
            }
            seen[at[k]] |= VISITED;
            visited++;
            at[k] = number_of(x, *node(x, at[k]));
            if (at[k] == x->n) {
                right = false;
                break;
            }
            if (seen[at[k]] & START) {
                for (next_start[k] = 0; next_start[k] * x->n / chains != at[k];)
                    next_start[k]++;
                running--;
            }
        }
    size_t start = 0, starts = 0;
    do
        start = right ? next_start[start] : 0;
    while (right && ++starts < chains && start != 0);
    free(seen);
    return right && visited == x->n && starts == chains && start == 0;
}

/* The pointers form one cycle through all lines, and the pass was where it leads to after half of its loads and all. */
static double verify(const pl_case *c)
{
    const chain *x = c->data;
    const size_t loads = loads_of(c);
    size_t at = number_of(x, x->begin);
    if (!pl_buffers_guards_intact(x->buffers) || at == x->n || !is_one_cycle(x))
        return INFINITY;
    for (size_t load = 0; load < loads; load++) {
        if (load == loads / 2 && x->middle != node(x, at))
            return INFINITY;
        at = number_of(x, *node(x, at));
    }
    return x->end == node(x, at) ? 0 : INFINITY;
}

static const void *where(const pl_case *c, size_t *bytes)
{
    const chain *x = c->data;
    *bytes = bytes_of(c);
    return x->nodes;
}

static const pl_kernel chase = {
    .name = "chase", .title = "p = *p: dependent loads in a random cycle", .variants = variants, .tuning = tuning,
    .most_threads = 1, .check = check, .footprint = footprint, .create = create, .touch = touch, .run = run, .work = work,
    .verify = verify,
    .poison = poison, .where = where, .destroy = destroy,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &chase); }
