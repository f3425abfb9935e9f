/* The limit streams for one width: streams_x86.c includes this once for each (simd.h). */
#include "simd.h"

TARGET double NAME(pl_store)(size_t lines, double *a, double *b, double *c, double *d)
{
    const VECTOR one = SET1(1);
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL for (size_t i = 0; i < LINE * lines; i += LINE) {
            for (size_t k = 0; k < LINE; k += LANES)
                STORE_ALIGNED(part[q] + i + k, one);
            PL_KEEP_LOOP();
        }
    return 0;
}

TARGET double NAME(pl_update)(size_t lines, double *a, double *b, double *c, double *d)
{
    const VECTOR zero = SET1(0);
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL for (size_t i = 0; i < LINE * lines; i += LANES)
            STORE_ALIGNED(part[q] + i, SUB(zero, LOAD_ALIGNED(part[q] + i)));
    return 0;
}

TARGET double NAME(pl_copy)(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL for (size_t i = 0; i < LINE * lines; i += LINE) {
        for (size_t k = 0; k < LINE; k += LANES)
            STORE_ALIGNED(c + i + k, LOAD_ALIGNED(a + i + k));
        for (size_t k = 0; k < LINE; k += LANES)
            STORE_ALIGNED(d + i + k, LOAD_ALIGNED(b + i + k));
    }
    return 0;
}

TARGET double NAME(pl_triad)(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL for (size_t i = 0; i < LINE * lines; i += LANES)
        STORE_ALIGNED(a + i, FMADD(LOAD_ALIGNED(c + i), LOAD_ALIGNED(d + i), LOAD_ALIGNED(b + i)));
    return 0;
}

TARGET double NAME(pl_store_nt)(size_t lines, double *a, double *b, double *c, double *d)
{
    const VECTOR one = SET1(1);
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        UNROLL for (size_t i = 0; i < LINE * lines; i += LINE)
            for (size_t k = 0; k < LINE; k += LANES)
                STREAM(part[q] + i + k, one);
    _mm_sfence();
    return 0;
}

TARGET double NAME(pl_copy_nt)(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL for (size_t i = 0; i < LINE * lines; i += LINE)
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(c + i + k, LOAD_ALIGNED(a + i + k));
    UNROLL for (size_t i = 0; i < LINE * lines; i += LINE)
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(d + i + k, LOAD_ALIGNED(b + i + k));
    _mm_sfence();
    return 0;
}

TARGET double NAME(pl_triad_nt)(size_t lines, double *a, double *b, double *c, double *d)
{
    UNROLL for (size_t i = 0; i < LINE * lines; i += LINE)
        for (size_t k = 0; k < LINE; k += LANES)
            STREAM(a + i + k, FMADD(LOAD_ALIGNED(c + i + k), LOAD_ALIGNED(d + i + k), LOAD_ALIGNED(b + i + k)));
    _mm_sfence();
    return 0;
}
