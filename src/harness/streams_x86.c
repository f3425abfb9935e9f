/* Limit streams for x86-64: the widest loads and stores the CPU has, with and without non-temporal stores.
 *
 * Written with intrinsics and unrolled by whole cache lines, so that no compiler decides about them.  Each file of
 * loops stands beside the other so that they can be compared. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "plumbline.h"
#include "streams.h"

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
#define UNROLL _Pragma("GCC unroll 4")

/* --- AVX-512: a line is one register ----------------------------------------------------------------------- */

/* Eight sums: two loads a cycle at a latency of four need as many. */
AVX512 double pl_load_avx512(size_t lines, double *a, double *b, double *c, double *d)
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

AVX512 double pl_store_avx512(size_t lines, double *a, double *b, double *c, double *d)
{
    const __m512d one = _mm512_set1_pd(1);
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL
        for (size_t i = 0; i < 8 * lines; i += 8) {
            _mm512_store_pd(part[q] + i, one);
            PL_KEEP_LOOP();
        }
    return 0;
}

AVX512 double pl_update_avx512(size_t lines, double *a, double *b, double *c, double *d)
{
    const __m512d zero = _mm512_setzero_pd();
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL
        for (size_t i = 0; i < 8 * lines; i += 8)
            _mm512_store_pd(part[q] + i, _mm512_sub_pd(zero, _mm512_load_pd(part[q] + i)));
    return 0;
}

AVX512 double pl_copy_avx512(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8) {
        _mm512_store_pd(c + i, _mm512_load_pd(a + i));
        _mm512_store_pd(d + i, _mm512_load_pd(b + i));
    }
    return 0;
}

AVX512 double pl_triad_avx512(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8)
        _mm512_store_pd(a + i, _mm512_fmadd_pd(_mm512_load_pd(c + i), _mm512_load_pd(d + i), _mm512_load_pd(b + i)));
    return 0;
}

AVX512 double pl_store_nt_avx512(size_t lines, double *a, double *b, double *c, double *d)
{
    const __m512d one = _mm512_set1_pd(1);
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL
        for (size_t i = 0; i < 8 * lines; i += 8)
            _mm512_stream_pd(part[q] + i, one);
    _mm_sfence();
    return 0;
}

AVX512 double pl_copy_nt_avx512(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8)
        _mm512_stream_pd(c + i, _mm512_load_pd(a + i));
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8)
        _mm512_stream_pd(d + i, _mm512_load_pd(b + i));
    _mm_sfence();
    return 0;
}

AVX512 double pl_triad_nt_avx512(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8)
        _mm512_stream_pd(a + i, _mm512_fmadd_pd(_mm512_load_pd(c + i), _mm512_load_pd(d + i), _mm512_load_pd(b + i)));
    _mm_sfence();
    return 0;
}

/* --- AVX2: a line is two registers -------------------------------------------------------------------------- */

AVX2 double pl_load_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    __m256d s0 = _mm256_setzero_pd(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    double sum[4];
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8) {
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

AVX2 double pl_store_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    const __m256d one = _mm256_set1_pd(1);
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL
        for (size_t i = 0; i < 8 * lines; i += 8) {
            _mm256_store_pd(part[q] + i, one);
            _mm256_store_pd(part[q] + i + 4, one);
            PL_KEEP_LOOP();
        }
    return 0;
}

AVX2 double pl_update_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    const __m256d zero = _mm256_setzero_pd();
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL
        for (size_t i = 0; i < 8 * lines; i += 4)
            _mm256_store_pd(part[q] + i, _mm256_sub_pd(zero, _mm256_load_pd(part[q] + i)));
    return 0;
}

AVX2 double pl_copy_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8) {
        _mm256_store_pd(c + i, _mm256_load_pd(a + i));
        _mm256_store_pd(c + i + 4, _mm256_load_pd(a + i + 4));
        _mm256_store_pd(d + i, _mm256_load_pd(b + i));
        _mm256_store_pd(d + i + 4, _mm256_load_pd(b + i + 4));
    }
    return 0;
}

AVX2 double pl_triad_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 4)
        _mm256_store_pd(a + i, _mm256_fmadd_pd(_mm256_load_pd(c + i), _mm256_load_pd(d + i), _mm256_load_pd(b + i)));
    return 0;
}

AVX2 double pl_store_nt_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    const __m256d one = _mm256_set1_pd(1);
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL
        for (size_t i = 0; i < 8 * lines; i += 8) {
            _mm256_stream_pd(part[q] + i, one);
            _mm256_stream_pd(part[q] + i + 4, one);
        }
    _mm_sfence();
    return 0;
}

AVX2 double pl_copy_nt_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8) {
        _mm256_stream_pd(c + i, _mm256_load_pd(a + i));
        _mm256_stream_pd(c + i + 4, _mm256_load_pd(a + i + 4));
    }
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8) {
        _mm256_stream_pd(d + i, _mm256_load_pd(b + i));
        _mm256_stream_pd(d + i + 4, _mm256_load_pd(b + i + 4));
    }
    _mm_sfence();
    return 0;
}

AVX2 double pl_triad_nt_avx2(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL
    for (size_t i = 0; i < 8 * lines; i += 8) {
        _mm256_stream_pd(a + i, _mm256_fmadd_pd(_mm256_load_pd(c + i), _mm256_load_pd(d + i), _mm256_load_pd(b + i)));
        _mm256_stream_pd(a + i + 4, _mm256_fmadd_pd(_mm256_load_pd(c + i + 4), _mm256_load_pd(d + i + 4), _mm256_load_pd(b + i + 4)));
    }
    _mm_sfence();
    return 0;
}

#endif
