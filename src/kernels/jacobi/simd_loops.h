/* The sweeps with intrinsics, for one width: kernel.c includes this once for each (simd.h). */
#include "simd.h"

TARGET static inline VECTOR NAME(points)(const double *u, size_t row, size_t plane)
{
    const VECTOR x = ADD(LOAD(u - 1), LOAD(u + 1));
    const VECTOR y = ADD(LOAD(u - row), LOAD(u + row));
    const VECTOR z = ADD(LOAD(u - plane), LOAD(u + plane));
    return FMADD(SET1(JACOBI_CENTRE), LOAD(u), MUL(SET1(JACOBI_NEIGHBOUR), ADD(ADD(x, y), z)));
}

/* nt: one row with non-temporal stores, which take no write-allocate.  The first interior point of every row begins a
 * cache line (jacobi.c); what is left at its end, less than a line, is stored as usual. */
TARGET static inline void NAME(row_nt)(const jacobi_box *box, double *v, const double *u, const double *ahead)
{
    size_t i = 1;
    for (; i + LINE < box->n; i += LINE)
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(v + i + k, NAME(points)(u + i + k, box->row, box->plane));
    for (; i + 1 < box->n; i++)
        v[i] = point(u + i, box->row, box->plane);
}

/* prefetch: nt, and of the seven loads the one that goes to memory is prefetched: a line of `ahead` for each of u. */
TARGET static inline void NAME(row_prefetch)(const jacobi_box *box, double *v, const double *u, const double *ahead)
{
    size_t i = 1;
    for (; i + LINE < box->n; i += LINE) {
        _mm_prefetch((const char *)(ahead + i), _MM_HINT_T0);
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(v + i + k, NAME(points)(u + i + k, box->row, box->plane));
    }
    for (; i + 1 < box->n; i++)
        v[i] = point(u + i, box->row, box->plane);
}

TARGET void NAME(jacobi_nt)(ARGUMENTS) { sweep(NAME(row_nt), box->rows, box, first, last, out, in); }
TARGET void NAME(jacobi_prefetch)(ARGUMENTS) { sweep(NAME(row_prefetch), box->rows, box, first, last, out, in); }
TARGET void NAME(jacobi_blocked_nt)(ARGUMENTS) { sweep(NAME(row_nt), box->block, box, first, last, out, in); }
TARGET void NAME(jacobi_blocked_prefetch)(ARGUMENTS) { sweep(NAME(row_prefetch), box->block, box, first, last, out, in); }
