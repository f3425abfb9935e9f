#ifndef PLUMBLINE_STRIDED_H
#define PLUMBLINE_STRIDED_H

#include "plumbline.h"

/* Options of the program's own, by position in `parameters`. */
enum { STRIDED_STRIDE, STRIDED_DISTANCE };

/* Elements of a cache line: so much later begins the next run of a pass. */
enum { STRIDED_LINE = PL_LINE / sizeof(double) };

static inline size_t strided_runs(size_t stride) { return stride < STRIDED_LINE ? 1 : stride / STRIDED_LINE; }

/* Where no further run begins. */
static inline size_t strided_end(size_t n, size_t stride)
{
    const size_t end = STRIDED_LINE * strided_runs(stride);
    return end < n ? end : n;
}

/* One pass over one thread's n elements of x. */
typedef void strided_loop(size_t n, double *restrict x, double *restrict y, const long *parameters);

strided_loop strided_read, strided_write, strided_read_prefetch, strided_write_prefetch;
#if defined(__x86_64__)
strided_loop strided_read_nt;
#endif

#endif
