/* The peak of arithmetic as the runtime sees it: streams of fused multiply-adds, and DGEMM, which is measured by turns with
 * them.  Each thread has its own; a stream takes as many steps as the widest needs for the operations of DGEMM. */
#include <math.h>

#include "kernel.h"

enum { DGEMM = 1 };     /* layout */

static const pl_variant variants[] = {
    {"plain", PL_LOOP(flops_plain), .about = "multiply-adds as the compiler makes them of a loop"},
#if defined(__x86_64__)
    {"scalar", .isa = "avx2", PL_LOOP(flops_scalar), .about = "fused multiply-adds of one number each"},
    {"simd128", .isa = "avx2", PL_LOOP(flops_simd128), .about = "of two"},
    {"simd256", .isa = "avx2", PL_LOOP(flops_simd256), .about = "of four"},
    {"simd512", .isa = "avx512f", PL_LOOP(flops_simd512), .about = "of eight"},
#elif defined(__aarch64__)
    {"simd128", PL_LOOP(flops_simd128), .about = "fused multiply-adds of two numbers each"},
#endif
#ifdef PL_BLAS
    {"dgemm", .layout = DGEMM, PL_LOOP(dgemm_run), .about = "C = C + A B by the BLAS, matrices of its own for each thread"},
#else
    {"dgemm", .about = "built without BLAS"},
#endif
    {0},
};

static bool is_dgemm(const pl_case *c) { return c->variant->layout == DGEMM; }

/* Values of a stream. */
static size_t values(const pl_case *c)
{
#if defined(__x86_64__)
    if (c->variant->loop == (pl_loop)flops_simd512)
        return 8 * FLOPS_CHAINS_512;
    if (c->variant->loop == (pl_loop)flops_simd256)
        return 4 * FLOPS_CHAINS;
    if (c->variant->loop == (pl_loop)flops_scalar)
        return FLOPS_CHAINS;
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    if (c->variant->loop == (pl_loop)flops_simd128)
        return 2 * FLOPS_CHAINS;
#endif
    return FLOPS_PLAIN;
}

static size_t steps(const pl_case *c, int thread)
{
    const size_t n = flops_order(c, thread), flops = 2 * n * n * n, of_step = 4 * FLOPS_MOST;
    return (flops + of_step - 1) / of_step;
}

static double flops_of(const pl_case *c, int thread)
{
    const double n = (double)flops_order(c, thread);
    return is_dgemm(c) ? 2 * n * n * n : 4 * (double)(steps(c, thread) * values(c));
}

static void check(const pl_case *c)
{
    enum { MOST = 1 << 15 };    /* sums of products below 2^37 stay whole numbers */
    if (c->n < (size_t)c->threads || c->n / (size_t)c->threads > MOST)
        pl_fail("--size %zu: %d threads have matrices of order %zu: give from 1 to %d for each thread", c->n, c->threads,
                c->n / (size_t)c->threads, MOST);
    if (is_dgemm(c))
        dgemm_check();
}

static flops_stream *stream(const pl_case *c, int thread)
{
    const pl_buffers *set = c->data;
    return (flops_stream *)set->at[0] + thread;
}

static size_t footprint(const pl_case *c) { return is_dgemm(c) ? dgemm_footprint(c) : (size_t)c->threads * sizeof(flops_stream); }

static void *create(const pl_case *c)
{
    const size_t bytes = footprint(c);
    return is_dgemm(c) ? dgemm_create(c) : pl_buffers_create(c, 1, &bytes, NULL);
}

static void touch(const pl_case *c, int thread, int threads)
{
    const pl_range part = pl_part((size_t)c->threads, thread, threads);
    for (size_t t = part.begin; t < part.end; t++) {
        if (is_dgemm(c))
            dgemm_touch(c, (int)t);
        else
            flops_set(stream(c, (int)t), (int)t);
    }
}

static void run(const pl_case *c, const pl_plan *p)
{
    if (is_dgemm(c))
        dgemm_run(c, p->thread);
    else
        ((flops_loop *)p->loop)(steps(c, p->thread), stream(c, p->thread));
}

static pl_work work(const pl_case *c)
{
    double flops = 0;
    for (int thread = 0; thread < c->threads; thread++)
        flops += flops_of(c, thread);
    return (pl_work){.flops = flops, .source = is_dgemm(c) ? "2 n^3 operations for each thread's n x n matrices; no limit by traffic"
                                                           : "no data: 2 operations per fused multiply-add"};
}

static void poison(const pl_case *c) { touch(c, 0, 1); }

static double verify(const pl_case *c)
{
    double worst = 0;
    if (is_dgemm(c))
        return dgemm_error(c);
    for (int thread = 0; thread < c->threads; thread++)
        for (size_t i = 0; i < FLOPS_MOST; i++) {
            const double added = i < values(c) ? (double)steps(c, thread) : 0;
            worst = pl_worse(worst, fabs(stream(c, thread)->x[i] - (flops_first(thread, i) + added)));
        }
    return worst;
}

static void facts(const pl_case *c, pl_fact *found)
{
    if (!is_dgemm(c))
        return;
    found[0] = (pl_fact){.name = "library", .text = dgemm_library()};
    found[1] = (pl_fact){.name = "calls_at_once", .number = dgemm_calls_at_once(c)};
}

static const pl_kernel flops = {
    .name = "flops", .title = "Fused multiply-adds in registers, and DGEMM: --size rows, shared among the threads",
    .variants = variants, .usual_size = 600, .check = check, .footprint = footprint, .create = create, .touch = touch, .run = run,
    .share = flops_of, .work = work, .verify = verify, .poison = poison,
    .buffers = pl_data_buffers, .destroy = pl_buffers_destroy, .facts = facts,
    .private_lines = true,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &flops); }
