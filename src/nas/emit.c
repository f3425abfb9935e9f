/* EMIT against its sums, computed in another form. */
#include <math.h>

#include "nas.h"

enum { N = EMIT_WALLS, VORTICES = EMIT_VORTICES };
static const double away = 0x1p-7;

static void fill(bool optimised, double *const x[])
{
    for (size_t v = 0; v < VORTICES; v++) {     /* above the walls */
        x[0][v] = 6 * nas_random(3 * v);
        x[0][VORTICES + v] = 0.5 + nas_random(3 * v + 1);
        x[0][2 * VORTICES + v] = nas_random(3 * v + 2) - 0.25;
    }
    for (size_t i = 0; i < N; i++) {
        const double angle = 2 * acos(-1) * (double)i / N;
        x[1][i] = 3 + 2 * cos(angle);
        x[1][N + i] = 0.25 * sin(angle);
        x[1][2 * N + i] = cos(angle);
        x[1][3 * N + i] = sin(angle);
    }
    for (size_t i = 0; i < (size_t)N * N; i++)
        x[2][i] = nas_random(1u << 24 | i) - 0.25;
}

static double error(bool optimised, double *const given[], double *const found[])
{
    const double *const vortex = given[0], *const wall = given[1];
    double stream[N], size[N], worst = 0;
    for (size_t i = 0; i < N; i++) {
        stream[i] = size[i] = 0;
        for (size_t v = 0; v < VORTICES; v++) {
            const double term = vortex[2 * VORTICES + v] * nas_stream(wall[i] - vortex[v], wall[N + i] - vortex[VORTICES + v]);
            stream[i] += term;
            size[i] += fabs(term);
        }
    }
    for (size_t i = 0; i < N; i++) {
        double strength = 0, scale = 0;
        for (size_t j = 0; j < N; j++) {
            strength += given[2][i + N * j] * stream[j];
            scale += fabs(given[2][i + N * j]) * size[j];
        }
        worst = pl_worse(worst, fabs(found[3][i] - strength) / scale);
        worst = pl_worse(worst, fabs(found[3][N + i] - (wall[i] + away * wall[2 * N + i])));
        worst = pl_worse(worst, fabs(found[3][2 * N + i] - (wall[N + i] + away * wall[3 * N + i])));
    }
    return worst;
}

/* 15 for each wall and vortex, 4 for each wall, a matrix times a vector. */
const nas_kernel nas = {
    .name = "emit", .title = "EMIT: vortices that walls emit",
    .doubles = {(size_t)3 * VORTICES, (size_t)4 * N, (size_t)N * N, (size_t)3 * N}, .flops = 15.0 * N * VORTICES + 4.0 * N + 2.0 * N * N,
    .tolerance = 2e-14, .fill = fill, .error = error,
};
