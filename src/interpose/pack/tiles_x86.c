/* Transposes in registers, for x86-64: 8 x 8 elements of 8 bytes (AVX-512, AVX2), 16 x 8 of 4 bytes (AVX2), 4 x 8 of 16
 * bytes (SSE2, which every CPU of this kind has).
 *
 * Whole cache lines are read and, where rows consist of them, written.  A tile of `height` rows of `in` is walked along all
 * its columns: so many pages are under way, and each row of `out` gets as many elements one after the other.  With stores
 * that bypass the caches no line has to wait there for the rest of its elements, and none is fetched only to be overwritten;
 * they need rows whose lines begin at the same element.  Where the rows are shifted against each other, the lines at the ends
 * of a tile's part of a row are met twice, so that higher tiles are better. */
#include "pack.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))

enum { FOUR = 4, EIGHT = 8, SIXTEEN = 16, AHEAD = 2 * PACK_LINE, HIGHER = 8 };

/* Elements before the first whole line of each row, where that is the same for all of them and elements are not cut. */
static bool whole_lines(const pack_rows *rows, size_t element, size_t *before)
{
    *before = (size_t)(-(uintptr_t)rows->base % PACK_LINE) / element;
    return !rows->at && rows->step % PACK_LINE == 0 && (uintptr_t)rows->base % element == 0;
}

/* What is no whole tile, element by element: rows i..end_i-1 of in, j..end_j-1 of out. */
#define EDGE(name, type)                                                                                                 \
    static void name(const pack_rows *in, size_t i, size_t end_i, const pack_rows *out, size_t j, size_t end_j)          \
    {                                                                                                                    \
        for (size_t l = j; l < end_j; l++)                                                                               \
            for (size_t k = i; k < end_i; k++)                                                                           \
                __builtin_memcpy(pack_row(out, l) + k * sizeof(type), pack_row(in, k) + l * sizeof(type), sizeof(type)); \
    }
EDGE(edge_8, uint64_t)
EDGE(edge_4, uint32_t)
typedef struct { uint64_t half[2]; } sixteen_bytes;
EDGE(edge_16, sixteen_bytes)

/* --- 8 bytes ----------------------------------------------------------------------------------------------------- */

INLINE AVX512 void put_512(char *to, __m512i value, bool bypass)
{
    if (bypass)
        _mm512_stream_si512((void *)to, value);
    else
        _mm512_storeu_si512(to, value);
}

INLINE AVX512 void tile_8_avx512(char *const from[EIGHT], size_t column, char *const to[EIGHT], bool bypass)
{
    __m512i row[EIGHT], pair[EIGHT], quad[EIGHT];
    for (int k = 0; k < EIGHT; k++)
        row[k] = _mm512_loadu_si512(from[k] + column);
    for (int k = 0; k < EIGHT; k += 2) {        /* of rows k and k + 1: the even columns, the odd columns */
        pair[k] = _mm512_unpacklo_epi64(row[k], row[k + 1]);
        pair[k + 1] = _mm512_unpackhi_epi64(row[k], row[k + 1]);
    }
    for (int k = 0; k < EIGHT; k += 4)          /* of rows k .. k + 3: columns 0 and 4, 1 and 5, 2 and 6, 3 and 7 */
        for (int odd = 0; odd < 2; odd++) {
            quad[k + odd] = _mm512_shuffle_i64x2(pair[k + odd], pair[k + 2 + odd], 0x88);
            quad[k + 2 + odd] = _mm512_shuffle_i64x2(pair[k + odd], pair[k + 2 + odd], 0xDD);
        }
    for (int k = 0; k < 4; k++) {
        put_512(to[k], _mm512_shuffle_i64x2(quad[k], quad[k + 4], 0x88), bypass);
        put_512(to[k + 4], _mm512_shuffle_i64x2(quad[k], quad[k + 4], 0xDD), bypass);
    }
}

INLINE AVX2 void put_256(char *to, __m256i value, bool bypass)
{
    if (bypass)
        _mm256_stream_si256((__m256i *)(void *)to, value);
    else
        _mm256_storeu_si256((__m256i_u *)(void *)to, value);
}

/* Half of the columns of a tile: four rows of `to`, a line each. */
INLINE AVX2 void half_8_avx2(char *const from[EIGHT], size_t column, char *const to[4], bool bypass)
{
    __m256i out[2][4];
    for (int half = 0; half < 2; half++) {
        __m256i row[4], pair[4];
        for (int k = 0; k < 4; k++)
            row[k] = _mm256_loadu_si256((const __m256i_u *)(const void *)(from[4 * half + k] + column));
        for (int k = 0; k < 4; k += 2) {
            pair[k] = _mm256_unpacklo_epi64(row[k], row[k + 1]);
            pair[k + 1] = _mm256_unpackhi_epi64(row[k], row[k + 1]);
        }
        for (int k = 0; k < 2; k++) {
            out[half][k] = _mm256_permute2x128_si256(pair[k], pair[k + 2], 0x20);
            out[half][k + 2] = _mm256_permute2x128_si256(pair[k], pair[k + 2], 0x31);
        }
    }
    for (int k = 0; k < 4; k++)
        for (int half = 0; half < 2; half++)
            put_256(to[k] + 32 * half, out[half][k], bypass);
}

INLINE AVX2 void tile_8_avx2(char *const from[EIGHT], size_t column, char *const to[EIGHT], bool bypass)
{
    half_8_avx2(from, column, to, bypass);
    half_8_avx2(from, column + 32, to + 4, bypass);
}

