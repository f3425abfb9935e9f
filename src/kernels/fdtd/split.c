/* The loop of fused.c, its inner loop split by hand, as the source does it (anderson1997, section 3.2.3): fewer streams
 * at a time, and a row that two of the loops read is still in the first-level cache for the second: the traffic is the
 * same. */
#include "kernel.h"

/* split2: {EX, EY}, {EZ}, the source's best. */

void fdtd_split2(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                 float (*ex)[n][n], float (*ey)[n][n], float (*ez)[n][n],
                 const float (*hx)[n][n], const float (*hy)[n][n], const float (*hz)[n][n])
{
    const float caex = c->caex, cbex = c->cbex, caey = c->caey, cbey = c->cbey, caez = c->caez, cbez = c->cbez;
    for (size_t j = first; j < last; j++)
        for (size_t i = from; i < to; i++) {
            for (size_t k = 1; k < n - 2; k++) {
                ex[j][i][k] = caex * (ex[j][i][k] + cbex * (hz[j][i][k] - hz[j - 1][i][k] + hy[j][i][k] - hy[j][i][k - 1]));
                ey[j][i][k] = caey * (ey[j][i][k] + cbey * (hx[j][i][k - 1] - hx[j][i][k] + hz[j][i - 1][k] - hz[j][i][k]));
            }
            for (size_t k = 1; k < n - 2; k++)
                ez[j][i][k] = caez * (ez[j][i][k] + cbez * (hx[j - 1][i][k] - hx[j][i][k] + hy[j][i][k] - hy[j][i - 1][k]));
        }
}

void fdtd_split2_restrict(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                          float (*restrict ex)[n][n], float (*restrict ey)[n][n], float (*restrict ez)[n][n],
                          const float (*restrict hx)[n][n], const float (*restrict hy)[n][n], const float (*restrict hz)[n][n])
{
    const float caex = c->caex, cbex = c->cbex, caey = c->caey, cbey = c->cbey, caez = c->caez, cbez = c->cbez;
    for (size_t j = first; j < last; j++)
        for (size_t i = from; i < to; i++) {
            for (size_t k = 1; k < n - 2; k++) {
                ex[j][i][k] = caex * (ex[j][i][k] + cbex * (hz[j][i][k] - hz[j - 1][i][k] + hy[j][i][k] - hy[j][i][k - 1]));
                ey[j][i][k] = caey * (ey[j][i][k] + cbey * (hx[j][i][k - 1] - hx[j][i][k] + hz[j][i - 1][k] - hz[j][i][k]));
            }
            for (size_t k = 1; k < n - 2; k++)
                ez[j][i][k] = caez * (ez[j][i][k] + cbez * (hx[j - 1][i][k] - hx[j][i][k] + hy[j][i][k] - hy[j][i - 1][k]));
        }
}

/* split3: one loop for each statement. */

void fdtd_split3(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                 float (*ex)[n][n], float (*ey)[n][n], float (*ez)[n][n],
                 const float (*hx)[n][n], const float (*hy)[n][n], const float (*hz)[n][n])
{
    const float caex = c->caex, cbex = c->cbex, caey = c->caey, cbey = c->cbey, caez = c->caez, cbez = c->cbez;
    for (size_t j = first; j < last; j++)
        for (size_t i = from; i < to; i++) {
            for (size_t k = 1; k < n - 2; k++)
                ex[j][i][k] = caex * (ex[j][i][k] + cbex * (hz[j][i][k] - hz[j - 1][i][k] + hy[j][i][k] - hy[j][i][k - 1]));
            for (size_t k = 1; k < n - 2; k++)
                ey[j][i][k] = caey * (ey[j][i][k] + cbey * (hx[j][i][k - 1] - hx[j][i][k] + hz[j][i - 1][k] - hz[j][i][k]));
            for (size_t k = 1; k < n - 2; k++)
                ez[j][i][k] = caez * (ez[j][i][k] + cbez * (hx[j - 1][i][k] - hx[j][i][k] + hy[j][i][k] - hy[j][i - 1][k]));
        }
}

void fdtd_split3_restrict(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                          float (*restrict ex)[n][n], float (*restrict ey)[n][n], float (*restrict ez)[n][n],
                          const float (*restrict hx)[n][n], const float (*restrict hy)[n][n], const float (*restrict hz)[n][n])
{
    const float caex = c->caex, cbex = c->cbex, caey = c->caey, cbey = c->cbey, caez = c->caez, cbez = c->cbez;
    for (size_t j = first; j < last; j++)
        for (size_t i = from; i < to; i++) {
            for (size_t k = 1; k < n - 2; k++)
                ex[j][i][k] = caex * (ex[j][i][k] + cbex * (hz[j][i][k] - hz[j - 1][i][k] + hy[j][i][k] - hy[j][i][k - 1]));
            for (size_t k = 1; k < n - 2; k++)
                ey[j][i][k] = caey * (ey[j][i][k] + cbey * (hx[j][i][k - 1] - hx[j][i][k] + hz[j][i - 1][k] - hz[j][i][k]));
            for (size_t k = 1; k < n - 2; k++)
                ez[j][i][k] = caez * (ez[j][i][k] + cbez * (hx[j - 1][i][k] - hx[j][i][k] + hy[j][i][k] - hy[j][i - 1][k]));
        }
}
