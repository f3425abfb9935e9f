/* What is the same for AVX-512 and AVX2: kernel.c includes this once for each (simd.h). */
#include "simd.h"

/* sell_simd: as sell, with gather instructions. */
TARGET void NAME(spmv_sell_simd)(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y,
                                 const long *parameters)
{
    for (size_t i = part.begin; i < part.end; i++) {
        VECTOR sums[SPMV_CHUNK / LANES];
        double sum[SPMV_CHUNK];
        for (int v = 0; v < SPMV_CHUNK / LANES; v++)
            sums[v] = SET1(0);
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k += SPMV_CHUNK)
            for (int v = 0; v < SPMV_CHUNK / LANES; v++)
                sums[v] = FMADD(LOAD(a->value + k + v * LANES), GATHER_FROM(x, INDICES(a->column + k + v * LANES)), sums[v]);
        for (int v = 0; v < SPMV_CHUNK / LANES; v++)
            STORE(sum + v * LANES, sums[v]);
        for (size_t r = SPMV_CHUNK * i; r < SPMV_CHUNK * (i + 1) && r < a->rows; r++)
            y[a->row[r]] = sum[r % SPMV_CHUNK];
    }
}
