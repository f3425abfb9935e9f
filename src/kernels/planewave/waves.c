#include <math.h>

#include "kernel.h"

double complex planewave_turn(size_t n, size_t k)
{
    const double angle = 2 * M_PI * (double)(k % n) / (double)n;
    return CMPLX(cos(angle), sin(angle));
}

double complex planewave_value(size_t n, const size_t k[3], size_t point)
{
    return planewave_turn(n, k[0] * (point % n) + k[1] * (point / n % n) + k[2] * (point / n / n)) / sqrt((double)(n * n * n));
}

static double frequency(size_t n, size_t k) { return 2 * k > n ? (double)k - (double)n : (double)k; }

double planewave_eigenvalue(size_t n, const size_t k[3])
{
    double sum = 0;
    for (int d = 0; d < 3; d++)
        sum -= frequency(n, k[d]) * frequency(n, k[d]);
    return sum;
}

/* No two alike, none constant, and in all directions. */
void planewave_wave(size_t n, size_t bands, size_t band, size_t k[3])
{
    const size_t place = 1 + band * (n * n * n / (bands + 1));
    k[0] = place % n;
    k[1] = place / n % n;
    k[2] = place / n / n;
}

/* A wave is an eigenfunction of the Laplacian, and the waves are orthonormal: h is -k^2 psi, the products are the diagonal of -k^2, or of 1
 * where psi stands in h. */
double planewave_error(const planewave *w, pl_range own, bool laplacian, bool products)
{
    const size_t n = w->n, half = n / 2;
    const double largest = laplacian ? -planewave_eigenvalue(n, (size_t[]){half, half, half}) : 1, root = sqrt((double)(n * n * n));
    double worst = 0;
    for (size_t b = 0; b < w->bands; b++) {
        size_t k[3];
        planewave_wave(n, w->bands, b, k);
        const double value = laplacian ? planewave_eigenvalue(n, k) : 1;
        for (size_t i = 0; i < own.end - own.begin; i++) {
            const double complex right = planewave_value(n, k, own.begin + i);
            worst = pl_worse(worst, cabs(w->h[b * w->stride + i] - value * right) * root / largest);
            worst = pl_worse(worst, cabs(w->psi[b * w->stride + i] - right) * root);
        }
        for (size_t a = 0; products && a < w->bands; a++)
            worst = pl_worse(worst, cabs(w->s[b * w->bands + a] - (a == b ? value : 0)) / largest);
    }
    return worst;
}

double planewave_flops(size_t n, size_t bands, bool transforms, bool products)
{
    const double points = (double)(n * n * n), b = (double)bands;
    return (transforms ? b * (10 * points * log2(points) + 2 * points) : 0) + (products ? 8 * b * b * points : 0);
}

double planewave_tolerance(size_t n) { return 1e-14 * sqrt((double)n) * 3 * log2((double)n); }

void planewave_check(const pl_case *c, size_t bands)
{
    enum { LEAST = 4, MOST = 256 };
    if (c->n < LEAST || c->n > MOST)
        pl_fail("--size %zu: points along an edge of the grid: give from %d to %d", c->n, LEAST, MOST);
    if (c->n * c->n * c->n < 2 * bands)
        pl_fail("--bands %zu: a grid of %zu points along an edge has waves for %zu: give fewer, or a larger size", bands, c->n,
                c->n * c->n * c->n / 2);
}

enum { PSI, H, S, LAPLACE, FOURIER, BUFFERS };

static size_t lay(size_t n, size_t bands, size_t stride, size_t bytes[BUFFERS])
{
    bytes[PSI] = bytes[H] = bands * stride * sizeof(double complex);
    bytes[S] = bands * bands * sizeof(double complex);
    bytes[LAPLACE] = stride * sizeof(double);
    bytes[FOURIER] = n * n * sizeof(double complex);
    return bytes[PSI] + bytes[H] + bytes[S] + bytes[LAPLACE] + bytes[FOURIER];
}

size_t planewave_footprint(size_t n, size_t bands, size_t stride)
{
    size_t bytes[BUFFERS];
    return lay(n, bands, stride, bytes);
}

void planewave_create(planewave *w, const pl_case *c, size_t bands, size_t stride)
{
    size_t bytes[BUFFERS];
    lay(c->n, bands, stride, bytes);
    *w = (planewave){.n = c->n, .bands = bands, .stride = stride, .buffers = pl_buffers_create(c, BUFFERS, bytes, NULL)};
    void *const *at = w->buffers->at;
    w->psi = at[PSI];
    w->h = at[H];
    w->s = at[S];
    w->laplace = at[LAPLACE];
    w->fourier = at[FOURIER];
}
