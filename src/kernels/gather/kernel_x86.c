/* simd: the gather and scatter instructions of x86-64, for each of the loops of kernel.c.
 *
 * AVX-512 has both, for 8 doubles; AVX2 has gather only, for 4: there the stores of a scatter are made one by one.  Where
 * indices of one vector are equal, the scatter instruction stores in their order: the last one stays, as in the loop. */
#include "kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define CHOSEN(list, inner) _mm256_i32gather_epi32(list, inner, 4)
#define SCATTER_TO(a, index, x) _mm512_i32scatter_pd(a, index, x, 8)
#define PL_SIMD 512
#include "simd_loops.h"

/* The four values one by one, at the four indices. */
__attribute__((target("avx2"))) static inline void store_each(double *a, __m128i index, __m256d x)
{
    const __m128d low = _mm256_castpd256_pd128(x), high = _mm256_extractf128_pd(x, 1);
    _mm_storel_pd(a + _mm_extract_epi32(index, 0), low);
    _mm_storeh_pd(a + _mm_extract_epi32(index, 1), low);
    _mm_storel_pd(a + _mm_extract_epi32(index, 2), high);
    _mm_storeh_pd(a + _mm_extract_epi32(index, 3), high);
}

#define CHOSEN(list, inner) _mm_i32gather_epi32(list, inner, 4)
#define SCATTER_TO(a, index, x) store_each(a, index, x)
#define PL_SIMD 256
#include "simd_loops.h"
#endif
