/* The data of a chase: its nodes, the run through them, the proof that it took place. */
#include <math.h>
#include <stdlib.h>

#include "kernel.h"

/* Chains that verification follows at once. */
enum { CHAINS = 16 };

chase_chain *chase_create(const pl_case *c, size_t stride, size_t (*offset)(size_t, size_t), size_t bytes, size_t shift,
                          size_t loads)
{
    chase_chain *x = pl_allocate(sizeof *x, "the chase");
    x->n = c->n;
    x->stride = stride;
    x->offset = offset;
    x->loads = loads;
    x->buffers = pl_buffers_create(c, 1, &bytes, &shift);
    x->nodes = x->buffers->at[0];
    return x;
}

pl_work chase_work(const pl_case *c)
{
    const double loads = (double)((chase_chain *)c->data)->loads;
    return (pl_work){.load_bytes = 8 * loads, .fetched_bytes = (c->level == 1 ? 8 : PL_LINE) * loads,
                     .source = "one load of 8 bytes per line; beyond L1 a line of 64 bytes is fetched for each"};
}

void chase_destroy(void *data)
{
    chase_chain *x = data;
    pl_buffers_destroy(x->buffers);
    free(x->further);
    free(x);
}

void **chase_node(const chase_chain *x, size_t i) { return (void **)(x->nodes + x->offset(i, x->stride)); }

void chase_touch(const pl_case *c, int thread, int threads)
{
    chase_chain *x = c->data;
    if (thread > 0)
        return;     /* one: it alone follows them */
    uint32_t *next = pl_allocate(x->n * sizeof *next, "the order of the chase");
    chase_cycle(x->n, next);
    for (size_t i = 0; i < x->n; i++)
        *chase_node(x, i) = chase_node(x, next[i]);
    free(next);
    x->begin = x->middle = x->end = chase_node(x, 0);
}

/* In two halves: a pass ends where it began, and would do so as well if it did not take place. */
void chase_run(const pl_case *c, const pl_plan *p)
{
    chase_chain *x = c->data;
    chase_loop *const follow = (chase_loop *)p->loop;
    if (p->thread > 0)
        return;
    x->begin = x->end;
    x->middle = follow(x->begin, x->loads / 2);
    x->end = follow(x->middle, x->loads - x->loads / 2);
}

void chase_poison(const pl_case *c)
{
    chase_chain *x = c->data;
    x->end = x->end ? x->end : chase_node(x, 0);
    x->middle = NULL;
}

/* Number of the node at an address; n if there is none. */
static size_t number_of(const chase_chain *x, const void *p)
{
    const size_t offset = (size_t)((const char *)p - x->nodes);
    const size_t i = offset / (x->offset == chase_strided ? x->stride : PL_LINE);
    return i < x->n && x->offset(i, x->stride) == offset ? i : x->n;
}

/* Follows the pointers from several starts at once, each until it comes to a start: true if all of them together visit
 * every node once, and the starts themselves form one cycle. */
static bool is_one_cycle(const chase_chain *x)
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
            at[k] = number_of(x, *chase_node(x, at[k]));
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
double chase_verify(const pl_case *c)
{
    const chase_chain *x = c->data;
    size_t at = number_of(x, x->begin);
    if (at == x->n || !is_one_cycle(x))
        return INFINITY;
    for (size_t load = 0; load < x->loads; load++) {
        if (load == x->loads / 2 && x->middle != chase_node(x, at))
            return INFINITY;
        at = number_of(x, *chase_node(x, at));
    }
    return x->end == chase_node(x, at) ? 0 : INFINITY;
}
