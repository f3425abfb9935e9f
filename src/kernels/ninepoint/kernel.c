/* Finite differences with two nine-point stencils: 18 reads, 4 writes and 47 flops per point.
 *
 * Anderson, Brooks, Grassl, Scott 1997, section 3.1.3: metric terms AA, DD and residuals RX, RY of a grid with the
 * coordinates X, Y.  The question there is not the loop but how the six arrays lie to each other in the cache: the
 * variants share this one loop, and differ in the placement of their data (ninepoint.c).
 *
 * Flops by hand, a change of sign not counted: 4 first differences 4, a b c 12, DD 3, 4 second differences 12, 2 mixed
 * ones 6, RX and RY 10. */
#include "kernel.h"

void ninepoint_plain(size_t ld, size_t first, size_t last, size_t from, size_t to, const double *restrict x,
                     const double *restrict y, double *restrict aa, double *restrict dd, double *restrict rx, double *restrict ry)
{
    for (size_t j = first; j < last; j++) {
        /* Columns j - 1, j and j + 1, as west, centre and east. */
        const double *restrict xc = x + j * ld, *restrict xw = xc - ld, *restrict xe = xc + ld;
        const double *restrict yc = y + j * ld, *restrict yw = yc - ld, *restrict ye = yc + ld;
        for (size_t i = from; i < to; i++) {
            const double x_i = xc[i + 1] - xc[i - 1], y_i = yc[i + 1] - yc[i - 1];
            const double x_j = xe[i] - xw[i], y_j = ye[i] - yw[i];
            const double a = 0.25 * (x_j * x_j + y_j * y_j);
            const double b = 0.25 * (x_i * x_i + y_i * y_i);
            const double c = 0.125 * (x_i * x_j + y_i * y_j);
            const double x_ii = xc[i + 1] - 2 * xc[i] + xc[i - 1], y_ii = yc[i + 1] - 2 * yc[i] + yc[i - 1];
            const double x_jj = xe[i] - 2 * xc[i] + xw[i], y_jj = ye[i] - 2 * yc[i] + yw[i];
            const double x_ij = xe[i + 1] - xw[i + 1] - xe[i - 1] + xw[i - 1];
            const double y_ij = ye[i + 1] - yw[i + 1] - ye[i - 1] + yw[i - 1];
            aa[j * ld + i] = -b;
            dd[j * ld + i] = b + b * a * NINEPOINT_REL;
            rx[j * ld + i] = a * x_ii + b * x_jj - c * x_ij;
            ry[j * ld + i] = a * y_ii + b * y_jj - c * y_ij;
        }
    }
}
