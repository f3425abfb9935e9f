/* The Laplacian of each band by transforms there and back, h = L psi, and the products of all bands with it, s = psi^H h. */
#include "openblas.h"
#include "kernel.h"

#ifdef PL_FFTW
#include <fftw3.h>
#include <stdlib.h>
#endif
#ifdef _OPENMP
#include <omp.h>
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
#ifdef _OPENMP
    if (w->calls_at_once < omp_get_num_threads()) {
#pragma omp critical(zgemm)
        planewave_multiply(own, w, points);
        return;
    }
#endif
    planewave_multiply(own, w, points);
}

/* whole: fft, then product. */
void planewave_whole(pl_range own, const planewave *w)
{
    planewave_fft(own, w);
    planewave_product(own, w);
}

/* FNV-1a of what FFTW prints of a plan, after that of those before. */
static uint32_t hash_of(fftw_plan plan, uint32_t hash)
{
    char *text = NULL;
    size_t length = 0;
    FILE *const f = open_memstream(&text, &length);
    if (!f)
        pl_fail("no memory for the text of a plan");
    fftw_fprint_plan(plan, f);
    fclose(f);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    free(text);
    return hash;
}

void *planewave_plan(planewave *w, int rank, int count, double complex *in, double complex *out, bool back)
{
    enum { PLANS = 3 };
    const int n = (int)w->n, edges[3] = {n, n, n}, points = rank == 1 ? n : rank == 2 ? n * n : n * n * n;
    fftw_plan plan[PLANS];
    double least[PLANS] = {0};
    int best = 0;
    for (int i = 0; i < PLANS; i++) {
        fftw_forget_wisdom();
        plan[i] = fftw_plan_many_dft(rank, edges, count, in, NULL, 1, points, out, NULL, 1, points, back ? FFTW_BACKWARD : FFTW_FORWARD,
                                     FFTW_MEASURE | (in == out ? 0 : FFTW_PRESERVE_INPUT));
        if (!plan[i])
            pl_fail("FFTW has no plan for %d x %d x %d points: give another --size", n, n, n);
    }
    for (const double end = pl_now() + 0.02; pl_now() < end || least[PLANS - 1] <= 0;)     /* by turns */
        for (int i = 0; i < PLANS; i++) {
            const double began = pl_now();
            fftw_execute(plan[i]);
            const double seconds = pl_now() - began;
            least[i] = least[i] <= 0 || seconds < least[i] ? seconds : least[i];
        }
    for (int i = 1; i < PLANS; i++)
        best = least[i] < least[best] ? i : best;
    for (int i = 0; i < PLANS; i++)
        if (i != best)
            fftw_destroy_plan(plan[i]);
    w->plans = hash_of(plan[best], w->plans);
    return plan[best];
}

/* One for all bands, which lie alike. */
void planewave_open(planewave *w)
{
    w->forward = planewave_plan(w, 3, 1, w->psi, w->h, false);
    w->backward = planewave_plan(w, 3, 1, w->h, w->h, true);
    w->calls_at_once = openblas_calls_at_once();
}

void planewave_close(planewave *w)
{
    fftw_destroy_plan(w->forward);
    fftw_destroy_plan(w->backward);
}

const char *planewave_library(void) { return fftw_version; }
#else
void planewave_open(planewave *w) {}
void planewave_close(planewave *w) {}
const char *planewave_library(void) { return "none"; }
#endif

const char *planewave_plans(const planewave *w)
{
    static char text[9];
    snprintf(text, sizeof text, "%08x", w->plans);
    return w->plans ? text : "none";
}
