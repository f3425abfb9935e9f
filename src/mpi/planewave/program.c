/* Plane waves on several processes as the runtime sees it. */
#include <math.h>
#include <stdlib.h>

#include "runtime.h"
#include "slabs.h"

static const pl_variant variants[] = {
    {"plain", .loop = (pl_loop)slabs_plain, .about = "transforms by matrices and products in loops of our own"},
#ifdef PL_FFTW
    {"fftw", .loop = (pl_loop)slabs_fftw, .about = "the same by FFTW and the BLAS"},
#else
    {"fftw", .about = "built without FFTW, or without BLAS"},
#endif
    {0},
};

enum { BANDS };

static const pl_parameter parameters[] = {
    [BANDS] = PLANEWAVE_BANDS,
    {0},
};

static size_t bands(const pl_case *c) { return (size_t)c->parameters[BANDS]; }

static void check(const pl_case *c)
{
    planewave_check(c, bands(c));
    if (c->n < (size_t)pl_processes.ranks)
        pl_fail("--size %zu: %d processes share out as many planes of the grid: give a larger size or fewer processes", c->n, pl_processes.ranks);
}

static size_t stride_of(const pl_case *c)
{
    const pl_range most = slabs_part(c->n, 0, pl_processes.ranks);
    return ((most.end - most.begin) * c->n * c->n + 3) / 4 * 4;
}

static size_t footprint(const pl_case *c) { return planewave_footprint(c->n, bands(c), stride_of(c)); }

static void *create(const pl_case *c)
{
    slabs *const s = pl_allocate(sizeof *s, "the slabs");
    app_open(&s->app, MPI_COMM_WORLD);
    s->planes = s->rows = slabs_part(c->n, s->app.rank, s->app.ranks);
    planewave_create(&s->waves, c, bands(c), stride_of(c));
    slabs_open(s);
    return s;
}

static void destroy(void *data)
{
    slabs_close(data);
    pl_first_buffers_destroy(data);
}

static size_t own_points(const slabs *s) { return (s->planes.end - s->planes.begin) * s->waves.n * s->waves.n; }

static void touch(const pl_case *c, int thread, int threads)
{
    slabs *const s = c->data;
    const planewave *const w = &s->waves;
    const size_t n = c->n, before = s->planes.begin * n * n;
    if (thread)
        return;
    for (size_t b = 0; b < w->bands; b++) {
        size_t k[3];
        planewave_wave(n, w->bands, b, k);
        for (size_t i = 0; i < own_points(s); i++)
            w->psi[b * w->stride + i] = w->h[b * w->stride + i] = planewave_value(n, k, before + i);
    }
    for (size_t i = 0; i < own_points(s); i++)      /* as the lines lie: z fastest, then x, then own rows */
        w->laplace[i] = planewave_eigenvalue(n, (size_t[]){i / n % n, s->rows.begin + i / n / n, i % n}) / (double)(n * n * n);
    for (size_t i = 0; i < n * n; i++)
        w->fourier[i] = conj(planewave_turn(n, i / n * (i % n)));
    for (size_t i = 0; i < w->bands * w->bands; i++)
        w->s[i] = 0;
}

static void run(const pl_case *c, const pl_plan *p) { ((slabs_loop *)p->loop)(c->data); }

static double communication(const pl_case *c) { return app_communication(&((slabs *)c->data)->app); }

/* Of all processes. */
static pl_work work(const pl_case *c)
{
    const double of_grid = 16 * pow((double)c->n, 3) * (double)bands(c);
    return (pl_work){.flops = planewave_flops(c->n, bands(c), true, true), .load_bytes = 3 * of_grid, .store_bytes = of_grid,
                     .source = "model: 5 N log2 N operations for a transform of N points, there and back; 8 for each point of a product"};
}

/* --- proof ---------------------------------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    slabs *const s = c->data;
    for (size_t i = 0; i < s->waves.bands * s->waves.stride; i++)
        s->waves.h[i] = CMPLX(NAN, NAN);
    for (size_t i = 0; i < s->waves.bands * s->waves.bands; i++)
        s->waves.s[i] = CMPLX(NAN, NAN);
    app_reset(&s->app);
    s->app.proving = true;
}

static app_result pass;         /* the verified one's messages */

static double verify(const pl_case *c)
{
    slabs *const s = c->data;
    const size_t plane = c->n * c->n;
    s->app.proving = false;
    pass = app_result_of(&s->app, 0, 0, 0);
    return planewave_error(&s->waves, (pl_range){s->planes.begin * plane, s->planes.end * plane}, true, true);
}

static double tolerance(const pl_case *c) { return planewave_tolerance(c->n); }

static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){.name = "library", .text = planewave_library()};
    found[1] = (pl_fact){.name = "plans", .text = planewave_plans(&((const slabs *)c->data)->waves)};
    found[2] = (pl_fact){.name = "messages", .number = pass.messages};
    found[3] = (pl_fact){.name = "message_bytes", .number = pass.bytes};
}

static const pl_kernel kernel = {
    .name = "planewave", .title = "Laplacians by transforms of a grid in slabs, and products of all bands; --size is points along an edge",
    .variants = variants, .parameters = parameters, .most_threads = 1, .usual_size = 24, .check = check, .footprint = footprint,
    .create = create, .touch = touch, .run = run, .work = work, .verify = verify, .tolerance = tolerance, .poison = poison,
    .buffers = pl_first_buffers, .destroy = destroy, .facts = facts, .communication = communication,
};

int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &kernel); }
