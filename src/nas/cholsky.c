/* CHOLSKY by what is left of its systems: A x - b. */
#include <math.h>

#include "nas.h"

enum { SYSTEMS = CHOLSKY_SYSTEMS, ORDER = CHOLSKY_ORDER, BAND = CHOLSKY_BAND, SIDES = CHOLSKY_RHS, WIDTH = BAND + 1 };
_Static_assert(SYSTEMS % CHOLSKY_STRIP == 0, "whole strips");

/* Of vectors over the systems, or over those of a strip. */
static size_t at(bool optimised, size_t elements, size_t l, size_t e)
{
    return nas_in_strip(true, optimised ? CHOLSKY_STRIP : SYSTEMS, elements, l, e);
}
static size_t at_matrix(bool optimised, size_t l, size_t k, size_t i) { return at(optimised, (size_t)WIDTH * ORDER, l, k + WIDTH * i); }
static size_t at_side(bool optimised, size_t l, size_t i, size_t r) { return at(optimised, (size_t)ORDER * SIDES, l, i + ORDER * r); }

/* Its diagonal dominates, so it is positive definite. */
static void fill(bool optimised, double *const x[])
{
    for (size_t l = 0; l < SYSTEMS; l++)
        for (size_t i = 0; i < ORDER; i++) {
            for (size_t k = 0; k <= BAND; k++)
                x[0][at_matrix(optimised, l, k, i)] = nas_random((l * ORDER + i) * WIDTH + k) + (k ? -0.5 : 2 * BAND * 0.5 + 0.5);
            for (size_t r = 0; r < SIDES; r++)
                x[1][at_side(optimised, l, i, r)] = 2 * nas_random(1u << 24 | ((l * ORDER + i) * SIDES + r)) - 1;
        }
}

static double error(bool optimised, double *const given[], double *const found[])
{
    double worst = 0;
    for (size_t l = 0; l < SYSTEMS; l++)
        for (size_t r = 0; r < SIDES; r++)
            for (size_t i = 0; i < ORDER; i++) {
                const double side = given[1][at_side(optimised, l, i, r)];
                double rest = -side, scale = fabs(side);
                for (size_t j = i < BAND ? 0 : i - BAND; j < ORDER && j <= i + BAND; j++) {
                    const double a = given[0][at_matrix(optimised, l, i < j ? j - i : i - j, i < j ? j : i)];
                    const double term = a * found[1][at_side(optimised, l, j, r)];
                    rest += term;
                    scale += fabs(term);
                }
                worst = pl_worse(worst, fabs(rest) / scale);
            }
    return worst;
}

/* Of a row with q elements left of the diagonal: q^2 + 2 q + 2 to factor it, and 2 (2 q + 1) for each side. */
enum { ROW = BAND * BAND + 2 * BAND + 2, FIRST_ROWS = 2 + 5 + 10 + 17, LEFT = (0 + 1 + 2 + 3) + (ORDER - BAND) * BAND };
_Static_assert(BAND == 4, "first rows");

const nas_kernel nas = {
    .name = "cholsky", .title = "CHOLSKY: band matrices factored, three right-hand sides each",
    .doubles = {(size_t)SYSTEMS * WIDTH * ORDER, (size_t)SYSTEMS * ORDER * SIDES},
    .flops = (double)SYSTEMS * (FIRST_ROWS + (ORDER - BAND) * ROW + SIDES * 2 * (2 * LEFT + ORDER)), .tolerance = 2e-14,
    .fill = fill, .error = error,
};
