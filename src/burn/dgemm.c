/* DGEMM: the same product on every thread, on matrices of its own, and every product compared with one reference. */
#include <math.h>
#include <stdlib.h>

#include "burn.h"

#if defined(__x86_64__)
#define PL_SIMD 512
#include "dgemm_loops.h"
#define PL_SIMD 256
#include "dgemm_loops.h"
#endif

enum { ELEMENTS = BURN_ORDER * BURN_ORDER };

/* Without the instruction, a fused multiply-add is a call that takes a hundred times as long. */
#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__aarch64__)
enum { FUSED = 1 };
static inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
enum { FUSED = 0 };
static inline double multiply_add(double a, double b, double c) { return a * b + c; }
#endif

static void multiply(const double *a, const double *b, double *c)
{
    enum { ROWS = 4, COLUMNS = 8 };
    for (size_t j = 0; j < BURN_ORDER; j += COLUMNS)
        for (size_t i = 0; i < BURN_ORDER; i += ROWS) {
            double sum[ROWS][COLUMNS] = {{0}};
            for (size_t k = 0; k < BURN_ORDER; k++)
                for (size_t r = 0; r < ROWS; r++)
                    for (size_t v = 0; v < COLUMNS; v++)
                        sum[r][v] = multiply_add(a[(i + r) * BURN_ORDER + k], b[k * BURN_ORDER + j + v], sum[r][v]);
            for (size_t r = 0; r < ROWS; r++)
                for (size_t v = 0; v < COLUMNS; v++)
                    c[(i + r) * BURN_ORDER + j + v] = sum[r][v];
        }
}

typedef void product(const double *a, const double *b, double *c);
static const struct { const char *isa; product *function; int fused; } products[] = {
#if defined(__x86_64__)
    {"avx512f", multiply_avx512, 1},
    {"avx2", multiply_avx2, 1},
#endif
    {NULL, multiply, FUSED},
};

static int chosen(void)
{
    int i = 0;
    while (!pl_cpu_has(products[i].isa))
        i++;
    return i;
}

const char *burn_dgemm_isa(void) { return products[chosen()].isa; }

/* All 53 bits of a number between -1 and 1. */
static double element(int which, size_t i)
{
    return (double)(int64_t)pl_random_bits((uint64_t)which << 32 | i) * 0x1p-63;
}

static void set(double *matrix, int which)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        matrix[i] = element(which, i);
}

/* By three plain loops over the definition, in the order of k. */
double *burn_dgemm_reference(void)
{
    const bool fused = products[chosen()].fused;
    double *const a = pl_allocate(3 * (size_t)ELEMENTS * sizeof *a, "the reference product"), *const b = a + ELEMENTS, *const c = b + ELEMENTS;
    set(a, 0);
    set(b, 1);
    for (size_t i = 0; i < BURN_ORDER; i++)
        for (size_t k = 0; k < BURN_ORDER; k++)
            for (size_t j = 0; j < BURN_ORDER; j++) {
                const double x = a[i * BURN_ORDER + k], y = b[k * BURN_ORDER + j], z = c[i * BURN_ORDER + j];
                c[i * BURN_ORDER + j] = fused ? fma(x, y, z) : multiply_add(x, y, z);
            }
    memmove(a, c, (size_t)ELEMENTS * sizeof *a);
    return a;
}

void burn_dgemm_create(burn_thread *t)
{
    t->a = pl_map(3 * (size_t)ELEMENTS * sizeof *t->a, PL_HUGE);
    if (!t->a)
        pl_fail("no memory for the matrices of thread %d: close other programs", t->thread);
    t->b = t->a + ELEMENTS;
    t->c = t->b + ELEMENTS;
    set(t->a, 0);
    set(t->b, 1);
    memset(t->c, 0, (size_t)ELEMENTS * sizeof *t->c);
}

/* A factor that has changed in memory is an error of its own, and set right: it would spoil all that follows. */
static void look_at_factors(burn_thread *t)
{
    double *const right = malloc((size_t)ELEMENTS * sizeof *right), *const factors[] = {t->a, t->b};
    static const char *const names[] = {"dgemm A", "dgemm B"};
    for (int which = 0; right && which < 2; which++) {
        set(right, which);
        if (!burn_compare(&t->errors, names[which], factors[which], right, ELEMENTS))
            memcpy(factors[which], right, (size_t)ELEMENTS * sizeof *right);
    }
    free(right);
}

void burn_dgemm(burn_state *state, burn_thread *t)
{
    product *const function = products[chosen()].function;
    const double n = BURN_ORDER;
    do {
        function(t->a, t->b, t->c);
        burn_flip(t, t->c, ELEMENTS * sizeof *t->c);
        burn_errors of_product = {0};
        if (!burn_compare(&of_product, "dgemm C", t->c, state->reference, ELEMENTS)) {
            look_at_factors(t);     /* told first: a wrong factor is the cause, and spoils more of C than is told one by one */
            for (int k = 0; k < BURN_TOLD && k < of_product.count && t->errors.count + k < BURN_TOLD; k++)
                t->errors.told[t->errors.count + k] = of_product.told[k];
            t->errors.count += of_product.count;
        }
        t->work += 2 * n * n * n;
    } while (burn_goes_on(state));
}
