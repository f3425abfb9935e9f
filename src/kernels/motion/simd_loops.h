/* The loops with intrinsics, for one width: kernel.c includes this once for each (simd.h).
 *
 * nt: non-temporal stores, which take no write-allocate.  They need aligned addresses: what lies before the first whole
 * cache line of y is stored as ever. */
#include "simd.h"

TARGET double NAME(motion_fill_nt)(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    const size_t head = pl_before_line(y, n);
    size_t i = 0;
    for (; i < head; i++)
        y[i] = MOTION_CONSTANT;
    UNROLL for (; i + LINE <= n; i += LINE)
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(y + i + k, SET1(MOTION_CONSTANT));
    _mm_sfence();
    for (; i < n; i++)
        y[i] = MOTION_CONSTANT;
    return 0;
}

TARGET double NAME(motion_copy_nt)(size_t n, double *restrict y, const double *restrict x, const long *parameters)
{
    const size_t head = pl_before_line(y, n);
    size_t i = 0;
    for (; i < head; i++)
        y[i] = x[i];
    UNROLL for (; i + LINE <= n; i += LINE)
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(y + i + k, LOAD(x + i + k));
    _mm_sfence();
    for (; i < n; i++)
        y[i] = x[i];
    return 0;
}
