/* The loops with intrinsics, for one width: kernel.c includes this once for each (simd.h).  A position is a quarter of a cache line, and
 * one load: vectors of x, y and z are made of LANES of them in registers, which is faster than three gather instructions (Pennycook et
 * al., IPDPS 2013). */
#include "simd.h"

#undef BELOW
#if LANES == 8
#define BELOW(r2, value) _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(r2, SET1(MD_CUTOFF * MD_CUTOFF), _CMP_LT_OQ), value)
#else
#define BELOW(r2, value) _mm256_and_pd(_mm256_cmp_pd(r2, SET1(MD_CUTOFF * MD_CUTOFF), _CMP_LT_OQ), value)
#endif

/* The coordinates of LANES atoms; of eight in the order 0 1 4 5 2 3 6 7. */
TARGET static inline __attribute__((always_inline)) void NAME(positions)(const double *x, const int32_t *of, VECTOR to[3])
{
#if LANES == 8
    VECTOR pair[4];
    for (int k = 0; k < 4; k++)
        pair[k] = _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_load_pd(x + 4 * (size_t)of[k])),
                                     _mm256_load_pd(x + 4 * (size_t)of[k + 4]), 1);
    const VECTOR low = _mm512_unpacklo_pd(pair[0], pair[1]), more = _mm512_unpacklo_pd(pair[2], pair[3]);
    to[0] = _mm512_shuffle_f64x2(low, more, 0x88);
    to[1] = _mm512_shuffle_f64x2(_mm512_unpackhi_pd(pair[0], pair[1]), _mm512_unpackhi_pd(pair[2], pair[3]), 0x88);
    to[2] = _mm512_shuffle_f64x2(low, more, 0xDD);
#else
    VECTOR at[4];
    for (int k = 0; k < 4; k++)
        at[k] = _mm256_load_pd(x + 4 * (size_t)of[k]);
    const VECTOR low = _mm256_unpacklo_pd(at[0], at[1]), more = _mm256_unpacklo_pd(at[2], at[3]);
    to[0] = _mm256_permute2f128_pd(low, more, 0x20);
    to[1] = _mm256_permute2f128_pd(_mm256_unpackhi_pd(at[0], at[1]), _mm256_unpackhi_pd(at[2], at[3]), 0x20);
    to[2] = _mm256_permute2f128_pd(low, more, 0x31);
#endif
}

/* Of LANES neighbours: their forces on an atom, added to `sum`. */
TARGET static inline __attribute__((always_inline)) void NAME(neighbours)(const double *x, const int32_t *of, const VECTOR own[3],
                                                                          VECTOR force[3])
{
    VECTOR d[3];
    NAME(positions)(x, of, d);
    for (int a = 0; a < 3; a++)
        d[a] = SUB(own[a], d[a]);
    const VECTOR r2 = FMADD(d[0], d[0], FMADD(d[1], d[1], MUL(d[2], d[2])));
    const VECTOR inverse = MM(div_pd)(SET1(1), r2), sixth = MUL(inverse, MUL(inverse, inverse));
    const VECTOR all = MUL(MUL(SET1(48), inverse), MUL(sixth, SUB(sixth, SET1(0.5)))), over = BELOW(r2, all);
    for (int a = 0; a < 3; a++)
        force[a] = MUL(over, d[a]);
}

TARGET static inline __attribute__((always_inline)) double NAME(total)(VECTOR v)
{
    double each[LANES], sum = 0;
    STORE(each, v);
    for (int k = 0; k < LANES; k++)
        sum += each[k];
    return sum;
}

/* full_simd: full, LANES neighbours at a time. */
TARGET void NAME(md_full_simd)(pl_range part, const md_lists *l, const double *restrict x, double *restrict f)
{
    for (size_t i = part.begin; i < part.end; i++) {
        const int32_t *const neighbour = l->neighbour + l->begin[i];
        const VECTOR own[3] = {SET1(x[4 * i]), SET1(x[4 * i + 1]), SET1(x[4 * i + 2])};
        VECTOR sum[3] = {SET1(0), SET1(0), SET1(0)};
        for (int32_t k = 0; k < l->count[i]; k += LANES) {
            VECTOR force[3];
            NAME(neighbours)(x, neighbour + k, own, force);
            for (int a = 0; a < 3; a++)
                sum[a] = ADD(sum[a], force[a]);
        }
        for (int a = 0; a < 3; a++)
            f[4 * i + (size_t)a] = NAME(total)(sum[a]);
        f[4 * i + 3] = 0;
    }
}
