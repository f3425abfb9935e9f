/* The most arithmetic that a core does: fused multiply-adds in registers, on independent chains, at each SIMD width.
 *
 * All values are whole numbers below 2^53, so that every operation is exact, fused or not, and the sum tells how many there
 * were.  In all but `plain` a chain goes through the addend, as in a matrix product. */
#include "kernel.h"

/* As the compiler makes it.  Here the chain goes through the factor: a product of constants would be taken out of the loop. */
void flops_plain(size_t steps, flops_stream *stream)
{
    const double s = stream->constant[FLOPS_S], below = stream->constant[FLOPS_BELOW], minus = stream->constant[FLOPS_MINUS_ONE];
    double x[FLOPS_PLAIN];
    memcpy(x, stream->x, sizeof x);
    for (size_t i = 0; i < steps; i++) {
        for (int k = 0; k < FLOPS_PLAIN; k++)
            x[k] = x[k] * minus + below;
        for (int k = 0; k < FLOPS_PLAIN; k++)
            x[k] = x[k] * minus + s;
    }
    memcpy(stream->x, x, sizeof x);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define FMA __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
#define EACH_CHAIN _Pragma("GCC unroll 12") for (int k = 0; k < FLOPS_CHAINS; k++)
#define EACH_CHAIN_512 _Pragma("GCC unroll 24") for (int k = 0; k < FLOPS_CHAINS_512; k++)

FMA void flops_scalar(size_t steps, flops_stream *stream)
{
    const double s = stream->constant[FLOPS_S], below = stream->constant[FLOPS_BELOW], above = stream->constant[FLOPS_ABOVE];
    double x[FLOPS_CHAINS];
    EACH_CHAIN
        x[k] = stream->x[k];
    for (size_t i = 0; i < steps; i++) {
        EACH_CHAIN {
            x[k] = __builtin_fma(s, s, x[k]);
            __asm__("" : "+x"(x[k]));       /* a register of its own: no vector is made of several */
        }
        EACH_CHAIN {
            x[k] = __builtin_fma(-below, above, x[k]);
            __asm__("" : "+x"(x[k]));
        }
    }
    EACH_CHAIN
        stream->x[k] = x[k];
}

FMA void flops_simd128(size_t steps, flops_stream *stream)
{
    const __m128d s = _mm_set1_pd(stream->constant[FLOPS_S]);
    const __m128d below = _mm_set1_pd(stream->constant[FLOPS_BELOW]), above = _mm_set1_pd(stream->constant[FLOPS_ABOVE]);
    __m128d x[FLOPS_CHAINS];
    EACH_CHAIN
        x[k] = _mm_loadu_pd(stream->x + 2 * k);
    for (size_t i = 0; i < steps; i++) {
        EACH_CHAIN
            x[k] = _mm_fmadd_pd(s, s, x[k]);
        EACH_CHAIN
            x[k] = _mm_fnmadd_pd(below, above, x[k]);
    }
    EACH_CHAIN
        _mm_storeu_pd(stream->x + 2 * k, x[k]);
}

FMA void flops_simd256(size_t steps, flops_stream *stream)
{
    const __m256d s = _mm256_set1_pd(stream->constant[FLOPS_S]);
    const __m256d below = _mm256_set1_pd(stream->constant[FLOPS_BELOW]), above = _mm256_set1_pd(stream->constant[FLOPS_ABOVE]);
    __m256d x[FLOPS_CHAINS];
    EACH_CHAIN
        x[k] = _mm256_loadu_pd(stream->x + 4 * k);
    for (size_t i = 0; i < steps; i++) {
        EACH_CHAIN
            x[k] = _mm256_fmadd_pd(s, s, x[k]);
        EACH_CHAIN
            x[k] = _mm256_fnmadd_pd(below, above, x[k]);
    }
    EACH_CHAIN
        _mm256_storeu_pd(stream->x + 4 * k, x[k]);
}

AVX512 void flops_simd512(size_t steps, flops_stream *stream)
{
    const __m512d s = _mm512_set1_pd(stream->constant[FLOPS_S]);
    const __m512d below = _mm512_set1_pd(stream->constant[FLOPS_BELOW]), above = _mm512_set1_pd(stream->constant[FLOPS_ABOVE]);
    __m512d x[FLOPS_CHAINS_512];
    EACH_CHAIN_512
        x[k] = _mm512_loadu_pd(stream->x + 8 * k);
    for (size_t i = 0; i < steps; i++) {
        EACH_CHAIN_512
            x[k] = _mm512_fmadd_pd(s, s, x[k]);
        EACH_CHAIN_512
            x[k] = _mm512_fnmadd_pd(below, above, x[k]);
    }
    EACH_CHAIN_512
        _mm512_storeu_pd(stream->x + 8 * k, x[k]);
}

#elif defined(__aarch64__)
#include <arm_neon.h>

#define EACH_CHAIN _Pragma("GCC unroll 24") for (int k = 0; k < FLOPS_CHAINS; k++)

void flops_simd128(size_t steps, flops_stream *stream)
{
    const float64x2_t s = vdupq_n_f64(stream->constant[FLOPS_S]);
    const float64x2_t below = vdupq_n_f64(stream->constant[FLOPS_BELOW]), above = vdupq_n_f64(stream->constant[FLOPS_ABOVE]);
    float64x2_t x[FLOPS_CHAINS];
    EACH_CHAIN
        x[k] = vld1q_f64(stream->x + 2 * k);
    for (size_t i = 0; i < steps; i++) {
        EACH_CHAIN
            x[k] = vfmaq_f64(x[k], s, s);
        EACH_CHAIN
            x[k] = vfmsq_f64(x[k], below, above);
    }
    EACH_CHAIN
        vst1q_f64(stream->x + 2 * k, x[k]);
}

#endif
