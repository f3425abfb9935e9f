/* simd: the gather and scatter instructions of x86-64, for each of the loops of kernel.c.
 *
 * AVX-512 has both, for 8 doubles; AVX2 has gather only, for 4: there the stores of a scatter are made one by one.  Where
 * indices of one vector are equal, the scatter instruction stores in their order: the last one stays, as in the loop. */
#include "kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))

static inline AVX512 __m256i eight(const int32_t *index) { return _mm256_loadu_si256((const __m256i *)index); }

static inline AVX2 __m128i four(const int32_t *index) { return _mm_loadu_si128((const __m128i *)index); }

AVX512 void gather_simd_avx512(const gather_rows *r, double *restrict to, const double *restrict from,
                               const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        for (; j + 8 <= r->length; j += 8)
            _mm512_storeu_pd(x + j, _mm512_i32gather_pd(eight(index + j), a, 8));
        for (; j < r->length; j++)
            x[j] = a[index[j]];
    }
}

AVX512 void scatter_simd_avx512(const gather_rows *r, double *restrict to, const double *restrict from,
                                const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        for (; j + 8 <= r->length; j += 8)
            _mm512_i32scatter_pd(a, eight(index + j), _mm512_loadu_pd(x + j), 8);
        for (; j < r->length; j++)
            a[index[j]] = x[j];
    }
}

AVX512 void gs_simd_avx512(const gather_rows *r, double *restrict to, const double *restrict from,
                           const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first; i < r->last; i++) {
        const double *restrict a = from + r->delta * i;
        double *restrict b = to + r->delta_to * i;
        size_t j = 0;
        for (; j + 8 <= r->length; j += 8)
            _mm512_i32scatter_pd(b, eight(inner + j), _mm512_i32gather_pd(eight(index + j), a, 8), 8);
        for (; j < r->length; j++)
            b[inner[j]] = a[index[j]];
    }
}

AVX512 void multigather_simd_avx512(const gather_rows *r, double *restrict to, const double *restrict from,
                                    const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        for (; j + 8 <= r->length; j += 8)
            _mm512_storeu_pd(x + j, _mm512_i32gather_pd(_mm256_i32gather_epi32(index, eight(inner + j), 4), a, 8));
        for (; j < r->length; j++)
            x[j] = a[index[inner[j]]];
    }
}

AVX512 void multiscatter_simd_avx512(const gather_rows *r, double *restrict to, const double *restrict from,
                                     const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        for (; j + 8 <= r->length; j += 8)
            _mm512_i32scatter_pd(a, _mm256_i32gather_epi32(index, eight(inner + j), 4), _mm512_loadu_pd(x + j), 8);
        for (; j < r->length; j++)
            a[index[inner[j]]] = x[j];
    }
}

AVX2 void gather_simd_avx2(const gather_rows *r, double *restrict to, const double *restrict from,
                           const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        for (; j + 4 <= r->length; j += 4)
            _mm256_storeu_pd(x + j, _mm256_i32gather_pd(a, four(index + j), 8));
        for (; j < r->length; j++)
            x[j] = a[index[j]];
    }
}

/* The four values one by one, at the four indices. */
static inline AVX2 void store_each(double *a, __m128i index, __m256d x)
{
    const __m128d low = _mm256_castpd256_pd128(x), high = _mm256_extractf128_pd(x, 1);
    _mm_storel_pd(a + _mm_extract_epi32(index, 0), low);
    _mm_storeh_pd(a + _mm_extract_epi32(index, 1), low);
    _mm_storel_pd(a + _mm_extract_epi32(index, 2), high);
    _mm_storeh_pd(a + _mm_extract_epi32(index, 3), high);
}

AVX2 void scatter_simd_avx2(const gather_rows *r, double *restrict to, const double *restrict from,
                            const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        for (; j + 4 <= r->length; j += 4)
            store_each(a, four(index + j), _mm256_loadu_pd(x + j));
        for (; j < r->length; j++)
            a[index[j]] = x[j];
    }
}

AVX2 void gs_simd_avx2(const gather_rows *r, double *restrict to, const double *restrict from,
                       const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first; i < r->last; i++) {
        const double *restrict a = from + r->delta * i;
        double *restrict b = to + r->delta_to * i;
        size_t j = 0;
        for (; j + 4 <= r->length; j += 4)
            store_each(b, four(inner + j), _mm256_i32gather_pd(a, four(index + j), 8));
        for (; j < r->length; j++)
            b[inner[j]] = a[index[j]];
    }
}

AVX2 void multigather_simd_avx2(const gather_rows *r, double *restrict to, const double *restrict from,
                                const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        for (; j + 4 <= r->length; j += 4)
            _mm256_storeu_pd(x + j, _mm256_i32gather_pd(a, _mm_i32gather_epi32(index, four(inner + j), 4), 8));
        for (; j < r->length; j++)
            x[j] = a[index[inner[j]]];
    }
}

AVX2 void multiscatter_simd_avx2(const gather_rows *r, double *restrict to, const double *restrict from,
                                 const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        for (; j + 4 <= r->length; j += 4)
            store_each(a, _mm_i32gather_epi32(index, four(inner + j), 4), _mm256_loadu_pd(x + j));
        for (; j < r->length; j++)
            a[index[inner[j]]] = x[j];
    }
}

#endif
