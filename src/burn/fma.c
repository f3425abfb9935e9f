/* The peak of arithmetic: the kernel flops' streams, whose values are known by construction. */
#include "burn.h"

enum { STEPS = 20000 };     /* a third of a millisecond, then all values are looked at */
static const double most_steps = 0x1p40;    /* the values stay whole numbers below 2^53 */

static const struct { const char *isa; flops_loop *loop; int values; } streams[] = {
#if defined(__x86_64__)
    {"avx512f", flops_simd512, 8 * FLOPS_CHAINS_512},
    {"avx2", flops_simd256, 4 * FLOPS_CHAINS},
#elif defined(__aarch64__)
    {NULL, flops_simd128, 2 * FLOPS_CHAINS},
#endif
    {NULL, flops_plain, FLOPS_PLAIN},
};

static int chosen(void)
{
    int i = 0;
    while (!pl_cpu_has(streams[i].isa))
        i++;
    return i;
}

const char *burn_fma_isa(void) { return streams[chosen()].isa; }

static void set(burn_thread *t)
{
    flops_set(t->stream, t->thread);
    t->steps = 0;
}

void burn_fma_create(burn_thread *t)
{
    t->stream = pl_map(sizeof *t->stream, PL_BASE);
    if (!t->stream)
        pl_fail("no memory for the multiply-adds of thread %d: close other programs", t->thread);
    set(t);
}

void burn_fma(burn_state *state, burn_thread *t)
{
    const int which = chosen(), values = streams[which].values;
    double right[FLOPS_MOST];
    do {
        streams[which].loop(STEPS, t->stream);
        t->steps += STEPS;
        burn_flip(t, t->stream->x, (size_t)values * sizeof *right);
        for (int i = 0; i < values; i++)
            right[i] = flops_first(t->thread, (size_t)i) + t->steps;
        if (!burn_compare(&t->errors, "fma", t->stream->x, right, (size_t)values) || t->steps > most_steps)
            set(t);
        t->work += 4.0 * values * STEPS;
    } while (burn_goes_on(state));
}
