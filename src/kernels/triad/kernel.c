/* Vector triad  A(:) = B(:) + C(:) * D(:):  32 bytes and 2 flops per iteration.
 *
 * Hager, Zeiser, Treibig, Wellein 2004, sections 3 and 4; Hager et al. 2007 (RZBENCH), section 3.1.
 * The variants stand side by side; each differs from `plain` in one thing, after which it is named.  The recurrence loop
 * of the source is in triad.c: it calls these functions through a pointer, so that no compiler can interchange the two. */
#include "kernel.h"

void triad_plain(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                 const double *restrict d, const long *parameters)
{
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

PL_NOVEC_FUNCTION
void triad_novec(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                 const double *restrict d, const long *parameters)
{
    PL_NOVEC_LOOP
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

#ifdef _OPENMP
/* A parallel region for each pass, as a program has it whose loops are parallel one by one (hager2004, section 4). */
void triad_openmp(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                  const double *restrict d, const long *parameters)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}
#endif

/* Software prefetch of all four streams, one instruction per cache line, `distance` elements ahead. */
void triad_prefetch(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                    const double *restrict d, const long *parameters)
{
    const size_t ahead = (size_t)parameters[TRIAD_DISTANCE];
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __builtin_prefetch(a + i + ahead, 1);
        __builtin_prefetch(b + i + ahead, 0);
        __builtin_prefetch(c + i + ahead, 0);
        __builtin_prefetch(d + i + ahead, 0);
        for (size_t k = i; k < i + 8; k++)
            a[k] = b[k] + c[k] * d[k];
    }
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

/* preload_c: preload as a high-level language can say it, with ordinary stores: a word of each line of a block of B, of C and of D is
 * summed by a loop of its own, and the sums are used (hager2004, section 3.2, the rightmost category of figure 4). */
static double sum_of_lines(size_t n, const double *restrict x)
{
    double sum = 0;
    for (size_t i = 0; i < n; i += PL_LINE / sizeof(double))
        sum += x[i];
    return sum;
}

void triad_preload_c(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                     const double *restrict d, const long *parameters)
{
    const size_t block = (size_t)parameters[TRIAD_BLOCK];
    for (size_t i = 0; i < n; i += block) {
        const size_t length = pl_least(n - i, block);
        const double sum = sum_of_lines(length, b + i) + sum_of_lines(length, c + i) + sum_of_lines(length, d + i);
        PL_CONSUME(sum);
        triad_plain(length, a + i, b + i, c + i, d + i, parameters);
    }
}

#if defined(__x86_64__)
static void bring(size_t n, const double *restrict x)
{
    for (size_t i = 0; i < n; i += PL_LINE / sizeof(double))
        PL_CONSUME(x[i]);
}

#define PL_SIMD 512
#include "simd_loops.h"
#define PL_SIMD 256
#include "simd_loops.h"
#define PL_SIMD 128
#include "simd_loops.h"
#endif