/* --- 4 bytes ----------------------------------------------------------------------------------------------------- */

INLINE AVX2 void tile_4_avx2(char *const from[SIXTEEN], size_t column, char *const to[EIGHT], bool bypass)
{
    __m256i out[2][EIGHT];
    for (int half = 0; half < 2; half++) {
        __m256i row[EIGHT], pair[EIGHT], quad[EIGHT];
        for (int k = 0; k < EIGHT; k++)
            row[k] = _mm256_loadu_si256((const __m256i_u *)(const void *)(from[EIGHT * half + k] + column));
        for (int k = 0; k < EIGHT; k += 2) {
            pair[k] = _mm256_unpacklo_epi32(row[k], row[k + 1]);        /* columns 0 1, 4 5 */
            pair[k + 1] = _mm256_unpackhi_epi32(row[k], row[k + 1]);    /* columns 2 3, 6 7 */
        }
        for (int k = 0; k < EIGHT; k += 4)
            for (int odd = 0; odd < 2; odd++) {                         /* columns 2 odd and 2 odd + 4, the next ones */
                quad[k + 2 * odd] = _mm256_unpacklo_epi64(pair[k + odd], pair[k + 2 + odd]);
                quad[k + 2 * odd + 1] = _mm256_unpackhi_epi64(pair[k + odd], pair[k + 2 + odd]);
            }
        for (int k = 0; k < 4; k++) {
            out[half][k] = _mm256_permute2x128_si256(quad[k], quad[k + 4], 0x20);
            out[half][k + 4] = _mm256_permute2x128_si256(quad[k], quad[k + 4], 0x31);
        }
    }
    for (int k = 0; k < EIGHT; k++)
        for (int half = 0; half < 2; half++)
            put_256(to[k] + 32 * half, out[half][k], bypass);
}

/* --- 16 bytes ---------------------------------------------------------------------------------------------------- */

INLINE void tile_16_sse2(char *const from[FOUR], size_t column, char *const to[EIGHT], bool bypass)
{
    for (int k = 0; k < EIGHT; k++)
        for (int row = 0; row < FOUR; row++) {
            const __m128i value = _mm_loadu_si128((const __m128i_u *)(const void *)(from[row] + column + 16 * k));
            if (bypass)
                _mm_stream_si128((__m128i *)(void *)(to[k] + 16 * row), value);
            else
                _mm_storeu_si128((__m128i_u *)(void *)(to[k] + 16 * row), value);
        }
}

/* --- walks ------------------------------------------------------------------------------------------------------- */

/* Rows i..n_in-1 of in: tiles of `across` of them by eight of out, and what is left over beside and below them.  The lines
 * that come next in each row are prefetched: so many rows at once are more than the hardware follows. */
#define WALK(name, target, element, across, tile, edge)                                                                \
    INLINE target void name##_walk(const pack_rows *in, size_t i, size_t n_in, const pack_rows *out, size_t n_out,     \
                                   size_t height, bool bypass)                                                         \
    {                                                                                                                  \
        const size_t columns = n_out / EIGHT * EIGHT;                                                                  \
        for (size_t first = i, end; first + across <= n_in; first = end) {                                             \
            end = first + least(height, n_in - first) / across * across;                                               \
            for (size_t j = 0; j < columns; j += EIGHT) {                                                              \
                char *start[EIGHT], *from[across], *to[EIGHT];                                                         \
                for (size_t k = 0; k < EIGHT; k++)                                                                     \
                    start[k] = pack_row(out, j + k);                                                                   \
                for (i = first; i < end; i += across) {                                                                \
                    for (size_t k = 0; k < across; k++) {                                                              \
                        from[k] = pack_row(in, i + k);                                                                 \
                        _mm_prefetch(from[k] + j * element + AHEAD, _MM_HINT_T0);                                      \
                    }                                                                                                  \
                    for (size_t k = 0; k < EIGHT; k++)                                                                 \
                        to[k] = start[k] + i * element;                                                                \
                    tile(from, j * element, to, bypass);                                                               \
                }                                                                                                      \
            }                                                                                                          \
            edge(in, first, end, out, columns, n_out);                                                                 \
            i = end;                                                                                                   \
        }                                                                                                              \
        edge(in, i, n_in, out, 0, n_out);                                                                              \
    }                                                                                                                  \
    target void name(const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out, size_t height, bool bypass) \
    {                                                                                                                  \
        size_t before;                                                                                                 \
        const bool whole = whole_lines(out, element, &before) && before <= n_in;                                       \
        height = height / SIXTEEN * SIXTEEN * (whole ? 1 : HIGHER);                                                    \
        if (whole && bypass) {                                                                                         \
            edge(in, 0, before, out, 0, n_out);                                                                        \
            name##_walk(in, before, n_in, out, n_out, height, true);                                                   \
            _mm_sfence();                                                                                              \
        } else                                                                                                         \
            name##_walk(in, 0, n_in, out, n_out, height, false);                                                       \
    }

WALK(pack_transpose_16_sse2, , sizeof(sixteen_bytes), FOUR, tile_16_sse2, edge_16)
WALK(pack_transpose_8_avx512, AVX512, sizeof(uint64_t), EIGHT, tile_8_avx512, edge_8)
WALK(pack_transpose_8_avx2, AVX2, sizeof(uint64_t), EIGHT, tile_8_avx2, edge_8)
WALK(pack_transpose_4_avx2, AVX2, sizeof(uint32_t), SIXTEEN, tile_4_avx2, edge_4)
#endif
