/* BTRIX by what is left of its systems: A x(j-1) + B x(j) + C x(j+1) - s. */
#include <math.h>

#include "nas.h"

enum { BLOCKS = BTRIX_BLOCKS, LINES = BTRIX_LINES, BLOCK = 25 };
_Static_assert(LINES % BTRIX_STRIP == 0, "whole strips");

static size_t at_matrix(bool optimised, size_t k, size_t p, size_t q, size_t j)
{
    return nas_in_strip(optimised, BTRIX_STRIP, (size_t)BLOCK * BLOCKS, k, p + 5 * (q + 5 * j));
}
static size_t at_side(bool optimised, size_t k, size_t p, size_t j) { return nas_in_strip(optimised, BTRIX_STRIP, (size_t)5 * BLOCKS, k, p + 5 * j); }

/* The diagonal dominates: a row has 14 others, of at most a half. */
static void fill(bool optimised, double *const x[])
{
    for (size_t k = 0; k < LINES; k++)
        for (size_t j = 0; j < BLOCKS; j++)
            for (size_t p = 0; p < 5; p++) {
                for (size_t q = 0; q < 5; q++)
                    for (size_t which = 0; which < 3; which++)
                        x[which][at_matrix(optimised, k, p, q, j)] =
                            nas_random(((k * BLOCKS + j) * BLOCK + 5 * p + q) * 3 + which) - 0.5 + (which == 1 && p == q ? 8 : 0);
                x[3][at_side(optimised, k, p, j)] = 2 * nas_random(1u << 24 | ((k * BLOCKS + j) * 5 + p)) - 1;
            }
}

static double error(bool optimised, double *const given[], double *const found[])
{
    double worst = 0;
    for (size_t k = 0; k < LINES; k++)
        for (size_t j = 0; j < BLOCKS; j++)
            for (size_t p = 0; p < 5; p++) {
                const double side = given[3][at_side(optimised, k, p, j)];
                double rest = -side, scale = fabs(side);
                for (size_t which = j ? 0 : 1; which < (j + 1 < BLOCKS ? 3 : 2); which++)
                    for (size_t q = 0; q < 5; q++) {
                        const double term = given[which][at_matrix(optimised, k, p, q, j)] * found[3][at_side(optimised, k, q, j + which - 1)];
                        rest += term;
                        scale += fabs(term);
                    }
                worst = pl_worse(worst, fabs(rest) / scale);
            }
    return worst;
}

/* Of a line: 300 for each block after the first, 345 for each, 50 for each but the last. */
const nas_kernel nas = {
    .name = "btrix", .title = "BTRIX: block tridiagonal systems",
    .doubles = {(size_t)BLOCK * BLOCKS * LINES, (size_t)BLOCK * BLOCKS * LINES, (size_t)BLOCK * BLOCKS * LINES, (size_t)5 * BLOCKS * LINES},
    .flops = (double)LINES * ((BLOCKS - 1) * 300 + BLOCKS * 345 + (BLOCKS - 1) * 50), .tolerance = 2e-14, .fill = fill, .error = error,
};
