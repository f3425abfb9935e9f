/* GMTRY by what its factors make of a vector, against what the matrix does, whose elements are computed in another form. */
#include <math.h>

#include "nas.h"

enum { N = GMTRY_WALLS, BODIES = 5, WALLS = N / BODIES };

/* Circles of radius a fifth, a row of them. */
static void fill(bool optimised, double *const x[])
{
    const double radius = 0.2;
    for (size_t i = 0; i < N; i++) {
        const double angle = 2 * acos(-1) * ((double)(i % WALLS) + 0.5) / WALLS;
        x[0][i] = 0.6 * (double)(i / WALLS) + radius * cos(angle);
        x[0][N + i] = radius * sin(angle);
        x[0][2 * N + i] = 2 * acos(-1) * radius / WALLS;
    }
}

static double element(const double *wall, size_t i, size_t j)
{
    return i == j ? 1 - log(wall[2 * N + j] / 2) : -nas_stream(wall[i] - wall[j], wall[N + i] - wall[N + j]) / 2;
}

static double error(bool optimised, double *const given[], double *const found[])
{
    const double *const lu = found[1];
    double v[N], u[N], worst = 0;
    for (size_t i = 0; i < N; i++)
        v[i] = nas_random(i) + 0.5;
    for (size_t i = 0; i < N; i++) {
        u[i] = v[i] / lu[i + N * i];
        for (size_t j = i + 1; j < N; j++)
            u[i] += lu[i + N * j] * v[j];
    }
    for (size_t i = 0; i < N; i++) {
        double rest = u[i], scale = 0;
        for (size_t j = 0; j < i; j++)
            rest += lu[i + N * j] * u[j];
        for (size_t j = 0; j < N; j++) {
            const double term = element(given[0], i, j) * v[j];
            rest -= term;
            scale += fabs(term);
        }
        worst = pl_worse(worst, fabs(rest) / scale);
    }
    return worst;
}

/* 14 for each element beside the diagonal, 3 on it; elimination. */
const nas_kernel nas = {
    .name = "gmtry", .title = "GMTRY: influence of walls on each other, and its elimination", .doubles = {(size_t)3 * N, (size_t)N * N},
    .flops = 14.0 * N * (N - 1) + 3.0 * N + N + N * (N - 1) / 2.0 + (N - 1.0) * N * (2.0 * N - 1) / 3, .tolerance = 1e-13,
    .fill = fill, .error = error,
};
