#ifndef PLUMBLINE_TRIAD_H
#define PLUMBLINE_TRIAD_H

#include "plumbline.h"

/* Options of the triad's own, by position in `parameters`. */
enum { TRIAD_DISTANCE, TRIAD_BLOCK };

/* A(0:n-1) = B + C * D on one thread's part. */
typedef void triad_loop(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                        const double *restrict d, const long *parameters);

triad_loop triad_plain, triad_novec, triad_prefetch, triad_preload_c;
#ifdef _OPENMP
triad_loop triad_openmp;
#endif
#if defined(__x86_64__)
triad_loop triad_simd_avx512, triad_simd_avx2, triad_simd_sse2;
triad_loop triad_nt_avx512, triad_nt_avx2, triad_nt_sse2;
triad_loop triad_preload_avx512, triad_preload_avx2, triad_preload_sse2;
#endif
#ifdef PL_FORTRAN
triad_loop triad_fortran, triad_preload_fortran;
void *fortran_allocate(size_t doubles);
void fortran_deallocate(void *);
#endif

#endif
