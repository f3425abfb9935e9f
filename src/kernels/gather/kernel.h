#ifndef PLUMBLINE_GATHER_H
#define PLUMBLINE_GATHER_H

#include "plumbline.h"

/* The five kernels of Spatter; GATHER and SCATTER alone are those of anderson1997, section 3.3.2. */
typedef enum { GATHER, SCATTER, GS, MULTIGATHER, MULTISCATTER, GATHER_KINDS } gather_kind;

/* What one thread does in a pass: rows first .. last-1 of a pattern of `length` indices.  Row i begins `delta` * i further
 * in the sparse array (gs: in the one that is read; `delta_to` * i in the one that is written), and i mod `wrap` rows
 * further in the dense one. */
typedef struct {
    size_t first, last, length, delta, delta_to, wrap;
    size_t ahead;       /* prefetch: distance in elements */
    size_t block;       /* columns: rows at a time */
} gather_rows;

/* The place of the next row in the dense array: i mod wrap without a division.  Compilers do not see which it is, and so may leave out no row that
 * a later one overwrites. */
static inline size_t next(size_t row, const gather_rows *r)
{
    __asm__("" : "+r"(row));
    return row + 1 == r->wrap ? 0 : row + 1;
}

/* Indices have 32 bits, as in the sparse matrices of most codes: half the index traffic of Spatter's 64, and the form that
 * needs one gather instruction for 8 doubles.  They reach 2^31 - 1 elements beyond the row's begin, 16 GiB; what does not
 * fit is refused. */
enum { GATHER_INDEX_MAX = INT32_MAX };

/* `inner` is the second list of indices: of gs where to write, of the multi kernels which indices to take. */
typedef void gather_loop(const gather_rows *, double *restrict to, const double *restrict from,
                         const int32_t *restrict index, const int32_t *restrict inner);

gather_loop gather_plain, scatter_plain, gs_plain, multigather_plain, multiscatter_plain;
gather_loop gather_novec, scatter_novec, gs_novec, multigather_novec, multiscatter_novec;
gather_loop gather_unroll, scatter_unroll, gs_unroll, multigather_unroll, multiscatter_unroll;
gather_loop gather_prefetch, scatter_prefetch, gs_prefetch, multigather_prefetch, multiscatter_prefetch;
gather_loop gather_columns, scatter_columns, gs_columns, multigather_columns, multiscatter_columns;
#if defined(__x86_64__)
gather_loop gather_simd_avx512, scatter_simd_avx512, gs_simd_avx512, multigather_simd_avx512, multiscatter_simd_avx512;
gather_loop gather_simd_avx2, scatter_simd_avx2, gs_simd_avx2, multigather_simd_avx2, multiscatter_simd_avx2;
#endif

/* variants.c: the table of both programs, and a variant's loop for each kernel. */
extern const pl_variant gather_variants[];
gather_loop *gather_loop_of(const pl_variant *, gather_kind);
bool gather_is_sorted(const pl_variant *);

/* lines.c: the accesses of one thread to a sparse array, row after row: index[j], or index[through[j]]. */
typedef struct {
    size_t first, last, length, delta;
    const int32_t *index, *through;
} gather_accesses;

/* Lines of one thread's part of the largest cache below the level of the case. */
size_t gather_lines_below(const pl_case *);

/* Lines that come from the level of the case to the caches below it in one pass of all threads; `elements` is the length
 * of the sparse array. */
double gather_lines(const pl_case *, size_t elements, gather_accesses (*of_thread)(const pl_case *, int thread));

#endif
