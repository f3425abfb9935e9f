/* The pointer chase as the runtime sees it: its layouts, its model. */
#include <unistd.h>

#include "kernel.h"

enum { DENSE, STRIDED };

static const pl_variant variants[] = {
    {"dense", .layout = DENSE, .loop = (pl_loop)chase_follow, .about = "one pointer per line, line after line"},
    {"strided", .layout = STRIDED, .loop = (pl_loop)chase_follow, .about = "as many lines, --stride bytes apart"},
    {0},
};

static const pl_parameter parameters[] = {
    [CHASE_STRIDE] = {"stride", 4096, PL_LINE, "bytes between the nodes of strided", .of_data = true},
    {0},
};

/* A pass is one round of all lines, or as many loads as this: further passes go on from there. */
enum { LOADS_OF_A_PASS = 1 << 16 };

static size_t bytes_of(const pl_case *c)
{
    return c->n * (c->variant->layout == STRIDED ? (size_t)c->parameters[CHASE_STRIDE] : PL_LINE);
}

static size_t loads_of(const pl_case *c) { return c->n < LOADS_OF_A_PASS ? c->n : LOADS_OF_A_PASS; }

/* What the chase keeps in the caches: a line of each node, however far apart. */
static size_t footprint(const pl_case *c) { return c->n * PL_LINE; }

/* Each node touches a page of its own at most. */
static void check(const pl_case *c)
{
    const size_t stride = (size_t)c->parameters[CHASE_STRIDE];
    const size_t page = c->pages == PL_HUGE ? pl_huge_page() : (size_t)sysconf(_SC_PAGESIZE);
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
    const size_t stride = (size_t)c->parameters[CHASE_STRIDE];
    const bool strided = c->variant->layout == STRIDED;
    /* Node 0 of strided lies at a multiple of the stride, as far as that is a power of two. */
    return chase_create(c, stride, strided ? chase_strided : chase_dense, bytes_of(c), strided && stride > 4096 ? stride - 4096 : 0,
                        loads_of(c));
}

static const pl_kernel chase = {
    .name = "chase", .title = "p = *p: dependent loads in a random cycle", .variants = variants, .parameters = parameters,
    .most_threads = 1, .check = check, .footprint = footprint, .create = create, .touch = chase_touch, .run = chase_run,
    .work = chase_work, .verify = chase_verify, .poison = chase_poison, .buffers = pl_first_buffers,
    .destroy = chase_destroy,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &chase); }
