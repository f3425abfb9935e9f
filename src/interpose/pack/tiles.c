/* Transposes of blocks of any length, for any CPU; and which transpose is the right one here.
 *
 * A tile of rows goes through a small buffer: each line of the rows is read once, whole, wherever it may fall in the cache
 * (rows a power of two apart all fall on the same few places), and the elements are put in order within the buffer. */
#include <string.h>

#include "pack.h"

enum {
    TILE = 16384,       /* bytes of the buffer */
    ROWS = 64,          /* of a tile, at most */
    CLOSE = 128,        /* bytes between rows that are close together */
    CLOSE_ROWS = 128,   /* that are read or written together */
    FEWEST = 8,         /* rows and columns that are worth a transpose in registers */
};

/* Rows that are close together stay where they are in the cache, so many of them, while they are read or written column by
 * column. */
static bool are_close(const pack_rows *rows) { return !rows->at && rows->step > 0 && rows->step <= CLOSE; }

INLINE void from_close(size_t block, const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out)
{
    const size_t step = (size_t)in->step;
    for (size_t first = 0, end; first < n_in; first = end) {
        end = least(first + CLOSE_ROWS, n_in);
        for (size_t j = 0; j < n_out; j++) {
            char *restrict to = pack_row(out, j) + first * block;
            const char *restrict from = in->base + first * step + j * block;
            for (size_t i = 0; i < end - first; i++)
                memcpy(to + i * block, from + i * step, block);
        }
    }
}

INLINE void to_close(size_t block, const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out)
{
    const size_t step = (size_t)out->step;
    for (size_t first = 0, end; first < n_out; first = end) {
        end = least(first + CLOSE_ROWS, n_out);
        for (size_t i = 0; i < n_in; i++) {
            char *restrict to = out->base + first * step + i * block;
            const char *restrict from = pack_row(in, i) + first * block;
            for (size_t j = 0; j < end - first; j++)
                memcpy(to + j * step, from + j * block, block);
        }
    }
}

INLINE void transpose_of(size_t block, const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out)
{
    if (are_close(in)) {
        from_close(block, in, n_in, out, n_out);
        return;
    }
    if (are_close(out)) {
        to_close(block, in, n_in, out, n_out);
        return;
    }
    _Alignas(PACK_LINE) char tile[TILE];
    const size_t rows = least(n_in, ROWS), columns = least(TILE / ROWS / block, n_out), row = columns * block;
    for (size_t j = 0; j < n_out; j += columns)
        for (size_t i = 0; i < n_in; i += rows) {
            const size_t high = least(rows, n_in - i), wide = least(columns, n_out - j);
            for (size_t k = 0; k < high; k++)
                memcpy(tile + k * row, pack_row(in, i + k) + j * block, wide * block);
            for (size_t l = 0; l < wide; l++) {
                char *to = pack_row(out, j + l) + i * block;
                for (size_t k = 0; k < high; k++)
                    memcpy(to + k * block, tile + k * row + l * block, block);
            }
        }
}

/* Blocks of the usual lengths are moved without a call. */
static void transpose_any(size_t block, const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out)
{
    switch (block) {
#define CASE(b) case b: transpose_of(b, in, n_in, out, n_out); break;
    CASE(1) CASE(2) CASE(4) CASE(8) CASE(12) CASE(16) CASE(24) CASE(32) CASE(64)
#undef CASE
    default: transpose_of(block, in, n_in, out, n_out);
    }
}

#if defined(__x86_64__)
typedef void in_registers(const pack_rows *, size_t, const pack_rows *, size_t, size_t height, bool bypass);

static in_registers *registers_for(size_t block)
{
    const bool avx2 = pack_set.isa >= PACK_AVX2 && __builtin_cpu_supports("avx2");
    const bool avx512 = pack_set.isa >= PACK_AVX512 && __builtin_cpu_supports("avx512f");
    if (block == 16 && pack_set.isa > PACK_PORTABLE)
        return pack_transpose_16_sse2;
    if (block == 8)
        return avx512 ? pack_transpose_8_avx512 : avx2 ? pack_transpose_8_avx2 : NULL;
    return block == 4 && avx2 ? pack_transpose_4_avx2 : NULL;
}
#endif

/* Rows that need no more pages than half of the TLB holds: the other half is for the other side and for all else (byna2003,
 * section 5.3). */
static size_t height_of(const pack_rows *in)
{
    enum { LOWEST = 16, HIGHEST = 64 };
    const size_t stride = (size_t)(in->step < 0 ? -in->step : in->step), page = pack_set.page;
    const size_t rows = pack_set.tlb / 2 * (stride && stride < page ? page / stride : 1);
    return rows < LOWEST ? LOWEST : rows < HIGHEST ? rows / LOWEST * LOWEST : HIGHEST;
}

bool pack_transpose(size_t block, const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out, bool bypass)
{
    if (block > TILE / ROWS)
        return false;
#if defined(__x86_64__)
    in_registers *transpose = registers_for(block);
    if (transpose && n_in >= FEWEST && n_out >= FEWEST) {
        transpose(in, n_in, out, n_out, height_of(in), bypass);
        return true;
    }
#endif
    transpose_any(block, in, n_in, out, n_out);
    return true;
}
