/* The blocked transpose with register transposes of 8 x 8 (AVX-512) or 8 x 4 elements (AVX2), for x86-64.
 *
 * The strips are those of transpose_blocked; a strip goes down eight rows at a time, so that each of its columns gives
 * the elements of a whole line of B at once.  With non-temporal stores no line has to wait in a cache for the rest of its
 * elements: a power of two as leading dimension is no conflict, and a strip may be as wide as a page.  That suits the
 * memory, which then reads on for long: what hardware prefetches past the end of a short row is not wanted for a strip. */
#include "kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))
#define INLINE static inline __attribute__((always_inline))

enum { LINE = TRANSPOSE_LINE, HALF = LINE / 2 };

/* Two lines further along the eight rows of row i and column j; at the strip's end, where its next rows begin: other pages,
 * which the hardware does not foresee. */
INLINE void prefetch_rows(const double *a, size_t ld, size_t i, size_t j, size_t strip, size_t end)
{
    const size_t next = j + 2 * LINE;
    a += next < end ? i * ld + next : (i + LINE) * ld + strip + next - end;
    for (int k = 0; k < LINE; k++)
        _mm_prefetch((const char *)(a + (size_t)k * ld), _MM_HINT_T0);
}

/* Elements of a row from `to` on that are before its first whole line. */
INLINE size_t before_line(const double *to) { return (size_t)(-(uintptr_t)to % PL_LINE) / sizeof(double); }

/* A tile that is cut off by the edge of the matrix or of the band, element by element. */
PL_NOVEC_FUNCTION
static void edge(const double *a, size_t lda, size_t rows, size_t columns, double *b, size_t ldb)
{
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < rows; i++)
            b[j * ldb + i] = a[i * lda + j];
}

/* Rows first..n-1 of A of a strip, element by element. */
static void last_rows(size_t n, size_t ld, const double *a, double *b, size_t first, size_t j)
{
    for (size_t i = first; i < n; i++)
        b[j * ld + i] = a[i * ld + j];
}

/* --- AVX-512 --------------------------------------------------------------------------------------------------- */

INLINE __mmask8 first_of(size_t count) { return (__mmask8)((1u << count) - 1); }

/* column[k] becomes element k of each of the rows at a; there are so many rows and columns, at most eight. */
INLINE AVX512 void tile_avx512(const double *a, size_t ld, size_t rows, size_t columns, __m512d column[LINE])
{
    __m512d row[LINE], pair[LINE], quad[LINE];
    for (size_t k = 0; k < LINE; k++)
        row[k] = k < rows ? _mm512_maskz_loadu_pd(first_of(columns), a + k * ld) : _mm512_setzero_pd();
    for (int k = 0; k < LINE; k += 2) {         /* of rows k and k + 1: the even columns, the odd columns */
        pair[k] = _mm512_unpacklo_pd(row[k], row[k + 1]);
        pair[k + 1] = _mm512_unpackhi_pd(row[k], row[k + 1]);
    }
    for (int k = 0; k < LINE; k += 4)           /* of rows k .. k + 3: columns 0 and 4, 1 and 5, 2 and 6, 3 and 7 */
        for (int odd = 0; odd < 2; odd++) {
            quad[k + odd] = _mm512_shuffle_f64x2(pair[k + odd], pair[k + 2 + odd], 0x88);
            quad[k + 2 + odd] = _mm512_shuffle_f64x2(pair[k + odd], pair[k + 2 + odd], 0xDD);
        }
    for (int k = 0; k < 4; k++) {
        column[k] = _mm512_shuffle_f64x2(quad[k], quad[k + 4], 0x88);
        column[k + 4] = _mm512_shuffle_f64x2(quad[k], quad[k + 4], 0xDD);
    }
}

AVX512 void transpose_blocked_simd_avx512(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band,
                                          size_t block)
{
    for (size_t strip = band.begin, end; strip < band.end; strip = end) {
        end = transpose_strip_end(strip, band.end, block);
        for (size_t i = 0; i < n; i += LINE)
            for (size_t j = strip; j < end; j += LINE) {
                const size_t rows = pl_least(n - i, LINE), columns = pl_least(end - j, LINE);
                __m512d column[LINE];
                if (rows < HALF || columns < HALF)      /* a thin edge */
                    edge(a + i * ld + j, ld, rows, columns, b + j * ld + i, ld);
                else if (rows < LINE || columns < LINE) {
                    tile_avx512(a + i * ld + j, ld, rows, columns, column);
                    for (size_t k = 0; k < columns; k++)
                        _mm512_mask_storeu_pd(b + (j + k) * ld + i, first_of(rows), column[k]);
                } else {
                    tile_avx512(a + i * ld + j, ld, LINE, LINE, column);
                    for (size_t k = 0; k < LINE; k++)
                        _mm512_storeu_pd(b + (j + k) * ld + i, column[k]);
                }
            }
    }
}

