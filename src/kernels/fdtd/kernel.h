#ifndef PLUMBLINE_FDTD_H
#define PLUMBLINE_FDTD_H

#include "plumbline.h"

/* CAEX, CBEX, CAEY, CBEY, CAEZ, CBEZ of the source, and the elements that a prefetch is ahead. */
typedef struct {
    float caex, cbex, caey, cbey, caez, cbez;
    size_t ahead;
} fdtd_coefficients;

/* Of the planes first <= j < last the rows from <= i < to.  All arrays are [n - 1][n][n], indexed [j][i][k] as the source's
 * (k,i,j). */
typedef void fdtd_loop(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                       float (*ex)[n][n], float (*ey)[n][n], float (*ez)[n][n],
                       const float (*hx)[n][n], const float (*hy)[n][n], const float (*hz)[n][n]);

fdtd_loop fdtd_fused, fdtd_fused_restrict, fdtd_split2, fdtd_split2_restrict, fdtd_split3, fdtd_split3_restrict,
    fdtd_fused_prefetch;
#ifdef FDTD_C_DISTRIBUTED
fdtd_loop fdtd_distributed, fdtd_distributed_restrict;
#endif
#ifdef PL_FORTRAN
fdtd_loop fdtd_fortran_fused, fdtd_fortran_split2, fdtd_fortran_split3;
#ifdef FDTD_FORTRAN_DISTRIBUTED
fdtd_loop fdtd_fortran_distributed;
#endif
#endif

#endif
