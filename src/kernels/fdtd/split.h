/* The loops of split.c, once as written and once told that the arrays do not overlap: NAME() names them, ALONE is nothing or restrict. */

/* split2: {EX, EY}, {EZ}, the source's best. */

void NAME(fdtd_split2)(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                       float (*ALONE ex)[n][n], float (*ALONE ey)[n][n], float (*ALONE ez)[n][n],
                       const float (*ALONE hx)[n][n], const float (*ALONE hy)[n][n], const float (*ALONE hz)[n][n])
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

void NAME(fdtd_split3)(size_t n, size_t first, size_t last, size_t from, size_t to, const fdtd_coefficients *c,
                       float (*ALONE ex)[n][n], float (*ALONE ey)[n][n], float (*ALONE ez)[n][n],
                       const float (*ALONE hx)[n][n], const float (*ALONE hy)[n][n], const float (*ALONE hz)[n][n])
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

#undef NAME
#undef ALONE
