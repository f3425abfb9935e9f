/* Data motion with unit stride: fill, load, update, copy.
 *
 * Anderson, Brooks, Grassl, Scott 1997, section 3.2.2 (table 3) and section 3.3.2 (table 5).  The "cacheable store" of
 * table 3 and the "initialize to constant" of table 5 are one loop (320 MB/s in both), and so are "cacheable load
 * and store" and "stride-1 copy" (471 MB/s in both): here they are `fill` and `copy`.  `update` loads and stores one
 * vector, so that no line is written that has not been read: what copy loses to the write-allocate shows.
 * The variants differ from their motion in one thing, after which they are named; `nt` exists where a line is written
 * that has not been read, and is written with intrinsics as wide as the CPU has. */
#include "kernel.h"

double motion_fill(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    for (size_t i = 0; i < n; i++)
        y[i] = MOTION_CONSTANT;
    return 0;
}

/* 64 partial sums: as many as hide the latency of the addition, at any width that compilers choose. */
double motion_load(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    double sum[64] = {0};
    size_t i = 0;
    for (; i + 64 <= n; i += 64)
        for (size_t k = 0; k < 64; k++)
            sum[k] += x[i + k];
    for (; i < n; i++)
        sum[0] += x[i];
    for (size_t k = 1; k < 64; k++)
        sum[0] += sum[k];
    return sum[0];
}

double motion_update(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    for (size_t i = 0; i < n; i++)
        y[i] = -y[i];
    return 0;
}

double motion_copy(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i];
    return 0;
}

/* prefetch: one software prefetch per cache line of every vector, `distance` elements ahead; by blocks of 64 elements,
 * so that compilers vectorise the loop within as they do the plain one. */

double motion_fill_prefetch(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    const size_t ahead = (size_t)parameters[MOTION_DISTANCE];
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        for (size_t k = i; k < i + 64; k += 8)
            __builtin_prefetch(y + k + ahead, 1);
        for (size_t k = 0; k < 64; k++)
            y[i + k] = MOTION_CONSTANT;
    }
    for (; i < n; i++)
        y[i] = MOTION_CONSTANT;
    return 0;
}

double motion_load_prefetch(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    const size_t ahead = (size_t)parameters[MOTION_DISTANCE];
    double sum[64] = {0};
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        for (size_t k = i; k < i + 64; k += 8)
            __builtin_prefetch(x + k + ahead, 0);
        for (size_t k = 0; k < 64; k++)
            sum[k] += x[i + k];
    }
    for (; i < n; i++)
        sum[0] += x[i];
    for (size_t k = 1; k < 64; k++)
        sum[0] += sum[k];
    return sum[0];
}

double motion_update_prefetch(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    const size_t ahead = (size_t)parameters[MOTION_DISTANCE];
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        for (size_t k = i; k < i + 64; k += 8)
            __builtin_prefetch(y + k + ahead, 1);
        for (size_t k = 0; k < 64; k++)
            y[i + k] = -y[i + k];
    }
    for (; i < n; i++)
        y[i] = -y[i];
    return 0;
}

double motion_copy_prefetch(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    const size_t ahead = (size_t)parameters[MOTION_DISTANCE];
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        for (size_t k = i; k < i + 64; k += 8) {
            __builtin_prefetch(y + k + ahead, 1);
            __builtin_prefetch(x + k + ahead, 0);
        }
        for (size_t k = 0; k < 64; k++)
            y[i + k] = x[i + k];
    }
    for (; i < n; i++)
        y[i] = x[i];
    return 0;
}

#if defined(__x86_64__)
#define PL_SIMD 512
#include "simd_loops.h"
#define PL_SIMD 256
#include "simd_loops.h"
#define PL_SIMD 128
#include "simd_loops.h"
#endif
