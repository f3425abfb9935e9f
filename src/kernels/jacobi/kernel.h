#ifndef PLUMBLINE_JACOBI_H
#define PLUMBLINE_JACOBI_H

#include "plumbline.h"

/* Damped Jacobi with weight 3/4 for the Laplace equation: u + (3/4) (sum of the neighbours - 6 u) / 6.  Powers of two. */
#define JACOBI_CENTRE 0.25
#define JACOBI_NEIGHBOUR 0.125

/* A box of n points in each row, `rows` rows in each plane, boundary included; point (i, j, k) is i + j * row + k * plane
 * elements from the first one. */
typedef struct {
    size_t n, rows, row, plane;
    size_t from, to;        /* rows of each plane that are computed: from <= j < to */
    size_t block;           /* rows that blocked variants take at a time */
    size_t distance;        /* elements that are prefetched ahead */
} jacobi_box;

/* The interior points of those rows of planes first to last - 1. */
typedef void jacobi_loop(const jacobi_box *box, size_t first, size_t last, double *restrict out, const double *restrict in);

jacobi_loop jacobi_plain, jacobi_blocked;
#if defined(__x86_64__)
jacobi_loop jacobi_nt_avx512, jacobi_nt_avx2, jacobi_nt_sse2;
jacobi_loop jacobi_prefetch_avx512, jacobi_prefetch_avx2, jacobi_prefetch_sse2;
jacobi_loop jacobi_blocked_nt_avx512, jacobi_blocked_nt_avx2, jacobi_blocked_nt_sse2;
jacobi_loop jacobi_blocked_prefetch_avx512, jacobi_blocked_prefetch_avx2, jacobi_blocked_prefetch_sse2;
#endif

#endif
