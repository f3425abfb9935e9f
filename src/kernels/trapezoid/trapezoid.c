/* The trapezoidal rule as the runtime sees it: its table of variants, its work as counted, its verification. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define TRAPEZOID_COUNT
#include "kernel.h"
#include "operations.h"

enum { ORIGINAL, SHARED, VECTORISED, RESTRUCTURED, VARIANTS };

static const pl_variant variants[] = {
    [ORIGINAL] = {"original", .loop = (pl_loop)trapezoid_original, .about = "f at both ends of every step"},
    [SHARED] = {"shared", .loop = (pl_loop)trapezoid_shared, .about = "original, f of the right end carried over"},
    [VECTORISED] = {"vectorised", .loop = (pl_loop)trapezoid_vectorised, .about = "original, independent partial sums"},
    [RESTRUCTURED] = {"restructured", .loop = (pl_loop)trapezoid_restructured, .about = "vectorised, f once per point"},
    [VARIANTS] = {0},
};

static trapezoid_loop *const counting[VARIANTS] = {
    [ORIGINAL] = counted_original,
    [SHARED] = counted_shared,
    [VECTORISED] = counted_vectorised,
    [RESTRUCTURED] = counted_restructured,
};

/* From 0 to 1, where the integral is pi. */
static const double from = 0, to = 1;

static double width(const pl_case *c) { return (to - from) / (double)c->n; }

static void check(const pl_case *c)
{
    if (c->n > INT_MAX / 2)
        pl_fail("--size %zu: steps are counted in 32 bits: give at most %d", c->n, INT_MAX / 2);
}

/* A line for each thread, for its part of the integral. */
static size_t footprint(const pl_case *c) { return (size_t)c->threads * PL_LINE; }

static void *create(const pl_case *c) { return pl_results_create(); }

static void touch(const pl_case *c, int thread, int threads) {}

static void run(const pl_case *c, const pl_plan *p)
{
    const int begin = (int)p->part.begin, end = (int)p->part.end;
    ((pl_result *)c->data)[p->thread].value = begin < end ? ((trapezoid_loop *)p->loop)(begin, end, from, width(c)) : 0;
}

/* What the variant does, counted by running it once with operations that count. */
static const trapezoid_operations *count(const pl_case *c)
{
    static struct { size_t n; int threads; trapezoid_operations operations; } known[VARIANTS];
    const long v = c->variant - variants;
    if (known[v].n != c->n || known[v].threads != c->threads) {
        trapezoid_counted = (trapezoid_operations){0};
        for (int thread = 0; thread < c->threads; thread++) {
            const pl_range part = pl_part(c->n, thread, c->threads);
            if (part.begin < part.end)
                PL_CONSUME(counting[v]((int)part.begin, (int)part.end, from, width(c)));
        }
        known[v].n = c->n;
        known[v].threads = c->threads;
        known[v].operations = trapezoid_counted;
    }
    return &known[v].operations;
}

static pl_work work(const pl_case *c)
{
    const trapezoid_operations *done = count(c);
    return (pl_work){.flops = (double)(done->adds + done->multiplies + done->divides),
                     .source = "no data: operations counted by running the same source with operations that count"};
}

static void facts(const pl_case *c, pl_fact *found)
{
    const trapezoid_operations *done = count(c);
    found[0] = (pl_fact){.name = "adds", .number = (double)done->adds};
    found[1] = (pl_fact){.name = "multiplies", .number = (double)done->multiplies};
    found[2] = (pl_fact){.name = "divides", .number = (double)done->divides};
}

static void poison(const pl_case *c) { pl_results_poison(c->data); }

/* The same sum in extended precision, compensated (Neumaier, Z. angew. Math. Mech. 54 (1974) 39), and with f written in
 * another way.  It is itself compared with pi: the rule's error is at most h^2 / 12 max|f''| (b - a), and |f''| is at
 * most 8. */
static long double reference(const pl_case *c)
{
    const long double n = (long double)c->n, h = 1 / n, pi = 3.141592653589793238462643383279502884L;
    long double sum = 0, lost = 0;
    for (size_t i = 0; i <= c->n; i++) {
        const long double point = (long double)i, weight = i == 0 || i == c->n ? 2 : 4;
        const long double term = weight * (n * n) / (n * n + point * point);
        const long double next = sum + term;
        lost += sum > term ? (sum - next) + term : (term - next) + sum;
        sum = next;
    }
    sum = h * (sum + lost);
    return fabsl(sum - pi) <= 8 * h * h / 12 + 16 * LDBL_EPSILON ? sum : (long double)NAN;
}

static double verify(const pl_case *c)
{
    static size_t known_n;
    static long double known;
    if (known_n != c->n) {
        known = reference(c);
        known_n = c->n;
    }
    long double sum = 0;
    for (int thread = 0; thread < c->threads; thread++)
        sum += ((const pl_result *)c->data)[thread].value;
    return (double)fabsl(sum - known);
}

/* Rounding alone: n additions, one after the other, err by lambda sqrt(n) u relative to the sum but for a probability of
 * 2 exp(-lambda^2 / 2) (Higham and Mary, SIAM J. Sci. Comput. 41 (2019) A2815); each term by less than 10 u, its argument
 * included.  The sure bound, n u, is wider than a point that is missing, 2 / n, from n = 5e7 on. */
static double tolerance(const pl_case *c)
{
    const double lambda = 8;
    return lambda * (sqrt((double)c->n) + 10) * (DBL_EPSILON / 2) * 4;
}

static const void *where(const pl_case *c, size_t *bytes)
{
    *bytes = footprint(c);
    return c->data;
}

static const pl_kernel trapezoid = {
    .name = "trapezoid", .title = "Integral of 4 / (1 + x x) from 0 to 1 by the trapezoidal rule", .variants = variants,
    .check = check, .footprint = footprint, .create = create, .touch = touch, .run = run,
    .work = work, .verify = verify, .tolerance = tolerance, .poison = poison, .where = where,
    .destroy = free, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &trapezoid); }
