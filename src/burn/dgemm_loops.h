/* C = A B of the order BURN_ORDER: a tile of C stays in registers while k runs over all of A's columns.  Each element is a chain of fused
 * multiply-adds in the order of k, so its bits are the same whatever the width. */
#include "simd.h"

#if LANES == 8
#define ROWS 12         /* 24 sums, of 32 registers */
#define VECTORS 2
#else
#define ROWS 4          /* 12 of 16 */
#define VECTORS 3
#endif
#define EACH_ROW _Pragma("GCC unroll 12") for (int r = 0; r < ROWS; r++)
#define EACH_VECTOR _Pragma("GCC unroll 3") for (int v = 0; v < VECTORS; v++)
#define SUM sum[r * VECTORS + v]

static TARGET void NAME(multiply)(const double *a, const double *b, double *c)
{
    for (size_t j = 0; j < BURN_ORDER; j += VECTORS * LANES)
        for (size_t i = 0; i < BURN_ORDER; i += ROWS) {
            VECTOR sum[ROWS * VECTORS], row[VECTORS];
            EACH_ROW {
                EACH_VECTOR
                    SUM = SET1(0);
            }
            for (size_t k = 0; k < BURN_ORDER; k++) {
                EACH_VECTOR
                    row[v] = LOAD(b + k * BURN_ORDER + j + (size_t)v * LANES);
                EACH_ROW {
                    const VECTOR factor = SET1(a[(i + (size_t)r) * BURN_ORDER + k]);
                    EACH_VECTOR
                        SUM = FMADD(factor, row[v], SUM);
                }
            }
            EACH_ROW {
                EACH_VECTOR
                    STORE(c + (i + (size_t)r) * BURN_ORDER + j + (size_t)v * LANES, SUM);
            }
        }
}

#undef ROWS
#undef VECTORS
#undef EACH_ROW
#undef EACH_VECTOR
#undef SUM