/* A strip of a matrix whose rows are whole lines. */
AVX512 static void lines_avx512(size_t n, size_t ld, const double *restrict a, double *restrict b, size_t strip, size_t end)
{
    for (size_t i = 0; i < n; i += LINE)
        for (size_t j = strip; j < end; j += LINE) {
            __m512d column[LINE];
            prefetch_rows(a, ld, i, j, strip, end);
            tile_avx512(a + i * ld + j, ld, LINE, LINE, column);
            for (size_t k = 0; k < LINE; k++)
                _mm512_stream_pd(b + (j + k) * ld + i, column[k]);
        }
}

/* A strip of any other matrix: each row of B has its lines elsewhere.  What a tile gives of a row is held, and makes a
 * line together with the next tile's part. */
AVX512 static void shifted_avx512(size_t n, size_t ld, const double *restrict a, double *restrict b, size_t strip, size_t end)
{
    const __m512i places = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    __m512d held[TRANSPOSE_LONGEST + LINE];
    size_t i = 0;
    for (; i + LINE <= n; i += LINE)
        for (size_t j = strip; j < end; j += LINE) {
            const size_t columns = pl_least(end - j, LINE);
            __m512d column[LINE];
            prefetch_rows(a, ld, i, j, strip, end);
            tile_avx512(a + i * ld + j, ld, LINE, columns, column);
            for (size_t k = 0; k < columns; k++) {
                double *const to = b + (j + k) * ld + i;
                const size_t head = before_line(to);
                const __m512i from = _mm512_add_epi64(places, _mm512_set1_epi64((long long)head));
                if (i == 0)
                    _mm512_mask_storeu_pd(to, first_of(head), column[k]);
                else
                    _mm512_stream_pd(to + head - LINE, _mm512_permutex2var_pd(held[j - strip + k], from, column[k]));
                held[j - strip + k] = column[k];
            }
        }
    for (size_t j = strip; j < end; j++)
        last_rows(n, ld, a, b, i ? i - LINE + before_line(b + j * ld) : 0, j);
}

AVX512 void transpose_blocked_nt_avx512(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band,
                                        size_t block)
{
    const bool whole = transpose_whole_lines(n, ld, b);
    for (size_t strip = band.begin, end; strip < band.end; strip = end) {
        end = transpose_strip_end(strip, band.end, block);
        (whole ? lines_avx512 : shifted_avx512)(n, ld, a, b, strip, end);
    }
    _mm_sfence();
}

/* --- AVX2 ------------------------------------------------------------------------------------------------------ */

/* column[k] becomes element k of each of the four rows at a. */
INLINE AVX2 void tile_avx2(const double *a, size_t ld, __m256d column[HALF])
{
    const __m256d row0 = _mm256_loadu_pd(a), row1 = _mm256_loadu_pd(a + ld);
    const __m256d row2 = _mm256_loadu_pd(a + 2 * ld), row3 = _mm256_loadu_pd(a + 3 * ld);
    const __m256d even01 = _mm256_unpacklo_pd(row0, row1), odd01 = _mm256_unpackhi_pd(row0, row1);
    const __m256d even23 = _mm256_unpacklo_pd(row2, row3), odd23 = _mm256_unpackhi_pd(row2, row3);
    column[0] = _mm256_permute2f128_pd(even01, even23, 0x20);
    column[1] = _mm256_permute2f128_pd(odd01, odd23, 0x20);
    column[2] = _mm256_permute2f128_pd(even01, even23, 0x31);
    column[3] = _mm256_permute2f128_pd(odd01, odd23, 0x31);
}

AVX2 void transpose_blocked_simd_avx2(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band,
                                      size_t block)
{
    for (size_t strip = band.begin, end; strip < band.end; strip = end) {
        end = transpose_strip_end(strip, band.end, block);
        for (size_t i = 0; i < n; i += LINE)
            for (size_t j = strip; j < end; j += HALF) {
                __m256d above[HALF], below[HALF];
                if (n - i < LINE || end - j < HALF) {
                    edge(a + i * ld + j, ld, pl_least(n - i, LINE), pl_least(end - j, HALF), b + j * ld + i, ld);
                    continue;
                }
                tile_avx2(a + i * ld + j, ld, above);
                tile_avx2(a + (i + HALF) * ld + j, ld, below);
                for (size_t k = 0; k < HALF; k++) {
                    _mm256_storeu_pd(b + (j + k) * ld + i, above[k]);
                    _mm256_storeu_pd(b + (j + k) * ld + i + HALF, below[k]);
                }
            }
    }
}

