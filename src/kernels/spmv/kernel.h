#ifndef PLUMBLINE_SPMV_H
#define PLUMBLINE_SPMV_H

#include "plumbline.h"

/* Options of the kernel's own, by position in `parameters`. */
enum { SPMV_DISTANCE, SPMV_AHEAD, SPMV_NONZER, SPMV_COLUMNS, SPMV_BAND, SPMV_SIGMA };

/* Rows of a chunk of SELL-C-sigma: 8 values are a cache line, and one vector of 512 bits. */
enum { SPMV_CHUNK = 8 };

/* A as the loops read it.
 *
 * CRS: the elements of row i are k = ptr[i] .. ptr[i+1]-1; `row` is not used.
 * SELL: chunk i holds the rows row[8i] .. row[8i+7] (fewer in the last chunk), slots k = ptr[i] .. ptr[i+1]-1; the next
 * element of its row r is 8 slots further.  Shorter rows are filled up with zeros. */
typedef struct {
    size_t rows;
    const int64_t *ptr;
    const int32_t *column;
    const double *value;
    const int32_t *row;
} spmv_matrix;

/* y = A x on one thread's part: rows of CRS, chunks of SELL. */
typedef void spmv_loop(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y,
                       const long *parameters);

spmv_loop spmv_plain, spmv_unroll, spmv_prefetch, spmv_stream, spmv_sell, spmv_sell_stream;
#if defined(__x86_64__)
spmv_loop spmv_simd_avx512, spmv_simd_avx2, spmv_sell_simd_avx512, spmv_sell_simd_avx2;
#endif

#endif
