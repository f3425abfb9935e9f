/* The plane-wave code as the runtime sees it: variants, data, model, proof. */
#include <math.h>
#include <stdlib.h>

#include "kernel.h"

static const pl_variant variants[] = {
    {"plain", PL_LOOP(planewave_plain), .about = "Laplacian and products of all bands in loops of our own, transforms by matrices"},
#ifdef PL_FFTW
    {"whole", PL_LOOP(planewave_whole), .about = "the same by FFTW and the BLAS"},
    {"fft", PL_LOOP(planewave_fft), .about = "whole without the products"},
    {"product", PL_LOOP(planewave_product), .about = "whole without the transforms"},
#else
    {"whole", .about = "built without FFTW, or without BLAS"},
    {"fft", .about = "built without FFTW, or without BLAS"},
    {"product", .about = "built without FFTW, or without BLAS"},
#endif
    {0},
};

enum { BANDS };

static const pl_parameter parameters[] = {
    [BANDS] = PLANEWAVE_BANDS,
    {0},
};

static bool is_named(const pl_case *c, const char *name) { return !strcmp(c->variant->name, name); }
static bool transforms(const pl_case *c) { return !is_named(c, "product"); }
static bool multiplies(const pl_case *c) { return !is_named(c, "fft"); }
static size_t bands(const pl_case *c) { return (size_t)c->parameters[BANDS]; }
static double points(const pl_case *c) { return pow((double)c->n, 3); }

static void check(const pl_case *c) { planewave_check(c, bands(c)); }

/* --- data: each band is a wave (waves.c) --------------------------------------------------------------------------------------- */

static size_t stride_of(const pl_case *c) { return (c->n * c->n * c->n + 3) / 4 * 4; }

static size_t footprint(const pl_case *c) { return planewave_footprint(c->n, bands(c), stride_of(c)); }

static void *create(const pl_case *c)
{
    planewave *const w = pl_allocate(sizeof *w, "the bands");
    planewave_create(w, c, bands(c), stride_of(c));
    return w;
}

static void destroy(void *data)
{
    planewave_close(data);
    pl_first_buffers_destroy(data);
}

static void fill(const pl_case *c, pl_range own)
{
    const planewave *const w = c->data;
    const size_t n = c->n;
    for (size_t b = own.begin; b < own.end; b++) {
        size_t k[3];
        planewave_wave(n, bands(c), b, k);
        for (size_t i = 0; i < n * n * n; i++) {
            w->psi[b * w->stride + i] = planewave_value(n, k, i);
            w->h[b * w->stride + i] = w->psi[b * w->stride + i];
        }
    }
}

static void touch(const pl_case *c, int thread, int threads)
{
    planewave *const w = c->data;
    const size_t n = c->n;
    const pl_range part = pl_part(bands(c), thread, threads);
    if (thread == 0) {
        for (size_t i = 0; i < n * n * n; i++)
            w->laplace[i] = planewave_eigenvalue(n, (size_t[]){i % n, i / n % n, i / n / n}) / points(c);
        for (size_t i = 0; i < n * n; i++)
            w->fourier[i] = conj(planewave_turn(n, i / n * (i % n)));
        for (size_t i = 0; i < w->bands * w->bands; i++)
            w->s[i] = 0;
        if (!w->forward)
            planewave_open(w);      /* measures on the first band's pages, before they are filled */
    }
    if (threads > 1)
        pl_barrier();
    fill(c, part);
}

static void plan(const pl_case *c, pl_plan *p) { p->part = pl_part(bands(c), p->thread, c->threads); }

static void run(const pl_case *c, const pl_plan *p) { ((planewave_loop *)p->loop)(p->part, c->data); }

/* Operations by definition: 5 N log2 N of a transform of N points (FFTW's own measure), 2 for each point of the Laplacian, 8 for each of a
 * product. */
static pl_work work(const pl_case *c)
{
    const double of_grid = 16 * points(c) * (double)bands(c);
    return (pl_work){.flops = planewave_flops(c->n, bands(c), transforms(c), multiplies(c)),
                     .load_bytes = (transforms(c) + multiplies(c) * 2) * of_grid, .store_bytes = transforms(c) * of_grid,
                     .source = "model: 5 N log2 N operations for a transform of N points, there and back; 8 for each point of a product"};
}

/* --- proof ---------------------------------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    const planewave *const w = c->data;
    for (size_t i = 0; i < w->bands * w->stride; i++)
        w->h[i] = CMPLX(NAN, NAN);
    if (!transforms(c))
        fill(c, (pl_range){0, bands(c)});
    for (size_t i = 0; i < w->bands * w->bands; i++)
        w->s[i] = CMPLX(NAN, NAN);
}

static double verify(const pl_case *c)
{
    return planewave_error(c->data, (pl_range){0, c->n * c->n * c->n}, transforms(c), multiplies(c));
}

static double tolerance(const pl_case *c) { return planewave_tolerance(c->n); }

static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){.name = "library", .text = planewave_library()};
    found[1] = (pl_fact){.name = "plans", .text = planewave_plans(c->data)};
}

static const pl_kernel kernel = {
    .name = "planewave", .title = "Laplacians by small transforms, and products of all bands; --size is points along an edge of the grid",
    .variants = variants, .parameters = parameters, .usual_size = 24, .check = check, .footprint = footprint, .create = create,
    .touch = touch, .plan = plan, .run = run, .work = work, .verify = verify, .tolerance = tolerance, .poison = poison,
    .buffers = pl_first_buffers, .destroy = destroy, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &kernel); }
