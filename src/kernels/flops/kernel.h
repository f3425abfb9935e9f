#ifndef PLUMBLINE_FLOPS_H
#define PLUMBLINE_FLOPS_H

#include "plumbline.h"

/* Independent chains: at least latency x pipes of any core, and as many as the registers hold beside three constants.  Ten of
 * Haswell and Zen 2 (5 cycles x 2), eight of Skylake to Zen 5 (4 x 2): uops.info; sixteen of Neoverse V1 and V2 (4 x 4): Arm's
 * software optimization guides; eighteen of A64FX (9 x 2): Fujitsu's microarchitecture manual. */
enum {
    FLOPS_CHAINS_512 = 24,
#if defined(__x86_64__)
    FLOPS_CHAINS = 12,      /* of 16 registers */
#else
    FLOPS_CHAINS = 24,
#endif
    FLOPS_PLAIN = 48,       /* values of the loop that the compiler vectorises as it likes */
    FLOPS_MOST = 8 * FLOPS_CHAINS_512,
};

/* A thread's values, and what they are multiplied by and added to: not known to the compiler. */
enum { FLOPS_S, FLOPS_BELOW, FLOPS_ABOVE, FLOPS_MINUS_ONE, FLOPS_CONSTANTS };
typedef struct {
    double constant[FLOPS_CONSTANTS];
    double x[FLOPS_MOST];
} flops_stream;

/* Two fused multiply-adds a step and value, after which each value is greater by 1:
 * x + s s - (s - 1)(s + 1), or in `plain` s - ((s - 1) - x). */
typedef void flops_loop(size_t steps, flops_stream *stream);
flops_loop flops_plain, flops_scalar, flops_simd128, flops_simd256, flops_simd512;

/* A thread's values before the first step, and all that it begins with. */
static inline double flops_first(int thread, size_t i) { return pl_value((size_t)thread * FLOPS_MOST + i); }

static inline void flops_set(flops_stream *to, int thread)
{
    const double s = 47453133;      /* s s has 52 bits */
    to->constant[FLOPS_S] = s;
    to->constant[FLOPS_BELOW] = s - 1;
    to->constant[FLOPS_ABOVE] = s + 1;
    to->constant[FLOPS_MINUS_ONE] = -1;
    for (size_t i = 0; i < FLOPS_MOST; i++)
        to->x[i] = flops_first(thread, i);
}

/* dgemm.c: C = C + A B, for each thread with matrices of its own. */
void dgemm_check(void);
void *dgemm_create(const pl_case *);
size_t dgemm_footprint(const pl_case *);
void dgemm_touch(const pl_case *, int thread);
void dgemm_run(const pl_case *, int thread);
double dgemm_error(const pl_case *);
const char *dgemm_library(void);
int dgemm_calls_at_once(const pl_case *c);      /* of the threads; they take turns where that is not all */

/* Rows that are a thread's: the order of its matrices. */
static inline size_t flops_order(const pl_case *c, int thread)
{
    const pl_range part = pl_part(c->n, thread, c->threads);
    return part.end - part.begin;
}

#endif
