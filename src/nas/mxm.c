/* MXM against the same product in whole numbers. */
#include <math.h>

#include "nas.h"

enum { L = MXM_L, M = MXM_M, N = MXM_N };

static void fill(bool optimised, double *const x[])
{
    for (size_t i = 0; i < (size_t)L * M; i++)
        x[0][i] = (int)(pl_mix(i) & 2047) - 1023;
    for (size_t i = 0; i < (size_t)M * N; i++)
        x[1][i] = (int)(pl_mix(i) >> 16 & 2047) - 1023;
}

static double error(bool optimised, double *const given[], double *const found[])
{
    double worst = 0;
    for (size_t k = 0; k < N; k++)
        for (size_t i = 0; i < L; i++) {
            long sum = 0;
            for (size_t j = 0; j < M; j++)
                sum += (long)given[0][i + L * j] * (long)given[1][j + M * k];
            worst = pl_worse(worst, fabs(found[2][i + L * k] - (double)sum));
        }
    return worst;
}

/* Whole numbers: sums below 2^29 are exact in any order. */
const nas_kernel nas = {
    .name = "mxm", .title = "MXM: product of two matrices", .doubles = {(size_t)L * M, (size_t)M * N, (size_t)L * N},
    .flops = 2.0 * L * M * N, .tolerance = 0, .fill = fill, .error = error,
};
