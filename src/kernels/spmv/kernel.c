/* Sparse matrix times vector  y = A x:  2 flops, 8 bytes of value and 4 of column index per nonzero.
 *
 * Anderson et al. 1997, section 3.3.3 and table 7: the product of NPB CG, whose gather of x was moved out of the cache.
 * The variants stand side by side; each differs from `plain` in one thing, after which it is named.  SELL-C-sigma is the
 * storage scheme of Kreutzer et al. 2014 (SIAM J. Sci. Comput. 36, C401), here with C = 8. */
#include "kernel.h"

void spmv_plain(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y, const long *parameters)
{
    for (size_t i = part.begin; i < part.end; i++) {
        double sum = 0;
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            sum += a->value[k] * x[a->column[k]];
        y[i] = sum;
    }
}

/* Four sums per row instead of one: an addition need not wait for the one before. */
void spmv_unroll(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y, const long *parameters)
{
    for (size_t i = part.begin; i < part.end; i++) {
        double sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
        int64_t k = a->ptr[i];
        for (; k + 4 <= a->ptr[i + 1]; k += 4) {
            sum0 += a->value[k] * x[a->column[k]];
            sum1 += a->value[k + 1] * x[a->column[k + 1]];
            sum2 += a->value[k + 2] * x[a->column[k + 2]];
            sum3 += a->value[k + 3] * x[a->column[k + 3]];
        }
        for (; k < a->ptr[i + 1]; k++)
            sum0 += a->value[k] * x[a->column[k]];
        y[i] = (sum0 + sum1) + (sum2 + sum3);
    }
}

/* Software prefetch of the element of x that is needed `distance` nonzeros later; the last ones have none. */
void spmv_prefetch(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y, const long *parameters)
{
    const int64_t distance = parameters[SPMV_DISTANCE], last = a->ptr[a->rows] - distance;
    for (size_t i = part.begin; i < part.end; i++) {
        double sum = 0;
        int64_t k = a->ptr[i];
        const int64_t end = a->ptr[i + 1], ahead = end < last ? end : last;
        for (; k < ahead; k++) {
            __builtin_prefetch(x + a->column[k + distance], 0);
            sum += a->value[k] * x[a->column[k]];
        }
        for (; k < end; k++)
            sum += a->value[k] * x[a->column[k]];
        y[i] = sum;
    }
}

/* unroll, with the lines of values and indices prefetched `ahead` nonzeros before they are needed: where the gather of x
 * misses the first-level cache, it disturbs the hardware's own prefetching of these two streams. */
void spmv_stream(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y, const long *parameters)
{
    const int64_t ahead = parameters[SPMV_AHEAD];
    for (size_t i = part.begin; i < part.end; i++) {
        double sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
        int64_t k = a->ptr[i];
        for (; k + 8 <= a->ptr[i + 1]; k += 8) {
            __builtin_prefetch(a->value + k + ahead, 0);
            __builtin_prefetch(a->column + k + ahead, 0);
            sum0 += a->value[k] * x[a->column[k]];
            sum1 += a->value[k + 1] * x[a->column[k + 1]];
            sum2 += a->value[k + 2] * x[a->column[k + 2]];
            sum3 += a->value[k + 3] * x[a->column[k + 3]];
            sum0 += a->value[k + 4] * x[a->column[k + 4]];
            sum1 += a->value[k + 5] * x[a->column[k + 5]];
            sum2 += a->value[k + 6] * x[a->column[k + 6]];
            sum3 += a->value[k + 7] * x[a->column[k + 7]];
        }
        __builtin_prefetch(a->value + k + ahead, 0);
        __builtin_prefetch(a->column + k + ahead, 0);
        for (; k < a->ptr[i + 1]; k++)
            sum0 += a->value[k] * x[a->column[k]];
        y[i] = (sum0 + sum1) + (sum2 + sum3);
    }
}

