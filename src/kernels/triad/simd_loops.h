/* The loops with intrinsics, for one width: kernel.c includes this once for each (simd.h). */
#include "simd.h"

/* simd: intrinsics, as wide as the CPU has. */
TARGET void NAME(triad_simd)(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                             const double *restrict d, const long *parameters)
{
    size_t i = 0;
    UNROLL for (; i + LANES <= n; i += LANES)
        STORE(a + i, FMADD(LOAD(c + i), LOAD(d + i), LOAD(b + i)));
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

/* nt: as simd, with non-temporal stores, which take no write-allocate.  They need aligned addresses: the iterations
 * before the first whole cache line of A are ordinary ones. */
TARGET void NAME(triad_nt)(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                           const double *restrict d, const long *parameters)
{
    const size_t head = pl_before_line(a, n);
    size_t i = 0;
    for (; i < head; i++)
        a[i] = b[i] + c[i] * d[i];
    UNROLL for (; i + LINE <= n; i += LINE)
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(a + i + k, FMADD(LOAD(c + i + k), LOAD(d + i + k), LOAD(b + i + k)));
    _mm_sfence();
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

/* preload: as nt, but a block of B, of C and of D is brought into cache first, each by a loop of its own that loads one
 * word per line, so that memory sees one stream at a time (hager2004, section 3.2). */
void NAME(triad_preload)(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                         const double *restrict d, const long *parameters)
{
    const size_t block = (size_t)parameters[TRIAD_BLOCK];
    for (size_t i = 0; i < n; i += block) {
        const size_t length = pl_least(n - i, block);
        bring(length, b + i);
        bring(length, c + i);
        bring(length, d + i);
        NAME(triad_nt)(length, a + i, b + i, c + i, d + i, parameters);
    }
}