AVX2 static void lines_avx2(size_t n, size_t ld, const double *restrict a, double *restrict b, size_t strip, size_t end)
{
    for (size_t i = 0; i < n; i += LINE)
        for (size_t j = strip; j < end; j += HALF) {
            __m256d above[HALF], below[HALF];
            if (j % LINE == 0)      /* once a line */
                prefetch_rows(a, ld, i, j, strip, end);
            tile_avx2(a + i * ld + j, ld, above);
            tile_avx2(a + (i + HALF) * ld + j, ld, below);
            for (size_t k = 0; k < HALF; k++) {
                _mm256_stream_pd(b + (j + k) * ld + i, above[k]);
                _mm256_stream_pd(b + (j + k) * ld + i + HALF, below[k]);
            }
        }
}

/* column[k] becomes elements 0..3 and 4..7 of the eight rows at a; there are so many columns, at most four. */
INLINE AVX2 void columns_avx2(const double *a, size_t ld, size_t columns, __m256d column[HALF][2])
{
    __m256d half[HALF];
    if (columns < HALF) {
        double part[HALF][LINE];
        edge(a, ld, LINE, columns, part[0], LINE);
        for (size_t k = 0; k < columns; k++)
            for (int h = 0; h < 2; h++)
                column[k][h] = _mm256_loadu_pd(part[k] + h * HALF);
        return;
    }
    for (size_t h = 0; h < 2; h++) {
        tile_avx2(a + h * HALF * ld, ld, half);
        for (size_t k = 0; k < HALF; k++)
            column[k][h] = half[k];
    }
}

INLINE AVX2 __m256d turned(__m256d x, __m256i from)
{
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(x), from));
}

/* As shifted_avx512; a line is that of four registers, one after the other, which begins at element `head`.  They are turned
 * until it begins at element 0 of one, and what belongs to the next is taken from there. */
AVX2 static void shifted_avx2(size_t n, size_t ld, const double *restrict a, double *restrict b, size_t strip, size_t end)
{
    const __m256i places = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);    /* of halves of elements */
    __m256d held[TRANSPOSE_LONGEST + LINE][2];
    size_t i = 0;
    for (; i + LINE <= n; i += LINE)
        for (size_t j = strip; j < end; j += HALF) {
            const size_t columns = pl_least(end - j, HALF);
            __m256d column[HALF][2];
            prefetch_rows(a, ld, i, j, strip, end);
            columns_avx2(a + i * ld + j, ld, columns, column);
            for (size_t k = 0; k < columns; k++) {
                __m256d *const was = held[j - strip + k];
                const __m256d all[2 * 2] = {was[0], was[1], column[k][0], column[k][1]};
                double *const to = b + (j + k) * ld + i;
                const size_t head = before_line(to), first = head / HALF;
                if (i == 0)
                    last_rows(head, ld, a, b, 0, j + k);
                else {
                    const __m256i from = _mm256_add_epi32(places, _mm256_set1_epi32(2 * (int)(head % HALF)));
                    const __m256d next = _mm256_castsi256_pd(_mm256_cmpgt_epi32(from, _mm256_set1_epi32(7)));
                    const __m256d x = turned(first ? all[1] : all[0], from), y = turned(first ? all[2] : all[1], from);
                    const __m256d z = turned(first ? all[3] : all[2], from);
                    _mm256_stream_pd(to + head - LINE, _mm256_blendv_pd(x, y, next));
                    _mm256_stream_pd(to + head - HALF, _mm256_blendv_pd(y, z, next));
                }
                was[0] = column[k][0];
                was[1] = column[k][1];
            }
        }
    for (size_t j = strip; j < end; j++)
        last_rows(n, ld, a, b, i ? i - LINE + before_line(b + j * ld) : 0, j);
}

AVX2 void transpose_blocked_nt_avx2(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band,
                                    size_t block)
{
    const bool whole = transpose_whole_lines(n, ld, b);
    for (size_t strip = band.begin, end; strip < band.end; strip = end) {
        end = transpose_strip_end(strip, band.end, block);
        (whole ? lines_avx2 : shifted_avx2)(n, ld, a, b, strip, end);
    }
    _mm_sfence();
}

#endif
