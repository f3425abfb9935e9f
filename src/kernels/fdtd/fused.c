/* The update of the electric field in a finite-difference time-domain code: one loop, three statements, 18 flops per point.
 *
 * Anderson, Brooks, Grassl, Scott 1997, section 3.2.3 and table 4.  The split loops are in split.c; distributed.c is this
 * file again, compiled with the compiler's own loop distribution, which is forbidden here (src/cmake/flags.cmake).
 *
 * fdtd_fused is as a C programmer writes it: for all that the compiler knows, a store to EX may change what the next point
 * reads of HZ.  fdtd_fused_restrict differs from it in being told that the arrays do not overlap, and in nothing else. */
#include "kernel.h"

void fdtd_fused(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                float (*ex)[n][n], float (*ey)[n][n], float (*ez)[n][n],
                const float (*hx)[n][n], const float (*hy)[n][n], const float (*hz)[n][n])
{
    const float caex = c->caex, cbex = c->cbex, caey = c->caey, cbey = c->cbey, caez = c->caez, cbez = c->cbez;
    for (size_t j = first; j < last; j++)
        for (size_t i = from; i < to; i++)
            for (size_t k = 1; k < n - 2; k++) {
                ex[j][i][k] = caex * (ex[j][i][k] + cbex * (hz[j][i][k] - hz[j - 1][i][k] + hy[j][i][k] - hy[j][i][k - 1]));
                ey[j][i][k] = caey * (ey[j][i][k] + cbey * (hx[j][i][k - 1] - hx[j][i][k] + hz[j][i - 1][k] - hz[j][i][k]));
                ez[j][i][k] = caez * (ez[j][i][k] + cbez * (hx[j - 1][i][k] - hx[j][i][k] + hy[j][i][k] - hy[j][i - 1][k]));
            }
}

void fdtd_fused_restrict(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                         float (*restrict ex)[n][n], float (*restrict ey)[n][n], float (*restrict ez)[n][n],
                         const float (*restrict hx)[n][n], const float (*restrict hy)[n][n], const float (*restrict hz)[n][n])
{
    const float caex = c->caex, cbex = c->cbex, caey = c->caey, cbey = c->cbey, caez = c->caez, cbez = c->cbez;
    for (size_t j = first; j < last; j++)
        for (size_t i = from; i < to; i++)
            for (size_t k = 1; k < n - 2; k++) {
                ex[j][i][k] = caex * (ex[j][i][k] + cbex * (hz[j][i][k] - hz[j - 1][i][k] + hy[j][i][k] - hy[j][i][k - 1]));
                ey[j][i][k] = caey * (ey[j][i][k] + cbey * (hx[j][i][k - 1] - hx[j][i][k] + hz[j][i - 1][k] - hz[j][i][k]));
                ez[j][i][k] = caez * (ez[j][i][k] + cbez * (hx[j - 1][i][k] - hx[j][i][k] + hy[j][i][k] - hy[j][i - 1][k]));
            }
}
