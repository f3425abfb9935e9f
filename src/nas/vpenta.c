/* VPENTA by what is left of its systems. */
#include <math.h>

#include "nas.h"

enum { ORDER = VPENTA_ORDER, LINES = VPENTA_LINES, DIAGONALS = 5, SIDES = 3 };
_Static_assert(LINES % VPENTA_STRIP == 0, "whole strips");

static size_t at(bool optimised, size_t of, size_t k, size_t j, size_t which)
{
    return optimised ? nas_in_strip(true, VPENTA_STRIP, ORDER * of, k, j + ORDER * which) : j + ORDER * (k + LINES * which);
}

/* The diagonal dominates: a row has four others, of at most a half. */
static void fill(bool optimised, double *const x[])
{
    for (size_t k = 0; k < LINES; k++)
        for (size_t j = 0; j < ORDER; j++) {
            for (size_t d = 0; d < DIAGONALS; d++)
                x[0][at(optimised, DIAGONALS, k, j, d)] = nas_random((k * ORDER + j) * DIAGONALS + d) + (d == 2 ? 2.5 : -0.5);
            for (size_t r = 0; r < SIDES; r++)
                x[1][at(optimised, SIDES, k, j, r)] = 2 * nas_random(1u << 24 | ((k * ORDER + j) * SIDES + r)) - 1;
        }
}

static double error(bool optimised, double *const given[], double *const found[])
{
    double worst = 0;
    for (size_t r = 0; r < SIDES; r++)
        for (size_t k = 0; k < LINES; k++)
            for (size_t j = 0; j < ORDER; j++) {
                const double side = given[1][at(optimised, SIDES, k, j, r)];
                double rest = -side, scale = fabs(side);
                for (size_t d = 0; d < DIAGONALS; d++)
                    if (j + d >= 2 && j + d - 2 < ORDER) {
                        const double term = given[0][at(optimised, DIAGONALS, k, j, d)] * found[1][at(optimised, SIDES, k, j + d - 2, r)];
                        rest += term;
                        scale += fabs(term);
                    }
                worst = pl_worse(worst, fabs(rest) / scale);
            }
    return worst;
}

/* Of a line: 6 and 16 for the first two rows, 26 for each other one; back 6 and 12. */
const nas_kernel nas = {
    .name = "vpenta", .title = "VPENTA: pentadiagonal systems, three right-hand sides at once",
    .doubles = {(size_t)DIAGONALS * ORDER * LINES, (size_t)SIDES * ORDER * LINES},
    .flops = (double)LINES * (6 + 16 + (ORDER - 2) * 26 + 6 + (ORDER - 2) * 12), .tolerance = 2e-14, .fill = fill, .error = error,
};