/* SELL-C-sigma: eight rows at a time, each with a sum of its own; values and indices are read line by line. */
void spmv_sell(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y, const long *parameters)
{
    for (size_t i = part.begin; i < part.end; i++) {
        double sum[SPMV_CHUNK] = {0};
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k += SPMV_CHUNK)
            for (int r = 0; r < SPMV_CHUNK; r++)
                sum[r] += a->value[k + r] * x[a->column[k + r]];
        for (size_t r = SPMV_CHUNK * i; r < SPMV_CHUNK * (i + 1) && r < a->rows; r++)
            y[a->row[r]] = sum[r % SPMV_CHUNK];
    }
}

/* sell, with values and indices prefetched as in stream. */
void spmv_sell_stream(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y,
                      const long *parameters)
{
    const int64_t ahead = parameters[SPMV_AHEAD];
    for (size_t i = part.begin; i < part.end; i++) {
        double sum[SPMV_CHUNK] = {0};
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k += SPMV_CHUNK) {
            __builtin_prefetch(a->value + k + ahead, 0);
            __builtin_prefetch(a->column + k + ahead, 0);
            for (int r = 0; r < SPMV_CHUNK; r++)
                sum[r] += a->value[k + r] * x[a->column[k + r]];
        }
        for (size_t r = SPMV_CHUNK * i; r < SPMV_CHUNK * (i + 1) && r < a->rows; r++)
            y[a->row[r]] = sum[r % SPMV_CHUNK];
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))

/* simd: gather instructions, along the row; two sums, and a masked or scalar rest. */

AVX512 void spmv_simd_avx512(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y,
                             const long *parameters)
{
    for (size_t i = part.begin; i < part.end; i++) {
        const int64_t end = a->ptr[i + 1];
        __m512d sum = _mm512_setzero_pd(), other = _mm512_setzero_pd();
        int64_t k = a->ptr[i];
        for (; k + 16 <= end; k += 16) {
            const __m256i left = _mm256_loadu_si256((const __m256i *)(a->column + k));
            const __m256i right = _mm256_loadu_si256((const __m256i *)(a->column + k + 8));
            sum = _mm512_fmadd_pd(_mm512_loadu_pd(a->value + k), _mm512_i32gather_pd(left, x, 8), sum);
            other = _mm512_fmadd_pd(_mm512_loadu_pd(a->value + k + 8), _mm512_i32gather_pd(right, x, 8), other);
        }
        for (; k < end; k += 8) {
            const __mmask8 mask = end - k >= 8 ? 0xFF : (__mmask8)((1 << (end - k)) - 1);
            const __m256i at = _mm512_castsi512_si256(_mm512_maskz_loadu_epi32(mask, a->column + k));
            const __m512d gathered = _mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask, at, x, 8);
            sum = _mm512_fmadd_pd(_mm512_maskz_loadu_pd(mask, a->value + k), gathered, sum);
        }
        y[i] = _mm512_reduce_add_pd(_mm512_add_pd(sum, other));
    }
}

AVX2 void spmv_simd_avx2(pl_range part, const spmv_matrix *a, const double *restrict x, double *restrict y,
                         const long *parameters)
{
    for (size_t i = part.begin; i < part.end; i++) {
        const int64_t end = a->ptr[i + 1];
        __m256d sum = _mm256_setzero_pd(), other = _mm256_setzero_pd();
        int64_t k = a->ptr[i];
        for (; k + 8 <= end; k += 8) {
            const __m128i left = _mm_loadu_si128((const __m128i *)(a->column + k));
            const __m128i right = _mm_loadu_si128((const __m128i *)(a->column + k + 4));
            sum = _mm256_fmadd_pd(_mm256_loadu_pd(a->value + k), _mm256_i32gather_pd(x, left, 8), sum);
            other = _mm256_fmadd_pd(_mm256_loadu_pd(a->value + k + 4), _mm256_i32gather_pd(x, right, 8), other);
        }
        sum = _mm256_add_pd(sum, other);
        double rest = 0, part_sum[4];
        for (; k < end; k++)
            rest += a->value[k] * x[a->column[k]];
        _mm256_storeu_pd(part_sum, sum);
        y[i] = (part_sum[0] + part_sum[1]) + (part_sum[2] + part_sum[3]) + rest;
    }
}

#define PL_SIMD 512
#include "simd_loops.h"
#define PL_SIMD 256
#include "simd_loops.h"
#endif
