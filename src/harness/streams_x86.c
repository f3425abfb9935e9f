/* Limit streams for x86-64: the widest loads and stores the CPU has, with and without non-temporal stores.
 *
 * Written with intrinsics and unrolled by whole cache lines, so that no compiler decides about them; once for both widths, but for the
 * loads: so many sums are a line of each quarter with AVX2 and two with AVX-512. */
#if defined(__x86_64__)
#include "plumbline.h"
#include "streams.h"

#define PL_SIMD 512
#include "streams_x86.h"

/* Eight sums: two loads a cycle at a latency of four need as many. */
TARGET double pl_load_avx512(size_t lines, double *a, double *b, double *c, double *d)
{
    __m512d s0 = _mm512_setzero_pd(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    size_t i = 0;
    for (; i + 16 <= 8 * lines; i += 16) {
        s0 = _mm512_add_pd(s0, _mm512_load_pd(a + i));
        s1 = _mm512_add_pd(s1, _mm512_load_pd(a + i + 8));
        s2 = _mm512_add_pd(s2, _mm512_load_pd(b + i));
        s3 = _mm512_add_pd(s3, _mm512_load_pd(b + i + 8));
        s4 = _mm512_add_pd(s4, _mm512_load_pd(c + i));
        s5 = _mm512_add_pd(s5, _mm512_load_pd(c + i + 8));
        s6 = _mm512_add_pd(s6, _mm512_load_pd(d + i));
        s7 = _mm512_add_pd(s7, _mm512_load_pd(d + i + 8));
    }
    if (i < 8 * lines) {
        s0 = _mm512_add_pd(s0, _mm512_load_pd(a + i));
        s2 = _mm512_add_pd(s2, _mm512_load_pd(b + i));
        s4 = _mm512_add_pd(s4, _mm512_load_pd(c + i));
        s6 = _mm512_add_pd(s6, _mm512_load_pd(d + i));
    }
    s0 = _mm512_add_pd(_mm512_add_pd(s0, s1), _mm512_add_pd(s2, s3));
    s4 = _mm512_add_pd(_mm512_add_pd(s4, s5), _mm512_add_pd(s6, s7));
    return _mm512_reduce_add_pd(_mm512_add_pd(s0, s4));
}

#define PL_SIMD 256
#include "streams_x86.h"

TARGET double pl_load_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    __m256d s0 = _mm256_setzero_pd(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    double sum[4];
    UNROLL for (size_t i = 0; i < 8 * lines; i += 8) {
        s0 = _mm256_add_pd(s0, _mm256_load_pd(a + i));
        s1 = _mm256_add_pd(s1, _mm256_load_pd(a + i + 4));
        s2 = _mm256_add_pd(s2, _mm256_load_pd(b + i));
        s3 = _mm256_add_pd(s3, _mm256_load_pd(b + i + 4));
        s4 = _mm256_add_pd(s4, _mm256_load_pd(c + i));
        s5 = _mm256_add_pd(s5, _mm256_load_pd(c + i + 4));
        s6 = _mm256_add_pd(s6, _mm256_load_pd(d + i));
        s7 = _mm256_add_pd(s7, _mm256_load_pd(d + i + 4));
    }
    s0 = _mm256_add_pd(_mm256_add_pd(s0, s1), _mm256_add_pd(s2, s3));
    s4 = _mm256_add_pd(_mm256_add_pd(s4, s5), _mm256_add_pd(s6, s7));
    _mm256_storeu_pd(sum, _mm256_add_pd(s0, s4));
    return sum[0] + sum[1] + sum[2] + sum[3];
}

#endif
