/* CFFT2D against the transform by its definition, along one dimension after the other. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "nas.h"

enum { N1 = CFFT2D_N1, N2 = CFFT2D_N2, STAGES = 7 + 8 };
_Static_assert(1 << STAGES == N1 * N2, "stages");

static double _Complex root(size_t k, size_t n)
{
    const double angle = -2 * acos(-1) * (double)(k % n) / (double)n;
    return cos(angle) + I * sin(angle);
}

static void fill(bool optimised, double *const x[])
{
    for (size_t i = 0; i < (size_t)2 * N1 * N2; i++)
        x[0][i] = 2 * nas_random(i) - 1;
    for (size_t k = 0; k < N2; k++) {
        x[2][2 * k] = creal(root(k, N2));
        x[2][2 * k + 1] = cimag(root(k, N2));
    }
}

/* Of `n` values that lie `step` apart. */
static void by_definition(size_t n, const double _Complex *from, size_t step, double _Complex *to)
{
    double _Complex w[N2];
    for (size_t k = 0; k < n; k++)
        w[k] = root(k, n);
    for (size_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (size_t i = 0; i < n; i++) {
            const double a = creal(from[i * step]), b = cimag(from[i * step]), c = creal(w[i * k % n]), d = cimag(w[i * k % n]);
            re += a * c - b * d;
            im += a * d + b * c;
        }
        to[k * step] = re + I * im;
    }
}

/* Computed once: it takes longer than what it is compared with. */
static const double _Complex *expected(const double *x)
{
    static double _Complex half[(size_t)N1 * N2], whole[(size_t)N1 * N2];
    static bool done;
    for (size_t i = 0; i < N2 && !done; i++)
        by_definition(N1, (const double _Complex *)x + i * N1, 1, half + i * N1);
    for (size_t i = 0; i < N1 && !done; i++)
        by_definition(N2, half + i, N1, whole + i);
    done = true;
    return whole;
}

static double error(bool optimised, double *const given[], double *const found[])
{
    const double *const right = (const double *)expected(given[0]);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < (size_t)2 * N1 * N2; i++) {
        worst = pl_worse(worst, fabs(found[0][i] - right[i]));
        largest = fmax(largest, fabs(right[i]));
    }
    return worst / largest;
}

/* Over the largest value.  Ten operations for each pair of each stage.  The error grows with the number of stages (and, of the definition
 * that it is compared with, with the square root of 256). */
const nas_kernel nas = {
    .name = "cfft2d", .title = "CFFT2D: complex Fourier transform of both dimensions",
    .doubles = {(size_t)2 * N1 * N2, (size_t)2 * N1 * N2, (size_t)2 * N2}, .flops = 5.0 * N1 * N2 * STAGES, .tolerance = 2e-14,
    .fill = fill, .error = error,
};
