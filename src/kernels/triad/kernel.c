/* Vector triad  A(:) = B(:) + C(:) * D(:):  32 bytes and 2 flops per iteration.
 *
 * Hager, Zeiser, Treibig, Wellein 2004, sections 3 and 4; Hager et al. 2007 (RZBENCH), section 3.1.
 * The variants stand side by side; each differs from `plain` in one thing, after which it is named.  The recurrence loop
 * of the source is in triad.c: it calls these functions through a pointer, so that no compiler can interchange the two. */
#include "kernel.h"

void triad_plain(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                 const double *restrict d, const long *parameters)
{
    (void)parameters;
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

PL_NOVEC_FUNCTION
void triad_novec(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                 const double *restrict d, const long *parameters)
{
    (void)parameters;
    PL_NOVEC_LOOP
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

#ifdef _OPENMP
/* A parallel region for each pass, as a program has it whose loops are parallel one by one (hager2004, section 4). */
void triad_openmp(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                  const double *restrict d, const long *parameters)
{
    (void)parameters;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}
#endif

/* Software prefetch of all four streams, one instruction per cache line, `distance` elements ahead. */
void triad_prefetch(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                    const double *restrict d, const long *parameters)
{
    const size_t ahead = (size_t)parameters[TRIAD_DISTANCE];
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __builtin_prefetch(a + i + ahead, 1);
        __builtin_prefetch(b + i + ahead, 0);
        __builtin_prefetch(c + i + ahead, 0);
        __builtin_prefetch(d + i + ahead, 0);
        for (size_t k = i; k < i + 8; k++)
            a[k] = b[k] + c[k] * d[k];
    }
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

/* preload_c: preload as a high-level language can say it, with ordinary stores: a word of each line of a block of B, of C and of D is
 * summed by a loop of its own, and the sums are used (hager2004, section 3.2, the rightmost category of figure 4). */
static double sum_of_lines(size_t n, const double *restrict x)
{
    double sum = 0;
    for (size_t i = 0; i < n; i += PL_LINE / sizeof(double))
        sum += x[i];
    return sum;
}

void triad_preload_c(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                     const double *restrict d, const long *parameters)
{
    const size_t block = (size_t)parameters[TRIAD_BLOCK];
    for (size_t i = 0; i < n; i += block) {
        const size_t length = n - i < block ? n - i : block;
        const double sum = sum_of_lines(length, b + i) + sum_of_lines(length, c + i) + sum_of_lines(length, d + i);
        PL_CONSUME(sum);
        triad_plain(length, a + i, b + i, c + i, d + i, parameters);
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define SSE2 __attribute__((target("sse2")))
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
#define UNROLL _Pragma("GCC unroll 4")

/* simd: intrinsics, as wide as the CPU has. */

AVX512 void triad_simd_avx512(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                              const double *restrict d, const long *parameters)
{
    size_t i = 0;
    (void)parameters;
    UNROLL
    for (; i + 8 <= n; i += 8)
        _mm512_storeu_pd(a + i, _mm512_fmadd_pd(_mm512_loadu_pd(c + i), _mm512_loadu_pd(d + i), _mm512_loadu_pd(b + i)));
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

AVX2 void triad_simd_avx2(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                          const double *restrict d, const long *parameters)
{
    size_t i = 0;
    (void)parameters;
    UNROLL
    for (; i + 4 <= n; i += 4)
        _mm256_storeu_pd(a + i, _mm256_fmadd_pd(_mm256_loadu_pd(c + i), _mm256_loadu_pd(d + i), _mm256_loadu_pd(b + i)));
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

SSE2 void triad_simd_sse2(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                          const double *restrict d, const long *parameters)
{
    size_t i = 0;
    (void)parameters;
    UNROLL
    for (; i + 2 <= n; i += 2)
        _mm_storeu_pd(a + i, _mm_add_pd(_mm_loadu_pd(b + i), _mm_mul_pd(_mm_loadu_pd(c + i), _mm_loadu_pd(d + i))));
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

/* nt: as simd, with non-temporal stores, which take no write-allocate.  They need aligned addresses: the iterations
 * before the first whole cache line of A are ordinary ones. */

static size_t before_line(const double *a, size_t n)
{
    const size_t head = (size_t)(-(uintptr_t)a % PL_LINE) / sizeof(double);
    return head < n ? head : n;
}

AVX512 void triad_nt_avx512(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                            const double *restrict d, const long *parameters)
{
    const size_t head = before_line(a, n);
    size_t i = 0;
    (void)parameters;
    for (; i < head; i++)
        a[i] = b[i] + c[i] * d[i];
    UNROLL
    for (; i + 8 <= n; i += 8)
        _mm512_stream_pd(a + i, _mm512_fmadd_pd(_mm512_loadu_pd(c + i), _mm512_loadu_pd(d + i), _mm512_loadu_pd(b + i)));
    _mm_sfence();
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

AVX2 void triad_nt_avx2(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                        const double *restrict d, const long *parameters)
{
    const size_t head = before_line(a, n);
    size_t i = 0;
    (void)parameters;
    for (; i < head; i++)
        a[i] = b[i] + c[i] * d[i];
    UNROLL
    for (; i + 8 <= n; i += 8) {
        _mm256_stream_pd(a + i, _mm256_fmadd_pd(_mm256_loadu_pd(c + i), _mm256_loadu_pd(d + i), _mm256_loadu_pd(b + i)));
        _mm256_stream_pd(a + i + 4,
                         _mm256_fmadd_pd(_mm256_loadu_pd(c + i + 4), _mm256_loadu_pd(d + i + 4), _mm256_loadu_pd(b + i + 4)));
    }
    _mm_sfence();
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

SSE2 void triad_nt_sse2(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                        const double *restrict d, const long *parameters)
{
    const size_t head = before_line(a, n);
    size_t i = 0;
    (void)parameters;
    for (; i < head; i++)
        a[i] = b[i] + c[i] * d[i];
    UNROLL
    for (; i + 2 <= n; i += 2)
        _mm_stream_pd(a + i, _mm_add_pd(_mm_loadu_pd(b + i), _mm_mul_pd(_mm_loadu_pd(c + i), _mm_loadu_pd(d + i))));
    _mm_sfence();
    for (; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}

/* preload: as nt, but a block of B, of C and of D is brought into cache first, each by a loop of its own that loads one
 * word per line, so that memory sees one stream at a time (hager2004, section 3.2). */

static void bring(size_t n, const double *restrict x)
{
    for (size_t i = 0; i < n; i += PL_LINE / sizeof(double))
        PL_CONSUME(x[i]);
}

static void preload(triad_loop *compute, size_t n, double *restrict a, const double *restrict b,
                    const double *restrict c, const double *restrict d, const long *parameters)
{
    const size_t block = (size_t)parameters[TRIAD_BLOCK];
    for (size_t i = 0; i < n; i += block) {
        const size_t length = n - i < block ? n - i : block;
        bring(length, b + i);
        bring(length, c + i);
        bring(length, d + i);
        compute(length, a + i, b + i, c + i, d + i, parameters);
    }
}

void triad_preload_avx512(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                          const double *restrict d, const long *parameters)
{
    preload(triad_nt_avx512, n, a, b, c, d, parameters);
}

void triad_preload_avx2(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                        const double *restrict d, const long *parameters)
{
    preload(triad_nt_avx2, n, a, b, c, d, parameters);
}

void triad_preload_sse2(size_t n, double *restrict a, const double *restrict b, const double *restrict c,
                        const double *restrict d, const long *parameters)
{
    preload(triad_nt_sse2, n, a, b, c, d, parameters);
}

#endif
