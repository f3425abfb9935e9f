/* Seven-point Jacobi sweep in three dimensions: 8 flops per point, 7 loads and 1 store of 8 bytes.
 *
 * The second stencil beside anderson1997's (ninepoint): what it gets of the memory's bandwidth depends on which of the seven
 * loads find their line in a cache, the layer condition (jacobi.c).  A sweep reads `in` and writes `out`, and so does the
 * next one, so that every pass does the same. */
#include "kernel.h"

void jacobi_plain(const jacobi_box *box, size_t first, size_t last, double *restrict out, const double *restrict in)
{
    const size_t n = box->n, row = box->row, plane = box->plane;
    for (size_t k = first; k < last; k++)
        for (size_t j = box->from; j < box->to; j++) {
            const double *restrict u = in + k * plane + j * row;
            double *restrict v = out + k * plane + j * row;
            for (size_t i = 1; i < n - 1; i++)
                v[i] = JACOBI_CENTRE * u[i] + JACOBI_NEIGHBOUR * ((u[i - 1] + u[i + 1]) + (u[i - row] + u[i + row]) +
                                                                  (u[i - plane] + u[i + plane]));
        }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* blocked: `block` rows of all planes, then the next ones. */
void jacobi_blocked(const jacobi_box *box, size_t first, size_t last, double *restrict out, const double *restrict in)
{
    const size_t n = box->n, row = box->row, plane = box->plane;
    for (size_t begin = box->from; begin < box->to; begin += box->block)
        for (size_t k = first; k < last; k++)
            for (size_t j = begin; j < least(begin + box->block, box->to); j++) {
                const double *restrict u = in + k * plane + j * row;
                double *restrict v = out + k * plane + j * row;
                for (size_t i = 1; i < n - 1; i++)
                    v[i] = JACOBI_CENTRE * u[i] + JACOBI_NEIGHBOUR * ((u[i - 1] + u[i + 1]) + (u[i - row] + u[i + row]) +
                                                                      (u[i - plane] + u[i + plane]));
            }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,fma")))
#define AVX2 __attribute__((target("avx2,fma")))
#define SSE2 __attribute__((target("sse2")))

/* 8, 4 or 2 points at once, and one. */

AVX512 static inline __m512d points_avx512(const double *u, size_t row, size_t plane)
{
    const __m512d x = _mm512_add_pd(_mm512_loadu_pd(u - 1), _mm512_loadu_pd(u + 1));
    const __m512d y = _mm512_add_pd(_mm512_loadu_pd(u - row), _mm512_loadu_pd(u + row));
    const __m512d z = _mm512_add_pd(_mm512_loadu_pd(u - plane), _mm512_loadu_pd(u + plane));
    return _mm512_fmadd_pd(_mm512_set1_pd(JACOBI_CENTRE), _mm512_loadu_pd(u),
                           _mm512_mul_pd(_mm512_set1_pd(JACOBI_NEIGHBOUR), _mm512_add_pd(_mm512_add_pd(x, y), z)));
}

AVX2 static inline __m256d points_avx2(const double *u, size_t row, size_t plane)
{
    const __m256d x = _mm256_add_pd(_mm256_loadu_pd(u - 1), _mm256_loadu_pd(u + 1));
    const __m256d y = _mm256_add_pd(_mm256_loadu_pd(u - row), _mm256_loadu_pd(u + row));
    const __m256d z = _mm256_add_pd(_mm256_loadu_pd(u - plane), _mm256_loadu_pd(u + plane));
    return _mm256_fmadd_pd(_mm256_set1_pd(JACOBI_CENTRE), _mm256_loadu_pd(u),
                           _mm256_mul_pd(_mm256_set1_pd(JACOBI_NEIGHBOUR), _mm256_add_pd(_mm256_add_pd(x, y), z)));
}

SSE2 static inline __m128d points_sse2(const double *u, size_t row, size_t plane)
{
    const __m128d x = _mm_add_pd(_mm_loadu_pd(u - 1), _mm_loadu_pd(u + 1));
    const __m128d y = _mm_add_pd(_mm_loadu_pd(u - row), _mm_loadu_pd(u + row));
    const __m128d z = _mm_add_pd(_mm_loadu_pd(u - plane), _mm_loadu_pd(u + plane));
    return _mm_add_pd(_mm_mul_pd(_mm_set1_pd(JACOBI_CENTRE), _mm_loadu_pd(u)),
                      _mm_mul_pd(_mm_set1_pd(JACOBI_NEIGHBOUR), _mm_add_pd(_mm_add_pd(x, y), z)));
}

static inline double point(const double *u, size_t row, size_t plane)
{
    return JACOBI_CENTRE * u[0] + JACOBI_NEIGHBOUR * ((*(u - 1) + u[1]) + (*(u - row) + u[row]) + (*(u - plane) + u[plane]));
}

/* nt: one row with non-temporal stores, which take no write-allocate.  The first interior point of every row begins a
 * cache line (jacobi.c); what is left at its end, less than a line, is stored as usual. */

AVX512 static inline void row_nt_avx512(const jacobi_box *box, double *v, const double *u, const double *ahead)
{
    size_t i = 1;
    (void)ahead;
    for (; i + 8 < box->n; i += 8)
        _mm512_stream_pd(v + i, points_avx512(u + i, box->row, box->plane));
    for (; i + 1 < box->n; i++)
        v[i] = point(u + i, box->row, box->plane);
}

AVX2 static inline void row_nt_avx2(const jacobi_box *box, double *v, const double *u, const double *ahead)
{
    size_t i = 1;
    (void)ahead;
    for (; i + 8 < box->n; i += 8)
        for (size_t m = i; m < i + 8; m += 4)
            _mm256_stream_pd(v + m, points_avx2(u + m, box->row, box->plane));
    for (; i + 1 < box->n; i++)
        v[i] = point(u + i, box->row, box->plane);
}

SSE2 static inline void row_nt_sse2(const jacobi_box *box, double *v, const double *u, const double *ahead)
{
    size_t i = 1;
    (void)ahead;
    for (; i + 8 < box->n; i += 8)
        for (size_t m = i; m < i + 8; m += 2)
            _mm_stream_pd(v + m, points_sse2(u + m, box->row, box->plane));
    for (; i + 1 < box->n; i++)
        v[i] = point(u + i, box->row, box->plane);
}

/* prefetch: nt, and of the seven loads the one that goes to memory is prefetched: a line of `ahead` for each of u. */

AVX512 static inline void row_prefetch_avx512(const jacobi_box *box, double *v, const double *u, const double *ahead)
{
    size_t i = 1;
    for (; i + 8 < box->n; i += 8) {
        _mm_prefetch((const char *)(ahead + i), _MM_HINT_T0);
        _mm512_stream_pd(v + i, points_avx512(u + i, box->row, box->plane));
    }
    for (; i + 1 < box->n; i++)
        v[i] = point(u + i, box->row, box->plane);
}

AVX2 static inline void row_prefetch_avx2(const jacobi_box *box, double *v, const double *u, const double *ahead)
{
    size_t i = 1;
    for (; i + 8 < box->n; i += 8) {
        _mm_prefetch((const char *)(ahead + i), _MM_HINT_T0);
        for (size_t m = i; m < i + 8; m += 4)
            _mm256_stream_pd(v + m, points_avx2(u + m, box->row, box->plane));
    }
    for (; i + 1 < box->n; i++)
        v[i] = point(u + i, box->row, box->plane);
}

SSE2 static inline void row_prefetch_sse2(const jacobi_box *box, double *v, const double *u, const double *ahead)
{
    size_t i = 1;
    for (; i + 8 < box->n; i += 8) {
        _mm_prefetch((const char *)(ahead + i), _MM_HINT_T0);
        for (size_t m = i; m < i + 8; m += 2)
            _mm_stream_pd(v + m, points_sse2(u + m, box->row, box->plane));
    }
    for (; i + 1 < box->n; i++)
        v[i] = point(u + i, box->row, box->plane);
}

/* The order of blocked; plain's where a block has all rows.  What is needed next lies `distance` elements ahead in the next
 * plane, or, where the block ends before that, at its beginning in the plane after that. */
typedef void row_loop(const jacobi_box *box, double *v, const double *u, const double *ahead);

static inline __attribute__((always_inline)) void sweep(row_loop *compute, size_t block, const jacobi_box *box, size_t first,
                                                        size_t last, double *out, const double *in)
{
    for (size_t begin = box->from; begin < box->to; begin += block) {
        const size_t end = least(begin + block, box->to);
        for (size_t k = first; k < last; k++)
            for (size_t j = begin; j < end; j++) {
                const size_t at = k * box->plane + j * box->row;
                const bool in_block = (end - j) * box->row > box->distance;
                compute(box, out + at, in + at,
                        in + at + box->plane + box->distance + (in_block ? 0 : box->plane - (end - begin) * box->row));
            }
    }
    _mm_sfence();
}

#define ARGUMENTS const jacobi_box *box, size_t first, size_t last, double *restrict out, const double *restrict in

AVX512 void jacobi_nt_avx512(ARGUMENTS) { sweep(row_nt_avx512, box->rows, box, first, last, out, in); }
AVX2 void jacobi_nt_avx2(ARGUMENTS) { sweep(row_nt_avx2, box->rows, box, first, last, out, in); }
SSE2 void jacobi_nt_sse2(ARGUMENTS) { sweep(row_nt_sse2, box->rows, box, first, last, out, in); }

AVX512 void jacobi_prefetch_avx512(ARGUMENTS) { sweep(row_prefetch_avx512, box->rows, box, first, last, out, in); }
AVX2 void jacobi_prefetch_avx2(ARGUMENTS) { sweep(row_prefetch_avx2, box->rows, box, first, last, out, in); }
SSE2 void jacobi_prefetch_sse2(ARGUMENTS) { sweep(row_prefetch_sse2, box->rows, box, first, last, out, in); }

AVX512 void jacobi_blocked_nt_avx512(ARGUMENTS) { sweep(row_nt_avx512, box->block, box, first, last, out, in); }
AVX2 void jacobi_blocked_nt_avx2(ARGUMENTS) { sweep(row_nt_avx2, box->block, box, first, last, out, in); }
SSE2 void jacobi_blocked_nt_sse2(ARGUMENTS) { sweep(row_nt_sse2, box->block, box, first, last, out, in); }

AVX512 void jacobi_blocked_prefetch_avx512(ARGUMENTS) { sweep(row_prefetch_avx512, box->block, box, first, last, out, in); }
AVX2 void jacobi_blocked_prefetch_avx2(ARGUMENTS) { sweep(row_prefetch_avx2, box->block, box, first, last, out, in); }
SSE2 void jacobi_blocked_prefetch_sse2(ARGUMENTS) { sweep(row_prefetch_sse2, box->block, box, first, last, out, in); }

#endif
