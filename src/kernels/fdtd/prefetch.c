/* fused_restrict of fused.c, with software prefetch: for each line of an array that is computed, the line `ahead` elements
 * further on of the six arrays is asked for, of those that are written for writing.  What lies one plane back is in cache. */
#include "kernel.h"

void fdtd_fused_prefetch(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                         float (*restrict ex)[n][n], float (*restrict ey)[n][n], float (*restrict ez)[n][n],
                         const float (*restrict hx)[n][n], const float (*restrict hy)[n][n], const float (*restrict hz)[n][n])
{
    enum { LINE = PL_LINE / sizeof(float) };
    const float caex = c->caex, cbex = c->cbex, caey = c->caey, cbey = c->cbey, caez = c->caez, cbez = c->cbez;
    for (size_t j = first; j < last; j++)
        for (size_t i = from; i < to; i++) {
            size_t begin = 1;
            for (; begin + LINE <= n - 2; begin += LINE) {
                __builtin_prefetch(ex[j][i] + begin + c->ahead, 1);
                __builtin_prefetch(ey[j][i] + begin + c->ahead, 1);
                __builtin_prefetch(ez[j][i] + begin + c->ahead, 1);
                __builtin_prefetch(hx[j][i] + begin + c->ahead, 0);
                __builtin_prefetch(hy[j][i] + begin + c->ahead, 0);
                __builtin_prefetch(hz[j][i] + begin + c->ahead, 0);
                for (size_t k = begin; k < begin + LINE; k++) {
                    ex[j][i][k] = caex * (ex[j][i][k] + cbex * (hz[j][i][k] - hz[j - 1][i][k] + hy[j][i][k] - hy[j][i][k - 1]));
                    ey[j][i][k] = caey * (ey[j][i][k] + cbey * (hx[j][i][k - 1] - hx[j][i][k] + hz[j][i - 1][k] - hz[j][i][k]));
                    ez[j][i][k] = caez * (ez[j][i][k] + cbez * (hx[j - 1][i][k] - hx[j][i][k] + hy[j][i][k] - hy[j][i - 1][k]));
                }
            }
            for (size_t k = begin; k < n - 2; k++) {
                ex[j][i][k] = caex * (ex[j][i][k] + cbex * (hz[j][i][k] - hz[j - 1][i][k] + hy[j][i][k] - hy[j][i][k - 1]));
                ey[j][i][k] = caey * (ey[j][i][k] + cbey * (hx[j][i][k - 1] - hx[j][i][k] + hz[j][i - 1][k] - hz[j][i][k]));
                ez[j][i][k] = caez * (ez[j][i][k] + cbez * (hx[j - 1][i][k] - hx[j][i][k] + hy[j][i][k] - hy[j][i - 1][k]));
            }
        }
}
