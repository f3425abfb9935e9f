/* The Laplacian of each band by transforms there and back, h = L psi, and the products of all bands with it, s = psi^H h. */
#include "kernel.h"

#ifdef PL_FFTW
#include <fftw3.h>
#endif

/* plain: transforms are sums over a matrix, line by line in each direction; so is the product. */
void planewave_line(const planewave *w, double complex *x, size_t step, bool back)
{
    double complex sum[w->n];
    for (size_t k = 0; k < w->n; k++) {
        double re = 0, im = 0;
        for (size_t j = 0; j < w->n; j++) {
            const double complex f = w->fourier[k * w->n + j], v = x[j * step];
            const double turn = back ? -cimag(f) : cimag(f);
            re += creal(f) * creal(v) - turn * cimag(v);
            im += creal(f) * cimag(v) + turn * creal(v);
        }
        sum[k] = CMPLX(re, im);
    }
    for (size_t k = 0; k < w->n; k++)
        x[k * step] = sum[k];
}

static void transform(const planewave *w, double complex *x, bool back)
{
    const size_t n = w->n;
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < n; k++)
            planewave_line(w, x + (j * n + k) * n, 1, back);
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < n; k++)
            planewave_line(w, x + j * n * n + k, n, back);
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < n; k++)
            planewave_line(w, x + j * n + k, n * n, back);
}

void planewave_products(pl_range own, const planewave *w, size_t points)
{
    for (size_t b = own.begin; b < own.end; b++)
        for (size_t a = 0; a < w->bands; a++) {
            const double complex *const x = w->psi + a * w->stride, *const h = w->h + b * w->stride;
            double re = 0, im = 0;
            for (size_t i = 0; i < points; i++) {
                re += creal(x[i]) * creal(h[i]) + cimag(x[i]) * cimag(h[i]);
                im += creal(x[i]) * cimag(h[i]) - cimag(x[i]) * creal(h[i]);
            }
            w->s[b * w->bands + a] = CMPLX(re, im);
        }
}

void planewave_plain(pl_range own, const planewave *w)
{
    const size_t points = w->n * w->n * w->n;
    for (size_t b = own.begin; b < own.end; b++) {
        const double complex *const psi = w->psi + b * w->stride;
        double complex *const h = w->h + b * w->stride;
        for (size_t i = 0; i < points; i++)
            h[i] = psi[i];
        transform(w, h, false);
        for (size_t i = 0; i < points; i++)
            h[i] *= w->laplace[i];
        transform(w, h, true);
    }
    planewave_products(own, w, points);
}

#ifdef PL_FFTW
void zgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const double complex *alpha,
            const double complex *a, const int *lda, const double complex *b, const int *ldb, const double complex *beta, double complex *c,
            const int *ldc, size_t, size_t);
int openblas_get_parallel(void) __attribute__((weak));

/* fft: the Laplacian alone, each band while it is in the cache. */
void planewave_fft(pl_range own, const planewave *w)
{
    const size_t points = w->n * w->n * w->n;
    for (size_t b = own.begin; b < own.end; b++) {
        double complex *const h = w->h + b * w->stride;
        fftw_execute_dft(w->forward, w->psi + b * w->stride, h);
        for (size_t i = 0; i < points; i++)
            h[i] *= w->laplace[i];
        fftw_execute_dft(w->backward, h, h);
    }
}

void planewave_multiply(pl_range own, const planewave *w, size_t points)
{
    const int bands = (int)w->bands, columns = (int)(own.end - own.begin), k = (int)points, stride = (int)w->stride;
    const double complex one = 1, zero = 0;
    zgemm_("C", "N", &bands, &columns, &k, &one, w->psi, &stride, w->h + own.begin * w->stride, &stride, &zero,
           w->s + own.begin * w->bands, &bands, 1, 1);
}

/* product: the products alone, of what stands there. */
void planewave_product(pl_range own, const planewave *w)
{
    const size_t points = w->n * w->n * w->n;
    if (own.end == own.begin)
        return;
    if (w->by_turns) {  /* NOLINT(bugprone-branch-clone): that of the serial build */
#ifdef _OPENMP
#pragma omp critical(zgemm)
#endif
        planewave_multiply(own, w, points);
    } else
        planewave_multiply(own, w, points);
}

/* whole: fft, then product. */
void planewave_whole(pl_range own, const planewave *w)
{
    planewave_fft(own, w);
    planewave_product(own, w);
}

/* One for all bands, which lie alike; measured, not guessed, and forgotten by the next process. */
void planewave_open(planewave *w)
{
    const int n = (int)w->n;
    w->forward = fftw_plan_dft_3d(n, n, n, w->psi, w->h, FFTW_FORWARD, FFTW_MEASURE | FFTW_PRESERVE_INPUT);
    w->backward = fftw_plan_dft_3d(n, n, n, w->h, w->h, FFTW_BACKWARD, FFTW_MEASURE);
    if (!w->forward || !w->backward)
        pl_fail("FFTW has no plan for %d x %d x %d points: give another --size", n, n, n);
    w->by_turns = openblas_get_parallel && openblas_get_parallel() == 0;
}

void planewave_close(planewave *w)
{
    fftw_destroy_plan(w->forward);
    fftw_destroy_plan(w->backward);
}

const char *planewave_library(void) { return fftw_version; }
#else
void planewave_open(planewave *w) { (void)w; }
void planewave_close(planewave *w) { (void)w; }
const char *planewave_library(void) { return "none"; }
#endif
