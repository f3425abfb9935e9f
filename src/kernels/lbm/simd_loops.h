/* nt: buffered with non-temporal stores, for one width: kernel.c includes this once for each (simd.h). */
#include "simd.h"

/* The first cell of every row begins a cache line (lbm.c); what is left at its end, less than a line, is stored as usual. */
TARGET static inline void NAME(write_nt)(double *to, const double *from, size_t cells)
{
    size_t i = 0;
    for (; i + LINE <= cells; i += LINE)
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(to + i + k, LOAD_ALIGNED(from + i + k));
    for (; i < cells; i++)
        to[i] = from[i];
}

TARGET void NAME(lbm_nt)(const lbm_box *box, size_t first, size_t last, double *out, const double *in)
{
    by_chunks(NAME(write_nt), box, first, last, out, in);
    _mm_sfence();
}
