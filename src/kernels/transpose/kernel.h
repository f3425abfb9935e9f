#ifndef PLUMBLINE_TRANSPOSE_H
#define PLUMBLINE_TRANSPOSE_H

#include "plumbline.h"

/* Doubles of a cache line; the longest block, which the loops keep lines of on their stack. */
enum { TRANSPOSE_LINE = PL_LINE / sizeof(double), TRANSPOSE_LONGEST = 1024 };

/* B(j,i) = A(i,j) for j in a band and i < n, or, where the loop goes along the rows of A, for i in it and j < n; rows ld apart.
 * The band of diagonals is one of their elements, n of each. */
typedef void transpose_loop(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band, size_t block);

/* A(i,j) <-> A(j,i) for i in part->outer, j in part->inner, j < i. */
typedef void transpose_in_place(size_t n, size_t ld, double *a, const pl_piece *part, size_t block);

transpose_loop transpose_rows, transpose_columns, transpose_diagonals, transpose_blocked, transpose_memcpy;
transpose_in_place transpose_in_place_rows, transpose_in_place_blocked;
#if defined(__x86_64__)
transpose_loop transpose_blocked_simd_avx512, transpose_blocked_simd_avx2;
transpose_loop transpose_blocked_nt_avx512, transpose_blocked_nt_avx2;
#endif
#ifdef PL_OPENBLAS
transpose_loop transpose_openblas;
transpose_in_place transpose_in_place_openblas;
#endif

/* Where the strip of columns that begins at `strip` ends: a rest that is less than a line joins the last one. */
static inline size_t transpose_strip_end(size_t strip, size_t end, size_t block)
{
    return end - strip < block + TRANSPOSE_LINE ? end : strip + block;
}

/* Whether every row of B consists of whole cache lines: then nt stores need no shifting. */
static inline bool transpose_whole_lines(size_t n, size_t ld, const double *b)
{
    return n % TRANSPOSE_LINE == 0 && ld % TRANSPOSE_LINE == 0 && (uintptr_t)b % PL_LINE == 0;
}

#endif
